//! Snapshots in files, read where the system has them.

use alloc::format;
use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    path::Path,
};

use memmap2::Mmap;

use super::{
    format::HEADER_BYTES,
    read::{open, view, xxh3},
};
use crate::{
    error::SnapshotError,
    filter::FilterView,
    hash::{Hasher, HasherId},
    storage::Borrowed,
};

impl FilterView<'static> {
    /// The filter in a snapshot's file, mapped into memory: opened in a moment, however large it is, and shared with every other
    /// process that maps it. The system reads a page of it when that is asked for, and may forget it again.
    ///
    /// Checks what [`over`](FilterView::over) checks. [`read_from`](crate::CuckooFilter::read_from) is for what is no file, or
    /// may change.
    ///
    /// # What a map trusts
    /// The file must stay as it is for as long as the view is there. Nobody can promise that of a file to which others may
    /// write: if one is cut short, the system ends the process at the next look-up that needs what is gone; if its bytes are
    /// changed in place, the answers change with them, and the language calls that undefined behaviour. What
    /// [`save`](crate::CuckooFilter::save) and the command `koel` write is safe: they never change a file, but put another in
    /// its place, and the view goes on with the one it has.
    ///
    /// # Errors
    /// What is wrong with the bytes, and where; or, as the kind [`Io`](crate::SnapshotErrorKind::Io), why the file cannot be
    /// mapped.
    ///
    /// # Example
    /// ```no_run
    /// let seen = koel::FilterView::open("seen.koel")?;
    /// println!("{}", seen.contains("alice"));
    /// # Ok::<(), koel::SnapshotError>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        Self::open_with(path, xxh3)
    }
}

impl<H: Hasher> FilterView<'static, H> {
    /// [`open`](FilterView::open) for filters with other hashers, as
    /// [`from_bytes_with`](crate::CuckooFilter::from_bytes_with) takes them.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_with(path: impl AsRef<Path>, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        let failed = |what: &str, error| SnapshotError::io(0, format!("{}: {what}", path.display()), error);
        // Before it is opened: a pipe would wait for somebody to write into it.
        if !fs::metadata(path).map_err(|error| failed("cannot be opened", error))?.is_file() {
            let what = "is no regular file, so that it cannot be mapped; read it with read_from";
            return Err(failed(what, io::Error::from(ErrorKind::InvalidInput)));
        }
        let file = File::open(path).map_err(|error| failed("cannot be opened", error))?;
        #[allow(unsafe_code, reason = "a map is only as constant as its file")]
        // SAFETY: that the file stays as it is, is asked of the caller above; it cannot be had otherwise.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| failed("cannot be mapped into memory", error))?;
        let opened = open(&map, hasher)?;
        Ok(view(opened, Borrowed::mapped(map, HEADER_BYTES)))
    }
}
