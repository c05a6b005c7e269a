//! Copies never make a filter grow. tests/copies.rs has more tests of copies.

use koel::ElasticFilter;

#[test]
fn copies_of_one_item_are_counted_without_growth() {
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

/// With eight copies of many items, `RedisBloom`'s cuckoo filters grow without end (issue 533).
#[test]
fn many_copies_of_many_items_take_little_memory() {
    let mut filter = ElasticFilter::builder().false_positive_rate(0.001).capacity(1000).build().unwrap();
    for n in 0..20_000u64 {
        for _ in 0..8 {
            filter.insert(&n).unwrap();
        }
    }
    assert_eq!(filter.len(), 160_000);
    assert!(filter.bits_per_item() < 25.0, "{}", filter.bits_per_item());
}
