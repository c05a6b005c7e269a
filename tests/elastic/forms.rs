//! Batches, iterators and prehashed operations have the same effect as single operations.

use koel::{Contains, ElasticFilter, Kernel, Prehashed};

fn filter() -> ElasticFilter {
    ElasticFilter::builder().false_positive_rate(1e-6).capacity(500).build().expect("valid parameters")
}

fn names(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|n| format!("name {n}")).collect()
}

#[test]
fn batches_iterators_and_hashes_match_single_operations() {
    let (items, absent) = (names(0..20_000), names(20_000..25_000));
    let mut one_by_one = filter();
    items.iter().for_each(|item| one_by_one.insert(item).expect("the filter grows"));
    let hashes: Vec<u64> = items.iter().map(|item| one_by_one.hash(item)).collect();
    let mut others = [filter(), filter(), filter(), filter(), filter()];
    others[0].insert_batch(&items).expect("the filter grows");
    assert_eq!(others[1].insert_iter(&items).expect("the filter grows"), items.len());
    others[2].insert_batch(&Prehashed(&hashes)).expect("the filter grows");
    hashes.iter().for_each(|&hash| others[3].insert(&Prehashed(hash)).expect("the filter grows"));
    assert_eq!(others[4].insert_unique_iter(items.iter().chain(&items)).expect("the filter grows"), items.len());
    let keys = [items.clone(), absent].concat();
    for other in &mut others {
        assert_eq!((other.len(), other.to_string()), (items.len(), one_by_one.to_string()));
        let expected: Vec<bool> = keys.iter().map(|item| one_by_one.contains(item)).collect();
        let mut found = vec![false; keys.len()];
        other.contains_batch(&keys, &mut found);
        assert_eq!(found, expected);
        found.fill(false);
        let hashes: Vec<u64> = keys.iter().map(|item| other.hash(item)).collect();
        ElasticFilter::contains_batch(other, &Prehashed(&hashes), &mut found);
        assert_eq!(found, expected);
        assert!(other.contains_iter(&keys).map(|(_, found)| found).eq(expected.iter().copied()));
        assert_eq!(other.count_members(&keys), expected.iter().filter(|&&found| found).count());
        assert!(hashes[..items.len()].iter().all(|&hash| other.count(&Prehashed(hash)) == 1 && other.contains(&Prehashed(hash))));
    }
    let mut removed = vec![false; items.len()];
    others[0].remove_batch(&items, &mut removed);
    assert!(removed.iter().all(|&removed| removed));
    others[1].remove_batch(&Prehashed(&hashes), &mut removed);
    assert!(removed.iter().all(|&removed| removed));
    assert!(hashes.iter().all(|&hash| others[2].remove(&Prehashed(hash))));
    assert!(others[..3].iter().all(ElasticFilter::is_empty));
    others[3].clear();
    assert!(others[3].is_empty() && others[3].shards() == filter().shards());
}

#[test]
fn the_kernel_can_be_changed_at_any_size() {
    let items = names(0..5000);
    let mut filter = filter();
    let kernels: Vec<Kernel> = Kernel::available().collect();
    for (part, &kernel) in items.chunks(1250).zip(kernels.iter().cycle()) {
        filter.set_kernel(kernel).expect("the kernel is available");
        filter.insert_batch(part).expect("the filter grows");
        assert_eq!(filter.kernel(), kernel);
    }
    assert_eq!(filter.count_members(&items), items.len());
}

#[test]
fn a_growing_filter_implements_contains() {
    let mut filter = filter();
    filter.insert("alice").expect("there is room");
    let any: &dyn Contains = &filter;
    assert!(any.contains(&Prehashed(filter.hash("alice"))) && any.len() == 1 && any.size_in_bytes() > 0);
    let names: &dyn Contains<str> = &filter;
    assert!(names.contains("alice") && !names.contains("bob"));
    assert!(any.false_positive_rate() < 1e-6);
}
