//! Standard output, whose reader may close it at any time.

use std::{
    fmt,
    io::{self, BufWriter, ErrorKind, StdoutLock, Write},
};

use anyhow::Context as _;

use crate::streams::Stream;

/// The reader of standard output has closed the pipe. This ends the command, but is not reported as an error.
#[derive(Debug)]
pub(crate) struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for Closed {}

/// Names standard output in an error, and turns a broken pipe into [`Closed`].
pub(crate) fn named<T>(result: io::Result<T>) -> anyhow::Result<T> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Closed.into()),
        other => other.context("standard output"),
    }
}

/// Prints what was done to a file. If printing fails, the error says that the file was written all the same.
pub(crate) fn report(text: &str, file: &str) -> anyhow::Result<()> {
    say(text).with_context(|| format!("{file} was written, but the report of it could not be"))
}

/// Prints text. That its reader has closed the pipe is not an error: the work that it reports is done.
pub(crate) fn say(text: &str) -> anyhow::Result<()> {
    Stream::Stdout.check()?;
    let mut stdout = io::stdout().lock();
    match named(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())) {
        Err(error) if error.is::<Closed>() => Ok(()),
        other => other,
    }
}

/// Standard output for many items: locked once, with a large buffer.
pub(crate) struct Out(BufWriter<StdoutLock<'static>>);

impl Out {
    /// For standard output that has been checked, unless nothing will be written.
    pub(crate) fn new() -> Self {
        Self(BufWriter::with_capacity(64 << 10, io::stdout().lock()))
    }

    #[inline]
    pub(crate) fn item(&mut self, item: &[u8], separator: u8) -> anyhow::Result<()> {
        named(self.0.write_all(item).and_then(|()| self.0.write_all(&[separator])))
    }

    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        named(self.0.flush())
    }
}
