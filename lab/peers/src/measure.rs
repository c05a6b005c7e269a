//! Times the life of a filter: building, lookups and removals. A row has the results of all rounds, and their medians.

use anyhow::{bail, ensure};
use koel_lab::{Measured, Quartiles, Stopwatch};
use serde::{Deserialize, Serialize};

use crate::{
    heap::held,
    peer::{Facts, Keys},
};

/// The number of keys in a block. Every other block is removed first, so that the removed keys are of all ages.
const BLOCK: usize = 1024;

/// A function that builds a filter with these keys, and measures it until it is empty.
type Life = dyn Fn(&Keys, &mut Watch<'_>) -> anyhow::Result<Sample>;

/// A filter with its parameters, for a number of items.
pub(crate) struct Contestant {
    pub(crate) facts: Facts,
    may_lose: bool,
    life: Box<Life>,
}

impl Contestant {
    /// Returns a filter that is defined by its operations. `build` returns a filter with all keys, and `expected_rate` its expected
    /// false-positive rate. `find` and `remove` return how many of the keys they found or removed; `remove` returns `None` if the
    /// filter does not support deletion.
    ///
    /// Each function works on a list of keys, so that its loop is compiled for that filter without dynamic calls, and may use batch
    /// operations. Filters without batch operations use [`count`](crate::peer::count).
    pub(crate) fn new<F: 'static>(
        facts: Facts,
        build: impl Fn(&[u64]) -> anyhow::Result<F> + 'static,
        expected_rate: impl Fn(&F) -> f64 + 'static,
        find: impl Fn(&F, &[u64]) -> usize + 'static,
        remove: impl Fn(&mut F, &[u64]) -> Option<usize> + 'static,
    ) -> Self {
        let life = move |keys: &Keys, watch: &mut Watch<'_>| -> anyhow::Result<Sample> {
            let items = keys.len();
            // Filters' own reports leave out some of their memory; the allocator counts all of it.
            let ((filter, add_ns), bytes) = held(|| watch.time(|| build(&keys.present)));
            let mut filter = filter?;
            let expected_rate = expected_rate(&filter);

            let mut sample = look_up(&filter, &find, keys, watch)?;
            let bits_per_item = 8.0 * bytes as f64 / items as f64;
            sample = Sample { add_ns, expected_rate, bits_per_item, ..sample };
            remove_all(&mut filter, &find, &remove, keys, watch, &mut sample);
            Ok(sample)
        };
        Self { facts, may_lose: false, life: Box::new(life) }
    }

    /// Marks a filter whose documentation or code admits that it may lose keys. Lost keys are then noted, and are not a failure.
    pub(crate) fn allow_lost_keys(self) -> Self {
        Self { may_lose: true, ..self }
    }

    /// Measures one round.
    ///
    /// # Errors
    /// If the filter cannot be built, loses a key although it must not, or gives inconsistent results.
    pub(crate) fn measure(&self, keys: &Keys, watch: &mut Stopwatch) -> anyhow::Result<Sample> {
        let mut watch = Watch { inner: watch, items: keys.len(), disturbed: 0 };
        let sample = (self.life)(keys, &mut watch)?;
        let Sample { lost, stuck, left, .. } = sample;
        let lost_by_removal = sample.lost_by_removal.unwrap_or(0);
        if !self.may_lose && lost + stuck + left + lost_by_removal > 0 {
            bail!(
                "of {} keys, {lost} were not found, {lost_by_removal} were lost when others were removed, {stuck} could not be \
                 removed, and {left} were found after all had been removed; all four must be 0",
                keys.len()
            );
        }
        Ok(Sample { disturbed: watch.disturbed, ..sample })
    }
}

