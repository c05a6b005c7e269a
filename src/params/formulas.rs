//! Formulas for the false-positive rate and for crowded buckets, without `std`. `tuning` exports the first, and has others.

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
    2.0 * f64::from(b) * load / fingerprints(f)
}

/// Returns how many of `items` items are expected to have no room because 2b others share their fingerprint and both buckets. Two
/// items do so with the probability `share`.
///
/// This is the expected number of sets of 2b + 1 such items, C(n, 2b + 1)·share²ᵇ (paper, section 4), so it is an upper bound.
pub(crate) fn excess_items(items: f64, b: u32, share: f64) -> f64 {
    (1..=2 * b).map(f64::from).fold(items, |sets, others| sets * share * (items - others) / (others + 1.0))
}

/// Returns the expected number of connected sets with more items than buckets, if buckets have one slot. It is at most the sum of
/// three cases. In these, buckets are vertices, and items are edges between them.
///
/// Each vertex has c = 2n/m edges on average, and cᵏ paths of k edges begin at it. A connected set has more edges than vertices if
/// it has two cycles. A cycle is either a pair of items with the same buckets, of which a vertex has c²/2t, where t is the number
/// of fingerprints; or it is longer.
pub(crate) fn crowded_sets(items: f64, f: u32, buckets: f64) -> f64 {
    let (c, t) = (2.0 * items / buckets, fingerprints(f));
    if c >= 1.0 {
        return f64::INFINITY;
    }
    let paths = 1.0 / (1.0 - c);
    // Two pairs of items that share an item, or are connected by a path.
    let short = items / (t * t) * c * c * (1.0 / 6.0 + c / 4.0 * paths);
    // A pair of items, and a longer cycle to which a path leads, or of which the pair is a part.
    let mixed = c * c / t * (c / 4.0 * paths * paths + paths / 4.0);
    // Two longer cycles: the expected number of bicyclic components of a random multigraph (Janson, Knuth, Łuczak and Pittel,
    // "The birth of the giant component", 1993).
    let long = c * c * (3.0 + 2.0 * c) / 24.0 * paths * paths * paths / buckets;
    short + mixed + long
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
    use alloc::vec::Vec;

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

    /// The bound of the number of crowded items is above the Poisson tail, but not far.
    #[test]
    #[cfg(feature = "std")]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn excess_items_bound_the_overfull_pairs() {
        for (b, f, log2, load) in [(2, 6, 20, 0.2), (3, 8, 24, 0.9), (4, 5, 19, 0.96), (4, 7, 36, 0.9), (8, 4, 30, 0.9)] {
            let buckets = 2f64.powi(log2);
            let exact = crate::tuning::overfull_pairs(b, f, 1 << log2, load);
            let bound = excess_items(load * buckets * f64::from(b), b, mean_matches(f, 1, 1.0) / buckets);
            assert!((1.0..2.5).contains(&(bound / exact)), "b {b}, f {f}: {bound:e} {exact:e}");
        }
        // There is room for all of 2b items.
        assert!(excess_items(8.0, 4, 1.0).abs() < f64::EPSILON);
        assert!((excess_items(9.0, 4, 1.0) - 1.0).abs() < 1e-12);
    }

    /// Summed over all tables of a size, at the load of the first refusal, the formula for buckets of one slot should give about
    /// one. Far less would mean that it misses a cause of refusals.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn the_formula_for_buckets_of_one_slot_predicts_the_first_refusal() {
        let mut logarithms = Vec::new();
        for line in include_str!("../../tables/max_load.tsv").lines().skip(2) {
            let fields: Vec<&str> = line.split('\t').collect();
            let number = |place: usize| fields[place].parse::<f64>().expect("a number");
            let [b, f, log2_buckets, trials, min] = [1, 2, 3, 4, 5].map(number);
            if b > 1.0 || log2_buckets < 8.0 {
                continue;
            }
            let buckets = log2_buckets.exp2();
            let expected = crowded_sets(min * buckets, fields[2].parse().expect("a number"), buckets) * trials;
            assert!(expected > 1e-3, "f {f}, 2^{log2_buckets} buckets: {expected}");
            logarithms.push(expected.ln());
        }
        let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
        assert_eq!(logarithms.len(), 2 * 13 * 9);
        assert!((-0.7..0.7).contains(&mean), "{mean}");
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
