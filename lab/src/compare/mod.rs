//! Compares the results in two folders, such as those of two versions or of two machines.

mod noise;

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use anyhow::bail;
use serde::{Serialize, Serializer};
use serde_json::Value;

use self::noise::{Sample, Spread, half_interval};
use crate::{
    Column, Fields, Measured, Role,
    experiments::times::is_disturbed,
    record::{self, Record},
    report,
    statistics::DEVIATIONS,
};

/// The comparison of the results in two folders.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The two folders. Their names may be other than UTF-8, which is all that JSON has.
    #[serde(serialize_with = "displayed")]
    pub folders: [PathBuf; 2],
    /// The experiments that both folders have.
    pub experiments: Vec<Compared>,
    /// The names of the experiments that only one of the folders has.
    pub alone: [Vec<String>; 2],
}

/// An experiment that both folders have.
#[derive(Debug, Serialize)]
pub struct Compared {
    /// The name of the experiment.
    pub name: String,
    /// The facts that differ between the two runs, such as the machine, with both values.
    pub runs: Vec<(String, [String; 2])>,
    /// The number of cases that both runs have.
    pub cases: usize,
    /// The cases that only one of the runs has, as JSON.
    pub alone: [Vec<String>; 2],
    /// All figures of the cases that both runs have.
    pub figures: Vec<Difference>,
}

/// A figure that both runs have.
#[derive(Debug, Serialize)]
pub struct Difference {
    /// The case, as JSON.
    pub case: String,
    /// The fields that distinguish the row from others of the case, as JSON; empty if there are none.
    pub row: String,
    /// The name of the column.
    pub column: String,
    /// The unit of the column; empty if it has none.
    pub unit: String,
    /// The value in the first folder.
    pub a: f64,
    /// The value in the second folder.
    pub b: f64,
    /// Half the width of the confidence interval of b − a. All intervals together hold with a probability of about 99 %. It is 0 if both
    /// values are exact, and `None` if a spread is unknown.
    pub half_interval: Option<f64>,
    /// The verdict on the difference.
    pub verdict: Verdict,
    #[serde(skip)]
    is_time: bool,
    #[serde(skip)]
    spreads: [Option<Spread>; 2],
}

/// The verdict on a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The figures are equal, or chance explains the difference.
    Equal,
    /// Chance does not explain the difference.
    Different,
    /// The figures differ, but a spread is unknown, for example after a single measurement.
    Unknown,
}

impl Comparison {
    /// Compares the results in two folders. Times count as equal if they differ by at most this share of the lower one.
    ///
    /// # Errors
    /// If a folder or a record cannot be read; if the two have no case in common.
    pub fn new(a: &Path, b: &Path, time_tolerance: f64) -> anyhow::Result<Self> {
        let [in_a, in_b] = [read_records(a)?, read_records(b)?];
        let in_both = in_a.iter().filter_map(|(name, record)| Some(compared(name, [record, find(&in_b, name)?])));
        let mut experiments: Vec<_> = in_both.collect();
        if experiments.iter().all(|experiment| experiment.cases == 0) {
            bail!(
                "{} and {} have no case in common; measure the same experiments with the same options into both",
                a.display(),
                b.display()
            );
        }
        let figures = experiments.iter().flat_map(|experiment| &experiment.figures);
        let uncertain = figures.filter(|figure| figure.spreads.iter().flatten().any(|spread| spread.error > 0.0)).count();
        for figure in experiments.iter_mut().flat_map(|experiment| &mut experiment.figures) {
            figure.judge(uncertain, time_tolerance);
        }
        let alone = [missing_from_second(&in_a, &in_b), missing_from_second(&in_b, &in_a)];
        Ok(Self { folders: [a.to_owned(), b.to_owned()], experiments, alone })
    }

    /// Iterates over the figures with this verdict.
    pub fn with(&self, verdict: Verdict) -> impl Iterator<Item = &Difference> {
        self.experiments.iter().flat_map(move |experiment| experiment.with(verdict))
    }
}

impl Compared {
    /// Iterates over the figures with this verdict.
    pub fn with(&self, verdict: Verdict) -> impl Iterator<Item = &Difference> {
        self.figures.iter().filter(move |figure| figure.verdict == verdict)
    }
}

impl Difference {
    /// Returns b − a as a share of a. It is infinite if a is 0 and b is not.
    #[must_use]
    pub fn relative(&self) -> f64 {
        let apart = self.b - self.a;
        if apart.abs() > 0.0 { apart / self.a.abs() } else { 0.0 }
    }

