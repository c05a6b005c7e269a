//! Compares the results of two folders: two versions, or two machines.

mod charts;
mod figures;
mod noise;
mod page;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Serialize;

pub use self::page::FILE;
use self::{
    figures::{Figure, Figures},
    noise::{Judge, Spread},
};
use crate::{
    chart,
    record::{self, Results},
    report,
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
    #[serde(skip)]
    records: Vec<[Results; 2]>,
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
    /// The value in the first folder. Rows that a folder does not have count nothing.
    pub a: f64,
    /// The value in the second folder.
    pub b: f64,
    /// Half the width of the confidence interval of b − a, which is one of 99 % for all figures together. 0 if both are exact,
    /// `None` if each was measured once only.
    pub half_interval: Option<f64>,
    /// What that means.
    pub verdict: Verdict,
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
        let [in_a, in_b] = [read(a)?, read(b)?];
        let without = |these: &[Results], those: &[Results]| {
            let alone = these.iter().filter(|one| those.iter().all(|other| other.name != one.name));
            alone.map(|one| one.name.clone()).collect::<Vec<_>>()
        };
        let alone = [without(&in_a, &in_b), without(&in_b, &in_a)];
        let mut in_b: Vec<_> = in_b.into_iter().map(Some).collect();
        let mut records = Vec::new();
        for one in in_a {
            let other = in_b.iter_mut().find(|other| other.as_ref().is_some_and(|other| other.name == one.name));
            records.extend(other.and_then(Option::take).map(|other| [one, other]));
        }
        let pairs: Vec<_> = records.iter().map(pairs).collect();
        let figures = pairs.iter().flat_map(|pair| &pair.figures).filter(|figure| figure.is_tested()).count();
        let mut judge = Judge::new(figures);
        let experiments: Vec<_> = pairs.into_iter().map(|pair| pair.judged(&mut judge, time_tolerance)).collect();
        if experiments.iter().all(|experiment| experiment.cases == 0) {
            bail!(
                "{} and {} have no case in common; measure the same experiments with the same options into both",
                a.display(),
                b.display()
            );
        }
        Ok(Self { folders: [a.to_owned(), b.to_owned()], experiments, alone, records })
    }

    /// The figures with this verdict.
    pub fn with(&self, verdict: Verdict) -> impl Iterator<Item = &Difference> {
        self.experiments.iter().flat_map(move |experiment| experiment.with(verdict))
    }

    /// Writes charts with the results of both, `compare.csv` and `compare.json` with all figures, and a page with all of it,
    /// [`FILE`], into a folder.
    ///
    /// # Errors
    /// If the folder is one of the two; if a file cannot be written.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(folder).with_context(|| format!("the folder {} could not be created", folder.display()))?;
        let whole = |path: &Path| path.canonicalize().ok();
        if self.folders.iter().any(|one| whole(one) == whole(folder)) {
            bail!("--out {}: is one of the folders that are compared; choose another --out", folder.display());
        }
        let mut drawn = Vec::new();
        for records in &self.records {
            let mut pictures = Vec::new();
            for chart in charts::overlaid(records)? {
                let svg = chart::draw(&chart);
                record::replace(&folder.join(format!("compare-{}-{}.svg", records[0].name, chart.file)), svg.as_bytes())?;
                pictures.push((chart, svg));
            }
            drawn.push(pictures);
        }
        let mut csv = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
        csv.write_record(["experiment", "case", "row", "column", "unit", "a", "b", "half_interval", "verdict"])?;
        for experiment in &self.experiments {
            for figure in &experiment.figures {
                csv.serialize((&experiment.name, figure))?;
            }
        }
        record::replace(&folder.join("compare.csv"), &csv.into_inner()?)?;
        record::replace(&folder.join("compare.json"), serde_json::to_string_pretty(self)?.as_bytes())?;
        record::replace(&folder.join(FILE), page::page(self, &drawn).into_string().as_bytes())
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
}

