//! Filters that grow: a rival that breaks its promise is shown as doing so, and a filter of koel that did would fail.

use koel_lab::Stopwatch;

use super::{ITEMS, RATE, facts, laboratory::measured, sample};
use crate::{
    findings,
    keys::Keys,
    measure::{Contestant as _, Sample},
    measure_all,
    peer::{Family, GROWN_FROM, Peer, count},
    row::{Entry, Row},
    set::Set,
    table,
};

#[test]
fn every_filter_grows_and_all_but_one_keep_what_they_promise() {
    let keys = Keys::new(ITEMS).unwrap();
    let rows = measure_all(&Set::Growing.contestants(RATE), &keys, 1);
    for row in &rows {
        assert!(row.failure().is_none(), "{}: {:?}", row.filter(), row.failure());
        let [sample] = row.samples() else { panic!("{}: one round", row.filter()) };
        assert!(table::is_likely(sample, ITEMS), "{}: {sample:?}", row.filter());
        let record = row.record().unwrap();
        assert!((record.asked_rate.unwrap() - RATE).abs() < 1e-12, "{record:?}");
        // Its fingerprints are five bits shorter than at the beginning.
        assert_eq!(record.keeps_rate(ITEMS), Some(record.filter != "aleph-filter 0.1, XXH3"), "{record:?}");
        let deletes = record.family != Family::Bloom && !(cfg!(debug_assertions) && record.family == Family::Cuckoo);
        assert_eq!(record.deletes, deletes, "{record:?}");
        assert_eq!(record.lost_by_removal.is_some(), record.deletes, "{record:?}");
        if matches!(record.family, Family::Koel | Family::Quotient) {
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
    let text = table::markdown(Set::Growing, &rows, ITEMS);
    assert!(expected.iter().all(|name| text.matches(&format!("| {name} ")).count() == 1), "{text}");
}

/// With fewer items than at the beginning, there is nothing to grow.
#[test]
fn a_few_items_are_enough() {
    for items in [1, 2, 3, GROWN_FROM] {
        for row in measure_all(&Set::Growing.contestants(RATE), &Keys::new(items).unwrap(), 1) {
            assert!(row.failure().is_none(), "{items}, {}: {:?}", row.filter(), row.failure());
        }
    }
}

/// The first removal takes another item with it, which is a failure unless it may lose keys.
struct Careless<const MAY_LOSE: bool>;

impl<const MAY_LOSE: bool> Peer for Careless<MAY_LOSE> {
    type Filter = Vec<u64>;

    const FAMILY: Family = Family::Koel;

    const MAY_LOSE: bool = MAY_LOSE;

    fn title(&self, _: usize) -> String {
        String::from("careless")
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(RATE)
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

    fn remove(&self, filter: &mut Vec<u64>, keys: &[u64]) -> Option<usize> {
        let is_first = filter.len() == 100;
        let removed = keys.iter().filter(|key| filter.contains(key)).count();
        filter.retain(|key| !keys.contains(key));
        if is_first {
            filter.pop();
        }
        Some(removed)
    }
}

#[test]
fn an_item_that_is_lost_by_removals_is_a_failure_or_a_number() {
    let keys = Keys::new(100).unwrap();
    let error = Careless::<false>.measure(&keys, &mut Stopwatch::new()).unwrap_err();
    assert!(error.to_string().contains("1 were lost when others were removed"), "{error}");
    let sample = Careless::<true>.measure(&keys, &mut Stopwatch::new()).unwrap();
    assert_eq!((sample.lost, sample.stuck, sample.left, sample.lost_by_removal), (0, 1, 0, Some(1)));
}

#[test]
fn a_promise_has_a_margin_for_chance() {
    let keeps = |rate, items| {
        let mut row = Row::new(facts("a filter"));
        row.push(Ok(sample(1.0, rate)));
        row.record().unwrap().keeps_rate(items)
    };
    // 10,000 are expected, with a standard deviation of 100.
    assert_eq!(keeps(0.000_3, 10_000_000), Some(true));
    assert_eq!(keeps(0.001_029, 10_000_000), Some(true));
    assert_eq!(keeps(0.001_031, 10_000_000), Some(false));
    assert_eq!(keeps(0.75, 10_000_000), Some(false));
}

#[test]
fn the_table_says_what_was_kept_and_what_was_lost() {
    let removed = |rate, lost| Sample { remove: Some(4.0), lost_by_removal: Some(lost), ..sample(1.25, rate) };
    let entries = vec![
        Entry::new(facts("good"), Ok(removed(0.000_29, 0))),
        Entry::new(facts("bad"), Ok(removed(0.75, 222_669))),
        Entry::new(facts("plain"), Ok(sample(1.25, 0.0))),
        Entry::new(facts("failed"), Err(anyhow::anyhow!("too large"))),
    ];
    let rounds = measured(vec![entries]);
    let found = findings::of(Set::Growing, &rounds);
    let [table, notes] = &found.tables[..] else { panic!("{:?}", found.tables) };
    assert!(table.caption.starts_with("Grown to 1000 items, with a promised ε of 0.001; one round"), "{}", table.caption);
    let expected = [
        ["good", "1.2", "2.0", "3.0", "4.0", "0.0290 %", "yes", "13.0", "0"],
        ["bad", "1.2", "2.0", "3.0", "4.0", "75.0 %", "no", "13.0", "222669"],
        ["plain", "1.2", "2.0", "3.0", "–", "< 0.1 %", "yes", "13.0", "–"],
        ["failed", "–", "–", "–", "–", "–", "–", "–", "–"],
    ];
    assert_eq!(table.rows, expected);
    assert!(table.rows.iter().all(|row| row.len() == table.header.len()));
    let noted: Vec<_> = notes.rows.iter().map(|note| &*note[0]).collect();
    assert_eq!(noted, ["bad", "bad", "failed"], "what was lost, and a rate that nobody expects: {:?}", notes.rows);
    // Those that break a promise have marks of their own.
    let series = &found.charts[0].series;
    assert_eq!(series.iter().map(|series| series.points.len()).collect::<Vec<_>>(), [2, 1], "{series:?}");
    for chart in &found.charts {
        assert!(koel_lab::chart::draw(chart).starts_with("<svg"));
    }
    assert!(findings::of(Set::Growing, &[]).tables.is_empty());
}
