//! Snapshots of growing filters: written, read, corrupted and forged.

use crate::common::same_bits;
use std::{env, fs, process};

use koel::{
    CuckooFilter, ElasticBuilder, ElasticFilter, ElasticView, SharedFilter, SnapshotError, SnapshotErrorKind as Kind, TableKind,
    Xxh3,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const HEADER: usize = 64;
const SECTION: usize = 32;
const RECORD: usize = 24;

pub(super) fn small() -> ElasticBuilder {
    ElasticFilter::builder().false_positive_rate(0.001).capacity(500).max_capacity(40_000).seed(5)
}

pub(super) fn key(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

pub(super) fn filled(builder: ElasticBuilder, items: u64) -> ElasticFilter {
    let mut filter = builder.build().expect("valid parameters");
    filter.insert_iter((0..items).map(key)).expect("the filter grows");
    filter
}

/// Returns filters of all kinds: empty, small, with many depths, beyond the planned range, without planned growth, with
/// partitions, and with single tables.
pub(super) fn kinds() -> Vec<ElasticFilter> {
    let single = |b| small().table(TableKind::Single).bucket_size(b);
    vec![
        filled(small(), 0),
        filled(small(), 400),
        filled(small().partitions(4), 700),
        filled(small(), 20_000),
        filled(small().max_capacity(1000), 30_000),
        filled(small().capacity(9000).max_capacity(9000), 9000),
        filled(small().partitions(4), 20_000),
        filled(small().false_positive_rate(3e-6), 7000),
        filled(single(2), 5000),
        filled(single(7), 5000),
    ]
}

/// Returns the filters of [`kinds`], and some that hold copies.
pub(super) fn all_kinds() -> Vec<ElasticFilter> {
    let mut all = kinds();
    all.extend([
        repeated(small(), 100, 3),
        repeated(small().partitions(4), 999, 2),
        repeated(small().capacity(9000).max_capacity(9000), 3000, 5),
        repeated(small().partitions(4), 20_000, 2),
        repeated(small().max_capacity(1000), 9000, 3),
        repeated(small().table(TableKind::Single).bucket_size(2), 2000, 20),
    ]);
    all
}

/// Returns a filter with `copies` of each item. Most copies are counted beside the tables, in all generations.
fn repeated(builder: ElasticBuilder, items: u64, copies: u64) -> ElasticFilter {
    let mut filter = builder.build().expect("valid parameters");
    filter.insert_iter((0..items * copies).map(|n| key(n / copies))).expect("copies are always accepted");
    filter
}

/// Filters with equal content have equal bytes for every type and every way to write them.
#[test]
#[cfg(not(target_family = "wasm"))]
fn every_type_writes_and_reads_the_same_bytes() {
    let path = env::temp_dir().join(format!("koel-types-{}.koel", process::id()));
    for filter in all_kinds() {
        let bytes = filter.to_bytes();
        let view = ElasticView::over(&bytes).expect("a valid snapshot");
        let shared = SharedFilter::from_bytes(&bytes).expect("a valid snapshot");
        let (mut view_bytes, mut shared_bytes) = (Vec::new(), Vec::new());
        view.write_to(&mut view_bytes).expect("there is room");
        shared.write_to(&mut shared_bytes).expect("there is room");
        assert!([view.to_bytes(), shared.to_bytes(), view_bytes, shared_bytes].iter().all(|written| *written == bytes));
        assert_eq!([view.snapshot_bytes(), shared.snapshot_bytes()], [bytes.len() as u64; 2]);
        assert_eq!([view.distinct(), shared.distinct()], [filter.distinct(); 2], "{filter}");
        shared.save(&path).expect("there is room");
        let read = SharedFilter::load(&path).expect("a saved snapshot is valid").into_elastic().expect("there is memory");
        assert!(same_bits(&read, &filter));
        let read = SharedFilter::read_from(&bytes[..]).expect("a valid snapshot").into_elastic().expect("there is memory");
        assert!(same_bits(&read, &filter));
    }
    fs::remove_file(path).expect("the file exists");
}

#[test]
fn a_filter_read_back_behaves_like_the_original() {
    for filter in kinds() {
        let (bytes, items) = (filter.to_bytes(), filter.len() as u64);
        let mut read = ElasticFilter::from_bytes(&bytes).unwrap_or_else(|error| panic!("{filter}: {error}"));
        assert_eq!(read.to_bytes(), bytes, "{filter}");
        assert_eq!((read.len(), read.params(), read.shards()), (filter.len(), filter.params(), filter.shards()));
        // The rates may be summed in a different order.
        let (rate, again) = (filter.false_positive_rate(), read.false_positive_rate());
        assert!((rate - again).abs() <= 1e-12 * rate);
        assert!((0..items).all(|n| read.contains(&key(n))));
        // The same further operations give the same filter.
        let mut filter = filter;
        for filter in [&mut filter, &mut read] {
            filter.insert_iter((items..items + 3000).map(key)).expect("the filter grows");
            assert!((0..items / 2).all(|n| filter.remove(&key(n))));
            filter.shrink();
        }
        assert_eq!(read.to_bytes(), filter.to_bytes(), "{filter}");
        assert!((items / 2..items + 3000).all(|n| read.contains(&key(n))));
        let mut merged = filter.clone();
        match merged.merge(&read) {
            Ok(()) => assert_eq!(merged.len(), 2 * read.len()),
            Err(error) => assert!(2 * read.len() > read.params().max_capacity(), "{filter}: {error}"),
        }
        assert_eq!(ElasticFilter::from_bytes(&merged.to_bytes()).expect("a valid snapshot").len(), merged.len());
    }
}

#[test]
fn streams_and_files_have_the_same_bytes() {
    let filter = filled(small(), 5000);
    let mut stream = Vec::new();
    filter.write_to(&mut stream).expect("writing to a vector succeeds");
    assert_eq!(stream, filter.to_bytes());
    let two = [&stream[..], &stream[..]].concat();
    let mut rest = &two[..];
    for _ in 0..2 {
        assert_eq!(ElasticFilter::read_from(&mut rest).expect("a valid snapshot").to_bytes(), stream);
    }
    assert!(rest.is_empty());
    assert_eq!(ElasticFilter::read_from(rest).unwrap_err().kind(), Kind::Length);
    assert_eq!(ElasticFilter::try_from(&stream[..]).expect("a valid snapshot").len(), 5000);
    if cfg!(any(miri, target_family = "wasm")) {
        return;
    }
    let path = env::temp_dir().join(format!("koel-elastic-{}.koel", process::id()));
    filter.save(&path).expect("the folder exists");
    assert_eq!(ElasticFilter::load(&path).expect("a valid snapshot").to_bytes(), stream);
    fs::write(&path, &two).expect("the file exists");
    let error = ElasticFilter::load(&path).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (Kind::TrailingBytes, stream.len() as u64));
    fs::remove_file(&path).expect("the file exists");
    let error = ElasticFilter::load(&path).unwrap_err();
    assert!(error.kind() == Kind::Io && error.to_string().contains("cannot be opened"), "{error}");
}

#[test]
fn a_reader_of_the_wrong_type_names_the_one_to_use() {
    let fixed = CuckooFilter::builder().capacity(100).false_positive_rate(0.01).build().expect("valid parameters").to_bytes();
    let error = ElasticFilter::from_bytes(&fixed).unwrap_err();
    assert!(error.kind() == Kind::OtherType && error.to_string().ends_with("read it with CuckooFilter or FilterView"), "{error}");
    let growing = filled(small(), 10).to_bytes();
    let error = CuckooFilter::from_bytes(&growing).unwrap_err();
    assert!(
        error.kind() == Kind::OtherType && error.to_string().ends_with("read it with ElasticFilter or ElasticView"),
        "{error}"
    );
    assert_eq!(ElasticFilter::from_bytes(b"something else, of any length").unwrap_err().kind(), Kind::Magic);
    let other = |bytes: &[u8]| ElasticFilter::from_bytes_with(bytes, |_| None::<Xxh3>).map(drop);
    assert_eq!(other(&growing).unwrap_err().kind(), Kind::Hasher);
}

#[test]
fn truncated_and_extended_bytes_are_refused() {
    let bytes = repeated(small(), 1000, 3).to_bytes();
    for len in (0..300).chain((300..bytes.len()).step_by(97)).chain(bytes.len() - 20..bytes.len()) {
        let error = ElasticFilter::from_bytes(&bytes[..len]).unwrap_err();
        assert!(error.kind() == Kind::Length && error.offset() == len as u64, "{len}: {error}");
    }
    let error = ElasticFilter::from_bytes(&[&bytes[..], &[0]].concat()).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (Kind::TrailingBytes, bytes.len() as u64));
}

