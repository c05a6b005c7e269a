//! Version 2 of the format: the layout and validation of headers, sections and records. Another version would begin here, in
//! [`Header::decode`].
//!
//! ```text
//! fixed size               growing
//! ┌────────────────┐       ┌────────────────┐
//! │ header, 64     │       │ header, 64     │
//! ├────────────────┤       ├────────────────┤ ┐
//! │ table          │       │ section, 32    │ │
//! ├────────────────┤       │ records, 24 ×n │ │ for each partition
//! │ copies, if any │       │ bodies, n      │ │
//! ├────────────────┤       ├────────────────┤ ┘
//! │ checksum, 8    │       │ checksum, 8    │ of the sections' checksums
//! └────────────────┘       └────────────────┘
//! ```
//!
//! A record is that of a shard, whose body is a table or a list of items, or that of a generation's extra copies, whose body is a
//! list, too.
//!
//! Up to the seed, both headers have the same fields, except for the byte at offset 13; the checksum has the same offset in both.
//! The header's checksum seeds those of the table or the sections, so a header does not match the tables of another snapshot. A
//! filter of fixed size has no section, since its header states the same. A section would make a filter of a hundred items a fifth
//! longer, and writing it would read the table twice.

use crate::{
    bits::{IS_SMALLEST, PADDING, wide},
    elastic::{ElasticParams, GenerationPlan, Shares},
    filter::RawFilter,
    hash::{Hasher, HasherId, Xxh3, hash_bytes},
    message::{Text, text},
    params::{Addressing, Params, TableKind},
    snapshot::{SnapshotError, SnapshotErrorKind as Kind},
    storage::Bytes,
    table::{
        TableParams as _,
        copies::{ClassKeys, KEYS_AT},
    },
};

/// The name of the format, followed by bytes that a transfer in text mode would alter, as in PNG.
pub(crate) const MAGIC: [u8; 8] = *b"KOEL\r\n\x1a\n";
const VERSION: u16 = 2;
/// The version of builds before the first release. Their growing filters had other keys.
const DEVELOPMENT_VERSION: u16 = 1;

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
pub(super) const LISTED_BYTES_AT: usize = ITEMS_AT + 8;
const RESERVED_AT: usize = LISTED_BYTES_AT + 8;
pub(super) const CHECKSUM_AT: usize = RESERVED_AT + 8;
/// The length of the header and the offset of the table. It is a multiple of 64, so the table begins at a cache line in a mapped
/// file.
pub(crate) const HEADER_BYTES: usize = CHECKSUM_AT + 8;

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
/// The length of its fields, which its checksum follows.
pub(super) const SECTION_FIELDS: usize = SECTION_BYTES - 8;
/// The length of a record.
pub(crate) const RECORD_BYTES: usize = 24;

/// The length of the trailer. It equals the padding that lookups need behind a table, so that a snapshot can be queried in place.
pub(crate) const TRAILER_BYTES: usize = 8;
const _: () = assert!(TRAILER_BYTES == PADDING);

/// Zeros pad each body of a section to a multiple of this.
pub(super) const ALIGNMENT: usize = 8;

/// The table kind of a growing filter: its packed tables have columns.
const GROWING: u8 = 2;
/// The number of slots in its buckets.
const BUCKET_SIZE: u8 = 4;
const _: () = assert!(BUCKET_SIZE as u32 == crate::elastic::BUCKET_SIZE);

pub(super) type HeaderBytes = [u8; HEADER_BYTES];

/// A validated header.
pub(crate) struct Header<F> {
    pub(crate) fields: F,
    pub(crate) hasher: HasherId,
    /// The checksum of the header, which seeds the others.
    pub(super) checksum: u64,
}

