//! Addressing: computes an item's fingerprint and two buckets from its hash, in 64-bit arithmetic. docs/FORMAT.md has the
//! formulas. The vector kernels have an equivalent version in 32-bit products (`kernel/x86_64/batch.rs`); a test compares the
//! two.

use core::hint::select_unpredictable;

use super::{Fingerprint, Pair};
use crate::{
    bits::{low_half, mask, product},
    params::{Addressing, Params},
};

/// The multiplier of `MurmurHash2`. Go's library multiplies a fingerprint by it to get the distance between the two buckets.
const GO_MULTIPLIER: u64 = 0x5bd1_e995;

/// 2⁶⁴ divided by the golden ratio, rounded to an odd number, so that multiplying by it permutes the 64-bit numbers.
pub(crate) const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The inverse of [`MULTIPLIER`] modulo 2⁶⁴.
const INVERSE: u64 = 0xf1de_83e1_9937_733d;
const _: () = assert!(MULTIPLIER.wrapping_mul(INVERSE) == 1);

/// 64 uniformly distributed bits: the result of a [`Hasher`](crate::hash::Hasher). A filter takes an item's buckets and
/// fingerprint from it.
///
/// The bits cannot be read back. To hash an item and pass the hash to a filter, use [`Prehashed::of`](crate::Prehashed::of): its
/// number may also select a shard or be stored. If the bits of a `Uniform` were used like that, they would no longer be uniform
/// among the items of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uniform(pub(crate) u64);

impl Uniform {
    /// Wraps the result of a hash function. Each bit must depend on every byte of the item and on the seed.
    #[inline]
    #[must_use]
    pub const fn new(hash: u64) -> Self {
        Self(hash)
    }

    /// Mixes the number of a [`Prehashed`](crate::Prehashed) key, so that bucket and fingerprint depend on all its bits: some of
    /// them may have selected a shard, and keys may be sequential integers. The mix is a permutation, which
    /// [`prehashed`](Self::prehashed) inverts. Hashes of items are uniform already and are never mixed.
    #[inline]
    pub(crate) fn of_prehashed(hash: u64) -> Self {
        // A product carries no high bits to low ones, so each fold adds them. The first fold is for integers that were shifted or
        // bit-reversed: all their low bits are equal.
        let folded = (hash ^ hash >> 31).wrapping_mul(MULTIPLIER);
        Self((folded ^ folded >> 32).wrapping_mul(MULTIPLIER))
    }

    /// Returns the number of the [`Prehashed`](crate::Prehashed) key with these bits.
    #[inline]
    pub(crate) fn prehashed(self) -> u64 {
        let folded = self.0.wrapping_mul(INVERSE);
        let hash = (folded ^ folded >> 32).wrapping_mul(INVERSE);
        hash ^ hash >> 31 ^ hash >> 62
    }
}

/// The addressing of tables with any even number of buckets: [`Addressing::AnySize`].
#[derive(Clone, Copy)]
pub(crate) struct AnySize {
    pub buckets: u64,
    pub fingerprint_bits: u32,
}

impl AnySize {
    /// Returns an item's first bucket and its fingerprint.
    #[inline]
    fn locate(&self, Uniform(hash): Uniform) -> (u64, Fingerprint) {
        // The upper half of the product is the bucket. The lower half is the position of the hash among all hashes with this
        // bucket. It is independent of the bucket as long as log2(m) + f ≤ 64.
        let (bucket, rest) = product(hash, self.buckets);
        let rest = rest >> 32;
        // Multiplies by 2ᶠ − 1.
        (bucket, Fingerprint::from_index(((rest << self.fingerprint_bits) - rest) >> 32))
    }

    /// Returns both buckets and the fingerprint of an item.
    #[inline]
    pub fn buckets(&self, hash: Uniform) -> (Pair, Fingerprint) {
        let (first, fingerprint) = self.locate(hash);
        ((first, self.alternate(first, fingerprint)), fingerprint)
    }

