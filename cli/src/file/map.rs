//! Mapped files.

use std::{
    fs::File,
    io::{self, ErrorKind},
    path::Path,
};

use memmap2::Mmap;

/// Maps a regular file, for reading only.
///
/// # Errors
/// If the file cannot be opened or mapped, or is not a regular file.
#[allow(unsafe_code, reason = "a map is only as constant as its file")]
pub(super) fn map(path: &Path) -> io::Result<Mmap> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    // SAFETY: the bytes of a map must stay as they are, which no system enforces. This trusts all who may write to the file. All
    // writers of koel, library and command, replace a file and never change one; a map keeps the file that was replaced. The
    // help of `koel query` asks the same of other programs. The map is read-only, so nothing here can change the file.
    unsafe { Mmap::map(&file) }
}
