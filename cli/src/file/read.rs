//! Filters from files and pipes, and in mapped files.

use std::{
    error::Error as _,
    fs::{self, File},
    io::{self, ErrorKind, Read},
    path::Path,
};

use anyhow::{Context as _, bail};
#[cfg(target_endian = "little")]
use koel::go::{self, GoFilter};
use koel::{
    Contains, ElasticView, FilterView, SnapshotError, SnapshotErrorKind as Kind, TableKind, hash::AnyHasher,
    redisbloom::RedisBloomFilter,
};
use memmap2::Mmap;

use super::{Changing, Filter, Growing, is_dash, length, name};
use crate::{options, terminal};

/// The bytes of the longest header.
const HEAD: u64 = 64;

/// The first bytes of a dump of RedisBloom's: iterator and length of the first chunk. No file of Go's begins so: its buckets would
/// have no slots.
const REDIS_BLOOM: [[u8; 16]; 2] = [start(38), start(40)];

const fn start(len: u8) -> [u8; 16] {
    [1, 0, 0, 0, 0, 0, 0, 0, len, 0, 0, 0, 0, 0, 0, 0]
}

/// The offset of a Go file's table type: the first byte that can show that a file is not one of Go's.
#[cfg(target_endian = "little")]
const GO_TABLE_AT: u64 = 13;

/// The name of the format in messages.
#[cfg(target_endian = "little")]
const GO: &str = "a file of Go's linvon/cuckoo-filter";

/// What to give where a filter is read.
const FILTER: &str = "a file that `koel build` wrote";

/// A filter that has been read and checked, of any type.
pub(crate) enum Stored {
    Koel(Changing),
    /// A dump of RedisBloom's.
    RedisBloom(RedisBloomFilter),
    /// In the format of Go's linvon/cuckoo-filter.
    #[cfg(target_endian = "little")]
    Go(GoFilter),
}

impl Stored {
    /// The filter, if it is a koel snapshot. `name` is for the message.
    pub(super) fn koel(self, name: &str) -> anyhow::Result<Changing> {
        match self {
            Self::Koel(filter) => Ok(filter),
            Self::RedisBloom(filter) => Err(only_read(name, &filter)),
            #[cfg(target_endian = "little")]
            Self::Go(_) => bail!(
                "{name}: is {GO}, which can be queried, but not changed or merged; `koel convert --to koel` makes a snapshot of it"
            ),
        }
    }
}

/// The error about a dump of RedisBloom's where something else than answers is wanted.
fn only_read(name: &str, filter: &RedisBloomFilter) -> anyhow::Error {
    // Whether it converts, and why not, is known without converting it.
    let remedy = match filter.sub_filters() {
        1 if filter.bucket_size() <= *TableKind::Single.bucket_sizes().end() => "`koel convert --to koel` makes a snapshot of it",
        _ => "it has 8 bits of each item's hash; build a new filter from the items: `koel build`",
    };
    anyhow::anyhow!("{name}: is a dump of RedisBloom, which can be queried, but not changed or merged; {remedy}")
}

/// Reads a filter of any type, from standard input for `-`, checks all of it, and returns the number of bytes read.
pub(crate) fn load(path: &Path) -> anyhow::Result<(Stored, u64)> {
    let name = name(path);
    if is_dash(path) { stored(terminal::stdin()?, &name) } else { stored(open_file(path, FILTER)?, &name) }
}

/// The same, for koel snapshots only.
pub(crate) fn load_changing(path: &Path) -> anyhow::Result<Changing> {
    load(path)?.0.koel(&name(path))
}

/// A view of a mapped file, for queries.
macro_rules! view {
    ($view:ident, $map:expr, $name:expr, $verify:expr) => {{
        let mut view = $view::over_with($map, AnyHasher::from_id).map_err(|error| refused($name, error))?;
        options::set_kernel(|kernel| view.set_kernel(kernel))?;
        if $verify {
            view.verify().map_err(|error| refused($name, error))?;
        }
        Ok(Box::new(view))
    }};
}

