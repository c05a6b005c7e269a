//! A filter as bytes, and back. docs/FORMAT.md is the format's own document.

mod format;
mod read;
#[cfg(feature = "serde")]
mod serde;
mod write;
