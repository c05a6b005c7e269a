//! Times, measured in the same way for filters and for the hash set.

use std::{
    collections::HashSet,
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::ensure;
use koel_lab::percent;

use crate::file::Filter;

/// An operation is repeated for at least this long.
const LONG_ENOUGH: Duration = Duration::from_millis(120);

/// What is measured of filters and of hash sets.
pub(super) trait Set {
    /// True if the item was stored.
    fn insert(&mut self, item: &[u8]) -> bool;
    /// True if the item is present, or a filter's false positive.
    fn contains(&self, item: &[u8]) -> bool;
    /// True if the item was present.
    fn remove(&mut self, item: &[u8]) -> bool;
}

impl Set for Filter {
    fn insert(&mut self, item: &[u8]) -> bool {
        Filter::insert(self, item).is_ok()
    }

    fn contains(&self, item: &[u8]) -> bool {
        Filter::contains(self, item)
    }

    fn remove(&mut self, item: &[u8]) -> bool {
        Filter::remove(self, item)
    }
}

impl Set for HashSet<Box<[u8]>> {
    fn insert(&mut self, item: &[u8]) -> bool {
        HashSet::insert(self, item.into())
    }

    fn contains(&self, item: &[u8]) -> bool {
        HashSet::contains(self, item)
    }

    fn remove(&mut self, item: &[u8]) -> bool {
        HashSet::remove(self, item)
    }
}

/// Items that are not words, stored end to end in one allocation.
pub(super) struct Absent {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Absent {
    /// Pairs of each word and `each` others, separated by a space. No word has a space, so no pair is a word; and the pairs are
    /// distinct as long as `each` is less than the number of words.
    pub(super) fn pairs(words: &[&[u8]], each: usize) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(words.len() * each));
        for (first, word) in words.iter().enumerate() {
            for step in 1..=each {
                let second = words[(first + step) % words.len()];
                bytes.extend_from_slice(word);
                bytes.push(b' ');
                bytes.extend_from_slice(second);
                ends.push(bytes.len());
            }
        }
        Self { bytes, ends }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let item = &self.bytes[start..end];
            start = end;
            item
        })
    }
}

/// Nanoseconds per operation.
pub(super) struct Times {
    insert: f64,
    present: f64,
    absent: f64,
    remove: f64,
}

/// Measures an empty set, and leaves it empty. Checks every answer except false positives.
pub(super) fn measure<S: Set>(set: &mut S, words: &[&[u8]], absent: &Absent) -> anyhow::Result<Times> {
    let (mut insert, mut present, mut remove) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let mut rounds = 0_usize;
    while insert.min(present).min(remove) < LONG_ENOUGH {
        let mut clock = Instant::now();
        let mut lap = move || std::mem::replace(&mut clock, Instant::now()).elapsed();
        let inserted = words.iter().filter(|word| black_box(set.insert(black_box(word)))).count();
        insert += lap();
        let found = words.iter().filter(|word| black_box(set.contains(black_box(word)))).count();
        present += lap();
        let removed = words.iter().filter(|word| black_box(set.remove(black_box(word)))).count();
        remove += lap();
        ensure!([inserted, found, removed] == [words.len(); 3], "a word was lost during the measurement; please report this");
        rounds += 1;
    }
    let inserted = words.iter().filter(|word| set.insert(word)).count();
    let (mut missing, mut absents) = (Duration::ZERO, 0);
    while missing < LONG_ENOUGH {
        let start = Instant::now();
        black_box(absent.iter().filter(|item| black_box(set.contains(black_box(item)))).count());
        missing += start.elapsed();
        absents += absent.len();
    }
    let removed = words.iter().filter(|word| set.remove(word)).count();
    ensure!(inserted == removed, "a word was lost during the measurement; please report this");
    let each = |time: Duration, operations: usize| time.as_secs_f64() * 1e9 / operations as f64;
    let all = rounds * words.len();
    Ok(Times {
        insert: each(insert, all),
        present: each(present, all),
        absent: each(missing, absents),
        remove: each(remove, all),
    })
}

/// The results for one set.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) bytes: usize,
    pub(super) bits_per_item: f64,
    /// The measured and the expected rate. A hash set has no false positives.
    pub(super) false_positives: Option<(f64, f64)>,
    pub(super) times: Times,
}

impl Row {
    /// The labels of the cells.
    pub(super) const LABELS: [&str; 9] = [
        "",
        "bytes",
        "bits per item",
        "false positives",
        "- expected",
        "ns to insert a word",
        "ns to find a word",
        "ns to miss an absent item",
        "ns to remove a word",
    ];

    pub(super) fn cells(&self) -> [String; 9] {
        let (measured, expected) = match self.false_positives {
            Some((measured, expected)) => (percent(measured, 2), percent(expected, 2)),
            None => (String::from("none"), String::from("none")),
        };
        let Times { insert, present, absent, remove } = self.times;
        let [insert, present, absent, remove] = [insert, present, absent, remove].map(|time| format!("{time:.1}"));
        let (bytes, bits_per_item) = (self.bytes.to_string(), format!("{:.2}", self.bits_per_item));
        [self.name.clone(), bytes, bits_per_item, measured, expected, insert, present, absent, remove]
    }
}
