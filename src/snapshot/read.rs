//! Reading snapshots from untrusted bytes of any source. Memory grows with the bytes that arrive, not with what a header claims.
//!
//! [`Reading::sections`] is the one walk over a growing filter's snapshot. It opens views and checks files, which skip the bodies,
//! and verifies and reads filters, which [read](Reading::body) them.

use alloc::vec::Vec;
use core::mem;
#[cfg(feature = "std")]
use std::io::{ErrorKind, Read};

use super::{
    SnapshotError, SnapshotErrorKind as Kind,
    error::{too_long, too_short},
    format::{
        Body, HEADER_BYTES, Header, HeaderBytes, RECORD_BYTES, Record, SECTION_BYTES, SECTION_FIELDS, Section, TRAILER_BYTES,
        checksum, header_too_short, u64_at, verify_checksum,
    },
    verify,
};
use crate::{
    bits::{PADDING, in_memory, wide},
    elastic::{ElasticParams, GenerationPlan, Shard},
    message::{Text, text},
    storage::{OutOfMemory, reserved},
    table::{
        TableParams as _,
        list::{ClassKey, ListView},
    },
};

/// The length of the first piece in bytes, which bounds what a forged length makes a reader allocate.
const FIRST_PIECE: usize = 32 << 10;

/// The length of the largest piece in bytes, small enough to stay in the cache.
pub(super) const MAX_PIECE: usize = 256 << 10;

/// The bytes of directories that are allowed without as many bytes of input. Filters that have grown from uniform hashes need far
/// fewer.
const DIRECTORY_ALLOWANCE: u64 = 16 << 20;

/// A function that fills a buffer with the input from an offset on. It returns the number of bytes read, which is less than the
/// buffer's length only at the end of the input.
pub(crate) type Fill<'a> = dyn FnMut(&mut [u8], u64) -> Result<usize, SnapshotError> + 'a;

/// The input of a reader. Streams are read in large pieces, so a call through a pointer costs nothing.
pub(crate) enum Source<'a> {
    Slice(&'a [u8]),
    #[cfg_attr(not(any(feature = "std", feature = "serde")), expect(dead_code, reason = "everything is in memory"))]
    Stream(&'a mut Fill<'a>),
}

impl Source<'_> {
    /// Fills a buffer, as [`Fill`] does.
    pub fn fill(&mut self, bytes: &mut [u8], offset: u64) -> Result<usize, SnapshotError> {
        match self {
            Self::Slice(rest) => {
                let (read, after) = rest.split_at(bytes.len().min(rest.len()));
                bytes[..read.len()].copy_from_slice(read);
                *rest = after;
                Ok(read.len())
            }
            Self::Stream(fill) => fill(bytes, offset),
        }
    }
}

