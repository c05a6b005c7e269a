//! Writes filters to a file, which is locked first and then replaced atomically, or to a stream.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::Duration,
};

use anyhow::{Context as _, bail};
use clap::Args;
use indicatif::ProgressBar;
use koel::{CuckooFilter, hash::Hasher, redisbloom::RedisBloomFilter};

use super::{Snapshot, folder, is_same_file, read, slice::refuse_window, target};
use crate::terminal::{self, Stream};

/// The place that a filter is written to.
pub(crate) struct Output {
    /// The name in messages.
    name: String,
    access: Access,
    kind: Kind,
}

// No doc comment here: clap would use it as the help of every command that has this option.
#[derive(Args)]
pub(crate) struct OutputArgs {
    /// The file to write the filter to; `-` for standard output. For a file that is open as descriptor 3, use `-o - >&3`
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
}

impl OutputArgs {
    pub(crate) fn open(&self) -> anyhow::Result<Output> {
        if !super::is_dash(&self.output) {
            refuse_window(&self.output)?;
        }
        Output::new(&self.output)
    }
}

enum Kind {
    /// Standard output or standard error.
    Stream(Stream),
    /// A pipe or device that is open as a descriptor. It is written into, not replaced.
    Pipe(PathBuf),
    /// A file, which is replaced atomically. Its lock is held from the start; `None` if there was no file to lock.
    Regular(PathBuf, Option<Lock>),
}

impl Output {
    /// Opens the place for a new filter. Before any work is done, this checks that the place can be written, and waits for the lock
    /// of an existing file.
    pub(crate) fn new(path: &Path) -> anyhow::Result<Self> {
        Self::open(path, Access::Replace)
    }

    /// Opens a filter's file that will be read and replaced.
    pub(crate) fn existing(path: &Path) -> anyhow::Result<Self> {
        Self::open(path, Access::Update { may_be_new: false })?.with_file()
    }

    /// Opens a filter's file that will be read and replaced. If there is none, creates an empty one, as `mktemp` does; if nothing is
    /// saved, dropping the result removes it.
    pub(crate) fn existing_or_new(path: &Path) -> anyhow::Result<Self> {
        Self::open(path, Access::Update { may_be_new: true })?.with_file()
    }

    /// Fails if there is no file to replace.
    fn with_file(self) -> anyhow::Result<Self> {
        let (name, remedy) = (&self.name, self.access.remedy());
        match &self.kind {
            Kind::Regular(_, Some(_)) => Ok(self),
            Kind::Regular(_, None) => bail!("{name}: cannot be read: no such file; `koel build` creates one"),
            Kind::Pipe(_) | Kind::Stream(_) => {
                bail!("{name}: is not a regular file, so it cannot be replaced by the changed filter; {remedy}")
            }
        }
    }

