//! Reads filters from files and pipes, and opens views of mapped files.

use std::{
    error::Error as _,
    fmt,
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

use super::{Filter, Growing, Snapshot, is_dash, length, name};
use crate::{options, terminal};

/// The bytes that begin every snapshot (docs/FORMAT.md).
pub(crate) const MAGIC: &[u8] = b"KOEL\r\n\x1a\n";

/// The length of the longest header, in bytes.
const HEAD: u64 = 64;

/// The first bytes of a RedisBloom dump: iterator and length of the first chunk. No Go file begins with them, because its buckets
/// would have no slots.
const REDIS_BLOOM: [[u8; 16]; 2] = [dump_start(38), dump_start(40)];

const fn dump_start(len: u8) -> [u8; 16] {
    [1, 0, 0, 0, 0, 0, 0, 0, len, 0, 0, 0, 0, 0, 0, 0]
}

/// The offset of the table type in a Go file. It is the first byte that can show that a file is not a Go file.
#[cfg(target_endian = "little")]
const GO_TABLE_TYPE: u64 = 13;

/// The name of Go's format in messages.
#[cfg(target_endian = "little")]
const GO: &str = "a file of Go's linvon/cuckoo-filter";

/// The remedy in messages where a filter is expected.
pub(super) const FILTER: &str = "a file that `koel build` wrote";

/// The remedy where files of other programs are read, too.
const ANY_FILTER: &str = "a file that `koel build` or Go's `Encode` wrote, or a dump of RedisBloom";

/// A filter of any format, read and checked.
pub(crate) enum Stored {
    Koel(Snapshot),
    /// A RedisBloom dump.
    RedisBloom(RedisBloomFilter),
    /// A file of Go's linvon/cuckoo-filter.
    #[cfg(target_endian = "little")]
    Go(GoFilter),
}

impl Stored {
    /// Returns the filter if it is a koel snapshot. The error message begins with `name`.
    pub(super) fn snapshot(self, name: &str) -> anyhow::Result<Snapshot> {
        match self {
            Self::Koel(filter) => Ok(filter),
            Self::RedisBloom(filter) => Err(not_a_snapshot(name, &filter)),
            #[cfg(target_endian = "little")]
            Self::Go(_) => bail!(
                "{name}: is {GO}, which can be queried, but not changed or merged; `koel convert --to koel` makes a snapshot of it"
            ),
        }
    }
}

/// Returns the error about a RedisBloom dump that is to be changed or merged.
fn not_a_snapshot(name: &str, filter: &RedisBloomFilter) -> anyhow::Error {
    // The numbers of sub-filters and slots decide whether the dump can be converted.
    let remedy = match filter.sub_filters() {
        1 if filter.bucket_size() <= *TableKind::Single.bucket_sizes().end() => "`koel convert --to koel` makes a snapshot of it",
        _ => "it has 8 bits of each item's hash; build a new filter from the items: `koel build`",
    };
    anyhow::anyhow!("{name}: is a dump of RedisBloom, which can be queried, but not changed or merged; {remedy}")
}

/// Reads a filter of any format, from standard input for `-`, and checks all of it. Also returns the number of bytes read.
pub(crate) fn load(path: &Path) -> anyhow::Result<(Stored, u64)> {
    load_wanted(path, ANY_FILTER)
}

/// Reads a filter as [`load`] does. The remedy for a file that is no filter is to give `wanted`.
fn load_wanted(path: &Path, wanted: &str) -> anyhow::Result<(Stored, u64)> {
    let name = name(path);
    if is_dash(path) {
        read_stored(terminal::stdin()?, &name, wanted)
    } else {
        read_stored(open_file(path, FILTER)?, &name, wanted)
    }
}

/// Reads a koel snapshot as [`load`] does. Other formats are errors.
pub(crate) fn load_snapshot(path: &Path) -> anyhow::Result<Snapshot> {
    load_wanted(path, FILTER)?.0.snapshot(&name(path))
}

/// The error about a file whose bytes are no filter, or a damaged one. Reading it again gives the same error, on every machine.
#[derive(Debug)]
pub(crate) struct Invalid(String);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn invalid(message: String) -> anyhow::Error {
    anyhow::Error::msg(Invalid(message))
}

/// Opens a view of a mapped file, for queries.
macro_rules! view {
    ($view:ident, $map:expr, $name:expr, $verify:expr) => {{
        let mut view = $view::over_with($map, AnyHasher::from_id).map_err(|error| snapshot_error($name, error))?;
        options::set_kernel(|kernel| view.set_kernel(kernel))?;
        if $verify {
            view.verify().map_err(|error| snapshot_error($name, error))?;
        }
        Ok(Box::new(view))
    }};
}

/// Opens a filter for queries: maps a snapshot in a regular file, and reads and checks anything else. Of a mapped filter, only the
/// header and the lists of shards are checked, unless `verify` is set.
pub(crate) fn open(path: &Path, verify: bool) -> anyhow::Result<Box<dyn Contains<[u8]>>> {
    // A pipe must not be opened to inspect it, because its writer would then see it closed.
    let is_file = !is_dash(path) && fs::metadata(path).is_ok_and(|metadata| length(&metadata).is_some());
    // If mapping fails, reading reports the reason. Files that are not snapshots are read, too.
    if is_file && let Ok(map) = map(path) {
        match refusal(&map) {
            Some(Kind::Magic) => {}
            Some(Kind::OtherType) => return view!(ElasticView, map, &name(path), verify),
            _ => return view!(FilterView, map, &name(path), verify),
        }
    }
    Ok(match load(path)?.0 {
        Stored::Koel(Snapshot::Fixed(filter)) => Box::new(filter),
        Stored::Koel(Snapshot::Growing(filter)) => Box::new(*filter),
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
    // SAFETY: the bytes of a map must not change, which no system enforces, so this trusts everyone who may write to the file. The
    // library and the command replace files and never change them in place, and a map keeps the file that was replaced. The help
    // of `koel query` tells users not to change the file in place. The map is read-only, so this process cannot change it.
    unsafe { Mmap::map(&file) }
}

/// Returns why bytes cannot be read as a filter of fixed size: they are another type, no snapshot at all, or invalid in a way that
/// the reader then reports.
fn refusal(bytes: &[u8]) -> Option<Kind> {
    FilterView::over_with(bytes, AnyHasher::from_id).err().map(|error| error.kind())
}

/// Returns whether bytes begin like a koel snapshot.
pub(crate) fn is_snapshot(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Returns whether a path leads to a regular file that begins like a koel snapshot.
pub(crate) fn is_snapshot_file(path: &Path) -> bool {
    // A pipe must not be opened to inspect it, because its writer would then see it closed.
    let is_file = !is_dash(path) && fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut head = Vec::new();
    is_file && File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head)).is_ok() && is_snapshot(&head)
}

/// Opens a file. A folder is an error, whose remedy is to give `wanted`.
pub(crate) fn open_file(path: &Path, wanted: &str) -> anyhow::Result<File> {
    let name = name(path);
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!("{name}: cannot be read: {error}; give {wanted}"),
        opened => opened.with_context(|| format!("{name}: cannot be read"))?,
    };
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        bail!("{name}: is a folder; give {wanted}");
    }
    Ok(file)
}