#[test]
fn every_flipped_bit_is_detected() {
    for bytes in [
        filled(small().capacity(10).max_capacity(300), 100).to_bytes(),
        repeated(small().capacity(10).max_capacity(300), 40, 50).to_bytes(),
    ] {
        for bit in 0..8 * bytes.len() {
            let mut altered = bytes.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert!(ElasticFilter::from_bytes(&altered).is_err(), "bit {bit} of {}", 8 * bytes.len());
        }
    }
}

/// Returns the offsets of the partitions' sections.
fn sections(bytes: &[u8]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = HEADER;
    while at < bytes.len() - 8 {
        starts.push(at);
        at += SECTION + u64::from_le_bytes(bytes[at + 16..at + 24].try_into().expect("eight bytes")) as usize;
    }
    starts
}

/// Recomputes the checksums of the header, the sections and the trailer, as a forger can. The checksums of tables stay.
fn seal(bytes: &mut [u8], sections: &[usize]) {
    let header = xxh3_64_with_seed(&bytes[..56], 0);
    bytes[56..64].copy_from_slice(&header.to_le_bytes());
    let mut all = Vec::new();
    for (partition, &at) in sections.iter().enumerate() {
        let shards = u64::from_le_bytes(bytes[at + 8..at + 16].try_into().expect("eight bytes"));
        let length = u64::from_le_bytes(bytes[at + 16..at + 24].try_into().expect("eight bytes"));
        // A partition without shards has its item count instead of records.
        let records = if shards == 0 && length > 0 { 8 } else { (shards as usize).saturating_mul(RECORD) };
        let end = (at + SECTION).saturating_add(records).min(bytes.len());
        let covered = [&bytes[at..at + 24], &bytes[at + SECTION..end]].concat();
        let checksum = xxh3_64_with_seed(&covered, header.wrapping_add(partition as u64)).to_le_bytes();
        bytes[at + 24..at + SECTION].copy_from_slice(&checksum);
        all.extend_from_slice(&checksum);
    }
    let end = bytes.len() - 8;
    let trailer = xxh3_64_with_seed(&all, header);
    bytes[end..].copy_from_slice(&trailer.to_le_bytes());
}

