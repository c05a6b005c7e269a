//! A view gives the results of the filter whose bytes it reads, wherever these are. With invalid bytes, its lookups still return.

#![allow(clippy::cast_possible_truncation, reason = "the numbers are small")]

mod bare;
mod fickle;
#[cfg(all(feature = "std", not(target_family = "wasm")))]
mod mapped;
mod owned;
mod prefix;

use crate::common::{Kind, SplitMix64, kinds, same_bits};
use koel::{Addressing, CuckooFilter, FilterView, Kernel, Prehashed, SnapshotErrorKind, TableKind};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const HEADER: usize = 64;
const PACKED: Kind = Kind { table: TableKind::Packed, f: 13, b: 4, addressing: Addressing::AnySize };

/// Returns kinds with the shortest and longest fingerprints of each lookup path. Views and filters share the lookup code, so these
/// are enough.
fn some_kinds() -> impl Iterator<Item = Kind> {
    kinds().filter(|kind| [4, 7, 8, 13, 16, 17, 32].contains(&kind.f))
}

fn filled(kind: Kind, buckets: u64) -> CuckooFilter {
    let mut filter = kind.filter(buckets);
    let items = filter.slots() * 3 / 4;
    for hash in SplitMix64(1).take(items) {
        // Small tables with short fingerprints may refuse an item or two.
        let _ = filter.insert(&Prehashed(hash));
    }
    filter
}

/// Returns 1,100 hashes, more than a batch: up to 1,000 that are in the filter, and others that are not.
fn hashes(filter: &CuckooFilter) -> Vec<u64> {
    let items = filter.slots() * 3 / 4;
    SplitMix64(1).skip(items.saturating_sub(1000)).take(1100).collect()
}

#[track_caller]
fn assert_same<D: AsRef<[u8]>>(view: &mut FilterView<D>, filter: &CuckooFilter) {
    let hashes = hashes(filter);
    let (mut ours, mut theirs) = (vec![false; hashes.len()], vec![true; hashes.len()]);
    filter.contains_batch(&Prehashed(&hashes), &mut ours);
    for kernel in Kernel::available() {
        view.set_kernel(kernel).expect("the kernel is available");
        view.contains_batch(&Prehashed(&hashes), &mut theirs);
        assert_eq!(ours, theirs, "{kernel}");
        assert_eq!(view.count_members(&Prehashed(&hashes)), ours.iter().filter(|&&found| found).count());
        for (&hash, &found) in hashes.iter().zip(&ours) {
            assert_eq!(view.contains(&Prehashed(hash)), found, "{kernel}");
            assert_eq!(view.count(&Prehashed(hash)), filter.count(&Prehashed(hash)), "{kernel}");
        }
    }
    assert_eq!(view.to_string(), filter.to_string());
    assert_eq!((view.len(), view.distinct(), view.params()), (filter.len(), filter.distinct(), filter.params()));
    assert!(same_bits(view, filter));
}

#[test]
fn a_view_gives_the_results_of_its_filter() {
    for kind in some_kinds() {
        let mut filter = filled(kind, 16);
        filter.set_kernel(Kernel::Portable).expect("the portable kernel is always available");
        let bytes = filter.to_bytes();
        let mut view = FilterView::over(&bytes).expect("a valid snapshot");
        assert_eq!(view.kernel(), Kernel::best());
        assert_same(&mut view, &filter);
        view.verify().expect("the bytes are unchanged");
    }
}

/// `verify` reads a table in pieces that begin at whole bytes. These tables have several pieces, and buckets of 4, 5, 8, 9, 12, 14,
/// 21 and 44 bits.
#[test]
fn long_tables_are_verified_for_all_bucket_lengths() {
    let single =
        [(4, 1), (5, 1), (8, 1), (9, 1), (4, 3), (7, 2), (7, 3)].map(|(f, b)| Kind { table: TableKind::Single, f, b, ..PACKED });
    for kind in single.into_iter().chain([Kind { f: 12, ..PACKED }]) {
        let filter = filled(kind, 20_000);
        let bytes = filter.to_bytes();
        let view = FilterView::over(&bytes).expect("a valid snapshot");
        view.verify().unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        let read = CuckooFilter::from_bytes(&bytes).unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        assert!(same_bits(&read, &filter), "{kind:?}");
    }
}

#[test]
fn snapshots_may_have_any_alignment() {
    for (kind, buckets) in [(PACKED, 200_000), (PACKED, 16), (Kind { f: 25, ..PACKED }, 46)] {
        let filter = filled(kind, buckets);
        let bytes = filter.to_bytes();
        let mut moved = vec![0; bytes.len() + 9];
        for start in 0..9 {
            moved[start..start + bytes.len()].copy_from_slice(&bytes);
            let view = FilterView::over(&moved[start..start + bytes.len()]).expect("a valid snapshot");
            view.verify().expect("the bytes are unchanged");
            assert_eq!(view.count_members(&Prehashed(&hashes(&filter))), filter.count_members(&Prehashed(&hashes(&filter))));
        }
    }
}

#[test]
fn a_view_becomes_a_filter_and_back() {
    let filter = filled(PACKED, 64);
    let bytes = filter.to_bytes();
    let view = FilterView::over(&bytes).expect("a valid snapshot");
    let mut owned = view.to_filter().expect("a valid snapshot");
    assert!(same_bits(&owned, &filter));
    owned.insert("koel").expect("there is room");
    assert!(owned.contains("koel") && owned != view);
    let changed = FilterView::over(owned.to_bytes()).expect("a valid snapshot");
    assert!(changed.contains("koel") && same_bits(&owned, &changed));
    let mut twice = owned.clone();
    twice.clear();
    twice.merge(&filter).expect("there is room");
    twice.merge(&changed.to_filter().expect("a valid snapshot")).expect("copies are always accepted");
    assert_eq!(twice.len(), 2 * view.len() + 1);
    assert!(owned.merge(&twice).is_ok() && owned.count("koel") == 2);
}

