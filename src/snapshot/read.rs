//! Reading snapshots from untrusted bytes: one walk over their sections, whatever the bytes come from. Memory grows with the bytes
//! that arrive, not with what a header claims.

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
        CHECKSUM_BYTES, Checksum, Fixed, HEADER_BYTES, Header, HeaderBytes, MAGIC, NUMBER_BYTES, RECORD_BYTES, Record,
        SECTION_BYTES, Section, TRAILER_BYTES, checksum, list_bytes, list_entries, not_a_snapshot, number, padded, padded_keys,
        section_checksum,
    },
    verify,
};
use crate::{
    bits::{PADDING, in_memory, index, wide},
    elastic::{ElasticParams, FewInSnapshot, GenerationPlan, Shard, ShardParams},
    filter::RawFilter,
    storage::{OutOfMemory, Owned, reserved},
    table::{
        TableParams as _,
        copies::{self, ClassKey, LongEntries},
    },
};

/// The size of the first pieces in bytes; a forged header makes a reader allocate no more than this.
const LEAST: usize = 32 << 10;

/// The largest piece in bytes, small enough to stay in the cache for the checksum.
pub(super) const MOST: usize = 256 << 10;

/// The most bytes of directories that are allocated without as many bytes of input. Filters that have grown from uniform hashes
/// need far fewer.
const MOST_DIRECTORIES: u64 = 16 << 20;

/// Fills a buffer with the bytes from an offset on, or with fewer at the end of the input. Returns the number of bytes read.
pub(crate) type Fill<'a> = dyn FnMut(&mut [u8], u64) -> Result<usize, SnapshotError> + 'a;

/// The input of a reader. Streams are read in large pieces, so a call through a pointer costs nothing.
pub(crate) enum Source<'a> {
    Slice(&'a [u8]),
    #[cfg_attr(not(any(feature = "std", feature = "serde")), expect(dead_code, reason = "everything is in memory"))]
    Stream(&'a mut Fill<'a>),
}

impl Source<'_> {
    /// As [`Fill`].
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

/// Reads from a reader.
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

/// A snapshot of which the header has been read. It is never read further than its end.
pub(crate) struct Reading<'a, F = ElasticParams> {
    source: Source<'a>,
    pub header: Header<F>,
    /// The length of the snapshot, if it follows from the header.
    length: Option<u64>,
    /// What the trailer has: of the table, or of the sections' checksums.
    checksum: Checksum,
    /// Bytes that have arrived.
    pub offset: u64,
    /// Bytes of directories that were allowed.
    directories: u64,
    /// What was read last.
    buffer: Vec<u8>,
}

impl<'a, F> Reading<'a, F> {
    /// What follows a header, in a snapshot of this length if that is known.
    fn after(header: Header<F>, source: Source<'a>, length: Option<u64>) -> Self {
        let checksum = Checksum::new(header.checksum);
        Self { source, header, length, checksum, offset: wide(HEADER_BYTES), directories: 0, buffer: Vec::new() }
    }

    /// Reads this many bytes into the buffer, with room for padding, and passes them on in pieces.
    fn next(&mut self, len: usize, mut pass: impl FnMut(&mut Checksum, &[u8])) -> Result<(), SnapshotError> {
        let Self { source, buffer, checksum, .. } = self;
        buffer.clear();
        while buffer.len() < len {
            let start = buffer.len();
            let end = len.min(start + start.clamp(LEAST, MOST));
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
            pass(checksum, &buffer[start..]);
        }
        Ok(())
    }

    /// Reads the trailer, the checksum of this part. Returns the length of the snapshot.
    fn trailer(&mut self, part: &'static str) -> Result<u64, SnapshotError> {
        let at = self.offset;
        let mut stored = [0; TRAILER_BYTES];
        let arrived = self.source.fill(&mut stored, at)?;
        self.offset += wide(arrived);
        if arrived < TRAILER_BYTES {
            return Err(too_short(self.offset, at + wide(TRAILER_BYTES)));
        }
        check_sum(at, part, u64::from_le_bytes(stored), self.checksum.finish())?;
        Ok(self.offset)
    }
}

