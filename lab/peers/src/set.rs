//! What is compared: filters of a fixed size, or filters that grow.

use crate::{measure::Contestant, ours, rivals};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// Each filter is built for the number of items that it gets.
    Fixed,
    /// Each filter begins small and grows with its items.
    Growing,
}

impl Set {
    /// All filters of the set, as near to this false-positive rate as possible: koel's first.
    pub(crate) fn contestants(self, rate: f64) -> Vec<Box<dyn Contestant>> {
        let (ours, rivals) = match self {
            Self::Fixed => (ours::fixed(rate), rivals::fixed(rate)),
            Self::Growing => (ours::growing(rate), rivals::growing(rate)),
        };
        ours.into_iter().chain(rivals).collect()
    }

    /// The name with which its files begin.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fixed => "peers",
            Self::Growing => "growth",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Fixed => "Koel and other filters",
            Self::Growing => "Koel and other filters that grow",
        }
    }

    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::Fixed => {
                "The paper's table 3 with present crates: koel and others, each built for the same false-positive rate from \
                 the same keys, in one thread and in the same rounds. The paper compares space, rate and construction speed of \
                 its cuckoo filter, plain and semi-sorted, with a Bloom, a blocked Bloom, a quotient and a d-left counting \
                 Bloom filter. We know no crate of the last; instead, there are a counting Bloom filter and the binary fuse \
                 filters, which are static. Times of lookups and removals are measured, too."
            }
            Self::Growing => {
                "Filters that begin with room for 1000 items, or with koel's own choice, and grow, in one thread and in the \
                 same rounds: koel and other crates, each of which promises the same false-positive rate. The rate is measured \
                 when all items are in the filter. Then half of the items are removed, and the other half is looked up: it \
                 must still be found. A Bloom filter that has its final size from the beginning shows what growth costs."
            }
        }
    }

    /// The keys, and the most that one of the filters takes for an item while it is built.
    pub(crate) fn bytes_per_item(self) -> u64 {
        match self {
            // A static filter.
            Self::Fixed => 60,
            // aleph-filter with 10 M items, while it doubles.
            Self::Growing => 300,
        }
    }
}
