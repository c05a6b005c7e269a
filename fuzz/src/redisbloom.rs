//! Bytes as one of RedisBloom's dumps: exactly the dumps that src/guide/redisbloom.md describes are read, queries and removals
//! behave as the guide says, and the dumps are written back unchanged.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::naive_bytecount,
    reason = "the numbers are small"
)]

use super::{
    formulas::short_number,
    same_bits::same_bits,
    split_mix::{SplitMix64, unmixed},
};
use koel::{
    Prehashed,
    redisbloom::{Loader, RedisBloomError, RedisBloomFilter},
};

/// Returns the `Prehashed` number that koel places like RedisBloom's hash.
fn key(hash: u64) -> Prehashed {
    Prehashed(unmixed((hash << 32) | (hash % u64::from(u32::MAX))))
}

/// How far a compaction goes, from the last sub-filter to the first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compaction {
    /// Through all sub-filters, as CF.COMPACT goes.
    Complete,
    /// Up to the first sub-filter that does not become empty, as removals go.
    Partial,
}

/// A direct implementation of the filter that the guide describes.
#[derive(Clone)]
struct Model {
    items: u64,
    deleted: u64,
    /// The buckets of each sub-filter, as lists of slots.
    filters: Vec<Vec<Vec<u8>>>,
}

/// Checks the bytes as they are, and then a dump whose numbers and slots come from them.
pub fn check(input: &[u8]) {
    check_dump(input);
    if let Some(dump) = generate(input) {
        assert!(check_dump(&dump), "a valid dump is refused");
    }
}

/// Returns whether the bytes are a valid dump.
fn check_dump(bytes: &[u8]) -> bool {
    let read = RedisBloomFilter::from_dump(bytes);
    let Some(model) = expected(bytes) else {
        let error = read.expect_err("the bytes are not a dump");
        assert!(error.offset() <= bytes.len() as u64, "{error}");
        return false;
    };
    let mut filter = read.unwrap_or_else(|error| panic!("a valid dump is refused: {error}"));
    let again = filter.to_dump();
    // The dump is written without padding in its header, and chunks may become longer.
    assert!(RedisBloomFilter::from_dump(&again).is_ok_and(|read| read == filter && read.to_dump() == again));
    if short_number(&bytes[8..16]) == 38 && again.len() == bytes.len() {
        assert_eq!(again, bytes);
    }
    let mut chunks = filter.chunks();
    let (iterator, header) = chunks.next().expect("a header");
    let mut loader = Loader::new(iterator, header).expect("a valid header");
    chunks.for_each(|(iterator, bytes)| loader.load(iterator, bytes).expect("the next chunk"));
    assert!(loader.finish().is_ok_and(|read| read == filter && read.to_dump() == again));
    convert(&filter, &model);
    check_items(&mut filter, model);
    true
}

/// Converts the dump to a `CuckooFilter` and back, if it has one table with a supported bucket size.
fn convert(filter: &RedisBloomFilter, model: &Model) {
    let own = filter.to_filter();
    match (&model.filters[..], filter.bucket_size()) {
        ([slots], 1..=16) => {
            let own = own.expect("CuckooFilter supports this filter");
            let taken = slots.iter().flatten().filter(|slot| **slot != 0).count();
            assert_eq!(own.len(), taken);
            for hash in SplitMix64(model.items).take(100) {
                assert_eq!(own.contains(&key(hash)), filter.contains(&key(hash)));
                let (_, [first, second]) = Model::place(hash);
                let times = if (first ^ second) % slots.len() as u64 == 0 { 2 } else { 1 };
                assert_eq!(times * own.count(&key(hash)), filter.count(&key(hash)));
            }
            let again = RedisBloomFilter::from_filter(&own).expect("RedisBloom supports this filter");
            let slots = |filter: &RedisBloomFilter| filter.chunks().skip(1).map(|(_, bytes)| bytes.to_vec()).collect::<Vec<_>>();
            assert!(slots(&again) == slots(filter) && again.len() == taken);
            assert!(same_bits(&again.to_filter().expect("CuckooFilter supports this filter"), &own));
        }
        ([_], _) => assert!(matches!(own, Err(RedisBloomError::BucketSize(17..)))),
        (filters, _) => assert!(matches!(own, Err(RedisBloomError::SubFilters(given)) if given == filters.len())),
    }
}

/// Looks up and removes items, and compares the results with the model.
fn check_items(filter: &mut RedisBloomFilter, mut model: Model) {
    for hash in SplitMix64(model.items).take(100) {
        let copies = model.count(hash);
        assert_eq!((filter.contains(&key(hash)), filter.count(&key(hash))), (copies > 0, copies));
        assert_eq!(filter.remove(&key(hash)), model.remove(hash));
        assert_eq!(
            (filter.len() as u64, filter.deleted(), filter.sub_filters()),
            (model.items, model.deleted, model.filters.len())
        );
    }
    filter.compact();
    model.compact(Compaction::Complete);
    let slots: Vec<u8> = filter.chunks().skip(1).flat_map(|(_, bytes)| bytes.to_vec()).collect();
    assert_eq!(slots, model.filters.concat().concat());
}

impl Model {
    /// Returns the fingerprint and the two buckets of a hash, which a sub-filter takes modulo its number of buckets.
    fn place(hash: u64) -> (u8, [u64; 2]) {
        let fingerprint = (hash % 255 + 1) as u8;
        (fingerprint, [hash, hash ^ (u64::from(fingerprint) * 0x5bd1_e995)])
    }

