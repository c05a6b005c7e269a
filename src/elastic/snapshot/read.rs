//! Reading a growing filter from untrusted bytes, in pieces. Memory grows with the bytes that arrive, not with what the header
//! claims.

use alloc::{format, string::String, vec::Vec};

use super::{
    super::{ElasticFilter, ElasticParams, lane::Lane, layer::Layer, plan::LayerPlan, shard::Shard},
    format::{
        HASHER_AT, HEADER_BYTES, Header, RECORD_BYTES, Record, SECTION_BYTES, Section, TRAILER_BYTES, filler, section_checksum,
    },
};
use crate::{
    bits::{PADDING, index, wide},
    hash::{Hasher, HasherId, Xxh3},
    kernel::Dispatch,
    snapshot::{
        Checksum, SnapshotError, SnapshotErrorKind as Kind, Source, checksum, differs, fill_gradually, header_too_short,
        too_long, too_short, verify_shard, xxh3,
    },
    storage::{Part, reserve, reserved},
    table::TableParams as _,
};

/// The most bytes of a directory that are allocated without as many bytes of tables. Filters that have grown from uniform hashes
/// need far fewer.
const MOST_DIRECTORY: usize = 16 << 20;

impl ElasticFilter {
    /// Reads a filter from the bytes of one snapshot of a growing filter, with nothing after it.
    ///
    /// Safe for untrusted input: validates everything, and allocates no more than a few times the length of the input, and 32 MiB.
    /// Takes time proportional to the input. A limit of memory is not a part of a snapshot:
    /// [`set_max_bytes`](Self::set_max_bytes) sets it again.
    ///
    /// # Errors
    /// If the bytes are not a valid snapshot of a growing filter; the error says what is wrong and at which offset. If the
    /// filter's hasher is not [`Xxh3`]: then use [`from_bytes_with`](Self::from_bytes_with).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
        Self::from_bytes_with(bytes, xxh3)
    }
}

/// Reads a snapshot with [`from_bytes`](ElasticFilter::from_bytes).
impl TryFrom<&[u8]> for ElasticFilter<Xxh3> {
    type Error = SnapshotError;

    fn try_from(bytes: &[u8]) -> Result<Self, SnapshotError> {
        Self::from_bytes(bytes)
    }
}

impl<H: Hasher> ElasticFilter<H> {
    /// [`from_bytes`](ElasticFilter::from_bytes) for filters with other hashers. See
    /// [`CuckooFilter::from_bytes_with`](crate::CuckooFilter::from_bytes_with) for `hasher`.
    ///
    /// # Errors
    /// As `from_bytes`.
    pub fn from_bytes_with(bytes: &[u8], hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        let (filter, end) = read(&mut Slice(bytes), hasher)?;
        if end < wide(bytes.len()) { Err(too_long(wide(bytes.len()), end)) } else { Ok(filter) }
    }
}

/// Bytes in memory as a [`Source`].
struct Slice<'a>(&'a [u8]);

impl Source for Slice<'_> {
    type Error = SnapshotError;

    fn fill(&mut self, bytes: &mut [u8], _: u64) -> Result<usize, SnapshotError> {
        let (read, rest) = self.0.split_at(bytes.len().min(self.0.len()));
        bytes[..read.len()].copy_from_slice(read);
        self.0 = rest;
        Ok(read.len())
    }
}

/// Reads one snapshot, and not one byte more. Also returns its length.
pub(super) fn read<S: Source<Error = SnapshotError>, H: Hasher>(
    source: &mut S,
    hasher: impl FnOnce(HasherId) -> Option<H>,
) -> Result<(ElasticFilter<H>, u64), SnapshotError> {
    let mut header = [0; HEADER_BYTES];
    let arrived = source.fill(&mut header, 0)?;
    if arrived < HEADER_BYTES {
        return Err(header_too_short(&header[..arrived]));
    }
    let (Header { params, hasher: id }, seed) = Header::decode(&header)?;
    let hasher = hasher(id).filter(|hasher| hasher.id() == id);
    let hasher = hasher.ok_or_else(|| SnapshotError::hasher(wide(HASHER_AT), id))?;
    let mut reading =
        Reading { source, params, seed, checksums: Checksum::new(seed), offset: wide(HEADER_BYTES), buffer: Vec::new() };
    let mut lanes = reserved(params.lanes())?;
    for number in 0..wide(params.lanes()) {
        lanes.push(reading.lane(number)?);
    }
    reading.trailer()?;
    let end = reading.offset;
    Ok((ElasticFilter { lanes, shares: params.shares(), params, max_bytes: usize::MAX, hasher }, end))
}

