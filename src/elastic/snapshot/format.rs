//! The layout of the header and of a shard's record, and their validation.

use super::super::{ElasticParams, stream::Shares};
use crate::{
    bits::wide,
    hash::HasherId,
    params::TableKind,
    snapshot::{Checksum, FORMAT_VERSION, GROWING, MAGIC, SnapshotError, SnapshotErrorKind as Kind, checksum, not_a_snapshot},
};

// Each field begins where the previous one ends. Up to the seed they are where those of other snapshots are.
const VERSION_AT: usize = 8;
const TABLE_AT: usize = 10;
const LOW_BITS_AT: usize = 11;
const BUCKET_SIZE_AT: usize = 12;
const LANE_BITS_AT: usize = 13;
pub(super) const HASHER_AT: usize = 14;
const SEED_AT: usize = 16;
const BUCKETS_AT: usize = 24;
const LEAST_DEPTH_AT: usize = 28;
const MOST_DEPTH_AT: usize = 29;
const SPARE_BITS_AT: usize = 30;
const STAGGERED_AT: usize = 31;
const CAPACITY_AT: usize = 32;
const MAX_CAPACITY_AT: usize = 40;
const RATE_AT: usize = 48;
/// Where other snapshots have it, too.
const CHECKSUM_AT: usize = 56;
pub(super) const HEADER_BYTES: usize = 64;

/// The header of a lane's section, and what the list says of a shard.
pub(super) const SECTION_BYTES: usize = 32;
pub(super) const RECORD_BYTES: usize = 24;

/// The checksum of all sections' checksums, which also lets a reader fetch eight bytes from wherever a field begins.
pub(super) const TRAILER_BYTES: usize = 8;

/// Tables begin at multiples of this.
const TABLE_ALIGNMENT: usize = 8;

/// A validated header.
pub(super) struct Header {
    pub(super) params: ElasticParams,
    pub(super) hasher: HasherId,
}

impl Header {
    /// Encodes the header. Also returns its checksum.
    pub(super) fn encode(&self) -> ([u8; HEADER_BYTES], u64) {
        let mut bytes = [0; HEADER_BYTES];
        let params = &self.params;
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, VERSION_AT, FORMAT_VERSION.to_le_bytes());
        put(&mut bytes, TABLE_AT, [GROWING + u8::from(params.table == TableKind::Packed)]);
        put(&mut bytes, LOW_BITS_AT, [params.low_bits]);
        put(&mut bytes, BUCKET_SIZE_AT, [params.bucket_size]);
        put(&mut bytes, LANE_BITS_AT, [params.shares.lane_bits()]);
        put(&mut bytes, HASHER_AT, self.hasher.number().to_le_bytes());
        put(&mut bytes, SEED_AT, params.seed.to_le_bytes());
        put(&mut bytes, BUCKETS_AT, params.buckets.to_le_bytes());
        put(&mut bytes, LEAST_DEPTH_AT, [params.least_depth]);
        put(&mut bytes, MOST_DEPTH_AT, [params.most_depth]);
        put(&mut bytes, SPARE_BITS_AT, [params.spare_bits]);
        put(&mut bytes, STAGGERED_AT, [u8::from(params.shares.is_staggered())]);
        put(&mut bytes, CAPACITY_AT, params.capacity.to_le_bytes());
        put(&mut bytes, MAX_CAPACITY_AT, params.max_capacity.to_le_bytes());
        put(&mut bytes, RATE_AT, params.false_positive_rate.to_le_bytes());
        let checksum = checksum(&bytes[..CHECKSUM_AT], 0);
        put(&mut bytes, CHECKSUM_AT, checksum.to_le_bytes());
        (bytes, checksum)
    }

    /// Validates the header. Also returns its checksum.
    pub(super) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<(Self, u64), SnapshotError> {
        if take(bytes, 0) != MAGIC {
            return Err(not_a_snapshot());
        }
        let version = u16::from_le_bytes(take(bytes, VERSION_AT));
        if version != FORMAT_VERSION {
            let words = "a snapshot of version {}, but this release reads version {}";
            return Err(SnapshotError::new(Kind::Version, wide(VERSION_AT), words, [version.into(), FORMAT_VERSION.into()]));
        }
        let byte = |at| take::<1>(bytes, at)[0];
        let number = |at| u64::from_le_bytes(take(bytes, at));
        let (stored, computed) = (number(CHECKSUM_AT), checksum(&bytes[..CHECKSUM_AT], 0));
        if stored != computed {
            return Err(SnapshotError::altered(Kind::HeaderChecksum, wide(CHECKSUM_AT), "header", stored, computed));
        }
        let table = match byte(TABLE_AT) {
            GROWING => TableKind::Single,
            kind if kind == GROWING + 1 => TableKind::Packed,
            other => return Err(wrong_kind(other)),
        };
        let is_staggered = match byte(STAGGERED_AT) {
            flag @ (0 | 1) => flag == 1,
            other => return Err(parameter(STAGGERED_AT, "staggered {}: 0 is no, 1 is yes", [other.into()])),
        };
        let params = ElasticParams {
            capacity: number(CAPACITY_AT),
            max_capacity: number(MAX_CAPACITY_AT),
            false_positive_rate: f64::from_le_bytes(take(bytes, RATE_AT)),
            seed: number(SEED_AT),
            buckets: u32::from_le_bytes(take(bytes, BUCKETS_AT)),
            low_bits: byte(LOW_BITS_AT),
            table,
            bucket_size: byte(BUCKET_SIZE_AT),
            shares: Shares::new(byte(LANE_BITS_AT), is_staggered),
            least_depth: byte(LEAST_DEPTH_AT),
            most_depth: byte(MOST_DEPTH_AT),
            spare_bits: byte(SPARE_BITS_AT),
        };
        let params = params.checked().map_err(|what| parameter(LOW_BITS_AT, what, []))?;
        let header = Self { params, hasher: HasherId::from_number(u16::from_le_bytes(take(bytes, HASHER_AT))) };
        Ok((header, stored))
    }
}

