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
    assert!(filter.size_in_bytes() < bytes + 300 && filter.buckets() == 0);
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

/// Beyond the plan, an item that matches one of an earlier generation by chance looks like its copy. If such items were counted
/// as copies, nearly every early item would be counted with later ones, since there may be any number of these.
#[test]
fn distinct_items_beyond_the_plan_are_counted_individually() {
    const PLANNED: u64 = 1000;
    for rate in [0.03, 0.1, 0.3] {
        let builder = ElasticFilter::builder().false_positive_rate(rate).capacity(1000).max_capacity(1000);
        let mut filter = builder.build().expect("valid parameters");
        for items in [2, 10, 50].map(|times| times * PLANNED) {
            filter.insert_iter(filter.len() as u64..items).expect("the filter grows");
            let (stated, what) = (filter.false_positive_rate(), format!("{items} items, a rate of {rate}"));
            let miscounted = |items: u64| (0..items).filter(|n| filter.count(n) > 1).count() as f64 / items as f64;
            // A collision makes both counts too high, so their number varies more than that of independent events.
            let margin = |share: f64, items: u64| 6.0 * (2.0 * share / items as f64).sqrt();
            let (all, first) = (miscounted(items), miscounted(PLANNED));
            assert!(all <= stated + margin(stated, items), "{all} counted with others, {stated} stated: {what}");
            assert!(first <= rate + margin(rate, PLANNED), "{first} of the first items counted with others: {what}");
            let found = filter.measure_false_positive_rate(100_000);
            assert!(found <= stated + margin(stated, 100_000) && stated <= rate, "{found} found, {stated} stated: {what}");
        }
    }
}