/// Validates the fields that the headers of both types of filters have. Returns the hasher and the checksum.
#[inline(never)]
fn decode_common(header: &HeaderBytes, expects_growing: bool) -> Result<(HasherId, u64), SnapshotError> {
    if bytes_at(header, MAGIC_AT) != MAGIC {
        return Err(not_a_snapshot());
    }
    let version = u16::from_le_bytes(bytes_at(header, VERSION_AT));
    if version == DEVELOPMENT_VERSION {
        let message = text!(
            "a snapshot of version {}, written by a development version of this library, but this release reads version {}"
        );
        let error = SnapshotError::new(Kind::Version, wide(VERSION_AT), message, [version.into(), VERSION.into()]);
        return Err(error.with_remedy_text(text!("write it again with this release")));
    }
    if version != VERSION {
        let message = text!("a snapshot of version {}, but this release reads version {}");
        return Err(SnapshotError::new(Kind::Version, wide(VERSION_AT), message, [version.into(), VERSION.into()]));
    }
    let (stored, computed) = (u64_at(header, CHECKSUM_AT), header_checksum(header));
    if stored != computed {
        return Err(SnapshotError::altered(Kind::HeaderChecksum, wide(CHECKSUM_AT), text!("header"), stored, computed));
    }
    if header[TABLE_AT] > GROWING {
        let message = text!("table kind {}: 0 is single, 1 is packed, 2 is that of filters that grow");
        return Err(parameter(TABLE_AT, message, [header[TABLE_AT].into()]));
    }
    if is_growing(header) != expects_growing {
        let (message, remedy) = if expects_growing {
            (text!("this is a filter of fixed size"), text!("read it with CuckooFilter or FilterView"))
        } else {
            (text!("this is a filter that grows"), text!("read it with ElasticFilter or ElasticView"))
        };
        return Err(SnapshotError::new(Kind::OtherType, wide(TABLE_AT), message, []).with_remedy_text(remedy));
    }
    Ok((HasherId::from_number(u16::from_le_bytes(bytes_at(header, HASHER_AT))), stored))
}

impl<F> Header<F> {
    /// Calls `hasher` with the id in the header, and returns the hasher. Fails if there is none, or if it has another id.
    pub(crate) fn hasher<H: Hasher>(&self, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<H, SnapshotError> {
        let hasher = hasher(self.hasher).filter(|hasher| hasher.id() == self.hasher);
        hasher.ok_or_else(|| SnapshotError::unknown_hasher(wide(HASHER_AT), self.hasher))
    }
}

/// Encodes a header with the fields that `put_fields` writes. Also returns its checksum.
fn encode(table: u8, hasher: HasherId, put_fields: impl FnOnce(&mut HeaderBytes)) -> (HeaderBytes, u64) {
    let mut header = [0; HEADER_BYTES];
    put(&mut header, MAGIC_AT, MAGIC);
    put(&mut header, VERSION_AT, VERSION.to_le_bytes());
    put(&mut header, TABLE_AT, [table]);
    put(&mut header, HASHER_AT, hasher.number().to_le_bytes());
    put_fields(&mut header);
    let checksum = header_checksum(&header);
    put(&mut header, CHECKSUM_AT, checksum.to_le_bytes());
    (header, checksum)
}

/// Returns true if the header is that of a growing filter. Validates nothing.
pub(super) fn is_growing(header: &HeaderBytes) -> bool {
    header[TABLE_AT] == GROWING
}

/// The fields of a fixed filter's header.
pub(crate) struct Fixed {
    pub(super) params: Params,
    /// The number of items, copies included.
    pub(super) items: u64,
    /// The length of the extra copies, which follow the table.
    pub(super) listed_bytes: u64,
}

impl Header<Fixed> {
    /// Decodes and validates a header. It is not inlined, so that views of all data types share its code.
    #[inline(never)]
    pub fn decode(header: &HeaderBytes) -> Result<Self, SnapshotError> {
        let (hasher, checksum) = decode_common(header, false)?;
        Ok(Self { fields: Fixed::decode(header)?, hasher, checksum })
    }
}

impl Header<ElasticParams> {
    /// Decodes and validates a header.
    #[inline(never)]
    pub fn decode(header: &HeaderBytes) -> Result<Self, SnapshotError> {
        let (hasher, checksum) = decode_common(header, true)?;
        Ok(Self { fields: ElasticParams::decode(header)?, hasher, checksum })
    }
}

impl Fixed {
    /// Returns the header fields of a filter.
    pub(super) fn of<S: Bytes>(filter: &RawFilter<S>) -> Self {
        Self { params: *filter.params(), items: filter.items(), listed_bytes: wide(filter.listed_bytes()) }
    }

