//! The memory floor of a cuckoo filter: the least time that a lookup can take. Any lookup hashes its key and reads two
//! buckets; the [`Floor`] does that, in as much memory and in pages of the same kind, and ignores what it reads.
//!
//! The `koel` benchmarks divide their times by those of the floor.
//!
//! ```
//! use koel_floor::{Floor, Reads};
//!
//! let floor = Floor::new(1 << 20)?;
//! // Here each key is its own hash.
//! let keys: Vec<u64> = (1..=1000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
//! for reads in Reads::ALL {
//!     std::hint::black_box(floor.read(reads, &keys, |hash| floor.positions(hash)));
//! }
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io;

use memmap2::MmapMut;

/// Bytes of one read.
pub const READ: usize = 8;

/// Keys that dense reads hash before they read the first position.
const AHEAD: usize = 64;

/// In which order the keys are hashed and the memory is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Hashes a key, then reads its two positions: a plain loop. As many reads are under way at a time as fit, together with
    /// the hashing between them, into the processor's window of instructions.
    Plain,
    /// Hashes 64 keys, then reads their positions. More reads are under way at a time, as in a batch that prefetches; where
    /// memory is slow, such a batch can be faster than plain reads. (Safe Rust has no prefetch instruction. No instruction
    /// waits for these reads either.)
    Dense,
}

impl Reads {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Plain, Self::Dense];
}

const HUGE_PAGE: usize = 2 << 20;

/// Not zero: the system maps all pages that were never written to one page of zeros, which stays in the cache.
const FILLING: u8 = 0x5a;

/// Memory to read at random positions.
pub struct Floor {
    map: MmapMut,
    /// Where the map has the first huge page.
    start: usize,
    len: usize,
}

impl Floor {
    /// Allocates memory in place of a table of `len` bytes: on Linux, from 2 MiB on in huge pages, as tables are.
    ///
    /// # Errors
    /// If the memory could not be allocated.
    pub fn new(len: usize) -> io::Result<Self> {
        // Only a map that is a huge page longer is sure to contain an aligned one.
        let all = len.checked_add(READ + HUGE_PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut map = MmapMut::map_anon(all)?;
        let start = map.as_ptr().align_offset(HUGE_PAGE);
        #[cfg(target_os = "linux")]
        if len >= HUGE_PAGE {
            // As in a table, the incomplete last page stays small. A system that refuses leaves all pages small.
            _ = map.advise_range(memmap2::Advice::HugePage, start, len - len % HUGE_PAGE);
        }
        map[start..start + len + READ].fill(FILLING);
        Ok(Self { map, start, len })
    }

    /// The two positions of a key with this hash, both below the table's length.
    #[inline]
    #[must_use]
    pub fn positions(&self, hash: u64) -> [usize; 2] {
        [position(hash, self.len), position(second_hash(hash), self.len)]
    }

    /// Reads [`READ`] bytes at both positions of each key. The result is of use only to `black_box`, without which the
    /// compiler removes the reads.
    ///
    /// # Panics
    /// If a position is greater than the table's length.
    #[inline]
    #[must_use]
    pub fn read(&self, reads: Reads, keys: &[u64], positions: impl Fn(u64) -> [usize; 2]) -> u64 {
        let bytes = &self.map[self.start..][..self.len + READ];
        // The exclusive or of everything.
        let read = |sum, positions: [usize; 2]| positions.iter().fold(sum, |sum, &position| sum ^ word(bytes, position));
        match reads {
            Reads::Plain => keys.iter().fold(0, |sum, &key| read(sum, positions(key))),
            Reads::Dense => keys.chunks(AHEAD).fold(0, |sum, keys| {
                let mut found = [[0; 2]; AHEAD];
                for (found, &key) in found.iter_mut().zip(keys) {
                    *found = positions(key);
                }
                found[..keys.len()].iter().fold(sum, |sum, &positions| read(sum, positions))
            }),
        }
    }
}

/// The position of a hash among `len`: the upper half of the product, as with buckets.
#[inline]
#[must_use]
#[allow(clippy::cast_possible_truncation, reason = "below the length")]
pub fn position(hash: u64, len: usize) -> usize {
    ((u128::from(hash) * len as u128) >> 64) as usize
}

/// A second hash, whose high bits, and with them its [`position`], do not depend on those of the first.
#[inline]
#[must_use]
pub fn second_hash(hash: u64) -> u64 {
    hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[inline]
fn word(bytes: &[u8], position: usize) -> u64 {
    u64::from_le_bytes(*bytes[position..].first_chunk().expect("READ bytes follow the last position"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_span_the_table() {
        for len in [1, 2, 1000, (1 << 20) + 1] {
            assert_eq!((position(0, len), position(u64::MAX, len)), (0, len - 1));
            let floor = Floor::new(len).expect("there is memory");
            let keys: Vec<u64> = (0..10_000).map(|n| second_hash(n << 7)).collect();
            let positions: Vec<_> = keys.iter().flat_map(|&hash| floor.positions(hash)).collect();
            assert!(positions.iter().all(|&position| position < len));
            let mean = positions.iter().sum::<usize>() / positions.len();
            assert!((len * 45 / 100..=len * 55 / 100).contains(&mean), "{mean} of {len}");
        }
    }

    #[test]
    fn plain_and_dense_reads_read_the_same() {
        let mut floor = Floor::new(1000).expect("there is memory");
        let bytes: Vec<u8> = (0..1000 + READ as u64).map(|n| second_hash(n).to_be_bytes()[0]).collect();
        floor.map[floor.start..][..bytes.len()].copy_from_slice(&bytes);
        // Fewer than a block of dense reads, one block, and more that are no multiple of it.
        for keys in [0, 1, 63, 64, 65, 1000] {
            let keys: Vec<u64> = (1..=keys).map(second_hash).collect();
            let positions = |key| [position(key, 1000), position(second_hash(key), 1000)];
            let expected = keys.iter().flat_map(|&key| positions(key)).fold(0, |sum, at| sum ^ word(&bytes, at));
            for reads in Reads::ALL {
                assert_eq!(floor.read(reads, &keys, positions), expected, "{reads:?}, {} keys", keys.len());
            }
        }
    }

    #[test]
    fn all_of_the_memory_has_been_written_to() {
        for len in [0, 1, 4097, 5 << 20] {
            let floor = Floor::new(len).expect("there is memory");
            assert!(floor.map[floor.start..][..len + READ].iter().all(|&byte| byte == FILLING), "{len}");
            assert_eq!(floor.map[floor.start..].as_ptr().addr() % HUGE_PAGE, 0, "{len}");
        }
        for len in [usize::MAX, usize::MAX / 2] {
            assert!(Floor::new(len).is_err(), "{len}");
        }
    }

    #[test]
    fn the_last_position_is_the_length() {
        let floor = Floor::new(100).expect("there is memory");
        for reads in Reads::ALL {
            // Two reads of the same bytes cancel out.
            assert_eq!(floor.read(reads, &[0], |_| [0, 100]), 0);
        }
    }

    #[test]
    #[should_panic = "follow the last position"]
    fn nothing_is_read_beyond_it() {
        _ = Floor::new(100).expect("there is memory").read(Reads::Plain, &[0], |_| [0, 101]);
    }
}