    /// Returns the other bucket of a fingerprint stored in `bucket`. An involution.
    #[inline]
    pub fn alternate(&self, bucket: u64, fingerprint: Fingerprint) -> u64 {
        // Bucket and alternate add up to an odd number modulo an even one, so they always differ.
        let sum = product(spread(fingerprint.wide()), self.buckets).0 | 1;
        let (difference, below) = sum.overflowing_sub(bucket);
        difference.wrapping_add(select_unpredictable(below, self.buckets, 0))
    }
}

/// The addressing of a filter with a single table.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    addressing: Addressing,
    buckets: u64,
    fingerprint_bits: u32,
}

impl Address {
    #[inline]
    pub fn new(params: &Params) -> Self {
        Self { addressing: params.addressing(), buckets: params.buckets(), fingerprint_bits: params.fingerprint_bits() }
    }

    /// Returns the addressing of tables that have no [`Params`], with a power of two of buckets.
    #[cfg(feature = "redisbloom")]
    pub const fn power_of_two(buckets: u64, fingerprint_bits: u32) -> Self {
        Self { addressing: Addressing::PowerOfTwo, buckets, fingerprint_bits }
    }

    /// Returns the addressing if it is [`Addressing::AnySize`].
    #[inline]
    pub fn any_size(&self) -> Option<AnySize> {
        let Self { addressing, buckets, fingerprint_bits } = *self;
        (addressing == Addressing::AnySize).then_some(AnySize { buckets, fingerprint_bits })
    }

    /// Returns the number of distinct fingerprints, 2ᶠ − 1.
    #[inline]
    pub fn fingerprints(&self) -> u32 {
        // The mask is odd already. Setting the bit tells the compiler that it is not 0, so division by it needs no check.
        low_half(mask(self.fingerprint_bits)) | 1
    }

    /// Returns an item's first bucket and its fingerprint.
    #[inline]
    pub fn locate(&self, Uniform(hash): Uniform) -> (u64, Fingerprint) {
        if let Some(address) = self.any_size() {
            return address.locate(Uniform(hash));
        }
        let bucket = (hash >> 32) & (self.buckets - 1);
        (bucket, Fingerprint::from_index(u64::from(low_half(hash) % self.fingerprints())))
    }

    /// Returns both buckets and the fingerprint of an item.
    #[inline]
    pub fn buckets(&self, hash: Uniform) -> (Pair, Fingerprint) {
        let (first, fingerprint) = self.locate(hash);
        ((first, self.alternate(first, fingerprint)), fingerprint)
    }

    /// Returns the other bucket of a fingerprint stored in `bucket`. An involution.
    #[inline]
    pub fn alternate(&self, bucket: u64, fingerprint: Fingerprint) -> u64 {
        match self.any_size() {
            Some(address) => address.alternate(bucket, fingerprint),
            None => (bucket ^ u64::from(low_half(fingerprint.wide() * GO_MULTIPLIER))) & (self.buckets - 1),
        }
    }
}

