//! Compares the results of two folders: two versions, or two machines.

mod noise;

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use anyhow::bail;
use serde::Serialize;
use serde_json::Value;

use self::noise::{Sample, Spread, half_interval};
use crate::{
    Column, Fields, Measured, Role,
    experiments::times::is_disturbed,
    record::{self, Record},
    report,
    statistics::DEVIATIONS,
};

/// What two folders of results have in common, and how it differs.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The two folders.
    pub folders: [PathBuf; 2],
    /// The experiments that both have.
    pub experiments: Vec<Compared>,
    /// The experiments that only one of them has.
    pub alone: [Vec<String>; 2],
}

/// An experiment that both folders have.
#[derive(Debug, Serialize)]
pub struct Compared {
    /// Its name.
    pub name: String,
    /// What differs between the two runs, such as the machine, with the values of both.
    pub runs: Vec<(String, [String; 2])>,
    /// The number of cases that both have.
    pub cases: usize,
    /// The cases that only one of them has, as JSON.
    pub alone: [Vec<String>; 2],
    /// Every figure of the cases that both have.
    pub figures: Vec<Difference>,
}

/// A figure of both runs.
#[derive(Debug, Serialize)]
pub struct Difference {
    /// The case, as JSON.
    pub case: String,
    /// What tells the row from others of the case, as JSON; empty if there is nothing.
    pub row: String,
    /// The name of the column.
    pub column: String,
    /// Its unit, if it has one.
    pub unit: String,
    /// The value in the first folder.
    pub a: f64,
    /// The value in the second folder.
    pub b: f64,
    /// Half the width of the confidence interval of b − a, which is one of 99 % for all figures together. 0 if both are exact,
    /// `None` if each was measured once only.
    pub half_interval: Option<f64>,
    /// What that means.
    pub verdict: Verdict,
    #[serde(skip)]
    is_time: bool,
    #[serde(skip)]
    spreads: [Option<Spread>; 2],
}

/// Whether two figures differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// They are the same, or chance explains the difference.
    Equal,
    /// Chance does not explain the difference.
    Different,
    /// They differ, but were measured once only, so that their spread is not known.
    Unknown,
}

impl Comparison {
    /// Compares the results in two folders. Times that differ by no more than this share of the lower one are equal.
    ///
    /// # Errors
    /// If a folder or a record cannot be read; if the two have no case in common.
    pub fn new(a: &Path, b: &Path, time_tolerance: f64) -> anyhow::Result<Self> {
        let [in_a, in_b] = [by_name(a)?, by_name(b)?];
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
        let alone = [without(&in_a, &in_b), without(&in_b, &in_a)];
        Ok(Self { folders: [a.to_owned(), b.to_owned()], experiments, alone })
    }

    /// The figures with this verdict.
    pub fn with(&self, verdict: Verdict) -> impl Iterator<Item = &Difference> {
        self.experiments.iter().flat_map(move |experiment| experiment.with(verdict))
    }
}

impl Compared {
    /// The figures with this verdict.
    pub fn with(&self, verdict: Verdict) -> impl Iterator<Item = &Difference> {
        self.figures.iter().filter(move |figure| figure.verdict == verdict)
    }
}

impl Difference {
    /// b − a, as a share of a. Infinite if a is 0 and b is not.
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

/// The records in a folder, by the names of their experiments.
fn by_name(folder: &Path) -> anyhow::Result<Vec<(String, Record)>> {
    let records = record::all(folder, &[])?;
    if records.is_empty() {
        bail!("{}: no results here; give a folder that `koel experiment` has written", folder.display());
    }
    Ok(records.into_iter().map(|record| (record.run.experiment.clone(), record)).collect())
}

fn find<'a, T>(named: &'a [(String, T)], name: &str) -> Option<&'a T> {
    named.iter().find(|one| one.0 == name).map(|one| &one.1)
}

/// The names that only the first list has.
fn without<T>(these: &[(String, T)], those: &[(String, T)]) -> Vec<String> {
    these.iter().map(|one| &one.0).filter(|name| find(those, name).is_none()).cloned().collect()
}

