use std::{collections::BTreeSet, sync::LazyLock};

use koel::TableKind;
use serde_json::Value;

use super::{super::times::Operation, *};
use crate::chart::{self, Chart};

const SCOPE: Scope = Scope { quick: true, seed: 1, max_slots: None };

fn grid() -> Grid {
    Grid {
        tables: vec![TableKind::Packed, TableKind::Single],
        bucket_sizes: vec![2, 4],
        fingerprint_bits: vec![3, 6, 12],
        loads: vec![0.5, 0.8, 0.95],
        items: vec![2000],
    }
}

/// Every measure of the small grid.
static MEASURED: LazyLock<Vec<Measured<Case, Row>>> = LazyLock::new(|| {
    let sweep = Sweep::new(grid(), &Measure::ALL);
    let measure = |case: Case| {
        let rows = sweep.measure(&case, 1, &Interrupt::new()).expect("nobody interrupts it");
        Measured { case, rows }
    };
    sweep.cases(&SCOPE).into_iter().map(measure).collect()
});

#[test]
fn impossible_combinations_are_named_and_the_rest_is_measured() {
    let sweep = Sweep::new(grid(), &[Measure::Space]);
    let left_out = sweep.left_out();
    let reasons: Vec<_> = left_out.iter().map(|one| (one.combinations, one.reason.as_str())).collect();
    let packed = "b = 2: the packed table has buckets of 4 slots";
    assert_eq!(reasons, [(9, packed), (3, "f = 3: the packed table has fingerprints of 4 to 32 bits")]);
    let cases = sweep.cases(&SCOPE);
    assert_eq!(cases.len(), 2 * 2 * 3 * 3 - 12);
    assert!(cases.iter().all(|case| case.table == Kind::Single || (case.b, case.f > 3) == (4, true)));
    assert_eq!(sweep.findings(&[]).tables[0].rows.len(), 2);
    assert!(Sweep::new(Grid { tables: vec![TableKind::Single], ..grid() }, &[]).left_out().is_empty());
}

#[test]
fn a_table_has_as_few_buckets_as_its_load_takes() {
    for case in Sweep::new(Grid { items: vec![1, 950, 2000, 123_457], ..grid() }, &[]).cases(&SCOPE) {
        let (buckets, b) = (case.buckets(), u64::from(case.b));
        assert!(buckets.is_multiple_of(2) && buckets >= 2);
        assert!(case.items as f64 <= case.slots() as f64 * case.load * (1.0 + 1e-9), "{case:?}");
        assert!(buckets == 2 || case.items as f64 > (buckets - 2) as f64 * b as f64 * case.load * (1.0 - 1e-9), "{case:?}");
        let text = serde_json::to_string(&case).expect("it can be written");
        assert_eq!(serde_json::from_str::<Case>(&text).expect("and read"), case);
    }
    let full = Grid { loads: vec![0.95], items: vec![950], bucket_sizes: vec![4], ..grid() };
    assert!(Sweep::new(full, &[]).cases(&SCOPE).iter().all(|case| case.slots() == 1000));
}

#[test]
fn what_is_measured_is_what_is_known() {
    let mut refused = 0;
    for Measured { case, rows } in MEASURED.iter() {
        let row = &rows[0];
        let refusal = row.first_refusal.expect("it is always measured");
        assert!(row.first_refusal_min <= row.first_refusal && row.first_refusal <= row.first_refusal_max);
        if row.inserted < case.items {
            refused += 1;
            assert!(
                refusal < case.load * 1.02
                    && row.rate.is_none()
                    && row.bytes.is_none()
                    && row.times.of(Operation::Insert).is_none()
            );
            continue;
        }
        let load = row.inserted as f64 / row.slots as f64;
        assert!((load / case.load - 1.0).abs() < 0.01, "{case:?} {load}");
        let bits = koel::tuning::bits_per_item(case.table.table(), case.f, load);
        assert!(row.bits_per_item.is_some_and(|measured| (measured / bits - 1.0).abs() < 0.01), "{case:?}: {row:?}");
        let (rate, predicted) = row.rate.zip(row.predicted_rate).expect("it was measured");
        let (low, high) = row.rate_low.zip(row.rate_high).expect("it was measured");
        // A single small table has a rate of its own; at thrice the width, no interval misses the formula.
        assert!((rate - 3.0 * (rate - low)..=rate + 3.0 * (high - rate)).contains(&predicted), "{case:?}: {row:?}");
        if row.rounds.is_some() {
            use Operation::{FindAbsent, FindPresent, Insert, Remove};
            for operation in [FindAbsent, FindPresent, Insert, Remove] {
                let time = row.times.of(operation).expect("it was measured");
                assert!(0.0 < time.low && time.low <= time.median && time.median <= time.high, "{operation:?}: {time:?}");
            }
        }
    }
    // Buckets of two at 95 %, and the shortest fingerprints.
    assert!((3..12).contains(&refused), "{refused}");
}

