//! The serde formats through which the target `growing` passes filters. Its inputs choose a format by number, so the fuzzer and the
//! tests share this list.

use koel::ElasticFilter;

/// Each writes a filter, and returns the filter that is read back.
pub const FORMATS: &[fn(&ElasticFilter) -> ElasticFilter] = &[through_bincode, through_postcard, through_json];

fn through_bincode(filter: &ElasticFilter) -> ElasticFilter {
    let config = bincode::config::standard();
    let bytes = bincode::serde::encode_to_vec(filter, config).expect("it can be written");
    let (filter, len) = bincode::serde::decode_from_slice(&bytes, config).expect("what is written can be read");
    assert_eq!(len, bytes.len());
    filter
}

fn through_postcard(filter: &ElasticFilter) -> ElasticFilter {
    let bytes = postcard::to_allocvec(filter).expect("it can be written");
    postcard::from_bytes(&bytes).expect("what is written can be read")
}

fn through_json(filter: &ElasticFilter) -> ElasticFilter {
    let value = serde_json::to_value(filter).expect("it can be written");
    serde_json::from_value(value).expect("what is written can be read")
}
