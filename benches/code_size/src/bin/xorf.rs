//! Builds and queries a filter of the crate xorf. Its filters cannot be changed, and their items are hashes.

#[path = "../end.rs"]
mod end;

use std::{hint::black_box, process::ExitCode};

use xorf::Filter as _;

fn main() -> ExitCode {
    end::end(xorf::BinaryFuse16::try_from(black_box(&[1, 2, 3][..])).map(|filter| filter.contains(black_box(&4))))
}
