//! Snapshots of a shared filter.

use std::{
    io::{self, Write},
    path::Path,
};

use super::{super::snapshot::write, SharedFilter, lock::LockedLane};
use crate::{hash::Hasher, snapshot::replace};

impl<H: Hasher> SharedFilter<H> {
    /// Writes a snapshot, which [`ElasticFilter::read_from`](crate::ElasticFilter::read_from) reads, while other threads use the filter.
    ///
    /// Each lane is written as it is at one moment; lanes are written one after the other. So an item that was inserted before the
    /// call, and is not removed, is in the snapshot; one that is inserted during the call may be.
    ///
    /// A lane is copied under its lock, and the copy is written, so that no thread waits for the writer, and the writer may use the
    /// filter itself. Takes the memory of one lane meanwhile.
    ///
    /// # Errors
    /// The writer's error; [`OutOfMemory`](io::ErrorKind::OutOfMemory) if a lane cannot be copied. What the writer has received by
    /// then is not a valid snapshot.
    ///
    /// # Example
    /// ```
    /// let seen = koel::ElasticFilter::builder().false_positive_rate(0.001).build_shared()?;
    /// seen.insert("alice")?;
    /// let mut bytes = Vec::new();
    /// seen.write_to(&mut bytes)?;
    /// let read = koel::ElasticFilter::from_bytes(&bytes)?.into_shared()?;
    /// assert!(read.contains("alice"));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn write_to<W: Write>(&self, mut writer: W) -> io::Result<()> {
        let copy = |lane: &LockedLane| lane.read().try_clone();
        // An error without text: there is no memory for one.
        let lanes = self.lanes.iter().map(|lane| copy(lane).map(Some).map_err(|_| io::ErrorKind::OutOfMemory.into()));
        write(&self.params, self.hasher.id(), lanes, |piece| writer.write_all(piece))
    }

    /// Writes a snapshot to a file, which it creates or replaces as [`ElasticFilter::save`](crate::ElasticFilter::save) does, while other threads use the
    /// filter as in [`write_to`](Self::write_to).
    ///
    /// # Errors
    /// As `ElasticFilter::save`.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        replace(path.as_ref(), |file| self.write_to(file))
    }
}
