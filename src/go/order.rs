//! The order of fingerprints with equal low nibbles: Go leaves them in insertion order, this library sorts them. To write a file
//! back byte for byte, Go's order is remembered for every bucket in which it differs.
//!
//! The order is a hint, validated on use: once a bucket has changed, [`Permutation::restore`] checks whether Go could have
//! produced it.

use alloc::vec::Vec;
use core::iter::{once, repeat_n};

use crate::{
    bits::{self, index},
    filter::RawFilter,
    params::Params,
    storage::{OutOfMemory, Storage},
    table::{CODEWORD_BITS, Corrupt},
};

/// A permutation of four values as a mixed-radix number (Lehmer code), 0 to 23: for the first, second and third value, how many
/// of the values behind it are smaller. 0 is sorted order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Permutation(u8);

/// Sorts by low nibble, then by high part.
fn key(value: u32) -> u32 {
    value.rotate_right(4)
}

/// The values in this library's order of slots.
pub(super) fn sorted(mut values: [u32; 4]) -> [u32; 4] {
    values.sort_unstable_by_key(|&value| key(value));
    values
}

impl Permutation {
    /// The number of permutations without the sorted one.
    const COUNT: u8 = 23;

    /// The permutation that turns the sorted values into `values`.
    pub(super) fn of(values: [u32; 4]) -> Self {
        let [a, b, c, d] = values.map(key);
        let less = |value: u32, others: &[u32]| others.iter().map(|&other| u8::from(other < value)).sum::<u8>();
        Self(6 * less(a, &[b, c, d]) + 2 * less(b, &[c, d]) + less(c, &[d]))
    }

    /// Applies the permutation to sorted values. `None` if the low nibbles are then unsorted, which Go cannot produce.
    pub(super) fn restore(self, sorted: [u32; 4]) -> Option<[u32; 4]> {
        let Self(number) = self;
        let mut values = sorted;
        for (place, before) in [number / 6, number / 2 % 3, number % 2].into_iter().enumerate() {
            // The values from `place` on are sorted. Moving one of them to the front leaves the rest sorted.
            values[place..=place + usize::from(before)].rotate_right(1);
        }
        values.is_sorted_by_key(|value| value & 15).then_some(values)
    }
}

/// The buckets in which Go's order differs, with their permutations.
///
/// Each takes one byte: the permutation, and the number of buckets skipped since the previous one, up to ten. A byte without a
/// permutation skips eleven buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order(Vec<u8>);

/// The number of gap lengths that fit into a byte with a permutation.
const GAPS: u8 = u8::MAX / Permutation::COUNT;
/// Skips `GAPS` buckets, without a permutation.
const SKIP: u8 = GAPS * Permutation::COUNT;

impl Order {
    /// Takes buckets in ascending order, none of them with sorted values. Iterates twice: first to compute the memory it needs.
    pub(super) fn remember(buckets: impl Iterator<Item = (u64, Permutation)> + Clone) -> Result<Self, OutOfMemory> {
        let mut codes = Vec::new();
        let bytes = encode(buckets.clone()).count();
        codes.try_reserve_exact(bytes).map_err(|_| OutOfMemory::of(bytes))?;
        codes.extend(encode(buckets));
        Ok(Self(codes))
    }

    /// The heap memory in bytes.
    pub(super) fn size_in_bytes(&self) -> usize {
        self.0.capacity()
    }

    /// The buckets with their permutations.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Permutation)> {
        let mut next = 0;
        self.0.iter().filter_map(move |&code| {
            if code == SKIP {
                next += u64::from(GAPS);
                return None;
            }
            let bucket = next + u64::from(code / Permutation::COUNT);
            next = bucket + 1;
            Some((bucket, Permutation(code % Permutation::COUNT + 1)))
        })
    }
}

fn encode(buckets: impl Iterator<Item = (u64, Permutation)>) -> impl Iterator<Item = u8> {
    let mut next = 0;
    buckets.flat_map(move |(bucket, Permutation(number))| {
        let gap = bucket - next;
        next = bucket + 1;
        #[expect(clippy::cast_possible_truncation, reason = "less than eleven")]
        let rest = (gap % u64::from(GAPS)) as u8;
        let skips = index(gap / u64::from(GAPS));
        repeat_n(SKIP, skips).chain(once(rest * Permutation::COUNT + number - 1))
    })
}

// The conversion of tables. Nibbles are sorted in both orders, so codewords stay the same and only high parts are exchanged.

/// Why a packed table cannot be read.
pub(super) enum Refusal {
    /// The codeword of a bucket is not in the codebook.
    Codeword { bucket: u64, codeword: u32 },
    /// The memory for the order could not be allocated.
    OutOfMemory(OutOfMemory),
}

