//! The files of Go's linvon/cuckoo-filter, version 0.4: what its `Encode` writes is read here, and what is written here its
//! `Decode` reads. docs/GO.md describes them.
//!
//! ```
//! use koel::{Addressing, CuckooFilter, MetroHash64, go};
//!
//! // A filter as Go has them: by capacity, rate, kind of table as ever, but with these three.
//! let mut filter = CuckooFilter::builder()
//!     .capacity(1000)
//!     .false_positive_rate(0.001)
//!     .addressing(Addressing::PowerOfTwo)
//!     .hasher(MetroHash64)
//!     .seed(1337)
//!     .build()?;
//! filter.insert("alice")?; // in Go: Contain([]byte("alice"))
//! let file = go::encode(&filter)?;
//!
//! let mut read = go::decode(&file)?;
//! assert!(read.contains("alice"));
//! read.insert("bob")?;
//! let file = read.encode()?;
//! # assert!(go::decode(&file)?.contains("bob"));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! - Answers are Go's, false positives included. A file that was read and not changed is written again byte for byte.
//! - Go keeps one item beside a table that it found no room in, the *victim*. So does [`GoFilter`], until there is room.
//! - Whatever the bytes are, the answer is an error or a filter, and no more memory is taken than they warrant.
//! - An item's bytes are those of [`Item`](crate::Item): what Go's program gave to `Add` must be the same.

mod error;
mod filter;
mod format;
mod order;
mod packed;
mod read;
mod write;

pub use {error::GoError, filter::GoFilter, read::decode, write::encode};
