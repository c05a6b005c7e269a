//! Loading files, and replacing them atomically: at any time, even after a power cut, a file has either the old content or the new
//! one.

use core::{
    cmp::Ordering::{Equal, Greater, Less},
    error::Error,
    fmt,
};
use std::{
    fs::{self, File, Metadata},
    io::{self, ErrorKind, Seek as _},
    path::{Path, PathBuf},
};

use super::{
    SnapshotError, SnapshotErrorKind,
    error::{Reason, boxed, joined},
    format::{Fixed, Header, is_growing},
    read::{Source, check_lists, header_bytes, stream, too_long, too_short},
    temporary::Temporary,
};

/// The number of symbolic links to follow before assuming a cycle. An error names it.
const MOST_LINKS: usize = 40;

/// Opens a file to read it.
pub(crate) fn open(path: &Path) -> Result<File, SnapshotError> {
    File::open(path).map_err(|error| SnapshotError::io(0, "cannot be opened", error).in_file(path))
}

/// Creates or replaces a file with the snapshot that `write` writes. It is [read back](read_back) first: what no reader would take
/// does not replace what one does.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    replace_with(path, write, read_back)
}

/// The same for files of other formats, which `check` reads back.
pub(crate) fn replace_with(
    path: &Path,
    write: impl FnOnce(&File) -> io::Result<()>,
    check: impl FnOnce(&File) -> Result<(), SnapshotError>,
) -> io::Result<()> {
    let said = |what, reason: io::Error| failed(reason.kind(), path, what, Some(reason));
    let target = follow(path).map_err(|error| said("cannot be written", error))?;
    let old = fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        // Renaming over a device or a pipe would destroy it.
        let what = "is not a regular file and cannot be replaced; give another path, or write into it with write_to";
        return Err(failed(ErrorKind::InvalidInput, path, what, None));
    }
    let what = if old.is_some() { "cannot be written; it is as it was" } else { "cannot be written" };
    Temporary::beside(&target, old.is_some())
        .and_then(|temporary| {
            write(&temporary.file)?;
            check(&temporary.file).map_err(not_readable)?;
            if let Some(old) = &old {
                keep(&temporary.file, old)?;
            }
            temporary.file.sync_all()?;
            temporary.take_the_place_of(&target)
        })
        .map_err(|error| said(what, error))?;
    sync(folder(&target))
        .map_err(|error| said("was written, but a power cut might bring the old one back: its folder cannot be synced", error))
}

/// Validates the header of a snapshot that was written to a file, its length and, if it is of a growing filter, its lists of
/// shards. Reads no tables: what is in them was written beside their checksums, from the same memory.
fn read_back(file: &File) -> Result<(), SnapshotError> {
    let failed = |error| SnapshotError::io(0, "the file cannot be read again", error);
    let mut reader = file;
    reader.rewind().map_err(failed)?;
    let header = header_bytes(&mut Source::Stream(&mut stream(file)))?;
    if !is_growing(&header) {
        return has_length(file, Header::<Fixed>::decode(&header)?.fields.snapshot_bytes());
    }
    reader.rewind().map_err(failed)?;
    check_lists(file, file.metadata().map_err(failed)?.len())
}

/// Fails if the file has another length.
pub(crate) fn has_length(file: &File, expected: u64) -> Result<(), SnapshotError> {
    let len = file.metadata().map_err(|error| SnapshotError::io(0, "the file has no length", error))?.len();
    match len.cmp(&expected) {
        Less => Err(too_short(len, expected)),
        Equal => Ok(()),
        Greater => Err(too_long(len, expected)),
    }
}

/// The error for what was written, but is not a snapshot.
fn not_readable(error: SnapshotError) -> io::Error {
    let error = match error.kind() {
        SnapshotErrorKind::Io | SnapshotErrorKind::OutOfMemory => error,
        _ => error.with_remedy("report this mistake of koel's; the filter in memory is unchanged"),
    };
    let error = io::Error::from(error);
    failed(error.kind(), Path::new(""), "what was written cannot be read back, and was removed", Some(error))
}

/// Why a file cannot be saved. The path may be empty.
#[derive(Debug)]
struct NotSaved {
    path: PathBuf,
    what: &'static str,
    reason: Option<io::Error>,
}

impl fmt::Display for NotSaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.as_os_str().is_empty() {
            write!(f, "{}: ", self.path.display())?;
        }
        f.write_str(self.what)?;
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, ": {}", Reason(reason)))
    }
}

/// Displayed with its reason, it has the source of that.
impl Error for NotSaved {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.reason.as_ref()?.source()
    }
}

/// The error for a file that cannot be saved; its reason alone where there is no memory for more.
pub(super) fn failed(kind: ErrorKind, path: &Path, what: &'static str, reason: Option<io::Error>) -> io::Error {
    let path = joined(Path::new(""), path).unwrap_or_default();
    boxed(kind, NotSaved { path, what, reason }).unwrap_or_else(|error| error.reason.unwrap_or(kind.into()))
}

