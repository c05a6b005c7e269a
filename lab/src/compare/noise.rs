//! Decides which differences chance explains, from values and their spreads.
//!
//! Two values differ if the confidence interval of their difference does not contain 0. All intervals of a comparison together hold
//! with a probability of 99 % (Bonferroni): at most one comparison in a hundred reports a difference that does not exist.

use distrs::{Normal, StudentsT};

/// The probability that a comparison reports any figure as different by chance.
const ERROR: f64 = 0.01;

/// A value and its spread, which is unknown after a single measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) value: f64,
    pub(super) spread: Option<Spread>,
}

/// The standard error of a value, and the degrees of freedom with which it was estimated. `freedom` is `None` if the error is known
/// exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) error: f64,
    pub(super) freedom: Option<f64>,
}

impl Spread {
    /// The spread of an exact value.
    pub(super) const EXACT: Self = Self { error: 0.0, freedom: None };

    /// Returns the spread of a mean of this many values, from which the standard deviation was estimated.
    pub(super) fn of_mean(deviation: f64, values: f64) -> Option<Self> {
        (values >= 2.0).then(|| Self { error: deviation / values.sqrt(), freedom: Some(values - 1.0) })
    }

    /// Returns the spread of a mean of this many values, given the least and the greatest. It compares their difference with the
    /// expected range of a normal distribution.
    pub(super) fn of_range(least: f64, most: f64, values: f64) -> Option<Self> {
        let range = 2.0 * critical((values + 0.25 - (values - 0.375)) / (values + 0.25), None);
        Self::of_mean((most - least) / range, values)
    }

    /// Returns the spread of a median of this many values, given the quartiles.
    pub(super) fn of_median(low: f64, high: f64, values: f64) -> Option<Self> {
        /// The distance between the quartiles of a normal distribution, in standard deviations.
        const QUARTILES: f64 = 1.349;
        /// The ratio of the standard error of a median to that of a mean: √(π/2).
        const MEDIAN: f64 = 1.2533;
        Self::of_mean(MEDIAN * (high - low) / QUARTILES, values)
    }
}

/// Returns half the width of the confidence interval of a difference, in a comparison with this many figures, or `None` if a spread
/// is unknown.
pub(super) fn half_interval(figures: usize, [a, b]: [Option<Spread>; 2]) -> Option<f64> {
    let (a, b) = a.zip(b)?;
    let freedom = a.freedom.zip(b.freedom).map_or(a.freedom.or(b.freedom), |(a, b)| Some(a + b));
    Some(critical(ERROR / 2.0 / figures.max(1) as f64, freedom) * f64::hypot(a.error, b.error))
}

/// Returns the value that Student's t exceeds with this probability, which must be at most one half. Without degrees of freedom,
/// uses the normal distribution.
fn critical(tail: f64, freedom: Option<f64>) -> f64 {
    // The lower tail is more precise, because floats distinguish small probabilities better than those near 1.
    -freedom.map_or_else(|| Normal::ppf(tail, 0.0, 1.0), |freedom| StudentsT::ppf(tail, freedom))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are from printed tables.
    #[test]
    fn critical_values_match_printed_tables() {
        let table = [
            (0.025, None, 1.960),
            (0.005, None, 2.576),
            (5e-7, None, 4.892),
            (0.025, Some(1.0), 12.706),
            (0.025, Some(4.0), 2.776),
            (0.005, Some(10.0), 3.169),
            (0.0005, Some(2.0), 31.599),
            (0.0005, Some(30.0), 3.646),
        ];
        for (tail, freedom, value) in table {
            let found = critical(tail, freedom);
            assert!((found / value - 1.0).abs() < 2e-4, "{tail} {freedom:?}: {found}, not {value}");
        }
    }

    #[test]
    fn deviations_follow_from_ranges() {
        // These are the expected ranges of 2, 10 and 100 normal values.
        for (values, range) in [(2.0, 1.128), (10.0, 3.078), (100.0, 5.015)] {
            let Spread { error, freedom } = Spread::of_range(0.0, range, values).unwrap();
            assert!((error * values.sqrt() - 1.0).abs() < 0.06, "{values}: {error}");
            assert_eq!(freedom, Some(values - 1.0));
        }
        assert_eq!(Spread::of_range(0.0, 1.0, 1.0), None);
    }

    #[test]
    fn more_figures_need_wider_intervals() {
        let [spread, exact] = [Spread { error: 1.0, freedom: None }, Spread::EXACT].map(Some);
        let [one, many] = [1, 1000].map(|figures| half_interval(figures, [spread, exact]).unwrap());
        assert!((one - 2.576).abs() < 0.001 && many > 4.0, "{one} {many}");
        assert_eq!(half_interval(1, [exact; 2]), Some(0.0));
        assert_eq!(half_interval(1, [None, exact]), None);
    }
}
