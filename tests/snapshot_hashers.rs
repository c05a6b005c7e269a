//! A snapshot is read only with the hasher that it was written with. The error of every reader names it.

use crate::common::{forged, same_bits};
use koel::{
    CuckooFilter, FilterView, SnapshotError, SnapshotErrorKind, Xxh3,
    hash::{AnyHasher, Hasher, HasherId, Uniform},
};

/// A custom hasher that ignores ASCII case.
#[derive(Clone, Debug, PartialEq)]
struct IgnoreCase;

impl Hasher for IgnoreCase {
    fn id(&self) -> HasherId {
        const { HasherId::custom(0x8abc) }
    }
    fn hash(&self, seed: u64, bytes: &[u8]) -> Uniform {
        Xxh3.hash(seed, &bytes.to_ascii_lowercase())
    }
}

fn snapshot<H: Hasher + Clone>(hasher: H) -> Vec<u8> {
    let builder = CuckooFilter::builder().capacity(100).false_positive_rate(1e-6).hasher(hasher);
    let mut filter = builder.build().expect("valid parameters");
    filter.insert("Koel").expect("there is room");
    filter.to_bytes()
}

/// Writes the bytes to a file and loads it.
#[cfg(all(feature = "std", not(target_family = "wasm")))]
fn load<H: Hasher>(bytes: &[u8], hasher: impl Fn(HasherId) -> Option<H>) -> Result<CuckooFilter<H>, SnapshotError> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let folder = crate::common::Folder::new(&format!("hashers-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
    std::fs::write(folder.path("f.koel"), bytes).expect("there is room");
    CuckooFilter::load_with(folder.path("f.koel"), hasher)
}

/// Returns the error of each reader, given this choice of hashers.
fn refusals<H: Hasher + Clone>(bytes: &[u8], hasher: impl Fn(HasherId) -> Option<H>) -> Vec<SnapshotError> {
    let answers = [
        CuckooFilter::from_bytes_with(bytes, &hasher).map(drop),
        FilterView::over_with(bytes, &hasher).map(drop),
        FilterView::over_prefix_with(bytes, &hasher).map(drop),
        #[cfg(feature = "std")]
        CuckooFilter::read_from_with(bytes, &hasher).map(drop),
        #[cfg(all(feature = "std", not(target_family = "wasm")))]
        load(bytes, &hasher).map(drop),
    ];
    answers.into_iter().map(|answer| answer.expect_err("the hasher differs")).collect()
}

#[track_caller]
fn all_name(errors: &[SnapshotError], parts: &[&str]) {
    for error in errors {
        assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::Hasher, 14), "{error}");
        assert!(parts.iter().all(|part| error.to_string().contains(part)), "{parts:?} are not in: {error}");
    }
}

/// Asserts that every reader accepts the bytes with the hasher that the remedy names.
#[track_caller]
fn works<H: Hasher + PartialEq>(bytes: &[u8], hasher: impl Fn(HasherId) -> Option<H>) {
    assert!(CuckooFilter::from_bytes_with(bytes, &hasher).expect("the hasher matches").contains("Koel"));
    let view = FilterView::over_with(bytes, &hasher).expect("the hasher matches");
    assert!(
        view.contains("Koel") && same_bits(&FilterView::over_prefix_with(bytes, &hasher).expect("the hasher matches").0, &view)
    );
    #[cfg(feature = "std")]
    assert!(CuckooFilter::read_from_with(bytes, &hasher).is_ok_and(|filter| filter.contains("Koel")));
    #[cfg(all(feature = "std", not(target_family = "wasm")))]
    assert!(load(bytes, hasher).is_ok_and(|filter| filter.contains("Koel")));
}

#[test]
fn a_custom_hasher_must_be_given_to_the_reader() {
    let bytes = snapshot(IgnoreCase);
    let parts = ["built with 0x8abc", "give that hasher to from_bytes_with, over_with, read_from_with or load_with"];
    all_name(&refusals(&bytes, AnyHasher::from_id), &parts);
    all_name(&refusals(&bytes, |id| (id == HasherId::XXH3).then_some(Xxh3)), &parts);
    // A reader also refuses a mismatched hasher that the caller gives, since every lookup would be wrong.
    all_name(&refusals(&bytes, |_| Some(Xxh3)), &parts);
    all_name(&[CuckooFilter::from_bytes(&bytes).expect_err("the hasher differs")], &parts);
    works(&bytes, |id| (id == IgnoreCase.id()).then_some(IgnoreCase));
    let read = CuckooFilter::from_bytes_with(&bytes, |_| Some(IgnoreCase)).expect("the hasher matches");
    assert!(read.contains("KOEL"));
}

#[test]
fn the_default_hasher_is_named() {
    let bytes = snapshot(Xxh3);
    let parts = ["built with xxh3", "read it with Xxh3, the default, or with AnyHasher::from_id"];
    all_name(&refusals(&bytes, |_| Some(IgnoreCase)), &parts);
    #[cfg(all(feature = "metrohash", target_endian = "little"))]
    all_name(&refusals(&bytes, |_| Some(koel::go::MetroHash64)), &parts);
    assert!(CuckooFilter::from_bytes(&bytes).expect("a valid snapshot").contains("Koel"));
    works(&bytes, |_| Some(Xxh3));
    works(&bytes, AnyHasher::from_id);
}

#[test]
fn metrohash_is_named_even_without_the_feature() {
    // The header is forged, so this works in builds without the hasher.
    let bytes = forged(&snapshot(Xxh3), |bytes| bytes[14] = 2);
    let errors = refusals(&bytes, |_| Some(Xxh3));
    #[cfg(all(feature = "metrohash", target_endian = "little"))]
    {
        use koel::go::MetroHash64;
        all_name(&errors, &["built with metrohash64", "read it with go::MetroHash64, or with AnyHasher::from_id"]);
        let bytes = snapshot(MetroHash64);
        all_name(&refusals(&bytes, |_| Some(Xxh3)), &["read it with go::MetroHash64, or with AnyHasher::from_id"]);
        works(&bytes, |_| Some(MetroHash64));
        works(&bytes, AnyHasher::from_id);
    }
    #[cfg(not(all(feature = "metrohash", target_endian = "little")))]
    {
        all_name(&errors, &["built with metrohash64", "koel's feature metrohash, on a little-endian machine"]);
        assert_eq!(AnyHasher::from_id(HasherId::METRO_HASH_64), None, "this build lacks the hasher");
    }
}

#[test]
fn redisblooms_hasher_is_named_even_without_the_feature() {
    let bytes = forged(&snapshot(Xxh3), |bytes| bytes[14] = 3);
    let errors = refusals(&bytes, |_| Some(Xxh3));
    #[cfg(feature = "redisbloom")]
    {
        use koel::redisbloom::RedisBloomHash;
        let parts = ["built with redisbloom", "read it with redisbloom::RedisBloomHash, or with AnyHasher::from_id"];
        all_name(&errors, &parts);
        let bytes = snapshot(RedisBloomHash);
        all_name(&refusals(&bytes, |_| Some(Xxh3)), &parts);
        works(&bytes, |_| Some(RedisBloomHash));
        works(&bytes, AnyHasher::from_id);
    }
    #[cfg(not(feature = "redisbloom"))]
    {
        all_name(&errors, &["built with redisbloom", "read it with koel's feature redisbloom"]);
        assert_eq!(AnyHasher::from_id(HasherId::REDIS_BLOOM), None, "this build lacks the hasher");
    }
}
