//! The experiments, each in a file of its own.

mod fpr;
pub mod load;
mod plain;
mod random;
pub mod space;
pub mod speed;
pub mod walk;

pub use {load::Load, space::Space, speed::Speed, walk::Evictions};
