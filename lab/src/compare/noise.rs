//! What chance alone explains: values with the spread that they were measured with.
//!
//! Two values differ if a confidence interval of their difference does not contain 0. It is a 99 % interval for all figures of a
//! comparison together (Bonferroni): one comparison in a hundred calls anything different that is not.

use distrs::{Normal, StudentsT};

/// The probability that any of the figures of a comparison is called different by chance.
const ERROR: f64 = 0.01;

/// A value and its spread: unknown after one measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) value: f64,
    pub(super) spread: Option<Spread>,
}

/// How far a value may be from the true one: its standard error, estimated with so many degrees of freedom; without them, it is
/// known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) error: f64,
    pub(super) freedom: Option<f64>,
}

impl Spread {
    /// That of the true value.
    pub(super) const EXACT: Self = Self { error: 0.0, freedom: None };

    /// That of a mean of values with this standard deviation, estimated from as many.
    pub(super) fn of_mean(deviation: f64, values: f64) -> Option<Self> {
        (values >= 2.0).then(|| Self { error: deviation / values.sqrt(), freedom: Some(values - 1.0) })
    }

    /// That of a mean of so many values, of which the least and the greatest are known: a normal distribution has this range
    /// on average.
    pub(super) fn of_range(least: f64, most: f64, values: f64) -> Option<Self> {
        let range = 2.0 * critical((values + 0.25 - (values - 0.375)) / (values + 0.25), None);
        Self::of_mean((most - least) / range, values)
    }

    /// That of a median of so many values, half of which lie between these two.
    pub(super) fn of_median(low: f64, high: f64, values: f64) -> Option<Self> {
        /// The quartiles of a normal distribution are so many standard deviations apart.
        const QUARTILES: f64 = 1.349;
        /// The standard error of a median is as many times that of a mean: √(π/2).
        const MEDIAN: f64 = 1.2533;
        Self::of_mean(MEDIAN * (high - low) / QUARTILES, values)
    }
}

/// Half the width of the interval of the difference, in a comparison with so many figures. `None` if a spread is unknown.
pub(super) fn half_interval(figures: usize, [a, b]: [Option<Spread>; 2]) -> Option<f64> {
    let (a, b) = a.zip(b)?;
    let freedom = a.freedom.zip(b.freedom).map_or(a.freedom.or(b.freedom), |(a, b)| Some(a + b));
    Some(critical(ERROR / 2.0 / figures.max(1) as f64, freedom) * f64::hypot(a.error, b.error))
}

/// The value that Student's t exceeds with this probability, at most one half; without degrees of freedom, a normal value.
fn critical(tail: f64, freedom: Option<f64>) -> f64 {
    // By the lower tail: more digits distinguish small probabilities than those near 1.
    -freedom.map_or_else(|| Normal::ppf(tail, 0.0, 1.0), |freedom| StudentsT::ppf(tail, freedom))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of printed tables.
    #[test]
    fn critical_values_are_those_of_tables() {
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
    fn a_range_gives_the_deviation() {
        // The expected ranges of 2, 10 and 100 normal values.
        for (values, range) in [(2.0, 1.128), (10.0, 3.078), (100.0, 5.015)] {
            let Spread { error, freedom } = Spread::of_range(0.0, range, values).unwrap();
            assert!((error * values.sqrt() - 1.0).abs() < 0.06, "{values}: {error}");
            assert_eq!(freedom, Some(values - 1.0));
        }
        assert_eq!(Spread::of_range(0.0, 1.0, 1.0), None);
    }

    #[test]
    fn more_figures_take_wider_intervals() {
        let [spread, exact] = [Spread { error: 1.0, freedom: None }, Spread::EXACT].map(Some);
        let [one, many] = [1, 1000].map(|figures| half_interval(figures, [spread, exact]).unwrap());
        assert!((one - 2.576).abs() < 0.001 && many > 4.0, "{one} {many}");
        assert_eq!(half_interval(1, [exact; 2]), Some(0.0));
        assert_eq!(half_interval(1, [None, exact]), None);
    }
}
