//! The filters of the library behind one type, and behind locks, so that every thread may use every filter.

use std::{
    io::{self, Write},
    path::Path,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use koel::{
    CuckooFilter, ElasticFilter, ElasticView, FilterView, MergeError, OutOfMemory, SharedFilter, SnapshotError, SnapshotErrorKind,
};
use pyo3::{prelude::*, sync::RwLockExt as _};

use crate::data::Data;

/// Any filter.
pub enum AnyFilter {
    /// A filter of fixed size.
    Fixed(RwLock<CuckooFilter>),
    /// A growing filter.
    Elastic(RwLock<ElasticFilter>),
    /// A growing filter that locks its partitions itself, so all but `merge` and `union` hold this lock for reading.
    Shared(RwLock<SharedFilter>),
    /// A filter of fixed size in a snapshot.
    View(FilterView<Data>),
    /// A growing filter in a snapshot.
    ElasticView(ElasticView<Data>),
}

/// Locks for reading. A thread that is attached to the interpreter detaches while it waits: otherwise, the thread with the lock
/// might wait for it in turn. No thread runs Python code while it holds a lock.
pub fn read<'a, F>(lock: &'a RwLock<F>, py: Option<Python<'_>>) -> RwLockReadGuard<'a, F> {
    let guard = match py {
        Some(py) => lock.read_py_attached(py),
        None => lock.read(),
    };
    // The library's filters are intact after a panic.
    guard.unwrap_or_else(PoisonError::into_inner)
}

/// Locks for writing, as `read` does for reading.
pub fn write<'a, F>(lock: &'a RwLock<F>, py: Option<Python<'_>>) -> RwLockWriteGuard<'a, F> {
    let guard = match py {
        Some(py) => lock.write_py_attached(py),
        None => lock.write(),
    };
    guard.unwrap_or_else(PoisonError::into_inner)
}

/// Evaluates an expression with a reference to the filter, whichever it is. The first argument is that of `read`.
#[macro_export]
macro_rules! look {
    ($py:expr, $any:expr, $filter:ident => $value:expr) => {
        match $any {
            $crate::filter::AnyFilter::Fixed(lock) => {
                let $filter = &*$crate::filter::read(lock, $py);
                $value
            }
            $crate::filter::AnyFilter::Elastic(lock) => {
                let $filter = &*$crate::filter::read(lock, $py);
                $value
            }
            $crate::filter::AnyFilter::Shared(lock) => {
                let $filter = &*$crate::filter::read(lock, $py);
                $value
            }
            $crate::filter::AnyFilter::View($filter) => $value,
            $crate::filter::AnyFilter::ElasticView($filter) => $value,
        }
    };
}

/// Evaluates an expression that changes the filter; `None` for a view, which no class with such methods has.
#[macro_export]
macro_rules! change {
    ($py:expr, $any:expr, $filter:ident => $value:expr) => {
        match $any {
            $crate::filter::AnyFilter::Fixed(lock) => {
                let $filter = &mut *$crate::filter::write(lock, $py);
                Some($value)
            }
            $crate::filter::AnyFilter::Elastic(lock) => {
                let $filter = &mut *$crate::filter::write(lock, $py);
                Some($value)
            }
            $crate::filter::AnyFilter::Shared(lock) => {
                let $filter = &*$crate::filter::read(lock, $py);
                Some($value)
            }
            $crate::filter::AnyFilter::View(_) | $crate::filter::AnyFilter::ElasticView(_) => None,
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

/// A filter that can be changed.
pub trait Changeable: Sized {
    /// Reads and verifies a snapshot.
    fn read(source: Source<'_>) -> Result<Self, SnapshotError>;
    /// Copies the filter.
    fn duplicate(&self) -> Result<Self, OutOfMemory>;
    /// Adds the items of another filter, or those that are missing.
    fn combine(&mut self, other: &Self, is_union: bool) -> Result<(), MergeError>;
    /// Puts the filter behind a lock.
    fn lock(self) -> AnyFilter;

    /// Reads a snapshot as a filter behind a lock.
    fn read_locked(source: Source<'_>) -> Result<AnyFilter, SnapshotError> {
        Self::read(source).map(Self::lock)
    }
}

macro_rules! changeable {
    ($($filter:ident, $kind:ident;)+) => {$(
        impl Changeable for $filter {
            fn read(source: Source<'_>) -> Result<Self, SnapshotError> {
                match source {
                    Source::Bytes(bytes) => Self::from_bytes(bytes),
                    Source::File(path) => Self::load(path),
                }
            }

            fn duplicate(&self) -> Result<Self, OutOfMemory> {
                self.try_clone()
            }

            fn combine(&mut self, other: &Self, is_union: bool) -> Result<(), MergeError> {
                if is_union { self.union(other) } else { self.merge(other) }
            }

            fn lock(self) -> AnyFilter {
                AnyFilter::$kind(RwLock::new(self))
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

    /// Returns the name of the class.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Fixed(_) => "CuckooFilter",
            Self::Elastic(_) => "ElasticFilter",
            Self::Shared(_) => "SharedFilter",
            Self::View(_) | Self::ElasticView(_) => "FilterView",
        }
    }

    /// Returns a copy of a filter that can be changed; `None` for a view.
    pub fn duplicate(&self) -> Option<Result<Self, OutOfMemory>> {
        change!(None, self, filter => filter.duplicate().map(Changeable::lock))
    }

    /// Compares filters of one kind, or a filter with a view; `None` for other kinds. Blocks, so the thread must be detached.
    pub fn equals(&self, other: &Self) -> Option<io::Result<bool>> {
        Some(Ok(match (self, other) {
            (Self::Fixed(ours), Self::Fixed(theirs)) => compare(ours, theirs),
            (Self::Elastic(ours), Self::Elastic(theirs)) => compare(ours, theirs),
            (Self::Shared(ours), Self::Shared(theirs)) => compare(ours, theirs),
            (Self::View(ours), Self::View(theirs)) => ours == theirs,
            (Self::ElasticView(ours), Self::ElasticView(theirs)) => ours == theirs,
            (Self::Fixed(lock), Self::View(view)) | (Self::View(view), Self::Fixed(lock)) => *read(lock, None) == *view,
            (filter @ (Self::Elastic(_) | Self::Shared(_)), Self::ElasticView(view))
            | (Self::ElasticView(view), filter @ (Self::Elastic(_) | Self::Shared(_))) => {
                let mut expected = Expected(view.data().as_ref());
                return Some(match look!(None, filter, filter => filter.write_to(&mut expected)) {
                    Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(false),
                    written => written.map(|()| expected.0.is_empty()),
                });
            }
            _ => return None,
        }))
    }

    /// Merges another filter into this one; `None` if the two are of different kinds. Blocks, so the thread must be detached.
    pub fn combine(&self, other: &Self, is_union: bool) -> Option<Result<(), MergeError>> {
        match (self, other) {
            (Self::Fixed(ours), Self::Fixed(theirs)) => Some(combine(ours, theirs, is_union)),
            (Self::Elastic(ours), Self::Elastic(theirs)) => Some(combine(ours, theirs, is_union)),
            (Self::Shared(ours), Self::Shared(theirs)) => Some(combine(ours, theirs, is_union)),
            _ => None,
        }
    }
}

/// The bytes that must be written next: others are refused.
struct Expected<'a>(&'a [u8]);

impl Write for Expected<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.strip_prefix(bytes).ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compares two filters. Threads lock two filters in the order of their addresses, so that they do not wait for each other.
fn compare<F: PartialEq>(ours: &RwLock<F>, theirs: &RwLock<F>) -> bool {
    let [first, second] = if (&raw const *ours) < (&raw const *theirs) { [ours, theirs] } else { [theirs, ours] };
    if std::ptr::eq(first, second) {
        return true;
    }
    let first = read(first, None);
    *first == *read(second, None)
}

fn combine<F: Changeable>(ours: &RwLock<F>, theirs: &RwLock<F>, is_union: bool) -> Result<(), MergeError> {
    if std::ptr::eq(ours, theirs) {
        let mut filter = write(ours, None);
        let copy = filter.duplicate()?;
        return filter.combine(&copy, is_union);
    }
    // The order is that of `compare`.
    let (mut filter, other);
    if (&raw const *ours) < (&raw const *theirs) {
        filter = write(ours, None);
        other = read(theirs, None);
    } else {
        other = read(theirs, None);
        filter = write(ours, None);
    }
    filter.combine(&other, is_union)
}
