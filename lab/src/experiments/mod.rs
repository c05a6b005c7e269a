//! The experiments, each in a file of its own.

pub mod fpr;
pub mod load;
mod plain;
mod probe;
mod random;
pub mod space;
pub mod speed;
pub mod walk;

pub use {fpr::Fpr, load::Load, space::Space, speed::Speed, walk::Evictions};

/// So many slots in buckets of b, or as few more as make the number of buckets even.
fn buckets(slots: u64, b: u32) -> u64 {
    (slots / u64::from(b)).div_ceil(2) * 2
}

/// A round number as people write it.
fn count(number: u64) -> String {
    match number {
        1_000_000.. => format!("{} M", number / 1_000_000),
        1000.. => format!("{} k", number / 1000),
        _ => number.to_string(),
    }
}
