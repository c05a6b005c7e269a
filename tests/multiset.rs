//! Compares filters with an exact multiset: no false negatives, no lost items, and only zeros in a drained table.

use crate::common::{Kind, SplitMix64, kinds, table_bytes};
use koel::{Addressing, CuckooFilter, FilterView, InsertErrorKind, Kernel, Prehashed, TableKind};
use proptest::{
    prelude::*,
    test_runner::{RngSeed, TestRunner},
};
use std::collections::BTreeMap;

const BUCKETS: u64 = 8;

#[derive(Clone, Debug)]
enum Step {
    Insert(u8),
    InsertUnique(u8),
    Remove(u8),
    /// Inserts fresh items until one is refused, but at most twice as many as slots: short fingerprints tell few items apart,
    /// and further ones are counted as copies, which are never refused.
    Fill(u64),
    Merge(Vec<u8>),
    Union(Vec<u8>),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    // There are only 24 items, so many are inserted several times. `Fill` fills the table.
    prop_oneof![
        30 => (0u8..24).prop_map(Step::Insert),
        6 => (0u8..24).prop_map(Step::InsertUnique),
        20 => (0u8..24).prop_map(Step::Remove),
        2 => (1u64..1 << 40).prop_map(Step::Fill),
        2 => prop::collection::vec(0u8..24, 0..6).prop_map(Step::Merge),
        4 => prop::collection::vec(0u8..24, 0..20).prop_map(Step::Union),
        1 => Just(Step::Clear),
    ]
}

/// A filter, and the items that it should contain with their number of copies.
struct Model {
    filter: CuckooFilter,
    items: BTreeMap<u64, u32>,
}

impl Model {
    fn insert(&mut self, item: u64) -> Result<bool, TestCaseError> {
        let before = self.filter.to_bytes();
        let inserted = self.filter.insert(&item);
        match &inserted {
            Ok(()) => *self.items.entry(item).or_default() += 1,
            Err(full) => {
                prop_assert_eq!(self.filter.to_bytes(), before, "a refused insertion changed something");
                // The error counts the items in the table, not the copies beside it.
                let (items, slots) = (self.filter.table_len(), self.filter.slots());
                prop_assert_eq!(full.kind(), InsertErrorKind::Full { items, slots }, "{}", full);
            }
        }
        Ok(inserted.is_ok())
    }

    fn remove(&mut self, item: u64) -> Result<(), TestCaseError> {
        prop_assert!(self.filter.remove(&item), "{} is in the filter but cannot be removed", item);
        let copies = self.items.get_mut(&item).expect("only present items are removed");
        *copies -= 1;
        if *copies == 0 {
            self.items.remove(&item);
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.items.values().map(|&copies| copies as usize).sum()
    }

    fn apply(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Insert(item) => {
                self.insert(u64::from(*item))?;
            }
            Step::InsertUnique(item) => {
                let item = u64::from(*item);
                let was_present = self.filter.contains(&item);
                let before = self.filter.to_bytes();
                let Ok(stored) = self.filter.insert_unique(&item) else {
                    prop_assert_eq!(self.filter.to_bytes(), before);
                    return Ok(());
                };
                prop_assert_eq!(stored, !was_present);
                if stored {
                    *self.items.entry(item).or_default() += 1;
                }
            }
            Step::Remove(item) if self.items.contains_key(&u64::from(*item)) => self.remove(u64::from(*item))?,
            Step::Remove(_) => {}
            Step::Fill(first) => {
                let (first, most) = ((1 << 40) + first * 1000, 2 * self.filter.slots() as u64);
                for fresh in first..first + most {
                    if !self.insert(fresh)? {
                        break;
                    }
                }
            }
            Step::Merge(items) => self.merge(items)?,
            Step::Union(items) => self.union(items)?,
            Step::Clear => {
                self.filter.clear();
                self.items.clear();
            }
        }
        Ok(())
    }

