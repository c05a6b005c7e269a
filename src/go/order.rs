//! The order of fingerprints whose low nibbles are equal: Go leaves them as they come, this library sorts them. What Go's
//! order was is remembered for every bucket in which it was another, so that a file can be written as it was read.
//!
//! What is remembered need not be right any more once a bucket has changed: it is a hint, and [`Permutation::restore`] says
//! whether Go could have it.

use alloc::vec::Vec;
use core::iter::{once, repeat_n};

use crate::{bits::index, storage::OutOfMemory};

/// An order of four, as a number of mixed base: how many of those behind the first, the second and the third are less. 0 is
/// the ascending one, and there are 24.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Permutation(u8);

/// By the low nibble, then by the high part.
fn key(value: u32) -> u32 {
    value.rotate_right(4)
}

/// As this library has a bucket's slots.
pub(super) fn sorted(mut values: [u32; 4]) -> [u32; 4] {
    values.sort_unstable_by_key(|&value| key(value));
    values
}

impl Permutation {
    /// All of them but the ascending one.
    const COUNT: u8 = 23;

    /// What puts the sorted values into this order.
    pub(super) fn of(values: [u32; 4]) -> Self {
        let [a, b, c, d] = values.map(key);
        let less = |value: u32, others: &[u32]| others.iter().map(|&other| u8::from(other < value)).sum::<u8>();
        Self(6 * less(a, &[b, c, d]) + 2 * less(b, &[c, d]) + less(c, &[d]))
    }

    /// Puts sorted values into this order. None if that is not one that Go can have, with low nibbles that ascend.
    pub(super) fn restore(self, sorted: [u32; 4]) -> Option<[u32; 4]> {
        let Self(number) = self;
        let mut values = sorted;
        for (place, before) in [number / 6, number / 2 % 3, number % 2].into_iter().enumerate() {
            // The values from here on ascend; the chosen one comes to the front, and they still do behind it.
            values[place..=place + usize::from(before)].rotate_right(1);
        }
        values.is_sorted_by_key(|value| value & 15).then_some(values)
    }
}

/// The buckets whose order was another, and what it was.
///
/// A byte for each of them: the permutation, and how many buckets there are between it and the one before, up to ten. A byte
/// without a permutation stands for eleven buckets more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order(Vec<u8>);

/// Gaps that a byte has room for beside a permutation.
const GAPS: u8 = u8::MAX / Permutation::COUNT;
/// As many buckets as gaps, and no permutation.
const SKIP: u8 = GAPS * Permutation::COUNT;

impl Order {
    /// Of buckets that ascend, none of them with the ascending order. Goes through them twice: the first time to find out how
    /// much memory it takes.
    pub(super) fn remember(buckets: impl Iterator<Item = (u64, Permutation)> + Clone) -> Result<Self, OutOfMemory> {
        let mut codes = Vec::new();
        let bytes = encode(buckets.clone()).count();
        codes.try_reserve_exact(bytes).map_err(|_| OutOfMemory::of(bytes))?;
        codes.extend(encode(buckets));
        Ok(Self(codes))
    }

    /// Bytes on the heap.
    pub(super) fn size_in_bytes(&self) -> usize {
        self.0.capacity()
    }

    /// The buckets, and the order that each of them had.
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::{prelude::*, test_runner::RngSeed};

    /// Every order of every four, with some that are equal: it is found, and restored, if its nibbles ascend.
    #[test]
    fn every_order_comes_back() {
        let all = |base: u32| (0..base.pow(4)).map(move |n| [n, n / base, n / base.pow(2), n / base.pow(3)].map(|n| n % base));
        // The same nibble: every order is one that Go can have.
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

        /// Whatever has become of the bucket since: what is restored has the same contents, and nibbles that ascend.
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
            // At most nine bits a bucket, of the memory that was counted beforehand.
            prop_assert!(8 * order.0.len() as u64 <= 9 * next);
            prop_assert_eq!(order.0.capacity(), order.0.len());
        }
    }

    #[test]
    fn gaps_of_every_length_are_remembered() {
        for gap in (0..100).chain([1000, 123_456]) {
            let buckets = vec![(gap, Permutation(23)), (2 * gap + 1, Permutation(1))];
            assert_eq!(Order::remember(buckets.iter().copied()).unwrap().iter().collect::<Vec<_>>(), buckets);
        }
    }
}
