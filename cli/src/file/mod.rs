//! Filters in files: whatever is read is validated, and files are replaced atomically.

mod read;
mod write;

use std::{
    fs::{self, Metadata},
    ops::{Deref, DerefMut},
    path::Path,
};

use anyhow::bail;
use koel::{CuckooFilter, ElasticFilter, Insert, hash::AnyHasher};
use koel_lab::percent;

use crate::{errors, items::Items};

pub(crate) use read::{Stored, load, load_changing, open, open_file};
#[cfg(unix)]
pub(crate) use write::ignore_file_size_limit;
pub(crate) use write::{Output, To};

/// The filters of this command: their hasher is known only at run time.
pub(crate) type Filter = CuckooFilter<AnyHasher>;

/// The same, of those that grow.
pub(crate) type Growing = ElasticFilter<AnyHasher>;

/// A filter that can be changed: a koel snapshot. It has the operations that both types have.
pub(crate) enum Changing {
    Fixed(Filter),
    Growing(Box<Growing>),
}

impl Deref for Changing {
    type Target = dyn Insert<[u8]>;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Fixed(filter) => filter,
            Self::Growing(filter) => &**filter,
        }
    }
}

impl DerefMut for Changing {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Fixed(filter) => filter,
            Self::Growing(filter) => &mut **filter,
        }
    }
}

impl Changing {
    /// Inserts items as they are read, with `unique` only those not reported as present, and says how many it inserted. Messages
    /// have `larger`, as in [`errors::full`], and end with what becomes of the file.
    pub(crate) fn add(&mut self, items: &mut Items, unique: bool, larger: &str, end: &str) -> anyhow::Result<u64> {
        let mut inserted = 0;
        while let Some(item) = items.advance()? {
            match if unique { self.insert_unique(item) } else { self.insert(item).map(|()| true) } {
                Ok(fresh) => inserted += u64::from(fresh),
                Err(error) => match self {
                    Self::Fixed(filter) => bail!("{}; {end}", errors::full(&items.place(), &error, filter, larger)),
                    Self::Growing(_) => bail!("{}; {end}", errors::refused(&items.place(), &error)),
                },
            }
        }
        Ok(inserted)
    }

    /// How full it is, or how large, in a few words.
    pub(crate) fn extent(&self) -> String {
        match self {
            Self::Fixed(filter) => format!("load {}", percent(filter.load_factor(), 2)),
            Self::Growing(filter) => format!("tables of {} bytes", filter.table_bytes()),
        }
    }
}

/// Does the path stand for standard input or standard output?
pub(crate) fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The name of an input in messages.
pub(crate) fn name(path: &Path) -> String {
    if is_dash(path) { String::from("standard input") } else { path.display().to_string() }
}

/// The folder that a file is in, or would be in.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The length of a file's content, if it is known in advance.
pub(crate) fn length(metadata: &Metadata) -> Option<u64> {
    // Some of the kernel's files are regular, and report a length of 0.
    (metadata.is_file() && metadata.len() > 0).then_some(metadata.len())
}

/// The metadata of the file that is standard input.
#[cfg(unix)]
pub(crate) fn stdin_metadata() -> Option<Metadata> {
    use std::{io, os::fd::AsFd as _};
    let stdin = io::stdin().as_fd().try_clone_to_owned().ok()?;
    fs::File::from(stdin).metadata().ok()
}

/// The metadata of the file that is standard input: not known.
#[cfg(not(unix))]
pub(crate) fn stdin_metadata() -> Option<Metadata> {
    None
}

/// Do both paths lead to the same file? `input` may be `-`.
#[cfg(unix)]
pub(crate) fn same(input: &Path, target: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let input = if is_dash(input) { stdin_metadata() } else { fs::metadata(input).ok() };
    let place = |metadata: Metadata| (metadata.dev(), metadata.ino());
    input.is_some_and(|input| fs::metadata(target).is_ok_and(|target| place(input) == place(target)))
}

/// Do both paths lead to the same file? For standard input, this is not known here.
#[cfg(not(unix))]
pub(crate) fn same(input: &Path, target: &Path) -> bool {
    !is_dash(input) && fs::canonicalize(input).is_ok_and(|input| fs::canonicalize(target).is_ok_and(|target| input == target))
}