    /// Returns whether the file was empty, and so has no filter yet.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.kind, Kind::Regular(_, Some(lock)) if lock.is_empty())
    }

    fn open(path: &Path, access: Access) -> anyhow::Result<Self> {
        // The report goes to standard output.
        Stream::Stdout.check()?;
        let name = path.display().to_string();
        let descriptor = if super::is_dash(path) { Some(Descriptor::Own(1)) } else { Descriptor::at(path) };
        if let Some(Descriptor::Own(number @ 1..=2)) = descriptor {
            let stream = if number == 1 { Stream::Stdout } else { Stream::Stderr };
            stream.check()?;
            if access == Access::Replace && stream.is_terminal() {
                bail!("{}: is a terminal, and filters are binary; redirect it to a file or a pipe", stream.name());
            }
            return Ok(Self { name: stream.name().to_owned(), access, kind: Kind::Stream(stream) });
        }
        let metadata = match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                let is_file = |part: &&Path| fs::metadata(part).is_ok_and(|metadata| !metadata.is_dir());
                let file = path.ancestors().skip(1).find(is_file).unwrap_or(path).display();
                bail!("{name}: cannot be written: {file} is a file, not a folder; give a name in a folder")
            }
            found => Some(found.with_context(|| format!("{name}: cannot be written"))?),
        };
        match (metadata, descriptor) {
            (Some(metadata), _) if metadata.is_dir() => bail!("{name}: is a folder; give the name of a file in it"),
            (Some(metadata), Some(Descriptor::Own(_))) if !metadata.is_file() => {
                return Ok(Self { name, access, kind: Kind::Pipe(path.to_owned()) });
            }
            // Opening a pipe without a reader could block forever, so the pipe is left to the shell to open.
            (Some(metadata), _) if !metadata.is_file() => bail!(
                "{name}: is {}, not a regular file, and is not replaced; {}",
                kind_of(&metadata),
                match access {
                    Access::Replace => {
                        format!("give the name of a file; to write a filter into it, redirect standard output: `-o - > {name}`")
                    }
                    Access::Update { .. } => String::from(access.remedy()),
                }
            ),
            // Opening such a path would overwrite the file from its start, and replacing the file would detach it from the
            // descriptor.
            (Some(_), Some(descriptor)) => bail!(
                "{name}: is the descriptor of a regular file, which cannot be replaced through it; give the file's own name{}",
                match descriptor {
                    Descriptor::Own(number) if access == Access::Replace => format!(", or -o - >&{number}"),
                    _ => String::new(),
                }
            ),
            (None, Some(_)) => bail!("{name}: this descriptor is not open; give the name of a file"),
            (None, None) if path.file_name().is_none() => bail!("'{name}': has no file name; give the name of the file to write"),
            _ => {}
        }
        check_folder(&name, path, access)?;
        let lock = Lock::wait(path, access)?;
        Ok(Self { name, access, kind: Kind::Regular(path.to_owned(), lock) })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Reports what was written, on standard output. If the filter itself went there, the report goes to standard error. If printing
    /// fails, the error says that the file was written nevertheless.
    pub(crate) fn report(&self, text: &str) -> anyhow::Result<()> {
        if matches!(self.kind, Kind::Stream(Stream::Stdout)) {
            terminal::say(format_args!("{text}"));
            return Ok(());
        }
        terminal::print(text).with_context(|| format!("{} was written, but the report of it could not be", self.name))
    }

    /// Fails if the file that was locked is no longer at its path. Another command may then have locked another one.
    pub(crate) fn check_lock(&self) -> anyhow::Result<()> {
        match &self.kind {
            Kind::Regular(path, Some(lock)) if !lock.is_at(path) => {
                bail!("{}: was moved, removed or replaced in the meantime; nothing was written; run the command again", self.name)
            }
            _ => Ok(()),
        }
    }

    /// Returns whether this is the file that `input` leads to. `-` is standard input.
    pub(crate) fn is_file_of(&self, input: &Path) -> bool {
        matches!(&self.kind, Kind::Regular(path, _) if is_same_file(input, path))
    }

    /// Reads and checks the koel snapshot that will be replaced.
    pub(crate) fn load(&self) -> anyhow::Result<Snapshot> {
        match &self.kind {
            Kind::Regular(_, Some(lock)) => {
                let wanted = match self.access {
                    Access::Update { may_be_new: true } => {
                        "a file that `koel uniq` or `koel build` wrote, or the name of a new one"
                    }
                    _ => read::FILTER,
                };
                read::read_stored(&lock.file, &self.name, wanted)?.0.snapshot(&self.name)
            }
            _ => bail!("{}: is not a regular file; {}", self.name, self.access.remedy()),
        }
    }

    /// Writes a filter of fixed size as a koel snapshot. Returns the number of bytes.
    pub(crate) fn save<H: Hasher>(&self, filter: &CuckooFilter<H>) -> anyhow::Result<u64> {
        self.put(|path| filter.save(path).map(|()| filter.snapshot_bytes()), |writer| filter.write_to(writer))
    }

    /// Writes a filter of either type as a koel snapshot. Returns the number of bytes.
    pub(crate) fn save_snapshot(&self, filter: &Snapshot) -> anyhow::Result<u64> {
        match filter {
            Snapshot::Fixed(filter) => self.save(filter),
            Snapshot::Growing(filter) => {
                self.put(|path| filter.save(path).map(|()| filter.snapshot_bytes()), |writer| filter.write_to(writer))
            }
        }
    }

    /// Writes a filter as Go's `Encode` does. Returns the number of bytes.
    #[cfg(target_endian = "little")]
    pub(crate) fn save_go(&self, filter: &koel::go::GoFilter) -> anyhow::Result<u64> {
        let encode = || filter.encode().map_err(|error| io::Error::new(ErrorKind::InvalidInput, error));
        self.put(
            |path| {
                let bytes = encode()?.len() as u64;
                filter.save(path).map(|()| bytes)
            },
            |writer| writer.write_all(&encode()?),
        )
    }

    /// Writes a filter as a RedisBloom dump. Returns the number of bytes.
    pub(crate) fn save_redisbloom(&self, filter: &RedisBloomFilter) -> anyhow::Result<u64> {
        // Each chunk comes after its iterator and its length.
        let bytes = || filter.chunks().map(|(_, chunk)| 16 + chunk.len() as u64).sum();
        self.put(|path| filter.save_dump(path).map(|()| bytes()), |writer| filter.write_dump(writer))
    }

    /// Calls `replace` for a file, which returns the number of bytes, or `write` for a stream. Returns the number of bytes.
    fn put(
        &self,
        replace: impl FnOnce(&Path) -> io::Result<u64>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<u64> {
        let count = |writer: &mut dyn Write| {
            // A hidden progress bar counts the bytes.
            let bar = ProgressBar::hidden();
            let mut counted = bar.wrap_write(writer);
            write(&mut counted).and_then(|()| counted.flush()).map(|()| bar.position())
        };
        match &self.kind {
            Kind::Stream(Stream::Stdout) => terminal::stdout_result(count(&mut io::stdout().lock())),
            Kind::Stream(_) => count(&mut io::stderr().lock()).with_context(|| self.name.clone()),
            Kind::Pipe(path) => {
                let written = OpenOptions::new().write(true).open(path).and_then(|mut file| count(&mut file));
                written.with_context(|| format!("{}: cannot be written", self.name))
            }
            Kind::Regular(path, lock) => {
                // No system call compares and renames in one step, so changes to the path while the file is being written go
                // unnoticed.
                let _lock_of_new_file = match lock {
                    Some(_) => self.check_lock().map(|()| None)?,
                    // There was no file to lock. If there is one now, another command may be changing it.
                    None => Lock::wait(path, Access::Replace)?,
                };
                // The error names the file and says whether the old one is unchanged. From now on, other programs may move it.
                Ok(replace(path)?)
            }
        }
    }
}

