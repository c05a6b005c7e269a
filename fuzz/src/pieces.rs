//! A reader for both kinds of snapshots, and their extent.

use koel::{SnapshotError, SnapshotErrorKind, pieces::SnapshotExtent};
use std::io::{self, Read};

/// A reader that returns pieces of varying length, and is interrupted before every third one.
pub struct Pieces<'a> {
    /// Holds the bytes that have not been read yet.
    pub bytes: &'a [u8],
    odd: usize,
    turn: usize,
}

impl<'a> Pieces<'a> {
    pub fn new(bytes: &'a [u8], odd: usize) -> Self {
        Self { bytes, odd, turn: 0 }
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.turn += 1;
        if self.turn.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = buffer.len().min(1 + self.odd * self.turn % 97);
        self.bytes.read(&mut buffer[..len])
    }
}

/// Asserts that the extent of these bytes, pushed in pieces, agrees with how they were read, and with where [`over_prefix`] has found
/// the snapshot's end. The extent reads no more than the headers, so it may be complete although the bytes are no snapshot.
///
/// [`over_prefix`]: koel::FilterView::over_prefix
pub fn check_extent(bytes: &[u8], odd: usize, read: Option<&SnapshotError>, prefix: Option<usize>) {
    let (mut extent, mut taken, mut failure) = (SnapshotExtent::new(), 0, None);
    for piece in bytes.chunks(1 + odd % 97) {
        match extent.push(piece) {
            Ok(len) => {
                assert!(len == piece.len() || extent.is_complete(), "only a part of a piece was taken");
                taken += len;
            }
            Err(error) => {
                failure = Some((error.kind(), error.offset(), error.to_string()));
                extent.push(&[]).expect_err("after an error, every call fails");
                break;
            }
        }
    }
    assert!(failure.is_some() || extent.received() == taken as u64);
    let end = if extent.is_complete() { Some(taken) } else { None };
    match read {
        None => assert!(failure.is_none() && end == Some(bytes.len()), "the extent of a snapshot: {end:?}, {failure:?}"),
        Some(error) if error.kind() == SnapshotErrorKind::TrailingBytes => {
            assert!(failure.is_none() && end.map(|end| end as u64) == Some(error.offset()), "{end:?}, {failure:?}, {error}");
        }
        // An error in the header is the first one that there is. One in a section may follow others, which an extent skips.
        Some(error) => {
            let expected = (error.kind(), error.offset(), error.to_string());
            let is_first = failure.as_ref().is_none_or(|failure| failure.0 == SnapshotErrorKind::Shards || *failure == expected);
            assert!(is_first, "the extent has the error {failure:?} instead of {expected:?}");
        }
    }
    assert!(prefix.is_none() || prefix == end, "a view ends at {prefix:?}, the extent at {end:?}");
}
