//! Filters that are loaded in chunks by CF.LOADCHUNK. They are invisible until they are complete.

use std::{
    collections::VecDeque,
    fmt,
    io::{self, Read},
    mem,
    time::Instant,
};

use koel::{
    ElasticFilter, SnapshotError, SnapshotErrorKind,
    pieces::SnapshotExtent,
    redisbloom::{Loader, RedisBloomFilter},
};

use crate::{
    counts::{self, LoadCount},
    dump::{MAGIC, PREFIX_BYTES, Position},
    explain::unreadable,
    filter::Filter,
    plan::Plan,
    refusal::{Limit, Refusal},
    reply::{Failure, reserved},
    server::boxed,
};

/// The first bytes of every snapshot of koel's.
const SNAPSHOT_MAGIC: [u8; 8] = *b"KOEL\r\n\x1a\n";

/// RedisBloom's first iterator, which belongs to the header.
const HEADER_ITERATOR: i64 = 1;

/// The most bytes of an imported filter in a dump beside its slots: headers of 16 bytes for at most 2¹⁶ sub-filters and 2¹⁶ pieces of
/// 16 MiB, and the filter's.
const MAX_IMPORTED_HEADERS: u64 = (2 << 20) + 128;

/// A filter that is being loaded.
pub(crate) struct Load {
    pub(crate) plan: Plan,
    pub(crate) deleted: u64,
    pub(crate) chunks: Chunks,
    /// The time when the last chunk arrived, or the value was read.
    last_arrival: Instant,
    _counted: LoadCount,
}

/// The chunks that have arrived.
pub(crate) enum Chunks {
    RedisBloom(Loader),
    Own(Pieces),
}

/// The chunks of a dump of koel's, as they arrived.
pub(crate) struct Pieces {
    pub(crate) tag: u64,
    pub(crate) bytes: VecDeque<Vec<u8>>,
    received: u64,
    /// The offset of the snapshot. An imported filter with its prefix comes before it, or nothing.
    snapshot_start: u64,
    extent: SnapshotExtent,
}

/// Returns true if this chunk begins a dump.
pub(crate) fn is_first(iterator: i64, bytes: &[u8]) -> bool {
    iterator == HEADER_ITERATOR || bytes.starts_with(&SNAPSHOT_MAGIC) || bytes.starts_with(&MAGIC)
}

impl Load {
    /// Takes the first chunk of a dump.
    pub(crate) fn start(iterator: i64, bytes: &[u8], plan: Plan, deleted: u64, limit: Limit) -> Result<Self, Failure> {
        let is_own = bytes.starts_with(&SNAPSHOT_MAGIC) || bytes.starts_with(&MAGIC);
        let chunks = if is_own {
            let mut pieces = Pieces::new();
            pieces.push(iterator, bytes, limit)?;
            Chunks::Own(pieces)
        } else {
            let loader = Loader::new(iterator.unsigned_abs(), bytes).map_err(|error| match error.kind() {
                SnapshotErrorKind::Length => unreadable("Invalid header: ", error),
                _ => unreadable("Couldn't create filter! ", error),
            })?;
            let (slots, most) = (loader.slots(), limit.bytes());
            if slots > most as u64 {
                counts::count_refusals(Refusal::Limit { needed: slots }, 1);
                return Err(Failure::new(format_args!(
                    "Couldn't create filter! It takes {slots} bytes, and koel.max-bytes is {most}; raise it with CONFIG SET"
                )));
            }
            Chunks::RedisBloom(loader)
        };
        Ok(Self::from_chunks(plan, deleted, chunks))
    }

    /// Creates a load from the chunks that have arrived.
    pub(crate) fn from_chunks(plan: Plan, deleted: u64, chunks: Chunks) -> Self {
        Self { plan, deleted, chunks, last_arrival: Instant::now(), _counted: LoadCount::new() }
    }

