//! What the benchmarks have in common: keys, times and their medians.

// Times and numbers of items are for people to read.
#![allow(clippy::cast_precision_loss)]

use std::{env, fmt::Display, time::Instant};
#[cfg(feature = "times")]
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process,
};

#[cfg(feature = "times")]
use memmap2::Mmap;

/// The n-th key. All are distinct, and in no order.
#[must_use]
pub fn key(n: u64) -> u64 {
    let hash = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ hash >> 27
}

/// How long an action takes, in nanoseconds for each of this many items.
pub fn time(items: usize, action: impl FnOnce()) -> f64 {
    let start = Instant::now();
    action();
    start.elapsed().as_secs_f64() * 1e9 / items as f64
}

/// The middle one of the values, or the higher of the two in the middle.
///
/// # Panics
/// If there are none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// A number for people: 1,000 or 3 M.
#[must_use]
pub fn count(number: impl Display) -> String {
    let digits = number.to_string();
    if let Some(millions) = digits.strip_suffix("000000") {
        return format!("{millions} M");
    }
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

/// Prints a row of a Markdown table.
pub fn row(name: &str, cells: impl IntoIterator<Item = String>) {
    println!("| {name} | {} |", cells.into_iter().collect::<Vec<_>>().join(" | "));
}

/// How much a benchmark does.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// The number of items.
    pub items: u64,
    /// How often each thing is timed.
    pub rounds: usize,
}

impl Extent {
    /// As many items as the command line says, or these. Without `--bench`, which Cargo passes, only to see whether the
    /// benchmark's assertions hold: a hundred thousand in one round.
    #[must_use]
    pub fn of_arguments(items: u64, rounds: usize) -> Self {
        let arguments: Vec<String> = env::args().skip(1).collect();
        let is_test = !arguments.iter().any(|argument| argument == "--bench");
        let given = arguments.iter().find_map(|argument| argument.parse().ok());
        let items = given.unwrap_or(if is_test { 100_000 } else { items });
        Self { items, rounds: if is_test { 1 } else { rounds } }
    }

    /// The number of items as a length.
    #[must_use]
    pub fn length(self) -> usize {
        usize::try_from(self.items).unwrap_or(usize::MAX)
    }
}

/// A file in the folder for temporary files that is deleted on drop.
#[cfg(feature = "times")]
#[derive(Debug)]
pub struct Scratch(PathBuf);

#[cfg(feature = "times")]
impl Scratch {
    /// The path of a file that nobody else uses, and that is not there yet.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(env::temp_dir().join(format!("koel-bench-{name}-{}.koel", process::id())))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Maps the file.
    ///
    /// # Panics
    /// If it is not there, or cannot be mapped.
    #[must_use]
    pub fn map(&self) -> Mmap {
        let file = File::open(&self.0).expect("it was saved");
        // SAFETY: nobody else knows the file.
        #[allow(unsafe_code, reason = "mapping is unsafe")]
        unsafe {
            Mmap::map(&file).expect("it can be mapped")
        }
    }
}

#[cfg(feature = "times")]
impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}
