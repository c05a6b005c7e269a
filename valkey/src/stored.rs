//! The value of a key, and how the server saves, loads, copies and frees it.

use std::io::{self, Read};

use koel::{
    ElasticFilter,
    redisbloom::{Loader, RedisBloomFilter},
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    dump::{MAX_CHUNK_BYTES, Position},
    explain::unreadable,
    filter::Filter,
    load::{Chunks, Load, plan_of_snapshot},
    plan::{Plan, Word, check_expansion, check_rate},
    refusal::Limit,
    reply::{Cause, Failure},
    server::{Digest, Handle, Loading, Rewriting, Saving, ServerBytes, Value, boxed},
};

/// The value of a key: a filter, or one that is being loaded.
pub(crate) enum Stored {
    Filter(Filter),
    /// Invisible until its last chunk has arrived.
    Load(Box<Load>),
}

/// The length of a piece in bytes, on the stack.
const PIECE_BYTES: usize = 64 << 10;

/// The largest filter, in bytes, that is copied while the server defragments. The tables of larger filters have pages of their own.
const MAX_DEFRAGMENTED_BYTES: usize = 64 << 10;

static HANDLE: Handle = Handle::new();

// The first number of a saved value: flags for the parts of a filter, or the kind of a load.
const OWN: u64 = 1;
const IMPORTED: u64 = 2;
const LOADING_OWN: u64 = 4;
const LOADING_REDIS_BLOOM: u64 = 8;

impl Value for Stored {
    const NAME: &'static std::ffi::CStr = c"koel-cuck";
    const VERSION: i32 = 1;

