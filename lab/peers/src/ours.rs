//! The rows of koel: filters of a fixed size, and filters that grow from [`GROWN_FROM`] items, or from koel's own choice.

use std::hint::black_box;

use anyhow::Context as _;
use koel::{BuildError, Builder, CuckooFilter, ElasticBuilder, ElasticFilter, SharedFilter, TableKind};

use crate::{
    measure::Contestant,
    peer::{Family, GROWN_FROM, Peer, count},
};

/// Items per batch: a realistic number for a caller, whose answers fit into the first-level cache.
const BATCH: usize = 1024;

pub(crate) fn fixed(rate: f64) -> Vec<Box<dyn Contestant>> {
    let packed = Fixed::near(TableKind::Packed, rate);
    let single = Fixed::near(TableKind::Single, rate);
    let fuller = Fixed { load: 0.97, ..packed };
    // A table of the same size as the packed one.
    let small = Fixed { fingerprint_bits: packed.fingerprint_bits - 1, asked_rate: None, ..single };
    vec![each(packed), each(fuller), batches(packed), batches(fuller), each(small), each(single)]
}

pub(crate) fn growing(rate: f64) -> Vec<Box<dyn Contestant>> {
    let plan = |told| Growing { rate, told, build: ElasticBuilder::build };
    vec![
        each(plan(Told::Nothing)),
        batches(plan(Told::Nothing)),
        each(plan(Told::First)),
        batches(plan(Told::First)),
        each(plan(Told::FirstAndLast)),
        each(plan(Told::TooFew)),
        each(Growing { rate, told: Told::First, build: ElasticBuilder::build_shared }),
    ]
}

fn each<P: Plan + 'static>(plan: P) -> Box<dyn Contestant> {
    Box::new(Ours { plan, in_batches: false })
}

fn batches<P: Plan + 'static>(plan: P) -> Box<dyn Contestant> {
    Box::new(Ours { plan, in_batches: true })
}

/// A filter of koel's, with one call for each key or for each [`BATCH`] of them.
struct Ours<P> {
    plan: P,
    in_batches: bool,
}

/// How a filter is built.
trait Plan {
    type Filter: Operations;

    fn title(&self, items: usize) -> String;

    fn asked_rate(&self) -> Option<f64>;

    fn empty(&self, items: usize) -> anyhow::Result<Self::Filter>;
}

/// What the types of filters have in common: no trait of koel's has it for all of them.
trait Operations {
    const NAME: &'static str;
    const FAMILY: Family;
    fn insert(&mut self, key: u64) -> Result<(), koel::InsertError>;
    fn contains(&self, key: u64) -> bool;
    fn remove(&mut self, key: u64) -> bool;
    fn insert_batch(&mut self, keys: &[u64]) -> Result<(), koel::InsertError>;
    fn contains_batch(&self, keys: &[u64], found: &mut [bool]);
    fn remove_batch(&mut self, keys: &[u64], removed: &mut [bool]);
    fn rate(&self) -> f64;
}

macro_rules! operations {
    ($filter:ident, $family:ident) => {
        #[rustfmt::skip]
        impl Operations for $filter {
            const NAME: &'static str = stringify!($filter);
            const FAMILY: Family = Family::$family;
            #[inline]
            fn insert(&mut self, key: u64) -> Result<(), koel::InsertError> { $filter::insert(self, &key) }
            #[inline]
            fn contains(&self, key: u64) -> bool { $filter::contains(self, &key) }
            #[inline]
            fn remove(&mut self, key: u64) -> bool { $filter::remove(self, &key) }
            #[inline]
            fn insert_batch(&mut self, keys: &[u64]) -> Result<(), koel::InsertError> { $filter::insert_batch(self, keys) }
            #[inline]
            fn contains_batch(&self, keys: &[u64], found: &mut [bool]) { $filter::contains_batch(self, keys, found); }
            #[inline]
            fn remove_batch(&mut self, keys: &[u64], removed: &mut [bool]) { $filter::remove_batch(self, keys, removed); }
            fn rate(&self) -> f64 { self.false_positive_rate() }
        }
    };
}

operations!(CuckooFilter, Koel);
operations!(ElasticFilter, Koel);
// Each call takes a lock, though there is only one thread.
operations!(SharedFilter, Locked);

impl<P: Plan> Peer for Ours<P> {
    type Filter = P::Filter;

    const FAMILY: Family = P::Filter::FAMILY;