/// Opens a filter to query it: maps a regular file, and reads and checks anything else. Of a mapped filter, only the header and the
/// lists of shards are checked, unless `verify`.
pub(crate) fn open(path: &Path, verify: bool) -> anyhow::Result<Box<dyn Contains<[u8]>>> {
    // A pipe must not be opened to find out: its writer would see it closed again.
    let is_file = !is_dash(path) && fs::metadata(path).is_ok_and(|metadata| length(&metadata).is_some());
    // Reading reports why the file cannot be opened, and reads what is not a snapshot.
    if is_file && let Ok(map) = map(path) {
        match kind(&map) {
            Some(Kind::Magic) => {}
            Some(Kind::OtherType) => return view!(ElasticView, map, &name(path), verify),
            _ => return view!(FilterView, map, &name(path), verify),
        }
    }
    Ok(match load(path)?.0 {
        Stored::Koel(Changing::Fixed(filter)) => Box::new(filter),
        Stored::Koel(Changing::Growing(filter)) => Box::new(*filter),
        Stored::RedisBloom(filter) => Box::new(filter),
        #[cfg(target_endian = "little")]
        Stored::Go(filter) => Box::new(filter),
    })
}

/// Maps a regular file, for reading only.
///
/// # Errors
/// If the file cannot be opened or mapped, or is not a regular file.
#[allow(unsafe_code, reason = "a map is only as constant as its file")]
fn map(path: &Path) -> io::Result<Mmap> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    // SAFETY: the bytes of a map must stay as they are, which no system enforces. This trusts all who may write to the file. All
    // writers of koel, library and command, replace a file and never change one; a map keeps the file that was replaced. The
    // help of `koel query` asks the same of other programs. The map is read-only, so nothing here can change the file.
    unsafe { Mmap::map(&file) }
}

/// Why bytes are not a filter of fixed size: because they are another type, or no snapshot at all, or for a reason that its reader
/// has to report.
fn kind(bytes: &[u8]) -> Option<Kind> {
    FilterView::over_with(bytes, AnyHasher::from_id).err().map(|error| error.kind())
}

/// Opens a file that is no folder: where `wanted` is to be given.
pub(crate) fn open_file(path: &Path, wanted: &str) -> anyhow::Result<File> {
    let name = name(path);
    let file = File::open(path).with_context(|| format!("{name}: cannot be read"))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        bail!("{name}: is a folder; give {wanted}");
    }
    Ok(file)
}

/// Reads bytes that begin as a snapshot does as one, and all others as a file of Go's, which has no magic number.
pub(super) fn stored(mut reader: impl Read, name: &str) -> anyhow::Result<(Stored, u64)> {
    let mut head = Vec::new();
    reader.by_ref().take(HEAD).read_to_end(&mut head).with_context(|| format!("{name}: cannot be read"))?;
    if REDIS_BLOOM.iter().any(|start| head.starts_with(start)) {
        return read_redisbloom(head.chain(reader), name);
    }
    match kind(&head) {
        Some(Kind::Magic) => read_other(head, reader, name),
        Some(Kind::OtherType) => {
            let (mut filter, end) = read(head.chain(reader), name, |reader| Growing::read_from_with(reader, AnyHasher::from_id))?;
            options::set_kernel(|kernel| filter.set_kernel(kernel))?;
            Ok((Stored::Koel(Changing::Growing(Box::new(filter))), end))
        }
        _ => {
            let (mut filter, end) = read(head.chain(reader), name, |reader| Filter::read_from_with(reader, AnyHasher::from_id))?;
            options::set_kernel(|kernel| filter.set_kernel(kernel))?;
            Ok((Stored::Koel(Changing::Fixed(filter)), end))
        }
    }
}

/// Reads a snapshot, after which nothing may follow. Also returns its length.
fn read<F>(
    reader: impl Read,
    name: &str,
    read: impl FnOnce(&mut dyn Read) -> Result<F, SnapshotError>,
) -> anyhow::Result<(F, u64)> {
    let mut reader = reader.take(u64::MAX);
    let filter = read(&mut reader).map_err(|error| refused(name, error))?;
    let end = u64::MAX - reader.limit();
    check_end(reader, end, name)?;
    Ok((filter, end))
}

