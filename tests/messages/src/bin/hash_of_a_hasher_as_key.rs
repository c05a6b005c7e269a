//! expected `u64`, found `Uniform`

use koel::{CuckooFilter, Prehashed, Xxh3, hash::Hasher};

fn main() {
    let seen = CuckooFilter::builder().capacity(10).false_positive_rate(0.01).build().unwrap();
    // The key of `"alice"` is `Prehashed::of(&Xxh3, 0, "alice")`; this would be a different key.
    let key: Prehashed = Prehashed(Xxh3.hash(0, b"alice"));
    println!("{}", seen.contains(&key));
}
