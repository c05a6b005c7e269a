//! Temporary files beside the files that they replace.
//!
//! A temporary file's name follows from the target's name and a number, so a saver finds the leftovers of killed savers. A saver
//! holds the lock of its temporary file until it ends or is killed. So a file that is not locked is a leftover, and the next saver
//! removes it. A file whose lock is held, or that cannot be locked or removed, stays, and the saver takes the next number. It does
//! not wait, because anyone who may write to the folder could hold a lock forever.
//!
//! A saver writes only to a file that it has just created. It opens a file that others put at one of the names for nothing but its
//! lock. Before it removes or renames a file by name, it checks that the name leads to the locked file.

use alloc::string::String;
use core::fmt::Write as _;
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use super::{
    error::{save_error, try_join},
    format::checksum,
};

/// The number of names that are searched for leftovers. If more savers run at the same time, they take further names, which are not
/// searched.
const SEARCHED: u32 = 16;

/// The longest name. It has a hash instead of the target's name, which may be too long for a suffix.
const LONGEST_NAME: &str = ".koel-0123456789abcdef-4294967295.tmp";

/// A new file that is deleted on drop unless it has replaced the target.
pub(super) struct Temporary {
    path: PathBuf,
    pub file: File,
}

impl Temporary {
    /// Creates a file in the folder of the target, and removes leftovers of killed savers. If the file `is_private`, only its owner
    /// may read it until it gets the permissions of the old file; otherwise it has those of any new file.
    pub fn beside(target: &Path, is_private: bool) -> io::Result<Self> {
        let mut names = Names::of(target)?;
        (0..SEARCHED).for_each(|number| remove_leftover(names.nth(number)));
        let mut options = options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if is_private {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        #[cfg(not(unix))]
        let _ = is_private;
        let mut number = 0;
        loop {
            let path = names.nth(number);
            match options.open(path) {
                // Another saver took the file for a leftover before it was locked here, and removes it.
                Ok(file) if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) || !is_at(&file, path) => {}
                // The file is locked, or the file system has no locks, so that nobody removes leftovers.
                Ok(file) => return Ok(Self { path: names.path, file }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            number += 1;
        }
    }

    /// Renames the file to `target`, which it replaces.
    pub fn rename_to(mut self, target: &Path) -> io::Result<()> {
        if !is_at(&self.file, &self.path) {
            let message = "another program removed or replaced the temporary file; save again";
            return Err(save_error(ErrorKind::Other, &self.path, message, None));
        }
        fs::rename(&self.path, target)?;
        self.path = PathBuf::new();
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() && is_at(&self.file, &self.path) {
            fs::remove_file(&self.path).ok();
        }
    }
}

/// The names of a target's temporary files. They have a hash of the target's name; savers of two targets with the same hash do not
/// disturb each other.
struct Names {
    hash: u64,
    name: String,
    path: PathBuf,
}

impl Names {
    fn of(target: &Path) -> io::Result<Self> {
        let mut name = String::new();
        name.try_reserve_exact(LONGEST_NAME.len()).map_err(|_| ErrorKind::OutOfMemory)?;
        let path = try_join(folder(target), Path::new(LONGEST_NAME))?;
        let hash = checksum(target.file_name().unwrap_or_default().as_encoded_bytes(), 0);
        Ok(Self { hash, name, path })
    }

    /// Returns the path with this number. Allocates nothing, because there is room for the longest name.
    fn nth(&mut self, number: u32) -> &Path {
        self.name.clear();
        _ = write!(self.name, ".koel-{:016x}-{number}.tmp", self.hash);
        self.path.set_file_name(&self.name);
        &self.path
    }
}

/// Removes the file if a killed saver left it. Anything else stays.
fn remove_leftover(path: &Path) {
    // A pipe must not be opened, and a symbolic link must not be followed.
    if !fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        return;
    }
    // Network file systems lock files only for users who may write to them, but a killed saver may have write-protected its file.
    let Ok(file) = options().write(true).open(path).or_else(|_| options().open(path)) else { return };
    if file.try_lock().is_ok() && is_at(&file, path) {
        // If this fails, the name stays taken, and the saver tries the next one.
        fs::remove_file(path).ok();
    }
}

/// Returns the folder of a file.
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(windows)]
    {
        use std::os::windows::fs::OpenOptionsExt as _;
        // Others may rename or remove the file, but not open it. On Windows this is the lock, which is held from creation on.
        const FILE_SHARE_DELETE: u32 = 4;
        options.share_mode(FILE_SHARE_DELETE);
    }
    options
}

/// Returns true if the path leads to the file itself, and not through a symbolic link.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    file.metadata().is_ok_and(|file| fs::symlink_metadata(path).is_ok_and(|found| identity(file) == identity(found)))
}

/// Returns true. On Windows the path leads to the file, since nobody else could open it. Elsewhere there are no locks, so nothing
/// is removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests;
