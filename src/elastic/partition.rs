//! Sharing out many hashes by where they go, so that the shards of one part stay in a core's cache while they are used.

use alloc::vec::Vec;
use core::ops::Range;

use super::stream::Shares;
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
/// Hashes are uniform, so that the lengths of the parts are nearly known, and need not be counted first. What exceeds a part's
/// room, as copies may, is spilt.
pub(super) struct Partition {
    shares: Shares,
    bits: u32,
    /// Where each part begins, and where the last one ends.
    starts: Vec<usize>,
    hashes: Vec<u64>,
    /// The index of each hash among those that came.
    places: Vec<u32>,
    lens: Vec<usize>,
    spilt: Vec<(u32, u64)>,
}

impl Partition {
    /// Room for `len` hashes, fewer than 2³², in 2^`bits` parts or so, at most 2⁸: at least one for each lane.
    pub(super) fn new(shares: Shares, len: usize, bits: u32) -> Result<Self, OutOfMemory> {
        let bits = bits.min(MOST_BITS).max(shares.lane_bits().into());
        let mut starts = reserved((1 << bits) + 1)?;
        let mut start = 0;
        for part in 0..1 << bits {
            starts.push(start);
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "an estimate"
            )]
            let mean = (len as f64 * shares.of_first_bits(part, bits)) as usize;
            start += mean + 6 * mean.isqrt() + 8;
        }
        starts.push(start);
        let (mut hashes, mut places, mut lens) = (reserved(start)?, reserved(start)?, reserved(1 << bits)?);
        hashes.resize(start, 0);
        places.resize(start, 0);
        lens.resize(1 << bits, 0);
        Ok(Self { shares, bits, starts, hashes, places, lens, spilt: Vec::new() })
    }

    /// Shares out the hashes in `range`, instead of those before.
    pub(super) fn fill(&mut self, source: &impl Hashes, range: Range<usize>) -> Result<(), OutOfMemory> {
        self.lens.fill(0);
        self.spilt.clear();
        let (mut place, mut result) = (0, Ok(()));
        source.each_batch(range, |batch| {
            for &hash in batch {
                let part = self.shares.first_bits(Uniform(hash), self.bits);
                let (at, len) = (self.starts[part] + self.lens[part], self.lens[part]);
                if at < self.starts[part + 1] {
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

    /// Log₂ of the number of parts.
    #[cfg(feature = "std")]
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    /// Calls `act` with the number of each part, its hashes, and their indices among those that were shared out.
    pub(super) fn each_part(&self, mut act: impl FnMut(usize, &[u64], &[u32])) {
        for (part, (&start, &len)) in self.starts.iter().zip(&self.lens).enumerate().filter(|(_, (_, len))| **len > 0) {
            act(part, &self.hashes[start..start + len], &self.places[start..start + len]);
        }
        for &(place, hash) in &self.spilt {
            act(self.shares.first_bits(Uniform(hash), self.bits), &[hash], &[place]);
        }
    }

    /// All hashes, part after part, with their indices among those that were shared out.
    pub(super) fn each(&self, mut act: impl FnMut(usize, Uniform)) {
        self.each_part(|_, hashes, places| {
            for (&hash, &place) in hashes.iter().zip(places) {
                act(index(place.into()), Uniform(hash));
            }
        });
    }
}
