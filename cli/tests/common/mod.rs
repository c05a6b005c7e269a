//! Running the command as a user does, in a folder of its own.

#![allow(dead_code, reason = "every story uses a part of it")]

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

/// Where the command is.
const KOEL: &str = env!("CARGO_BIN_EXE_koel");

/// A temporary folder, and the command running in it.
pub(crate) struct Koel(TempDir);

/// Arguments: the words of a text, or one by one where they may have blanks.
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
    /// An empty folder.
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    /// A folder with `f.koel`, a filter of these lines.
    pub(crate) fn with_filter(lines: &str) -> Self {
        let koel = Self::new();
        koel.feed(lines, "build - -o f.koel").ok();
        koel
    }

    /// A file's path.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes a file.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("a file to write");
    }

    /// A file's bytes.
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Names of all files in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("the folder");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Runs `koel` with these arguments and nothing to read.
    pub(crate) fn run(&self, args: impl Args) -> Run {
        self.feed("", args)
    }

    /// Runs `koel` with something to read, through a pipe.
    pub(crate) fn feed(&self, input: impl AsRef<[u8]>, args: impl Args) -> Run {
        self.finish(input.as_ref(), Command::new(KOEL).args(args.list()))
    }

    /// Runs `koel` with a kernel.
    pub(crate) fn run_with(&self, kernel: &str, args: impl Args) -> Run {
        self.finish(b"", Command::new(KOEL).env("KOEL_KERNEL", kernel).args(args.list()))
    }

    /// What `koel` says for programs.
    #[track_caller]
    pub(crate) fn json(&self, args: impl Args) -> Value {
        self.run(args).json()
    }

    /// These arguments before those of each case.
    pub(crate) fn given<'a>(&'a self, args: &'a str) -> Given<'a> {
        Given { koel: self, args }
    }

    /// Runs lines of a shell that knows `koel`, and stops at the first that fails.
    pub(crate) fn shell(&self, script: &str) -> Run {
        let folder = Path::new(KOEL).parent().expect("a folder");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(folders).expect("a search path");
        self.finish(b"", Command::new("sh").args(["-e", "-c", script]).env("PATH", path))
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
            // Not every command reads to the end.
            scope.spawn(move || stdin.write_all(input).ok());
            Run::of(child)
        })
    }
}

/// The first arguments of several cases.
pub(crate) struct Given<'a> {
    koel: &'a Koel,
    args: &'a str,
}

impl Given<'_> {
    /// Asserts for each case that its further arguments are an error whose message has all parts, and that no file comes or goes.
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
    pub(crate) fn of(child: Child) -> Self {
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

    /// Asserts an error: status 2, nothing on standard output, and a message that begins as all do and has all of these parts.
    #[track_caller]
    pub(crate) fn error(&self, parts: &[&str]) {
        self.status(2);
        assert!(self.stdout.is_empty(), "{}", self.text());
        assert!(self.stderr.starts_with("koel: ") && self.stderr.ends_with('\n'), "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "no \"{part}\" in: {}", self.stderr);
        }
    }

    /// Asserts that there is no message, and reads what was said for programs.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stderr, "", "{}", self.text());
        serde_json::from_slice(&self.stdout).expect("JSON")
    }

    /// Standard output as text.
    #[track_caller]
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The same in one line: where it is broken depends on the lengths of paths and of the processor's name.
    #[track_caller]
    pub(crate) fn unbroken(&self) -> String {
        self.text().split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The facts that `koel info --json` prints.
#[track_caller]
pub(crate) fn facts(koel: &Koel, filter: &str) -> Value {
    koel.json(["info", filter, "--json"])
}

/// A file that another program wrote: its folder's README.md, in tests/data, describes it.
pub(crate) fn data(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data");
    fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// An option's number in a message or an answer: what follows these words.
#[track_caller]
pub(crate) fn value_after<'a>(message: &'a str, words: &str) -> &'a str {
    let (_, rest) = message.split_once(words).unwrap_or_else(|| panic!("no \"{words}\" in: {message}"));
    rest.split([',', ';', ' ', '\n']).next().unwrap_or_default()
}

/// Numbers, one a line.
pub(crate) fn numbers(range: std::ops::Range<u32>) -> String {
    range.fold(String::new(), |lines, number| lines + &format!("{number}\n"))
}
