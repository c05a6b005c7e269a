//! All filters, with few items. No test depends on a time.

mod growing;
mod laboratory;

use std::{cell::Cell, time::Duration};

use koel_lab::{Counters, Quartiles, Signals, Stopwatch};
use serde_json::json;

use crate::{
    keys::Keys,
    measure::{self, Contestant as _, Facts, Sample},
    measure_all,
    peer::{Family, Peer, count},
    row::{Entry, Row},
    set::Set,
    table,
};

const ITEMS: usize = 20_000;
const RATE: f64 = 0.001;

#[test]
fn every_filter_finds_its_keys_at_its_rate() {
    let keys = Keys::new(ITEMS).unwrap();
    let contestants = Set::Fixed.contestants(RATE);
    let rows = measure_all(&contestants, &keys, 1);
    assert_eq!(rows.len(), contestants.len());
    for row in &rows {
        assert!(row.failure().is_none(), "{}: {:?}", row.filter(), row.failure());
        let [sample] = row.samples() else { panic!("{}: one round", row.filter()) };
        assert_eq!((sample.lost, sample.stuck, sample.left), (0, 0, 0), "{}", row.filter());
        assert!(table::is_likely(sample, ITEMS), "{}: {sample:?}", row.filter());
    }
    let text = table::markdown(Set::Fixed, &rows, ITEMS);
    for row in &rows {
        assert_eq!(text.matches(&format!("| {} ", row.filter())).count(), 1, "{}: {text}", row.filter());
    }
    // The least number of rows of each crate, seven of koel's among them, and which support deletion.
    for (name, least, deletes) in [
        ("koel packed", 5, true),
        ("koel single", 2, true),
        ("cuckoofilter 0.5", 2, true),
        ("scalable_cuckoo_filter 0.5", 1, true),
        ("qfilter 0.3", 1, true),
        ("fastbloom-rs 0.5", 1, true),
        ("fastbloom 0.17", 2, false),
        ("bloomfilter 3", 1, false),
        ("sbbf-rs-safe 0.3", 1, false),
        ("xorf 0.13", 2, false),
    ] {
        let rows = rows.iter().filter(|row| row.filter().starts_with(name));
        assert!(rows.clone().count() >= least, "{name}");
        assert!(rows.clone().all(|row| row.record().is_some_and(|record| record.deletes == deletes)), "{name}");
    }
}

/// With whole bits, the rate is within half a bit of the requested one, at the load that they are chosen for.
#[test]
fn all_are_built_for_the_rate_that_is_asked_for() {
    let keys = Keys::new(ITEMS).unwrap();
    for asked in [0.1, 0.02, RATE, 0.0001] {
        let mut families = Vec::new();
        for row in &measure_all(&Set::Fixed.contestants(asked), &keys, 1) {
            let record = row.record().unwrap();
            let [sample] = row.samples() else { panic!("{}: one round", row.filter()) };
            assert!(table::is_likely(sample, ITEMS), "{asked}: {record:?}");
            assert_eq!(record.asked_rate.is_none(), record.filter.ends_with(", its own ε"), "{record:?}");
            if let Some(rate) = record.asked_rate {
                assert!(rate.to_bits() == asked.to_bits(), "{record:?}");
                assert!((record.expected_rate / rate).log2().abs() < 0.55, "{asked}: {record:?}");
                families.push(record.family);
            }
        }
        for family in [Family::Koel, Family::Cuckoo, Family::Quotient, Family::Bloom, Family::Blocked, Family::Counting] {
            assert!(families.contains(&family), "{family:?}");
        }
    }
}

/// Loses its first key, which is a failure unless it may lose keys.
struct Forgetful<const MAY_LOSE: bool>;

impl<const MAY_LOSE: bool> Peer for Forgetful<MAY_LOSE> {
    type Filter = Vec<u64>;

    const FAMILY: Family = Family::Koel;

    const MAY_LOSE: bool = MAY_LOSE;

    fn title(&self, _: usize) -> String {
        String::from("forgetful")
    }

