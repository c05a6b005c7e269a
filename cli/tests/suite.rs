//! Most of the command's tests, in one program, as in ../../tests/suite.rs. tests/locks.rs is a program of its own: it looks at
//! locks, and a process that another test starts has all open files for a moment.

mod common;
#[path = "../../tests/common/heap.rs"]
mod heap;

mod build;
// Files of Go's library.
#[cfg(target_endian = "little")]
mod convert;
mod damaged;
mod experiment;
mod help;
mod items;
mod merge;
mod options;
mod query;
mod tune;

#[cfg(unix)]
mod demo;
#[cfg(unix)]
mod files;
#[cfg(unix)]
mod streams;

/// Counts for each thread what a filter takes.
#[global_allocator]
static ALLOCATOR: heap::Counting = heap::Counting;
