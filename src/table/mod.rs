//! Tables: arrays of buckets that store fingerprints.
//!
//! ```text
//! hash ──address──▶ two buckets, a fingerprint ──walk──▶ Table ──▶ bits of a byte slice
//!                                                         ├ Single   contiguous slots, any bucket size
//!                                                         └ Packed   semi-sorted buckets of four slots
//!                                                             ├ Narrow   a bucket fits into a word
//!                                                             └ Wide     a bucket takes several words
//! ```
//!
//! In growing filters, tables are packed, and a fingerprint has more bits than a lookup compares. Its upper bits are in a
//! [`Column`] behind the table, which lookups do not read ([`Deep`]).
//!
//! A [`Geometry`] is the bit layout of a table; filters store it. A [`Table`] is a geometry bound to bytes and to
//! [`Instructions`] for the duration of one operation. Operations are types that implement [`Read`] or [`Change`]. Each is
//! compiled once for every kind of table and instruction set; `kernel` picks one of the compiled versions.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

mod address;
pub(crate) mod copies;
pub(crate) mod list;
mod packed;
mod single;
mod slotwise;
#[cfg(test)]
pub(crate) mod steps;
#[cfg(test)]
mod tests;
mod walk;

use core::{
    hint::black_box,
    num::NonZeroU64,
    ops::{Deref, Range},
};

use crate::{
    bits::{index, low_half},
    params::{Params, TableKind},
};
pub use address::Uniform;
pub(crate) use address::{Address, AnySize};
#[cfg(go_files)]
pub(crate) use packed::codebook::CODEWORD_BITS;
pub(crate) use packed::{Column, Deep, FillPart, Keys, Narrow, Packed, PackedGeometry, Wide};
pub(crate) use single::{Single, SingleGeometry};
pub(crate) use slotwise::{Slotwise, SlotwiseGeometry};
pub(crate) use walk::{
    CopyPolicy, Crowd, Crowded, Insertion, LONG_SEARCH, PIECE_BUCKETS, Replacement, SHORT_SEARCH, store_fingerprint,
    store_in_second,
};
#[cfg(x86_kernels)]
pub(crate) use {address::MULTIPLIER, packed::codebook};

/// The bits that a table and its column store of an item: up to 32 in a fixed filter, up to 64 in a shard. Never 0, which marks an
/// empty slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(NonZeroU64);

impl Fingerprint {
    pub const ONE: Self = Self(NonZeroU64::MIN);

    /// Returns the fingerprint in a slot, or `None` for an empty slot.
    #[inline]
    pub fn new(value: u64) -> Option<Self> {
        NonZeroU64::new(value).map(Self)
    }

    /// Returns the fingerprint `index` + 1. `index` must be below 2ᶠ − 1.
    #[inline]
    fn from_index(index: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(index))
    }

    /// Returns the lowest bits, which determine the alternate bucket. They are 0 only in corrupt fingerprints; this then returns
    /// 1.
    #[inline]
    pub fn low(self, bits: u32) -> Self {
        Self(NonZeroU64::new(self.wide() & ((1 << bits) - 1)).unwrap_or(NonZeroU64::MIN))
    }

    /// Returns a longer fingerprint: this one, with `upper` above its bits.
    #[inline]
    pub fn with(self, upper: u64) -> Self {
        Self(self.0 | upper)
    }

    /// Returns a fingerprint of at most 32 bits.
    #[inline]
    pub fn get(self) -> u32 {
        low_half(self.wide())
    }

    #[inline]
    pub fn wide(self) -> u64 {
        self.0.get()
    }
}

/// An item's first and second bucket. A tuple, because an array would be passed in memory, and loading it would wait until the
/// address of the last pending store to the table is known.
pub(crate) type Pair = (u64, u64);

/// The number of slots in the largest bucket.
pub(crate) const MAX_SLOTS: usize = 16;

