//! Locks: only one command at a time changes a file.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind, IsTerminal as _},
    path::Path,
};

use anyhow::Context as _;

use crate::messages;

/// What a locked file is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// To be replaced by a file that does not depend on its content.
    Replace,
    /// To be read, and then to be replaced.
    ReadAndReplace,
}

/// The lock on a file, held until it is dropped.
///
/// It belongs to the file, not to its path, and a file is changed by renaming another over it: what matters is the file that the
/// path leads to while the lock is held, see [`Lock::is_at`].
pub(crate) struct Lock(File);

impl Lock {
    /// Locks the file that a path leads to, as soon as no other command holds its lock. `None` if there is no file.
    ///
    /// Fails if the file is write-protected: replacing it would take write access to the folder only, but the protection is there
    /// for a reason.
    pub(crate) fn wait(path: &Path, access: Access) -> anyhow::Result<Option<Self>> {
        let name = path.display();
        loop {
            let file = match OpenOptions::new().read(access == Access::ReadAndReplace).write(true).open(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                opened => opened.with_context(|| format!("{name}: cannot be written"))?,
            };
            let locked = match file.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    if io::stderr().is_terminal() {
                        messages::say(format_args!("koel: {name}: waiting for another command that is changing it\n"));
                    }
                    file.lock()
                }
                Err(TryLockError::Error(error)) => Err(error),
                Ok(()) => Ok(()),
            };
            match locked {
                // On file systems without locks, the later of two changes wins.
                Err(error) if error.kind() != ErrorKind::Unsupported => {
                    return Err(error).with_context(|| format!("{name}: cannot be locked"));
                }
                _ => {}
            }
            // The command that held the lock has probably renamed another file over this one.
            let lock = Self(file);
            if lock.is_at(path) {
                return Ok(Some(lock));
            }
        }
    }

    /// Does the path lead to the locked file?
    #[cfg(unix)]
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        self.0.metadata().is_ok_and(|locked| fs::metadata(path).is_ok_and(|found| identity(locked) == identity(found)))
    }

    /// Does the path lead to the locked file? Without an identity to compare, any file will do.
    #[cfg(not(unix))]
    #[allow(clippy::unused_self, reason = "on Unix, the lock knows its file")]
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        fs::exists(path).is_ok_and(|exists| exists)
    }

    /// The locked file, to be read from its start.
    pub(crate) fn file(&self) -> &File {
        &self.0
    }
}
