use std::{collections::BTreeSet, sync::LazyLock};

use koel::TableKind;
use serde_json::Value;

use super::{
    super::{
        tests::{measured, shown},
        times::Operation,
    },
    *,
};
use crate::Chart;

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

static MEASURED: LazyLock<Vec<Measured<Case>>> = LazyLock::new(|| {
    let sweep = Sweep::new(grid(), &Measure::ALL);
    measured(&sweep, sweep.cases(&SCOPE))
});

/// Returns a result that has times.
fn timed() -> Measured<Case> {
    MEASURED.iter().find(|m| m.rows[0].contains_key("rounds")).expect("a result with times").clone()
}

#[test]
fn impossible_combinations_are_listed_and_others_are_measured() {
    let sweep = Sweep::new(grid(), &[Measure::Space]);
    let left_out = sweep.left_out();
    let reasons: Vec<_> = left_out.iter().map(|one| (one.combinations, one.reason.as_str())).collect();
    let slots = "bucket size: 2 given, but the packed table takes 4; give one of those";
    let bits = "fingerprint bits: 3 given, but the packed table takes 4 to 32; give one of those";
    assert_eq!(reasons, [(9, slots), (3, bits)]);
    let cases = sweep.cases(&SCOPE);
    assert_eq!(cases.len(), 2 * 2 * 3 * 3 - 12);
    assert!(cases.iter().all(|case| case.table == TableKind::Single || (case.b, case.f > 3) == (4, true)));
    assert_eq!(sweep.findings(&[]).tables[0].rows.len(), 2);
    assert!(Sweep::new(Grid { tables: vec![TableKind::Single], ..grid() }, &[]).left_out().is_empty());
}

#[test]
fn tables_have_the_fewest_buckets_for_the_load() {
    for case in Sweep::new(Grid { items: vec![1, 950, 2000, 123_457], ..grid() }, &[]).cases(&SCOPE) {
        let (buckets, b) = (case.buckets(), u64::from(case.b));
        assert!(buckets.is_multiple_of(2) && buckets >= 2);
        assert!(case.items as f64 <= case.slots() as f64 * case.load * (1.0 + 1e-9), "{case:?}");
        assert!(buckets == 2 || case.items as f64 > (buckets - 2) as f64 * b as f64 * case.load * (1.0 - 1e-9), "{case:?}");
    }
    let full = Grid { loads: vec![0.95], items: vec![950], bucket_sizes: vec![4], ..grid() };
    assert!(Sweep::new(full, &[]).cases(&SCOPE).iter().all(|case| case.slots() == 1000));
}

#[test]
fn measured_values_match_the_formulas() {
    let mut refused = 0;
    for Measured { case, rows } in MEASURED.iter() {
        let [row] = &rows[..] else { panic!("one row: {rows:?}") };
        let get = |name: &str| row.get(name).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {name}: {row:?}"));
        let refusal = get("first_refusal");
        assert!(get("first_refusal_min") <= refusal && refusal <= get("first_refusal_max"));
        if get("inserted") < case.items as f64 {
            refused += 1;
            assert!(refusal < case.load * 1.02);
            assert!(["rate", "bytes", "insert_ns", "rounds"].iter().all(|name| !row.contains_key(*name)), "{row:?}");
            continue;
        }
        let load = get("inserted") / get("slots");
        assert!((load / case.load - 1.0).abs() < 0.01, "{case:?} {load}");
        let bits = koel::tuning::bits_per_item(case.table, case.f, load);
        assert!((get("bits_per_item") / bits - 1.0).abs() < 0.01, "{case:?}: {row:?}");
        let (rate, low, high) = (get("rate"), get("rate_low"), get("rate_high"));
        // The rate of a single small table differs from the formula. At three times the width, no interval misses it.
        let widened = rate - 3.0 * (rate - low)..=rate + 3.0 * (high - rate);
        assert!(widened.contains(&get("predicted_rate")), "{case:?}: {row:?}");
        if row.contains_key("rounds") {
            for [median, low, high] in Operation::ALL.map(|operation| operation.columns().map(|column| get(&column))) {
                assert!(0.0 < low && low <= median && median <= high, "{row:?}");
            }
        }
    }
    // Tables with buckets of two at 95 %, and those with the shortest fingerprints, refuse an item.
    assert!((3..12).contains(&refused), "{refused}");
}

