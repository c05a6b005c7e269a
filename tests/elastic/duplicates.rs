//! Copies never make a filter grow.

use koel::{ElasticFilter, InsertErrorKind};

#[test]
fn the_ninth_copy_is_refused_and_nothing_has_grown() {
    let mut filter = ElasticFilter::builder().false_positive_rate(0.001).build().unwrap();
    filter.insert("alice").unwrap();
    let bytes = filter.size_in_bytes();
    for _ in 1..8 {
        filter.insert("alice").unwrap();
    }
    for _ in 0..1000 {
        let error = filter.insert("alice").unwrap_err();
        assert_eq!((error.kind(), error.position()), (InsertErrorKind::Copies { copies: 8 }, 0));
    }
    assert_eq!((filter.len(), filter.count("alice"), filter.size_in_bytes()), (8, 8, bytes));
}

/// Eight copies of many items: the cuckoo filters of `RedisBloom` grow without end (issue 533).
#[test]
fn many_copies_of_many_items_take_memory_in_proportion() {
    let mut filter = ElasticFilter::builder().false_positive_rate(0.001).capacity(1000).build().unwrap();
    let mut refused = 0;
    for n in 0..20_000u64 {
        for _ in 0..8 {
            refused += usize::from(filter.insert(&n).is_err());
        }
    }
    assert_eq!(filter.len() + refused, 160_000);
    assert!(filter.bits_per_item() < 200.0, "{} ({refused} refused)", filter.bits_per_item());
}
