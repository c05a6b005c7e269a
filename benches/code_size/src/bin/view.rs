//! Only queries a snapshot that is embedded in the program.

#[path = "../end.rs"]
mod end;

use std::{hint::black_box, process::ExitCode};

use koel::FilterView;

fn main() -> ExitCode {
    let snapshot = black_box(include_bytes!("../../../../tests/data/packed_f13_any.koel"));
    end::end(FilterView::over(snapshot).map(|filter| filter.contains(black_box("absent"))))
}
