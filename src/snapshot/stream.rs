//! Reading snapshots from `std::io` readers and files, and writing them to writers.

use std::{
    fs::File,
    io::{self, ErrorKind, Read, Write},
    path::Path,
};

use super::{
    SnapshotError, SnapshotErrorKind as Kind,
    format::{Checksum, Header},
    pieces::read,
    read::xxh3,
    source::{MOST, Source},
    verify::Expected,
};
use crate::{
    bits::wide,
    filter::CuckooFilter,
    hash::{Hasher, HasherId},
    storage::Storage,
};

impl CuckooFilter {
    /// Reads one snapshot from a reader, and not one byte more, so that other data may follow.
    ///
    /// Safe for untrusted input: validates everything, as [`from_bytes`](Self::from_bytes) does. Memory grows as bytes arrive,
    /// whatever the header claims: at most a quarter more than has arrived, plus 32 KiB. If the allocator can grow memory in
    /// place or by remapping pages, as Linux's can, reading takes no more than 1 MiB besides the filter itself, whatever its
    /// size.
    ///
    /// Reads in large pieces, so the reader needs no buffer. At the end of a stream of snapshots, the error has the kind
    /// [`Length`](crate::SnapshotErrorKind::Length) and the offset 0.
    ///
    /// # Errors
    /// If the bytes are not a valid snapshot; the error says what is wrong and at which offset. If the reader fails: then the
    /// kind is [`Io`](crate::SnapshotErrorKind::Io).
    ///
    /// # Example
    /// ```
    /// use koel::CuckooFilter;
    /// let filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// let mut stream = Vec::new(); // or a file, or a socket
    /// filter.write_to(&mut stream)?;
    /// assert_eq!(CuckooFilter::read_from(&stream[..])?, filter);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn read_from<R: Read>(reader: R) -> Result<Self, SnapshotError> {
        Self::read_from_with(reader, xxh3)
    }

    /// Reads a filter from a file, as [`read_from`](Self::read_from) does, and checks that nothing follows it.
    ///
    /// # Errors
    /// If the file is not a valid snapshot, or cannot be opened or read (the kind is then [`Io`](Kind::Io)).
    ///
    /// # Example
    /// ```
    /// # let path = std::env::temp_dir().join(format!("koel-load-{}.koel", std::process::id()));
    /// # koel::CuckooFilter::builder().capacity(9).false_positive_rate(0.1).build()?.save(&path)?;
    /// # /*
    /// let path = "seen.koel";
    /// # */
    /// let filter = koel::CuckooFilter::load(&path)?;
    /// assert!(filter.is_empty());
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        Self::load_with(path, xxh3)
    }
}

impl<H: Hasher> CuckooFilter<H> {
    /// [`read_from`](CuckooFilter::read_from) for filters with other hashers. See
    /// [`from_bytes_with`](Self::from_bytes_with) for `hasher`.
    ///
    /// # Errors
    /// As `read_from`.
    pub fn read_from_with<R: Read>(reader: R, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        read(&mut Reader(reader), hasher)
    }

    /// [`load`](CuckooFilter::load) for filters with other hashers. See [`from_bytes_with`](Self::from_bytes_with) for `hasher`.
    ///
    /// # Errors
    /// As `load`.
    pub fn load_with(path: impl AsRef<Path>, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| SnapshotError::io(0, "cannot be opened", error).in_file(path))?;
        let filter = Self::read_from_with(&file, hasher).map_err(|error| error.in_file(path))?;
        let end = filter.params().snapshot_bytes();
        if Reader(&file).fill(&mut [0], end).map_err(|error| error.in_file(path))? == 0 {
            return Ok(filter);
        }
        Err(SnapshotError::new(Kind::TrailingBytes, end, "the file goes on after the snapshot's end", []))
    }
}

impl<H, S: Storage> CuckooFilter<H, S> {
    /// Writes the bytes of [`to_bytes`](Self::to_bytes) without making a copy of the table. Writes in large pieces, so the writer
    /// needs no buffer.
    ///
    /// # Errors
    /// The writer's error. What it has received by then is not a valid snapshot.
    pub fn write_to<W: Write>(&self, mut writer: W) -> io::Result<()>
    where
        H: Hasher,
    {
        let (header, seed) = Header::encode(&self.params(), self.hasher().id(), self.len());
        writer.write_all(&header)?;
        // Pieces are still in the cache when they are written.
        let mut sum = Sum::new(self.raw().storage(), seed);
        for piece in self.raw().table().chunks(MOST) {
            sum.update(piece);
            writer.write_all(piece)?;
        }
        writer.write_all(&sum.finish().to_le_bytes())
    }
}

/// The checksum of a table that is being written: computed on the way or, for a view, the stored one.
#[expect(clippy::large_enum_variant, reason = "one at a time, on the stack")]
enum Sum {
    Computed(Checksum),
    Stored(u64),
}

impl Sum {
    /// `seed` is the header's checksum.
    fn new(storage: &impl Storage, seed: u64) -> Self {
        Expected::of(storage).map_or_else(|| Self::Computed(Checksum::new(seed)), |expected| Self::Stored(expected.stored))
    }

    fn update(&mut self, bytes: &[u8]) {
        if let Self::Computed(checksum) = self {
            checksum.update(bytes);
        }
    }

    fn finish(&self) -> u64 {
        match self {
            Self::Computed(checksum) => checksum.finish(),
            Self::Stored(stored) => *stored,
        }
    }
}

/// A reader as a [`Source`].
pub(crate) struct Reader<R>(pub(crate) R);

impl<R: Read> Source for Reader<R> {
    fn fill(&mut self, mut bytes: &mut [u8], offset: u64) -> Result<usize, SnapshotError> {
        let wanted = bytes.len();
        while !bytes.is_empty() {
            match self.0.read(bytes) {
                Ok(0) => break,
                Ok(read) => bytes = &mut bytes[read..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let at = offset + wide(wanted - bytes.len());
                    return Err(SnapshotError::io(at, "reading failed at byte {}", error));
                }
            }
        }
        Ok(wanted - bytes.len())
    }
}
