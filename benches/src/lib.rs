//! Helpers that the benchmarks share: keys, times, medians and Markdown.

// Times and item counts are rounded for display.
#![allow(clippy::cast_precision_loss)]

use std::{env, fmt::Display, time::Instant};
#[cfg(feature = "times")]
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process,
};

use koel::{CuckooFilter, ElasticFilter};
#[cfg(feature = "times")]
use memmap2::Mmap;

/// Returns the n-th key. Keys are distinct and unordered.
#[must_use]
pub fn key(n: u64) -> u64 {
    let hash = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ hash >> 27
}

/// The operations that fixed and growing filters have in common. They panic where there is no room.
#[allow(missing_docs, clippy::len_without_is_empty, reason = "each calls the filter's method of that name")]
pub trait Multiset {
    fn insert(&mut self, key: u64);
    fn insert_batch(&mut self, keys: &[u64]);
    fn remove(&mut self, key: u64) -> bool;
    fn count(&self, key: u64) -> usize;
    fn len(&self) -> usize;
    fn size_in_bytes(&self) -> usize;
}

macro_rules! multiset {
    ($($filter:ty),*) => {$(
        impl Multiset for $filter {
            fn insert(&mut self, key: u64) {
                self.insert(&key).expect("the capacity fits, and copies are always accepted");
            }
            fn insert_batch(&mut self, keys: &[u64]) {
                self.insert_batch(keys).expect("the capacity fits, and copies are always accepted");
            }
            fn remove(&mut self, key: u64) -> bool {
                self.remove(&key)
            }
            fn count(&self, key: u64) -> usize {
                self.count(&key) as usize
            }
            fn len(&self) -> usize {
                self.len()
            }
            fn size_in_bytes(&self) -> usize {
                self.size_in_bytes()
            }
        }
    )*};
}

multiset!(CuckooFilter, ElasticFilter);

/// Runs an action on `items` items. Returns the nanoseconds per item.
pub fn time(items: usize, action: impl FnOnce()) -> f64 {
    let start = Instant::now();
    action();
    start.elapsed().as_secs_f64() * 1e9 / items as f64
}

/// Returns the nanoseconds for which this thread has used a processor. On systems other than Unix, it is the time of day, which
/// includes pauses of the thread.
///
/// # Panics
/// Panics if there is no such clock.
#[cfg(feature = "times")]
#[must_use]
pub fn processor_time() -> u64 {
    #[cfg(unix)]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is valid, and the clock exists on every Unix.
        #[allow(unsafe_code, reason = "reading the clock is unsafe")]
        let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        assert_eq!(status, 0, "the clock can be read");
        time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
    }
    #[cfg(not(unix))]
    {
        std::time::UNIX_EPOCH.elapsed().map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Returns the median of the values: of an even number of values, the higher one in the middle.
///
/// # Panics
/// Panics if there are no values.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Formats a number for display: 1,000 or 3 M.
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

/// The size of a benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// The number of items.
    pub items: u64,
    /// How often everything is timed.
    pub rounds: usize,
}

impl Extent {
    /// Returns the number of items on the command line, or `items`, and `rounds`. Without `--bench`, which `cargo bench` passes,
    /// the benchmark only tests its assertions: one round, by default with 100,000 items.
    #[must_use]
    pub fn of_arguments(items: u64, rounds: usize) -> Self {
        let arguments: Vec<String> = env::args().skip(1).collect();
        let is_test = !arguments.iter().any(|argument| argument == "--bench");
        let given = arguments.iter().find_map(|argument| argument.parse().ok());
        let items = given.unwrap_or(if is_test { 100_000 } else { items });
        Self { items, rounds: if is_test { 1 } else { rounds } }
    }

    /// Returns the number of items as a `usize`.
    #[must_use]
    pub fn length(self) -> usize {
        usize::try_from(self.items).unwrap_or(usize::MAX)
    }
}

/// A file in the folder for temporary files, deleted on drop.
#[cfg(feature = "times")]
#[derive(Debug)]
pub struct Scratch(PathBuf);

#[cfg(feature = "times")]
impl Scratch {
    /// Returns the path of a file that does not exist yet and is unique to this process.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(env::temp_dir().join(format!("koel-bench-{name}-{}.koel", process::id())))
    }

    /// Returns the file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Maps the file.
    ///
    /// # Panics
    /// Panics if the file does not exist or cannot be mapped.
    #[must_use]
    pub fn map(&self) -> Mmap {
        let file = File::open(&self.0).expect("the file exists");
        // SAFETY: no other code uses the file, so it does not change while it is mapped.
        #[allow(unsafe_code, reason = "mapping is unsafe")]
        unsafe {
            Mmap::map(&file).expect("the file can be mapped")
        }
    }
}

#[cfg(feature = "times")]
impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}
