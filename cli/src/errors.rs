//! The library's errors, with remedies for users of this command.

use koel::{BuildError, InsertError, InsertErrorKind, ParamError};

use crate::file::Filter;

/// The library's error about a parameter, with the option that set it.
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

/// The same with this option in place of the parameter's name.
pub(crate) fn set_by(option: &str, error: &ParamError) -> anyhow::Error {
    let message = error.to_string();
    let (_, rest) = message.split_once(": ").unwrap_or(("", &message));
    anyhow::anyhow!("{option}: {rest}")
}

/// The library's error about a filter that could not be built.
pub(crate) fn not_built(error: BuildError) -> anyhow::Error {
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

/// Why an item was refused by a filter that is not full, and what to do.
pub(crate) fn refused(place: &str, error: &InsertError) -> String {
    match error.kind() {
        InsertErrorKind::TooManyCopies => {
            format!("{place}: this item has {} copies, and no more are counted; --unique stores an item once", u32::MAX)
        }
        _ => format!("{place}: {error}"),
    }
}

/// Why a filter of fixed size refused an item, and what to do. `larger` is the start of the remedy for one that is too small.
pub(crate) fn full(place: &str, full: &InsertError, filter: &Filter, larger: &str) -> String {
    let InsertErrorKind::Full { items, slots } = full.kind() else { return refused(place, full) };
    format!(
        "{place}: the filter is full: {items} different items in {slots} slots leave no room for this one; {larger} a --capacity above \
         {}, enough for all different items",
        filter.capacity().max(items)
    )
}

/// The largest number that works, given one that does not, if all smaller numbers work too.
pub(crate) fn most(mut bad: usize, works: impl Fn(usize) -> bool) -> Option<usize> {
    if !works(0) {
        return None;
    }
    let mut good = 0;
    while bad - good > 1 {
        let middle = good.midpoint(bad);
        if works(middle) { good = middle } else { bad = middle }
    }
    Some(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_works() {
        for limit in [0, 1, 2, 1000, usize::MAX - 1] {
            for bad in [limit + 1, usize::MAX] {
                assert_eq!(most(bad, |number| number <= limit), Some(limit));
            }
        }
        assert_eq!(most(5, |_| false), None);
    }
}
