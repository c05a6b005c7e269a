//! A quotient filter whose fingerprints lose a bit at each doubling, after Dayan, Bercea and Pagh (PVLDB 17(11)).

use aleph_filter::AlephFilter;

use crate::peer::{Family, GROWN_FROM, Peer, count};

/// In this crate, new items get fingerprints as short as those of old ones, so that the rate doubles with the size. When no bits
/// are left, an item matches everything in its slot, takes two slots after the next doubling, and is merged with others there.
pub(super) struct Aleph {
    pub(super) rate: f64,
    /// Whether it is built for a lower rate, so that it has the promised one when it has doubled as often as it must.
    pub(super) planned: bool,
}

impl Peer for Aleph {
    type Filter = AlephFilter;

    const FAMILY: Family = Family::Aleph;

    /// Of items that were merged, the removal of one removes all.
    const MAY_LOSE: bool = true;

    fn title(&self, items: usize) -> String {
        let plan = if self.planned { format!(", ε lowered for {items}") } else { String::new() };
        format!("aleph-filter 0.1{plan}, XXH3")
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.rate)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<AlephFilter> {
        let items = GROWN_FROM.min(keys.len());
        let growth = if self.planned { keys.len().div_ceil(items).next_power_of_two() } else { 1 };
        let mut filter = AlephFilter::new(items, self.rate / growth as f64);
        keys.iter().for_each(|key| filter.insert(&key.to_le_bytes()));
        Ok(filter)
    }

    /// One slot's items are compared, on average as many as the load, by what is left of their fingerprints.
    fn expected_rate(&self, filter: &AlephFilter, _: usize) -> f64 {
        let matches = filter.load_factor() / f64::from(filter.fp_bits()).exp2();
        -(-matches).exp_m1()
    }

    fn find(&self, filter: &AlephFilter, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains(&key.to_le_bytes()))
    }

    fn remove(&self, filter: &mut AlephFilter, keys: &[u64]) -> Option<usize> {
        Some(count(keys, |key| filter.delete(&key.to_le_bytes())))
    }
}
