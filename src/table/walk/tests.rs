//! How far walks go, and that they find what there is.

use alloc::{format, vec, vec::Vec};
use core::{cell::Cell, ops::Range};

use super::{AmongCopies, LONG_WALK, MAX_EXPANDED, place};
use crate::{
    bits::index,
    params::{Addressing, Params, TableKind},
    storage::Owned,
    table::{
        Address, Change, Corrupt, Fingerprint, Form, Geometry, Pair, Portable, Read, Single, Table, TableMut, Uniform,
        packed::Narrow,
    },
};

/// Counts the calls of `has_room` and of `values`.
#[derive(Default)]
struct Counts {
    asked: Cell<usize>,
    read: Cell<usize>,
}

struct Counting<'c, T> {
    table: T,
    counts: &'c Counts,
}

impl<T: Table> Table for Counting<'_, T> {
    type Values = T::Values;

    fn contains(&self, buckets: Pair, fingerprint: Fingerprint) -> bool {
        self.table.contains(buckets, fingerprint)
    }
    fn values(&self, bucket: u64) -> T::Values {
        self.counts.read.set(self.counts.read.get() + 1);
        self.table.values(bucket)
    }
    fn has_room(&self, bucket: u64) -> bool {
        self.counts.asked.set(self.counts.asked.get() + 1);
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

impl<'c, T: TableMut> TableMut for Counting<'c, T> {
    type Walked<'a>
        = Counting<'c, T::Walked<'a>>
    where
        Self: 'a;

    fn insert(&mut self, buckets: Pair, fingerprint: Fingerprint) -> bool {
        self.table.insert(buckets, fingerprint)
    }
    fn remove(&mut self, buckets: Pair, fingerprint: Fingerprint) -> bool {
        self.table.remove(buckets, fingerprint)
    }
    fn replace(&mut self, bucket: u64, old: Option<Fingerprint>, new: Fingerprint) -> bool {
        self.table.replace(bucket, old, new)
    }
    fn walked(&mut self) -> Self::Walked<'_> {
        Counting { table: self.table.walked(), counts: self.counts }
    }
    fn outlined<C: Change>(&mut self, change: C) -> C::Output {
        change.run(self)
    }
}

/// Runs [`place`], and also returns how many buckets were asked for room, and of how many the residents were read.
struct Counted(Params, u64);

impl Change for Counted {
    type Output = (bool, usize, usize);

    fn run<T: TableMut>(self, table: &mut T) -> (bool, usize, usize) {
        let counts = Counts::default();
        let mut counting = Counting { table: table.walked(), counts: &counts };
        let (buckets, fingerprint) = Address::new(&self.0).buckets(Uniform(self.1));
        let is_placed = place(&mut counting, &self.0, buckets, fingerprint, AmongCopies::GoOn);
        (is_placed, counts.asked.get(), counts.read.get())
    }
}

struct Filling {
    params: Params,
    geometry: Geometry,
    storage: Owned,
}

impl Filling {
    fn new(params: Params) -> Self {
        Self { geometry: Geometry::new(&params), storage: Owned::zeroed(params.table_bytes()).unwrap(), params }
    }

    fn packed(buckets: u64) -> Self {
        Self::new(Params::new(TableKind::Packed, 13, 4, buckets, Addressing::AnySize, 0).unwrap())
    }

    fn of_one_slot(fingerprint_bits: u32, buckets: u64, addressing: Addressing) -> Self {
        Self::new(Params::new(TableKind::Single, fingerprint_bits, 1, buckets, addressing, 0).unwrap())
    }

    fn insert(&mut self, hash: u64) -> (bool, usize, usize) {
        let (bytes, counted) = (&mut self.storage, Counted(self.params, hash));
        match &self.geometry {
            Geometry::Single(geometry) => Single::change(geometry, bytes, Portable, counted),
            Geometry::Narrow(geometry) => Narrow::change(geometry, bytes, Portable, counted),
            Geometry::Wide(_) => unreachable!("no test has wide buckets"),
        }
    }

    /// The items whose fingerprints are where lookups find them.
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

/// The sequence of `SplitMix64`.
fn hashes() -> impl Iterator<Item = u64> {
    (1_u64..).map(|n| {
        let word = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    })
}

/// In a small table a search that is refused visits every bucket once and ends early. Without its memory of visited buckets it
/// would examine 4 · 4096 buckets.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn a_long_search_visits_no_bucket_twice() {
    let mut table = Filling::packed(128);
    let mut refusals = 0;
    for hash in hashes().take(2000) {
        let (is_placed, asked, _) = table.insert(hash);
        if !is_placed {
            refusals += 1;
            assert!(asked <= 4 * LONG_WALK + 128, "{asked} buckets asked");
        }
    }
    assert!(refusals > 1000, "{refusals}");
}

/// What copies refuse costs hardly more than two buckets. A search would read dozens of times, and begin to remember buckets.
#[test]
fn copies_are_refused_early() {
    let mut table = Filling::packed(1 << 10);
    let copies = |table: &mut Filling, hash| (0..9).map(|_| table.insert(hash)).last();
    for hash in hashes().take(20) {
        let (is_placed, asked, read) = copies(&mut table, hash).unwrap();
        assert!(!is_placed && asked <= 16 && read <= 4, "{asked} buckets asked, {read} read");
    }
}

/// A refusal follows two chains into circles. These cannot be longer than the table: in a small one, they are noticed early.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn chains_that_run_in_circles_end_early() {
    for addressing in [Addressing::AnySize, Addressing::PowerOfTwo] {
        let mut table = Filling::of_one_slot(13, 128, addressing);
        let (mut refusals, mut longest) = (0, 0);
        for hash in hashes().take(2000) {
            let (is_placed, _, read) = table.insert(hash);
            if !is_placed {
                refusals += 1;
                longest = read.max(longest);
            }
        }
        // At a random place a circle is short, and Brent's algorithm takes three times its length and the way to it at most.
        assert!(refusals > 1000 && longest < 2 * 3 * 128 && longest < MAX_EXPANDED, "{refusals} refused, {longest} read");
    }
}

/// The connected sets of buckets, and how many items each has room for: as many as it has buckets.
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

    /// Takes a place in the sets of the two buckets, which become one. Returns false, and changes nothing, if they are full.
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

/// An item is refused only if no arrangement of all items had a place for it, until well beyond the first refusal, and an
/// accepted one stays. In the largest tables some chains are longer than 64 buckets, and a memory of 2¹⁴ bits would mistake
/// buckets for visited ones.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn chains_find_every_place_that_there_is() {
    let mut longest = 0;
    for addressing in [Addressing::AnySize, Addressing::PowerOfTwo] {
        for (fingerprint_bits, buckets) in [(2, 16), (3, 64), (5, 1 << 10), (8, 1 << 13), (16, 1 << 15), (32, 1 << 17)] {
            let mut table = Filling::of_one_slot(fingerprint_bits, buckets, addressing);
            let mut sets = Sets::new(index(buckets));
            let mut accepted = Vec::new();
            let address = Address::new(&table.params);
            for hash in hashes().take(index(buckets)) {
                let (is_placed, _, read) = table.insert(hash);
                let what = format!("f {fingerprint_bits}, {buckets} buckets, {addressing}: item {}", accepted.len());
                assert_eq!(is_placed, sets.take(address.buckets(Uniform(hash)).0), "{what}");
                if is_placed {
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
