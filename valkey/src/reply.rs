//! What commands answer.

use std::{
    ffi::CStr,
    fmt::{self, Write as _},
};

/// An answer. Made as a whole before anything is sent, so that an error never follows a part of one.
pub(crate) enum Reply {
    /// OK.
    Done,
    WrongArity,
    /// A boolean in RESP3, 1 or 0 in RESP2.
    Bool(bool),
    Integer(i64),
    Null,
    Line(Words),
    Bytes(Vec<u8>),
    /// What became of each item, as numbers.
    Answers(Vec<Answer>),
    /// The same as booleans in RESP3.
    Acceptances(Vec<Answer>),
    Bools(Vec<bool>),
    /// The iterator of a dump, and its bytes, if there are more.
    Chunk(i64, Option<Vec<u8>>),
    /// A map in RESP3, names and values in turn in RESP2.
    Fields(Vec<(&'static str, Field)>),
}

/// What became of an item that was to be inserted. The numbers are those of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Refused = -1,
    /// It was there.
    Known = 0,
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

/// An error, in words. They begin with those of RedisBloom, which clients know, where it has an error of this kind; a reason
/// follows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure(Words);

/// A line for the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Words {
    Known(&'static CStr),
    /// A line that ends with a zero, and has none before.
    Line(Vec<u8>),
}

impl Words {
    /// A line with this text, if there is memory for it.
    pub(crate) fn new(text: impl fmt::Display) -> Result<Self, Failure> {
        let mut line = Line(Vec::new());
        match write!(line, "{text}").and_then(|()| line.push(0)) {
            Ok(()) => Ok(Self::Line(line.0)),
            Err(fmt::Error) => Err(Failure::out_of_memory()),
        }
    }

    pub(crate) fn as_c_str(&self) -> &CStr {
        match self {
            Self::Known(words) => words,
            Self::Line(line) => CStr::from_bytes_with_nul(line).unwrap_or_default(),
        }
    }
}

impl Failure {
    /// An error with this message. If there is no memory for the message, that is the error.
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Words::new(message).map_or_else(|failure| failure, Self)
    }

    pub(crate) const fn exists() -> Self {
        Self(Words::Known(c"ERR item exists"))
    }

    pub(crate) const fn not_found() -> Self {
        Self(Words::Known(c"ERR not found"))
    }

    pub(crate) const fn wrong_type() -> Self {
        Self(Words::Known(c"WRONGTYPE Operation against a key holding the wrong kind of value"))
    }

    pub(crate) const fn out_of_memory() -> Self {
        Self(Words::Known(c"ERR Insufficient memory"))
    }

    pub(crate) const fn panicked() -> Self {
        Self(Words::Known(c"ERR internal error in koel, which the server's log describes; please report it"))
    }

    /// The words, for the server.
    pub(crate) fn words(&self) -> &CStr {
        self.0.as_c_str()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words().to_str().unwrap_or_default())
    }
}

/// A line that grows as far as there is memory. Zeros would end it for the server, and ends of lines the reply.
struct Line(Vec<u8>);

impl Line {
    fn push(&mut self, byte: u8) -> fmt::Result {
        self.0.try_reserve(1).map_err(|_| fmt::Error)?;
        self.0.push(byte);
        Ok(())
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().try_for_each(|byte| self.push(byte.max(b' ')))
    }
}

/// An answer or an error.
pub(crate) type Outcome = Result<Reply, Failure>;

/// An empty list with room for this many.
pub(crate) fn reserved<T>(len: usize) -> Result<Vec<T>, Failure> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).map_err(|_| Failure::out_of_memory())?;
    Ok(list)
}
