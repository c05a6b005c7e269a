//! The plain table beside the library's filter.

use koel::{CuckooFilter, Prehashed, TableKind};

use super::{EMPTY, Plain, RandomWalk, insert_nearest};
use crate::experiments::random::Hashes;

/// Offset of the table in a snapshot, after its header (docs/FORMAT.md).
const HEADER: usize = 64;

fn filter(f: u32, b: u32, buckets: u64) -> CuckooFilter {
    let builder = CuckooFilter::builder().table(TableKind::Single).fingerprint_bits(f).bucket_size(b).buckets(buckets);
    builder.build().expect("the parameters are right")
}

impl Plain {
    /// The table's bytes in a snapshot: slot after slot, f bits each, the least significant first.
    fn bytes(&self, f: u32) -> Vec<u8> {
        let bits = self.slots.iter().flat_map(|&slot| (0..f).map(move |bit| slot >> bit & 1 == 1));
        let bits: Vec<_> = bits.collect();
        let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
        bits.chunks(8).map(byte).collect()
    }

    fn items(&self) -> usize {
        self.slots.iter().filter(|&&slot| slot != EMPTY).count()
    }
}

fn assert_same(plain: &Plain, filter: &CuckooFilter, f: u32, what: &str) {
    let snapshot = filter.to_bytes();
    let table = &snapshot[HEADER..HEADER + filter.params().table_bytes()];
    assert!(plain.bytes(f) == table, "{what}: the tables differ");
    assert_eq!(plain.items(), filter.len(), "{what}");
}

/// Up to the first refusal, the search for the nearest slot does what the library does; the refusal, too, is the same.
#[test]
fn the_nearest_slot_is_the_librarys() {
    let mut evictions = [0; 5];
    let mut refusals = 0;
    for (f, b) in [(2, 1), (3, 16), (4, 2), (5, 8), (7, 3), (8, 4), (13, 4), (16, 2), (21, 5), (32, 1), (32, 4)] {
        // In 20,000 buckets, a search takes different ones for the same. Only in more do chains become so long.
        for buckets in [2, 6, 128, 1002, 20_000].into_iter().chain((b == 1).then_some(200_000)) {
            let what = format!("f {f}, b {b}, {buckets} buckets");
            let (mut plain, mut filter) = (Plain::new(f, b, buckets), filter(f, b, buckets));
            for hash in Hashes::new(buckets ^ u64::from(f)) {
                let moved = insert_nearest(&mut plain, hash);
                assert_eq!(moved.is_some(), filter.insert(&Prehashed(hash)).is_ok(), "{what}: one of the two refused an item");
                let Some(moved) = moved else { break };
                evictions[moved.min(4) as usize] += 1;
            }
            refusals += 1;
            assert_same(&plain, &filter, f, &what);
        }
    }
    assert_eq!(refusals, 57);
    assert!(evictions.is_sorted_by(|more, fewer| more > fewer) && evictions[4] > 1000, "{evictions:?}");
}

/// An insertion without evictions fills one slot, one with k of them changes k slots more.
#[test]
fn evictions_are_those_that_happened() {
    let mut plain = Plain::new(16, 4, 128);
    let mut seen = [0; 4];
    let mut before = plain.slots.clone();
    for hash in Hashes::new(1) {
        let Some(evictions) = insert_nearest(&mut plain, hash) else { break };
        let changed = before.iter().zip(&plain.slots).filter(|(before, after)| before != after).count();
        assert_eq!(changed, evictions as usize + 1);
        seen[evictions.min(3) as usize] += 1;
        before.clone_from(&plain.slots);
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
    assert!(before == plain.slots, "a refused item changed the table");
}

/// The random walk locates items by the same formulas: as long as nothing is evicted, both find the same items.
#[test]
fn the_random_walk_puts_items_where_the_library_does() {
    for (f, b) in [(2, 1), (5, 2), (13, 4), (32, 8)] {
        let (mut walk, mut filter) = (RandomWalk::new(Plain::new(f, b, 1002), 1), filter(f, b, 1002));
        let hashes: Vec<_> = Hashes::new(u64::from(f)).take(50).collect();
        for &hash in &hashes {
            filter.insert(&Prehashed(hash)).expect("there is room");
            assert_eq!(walk.insert(hash), Some(0));
        }
        let holds = |hash| {
            let place = walk.table.locate(hash);
            place.buckets.into_iter().any(|bucket| walk.table.bucket(bucket).contains(&place.fingerprint))
        };
        assert!(hashes.iter().all(|&hash| holds(hash)));
        for hash in Hashes::new(9).take(20_000) {
            assert_eq!(holds(hash), filter.contains(&Prehashed(hash)), "f {f}, b {b}");
        }
    }
}

#[test]
fn the_alternate_of_the_alternate_is_the_bucket() {
    for buckets in [2, 128, 1002, 1 << 40, (1 << 40) + 2] {
        // No slots: only the formulas are wanted.
        let plain = Plain { slots: Vec::new(), b: 0, buckets, fingerprints: (1 << 13) - 1 };
        for hash in Hashes::new(buckets).take(1000) {
            let place = plain.locate(hash);
            let [first, second] = place.buckets;
            assert!(first < buckets && second < buckets && first != second);
            assert_eq!(plain.alternate(second, place.fingerprint), first);
        }
    }
}

/// The limit of 500 evictions ends a walk in a full table.
#[test]
fn the_random_walk_gives_up() {
    let mut walk = RandomWalk::new(Plain::new(16, 4, 128), 1);
    let mut most = 0;
    for hash in Hashes::new(3) {
        let Some(evictions) = walk.insert(hash) else { break };
        most = evictions.max(most);
    }
    assert!((100..=500).contains(&most), "{most}");
    // One item is lost; its place is taken.
    assert!(walk.table.items() > 128 * 4 * 9 / 10);
    walk.clear();
    assert_eq!(walk.table.items(), 0);
}
