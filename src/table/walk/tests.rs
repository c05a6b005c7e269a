//! Tests of how far walks search, and that they find every place.

use alloc::{format, vec, vec::Vec};

use super::{CopyPolicy, Insertion, LONG_WALK, MAX_EXPANDED};
use crate::{
    bits::index,
    filter::{Core as _, RawFilter},
    hash::split_mix,
    params::{Addressing, Params, TableKind},
    table::{Address, Pair, Uniform, steps},
};

fn packed(buckets: u64) -> RawFilter {
    RawFilter::new(Params::new(TableKind::Packed, 13, 4, buckets, Addressing::AnySize, 0).unwrap()).unwrap()
}

fn one_slot(fingerprint_bits: u32, buckets: u64, addressing: Addressing) -> RawFilter {
    RawFilter::new(Params::new(TableKind::Single, fingerprint_bits, 1, buckets, addressing, 0).unwrap()).unwrap()
}

/// Inserts a hash into the table. Also returns how many buckets a walk checked for room, and how many it read.
fn insert(table: &mut RawFilter, hash: u64) -> (bool, usize, usize) {
    let params = *table.params();
    let locate = |params: &Params| Address::new(params).buckets(Uniform(hash));
    steps::walked();
    let is_stored = table.change(Insertion { params: &params, locate, copy_policy: CopyPolicy::Continue });
    let (room_checks, reads) = steps::walked();
    (is_stored, room_checks, reads)
}

fn hashes() -> impl Iterator<Item = u64> {
    (1..).map(split_mix)
}

/// In a small table, a refused search visits every bucket once and ends early. Without its memory of visited buckets, it would
/// examine 4 · 4096 buckets.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn a_long_search_visits_no_bucket_twice() {
    let mut table = packed(128);
    let mut refusals = 0;
    for hash in hashes().take(2000) {
        let (is_stored, room_checks, _) = insert(&mut table, hash);
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
    let mut table = packed(1 << 10);
    let copies = |table: &mut RawFilter, hash| (0..9).map(|_| insert(table, hash)).last();
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
        let mut table = one_slot(13, 128, addressing);
        let (mut refusals, mut longest) = (0, 0);
        for hash in hashes().take(2000) {
            let (is_stored, _, read) = insert(&mut table, hash);
            if !is_stored {
                refusals += 1;
                longest = read.max(longest);
            }
        }
        // A cycle at a random place is short, and is detected before a chain is twice as long as the cycle and the way to it.
        assert!(refusals > 1000 && longest < 2 * 2 * 128 && longest < MAX_EXPANDED, "{refusals} refused, {longest} read");
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
            let mut table = one_slot(fingerprint_bits, buckets, addressing);
            let mut sets = Sets::new(index(buckets));
            let mut accepted = Vec::new();
            let address = Address::new(table.params());
            for hash in hashes().take(index(buckets)) {
                let (is_stored, _, read) = insert(&mut table, hash);
                let context = format!("f {fingerprint_bits}, {buckets} buckets, {addressing}: item {}", accepted.len());
                assert_eq!(is_stored, sets.take(address.buckets(Uniform(hash)).0), "{context}");
                if is_stored {
                    accepted.push(hash);
                    longest = read.max(longest);
                }
            }
            assert!(accepted.len() < index(buckets), "f {fingerprint_bits}, {buckets} buckets: nothing was refused");
            assert!(accepted.iter().all(|&hash| table.contains(Uniform(hash))), "f {fingerprint_bits}, {buckets} buckets");
        }
    }
    // Both chains were read.
    assert!(longest > 2 * LONG_WALK, "{longest}");
}