/// Reads forged bytes that have valid checksums. If they are accepted, asserts that the filter works.
fn refused_or_sound(bytes: &[u8]) -> Result<(), SnapshotError> {
    let mut filter = ElasticFilter::from_bytes(bytes)?;
    let len = filter.len();
    assert_eq!(ElasticFilter::from_bytes(&filter.to_bytes())?.len(), len);
    for n in 0..200 {
        if filter.insert(&key(n)).is_ok() {
            assert!(filter.contains(&key(n)) && filter.count(&key(n)) > 0);
        }
    }
    let copy = filter.clone();
    let _ = filter.merge(&copy);
    assert!((0..200).all(|n| !copy.contains(&key(n)) || filter.remove(&key(n))));
    let _ = (filter.shrink(), filter.false_positive_rate(), filter.to_string());
    Ok(())
}

#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn forged_fields_are_refused_or_give_a_working_filter() {
    let bytes = filled(small().capacity(10).max_capacity(600).partitions(2), 6000).to_bytes();
    let sections = sections(&bytes);
    assert_eq!(sections.len(), 2);
    let mut untouched = bytes.clone();
    seal(&mut untouched, &sections);
    assert_eq!(untouched, bytes, "seal differs from the library");
    let fields = (8..56).chain(sections[0]..sections[0] + SECTION + 4 * RECORD);
    let mut accepted = 0;
    for at in fields {
        for value in [0, 1, 2, 3, 7, 27, 31, 32, 64, 127, 128, 254, 255, bytes[at] ^ 1, bytes[at].wrapping_add(1)] {
            let mut forged = bytes.clone();
            forged[at] = value;
            seal(&mut forged, &sections);
            accepted += usize::from(refused_or_sound(&forged).is_ok());
        }
    }
    // Many values of the seed, the capacities and the rate are valid; few values of the fields that locate tables are.
    assert!((300..900).contains(&accepted), "{accepted}");
}

