//! Filters that grow and shrink: every accepted item is found, counts are exact, and the false-positive rate never exceeds the
//! promised one.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "the numbers are small")]

#[cfg(feature = "std")]
mod callbacks;
#[cfg(feature = "std")]
pub(crate) mod composed;
mod duplicates;
#[cfg(all(feature = "std", target_pointer_width = "64"))]
mod edges;
#[cfg(feature = "std")]
mod extent;
mod forms;
#[cfg(feature = "std")]
mod golden;
mod growth;
mod limits;
mod merge;
mod partials;
#[cfg(feature = "std")]
mod pieces;
#[cfg(all(feature = "std", feature = "serde"))]
mod serde;
#[cfg(feature = "std")]
mod small_list;
#[cfg(feature = "std")]
mod snapshots;
#[cfg(feature = "std")]
mod views;
