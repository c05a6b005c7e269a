//! What an experiment is: columns, cases, a measurement, and what the measurements show.

use std::borrow::Cow;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{Chart, Interrupt};

/// How much an experiment measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// Smaller and fewer tables: minutes instead of an hour.
    pub quick: bool,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The most slots of a table, if there is a limit.
    pub max_slots: Option<u64>,
}

impl Scope {
    /// The first value for a quick run, the second for a full one.
    #[must_use]
    pub fn choose<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// This number of slots, or the limit if that is lower.
    #[must_use]
    pub fn at_most(&self, slots: u64) -> u64 {
        self.max_slots.map_or(slots, |most| slots.min(most))
    }

    /// The sizes of tables within the limit.
    #[must_use]
    pub fn allowed(&self, slots: &[u64]) -> Vec<u64> {
        slots.iter().copied().filter(|&slots| self.at_most(slots) == slots).collect()
    }
}

/// The fields of a case or of a row, by name: an object of JSON, as in files.
pub type Fields = Map<String, Value>;

/// An experiment: cases to measure, and what the measurements show.
///
/// # Example
/// An experiment of one's own, about hash functions, with the `main` that runs it as `koel experiment` runs koel's
/// (`lab/examples/hashers.rs`):
/// ```no_run
#[doc = include_str!("../examples/hashers.rs")]
/// ```
pub trait Experiment: Sync {
    /// What is measured at a time: a struct with named fields. Its JSON identifies it, in files and for its seed; cases with the
    /// same JSON are measured once.
    type Case: Serialize + DeserializeOwned;

    /// What is found, once or several times for a case: a struct with named fields, whose floats are finite.
    type Row: Serialize + DeserializeOwned;

    /// What it is.
    fn about(&self) -> About;

    /// The cases, in the order of the results. Cases that belong together should be adjacent.
    fn cases(&self, scope: &Scope) -> Vec<Self::Case>;

    /// About how long a case takes, in any unit: for the progress bar, and to measure the longest cases first.
    fn effort(&self, _: &Self::Case) -> u64 {
        1
    }

    /// How much memory a case takes, in bytes: a plan with cases for which there is not enough is refused. 0 if it is little.
    fn memory(&self, _: &Self::Case) -> u64 {
        0
    }

    /// Measures one case. All of its random numbers come from the seed.
    ///
    /// # Errors
    /// [`Interrupted`](crate::Interrupted), or an error after which measuring other cases is of no use.
    fn measure(&self, case: &Self::Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Self::Row>>;

    /// The charts and tables of what was measured. Cases may be missing.
    fn findings(&self, measured: &[Measured<Self::Case, Self::Row>]) -> Findings;
}

/// An experiment whose cases and rows are fields, as in files. What runs experiments is written for these, and so compiled once;
/// only the adaptor below is compiled for each.
pub(crate) trait Untyped: Sync {
    fn about(&self) -> About;
    fn cases(&self, scope: &Scope) -> anyhow::Result<Vec<Planned>>;
    fn measure(&self, case: &Fields, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Fields>>;
    fn findings(&self, measured: &[Measured]) -> anyhow::Result<Findings>;
}

/// A case that is to be measured.
pub(crate) struct Planned {
    pub(crate) case: Fields,
    /// Its identity: its JSON.
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
        Experiment::measure(self, &E::Case::deserialize(case)?, seed, interrupt)?.iter().map(fields).collect()
    }

