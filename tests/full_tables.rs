//! Filters that are filled until they refuse items: they lose nothing, and equal operations give equal bytes.

use crate::common::{Kind, SplitMix64, chosen::Plan, kinds, same_bits, table_bytes};
use koel::{Addressing, Prehashed, TableKind};

/// Fills tables that are larger than the first levels of an eviction walk, until three items have been refused.
#[test]
fn full_filters_lose_nothing() {
    for (seed, kind) in (0..).zip(kinds()) {
        let mut filter = kind.filter(256);
        let mut inserted = Vec::new();
        let mut refused = 0;
        for hash in SplitMix64(seed) {
            let before = (refused == 0).then(|| filter.clone());
            if filter.insert(&Prehashed(hash)).is_ok() {
                inserted.push(hash);
                // With short fingerprints, the table may have all possible ones and refuse nothing.
                if inserted.len() == 2 * filter.slots() {
                    break;
                }
                continue;
            }
            assert!(before.is_none_or(|before| same_bits(&before, &filter)), "{kind:?}");
            refused += 1;
            if refused == 3 {
                break;
            }
        }
        assert_eq!(filter.len(), inserted.len());
        assert!(inserted.iter().all(|&hash| filter.contains(&Prehashed(hash))), "{kind:?}");
        for (removed, &hash) in inserted.iter().enumerate() {
            assert!(filter.remove(&Prehashed(hash)), "{kind:?}");
            // Looking up all remaining items would take quadratic time, so only every 61st is looked up.
            assert!(inserted[removed + 1..].iter().step_by(61).all(|&hash| filter.contains(&Prehashed(hash))), "{kind:?}");
        }
        assert!(filter.is_empty() && table_bytes(&filter).iter().all(|&byte| byte == 0), "{kind:?}");
    }
}

/// Large tables have eviction walks of thousands of buckets, longer than any in small tables.
#[test]
fn long_eviction_walks_lose_nothing() {
    let kind = |table, f, b, addressing| Kind { table, f, b, addressing };
    for kind in [
        kind(TableKind::Packed, 13, 4, Addressing::AnySize),
        kind(TableKind::Packed, 6, 4, Addressing::PowerOfTwo),
        kind(TableKind::Single, 8, 3, Addressing::AnySize),
    ] {
        let mut filter = kind.filter(1 << 15);
        let (mut inserted, mut refused) = (Vec::new(), 0);
        for hash in SplitMix64(u64::from(kind.f)) {
            if filter.insert(&Prehashed(hash)).is_ok() {
                inserted.push(hash);
            } else {
                refused += 1;
                if refused == 8 {
                    break;
                }
            }
        }
        assert!(inserted.iter().all(|&hash| filter.contains(&Prehashed(hash))), "{kind:?}");
        assert!(inserted.iter().all(|&hash| filter.remove(&Prehashed(hash))), "{kind:?}");
        assert!(filter.is_empty() && table_bytes(&filter).iter().all(|&byte| byte == 0), "{kind:?}");
    }
}

/// Items that were chosen to have the same two buckets fill these. Further ones are refused, and all others have as much room as before.
#[test]
fn chosen_items_fill_only_their_own_buckets() {
    let plan = Plan { f: 16, m: 256, partition_bits: 0, is_staggered: false, known_bits: 0 };
    let chosen: Vec<u64> = plan.fingerprints_of_one_pair(7).into_iter().filter_map(|t| plan.hash(7, t, [0, 2])).collect();
    assert!(chosen.len() > 100);
    for table in [TableKind::Single, TableKind::Packed] {
        let mut filter = Kind { table, f: plan.f, b: 4, addressing: Addressing::AnySize }.filter(plan.m);
        for (n, &hash) in chosen.iter().enumerate() {
            let before = filter.clone();
            let is_refused = filter.insert(&Prehashed(hash)).is_err();
            assert_eq!(is_refused, n >= 8, "{filter}");
            assert!(!is_refused || same_bits(&before, &filter));
        }
        let others: Vec<u64> = SplitMix64(3).take(filter.slots() * 9 / 10).collect();
        assert!(others.iter().all(|&hash| filter.insert(&Prehashed(hash)).is_ok()), "{filter}");
        assert!(chosen[..8].iter().chain(&others).all(|&hash| filter.contains(&Prehashed(hash))));
    }
}

#[test]
fn equal_operations_give_equal_bytes() {
    for kind in kinds().filter(|kind| kind.f % 7 == 5) {
        let run = || {
            let mut filter = kind.filter(64);
            let most = 2 * filter.slots();
            let inserted: Vec<u64> =
                SplitMix64(9).take(most).take_while(|&hash| filter.insert(&Prehashed(hash)).is_ok()).collect();
            inserted.iter().step_by(3).for_each(|&hash| assert!(filter.remove(&Prehashed(hash))));
            filter.to_bytes()
        };
        assert_eq!(run(), run(), "{kind:?}");
    }
}