/// The value of a slot: a fingerprint, or 0 in an empty slot. Shards need 64 bits. Fixed filters use 32: with 64, their insertions
/// would take 3 to 8 % longer.
pub(crate) trait Slot: Copy + Ord + Into<u64> + 'static {
    const EMPTY: Self;

    /// Converts a value that fits into a slot of this type.
    fn new(value: u64) -> Self;
}

impl Slot for u32 {
    const EMPTY: Self = 0;

    #[inline(always)]
    fn new(value: u64) -> Self {
        low_half(value)
    }
}

impl Slot for u64 {
    const EMPTY: Self = 0;

    #[inline(always)]
    fn new(value: u64) -> Self {
        value
    }
}

/// The values of a bucket's slots, in order, for buckets of any size. Empty slots are 0.
pub(crate) struct Values<S> {
    slots: [S; MAX_SLOTS],
    len: usize,
}

impl<S> AsRef<[S]> for Values<S> {
    #[inline(always)]
    fn as_ref(&self) -> &[S] {
        &self.slots[..self.len]
    }
}

/// Iterates over the fingerprints in a bucket: the values of its occupied slots.
#[inline]
pub(crate) fn fingerprints<S: Slot>(values: &impl AsRef<[S]>) -> impl Iterator<Item = Fingerprint> {
    values.as_ref().iter().filter_map(|&value| Fingerprint::new(value.into()))
}

/// Copies the values of a bucket's slots to the start of `to`. Returns the rest of it.
#[inline(always)]
pub(crate) fn copy_values<'a, S: Slot, T: Slot>(values: &impl AsRef<[S]>, to: &'a mut [T]) -> &'a mut [T] {
    let values = values.as_ref();
    let (copies, rest) = to.split_at_mut(values.len());
    for (copy, &value) in copies.iter_mut().zip(values) {
        *copy = T::new(value.into());
    }
    rest
}

/// The reason why a bucket is corrupt: this library never writes such a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Corrupt {
    /// The codeword is not in the codebook.
    Codeword(u32),
    /// The fingerprints are not sorted.
    Order,
    /// A fingerprint has none of its bits in the [`nonzero_mask`](TableParams::nonzero_mask).
    Low,
}

/// Read access to a table. Buckets are numbered from 0. Methods panic if a bucket is beyond the end of the bytes.
pub(crate) trait Table {
    type Slot: Slot;
    /// The values of a bucket's slots, in order.
    type Values: AsRef<[Self::Slot]>;

    /// Returns true if one of the two buckets holds the fingerprint.
    fn contains(&self, buckets: Pair, fingerprint: Fingerprint) -> bool;
    /// Reads all slots of the bucket.
    fn values(&self, bucket: u64) -> Self::Values;
    /// Returns true if the bucket has an empty slot.
    fn has_room(&self, bucket: u64) -> bool;
    /// Prefetches the bucket into the cache.
    fn prefetch(&self, bucket: u64);
    /// Counts the occupied slots in the buckets. Returns `None` if a bucket is corrupt; with `low`, also if a fingerprint has
    /// none of these bits. Untrusted tables must be checked with this first. Until then, the other methods return unspecified
    /// values, but never cause undefined behavior.
    fn taken(&self, buckets: Range<u64>, low: Option<Fingerprint>) -> Option<u64>;
}

/// Write access to a table. All its buckets must be valid: written by this library, or checked.
pub(crate) trait TableMut: Table + Sized {
    /// Stores the fingerprint in the emptier of the two buckets, or in the first if they are equally full. Returns false and
    /// changes nothing if both are full.
    fn insert(&mut self, buckets: Pair, fingerprint: Fingerprint) -> bool;
    /// Removes one copy of the fingerprint, from the first bucket if both have one. Returns false and changes nothing if neither
    /// has one.
    fn remove(&mut self, buckets: Pair, fingerprint: Fingerprint) -> bool;
    /// Replaces a copy of `old` by `new`, where `None` is an empty slot. Returns false and changes nothing if the bucket has no such
    /// slot.
    fn replace(&mut self, bucket: u64, old: Option<Fingerprint>, new: Option<Fingerprint>) -> bool;
    /// Stores values of slots in empty slots of the bucket, from the last value on, as long as there is room. What it stores, it
    /// replaces by 0.
    #[inline(always)]
    fn add<S: Slot>(&mut self, bucket: u64, values: &mut [S]) {
        for value in values.iter_mut().rev() {
            if Fingerprint::new((*value).into()).is_some_and(|fingerprint| self.replace(bucket, None, Some(fingerprint))) {
                *value = S::EMPTY;
            }
        }
    }
    /// Runs a change in a separate function, which is compiled for the table's instructions even if the caller is not.
    fn outlined<C: Change>(&mut self, change: C) -> C::Output;
}

