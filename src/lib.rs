//! Cuckoo filters: approximate sets that take a few bits per item and support removal. A lookup returns "not in the set" or
//! "probably in the set".
//!
//! ```
//! use koel::CuckooFilter;
//!
//! let mut filter = CuckooFilter::builder()
//!     .capacity(1_000_000) // distinct items that must fit
//!     .false_positive_rate(0.001) // upper bound at that capacity
//!     .build()?;
//!
//! filter.insert("alice")?; // an error if there is no room
//! filter.insert(&42u64)?;
//! assert!(filter.contains("alice"));
//! assert!(filter.remove("alice"));
//! assert!(!filter.contains("alice"));
//!
//! let bytes = filter.to_bytes(); // 1.5 MB, the same on every machine
//! assert_eq!(CuckooFilter::from_bytes(&bytes)?, filter);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! Tables are bit-packed and *semi-sorted*: the four fingerprints of a bucket are stored in order, which saves one bit each.
//! A table can have any even number of buckets, not only a power of two.
//!
//! # Contents
//!
//! | to | see |
//! |---|---|
//! | create a filter | [`CuckooFilter::builder`], [`Builder`], [`Params`], [`TableKind`], [`Addressing`] |
//! | use it | [`CuckooFilter`]: guarantees, duplicates, removal, threads, complexity |
//! | let it grow, or write to it from many threads | [`ElasticFilter`], [`SharedFilter`] |
//! | store it | [`CuckooFilter::to_bytes`], [`write_to`](CuckooFilter::write_to), [`save`](CuckooFilter::save) |
//! | load it, also from untrusted bytes | [`CuckooFilter::from_bytes`], [`read_from`](CuckooFilter::read_from), [`load`](CuckooFilter::load) |
//! | query stored or mapped bytes in place | [`FilterView`], [`ElasticView`] |
//! | choose item types and a hasher | [`Item`]; the hashers [`Xxh3`] and [`StdHasher`](hash::StdHasher), and others in [`hash`]; [`Prehashed`] for hashes |
//! | write code for any filter | the traits [`Filter`], [`Contains`] and [`Insert`] |
//! | send and receive it in pieces | [`pieces`] |
//! | choose parameters | [`tuning`] |
//! | exchange filters with Go | [`go`] |
//! | exchange filters with RedisBloom | [`redisbloom`] |
//!
//! Guides: [choosing](guide::choosing) · [growing](guide::growing) · [threads](guide::sharing) · [seen within the last
//! hour](guide::window) · [snapshots](guide::snapshots) · [many small filters](guide::small_filters) · [serde](guide::serde) ·
//! [Go's files](guide::go) · [RedisBloom's dumps](guide::redisbloom)
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `std` | yes | `read_from`, `write_to`, `load`, `save`; [`tuning`]; paths as items. Without it, the crate needs `alloc` only. |
//! | `metrohash` | yes | [`go`], with the hasher [`MetroHash64`](go::MetroHash64), on little-endian machines. Needs `std`. |
//! | `kernels` | yes | Faster [kernels](Kernel) on x86-64: BMI2, AVX2 and AVX-512, chosen at run time; on all processors, an 8 KiB table that speeds up the decoding of buckets. Works without `std`. |
//! | `huge-pages` | yes | On Linux, huge pages for tables of 2 MiB and more, if the system has them. Needs `std`. |
//! | `serde` | no | `Serialize` and `Deserialize` for filters and [`Params`]. Works without `std`. |
//! | `redisbloom` | no | [`redisbloom`], RedisBloom's cuckoo filters, with the hasher [`RedisBloomHash`](redisbloom::RedisBloomHash). Works without `std`. |
//!
//! # Unsafe code
//! Without the features `kernels` and `huge-pages`, the crate has none. With them, it is in two places: `src/kernel/x86_64`
//! calls code that is compiled for particular instruction sets, and `src/storage/memory.rs` allocates aligned memory. No safe
//! function causes undefined behavior, with any bytes and any types.
//!
//! # Sources
//! *The paper* is Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom" (CoNEXT 2014). Where
//! koel differs from it, docs/DESIGN.md gives the reason, docs/FORMAT.md the formulas and the snapshot format, and
//! docs/TUNING.md the measurements. The package contains all three pages with their charts. The measured rows (docs/tuning) are
//! in the repository only.

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
// The badge of the module `go` lists the conditions for which build.rs sets `go_files`.
#![cfg_attr(docsrs, doc(auto_cfg(hide(go_files))))]
#![cfg_attr(not(any(feature = "kernels", feature = "huge-pages")), forbid(unsafe_code))]
// The documentation is published with all features. In other builds, links to missing features are plain text.
#![cfg_attr(
    not(all(feature = "std", feature = "serde", feature = "redisbloom", go_files)),
    allow(rustdoc::broken_intra_doc_links)
)]
// Loads and rates are approximate, so a count above 2⁵³ may lose its last bits.
#![allow(clippy::cast_precision_loss)]
#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "tests count in small numbers"))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod bits;
mod elastic;
mod filter;
#[cfg(go_files)]
#[cfg_attr(docsrs, doc(cfg(all(feature = "metrohash", target_endian = "little"))))]
pub mod go;
pub mod guide;
pub mod hash;
mod kernel;
mod message;
mod params;
#[cfg(feature = "redisbloom")]
pub mod redisbloom;
mod snapshot;
mod storage;
mod table;
#[cfg(feature = "std")]
#[cfg_attr(docsrs, doc(cfg(feature = "std")))]
pub mod tuning;

/// Snapshots in pieces, for servers that send and receive them in their own messages. [`SnapshotIndex`](pieces::SnapshotIndex)
/// reads a growing filter's snapshot from any offset; [`SnapshotExtent`](pieces::SnapshotExtent) finds the end of an incoming one.
pub mod pieces {
    pub use crate::snapshot::{SnapshotExtent, SnapshotIndex};
}

#[cfg(feature = "std")]
#[cfg_attr(docsrs, doc(cfg(feature = "std")))]
pub use elastic::SharedFilter;
pub use {
    elastic::{ElasticBuilder, ElasticFilter, ElasticParams},
    filter::{BuildError, Builder, Contains, CuckooFilter, Filter, FilterView, Insert, InsertError, InsertErrorKind, MergeError},
    hash::{hashers::Xxh3, item::Item, items::Prehashed},
    kernel::Kernel,
    params::{Addressing, ParamError, Params, TableKind},
    snapshot::{ElasticView, SnapshotError, SnapshotErrorKind},
    storage::OutOfMemory,
};
