//! Guides: how to choose, keep and combine filters. Text only; there is no code in this module.
//!
//! | guide | questions it answers |
//! |---|---|
//! | [`choosing`] | Which parameters, hasher and method fit the task? What are the limits? |
//! | [`growing`] | What if the number of items is unknown? How does a filter grow? |
//! | [`sharing`] | How do several threads use one filter? Who locks what? |
//! | [`window`] | Has this been seen within the last hour? |
//! | [`snapshots`] | How is a filter stored, sent, loaded and queried in place? |
//! | [`small_filters`] | How are thousands of filters kept, for example one for each file of an LSM tree? |
//! | [`serde`] | How does a filter become a field of a type with serde's derives? |
//! | [`go`] | How are filters exchanged with Go's linvon/cuckoo-filter? |
//! | [`redisbloom`] | How are RedisBloom's `CF.*` filters imported and exported? |

// What the guides link to.
#![allow(unused_imports, clippy::wildcard_imports, reason = "only the documentation uses them")]
use crate as koel;
use crate::{hash::*, *};

// A page is shown whatever the features; its examples are compiled where they have the features that they need.
#[doc = include_str!("choosing.md")]
pub mod choosing {}

#[doc = include_str!("growing.md")]
pub mod growing {}

#[cfg_attr(any(feature = "std", not(doctest)), doc = include_str!("sharing.md"))]
pub mod sharing {}

#[doc = include_str!("window.md")]
pub mod window {}

#[cfg_attr(any(feature = "std", not(doctest)), doc = include_str!("snapshots.md"))]
// The last section of the page ends with a program for a processor that has no std: benches/code_size.py compiles it.
#[doc = "```rust,ignore"]
#[doc = include_str!("firmware.rs")]
#[doc = "```"]
pub mod snapshots {}

#[doc = include_str!("small_filters.md")]
pub mod small_filters {}

#[cfg_attr(any(feature = "serde", not(doctest)), doc = include_str!("serde.md"))]
pub mod serde {}

#[cfg_attr(any(go_files, not(doctest)), doc = include_str!("go.md"))]
pub mod go {}

#[cfg_attr(any(feature = "redisbloom", not(doctest)), doc = include_str!("redisbloom.md"))]
pub mod redisbloom {}
