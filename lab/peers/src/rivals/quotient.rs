//! A quotient filter, which supports deletion.

use anyhow::bail;

use super::nearest_bits;
use crate::peer::{Family, GROWN_FROM, Peer, count};

/// A quotient filter.
pub(super) struct Quotient(pub(super) f64);

impl Quotient {
    /// The load, given a power of two of slots, at least 64, of which it fills at most 95 %; and the length of remainders with
    /// which the rate comes nearest to the requested one.
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
        let (_, remainder_bits) = self.load_and_remainder_bits(keys.len());
        filled(|| qfilter::Filter::new(keys.len() as u64, 2_f64.powi(-remainder_bits)), keys)
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

/// The same, planned to grow from [`GROWN_FROM`] items to all of them: when it is full, it is copied into one of twice the size,
/// with remainders that are one bit shorter. Beyond the plan, it does not grow.
pub(super) struct GrownQuotient(pub(super) f64);

impl Peer for GrownQuotient {
    type Filter = qfilter::Filter;

    const FAMILY: Family = Family::Quotient;

    fn title(&self, items: usize) -> String {
        format!("qfilter 0.3, max_capacity {items}, foldhash")
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.0)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
        let items = keys.len() as u64;
        filled(|| qfilter::Filter::new_resizeable(items.min(GROWN_FROM as u64), items, self.0), keys)
    }

    fn expected_rate(&self, filter: &Self::Filter, items: usize) -> f64 {
        Quotient(self.0).expected_rate(filter, items)
    }

    fn find(&self, filter: &Self::Filter, keys: &[u64]) -> usize {
        Quotient(self.0).find(filter, keys)
    }

    fn remove(&self, filter: &mut Self::Filter, keys: &[u64]) -> Option<usize> {
        Quotient(self.0).remove(filter, keys)
    }
}

/// A filter with all keys in it.
fn filled(empty: impl FnOnce() -> Result<qfilter::Filter, qfilter::Error>, keys: &[u64]) -> anyhow::Result<qfilter::Filter> {
    // It panics without these instructions.
    #[cfg(target_arch = "x86_64")]
    if !(is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt")) {
        bail!("it needs a processor with BMI2 and POPCNT, such as x86-64 ones since 2015; this one lacks them");
    }
    let mut filter = empty()?;
    for key in keys {
        // `insert` skips items that are found already, of which the second could then not be removed.
        filter.insert_duplicated(key)?;
    }
    Ok(filter)
}