/// An operation that reads a table of any kind. `run` should be `#[inline(always)]`: inlined code is compiled for the kernel's
/// instructions, called functions are not.
pub(crate) trait Read {
    type Output;
    /// True for operations that must be fast even in the npm package.
    const IS_HOT: bool = false;

    fn run<T: Table>(self, table: &T) -> Self::Output;
}

/// An operation that changes a table of any kind. `run` should be `#[inline(always)]`, as in [`Read`].
pub(crate) trait Change {
    type Output;
    fn run<T: TableMut>(self, table: &mut T) -> Self::Output;
}

/// A task that works on many tables.
pub(crate) trait Task {
    type Output;

    /// Runs the task. Should be `#[inline(always)]`: inlined code is compiled for the instructions.
    fn run<I: Instructions>(self, instructions: I) -> Self::Output;
}

/// A kind of table, as a type. It binds a geometry to bytes and instructions, and runs an operation on the result.
pub(crate) trait Form {
    type Geometry;

    fn read<I: Instructions, R: Read>(geometry: &Self::Geometry, bytes: &[u8], instructions: I, read: R) -> R::Output;
    fn change<I: Instructions, C: Change>(geometry: &Self::Geometry, bytes: &mut [u8], instructions: I, change: C) -> C::Output;
}

/// The bit layout of a table, for each kind of table. The most frequent kind is the last variant, because the compiler tests for
/// the last variant first.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Geometry {
    Single(SingleGeometry),
    Wide(PackedGeometry),
    Narrow(PackedGeometry),
}

#[cfg(x86_kernels)]
impl Geometry {
    pub fn bucket_bits(&self) -> u64 {
        match self {
            // The second bucket begins where the first one ends.
            Self::Single(geometry) => geometry.bit(1),
            Self::Wide(geometry) | Self::Narrow(geometry) => geometry.bit(1),
        }
    }
}

/// The bit layout of a packed table with a column. The column may have a width of 0.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct DeepGeometry {
    /// The layout of the table without the column, which is all that lookups read.
    pub table: PackedGeometry,
    pub column: Column,
}

impl DeepGeometry {
    pub fn new(params: &impl TableParams) -> Self {
        let column = Column::new(bytes_of(params.buckets(), params.bucket_bits()), params.column_bits());
        Self { table: packed(params.fingerprint_bits()), column }
    }
}

/// Returns the length of this many buckets in bytes.
fn bytes_of(buckets: u64, bucket_bits: u32) -> usize {
    index((buckets * u64::from(bucket_bits)).div_ceil(8))
}

/// The parameters of one table: the only table of a filter, or one shard of a growing filter.
pub(crate) trait TableParams: Copy {
    /// A slot that holds any fingerprint with these parameters.
    type Slot: Slot;
    /// Room for the values of one bucket's slots.
    type Slots: AsRef<[Self::Slot]> + AsMut<[Self::Slot]>;
    const EMPTY_SLOTS: Self::Slots;
    /// True if tables are packed, and may have a column.
    const HAS_COLUMN: bool = false;

    /// Returns the other bucket of a fingerprint stored in `bucket`. An involution.
    fn alternate(&self, bucket: u64, fingerprint: Fingerprint) -> u64;
    fn table(&self) -> TableKind;
    /// Returns the number of bits that the table, without the column, stores of an item.
    fn fingerprint_bits(&self) -> u32;
    fn bucket_size(&self) -> u32;
    fn buckets(&self) -> u64;

