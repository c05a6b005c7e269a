//! The comparison as an experiment: its rounds, failures and findings.

use koel_lab::{Experiment as _, Interrupt, Measured, Plan, Scope, Settings, Stopwatch};
use serde::Deserialize as _;

use super::{Clinging, Forgetful, RATE, facts, sample};
use crate::{
    experiment::{self, Case, Peers},
    findings,
    keys::Keys,
    measure::{Contestant, Facts},
    peer::Family,
    row::Entry,
    set::Set,
};

/// The rounds of an experiment, given the entries of each.
pub(super) fn measured(rounds: Vec<Vec<Entry>>) -> Vec<Measured<Case, Entry>> {
    (1..).zip(rounds).map(|(round, rows)| Measured { case: Case::new(1000, RATE, round), rows }).collect()
}

#[test]
fn a_failure_in_a_round_is_shown_and_keeps_nobody_else_from_it() {
    let keys = Keys::new(100).unwrap();
    let some: [Box<dyn Contestant>; 3] = [Box::new(Forgetful::<true>), Box::new(Clinging), Box::new(Forgetful::<true>)];
    let entries = experiment::round(&some, &keys, &mut Stopwatch::new(), &Interrupt::new()).unwrap();
    let failed: Vec<_> = entries.iter().map(|entry| entry.sample().is_err()).collect();
    assert_eq!(failed, [false, true, false]);
    let interrupt = Interrupt::new();
    interrupt.set();
    assert!(experiment::round(&some, &keys, &mut Stopwatch::new(), &interrupt).is_err());

    let good = |filter, add| Entry::new(facts(filter), Ok(sample(add, 0.001)));
    let bad = || Entry::new(facts("bad"), Err(anyhow::anyhow!("too large")));
    let rounds = measured(vec![
        vec![good("one", 1.0), good("bad", 1.0), good("two", 5.0)],
        vec![good("one", 3.0), bad(), good("two", 5.0)],
    ]);
    let found = findings::of(Set::Fixed, &rounds);
    let [here, paper, notes] = &found.tables[..] else { panic!("{:?}", found.tables) };
    assert!(here.caption.contains("ε = 0.001, with 1000 items; medians of 2 rounds (quartiles)"), "{}", here.caption);
    for (row, expected) in here.rows.iter().zip([
        ["one", "no", "13.00", "3.03", "0.100 %", "500.00 (400.00–666.67)", "2.0", "3.0", "–"],
        ["bad", "–", "–", "–", "–", "–", "–", "–", "–"],
        ["two", "no", "13.00", "3.03", "0.100 %", "200.00", "2.0", "3.0", "–"],
    ]) {
        assert_eq!(row, &expected);
    }
    assert_eq!((here.rows.len(), paper.rows.len()), (3, 6));
    assert_eq!(notes.rows, [["bad", "could not be measured: too large"]]);
    for table in &found.tables {
        assert!(table.rows.iter().all(|row| row.len() == table.header.len()), "{table:?}");
    }
    // Two marks: the third has no place in a chart.
    assert_eq!(found.charts[0].series.iter().map(|series| series.points.len()).sum::<usize>(), 2);
}

#[test]
fn findings_do_with_what_there_is() {
    let empty = findings::of(Set::Fixed, &[]);
    assert!(empty.charts.iter().all(|chart| chart.series.is_empty()) && empty.tables.len() == 1);
    let failed = vec![Entry::new(facts("bad"), Err(anyhow::anyhow!("too large")))];
    let found = findings::of(Set::Fixed, &measured(vec![failed]));
    assert!(found.charts.iter().all(|chart| chart.series.is_empty()) && found.tables.len() == 3);
    // Each family is in the legend once, even if the rates of all its filters cannot be chosen, and there are no more colours
    // than can be told apart.
    let families =
        [Family::Koel, Family::Cuckoo, Family::Bloom, Family::Blocked, Family::Counting, Family::Quotient, Family::Fuse];
    let entry = |family, asked_rate| {
        Entry::new(Facts { filter: format!("{family:?} {asked_rate:?}"), family, asked_rate }, Ok(sample(1.0, 0.001)))
    };
    let entries =
        families.into_iter().flat_map(|family| [entry(family, None), entry(family, (family != Family::Fuse).then_some(RATE))]);
    for chart in &findings::of(Set::Fixed, &measured(vec![entries.collect()])).charts[..2] {
        let mut names: Vec<_> = chart.series.iter().map(|series| &*series.name).filter(|name| !name.is_empty()).collect();
        assert_eq!(names.len(), 6);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 6);
        assert!(chart.series.iter().all(|series| series.colour < koel_lab::Chart::MOST_COLOURS));
        assert_eq!(chart.series.iter().map(|series| series.points.len()).sum::<usize>(), 11, "all but the counting ones");
        assert!(koel_lab::chart::draw(chart).starts_with("<svg"));
    }
}

#[test]
fn rounds_are_cases_with_the_rate_that_is_asked_for() {
    let scope = Scope { quick: false, seed: 0, max_slots: None };
    for rate in [0.1, 0.02, RATE, 0.000_001] {
        let cases = Peers { set: Set::Fixed, rate, items: 5, rounds: 3 }.cases(&scope);
        let cases = cases.unwrap().into_iter().map(|planned| Case::deserialize(planned.case).unwrap()).collect::<Vec<_>>();
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
