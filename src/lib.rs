//! Cuckoo filters with bit-packed, semi-sorted buckets: sets that answer "surely not in it" or "probably in it" in a few
//! bits per item, and that can delete.
//!
//! ```
//! use koel::CuckooFilter;
//!
//! let mut filter = CuckooFilter::builder()
//!     .capacity(1_000_000) // items it must hold
//!     .false_positive_rate(0.001) // at most, when it holds them
//!     .build()?;
//! filter.insert("alice")?; // Err(Full) if there is no room
//! filter.insert(&42u64)?;
//! assert!(filter.contains("alice"));
//! assert!(filter.remove("alice"));
//! assert!(!filter.contains("alice"));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! - [`CuckooFilter`] is the filter. Its page says what it promises, and what duplicates, removals and threads do.
//! - [`Builder`] is how it is asked for: by a capacity and a false-positive rate, and by whatever else matters. It chooses
//!   the smaller of two tables ([`TableKind`]). [`Params`] is what comes of it, also without building anything.
//! - [`Item`] is what can be put in: strings, bytes, integers, addresses; tuples, slices and options of these; your own types.
//! - [`Hasher`] turns an item's bytes into a hash: [`Xxh3`] by default, [`MetroHash64`] for exchange with Go, or your own.
//!   [`StdHasher`] takes every type that implements `core::hash::Hash`, for filters that stay within one process.
//! - [`CuckooFilter::to_bytes`] and [`write_to`](CuckooFilter::write_to) make a snapshot, the same on every machine;
//!   [`from_bytes`](CuckooFilter::from_bytes) and [`read_from`](CuckooFilter::read_from) trust none.
//!   [`save`](CuckooFilter::save) replaces a file at one go. A [`FilterView`] asks a snapshot where it is, in memory or in a
//!   file that is mapped.
//! - [`go`] reads and writes the files of Go's linvon/cuckoo-filter.
//!
//! - [`tuning`] chooses parameters.
//!
//! # Features
//! - `std` (default): snapshots to and from `std::io`, and [`tuning`]. Without it the crate needs `alloc` only.
//! - `metrohash` (default): [`MetroHash64`] and [`go`], on little-endian targets.
//! - `kernels` (default): the instructions of the processor at hand ([`Kernel`]), without `std`, too.
//! - `huge-pages` (default): on Linux, tables of 2 MiB and more in huge pages, as far as the system has them.
//! - `mmap`: [`FilterView::open`], for snapshots in files.
//! - `serde`: filters in one's own serde types, in JSON as well as in binary formats; docs/SNAPSHOTS.md shows how. Without
//!   `std`, too.
//!
//! Without `kernels`, `huge-pages` and `mmap` there is no `unsafe` code.
//!
//! # Where the formulas come from
//! *The paper* is Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom" (CoNEXT 2014).
//! docs/DESIGN.md and docs/FORMAT.md in the package have what is not in it.

#![no_std]
#![cfg_attr(not(any(feature = "kernels", feature = "huge-pages")), forbid(unsafe_code))]
// Published with all features; without them some links lead nowhere.
#![cfg_attr(not(all(feature = "std", feature = "metrohash")), allow(rustdoc::broken_intra_doc_links))]
// Loads and rates are for people to read: the last bits of a count beyond 2⁵³ are not missed.
#![allow(clippy::cast_precision_loss)]
#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "tests count in small numbers"))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(all(doctest, feature = "serde", feature = "std"))]
#[doc = include_str!("../docs/SNAPSHOTS.md")]
struct Snapshots;

mod bits;
mod filter;
#[cfg(go_files)]
pub mod go;
mod hash;
mod kernel;
mod params;
mod snapshot;
mod storage;
mod table;

#[cfg(feature = "std")]
pub mod tuning;

#[cfg(feature = "serde")]
pub use hash::FromHasherId;
#[cfg(go_files)]
pub use hash::MetroHash64;
pub use {
    filter::{BuildError, Builder, Contains, ContainsIter, CuckooFilter, Filter, FilterView, Full, MergeError},
    hash::{AnyHasher, HashItem, Hasher, HasherId, Item, StdHasher, Xxh3},
    kernel::Kernel,
    params::{Addressing, ParamError, Parameter, Params, TableKind},
    snapshot::{SnapshotError, SnapshotErrorKind},
    storage::{OutOfMemory, Owned, Snapshot, Storage},
};
