//! The file format of Go's library: header layout and validation, slot order, reading and writing.

use alloc::vec::Vec;

use super::{GoError, GoFilter, WithVictim};
use crate::{
    bits::{self, PADDING, index, low_half, wide},
    filter::{CuckooFilter, RawFilter},
    hash::{Hasher, HasherId, MetroHash64, Uniform},
    message::text,
    params::{Addressing, DEFAULT_BUCKET_SIZE, ParamError, Params, TableKind},
    snapshot::{SnapshotError, SnapshotErrorKind as Kind, too_short, verify_table},
    storage::{OutOfMemory, Owned, reserved},
    table::{CODEWORD_BITS, Corrupt, Fingerprint, Pair},
};

/// The seed that Go's library always uses.
const SEED: u64 = 1337;
/// The most buckets of a file: the largest power of two that fits into four bytes.
const MAX_BUCKETS: u64 = 1 << 31;

// Offsets of the header's fields. Each field begins where the previous one ends. Only single tables have the bucket size, after the
// table type.
const ITEMS_AT: usize = 0;
const VICTIM_BUCKET_AT: usize = ITEMS_AT + 4;
const VICTIM_FINGERPRINT_AT: usize = VICTIM_BUCKET_AT + 4;
const VICTIM_USED_AT: usize = VICTIM_FINGERPRINT_AT + 4;
const TABLE_AT: usize = VICTIM_USED_AT + 1;
const BUCKET_SIZE_AT: usize = TABLE_AT + 1;
/// The header ends with the fingerprint length (one byte) and the number of buckets (four bytes).
const FINGERPRINT_BITS_BEFORE_END: usize = 5;
const BUCKETS_BEFORE_END: usize = 4;

const SINGLE: u8 = 0;
const PACKED: u8 = 1;

/// Returns the length of the header in bytes, which is the offset of the table.
const fn header_bytes(table: TableKind) -> usize {
    FINGERPRINT_BITS_BEFORE_END
        + match table {
            TableKind::Single => BUCKET_SIZE_AT + 1,
            TableKind::Packed => BUCKET_SIZE_AT,
        }
}

/// Returns the number of zero bytes after the table.
const fn padding(table: TableKind) -> usize {
    match table {
        TableKind::Single => 0,
        TableKind::Packed => 7,
    }
}

/// A fingerprint that Go could not place. If `is_used` is false, it is the last such fingerprint, which has been stored since, or
/// all fields are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Victim {
    bucket: u32,
    fingerprint: u32,
    pub is_used: bool,
}

impl Victim {
    /// Returns true if the victim has this fingerprint and one of these buckets. Ignores `is_used`.
    pub fn matches(self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        let bucket = u64::from(self.bucket);
        self.fingerprint == fingerprint.get() && (bucket == first || bucket == second)
    }

    /// Returns a hash that has the victim's bucket and fingerprint, by inverting Go's formulas. `None` if the victim is not used.
    pub fn hash(self) -> Option<Uniform> {
        let low = self.fingerprint.checked_sub(1).filter(|_| self.is_used)?;
        Some(Uniform(u64::from(self.bucket) << 32 | u64::from(low)))
    }

    fn check(self, params: &Params) -> Result<(), SnapshotError> {
        let Self { bucket, fingerprint, is_used } = self;
        let (buckets, f) = (params.buckets(), params.fingerprint_bits());
        if u64::from(bucket) >= buckets {
            return Err(invalid(VICTIM_BUCKET_AT, "the victim is in bucket {}, but there are {}", [bucket.into(), buckets]));
        }
        // Both are 0 if there never was a victim.
        let is_missing = fingerprint == 0 && (is_used || bucket != 0);
        if is_missing || u64::from(fingerprint) >= 1 << f {
            let message = "the victim's fingerprint is {}, but those of {} bits are 1 to {}";
            return Err(invalid(VICTIM_FINGERPRINT_AT, message, [fingerprint.into(), f.into(), (1 << f) - 1]));
        }
        Ok(())
    }
}