    /// Returns the number of bits that the column stores of an item.
    fn column_bits(&self) -> u32 {
        0
    }

    /// Returns a mask of which at least one bit must be set in every fingerprint, or `None` if any nonzero fingerprint is valid.
    fn nonzero_mask(&self) -> Option<Fingerprint> {
        None
    }

    fn slots(&self) -> usize {
        index(self.buckets() * u64::from(self.bucket_size()))
    }

    fn bucket_bits(&self) -> u32 {
        self.table().bucket_bits(self.fingerprint_bits(), self.bucket_size())
    }

    /// Returns the length of the table and its column in bytes, without padding.
    fn table_bytes(&self) -> usize {
        self.bits_of_a_bucket().into_iter().map(|bits| bytes_of(self.buckets(), bits)).sum()
    }

    /// Returns the number of bits that a bucket takes in the table and in the column. Both begin at a byte boundary.
    fn bits_of_a_bucket(&self) -> [u32; 2] {
        [self.bucket_bits(), self.bucket_size() * self.column_bits()]
    }
}

impl TableParams for Params {
    type Slot = u32;
    type Slots = [u32; MAX_SLOTS];
    const EMPTY_SLOTS: Self::Slots = [0; MAX_SLOTS];

    #[inline]
    fn alternate(&self, bucket: u64, fingerprint: Fingerprint) -> u64 {
        Address::new(self).alternate(bucket, fingerprint)
    }

    fn table(&self) -> TableKind {
        self.table()
    }

    #[inline]
    fn fingerprint_bits(&self) -> u32 {
        self.fingerprint_bits()
    }

    #[inline]
    fn bucket_size(&self) -> u32 {
        self.bucket_size()
    }

    #[inline]
    fn buckets(&self) -> u64 {
        self.buckets()
    }
}

impl Geometry {
    /// Runs a [`Read`] on a table with this layout.
    #[inline(always)]
    pub fn read_with<I: Instructions, R: Read>(&self, bytes: &[u8], instructions: I, read: R) -> R::Output {
        match self {
            Self::Narrow(geometry) => Narrow::read(geometry, bytes, instructions, read),
            Self::Wide(geometry) => Wide::read(geometry, bytes, instructions, read),
            Self::Single(geometry) => Single::read(geometry, bytes, instructions, read),
        }
    }

    #[inline]
    pub fn new(params: &impl TableParams) -> Self {
        match params.table() {
            TableKind::Single => Self::Single(SingleGeometry::new(params.fingerprint_bits(), params.bucket_size())),
            TableKind::Packed => {
                let geometry = packed(params.fingerprint_bits());
                if geometry.is_narrow() { Self::Narrow(geometry) } else { Self::Wide(geometry) }
            }
        }
    }
}

/// Returns the layout of a packed table. A program with kernels is large anyway, and a list of all layouts makes opening a view a
/// tenth faster.
#[cfg(x86_kernels)]
fn packed(fingerprint_bits: u32) -> PackedGeometry {
    static ALL: [PackedGeometry; 29] = {
        let mut all = [PackedGeometry::new(4); 29];
        let mut bits = 4;
        while bits <= 32 {
            all[bits as usize - 4] = PackedGeometry::new(bits);
            bits += 1;
        }
        all
    };
    ALL[fingerprint_bits as usize - 4]
}

#[cfg(not(x86_kernels))]
fn packed(fingerprint_bits: u32) -> PackedGeometry {
    PackedGeometry::new(fingerprint_bits)
}

// The instructions that tables need from a processor.

/// The number of bits in a quarter of a word.
const QUARTER: u32 = u16::BITS;

/// The lowest bit of each half of a word.
const HALVES: u64 = 0x0000_0001_0000_0001;

