//! Every remedy in an error message is followed, and must work.

mod full;
#[cfg(all(feature = "metrohash", target_endian = "little"))]
mod go;
mod hashers;
mod merge;
mod params;
#[cfg(feature = "redisbloom")]
mod redisbloom;
#[cfg(all(feature = "std", feature = "metrohash", target_endian = "little"))]
mod snapshots;

use crate::common;
use std::fmt::Display;

/// Asserts that the message contains all `parts`, and returns it.
#[track_caller]
fn says(error: &impl Display, parts: &[&str]) -> String {
    let message = error.to_string();
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
    message
}

/// Returns the integer directly before `words` in a message.
#[track_caller]
fn number_before(message: &str, words: &str) -> usize {
    let (before, _) = message.split_once(words).unwrap_or_else(|| panic!("no {words:?} in {message:?}"));
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or_else(|error| panic!("{digits:?} in {message:?}: {error}"))
}

/// Returns the integer at the end of a message.
#[track_caller]
fn last_number(message: &str) -> usize {
    number_before(&format!("{message}."), ".")
}
