//! Version 1 of the format: the layout and validation of headers, sections and records. A second version would begin here, in
//! [`Header::decode`].
//!
//! ```text
//! fixed size               growing
//! ┌────────────────┐       ┌────────────────┐
//! │ header, 64     │       │ header, 64     │
//! ├────────────────┤       ├────────────────┤ ┐
//! │ table          │       │ section, 32    │ │
//! ├────────────────┤       │ records, 24 ×n │ │ for each partition
//! │ copies, if any │       │ tables, n      │ │
//! │                │       │ copies, if any │ │
//! ├────────────────┤       ├────────────────┤ ┘
//! │ checksum, 8    │       │ checksum, 8    │ of the sections' checksums
//! └────────────────┘       └────────────────┘
//! ```
//!
//! A partition without shards has the number of its items and their keys instead of records and tables.
//!
//! Up to the seed, both headers have the same fields, except for the byte at offset 13; the checksum has the same offset in both.
//! The header's checksum seeds those of the table or the sections, so a header does not match the tables of another snapshot. A
//! filter of fixed size has no section, since its header states the same. A section would make a filter of a hundred items a fifth
//! longer, and writing it would read the table twice.

use core::ops::Deref;

use crate::{
    bits::{PADDING, wide},
    elastic::{ElasticParams, Shares},
    filter::RawFilter,
    hash::{Hasher, HasherId},
    params::{Addressing, ParamError, Params, TableKind},
    snapshot::{SnapshotError, SnapshotErrorKind as Kind},
    storage,
    table::copies::{self, LONG_ENTRY_BYTES},
};

/// The name of the format, followed by bytes that a transfer in text mode would alter, as in PNG.
pub(crate) const MAGIC: [u8; 8] = *b"KOEL\r\n\x1a\n";
const VERSION: u16 = 1;

// Each field begins where the previous one ends.
const MAGIC_AT: usize = 0;
const VERSION_AT: usize = MAGIC_AT + 8;
const TABLE_AT: usize = VERSION_AT + 2;
const FINGERPRINT_BITS_AT: usize = TABLE_AT + 1;
const BUCKET_SIZE_AT: usize = FINGERPRINT_BITS_AT + 1;
const ADDRESSING_AT: usize = BUCKET_SIZE_AT + 1;
const HASHER_AT: usize = ADDRESSING_AT + 1;
const SEED_AT: usize = HASHER_AT + 2;
const BUCKETS_AT: usize = SEED_AT + 8;
pub(super) const ITEMS_AT: usize = BUCKETS_AT + 8;
const TABLE_BYTES_AT: usize = ITEMS_AT + 8;
pub(super) const ENTRIES_AT: usize = TABLE_BYTES_AT + 8;
pub(super) const CHECKSUM_AT: usize = ENTRIES_AT + 8;
/// The length of the header and the offset of the table. It is a multiple of 64, so the table begins at a cache line in a mapped
/// file.
pub(crate) const HEADER_BYTES: usize = CHECKSUM_AT + 8;
const _: () = assert!(HEADER_BYTES == storage::HEADER_BYTES);

// The fields of a growing filter's header that differ from these.
const PARTITION_BITS_AT: usize = ADDRESSING_AT;
const MIN_DEPTH_AT: usize = BUCKETS_AT + 4;
const MAX_DEPTH_AT: usize = MIN_DEPTH_AT + 1;
const SPARE_BITS_AT: usize = MAX_DEPTH_AT + 1;
const STAGGERED_AT: usize = SPARE_BITS_AT + 1;
const CAPACITY_AT: usize = STAGGERED_AT + 1;
const MAX_CAPACITY_AT: usize = CAPACITY_AT + 8;
const RATE_AT: usize = MAX_CAPACITY_AT + 8;
const _: () = assert!(RATE_AT + 8 == CHECKSUM_AT);

/// The length of a section's header.
pub(crate) const SECTION_BYTES: usize = 32;
/// The length of a shard's record.
pub(crate) const RECORD_BYTES: usize = 24;

/// The length of the trailer. It equals the padding that lookups need behind a table, so that a snapshot can be queried in place.
pub(crate) const TRAILER_BYTES: usize = 8;
const _: () = assert!(TRAILER_BYTES == PADDING);

/// The length of a checksum.
pub(super) const CHECKSUM_BYTES: usize = 8;

/// Zeros pad each table and key list of a section to a multiple of this.
const TABLE_ALIGNMENT: usize = 8;

