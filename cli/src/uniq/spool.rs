//! The distinct lines of a run, until their counts are known at its end.

use std::{
    fs::File,
    io::{BufWriter, IntoInnerError, Seek as _, Write as _},
};

use anyhow::Context as _;

use crate::{format::Format, items::Items, terminal::Progress};

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

    /// Appends the line that was read last, so that it is read again as it was. A carriage return just before a newline is no part of
    /// the line, so a line that ends with one gets another.
    pub(super) fn push(&mut self, items: &Items) -> anyhow::Result<()> {
        let (line, end) = (items.line(), [b'\r', items.separator()]);
        let end = if line.ends_with(b"\r") && end == *b"\r\n" { &end[..] } else { &end[1..] };
        self.0.write_all(line).and_then(|()| self.0.write_all(end)).with_context(error)
    }

    /// Returns the lines, as items of the same format.
    pub(super) fn into_items(self, format: &Format) -> anyhow::Result<Items> {
        let mut file = self.0.into_inner().map_err(IntoInnerError::into_error).with_context(error)?;
        file.rewind().with_context(error)?;
        let format = Format { binary: true, ..format.clone() };
        Items::from_reader(Box::new(file), &format, String::from("the temporary file"), Progress::hidden())
    }
}

fn error() -> String {
    format!("the lines cannot be kept in a temporary file in {}; set TMPDIR to another folder", std::env::temp_dir().display())
}
