//! A shard: a table of the items whose streams begin with the same bits, the shard's prefix.
//!
//! ```text
//! hash ─┬─ bucket, low fingerprint ──▶ which two buckets of the shard
//!       └─ stream ─┬─ prefix ─┬─ upper bits ─┬─ not used
//!                  └ depth    └ spare bits stored in the table, the others in a column behind it
//! ```
//!
//! A shard splits by giving up the first upper bit of each item, which selects one of the two halves; buckets stay the same.
//! Merging two halves is the reverse. Neither needs hashes. docs/GROWTH.md has the arithmetic.

use super::stream::Window;
use crate::{
    bits::{PADDING, low_half, mask},
    filter::{Content, Located, Occurrences, RawFilter, Store},
    params::TableKind,
    table::{AnySize, CopyPolicy, Fingerprint, Geometry, Pair, TableParams, Uniform},
};

/// The parameters of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardParams {
    /// The number of buckets, the same for all shards of a partition.
    pub buckets: u32,
    /// The length of the low fingerprint, which determines the alternate bucket.
    pub low_bits: u8,
    /// The number of upper bits: the stream bits that are stored above the low fingerprint.
    pub upper_bits: u8,
    /// The number of spare bits: the last upper bits, which are never given up and keep the false-positive rate. They are in the
    /// table; the other upper bits are in its column.
    pub spare_bits: u8,
    /// The length of the prefix: the first bits of the stream, which all items of the shard share.
    pub depth: u8,
    pub table: TableKind,
    pub bucket_size: u8,
}

impl ShardParams {
    /// Returns the window of the upper bits, at their position in a fingerprint.
    #[inline]
    pub fn upper(self) -> Window {
        Window::new(self.depth.into(), self.upper_bits.into(), self.low_bits.into())
    }

    /// Returns the window of the spare bits, at their position in a fingerprint. Lookups compare them.
    #[inline]
    pub fn spare(self) -> Window {
        let before = self.depth + self.upper_bits - self.spare_bits;
        Window::new(before.into(), self.spare_bits.into(), self.low_bits.into())
    }

    /// Returns the bytes of a table with its padding.
    pub fn padded_bytes(&self) -> usize {
        self.table_bytes() + PADDING
    }

    /// Returns the length of a fingerprint in bits: low fingerprint and upper bits.
    pub fn stored_bits(self) -> u32 {
        u32::from(self.low_bits) + u32::from(self.upper_bits)
    }
}

/// The layout that lookups use for all tables of a generation. Only the columns differ between depths, and lookups do not read
/// them.
#[derive(Clone, Copy)]
pub(crate) struct LookupLayout {
    pub geometry: Geometry,
    /// The spare bits, which lookups compare.
    spare: Window,
}

impl LookupLayout {
    pub fn new(params: &ShardParams) -> Self {
        Self { geometry: Geometry::new(params), spare: params.spare() }
    }

    /// Returns the fingerprint and buckets to look up for `key`.
    #[inline]
    pub fn locate(&self, key: Key) -> Located {
        key.locate(self.spare.extract(key.stream))
    }
}

impl TableParams for ShardParams {
    const HAS_COLUMN: bool = true;

    /// Returns the alternate bucket, which depends on the low fingerprint alone.
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

    /// Returns the mask of the low fingerprint, since that is never 0; `None` if there are no upper bits above it.
    fn nonzero_mask(&self) -> Option<Fingerprint> {
        if self.upper_bits > 0 { Fingerprint::new((1 << self.low_bits) - 1) } else { None }
    }
}

/// A shard that can be read.
pub(crate) type Shard<'a> = RawFilter<&'a [u8], ShardParams>;

/// A shard that can be changed.
pub(crate) type ShardMut<'a> = RawFilter<&'a mut [u8], ShardParams>;

