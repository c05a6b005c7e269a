//! Extreme numbers in every field of every format, with valid checksums. A reader refuses them with a sensible message, and
//! compares each number with the bytes received before it computes with it. The tests run with overflow checks.

use std::collections::BTreeSet;

use koel::{CuckooFilter, ElasticFilter, ElasticView, FilterView, Prehashed, hash::AnyHasher, pieces::SnapshotExtent};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{
    common::{GoFile, HEADER, forged},
    number,
};

const SECTION: usize = 32;
const RECORD: usize = 24;

/// Returns numbers at which a count, or the size of that many records, sections or bits, overflows, and neighbors of `valid`.
fn edges(valid: u64) -> impl Iterator<Item = u64> {
    let powers = [8, 16, 31, 32, 48, 60, 61, 62, 63].map(|power| 1_u64 << power);
    let full = [u64::MAX / RECORD as u64, u64::MAX / SECTION as u64, i64::MAX as u64 / RECORD as u64];
    let around = powers.into_iter().chain(full).flat_map(|power| [power - 1, power, power + 1]);
    around.chain([
        0,
        1,
        valid.wrapping_add(1),
        valid.wrapping_sub(1),
        valid.wrapping_neg(),
        u64::MAX - 63,
        u64::MAX - 7,
        u64::MAX,
    ])
}

/// Returns copies of the snapshot in which the field of `width` bytes at `at` has each of the [`edges`].
fn with_edges(snapshot: &[u8], at: usize, width: usize) -> impl Iterator<Item = Vec<u8>> {
    let mut field = [0; 8];
    field[..width].copy_from_slice(&snapshot[at..at + width]);
    let edges: BTreeSet<_> = edges(u64::from_le_bytes(field)).map(|edge| edge.to_le_bytes()[..width].to_vec()).collect();
    edges.into_iter().map(move |edge| {
        let mut bytes = snapshot.to_vec();
        bytes[at..at + width].copy_from_slice(&edge);
        bytes
    })
}

/// Asserts that the numbers in an error fit the input of `given` bytes, so none comes from an overflow.
#[track_caller]
fn assert_sane(error: &str, given: usize) {
    assert!(error.contains("; "), "no remedy: {error}");
    let after = |words: &str| {
        let digits = error.split_once(words)?.1;
        let end = digits.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse::<u64>().ok()
    };
    if let Some(arrived) = after("end too early: there are ") {
        assert!(arrived <= given as u64, "{given} bytes given: {error}");
        let needed = after("there should be at least ").or_else(|| after("the header alone has "));
        assert!(needed.is_some_and(|needed| needed > arrived), "{given} bytes given: {error}");
    }
    if let Some(more) = after("the snapshot ends here, and ") {
        assert!(more > 0 && more <= given as u64, "{given} bytes given: {error}");
    }
}

/// Passes the bytes to every reader of growing filters. Returns how many of them refused the bytes.
fn read_growing(bytes: &[u8]) -> usize {
    let read = ElasticFilter::from_bytes_with(bytes, AnyHasher::from_id);
    if let Ok(filter) = &read {
        exercise(filter.clone());
    }
    let view = ElasticView::over_with(bytes, AnyHasher::from_id);
    if let Ok(view) = &view {
        _ = (view.to_string(), view.len(), view.false_positive_rate(), view.size_in_bytes(), view.contains(&Prehashed(7)));
    }
    let answers = [
        read.map(drop).map_err(|error| error.to_string()),
        ElasticFilter::read_from_with(bytes, AnyHasher::from_id).map(drop).map_err(|error| error.to_string()),
        view.and_then(|view| view.verify()).map_err(|error| error.to_string()),
        ElasticView::over_prefix_with(bytes, AnyHasher::from_id).map(drop).map_err(|error| error.to_string()),
        extent(bytes),
    ];
    #[cfg(feature = "serde")]
    serde::read::<ElasticFilter<AnyHasher>>(bytes);
    let refused = answers.iter().filter_map(|answer| answer.as_ref().err());
    refused.inspect(|error| assert_sane(error, bytes.len())).count()
}

/// Finds the extent of a snapshot that arrives in pieces.
fn extent(bytes: &[u8]) -> Result<(), String> {
    let mut extent = SnapshotExtent::new();
    for piece in bytes.chunks(61) {
        extent.push(piece).map_err(|error| error.to_string())?;
    }
    assert!(extent.received() <= bytes.len() as u64);
    Ok(())
}

