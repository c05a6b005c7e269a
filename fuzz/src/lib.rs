//! What the fuzz targets do with their bytes: one function each, which panics where something is wrong.
//!
//! `tests/fuzz_corpus.rs` has these files, too, and runs them with the inputs that were worth keeping.

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
