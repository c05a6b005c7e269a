//! What a key holds, and how the server saves, loads, copies and frees it.

use std::{
    io::{self, Read},
    iter,
};

use koel::{
    ElasticFilter, Hasher as _, Xxh3,
    redisbloom::{Loader, RedisBloomFilter},
};

use crate::{
    dump::{MOST_BYTES, Position},
    filter::Filter,
    load::{Arriving, Load},
    plan::Plan,
    reply::Failure,
    server::{Digest, Handle, Loading, Rewriting, Saving, ServerBytes, Value},
};

/// See the module.
#[expect(clippy::large_enum_variant, reason = "filters are the rule")]
pub(crate) enum Stored {
    Filter(Filter),
    /// Invisible until its last chunk has come.
    Load(Box<Load>),
}

/// Filters of up to so many bytes are copied while the server defragments. The tables of others have pages of their own.
const MOST_TO_MOVE: usize = 64 << 10;

static HANDLE: Handle = Handle::new();

// What a saved value begins with.
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

    fn save(&self, stream: &mut Saving) {
        match self {
            Self::Filter(filter) => {
                stream.number(if filter.own.is_some() { OWN } else { 0 } | if filter.imported.is_some() { IMPORTED } else { 0 });
                save_plan(stream, &filter.plan, filter.deleted);
                if let Some(own) = &filter.own {
                    stream.number(own.snapshot_bytes());
                    let mut pieces = PieceWriter { stream, piece: Vec::with_capacity(MOST_BYTES) };
                    // The stream takes everything; its errors are the server's.
                    let _ = own.write_to(&mut pieces);
                    pieces.finish();
                }
                if let Some(imported) = &filter.imported {
                    save_chunks(stream, 0, imported.chunks());
                }
            }
            Self::Load(load) => match &load.arriving {
                Arriving::Own(pieces) => {
                    stream.number(LOADING_OWN);
                    save_plan(stream, &load.plan, load.deleted);
                    stream.number(pieces.moment);
                    save_chunks(stream, pieces.moment, (0..).zip(&pieces.bytes));
                }
                Arriving::RedisBloom(loader) => {
                    stream.number(LOADING_REDIS_BLOOM);
                    save_plan(stream, &load.plan, load.deleted);
                    save_chunks(stream, 0, loader.chunks());
                }
            },
        }
    }

    fn load(stream: &mut Loading, version: i32) -> Result<Self, String> {
        if version != Self::VERSION {
            return Err(format!("version {version} of its format is not known; this release of koel reads {}", Self::VERSION));
        }
        let kind = stream.number().ok_or_else(cut_off)?;
        let (plan, deleted) = load_plan(stream)?;
        match kind {
            LOADING_OWN => load_pieces(stream, plan, deleted),
            LOADING_REDIS_BLOOM => {
                let mut loader = None;
                load_chunks(stream, &mut loader)?;
                let loader = loader.ok_or_else(cut_off)?;
                Ok(Self::Load(Box::new(Load { plan, deleted, arriving: Arriving::RedisBloom(loader) })))
            }
            _ if kind & !(OWN | IMPORTED) == 0 && kind != 0 => {
                let own = (kind & OWN != 0).then(|| load_own(stream)).transpose()?;
                let imported = (kind & IMPORTED != 0).then(|| load_imported(stream)).transpose()?;
                Ok(Self::Filter(Filter::with(plan, own, imported, deleted)))
            }
            _ => Err(format!("{kind} is no kind of filter")),
        }
    }

    fn rewrite(&self, commands: &mut Rewriting<'_>) {
        let mut emit = |iterator: i64, bytes: &[u8], options: &[String]| commands.emit(c"CF.LOADCHUNK", iterator, bytes, options);
        match self {
            Self::Filter(filter) => {
                let options = options(&filter.plan, filter.deleted);
                if let Some(imported) = filter.is_only_imported() {
                    emit_chunks(&mut emit, imported.chunks(), &options);
                    return;
                }
                let mut offset = 0;
                let chunks = iter::from_fn(|| {
                    // Memory for a chunk is there, or the rewriting fails as a whole.
                    let bytes = filter.dump(offset, MOST_BYTES).ok().filter(|bytes| !bytes.is_empty())?;
                    offset += bytes.len() as u64;
                    Some(bytes)
                });
                emit_chunks(&mut emit, at_offsets(0, chunks), &options);
            }
            Self::Load(load) => {
                let options = options(&load.plan, load.deleted);
                match &load.arriving {
                    Arriving::RedisBloom(loader) => emit_chunks(&mut emit, loader.chunks(), &options),
                    Arriving::Own(pieces) => emit_chunks(&mut emit, at_offsets(pieces.moment, pieces.bytes.iter()), &options),
                }
            }
        }
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
                if let Some(own) = &filter.own {
                    let _ = own.write_to(&mut checksum);
                }
                let imported = filter.imported.iter().flat_map(RedisBloomFilter::chunks);
                imported.for_each(|(_, bytes)| checksum.add(&bytes));
                number(checksum.0);
            }
            Self::Load(load) => {
                let mut checksum = Checksum(1);
                match &load.arriving {
                    Arriving::RedisBloom(loader) => loader.chunks().for_each(|(_, bytes)| checksum.add(&bytes)),
                    Arriving::Own(pieces) => pieces.bytes.iter().for_each(|bytes| checksum.add(bytes)),
                }
                [1, checksum.0].into_iter().for_each(number);
            }
        }
    }

    fn free_effort(&self) -> usize {
        match self {
            Self::Filter(filter) => 1 + filter.own.as_ref().map_or(0, |own| own.table_bytes() >> 16),
            Self::Load(load) => 1 + (load.size_in_bytes() >> 16),
        }
    }

    fn copy(&self) -> Option<Self> {
        match self {
            Self::Filter(filter) => filter.copy().map(Self::Filter),
            // A copy would go on with other chunks than its original.
            Self::Load(_) => None,
        }
    }

    fn move_memory(&mut self) {
        if let Self::Filter(filter) = self
            && filter.size_in_bytes() <= MOST_TO_MOVE
            && let Some(copy) = filter.copy()
        {
            *self = Self::Filter(copy);
        }
    }
}