#[test]
fn opening_checks_the_header_and_verify_the_rest() {
    let bytes = filled(PACKED, 16).to_bytes();
    for bit in 0..8 * bytes.len() {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let expected = CuckooFilter::from_bytes(&damaged).expect_err("a bit was flipped");
        let error = match FilterView::over(&damaged) {
            Err(error) => error,
            Ok(view) => {
                assert!(bit / 8 >= HEADER, "a damaged header was opened");
                assert_eq!(view.to_filter().expect_err("the table is damaged").kind(), SnapshotErrorKind::BodyChecksum);
                view.verify().expect_err("the table is damaged")
            }
        };
        assert_eq!((error.kind(), error.offset()), (expected.kind(), expected.offset()));
    }
    for len in 0..bytes.len() {
        let error = FilterView::over(&bytes[..len]).expect_err("the bytes are truncated");
        assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::Length, len as u64));
    }
}

/// A damaged snapshot keeps its invalid checksum when a view writes it.
#[test]
fn damaged_snapshots_are_written_unchanged() {
    let mut bytes = filled(Kind { table: TableKind::Single, f: 8, ..PACKED }, 16).to_bytes();
    bytes[HEADER + 7] ^= 1;
    let view = FilterView::over(&bytes).expect("the header is valid");
    assert!(view.to_bytes() == bytes);
    let error = view.to_filter().expect_err("the table is damaged");
    assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::BodyChecksum, bytes.len() as u64 - 8));
    assert!(error.to_string().contains("at byte"), "{error}");
    #[cfg(feature = "std")]
    {
        let mut written = Vec::new();
        view.write_to(&mut written).expect("writing to a vector succeeds");
        assert!(written == bytes);
    }
    #[cfg(feature = "serde")]
    {
        let text = serde_json::to_string(&view).expect("a view can be written");
        let error = serde_json::from_str::<CuckooFilter>(&text).expect_err("the table is damaged");
        assert!(error.to_string().contains("the table was altered"), "{error}");
    }
}

/// Queries of views with invalid tables return, with equal results from all kernels.
#[test]
fn lookups_in_an_invalid_table_return() {
    for kind in some_kinds() {
        let mut bytes = filled(kind, 16).to_bytes();
        let end = bytes.len();
        for (round, word) in SplitMix64(7).take(3).enumerate() {
            for (byte, word) in bytes[HEADER..end].iter_mut().zip(SplitMix64(word)) {
                // The first round sets all bits: invalid codewords, and fingerprints of ones.
                *byte = if round == 0 { 0xff } else { word as u8 };
            }
            // The checksum is valid, so the table itself is refused.
            let seed = u64::from_le_bytes(bytes[HEADER - 8..HEADER].try_into().expect("eight bytes"));
            let checksum = xxh3_64_with_seed(&bytes[HEADER..end - 8], seed);
            bytes[end - 8..].copy_from_slice(&checksum.to_le_bytes());
            let mut view = FilterView::over(&bytes).expect("the header is valid");
            let error = view.verify().expect_err("the table is invalid");
            assert!(matches!(error.kind(), SnapshotErrorKind::Table | SnapshotErrorKind::Count), "{error}");
            let hashes: Vec<u64> = SplitMix64(word).take(200).collect();
            let mut found = vec![false; hashes.len()];
            for kernel in Kernel::available() {
                view.set_kernel(kernel).expect("the kernel is available");
                view.contains_batch(&Prehashed(&hashes), &mut found);
                for (&hash, &found) in hashes.iter().zip(&found) {
                    // All kernels agree, even on an invalid table.
                    assert_eq!(view.contains(&Prehashed(hash)), found, "{kernel} {kind:?}");
                    assert_eq!(view.count(&Prehashed(hash)) > 0, found, "{kernel} {kind:?}");
                }
            }
            let _ = (view.to_string(), view.measure_false_positive_rate(10), view.to_bytes(), view.load_factor());
        }
    }
}

#[test]
#[cfg_attr(target_family = "wasm", ignore = "WebAssembly has no threads")]
fn views_can_be_sent_to_threads() {
    fn check<T: Send + Sync + Clone>(_: &T) {}
    let bytes = filled(PACKED, 16).to_bytes();
    check(&FilterView::over(&bytes).expect("a valid snapshot"));
    let known: FilterView<&'static [u8]> = FilterView::over(&*bytes.leak()).expect("a valid snapshot");
    assert_eq!(std::thread::spawn(move || known.len()).join().expect("the thread does not panic"), 48);
}

/// The file that the guide's firmware includes holds four cards.
#[test]
fn the_firmware_of_the_guide_includes_four_cards() {
    let revoked = FilterView::over(include_bytes!("../../src/guide/revoked.koel")).expect("a valid snapshot");
    revoked.verify().expect("a valid snapshot");
    assert!([b"0a1b2c3d", b"12c0ffee", b"5eed5eed", b"cafe0451"].iter().all(|card| revoked.contains(*card)));
    assert_eq!((revoked.len(), revoked.contains(b"00000000")), (4, false));
}
