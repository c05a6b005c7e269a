//! Version 1 of the format: the layout of the header, and its validation.

use super::{SnapshotError, SnapshotErrorKind as Kind};
use crate::{
    bits::{PADDING, wide},
    hash::HasherId,
    params::{Addressing, Parameter, Params, TableKind},
    storage,
};

/// A name, followed by bytes that a transfer in text mode would alter, as in PNG.
pub(crate) const MAGIC: [u8; 8] = *b"KOEL\r\n\x1a\n";
pub(crate) const VERSION: u16 = 1;

// Each field begins where the previous one ends.
const MAGIC_AT: usize = 0;
const VERSION_AT: usize = MAGIC_AT + 8;
const TABLE_AT: usize = VERSION_AT + 2;
const FINGERPRINT_BITS_AT: usize = TABLE_AT + 1;
const BUCKET_SIZE_AT: usize = FINGERPRINT_BITS_AT + 1;
const ADDRESSING_AT: usize = BUCKET_SIZE_AT + 1;
pub(super) const HASHER_AT: usize = ADDRESSING_AT + 1;
const SEED_AT: usize = HASHER_AT + 2;
const BUCKETS_AT: usize = SEED_AT + 8;
pub(super) const ITEMS_AT: usize = BUCKETS_AT + 8;
const TABLE_BYTES_AT: usize = ITEMS_AT + 8;
const RESERVED_AT: usize = TABLE_BYTES_AT + 8;
const CHECKSUM_AT: usize = RESERVED_AT + 8;
/// The offset of the table: a multiple of 64, so that in a mapped file the table begins at a cache line.
pub(super) const HEADER_BYTES: usize = CHECKSUM_AT + 8;
const _: () = assert!(HEADER_BYTES == storage::HEADER_BYTES);

/// The length of the trailer, the table's checksum. It is as long as the padding that look-ups need behind the table, so that a
/// snapshot can be queried in place.
pub(super) const TRAILER_BYTES: usize = 8;
const _: () = assert!(TRAILER_BYTES == PADDING);

const SINGLE: u8 = 0;
const PACKED: u8 = 1;
/// From this number on, filters that grow: `elastic/snapshot/format.rs`.
pub(crate) const GROWING: u8 = 2;
const GROWING_PACKED: u8 = GROWING + 1;
const ANY_SIZE: u8 = 0;
const POWER_OF_TWO: u8 = 1;

pub(super) type HeaderBytes = [u8; HEADER_BYTES];

/// The number of a kind of table in the header.
const fn table_number(table: TableKind) -> u8 {
    match table {
        TableKind::Single => SINGLE,
        TableKind::Packed => PACKED,
    }
}

/// The number of an addressing in the header.
const fn addressing_number(addressing: Addressing) -> u8 {
    match addressing {
        Addressing::AnySize => ANY_SIZE,
        Addressing::PowerOfTwo => POWER_OF_TWO,
    }
}

/// A validated header.
pub(super) struct Header {
    pub(super) params: Params,
    pub(super) hasher: HasherId,
    /// The number of items in the table.
    pub(super) len: usize,
    /// The checksum of the header. It seeds the table's checksum, so that header and table of different snapshots cannot be
    /// combined.
    #[cfg(any(feature = "std", feature = "serde"))]
    pub(super) checksum: u64,
}

impl Header {
    /// Encodes the header. Also returns its checksum.
    pub(super) fn encode(params: &Params, hasher: HasherId, len: usize) -> (HeaderBytes, u64) {
        #[expect(clippy::cast_possible_truncation, reason = "neither exceeds 32")]
        let (fingerprint_bits, bucket_size) = (params.fingerprint_bits() as u8, params.bucket_size() as u8);
        let mut header = [0; HEADER_BYTES];
        put(&mut header, MAGIC_AT, MAGIC);
        put(&mut header, VERSION_AT, VERSION.to_le_bytes());
        put(&mut header, TABLE_AT, [table_number(params.table())]);
        put(&mut header, FINGERPRINT_BITS_AT, [fingerprint_bits]);
        put(&mut header, BUCKET_SIZE_AT, [bucket_size]);
        put(&mut header, ADDRESSING_AT, [addressing_number(params.addressing())]);
        put(&mut header, HASHER_AT, hasher.number().to_le_bytes());
        put(&mut header, SEED_AT, params.seed().to_le_bytes());
        put(&mut header, BUCKETS_AT, params.buckets().to_le_bytes());
        put(&mut header, ITEMS_AT, wide(len).to_le_bytes());
        put(&mut header, TABLE_BYTES_AT, wide(params.table_bytes()).to_le_bytes());
        let checksum = checksum(&header[..CHECKSUM_AT], 0);
        put(&mut header, CHECKSUM_AT, checksum.to_le_bytes());
        (header, checksum)
    }

