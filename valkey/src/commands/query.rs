//! Commands that look up and remove items.

use super::ITEM;
use crate::{
    reply::{Failure, Outcome, Reply, reserved},
    server::{About, Access, Command, Context, Text},
};

/// CF.EXISTS: looks up an item.
pub(crate) struct Exists;

/// CF.MEXISTS: looks up items.
pub(crate) struct ExistAll;

/// CF.COUNT: counts the copies of an item.
pub(crate) struct Count;

/// CF.DEL: removes a copy of an item.
pub(crate) struct Delete;

/// CF.COMPACT: frees memory.
pub(crate) struct Compact;

impl Command for Exists {
    const ABOUT: About = About {
        name: c"cf.exists",
        flags: c"readonly fast",
        categories: c"read fast cuckoo",
        arity: 3,
        summary: c"Checks whether an item is probably in a cuckoo filter",
        complexity: c"O(1)",
        access: Access::Read,
        arguments: &[ITEM],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let key = context.read(arguments[1]);
        let filter = super::filter_for_lookup(&key)?;
        Ok(Reply::Bool(filter.is_some_and(|filter| filter.contains(arguments[2].bytes()))))
    }
}

impl Command for ExistAll {
    const ABOUT: About = About {
        name: c"cf.mexists",
        flags: c"readonly fast",
        categories: c"read fast cuckoo",
        arity: -3,
        summary: c"Checks which items are probably in a cuckoo filter",
        complexity: c"O(n), where n is the number of items",
        access: Access::Read,
        arguments: &[ITEM.many()],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let key = context.read(arguments[1]);
        let items = &arguments[2..];
        Ok(Reply::Bools(if let Some(filter) = super::filter_for_lookup(&key)? {
            filter.contains_all(items.iter().map(|item| item.bytes()))?
        } else {
            let mut found = reserved(items.len())?;
            found.resize(items.len(), false);
            found
        }))
    }
}

impl Command for Count {
    const ABOUT: About =
        About { name: c"cf.count", summary: c"Counts the copies of an item in a cuckoo filter", ..Exists::ABOUT };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let key = context.read(arguments[1]);
        let count = super::filter_for_lookup(&key)?.map_or(0, |filter| filter.count(arguments[2].bytes()));
        Ok(Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX)))
    }
}

impl Command for Delete {
    const ABOUT: About = About {
        name: c"cf.del",
        flags: c"write fast",
        categories: c"write fast cuckoo",
        arity: 3,
        summary: c"Removes one copy of an item from a cuckoo filter",
        complexity: c"O(1) on average",
        access: Access::Delete,
        arguments: &[ITEM],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let mut key = context.write(arguments[1]);
        let filter = super::filter_for_write(&mut key)?.ok_or_else(|| Failure::new("Not found"))?;
        let is_removed = filter.remove(arguments[2].bytes());
        if is_removed {
            context.replicate();
        }
        Ok(Reply::Bool(is_removed))
    }
}

impl Command for Compact {
    const ABOUT: About = About {
        name: c"cf.compact",
        flags: c"write",
        categories: c"write cuckoo",
        arity: 2,
        summary: c"Frees memory of a cuckoo filter after removals",
        complexity: c"O(n), where n is the number of items",
        access: Access::Update,
        arguments: &[],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let mut key = context.write(arguments[1]);
        let filter = super::filter_for_write(&mut key)?.ok_or_else(|| Failure::new("Cuckoo filter was not found"))?;
        if filter.compact() {
            context.replicate();
        }
        Ok(Reply::Done)
    }
}
