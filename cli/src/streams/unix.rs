//! What the standard library hides about the standard streams.

use std::sync::atomic::{AtomicU8, Ordering};

use ctor::declarative::ctor;
use rustix::{
    fs::{OFlags, fcntl_getfl},
    io::{Errno, fcntl_getfd},
    stdio::{stderr, stdin, stdout},
};

use super::Stream;

/// A bit for each standard stream that was closed when the process started.
static CLOSED: AtomicU8 = AtomicU8::new(0);

// Once `main` runs, a stream that was closed cannot be told from one that others redirected: Python's `subprocess.DEVNULL`,
// `daemon(3)` and many more open /dev/null for reading and writing, exactly as the standard library does. So this runs before it.
// What runs there must not need the standard library's runtime: a system call and an atomic do not.
ctor! {
    #[ctor(unsafe)]
    fn record_closed_streams() {
        for (bit, stream) in [stdin(), stdout(), stderr()].into_iter().enumerate() {
            if fcntl_getfd(stream) == Err(Errno::BADF) {
                CLOSED.fetch_or(1 << bit, Ordering::Relaxed);
            }
        }
    }
}

pub(super) fn was_closed(stream: Stream) -> bool {
    CLOSED.load(Ordering::Relaxed) & (1 << stream as u8) != 0
}

/// Is the stream open for reading if it is standard input, and for writing otherwise? `nohup`, for example, opens standard input
/// for writing only.
pub(super) fn has_access(stream: Stream) -> bool {
    let (stream, unusable) = match stream {
        Stream::Stdin => (stdin(), OFlags::WRONLY),
        Stream::Stdout => (stdout(), OFlags::RDONLY),
        Stream::Stderr => (stderr(), OFlags::RDONLY),
    };
    // If the mode is not known, reading and writing will tell.
    !fcntl_getfl(stream).is_ok_and(|flags| flags & OFlags::ACCMODE == unusable)
}
