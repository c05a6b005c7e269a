//! Charts of every measured value by every parameter that varies.

use super::{Case, Measure, Row};
use crate::{
    chart::{Axis, Chart, Mark, Series},
    experiment::Measured,
    experiments::{count, times::Operation},
};

type Cases = [Measured<Case, Row>];

/// A parameter of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parameter {
    Table,
    Bucket,
    Fingerprint,
    Items,
    Load,
}

impl Parameter {
    const ALL: [Self; 5] = [Self::Table, Self::Bucket, Self::Fingerprint, Self::Items, Self::Load];

    /// The value of a case; tables are numbered.
    fn of(self, case: &Case) -> f64 {
        match self {
            Self::Table => f64::from(u8::from(case.table.name() == "single")),
            Self::Bucket => f64::from(case.b),
            Self::Fingerprint => f64::from(case.f),
            Self::Items => case.items as f64,
            Self::Load => case.load,
        }
    }

    fn is(self, value: f64, case: &Case) -> bool {
        self.of(case).total_cmp(&value).is_eq()
    }

    /// The value of a case in legends.
    fn label(self, case: &Case) -> String {
        match self {
            Self::Table => case.table.name().to_owned(),
            Self::Bucket => format!("b = {}", case.b),
            Self::Fingerprint => format!("f = {}", case.f),
            Self::Items => format!("{} items", exact(case.items)),
            Self::Load => format!("{} % full", (case.load * 1e6).round() / 1e4),
        }
    }

    fn axis(self) -> Axis {
        match self {
            Self::Table => Axis::linear("table"),
            Self::Bucket => Axis::linear("slots per bucket"),
            Self::Fingerprint => Axis::linear("fingerprint, bits"),
            Self::Items => Axis::log("items"),
            Self::Load => Axis::linear("load"),
        }
    }

    /// The end of titles and of files' names.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Table => ("kind of table", "table"),
            Self::Bucket => ("slots per bucket", "b"),
            Self::Fingerprint => ("length of fingerprint", "f"),
            Self::Items => ("number of items", "items"),
            Self::Load => ("load", "load"),
        }
    }

    /// The different values of all cases, sorted.
    fn values(self, measured: &Cases) -> Vec<f64> {
        let mut values: Vec<_> = measured.iter().map(|m| self.of(&m.case)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    }
}

/// A number with a unit, if it is round.
fn exact(number: u64) -> String {
    let unit = if number >= 1_000_000 { 1_000_000 } else { 1000 };
    if number.is_multiple_of(unit) { count(number) } else { number.to_string() }
}

/// A value that is drawn.
struct Value {
    measure: Measure,
    file: &'static str,
    title: &'static str,
    axis: fn() -> Axis,
    of: fn(&Row) -> Option<f64>,
    interval: fn(&Row) -> Option<(f64, f64)>,
    about: &'static str,
}

const VALUES: [Value; 8] = [
    Value {
        measure: Measure::Space,
        file: "space",
        title: "Bits per item",
        axis: || Axis::linear("bits per item"),
        of: |row| row.bits_per_item,
        interval: |_| None,
        about: "Bits of the table per item.",
    },
    Value {
        measure: Measure::Fpr,
        file: "fpr",
        title: "False-positive rate",
        axis: || Axis::log("false-positive rate ε"),
        of: |row| row.rate,
        interval: |row| row.rate_low.zip(row.rate_high),
        about: "Measured rates, with 99 % intervals.",
    },
    Value {
        measure: Measure::Load,
        file: "refusal",
        title: "Load at the first refusal",
        axis: || Axis::linear("load"),
        of: |row| row.first_refusal,
        interval: |row| row.first_refusal_min.zip(row.first_refusal_max),
        about: "Mean load at which tables first refuse an item. Bars: from the least to the greatest.",
    },
    Value {
        file: "find-absent",
        title: "Look-ups of absent keys",
        of: |row| Some(row.times.of(Operation::FindAbsent)?.median),
        interval: |row| row.times.of(Operation::FindAbsent).map(|time| (time.low, time.high)),
        ..TIME
    },
    Value {
        file: "find-present",
        title: "Look-ups of present keys",
        of: |row| Some(row.times.of(Operation::FindPresent)?.median),
        interval: |row| row.times.of(Operation::FindPresent).map(|time| (time.low, time.high)),
        ..TIME
    },
    Value {
        file: "insert",
        title: "Insertions, the last five per cent",
        of: |row| Some(row.times.of(Operation::Insert)?.median),
        interval: |row| row.times.of(Operation::Insert).map(|time| (time.low, time.high)),
        ..TIME
    },
    Value {
        file: "remove",
        title: "Removals",
        of: |row| Some(row.times.of(Operation::Remove)?.median),
        interval: |row| row.times.of(Operation::Remove).map(|time| (time.low, time.high)),
        ..TIME
    },
    Value {
        file: "build",
        title: "Insertions, all of them",
        of: |row| Some(row.times.of(Operation::Build)?.median),
        interval: |row| row.times.of(Operation::Build).map(|time| (time.low, time.high)),
        ..TIME
    },
];

