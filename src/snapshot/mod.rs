//! Serialisation of filters as snapshots, in the format of docs/FORMAT.md. Readers treat all input as untrusted: they return an
//! error or a filter that keeps its guarantees, and allocate memory only for bytes that exist.
//!
//! | file | what it has |
//! |---|---|
//! | `filters` | what filters of all kinds do with snapshots |
//! | `format` | header, sections, records: bytes into fields and back |
//! | `read` | the walk over a snapshot's sections, whatever the bytes come from |
//! | `verify` | what a table must be |
//! | `write` | the bytes of a snapshot, all at once or from wherever a reader is |
//! | `extent` | where a snapshot ends, found while it arrives |
//! | `file` | replacing files atomically |
//! | `serde` | the same bytes in serde's formats |

// Declared first so that rustdoc lists its methods first.
mod filters;

mod error;
mod extent;
#[cfg(feature = "std")]
mod file;
mod format;
mod read;
#[cfg(feature = "serde")]
mod serde;
mod verify;
mod write;

#[cfg(go_files)]
pub(crate) use file::has_length;
#[cfg(all(feature = "std", any(go_files, feature = "redisbloom")))]
pub(crate) use file::replace_with;
#[cfg(all(feature = "std", feature = "redisbloom"))]
pub(crate) use read::Reader;
#[cfg(any(go_files, feature = "redisbloom"))]
pub(crate) use read::too_short;
pub use {
    error::{SnapshotError, SnapshotErrorKind},
    extent::SnapshotExtent,
    filters::{ElasticView, FromSnapshot, ToSnapshot, ViewSnapshot},
    write::SnapshotIndex,
};
pub(crate) use {
    format::{Record, padded},
    read::{Listed, Reading, Slice, Source},
    verify::{verify, verify_copy},
    write::{snapshot_bytes, write},
};
