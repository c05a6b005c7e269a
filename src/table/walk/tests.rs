//! Tests of how far walks search, and that they find every place.

use alloc::{format, vec, vec::Vec};
use core::{cell::Cell, ops::Range};

use super::{CopyPolicy, LONG_WALK, MAX_EXPANDED, store_fingerprint};
use crate::{
    bits::index,
    params::{Addressing, Params, TableKind},
    storage::Owned,
    table::{
        Address, Change, Corrupt, Fingerprint, Form, Geometry, Pair, Portable, Read, Single, Table, TableMut, Uniform,
        packed::Narrow,
    },
};

/// Counters of the calls of `has_room` and of `values`.
#[derive(Default)]
struct Counts {
    room_checks: Cell<usize>,
    reads: Cell<usize>,
}

struct Counting<'c, T> {
    table: &'c mut T,
    counts: &'c Counts,
}

impl<T: Table> Table for Counting<'_, T> {
    type Slot = T::Slot;
    type Values = T::Values;

    fn contains(&self, buckets: Pair, fingerprint: Fingerprint) -> bool {
        self.table.contains(buckets, fingerprint)
    }
    fn values(&self, bucket: u64) -> T::Values {
        self.counts.reads.set(self.counts.reads.get() + 1);
        self.table.values(bucket)
    }
    fn has_room(&self, bucket: u64) -> bool {
        self.counts.room_checks.set(self.counts.room_checks.get() + 1);
        self.table.has_room(bucket)
    }
    fn prefetch(&self, bucket: u64) {
        self.table.prefetch(bucket);
    }
    fn taken(&self, buckets: Range<u64>, low: Option<Fingerprint>) -> Option<u64> {
        self.table.taken(buckets, low)
    }
    fn corrupt(&self, bucket: u64, low: Option<Fingerprint>) -> Option<Corrupt> {
        self.table.corrupt(bucket, low)
    }
    fn len_in_bytes(&self) -> usize {
        self.table.len_in_bytes()
    }
}

impl<T: TableMut> TableMut for Counting<'_, T> {
    fn insert(&mut self, buckets: Pair, fingerprint: Fingerprint) -> bool {
        self.table.insert(buckets, fingerprint)
    }
    fn remove(&mut self, buckets: Pair, fingerprint: Fingerprint) -> bool {
        self.table.remove(buckets, fingerprint)
    }
    fn replace(&mut self, bucket: u64, old: Option<Fingerprint>, new: Option<Fingerprint>) -> bool {
        self.table.replace(bucket, old, new)
    }
    fn outlined<C: Change>(&mut self, change: C) -> C::Output {
        change.run(self)
    }
}

/// Runs [`store_fingerprint`]. Also returns how many buckets were checked for room, and how many were read.
struct Counted(Params, u64);

impl Change for Counted {
    type Output = (bool, usize, usize);

    fn run<T: TableMut>(self, table: &mut T) -> (bool, usize, usize) {
        let counts = Counts::default();
        let mut counting = Counting { table, counts: &counts };
        let (buckets, fingerprint) = Address::new(&self.0).buckets(Uniform(self.1));
        let is_stored = store_fingerprint(&mut counting, &self.0, buckets, fingerprint, CopyPolicy::Continue);
        (is_stored, counts.room_checks.get(), counts.reads.get())
    }
}

struct TestTable {
    params: Params,
    geometry: Geometry,
    storage: Owned,
}

impl TestTable {
    fn new(params: Params) -> Self {
        Self { geometry: Geometry::new(&params), storage: Owned::zeroed(params.table_bytes()).unwrap(), params }
    }

    fn packed(buckets: u64) -> Self {
        Self::new(Params::new(TableKind::Packed, 13, 4, buckets, Addressing::AnySize, 0).unwrap())
    }

    fn one_slot(fingerprint_bits: u32, buckets: u64, addressing: Addressing) -> Self {
        Self::new(Params::new(TableKind::Single, fingerprint_bits, 1, buckets, addressing, 0).unwrap())
    }

    fn insert(&mut self, hash: u64) -> (bool, usize, usize) {
        let (bytes, counted) = (&mut self.storage, Counted(self.params, hash));
        match &self.geometry {
            Geometry::Single(geometry) => Single::change(geometry, bytes, Portable, counted),
            Geometry::Narrow(geometry) => Narrow::change(geometry, bytes, Portable, counted),
            Geometry::Wide(_) => unreachable!("no test uses wide buckets"),
        }
    }

    /// Returns true if a lookup finds the fingerprint.
    fn contains(&self, hash: u64) -> bool {
        let (buckets, fingerprint) = Address::new(&self.params).buckets(Uniform(hash));
        self.geometry.read_with(&self.storage, Portable, Present(buckets, fingerprint))
    }
}

struct Present(Pair, Fingerprint);

impl Read for Present {
    type Output = bool;

