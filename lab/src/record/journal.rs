//! The journal of a run. It has a line for each finished case.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _},
    path::PathBuf,
};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::{Earlier, REMEDY, ResultFiles, Run, remove};
use crate::Measured;

/// A locked journal. While it exists, no other process can measure the same experiment into the same folder. The file does not
/// change before [`begin`](Self::begin).
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    /// The length of the valid lines. The rest of the file is overwritten.
    len: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    /// The beginning of a run, before its cases. `anew` is true if it uses no earlier results.
    Begun { run: Box<Run>, anew: bool },
    /// A finished case, and the time spent until then, in seconds.
    Measured { seconds: f64, measured: Measured },
}

impl Journal {
    /// Opens and locks a journal, and creates it if it does not exist.
    ///
    /// # Errors
    /// If another process has locked it.
    pub(crate) fn open(files: &ResultFiles) -> anyhow::Result<Self> {
        let path = files.file(".partial.jsonl");
        let name = path.display();
        loop {
            let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
            let file = open.with_context(|| name.to_string())?;
            match file.try_lock() {
                Ok(()) => {}
                // Where there are no locks, the user must not start two runs at a time.
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
                Err(TryLockError::Error(error)) => return Err(error).with_context(|| format!("{name} could not be locked")),
                Err(TryLockError::WouldBlock) => {
                    bail!(
                        "{name}: another process is measuring this experiment; wait until it has finished, or choose another --out"
                    )
                }
            }
            // If the file is gone, the process that had the lock has finished and removed its journal.
            if path.exists() {
                return Ok(Self { file, path, len: 0 });
            }
        }
    }

    /// Reads the cases that an earlier process finished, if any. It skips incomplete and damaged lines, so their cases are
    /// measured again.
    ///
    /// # Errors
    /// If the first line does not describe the run.
    pub(crate) fn read(&mut self) -> anyhow::Result<Option<Earlier>> {
        let mut text = Vec::new();
        self.file.read_to_end(&mut text).with_context(|| self.path.display().to_string())?;
        text.truncate(text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1));
        let mut left: Option<Earlier> = None;
        for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            match (serde_json::from_slice(line), &mut left) {
                (Ok(Line::Begun { run, anew }), _) => {
                    let file = self.path.clone();
                    left = Some(Earlier { file, run: *run, replaces_record: anew, measured: Vec::new(), seconds: 0.0 });
                }
                (Ok(Line::Measured { seconds, measured }), Some(left)) => {
                    left.seconds = seconds;
                    left.measured.push(measured);
                }
                (Err(_), Some(_)) => {}
                (_, None) => bail!("{}: not a journal of koel, or a damaged one: {REMEDY}", self.path.display()),
            }
        }
        // A run without a finished case cannot be continued.
        left.take_if(|left| left.measured.is_empty());
        self.len = if left.is_some() { text.len() as u64 } else { 0 };
        Ok(left)
    }

    /// Prepares the journal for the cases of this run. If it starts over, removes all lines; otherwise, keeps those that were
    /// read.
    pub(crate) fn begin(&mut self, run: &Run, starts_over: bool) -> anyhow::Result<()> {
        if starts_over {
            self.len = 0;
        }
        if self.len > 0 { Ok(()) } else { self.append(&Line::Begun { run: Box::new(run.clone()), anew: starts_over }) }
    }

    /// Adds a case that finished `seconds` after the start of the run. It is on the disk when this returns.
    pub(crate) fn add(&mut self, measured: &Measured, seconds: f64) -> anyhow::Result<()> {
        self.append(&Line::Measured { seconds, measured: measured.clone() })
    }

    /// Removes the journal. Its cases must be in the record already.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        // A power failure must not undo the record's renaming once the journal is removed. Not every system can guarantee this.
        if let Some(folder) = self.path.parent() {
            File::open(folder).and_then(|folder| folder.sync_all()).ok();
        }
        remove(&self.path)
    }

    fn append(&mut self, line: &Line) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let mut write = || {
            self.file.set_len(self.len)?;
            self.file.seek(SeekFrom::Start(self.len))?;
            self.file.write_all(&text)?;
            self.file.sync_data()
        };
        write().with_context(|| format!("{} could not be written", self.path.display()))?;
        self.len += text.len() as u64;
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // The file is empty, so nothing is lost if this fails.
        if self.file.metadata().is_ok_and(|file| file.len() == 0) {
            fs::remove_file(&self.path).ok();
        }
    }
}
