//! A lane behind a lock.

use alloc::vec::Vec;
use core::{
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicUsize, Ordering},
};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::super::lane::{LANE_BYTES, Lane};

/// Processors fetch cache lines in pairs. Locks that are used by different threads are not in the same pair.
#[repr(align(128))]
pub(in crate::elastic) struct LockedLane {
    lane: RwLock<Lane>,
    /// What it is charged, for threads that do not hold the lock.
    charged: AtomicUsize,
}

const _: () = assert!(size_of::<LockedLane>() <= LANE_BYTES);

impl LockedLane {
    /// For reading. A lock is never poisoned in a way that matters: nothing that may panic runs while it is held.
    #[inline]
    pub(in crate::elastic) fn read(&self) -> RwLockReadGuard<'_, Lane> {
        self.lane.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For writing.
    #[inline]
    pub(super) fn write(&self) -> Writer<'_> {
        Writer { lane: self.lane.write().unwrap_or_else(PoisonError::into_inner), charged: &self.charged }
    }

    /// What it was charged at some moment.
    pub(super) fn charged(&self) -> usize {
        self.charged.load(Ordering::Relaxed)
    }
}

/// A lane that the thread may change.
pub(super) struct Writer<'a> {
    lane: RwLockWriteGuard<'a, Lane>,
    charged: &'a AtomicUsize,
}

impl Writer<'_> {
    /// Makes known what the lane is charged. To be called after everything that may have changed it.
    pub(super) fn publish(&self) {
        self.charged.store(self.lane.charged(), Ordering::Relaxed);
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

/// Puts lanes behind locks, into a vector that has room for them.
pub(in crate::elastic) fn locked(lanes: Vec<Lane>, mut locked: Vec<LockedLane>) -> Vec<LockedLane> {
    locked
        .extend(lanes.into_iter().map(|lane| LockedLane { charged: AtomicUsize::new(lane.charged()), lane: RwLock::new(lane) }));
    locked
}

/// The reverse.
pub(super) fn unlocked(locked: Vec<LockedLane>, mut lanes: Vec<Lane>) -> Vec<Lane> {
    lanes.extend(locked.into_iter().map(|lane| lane.lane.into_inner().unwrap_or_else(PoisonError::into_inner)));
    lanes
}
