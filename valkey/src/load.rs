//! Filters of which the chunks come one by one, as CF.LOADCHUNK brings them. Nobody sees them before they are complete.

use std::{
    collections::VecDeque,
    fmt,
    io::{self, Read},
    time::Instant,
};

use koel::{
    ElasticFilter, SnapshotError, SnapshotErrorKind,
    pieces::SnapshotExtent,
    redisbloom::{Loader, RedisBloomFilter},
};

use crate::{
    counts::{self, OfLoad},
    dump::{MAGIC, PREFIX_BYTES, Position},
    filter::{Filter, Limit, Refusal},
    plan::Plan,
    reply::{Failure, reserved},
    server::boxed,
};

/// The start of every snapshot of koel's.
const SNAPSHOT_MAGIC: [u8; 8] = *b"KOEL\r\n\x1a\n";

/// RedisBloom's first iterator, that of its header.
const FIRST: i64 = 1;

/// What has come of a filter.
pub(crate) struct Load {
    pub(crate) plan: Plan,
    pub(crate) deleted: u64,
    pub(crate) arriving: Arriving,
    /// When the last chunk came, or the value was read.
    last: Instant,
    _counted: OfLoad,
}

/// Chunks that have come.
pub(crate) enum Arriving {
    RedisBloom(Loader),
    Own(Pieces),
}

/// The bytes of a dump of koel's, as they came.
pub(crate) struct Pieces {
    pub(crate) moment: u64,
    pub(crate) bytes: VecDeque<Vec<u8>>,
    received: u64,
    /// Bytes of an imported filter, with the prefix, that come before the snapshot.
    before: u64,
    extent: SnapshotExtent,
}

/// Does a dump begin with this chunk?
pub(crate) fn is_first(iterator: i64, bytes: &[u8]) -> bool {
    iterator == FIRST || bytes.starts_with(&SNAPSHOT_MAGIC) || bytes.starts_with(&MAGIC)
}

impl Load {
    /// Takes the first chunk of a dump.
    pub(crate) fn start(iterator: i64, bytes: &[u8], plan: Plan, deleted: u64, limit: Limit) -> Result<Self, Failure> {
        let is_own = bytes.starts_with(&SNAPSHOT_MAGIC) || bytes.starts_with(&MAGIC);
        let arriving = if is_own {
            let mut pieces = Pieces::new();
            pieces.push(iterator, bytes, limit)?;
            Arriving::Own(pieces)
        } else {
            let loader = Loader::new(iterator.unsigned_abs(), bytes).map_err(|error| match error.kind() {
                SnapshotErrorKind::Length => Failure::new(format_args!("Invalid header: {error}")),
                _ => Failure::new(format_args!("Couldn't create filter! {error}")),
            })?;
            let (slots, most) = (loader.slots(), limit.bytes());
            if slots > most as u64 {
                counts::refused(Refusal::Limit, 1);
                return Err(Failure::new(format_args!(
                    "Couldn't create filter! It takes {slots} bytes, and koel.max-bytes is {most}; raise it with CONFIG SET"
                )));
            }
            Arriving::RedisBloom(loader)
        };
        Ok(Self::with(plan, deleted, arriving))
    }

    /// A load of which this has come.
    pub(crate) fn with(plan: Plan, deleted: u64, arriving: Arriving) -> Self {
        Self { plan, deleted, arriving, last: Instant::now(), _counted: OfLoad::new() }
    }

    /// The error of commands that need the whole filter. It says how far the load is, so that one that stalls can be told.
    pub(crate) fn is_arriving(&self) -> Failure {
        let seconds = self.last.elapsed().as_secs();
        let failure = |came: fmt::Arguments<'_>| {
            Failure::new(format_args!(
                "ERR a filter is being loaded into this key: {came} have come, the last ones {seconds} s ago; send the rest with \
                 CF.LOADCHUNK, or DEL the key"
            ))
        };
        match &self.arriving {
            Arriving::RedisBloom(loader) => {
                let received = loader.chunks().skip(1).map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
                failure(format_args!("{received} of {} bytes", loader.slots()))
            }
            Arriving::Own(pieces) => failure(format_args!("{} bytes", pieces.received)),
        }
    }

    /// What is left of one that was taken.
    pub(crate) fn nothing() -> Self {
        Self::with(crate::settings::default_plan(), 0, Arriving::Own(Pieces::new()))
    }

    /// Takes the next chunk. If it is refused, nothing has changed.
    pub(crate) fn push(&mut self, iterator: i64, bytes: &[u8], limit: Limit) -> Result<(), Failure> {
        match &mut self.arriving {
            Arriving::RedisBloom(loader) => loader.load(iterator.unsigned_abs(), bytes).map_err(|error| wrong_chunk(&error)),
            Arriving::Own(pieces) => pieces.push(iterator, bytes, limit),
        }?;
        self.last = Instant::now();
        Ok(())
    }

    pub(crate) fn is_complete(&self) -> bool {
        match &self.arriving {
            Arriving::RedisBloom(loader) => loader.is_complete(),
            Arriving::Own(pieces) => pieces.before <= pieces.received && pieces.extent.is_complete(),
        }
    }

    /// The filter.
    pub(crate) fn finish(self) -> Result<Filter, Failure> {
        match self.arriving {
            Arriving::RedisBloom(loader) => {
                let imported = loader.finish().map_err(|error| wrong_chunk(&error))?;
                Ok(Filter::with(self.plan, None, Some(boxed(imported)?), 0))
            }
            Arriving::Own(pieces) => {
                let (own, imported) = pieces.finish().map_err(|error| wrong_chunk(&error))?;
                let imported = imported.map(boxed).transpose()?;
                Ok(Filter::with(of_snapshot(&own, self.plan), Some(own), imported, self.deleted))
            }
        }
    }

    pub(crate) fn size_in_bytes(&self) -> usize {
        let behind = match &self.arriving {
            Arriving::RedisBloom(loader) => loader.size_in_bytes() - size_of::<Loader>(),
            Arriving::Own(pieces) => pieces.bytes.iter().map(|piece| size_of::<Vec<u8>>() + piece.capacity()).sum(),
        };
        size_of::<Self>() + behind
    }
}