fn wrong_kind(kind: u8) -> SnapshotError {
    if kind < GROWING {
        let error = SnapshotError::new(Kind::OtherType, wide(TABLE_AT), "this is a filter of fixed size", []);
        return error.with_remedy("read it with CuckooFilter or FilterView");
    }
    parameter(TABLE_AT, "table kind {}: 2 is growing and single, 3 is growing and packed", [kind.into()])
}

/// The header of a lane's section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) items: u64,
    pub(super) shards: u64,
    /// The length of the list and the tables that follow.
    pub(super) length: u64,
}

impl Section {
    /// Encodes the header of the lane with this number, for this list. Also returns its checksum.
    pub(super) fn encode(
        &self,
        list: impl Iterator<Item = Record>,
        lane: u64,
        header_checksum: u64,
    ) -> ([u8; SECTION_BYTES], u64) {
        let mut bytes = [0; SECTION_BYTES];
        put(&mut bytes, 0, self.items.to_le_bytes());
        put(&mut bytes, 8, self.shards.to_le_bytes());
        put(&mut bytes, 16, self.length.to_le_bytes());
        let checksum = section_checksum(&bytes, list.map(|record| record.encode()), lane, header_checksum);
        put(&mut bytes, 24, checksum.to_le_bytes());
        (bytes, checksum)
    }

    /// The fields, and the checksum that is stored.
    pub(super) fn decode(bytes: &[u8; SECTION_BYTES]) -> (Self, u64) {
        let number = |at| u64::from_le_bytes(take(bytes, at));
        (Self { items: number(0), shards: number(8), length: number(16) }, number(24))
    }
}

/// The checksum of a section's first three fields and its list, so that neither goes with another lane or another filter.
pub(super) fn section_checksum(
    section: &[u8; SECTION_BYTES],
    list: impl Iterator<Item = impl AsRef<[u8]>>,
    lane: u64,
    header_checksum: u64,
) -> u64 {
    let mut checksum = Checksum::new(header_checksum.wrapping_add(lane));
    checksum.update(&section[..24]);
    list.for_each(|piece| checksum.update(piece.as_ref()));
    checksum.finish()
}

/// What the list says of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) layer: u8,
    pub(super) depth: u8,
    pub(super) prefix: u32,
    pub(super) items: u32,
    /// Of the table.
    pub(super) checksum: u64,
}

impl Record {
    pub(super) fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        put(&mut bytes, 0, [self.layer, self.depth]);
        put(&mut bytes, 4, self.prefix.to_le_bytes());
        put(&mut bytes, 8, self.items.to_le_bytes());
        put(&mut bytes, 16, self.checksum.to_le_bytes());
        bytes
    }

    /// `None` if reserved bytes are not zero.
    pub(super) fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let [layer, depth] = take(bytes, 0);
        (take(bytes, 2) == [0; 2] && take(bytes, 12) == [0; 4]).then(|| Self {
            layer,
            depth,
            prefix: u32::from_le_bytes(take(bytes, 4)),
            items: u32::from_le_bytes(take(bytes, 8)),
            checksum: u64::from_le_bytes(take(bytes, 16)),
        })
    }
}

/// The zeros behind a table of so many bytes.
pub(super) fn filler(table_bytes: usize) -> usize {
    table_bytes.next_multiple_of(TABLE_ALIGNMENT) - table_bytes
}

fn parameter<const N: usize>(at: usize, words: &'static str, numbers: [u64; N]) -> SnapshotError {
    SnapshotError::new(Kind::Parameter, wide(at), words, numbers)
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, field: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&field);
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}
