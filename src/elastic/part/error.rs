//! The error of parts that could not be joined.

use core::{error::Error, fmt};
use std::io;

use crate::{snapshot::SnapshotError, storage::OutOfMemory};

/// Parts of a growing filter could not be joined.
#[derive(Debug)]
#[non_exhaustive]
pub enum JoinError {
    /// No part was given.
    NoParts,
    /// The part with this index among those given has other parameters, or another hasher, than the first one.
    Different {
        /// The index.
        part: usize,
    },
    /// A lane is in none of the parts: one is missing, or they are not all of the same number of parts.
    Missing {
        /// The number of the first such lane.
        lane: usize,
        /// The number of all lanes.
        lanes: usize,
    },
    /// Two parts have the same lane: they are the same part, not of the same number of parts, or one is a whole filter.
    Twice {
        /// The indices of the two.
        parts: [usize; 2],
    },
    /// A part is not a valid snapshot of a growing filter, or could not be read.
    Snapshot {
        /// The index of the part.
        part: usize,
        /// What is wrong with it.
        error: SnapshotError,
    },
    /// The writer failed.
    Io(io::Error),
    /// Memory for the list of parts cannot be allocated.
    OutOfMemory(OutOfMemory),
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoParts => f.write_str("no parts to join; give all parts of a filter"),
            Self::Different { part } => {
                write!(f, "part {part}, counted from 0, has other parameters than the first one; build all with the same ones")
            }
            Self::Missing { lane, lanes } => write!(
                f,
                "no part has lane {lane} of {lanes}, counted from 0; give all parts, each built as one of the same number of parts"
            ),
            Self::Twice { parts: [first, second] } => write!(
                f,
                "parts {first} and {second}, counted from 0, have the same items; give each part once, built as one of the same \
                 number of parts, and no whole filter"
            ),
            Self::Snapshot { part, error } => write!(f, "part {part}, counted from 0: {error}"),
            Self::Io(error) => write!(f, "the joined filter cannot be written: {error}"),
            Self::OutOfMemory(_) => f.write_str("the parts cannot be listed"),
        }
    }
}

impl Error for JoinError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Snapshot { error, .. } => error.source(),
            Self::Io(error) => Some(error),
            Self::OutOfMemory(error) => Some(error),
            _ => None,
        }
    }
}
