//! Commands that ask for items and remove them.

use std::ffi::CStr;

use crate::{
    reply::{Failure, Outcome, Reply},
    server::{Access, Command, Context, Found, Text},
    stored::Stored,
};

/// Asks for an item.
pub(crate) struct Exists;

/// Asks for items.
pub(crate) struct ExistAll;

/// Counts the copies of an item.
pub(crate) struct Count;

/// Removes a copy of an item.
pub(crate) struct Delete;

/// Gives back memory.
pub(crate) struct Compact;

impl Command for Exists {
    const NAME: &'static CStr = c"CF.EXISTS";
    const FLAGS: &'static CStr = c"readonly fast";
    const CATEGORIES: &'static CStr = c"read fast cuckoo";
    const ARITY: i32 = 3;
    const SUMMARY: &'static CStr = c"Says whether an item is probably in a cuckoo filter";
    const COMPLEXITY: &'static CStr = c"O(1)";
    const ACCESS: Access = Access::Read;

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let key = context.read(arguments[1]);
        Ok(Reply::Bool(match key.get() {
            Found::Value(Stored::Filter(filter)) => filter.contains(arguments[2].bytes()),
            _ => false,
        }))
    }
}

impl Command for ExistAll {
    const NAME: &'static CStr = c"CF.MEXISTS";
    const FLAGS: &'static CStr = c"readonly fast";
    const CATEGORIES: &'static CStr = c"read fast cuckoo";
    const ARITY: i32 = -3;
    const SUMMARY: &'static CStr = c"Says which items are probably in a cuckoo filter";
    const COMPLEXITY: &'static CStr = c"O(n), where n is the number of items";
    const ACCESS: Access = Access::Read;

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let key = context.read(arguments[1]);
        let items = &arguments[2..];
        Ok(Reply::Bools(match key.get() {
            Found::Value(Stored::Filter(filter)) => filter.contains_all(&super::bytes(items)),
            _ => vec![false; items.len()],
        }))
    }
}

impl Command for Count {
    const NAME: &'static CStr = c"CF.COUNT";
    const FLAGS: &'static CStr = c"readonly fast";
    const CATEGORIES: &'static CStr = c"read fast cuckoo";
    const ARITY: i32 = 3;
    const SUMMARY: &'static CStr = c"Counts the copies of an item in a cuckoo filter";
    const COMPLEXITY: &'static CStr = c"O(1)";
    const ACCESS: Access = Access::Read;

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let key = context.read(arguments[1]);
        Ok(Reply::Integer(match key.get() {
            Found::Value(Stored::Filter(filter)) => i64::try_from(filter.count(arguments[2].bytes())).unwrap_or(i64::MAX),
            _ => 0,
        }))
    }
}

impl Command for Delete {
    const NAME: &'static CStr = c"CF.DEL";
    const FLAGS: &'static CStr = c"write fast";
    const CATEGORIES: &'static CStr = c"write fast cuckoo";
    const ARITY: i32 = 3;
    const SUMMARY: &'static CStr = c"Removes one copy of an item from a cuckoo filter";
    const COMPLEXITY: &'static CStr = c"O(1) on average";
    const ACCESS: Access = Access::Delete;

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let mut key = context.write(arguments[1]);
        let filter = super::existing(&mut key)?.ok_or_else(|| Failure::new("Not found"))?;
        let is_removed = filter.remove(arguments[2].bytes());
        if is_removed {
            context.replicate();
        }
        Ok(Reply::Bool(is_removed))
    }
}

impl Command for Compact {
    const NAME: &'static CStr = c"CF.COMPACT";
    const FLAGS: &'static CStr = c"write";
    const CATEGORIES: &'static CStr = c"write cuckoo";
    const ARITY: i32 = 2;
    const SUMMARY: &'static CStr = c"Gives back memory of a cuckoo filter after removals";
    const COMPLEXITY: &'static CStr = c"O(n), where n is the number of items";
    const ACCESS: Access = Access::Update;

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let mut key = context.write(arguments[1]);
        let filter = super::existing(&mut key)?.ok_or_else(|| Failure::new("Cuckoo filter was not found"))?;
        filter.compact().map_err(|_| Failure::out_of_memory())?;
        context.replicate();
        Ok(Reply::Done)
    }
}