/// What the times of all operations have in common.
const TIME: Value = Value {
    measure: Measure::Speed,
    file: "",
    title: "",
    axis: || Axis::linear("ns").from_zero(),
    of: |_| None,
    interval: |_| None,
    about: "Nanoseconds for a key, one at a time: medians of all rounds. Bars: quartiles.",
};

/// A parameter with fewer values has no chart of its own, unless no other one has more.
const FEW_VALUES: usize = 3;

pub(super) fn charts(measured: &Cases) -> Vec<Chart> {
    let most = Parameter::ALL.iter().map(|parameter| parameter.values(measured).len()).max().unwrap_or(0);
    // Kinds of tables have no order.
    let across = Parameter::ALL[1..].iter().filter(|parameter| match parameter.values(measured).len() {
        0 | 1 => false,
        values => values >= FEW_VALUES || values == most,
    });
    let across: Vec<_> = across.copied().collect();
    let all = VALUES.iter().filter(|value| measured.iter().any(|m| m.case.measure.has(value.measure)));
    let mut charts: Vec<_> = all.flat_map(|value| across.iter().map(|&x| chart(measured, value, x))).collect();
    // What was not measured is not shown.
    charts.retain(|chart| !chart.series.is_empty());
    charts
}

/// The cases of a line, with their values of the parameters that tell lines apart.
struct Line<'a> {
    key: Vec<f64>,
    name: String,
    cases: Vec<&'a Measured<Case, Row>>,
}

fn chart(measured: &Cases, value: &Value, x: Parameter) -> Chart {
    let (apart, held) = apart(measured, x);
    let mut lines: Vec<Line<'_>> = Vec::new();
    for m in measured.iter().filter(|m| held.iter().all(|&(parameter, value)| parameter.is(value, &m.case))) {
        let key = key(&apart, &m.case);
        match lines.iter_mut().find(|line| line.key == key) {
            Some(line) => line.cases.push(m),
            None => lines.push(Line { key, name: name(&apart, &m.case), cases: vec![m] }),
        }
    }
    let mut series = Vec::new();
    for (colour, Line { name, mut cases, .. }) in lines.into_iter().enumerate() {
        cases.sort_by(|one, other| x.of(&one.case).total_cmp(&x.of(&other.case)));
        let rows = || cases.iter().filter_map(|m| Some((x.of(&m.case), m.row()?, (value.of)(m.row()?)?)));
        let points: Vec<_> = rows().map(|(at, _, y)| (at, y)).collect();
        let intervals = rows().filter_map(|(_, row, _)| (value.interval)(row)).collect();
        if !points.is_empty() {
            series.push(Series::new(name, colour, points).marked(Mark::Points).within(intervals));
        }
    }
    let (by, file) = x.names();
    let at: Vec<_> = held.iter().filter_map(|&(parameter, value)| held_at(measured, parameter, value)).collect();
    let at = if at.is_empty() { String::new() } else { format!(" Here, {}.", at.join(", ")) };
    Chart {
        file: format!("{}-by-{file}", value.file),
        topic: format!("{}, by {by}", value.title),
        finding: None,
        caption: format!("{}{at}", value.about),
        x: x.axis(),
        y: (value.axis)(),
        series,
    }
}

fn held_at(measured: &Cases, parameter: Parameter, value: f64) -> Option<String> {
    measured.iter().find(|m| parameter.is(value, &m.case)).map(|m| parameter.label(&m.case))
}

fn key(apart: &[Parameter], case: &Case) -> Vec<f64> {
    apart.iter().map(|parameter| parameter.of(case)).collect()
}

fn name(apart: &[Parameter], case: &Case) -> String {
    apart.iter().map(|parameter| parameter.label(case)).collect::<Vec<_>>().join(", ")
}

/// The other parameters that vary: those that tell the lines of a chart apart, and those for which there are not enough
/// colours, which are held at the middle of their values.
fn apart(measured: &Cases, x: Parameter) -> (Vec<Parameter>, Vec<(Parameter, f64)>) {
    let (mut apart, mut held) = (Vec::new(), Vec::new());
    for parameter in Parameter::ALL {
        let values = parameter.values(measured);
        if parameter == x || values.len() < 2 {
            continue;
        }
        apart.push(parameter);
        let mut keys: Vec<_> = measured.iter().map(|m| key(&apart, &m.case)).collect();
        keys.sort_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
        keys.dedup();
        if keys.len() > Chart::MOST_COLOURS {
            apart.pop();
            held.push((parameter, values[values.len() / 2]));
        }
    }
    (apart, held)
}
