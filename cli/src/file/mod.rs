//! Filters in files. Everything read is validated, and files are replaced atomically.

mod read;
pub(crate) mod slice;
mod write;

use std::{
    fs::{self, Metadata},
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow};
use koel::{CuckooFilter, ElasticFilter, Insert, hash::AnyHasher};
use koel_lab::percent;

use crate::terminal::Stream;

pub(crate) use read::{Invalid, MAGIC, Stored, is_snapshot, is_snapshot_file, load, load_snapshot, open, open_file};
#[cfg(unix)]
pub(crate) use write::ignore_file_size_limit;
pub(crate) use write::{Output, OutputArgs};

/// A filter of fixed size, with a hasher that is chosen at run time.
pub(crate) type Filter = CuckooFilter<AnyHasher>;

/// A growing filter, with a hasher that is chosen at run time.
pub(crate) type Growing = ElasticFilter<AnyHasher>;

/// A filter from a koel snapshot, of either type. It dereferences to the operations that both types have.
pub(crate) enum Snapshot {
    Fixed(Filter),
    Growing(Box<Growing>),
}

impl Deref for Snapshot {
    type Target = dyn Insert<[u8]>;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Fixed(filter) => filter,
            Self::Growing(filter) => &**filter,
        }
    }
}

impl DerefMut for Snapshot {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Fixed(filter) => filter,
            Self::Growing(filter) => &mut **filter,
        }
    }
}

impl Snapshot {
    /// Describes how full or how large the filter is.
    pub(crate) fn extent(&self) -> String {
        match self {
            Self::Fixed(filter) => format!("load {}", percent(filter.load_factor(), 2)),
            Self::Growing(filter) => format!("tables of {} bytes", filter.table_bytes()),
        }
    }
}

/// Returns whether the path is `-`, which is standard input or standard output.
pub(crate) fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The name of standard input in messages.
pub(crate) const STDIN: &str = Stream::Stdin.name();

/// Creates a folder, and those that it is in, unless it is there, and checks that files can be created in it. Fails if it is one of
/// `koel uniq --forget`.
pub(crate) fn create_folder(folder: &Path) -> anyhow::Result<()> {
    slice::refuse_window(folder)?;
    let name = folder.display();
    fs::create_dir_all(folder).with_context(|| format!("{name}: cannot be created as a folder; give another name"))?;
    // The error's own message would name a temporary file.
    let tried = tempfile::tempfile_in(folder).map_err(|error| error.kind());
    tried.map_err(|kind| anyhow!("{name}: no file can be created in this folder: {kind}; give another one"))?;
    Ok(())
}

/// Returns the name of an input in messages.
pub(crate) fn name(path: &Path) -> String {
    if is_dash(path) { String::from(STDIN) } else { path.display().to_string() }
}

/// Returns the folder of a file, which need not exist.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Follows the links at `path`, whose target need not exist.
fn target(path: &Path) -> PathBuf {
    let mut target = path.to_owned();
    // Linux follows at most 40 links.
    for _ in 0..40 {
        let Ok(link) = fs::read_link(&target) else { break };
        target = folder(&target).join(link);
    }
    target
}

/// Returns the length of a file's content, if it is known in advance.
pub(crate) fn length(metadata: &Metadata) -> Option<u64> {
    // Linux reports its virtual files, such as those in /proc, as regular files of length 0.
    (metadata.is_file() && metadata.len() > 0).then_some(metadata.len())
}

/// Returns the metadata of the file that is open as standard input.
#[cfg(unix)]
pub(crate) fn stdin_metadata() -> Option<Metadata> {
    use std::{io, os::fd::AsFd as _};
    let stdin = io::stdin().as_fd().try_clone_to_owned().ok()?;
    fs::File::from(stdin).metadata().ok()
}

/// Returns `None`: this system does not tell which file is open as standard input.
#[cfg(not(unix))]
pub(crate) fn stdin_metadata() -> Option<Metadata> {
    None
}

/// Returns whether both paths lead to the same file. `input` may be `-`.
#[cfg(unix)]
pub(crate) fn is_same_file(input: &Path, target: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let input = if is_dash(input) { stdin_metadata() } else { fs::metadata(input).ok() };
    let place = |metadata: Metadata| (metadata.dev(), metadata.ino());
    input.is_some_and(|input| fs::metadata(target).is_ok_and(|target| place(input) == place(target)))
}

/// Returns whether both paths lead to the same file; `false` for standard input, whose file is unknown on this system.
#[cfg(not(unix))]
pub(crate) fn is_same_file(input: &Path, target: &Path) -> bool {
    !is_dash(input) && fs::canonicalize(input).is_ok_and(|input| fs::canonicalize(target).is_ok_and(|target| input == target))
}
