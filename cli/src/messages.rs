//! Messages on standard error, and the errors that several subcommands share.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use koel::{BuildError, InsertError, InsertErrorKind, ParamError, Parameter, tuning::nearest};

use crate::{
    file::{Changing, Filter},
    stdout::{self, Closed},
    streams::Stream,
};

/// The exit status of every error. 1 means that nothing was found, as with grep.
const FAILED: u8 = 2;

/// Reports an error and gives its exit status.
pub(crate) fn failure(error: &anyhow::Error) -> ExitCode {
    if error.is::<Closed>() {
        // The reader of standard output has seen enough. That is not an error.
        return ExitCode::SUCCESS;
    }
    say(format_args!("koel: {error:#}\n"));
    failed()
}

/// The exit status after an error that has been reported.
pub(crate) fn failed() -> ExitCode {
    ExitCode::from(FAILED)
}

/// Handles arguments that run no command: prints help and the version on standard output, mistakes on standard error.
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

/// Writes to standard error. If that fails, there is nowhere left to report it.
pub(crate) fn say(text: std::fmt::Arguments<'_>) {
    io::stderr().lock().write_fmt(text).ok();
}

/// The library's error about a parameter, with what works instead.
pub(crate) fn with_nearest(error: &ParamError) -> String {
    nearest(error).map_or_else(|| error.to_string(), |nearest| format!("{error}; {nearest}"))
}

/// The same with the option that set the parameter.
pub(crate) fn parameter(error: &ParamError) -> anyhow::Error {
    let option = match error.parameter() {
        Parameter::Capacity => "--capacity",
        Parameter::FalsePositiveRate => "--fpr",
        Parameter::FingerprintBits => "--bits",
        Parameter::BucketSize => "--bucket-size",
        _ => return anyhow::anyhow!(with_nearest(error)),
    };
    let message = with_nearest(error);
    // The option names the parameter.
    let rest = message.strip_prefix(&error.parameter().to_string()).unwrap_or(&message);
    anyhow::anyhow!("{option}{rest}")
}

/// The library's error about a filter that could not be built.
pub(crate) fn not_built(error: BuildError) -> anyhow::Error {
    match error {
        BuildError::Param(error) => parameter(&error),
        BuildError::OutOfMemory(error) => {
            anyhow::anyhow!(
                "{} bytes of memory cannot be allocated for the filter; give a smaller --capacity, or use a machine with more memory",
                error.bytes()
            )
        }
        error => error.into(),
    }
}

/// Why a filter of either type refused an item, and what to do. `larger` is as in [`full`].
pub(crate) fn refusal(place: &str, error: &InsertError, filter: &Changing, larger: &str) -> String {
    match filter {
        Changing::Fixed(filter) => full(place, error, filter, larger),
        Changing::Growing(_) => grow(place, error),
    }
}

/// Why a filter that grows refused an item, and what to do.
pub(crate) fn grow(place: &str, error: &InsertError) -> String {
    match error.kind() {
        InsertErrorKind::Copies | InsertErrorKind::CopiesOfOthers => format!(
            "{place}: no room for another copy of this item: copies fill both of its buckets, and growing would not help; --unique \
             stores an item once"
        ),
        _ => format!("{place}: {error}"),
    }
}

/// Why there is no room for an item, and what to do. `larger` is the start of the remedy for a filter that is too small.
pub(crate) fn full(place: &str, full: &InsertError, filter: &Filter, larger: &str) -> String {
    let capacity = filter.capacity();
    if full.kind() == InsertErrorKind::Copies {
        return format!(
            "{place}: no room for another copy of this item: both of its buckets are full of copies; --unique stores an item \
             once"
        );
    }
    let (len, slots) = (filter.len(), filter.slots());
    // A filter that is full below its capacity holds many copies of some items.
    let or_unique = if len < capacity { ", or --unique, which stores repeated items once" } else { "" };
    format!(
        "{place}: the filter is full: {len} items in {slots} slots leave no room for this one; {larger} a --capacity above \
         {}, enough for all items{or_unique}",
        capacity.max(len)
    )
}
