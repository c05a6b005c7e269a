//! `User` cannot be put into a filter
//! `{float}` cannot be put into a filter
//! implement `koel::Item`, or use `koel::hash::StdHasher`

use koel::CuckooFilter;

struct User;

fn main() {
    let mut seen = CuckooFilter::builder().capacity(10).false_positive_rate(0.01).build().unwrap();
    seen.insert(&User).unwrap();
    seen.insert_batch(&[1.5]).unwrap();
}
