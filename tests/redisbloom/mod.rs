//! Dumps of RedisBloom's cuckoo filters: all queries return what the server returned, false positives included, and the dumps are
//! written back byte for byte. data/redisbloom/README.md describes the dumps that RedisBloom itself wrote.

#![allow(clippy::cast_precision_loss, reason = "the numbers are small")]

mod convert;

use crate::common::same_bits;
use koel::{
    Contains, Prehashed, SnapshotError, SnapshotErrorKind as Kind,
    redisbloom::{Loader, RedisBloomFilter},
};
use serde_json::Value;
use std::{fs, path::Path};

/// A dump that RedisBloom wrote, and what RedisBloom reported about the filter.
struct Fixture {
    about: Value,
    bytes: Vec<u8>,
}

impl Fixture {
    fn number(&self, name: &str) -> u64 {
        self.about[name].as_u64().expect("a number")
    }

    fn info(&self, name: &str) -> u64 {
        self.about["info"][name].as_u64().expect("a number")
    }

    fn key(&self, prefix: &str, n: u64) -> String {
        format!("{}{n}", self.about[prefix].as_str().expect("a text"))
    }

    fn numbers(&self, name: &str) -> Vec<u64> {
        self.about[name].as_array().expect("a list").iter().map(|n| n.as_u64().expect("a number")).collect()
    }

    fn filter(&self) -> RedisBloomFilter {
        RedisBloomFilter::from_dump(&self.bytes).unwrap_or_else(|error| panic!("{}: {error}", self.about["file"]))
    }

    /// Returns the items that were added and not deleted.
    fn keys(&self) -> impl Iterator<Item = String> {
        let every = self.number("delete_every");
        let left = move |n: &u64| every == 0 || !n.is_multiple_of(every);
        (0..self.number("added")).filter(left).map(|n| self.key("key_prefix", n))
    }
}

/// Returns all fixtures except the empty filter, which has no dump.
fn fixtures() -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/redisbloom");
    let read = |name: &str| fs::read(folder.join(name)).expect("the file can be read");
    let about: Vec<Value> = serde_json::from_slice(&read("fixtures.json")).expect("JSON");
    let all = about.into_iter().map(|about| Fixture { bytes: read(about["file"].as_str().expect("a name")), about });
    let fixtures: Vec<Fixture> = all.filter(|fixture| fixture.number("chunks") > 0).collect();
    assert_eq!(fixtures.len(), 6);
    fixtures
}

#[test]
fn queries_return_what_the_server_returned() {
    for fixture in fixtures() {
        let filter = fixture.filter();
        assert!(fixture.keys().all(|key| filter.contains(&key)));
        let probes = 0..fixture.number("probe_count");
        let hits: Vec<u64> = probes.filter(|&n| filter.contains(&fixture.key("probe_prefix", n))).collect();
        assert_eq!(hits, fixture.numbers("probe_hits"), "{filter}");
        let step = usize::try_from(fixture.number("count_every")).expect("a small number");
        let counted = (0..fixture.number("added")).step_by(step).map(|n| u64::from(filter.count(&fixture.key("key_prefix", n))));
        assert_eq!(counted.collect::<Vec<_>>(), fixture.numbers("counts"), "{filter}");
        let facts = [
            ("Number of buckets", filter.buckets()),
            ("Number of filters", filter.sub_filters() as u64),
            ("Number of items inserted", filter.len() as u64),
            ("Number of items deleted", filter.deleted()),
            ("Bucket size", filter.bucket_size().into()),
            ("Expansion rate", filter.expansion().into()),
            ("Max iterations", filter.max_iterations().into()),
        ];
        for (name, value) in facts {
            assert_eq!(value, fixture.info(name), "{name} of {filter}");
        }
        assert_eq!(filter.taken(), filter.len() as u64);
        // The computed rate is within five standard deviations of the measured one.
        let (hits, probes) = (fixture.numbers("probe_hits").len() as f64, fixture.number("probe_count") as f64);
        let expected = probes * filter.false_positive_rate();
        assert!((hits - expected).abs() < 5.0 * expected.sqrt(), "{hits} of {expected}: {filter}");
    }
}