impl<'a> Reading<'a, Fixed> {
    /// Reads the header.
    pub fn start(mut source: Source<'a>) -> Result<Self, SnapshotError> {
        let header = Header::<Fixed>::decode(&header_bytes(&mut source)?)?;
        let length = header.fields.snapshot_bytes();
        Ok(Self::after(header, source, Some(length)))
    }

    /// Reads table, further copies and trailer. The buffer becomes the table's memory. Also returns the length of the snapshot.
    pub(super) fn filter(mut self) -> Result<(RawFilter, u64), SnapshotError> {
        let Fixed { params, len, entries } = self.header.fields;
        let whole = params.table_bytes();
        self.next(whole, Checksum::update)?;
        let mut table = mem::take(&mut self.buffer);
        let listed = in_memory(copies::listed_bytes(entries));
        self.next(listed, Checksum::update)?;
        let end = self.trailer("table")?;
        table.resize(whole + PADDING, 0);
        let storage = Owned::from_vec(table).ok_or_else(|| OutOfMemory::of(whole + PADDING))?;
        let mut raw = RawFilter::from_parts(params, storage, len);
        let listed = copies::Listed::new(&self.buffer);
        verify::table(&raw, listed)?;
        raw.set_listed(listed)?;
        Ok((raw, end))
    }
}

impl<'a> Reading<'a> {
    /// Reads the header.
    pub fn start(mut source: Source<'a>) -> Result<Self, SnapshotError> {
        let header = Header::<ElasticParams>::decode(&header_bytes(&mut source)?)?;
        Ok(Self::after(header, source, None))
    }

    /// Reads and validates what the next section, that of the partition with this number, says before its tables.
    pub fn listing(&mut self, partition: u64) -> Result<Listing, SnapshotError> {
        let start = self.offset;
        self.next(SECTION_BYTES, |_, _| {})?;
        let mut bytes = [0; SECTION_BYTES];
        bytes.copy_from_slice(&self.buffer);
        let (section, stored) = Section::decode(&bytes);
        let len = match section.shards {
            0 if section.length > 0 => Some(NUMBER_BYTES),
            shards => usize::try_from(shards).ok().and_then(|shards| shards.checked_mul(RECORD_BYTES)),
        };
        let Some(len) = len else {
            let words = "partition {} has {} shards, more than this machine can address";
            return Err(SnapshotError::new(Kind::Shards, start, words, [partition, section.shards]));
        };
        self.next(len, |_, _| {})?;
        let computed = section_checksum(&bytes, iter::once(&self.buffer), partition, self.header.checksum);
        check_sum(start, "list of shards", stored, computed)?;
        self.checksum.update(&stored.to_le_bytes());
        Listing::decode(&self.header.fields, &self.buffer, partition, &section, start, stored)
    }

    /// The next table, with its padding, of a shard with these parameters.
    pub fn table(&mut self, params: ShardParams, record: &Record) -> Result<&[u8], SnapshotError> {
        let (start, bytes) = (self.offset, params.table_bytes());
        self.next(padded(bytes), |_, _| {})?;
        check_sum(start, "table of a shard", record.checksum, checksum(&self.buffer[..bytes], 0))?;
        if self.buffer[bytes..].iter().any(|&byte| byte != 0) {
            return Err(SnapshotError::new(Kind::Table, start + wide(bytes), "the bytes behind a table are not zero", []));
        }
        self.buffer.resize(bytes + PADDING, 0);
        verify::shard(&Shard::from_parts(params, &self.buffer, index(record.items.into())), start)?;
        Ok(&self.buffer)
    }

