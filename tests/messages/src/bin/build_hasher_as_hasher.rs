//! the hasher `RandomState` does not take items
//! a `BuildHasher`, such as `RandomState`, is wrapped: `koel::hash::StdHasher::new(RandomState::new())`

use koel::CuckooFilter;
use std::hash::RandomState;

fn main() {
    let builder = CuckooFilter::builder().capacity(10).false_positive_rate(0.01).hasher(RandomState::new());
    builder.build().unwrap();
}
