//! Snapshots of growing filters: written, read, corrupted and forged.

use crate::{
    common::{Folder, filled, key, same_bits},
    operations::sections::{COPIES, RECORD, SECTION, seal, sections},
};
use std::fs;

use koel::{
    CuckooFilter, ElasticBuilder, ElasticFilter, ElasticView, SharedFilter, SnapshotError, SnapshotErrorKind as Kind, Xxh3,
};

pub(super) fn small() -> ElasticBuilder {
    ElasticFilter::builder().false_positive_rate(0.001).capacity(500).max_capacity(40_000).seed(5)
}

/// Returns filters of all kinds: empty, small, with many depths, beyond the planned range, without planned growth, and
/// with partitions.
pub(super) fn kinds() -> Vec<ElasticFilter> {
    vec![
        filled(small(), 0),
        filled(small(), 400),
        filled(small().partitions(4), 700),
        filled(small(), 20_000),
        filled(small().max_capacity(1000), 30_000),
        filled(small().capacity(9000).max_capacity(9000), 9000),
        filled(small().partitions(4), 20_000),
        filled(small().false_positive_rate(3e-6), 7000),
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
        repeated(small(), 2000, 20),
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
    let folder = Folder::new("types");
    let path = folder.path("types.koel");
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
    let folder = Folder::new("elastic");
    let path = folder.path("elastic.koel");
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
    seal(&mut untouched);
    assert_eq!(untouched, bytes, "seal differs from the library");
    let records = sections[0].at + SECTION;
    let of_records = (records..records + 4 * RECORD).filter(|at| (at - records) % RECORD < 16);
    // All fields but the checksums, which are recomputed.
    let fields = (8..56).chain(sections[0].at..sections[0].at + 24).chain(of_records);
    let mut accepted = 0;
    for at in fields {
        for value in [0, 1, 2, 3, 7, 27, 31, 32, 64, 127, 128, 254, 255, bytes[at] ^ 1, bytes[at].wrapping_add(1)] {
            let mut forged = bytes.clone();
            forged[at] = value;
            seal(&mut forged);
            accepted += usize::from(refused_or_sound(&forged).is_ok());
        }
    }
    // Many values of the seed, the capacities and the rate are valid; few values of the fields that locate tables are.
    assert!((300..900).contains(&accepted), "{accepted}");
}

/// Asserts that every reader refuses the bytes with the same error, of one of these kinds, and that unverified views do not panic.
fn refused(forged: &[u8], kinds: &[Kind]) -> SnapshotError {
    let error = ElasticFilter::from_bytes(forged).expect_err("forged bytes");
    assert!(kinds.contains(&error.kind()), "{error}");
    assert_eq!(ElasticFilter::read_from(forged).expect_err("forged bytes").to_string(), error.to_string());
    if let Ok(view) = ElasticView::over(forged) {
        assert_eq!(view.verify().expect_err("forged bytes").to_string(), error.to_string());
        assert_eq!(view.to_filter().expect_err("forged bytes").to_string(), error.to_string());
        // Lookups may return anything, but must not panic.
        let _ = (0..1000).filter(|&n| view.contains(&key(n)) && view.count(&key(n)) > 0).count();
    }
    error
}

/// A key and its count in a list.
type Entry = (Vec<u8>, u32);

/// Forges invalid lists of items: unordered, with duplicates, with keys of no item, with wrong counts.
#[test]
fn forged_lists_are_refused() {
    let bytes = repeated(small(), 101, 2).to_bytes();
    let section = &sections(&bytes)[0];
    let (record, list) = section.bodies().next().expect("a list");
    let (keys, key_bytes) = (list.start, list.len() / 101 - 1);
    let counts = keys + 101 * key_bytes;
    let stored = |n: usize| bytes[keys + n * key_bytes..][..key_bytes].to_vec();
    let forge = |changes: &[(usize, &[u8])]| {
        let mut forged = bytes.clone();
        for (at, new) in changes {
            forged[*at..at + new.len()].copy_from_slice(new);
        }
        seal(&mut forged);
        forged
    };
    let is_refused = |changes: &[(usize, &[u8])], kinds: &[Kind], words: &str| {
        let error = refused(&forge(changes), kinds).to_string();
        assert!(error.contains(words), "{changes:?}: {error}");
    };
    assert!(forge(&[]) == bytes, "seal differs from the library");
    is_refused(&[(keys, &stored(1))], &[Kind::Table], "not in order");
    is_refused(&[(keys, &stored(1)), (keys + key_bytes, &stored(0))], &[Kind::Table], "not in order");
    is_refused(&[(counts - key_bytes, &vec![0xff; key_bytes])], &[Kind::Table], "cannot have");
    // A low fingerprint of 0.
    let mut without_fingerprint = stored(50);
    (without_fingerprint[0], without_fingerprint[1]) = (0, without_fingerprint[1] & 0xff << (bytes[11] - 8));
    is_refused(&[(keys + 50 * key_bytes, &without_fingerprint)], &[Kind::Table], "cannot have");
    is_refused(&[(counts + 7, &[0])], &[Kind::Table], "has no copies");
    is_refused(&[(counts, &[1; 101])], &[Kind::Table], "longer than they need to be");
    is_refused(&[(counts + 7, &[3])], &[Kind::Count], "its header says");
    assert!(list.len() % 8 > 0, "the list has no padding");
    is_refused(&[(list.end, &[1])], &[Kind::Table], "not zero");
    for width in [0, 2, 3, 4, 255] {
        is_refused(&[(record + 3, &[width])], &[Kind::Shards], "");
    }
    for entries in [0_u64, 1, 100, 200, u64::MAX] {
        is_refused(&[(record + 8, &entries.to_le_bytes())], &[Kind::Shards], "");
    }
    // The padding has room for one more entry, so the length is correct, but not the entry.
    is_refused(&[(record + 8, &102_u64.to_le_bytes())], &[Kind::Table], "");
    for items in [0_u64, 100, 201, 203, 1 << 40, u64::MAX] {
        is_refused(&[(section.at, &items.to_le_bytes())], &[Kind::Count], "its header says");
    }
}

/// Asserts that a view and a filter agree on whether a list of copies with a flipped bit is valid, and that lookups in tables still
/// find the item.
fn check_flipped(forged: &[u8], item: u64) {
    let is_refused = ElasticFilter::from_bytes(forged).is_err();
    match ElasticView::over(forged) {
        Ok(view) => {
            assert_eq!(view.verify().is_err(), is_refused);
            assert!(view.contains(&item) && view.count(&item) > 0);
        }
        Err(_) => assert!(is_refused),
    }
}

/// A snapshot whose last body is a list of extra copies: where its section, its record and the list begin.
struct LastCopies<'a> {
    bytes: &'a [u8],
    section: usize,
    record: usize,
    start: usize,
}