impl Shard<'_> {
    /// Adds all copies in a table to the content of a partition whose first generation is `whole`, undivided.
    pub fn add_to(&self, content: &mut Content, whole: &ShardParams, prefix: u64) {
        self.each_fingerprint(|bucket, fingerprint| {
            Key::from_stored(self.params(), prefix, bucket, fingerprint).add_to(content, whole, 1);
            true
        });
    }
}

/// The bits that a partition derives from an item's hash, or knows of a stored item. They locate it in a shard of any depth.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    pub buckets: Pair,
    low: Fingerprint,
    /// The item's stream. Unknown bits are 0.
    pub stream: u64,
}

impl Key {
    /// A placeholder that represents no item.
    pub const NONE: Self = Self { buckets: (0, 0), low: Fingerprint::ONE, stream: 0 };

    /// Returns the key of a hash with this stream, in a partition with this addressing.
    #[inline]
    pub fn new(address: &AnySize, stream: u64, hash: Uniform) -> Self {
        let (buckets, low) = address.buckets(hash);
        Self { buckets, low, stream }
    }

    pub fn from_parts(buckets: Pair, low: Fingerprint, stream: u64) -> Self {
        Self { buckets, low, stream }
    }

    /// Returns the key of an item whose fingerprint is stored in `bucket` of the shard with this prefix.
    pub fn from_stored(params: &ShardParams, prefix: u64, bucket: u64, fingerprint: Fingerprint) -> Self {
        let known = prefix << params.upper_bits | fingerprint.wide() >> params.low_bits;
        let stream = known << 1 << (63 - u32::from(params.depth) - u32::from(params.upper_bits));
        let buckets = (bucket, params.alternate(bucket, fingerprint));
        Self { buckets, low: fingerprint.low(params.low_bits.into()), stream }
    }

    /// Returns the fingerprint that a shard with this window of upper bits stores.
    #[inline]
    pub fn fingerprint(self, upper: Window) -> Fingerprint {
        self.low.with(upper.extract(self.stream))
    }

    /// Returns the item's buckets and its low fingerprint with `upper` above it.
    #[inline]
    pub fn locate(self, upper: u64) -> Located {
        Located::new(self.buckets, self.low.with(upper))
    }

    /// Returns the operation that inserts the item into a shard with these parameters and this window of upper bits.
    #[inline]
    pub fn store(self, params: &ShardParams, upper: Window) -> Store<'_, ShardParams> {
        Store { params, buckets: self.buckets, fingerprint: self.fingerprint(upper), among_copies: CopyPolicy::Continue }
    }

    /// Returns all bits that a generation knows of the item besides its buckets: the low fingerprint, and above it the first bits
    /// of the stream, as many as a shard of depth 0, with parameters `whole`, stores. They do not depend on the item's shard.
    pub fn known_bits(self, whole: &ShardParams) -> u64 {
        let bits = self.stream >> 1 >> (63 - u32::from(whole.upper_bits));
        self.low.wide() | bits << whole.low_bits
    }

    /// Adds copies of the item to the content of a partition whose first generation is `whole`, undivided.
    pub fn add_to(self, content: &mut Content, whole: &ShardParams, copies: u32) {
        content.add(self.buckets.0.min(self.buckets.1), self.known_bits(whole), copies);
    }

    /// Returns the key of the item with these [`known_bits`](Self::known_bits) and this bucket, or `None` if no item has them.
    pub fn from_known_bits(whole: &ShardParams, bucket: u64, known: u64) -> Option<Self> {
        let low = Fingerprint::new(low_half(known & mask(whole.low_bits.into())))?;
        let stream = known >> whole.low_bits << 1 << (63 - u32::from(whole.upper_bits));
        (bucket < whole.buckets()).then(|| Self { buckets: (bucket, whole.alternate(bucket, low)), low, stream })
    }

    /// Returns the operation that counts the item's copies in a shard with this window of upper bits.
    pub fn occurrences(self, upper: Window) -> Occurrences {
        Occurrences { buckets: self.buckets, fingerprint: self.fingerprint(upper) }
    }
}
