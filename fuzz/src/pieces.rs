//! A reader for both kinds of snapshots.

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
