//! The memory of the lines: one filter, or a window of filters that forget.

use anyhow::Context as _;

use crate::{
    file::{Growing, Output, Snapshot},
    terminal,
    text::counted,
    window::Window,
};

#[allow(clippy::large_enum_variant, reason = "a run has one")]
pub(super) enum Memory {
    /// One filter, and the file that it is written to, if any.
    Filter { filter: Snapshot, output: Option<Output> },
    /// Filters that forget.
    Window(Window),
}

impl Memory {
    /// Returns the name of the file or folder, if there is one.
    pub(super) fn name(&self) -> Option<String> {
        match self {
            Self::Filter { output, .. } => output.as_ref().map(|output| output.name().to_owned()),
            Self::Window(window) => window.name(),
        }
    }

    /// Returns the number of items, a description of the tables, and the false-positive rate.
    pub(super) fn extent(&self) -> (usize, String, f64) {
        match self {
            Self::Filter { filter, .. } => (filter.len(), filter.extent(), filter.false_positive_rate()),
            Self::Window(window) => {
                let (bytes, number) = (window.filters().map(Growing::table_bytes).sum::<usize>(), window.filters().count());
                (
                    window.filters().map(Growing::len).sum(),
                    format!("tables of {bytes} bytes, in {}", counted(number, "filter")),
                    window.filters().map(Growing::false_positive_rate).sum(),
                )
            }
        }
    }

    /// Writes it, if it has changed or is new. Unless the input was read, a new one without lines is not written. `is_number` tells
    /// whether the lines were counted, not printed.
    pub(super) fn save(&mut self, is_changed: bool, is_read: bool, is_number: bool) -> anyhow::Result<()> {
        match self {
            Self::Filter { filter, output: Some(output) } if is_changed || is_read && output.is_empty() => {
                let fate = if is_number { "counted" } else { "printed" };
                let saved = output.save_snapshot(filter).map(|_| ());
                saved.with_context(|| format!("the lines that were {fate} are not remembered"))
            }
            Self::Filter { .. } => Ok(()),
            // If that fails, the journal remembers the lines.
            Self::Window(window) => window.save(),
        }
    }

    /// Forgets the lines that could not be printed, or whose number could not.
    pub(super) fn take_back(&self, is_number: bool) -> anyhow::Result<()> {
        let Some(name) = self.name() else { return Ok(()) };
        match self {
            Self::Filter { output, .. } => {
                let verb = if is_number { "counts" } else { "prints" };
                let is_new = output.as_ref().is_some_and(Output::is_empty);
                let fate = if is_new { "was not written" } else { "is unchanged" };
                terminal::say(format_args!("koel: {name}: {fate}; the next run {verb} the same lines again\n"));
            }
            Self::Window(window) => {
                window.take_back()?;
                terminal::say(format_args!(
                    "koel: {name}: lines that were not printed are forgotten; the next run prints them\n"
                ));
            }
        }
        Ok(())
    }

    /// Unlocks the file or folder. This removes an empty file that the run created to lock it.
    pub(super) fn close(&mut self) {
        match self {
            Self::Filter { output, .. } => *output = None,
            Self::Window(window) => window.close(),
        }
    }
}
