//! Performs the operations of `fixed` with the crate qfilter, but writes nothing.

#[path = "../end.rs"]
mod end;

use std::{hint::black_box, process::ExitCode};

fn run(items: &[&str]) -> Result<bool, qfilter::Error> {
    let mut filter = qfilter::Filter::new(black_box(1000), black_box(0.001))?;
    for item in items {
        filter.insert_duplicated(item)?;
    }
    let was_there = filter.remove(items[0]);
    Ok(was_there && filter.contains(black_box("absent")))
}

fn main() -> ExitCode {
    end::end(run(black_box(&["alice", "bob"])))
}
