//! Reading snapshots from untrusted bytes: one walk over their sections, for any source. Memory grows with the bytes that arrive,
//! not with what a header claims.

use alloc::vec::Vec;
use core::{iter, mem};
#[cfg(feature = "std")]
use std::{
    fs::File,
    io::{ErrorKind, Read, Seek as _, SeekFrom},
};

use super::{
    SnapshotError, SnapshotErrorKind as Kind,
    format::{
        Body, Checksum, Fixed, HEADER_BYTES, Header, HeaderBytes, MAGIC, RECORD_BYTES, Record, SECTION_BYTES, Section,
        TRAILER_BYTES, checksum, not_a_snapshot, section_checksum,
    },
    verify,
};
use crate::{
    bits::{PADDING, in_memory, wide},
    elastic::{ElasticParams, GenerationPlan, Shard},
    filter::RawFilter,
    storage::{OutOfMemory, Owned, reserved},
    table::{
        TableParams as _,
        copies::{ClassKey, SnapshotCopies},
        list::ListView,
    },
};

/// The length of the first piece in bytes, which bounds what a forged length makes a reader allocate.
const FIRST_PIECE: usize = 32 << 10;

/// The length of the largest piece in bytes, small enough to stay in the cache for the checksum.
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

/// A snapshot whose header has been read. Nothing is read beyond its end.
pub(crate) struct Reading<'a, F = ElasticParams> {
    source: Source<'a>,
    pub header: Header<F>,
    /// The length of the snapshot, if the header determines it.
    length: Option<u64>,
    /// The checksum to compare with the trailer: of a fixed filter's table and copies, or of the sections' checksums.
    checksum: Checksum,
    /// The offset of the next byte.
    pub offset: u64,
    /// The bytes of all directories that were allowed.
    directories: u64,
    /// The part that was read last.
    buffer: Vec<u8>,
}

impl<'a, F> Reading<'a, F> {
    /// Starts reading behind a header. `length` is that of the snapshot, if known.
    fn after_header(header: Header<F>, source: Source<'a>, length: Option<u64>) -> Self {
        let checksum = Checksum::new(header.checksum);
        Self { source, header, length, checksum, offset: wide(HEADER_BYTES), directories: 0, buffer: Vec::new() }
    }

    /// Reads `len` bytes into the buffer, with room for padding, and passes each piece to `on_piece`.
    fn read_bytes(&mut self, len: usize, mut on_piece: impl FnMut(&mut Checksum, &[u8])) -> Result<(), SnapshotError> {
        let Self { source, buffer, checksum, .. } = self;
        buffer.clear();
        while buffer.len() < len {
            let start = buffer.len();
            let end = len.min(start + start.clamp(FIRST_PIECE, MAX_PIECE));
            if end + PADDING > buffer.capacity() {
                let enough = len.min(end.max(start + start / 4)) + PADDING;
                buffer.try_reserve_exact(enough - start).map_err(|_| SnapshotError::from(OutOfMemory::of(enough)))?;
            }
            buffer.resize(end, 0);
            let arrived = source.fill(&mut buffer[start..], self.offset)?;
            self.offset += wide(arrived);
            if start + arrived < end {
                let missing = wide(len - start - arrived);
                let expected = self.length.unwrap_or(self.offset.saturating_add(missing));
                return Err(too_short(self.offset, expected));
            }
            on_piece(checksum, &buffer[start..]);
        }
        Ok(())
    }

    /// Reads the trailer and compares it with the checksum; `part` names what that covers. Returns the length of the snapshot.
    fn trailer(&mut self, part: &'static str) -> Result<u64, SnapshotError> {
        let at = self.offset;
        let mut stored = [0; TRAILER_BYTES];
        let arrived = self.source.fill(&mut stored, at)?;
        self.offset += wide(arrived);
        if arrived < TRAILER_BYTES {
            return Err(too_short(self.offset, at + wide(TRAILER_BYTES)));
        }
        verify_checksum(at, part, u64::from_le_bytes(stored), self.checksum.finish())?;
        Ok(self.offset)
    }
}

impl<'a> Reading<'a, Fixed> {
    /// Reads the header.
    pub fn start(mut source: Source<'a>) -> Result<Self, SnapshotError> {
        let header = Header::<Fixed>::decode(&header_bytes(&mut source)?)?;
        let length = header.fields.snapshot_bytes();
        Ok(Self::after_header(header, source, Some(length)))
    }

