//! What is measured of a filter: the code of the experiments `space`, `fpr`, `load`, `walk` and `speed`, for any parameters.

use std::{collections::BTreeMap, fmt, str::FromStr};

use anyhow::bail;
use koel::{Builder, CuckooFilter, tuning};
use serde::{Deserialize, Serialize};

use super::{Case, Row};
use crate::{
    experiments::{
        load::{self, Filled, Loads},
        plain::Walk,
        probe::{self, Probed},
        random::Hashes,
        times::{Sampling, Subject},
        walk,
    },
    interrupt::{Interrupt, Interrupted},
    statistics,
    stopwatch::Stopwatch,
};

/// Something to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Bytes, and bits per item.
    Space,
    /// The false-positive rate.
    Fpr,
    /// The load at the first refusal.
    Load,
    /// Evictions per insertion.
    Walk,
    /// Nanoseconds per operation.
    Speed,
}

impl Measure {
    /// All of them, in the order of their columns.
    pub const ALL: [Self; 5] = [Self::Space, Self::Fpr, Self::Load, Self::Walk, Self::Speed];

    /// Its name, which is also that of an experiment.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Space => "space",
            Self::Fpr => "fpr",
            Self::Load => "load",
            Self::Walk => "walk",
            Self::Speed => "speed",
        }
    }
}

/// A set of them, in files by their names: `space fpr`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) struct Measures(Vec<Measure>);

impl Measures {
    pub(super) fn new(measures: &[Measure]) -> Self {
        Self(Measure::ALL.into_iter().filter(|measure| measures.contains(measure)).collect())
    }

    pub(super) fn has(&self, measure: Measure) -> bool {
        self.0.contains(&measure)
    }
}

impl fmt::Display for Measures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(|measure| measure.name()).collect::<Vec<_>>().join(" "))
    }
}

impl From<Measures> for String {
    fn from(measures: Measures) -> Self {
        measures.to_string()
    }
}

impl FromStr for Measure {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> anyhow::Result<Self> {
        match Self::ALL.into_iter().find(|measure| measure.name() == name) {
            Some(measure) => Ok(measure),
            None => bail!("'{name}' given; it takes {}", Self::ALL.map(Self::name).join(", ")),
        }
    }
}

impl TryFrom<String> for Measures {
    type Error = anyhow::Error;

    fn try_from(names: String) -> anyhow::Result<Self> {
        Ok(Self::new(&names.split_whitespace().map(str::parse).collect::<anyhow::Result<Vec<_>>>()?))
    }
}

/// How many false positives are wanted, and the most probes for that.
fn precision(quick: bool) -> (u64, u64) {
    if quick { (1000, 1_000_000) } else { (20_000, 100_000_000) }
}

/// How many insertions are wanted to count their evictions.
fn insertions(quick: bool) -> u64 {
    if quick { 1000 } else { 20_000 }
}

/// The insertions before the load whose evictions are counted are so many of all slots: one in a hundred.
const LAST: u64 = 100;
/// The most tables for that.
const MOST_TABLES: u64 = 1000;

impl Case {
    /// The rate by the formula.
    fn predicted(&self) -> f64 {
        tuning::false_positive_rate(self.f, self.b, self.items as f64 / self.slots() as f64)
    }

    fn probes(&self) -> u64 {
        let (hits, most) = precision(self.quick);
        probe::probes_of_table(self.f, self.buckets(), self.predicted(), hits, most)
    }

    /// The insertions of a table whose evictions are counted, and the number of tables.
    fn counted(&self) -> (u64, u64) {
        let each = (self.slots() / LAST).clamp(1, self.items.max(1));
        (each, insertions(self.quick).div_ceil(each).clamp(1, MOST_TABLES))
    }

    pub(super) fn builder(&self) -> Builder {
        let builder = CuckooFilter::builder().table(self.table.table()).bucket_size(self.b).fingerprint_bits(self.f);
        builder.buckets(self.buckets())
    }
}

/// About how long a case takes: the unit is a tenth of an insertion.
pub(super) fn effort(case: &Case) -> u64 {
    let efforts = case.measure.0.iter().map(|measure| match measure {
        Measure::Space => 0,
        Measure::Fpr => case.probes(),
        Measure::Load => case.slots() * 10 * u64::from(load::trials(case.slots(), case.quick)),
        Measure::Walk => case.items * 20 * case.counted().1,
        Measure::Speed => Sampling::new(case.quick).effort(case.slots(), case.items),
    });
    efforts.fold(case.items * 10, u64::saturating_add)
}

