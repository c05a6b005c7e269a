//! The experiments, each in a file of its own.

pub mod load;
mod plain;
mod random;
pub mod speed;
pub mod walk;

pub use {load::Load, speed::Speed, walk::Evictions};