    /// Returns the length of the snapshot.
    pub(super) fn snapshot_bytes(&self) -> u64 {
        self.params.snapshot_bytes().saturating_add(self.listed_bytes)
    }

    /// Encodes the header. Also returns its checksum.
    pub(super) fn header(&self, hasher: HasherId) -> (HeaderBytes, u64) {
        let Self { params, items, listed_bytes } = self;
        #[expect(clippy::cast_possible_truncation, reason = "neither exceeds 32")]
        let (fingerprint_bits, bucket_size) = (params.fingerprint_bits() as u8, params.bucket_size() as u8);
        encode(params.table() as u8, hasher, |header| {
            put(header, FINGERPRINT_BITS_AT, [fingerprint_bits]);
            put(header, BUCKET_SIZE_AT, [bucket_size]);
            put(header, ADDRESSING_AT, [params.addressing() as u8]);
            put(header, SEED_AT, params.seed().to_le_bytes());
            put(header, BUCKETS_AT, params.buckets().to_le_bytes());
            put(header, ITEMS_AT, items.to_le_bytes());
            put(header, LISTED_BYTES_AT, listed_bytes.to_le_bytes());
        })
    }

    #[inline]
    fn decode(header: &HeaderBytes) -> Result<Self, SnapshotError> {
        let table = if header[TABLE_AT] == TableKind::Single as u8 { TableKind::Single } else { TableKind::Packed };
        let addressing = match header[ADDRESSING_AT] {
            0 => Addressing::AnySize,
            1 => Addressing::PowerOfTwo,
            other => {
                return Err(parameter(ADDRESSING_AT, text!("addressing {}: 0 is any size, 1 is powers of two"), [other.into()]));
            }
        };
        let (f, b) = (header[FINGERPRINT_BITS_AT].into(), header[BUCKET_SIZE_AT].into());
        let buckets = u64_at(header, BUCKETS_AT);
        let offsets = [FINGERPRINT_BITS_AT, BUCKET_SIZE_AT, BUCKETS_AT];
        let params = Params::new(table, f, b, buckets, addressing, u64_at(header, SEED_AT))
            .map_err(|error| SnapshotError::params(Kind::Parameter, offsets, error))?;
        let (items, slots) = (u64_at(header, ITEMS_AT), params.slots());
        let listed_bytes = u64_at(header, LISTED_BYTES_AT);
        let key_bytes = ClassKeys::new(params.buckets(), params.fingerprint_bits(), 0).key_bytes();
        let entries = listed_bytes.saturating_sub(wide(KEYS_AT)) / u64::from(key_bytes);
        // Each entry belongs to an item in the table and counts at most 2³² − 1 copies.
        let most = wide(slots).saturating_add(entries.min(wide(slots)).saturating_mul(u32::MAX.into()));
        let most_bytes = wide(slots).saturating_mul(u64::from(key_bytes) + 4).saturating_add(wide(KEYS_AT));
        if listed_bytes > most_bytes || listed_bytes > 0 && entries == 0 || items > most {
            let message = text!("{} items in {} slots, and {} bytes of extra copies");
            return Err(parameter(ITEMS_AT, message, [items, wide(slots), listed_bytes]));
        }
        let reserved = u64_at(header, RESERVED_AT);
        if reserved != 0 {
            return Err(parameter(RESERVED_AT, text!("a reserved field is {}; it must be 0"), [reserved]));
        }
        Ok(Self { params, items, listed_bytes })
    }
}

/// Header fields of a growing filter.
impl ElasticParams {
    /// Encodes the header. Also returns its checksum.
    pub(super) fn header(&self, hasher: HasherId) -> (HeaderBytes, u64) {
        encode(GROWING, hasher, |header| {
            put(header, FINGERPRINT_BITS_AT, [self.low_bits]);
            put(header, BUCKET_SIZE_AT, [BUCKET_SIZE]);
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
        })
    }

