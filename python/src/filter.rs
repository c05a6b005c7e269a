//! The filters of the library behind one type, and behind locks, so that every thread may use every filter.

#[cfg(unix)]
use std::os::fd::AsRawFd as _;
#[cfg(target_os = "linux")]
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    path::Path,
};

use koel::{
    CuckooFilter, ElasticFilter, ElasticView, FilterView, MergeError, OutOfMemory, SharedFilter, SnapshotError, SnapshotErrorKind,
};
use pyo3::prelude::*;

use crate::{
    data::Data,
    error::{os_error, trailing_bytes},
    lock::{Lock, check_signals},
};

/// Any filter.
pub enum AnyFilter {
    /// A filter of fixed size.
    Fixed(Lock<CuckooFilter>),
    /// A growing filter.
    Elastic(Lock<ElasticFilter>),
    /// A growing filter that locks its partitions itself, so all but `merge`, `union` and `intersection` hold this lock for reading.
    Shared(Lock<SharedFilter>),
    /// A filter of fixed size in a snapshot.
    View(FilterView<Data>),
    /// A growing filter in a snapshot.
    ElasticView(ElasticView<Data>),
}

/// Evaluates an expression with a reference to the filter, whichever it is. The first argument is that of [`Lock::read`]. The result
/// is an error if a signal handler raised one while another thread held the lock.
macro_rules! look {
    ($py:expr, $any:expr, $filter:ident => $value:expr) => {
        match $any {
            $crate::filter::AnyFilter::Fixed(lock) => lock.read($py, |$filter| $value),
            $crate::filter::AnyFilter::Elastic(lock) => lock.read($py, |$filter| $value),
            $crate::filter::AnyFilter::Shared(lock) => lock.share($py, |$filter| $value),
            $crate::filter::AnyFilter::View($filter) => Ok($value),
            $crate::filter::AnyFilter::ElasticView($filter) => Ok($value),
        }
    };
}
pub(crate) use look;

/// Evaluates an expression that changes the filter, as `look` does. It is no view: no class with such methods has one.
macro_rules! change {
    ($py:expr, $any:expr, $filter:ident => $value:expr) => {
        match $any {
            $crate::filter::AnyFilter::Fixed(lock) => lock.write($py, |$filter| $value),
            $crate::filter::AnyFilter::Elastic(lock) => lock.write($py, |$filter| $value),
            $crate::filter::AnyFilter::Shared(lock) => lock.share($py, |$filter| $value),
            $crate::filter::AnyFilter::View(_) | $crate::filter::AnyFilter::ElasticView(_) => unreachable!("views do not change"),
        }
    };
}
pub(crate) use change;

/// Evaluates an expression with the filter, while no thread changes it. Other threads may change a `SharedFilter` while `look` does.
macro_rules! unchanging {
    ($any:expr, $filter:ident => $value:expr) => {
        match $any {
            AnyFilter::Shared(lock) => lock.write(None, |$filter| $value),
            any => look!(None, any, $filter => $value),
        }
    };
}

/// Where a snapshot is.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// In memory.
    Bytes(&'a [u8]),
    /// In a file.
    File(&'a Path),
}

/// How two filters are combined.
#[derive(Clone, Copy)]
pub enum Combine {
    /// All copies of both.
    Merge,
    /// The larger number of copies of each item.
    Union,
    /// The smaller number.
    Intersection,
}

/// A filter that can be changed.
pub trait Changeable: Send + Sync + Sized {
    /// Reads and verifies a snapshot.
    fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError>;
    /// Reads and verifies a snapshot in an open file.
    fn read_from(file: impl Read) -> Result<Self, SnapshotError>;
    /// Copies the filter.
    fn duplicate(&self) -> Result<Self, OutOfMemory>;
    /// Combines this filter with another one.
    fn combine(&mut self, other: &Self, how: Combine) -> Result<(), MergeError>;
    /// Puts the filter behind a lock.
    fn lock(self) -> AnyFilter;

    /// Reads a snapshot as a filter behind a lock. Ctrl-C ends the reading of a file. Blocks, so the thread must be detached.
    fn read_locked(source: Source<'_>) -> PyResult<Result<AnyFilter, SnapshotError>> {
        let read = match source {
            Source::Bytes(bytes) => Self::from_bytes(bytes),
            Source::File(path) => {
                let mut file = Interruptible::open(path).map_err(|error| os_error(&error, path))?;
                let read = Self::read_from(&mut file).map_err(|error| error.in_file(path));
                let end = file.offset;
                let next = if read.is_ok() { file.read(&mut [0]) } else { Ok(0) };
                if let Some(error) = file.raised {
                    return Err(error);
                }
                match next.map_err(|error| os_error(&error, path))? {
                    0 => read,
                    // The library's `load` would open a pipe again, which then has other bytes.
                    _ => return Err(trailing_bytes(path, end)),
                }
            }
        };
        Ok(read.map(Self::lock))
    }
}

/// A file in whose reading signal handlers are called.
struct Interruptible {
    file: File,
    /// The number of bytes that were read.
    offset: u64,
    raised: Option<PyErr>,
}

/// The most bytes to read between two looks for signals.
const READ: usize = 1 << 24;

impl Interruptible {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: open(path)?, offset: 0, raised: None })
    }
}

