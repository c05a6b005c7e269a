//! The stream of a hash: the bits that select its shard within a partition and lengthen its fingerprint.

use crate::{
    bits::{index, low_half, mask, wide},
    table::Uniform,
};

/// Spreads the hash bits that bucket and low fingerprint leave unused over a whole word. The value is 2⁶⁴ / √2, made odd. It
/// differs from the multiplier of the addressing, so that streams are independent of buckets and low fingerprints.
const MULTIPLIER: u64 = 0xb504_f333_f9de_6485;

/// The spread hash bits that select a quarter of a partition. They have 2⁵ values, the choices.
const CHOICE_BITS: u32 = 5;
/// The bits of a quarter's index.
pub(crate) const QUARTER_BITS: u32 = 2;

/// The choices of each quarter in a staggered partition: as close to the ratio 2⁰ : 2^¼ : 2^½ : 2^¾ as possible.
const STAGGERED: [u8; 1 << QUARTER_BITS] = [6, 7, 9, 10];
/// The choices of each quarter in any other partition.
const EQUAL: [u8; 1 << QUARTER_BITS] = [8; 4];

/// The rule that assigns hashes to partitions, and to shards within a partition.
///
/// Partitions get equal shares of the hashes. Shards of the same depth get equal shares of their partition, unless it is staggered:
/// then its quarters get unequal shares, so that they do not all split at the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shares {
    partition_bits: u8,
    is_staggered: bool,
    /// The quarter of each choice, in [`QUARTER_BITS`] bits: that of choice 0 is in the lowest ones.
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

    /// Returns the index of a hash's partition.
    #[inline]
    pub fn partition(self, hash: Uniform) -> usize {
        // Two shifts, because a single shift by 64 overflows.
        index(spread(hash) >> 1 >> (63 - self.partition_bits))
    }

    /// Returns the stream of a hash in its partition. The first bits are the prefix of a shard; the next ones are the upper bits.
    #[inline]
    pub fn stream(self, hash: Uniform) -> u64 {
        let bits = spread(hash) << self.partition_bits;
        let choice = bits >> (64 - CHOICE_BITS);
        // The quarters of other choices are still above this one. The next shift drops them.
        let quarter = self.quarters >> (choice * u64::from(QUARTER_BITS));
        let rest = bits << CHOICE_BITS;
        quarter << (64 - QUARTER_BITS) | rest >> QUARTER_BITS
    }

    /// Returns the first `bits` bits of the partition's index followed by the stream.
    #[inline]
    pub fn first_bits(self, hash: Uniform, bits: u32) -> usize {
        let in_partition = bits - u32::from(self.partition_bits);
        self.partition(hash) << in_partition | index(self.stream(hash) >> 1 >> (63 - in_partition))
    }

    /// Returns how many of the 2⁵ choices give streams that begin with these bits. `bits` is at most 2.
    fn choices(self, prefix: u64, bits: u32) -> u64 {
        let quarters = index(prefix << (QUARTER_BITS - bits))..index((prefix + 1) << (QUARTER_BITS - bits));
        let widths = if self.is_staggered { STAGGERED } else { EQUAL };
        widths[quarters].iter().map(|&width| u64::from(width)).sum()
    }

    /// Returns the share of a partition's hashes whose streams begin with these bits.
    pub fn prefix_share(self, prefix: u64, bits: u32) -> f64 {
        let first = bits.min(QUARTER_BITS);
        let choices = self.choices(prefix >> (bits - first), first);
        choices as f64 / (1_u64 << (CHOICE_BITS + bits - first)) as f64
    }

    /// Returns how many of a partition's `items` the shard of this depth with the largest share gets on average, rounded up.
    #[inline(never)]
    pub fn largest_part(self, items: u64, depth: u8) -> u64 {
        let (depth, first) = (u32::from(depth), u32::from(depth).min(QUARTER_BITS));
        let choices = u128::from(self.choices((1 << first) - 1, first));
        let bits = CHOICE_BITS + depth - first;
        // Rounds up by shifting: a 128-bit division takes kilobytes of code.
        let largest = (u128::from(items) * choices + (1 << bits) - 1) >> bits;
        u64::try_from(largest).unwrap_or(u64::MAX)
    }

    /// Returns the share of all hashes whose [`first_bits`](Self::first_bits) equal `value`.
    pub fn first_bits_share(self, value: u64, bits: u32) -> f64 {
        let in_partition = bits - u32::from(self.partition_bits);
        let of_partition = self.prefix_share(value & ((1 << in_partition) - 1), in_partition);
        of_partition / f64::from(1_u32 << self.partition_bits)
    }
}