impl LastCopies<'_> {
    /// Returns a snapshot with another list, whose counts have `width` bytes, and with this number of items in the section.
    fn replaced(&self, list: &[Entry], items: u64, width: usize) -> Vec<u8> {
        let &Self { bytes, section, record, start } = self;
        let mut body: Vec<u8> = list.iter().flat_map(|(key, _)| key.clone()).collect();
        body.extend(list.iter().flat_map(|(_, count)| count.to_le_bytes()[..width].to_vec()));
        body.resize(body.len().next_multiple_of(8), 0);
        let mut forged = [&bytes[..start], &body, &[0; 8]].concat();
        forged[record + 3] = width as u8;
        forged[section..section + 8].copy_from_slice(&items.to_le_bytes());
        let length = (forged.len() - 8 - section - SECTION) as u64;
        forged[section + 16..section + 24].copy_from_slice(&length.to_le_bytes());
        seal(&mut forged);
        forged
    }
}

/// Forges invalid lists of copies: unordered, with duplicates, with a count of 0, of absent items, beyond the maximum count.
#[test]
fn forged_copies_are_refused() {
    for builder in [small().capacity(10).max_capacity(600).partitions(2), small().capacity(2000).max_capacity(2000)] {
        let bytes = repeated(builder, 1500, 4).to_bytes();
        let sections = sections(&bytes);
        let section = sections.last().expect("a section");
        let (record, range) = section.bodies().last().expect("extra copies");
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let (entries, width) = (number(record + 8) as usize, usize::from(bytes[record + 3]));
        assert!(bytes[record + 2] == COPIES && entries > 300 && width == 1);
        let (items, key_bytes) = (number(section.at), range.len() / entries - width);
        let (keys, counts) = bytes[range.clone()].split_at(entries * key_bytes);
        let list: Vec<Entry> = keys.chunks(key_bytes).map(<[u8]>::to_vec).zip(counts.iter().copied().map(u32::from)).collect();
        let original = LastCopies { bytes: &bytes, section: section.at, record, start: range.start };
        let forge_wide = |list: &[Entry], items: u64, width: usize| original.replaced(list, items, width);
        let forge = |list: &[Entry], items: u64| forge_wide(list, items, width);
        assert!(forge(&list, items) == bytes, "seal differs from the library");
        let is_refused = |forged: &[u8], kind: Kind, words: &str| {
            let error = refused(forged, &[kind]).to_string();
            assert!(error.contains(words), "{words}: {error}");
            // Lookups in tables still find all items.
            let Ok(view) = ElasticView::over(forged) else { return assert_eq!(kind, Kind::Count) };
            assert!((0..1500).all(|n| view.contains(&key(n)) && view.count(&key(n)) > 0));
        };
        let changed = |change: fn(&mut [Entry])| {
            let mut list = list.clone();
            change(&mut list);
            list
        };
        is_refused(&forge(&changed(|list| list.swap(4, 5)), items), Kind::Copies, "out of order");
        is_refused(&forge(&changed(|list| list[5].0 = list[4].0.clone()), items), Kind::Copies, "out of order");
        is_refused(&forge(&changed(|list| list[7].1 = 0), items), Kind::Copies, "or has no copies");
        // Tables have all bits of the key but the six extra ones.
        for bit in 6..8 * key_bytes {
            let mut list = list.clone();
            list[0].0[bit / 8] ^= 1 << (bit % 8);
            is_refused(&forge(&list, items), Kind::Copies, "no table has it");
        }
        is_refused(
            &forge(&changed(|list| list.last_mut().expect("entries").0.fill(0xff)), items),
            Kind::Copies,
            "no table has it",
        );
        is_refused(&forge(&changed(|list| list.iter_mut().for_each(|entry| entry.1 = 1)), items), Kind::Copies, "longer than");
        is_refused(&forge_wide(&list, items, 2), Kind::Copies, "longer than");
        let overflow = forge_wide(&changed(|list| list[9].1 = u32::MAX), items, 4);
        is_refused(&overflow, Kind::Copies, "more than 2³² − 1 copies");
        is_refused(&forge(&changed(|list| list[3].1 += 1), items), Kind::Count, "its header says");
        is_refused(&forge(&list, items + 1), Kind::Count, "its header says");
        is_refused(&forge(&list, 0), Kind::Count, "its header says 0");
        is_refused(&forge(&list, u64::MAX), Kind::Count, "its header says");
        for n in 0..2000 {
            let mut forged = forge(&list, if n % 2 == 0 { items } else { items + n });
            let at = range.start + key(n) as usize % range.len();
            forged[at] ^= 1 << (n % 8);
            seal(&mut forged);
            check_flipped(&forged, key(n % 1500));
        }
    }
}

