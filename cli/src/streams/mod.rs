//! The standard streams: whether they can be used at all.
//!
//! Before `main` runs, Rust's standard library opens `/dev/null` for every standard stream that is closed, and later it takes
//! `EBADF` on one of them for success. A command would read nothing, or print to nowhere, and exit with 0. Whatever uses a
//! standard stream therefore checks it first.

#[cfg(unix)]
mod unix;

use std::io::{self, StdinLock};

use anyhow::bail;

#[cfg(unix)]
use unix::{has_access, was_closed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdin,
    Stdout,
    Stderr,
}

impl Stream {
    const ALL: [Self; 3] = [Self::Stdin, Self::Stdout, Self::Stderr];

    /// The stream with this file descriptor.
    pub(crate) fn of(descriptor: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|&stream| stream as u32 == descriptor)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Stdin => "standard input",
            Self::Stdout => "standard output",
            Self::Stderr => "standard error",
        }
    }

    const fn remedy(self) -> &'static str {
        match self {
            Self::Stdin => "redirect it from a file or from /dev/null",
            Self::Stdout | Self::Stderr => "redirect it to a file or to /dev/null",
        }
    }

    /// Fails if the stream was closed when the command started.
    pub(crate) fn check_open(self) -> anyhow::Result<()> {
        if was_closed(self) {
            bail!("{}: is closed; {}", self.name(), self.remedy());
        }
        Ok(())
    }

    /// Fails if the stream was closed when the command started, or is not open in the direction in which it is used.
    pub(crate) fn check(self) -> anyhow::Result<()> {
        self.check_open()?;
        if !has_access(self) {
            let direction = if self == Self::Stdin { "reading" } else { "writing" };
            bail!("{}: is not open for {direction}; {}", self.name(), self.remedy());
        }
        Ok(())
    }
}

/// Standard input, once it has been checked.
pub(crate) fn stdin() -> anyhow::Result<StdinLock<'static>> {
    Stream::Stdin.check()?;
    Ok(io::stdin().lock())
}

/// Not known: this system has no file descriptors.
#[cfg(not(unix))]
fn was_closed(_: Stream) -> bool {
    false
}

/// Not known: this system has no file descriptors.
#[cfg(not(unix))]
fn has_access(_: Stream) -> bool {
    true
}