/// The keys of a JSON object, in order.
fn keys(value: &impl Serialize) -> Vec<String> {
    let Value::Object(fields) = serde_json::to_value(value).expect("it can be written") else { panic!("no object") };
    fields.keys().cloned().collect()
}

#[test]
fn every_column_is_there_whatever_is_measured_and_has_its_description() {
    let described: Vec<_> =
        Sweep::new(Grid::default(), &[]).columns().into_iter().map(|column| column.name.into_owned()).collect();
    let fields = [keys(&MEASURED[0].case), keys(&MEASURED[0].rows[0])].concat();
    assert_eq!(described, fields);
    // One that is not measured is empty, not zero.
    let sweep = Sweep::new(grid(), &[Measure::Space]);
    let case = &sweep.cases(&SCOPE)[0];
    let rows = sweep.measure(case, 1, &Interrupt::new()).expect("nobody interrupts it");
    assert_eq!(keys(&rows[0]), keys(&MEASURED[0].rows[0]));
    let fields = serde_json::to_value(&rows[0]).expect("it can be written");
    let empty = ["probes", "rate", "first_refusal", "rounds", "insert_ns"];
    assert!(empty.iter().all(|&name| fields[name].is_null()) && fields["bytes"].as_u64() > Some(0), "{fields}");
    let read: Row = serde_json::from_value(fields.clone()).expect("and read");
    assert_eq!(serde_json::to_value(&read).expect("and written"), fields);
}

#[test]
fn what_is_missing_in_the_rows_is_said() {
    let sweep = Sweep::new(grid(), &Measure::ALL);
    let warnings = |changes: [fn(&mut Row); 3]| {
        let measured = changes.map(|change| {
            let mut measured = MEASURED[0].clone();
            measured.rows[0] = Row { inserted: measured.case.items, ..Row::default() };
            change(&mut measured.rows[0]);
            measured
        });
        sweep.findings(&measured).warnings
    };
    assert_eq!(warnings([|_| {}, |_| {}, |row| row.found = Some(1)]), [""; 0]);
    let found = warnings([|row| row.inserted -= 1, |row| row.found = Some(0), |row| row.found = Some(0)]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("In 1 of 3 cases, an item was refused before the load"), "{found:?}");
    assert!(found[1].starts_with("In 2 of 3 cases, no absent item was found"), "{found:?}");
}

#[test]
fn there_is_a_chart_for_every_value_by_every_parameter_that_varies() {
    let sweep = Sweep::new(grid(), &Measure::ALL);
    let Findings { charts, .. } = sweep.findings(&MEASURED);
    let files: BTreeSet<_> = charts.iter().map(|chart| chart.file.as_str()).collect();
    assert_eq!(files.len(), charts.len());
    // Buckets vary, too, but have two values only.
    let values = ["space", "fpr", "refusal", "find-absent", "find-present", "insert", "remove", "build"];
    assert!(
        values.iter().all(|value| ["f", "load"].iter().all(|by| files.contains(format!("{value}-by-{by}").as_str()))),
        "{files:?}"
    );
    assert_eq!(charts.len(), 16);
    for chart in &charts {
        assert!(chart.series.len() <= Chart::MOST_COLOURS && chart::draw(chart).starts_with("<svg"));
    }
    // A line for each table, bucket size and load would be too many: the load is held.
    let chart = charts.iter().find(|chart| chart.file == "space-by-f").expect("it is one of them");
    assert!(chart.caption.ends_with("Here, 80 % full.") && chart.series.len() == 3, "{}", chart.caption);
    assert!(sweep.findings(&[]).charts.is_empty());
    // With one parameter of two values, that one is drawn.
    let two: Vec<_> = MEASURED.iter().filter(|m| (m.case.f, m.case.load < 0.9) == (12, true)).cloned().collect();
    let two: Vec<_> = two.into_iter().filter(|m| m.case.b == 4).collect();
    assert!(sweep.findings(&two).charts.iter().all(|chart| chart.file.ends_with("-by-load")));
}

#[test]
fn times_are_measured_alone_and_it_stops_when_told_to() {
    assert!(Sweep::new(grid(), &[Measure::Space, Measure::Speed]).is_timed());
    let sweep = Sweep::new(grid(), &[Measure::Space, Measure::Fpr, Measure::Load]);
    assert!(!sweep.is_timed() && sweep.most_memory(&SCOPE) > 4000);
    let interrupt = Interrupt::new();
    interrupt.set();
    let error = sweep.measure(&sweep.cases(&SCOPE)[0], 1, &interrupt).expect_err("it was told to");
    assert!(error.is::<crate::Interrupted>());
}
