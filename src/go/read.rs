//! Reading Go's files from untrusted bytes.

use super::{
    GoFilter,
    format::{Header, ITEMS_AT, header_bytes},
    order::Order,
    packed::{self, Refusal},
};
use crate::{
    bits::{index, wide},
    filter::{CuckooFilter, RawFilter},
    hash::MetroHash64,
    params::{Params, TableKind},
    snapshot::{SnapshotError, SnapshotErrorKind as Kind},
    storage::{OutOfMemory, Owned},
};

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
        TableKind::Packed => packed::sort(&mut raw).map_err(|refusal| refused(&params, refusal))?,
    };
    // The buckets are sorted now, so the table is valid.
    let taken = raw.taken(0..params.buckets()).unwrap_or_default();
    if taken != u64::from(items) {
        let what = text!("the table holds {taken} items, but the header says {items}");
        return Err(SnapshotError::new(Kind::Count, wide(ITEMS_AT), what));
    }
    Ok(GoFilter { filter: CuckooFilter::from_raw(raw.with_len(index(taken)), MetroHash64), victim, order })
}

/// Checks that the bits behind the last bucket are zero.
fn check_end(params: &Params, table: &[u8], padding: &[u8]) -> Result<(), SnapshotError> {
    let used_bits = params.buckets() * u64::from(params.bucket_bits()) % 8;
    let last = table.last().map_or(0, |&byte| if used_bits == 0 { 0 } else { byte >> used_bits });
    let mut behind = core::iter::once(last).chain(padding.iter().copied());
    let Some(byte) = behind.position(|byte| byte != 0) else { return Ok(()) };
    let at = header_bytes(params) + table.len() - 1 + byte;
    Err(SnapshotError::new(Kind::Table, wide(at), text!("bits beyond the last bucket are set")))
}

fn refused(params: &Params, refusal: Refusal) -> SnapshotError {
    match refusal {
        Refusal::Codeword { bucket, codeword } => {
            let what = text!("bucket {bucket} has the codeword {codeword}, which is not in the codebook");
            let at = wide(header_bytes(params)) + bucket * u64::from(params.bucket_bits()) / 8;
            SnapshotError::new(Kind::Table, at, what)
        }
        Refusal::OutOfMemory(error) => error.into(),
    }
}