    /// Reads the table, the extra copies and the trailer. The buffer becomes the table's memory. Also returns the length of the
    /// snapshot.
    pub(super) fn into_filter(mut self) -> Result<(RawFilter, u64), SnapshotError> {
        let Fixed { params, items, listed_bytes } = self.header.fields;
        let whole = params.table_bytes();
        self.read_bytes(whole, Checksum::update)?;
        let mut table = mem::take(&mut self.buffer);
        self.read_bytes(in_memory(listed_bytes), Checksum::update)?;
        let end = self.trailer("table")?;
        table.resize(whole + PADDING, 0);
        let storage = Owned::from_vec(table).ok_or_else(|| OutOfMemory::of(whole + PADDING))?;
        let mut raw = RawFilter::from_parts(params, storage, items);
        let listed = SnapshotCopies::new(&self.buffer, raw.keys());
        verify::table(&raw, listed)?;
        raw.set_listed(listed)?;
        Ok((raw, end))
    }
}

impl<'a> Reading<'a> {
    /// Reads the header.
    pub fn start(mut source: Source<'a>) -> Result<Self, SnapshotError> {
        let header = Header::<ElasticParams>::decode(&header_bytes(&mut source)?)?;
        Ok(Self::after_header(header, source, None))
    }

    /// Reads and validates the next section, that of `partition`, up to its tables.
    pub fn listing(&mut self, partition: u64) -> Result<Listing, SnapshotError> {
        let start = self.offset;
        self.read_bytes(SECTION_BYTES, |_, _| {})?;
        let mut bytes = [0; SECTION_BYTES];
        bytes.copy_from_slice(&self.buffer);
        let (section, stored) = Section::decode(&bytes);
        let len = usize::try_from(section.records).ok().and_then(|records| records.checked_mul(RECORD_BYTES));
        let Some(len) = len else {
            let message = "partition {} has {} records, more than this machine can address";
            return Err(SnapshotError::new(Kind::Shards, start, message, [partition, section.records]));
        };
        self.read_bytes(len, |_, _| {})?;
        let computed = section_checksum(&bytes, iter::once(&self.buffer), partition, self.header.checksum);
        verify_checksum(start, "header of a partition, or its list of shards,", stored, computed)?;
        self.checksum.update(&stored.to_le_bytes());
        Listing::decode(&self.header.fields, &self.buffer, partition, &section, start)
    }

    /// Reads the body of the next record into the buffer, and validates its checksum and its padding.
    fn body(&mut self, plan: &GenerationPlan, record: &Record, part: &'static str) -> Result<(), SnapshotError> {
        // A body that is longer than the address space is longer than the input, too.
        let (start, bytes) = (self.offset, in_memory(record.body_bytes(plan)));
        self.read_bytes(in_memory(record.padded_bytes(plan)), |_, _| {})?;
        verify_checksum(start, part, record.checksum, checksum(&self.buffer[..bytes], 0))?;
        if self.buffer[bytes..].iter().any(|&byte| byte != 0) {
            let message = "the bytes behind a table or a list are not zero";
            return Err(SnapshotError::new(Kind::Table, start + wide(bytes), message, []));
        }
        self.buffer.truncate(bytes);
        Ok(())
    }

    /// Reads and validates the next body, the table of a shard. Returns it with padding for lookups.
    pub fn table(&mut self, plan: &GenerationPlan, record: &Record) -> Result<&[u8], SnapshotError> {
        let start = self.offset;
        self.body(plan, record, "table of a shard")?;
        self.buffer.resize(self.buffer.len() + PADDING, 0);
        verify::shard(&Shard::from_parts(plan.shard(record.depth), &self.buffer, record.entries), start)?;
        Ok(&self.buffer)
    }