/// Sorts every bucket, and returns the order that it had.
pub(super) fn sort(filter: &mut RawFilter) -> Result<Order, Refusal> {
    let buckets = filter.params().buckets();
    let corrupt = |bucket| filter.first_corrupt(bucket..bucket + 1).map(|(_, corrupt)| corrupt);
    for bucket in 0..buckets {
        if let Some(Corrupt::Codeword(codeword)) = corrupt(bucket) {
            return Err(Refusal::Codeword { bucket, codeword });
        }
    }
    let in_other_order = (0..buckets).filter(|&bucket| corrupt(bucket).is_some());
    let order = Order::remember(in_other_order.map(|bucket| (bucket, Permutation::of(filter.packed_values(bucket)))));
    let order = order.map_err(Refusal::OutOfMemory)?;
    for (bucket, _) in order.iter() {
        let (values, highs) = (sorted(filter.packed_values(bucket)), HighParts::of(filter.params(), bucket));
        highs.put(filter.bytes_mut(), values);
    }
    Ok(order)
}

/// Restores the remembered order of buckets in `bytes`, a copy of the table and its padding, where that order is still valid.
pub(super) fn restore<S: Storage>(order: &Order, filter: &RawFilter<S>, bytes: &mut [u8]) {
    for (bucket, permutation) in order.iter() {
        if let Some(values) = permutation.restore(filter.packed_values(bucket)) {
            HighParts::of(filter.params(), bucket).put(bytes, values);
        }
    }
}

/// The position of the high parts of a bucket.
struct HighParts {
    bit: u64,
    width: u32,
}

impl HighParts {
    fn of(params: &Params, bucket: u64) -> Self {
        Self { bit: bucket * u64::from(params.bucket_bits()) + u64::from(CODEWORD_BITS), width: params.fingerprint_bits() - 4 }
    }

    /// Writes the high parts of four fingerprints.
    fn put(&self, bytes: &mut [u8], values: [u32; 4]) {
        for (value, slot) in values.into_iter().zip(0..) {
            bits::set(bytes, self.bit + slot * u64::from(self.width), self.width, u64::from(value >> 4));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::{prelude::*, test_runner::RngSeed};

    /// Every order of all quadruples, including equal values, is recognised, and restored if its nibbles are sorted.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn every_order_comes_back() {
        let all = |base: u32| (0..base.pow(4)).map(move |n| [n, n / base, n / base.pow(2), n / base.pow(3)].map(|n| n % base));
        // With equal nibbles, Go can produce every order.
        for values in all(4).map(|values| values.map(|high| high << 4)) {
            assert_eq!(Permutation::of(values).restore(sorted(values)), Some(values));
        }
        for values in all(4).map(|values| values.map(|value| [0, 0x13, 3, 5][value as usize])) {
            let restored = Permutation::of(values).restore(sorted(values));
            assert_eq!(restored, values.is_sorted_by_key(|value| value & 15).then_some(values));
        }
    }

    #[test]
    fn the_ascending_order_is_none() {
        for values in [[0; 4], [0, 0, 0, 0x10], [0x10, 0x20, 0x30, 0x31], [7, 7, 0x17, 8], [1, 2, 3, 0xffff_fff4]] {
            assert_eq!((sorted(values), Permutation::of(values)), (values, Permutation(0)));
        }
        assert_eq!(Permutation::of([0x40, 0x30, 0x20, 0x10]), Permutation(Permutation::COUNT));
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever the bucket holds now, restoring keeps its contents and leaves the nibbles sorted.
        #[test]
        fn a_stale_order_is_harmless(values: [u8; 4], number in 1u8..24) {
            let values = sorted(values.map(u32::from));
            if let Some(restored) = Permutation(number).restore(values) {
                prop_assert!(restored.is_sorted_by_key(|value| value & 15));
                prop_assert_eq!(sorted(restored), values);
            }
        }

        #[test]
        fn what_is_remembered_comes_back(gaps in prop::collection::vec((0u64..40, 1u8..24), 0..50)) {
            let mut next = 0;
            let buckets: Vec<_> = gaps.into_iter().map(|(gap, number)| {
                next += gap + 1;
                (next - 1, Permutation(number))
            }).collect();
            let order = Order::remember(buckets.iter().copied()).unwrap();
            prop_assert_eq!(order.iter().collect::<Vec<_>>(), buckets);
            // At most nine bits per bucket, allocated exactly.
            prop_assert!(8 * order.0.len() as u64 <= 9 * next);
            prop_assert_eq!(order.0.capacity(), order.0.len());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn gaps_of_every_length_are_remembered() {
        for gap in (0..100).chain([1000, 123_456]) {
            let buckets = vec![(gap, Permutation(23)), (2 * gap + 1, Permutation(1))];
            assert_eq!(Order::remember(buckets.iter().copied()).unwrap().iter().collect::<Vec<_>>(), buckets);
        }
    }
}
