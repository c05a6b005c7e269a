//! The formula of the false-positive rate, without `std`. `tuning` makes it public, and has further formulas.

/// The false-positive rate ε, the probability that an item that was never inserted is found, with fingerprints of `f` bits,
/// buckets of `b` slots and the load α = `load` (0 to 1).
///
/// It is found if another item has the same fingerprint and the same pair of buckets. There are m(2ᶠ − 1)/2 such combinations,
/// over which the bmα items are spread like balls over bins: ε = 1 − e^(−2bα/(2ᶠ − 1)). Taking the 2b slots for independent,
/// 1 − (1 − α/(2ᶠ − 1))²ᵇ, gives a few per cent more than is measured with fingerprints below eight bits (docs/TUNING.md). For
/// long fingerprints both are nearly the bound in section 5.1 of the paper, 2b/2ᶠ.
pub(crate) fn false_positive_rate(f: u32, b: u32, load: f64) -> f64 {
    at_least_one(mean_matches(f, b, load))
}

/// The false-positive rate of a filter with further copies beside its table, of which the items in the table alone would match
/// `mean` times on average: with all copies, `times` as often.
///
/// If the copies are of different items that are alike by chance, the rate is that of a table with room for all of them. If they are
/// of equal items, the table may have each of them once: then no two of its items match the same others, and the rate is the mean.
/// It is no more than either.
pub(crate) fn rate_beside_copies(mean: f64, times: f64) -> f64 {
    mean.min(at_least_one(mean * times))
}

/// The number of items, on average, that have the fingerprint and the pair of buckets of an item that was never inserted.
pub(crate) fn mean_matches(f: u32, b: u32, load: f64) -> f64 {
    f64::from(2 * b) * load / fingerprints(f)
}

/// The probability of at least one event where this many are expected: 1 − e^−mean. (`exp_m1` is in the standard library only.)
pub(crate) fn at_least_one(mean: f64) -> f64 {
    // From here on the result rounds to 1.
    const CERTAIN: f64 = 40.0;
    if mean > CERTAIN {
        return 1.0;
    }
    if mean > 0.5 {
        // In one half or in the other.
        let half = at_least_one(mean / 2.0);
        return half * (2.0 - half);
    }
    let (mut sum, mut term) = (0.0, mean);
    for k in 2..18 {
        sum += term;
        term *= -mean / f64::from(k);
    }
    sum
}

/// The number of fingerprints of `f` ≤ 32 bits: all values but zero, which is the empty slot.
fn fingerprints(f: u32) -> f64 {
    f64::from(u32::MAX >> (32 - f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_papers_bound_for_long_fingerprints() {
        for f in 12..=32 {
            for b in [1, 2, 4, 8, 16] {
                let bound = f64::from(2 * b) * 0.95 / (1u64 << f) as f64;
                let rate = false_positive_rate(f, b, 0.95);
                assert!((rate / bound - 1.0).abs() < 0.005, "f {f} b {b}: {rate:e} {bound:e}");
            }
        }
    }

    #[test]
    fn the_ends_are_exact() {
        assert!(false_positive_rate(8, 4, 0.0).abs() < f64::EPSILON);
        // Two slots and three fingerprints: two thirds of an item in each place on average.
        assert!((false_positive_rate(2, 1, 1.0) - (1.0 - (-2.0f64 / 3.0).exp())).abs() < 1e-15);
        assert!((false_positive_rate(1, 16, f64::INFINITY) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn the_exponential_is_that_of_the_standard_library() {
        for n in 0..4000 {
            let mean = 1e-12 * 1.008f64.powi(n);
            let (ours, theirs) = (at_least_one(mean), -(-mean).exp_m1());
            assert!((ours / theirs - 1.0).abs() < 1e-14, "{mean:e}: {ours:e} {theirs:e}");
        }
    }
}
