//! The nearest values that work, if those given do not.

use koel::tuning::{Candidate, HIGHEST_RATE};

use super::Tune;
use crate::numbers::Items;

/// Each of these values works with the other options as given. None: no value of this option works.
pub(super) struct Nearest {
    /// The maximum number of items, if the keys are no more.
    pub(super) items: Option<usize>,
    /// The lowest rate, with three digits. None if no rate was given.
    pub(super) rate: Option<f64>,
    /// The minimum number of bytes. None if no limit was given.
    pub(super) bytes: Option<usize>,
}

impl Nearest {
    pub(super) fn to(asked: &Tune) -> Self {
        let Tune { items: Items { now: items, .. }, fpr, bytes, .. } = *asked;
        // Without a rate, any will do, and so the highest: the lowest rate need not be found for every number.
        let rate = fpr.or(Some(HIGHEST_RATE));
        let least = || asked.recommend(items, rate, None).best().map(Candidate::bytes);
        Self {
            items: most(usize::MAX, |items| asked.recommend(items, rate, bytes).best().is_some())
                .filter(|&items| items >= asked.counted_keys),
            rate: fpr.and_then(|_| Self::lowest_rate(asked)),
            bytes: bytes.and_then(|_| least()),
        }
    }

    /// The lowest rate that works.
    pub(super) fn lowest_rate(asked: &Tune) -> Option<f64> {
        let works = |rate| asked.recommend(asked.most_items(), Some(rate), asked.bytes).best().is_some();
        // `most` wants the working values to be the small ones: it counts rates from the top.
        let left_out = most(DECIMALS, |left_out| works(decimal(DECIMALS - 1 - left_out)))?;
        Some(decimal(DECIMALS - 1 - left_out))
    }
}

/// Numbers with three digits, ascending, from 1e-307 to 0.5, the highest rate.
const DECIMALS: usize = 306 * 900 + 401;

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
        let mut tune = Command::parse_from(["tune"].into_iter().chain(options.split(' '))).tune;
        tune.plan_for(None).expect("nothing contradicts");
        tune
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
    fn decimals_ascend_to_the_highest_rate() {
        let text = |place| format!("{:e}", decimal(place));
        assert_eq!([text(0), text(899), text(900), text(DECIMALS - 1)], ["1e-307", "9.99e-307", "1e-306", "5e-1"]);
        assert_eq!(decimal(DECIMALS - 1).to_bits(), HIGHEST_RATE.to_bits());
        assert!((0..DECIMALS).step_by(77).is_sorted_by(|&one, &other| decimal(one) < decimal(other)));
    }

    /// With the lowest rate for so many bytes, too, though it is searched for at the highest.
    #[test]
    fn the_most_items_are_the_most() {
        for options in [
            "--items 1000 --bytes 10",
            "--items 1000000 --bytes 375",
            "--items 1000000 --bytes 5000 --table packed",
            "--items 1000000 --bytes 5000 --addressing power-of-two",
            "--items 1000 --bytes 60 --bucket-size 16",
            "--items 1000000 --bytes 1200 --copies 10 --headroom 20%",
            "--items 1000000 --bytes 375 --fpr 0.01",
        ] {
            let asked = tune(options);
            let works = |items| asked.recommend(items, asked.fpr, asked.bytes).best().is_some();
            let most = Nearest::to(&asked).items.expect("some number works");
            assert!(works(most) && !works(most + 1) && !works(asked.items.now), "{options}: {most}");
        }
    }

    /// It works, and 1 % less does not.
    #[test]
    fn the_lowest_rate_is_the_lowest() {
        for options in
            ["--items 1000", "--items 1000 --bytes 500", "--items 40 --bucket-size 16 --bytes 60", "--items 5 --table packed"]
        {
            let asked = tune(&format!("{options} --fpr 1e-12"));
            let works = |rate| asked.recommend(asked.items.now, Some(rate), asked.bytes).best().is_some();
            let lowest = Nearest::lowest_rate(&asked).expect("some rate works");
            assert!(works(lowest) && !works(0.99 * lowest), "{options}: {lowest:e}");
        }
    }
}
