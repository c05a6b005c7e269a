//! Charts of every measured value by every parameter that varies.

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
    let operations = [
        ("find-absent", "Lookups of absent keys"),
        ("find-present", "Lookups of present keys"),
        ("insert", "Insertions, the last five per cent"),
        ("remove", "Removals"),
        ("build", "Insertions, all of them"),
    ];
    values.extend(Operation::ALL.into_iter().zip(operations).map(|(operation, (file, title))| {
        let [column, low, high] = operation.columns();
        Drawn {
            measure: Measure::Speed,
            file,
            title,
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
    let most = Parameter::ALL.iter().map(|parameter| parameter.values(measured).len()).max().unwrap_or(0);
    // Kinds of tables have no order.
    let across = Parameter::ALL[1..].iter().filter(|parameter| match parameter.values(measured).len() {
        0 | 1 => false,
        values => values >= FEW_VALUES || values == most,
    });
    let across: Vec<_> = across.copied().collect();
    let values = values();
    let all = values.iter().filter(|value| measured.iter().any(|m| m.case.measure.has(value.measure)));
    let mut charts: Vec<_> = all.flat_map(|value| across.iter().map(|&x| chart(measured, value, x))).collect();
    // What was not measured is not shown.
    charts.retain(|chart| !chart.series.is_empty());
    charts
}

/// The cases of a line, with their values of the parameters that tell lines apart.
struct Line<'a> {
    key: Vec<f64>,
    name: String,
    cases: Vec<&'a Measured<Case>>,
}

fn chart(measured: &Cases, value: &Drawn, x: Parameter) -> Chart {
    let (apart, held) = apart(measured, x);
    let mut lines: Vec<Line<'_>> = Vec::new();
    for m in measured.iter().filter(|m| held.iter().all(|&(parameter, value)| parameter.is(value, &m.case))) {
        let key = key(&apart, &m.case);
        match lines.iter_mut().find(|line| line.key == key) {
            Some(line) => line.cases.push(m),
            None => lines.push(Line { key, name: name(&apart, &m.case), cases: vec![m] }),
        }
    }
    let number = |row: &Fields, column: &str| row.get(column).and_then(Value::as_f64);
    let (mut series, mut disturbed) = (Vec::new(), Vec::new());
    for (colour, Line { name, mut cases, .. }) in lines.into_iter().enumerate() {
        cases.sort_by(|one, other| x.of(&one.case).total_cmp(&x.of(&other.case)));
        let (mut points, mut intervals) = (Vec::new(), Vec::new());
        for m in cases {
            let Some((row, y)) = m.row().and_then(|row| Some((row, number(row, &value.column)?))) else { continue };
            points.push((x.of(&m.case), y));
            intervals.extend(value.interval.as_ref().and_then(|[low, high]| number(row, low).zip(number(row, high))));
            if value.measure == Measure::Speed && row.get(DISTURBED) == Some(&Value::Bool(true)) {
                disturbed.push((x.of(&m.case), y));
            }
        }
        if !points.is_empty() {
            series.push(Series::new(name, colour, points).within(intervals));
        }
    }
    series.extend(times::disturbed(disturbed));
    let (by, file) = x.names();
    let at: Vec<_> = held.iter().filter_map(|&(parameter, value)| held_at(measured, parameter, value)).collect();
    let at = if at.is_empty() { String::new() } else { format!(" Here, {}.", at.join(", ")) };
    Chart {
        file: format!("{}-by-{file}", value.file),
        topic: format!("{}, by {by}", value.title),
        finding: None,
        caption: format!("{}{at}", value.about),
        x: x.axis(),
        y: value.axis.clone(),
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
        // The last colour marks disturbed times.
        if keys.len() >= Chart::MOST_COLOURS {
            apart.pop();
            held.push((parameter, values[values.len() / 2]));
        }
    }
    (apart, held)
}