    /// Returns the error for commands that need the whole filter. It states the progress, so that a stalled load is noticed.
    pub(crate) fn incomplete(&self) -> Failure {
        let seconds = self.last_arrival.elapsed().as_secs();
        let failure = |progress: fmt::Arguments<'_>| {
            Failure::new(format_args!(
                "ERR a filter is being loaded into this key: {progress} have arrived, the last ones {seconds} s ago; send the rest with \
                 CF.LOADCHUNK, or DEL the key"
            ))
        };
        match &self.chunks {
            Chunks::RedisBloom(loader) => {
                let received = loader.chunks().skip(1).map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
                failure(format_args!("{received} of {} bytes", loader.slots()))
            }
            Chunks::Own(pieces) => failure(format_args!("{} bytes", pieces.received)),
        }
    }

    /// Returns true if this is the next chunk of a dump of koel's. It may begin like a first one, where a snapshot follows an imported
    /// filter.
    pub(crate) fn expects(&self, iterator: i64, bytes: &[u8]) -> bool {
        matches!(&self.chunks, Chunks::Own(pieces) if pieces.received > 0 && pieces.position(iterator, bytes).is_some())
    }

    /// Takes the next chunk. An error changes nothing.
    pub(crate) fn push(&mut self, iterator: i64, bytes: &[u8], limit: Limit) -> Result<(), Failure> {
        match &mut self.chunks {
            Chunks::RedisBloom(loader) => {
                let iterator = u64::try_from(iterator).map_err(|_| Failure::new("Invalid position"))?;
                loader.load(iterator, bytes).map_err(chunk_error)
            }
            Chunks::Own(pieces) => pieces.push(iterator, bytes, limit),
        }?;
        self.last_arrival = Instant::now();
        Ok(())
    }

    pub(crate) fn is_complete(&self) -> bool {
        match &self.chunks {
            Chunks::RedisBloom(loader) => loader.is_complete(),
            Chunks::Own(pieces) => pieces.snapshot_start <= pieces.received && pieces.extent.is_complete(),
        }
    }

    /// Returns the filter. Takes the chunks away, so that their memory is freed while they are read. They have fewer bytes than the
    /// filter takes, so it may exceed the limit although they do not.
    pub(crate) fn finish(&mut self, limit: Limit) -> Result<Filter, Failure> {
        match mem::replace(&mut self.chunks, Chunks::Own(Pieces::new())) {
            Chunks::RedisBloom(loader) => {
                let imported = loader.finish().map_err(chunk_error)?;
                Ok(Filter::from_parts(self.plan, None, Some(boxed(imported)?), self.deleted))
            }
            Chunks::Own(pieces) => {
                let (own, imported) = pieces.finish().map_err(chunk_error)?;
                check_bytes(own.charged_bytes() as u64, limit)?;
                check_bytes(imported.as_ref().map_or(0, |imported| imported.slots() as u64), limit)?;
                let imported = imported.map(boxed).transpose()?;
                Ok(Filter::from_parts(plan_of_snapshot(&own, self.plan), Some(own), imported, self.deleted))
            }
        }
    }

    pub(crate) fn size_in_bytes(&self) -> usize {
        let heap_bytes = match &self.chunks {
            Chunks::RedisBloom(loader) => loader.size_in_bytes() - size_of::<Loader>(),
            Chunks::Own(pieces) => pieces.bytes.iter().map(|piece| size_of::<Vec<u8>>() + piece.capacity()).sum(),
        };
        size_of::<Self>() + heap_bytes
    }
}

/// Fails if a filter that takes at least these bytes exceeds the limit.
fn check_bytes(needed: u64, limit: Limit) -> Result<(), Failure> {
    let most = limit.bytes();
    if needed <= most as u64 {
        return Ok(());
    }
    counts::count_refusals(Refusal::Limit { needed }, 1);
    Err(Failure::new(format_args!(
        "Couldn't load chunk! The filter takes {needed} bytes or more, and koel.max-bytes is {most}; raise it with CONFIG SET"
    )))
}

fn chunk_error(error: SnapshotError) -> Failure {
    unreadable("Couldn't load chunk! ", error)
}

fn first_chunk_error(error: SnapshotError) -> Failure {
    match error.kind() {
        SnapshotErrorKind::Magic
        | SnapshotErrorKind::Version
        | SnapshotErrorKind::HeaderChecksum
        | SnapshotErrorKind::Parameter => unreadable("Couldn't create filter! ", error),
        _ => chunk_error(error),
    }
}

impl Pieces {
    fn new() -> Self {
        Self { tag: 0, bytes: VecDeque::new(), received: 0, snapshot_start: 0, extent: SnapshotExtent::new() }
    }

    /// Returns the position of a chunk, if the chunk is the next one.
    fn position(&self, iterator: i64, bytes: &[u8]) -> Option<Position> {
        let position = Position::from_iterator(iterator)?;
        let is_next = position.offset == self.received + bytes.len() as u64;
        (is_next && (self.received == 0 || position.tag == self.tag)).then_some(position)
    }

