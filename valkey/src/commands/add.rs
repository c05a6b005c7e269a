//! Commands that add items.

use super::{
    CAPACITY, ERROR, ITEM, ITEMS, NO_CREATE,
    create::{create, unknown},
};
use crate::{
    filter::{Filter, Limit, Refusal},
    plan::{Named, Others, Plan, capacity},
    reply::{Answer, Failure, Outcome, Reply, reserved},
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
        summary: c"Adds an item to a cuckoo filter, creating it if it is missing",
        complexity: c"O(1) on average; splitting a table takes a fraction of a millisecond",
        access: Access::Insert,
        arguments: &[ITEM],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        add(context, arguments, |filter, item, limit| filter.insert(item, limit).map(|()| true))
    }
}

impl Command for AddUnique {
    const ABOUT: About = About {
        name: c"CF.ADDNX",
        flags: c"write deny-oom",
        categories: c"write cuckoo",
        arity: 3,
        summary: c"Adds an item to a cuckoo filter, creating it if it is missing, unless the item is there",
        complexity: c"O(1) on average; splitting a table takes a fraction of a millisecond",
        access: Access::Insert,
        arguments: &[ITEM],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        add(context, arguments, Filter::insert_unique)
    }
}

/// Adds one item by `insert`, which returns true if there is a new one.
fn add(
    context: &Context,
    arguments: &[Text<'_>],
    insert: impl Fn(&mut Filter, &[u8], Limit) -> Result<bool, Refusal>,
) -> Outcome {
    let (name, item, limit) = (arguments[1], arguments[2].bytes(), super::limit(context));
    let mut key = context.write(name);
    if key.is_empty() {
        create(context, &mut key, name, settings::default_plan())?;
    }
    let filter = super::existing(&mut key)?.ok_or_else(Failure::not_found)?;
    let is_new = insert(filter, item, limit).map_err(|refusal| filter.words(refusal, limit))?;
    if is_new {
        context.replicate();
    }
    Ok(Reply::Bool(is_new))
}

/// Hands on what an insertion has changed, if it has: the command as it came if every item was inserted, or else the insertion of
/// those that were. A replica then inserts the same items in the same order, and has the same filter: items that were refused have
/// changed nothing.
fn replicate(context: &Context, name: Text<'_>, items: &[Text<'_>], answers: &[Answer]) {
    let is_inserted = |answer: &Answer| *answer == Answer::Inserted;
    if answers.iter().all(is_inserted) {
        context.replicate();
    } else if answers.iter().any(is_inserted) {
        let inserted = items.iter().zip(answers).filter(|(_, answer)| is_inserted(answer)).map(|(item, _)| *item);
        context.replicate_as(Insert::ABOUT.name, &[name], [b"NOCREATE", b"ITEMS"], inserted);
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
        let answers = request.insert(context, arguments[1], |filter, items, limit, answers| {
            filter.insert_all(items.iter().map(|item| item.bytes()), limit, answers);
        })?;
        Ok(Reply::Acceptances(answers))
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
        let answers = request.insert(context, arguments[1], |filter, items, limit, answers| {
            filter.insert_all_unique(items.iter().map(|item| item.bytes()), limit, answers);
        })?;
        Ok(Reply::Answers(answers))
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
                let request = Self { plan, may_create, items: after };
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
                let named = Named::find(word).filter(|named| matches!(named, Named::Error)).ok_or_else(unknown)?;
                named.take(value.bytes(), &mut plan, &mut others)?;
            }
            rest = after;
        }
        Ok(None)
    }

    /// Inserts the items by `insert`, here and on replicas, and says what became of each.
    fn insert(
        &self,
        context: &Context,
        name: Text<'_>,
        insert: impl Fn(&mut Filter, &[Text<'_>], Limit, &mut Vec<Answer>),
    ) -> Result<Vec<Answer>, Failure> {
        // Before anything changes.
        let mut answers = reserved(self.items.len())?;
        let mut key = context.write(name);
        if key.is_empty() {
            if !self.may_create {
                return Err(Failure::not_found());
            }
            create(context, &mut key, name, self.plan)?;
        }
        let filter = super::existing(&mut key)?.ok_or_else(Failure::not_found)?;
        insert(filter, self.items, super::limit(context), &mut answers);
        replicate(context, name, self.items, &answers);
        Ok(answers)
    }
}

fn is_option(word: &[u8]) -> bool {
    [&b"CAPACITY"[..], b"ERROR"].iter().any(|option| word.eq_ignore_ascii_case(option))
}
