//! The stream of a hash: the bits that choose its partition and its shard, and become its upper bits.

use crate::{
    bits::{index, low_half, wide},
    table::Uniform,
};

/// Spreads the bits of a hash that bucket and low fingerprint leave unused over a whole word, the stream: 2⁶⁴ divided by √2, made
/// odd. (Not the multiplier of the addressing, so that the two stay independent.)
const MULTIPLIER: u64 = 0xb504_f333_f9de_6485;

/// Bits of a spread hash that choose a quarter of the partition, and bits that number the quarter.
const CHOICE_BITS: u32 = 5;
const QUARTER_BITS: u32 = 2;

/// The quarters of a staggered partition get this many of the 2⁵ choices: in the ratio of 2⁰ : 2^¼ : 2^½ : 2^¾, as nearly as
/// possible.
const STAGGERED: [u8; 1 << QUARTER_BITS] = [6, 7, 9, 10];
const EQUAL: [u8; 1 << QUARTER_BITS] = [8; 4];

/// How hashes are shared out among partitions, and within a partition.
///
/// Partitions get equal shares. A partition's shards get equal shares in the same depth, unless the partition is staggered: then
/// its quarters differ, so that they do not all split at the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shares {
    partition_bits: u8,
    is_staggered: bool,
    /// For each choice, the two bits of its quarter.
    quarters: u64,
}

impl Shares {
    pub fn new(partition_bits: u8, is_staggered: bool) -> Self {
        let widths = if is_staggered { STAGGERED } else { EQUAL };
        let mut quarters = 0;
        for (quarter, width) in widths.into_iter().enumerate().rev() {
            for _ in 0..width {
                quarters = quarters << QUARTER_BITS | wide(quarter);
            }
        }
        Self { partition_bits, is_staggered, quarters }
    }

    pub fn partition_bits(self) -> u8 {
        self.partition_bits
    }

    pub fn is_staggered(self) -> bool {
        self.is_staggered
    }

    /// The index of a hash's partition.
    #[inline]
    pub fn partition(self, hash: Uniform) -> usize {
        // Two shifts, since one by 64 is none.
        index(spread(hash) >> 1 >> (63 - self.partition_bits))
    }

    /// The stream of a hash in its partition. Its first bits lead to a shard; those after them are the upper bits.
    #[inline]
    pub fn stream(self, hash: Uniform) -> u64 {
        let bits = spread(hash) << self.partition_bits;
        let quarter = self.quarters >> (bits >> (64 - CHOICE_BITS) << 1);
        quarter << (64 - QUARTER_BITS) | bits << CHOICE_BITS >> QUARTER_BITS
    }

    /// The first `bits` bits of partition and stream together.
    #[inline]
    pub fn first_bits(self, hash: Uniform, bits: u32) -> usize {
        let in_partition = bits - u32::from(self.partition_bits);
        self.partition(hash) << in_partition | index(self.stream(hash) >> 1 >> (63 - in_partition))
    }

    /// How many of the 2⁵ choices lead to streams that begin with these bits, two at most.
    fn choices(self, prefix: u64, bits: u32) -> u64 {
        let quarters = index(prefix << (QUARTER_BITS - bits))..index((prefix + 1) << (QUARTER_BITS - bits));
        let widths = if self.is_staggered { STAGGERED } else { EQUAL };
        widths[quarters].iter().map(|&width| u64::from(width)).sum()
    }

    /// The share of a partition's hashes whose streams begin with these bits.
    pub fn of_prefix(self, prefix: u64, bits: u32) -> f64 {
        let first = bits.min(QUARTER_BITS);
        let choices = self.choices(prefix >> (bits - first), first);
        choices as f64 / (1_u64 << (CHOICE_BITS + bits - first)) as f64
    }

    /// How many of this many items of a partition have their first `depth` bits in common, of those bits that most have.
    #[inline(never)]
    pub fn largest(self, items: u64, depth: u8) -> u64 {
        let (depth, first) = (u32::from(depth), u32::from(depth).min(QUARTER_BITS));
        let choices = u128::from(self.choices((1 << first) - 1, first));
        let bits = CHOICE_BITS + depth - first;
        // As a division that rounds up, which is kilobytes of code.
        let largest = (u128::from(items) * choices + (1 << bits) - 1) >> bits;
        u64::try_from(largest).unwrap_or(u64::MAX)
    }

    /// The share of all hashes for which [`first_bits`](Self::first_bits) has this value.
    pub fn of_first_bits(self, value: u64, bits: u32) -> f64 {
        let in_partition = bits - u32::from(self.partition_bits);
        let in_a_partition = self.of_prefix(value & ((1 << in_partition) - 1), in_partition);
        in_a_partition / f64::from(1_u32 << self.partition_bits)
    }
}

#[inline]
fn spread(Uniform(hash): Uniform) -> u64 {
    hash.wrapping_mul(MULTIPLIER)
}

/// Which bits of a stream to take, and where to put them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    shift: u8,
    mask: u32,
}

impl Window {
    /// The `bits` bits that follow the first `skipped` ones, with `below` zeros below them.
    pub fn new(skipped: u32, bits: u32, below: u32) -> Self {
        debug_assert!(skipped + bits + below <= 64 && bits + below <= 32);
        let mask = ((1_u64 << bits) - 1) << below;
        #[expect(clippy::cast_possible_truncation, reason = "64 at most")]
        Self { shift: (64 - skipped - bits - below) as u8, mask: low_half(mask) }
    }

    /// The number of bits.
    #[inline]
    pub fn len(self) -> u8 {
        #[expect(clippy::cast_possible_truncation, reason = "32 at most")]
        let len = self.mask.count_ones() as u8;
        len
    }

    #[inline]
    pub fn of(self, stream: u64) -> u64 {
        // A shift by 64 wraps; then there are no bits to take, and the mask is empty.
        stream.wrapping_shr(self.shift.into()) & u64::from(self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::split_mix;

    /// A million hashes: each share is within five standard deviations of its mean.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn hashes_are_shared_out_as_stated() {
        const HASHES: u32 = 1_000_000;
        for (partition_bits, is_staggered) in [(0, false), (0, true), (3, false), (3, true)] {
            let shares = Shares::new(partition_bits, is_staggered);
            let bits = u32::from(partition_bits) + 4;
            let mut counts = [0_u32; 1 << 7];
            for n in 0..HASHES {
                let hash = Uniform(split_mix(n.into()));
                let place = shares.first_bits(hash, bits);
                assert_eq!(place >> 4, shares.partition(hash));
                assert_eq!(place & 15, index(Window::new(0, 4, 0).of(shares.stream(hash))));
                counts[place] += 1;
            }
            for (place, &count) in counts[..1 << bits].iter().enumerate() {
                let mean = f64::from(HASHES) * shares.of_first_bits(place as u64, bits);
                assert!((f64::from(count) - mean).abs() < 5.0 * mean.sqrt(), "{shares:?} {place}: {count} instead of {mean}");
            }
        }
    }

    #[test]
    fn the_parts_are_the_whole() {
        for shares in [Shares::new(0, true), Shares::new(2, false)] {
            for bits in 0..6 {
                let parts = (0..1 << bits).map(|prefix| shares.of_prefix(prefix, bits));
                assert!((parts.clone().sum::<f64>() - 1.0).abs() < 1e-12);
                let largest = parts.fold(0.0, f64::max);
                let of_many = shares.largest(1 << 20, bits.try_into().unwrap()) as f64;
                assert!((of_many - largest * f64::from(1 << 20)).abs() < 1e-6);
            }
        }
    }
}
