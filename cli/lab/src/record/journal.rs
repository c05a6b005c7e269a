//! What has been measured so far, a line for each case.

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write as _},
    path::PathBuf,
};

use anyhow::Context as _;
use serde::{Serialize, de::DeserializeOwned};

use super::{Place, Run, files};

/// A journal that lines are added to.
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    fn path(place: &Place) -> PathBuf {
        place.file(".partial.jsonl")
    }

    /// What an earlier run left: what it was asked for, and what it finished. A line that was cut off when it died is as good
    /// as none.
    pub(crate) fn read<M: DeserializeOwned>(place: &Place) -> anyhow::Result<Option<(Run, Vec<M>)>> {
        let Some(text) = files::read(&Self::path(place))? else { return Ok(None) };
        let mut lines = text.lines();
        let Some(run) = lines.next().and_then(|line| serde_json::from_str(line).ok()) else { return Ok(None) };
        Ok(Some((run, lines.map_while(|line| serde_json::from_str(line).ok()).collect())))
    }

    /// A new one, with what is known already.
    pub(crate) fn begin<M: Serialize>(place: &Place, run: &Run, known: &[M]) -> anyhow::Result<Self> {
        let path = Self::path(place);
        let mut text = serde_json::to_string(run)? + "\n";
        for measured in known {
            text += &serde_json::to_string(measured)?;
            text += "\n";
        }
        files::replace(&path, text.as_bytes())?;
        let file = OpenOptions::new().append(true).open(&path).with_context(|| path.display().to_string())?;
        Ok(Self { file, path })
    }

    /// One more, in one write.
    pub(crate) fn add(&mut self, measured: &impl Serialize) -> anyhow::Result<()> {
        let line = serde_json::to_string(measured)? + "\n";
        self.file.write_all(line.as_bytes()).with_context(|| format!("{} could not be written", self.path.display()))
    }

    /// Everything in it is in the record now.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        drop(self.file);
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error).with_context(|| self.path.display().to_string()),
            _ => Ok(()),
        }
    }
}
