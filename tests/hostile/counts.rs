//! Numbers at the edges of what their fields hold, in every field of every format, behind checksums that are right: a reader
//! refuses them in words that make sense, and computes with none of them before it has compared it with what has arrived. The
//! tests run with overflow checks.

use std::collections::BTreeSet;

use koel::{CuckooFilter, ElasticFilter, ElasticView, FilterView, Prehashed, hash::AnyHasher, pieces::SnapshotExtent};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{
    common::{GoFile, HEADER, forged},
    number,
};

const SECTION: usize = 32;
const RECORD: usize = 24;

/// Around the numbers at which a count no longer fits, nor what this many records, sections or bits take.
fn edges(right: u64) -> impl Iterator<Item = u64> {
    let powers = [8, 16, 31, 32, 48, 60, 61, 62, 63].map(|power| 1_u64 << power);
    let full = [u64::MAX / RECORD as u64, u64::MAX / SECTION as u64, i64::MAX as u64 / RECORD as u64];
    let around = powers.into_iter().chain(full).flat_map(|power| [power - 1, power, power + 1]);
    around.chain([
        0,
        1,
        right.wrapping_add(1),
        right.wrapping_sub(1),
        right.wrapping_neg(),
        u64::MAX - 63,
        u64::MAX - 7,
        u64::MAX,
    ])
}

/// What a snapshot becomes if a field of this many bytes at this place has one of those numbers.
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

/// The numbers in an error are those of the input, and none is what is left of an overflow.
#[track_caller]
fn is_sane(error: &str, given: usize) {
    assert!(error.contains("; "), "a remedy: {error}");
    let after = |words: &str| {
        let digits = error.split_once(words)?.1;
        let end = digits.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse::<u64>().ok()
    };
    if let Some(arrived) = after("end too early: there are ") {
        assert!(arrived <= given as u64, "of {given} bytes: {error}");
        let needed = after("there should be ").or_else(|| after("the header alone has "));
        assert!(needed.is_some_and(|needed| needed > arrived), "of {given} bytes: {error}");
    }
    if let Some(more) = after("the snapshot ends here, and ") {
        assert!(more > 0 && more <= given as u64, "of {given} bytes: {error}");
    }
}

/// Passes the bytes to every reader of growing filters. Returns how many refused them.
fn read_growing(bytes: &[u8]) -> usize {
    let read = ElasticFilter::from_bytes_with(bytes, AnyHasher::from_id);
    if let Ok(filter) = &read {
        use_anything(filter.clone());
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
    refused.inspect(|error| is_sane(error, bytes.len())).count()
}

/// The extent of a snapshot, which arrives in pieces.
fn extent(bytes: &[u8]) -> Result<(), String> {
    let mut extent = SnapshotExtent::new();
    for piece in bytes.chunks(61) {
        extent.push(piece).map_err(|error| error.to_string())?;
    }
    assert!(extent.received() <= bytes.len() as u64);
    Ok(())
}

/// A filter that was read with a strange number has facts, a limit, and a snapshot.
fn use_anything(mut filter: ElasticFilter<AnyHasher>) {
    assert!((0.0..=1.0).contains(&filter.false_positive_rate()), "{filter}");
    _ = (filter.to_string(), filter.len(), filter.size_in_bytes(), format!("{:?}", filter.params()));
    filter.set_max_bytes(filter.size_in_bytes() + (1 << 16));
    let inserted: Vec<u64> =
        (0..100_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).filter(|&n| filter.insert(&Prehashed(n)).is_ok()).collect();
    assert!(inserted.iter().all(|&hash| filter.contains(&Prehashed(hash))), "{filter}");
    let read = ElasticFilter::from_bytes_with(&filter.to_bytes(), AnyHasher::from_id).expect("what was written");
    if let Err(error) = filter.merge(&read) {
        assert!(!error.to_string().is_empty());
    }
    assert!(inserted.iter().all(|&hash| filter.remove(&Prehashed(hash))), "{filter}");
}

/// Where the sections of a snapshot begin, and the lengths of their lists.
fn sections(snapshot: &[u8]) -> Vec<(usize, usize)> {
    let (mut at, mut sections) = (HEADER, Vec::new());
    while at + SECTION < snapshot.len() {
        sections.push((at, number(snapshot, at + 8) as usize * RECORD));
        at += SECTION + number(snapshot, at + 16) as usize;
    }
    sections
}

/// Makes the checksums of header, lists and end right, which are where they were.
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

/// Growing filters with few and with many generations.
fn growing() -> Vec<Vec<u8>> {
    let builder = ElasticFilter::builder().false_positive_rate(0.01).capacity(1).partitions(2);
    let filled = |builder: koel::ElasticBuilder| {
        let mut filter = builder.build().expect("right");
        filter.insert_iter(0..2000_u64).expect("it grows");
        filter.to_bytes()
    };
    vec![filled(builder.clone().max_capacity(4000)), filled(builder.max_capacity(30))]
}

#[test]
fn every_number_in_a_growing_filter_may_be_absurd() {
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

/// Nothing comes behind a count that promises more than there can be.
#[test]
fn no_count_is_added_to_what_has_arrived() {
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
fn every_number_in_a_filter_of_fixed_size_may_be_absurd() {
    let mut filter = CuckooFilter::builder().capacity(100).false_positive_rate(0.01).build().expect("right");
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
                answers.iter().filter_map(|answer| answer.as_ref().err()).for_each(|error| is_sane(error, bytes.len()));
                #[cfg(feature = "serde")]
                serde::read::<CuckooFilter<AnyHasher>>(&bytes);
            }
        }
    }
}