    fn asked_rate(&self) -> Option<f64> {
        None
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Vec<u64>> {
        Ok(keys[1..].to_vec())
    }

    fn expected_rate(&self, _: &Vec<u64>, _: usize) -> f64 {
        0.0
    }

    fn find(&self, filter: &Vec<u64>, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains(&key))
    }
}

#[test]
fn a_lost_key_is_a_failure_or_a_note() {
    let keys = Keys::new(100).unwrap();
    let error = Forgetful::<false>.measure(&keys, &mut Stopwatch::new()).unwrap_err();
    assert!(error.to_string().contains("of 100 keys, 1 were not found"), "{error}");
    assert_eq!(Forgetful::<true>.measure(&keys, &mut Stopwatch::new()).unwrap().lost, 1);
}

/// Claims to remove all keys, but keeps them.
struct Clinging;

impl Peer for Clinging {
    type Filter = Vec<u64>;

    const FAMILY: Family = Family::Koel;

    fn title(&self, _: usize) -> String {
        String::from("clinging")
    }

    fn asked_rate(&self) -> Option<f64> {
        None
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Vec<u64>> {
        Ok(keys.to_vec())
    }

    fn expected_rate(&self, _: &Vec<u64>, _: usize) -> f64 {
        0.0
    }

    fn find(&self, filter: &Vec<u64>, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains(&key))
    }

    fn remove(&self, _: &mut Vec<u64>, keys: &[u64]) -> Option<usize> {
        Some(keys.len())
    }
}

#[test]
fn what_is_removed_is_gone() {
    let error = Clinging.measure(&Keys::new(100).unwrap(), &mut Stopwatch::new()).unwrap_err();
    assert!(error.to_string().contains("100 were found after all had been removed"), "{error}");
}

/// Finds all keys in its third lookup, that of the mixed keys.
struct Fickle;

impl Peer for Fickle {
    type Filter = (Vec<u64>, Cell<usize>);

    const FAMILY: Family = Family::Koel;

    fn title(&self, _: usize) -> String {
        String::from("fickle")
    }

    fn asked_rate(&self) -> Option<f64> {
        None
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
        Ok((keys.to_vec(), Cell::new(0)))
    }

    fn expected_rate(&self, _: &Self::Filter, _: usize) -> f64 {
        0.0
    }

    fn find(&self, (all, asked): &Self::Filter, keys: &[u64]) -> usize {
        asked.set(asked.get() + 1);
        if asked.get() == 3 { keys.len() } else { count(keys, |key| all.contains(&key)) }
    }
}

#[test]
fn the_same_key_gets_the_same_answer() {
    let keys = Keys::new(100).unwrap();
    assert!((30..70).contains(&keys.mixed_present), "about half: {}", keys.mixed_present);
    assert_eq!(keys.mixed.iter().filter(|key| keys.present.contains(key)).count(), keys.mixed_present);
    let error = Fickle.measure(&keys, &mut Stopwatch::new()).unwrap_err();
    assert!(error.to_string().contains("of the mixed keys, 100 were found"), "{error}");
}

fn sample(add: f64, rate: f64) -> Sample {
    Sample {
        add,
        find_absent: 2.0,
        find_present: 3.0,
        find_mixed: 2.5,
        remove: None,
        rate,
        expected_rate: 0.001,
        bits_per_item: 13.0,
        lost: 0,
        stuck: 0,
        left: 0,
        lost_by_removal: None,
        disturbed: Some(0),
    }
}

fn row(samples: impl IntoIterator<Item = Sample>) -> Row {
    let filter = String::from("a filter");
    let mut row = Row::new(Facts { filter, family: Family::Koel, asked_rate: Some(RATE) });
    samples.into_iter().for_each(|sample| row.push(Ok(sample)));
    row
}

#[test]
fn columns_are_medians() {
    let adds = |adds: &[f64]| row(adds.iter().map(|&add| sample(add, 0.0))).record().map(|record| table::time(record.add_ns));
    assert_eq!(adds(&[]), None);
    assert_eq!(adds(&[5.0]).as_deref(), Some("5.0"));
    assert_eq!(adds(&[5.0, 100.0, 4.0]).as_deref(), Some("5.0 (4.5–52.5)"));
    assert_eq!(adds(&[5.0, 100.0, 4.0, 6.0]).as_deref(), Some("5.5 (4.8–29.5)"));
}