/// Calls many methods of a filter that was read from forged bytes.
fn exercise(mut filter: ElasticFilter<AnyHasher>) {
    assert!((0.0..=1.0).contains(&filter.false_positive_rate()), "{filter}");
    _ = (filter.to_string(), filter.len(), filter.size_in_bytes(), format!("{:?}", filter.params()));
    filter.set_max_bytes(filter.size_in_bytes() + (1 << 16));
    let inserted: Vec<u64> =
        (0..100_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).filter(|&n| filter.insert(&Prehashed(n)).is_ok()).collect();
    assert!(inserted.iter().all(|&hash| filter.contains(&Prehashed(hash))), "{filter}");
    let read = ElasticFilter::from_bytes_with(&filter.to_bytes(), AnyHasher::from_id).expect("a written filter can be read");
    if let Err(error) = filter.merge(&read) {
        assert!(!error.to_string().is_empty());
    }
    filter.intersect(&read).expect("equal parameters");
    assert!(inserted.iter().all(|&hash| filter.contains(&Prehashed(hash))), "{filter}");
    let mut few = read.clone();
    few.clear();
    _ = inserted.first().map(|&hash| few.insert(&Prehashed(hash)));
    few.intersect(&filter).expect("equal parameters");
    assert!(inserted.iter().all(|&hash| filter.remove(&Prehashed(hash))), "{filter}");
    filter.intersect(&few).expect("equal parameters");
}

/// Returns the offset of each section and the length of its list of shards.
fn sections(snapshot: &[u8]) -> Vec<(usize, usize)> {
    let (mut at, mut sections) = (HEADER, Vec::new());
    while at + SECTION < snapshot.len() {
        sections.push((at, number(snapshot, at + 8) as usize * RECORD));
        at += SECTION + number(snapshot, at + 16) as usize;
    }
    sections
}

/// Recomputes the checksums of the header, the lists and the trailer at their original offsets.
fn sealed(mut bytes: Vec<u8>, sections: &[(usize, usize)]) -> Vec<u8> {
    let put = |bytes: &mut [u8], at: usize, sum: u64| bytes[at..at + 8].copy_from_slice(&sum.to_le_bytes());
    let header = xxh3_64_with_seed(&bytes[..HEADER - 8], 0);
    put(&mut bytes, HEADER - 8, header);
    let mut sums = Vec::new();
    for (partition, &(at, list)) in (0..).zip(sections) {
        let covered = [&bytes[at..at + 24], &bytes[at + SECTION..at + SECTION + list]].concat();
        let sum = xxh3_64_with_seed(&covered, header.wrapping_add(partition));
        put(&mut bytes, at + 24, sum);
        sums.extend(sum.to_le_bytes());
    }
    let end = bytes.len() - 8;
    put(&mut bytes, end, xxh3_64_with_seed(&sums, header));
    bytes
}

/// Returns snapshots of growing filters with one and with several generations.
fn growing() -> Vec<Vec<u8>> {
    let builder = ElasticFilter::builder().false_positive_rate(0.01).capacity(1).partitions(2);
    let filled = |builder: koel::ElasticBuilder| {
        let mut filter = builder.build().expect("valid parameters");
        filter.insert_iter(0..2000_u64).expect("the filter grows");
        filter.to_bytes()
    };
    vec![filled(builder.clone().max_capacity(4000)), filled(builder.max_capacity(30))]
}

#[test]
fn extreme_numbers_in_growing_snapshots_are_handled() {
    let mut refused = 0;
    for snapshot in growing() {
        let sections = sections(&snapshot);
        assert_eq!(sealed(snapshot.clone(), &sections), snapshot);
        let lists = sections.iter().flat_map(|&(at, list)| {
            let records = [0, list.saturating_sub(RECORD)].into_iter().filter(move |_| list > 0);
            let fields = records.flat_map(move |record| [1, 4, 8].map(|field| at + SECTION + record + field));
            [at, at + 8, at + 16].into_iter().chain(fields)
        });
        for at in (10..HEADER - 8).chain(lists) {
            for width in [1, 4, 8] {
                for bytes in with_edges(&snapshot, at, width) {
                    refused += read_growing(&sealed(bytes, &sections));
                }
            }
        }
    }
    assert!(refused > 10_000, "{refused}");
}

/// The bytes end soon after a count that claims more than can follow.
#[test]
fn truncated_bytes_with_extreme_counts_are_refused() {
    let snapshot = growing().swap_remove(0);
    let sections = sections(&snapshot);
    for at in [HEADER + 8, HEADER + 16] {
        for bytes in with_edges(&snapshot, at, 8) {
            let bytes = sealed(bytes, &sections);
            for end in [HEADER, HEADER + 1, HEADER + SECTION, HEADER + SECTION + 1, bytes.len() - 1] {
                assert!(read_growing(&bytes[..end]) >= 4);
            }
        }
    }
}

