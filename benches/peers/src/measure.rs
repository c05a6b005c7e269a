//! Takes the time of a filter's life: built, asked, emptied.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::bail;

use crate::{keys::Keys, memory, peer::Peer};

/// A peer without its types: dynamic calls end here, outside of all that is timed.
pub(crate) trait Contestant {
    /// What the row is called, for so many items.
    fn title(&self, items: usize) -> String;

    /// One round.
    ///
    /// # Errors
    /// If the filter cannot be built, or loses a key where it must not.
    fn measure(&self, keys: &Keys) -> anyhow::Result<Sample>;
}

/// What one round found. Times are in nanoseconds an item.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) add: f64,
    pub(crate) find_absent: f64,
    pub(crate) find_present: f64,
    pub(crate) remove: Option<f64>,
    /// The share of the absent keys that seemed to be there.
    pub(crate) rate: f64,
    pub(crate) expected_rate: f64,
    pub(crate) bits_per_item: f64,
    /// Keys that went in and were not found.
    pub(crate) lost: usize,
    /// Keys that went in and could not be removed.
    pub(crate) stuck: usize,
}

/// What all rounds found about a contestant, or why they found nothing.
pub(crate) struct Row {
    title: String,
    samples: anyhow::Result<Vec<Sample>>,
}

impl<P: Peer> Contestant for P {
    fn title(&self, items: usize) -> String {
        Peer::title(self, items)
    }

    fn measure(&self, keys: &Keys) -> anyhow::Result<Sample> {
        let items = keys.len();
        let per_item = |time: Duration| time.as_nanos() as f64 / items as f64;

        let before = memory::live();
        let (filter, add) = timed(|| self.build(&keys.present));
        let mut filter = filter?;
        let bytes = memory::live().saturating_sub(before);
        let expected_rate = self.expected_rate(&filter, items);

        let (hits, find_absent) = timed(|| self.find(&filter, &keys.absent));
        let (found, find_present) = timed(|| self.find(&filter, &keys.present));
        let (removed, remove) = timed(|| self.remove(&mut filter, &keys.present));
        let (lost, stuck) = (items - found, removed.map_or(0, |removed| items - removed));
        if !P::MAY_LOSE && lost + stuck > 0 {
            bail!("of {items} keys, {lost} were not found and {stuck} could not be removed; all must be");
        }
        Ok(Sample {
            add: per_item(add),
            find_absent: per_item(find_absent),
            find_present: per_item(find_present),
            remove: removed.map(|_| per_item(remove)),
            rate: hits as f64 / items as f64,
            expected_rate,
            bits_per_item: 8.0 * bytes as f64 / items as f64,
            lost,
            stuck,
        })
    }
}

/// What comes of the work, and how long it took.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = black_box(work());
    (result, start.elapsed())
}

impl Row {
    pub(crate) fn new(title: String) -> Self {
        Self { title, samples: Ok(Vec::new()) }
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// One more round. A failure is the end of the row.
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

    /// The median of one column over the rounds; `None` if there is nothing in it.
    pub(crate) fn median(&self, column: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        let mut values: Vec<_> = self.samples().iter().filter_map(column).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        match values.len() {
            0 => None,
            odd if odd % 2 == 1 => Some(values[middle]),
            _ => Some(f64::midpoint(values[middle - 1], values[middle])),
        }
    }
}
