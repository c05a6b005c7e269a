//! Look-up in many packed tables, one item per lane. The items of a batch are in different tables, of which the fingerprints may
//! differ in length. So each word is loaded by itself (a gather stays inside one allocation), and each lane has shifts of its own.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::marker::PhantomData;

use super::{
    address::AddressLanes,
    lanes::Lanes,
    packed::{Agree, with_nibbles},
    stages::Stages,
};
use crate::{
    bits::{self, index},
    kernel::{BATCH, Site, Sites},
    table::{Instructions as _, PackedGeometry, SLOTS, Uniform, codebook::CODEWORD_BITS},
};

/// See the module.
pub(super) struct ShardsVector<'a, L: Lanes, S> {
    proof: L::Proof,
    sites: S,
    tables: PhantomData<&'a [u8]>,
    address: AddressLanes,
    /// Whether buckets are prefetched.
    prefetches: bool,
}

/// Where to look up a batch.
pub(super) struct Targets<'a> {
    tables: [&'a [u8]; BATCH],
    /// The first bit of each of the two buckets; then the word that begins there.
    firsts: [[u64; BATCH]; 2],
    fingerprints: [u64; BATCH],
    /// The lengths of the fingerprints.
    lengths: [u64; BATCH],
    /// The greatest of the lengths: what has to be loaded depends on it.
    longest: u32,
}

impl<'a, L: Lanes, S: Sites<'a>> ShardsVector<'a, L, S> {
    /// `None` if tables have too many buckets for vectors.
    pub(super) fn new(proof: L::Proof, sites: S, prefetches: bool) -> Option<Self> {
        AddressLanes::new(sites.address()).map(|address| Self { proof, sites, tables: PhantomData, address, prefetches })
    }

    #[inline(always)]
    fn splat(&self, value: u64) -> L {
        L::splat(self.proof, value)
    }

    /// Compares the items of the lanes from `at` on.
    #[inline(always)]
    fn found(&self, targets: &Targets<'_>, rest: &Rest, at: usize) -> u32 {
        let load = |values: &[u64; BATCH]| L::load(self.proof, &values[at..]);
        let (fingerprints, lengths) = (load(&targets.fingerprints), load(&targets.lengths));
        let wanted = fingerprints.shift_right::<4>();
        let width = lengths.sub(self.splat(4));
        // As many ones as a high part has bits.
        let mask = self.splat(u64::MAX).shift_right_by(self.splat(64).sub(width));
        let mut agree: Agree = [[0; 4]; 2];
        let firsts = [load(&targets.firsts[0]), load(&targets.firsts[1])];
        for (bucket, agree) in agree.iter_mut().enumerate() {
            let mut high = firsts[bucket].shift_right::<CODEWORD_BITS>();
            for (slot, agree) in agree.iter_mut().enumerate() {
                match slot {
                    0 if targets.longest > LONGEST_HALF => high = load(&rest.quarters[bucket]),
                    0 => {}
                    2 if targets.longest > PackedGeometry::LONGEST_NARROW => high = load(&rest.halves[bucket]),
                    _ => high = high.shift_right_by(width),
                }
                *agree = high.xor(wanted).none(mask);
            }
        }
        with_nibbles(self.proof, firsts, &agree, fingerprints)
    }
}

/// What else is loaded of buckets that do not fit into a word, for each item's first and second bucket.
pub(super) struct Rest {
    /// The words that begin with the third high part. Needed if fingerprints are longer than [`PackedGeometry::LONGEST_NARROW`].
    halves: [[u64; BATCH]; 2],
    /// The words that begin with the first high part. Needed if fingerprints are longer than [`LONGEST_HALF`].
    quarters: [[u64; BATCH]; 2],
}

/// The longest fingerprint for which a word has the codeword and two high parts. Buckets begin at multiples of four bits.
const LONGEST_HALF: u32 = (bits::window_bits(SLOTS) - CODEWORD_BITS) / 2 + 4;