/// The number that a growing filter's header adds to its table kind.
const GROWING: u8 = 2;
const GROWING_PACKED: u8 = GROWING + 1;

pub(super) type HeaderBytes = [u8; HEADER_BYTES];

/// A validated header.
pub(crate) struct Header<F> {
    pub(crate) fields: F,
    pub(crate) hasher: HasherId,
    /// The checksum of the header, which seeds the others.
    pub(super) checksum: u64,
}

impl<F> Header<F> {
    /// Encodes a header with the fields that `put_fields` writes. Also returns its checksum.
    fn encode_with(
        is_growing: bool,
        table: TableKind,
        hasher: HasherId,
        put_fields: impl FnOnce(&mut HeaderBytes),
    ) -> (HeaderBytes, u64) {
        let mut header = [0; HEADER_BYTES];
        put(&mut header, MAGIC_AT, MAGIC);
        put(&mut header, VERSION_AT, VERSION.to_le_bytes());
        put(&mut header, TABLE_AT, [table as u8 + if is_growing { GROWING } else { 0 }]);
        put(&mut header, HASHER_AT, hasher.number().to_le_bytes());
        put_fields(&mut header);
        let checksum = checksum(&header[..CHECKSUM_AT], 0);
        put(&mut header, CHECKSUM_AT, checksum.to_le_bytes());
        (header, checksum)
    }

    /// Decodes and validates a header. `decode_fields` does so with the fields in which the two types of filters differ.
    fn decode_with(
        expects_growing: bool,
        header: &HeaderBytes,
        decode_fields: impl FnOnce(TableKind, &HeaderBytes) -> Result<F, SnapshotError>,
    ) -> Result<Self, SnapshotError> {
        if bytes_at(header, MAGIC_AT) != MAGIC {
            return Err(not_a_snapshot());
        }
        let version = u16::from_le_bytes(bytes_at(header, VERSION_AT));
        if version != VERSION {
            let message = "a snapshot of version {}, but this release reads version {}";
            return Err(SnapshotError::new(Kind::Version, wide(VERSION_AT), message, [version.into(), VERSION.into()]));
        }
        let (stored, computed) = (u64_at(header, CHECKSUM_AT), checksum(&header[..CHECKSUM_AT], 0));
        if stored != computed {
            return Err(SnapshotError::altered(Kind::HeaderChecksum, wide(CHECKSUM_AT), "header", stored, computed));
        }
        let table = match header[TABLE_AT] {
            0 | GROWING => TableKind::Single,
            1 | GROWING_PACKED => TableKind::Packed,
            kind => {
                let message = "table kind {}: 0 is single, 1 is packed, 2 and 3 are those of filters that grow";
                return Err(parameter(TABLE_AT, message, [kind.into()]));
            }
        };
        if is_growing(header) != expects_growing {
            let (message, remedy) = if expects_growing {
                ("this is a filter of fixed size", "read it with CuckooFilter or FilterView")
            } else {
                ("this is a filter that grows", "read it with ElasticFilter or ElasticView")
            };
            return Err(SnapshotError::new(Kind::OtherType, wide(TABLE_AT), message, []).with_remedy(remedy));
        }
        let fields = decode_fields(table, header)?;
        Ok(Self { fields, hasher: HasherId::from_number(u16::from_le_bytes(bytes_at(header, HASHER_AT))), checksum: stored })
    }

    /// Calls `hasher` with the id in the header, and returns the hasher. Fails if there is none, or if it has another id.
    pub(crate) fn hasher<H: Hasher>(&self, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<H, SnapshotError> {
        let hasher = hasher(self.hasher).filter(|hasher| hasher.id() == self.hasher);
        hasher.ok_or_else(|| SnapshotError::unknown_hasher(wide(HASHER_AT), self.hasher))
    }
}

/// Returns true if the header is that of a growing filter. Validates nothing.
pub(super) fn is_growing(header: &HeaderBytes) -> bool {
    matches!(header[TABLE_AT], GROWING | GROWING_PACKED)
}

/// The fields of a fixed filter's header.
pub(crate) struct Fixed {
    pub(super) params: Params,
    /// The number of items, copies included.
    pub(super) items: u64,
    /// The number of items with extra copies, whose entries follow the table.
    pub(super) entries: u64,
}

impl Header<Fixed> {
    /// Encodes a header. Also returns its checksum.
    pub fn encode(fields: &Fixed, hasher: HasherId) -> (HeaderBytes, u64) {
        Self::encode_with(false, fields.params.table(), hasher, |header| fields.encode_into(header))
    }

