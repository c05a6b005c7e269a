//! The journal of a run: a line for each finished case.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind, Read as _, Seek as _, Write as _},
    path::{Path, PathBuf},
    process,
    time::SystemTime,
};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::{Place, REMEDY, Run, sync};
use crate::experiment::Measured;

/// A locked journal: no other process measures the same experiment into the same folder while it exists.
///
/// Dropped before [`begin`](Self::begin), it leaves the file as it was.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    /// The length of the complete lines that were found, in bytes.
    found: u64,
    /// The length of the complete lines now.
    len: u64,
    /// Whether the run of an earlier process was read.
    is_known: bool,
    is_begun: bool,
}

/// What an earlier process left in the journal.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) run: Run,
    /// Whether it was to replace the record, whose results belong to another run.
    pub(crate) anew: bool,
    pub(crate) measured: Vec<Measured>,
    /// The time spent until the last of them was finished.
    pub(crate) seconds: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    /// The process that writes the next lines.
    Process { id: u32, since: String },
    /// The run whose cases follow.
    Begun { run: Box<Run>, anew: bool },
    /// A finished case, and the time spent until then.
    Measured { seconds: f64, measured: Measured },
}

impl Journal {
    /// Opens and locks a journal. Creates it if it does not exist.
    ///
    /// # Errors
    /// If another process has locked it.
    pub(crate) fn open(place: &Place) -> anyhow::Result<Self> {
        let path = place.file(".partial.jsonl");
        let named = || path.display().to_string();
        let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).with_context(named);
        let mut file = open()?;
        while !lock(&mut file, &path)? {
            file = open()?;
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).with_context(named)?;
        let found = whole_lines(&text).len() as u64;
        let mut journal = Self { file, path: path.clone(), found, len: found, is_known: false, is_begun: false };
        journal.append(&[this_process()])?;
        Ok(journal)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what an earlier process finished, if there was one. A line that is incomplete or damaged is ignored, so that
    /// its case is measured again.
    ///
    /// # Errors
    /// If the line is missing that says what was measured.
    pub(crate) fn read(&mut self) -> anyhow::Result<Option<Left>> {
        let mut text = Vec::new();
        let read = self.file.rewind().and_then(|()| self.file.read_to_end(&mut text));
        read.with_context(|| self.path.display().to_string())?;
        let mut left: Option<Left> = None;
        for line in lines(&text) {
            match (serde_json::from_slice(line), &mut left) {
                (Ok(Line::Begun { run, anew }), _) => {
                    left = Some(Left { run: *run, anew, measured: Vec::new(), seconds: 0.0 });
                }
                (Ok(Line::Measured { seconds, measured }), Some(left)) => {
                    left.seconds = seconds;
                    left.measured.push(measured);
                }
                (Ok(Line::Process { .. }), None) | (_, Some(_)) => {}
                (Ok(Line::Measured { .. }) | Err(_), None) => {
                    bail!("{}: not a journal of koel, or a damaged one: {REMEDY}", self.path.display())
                }
            }
        }
        // A run without a finished case need not be continued.
        left.take_if(|left| left.measured.is_empty());
        self.is_known = left.is_some();
        Ok(left)
    }

    /// Prepares the journal for cases of this run. With `anew`, everything in it is removed; otherwise they are added to
    /// those that were read.
    pub(crate) fn begin(&mut self, run: &Run, anew: bool) -> anyhow::Result<()> {
        self.is_begun = true;
        let begun = Line::Begun { run: Box::new(run.clone()), anew };
        if anew {
            self.cut(0).with_context(|| self.path.display().to_string())?;
            self.append(&[this_process(), begun])
        } else if self.is_known {
            Ok(())
        } else {
            self.append(&[begun])
        }
    }

    /// Adds a finished case, `seconds` after the start of the run. It is on the disk when this returns.
    pub(crate) fn add(&mut self, measured: &Measured, seconds: f64) -> anyhow::Result<()> {
        self.append(&[Line::Measured { seconds, measured: measured.clone() }])
    }

    /// Removes the journal, after everything in it has been written to the record.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        // The new record must survive a power failure before the journal is removed.
        sync(&self.path).and_then(|()| self.remove()).with_context(|| self.path.display().to_string())
    }

    /// Appends all of these lines, or none.
    fn append(&mut self, lines: &[Line]) -> anyhow::Result<()> {
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        // An incomplete line at the end is overwritten.
        let mut write = || {
            self.cut(self.len)?;
            self.file.write_all(&text)?;
            self.file.sync_data()
        };
        if let Err(error) = write() {
            self.cut(self.len).ok();
            return Err(error).with_context(|| format!("{} could not be written", self.path.display()));
        }
        self.len += text.len() as u64;
        Ok(())
    }

    /// Truncates the file to this length.
    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)?;
        self.file.seek(io::SeekFrom::Start(len))?;
        self.len = len;
        Ok(())
    }

    fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.is_begun {
            return;
        }
        // Nothing is lost if this fails: what stays is the line of a process that did nothing.
        if self.found == 0 {
            self.remove().ok()
        } else {
            self.cut(self.found).ok()
        };
    }
}

/// Locks the file. False if the path leads to another file now: the process that had the lock has finished, and removed its
/// journal.
fn lock(file: &mut File, path: &Path) -> anyhow::Result<bool> {
    let name = path.display();
    match file.try_lock() {
        // Without locks, starting two runs at a time is the user's responsibility.
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => return Err(error).with_context(|| format!("{name} could not be locked")),
        Err(TryLockError::WouldBlock) => {
            let who = owner(file);
            bail!("{name}: {who} is measuring this experiment; wait until it has finished, or choose another --out");
        }
        Ok(()) => {}
    }
    Ok(is_still_at(file, path))
}

fn this_process() -> Line {
    let since = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    Line::Process { id: process::id(), since }
}

/// The text up to the end of the last complete line.
fn whole_lines(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |place| place + 1);
    &text[..end]
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    whole_lines(text).split(|&byte| byte == b'\n').filter(|line| !line.is_empty())
}

/// The process that has the lock, as far as the journal says.
fn owner(file: &mut File) -> String {
    let mut text = Vec::new();
    file.read_to_end(&mut text).ok();
    let process = |line: &[u8]| match serde_json::from_slice(line) {
        Ok(Line::Process { id, since }) => Some(format!("process {id}, started at {since},")),
        _ => None,
    };
    lines(&text).filter_map(process).last().unwrap_or_else(|| String::from("another process"))
}

/// Whether the path still leads to this file.
#[cfg(unix)]
fn is_still_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let place = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    file.metadata().is_ok_and(|ours| fs::metadata(path).is_ok_and(|theirs| place(ours) == place(theirs)))
}

/// Whether the path still leads to a file. Whether it is this one cannot be checked on this system.
#[cfg(not(unix))]
fn is_still_at(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_lock_of_a_journal_that_is_gone_is_none() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("fake.partial.jsonl");
        let [mut file, mut other] = [(); 2].map(|()| {
            let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
            open.unwrap()
        });
        assert!(lock(&mut file, &path).unwrap());
        assert!(lock(&mut other, &path).is_err());
        fs::remove_file(&path).unwrap();
        drop(file);
        assert!(!lock(&mut other, &path).unwrap());
        File::create(&path).unwrap();
        assert!(!lock(&mut other, &path).unwrap());
    }
}
