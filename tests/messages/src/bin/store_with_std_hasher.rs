//! `StdHasher<RandomState>` is not a portable hasher
//! to store the filter, use `koel::Xxh3`, the default, and implement `koel::Item` for the items

use koel::{CuckooFilter, hash::StdHasher};
use std::hash::RandomState;

fn main() {
    let hasher = StdHasher::new(RandomState::new());
    let seen = CuckooFilter::builder().capacity(10).false_positive_rate(0.01).hasher(hasher).build().unwrap();
    seen.save("seen.koel").unwrap();
}
