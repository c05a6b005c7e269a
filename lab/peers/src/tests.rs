//! Tests all filters with few items, and filters that break their promises. No test depends on times.

use std::{
    cell::Cell,
    collections::HashSet,
    sync::{Arc, Barrier},
    thread,
};

use koel_lab::{Experiment as _, Findings, Interrupt, Measured, Scope, Stopwatch};

use crate::{
    experiment::{self, Peers},
    findings,
    measure::{Case, Contestant, Entry, Found, Row, Sample},
    peer::{Facts, Family, GROWN_FROM, Keys},
    sets::{FIXED, GROWING, Set},
};

const ITEMS: usize = 20_000;
const RATE: f64 = 0.001;

/// Measures one round of a set, and checks that no filter fails.
fn measure_all(set: &Set, rate: f64, items: usize) -> Vec<Row> {
    let keys = Keys::new(items).unwrap();
    let rows = experiment::round(&set.contestants(rate, items), &keys, &mut Stopwatch::new(), &Interrupt::new()).unwrap();
    let rows = Row::all(&[Measured { case: Case::new(items, rate, 1), rows }]);
    for row in &rows {
        let name = &row.facts.filter;
        assert_eq!(row.failure, None, "{items}, {name}");
        assert!(items < ITEMS || findings::is_likely(&row.samples[0], items), "{rate}, {name}: {:?}", row.samples);
    }
    rows
}

/// Fingerprints have whole numbers of bits, so rates differ from the requested one by up to half a bit, at the planned load.
#[test]
fn filters_find_their_keys_at_the_requested_rate() {
    for requested in [0.1, 0.02, RATE, 0.0001] {
        let rows = measure_all(&FIXED, requested, ITEMS);
        for row in &rows {
            let (name, sample) = (&row.facts.filter, &row.samples[0]);
            assert!(requested > RATE || (sample.lost, sample.stuck, sample.left) == (0, 0, 0), "{name}: {sample:?}");
            assert_eq!(row.facts.asked_rate.is_none(), name.ends_with(", its own ε"), "{name}");
            if let Some(rate) = row.facts.asked_rate {
                assert!(rate.to_bits() == requested.to_bits(), "{name}: {rate}");
                assert!((sample.expected_rate / rate).log2().abs() < 0.55, "{requested}, {name}: {sample:?}");
            }
        }
        for row in &rows {
            assert_eq!(row.deletes(), supports_deletion(&row.facts), "{}", row.facts.filter);
        }
    }
}

/// Returns true if filters of this kind support deletion.
fn supports_deletion(facts: &Facts) -> bool {
    match facts.family {
        Family::Bloom | Family::Blocked | Family::Fuse => false,
        // The other locked filter is a Bloom filter.
        Family::Locked => facts.filter.starts_with("koel"),
        Family::Counting | Family::Quotient | Family::Aleph | Family::Cuckoo | Family::Koel => true,
    }
}

/// The rivals' versions are those in Cargo.toml, and docs/DEPENDENCIES.md lists all of their crates.
#[test]
fn rivals_are_named_by_crate_and_version() {
    let mut rivals = Vec::new();
    for set in [&FIXED, &GROWING] {
        let names = set.contestants(RATE, ITEMS).into_iter().map(|contestant| contestant.facts.filter);
        rivals.extend(names.filter(|name| !name.starts_with("koel ")));
    }
    let (_, peers) = include_str!("../Cargo.toml").split_once("# The peers").expect("a comment before the peers");
    let peers = peers.lines().skip(1).take_while(|line| !line.is_empty());
    let peers: Vec<_> = peers.map(|line| line.split_once(" = ").expect("a dependency")).collect();
    for rival in &rivals {
        let is_named = peers.iter().any(|(name, about)| {
            let version = about.split('"').nth(1).expect("its version");
            version_in(rival, name).is_some_and(|begin| version.starts_with(begin))
        });
        assert!(is_named, "the name of a filter begins with a crate and a version as in Cargo.toml, but this does not: {rival}");
    }
    for (name, _) in peers {
        let is_measured = rivals.iter().any(|rival| version_in(rival, name).is_some());
        assert!(is_measured, "no filter in lab/peers/src/rivals.rs is of the crate {name}");
        let has_it = |line: &str| line.split('|').nth(1).is_some_and(|cell| cell.split(',').any(|part| part.trim() == name));
        let is_explained = include_str!("../../../docs/DEPENDENCIES.md").lines().any(has_it);
        assert!(is_explained, "docs/DEPENDENCIES.md has no row for the crate {name}");
    }
}

