//! A filter as bytes, and back. docs/FORMAT.md defines the format.

mod error;
mod format;
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
mod view;
mod write;

pub use error::{SnapshotError, SnapshotErrorKind};
#[cfg(go_files)]
pub(crate) use save::replace;
pub(crate) use verify::{verified_copy, verify};