/// Names the kind of something that is neither a regular file nor a folder.
#[cfg(unix)]
fn kind_of(metadata: &fs::Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;
    match metadata.file_type() {
        kind if kind.is_fifo() => "a named pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(not(unix))]
fn kind_of(_: &fs::Metadata) -> &'static str {
    "a device"
}

/// Ignores the signal SIGXFSZ, so that a write beyond the file-size limit (`ulimit -f`) is an error like that of a full disk: it is
/// reported, and the temporary file is removed. By default, the signal ends the process before that.
#[allow(unsafe_code, reason = "no safe function ignores a signal")]
#[cfg(unix)]
pub(crate) fn ignore_file_size_limit() {
    // SAFETY: no other thread exists yet, and an ignored signal runs no handler.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Checks that a file can be created in the folder of `path`. Reading the items may take hours, so this must fail early.
fn check_folder(name: &str, path: &Path, access: Access) -> anyhow::Result<()> {
    let target = target(path);
    let folder = folder(&target);
    let Err(error) = tempfile::tempfile_in(folder) else { return Ok(()) };
    // The error's own message would name a temporary file.
    let (is_there, folder, kind) = (folder.is_dir(), folder.display(), error.kind());
    if kind == ErrorKind::NotFound && !is_there {
        bail!("{name}: there is no folder {folder}; make it first");
    }
    let remedy = match access {
        Access::Update { may_be_new: false } => "allow that, or copy the filter to another one",
        _ => "give a name in another one",
    };
    bail!("{name}: no file can be created in the folder {folder}: {kind}; {remedy}")
}

/// A file descriptor that a path leads to, such as `/dev/fd/3`. It need not be open.
#[derive(Clone, Copy)]
enum Descriptor {
    /// A descriptor of this process, with its number.
    Own(u32),
    /// A descriptor of another process. If its file has been deleted, the link leads nowhere.
    Foreign,
}

impl Descriptor {
    fn at(path: &Path) -> Option<Self> {
        // On Linux, these are links to /proc/PID/fd and /proc/PID/task/TID/fd. On other systems, /dev/fd is a folder.
        let own = ["/dev/fd", "/proc/self/fd", "/proc/thread-self/fd"].map(|own| fs::canonicalize(own).ok());
        let mut path = path.to_owned();
        // Linux follows at most 40 links.
        for _ in 0..40 {
            let number = path.file_name().and_then(|name| name.to_str()?.parse().ok());
            if let (Some(number), Ok(folder)) = (number, fs::canonicalize(folder(&path))) {
                let is_foreign = folder.starts_with("/proc") && folder.ends_with("fd");
                if own.contains(&Some(folder)) {
                    return Some(Self::Own(number));
                }
                if is_foreign {
                    return Some(Self::Foreign);
                }
            }
            path = folder(&path).join(fs::read_link(&path).ok()?);
        }
        None
    }
}

/// The purpose of opening a file to lock it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// The file will be replaced, but not read.
    Replace,
    /// The file will be read, and then replaced. If it may be new, an empty one is created, so that there is one to lock.
    Update { may_be_new: bool },
}

impl Access {
    /// Returns the remedy for what is not a regular file.
    const fn remedy(self) -> &'static str {
        match self {
            Self::Replace => "give the name of a file",
            Self::Update { may_be_new: true } => {
                "give the name of a file, or leave --filter out to remember nothing for the next run"
            }
            Self::Update { may_be_new: false } => "give the name of a file that `koel build` wrote",
        }
    }
}