impl Targets<'_> {
    /// Loads the words of all buckets.
    #[inline(always)]
    fn load(&mut self, rest: &mut Rest, len: usize) {
        let Self { tables, lengths, longest, .. } = self;
        let tables = || tables.iter().zip(&*lengths).take(len);
        for (bucket, firsts) in self.firsts.iter_mut().enumerate() {
            if *longest > PackedGeometry::LONGEST_NARROW {
                rest.halves[bucket] = *firsts;
                load(&mut rest.halves[bucket], tables(), |length| u64::from(CODEWORD_BITS) + 2 * (length - 4));
            }
            if *longest > LONGEST_HALF {
                rest.quarters[bucket] = *firsts;
                load(&mut rest.quarters[bucket], tables(), |_| CODEWORD_BITS.into());
            }
            load(firsts, tables(), |_| 0);
        }
    }
}

/// Replaces the first bit of each bucket by a word of it. Tables come with the length of their fingerprints, which says where the
/// word begins in the bucket.
#[inline(always)]
fn load<'t>(buckets: &mut [u64; BATCH], tables: impl Iterator<Item = (&'t &'t [u8], &'t u64)>, place: impl Fn(u64) -> u64) {
    for (bucket, (table, &length)) in buckets.iter_mut().zip(tables) {
        *bucket = bits::word(table, *bucket + place(length));
    }
}

impl<'a, L: Lanes, S: Sites<'a>> Stages for ShardsVector<'a, L, S> {
    type Proof = L::Proof;
    type Targets = Targets<'a>;
    type Scratch = Rest;

    #[inline(always)]
    fn proof(&self) -> L::Proof {
        self.proof
    }

    #[inline(always)]
    fn targets(&self) -> Targets<'a> {
        let zeros = [0; BATCH];
        Targets { tables: [&[]; BATCH], firsts: [zeros; 2], fingerprints: zeros, lengths: [4; BATCH], longest: 0 }
    }

    #[inline(always)]
    fn scratch(&self) -> Rest {
        let zeros = [[0; BATCH]; 2];
        Rest { halves: zeros, quarters: zeros }
    }

    #[inline(always)]
    fn locate(&self, hashes: &[u64; BATCH], len: usize, targets: &mut Targets<'a>) {
        // One loop for each thing that the processor does best alone: arithmetic, which the compiler does in vectors; loads that
        // depend on each other; arithmetic again; prefetching.
        let mut streams = [0; BATCH];
        for (stream, &hash) in streams.iter_mut().zip(hashes) {
            *stream = self.sites.stream(Uniform(hash));
        }
        targets.longest = 0;
        for at in 0..len {
            let Site { table, geometry, upper } = self.sites.site(Uniform(hashes[at]), streams[at]);
            targets.tables[at] = table;
            let length = geometry.fingerprint_bits();
            targets.lengths[at] = length.into();
            targets.fingerprints[at] = upper;
            targets.longest = targets.longest.max(length);
        }
        for at in (0..len).step_by(L::COUNT) {
            let load = |values: &[u64; BATCH]| L::load(self.proof, &values[at..]);
            let (buckets, low) = self.address.buckets(self.proof, load(hashes));
            let lengths = load(&targets.lengths);
            let bucket_bits = lengths.sub(self.splat(1)).product(self.splat(SLOTS.into()));
            for (bits, bucket) in targets.firsts.iter_mut().zip(buckets) {
                bucket.product(bucket_bits).store(&mut bits[at..]);
            }
            load(&targets.fingerprints).or(low).store(&mut targets.fingerprints[at..]);
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
    fn look_up(&self, targets: &mut Targets<'a>, rest: &mut Rest, len: usize) -> u64 {
        // All words first: a vector that is loaded just after its lanes were stored waits for them.
        targets.load(rest, len);
        let mut answers = 0;
        for at in (0..len).step_by(L::COUNT) {
            answers |= u64::from(self.found(targets, rest, at) & ((1 << L::COUNT) - 1)) << at;
        }
        answers
    }
}
