//! A program that builds a growing filter, changes it, and writes it.

use std::{error::Error, hint::black_box, process::ExitCode};

use koel::ElasticFilter;

fn run(items: &[&str]) -> Result<bool, Box<dyn Error>> {
    let mut filter = ElasticFilter::builder().false_positive_rate(black_box(0.001)).build()?;
    for item in items {
        filter.insert(item)?;
    }
    let was_there = filter.remove(items[0]);
    black_box(filter.to_bytes());
    Ok(was_there && filter.contains(black_box("absent")))
}

fn main() -> ExitCode {
    match run(black_box(&["alice", "bob"])) {
        Ok(found) => ExitCode::from(u8::from(found)),
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
