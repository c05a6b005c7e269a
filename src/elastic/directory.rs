//! The directory of a generation, as in extendible hashing: it leads from the first bits of a stream to a shard's table.
//!
//! ```text
//! global depth 2    00 ──▶ shard of local depth 2, prefix 00
//!                   01 ──▶ shard of local depth 2, prefix 01
//!                   10 ──┬▶ shard of local depth 1, prefix 1
//!                   11 ──┘
//! ```

use alloc::vec::Vec;
use core::iter;

use super::stream::Window;
use crate::{
    bits::index,
    storage::{OutOfMemory, reserved, shrink_to},
};

/// For each value of a stream's first bits, as many as the global depth, the place `P` of the shard that they lead to. A shard has
/// a row of entries, as many as its local depth is smaller than the global one in powers of two.
#[derive(Clone)]
pub(crate) struct Directory<P> {
    entries: Vec<P>,
    first_bits: Window,
}

impl<P: Copy> Directory<P> {
    /// One without entries, which leads nowhere.
    pub fn none(global_depth: u8) -> Self {
        Self::of(Vec::new(), global_depth)
    }

    /// One of this depth, with all entries equal.
    pub fn filled(global_depth: u8, place: P) -> Result<Self, OutOfMemory> {
        let mut entries = reserved(1 << global_depth)?;
        entries.resize(1 << global_depth, place);
        Ok(Self::of(entries, global_depth))
    }

    fn of(entries: Vec<P>, global_depth: u8) -> Self {
        Self { entries, first_bits: Window::new(0, global_depth.into(), 0) }
    }

    #[inline]
    pub fn global_depth(&self) -> u8 {
        self.first_bits.len()
    }

    /// True if it has no entries.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.entries.is_empty()
    }

    /// Where a stream leads; nowhere if there are no entries.
    #[inline]
    pub fn find(&self, stream: u64) -> Option<P> {
        self.entries.get(index(self.first_bits.of(stream))).copied()
    }

    /// The entries, and the bits of a stream that choose one.
    #[cfg(x86_kernels)]
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the compiler keeps in registers what a loop needs of it")]
    pub fn parts(&self) -> (&[P], Window) {
        (&self.entries, self.first_bits)
    }

    pub fn entries(&self) -> &[P] {
        &self.entries
    }

    /// The first entry of a shard's row.
    fn first(&self, depth: u8, prefix: u32) -> usize {
        index(prefix.into()) << (self.global_depth() - depth)
    }

    /// Where the first entry leads of the row that a shard of this depth and prefix has, or would have.
    pub fn at(&self, depth: u8, prefix: u32) -> Option<P> {
        self.entries.get(self.first(depth, prefix)).copied()
    }

    /// Lets the entries of a shard's row lead to this place.
    pub fn point(&mut self, depth: u8, prefix: u32, place: P) {
        let (first, row) = (self.first(depth, prefix), 1 << (self.global_depth() - depth));
        self.entries[first..first + row].fill(place);
    }

    /// All shards, in the order of their streams. `depth_of` says how deep one is.
    pub fn places(&self, depth_of: impl Fn(P) -> u8 + Clone) -> impl Iterator<Item = P> + Clone {
        let mut next = 0;
        iter::from_fn(move || {
            let place = *self.entries.get(next)?;
            next += 1 << (self.global_depth() - depth_of(place));
            Some(place)
        })
    }

    /// All shards, in the order of the reversed bits of their streams.
    pub fn evenly(&self, depth_of: impl Fn(P) -> u8) -> impl Iterator<Item = P> {
        (0..self.entries.len()).filter_map(move |number| {
            let entry = number.reverse_bits().unbounded_shr(usize::BITS - u32::from(self.global_depth()));
            let place = self.entries[entry];
            let unused = self.global_depth() - depth_of(place);
            // A shard is taken at the first entry of its row.
            (entry.trailing_zeros() >= unused.into()).then_some(place)
        })
    }

    /// Copies the directory with this greater depth. Returns `None` if it is as deep already.
    pub fn deepened(&self, global_depth: u8) -> Result<Option<Self>, OutOfMemory> {
        let bits = global_depth.saturating_sub(self.global_depth());
        if bits == 0 {
            return Ok(None);
        }
        let mut deeper = reserved(self.entries.len() << bits)?;
        deeper.extend(self.entries.iter().flat_map(|&place| iter::repeat_n(place, 1 << bits)));
        Ok(Some(Self::of(deeper, global_depth)))
    }

    /// Halves it. No shard may be as deep.
    pub fn halve(&mut self) {
        let mut at = 0;
        self.entries.retain(|_| {
            at += 1;
            at % 2 == 1
        });
        shrink_to(&mut self.entries, 0);
        self.first_bits = Window::new(0, u32::from(self.global_depth()) - 1, 0);
    }

    /// A copy, or an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut entries = reserved(self.entries.len())?;
        entries.extend_from_slice(&self.entries);
        Ok(Self { entries, ..*self })
    }

    /// The memory of one of this depth, in bytes.
    pub fn bytes_of(global_depth: u8) -> usize {
        size_of::<P>() << global_depth
    }

    pub fn size_in_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<P>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shards of local depths 2, 2 and 1, whose places are their depth and prefix.
    fn uneven() -> Directory<(u8, u32)> {
        let mut directory = Directory::filled(2, (0, 0)).unwrap();
        for (depth, prefix) in [(2, 0), (2, 1), (1, 1)] {
            directory.point(depth, prefix, (depth, prefix));
        }
        directory
    }

    #[test]
    fn every_stream_leads_to_the_shard_with_its_prefix() {
        let mut directory = uneven();
        for deeper in [2, 5] {
            if let Some(deepened) = directory.deepened(deeper).unwrap() {
                directory = deepened;
            }
            for top in 0..32_u64 {
                let (depth, prefix) = directory.find(top << 59).unwrap();
                assert_eq!(u64::from(prefix), top >> (5 - depth), "{top:05b}");
                assert_eq!(directory.at(depth, prefix), Some((depth, prefix)));
            }
            let depth_of = |(depth, _)| depth;
            assert_eq!(directory.places(depth_of).collect::<Vec<_>>(), [(2, 0), (2, 1), (1, 1)]);
            assert_eq!(directory.evenly(depth_of).collect::<Vec<_>>(), [(2, 0), (1, 1), (2, 1)]);
        }
        assert_eq!((directory.global_depth(), directory.entries().len()), (5, 32));
        while directory.global_depth() > 2 {
            directory.halve();
        }
        assert!(directory.entries() == uneven().entries() && directory.deepened(2).unwrap().is_none());
        assert_eq!(directory.size_in_bytes(), Directory::<(u8, u32)>::bytes_of(2));
    }

    #[test]
    fn without_entries_it_leads_nowhere() {
        let directory = Directory::<u32>::none(3);
        assert!(directory.is_none() && directory.find(u64::MAX).is_none() && directory.size_in_bytes() == 0);
    }
}
