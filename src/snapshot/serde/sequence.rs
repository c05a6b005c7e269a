//! A snapshot as a sequence of numbers, for formats that have no byte strings.

use core::marker::PhantomData;

use serde::de::SeqAccess;

use super::{
    super::{SnapshotError, SnapshotErrorKind as Kind, Source, read::too_long},
    refused,
    scalar::Number,
};
use crate::bits::wide;

/// Reads what `read` takes for a snapshot, and returns with its length, and then nothing. Ignores the length that the format claims:
/// the header has the real one.
pub(crate) fn read_list<'de, A: SeqAccess<'de>, T>(
    seq: A,
    read: impl FnOnce(&mut List<'de, A>) -> Result<(T, u64), SnapshotError>,
) -> Result<T, A::Error> {
    let mut list = List { seq, failed: None, of: PhantomData };
    let result = read(&mut list);
    if let Some(error) = list.failed {
        return Err(error);
    }
    let (value, length) = result.map_err(|error| refused(&error))?;
    let more = rest(&mut list.seq)?;
    if more > 0 { Err(refused(&too_long(length + more, length))) } else { Ok(value) }
}

/// A sequence of numbers as a [`Source`].
pub(crate) struct List<'de, A: SeqAccess<'de>> {
    seq: A,
    /// The format's own error, after which there are no more numbers.
    failed: Option<A::Error>,
    of: PhantomData<&'de ()>,
}

impl<'de, A: SeqAccess<'de>> Source for List<'de, A> {
    fn fill(&mut self, bytes: &mut [u8], offset: u64) -> Result<usize, SnapshotError> {
        for (read, byte) in bytes.iter_mut().enumerate() {
            match self.seq.next_element_seed(Number::new("a byte of the snapshot")) {
                Ok(Some(next)) => *byte = next,
                Ok(None) => return Ok(read),
                Err(error) => {
                    self.failed = Some(error);
                    return Err(SnapshotError::new(Kind::Io, offset + wide(read), text!("the format has failed")));
                }
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
