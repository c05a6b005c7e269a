//! `Prehashed::of` needs no filter, and agrees with every filter that has its hasher and seed: on items of every type, with every
//! hasher, in every kind of filter.

use koel::{
    Addressing, CuckooFilter, ElasticFilter, ElasticView, FilterView, Insert, Prehashed, Xxh3,
    hash::{AnyHasher, HashItem, Hasher, HasherId, StdHasher, Uniform},
};
use proptest::{prelude::*, test_runner::RngSeed};
use std::hash::RandomState;

/// A hasher of the user's.
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

/// What is inserted as an item is found, counted and removed by its key, and the other way round.
fn agree<T: ?Sized, H: HashItem<T>>(filter: &mut (impl Insert<T> + Insert), hasher: &H, seed: u64, item: &T) {
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

/// In all kinds of filters with this hasher that can be changed, with both kinds of addressing.
fn in_each_filter<T: ?Sized, H: HashItem<T> + HashItem<u64> + Clone>(hasher: &H, seed: u64, item: &T) {
    for addressing in [Addressing::AnySize, Addressing::PowerOfTwo] {
        let builder = CuckooFilter::builder().capacity(10).fingerprint_bits(16).addressing(addressing).seed(seed);
        agree(&mut builder.hasher(hasher.clone()).build().expect("right"), hasher, seed, item);
    }
    let builder = ElasticFilter::builder().false_positive_rate(1e-6).partitions(4).seed(seed).hasher(hasher.clone());
    agree(&mut builder.clone().build().expect("right"), hasher, seed, item);
    #[cfg(feature = "std")]
    agree(&mut builder.build_shared().expect("right"), hasher, seed, item);
}

/// And in views, whose snapshot has another filter written.
fn in_each_view<T: ?Sized, H: Hasher + HashItem<T> + HashItem<u64> + Clone>(hasher: &H, seed: u64, item: &T) {
    let key = Prehashed::of(hasher, seed, item);
    let mut fixed =
        CuckooFilter::builder().capacity(10).fingerprint_bits(16).seed(seed).hasher(hasher.clone()).build().expect("right");
    fixed.insert(&key).expect("it is empty");
    let view = FilterView::over_with(fixed.to_bytes(), |_| Some(hasher.clone())).expect("a snapshot");
    assert!(view.contains(item) && view.contains(&key) && view.hash(item) == key.0);
    let builder = ElasticFilter::builder().false_positive_rate(1e-6).seed(seed).hasher(hasher.clone());
    let mut growing = builder.build().expect("right");
    growing.insert(item).expect("it is empty");
    let view = ElasticView::over_with(growing.to_bytes(), |_| Some(hasher.clone())).expect("a snapshot");
    assert!(view.contains(item) && view.contains(&key) && view.count(&key) == 1 && view.hash(item) == key.0);
}

fn with_each_hasher<T: koel::Item + std::hash::Hash + ?Sized>(seed: u64, item: &T) {
    in_each_filter(&Xxh3, seed, item);
    in_each_view(&Xxh3, seed, item);
    in_each_filter(&Folded, seed, item);
    in_each_view(&Folded, seed, item);
    for hasher in AnyHasher::ALL {
        in_each_filter(hasher, seed, item);
        in_each_view(hasher, seed, item);
    }
    in_each_filter(&StdHasher::new(RandomState::new()), seed, item);
    #[cfg(all(feature = "metrohash", target_endian = "little"))]
    {
        use koel::go::{GoFilter, MetroHash64};
        let builder = CuckooFilter::builder().capacity(10).fingerprint_bits(16).addressing(Addressing::PowerOfTwo).seed(1337);
        let filter = builder.hasher(MetroHash64).build().expect("right");
        agree(&mut GoFilter::try_from(filter).expect("Go could have it"), &MetroHash64, 1337, item);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_key_without_a_filter_is_that_of_every_filter(
        seed: u64,
        text in ".{0,40}",
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        number: u64,
        wide: i128,
        maybe: Option<bool>,
    ) {
        for seed in [0, seed] {
            with_each_hasher(seed, text.as_str());
            with_each_hasher(seed, &text);
            with_each_hasher(seed, &bytes);
            with_each_hasher(seed, bytes.as_slice());
            with_each_hasher(seed, &number);
            with_each_hasher(seed, &wide);
            with_each_hasher(seed, &(text.as_str(), number, maybe));
            with_each_hasher(seed, &[number, !number]);
        }
    }
}

/// Different seeds and hashers have different keys, and so has a number that is a key itself.
#[test]
fn keys_depend_on_hasher_seed_and_type() {
    let key = Prehashed::of(&Xxh3, 0, &7u64);
    let others = [Prehashed::of(&Xxh3, 1, &7u64), Prehashed::of(&Folded, 0, &7u64), Prehashed::of(&Xxh3, 0, &7u32), Prehashed(7)];
    assert!(others.iter().all(|other| *other != key));
    // A key of a key is the key.
    assert_eq!(Prehashed::of(&Xxh3, 5, &key), key);
}
