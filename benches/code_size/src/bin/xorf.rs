//! The same as `fixed` with the crate xorf, whose filters do not change, and have hashes for items.

#[path = "../end.rs"]
mod end;

use std::{hint::black_box, process::ExitCode};

use xorf::Filter as _;

fn main() -> ExitCode {
    end::end(xorf::BinaryFuse16::try_from(black_box(&[1, 2, 3][..])).map(|filter| filter.contains(black_box(&4))))
}
