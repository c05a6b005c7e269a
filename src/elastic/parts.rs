//! Sharing out many hashes by where they go, so that the shards of one part stay in a core's cache while they are used.

use alloc::vec::Vec;
use core::ops::Range;

use super::shard::{Window, stream};
use crate::{
    bits::index,
    kernel::Hashes,
    storage::{OutOfMemory, reserve, reserved},
    table::Uniform,
};

/// Log₂ of the most parts: as many streams of writes as a core's cache and address translation can follow.
const MOST_BITS: u32 = 8;

/// Hashes, shared out by the first bits of their streams. In each part they are in the order in which they came.
///
/// Hashes are uniform, so parts are nearly of one size, and need not be counted first. What exceeds a part's room, as copies may,
/// is spilt.
pub(super) struct Parts {
    bits: u32,
    /// Room in a part.
    room: usize,
    hashes: Vec<u64>,
    /// The index of each hash among those that came.
    places: Vec<u32>,
    lens: Vec<usize>,
    spilt: Vec<(u32, u64)>,
}

impl Parts {
    /// Room for `len` hashes, fewer than 2³², in 2^`bits` parts, at most 2⁸.
    pub(super) fn new(len: usize, bits: u32) -> Result<Self, OutOfMemory> {
        let bits = bits.min(MOST_BITS);
        let each = len.div_ceil(1 << bits);
        let room = each + 6 * each.isqrt() + 8;
        let (mut hashes, mut places, mut lens) = (reserved(room << bits)?, reserved(room << bits)?, reserved(1 << bits)?);
        hashes.resize(room << bits, 0);
        places.resize(room << bits, 0);
        lens.resize(1 << bits, 0);
        Ok(Self { bits, room, hashes, places, lens, spilt: Vec::new() })
    }

    /// Shares out the hashes in `range`, instead of those before.
    pub(super) fn fill(&mut self, source: &impl Hashes, range: Range<usize>) -> Result<(), OutOfMemory> {
        self.lens.fill(0);
        self.spilt.clear();
        let window = Window::new(0, self.bits, 0);
        let (mut place, mut result) = (0, Ok(()));
        source.each_batch(range, |batch| {
            for &hash in batch {
                let part = index(window.of(stream(Uniform(hash))));
                let len = self.lens[part];
                if len < self.room {
                    let at = part * self.room + len;
                    (self.hashes[at], self.places[at], self.lens[part]) = (hash, place, len + 1);
                } else {
                    result = reserve(&mut self.spilt, 1);
                    if result.is_err() {
                        return false;
                    }
                    self.spilt.push((place, hash));
                }
                place += 1;
            }
            true
        });
        result
    }

    /// All hashes, part after part, with their indices among those that were shared out.
    pub(super) fn each(&self, mut act: impl FnMut(usize, Uniform) -> bool) -> bool {
        let parts = self.lens.iter().enumerate().map(|(part, len)| part * self.room..part * self.room + len);
        for part in parts {
            for (&hash, &place) in self.hashes[part.clone()].iter().zip(&self.places[part]) {
                if !act(index(place.into()), Uniform(hash)) {
                    return false;
                }
            }
        }
        self.spilt.iter().all(|&(place, hash)| act(index(place.into()), Uniform(hash)))
    }
}