/// A snapshot of which the header has been read.
struct Reading<'a, S> {
    source: &'a mut S,
    params: ElasticParams,
    /// The header's checksum.
    seed: u64,
    /// Of the sections' checksums.
    checksums: Checksum,
    /// Bytes that have been read.
    offset: u64,
    /// The last part that was read.
    buffer: Vec<u8>,
}

impl<S: Source<Error = SnapshotError>> Reading<'_, S> {
    /// Reads so many bytes into the buffer.
    fn next(&mut self, len: usize) -> Result<(), SnapshotError> {
        let arrived = fill_gradually(self.source, &mut self.buffer, len, self.offset)?;
        self.offset += wide(arrived);
        if arrived < len { Err(too_short(self.offset, self.offset + wide(len - arrived))) } else { Ok(()) }
    }

    /// The section of a lane.
    fn lane(&mut self, number: u64) -> Result<Lane, SnapshotError> {
        let start = self.offset;
        let wrong = |what| SnapshotError::new(Kind::Shards, start, what);
        self.next(SECTION_BYTES)?;
        let mut bytes = [0; SECTION_BYTES];
        bytes.copy_from_slice(&self.buffer);
        let (section, stored) = Section::decode(&bytes);
        let len = usize::try_from(section.shards).ok().and_then(|shards| shards.checked_mul(RECORD_BYTES));
        let Some(len) = len else {
            return Err(wrong(format!("lane {number} has {} shards, more than this machine can address", section.shards)));
        };
        let list_start = self.offset;
        self.next(len)?;
        let computed = section_checksum(&bytes, &self.buffer, number, self.seed);
        if stored != computed {
            return Err(differs(Kind::BodyChecksum, start, "list of shards", stored, computed));
        }
        self.checksums.update(&stored.to_le_bytes());
        let list = list(&self.params, &self.buffer, list_start)?;
        let found: u64 = list.iter().map(|record| u64::from(record.items)).sum();
        if found != section.items {
            let what = format!("the shards of lane {number} hold {found} items, but its header says {}", section.items);
            return Err(SnapshotError::new(Kind::Count, start, what));
        }
        let mut layers = list.chunk_by(|one, next| one.layer == next.layer);
        let Some(first) = layers.next() else { return Err(wrong(format!("lane {number} has no shards"))) };
        let params = self.params;
        let mut lane = Lane::with_first(&params, self.layer(first)?);
        for records in layers {
            lane.push_layer(self.layer(records)?)?;
        }
        let found = self.offset - list_start;
        if found != section.length {
            return Err(wrong(format!("lane {number} has {found} bytes, but its header says {}", section.length)));
        }
        Ok(lane)
    }

    /// The shards of a layer, at least one.
    fn layer(&mut self, records: &[Record]) -> Result<Layer, SnapshotError> {
        let plan = self.params.layer(records[0].layer);
        let depth = records.iter().map(|record| record.depth).max().unwrap_or(plan.least_depth);
        let tables = records.iter().map(|record| plan.shard(record.depth).table_bytes()).fold(0, usize::saturating_add);
        if size_of::<u32>() << depth > MOST_DIRECTORY.max(tables) {
            let what = format!("shards of depth {depth} need a directory that is far larger than the filter");
            return Err(SnapshotError::new(Kind::Shards, self.offset, what));
        }
        let shards_of = |depth| records.iter().filter(|record| record.depth == depth).count();
        let mut layer = Layer::without_shards(plan, depth, shards_of, Dispatch::best())?;
        for record in records {
            self.table(plan.shard(record.depth), record)?;
            layer.push(record.depth, record.prefix, record.items, &self.buffer)?;
        }
        Ok(layer)
    }

    /// Reads a table with its padding into the buffer.
    fn table(&mut self, params: super::super::shard::ShardParams, record: &Record) -> Result<(), SnapshotError> {
        let (start, bytes) = (self.offset, params.table_bytes());
        self.next(bytes + filler(bytes))?;
        let computed = checksum(&self.buffer[..bytes], 0);
        if computed != record.checksum {
            return Err(differs(Kind::BodyChecksum, start, "table of a shard", record.checksum, computed));
        }
        if self.buffer[bytes..].iter().any(|&byte| byte != 0) {
            let what = String::from("the bytes behind a table are not zero");
            return Err(SnapshotError::new(Kind::Table, start + wide(bytes), what));
        }
        reserve(&mut self.buffer, PADDING)?;
        self.buffer.resize(bytes + PADDING, 0);
        let shard = Shard::from_parts(params, Part(&self.buffer), index(record.items.into()));
        verify_shard(&shard, start, params.low_bits.into())
    }

    fn trailer(&mut self) -> Result<(), SnapshotError> {
        let start = self.offset;
        self.next(TRAILER_BYTES)?;
        let mut stored = [0; TRAILER_BYTES];
        stored.copy_from_slice(&self.buffer);
        let (stored, computed) = (u64::from_le_bytes(stored), self.checksums.finish());
        if stored == computed { Ok(()) } else { Err(differs(Kind::BodyChecksum, start, "end", stored, computed)) }
    }
}