/// The time to wait for a lock in silence. Most commands take less.
const PATIENCE: Duration = Duration::from_secs(1);

/// Prints a message after that time, unless the result is dropped before.
fn say_later(text: String) -> Sender<()> {
    let (cancel, canceled) = mpsc::channel();
    let wait = move || {
        if canceled.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            terminal::say(format_args!("{text}"));
        }
    };
    // Without a thread, the command waits in silence.
    thread::Builder::new().spawn(wait).ok();
    cancel
}

/// The lock on a file, held until it is dropped.
///
/// A lock belongs to a file, not to its path, and commands change a file by renaming another over it. So the holder of a lock
/// checks that the path still leads to the locked file: see [`Lock::is_at`].
struct Lock {
    file: File,
    /// The file that was created to be locked, unless there was one.
    created: Option<PathBuf>,
}

impl Drop for Lock {
    /// Removes the file that was created, unless a filter replaced it. Commands that wait for the lock then create another one.
    fn drop(&mut self) {
        let is_unused = |path: &&PathBuf| self.is_at(path) && fs::metadata(path).is_ok_and(|found| found.len() == 0);
        if let Some(path) = self.created.as_ref().filter(is_unused) {
            // If this fails, the file stays, and is a new filter for the next run.
            fs::remove_file(path).ok();
        }
    }
}

impl Lock {
    /// Waits until no other command holds the lock of the file at `path`, and locks it. If there is no file, returns `None`, or
    /// creates one if `access` permits that.
    ///
    /// Fails if the file is write-protected. Replacing it would need write access to the folder only, but that would defeat the
    /// protection.
    fn wait(path: &Path, access: Access) -> anyhow::Result<Option<Self>> {
        let name = path.display();
        let mut notice = None;
        loop {
            let (file, created) = match OpenOptions::new().read(access != Access::Replace).write(true).open(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    if access != (Access::Update { may_be_new: true }) {
                        return Ok(None);
                    }
                    let target = target(path);
                    match OpenOptions::new().read(true).write(true).create_new(true).open(&target) {
                        // Another command was faster.
                        Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                        created => (created.with_context(|| format!("{name}: cannot be created"))?, Some(target)),
                    }
                }
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    bail!("{name}: cannot be written: {error}; change its permissions, or give another file")
                }
                opened => (opened.with_context(|| format!("{name}: cannot be written"))?, None),
            };
            let locked = match file.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    notice.get_or_insert_with(|| {
                        say_later(format!("koel: {name}: waiting for another command that is changing it\n"))
                    });
                    file.lock()
                }
                Err(TryLockError::Error(error)) => Err(error),
                Ok(()) => Ok(()),
            };
            match locked {
                // On file systems without locks, the later of two concurrent changes wins.
                Err(error) if error.kind() != ErrorKind::Unsupported => {
                    return Err(error).with_context(|| format!("{name}: cannot be locked"));
                }
                _ => {}
            }
            // If the lock was held, its holder has probably renamed another file over this one.
            let lock = Self { file, created };
            if lock.is_at(path) {
                return Ok(Some(lock));
            }
        }
    }

    /// Returns whether the locked file is empty.
    fn is_empty(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.len() == 0)
    }

    /// Returns whether the path leads to the locked file.
    #[cfg(unix)]
    fn is_at(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        self.file.metadata().is_ok_and(|locked| fs::metadata(path).is_ok_and(|found| identity(locked) == identity(found)))
    }

    /// Returns whether the path leads to a file. This system has no file identity to compare.
    #[cfg(not(unix))]
    #[allow(clippy::unused_self, reason = "on Unix, the lock knows its file")]
    fn is_at(&self, path: &Path) -> bool {
        fs::exists(path).is_ok_and(|exists| exists)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that watches the folder may move the new file away at once, or replace it.
    #[test]
    fn the_length_is_that_of_what_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = Output::new(&folder.path().join("out")).expect("a new file");
        let moved = output.put(|path| fs::write(path, "new").and_then(|()| fs::remove_file(path)).map(|()| 3), |_| Ok(()));
        assert_eq!(moved.expect("a success"), 3);
        let replaced = output.put(|path| fs::write(path, "another").map(|()| 3), |_| Ok(()));
        assert_eq!(replaced.expect("a success"), 3);
    }
}