    /// Reads and validates the next body, the list of a shard's items with counts of this many bytes.
    pub fn list(&mut self, plan: &GenerationPlan, record: &Record, count_bytes: u8) -> Result<ListView<'_>, SnapshotError> {
        let start = self.offset;
        self.body(plan, record, "list of a shard's items")?;
        let list = ListView::new(&self.buffer, plan.key_bytes(), count_bytes, in_memory(record.entries));
        verify::list(list, start, plan, record)?;
        Ok(list)
    }

    /// Reads and validates the next body, the extra copies of a generation with counts of this many bytes. For a class key,
    /// `occurrences` returns how many copies of that item are in a table.
    pub fn copies(
        &mut self,
        plan: &GenerationPlan,
        record: &Record,
        count_bytes: u8,
        occurrences: impl Fn(ClassKey) -> u32,
    ) -> Result<ListView<'_>, SnapshotError> {
        let start = self.offset;
        self.body(plan, record, "list of extra copies")?;
        let list = ListView::new(&self.buffer, plan.entry_key_bytes(), count_bytes, in_memory(record.entries));
        verify::copies_of_generation(list, start, plan, occurrences)?;
        Ok(list)
    }

    /// Reads and validates all bodies of a partition. `occurrences` is as for [`copies`](Self::copies), with the number of the
    /// generation.
    pub fn verify_partition(
        &mut self,
        listing: &Listing,
        occurrences: impl Fn(u8, ClassKey) -> u32,
    ) -> Result<(), SnapshotError> {
        let (params, mut found) = (self.header.fields, 0_u64);
        let total = |list: ListView<'_>| list.iter().map(|(_, count)| u64::from(count)).fold(0, u64::saturating_add);
        for ListedGeneration { plan, records, .. } in listing.generations(&params) {
            for record in records {
                found = found.saturating_add(match record.body {
                    Body::Table => self.table(&plan, record).map(|_| record.entries)?,
                    Body::List { count_bytes } => total(self.list(&plan, record, count_bytes)?),
                    Body::Copies { count_bytes } => {
                        total(self.copies(&plan, record, count_bytes, |key| occurrences(plan.number, key))?)
                    }
                });
            }
        }
        listing.check_items(found)
    }

    /// Skips `len` bytes. If the source is a stream, its owner must seek past them.
    pub fn skip(&mut self, len: u64) -> Result<(), SnapshotError> {
        if let Source::Slice(left) = &mut self.source {
            let Some(rest) = usize::try_from(len).ok().and_then(|len| left.get(len..)) else {
                let end = self.offset + wide(left.len());
                return Err(too_short(end, self.offset.saturating_add(len)));
            };
            *left = rest;
        }
        self.offset += len;
        Ok(())
    }

    /// Fails if a directory of this depth and those before it would take far more memory than the bytes that have arrived. Call it
    /// after the tables to which the directory leads.
    pub fn allow_directory(&mut self, depth: u8) -> Result<(), SnapshotError> {
        self.directories = self.directories.saturating_add(wide(size_of::<u32>()) << depth);
        if self.directories <= DIRECTORY_ALLOWANCE.max(self.offset) {
            return Ok(());
        }
        let message = "shards of depth {} need a directory that is far larger than the filter";
        Err(SnapshotError::new(Kind::Shards, self.offset, message, [depth.into()]))
    }

    /// Reads the trailer. Returns the length of the snapshot.
    pub fn finish(mut self) -> Result<u64, SnapshotError> {
        self.trailer("end")
    }

    /// Reads the trailer, and fails if anything follows it.
    #[cfg(feature = "std")]
    pub fn finish_at_end(mut self) -> Result<(), SnapshotError> {
        let end = self.trailer("end")?;
        expect_end_of_input(&mut self.source, end, "the input goes on after the snapshot's end")
    }
}

/// Validates a snapshot of a growing filter in a file of `len` bytes, as far as opening a view does: the header, the length and the
/// lists of shards. Reads from the start of the file, seeks past the tables, and has the list of one partition in memory at a time.
#[cfg(feature = "std")]
pub(super) fn check_lists(mut file: &File, len: u64) -> Result<(), SnapshotError> {
    let mut fill = stream(file);
    let mut reading = Reading::<ElasticParams>::start(Source::Stream(&mut fill))?;
    let params = reading.header.fields;
    for partition in 0..wide(params.partitions()) {
        let listing = reading.listing(partition)?;
        let end = reading.offset.saturating_add(listing.rest);
        if end > len {
            return Err(too_short(len, end));
        }
        let moved = file.seek(SeekFrom::Start(end));
        moved.map_err(|error| SnapshotError::io(end, "the file cannot be read further", error))?;
        reading.skip(listing.rest)?;
        listing.generations(&params).try_for_each(|generation| reading.allow_directory(generation.depth))?;
    }
    reading.finish_at_end()
}

/// A validated list of a partition's records.
pub(crate) struct Listing {
    records: Vec<Record>,
    /// The number of the partition, and the offset of its section.
    partition: u64,
    start: u64,
    /// The length of all bodies, padding included.
    pub rest: u64,
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
        let in_generation = |ListedGeneration { plan, records, .. }: ListedGeneration<'_>| {
            records.iter().map(|record| record.padded_bytes(&plan)).fold(0, u64::saturating_add)
        };
        listing.rest = listing.generations(params).map(in_generation).fold(0, u64::saturating_add);
        // If the sum saturated, adding the records overflows, so no length in the header is accepted.
        let expected = listing.rest.checked_add(wide(list.len()));
        if expected != Some(section.length) {
            let message = "partition {} takes {} bytes, but its header says {}";
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
        let message = "partition {} holds {} items, but its header says {}";
        SnapshotError::new(Kind::Count, self.start, message, [self.partition, found, self.items])
    }

    /// Returns the generations in order.
    pub fn generations(&self, params: &ElasticParams) -> impl Iterator<Item = ListedGeneration<'_>> {
        self.records.chunk_by(|one, next| one.generation == next.generation).map(|records| {
            let plan = params.generation(records[0].generation);
            let depth = records.iter().map(|record| record.depth).max().unwrap_or(plan.min_depth);
            ListedGeneration { plan, depth, records }
        })
    }
}

