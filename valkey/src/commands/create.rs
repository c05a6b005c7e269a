//! CF.RESERVE, and the creation of filters by their first item.

use std::iter;

use super::{ERROR, EXPANSION, SEED};
use crate::{
    counts,
    filter::Filter,
    plan::{BUCKET_SIZES, NumberOption, Options, Plan, Word, capacity, check_capacity},
    refusal::Refusal,
    reply::{Failure, Outcome, Reply},
    server::{About, Access, Argument, Command, Context, Key, Text},
    settings,
    stored::Stored,
};

/// The fewest bytes of a filter for which the server's free memory is checked.
const MIN_CHECKED_BYTES: u64 = 1 << 20;

/// CF.RESERVE: creates an empty filter.
pub(crate) struct Reserve;

impl Command for Reserve {
    const ABOUT: About = About {
        name: c"cf.reserve",
        flags: c"write deny-oom",
        categories: c"write fast cuckoo",
        arity: -3,
        summary: c"Creates an empty cuckoo filter for a number of items",
        complexity: c"O(n), where n is the number of tables, each for some hundred items or more",
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
        let (number, words) = (arguments[2].bytes(), &arguments[3..]);
        if words.len() % 2 == 1 {
            return Ok(Reply::WrongArity);
        }
        let capacity = capacity(number)?;
        // RedisBloom, which may have written the file, ignores unknown options. ERROR and SEED are unknown to it.
        let ignores_unknown = context.must_obey();
        let options = parse_options(words, ignores_unknown, |option| !matches!(option, NumberOption::Deleted))?;
        // A replicated command has no BUCKETSIZE: it was checked when a client sent it.
        check_capacity(capacity, if context.must_obey() { *BUCKET_SIZES.start() } else { options.bucket_size })?;
        let plan = Plan { capacity, ..options.plan };
        let mut key = context.write(arguments[1]);
        if super::filter_for_write(&mut key)?.is_some() {
            return Err(Failure::exists());
        }
        create(context, &mut key, arguments[1], plan)?;
        Ok(Reply::Done)
    }
}

/// Parses pairs of an option and its value. Options for which `is_known` is false, and invalid values of those that RedisBloom does not
/// know, are an error, or ignored with `ignores_unknown`. If an option is repeated, the first one counts, as in RedisBloom.
pub(super) fn parse_options(
    arguments: &[Text<'_>],
    ignores_unknown: bool,
    is_known: impl Fn(&NumberOption) -> bool,
) -> Result<Options, Failure> {
    let mut options = Options::new(settings::default_plan());
    let (pairs, _) = arguments.as_chunks();
    for (at, [name, value]) in pairs.iter().enumerate() {
        let option = match NumberOption::find(name.bytes()).filter(&is_known) {
            Some(option) => option,
            None if ignores_unknown => continue,
            None => return Err(unknown_argument()),
        };
        if !pairs[..at].iter().any(|[earlier, _]| earlier.bytes().eq_ignore_ascii_case(name.bytes())) {
            match option.store(value.bytes(), &mut options) {
                Err(_) if ignores_unknown && matches!(option, NumberOption::Error | NumberOption::Seed) => {}
                stored => stored?,
            }
        }
    }
    Ok(options)
}

/// Creates the filter of an empty key, here and on replicas.
pub(super) fn create(context: &Context, key: &mut Key<'_, Stored>, name: Text<'_>, plan: Plan) -> Result<(), Failure> {
    create_here(context, key, plan)?;
    replicate_creation(context, name, plan);
    Ok(())
}

/// Creates the filter of an empty key, only here.
pub(super) fn create_here(context: &Context, key: &mut Key<'_, Stored>, plan: Plan) -> Result<(), Failure> {
    check_memory(context, plan.bytes().unwrap_or(0), Some(&plan))?;
    let filter = Filter::new(plan, super::limit(context))?;
    key.set(Stored::Filter(filter))
}

/// Creates the same filter on replicas, regardless of their settings.
pub(super) fn replicate_creation(context: &Context, name: Text<'_>, plan: Plan) {
    let arguments = plan.arguments();
    context.replicate_as(c"CF.RESERVE", &[name], arguments.each_ref().map(Word::as_ref), iter::empty());
}

/// Returns an error if a client's command needs a large filter of `bytes` that exceeds what `maxmemory` leaves. The server checks its
/// memory only before a command. The error names a capacity that fits if the client may choose it in the plan.
pub(super) fn check_memory(context: &Context, bytes: u64, plan: Option<&Plan>) -> Result<(), Failure> {
    if bytes < MIN_CHECKED_BYTES || context.must_obey() {
        return Ok(());
    }
    match context.memory_left() {
        Some(left) if bytes > left => {
            counts::count_refusals(Refusal::OutOfMemory, 1);
            let message =
                format_args!("ERR Insufficient memory to create filter: it takes {bytes} bytes, and maxmemory leaves {left}");
            Err(match plan {
                Some(plan) => Failure::new(format_args!("{message}; {}, or raise maxmemory", plan.remedy(left))),
                None => Failure::new(format_args!("{message}; raise maxmemory")),
            })
        }
        _ => Ok(()),
    }
}

pub(super) fn unknown_argument() -> Failure {
    Failure::new("Unknown argument received")
}