/// With few items, some plans are the same. All others are measured.
#[test]
fn names_tell_rows_apart() {
    for (items, fixed, growing) in [(1, 15, 11), (700, 15, 11), (1000, 15, 11), (ITEMS, 17, 12)] {
        for (set, expected) in [(&FIXED, fixed), (&GROWING, growing)] {
            let names: Vec<_> = set.contestants(RATE, items).into_iter().map(|contestant| contestant.facts.filter).collect();
            assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{items}: {names:?}");
            assert_eq!(names.len(), expected, "{items}: {names:#?}");
        }
    }
}

/// Returns the version in the name of a filter, or `None` if the filter is not from this crate.
fn version_in<'a>(filter: &'a str, name: &str) -> Option<&'a str> {
    filter.strip_prefix(name)?.strip_prefix(' ')?.split([' ', ',']).next()
}

#[test]
fn all_filters_grow_and_all_but_one_keep_their_promises() {
    let rows = measure_all(&GROWING, RATE, ITEMS);
    assert_eq!(rows.iter().filter(|row| row.facts.filter.starts_with("koel ")).count(), 7);
    for row in &rows {
        let (name, family, sample) = (&*row.facts.filter, row.facts.family, &row.samples[0]);
        assert_eq!(row.facts.asked_rate, Some(RATE), "{name}");
        // This filter's fingerprints are five bits shorter than at the beginning.
        assert_eq!(row.keeps_rate(), Some(name != "aleph-filter 0.1, XXH3"), "{name}: {sample:?}");
        let panics = cfg!(debug_assertions) && name.starts_with("scalable_cuckoo_filter");
        assert_eq!(row.deletes(), supports_deletion(&row.facts) && !panics, "{name}");
        assert_eq!(row.lost_by_removal().is_some(), row.deletes(), "{name}");
        assert_eq!(family == Family::Locked, name.contains(" in a Mutex") || name.contains("SharedFilter"), "{name}");
        if name.starts_with("koel") || family == Family::Quotient {
            assert_eq!((sample.lost, sample.stuck, sample.left, sample.lost_by_removal), (0, 0, 0, Some(0)), "{name}");
        }
    }
    // With at most as many items as at the beginning, filters do not grow.
    for (set, items) in [(&FIXED, 1), (&GROWING, 1), (&GROWING, 2), (&GROWING, 3), (&GROWING, GROWN_FROM)] {
        measure_all(set, RATE, items);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// The filter loses its first key.
    LosesKey,
    /// The filter claims to remove all keys, but keeps them.
    KeepsRemoved,
    /// The filter finds all keys in its third lookup, which has the mixed keys.
    Inconsistent,
    /// The first removal removes another item, too.
    RemovesOther,
}

fn faulty(fault: Fault) -> Contestant {
    type Filter = (Vec<u64>, Cell<usize>);
    Contestant::new(
        facts("faulty", Family::Koel),
        move |keys| Ok((keys[usize::from(fault == Fault::LosesKey)..].to_vec(), Cell::new(0))),
        |_| 0.0,
        move |(all, lookups): &Filter, keys| {
            lookups.set(lookups.get() + 1);
            let finds_all = fault == Fault::Inconsistent && lookups.get() == 3;
            keys.iter().filter(|key| finds_all || all.contains(key)).count()
        },
        move |(all, _): &mut Filter, keys| match fault {
            Fault::LosesKey | Fault::Inconsistent => None,
            Fault::KeepsRemoved => Some(keys.len()),
            Fault::RemovesOther => {
                let (is_first, before) = (all.len() == 100, all.len());
                all.retain(|key| !keys.contains(key));
                let removed = before - all.len();
                if is_first {
                    all.pop();
                }
                Some(removed)
            }
        },
    )
}

#[test]
fn lost_keys_are_failures_unless_allowed() {
    let keys = Keys::new(100).unwrap();
    assert!((30..70).contains(&keys.mixed_present), "about half should be present: {}", keys.mixed_present);
    assert_eq!(keys.mixed.iter().filter(|key| keys.present.contains(key)).count(), keys.mixed_present);
    for (fault, error) in [
        (Fault::LosesKey, "of 100 keys, 1 were not found"),
        (Fault::KeepsRemoved, "100 were found after all had been removed"),
        (Fault::Inconsistent, "of the mixed keys, 100 were found"),
        (Fault::RemovesOther, "1 were lost when others were removed"),
    ] {
        let found = faulty(fault).measure(&keys, &mut Stopwatch::new()).unwrap_err().to_string();
        assert!(found.contains(error), "{found}");
    }
    let allowed = |fault| faulty(fault).allow_lost_keys().measure(&keys, &mut Stopwatch::new()).unwrap();
    assert_eq!(allowed(Fault::LosesKey).lost, 1);
    let sample = allowed(Fault::RemovesOther);
    assert_eq!((sample.lost, sample.stuck, sample.left, sample.lost_by_removal), (0, 1, 0, Some(1)));
}

/// The thread that waits for Ctrl-C frees memory when it begins, which may be while the first filter is built.
#[test]
fn memory_of_other_threads_is_not_counted() {
    let (barrier, freed) = (Arc::new(Barrier::new(2)), vec![0_u8; 1000]);
    let here = Arc::clone(&barrier);
    let other = thread::spawn(move || {
        barrier.wait();
        drop(freed);
        barrier.wait();
    });
    let list = Contestant::new(
        facts("a list", Family::Koel),
        move |keys| {
            here.wait();
            here.wait();
            Ok(keys.to_vec())
        },
        |_| 0.0,
        |list, keys| keys.iter().filter(|key| list.contains(key)).count(),
        |_, _| None,
    );
    let sample = list.measure(&Keys::new(100).unwrap(), &mut Stopwatch::new()).unwrap();
    other.join().unwrap();
    assert_eq!(sample.bits_per_item.to_bits(), 64_f64.to_bits(), "{sample:?}");
}

#[test]
fn a_failure_does_not_affect_other_filters() {
    let keys = Keys::new(100).unwrap();
    let contestants =
        [faulty(Fault::LosesKey).allow_lost_keys(), faulty(Fault::KeepsRemoved), faulty(Fault::LosesKey).allow_lost_keys()];
    let entries = experiment::round(&contestants, &keys, &mut Stopwatch::new(), &Interrupt::new()).unwrap();
    let failed: Vec<_> = entries.iter().map(|entry| matches!(entry.found, Found::Nothing { .. })).collect();
    assert_eq!(failed, [false, true, false]);
    for entry in entries {
        let written = serde_json::to_value(&entry).unwrap();
        assert_eq!(serde_json::from_value::<Entry>(written).unwrap(), entry);
    }
    let interrupt = Interrupt::new();
    interrupt.set();
    assert!(experiment::round(&contestants, &keys, &mut Stopwatch::new(), &interrupt).is_err());
}

fn facts(filter: &str, family: Family) -> Facts {
    Facts { filter: filter.to_owned(), family, asked_rate: Some(RATE) }
}

fn sample(add_ns: f64, rate: f64) -> Sample {
    let times = Sample { add_ns, find_absent_ns: 2.0, find_present_ns: 3.0, find_mixed_ns: 2.5, ..Sample::default() };
    Sample { rate, expected_rate: 0.001, bits_per_item: 13.0, ..times }
}

fn row(samples: impl IntoIterator<Item = Sample>) -> Row {
    Row { facts: facts("a filter", Family::Koel), items: 10_000_000, samples: samples.into_iter().collect(), failure: None }
}

/// Returns the findings of one round with these results.
fn findings(set: &Set, rows: &[Entry]) -> Findings {
    findings::findings(set, &[Measured { case: Case::new(1000, RATE, 1), rows: rows.to_vec() }])
}

#[test]
fn rows_have_medians_of_undisturbed_rounds() {
    let add_times = |adds: &[(f64, u32)]| {
        let row = row(adds.iter().map(|&(add, disturbed)| Sample { disturbed, ..sample(add, 0.001) }));
        (row.time(|sample| Some(sample.add_ns)).map(|time| [time.low, time.median, time.high]), row.disturbed())
    };
    assert_eq!(add_times(&[]), (None, None));
    assert_eq!(add_times(&[(5.0, 0)]), (Some([5.0; 3]), None));
    assert_eq!(add_times(&[(5.0, 0), (100.0, 0), (4.0, 0), (6.0, 0)]), (Some([4.75, 5.5, 29.5]), None));
    assert_eq!(add_times(&[(1.0, 0), (90.0, 2), (3.0, 0)]), (Some([1.5, 2.0, 2.5]), None));
    // If too many rounds are disturbed, all of them count.
    assert_eq!(add_times(&[(1.0, 0), (90.0, 2), (3.0, 1), (4.0, 0)]), (Some([2.5, 3.5, 25.5]), Some((2, 4))));
    assert_eq!(row([sample(1.0, 0.0), sample(4.0, 0.5), sample(2.0, 0.25)]).overhead(), Some(11.0));
}

#[test]
fn rates_have_a_margin_for_chance() {
    let keeps = |rate| row([sample(1.0, rate)]).keeps_rate();
    // 10,000 false positives are expected, with a standard deviation of 100.
    assert_eq!([0.000_3, 0.001_029, 0.001_031, 0.75].map(keeps), [Some(true), Some(true), Some(false), Some(false)]);
}

#[test]
fn tables_have_the_results_and_the_errors() {
    let removed = |rate, lost| Sample { remove_ns: Some(4.0), lost_by_removal: Some(lost), ..sample(1.25, rate) };
    let entry = |name, sample| Entry::new(facts(name, Family::Koel), sample);
    let mut entries = vec![
        entry("good", Ok(removed(0.000_29, 0))),
        entry("bad", Ok(removed(0.75, 222_669))),
        entry("plain", Ok(sample(1.25, 0.0))),
        entry("disturbed", Ok(Sample { disturbed: 1, ..sample(1.25, 1.0 / 1024.0) })),
        entry("failed", Err(anyhow::anyhow!("too large").context("no room"))),
    ];
    let grown = findings(&GROWING, &entries);
    let [table, notes] = &grown.tables[..] else { panic!("{:?}", grown.tables) };
    assert!(table.caption.starts_with("Grown to 1000 items, ε = 0.001; one round, in one thread."), "{}", table.caption);
    assert!(table.caption.ends_with("disturbed the times"), "{}", table.caption);
    let expected = [
        ["good", "1.2", "2.0", "3.0", "4.0", "0.0290 %", "yes", "13.00", "0"],
        ["bad", "1.2", "2.0", "3.0", "4.0", "75.00 %", "no", "13.00", "222669"],
        ["plain", "1.2", "2.0", "3.0", "–", "< 0.1 %", "yes", "13.00", "–"],
        ["disturbed *", "1.2", "2.0", "3.0", "–", "0.0977 %", "yes", "13.00", "–"],
        ["failed", "–", "–", "–", "–", "–", "–", "–", "–"],
    ];
    assert_eq!(table.rows, expected);
    let noted: Vec<_> = notes.rows.iter().map(|note| &*note[0]).collect();
    assert_eq!(
        noted,
        ["bad", "bad", "disturbed", "failed"],
        "lost items and an unexpected rate should be noted: {:?}",
        notes.rows
    );
    assert_eq!(notes.rows[3][1], "could not be measured: no room: too large");
    assert_eq!(grown.warnings.len(), 1);
    let fixed = findings(&FIXED, &entries);
    assert_eq!(fixed.tables[0].rows[3], ["disturbed *", "1.2", "2.0", "3.0", "2.5", "–", "0.0977 %", "13.00", "3.00"]);
    entries.clear();
    let empty = findings(&FIXED, &entries);
    assert!(empty.charts.iter().all(|chart| chart.series.is_empty()));
    assert!(findings::findings(&FIXED, &[]).tables.is_empty());
}

/// Findings compare koel with another crate, without locked or disturbed filters. After a failure, there is no finding.
#[test]
fn findings_compare_similar_filters() {
    let entry = |name: &str, family, bits_per_item, disturbed, lost| {
        let (remove_ns, lost_by_removal) = (Some(4.0), Some(lost));
        Entry::new(facts(name, family), Ok(Sample { remove_ns, bits_per_item, lost_by_removal, disturbed, ..sample(1.0, 0.001) }))
    };
    let mut entries = vec![
        entry("koel SharedFilter", Family::Locked, 10.0, 0, 0),
        entry("koel noisy", Family::Koel, 11.0, 1, 0),
        entry("koel ElasticFilter", Family::Koel, 12.0, 0, 0),
        entry("koel ElasticFilter, batches of 1024", Family::Koel, 12.0, 0, 0),
        entry("noisy 1.0", Family::Quotient, 11.0, 1, 0),
        entry("careless 1.0", Family::Aleph, 11.0, 0, 7),
        entry("qfilter 0.3, max_capacity 1000000, foldhash", Family::Quotient, 13.0, 0, 0),
    ];
    let chart = |entries: &[Entry]| findings(&GROWING, entries).charts.swap_remove(0);
    let Findings { charts, .. } = findings(&GROWING, &entries);
    let expected = "Koel: 2.0 ns per lookup, 12.0 bits per item; qfilter: 2.0 ns, 13.0 bits";
    assert_eq!(charts[0].finding.as_deref(), Some(expected));
    // Filters are numbered from the smallest, and every kind has an entry in the legend.
    let names = &charts[0].names;
    assert_eq!(names.first().map(|name| &**name), Some("koel SharedFilter: 2.0 ns, 10.0 bits"));
    assert_eq!(names.last().map(|name| &**name), Some("qfilter 0.3, max_capacity 1 M: 2.0 ns, 13.0 bits"));
    let mut numbers: Vec<_> = charts[0].series.iter().flat_map(|series| series.numbers.iter().zip(&series.points)).collect();
    numbers.sort_by_key(|(number, _)| **number);
    assert_eq!(numbers.iter().map(|(number, _)| **number).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(numbers.iter().map(|(_, point)| point.0).collect::<Vec<_>>(), [10.0, 11.0, 11.0, 11.0, 12.0, 12.0, 13.0]);
    // In the other charts, every filter has its own row, with the smallest filter at the top.
    let names = &charts[1].y.names;
    assert_eq!(names.first().map(|name| &**name), Some("qfilter 0.3, max_capacity 1 M: 1.0 ns, 13.0 bits"));
    assert_eq!(names.last().map(|name| &**name), Some("SharedFilter: 1.0 ns, 10.0 bits"));
    let mut rows: Vec<_> = charts[1].series.iter().flat_map(|series| series.points.iter().map(|point| point.1)).collect();
    rows.sort_by(f64::total_cmp);
    assert_eq!(rows, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let legend: Vec<_> = charts[0].series.iter().map(|series| &*series.name).collect();
    let expected = ["koel", "others that remove items", "", "a lock in each call", "disturbed by other work"];
    assert_eq!(legend, expected, "the second mark of the others is hollow");

    entries.push(Entry::new(facts("failed", Family::Cuckoo), Err(anyhow::anyhow!("too large"))));
    assert_eq!(chart(&entries).finding, None);
    entries.truncate(6);
    assert_eq!(chart(&entries).finding, None);
}

#[test]
fn rounds_are_cases_with_the_requested_rate() {
    let scope = Scope { quick: false, seed: 0, max_slots: None };
    for rate in [0.1, 0.02, RATE, 0.000_001] {
        let peers = Peers { set: &FIXED, rate, items: 5, rounds: 3 };
        let cases = peers.cases(&scope);
        assert!(cases.iter().all(|case| peers.memory(case) == 5 * FIXED.bytes_per_item), "{cases:?}");
        assert_eq!(cases, [1, 2, 3].map(|round| Case::new(5, rate, round)));
        assert!(cases.iter().all(|case| case.rate().to_bits() == rate.to_bits()), "{rate}: {cases:?}");
    }
}
