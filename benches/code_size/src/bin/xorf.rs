//! The same as `fixed` with the crate xorf, whose filters do not change, and have hashes for items.

use std::{hint::black_box, process::ExitCode};

use xorf::Filter as _;

fn main() -> ExitCode {
    match xorf::BinaryFuse16::try_from(black_box(&[1, 2, 3][..])) {
        Ok(filter) => ExitCode::from(u8::from(filter.contains(black_box(&4)))),
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
