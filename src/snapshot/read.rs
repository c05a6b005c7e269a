//! From bytes to a filter: nothing is believed.

use alloc::{format, string::String};

#[cfg(feature = "serde")]
use super::format::Fields;
#[cfg(feature = "std")]
use super::format::TRAILER_BYTES;
use super::format::{
    HASHER_AT, HEADER_BYTES, Header, HeaderBytes, ITEMS_AT, MAGIC, checksum, differs, in_table, not_a_snapshot, snapshot_bytes,
};
use crate::{
    bits::PADDING,
    error::{SnapshotError, SnapshotErrorKind as Kind},
    filter::CuckooFilter,
    hash::{Hasher, HasherId, Xxh3},
    memory::Memory,
    num::wide,
    params::Params,
    table::{AnyTable, Corrupt, Table, fingerprints, with_table},
};

impl CuckooFilter {
    /// The filter whose snapshot this is, all of it and nothing else.
    ///
    /// Checks everything: whatever these bytes are, the answer is an error or a filter that keeps its promises, and no
    /// more memory is taken than they are long. Takes time in proportion to them.
    ///
    /// # Errors
    /// What is wrong, and where. Among others if the filter's hasher is not [`Xxh3`]:
    /// [`from_bytes_with`](Self::from_bytes_with) reads it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
        Self::from_bytes_with(bytes, xxh3)
    }

    /// Reads one snapshot from a reader and no byte more, so that others may follow.
    ///
    /// Checks everything, as [`from_bytes`](Self::from_bytes) does. Memory is taken as bytes arrive, not as the header
    /// promises them.
    ///
    /// # Errors
    /// What is wrong, and where; or, as the kind [`Io`](Kind::Io), what the reader said.
    #[cfg(feature = "std")]
    pub fn read_from<R: std::io::Read>(reader: R) -> Result<Self, SnapshotError> {
        Self::read_from_with(reader, xxh3)
    }
}

fn xxh3(id: HasherId) -> Option<Xxh3> {
    (id == Xxh3.id()).then_some(Xxh3)
}

impl<H: Hasher> CuckooFilter<H> {
    /// [`from_bytes`](CuckooFilter::from_bytes) for filters with other hashers: `hasher` gives the one with the
    /// snapshot's id, or `None` to refuse it; one with another id is refused, too.
    /// [`AnyHasher::from_id`](crate::AnyHasher::from_id) takes every one of this crate's.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn from_bytes_with(bytes: &[u8], hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        let Some((header, body)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(header_too_short(bytes));
        };
        let (header, hasher) = open(header, hasher)?;
        let expected = snapshot_bytes(&header.params);
        if wide(bytes.len()) != expected {
            return Err(wrong_length(wide(bytes.len()), expected));
        }
        let (table, trailer) = body.split_at(header.params.table_bytes());
        let mut memory = Memory::zeroed(table.len() + PADDING).ok_or_else(|| out_of_memory(table.len()))?;
        memory[..table.len()].copy_from_slice(table);
        finish(&header, hasher, memory, trailer)
    }

    /// [`read_from`](CuckooFilter::read_from) for filters with other hashers, as
    /// [`from_bytes_with`](Self::from_bytes_with) takes them.
    ///
    /// # Errors
    /// What is wrong, and where; or, as the kind [`Io`](Kind::Io), what the reader said.
    #[cfg(feature = "std")]
    pub fn read_from_with<R: std::io::Read>(
        mut reader: R,
        hasher: impl FnOnce(HasherId) -> Option<H>,
    ) -> Result<Self, SnapshotError> {
        let mut header = [0; HEADER_BYTES];
        let read = fill(&mut reader, &mut header, 0)?;
        if read < HEADER_BYTES {
            return Err(header_too_short(&header[..read]));
        }
        let (header, hasher) = open(&header, hasher)?;
        let (table_bytes, expected) = (header.params.table_bytes(), snapshot_bytes(&header.params));
        let mut memory = Memory::zeroed(table_bytes.min(FIRST_STEP) + PADDING).ok_or_else(|| out_of_memory(table_bytes))?;
        let mut start = 0;
        loop {
            let end = memory.len() - PADDING;
            let read = fill(&mut reader, &mut memory[start..end], in_table(wide(start)))?;
            if start + read < end {
                return Err(wrong_length(in_table(wide(start + read)), expected));
            }
            if end == table_bytes {
                break;
            }
            start = end;
            let twice = table_bytes.min(2 * end);
            memory = memory.grown(twice + PADDING).ok_or_else(|| out_of_memory(twice))?;
        }
        let mut trailer = [0; TRAILER_BYTES];
        let offset = in_table(wide(table_bytes));
        let read = fill(&mut reader, &mut trailer, offset)?;
        if read < TRAILER_BYTES {
            return Err(wrong_length(offset + wide(read), expected));
        }
        finish(&header, hasher, memory, &trailer)
    }
}

/// Bytes of a table that are read before memory for more is taken; from there on, as much again as has arrived.
#[cfg(feature = "std")]
const FIRST_STEP: usize = 64 << 10;

