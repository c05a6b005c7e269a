//! Defines an experiment: its columns, its cases, the measurement of a case, and the findings from all measurements.

use std::{borrow::Cow, iter};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{Chart, Interrupt};

/// How much a run measures, and with which seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// True for smaller and fewer tables, which take minutes instead of an hour.
    pub quick: bool,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The greatest number of slots of a table, if there is a limit.
    pub max_slots: Option<u64>,
}

impl Scope {
    /// Returns the first value for a quick run, and the second for a full one.
    #[must_use]
    pub fn choose<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Returns this number of slots, or the limit if that is lower.
    #[must_use]
    pub fn at_most(&self, slots: u64) -> u64 {
        self.max_slots.map_or(slots, |most| slots.min(most))
    }

    /// Returns those of these table sizes that are within the limit.
    #[must_use]
    pub fn allowed(&self, slots: &[u64]) -> Vec<u64> {
        slots.iter().copied().filter(|&slots| self.at_most(slots) == slots).collect()
    }
}

/// The fields of a case or of a row, by name: a JSON object, as in files.
pub type Fields = Map<String, Value>;

/// An experiment: cases to measure, and the findings from the measurements.
///
/// # Example
/// A custom experiment about hash functions. Its `main` runs it as `koel experiment` runs koel's experiments
/// (`lab/examples/hashers.rs`):
/// ```no_run
#[doc = include_str!("../examples/hashers.rs")]
/// ```
pub trait Experiment: Sync {
    /// The parameters of one measurement: a struct with named fields. Its JSON identifies the case in files, and determines its
    /// seed. Cases with the same JSON are measured once.
    type Case: Serialize + DeserializeOwned;

    /// One of the results of a case: a struct with named fields. Its floats must be finite.
    type Row: Serialize + DeserializeOwned;

    /// Describes the experiment.
    fn about(&self) -> About;

    /// Returns the cases, in the order of the results. Cases that belong together should be adjacent.
    fn cases(&self, scope: &Scope) -> Vec<Self::Case>;

    /// Estimates the time that a case takes, in any unit. The progress bar uses it, and the longest cases are measured first.
    fn effort(&self, _: &Self::Case) -> u64 {
        1
    }

    /// Estimates the memory that a case takes, in bytes; 0 if it is negligible. A plan is refused if a case needs more memory
    /// than is available.
    fn memory(&self, _: &Self::Case) -> u64 {
        0
    }

    /// Measures one case. All random numbers must come from the seed.
    ///
    /// # Errors
    /// [`Interrupted`](crate::Interrupted), or an error after which it is useless to measure other cases.
    fn measure(&self, case: &Self::Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Self::Row>>;

    /// Returns the charts and tables of the results. Cases may be missing.
    fn findings(&self, measured: &[Measured<Self::Case, Self::Row>]) -> Findings;
}

/// An experiment whose cases and rows are fields, as in files. The code that runs experiments works on these, so it is compiled
/// once. Only the adapter below is compiled for each experiment.
pub(crate) trait Untyped: Sync {
    fn about(&self) -> About;
    fn cases(&self, scope: &Scope) -> anyhow::Result<Vec<Planned>>;
    fn measure(&self, case: &Fields, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Fields>>;
    fn findings(&self, measured: &[Measured]) -> anyhow::Result<Findings>;
}

/// A case of a plan.
pub(crate) struct Planned {
    pub(crate) case: Fields,
    /// The JSON of the case, which identifies it.
    pub(crate) key: String,
    pub(crate) effort: u64,
    pub(crate) memory: u64,
}

impl<E: Experiment> Untyped for E {
    fn about(&self) -> About {
        Experiment::about(self)
    }

    fn cases(&self, scope: &Scope) -> anyhow::Result<Vec<Planned>> {
        let planned = |case| {
            let (effort, memory, case) = (self.effort(&case), self.memory(&case), fields(&case)?);
            Ok(Planned { key: key(&case), case, effort, memory })
        };
        Experiment::cases(self, scope).into_iter().map(planned).collect()
    }

