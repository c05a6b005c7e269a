//! CF.RESERVE, and filters that are made by their first item.

use std::iter;

use super::{ERROR, EXPANSION, SEED};
use crate::{
    counts,
    filter::{Filter, Limit, Refusal},
    plan::{Named, Others, Plan, Word, capacity},
    reply::{Failure, Outcome, Reply},
    server::{About, Access, Argument, Command, Context, Key, Text},
    settings,
    stored::Stored,
};

/// Smaller filters are made without a look at the server's memory.
const WEIGHED_FROM: u64 = 1 << 20;

/// Makes an empty filter.
pub(crate) struct Reserve;

impl Command for Reserve {
    const ABOUT: About = About {
        name: c"CF.RESERVE",
        flags: c"write deny-oom",
        categories: c"write fast cuckoo",
        arity: -3,
        summary: c"Creates an empty cuckoo filter for a number of items",
        complexity: c"O(n), where n is the number of tables: one for 15,000 items or more",
        access: Access::Insert,
        arguments: &[
            Argument::integer(c"capacity"),
            Argument::integer(c"bucketsize").after(c"BUCKETSIZE").optional(),
            Argument::integer(c"maxiterations").after(c"MAXITERATIONS").optional(),
            EXPANSION,
            ERROR,
            SEED,
        ],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let is_known = |named: &Named| !matches!(named, Named::Deleted);
        let Some((mut plan, others)) = options(&arguments[3..], is_known)? else { return Ok(Reply::WrongArity) };
        plan.capacity = capacity(arguments[2].bytes(), others.bucket_size)?;
        let mut key = context.write(arguments[1]);
        if super::existing(&mut key)?.is_some() {
            return Err(Failure::exists());
        }
        create(context, &mut key, arguments[1], plan)?;
        Ok(Reply::Done)
    }
}

/// The plan and the other numbers that options with a value each give, if they are known. `None` if the last one has no value.
pub(super) fn options(arguments: &[Text<'_>], is_known: impl Fn(&Named) -> bool) -> Result<Option<(Plan, Others)>, Failure> {
    let (mut plan, mut others) = (settings::default_plan(), Others::default());
    let (options, rest) = arguments.as_chunks();
    for [name, value] in options {
        let named = Named::find(name.bytes()).filter(&is_known).ok_or_else(unknown)?;
        named.take(value.bytes(), &mut plan, &mut others)?;
    }
    Ok(Some((plan, others)).filter(|_| rest.is_empty()))
}

/// Makes the filter of a key that has none, here and on replicas, whatever the settings are there.
pub(super) fn create(context: &Context, key: &mut Key<'_, Stored>, name: Text<'_>, plan: Plan) -> Result<(), Failure> {
    let limit = super::limit(context);
    if limit != Limit::None {
        weigh(context, &plan)?;
    }
    let filter = Filter::new(plan, limit)?;
    key.set(Stored::Filter(filter))?;
    let words = plan.arguments();
    context.replicate_as(Reserve::ABOUT.name, &[name], words.each_ref().map(Word::as_ref), iter::empty());
    Ok(())
}

/// Refuses a large filter that `maxmemory` has no room for. The server itself looks at its memory only before a command.
fn weigh(context: &Context, plan: &Plan) -> Result<(), Failure> {
    let bytes = plan.bytes().unwrap_or(0);
    if bytes < WEIGHED_FROM {
        return Ok(());
    }
    match context.memory_left() {
        Some(left) if bytes > left => {
            counts::refused(Refusal::OutOfMemory, 1);
            Err(Failure::new(format_args!(
                "ERR Insufficient memory to create filter: it takes {bytes} bytes, and maxmemory leaves {left}; {}, or raise maxmemory",
                plan.remedy(left)
            )))
        }
        _ => Ok(()),
    }
}

pub(super) fn unknown() -> Failure {
    Failure::new("Unknown argument received")
}
