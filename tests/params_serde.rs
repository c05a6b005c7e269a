//! Parameters round-trip through serde formats, and invalid input is refused.

use crate::common::{ADDRESSINGS, Kind};
use crate::formats::{LIMIT, from_bincode, from_json, from_postcard, to_bincode, to_json, to_postcard};
use bincode::config;
use koel::{Addressing, CuckooFilter, Params, TableKind, Xxh3};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use serde_test::{Configure, Token, assert_de_tokens, assert_tokens};

fn packed(seed: u64) -> Params {
    let builder = CuckooFilter::builder().table(TableKind::Packed).fingerprint_bits(13).buckets(256_412).seed(seed);
    builder.params().expect("valid parameters")
}

fn all_kinds() -> impl Iterator<Item = Params> {
    let kinds = [(TableKind::Packed, 4..=32, 4..=4), (TableKind::Single, 2..=32, 1..=16)];
    let kinds = kinds.into_iter().flat_map(|(table, lengths, sizes)| {
        lengths.flat_map(move |f| sizes.clone().flat_map(move |b| ADDRESSINGS.map(|addressing| Kind { table, f, b, addressing })))
    });
    let buckets = if cfg!(target_pointer_width = "64") { 1 << 32 } else { 1 << 20 };
    kinds.flat_map(move |kind| {
        [(2, 0), (buckets, u64::MAX)]
            .map(|(buckets, seed)| kind.builder().buckets(buckets).seed(seed).params().expect("valid parameters"))
    })
}

#[test]
fn all_kinds_round_trip() {
    let legacy = config::legacy().with_limit::<{ LIMIT }>();
    for params in all_kinds() {
        let text = serde_json::to_string(&params).expect("it can be written");
        assert_eq!(serde_json::from_str::<Params>(&text).expect("JSON, from text"), params);
        assert_eq!(serde_json::from_reader::<_, Params>(text.as_bytes()).expect("JSON, from a reader"), params);
        assert_eq!(from_json(to_json(&params)), Ok(params));
        assert_eq!(from_bincode(&to_bincode(&params)), Ok(params));
        assert_eq!(from_postcard(&to_postcard(&params)), Ok(params));
        // Six numbers of eight bytes.
        let bytes = bincode::serde::encode_to_vec(params, legacy).expect("it can be written");
        assert_eq!(bytes.len(), 48);
        assert_eq!(bincode::serde::decode_from_slice::<Params, _>(&bytes, legacy).expect("bincode 1").0, params);
    }
}

/// All releases read and write these representations.
#[test]
fn serialized_parameters_never_change() {
    let params = packed(0x539);
    let text = concat!(
        r#"{"table":"packed","fingerprint_bits":13,"bucket_size":4,"#,
        r#""addressing":"any-size","seed":"0x0000000000000539","buckets":256412}"#
    );
    assert_eq!(serde_json::to_string(&params).expect("it can be written"), text);
    let fields = |table, addressing, seed| {
        let (name, len) = ("Params", 6);
        let fields = [("table", table), ("fingerprint_bits", Token::U64(13)), ("bucket_size", Token::U64(4))];
        let more = [("addressing", addressing), ("seed", seed), ("buckets", Token::U64(256_412))];
        let fields = fields.into_iter().chain(more).flat_map(|(name, value)| [Token::Str(name), value]);
        [Token::Struct { name, len }].into_iter().chain(fields).chain([Token::StructEnd]).collect::<Vec<_>>()
    };
    let names = fields(Token::Str("packed"), Token::Str("any-size"), Token::Str("0x0000000000000539"));
    let numbers = fields(Token::U64(1), Token::U64(0), Token::U64(0x539));
    assert_tokens(&params.readable(), &names);
    assert_tokens(&params.compact(), &numbers);
    // Where serde buffers values, as for a flattened field, a binary format's numbers arrive as if the format were human-readable.
    assert_de_tokens(&params.readable(), &numbers);
    assert_eq!(to_postcard(&params), [1, 13, 4, 0, 0xb9, 0x0a, 0x9c, 0xd3, 0x0f]);
    assert_eq!(from_json(json!(["packed", 13, 4, "any-size", "0x0000000000000539", 256_412])), Ok(params));
}

#[test]
fn other_types_can_contain_parameters() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Shards {
        #[serde(flatten)]
        params: Params,
        shards: u32,
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Size {
        Items(u64),
        Exactly(Params),
    }
    let params = packed(1);
    let shards = Shards { params, shards: 7 };
    assert_eq!(from_json(to_json(&shards)), Ok(shards));
    for size in [Size::Items(9), Size::Exactly(params)] {
        let text = serde_json::to_string(&size).expect("it can be written");
        assert_eq!(serde_json::from_str::<Size>(&text).expect("it can be read"), size);
    }
    let list = vec![Some(params), None, Some(packed(2))];
    assert_eq!(from_postcard(&to_postcard(&list)), Ok(list));
}

#[track_caller]
fn assert_refused(value: &Value, parts: &[&str]) {
    let error = from_json::<Params>(value.clone()).expect_err("invalid parameters");
    assert!(error.len() < 400, "{} bytes of message", error.len());
    for part in parts {
        assert!(error.contains(part), "{part:?} expected in: {error}");
    }
    assert!(serde_json::from_str::<Params>(&value.to_string()).is_err());
}