    fn measure(&self, case: &Fields, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Fields>> {
        let rows = Experiment::measure(self, &E::Case::deserialize(case)?, seed, interrupt)?;
        let rows = rows.iter().map(fields).collect::<anyhow::Result<Vec<_>>>()?;
        // A table of both would have one column for them.
        match rows.iter().flat_map(Fields::keys).find(|name| case.contains_key(*name)) {
            Some(name) => bail!("a case and its row both have a field `{name}`; give one of them another name"),
            None => Ok(rows),
        }
    }

    fn findings(&self, measured: &[Measured]) -> anyhow::Result<Findings> {
        Ok(Experiment::findings(self, &typed(measured)?))
    }
}

/// Returns the JSON of a case, which identifies it.
pub(crate) fn key(case: &Fields) -> String {
    serde_json::to_string(case).unwrap_or_default()
}

/// Returns the fields of a struct, or an error if they have no names or cannot be read back. (JSON cannot represent all floats.)
fn fields<T: Serialize + DeserializeOwned>(value: &T) -> anyhow::Result<Fields> {
    match serde_json::to_value(value)? {
        Value::Object(fields) => {
            let read = T::deserialize(&fields);
            read.with_context(|| format!("{}: this result cannot be read back", Value::from(fields.clone())))?;
            Ok(fields)
        }
        other => bail!("a case or a row must have named fields, but {other} has none"),
    }
}

/// Converts results to the types of an experiment. Returns an error if the fields do not match.
pub(crate) fn typed<C: DeserializeOwned, R: DeserializeOwned>(measured: &[Measured]) -> anyhow::Result<Vec<Measured<C, R>>> {
    let one = |Measured { case, rows }: &Measured| {
        let rows = rows.iter().map(R::deserialize).collect::<Result<_, _>>()?;
        Ok(Measured { case: C::deserialize(case)?, rows })
    };
    measured.iter().map(one).collect()
}

/// The description of an experiment.
#[derive(Clone, Debug)]
pub struct About {
    /// The name on the command line, and the beginning of file names.
    pub name: &'static str,
    /// The title in the report.
    pub title: &'static str,
    /// A few sentences about what is measured, and how.
    pub text: &'static str,
    /// The columns of the table, in order: the fields of a case, then those of a row. They are a part of the record, for
    /// programs that read it, such as `koel experiment compare`. A field that is not described here has the role
    /// [`Key`](Role::Key) if it belongs to the case or is a text, and [`Exact`](Role::Exact) otherwise.
    pub columns: Vec<Column>,
    /// True if the experiment measures time. Its cases then run one at a time, and a run cannot continue on another machine.
    pub is_timed: bool,
    /// The advice to the user if a case takes more memory than is available.
    pub memory_remedy: &'static str,
}

impl About {
    /// Returns the description of an experiment that measures no time and describes no columns.
    #[must_use]
    pub const fn new(name: &'static str, title: &'static str, text: &'static str) -> Self {
        let memory_remedy = "--max-slots leaves out the largest tables";
        Self { name, title, text, columns: Vec::new(), is_timed: false, memory_remedy }
    }
}

/// A case and its results: as fields, as in files, or in the types of an experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured<C = Fields, R = Fields> {
    /// The case.
    pub case: C,
    /// The results of the case.
    pub rows: Vec<R>,
}

impl<C, R> Measured<C, R> {
    /// Returns the first row, which is the only one in many experiments.
    #[must_use]
    pub fn row(&self) -> Option<&R> {
        self.rows.first()
    }
}

/// A column of an experiment's table: a field of its cases or of its rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// The field's name.
    pub name: Cow<'static, str>,
    /// The unit; empty for text and for plain numbers.
    pub unit: Cow<'static, str>,
    /// The meaning of the values.
    pub about: Cow<'static, str>,
    /// The rule by which values of two runs are compared.
    pub role: Role,
}

/// The rule by which the values of a column in two runs are compared. Names in it refer to other columns, of the row or its case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// An identifying value: a field of the case, or one that distinguishes its rows.
    Key,
    /// A field of the case that numbers its repetitions. Cases that differ only in this field are samples of one case.
    Round,
    /// A value that follows from the case, so any difference counts.
    Exact,
    /// A value that is not compared, because its spread is unknown or another column has the same information.
    Detail,
    /// The share of random events in which something happened.
    Share {
        /// The column that counts the events.
        of: Cow<'static, str>,
    },
    /// An estimate whose 99 % confidence interval is in two other columns.
    Estimate {
        /// The column of its lower end.
        low: Cow<'static, str>,
        /// The column of its upper end.
        high: Cow<'static, str>,
    },
    /// The mean of several values.
    Mean {
        /// The column of the least of them.
        least: Cow<'static, str>,
        /// The column of the greatest of them.
        most: Cow<'static, str>,
        /// The column that counts them.
        of: Cow<'static, str>,
    },
    /// The median of several times. Two other columns have the quartiles.
    Median {
        /// The column of the lower quartile.
        low: Cow<'static, str>,
        /// The column of the upper quartile.
        high: Cow<'static, str>,
        /// The column that counts the times.
        of: Cow<'static, str>,
    },
    /// A single time. Its spread follows from the repetitions of the case.
    Time,
}