#[test]
fn the_table_says_what_is_known() {
    let text = table::markdown(Set::Fixed, &[row([sample(1.25, 1.0 / 1024.0)])], 1000);
    let line = text.lines().find(|line| line.starts_with("| a filter")).unwrap();
    let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
    assert_eq!(cells, ["a filter", "1.2", "2.0", "3.0", "2.5", "–", "9.77e-4", "13.00", "3.00"]);
    // All lines have the same columns.
    let rows: Vec<_> = text.lines().take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|line| line.matches('|').count() == 10 && line.chars().count() == rows[0].chars().count()));
    assert!(rows[1].starts_with("|-") || rows[1].starts_with("| -"), "{text}");
}

#[test]
fn a_record_is_the_medians() {
    let record = row([sample(1.0, 0.0), sample(4.0, 0.5), sample(2.0, 0.25)]).record().unwrap();
    assert_eq!(
        format!("{record:?}"),
        "Record { filter: \"a filter\", family: Koel, deletes: false, asked_rate: Some(0.001), add_ns: Quartiles { low: 1.5, median: \
         2.0, high: 3.0 }, find_absent_ns: Quartiles { low: 2.0, median: 2.0, high: 2.0 }, find_present_ns: Quartiles { low: 3.0, \
         median: 3.0, high: 3.0 }, find_mixed_ns: Quartiles { low: 2.5, median: 2.5, high: 2.5 }, remove_ns: None, rate: 0.25, expected_rate: 0.001, bits_per_item: 13.0, \
         lost_by_removal: None }"
    );
    assert_eq!(record.overhead(), Some(11.0));
    let removed = row([Sample { remove: Some(7.0), ..sample(1.0, 0.5) }]).record().unwrap();
    assert!(removed.deletes && removed.remove_ns.is_some_and(|time: Quartiles| (time.median - 7.0).abs() < 1e-12));
    assert!(row([]).record().is_none(), "no round, no figures");
}

fn facts(filter: &str) -> Facts {
    Facts { filter: filter.to_owned(), family: Family::Koel, asked_rate: Some(RATE) }
}

/// The format of a round in files.
#[test]
fn an_entry_is_plain_figures_or_an_error() {
    let entry = Entry::new(facts("a filter"), Ok(sample(1.0, 0.25)));
    let expected = json!({
        "filter": "a filter",
        "family": "koel",
        "asked_rate": 0.001,
        "add_ns": 1.0,
        "find_absent_ns": 2.0,
        "find_present_ns": 3.0,
        "find_mixed_ns": 2.5,
        "remove_ns": null,
        "rate": 0.25,
        "expected_rate": 0.001,
        "bits_per_item": 13.0,
        "lost": 0,
        "stuck": 0,
        "left": 0,
        "disturbed": 0,
    });
    assert_eq!(serde_json::to_value(&entry).unwrap(), expected);
    assert_eq!(serde_json::from_value::<Entry>(expected.clone()).unwrap(), entry);
    // Older files have no number here.
    let removed = Entry::new(facts("a filter"), Ok(Sample { lost_by_removal: Some(0), ..sample(1.0, 0.25) }));
    let mut more = expected.clone();
    more["lost_by_removal"] = json!(0);
    assert_eq!(serde_json::to_value(&removed).unwrap(), more);
    assert_eq!(serde_json::from_value::<Entry>(more).unwrap(), removed);
    let failed = Entry::new(facts("a filter"), Err(anyhow::anyhow!("too large").context("no room")));
    let expected = json!({ "filter": "a filter", "family": "koel", "asked_rate": 0.001, "error": "no room: too large" });
    assert_eq!(serde_json::to_value(&failed).unwrap(), expected);
    assert_eq!(serde_json::from_value::<Entry>(expected).unwrap(), failed);
    assert_eq!(failed.sample().unwrap_err().to_string(), "no room: too large");
}

/// Signals of a thread that waits during each of the first works.
struct Crowded {
    works: u32,
    clocks: u32,
    waited: Duration,
}

