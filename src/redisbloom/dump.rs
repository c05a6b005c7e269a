//! Chunks in a file: of each, the iterator, the length, and the bytes.

use alloc::vec::Vec;

use super::{
    chunks::{Loader, cut_off, no_chunks},
    filter::RedisBloomFilter,
    header::{self, UNPACKED_BYTES},
};
use crate::{
    bits::{index, wide},
    snapshot::{Slice, SnapshotError, Source},
};

/// The iterator and the length before the bytes of a chunk.
const FRAME_BYTES: usize = 16;

/// Bytes of a chunk that are taken together.
const PIECE_BYTES: usize = 16 << 10;

impl RedisBloomFilter {
    /// Reads chunks from the bytes of a file. Of each chunk it has the iterator, the length, both as 64-bit little-endian numbers,
    /// and the bytes. (RedisBloom has no file format; [`guide::redisbloom`](crate::guide::redisbloom) has a script that writes
    /// these files.)
    ///
    /// Safe for untrusted input, as [`from_chunks`](Self::from_chunks).
    ///
    /// # Errors
    /// As `from_chunks`; offsets count from the beginning of the file.
    pub fn from_dump(bytes: &[u8]) -> Result<Self, SnapshotError> {
        read(Slice(bytes))
    }

    /// [`from_dump`](Self::from_dump) for a reader, which is read to its end. Memory grows as bytes arrive. Reads in large pieces,
    /// so the reader needs no buffer.
    ///
    /// # Errors
    /// As `from_dump`, and if the reader fails: then the kind is [`Io`](crate::SnapshotErrorKind::Io).
    #[cfg(feature = "std")]
    pub fn read_dump(reader: impl std::io::Read) -> Result<Self, SnapshotError> {
        read(crate::snapshot::Reader(reader))
    }

    /// The bytes of a file with the chunks, for [`from_dump`](Self::from_dump).
    #[must_use]
    pub fn to_dump(&self) -> Vec<u8> {
        let mut dump = Vec::new();
        for (iterator, bytes) in self.chunks() {
            dump.extend_from_slice(&frame_of(iterator, bytes));
            dump.extend_from_slice(bytes);
        }
        dump
    }

    /// Writes the bytes of [`to_dump`](Self::to_dump), without a copy of all of them.
    ///
    /// # Errors
    /// The writer's error. What it has received by then is not a valid dump.
    #[cfg(feature = "std")]
    pub fn write_dump<W: std::io::Write>(&self, mut writer: W) -> std::io::Result<()> {
        self.chunks().try_for_each(|(iterator, bytes)| {
            writer.write_all(&frame_of(iterator, bytes))?;
            writer.write_all(bytes)
        })
    }

    /// Writes the bytes of [`to_dump`](Self::to_dump) to a file, which is created or replaced as by
    /// [`CuckooFilter::save`](crate::CuckooFilter::save).
    ///
    /// # Errors
    /// The error of the operating system, with the path. The old file is unchanged, unless the message says otherwise.
    #[cfg(feature = "std")]
    pub fn save_dump(&self, path: impl AsRef<std::path::Path>) -> std::io::Result<()> {
        // Nothing but the chunks themselves says how many belong together, so that all of them are read.
        let check = |mut file: &std::fs::File| {
            let begun = std::io::Seek::rewind(&mut file);
            begun.map_err(|error| SnapshotError::io(0, "the file cannot be read again", error))?;
            read(crate::snapshot::Reader(file)).map(drop)
        };
        crate::snapshot::replace_with(path.as_ref(), |file| self.write_dump(file), check)
    }
}

fn read(mut source: impl Source) -> Result<RedisBloomFilter, SnapshotError> {
    let (mut loader, mut offset): (Option<Loader>, u64) = (None, 0);
    let mut piece = [0; PIECE_BYTES];
    while let Some((iterator, len)) = frame(&mut source, offset)? {
        offset += wide(FRAME_BYTES);
        let Some(loader) = &mut loader else {
            if len > wide(UNPACKED_BYTES) {
                return Err(header::not_as_long(len, offset));
            }
            let header = &mut piece[..index(len)];
            all(&mut source, header, offset)?;
            loader = Some(Loader::at(iterator, header, offset)?);
            offset += len;
            continue;
        };
        loader.expect(iterator, len, offset)?;
        let mut left = len;
        while left > 0 {
            let piece = &mut piece[..index(left.min(wide(PIECE_BYTES)))];
            all(&mut source, piece, offset)?;
            loader.take(piece)?;
            left -= wide(piece.len());
            offset += wide(piece.len());
        }
    }
    loader.ok_or_else(no_chunks)?.finish_at(offset)
}

/// What comes before a chunk: its iterator and its length.
fn frame_of(iterator: u64, bytes: &[u8]) -> [u8; FRAME_BYTES] {
    let mut frame = [0; FRAME_BYTES];
    frame[..8].copy_from_slice(&iterator.to_le_bytes());
    frame[8..].copy_from_slice(&wide(bytes.len()).to_le_bytes());
    frame
}

/// The iterator and the length of the next chunk, or `None` at the end.
fn frame(source: &mut impl Source, offset: u64) -> Result<Option<(u64, u64)>, SnapshotError> {
    let (mut iterator, mut len) = ([0; 8], [0; 8]);
    match source.fill(&mut iterator, offset)? {
        0 => return Ok(None),
        8 => {}
        read => return Err(cut_off(offset + wide(read), offset + wide(FRAME_BYTES))),
    }
    all(source, &mut len, offset + 8)?;
    Ok(Some((u64::from_le_bytes(iterator), u64::from_le_bytes(len))))
}

/// Fills all of `bytes`.
fn all(source: &mut impl Source, bytes: &mut [u8], offset: u64) -> Result<(), SnapshotError> {
    let read = source.fill(bytes, offset)?;
    if read < bytes.len() { Err(cut_off(offset + wide(read), offset + wide(bytes.len()))) } else { Ok(()) }
}
