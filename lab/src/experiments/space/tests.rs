use std::sync::LazyLock;

use koel::tuning;

use super::{findings::of_buckets, *};
use crate::chart::{self, Chart};

fn scope(max_slots: Option<u64>) -> Scope {
    Scope { quick: true, seed: 1, max_slots }
}

const SMALL: Scope = Scope { quick: true, seed: 1, max_slots: Some(10_000) };

/// Small filters and few probes, so that it is fast without optimization, too.
static MEASURED: LazyLock<Vec<Measured<Case, Row>>> = LazyLock::new(|| {
    let measure = |case: Case| {
        let case = Case { probes: case.probes.min(200_000), ..case };
        let rows = Space.measure(&case, SMALL.seed, &Interrupt::new()).expect("nobody interrupts it");
        Measured { case, rows }
    };
    Space.cases(&SMALL).into_iter().map(measure).collect()
});

#[test]
fn cases_are_different_ones_and_no_larger_than_allowed() {
    for (quick, max_slots, least) in
        [(true, None, 150), (false, None, 200), (true, Some(100_000), 100), (true, Some(10_000), 50), (true, Some(5), 0)]
    {
        let scope = Scope { quick, ..scope(max_slots) };
        let cases = Space.cases(&scope);
        assert!(cases.len() >= least, "{} of {scope:?}", cases.len());
        for (place, case) in cases.iter().enumerate() {
            assert!(!cases[..place].contains(case), "{case:?}");
            let slots = case.builder().params().expect("it can be built").slots();
            assert!(max_slots.is_none_or(|most| slots as u64 <= most), "{case:?}");
            assert!(Space.effort(case) > 0 && Space.memory(case) > slots as u64 / 4, "{case:?}");
            let text = serde_json::to_string(case).expect("it can be written");
            assert_eq!(serde_json::from_str::<Case>(&text).expect("and read"), *case);
        }
    }
}

#[test]
fn what_is_measured_is_what_was_built() {
    assert!(MEASURED.len() > 80);
    for Measured { case, rows } in MEASURED.iter() {
        let [row] = &rows[..] else { panic!("one row, not {}", rows.len()) };
        let params = case.builder().params().expect("it can be built");
        assert_eq!((row.inserted, row.slots), (case.items, params.slots()), "{case:?}");
        let load = row.inserted as f64 / row.slots as f64;
        // Exact up to the last byte.
        let bits = tuning::bits_per_item(case.table.table(), case.f, load);
        assert!((row.bits_per_item - bits).abs() <= 8.0 / case.items as f64, "{case:?}: {row:?}");
        // Of this many 99 % intervals some miss the prediction; at twice the width, none does.
        let expected = tuning::false_positive_rate(case.f, case.b, load);
        let (below, above) = (row.rate - row.low, row.high - row.rate);
        assert!(below > 0.0 && above > 0.0);
        assert!((row.rate - 2.0 * below..=row.rate + 2.0 * above).contains(&expected), "{case:?}: {row:?} {expected}");
        if case.shows == Shows::Size {
            assert!(expected <= RATE && expected > RATE / 3.0, "{case:?}: {expected}");
        }
    }
}

#[test]
fn powers_of_two_have_teeth_and_the_others_do_not() {
    let mean = |measured: &[Measured<Case, Row>], buckets| {
        let bits: Vec<_> = of_buckets(measured, buckets).into_iter().map(|(_, row)| row.bits_per_item).collect();
        let most = bits.iter().copied().fold(0.0, f64::max);
        (bits.iter().sum::<f64>() / bits.len() as f64, most)
    };
    let ((any, most_any), (power, most_power)) = (mean(&MEASURED, Buckets::Any), mean(&MEASURED, Buckets::Power));
    assert!(any < 12.8 && most_any < 13.0, "{any} {most_any}");
    assert!(power > 16.0 && most_power > 20.0, "{power} {most_power}");
}

#[test]
fn whatever_is_missing_the_rest_is_shown() {
    let all = MEASURED.clone();
    let some: Vec<_> = all.iter().step_by(7).cloned().collect();
    let none = Vec::new();
    let unmeasured = vec![Measured { case: all[0].case.clone(), rows: Vec::new() }];
    for measured in [all, some, none, unmeasured] {
        let Findings { charts, tables, .. } = Space.findings(&measured);
        assert_eq!((charts.len(), tables.len()), (3, 2));
        for chart in &charts {
            assert!(chart.series.iter().all(|series| series.colour < Chart::MOST_COLOURS));
            assert!(chart::draw(chart).starts_with("<svg"));
        }
        for table in &tables {
            assert!(table.rows.iter().all(|row| row.len() == table.header.len()));
            assert!(table.rows.iter().flatten().all(|cell| !cell.contains("inf") && !cell.contains("NaN")), "{table:?}");
        }
    }
}

#[test]
fn it_stops_when_it_is_told_to() {
    let interrupt = Interrupt::new();
    interrupt.set();
    let case = &Space.cases(&scope(None))[0];
    let error = Space.measure(case, 1, &interrupt).expect_err("it was interrupted");
    assert!(error.is::<crate::Interrupted>());
}
