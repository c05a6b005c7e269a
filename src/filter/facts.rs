//! Properties of filters: parameters, kernels, distinct items, `Debug` and summaries.

use core::fmt;

use super::Core;
use crate::hash::{Uniform, split_mix};

/// Implements the parameters, distinct items and kernel of a filter whose core has them, and `Debug`.
macro_rules! planned {
    (impl [$($generics:tt)*] $filter:ty, $name:literal, $params:ty) => {
        impl<$($generics)*> $filter {
            /// Returns the filter's parameters.
            #[must_use]
            pub fn params(&self) -> $params {
                *self.core.params()
            }

            /// Returns the number of distinct items: what [`capacity`](Self::capacity) counts, while [`len`](Self::len) also counts
            /// copies. Items with the same fingerprint and the same two buckets count as one; in a growing filter, those that are
            /// equal in all known bits.
            ///
            /// Takes time proportional to the number of items: each is looked up in its other bucket.
            ///
            /// # Example
            /// ```
            /// let mut filter = koel::ElasticFilter::builder().false_positive_rate(0.001).build()?;
            /// filter.insert_batch(&["alice", "bob", "alice"])?;
            /// assert_eq!((filter.len(), filter.distinct()), (3, 2));
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            #[must_use]
            pub fn distinct(&self) -> usize {
                self.core.distinct()
            }

            /// Returns the kernel that the filter uses.
            #[must_use]
            pub fn kernel(&self) -> $crate::Kernel {
                self.core.dispatch().kernel()
            }

            /// Selects another kernel: for tests, for comparisons, and for filters read from a snapshot. Only the speed changes,
            /// not the results.
            ///
            /// # Errors
            /// If the kernel is not [available](crate::Kernel::is_available).
            ///
            /// # Example
            /// ```
            /// use koel::{CuckooFilter, Kernel};
            /// let mut filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
            /// filter.set_kernel(Kernel::Portable)?; // available everywhere
            /// assert_eq!(filter.kernel(), Kernel::Portable);
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            pub fn set_kernel(&mut self, kernel: $crate::Kernel) -> Result<(), $crate::ParamError> {
                self.core.set_dispatch(kernel.dispatch()?);
                Ok(())
            }
        }

        /// Shows the parameters and the number of items, without the tables.
        impl<$($generics)*> core::fmt::Debug for $filter {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct($name).field("params", &self.params()).field("len", &self.len()).finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use planned;

/// Measures the false-positive rate with `samples` pseudo-random hashes.
pub(crate) fn measure_rate(core: &impl Core, samples: usize) -> f64 {
    let hashes = (1..=samples as u64).map(split_mix);
    let hits = hashes.filter(|&hash| core.contains(Uniform(hash))).count();
    hits as f64 / samples.max(1) as f64
}

/// From this many bits per item, a filter is nearly empty, and its summary omits the figure.
const NEARLY_EMPTY: f64 = 1000.0;

/// Writes a one-line summary of a filter that takes `size_in_bytes` bytes.
pub(crate) fn write_summary(core: &impl Core, size_in_bytes: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let bytes = core.bytes_of_items(size_in_bytes);
    core.summarize(f, bytes)?;
    // Infinite if there are no items.
    let bits_per_item = 8.0 * bytes as f64 / core.len() as f64;
    if bits_per_item < NEARLY_EMPTY {
        write!(f, ", {bits_per_item:.2} bits per item")?;
    }
    match core.false_positive_rate() {
        0.0 => f.write_str(", false-positive rate 0"),
        rate => write!(f, ", false-positive rate {rate:.2e}"),
    }
}

/// A load factor, displayed in percent: 0.0 % only for an empty filter, 100.0 % only without a free slot.
pub(super) struct Load {
    pub(super) items: usize,
    pub(super) slots: usize,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A view that has not been verified may claim more items than slots.
        let most = if self.items < self.slots { 99.9 } else { 100.0 };
        match 100.0 * self.items as f64 / self.slots as f64 {
            percent if percent > 0.0 && percent < 0.05 => f.write_str("below 0.1 %"),
            percent => write!(f, "{:.1} %", percent.min(most)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    #[test]
    fn loads_round_to_0_and_100_percent_only_at_the_ends() {
        let loads = [(0, 1000), (1, 10_000), (5, 10_000), (975, 1000), (9997, 10_000), (10, 10), (usize::MAX, 10)];
        let texts = loads.map(|(items, slots)| Load { items, slots }.to_string());
        assert_eq!(texts, ["0.0 %", "below 0.1 %", "0.1 %", "97.5 %", "99.9 %", "100.0 %", "100.0 %"]);
    }
}