    /// Decodes and validates a header. It is not inlined, so that views of all data types share its code.
    #[inline(never)]
    pub fn decode(header: &HeaderBytes) -> Result<Self, SnapshotError> {
        Self::decode_with(false, header, Fixed::decode)
    }
}

impl Header<ElasticParams> {
    /// Encodes a header. Also returns its checksum.
    pub fn encode(params: &ElasticParams, hasher: HasherId) -> (HeaderBytes, u64) {
        Self::encode_with(true, params.table, hasher, |header| params.encode_into(header))
    }

    /// Decodes and validates a header.
    #[inline(never)]
    pub fn decode(header: &HeaderBytes) -> Result<Self, SnapshotError> {
        Self::decode_with(true, header, ElasticParams::decode)
    }
}

impl Fixed {
    /// Returns the header fields of a filter.
    pub(super) fn of<S: Deref<Target = [u8]>>(filter: &RawFilter<S>) -> Self {
        Self { params: *filter.params(), items: filter.items(), entries: wide(filter.extra_totals().1) }
    }

    /// Returns the length of the snapshot.
    pub(super) fn snapshot_bytes(&self) -> u64 {
        self.params.snapshot_bytes().saturating_add(copies::snapshot_bytes(self.entries))
    }

    fn encode_into(&self, header: &mut HeaderBytes) {
        let Self { params, items, entries } = self;
        #[expect(clippy::cast_possible_truncation, reason = "neither exceeds 32")]
        let (fingerprint_bits, bucket_size) = (params.fingerprint_bits() as u8, params.bucket_size() as u8);
        put(header, FINGERPRINT_BITS_AT, [fingerprint_bits]);
        put(header, BUCKET_SIZE_AT, [bucket_size]);
        put(header, ADDRESSING_AT, [params.addressing() as u8]);
        put(header, SEED_AT, params.seed().to_le_bytes());
        put(header, BUCKETS_AT, params.buckets().to_le_bytes());
        put(header, ITEMS_AT, items.to_le_bytes());
        put(header, TABLE_BYTES_AT, wide(params.table_bytes()).to_le_bytes());
        put(header, ENTRIES_AT, entries.to_le_bytes());
    }

    #[inline]
    fn decode(table: TableKind, header: &HeaderBytes) -> Result<Self, SnapshotError> {
        let addressing = match header[ADDRESSING_AT] {
            0 => Addressing::AnySize,
            1 => Addressing::PowerOfTwo,
            other => {
                return Err(parameter(ADDRESSING_AT, "addressing {}: 0 is any size, 1 is powers of two", [other.into()]));
            }
        };
        let (f, b) = (header[FINGERPRINT_BITS_AT].into(), header[BUCKET_SIZE_AT].into());
        let buckets = u64_at(header, BUCKETS_AT);
        let params = Params::new(table, f, b, buckets, addressing, u64_at(header, SEED_AT)).map_err(|error| {
            let at = match error {
                ParamError::FingerprintBits { .. } => FINGERPRINT_BITS_AT,
                ParamError::BucketSize { .. } => BUCKET_SIZE_AT,
                _ => BUCKETS_AT,
            };
            SnapshotError::params(Kind::Parameter, at, error)
        })?;
        let (items, slots) = (u64_at(header, ITEMS_AT), params.slots());
        let entries = u64_at(header, ENTRIES_AT);
        // Each entry belongs to an item in the table and counts at most 2³² − 1 copies.
        let most = wide(slots).saturating_add(entries.saturating_mul(u32::MAX.into()));
        if entries > wide(slots) || items > most {
            let message = "{} items in {} slots, and {} with extra copies";
            return Err(parameter(ITEMS_AT, message, [items, wide(slots), entries]));
        }
        let table_bytes = u64_at(header, TABLE_BYTES_AT);
        if table_bytes != wide(params.table_bytes()) {
            let message = "a table of {} bytes, but {} follow from the other fields";
            return Err(parameter(TABLE_BYTES_AT, message, [table_bytes, wide(params.table_bytes())]));
        }
        Ok(Self { params, items, entries })
    }
}

/// Header fields of a growing filter.
impl ElasticParams {
    fn encode_into(&self, header: &mut HeaderBytes) {
        put(header, FINGERPRINT_BITS_AT, [self.low_bits]);
        put(header, BUCKET_SIZE_AT, [self.bucket_size]);
        put(header, PARTITION_BITS_AT, [self.shares.partition_bits()]);
        put(header, SEED_AT, self.seed.to_le_bytes());
        put(header, BUCKETS_AT, self.buckets.to_le_bytes());
        put(header, MIN_DEPTH_AT, [self.min_depth]);
        put(header, MAX_DEPTH_AT, [self.max_depth]);
        put(header, SPARE_BITS_AT, [self.spare_bits]);
        put(header, STAGGERED_AT, [u8::from(self.shares.is_staggered())]);
        put(header, CAPACITY_AT, self.capacity.to_le_bytes());
        put(header, MAX_CAPACITY_AT, self.max_capacity.to_le_bytes());
        put(header, RATE_AT, self.false_positive_rate.to_le_bytes());
    }

