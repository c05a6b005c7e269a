//! Snapshots of growing filters: a header, a list of all shards, and their tables (docs/FORMAT.md). Readers treat all input as
//! untrusted, as those of other snapshots do.

mod extent;
mod format;
mod index;
mod listing;
mod pieces;
mod read;
mod reading;
#[cfg(feature = "std")]
mod stream;
mod view;
mod write;

pub use extent::SnapshotExtent;
pub use index::SnapshotShards;
pub use pieces::SnapshotIndex;
#[cfg(feature = "std")]
pub(crate) use reading::check_lists;
pub use view::ElasticView;
#[cfg(feature = "std")]
pub(super) use {
    listing::Listing,
    reading::Reading,
    write::{Writing, write},
};
