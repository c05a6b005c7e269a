//! The parts that all programs share, such as printing an error; the sizes of the others are measured above this one.

use std::hint::black_box;

fn main() {
    if black_box(false) {
        println!("{}", black_box("no error"));
    }
}
