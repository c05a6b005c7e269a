//! All filters, with few items, and filters that break their promises. No test depends on a time.

use std::{cell::Cell, time::Duration};

use koel_lab::{Counters, Experiment as _, Interrupt, Measured, Plan, Scope, Settings, Signals, Stopwatch};
use serde_json::json;

use crate::{
    experiment::{self, Case, Peers, Set},
    findings,
    measure::{self, Contestant, Entry, Facts, Row, Sample},
    measure_all,
    peer::{Family, GROWN_FROM, Keys, Peer},
};

const ITEMS: usize = 20_000;
const RATE: f64 = 0.001;

fn all(set: Set, rate: f64, items: usize) -> Vec<Row> {
    let rows = measure_all(&set.contestants(rate), &Keys::new(items).unwrap(), 1);
    for row in &rows {
        assert!(row.failure().is_none(), "{items}, {}: {:?}", row.filter(), row.failure());
    }
    rows
}

#[test]
fn every_filter_finds_its_keys_at_its_rate() {
    let rows = all(Set::Fixed, RATE, ITEMS);
    for row in &rows {
        let [sample] = row.samples() else { panic!("{}: one round", row.filter()) };
        assert_eq!((sample.lost, sample.stuck, sample.left), (0, 0, 0), "{}", row.filter());
        assert!(findings::is_likely(sample, ITEMS), "{}: {sample:?}", row.filter());
    }
    // The least number of rows of each crate, and which support deletion.
    for (name, least, deletes) in [
        ("koel packed", 4, true),
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
    for asked in [0.1, 0.02, RATE, 0.0001] {
        let mut families = Vec::new();
        for row in &all(Set::Fixed, asked, ITEMS) {
            let record = row.record().unwrap();
            assert!(findings::is_likely(&row.samples()[0], ITEMS), "{asked}: {record:?}");
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

#[test]
fn every_filter_grows_and_all_but_one_keep_what_they_promise() {
    let rows = all(Set::Growing, RATE, ITEMS);
    for row in &rows {
        let [sample] = row.samples() else { panic!("{}: one round", row.filter()) };
        assert!(findings::is_likely(sample, ITEMS), "{}: {sample:?}", row.filter());
        let record = row.record().unwrap();
        assert!((record.asked_rate.unwrap() - RATE).abs() < 1e-12, "{record:?}");
        // Its fingerprints are five bits shorter than at the beginning.
        assert_eq!(record.keeps_rate(ITEMS), Some(record.filter != "aleph-filter 0.1, XXH3"), "{record:?}");
        let is_bloom = record.filter.starts_with("fastbloom");
        assert_eq!(record.deletes, !(is_bloom || cfg!(debug_assertions) && record.family == Family::Cuckoo), "{record:?}");
        assert_eq!(record.lost_by_removal.is_some(), record.deletes, "{record:?}");
        assert_eq!(record.family == Family::Locked, is_bloom || record.filter.contains("SharedFilter"), "{record:?}");
        if record.filter.starts_with("koel") || record.family == Family::Quotient {
            assert_eq!((sample.lost, sample.stuck, sample.left, sample.lost_by_removal), (0, 0, 0, Some(0)), "{sample:?}");
        }
    }
    let names: Vec<_> = rows.iter().map(Row::filter).collect();
    let expected = [
        "koel ElasticFilter",
        "koel ElasticFilter, batches of 1024",
        "koel ElasticFilter, capacity 1000",
        "koel ElasticFilter, capacity 1000, batches of 1024",
        "koel ElasticFilter, capacity 1000, max_capacity 20000",
        "koel ElasticFilter, capacity 1000, max_capacity 2000",
        "koel SharedFilter, capacity 1000",
        "qfilter 0.3, max_capacity 20000, foldhash",
        "scalable_cuckoo_filter 0.5, XXH3",
        "aleph-filter 0.1, XXH3",
        "aleph-filter 0.1, ε lowered for 20000, XXH3",
        "fastbloom 0.17 in a Mutex, sized for 20000, XXH3",
    ];
    assert_eq!(names, expected);
    // With fewer items than at the beginning, there is nothing to grow.
    for items in [1, 2, 3, GROWN_FROM] {
        all(Set::Growing, RATE, items);
    }
}

/// What is wrong with a filter.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// Loses its first key.
    Forgets,
    /// Claims to remove all keys, but keeps them.
    Clings,
    /// Finds all keys in its third lookup, that of the mixed keys.
    Wavers,
    /// The first removal takes another item with it.
    Careless,
}

struct Faulty<const MAY_LOSE: bool>(Fault);

impl<const MAY_LOSE: bool> Peer for Faulty<MAY_LOSE> {
    type Filter = (Vec<u64>, Cell<usize>);

    const FAMILY: Family = Family::Koel;

    const MAY_LOSE: bool = MAY_LOSE;

    fn title(&self, _: usize) -> String {
        String::from("faulty")
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(RATE)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
        Ok((keys[usize::from(self.0 == Fault::Forgets)..].to_vec(), Cell::new(0)))
    }

    fn expected_rate(&self, _: &Self::Filter, _: usize) -> f64 {
        0.0
    }

    fn find(&self, (all, asked): &Self::Filter, keys: &[u64]) -> usize {
        asked.set(asked.get() + 1);
        let all_of_them = self.0 == Fault::Wavers && asked.get() == 3;
        keys.iter().filter(|key| all_of_them || all.contains(key)).count()
    }

    fn remove(&self, (all, _): &mut Self::Filter, keys: &[u64]) -> Option<usize> {
        match self.0 {
            Fault::Forgets | Fault::Wavers => None,
            Fault::Clings => Some(keys.len()),
            Fault::Careless => {
                let (is_first, before) = (all.len() == 100, all.len());
                all.retain(|key| !keys.contains(key));
                let removed = before - all.len();
                if is_first {
                    all.pop();
                }
                Some(removed)
            }
        }
    }
}

#[test]
fn a_broken_promise_is_a_failure_unless_it_is_admitted() {
    let keys = Keys::new(100).unwrap();
    assert!((30..70).contains(&keys.mixed_present), "about half: {}", keys.mixed_present);
    assert_eq!(keys.mixed.iter().filter(|key| keys.present.contains(key)).count(), keys.mixed_present);
    for (fault, error) in [
        (Fault::Forgets, "of 100 keys, 1 were not found"),
        (Fault::Clings, "100 were found after all had been removed"),
        (Fault::Wavers, "of the mixed keys, 100 were found"),
        (Fault::Careless, "1 were lost when others were removed"),
    ] {
        let found = Faulty::<false>(fault).measure(&keys, &mut Stopwatch::new()).unwrap_err().to_string();
        assert!(found.contains(error), "{found}");
    }
    let admitted = |fault| Faulty::<true>(fault).measure(&keys, &mut Stopwatch::new()).unwrap();
    assert_eq!(admitted(Fault::Forgets).lost, 1);
    let sample = admitted(Fault::Careless);
    assert_eq!((sample.lost, sample.stuck, sample.left, sample.lost_by_removal), (0, 1, 0, Some(1)));
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
        let sample = measure::round(&Faulty::<true>(Fault::Forgets), &keys, &mut watch).unwrap();
        assert_eq!(sample.disturbed, Some(expected), "{works}");
        let ((), lap) = watch.time(|| ());
        assert_eq!(lap.disturbed, works > all, "{works}");
    }
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

fn facts(filter: &str, family: Family) -> Facts {
    Facts { filter: filter.to_owned(), family, asked_rate: Some(RATE) }
}

fn row(samples: impl IntoIterator<Item = Sample>) -> Row {
    let mut row = Row::new(facts("a filter", Family::Koel));
    samples.into_iter().for_each(|sample| row.push(Ok(sample)));
    row
}

#[test]
fn a_row_is_the_medians_of_undisturbed_rounds() {
    let of = |adds: &[(f64, u32)]| {
        let row = row(adds.iter().map(|&(add, disturbed)| Sample { disturbed: Some(disturbed), ..sample(add, 0.001) }));
        (row.record().map(|record| (findings::time(record.add_ns), record.disturbed)), row.disturbed())
    };
    let is = |time: &str, disturbed| Some((time.to_owned(), disturbed));
    assert_eq!(of(&[]), (None, None));
    assert_eq!(of(&[(5.0, 0)]), (is("5.0", false), None));
    assert_eq!(of(&[(5.0, 0), (100.0, 0), (4.0, 0), (6.0, 0)]), (is("5.5 (4.8–29.5)", false), None));
    assert_eq!(of(&[(1.0, 0), (90.0, 2), (3.0, 0)]), (is("2.0 (1.5–2.5)", false), None));
    // Too many are disturbed: all count.
    assert_eq!(of(&[(1.0, 0), (90.0, 2), (3.0, 1), (4.0, 0)]), (is("3.5 (2.5–25.5)", true), Some((2, 4))));
    assert_eq!(row([sample(1.0, 0.0), sample(4.0, 0.5), sample(2.0, 0.25)]).record().unwrap().overhead(), Some(11.0));
}

#[test]
fn a_promise_has_a_margin_for_chance() {
    let keeps = |rate| row([sample(1.0, rate)]).record().unwrap().keeps_rate(10_000_000);
    // 10,000 are expected, with a standard deviation of 100.
    assert_eq!([0.000_3, 0.001_029, 0.001_031, 0.75].map(keeps), [Some(true), Some(true), Some(false), Some(false)]);
}

/// The format of a round in files.
#[test]
fn an_entry_is_plain_figures_or_an_error() {
    let entry = Entry::new(facts("a filter", Family::Koel), Ok(Sample { lost_by_removal: Some(0), ..sample(1.0, 0.25) }));
    let expected = json!({
        "filter": "a filter", "family": "koel", "asked_rate": 0.001, "add_ns": 1.0, "find_absent_ns": 2.0, "find_present_ns": 3.0,
        "find_mixed_ns": 2.5, "remove_ns": null, "rate": 0.25, "expected_rate": 0.001, "bits_per_item": 13.0, "lost": 0, "stuck": 0,
        "left": 0, "lost_by_removal": 0, "disturbed": 0,
    });
    assert_eq!(serde_json::to_value(&entry).unwrap(), expected);
    assert_eq!(serde_json::from_value::<Entry>(expected).unwrap(), entry);
    let failed = Entry::new(facts("a filter", Family::Koel), Err(anyhow::anyhow!("too large").context("no room")));
    let expected = json!({ "filter": "a filter", "family": "koel", "asked_rate": 0.001, "error": "no room: too large" });
    assert_eq!(serde_json::to_value(&failed).unwrap(), expected);
    assert_eq!(serde_json::from_value::<Entry>(expected).unwrap(), failed);
}

/// The rounds of an experiment, given the entries of each.
fn measured(rounds: Vec<Vec<Entry>>) -> Vec<Measured<Case, Entry>> {
    (1..).zip(rounds).map(|(round, rows)| Measured { case: Case::new(1000, RATE, round), rows }).collect()
}

#[test]
fn a_failure_in_a_round_keeps_nobody_else_from_it() {
    let keys = Keys::new(100).unwrap();
    let some = [Fault::Forgets, Fault::Clings, Fault::Forgets].map(|fault| -> Box<dyn Contestant> {
        if fault == Fault::Clings { Box::new(Faulty::<false>(fault)) } else { Box::new(Faulty::<true>(fault)) }
    });
    let entries = experiment::round(&some, &keys, &mut Stopwatch::new(), &Interrupt::new()).unwrap();
    assert_eq!(entries.iter().map(|entry| entry.sample().is_err()).collect::<Vec<_>>(), [false, true, false]);
    let interrupt = Interrupt::new();
    interrupt.set();
    assert!(experiment::round(&some, &keys, &mut Stopwatch::new(), &interrupt).is_err());
}

#[test]
fn tables_say_what_is_known_and_what_went_wrong() {
    let removed = |rate, lost| Sample { remove: Some(4.0), lost_by_removal: Some(lost), ..sample(1.25, rate) };
    let entry = |name, sample| Entry::new(facts(name, Family::Koel), sample);
    let rounds = measured(vec![vec![
        entry("good", Ok(removed(0.000_29, 0))),
        entry("bad", Ok(removed(0.75, 222_669))),
        entry("plain", Ok(sample(1.25, 0.0))),
        entry("disturbed", Ok(Sample { disturbed: Some(1), ..sample(1.25, 1.0 / 1024.0) })),
        entry("failed", Err(anyhow::anyhow!("too large"))),
    ]]);
    let grown = findings::of(Set::Growing, &rounds);
    let [table, notes] = &grown.tables[..] else { panic!("{:?}", grown.tables) };
    assert!(table.caption.starts_with("Grown to 1000 items, with a promised ε of 0.001; one round"), "{}", table.caption);
    assert!(table.caption.ends_with("disturbed the times"), "{}", table.caption);
    let expected = [
        ["good", "1.2", "2.0", "3.0", "4.0", "0.0290 %", "yes", "13.0", "0"],
        ["bad", "1.2", "2.0", "3.0", "4.0", "75.0 %", "no", "13.0", "222669"],
        ["plain", "1.2", "2.0", "3.0", "–", "< 0.1 %", "yes", "13.0", "–"],
        ["disturbed *", "1.2", "2.0", "3.0", "–", "0.0977 %", "yes", "13.0", "–"],
        ["failed", "–", "–", "–", "–", "–", "–", "–", "–"],
    ];
    assert_eq!(table.rows, expected);
    let noted: Vec<_> = notes.rows.iter().map(|note| &*note[0]).collect();
    assert_eq!(noted, ["bad", "bad", "disturbed", "failed"], "what was lost, and a rate that nobody expects: {:?}", notes.rows);
    assert_eq!(grown.warnings.len(), 1);
    // Those that break a promise have marks of their own.
    let series = &grown.charts[0].series;
    assert_eq!(series.iter().map(|series| series.points.len()).collect::<Vec<_>>(), [3, 1], "{series:?}");
    let fixed = findings::of(Set::Fixed, &rounds);
    let expected = ["disturbed *", "1.2", "2.0", "3.0", "2.5", "–", "9.77e-4", "13.00", "3.00"];
    assert_eq!(fixed.tables[0].rows[3], expected);
    for chart in grown.charts.iter().chain(&fixed.charts) {
        assert!(koel_lab::chart::draw(chart).starts_with("<svg"));
    }
    let empty = findings::of(Set::Fixed, &[]);
    assert!(empty.tables.is_empty() && empty.charts.iter().all(|chart| chart.series.is_empty()));
}

/// Headlines compare koel with another crate: neither with a lock, nor disturbed, nor after a failure.
#[test]
fn headlines_compare_like_with_like() {
    let entry = |name: &str, family, bits_per_item, disturbed| {
        let sample = Sample {
            bits_per_item,
            remove: Some(4.0),
            disturbed: Some(disturbed),
            lost_by_removal: Some(0),
            ..sample(1.0, 0.001)
        };
        Entry::new(facts(name, family), Ok(sample))
    };
    let mut entries = vec![
        entry("koel SharedFilter", Family::Locked, 10.0, 0),
        entry("koel noisy", Family::Koel, 11.0, 1),
        entry("koel ElasticFilter", Family::Koel, 12.0, 0),
        entry("noisy 1.0", Family::Quotient, 11.0, 1),
        entry("qfilter 0.3, foldhash", Family::Quotient, 13.0, 0),
    ];
    let headline = |entries: &Vec<Entry>| findings::of(Set::Growing, &measured(vec![entries.clone()])).charts[0].finding.clone();
    let expected = "Koel: 2.0 ns per lookup, 12.0 bits per item; qfilter: 2.0 ns, 13.0 bits";
    assert_eq!(headline(&entries).as_deref(), Some(expected));
    entries.push(Entry::new(facts("failed", Family::Cuckoo), Err(anyhow::anyhow!("too large"))));
    assert_eq!(headline(&entries), None);
    entries.truncate(4);
    assert_eq!(headline(&entries), None);
}

#[test]
fn each_family_is_in_the_legend_once() {
    let families =
        [Family::Koel, Family::Cuckoo, Family::Bloom, Family::Blocked, Family::Counting, Family::Quotient, Family::Fuse];
    let entry = |family, asked_rate| {
        Entry::new(Facts { filter: format!("{family:?} {asked_rate:?}"), family, asked_rate }, Ok(sample(1.0, 0.001)))
    };
    let entries =
        families.into_iter().flat_map(|family| [entry(family, None), entry(family, (family != Family::Fuse).then_some(RATE))]);
    for chart in &findings::of(Set::Fixed, &measured(vec![entries.collect()])).charts[..2] {
        let mut names: Vec<_> = chart.series.iter().map(|series| &*series.name).filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        assert_eq!(
            (names.len(), {
                names.dedup();
                names.len()
            }),
            (6, 6)
        );
        assert_eq!(chart.series.iter().map(|series| series.points.len()).sum::<usize>(), 11, "all but the counting ones");
    }
}

#[test]
fn rounds_are_cases_with_the_rate_that_is_asked_for() {
    let scope = Scope { quick: false, seed: 0, max_slots: None };
    for rate in [0.1, 0.02, RATE, 0.000_001] {
        let cases = Peers { set: Set::Fixed, rate, items: 5, rounds: 3 }.cases(&scope);
        assert_eq!(cases, [1, 2, 3].map(|round| Case::new(5, rate, round)));
        assert!(cases.iter().all(|case| case.rate().to_bits() == rate.to_bits()), "{rate}: {cases:?}");
    }
}

/// No machine has memory for 2⁵⁰ items, which the command would refuse.
#[test]
fn memory_is_looked_at_first() {
    let folder = tempfile::tempdir().unwrap();
    let scope = Scope { quick: false, seed: 0, max_slots: None };
    let settings = Settings { folder: folder.path().join("new"), scope, threads: 1, again: false };
    let items = usize::try_from(1_u64 << 50).unwrap();
    let Err(error) = Plan::new(Peers { set: Set::Fixed, rate: RATE, items, rounds: 1 }, &settings) else {
        panic!("there is no such memory")
    };
    let error = error.to_string();
    let needed = (60_u64 << 30).to_string();
    assert!(["peers: ", &needed, " MiB are available", "give fewer --items"].iter().all(|part| error.contains(part)), "{error}");
    assert!(!settings.folder.exists());
}
