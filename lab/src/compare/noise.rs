//! Decides which differences chance explains, from values and their spreads.
//!
//! Two values differ if the confidence interval of their difference does not contain 0. All intervals of a comparison together hold
//! with a probability of about 99 % (Bonferroni): about one comparison in a hundred, or fewer, reports a difference that does not
//! exist. Where spreads are estimated, this is so for rounds that are normally distributed, with a similar number and spread in both
//! runs. Far out, the intervals of Welch's test are too narrow if these differ much and the rounds are few.

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
        let range = 2.0 * order_statistic(values - 1.0, values);
        Self::of_mean((most - least) / range, values)
    }

    /// Returns the spread of a median of this many values, given their [`Quartiles`](crate::Quartiles). It compares the distance
    /// between the quartiles with its expected value for as many values of a normal distribution. For few values, that is far less
    /// than the distance of the distribution's own quartiles.
    pub(super) fn of_median(low: f64, high: f64, values: f64) -> Option<Self> {
        /// The ratio of the standard error of a median to that of a mean: √(π/2). For few values, it is less.
        const MEDIAN: f64 = 1.2533;
        if values < 2.0 {
            return None;
        }
        // Quartiles are interpolated between two values, and so is the expected quartile. The other one is as far below the mean.
        let position = 0.75 * (values - 1.0);
        let expected = |index| order_statistic(index, values);
        let above = expected(position.floor()) * (1.0 - position.fract()) + expected(position.ceil()) * position.fract();
        let deviation = (high - low) / (2.0 * above);
        // Values outside the quartiles tell nothing about the deviation. Quartiles are close to each other by chance about as often
        // as the deviation of those values from which they are interpolated is small.
        let freedom = position.ceil() - (0.25 * (values - 1.0)).floor();
        Some(Self { error: MEDIAN * deviation / values.sqrt(), freedom: Some(freedom) })
    }
}

/// Returns the expected value of one of this many values of the standard normal distribution, numbered from 0 in ascending order.
/// From 3 values on, it is within 3 % (Blom, Statistical Estimates and Transformed Beta-Variables, 1958).
fn order_statistic(index: f64, values: f64) -> f64 {
    critical((values - index - 0.375) / (values + 0.25), None)
}

/// Returns half the width of the confidence interval of a difference, in a comparison with this many figures, or `None` if a spread
/// is unknown.
pub(super) fn half_interval(figures: usize, [a, b]: [Option<Spread>; 2]) -> Option<f64> {
    let (a, b) = a.zip(b)?;
    let error = f64::hypot(a.error, b.error);
    // The variances are not pooled, so a spread that contributes most of the error has most of the say (Welch, 1947). An error that
    // is known, or 0, adds no uncertainty.
    let share = |spread: Spread| spread.freedom.map_or(0.0, |freedom| (spread.error / error).powi(4) / freedom);
    let uncertainty = share(a) + share(b);
    let freedom = (uncertainty > 0.0).then(|| 1.0 / uncertainty);
    Some(critical(ERROR / 2.0 / figures.max(1) as f64, freedom) * error)
}

/// Returns the value that Student's t exceeds with this probability, which must be at most one half. Without degrees of freedom,
/// uses the normal distribution.
fn critical(tail: f64, freedom: Option<f64>) -> f64 {
    // The lower tail is more precise, because floats distinguish small probabilities better than those near 1.
    -freedom.map_or_else(|| Normal::ppf(tail, 0.0, 1.0), |freedom| StudentsT::ppf(tail, freedom))
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::{
        Xoshiro256PlusPlus,
        rand_core::{RngCore as _, SeedableRng as _},
    };

    use super::*;
    use crate::Quartiles;

    /// Rounds of normally distributed times: how many, and their standard deviation.
    type Rounds = (usize, f64);

    /// Returns the value and the spread of some rounds.
    type Estimate = fn(&[f64]) -> Sample;

    const MEDIAN: Estimate = |times| {
        let Quartiles { low, median, high } = Quartiles::of(times.iter().copied()).unwrap();
        Sample { value: median, spread: Spread::of_median(low, high, times.len() as f64) }
    };

    /// Returns the share of comparisons in which two equal figures count as different.
    fn false_alarms(estimate: Estimate, runs: [Rounds; 2]) -> f64 {
        const COMPARISONS: usize = 20_000;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut uniform = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let mut normal = || (-2.0 * (1.0 - uniform()).ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        let mut compare = || {
            let [a, b] = runs.map(|(rounds, deviation)| {
                let times: Vec<_> = (0..rounds).map(|_| deviation * normal()).collect();
                estimate(&times)
            });
            (a.value - b.value).abs() > half_interval(1, [a.spread, b.spread]).unwrap()
        };
        (0..COMPARISONS).filter(|_| compare()).count() as f64 / COMPARISONS as f64
    }

    /// Comparisons of one figure report at most about 1 % by chance. The margin is three standard deviations.
    #[test]
    fn equal_medians_rarely_count_as_different() {
        for rounds in [3, 5, 9] {
            let share = false_alarms(MEDIAN, [(rounds, 1.0); 2]);
            assert!(share < 0.012, "{rounds} rounds: {share}");
        }
        for runs in [[(3, 10.0), (30, 1.0)], [(3, 1.0), (30, 10.0)]] {
            let share = false_alarms(MEDIAN, runs);
            assert!(share < 0.012, "{runs:?}: {share}");
        }
    }

    /// Welch's test is not exact: with so few rounds, it may give a little more than 1 %.
    #[test]
    fn equal_means_rarely_count_as_different() {
        let mean: Estimate = |times| {
            let count = times.len() as f64;
            let value = times.iter().sum::<f64>() / count;
            let square = times.iter().map(|time| (time - value).powi(2)).sum::<f64>();
            Sample { value, spread: Spread::of_mean((square / (count - 1.0)).sqrt(), count) }
        };
        for runs in [[(3, 1.0); 2], [(5, 1.0); 2], [(9, 1.0); 2], [(3, 10.0), (30, 1.0)], [(3, 1.0), (30, 10.0)]] {
            let share = false_alarms(mean, runs);
            assert!(share < 0.016, "{runs:?}: {share}");
        }
    }

    #[test]
    fn deviations_follow_from_quartiles() {
        // These are the expected distances of the quartiles of as many normal values, from tables of order statistics.
        for (values, distance, gaps) in [(3.0, 0.8463, 2.0), (5.0, 0.9900, 2.0), (9.0, 1.1439, 4.0)] {
            let Spread { error, freedom } = Spread::of_median(0.0, distance, values).unwrap();
            assert!((error * values.sqrt() / 1.2533 - 1.0).abs() < 0.03, "{values}: {error}");
            assert_eq!(freedom, Some(gaps));
        }
        assert_eq!(Spread::of_median(0.0, 1.0, 1.0), None);
    }

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
        // Rounds that all took the same time have no spread, either.
        assert_eq!(half_interval(1, [Some(Spread { error: 0.0, freedom: Some(2.0) }), exact]), Some(0.0));
        // Degrees of freedom add up if errors are equal; a known error adds more.
        let estimated = Some(Spread { error: 1.0, freedom: Some(2.0) });
        for (other, freedom, error) in [(exact, 2.0, 1.0), (estimated, 4.0, 2_f64.sqrt()), (spread, 8.0, 2_f64.sqrt())] {
            let (half, expected) = (half_interval(1, [estimated, other]).unwrap(), critical(0.005, Some(freedom)) * error);
            assert!((half / expected - 1.0).abs() < 1e-9, "{freedom}: {half}, not {expected}");
        }
    }
}
