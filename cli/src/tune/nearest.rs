//! What would do, where what was asked for does not.

use koel::tuning::Candidate;

use super::Tune;

/// Each by itself is enough, with everything else as it was asked for. None: not this alone.
pub(super) struct Nearest {
    /// The most items.
    pub(super) items: Option<usize>,
    /// The lowest rate, if one was asked for.
    pub(super) rate: Option<f64>,
    /// The fewest bytes, if a limit was asked for.
    pub(super) bytes: Option<usize>,
}

impl Nearest {
    pub(super) fn to(asked: &Tune) -> Self {
        let Tune { items, fpr, bytes, .. } = *asked;
        // As good as no limit: the shortest fingerprints do.
        let any_rate = 1.0 - f64::EPSILON;
        Self {
            items: most(items, |items| asked.recommend(items, fpr, bytes).best().is_some()),
            rate: fpr.and_then(|_| {
                let lowest = asked.recommend(items, None, bytes);
                // A builder keeps to its rate up to the capacity, which may be a few more than these items.
                lowest.candidates().iter().map(|other| other.params().false_positive_rate_at_capacity()).reduce(f64::min)
            }),
            bytes: bytes.and_then(|_| asked.recommend(items, fpr.or(Some(any_rate)), None).best().map(Candidate::bytes)),
        }
    }
}

/// The largest number that works below one that does not, if those that work are the small ones.
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

    #[test]
    fn the_most_that_works() {
        for limit in [0, 1, 2, 1000, usize::MAX - 1] {
            for bad in [limit + 1, usize::MAX] {
                assert_eq!(most(bad, |number| number <= limit), Some(limit));
            }
        }
        assert_eq!(most(5, |_| false), None);
    }
}