fn read_redisbloom(reader: impl Read, name: &str) -> anyhow::Result<(Stored, u64)> {
    let mut reader = reader.take(u64::MAX);
    let filter = RedisBloomFilter::read_dump(&mut reader);
    let filter = filter.map_err(|error| anyhow::anyhow!("{name}: as a dump of RedisBloom: {error}"))?;
    Ok((Stored::RedisBloom(filter), u64::MAX - reader.limit()))
}

/// Reads a file that is not a snapshot, from its first bytes and the rest.
#[cfg(target_endian = "little")]
fn read_other(mut bytes: Vec<u8>, mut reader: impl Read, name: &str) -> anyhow::Result<(Stored, u64)> {
    let refusal = loop {
        match go::decode(&bytes) {
            Ok(mut filter) => {
                let end = bytes.len() as u64;
                check_end(reader, end, name)?;
                options::set_kernel(|kernel| filter.set_kernel(kernel))?;
                return Ok((Stored::Go(filter), end));
            }
            // The header announces more bytes. Memory is allocated only as they arrive.
            Err(refusal) if refusal.kind() == Kind::Length && refusal.offset() == bytes.len() as u64 => {
                let more = reader.by_ref().take(bytes.len() as u64).read_to_end(&mut bytes);
                if more.with_context(|| format!("{name}: cannot be read further"))? == 0 {
                    break refusal;
                }
            }
            Err(refusal) => break refusal,
        }
    };
    match (refusal.kind(), refusal.offset()) {
        // Nothing suggests a file of Go's.
        (Kind::Length, ..=GO_TABLE_AT) | (Kind::Parameter, GO_TABLE_AT) => {
            bail!(
                "{name}: at byte 0: neither a koel snapshot nor {GO}, nor a dump of RedisBloom; give a file that `koel build` or Go's \
                 `Encode` wrote"
            )
        }
        // The header is invalid. (Errors about the victim, which comes before the table type, are about valid headers only.)
        (Kind::Parameter, GO_TABLE_AT..) => bail!(
            "{name}: at byte 0: neither a koel snapshot nor {GO} ({refusal}); give a file that `koel build` or Go's `Encode` wrote"
        ),
        // The file is longer than its header says, and was not read to its end.
        (Kind::TrailingBytes, end) => Err(goes_on(name, end)),
        _ => bail!("{name}: as {GO}: {refusal}"),
    }
}

#[cfg(not(target_endian = "little"))]
fn read_other(_: Vec<u8>, _: impl Read, name: &str) -> anyhow::Result<(Stored, u64)> {
    bail!("{name}: at byte 0: not a koel snapshot; give a file that `koel build` wrote")
}

/// Fails if bytes follow the filter, which ends at byte `end`.
fn check_end(reader: impl Read, end: u64, name: &str) -> anyhow::Result<()> {
    let beyond = io::copy(&mut reader.take(1), &mut io::sink()).with_context(|| format!("{name}: cannot be read further"))?;
    if beyond > 0 { Err(goes_on(name, end)) } else { Ok(()) }
}

fn goes_on(name: &str, end: u64) -> anyhow::Error {
    anyhow::anyhow!("{name}: at byte {end}: the filter ends here, but other bytes follow it; use another copy")
}

/// The error about a snapshot, with remedies for users of this command where the library's are for programs.
fn refused(name: &str, error: SnapshotError) -> anyhow::Error {
    if let Some(id) = error.hasher() {
        return anyhow::anyhow!(
            "{name}: built with hasher {id}, which this command does not have; use the program that built it"
        );
    }
    match error.kind() {
        Kind::TrailingBytes => goes_on(name, error.offset()),
        Kind::OutOfMemory => {
            let error = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            anyhow::anyhow!("{name}: {error}")
        }
        _ => anyhow::Error::new(error).context(name.to_owned()),
    }
}