/// Instructions that pack and unpack the fields of a word and prefetch memory. A value of an implementing type proves that the
/// processor supports them.
pub(crate) trait Instructions: Copy {
    /// Unpacks the four lowest fields, of `width` < 16 bits each, into the lowest bits of the quarters.
    fn spread(self, fields: u64, width: u32) -> u64;
    /// Packs what [`spread`](Self::spread) unpacks. Ignores the other bits of the quarters.
    fn gather(self, quarters: u64, width: u32) -> u64;
    /// Unpacks four nibbles into the highest bits of the quarters.
    fn spread_nibbles(self, nibbles: u16) -> u64;
    /// Packs what [`spread_nibbles`](Self::spread_nibbles) unpacks.
    fn gather_nibbles(self, quarters: u64) -> u16;
    /// Packs the bits of a word that the mask selects, without gaps, into the lowest bits.
    fn extract(self, word: u64, mask: u64) -> u64;
    /// Implements [`Table::contains`](Table::contains) for narrow buckets without a column.
    fn contains_narrow<K: Keys, B: Deref<Target = [u8]>, const COLUMN: bool>(
        table: &Packed<'_, K, B, Self, COLUMN>,
        buckets: Pair,
        fingerprint: Fingerprint,
    ) -> bool;
    /// Prefetches the cache line of the byte at `position`.
    fn prefetch(self, bytes: &[u8], position: usize);
    /// Runs a change in a separate function, which is compiled for these instructions even if the caller is not.
    fn outlined<T: TableMut, C: Change>(self, table: &mut T, change: C) -> C::Output;
}

/// Portable instructions: shifts and masks in safe Rust.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Instructions for Portable {
    #[inline(always)]
    fn spread(self, fields: u64, width: u32) -> u64 {
        // Moves two fields into each half of the word, then one into each quarter.
        let pairs = fields & u64::from(u32::MAX) | fields >> (2 * width) << (2 * QUARTER);
        let mask = ((1 << width) - 1) * HALVES;
        pairs & mask | (pairs >> width & mask) << QUARTER
    }

    #[inline(always)]
    fn gather(self, quarters: u64, width: u32) -> u64 {
        let mask = ((1 << width) - 1) * HALVES;
        let pairs = quarters & mask | (quarters >> QUARTER & mask) << width;
        pairs & u64::from(u32::MAX) | pairs >> (2 * QUARTER) << (2 * width)
    }

    #[inline(always)]
    fn spread_nibbles(self, nibbles: u16) -> u64 {
        let pairs = u64::from(nibbles);
        let pairs = (pairs | pairs << 24) & 0x0000_00ff_0000_00ff;
        (pairs | pairs << 12) << 12 & 0xf000_f000_f000_f000
    }

    #[inline(always)]
    fn gather_nibbles(self, quarters: u64) -> u16 {
        let nibbles = quarters >> 12 & 0x000f_000f_000f_000f;
        let pairs = (nibbles | nibbles >> 12) & 0x0000_00ff_0000_00ff;
        crate::bits::low_quarter(pairs | pairs >> 24)
    }

    /// Moves one run of ones at a time.
    #[inline(always)]
    fn extract(self, word: u64, mut mask: u64) -> u64 {
        let (mut extracted, mut len) = (0, 0);
        while mask != 0 {
            let first = mask.trailing_zeros();
            let ones = (mask >> first).trailing_ones();
            extracted |= (word >> first & u64::MAX >> (u64::BITS - ones)) << len;
            len += ones;
            mask &= mask.wrapping_add(1 << first);
        }
        extracted
    }

    #[inline(always)]
    fn contains_narrow<K: Keys, B: Deref<Target = [u8]>, const COLUMN: bool>(
        table: &Packed<'_, K, B, Self, COLUMN>,
        buckets: Pair,
        fingerprint: Fingerprint,
    ) -> bool {
        table.contains_by_high_parts(buckets, fingerprint)
    }

    /// Reads the byte, because safe Rust has no prefetch. Nothing waits for the result.
    #[inline(always)]
    fn prefetch(self, bytes: &[u8], position: usize) {
        black_box(bytes[position]);
    }

    #[inline(always)]
    fn outlined<T: TableMut, C: Change>(self, table: &mut T, change: C) -> C::Output {
        change.run(table)
    }
}
