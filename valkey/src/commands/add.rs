//! Commands that add items.

use std::ffi::CStr;

use super::{
    CAPACITY, ERROR, ITEM, ITEMS, NO_CREATE,
    create::{create, unknown},
};
use crate::{
    filter::{Filter, Refusal},
    plan::{Named, Others, Plan, capacity},
    reply::{Failure, Outcome, Reply},
    server::{About, Access, Command, Context, Text},
    settings,
};

/// Adds an item, even if it is there.
pub(crate) struct Add;

/// Adds an item unless it is there.
pub(crate) struct AddUnique;

/// Adds items, even if they are there.
pub(crate) struct Insert;

/// Adds those items that are not there.
pub(crate) struct InsertUnique;

impl Command for Add {
    const ABOUT: About = About {
        name: c"CF.ADD",
        flags: c"write deny-oom",
        categories: c"write cuckoo",
        arity: 3,
        summary: c"Adds an item to a cuckoo filter, which is made if it is missing",
        complexity: c"O(1) on average; a table that is split takes a fraction of a millisecond",
        access: Access::Insert,
        arguments: &[ITEM],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        add(context, arguments, Insert::ABOUT.name, |filter, item| filter.insert(item).map(|()| true))
    }
}

impl Command for AddUnique {
    const ABOUT: About = About {
        name: c"CF.ADDNX",
        flags: c"write deny-oom",
        categories: c"write cuckoo",
        arity: 3,
        summary: c"Adds an item to a cuckoo filter, which is made if it is missing, unless the item is there",
        complexity: c"O(1) on average; a table that is split takes a fraction of a millisecond",
        access: Access::Insert,
        arguments: &[ITEM],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        add(context, arguments, InsertUnique::ABOUT.name, Filter::insert_unique)
    }
}

/// Adds one item by `insert`, which returns true if there is a new one. `many` is the command that does the same for many items.
fn add(
    context: &Context,
    arguments: &[Text<'_>],
    many: &CStr,
    insert: impl Fn(&mut Filter, &[u8]) -> Result<bool, Refusal>,
) -> Outcome {
    let (name, item) = (arguments[1], arguments[2].bytes());
    let mut key = context.write(name);
    if key.is_empty() {
        create(context, &mut key, name, settings::default_plan())?;
    }
    let filter = super::existing(&mut key)?.ok_or_else(Failure::not_found)?;
    let insertion = Insertion { context, name, command: many, old_limit: update_limit(context, filter) };
    let result = insert(filter, item);
    // A replica must not see an error.
    insertion.replicate(filter, &[item], &[result], result.is_ok());
    result.map(Reply::Bool).map_err(|refusal| filter.words(refusal, item))
}

/// Gives a filter the limit of memory of the settings, unless its primary decides. Returns the one that it had, if that was another.
fn update_limit(context: &Context, filter: &mut Filter) -> Option<i64> {
    let max_bytes = settings::max_bytes();
    if filter.plan.max_bytes == max_bytes || context.must_obey() {
        return None;
    }
    Some(std::mem::replace(&mut filter.plan.max_bytes, max_bytes))
}

/// What replicas must know of an insertion beside the items.
struct Insertion<'a> {
    context: &'a Context,
    name: Text<'a>,
    /// The command that inserts many items in the same way.
    command: &'a CStr,
    /// The filter's limit of memory before it got another one.
    old_limit: Option<i64>,
}

impl Insertion<'_> {
    /// Hands on what the insertion has changed, if it has: the command as it came if `is_verbatim` allows that.
    fn replicate(&self, filter: &mut Filter, items: &[&[u8]], results: &[Result<bool, Refusal>], is_verbatim: bool) {
        if results.contains(&Err(Refusal::OutOfMemory)) {
            // A replica may have more memory: it gets what was inserted here.
            let inserted = items.iter().zip(results).filter(|(_, result)| **result == Ok(true)).map(|(item, _)| *item);
            let inserted: Vec<_> = inserted.collect();
            if inserted.is_empty() {
                // Replicas keep the limit that they have.
                filter.plan.max_bytes = self.old_limit.unwrap_or(filter.plan.max_bytes);
            } else {
                self.replicate_items(Insert::ABOUT.name, filter, &inserted);
            }
            return;
        }
        let has_changed = results.contains(&Ok(true)) || results.iter().any(Result::is_err) && filter.has_grown();
        if self.old_limit.is_some() || has_changed && !is_verbatim {
            self.replicate_items(self.command, filter, items);
        } else if has_changed {
            self.context.replicate();
        }
    }

    /// Hands on the insertion of items, with the filter's limit of memory.
    fn replicate_items(&self, command: &CStr, filter: &Filter, items: &[&[u8]]) {
        let max_bytes = filter.plan.max_bytes.to_string();
        let options = [self.name.bytes(), b"NOCREATE", b"MAXBYTES", max_bytes.as_bytes(), b"ITEMS"];
        self.context.replicate_as(command, &options.into_iter().chain(items.iter().copied()).collect::<Vec<_>>());
    }
}

