//! The fuzz targets: each is a function of bytes that panics if it finds an error.
//!
//! Tests include these files, too: tests/fuzz_corpus.rs runs them on the stored inputs, tests/operations.rs and
//! tests/elastic/composed.rs on random ones.

#[path = "../../tests/common/chosen.rs"]
mod chosen;
pub mod composed;
pub mod foreign;
pub mod formats;
mod formulas;
mod go_files;
mod growing;
pub mod ops;
mod pieces;
mod redisbloom;
mod repair;
#[path = "../../tests/common/same_bits.rs"]
mod same_bits;
mod sections;
pub mod serde;
pub mod snapshot;
#[path = "../../tests/common/split_mix.rs"]
mod split_mix;
