//! An experiment with cases and rows as they are in files: what a plan knows of it. So plans are compiled once, and not for each
//! experiment.

use anyhow::{Context as _, bail};
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use crate::{
    column::Column,
    experiment::{Experiment, Findings, Measured, Scope},
    interrupt::Interrupt,
    record::{Fields, Stored},
};

/// What an experiment says of itself.
pub(crate) struct Description {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    pub(crate) columns: Vec<Column>,
    pub(crate) is_timed: bool,
    pub(crate) with_less_memory: &'static str,
}

/// A case of an experiment.
pub(crate) struct Case {
    pub(crate) fields: Fields,
    /// Its identity, in files and for its seed: its JSON.
    pub(crate) key: String,
    pub(crate) effort: u64,
    /// In bytes.
    pub(crate) memory: u64,
}

/// An experiment of any type.
pub(crate) trait Untyped: Sync {
    fn description(&self) -> Description;

    fn has_cases(&self, scope: &Scope) -> bool;

    /// # Errors
    /// If a case has no named fields.
    fn cases(&self, scope: &Scope) -> anyhow::Result<Vec<Case>>;

    /// # Errors
    /// Those of [`Experiment::measure`]; if a row has no named fields, or cannot be read back.
    fn measure(&self, case: &Fields, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Fields>>;

    /// What was read from a file, with the fields that this experiment gives it.
    ///
    /// # Errors
    /// If it is not of this experiment.
    fn recognised(&self, stored: &Stored) -> anyhow::Result<Stored>;

    /// # Errors
    /// If the results are not of this experiment.
    fn findings(&self, measured: &[Stored]) -> anyhow::Result<Findings>;
}

/// An experiment, seen without its types.
pub(crate) struct Typed<E>(pub(crate) E);

impl<E: Experiment> Untyped for Typed<E> {
    fn description(&self) -> Description {
        let experiment = &self.0;
        Description {
            name: experiment.name(),
            title: experiment.title(),
            about: experiment.about(),
            columns: experiment.columns(),
            is_timed: experiment.is_timed(),
            with_less_memory: experiment.with_less_memory(),
        }
    }

    fn has_cases(&self, scope: &Scope) -> bool {
        !self.0.cases(scope).is_empty()
    }

    fn cases(&self, scope: &Scope) -> anyhow::Result<Vec<Case>> {
        let case = |case: &E::Case| {
            let fields = fields(case)?;
            let key = key(&fields)?;
            Ok(Case { fields, key, effort: self.0.effort(case), memory: self.0.memory(case) })
        };
        self.0.cases(scope).iter().map(case).collect()
    }

    fn measure(&self, case: &Fields, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Fields>> {
        let rows = self.0.measure(&E::Case::deserialize(case)?, seed, interrupt)?;
        let rows = rows.iter().map(fields).collect::<anyhow::Result<Vec<_>>>()?;
        // JSON cannot represent every float: an error now is better than one when it is read.
        for row in &rows {
            E::Row::deserialize(row).with_context(|| format!("{}: this result cannot be read back", Value::from(row.clone())))?;
        }
        Ok(rows)
    }

    fn recognised(&self, stored: &Stored) -> anyhow::Result<Stored> {
        let Measured { case, rows } = stored.typed::<E::Case, E::Row>()?;
        Ok(Measured { case: fields(&case)?, rows: rows.iter().map(fields).collect::<anyhow::Result<_>>()? })
    }

    fn findings(&self, measured: &[Stored]) -> anyhow::Result<Findings> {
        Ok(self.0.findings(&measured.iter().map(Stored::typed).collect::<anyhow::Result<Vec<_>>>()?))
    }
}

/// The identity of a case.
pub(super) fn key(case: &Fields) -> anyhow::Result<String> {
    Ok(serde_json::to_string(case)?)
}

fn fields(value: &impl Serialize) -> anyhow::Result<Fields> {
    match serde_json::to_value(value)? {
        Value::Object(fields) => Ok(fields),
        other => bail!("a case or a row must have named fields, but {other} has none"),
    }
}
