//! Properties of a filter: size, load, false-positive rate, parameters, equality.

use core::fmt;

use super::{Core, CuckooFilter, Filter, Planned};
use crate::{bits::wide, hash::split_mix, kernel::Kernel, params::ParamError, storage::Storage, table::Uniform};

impl<C: Core, H> Filter<C, H> {
    /// The number of items in the filter, counting duplicates.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// True if the filter holds no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory used by the filter, in bytes: tables with their padding, directories, locks, and the struct itself, which takes at
    /// most 96 bytes for a [`CuckooFilter`] with a zero-sized hasher on 64-bit targets. For a view, the caller's bytes are counted as
    /// well.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        size_of::<Self>() + self.core.bytes_behind()
    }

    /// Bits per item; infinite for an empty filter. For a [`CuckooFilter`], bits of its table; for others, of all memory that
    /// [`size_in_bytes`](Self::size_in_bytes) counts.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        8.0 * self.core.bytes_of_items(self.size_in_bytes()) as f64 / self.len() as f64
    }

    /// The expected false-positive rate ε at the current load, 0 to 1
    /// ([`Params::false_positive_rate_at`](crate::Params::false_positive_rate_at)). For a growing filter, the mean of those of all
    /// shards, each in proportion to the hashes that lead to it, in time proportional to the number of shards.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::ElasticFilter::builder().false_positive_rate(0.001).build()?;
    /// filter.insert_iter(0..10_000u64)?;
    /// assert!(filter.false_positive_rate() < 0.001);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.core.false_positive_rate()
    }

    /// Measures the false-positive rate by looking up `samples` pseudo-random hashes, the same ones in every call; 0 if `samples`
    /// is 0.
    ///
    /// The standard error is about √(ε/samples): 100/ε samples measure ε to within 10 %.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.01).build()?;
    /// filter.insert_iter(0..1000u64)?;
    /// let measured = filter.measure_false_positive_rate(100_000);
    /// assert!((measured / filter.false_positive_rate() - 1.0).abs() < 0.2);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn measure_false_positive_rate(&self, samples: usize) -> f64 {
        let hashes = (1..=samples as u64).map(split_mix);
        let hits = hashes.filter(|&hash| self.core.contains(Uniform(hash))).count();
        hits as f64 / samples.max(1) as f64
    }

    /// The hasher.
    #[must_use]
    pub fn hasher(&self) -> &H {
        &self.hasher
    }
}

impl<C: Planned, H> Filter<C, H> {
    /// The filter's parameters.
    #[must_use]
    pub fn params(&self) -> C::Params {
        self.core.params()
    }

    /// The kernel that the filter uses.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.core.dispatch().kernel()
    }

    /// Selects another kernel, for tests, for comparisons, and for filters read from a snapshot. The results stay the same; only
    /// the speed changes.
    ///
    /// # Errors
    /// If the kernel is not [available](Kernel::is_available).
    ///
    /// # Example
    /// ```
    /// use koel::{CuckooFilter, Kernel};
    /// let mut filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.set_kernel(Kernel::Portable)?; // available everywhere
    /// assert_eq!(filter.kernel(), Kernel::Portable);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set_kernel(&mut self, kernel: Kernel) -> Result<(), ParamError> {
        self.core.set_dispatch(kernel.dispatch()?);
        Ok(())
    }
}

impl<H, S: Storage> CuckooFilter<H, S> {
    /// The number of different items that the filter is planned for ([`Params::capacity`](crate::Params::capacity)), at least the number requested. They
    /// fit except with a probability below 10⁻⁴.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert_iter(0..500u64)?;
    /// assert_eq!(filter.len(), 500);
    /// assert!(filter.capacity() >= 1000 && filter.slots() > filter.capacity());
    /// assert!(filter.load_factor() <= 0.5 && filter.false_positive_rate() < 0.001);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.params().capacity()
    }

    /// The number of slots in the table, m·b.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.params().slots()
    }

    /// The load α: the fraction of the slots that are occupied, 0 to 1.
    #[must_use]
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.slots() as f64
    }
}

/// A one-line summary: what the filter is, items, load or shards, size, bits per item and false-positive rate.
impl<C: Core, H> fmt::Display for Filter<C, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.summarize(f, self.core.bytes_of_items(self.size_in_bytes()))?;
        if !self.is_empty() {
            write!(f, ", {:.2} bits per item", self.bits_per_item())?;
        }
        match self.false_positive_rate() {
            0.0 => f.write_str(", false-positive rate 0"),
            rate => write!(f, ", false-positive rate {rate:.2e}"),
        }
    }
}

/// A load in per cent. Only an empty filter has 0.0 %, and only one without a free slot 100.0 %.
pub(super) struct Load {
    pub(super) items: usize,
    pub(super) slots: usize,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tenths of a per cent, rounded, in whole numbers: to display floating-point ones takes 10 KB of code. Of so many slots that
        // they do not fit, the last bits are not missed.
        let shift = if wide(self.slots) < 1 << 52 { 0 } else { 12 };
        let (items, slots) = (wide(self.items) >> shift, wide(self.slots) >> shift);
        let tenths = (2000 * items + slots) / (2 * slots).max(1);
        let tenths = if self.items < self.slots { tenths.min(999) } else { tenths };
        if self.items > 0 && tenths == 0 {
            return f.write_str("below 0.1 %");
        }
        write!(f, "{}.{} %", tenths / 10, tenths % 10)
    }
}

/// The parameters and the number of items, without the tables.
impl<C: Planned, H> fmt::Debug for Filter<C, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct(C::NAME);
        self.core.describe(&mut debug);
        debug.field("params", &self.params()).field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Filters are equal if their parameters, hashers and tables are equal; they then give the same results. Two filters with the
/// same items can differ, because the order of insertion matters.
impl<C: PartialEq<D>, D, H: PartialEq> PartialEq<Filter<D, H>> for Filter<C, H> {
    fn eq(&self, other: &Filter<D, H>) -> bool {
        self.hasher == other.hasher && self.core == other.core
    }
}

impl<C: Eq, H: Eq> Eq for Filter<C, H> {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    #[test]
    fn only_all_is_all_and_only_nothing_is_nothing() {
        let loads = [(0, 1000), (1, 10_000), (5, 10_000), (975, 1000), (9997, 10_000), (10, 10)];
        let texts = loads.map(|(items, slots)| Load { items, slots }.to_string());
        assert_eq!(texts, ["0.0 %", "below 0.1 %", "0.1 %", "97.5 %", "99.9 %", "100.0 %"]);
    }
}
