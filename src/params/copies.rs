//! What copies cost: the capacity for items of which some repeat.

use super::{Params, false_positive_rate, safe_load};
use crate::bits::{index, low_half};

/// The largest number of copies that two buckets of each of two filters can have.
const MOST: usize = 64;

/// A capacity that is more times the number of items than this is no remedy for copies.
const MOST_TIMES: u64 = 16;

/// How many fingerprints, each with its pair of buckets, occur how often.
pub(crate) struct Copies([u64; MOST + 1]);

impl Default for Copies {
    fn default() -> Self {
        Self([0; MOST + 1])
    }
}

impl Copies {
    /// Counts a fingerprint with this many copies in its two buckets.
    pub fn add(&mut self, copies: u32) {
        self.0[index(copies.into()).min(MOST)] += 1;
    }

    /// The number of items, counting all copies.
    pub fn items(&self) -> u64 {
        self.each().map(|(copies, count)| copies * count).sum()
    }

    fn each(&self) -> impl Iterator<Item = (u64, u64)> {
        (1..).zip(self.0[1..].iter().copied())
    }

    /// The capacity with which a filter must be built to hold these, except with a small probability: that of a capacity for
    /// different items, or 10⁻³ where items have more copies than a bucket has slots. `None` if that would be more than
    /// [`MOST_TIMES`] their number. `params` are those of the filter in which they were counted.
    ///
    /// Different items may have the same fingerprint and buckets. As many as chance explains count as different ones.
    pub fn capacity(&self, params: &Params) -> Option<usize> {
        let items = self.items();
        let repeated = self.repeated(params);
        let different = items - repeated.items();
        let b = u64::from(params.bucket_size());
        let mut buckets = params.buckets();
        loop {
            let capacity = different.checked_add(repeated.slots(params, buckets)?)?;
            if different < items && capacity / MOST_TIMES > items {
                return None;
            }
            if different == items || capacity.div_ceil(b) <= buckets {
                return usize::try_from(capacity).ok();
            }
            buckets = capacity.div_ceil(b).max(buckets + buckets / 16);
        }
    }

    /// Those of two and more copies that are more than chance explains.
    fn repeated(&self, params: &Params) -> Self {
        let load = self.items() as f64 / params.slots() as f64;
        let (f, b) = (params.fingerprint_bits(), params.bucket_size());
        // Different items fall into classes of a fingerprint and two buckets like balls into bins: as Poisson says.
        let classes = params.buckets() as f64 * ((1_u64 << f) - 1) as f64 / 2.0;
        let mean = load * params.slots() as f64 / classes;
        let mut expected = classes * (1.0 - false_positive_rate(f, b, load));
        let mut repeated = Self::default();
        for (copies, count) in self.each() {
            expected *= mean / copies as f64;
            if copies > 1 {
                repeated.0[index(copies)] = count.saturating_sub(explained(expected));
            }
        }
        repeated
    }

    /// The slots of a table with this many buckets in which these have room. `None` if one has more copies than there is room for.
    fn slots(&self, params: &Params, buckets: u64) -> Option<u64> {
        let b = u64::from(params.bucket_size());
        let load = |fits: u64| safe_load(params.addressing(), low_half(fits), params.fingerprint_bits(), buckets);
        let (mut slots, mut heavy) = (0_u64, 0_u64);
        for (copies, count) in self.each().filter(|&(_, count)| count > 0) {
            let needed = match b / copies {
                0 if copies > 2 * b => return None,
                0 => {
                    heavy += count;
                    load(b).slots_for(count.checked_mul(2 * b)?)
                }
                // An item with c copies finds room wherever one without copies would in buckets of ⌊b/c⌋ slots.
                fits => load(fits).slots_for(count).checked_mul(b)?.div_ceil(fits),
            };
            slots = slots.checked_add(needed)?;
        }
        // Two that have more copies than a bucket has slots may have no room if they share one.
        let pairs = heavy.checked_mul(heavy.saturating_sub(1))?;
        Some(slots.max(pairs.checked_mul(2000 * b)?))
    }
}

/// An upper bound of a number of which this many are expected: e + 4√e, without a square root.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is positive, and fewer than slots of a table")]
pub(crate) fn explained(expected: f64) -> u64 {
    const NEGLIGIBLE: f64 = 1e-3;
    if expected < NEGLIGIBLE {
        return 0;
    }
    let bounds = [5.0 * expected + 1.0, 2.0 * expected + 8.0, 1.125 * expected + 32.0];
    bounds.into_iter().fold(f64::INFINITY, f64::min) as u64
}