/// Returns a [`Fill`] function that reads from `reader`.
#[cfg(feature = "std")]
pub(crate) fn stream(mut reader: impl Read) -> impl FnMut(&mut [u8], u64) -> Result<usize, SnapshotError> {
    move |mut bytes, offset| {
        let wanted = bytes.len();
        while !bytes.is_empty() {
            match reader.read(bytes) {
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

/// The bytes of an input, in parts of known lengths. Nothing is read beyond the part that is asked for.
pub(crate) struct Input<'a> {
    source: Source<'a>,
    /// The offset of the next byte.
    pub offset: u64,
    /// The length of the snapshot if its header determines it, otherwise 0.
    pub length: u64,
    /// The part that was read last.
    pub part: Vec<u8>,
}

impl<'a> Input<'a> {
    pub fn new(source: Source<'a>) -> Self {
        Self { source, offset: 0, length: 0, part: Vec::new() }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize, SnapshotError> {
        let arrived = self.source.fill(bytes, self.offset)?;
        self.offset += wide(arrived);
        Ok(arrived)
    }

    /// Reads the bytes of a header.
    pub fn header(&mut self) -> Result<HeaderBytes, SnapshotError> {
        let mut header = [0; HEADER_BYTES];
        let arrived = self.fill(&mut header)?;
        if arrived < HEADER_BYTES { Err(header_too_short(&header[..arrived])) } else { Ok(header) }
    }

    /// Reads the next part, of `len` bytes, with room for padding. The memory grows with the bytes that arrive.
    pub fn read(&mut self, len: usize) -> Result<(), SnapshotError> {
        self.part.clear();
        self.read_up_to(len)
    }

    /// Reads on, behind what is in the part, until the part has `len` bytes.
    fn read_up_to(&mut self, len: usize) -> Result<(), SnapshotError> {
        while self.part.len() < len {
            let start = self.part.len();
            let end = len.min(start + (start / 4).clamp(FIRST_PIECE, MAX_PIECE));
            if end + PADDING > self.part.capacity() {
                let enough = len.min(end.max(start + start / 4)) + PADDING;
                self.part.try_reserve_exact(enough - start).map_err(|_| SnapshotError::from(OutOfMemory::of(enough)))?;
            }
            self.part.resize(end, 0);
            let arrived = self.source.fill(&mut self.part[start..], self.offset)?;
            self.offset += wide(arrived);
            if start + arrived < end {
                let missing = wide(len - start - arrived);
                return Err(too_short(self.offset, self.length.max(self.offset.saturating_add(missing))));
            }
        }
        Ok(())
    }

    /// Skips `len` bytes. The next call of a [`Fill`] function has the offset behind them.
    fn skip(&mut self, len: u64) -> Result<(), SnapshotError> {
        if let Source::Slice(left) = &mut self.source {
            let Some(rest) = usize::try_from(len).ok().and_then(|len| left.get(len..)) else {
                return Err(too_short(self.offset + wide(left.len()), self.offset.saturating_add(len)));
            };
            *left = rest;
        }
        self.offset = self.offset.saturating_add(len);
        Ok(())
    }

    /// Fails if more bytes follow, and counts them.
    pub fn expect_end(&mut self) -> Result<(), SnapshotError> {
        let (end, mut piece) = (self.offset, [0; 64]);
        while self.fill(&mut piece)? == piece.len() {}
        if self.offset == end { Ok(()) } else { Err(too_long(self.offset, end)) }
    }

    /// Fails if more bytes follow in a file.
    #[cfg(feature = "std")]
    pub fn expect_end_of_file(&mut self) -> Result<(), SnapshotError> {
        let end = self.offset;
        if self.fill(&mut [0])? == 0 {
            return Ok(());
        }
        Err(SnapshotError::new(Kind::TrailingBytes, end, "the file goes on after the snapshot's end", []))
    }
}

/// A walk over a growing filter's snapshot, whose header has been read.
pub(crate) struct Reading<'r, 's> {
    pub input: &'r mut Input<'s>,
    pub header: Header<ElasticParams>,
    /// The sections' checksums so far.
    checksums: Vec<u8>,
    /// The bytes of all directories that were allowed.
    directories: u64,
}

impl<'r, 's> Reading<'r, 's> {
    /// Reads the header.
    pub fn start(input: &'r mut Input<'s>) -> Result<Self, SnapshotError> {
        let header = Header::<ElasticParams>::decode(&input.header()?)?;
        let checksums = reserved(header.fields.partitions() * size_of::<u64>())?;
        Ok(Self { input, header, checksums, directories: 0 })
    }

    /// Walks over all sections, up to the end of the snapshot. `act` is called behind the records of each partition; it must either
    /// [read](Self::body) all bodies in order, or [skip](Self::skip) them.
    pub fn sections(
        mut self,
        act: &mut dyn FnMut(&mut Self, &Listing) -> Result<(), SnapshotError>,
    ) -> Result<(), SnapshotError> {
        for partition in 0..wide(self.header.fields.partitions()) {
            let listing = self.listing(partition)?;
            act(&mut self, &listing)?;
        }
        let at = self.input.offset;
        self.input.read(TRAILER_BYTES)?;
        verify_checksum(at, text!("end"), u64_at(&self.input.part, 0), checksum(&self.checksums, self.header.checksum))
    }

    /// Reads and validates the next section, that of `partition`, up to its bodies.
    fn listing(&mut self, partition: u64) -> Result<Listing, SnapshotError> {
        let Self { input, header, checksums, .. } = self;
        let start = input.offset;
        input.read(SECTION_BYTES)?;
        let (section, stored) = Section::decode(&input.part);
        let len = usize::try_from(section.records).ok().and_then(|records| records.checked_mul(RECORD_BYTES));
        let len = len.and_then(|len| len.checked_add(SECTION_FIELDS));
        let Some(len) = len else {
            let message = text!("partition {} has {} records, more than this machine can address");
            return Err(SnapshotError::new(Kind::Shards, start, message, [partition, section.records]));
        };
        input.part.truncate(SECTION_FIELDS);
        input.read_up_to(len)?;
        let computed = checksum(&input.part, header.checksum.wrapping_add(partition));
        verify_checksum(start, text!("header of a partition, or its list of shards,"), stored, computed)?;
        checksums.extend_from_slice(&stored.to_le_bytes());
        Listing::decode(&header.fields, &input.part[SECTION_FIELDS..], partition, &section, start)
    }

    /// Reads and validates the next body. For a class key, `occurrences` returns how many copies of that item are in the
    /// generation's tables.
    pub fn body(
        &mut self,
        plan: &GenerationPlan,
        record: &Record,
        occurrences: &dyn Fn(ClassKey) -> u32,
    ) -> Result<Contents<'_>, SnapshotError> {
        let input = &mut *self.input;
        let start = input.offset;
        let part = match record.body {
            Body::Table => text!("table of a shard"),
            Body::List { .. } => text!("list of a shard's items"),
            Body::Copies { .. } => text!("list of extra copies"),
        };
        // A body that is longer than the address space is longer than the input, too.
        let len = in_memory(record.body_bytes(plan));
        input.read(in_memory(record.padded_bytes(plan)))?;
        let (bytes, padding) = input.part.split_at(len);
        verify_checksum(start, part, record.checksum, checksum(bytes, 0))?;
        if padding.iter().any(|&byte| byte != 0) {
            let message = text!("the bytes behind a table or a list are not zero");
            return Err(SnapshotError::new(Kind::Table, start + wide(len), message, []));
        }
        input.part.resize(len + PADDING, 0);
        let (padded, bytes) = (&input.part[..], &input.part[..len]);
        let list = |key_bytes, count_bytes| ListView::new(bytes, key_bytes, count_bytes, in_memory(record.entries));
        Ok(match record.body {
            Body::Table => {
                let shard = Shard::from_parts(plan.shard(record.depth), padded, record.entries);
                verify::table(&shard, start, start, text!("the table of a shard holds {} items, but the list says {}"))?;
                Contents::Table(padded)
            }
            Body::List { count_bytes } => {
                let list = list(plan.key_bytes(), count_bytes);
                verify::list(list, start, plan, record)?;
                Contents::List(list)
            }
            Body::Copies { count_bytes } => {
                let list = list(plan.entry_key_bytes(), count_bytes);
                verify::copies_of_generation(list, start, plan, occurrences)?;
                Contents::Copies(list)
            }
        })
    }

    /// Skips all bodies of a partition. Fails as [`allow_directory`](Self::allow_directory) does.
    pub fn skip(&mut self, listing: &Listing) -> Result<(), SnapshotError> {
        let mut end = self.input.offset;
        self.input.skip(listing.rest)?;
        let params = self.header.fields;
        listing.generations(&params).try_for_each(|generation| {
            let (shards, copies) = generation.records.split_at(generation.records.partition_point(Record::is_shard));
            end = end.saturating_add(generation.bytes(shards));
            self.allow_directory(generation.depth, end)?;
            end = end.saturating_add(generation.bytes(copies));
            Ok(())
        })
    }

    /// Fails if a directory of this depth and those before it would take far more memory than the bytes up to `end`, where the shards
    /// end to which it leads. They must have arrived.
    pub fn allow_directory(&mut self, depth: u8, end: u64) -> Result<(), SnapshotError> {
        self.directories = self.directories.saturating_add(wide(size_of::<u32>()) << depth);
        if self.directories <= DIRECTORY_ALLOWANCE.max(end) {
            return Ok(());
        }
        let message = text!("shards of depth {} need a directory that is far larger than the filter");
        Err(SnapshotError::new(Kind::Shards, end, message, [depth.into()]))
    }
}

/// A validated body.
pub(crate) enum Contents<'a> {
    /// The table of a shard, with padding for lookups.
    Table(&'a [u8]),
    /// The items of a shard.
    List(ListView<'a>),
    /// The extra copies of a generation.
    Copies(ListView<'a>),
}

/// A validated list of a partition's records.
pub(crate) struct Listing {
    records: Vec<Record>,
    /// The number of the partition.
    pub partition: u64,
    /// The offset of the partition's section.
    start: u64,
    /// The length of all bodies, padding included.
    rest: u64,
    /// The number of items by the section's header, copies included.
    pub items: u64,
}

/// The records of a generation: at least one shard, and after all shards those of extra copies, if there are any.
pub(crate) struct ListedGeneration<'a> {
    pub plan: GenerationPlan,
    /// The global depth of the generation's directory.
    pub depth: u8,
    pub records: &'a [Record],
}

impl Listing {
    /// Decodes and validates the records of a partition. Its section begins at `start`.
    fn decode(params: &ElasticParams, list: &[u8], partition: u64, section: &Section, start: u64) -> Result<Self, SnapshotError> {
        let records = records(params, list, start + wide(SECTION_BYTES))?;
        let mut listing = Self { records, partition, start, rest: 0, items: section.items };
        let in_generation = |generation: ListedGeneration<'_>| generation.bytes(generation.records);
        listing.rest = listing.generations(params).map(in_generation).fold(0, u64::saturating_add);
        // If the sum saturated, adding the records overflows, so no length in the header is accepted.
        let expected = listing.rest.checked_add(wide(list.len()));
        if expected != Some(section.length) {
            let message = text!("partition {} takes {} bytes, but its header says {}");
            let expected = expected.unwrap_or(u64::MAX);
            return Err(SnapshotError::new(Kind::Shards, start, message, [partition, expected, section.length]));
        }
        // Each entry of a list counts 1 to 2³² − 1 copies.
        let entries = listing.records.iter().map(|record| record.entries).fold(0, u64::saturating_add);
        let lists = listing.records.iter().filter(|record| record.body != Body::Table);
        let listed = lists.map(|record| record.entries).fold(0, u64::saturating_add);
        let most = entries.saturating_add(listed.saturating_mul((u32::MAX - 1).into()));
        if (entries..=most).contains(&section.items) { Ok(listing) } else { Err(listing.wrong_items(entries)) }
    }

    /// Fails unless the bodies have as many items as the section's header says.
    pub fn check_items(&self, found: u64) -> Result<(), SnapshotError> {
        if found == self.items { Ok(()) } else { Err(self.wrong_items(found)) }
    }

    fn wrong_items(&self, found: u64) -> SnapshotError {
        let message = text!("partition {} holds {} items, but its header says {}");
        SnapshotError::new(Kind::Count, self.start, message, [self.partition, found, self.items])
    }

    /// Returns the generations in order.
    pub fn generations<'a>(&'a self, params: &'a ElasticParams) -> impl Iterator<Item = ListedGeneration<'a>> {
        let generations = self.records.chunk_by(|record, next| record.generation == next.generation);
        generations.map(move |records| ListedGeneration::of(params, records))
    }
}

impl<'a> ListedGeneration<'a> {
    // A call: programs go through the generations several times.
    #[inline(never)]
    fn of(params: &ElasticParams, records: &'a [Record]) -> Self {
        let plan = params.generation(records[0].generation);
        let depth = records.iter().map(|record| record.depth).max().unwrap_or(plan.min_depth);
        Self { plan, depth, records }
    }

    /// Returns the bytes of the bodies with these of the records.
    fn bytes(&self, records: &[Record]) -> u64 {
        records.iter().map(|record| record.padded_bytes(&self.plan)).fold(0, u64::saturating_add)
    }
}

/// Decodes and validates the records in `bytes`, which begin at offset `start`.
fn records(params: &ElasticParams, bytes: &[u8], start: u64) -> Result<Vec<Record>, SnapshotError> {
    let mut list = reserved(bytes.len() / RECORD_BYTES)?;
    let mut expected = ExpectedRecords { params, plan: params.generation(0), next: 0, may_have_copies: false };
    for (bytes, at) in bytes.chunks_exact(RECORD_BYTES).zip((start..).step_by(RECORD_BYTES)) {
        let record = Record::decode(bytes).ok_or(text!("a record is neither that of a table nor that of a list"));
        let record = record.and_then(|record| expected.accept(&record).map(|()| record));
        list.push(record.map_err(|message| SnapshotError::new(Kind::Shards, at, message, []))?);
    }
    if expected.next != STREAMS {
        let message = text!("the list of shards ends before every hash has a shard");
        return Err(SnapshotError::new(Kind::Shards, start + wide(bytes.len()), message, []));
    }
    Ok(list)
}

/// The number of streams, told apart by their first 32 bits.
const STREAMS: u64 = 1 << 32;

/// A check of a partition's records: in each generation, their prefixes cover all streams, in order, and extra copies follow.
struct ExpectedRecords<'a> {
    params: &'a ElasticParams,
    plan: GenerationPlan,
    /// The first stream without a shard so far.
    next: u64,
    /// True if the extra copies of the generation may follow.
    may_have_copies: bool,
}

impl ExpectedRecords<'_> {
    fn accept(&mut self, record: &Record) -> Result<(), Text> {
        let number = record.generation;
        if self.next == STREAMS && Some(number) == self.plan.number.checked_add(1) {
            (self.plan, self.next) = (self.params.generation(number), 0);
        }
        if number != self.plan.number {
            return Err(text!("the generation of a record is not the next one"));
        }
        if !record.is_shard() {
            let is_expected = mem::replace(&mut self.may_have_copies, false) && self.next == STREAMS && record.entries > 0;
            let is_valid = is_expected && record.depth == 0 && record.prefix == 0;
            return if is_valid { Ok(()) } else { Err(text!("the record of extra copies is not behind those of the shards")) };
        }
        if !(self.plan.min_depth..=self.plan.max_depth).contains(&record.depth) {
            return Err(text!("the record of a shard: its depth is out of range"));
        }
        let unit = STREAMS >> record.depth;
        if u64::from(record.prefix) * unit != self.next {
            return Err(text!("the record of a shard: its prefix is not the next one"));
        }
        match record.body {
            Body::Table if record.entries > wide(self.plan.whole.slots()) => {
                return Err(text!("the record of a shard: it has more items than slots"));
            }
            Body::List { .. } if !self.plan.allows_lists() => {
                return Err(text!("the record of a shard: it is a list, but the filter does not grow"));
            }
            Body::List { .. } if record.entries > u32::MAX.into() => {
                return Err(text!("the record of a shard: its list has 2³² items or more"));
            }
            _ => {}
        }
        self.next += unit;
        self.may_have_copies = true;
        Ok(())
    }
}