pub(super) fn measure(case: &Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Row> {
    let mut filter = case.builder().build()?;
    let items = usize::try_from(case.items)?;
    let fits = probe::fill(&mut filter, &mut Hashes::new(seed), items, interrupt)?;
    let mut row = Row { slots: filter.slots() as u64, inserted: filter.len() as u64, ..Row::default() };
    if case.measure.has(Measure::Load) {
        first_refusal(case, seed, &mut row, interrupt)?;
    }
    if !fits {
        return Ok(row);
    }
    if case.measure.has(Measure::Space) {
        row.bytes = Some(filter.params().table_bytes() as u64);
        row.bits_per_item = Some(filter.bits_per_item()).filter(|bits| bits.is_finite());
    }
    if case.measure.has(Measure::Fpr) {
        false_positives(case, &filter, seed, &mut row, interrupt)?;
    }
    drop(filter);
    if case.measure.has(Measure::Walk) {
        evictions(case, seed, &mut row, interrupt)?;
    }
    if case.measure.has(Measure::Speed) {
        speed(case, seed, &mut row, interrupt)?;
    }
    Ok(row)
}

fn false_positives(
    case: &Case,
    filter: &CuckooFilter,
    seed: u64,
    row: &mut Row,
    interrupt: &Interrupt,
) -> Result<(), Interrupted> {
    let probed = Probed::new(filter, &mut Hashes::new(!seed), case.probes(), interrupt)?;
    let (low, high) = probed.interval();
    (row.probes, row.found, row.rate) = (Some(probed.probes), Some(probed.hits), Some(probed.rate()));
    (row.predicted_rate, row.rate_low, row.rate_high) = (Some(case.predicted()), Some(low), Some(high));
    Ok(())
}

fn first_refusal(case: &Case, seed: u64, row: &mut Row, interrupt: &Interrupt) -> anyhow::Result<()> {
    let tables = load::trials(case.slots(), case.quick);
    let table = Filled::new(Walk::Koel, case.f, case.b, case.buckets(), seed)?;
    let loads = Loads::new(table, tables, seed, interrupt)?;
    (row.tables, row.first_refusal) = (Some(tables), Some(loads.mean));
    (row.first_refusal_min, row.first_refusal_max) = (Some(loads.min), Some(loads.max));
    Ok(())
}

/// Counts the evictions of the last insertions before the load. Nothing is known if a table refuses one of them.
fn evictions(case: &Case, seed: u64, row: &mut Row, interrupt: &Interrupt) -> Result<(), Interrupted> {
    let (each, tables) = case.counted();
    let mut hashes = Hashes::new(seed);
    let mut counts = BTreeMap::<u32, u64>::new();
    for table in 0..tables {
        let mut insert = walk::inserter(Walk::Koel, case.f, case.b, case.buckets(), seed.wrapping_add(table));
        for item in 0..case.items {
            if item % walk::PACE == 0 {
                interrupt.check()?;
            }
            let Some(evictions) = hashes.next().and_then(&mut insert) else { return Ok(()) };
            if item + each >= case.items {
                *counts.entry(evictions).or_default() += 1;
            }
        }
    }
    let insertions: u64 = counts.values().sum();
    let power = |n: i32| counts.iter().map(|(&evictions, &count)| f64::from(evictions).powi(n) * count as f64).sum::<f64>();
    let mean = power(1) / insertions as f64;
    let half = statistics::half_interval(power(2) / insertions as f64 - mean * mean, insertions);
    let quantile = |share: f64| {
        let mut below = 0;
        counts.iter().find_map(|(&evictions, &count)| {
            below += count;
            (below as f64 >= share * insertions as f64).then_some(evictions)
        })
    };
    row.insertions = Some(insertions);
    (row.evictions, row.evictions_low, row.evictions_high) = (Some(mean), Some((mean - half).max(0.0)), Some(mean + half));
    (row.evictions_p50, row.evictions_p99, row.evictions_max) = (quantile(0.5), quantile(0.99), quantile(1.0));
    Ok(())
}

/// Times the operations. Nothing is known if a round's filter refuses a key.
fn speed(case: &Case, seed: u64, row: &mut Row, interrupt: &Interrupt) -> anyhow::Result<()> {
    let present: Vec<_> = Hashes::new(seed).take(usize::try_from(case.items)?).collect();
    let sampling = Sampling::new(case.quick);
    let mut subject = Subject::new(case.builder().params()?, &present, seed, sampling)?;
    let mut watch = Stopwatch::new();
    for round in 0..sampling.most_rounds() {
        if (round < sampling.rounds || subject.lacks()) && !subject.round(&mut watch, interrupt)? {
            return Ok(());
        }
    }
    if let Some((rounds, times)) = subject.times() {
        (row.rounds, row.times) = (Some(rounds), times);
    }
    Ok(())
}
