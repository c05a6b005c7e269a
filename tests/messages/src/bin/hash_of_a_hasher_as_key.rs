//! expected `u64`, found `Uniform`

use koel::{CuckooFilter, Prehashed, Xxh3, hash::Hasher};

fn main() {
    let seen = CuckooFilter::builder().capacity(10).false_positive_rate(0.01).build().unwrap();
    // `Prehashed::of(&Xxh3, 0, "alice")` is the key of `"alice"`; this would be another one.
    let key: Prehashed = Prehashed(Xxh3.hash(0, b"alice"));
    println!("{}", seen.contains(&key));
}
