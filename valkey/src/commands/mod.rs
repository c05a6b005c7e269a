//! The commands.

mod add;
mod chunks;
mod create;
mod info;
mod query;

use crate::{
    reply::Failure,
    server::{Context, Found, Key, Module, Text},
    settings,
    stored::Stored,
};

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

/// The most bytes that a command may make a filter take. What a primary has done is done here, too, whatever the limit is here.
fn limit(context: &Context) -> usize {
    if context.must_obey() { usize::MAX } else { settings::max_bytes() }
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
