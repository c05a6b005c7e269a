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
        CHECKSUM_BYTES, Checksum, Fixed, HEADER_BYTES, Header, HeaderBytes, KEY_COUNT_BYTES, MAGIC, RECORD_BYTES, Record,
        SECTION_BYTES, Section, TRAILER_BYTES, checksum, list_bytes, list_entries, not_a_snapshot, padded, padded_keys,
        section_checksum, u64_at,
    },
    verify,
};
use crate::{
    bits::{PADDING, in_memory, index, wide},
    elastic::{ElasticParams, GenerationPlan, Shard, ShardParams, SmallListInSnapshot},
    filter::RawFilter,
    storage::{OutOfMemory, Owned, reserved},
    table::{
        TableParams as _,
        copies::{self, ClassKey, LongEntries},
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
        let Fixed { params, items, entries } = self.header.fields;
        let whole = params.table_bytes();
        self.read_bytes(whole, Checksum::update)?;
        let mut table = mem::take(&mut self.buffer);
        let listed = in_memory(copies::snapshot_bytes(entries));
        self.read_bytes(listed, Checksum::update)?;
        let end = self.trailer("table")?;
        table.resize(whole + PADDING, 0);
        let storage = Owned::from_vec(table).ok_or_else(|| OutOfMemory::of(whole + PADDING))?;
        let mut raw = RawFilter::from_parts(params, storage, items);
        let listed = copies::SnapshotCopies::new(&self.buffer);
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
        let len = match section.shards {
            0 if section.length > 0 => Some(KEY_COUNT_BYTES),
            shards => usize::try_from(shards).ok().and_then(|shards| shards.checked_mul(RECORD_BYTES)),
        };
        let Some(len) = len else {
            let message = "partition {} has {} shards, more than this machine can address";
            return Err(SnapshotError::new(Kind::Shards, start, message, [partition, section.shards]));
        };
        self.read_bytes(len, |_, _| {})?;
        let computed = section_checksum(&bytes, iter::once(&self.buffer), partition, self.header.checksum);
        verify_checksum(start, "header of a partition, or its list of shards,", stored, computed)?;
        self.checksum.update(&stored.to_le_bytes());
        Listing::decode(&self.header.fields, &self.buffer, partition, &section, start, stored)
    }

    /// Reads and validates the next table, that of a shard with these parameters. Returns it with padding for lookups.
    pub fn table(&mut self, params: ShardParams, record: &Record) -> Result<&[u8], SnapshotError> {
        let (start, bytes) = (self.offset, params.table_bytes());
        self.read_bytes(padded(bytes), |_, _| {})?;
        verify_checksum(start, "table of a shard", record.checksum, checksum(&self.buffer[..bytes], 0))?;
        if self.buffer[bytes..].iter().any(|&byte| byte != 0) {
            return Err(SnapshotError::new(Kind::Table, start + wide(bytes), "the bytes behind a table are not zero", []));
        }
        self.buffer.resize(bytes + PADDING, 0);
        verify::shard(&Shard::from_parts(params, &self.buffer, record.items.into()), start)?;
        Ok(&self.buffer)
    }

    /// Reads the lists of a partition, which follow its tables. Validates the key list; [`Lists::copies`] validates the extra
    /// copies.
    pub fn lists(&mut self, listing: &Listing) -> Result<Lists<'_>, SnapshotError> {
        let (start, plan) = (self.offset, self.header.fields.generation(0));
        let key_bytes = plan.class_keys().bytes();
        let len = list_bytes(listing.keys, key_bytes, listing.entries);
        self.buffer.clear();
        if len > 0 {
            // A list that is longer than the address space is longer than the input, too.
            self.read_bytes(in_memory(len), |_, _| {})?;
            let end = self.buffer.len() - CHECKSUM_BYTES;
            let stored = u64_at(&self.buffer, end);
            self.buffer.truncate(end);
            verify_checksum(start, "list of items or extra copies", stored, checksum(&self.buffer, listing.checksum))?;
        }
        let (keys, copies) = self.buffer.split_at(index(padded_keys(listing.keys, key_bytes)));
        let copies_at = start + wide(keys.len());
        let (keys, zeros) = keys.split_at(index(listing.keys) * key_bytes);
        let key_list = SmallListInSnapshot::new(keys, key_bytes);
        verify::key_list(key_list, start, &plan)?;
        if zeros.iter().any(|&byte| byte != 0) {
            let message = "the bytes behind a list of items are not zero";
            return Err(SnapshotError::new(Kind::Table, start + wide(keys.len()), message, []));
        }
        Ok(Lists { key_list, copies: LongEntries::new(copies), start: copies_at, extra_copies: listing.extra_copies })
    }

    /// Reads and validates all tables and lists of a partition. `occurrences` is as for [`Lists::copies`].
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

/// The lists behind the tables of a partition.
pub(crate) struct Lists<'a> {
    /// The key list, which is empty if there are shards.
    pub key_list: SmallListInSnapshot<'a>,
    copies: LongEntries<'a>,
    /// The offset of the entries in `copies`.
    start: u64,
    /// The number of extra copies by the section's header.
    extra_copies: u64,
}

impl<'a> Lists<'a> {
    /// Validates and returns the extra copies. For a generation's number and a key, `occurrences` returns how many copies of that
    /// item are in the tables or the key list.
    pub fn copies(self, occurrences: impl Fn(u8, ClassKey) -> u32) -> Result<LongEntries<'a>, SnapshotError> {
        verify::copies_of_generations(self.copies, self.start, self.extra_copies, occurrences)?;
        Ok(self.copies)
    }
}

