//! Runs the command as a user does, in a folder of its own.

#![allow(dead_code, reason = "every story uses a part of it")]

pub(crate) mod messages;
#[cfg(unix)]
pub(crate) mod screen;

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
};

use serde_json::Value;
use tempfile::TempDir;

/// The path of the command.
const KOEL: &str = env!("CARGO_BIN_EXE_koel");

/// A temporary folder, in which the command runs.
pub(crate) struct Koel(TempDir);

/// Arguments: the words of a text, or an array of arguments that may have blanks.
pub(crate) trait Args {
    fn list(self) -> Vec<OsString>;
}

impl<T: AsRef<str> + ?Sized> Args for &T {
    fn list(self) -> Vec<OsString> {
        self.as_ref().split_whitespace().map(OsString::from).collect()
    }
}

impl<A: AsRef<OsStr>, const N: usize> Args for [A; N] {
    fn list(self) -> Vec<OsString> {
        self.iter().map(|arg| arg.as_ref().to_owned()).collect()
    }
}

/// The result of a run.
pub(crate) struct Run {
    /// The exit status.
    pub(crate) status: i32,
    /// Standard output.
    pub(crate) stdout: Vec<u8>,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Koel {
    /// Creates an empty folder.
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    /// Creates a folder with `f.koel`, a filter of these lines.
    pub(crate) fn with_filter(lines: &str) -> Self {
        let koel = Self::new();
        koel.feed(lines, "build - -o f.koel").ok();
        koel
    }

    /// Returns a file's path.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("a file to write");
    }

    /// Returns a file's bytes.
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Returns the names of all files in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("the folder");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Runs `koel` with these arguments and no input.
    pub(crate) fn run(&self, args: impl Args) -> Run {
        self.feed("", args)
    }

    /// Runs `koel` with input from a pipe.
    pub(crate) fn feed(&self, input: impl AsRef<[u8]>, args: impl Args) -> Run {
        let args = args.list();
        let run = self.finish(input.as_ref(), Command::new(KOEL).args(&args));
        messages::check(&args, &run.stderr);
        run
    }

    /// Runs `koel` with the kernel of this name.
    pub(crate) fn run_with(&self, kernel: &str, args: impl Args) -> Run {
        self.finish(b"", Command::new(KOEL).env("KOEL_KERNEL", kernel).args(args.list()))
    }

    /// Runs `koel` and parses its output as JSON.
    #[track_caller]
    pub(crate) fn json(&self, args: impl Args) -> Value {
        self.run(args).json()
    }

    /// Returns the cases of a test, whose commands all begin with these arguments.
    pub(crate) fn given<'a>(&'a self, args: &'a str) -> Given<'a> {
        Given { koel: self, args }
    }

    /// Runs lines in a shell that finds `koel` in its path, and stops at the first that fails.
    pub(crate) fn shell(&self, script: &str) -> Run {
        self.finish(b"", Command::new("sh").args(["-e", "-c", script]).env("PATH", search_path()))
    }

    /// Starts `koel` with these arguments.
    pub(crate) fn spawn(&self, args: impl Args) -> Child {
        self.start(Command::new(KOEL).args(args.list()))
    }

    fn start(&self, command: &mut Command) -> Child {
        command.current_dir(self.0.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("a process")
    }

    fn finish(&self, input: &[u8], command: &mut Command) -> Run {
        let mut child = self.start(command);
        let mut stdin = child.stdin.take().expect("its input");
        thread::scope(|scope| {
            // Writing may fail, because not every command reads to the end.
            scope.spawn(move || stdin.write_all(input).ok());
            Run::wait(child)
        })
    }
}

/// Returns a search path with `koel`.
fn search_path() -> OsString {
    let folder = Path::new(KOEL).parent().expect("a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).expect("a search path")
}

/// The first arguments of several cases.
pub(crate) struct Given<'a> {
    koel: &'a Koel,
    args: &'a str,
}

impl Given<'_> {
    /// Asserts for each case that its further arguments cause an error whose message has all parts, and that no file is created or
    /// deleted.
    #[track_caller]
    pub(crate) fn refuses(&self, cases: &[(&str, &[&str])]) {
        let before = self.koel.names();
        for (more, parts) in cases {
            self.koel.run(&format!("{} {more}", self.args)).error(parts);
            assert_eq!(self.koel.names(), before, "{more}");
        }
    }
}

impl Run {
    /// Closes the input of a process, and waits for its end.
    pub(crate) fn wait(child: Child) -> Self {
        let Output { status, stdout, stderr } = child.wait_with_output().expect("its output");
        let status = status.code().expect("an exit, not a signal");
        let stderr = String::from_utf8(stderr).expect("errors in UTF-8");
        assert!(!stderr.contains("panicked"), "{stderr}");
        Self { status, stdout, stderr }
    }

    /// Asserts the exit status, and returns standard output.
    #[track_caller]
    pub(crate) fn status(&self, status: i32) -> &[u8] {
        assert_eq!(self.status, status, "{}{}", self.text(), self.stderr);
        &self.stdout
    }

    /// Asserts success without a message, and returns standard output.
    #[track_caller]
    pub(crate) fn ok(&self) -> &[u8] {
        assert_eq!(self.stderr, "", "{}", self.text());
        self.status(0)
    }

    /// Asserts success without a message, and returns standard output as text.
    #[track_caller]
    pub(crate) fn printed(&self) -> String {
        self.ok();
        self.text()
    }

    /// Asserts an error: status 2, no output, and a message that begins with "koel: " and has all of these parts.
    #[track_caller]
    pub(crate) fn error(&self, parts: &[&str]) {
        self.status(2);
        assert!(self.stdout.is_empty(), "{}", self.text());
        assert!(self.stderr.starts_with("koel: ") && self.stderr.ends_with('\n'), "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "no \"{part}\" in: {}", self.stderr);
        }
    }

    /// Asserts that there is no message, and parses standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stderr, "", "{}", self.text());
        serde_json::from_slice(&self.stdout).expect("JSON")
    }

    /// Returns standard output as text.
    #[track_caller]
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns standard output in one line, because line breaks depend on the lengths of paths and of the processor's name.
    #[track_caller]
    pub(crate) fn unbroken(&self) -> String {
        self.text().split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Returns the facts that `koel info --json` prints.
#[track_caller]
pub(crate) fn facts(koel: &Koel, filter: &str) -> Value {
    koel.json(["info", filter, "--json"])
}

/// Returns a file that another program wrote. The README.md of its folder in tests/data describes it.
pub(crate) fn data(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data");
    fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the value that follows these words in a message.
#[track_caller]
pub(crate) fn value_after<'a>(message: &'a str, words: &str) -> &'a str {
    let (_, rest) = message.split_once(words).unwrap_or_else(|| panic!("no \"{words}\" in: {message}"));
    rest.split([',', ';', ' ', '`', '\n']).next().unwrap_or_default()
}

/// Returns a line for each number of a range, with `words` before it.
pub(crate) fn lines(words: &str, range: std::ops::Range<u32>) -> String {
    range.fold(String::new(), |lines, number| lines + &format!("{words}{number}\n"))
}

/// Returns the numbers of a range, one per line.
pub(crate) fn numbers(range: std::ops::Range<u32>) -> String {
    lines("", range)
}