impl Signals for Crowded {
    fn clock(&mut self) -> Duration {
        self.clocks += 1;
        if self.clocks.is_multiple_of(2) && self.clocks / 2 <= self.works {
            self.waited += Duration::from_micros(100);
        }
        Duration::from_millis(self.clocks.into())
    }

    fn counters(&mut self) -> Counters {
        Counters { waited: Some(self.waited), ..Counters::default() }
    }

    fn reference(&mut self) -> Duration {
        Duration::from_micros(20)
    }
}

#[test]
fn a_disturbed_round_is_repeated_and_the_least_disturbed_counts() {
    let keys = Keys::new(100).unwrap();
    // A round of this filter is five times: adding, three lookups, and removing nothing.
    for (works, expected, all) in [(0, 0, 5), (3, 0, 10), (7, 0, 15), (13, 3, 15), (100, 5, 15)] {
        let mut watch = Stopwatch::with(Crowded { works, clocks: 0, waited: Duration::ZERO });
        let sample = measure::round(&Forgetful::<true>, &keys, &mut watch).unwrap();
        assert_eq!(sample.disturbed, Some(expected), "{works}");
        let ((), lap) = watch.time(|| ());
        assert_eq!(lap.disturbed, works > all, "{works}");
    }
}

#[test]
fn disturbed_rounds_do_not_count_unless_they_are_too_many() {
    let of = |adds: &[(f64, u32)]| {
        row(adds.iter().map(|&(add, disturbed)| Sample { disturbed: Some(disturbed), ..sample(add, 0.001) }))
    };
    let some = of(&[(1.0, 0), (90.0, 2), (3.0, 0)]);
    assert_eq!((table::time(some.record().unwrap().add_ns), some.disturbed()), (String::from("2.0 (1.5–2.5)"), None));
    let most = of(&[(1.0, 0), (90.0, 2), (3.0, 1), (4.0, 0)]);
    assert_eq!((table::time(most.record().unwrap().add_ns), most.disturbed()), (String::from("3.5 (2.5–25.5)"), Some((2, 4))));
    let text = table::markdown(Set::Fixed, &[most], 1000);
    assert!(text.contains("- a filter: other work on the processor disturbed 2 of 4 rounds"), "{text}");
}

#[test]
fn nothing_seen_is_no_logarithm() {
    let text = table::markdown(Set::Fixed, &[row([sample(1.0, 0.0)])], 1000);
    let line = text.lines().find(|line| line.starts_with("| a filter")).unwrap();
    assert!(line.contains("< 1e-3") && line.trim_end_matches([' ', '|']).ends_with('–'), "{line}");
}

#[test]
fn what_went_wrong_is_noted() {
    let notes = |row: Row| table::markdown(Set::Fixed, &[row], 1000).lines().filter(|line| line.starts_with("- ")).count();
    assert_eq!(notes(row([sample(1.0, 0.001)])), 0);
    assert_eq!(notes(row([Sample { lost: 3, ..sample(1.0, 0.001) }])), 1);
    assert_eq!(notes(row([Sample { lost: 3, stuck: 3, ..sample(1.0, 0.001) }])), 2);
    assert_eq!(notes(row([Sample { left: 3, ..sample(1.0, 0.001) }])), 1);
    assert_eq!(notes(row([Sample { lost_by_removal: Some(3), ..sample(1.0, 0.001) }])), 1);
    assert_eq!(notes(row([Sample { lost_by_removal: Some(0), ..sample(1.0, 0.001) }])), 0);
    assert_eq!(notes(row([sample(1.0, 0.1)])), 1, "a hundred times what was expected");
    assert_eq!(notes(row([Sample { expected_rate: 0.1, ..sample(1.0, 0.001) }])), 1, "a hundredth");
    let mut failed = row([sample(1.0, 0.001)]);
    failed.push(Err(anyhow::anyhow!("too large")));
    failed.push(Ok(sample(1.0, 0.001)));
    assert!(failed.failure().is_some() && failed.samples().is_empty());
    let text = table::markdown(Set::Fixed, &[failed], 1000);
    assert!(text.contains("- a filter: could not be measured: too large"), "{text}");
}