/// The measured columns are the described ones, in the same order.
#[test]
fn all_columns_are_described_in_order() {
    let about = Sweep::new(Grid::default(), &Measure::ALL).about();
    let described: Vec<_> = about.columns.iter().map(|column| &*column.name).collect();
    let Measured { case, rows } = timed();
    let Ok(Value::Object(case)) = serde_json::to_value(&case) else { panic!("no fields: {case:?}") };
    assert_eq!(described, case.keys().chain(rows[0].keys()).collect::<Vec<_>>());
}

#[test]
fn warnings_explain_incomplete_rows() {
    let sweep = Sweep::new(grid(), &Measure::ALL);
    let warnings = |changes: [&[(&str, Value)]; 3]| {
        let measured = changes.map(|change| {
            let case = MEASURED[0].case.clone();
            let all = [("inserted", case.items.into())].into_iter().chain(change.iter().cloned());
            Measured { case, rows: vec![all.map(|(name, value)| (name.to_owned(), value)).collect()] }
        });
        sweep.findings(&measured).warnings
    };
    assert_eq!(warnings([&[], &[], &[("found", 1.into())]]), [""; 0]);
    let missed = [("found", 0.into())];
    let found = warnings([&[("inserted", 1.into()), ("disturbed", true.into())], &missed, &missed]);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[2].starts_with("In 1 of 3 cases, other work on the processor"), "{found:?}");
    assert!(found[0].starts_with("In 1 of 3 cases, an item was refused before the load"), "{found:?}");
    assert!(found[1].starts_with("In 2 of 3 cases, no absent item was found"), "{found:?}");
}

#[test]
fn charts_show_every_value_by_every_varying_parameter() {
    let sweep = Sweep::new(grid(), &Measure::ALL);
    let Findings { charts, .. } = shown(&sweep, &MEASURED);
    let files: BTreeSet<_> = charts.iter().map(|chart| chart.file.as_str()).collect();
    // Bucket sizes vary, too, but have only two values.
    let values = ["space", "fpr", "refusal", "find-absent", "find-present", "insert", "remove", "build"];
    let expected: Vec<_> = values.iter().flat_map(|value| ["f", "load"].map(|by| format!("{value}-by-{by}"))).collect();
    assert_eq!((files, charts.len()), (expected.iter().map(String::as_str).collect(), expected.len()));
    assert!(charts.iter().all(|chart| chart.series.len() <= Chart::MAX_COLORS));
    // Disturbed times are marked.
    let mut one = timed();
    one.rows[0].insert(String::from("disturbed"), true.into());
    let marked = sweep.findings(&[&MEASURED[..], &[one]].concat()).charts;
    let of_times = |chart: &&Chart| chart.file.starts_with("insert-");
    assert!(marked.iter().filter(of_times).any(|chart| chart.series.iter().any(|series| series.name == "disturbed")));
    // A line for each table, bucket size and load would be too many: the load is held.
    let chart = charts.iter().find(|chart| chart.file == "space-by-f").expect("a chart of space by f");
    assert!(chart.caption.ends_with("Here, 80 % full.") && chart.series.len() == 3, "{}", chart.caption);
    assert!(sweep.findings(&[]).charts.is_empty());
    // If the only parameter that varies has two values, it has a chart.
    let is_selected = |m: &&Measured<Case>| (m.case.f, m.case.b, m.case.load < 0.9) == (12, 4, true);
    let selected: Vec<_> = MEASURED.iter().filter(is_selected).cloned().collect();
    assert!(sweep.findings(&selected).charts.iter().all(|chart| chart.file.ends_with("-by-load")));
}

#[test]
fn sweeps_with_times_are_timed() {
    assert!(Sweep::new(grid(), &[Measure::Space, Measure::Speed]).about().is_timed);
    let sweep = Sweep::new(grid(), &[Measure::Space, Measure::Fpr, Measure::Load]);
    assert!(!sweep.about().is_timed && sweep.most_memory(&SCOPE) > 4000);
}