#[test]
fn every_dump_is_written_back_byte_for_byte() {
    for fixture in fixtures() {
        let filter = fixture.filter();
        assert_eq!(filter.to_dump(), fixture.bytes);
        let chunks: Vec<(u64, Vec<u8>)> = filter.chunks().map(|(iterator, bytes)| (iterator, bytes.to_vec())).collect();
        assert_eq!(chunks.len() as u64, fixture.number("chunks"));
        let borrowed = chunks.iter().map(|(iterator, bytes)| (*iterator, &bytes[..]));
        assert!(same_bits(&RedisBloomFilter::from_chunks(borrowed).expect("valid chunks"), &filter));
        // The header has padding, and the slots come in smaller pieces.
        let header = [&chunks[0].1[..], &[0, 0]].concat();
        let mut loader = Loader::new(1, &header).expect("a header");
        // Offsets count the bytes received, padding included.
        assert_eq!(loader.load(0, &[]).expect_err("the chunk is out of order").offset(), 40);
        for (iterator, bytes) in &chunks[1..] {
            assert!(!loader.is_complete() && loader.clone().finish().is_err());
            let before = iterator - bytes.len() as u64;
            let mut end = before;
            for piece in bytes.chunks(1000) {
                end += piece.len() as u64;
                loader.load(end, piece).expect("the next piece");
            }
        }
        assert!(loader.is_complete() && same_bits(&loader.finish().expect("all chunks are loaded"), &filter));
    }
}

/// Removals compact the chain of sub-filters as RedisBloom does, and lose no other item.
#[test]
fn removals_lose_no_other_item() {
    for fixture in fixtures() {
        let (mut filter, keys) = (fixture.filter(), fixture.keys().collect::<Vec<_>>());
        for (removed, key) in keys.iter().enumerate() {
            assert!(filter.remove(key), "{key} of {filter}");
            if removed % 97 == 0 {
                assert!(keys[removed + 1..].iter().all(|key| filter.contains(key)), "{filter}");
                assert_eq!((filter.len(), filter.taken()), (keys.len() - removed - 1, (keys.len() - removed - 1) as u64));
                assert!(same_bits(&RedisBloomFilter::from_dump(&filter.to_dump()).expect("a valid dump"), &filter));
            }
        }
        assert!(filter.is_empty() && filter.taken() == 0 && !filter.remove(&keys[0]));
        filter.compact();
        assert_eq!((filter.sub_filters(), filter.deleted()), (1, 0));
    }
}

#[test]
fn a_redisbloom_filter_implements_contains() {
    let fixture = fixtures().swap_remove(0);
    let filter = fixture.filter();
    let any: &dyn Contains = &filter;
    let names: &dyn Contains<str> = &filter;
    let key = fixture.key("key_prefix", 7);
    let hash = filter.hash(&key);
    assert!(names.contains(&key) && any.contains(&Prehashed(hash)) && any.count(&Prehashed(hash)) >= 1 && any.len() == 1000);
    let mut found = [false; 2];
    any.contains_batch(&[hash, hash ^ 1].map(Prehashed), &mut found);
    assert!(found[0] && any.size_in_bytes() > 2048);
    assert!(filter.to_string().starts_with("RedisBloom: 1000 items in 2 sub-filters of buckets of 2: 1000 of 2048 slots taken"));
}

#[track_caller]
fn refused(result: Result<RedisBloomFilter, SnapshotError>, kind: Kind, offset: usize, parts: &[&str]) {
    let error = result.expect_err("the bytes are not a dump");
    let text = error.to_string();
    assert_eq!((error.kind(), error.offset()), (kind, offset as u64), "{text}");
    assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} expected in: {text}");
}

#[test]
fn bytes_that_are_not_a_dump_are_refused() {
    let bytes = fixtures().swap_remove(0).bytes;
    for len in 0..bytes.len() {
        let error = RedisBloomFilter::from_dump(&bytes[..len]).expect_err("the dump is truncated");
        assert_eq!((error.kind(), error.offset()), (Kind::Length, len as u64), "{error}");
    }
    refused(RedisBloomFilter::from_dump(&[]), Kind::Length, 0, &["there are no chunks", "empty filter"]);
    let with = |at: usize, new: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        RedisBloomFilter::from_dump(&bytes)
    };
    // The frame of the header comes first, then its fields.
    refused(with(0, &[2]), Kind::Parameter, 16, &["the iterator 2, but its iterator should be 1", "in the order"]);
    refused(with(8, &[37]), Kind::Length, 16, &["37 bytes", "38 or 40"]);
    refused(with(24, &[3]), Kind::Parameter, 24, &["buckets", "power of two"]);
    refused(with(24, &[0; 8]), Kind::Parameter, 24, &["0 buckets"]);
    refused(with(40, &[0]), Kind::Parameter, 40, &["0 sub-filters"]);
    refused(with(42, &[1]), Kind::Parameter, 40, &["65538 sub-filters"]);
    refused(with(48, &[0]), Kind::Parameter, 48, &["0 slots"]);
    refused(with(48, &[0, 1]), Kind::Parameter, 48, &["256 slots, but RedisBloom's have 1 to 255"]);
    refused(with(52, &[3]), Kind::Parameter, 52, &["expansion 3"]);
    refused(with(52, &[0]), Kind::Parameter, 52, &["expansion 0"]);
    refused(with(28, &[1]), Kind::Parameter, 24, &["buckets"]);
    refused(with(24, &[0, 0, 0, 0, 0, 1]), Kind::Parameter, 40, &["sub-filter 2 has more than 4294967296 slots"]);
    refused(with(52, &[0, 128]), Kind::Length, bytes.len(), &["end too early"]);
    // The frames of the slots' chunks.
    refused(with(54, &[0]), Kind::Parameter, 70, &["its iterator should be 1025"]);
    let long = [&bytes[..], &bytes[..54]].concat();
    refused(RedisBloomFilter::from_dump(&long), Kind::TrailingBytes, bytes.len() + 16, &["all chunks", "each once"]);
}