    fn judge(&mut self, uncertain: usize, time_tolerance: f64) {
        self.half_interval = half_interval(uncertain, self.spreads);
        let apart = (self.b - self.a).abs();
        self.verdict = match self.half_interval {
            _ if apart <= 1e-12 * self.a.abs().max(self.b.abs()) => Verdict::Equal,
            _ if self.is_time && apart <= time_tolerance * self.a.min(self.b) => Verdict::Equal,
            None => Verdict::Unknown,
            Some(half) if apart <= half => Verdict::Equal,
            Some(_) => Verdict::Different,
        };
    }
}

fn displayed<S: Serializer>(paths: &[PathBuf; 2], serializer: S) -> Result<S::Ok, S::Error> {
    paths.each_ref().map(|path| path.display().to_string()).serialize(serializer)
}

/// Reads the records in a folder, with the names of their experiments.
fn read_records(folder: &Path) -> anyhow::Result<Vec<(String, Record)>> {
    let damaged = |path: &Path| {
        format!("{}: not a record of koel, or a damaged one; give a folder that `koel experiment` has written", path.display())
    };
    let records = record::read_all(folder, &[], damaged)?;
    if records.is_empty() {
        bail!("{}: no results here; give a folder that `koel experiment` has written", folder.display());
    }
    Ok(records.into_iter().map(|record| (record.run.experiment.clone(), record)).collect())
}

fn find<'a, T>(named: &'a [(String, T)], name: &str) -> Option<&'a T> {
    named.iter().find(|one| one.0 == name).map(|one| &one.1)
}

/// Returns the names that only the first list has.
fn missing_from_second<T>(first: &[(String, T)], second: &[(String, T)]) -> Vec<String> {
    first.iter().map(|one| &one.0).filter(|name| find(second, name).is_none()).cloned().collect()
}

/// Compares an experiment of both folders, without verdicts. Leaves out a figure of a common case that only one folder has: other
/// figures of that case differ, too.
fn compared(name: &str, records: [&Record; 2]) -> Compared {
    let [a, b] = records.map(|record| figures(&record.columns, &record.measured));
    let in_both: Vec<_> = a.iter().filter_map(|(case, in_a)| Some((case, in_a, find(&b, case)?))).collect();
    let cases = in_both.len();
    let mut figures = Vec::new();
    for (case, in_a, in_b) in in_both {
        for (position, figure) in in_a {
            let Some(other) = in_b.get(position) else { continue };
            let (a, b) = (figure.sample(), other.sample());
            figures.push(Difference {
                case: case.clone(),
                row: position.row.clone(),
                column: position.name.clone(),
                unit: figure.unit.clone(),
                a: a.value,
                b: b.value,
                half_interval: None,
                verdict: Verdict::Unknown,
                is_time: matches!(figure.role, Role::Time | Role::Median { .. }),
                spreads: [a.spread, b.spread],
            });
        }
    }
    let runs = report::differing_facts(records.map(|record| &record.run));
    Compared { name: name.to_owned(), runs, cases, alone: [missing_from_second(&a, &b), missing_from_second(&b, &a)], figures }
}

/// The position of a figure within a case: the key of its row, the row's index among those with the same key, and the column's
/// index and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    row: String,
    index: usize,
    column: usize,
    name: String,
}

type Figures = BTreeMap<Position, Figure>;

/// The samples of a figure: one value, or the values of all repetitions of a case.
#[derive(Clone, Debug)]
struct Figure {
    unit: String,
    role: Role,
    samples: Vec<Sample>,
}

impl Figure {
    /// Returns the mean of all repetitions. The spread of times is estimated from the repetitions; other figures have the same
    /// spread in each repetition.
    fn sample(&self) -> Sample {
        let count = self.samples.len() as f64;
        let value = self.samples.iter().map(|sample| sample.value).sum::<f64>() / count;
        let spread = if self.role == Role::Time {
            let square = self.samples.iter().map(|sample| (sample.value - value).powi(2)).sum::<f64>();
            Spread::of_mean((square / (count - 1.0).max(1.0)).sqrt(), count)
        } else {
            self.samples.first().and_then(|sample| sample.spread)
        };
        Sample { value, spread }
    }
}