/// A validated header.
pub(super) struct Header {
    pub(super) params: Params,
    /// The number of items in the table, excluding the victim.
    pub(super) items: u32,
    pub(super) victim: Victim,
}

impl Header {
    /// Decodes the header, and validates everything that does not require the table, including the file's length.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let kind = match bytes.get(TABLE_AT) {
            None => return Err(header_too_short(bytes, header_bytes(TableKind::Packed))),
            Some(&SINGLE) => TableKind::Single,
            Some(&PACKED) => TableKind::Packed,
            Some(&other) => return Err(invalid(TABLE_AT, "table type {}: 0 is single, 1 is packed", [other.into()])),
        };
        if bytes.len() < header_bytes(kind) {
            return Err(header_too_short(bytes, header_bytes(kind)));
        }
        let params = params(bytes, kind)?;
        check_length(bytes, &params)?;
        let is_used = match bytes[VICTIM_USED_AT] {
            0 => false,
            1 => true,
            other => return Err(invalid(VICTIM_USED_AT, "the victim's flag is {}: 0 is unused, 1 is used", [other.into()])),
        };
        let victim =
            Victim { bucket: read_u32(bytes, VICTIM_BUCKET_AT), fingerprint: read_u32(bytes, VICTIM_FINGERPRINT_AT), is_used };
        victim.check(&params)?;
        Ok(Self { params, items: read_u32(bytes, ITEMS_AT), victim })
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
    let end = header_bytes(kind);
    let (fingerprint_bits_at, buckets_at) = (end - FINGERPRINT_BITS_BEFORE_END, end - BUCKETS_BEFORE_END);
    let b = if kind == TableKind::Single { bytes[BUCKET_SIZE_AT].into() } else { DEFAULT_BUCKET_SIZE };
    let f = bytes[fingerprint_bits_at].into();
    let addressing = Addressing::PowerOfTwo;
    let buckets = read_u32(bytes, buckets_at).into();
    let offsets = [fingerprint_bits_at, BUCKET_SIZE_AT, buckets_at];
    let params = Params::new(kind, f, b, buckets, addressing, SEED)
        .map_err(|error| SnapshotError::params(error_kind(error, kind, f, b), offsets, error))?;
    if shares_bits(&params) {
        let message = "fingerprints of {} bits in buckets of {}: in Go's single table such slots share bits";
        return Err(SnapshotError::new(Kind::Aliasing, wide(fingerprint_bits_at), message, [f.into(), b.into()]));
    }
    Ok(params)
}

/// Returns the kind of error for refused parameters. Go's single table supports more than this crate does: larger buckets and
/// fingerprints of one bit. Files with these are unsupported, not corrupt.
fn error_kind(error: ParamError, kind: TableKind, f: u32, b: u32) -> Kind {
    let is_about_slots = matches!(error, ParamError::FingerprintBits { .. } | ParamError::BucketSize { .. });
    if kind == TableKind::Packed && (1..4).contains(&f) {
        // The codeword has 12 bits, more than the whole bucket of 4(f − 1) bits.
        Kind::Aliasing
    } else if is_about_slots && kind == TableKind::Single && (1..=32).contains(&f) && b > 0 {
        Kind::Unsupported
    } else {
        Kind::Parameter
    }
}

/// Returns true if slots of Go's single table overlap. For fingerprints of 2, 4 and 12 bits, Go's library computes the position of
/// a slot inside its byte from the slot's index in the bucket. That is correct only in the first bucket, or if buckets are whole
/// bytes; otherwise slots overlap and items are lost.
fn shares_bits(params: &Params) -> bool {
    let slots_per_whole_bytes = match (params.table(), params.fingerprint_bits()) {
        (TableKind::Single, 2) => 4,
        (TableKind::Single, 4 | 12) => 2,
        _ => 1,
    };
    params.buckets() > 1 && !params.bucket_size().is_multiple_of(slots_per_whole_bytes)
}

