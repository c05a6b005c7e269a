//! Filters as files: read with suspicion, written so that a crash or a full disk leaves the old file.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use koel::{AnyHasher, CuckooFilter};
use tempfile::NamedTempFile;

use crate::options;

/// The filters of this command: which hasher they have turns out at run time.
pub(crate) type Filter = CuckooFilter<AnyHasher>;

/// Symbolic links that are followed before they are taken for a circle.
const MOST_LINKS: usize = 40;

/// Does the path stand for standard input or output?
pub(crate) fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The length of what can be read, if that is known beforehand.
pub(crate) fn length(metadata: &Metadata) -> Option<u64> {
    // Some files of the kernel's are regular and seem to be empty.
    (metadata.is_file() && metadata.len() > 0).then_some(metadata.len())
}

/// What standard input is.
#[cfg(unix)]
pub(crate) fn stdin_metadata() -> Option<Metadata> {
    use std::os::fd::AsFd as _;
    let stdin = io::stdin().as_fd().try_clone_to_owned().ok()?;
    File::from(stdin).metadata().ok()
}

/// What standard input is: not known.
#[cfg(not(unix))]
pub(crate) fn stdin_metadata() -> Option<Metadata> {
    None
}

/// Counts what passes through.
struct Counted<T> {
    inner: T,
    bytes: u64,
}

impl<T: Read> Read for Counted<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

impl<T: Write> Write for Counted<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Reads a filter, from standard input for `-`, and says how many bytes it takes there.
pub(crate) fn load(path: &Path) -> anyhow::Result<(Filter, u64)> {
    if is_dash(path) {
        return read(io::stdin().lock(), "standard input");
    }
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("{name}: cannot be read"))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        bail!("{name}: is a folder; give a file that `koel build` wrote");
    }
    read(file, &name)
}

/// Reads a filter that is to be changed, and keeps others from changing it until the file that comes with it is dropped.
pub(crate) fn load_locked(path: &Path) -> anyhow::Result<(Filter, File)> {
    let name = path.display().to_string();
    loop {
        let file = File::open(path).with_context(|| format!("{name}: cannot be read"))?;
        match file.lock() {
            Err(error) if error.kind() != ErrorKind::Unsupported => {
                return Err(error).with_context(|| format!("{name}: cannot be locked"));
            }
            // Where there are no locks, the later of two changes wins.
            _ => {}
        }
        // Whoever had the lock has put another file in this one's place, most likely.
        if is_still_at(&file, path) {
            return Ok((read(&file, &name)?.0, file));
        }
    }
}

fn read(reader: impl Read, name: &str) -> anyhow::Result<(Filter, u64)> {
    let kernel = options::kernel()?;
    let mut reader = Counted { inner: reader, bytes: 0 };
    let mut unknown = None;
    let filter = Filter::read_from_with(&mut reader, |id| {
        let hasher = AnyHasher::from_id(id);
        unknown = hasher.is_none().then_some(id);
        hasher
    });
    let mut filter = match (filter, unknown) {
        (Ok(filter), _) => filter,
        (Err(_), Some(id)) => bail!("{name}: built with {id}, which this command does not have; use the program that built it"),
        (Err(error), None) => return Err(error).with_context(|| name.to_owned()),
    };
    let end = reader.bytes;
    let beyond = io::copy(&mut reader.take(1), &mut io::sink()).with_context(|| format!("{name}: cannot be read further"))?;
    if beyond > 0 {
        bail!("{name}: goes on after byte {end}, where the filter ends; get another copy");
    }
    if let Some(kernel) = kernel {
        filter.set_kernel(kernel)?;
    }
    Ok((filter, end))
}

/// Where a filter goes.
pub(crate) struct Output {
    /// As the user wrote it.
    name: String,
    kind: OutputKind,
}

enum OutputKind {
    Stdout,
    /// A device or a pipe, which must not be replaced: written into.
    Special(PathBuf),
    /// A file, its symbolic links followed: replaced at one go.
    Regular(PathBuf),
}

