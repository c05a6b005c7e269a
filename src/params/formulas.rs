//! The formula for the false-positive rate, without `std`. `tuning` exports it, and has other formulas.

/// Returns the false-positive rate ε: the probability of finding an item that was never inserted, with fingerprints of `f` bits,
/// buckets of `b` slots and the load α = `load` (0 to 1).
///
/// Such an item is found if another item has the same fingerprint and the same pair of buckets. There are m(2ᶠ − 1)/2 such
/// combinations, over which the bmα items are distributed like balls over bins: ε = 1 − e^(−2bα/(2ᶠ − 1)). If the 2b slots were
/// independent, it would be 1 − (1 − α/(2ᶠ − 1))²ᵇ. For fingerprints below eight bits, that is a few percent above the measured
/// rate (docs/TUNING.md). For long fingerprints, both formulas are close to the bound in section 5.1 of the paper, 2b/2ᶠ.
pub(crate) fn false_positive_rate(f: u32, b: u32, load: f64) -> f64 {
    at_least_one(mean_matches(f, b, load))
}

/// Returns an upper bound of the false-positive rate of a filter with extra copies beside its table. An absent item matches `mean`
/// items of the table on average, and `times` as many if extra copies are included.
///
/// If the extra copies are distinct items that collide, the rate is that of a table with room for all of them. If they are equal
/// items, the table may hold each item once; then an absent item matches at most one of them, and the rate is the mean. The rate
/// never exceeds either.
pub(crate) fn rate_beside_copies(mean: f64, times: f64) -> f64 {
    mean.min(at_least_one(mean * times))
}

/// Returns the expected number of items with the fingerprint and the pair of buckets of an item that was never inserted.
pub(crate) fn mean_matches(f: u32, b: u32, load: f64) -> f64 {
    f64::from(2 * b) * load / fingerprints(f)
}

/// Returns the probability of at least one event if `mean` are expected: 1 − e^−mean. (`exp_m1` is in the standard library only.)
pub(crate) fn at_least_one(mean: f64) -> f64 {
    // Above this mean, the result rounds to 1.
    const CERTAIN: f64 = 40.0;
    if mean > CERTAIN {
        return 1.0;
    }
    if mean > 0.5 {
        // An event happens in one half of the interval or in the other.
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

/// Returns the number of fingerprints of `f` ≤ 32 bits: all values except zero, which marks an empty slot.
fn fingerprints(f: u32) -> f64 {
    f64::from(u32::MAX >> (32 - f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_close_to_the_papers_bound_for_long_fingerprints() {
        for f in 12..=32 {
            for b in [1, 2, 4, 8, 16] {
                let bound = f64::from(2 * b) * 0.95 / (1u64 << f) as f64;
                let rate = false_positive_rate(f, b, 0.95);
                assert!((rate / bound - 1.0).abs() < 0.005, "f {f} b {b}: {rate:e} {bound:e}");
            }
        }
    }

    #[test]
    fn the_rate_is_exact_for_known_cases() {
        assert!(false_positive_rate(8, 4, 0.0).abs() < f64::EPSILON);
        // With two slots and three fingerprints, a full table has two thirds of an item per combination.
        assert!((false_positive_rate(2, 1, 1.0) - (1.0 - (-2.0f64 / 3.0).exp())).abs() < 1e-15);
        assert!((false_positive_rate(1, 16, f64::INFINITY) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn at_least_one_agrees_with_the_standard_library() {
        for n in 0..4000 {
            let mean = 1e-12 * 1.008f64.powi(n);
            let (ours, theirs) = (at_least_one(mean), -(-mean).exp_m1());
            assert!((ours / theirs - 1.0).abs() < 1e-14, "{mean:e}: {ours:e} {theirs:e}");
        }
    }
}
