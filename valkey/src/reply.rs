//! Replies to commands, and their errors.

use std::{
    ffi::CStr,
    fmt::{self, Write as _},
};

/// A reply to a command. It is built completely before anything is sent, so that no error follows a partial reply.
pub(crate) enum Reply {
    /// OK.
    Done,
    WrongArity,
    /// A boolean in RESP3, 1 or 0 in RESP2.
    Bool(bool),
    Integer(i64),
    Null,
    /// A line of text, as a bulk string.
    Line(Message),
    Bytes(Vec<u8>),
    /// The result of each item, as integers.
    Results(Vec<ItemResult>),
    /// The result of each item, as booleans in RESP3 and integers in RESP2.
    ResultBools(Vec<ItemResult>),
    Bools(Vec<bool>),
    /// The iterator of a dump, and the bytes of a chunk, if there are more.
    Chunk(i64, Option<Vec<u8>>),
    /// A map in RESP3; alternating names and values in RESP2.
    Fields(Vec<(&'static CStr, Field)>),
}

/// The result of inserting an item. The numbers are those of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemResult {
    Refused = -1,
    /// The item was present, so it was not inserted.
    Present = 0,
    Inserted = 1,
}

/// The value of a field.
pub(crate) enum Field {
    Integer(i64),
    Rate(f64),
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Rate(value) => value.fmt(f),
        }
    }
}

/// An error message. Where RedisBloom has an error of this kind, the message begins with RedisBloom's text, which clients compare.
/// A reason follows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    message: Message,
    cause: Cause,
}

/// The cause of an error, as far as the remedy depends on it when the server loads a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    OutOfMemory,
    /// The bytes have a format that this release does not know.
    Version,
    Other,
}

/// A line of text for the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Static(&'static CStr),
    /// A line that ends with its only zero byte.
    Line(Vec<u8>),
}

impl Message {
    /// Creates a line with this text. Returns an error if there is no memory for it.
    pub(crate) fn new(text: impl fmt::Display) -> Result<Self, Failure> {
        let mut line = LineWriter(Vec::new());
        match write!(line, "{text}").and_then(|()| line.push(0)) {
            Ok(()) => Ok(Self::Line(line.0)),
            Err(fmt::Error) => Err(Failure::out_of_memory()),
        }
    }

    pub(crate) fn as_c_str(&self) -> &CStr {
        match self {
            Self::Static(text) => text,
            Self::Line(line) => CStr::from_bytes_with_nul(line).unwrap_or_default(),
        }
    }
}

impl Failure {
    /// Creates an error with this message, or an out-of-memory error if there is no memory for the message.
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Message::new(message).map_or_else(|failure| failure, |message| Self { message, cause: Cause::Other })
    }

    const fn fixed(message: &'static CStr) -> Self {
        Self { message: Message::Static(message), cause: Cause::Other }
    }

    pub(crate) fn because(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    pub(crate) fn cause(&self) -> Cause {
        self.cause
    }

    pub(crate) const fn exists() -> Self {
        Self::fixed(c"ERR item exists")
    }

    pub(crate) const fn not_found() -> Self {
        Self::fixed(c"ERR not found")
    }

    pub(crate) const fn wrong_type() -> Self {
        Self::fixed(c"WRONGTYPE Operation against a key holding the wrong kind of value")
    }

    pub(crate) const fn out_of_memory() -> Self {
        Self { message: Message::Static(c"ERR Insufficient memory"), cause: Cause::OutOfMemory }
    }

    pub(crate) const fn panicked() -> Self {
        Self::fixed(c"ERR internal error in koel, which the server's log describes; please report it")
    }

    /// Returns the message, for the server.
    pub(crate) fn message(&self) -> &CStr {
        self.message.as_c_str()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message().to_str().unwrap_or_default())
    }
}

/// A writer of a line, which fails if there is no memory. Control characters become spaces: a zero would end the line for the
/// server, and a line break would end the reply.
struct LineWriter(Vec<u8>);

impl LineWriter {
    fn push(&mut self, byte: u8) -> fmt::Result {
        self.0.try_reserve(1).map_err(|_| fmt::Error)?;
        self.0.push(byte);
        Ok(())
    }
}

impl fmt::Write for LineWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().try_for_each(|byte| self.push(byte.max(b' ')))
    }
}

/// A reply or an error.
pub(crate) type Outcome = Result<Reply, Failure>;

/// Returns an empty list with capacity for `len` values.
pub(crate) fn reserved<T>(len: usize) -> Result<Vec<T>, Failure> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).map_err(|_| Failure::out_of_memory())?;
    Ok(list)
}
