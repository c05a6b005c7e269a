//! The other family that can delete.

use anyhow::bail;

use super::nearest_bits;
use crate::peer::{Family, Peer, count};

/// A quotient filter.
pub(super) struct Quotient(pub(super) f64);

impl Quotient {
    /// The load of a power of two of slots, from 64 up, of which it fills 19 in 20; and the length of remainders with which
    /// that comes nearest to the rate.
    fn load_and_remainder_bits(&self, items: usize) -> (f64, i32) {
        let slots = (items as u64).next_power_of_two().max(64);
        let slots = if items as u64 <= (19 * slots).div_ceil(20) { slots } else { 2 * slots };
        let load = items as f64 / slots as f64;
        (load, nearest_bits(load / self.0))
    }
}

impl Peer for Quotient {
    type Filter = qfilter::Filter;

    const FAMILY: Family = Family::Quotient;

    fn title(&self, items: usize) -> String {
        let (load, bits) = self.load_and_remainder_bits(items);
        format!("qfilter 0.3, remainders of {bits} bits, load {load:.2}, foldhash")
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.0)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
        // It panics without.
        #[cfg(target_arch = "x86_64")]
        if !(is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt")) {
            bail!("this processor has no BMI2, which it needs; take one of after 2015");
        }
        let (_, remainder_bits) = self.load_and_remainder_bits(keys.len());
        let mut filter = qfilter::Filter::new(keys.len() as u64, 2_f64.powi(-remainder_bits))?;
        for key in keys {
            // The plain insertion skips what seems to be there, which could then be removed but once.
            filter.insert_duplicated(key)?;
        }
        Ok(filter)
    }

    fn expected_rate(&self, filter: &Self::Filter, _: usize) -> f64 {
        filter.current_error_ratio()
    }

    fn find(&self, filter: &Self::Filter, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains(key))
    }

    fn remove(&self, filter: &mut Self::Filter, keys: &[u64]) -> Option<usize> {
        Some(count(keys, |key| filter.remove(key)))
    }
}
