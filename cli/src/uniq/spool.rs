//! The distinct lines of a run, until their counts are known at its end.

use std::{
    fs::File,
    io::{BufWriter, IntoInnerError, Seek as _},
};

use anyhow::Context as _;

use crate::{
    format::Format,
    items::{Items, write_record},
};

/// Distinct lines in a temporary file without a name, so nothing of it remains however the run ends.
pub(super) struct Spool(BufWriter<File>);

impl Spool {
    pub(super) fn new() -> anyhow::Result<Self> {
        let folder = std::env::temp_dir();
        let file = tempfile::tempfile_in(&folder).map_err(|error| error.kind());
        let remedy =
            || format!("{}: no file can be created in this folder for the lines; set TMPDIR to another one", folder.display());
        Ok(Self(BufWriter::new(file.map_err(std::io::Error::from).with_context(remedy)?)))
    }

    /// Appends the line that was read last.
    pub(super) fn push(&mut self, items: &Items) -> anyhow::Result<()> {
        write_record(&mut self.0, items.line()).with_context(error)
    }

    /// Returns the lines, as items of the same format.
    pub(super) fn into_items(self, format: &Format) -> anyhow::Result<Items> {
        let mut file = self.0.into_inner().map_err(IntoInnerError::into_error).with_context(error)?;
        file.rewind().with_context(error)?;
        Items::from_records(file, format, String::from("the temporary file"))
    }
}

fn error() -> String {
    format!("the lines cannot be kept in a temporary file in {}; set TMPDIR to another folder", std::env::temp_dir().display())
}