    /// Returns another filter with equal parameters, and the items that it accepted.
    fn other(&self, items: &[u8]) -> (CuckooFilter, Vec<u64>) {
        let mut other = self.filter.clone();
        other.clear();
        let items = items.iter().map(|&item| u64::from(item)).filter(|item| other.insert(item).is_ok()).collect();
        (other, items)
    }

    /// Unites with another filter, and checks that a view of it and other kernels give the same result.
    fn union(&mut self, items: &[u8]) -> Result<(), TestCaseError> {
        let (other, theirs) = self.other(items);
        let before = self.filter.clone();
        let other_from_view = FilterView::over(other.to_bytes()).and_then(|view| view.to_filter()).expect("valid snapshot");
        let united = self.filter.union(&other).map_err(|error| error.to_string());
        for kernel in Kernel::available() {
            let mut twin = before.clone();
            twin.set_kernel(kernel).expect("it is available");
            prop_assert_eq!(&twin.union(&other_from_view).map_err(|error| error.to_string()), &united, "{}", kernel);
            prop_assert_eq!(twin.to_bytes(), self.filter.to_bytes(), "{}", kernel);
        }
        if united.is_err() {
            prop_assert_eq!(self.filter.to_bytes(), before.to_bytes(), "a refused union changed something");
            return Ok(());
        }
        for item in self.items.keys().chain(&theirs) {
            prop_assert_eq!(self.filter.count(item), before.count(item).max(other.count(item)), "{}", item);
        }
        let mut items = self.items.clone();
        for item in &theirs {
            let copies: u32 = theirs.iter().map(|other| u32::from(other == item)).sum();
            items.entry(*item).and_modify(|ours| *ours = copies.max(*ours)).or_insert(copies);
        }
        let most = items.values().map(|&copies| copies as usize).sum();
        prop_assert!(self.filter.len() <= most);
        if self.filter.len() == most {
            self.items = items;
        } else {
            // Items of the two filters collide, so no multiset of items describes the result.
            self.filter = before;
        }
        Ok(())
    }

    fn merge(&mut self, items: &[u8]) -> Result<(), TestCaseError> {
        let (other, added) = self.other(items);
        let before = self.filter.to_bytes();
        if self.filter.merge(&other).is_ok() {
            added.into_iter().for_each(|item| *self.items.entry(item).or_default() += 1);
        } else {
            prop_assert_eq!(self.filter.to_bytes(), before, "a refused merge changed something");
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.filter.len(), self.len());
        prop_assert_eq!(self.filter.is_empty(), self.items.is_empty());
        for (item, &copies) in &self.items {
            prop_assert!(self.filter.contains(item), "false negative: {}", item);
            prop_assert!(self.filter.count(item) >= copies, "{} of {} copies of {}", self.filter.count(item), copies, item);
        }
        let reread = CuckooFilter::from_bytes(&self.filter.to_bytes());
        prop_assert!(reread.is_ok_and(|reread| reread == self.filter), "a snapshot does not round-trip");
        Ok(())
    }

    fn drain(&mut self) -> Result<(), TestCaseError> {
        while let Some((&item, _)) = self.items.iter().next() {
            self.remove(item)?;
            prop_assert!(self.items.keys().all(|item| self.filter.contains(item)), "a removal also removed another item");
        }
        prop_assert!(self.filter.is_empty());
        prop_assert!(table_bytes(&self.filter).iter().all(|&byte| byte == 0), "a drained table is not zero");
        Ok(())
    }
}

fn check_steps(kind: Kind, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut model = Model { filter: kind.filter(BUCKETS), items: BTreeMap::new() };
    for step in steps {
        model.apply(step)?;
        model.check()?;
    }
    model.drain()
}

#[test]
fn all_kinds_of_filters_agree_with_a_multiset() {
    for (seed, kind) in (0..).zip(kinds()) {
        let config =
            ProptestConfig { cases: 16, rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..ProptestConfig::default() };
        TestRunner::new(config)
            .run(&prop::collection::vec(step(), 1..40), |steps| check_steps(kind, &steps))
            .unwrap_or_else(|error| panic!("{kind:?}: {error}"));
    }
}

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
            assert!(before.is_none_or(|before| before == filter), "{kind:?}");
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