    fn decode(table: TableKind, header: &HeaderBytes) -> Result<Self, SnapshotError> {
        let is_staggered = match header[STAGGERED_AT] {
            flag @ (0 | 1) => flag == 1,
            other => return Err(parameter(STAGGERED_AT, "staggered {}: 0 is no, 1 is yes", [other.into()])),
        };
        let params = Self {
            capacity: u64_at(header, CAPACITY_AT),
            max_capacity: u64_at(header, MAX_CAPACITY_AT),
            false_positive_rate: f64::from_le_bytes(bytes_at(header, RATE_AT)),
            seed: u64_at(header, SEED_AT),
            buckets: u32::from_le_bytes(bytes_at(header, BUCKETS_AT)),
            low_bits: header[FINGERPRINT_BITS_AT],
            table,
            bucket_size: header[BUCKET_SIZE_AT],
            shares: Shares::new(header[PARTITION_BITS_AT], is_staggered),
            min_depth: header[MIN_DEPTH_AT],
            max_depth: header[MAX_DEPTH_AT],
            spare_bits: header[SPARE_BITS_AT],
        };
        params.checked().map_err(|message| parameter(FINGERPRINT_BITS_AT, message, []))
    }
}

/// The header of a partition's section.
pub(super) struct Section {
    pub items: u64,
    pub shards: u64,
    /// The number of bytes that follow in the section: the records and tables or the key list, then the extra copies.
    pub length: u64,
}

/// Returns the length of a key list, padding included.
pub(crate) fn padded_keys(keys: u64, key_bytes: usize) -> u64 {
    let (alignment, bytes) = (wide(TABLE_ALIGNMENT), keys.saturating_mul(wide(key_bytes)));
    bytes.checked_next_multiple_of(alignment).unwrap_or(u64::MAX)
}

/// Returns the length of a partition's key list, its entries of extra copies, and the checksum of both; 0 if there are neither.
/// The section's checksum seeds this one, which is separate so that a view is opened without reading the lists.
pub(crate) fn list_bytes(keys: u64, key_bytes: usize, entries: u64) -> u64 {
    let lists = padded_keys(keys, key_bytes).saturating_add(entries.saturating_mul(wide(LONG_ENTRY_BYTES)));
    if lists == 0 { 0 } else { lists.saturating_add(wide(CHECKSUM_BYTES)) }
}

/// Returns the number of entries in lists of `bytes` bytes, or `None` if no number of entries takes exactly these.
pub(super) fn list_entries(keys: u64, key_bytes: usize, bytes: u64) -> Option<u64> {
    let entries = bytes.checked_sub(list_bytes(keys, key_bytes, 0))?;
    let entries = if keys == 0 { entries.saturating_sub(wide(CHECKSUM_BYTES)) } else { entries } / wide(LONG_ENTRY_BYTES);
    (list_bytes(keys, key_bytes, entries) == bytes).then_some(entries)
}

/// The length of the field with the number of keys, which precedes a key list in place of records.
pub(crate) const KEY_COUNT_BYTES: usize = 8;

impl Section {
    /// Encodes the section header of `partition`, where `list` is its records or its number of keys. Also returns the checksum.
    pub fn encode(&self, list: impl Iterator<Item = impl AsRef<[u8]>>, partition: u64, seed: u64) -> ([u8; SECTION_BYTES], u64) {
        let mut bytes = [0; SECTION_BYTES];
        put(&mut bytes, 0, self.items.to_le_bytes());
        put(&mut bytes, 8, self.shards.to_le_bytes());
        put(&mut bytes, 16, self.length.to_le_bytes());
        let checksum = section_checksum(&bytes, list, partition, seed);
        put(&mut bytes, 24, checksum.to_le_bytes());
        (bytes, checksum)
    }

