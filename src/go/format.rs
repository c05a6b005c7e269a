//! Go's files: the layout and validation of the header, reading and writing.

use alloc::vec::Vec;

use super::{
    GoError, GoFilter, WithVictim,
    order::{self, Order, Refusal},
};
use crate::{
    bits::{PADDING, index, low_half, wide},
    filter::{CuckooFilter, RawFilter},
    hash::{Hasher, HasherId, MetroHash64},
    params::{Addressing, DEFAULT_BUCKET_SIZE, ParamError, Parameter, Params, TableKind},
    snapshot::{SnapshotError, SnapshotErrorKind as Kind, too_short, verify},
    storage::{OutOfMemory, Owned, Storage, reserved},
    table::{Fingerprint, Pair},
};

/// The seed that Go's library always uses.
pub(super) const SEED: u64 = 1337;
/// The largest power of two that fits into four bytes.
pub(super) const MOST_BUCKETS: u64 = 1 << 31;
pub(super) const MOST_ITEMS: u64 = u32::MAX as u64;

// Each field begins where the previous one ends. From `TABLE_AT` on, the layouts of the two tables differ.
pub(super) const ITEMS_AT: usize = 0;
const VICTIM_BUCKET_AT: usize = ITEMS_AT + 4;
const VICTIM_FINGERPRINT_AT: usize = VICTIM_BUCKET_AT + 4;
const VICTIM_USED_AT: usize = VICTIM_FINGERPRINT_AT + 4;
const TABLE_AT: usize = VICTIM_USED_AT + 1;
const TABLE_END: usize = TABLE_AT + 1;

const SINGLE: u8 = 0;
const PACKED: u8 = 1;

/// The offsets of the fields behind `TABLE_AT`.
struct Offsets {
    /// `None` for the packed table, which has no such field.
    bucket_size_at: Option<usize>,
    fingerprint_bits_at: usize,
    buckets_at: usize,
    header: usize,
    /// Zero bytes behind the table.
    padding: usize,
}

const fn offsets(table: TableKind) -> Offsets {
    let (bucket_size_at, fingerprint_bits_at, padding) = match table {
        TableKind::Single => (Some(TABLE_END), TABLE_END + 1, 0),
        TableKind::Packed => (None, TABLE_END, 7),
    };
    let buckets_at = fingerprint_bits_at + 1;
    Offsets { bucket_size_at, fingerprint_bits_at, buckets_at, header: buckets_at + 4, padding }
}

/// The number of zero bytes behind a table.
pub(super) fn padding(params: &Params) -> usize {
    offsets(params.table()).padding
}

/// The length of the header, which is the offset of the table.
pub(super) fn header_bytes(params: &Params) -> usize {
    offsets(params.table()).header
}

/// The item for which Go found no slot or, if `is_used` is false, the last one, which has been stored since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Victim {
    bucket: u32,
    fingerprint: u32,
    pub(super) is_used: bool,
}

impl Victim {
    /// True if the victim has this fingerprint and one of these buckets. Ignores `is_used`.
    pub(super) fn is(self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        let bucket = u64::from(self.bucket);
        self.fingerprint == fingerprint.get() && (bucket == first || bucket == second)
    }

    /// A hash with the victim's bucket and fingerprint: the inverse of Go's formulas.
    pub(super) fn hash(self) -> Option<u64> {
        let low = self.fingerprint.checked_sub(1).filter(|_| self.is_used)?;
        Some(u64::from(self.bucket) << 32 | u64::from(low))
    }

    fn check(self, params: &Params) -> Result<(), SnapshotError> {
        let Self { bucket, fingerprint, is_used } = self;
        let (buckets, f) = (params.buckets(), params.fingerprint_bits());
        if u64::from(bucket) >= buckets {
            return Err(parameter(VICTIM_BUCKET_AT, "the victim is in bucket {}, but there are {}", [bucket.into(), buckets]));
        }
        // Both are 0 if there never was a victim.
        let is_missing = fingerprint == 0 && (is_used || bucket != 0);
        if is_missing || u64::from(fingerprint) >= 1 << f {
            let words = "the victim's fingerprint is {}, but those of {} bits are 1 to {}";
            return Err(parameter(VICTIM_FINGERPRINT_AT, words, [fingerprint.into(), f.into(), (1 << f) - 1]));
        }
        Ok(())
    }
}

/// A validated header.
pub(super) struct Header {
    pub(super) params: Params,
    /// The number of items in the table, without the victim.
    pub(super) items: u32,
    pub(super) victim: Victim,
}

