//! A shard: a table of the items whose streams begin with the same bits, the shard's prefix.
//!
//! ```text
//! hash ─┬─ bucket, low fingerprint ──▶ which two buckets of the shard
//!       └─ stream ─┬─ prefix ─┬─ upper bits ─┬─ not used
//!                  └ depth    └ in a column behind the table
//! ```
//!
//! A shard splits by giving up the first upper bit of each item, which selects one of the two halves; buckets stay the same.
//! Merging two halves is the reverse. Neither needs hashes. docs/GROWTH.md has the arithmetic.

use super::stream::Window;
use crate::{
    bits::{PADDING, mask},
    filter::{Content, Located, RawFilter},
    params::TableKind,
    table::{AnySize, CopyPolicy, Fingerprint, Insertion, Pair, TableParams, Uniform},
};

/// The number of slots in a bucket. Growing filters have packed tables only.
pub(crate) const BUCKET_SIZE: u32 = 4;

/// The most upper bits of a shard: the longest field of a column.
pub(crate) const MAX_UPPER_BITS: u8 = 32;

/// The parameters of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardParams {
    /// The number of buckets, the same for all shards of a generation.
    pub buckets: u32,
    /// The length of the low fingerprint, which determines the alternate bucket. It is in the table, and lookups compare it.
    pub low_bits: u8,
    /// The number of upper bits: the stream bits that are stored in the column.
    pub upper_bits: u8,
    /// The length of the prefix: the first bits of the stream, which all items of the shard share.
    pub depth: u8,
}

impl ShardParams {
    /// Returns the range of the stream's bits that are stored.
    #[inline]
    pub fn upper(self) -> Upper {
        Upper { bits: Window::new(self.depth.into(), self.upper_bits.into()), low_bits: self.low_bits }
    }

    /// Returns the bytes of a table with its padding.
    pub fn padded_bytes(self) -> usize {
        self.table_bytes() + PADDING
    }

    /// Returns the length of a fingerprint in bits: low fingerprint and upper bits.
    pub fn stored_bits(self) -> u32 {
        u32::from(self.low_bits) + u32::from(self.upper_bits)
    }
}

/// The stream bits that a shard stores, and their position in a fingerprint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upper {
    bits: Window,
    low_bits: u8,
}

impl Upper {
    /// Returns these bits of a stream, at their position in a fingerprint.
    #[inline]
    pub fn extract(self, stream: u64) -> u64 {
        self.bits.extract(stream) << self.low_bits
    }
}

impl TableParams for ShardParams {
    type Slot = u64;
    type Slots = [u64; 4];
    const EMPTY_SLOTS: Self::Slots = [0; 4];
    const HAS_COLUMN: bool = true;

    /// Returns the alternate bucket, which depends on the low fingerprint alone.
    #[inline]
    fn alternate(&self, bucket: u64, fingerprint: Fingerprint) -> u64 {
        let address = AnySize { buckets: self.buckets.into(), fingerprint_bits: self.low_bits.into() };
        address.alternate(bucket, fingerprint.low(address.fingerprint_bits))
    }

    fn table(&self) -> TableKind {
        TableKind::Packed
    }

    fn fingerprint_bits(&self) -> u32 {
        self.low_bits.into()
    }

    fn column_bits(&self) -> u32 {
        self.upper_bits.into()
    }

    #[inline]
    fn bucket_size(&self) -> u32 {
        BUCKET_SIZE
    }

    #[inline]
    fn buckets(&self) -> u64 {
        self.buckets.into()
    }

    /// Returns the mask of the low fingerprint, since that is never 0; `None` if there are no upper bits above it.
    fn nonzero_mask(&self) -> Option<Fingerprint> {
        if self.upper_bits > 0 { Fingerprint::new(mask(self.low_bits.into())) } else { None }
    }
}

/// A shard that can be read.
pub(crate) type Shard<'a> = RawFilter<&'a [u8], ShardParams>;

/// A shard that can be changed.
pub(crate) type ShardMut<'a> = RawFilter<&'a mut [u8], ShardParams>;

impl Shard<'_> {
    /// Calls `act` with each different item of the shard with this prefix, and with the number of its copies, until it returns an
    /// error.
    pub fn each_item<E>(&self, prefix: u64, act: &mut dyn FnMut(Key, u32) -> Result<(), E>) -> Result<(), E> {
        let mut result = Ok(());
        self.each_class(&mut |(bucket, _), fingerprint, copies| {
            result = act(Key::from_stored(*self.params(), prefix, bucket, fingerprint), copies);
            result.is_ok()
        });
        result
    }
}

/// The bits that a partition derives from an item's hash, or knows of a stored item. They locate it in a shard of any depth.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    pub buckets: Pair,
    pub low: Fingerprint,
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

    /// Returns the key of an item whose fingerprint is stored in `bucket` of the shard with this prefix.
    pub fn from_stored(params: ShardParams, prefix: u64, bucket: u64, fingerprint: Fingerprint) -> Self {
        let known = prefix << params.upper_bits | fingerprint.wide() >> params.low_bits;
        let stream = known << 1 << (63 - u32::from(params.depth) - u32::from(params.upper_bits));
        let buckets = (bucket, params.alternate(bucket, fingerprint));
        Self { buckets, low: fingerprint.low(params.low_bits.into()), stream }
    }

    /// Returns the fingerprint that a shard with this window of upper bits stores.
    #[inline]
    pub fn fingerprint(self, upper: Upper) -> Fingerprint {
        self.low.with(upper.extract(self.stream))
    }

    /// Returns the item's buckets and its low fingerprint with `upper` above it.
    #[inline]
    pub fn locate(self, upper: u64) -> Located {
        Located::new(self.buckets, self.low.with(upper))
    }

    /// Returns the operation that inserts the item into a shard with these parameters and this window of upper bits.
    #[inline]
    pub fn insertion(
        self,
        params: &ShardParams,
        upper: Upper,
        copy_policy: CopyPolicy,
    ) -> Insertion<'_, ShardParams, impl FnOnce(&ShardParams) -> (Pair, Fingerprint)> {
        let (buckets, fingerprint) = (self.buckets, self.fingerprint(upper));
        Insertion { params, locate: move |_: &ShardParams| (buckets, fingerprint), copy_policy }
    }

    /// Returns the first bits of the stream, as many as a shard of depth 0, with parameters `whole`, stores.
    pub fn known_stream(self, whole: ShardParams) -> u64 {
        self.stream >> 1 >> (63 - u32::from(whole.upper_bits))
    }

    /// Adds copies of the item to the content of a partition whose first generation is `whole`, undivided: all that this one
    /// knows of the item, whatever its shard.
    pub fn add_to(self, content: &mut Content, whole: ShardParams, copies: u32) {
        let known = self.low.wide() | self.known_stream(whole) << whole.low_bits;
        content.add(self.buckets.0.min(self.buckets.1), known, copies);
    }
}
