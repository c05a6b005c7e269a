//! The standard streams: checking that they are open, printing, and the exit status of errors. A reader may close standard output
//! at any time.

#[cfg(unix)]
use std::sync::atomic::{AtomicBool, Ordering};
use std::{
    fmt,
    io::{self, BufWriter, ErrorKind, IsTerminal as _, StdinLock, Stdout, Write as _},
    process::{self, ExitCode},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use anyhow::{Context as _, bail};
use clap::error::{ContextKind, ContextValue};
use indicatif::{ProgressBar, ProgressStyle};
use koel_lab::on_termination;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdin,
    Stdout,
    Stderr,
}

impl Stream {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Stdin => "standard input",
            Self::Stdout => "standard output",
            Self::Stderr => "standard error",
        }
    }

    /// Fails if the stream is not open in the direction in which it is used, or was closed when the command started. The check is
    /// needed because Rust's standard library treats the error of reading or writing a stream that is not open (`EBADF`) as success,
    /// and opens the null device in place of a closed stream.
    pub(crate) fn check(self) -> anyhow::Result<()> {
        if !has_access(self) {
            let (direction, remedy) = match self {
                Self::Stdin => ("reading", "from a file or from /dev/null"),
                Self::Stdout | Self::Stderr => ("writing", "to a file or to /dev/null"),
            };
            bail!("{}: is not open for {direction}; redirect it {remedy}", self.name());
        }
        Ok(())
    }

    pub(crate) fn is_terminal(self) -> bool {
        match self {
            Self::Stdin => io::stdin().is_terminal(),
            Self::Stdout => io::stdout().is_terminal(),
            Self::Stderr => io::stderr().is_terminal(),
        }
    }
}

/// Returns whether what is printed on standard output cannot appear on the terminal, among the lines of a progress bar: it is
/// neither the terminal nor a pipe, whose reader may print on the terminal.
#[cfg(unix)]
pub(crate) fn is_stdout_apart() -> bool {
    use rustix::{
        fs::{FileType, fstat},
        stdio::stdout,
    };
    let kind = fstat(stdout()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    !io::stdout().is_terminal() && kind.is_ok_and(|kind| matches!(kind, FileType::RegularFile | FileType::CharacterDevice))
}

/// Returns whether standard output is not the terminal. This system does not tell whether it is a pipe.
#[cfg(not(unix))]
pub(crate) fn is_stdout_apart() -> bool {
    !io::stdout().is_terminal()
}

/// Checks standard input and locks it.
pub(crate) fn stdin() -> anyhow::Result<StdinLock<'static>> {
    Stream::Stdin.check()?;
    Ok(io::stdin().lock())
}

/// Returns whether standard input is open for reading, or another stream for writing. `nohup`, for example, opens standard input
/// for writing only.
#[cfg(unix)]
fn has_access(stream: Stream) -> bool {
    use rustix::{
        fs::{OFlags, fcntl_getfl},
        stdio::{stderr, stdin, stdout},
    };

    let (number, stream, unusable) = match stream {
        Stream::Stdin => (0, stdin(), OFlags::WRONLY),
        Stream::Stdout => (1, stdout(), OFlags::RDONLY),
        Stream::Stderr => (2, stderr(), OFlags::RDONLY),
    };
    // If the mode is unknown, the stream counts as open: reading or writing it fails later.
    !CLOSED_AT_START[number].load(Ordering::Relaxed)
        && !fcntl_getfl(stream).is_ok_and(|flags| flags & OFlags::ACCMODE == unusable)
}

/// For each stream, whether it was closed when the process started. Rust's standard library has opened the null device in its place
/// before `main`, for reading and writing, so it looks like one that is redirected to `/dev/null`.
#[cfg(unix)]
static CLOSED_AT_START: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// The system calls the functions in this section before the standard library starts.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd", target_os = "macos"))]
#[allow(unsafe_code, reason = "no safe code runs before the standard library starts")]
#[used]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_os = "macos"), unsafe(link_section = ".init_array"))]
static AT_START: extern "C" fn() = {
    extern "C" fn note_closed_streams() {
        use rustix::{
            fs::fcntl_getfl,
            io::Errno,
            stdio::{stderr, stdin, stdout},
        };
        // This must not use what the standard library sets up: it only calls the system and stores flags.
        for (closed, stream) in CLOSED_AT_START.iter().zip([stdin(), stdout(), stderr()]) {
            closed.store(fcntl_getfl(stream) == Err(Errno::BADF), Ordering::Relaxed);
        }
    }
    note_closed_streams
};

/// Returns `true`: this system has no file descriptors to check.
#[cfg(not(unix))]
fn has_access(_: Stream) -> bool {
    true
}

/// The error that the reader of standard output has closed the pipe. It ends the command, but is not reported as an error.
#[derive(Debug)]
pub(crate) struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output was closed")
    }
}

/// Names standard output in an error, and turns a broken pipe into [`Closed`].
pub(crate) fn stdout_result<T>(result: io::Result<T>) -> anyhow::Result<T> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(anyhow::Error::msg(Closed)),
        other => other.context("standard output"),
    }
}

/// Prints text. A closed pipe is not an error, because the work that the text reports is done.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    Stream::Stdout.check()?;
    let mut stdout = io::stdout().lock();
    match stdout_result(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())) {
        Err(error) if error.is::<Closed>() => Ok(()),
        other => other,
    }
}

/// Standard output for many items, with a large buffer.
pub(crate) struct Out(BufWriter<Stdout>);

