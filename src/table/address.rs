//! From a hash to a fingerprint and two buckets: the owner of addressing arithmetic, all of it in 64 bits. (Vectors have
//! a copy of it in products of 32 bits, `kernel/vector.rs`, which is compared with this one in `kernel/x86_64.rs`.)

use core::hint::select_unpredictable;

use crate::{
    bits::{low_half, product},
    params::Addressing,
    params::Params,
    table::{Fingerprint, Pair},
};

/// The constant of `MurmurHash2`, by which Go's library turns a fingerprint into a distance.
const GO_MULTIPLIER: u64 = 0x5bd1_e995;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    addressing: Addressing,
    buckets: u64,
    /// How many fingerprints there are, 2ᶠ − 1.
    fingerprints: u64,
}

impl Address {
    pub(crate) fn new(params: &Params) -> Self {
        Self { addressing: params.addressing(), buckets: params.buckets(), fingerprints: (1 << params.fingerprint_bits()) - 1 }
    }

    pub(crate) fn bucket_count(&self) -> u64 {
        self.buckets
    }

    /// The number of buckets, if it may be any: kernels that do their own arithmetic do this one.
    pub(crate) fn buckets_of_any_size(&self) -> Option<u64> {
        (self.addressing == Addressing::AnySize).then_some(self.buckets)
    }

    pub(crate) fn fingerprints(&self) -> u64 {
        self.fingerprints
    }

    /// An item's first bucket and its fingerprint.
    #[inline]
    pub(crate) fn locate(&self, hash: u64) -> (u64, Fingerprint) {
        match self.addressing {
            Addressing::AnySize => {
                // The product's upper half is the bucket; its lower half, where in the bucket's share of all hashes this
                // one lies, is independent of it, as long as log2(m) + f ≤ 64.
                let (bucket, rest) = product(spread_hash(hash), self.buckets);
                (bucket, nonzero(((rest >> 32) * self.fingerprints) >> 32))
            }
            Addressing::PowerOfTwo => {
                let bucket = (hash >> 32) & (self.buckets - 1);
                (bucket, nonzero(u64::from(low_half(hash)) % self.fingerprints))
            }
        }
    }

    /// An item's two buckets, and its fingerprint.
    #[inline]
    pub(crate) fn buckets(&self, hash: u64) -> (Pair, Fingerprint) {
        let (first, fingerprint) = self.locate(hash);
        ((first, self.alternate(first, fingerprint)), fingerprint)
    }

    /// The other bucket of a fingerprint that is in `bucket`: its own inverse.
    #[inline]
    pub(crate) fn alternate(&self, bucket: u64, fingerprint: Fingerprint) -> u64 {
        let fingerprint = u64::from(fingerprint.get());
        match self.addressing {
            Addressing::AnySize => {
                // Bucket and alternate add up to an odd number, modulo an even one: they cannot be the same.
                let sum = product(spread_fingerprint(fingerprint), self.buckets).0 | 1;
                let (difference, below) = sum.overflowing_sub(bucket);
                difference.wrapping_add(select_unpredictable(below, self.buckets, 0))
            }
            Addressing::PowerOfTwo => (bucket ^ u64::from(low_half(fingerprint * GO_MULTIPLIER))) & (self.buckets - 1),
        }
    }
}

/// A fingerprint from a number below 2ᶠ − 1.
#[inline]
fn nonzero(number: u64) -> Fingerprint {
    Fingerprint::MIN.saturating_add(low_half(number))
}

/// 2⁶⁴ divided by the golden ratio, made odd: products with it are a permutation of the 64-bit numbers.
pub(crate) const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Makes bucket and fingerprint depend on all bits of a hash, so that some of its bits may choose a shard before, and
/// sequential integers will do as hashes. A permutation: different hashes stay different.
#[inline]
fn spread_hash(hash: u64) -> u64 {
    let product = hash.wrapping_mul(MULTIPLIER);
    (product ^ product >> 32).wrapping_mul(MULTIPLIER)
}

