//! Filters round-trip through serde formats.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use crate::common::{Kind, kinds, same_bits};
use crate::formats::{LIMIT, base64_of, filled, from_bincode, from_json, from_postcard, small, to_bincode, to_json, to_postcard};
use bincode::config;
use koel::{
    Addressing, CuckooFilter, TableKind, Xxh3,
    hash::{AnyHasher, FromHasherId, Hasher, HasherId, Uniform},
};
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, value},
};
use serde_json::json;
use serde_test::{Configure, Token, assert_de_tokens, assert_tokens};
use std::fmt::Debug;

/// Checks that a value round-trips through all formats, and all ways to read them.
fn check_round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let bytes = to_bincode(value);
    // Filters are written as their snapshots, so this compares them bit for bit.
    let assert_same = |read: T| assert!(read == *value && to_bincode(&read) == bytes, "{read:?} instead of {value:?}");
    assert_same(from_bincode(&bytes).expect("bincode, from a slice"));
    let streamed = bincode::serde::decode_from_std_read(&mut &bytes[..], config::standard().with_limit::<LIMIT>());
    assert_same(streamed.expect("bincode, from a reader"));
    let legacy = config::legacy().with_limit::<LIMIT>();
    let in_legacy = bincode::serde::encode_to_vec(value, legacy).expect("it can be written");
    assert_same(bincode::serde::decode_from_slice(&in_legacy, legacy).expect("bincode 1").0);
    assert_same(from_postcard(&to_postcard(value)).expect("postcard"));
    let text = serde_json::to_string(value).expect("it can be written");
    assert_same(serde_json::from_str(&text).expect("JSON, from text"));
    assert_same(serde_json::from_reader(text.as_bytes()).expect("JSON, from a reader"));
    assert_same(from_json(to_json(value)).expect("JSON, from a tree"));
    let pretty = serde_json::to_string_pretty(value).expect("it can be written");
    assert_same(serde_json::from_str(&pretty).expect("JSON, indented"));
}

#[test]
fn all_kinds_round_trip() {
    for kind in kinds() {
        for buckets in [2, 16] {
            check_round_trip(&filled(kind, buckets));
        }
    }
}

/// src/guide/serde.md states these figures.
#[test]
fn binary_formats_add_only_the_length() {
    let kind = Kind { table: TableKind::Packed, f: 13, b: 4, addressing: Addressing::AnySize };
    for (buckets, bincode, postcard) in [(2, 1, 1), (100, 3, 2), (10_000, 3, 3), (400_000, 5, 4)] {
        let filter = filled(kind, buckets);
        let bytes = filter.to_bytes();
        let (ours, theirs) = (to_bincode(&filter), to_postcard(&filter));
        assert_eq!((ours.len() - bytes.len(), theirs.len() - bytes.len()), (bincode, postcard), "{} bytes", bytes.len());
        assert!(ours.ends_with(&bytes) && theirs.ends_with(&bytes));
        let legacy = bincode::serde::encode_to_vec(&filter, config::legacy()).expect("it can be written");
        assert_eq!(legacy.len() - bytes.len(), 8);
        let borrowed = bincode::serde::borrow_decode_from_slice(&ours, config::standard().with_limit::<LIMIT>());
        assert!(borrowed.is_ok_and(|(read, _): (CuckooFilter, _)| same_bits(&read, &filter)));
        assert!(from_postcard::<CuckooFilter>(&theirs).is_ok_and(|read| same_bits(&read, &filter)));
    }
}

/// All releases read and write this text.
#[test]
fn the_json_text_never_changes() {
    let mut filter = CuckooFilter::builder()
        .table(TableKind::Packed)
        .fingerprint_bits(13)
        .buckets(2)
        .seed(u64::MAX)
        .build()
        .expect("valid parameters");
    filter.insert("koel").expect("there is room");
    let text =
        r#""S09FTA0KGgoCAAENBAABAP//////////AgAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACPb3fJvnaEPAMAAAAAHgAAAAAAAL6/EsNLCDVD""#;
    assert_eq!(serde_json::to_string(&filter).expect("it can be written"), text);
    assert!(same_bits(&serde_json::from_str::<CuckooFilter>(text).expect("it can be read"), &filter));
}

