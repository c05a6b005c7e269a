//! Draws every measured value by every parameter that varies.

use std::collections::BTreeSet;

use koel::TableKind;

use super::{Case, Measure};
use crate::{
    Axis, Chart, Fields, Measured, Series,
    experiments::{
        count, rows,
        times::{self, Operation, is_disturbed},
    },
};

type Cases = [Measured<Case>];

struct Parameter {
    /// The end of chart titles.
    title: &'static str,
    /// The end of file names.
    file: &'static str,
    axis: fn() -> Axis,
    /// Returns the value of a case as a number and as a text for legends. Kinds of tables are numbered.
    of: fn(&Case) -> (f64, String),
}

/// All parameters. Kinds of tables have no order, so no chart has them on an axis.
const PARAMETERS: [Parameter; 5] = [
    Parameter {
        title: "kind of table",
        file: "table",
        axis: || Axis::linear("table"),
        of: |case| (f64::from(u8::from(case.table == TableKind::Single)), case.table.to_string()),
    },
    Parameter {
        title: "slots per bucket",
        file: "b",
        axis: || Axis::linear("slots per bucket"),
        of: |case| (f64::from(case.b), format!("b = {}", case.b)),
    },
    Parameter {
        title: "length of fingerprint",
        file: "f",
        axis: || Axis::linear("fingerprint, bits"),
        of: |case| (f64::from(case.f), format!("f = {}", case.f)),
    },
    Parameter {
        title: "number of items",
        file: "items",
        axis: || Axis::log("items"),
        of: |case| (case.items as f64, format!("{} items", format_count(case.items))),
    },
    Parameter {
        title: "load",
        file: "load",
        axis: || Axis::linear("load"),
        of: |case| (case.load, format!("{} % full", (case.load * 1e6).round() / 1e4)),
    },
];

impl Parameter {
    /// Returns the distinct values of all cases as in legends, in ascending order.
    fn values(&self, measured: &Cases) -> Vec<String> {
        let mut values: Vec<_> = measured.iter().map(|m| (self.of)(&m.case)).collect();
        values.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut values: Vec<_> = values.into_iter().map(|(_, label)| label).collect();
        values.dedup();
        values
    }
}

/// Formats a number, with a unit if it is round.
fn format_count(number: u64) -> String {
    let unit = if number >= 1_000_000 { 1_000_000 } else { 1000 };
    if number.is_multiple_of(unit) { count(number) } else { number.to_string() }
}

struct Drawn {
    measure: Measure,
    file: &'static str,
    title: &'static str,
    axis: Axis,
    /// The column of the value, and those of the ends of its interval. Without an interval, these names are empty.
    columns: [String; 3],
    about: &'static str,
}

fn values() -> impl Iterator<Item = Drawn> {
    let values = [
        Drawn {
            measure: Measure::Space,
            file: "space",
            title: "Bits per item",
            axis: Axis::linear("bits per item"),
            columns: ["bits_per_item", "", ""].map(String::from),
            about: "Bits of the table per item.",
        },
        Drawn {
            measure: Measure::Fpr,
            file: "fpr",
            title: "False-positive rate",
            axis: Axis::log("false-positive rate ε"),
            columns: ["rate", "rate_low", "rate_high"].map(String::from),
            about: "Measured rates, with 99 % intervals.",
        },
        Drawn {
            measure: Measure::Load,
            file: "refusal",
            title: "Load at the first refusal",
            axis: Axis::linear("load"),
            columns: ["first_refusal", "first_refusal_min", "first_refusal_max"].map(String::from),
            about: "Mean load at which tables first refuse an item. Bars: from the least to the greatest.",
        },
    ];
    values.into_iter().chain(Operation::ALL.map(|operation| Drawn {
        measure: Measure::Speed,
        file: operation.file(),
        title: operation.title(),
        axis: Axis::linear("ns").from_zero(),
        columns: operation.columns(),
        about: "Nanoseconds for a key, one at a time: medians of all rounds. Bars: quartiles.",
    }))
}

/// The least number of values of a parameter with its own charts, unless no parameter has more.
const FEW_VALUES: usize = 3;

pub(super) fn charts(measured: &Cases) -> Vec<Chart> {
    let counts = PARAMETERS.map(|parameter| parameter.values(measured).len());
    let most = counts.into_iter().max().unwrap_or(0);
    let across =
        PARAMETERS.into_iter().zip(counts).skip(1).filter(|&(_, values)| values > 1 && (values >= FEW_VALUES || values == most));
    let across: Vec<_> = across.map(|(parameter, _)| parameter).collect();
    // A value that was not measured has no chart.
    values().flat_map(|value| across.iter().filter_map(move |x| chart(measured, &value, x))).collect()
}

fn chart(measured: &Cases, value: &Drawn, x: &Parameter) -> Option<Chart> {
    let (distinguishing, held) = split_parameters(measured, x);
    let is_shown = |case: &Case, _: &Fields| held.iter().all(|(parameter, at)| (parameter.of)(case).1 == *at);
    let (mut series, mut disturbed) = (Vec::<Series>::new(), Vec::new());
    for (case, row) in rows(measured, is_shown, |case, _| (x.of)(case).0) {
        let name = name(&distinguishing, case);
        // A line without points takes a color, too, so that each line has the same color in all charts.
        let line = series.iter().position(|line| line.name == name).unwrap_or(series.len());
        if line == series.len() {
            series.push(Series::new(name, line, Vec::new()));
        }
        let [at, low, high] = value.columns.each_ref().map(|column| row.get(column)?.as_f64());
        let Some(point) = at.map(|y| ((x.of)(case).0, y)) else { continue };
        series[line].points.push(point);
        series[line].intervals.extend(low.zip(high));
        if value.measure == Measure::Speed && is_disturbed(row) {
            disturbed.push(point);
        }
    }
    series.push(times::disturbed(disturbed));
    let at: Vec<_> = held.into_iter().map(|(_, at)| at).collect();
    let at = if at.is_empty() { String::new() } else { format!(" Here, {}.", at.join(", ")) };
    let (file, topic) = (format!("{}-by-{}", value.file, x.file), format!("{}, by {}", value.title, x.title));
    let chart = Chart::new(file, topic, [(x.axis)(), value.axis.clone()], series).captioned(format!("{}{at}", value.about));
    (!chart.series.is_empty()).then_some(chart)
}

/// Returns the name of a case's line: its values of the parameters that distinguish lines.
fn name(distinguishing: &[&Parameter], case: &Case) -> String {
    distinguishing.iter().map(|parameter| (parameter.of)(case).1).collect::<Vec<_>>().join(", ")
}

/// Returns the other parameters that vary: those that distinguish the lines of a chart, and those that would need too many colors.
/// The latter are held at the middle one of their values.
fn split_parameters(measured: &Cases, x: &Parameter) -> (Vec<&'static Parameter>, Vec<(&'static Parameter, String)>) {
    let (mut distinguishing, mut held) = (Vec::new(), Vec::new());
    for parameter in &PARAMETERS {
        let mut values = parameter.values(measured);
        if parameter.file == x.file || values.len() < 2 {
            continue;
        }
        distinguishing.push(parameter);
        let names: BTreeSet<_> = measured.iter().map(|m| name(&distinguishing, &m.case)).collect();
        // The last color marks disturbed times.
        if names.len() >= Chart::MAX_COLORS {
            distinguishing.pop();
            held.push((parameter, values.swap_remove(values.len() / 2)));
        }
    }
    (distinguishing, held)
}