/// Looks up the absent, the present and the mixed keys, and fails if the results contradict each other.
fn look_up<F>(filter: &F, find: impl Fn(&F, &[u64]) -> usize, keys: &Keys, watch: &mut Watch<'_>) -> anyhow::Result<Sample> {
    let (hits, find_absent_ns) = watch.time(|| find(filter, &keys.absent));
    let (found, find_present_ns) = watch.time(|| find(filter, &keys.present));
    let (mixed, find_mixed_ns) = watch.time(|| find(filter, &keys.mixed));
    let lost = keys.len() - found;
    // All keys that are lost, and all that are found by chance, may be among the mixed ones.
    let (least, most) = (keys.mixed_present.saturating_sub(lost), keys.mixed_present + hits);
    ensure!(
        (least..=most).contains(&mixed),
        "of the mixed keys, {mixed} were found, but the earlier lookups of the same keys allow {least} to {most}"
    );
    let rate = hits as f64 / keys.len() as f64;
    Ok(Sample { find_absent_ns, find_present_ns, find_mixed_ns, rate, lost, ..Sample::default() })
}

/// Removes every other block of keys, looks up the others, which must still be there, and removes these. Nothing is measured if
/// the filter does not support deletion.
fn remove_all<F>(
    filter: &mut F,
    find: impl Fn(&F, &[u64]) -> usize,
    remove: impl Fn(&mut F, &[u64]) -> Option<usize>,
    keys: &Keys,
    watch: &mut Watch<'_>,
    sample: &mut Sample,
) {
    let block = BLOCK.min(keys.len().div_ceil(2));
    let [first, rest] = [0, 1].map(|begin| keys.present.chunks(block).skip(begin).step_by(2));
    let (removed, time) = watch.time(|| first.map(|keys| remove(filter, keys)).sum::<Option<usize>>());
    let Some(removed) = removed else { return };
    let kept: usize = rest.clone().map(<[u64]>::len).sum();
    let found: usize = rest.clone().map(|keys| find(filter, keys)).sum();
    let (others, more) = watch.time(|| rest.filter_map(|keys| remove(filter, keys)).sum::<usize>());
    sample.remove_ns = Some(time + more);
    sample.stuck = keys.len() - removed - others;
    sample.left = find(filter, &keys.present);
    sample.lost_by_removal = Some(kept - found);
}

/// A stopwatch that counts disturbed times.
struct Watch<'a> {
    inner: &'a mut Stopwatch,
    items: usize,
    disturbed: u32,
}

impl Watch<'_> {
    /// Returns the result of the work, and the nanoseconds that it took per item.
    fn time<T>(&mut self, work: impl FnOnce() -> T) -> (T, f64) {
        let (result, lap) = self.inner.time(work);
        self.disturbed += u32::from(lap.disturbed);
        (result, lap.time.as_nanos() as f64 / self.items as f64)
    }
}

/// A round that measures every filter. With one case per filter, a machine that becomes slower, or a run that is continued later,
/// would put some filters at a disadvantage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Case {
    pub(crate) items: usize,
    /// The false-positive rate of all filters, in billionths. It is an integer, so that cases can be compared for equality.
    rate_per_billion: u32,
    round: u32,
}

impl Case {
    /// Returns the case of a round. Rounds are numbered from 1.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is at most 1")]
    pub(crate) fn new(items: usize, rate: f64, round: u32) -> Self {
        Self { items, rate_per_billion: (rate * 1e9).round() as u32, round }
    }

    pub(crate) fn rate(&self) -> f64 {
        f64::from(self.rate_per_billion) / 1e9
    }
}

/// The results of one round; the experiment's columns describe them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) add_ns: f64,
    pub(crate) find_absent_ns: f64,
    pub(crate) find_present_ns: f64,
    pub(crate) find_mixed_ns: f64,
    pub(crate) remove_ns: Option<f64>,
    pub(crate) rate: f64,
    pub(crate) expected_rate: f64,
    pub(crate) bits_per_item: f64,
    pub(crate) lost: usize,
    pub(crate) stuck: usize,
    pub(crate) left: usize,
    pub(crate) lost_by_removal: Option<usize>,
    pub(crate) disturbed: u32,
}

