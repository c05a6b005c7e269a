//! A lane behind a lock.

use alloc::vec::Vec;
use core::{
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicUsize, Ordering},
};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::super::lane::Lane;
use crate::storage::{OutOfMemory, reserved};

/// Processors fetch cache lines in pairs. Locks that are used by different threads are not in the same pair.
#[repr(align(128))]
pub(super) struct LockedLane {
    lane: RwLock<Lane>,
    /// Bytes of its tables, for threads that do not hold the lock.
    table_bytes: AtomicUsize,
}

impl LockedLane {
    /// For reading. A lock is never poisoned in a way that matters: nothing that may panic runs while it is held.
    #[inline]
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Lane> {
        self.lane.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For writing.
    #[inline]
    pub(super) fn write(&self) -> Writer<'_> {
        Writer { lane: self.lane.write().unwrap_or_else(PoisonError::into_inner), table_bytes: &self.table_bytes }
    }

    /// Bytes of its tables at some moment.
    pub(super) fn table_bytes(&self) -> usize {
        self.table_bytes.load(Ordering::Relaxed)
    }
}

/// A lane that the thread may change.
pub(super) struct Writer<'a> {
    lane: RwLockWriteGuard<'a, Lane>,
    table_bytes: &'a AtomicUsize,
}

impl Writer<'_> {
    /// Makes known how many bytes the tables take. To be called after everything that may have changed it.
    pub(super) fn publish(&self) {
        self.table_bytes.store(self.lane.table_bytes(), Ordering::Relaxed);
    }
}

impl Deref for Writer<'_> {
    type Target = Lane;

    #[inline]
    fn deref(&self) -> &Lane {
        &self.lane
    }
}

impl DerefMut for Writer<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Lane {
        &mut self.lane
    }
}

/// Puts lanes behind locks.
pub(super) fn locked(lanes: Vec<Lane>) -> Result<Vec<LockedLane>, OutOfMemory> {
    let mut locked = reserved(lanes.len())?;
    for lane in lanes {
        locked.push(LockedLane { table_bytes: AtomicUsize::new(lane.table_bytes()), lane: RwLock::new(lane) });
    }
    Ok(locked)
}

/// The reverse.
pub(super) fn unlocked(locked: Vec<LockedLane>) -> Result<Vec<Lane>, OutOfMemory> {
    let mut lanes = reserved(locked.len())?;
    lanes.extend(locked.into_iter().map(|lane| lane.lane.into_inner().unwrap_or_else(PoisonError::into_inner)));
    Ok(lanes)
}
