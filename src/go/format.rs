//! The header of Go's files: layout and validation.

use alloc::{string::String, vec::Vec};

use super::GoError;
use crate::{
    bits::{low_half, wide},
    hash::{Hasher as _, HasherId, MetroHash64},
    params::{Addressing, DEFAULT_BUCKET_SIZE, ParamError, Parameter, Params, TableKind},
    snapshot::{SnapshotError, SnapshotErrorKind as Kind},
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
            return Err(parameter(VICTIM_BUCKET_AT, text!("the victim is in bucket {bucket}, but there are {buckets}")));
        }
        // Both are 0 if there never was a victim.
        let is_missing = fingerprint == 0 && (is_used || bucket != 0);
        if is_missing || u64::from(fingerprint) >= 1 << f {
            let what = text!("the victim's fingerprint is {fingerprint}, but those of {f} bits are 1 to {}", (1u64 << f) - 1);
            return Err(parameter(VICTIM_FINGERPRINT_AT, what));
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
            Some(other) => {
                return Err(parameter(TABLE_AT, text!("table type {other}: {SINGLE} is single, {PACKED} is packed")));
            }
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
            other => return Err(parameter(VICTIM_USED_AT, text!("the victim's flag is {other}: 0 is unused, 1 is used"))),
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
    let buckets = number(bytes, buckets_at).into();
    let params = Params::new(kind, f, b, buckets, Addressing::PowerOfTwo, SEED).map_err(|error| {
        let at = match error.parameter() {
            Parameter::FingerprintBits => fingerprint_bits_at,
            Parameter::BucketSize => bucket_size_at.unwrap_or(TABLE_AT),
            _ => buckets_at,
        };
        SnapshotError::new(refusal(&error, kind, f, b), wide(at), text!("{error}"))
    })?;
    if shares_bits(&params) {
        let what = text!("fingerprints of {f} bits in buckets of {b}: in Go's single table such slots share bits");
        return Err(SnapshotError::new(Kind::Aliasing, wide(fingerprint_bits_at), what));
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
        let what = text!("the bytes end too early: there are {given}, and there should be {expected}");
        return Err(SnapshotError::new(Kind::Length, given, what));
    }
    let what = text!("the filter ends here, and {} more bytes follow it", given - expected);
    Err(SnapshotError::new(Kind::TrailingBytes, expected, what).with_remedy("give exactly one file, without what follows"))
}

fn header_too_short(bytes: &[u8], header: usize) -> SnapshotError {
    let given = bytes.len();
    let what = text!("the bytes end too early: there are {given}, and the header alone has {header} or more");
    SnapshotError::new(Kind::Length, wide(given), what)
}

fn parameter(at: usize, what: String) -> SnapshotError {
    SnapshotError::new(Kind::Parameter, wide(at), what)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
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