fn cut_off() -> String {
    String::from("it is cut off")
}

/// The numbers of the plan, and a checksum of them.
fn save_plan(stream: &mut Saving, plan: &Plan, deleted: u64) {
    let Plan { capacity, expansion, error_rate, seed, max_bytes } = *plan;
    let signed = [capacity, expansion, seed, max_bytes].map(i64::unsigned_abs);
    let mut checksum = Checksum(0);
    for number in signed.into_iter().chain([error_rate.to_bits(), deleted]) {
        checksum.add(&number.to_le_bytes());
        stream.number(number);
    }
    stream.number(checksum.0);
}

fn load_plan(stream: &mut Loading) -> Result<(Plan, u64), String> {
    let mut checksum = Checksum(0);
    let mut numbers = [0; 6];
    for number in &mut numbers {
        *number = stream.number().ok_or_else(cut_off)?;
        checksum.add(&number.to_le_bytes());
    }
    if stream.number() != Some(checksum.0) {
        return Err(String::from("the checksum of its plan differs"));
    }
    let [capacity, expansion, seed, max_bytes] = [0, 1, 2, 3].map(|at| i64::try_from(numbers[at]).unwrap_or(i64::MAX));
    Ok((Plan { capacity, expansion, error_rate: f64::from_bits(numbers[4]), seed, max_bytes }, numbers[5]))
}

/// Of each chunk a 1, the iterator and the bytes; then a 0, and a checksum of all bytes, seeded with what else was saved.
fn save_chunks(stream: &mut Saving, seed: u64, chunks: impl Iterator<Item = (u64, impl AsRef<[u8]>)>) {
    let mut checksum = Checksum(seed);
    for (iterator, bytes) in chunks {
        stream.number(1);
        stream.number(iterator);
        checksum.add(&iterator.to_le_bytes());
        for piece in bytes.as_ref().chunks(MOST_BYTES) {
            checksum.add(piece);
        }
        stream.bytes(bytes.as_ref());
    }
    stream.number(0);
    stream.number(checksum.0);
}

/// Passes on the chunks that were saved.
fn each_chunk(stream: &mut Loading, seed: u64, mut act: impl FnMut(u64, &[u8]) -> Result<(), String>) -> Result<(), String> {
    let mut checksum = Checksum(seed);
    loop {
        match stream.number().ok_or_else(cut_off)? {
            0 => break,
            1 => {}
            other => return Err(format!("{other} stands where 1 announces a chunk, or 0 the end")),
        }
        let iterator = stream.number().ok_or_else(cut_off)?;
        let bytes = stream.bytes().ok_or_else(cut_off)?;
        checksum.add(&iterator.to_le_bytes());
        for piece in bytes.chunks(MOST_BYTES) {
            checksum.add(piece);
        }
        act(iterator, &bytes)?;
    }
    match stream.number() {
        Some(stored) if stored == checksum.0 => Ok(()),
        _ => Err(String::from("its checksum differs")),
    }
}