/// Fills the bytes from the reader, or fewer of them if it ends. Says how many.
#[cfg(feature = "std")]
fn fill<R: std::io::Read>(reader: &mut R, mut bytes: &mut [u8], offset: u64) -> Result<usize, SnapshotError> {
    let wanted = bytes.len();
    while !bytes.is_empty() {
        match reader.read(bytes) {
            Ok(0) => break,
            Ok(read) => bytes = &mut bytes[read..],
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                let at = offset + wide(wanted - bytes.len());
                let mut failed = SnapshotError::new(Kind::Io, at, "reading failed".into());
                failed.source = Some(error);
                return Err(failed);
            }
        }
    }
    Ok(wanted - bytes.len())
}

/// The filter of a header's fields and a table that came one by one, checked as in a snapshot. The memory is [`PADDING`]
/// longer than the table.
#[cfg(feature = "serde")]
pub(super) fn from_fields<H: Hasher>(
    fields: &Fields,
    memory: Memory,
    trailer: u64,
    hasher: impl FnOnce(HasherId) -> Option<H>,
) -> Result<CuckooFilter<H>, SnapshotError> {
    let fields = Fields { table_bytes: wide(memory.len() - PADDING), ..*fields };
    let (header, hasher) = open(&fields.encode().0, hasher)?;
    finish(&header, hasher, memory, &trailer.to_le_bytes())
}

/// The header, and the hasher it asks for.
pub(super) fn open<H: Hasher>(
    header: &HeaderBytes,
    hasher: impl FnOnce(HasherId) -> Option<H>,
) -> Result<(Header, H), SnapshotError> {
    let header = Header::decode(header)?;
    let hasher = hasher(header.hasher).filter(|hasher| hasher.id() == header.hasher).ok_or_else(|| {
        let what = format!("the filter was built with {}, which is not the hasher asked for", header.hasher);
        SnapshotError::new(Kind::Hasher, HASHER_AT as u64, what)
    })?;
    Ok((header, hasher))
}

/// Checks the table and makes a filter of it.
pub(super) fn finish<H: Hasher>(
    header: &Header,
    hasher: H,
    memory: Memory,
    trailer: &[u8],
) -> Result<CuckooFilter<H>, SnapshotError> {
    let params = &header.params;
    let table = &memory[..params.table_bytes()];
    let computed = checksum(table, header.checksum);
    let stored = trailer.iter().rev().fold(0, |stored, &byte| stored << 8 | u64::from(byte));
    if stored != computed {
        return Err(differs(Kind::BodyChecksum, in_table(wide(table.len())), "table", stored, computed));
    }
    let table = AnyTable::from_padded(params, memory);
    with_table!(&table, table => check(params, table, header.len))?;
    Ok(CuckooFilter::from_parts(params.clone(), table, header.len, hasher))
}

/// Checksums can be forged: could the library itself have written this table?
fn check<T: Table>(params: &Params, table: &T, len: usize) -> Result<(), SnapshotError> {
    let mut items = 0;
    for bucket in 0..params.buckets() {
        table.check(bucket).map_err(|corrupt| {
            let what = match corrupt {
                Corrupt::Codeword(codeword) => {
                    format!("bucket {bucket} has the codeword {codeword}, which is not in the codebook")
                }
                Corrupt::Order => format!("the fingerprints of bucket {bucket} are not in order"),
            };
            SnapshotError::new(Kind::Table, in_table(bucket * u64::from(params.bucket_bits()) / 8), what)
        })?;
        items += wide(fingerprints(&table.values(bucket)).count());
    }
    let used_bits = params.buckets() * u64::from(params.bucket_bits());
    let last = params.table_bytes() - 1;
    if !used_bits.is_multiple_of(8) && table.memory()[last] >> (used_bits % 8) != 0 {
        let what = String::from("bits beyond the last bucket are set");
        return Err(SnapshotError::new(Kind::Table, in_table(wide(last)), what));
    }
    if items != wide(len) {
        let what = format!("the table holds {items} items, but the header says {len}");
        return Err(SnapshotError::new(Kind::Count, ITEMS_AT as u64, what));
    }
    Ok(())
}

pub(super) fn out_of_memory(bytes: usize) -> SnapshotError {
    SnapshotError::new(Kind::OutOfMemory, in_table(0), format!("{bytes} bytes of memory for the table could not be had"))
}

pub(super) fn header_too_short(bytes: &[u8]) -> SnapshotError {
    if !MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]) {
        return not_a_snapshot();
    }
    // How long they should be is in the header, which is not all there.
    let what = format!("the bytes end too early: there are {}, and the header alone has {HEADER_BYTES}", bytes.len());
    SnapshotError::new(Kind::Length, wide(bytes.len()), what)
}

pub(super) fn wrong_length(given: u64, expected: u64) -> SnapshotError {
    let (what, offset) = if given < expected { ("end too early", given) } else { ("go on after the snapshot's end", expected) };
    SnapshotError::new(Kind::Length, offset, format!("the bytes {what}: there are {given}, and there should be {expected}"))
}