/// Returns the byte range of a partition's copies.
fn entries(bytes: &[u8], section: usize) -> std::ops::Range<usize> {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let end = section + SECTION + number(section + 16) as usize - 8;
    // The snapshot does not state how many entries there are, so the start is where the checksum matches.
    let (stored, seed) = (number(end), number(section + 24));
    let starts = (section + SECTION..end).rev().filter(|start| (end - start).is_multiple_of(ENTRY));
    let start = starts.into_iter().find(|&start| xxh3_64_with_seed(&bytes[start..end], seed) == stored);
    start.expect("there are copies")..end
}

/// Like [`seal`], and also recomputes the checksum of the copies.
fn seal_entries(bytes: &mut [u8], sections: &[usize], section: usize, entries: &std::ops::Range<usize>) {
    seal(bytes, sections);
    let seed = u64::from_le_bytes(bytes[section + 24..section + 32].try_into().expect("eight bytes"));
    let checksum = xxh3_64_with_seed(&bytes[entries.clone()], seed);
    bytes[entries.end..entries.end + 8].copy_from_slice(&checksum.to_le_bytes());
}

const ENTRY: usize = 16;

/// Forges invalid lists of items: unordered, with duplicates, with keys of no item, with wrong counts.
#[test]
fn forged_lists_are_refused() {
    let bytes = repeated(small(), 101, 2).to_bytes();
    let (sections, section) = (sections(&bytes), HEADER);
    let key_bytes = (bytes.len() - 8 - HEADER - SECTION - 8 - 101 * ENTRY - 8) / 101;
    let (number, keys) = (section + SECTION, section + SECTION + 8);
    let (end, lists) = (keys + 101 * key_bytes, keys..bytes.len() - 16);
    let key = |n: usize| bytes[keys + n * key_bytes..][..key_bytes].to_vec();
    let refused = |changes: &[(usize, &[u8])], kinds: &[Kind]| {
        let mut forged = bytes.clone();
        for (at, new) in changes {
            forged[*at..at + new.len()].copy_from_slice(new);
        }
        seal_entries(&mut forged, &sections, section, &lists);
        let error = ElasticFilter::from_bytes(&forged).unwrap_err();
        assert!(kinds.contains(&error.kind()), "{changes:?}: {error}");
        assert_eq!(ElasticFilter::read_from(&forged[..]).unwrap_err().to_string(), error.to_string());
        if let Ok(view) = ElasticView::over(&forged) {
            assert_eq!(view.verify().unwrap_err().to_string(), error.to_string());
            // Lookups may return anything, but must not panic.
            let _ = (0..1000).filter(|n| view.contains(&super::snapshots::key(*n))).count();
        }
    };
    refused(&[(keys, &key(1))], &[Kind::Table]);
    refused(&[(keys, &key(1)), (keys + key_bytes, &key(0))], &[Kind::Table]);
    refused(&[(keys + 100 * key_bytes, &vec![0xff; key_bytes])], &[Kind::Table, Kind::Copies]);
    // The key of a different item, which has no copies.
    let other = u64::from_le_bytes([&key(50)[..], &[0; 8]].concat()[..8].try_into().expect("eight bytes")) + 1;
    refused(&[(keys + 50 * key_bytes, &other.to_le_bytes()[..key_bytes])], &[Kind::Table, Kind::Copies]);
    assert!((end - keys) % 8 > 0, "the list has no padding");
    refused(&[(end, &[1])], &[Kind::Table]);
    for forged in [0_u64, 1, 100, 102, u64::MAX] {
        refused(&[(number, &forged.to_le_bytes())], &[Kind::Shards, Kind::Count, Kind::Table]);
    }
    for forged in [0_u64, 100, 101, 1 << 40, u64::MAX] {
        refused(&[(section, &forged.to_le_bytes())], &[Kind::Shards, Kind::Count, Kind::Copies]);
    }
}