/// Opens a file. `open` waits until a pipe has a writer, and the standard library goes on with that after a signal. Linux can also open a
/// pipe at once: until a writer comes, `poll` then reports neither bytes nor the pipe's end.
fn open(path: &Path) -> io::Result<File> {
    #[cfg(target_os = "linux")]
    if path.metadata().is_ok_and(|found| found.file_type().is_fifo()) {
        return File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    }
    File::open(path)
}

impl Read for Interruptible {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = bytes.len().min(READ);
        loop {
            if let Err(error) = check_signals() {
                self.raised = Some(error);
                return Err(ErrorKind::Other.into());
            }
            if !has_bytes_soon(&self.file) {
                continue;
            }
            match self.file.read(&mut bytes[..len]) {
                // Another process may have read the bytes of a pipe.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                read => return read.inspect(|&bytes| self.offset += bytes as u64),
            }
        }
    }
}

/// Waits for bytes, the end of a file or an error, or until a signal comes or a moment has passed. Returns false for the last two: unlike
/// this, a read may go on after a signal (`SA_RESTART`), so that its handler would have to wait for bytes.
#[cfg(unix)]
#[allow(unsafe_code, reason = "the standard library has no such call")]
fn has_bytes_soon(file: &File) -> bool {
    const MILLISECONDS: libc::c_int = 50;
    let mut polled = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: The pointer is to one such struct, and the file is open.
    match unsafe { libc::poll(&raw mut polled, 1, MILLISECONDS) } {
        0 => false,
        -1 => io::Error::last_os_error().kind() != ErrorKind::Interrupted,
        _ => true,
    }
}

#[cfg(not(unix))]
fn has_bytes_soon(_: &File) -> bool {
    true
}

macro_rules! changeable {
    ($($filter:ident, $kind:ident;)+) => {$(
        impl Changeable for $filter {
            fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
                Self::from_bytes(bytes)
            }

            fn read_from(file: impl Read) -> Result<Self, SnapshotError> {
                Self::read_from(file)
            }

            fn duplicate(&self) -> Result<Self, OutOfMemory> {
                self.try_clone()
            }

            fn combine(&mut self, other: &Self, how: Combine) -> Result<(), MergeError> {
                match how {
                    Combine::Merge => self.merge(other),
                    Combine::Union => self.union(other),
                    Combine::Intersection => self.intersect(other),
                }
            }

            fn lock(self) -> AnyFilter {
                AnyFilter::$kind(Lock::new(self))
            }
        }
    )+};
}
changeable! {
    CuckooFilter, Fixed;
    ElasticFilter, Elastic;
    SharedFilter, Shared;
}

impl AnyFilter {
    /// Opens a snapshot of either kind.
    pub fn open(data: Data) -> Result<Self, SnapshotError> {
        let is_growing = match FilterView::over(data.as_ref()) {
            Err(error) if error.kind() == SnapshotErrorKind::OtherType => true,
            opened => opened.map(|_| false)?,
        };
        if is_growing { ElasticView::over(data).map(Self::ElasticView) } else { FilterView::over(data).map(Self::View) }
    }

    /// Returns the seed of the hash function.
    pub fn seed(&mut self) -> u64 {
        match self {
            Self::Fixed(lock) => lock.get_mut().params().seed(),
            Self::Elastic(lock) => lock.get_mut().params().seed(),
            Self::Shared(lock) => lock.get_mut().params().seed(),
            Self::View(view) => view.params().seed(),
            Self::ElasticView(view) => view.params().seed(),
        }
    }

