//! The nearest values that work, if those given do not.

use koel::tuning::Candidate;

use super::Tune;

/// Each of these values works with the other options as given. None: no value of this option works.
pub(super) struct Nearest {
    /// The maximum number of items.
    pub(super) items: Option<usize>,
    /// The lowest rate with three digits, or with more where only rates above 0.999 work. None if no rate was given.
    pub(super) rate: Option<f64>,
    /// The minimum number of bytes. None if no limit was given.
    pub(super) bytes: Option<usize>,
}

impl Nearest {
    pub(super) fn to(asked: &Tune) -> Self {
        let Tune { items, fpr, bytes, .. } = *asked;
        // Practically no limit: the shortest fingerprints meet it.
        let any_rate = 1.0 - f64::EPSILON;
        Self {
            items: most(items, |items| asked.recommend(items, fpr, bytes).best().is_some()),
            rate: fpr.and_then(|rate| Self::rate(asked, rate)),
            bytes: bytes.and_then(|_| asked.recommend(items, fpr.or(Some(any_rate)), None).best().map(Candidate::bytes)),
        }
    }

    /// The nearest rate that works: the lowest one, or one just below 1 if the given rate is 1 or more.
    pub(super) fn rate(asked: &Tune, given: f64) -> Option<f64> {
        let works = |rate: &f64| asked.recommend(asked.items, Some(*rate), asked.bytes).best().is_some();
        if given < 1.0 || given.is_nan() {
            // `most` wants the working values to be the small ones: it counts rates from the top.
            let left_out = most(DECIMALS, |left_out| works(&decimal(DECIMALS - 1 - left_out)));
            if let Some(left_out) = left_out {
                return Some(decimal(DECIMALS - 1 - left_out));
            }
        }
        (3..=16).map(|digits| "9".repeat(digits)).filter_map(|digits| format!("0.{digits}").parse().ok()).find(works)
    }
}

/// Numbers with three digits, ascending, from 1e-307 to 0.999.
const DECIMALS: usize = 307 * 900;

/// The number at a place in this list.
fn decimal(place: usize) -> f64 {
    let (power, digits) = (309 - place / 900, 100 + place % 900);
    format!("{digits}e-{power}").parse().unwrap_or(f64::NAN)
}

/// The largest number that works, given one that does not, if all smaller numbers work too.
fn most(mut bad: usize, works: impl Fn(usize) -> bool) -> Option<usize> {
    if !works(0) {
        return None;
    }
    let mut good = 0;
    while bad - good > 1 {
        let middle = good.midpoint(bad);
        if works(middle) { good = middle } else { bad = middle }
    }
    Some(good)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        tune: Tune,
    }

    fn tune(options: &str) -> Tune {
        Command::parse_from(["tune"].into_iter().chain(options.split(' '))).tune
    }

    #[test]
    fn the_most_that_works() {
        for limit in [0, 1, 2, 1000, usize::MAX - 1] {
            for bad in [limit + 1, usize::MAX] {
                assert_eq!(most(bad, |number| number <= limit), Some(limit));
            }
        }
        assert_eq!(most(5, |_| false), None);
    }

    #[test]
    fn decimals_ascend_to_0_999() {
        let text = |place| format!("{:e}", decimal(place));
        assert_eq!([text(0), text(899), text(900), text(DECIMALS - 1)], ["1e-307", "9.99e-307", "1e-306", "9.99e-1"]);
        assert!((0..DECIMALS).step_by(77).is_sorted_by(|&one, &other| decimal(one) < decimal(other)));
    }

    /// One question has one nearest rate, whichever wrong rate it is asked with; 1 % less does not work.
    #[test]
    fn there_is_one_nearest_rate() {
        for options in
            ["--items 1000", "--items 1000 --bytes 500", "--items 40 --bucket-size 16 --bytes 16", "--items 5 --table packed"]
        {
            let nearest = |given: &str| {
                let tune = tune(&format!("{options} --fpr {given}"));
                (Nearest::rate(&tune, tune.fpr.expect("given")).expect("some rate works"), tune)
            };
            let (lowest, asked) = nearest("1e-12");
            for given in ["0", "-0.5", "NaN", "1e-300", "1e-11"] {
                assert_eq!(nearest(given).0.to_bits(), lowest.to_bits(), "{options}: {given}");
            }
            let works = |rate| asked.recommend(asked.items, Some(rate), asked.bytes).best().is_some();
            assert!(works(lowest) && !works(0.99 * lowest), "{options}: {lowest:e}");
            let (highest, _) = nearest("1");
            assert_eq!(nearest("inf").0.to_bits(), highest.to_bits());
            assert!(works(highest) && (0.999..1.0).contains(&highest), "{options}: {highest}");
        }
    }
}
