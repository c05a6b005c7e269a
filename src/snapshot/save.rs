//! Atomic replacement of files: at any time, even after a power cut, the file has either the old content or the new one.

use alloc::{format, string::String};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    process,
};

use crate::{filter::CuckooFilter, hash::Hasher, storage::Storage};

/// The number of symbolic links to follow before assuming a cycle.
const MOST_LINKS: usize = 40;

impl<H, S: Storage> CuckooFilter<H, S> {
    /// Writes the filter to a file, which it creates or replaces.
    ///
    /// The write is atomic and durable. The bytes go to a temporary file in the same folder (`.koel-….tmp`), which is renamed
    /// over the old file once it is complete and on the disk. If anything fails before that (an error, a full disk, a power cut),
    /// the old file is still there. When `save` returns, the new file survives a power cut, as far as the operating system can
    /// guarantee it: a folder that the process may write to but not read cannot be synced. Only a killed process leaves its
    /// temporary file behind.
    ///
    /// Because the file is replaced, and not overwritten:
    /// - Processes that have the old file open or mapped keep its content.
    /// - Hard links are broken: the other names of the old file keep the old content.
    /// - The file's permissions are kept. Its owner and group are kept if the process may set them. Access-control lists,
    ///   extended attributes, and the set-user-ID, set-group-ID and sticky bits are not. A new file gets the permissions that the
    ///   umask allows.
    /// - A read-only file is replaced, too: what counts is write access to the folder.
    /// - A symbolic link is kept, and the file that it points to is replaced. This includes `/dev/stdout`, `/dev/fd/3` and the
    ///   like on Linux; to write to an open descriptor, use [`write_to`](CuckooFilter::write_to).
    ///
    /// Processes that load, update and save the same file concurrently need a lock; otherwise updates are lost.
    ///
    /// # Errors
    /// The error of the operating system, with the path. The old file is unchanged, unless the message says that it was replaced
    /// but might come back after a power cut.
    ///
    /// # Example
    /// ```
    /// # let folder = std::env::temp_dir();
    /// # let path = folder.join(format!("koel-doc-{}.koel", std::process::id()));
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert("alice")?;
    /// filter.save(&path)?;
    /// let read = koel::CuckooFilter::read_from(std::fs::File::open(&path)?)?;
    /// assert!(read.contains("alice"));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()>
    where
        H: Hasher,
    {
        replace(path.as_ref(), |file| self.write_to(file))
    }
}

/// Creates or replaces a file with the output of `write`.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let said = |what: &str, error: io::Error| io::Error::new(error.kind(), format!("{}: {what}: {error}", path.display()));
    let target = follow(path).map_err(|error| said("cannot be written", error))?;
    let old = fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        // Renaming over a device or a pipe would destroy it.
        let what = "is not a regular file and cannot be replaced; give another path, or write into it with write_to";
        return Err(io::Error::new(ErrorKind::InvalidInput, format!("{}: {what}", path.display())));
    }
    let failed = if old.is_some() { "cannot be written; it is as it was" } else { "cannot be written" };
    Temporary::beside(&target, old.is_some())
        .and_then(|temporary| {
            write(&temporary.file)?;
            if let Some(old) = &old {
                keep(&temporary.file, old)?;
            }
            temporary.file.sync_all()?;
            temporary.take_the_place_of(&target)
        })
        .map_err(|error| said(failed, error))?;
    sync(folder(&target))
        .map_err(|error| said("was written, but a power cut might bring the old one back: its folder cannot be synced", error))
}

/// A new file that is deleted on drop unless it has replaced the target.
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Temporary {
    /// Creates a file in the folder of the target. If it will replace a file and get its permissions, nobody else may read it
    /// until then; otherwise it has the permissions of any new file.
    fn beside(target: &Path, is_private: bool) -> io::Result<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if is_private {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        #[cfg(not(unix))]
        let _ = is_private;
        loop {
            // Skips files left behind by a killed process with the same id.
            let name = format!(".koel-{}-{}.tmp", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = folder(target).join(name);
            match options.open(&path) {
                Ok(file) => return Ok(Self { path, file }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take_the_place_of(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.path = PathBuf::new();
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            fs::remove_file(&self.path).ok();
        }
    }
}

/// The file to replace, which need not exist: follows symbolic links.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut target = PathBuf::from(path);
    for _ in 0..MOST_LINKS {
        match fs::read_link(&target) {
            Ok(link) => target = folder(&target).join(link),
            Err(_) if target.file_name().is_some() => return Ok(target),
            Err(_) => return Err(io::Error::new(ErrorKind::InvalidInput, String::from("the path has no file name"))),
        }
    }
    let what = format!("leads through more than {MOST_LINKS} symbolic links; give the file they should lead to");
    Err(io::Error::new(ErrorKind::InvalidInput, what))
}

fn folder(path: &Path) -> &Path {
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
    use alloc::string::ToString as _;
    use std::io::Write as _;

    #[test]
    #[cfg_attr(miri, ignore = "Miri is isolated from files")]
    #[cfg_attr(target_family = "wasm", ignore = "WebAssembly has no folder for temporary files")]
    fn what_fails_leaves_nothing_behind_and_the_old_file_as_it_was() {
        let folder = std::env::temp_dir().join(format!("koel-save-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("f.koel");
        let fails = |_: &File| Err(io::Error::new(ErrorKind::StorageFull, "the disk is full"));
        let error = replace(&path, fails).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert!(error.to_string().ends_with("f.koel: cannot be written: the disk is full"), "{error}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        replace(&path, |mut file| file.write_all(b"old")).unwrap();
        let error = replace(&path, |mut file| file.write_all(b"new, but not all of it").and_then(|()| fails(file))).unwrap_err();
        assert!(error.to_string().contains("f.koel: cannot be written; it is as it was: the disk is full"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

    /// The temporary file must not be readable by users who may not read the old file.
    #[test]
    #[cfg_attr(miri, ignore = "Miri is isolated from files")]
    #[cfg(unix)]
    fn what_replaces_a_file_is_private_until_it_has_its_permissions() {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |file: &File| Ok::<_, io::Error>(file.metadata()?.permissions().mode() & 0o7777);
        let folder = std::env::temp_dir().join(format!("koel-private-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("f.koel");
        let usual = mode(&File::create(folder.join("usual")).unwrap()).unwrap();
        let mut seen = alloc::vec![];
        for _ in 0..2 {
            replace(&path, |file| mode(file).map(|mode| seen.push(mode))).unwrap();
        }
        assert_eq!(seen, [usual, 0o600]);
        assert_eq!(mode(&File::open(&path).unwrap()).unwrap(), usual);
        fs::remove_dir_all(&folder).unwrap();
    }
}
