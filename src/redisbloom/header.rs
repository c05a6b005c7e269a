//! The first chunk: the numbers of a filter.

use core::ops::Deref;

use crate::{
    bits::wide,
    snapshot::{SnapshotError, SnapshotErrorKind as Kind},
};

/// The length of the first chunk. Some versions of RedisBloom do not pack it, and add two bytes of padding.
pub(super) const HEADER_BYTES: usize = 38;
pub(super) const UNPACKED_BYTES: usize = 40;

/// RedisBloom computes places in a sub-filter in 32 bits, and finds nothing in larger ones.
pub(super) const MOST_SLOTS: u64 = 1 << 32;

/// The most slots of a bucket: RedisBloom looks into so many.
const MOST_BUCKET_SIZE: u16 = 255;

/// The most sub-filters: RedisBloom has 16 bits for their number.
const MOST_FILTERS: u64 = (1 << 16) - 1;

// The offsets of the fields.
const ITEMS_AT: usize = 0;
const BUCKETS_AT: usize = 8;
const DELETED_AT: usize = 16;
const FILTERS_AT: usize = 24;
const BUCKET_SIZE_AT: usize = 32;
const MAX_ITERATIONS_AT: usize = 34;
const EXPANSION_AT: usize = 36;

/// The error for a first chunk of the wrong length.
pub(super) fn not_as_long(given: u64, offset: u64) -> SnapshotError {
    let words = "the first chunk has {} bytes, but RedisBloom's has {} or {}";
    SnapshotError::new(Kind::Length, offset, words, [given, wide(HEADER_BYTES), wide(UNPACKED_BYTES)])
}

/// The numbers of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    fields: Fields,
    /// The fields as a chunk, which can so be given away without an allocation.
    bytes: [u8; HEADER_BYTES],
}

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) items: u64,
    /// Buckets of the first sub-filter, a power of two.
    pub(super) buckets: u64,
    pub(super) deleted: u64,
    /// The number of sub-filters.
    pub(super) filters: u64,
    pub(super) bucket_size: u16,
    pub(super) max_iterations: u16,
    /// How many times as many buckets each sub-filter has as the one before: a power of two, or 0 if there is only one.
    pub(super) expansion: u16,
}

impl Header {
    /// Reads and validates the first chunk, which begins at this offset.
    pub(super) fn decode(bytes: &[u8], offset: u64) -> Result<Self, SnapshotError> {
        if bytes.len() != HEADER_BYTES && bytes.len() != UNPACKED_BYTES {
            return Err(not_as_long(wide(bytes.len()), offset));
        }
        let word = |at: usize| bytes[at..at + 8].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let fields = Fields {
            items: word(ITEMS_AT),
            buckets: word(BUCKETS_AT),
            deleted: word(DELETED_AT),
            filters: word(FILTERS_AT),
            bucket_size: half(BUCKET_SIZE_AT),
            max_iterations: half(MAX_ITERATIONS_AT),
            expansion: half(EXPANSION_AT),
        };
        match fields.refused() {
            None => Ok(Self::new(fields)),
            Some((at, words, numbers)) => Err(SnapshotError::new(Kind::Parameter, offset + wide(at), words, numbers)),
        }
    }

    /// The header with these fields, which RedisBloom could have.
    pub(super) fn new(fields: Fields) -> Self {
        Self { fields, bytes: fields.encode() }
    }

    /// Changes the fields.
    pub(super) fn update(&mut self, change: impl FnOnce(&mut Fields)) {
        change(&mut self.fields);
        self.bytes = self.fields.encode();
    }

    /// The first chunk.
    pub(super) fn bytes(&self) -> &[u8; HEADER_BYTES] {
        &self.bytes
    }
}

impl Deref for Header {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        &self.fields
    }
}

impl Fields {
    /// Where something is wrong, and what: words, and the numbers in their gaps.
    fn refused(&self) -> Option<(usize, &'static str, [u64; 2])> {
        let Self { buckets, filters, bucket_size, expansion, .. } = *self;
        if !buckets.is_power_of_two() {
            return Some((BUCKETS_AT, "{} buckets, but RedisBloom's number is a power of two", [buckets, 0]));
        }
        if bucket_size == 0 || bucket_size > MOST_BUCKET_SIZE {
            let words = "buckets of {} slots, but they have 1 to {}";
            return Some((BUCKET_SIZE_AT, words, [bucket_size.into(), MOST_BUCKET_SIZE.into()]));
        }
        if filters == 0 || filters > MOST_FILTERS {
            return Some((FILTERS_AT, "{} sub-filters, but there are 1 to {}", [filters, MOST_FILTERS]));
        }
        if !expansion.is_power_of_two() && (expansion > 0 || filters > 1) {
            let words = "expansion {}, but it is a power of two, or 0 for a filter that does not grow";
            return Some((EXPANSION_AT, words, [expansion.into(), 0]));
        }
        // The last sub-filter is the largest.
        if self.slots(filters - 1).is_none() {
            let words = "sub-filter {} has more than {} slots, more than RedisBloom can use";
            return Some((FILTERS_AT, words, [filters, MOST_SLOTS]));
        }
        None
    }

    /// The number of slots of a sub-filter, counted from 0, or `None` if there are more than RedisBloom can use.
    pub(super) fn slots(&self, filter: u64) -> Option<u64> {
        let growth = u64::from(self.expansion).checked_pow(if filter > 0 { u32::try_from(filter).ok()? } else { 0 })?;
        let slots = self.buckets.checked_mul(growth)?.checked_mul(self.bucket_size.into())?;
        (slots <= MOST_SLOTS).then_some(slots)
    }

    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        for (at, word) in
            [(ITEMS_AT, self.items), (BUCKETS_AT, self.buckets), (DELETED_AT, self.deleted), (FILTERS_AT, self.filters)]
        {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        for (at, half) in
            [(BUCKET_SIZE_AT, self.bucket_size), (MAX_ITERATIONS_AT, self.max_iterations), (EXPANSION_AT, self.expansion)]
        {
            bytes[at..at + 2].copy_from_slice(&half.to_le_bytes());
        }
        bytes
    }
}