/// Reads a filter in the format that its first bytes show. A Go file has no magic number, so bytes that show no other format are
/// read as one. The remedy for a file that is no filter is to give `wanted`.
pub(super) fn read_stored(mut reader: impl Read, name: &str, wanted: &str) -> anyhow::Result<(Stored, u64)> {
    let mut head = Vec::new();
    reader.by_ref().take(HEAD).read_to_end(&mut head).with_context(|| format!("{name}: cannot be read"))?;
    if head.is_empty() {
        return Err(invalid(format!("{name}: is empty, and so is no filter; give {FILTER}")));
    }
    if REDIS_BLOOM.iter().any(|start| head.starts_with(start)) {
        return read_redisbloom(head.chain(reader), name);
    }
    match refusal(&head) {
        Some(Kind::Magic) => read_other(head, reader, name, wanted),
        Some(Kind::OtherType) => {
            let (mut filter, end) = read(head.chain(reader), name, |reader| Growing::read_from_with(reader, AnyHasher::from_id))?;
            options::set_kernel(|kernel| filter.set_kernel(kernel))?;
            Ok((Stored::Koel(Snapshot::Growing(Box::new(filter))), end))
        }
        _ => {
            let (mut filter, end) = read(head.chain(reader), name, |reader| Filter::read_from_with(reader, AnyHasher::from_id))?;
            options::set_kernel(|kernel| filter.set_kernel(kernel))?;
            Ok((Stored::Koel(Snapshot::Fixed(filter)), end))
        }
    }
}