    fn handle() -> &'static Handle {
        &HANDLE
    }

    fn save(&self, stream: &mut Saving) -> io::Result<()> {
        match self {
            Self::Filter(filter) => {
                stream.number(if filter.own.is_some() { OWN } else { 0 } | if filter.imported.is_some() { IMPORTED } else { 0 });
                save_plan(stream, &filter.plan, filter.deleted);
                if let Some(own) = &filter.own {
                    stream.number(own.snapshot_bytes());
                    let mut pieces = PieceWriter::new(|piece| stream.bytes(piece));
                    own.write_to(&mut pieces)?;
                    pieces.finish();
                }
                if let Some(imported) = &filter.imported {
                    save_chunks(stream, 0, imported.chunks());
                }
            }
            Self::Load(load) => match &load.chunks {
                Chunks::Own(pieces) => {
                    stream.number(LOADING_OWN);
                    save_plan(stream, &load.plan, load.deleted);
                    stream.number(pieces.tag);
                    save_chunks(stream, pieces.tag, (0..).zip(&pieces.bytes));
                }
                Chunks::RedisBloom(loader) => {
                    stream.number(LOADING_REDIS_BLOOM);
                    save_plan(stream, &load.plan, load.deleted);
                    save_chunks(stream, 0, loader.chunks());
                }
            },
        }
        Ok(())
    }

    fn load(stream: &mut Loading, version: i32) -> Result<Self, Failure> {
        if version != Self::VERSION {
            return Err(Failure::new(format_args!(
                "its format has version {version}, and this release reads version {}; a newer koel wrote it: install that version of \
                 koel-valkey, or a later one",
                Self::VERSION
            ))
            .because(Cause::Version));
        }
        let kind = stream.number().ok_or_else(truncated)?;
        let (plan, deleted) = load_plan(stream, kind & (OWN | LOADING_OWN) != 0)?;
        match kind {
            LOADING_OWN => load_pieces(stream, plan, deleted),
            LOADING_REDIS_BLOOM => {
                let chunks = Chunks::RedisBloom(load_chunks(stream)?);
                Ok(Self::Load(boxed(Load::from_chunks(plan, deleted, chunks))?))
            }
            _ if kind & !(OWN | IMPORTED) == 0 && kind != 0 => {
                let own = (kind & OWN != 0).then(|| load_own(stream)).transpose()?;
                let imported = (kind & IMPORTED != 0).then(|| boxed(load_imported(stream)?)).transpose()?;
                let plan = own.as_ref().map_or(plan, |own| plan_of_snapshot(own, plan));
                Ok(Self::Filter(Filter::from_parts(plan, own, imported, deleted)))
            }
            _ => Err(Failure::new(format_args!(
                "its kind is {kind}, which this release of koel-valkey does not know; install a later one"
            ))),
        }
    }

    fn rewrite(&self, commands: &mut Rewriting<'_>) -> io::Result<()> {
        match self {
            Self::Filter(filter) => {
                if let Some(imported) = filter.imported_alone() {
                    let options = filter.plan.chunk_options(filter.deleted);
                    imported.chunks().for_each(|(iterator, bytes)| emit(commands, iterator, bytes, iterator == 1, &options));
                    return Ok(());
                }
                let options = filter.plan.snapshot_options(filter.deleted);
                let mut offset = 0;
                let mut pieces = PieceWriter::new(|piece| {
                    let is_first = offset == 0;
                    offset += piece.len() as u64;
                    emit(commands, offset, piece, is_first, &options);
                });
                filter.write_dump(&mut pieces)?;
                pieces.finish();
            }
            Self::Load(load) => match &load.chunks {
                Chunks::RedisBloom(loader) => {
                    let options = load.plan.chunk_options(load.deleted);
                    loader.chunks().for_each(|(iterator, bytes)| emit(commands, iterator, bytes, iterator == 1, &options));
                }
                Chunks::Own(pieces) => {
                    let options = load.plan.snapshot_options(load.deleted);
                    let mut offset = 0;
                    for piece in &pieces.bytes {
                        let is_first = offset == 0;
                        offset += piece.len() as u64;
                        let iterator = Position { tag: pieces.tag, offset }.iterator().unsigned_abs();
                        emit(commands, iterator, piece, is_first, &options);
                    }
                }
            },
        }
        Ok(())
    }

    fn size_in_bytes(&self) -> usize {
        match self {
            Self::Filter(filter) => size_of::<Self>() - size_of::<Filter>() + filter.size_in_bytes(),
            Self::Load(load) => size_of::<Self>() + load.size_in_bytes(),
        }
    }

    fn digest(&self, digest: &mut Digest) {
        let mut number = |number: u64| digest.bytes(&number.to_le_bytes());
        match self {
            Self::Filter(filter) => {
                [0, filter.deleted, filter.plan.expansion.unsigned_abs()].into_iter().for_each(&mut number);
                let mut checksum = Checksum(0);
                let mut pieces = PieceWriter::new(|piece| checksum.add(piece));
                if let Some(own) = &filter.own {
                    // Writing to a `PieceWriter` cannot fail.
                    let _ = own.write_to(&mut pieces);
                }
                pieces.finish();
                let imported = filter.imported.iter().flat_map(|imported| imported.chunks());
                imported.for_each(|(_, bytes)| checksum.add(bytes));
                number(checksum.0);
            }
            Self::Load(load) => {
                let mut checksum = Checksum(1);
                match &load.chunks {
                    Chunks::RedisBloom(loader) => loader.chunks().for_each(|(_, bytes)| checksum.add(bytes)),
                    Chunks::Own(pieces) => pieces.bytes.iter().for_each(|bytes| checksum.add(bytes)),
                }
                [1, checksum.0].into_iter().for_each(number);
            }
        }
    }

    fn free_effort(&self) -> usize {
        match self {
            Self::Filter(filter) => 1 + (filter.size_in_bytes() >> 16),
            Self::Load(load) => 1 + (load.size_in_bytes() >> 16),
        }
    }

    fn copy(&self) -> Option<Self> {
        match self {
            Self::Filter(filter) => filter.copy().map(Self::Filter),
            // The original continues with chunks that the copy would miss.
            Self::Load(_) => None,
        }
    }

    fn defragment(&mut self) {
        if let Self::Filter(filter) = self
            && filter.size_in_bytes() <= MAX_DEFRAGMENTED_BYTES
            && let Some(copy) = filter.copy()
        {
            *self = Self::Filter(copy);
        }
    }
}

