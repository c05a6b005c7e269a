//! Random operations, checked against a multiset.

use std::collections::HashMap;

use koel::{ElasticFilter, Xxh3};
use proptest::{prelude::*, test_runner::RngSeed};

#[derive(Clone, Debug)]
enum Operation {
    Insert(u16),
    /// Inserts (`true`) or removes this many copies of an item, one at a time.
    Copies(u16, u32, bool),
    Unique(u16),
    Remove(u16),
    /// Replaces the filter by one that is read from its snapshot.
    Reread,
    /// Merges the filter with its clone: doubles every count, or is refused.
    Merge,
    Union,
    Shrink,
    /// Inserts (`true`) or removes every third item of a range, given by its first item and length.
    Many(u16, u16, bool),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        8 => (0..2000u16).prop_map(Operation::Insert),
        4 => (0..2000u16, prop_oneof![1..20u32, 1..3000u32], any::<bool>()).prop_map(|(item, copies, is_insertion)| {
            Operation::Copies(item % 40 * 50, copies, is_insertion)
        }),
        2 => (0..2000u16).prop_map(Operation::Unique),
        6 => (0..2000u16).prop_map(Operation::Remove),
        1 => Just(Operation::Shrink),
        1 => Just(Operation::Reread),
        1 => Just(Operation::Merge),
        1 => Just(Operation::Union),
        2 => (0..2000u16, 0..1500u16, any::<bool>()).prop_map(|(first, items, insert)| Operation::Many(first, items, insert)),
    ];
    prop::collection::vec(operation, 1..60)
}

#[derive(Default)]
struct Model(HashMap<u16, u32>);

impl Model {
    fn count(&self, item: u16) -> u32 {
        self.0.get(&item).copied().unwrap_or(0)
    }

    fn len(&self) -> usize {
        self.0.values().map(|&copies| copies as usize).sum()
    }
}

fn insert(filter: &mut ElasticFilter, model: &mut Model, item: u16) {
    filter.insert(&item).expect("copies are always accepted");
    *model.0.entry(item).or_default() += 1;
}

fn remove(filter: &mut ElasticFilter, model: &mut Model, item: u16) {
    let copies = model.0.entry(item).or_default();
    assert_eq!(filter.remove(&item), *copies > 0, "{item}");
    *copies = copies.saturating_sub(1);
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_growing_filter_is_a_multiset(operations in operations(), tiny: bool) {
        let builder = ElasticFilter::builder().false_positive_rate(1e-6).capacity(64);
        let builder = if tiny { builder.max_capacity(128) } else { builder.max_capacity(4096) };
        let (mut filter, mut model) = (builder.build().unwrap(), Model::default());
        for operation in operations {
            match operation {
                Operation::Insert(item) => insert(&mut filter, &mut model, item),
                Operation::Unique(item) => {
                    let is_new = model.count(item) == 0;
                    prop_assert_eq!(filter.insert_unique(&item).unwrap(), is_new);
                    model.0.entry(item).and_modify(|copies| *copies = (*copies).max(1)).or_insert(1);
                }
                Operation::Remove(item) => remove(&mut filter, &mut model, item),
                Operation::Copies(item, copies, is_insertion) => {
                    for _ in 0..copies {
                        if is_insertion {
                            insert(&mut filter, &mut model, item);
                        } else {
                            remove(&mut filter, &mut model, item);
                        }
                    }
                }
                Operation::Reread => filter = ElasticFilter::from_bytes(&filter.to_bytes()).unwrap(),
                // A merge beyond the plan may be refused.
                Operation::Merge => {
                    let copy = filter.clone();
                    if model.len() < 1_000_000 && filter.merge(&copy).is_ok() {
                        model.0.values_mut().for_each(|copies| *copies *= 2);
                    }
                }
                Operation::Union => {
                    let mut other = ElasticFilter::new(filter.params(), Xxh3).unwrap();
                    for (&item, &copies) in &model.0 {
                        (0..copies.min(9)).for_each(|_| other.insert(&item).unwrap());
                    }
                    let before = filter.to_bytes();
                    match filter.union(&other) {
                        Ok(()) => {}
                        Err(_) => prop_assert!(filter.to_bytes() == before),
                    }
                }
                Operation::Shrink => filter.shrink(),
                Operation::Many(first, items, is_insertion) => {
                    for item in (first..first + items).step_by(3) {
                        if is_insertion {
                            insert(&mut filter, &mut model, item);
                        } else {
                            remove(&mut filter, &mut model, item);
                        }
                    }
                }
            }
            prop_assert_eq!(filter.len(), model.len());
            filter.assert_consistent();
        }
        for item in 0..4000 {
            prop_assert_eq!(filter.count(&item), model.count(item), "{}", item);
        }
    }
}
