//! Builds a `CuckooFilter`, changes it, and writes it.

#[path = "../end.rs"]
mod end;

use std::{error::Error, hint::black_box, process::ExitCode};

use koel::CuckooFilter;

fn run(items: &[&str]) -> Result<bool, Box<dyn Error>> {
    let mut filter = CuckooFilter::builder().capacity(black_box(1000)).false_positive_rate(black_box(0.001)).build()?;
    for item in items {
        filter.insert(item)?;
    }
    let was_there = filter.remove(items[0]);
    black_box(filter.to_bytes());
    Ok(was_there && filter.contains(black_box("absent")))
}

fn main() -> ExitCode {
    end::end(run(black_box(&["alice", "bob"])))
}
