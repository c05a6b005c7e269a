//! Most tests are modules of this one program, because a program per file takes twice as long to compile and link.
//! docs/CONTRIBUTING.md says where a new file goes.

mod common;
#[cfg(feature = "serde")]
#[path = "common/formats.rs"]
mod formats;

mod batches;
mod elastic;
mod filters;
mod full_tables;
mod golden;
mod hashers;
mod hashes;
mod items;
mod iterators;
mod kinds;
mod memory_safety;
mod merge;
#[cfg(not(any(miri, target_family = "wasm")))]
mod modules;
mod prehashed;
mod snapshot_hashers;
mod std_hasher;
mod traits;
mod views;

#[cfg(feature = "std")]
mod copies;
#[cfg(feature = "std")]
mod equality;
#[cfg(feature = "std")]
mod operations;
#[cfg(feature = "std")]
mod snapshots;
#[cfg(all(feature = "std", not(target_family = "wasm")))]
mod threads;

#[cfg(feature = "serde")]
mod params_serde;
#[cfg(feature = "serde")]
mod serde;

// Go's files need their hasher, which exists only on little-endian targets.
#[cfg(all(feature = "metrohash", target_endian = "little"))]
mod fuzz_corpus;
#[cfg(all(feature = "metrohash", target_endian = "little"))]
mod go_hostile;

#[cfg(feature = "redisbloom")]
mod redisbloom;

// These tests use capacities and lengths of more than 32 bits.
#[cfg(target_pointer_width = "64")]
mod parameter_limits;
#[cfg(target_pointer_width = "64")]
mod parameters;
#[cfg(all(feature = "serde", target_pointer_width = "64"))]
mod serde_hostile;

// These tests write files. WebAssembly has no folder for temporary ones, and files are the same on other 32-bit targets.
#[cfg(all(feature = "metrohash", target_endian = "little", target_pointer_width = "64"))]
mod go;
#[cfg(all(feature = "std", target_pointer_width = "64"))]
mod save;

// Statistics and tables take long, and are the same on every target.
#[cfg(target_pointer_width = "64")]
mod capacity;
#[cfg(target_pointer_width = "64")]
mod false_positives;
#[cfg(all(feature = "std", target_pointer_width = "64"))]
mod tables;
#[cfg(all(feature = "std", target_pointer_width = "64"))]
mod tuning;