impl Out {
    /// Requires that standard output has been checked, unless nothing will be written.
    pub(crate) fn new() -> Self {
        Self(BufWriter::with_capacity(64 << 10, io::stdout()))
    }

    pub(crate) fn text(&mut self, text: fmt::Arguments<'_>) -> anyhow::Result<()> {
        stdout_result(self.0.write_fmt(text))
    }

    #[inline]
    pub(crate) fn item(&mut self, item: &[u8], separator: u8) -> anyhow::Result<()> {
        stdout_result(self.0.write_all(item).and_then(|()| self.0.write_all(&[separator])))
    }

    /// Returns whether this many more bytes are kept in the buffer until it is flushed.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        bytes < self.0.capacity() - self.0.buffer().len()
    }

    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        stdout_result(self.0.flush())
    }
}

/// The exit status of every error. 1 means that nothing was found, as with grep.
pub(crate) const FAILED: u8 = 2;

/// Reports an error and returns its exit status.
pub(crate) fn failure(error: &anyhow::Error) -> ExitCode {
    if error.is::<Closed>() {
        // The reader needs no more output, which is not an error.
        return ExitCode::SUCCESS;
    }
    say(format_args!("koel: {error:#}\n"));
    ExitCode::from(FAILED)
}

/// Handles arguments that run no command: prints help and the version on standard output, and mistakes on standard error.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let printed = Stream::Stdout.check().and_then(|()| stdout_result(error.print()));
        return printed.map_or_else(|error| failure(&error), |()| ExitCode::SUCCESS);
    }
    if let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg)
        && argument.starts_with("--false-positive-rate")
    {
        say(format_args!("koel: {argument}: the option for this is --fpr, such as `--fpr 0.001`\n"));
        return ExitCode::from(FAILED);
    }
    let text = error.render().to_string();
    match text.strip_prefix("error: ") {
        Some(message) => say(format_args!("koel: {message}")),
        None => say(format_args!("{text}")),
    }
    ExitCode::from(FAILED)
}

/// Prints a message on standard error, above the progress bar if there is one.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    let bar = lock(&BAR).clone();
    match bar {
        Some(bar) => bar.suspend(|| koel_lab::say(text)),
        None => koel_lab::say(text),
    }
}

/// The progress bar on the screen. It is removed before a signal ends the process.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// The action before a signal ends the process.
static BEFORE_END: Mutex<Option<Action>> = Mutex::new(None);

type Action = Box<dyn FnOnce() -> anyhow::Result<()> + Send>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `action`, in a thread of its own, before Ctrl-C, a request to terminate or a hang-up ends the process. If it fails, that is
/// reported, and the exit status is that of an error. A second signal ends the process at once.
pub(crate) fn before_end(action: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> anyhow::Result<()> {
    *lock(&BEFORE_END) = Some(Box::new(action));
    watch_signals()
}

/// Waits for signals in a thread. Before the first call, signals end the process as they do by default; after it, they do so
/// without a progress bar left on the screen.
fn watch_signals() -> anyhow::Result<()> {
    static WATCHED: OnceLock<Result<(), String>> = OnceLock::new();
    let watch = || {
        on_termination(|signal| {
            if let Some(bar) = lock(&BAR).take() {
                bar.finish_and_clear();
            }
            let action = lock(&BEFORE_END).take();
            match action.map(|action| action()) {
                // That nobody reads the output is no error, and does not hide the signal.
                Some(Err(error)) if !error.is::<Closed>() => {
                    failure(&error);
                    process::exit(i32::from(FAILED));
                }
                _ => signal.end(),
            }
        })
    };
    let watched = WATCHED.get_or_init(|| watch().map_err(|error| format!("{error:#}")));
    watched.clone().map_err(anyhow::Error::msg)
}

/// A progress bar. Dropping it removes it from the screen. There is one at a time.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// `true` if the bar shows bytes out of a known total; otherwise, it shows items.
    by_bytes: bool,
}

impl Progress {
    pub(crate) fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), by_bytes: false }
    }

    /// Returns a bar for an input of `bytes` bytes, or a spinner if the length is unknown.
    pub(crate) fn reading(bytes: Option<u64>) -> Self {
        let bar = match bytes {
            Some(bytes) => ProgressBar::new(bytes).with_style(style("{wide_bar} {bytes} of {total_bytes}, {eta} left")),
            None => ProgressBar::new_spinner().with_style(style("{spinner} {human_pos} items")),
        };
        Self::shown(bar, bytes.is_some())
    }

    /// Returns a bar that counts to `number`; `things` is a plural such as "measurements".
    pub(crate) fn counting(number: usize, things: &str) -> Self {
        let bar = ProgressBar::new(number as u64);
        let style = style(&format!("{{wide_bar}} {{human_pos}} of {{human_len}} {things}, {{eta}} left"));
        Self::shown(bar.with_style(style), false)
    }

    fn shown(bar: ProgressBar, by_bytes: bool) -> Self {
        if !bar.is_hidden() {
            *lock(&BAR) = Some(bar.clone());
            // If signals cannot be watched, one leaves the bar on the screen.
            watch_signals().ok();
        }
        Self { bar, by_bytes }
    }

    /// Updates the bar. Call it once per large piece of input, not per item.
    pub(crate) fn update(&self, bytes: u64, items: u64) {
        self.bar.set_position(if self.by_bytes { bytes } else { items });
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if !self.bar.is_hidden() {
            lock(&BAR).take();
        }
        self.bar.finish_and_clear();
    }
}

/// Returns the style of a template, or the default style if the template is invalid.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
