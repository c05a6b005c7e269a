//! Commands that add items.

use super::{
    CAPACITY, ERROR, ITEM, ITEMS, NO_CREATE,
    create::{check_memory, create, create_here, replicate_creation, unknown_argument},
};
use crate::{
    filter::{Filter, Results},
    plan::{NumberOption, Options, Plan, USUAL_CAPACITIES, capacity, check_capacity},
    reply::{Failure, ItemResult, Outcome, Reply},
    server::{About, Access, Command, Context, Text},
    settings,
};

/// CF.ADD: adds an item, even if it is present.
pub(crate) struct Add;

/// CF.ADDNX: adds an item unless it is present.
pub(crate) struct AddUnique;

/// CF.INSERT: adds items, even if they are present.
pub(crate) struct Insert;

/// CF.INSERTNX: adds the items that are not present.
pub(crate) struct InsertUnique;

impl Command for Add {
    const ABOUT: About = About {
        name: c"cf.add",
        flags: c"write deny-oom",
        categories: c"write cuckoo",
        arity: 3,
        summary: c"Adds an item to a cuckoo filter, creating it if it is missing",
        complexity: c"O(1) on average; splitting a table takes a fraction of a millisecond",
        access: Access::Insert,
        arguments: &[ITEM],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        add(context, arguments, false)
    }
}

impl Command for AddUnique {
    const ABOUT: About = About {
        name: c"cf.addnx",
        summary: c"Adds an item to a cuckoo filter, creating it if it is missing, unless the item is there",
        ..Add::ABOUT
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        add(context, arguments, true)
    }
}

/// Adds one item, with `is_unique` only if it is not present.
fn add(context: &Context, arguments: &[Text<'_>], is_unique: bool) -> Outcome {
    let (name, item, limit) = (arguments[1], arguments[2].bytes(), super::limit(context));
    let mut key = context.write(name);
    let created = key.is_empty().then(settings::default_plan);
    if let Some(plan) = created {
        create_here(context, &mut key, plan)?;
    }
    let filter = super::filter_for_write(&mut key)?.ok_or_else(Failure::not_found)?;
    check_memory_for(context, filter, &arguments[2..], is_unique)?;
    let result = if is_unique { filter.insert_unique(item, limit) } else { filter.insert(item, limit).map(|()| true) };
    let is_new = match result.map_err(|refusal| filter.failure(refusal, limit)) {
        Ok(is_new) => is_new,
        Err(failure) => {
            // An error changes nothing.
            if created.is_some() {
                key.delete();
            }
            return Err(failure);
        }
    };
    if let Some(plan) = created {
        replicate_creation(context, name, plan);
    }
    if is_new {
        context.replicate();
    }
    Ok(Reply::Bool(is_new))
}

/// Returns an error if the items need a large filter beside the imported one, for which `maxmemory` leaves no room.
fn check_memory_for(context: &Context, filter: &Filter, items: &[Text<'_>], is_unique: bool) -> Result<(), Failure> {
    match filter.missing_bytes() {
        Some(bytes) if !is_unique || items.iter().any(|item| !filter.contains(item.bytes())) => {
            check_memory(context, bytes, None)
        }
        _ => Ok(()),
    }
}

/// Replicates an insertion if it changed the filter: the command itself if every item was inserted, otherwise an insertion of only
/// the inserted items. A replica inserts the same items in the same order, so its filter is the same: refused items change nothing.
fn replicate(context: &Context, name: Text<'_>, items: &[Text<'_>], results: &[ItemResult]) {
    let is_inserted = |result: &ItemResult| *result == ItemResult::Inserted;
    if results.iter().all(is_inserted) {
        context.replicate();
    } else if results.iter().any(is_inserted) {
        let inserted = items.iter().zip(results).filter(|(_, result)| is_inserted(result)).map(|(item, _)| *item);
        context.replicate_as(c"CF.INSERT", &[name], [b"NOCREATE", b"ITEMS"], inserted);
    }
}

impl Command for Insert {
    const ABOUT: About = About {
        name: c"cf.insert",
        flags: c"write deny-oom",
        categories: c"write cuckoo",
        arity: -4,
        summary: c"Adds items to a cuckoo filter",
        complexity: c"O(n) on average, where n is the number of items",
        access: Access::Insert,
        arguments: &[CAPACITY, ERROR, NO_CREATE, ITEMS],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let Some(request) = Request::parse(context, arguments)? else { return Ok(Reply::WrongArity) };
        let results = request.insert(context, arguments[1], false)?;
        Ok(Reply::ResultBools(results.list))
    }
}

impl Command for InsertUnique {
    const ABOUT: About =
        About { name: c"cf.insertnx", summary: c"Adds items to a cuckoo filter unless they are there", ..Insert::ABOUT };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let Some(request) = Request::parse(context, arguments)? else { return Ok(Reply::WrongArity) };
        let results = request.insert(context, arguments[1], true)?;
        Ok(Reply::Results(results.list))
    }
}

