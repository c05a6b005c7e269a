//! What commands answer.

use std::fmt;

/// An answer. Made as a whole before anything is sent, so that an error never follows a part of one.
pub(crate) enum Reply {
    /// OK.
    Done,
    WrongArity,
    /// A boolean in RESP3, 1 or 0 in RESP2.
    Bool(bool),
    Integer(i64),
    Null,
    Bytes(Vec<u8>),
    Bools(Vec<bool>),
    Integers(Vec<i64>),
    /// The iterator of a dump, and its bytes, if there are more.
    Chunk(i64, Option<Vec<u8>>),
    /// A map in RESP3, names and values in turn in RESP2.
    Fields(Vec<(&'static str, Field)>),
}

/// The value of a field.
pub(crate) enum Field {
    Integer(i64),
    Rate(f64),
}

/// An error, in words. They begin with those of RedisBloom, which clients know, where it has an error of this kind; a reason
/// follows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    pub(crate) fn exists() -> Self {
        Self::new("ERR item exists")
    }

    pub(crate) fn not_found() -> Self {
        Self::new("ERR not found")
    }

    pub(crate) fn wrong_type() -> Self {
        Self::new("WRONGTYPE Operation against a key holding the wrong kind of value")
    }

    pub(crate) fn out_of_memory() -> Self {
        Self::new("ERR Insufficient memory")
    }

    /// For writing to a key of which chunks are missing.
    pub(crate) fn arriving() -> Self {
        Self::new("ERR a filter is being loaded into this key; send its last chunk with CF.LOADCHUNK, or delete the key")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An answer or an error.
pub(crate) type Outcome = Result<Reply, Failure>;
