//! Filters that several threads use at the same time. `just threads` runs these files as a separate program, under
//! `ThreadSanitizer`.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "the numbers are small")]

mod composed;
mod forms;
mod history;
mod limits;
mod stress;

use std::thread;

use koel::{ElasticBuilder, ElasticFilter, SharedFilter};

const THREADS: u64 = 4;

/// Returns a builder with a rate so low that tests expect no false positives, and with a plan large enough for all their items.
fn builder() -> ElasticBuilder {
    ElasticFilter::builder().false_positive_rate(1e-7).max_capacity(1_000_000)
}

fn shared() -> SharedFilter {
    builder().partitions(8).build_shared().expect("valid parameters")
}

/// Calls `act` on `THREADS` threads, with 0, 1, …, and returns the results in this order.
fn on_threads<R: Send>(act: impl Fn(u64) -> R + Sync) -> Vec<R> {
    let act = &act;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || act(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("the thread does not panic")).collect()
    })
}

/// Pseudo-random numbers from a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
