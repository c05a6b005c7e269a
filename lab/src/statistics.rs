//! Quartiles and confidence intervals.

/// The median of some values, and the quartiles below and above it. Between two values, they are interpolated linearly: the
/// median of an even number of values is the mean of the middle two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quartiles {
    /// The lower quartile: a quarter of the values are below it.
    pub low: f64,
    /// The median: half of the values are below it.
    pub median: f64,
    /// The upper quartile: a quarter of the values are above it.
    pub high: f64,
}

impl Quartiles {
    /// Returns the quartiles of these values, or `None` if there are no values.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let quarter = |number: usize| {
            let (index, rest) = (last * number / 4, last * number % 4);
            let next = values[(index + 1).min(last)];
            values[index] + (next - values[index]) * rest as f64 / 4.0
        };
        Some(Self { low: quarter(1), median: quarter(2), high: quarter(3) })
    }
}

/// The number of standard deviations around the mean that cover 99 % of a normal distribution.
pub(crate) const DEVIATIONS: f64 = 2.576;

/// Returns the 99 % confidence interval of a share, given `hits` among `samples`: the Wilson score interval (1927), which is valid
/// even for few hits. Both ends are between 0 and 1.
///
/// # Panics
/// If `samples` is 0.
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
    let center = (hits + square / 2.0) / (samples + square);
    let spread = (hits * (samples - hits) / samples + square / 4.0).sqrt();
    let half = DEVIATIONS * spread / (samples + square);
    ((center - half).max(0.0), (center + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_interpolated() {
        let quartiles = |values: &[f64]| Quartiles::of(values.iter().copied()).map(|found| (found.low, found.median, found.high));
        assert_eq!(quartiles(&[]), None);
        assert_eq!(quartiles(&[3.0]), Some((3.0, 3.0, 3.0)));
        assert_eq!(quartiles(&[3.0, 1.0]), Some((1.5, 2.0, 2.5)));
        assert_eq!(quartiles(&[3.0, 1.0, 100.0]), Some((2.0, 3.0, 51.5)));
        assert_eq!(quartiles(&[4.0, 1.0, 3.0, 2.0]), Some((1.75, 2.5, 3.25)));
        assert_eq!(quartiles(&[5.0, 4.0, 3.0, 2.0, 1.0]), Some((2.0, 3.0, 4.0)));
    }

    #[test]
    fn intervals_contain_the_observed_share_and_shrink() {
        let mut last = 1.0;
        for samples in [10, 100, 1000, 1_000_000] {
            let (low, high) = interval(samples / 10, samples);
            assert!(low < 0.1 && 0.1 < high);
            assert!(high - low < last);
            last = high - low;
        }
        // Without a hit in a thousand samples, the share may still be six in a thousand: z²/(n + z²).
        let (low, high) = interval(0, 1000);
        assert!(low.abs() < 1e-12 && (high - 6.636 / 1006.636).abs() < 1e-5, "{low} {high}");
    }
}
