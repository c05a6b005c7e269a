//! Filters of a fixed size.

use anyhow::Context as _;
use koel::{Builder, CuckooFilter, TableKind};

use super::{BATCH, count_in_batches};
use crate::{
    measure::Contestant,
    peer::{Family, Peer, count},
};

/// Each way of building and querying has a row: a type that implements [`Peer`], and a line in this list.
pub(crate) fn all(rate: f64) -> Vec<Box<dyn Contestant>> {
    let packed = Plan::near(TableKind::Packed, rate);
    let single = Plan::near(TableKind::Single, rate);
    vec![
        Box::new(OneByOne(packed)),
        Box::new(OneByOne(Plan { load: 0.97, ..packed })),
        Box::new(Batches(packed)),
        Box::new(Batches(Plan { load: 0.97, ..packed })),
        Box::new(KnownSet(packed)),
        // A table of the same size as the packed one, and one with the same rate.
        Box::new(OneByOne(Plan { fingerprint_bits: packed.fingerprint_bits - 1, asked_rate: None, ..single })),
        Box::new(OneByOne(single)),
    ]
}

/// A table and its load.
#[derive(Clone, Copy)]
struct Plan {
    table: TableKind,
    fingerprint_bits: u32,
    load: f64,
    asked_rate: Option<f64>,
}

impl Plan {
    /// The table whose rate at a load of 0.95 is nearest to this one.
    fn near(table: TableKind, rate: f64) -> Self {
        let plan = |fingerprint_bits| Self { table, fingerprint_bits, load: 0.95, asked_rate: Some(rate) };
        let distance = |plan: &Self| (plan.rate() / rate).log2().abs();
        let plans = table.fingerprint_bits().map(plan);
        plans.min_by(|one, other| distance(one).total_cmp(&distance(other))).expect("there are fingerprints")
    }

    /// The false-positive rate at its load, which does not depend on the size.
    fn rate(&self) -> f64 {
        let tiny = self.builder().buckets(2).params().expect("any table can have two buckets");
        tiny.false_positive_rate_at(self.load)
    }

    fn builder(&self) -> Builder {
        CuckooFilter::builder().table(self.table).fingerprint_bits(self.fingerprint_bits)
    }

    /// For a table that reaches its load with all items; or, if it is so small that they might not fit, for the capacity.
    fn builder_for(&self, items: usize) -> anyhow::Result<Builder> {
        let safe = self.builder().capacity(items).params()?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "items are 2³² at most")]
        let buckets = (items as f64 / (self.load * f64::from(safe.bucket_size()))).ceil() as u64;
        let buckets = buckets.next_multiple_of(2);
        Ok(if buckets <= safe.buckets() { self.builder().capacity(items) } else { self.builder().buckets(buckets) })
    }

    fn empty(&self, items: usize) -> anyhow::Result<CuckooFilter> {
        Ok(self.builder_for(items)?.build()?)
    }

    fn title(&self, items: usize) -> String {
        let params = self.builder_for(items).and_then(|builder| Ok(builder.params()?));
        let load = params.map_or(self.load, |params| items as f64 / params.slots() as f64);
        format!("koel {} f = {}, load {load:.2}", self.table, self.fingerprint_bits)
    }
}

/// The rate that koel predicts, for all ways of using the filter.
fn expected_rate(filter: &CuckooFilter, items: usize) -> f64 {
    filter.params().false_positive_rate_at(items as f64 / filter.slots() as f64)
}

/// One call per key.
struct OneByOne(Plan);

impl Peer for OneByOne {
    type Filter = CuckooFilter;

    const FAMILY: Family = Family::Koel;

    fn title(&self, items: usize) -> String {
        self.0.title(items)
    }

    fn asked_rate(&self) -> Option<f64> {
        self.0.asked_rate
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<CuckooFilter> {
        let mut filter = self.0.empty(keys.len())?;
        for key in keys {
            filter.insert(key).context("an item was refused")?;
        }
        Ok(filter)
    }

    fn expected_rate(&self, filter: &CuckooFilter, items: usize) -> f64 {
        expected_rate(filter, items)
    }

    fn find(&self, filter: &CuckooFilter, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains(&key))
    }

    fn remove(&self, filter: &mut CuckooFilter, keys: &[u64]) -> Option<usize> {
        Some(count(keys, |key| filter.remove(&key)))
    }
}

/// One call per [`BATCH`] of keys.
struct Batches(Plan);

impl Peer for Batches {
    type Filter = CuckooFilter;

    const FAMILY: Family = Family::Koel;

    fn title(&self, items: usize) -> String {
        format!("{}, batches of {BATCH}", self.0.title(items))
    }

    fn asked_rate(&self) -> Option<f64> {
        self.0.asked_rate
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<CuckooFilter> {
        let mut filter = self.0.empty(keys.len())?;
        for batch in keys.chunks(BATCH) {
            filter.insert_batch(batch).context("an item was refused")?;
        }
        Ok(filter)
    }

    fn expected_rate(&self, filter: &CuckooFilter, items: usize) -> f64 {
        expected_rate(filter, items)
    }

    fn find(&self, filter: &CuckooFilter, keys: &[u64]) -> usize {
        count_in_batches(keys, |batch, found| filter.contains_batch(batch, found))
    }

    fn remove(&self, filter: &mut CuckooFilter, keys: &[u64]) -> Option<usize> {
        Some(count_in_batches(keys, |batch, removed| filter.remove_batch(batch, removed)))
    }
}

/// Built from all keys at once, then used as [`OneByOne`].
struct KnownSet(Plan);

impl Peer for KnownSet {
    type Filter = CuckooFilter;

    const FAMILY: Family = Family::Koel;

    fn title(&self, items: usize) -> String {
        format!("{}, build_from_items", self.0.title(items))
    }

    fn asked_rate(&self) -> Option<f64> {
        self.0.asked_rate
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<CuckooFilter> {
        self.0.builder_for(keys.len())?.build_from_items(keys).context("the filter was not built")
    }

    fn expected_rate(&self, filter: &CuckooFilter, items: usize) -> f64 {
        expected_rate(filter, items)
    }

    fn find(&self, filter: &CuckooFilter, keys: &[u64]) -> usize {
        OneByOne(self.0).find(filter, keys)
    }

    fn remove(&self, filter: &mut CuckooFilter, keys: &[u64]) -> Option<usize> {
        OneByOne(self.0).remove(filter, keys)
    }
}
