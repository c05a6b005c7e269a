//! The standard streams: whether they can be used at all.

use std::io::{self, StdinLock};

use anyhow::bail;

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

    /// Fails if the stream is not open in the direction in which it is used: Rust's standard library takes the error of a read or
    /// a write for success.
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
}

/// Standard input, once it has been checked.
pub(crate) fn stdin() -> anyhow::Result<StdinLock<'static>> {
    Stream::Stdin.check()?;
    Ok(io::stdin().lock())
}

/// Is the stream open for reading if it is standard input, and for writing otherwise? `nohup`, for example, opens standard input
/// for writing only.
#[cfg(unix)]
fn has_access(stream: Stream) -> bool {
    use rustix::{
        fs::{OFlags, fcntl_getfl},
        stdio::{stderr, stdin, stdout},
    };

    let (stream, unusable) = match stream {
        Stream::Stdin => (stdin(), OFlags::WRONLY),
        Stream::Stdout => (stdout(), OFlags::RDONLY),
        Stream::Stderr => (stderr(), OFlags::RDONLY),
    };
    // If the mode is not known, reading and writing will tell.
    !fcntl_getfl(stream).is_ok_and(|flags| flags & OFlags::ACCMODE == unusable)
}

/// Not known: this system has no file descriptors.
#[cfg(not(unix))]
fn has_access(_: Stream) -> bool {
    true
}
