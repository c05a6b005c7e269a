//! The expected time per operation.

use koel_lab::experiments::speed::Speeds;

/// What is done with a filter, and what it costs. Shares are between 0 and 1, times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Workload {
    /// Of all operations.
    pub(super) look_ups: f64,
    /// Of the look-ups.
    pub(super) absent: f64,
    /// Of all operations.
    pub(super) insertions: f64,
    /// Of all operations.
    pub(super) removals: f64,
    /// The work that a false positive causes.
    pub(super) false_positive: f64,
    /// A MiB of memory, per operation.
    pub(super) mib: f64,
}

/// The parts of the expected time of an operation, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost {
    pub(super) look_ups: f64,
    pub(super) changes: f64,
    pub(super) false_positives: f64,
    pub(super) memory: f64,
}

impl Workload {
    /// The cost of a filter with these times, this false-positive rate and a table of so many bytes.
    pub(super) fn cost(&self, speeds: &Speeds, rate: f64, bytes: f64) -> Cost {
        let Self { look_ups, absent, insertions, removals, false_positive, mib } = *self;
        // Those that replace removed items go into a filter that is nearly full; the others fill it.
        let replacing = insertions.min(removals);
        Cost {
            look_ups: look_ups * (absent * speeds.find_absent + (1.0 - absent) * speeds.find_present),
            changes: replacing * speeds.insert + (insertions - replacing) * speeds.build + removals * speeds.remove,
            false_positives: look_ups * absent * rate * false_positive,
            memory: bytes / f64::from(1 << 20) * mib,
        }
    }

    /// The cost without a filter: the work in vain of every look-up of an absent key.
    pub(super) fn without(&self) -> f64 {
        self.look_ups * self.absent * self.false_positive
    }
}

impl Cost {
    pub(super) fn total(&self) -> f64 {
        self.look_ups + self.changes + self.false_positives + self.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEEDS: Speeds = Speeds { find_absent: 10.0, find_present: 20.0, insert: 40.0, build: 8.0, remove: 30.0 };

    #[test]
    fn each_part_counts_by_its_share() {
        let workload =
            Workload { look_ups: 0.5, absent: 0.75, insertions: 0.25, removals: 0.25, false_positive: 1000.0, mib: 2.0 };
        let cost = workload.cost(&SPEEDS, 0.125, f64::from(3 << 20));
        assert_eq!(cost, Cost { look_ups: 6.25, changes: 17.5, false_positives: 46.875, memory: 6.0 });
        assert!((cost.total() - 76.625).abs() < 1e-12 && (workload.without() - 375.0).abs() < 1e-12);
    }

    #[test]
    fn insertions_without_removals_fill_the_filter() {
        let changes = |insertions, removals| {
            let workload = Workload { look_ups: 0.5, absent: 0.5, insertions, removals, false_positive: 0.0, mib: 0.0 };
            workload.cost(&SPEEDS, 0.0, 0.0).changes
        };
        let expected = [(0.5, 0.0, 4.0), (0.25, 0.25, 17.5), (0.375, 0.125, 10.75), (0.125, 0.375, 16.25), (0.0, 0.5, 15.0)];
        for (insertions, removals, cost) in expected {
            assert!((changes(insertions, removals) - cost).abs() < 1e-12, "{insertions} {removals}");
        }
    }

    /// The question of Lang et al.: a filter pays if its look-up takes less than the work that it saves.
    #[test]
    fn without_absent_keys_no_filter_pays() {
        let workload = Workload { look_ups: 1.0, absent: 0.0, insertions: 0.0, removals: 0.0, false_positive: 1e9, mib: 0.0 };
        assert!(workload.cost(&SPEEDS, 1e-9, 1.0).total() > workload.without());
        let cheap = Workload { absent: 1.0, false_positive: 9.0, ..workload };
        assert!(cheap.cost(&SPEEDS, 1e-9, 1.0).total() > cheap.without());
        let dear = Workload { false_positive: 11.0, ..cheap };
        assert!(dear.cost(&SPEEDS, 1e-9, 1.0).total() < dear.without());
    }
}
