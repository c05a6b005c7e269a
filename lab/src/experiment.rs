//! The trait of experiments.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{chart::Chart, column::Column, interrupt::Interrupt};

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

/// An experiment: cases to measure, and what the measurements show.
///
/// # Example
/// An experiment of one's own, about hash functions, with the `main` that runs it as `koel experiment` runs koel's
/// (`lab/examples/hashers.rs`):
/// ```no_run
#[doc = include_str!("../examples/hashers.rs")]
/// ```
pub trait Experiment: Sync {
    /// One unit of measurement, a struct with named fields. Its JSON identifies it: cases with the same JSON are measured once.
    type Case: Serialize + DeserializeOwned;
    /// One result of a case, a struct with named fields.
    type Row: Serialize + DeserializeOwned;

    /// Its name on the command line, with which its files begin.
    fn name(&self) -> &'static str;

    /// The title in the report.
    fn title(&self) -> &'static str;

    /// What is measured and how, in a few sentences.
    fn about(&self) -> &'static str;

    /// Whether it measures time. Its cases then run one at a time, and a run is not continued on another machine.
    fn is_timed(&self) -> bool {
        false
    }

    /// The columns of its table, in their order: the fields of a case, then those of a row. They are a part of the record, for
    /// programs that read it, such as `koel experiment compare`. A column that is not described says what was measured if it
    /// is a field of the case or a text; otherwise it is compared exactly.
    fn columns(&self) -> Vec<Column> {
        Vec::new()
    }

    /// The cases, in the order of the results. Cases that belong together should be adjacent.
    fn cases(&self, scope: &Scope) -> Vec<Self::Case>;

    /// About how long a case takes, in any unit: for the progress bar, and to measure the longest cases first.
    fn effort(&self, case: &Self::Case) -> u64;

    /// How much memory a case takes, in bytes.
    fn memory(&self, case: &Self::Case) -> u64;

    /// What the user can do if that is more than there is.
    fn with_less_memory(&self) -> &'static str {
        "--max-slots leaves out the largest tables"
    }

    /// Measures one case. All of its random numbers come from the seed.
    ///
    /// # Errors
    /// [`Interrupted`](crate::Interrupted), or an error after which measuring other cases is of no use.
    fn measure(&self, case: &Self::Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Self::Row>>;

    /// The charts and tables of what was measured. Cases may be missing.
    fn findings(&self, measured: &[Measured<Self::Case, Self::Row>]) -> Findings;
}

/// A case and its results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured<C, R> {
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
    /// A table without rows.
    #[must_use]
    pub fn new(caption: &str, header: &[&str]) -> Self {
        let header = header.iter().map(|&name| name.to_owned()).collect();
        Self { caption: caption.to_owned(), header, rows: Vec::new() }
    }
}
