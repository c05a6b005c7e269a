//! Guides: how to choose, store and combine filters. The module contains text only.
//!
//! | guide | questions |
//! |---|---|
//! | [`choosing`] | Which parameters, hasher and methods fit the task? What are the limits? |
//! | [`growing`] | What if the number of items is unknown? How does a filter grow? |
//! | [`sharing`] | How do several threads use one filter? Which operation locks what? |
//! | [`window`] | Has this item been seen within the last hour? |
//! | [`snapshots`] | How do I store, send, load and query a filter in place? |
//! | [`small_filters`] | How do I keep thousands of filters, such as one for each file of an LSM tree? |
//! | [`serde`] | How do I use a filter as a field of a type with serde's derives? |
//! | [`go`] | How do I exchange filters with Go's linvon/cuckoo-filter? |
//! | [`redisbloom`] | How do I import and export RedisBloom's `CF.*` filters? |

// The guides link to these items.
#![allow(unused_imports, clippy::wildcard_imports, reason = "only the documentation uses them")]
use crate as koel;
use crate::{hash::*, *};

// Every build documents all pages. Doctests include a page only with the features that its examples need.
#[doc = include_str!("choosing.md")]
pub mod choosing {}

#[doc = include_str!("growing.md")]
pub mod growing {}

#[cfg_attr(any(feature = "std", not(doctest)), doc = include_str!("sharing.md"))]
pub mod sharing {}

#[doc = include_str!("window.md")]
pub mod window {}

#[cfg_attr(any(feature = "std", not(doctest)), doc = include_str!("snapshots.md"))]
// The last section of the page ends with a program for a processor without `std`, which benches/code_size.py compiles.
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
