//! The experiments, one file or folder each. They are those of `koel experiment`.

pub mod fpr;
pub mod load;
mod plain;
mod probe;
mod random;
pub mod space;
pub mod speed;
pub mod sweep;
mod times;
pub mod walk;

pub use {fpr::Fpr, load::Load, space::Space, speed::Speed, sweep::Sweep, walk::Evictions};

use self::sweep::Grid;
use crate::plan::{Typed, Untyped};

/// The experiment with this name, to draw its results. A sweep has no combinations to measure.
pub(crate) fn with_name(name: &str) -> Option<Box<dyn Untyped>> {
    let all: [Box<dyn Untyped>; 6] = [
        Box::new(Typed(Load)),
        Box::new(Typed(Space)),
        Box::new(Typed(Fpr)),
        Box::new(Typed(Evictions)),
        Box::new(Typed(Speed)),
        Box::new(Typed(Sweep::new(Grid::default(), &[]))),
    ];
    all.into_iter().find(|experiment| experiment.description().name == name)
}

/// The number of buckets of b slots for this many slots, rounded up to an even number.
fn buckets(slots: u64, b: u32) -> u64 {
    (slots / u64::from(b)).div_ceil(2) * 2
}

/// A round number with a unit: 100 k, 10 M.
fn count(number: u64) -> String {
    match number {
        1_000_000.. => format!("{} M", number / 1_000_000),
        1000.. => format!("{} k", number / 1000),
        _ => number.to_string(),
    }
}