/// Reads a snapshot and checks that no bytes follow it. Also returns its length.
fn read<F>(
    reader: impl Read,
    name: &str,
    read: impl FnOnce(&mut dyn Read) -> Result<F, SnapshotError>,
) -> anyhow::Result<(F, u64)> {
    let mut reader = reader.take(u64::MAX);
    let filter = read(&mut reader).map_err(|error| snapshot_error(name, error))?;
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

/// Reads a Go file from its first bytes and a reader of the rest.
#[cfg(target_endian = "little")]
fn read_other(mut bytes: Vec<u8>, mut reader: impl Read, name: &str, wanted: &str) -> anyhow::Result<(Stored, u64)> {
    let error = loop {
        match go::decode(&bytes) {
            Ok(mut filter) => {
                let end = bytes.len() as u64;
                check_end(reader, end, name)?;
                options::set_kernel(|kernel| filter.set_kernel(kernel))?;
                return Ok((Stored::Go(filter), end));
            }
            // The header announces more bytes. They are read in doubling pieces, so that memory is allocated only as they arrive.
            Err(error) if error.kind() == Kind::Length && error.offset() == bytes.len() as u64 => {
                let more = reader.by_ref().take(bytes.len() as u64).read_to_end(&mut bytes);
                if more.with_context(|| format!("{name}: cannot be read further"))? == 0 {
                    break error;
                }
            }
            Err(error) => break error,
        }
    };
    match (error.kind(), error.offset()) {
        // Nothing suggests a Go file.
        (Kind::Length, ..=GO_TABLE_TYPE) | (Kind::Parameter, GO_TABLE_TYPE) => {
            let neither = format!("neither a koel snapshot nor {GO}, nor a dump of RedisBloom");
            Err(invalid(format!("{name}: at byte 0: {neither}; give {wanted}")))
        }
        // The header is invalid. (The victim, which comes before the table type, is checked only if the header is valid.)
        (Kind::Parameter, GO_TABLE_TYPE..) => {
            Err(invalid(format!("{name}: at byte 0: neither a koel snapshot nor {GO} ({error}); give {wanted}")))
        }
        // The file is longer than its header says. Its end was not read.
        (Kind::TrailingBytes, end) => Err(trailing_bytes(name, end)),
        _ => bail!("{name}: as {GO}: {error}"),
    }
}

#[cfg(not(target_endian = "little"))]
fn read_other(_: Vec<u8>, _: impl Read, name: &str, _: &str) -> anyhow::Result<(Stored, u64)> {
    Err(invalid(format!("{name}: at byte 0: not a koel snapshot; give a file that `koel build` wrote")))
}

/// Fails if bytes follow the filter, which ends at byte `end`.
fn check_end(reader: impl Read, end: u64, name: &str) -> anyhow::Result<()> {
    let beyond = io::copy(&mut reader.take(1), &mut io::sink()).with_context(|| format!("{name}: cannot be read further"))?;
    if beyond > 0 { Err(trailing_bytes(name, end)) } else { Ok(()) }
}

/// Returns the error about bytes after a filter that ends at byte `end`.
fn trailing_bytes(name: &str, end: u64) -> anyhow::Error {
    invalid(format!("{name}: at byte {end}: the filter ends here, but other bytes follow it; use another copy"))
}

/// Returns the error about a snapshot. Where the library's remedy is for programs, it is replaced with one for users.
fn snapshot_error(name: &str, error: SnapshotError) -> anyhow::Error {
    if let Some(id) = error.hasher() {
        return anyhow::anyhow!(
            "{name}: built with hasher {id}, which this command does not have; use the program that built it"
        );
    }
    match error.kind() {
        Kind::TrailingBytes => trailing_bytes(name, error.offset()),
        Kind::OutOfMemory => {
            let error = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            anyhow::anyhow!("{name}: {error}")
        }
        Kind::Length
        | Kind::HeaderChecksum
        | Kind::Parameter
        | Kind::BodyChecksum
        | Kind::Table
        | Kind::Count
        | Kind::Copies
        | Kind::Shards => invalid(format!("{name}: {error}")),
        _ => anyhow::Error::new(error).context(name.to_owned()),
    }
}
