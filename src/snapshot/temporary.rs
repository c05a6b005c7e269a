//! Temporary files beside the file that they replace.
//!
//! The names follow from that file's name and a number, so a saver finds what earlier ones left behind when they were killed. A
//! saver holds the lock of its temporary file until it ends, however it ends: a file without a lock is a leftover, and is
//! removed. A file whose lock is held, or that cannot be locked or removed, stays, and the saver takes the next number. It does
//! not wait, because whoever may write to the folder could hold a lock for ever.
//!
//! Every write goes to a file that the saver has just created: what others put at one of the names is never opened for more than
//! its lock. Before a file is removed or renamed by its name, the name is checked to lead to the file that is locked.

use alloc::string::String;
use core::fmt::Write as _;
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use super::{
    error::joined,
    file::{failed, folder},
    format::checksum,
};

/// The names that are searched for leftovers. More savers than this at the same time take further ones, which are not searched.
const SEARCHED: u32 = 16;

/// The longest name. A hash stands for the target's name, which may be so long that it takes no suffix.
const LONGEST: &str = ".koel-0123456789abcdef-4294967295.tmp";

/// A new file that is deleted on drop unless it has replaced the target.
pub(super) struct Temporary {
    path: PathBuf,
    pub file: File,
}

impl Temporary {
    /// Creates a file in the folder of the target, and removes leftovers of killed savers. If it will replace a file and get its
    /// permissions, nobody else may read it until then; otherwise it has the permissions of any new file.
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
                // Another saver that looked for leftovers before the file was locked has locked it, and removes it.
                Ok(file) if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) || !is_at(&file, path) => {}
                // File systems without locks have no leftovers that can be told from files in use.
                Ok(file) => return Ok(Self { path: names.path, file }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            number += 1;
        }
    }

    pub fn take_the_place_of(mut self, target: &Path) -> io::Result<()> {
        if !is_at(&self.file, &self.path) {
            let what = "another program removed or replaced the temporary file; save again";
            return Err(failed(ErrorKind::Other, &self.path, what, None));
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

/// The names of a target's temporary files. They differ from those of other targets in the folder, as far as a hash does: savers
/// of two targets with the same names do each other no harm.
struct Names {
    hash: u64,
    name: String,
    path: PathBuf,
}

impl Names {
    fn of(target: &Path) -> io::Result<Self> {
        let mut name = String::new();
        name.try_reserve_exact(LONGEST.len()).map_err(|_| ErrorKind::OutOfMemory)?;
        let path = joined(folder(target), Path::new(LONGEST))?;
        let hash = checksum(target.file_name().unwrap_or_default().as_encoded_bytes(), 0);
        Ok(Self { hash, name, path })
    }

    /// Allocates nothing: there is room for the longest name.
    fn nth(&mut self, number: u32) -> &Path {
        self.name.clear();
        _ = write!(self.name, ".koel-{:016x}-{number}.tmp", self.hash);
        self.path.set_file_name(&self.name);
        &self.path
    }
}

/// Removes the file of a saver that was killed. Anything else stays.
fn remove_leftover(path: &Path) {
    // A pipe must not be opened, and a symbolic link not be followed.
    if !fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        return;
    }
    // Network file systems lock files only for those who may write to them; a killed saver may have write-protected its file.
    let Ok(file) = options().write(true).open(path).or_else(|_| options().open(path)) else { return };
    if file.try_lock().is_ok() && is_at(&file, path) {
        // If this fails, the name is taken, and the next one is tried.
        fs::remove_file(path).ok();
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(windows)]
    {
        use std::os::windows::fs::OpenOptionsExt as _;
        // Nobody else may open the file, only rename or remove it: on Windows this is the lock, held from creation on.
        const FILE_SHARE_DELETE: u32 = 4;
        options.share_mode(FILE_SHARE_DELETE);
    }
    options
}

/// Does the path lead to the file itself, and not by a symbolic link?
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    file.metadata().is_ok_and(|file| fs::symlink_metadata(path).is_ok_and(|found| identity(file) == identity(found)))
}

/// Does the path lead to the file itself? On Windows it does, since nobody else could open the file. Elsewhere there are no locks,
/// so nothing is removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests;
