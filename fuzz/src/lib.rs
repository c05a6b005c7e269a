//! The fuzz targets: each is a function of bytes that panics if it finds an error.
//!
//! `tests/fuzz_corpus.rs` includes these files, too, and runs them on the stored inputs.

pub mod composed;
pub mod foreign;
mod go_files;
mod growing;
mod model;
pub mod ops;
mod redisbloom;
mod repair;
pub mod serde;
pub mod snapshot;
#[path = "../../tests/common/split_mix.rs"]
mod split_mix;
