use std::sync::LazyLock;

use super::*;
use crate::chart;
use crate::interrupt::Interrupted;

const SMALL: Scope = Scope { quick: true, seed: 1, max_slots: Some(10_000) };

/// Few probes, so that it is fast without optimization, too.
static MEASURED: LazyLock<Vec<Measured<Case, Row>>> = LazyLock::new(|| {
    let measure = |case: Case| {
        let case = Case { hits: 1000, most_probes: 100_000, ..case };
        let rows = Fpr.measure(&case, SMALL.seed, &Interrupt::new()).expect("nobody interrupts it");
        Measured { case, rows }
    };
    // Longer ones would not be hit often enough.
    Fpr.cases(&SMALL).into_iter().filter(|case| case.f <= 11).map(measure).collect()
});

#[test]
fn cases_are_different_ones_and_no_larger_than_allowed() {
    for (quick, max_slots, least) in
        [(true, None, 50), (false, None, 60), (true, Some(10_000), 50), (true, Some(8), 10), (true, Some(3), 0)]
    {
        let cases = Fpr.cases(&Scope { quick, seed: 1, max_slots });
        assert!(cases.len() >= least, "{} with at most {max_slots:?} slots", cases.len());
        for (place, case) in cases.iter().enumerate() {
            assert!(!cases[..place].contains(case), "{case:?}");
            assert!(max_slots.is_none_or(|most| case.buckets() * u64::from(case.b) <= most), "{case:?}");
            assert!(case.buckets() > 0 && case.buckets() % 2 == 0, "{case:?}");
            assert!(Fpr.effort(case) > 0 && Fpr.memory(case) > 0);
            let text = serde_json::to_string(case).expect("it can be written");
            assert_eq!(serde_json::from_str::<Case>(&text).expect("and read"), *case);
        }
    }
}

#[test]
fn what_is_measured_is_what_is_expected() {
    let mut seen = [0; LOADS.len()];
    for Measured { case, rows } in MEASURED.iter() {
        for row in rows {
            let slots = case.buckets() * u64::from(case.b);
            let load = row.items as f64 / slots as f64;
            assert!((100.0 * load - f64::from(row.load)).abs() < 0.1, "{case:?}: {row:?}");
            assert!(row.low < row.rate && row.rate < row.high && row.found >= LEAST_HITS / 2, "{case:?}: {row:?}");
            let predicted = tuning::false_positive_rate(case.f, case.b, load);
            assert!((row.predicted - predicted).abs() < 1e-12);
            // Of this many 99 % intervals some miss the prediction; at twice the width, none does.
            let twice = 2.0 * row.low - row.rate..=2.0 * row.high - row.rate;
            assert!(twice.contains(&predicted), "{case:?}: {row:?}");
            seen[LOADS.iter().position(|&one| one == row.load).expect("it is one of them")] += 1;
        }
    }
    assert!(seen.iter().all(|&rows| rows >= 10), "{seen:?}");
}

#[test]
fn most_intervals_hold_what_is_expected() {
    let rows = MEASURED.iter().flat_map(|m| m.rows.iter().map(|row| (&m.case, row)));
    let missed = rows.clone().filter(|(_, row)| !(row.low..=row.high).contains(&row.predicted));
    // One in a hundred may; more than five do with a probability of about 10⁻³.
    assert!(rows.count() >= 80 && missed.count() <= 5);
}

/// Assuming independent slots overestimates the rate, within a known bound, and never underestimates it.
#[test]
fn independent_slots_are_the_safe_side_of_the_formula() {
    for (table, b) in KINDS {
        for f in 2..=32 {
            for load in LOADS.map(|load| f64::from(load) / 100.0) {
                let (predicted, other) = (tuning::false_positive_rate(f, b, load), independent(f, b, load));
                let one = load / (f64::from(f).exp2() - 1.0);
                assert!(predicted <= other * (1.0 + 1e-9), "{table:?} {f} {b} {load}");
                assert!(other <= predicted * (1.0 + one), "{table:?} {f} {b} {load}");
            }
        }
    }
}

#[test]
fn whatever_is_missing_the_rest_is_shown() {
    let all = MEASURED.clone();
    let some: Vec<_> = all.iter().step_by(7).cloned().collect();
    let none = Vec::new();
    let unmeasured = vec![Measured { case: all[0].case.clone(), rows: Vec::new() }];
    for measured in [all, some, none, unmeasured] {
        let rows: usize = measured.iter().map(|m| m.rows.len()).sum();
        let Findings { charts, tables, .. } = Fpr.findings(&measured);
        assert_eq!((charts.len(), tables.len()), (2, 1));
        for chart in &charts {
            assert!(chart.series.iter().all(|series| series.colour < Chart::MOST_COLOURS));
            assert!(chart::draw(chart).starts_with("<svg"));
        }
        // Each row is counted once.
        let counted: usize = tables[0].rows.iter().map(|row| row[2].parse::<usize>().expect("a number")).sum();
        assert_eq!(counted, rows);
        assert!(tables[0].rows.iter().all(|row| row.len() == tables[0].header.len()));
    }
}

#[test]
fn it_stops_when_it_is_told_to() {
    let interrupt = Interrupt::new();
    interrupt.set();
    let error = Fpr.measure(&Fpr.cases(&SMALL)[0], 1, &interrupt).expect_err("it was interrupted");
    assert!(error.is::<Interrupted>());
}
