//! The memory floor of a cuckoo filter: the least time that a lookup can take. Every lookup hashes its key and reads two
//! buckets. A [`Floor`] does only that, in as much memory as a table takes and in pages of the same kind.
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

/// The length of one read, in bytes.
pub const READ: usize = 8;

/// The number of keys that dense reads hash before they read any position.
const AHEAD: usize = 64;

/// The order in which keys are hashed and memory is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Hashes a key, then reads its two positions, in a plain loop. The processor overlaps as many reads as fit into its
    /// instruction window, together with the hashing between them.
    Plain,
    /// Hashes 64 keys, then reads their positions. This overlaps more reads, as a batch with prefetches does, which can be
    /// faster than plain reads where memory is slow. (Safe Rust has no prefetch instruction, but no instruction waits for
    /// these reads either.)
    Dense,
}

impl Reads {
    /// Both orders.
    pub const ALL: [Self; 2] = [Self::Plain, Self::Dense];
}

const HUGE_PAGE: usize = 2 << 20;

/// The byte that fills the memory. Without a write, the system would map every page to one shared page of zeros, which stays
/// in the cache. It is not 0, so that tests can see the write.
const FILL_BYTE: u8 = 0x5a;

/// A block of memory that is read at random positions.
pub struct Floor {
    map: MmapMut,
    /// The offset of the first huge page in the map.
    start: usize,
    len: usize,
}

impl Floor {
    /// Allocates as much memory as a table of `len` bytes takes. On Linux, it is in huge pages from 2 MiB on, as tables are.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub fn new(len: usize) -> io::Result<Self> {
        // One more huge page leaves room to align the start.
        let all = len.checked_add(READ + HUGE_PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut map = MmapMut::map_anon(all)?;
        let start = map.as_ptr().align_offset(HUGE_PAGE);
        #[cfg(target_os = "linux")]
        if len >= HUGE_PAGE {
            // As in a table, the incomplete last page stays small. If the system refuses huge pages, all pages stay small.
            _ = map.advise_range(memmap2::Advice::HugePage, start, len - len % HUGE_PAGE);
        }
        map[start..start + len + READ].fill(FILL_BYTE);
        Ok(Self { map, start, len })
    }

    /// Returns the two positions of a key with this hash. Both are below the table's length.
    #[inline]
    #[must_use]
    pub fn positions(&self, hash: u64) -> [usize; 2] {
        [position(hash, self.len), position(second_hash(hash), self.len)]
    }

    /// Reads [`READ`] bytes at both positions of each key. Pass the result to `black_box`; otherwise, the compiler removes the
    /// reads.
    ///
    /// # Panics
    /// If a position is greater than the table's length.
    #[inline]
    #[must_use]
    pub fn read(&self, reads: Reads, keys: &[u64], positions: impl Fn(u64) -> [usize; 2]) -> u64 {
        let bytes = &self.map[self.start..][..self.len + READ];
        // Combines all words by exclusive or, so that no read can be left out.
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

/// Maps a hash to a position below `len`: the upper half of their product, as tables map hashes to buckets.
#[inline]
#[must_use]
#[allow(clippy::cast_possible_truncation, reason = "below the length")]
pub fn position(hash: u64, len: usize) -> usize {
    ((u128::from(hash) * len as u128) >> 64) as usize
}

/// Returns a second hash. If the first is uniform, the high bits of the two, and so their [`position`]s, are independent.
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
    fn plain_and_dense_reads_return_the_same() {
        let mut floor = Floor::new(1000).expect("there is memory");
        let bytes: Vec<u8> = (0..1000 + READ as u64).map(|n| second_hash(n).to_be_bytes()[0]).collect();
        floor.map[floor.start..][..bytes.len()].copy_from_slice(&bytes);
        // The numbers of keys are below one block of dense reads, one block, and above it but no multiple of it.
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
    fn all_memory_is_written() {
        for len in [0, 1, 4097, 5 << 20] {
            let floor = Floor::new(len).expect("there is memory");
            assert!(floor.map[floor.start..][..len + READ].iter().all(|&byte| byte == FILL_BYTE), "{len}");
            assert_eq!(floor.map[floor.start..].as_ptr().addr() % HUGE_PAGE, 0, "{len}");
        }
        for len in [usize::MAX, usize::MAX / 2] {
            assert!(Floor::new(len).is_err(), "{len}");
        }
    }

    #[test]
    fn the_length_is_a_valid_position() {
        let floor = Floor::new(100).expect("there is memory");
        for reads in Reads::ALL {
            // Both positions have the same bytes, so their exclusive or is 0.
            assert_eq!(floor.read(reads, &[0], |_| [0, 100]), 0);
        }
    }

    #[test]
    #[should_panic = "follow the last position"]
    fn reading_beyond_the_length_panics() {
        _ = Floor::new(100).expect("there is memory").read(Reads::Plain, &[0], |_| [0, 101]);
    }
}