    /// The lists of a partition, which follow its tables: the keys of its items, if it has no shards, verified; and its further
    /// copies, which are [not yet](Lists::copies).
    pub fn lists(&mut self, listing: &Listing) -> Result<Lists<'_>, SnapshotError> {
        let (start, plan) = (self.offset, self.header.fields.generation(0));
        let key_bytes = plan.keys().bytes();
        let len = list_bytes(listing.few, key_bytes, listing.entries);
        self.buffer.clear();
        if len > 0 {
            // What is longer than memory is longer than the bytes.
            self.next(in_memory(len), |_, _| {})?;
            let end = self.buffer.len() - CHECKSUM_BYTES;
            let stored = number(&self.buffer, end);
            self.buffer.truncate(end);
            check_sum(start, "list of items or copies", stored, checksum(&self.buffer, listing.checksum))?;
        }
        let (keys, copies) = self.buffer.split_at(index(padded_keys(listing.few, key_bytes)));
        let copies_at = start + wide(keys.len());
        let (keys, zeros) = keys.split_at(index(listing.few) * key_bytes);
        let few = FewInSnapshot::new(keys, key_bytes);
        verify::few(few, start, &plan)?;
        if zeros.iter().any(|&byte| byte != 0) {
            return Err(SnapshotError::new(Kind::Table, start + wide(keys.len()), "the bytes behind a list are not zero", []));
        }
        Ok(Lists { few, copies: LongEntries::new(copies), start: copies_at, further: listing.further })
    }

    /// Reads and verifies all tables of a partition, and its lists. `occurrences` is as for [`Lists::copies`].
    pub fn verify_partition(
        &mut self,
        listing: &Listing,
        occurrences: impl Fn(u8, ClassKey) -> u32,
    ) -> Result<(), SnapshotError> {
        let params = self.header.fields;
        for generation in listing.generations(&params) {
            for record in generation.records {
                self.table(generation.plan.shard(record.depth), record)?;
            }
        }
        self.lists(listing)?.copies(occurrences).map(|_| ())
    }

    /// Goes on so many bytes further. The owner of a stream must seek there.
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

    /// Fails if a directory of this depth, after those before it, would take far more memory than the bytes that have arrived.
    /// To be called when the tables that it leads to have.
    pub fn allow_directory(&mut self, depth: u8) -> Result<(), SnapshotError> {
        self.directories = self.directories.saturating_add(wide(size_of::<u32>()) << depth);
        if self.directories <= MOST_DIRECTORIES.max(self.offset) {
            return Ok(());
        }
        let words = "shards of depth {} need a directory that is far larger than the filter";
        Err(SnapshotError::new(Kind::Shards, self.offset, words, [depth.into()]))
    }

    /// Reads the trailer. Returns the length of the snapshot.
    pub fn finish(mut self) -> Result<u64, SnapshotError> {
        self.trailer("end")
    }

    /// Reads the trailer, behind which there must be nothing.
    #[cfg(feature = "std")]
    pub fn finish_at_end(mut self) -> Result<(), SnapshotError> {
        let end = self.trailer("end")?;
        nothing_follows(&mut self.source, end, "the input goes on after the snapshot's end")
    }
}

/// Validates a snapshot of a growing filter in a file of this many bytes, read from its start, as far as opening a view of it does:
/// the header, the length, and the lists of shards. Seeks past the tables, and has the list of one partition in memory at a time.
#[cfg(feature = "std")]
pub(super) fn check_lists(mut file: &File, len: u64) -> Result<(), SnapshotError> {
    let mut fill = stream(file);
    let mut reading = Reading::<ElasticParams>::start(Source::Stream(&mut fill))?;
    let params = reading.header.fields;
    for partition in 0..wide(params.partitions()) {
        let listing = reading.listing(partition)?;
        let end = reading.offset.saturating_add(listing.rest());
        if end > len {
            return Err(too_short(len, end));
        }
        let moved = file.seek(SeekFrom::Start(end));
        moved.map_err(|error| SnapshotError::io(end, "the file cannot be read further", error))?;
        reading.skip(listing.rest())?;
        listing.generations(&params).try_for_each(|generation| reading.allow_directory(generation.depth))?;
    }
    reading.finish_at_end()
}

/// What follows the tables of a partition.
pub(crate) struct Lists<'a> {
    pub few: FewInSnapshot<'a>,
    copies: LongEntries<'a>,
    /// Where the copies begin, and how many there should be.
    start: u64,
    further: u64,
}

impl<'a> Lists<'a> {
    /// The further copies, verified. `occurrences` counts copies in the tables, or in the list: those of what a key stands for in
    /// the generation with this number.
    pub fn copies(self, occurrences: impl Fn(u8, ClassKey) -> u32) -> Result<LongEntries<'a>, SnapshotError> {
        verify::copies_of_generations(self.copies, self.start, self.further, occurrences)?;
        Ok(self.copies)
    }
}