/// Returns the header of a file for a filter with these parameters, this hasher and this many items, if Go's library can read it.
fn header(params: &Params, hasher: HasherId, len: u64, victim: Victim) -> Result<Header, GoError> {
    if params.addressing() != Addressing::PowerOfTwo {
        return Err(GoError::Addressing(params.addressing()));
    }
    if hasher != MetroHash64.id() {
        return Err(GoError::Hasher(hasher));
    }
    if params.seed() != SEED {
        return Err(GoError::Seed(params.seed()));
    }
    if params.buckets() > MAX_BUCKETS {
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
    let around = header_bytes(params.table()) + padding(params.table());
    let (given, expected) = (wide(bytes.len()), wide(params.table_bytes()) + wide(around));
    if given == expected {
        return Ok(());
    }
    if given < expected {
        return Err(too_short(given, expected));
    }
    let message = "the filter ends here, and {} more bytes follow it";
    let error = SnapshotError::new(Kind::TrailingBytes, expected, message, [given - expected]);
    Err(error.with_remedy("give exactly one file, without what follows"))
}

fn header_too_short(bytes: &[u8], header: usize) -> SnapshotError {
    let given = wide(bytes.len());
    let message = "the bytes end too early: there are {}, and the header alone has {} or more";
    SnapshotError::new(Kind::Length, given, message, [given, wide(header)])
}

fn invalid<const N: usize>(at: usize, message: &'static str, numbers: [u64; N]) -> SnapshotError {
    SnapshotError::new(Kind::Parameter, wide(at), message, numbers)
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |number| u32::from_le_bytes(*number))
}

// The order of slots in a packed bucket. Both libraries sort fingerprints by their low nibbles, so their codewords are equal. Go
// stores fingerprints with equal low nibbles in any order; this library sorts them by their high parts.

/// Go's order of the slots in each bucket, one byte per bucket, as [`ranks`] returns it. Empty if all buckets were sorted.
///
/// This is only a hint: a bucket may have changed since, so [`arrange`] checks each order before it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order(Vec<u8>);

/// The ranks of four values that are sorted.
const SORTED: u8 = 0b11_10_01_00;

/// Returns the ranks of four values in sorted order, two bits each, that of the first value in the lowest bits.
fn ranks(values: [u32; 4]) -> u8 {
    let keys = values.map(|value| value.rotate_right(4));
    (0..4).rev().fold(0, |ranks, slot| {
        let before = |&other: &usize| (keys[other], other) < (keys[slot], slot);
        ranks << 2 | (0..4).filter(before).fold(0, |rank, _| rank + 1)
    })
}

/// Returns the values in this library's slot order: by low nibbles, then by high parts.
fn sorted(mut values: [u32; 4]) -> [u32; 4] {
    values.sort_unstable_by_key(|&value| value.rotate_right(4));
    values
}

/// Arranges sorted values by these ranks. Returns `None` if Go cannot store them in this order.
fn arrange(ranks: u8, sorted: [u32; 4]) -> Option<[u32; 4]> {
    let values = [0, 2, 4, 6].map(|shift| sorted[usize::from(ranks >> shift & 3)]);
    is_go_order(values).then_some(values)
}

/// Returns true if low nibbles ascend, as they do in Go's buckets.
fn is_go_order(values: [u32; 4]) -> bool {
    values.is_sorted_by_key(|value| value & 15)
}