#[inline]
fn spread(Uniform(hash): Uniform) -> u64 {
    hash.wrapping_mul(MULTIPLIER)
}

/// Returns a stream with `count` more bits after the quarter, 1 to 31.
pub(crate) fn insert_bits(stream: u64, bits: u64, count: u32) -> u64 {
    let rest = stream & AFTER_QUARTER;
    stream & !AFTER_QUARTER | bits << (64 - QUARTER_BITS - count) | rest >> count
}

/// Returns the `count` bits after the quarter, 1 to 31, and the stream without them: the reverse of [`insert_bits`].
pub(crate) fn remove_bits(stream: u64, count: u32) -> (u64, u64) {
    let rest = stream & AFTER_QUARTER;
    (rest >> (64 - QUARTER_BITS - count), stream & !AFTER_QUARTER | rest << count & AFTER_QUARTER)
}

/// The bits of a stream after the quarter.
const AFTER_QUARTER: u64 = u64::MAX >> QUARTER_BITS;

/// A range of a stream's bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    shift: u8,
    mask: u32,
}

impl Window {
    /// Returns a window on the `bits` ≤ 32 bits after the first `skipped` ones.
    pub fn new(skipped: u32, bits: u32) -> Self {
        debug_assert!(skipped + bits <= 64 && bits <= 32);
        #[expect(clippy::cast_possible_truncation, reason = "64 at most")]
        Self { shift: (64 - skipped - bits) as u8, mask: low_half(mask(bits)) }
    }

    /// Returns the number of bits.
    #[inline]
    pub fn len(self) -> u8 {
        #[expect(clippy::cast_possible_truncation, reason = "32 at most")]
        let len = (u32::BITS - self.mask.leading_zeros()) as u8;
        len
    }

    /// Returns these bits of a stream.
    #[inline]
    pub fn extract(self, stream: u64) -> u64 {
        // A shift by 64 wraps. It occurs only with an empty window, whose mask is 0.
        stream.wrapping_shr(self.shift.into()) & u64::from(self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::split_mix;

    /// Checks that each share of a million hashes is within five standard deviations of its mean.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn hashes_are_distributed_as_stated() {
        const HASHES: u32 = 1_000_000;
        for (partition_bits, is_staggered) in [(0, false), (0, true), (3, false), (3, true)] {
            let shares = Shares::new(partition_bits, is_staggered);
            let bits = u32::from(partition_bits) + 4;
            let mut counts = [0_u32; 1 << 7];
            for n in 0..HASHES {
                let hash = Uniform(split_mix(n.into()));
                let place = shares.first_bits(hash, bits);
                assert_eq!(place >> 4, shares.partition(hash));
                assert_eq!(place & 15, index(Window::new(0, 4).extract(shares.stream(hash))));
                counts[place] += 1;
            }
            for (place, &count) in counts[..1 << bits].iter().enumerate() {
                let mean = f64::from(HASHES) * shares.first_bits_share(place as u64, bits);
                assert!((f64::from(count) - mean).abs() < 5.0 * mean.sqrt(), "{shares:?} {place}: {count} instead of {mean}");
            }
        }
    }

    #[test]
    fn shares_add_up_to_one() {
        for shares in [Shares::new(0, true), Shares::new(2, false)] {
            for bits in 0..6 {
                let parts = (0..1 << bits).map(|prefix| shares.prefix_share(prefix, bits));
                assert!((parts.clone().sum::<f64>() - 1.0).abs() < 1e-12);
                let largest = parts.fold(0.0, f64::max);
                let rounded_up = shares.largest_part(1 << 20, bits.try_into().unwrap()) as f64;
                assert!((rounded_up - largest * f64::from(1 << 20)).abs() < 1e-6);
            }
        }
    }
}