/// A validated list of a partition's shards.
pub(crate) struct Listing {
    records: Vec<Record>,
    /// The length of all tables with what they are filled up with.
    pub table_bytes: u64,
    /// The number of items that have further copies, and the number of these.
    pub entries: u64,
    pub further: u64,
    /// The number of different items of a partition without shards.
    pub few: u64,
    /// The length of the lists.
    list_bytes: u64,
    /// Of the section.
    checksum: u64,
}

/// The shards of a generation, which are never none.
pub(crate) struct ListedGeneration<'a> {
    pub plan: GenerationPlan,
    /// The depth of a directory for them.
    pub depth: u8,
    pub records: &'a [Record],
}

impl Listing {
    /// Validates the list of a partition, of which the section begins at `start` and has this checksum.
    fn decode(
        params: &ElasticParams,
        list: &[u8],
        partition: u64,
        section: &Section,
        start: u64,
        checksum: u64,
    ) -> Result<Self, SnapshotError> {
        let may_be_unused = params.generation(0).begins_unused();
        let is_unused = may_be_unused && section.shards == 0;
        let few = if is_unused && !list.is_empty() { number(list, 0) } else { 0 };
        let records = if is_unused { Vec::new() } else { records(params, list, start + wide(SECTION_BYTES))? };
        let found = records.iter().map(|record| u64::from(record.items)).sum::<u64>() + few;
        let mut listing = Self { records, table_bytes: 0, entries: 0, further: 0, few, list_bytes: 0, checksum };
        if may_be_unused && found == 0 && !list.is_empty() {
            return Err(SnapshotError::new(
                Kind::Shards,
                start,
                "partition {} has shards or a list, but no items in them",
                [partition],
            ));
        }
        if few > u32::MAX.into() {
            let words = "partition {} has {} items in a list, more than there can be";
            return Err(SnapshotError::new(Kind::Count, start, words, [partition, few]));
        }
        let in_generation = |generation: ListedGeneration<'_>| {
            let tables = generation.records.iter().map(|record| wide(padded(generation.plan.shard(record.depth).table_bytes())));
            tables.fold(0, u64::saturating_add)
        };
        listing.table_bytes = listing.generations(params).map(in_generation).fold(0, u64::saturating_add);
        // A sum that has reached the greatest number is no length, whatever the header says.
        let known = listing.table_bytes.checked_add(wide(list.len()));
        let key_bytes = params.generation(0).keys().bytes();
        let entries = known.and_then(|known| list_entries(few, key_bytes, section.length.checked_sub(known)?));
        let entries = entries.filter(|&entries| entries <= found);
        listing.entries = entries.unwrap_or(0);
        listing.list_bytes = list_bytes(few, key_bytes, listing.entries);
        // Each entry is for an item in the tables or in the list, with at most 2³² − 1 copies.
        let further = section.items.checked_sub(found);
        let is_possible = |further: &u64| (listing.entries..=listing.entries.saturating_mul(u32::MAX.into())).contains(further);
        let Some(further) = further.filter(is_possible) else {
            let words = "the shards of partition {} hold {} items, but its header says {}";
            return Err(SnapshotError::new(Kind::Count, start, words, [partition, found, section.items]));
        };
        listing.further = further;
        if entries.is_some() {
            return Ok(listing);
        }
        let words = "partition {} has {} bytes, but its header says {}";
        Err(SnapshotError::new(Kind::Shards, start, words, [partition, known.unwrap_or(u64::MAX), section.length]))
    }

    /// The length of tables and lists.
    pub fn rest(&self) -> u64 {
        self.table_bytes.saturating_add(self.list_bytes)
    }

    /// The number of items, further copies included.
    pub fn items(&self) -> u64 {
        let found: u64 = self.records.iter().map(|record| u64::from(record.items)).sum();
        found.saturating_add(self.further).saturating_add(self.few)
    }

    /// The generations, in order.
    pub fn generations(&self, params: &ElasticParams) -> impl Iterator<Item = ListedGeneration<'_>> {
        self.records.chunk_by(|one, next| one.generation == next.generation).map(|records| {
            let plan = params.generation(records[0].generation);
            let depth = records.iter().map(|record| record.depth).max().unwrap_or(plan.least_depth);
            ListedGeneration { plan, depth, records }
        })
    }
}

