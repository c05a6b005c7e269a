//! CF.RESERVE, and filters that are made by their first item.

use std::ffi::CStr;

use crate::{
    filter::Filter,
    plan::{Named, Others, Plan, capacity},
    reply::{Failure, Outcome, Reply},
    server::{Access, Command, Context, Key, Text},
    settings,
    stored::Stored,
};

/// Makes an empty filter.
pub(crate) struct Reserve;

impl Command for Reserve {
    const NAME: &'static CStr = c"CF.RESERVE";
    const FLAGS: &'static CStr = c"write deny-oom";
    const CATEGORIES: &'static CStr = c"write fast cuckoo";
    const ARITY: i32 = -3;
    const SUMMARY: &'static CStr =
        c"Makes an empty cuckoo filter for so many items: capacity [EXPANSION n] [ERROR rate] [SEED n]";
    const COMPLEXITY: &'static CStr = c"O(n), where n is the capacity: its memory is zeroed";
    const ACCESS: Access = Access::Insert;

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let (mut plan, mut others) = (settings::default_plan(), Others::default());
        let mut options = arguments[3..].chunks_exact(2);
        for option in &mut options {
            let named = Named::find(option[0].bytes()).filter(|named| !matches!(named, Named::Deleted));
            named.ok_or_else(unknown)?.take(option[1].bytes(), &mut plan, &mut others)?;
        }
        if !options.remainder().is_empty() {
            return Ok(Reply::WrongArity);
        }
        plan.capacity = capacity(arguments[2].bytes(), others.bucket_size)?;
        super::limit(context, &mut plan, others.max_bytes);
        let mut key = context.write(arguments[1]);
        if super::existing(&mut key)?.is_some() {
            return Err(Failure::exists());
        }
        create(context, &mut key, arguments[1], plan)?;
        Ok(Reply::Done)
    }
}

/// Makes the filter of a key that has none, here and on replicas, whatever the settings are there.
pub(super) fn create(context: &Context, key: &mut Key<'_, Stored>, name: Text<'_>, plan: Plan) -> Result<(), Failure> {
    let filter = Filter::new(plan)?;
    key.set(Stored::Filter(filter));
    let options = plan.arguments();
    let options = options.iter().map(String::as_bytes);
    context.replicate_as(Reserve::NAME, &std::iter::once(name.bytes()).chain(options).collect::<Vec<_>>());
    Ok(())
}

pub(super) fn unknown() -> Failure {
    Failure::new("Unknown argument received")
}
