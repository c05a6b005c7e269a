//! Joining parts: lanes are put side by side as they are.

use alloc::vec::Vec;
use std::{
    fs::File,
    io::{self, Read, Write},
    path::Path,
};

use super::{
    super::{
        ElasticFilter, ElasticParams,
        snapshot::{Listing, Reading, Writing},
    },
    ElasticPart, JoinError,
};
use crate::{
    bits::wide,
    hash::HasherId,
    snapshot::{Reader, SnapshotError, replace},
    storage::{OutOfMemory, reserve, reserved},
};

impl ElasticPart {
    /// Joins the snapshots of all parts of a filter, given in any order, and writes the snapshot of the whole, for which
    /// [`ElasticFilter::read_from`] and [`ElasticView`](crate::ElasticView) are. Returns the number of items.
    ///
    /// Takes the memory of one shard and of one list of shards, whatever the sizes of the parts, all of which are read at the same
    /// time. Everything is verified while it is copied. Filters may have any hasher: nothing is hashed.
    ///
    /// # Errors
    /// If the parts do not make up one filter, if one of them is corrupt or goes on after its end, or if reading or writing fails.
    /// What the writer has received by then is not a valid snapshot.
    ///
    /// # Example
    /// See [`ElasticPart`].
    pub fn join_snapshots<R: Read, W: Write>(parts: impl IntoIterator<Item = R>, mut writer: W) -> Result<u64, JoinError> {
        let mut readings = Vec::new();
        for (part, reader) in parts.into_iter().enumerate() {
            reserve(&mut readings, 1)?;
            readings.push(Reading::start(Reader(reader)).map_err(|error| JoinError::Snapshot { part, error })?);
        }
        let Some(first) = readings.first() else { return Err(JoinError::NoParts) };
        let (params, hasher): (ElasticParams, HasherId) = (first.params, first.hasher_id());
        if let Some(part) = readings.iter().position(|other| (other.params, other.hasher_id()) != (params, hasher)) {
            return Err(JoinError::Different { part });
        }
        let mut writing = Writing::start(&params, hasher, |piece: &[u8]| writer.write_all(piece))?;
        let mut items = 0;
        for lane in 0..params.lanes() {
            let Some((part, listing)) = owner(&mut readings, lane)? else {
                return Err(JoinError::Missing { lane, lanes: params.lanes() });
            };
            items += listing.items();
            writing.list(&listing)?;
            let mut written = Ok(());
            let copied = readings[part].tables(&listing, |table| {
                written = writing.table(table);
                written.is_ok()
            });
            written?;
            copied.map_err(|error| JoinError::Snapshot { part, error })?;
            readings[part].release();
        }
        for (part, reading) in readings.into_iter().enumerate() {
            reading.finish_at_end().map_err(|error| JoinError::Snapshot { part, error })?;
        }
        writing.finish()?;
        Ok(items)
    }

    /// [`join_snapshots`](Self::join_snapshots) for files. Creates or replaces the file at `path` as [`ElasticFilter::save`] does:
    /// if joining fails, it is as it was.
    ///
    /// # Errors
    /// As `join_snapshots`.
    pub fn join_files<P: AsRef<Path>>(parts: impl IntoIterator<Item = P>, path: impl AsRef<Path>) -> Result<u64, JoinError> {
        let mut files = Vec::new();
        for (part, path) in parts.into_iter().enumerate() {
            let path = path.as_ref();
            let file = File::open(path).map_err(|error| {
                let what = text!("{}: cannot be opened", path.display());
                JoinError::Snapshot { part, error: SnapshotError::io(0, what, error) }
            })?;
            reserve(&mut files, 1)?;
            files.push(file);
        }
        let (mut items, mut refused) = (0, None);
        let written = replace(path.as_ref(), |file| match Self::join_snapshots(files, file) {
            Ok(joined) => {
                items = joined;
                Ok(())
            }
            Err(JoinError::Io(error)) => Err(error),
            Err(error) => {
                refused = Some(error);
                // Never seen: `refused` is returned.
                Err(io::ErrorKind::Other.into())
            }
        });
        match refused {
            Some(error) => Err(error),
            None => Ok(written.map(|()| items)?),
        }
    }
}

/// The index of the part that has a lane, and what its list says.
fn owner<R: Read>(readings: &mut [Reading<Reader<R>>], lane: usize) -> Result<Option<(usize, Listing)>, JoinError> {
    let mut owner: Option<(usize, Listing)> = None;
    for (part, reading) in readings.iter_mut().enumerate() {
        let listing = reading.listing(wide(lane)).map_err(|error| JoinError::Snapshot { part, error })?;
        if listing.is_absent() {
            continue;
        }
        if let Some((first, _)) = owner {
            return Err(JoinError::Twice { parts: [first, part] });
        }
        owner = Some((part, listing));
    }
    Ok(owner)
}

impl<H: PartialEq> ElasticFilter<H> {
    /// Joins all parts of a filter, given in any order, without copying their tables.
    ///
    /// # Errors
    /// If the parts do not make up one filter, or if memory for their list cannot be allocated.
    ///
    /// # Example
    /// ```
    /// use koel::ElasticFilter;
    /// use std::thread;
    ///
    /// let builder = ElasticFilter::builder().false_positive_rate(0.001).capacity(50_000);
    /// let builders = (0..4).map(|part| (part, builder.clone()));
    /// let threads: Vec<_> = builders
    ///     .map(|(part, builder)| {
    ///         thread::spawn(move || {
    ///             let mut part = builder.build_part(part, 4).expect("the same for all parts");
    ///             part.insert_iter(0..50_000u64).map(|_| part)
    ///         })
    ///     })
    ///     .collect();
    /// let parts = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Result<Vec<_>, _>>()?;
    /// let filter = ElasticFilter::join(parts)?;
    /// assert_eq!(filter.len(), 50_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join(parts: impl IntoIterator<Item = ElasticPart<H>>) -> Result<Self, JoinError> {
        let mut given = Vec::new();
        for part in parts.into_iter().enumerate() {
            reserve(&mut given, 1)?;
            given.push(part);
        }
        if let Some(part) =
            given.iter().position(|(_, part)| part.params != given[0].1.params || part.hasher != given[0].1.hasher)
        {
            return Err(JoinError::Different { part });
        }
        given.sort_unstable_by_key(|(index, part)| (part.first, *index));
        let of_all = given.first().map_or(0, |(_, part)| part.params.lanes());
        let (mut lanes, mut last, mut whole) = (reserved(of_all)?, 0, None);
        for (index, part) in given {
            if part.first < lanes.len() {
                return Err(JoinError::Twice { parts: [last, index] });
            }
            if part.first > lanes.len() {
                return Err(JoinError::Missing { lane: lanes.len(), lanes: part.params.lanes() });
            }
            // There is room for as many lanes as there are, and no part has more of them.
            lanes.extend(part.lanes);
            last = index;
            whole.get_or_insert((part.params, part.hasher));
        }
        let Some((params, hasher)) = whole else { return Err(JoinError::NoParts) };
        if lanes.len() < params.lanes() {
            return Err(JoinError::Missing { lane: lanes.len(), lanes: params.lanes() });
        }
        Ok(Self::from_lanes(lanes, params, hasher))
    }
}

impl From<OutOfMemory> for JoinError {
    fn from(error: OutOfMemory) -> Self {
        Self::OutOfMemory(error)
    }
}

impl From<io::Error> for JoinError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
