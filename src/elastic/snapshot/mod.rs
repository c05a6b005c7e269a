//! Snapshots of growing filters: a header, a list of all shards, and their tables (docs/FORMAT.md). Readers treat all input as
//! untrusted, as those of other snapshots do.

mod format;
mod read;
#[cfg(feature = "std")]
mod stream;
mod write;

#[cfg(feature = "std")]
pub(super) use {stream::Failed, write::write};