#[test]
fn extreme_numbers_in_fixed_snapshots_are_handled() {
    let mut filter = CuckooFilter::builder().capacity(100).false_positive_rate(0.01).build().expect("valid parameters");
    (0..50_u64).for_each(|item| filter.insert(&item).expect("there is room"));
    let snapshot = filter.to_bytes();
    for at in 10..HEADER - 8 {
        for width in [1, 4, 8] {
            for bytes in with_edges(&snapshot, at, width) {
                let bytes = forged(&bytes, |_| ());
                let answers = [
                    CuckooFilter::from_bytes(&bytes).map(drop).map_err(|error| error.to_string()),
                    CuckooFilter::read_from(&bytes[..]).map(drop).map_err(|error| error.to_string()),
                    FilterView::over(&bytes).and_then(|view| view.verify()).map_err(|error| error.to_string()),
                    extent(&bytes),
                ];
                answers.iter().filter_map(|answer| answer.as_ref().err()).for_each(|error| assert_sane(error, bytes.len()));
                #[cfg(feature = "serde")]
                serde::read::<CuckooFilter<AnyHasher>>(&bytes);
            }
        }
    }
}

#[test]
fn extreme_numbers_in_go_files_are_handled() {
    let file = GoFile { buckets: vec![vec![1, 2, 0, 0], vec![3, 0, 0, 0]], f: 8, victim: (1, 5, 1) };
    for (bytes, header) in [(file.single(), 20), (file.packed(), 19)] {
        koel::go::decode(&bytes).expect("a valid file");
        for at in 0..header - 3 {
            for width in [1, 4] {
                for bytes in with_edges(&bytes, at, width) {
                    let Err(error) = koel::go::decode(&bytes) else { continue };
                    assert_sane(&error.to_string(), bytes.len());
                }
            }
        }
    }
}

#[cfg(feature = "redisbloom")]
#[test]
fn extreme_numbers_in_redisbloom_dumps_are_handled() {
    use koel::redisbloom::{Loader, RedisBloomFilter};
    const FRAME: usize = 16;
    let header = [&[1, 0, 0, 0, 0, 0, 0, 0, 2][..], &[0; 15], &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 20, 0, 1, 0]].concat();
    let slots = [0, 213, 0, 0];
    let filter = RedisBloomFilter::from_chunks([(1, &header[..]), (5, &slots)]).expect("valid chunks");
    let dump = filter.to_dump();
    let second = 2 * FRAME + header.len();
    for at in (0..FRAME + header.len() - 7).chain([second - FRAME, second - 8]) {
        for width in [1, 2, 4, 8] {
            for dump in with_edges(&dump, at, width) {
                for read in [RedisBloomFilter::from_dump(&dump), RedisBloomFilter::read_dump(&dump[..])] {
                    match read {
                        Ok(mut filter) => {
                            _ = (format!("{filter:?}"), filter.len(), filter.slots(), filter.false_positive_rate());
                            assert!((0..255).filter(|&hash| filter.remove(&Prehashed(hash))).count() <= slots.len());
                            filter.compact();
                            RedisBloomFilter::from_dump(&filter.to_dump()).expect("a written dump can be read");
                        }
                        Err(error) => assert_sane(&error.to_string(), dump.len()),
                    }
                }
                let (first, rest) = dump.split_at(second - FRAME);
                let Ok(mut loader) = Loader::new(number(first, 0), &first[FRAME..]) else { continue };
                _ = (loader.slots(), loader.size_in_bytes(), loader.is_complete(), format!("{loader:?}"));
                if let Err(error) = loader.load(number(rest, 0), &slots) {
                    assert_sane(&error.to_string(), dump.len());
                }
                if let Err(error) = loader.finish() {
                    assert_sane(&error.to_string(), dump.len());
                }
            }
        }
    }
    // Clients choose the iterators, so any number may arrive.
    for iterator in edges(1) {
        for most_bytes in [1, 3, usize::MAX] {
            assert!(filter.chunk_after(iterator, most_bytes).is_none_or(|(next, bytes)| next <= 5 && !bytes.is_empty()));
        }
    }
}

#[cfg(feature = "serde")]
mod serde {
    use super::assert_sane;
    use ::serde::de::{DeserializeOwned, value};

    /// Deserializes a snapshot from bytes and from a list of numbers, as formats do.
    pub(super) fn read<F: DeserializeOwned>(snapshot: &[u8]) {
        let bytes = value::BorrowedBytesDeserializer::<value::Error>::new(snapshot);
        let list = value::SeqDeserializer::<_, value::Error>::new(snapshot.iter().copied());
        for error in [F::deserialize(bytes).err(), F::deserialize(list).err()].into_iter().flatten() {
            assert_sane(&error.to_string(), snapshot.len());
        }
    }
}
