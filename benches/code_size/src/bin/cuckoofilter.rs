//! Performs the operations of `fixed` with the crate cuckoofilter, whose rate cannot be chosen.

#[path = "../end.rs"]
mod end;

use std::{collections::hash_map::DefaultHasher, hint::black_box, process::ExitCode};

use cuckoofilter::{CuckooError, CuckooFilter};

fn run(items: &[&str]) -> Result<bool, CuckooError> {
    let mut filter = CuckooFilter::<DefaultHasher>::with_capacity(black_box(1000));
    for item in items {
        filter.add(item)?;
    }
    let was_there = filter.delete(items[0]);
    black_box(filter.export());
    Ok(was_there && filter.contains(black_box("absent")))
}

fn main() -> ExitCode {
    end::end(run(black_box(&["alice", "bob"])))
}
