//! The space that other structures for approximate membership take at a false-positive rate, by their authors' formulas.
//!
//! ```
//! use koel_lab::structures::Structure;
//!
//! assert!(Structure::Bloom.bits_per_item(0.001).is_some_and(|bits| (14.3..14.5).contains(&bits)));
//! assert!(!Structure::Bloom.deletes());
//! ```

use koel::tuning::lower_bound;

/// A structure for approximate membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Structure {
    /// Bloom's filter with the best whole number of hash functions (Bloom, 1970).
    Bloom,
    /// Bloom filters of 512 bits, one cache line for each item (Putze, Sanders and Singler, 2009).
    BlockedBloom,
    /// A Bloom filter with counters of four bits (Fan, Cao, Almeida and Broder, 2000).
    CountingBloom,
    /// A d-left counting Bloom filter: four tables with buckets of eight cells, three quarters full. A cell is a remainder and a
    /// counter of two bits (Bonomi, Mitzenmacher, Panigrahy, Singh and Varghese, 2006).
    DLeftCountingBloom,
    /// A quotient filter with rank and select: 2.125 bits of metadata per slot, 95 % full (Pandey, Bender, Johnson and
    /// Patro, 2017).
    Quotient,
    /// Sorted hashes with Golomb-coded differences (Putze, Sanders and Singler, 2009).
    GolombSequence,
    /// An xor filter: 1.23 fingerprints per item (Graf and Lemire, 2020).
    Xor,
    /// A binary fuse filter of three hash functions: 1.125 fingerprints per item (Graf and Lemire, 2022).
    BinaryFuse,
    /// The lower bound for all structures: log2(1/ε) bits per item.
    LowerBound,
}

/// The number of bits in a cache line.
const BLOCK: f64 = 512.0;

impl Structure {
    /// All structures; those that support deletion come first.
    pub const ALL: [Self; 9] = [
        Self::Quotient,
        Self::DLeftCountingBloom,
        Self::CountingBloom,
        Self::Bloom,
        Self::BlockedBloom,
        Self::GolombSequence,
        Self::Xor,
        Self::BinaryFuse,
        Self::LowerBound,
    ];

    /// Returns the common name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bloom => "Bloom",
            Self::BlockedBloom => "blocked Bloom",
            Self::CountingBloom => "counting Bloom",
            Self::DLeftCountingBloom => "d-left counting Bloom",
            Self::Quotient => "quotient",
            Self::GolombSequence => "Golomb-coded sequence",
            Self::Xor => "xor",
            Self::BinaryFuse => "binary fuse",
            Self::LowerBound => "lower bound",
        }
    }

    /// Returns true if the structure supports deletion.
    #[must_use]
    pub fn deletes(self) -> bool {
        matches!(self, Self::CountingBloom | Self::DLeftCountingBloom | Self::Quotient)
    }

    /// Returns true if the structure is built from all of its items at once, and accepts no insertions afterwards.
    #[must_use]
    pub fn is_static(self) -> bool {
        matches!(self, Self::GolombSequence | Self::Xor | Self::BinaryFuse)
    }

    /// Returns true if the structure can grow without its items. (The quotient filter can, because it stores whole hashes.)
    #[must_use]
    pub fn grows(self) -> bool {
        self == Self::Quotient
    }

    /// Returns the bits per item at the false-positive rate ε. Fingerprints and remainders have whole numbers of bits. Returns
    /// `None` if ε is not between 0 and 1, or is lower than the structure can reach.
    #[must_use]
    pub fn bits_per_item(self, rate: f64) -> Option<f64> {
        if !(rate > 0.0 && rate < 1.0) {
            return None;
        }
        match self {
            Self::Bloom => Some(bloom(rate)),
            Self::BlockedBloom => blocked_bloom(rate),
            Self::CountingBloom => Some(4.0 * bloom(rate)),
            // An item's four buckets hold 24 other items. Each has the same remainder with probability 2⁻ʳ, so ε = 24/2ʳ.
            Self::DLeftCountingBloom => Some((lower_bound(rate / 24.0).ceil().max(1.0) + 2.0) / 0.75),
            // On average, 0.95 items have the same quotient, so ε = 0.95/2ʳ.
            Self::Quotient => Some((lower_bound(rate / 0.95).ceil().max(1.0) + 2.125) / 0.95),
            Self::GolombSequence => Some(golomb(rate)),
            Self::Xor => Some(1.23 * lower_bound(rate).ceil()),
            Self::BinaryFuse => Some(1.125 * lower_bound(rate).ceil()),
            Self::LowerBound => Some(lower_bound(rate)),
        }
    }
}

/// Returns the fewest bits with any number k of hash functions. A bit is set with probability ε^(1/k), which takes
/// −k/ln(1 − ε^(1/k)) bits per item.
fn bloom(rate: f64) -> f64 {
    (1..=64).map(|k| -f64::from(k) / (-rate.powf(1.0 / f64::from(k))).ln_1p()).fold(f64::INFINITY, f64::min)
}