    fn decode(header: &HeaderBytes) -> Result<Self, SnapshotError> {
        if header[BUCKET_SIZE_AT] != BUCKET_SIZE {
            let message = text!("buckets of {} slots, but those of filters that grow have {}");
            return Err(parameter(BUCKET_SIZE_AT, message, [header[BUCKET_SIZE_AT].into(), BUCKET_SIZE.into()]));
        }
        let is_staggered = match header[STAGGERED_AT] {
            flag @ (0 | 1) => flag == 1,
            other => return Err(parameter(STAGGERED_AT, text!("staggered {}: 0 is no, 1 is yes"), [other.into()])),
        };
        let params = Self {
            capacity: u64_at(header, CAPACITY_AT),
            max_capacity: u64_at(header, MAX_CAPACITY_AT),
            false_positive_rate: f64::from_le_bytes(bytes_at(header, RATE_AT)),
            seed: u64_at(header, SEED_AT),
            buckets: u32::from_le_bytes(bytes_at(header, BUCKETS_AT)),
            low_bits: header[FINGERPRINT_BITS_AT],
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
    /// The number of items, copies included.
    pub items: u64,
    pub records: u64,
    /// The number of bytes that follow in the section: the records and the bodies.
    pub length: u64,
}

impl Section {
    /// Encodes the section header of `partition`, where `list` is its records. Also returns the checksum.
    pub fn encode(&self, list: impl Iterator<Item = impl AsRef<[u8]>>, partition: u64, seed: u64) -> ([u8; SECTION_BYTES], u64) {
        let mut bytes = [0; SECTION_BYTES];
        put(&mut bytes, 0, self.items.to_le_bytes());
        put(&mut bytes, 8, self.records.to_le_bytes());
        put(&mut bytes, 16, self.length.to_le_bytes());
        // It depends on the partition and on the header's checksum, so a section does not match another partition or filter.
        let mut checksum = Checksum::new(seed.wrapping_add(partition));
        checksum.update(&bytes[..SECTION_FIELDS]);
        list.for_each(|piece| checksum.update(piece.as_ref()));
        let checksum = checksum.finish();
        put(&mut bytes, SECTION_FIELDS, checksum.to_le_bytes());
        (bytes, checksum)
    }

    /// Decodes the fields and the stored checksum.
    pub fn decode(bytes: &[u8]) -> (Self, u64) {
        (Self { items: u64_at(bytes, 0), records: u64_at(bytes, 8), length: u64_at(bytes, 16) }, u64_at(bytes, SECTION_FIELDS))
    }
}

/// The kind of a record's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// The table of a shard.
    Table,
    /// The items of a shard: an ordered list of class keys, with counts of this many bytes.
    List { count_bytes: u8 },
    /// The extra copies of a generation: an ordered list, with counts of this many bytes.
    Copies { count_bytes: u8 },
}

/// A record in a section: that of a shard, or that of a generation's extra copies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) generation: u8,
    pub(crate) body: Body,
    /// The depth and prefix of a shard; 0 for extra copies.
    pub(crate) depth: u8,
    pub(crate) prefix: u32,
    /// The number of items in a table, or of entries in a list.
    pub(crate) entries: u64,
    /// The checksum of the body, without padding.
    pub(crate) checksum: u64,
}

impl Record {
    pub(super) fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let (body, count_bytes) = match self.body {
            Body::Table => (0, 0),
            Body::List { count_bytes } => (1, count_bytes),
            Body::Copies { count_bytes } => (2, count_bytes),
        };
        put(&mut bytes, 0, [self.generation, self.depth, body, count_bytes]);
        put(&mut bytes, 4, self.prefix.to_le_bytes());
        put(&mut bytes, 8, self.entries.to_le_bytes());
        put(&mut bytes, 16, self.checksum.to_le_bytes());
        bytes
    }

