//! `StdHasher`: items of all types that implement `Hash`, with any `BuildHasher`.

use koel::{Addressing, CuckooFilter, Prehashed, hash::StdHasher};
use std::{
    collections::BTreeSet,
    hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState},
    path::Path,
};

/// A user-defined type that implements `Hash`, but not `Item`.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Visit {
    user: u64,
    page: String,
    referrer: Option<Box<Visit>>,
}

fn visit(user: u64, page: &str) -> Visit {
    Visit { user, page: page.into(), referrer: None }
}

fn hash<T: Hash + ?Sized>(hasher: &StdHasher<impl BuildHasher>, item: &T) -> u64 {
    Prehashed::of(hasher, 0, item).0
}

fn check_items(hasher: &StdHasher<impl BuildHasher>) {
    let mut hashes = BTreeSet::new();
    for user in 0..100 {
        let (home, cart) = (visit(user, "/"), visit(user, "/cart"));
        let from_home = Visit { referrer: Some(Box::new(home.clone())), ..cart.clone() };
        for visit in [home, cart, from_home] {
            assert_eq!(hash(hasher, &visit), hash(hasher, &visit.clone()));
            hashes.insert(hash(hasher, &visit));
        }
    }
    assert_eq!(hashes.len(), 300);

    // As in a `HashMap`, a borrowed form is the same item.
    assert_eq!(hash(hasher, "koel"), hash(hasher, &String::from("koel")));
    assert_eq!(hash(hasher, "koel"), hash(hasher, &&"koel"));
    assert_eq!(hash(hasher, &[1_u32, 2][..]), hash(hasher, &vec![1_u32, 2]));
    // Equal values are the same item, even if their bytes differ.
    assert_eq!(hash(hasher, Path::new("a//b")), hash(hasher, Path::new("a/b")));
    assert_ne!(hash(hasher, &("ab", "c")), hash(hasher, &("a", "bc")));

    assert_ne!(Prehashed::of(hasher, 0, "koel"), Prehashed::of(hasher, 1, "koel"), "hashes depend on the seed");
}

#[test]
fn all_build_hashers_accept_all_types_that_implement_hash() {
    check_items(&StdHasher::new(RandomState::new()));
    check_items(&StdHasher::new(foldhash::fast::FixedState::with_seed(1)));
    check_items(&StdHasher::new(foldhash::quality::FixedState::with_seed(1)));
    check_items(&StdHasher::<BuildHasherDefault<Fnv>>::default());
}

#[test]
fn hashers_with_equal_keys_are_equal() {
    let ours = StdHasher::new(RandomState::new());
    assert!(ours == ours.clone());
    assert!(ours != StdHasher::new(RandomState::new()), "each `RandomState` has its own keys");
    assert!(ours == StdHasher::new(ours.inner().clone()));
    assert!(ours == StdHasher::from(ours.clone().into_inner()));

    let fixed = |seed| StdHasher::new(foldhash::fast::FixedState::with_seed(seed));
    assert!(fixed(1) == fixed(1) && fixed(1) != fixed(2));
}

#[test]
fn hashers_are_copied_and_displayed_without_their_keys() {
    #[derive(Clone, Copy, Default)]
    struct Keyed(u64);
    impl BuildHasher for Keyed {
        type Hasher = Fnv;
        fn build_hasher(&self) -> Fnv {
            Fnv(self.0)
        }
    }
    let hasher = StdHasher::new(Keyed(0x5eed));
    let copy = hasher;
    assert!(copy == hasher);
    assert_eq!(format!("{hasher:?}"), format!("StdHasher({})", std::any::type_name::<Keyed>()));
}

/// FNV-1a, one of the weakest hashers in use. Its upper bits hardly depend on the last bytes.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A hasher of one multiplication. Hashes of multiples of 2³² differ only in the upper half of the product.
#[derive(Default)]
struct Multiply(u64);

impl Hasher for Multiply {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = self.0.wrapping_add(word).wrapping_mul(0xf135_7aea_2e62_a9c5);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

/// Fills a filter with 30,000 items, and checks the false-positive rate on 100,000 others.
fn check_rate<T: Hash>(hasher: &StdHasher<impl BuildHasher>, case: &str, item: impl Fn(u64) -> T) {
    const ITEMS: u32 = 30_000;
    const OTHERS: u32 = 100_000;
    for addressing in [Addressing::AnySize, Addressing::PowerOfTwo] {
        let builder = CuckooFilter::builder().buckets(1 << 13).fingerprint_bits(8).addressing(addressing);
        let mut filter = builder.build().expect("valid parameters");
        let hash = |n: u32| hash(hasher, &item(n.into()));
        for n in 0..ITEMS {
            filter.insert(&Prehashed(hash(n))).unwrap_or_else(|full| panic!("{case}, {addressing:?}: {full}"));
        }
        let found: u32 = (ITEMS..ITEMS + OTHERS).map(|n| u32::from(filter.contains(&Prehashed(hash(n))))).sum();
        let expected = filter.false_positive_rate() * f64::from(OTHERS);
        // The tolerance is five standard deviations.
        assert!(
            (f64::from(found) - expected).abs() < 5.0 * expected.sqrt(),
            "{case}, {addressing:?}: {found} found, {expected} expected"
        );
    }
}

#[test]
fn weak_hashers_keep_capacity_and_rate() {
    fn check(name: &str, hasher: &StdHasher<impl BuildHasher>) {
        check_rate(hasher, &format!("{name}, integers"), |n| n);
        check_rate(hasher, &format!("{name}, multiples of 2^20"), |n| n << 20);
        check_rate(hasher, &format!("{name}, multiples of 2^32"), |n| n << 32);
        check_rate(hasher, &format!("{name}, pairs"), |n| (n >> 9, n & 511));
        check_rate(hasher, &format!("{name}, text"), |n| format!("item-{n}"));
    }
    check("FNV", &StdHasher::<BuildHasherDefault<Fnv>>::default());
    check("one multiplication", &StdHasher::<BuildHasherDefault<Multiply>>::default());
    (0..3).for_each(|seed| check("foldhash", &StdHasher::new(foldhash::fast::FixedState::with_seed(seed))));
}

/// Uses a filter as a service does: several threads look up visits that were seen before.
#[test]
#[cfg_attr(target_family = "wasm", ignore = "WebAssembly has no threads")]
fn filters_accept_the_items_of_a_hash_map() {
    let builder = CuckooFilter::builder().capacity(1000).false_positive_rate(1e-6);
    let mut seen = builder.clone().hasher(StdHasher::new(RandomState::new())).build().expect("valid parameters");
    for user in 0..500 {
        seen.insert(&visit(user, "/")).expect("there is room");
    }
    seen.insert("koel").expect("there is room");
    std::thread::scope(|scope| {
        (0..4).for_each(|_| drop(scope.spawn(|| assert!((0..500).all(|user| seen.contains(&visit(user, "/")))))));
    });
    assert!(seen.contains(&String::from("koel")) && !seen.contains(&visit(0, "/cart")) && !seen.contains(&visit(500, "/")));
    assert!((0..500).all(|user| seen.remove(&visit(user, "/"))));
    assert_eq!(seen.len(), 1);

    let others = [visit(1, "/a"), visit(2, "/b")];
    let mut batch = builder.hasher(seen.hasher().clone()).build().expect("valid parameters");
    batch.insert_batch(&others).expect("there is room");
    assert_eq!(batch.count_members(&others), 2);
    assert_eq!(batch.hash("koel"), seen.hash("koel"), "clones of a hasher give equal hashes");
}
