//! A filter as bytes, and back. docs/FORMAT.md is the format's own document.

mod format;
#[cfg(feature = "mmap")]
mod map;
mod merge;
#[cfg(any(feature = "std", feature = "serde"))]
mod pieces;
mod read;
#[cfg(feature = "std")]
mod save;
#[cfg(feature = "serde")]
mod serde;
#[cfg(feature = "std")]
mod stream;
mod verify;
mod write;

#[cfg(all(feature = "metrohash", target_endian = "little"))]
pub(crate) use {save::replace, verify::filter as check};