fn truncated() -> Failure {
    Failure::new("it is cut off")
}

/// Saves the numbers of the plan, the number of removed items, and their checksum.
fn save_plan(stream: &mut Saving, plan: &Plan, deleted: u64) {
    let Plan { capacity, expansion, error_rate, seed } = *plan;
    let signed = [capacity, expansion, seed].map(i64::unsigned_abs);
    let mut checksum = Checksum(0);
    for number in signed.into_iter().chain([error_rate.to_bits(), deleted]) {
        checksum.add(&number.to_le_bytes());
        stream.number(number);
    }
    stream.number(checksum.0);
}

/// Loads what [`save_plan`] has saved, and verifies the checksum, which anybody can compute, and the numbers that are not in a snapshot.
fn load_plan(stream: &mut Loading, has_own_part: bool) -> Result<(Plan, u64), Failure> {
    let mut checksum = Checksum(0);
    let mut numbers = [0; 5];
    for number in &mut numbers {
        *number = stream.number().ok_or_else(truncated)?;
        checksum.add(&number.to_le_bytes());
    }
    if stream.number() != Some(checksum.0) {
        return Err(Failure::new("the checksum of its plan differs"));
    }
    let [capacity, expansion, seed] = [0, 1, 2].map(|at| i64::try_from(numbers[at]).unwrap_or(i64::MAX));
    let error_rate = f64::from_bits(numbers[3]);
    check_expansion(expansion)?;
    if !has_own_part {
        check_rate(error_rate)?;
    }
    Ok((Plan { capacity, expansion, error_rate, seed }, numbers[4]))
}

/// Saves each chunk as a 1, its iterator and its bytes. A 0 follows, and a checksum of all chunks, seeded with `seed`.
fn save_chunks(stream: &mut Saving, seed: u64, chunks: impl Iterator<Item = (u64, impl AsRef<[u8]>)>) {
    let mut checksum = Checksum(seed);
    for (iterator, bytes) in chunks {
        stream.number(1);
        stream.number(iterator);
        checksum.add(&iterator.to_le_bytes());
        for piece in bytes.as_ref().chunks(MAX_CHUNK_BYTES) {
            checksum.add(piece);
        }
        stream.bytes(bytes.as_ref());
    }
    stream.number(0);
    stream.number(checksum.0);
}

