//! Statistics.

/// The median; of an even number of values, the mean of the middle two. `None` without values.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let upper = values.len() / 2;
    let middle = *values.get(upper)?;
    Some(if values.len() % 2 == 1 { middle } else { f64::midpoint(values[upper - 1], middle) })
}

/// The 99 % confidence interval of a share, of which `hits` of `samples` were seen: the Wilson score interval (1927), which
/// holds for few hits, too.
pub(crate) fn interval(hits: u64, samples: u64) -> (f64, f64) {
    /// 99 % of a normal distribution is within this many standard deviations.
    const DEVIATIONS: f64 = 2.576;
    let (hits, samples) = (hits as f64, samples as f64);
    let square = DEVIATIONS * DEVIATIONS;
    let centre = (hits + square / 2.0) / (samples + square);
    let spread = (hits * (samples - hits) / samples + square / 4.0).sqrt();
    let half = DEVIATIONS * spread / (samples + square);
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median([]), None);
        assert_eq!(median([3.0]), Some(3.0));
        assert_eq!(median([3.0, 1.0]), Some(2.0));
        assert_eq!(median([3.0, 1.0, 100.0]), Some(3.0));
    }

    #[test]
    fn intervals_hold_what_was_seen_and_shrink() {
        let mut last = 1.0;
        for samples in [10, 100, 1000, 1_000_000] {
            let (low, high) = interval(samples / 10, samples);
            assert!(low < 0.1 && 0.1 < high);
            assert!(high - low < last);
            last = high - low;
        }
        // No hit in a thousand: it may still be six in a thousand (z²/(n + z²)).
        let (low, high) = interval(0, 1000);
        assert!(low.abs() < 1e-12 && (high - 6.636 / 1006.636).abs() < 1e-5, "{low} {high}");
    }
}
