//! Counters with which tests bound the work of single operations.

use std::{cell::Cell, thread_local};

thread_local! {
    static BUCKETS: Cell<u64> = const { Cell::new(0) };
    static ENTRIES: Cell<u64> = const { Cell::new(0) };
    static ROOM_CHECKS: Cell<usize> = const { Cell::new(0) };
    static READS: Cell<usize> = const { Cell::new(0) };
}

/// Counts buckets that a walk, or a search for second copies, reads.
pub(crate) fn count_buckets(buckets: u64) {
    BUCKETS.set(BUCKETS.get() + buckets);
}

/// Counts entries of lists that are moved.
pub(crate) fn count_entries(entries: u64) {
    ENTRIES.set(ENTRIES.get() + entries);
}

/// Returns the buckets and the entries that have been counted since the last call.
pub(crate) fn taken() -> (u64, u64) {
    (BUCKETS.take(), ENTRIES.take())
}

/// Counts a bucket that a walk checks for room.
pub(crate) fn count_room_check() {
    ROOM_CHECKS.set(ROOM_CHECKS.get() + 1);
}

/// Counts a bucket whose residents a walk reads.
pub(crate) fn count_read() {
    READS.set(READS.get() + 1);
}

/// Returns how many buckets walks have checked for room, and how many they have read, since the last call.
pub(crate) fn walked() -> (usize, usize) {
    (ROOM_CHECKS.take(), READS.take())
}
