//! Growing filters in readers, writers and files.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::Path,
};

use super::{super::ElasticFilter, write::write};
use crate::{
    hash::{Hasher, HasherId},
    snapshot::{Reader, SnapshotError, SnapshotErrorKind as Kind, Source as _, replace, xxh3},
};

impl ElasticFilter {
    /// Reads one snapshot of a growing filter from a reader, and not one byte more, so that other data may follow.
    ///
    /// Safe for untrusted input, as [`from_bytes`](Self::from_bytes). Memory grows as bytes arrive. Reads in large pieces, so the
    /// reader needs no buffer.
    ///
    /// # Errors
    /// As `from_bytes`, and if the reader fails: then the kind is [`Io`](Kind::Io).
    ///
    /// # Example
    /// ```
    /// use koel::ElasticFilter;
    /// let mut filter = ElasticFilter::builder().false_positive_rate(0.001).build()?;
    /// filter.insert("alice")?;
    /// let mut stream = Vec::new(); // or a file, or a socket
    /// filter.write_to(&mut stream)?;
    /// assert!(ElasticFilter::read_from(&stream[..])?.contains("alice"));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn read_from<R: Read>(reader: R) -> Result<Self, SnapshotError> {
        Self::read_from_with(reader, xxh3)
    }

    /// Reads a growing filter from a file, as [`read_from`](Self::read_from) does, and checks that nothing follows it.
    ///
    /// # Errors
    /// If the file is not a valid snapshot of a growing filter, or cannot be opened or read (the kind is then [`Io`](Kind::Io)).
    pub fn load(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        Self::load_with(path, xxh3)
    }
}

impl<H: Hasher> ElasticFilter<H> {
    /// [`read_from`](ElasticFilter::read_from) for filters with other hashers. See
    /// [`CuckooFilter::from_bytes_with`](crate::CuckooFilter::from_bytes_with) for `hasher`.
    ///
    /// # Errors
    /// As `read_from`.
    pub fn read_from_with<R: Read>(reader: R, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        Self::read_pieces(Reader(reader), hasher).map(|(filter, _)| filter)
    }

    /// [`load`](ElasticFilter::load) for filters with other hashers.
    ///
    /// # Errors
    /// As `load`.
    pub fn load_with(path: impl AsRef<Path>, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| SnapshotError::io(0, "cannot be opened", error).in_file(path))?;
        let (filter, end) = Self::read_pieces(Reader(&file), hasher).map_err(|error| error.in_file(path))?;
        if Reader(&file).fill(&mut [0], end).map_err(|error| error.in_file(path))? > 0 {
            return Err(SnapshotError::new(Kind::TrailingBytes, end, "the file goes on after the snapshot's end", []));
        }
        Ok(filter)
    }

    /// Writes the bytes of [`to_bytes`](Self::to_bytes) without making a copy of the tables. Writes in large pieces, so the writer
    /// needs no buffer. Allocates nothing.
    ///
    /// # Errors
    /// The writer's error. What it has received by then is not a valid snapshot.
    pub fn write_to<W: Write>(&self, mut writer: W) -> io::Result<()> {
        let lanes = self.storage.lanes.iter().map(|lane| Ok(Some(lane)));
        write(&self.params, self.hasher.id(), lanes, |piece| writer.write_all(piece))
    }

    /// Writes the filter to a file, which it creates or replaces, as [`CuckooFilter::save`](crate::CuckooFilter::save) does: at any
    /// time, even after a power cut, the file has either the old content or the new one.
    ///
    /// # Errors
    /// As `CuckooFilter::save`.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        replace(path.as_ref(), |file| self.write_to(file))
    }
}