/// Decodes and validates the records in `bytes`, which begin at offset `start`.
fn records(params: &ElasticParams, bytes: &[u8], start: u64) -> Result<Vec<Record>, SnapshotError> {
    let mut list = reserved(bytes.len() / RECORD_BYTES)?;
    let mut expected = ExpectedRecords { params, plan: params.generation(0), next: 0, may_have_copies: false };
    for (bytes, at) in bytes.chunks_exact(RECORD_BYTES).zip((start..).step_by(RECORD_BYTES)) {
        let record = Record::decode(bytes).ok_or("a record is neither that of a table nor that of a list");
        let record = record.and_then(|record| expected.accept(&record).map(|()| record));
        list.push(record.map_err(|message| SnapshotError::new(Kind::Shards, at, message, []))?);
    }
    if expected.next != STREAMS {
        let message = "the list of shards ends before every hash has a shard";
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
    fn accept(&mut self, record: &Record) -> Result<(), &'static str> {
        let number = record.generation;
        if self.next == STREAMS && Some(number) == self.plan.number.checked_add(1) {
            (self.plan, self.next) = (self.params.generation(number), 0);
        }
        if number != self.plan.number {
            return Err("the generation of a record is not the next one");
        }
        if !record.is_shard() {
            let is_expected = mem::replace(&mut self.may_have_copies, false) && self.next == STREAMS && record.entries > 0;
            let is_valid = is_expected && record.depth == 0 && record.prefix == 0;
            return if is_valid { Ok(()) } else { Err("the record of extra copies is not behind those of the shards") };
        }
        if !(self.plan.min_depth..=self.plan.max_depth).contains(&record.depth) {
            return Err("the record of a shard: its depth is out of range");
        }
        let unit = STREAMS >> record.depth;
        if u64::from(record.prefix) * unit != self.next {
            return Err("the record of a shard: its prefix is not the next one");
        }
        match record.body {
            Body::Table if record.entries > wide(self.plan.whole.slots()) => {
                return Err("the record of a shard: it has more items than slots");
            }
            Body::List { .. } if !self.plan.allows_lists() => {
                return Err("the record of a shard: it is a list, but the filter does not grow");
            }
            Body::List { .. } if record.entries > u32::MAX.into() => {
                return Err("the record of a shard: its list has 2³² items or more");
            }
            _ => {}
        }
        self.next += unit;
        self.may_have_copies = true;
        Ok(())
    }
}

// Checks that readers share.

/// Reads the bytes of a header.
pub(super) fn header_bytes(source: &mut Source<'_>) -> Result<HeaderBytes, SnapshotError> {
    let mut header = [0; HEADER_BYTES];
    let arrived = source.fill(&mut header, 0)?;
    if arrived < HEADER_BYTES { Err(header_too_short(&header[..arrived])) } else { Ok(header) }
}

pub(super) fn header_too_short(bytes: &[u8]) -> SnapshotError {
    if !MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]) {
        return not_a_snapshot();
    }
    // The header is incomplete, so the length of the snapshot is unknown.
    let given = wide(bytes.len());
    let message = "the bytes end too early: there are {}, and the header alone has {}";
    SnapshotError::new(Kind::Length, given, message, [given, wide(HEADER_BYTES)])
}

pub(crate) fn too_short(given: u64, expected: u64) -> SnapshotError {
    SnapshotError::new(Kind::Length, given, "the bytes end too early: there are {}, and there should be {}", [given, expected])
}

pub(super) fn too_long(given: u64, expected: u64) -> SnapshotError {
    let message = "the snapshot ends here, and {} more bytes follow it";
    SnapshotError::new(Kind::TrailingBytes, expected, message, [given - expected])
}

/// Fails if the source has more bytes.
#[cfg(feature = "std")]
pub(super) fn expect_end_of_input(source: &mut Source<'_>, end: u64, message: &'static str) -> Result<(), SnapshotError> {
    if source.fill(&mut [0], end)? == 0 { Ok(()) } else { Err(SnapshotError::new(Kind::TrailingBytes, end, message, [])) }
}

/// Compares the stored checksum of a part of the snapshot with the computed one. The error has the offset `at`: that of the
/// checksum or of the part.
pub(super) fn verify_checksum(at: u64, part: &'static str, stored: u64, computed: u64) -> Result<(), SnapshotError> {
    if stored == computed { Ok(()) } else { Err(SnapshotError::altered(Kind::BodyChecksum, at, part, stored, computed)) }
}
