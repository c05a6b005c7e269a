//! A snapshot's bytes one by one: from formats that have no bytes, only lists of numbers.

use alloc::vec::Vec;

use serde::de::SeqAccess;

use super::{
    super::{
        format::{HEADER_BYTES, TRAILER_BYTES, in_table, snapshot_bytes},
        read::{finish, header_too_short, open, out_of_memory, wrong_length},
    },
    refused,
    scalar::Number,
};
use crate::{bits::PADDING, filter::CuckooFilter, hash::FromHasherId, memory::Memory, num::wide};

/// The table is kept in pieces of this many bytes until all of it has come: only then is the header's promise worth memory
/// for the whole.
const PIECE: usize = 16 << 10;

/// The format's own opinion of the length is not asked for: the header knows it.
pub(super) fn read<'de, A: SeqAccess<'de>, H: FromHasherId>(mut seq: A) -> Result<CuckooFilter<H>, A::Error> {
    let mut header = [0; HEADER_BYTES];
    let read = fill(&mut seq, &mut header)?;
    if read < HEADER_BYTES {
        return Err(refused(&header_too_short(&header[..read])));
    }
    let (header, hasher) = open(&header, H::from_hasher_id).map_err(|error| refused(&error))?;
    let (table_bytes, expected) = (header.params.table_bytes(), snapshot_bytes(&header.params));
    let pieces = pieces(&mut seq, table_bytes, expected)?;
    let mut trailer = [0; TRAILER_BYTES];
    let trailer_at = in_table(wide(table_bytes));
    let read = fill(&mut seq, &mut trailer)?;
    if read < TRAILER_BYTES {
        return Err(refused(&wrong_length(trailer_at + wide(read), expected)));
    }
    let more = rest(&mut seq)?;
    if more > 0 {
        return Err(refused(&wrong_length(expected + more, expected)));
    }
    let mut memory = Memory::zeroed(table_bytes + PADDING).ok_or_else(|| refused(&out_of_memory(table_bytes)))?;
    for (to, piece) in memory[..table_bytes].chunks_mut(PIECE).zip(pieces) {
        to.copy_from_slice(&piece);
    }
    finish(&header, hasher, memory, &trailer).map_err(|error| refused(&error))
}

/// The table, in pieces.
fn pieces<'de, A: SeqAccess<'de>>(seq: &mut A, table_bytes: usize, expected: u64) -> Result<Vec<Vec<u8>>, A::Error> {
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < table_bytes {
        let mut piece = Vec::new();
        let len = PIECE.min(table_bytes - start);
        if pieces.try_reserve(1).is_err() || piece.try_reserve_exact(len).is_err() {
            return Err(refused(&out_of_memory(table_bytes)));
        }
        piece.resize(len, 0);
        let read = fill(seq, &mut piece)?;
        if read < len {
            return Err(refused(&wrong_length(in_table(wide(start + read)), expected)));
        }
        pieces.push(piece);
        start += len;
    }
    Ok(pieces)
}

/// Fills the bytes from the sequence, or fewer of them if it ends. Says how many.
fn fill<'de, A: SeqAccess<'de>>(seq: &mut A, bytes: &mut [u8]) -> Result<usize, A::Error> {
    for (read, byte) in bytes.iter_mut().enumerate() {
        match seq.next_element_seed(Number::new("a byte of the snapshot"))? {
            Some(next) => *byte = next,
            None => return Ok(read),
        }
    }
    Ok(bytes.len())
}

/// How many bytes there are yet.
fn rest<'de, A: SeqAccess<'de>>(seq: &mut A) -> Result<u64, A::Error> {
    let mut more = 0;
    while seq.next_element_seed(Number::<u8>::new("a byte of the snapshot"))?.is_some() {
        more += 1;
    }
    Ok(more)
}
