//! Filters that grow from [`GROWN_FROM`] items, or from koel's own choice, to all of them.

use anyhow::Context as _;
use koel::{ElasticBuilder, ElasticFilter, SharedFilter};

use super::{BATCH, count_in_batches};
use crate::{
    measure::Contestant,
    peer::{Family, GROWN_FROM, Peer, count},
};

pub(crate) fn all(rate: f64) -> Vec<Box<dyn Contestant>> {
    let plan = |range| Plan { rate, range };
    vec![
        Box::new(OneByOne(plan(Range::Default))),
        Box::new(Batches(plan(Range::Default))),
        Box::new(OneByOne(plan(Range::From))),
        Box::new(Batches(plan(Range::From))),
        Box::new(OneByOne(plan(Range::FromTo))),
        Box::new(OneByOne(plan(Range::TooShort))),
        Box::new(Shared(plan(Range::From))),
    ]
}

/// What a filter is told of the number of its items.
#[derive(Clone, Copy)]
enum Range {
    /// Nothing.
    Default,
    /// How many there are at the beginning.
    From,
    /// And how many in the end.
    FromTo,
    /// Only a tenth of those in the end, so that it must grow beyond its plan.
    TooShort,
}

/// A filter's rate and range.
#[derive(Clone, Copy)]
struct Plan {
    rate: f64,
    range: Range,
}

impl Plan {
    /// The capacity and the maximal capacity, if the filter is told.
    fn capacities(self, items: usize) -> (Option<usize>, Option<usize>) {
        let first = GROWN_FROM.min(items);
        match self.range {
            Range::Default => (None, None),
            Range::From => (Some(first), None),
            Range::FromTo => (Some(first), Some(items)),
            Range::TooShort => (Some(first), Some((items / 10).max(first))),
        }
    }

    fn builder(self, items: usize) -> ElasticBuilder {
        let mut builder = ElasticFilter::builder().false_positive_rate(self.rate);
        let (first, most) = self.capacities(items);
        if let Some(first) = first {
            builder = builder.capacity(first);
        }
        if let Some(most) = most {
            builder = builder.max_capacity(most);
        }
        builder
    }

    fn title(self, filter: &str, items: usize) -> String {
        let told = |name, number: Option<usize>| number.map_or_else(String::new, |number| format!(", {name} {number}"));
        let (first, most) = self.capacities(items);
        format!("koel {filter}{}{}", told("capacity", first), told("max_capacity", most))
    }
}

/// One call per key.
struct OneByOne(Plan);

impl Peer for OneByOne {
    type Filter = ElasticFilter;

    const FAMILY: Family = Family::Koel;

    fn title(&self, items: usize) -> String {
        self.0.title("ElasticFilter", items)
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.0.rate)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<ElasticFilter> {
        let mut filter = self.0.builder(keys.len()).build()?;
        for key in keys {
            filter.insert(key).context("an item was refused")?;
        }
        Ok(filter)
    }

    fn expected_rate(&self, filter: &ElasticFilter, _: usize) -> f64 {
        filter.false_positive_rate()
    }

    fn find(&self, filter: &ElasticFilter, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains(&key))
    }

    fn remove(&self, filter: &mut ElasticFilter, keys: &[u64]) -> Option<usize> {
        Some(count(keys, |key| filter.remove(&key)))
    }
}

/// One call per [`BATCH`] of keys.
struct Batches(Plan);

impl Peer for Batches {
    type Filter = ElasticFilter;

    const FAMILY: Family = Family::Koel;

    fn title(&self, items: usize) -> String {
        format!("{}, batches of {BATCH}", self.0.title("ElasticFilter", items))
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.0.rate)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<ElasticFilter> {
        let mut filter = self.0.builder(keys.len()).build()?;
        for batch in keys.chunks(BATCH) {
            filter.insert_batch(batch).context("an item was refused")?;
        }
        Ok(filter)
    }

    fn expected_rate(&self, filter: &ElasticFilter, _: usize) -> f64 {
        filter.false_positive_rate()
    }

    fn find(&self, filter: &ElasticFilter, keys: &[u64]) -> usize {
        count_in_batches(keys, |batch, found| filter.contains_batch(batch, found))
    }

    fn remove(&self, filter: &mut ElasticFilter, keys: &[u64]) -> Option<usize> {
        Some(count_in_batches(keys, |batch, removed| filter.remove_batch(batch, removed)))
    }
}

/// One call per key, each of which takes a lock, though there is only one thread.
struct Shared(Plan);

impl Peer for Shared {
    type Filter = SharedFilter;

    const FAMILY: Family = Family::Koel;

    fn title(&self, items: usize) -> String {
        self.0.title("SharedFilter", items)
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.0.rate)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<SharedFilter> {
        let filter = self.0.builder(keys.len()).build_shared()?;
        for key in keys {
            filter.insert(key).context("an item was refused")?;
        }
        Ok(filter)
    }

    fn expected_rate(&self, filter: &SharedFilter, _: usize) -> f64 {
        filter.false_positive_rate()
    }

    fn find(&self, filter: &SharedFilter, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains(&key))
    }

    fn remove(&self, filter: &mut SharedFilter, keys: &[u64]) -> Option<usize> {
        Some(count(keys, |key| filter.remove(&key)))
    }
}