#[test]
fn forged_sizes_are_refused() {
    let bytes = filled(small(), 100).to_bytes();
    let sections = sections(&bytes);
    // The shard count, the buckets per shard, and the partition bits.
    for (at, claim) in [(sections[0].at + 8, &u64::MAX.to_le_bytes()[..7]), (24, &[0, 0, 0, 0x7f]), (13, &[8])] {
        let mut forged = bytes.clone();
        forged[at..at + claim.len()].copy_from_slice(claim);
        seal(&mut forged);
        let error = ElasticFilter::from_bytes(&forged).unwrap_err();
        assert!(matches!(error.kind(), Kind::Shards | Kind::Length | Kind::BodyChecksum | Kind::Parameter), "{error}");
    }
}

/// A slot that has upper bits and an empty fingerprint is refused, even with a valid checksum: a split would lose it.
#[test]
fn fingerprints_without_low_bits_are_refused() {
    let mut bytes = filled(small().capacity(10_000), 0).to_bytes();
    let (_, table) = sections(&bytes)[0].bodies().next().expect("a table");
    // Sets an upper bit of the first slot in the column behind the table.
    let buckets = u32::from_le_bytes(bytes[24..28].try_into().expect("four bytes")) as usize;
    let column = table.start + (buckets * 4 * (usize::from(bytes[11]) - 1)).div_ceil(8);
    assert!(column < table.end && bytes[table].iter().all(|&byte| byte == 0));
    bytes[column] |= 1;
    assert_eq!(ElasticFilter::from_bytes(&bytes).unwrap_err().kind(), Kind::BodyChecksum);
    seal(&mut bytes);
    assert_eq!(ElasticFilter::from_bytes(&bytes).unwrap_err().kind(), Kind::Table);
}