/// The results of one round of a filter, or the error, as in files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    #[serde(flatten)]
    pub(crate) facts: Facts,
    #[serde(flatten)]
    pub(crate) found: Found,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Found {
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
}

/// The results of all rounds of a filter. After a failure, there are none.
pub(crate) struct Row {
    pub(crate) facts: Facts,
    pub(crate) items: usize,
    pub(crate) samples: Vec<Sample>,
    pub(crate) failure: Option<String>,
}

impl Row {
    /// Returns a row for each filter, in the order of the first round.
    pub(crate) fn all(measured: &[Measured<Case, Entry>]) -> Vec<Self> {
        let mut rows: Vec<Self> = Vec::new();
        for Measured { case, rows: entries } in measured {
            for Entry { facts, found } in entries {
                let index = rows.iter().position(|row| row.facts.filter == facts.filter).unwrap_or_else(|| {
                    rows.push(Self { facts: facts.clone(), items: case.items, samples: Vec::new(), failure: None });
                    rows.len() - 1
                });
                let row = &mut rows[index];
                match found {
                    Found::Figures(sample) if row.failure.is_none() => row.samples.push(sample.clone()),
                    Found::Figures(_) => {}
                    Found::Nothing { error } => {
                        row.samples.clear();
                        row.failure.get_or_insert_with(|| error.clone());
                    }
                }
            }
        }
        rows
    }

    /// Returns the quartiles of a time in the undisturbed rounds, or in all rounds if too many were disturbed, in nanoseconds
    /// per item.
    pub(crate) fn time(&self, of: impl Fn(&Sample) -> Option<f64>) -> Option<Quartiles> {
        let all = self.disturbed().is_some();
        Quartiles::of(self.samples.iter().filter(|sample| all || sample.disturbed == 0).filter_map(of))
    }

    pub(crate) fn median(&self, of: fn(&Sample) -> f64) -> Option<f64> {
        Some(Quartiles::of(self.samples.iter().map(of))?.median)
    }

    pub(crate) fn rate(&self) -> Option<f64> {
        self.median(|sample| sample.rate)
    }

    pub(crate) fn bits_per_item(&self) -> Option<f64> {
        self.median(|sample| sample.bits_per_item)
    }

    pub(crate) fn deletes(&self) -> bool {
        self.samples.iter().any(|sample| sample.remove_ns.is_some())
    }

    /// Returns the greatest number of items that a round lost when others were removed, or `None` if the filter does not support
    /// deletion.
    pub(crate) fn lost_by_removal(&self) -> Option<usize> {
        self.samples.iter().filter_map(|sample| sample.lost_by_removal).max()
    }

    /// Returns true if the measured rate is at most the requested one, with a margin of three standard deviations, or `None` if the
    /// rate cannot be chosen.
    pub(crate) fn keeps_rate(&self) -> Option<bool> {
        let (rate, asked, items) = (self.rate()?, self.facts.asked_rate?, self.items as f64);
        Some(rate * items <= asked * items + 3.0 * (asked * items).sqrt())
    }

    /// Returns the bits per item beyond the log₂(1/ε) that any filter with this rate needs, which makes different rates comparable.
    /// Returns `None` without a false positive, since ε is then unknown.
    pub(crate) fn overhead(&self) -> Option<f64> {
        let rate = self.rate().filter(|&rate| rate > 0.0)?;
        Some(self.bits_per_item()? + rate.log2())
    }

    /// Returns the number of rounds that other work on the processor disturbed, and the number of all rounds. Returns `None` if
    /// less than half of the rounds were disturbed.
    pub(crate) fn disturbed(&self) -> Option<(usize, usize)> {
        let rounds = self.samples.len();
        let disturbed = self.samples.iter().filter(|sample| sample.disturbed > 0).count();
        (disturbed > 0 && 2 * disturbed >= rounds).then_some((disturbed, rounds))
    }
}