    /// Decodes the fields and the stored checksum.
    pub fn decode(bytes: &[u8; SECTION_BYTES]) -> (Self, u64) {
        (Self { items: u64_at(bytes, 0), shards: u64_at(bytes, 8), length: u64_at(bytes, 16) }, u64_at(bytes, 24))
    }
}

/// Computes the checksum of a section's first three fields and its list. It depends on `partition` and on the header's checksum,
/// `seed`, so a section does not match another partition or filter.
pub(super) fn section_checksum(
    section: &[u8; SECTION_BYTES],
    list: impl Iterator<Item = impl AsRef<[u8]>>,
    partition: u64,
    seed: u64,
) -> u64 {
    let mut checksum = Checksum::new(seed.wrapping_add(partition));
    checksum.update(&section[..24]);
    list.for_each(|piece| checksum.update(piece.as_ref()));
    checksum.finish()
}

/// The record of a shard in its section.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) generation: u8,
    pub(crate) depth: u8,
    pub(crate) prefix: u32,
    pub(crate) items: u32,
    /// The checksum of the shard's table and column.
    pub(crate) checksum: u64,
}

impl Record {
    pub(super) fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        put(&mut bytes, 0, [self.generation, self.depth]);
        put(&mut bytes, 4, self.prefix.to_le_bytes());
        put(&mut bytes, 8, self.items.to_le_bytes());
        put(&mut bytes, 16, self.checksum.to_le_bytes());
        bytes
    }

    /// Decodes a record. Returns `None` if reserved bytes are not zero.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let [generation, depth] = bytes_at(bytes, 0);
        (bytes_at(bytes, 2) == [0; 2] && bytes_at(bytes, 12) == [0; 4]).then(|| Self {
            generation,
            depth,
            prefix: u32::from_le_bytes(bytes_at(bytes, 4)),
            items: u32::from_le_bytes(bytes_at(bytes, 8)),
            checksum: u64_at(bytes, 16),
        })
    }
}

/// Returns the length of a shard's table and column, padding included.
pub(crate) fn padded(table_bytes: usize) -> usize {
    table_bytes.next_multiple_of(TABLE_ALIGNMENT)
}

/// Computes the 64-bit XXH3, the function of [`Xxh3`](crate::Xxh3), so that other readers need only one hash function.
pub(crate) fn checksum(bytes: &[u8], seed: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed)
}

/// A [`checksum`] that is computed incrementally.
pub(super) struct Checksum(xxhash_rust::xxh3::Xxh3);

// Not inlined: each is kilobytes of code, and a piece is so long that the call does not matter.
impl Checksum {
    #[inline(never)]
    pub fn new(seed: u64) -> Self {
        Self(xxhash_rust::xxh3::Xxh3::with_seed(seed))
    }

    #[inline(never)]
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(&self) -> u64 {
        self.0.digest()
    }
}

pub(super) fn not_a_snapshot() -> SnapshotError {
    SnapshotError::new(Kind::Magic, wide(MAGIC_AT), "these bytes do not begin as a koel snapshot does", [])
}

fn parameter<const N: usize>(at: usize, message: &'static str, numbers: [u64; N]) -> SnapshotError {
    SnapshotError::new(Kind::Parameter, wide(at), message, numbers)
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, field: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&field);
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes_at(bytes, at))
}

impl Params {
    /// Returns the length in bytes of a snapshot of a filter with these parameters: a header of 64 bytes, the table, and a trailer
    /// of 8 bytes (docs/FORMAT.md). It does not depend on how many distinct items the filter holds. Extra copies add 8 bytes, and
    /// 12 for each item that has some.
    ///
    /// # Example
    /// ```
    /// let filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// let params = filter.params();
    /// assert_eq!(params.snapshot_bytes(), 64 + params.table_bytes() as u64 + 8);
    /// assert_eq!(params.snapshot_bytes(), filter.to_bytes().len() as u64);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn snapshot_bytes(&self) -> u64 {
        wide(HEADER_BYTES) + wide(self.table_bytes()) + wide(TRAILER_BYTES)
    }
}