/// The records of a lane's list, which begins at this offset.
fn list(params: &ElasticParams, bytes: &[u8], start: u64) -> Result<Vec<Record>, SnapshotError> {
    let mut list = reserved(bytes.len() / RECORD_BYTES)?;
    let mut expected = Expected::new(params);
    for (bytes, at) in bytes.chunks_exact(RECORD_BYTES).zip((start..).step_by(RECORD_BYTES)) {
        let mut record = [0; RECORD_BYTES];
        record.copy_from_slice(bytes);
        let record = Record::decode(&record).ok_or("its reserved bytes are not zero");
        let record = record.and_then(|record| expected.accept(&record).map(|()| record));
        list.push(record.map_err(|what| SnapshotError::new(Kind::Shards, at, format!("the record of a shard: {what}")))?);
    }
    if expected.next != WHOLE {
        let what = String::from("the list of shards ends before every hash has one");
        return Err(SnapshotError::new(Kind::Shards, start + wide(bytes.len()), what));
    }
    Ok(list)
}

/// All streams, in units of those that have their first 32 bits in common.
const WHOLE: u64 = 1 << 32;

/// Which shards may come next in the list of a lane: those of a layer have all streams, in order.
struct Expected<'a> {
    params: &'a ElasticParams,
    plan: LayerPlan,
    /// The first stream that has no shard yet.
    next: u64,
}

impl<'a> Expected<'a> {
    fn new(params: &'a ElasticParams) -> Self {
        Self { params, plan: params.layer(0), next: 0 }
    }

    fn accept(&mut self, record: &Record) -> Result<(), &'static str> {
        let number = record.layer;
        if self.next == WHOLE && number > self.plan.number {
            (self.plan, self.next) = (self.params.layer(number), 0);
        }
        if number != self.plan.number {
            return Err("its layer is not the one that follows");
        }
        if !(self.plan.least_depth..=self.plan.most_depth).contains(&record.depth) {
            return Err("its depth is out of range");
        }
        let unit = WHOLE >> record.depth;
        if u64::from(record.prefix) * unit != self.next {
            return Err("its prefix is not the one that follows");
        }
        if index(record.items.into()) > self.plan.whole.slots() {
            return Err("it has more items than slots");
        }
        self.next += unit;
        Ok(())
    }
}