/// Returns the figures of all cases, in the order of the record, each with the case's JSON without the number of its repetition.
fn figures(columns: &[Column], measured: &[Measured]) -> Vec<(String, Figures)> {
    let mut cases: Vec<(String, Figures)> = Vec::new();
    let mut indices = HashMap::new();
    for Measured { case, rows } in measured {
        let identity = selected_fields(case, |name, _| *role(columns, name, None) != Role::Round);
        let index = *indices.entry(identity.clone()).or_insert_with(|| {
            cases.push((identity, Figures::new()));
            cases.len() - 1
        });
        let mut seen = HashMap::<String, usize>::new();
        for row in rows {
            let key = selected_fields(row, |name, value| *role(columns, name, Some(value)) == Role::Key);
            let number = seen.entry(key.clone()).or_default();
            for (column, (name, value)) in row.iter().enumerate() {
                let (Some(value), role) = (value.as_f64(), role(columns, name, Some(value))) else { continue };
                if matches!(role, Role::Key | Role::Round | Role::Detail) {
                    continue;
                }
                let spread = spread(role, value, case, row);
                let position = Position { row: key.clone(), index: *number, column, name: name.clone() };
                let unit = columns.iter().find(|column| column.name == *name).map_or("", |column| &column.unit);
                let new = || Figure { unit: unit.to_owned(), role: role.clone(), samples: Vec::new() };
                cases[index].1.entry(position).or_insert_with(new).samples.push(Sample { value, spread });
            }
            *number += 1;
        }
    }
    cases
}

/// Returns the fields that `is_wanted` selects as JSON, or an empty text if there are none.
fn selected_fields(fields: &Fields, is_wanted: impl Fn(&str, &Value) -> bool) -> String {
    let mut wanted = fields.clone();
    wanted.retain(|name, value| is_wanted(name, value));
    if wanted.is_empty() { String::new() } else { Value::Object(wanted).to_string() }
}

/// Returns the role of a field. `value` is `None` for a field of a case. A field that is not described is a key if it belongs
/// to the case or is not a number, and exact otherwise.
fn role<'a>(columns: &'a [Column], name: &str, value: Option<&Value>) -> &'a Role {
    let described = columns.iter().find(|column| column.name == name).map(|column| &column.role);
    described.unwrap_or(if value.is_some_and(|value| value.is_number() || value.is_null()) { &Role::Exact } else { &Role::Key })
}

/// Returns the spread of a value, or `None` if it is unknown or must be estimated from the repetitions.
fn spread(role: &Role, value: f64, case: &Fields, row: &Fields) -> Option<Spread> {
    let field = |name: &str| row.get(name).or_else(|| case.get(name))?.as_f64();
    let known = |error| Some(Spread { error, freedom: None });
    match role {
        Role::Exact => Some(Spread::EXACT),
        // One event more or less is always possible.
        Role::Share { of } => field(of).and_then(|events| known(((value * (1.0 - value) + 1.0 / events) / events).sqrt())),
        Role::Estimate { low, high } => known((field(high)? - field(low)?) / 2.0 / DEVIATIONS),
        Role::Mean { least, most, of } => Spread::of_range(field(least)?, field(most)?, field(of)?),
        // Too few rounds were undisturbed. The spread of disturbed rounds does not show how much the disturbance added.
        Role::Median { .. } if is_disturbed(row) => None,
        Role::Median { low, high, of } => Spread::of_median(field(low)?, field(high)?, field(of)?),
        Role::Time | Role::Key | Role::Round | Role::Detail => None,
    }
}

#[cfg(test)]
mod tests {
    //! These tests compare made-up records.

    use serde_json::json;
    use tempfile::TempDir;

    use super::*;
    use crate::record::{ResultFiles, tests::made_up};

    /// Returns a folder with a record of a made-up experiment.
    fn folder(measured: &Value) -> TempDir {
        let columns = [
            ("size", Role::Key),
            ("round", Role::Round),
            ("bytes", Role::Exact),
            ("rate", Role::estimate("low", "high")),
            ("low", Role::Detail),
            ("high", Role::Detail),
            ("ns", Role::Time),
            ("median", Role::median("q1", "q3", "rounds")),
            ("q1", Role::Detail),
            ("q3", Role::Detail),
            ("rounds", Role::Detail),
            ("disturbed", Role::Detail),
        ];
        let columns = columns.map(|(name, role)| Column::new(name, "", "").compared(role));
        let folder = TempDir::new().unwrap();
        ResultFiles::new(folder.path(), "own").write(&made_up("own", &columns, measured)).unwrap();
        folder
    }

