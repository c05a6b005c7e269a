#![no_main]

use koel::ElasticFilter;
use koel_fuzz::composed::{Format, check};

const FORMATS: &[Format] = &[through_bincode, through_postcard];

libfuzzer_sys::fuzz_target!(|input: &[u8]| check(input, FORMATS));

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
