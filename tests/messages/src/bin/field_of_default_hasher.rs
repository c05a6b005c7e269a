//! expected `CuckooFilter`, found `CuckooFilter<StdHasher<RandomState>>`

use koel::{CuckooFilter, hash::StdHasher};
use std::hash::RandomState;

struct Service {
    seen: CuckooFilter,
}

fn main() {
    let hasher = StdHasher::new(RandomState::new());
    let seen = CuckooFilter::builder().capacity(10).false_positive_rate(0.01).hasher(hasher).build().unwrap();
    println!("{}", Service { seen }.seen);
}
