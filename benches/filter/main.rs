//! The time of single operations, compared with the least that they can cost: two random reads of memory (`koel_floor`).
//!
//! ```text
//! cargo bench --bench filter                       tables of 100,000 to 100 M items: L2, 16 MB, 160 MB
//! cargo bench --bench filter -- 'find/L2'          benchmarks with this in their name
//! KOEL_BENCH_LARGE=1 cargo bench --bench filter    also 1.6 GB, which takes hours more, and about 4 GB of memory
//! python3 benches/summary.py 'find/L2'             runs them, and prints medians and their ratio to the floor as Markdown
//! ```
//!
//! With `-- --test` everything runs once at a small size, to test the assertions.
//!
//! A name states the table, the fingerprint length, the kernel, whether the operation is called for each key or for a batch of
//! 100,000, and which keys are looked up: `packed 13 avx512 batch absent`. Each table also has floors: `packed 13 floor`, and
//! `packed 13 dense floor` for batches that prefetch.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "the numbers are small")]

mod change;
mod find;
mod floor;
mod keys;
mod locality;
mod sizes;
mod snapshots;
mod tables;

use criterion::Criterion;
use std::time::Duration;

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(30)
        .nresamples(10_000)
        .configure_from_args();
    find::benches(&mut criterion);
    change::benches(&mut criterion);
    snapshots::benches(&mut criterion);
    locality::benches(&mut criterion);
    criterion.final_summary();
}