    /// Validates everything that does not require the table.
    pub(super) fn decode(header: &HeaderBytes) -> Result<Self, SnapshotError> {
        if take(header, MAGIC_AT) != MAGIC {
            return Err(not_a_snapshot());
        }
        let version = u16::from_le_bytes(take(header, VERSION_AT));
        if version != VERSION {
            let words = "a snapshot of version {}, but this release reads version {}";
            return Err(SnapshotError::new(Kind::Version, wide(VERSION_AT), words, [version.into(), VERSION.into()]));
        }
        let (stored, computed) = (u64::from_le_bytes(take(header, CHECKSUM_AT)), checksum(&header[..CHECKSUM_AT], 0));
        if stored != computed {
            return Err(SnapshotError::altered(Kind::HeaderChecksum, wide(CHECKSUM_AT), "header", stored, computed));
        }
        if is_growing(header) {
            let error = SnapshotError::new(Kind::OtherType, wide(TABLE_AT), "this is a filter that grows", []);
            return Err(error.with_remedy("read it with ElasticFilter or ElasticView"));
        }
        let params = params(header)?;
        let items = u64::from_le_bytes(take(header, ITEMS_AT));
        let slots = params.slots();
        let len = usize::try_from(items).ok().filter(|&len| len <= slots);
        let len = len.ok_or_else(|| parameter(ITEMS_AT, "{} items in {} slots", [items, wide(slots)]))?;
        let table_bytes = u64::from_le_bytes(take(header, TABLE_BYTES_AT));
        if table_bytes != wide(params.table_bytes()) {
            let words = "a table of {} bytes, but {} follow from the other fields";
            return Err(parameter(TABLE_BYTES_AT, words, [table_bytes, wide(params.table_bytes())]));
        }
        if take(header, RESERVED_AT) != [0; 8] {
            return Err(parameter(RESERVED_AT, "the reserved bytes are not zero", []));
        }
        Ok(Self {
            params,
            hasher: HasherId::from_number(u16::from_le_bytes(take(header, HASHER_AT))),
            len,
            #[cfg(any(feature = "std", feature = "serde"))]
            checksum: stored,
        })
    }
}

/// Is this the header of a filter that grows, if it is one?
pub(crate) fn is_growing(header: &HeaderBytes) -> bool {
    matches!(header[TABLE_AT], GROWING | GROWING_PACKED)
}

/// The length of the snapshot that begins with this header, of a filter of fixed size.
pub(crate) fn fixed_length(header: &HeaderBytes) -> Result<u64, SnapshotError> {
    Header::decode(header).map(|header| header.params.snapshot_bytes())
}

fn params(header: &HeaderBytes) -> Result<Params, SnapshotError> {
    let byte = |at| take::<1>(header, at)[0];
    let table = match byte(TABLE_AT) {
        SINGLE => TableKind::Single,
        PACKED => TableKind::Packed,
        other => return Err(parameter(TABLE_AT, "table kind {}: 0 is single, 1 is packed", [other.into()])),
    };
    let addressing = match byte(ADDRESSING_AT) {
        ANY_SIZE => Addressing::AnySize,
        POWER_OF_TWO => Addressing::PowerOfTwo,
        other => {
            return Err(parameter(ADDRESSING_AT, "addressing {}: 0 is any size, 1 is powers of two", [other.into()]));
        }
    };
    let (f, b) = (byte(FINGERPRINT_BITS_AT).into(), byte(BUCKET_SIZE_AT).into());
    let buckets = u64::from_le_bytes(take(header, BUCKETS_AT));
    let seed = u64::from_le_bytes(take(header, SEED_AT));
    Params::new(table, f, b, buckets, addressing, seed).map_err(|error| {
        let at = match error.parameter() {
            Parameter::FingerprintBits => FINGERPRINT_BITS_AT,
            Parameter::BucketSize => BUCKET_SIZE_AT,
            _ => BUCKETS_AT,
        };
        SnapshotError::params(Kind::Parameter, at, table, [f, b], addressing, buckets)
    })
}

/// XXH3 with 64 bits, the function of [`Xxh3`](crate::Xxh3), so that other readers need only one hash function.
pub(crate) fn checksum(bytes: &[u8], seed: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed)
}

/// The same checksum, computed incrementally.
pub(crate) struct Checksum(xxhash_rust::xxh3::Xxh3);

// Functions of their own: a piece is long, and inlined, each is kilobytes at every call.
impl Checksum {
    #[inline(never)]
    pub(crate) fn new(seed: u64) -> Self {
        Self(xxhash_rust::xxh3::Xxh3::with_seed(seed))
    }

    #[inline(never)]
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(&self) -> u64 {
        self.0.digest()
    }
}

pub(crate) fn not_a_snapshot() -> SnapshotError {
    SnapshotError::new(Kind::Magic, wide(MAGIC_AT), "these bytes do not begin as a koel snapshot does", [])
}

fn parameter<const N: usize>(at: usize, words: &'static str, numbers: [u64; N]) -> SnapshotError {
    SnapshotError::new(Kind::Parameter, wide(at), words, numbers)
}

fn put<const N: usize>(header: &mut HeaderBytes, at: usize, bytes: [u8; N]) {
    header[at..at + N].copy_from_slice(&bytes);
}

fn take<const N: usize>(header: &HeaderBytes, at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&header[at..at + N]);
    bytes
}

/// The offset in the snapshot of byte `at` of the table.
pub(super) fn in_table(at: u64) -> u64 {
    wide(HEADER_BYTES) + at
}

impl Params {
    /// The length in bytes of a snapshot of a filter with these parameters, however many items it holds: a header of 64 bytes,
    /// the table, and a trailer of 8 bytes (docs/FORMAT.md).
    ///
    /// # Example
    /// ```
    /// let filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// let params = filter.params();
    /// assert_eq!(params.snapshot_bytes(), 64 + params.table_bytes() as u64 + 8);
    /// assert_eq!(params.snapshot_bytes(), filter.to_bytes().len() as u64);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn snapshot_bytes(&self) -> u64 {
        in_table(wide(self.table_bytes())) + wide(TRAILER_BYTES)
    }
}
