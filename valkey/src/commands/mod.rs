//! The commands.

mod add;
mod chunks;
mod create;
mod info;
mod query;

use crate::{
    plan::Plan,
    reply::Failure,
    server::{Argument, Context, Found, Key, Module, Text},
    stored::Stored,
};

// What several commands take behind their key.
const ITEM: Argument = Argument::string(c"item");
const ITEMS: Argument = ITEM.after(c"ITEMS").many();
const CAPACITY: Argument = Argument::integer(c"capacity").after(c"CAPACITY").optional();
const ERROR: Argument = Argument::double(c"rate").after(c"ERROR").optional();
const EXPANSION: Argument = Argument::integer(c"expansion").after(c"EXPANSION").optional();
const SEED: Argument = Argument::integer(c"seed").after(c"SEED").optional();
const NO_CREATE: Argument = Argument::token(c"nocreate", c"NOCREATE").optional();
const ITERATOR: Argument = Argument::integer(c"iterator");

/// Registers all commands.
pub(crate) fn register(module: Module) -> Module {
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
        .command::<info::Info>()
        .command::<chunks::ScanDump>()
        .command::<chunks::LoadChunk>()
        .command::<chunks::Snapshot>();
    #[cfg(feature = "failpoint")]
    let module = module.command::<info::Panic>();
    module
}

/// Gives a plan the limit of memory that holds: for what a primary has done, the one that it had.
fn limit(context: &Context, plan: &mut Plan, given: Option<i64>) {
    if let Some(given) = given.filter(|_| context.must_obey()) {
        plan.max_bytes = given;
    }
}

/// The filter of a key that is read; `None` if there is none, or none that is visible.
fn visible<'a>(key: &'a Key<'_, Stored>) -> Result<Option<&'a crate::filter::Filter>, Failure> {
    match key.get() {
        Found::Value(Stored::Filter(filter)) => Ok(Some(filter)),
        Found::Value(Stored::Load(_)) | Found::Nothing => Ok(None),
        Found::Other => Err(Failure::wrong_type()),
    }
}

/// The filter of a key that is changed.
fn existing<'a>(key: &'a mut Key<'_, Stored>) -> Result<Option<&'a mut crate::filter::Filter>, Failure> {
    match key.get_mut() {
        Found::Value(Stored::Filter(filter)) => Ok(Some(filter)),
        Found::Value(Stored::Load(_)) => Err(Failure::arriving()),
        Found::Nothing => Ok(None),
        Found::Other => Err(Failure::wrong_type()),
    }
}

/// The bytes of each text.
fn bytes<'a>(texts: &[Text<'a>]) -> Vec<&'a [u8]> {
    texts.iter().map(|text| text.bytes()).collect()
}