/// The file to replace, which need not exist: follows symbolic links.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut target = joined(Path::new(""), path)?;
    for _ in 0..MOST_LINKS {
        // `read_link` allocates even if there is no link, and aborts the program where it cannot.
        let is_link = fs::symlink_metadata(&target).is_ok_and(|target| target.is_symlink());
        match if is_link { fs::read_link(&target).ok() } else { None } {
            Some(link) => target = joined(folder(&target), &link)?,
            None if target.file_name().is_some() => return Ok(target),
            None => return Err(failed(ErrorKind::InvalidInput, Path::new(""), "the path has no file name", None)),
        }
    }
    let what = "the path leads through more than 40 symbolic links; give the file they should lead to";
    Err(failed(ErrorKind::InvalidInput, Path::new(""), what, None))
}

pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Copies owner, group and permissions of `old` to a file. A process that may not change the owner keeps at least the group, if
/// it can. If it cannot, the file belongs to the process's own group, which gets no permissions.
#[cfg(unix)]
fn keep(file: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
    let is_kept = fchown(file, Some(old.uid()), Some(old.gid())).is_ok() || fchown(file, None, Some(old.gid())).is_ok();
    let mode = old.mode() & if is_kept { 0o777 } else { 0o707 };
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn keep(file: &File, old: &Metadata) -> io::Result<()> {
    file.set_permissions(old.permissions())
}

/// Syncs the folder, which makes the rename durable.
#[cfg(unix)]
fn sync(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Unreadable folders, and file systems that cannot sync folders: nothing more can be done.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Ok(())
        }
        other => other,
    }
}

#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "on Unix, it can fail")]
fn sync(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{elastic::ElasticFilter, filter::CuckooFilter};
    use alloc::string::ToString as _;
    use std::{io::Write as _, process};

    #[test]
    #[cfg_attr(miri, ignore = "Miri is isolated from files")]
    #[cfg_attr(target_family = "wasm", ignore = "WebAssembly has no folder for temporary files")]
    fn what_fails_leaves_nothing_behind_and_the_old_file_as_it_was() {
        let folder = std::env::temp_dir().join(std::format!("koel-save-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("f.koel");
        let fails = |_: &File| Err(io::Error::new(ErrorKind::StorageFull, "the disk is full"));
        let error = replace(&path, fails).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert!(error.to_string().ends_with("f.koel: cannot be written: the disk is full"), "{error}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        replace_with(&path, |mut file| file.write_all(b"old"), |_| Ok(())).unwrap();
        let error = replace(&path, |mut file| file.write_all(b"new, but not all of it").and_then(|()| fails(file))).unwrap_err();
        assert!(error.to_string().contains("f.koel: cannot be written; it is as it was: the disk is full"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

    /// A writer that makes any mistake in what leads to the tables replaces no file.
    #[test]
    #[cfg_attr(miri, ignore = "Miri is isolated from files")]
    #[cfg_attr(target_family = "wasm", ignore = "WebAssembly has no folder for temporary files")]
    fn what_no_reader_would_take_does_not_replace_a_file() {
        let folder = std::env::temp_dir().join(std::format!("koel-back-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("f.koel");
        let mut fixed = CuckooFilter::builder().capacity(100).false_positive_rate(0.01).build().unwrap();
        fixed.insert("koel").unwrap();
        let growing = ElasticFilter::builder().capacity(100).max_capacity(1000).false_positive_rate(0.01);
        let growing = {
            let mut filter = growing.build().unwrap();
            filter.insert_iter(0..2000_u64).unwrap();
            filter.to_bytes()
        };
        // Of the growing ones, the header, and that and the list of the first partition.
        for (right, listed) in [(fixed.to_bytes(), 64), (growing, 64 + 32 + 16)] {
            let write = |bytes: &[u8]| replace(&path, |mut file| file.write_all(bytes));
            write(&right).unwrap();
            let wrong = |at: usize| {
                let mut bytes = right.clone();
                bytes[at] ^= 4;
                bytes
            };
            let longer = [&right[..], &[0]].concat();
            let shorter = (0..4).map(|n| right[..n * (right.len() - 1) / 3].to_vec());
            for bytes in (0..listed).map(wrong).chain(shorter).chain([longer]) {
                let error = write(&bytes).unwrap_err().to_string();
                assert!(
                    error.contains("f.koel: cannot be written; it is as it was: what was written cannot be read back"),
                    "{error}"
                );
                assert!(fs::read(&path).unwrap() == right);
                assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
            }
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    /// The temporary file must not be readable by users who may not read the old file.
    #[test]
    #[cfg_attr(miri, ignore = "Miri is isolated from files")]
    #[cfg(unix)]
    fn what_replaces_a_file_is_private_until_it_has_its_permissions() {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |file: &File| Ok::<_, io::Error>(file.metadata()?.permissions().mode() & 0o7777);
        let folder = std::env::temp_dir().join(std::format!("koel-private-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("f.koel");
        let usual = mode(&File::create(folder.join("usual")).unwrap()).unwrap();
        let mut seen = alloc::vec![];
        for _ in 0..2 {
            replace_with(&path, |file| mode(file).map(|mode| seen.push(mode)), |_| Ok(())).unwrap();
        }
        assert_eq!(seen, [usual, 0o600]);
        assert_eq!(mode(&File::open(&path).unwrap()).unwrap(), usual);
        fs::remove_dir_all(&folder).unwrap();
    }
}
