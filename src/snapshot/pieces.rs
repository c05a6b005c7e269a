//! Reading a snapshot from untrusted input in pieces, without a second copy of the table. Memory grows with the bytes that
//! arrive, not with what the header claims.

use alloc::vec::Vec;

use super::{
    SnapshotError,
    format::{Checksum, HEADER_BYTES, Header, TRAILER_BYTES, in_table},
    read::{header_too_short, open_header, too_short},
    source::{LEAST, MOST, Source},
    verify,
};
use crate::{
    bits::{PADDING, wide},
    filter::{CuckooFilter, RawFilter},
    hash::{Hasher, HasherId},
    params::Params,
    storage::{OutOfMemory, Owned},
};

/// Reads one snapshot, and not one byte more.
pub(super) fn read<H: Hasher>(
    source: &mut impl Source,
    hasher: impl FnOnce(HasherId) -> Option<H>,
) -> Result<CuckooFilter<H>, SnapshotError> {
    let mut header = [0; HEADER_BYTES];
    let read = source.fill(&mut header, 0)?;
    if read < HEADER_BYTES {
        return Err(header_too_short(&header[..read]));
    }
    let (Header { params, len, checksum, .. }, hasher) = open_header(&header, hasher)?;
    let storage = read_table(source, &params, checksum)?;
    let raw = RawFilter::from_parts(params, storage, len);
    verify::table(&raw, None)?;
    Ok(CuckooFilter::from_raw(raw, hasher))
}

/// Reads the table and compares its checksum. Returns it with its padding.
fn read_table(source: &mut impl Source, params: &Params, seed: u64) -> Result<Owned, SnapshotError> {
    let (whole, expected) = (params.table_bytes(), params.snapshot_bytes());
    let mut table = Vec::new();
    let mut checksum = Checksum::new(seed);
    while table.len() < whole {
        let start = table.len();
        let end = whole.min(start + start.clamp(LEAST, MOST));
        if end + PADDING > table.capacity() {
            let enough = whole.min(end.max(start + start / 4)) + PADDING;
            table.try_reserve_exact(enough - start).map_err(|_| SnapshotError::from(OutOfMemory::of(enough)))?;
        }
        table.resize(end, 0);
        let read = source.fill(&mut table[start..], in_table(wide(start)))?;
        if start + read < end {
            return Err(too_short(in_table(wide(start + read)), expected));
        }
        checksum.update(&table[start..]);
    }
    let mut trailer = [0; TRAILER_BYTES];
    let offset = in_table(wide(whole));
    let read = source.fill(&mut trailer, offset)?;
    if read < TRAILER_BYTES {
        return Err(too_short(offset + wide(read), expected));
    }
    verify::check_sum(offset, u64::from_le_bytes(trailer), checksum.finish())?;
    table.resize(whole + PADDING, 0);
    Owned::from_vec(table).ok_or_else(|| OutOfMemory::of(whole + PADDING).into())
}