/// Forges invalid lists of copies: unordered, with duplicates, with a count of 0, of absent items, beyond the maximum count.
#[test]
fn forged_copies_are_refused() {
    for builder in [small().capacity(10).max_capacity(600).partitions(2), small().capacity(2000).max_capacity(2000)] {
        let bytes = repeated(builder, 1500, 4).to_bytes();
        let sections = sections(&bytes);
        let section = sections[sections.len() - 1];
        let range = entries(&bytes, section);
        let list: Vec<[u8; ENTRY]> = bytes[range.clone()].as_chunks().0.to_vec();
        assert!(list.len() > 300);
        let items = u64::from_le_bytes(bytes[section..section + 8].try_into().expect("eight bytes"));
        let forge = |list: &[[u8; ENTRY]], items: u64| {
            let mut forged = bytes.clone();
            forged[range.clone()].copy_from_slice(list.as_flattened());
            forged[section..section + 8].copy_from_slice(&items.to_le_bytes());
            seal_entries(&mut forged, &sections, section, &range);
            forged
        };
        assert!(forge(&list, items) == bytes, "seal differs from the library");
        let refused = |list: &[[u8; ENTRY]], items: u64, kind: Kind, words: &str| {
            let forged = forge(list, items);
            let error = ElasticFilter::from_bytes(&forged).expect_err(words);
            assert!(error.kind() == kind && error.to_string().contains(words), "{words}: {error}");
            assert_eq!(ElasticFilter::read_from(&forged[..]).expect_err(words).to_string(), error.to_string());
            let Ok(view) = ElasticView::over(&forged) else { return assert_eq!(kind, Kind::Count) };
            assert_eq!(view.verify().expect_err(words).to_string(), error.to_string());
            assert_eq!(view.to_filter().expect_err(words).to_string(), error.to_string());
            // Lookups still find all items.
            assert!((0..1500).all(|n| view.contains(&key(n)) && view.count(&key(n)) > 0));
        };
        let changed = |at: usize, byte: usize, value: u8| {
            let mut list = list.clone();
            list[at][byte] = value;
            list
        };
        let mut swapped = list.clone();
        swapped.swap(4, 5);
        refused(&swapped, items, Kind::Copies, "out of order");
        let mut twice = list.clone();
        twice[5] = twice[4];
        refused(&twice, items, Kind::Copies, "out of order");
        let mut zero = list.clone();
        zero[7][12..].fill(0);
        refused(&zero, items, Kind::Copies, "or has no copies");
        refused(&changed(0, 0, list[0][0] ^ 1), items, Kind::Copies, "no table has it");
        refused(&changed(list.len() - 1, 10, 0xff), items, Kind::Copies, "no table has it");
        refused(&changed(list.len() - 1, 11, 200), items, Kind::Copies, "no table has it");
        let mut overflow = list.clone();
        overflow[9][12..].fill(0xff);
        refused(&overflow, items, Kind::Copies, "more than 2³² − 1 copies");
        refused(&changed(3, 12, list[3][12] + 1), items, Kind::Copies, "but the partition's header says");
        refused(&list, items + 1, Kind::Copies, "but the partition's header says");
        refused(&list, 0, Kind::Count, "its header says 0");
        refused(&list, u64::MAX, Kind::Count, "its header says");
        // Flips random bits.
        for n in 0..2000 {
            let mut list = list.clone();
            let at = key(n) as usize % list.len();
            list[at][key(n + 7) as usize % ENTRY] ^= 1 << (n % 8);
            let forged = forge(&list, if n % 2 == 0 { items } else { items + n });
            let is_refused = ElasticFilter::from_bytes(&forged).is_err();
            let view = ElasticView::over(&forged).expect("the lists of shards are valid");
            assert_eq!(view.verify().is_err(), is_refused);
            assert!(view.contains(&key(n % 1500)) && view.count(&key(n % 1500)) > 0);
        }
    }
}