/// Decodes and validates the records of a list, which begins at this offset.
fn records(params: &ElasticParams, bytes: &[u8], start: u64) -> Result<Vec<Record>, SnapshotError> {
    let mut list = reserved(bytes.len() / RECORD_BYTES)?;
    let mut expected = ExpectedRecords { params, plan: params.generation(0), next: 0 };
    for (bytes, at) in bytes.chunks_exact(RECORD_BYTES).zip((start..).step_by(RECORD_BYTES)) {
        let record = Record::decode(bytes).ok_or("the record of a shard: its reserved bytes are not zero");
        let record = record.and_then(|record| expected.accept(&record).map(|()| record));
        list.push(record.map_err(|words| SnapshotError::new(Kind::Shards, at, words, []))?);
    }
    if expected.next != WHOLE {
        let words = "the list of shards ends before every hash has one";
        return Err(SnapshotError::new(Kind::Shards, start + wide(bytes.len()), words, []));
    }
    Ok(list)
}

/// All streams, in units of those that have their first 32 bits in common.
const WHOLE: u64 = 1 << 32;

/// Which shards may come next in the list of a partition: those of a generation have all streams, in order.
struct ExpectedRecords<'a> {
    params: &'a ElasticParams,
    plan: GenerationPlan,
    /// The first stream that has no shard yet.
    next: u64,
}

impl ExpectedRecords<'_> {
    fn accept(&mut self, record: &Record) -> Result<(), &'static str> {
        let number = record.generation;
        if usize::from(number) >= self.params.most_generations() {
            return Err("the record of a shard: its generation is one that could not keep the rate");
        }
        if self.next == WHOLE && Some(number) == self.plan.number.checked_add(1) {
            (self.plan, self.next) = (self.params.generation(number), 0);
        }
        if number != self.plan.number {
            return Err("the record of a shard: its generation is not the one that follows");
        }
        if !(self.plan.least_depth..=self.plan.most_depth).contains(&record.depth) {
            return Err("the record of a shard: its depth is out of range");
        }
        let unit = WHOLE >> record.depth;
        if u64::from(record.prefix) * unit != self.next {
            return Err("the record of a shard: its prefix is not the one that follows");
        }
        if index(record.items.into()) > self.plan.whole.slots() {
            return Err("the record of a shard: it has more items than slots");
        }
        self.next += unit;
        Ok(())
    }
}

// What every reader checks.

/// Reads a header.
pub(super) fn header_bytes(source: &mut Source<'_>) -> Result<HeaderBytes, SnapshotError> {
    let mut header = [0; HEADER_BYTES];
    let arrived = source.fill(&mut header, 0)?;
    if arrived < HEADER_BYTES { Err(header_too_short(&header[..arrived])) } else { Ok(header) }
}

pub(super) fn header_too_short(bytes: &[u8]) -> SnapshotError {
    if !MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]) {
        return not_a_snapshot();
    }
    // The expected length is in the header, which is incomplete.
    let given = wide(bytes.len());
    let words = "the bytes end too early: there are {}, and the header alone has {}";
    SnapshotError::new(Kind::Length, given, words, [given, wide(HEADER_BYTES)])
}

pub(crate) fn too_short(given: u64, expected: u64) -> SnapshotError {
    SnapshotError::new(Kind::Length, given, "the bytes end too early: there are {}, and there should be {}", [given, expected])
}

pub(super) fn too_long(given: u64, expected: u64) -> SnapshotError {
    let words = "the snapshot ends here, and {} more bytes follow it";
    SnapshotError::new(Kind::TrailingBytes, expected, words, [given - expected])
}

/// Fails if the source goes on.
#[cfg(feature = "std")]
pub(super) fn nothing_follows(source: &mut Source<'_>, end: u64, words: &'static str) -> Result<(), SnapshotError> {
    if source.fill(&mut [0], end)? == 0 { Ok(()) } else { Err(SnapshotError::new(Kind::TrailingBytes, end, words, [])) }
}

/// Compares the checksum of a part of the snapshot that is stored at this offset, or belongs to what begins there, with the
/// computed one.
pub(super) fn check_sum(at: u64, part: &'static str, stored: u64, computed: u64) -> Result<(), SnapshotError> {
    if stored == computed { Ok(()) } else { Err(SnapshotError::altered(Kind::BodyChecksum, at, part, stored, computed)) }
}
