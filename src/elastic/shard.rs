//! A shard: a table that holds the items whose stream begins with certain bits.
//!
//! ```text
//! hash ─┬─ bucket, low fingerprint ──▶ which two buckets of the shard
//!       └─ stream ─┬─ lane ─┬─ prefix ─┬─ upper bits ─┬─ not used
//!                  └ lane bits └ depth    └ stored above the low fingerprint
//! ```
//!
//! A shard splits by giving up the first of its upper bits, which says to which half an item belongs; buckets stay as they are.
//! Two halves are joined by the reverse. Both need no hashes. docs/GROWTH.md has the arithmetic.

use crate::{
    bits::{index, low_half},
    filter::{Located, RawFilter},
    params::TableKind,
    storage::{OutOfMemory, Owned},
    table::{Address, Fingerprint, Pair, Placement, TableParams, Uniform},
};

/// Spreads the bits of a hash that bucket and low fingerprint leave unused over a whole word, the stream: 2⁶⁴ divided by √2, made
/// odd. (Not the multiplier of the addressing, so that the two stay independent.)
const STREAM: u64 = 0xb504_f333_f9de_6485;

/// The stream of a hash: the bits that choose its lane and its shard, and become its upper bits.
#[inline]
pub(crate) fn stream(Uniform(hash): Uniform) -> u64 {
    hash.wrapping_mul(STREAM)
}

/// Which bits of a stream to take, and where to put them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    shift: u8,
    mask: u32,
}

impl Window {
    /// The `bits` bits that follow the first `skipped` ones, with `below` zeros below them.
    pub(crate) fn new(skipped: u32, bits: u32, below: u32) -> Self {
        let mask = ((1_u64 << bits) - 1) << below;
        #[expect(clippy::cast_possible_truncation, reason = "64 at most")]
        Self { shift: (64 - skipped - bits - below) as u8, mask: low_half(mask) }
    }

    #[inline]
    pub(crate) fn of(self, stream: u64) -> u64 {
        // A shift by 64 wraps; then there are no bits to take, and the mask is empty.
        stream.wrapping_shr(self.shift.into()) & u64::from(self.mask)
    }
}

/// The parameters of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardParams {
    /// The number of buckets, the same for all shards of a lane.
    pub(crate) buckets: u32,
    /// The length of the low fingerprint, which determines the alternate bucket.
    pub(crate) low_bits: u8,
    /// The number of upper bits stored above the low fingerprint.
    pub(crate) upper_bits: u8,
    /// The number of bits of the stream before them: all items of the shard have these in common.
    pub(crate) known_bits: u8,
    pub(crate) table: TableKind,
    pub(crate) bucket_size: u8,
}

impl ShardParams {
    /// The parameters of the halves, or `None` if there is no upper bit left to tell them apart.
    pub(crate) fn half(self) -> Option<Self> {
        Some(Self { upper_bits: self.upper_bits.checked_sub(1)?, known_bits: self.known_bits + 1, ..self })
    }

    /// The parameters of the shard of which this one is a half.
    fn whole(self) -> Self {
        Self { upper_bits: self.upper_bits + 1, known_bits: self.known_bits - 1, ..self }
    }

    /// The upper bits, where they are in a fingerprint.
    #[inline]
    pub(crate) fn upper(self) -> Window {
        Window::new(self.known_bits.into(), self.upper_bits.into(), self.low_bits.into())
    }

    fn stored_bits(self) -> u32 {
        u32::from(self.low_bits) + u32::from(self.upper_bits)
    }
}

/// Where a shard keeps an item.
#[derive(Clone, Copy)]
pub(crate) struct ShardPlacement {
    /// The placement of the low fingerprint.
    address: Address,
    low_bits: u32,
    upper: Window,
}

impl Placement for ShardPlacement {
    #[inline]
    fn buckets(&self, hash: Uniform) -> (Pair, Fingerprint) {
        let (buckets, low) = self.address.buckets(hash);
        (buckets, low.with(self.upper.of(stream(hash))))
    }

    #[inline]
    fn alternate(&self, bucket: u64, fingerprint: Fingerprint) -> u64 {
        self.address.alternate(bucket, fingerprint.low(self.low_bits))
    }

