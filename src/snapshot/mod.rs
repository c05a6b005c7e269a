//! Serialisation of filters as snapshots, in the format of docs/FORMAT.md. Readers treat all input as untrusted: they return an
//! error or a filter that keeps its guarantees, and allocate memory only for bytes that exist.

mod error;
mod format;
mod merge;
#[cfg(any(feature = "std", feature = "serde"))]
mod pieces;
mod read;
#[cfg(feature = "std")]
mod save;
#[cfg(feature = "serde")]
mod serde;
mod source;
#[cfg(feature = "std")]
mod stream;
mod verify;
mod view;
mod write;

pub use error::{SnapshotError, SnapshotErrorKind};
pub use merge::MergeError;
#[cfg(go_files)]
pub(crate) use save::has_length;
#[cfg(all(feature = "std", any(go_files, feature = "redisbloom")))]
pub(crate) use save::replace_with;
#[cfg(any(go_files, feature = "redisbloom"))]
pub(crate) use verify::verify;
pub(crate) use {
    format::{Checksum, GROWING, MAGIC, VERSION as FORMAT_VERSION, checksum, fixed_length, is_growing, not_a_snapshot},
    read::{header_too_short, too_long, too_short, xxh3},
    source::{Slice, Source, fill_gradually},
    verify::verify_shard,
};
#[cfg(feature = "std")]
pub(crate) use {save::replace, stream::Reader};
