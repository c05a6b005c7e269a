//! Reading the sections of a snapshot one after the other, from untrusted bytes. Memory grows with the bytes that arrive, not with
//! what the header claims.

use alloc::vec::Vec;
use core::iter;
#[cfg(feature = "std")]
use std::{
    fs::File,
    io::{Seek as _, SeekFrom},
};

use super::{
    super::{
        ElasticParams,
        shard::{Shard, ShardParams},
    },
    format::{
        HASHER_AT, HEADER_BYTES, Header, RECORD_BYTES, Record, SECTION_BYTES, Section, TRAILER_BYTES, filler, section_checksum,
    },
    listing::Listing,
};
#[cfg(feature = "std")]
use crate::snapshot::Reader;
use crate::{
    bits::{PADDING, index, wide},
    hash::{Hasher, HasherId},
    snapshot::{
        Checksum, Slice, SnapshotError, SnapshotErrorKind as Kind, Source, checksum, fill_gradually, header_too_short, too_short,
        verify_shard,
    },
    storage::{Part, reserve},
    table::TableParams as _,
};

/// The most bytes of directories that are allocated without as many bytes of input. Filters that have grown from uniform hashes
/// need far fewer.
const MOST_DIRECTORIES: u64 = 16 << 20;

/// A snapshot of which the header has been read. It is never read further than its end.
pub(in crate::elastic) struct Reading<S> {
    source: S,
    pub(in crate::elastic) params: ElasticParams,
    hasher: HasherId,
    /// The header's checksum.
    seed: u64,
    /// Of the sections' checksums.
    checksums: Checksum,
    /// Bytes that have arrived.
    pub(super) offset: u64,
    /// Bytes of directories that were allowed.
    directories: u64,
    /// The last part that was read.
    buffer: Vec<u8>,
}

impl<S: Source> Reading<S> {
    /// Reads the header.
    pub(in crate::elastic) fn start(mut source: S) -> Result<Self, SnapshotError> {
        let mut header = [0; HEADER_BYTES];
        let arrived = source.fill(&mut header, 0)?;
        if arrived < HEADER_BYTES {
            return Err(header_too_short(&header[..arrived]));
        }
        let (Header { params, hasher }, seed) = Header::decode(&header)?;
        let checksums = Checksum::new(seed);
        Ok(Self { source, params, hasher, seed, checksums, offset: wide(HEADER_BYTES), directories: 0, buffer: Vec::new() })
    }