impl Header {
    /// Validates everything that does not require the table, including the total length.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let kind = match bytes.get(TABLE_AT) {
            None => return Err(header_too_short(bytes, offsets(TableKind::Packed).header)),
            Some(&SINGLE) => TableKind::Single,
            Some(&PACKED) => TableKind::Packed,
            Some(&other) => return Err(parameter(TABLE_AT, "table type {}: 0 is single, 1 is packed", [other.into()])),
        };
        let header = offsets(kind).header;
        if bytes.len() < header {
            return Err(header_too_short(bytes, header));
        }
        let params = params(bytes, kind)?;
        check_length(bytes, &params)?;
        let is_used = match bytes[VICTIM_USED_AT] {
            0 => false,
            1 => true,
            other => return Err(parameter(VICTIM_USED_AT, "the victim's flag is {}: 0 is unused, 1 is used", [other.into()])),
        };
        let victim =
            Victim { bucket: number(bytes, VICTIM_BUCKET_AT), fingerprint: number(bytes, VICTIM_FINGERPRINT_AT), is_used };
        victim.check(&params)?;
        Ok(Self { params, items: number(bytes, ITEMS_AT), victim })
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) {
        let Self { params, items, victim } = self;
        for number in [*items, victim.bucket, victim.fingerprint] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.push(u8::from(victim.is_used));
        #[expect(clippy::cast_possible_truncation, reason = "neither exceeds 32")]
        let (f, b) = (params.fingerprint_bits() as u8, params.bucket_size() as u8);
        match params.table() {
            TableKind::Single => bytes.extend_from_slice(&[SINGLE, b, f]),
            TableKind::Packed => bytes.extend_from_slice(&[PACKED, f]),
        }
        bytes.extend_from_slice(&low_half(params.buckets()).to_le_bytes());
    }
}

fn params(bytes: &[u8], kind: TableKind) -> Result<Params, SnapshotError> {
    let Offsets { bucket_size_at, fingerprint_bits_at, buckets_at, .. } = offsets(kind);
    let b = bucket_size_at.map_or(DEFAULT_BUCKET_SIZE, |at| bytes[at].into());
    let f = bytes[fingerprint_bits_at].into();
    let addressing = Addressing::PowerOfTwo;
    let buckets = number(bytes, buckets_at).into();
    let params = Params::new(kind, f, b, buckets, addressing, SEED).map_err(|error| {
        let at = match error.parameter() {
            Parameter::FingerprintBits => fingerprint_bits_at,
            Parameter::BucketSize => bucket_size_at.unwrap_or(TABLE_AT),
            _ => buckets_at,
        };
        SnapshotError::params(refusal(&error, kind, f, b), at, kind, [f, b], addressing, buckets)
    })?;
    if shares_bits(&params) {
        let words = "fingerprints of {} bits in buckets of {}: in Go's single table such slots share bits";
        return Err(SnapshotError::new(Kind::Aliasing, wide(fingerprint_bits_at), words, [f.into(), b.into()]));
    }
    Ok(params)
}

/// Go's single table also supports larger buckets and shorter fingerprints; such files are not corrupt.
fn refusal(error: &ParamError, kind: TableKind, f: u32, b: u32) -> Kind {
    let is_about_slots = matches!(error.parameter(), Parameter::FingerprintBits | Parameter::BucketSize);
    if kind == TableKind::Packed && (1..4).contains(&f) {
        // The codeword of 12 bits is longer than the bucket of 4(f − 1) bits.
        Kind::Aliasing
    } else if is_about_slots && kind == TableKind::Single && (1..=32).contains(&f) && b > 0 {
        Kind::Unsupported
    } else {
        Kind::Parameter
    }
}

/// True if slots of Go's single table overlap. For fingerprints of 2, 4 and 12 bits, Go's library computes the position of a slot
/// inside its byte from the slot's number in the bucket. That is correct only in the first bucket, or if buckets are whole bytes;
/// otherwise slots overlap and items are lost.
fn shares_bits(params: &Params) -> bool {
    let slots_of_whole_bytes = match (params.table(), params.fingerprint_bits()) {
        (TableKind::Single, 2) => 4,
        (TableKind::Single, 4 | 12) => 2,
        _ => 1,
    };
    params.buckets() > 1 && !params.bucket_size().is_multiple_of(slots_of_whole_bytes)
}

