//! Charts of every measured value by every parameter that varies.

use std::collections::BTreeSet;

use koel::TableKind;
use serde_json::Value;

use super::{Case, Measure};
use crate::{
    chart::{Axis, Chart, Series},
    experiment::{Fields, Measured},
    experiments::{
        count,
        times::{self, DISTURBED, Operation},
    },
};

type Cases = [Measured<Case>];

/// A parameter of the grid.
struct Parameter {
    /// The end of titles and of files' names.
    title: &'static str,
    file: &'static str,
    /// The value of a case; tables are numbered.
    of: fn(&Case) -> f64,
    /// The value of a case in legends.
    label: fn(&Case) -> String,
    axis: fn() -> Axis,
}

/// All of them. Kinds of tables have no order, so that nothing is drawn by them.
const PARAMETERS: [Parameter; 5] = [
    Parameter {
        title: "kind of table",
        file: "table",
        of: |case| f64::from(u8::from(case.table == TableKind::Single)),
        label: |case| case.table.to_string(),
        axis: || Axis::linear("table"),
    },
    Parameter {
        title: "slots per bucket",
        file: "b",
        of: |case| f64::from(case.b),
        label: |case| format!("b = {}", case.b),
        axis: || Axis::linear("slots per bucket"),
    },
    Parameter {
        title: "length of fingerprint",
        file: "f",
        of: |case| f64::from(case.f),
        label: |case| format!("f = {}", case.f),
        axis: || Axis::linear("fingerprint, bits"),
    },
    Parameter {
        title: "number of items",
        file: "items",
        of: |case| case.items as f64,
        label: |case| format!("{} items", exact(case.items)),
        axis: || Axis::log("items"),
    },
    Parameter {
        title: "load",
        file: "load",
        of: |case| case.load,
        label: |case| format!("{} % full", (case.load * 1e6).round() / 1e4),
        axis: || Axis::linear("load"),
    },
];

impl Parameter {
    /// The different values of all cases, from the least to the greatest, as in legends.
    fn values(&self, measured: &Cases) -> Vec<String> {
        let mut values: Vec<_> = measured.iter().map(|m| ((self.of)(&m.case), (self.label)(&m.case))).collect();
        values.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut values: Vec<_> = values.into_iter().map(|(_, label)| label).collect();
        values.dedup();
        values
    }
}

/// A number with a unit, if it is round.
fn exact(number: u64) -> String {
    let unit = if number >= 1_000_000 { 1_000_000 } else { 1000 };
    if number.is_multiple_of(unit) { count(number) } else { number.to_string() }
}

/// A value that is drawn: a column, and those of its interval.
struct Drawn {
    measure: Measure,
    file: &'static str,
    title: &'static str,
    axis: Axis,
    column: String,
    interval: Option<[String; 2]>,
    about: &'static str,
}

fn values() -> Vec<Drawn> {
    let interval = |low: &str, high: &str| Some([low, high].map(String::from));
    let mut values = vec![
        Drawn {
            measure: Measure::Space,
            file: "space",
            title: "Bits per item",
            axis: Axis::linear("bits per item"),
            column: String::from("bits_per_item"),
            interval: None,
            about: "Bits of the table per item.",
        },
        Drawn {
            measure: Measure::Fpr,
            file: "fpr",
            title: "False-positive rate",
            axis: Axis::log("false-positive rate ε"),
            column: String::from("rate"),
            interval: interval("rate_low", "rate_high"),
            about: "Measured rates, with 99 % intervals.",
        },
        Drawn {
            measure: Measure::Load,
            file: "refusal",
            title: "Load at the first refusal",
            axis: Axis::linear("load"),
            column: String::from("first_refusal"),
            interval: interval("first_refusal_min", "first_refusal_max"),
            about: "Mean load at which tables first refuse an item. Bars: from the least to the greatest.",
        },
    ];
    values.extend(Operation::ALL.into_iter().map(|operation| {
        let [column, low, high] = operation.columns();
        Drawn {
            measure: Measure::Speed,
            file: operation.file(),
            title: operation.title(),
            axis: Axis::linear("ns").from_zero(),
            column,
            interval: Some([low, high]),
            about: "Nanoseconds for a key, one at a time: medians of all rounds. Bars: quartiles.",
        }
    }));
    values
}