    fn push(&mut self, iterator: i64, bytes: &[u8], limit: Limit) -> Result<(), Failure> {
        let length = bytes.len() as u64;
        if length == 0 {
            // To a reader, it would be the end.
            return Err(Failure::new("Couldn't load chunk! It is empty; give the chunks of one dump in order, each once"));
        }
        let Some(position) = self.position(iterator, bytes) else {
            // Reports a damaged header rather than the position: that helps more, and RedisBloom does so, too.
            if self.received == 0 && bytes.starts_with(&SNAPSHOT_MAGIC) {
                self.extent.clone().push(bytes).map_err(first_chunk_error)?;
            }
            return Err(Failure::new(format_args!(
                "Invalid position: {iterator} does not follow byte {}; give the chunks of one dump in order, each once",
                self.received
            )));
        };
        let snapshot_start = if self.received > 0 { self.snapshot_start } else { find_snapshot(bytes)? };
        // Each part counts alone. The slots of the imported one are counted when it is complete.
        check_bytes(snapshot_start.saturating_sub(MAX_IMPORTED_HEADERS), limit)?;
        check_bytes((self.received + length).saturating_sub(snapshot_start), limit)?;
        // The part of this chunk that belongs to the imported filter.
        let skipped =
            usize::try_from(snapshot_start.saturating_sub(self.received)).map_or(bytes.len(), |left| left.min(bytes.len()));
        let mut extent = self.extent.clone();
        let taken = extent.push(&bytes[skipped..]).map_err(first_chunk_error)?;
        if taken < bytes.len() - skipped {
            return Err(Failure::new("Couldn't load chunk! It goes on after the end of the snapshot"));
        }
        let mut piece = reserved(bytes.len())?;
        self.bytes.try_reserve(1).map_err(|_| Failure::out_of_memory())?;
        piece.extend_from_slice(bytes);
        self.bytes.push_back(piece);
        self.received += length;
        (self.tag, self.snapshot_start, self.extent) = (position.tag, snapshot_start, extent);
        Ok(())
    }

    /// Reads the filter. Frees each piece after reading it, so that memory does not double.
    fn finish(self) -> Result<(ElasticFilter, Option<RedisBloomFilter>), SnapshotError> {
        let has_both = self.snapshot_start > 0;
        let mut bytes = FreeingReader { pieces: self.bytes, read: 0 };
        let imported = if has_both {
            // The first piece contains the whole prefix.
            bytes.read = PREFIX_BYTES;
            Some(RedisBloomFilter::read_dump((&mut bytes).take(self.snapshot_start - PREFIX_BYTES as u64))?)
        } else {
            None
        };
        Ok((ElasticFilter::read_from(&mut bytes)?, imported))
    }
}

/// Returns the plan of a filter that was read. The snapshot determines everything except whether the filter may expand.
pub(crate) fn plan_of_snapshot(own: &ElasticFilter, plan: Plan) -> Plan {
    let params = own.params();
    Plan {
        capacity: i64::try_from(params.capacity()).unwrap_or(i64::MAX),
        error_rate: params.false_positive_rate(),
        seed: i64::try_from(params.seed()).unwrap_or(i64::MAX),
        ..plan
    }
}

/// Returns the offset of the snapshot in a dump whose first chunk is `bytes`.
fn find_snapshot(bytes: &[u8]) -> Result<u64, Failure> {
    let Some(rest) = bytes.strip_prefix(&MAGIC) else { return Ok(0) };
    let Some(length) = rest.first_chunk() else {
        return Err(Failure::new(format_args!(
            "Invalid header: the first chunk has {} bytes, fewer than {PREFIX_BYTES}",
            bytes.len()
        )));
    };
    let length = u64::from_le_bytes(*length).checked_add(PREFIX_BYTES as u64);
    length.ok_or_else(|| Failure::new("Invalid header: the imported filter has 2^64 bytes or more"))
}

/// A reader of pieces that frees each one after reading it.
struct FreeingReader {
    pieces: VecDeque<Vec<u8>>,
    /// The bytes of the first piece that have been read.
    read: usize,
}

impl Read for FreeingReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Some(piece) = self.pieces.front() else { return Ok(0) };
        let taken = bytes.len().min(piece.len() - self.read);
        bytes[..taken].copy_from_slice(&piece[self.read..self.read + taken]);
        self.read += taken;
        if self.read == piece.len() {
            self.pieces.pop_front();
            self.read = 0;
        }
        Ok(taken)
    }
}