    /// Decodes a record. Returns `None` if its body is none of those that there are.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let [generation, depth, body, count_bytes] = bytes_at(bytes, 0);
        let body = match (body, count_bytes) {
            (0, 0) => Body::Table,
            (1, 0 | 1 | 2 | 4) => Body::List { count_bytes },
            (2, 0 | 1 | 2 | 4) => Body::Copies { count_bytes },
            _ => return None,
        };
        let prefix = u32::from_le_bytes(bytes_at(bytes, 4));
        Some(Self { generation, body, depth, prefix, entries: u64_at(bytes, 8), checksum: u64_at(bytes, 16) })
    }

    /// Returns the length of the body in bytes, without padding; `u64::MAX` if it is longer than any snapshot.
    pub(crate) fn body_bytes(&self, plan: &GenerationPlan) -> u64 {
        let list = |key_bytes: u8, count_bytes: u8| self.entries.saturating_mul(u64::from(key_bytes) + u64::from(count_bytes));
        match self.body {
            Body::Table => wide(plan.shard(self.depth).table_bytes()),
            Body::List { count_bytes } => list(plan.key_bytes(), count_bytes),
            Body::Copies { count_bytes } => list(plan.entry_key_bytes(), count_bytes),
        }
    }

    /// Returns the length of the body with its padding.
    pub(crate) fn padded_bytes(&self, plan: &GenerationPlan) -> u64 {
        self.body_bytes(plan).checked_next_multiple_of(wide(ALIGNMENT)).unwrap_or(u64::MAX)
    }

    /// Returns true if the record is that of a shard.
    pub(crate) fn is_shard(&self) -> bool {
        !matches!(self.body, Body::Copies { .. })
    }
}

/// Computes the 64-bit XXH3, the function of [`Xxh3`](crate::Xxh3), so that other readers need only one hash function.
pub(crate) fn checksum(bytes: &[u8], seed: u64) -> u64 {
    hash_bytes(&Xxh3, seed, bytes).0
}

/// Returns the [`checksum`] of a header. Hashing a number of bytes that the compiler knows takes a fraction of the code.
fn header_checksum(header: &HeaderBytes) -> u64 {
    if IS_SMALLEST {
        return checksum(&header[..CHECKSUM_AT], 0);
    }
    xxhash_rust::xxh3::xxh3_64_with_seed(&header[..CHECKSUM_AT], 0)
}

/// Compares the stored checksum of a part of the snapshot with the computed one. The error has the offset `at`: that of the
/// checksum or of the part.
pub(super) fn verify_checksum(at: u64, part: Text, stored: u64, computed: u64) -> Result<(), SnapshotError> {
    if stored == computed { Ok(()) } else { Err(SnapshotError::altered(Kind::BodyChecksum, at, part, stored, computed)) }
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
    SnapshotError::new(Kind::Magic, wide(MAGIC_AT), text!("these bytes do not begin as a koel snapshot does"), [])
}

/// Returns the error for bytes that are not even a header.
pub(super) fn header_too_short(bytes: &[u8]) -> SnapshotError {
    if !MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]) {
        return not_a_snapshot();
    }
    // The header is incomplete, so the length of the snapshot is unknown.
    let given = wide(bytes.len());
    let message = text!("the bytes end too early: there are {}, and the header alone has {}");
    SnapshotError::new(Kind::Length, given, message, [given, wide(HEADER_BYTES)])
}

