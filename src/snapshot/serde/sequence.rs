//! A snapshot as a sequence of numbers, for formats that have no byte strings.

use core::marker::PhantomData;

use serde::de::SeqAccess;

use super::{
    super::{SnapshotError, pieces, read::too_long, source::Source},
    refused,
    scalar::Number,
};
use crate::{filter::CuckooFilter, hash::FromHasherId};

/// Ignores the length that the format claims: the header has the real one.
pub(super) fn read<'de, A: SeqAccess<'de>, H: FromHasherId>(seq: A) -> Result<CuckooFilter<H>, A::Error> {
    let mut list = List(seq, PhantomData);
    let filter = pieces::read(&mut list, H::from_hasher_id).map_err(|Refused(error)| error)?;
    let more = rest(&mut list.0)?;
    if more > 0 {
        let expected = filter.params().snapshot_bytes();
        return Err(refused(&too_long(expected + more, expected)));
    }
    Ok(filter)
}

/// A sequence of numbers as a [`Source`].
struct List<'de, A>(A, PhantomData<&'de ()>);

/// The format's error: its own, or one converted from a [`SnapshotError`].
struct Refused<E>(E);

impl<E: serde::de::Error> From<SnapshotError> for Refused<E> {
    fn from(error: SnapshotError) -> Self {
        Self(refused(&error))
    }
}

impl<'de, A: SeqAccess<'de>> Source for List<'de, A> {
    type Error = Refused<A::Error>;

    fn fill(&mut self, bytes: &mut [u8], _: u64) -> Result<usize, Self::Error> {
        for (read, byte) in bytes.iter_mut().enumerate() {
            match self.0.next_element_seed(Number::new("a byte of the snapshot")).map_err(Refused)? {
                Some(next) => *byte = next,
                None => return Ok(read),
            }
        }
        Ok(bytes.len())
    }
}

/// Counts the remaining bytes.
fn rest<'de, A: SeqAccess<'de>>(seq: &mut A) -> Result<u64, A::Error> {
    let mut more = 0;
    while seq.next_element_seed(Number::<u8>::new("a byte of the snapshot"))?.is_some() {
        more += 1;
    }
    Ok(more)
}
