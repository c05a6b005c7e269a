//! Commands that add items.

use std::ffi::CStr;

use super::create::{create, unknown};
use crate::{
    filter::{Filter, Refusal},
    plan::{Named, Others, Plan, capacity},
    reply::{Failure, Outcome, Reply},
    server::{Access, Command, Context, Text},
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
    const NAME: &'static CStr = c"CF.ADD";
    const FLAGS: &'static CStr = c"write deny-oom";
    const CATEGORIES: &'static CStr = c"write cuckoo";
    const ARITY: i32 = 3;
    const SUMMARY: &'static CStr = c"Adds an item to a cuckoo filter, which is made if it is missing";
    const COMPLEXITY: &'static CStr = c"O(1) on average; a table that is split takes a fraction of a millisecond";
    const ACCESS: Access = Access::Insert;

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        add(context, arguments, Insert::NAME, |filter, item| filter.insert(item).map(|()| true))
    }
}

impl Command for AddUnique {
    const NAME: &'static CStr = c"CF.ADDNX";
    const FLAGS: &'static CStr = c"write deny-oom";
    const CATEGORIES: &'static CStr = c"write cuckoo";
    const ARITY: i32 = 3;
    const SUMMARY: &'static CStr = c"Adds an item to a cuckoo filter, which is made if it is missing, unless the item is there";
    const COMPLEXITY: &'static CStr = c"O(1) on average; a table that is split takes a fraction of a millisecond";
    const ACCESS: Access = Access::Insert;

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        add(context, arguments, InsertUnique::NAME, Filter::insert_unique)
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
    let Some(filter) = super::existing(&mut key)? else { return Err(Failure::not_found()) };
    let is_limit_new = update_limit(context, filter);
    let result = insert(filter, item);
    if is_limit_new {
        replicate_items(context, many, name, filter, &[item]);
    } else {
        match result {
            Ok(true) => context.replicate(),
            // In the form that gives a replica no error.
            Err(refusal) if refusal != Refusal::OutOfMemory && filter.has_grown() => {
                replicate_items(context, many, name, filter, &[item]);
            }
            _ => {}
        }
    }
    result.map(Reply::Bool).map_err(|refusal| filter.words(refusal, item))
}

/// Gives a filter the limit of memory of the settings, unless its primary decides. Returns true if that is another one.
fn update_limit(context: &Context, filter: &mut Filter) -> bool {
    let max_bytes = settings::max_bytes();
    if filter.plan.max_bytes == max_bytes || context.must_obey() {
        return false;
    }
    filter.plan.max_bytes = max_bytes;
    true
}

/// Hands on the insertion of items, with the filter's limit of memory.
fn replicate_items(context: &Context, command: &CStr, name: Text<'_>, filter: &Filter, items: &[&[u8]]) {
    let max_bytes = filter.plan.max_bytes.to_string();
    let options = [name.bytes(), b"NOCREATE", b"MAXBYTES", max_bytes.as_bytes(), b"ITEMS"];
    context.replicate_as(command, &options.into_iter().chain(items.iter().copied()).collect::<Vec<_>>());
}

impl Command for Insert {
    const NAME: &'static CStr = c"CF.INSERT";
    const FLAGS: &'static CStr = c"write deny-oom";
    const CATEGORIES: &'static CStr = c"write cuckoo";
    const ARITY: i32 = -4;
    const SUMMARY: &'static CStr = c"Adds items to a cuckoo filter: [CAPACITY n] [ERROR rate] [NOCREATE] ITEMS item [item ...]";
    const COMPLEXITY: &'static CStr = c"O(n) on average, where n is the number of items";
    const ACCESS: Access = Access::Insert;

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let Some(request) = Request::parse(arguments)? else { return Ok(Reply::WrongArity) };
        let results = request.insert(context, arguments[1], Self::NAME, |filter, items| {
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
    const NAME: &'static CStr = c"CF.INSERTNX";
    const FLAGS: &'static CStr = c"write deny-oom";
    const CATEGORIES: &'static CStr = c"write cuckoo";
    const ARITY: i32 = -4;
    const SUMMARY: &'static CStr =
        c"Adds items to a cuckoo filter unless they are there: [CAPACITY n] [ERROR rate] [NOCREATE] ITEMS item [item ...]";
    const COMPLEXITY: &'static CStr = c"O(n) on average, where n is the number of items";
    const ACCESS: Access = Access::Insert;

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let Some(request) = Request::parse(arguments)? else { return Ok(Reply::WrongArity) };
        let results = request.insert(context, arguments[1], Self::NAME, |filter, items| {
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
        let is_limit_new = update_limit(context, filter);
        let items = super::bytes(self.items);
        let results = insert(filter, &items);
        if results.contains(&Err(Refusal::OutOfMemory)) {
            // A replica may have more memory: it gets what was inserted here.
            let inserted = items.iter().zip(&results).filter(|(_, result)| **result == Ok(true)).map(|(item, _)| *item);
            replicate_items(context, Insert::NAME, name, filter, &inserted.collect::<Vec<_>>());
        } else if is_limit_new {
            replicate_items(context, command, name, filter, &items);
        } else if results.contains(&Ok(true)) || results.iter().any(Result::is_err) && filter.has_grown() {
            context.replicate();
        }
        Ok(results)
    }
}

fn is_option(word: &[u8]) -> bool {
    [&b"CAPACITY"[..], b"ERROR", b"MAXBYTES"].iter().any(|option| word.eq_ignore_ascii_case(option))
}