    fn title(&self, items: usize) -> String {
        let batches = if self.in_batches { format!(", batches of {BATCH}") } else { String::new() };
        self.plan.title(items) + &batches
    }

    fn asked_rate(&self) -> Option<f64> {
        self.plan.asked_rate()
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<P::Filter> {
        let mut filter = self.plan.empty(keys.len())?;
        let inserted = if self.in_batches {
            keys.chunks(BATCH).try_for_each(|batch| filter.insert_batch(batch))
        } else {
            keys.iter().try_for_each(|&key| filter.insert(key))
        };
        inserted.context("an item was refused")?;
        Ok(filter)
    }

    fn expected_rate(&self, filter: &P::Filter, _: usize) -> f64 {
        filter.rate()
    }

    fn find(&self, filter: &P::Filter, keys: &[u64]) -> usize {
        if self.in_batches {
            count_in_batches(keys, |batch, found| filter.contains_batch(batch, found))
        } else {
            count(keys, |key| filter.contains(key))
        }
    }

    fn remove(&self, filter: &mut P::Filter, keys: &[u64]) -> Option<usize> {
        Some(if self.in_batches {
            count_in_batches(keys, |batch, removed| filter.remove_batch(batch, removed))
        } else {
            count(keys, |key| filter.remove(key))
        })
    }
}

/// The number of positive answers of `ask` to all keys, [`BATCH`] of them at a time.
fn count_in_batches(keys: &[u64], mut ask: impl FnMut(&[u64], &mut [bool])) -> usize {
    let mut answers = [false; BATCH];
    let batches = keys.chunks(BATCH).map(|batch| {
        let answers = &mut answers[..batch.len()];
        ask(batch, answers);
        black_box(&*answers).iter().filter(|&&answer| answer).count()
    });
    batches.sum()
}

/// A table of a fixed size, and its load.
#[derive(Clone, Copy)]
struct Fixed {
    table: TableKind,
    fingerprint_bits: u32,
    load: f64,
    asked_rate: Option<f64>,
}

impl Fixed {
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
}

impl Plan for Fixed {
    type Filter = CuckooFilter;

    fn title(&self, items: usize) -> String {
        let params = self.builder_for(items).and_then(|builder| Ok(builder.params()?));
        let load = params.map_or(self.load, |params| items as f64 / params.slots() as f64);
        format!("koel {} f = {}, load {load:.2}", self.table, self.fingerprint_bits)
    }

    fn asked_rate(&self) -> Option<f64> {
        self.asked_rate
    }

    fn empty(&self, items: usize) -> anyhow::Result<CuckooFilter> {
        Ok(self.builder_for(items)?.build()?)
    }
}

/// What a filter that grows is told of the number of its items.
#[derive(Clone, Copy)]
enum Told {
    Nothing,
    /// How many there are at the beginning.
    First,
    /// And how many in the end.
    FirstAndLast,
    /// Only a tenth of those in the end, so that it must grow beyond its plan.
    TooFew,
}

/// A filter that grows.
struct Growing<F> {
    rate: f64,
    told: Told,
    build: fn(ElasticBuilder) -> Result<F, BuildError>,
}

impl<F> Growing<F> {
    /// The capacity and the maximal capacity, if the filter is told.
    fn capacities(&self, items: usize) -> (Option<usize>, Option<usize>) {
        let first = GROWN_FROM.min(items);
        match self.told {
            Told::Nothing => (None, None),
            Told::First => (Some(first), None),
            Told::FirstAndLast => (Some(first), Some(items)),
            Told::TooFew => (Some(first), Some((items / 10).max(first))),
        }
    }
}

impl<F: Operations> Plan for Growing<F> {
    type Filter = F;

    fn title(&self, items: usize) -> String {
        let told = |name, number: Option<usize>| number.map_or_else(String::new, |number| format!(", {name} {number}"));
        let (first, most) = self.capacities(items);
        format!("koel {}{}{}", F::NAME, told("capacity", first), told("max_capacity", most))
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.rate)
    }

    fn empty(&self, items: usize) -> anyhow::Result<F> {
        let builder = ElasticFilter::builder().false_positive_rate(self.rate);
        let (first, most) = self.capacities(items);
        let builder = first.into_iter().fold(builder, ElasticBuilder::capacity);
        Ok((self.build)(most.into_iter().fold(builder, ElasticBuilder::max_capacity))?)
    }
}
