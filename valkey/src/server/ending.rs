//! How the server ends if it cannot load a file completely. A command of an append-only file that fails is no error to the server:
//! it would start without the items. If a value of an RDB file cannot be read, the server would end with exit code 0, because the
//! file itself is sound.

use std::{
    ffi::CStr,
    fmt::{self, Write as _},
    process, ptr,
};

use super::{
    context::{LOADING, Text, log},
    functions::server,
};
use crate::reply::{Cause, Failure};

/// The flag of a replica that receives a copy of its primary.
const TRANSFERRING: i32 = 1 << 16;

/// The most bytes of a line in the log, and of a key's name there.
const MAX_LINE_BYTES: usize = 1000;
const MAX_NAME_BYTES: usize = 100;

fn flags() -> i32 {
    // SAFETY: the function allows a null context, for flags that describe the server.
    unsafe { (server().GetContextFlags)(ptr::null_mut()) }
}

/// Returns true if the server loads a file, or the copy of its primary.
pub(super) fn is_loading() -> bool {
    flags() & LOADING != 0
}

/// Returns true if the server reads the copy of its primary from the connection, which may break at any byte. Otherwise, it has
/// received the whole copy in a file.
pub(super) fn is_reading_connection() -> bool {
    if flags() & TRANSFERRING == 0 {
        return false;
    }
    let (server, context) = (server(), ptr::null_mut());
    // SAFETY: the functions allow a null context. The information is freed after its last use.
    unsafe {
        let info = (server.GetServerInfo)(context, c"replication".as_ptr());
        let number = |name: &CStr| (server.ServerInfoGetFieldSigned)(info, name.as_ptr(), ptr::null_mut());
        // For a file, servers count the bytes that they have received. Valkey 9 does so in another thread: the size stays −1.
        let (size, received) = (number(c"master_sync_total_bytes"), number(c"master_sync_read_bytes"));
        (server.FreeServerInfo)(context, info);
        size >= 0 && received == 0
    }
}

/// Logs the reason, and ends the server as it ends itself if a file is damaged. Needs no memory.
pub(super) fn end_start(what: fmt::Arguments<'_>, failure: &Failure) -> ! {
    let is_copy = flags() & TRANSFERRING != 0;
    let file = if is_copy { "the copy of its primary" } else { "its file" };
    let advice = match failure.cause() {
        Cause::OutOfMemory => "Nothing is lost: give the server more memory, and start it again",
        Cause::Version => "Nothing is lost: start that version",
        Cause::Other if is_copy => "Start it again without its RDB file, if it has one, and it receives another copy",
        Cause::Other => {
            "Use a backup or a replica's file, or leave the key out, as in docs/VALKEY.md, \"A file that cannot be loaded\""
        }
    };
    let mut line = Line::new();
    line.add(format_args!("koel: the server ends, because it cannot load {file} completely: {what}: {failure}. {advice}."));
    log(ptr::null_mut(), c"warning", line.text());
    process::exit(1)
}

/// The name of a key, or its beginning, for the log.
pub(super) struct Name<'a>(pub(super) Option<Text<'a>>);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(name) = self.0 else { return f.write_str("the key (unknown)") };
        let name = name.bytes();
        let shown = &name[..name.len().min(MAX_NAME_BYTES)];
        write!(f, "the key \"{}{}\"", shown.escape_ascii(), if shown.len() < name.len() { "…" } else { "" })
    }
}

/// A line for the log, on the stack, since there may be no other memory. It is cut off if it is too long.
pub(super) struct Line {
    /// The last byte is always 0.
    bytes: [u8; MAX_LINE_BYTES],
    len: usize,
}

impl Line {
    pub(super) fn new() -> Self {
        Self { bytes: [0; MAX_LINE_BYTES], len: 0 }
    }

    pub(super) fn add(&mut self, text: fmt::Arguments<'_>) {
        // Only a line that is full returns an error.
        let _ = self.write_fmt(text);
    }

    pub(super) fn text(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_LINE_BYTES - 1 - self.len;
        let taken = text.len().min(room);
        self.bytes[self.len..self.len + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.len += taken;
        if taken < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}