#[test]
fn forged_sizes_are_refused() {
    let bytes = filled(small(), 100).to_bytes();
    let sections = sections(&bytes);
    // The shard count, the buckets per shard, and the partition bits.
    for (at, claim) in [(sections[0] + 8, &u64::MAX.to_le_bytes()[..7]), (24, &[0, 0, 0, 0x7f]), (13, &[8])] {
        let mut forged = bytes.clone();
        forged[at..at + claim.len()].copy_from_slice(claim);
        seal(&mut forged, &sections);
        let error = ElasticFilter::from_bytes(&forged).unwrap_err();
        assert!(matches!(error.kind(), Kind::Shards | Kind::Length | Kind::BodyChecksum | Kind::Parameter), "{error}");
    }
}

/// A slot that has upper bits and an empty fingerprint is refused, even with a valid checksum: a split would lose it.
#[test]
fn fingerprints_without_low_bits_are_refused() {
    let builder = small().table(TableKind::Single).bucket_size(1).capacity(10_000);
    let mut bytes = filled(builder, 1).to_bytes();
    let sections = sections(&bytes);
    let shards = bytes[sections[0] + 8] as usize;
    // Exactly one table is not empty.
    let mut table = sections[0] + SECTION + shards * RECORD;
    let length = (bytes.len() - 8 - table) / shards;
    let shard = (0..shards).find(|shard| bytes[table + shard * length..][..length].iter().any(|&byte| byte != 0));
    let shard = shard.expect("one table has the item");
    table += shard * length;
    let low_bits = bytes[11] as usize;
    let first = (0..8 * length).find(|bit| bytes[table + bit / 8] >> (bit % 8) & 1 == 1).expect("the table is not empty");
    // Clears the slot of the first bit, and sets one of its upper bits in the column behind the table.
    let slot = first / low_bits;
    for bit in slot * low_bits..(slot + 1) * low_bits {
        bytes[table + bit / 8] &= !(1 << (bit % 8));
    }
    let buckets = u32::from_le_bytes(bytes[24..28].try_into().expect("four bytes")) as usize;
    let upper = (buckets * low_bits).next_multiple_of(8) + slot * usize::from(bytes[29] - bytes[28]);
    bytes[table + upper / 8] |= 1 << (upper % 8);
    assert!(slot < buckets && upper < 8 * length);
    let params = koel::ElasticFilter::from_bytes(&bytes).unwrap_err();
    assert_eq!(params.kind(), Kind::BodyChecksum);
    let checksum = (length - 7..=length).map(|len| xxh3_64_with_seed(&bytes[table..table + len], 0)).collect::<Vec<u64>>();
    let kinds: Vec<Kind> = checksum
        .into_iter()
        .map(|checksum| {
            let mut forged = bytes.clone();
            let at = sections[0] + SECTION + shard * RECORD + 16;
            forged[at..at + 8].copy_from_slice(&checksum.to_le_bytes());
            seal(&mut forged, &sections);
            ElasticFilter::from_bytes(&forged).unwrap_err().kind()
        })
        .collect();
    // Up to seven bytes of padding follow the table, so all lengths are tried.
    assert!(kinds.contains(&Kind::Table), "{kinds:?}");
}
