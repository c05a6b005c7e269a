//! Everybody, at a size that takes no time. No test looks at a clock.

use crate::{
    contestants,
    keys::Keys,
    measure::{Contestant as _, Row, Sample},
    measure_all,
    peer::{Peer, count},
    table,
};

const ITEMS: usize = 20_000;

#[test]
fn every_filter_finds_its_keys_at_its_rate() {
    let keys = Keys::new(ITEMS).unwrap();
    let contestants = contestants();
    let rows = measure_all(&contestants, &keys, 1);
    assert_eq!(rows.len(), contestants.len());
    for row in &rows {
        assert!(row.failure().is_none(), "{}: {:?}", row.title(), row.failure());
        let [sample] = row.samples() else { panic!("{}: one round", row.title()) };
        assert_eq!((sample.lost, sample.stuck), (0, 0), "{}", row.title());
        assert!(table::is_likely(sample, ITEMS), "{}: {sample:?}", row.title());
    }
    let text = table::markdown(&rows, ITEMS);
    for row in &rows {
        assert_eq!(text.matches(&format!("| {} ", row.title())).count(), 1, "{}: {text}", row.title());
    }
    let deletes = |name: &str| rows.iter().any(|row| row.title().starts_with(name) && row.samples()[0].remove.is_some());
    assert!(deletes("koel packed") && deletes("koel single") && deletes("cuckoofilter") && !deletes("fastbloom"));
    // Seven koels, and one row at least for each crate.
    for (name, least) in
        [("koel", 7), ("cuckoofilter", 2), ("scalable", 1), ("qfilter", 1), ("fastbloom", 2), ("bloomfilter", 1), ("xorf", 2)]
    {
        assert!(rows.iter().filter(|row| row.title().starts_with(name)).count() >= least, "{name}");
    }
}

/// Loses its first key, and whether that is to be expected of it.
struct Forgetful<const MAY_LOSE: bool>;

impl<const MAY_LOSE: bool> Peer for Forgetful<MAY_LOSE> {
    type Filter = Vec<u64>;

    const MAY_LOSE: bool = MAY_LOSE;

    fn title(&self, _: usize) -> String {
        String::from("forgetful")
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
    let error = Forgetful::<false>.measure(&keys).unwrap_err();
    assert!(error.to_string().contains("of 100 keys, 1 were not found"), "{error}");
    assert_eq!(Forgetful::<true>.measure(&keys).unwrap().lost, 1);
}

fn sample(add: f64, rate: f64) -> Sample {
    Sample {
        add,
        find_absent: 2.0,
        find_present: 3.0,
        remove: None,
        rate,
        expected_rate: 0.001,
        bits_per_item: 13.0,
        lost: 0,
        stuck: 0,
    }
}

fn row(samples: impl IntoIterator<Item = Sample>) -> Row {
    let mut row = Row::new(String::from("a filter"));
    samples.into_iter().for_each(|sample| row.push(Ok(sample)));
    row
}

#[test]
fn columns_are_medians() {
    let adds = |adds: &[f64]| row(adds.iter().map(|&add| sample(add, 0.0))).median(|sample| Some(sample.add));
    assert_eq!(adds(&[]), None);
    assert_eq!(adds(&[5.0]), Some(5.0));
    assert_eq!(adds(&[5.0, 100.0, 4.0]), Some(5.0));
    assert_eq!(adds(&[5.0, 100.0, 4.0, 6.0]), Some(5.5));
}

#[test]
fn the_table_says_what_is_known() {
    let text = table::markdown(&[row([sample(1.25, 1.0 / 1024.0)])], 1000);
    let line = text.lines().find(|line| line.starts_with("| a filter")).unwrap();
    let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
    assert_eq!(cells, ["a filter", "1.2", "2.0", "3.0", "–", "9.77e-4", "13.00", "3.00"]);
    // All lines of it have the same columns.
    let rows: Vec<_> = text.lines().take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|line| line.matches('|').count() == 9 && line.chars().count() == rows[0].chars().count()));
    assert!(rows[1].starts_with("|-") || rows[1].starts_with("| -"), "{text}");
}

#[test]
fn nothing_seen_is_no_logarithm() {
    let text = table::markdown(&[row([sample(1.0, 0.0)])], 1000);
    let line = text.lines().find(|line| line.starts_with("| a filter")).unwrap();
    assert!(line.contains("< 1e-3") && line.trim_end_matches([' ', '|']).ends_with('–'), "{line}");
}

#[test]
fn what_went_wrong_is_noted() {
    let notes = |row: Row| table::markdown(&[row], 1000).lines().filter(|line| line.starts_with("- ")).count();
    assert_eq!(notes(row([sample(1.0, 0.001)])), 0);
    assert_eq!(notes(row([Sample { lost: 3, ..sample(1.0, 0.001) }])), 1);
    assert_eq!(notes(row([Sample { lost: 3, stuck: 3, ..sample(1.0, 0.001) }])), 2);
    assert_eq!(notes(row([sample(1.0, 0.1)])), 1, "a hundred times what was expected");
    assert_eq!(notes(row([Sample { expected_rate: 0.1, ..sample(1.0, 0.001) }])), 1, "a hundredth");
    let mut failed = row([sample(1.0, 0.001)]);
    failed.push(Err(anyhow::anyhow!("too large")));
    failed.push(Ok(sample(1.0, 0.001)));
    assert!(failed.failure().is_some() && failed.samples().is_empty());
    let text = table::markdown(&[failed], 1000);
    assert!(text.contains("- a filter: could not be measured: too large"), "{text}");
}