/// Calls `act` with each saved chunk, then verifies the checksum.
fn each_chunk(stream: &mut Loading, seed: u64, mut act: impl FnMut(u64, &[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut checksum = Checksum(seed);
    loop {
        match stream.number().ok_or_else(truncated)? {
            0 => break,
            1 => {}
            other => {
                return Err(Failure::new(format_args!(
                    "{other} is stored where there should be 1, before a chunk, or 0, at the end"
                )));
            }
        }
        let iterator = stream.number().ok_or_else(truncated)?;
        let bytes = stream.bytes().ok_or_else(truncated)?;
        checksum.add(&iterator.to_le_bytes());
        for piece in bytes.chunks(MAX_CHUNK_BYTES) {
            checksum.add(piece);
        }
        act(iterator, &bytes)?;
    }
    match stream.number() {
        Some(stored) if stored == checksum.0 => Ok(()),
        _ => Err(Failure::new("its checksum differs")),
    }
}

fn load_chunks(stream: &mut Loading) -> Result<Loader, Failure> {
    let mut loader: Option<Loader> = None;
    each_chunk(stream, 0, |iterator, bytes| {
        match &mut loader {
            Some(loader) => loader.load(iterator, bytes),
            None => Loader::new(iterator, bytes).map(|new| loader = Some(new)),
        }
        .map_err(|error| unreadable("", error))
    })?;
    loader.ok_or_else(truncated)
}

fn load_imported(stream: &mut Loading) -> Result<RedisBloomFilter, Failure> {
    load_chunks(stream)?.finish().map_err(|error| unreadable("", error))
}

fn load_pieces(stream: &mut Loading, plan: Plan, deleted: u64) -> Result<Stored, Failure> {
    let tag = stream.number().ok_or_else(truncated)?;
    let (mut load, mut offset): (Option<Load>, u64) = (None, 0);
    each_chunk(stream, tag, |_, bytes| {
        offset = offset.saturating_add(bytes.len() as u64);
        let iterator = Position { tag, offset }.iterator();
        match &mut load {
            Some(load) => load.push(iterator, bytes, Limit::None),
            None => Load::start(iterator, bytes, plan, deleted, Limit::None).map(|new| load = Some(new)),
        }
    })?;
    Ok(Stored::Load(boxed(load.ok_or_else(truncated)?)?))
}

fn load_own(stream: &mut Loading) -> Result<ElasticFilter, Failure> {
    let left = stream.number().ok_or_else(truncated)?;
    let mut reader = PieceReader { stream, left, piece: None, read: 0 };
    let own = ElasticFilter::read_from(&mut reader).map_err(|error| unreadable("", error))?;
    if reader.left > 0 || reader.piece.is_some_and(|piece| reader.read < piece.len()) {
        return Err(Failure::new("it goes on after the end of the snapshot"));
    }
    Ok(own)
}

/// Emits a chunk, with the options if it is the first.
fn emit<const N: usize>(commands: &mut Rewriting<'_>, iterator: u64, bytes: &[u8], is_first: bool, options: &[Word; N]) {
    let iterator = i64::try_from(iterator).unwrap_or(i64::MAX);
    if is_first {
        commands.emit(c"CF.LOADCHUNK", iterator, bytes, options.each_ref().map(Word::as_ref));
    } else {
        commands.emit(c"CF.LOADCHUNK", iterator, bytes, []);
    }
}

/// A checksum of pieces. It depends on how bytes are divided into pieces, so they must always be divided in the same way.
struct Checksum(u64);

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }
}

/// A writer that passes bytes on in pieces of [`PIECE_BYTES`]; only the last piece may be shorter. It uses only the stack, because
/// saving a filter must work when no memory is left.
struct PieceWriter<F> {
    pass_on: F,
    piece: [u8; PIECE_BYTES],
    len: usize,
}

impl<F: FnMut(&[u8])> PieceWriter<F> {
    #[expect(clippy::large_stack_arrays, reason = "there may be no memory but the stack")]
    fn new(pass_on: F) -> Self {
        Self { pass_on, piece: [0; PIECE_BYTES], len: 0 }
    }

    fn finish(mut self) {
        if self.len > 0 {
            (self.pass_on)(&self.piece[..self.len]);
        }
    }
}

impl<F: FnMut(&[u8])> io::Write for PieceWriter<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE_BYTES - self.len);
        self.piece[self.len..self.len + taken].copy_from_slice(&bytes[..taken]);
        self.len += taken;
        if self.len == PIECE_BYTES {
            (self.pass_on)(&self.piece);
            self.len = 0;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A reader of a snapshot that was saved in pieces.
struct PieceReader<'a> {
    stream: &'a mut Loading,
    /// The bytes of pieces that have not been loaded.
    left: u64,
    piece: Option<ServerBytes>,
    read: usize,
}

impl Read for PieceReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let piece = match &self.piece {
            Some(piece) if self.read < piece.len() => piece,
            _ if self.left == 0 => return Ok(0),
            _ => {
                let piece = self.stream.bytes().filter(|piece| !piece.is_empty()).ok_or(io::ErrorKind::UnexpectedEof)?;
                let left = self.left.checked_sub(piece.len() as u64);
                self.left = left.ok_or(io::ErrorKind::InvalidData)?;
                self.read = 0;
                self.piece.insert(piece)
            }
        };
        let taken = bytes.len().min(piece.len() - self.read);
        bytes[..taken].copy_from_slice(&piece[self.read..self.read + taken]);
        self.read += taken;
        Ok(taken)
    }
}
