//! Performs the operations of `growing` with the crate growable-bloom-filter, which cannot remove items. It
//! writes nothing.

#[path = "../end.rs"]
mod end;

use std::{convert::Infallible, hint::black_box, process::ExitCode};

use growable_bloom_filter::GrowableBloom;

fn run(items: &[&str]) -> Result<bool, Infallible> {
    let mut filter = GrowableBloom::new(black_box(0.001), black_box(1000));
    for item in items {
        filter.insert(item);
    }
    Ok(filter.contains(black_box("absent")))
}

fn main() -> ExitCode {
    end::end(run(black_box(&["alice", "bob"])))
}
