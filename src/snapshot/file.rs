//! Loading files, and replacing them atomically: at any time, even after a power cut, a file has either the old content or the new
//! content.

use core::cmp::Ordering::{Equal, Greater, Less};
use std::{
    fs::{self, File, Metadata},
    io::{self, ErrorKind, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use super::{
    SnapshotError, SnapshotErrorKind,
    error::{save_error, too_long, too_short, try_join},
    format::{Fixed, Header, is_growing},
    read::{Input, Reading, Source, stream},
    temporary::{Temporary, folder},
};

/// The number of symbolic links to follow before assuming a cycle. The error message of `follow_links` repeats it.
const MAX_LINKS: usize = 40;

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> Result<File, SnapshotError> {
    File::open(path).map_err(|error| SnapshotError::io(0, "cannot be opened", error).in_file(path))
}

/// Creates or replaces a file with the snapshot that `write` writes. [Reads it back](read_back) first, so an unreadable snapshot
/// does not replace a readable one.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    replace_with(path, write, read_back)
}

/// Creates or replaces a file of any format, which `check` reads back.
pub(crate) fn replace_with(
    path: &Path,
    write: impl FnOnce(&File) -> io::Result<()>,
    check: impl FnOnce(&File) -> Result<(), SnapshotError>,
) -> io::Result<()> {
    let fail = |message, reason: io::Error| save_error(reason.kind(), path, message, Some(reason));
    let target = follow_links(path).map_err(|error| fail("cannot be written", error))?;
    let old = fs::metadata(&target).ok();
    if let Some(old) = old.as_ref().filter(|old| !old.is_file()) {
        // Renaming over a device or a pipe would destroy it.
        let (kind, message) = if old.is_dir() {
            (ErrorKind::IsADirectory, "is a folder; give the name of a file in it")
        } else {
            (ErrorKind::InvalidInput, "is not a regular file and cannot be replaced; give another path")
        };
        return Err(save_error(kind, path, message, None));
    }
    let has_content = old.as_ref().is_some_and(|old| old.len() > 0);
    let message = if has_content { "cannot be written; the old file is unchanged" } else { "cannot be written" };
    Temporary::beside(&target, old.is_some())
        .and_then(|temporary| {
            write(&temporary.file)?;
            check(&temporary.file).map_err(not_readable)?;
            if let Some(old) = &old {
                copy_permissions(&temporary.file, old)?;
            }
            temporary.file.sync_all()?;
            temporary.rename_to(&target)
        })
        .map_err(|error| fail(message, error))?;
    sync_folder(folder(&target))
        .map_err(|error| fail("was written, but a power cut might bring the old one back: its folder cannot be synced", error))
}

/// Validates the header and the length of a snapshot in a file and, if it has a growing filter, the lists of shards, of which it has
/// one in memory at a time. Reads no tables: they and their checksums were written from the same memory.
fn read_back(file: &File) -> Result<(), SnapshotError> {
    let len = file_length(file)?;
    let mut fill = |bytes: &mut [u8], offset| {
        if offset > len {
            return Err(too_short(len, offset));
        }
        let mut reader = file;
        let moved = reader.seek(SeekFrom::Start(offset));
        moved.map_err(|error| SnapshotError::io(offset, "the file cannot be read again", error))?;
        stream(file)(bytes, offset)
    };
    let header = Input::new(Source::Stream(&mut fill)).header()?;
    if !is_growing(&header) {
        return check_length(file, Header::<Fixed>::decode(&header)?.fields.snapshot_bytes());
    }
    // From the file's start again.
    let mut input = Input::new(Source::Stream(&mut fill));
    Reading::start(&mut input)?.sections(&mut Reading::skip)?;
    check_length(file, input.offset)
}

fn file_length(file: &File) -> Result<u64, SnapshotError> {
    file.metadata().map(|metadata| metadata.len()).map_err(|error| SnapshotError::io(0, "the file has no length", error))
}

/// Fails if the file does not have the expected length.
pub(crate) fn check_length(file: &File, expected: u64) -> Result<(), SnapshotError> {
    let len = file_length(file)?;
    match len.cmp(&expected) {
        Less => Err(too_short(len, expected)),
        Equal => Ok(()),
        Greater => Err(too_long(len, expected)),
    }
}

/// Returns the error for a written file that cannot be read back.
fn not_readable(error: SnapshotError) -> io::Error {
    let error = match error.kind() {
        SnapshotErrorKind::Io | SnapshotErrorKind::OutOfMemory => error,
        _ => error.with_remedy("report this defect of koel; the filter in memory is unchanged"),
    };
    let error = io::Error::from(error);
    save_error(error.kind(), Path::new(""), "the written file cannot be read back and was removed", Some(error))
}

/// Follows symbolic links to the file to replace, which need not exist.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut target = try_join(Path::new(""), path)?;
    for _ in 0..MAX_LINKS {
        // `read_link` allocates even if there is no link, and aborts the program if it cannot.
        let is_link = fs::symlink_metadata(&target).is_ok_and(|target| target.is_symlink());
        match if is_link { fs::read_link(&target).ok() } else { None } {
            Some(link) => target = try_join(folder(&target), &link)?,
            None if target.file_name().is_some() => return Ok(target),
            None => return Err(save_error(ErrorKind::InvalidInput, Path::new(""), "the path has no file name", None)),
        }
    }
    let message = "the path leads through more than 40 symbolic links; give the file they should lead to";
    Err(save_error(ErrorKind::InvalidInput, Path::new(""), message, None))
}

/// Copies owner, group and permissions of `old` to a file. A process that may not change the owner keeps at least the group, if it
/// can. Otherwise the file has the process's own group, which gets no permissions.
#[cfg(unix)]
fn copy_permissions(file: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
    let has_old_group = fchown(file, Some(old.uid()), Some(old.gid())).is_ok() || fchown(file, None, Some(old.gid())).is_ok();
    let mode = old.mode() & if has_old_group { 0o777 } else { 0o707 };
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn copy_permissions(file: &File, old: &Metadata) -> io::Result<()> {
    file.set_permissions(old.permissions())
}

/// Syncs the folder, which makes the rename durable.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // The folder is unreadable, or its file system cannot sync folders, so nothing more can be done.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Ok(())
        }
        other => other,
    }
}

#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "on Unix, it can fail")]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