    /// Returns the name of the class.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Fixed(_) => "CuckooFilter",
            Self::Elastic(_) => "ElasticFilter",
            Self::Shared(_) => "SharedFilter",
            Self::View(_) | Self::ElasticView(_) => "FilterView",
        }
    }

    /// Writes the snapshot to `bytes`. Returns false if it has another length by now. The thread must be detached.
    pub fn write_to(&self, bytes: &mut [u8]) -> PyResult<bool> {
        let len = bytes.len() as u64;
        Ok(unchanging!(self, filter => (filter.snapshot_bytes() == len).then(|| filter.write_to(bytes)))?.transpose()?.is_some())
    }

    /// Returns the snapshot. The thread must be detached.
    pub fn to_vec(&self) -> PyResult<Vec<u8>> {
        let written = unchanging!(self, filter => {
            let (mut bytes, len) = (Vec::new(), filter.snapshot_bytes());
            match usize::try_from(len).map(|len| bytes.try_reserve_exact(len)) {
                Ok(Ok(())) => filter.write_to(&mut bytes).map(|()| bytes),
                _ => Err(ErrorKind::OutOfMemory.into()),
            }
        });
        Ok(written??)
    }

    /// Returns a copy of a filter that can be changed; `None` for a view.
    pub fn duplicate(&self) -> PyResult<Option<Result<Self, OutOfMemory>>> {
        Ok(match self {
            Self::View(_) | Self::ElasticView(_) => None,
            any => Some(change!(None, any, filter => filter.duplicate().map(Changeable::lock))?),
        })
    }

    /// Compares the contents of two filters of fixed size, or of two that grow; `None` for one of each. Blocks, so the thread must be
    /// detached.
    pub fn equals(&self, other: &Self) -> PyResult<Option<bool>> {
        Ok(Some(match (self, other) {
            (Self::Fixed(ours), Self::Fixed(theirs)) => ours.read_with(theirs, PartialEq::eq)?,
            (Self::Elastic(ours), Self::Elastic(theirs)) => ours.read_with(theirs, PartialEq::eq)?,
            (Self::Shared(ours), Self::Shared(theirs)) => ours.read_with(theirs, PartialEq::eq)?,
            (Self::Elastic(elastic), Self::Shared(shared)) | (Self::Shared(shared), Self::Elastic(elastic)) => {
                elastic.read_with(shared, PartialEq::eq)?
            }
            (Self::View(ours), Self::View(theirs)) => ours == theirs,
            (Self::ElasticView(ours), Self::ElasticView(theirs)) => ours == theirs,
            (Self::Fixed(lock), Self::View(view)) | (Self::View(view), Self::Fixed(lock)) => {
                lock.read(None, |filter| *filter == *view)?
            }
            (Self::Elastic(lock), Self::ElasticView(view)) | (Self::ElasticView(view), Self::Elastic(lock)) => {
                lock.read(None, |filter| *filter == *view)?
            }
            (Self::Shared(lock), Self::ElasticView(view)) | (Self::ElasticView(view), Self::Shared(lock)) => {
                lock.share(None, |filter| *filter == *view)?
            }
            _ => return Ok(None),
        }))
    }

    /// Combines this filter with another one; `None` if the two are of different kinds. Blocks, so the thread must be detached.
    pub fn combine(&self, other: &Self, how: Combine) -> PyResult<Option<Result<(), MergeError>>> {
        match (self, other) {
            (Self::Fixed(ours), Self::Fixed(theirs)) => combine(ours, theirs, how).map(Some),
            (Self::Elastic(ours), Self::Elastic(theirs)) => combine(ours, theirs, how).map(Some),
            (Self::Shared(ours), Self::Shared(theirs)) => combine(ours, theirs, how).map(Some),
            _ => Ok(None),
        }
    }
}

fn combine<F: Changeable>(ours: &Lock<F>, theirs: &Lock<F>, how: Combine) -> PyResult<Result<(), MergeError>> {
    ours.write_with(theirs, |ours, theirs| {
        let Some(theirs) = theirs else {
            let copy = ours.duplicate()?;
            return ours.combine(&copy, how);
        };
        ours.combine(theirs, how)
    })
}
