//! `Prehashed::of` computes the hash of an item without a filter. It agrees with all filters that have the same hasher and seed,
//! for items of all types.

use koel::{
    Addressing, CuckooFilter, ElasticFilter, ElasticView, FilterView, Insert, Prehashed, Xxh3,
    hash::{AnyHasher, HashItem, Hasher, HasherId, StdHasher, Uniform},
};
use proptest::{prelude::*, test_runner::RngSeed};
use std::hash::RandomState;

/// A user-defined hasher that ignores ASCII case.
#[derive(Clone, PartialEq)]
struct Folded;

impl Hasher for Folded {
    fn id(&self) -> HasherId {
        HasherId::custom(0x8123)
    }

    fn hash(&self, seed: u64, bytes: &[u8]) -> Uniform {
        Xxh3.hash(!seed, &bytes.to_ascii_lowercase())
    }
}

/// Checks that an inserted item is found, counted and removed by its key, and an inserted key by its item.
fn check_filter<T: ?Sized, H: HashItem<T>>(filter: &mut (impl Insert<T> + Insert), hasher: &H, seed: u64, item: &T) {
    let key = Prehashed::of(hasher, seed, item);
    assert_eq!(Insert::<T>::insert_unique(filter, item), Ok(true));
    assert_eq!(filter.insert_unique(&key), Ok(false));
    assert_eq!(key.0, koel::Contains::<T>::hash(filter, item));
    assert!(filter.contains(&key) && filter.count(&key) == 1);
    assert!(filter.remove(&key) && !koel::Contains::<T>::contains(filter, item));
    filter.insert(&key).expect("it is empty");
    assert!(koel::Contains::<T>::contains(filter, item) && koel::Contains::<T>::count(filter, item) == 1);
    assert!(Insert::<T>::remove(filter, item) && filter.is_empty());
}

/// Checks all filters that can have this hasher and be changed, with both kinds of addressing.
fn check_filters<T: ?Sized, H: HashItem<T> + HashItem<u64> + Clone>(hasher: &H, seed: u64, item: &T) {
    for addressing in [Addressing::AnySize, Addressing::PowerOfTwo] {
        let builder = CuckooFilter::builder().capacity(10).fingerprint_bits(16).addressing(addressing).seed(seed);
        check_filter(&mut builder.hasher(hasher.clone()).build().expect("valid parameters"), hasher, seed, item);
    }
    let builder = ElasticFilter::builder().false_positive_rate(1e-6).partitions(4).seed(seed).hasher(hasher.clone());
    check_filter(&mut builder.clone().build().expect("valid parameters"), hasher, seed, item);
    #[cfg(feature = "std")]
    check_filter(&mut builder.build_shared().expect("valid parameters"), hasher, seed, item);
}

/// Checks views of snapshots of both types.
fn check_views<T: ?Sized, H: Hasher + HashItem<T> + HashItem<u64> + Clone>(hasher: &H, seed: u64, item: &T) {
    let key = Prehashed::of(hasher, seed, item);
    let mut fixed = CuckooFilter::builder()
        .capacity(10)
        .fingerprint_bits(16)
        .seed(seed)
        .hasher(hasher.clone())
        .build()
        .expect("valid parameters");
    fixed.insert(&key).expect("it is empty");
    let view = FilterView::over_with(fixed.to_bytes(), |_| Some(hasher.clone())).expect("valid snapshot");
    assert!(view.contains(item) && view.contains(&key) && view.hash(item) == key.0);
    let builder = ElasticFilter::builder().false_positive_rate(1e-6).seed(seed).hasher(hasher.clone());
    let mut growing = builder.build().expect("valid parameters");
    growing.insert(item).expect("it is empty");
    let view = ElasticView::over_with(growing.to_bytes(), |_| Some(hasher.clone())).expect("valid snapshot");
    assert!(view.contains(item) && view.contains(&key) && view.count(&key) == 1 && view.hash(item) == key.0);
}

fn check_with_all_hashers<T: koel::Item + std::hash::Hash + ?Sized>(seed: u64, item: &T) {
    check_filters(&Xxh3, seed, item);
    check_views(&Xxh3, seed, item);
    check_filters(&Folded, seed, item);
    check_views(&Folded, seed, item);
    for hasher in AnyHasher::ALL {
        check_filters(hasher, seed, item);
        check_views(hasher, seed, item);
    }
    check_filters(&StdHasher::new(RandomState::new()), seed, item);
    #[cfg(all(feature = "metrohash", target_endian = "little"))]
    {
        use koel::go::{GoFilter, MetroHash64};
        let builder = CuckooFilter::builder().capacity(10).fingerprint_bits(16).addressing(Addressing::PowerOfTwo).seed(1337);
        let filter = builder.hasher(MetroHash64).build().expect("valid parameters");
        check_filter(&mut GoFilter::try_from(filter).expect("compatible with Go"), &MetroHash64, 1337, item);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn prehashed_keys_agree_with_all_filters(
        seed: u64,
        text in ".{0,40}",
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        number: u64,
        wide: i128,
        maybe: Option<bool>,
    ) {
        for seed in [0, seed] {
            check_with_all_hashers(seed, text.as_str());
            check_with_all_hashers(seed, &text);
            check_with_all_hashers(seed, &bytes);
            check_with_all_hashers(seed, bytes.as_slice());
            check_with_all_hashers(seed, &number);
            check_with_all_hashers(seed, &wide);
            check_with_all_hashers(seed, &(text.as_str(), number, maybe));
            check_with_all_hashers(seed, &[number, !number]);
        }
    }
}

/// Keys differ if the seed, the hasher or the type differs. A number used as a key is not hashed, so it is another key, too.
#[test]
fn keys_depend_on_hasher_seed_and_type() {
    let key = Prehashed::of(&Xxh3, 0, &7u64);
    let others = [Prehashed::of(&Xxh3, 1, &7u64), Prehashed::of(&Folded, 0, &7u64), Prehashed::of(&Xxh3, 0, &7u32), Prehashed(7)];
    assert!(others.iter().all(|other| *other != key));
    // The key of a `Prehashed` is the same `Prehashed`.
    assert_eq!(Prehashed::of(&Xxh3, 5, &key), key);
}
