//! Performs the operations of `fixed` with the crate fastbloom, which cannot remove items.

use std::{hint::black_box, process::ExitCode};

fn main() -> ExitCode {
    let mut filter = fastbloom::BloomFilter::with_false_pos(black_box(0.001)).seed(&1).expected_items(black_box(1000));
    for item in black_box(["alice", "bob"]) {
        filter.insert(item);
    }
    black_box(filter.as_slice());
    let found = filter.contains(black_box("absent"));
    if found {
        println!("{}", black_box("a false positive"));
    }
    ExitCode::from(u8::from(found))
}
