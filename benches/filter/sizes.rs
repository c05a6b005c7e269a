//! Table sizes, and whether the program runs as a test.

use std::env;

/// Enough items that tables of short fingerprints reach all loads, too.
const TEST_ITEMS: u64 = 20_000;

/// A number of items, named by the size of a packed table with 13-bit fingerprints.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) name: &'static str,
    /// The items that fill a table to a load of 0.95.
    pub(crate) items: u64,
    /// True if many fingerprint lengths are measured. Larger sizes take long, so only 13 bits are.
    pub(crate) is_small: bool,
}

const SIZES: [Size; 4] = [
    Size { name: "L2", items: 100_000, is_small: true },
    Size { name: "16 MB", items: 10_000_000, is_small: true },
    Size { name: "160 MB", items: 100_000_000, is_small: false },
    Size { name: "1.6 GB", items: 1_000_000_000, is_small: false },
];

/// Returns the sizes to measure.
pub(crate) fn sizes() -> impl Iterator<Item = Size> {
    let most = if is_test() || is_large() { SIZES.len() } else { SIZES.len() - 1 };
    SIZES.into_iter().take(most).map(|size| if is_test() { Size { items: TEST_ITEMS, ..size } } else { size })
}

/// Returns whether the program runs as a test, as criterion decides it: `cargo bench` passes `--bench`, `cargo test` does not.
pub(crate) fn is_test() -> bool {
    let passed = |wanted: &str| env::args().any(|argument| argument == wanted);
    passed("--test") || !passed("--bench")
}

pub(crate) fn is_large() -> bool {
    env::var_os("KOEL_BENCH_LARGE").is_some()
}
