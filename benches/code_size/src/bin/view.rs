//! A program that only asks a filter, in bytes that it has.

use std::{hint::black_box, process::ExitCode};

use koel::FilterView;

fn main() -> ExitCode {
    let snapshot = black_box(include_bytes!("../../../../tests/data/packed_f13_any.koel"));
    match FilterView::over(snapshot) {
        Ok(filter) => ExitCode::from(u8::from(filter.contains(black_box("absent")))),
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
