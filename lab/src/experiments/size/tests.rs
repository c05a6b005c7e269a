use super::{
    times::Operation::{Build, FindAbsent, FindPresent, Insert, Remove},
    *,
};
use crate::chart;

fn scope(quick: bool, max_slots: Option<u64>) -> Scope {
    Scope { quick, seed: 1, max_slots }
}

#[test]
fn sizes_are_within_the_limit() {
    let sizes = |quick, most| Size.cases(&scope(quick, most)).iter().map(|case| case.size).collect::<Vec<_>>();
    assert_eq!(sizes(false, None), SIZES);
    assert_eq!(sizes(true, None), SIZES[..QUICK_SIZES]);
    assert_eq!(sizes(false, Some(50_000)), [SIZES[0], SIZES[1], 75_000]);
    assert_eq!(sizes(true, Some(1000)), [1500]);
    assert!(sizes(true, Some(600)).is_empty());
}

#[test]
fn tables_are_of_the_size() {
    for size in SIZES {
        for (table, b) in SHAPES {
            let params = params(table, b, size).expect("there is such a table");
            let load = params.capacity() as f64 / params.slots() as f64;
            assert!(load > if b == 1 { 0.24 } else { 0.85 }, "{size} {b}: {load}");
            assert!((0.99..1.01).contains(&(params.table_bytes() as f64 / size as f64)), "{size} {b}: {params}");
        }
    }
}

#[test]
fn every_shape_is_timed() {
    let case = Case { size: 4 << 10, quick: true };
    let rows = Size.measure(&case, 1, &Interrupt::new()).expect("nobody interrupts it");
    assert_eq!(rows.iter().map(|row| (row.table, row.b)).collect::<Vec<_>>(), SHAPES);
    for row in &rows {
        assert!(row.rounds > 0 && row.items > 100, "{row:?}");
        for operation in [FindAbsent, FindPresent, Insert, Remove, Build] {
            assert!(row.times.of(operation).is_some_and(|time| time.median > 0.0), "{row:?}");
        }
    }
    let findings = Size.findings(&[Measured { case, rows }]);
    assert_eq!((findings.charts.len(), findings.tables[0].rows.len()), (5, SHAPES.len()));
    for chart in &findings.charts {
        assert!(chart.finding.is_none() && chart.series.len() == 6, "{}", chart.file);
        assert!(chart::draw(chart).is_ok());
    }
    assert!(Size.findings(&[]).charts.is_empty());
}

#[test]
fn it_stops_when_told_to() {
    let interrupt = Interrupt::new();
    interrupt.set();
    let case = Case { size: 16 << 10, quick: true };
    assert!(Size.measure(&case, 1, &interrupt).expect_err("it was told to").is::<crate::Interrupted>());
}
