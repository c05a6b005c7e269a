//! The error of parts that could not be joined.

use alloc::{string::String, vec::Vec};
use core::{error::Error, fmt, ops::Range};
use std::io;

use crate::snapshot::SnapshotError;

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
    /// Lanes are in none of the parts.
    Missing {
        /// The numbers of the lanes, in order.
        lanes: Vec<usize>,
    },
    /// Two parts have the same lane.
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
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoParts => f.write_str("no parts to join; give all parts of a filter"),
            Self::Different { part } => {
                write!(f, "part {part}, counted from 0, has other parameters than the first one; build all with the same ones")
            }
            Self::Missing { lanes } => {
                write!(f, "no part has the {}; give all parts of the filter", Lanes(lanes))
            }
            Self::Twice { parts: [first, second] } => {
                write!(f, "parts {first} and {second}, counted from 0, have the same items; give each part once")
            }
            Self::Snapshot { part, error } => write!(f, "part {part}, counted from 0: {error}"),
            Self::Io(error) => write!(f, "the joined filter cannot be written: {error}"),
        }
    }
}

impl Error for JoinError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Snapshot { error, .. } => error.source(),
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// Numbers of lanes, as ranges.
struct Lanes<'a>(&'a [usize]);

impl fmt::Display for Lanes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<Range<usize>> =
            self.0.chunk_by(|one, next| one + 1 == *next).map(|run| run[0]..run[run.len() - 1]).collect();
        let texts: Vec<String> = ranges
            .iter()
            .map(|Range { start, end }| if start == end { alloc::format!("{start}") } else { alloc::format!("{start} to {end}") })
            .collect();
        write!(f, "lane{} {}", if self.0.len() == 1 { "" } else { "s" }, texts.join(", "))
    }
}
