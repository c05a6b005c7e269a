//! Performs the operations of `growing` with the crate scalable_cuckoo_filter, but writes nothing.

#[path = "../end.rs"]
mod end;

use std::{convert::Infallible, hint::black_box, process::ExitCode};

use scalable_cuckoo_filter::ScalableCuckooFilter;

fn run(items: &[&str]) -> Result<bool, Infallible> {
    let mut filter = ScalableCuckooFilter::<str>::new(black_box(1000), black_box(0.001));
    for item in items {
        filter.insert(item);
    }
    filter.remove(items[0]);
    Ok(filter.contains(black_box("absent")))
}

fn main() -> ExitCode {
    end::end(run(black_box(&["alice", "bob"])))
}
