//! A filter as bytes, and back. docs/FORMAT.md is the format's own document.

mod format;
#[cfg(feature = "mmap")]
mod map;
mod read;
#[cfg(feature = "std")]
mod save;
#[cfg(feature = "std")]
mod stream;
mod verify;
mod write;
