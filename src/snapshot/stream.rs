//! From a reader to a filter, and from a filter to a writer: with no second copy of the table, whatever its size.

use std::io::{self, ErrorKind, Read, Write};

use alloc::vec::Vec;

use super::{
    format::{Checksum, HEADER_BYTES, Header, TRAILER_BYTES, in_table, snapshot_bytes},
    read::{header_too_short, open_header, out_of_memory, wrong_length, xxh3},
    verify,
};
use crate::{
    bits::PADDING,
    error::SnapshotError,
    filter::CuckooFilter,
    hash::{Hasher, HasherId},
    memory::Memory,
    num::wide,
    params::Params,
    storage::Storage,
    table::AnyTable,
};

/// Bytes of a table that are read at a time at first, before it is known whether there are more.
const LEAST: usize = 32 << 10;

/// Bytes that are read or written at a time. They are still in the cache when their checksum is taken.
const MOST: usize = 256 << 10;

impl CuckooFilter {
    /// Reads one snapshot from a reader and no byte more, so that others may follow.
    ///
    /// Checks everything, as [`from_bytes`](Self::from_bytes) does; there is no filter until all of it has been read and found
    /// good. Memory is taken as bytes arrive, not as the header promises them: at most twice as much as has arrived, and 32 KiB.
    /// It grows where it is, or by moving pages, where the allocator can do that (that of Linux can), so that a filter of any
    /// size takes no more than 1 MiB besides itself.
    ///
    /// Few large reads: a buffer would only slow them down.
    ///
    /// # Errors
    /// What is wrong, and where; or, as the kind [`Io`](crate::SnapshotErrorKind::Io), what the reader said.
    pub fn read_from<R: Read>(reader: R) -> Result<Self, SnapshotError> {
        Self::read_from_with(reader, xxh3)
    }
}

impl<H: Hasher> CuckooFilter<H> {
    /// [`read_from`](CuckooFilter::read_from) for filters with other hashers, as
    /// [`from_bytes_with`](Self::from_bytes_with) takes them.
    ///
    /// # Errors
    /// What is wrong, and where; or, as the kind [`Io`](crate::SnapshotErrorKind::Io), what the reader said.
    pub fn read_from_with<R: Read>(mut reader: R, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        let mut header = [0; HEADER_BYTES];
        let read = fill(&mut reader, &mut header, 0)?;
        if read < HEADER_BYTES {
            return Err(header_too_short(&header[..read]));
        }
        let (Header { params, len, checksum, .. }, hasher) = open_header(&header, hasher)?;
        let memory = read_table(&mut reader, &params, checksum)?;
        let table = AnyTable::from_padded(&params, memory);
        verify::table(&params, &table, len, None)?;
        Ok(Self::from_parts(params, table, len, hasher))
    }
}

impl<H: Hasher, S: Storage> CuckooFilter<H, S> {
    /// Writes the bytes of [`to_bytes`](Self::to_bytes), without holding them a second time. Few large writes: a buffer
    /// would only slow them down.
    ///
    /// # Errors
    /// What the writer says. What it has taken by then is no snapshot.
    pub fn write_to<W: Write>(&self, mut writer: W) -> io::Result<()> {
        let (header, seed) = Header::encode(self.params(), self.hasher().id(), self.len());
        writer.write_all(&header)?;
        let mut checksum = Checksum::new(seed);
        for piece in self.table().bytes().chunks(MOST) {
            checksum.update(piece);
            writer.write_all(piece)?;
        }
        writer.write_all(&checksum.finish().to_le_bytes())
    }
}

/// The table, its checksum compared, and the padding.
fn read_table<R: Read>(reader: &mut R, params: &Params, seed: u64) -> Result<Memory, SnapshotError> {
    let (whole, expected) = (params.table_bytes(), snapshot_bytes(params));
    let mut table = Vec::new();
    let mut checksum = Checksum::new(seed);
    while table.len() < whole {
        let start = table.len();
        let end = whole.min(start + start.clamp(LEAST, MOST));
        if end + PADDING > table.capacity() {
            let enough = whole.min(end.max(2 * start)) + PADDING;
            table.try_reserve_exact(enough - start).map_err(|_| out_of_memory(enough))?;
        }
        table.resize(end, 0);
        let read = fill(reader, &mut table[start..], in_table(wide(start)))?;
        if start + read < end {
            return Err(wrong_length(in_table(wide(start + read)), expected));
        }
        checksum.update(&table[start..]);
    }
    let mut trailer = [0; TRAILER_BYTES];
    let offset = in_table(wide(whole));
    let read = fill(reader, &mut trailer, offset)?;
    if read < TRAILER_BYTES {
        return Err(wrong_length(offset + wide(read), expected));
    }
    verify::check_sum(params, u64::from_le_bytes(trailer), checksum.finish())?;
    table.resize(whole + PADDING, 0);
    Ok(table.into())
}

/// Fills the bytes from the reader, or fewer of them if it ends. Says how many.
fn fill<R: Read>(reader: &mut R, mut bytes: &mut [u8], offset: u64) -> Result<usize, SnapshotError> {
    let wanted = bytes.len();
    while !bytes.is_empty() {
        match reader.read(bytes) {
            Ok(0) => break,
            Ok(read) => bytes = &mut bytes[read..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(SnapshotError::io(offset + wide(wanted - bytes.len()), "reading failed", error)),
        }
    }
    Ok(wanted - bytes.len())
}
