//! Running the command as a user does, in a folder of its own.

#![allow(dead_code, reason = "every story uses a part of it")]

use std::{
    ffi::OsStr,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
};

use tempfile::TempDir;

/// Where the command is.
pub(crate) const KOEL: &str = env!("CARGO_BIN_EXE_koel");

/// A temporary folder, and the command running in it.
pub(crate) struct Koel(TempDir);

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
        koel.feed(lines, ["build", "-", "-o", "f.koel"]).ok();
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
    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Run {
        self.feed("", args)
    }

    /// Runs `koel` with a variable in its environment.
    pub(crate) fn run_with(&self, variable: &str, value: &str, args: &[&str]) -> Run {
        let mut command = Command::new(KOEL);
        command.env(variable, value).args(args);
        self.finish(b"", command)
    }

    /// Runs `koel` with something to read, through a pipe.
    pub(crate) fn feed<A: AsRef<OsStr>>(&self, input: impl AsRef<[u8]>, args: impl IntoIterator<Item = A>) -> Run {
        let mut command = Command::new(KOEL);
        command.args(args);
        self.finish(input.as_ref(), command)
    }

    /// Runs lines of a shell that knows `koel`, and stops at the first that fails.
    pub(crate) fn shell(&self, script: &str) -> Run {
        let folder = Path::new(KOEL).parent().expect("a folder");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
        let mut command = Command::new("sh");
        command.args(["-e", "-c", script]).env("PATH", std::env::join_paths(folders).expect("a search path"));
        self.finish(b"", command)
    }

    fn finish(&self, input: &[u8], mut command: Command) -> Run {
        command.current_dir(self.0.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let mut stdin = child.stdin.take().expect("its input");
        let Output { status, stdout, stderr } = thread::scope(|scope| {
            // Not every command reads to the end.
            scope.spawn(move || stdin.write_all(input).ok());
            child.wait_with_output().expect("its output")
        });
        let status = status.code().expect("an exit, not a signal");
        let stderr = String::from_utf8(stderr).expect("errors in UTF-8");
        assert!(!stderr.contains("panicked"), "{stderr}");
        Run { status, stdout, stderr }
    }
}

impl Run {
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
pub(crate) fn facts(koel: &Koel, filter: &str) -> serde_json::Value {
    serde_json::from_slice(koel.run(["info", filter, "--json"]).ok()).expect("JSON")
}

/// A file that Go's library wrote; tests/data/go/README.md describes them.
pub(crate) fn go_file(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/go");
    fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Numbers, one a line.
pub(crate) fn numbers(range: std::ops::Range<u32>) -> String {
    range.fold(String::new(), |lines, number| lines + &format!("{number}\n"))
}
