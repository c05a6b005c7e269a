//! Messages for the library's errors, with remedies for users of this command.

use koel::{BuildError, InsertError, InsertErrorKind, ParamError};

use crate::text::rounded_up;

/// Returns the library's error about a parameter, with the name of the option that set it.
pub(crate) fn parameter(error: &ParamError) -> anyhow::Error {
    let option = match error {
        ParamError::Capacity { .. } => "--capacity",
        ParamError::MaxCapacity { .. } => "--max-capacity",
        ParamError::FalsePositiveRate { .. } => "--fpr",
        ParamError::FingerprintBits { .. } => "--bits",
        ParamError::BucketSize { .. } => "--bucket-size",
        ParamError::MaxBytes { .. } => "--max-bytes",
        _ => return anyhow::anyhow!("{error}"),
    };
    anyhow::anyhow!("{option}: {}", error.reason())
}

/// Returns the error about a false-positive rate. `filters` is what keeps no lower rate than `min`, such as "a filter that grows",
/// and `or` another remedy, such as ", or --bucket-size 2".
pub(crate) fn rate(given: f64, min: f64, filters: &str, or: &str) -> anyhow::Error {
    let (given, min) = (format!("{given:?}"), rounded_up(min));
    let given = given.trim_end_matches(".0");
    anyhow::anyhow!("--fpr: {given} given, but {filters} keeps rates from {min:?} to below 1; give one of those{or}")
}

/// Returns the error about the parameters of a growing filter. `or` is another remedy for its rate, as for [`rate`].
pub(crate) fn growing(error: &ParamError, or: &str) -> anyhow::Error {
    match *error {
        ParamError::FalsePositiveRate { given, min } => rate(given, min, "a growing filter", or),
        _ => parameter(error),
    }
}

/// Returns the library's error about a filter that could not be built. `smaller` is the remedy if memory is short, such as "give a
/// smaller --capacity"; if it is empty, only more memory helps.
pub(crate) fn build(error: BuildError, smaller: &str) -> anyhow::Error {
    match error {
        BuildError::Param(error) => parameter(&error),
        BuildError::OutOfMemory(error) => {
            let (bytes, or) = (error.bytes(), if smaller.is_empty() { "" } else { ", or " });
            anyhow::anyhow!(
                "{bytes} bytes of memory cannot be allocated for the filter; {smaller}{or}use a machine with more memory"
            )
        }
        error => error.into(),
    }
}

/// The command that inserts items. Remedies name its own options, or the whole command if it is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserting {
    Build { has_capacity: bool },
    Add,
    Uniq,
}

/// Returns the message about an item that a filter with this capacity refused. `place` is the item's.
pub(crate) fn refused(place: &str, error: &InsertError, capacity: usize, command: Inserting) -> String {
    use Inserting::{Add, Build, Uniq};
    /// The remedy where a filter cannot become larger.
    const OTHER_FILE: &str =
        "name another file with --filter: a filter that grows is created there, without the lines of this one";
    let (reason, remedy) = match error.kind() {
        InsertErrorKind::Full { distinct, .. } => {
            let least = capacity.max(distinct);
            let remedy = match command {
                Build { has_capacity: true } => format!("leave --capacity out, or give a --capacity above {least}"),
                Build { has_capacity: false } => format!("give a --capacity above {least}"),
                Add => format!("build a new filter: `koel build --grow`, or `koel build --capacity N` with N above {least}"),
                Uniq => String::from(OTHER_FILE),
            };
            let enough = if command == Uniq { "" } else { ", enough for all distinct items" };
            let reason = format!("the filter is full: its {distinct} distinct items leave no room for this one");
            (reason, remedy + enough)
        }
        InsertErrorKind::Limit { needed, max_bytes } => (
            format!("the filter would take {needed} bytes, and --max-bytes is {max_bytes}"),
            String::from("give a higher --max-bytes"),
        ),
        InsertErrorKind::Crowded => {
            let remedy = match command {
                Build { .. } => "give a --seed that nobody else knows",
                Add | Uniq => "build a new filter with a seed that nobody else knows: `koel build --grow --seed N`",
            };
            let reason = "too many items have hashes that begin with the same bits, as chosen items do";
            (String::from(reason), String::from(remedy))
        }
        InsertErrorKind::TooManyCopies => {
            let reason = format!("this item has {} copies, and no more are counted", u32::MAX);
            let remedy =
                if command == Uniq { "without --count and --unique, it is not counted" } else { "--unique stores an item once" };
            (reason, String::from(remedy))
        }
        InsertErrorKind::OutOfMemory { bytes } => {
            let reason = format!("{bytes} bytes of memory cannot be allocated for the filter");
            (reason, String::from("use a machine with more memory"))
        }
        _ => return format!("{place}: {error}"),
    };
    format!("{place}: {reason}; {remedy}")
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