/// A filter that `serde_test` compares bit for bit.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct Exact(CuckooFilter);

impl PartialEq for Exact {
    fn eq(&self, other: &Self) -> bool {
        same_bits(&self.0, &other.0)
    }
}

/// Filters are written as a string in human-readable formats, and as bytes in others. They are read from a string, bytes or a list
/// of bytes. (bincode and postcard write bytes and lists of bytes alike, so they do not show the difference.)
#[test]
fn filters_are_read_from_strings_bytes_and_lists() {
    let filter = Exact(small().swap_remove(0));
    // The tokens of serde_test need `'static` data.
    let bytes: &'static [u8] = filter.0.to_bytes().leak();
    let text: &'static str = base64_of(bytes).leak();
    assert_tokens(&filter.clone().readable(), &[Token::Str(text)]);
    assert_de_tokens(&filter.clone().readable(), &[Token::BorrowedStr(text)]);
    assert_de_tokens(&filter.clone().readable(), &[Token::String(text)]);
    assert_de_tokens(&filter.clone().readable(), &[Token::Bytes(bytes)]);
    let filter = filter.compact();
    assert_tokens(&filter, &[Token::Bytes(bytes)]);
    assert_de_tokens(&filter, &[Token::BorrowedBytes(bytes)]);
    assert_de_tokens(&filter, &[Token::ByteBuf(bytes)]);
    let list = [Token::Seq { len: None }].into_iter().chain(bytes.iter().map(|&byte| Token::U8(byte))).chain([Token::SeqEnd]);
    assert_de_tokens(&filter, &list.collect::<Vec<_>>());
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Shard {
    name: String,
    seen: CuckooFilter,
    before: Option<CuckooFilter>,
    others: Vec<CuckooFilter>,
    day: u32,
}

#[test]
fn other_types_can_contain_filters() {
    let [first, second, third, fourth] = small().try_into().expect("four filters");
    let shard = |before, others| Shard { name: "day".into(), seen: first.clone(), before, others, day: 7 };
    check_round_trip(&shard(Some(second.clone()), vec![third.clone(), fourth.clone()]));
    check_round_trip(&shard(None, Vec::new()));
    check_round_trip(&vec![second, third, fourth]);
    check_round_trip(&Some(first));
}

/// serde buffers the fields of such types, and loses whether the format is human-readable.
#[test]
fn flattened_and_untagged_types_can_contain_filters() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Outer {
        #[serde(flatten)]
        shard: Shard,
        more: bool,
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(u64),
        Filter(CuckooFilter),
    }
    let filter = small().swap_remove(0);
    let shard = Shard { name: "day".into(), seen: filter.clone(), before: None, others: vec![filter.clone()], day: 7 };
    let outer = Outer { shard, more: true };
    let read: Outer = from_json(to_json(&outer)).expect("it can be read");
    assert!(read == outer && to_json(&read) == to_json(&outer));
    let text = serde_json::to_string(&[Either::Number(1), Either::Filter(filter.clone())]).expect("it can be written");
    let [number, either]: [Either; 2] = serde_json::from_str(&text).expect("it can be read");
    assert!(number == Either::Number(1) && matches!(either, Either::Filter(read) if same_bits(&read, &filter)));
    // From a binary format, such a buffer has bytes and claims to be human-readable.
    let bytes = filter.to_bytes();
    let borrowed = value::BorrowedBytesDeserializer::<value::Error>::new(&bytes);
    assert!(<CuckooFilter>::deserialize(borrowed).is_ok_and(|read| same_bits(&read, &filter)));
    let owned = value::BytesDeserializer::<value::Error>::new(&bytes);
    assert!(<CuckooFilter>::deserialize(owned).is_ok_and(|read| same_bits(&read, &filter)));
}

/// A hasher that ignores ASCII case.
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

