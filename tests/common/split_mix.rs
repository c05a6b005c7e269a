//! Pseudo-random numbers with fixed seeds, for tests and for the generator of `tables/`.

/// The generator of Steele, Lea and Flood (2014).
#[derive(Clone)]
pub(crate) struct SplitMix64(pub(crate) u64);

impl Iterator for SplitMix64 {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(word ^ word >> 31)
    }
}

#[allow(dead_code, reason = "not every program uses all of them")]
#[allow(clippy::cast_possible_truncation, reason = "numbers below `end` have no more bits than it")]
impl SplitMix64 {
    /// Returns a random number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next().map_or(0, |number| ((u128::from(number) * u128::from(end)) >> 64) as u64)
    }

    pub(crate) fn pick<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.below(values.len() as u64) as usize]
    }

    pub(crate) fn shuffle<T>(&mut self, values: &mut [T]) {
        (1..values.len()).rev().for_each(|at| values.swap(at, self.below(at as u64 + 1) as usize));
    }
}

/// Returns the `Prehashed` number that places an item as `hash` did before filters mixed such numbers. The loads in `tables/` and
/// the predictions were measured with that placement.
#[allow(dead_code, reason = "only programs with such measurements use it")]
pub(crate) fn unfolded(addressing: koel::Addressing, hash: u64) -> u64 {
    if addressing == koel::Addressing::AnySize { hash ^ hash >> 31 ^ hash >> 62 } else { unmixed(hash) }
}

/// Returns x of docs/FORMAT.md's formulas: the hash that a filter mixes from a `Prehashed` number.
#[allow(dead_code, reason = "not every program computes hashes")]
pub(crate) fn mixed(hash: u64) -> u64 {
    const C: u64 = 0x9e37_79b9_7f4a_7c15;
    let p = (hash ^ hash >> 31).wrapping_mul(C);
    (p ^ p >> 32).wrapping_mul(C)
}

/// Returns the `Prehashed` number that a filter mixes into `x`, the hash of docs/FORMAT.md's formulas.
#[allow(dead_code, reason = "not every program chooses buckets and fingerprints")]
pub(crate) fn unmixed(x: u64) -> u64 {
    // The inverse of 0x9e37_79b9_7f4a_7c15 modulo 2⁶⁴.
    const INVERSE: u64 = 0xf1de_83e1_9937_733d;
    let p = x.wrapping_mul(INVERSE);
    let folded = (p ^ p >> 32).wrapping_mul(INVERSE);
    folded ^ folded >> 31 ^ folded >> 62
}