/// The parsed arguments of CF.INSERT or CF.INSERTNX.
struct Request<'a> {
    plan: Plan,
    may_create: bool,
    items: &'a [Text<'a>],
}

impl<'a> Request<'a> {
    /// Parses the arguments. Returns `None` if there are no items.
    fn parse(context: &Context, arguments: &'a [Text<'a>]) -> Result<Option<Self>, Failure> {
        let (mut options, mut may_create) = (Options::new(settings::default_plan()), true);
        let (mut rest, reads_first_letter) = (&arguments[2..], context.must_obey());
        while let [word, after @ ..] = rest {
            // RedisBloom, which may have written the file, takes any word for the option with its first letter.
            let is = |option: &[u8]| {
                let word = word.bytes();
                word.eq_ignore_ascii_case(option)
                    || reads_first_letter && word.first().is_some_and(|first| first.eq_ignore_ascii_case(&option[0]))
            };
            if is(b"ITEMS") {
                let request = Self { plan: options.plan, may_create, items: after };
                return Ok(Some(request).filter(|request| !request.items.is_empty()));
            }
            if is(b"NOCREATE") {
                (may_create, rest) = (false, after);
                continue;
            }
            let is_capacity = is(b"CAPACITY");
            if !is_capacity && !word.bytes().eq_ignore_ascii_case(b"ERROR") {
                return Err(unknown_argument());
            }
            let [value, after @ ..] = after else { return Ok(None) };
            if is_capacity {
                let mut number = capacity(value.bytes())?;
                if context.must_obey() {
                    // RedisBloom takes any number, and does not need it if there is a filter.
                    number = number.clamp(*USUAL_CAPACITIES.start(), *USUAL_CAPACITIES.end());
                }
                check_capacity(number, options.bucket_size)?;
                options.plan.capacity = number;
            } else {
                NumberOption::Error.store(value.bytes(), &mut options)?;
            }
            rest = after;
        }
        Ok(None)
    }

    /// Inserts the items, with `is_unique` only those that are not present, here and on replicas, and returns the result of each.
    fn insert(&self, context: &Context, name: Text<'_>, is_unique: bool) -> Result<Results, Failure> {
        // Allocates before anything changes.
        let mut results = Results::new(self.items.len())?;
        let mut key = context.write(name);
        if key.is_empty() {
            if !self.may_create {
                return Err(Failure::not_found());
            }
            create(context, &mut key, name, self.plan)?;
        }
        let filter = super::filter_for_write(&mut key)?.ok_or_else(Failure::not_found)?;
        check_memory_for(context, filter, self.items, is_unique)?;
        let (items, limit) = (self.items.iter().map(|item| item.bytes()), super::limit(context));
        if is_unique {
            filter.insert_all_unique(items, limit, &mut results);
        } else {
            filter.insert_all(items, limit, &mut results);
        }
        replicate(context, name, self.items, &results.list);
        // A client sees which items were refused. A primary or a file has acknowledged all of them, and only an error is noticed: the
        // server logs it, or ends.
        match results.refusal {
            Some(refusal) if context.must_obey() => Err(filter.failure(refusal, limit)),
            _ => Ok(results),
        }
    }
}