impl Order {
    /// Sorts every bucket of a packed table that is only out of order, and returns the former order.
    fn sort(filter: &mut RawFilter) -> Result<Self, OutOfMemory> {
        let params = *filter.params();
        let mut order = Vec::new();
        for bucket in 0..params.buckets() {
            // Most buckets are sorted, and finding out what is wrong with one takes longer.
            if filter.taken(bucket..bucket + 1).is_none()
                && let Some((_, Corrupt::Order)) = filter.first_corrupt(bucket..bucket + 1)
            {
                if order.is_empty() {
                    let buckets = index(params.buckets());
                    order = reserved(buckets)?;
                    order.resize(buckets, SORTED);
                }
                let values = filter.packed_values(bucket);
                order[index(bucket)] = ranks(values);
                put_high_parts(&params, filter.bytes_mut(), bucket, sorted(values));
            }
        }
        Ok(Self(order))
    }

    /// Restores Go's slot order in `bytes`, a copy of the table and its padding. Skips buckets whose fingerprints Go cannot store
    /// in that order any more.
    fn restore(&self, filter: &RawFilter, bytes: &mut [u8]) {
        for (bucket, &ranks) in (0..).zip(&self.0).filter(|&(_, &ranks)| ranks != SORTED) {
            if let Some(values) = arrange(ranks, filter.packed_values(bucket)) {
                put_high_parts(filter.params(), bytes, bucket, values);
            }
        }
    }

    /// Returns the heap memory in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.0.capacity()
    }
}

/// Writes the high parts of the four fingerprints of a bucket.
fn put_high_parts(params: &Params, bytes: &mut [u8], bucket: u64, values: [u32; 4]) {
    let width = params.fingerprint_bits() - 4;
    let first = bucket * u64::from(params.bucket_bits()) + u64::from(CODEWORD_BITS);
    for (value, slot) in values.into_iter().zip(0..) {
        bits::set(bytes, first + slot * u64::from(width), width, u64::from(value >> 4));
    }
}

// Reading, from untrusted bytes.

/// Reads a filter from the output of Go's `Encode`. Nothing may follow that output.
///
/// Safe for untrusted input: validates everything. Takes time proportional to the input. Allocates memory for the table and, if it
/// is packed, at most one more byte per bucket.
///
/// # Errors
/// If the bytes are not a valid file. The error says what is wrong and at which offset. Two kinds do not mean that the file is
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
    let start = header_bytes(params.table());
    let (table, padding) = bytes[start..].split_at(params.table_bytes());
    if let Some(byte) = padding.iter().position(|&byte| byte != 0) {
        let at = wide(start + table.len() + byte);
        return Err(SnapshotError::new(Kind::Table, at, "bits beyond the last bucket are set", []));
    }
    let storage = Owned::copied(table).ok_or(OutOfMemory::of(table.len()))?;
    let mut core = RawFilter::from_parts(params, storage, items.into());
    let order = match params.table() {
        TableKind::Single => Order::default(),
        TableKind::Packed => Order::sort(&mut core)?,
    };
    // The buckets are sorted now, so all that is valid for Go's library is valid for this one.
    let wrong_count = text!("the table holds {} items, but the header says {}");
    verify_table(&core, wide(start), wide(ITEMS_AT), wrong_count)?;
    let filter = CuckooFilter { core, hasher: MetroHash64 };
    Ok(GoFilter { core: WithVictim { filter, victim, order }, hasher: MetroHash64 })
}

// Writing.

/// Writes a filter as a file for Go's `Decode`, without a victim. Convert a view with [`to_filter`](crate::FilterView::to_filter)
/// first.
///
/// # Errors
/// If Go's library cannot read the filter: it requires `PowerOfTwo` addressing, `MetroHash64`, the seed 1337, at most 2³¹ buckets
/// and fewer than 2³² items. If fingerprints have 2, 4 or 12 bits and buckets are not whole bytes: Go's single table loses items
/// then. If items have copies that are counted beside the table. If memory for the bytes cannot be allocated.
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
pub fn encode<H: Hasher>(filter: &CuckooFilter<H>) -> Result<Vec<u8>, GoError> {
    file(filter, Victim::default(), &Order::default())
}

