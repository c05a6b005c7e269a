//! The addressing of docs/FORMAT.md, inverted: hashes that lead to a chosen bucket, low fingerprint and stream.
//!
//! The seed is known by default, so anyone can choose items in this way.

#![allow(clippy::cast_possible_truncation, reason = "the numbers are below 2⁶⁴, and indices are small")]

use super::split_mix::unmixed;
use koel::ElasticFilter;

/// The multiplier of alternate buckets.
const C: u64 = 0x9e37_79b9_7f4a_7c15;
/// The multiplier of streams.
const M: u64 = 0xb504_f333_f9de_6485;
/// The first of the 2⁵ choices that lead to each quarter.
const STAGGERED: [u64; 4] = [0, 6, 13, 22];
const EQUAL: [u64; 4] = [0, 8, 16, 24];

/// The addressing of a filter of any size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// The bits of a low fingerprint.
    pub(crate) f: u32,
    /// The number of buckets of a table.
    pub(crate) m: u64,
    pub(crate) partition_bits: u32,
    pub(crate) is_staggered: bool,
    /// The bits of the stream that the filter knows of an item.
    #[allow(dead_code, reason = "only tests of lists use it")]
    pub(crate) known_bits: u32,
}

impl Plan {
    /// Returns the addressing of a growing filter's first generation.
    pub(crate) fn of(filter: &ElasticFilter) -> Self {
        let header: Vec<u8> = filter.to_bytes().into_iter().take(64).collect();
        let m = header[24..28].iter().rev().fold(0, |m, &byte| m << 8 | u64::from(byte));
        let partition_bits = filter.partitions().trailing_zeros();
        Self { f: header[11].into(), m, partition_bits, is_staggered: header[31] == 1, known_bits: header[29].into() }
    }

    /// Returns the bucket of fingerprint t that is the other one of bucket i.
    pub(crate) fn alternate(&self, i: u64, t: u64) -> u64 {
        let u = t.wrapping_mul(C);
        let g = u.wrapping_mul(u >> 32);
        let offset = high(g, self.m) | 1;
        (offset % self.m + self.m - i % self.m) % self.m
    }

    /// Returns the fingerprints whose buckets are i and the most common other one.
    pub(crate) fn fingerprints_of_one_pair(&self, i: u64) -> Vec<u64> {
        // More than 2¹⁶ are never needed.
        let mut pairs: Vec<(u64, u64)> = (1..1 << self.f.min(16)).map(|t| (self.alternate(i, t), t)).collect();
        pairs.sort_unstable();
        let groups = pairs.chunk_by(|one, other| one.0 == other.0);
        groups.max_by_key(|group| group.len()).unwrap_or_default().iter().map(|&(_, t)| t).collect()
    }

    /// Returns the hashes, as `Prehashed` numbers, that lead to bucket i, fingerprint t and a stream of partition 0 whose first
    /// `bits` bits are `prefix`. There may be none. `bits` is at least two.
    pub(crate) fn hashes(&self, i: u64, t: u64, [prefix, bits]: [u64; 2]) -> impl Iterator<Item = u64> + use<> {
        // The product of a hash and m has the bucket in its upper half, and the fingerprint in the upper half of the lower one.
        let residue = |t: u64| (u128::from(t - 1) << 32).div_ceil((1_u128 << self.f) - 1);
        let first = |t: u64| ((u128::from(i) << 64 | residue(t) << 32).div_ceil(self.m.into())) as u64;
        let start = first(t);
        // The last hashes of the range may have the next fingerprint, because residues are rounded.
        let len = ((1_u128 << 64) / u128::from(self.m) / ((1_u128 << self.f) - 1)) as u64 / 10 * 9;
        let choices = if self.is_staggered { STAGGERED } else { EQUAL };
        let (quarter, rest) = (prefix >> (bits - 2), prefix & ((1 << (bits - 2)) - 1));
        let spread = |rest: u64| (choices[quarter as usize] << 59 | rest << (61 - bits)) >> self.partition_bits;
        let (low, width) = (spread(rest), (1 << (61 - bits)) >> self.partition_bits);
        let mut next = 0;
        std::iter::from_fn(move || {
            let offset = low.wrapping_sub(start.wrapping_add(next).wrapping_mul(M));
            let step = first_multiple(M, offset, width - 1)?;
            let at = next.checked_add(step).filter(|&at| at < len)?;
            next = at + 1;
            Some(unmixed(start.wrapping_add(at)))
        })
    }

    /// Returns the first of the [`hashes`](Self::hashes).
    #[allow(dead_code, reason = "the model of growing filters uses all hashes")]
    pub(crate) fn hash(&self, i: u64, t: u64, stream: [u64; 2]) -> Option<u64> {
        self.hashes(i, t, stream).next()
    }

    /// Returns hashes that no table holds: they have different fingerprints, but the same two buckets, and streams with as many equal
    /// bits as a filter with a low rate knows.
    #[allow(dead_code, reason = "the model of growing filters mixes such hashes with others")]
    pub(crate) fn crowd(&self, number: usize) -> Vec<u64> {
        const COMMON: u64 = 36;
        let bucket = self.m / 3;
        let fingerprints = self.fingerprints_of_one_pair(bucket);
        fingerprints.iter().filter_map(|&t| self.hash(bucket, t, [0, COMMON])).take(number).collect()
    }
}

fn high(one: u64, other: u64) -> u64 {
    ((u128::from(one) * u128::from(other)) >> 64) as u64
}

/// Returns the least j for which a·j modulo 2⁶⁴ is one of `low` to `low + more`.
fn first_multiple(a: u64, low: u64, more: u64) -> Option<u64> {
    match low.checked_add(more) {
        Some(high) if low > 0 => first_in(a.into(), 1 << 64, low.into(), high.into()).map(|j| j as u64),
        // The range has 0.
        _ => Some(0),
    }
}

/// Returns the least j for which a·j modulo m is one of `low` to `high`, where 0 < low ≤ high < m, as Euclid's algorithm finds it.
fn first_in(a: u128, m: u128, low: u128, high: u128) -> Option<u128> {
    if a == 0 {
        return None;
    }
    let j = low.div_ceil(a);
    if a * j <= high {
        return Some(j);
    }
    // No multiple of a is in the range itself, so neither is one in the range modulo a.
    let wraps = first_in(m % a, a, (a - high % a) % a, (a - low % a) % a)?;
    Some((low + m * wraps).div_ceil(a))
}
