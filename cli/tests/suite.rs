//! Most of the command's tests, in one program, as in ../../tests/suite.rs. tests/locks.rs is a program of its own: it looks at
//! locks, and a process that another test starts has all open files for a moment.

mod common;

mod compare;
mod damaged;
mod demo;
mod experiment;
mod full;
mod generated;
mod grow;
mod help;
mod items;
mod maps;
mod merge;
mod mistakes;
mod notations;
mod query;
mod redisbloom;
mod round_trip;
mod shard;
mod sweep;
mod tune;
mod tuning_document;
mod verify;

// Files of Go's library.
#[cfg(target_endian = "little")]
mod convert;

#[cfg(unix)]
mod files;
#[cfg(unix)]
mod pipes;
#[cfg(unix)]
mod streams;