/// Returns the header of a file for a filter, or an error if Go's library cannot read such a file.
pub(super) fn header_of<H: Hasher>(filter: &CuckooFilter<H>, victim: Victim) -> Result<Header, GoError> {
    if let (copies @ 1.., _) = filter.core.extra_totals() {
        return Err(GoError::Copies(copies));
    }
    header(&filter.params(), filter.hasher().id(), wide(filter.len()), victim)
}

pub(super) fn file<H: Hasher>(filter: &CuckooFilter<H>, victim: Victim, order: &Order) -> Result<Vec<u8>, GoError> {
    let (header, params) = (header_of(filter, victim)?, &filter.params());
    let start = header_bytes(params.table());
    let end = start + params.table_bytes();
    let mut bytes = reserved(end + PADDING).map_err(GoError::OutOfMemory)?;
    header.encode(&mut bytes);
    bytes.extend_from_slice(filter.core.table());
    bytes.resize(end + PADDING, 0);
    order.restore(&filter.core, &mut bytes[start..]);
    bytes.truncate(end + padding(params.table()));
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(table: TableKind, f: u32, b: u32, buckets: u64) -> Params {
        Params::new(table, f, b, buckets, Addressing::PowerOfTwo, SEED).unwrap()
    }

    /// Tries every order of four values, with equal ones among them.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn every_order_that_go_can_store_is_restored() {
        for n in 0..256_usize {
            for highs_and_lows in [[0x10, 0x20, 0x30, 0x40], [0, 0x13, 3, 5], [7, 7, 0x17, 0xffff_fff7]] {
                let values = [n, n >> 2, n >> 4, n >> 6].map(|n| highs_and_lows[n & 3]);
                let ranks = ranks(values);
                assert_eq!(arrange(ranks, sorted(values)), is_go_order(values).then_some(values));
                assert_eq!(ranks == SORTED, values == sorted(values), "{values:x?}");
                // An outdated order never changes the contents of a bucket.
                for changed in [[0x31, 2, 1, 0x11], [3; 4], [0x40, 0x30, 0x20, 0x10]].map(sorted) {
                    let restored = arrange(ranks, changed);
                    assert!(restored.is_none_or(|restored| is_go_order(restored) && sorted(restored) == changed));
                }
            }
        }
    }

    /// Checks the limits without allocating tables of that size.
    #[test]
    fn counts_that_need_more_than_four_bytes_are_refused() {
        let header = |buckets, len| header(&params(TableKind::Packed, 13, 4, buckets), MetroHash64.id(), len, Victim::default());
        assert!(header(1 << 20, u64::from(u32::MAX)).is_ok());
        assert!(matches!(header(1 << 20, 1 << 32), Err(GoError::Items(0x1_0000_0000))));
        if cfg!(target_pointer_width = "64") {
            assert!(header(1 << 31, 0).is_ok());
            assert!(matches!(header(1 << 32, 0), Err(GoError::Buckets(0x1_0000_0000))));
        }
    }

    /// Compares the bit position that Go computes from the slot's index with the actual one.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn slots_share_bits_where_go_miscomputes_their_position() {
        for f in TableKind::Single.fingerprint_bits() {
            let slots_per_bytes = match f {
                2 => 4,
                4 | 12 => 2,
                _ => 0,
            };
            for b in TableKind::Single.bucket_sizes() {
                for buckets in [1, 2, 8] {
                    let shared = (0..buckets).any(|bucket| {
                        (0..b).any(|slot| {
                            let position = (bucket as u32 * b + slot) * f % 8;
                            slots_per_bytes != 0 && position != slot % slots_per_bytes * (f % 8)
                        })
                    });
                    assert_eq!(shares_bits(&params(TableKind::Single, f, b, buckets)), shared, "f {f}, b {b}, m {buckets}");
                }
            }
        }
        assert!(!shares_bits(&params(TableKind::Packed, 4, 4, 2)) && !shares_bits(&params(TableKind::Packed, 12, 4, 2)));
    }
}
