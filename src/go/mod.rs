//! Reads and writes the files of Go's linvon/cuckoo-filter, version 0.4: those that its `Encode` writes and its `Decode` reads.
//! [`guide::go`](crate::guide::go) describes the format.
//!
//! ```
//! use koel::{Addressing, CuckooFilter, go::{self, MetroHash64}};
//!
//! // Go's library needs these three settings; all others are free.
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
//! - Answers equal those of Go's library, false positives included. A file that is read and not changed is written back byte for
//!   byte.
//! - If Go's library finds no slot for an item, it keeps that one item outside the table: the *victim*. So does [`GoFilter`],
//!   until there is room for it.
//! - Safe for untrusted input: [`decode`] validates everything, and allocates memory only for bytes that exist.
//! - Items are hashed as the bytes of their [`Item`](crate::Item) implementation. Go's program must pass the same bytes to `Add`.

mod error;
mod filter;
mod format;
mod order;

pub use crate::hash::MetroHash64;
pub use {
    error::GoError,
    filter::{GoFilter, WithVictim},
    format::{decode, encode},
};