/// The header for a filter, or an error if Go's library cannot read the filter.
pub(super) fn header(params: &Params, hasher: HasherId, len: u64, victim: Victim) -> Result<Header, GoError> {
    if params.addressing() != Addressing::PowerOfTwo {
        return Err(GoError::Addressing(params.addressing()));
    }
    if hasher != MetroHash64.id() {
        return Err(GoError::Hasher(hasher));
    }
    if params.seed() != SEED {
        return Err(GoError::Seed(params.seed()));
    }
    if params.buckets() > MOST_BUCKETS {
        return Err(GoError::Buckets(params.buckets()));
    }
    if shares_bits(params) {
        let (fingerprint_bits, bucket_size) = (params.fingerprint_bits(), params.bucket_size());
        return Err(GoError::Aliasing { fingerprint_bits, bucket_size });
    }
    let items = u32::try_from(len).map_err(|_| GoError::Items(len))?;
    Ok(Header { params: *params, items, victim })
}

fn check_length(bytes: &[u8], params: &Params) -> Result<(), SnapshotError> {
    let Offsets { header, padding, .. } = offsets(params.table());
    let (given, expected) = (wide(bytes.len()), wide(params.table_bytes()) + wide(header + padding));
    if given == expected {
        return Ok(());
    }
    if given < expected {
        return Err(too_short(given, expected));
    }
    let words = "the filter ends here, and {} more bytes follow it";
    let error = SnapshotError::new(Kind::TrailingBytes, expected, words, [given - expected]);
    Err(error.with_remedy("give exactly one file, without what follows"))
}

fn header_too_short(bytes: &[u8], header: usize) -> SnapshotError {
    let given = wide(bytes.len());
    let words = "the bytes end too early: there are {}, and the header alone has {} or more";
    SnapshotError::new(Kind::Length, given, words, [given, wide(header)])
}

fn parameter<const N: usize>(at: usize, words: &'static str, numbers: [u64; N]) -> SnapshotError {
    SnapshotError::new(Kind::Parameter, wide(at), words, numbers)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

// Reading, from untrusted bytes.

/// Reads a filter from the output of Go's `Encode`, with nothing after it.
///
/// Safe for untrusted input: validates everything. Takes time proportional to the input. Allocates memory for the table and, if
/// it is packed, at most nine bits more per bucket.
///
/// # Errors
/// If the bytes are not a valid file; the error says what is wrong and at which offset. Two kinds do not mean that the file is
/// corrupt: [`Aliasing`](Kind::Aliasing) is a table that Go's library itself corrupts, and [`Unsupported`](Kind::Unsupported) is
/// one with fingerprints of one bit or more than 16 slots per bucket.
///
/// # Example
/// ```
/// // An empty filter: one bucket of four slots, fingerprints of eight bits.
/// let go = koel::go::decode(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 8, 1, 0, 0, 0, 0, 0, 0, 0])?;
/// assert!(go.is_empty() && !go.contains("alice"));
/// # Ok::<(), koel::SnapshotError>(())
/// ```
pub fn decode(bytes: &[u8]) -> Result<GoFilter, SnapshotError> {
    let Header { params, items, victim } = Header::decode(bytes)?;
    let start = header_bytes(&params);
    let (table, padding) = bytes[start..].split_at(params.table_bytes());
    check_end(&params, table, padding)?;
    let storage = Owned::copied(table).ok_or(OutOfMemory::of(table.len()))?;
    let mut raw = RawFilter::from_parts(params, storage, 0);
    let order = match params.table() {
        TableKind::Single => Order::default(),
        TableKind::Packed => order::sort(&mut raw).map_err(|refusal| refused(&params, refusal))?,
    };
    // The buckets are sorted now, so the table is valid.
    let taken = raw.taken(0..params.buckets()).unwrap_or_default();
    if taken != u64::from(items) {
        let words = "the table holds {} items, but the header says {}";
        return Err(SnapshotError::new(Kind::Count, wide(ITEMS_AT), words, [taken, items.into()]));
    }
    let filter = CuckooFilter { core: raw.with_len(index(taken)), hasher: MetroHash64 };
    Ok(GoFilter { core: WithVictim { filter, victim, order }, hasher: MetroHash64 })
}

/// Checks that the bits behind the last bucket are zero.
fn check_end(params: &Params, table: &[u8], padding: &[u8]) -> Result<(), SnapshotError> {
    let used_bits = params.buckets() * u64::from(params.bucket_bits()) % 8;
    let last = table.last().map_or(0, |&byte| if used_bits == 0 { 0 } else { byte >> used_bits });
    let mut behind = core::iter::once(last).chain(padding.iter().copied());
    let Some(byte) = behind.position(|byte| byte != 0) else { return Ok(()) };
    let at = header_bytes(params) + table.len() - 1 + byte;
    Err(SnapshotError::new(Kind::Table, wide(at), "bits beyond the last bucket are set", []))
}

fn refused(params: &Params, refusal: Refusal) -> SnapshotError {
    match refusal {
        Refusal::Codeword { bucket, codeword } => {
            let words = "bucket {} has the codeword {}, which is not in the codebook";
            let at = wide(header_bytes(params)) + bucket * u64::from(params.bucket_bits()) / 8;
            SnapshotError::new(Kind::Table, at, words, [bucket, codeword.into()])
        }
        Refusal::OutOfMemory(error) => error.into(),
    }
}

// Writing.

/// Writes a filter as a file for Go's `Decode`, without a victim. A view of a snapshot is [verified](crate::FilterView::verify)
/// first.
///
/// # Errors
/// If Go's library cannot read the filter: it requires `PowerOfTwo` addressing, `MetroHash64`, the seed 1337, at most 2³¹ buckets
/// and fewer than 2³² items. Its single table also loses items if fingerprints have 2, 4 or 12 bits and buckets are not whole
/// bytes. If a view's snapshot is corrupt.
///
/// # Panics
/// If the memory for the bytes cannot be allocated.
///
/// # Example
/// ```
/// use koel::{Addressing, CuckooFilter, go::{self, MetroHash64}};
/// let builder = CuckooFilter::builder().false_positive_rate(0.001).hasher(MetroHash64).seed(1337);
/// let filter = builder.addressing(Addressing::PowerOfTwo).build_from_items(&["alice", "bob"])?;
/// let file = go::encode(&filter)?;
/// assert!(go::decode(&file)?.filter() == &filter);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub fn encode<H: Hasher, S: Storage>(filter: &CuckooFilter<H, S>) -> Result<Vec<u8>, GoError> {
    let victim = Victim::default();
    // Cheap checks first: `verify` reads the whole table.
    header(&filter.params(), filter.hasher().id(), wide(filter.len()), victim)?;
    // Go's files have no checksum that would reveal corruption later.
    verify(&filter.core).map_err(GoError::Snapshot)?;
    file(filter, victim, &Order::default())
}