/// Spreads a fingerprint over 64 bits. The product with a constant alone would leave the sums of short fingerprints so
/// regular that tables with f = 5 fill to 0.964 instead of 0.977: docs/DESIGN.md, "Addressing".
#[inline]
fn spread_fingerprint(fingerprint: u64) -> u64 {
    let product = fingerprint.wrapping_mul(MULTIPLIER);
    product.wrapping_mul(product >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prelude::*, test_runner::RngSeed};

    fn address(f: u32, buckets: u64, addressing: Addressing) -> Address {
        // Not by way of `Params`: these tables are larger than any machine's memory.
        Address { addressing, buckets, fingerprints: (1 << f) - 1 }
    }

    fn sizes() -> impl Strategy<Value = u64> {
        prop_oneof![1u64..100, 1u64..1 << 20, (1u64 << 31)..1 << 34, 1u64..1 << 60].prop_map(|half| 2 * half)
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_size_is_an_involution_without_fixed_points(f in 2u32..=32, buckets in sizes(), hash: u64) {
            let address = address(f, buckets, Addressing::AnySize);
            let (bucket, fingerprint) = address.locate(hash);
            prop_assert!(bucket < buckets);
            prop_assert!(u64::from(fingerprint.get()) <= address.fingerprints);
            let alternate = address.alternate(bucket, fingerprint);
            prop_assert!(alternate < buckets);
            prop_assert_ne!(alternate, bucket);
            prop_assert_eq!(address.alternate(alternate, fingerprint), bucket);
        }

        #[test]
        fn different_hashes_stay_different(hash: u64) {
            prop_assert_eq!(unspread_hash(spread_hash(hash)), hash);
        }

        #[test]
        fn powers_of_two_are_involutions(f in 2u32..=32, log2 in 0u32..=32, hash: u64) {
            let address = address(f, 1 << log2, Addressing::PowerOfTwo);
            let (bucket, fingerprint) = address.locate(hash);
            let alternate = address.alternate(bucket, fingerprint);
            prop_assert!(bucket < 1 << log2 && alternate < 1 << log2);
            prop_assert_eq!(address.alternate(alternate, fingerprint), bucket);
            // The multiplier is odd: only multiples of m stay where they are.
            prop_assert_eq!(alternate == bucket, fingerprint.get().trailing_zeros() >= log2);
        }
    }

    #[test]
    fn powers_of_two_are_gos() {
        // By hand from the formulas in docs/FORMAT.md: m = 1024, f = 13.
        let address = address(13, 1024, Addressing::PowerOfTwo);
        let hash = 0x1234_5678_9abc_def0_u64;
        let (bucket, fingerprint) = address.locate(hash);
        assert_eq!(bucket, 0x1234_5678 & 1023);
        assert_eq!(fingerprint.get(), 0x9abc_def0 % 8191 + 1);
        assert_eq!(address.alternate(bucket, fingerprint), (bucket ^ (u64::from(fingerprint.get()) * 0x5bd1_e995)) & 1023);
    }

    #[test]
    fn every_bucket_and_fingerprint_is_reached_beyond_two_to_the_32_slots() {
        let address = address(24, 1 << 40, Addressing::AnySize);
        let (first, lowest) = address.locate(unspread_hash(0));
        let (last, highest) = address.locate(unspread_hash(u64::MAX));
        assert_eq!((first, last), (0, (1 << 40) - 1));
        assert_eq!(lowest.get(), 1);
        assert_eq!(highest.get(), (1 << 24) - 1);
    }

    /// The inverse of [`spread_hash`].
    fn unspread_hash(spread: u64) -> u64 {
        // Newton's iteration doubles the bits that are right; of an odd number's inverse, itself has three.
        let inverse = (0..5).fold(MULTIPLIER, |x, _| x.wrapping_mul(2u64.wrapping_sub(MULTIPLIER.wrapping_mul(x))));
        let product = spread.wrapping_mul(inverse);
        (product ^ product >> 32).wrapping_mul(inverse)
    }

    /// The fingerprint must not be foretold by the bucket: at every f and with few or many buckets, the fingerprints
    /// within one bucket are spread evenly (chi-squared with a fixed seed).
    #[test]
    fn fingerprints_are_independent_of_buckets() {
        for (addressing, buckets) in
            [(Addressing::AnySize, 2), (Addressing::AnySize, 10), (Addressing::AnySize, 1 << 33), (Addressing::PowerOfTwo, 8)]
        {
            let address = address(4, buckets, addressing);
            let mut counts = [[0u32; 15]; 2];
            let mut state = 7u64;
            for _ in 0..300_000 {
                // Not uniform for a power of two, which takes a hash as it is.
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let hash = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let (bucket, fingerprint) = address.locate(hash ^ hash >> 27);
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