impl Command for Insert {
    const ABOUT: About = About {
        name: c"CF.INSERT",
        flags: c"write deny-oom",
        categories: c"write cuckoo",
        arity: -4,
        summary: c"Adds items to a cuckoo filter",
        complexity: c"O(n) on average, where n is the number of items",
        access: Access::Insert,
        arguments: &[CAPACITY, ERROR, NO_CREATE, ITEMS],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let Some(request) = Request::parse(arguments)? else { return Ok(Reply::WrongArity) };
        let results = request.insert(context, arguments[1], Self::ABOUT.name, |filter, items| {
            filter.insert_all(items).into_iter().map(|result| result.map(|()| true)).collect()
        })?;
        Ok(if context.speaks_resp3() {
            Reply::Bools(results.iter().map(Result::is_ok).collect())
        } else {
            Reply::Integers(results.iter().map(|result| if result.is_ok() { 1 } else { -1 }).collect())
        })
    }
}

impl Command for InsertUnique {
    const ABOUT: About = About {
        name: c"CF.INSERTNX",
        flags: c"write deny-oom",
        categories: c"write cuckoo",
        arity: -4,
        summary: c"Adds items to a cuckoo filter unless they are there",
        complexity: c"O(n) on average, where n is the number of items",
        access: Access::Insert,
        arguments: &[CAPACITY, ERROR, NO_CREATE, ITEMS],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let Some(request) = Request::parse(arguments)? else { return Ok(Reply::WrongArity) };
        let results = request.insert(context, arguments[1], Self::ABOUT.name, |filter, items| {
            items.iter().map(|item| filter.insert_unique(item)).collect()
        })?;
        Ok(Reply::Integers(results.into_iter().map(|result| result.map_or(-1, i64::from)).collect()))
    }
}

/// What CF.INSERT was asked for.
struct Request<'a> {
    plan: Plan,
    may_create: bool,
    max_bytes: Option<i64>,
    items: &'a [Text<'a>],
}

impl<'a> Request<'a> {
    /// `None` if there are no items.
    fn parse(arguments: &'a [Text<'a>]) -> Result<Option<Self>, Failure> {
        let (mut plan, mut others, mut may_create) = (settings::default_plan(), Others::default(), true);
        let mut rest = &arguments[2..];
        while let [word, after @ ..] = rest {
            let word = word.bytes();
            if word.eq_ignore_ascii_case(b"ITEMS") {
                let request = Self { plan, may_create, max_bytes: others.max_bytes, items: after };
                return Ok(Some(request).filter(|request| !request.items.is_empty()));
            }
            if word.eq_ignore_ascii_case(b"NOCREATE") {
                (may_create, rest) = (false, after);
                continue;
            }
            let [value, after @ ..] = after else {
                return if is_option(word) { Ok(None) } else { Err(unknown()) };
            };
            if word.eq_ignore_ascii_case(b"CAPACITY") {
                plan.capacity = capacity(value.bytes(), others.bucket_size)?;
            } else {
                let named =
                    Named::find(word).filter(|named| matches!(named, Named::Error | Named::MaxBytes)).ok_or_else(unknown)?;
                named.take(value.bytes(), &mut plan, &mut others)?;
            }
            rest = after;
        }
        Ok(None)
    }

    /// Inserts the items by `insert`, here and on replicas. Says of each whether it is new, or why it was refused.
    fn insert(
        &self,
        context: &Context,
        name: Text<'_>,
        command: &CStr,
        insert: impl Fn(&mut Filter, &[&[u8]]) -> Vec<Result<bool, Refusal>>,
    ) -> Result<Vec<Result<bool, Refusal>>, Failure> {
        let mut key = context.write(name);
        if key.is_empty() {
            if !self.may_create {
                return Err(Failure::not_found());
            }
            create(context, &mut key, name, self.plan)?;
        }
        let filter = super::existing(&mut key)?.ok_or_else(Failure::not_found)?;
        super::limit(context, &mut filter.plan, self.max_bytes);
        let insertion = Insertion { context, name, command, old_limit: update_limit(context, filter) };
        let items = super::bytes(self.items);
        let results = insert(filter, &items);
        insertion.replicate(filter, &items, &results, true);
        Ok(results)
    }
}

fn is_option(word: &[u8]) -> bool {
    [&b"CAPACITY"[..], b"ERROR", b"MAXBYTES"].iter().any(|option| word.eq_ignore_ascii_case(option))
}