pub(super) fn file<H: Hasher, S: Storage>(
    filter: &CuckooFilter<H, S>,
    victim: Victim,
    order: &Order,
) -> Result<Vec<u8>, GoError> {
    let params = &filter.params();
    let header = self::header(params, filter.hasher().id(), wide(filter.len()), victim)?;
    let start = header_bytes(params);
    let end = start + params.table_bytes();
    let mut bytes = reserved(end + PADDING).map_err(GoError::OutOfMemory)?;
    header.encode(&mut bytes);
    bytes.extend_from_slice(filter.core.table());
    if params.table() == TableKind::Packed {
        bytes.resize(end + PADDING, 0);
        order::restore(order, &filter.core, &mut bytes[start..]);
        bytes.truncate(end + padding(params));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(table: TableKind, f: u32, b: u32, buckets: u64) -> Params {
        Params::new(table, f, b, buckets, Addressing::PowerOfTwo, SEED).unwrap()
    }

    /// Tests the limits without allocating such tables.
    #[test]
    fn four_bytes_are_not_enough_for_everything() {
        let header = |buckets, len| header(&params(TableKind::Packed, 13, 4, buckets), MetroHash64.id(), len, Victim::default());
        assert!(header(1 << 20, u64::from(u32::MAX)).is_ok());
        assert!(matches!(header(1 << 20, 1 << 32), Err(GoError::Items(0x1_0000_0000))));
        if cfg!(target_pointer_width = "64") {
            assert!(header(1 << 31, 0).is_ok());
            assert!(matches!(header(1 << 32, 0), Err(GoError::Buckets(0x1_0000_0000))));
        }
    }

    /// Compares the position that Go computes from the slot's number with the real one.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn slots_share_bits_where_go_is_wrong_about_their_place() {
        for f in TableKind::Single.fingerprint_bits() {
            let slots_in_bytes = match f {
                2 => 4,
                4 | 12 => 2,
                _ => 0,
            };
            for b in TableKind::Single.bucket_sizes() {
                for buckets in [1, 2, 8] {
                    let is_wrong = (0..buckets).any(|bucket| {
                        (0..b).any(|slot| {
                            let place = (bucket as u32 * b + slot) * f % 8;
                            slots_in_bytes != 0 && place != slot % slots_in_bytes * (f % 8)
                        })
                    });
                    assert_eq!(shares_bits(&params(TableKind::Single, f, b, buckets)), is_wrong, "f {f}, b {b}, m {buckets}");
                }
            }
        }
        assert!(!shares_bits(&params(TableKind::Packed, 4, 4, 2)) && !shares_bits(&params(TableKind::Packed, 12, 4, 2)));
    }
}
