//! The fuzz target's stored snapshots, with the library's errors.

use crate::{random::verdict_json, repair, sections::is_growing};
use koel::{CuckooFilter, ElasticFilter, hash::AnyHasher};
use std::{fs, io, path::Path};

/// Returns snapshots of fixed and of growing filters as JSON: their bytes, and the kind of the library's error, if any.
pub(crate) fn snapshots() -> io::Result<[Vec<String>; 2]> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut snapshots = [Vec::new(), Vec::new()];
    for folder in ["fuzz/corpus/snapshot", "fuzz/crashes/snapshot"] {
        for file in fs::read_dir(root.join(folder))? {
            let (bytes, _) = repair::snapshot(&fs::read(file?.path())?);
            let is_growing = bytes.get(10).is_some_and(|&kind| is_growing(kind));
            let refused = if is_growing {
                ElasticFilter::from_bytes_with(&bytes, AnyHasher::from_id).err()
            } else {
                CuckooFilter::from_bytes_with(&bytes, AnyHasher::from_id).err()
            };
            snapshots[usize::from(is_growing)].push(verdict_json(&bytes, refused.map(|error| error.kind())));
        }
    }
    Ok(snapshots)
}
