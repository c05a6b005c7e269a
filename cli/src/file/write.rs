//! Where filters are written to: a file, which is locked first and then replaced atomically, or a stream.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind, IsTerminal as _, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use clap::Args;
use indicatif::ProgressBar;
use koel::{CuckooFilter, hash::Hasher, redisbloom::RedisBloomFilter};

use super::{Changing, folder, read, same};
use crate::terminal::{self, Stream};

/// Where a filter goes.
pub(crate) struct Output {
    /// As in messages.
    name: String,
    kind: Kind,
}

// No doc comment here: clap would take it for the help of every command that has this option.
#[derive(Args)]
pub(crate) struct To {
    /// The file to write the filter to; `-` for standard output. For a file that is open as descriptor 3, use `-o - >&3`
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
}

impl To {
    pub(crate) fn open(&self) -> anyhow::Result<Output> {
        Output::new(&self.output)
    }
}

enum Kind {
    /// Standard output or standard error.
    Stream(Stream),
    /// A pipe that is open already, as a descriptor: it is written into.
    Pipe(PathBuf),
    /// A file, which is replaced atomically, and its lock, held from the start; or no file yet.
    Regular(PathBuf, Option<Lock>),
}

impl Output {
    /// The place to write a new filter to. Finds out whether it can be written, and waits for the lock of a file that exists,
    /// before any work is done.
    pub(crate) fn new(path: &Path) -> anyhow::Result<Self> {
        Self::open(path, Access::Replace)
    }

    /// A filter's file, to be read and replaced.
    pub(crate) fn existing(path: &Path) -> anyhow::Result<Self> {
        let output = Self::open(path, Access::ReadAndReplace)?;
        let name = &output.name;
        match &output.kind {
            Kind::Regular(_, Some(_)) => Ok(output),
            Kind::Regular(_, None) => bail!("{name}: cannot be read: no such file; `koel build` creates one"),
            Kind::Pipe(_) | Kind::Stream(_) => {
                bail!("{name}: is not a regular file, so it cannot be replaced by the changed filter; copy it to a file")
            }
        }
    }

