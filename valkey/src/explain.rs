//! The library's errors, explained with the options of commands and the settings of the module instead of the library's functions.

use std::fmt::Display;

use koel::{InsertErrorKind, MergeError, OutOfMemory, ParamError, SnapshotError, SnapshotErrorKind};

use crate::{
    plan::Plan,
    refusal::{Limit, Refusal},
    reply::{Cause, Failure},
};

/// Returns the error for bytes that cannot be read as a filter. The message begins with `prefix`.
pub(crate) fn unreadable(prefix: &str, error: SnapshotError) -> Failure {
    let explained = |error: &dyn Display| Failure::new(format_args!("{prefix}{error}"));
    let remedy = match error.kind() {
        SnapshotErrorKind::Version => {
            let remedy = if error.is_too_old() {
                "build the filter anew, or install the version of koel-valkey that wrote it"
            } else {
                "a newer koel wrote it, unless it is damaged: install that version of koel-valkey, or a later one"
            };
            return explained(&error.with_remedy(remedy)).because(Cause::Version);
        }
        SnapshotErrorKind::OutOfMemory => {
            return explained(&error.with_remedy("give the server more memory")).because(Cause::OutOfMemory);
        }
        SnapshotErrorKind::Hasher => {
            return explained(&format_args!(
                "at byte {}: its hash function is not xxh3; build the filter anew with: koel build --grow",
                error.offset()
            ));
        }
        SnapshotErrorKind::OtherType => "the module loads filters that grow: build it anew with: koel build --grow",
        SnapshotErrorKind::TrailingBytes => "give the chunks of one dump in order, each once",
        _ => return explained(&error),
    };
    explained(&error.with_remedy(remedy))
}

/// Returns the error for a plan that no filter has.
pub(crate) fn impossible(plan: &Plan, error: &ParamError) -> Failure {
    let Plan { capacity, expansion, error_rate, .. } = plan;
    match error {
        ParamError::FalsePositiveRate { min, .. } => Failure::new(format_args!(
            "ERROR: {error_rate} is too low for a capacity of {capacity} with EXPANSION {expansion}; give an ERROR of at least {min}, or a \
             smaller capacity"
        )),
        _ => Failure::new(format_args!(
            "Capacity {capacity} with EXPANSION {expansion} is more than a filter can be planned for; give a smaller one"
        )),
    }
}

/// Returns the error for a new filter that cannot be allocated.
pub(crate) fn not_allocated(error: OutOfMemory) -> Failure {
    Failure::new(format_args!(
        "ERR Insufficient memory to create filter: {} bytes cannot be allocated; reserve a smaller capacity, or give the machine more \
         memory",
        error.bytes()
    ))
    .because(Cause::OutOfMemory)
}

/// Returns the error for an item that a filter with this plan refused.
pub(crate) fn refused(refusal: Refusal, plan: &Plan, limit: Limit) -> Failure {
    match refusal {
        Refusal::Copies => Failure::new(format_args!(
            "Filter is full: this item has {} copies, the most that are counted; CF.ADDNX adds an item only once",
            u32::MAX
        )),
        Refusal::Capacity => Failure::new(format_args!(
            "Filter is full: its capacity is {} distinct items, and EXPANSION 0; reserve one that expands",
            plan.capacity
        )),
        Refusal::Limit { needed } => Failure::new(format_args!(
            "Maximum expansions reached: the filter would take {needed} bytes or more, and koel.max-bytes is {}; raise it with CONFIG \
             SET, or remove items and call CF.COMPACT",
            limit.bytes()
        )),
        Refusal::Growth => Failure::new(
            "Maximum expansions reached: too many items share the first bits of their hashes; fill a new one that is reserved \
             with another SEED",
        ),
        Refusal::OutOfMemory => Failure::out_of_memory(),
    }
}