fn parameter<const N: usize>(at: usize, message: Text, numbers: [u64; N]) -> SnapshotError {
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
    /// of 8 bytes (docs/FORMAT.md). It does not depend on how many distinct items the filter holds. Extra copies add 9 bytes, and
    /// for each item that has some, a key and a count of up to 4 bytes.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Uniform;
    use alloc::{format, string::String, vec::Vec};
    use core::fmt::Write as _;

    /// The version, and the digest of the numbers in [`layout`]. They may change only together.
    const LAYOUT: (u16, u64) = (2, 0x1060_7a45_8351_18a9);

    #[test]
    fn the_layout_changes_only_with_the_version() {
        let layout = layout();
        let digest = checksum(layout.as_bytes(), 0);
        assert_eq!((VERSION, digest), LAYOUT, "the digest is {digest:#018x}:\n{layout}");
    }

    /// Lists the numbers from which other readers compute where a field is and what it means.
    fn layout() -> String {
        let shared = [MAGIC_AT, VERSION_AT, TABLE_AT, FINGERPRINT_BITS_AT, BUCKET_SIZE_AT, HASHER_AT, SEED_AT, CHECKSUM_AT];
        let fixed = [ADDRESSING_AT, BUCKETS_AT, ITEMS_AT, LISTED_BYTES_AT, RESERVED_AT, KEYS_AT];
        let growing = [PARTITION_BITS_AT, BUCKETS_AT, MIN_DEPTH_AT, MAX_DEPTH_AT, SPARE_BITS_AT, STAGGERED_AT];
        let growing = [&growing[..], &[CAPACITY_AT, MAX_CAPACITY_AT, RATE_AT]].concat();
        let sizes = [HEADER_BYTES, SECTION_BYTES, RECORD_BYTES, TRAILER_BYTES, ALIGNMENT];
        let kinds = [TableKind::Single as u8, TableKind::Packed as u8, GROWING];
        let mut lines = format!("{MAGIC:?} {shared:?} {fixed:?} {growing:?} {sizes:?} {kinds:?}\n");
        for body in [0, 1, 2, 3] {
            let widths: Vec<u8> = (0..=u8::MAX).filter(|&width| record([7, 5, body, width]).is_some()).collect();
            let _ = writeln!(lines, "body {body} {widths:?}");
        }
        let lists = [Body::Table, Body::List { count_bytes: 2 }, Body::Copies { count_bytes: 4 }];
        for body in lists {
            let record = Record { generation: 1, body, depth: 2, prefix: 0x0304_0506, entries: 0x0708_090a, checksum: 0x0b0c };
            let plan = plans()[0].generation(1);
            let _ = writeln!(lines, "{:?} {}", record.encode(), record.padded_bytes(&plan));
        }
        for params in plans() {
            let _ = writeln!(lines, "{:?}", params.header(HasherId::XXH3));
            for number in [0, 1, 2, 3, 9, 255] {
                lines += &generation(&params.generation(number));
            }
        }
        lines
    }

    fn record(start: [u8; 4]) -> Option<Record> {
        let mut bytes = [0; RECORD_BYTES];
        put(&mut bytes, 0, start);
        Record::decode(&bytes)
    }

    /// Parameters with small and large shards, with and without growth.
    fn plans() -> Vec<ElasticParams> {
        let shapes = [(32, 4, 0, 3), (268, 13, 0, 8), (270, 20, 4, 4), (868, 27, 0, 0), (65_892, 32, 2, 9), (1 << 24, 8, 0, 0)];
        let plan = |(buckets, low_bits, min_depth, max_depth)| ElasticParams {
            capacity: 1000,
            max_capacity: 2000,
            false_positive_rate: 0.01,
            seed: 7,
            buckets,
            low_bits,
            shares: Shares::new(low_bits % 3, max_depth > min_depth),
            min_depth,
            max_depth,
            spare_bits: low_bits % 8,
        };
        shapes.map(|shape| plan(shape).checked().expect("valid parameters")).into()
    }

    /// Lists what follows from the header for a generation: its sizes, and the class key and the extra bits of a hash.
    fn generation(plan: &GenerationPlan) -> String {
        let tables = [plan.min_depth, plan.max_depth].map(|depth| plan.shard(depth).table_bytes());
        let bytes = [plan.key_bytes(), plan.entry_key_bytes()];
        let depths = [plan.min_depth, plan.max_depth, plan.known_bits(), plan.extra_bits, plan.dropped_bits];
        let key = plan.key(Uniform(0xfedc_ba98_7654_3210));
        let (class_key, extra) = (plan.class_key(key), plan.extra(key));
        let entry = plan.entry_key(class_key, extra);
        format!("{} {} {depths:?} {tables:?} {bytes:?} {class_key:x} {entry:x}\n", plan.number, plan.whole.buckets)
    }
}
