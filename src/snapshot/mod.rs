//! Serialization of filters as snapshots, in the format of docs/FORMAT.md. Readers treat all input as untrusted: they return an
//! error or a filter that keeps its guarantees, and allocate memory only for bytes that exist.
//!
//! | file | contents |
//! |---|---|
//! | `filters` | methods of the public filters |
//! | `growing` | partitions of a growing filter as sections |
//! | `view` | growing filters that are queried in place |
//! | `pieces` | tables without a header, the bytes from any offset on, and the end of a snapshot, found while it arrives |
//! | `read` | the walk over a snapshot's sections, from any source of bytes |
//! | `verify` | validation of tables and lists |
//! | `write` | the bytes of a growing filter's snapshot |
//! | `format` | encoding and decoding of headers, sections and records |
//! | `file` | replacing files atomically |
//! | `temporary` | temporary files of live and killed savers |
//! | `serde` | snapshots in serde's formats |

mod error;
#[cfg(feature = "std")]
mod file;
mod filters;
mod format;
mod growing;
mod pieces;
mod read;
#[cfg(feature = "serde")]
pub(crate) mod serde;
#[cfg(feature = "std")]
mod temporary;
mod verify;
mod view;
mod write;

#[cfg(any(go_files, feature = "redisbloom"))]
pub(crate) use error::too_short;
#[cfg(all(feature = "std", any(go_files, feature = "redisbloom")))]
pub(crate) use file::replace_with;
#[cfg(feature = "serde")]
pub(crate) use serde::{deserializes, serializes};
#[cfg(go_files)]
pub(crate) use {error::boxed, file::check_length, verify::table as verify_table};
pub use {
    error::{SnapshotError, SnapshotErrorKind},
    pieces::{SnapshotExtent, SnapshotIndex},
    view::ElasticView,
};
#[cfg(feature = "std")]
pub(crate) use {
    file::replace,
    filters::{read_file, read_stream},
    read::stream,
};
pub(crate) use {
    filters::{reads, views, writes, xxh3},
    format::{Body, Record},
    read::{Input, ListedGeneration, Listing, Reading, Source},
    write::{snapshot_bytes, write},
};
