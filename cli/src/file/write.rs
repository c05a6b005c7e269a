//! Where filters are written to.

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use koel::{CuckooFilter, Hasher, Storage};

use super::{Counted, same};
use crate::stdout;

/// Where a filter goes.
pub(crate) struct Output {
    /// As the user wrote it.
    name: String,
    kind: Kind,
}

enum Kind {
    Stdout,
    /// A device or a pipe, which must not be replaced: written into.
    Special(PathBuf),
    /// A file, or what will be one: replaced at one go.
    Regular(PathBuf),
}

impl Output {
    /// Finds out what will be written, and whether it can be, before any work is done.
    pub(crate) fn new(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        // Opened anew, a redirected /dev/stdout would begin at its start again, and rename would replace it.
        let stdout = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
        if stdout.iter().any(|&stdout| path.as_os_str() == stdout) {
            return Ok(Self { name: String::from("standard output"), kind: Kind::Stdout });
        }
        let kind = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => bail!("{name}: is a folder; give the name of a file in it"),
            Ok(metadata) if !metadata.is_file() => Kind::Special(path.to_owned()),
            Ok(_) => {
                // Replacing it asks for the folder's permission only; but whoever protected the file meant it.
                OpenOptions::new().write(true).open(path).with_context(|| format!("{name}: cannot be written"))?;
                Kind::Regular(path.to_owned())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if path.file_name().is_none() {
                    bail!("'{name}': has no file's name in it; give the name of the file to write");
                }
                Kind::Regular(path.to_owned())
            }
            Err(error) => return Err(error).with_context(|| format!("{name}: cannot be written")),
        };
        if let Kind::Regular(path) = &kind {
            try_folder(&name, path)?;
        }
        Ok(Self { name, kind })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.kind, Kind::Stdout)
    }

    pub(crate) fn is_regular(&self) -> bool {
        matches!(self.kind, Kind::Regular(_))
    }

    /// Is it a file that `input`, which is standard input for `-`, is too?
    pub(crate) fn is(&self, input: &Path) -> bool {
        matches!(&self.kind, Kind::Regular(path) if same(input, path))
    }

    /// Writes the filter as a koel snapshot, and says how many bytes that took.
    pub(crate) fn save<H: Hasher, S: Storage>(&self, filter: &CuckooFilter<H, S>) -> anyhow::Result<u64> {
        self.put(|path| filter.save(path), |writer| filter.write_to(writer))
    }

    /// Writes the filter as Go's `Encode` does, and says how many bytes that took.
    #[cfg(target_endian = "little")]
    pub(crate) fn save_go(&self, filter: &koel::go::GoFilter) -> anyhow::Result<u64> {
        self.put(
            |path| filter.save(path),
            |writer| writer.write_all(&filter.encode().map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))?),
        )
    }

    /// Writes in whichever way the place takes, and says how many bytes that took.
    fn put(
        &self,
        replace: impl FnOnce(&Path) -> io::Result<()>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<u64> {
        let count = |writer: &mut dyn Write| {
            let mut counted = Counted::new(writer);
            write(&mut counted).and_then(|()| counted.flush()).map(|()| counted.bytes)
        };
        match &self.kind {
            Kind::Stdout => stdout::named(count(&mut io::stdout().lock())),
            Kind::Special(path) => {
                let written = OpenOptions::new().write(true).open(path).and_then(|mut file| count(&mut file));
                written.with_context(|| format!("{}: cannot be written", self.name))
            }
            Kind::Regular(path) => {
                // The error names the file, and says what has become of it.
                replace(path)?;
                Ok(fs::metadata(path).with_context(|| self.name.clone())?.len())
            }
        }
    }
}

/// Can a file be made where this one will be? The list may take hours to read, and then it is late to say no.
fn try_folder(name: &str, path: &Path) -> anyhow::Result<()> {
    // Links are in no circle: the file was asked for, and either found or missing.
    let mut target = path.to_owned();
    while let Ok(link) = fs::read_link(&target) {
        target = folder(&target).join(link);
    }
    let folder = folder(&target);
    let Err(error) = tempfile::tempfile_in(folder) else { return Ok(()) };
    // The error itself goes on about a temporary name.
    let (folder, kind) = (folder.display(), error.kind());
    if kind == ErrorKind::NotFound {
        bail!("{name}: there is no folder {folder}; make it first");
    }
    bail!("{name}: no file can be made in the folder {folder}: {kind}; give a name in another one")
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