/// The results in a folder.
fn read(folder: &Path) -> anyhow::Result<Vec<Results>> {
    let results = record::all(folder)?;
    if results.is_empty() {
        bail!("{}: no results here; give a folder that `koel experiment` has written", folder.display());
    }
    Ok(results)
}

/// An experiment of both folders, before any figure is judged.
struct Pair {
    compared: Compared,
    figures: Vec<Both>,
}

/// A figure in both folders.
struct Both {
    case: String,
    row: String,
    column: String,
    a: Option<Figure>,
    b: Option<Figure>,
}

impl Both {
    fn any(&self) -> Option<&Figure> {
        self.a.as_ref().or(self.b.as_ref())
    }

    /// Whether chance has a part in it.
    fn is_tested(&self) -> bool {
        let has_error = |figure: &Option<Figure>| {
            figure.as_ref().is_some_and(|figure| matches!(figure.sample().spread, Spread::Error { .. }))
        };
        has_error(&self.a) || has_error(&self.b)
    }
}

fn pairs(records: &[Results; 2]) -> Pair {
    let [a, b] = records.each_ref().map(|results| figures::figures(&results.record.columns, &results.record.measured));
    let known = |cases: &[(String, Figures)], case: &str| cases.iter().any(|other| other.0 == case);
    let without = |these: &[(String, Figures)], those: &[(String, Figures)]| {
        let alone = these.iter().filter(|one| !known(those, &one.0));
        alone.map(|one| one.0.clone()).collect::<Vec<_>>()
    };
    let alone = [without(&a, &b), without(&b, &a)];
    let mut others: std::collections::HashMap<_, _> = b.into_iter().collect();
    let mut figures = Vec::new();
    let mut cases = 0;
    for (case, in_a) in a {
        let Some(mut in_b) = others.remove(&case) else { continue };
        cases += 1;
        let both = |of: figures::Of, a, b| Both { case: case.clone(), row: of.row, column: of.name, a, b };
        for (of, figure) in in_a {
            let other = in_b.remove(&of);
            figures.push(both(of, Some(figure), other));
        }
        figures.extend(in_b.into_iter().map(|(of, figure)| both(of, None, Some(figure))));
    }
    let runs = report::facts_apart(records.each_ref().map(|results| &results.record.run));
    let compared = Compared { name: records[0].name.clone(), runs, cases, alone, figures: Vec::new() };
    Pair { compared, figures }
}

impl Pair {
    fn judged(self, judge: &mut Judge, time_tolerance: f64) -> Compared {
        let figures = self.figures.into_iter().filter_map(|both| judged(both, judge, time_tolerance));
        Compared { figures: figures.collect(), ..self.compared }
    }
}

fn judged(both: Both, judge: &mut Judge, time_tolerance: f64) -> Option<Difference> {
    let any = both.any()?;
    let (unit, is_time) = (any.unit.clone(), any.is_time());
    // What was not seen was counted: no times. Other values are missing where a case went another way, which shows elsewhere.
    let missing = || noise::Sample { value: 0.0, spread: Spread::Exact };
    let counts = any.role == crate::experiment::Role::Count;
    let sample = |figure: &Option<Figure>| figure.as_ref().map(Figure::sample).or_else(|| counts.then(missing));
    let (a, b) = (sample(&both.a)?, sample(&both.b)?);
    let half_interval = judge.half(a.spread, b.spread);
    let apart = (b.value - a.value).abs();
    let verdict = match half_interval {
        _ if apart <= 1e-12 * a.value.abs().max(b.value.abs()) => Verdict::Equal,
        _ if is_time && apart <= time_tolerance * a.value.min(b.value) => Verdict::Equal,
        None => Verdict::Unknown,
        Some(half) if apart <= half => Verdict::Equal,
        Some(_) => Verdict::Different,
    };
    let Both { case, row, column, .. } = both;
    Some(Difference { case, row, column, unit, a: a.value, b: b.value, half_interval, verdict })
}