/// A parameter with fewer values has no chart of its own, unless no other one has more.
const FEW_VALUES: usize = 3;

pub(super) fn charts(measured: &Cases) -> Vec<Chart> {
    let most = PARAMETERS.iter().map(|parameter| parameter.values(measured).len()).max().unwrap_or(0);
    let across: Vec<_> = PARAMETERS[1..]
        .iter()
        .filter(|parameter| {
            let values = parameter.values(measured).len();
            values > 1 && (values >= FEW_VALUES || values == most)
        })
        .collect();
    let values = values();
    let all = values.iter().filter(|value| measured.iter().any(|m| m.case.measure.contains(&value.measure)));
    let mut charts: Vec<_> = all.flat_map(|value| across.iter().map(|x| chart(measured, value, x))).collect();
    // What was not measured is not shown.
    charts.retain(|chart| !chart.series.is_empty());
    charts
}

fn chart(measured: &Cases, value: &Drawn, x: &Parameter) -> Chart {
    let (apart, held) = apart(measured, x);
    let mut lines: Vec<(String, Vec<&Measured<Case>>)> = Vec::new();
    for m in measured.iter().filter(|m| held.iter().all(|(parameter, at)| (parameter.label)(&m.case) == *at)) {
        let name = name(&apart, &m.case);
        match lines.iter_mut().find(|line| line.0 == name) {
            Some((_, cases)) => cases.push(m),
            None => lines.push((name, vec![m])),
        }
    }
    let number = |row: &Fields, column: &str| row.get(column).and_then(Value::as_f64);
    let (mut series, mut disturbed) = (Vec::new(), Vec::new());
    for (colour, (name, mut cases)) in lines.into_iter().enumerate() {
        cases.sort_by(|one, other| (x.of)(&one.case).total_cmp(&(x.of)(&other.case)));
        let (mut points, mut intervals) = (Vec::new(), Vec::new());
        for m in cases {
            let Some((row, y)) = m.row().and_then(|row| Some((row, number(row, &value.column)?))) else { continue };
            points.push(((x.of)(&m.case), y));
            intervals.extend(value.interval.as_ref().and_then(|[low, high]| number(row, low).zip(number(row, high))));
            if value.measure == Measure::Speed && row.get(DISTURBED) == Some(&Value::Bool(true)) {
                disturbed.push(((x.of)(&m.case), y));
            }
        }
        if !points.is_empty() {
            series.push(Series::new(name, colour, points).within(intervals));
        }
    }
    series.extend(times::disturbed(disturbed));
    let at: Vec<_> = held.into_iter().map(|(_, at)| at).collect();
    let at = if at.is_empty() { String::new() } else { format!(" Here, {}.", at.join(", ")) };
    Chart {
        file: format!("{}-by-{}", value.file, x.file),
        topic: format!("{}, by {}", value.title, x.title),
        finding: None,
        caption: format!("{}{at}", value.about),
        x: (x.axis)(),
        y: value.axis.clone(),
        series,
    }
}

/// The name of a case's line: its values of the parameters that tell lines apart.
fn name(apart: &[&Parameter], case: &Case) -> String {
    apart.iter().map(|parameter| (parameter.label)(case)).collect::<Vec<_>>().join(", ")
}

/// The other parameters that vary: those that tell the lines of a chart apart, and those for which there are not enough
/// colours, which are held at the middle of their values.
fn apart(measured: &Cases, x: &Parameter) -> (Vec<&'static Parameter>, Vec<(&'static Parameter, String)>) {
    let (mut apart, mut held) = (Vec::new(), Vec::new());
    for parameter in &PARAMETERS {
        let mut values = parameter.values(measured);
        if parameter.file == x.file || values.len() < 2 {
            continue;
        }
        apart.push(parameter);
        let names: BTreeSet<_> = measured.iter().map(|m| name(&apart, &m.case)).collect();
        // The last colour marks disturbed times.
        if names.len() >= Chart::MOST_COLOURS {
            apart.pop();
            held.push((parameter, values.swap_remove(values.len() / 2)));
        }
    }
    (apart, held)
}
