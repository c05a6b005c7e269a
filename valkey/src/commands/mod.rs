//! The commands.

mod add;
mod chunks;
mod create;
mod info;
mod query;
mod unite;

use crate::{
    filter::Filter,
    refusal::Limit,
    reply::Failure,
    server::{Argument, Context, Found, Key, Module},
    settings,
    stored::Stored,
};

// Arguments that several commands take after the key.
const ITEM: Argument = Argument::string(c"item");
const ITEMS: Argument = ITEM.after(c"ITEMS").many();
const CAPACITY: Argument = Argument::integer(c"capacity").after(c"CAPACITY").optional();
const ERROR: Argument = Argument::double(c"rate").after(c"ERROR").optional();
const EXPANSION: Argument = Argument::integer(c"expansion").after(c"EXPANSION").optional();
const SEED: Argument = Argument::integer(c"seed").after(c"SEED").optional();
const NO_CREATE: Argument = Argument::token(c"nocreate", c"NOCREATE").optional();
const SOURCES: Argument = Argument::source(c"source").many();
const ITERATOR: Argument = Argument::integer(c"iterator");

/// Registers all commands.
pub(crate) fn register(module: Module<'_>) -> Module<'_> {
    let module = module
        .command::<create::Reserve>()
        .command::<add::Add>()
        .command::<add::AddUnique>()
        .command::<add::Insert>()
        .command::<add::InsertUnique>()
        .command::<query::Exists>()
        .command::<query::ExistAll>()
        .command::<query::Count>()
        .command::<query::Delete>()
        .command::<query::Compact>()
        .command::<unite::Unite>()
        .command::<info::Info>()
        .command::<info::Debug>()
        .command::<chunks::ScanDump>()
        .command::<chunks::LoadChunk>()
        .command::<chunks::Snapshot>();
    #[cfg(feature = "failpoint")]
    let module = module.command::<info::Panic>();
    module
}

/// Returns the limit of a command: the server's settings for a client's command. Replicated and reloaded commands have no limit,
/// since it was checked when they first ran.
fn limit(context: &Context) -> Limit {
    if context.must_obey() { Limit::None } else { Limit::Bytes(settings::max_bytes()) }
}

/// Returns the filter of a key for lookups, or `None` if there is none. A filter that is being loaded is an error, or absent if the
/// settings say so.
fn filter_for_lookup<'a>(key: &'a Key<'_, Stored>) -> Result<Option<&'a Filter>, Failure> {
    match key.get() {
        Found::Value(Stored::Filter(filter)) => Ok(Some(filter)),
        Found::Value(Stored::Load(load)) if !settings::is_absent_while_loading() => Err(load.incomplete()),
        _ => Ok(None),
    }
}

/// Returns the filter of a key to describe or dump it. A filter that is being loaded is an error.
fn filter_for_read<'a>(key: &'a Key<'_, Stored>) -> Result<Option<&'a Filter>, Failure> {
    match key.get() {
        Found::Value(Stored::Filter(filter)) => Ok(Some(filter)),
        Found::Value(Stored::Load(load)) => Err(load.incomplete()),
        Found::Nothing => Ok(None),
        Found::Other => Err(Failure::wrong_type()),
    }
}

/// Returns the filter of a key to change it. A filter that is being loaded is an error.
fn filter_for_write<'a>(key: &'a mut Key<'_, Stored>) -> Result<Option<&'a mut Filter>, Failure> {
    match key.get_mut() {
        Found::Value(Stored::Filter(filter)) => Ok(Some(filter)),
        Found::Value(Stored::Load(load)) => Err(load.incomplete()),
        Found::Nothing => Ok(None),
        Found::Other => Err(Failure::wrong_type()),
    }
}