/// Mixes a fingerprint into 64 bits. A single multiplication would leave the bucket sums of short fingerprints so regular that
/// tables fill less (docs/DESIGN.md, "Addressing").
#[inline]
fn spread(fingerprint: u64) -> u64 {
    let product = fingerprint.wrapping_mul(MULTIPLIER);
    product.wrapping_mul(product >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prelude::*, test_runner::RngSeed};

    fn address(f: u32, buckets: u64, addressing: Addressing) -> Address {
        // Bypasses `Params`, whose limits these tables exceed.
        Address { addressing, buckets, fingerprint_bits: f }
    }

    fn sizes() -> impl Strategy<Value = u64> {
        prop_oneof![1u64..100, 1u64..1 << 20, (1u64 << 31)..1 << 34, 1u64..1 << 60].prop_map(|half| 2 * half)
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_size_is_an_involution_without_fixed_points(f in 2u32..=32, buckets in sizes(), hash: u64) {
            let address = address(f, buckets, Addressing::AnySize);
            let (bucket, fingerprint) = address.locate(Uniform(hash));
            prop_assert!(bucket < buckets);
            prop_assert!(fingerprint.wide() <= address.fingerprints().into());
            let alternate = address.alternate(bucket, fingerprint);
            prop_assert!(alternate < buckets);
            prop_assert_ne!(alternate, bucket);
            prop_assert_eq!(address.alternate(alternate, fingerprint), bucket);
        }

        #[test]
        fn mixing_of_prehashed_keys_is_invertible(hash: u64) {
            prop_assert_eq!(Uniform::of_prehashed(hash).prehashed(), hash);
        }

        #[test]
        fn power_of_two_is_an_involution(f in 2u32..=32, log2 in 0u32..=32, hash: u64) {
            let address = address(f, 1 << log2, Addressing::PowerOfTwo);
            let (bucket, fingerprint) = address.locate(Uniform(hash));
            let alternate = address.alternate(bucket, fingerprint);
            prop_assert!(bucket < 1 << log2 && alternate < 1 << log2);
            prop_assert_eq!(address.alternate(alternate, fingerprint), bucket);
            // The multiplier is odd, so the alternate is the same bucket exactly for multiples of m.
            prop_assert_eq!(alternate == bucket, fingerprint.get().trailing_zeros() >= log2);
        }
    }

    #[test]
    fn power_of_two_follows_gos_formulas() {
        // Computed by hand from the formulas in docs/FORMAT.md, for m = 1024 and f = 13.
        let address = address(13, 1024, Addressing::PowerOfTwo);
        let hash = 0x1234_5678_9abc_def0_u64;
        let (bucket, fingerprint) = address.locate(Uniform(hash));
        assert_eq!(bucket, 0x1234_5678 & 1023);
        assert_eq!(fingerprint.get(), 0x9abc_def0 % 8191 + 1);
        assert_eq!(address.alternate(bucket, fingerprint), (bucket ^ (fingerprint.wide() * 0x5bd1_e995)) & 1023);
    }

    #[test]
    fn beyond_2_pow_32_slots_all_buckets_and_fingerprints_are_reachable() {
        let address = address(24, 1 << 40, Addressing::AnySize);
        let (first, lowest) = address.locate(Uniform(0));
        let (last, highest) = address.locate(Uniform(u64::MAX));
        assert_eq!((first, last), (0, (1 << 40) - 1));
        assert_eq!(lowest.get(), 1);
        assert_eq!(highest.get(), (1 << 24) - 1);
    }

    /// The bucket must not predict the fingerprint: in each bucket, fingerprints are uniformly distributed, however few or many
    /// buckets there are (chi-squared test with a fixed seed).
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn fingerprints_are_independent_of_buckets() {
        for (addressing, buckets) in
            [(Addressing::AnySize, 2), (Addressing::AnySize, 10), (Addressing::AnySize, 1 << 33), (Addressing::PowerOfTwo, 8)]
        {
            let address = address(4, buckets, addressing);
            let mut counts = [[0u32; 15]; 2];
            let mut state = 7u64;
            for _ in 0..300_000 {
                // The hash is mixed here, because power-of-two addressing uses it unchanged.
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let hash = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let (bucket, fingerprint) = address.locate(Uniform(hash ^ hash >> 27));
                counts[(bucket % 2) as usize][fingerprint.get() as usize - 1] += 1;
            }
            for row in counts {
                let expected = f64::from(row.iter().sum::<u32>()) / 15.0;
                let chi_squared: f64 = row.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
                // The 99.99 % quantile with 14 degrees of freedom.
                assert!(chi_squared < 42.6, "{addressing} {buckets}: {chi_squared}");
            }
        }
    }
}