    fn count(&self, hash: u64) -> u32 {
        let (fingerprint, buckets) = Self::place(hash);
        let mut copies = 0;
        for filter in &self.filters {
            for bucket in buckets {
                let bucket = &filter[(bucket % filter.len() as u64) as usize];
                copies += bucket.iter().filter(|&&slot| slot == fingerprint).count() as u32;
            }
        }
        copies
    }

    fn remove(&mut self, hash: u64) -> bool {
        let (fingerprint, buckets) = Self::place(hash);
        for at in (0..self.filters.len()).rev() {
            if replace(&mut self.filters[at], buckets, fingerprint, 0) {
                self.items = self.items.saturating_sub(1);
                self.deleted = self.deleted.saturating_add(1);
                if self.filters.len() > 1 && self.deleted as f64 > self.items as f64 * 0.1 {
                    self.compact(Compaction::Partial);
                }
                return true;
            }
        }
        false
    }

    fn compact(&mut self, compaction: Compaction) {
        for at in (1..self.filters.len()).rev() {
            let mut filter = self.filters[at].clone();
            for (number, bucket) in (0_u64..).zip(&mut filter) {
                for slot in bucket.iter_mut().filter(|slot| **slot != 0) {
                    let buckets = [number, number ^ (u64::from(*slot) * 0x5bd1_e995)];
                    if (0..at).any(|earlier| replace(&mut self.filters[earlier], buckets, 0, *slot)) {
                        *slot = 0;
                    }
                }
            }
            let is_empty = filter.iter().flatten().all(|&slot| slot == 0);
            self.filters[at] = filter;
            if is_empty && at + 1 == self.filters.len() {
                self.filters.pop();
            }
            if !is_empty && compaction == Compaction::Partial {
                break;
            }
        }
        self.deleted = 0;
    }
}

/// Replaces `old` with `new` in the first slot of the two buckets that contains it. Returns false if none does.
fn replace(filter: &mut [Vec<u8>], buckets: [u64; 2], old: u8, new: u8) -> bool {
    for bucket in buckets {
        let at = (bucket % filter.len() as u64) as usize;
        if let Some(slot) = filter[at].iter_mut().find(|slot| **slot == old) {
            *slot = new;
            return true;
        }
    }
    false
}

/// Returns the chunks of a dump with their iterators, or `None` if the frames are invalid.
fn chunks(mut bytes: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut chunks = Vec::new();
    while !bytes.is_empty() {
        let (iterator, len) = (short_number(bytes.get(..8)?), short_number(bytes.get(8..16)?));
        let end = usize::try_from(len).ok()?.checked_add(16)?;
        chunks.push((iterator, bytes.get(16..end)?));
        bytes = &bytes[end..];
    }
    Some(chunks)
}

/// Returns the model of a dump, or `None` if the bytes are not a dump.
fn expected(bytes: &[u8]) -> Option<Model> {
    let chunks = chunks(bytes)?;
    let (iterator, header) = *chunks.first()?;
    if iterator != 1 || header.len() != 38 && header.len() != 40 {
        return None;
    }
    let field = |at: usize, len: usize| short_number(&header[at..at + len]);
    let (m, s, b, x) = (field(8, 8), field(24, 8), field(32, 2), field(36, 2));
    if !m.is_power_of_two() || s == 0 || s > 65_535 || b == 0 || b > 255 || !x.is_power_of_two() && (x > 0 || s > 1) {
        return None;
    }
    let mut slots = chunks[1..].iter();
    let (mut filters, mut end) = (Vec::new(), 1);
    for k in 0..s {
        let growth = u128::from(x).checked_pow(k as u32).unwrap_or(u128::MAX);
        let whole = u128::from(m).checked_mul(growth)?.checked_mul(b.into())?;
        if whole > 1 << 32 {
            return None;
        }
        let mut filter = Vec::new();
        while (filter.len() as u128) < whole {
            let (iterator, bytes) = slots.next()?;
            end += bytes.len() as u64;
            if *iterator != end || bytes.is_empty() || (filter.len() + bytes.len()) as u128 > whole {
                return None;
            }
            filter.extend_from_slice(bytes);
        }
        filters.push(filter.chunks(b as usize).map(<[u8]>::to_vec).collect());
    }
    // No chunks may follow the last sub-filter.
    slots.next().is_none().then_some(Model { items: field(0, 8), deleted: field(16, 8), filters })
}

/// Generates a dump of a small filter. The first bytes of the input give its parameters, the others its slots.
fn generate(input: &[u8]) -> Option<Vec<u8>> {
    let (&[log2, sub_filters, b, growth, items, pieces], mut rest) = input.split_first_chunk()?;
    let (m, s, b, x) = (1_usize << (log2 % 6), usize::from(sub_filters % 4) + 1, usize::from(b % 5) + 1, 1_usize << (growth % 3));
    let mut header = Vec::new();
    for word in [u64::from(items), m as u64, 0, s as u64] {
        header.extend_from_slice(&word.to_le_bytes());
    }
    for half in [b, 20, x] {
        header.extend_from_slice(&(half as u16).to_le_bytes());
    }
    let mut dump = Vec::new();
    let mut chunk = |iterator: u64, bytes: &[u8]| {
        dump.extend_from_slice(&iterator.to_le_bytes());
        dump.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        dump.extend_from_slice(bytes);
    };
    chunk(1, &header);
    let mut end = 1;
    for k in 0..s {
        let len = m * x.pow(k as u32) * b;
        let (given, left) = rest.split_at(rest.len().min(len));
        rest = left;
        let slots = [given, &vec![0; len - given.len()]].concat();
        for piece in slots.chunks(if pieces % 2 == 0 { len } else { usize::from(pieces) }) {
            end += piece.len() as u64;
            chunk(end, piece);
        }
    }
    Some(dump)
}
