//! What an experiment is.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{chart::Chart, interrupt::Interrupt};

/// How much to measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// Minutes instead of an hour: smaller tables, fewer of them.
    pub quick: bool,
    /// All random numbers come from it.
    pub seed: u64,
    /// No larger tables than this.
    pub max_slots: Option<u64>,
}

impl Scope {
    /// One of two numbers, as little or as much is to be measured.
    #[must_use]
    pub fn choose<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// A number of slots, or the largest that is allowed.
    #[must_use]
    pub fn at_most(&self, slots: u64) -> u64 {
        self.max_slots.map_or(slots, |most| slots.min(most))
    }

    /// Those sizes of tables that are allowed.
    #[must_use]
    pub fn allowed(&self, slots: &[u64]) -> Vec<u64> {
        slots.iter().copied().filter(|&slots| self.at_most(slots) == slots).collect()
    }
}

/// Something to find out by measuring.
pub trait Experiment: Sync {
    /// What is measured in one go. Equal cases are measured once; what is written down of it says all about it.
    type Case: Serialize + DeserializeOwned + PartialEq + Clone + Send + Sync;
    /// What comes of it.
    type Row: Serialize + DeserializeOwned + Clone + Send + Sync;

    /// The name it is asked for by, and its files begin with.
    fn name(&self) -> &'static str;

    /// Its title in the report.
    fn title(&self) -> &'static str;

    /// What it shows, in a few sentences.
    fn about(&self) -> &'static str;

    /// Is time measured? Then nothing else may run beside it, and results of another machine do not count.
    fn is_timed(&self) -> bool {
        false
    }

    /// What there is to measure. Those that belong together should follow each other.
    fn cases(&self, scope: &Scope) -> Vec<Self::Case>;

    /// About how long a case takes, in any unit: for the time left, and to begin with what takes longest.
    fn effort(&self, case: &Self::Case) -> u64;

    /// How much memory it takes, in bytes.
    fn memory(&self, case: &Self::Case) -> u64;

    /// What to do if there is less memory than that.
    fn with_less_memory(&self) -> &'static str {
        "--max-slots leaves out the largest ones"
    }

    /// Measures one case; all its random numbers come from the seed.
    ///
    /// # Errors
    /// [`Interrupted`](crate::Interrupted), or whatever makes going on with the others useless.
    fn measure(&self, case: &Self::Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Self::Row>>;

    /// What there is to see in it. Some cases may be missing.
    fn findings(&self, measured: &[Measured<Self::Case, Self::Row>]) -> Findings;
}

/// A case, and what came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured<C, R> {
    /// The case.
    pub case: C,
    /// Its rows.
    pub rows: Vec<R>,
}

impl<C, R> Measured<C, R> {
    /// The row of a case that has but one.
    #[must_use]
    pub fn row(&self) -> Option<&R> {
        self.rows.first()
    }
}

/// What an experiment shows.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// In pictures.
    pub charts: Vec<Chart>,
    /// In numbers.
    pub tables: Vec<Table>,
}

/// A small table for the report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    /// What it is about.
    pub caption: String,
    /// The columns' names.
    pub header: Vec<String>,
    /// The cells.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty one.
    #[must_use]
    pub fn new(caption: &str, header: &[&str]) -> Self {
        let header = header.iter().map(|&name| name.to_owned()).collect();
        Self { caption: caption.to_owned(), header, rows: Vec::new() }
    }
}
