//! What there is to know about a filter.

use core::fmt;

use super::CuckooFilter;
use crate::{
    kernel::Kernel,
    params::{ParamError, Params},
    storage::Storage,
    table::Uniform,
};

impl<H, S: Storage> CuckooFilter<H, S> {
    /// Items in the filter, duplicates counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Is there no item in the filter?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many different items surely fit ([`Params::capacity`]): no fewer than were asked for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.params().capacity()
    }

    /// Slots of the table.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.params().slots()
    }

    /// The load α: the share of the slots that is taken, 0 … 1.
    #[must_use]
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.slots() as f64
    }

    /// Bits of the table for each item in it; infinite as long as there is none.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        8.0 * self.params().table_bytes() as f64 / self.len() as f64
    }

    /// All memory of the filter in bytes: the table with its padding of eight bytes, and the filter itself, 96 bytes or fewer
    /// with a hasher that has none. (The bytes of a [`FilterView`](crate::FilterView) belong to the caller, but are counted,
    /// too.)
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        size_of::<Self>() + self.raw.storage().bytes().len()
    }

    /// The false-positive rate ε to expect at the present load ([`Params::false_positive_rate_at`]).
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.params().false_positive_rate_at(self.load_factor())
    }

    /// The false-positive rate measured with `samples` random hashes, always the same ones; 0 if there are none. Changes
    /// nothing.
    ///
    /// Its standard error is about √(ε/samples): 100/ε of them give ε to a tenth of itself.
    #[must_use]
    pub fn measure_false_positive_rate(&self, samples: usize) -> f64 {
        let hashes = (1..=samples as u64).map(split_mix);
        let hits = hashes.filter(|&hash| self.raw.contains(Uniform(hash))).count();
        hits as f64 / samples.max(1) as f64
    }

    /// What the filter is made of.
    #[must_use]
    pub fn params(&self) -> Params {
        *self.raw.params()
    }

    /// The instructions with which the filter works.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.raw.kernel()
    }

    /// Chooses other instructions, of those that are [`available`](Kernel::available). For tests and comparisons, and for
    /// filters that come from a snapshot: the answers stay the same.
    ///
    /// # Errors
    /// If the kernel is not available.
    pub fn set_kernel(&mut self, kernel: Kernel) -> Result<(), ParamError> {
        self.raw.set_kernel(kernel)
    }

    /// The hasher.
    #[must_use]
    pub fn hasher(&self) -> &H {
        &self.hasher
    }
}

/// The n-th number of the `SplitMix64` sequence (Steele, Lea and Flood, 2014).
fn split_mix(n: u64) -> u64 {
    let mut state = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ state >> 31
}

/// The facts that a person wants, in one line.
impl<H, S: Storage> fmt::Display for CuckooFilter<H, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (params, slots, load) = (self.params(), self.slots(), 100.0 * self.load_factor());
        write!(f, "{params}: {} of {slots} slots taken ({load:.1} %), {} bytes, ", self.len(), params.table_bytes())?;
        if !self.is_empty() {
            write!(f, "{:.2} bits per item, ", self.bits_per_item())?;
        }
        write!(f, "false-positive rate {:.2e}", self.false_positive_rate())
    }
}

/// The facts without the table's bytes.
impl<H, S: Storage> fmt::Debug for CuckooFilter<H, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CuckooFilter").field("params", &self.params()).field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Equal filters have equal parameters, hashers and tables, and so give the same answers for ever. Two filters with the same
/// items need not be equal: the order of insertions matters.
impl<H: PartialEq, S: Storage, T: Storage> PartialEq<CuckooFilter<H, T>> for CuckooFilter<H, S> {
    fn eq(&self, other: &CuckooFilter<H, T>) -> bool {
        self.params() == other.params()
            && self.hasher == other.hasher
            && self.len() == other.len()
            && self.raw.table() == other.raw.table()
    }
}

impl<H: Eq, S: Storage> Eq for CuckooFilter<H, S> {}