    fn run<T: Table>(self, table: &T) -> bool {
        table.contains(self.0, self.1)
    }
}

/// Returns the sequence of `SplitMix64`.
fn hashes() -> impl Iterator<Item = u64> {
    (1_u64..).map(|n| {
        let word = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    })
}

/// In a small table, a refused search visits every bucket once and ends early. Without its memory of visited buckets, it would
/// examine 4 · 4096 buckets.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn a_long_search_visits_no_bucket_twice() {
    let mut table = TestTable::packed(128);
    let mut refusals = 0;
    for hash in hashes().take(2000) {
        let (is_stored, room_checks, _) = table.insert(hash);
        if !is_stored {
            refusals += 1;
            assert!(room_checks <= 4 * LONG_WALK + 128, "{room_checks} buckets checked for room");
        }
    }
    assert!(refusals > 1000, "{refusals}");
}

/// If copies fill both buckets of an item, a refusal costs hardly more than reading the two. A search would read dozens of
/// buckets, and begin to remember them.
#[test]
fn copies_are_refused_early() {
    let mut table = TestTable::packed(1 << 10);
    let copies = |table: &mut TestTable, hash| (0..9).map(|_| table.insert(hash)).last();
    for hash in hashes().take(20) {
        let (is_stored, room_checks, reads) = copies(&mut table, hash).unwrap();
        assert!(!is_stored && room_checks <= 16 && reads <= 4, "{room_checks} buckets checked for room, {reads} read");
    }
}

/// A refusal follows two chains into cycles. Cycles are no longer than the table, so in a small table they are detected early.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn cyclic_chains_end_early() {
    for addressing in [Addressing::AnySize, Addressing::PowerOfTwo] {
        let mut table = TestTable::one_slot(13, 128, addressing);
        let (mut refusals, mut longest) = (0, 0);
        for hash in hashes().take(2000) {
            let (is_stored, _, read) = table.insert(hash);
            if !is_stored {
                refusals += 1;
                longest = read.max(longest);
            }
        }
        // A cycle at a random place is short, and Brent's algorithm takes at most three times the length of the cycle and the way
        // to it.
        assert!(refusals > 1000 && longest < 2 * 3 * 128 && longest < MAX_EXPANDED, "{refusals} refused, {longest} read");
    }
}

/// The connected sets of buckets, and the number of items for which each set still has room. A set has room for as many items as
/// it has buckets.
struct Sets {
    parents: Vec<usize>,
    room: Vec<usize>,
}

impl Sets {
    fn new(buckets: usize) -> Self {
        Self { parents: (0..buckets).collect(), room: vec![1; buckets] }
    }

    fn root(&mut self, mut bucket: usize) -> usize {
        while self.parents[bucket] != bucket {
            self.parents[bucket] = self.parents[self.parents[bucket]];
            bucket = self.parents[bucket];
        }
        bucket
    }

    /// Merges the sets of the two buckets and takes a place in the result. Returns false and changes nothing if they are full.
    fn take(&mut self, (first, second): Pair) -> bool {
        let (first, second) = (self.root(index(first)), self.root(index(second)));
        let room = if first == second { self.room[first] } else { self.room[first] + self.room[second] };
        if room > 0 {
            self.parents[second] = first;
            self.room[first] = room - 1;
        }
        room > 0
    }
}

/// An item is refused only if no arrangement of all items has a place for it, until well after the first refusal; and accepted
/// items stay. In the largest tables, some chains are longer than 64 buckets, and a memory of 2¹⁴ bits would mistake buckets for
/// visited ones.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn chains_find_a_place_whenever_one_exists() {
    let mut longest = 0;
    for addressing in [Addressing::AnySize, Addressing::PowerOfTwo] {
        for (fingerprint_bits, buckets) in [(2, 16), (3, 64), (5, 1 << 10), (8, 1 << 13), (16, 1 << 15), (32, 1 << 17)] {
            let mut table = TestTable::one_slot(fingerprint_bits, buckets, addressing);
            let mut sets = Sets::new(index(buckets));
            let mut accepted = Vec::new();
            let address = Address::new(&table.params);
            for hash in hashes().take(index(buckets)) {
                let (is_stored, _, read) = table.insert(hash);
                let context = format!("f {fingerprint_bits}, {buckets} buckets, {addressing}: item {}", accepted.len());
                assert_eq!(is_stored, sets.take(address.buckets(Uniform(hash)).0), "{context}");
                if is_stored {
                    accepted.push(hash);
                    longest = read.max(longest);
                }
            }
            assert!(accepted.len() < index(buckets), "f {fingerprint_bits}, {buckets} buckets: nothing was refused");
            assert!(accepted.iter().all(|&hash| table.contains(hash)), "f {fingerprint_bits}, {buckets} buckets");
        }
    }
    assert!(longest > 4 * LONG_WALK, "{longest}");
}
