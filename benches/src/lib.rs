//! Helpers that the benchmarks share: filters, keys, times, medians and Markdown.

// Times and item counts are rounded for display.
#![allow(clippy::cast_precision_loss)]

use std::{
    env,
    fmt::Display,
    fs::{self, File},
    path::{Path, PathBuf},
    process,
    time::Instant,
};

use koel::{CuckooFilter, ElasticBuilder, ElasticFilter};
use memmap2::Mmap;

/// The false-positive rate of filters.
pub const RATE: f64 = 0.001;

/// Returns an empty filter of a fixed size for this many items.
///
/// # Panics
/// Panics if there is no memory for it.
#[must_use]
pub fn fixed(items: usize) -> CuckooFilter {
    CuckooFilter::builder().capacity(items).false_positive_rate(RATE).build().expect("valid parameters")
}

/// Returns an empty filter that grows.
///
/// # Panics
/// Panics if there is no memory for it.
#[must_use]
pub fn growing() -> ElasticFilter {
    ElasticFilter::builder().false_positive_rate(RATE).build().expect("valid parameters")
}

/// Returns a builder of growing filters that are planned for this many items.
pub fn planned(items: usize) -> ElasticBuilder {
    ElasticFilter::builder().false_positive_rate(RATE).capacity(items).max_capacity(items)
}

/// Returns the n-th key. Keys are distinct and unordered.
#[must_use]
pub fn key(n: u64) -> u64 {
    let hash = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ hash >> 27
}

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

/// Returns true if a word is on the command line.
#[must_use]
pub fn is_given(word: &str) -> bool {
    env::args_os().any(|argument| argument == word)
}

/// Returns true without `--bench`, which `cargo bench` passes.
#[must_use]
pub fn is_test() -> bool {
    !is_given("--bench")
}

/// Reports a wrong argument, and ends the process.
pub fn refuse(message: &str) -> ! {
    eprintln!("{message}");
    process::exit(2)
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
    ///
    /// `words` are the other arguments that the benchmark knows. If there is any further one, or no item, it reports that and ends
    /// the process: otherwise, a misspelled argument would measure something else, for minutes.
    #[must_use]
    pub fn of_arguments(words: &[&str], items: u64, rounds: usize) -> Self {
        let mut given = None;
        for argument in env::args_os().skip(1) {
            let text = argument.to_str().unwrap_or_default();
            let number = text.parse().ok().filter(|&number: &u64| number > 0);
            if given.is_none() && number.is_some() {
                given = number;
            } else if !["--bench", "--test"].contains(&text) && !words.contains(&text) {
                let words: Vec<_> = words.iter().map(|word| format!(", or {word}")).collect();
                refuse(&format!("{}: give one number of items, from 1{}", argument.display(), words.concat()));
            }
        }
        let items = given.unwrap_or(if is_test() { 100_000 } else { items });
        Self { items, rounds: if is_test() { 1 } else { rounds } }
    }

    /// Returns the number of items as a `usize`.
    #[must_use]
    pub fn length(self) -> usize {
        usize::try_from(self.items).unwrap_or(usize::MAX)
    }
}

/// A file in the folder for temporary files, deleted on drop.
#[derive(Debug)]
pub struct Scratch(PathBuf);

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

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}
