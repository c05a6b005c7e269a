//! From Go's bytes to a filter: nothing is believed.

use alloc::{format, string::String};

use super::{
    GoFilter,
    format::{Header, ITEMS_AT, header_bytes},
    order::Order,
    packed::{self, Refusal},
};
use crate::{
    bits::PADDING,
    bits::{index, wide},
    error::{SnapshotError, SnapshotErrorKind as Kind},
    filter::CuckooFilter,
    hash::MetroHash64,
    kernel::Kernel,
    params::Params,
    storage::Memory,
    table::AnyTable,
};

/// The filter that Go's `Encode` wrote, all of its bytes and nothing else.
///
/// Checks everything: whatever these bytes are, the answer is an error or a filter that keeps its promises. Takes time in
/// proportion to them, and memory for the table and, if it is a packed one, at most nine bits for each bucket besides.
///
/// # Errors
/// What is wrong, and where. Two kinds mean no damage: [`Aliasing`](Kind::Aliasing), a table that Go's library itself
/// corrupts, and [`Unsupported`](Kind::Unsupported), fingerprints of one bit or buckets of more than 16 slots.
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
    let memory = Memory::copied(table, PADDING).ok_or_else(|| refused(&params, &Refusal::OutOfMemory))?;
    let mut table = AnyTable::from_padded(&params, memory);
    let order = match &mut table {
        AnyTable::Single(_) => Order::default(),
        AnyTable::Packed(table) => packed::sort(params.buckets(), table).map_err(|refusal| refused(&params, &refusal))?,
    };
    // Sorted, it is a table that this library could have written.
    let taken = Kernel::best().taken(&table, 0..params.buckets()).unwrap_or_default();
    if taken != u64::from(items) {
        let what = format!("the table holds {taken} items, but the header says {items}");
        return Err(SnapshotError::new(Kind::Count, wide(ITEMS_AT), what));
    }
    Ok(GoFilter { filter: CuckooFilter::from_parts(params, table, index(taken), MetroHash64), victim, order })
}

/// Nobody writes a bit behind the last bucket.
fn check_end(params: &Params, table: &[u8], padding: &[u8]) -> Result<(), SnapshotError> {
    let used_bits = params.buckets() * u64::from(params.bucket_bits()) % 8;
    let last = table.last().map_or(0, |&byte| if used_bits == 0 { 0 } else { byte >> used_bits });
    let mut behind = core::iter::once(last).chain(padding.iter().copied());
    let Some(byte) = behind.position(|byte| byte != 0) else { return Ok(()) };
    let at = header_bytes(params) + table.len() - 1 + byte;
    Err(SnapshotError::new(Kind::Table, wide(at), String::from("bits beyond the last bucket are set")))
}

fn refused(params: &Params, refusal: &Refusal) -> SnapshotError {
    let start = wide(header_bytes(params));
    match refusal {
        Refusal::Codeword { bucket, codeword } => {
            let what = format!("bucket {bucket} has the codeword {codeword}, which is not in the codebook");
            SnapshotError::new(Kind::Table, start + bucket * u64::from(params.bucket_bits()) / 8, what)
        }
        Refusal::OutOfMemory => {
            let what = format!("memory for the table of {} bytes could not be had", params.table_bytes());
            SnapshotError::new(Kind::OutOfMemory, start, what)
        }
    }
}