/// A validated list of a partition's shards.
pub(crate) struct Listing {
    records: Vec<Record>,
    /// The length of all tables, padding included.
    pub table_bytes: u64,
    /// The number of items with extra copies.
    pub entries: u64,
    /// The number of extra copies.
    pub extra_copies: u64,
    /// The number of keys in the key list, which only a partition without shards has.
    pub keys: u64,
    /// The length of the lists behind the tables.
    list_bytes: u64,
    /// The checksum of the section.
    checksum: u64,
}

/// The shards of a generation: at least one.
pub(crate) struct ListedGeneration<'a> {
    pub plan: GenerationPlan,
    /// The global depth of the generation's directory.
    pub depth: u8,
    pub records: &'a [Record],
}

impl Listing {
    /// Decodes and validates the records, or the number of keys, of a partition. Its section begins at `start` and has this
    /// checksum.
    fn decode(
        params: &ElasticParams,
        list: &[u8],
        partition: u64,
        section: &Section,
        start: u64,
        checksum: u64,
    ) -> Result<Self, SnapshotError> {
        let may_be_unused = params.generation(0).begins_as_list();
        let is_unused = may_be_unused && section.shards == 0;
        let keys = if is_unused && !list.is_empty() { u64_at(list, 0) } else { 0 };
        let records = if is_unused { Vec::new() } else { records(params, list, start + wide(SECTION_BYTES))? };
        let found = records.iter().map(|record| u64::from(record.items)).sum::<u64>() + keys;
        let mut listing = Self { records, table_bytes: 0, entries: 0, extra_copies: 0, keys, list_bytes: 0, checksum };
        if may_be_unused && found == 0 && !list.is_empty() {
            return Err(SnapshotError::new(
                Kind::Shards,
                start,
                "partition {} has no items, but shards or a list for them",
                [partition],
            ));
        }
        if keys > u32::MAX.into() {
            let message = "partition {} has {} items in its list, but a list has at most {}";
            return Err(SnapshotError::new(Kind::Count, start, message, [partition, keys, u32::MAX.into()]));
        }
        let in_generation = |generation: ListedGeneration<'_>| {
            let tables = generation.records.iter().map(|record| wide(padded(generation.plan.shard(record.depth).table_bytes())));
            tables.fold(0, u64::saturating_add)
        };
        listing.table_bytes = listing.generations(params).map(in_generation).fold(0, u64::saturating_add);
        // If the sum of the tables saturated, adding the records overflows, so no length in the header is accepted.
        let known = listing.table_bytes.checked_add(wide(list.len()));
        let key_bytes = params.generation(0).class_keys().bytes();
        let entries = known.and_then(|known| list_entries(keys, key_bytes, section.length.checked_sub(known)?));
        let entries = entries.filter(|&entries| entries <= found);
        listing.entries = entries.unwrap_or(0);
        listing.list_bytes = list_bytes(keys, key_bytes, listing.entries);
        // Each entry belongs to an item in the tables or the key list, and counts 1 to 2³² − 1 copies.
        let extra_copies = section.items.checked_sub(found);
        let is_possible = |copies: &u64| (listing.entries..=listing.entries.saturating_mul(u32::MAX.into())).contains(copies);
        let Some(extra_copies) = extra_copies.filter(is_possible) else {
            let message = "partition {} holds {} items without extra copies, but its header says {} with them";
            return Err(SnapshotError::new(Kind::Count, start, message, [partition, found, section.items]));
        };
        listing.extra_copies = extra_copies;
        if entries.is_some() {
            return Ok(listing);
        }
        let message = "partition {} takes {} bytes without extra copies, but its header says {}";
        let least = known.map_or(u64::MAX, |known| known.saturating_add(list_bytes(keys, key_bytes, 0)));
        Err(SnapshotError::new(Kind::Shards, start, message, [partition, least, section.length]))
    }

    /// Returns the length of tables and lists.
    pub fn rest(&self) -> u64 {
        self.table_bytes.saturating_add(self.list_bytes)
    }

    /// Returns the number of items, extra copies included.
    pub fn items(&self) -> u64 {
        let found: u64 = self.records.iter().map(|record| u64::from(record.items)).sum();
        found.saturating_add(self.extra_copies).saturating_add(self.keys)
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
    let mut expected = ExpectedRecords { params, plan: params.generation(0), next: 0 };
    for (bytes, at) in bytes.chunks_exact(RECORD_BYTES).zip((start..).step_by(RECORD_BYTES)) {
        let record = Record::decode(bytes).ok_or("the record of a shard: its reserved bytes are not zero");
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

/// A check of a partition's records: in each generation, their prefixes cover all streams, in order.
struct ExpectedRecords<'a> {
    params: &'a ElasticParams,
    plan: GenerationPlan,
    /// The first stream without a shard so far.
    next: u64,
}

impl ExpectedRecords<'_> {
    fn accept(&mut self, record: &Record) -> Result<(), &'static str> {
        let number = record.generation;
        if usize::from(number) >= self.params.max_generations() {
            return Err("the record of a shard: its generation is beyond the last one that keeps the rate");
        }
        if self.next == STREAMS && Some(number) == self.plan.number.checked_add(1) {
            (self.plan, self.next) = (self.params.generation(number), 0);
        }
        if number != self.plan.number {
            return Err("the record of a shard: its generation is not the next one");
        }
        if !(self.plan.min_depth..=self.plan.max_depth).contains(&record.depth) {
            return Err("the record of a shard: its depth is out of range");
        }
        let unit = STREAMS >> record.depth;
        if u64::from(record.prefix) * unit != self.next {
            return Err("the record of a shard: its prefix is not the next one");
        }
        if index(record.items.into()) > self.plan.whole.slots() {
            return Err("the record of a shard: it has more items than slots");
        }
        self.next += unit;
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