#[test]
fn every_number_in_a_file_of_go_may_be_absurd() {
    let file = GoFile { buckets: vec![vec![1, 2, 0, 0], vec![3, 0, 0, 0]], f: 8, victim: (1, 5, 1) };
    for (bytes, header) in [(file.single(), 20), (file.packed(), 19)] {
        koel::go::decode(&bytes).expect("as it was made");
        for at in 0..header - 3 {
            for width in [1, 4] {
                for bytes in with_edges(&bytes, at, width) {
                    let Err(error) = koel::go::decode(&bytes) else { continue };
                    is_sane(&error.to_string(), bytes.len());
                }
            }
        }
    }
}

#[cfg(feature = "redisbloom")]
#[test]
fn every_number_in_a_dump_of_redisbloom_may_be_absurd() {
    use koel::redisbloom::{Loader, RedisBloomFilter};
    const FRAME: usize = 16;
    let header = [&[1, 0, 0, 0, 0, 0, 0, 0, 2][..], &[0; 15], &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 20, 0, 1, 0]].concat();
    let slots = [0, 213, 0, 0];
    let filter = RedisBloomFilter::from_chunks([(1, &header[..]), (5, &slots)]).expect("a filter");
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
                            RedisBloomFilter::from_dump(&filter.to_dump()).expect("what was written");
                        }
                        Err(error) => is_sane(&error.to_string(), dump.len()),
                    }
                }
                let (first, rest) = dump.split_at(second - FRAME);
                let Ok(mut loader) = Loader::new(number(first, 0), &first[FRAME..]) else { continue };
                _ = (loader.slots(), loader.size_in_bytes(), loader.is_complete(), format!("{loader:?}"));
                if let Err(error) = loader.load(number(rest, 0), &slots) {
                    is_sane(&error.to_string(), dump.len());
                }
                if let Err(error) = loader.finish() {
                    is_sane(&error.to_string(), dump.len());
                }
            }
        }
    }
    // Iterators come from clients.
    for iterator in edges(1) {
        for most_bytes in [1, 3, usize::MAX] {
            assert!(filter.chunk_after(iterator, most_bytes).is_none_or(|(next, bytes)| next <= 5 && !bytes.is_empty()));
        }
    }
}

#[cfg(feature = "serde")]
mod serde {
    use super::is_sane;
    use ::serde::de::{DeserializeOwned, value};

    /// Passes a snapshot as bytes and as a list, as formats do.
    pub(super) fn read<F: DeserializeOwned>(snapshot: &[u8]) {
        let bytes = value::BorrowedBytesDeserializer::<value::Error>::new(snapshot);
        let list = value::SeqDeserializer::<_, value::Error>::new(snapshot.iter().copied());
        for error in [F::deserialize(bytes).err(), F::deserialize(list).err()].into_iter().flatten() {
            is_sane(&error.to_string(), snapshot.len());
        }
    }
}