impl Column {
    /// Returns a column that is not compared.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>, unit: &'static str, about: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), unit: unit.into(), about: about.into(), role: Role::Detail }
    }

    /// Returns a column that identifies a case or a row.
    #[must_use]
    pub fn key(name: &'static str, unit: &'static str, about: &'static str) -> Self {
        Self { role: Role::Key, ..Self::new(name, unit, about) }
    }

    /// Sets the role of the column.
    #[must_use]
    pub fn compared(self, role: Role) -> Self {
        Self { role, ..self }
    }
}

impl Role {
    /// Returns the role of a share of events. The column `of` counts the events.
    #[must_use]
    pub fn share(of: &'static str) -> Self {
        Self::Share { of: of.into() }
    }

    /// Returns the role of an estimate. The columns `low` and `high` have its 99 % confidence interval.
    #[must_use]
    pub fn estimate(low: &'static str, high: &'static str) -> Self {
        Self::Estimate { low: low.into(), high: high.into() }
    }

    /// Returns the role of a mean. The columns `least` and `most` have the extreme values, and `of` counts the values.
    #[must_use]
    pub fn mean(least: &'static str, most: &'static str, of: &'static str) -> Self {
        Self::Mean { least: least.into(), most: most.into(), of: of.into() }
    }

    /// Returns the role of a median. The columns `low` and `high` have the quartiles, and `of` counts the times.
    #[must_use]
    pub fn median(low: impl Into<Cow<'static, str>>, high: impl Into<Cow<'static, str>>, of: &'static str) -> Self {
        Self::Median { low: low.into(), high: high.into(), of: of.into() }
    }
}

/// The charts and tables of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The charts.
    pub charts: Vec<Chart>,
    /// The tables.
    pub tables: Vec<Table>,
    /// The warnings that precede the figures in the report, such as that times were disturbed: one or more sentences each.
    pub warnings: Vec<String>,
}

/// A small table for the report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    /// The caption.
    pub caption: String,
    /// The names of the columns.
    pub header: Vec<String>,
    /// The cells, row by row.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table of these rows.
    #[must_use]
    pub fn new(caption: &str, header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        let header = header.iter().map(|&name| name.to_owned()).collect();
        Self { caption: caption.to_owned(), header, rows: rows.into_iter().collect() }
    }

    /// Formats the header and the rows in Markdown. The first column is aligned to the left, and all others to the right.
    #[must_use]
    pub fn markdown(&self) -> String {
        let rule = ["---"].into_iter().chain(iter::repeat("---:")).take(self.header.len()).map(String::from).collect();
        let lines = [&self.header, &rule].into_iter().chain(&self.rows);
        lines.fold(String::new(), |text, cells| text + "| " + &cells.join(" | ") + " |\n")
    }
}

#[cfg(test)]
mod tests {
    use super::{About, Experiment, Findings, Measured, Scope, Untyped};
    use crate::Interrupt;
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Counted {
        items: u64,
    }

    /// An experiment whose case and row have a field of the same name.
    struct Ambiguous;

    impl Experiment for Ambiguous {
        type Case = Counted;
        type Row = Counted;

        fn about(&self) -> About {
            About::new("ambiguous", "Ambiguous", "Nothing.")
        }

        fn cases(&self, _: &Scope) -> Vec<Counted> {
            vec![Counted { items: 1 }]
        }

        fn measure(&self, _: &Counted, _: u64, _: &Interrupt) -> anyhow::Result<Vec<Counted>> {
            Ok(vec![Counted { items: 2 }])
        }

        fn findings(&self, _: &[Measured<Counted, Counted>]) -> Findings {
            Findings::default()
        }
    }

    #[test]
    fn no_field_is_in_a_case_and_in_its_row() {
        let experiment: &dyn Untyped = &Ambiguous;
        let planned = experiment.cases(&Scope { quick: true, seed: 1, max_slots: None }).expect("cases have fields");
        let error = experiment.measure(&planned[0].case, 1, &Interrupt::new()).expect_err("both have `items`");
        assert_eq!(error.to_string(), "a case and its row both have a field `items`; give one of them another name");
    }
}
