//! Messages for the library's errors, with remedies for users of this command.

use koel::{BuildError, InsertError, InsertErrorKind, ParamError};

use crate::file::Filter;

/// Returns the library's error about a parameter, with the name of the option that set it.
pub(crate) fn parameter(error: &ParamError) -> anyhow::Error {
    let option = match error {
        ParamError::Capacity { .. } => "--capacity",
        ParamError::MaxCapacity { .. } => "--max-capacity",
        ParamError::FalsePositiveRate { .. } => "--fpr",
        ParamError::FingerprintBits { .. } => "--bits",
        ParamError::BucketSize { .. } => "--bucket-size",
        _ => return anyhow::anyhow!("{error}"),
    };
    set_by(option, error)
}

/// Returns the error with the name of `option` in place of the parameter's.
pub(crate) fn set_by(option: &str, error: &ParamError) -> anyhow::Error {
    anyhow::anyhow!("{option}: {}", error.reason())
}

/// Returns the library's error about a filter that could not be built.
pub(crate) fn build(error: BuildError) -> anyhow::Error {
    match error {
        BuildError::Param(error) => parameter(&error),
        BuildError::OutOfMemory(error) => {
            anyhow::anyhow!(
                "{} bytes of memory cannot be allocated for the filter; give a smaller --capacity, or use a machine with more memory",
                error.bytes()
            )
        }
        error => error.into(),
    }
}

/// Returns the message about an item that a filter refused although it is not full.
pub(crate) fn refused(place: &str, error: &InsertError) -> String {
    match error.kind() {
        InsertErrorKind::TooManyCopies => {
            format!("{place}: this item has {} copies, and no more are counted; --unique stores an item once", u32::MAX)
        }
        _ => format!("{place}: {error}"),
    }
}

/// Returns the message about an item that a filter of fixed size refused. `larger` begins the remedy for a filter that is too
/// small.
pub(crate) fn full(place: &str, full: &InsertError, filter: &Filter, larger: &str) -> String {
    let InsertErrorKind::Full { distinct, .. } = full.kind() else { return refused(place, full) };
    format!(
        "{place}: the filter is full: its {distinct} distinct items leave no room for this one; {larger} a --capacity above {}, \
         enough for all distinct items",
        filter.capacity().max(distinct)
    )
}

/// Finds the largest number below `rejected` that `accepts` accepts; `None` if it rejects 0. It must accept every number below an
/// accepted one. Calls it O(log `rejected`) times.
pub(crate) fn largest_accepted(mut rejected: usize, accepts: impl Fn(usize) -> bool) -> Option<usize> {
    if !accepts(0) {
        return None;
    }
    let mut accepted = 0;
    while rejected - accepted > 1 {
        let middle = accepted.midpoint(rejected);
        if accepts(middle) { accepted = middle } else { rejected = middle }
    }
    Some(accepted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bisection_finds_the_largest_accepted_number() {
        for limit in [0, 1, 2, 1000, usize::MAX - 1] {
            for rejected in [limit + 1, usize::MAX] {
                assert_eq!(largest_accepted(rejected, |number| number <= limit), Some(limit));
            }
        }
        assert_eq!(largest_accepted(5, |_| false), None);
    }
}
