//! Times the life of a filter: building, lookups, emptying. A row has the results of all rounds, and their medians.

use std::time::Duration;

use anyhow::{anyhow, bail, ensure};
use koel_lab::{Quartiles, Stopwatch};
use serde::{Deserialize, Serialize};

use crate::peer::{Family, Keys, Peer, live};

/// A peer as a trait object. Dynamic calls are outside of everything that is timed.
pub(crate) trait Contestant {
    /// What is known before measuring, for this number of items.
    fn facts(&self, items: usize) -> Facts;

    /// Measures one round.
    ///
    /// # Errors
    /// If the filter cannot be built, loses a key although it must not, or gives inconsistent answers.
    fn measure(&self, keys: &Keys, watch: &mut Stopwatch) -> anyhow::Result<Sample>;
}

/// How often a filter is measured in a round, at most.
const ATTEMPTS: u32 = 3;

/// Measures one round, and again if other work on the processor disturbed it. Of all attempts, the least disturbed counts.
///
/// # Errors
/// As of [`Contestant::measure`].
pub(crate) fn round(contestant: &dyn Contestant, keys: &Keys, watch: &mut Stopwatch) -> anyhow::Result<Sample> {
    let mut best = contestant.measure(keys, watch)?;
    for _ in 1..ATTEMPTS {
        if best.disturbed == Some(0) {
            break;
        }
        let next = contestant.measure(keys, watch)?;
        if next.disturbed < best.disturbed {
            best = next;
        }
    }
    Ok(best)
}

/// A filter's name, family and rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// The name of its row.
    pub(crate) filter: String,
    pub(crate) family: Family,
    /// The rate that it is built for. `None` if its rate cannot be chosen.
    pub(crate) asked_rate: Option<f64>,
}

/// The results of one round. Times are in nanoseconds per item, as their names in files say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    #[serde(rename = "add_ns")]
    pub(crate) add: f64,
    #[serde(rename = "find_absent_ns")]
    pub(crate) find_absent: f64,
    #[serde(rename = "find_present_ns")]
    pub(crate) find_present: f64,
    #[serde(rename = "find_mixed_ns")]
    pub(crate) find_mixed: f64,
    /// `None` if it does not support deletion.
    #[serde(rename = "remove_ns")]
    pub(crate) remove: Option<f64>,
    /// The measured false-positive rate: the share of the absent keys that were found.
    pub(crate) rate: f64,
    pub(crate) expected_rate: f64,
    pub(crate) bits_per_item: f64,
    /// Inserted keys that were not found.
    pub(crate) lost: usize,
    /// Inserted keys that could not be removed.
    pub(crate) stuck: usize,
    /// Keys that were still found after all had been removed.
    pub(crate) left: usize,
    /// Keys that were no longer found when others had been removed. `None` without removals, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lost_by_removal: Option<usize>,
    /// How many of its times other work on the processor disturbed. `None` in older files: nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) disturbed: Option<u32>,
}

impl<P: Peer> Contestant for P {
    fn facts(&self, items: usize) -> Facts {
        let asked_rate = self.asked_rate();
        let own = if asked_rate.is_none() { ", its own ε" } else { "" };
        Facts { filter: self.title(items) + own, family: P::FAMILY, asked_rate }
    }

    fn measure(&self, keys: &Keys, watch: &mut Stopwatch) -> anyhow::Result<Sample> {
        let items = keys.len();
        let mut watch = Watch { watch, disturbed: 0 };
        let per_item = |time: Duration| time.as_nanos() as f64 / items as f64;

        let before = live();
        let (filter, add) = watch.time(|| self.build(&keys.present));
        let mut filter = filter?;
        let bytes = live().saturating_sub(before);
        let expected_rate = self.expected_rate(&filter, items);

        let (hits, find_absent) = watch.time(|| self.find(&filter, &keys.absent));
        let (found, find_present) = watch.time(|| self.find(&filter, &keys.present));
        let (mixed, find_mixed) = watch.time(|| self.find(&filter, &keys.mixed));
        let emptied = empty(self, &mut filter, &keys.present, &mut watch);
        let lost = items - found;
        let (stuck, left, lost_by_removal) =
            emptied.as_ref().map_or((0, 0, 0), |emptied| (items - emptied.removed, emptied.left, emptied.lost));
        if !P::MAY_LOSE && lost + stuck + left + lost_by_removal > 0 {
            bail!(
                "of {items} keys, {lost} were not found, {lost_by_removal} were lost when others were removed, {stuck} could not be \
                 removed, and {left} were found after all had been removed; all four must be 0"
            );
        }
        let (least, most) = (keys.mixed_present.saturating_sub(lost), keys.mixed_present + hits);
        ensure!(
            (least..=most).contains(&mixed),
            "of the mixed keys, {mixed} were found, but by the answers for the same keys before, it must be {least} to {most}"
        );
        Ok(Sample {
            add: per_item(add),
            find_absent: per_item(find_absent),
            find_present: per_item(find_present),
            find_mixed: per_item(find_mixed),
            remove: emptied.as_ref().map(|emptied| per_item(emptied.time)),
            rate: hits as f64 / items as f64,
            expected_rate,
            bits_per_item: 8.0 * bytes as f64 / items as f64,
            lost,
            stuck,
            left,
            lost_by_removal: emptied.map(|emptied| emptied.lost),
            disturbed: Some(watch.disturbed),
        })
    }
}

/// How a filter was emptied.
struct Emptied {
    time: Duration,
    /// Keys that could be removed.
    removed: usize,
    /// Keys of one half that were not found when the other half had been removed.
    lost: usize,
    /// Keys that were found when all had been removed.
    left: usize,
}

/// Removes half of the keys, looks up the other half, and removes that, too. `None` if the filter does not support deletion.
fn empty<P: Peer>(peer: &P, filter: &mut P::Filter, keys: &[u64], watch: &mut Watch<'_>) -> Option<Emptied> {
    /// Keys of all ages are removed first: every other block of them.
    const BLOCK: usize = 1024;
    let block = BLOCK.min(keys.len().div_ceil(2));
    let [first, rest] = [0, 1].map(|begin| keys.chunks(block).skip(begin).step_by(2));
    let kept: usize = rest.clone().map(<[u64]>::len).sum();
    let (removed, time) = watch.time(|| first.map(|keys| peer.remove(filter, keys)).sum::<Option<usize>>());
    let removed = removed?;
    let found: usize = rest.clone().map(|keys| peer.find(filter, keys)).sum();
    let (others, more) = watch.time(|| rest.map(|keys| peer.remove(filter, keys)).sum::<Option<usize>>());
    let left = peer.find(filter, keys);
    Some(Emptied { time: time + more, removed: removed + others?, lost: kept - found, left })
}

/// A stopwatch that counts disturbed times.
struct Watch<'a> {
    watch: &'a mut Stopwatch,
    disturbed: u32,
}

impl Watch<'_> {
    /// The result of the work, and how long it took.
    fn time<T>(&mut self, work: impl FnOnce() -> T) -> (T, Duration) {
        let (result, lap) = self.watch.time(work);
        self.disturbed += u32::from(lap.disturbed);
        (result, lap.time)
    }
}

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
    /// Whether other work on the processor disturbed half of the rounds or more.
    pub(crate) disturbed: bool,
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
            self.push(round(contestant, keys, watch));
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
            disturbed: self.disturbed().is_some(),
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