/// Returns the error for two filters that cannot be united.
pub(crate) fn not_united(target: &Plan, source: &Plan, limit: Limit, error: &MergeError) -> Failure {
    let failed = |reason: &dyn Display| Failure::new(format_args!("ERR the filters cannot be united: {reason}"));
    match error {
        MergeError::MaxCapacity { items, max_capacity, needed: Some(needed), .. } => failed(&format_args!(
            "together, they have {items} items, and they are planned for {max_capacity}; reserve all with a capacity of at least \
             {needed}, or with a smaller one and an EXPANSION that makes up for it"
        )),
        MergeError::MaxCapacity { items, .. } => failed(&format_args!(
            "together, they have {items} items, and no filter with an ERROR of {} can be planned for that many; reserve all with a \
             higher ERROR",
            target.error_rate
        )),
        MergeError::Insert(error) => match error.kind() {
            InsertErrorKind::Limit { needed, max_bytes } => failed(&format_args!(
                "the union would take {needed} bytes, and koel.max-bytes is {max_bytes}; raise it with CONFIG SET"
            )),
            InsertErrorKind::OutOfMemory { .. } => Failure::out_of_memory(),
            kind => failed(&refused(Refusal::of(kind), target, limit)),
        },
        MergeError::OutOfMemory(_) => Failure::out_of_memory(),
        _ => failed(&Difference(target, source)),
    }
}

/// The first difference of two plans, with the remedy.
struct Difference<'a>(&'a Plan, &'a Plan);

impl Display for Difference<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(ours, theirs) = self;
        let mut differ = |name: &str, ours: &dyn Display, theirs: &dyn Display| write!(f, "{name} {ours} and {theirs} differ; ");
        if ours.capacity != theirs.capacity {
            differ("their capacities", &ours.capacity, &theirs.capacity)?;
        } else if ours.seed != theirs.seed {
            differ("their SEEDs", &ours.seed, &theirs.seed)?;
        } else if ours.error_rate.to_bits() != theirs.error_rate.to_bits() {
            differ("their ERRORs", &ours.error_rate, &theirs.error_rate)?;
        } else if ours.expansion != theirs.expansion {
            differ("their EXPANSIONs", &ours.expansion, &theirs.expansion)?;
        } else {
            f.write_str("one was loaded that was planned differently; ")?;
        }
        f.write_str("reserve all with the same capacity, EXPANSION, ERROR and SEED")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A newer version can be installed; an older one cannot be read by any that follows.
    #[test]
    fn versions_of_snapshots_are_explained() {
        let filter = koel::ElasticFilter::builder().false_positive_rate(0.01).build().expect("a small filter");
        for (version, remedy) in [
            (1, "written by a development version of this library, but this release reads version 2; build the filter anew"),
            (3, "this release reads version 2; a newer koel wrote it, unless it is damaged: install that version"),
        ] {
            let mut bytes = filter.to_bytes();
            bytes[8] = version;
            let failure = unreadable("", koel::ElasticFilter::from_bytes(&bytes).expect_err("another version"));
            assert!(failure.to_string().contains(remedy), "{failure}");
            assert!(matches!(failure.cause(), Cause::Version));
        }
    }

    /// The errors of the builder name options of commands.
    #[test]
    fn impossible_plans_are_explained() {
        let plan = Plan { capacity: 1 << 40, expansion: 3, error_rate: 1e-9, seed: 0 };
        let message = impossible(&plan, &ParamError::FalsePositiveRate { given: 1e-9, min: 2e-7 }).to_string();
        assert!(
            message.starts_with("ERROR: 0.000000001 is too low for a capacity of 1099511627776 with EXPANSION 3;"),
            "{message}"
        );
        assert!(message.contains("an ERROR of at least 0.0000002"), "{message}");
        let message = impossible(&plan, &ParamError::MaxCapacity { given: 9, max: 8 }).to_string();
        assert!(message.starts_with("Capacity 1099511627776 with EXPANSION 3 is more than"), "{message}");
    }
}