impl FromHasherId for IgnoreCase {
    fn from_hasher_id(id: HasherId) -> Option<Self> {
        (id == IgnoreCase.id()).then_some(IgnoreCase)
    }
}

/// A hasher that `from_hasher_id` returns for every id, although its own id is 0x8abd.
#[derive(Debug)]
struct AcceptsEveryId;

impl Hasher for AcceptsEveryId {
    fn id(&self) -> HasherId {
        const { HasherId::custom(0x8abd) }
    }
    fn hash(&self, _: u64, _: &[u8]) -> Uniform {
        Uniform::new(0)
    }
}

impl FromHasherId for AcceptsEveryId {
    fn from_hasher_id(_: HasherId) -> Option<Self> {
        Some(Self)
    }
}

#[track_caller]
fn assert_refused<H: FromHasherId>(filter: &CuckooFilter<impl Hasher>, part: &str) {
    let errors = [
        from_json::<CuckooFilter<H>>(to_json(filter)).map(drop),
        from_bincode::<CuckooFilter<H>>(&to_bincode(filter)).map(drop),
        from_json::<CuckooFilter<H>>(json!(filter.to_bytes())).map(drop),
    ];
    for error in errors {
        let error = error.expect_err("another hasher's filter");
        assert!(error.contains(part) && error.contains("not the given hasher"), "{error}");
    }
    assert!(from_postcard::<CuckooFilter<H>>(&to_postcard(filter)).is_err());
}

#[test]
fn hashers_read_only_their_own_filters() {
    let mut names =
        CuckooFilter::builder().capacity(100).fingerprint_bits(12).hasher(IgnoreCase).build().expect("valid parameters");
    names.insert("Koel").expect("there is room");
    check_round_trip(&names);
    let read: CuckooFilter<IgnoreCase> = from_json(to_json(&names)).expect("it can be read");
    assert!(read.contains("KOEL"));
    assert_refused::<Xxh3>(&names, "built with 0x8abc");
    assert_refused::<AnyHasher>(&names, "built with 0x8abc");
    assert_refused::<AcceptsEveryId>(&names, "built with 0x8abc");
    let plain = small().swap_remove(0);
    assert_refused::<IgnoreCase>(&plain, "xxh3");
    let any: CuckooFilter<AnyHasher> = from_json(to_json(&plain)).expect("it can be read");
    assert_eq!(any.to_bytes(), plain.to_bytes());
    check_round_trip(&any);
}

#[cfg(all(feature = "metrohash", target_endian = "little"))]
#[test]
fn metrohash_reads_only_its_own_filters() {
    use koel::go::MetroHash64;
    for kind in kinds().filter(|kind| kind.f == 13) {
        let mut go = kind.builder().buckets(16).hasher(MetroHash64).seed(1337).build().expect("valid parameters");
        go.insert("koel").expect("there is room");
        check_round_trip(&go);
        let any: CuckooFilter<AnyHasher> = from_json(to_json(&go)).expect("it can be read");
        assert_eq!(any.hasher(), &AnyHasher::MetroHash64);
        check_round_trip(&any);
        assert_refused::<Xxh3>(&go, "metrohash64");
        assert_refused::<MetroHash64>(&kind.filter(16), "xxh3");
    }
}

#[cfg(feature = "redisbloom")]
#[test]
fn redisbloom_hash_reads_only_its_own_filters() {
    use koel::redisbloom::RedisBloomHash;
    for kind in kinds().filter(|kind| kind.f == 8) {
        let mut filter = kind.builder().buckets(16).hasher(RedisBloomHash).build().expect("valid parameters");
        filter.insert("koel").expect("there is room");
        check_round_trip(&filter);
        let any: CuckooFilter<AnyHasher> = from_json(to_json(&filter)).expect("it can be read");
        assert_eq!(any.hasher(), &AnyHasher::RedisBloomHash);
        check_round_trip(&any);
        assert_refused::<Xxh3>(&filter, "redisbloom");
        assert_refused::<RedisBloomHash>(&kind.filter(16), "xxh3");
    }
}