impl Output {
    /// Finds out what will be written, and whether it can be, before any work is done.
    pub(crate) fn new(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        // Opened anew, a redirected /dev/stdout would begin at its start again, and rename would replace it.
        let stdout = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
        if stdout.iter().any(|&stdout| path.as_os_str() == stdout) {
            return Ok(Self { name: String::from("standard output"), kind: OutputKind::Stdout });
        }
        let kind = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => bail!("{name}: is a folder; give the name of a file in it"),
            Ok(metadata) if !metadata.is_file() => OutputKind::Special(path.to_owned()),
            Ok(_) => {
                // Replacing it asks for the folder's permission only; but whoever protected the file meant it.
                OpenOptions::new().write(true).open(path).with_context(|| format!("{name}: cannot be written"))?;
                OutputKind::Regular(follow(path)?)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => OutputKind::Regular(follow(path)?),
            Err(error) => return Err(error).with_context(|| format!("{name}: cannot be written")),
        };
        let output = Self { name, kind };
        if let OutputKind::Regular(target) = &output.kind {
            output.temporary(target, None)?;
        }
        Ok(output)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.kind, OutputKind::Stdout)
    }

    pub(crate) fn is_regular(&self) -> bool {
        matches!(self.kind, OutputKind::Regular(_))
    }

    /// Is it a file that `input`, which is standard input for `-`, is too?
    pub(crate) fn is(&self, input: &Path) -> bool {
        matches!(&self.kind, OutputKind::Regular(target) if same(input, target))
    }

    /// Writes the filter, and says how many bytes that took.
    pub(crate) fn save(&self, filter: &Filter) -> anyhow::Result<u64> {
        match &self.kind {
            OutputKind::Stdout => {
                let mut stdout = Counted { inner: io::stdout().lock(), bytes: 0 };
                crate::stdout::named(filter.write_to(&mut stdout).and_then(|()| stdout.flush()))?;
                Ok(stdout.bytes)
            }
            OutputKind::Special(path) => {
                let written = OpenOptions::new().write(true).open(path).and_then(|file| write(filter, file));
                written.with_context(|| format!("{}: cannot be written", self.name))
            }
            OutputKind::Regular(target) => self.replace(target, filter),
        }
    }

    /// Under a temporary name first, so that at any time there is the whole old file or the whole new one.
    fn replace(&self, target: &Path, filter: &Filter) -> anyhow::Result<u64> {
        let old = fs::metadata(target).ok();
        let temporary = self.temporary(target, old.as_ref())?;
        let unchanged = if old.is_some() { "; it is as it was" } else { "" };
        let failed = || format!("{}: cannot be written{unchanged}", self.name);
        let bytes = write(filter, temporary.as_file()).with_context(failed)?;
        if let Some(old) = old {
            keep_owner(temporary.as_file(), &old);
            temporary.as_file().set_permissions(old.permissions()).with_context(failed)?;
        }
        temporary.as_file().sync_all().with_context(failed)?;
        temporary.persist(target).map_err(|error| error.error).with_context(failed)?;
        let synced = sync_folder(folder(target));
        synced.with_context(|| format!("{}: written, but a power cut might undo it: its folder cannot be synced", self.name))?;
        Ok(bytes)
    }

    /// A new file beside the target, deleted unless it takes the target's place. Readable by nobody else while there is an
    /// old file whose permissions it will get; otherwise with those of any new file.
    fn temporary(&self, target: &Path, old: Option<&Metadata>) -> anyhow::Result<NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".koel-").suffix(".tmp");
        #[cfg(unix)]
        if old.is_none() {
            use std::os::unix::fs::PermissionsExt as _;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        #[cfg(not(unix))]
        let _ = old;
        builder.tempfile_in(folder(target)).map_err(|error| {
            // The error itself goes on about the temporary name.
            let (folder, kind) = (folder(target).display(), error.kind());
            if kind == ErrorKind::NotFound {
                return anyhow::anyhow!("{}: there is no folder {folder}; make it first", self.name);
            }
            anyhow::anyhow!("{}: no file can be made in the folder {folder}: {kind}; give a name in another one", self.name)
        })
    }
}

fn write(filter: &Filter, writer: impl Write) -> io::Result<u64> {
    let mut writer = Counted { inner: writer, bytes: 0 };
    filter.write_to(&mut writer)?;
    writer.flush()?;
    Ok(writer.bytes)
}

/// The file that a path leads to, whether or not it exists.
fn follow(path: &Path) -> anyhow::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&target) {
            Ok(link) => target = folder(&target).join(link),
            Err(_) => return Ok(target),
        }
    }
    bail!("{}: leads through more than {MOST_LINKS} symbolic links; give the file they should lead to", path.display())
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Are they one file? `input` may be `-`.
#[cfg(unix)]
fn same(input: &Path, target: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let input = if is_dash(input) { stdin_metadata() } else { fs::metadata(input).ok() };
    let place = |metadata: Metadata| (metadata.dev(), metadata.ino());
    input.is_some_and(|input| fs::metadata(target).is_ok_and(|target| place(input) == place(target)))
}

/// Is it this file that the path leads to?
#[cfg(unix)]
fn is_still_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let place = |metadata: Metadata| (metadata.dev(), metadata.ino());
    file.metadata().is_ok_and(|ours| fs::metadata(path).is_ok_and(|theirs| place(ours) == place(theirs)))
}

/// Is it this file that the path leads to? What is locked cannot be replaced here.
#[cfg(not(unix))]
fn is_still_at(_: &File, _: &Path) -> bool {
    true
}

/// Are they one file? What standard input is, is not known here.
#[cfg(not(unix))]
fn same(input: &Path, target: &Path) -> bool {
    !is_dash(input) && fs::canonicalize(input).is_ok_and(|input| fs::canonicalize(target).is_ok_and(|target| input == target))
}

/// Who may not give files away keeps at least the group, if that is possible; if it is not, the new file is the writer's own,
/// as any new file is.
#[cfg(unix)]
fn keep_owner(file: &File, old: &Metadata) {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    if fchown(file, Some(old.uid()), Some(old.gid())).is_err() {
        fchown(file, None, Some(old.gid())).ok();
    }
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Metadata) {}

/// Makes the new name durable.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Folders that cannot be read, and file systems that cannot do it: nothing more can be done there.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Ok(())
        }
        other => other,
    }
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
