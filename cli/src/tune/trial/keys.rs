//! The keys of a trial, as hashes.

use std::path::Path;

use anyhow::bail;
use koel::{Hasher as _, Xxh3};

use crate::{
    file::{self, Filter},
    items::{Items, Separator},
};

/// Hashes that are kept at the same time, of keys or of absent queries: 1 GiB.
pub(super) const MOST: usize = 1 << 27;

/// Keys whose bytes are kept, and the bytes of all of them.
const SAMPLED: usize = 1 << 16;
const SAMPLED_BYTES: usize = 64 << 20;

/// The seed of the order of hashes.
const ORDER: u64 = 1;

/// Keys, told apart by their hashes.
pub(in crate::tune) struct Keys {
    /// The hashes, each once: ascending, until they are shuffled.
    pub(super) hashes: Vec<u64>,
    /// How many were read.
    pub(super) read: usize,
    /// How often the most frequent one was read.
    pub(super) most_copies: usize,
    pub(super) sample: Sample,
}

impl Keys {
    /// # Errors
    /// If the keys cannot be read, are none, or are too many.
    pub(super) fn read(path: &Path, separator: Separator, hasher: &Filter) -> anyhow::Result<Self> {
        let mut items = Items::open(path, separator, true)?;
        let (mut hashes, mut sample) = (Hashes::new(MOST), Sample::default());
        while let Some(key) = items.advance()? {
            let hash = hasher.hash(key);
            sample.offer(key);
            hashes.push(hash, &items)?;
        }
        if items.count() == 0 {
            bail!("--keys: {} has no keys; give at least one, or leave --keys out and give --items", file::name(path));
        }
        Ok(Self::of(hashes.into_vec(), sample))
    }

    fn of(mut hashes: Vec<u64>, sample: Sample) -> Self {
        let read = hashes.len();
        hashes.sort_unstable();
        let most_copies = hashes.chunk_by(u64::eq).map(<[u64]>::len).max().unwrap_or(0);
        hashes.dedup();
        Self { hashes, read, most_copies, sample }
    }

    /// The number of different keys.
    pub(in crate::tune) fn different(&self) -> usize {
        self.hashes.len()
    }

    /// Whether any key was read more than once.
    pub(in crate::tune) fn has_duplicates(&self) -> bool {
        self.different() < self.read
    }

    /// Whether this is the hash of a key. Only before they are shuffled.
    pub(super) fn contain(&self, hash: u64) -> bool {
        self.hashes.binary_search(&hash).is_ok()
    }

    /// Puts the hashes in an order that has nothing to do with buckets: in ascending order, a table is filled from one end.
    pub(super) fn shuffle(&mut self) {
        shuffle(&mut self.hashes);
    }
}

/// A random order, the same in every run.
pub(super) fn shuffle(hashes: &mut [u64]) {
    for last in (1..hashes.len()).rev() {
        let bound = last as u64 + 1;
        let random = Xxh3.hash(ORDER, &bound.to_le_bytes()) % bound;
        hashes.swap(last, usize::try_from(random).unwrap_or(last));
    }
}

/// Hashes, not too many.
pub(super) struct Hashes {
    hashes: Vec<u64>,
    most: usize,
}

impl Hashes {
    pub(super) fn new(most: usize) -> Self {
        Self { hashes: Vec::new(), most }
    }

    pub(super) fn into_vec(self) -> Vec<u64> {
        self.hashes
    }

    /// Adds the hash of the item that was read last.
    pub(super) fn push(&mut self, hash: u64, items: &Items) -> anyhow::Result<()> {
        let Self { hashes, most } = self;
        if hashes.len() == *most {
            bail!("{}: {most} items have been kept, the limit, at 8 bytes of memory each; {REMEDY}", items.place());
        }
        if hashes.len() == hashes.capacity() && hashes.try_reserve(1).is_err() {
            bail!("{}: not enough memory for more items, at 8 bytes each; {REMEDY}", items.place());
        }
        hashes.push(hash);
        Ok(())
    }
}

const REMEDY: &str = "give a sample, such as `shuf -n 10000000 FILE` prints";

