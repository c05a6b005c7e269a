//! Copies never make a filter grow. tests/copies.rs has more.

use koel::ElasticFilter;

#[test]
fn any_number_of_copies_is_counted_and_nothing_has_grown() {
    let mut filter = ElasticFilter::builder().false_positive_rate(0.001).build().unwrap();
    filter.insert("alice").unwrap();
    let bytes = filter.size_in_bytes();
    for _ in 1..8 {
        filter.insert("alice").unwrap();
    }
    assert_eq!((filter.len(), filter.count("alice")), (8, 8));
    for copies in 8..1000 {
        filter.insert("alice").unwrap();
        assert_eq!((filter.len(), filter.count("alice")), (copies + 1, copies as u32 + 1));
    }
    assert!(filter.size_in_bytes() < bytes + 300 && filter.shards() == 0);
}

/// Eight copies of many items: the cuckoo filters of `RedisBloom` grow without end (issue 533).
#[test]
fn many_copies_of_many_items_take_memory_in_proportion() {
    let mut filter = ElasticFilter::builder().false_positive_rate(0.001).capacity(1000).build().unwrap();
    for n in 0..20_000u64 {
        for _ in 0..8 {
            filter.insert(&n).unwrap();
        }
    }
    assert_eq!(filter.len(), 160_000);
    assert!(filter.bits_per_item() < 25.0, "{}", filter.bits_per_item());
}