    fn compare(a: &Value, b: &Value) -> Comparison {
        Comparison::new(folder(a).path(), folder(b).path(), 0.0).unwrap()
    }

    /// Returns the verdict on the only figure that the two rows have.
    #[track_caller]
    fn verdict(a: &Value, b: &Value) -> Verdict {
        let measured = |row: &Value| json!([{ "case": { "size": 1 }, "rows": [row] }]);
        let comparison = compare(&measured(a), &measured(b));
        let [figure] = &comparison.experiments[0].figures[..] else { panic!("{comparison:?}") };
        figure.verdict
    }

    #[test]
    fn exact_figures_must_be_equal_and_others_may_differ_by_chance() {
        let bytes = |bytes: u64| json!({ "bytes": bytes });
        assert_eq!(verdict(&bytes(1000), &bytes(1000)), Verdict::Equal);
        assert_eq!(verdict(&bytes(1000), &bytes(1001)), Verdict::Different);
        let rate = |rate: f64| json!({ "rate": rate, "low": rate - 0.01, "high": rate + 0.01 });
        // The interval of a difference is √2 times as wide as those of the two rates.
        assert_eq!(verdict(&rate(0.1), &rate(0.113)), Verdict::Equal);
        assert_eq!(verdict(&rate(0.1), &rate(0.115)), Verdict::Different);
        let time = |median: f64, disturbed: bool| json!({ "median": median, "q1": median - 0.1, "q3": median + 0.1, "rounds": 9, "disturbed": disturbed });
        assert_eq!(verdict(&time(10.0, false), &time(20.0, false)), Verdict::Different);
        // The quartiles of disturbed rounds say nothing about the undisturbed time.
        assert_eq!(verdict(&time(10.0, false), &time(20.0, true)), Verdict::Unknown);
        // The spread of a single time is unknown.
        assert_eq!(verdict(&json!({ "ns": 10.0 }), &json!({ "ns": 10.0 })), Verdict::Equal);
        assert_eq!(verdict(&json!({ "ns": 10.0 }), &json!({ "ns": 20.0 })), Verdict::Unknown);
    }

    /// Returns the results of four rounds with these times.
    fn rounds(times: [f64; 4]) -> Value {
        let round = |(round, ns): (usize, f64)| json!({ "case": { "size": 1, "round": round }, "rows": [{ "ns": ns }] });
        times.into_iter().enumerate().map(round).collect()
    }

    #[test]
    fn repetitions_are_samples_of_one_case() {
        let a = rounds([10.0, 10.2, 9.8, 10.1]);
        let one = |b: [f64; 4]| {
            let comparison = compare(&a, &rounds(b));
            assert_eq!((comparison.experiments[0].cases, comparison.experiments[0].figures.len()), (1, 1));
            comparison.experiments[0].figures[0].verdict
        };
        assert_eq!(one([10.2, 10.0, 10.3, 10.1]), Verdict::Equal);
        assert_eq!(one([12.0, 12.2, 11.8, 12.1]), Verdict::Different);
        // With a tolerance of 25 %, these times are equal.
        let b = rounds([12.0, 12.2, 11.8, 12.1]);
        let comparison = Comparison::new(folder(&a).path(), folder(&b).path(), 0.25).unwrap();
        assert_eq!(comparison.experiments[0].figures[0].verdict, Verdict::Equal);
    }

    #[test]
    fn cases_of_one_folder_are_listed_and_disjoint_folders_are_an_error() {
        let measured = |sizes: &[u64]| -> Value {
            sizes.iter().map(|size| json!({ "case": { "size": size }, "rows": [{ "bytes": size }] })).collect()
        };
        let comparison = compare(&measured(&[1, 2, 3]), &measured(&[3, 4]));
        let own = &comparison.experiments[0];
        assert_eq!((own.cases, own.figures.len()), (1, 1));
        assert_eq!(
            own.alone,
            [vec![String::from("{\"size\":1}"), String::from("{\"size\":2}")], vec![String::from("{\"size\":4}")]]
        );
        let error = Comparison::new(folder(&measured(&[1])).path(), folder(&measured(&[2])).path(), 0.0).unwrap_err();
        assert!(error.to_string().contains("no case in common"), "{error}");
    }
}