fn wrong_chunk(error: &SnapshotError) -> Failure {
    Failure::new(format_args!("Couldn't load chunk! {error}"))
}

fn wrong_first_chunk(error: &SnapshotError) -> Failure {
    match error.kind() {
        SnapshotErrorKind::Magic
        | SnapshotErrorKind::Version
        | SnapshotErrorKind::HeaderChecksum
        | SnapshotErrorKind::Parameter => Failure::new(format_args!("Couldn't create filter! {error}")),
        _ => wrong_chunk(error),
    }
}

impl Pieces {
    fn new() -> Self {
        Self { moment: 0, bytes: VecDeque::new(), received: 0, before: 0, extent: SnapshotExtent::new() }
    }

    fn push(&mut self, iterator: i64, bytes: &[u8], limit: Limit) -> Result<(), Failure> {
        let length = bytes.len() as u64;
        let position = Position::of_iterator(iterator).ok_or_else(|| Failure::new("Invalid position"))?;
        let is_next = position.offset == self.received + length;
        if !is_next || self.received > 0 && position.moment != self.moment {
            // A damaged header is the better reason, and the one that RedisBloom gives.
            if self.received == 0 && bytes.starts_with(&SNAPSHOT_MAGIC) {
                self.extent.clone().push(bytes).map_err(|error| wrong_first_chunk(&error))?;
            }
            return Err(Failure::new(format_args!(
                "Invalid position: {iterator} does not follow byte {}; give the chunks of one dump in order, each once",
                self.received
            )));
        }
        let most = limit.bytes();
        if self.received + length > most as u64 {
            counts::refused(Refusal::Limit, 1);
            return Err(Failure::new(format_args!(
                "Couldn't load chunk! The filter takes more than the {most} bytes of koel.max-bytes; raise it with CONFIG SET"
            )));
        }
        let before = if self.received > 0 { self.before } else { before(bytes)? };
        // What is left of the imported filter, or all of the chunk.
        let skipped = usize::try_from(before.saturating_sub(self.received)).map_or(bytes.len(), |left| left.min(bytes.len()));
        let mut extent = self.extent.clone();
        let taken = extent.push(&bytes[skipped..]).map_err(|error| wrong_first_chunk(&error))?;
        if taken < bytes.len() - skipped {
            return Err(Failure::new("Couldn't load chunk! It goes on after the end of the snapshot"));
        }
        let mut piece = reserved(bytes.len())?;
        self.bytes.try_reserve(1).map_err(|_| Failure::out_of_memory())?;
        piece.extend_from_slice(bytes);
        self.bytes.push_back(piece);
        self.received += length;
        (self.moment, self.before, self.extent) = (position.moment, before, extent);
        Ok(())
    }

    /// Reads the filter. Each piece is freed as soon as it was read, so that memory does not double.
    fn finish(self) -> Result<(ElasticFilter, Option<RedisBloomFilter>), SnapshotError> {
        let has_both = self.before > 0;
        let mut bytes = Draining { pieces: self.bytes, read: 0 };
        let imported = if has_both {
            // The first piece has all of the prefix.
            bytes.read = PREFIX_BYTES;
            Some(RedisBloomFilter::read_dump((&mut bytes).take(self.before - PREFIX_BYTES as u64))?)
        } else {
            None
        };
        Ok((ElasticFilter::read_from(&mut bytes)?, imported))
    }
}

/// The plan of a filter that was read: the snapshot knows all but whether it may expand.
pub(crate) fn of_snapshot(own: &ElasticFilter, plan: Plan) -> Plan {
    let params = own.params();
    Plan {
        capacity: i64::try_from(params.capacity()).unwrap_or(i64::MAX),
        error_rate: params.false_positive_rate(),
        seed: i64::try_from(params.seed()).unwrap_or(i64::MAX),
        ..plan
    }
}

/// The bytes before the snapshot of a dump that begins with these.
fn before(bytes: &[u8]) -> Result<u64, Failure> {
    let Some(rest) = bytes.strip_prefix(&MAGIC) else { return Ok(0) };
    let Some(length) = rest.first_chunk() else {
        return Err(Failure::new(format_args!(
            "Invalid header: the first chunk has {} bytes, fewer than {PREFIX_BYTES}",
            bytes.len()
        )));
    };
    let length = u64::from_le_bytes(*length).checked_add(PREFIX_BYTES as u64);
    length.ok_or_else(|| Failure::new("Invalid header: the imported filter is longer than memory"))
}

/// Pieces that are freed as they are read.
struct Draining {
    pieces: VecDeque<Vec<u8>>,
    /// Bytes of the first piece that were read.
    read: usize,
}

impl Read for Draining {
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
