//! What is measured of a filter: the code of the experiments `space`, `fpr`, `load` and `speed`, for any parameters.

use std::{fmt, str::FromStr};

use anyhow::bail;
use koel::{Builder, CuckooFilter, tuning};
use serde::{Deserialize, Serialize};

use super::{Case, Row};
use crate::{
    experiments::{
        Hashes,
        load::{self, Filled, Loads, Walk},
        probe::{self, Probed},
        times::{Sampling, Subject},
    },
    interrupt::{Interrupt, Interrupted},
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
    /// Nanoseconds per operation.
    Speed,
}

impl Measure {
    /// All of them, in the order of their columns.
    pub const ALL: [Self; 4] = [Self::Space, Self::Fpr, Self::Load, Self::Speed];

    /// Its name, which is also that of an experiment.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Space => "space",
            Self::Fpr => "fpr",
            Self::Load => "load",
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

impl Case {
    /// The rate by the formula.
    fn predicted(&self) -> f64 {
        tuning::false_positive_rate(self.f, self.b, self.items as f64 / self.slots() as f64)
    }

    fn probes(&self) -> u64 {
        let (hits, most) = precision(self.quick);
        probe::probes_of_table(self.f, self.buckets(), self.predicted(), hits, most)
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
