//! What every program has: arguments, and words for an error.

use std::hint::black_box;

fn main() {
    if black_box(false) {
        println!("{}", black_box("no error"));
    }
}
