//! Statistics.

/// The median of some values, and the quartiles below and above it. Between two values, they are interpolated: the median of
/// an even number of values is the mean of the middle two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quartiles {
    /// A quarter of the values are below.
    pub low: f64,
    /// Half of the values are below.
    pub median: f64,
    /// A quarter of the values are above.
    pub high: f64,
}

impl Quartiles {
    /// `None` without values.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let quarter = |number: usize| {
            let (place, rest) = (last * number / 4, last * number % 4);
            let next = values[(place + 1).min(last)];
            values[place] + (next - values[place]) * rest as f64 / 4.0
        };
        Some(Self { low: quarter(1), median: quarter(2), high: quarter(3) })
    }
}

/// 99 % of a normal distribution is within this many standard deviations of its mean.
pub(crate) const DEVIATIONS: f64 = 2.576;

/// The 99 % confidence interval of a share, of which `hits` of `samples` were seen: the Wilson score interval (1927), which
/// holds for few hits, too. Both ends are between 0 and 1.
///
/// # Panics
/// Without samples.
///
/// # Example
/// ```
/// let (low, high) = koel_lab::interval(100, 100_000);
/// assert!(0.0007 < low && low < 0.001 && 0.001 < high && high < 0.0013);
/// ```
#[must_use]
pub fn interval(hits: u64, samples: u64) -> (f64, f64) {
    assert!(samples > 0, "no samples");
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
    fn medians_and_quartiles() {
        let quartiles = |values: &[f64]| Quartiles::of(values.iter().copied()).map(|found| (found.low, found.median, found.high));
        assert_eq!(quartiles(&[]), None);
        assert_eq!(quartiles(&[3.0]), Some((3.0, 3.0, 3.0)));
        assert_eq!(quartiles(&[3.0, 1.0]), Some((1.5, 2.0, 2.5)));
        assert_eq!(quartiles(&[3.0, 1.0, 100.0]), Some((2.0, 3.0, 51.5)));
        assert_eq!(quartiles(&[4.0, 1.0, 3.0, 2.0]), Some((1.75, 2.5, 3.25)));
        assert_eq!(quartiles(&[5.0, 4.0, 3.0, 2.0, 1.0]), Some((2.0, 3.0, 4.0)));
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
