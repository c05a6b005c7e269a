//! The mathematics that the rest stands on. No state, no tables; `tuning` is its public face, and has more.

/// The chance that an item never inserted seems to be there, ε, with fingerprints of `f` bits, buckets of `b` slots and a
/// load of `load` (0 … 1).
///
/// Each of the 2b slots looked at is taken with the probability α, and then holds one of 2ᶠ − 1 fingerprints:
/// ε = 1 − (1 − α/(2ᶠ − 1))²ᵇ, which is nearly 2bα/2ᶠ, the bound in section 5.1 of the paper.
pub(crate) fn false_positive_rate(f: u32, b: u32, load: f64) -> f64 {
    let match_one = load / fingerprints(f);
    // Σₖ (1 − p)ᵏ·p for k < 2b, which keeps its digits where 1 − (1 − p)²ᵇ would lose them.
    let mut miss = 1.0;
    let mut hit = 0.0;
    for _ in 0..2 * b {
        hit += miss * match_one;
        miss *= 1.0 - match_one;
    }
    hit
}

/// How many fingerprints of `f` ≤ 32 bits there are: all but zero, which is the empty slot.
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
        // Two slots, each one of three fingerprints: 1 − (2/3)².
        assert!((false_positive_rate(2, 1, 1.0) - 5.0 / 9.0).abs() < 1e-15);
    }
}
