//! The experiments, each in a file of its own.

pub mod fpr;
pub mod load;
mod plain;
mod random;
pub mod space;
pub mod speed;
pub mod walk;

pub use {fpr::Fpr, load::Load, space::Space, speed::Speed, walk::Evictions};
