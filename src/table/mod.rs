//! Where fingerprints are stored: buckets of them, found by number.
//!
//! ```text
//! hash ──address──▶ two buckets, a fingerprint ──walk──▶ Table ──▶ bits of a byte slice
//!                                                         ├ Single   slot after slot, any bucket size
//!                                                         └ Packed   semi-sorted buckets of four slots
//!                                                             ├ Narrow   a bucket fits into a word
//!                                                             └ Wide     it does not
//! ```
//!
//! A [`Geometry`] says where the buckets of a table are, and is kept with the filter. A [`Table`] is a geometry bound to
//! bytes and to [`Instructions`], and lives as long as one operation: what is done to it is a [`Read`] or a [`Change`],
//! which is compiled once for each kind of table and set of instructions. `kernel` chooses among these.

mod address;
mod instructions;
mod packed;
mod single;
#[cfg(test)]
mod tests;
mod walk;

use core::{num::NonZeroU64, ops::Range};

use crate::{
    bits::low_half,
    params::{Params, TableKind},
    storage::{Owned, Storage},
};
#[cfg(x86_kernels)]
pub(crate) use address::MULTIPLIER;
pub(crate) use address::{Address, Uniform};
pub(crate) use instructions::{Instructions, Portable};
#[cfg(go_files)]
pub(crate) use packed::codebook::CODEWORD_BITS;
pub(crate) use packed::{Narrow, PackedGeometry, Wide};
#[cfg(x86_kernels)]
pub(crate) use packed::{Packed, codebook};
pub(crate) use single::{Single, SingleGeometry};
pub(crate) use walk::place;

/// The f ≤ 32 bits by which a bucket knows an item. Never 0, which is the empty slot. (In 64 bits, as arithmetic has it.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(NonZeroU64);

impl Fingerprint {
    /// What is in a slot, unless it is empty.
    #[inline]
    pub(crate) fn new(value: u32) -> Option<Self> {
        NonZeroU64::new(value.into()).map(Self)
    }

    /// One more than a number below 2ᶠ − 1.
    #[inline]
    fn above(number: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(number))
    }

    #[inline]
    pub(crate) fn get(self) -> u32 {
        low_half(self.wide())
    }

    #[inline]
    pub(crate) fn wide(self) -> u64 {
        self.0.get()
    }
}

/// An item's first and its second bucket. Not an array: those are passed in memory, where a store to the table that is still
/// waiting for its address holds them up.
pub(crate) type Pair = (u64, u64);

/// The fingerprints among the values of a bucket's slots.
#[inline]
pub(crate) fn fingerprints(values: &impl AsRef<[u32]>) -> impl Iterator<Item = Fingerprint> {
    values.as_ref().iter().filter_map(|&value| Fingerprint::new(value))
}

/// Why no table of this library can have written a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Corrupt {
    /// The codeword is not in the codebook.
    Codeword(u32),
    /// The fingerprints are not in order.
    Order,
}

/// What can be read from a table. Buckets are numbered from 0; a number beyond the last panics.
pub(crate) trait Table {
    /// The values of a bucket's slots, in their order; 0 for empty ones.
    type Values: AsRef<[u32]>;

    /// Is the fingerprint in one of the buckets?
    fn contains(&self, buckets: Pair, fingerprint: Fingerprint) -> bool;
    /// Everything in the bucket.
    fn values(&self, bucket: u64) -> Self::Values;
    /// Has the bucket an empty slot?
    fn has_room(&self, bucket: u64) -> bool;
    /// Starts to load the bucket into the cache.
    fn prefetch(&self, bucket: u64);
    /// How many slots of the buckets are taken, or `None` if this library cannot have written one of them. Until this has been
    /// asked of untrusted buckets, what the other methods return is well defined, but means nothing.
    fn taken(&self, buckets: Range<u64>) -> Option<u64>;
    /// Why this library cannot have written the bucket, if it cannot.
    fn corrupt(&self, bucket: u64) -> Option<Corrupt>;
    /// The bytes of the table and its padding.
    fn len_in_bytes(&self) -> usize;
}

/// What can be changed in a table. All its buckets are ones that this library has written, or has checked.
pub(crate) trait TableMut: Table + Sized {
    /// Stores the fingerprint in the emptier of two buckets, the first if neither is. False, and nothing changed, if both are
    /// full.
    fn insert(&mut self, buckets: Pair, fingerprint: Fingerprint) -> bool;
    /// Removes one copy of the fingerprint, from the first bucket if both have one. False, and nothing changed, if there is
    /// none.
    fn remove(&mut self, buckets: Pair, fingerprint: Fingerprint) -> bool;
    /// Stores the fingerprint in an empty slot. False, and nothing changed, if there is none.
    fn put(&mut self, bucket: u64, fingerprint: Fingerprint) -> bool;
    /// Replaces a copy of `old`, which is there, by `new`.
    fn replace(&mut self, bucket: u64, old: Fingerprint, new: Fingerprint);
    /// Runs a change that is rarely needed in a function of its own, compiled for the same instructions.
    fn outlined<C: Change>(&mut self, change: C) -> C::Output;
}

/// Something that is read from a table, whichever it is. `run` should be `#[inline(always)]`: what is inlined is compiled
/// for the kernel's instructions, what is called is not.
pub(crate) trait Read {
    type Output;
    fn run<T: Table>(self, table: &T) -> Self::Output;
}

/// Something that is done to a table, whichever it is; `run` as in [`Read`].
pub(crate) trait Change {
    type Output;
    fn run<T: TableMut>(self, table: &mut T) -> Self::Output;
}

/// A kind of table, as a type: binds its geometry to bytes and instructions for one operation.
pub(crate) trait Form {
    type Geometry;

    fn read<I: Instructions, R: Read>(geometry: &Self::Geometry, storage: &impl Storage, instructions: I, read: R) -> R::Output;
    fn change<I: Instructions, C: Change>(
        geometry: &Self::Geometry,
        storage: &mut Owned,
        instructions: I,
        change: C,
    ) -> C::Output;
}

/// Where the buckets of a table are, and what is in their bits.
#[derive(Clone, Copy)]
pub(crate) enum Geometry {
    Narrow(PackedGeometry),
    Wide(PackedGeometry),
    Single(SingleGeometry),
}

impl Geometry {
    pub(crate) fn new(params: &Params) -> Self {
        match params.table() {
            TableKind::Single => Self::Single(SingleGeometry::new(params.fingerprint_bits(), params.bucket_size())),
            TableKind::Packed => {
                let geometry = PackedGeometry::new(params.fingerprint_bits());
                if geometry.is_narrow() { Self::Narrow(geometry) } else { Self::Wide(geometry) }
            }
        }
    }
}
