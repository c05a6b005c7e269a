//! From bytes that come piece by piece to a filter: with no second copy of the table, whatever its size.

use alloc::vec::Vec;

use super::{
    format::{Checksum, HEADER_BYTES, Header, TRAILER_BYTES, in_table},
    read::{header_too_short, open_header, out_of_memory, wrong_length},
    verify,
};
use crate::{
    bits::PADDING,
    bits::wide,
    error::SnapshotError,
    filter::CuckooFilter,
    hash::{Hasher, HasherId},
    params::Params,
    storage::Memory,
    table::AnyTable,
};

/// Bytes of a table that are taken at a time at first, before it is known whether there are more.
const LEAST: usize = 32 << 10;

/// Bytes that are taken or given at a time. They are still in the cache when their checksum is taken.
pub(super) const MOST: usize = 256 << 10;

/// Where the bytes come from.
pub(super) trait Source {
    type Error: From<SnapshotError>;

    /// Fills the bytes, which are those of the snapshot from `offset` on; or fewer of them if there are no more. Says how many.
    fn fill(&mut self, bytes: &mut [u8], offset: u64) -> Result<usize, Self::Error>;
}

/// Reads one snapshot and no byte more.
pub(super) fn read<S: Source, H: Hasher>(
    source: &mut S,
    hasher: impl FnOnce(HasherId) -> Option<H>,
) -> Result<CuckooFilter<H>, S::Error> {
    let mut header = [0; HEADER_BYTES];
    let read = source.fill(&mut header, 0)?;
    if read < HEADER_BYTES {
        return Err(header_too_short(&header[..read]).into());
    }
    let (Header { params, len, checksum, .. }, hasher) = open_header(&header, hasher)?;
    let memory = read_table(source, &params, checksum)?;
    let table = AnyTable::from_padded(&params, memory);
    verify::table(&params, &table, len, None)?;
    Ok(CuckooFilter::from_parts(params, table, len, hasher))
}

/// The table, its checksum compared, and the padding.
fn read_table<S: Source>(source: &mut S, params: &Params, seed: u64) -> Result<Memory, S::Error> {
    let (whole, expected) = (params.table_bytes(), params.snapshot_bytes());
    let mut table = Vec::new();
    let mut checksum = Checksum::new(seed);
    while table.len() < whole {
        let start = table.len();
        let end = whole.min(start + start.clamp(LEAST, MOST));
        if end + PADDING > table.capacity() {
            let enough = whole.min(end.max(start + start / 4)) + PADDING;
            table.try_reserve_exact(enough - start).map_err(|_| out_of_memory(enough))?;
        }
        table.resize(end, 0);
        let read = source.fill(&mut table[start..], in_table(wide(start)))?;
        if start + read < end {
            return Err(wrong_length(in_table(wide(start + read)), expected).into());
        }
        checksum.update(&table[start..]);
    }
    let mut trailer = [0; TRAILER_BYTES];
    let offset = in_table(wide(whole));
    let read = source.fill(&mut trailer, offset)?;
    if read < TRAILER_BYTES {
        return Err(wrong_length(offset + wide(read), expected).into());
    }
    verify::check_sum(params, u64::from_le_bytes(trailer), checksum.finish())?;
    table.resize(whole + PADDING, 0);
    Ok(Memory::from_vec(table))
}