    fn open(path: &Path, access: Access) -> anyhow::Result<Self> {
        // What was done is reported there.
        Stream::Stdout.check()?;
        let name = path.display().to_string();
        let descriptor = if super::is_dash(path) { Some(Descriptor::Own(1)) } else { Descriptor::of(path) };
        if let Some(Descriptor::Own(number @ 1..=2)) = descriptor {
            let stream = if number == 1 { Stream::Stdout } else { Stream::Stderr };
            stream.check()?;
            return Ok(Self { name: stream.name().to_owned(), kind: Kind::Stream(stream) });
        }
        let metadata = match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            found => Some(found.with_context(|| format!("{name}: cannot be written"))?),
        };
        match (metadata, descriptor) {
            (Some(metadata), _) if metadata.is_dir() => bail!("{name}: is a folder; give the name of a file in it"),
            (Some(metadata), Some(Descriptor::Own(_))) if !metadata.is_file() => {
                return Ok(Self { name, kind: Kind::Pipe(path.to_owned()) });
            }
            // To open a pipe without a reader is to wait for one, perhaps for ever; the shell opens it where that is wanted.
            (Some(metadata), _) if !metadata.is_file() => bail!(
                "{name}: is {}, not a regular file, and is not replaced; give the name of a file; to write a filter into it, redirect \
                 standard output: `-o - > {name}`",
                kind_of(&metadata)
            ),
            // Opened by such a path, the file would be written from its start, over what is there already; replaced, it would no
            // longer be the file that the descriptor has open.
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
        try_folder(&name, path)?;
        let lock = Lock::wait(path, access)?;
        Ok(Self { name, kind: Kind::Regular(path.to_owned(), lock) })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Reports what was written: on standard output, unless that is where it went.
    pub(crate) fn report(&self, text: &str) -> anyhow::Result<()> {
        if matches!(self.kind, Kind::Stream(Stream::Stdout)) {
            terminal::say(format_args!("{text}"));
            return Ok(());
        }
        terminal::report(text, &self.name)
    }

    /// Is this the file that `input` leads to? `-` is standard input.
    pub(crate) fn is(&self, input: &Path) -> bool {
        matches!(&self.kind, Kind::Regular(path, _) if same(input, path))
    }

    /// Reads and checks the koel snapshot that is to be replaced.
    pub(crate) fn load(&self) -> anyhow::Result<Changing> {
        match &self.kind {
            Kind::Regular(_, Some(lock)) => read::stored(&lock.0, &self.name)?.0.koel(&self.name),
            _ => bail!("{}: is not a regular file; copy it to a file", self.name),
        }
    }

    /// Writes the filter as a koel snapshot, and says how many bytes that took.
    pub(crate) fn save<H: Hasher>(&self, filter: &CuckooFilter<H>) -> anyhow::Result<u64> {
        self.put(|path| filter.save(path), |writer| filter.write_to(writer))
    }

    /// The same for one of either type.
    pub(crate) fn save_changed(&self, filter: &Changing) -> anyhow::Result<u64> {
        match filter {
            Changing::Fixed(filter) => self.save(filter),
            Changing::Growing(filter) => self.put(|path| filter.save(path), |writer| filter.write_to(writer)),
        }
    }

    /// Writes the filter as Go's `Encode` does, and says how many bytes that took.
    #[cfg(target_endian = "little")]
    pub(crate) fn save_go(&self, filter: &koel::go::GoFilter) -> anyhow::Result<u64> {
        self.put(
            |path| filter.save(path),
            |writer| writer.write_all(&filter.encode().map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))?),
        )
    }

    /// Writes the filter as a dump of RedisBloom's, and says how many bytes that took.
    pub(crate) fn save_redisbloom(&self, filter: &RedisBloomFilter) -> anyhow::Result<u64> {
        self.put(|path| filter.save_dump(path), |writer| filter.write_dump(writer))
    }

    /// Writes in the way that suits the place, and says how many bytes that took.
    fn put(
        &self,
        replace: impl FnOnce(&Path) -> io::Result<()>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<u64> {
        let count = |writer: &mut dyn Write| {
            // A bar that is not shown counts the bytes.
            let bar = ProgressBar::hidden();
            let mut counted = bar.wrap_write(writer);
            write(&mut counted).and_then(|()| counted.flush()).map(|()| bar.position())
        };
        match &self.kind {
            Kind::Stream(Stream::Stdout) => terminal::named(count(&mut io::stdout().lock())),
            Kind::Stream(_) => count(&mut io::stderr().lock()).with_context(|| self.name.clone()),
            Kind::Pipe(path) => {
                let written = OpenOptions::new().write(true).open(path).and_then(|mut file| count(&mut file));
                written.with_context(|| format!("{}: cannot be written", self.name))
            }
            Kind::Regular(path, lock) => {
                let name = &self.name;
                // Nothing can compare and rename in one step. What is done to the path while the file is being written is not seen.
                let _lock_of_new_file = match lock {
                    Some(lock) if lock.is_at(path) => None,
                    Some(_) => bail!(
                        "{name}: was moved, removed or replaced in the meantime; nothing was written; run the command again"
                    ),
                    // There was no file to lock. If there is one now, another command may be changing it.
                    None => Lock::wait(path, Access::Replace)?,
                };
                // The error names the file, and says what has become of it.
                replace(path)?;
                Ok(fs::metadata(path).with_context(|| self.name.clone())?.len())
            }
        }
    }
}

/// What something is that is neither a regular file nor a folder.
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

