//! The two random reads that any look-up needs, without the look-up.
//!
//! In a plain loop the processor is at work on as many keys as its window of instructions holds, which hashing fills: where
//! memory is far, a batch that fetches ahead can be faster. "Dense" reads are those of 64 keys that have been hashed before,
//! so that more of them are under way at a time. (There is no prefetch instruction in safe Rust. These reads, too, have
//! nothing that waits for them.)

/// Bytes of a read. A buffer has so many behind its last position.
pub(crate) const READ: usize = 8;

/// Makes of a hash another one, whose high bits say nothing about those of the first.
pub(crate) const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Keys that are hashed before the first of them is read.
const AHEAD: usize = 64;

/// How the reads are done.
#[derive(Clone, Copy)]
pub(crate) enum Reads {
    Plain,
    Dense,
}

impl Reads {
    pub(crate) const ALL: [Self; 2] = [Self::Plain, Self::Dense];

    /// Does the two reads of each key, at the positions that are found for it.
    #[inline]
    pub(crate) fn sum(self, bytes: &[u8], keys: &[u64], positions: impl Fn(u64) -> [usize; 2]) -> u64 {
        let read = |sum, positions: [usize; 2]| positions.iter().fold(sum, |sum, &position| sum ^ read(bytes, position));
        match self {
            Self::Plain => keys.iter().fold(0, |sum, &key| read(sum, positions(key))),
            Self::Dense => keys.chunks(AHEAD).fold(0, |sum, keys| {
                let mut found = [[0; 2]; AHEAD];
                for (found, &key) in found.iter_mut().zip(keys) {
                    *found = positions(key);
                }
                found[..keys.len()].iter().fold(sum, |sum, &positions| read(sum, positions))
            }),
        }
    }
}

/// Where in so many bytes: the upper half of the product, as with buckets.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "below the length")]
pub(crate) fn position(hash: u64, len: usize) -> usize {
    ((u128::from(hash) * len as u128) >> 64) as usize
}

#[inline]
fn read(bytes: &[u8], position: usize) -> u64 {
    u64::from_le_bytes(*bytes[position..].first_chunk().expect("there are as many behind each position"))
}
