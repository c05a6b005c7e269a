//! Contains what all programs contain, such as printing an error. Its size is subtracted from the sizes of the others.

use std::hint::black_box;

fn main() {
    if black_box(false) {
        println!("{}", black_box("no error"));
    }
}
