//! The results of a filter: entries of single rounds, as in files, and the row of all rounds with their medians.

use anyhow::anyhow;
use koel_lab::{Quartiles, Stopwatch};
use serde::{Deserialize, Serialize};

use crate::{
    keys::Keys,
    measure::{self, Contestant, Facts, Sample},
    peer::Family,
};

/// The results of all rounds of a filter, or why there are none.
pub(crate) struct Row {
    facts: Facts,
    samples: anyhow::Result<Vec<Sample>>,
}

/// The results of one round of a filter, or why there are none: plain figures, as in files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    #[serde(flatten)]
    pub(crate) facts: Facts,
    #[serde(flatten)]
    found: Found,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Found {
    Figures(Sample),
    Nothing { error: String },
}

impl Entry {
    pub(crate) fn new(facts: Facts, sample: anyhow::Result<Sample>) -> Self {
        let found = match sample {
            Ok(sample) => Found::Figures(sample),
            Err(error) => Found::Nothing { error: format!("{error:#}") },
        };
        Self { facts, found }
    }

    pub(crate) fn sample(&self) -> anyhow::Result<Sample> {
        match &self.found {
            Found::Figures(sample) => Ok(sample.clone()),
            Found::Nothing { error } => Err(anyhow!("{error}")),
        }
    }
}

/// The medians of a row. Times are in nanoseconds per item, with their quartiles.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) filter: String,
    pub(crate) family: Family,
    pub(crate) deletes: bool,
    /// The rate that the filter was built for. `None` if its rate cannot be chosen.
    pub(crate) asked_rate: Option<f64>,
    pub(crate) add_ns: Quartiles,
    pub(crate) find_absent_ns: Quartiles,
    pub(crate) find_present_ns: Quartiles,
    /// With keys of which about half are present.
    pub(crate) find_mixed_ns: Quartiles,
    /// `None` if it does not support deletion.
    pub(crate) remove_ns: Option<Quartiles>,
    /// The measured false-positive rate.
    pub(crate) rate: f64,
    /// The theoretical false-positive rate.
    pub(crate) expected_rate: f64,
    pub(crate) bits_per_item: f64,
    /// Items that were lost when others were removed: the most in a round. `None` if it does not support deletion.
    pub(crate) lost_by_removal: Option<usize>,
}

impl Record {
    /// Whether the measured rate is the one that was asked for, or lower, with a margin of three standard deviations. `None` if
    /// the rate cannot be chosen.
    pub(crate) fn keeps_rate(&self, items: usize) -> Option<bool> {
        let (asked, items) = (self.asked_rate?, items as f64);
        Some(self.rate * items <= asked * items + 3.0 * (asked * items).sqrt())
    }

    /// Bits per item beyond log₂(1/ε), which any filter with that rate needs: comparable between rates. `None` without a false
    /// positive, since ε is then unknown.
    pub(crate) fn overhead(&self) -> Option<f64> {
        (self.rate > 0.0).then(|| self.bits_per_item + self.rate.log2())
    }
}

impl Row {
    pub(crate) fn new(facts: Facts) -> Self {
        Self { facts, samples: Ok(Vec::new()) }
    }

    pub(crate) fn filter(&self) -> &str {
        &self.facts.filter
    }

    /// Measures one more round of the row's filter. After a failure, does nothing.
    pub(crate) fn measure(&mut self, contestant: &dyn Contestant, keys: &Keys, watch: &mut Stopwatch) {
        if self.samples.is_ok() {
            self.push(measure::round(contestant, keys, watch));
        }
    }

    /// Adds the results of a round. After a failure, the row stays failed.
    pub(crate) fn push(&mut self, sample: anyhow::Result<Sample>) {
        match (&mut self.samples, sample) {
            (Ok(samples), Ok(sample)) => samples.push(sample),
            (Ok(_), Err(error)) => self.samples = Err(error),
            (Err(_), _) => {}
        }
    }

    pub(crate) fn failure(&self) -> Option<&anyhow::Error> {
        self.samples.as_ref().err()
    }

    pub(crate) fn samples(&self) -> &[Sample] {
        self.samples.as_deref().unwrap_or_default()
    }

    /// The medians. `None` without results.
    pub(crate) fn record(&self) -> Option<Record> {
        let time = |column: fn(&Sample) -> f64| Quartiles::of(self.counting().map(column));
        let median = |column: fn(&Sample) -> f64| Some(Quartiles::of(self.samples().iter().map(column))?.median);
        let remove_ns = Quartiles::of(self.counting().filter_map(|sample| sample.remove));
        Some(Record {
            filter: self.facts.filter.clone(),
            family: self.facts.family,
            deletes: remove_ns.is_some(),
            asked_rate: self.facts.asked_rate,
            add_ns: time(|sample| sample.add)?,
            find_absent_ns: time(|sample| sample.find_absent)?,
            find_present_ns: time(|sample| sample.find_present)?,
            find_mixed_ns: time(|sample| sample.find_mixed)?,
            remove_ns,
            rate: median(|sample| sample.rate)?,
            expected_rate: median(|sample| sample.expected_rate)?,
            bits_per_item: median(|sample| sample.bits_per_item)?,
            lost_by_removal: self.samples().iter().filter_map(|sample| sample.lost_by_removal).max(),
        })
    }

    /// How many rounds stayed disturbed, and of how many, if that is half of them or more.
    pub(crate) fn disturbed(&self) -> Option<(usize, usize)> {
        let rounds = self.samples().len();
        let disturbed = self.samples().iter().filter(|sample| is_disturbed(sample)).count();
        (disturbed > 0 && 2 * disturbed >= rounds).then_some((disturbed, rounds))
    }

    /// The rounds whose times count: those that were not disturbed, or all if too many were.
    fn counting(&self) -> impl Iterator<Item = &Sample> {
        let all = self.disturbed().is_some();
        self.samples().iter().filter(move |sample| all || !is_disturbed(sample))
    }
}

fn is_disturbed(sample: &Sample) -> bool {
    sample.disturbed.is_some_and(|times| times > 0)
}
