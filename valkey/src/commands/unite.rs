//! CF.UNION.

use super::{SOURCES, create::check_memory};
use crate::{
    filter::Filter,
    reply::{Failure, Outcome, Reply},
    server::{About, Access, Command, Context, Text},
    stored::Stored,
};

/// CF.UNION: makes a filter the union of itself, if it exists, and others.
pub(crate) struct Unite;

impl Command for Unite {
    const ABOUT: About = About {
        name: c"cf.union",
        flags: c"write deny-oom",
        categories: c"write cuckoo",
        arity: -3,
        summary: c"Unites cuckoo filters: each item gets the largest number of copies that one of them has",
        complexity: c"O(n), where n is the number of bytes of all filters",
        access: Access::Insert,
        arguments: &[SOURCES],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let (name, sources, limit) = (arguments[1], &arguments[2..], super::limit(context));
        let mut key = context.write(name);
        // Unites in a copy, which replaces the filter only if all sources can be united.
        let target = super::filter_for_write(&mut key)?;
        let items_before = target.as_ref().map(|filter| filter.items());
        let mut united = target.map(|filter| copy(filter)).transpose()?;
        for source in sources.iter().filter(|source| source.bytes() != name.bytes()) {
            let opened = context.read(*source);
            let filter = super::filter_for_read(&opened)?.ok_or_else(Failure::not_found)?;
            match &mut united {
                Some(united) => united.unite(filter, limit)?,
                none => {
                    filter.check_union(limit)?;
                    check_memory(context, filter.size_in_bytes() as u64, None)?;
                    *none = Some(copy(filter)?);
                }
            }
        }
        let united = united.ok_or_else(Failure::not_found)?;
        // A union only adds items: with an equal number of items, the filter is unchanged.
        if items_before != Some(united.items()) {
            key.set(Stored::Filter(united))?;
            context.replicate();
        }
        Ok(Reply::Done)
    }
}

fn copy(filter: &Filter) -> Result<Filter, Failure> {
    filter.copy().ok_or_else(Failure::out_of_memory)
}
