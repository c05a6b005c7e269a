//! What has been measured so far, a line for each case.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind, Read as _, Seek as _, Write as _},
    path::{Path, PathBuf},
    process,
    time::SystemTime,
};

use anyhow::{Context as _, bail};
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};

use super::{Place, REMEDY, Run, files};

/// A journal that is locked: nobody else measures the same into the same folder for as long as it is there.
///
/// One that was not begun is left behind as it was found.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    /// The whole lines that were found.
    found: u64,
    /// The whole lines that are there now.
    len: u64,
    /// Its run has been read.
    is_known: bool,
    is_begun: bool,
}

/// What an earlier run left.
#[derive(Debug)]
pub(crate) struct Left<M> {
    pub(crate) run: Run,
    /// It began with nothing: what the record has is of another run.
    pub(crate) anew: bool,
    pub(crate) measured: Vec<M>,
    /// Spent until the last of them was finished.
    pub(crate) seconds: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line<M> {
    /// Who writes the next lines.
    Process { id: u32, since: String },
    /// What is measured.
    Begun { run: Box<Run>, anew: bool },
    /// What came of a case, after so many seconds in all.
    Measured { seconds: f64, measured: M },
}

impl Journal {
    /// Opens and locks a journal, which is made if it is not there.
    ///
    /// # Errors
    /// If another process has it.
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

    /// What an earlier run finished, if there was one. A line that was cut off when it died is as good as none, and so is a
    /// damaged one: that case is measured again.
    ///
    /// # Errors
    /// If it cannot be known what was measured.
    pub(crate) fn read<M: DeserializeOwned>(&mut self) -> anyhow::Result<Option<Left<M>>> {
        let mut text = Vec::new();
        let read = self.file.rewind().and_then(|()| self.file.read_to_end(&mut text));
        read.with_context(|| self.path.display().to_string())?;
        let mut left: Option<Left<M>> = None;
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
                    bail!("{}: this is no journal of ours, or it is damaged: {REMEDY}", self.path.display())
                }
            }
        }
        // One that was begun, and got nowhere, need not be gone on with.
        left.take_if(|left| left.measured.is_empty());
        self.is_known = left.is_some();
        Ok(left)
    }

    /// From now on, cases of this run can be added: to what was read, if something was. To nothing, if it is to be anew.
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

    /// One more, after so many seconds in all. It is on the disk when this returns.
    pub(crate) fn add<M: Serialize + DeserializeOwned>(&mut self, measured: &M, seconds: f64) -> anyhow::Result<()> {
        // Not every float can be written as JSON; better to know now than when it is to be read.
        let text = serde_json::to_string(measured)?;
        serde_json::from_str::<M>(&text).with_context(|| format!("{text} could not be read again"))?;
        self.append(&[Line::Measured { seconds, measured }])
    }

    /// Everything in it is in the record now.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        // The record must not be the one that a power cut takes back.
        files::sync(&self.path).and_then(|()| self.remove()).with_context(|| self.path.display().to_string())
    }

    /// All of it, or nothing.
    fn append<M: Serialize>(&mut self, lines: &[Line<M>]) -> anyhow::Result<()> {
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        // What was torn off before is written over.
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

    /// Takes away what is behind this place.
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
        // Nothing is lost if that fails: a line says that there was somebody, who did nothing.
        if self.found == 0 {
            self.remove().ok()
        } else {
            self.cut(self.found).ok()
        };
    }
}

/// Locks it. False if it is not the one that the path leads to: whoever had it has finished, and taken it away.
fn lock(file: &mut File, path: &Path) -> anyhow::Result<bool> {
    let name = path.display();
    match file.try_lock() {
        // Where there are no locks, whoever starts two at a time must know what comes of it.
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => return Err(error).with_context(|| format!("{name} cannot be locked")),
        Err(TryLockError::WouldBlock) => {
            let who = owner(file);
            bail!("{name}: {who} is measuring this; wait until that has ended, or choose another --out");
        }
        Ok(()) => {}
    }
    Ok(is_still_at(file, path))
}

fn this_process() -> Line<()> {
    let since = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    Line::Process { id: process::id(), since }
}

/// Without what comes after the last line's end.
fn whole_lines(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |place| place + 1);
    &text[..end]
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    whole_lines(text).split(|&byte| byte == b'\n').filter(|line| !line.is_empty())
}

/// Who has the lock, as far as that can be read.
fn owner(file: &mut File) -> String {
    let mut text = Vec::new();
    file.read_to_end(&mut text).ok();
    let process = |line: &[u8]| match serde_json::from_slice(line) {
        Ok(Line::Process::<IgnoredAny> { id, since }) => Some(format!("process {id}, begun at {since},")),
        _ => None,
    };
    lines(&text).filter_map(process).last().unwrap_or_else(|| String::from("another process"))
}

/// Is it this file that the path leads to?
#[cfg(unix)]
fn is_still_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let place = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    file.metadata().is_ok_and(|ours| fs::metadata(path).is_ok_and(|theirs| place(ours) == place(theirs)))
}

/// Is it this file that the path leads to? One that is gone cannot be asked for its name here.
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