    fn findings(&self, measured: &[Measured]) -> anyhow::Result<Findings> {
        Ok(Experiment::findings(self, &typed(measured)?))
    }
}

/// The identity of a case.
pub(crate) fn key(case: &Fields) -> String {
    serde_json::to_string(case).unwrap_or_default()
}

/// The fields of a struct. An error if it has no named ones, or could not be read back: JSON cannot represent every float.
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

/// Results in the types of an experiment. An error if one has other fields than these.
pub(crate) fn typed<C: DeserializeOwned, R: DeserializeOwned>(measured: &[Measured]) -> anyhow::Result<Vec<Measured<C, R>>> {
    let one = |Measured { case, rows }: &Measured| {
        let rows = rows.iter().map(R::deserialize).collect::<Result<_, _>>()?;
        Ok(Measured { case: C::deserialize(case)?, rows })
    };
    measured.iter().map(one).collect()
}

/// What an experiment says of itself.
#[derive(Clone, Debug)]
pub struct About {
    /// Its name on the command line, with which its files begin.
    pub name: &'static str,
    /// The title in the report.
    pub title: &'static str,
    /// What is measured and how, in a few sentences.
    pub text: &'static str,
    /// The columns of its table, in their order: the fields of a case, then those of a row. They are a part of the record, for
    /// programs that read it, such as `koel experiment compare`. A column that is not described says what was measured if it
    /// is a field of the case or a text; otherwise it is compared exactly.
    pub columns: Vec<Column>,
    /// Whether it measures time. Its cases then run one at a time, and a run is not continued on another machine.
    pub is_timed: bool,
    /// What the user can do if a case takes more memory than there is.
    pub with_less_memory: &'static str,
}

impl About {
    /// An experiment of this name that measures no time and describes no columns.
    #[must_use]
    pub const fn new(name: &'static str, title: &'static str, text: &'static str) -> Self {
        let with_less_memory = "--max-slots leaves out the largest tables";
        Self { name, title, text, columns: Vec::new(), is_timed: false, with_less_memory }
    }
}

/// A case and its results, in any types: fields, as in files, or those of an experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured<C = Fields, R = Fields> {
    /// The case.
    pub case: C,
    /// Its rows.
    pub rows: Vec<R>,
}

impl<C, R> Measured<C, R> {
    /// The first row: the only one, where a case has one.
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
    /// Its unit; empty for text and for plain numbers.
    pub unit: Cow<'static, str>,
    /// What it says.
    pub about: Cow<'static, str>,
    /// How values of two runs are compared.
    pub role: Role,
}

/// How the values of a column in two runs are compared. Names are those of other columns, of the row or of its case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It says what was measured: a field of the case, or one that tells its rows apart.
    Key,
    /// A field of the case that numbers its repetitions. Cases that differ in nothing else are samples of one case.
    Round,
    /// It follows from the case: any difference counts.
    Exact,
    /// It is not compared: it depends on chance, and its spread is not known, or another column says the same.
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
    /// The median of several times. Half of them lie between those of two other columns.
    Median {
        /// The column of the lower one.
        low: Cow<'static, str>,
        /// The column of the higher one.
        high: Cow<'static, str>,
        /// The column that counts the times.
        of: Cow<'static, str>,
    },
    /// A single time. Its spread shows in the repetitions of the case.
    Time,
}

impl Column {
    /// A column that is not compared.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>, unit: &'static str, about: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), unit: unit.into(), about: about.into(), role: Role::Detail }
    }

    /// A column that says what was measured.
    #[must_use]
    pub fn key(name: &'static str, unit: &'static str, about: &'static str) -> Self {
        Self { role: Role::Key, ..Self::new(name, unit, about) }
    }

    /// The same column in this role.
    #[must_use]
    pub fn compared(self, role: Role) -> Self {
        Self { role, ..self }
    }
}

impl Role {
    /// A share of as many events as another column says.
    #[must_use]
    pub fn share(of: &'static str) -> Self {
        Self::Share { of: of.into() }
    }

    /// An estimate within a 99 % interval.
    #[must_use]
    pub fn estimate(low: &'static str, high: &'static str) -> Self {
        Self::Estimate { low: low.into(), high: high.into() }
    }

    /// A mean of values between two others.
    #[must_use]
    pub fn mean(least: &'static str, most: &'static str, of: &'static str) -> Self {
        Self::Mean { least: least.into(), most: most.into(), of: of.into() }
    }

    /// A median, with half of the times between two others.
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
    /// What a reader must know before the figures, such as that times were disturbed: one sentence or more each.
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
    /// A table of these rows.
    #[must_use]
    pub fn new(caption: &str, header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        let header = header.iter().map(|&name| name.to_owned()).collect();
        Self { caption: caption.to_owned(), header, rows: rows.into_iter().collect() }
    }
}
