//! Filters from files, from pipes, and in files that are mapped.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Read},
    path::Path,
};

use anyhow::{Context as _, bail};
use koel::{AnyHasher, FilterView, HasherId, Kernel, SnapshotError, SnapshotErrorKind};

use super::{Counted, Filter, View, is_dash, length, name};
use crate::options;

/// Reads a filter, from standard input for `-`, checks all of it, and says how many bytes it takes there.
pub(crate) fn load(path: &Path) -> anyhow::Result<(Filter, u64)> {
    let name = name(path);
    if is_dash(path) { read(io::stdin().lock(), &name) } else { read(open_file(path)?, &name) }
}

/// A filter to ask, wherever it is.
pub(crate) enum Opened {
    /// In its file, of which only the header was checked.
    Mapped(View),
    /// In memory, read and checked.
    Read(Filter),
}

impl Opened {
    /// Checks what has not been checked yet. `path` is for the message.
    pub(crate) fn verify(&self, path: &Path) -> anyhow::Result<()> {
        match self {
            Self::Mapped(view) => view.verify().with_context(|| name(path)),
            Self::Read(_) => Ok(()),
        }
    }
}

/// Opens a filter to ask it: maps it if it is in a regular file, and reads it if it is not.
pub(crate) fn open(path: &Path) -> anyhow::Result<Opened> {
    // Not opened to find out: whoever writes into a pipe takes its being closed for good.
    let is_file = !is_dash(path) && fs::metadata(path).is_ok_and(|metadata| length(&metadata).is_some());
    if is_file && let Some(view) = map(path)? {
        return Ok(Opened::Mapped(view));
    }
    Ok(Opened::Read(load(path)?.0))
}

/// Maps a file. None if it has to be read: if it is not a snapshot, or where the system cannot map it.
fn map(path: &Path) -> anyhow::Result<Option<View>> {
    let kernel = options::kernel()?;
    let mut unknown = None;
    match FilterView::open_with(path, |id| hasher(id, &mut unknown)) {
        Ok(mut view) => {
            set_kernel(kernel, |kernel| view.set_kernel(kernel))?;
            Ok(Some(view))
        }
        Err(error) if matches!(error.kind(), SnapshotErrorKind::Magic | SnapshotErrorKind::Io) => Ok(None),
        Err(error) => Err(refused(&name(path), error, unknown)),
    }
}

/// Keeps others from changing a file for as long as it is there.
pub(crate) struct Lock(File);

/// Waits until nobody else changes the file.
pub(crate) fn lock(path: &Path) -> anyhow::Result<Lock> {
    loop {
        let file = open_file(path)?;
        match file.lock() {
            Err(error) if error.kind() != ErrorKind::Unsupported => {
                return Err(error).with_context(|| format!("{}: cannot be locked", name(path)));
            }
            // Where there are no locks, the later of two changes wins.
            _ => {}
        }
        // Whoever had the lock has put another file in this one's place, most likely.
        if is_still_at(&file, path) {
            return Ok(Lock(file));
        }
    }
}

/// Reads a filter that is to be changed, and locks its file.
pub(crate) fn load_locked(path: &Path) -> anyhow::Result<(Filter, Lock)> {
    let lock = lock(path)?;
    Ok((read(&lock.0, &name(path))?.0, lock))
}

fn open_file(path: &Path) -> anyhow::Result<File> {
    let name = name(path);
    let file = File::open(path).with_context(|| format!("{name}: cannot be read"))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        bail!("{name}: is a folder; give a file that `koel build` wrote");
    }
    Ok(file)
}

fn read(reader: impl Read, name: &str) -> anyhow::Result<(Filter, u64)> {
    let kernel = options::kernel()?;
    let mut reader = Counted::new(reader);
    let mut unknown = None;
    let filter = Filter::read_from_with(&mut reader, |id| hasher(id, &mut unknown));
    let mut filter = filter.map_err(|error| refused(name, error, unknown))?;
    let end = reader.bytes;
    let beyond = io::copy(&mut reader.take(1), &mut io::sink()).with_context(|| format!("{name}: cannot be read further"))?;
    if beyond > 0 {
        bail!("{name}: at byte {end}: the bytes go on after the filter's end; get another copy");
    }
    set_kernel(kernel, |kernel| filter.set_kernel(kernel))?;
    Ok((filter, end))
}

/// The hasher of that id; the id, if there is none.
fn hasher(id: HasherId, unknown: &mut Option<HasherId>) -> Option<AnyHasher> {
    let hasher = AnyHasher::from_id(id);
    *unknown = hasher.is_none().then_some(id);
    hasher
}

fn set_kernel(kernel: Option<Kernel>, set: impl FnOnce(Kernel) -> Result<(), koel::ParamError>) -> anyhow::Result<()> {
    Ok(kernel.map_or(Ok(()), set)?)
}

fn refused(name: &str, error: SnapshotError, unknown: Option<HasherId>) -> anyhow::Error {
    match unknown {
        Some(id) => anyhow::anyhow!("{name}: built with {id}, which this command does not have; use the program that built it"),
        None => anyhow::Error::new(error).context(name.to_owned()),
    }
}

/// Is it this file that the path leads to?
#[cfg(unix)]
fn is_still_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let place = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    file.metadata().is_ok_and(|ours| fs::metadata(path).is_ok_and(|theirs| place(ours) == place(theirs)))
}

/// Is it this file that the path leads to? What is locked cannot be replaced here.
#[cfg(not(unix))]
fn is_still_at(_: &File, _: &Path) -> bool {
    true
}