    /// The hasher that the header names.
    pub(super) fn hasher<H: Hasher>(&self, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<H, SnapshotError> {
        let hasher = hasher(self.hasher).filter(|hasher| hasher.id() == self.hasher);
        hasher.ok_or_else(|| SnapshotError::hasher(wide(HASHER_AT), self.hasher))
    }

    /// Reads so many bytes into the buffer.
    fn next(&mut self, len: usize) -> Result<(), SnapshotError> {
        let arrived = fill_gradually(&mut self.source, &mut self.buffer, len, self.offset)?;
        self.offset += wide(arrived);
        if arrived < len { Err(too_short(self.offset, self.offset.saturating_add(wide(len - arrived)))) } else { Ok(()) }
    }

    /// The id of the hasher that the header names.
    #[cfg(feature = "std")]
    pub(in crate::elastic) fn hasher_id(&self) -> HasherId {
        self.hasher
    }

    /// What the next section, that of the lane with this number, says before its tables, of a snapshot that has all lanes.
    pub(super) fn present(&mut self, lane: u64) -> Result<Listing, SnapshotError> {
        let start = self.offset;
        let listing = self.listing(lane)?;
        if listing.is_absent() {
            return Err(SnapshotError::new(Kind::Part, start, "this is a part of a filter, without lane {}", [lane]));
        }
        Ok(listing)
    }

    /// The same of any snapshot.
    pub(in crate::elastic) fn listing(&mut self, lane: u64) -> Result<Listing, SnapshotError> {
        let start = self.offset;
        self.next(SECTION_BYTES)?;
        let mut bytes = [0; SECTION_BYTES];
        bytes.copy_from_slice(&self.buffer);
        let (section, stored) = Section::decode(&bytes);
        let len = usize::try_from(section.shards).ok().and_then(|shards| shards.checked_mul(RECORD_BYTES));
        let Some(len) = len else {
            let words = "lane {} has {} shards, more than this machine can address";
            return Err(SnapshotError::new(Kind::Shards, start, words, [lane, section.shards]));
        };
        self.next(len)?;
        let computed = section_checksum(&bytes, iter::once(&self.buffer), lane, self.seed);
        if stored != computed {
            return Err(SnapshotError::altered(Kind::BodyChecksum, start, "list of shards", stored, computed));
        }
        self.checksums.update(&stored.to_le_bytes());
        Listing::decode(&self.params, &self.buffer, lane, &section, start)
    }

    /// The next table, with its padding, of a shard with these parameters.
    pub(super) fn table(&mut self, params: ShardParams, record: &Record) -> Result<&[u8], SnapshotError> {
        let (start, bytes) = (self.offset, params.table_bytes());
        self.next(bytes + filler(bytes))?;
        let computed = checksum(&self.buffer[..bytes], 0);
        if computed != record.checksum {
            return Err(SnapshotError::altered(Kind::BodyChecksum, start, "table of a shard", record.checksum, computed));
        }
        if self.buffer[bytes..].iter().any(|&byte| byte != 0) {
            return Err(SnapshotError::new(Kind::Table, start + wide(bytes), "the bytes behind a table are not zero", []));
        }
        reserve(&mut self.buffer, PADDING)?;
        self.buffer.resize(bytes + PADDING, 0);
        let shard = Shard::from_parts(params, Part(&self.buffer), index(record.items.into()));
        verify_shard(&shard, start)?;
        Ok(&self.buffer)
    }

    /// Verifies all tables of a lane and passes each to `act`, in order, until that returns false.
    pub(in crate::elastic) fn tables(
        &mut self,
        listing: &Listing,
        mut act: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), SnapshotError> {
        for records in listing.layers() {
            let plan = self.params.layer(records[0].layer);
            for record in records {
                let shard = plan.shard(record.depth);
                if !act(&self.table(shard, record)?[..shard.table_bytes()]) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Fails if a directory of this depth, after those before it, would take far more memory than the bytes that have arrived.
    /// To be called when the tables that it leads to have.
    pub(super) fn allow_directory(&mut self, depth: u8) -> Result<(), SnapshotError> {
        self.directories = self.directories.saturating_add(wide(size_of::<u32>()) << depth);
        if self.directories <= MOST_DIRECTORIES.max(self.offset) {
            return Ok(());
        }
        let words = "shards of depth {} need a directory that is far larger than the filter";
        Err(SnapshotError::new(Kind::Shards, self.offset, words, [depth.into()]))
    }

    /// Gives back memory that is not needed until more is read.
    #[cfg(feature = "std")]
    pub(in crate::elastic) fn release(&mut self) {
        self.buffer = Vec::new();
    }

    /// Reads the trailer, behind which there must be nothing.
    #[cfg(feature = "std")]
    pub(in crate::elastic) fn finish_at_end(mut self) -> Result<(), SnapshotError> {
        let end = self.trailer()?;
        let more = self.source.fill(&mut [0], end)?;
        if more > 0 {
            Err(SnapshotError::new(Kind::TrailingBytes, end, "the input goes on after the snapshot's end", []))
        } else {
            Ok(())
        }
    }

    /// Reads the trailer. Returns the length of the snapshot.
    pub(super) fn finish(mut self) -> Result<u64, SnapshotError> {
        self.trailer()
    }

    fn trailer(&mut self) -> Result<u64, SnapshotError> {
        let start = self.offset;
        self.next(TRAILER_BYTES)?;
        let mut stored = [0; TRAILER_BYTES];
        stored.copy_from_slice(&self.buffer);
        let (stored, computed) = (u64::from_le_bytes(stored), self.checksums.finish());
        if stored == computed {
            Ok(self.offset)
        } else {
            Err(SnapshotError::altered(Kind::BodyChecksum, start, "end", stored, computed))
        }
    }
}

impl Reading<Slice<'_>> {
    /// Goes on so many bytes further.
    pub(super) fn skip(&mut self, len: u64) -> Result<(), SnapshotError> {
        let left = self.source.0;
        let Some(rest) = usize::try_from(len).ok().and_then(|len| left.get(len..)) else {
            let end = self.offset + wide(left.len());
            return Err(too_short(end, self.offset.saturating_add(len)));
        };
        self.source.0 = rest;
        self.offset += len;
        Ok(())
    }
}

/// Validates a snapshot in a file of so many bytes, read from its start, as far as opening a view of it does: the header, the
/// length, and the lists of shards. It may be a part. Seeks past the tables, and has the list of one lane in memory at a time.
#[cfg(feature = "std")]
pub(crate) fn check_lists(mut file: &File, len: u64) -> Result<(), SnapshotError> {
    let mut reading = Reading::start(Reader(file))?;
    for lane in 0..wide(reading.params.lanes()) {
        let listing = reading.listing(lane)?;
        let end = reading.offset.checked_add(listing.table_bytes).filter(|&end| end <= len);
        reading.offset = end.ok_or_else(|| too_short(len, reading.offset.saturating_add(listing.table_bytes)))?;
        let moved = file.seek(SeekFrom::Start(reading.offset));
        moved.map_err(|error| SnapshotError::io(reading.offset, "the file cannot be read further", error))?;
        for records in listing.layers() {
            let (_, depth) = super::listing::layer(&reading.params, records);
            reading.allow_directory(depth)?;
        }
    }
    reading.finish_at_end()
}