/// An experiment of both folders, before any figure is judged. A value is missing in one where a case went another way, which
/// shows elsewhere.
fn compared(name: &str, records: [&Record; 2]) -> Compared {
    let [a, b] = records.map(|record| figures(&record.columns, &record.measured));
    let in_both: Vec<_> = a.iter().filter_map(|(case, in_a)| Some((case, in_a, find(&b, case)?))).collect();
    let cases = in_both.len();
    let mut figures = Vec::new();
    for (case, in_a, in_b) in in_both {
        for (of, figure) in in_a {
            let Some(other) = in_b.get(of) else { continue };
            let (a, b) = (figure.sample(), other.sample());
            figures.push(Difference {
                case: case.clone(),
                row: of.row.clone(),
                column: of.name.clone(),
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
    let runs = report::facts_apart(records.map(|record| &record.run));
    Compared { name: name.to_owned(), runs, cases, alone: [without(&a, &b), without(&b, &a)], figures }
}

/// What a figure is of: the row, its place among the rows with the same key, and the column, by its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Of {
    row: String,
    place: usize,
    column: usize,
    name: String,
}

type Figures = BTreeMap<Of, Figure>;

/// A figure: one value, or those of all repetitions of a case.
#[derive(Clone, Debug)]
struct Figure {
    unit: String,
    role: Role,
    samples: Vec<Sample>,
}

impl Figure {
    /// The mean of all repetitions. Times have the spread that shows in them; all else is the same in each.
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

/// The figures of all cases, by the case's JSON without the number of its repetition, in the order of the record.
fn figures(columns: &[Column], measured: &[Measured]) -> Vec<(String, Figures)> {
    let mut cases: Vec<(String, Figures)> = Vec::new();
    let mut places = HashMap::new();
    for Measured { case, rows } in measured {
        let identity = part(case, |name, _| *role(columns, name, None) != Role::Round);
        let place = *places.entry(identity.clone()).or_insert_with(|| {
            cases.push((identity, Figures::new()));
            cases.len() - 1
        });
        let mut seen = HashMap::<String, usize>::new();
        for row in rows {
            let key = part(row, |name, value| *role(columns, name, Some(value)) == Role::Key);
            let number = seen.entry(key.clone()).or_default();
            for (column, (name, value)) in row.iter().enumerate() {
                let (Some(value), role) = (value.as_f64(), role(columns, name, Some(value))) else { continue };
                if matches!(role, Role::Key | Role::Round | Role::Detail) {
                    continue;
                }
                let spread = spread(role, value, case, row);
                let of = Of { row: key.clone(), place: *number, column, name: name.clone() };
                let unit = columns.iter().find(|column| column.name == *name).map_or("", |column| &column.unit);
                let new = || Figure { unit: unit.to_owned(), role: role.clone(), samples: Vec::new() };
                cases[place].1.entry(of).or_insert_with(new).samples.push(Sample { value, spread });
            }
            *number += 1;
        }
    }
    cases
}

/// Some of the fields, as JSON; empty if there are none.
fn part(fields: &Fields, is_wanted: impl Fn(&str, &Value) -> bool) -> String {
    let mut wanted = fields.clone();
    wanted.retain(|name, value| is_wanted(name, value));
    if wanted.is_empty() { String::new() } else { Value::Object(wanted).to_string() }
}

/// The role of a field, of a row if it has a value. A field that is not described is a key if it is one of the case or not a number.
fn role<'a>(columns: &'a [Column], name: &str, value: Option<&Value>) -> &'a Role {
    let described = columns.iter().find(|column| column.name == name).map(|column| &column.role);
    described.unwrap_or(if value.is_some_and(|value| value.is_number() || value.is_null()) { &Role::Exact } else { &Role::Key })
}

/// The spread of a value. `None` if it is unknown, or shows in the repetitions.
fn spread(role: &Role, value: f64, case: &Fields, row: &Fields) -> Option<Spread> {
    let field = |name: &str| row.get(name).or_else(|| case.get(name))?.as_f64();
    let known = |error| Some(Spread { error, freedom: None });
    match role {
        Role::Exact => Some(Spread::EXACT),
        // One event more or less is always possible.
        Role::Share { of } => field(of).and_then(|events| known(((value * (1.0 - value) + 1.0 / events) / events).sqrt())),
        Role::Estimate { low, high } => known((field(high)? - field(low)?) / 2.0 / DEVIATIONS),
        Role::Mean { least, most, of } => Spread::of_range(field(least)?, field(most)?, field(of)?),
        // Too few of its rounds were undisturbed: their spread does not say how far off they are.
        Role::Median { .. } if is_disturbed(row) => None,
        Role::Median { low, high, of } => Spread::of_median(field(low)?, field(high)?, field(of)?),
        Role::Time | Role::Key | Role::Round | Role::Detail => None,
    }
}

#[cfg(test)]
mod tests {
    //! Comparisons of made-up records.

    use serde_json::json;
    use tempfile::TempDir;

    use super::*;
    use crate::record::{Place, tests::made_up};

    /// A folder with a record of an experiment of its own.
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
        Place::new(folder.path(), "own").write(made_up("own", &columns, measured)).unwrap();
        folder
    }

    fn compare(a: &Value, b: &Value) -> Comparison {
        Comparison::new(folder(a).path(), folder(b).path(), 0.0).unwrap()
    }

    /// The verdict on the only figure that the two rows have.
    #[track_caller]
    fn verdict(a: &Value, b: &Value) -> Verdict {
        let of = |row: &Value| json!([{ "case": { "size": 1 }, "rows": [row] }]);
        let comparison = compare(&of(a), &of(b));
        let [figure] = &comparison.experiments[0].figures[..] else { panic!("{comparison:?}") };
        figure.verdict
    }

    #[test]
    fn exact_figures_must_be_the_same_and_others_may_differ_by_chance() {
        let bytes = |bytes: u64| json!({ "bytes": bytes });
        assert_eq!(verdict(&bytes(1000), &bytes(1000)), Verdict::Equal);
        assert_eq!(verdict(&bytes(1000), &bytes(1001)), Verdict::Different);
        let rate = |rate: f64| json!({ "rate": rate, "low": rate - 0.01, "high": rate + 0.01 });
        // The interval of a difference is wider than those of the two, by √2.
        assert_eq!(verdict(&rate(0.1), &rate(0.113)), Verdict::Equal);
        assert_eq!(verdict(&rate(0.1), &rate(0.115)), Verdict::Different);
        let time = |median: f64, disturbed: bool| json!({ "median": median, "q1": median - 0.1, "q3": median + 0.1, "rounds": 9, "disturbed": disturbed });
        assert_eq!(verdict(&time(10.0, false), &time(20.0, false)), Verdict::Different);
        // The quartiles of disturbed rounds say nothing about what the time would be without the disturbance.
        assert_eq!(verdict(&time(10.0, false), &time(20.0, true)), Verdict::Unknown);
        // One time says nothing about its spread.
        assert_eq!(verdict(&json!({ "ns": 10.0 }), &json!({ "ns": 10.0 })), Verdict::Equal);
        assert_eq!(verdict(&json!({ "ns": 10.0 }), &json!({ "ns": 20.0 })), Verdict::Unknown);
    }

    /// Times of four rounds each.
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
        // So do these, but not by more than is allowed.
        let b = rounds([12.0, 12.2, 11.8, 12.1]);
        let comparison = Comparison::new(folder(&a).path(), folder(&b).path(), 0.25).unwrap();
        assert_eq!(comparison.experiments[0].figures[0].verdict, Verdict::Equal);
    }

    #[test]
    fn cases_of_one_folder_are_named_and_nothing_in_common_is_an_error() {
        let of = |sizes: &[u64]| -> Value {
            sizes.iter().map(|size| json!({ "case": { "size": size }, "rows": [{ "bytes": size }] })).collect()
        };
        let comparison = compare(&of(&[1, 2, 3]), &of(&[3, 4]));
        let own = &comparison.experiments[0];
        assert_eq!((own.cases, own.figures.len()), (1, 1));
        assert_eq!(
            own.alone,
            [vec![String::from("{\"size\":1}"), String::from("{\"size\":2}")], vec![String::from("{\"size\":4}")]]
        );
        let error = Comparison::new(folder(&of(&[1])).path(), folder(&of(&[2])).path(), 0.0).unwrap_err();
        assert!(error.to_string().contains("no case in common"), "{error}");
    }
}