/// Returns the fewest bits with any number of hash functions, by bisection.
fn blocked_bloom(rate: f64) -> Option<f64> {
    let is_enough = |bits: f64| (1..=32).any(|k| rate_of_blocks(BLOCK / bits, (1.0 - 1.0 / BLOCK).powi(k), k) <= rate);
    let (mut low, mut high) = (1.0, 200.0);
    if !is_enough(high) {
        return None;
    }
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if is_enough(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// Returns the rate of a blocked Bloom filter, given the mean number of items per block, the probability with which an item leaves a
/// bit unset, and the number of bits that a lookup tests. The number of items is Poisson distributed. The sum ends where further
/// terms are negligible.
#[must_use]
pub fn rate_of_blocks(mean: f64, left_unset: f64, tested: i32) -> f64 {
    let (mut chance, mut unset, mut rate) = ((-mean).exp(), 1.0, 0.0);
    for items in (1..1000).map(f64::from) {
        chance *= mean / items;
        unset *= left_unset;
        rate += chance * (1.0_f64 - unset).powi(tested);
        if items > mean && chance < 1e-40 {
            break;
        }
    }
    rate
}

/// Returns the bits per item of Golomb's code with the best integer parameter. The differences of n sorted hashes below n/ε are
/// geometrically distributed.
fn golomb(rate: f64) -> f64 {
    let parameter = (-std::f64::consts::LN_2 / (-rate).ln_1p()).ceil().max(1.0);
    let binary = parameter.log2().ceil();
    // Remainders below this one take one bit less.
    let short = binary.exp2() - parameter;
    // This is the probability of a difference of at least this size.
    let beyond = |difference: f64| (difference * (-rate).ln_1p()).exp();
    let whole = beyond(parameter);
    let saved = if parameter > 1.0 { (1.0 - beyond(short)) / (1.0 - whole) } else { 0.0 };
    1.0 / (1.0 - whole) + binary - saved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(structure: Structure, rate: f64) -> f64 {
        structure.bits_per_item(rate).expect("the structure reaches this rate")
    }

    #[test]
    fn sizes_match_known_values() {
        // A Bloom filter takes 1.44·log2(1/ε) bits, and less than 2 % more because the number of hash functions is an integer.
        for rate in [0.1, 0.01, 0.001, 1e-6] {
            let exact = lower_bound(rate) / std::f64::consts::LN_2;
            assert!((1.0..1.02).contains(&(bits(Structure::Bloom, rate) / exact)), "{rate}");
            // Blocking costs little at high rates and much at low ones (Putze et al.).
            assert!(bits(Structure::BlockedBloom, rate) > bits(Structure::Bloom, rate));
            // The entropy of the geometric distribution is log2(1/ε) + 1.44, and Golomb's code is within 0.06 of it.
            let entropy = (-(1.0 - rate) * (1.0 - rate).log2() - rate * rate.log2()) / rate;
            assert!((0.0..0.06).contains(&(bits(Structure::GolombSequence, rate) - entropy)), "{rate}");
        }
        assert!((bits(Structure::BlockedBloom, 0.01) / bits(Structure::Bloom, 0.01) - 1.0) < 0.15);
        for (structure, rate, expected) in [
            (Structure::BinaryFuse, 1.0 / 256.0, 9.0),
            (Structure::Xor, 1.0 / 256.0, 9.84),
            (Structure::Quotient, 0.95 / 512.0, 11.125 / 0.95),
            (Structure::DLeftCountingBloom, 24.0 / 16384.0, 16.0 / 0.75),
        ] {
            assert!((bits(structure, rate) - expected).abs() < 1e-9, "{structure:?}");
        }
    }

    /// Computes each term of the sum directly, not from the one before it.
    #[test]
    fn rates_of_blocked_filters_match_a_direct_sum() {
        for rate in [0.5, 0.1, 0.01, 1e-4, 1e-9] {
            let mean = BLOCK / bits(Structure::BlockedBloom, rate);
            let with = |k: i32| {
                let terms = (0..1000).map(|items| {
                    let log_factorial = (2..=items).map(|factor| f64::from(factor).ln()).sum::<f64>();
                    let chance = (f64::from(items) * mean.ln() - mean - log_factorial).exp();
                    chance * (1.0 - (1.0 - 1.0 / BLOCK).powi(k * items)).powi(k)
                });
                terms.sum::<f64>()
            };
            let best = (1..=32).map(with).fold(1.0, f64::min);
            assert!((best / rate - 1.0).abs() < 1e-9, "{best} instead of {rate}");
        }
    }

    #[test]
    fn no_structure_is_below_the_lower_bound() {
        for structure in Structure::ALL {
            for exponent in 1..40 {
                let rate = f64::from(-exponent).exp2();
                if let Some(bits) = structure.bits_per_item(rate) {
                    assert!(bits >= lower_bound(rate) - 1e-9, "{structure:?} {rate}");
                }
            }
            for invalid in [0.0, 1.0, -1.0, 2.0, f64::NAN] {
                assert_eq!(structure.bits_per_item(invalid), None);
            }
        }
    }
}
