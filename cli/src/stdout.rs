//! Standard output, which others may close at any time.

use std::{
    fmt,
    io::{self, BufWriter, ErrorKind, StdoutLock, Write},
};

use anyhow::Context as _;

use crate::streams::Stream;

/// The error that is none: whoever reads standard output has closed it.
#[derive(Debug)]
pub(crate) struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for Closed {}

/// Gives a failure to write to standard output its name, and [`Closed`] if that is what it is.
pub(crate) fn named<T>(result: io::Result<T>) -> anyhow::Result<T> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Closed.into()),
        other => other.context("standard output"),
    }
}

/// Prints what was done to a file. That it could not be printed must not be taken for its not having been done.
pub(crate) fn report(text: &str, file: &str) -> anyhow::Result<()> {
    say(text).with_context(|| format!("{file} was written, but the report of it could not be"))
}

/// Prints text. If nobody reads it any more, that is all right: what it reports has been done.
pub(crate) fn say(text: &str) -> anyhow::Result<()> {
    Stream::Stdout.check()?;
    let mut stdout = io::stdout().lock();
    match named(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())) {
        Err(error) if error.is::<Closed>() => Ok(()),
        other => other,
    }
}

/// Standard output for many items: locked once, written in large pieces.
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
