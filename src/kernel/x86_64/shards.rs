//! Look-up in many packed tables of one layout, one item per lane. The items of a batch are in different tables, so each word is
//! loaded by itself (a gather stays inside one allocation).

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::marker::PhantomData;

use super::{
    address::AddressLanes,
    lanes::Lanes,
    packed::{found, narrow_highs},
    stages::Stages,
};
use crate::{
    bits::{self, index},
    kernel::{BATCH, Tables},
    table::{Geometry, Instructions as _, PackedGeometry, Uniform, codebook::CODEWORD_BITS},
};

/// See the module.
pub(super) struct ShardsVector<'a, L: Lanes, T> {
    proof: L::Proof,
    tables: T,
    lifetime: PhantomData<&'a [u8]>,
    address: AddressLanes,
    geometry: PackedGeometry,
    is_narrow: bool,
    /// Whether buckets are prefetched.
    prefetches: bool,
}

/// Where to look up a batch.
pub(super) struct Targets<'a> {
    tables: [&'a [u8]; BATCH],
    /// The first bit of each of the two buckets; then the word that begins there.
    firsts: [[u64; BATCH]; 2],
    fingerprints: [u64; BATCH],
}

/// The words that begin with the first and the second pair of high parts of wide buckets, of each item's first and second bucket.
type Pairs = [[[u64; BATCH]; 2]; 2];

impl<'a, L: Lanes, T: Tables<'a>> ShardsVector<'a, L, T> {
    /// `None` if tables are not packed, or have too many buckets for vectors.
    pub(super) fn new(proof: L::Proof, tables: T, prefetches: bool) -> Option<Self> {
        let (geometry, is_narrow) = match *tables.geometry() {
            Geometry::Narrow(geometry) => (geometry, true),
            Geometry::Wide(geometry) => (geometry, false),
            Geometry::Single(_) => return None,
        };
        let address = AddressLanes::new(tables.address())?;
        Some(Self { proof, tables, lifetime: PhantomData, address, geometry, is_narrow, prefetches })
    }

    /// Compares the words of all buckets.
    #[inline(always)]
    fn compare(&self, targets: &Targets<'_>, pairs: &Pairs, is_narrow: bool, len: usize) -> u64 {
        let mut answers = 0;
        for at in (0..len).step_by(L::COUNT) {
            let load = |values: &[u64; BATCH]| L::load(self.proof, &values[at..]);
            let words = [load(&targets.firsts[0]), load(&targets.firsts[1])];
            let highs = if is_narrow {
                narrow_highs(words)
            } else {
                [[load(&pairs[0][0]), load(&pairs[1][0])], [load(&pairs[0][1]), load(&pairs[1][1])]]
            };
            let found = found(self.proof, &self.geometry, is_narrow, words, highs, load(&targets.fingerprints));
            answers |= u64::from(found & ((1 << L::COUNT) - 1)) << at;
        }
        answers
    }
}

/// Replaces the first bits of each item's two buckets by the words that begin so many bits behind them.
#[inline(always)]
fn load(tables: &[&[u8]], [firsts, seconds]: [&mut [u64; BATCH]; 2], behind: u32) {
    for (table, (first, second)) in tables.iter().zip(firsts.iter_mut().zip(seconds)) {
        [*first, *second] = bits::words(table, *first + u64::from(behind), *second + u64::from(behind));
    }
}

impl<'a, L: Lanes, T: Tables<'a>> Stages for ShardsVector<'a, L, T> {
    type Proof = L::Proof;
    type Targets = Targets<'a>;
    type Scratch = Pairs;

    #[inline(always)]
    fn proof(&self) -> L::Proof {
        self.proof
    }

    #[inline(always)]
    fn targets(&self) -> Targets<'a> {
        Targets { tables: [&[]; BATCH], firsts: [[0; BATCH]; 2], fingerprints: [0; BATCH] }
    }

    #[inline(always)]
    fn scratch(&self) -> Pairs {
        [[[0; BATCH]; 2]; 2]
    }

    #[inline(always)]
    fn locate(&self, hashes: &[u64; BATCH], len: usize, targets: &mut Targets<'a>) {
        // One loop for each thing that the processor does best alone: arithmetic, which the compiler does in vectors; loads that
        // depend on each other; arithmetic again; prefetching.
        let mut streams = [0; BATCH];
        for (stream, &hash) in streams.iter_mut().zip(hashes) {
            *stream = self.tables.stream(Uniform(hash));
        }
        for (table, (&hash, &stream)) in targets.tables.iter_mut().zip(hashes.iter().zip(&streams)).take(len) {
            *table = self.tables.table(Uniform(hash), stream);
        }
        let bucket_bits = L::splat(self.proof, self.geometry.bucket_bits().into());
        for at in (0..len).step_by(L::COUNT) {
            let (buckets, fingerprints) = self.address.buckets(self.proof, L::load(self.proof, &hashes[at..]));
            for (bits, bucket) in targets.firsts.iter_mut().zip(buckets) {
                bucket.product(bucket_bits).store(&mut bits[at..]);
            }
            fingerprints.store(&mut targets.fingerprints[at..]);
        }
        if self.prefetches {
            let bmi2 = L::bmi2(self.proof);
            for bits in &targets.firsts {
                for (table, bits) in targets.tables.iter().zip(bits).take(len) {
                    bmi2.prefetch(table, index(bits / 8));
                }
            }
        }
    }

    #[inline(always)]
    fn look_up(&self, targets: &mut Targets<'a>, pairs: &mut Pairs, len: usize) -> u64 {
        // All words first: a vector that is loaded just after its lanes were stored waits for them.
        let tables = &targets.tables[..len];
        if !self.is_narrow {
            for (pair, behind) in pairs.iter_mut().zip([CODEWORD_BITS, CODEWORD_BITS + 2 * self.geometry.high_bits()]) {
                *pair = targets.firsts;
                load(tables, pair.each_mut(), behind);
            }
        }
        load(tables, targets.firsts.each_mut(), 0);
        if self.is_narrow { self.compare(targets, pairs, true, len) } else { self.compare(targets, pairs, false, len) }
    }
}