/// From here on, a write beyond the limit of a file's size (`ulimit -f`) is an error, as one on a full disk is: reported, and
/// followed by removing the temporary file. By default, the signal that comes with it ends the process before that.
#[allow(unsafe_code, reason = "no safe function ignores a signal")]
#[cfg(unix)]
pub(crate) fn ignore_file_size_limit() {
    // SAFETY: this runs before there are other threads, and to ignore a signal runs no code when it comes.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Can a file be created in the folder of this one? Reading the items may take hours, and then it is late to find out.
fn try_folder(name: &str, path: &Path) -> anyhow::Result<()> {
    // The links form no cycle: looking for the file either found it or found nothing.
    let mut target = path.to_owned();
    while let Ok(link) = fs::read_link(&target) {
        target = folder(&target).join(link);
    }
    let folder = folder(&target);
    let Err(error) = tempfile::tempfile_in(folder) else { return Ok(()) };
    // The error itself names a temporary file.
    let (folder, kind) = (folder.display(), error.kind());
    if kind == ErrorKind::NotFound {
        bail!("{name}: there is no folder {folder}; make it first");
    }
    bail!("{name}: no file can be created in the folder {folder}: {kind}; give a name in another one")
}

/// A file descriptor that a path stands for. It need not be open.
#[derive(Clone, Copy)]
enum Descriptor {
    /// Of this process, with its number.
    Own(u32),
    /// Of another process. Its file may have been deleted, and then its name leads nowhere.
    Foreign,
}

impl Descriptor {
    fn of(path: &Path) -> Option<Self> {
        // On Linux these are links to /proc/PID/fd and /proc/PID/task/TID/fd; elsewhere /dev/fd is a folder.
        let own = ["/dev/fd", "/proc/self/fd", "/proc/thread-self/fd"].map(|own| fs::canonicalize(own).ok());
        let mut path = path.to_owned();
        // As many links as Linux follows.
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

/// What a locked file is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// To be replaced by a file that does not depend on its content.
    Replace,
    /// To be read, and then to be replaced.
    ReadAndReplace,
}

/// The lock on a file, held until it is dropped.
///
/// It belongs to the file, not to its path, and a file is changed by renaming another over it: what matters is the file that the
/// path leads to while the lock is held, see [`Lock::is_at`].
struct Lock(File);

impl Lock {
    /// Locks the file that a path leads to, as soon as no other command holds its lock. `None` if there is no file.
    ///
    /// Fails if the file is write-protected: replacing it would take write access to the folder only, but the protection is there
    /// for a reason.
    fn wait(path: &Path, access: Access) -> anyhow::Result<Option<Self>> {
        let name = path.display();
        loop {
            let file = match OpenOptions::new().read(access == Access::ReadAndReplace).write(true).open(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                opened => opened.with_context(|| format!("{name}: cannot be written"))?,
            };
            let locked = match file.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    if io::stderr().is_terminal() {
                        terminal::say(format_args!("koel: {name}: waiting for another command that is changing it\n"));
                    }
                    file.lock()
                }
                Err(TryLockError::Error(error)) => Err(error),
                Ok(()) => Ok(()),
            };
            match locked {
                // On file systems without locks, the later of two changes wins.
                Err(error) if error.kind() != ErrorKind::Unsupported => {
                    return Err(error).with_context(|| format!("{name}: cannot be locked"));
                }
                _ => {}
            }
            // The command that held the lock has probably renamed another file over this one.
            let lock = Self(file);
            if lock.is_at(path) {
                return Ok(Some(lock));
            }
        }
    }

    /// Does the path lead to the locked file?
    #[cfg(unix)]
    fn is_at(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        self.0.metadata().is_ok_and(|locked| fs::metadata(path).is_ok_and(|found| identity(locked) == identity(found)))
    }

    /// Does the path lead to the locked file? Without an identity to compare, any file will do.
    #[cfg(not(unix))]
    #[allow(clippy::unused_self, reason = "on Unix, the lock knows its file")]
    fn is_at(&self, path: &Path) -> bool {
        fs::exists(path).is_ok_and(|exists| exists)
    }
}
