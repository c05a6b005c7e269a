//! A shard: a table that holds the items whose stream begins with certain bits.
//!
//! ```text
//! hash ─┬─ bucket, low fingerprint ──▶ which two buckets of the shard
//!       └─ stream ─┬─ prefix ─┬─ upper bits ─┬─ not used
//!                  └ depth    └ stored in a column behind the table
//! ```
//!
//! A shard splits by giving up the first of its upper bits, which says to which half an item belongs; buckets stay as they are.
//! Two halves are joined by the reverse. Both need no hashes. docs/GROWTH.md has the arithmetic.

use super::stream::Window;
use crate::{
    bits::{PADDING, low_half, mask},
    filter::{Located, Occurrences, RawFilter, Store},
    params::TableKind,
    table::{AmongCopies, AnySize, Fingerprint, Geometry, Pair, TableParams, Uniform},
};

/// The parameters of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardParams {
    /// The number of buckets, the same for all shards of a partition.
    pub buckets: u32,
    /// The length of the low fingerprint, which determines the alternate bucket.
    pub low_bits: u8,
    /// The number of upper bits stored above the low fingerprint.
    pub upper_bits: u8,
    /// This many of them, the last ones, are never given up: they keep the rate, and are in the table. The others are in its
    /// column.
    pub spare_bits: u8,
    /// The number of bits of the stream before them: all items of the shard have these in common.
    pub depth: u8,
    pub table: TableKind,
    pub bucket_size: u8,
}

impl ShardParams {
    /// The upper bits, where they are in a fingerprint.
    #[inline]
    pub fn upper(self) -> Window {
        Window::new(self.depth.into(), self.upper_bits.into(), self.low_bits.into())
    }

    /// The upper bits that lookups compare, where they are in a fingerprint.
    #[inline]
    pub fn spare(self) -> Window {
        let before = self.depth + self.upper_bits - self.spare_bits;
        Window::new(before.into(), self.spare_bits.into(), self.low_bits.into())
    }

    /// The length of a table with its padding, in bytes.
    pub fn padded_bytes(&self) -> usize {
        self.table_bytes() + PADDING
    }

    pub fn stored_bits(self) -> u32 {
        u32::from(self.low_bits) + u32::from(self.upper_bits)
    }
}

/// How items are looked up in a generation. Its tables differ in their columns, which lookups do not read: the tables alone are all
/// alike.
#[derive(Clone, Copy)]
pub(crate) struct LookupLayout {
    pub geometry: Geometry,
    /// The upper bits that are compared.
    spare: Window,
}

impl LookupLayout {
    pub fn new(params: &ShardParams) -> Self {
        Self { geometry: Geometry::new(params), spare: params.spare() }
    }

    /// What is looked for, and where.
    #[inline]
    pub fn locate(&self, key: Key) -> Located {
        key.locate(self.spare.of(key.stream))
    }
}

impl TableParams for ShardParams {
    const HAS_COLUMN: bool = true;

    /// The low fingerprint determines it.
    #[inline]
    fn alternate(&self, bucket: u64, fingerprint: Fingerprint) -> u64 {
        let address = AnySize { buckets: self.buckets.into(), fingerprint_bits: self.low_bits.into() };
        address.alternate(bucket, fingerprint.low(address.fingerprint_bits))
    }

    fn table(&self) -> TableKind {
        self.table
    }

    fn fingerprint_bits(&self) -> u32 {
        u32::from(self.low_bits) + u32::from(self.spare_bits)
    }

    fn column_bits(&self) -> u32 {
        u32::from(self.upper_bits) - u32::from(self.spare_bits)
    }

    #[inline]
    fn bucket_size(&self) -> u32 {
        self.bucket_size.into()
    }

    #[inline]
    fn buckets(&self) -> u64 {
        self.buckets.into()
    }

    /// Splitting the shard gives up upper bits, until only these are left.
    fn low_bits(&self) -> Option<Fingerprint> {
        if self.upper_bits > 0 { Fingerprint::new((1 << self.low_bits) - 1) } else { None }
    }
}

/// A table of items whose stream begins with the same bits.
pub(crate) type Shard<'a> = RawFilter<&'a [u8], ShardParams>;

/// The same, to be changed.
pub(crate) type ShardMut<'a> = RawFilter<&'a mut [u8], ShardParams>;

/// What a partition knows of an item: enough to find it in any of its shards.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    pub buckets: Pair,
    low: Fingerprint,
    /// The bits of its stream. Those that are not known are 0.
    pub stream: u64,
}

impl Key {
    /// Of no item.
    pub const NONE: Self = Self { buckets: (0, 0), low: Fingerprint::ONE, stream: 0 };

    /// The key of a hash with this stream, in a partition with this addressing.
    #[inline]
    pub fn new(address: &AnySize, stream: u64, hash: Uniform) -> Self {
        let (buckets, low) = address.buckets(hash);
        Self { buckets, low, stream }
    }

    pub fn of_parts(buckets: Pair, low: Fingerprint, stream: u64) -> Self {
        Self { buckets, low, stream }
    }

    /// The key of an item with this fingerprint in a shard, to which the stream leads with `prefix`.
    pub fn of_stored(params: &ShardParams, prefix: u64, bucket: u64, fingerprint: Fingerprint) -> Self {
        let known = prefix << params.upper_bits | fingerprint.wide() >> params.low_bits;
        let stream = known << 1 << (63 - u32::from(params.depth) - u32::from(params.upper_bits));
        let buckets = (bucket, params.alternate(bucket, fingerprint));
        Self { buckets, low: fingerprint.low(params.low_bits.into()), stream }
    }

    /// What a shard with these upper bits stores of the item.
    #[inline]
    pub fn fingerprint(self, upper: Window) -> Fingerprint {
        self.low.with(upper.of(self.stream))
    }

    /// Where a shard keeps the item, of whose upper bits these are stored or compared.
    #[inline]
    pub fn locate(self, upper: u64) -> Located {
        Located::new(self.buckets, self.low.with(upper))
    }

    /// Inserts the item into a shard with these parameters and upper bits.
    #[inline]
    pub fn store(self, params: &ShardParams, upper: Window) -> Store<'_, ShardParams> {
        Store { params, buckets: self.buckets, fingerprint: self.fingerprint(upper), among_copies: AmongCopies::GoOn }
    }

    /// The low fingerprint, and above it the first bits of the stream, as many as a shard of depth 0 with these parameters stores: all
    /// that a generation knows of the item besides its buckets, in whichever shard it is.
    pub fn known(self, whole: &ShardParams) -> u64 {
        let bits = self.stream >> 1 >> (63 - u32::from(whole.upper_bits));
        self.low.wide() | bits << whole.low_bits
    }

    /// The reverse: the key of an item of which this is known, and one of its buckets. None if there is no such item.
    pub fn of_known(whole: &ShardParams, bucket: u64, known: u64) -> Option<Self> {
        let low = Fingerprint::new(low_half(known & mask(whole.low_bits.into())))?;
        let stream = known >> whole.low_bits << 1 << (63 - u32::from(whole.upper_bits));
        (bucket < whole.buckets()).then(|| Self { buckets: (bucket, whole.alternate(bucket, low)), low, stream })
    }

    /// The copies of the item in a shard with these upper bits.
    pub fn copies(self, upper: Window) -> Occurrences {
        Occurrences { buckets: self.buckets, fingerprint: self.fingerprint(upper) }
    }
}