/// A loader refuses chunks with a wrong iterator or length, and then accepts the right one.
#[test]
fn a_refused_chunk_does_not_change_the_loader() {
    let filter = fixtures().swap_remove(0).filter();
    let chunks: Vec<(u64, Vec<u8>)> = filter.chunks().map(|(iterator, bytes)| (iterator, bytes.to_vec())).collect();
    let mut loader = Loader::new(chunks[0].0, &chunks[0].1).expect("a header");
    for (iterator, bytes) in &chunks[1..] {
        for (wrong, piece) in [(iterator + 1, &bytes[..]), (*iterator, &bytes[1..])] {
            assert!(loader.load(wrong, piece).is_err());
        }
        let error = loader.load(iterator - bytes.len() as u64, &[]).expect_err("the chunk is empty");
        assert!(error.to_string().contains("an empty chunk with the iterator"), "{error}");
        let long = [&bytes[..], &[0]].concat();
        let error = loader.load(iterator + 1, &long).expect_err("the chunk is longer than its sub-filter");
        assert!(error.to_string().contains("lacks only 1024"), "{error}");
        loader.load(*iterator, bytes).expect("the next chunk");
        assert!(loader.load(*iterator, bytes).is_err());
    }
    assert!(same_bits(&loader.finish().expect("all chunks are loaded"), &filter));
}

/// `chunk_after` continues from any iterator, as a stateless server does, with chunks of any length.
#[test]
fn chunk_after_returns_all_chunks_in_any_length() {
    for fixture in fixtures() {
        let filter = fixture.filter();
        for most_bytes in [1, 1000, usize::MAX] {
            let mut iterator = 0;
            let mut loader: Option<Loader> = None;
            while let Some((next, bytes)) = filter.chunk_after(iterator, most_bytes) {
                assert!(iterator == 0 || bytes.len() <= most_bytes);
                iterator = next;
                match &mut loader {
                    Some(loader) => loader.load(next, bytes).expect("the next chunk"),
                    unset => *unset = Some(Loader::new(next, bytes).expect("a header")),
                }
            }
            let loader = loader.expect("there is a header");
            assert_eq!(loader.slots(), filter.slots() as u64);
            assert!(same_bits(&loader.finish().expect("all chunks are loaded"), &filter));
            assert_eq!(filter.chunk_after(iterator + 1, most_bytes), None);
        }
        assert_eq!(filter.chunk_after(u64::MAX, 1), None);
    }
}

/// A loader's chunks can be loaded into another loader, which then accepts the next chunk.
#[test]
fn a_partial_load_can_continue_in_another_loader() {
    for fixture in fixtures() {
        let filter = fixture.filter();
        let mut iterator = 0;
        let mut chunks = std::iter::from_fn(|| {
            let (next, bytes) = filter.chunk_after(iterator, 700)?;
            iterator = next;
            Some((next, bytes.to_vec()))
        });
        let (first, header) = chunks.next().expect("a header");
        let mut loader = Loader::new(first, &header).expect("a header");
        for (iterator, bytes) in chunks {
            let mut moved = loader.chunks();
            let (first, header) = moved.next().expect("a header");
            let mut other = Loader::new(first, header).expect("the same header");
            moved.for_each(|(iterator, bytes)| other.load(iterator, bytes).expect("the next chunk"));
            other.load(iterator, &bytes).expect("the next chunk");
            drop(std::mem::replace(&mut loader, other));
        }
        assert!(same_bits(&loader.finish().expect("all chunks are loaded"), &filter));
    }
}
