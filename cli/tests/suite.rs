//! Most of the command's tests, in one program like ../../tests/suite.rs. tests/locks.rs is a separate program because it inspects
//! locks: a process that another test starts holds copies of all open files for a moment.

mod common;

mod build;
// Go files can be read on little-endian machines only.
#[cfg(target_endian = "little")]
mod convert;
mod damaged;
mod experiment;
mod help;
mod items;
mod json;
mod merge;
mod messages;
mod options;
mod query;
mod tune;
mod uniq;

#[cfg(unix)]
mod demo;
#[cfg(unix)]
mod files;
#[cfg(unix)]
mod forget;
#[cfg(unix)]
mod streams;
#[cfg(unix)]
mod terminal;