/// Some of the keys with their bytes, evenly spread over all of them.
#[derive(Default)]
pub(super) struct Sample {
    pub(super) keys: Vec<Box<[u8]>>,
    bytes: usize,
    offered: usize,
    /// The logarithm of how many were offered for each one that is kept.
    thinned: u32,
}

impl Sample {
    fn offer(&mut self, key: &[u8]) {
        if self.offered.is_multiple_of(1 << self.thinned) {
            self.bytes += key.len();
            self.keys.push(key.into());
        }
        self.offered += 1;
        while self.keys.len() > 1 && (self.keys.len() > SAMPLED || self.bytes > SAMPLED_BYTES) {
            self.thin();
        }
    }

    /// Drops every second one.
    fn thin(&mut self) {
        let mut place = 0;
        self.keys.retain(|_| {
            place += 1;
            place % 2 == 1
        });
        self.bytes = self.keys.iter().map(|key| key.len()).sum();
        self.thinned += 1;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The keys 0 to n, as their decimal digits.
    pub(in crate::tune::trial) fn numbers(n: usize, hasher: &Filter) -> Keys {
        let mut sample = Sample::default();
        let hash = |number: usize| {
            let key = number.to_string();
            sample.offer(key.as_bytes());
            hasher.hash(key.as_str())
        };
        Keys::of((0..n).map(hash).collect(), sample)
    }

    #[test]
    fn duplicates_are_counted() {
        let keys = Keys::of(vec![3, 1, 3, 2, 3, 1], Sample::default());
        assert_eq!((keys.hashes.as_slice(), keys.read, keys.most_copies), (&[1, 2, 3][..], 6, 3));
        assert!(keys.has_duplicates() && keys.contain(2) && !keys.contain(4));
        assert!(!Keys::of(vec![7], Sample::default()).has_duplicates());
    }

    #[test]
    fn the_limit_is_an_error_with_a_remedy() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        std::io::Write::write_all(&mut file, b"1\n2\n3\n").expect("room");
        let mut items = Items::open(file.path(), Separator::default(), false).expect("a list");
        let mut hashes = Hashes::new(2);
        for fits in [true, true, false] {
            items.advance().expect("a line");
            let pushed = hashes.push(7, &items);
            assert_eq!(pushed.is_ok(), fits);
            if let Err(error) = pushed {
                let error = error.to_string();
                let parts = ["line 3 of", ": 2 items have been kept, the limit, at 8 bytes", "give a sample", "`shuf -n "];
                assert!(parts.iter().all(|part| error.contains(part)), "{error}");
            }
        }
        assert_eq!(hashes.into_vec(), [7, 7]);
    }

    #[test]
    fn a_shuffled_list_has_the_same_hashes() {
        let ascending: Vec<u64> = (0..1000).collect();
        let mut shuffled = ascending.clone();
        shuffle(&mut shuffled);
        // Of random places, one in a thousand stays.
        assert!(ascending.iter().zip(&shuffled).filter(|(one, other)| one == other).count() < 10);
        shuffled.sort_unstable();
        assert_eq!(shuffled, ascending);
    }

    #[test]
    fn a_sample_is_spread_evenly_and_bounded() {
        let mut sample = Sample::default();
        for number in 0..SAMPLED * 5 {
            sample.offer(&number.to_le_bytes());
        }
        let numbers: Vec<_> = sample.keys.iter().map(|key| usize::from_le_bytes((**key).try_into().expect("a number"))).collect();
        assert_eq!(numbers, (0..SAMPLED * 5).step_by(8).collect::<Vec<_>>());
        let mut sample = Sample::default();
        for _ in 0..10 {
            sample.offer(&vec![7; SAMPLED_BYTES / 3]);
        }
        assert!(sample.bytes <= SAMPLED_BYTES && !sample.keys.is_empty());
        // One that is longer than all may be is kept, if it is alone.
        let mut sample = Sample::default();
        sample.offer(&vec![7; SAMPLED_BYTES + 1]);
        assert_eq!(sample.keys.len(), 1);
    }
}
