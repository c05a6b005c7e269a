//! Commands that add items.

use std::ffi::CStr;

use super::create::{create, unknown};
use crate::{
    filter::{Filter, Refusal},
    plan::{Named, Others, Plan, capacity},
    reply::{Failure, Outcome, Reply},
    server::{Access, Command, Context, Key, Text},
    settings,
    stored::Stored,
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
        add(context, arguments, |filter, item, limit| filter.insert(item, limit).map(|()| true))
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
        add(context, arguments, Filter::insert_unique)
    }
}

/// Adds one item by `insert`, which returns true if there is a new one.
fn add(
    context: &Context,
    arguments: &[Text<'_>],
    insert: impl Fn(&mut Filter, &[u8], usize) -> Result<bool, Refusal>,
) -> Outcome {
    let (name, item) = (arguments[1], arguments[2].bytes());
    let mut key = context.write(name);
    if key.is_empty() {
        create(context, &mut key, name, settings::default_plan())?;
    }
    let Some(filter) = super::existing(&mut key)? else { return Err(Failure::not_found()) };
    let max_bytes = settings::max_bytes();
    let mut result = insert(filter, item, max_bytes);
    if result == Err(Refusal::Limit) && context.must_obey() {
        result = insert(filter, item, usize::MAX);
    }
    match result {
        Ok(is_new) => {
            if is_new {
                context.replicate();
            }
            Ok(Reply::Bool(is_new))
        }
        Err(refusal) => Err(filter.words(refusal, item, max_bytes)),
    }
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
        let mut key = context.write(arguments[1]);
        let filter = request.filter(context, &mut key, arguments[1])?;
        let items = super::bytes(request.items);
        let results = filter.insert_all(&items, super::limit(context));
        let inserted: Vec<bool> = results.iter().map(Result::is_ok).collect();
        replicate(context, arguments[1], &items, &inserted);
        Ok(if context.speaks_resp3() {
            Reply::Bools(inserted)
        } else {
            Reply::Integers(inserted.into_iter().map(|is_inserted| if is_inserted { 1 } else { -1 }).collect())
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
        let mut key = context.write(arguments[1]);
        let filter = request.filter(context, &mut key, arguments[1])?;
        let (items, limit) = (super::bytes(request.items), super::limit(context));
        let results: Vec<_> = items.iter().map(|item| filter.insert_unique(item, limit)).collect();
        let inserted: Vec<bool> = results.iter().map(|result| *result == Ok(true)).collect();
        replicate(context, arguments[1], &items, &inserted);
        Ok(Reply::Integers(results.into_iter().map(|result| result.map_or(-1, i64::from)).collect()))
    }
}

/// Hands on the items that were inserted, and no others: a replica may have another limit of memory, and looks for nothing.
fn replicate(context: &Context, name: Text<'_>, items: &[&[u8]], inserted: &[bool]) {
    if inserted.iter().all(|&is_inserted| is_inserted) {
        return context.replicate();
    }
    let inserted_items = items.iter().zip(inserted).filter(|(_, is_inserted)| **is_inserted).map(|(item, _)| *item);
    let arguments: Vec<&[u8]> = [name.bytes(), b"NOCREATE", b"ITEMS"].into_iter().chain(inserted_items).collect();
    if arguments.len() > 3 {
        context.replicate_as(Insert::NAME, &arguments);
    }
}

/// What CF.INSERT was asked for.
struct Request<'a> {
    plan: Plan,
    may_create: bool,
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
                return Ok(Some(Self { plan, may_create, items: after }).filter(|request| !request.items.is_empty()));
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
                let named = Named::find(word).filter(|named| matches!(named, Named::Error)).ok_or_else(unknown)?;
                named.take(value.bytes(), &mut plan, &mut others)?;
            }
            rest = after;
        }
        Ok(None)
    }

    /// The filter of the key, which is made if it is missing and may be made.
    fn filter<'k>(&self, context: &Context, key: &'k mut Key<'_, Stored>, name: Text<'_>) -> Result<&'k mut Filter, Failure> {
        if key.is_empty() {
            if !self.may_create {
                return Err(Failure::not_found());
            }
            create(context, key, name, self.plan)?;
        }
        super::existing(key)?.ok_or_else(Failure::not_found)
    }
}

fn is_option(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"CAPACITY") || word.eq_ignore_ascii_case(b"ERROR")
}
