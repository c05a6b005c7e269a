//! What is said on standard error, and the words of errors that more than one subcommand has.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use koel::{Full, ParamError, Parameter};

use crate::{
    file::Filter,
    stdout::{self, Closed},
    streams::Stream,
};

/// The status of everything that went wrong. 1 is taken, as grep has it: nothing found.
const FAILED: u8 = 2;

/// Reports an error and gives its exit status.
pub(crate) fn failure(error: &anyhow::Error) -> ExitCode {
    if error.is::<Closed>() {
        // Whoever was reading has seen enough. That is no error, and there is nobody to tell.
        return ExitCode::SUCCESS;
    }
    say(format_args!("koel: {error:#}\n"));
    failed()
}

/// The exit status of whatever went wrong and has been told.
pub(crate) fn failed() -> ExitCode {
    ExitCode::from(FAILED)
}

/// Answers arguments that are no command: help and version on standard output, mistakes on standard error.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let printed = Stream::Stdout.check().and_then(|()| stdout::named(error.print()));
        return printed.map_or_else(|error| failure(&error), |()| ExitCode::SUCCESS);
    }
    let text = error.render().to_string();
    match text.strip_prefix("error: ") {
        Some(message) => say(format_args!("koel: {message}")),
        None => say(format_args!("{text}")),
    }
    failed()
}

/// Writes to standard error. If that fails, there is nowhere left to say so.
pub(crate) fn say(text: std::fmt::Arguments<'_>) {
    io::stderr().lock().write_fmt(text).ok();
}

/// A parameter that the library refuses, with the option that set it.
pub(crate) fn parameter(error: &ParamError) -> anyhow::Error {
    let option = match error.parameter() {
        Parameter::Capacity => "--capacity",
        Parameter::FalsePositiveRate => "--fpr",
        Parameter::FingerprintBits => "--bits",
        Parameter::BucketSize => "--bucket-size",
        _ => return anyhow::anyhow!("{error}"),
    };
    let message = error.to_string();
    // The option says which parameter it is.
    let rest = message.strip_prefix(&error.parameter().to_string()).unwrap_or(&message);
    anyhow::anyhow!("{option}{rest}")
}

/// An item that has no room: which, why, and what to do. `larger` begins the remedy for a filter that is too small.
pub(crate) fn full(place: &str, full: &Full, filter: &Filter, larger: &str) -> String {
    let capacity = filter.capacity();
    if full.is_duplicate() {
        return format!(
            "{place}: no room for one more copy of this item: its buckets hold nothing but copies of it; --unique stores an \
             item once"
        );
    }
    let (len, slots) = (full.items(), full.slots());
    // A filter that is full before its time was given some items again and again.
    let or_unique = if len < capacity { ", or --unique, which stores an item once if it comes often" } else { "" };
    format!(
        "{place}: the filter is full: {len} items in {slots} slots leave no room for this one; {larger} a --capacity above \
         {}{or_unique}",
        capacity.max(len)
    )
}
