//! How many items, and whether all this is only a test.

use std::env;

/// Enough for all loads to fit, also with short fingerprints.
const TEST_ITEMS: u64 = 20_000;

/// Named by what 13-bit fingerprints take in the packed table.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) name: &'static str,
    /// To a load of 0.95.
    pub(crate) items: u64,
    /// Of many lengths of fingerprints, or of 13 bits alone, since it takes long?
    pub(crate) is_small: bool,
}

const SIZES: [Size; 4] = [
    Size { name: "L2", items: 100_000, is_small: true },
    Size { name: "16 MB", items: 10_000_000, is_small: true },
    Size { name: "160 MB", items: 100_000_000, is_small: false },
    Size { name: "1.6 GB", items: 1_000_000_000, is_small: false },
];

/// The sizes to measure.
pub(crate) fn sizes() -> impl Iterator<Item = Size> {
    let most = if is_test() || is_large() { SIZES.len() } else { SIZES.len() - 1 };
    SIZES.into_iter().take(most).map(|size| if is_test() { Size { items: TEST_ITEMS, ..size } } else { size })
}

/// As criterion decides it: `cargo bench` passes `--bench`, `cargo test` does not.
pub(crate) fn is_test() -> bool {
    let passed = |wanted: &str| env::args().any(|argument| argument == wanted);
    passed("--test") || !passed("--bench")
}

pub(crate) fn is_large() -> bool {
    env::var_os("KOEL_BENCH_LARGE").is_some()
}