    #[cfg(x86_kernels)]
    fn plain(&self) -> Option<&Address> {
        None
    }
}

impl TableParams for ShardParams {
    type Placement = ShardPlacement;

    #[inline]
    fn placement(&self) -> ShardPlacement {
        let low_bits = self.low_bits.into();
        ShardPlacement { address: Address::any_size(self.buckets.into(), low_bits), low_bits, upper: self.upper() }
    }

    fn table(&self) -> TableKind {
        self.table
    }

    fn fingerprint_bits(&self) -> u32 {
        self.stored_bits()
    }

    #[inline]
    fn bucket_size(&self) -> u32 {
        self.bucket_size.into()
    }

    #[inline]
    fn buckets(&self) -> u64 {
        self.buckets.into()
    }
}

/// A table of items whose stream begins with the same bits.
pub(crate) type Shard = RawFilter<Owned, ShardParams>;

/// What a lane knows of an item: enough to find it in any of its shards.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    buckets: Pair,
    low: Fingerprint,
    /// The bits of its stream. Those that are not known are 0.
    pub(crate) stream: u64,
}

impl Key {
    /// The key of a hash with this stream, in a lane with this addressing.
    #[inline]
    pub(crate) fn new(address: &Address, stream: u64, hash: Uniform) -> Self {
        let (buckets, low) = address.buckets(hash);
        Self { buckets, low, stream }
    }

    /// The key of an item with this fingerprint in a shard, to which the stream leads with `prefix`, the last bits before the
    /// upper ones.
    pub(crate) fn of_stored(shard: &Shard, prefix: u64, bucket: u64, fingerprint: Fingerprint) -> Self {
        let (params, placement) = (shard.params(), shard.params().placement());
        let known = prefix << params.upper_bits | fingerprint.wide() >> params.low_bits;
        let stream = known << 1 << (63 - u32::from(params.known_bits) - u32::from(params.upper_bits));
        let buckets = (bucket, placement.alternate(bucket, fingerprint));
        Self { buckets, low: fingerprint.low(params.low_bits.into()), stream }
    }

    /// Where a shard with these upper bits keeps the item.
    #[inline]
    pub(crate) fn locate(self, upper: Window) -> Located {
        Located::new(self.buckets, self.low.with(upper.of(self.stream)))
    }

    /// Stores the item in a shard with these upper bits. Returns false, and changes nothing, if there is no room.
    #[inline]
    pub(crate) fn insert_into(self, shard: &mut Shard, upper: Window) -> bool {
        shard.insert_fingerprint(self.buckets, self.low.with(upper.of(self.stream)))
    }
}

/// Splits a shard by the first of its upper bits, which is 0 in the first half and 1 in the second. The halves have as many
/// buckets as the shard, and each item is where it was. `None` if no upper bit is left.
pub(crate) fn split(shard: &Shard) -> Result<Option<[Shard; 2]>, OutOfMemory> {
    let Some(half) = shard.params().half() else { return Ok(None) };
    let new = || Ok(Shard::new(half)?.with_dispatch(shard.dispatch()));
    let mut halves = [new()?, new()?];
    let first_upper_bit = half.stored_bits();
    for (bit, half) in halves.iter_mut().enumerate() {
        let is_complete = half.receive(shard, |fingerprint| {
            (index(fingerprint.wide() >> first_upper_bit) == bit).then(|| fingerprint.low(first_upper_bit))
        });
        debug_assert!(is_complete, "a bucket of a half never has more items than that of the whole");
    }
    Ok(Some(halves))
}

/// Joins two halves. `None` if their items do not fit into one table.
pub(crate) fn join(halves: [&Shard; 2]) -> Result<Option<Shard>, OutOfMemory> {
    let half = halves[0].params();
    let mut whole = Shard::new(half.whole())?.with_dispatch(halves[0].dispatch());
    for (bit, half) in (0..).zip(halves) {
        let stored_bits = half.params().stored_bits();
        if !whole.receive(half, |fingerprint| Some(fingerprint.with(bit << stored_bits))) {
            return Ok(None);
        }
    }
    Ok(Some(whole))
}