fn load_chunks(stream: &mut Loading, loader: &mut Option<Loader>) -> Result<(), String> {
    each_chunk(stream, 0, |iterator, bytes| {
        match loader {
            Some(loader) => loader.load(iterator, bytes),
            None => Loader::new(iterator, bytes).map(|new| *loader = Some(new)),
        }
        .map_err(|error| error.to_string())
    })
}

fn load_imported(stream: &mut Loading) -> Result<RedisBloomFilter, String> {
    let mut loader = None;
    load_chunks(stream, &mut loader)?;
    loader.ok_or_else(cut_off)?.finish().map_err(|error| error.to_string())
}

fn load_pieces(stream: &mut Loading, plan: Plan, deleted: u64) -> Result<Stored, String> {
    let moment = stream.number().ok_or_else(cut_off)?;
    let (mut load, mut offset): (Option<Load>, u64) = (None, 0);
    each_chunk(stream, moment, |_, bytes| {
        offset = offset.saturating_add(bytes.len() as u64);
        let iterator = Position { moment, offset }.iterator();
        let result = match &mut load {
            Some(load) => load.push(iterator, bytes, usize::MAX),
            None => Load::start(iterator, bytes, plan, deleted, usize::MAX).map(|new| load = Some(new)),
        };
        result.map_err(|failure: Failure| failure.to_string())
    })?;
    load.map(|load| Stored::Load(Box::new(load))).ok_or_else(cut_off)
}

fn load_own(stream: &mut Loading) -> Result<ElasticFilter, String> {
    let left = stream.number().ok_or_else(cut_off)?;
    let mut reader = PieceReader { stream, left, piece: None, read: 0 };
    let own = ElasticFilter::read_from(&mut reader).map_err(|error| error.to_string())?;
    if reader.left > 0 || reader.piece.is_some_and(|piece| reader.read < piece.len()) {
        return Err(String::from("it goes on after the end of the snapshot"));
    }
    Ok(own)
}

/// The options of the first CF.LOADCHUNK of a filter.
pub(crate) fn options(plan: &Plan, deleted: u64) -> Vec<String> {
    let deleted = [String::from("DELETED"), deleted.min(i64::MAX.unsigned_abs()).to_string()];
    plan.arguments().into_iter().skip(1).chain(deleted).collect()
}

/// Chunks of a dump of this moment, each with its iterator.
fn at_offsets<B: AsRef<[u8]>>(moment: u64, chunks: impl Iterator<Item = B>) -> impl Iterator<Item = (u64, B)> {
    chunks.scan(0, move |offset, bytes| {
        *offset += bytes.as_ref().len() as u64;
        Some((Position { moment, offset: *offset }.iterator().unsigned_abs(), bytes))
    })
}

fn emit_chunks<B: AsRef<[u8]>>(
    emit: &mut impl FnMut(i64, &[u8], &[String]),
    chunks: impl Iterator<Item = (u64, B)>,
    options: &[String],
) {
    for (n, (iterator, bytes)) in chunks.enumerate() {
        emit(i64::try_from(iterator).unwrap_or(i64::MAX), bytes.as_ref(), if n == 0 { options } else { &[] });
    }
}

/// A checksum of all that was added, in pieces that are always the same.
struct Checksum(u64);

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        self.0 = Xxh3.hash(self.0, bytes);
    }
}

impl io::Write for Checksum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Saves a stream of bytes in pieces.
struct PieceWriter<'a> {
    stream: &'a mut Saving,
    piece: Vec<u8>,
}

impl PieceWriter<'_> {
    fn finish(self) {
        if !self.piece.is_empty() {
            self.stream.bytes(&self.piece);
        }
    }
}

impl io::Write for PieceWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(MOST_BYTES - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() == MOST_BYTES {
            self.stream.bytes(&self.piece);
            self.piece.clear();
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads what it has saved.
struct PieceReader<'a> {
    stream: &'a mut Loading,
    /// Bytes of pieces that have not been loaded.
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
                self.left = left.ok_or_else(|| io::Error::other("a piece is longer than what was announced"))?;
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