#[test]
fn invalid_fields_are_refused_with_their_limits() {
    let long = "x".repeat(100_000);
    for (field, value, parts) in [
        ("table", json!("Packed"), &["\"Packed\" given", "single or packed"][..]),
        ("table", json!(long), &["a text of 100000 bytes given", "single or packed"]),
        ("table", json!(2), &["2 given", "single or packed"]),
        ("table", json!(null), &["null", "single or packed"]),
        ("fingerprint_bits", json!(3), &["fingerprint bits: 3 given", "packed table takes 4 to 32"]),
        ("fingerprint_bits", json!(33), &["fingerprint bits: 33 given"]),
        ("fingerprint_bits", json!(269), &["fingerprint bits: 269 given"]),
        ("fingerprint_bits", json!(1_u64 << 32), &["4294967296 given", "a whole number for fingerprint_bits"]),
        ("fingerprint_bits", json!("13"), &["\"13\"", "a whole number for fingerprint_bits"]),
        ("bucket_size", json!(8), &["bucket size: 8 given", "packed table takes 4;"]),
        ("bucket_size", json!(-4), &["-4 given", "a whole number for bucket_size"]),
        ("addressing", json!("any size"), &["\"any size\" given", "any-size or power-of-two"]),
        ("addressing", json!("power-of-two"), &["buckets: 256412 given", "powers of two"]),
        ("addressing", json!(2), &["2 given", "any-size or power-of-two"]),
        ("seed", json!("0x539"), &["\"0x539\" given", "sixteen digits"]),
        ("seed", json!("0x000000000000053G"), &["given", "sixteen digits"]),
        ("seed", json!(-1), &["-1", "sixteen digits"]),
        ("seed", json!(long), &["a text of 100000 bytes", "sixteen digits"]),
        ("buckets", json!(256_411), &["buckets: 256411 given", "even numbers"]),
        ("buckets", json!(0), &["buckets: 0 given"]),
        ("buckets", json!(u64::MAX), &["buckets: 18446744073709551615 given"]),
        ("buckets", json!(1.5), &["1.5", "a whole number for buckets"]),
        ("buckets", json!(long), &["a text of 100000 bytes", "a whole number for buckets"]),
        ("bukkets", json!(2), &["\"bukkets\" given, expected one of", "bucket_size"]),
        (&long, json!(2), &["a text of 100000 bytes given, expected one of"]),
    ] {
        let mut map = to_json(&packed(0));
        map[field] = value;
        assert_refused(&map, parts);
    }
}

#[test]
fn missing_and_repeated_fields_are_refused() {
    let map = to_json(&packed(0));
    let fields = map.as_object().expect("a map");
    assert_eq!(fields.len(), 6);
    for (field, value) in fields {
        let mut without = fields.clone();
        without.remove(field);
        assert_refused(&Value::Object(without), &["missing field", field]);
        let text = map.to_string();
        let twice = format!("{},{field:?}:{value}}}", &text[..text.len() - 1]);
        let error = serde_json::from_str::<Params>(&twice).expect_err("the field is repeated").to_string();
        assert!(error.contains("duplicate field") && error.contains(field), "{error}");
    }
    let list = ["packed", "13", "4", "any-size", "0x0000000000000000", "2", "2"].map(|text| text.parse().unwrap_or(json!(text)));
    assert!(from_json::<Params>(json!(list[..6])).is_ok());
    assert_refused(&json!(list[..5]), &["missing field `buckets`"]);
    assert_refused(&json!(list), &["more than 6 values"]);
    for (value, part) in
        [(json!(null), "null"), (json!(1), "integer `1`"), (json!("packed"), "\"packed\""), (json!([]), "missing")]
    {
        assert_refused(&value, &[part]);
    }
}

/// Altered bytes give an error, or parameters that a filter can be built with.
#[test]
fn altered_bytes_never_give_invalid_parameters() {
    let (mut read, mut refused) = (0, 0);
    let mut check = |bytes: &[u8]| {
        let bincode = bincode::serde::decode_from_slice::<Params, _>(bytes, config::standard());
        let results = [from_postcard(bytes).ok(), bincode.ok().map(|(params, _)| params), serde_json::from_slice(bytes).ok()];
        for params in results {
            let Some(params) = params else {
                refused += 1;
                continue;
            };
            let builder = CuckooFilter::builder().table(params.table()).fingerprint_bits(params.fingerprint_bits());
            let builder = builder.bucket_size(params.bucket_size()).addressing(params.addressing());
            assert_eq!(builder.buckets(params.buckets()).seed(params.seed()).params(), Ok(params), "{bytes:?}");
            read += 1;
        }
    };
    let params = packed(0x539);
    for bytes in [to_postcard(&params), to_bincode(&params), serde_json::to_vec(&params).expect("it can be written")] {
        for at in 0..bytes.len() {
            check(&bytes[..at]);
            for byte in 0..=255 {
                let mut bytes = bytes.clone();
                bytes[at] = byte;
                check(&bytes);
            }
        }
    }
    assert!(read > 500 && refused > 10_000, "{read} read, {refused} refused");
}

#[test]
fn every_truncation_is_refused() {
    let params = packed(0x539);
    let (postcard, bincode) = (to_postcard(&params), to_bincode(&params));
    let json = serde_json::to_string(&params).expect("it can be written");
    for len in 0..json.len() {
        assert!(serde_json::from_str::<Params>(&json[..len]).is_err());
        assert!(len >= postcard.len() || from_postcard::<Params>(&postcard[..len]).is_err());
        assert!(len >= bincode.len() || from_bincode::<Params>(&bincode[..len]).is_err());
    }
}

#[test]
fn deserialized_parameters_build_a_filter() {
    let params: Params = from_json(json!({
        "buckets": 26, "seed": "0x0000000000000007", "addressing": "any-size",
        "bucket_size": 3, "fingerprint_bits": 9, "table": "single"
    }))
    .expect("valid parameters");
    assert_eq!((params.addressing(), params.seed()), (Addressing::AnySize, 7));
    let filter = CuckooFilter::new(params, Xxh3).expect("there is memory");
    assert_eq!(filter.slots(), 78);
}
