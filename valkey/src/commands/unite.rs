//! CF.UNION.

use super::UNITED;
use crate::{
    filter::Filter,
    reply::{Failure, Outcome, Reply},
    server::{About, Access, Command, Context, Found, Text},
    stored::Stored,
};

/// Makes a filter the union of several.
pub(crate) struct Unite;

impl Command for Unite {
    const ABOUT: About = About {
        name: c"CF.UNION",
        flags: c"write deny-oom",
        categories: c"write cuckoo",
        arity: -3,
        summary: c"Unites cuckoo filters: each item gets the largest number of copies that one of them has",
        complexity: c"O(n), where n is the number of bytes of all filters",
        access: Access::Insert,
        arguments: &[UNITED],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let (name, sources, limit) = (arguments[1], &arguments[2..], super::limit(context));
        let mut key = context.write(name);
        // Of all sources or of none: united in a copy, which is the filter only when everything is there.
        let former = super::existing(&mut key)?;
        let former_items = former.as_ref().map(|filter| filter.items());
        let mut united = former.map(|filter| copied(filter)).transpose()?;
        for source in sources.iter().filter(|source| source.bytes() != name.bytes()) {
            let opened = context.read(*source);
            let filter = match opened.get() {
                Found::Value(Stored::Filter(filter)) => filter,
                Found::Value(Stored::Load(load)) => return Err(load.is_arriving()),
                Found::Nothing => return Err(Failure::not_found()),
                Found::Other => return Err(Failure::wrong_type()),
            };
            match &mut united {
                Some(united) => united.unite(filter, limit)?,
                none => {
                    filter.weigh(limit)?;
                    *none = Some(copied(filter)?);
                }
            }
        }
        let united = united.ok_or_else(Failure::not_found)?;
        // A union adds items. Without new ones, the filter stays as it is.
        if former_items != Some(united.items()) {
            key.set(Stored::Filter(united))?;
            context.replicate();
        }
        Ok(Reply::Done)
    }
}

fn copied(filter: &Filter) -> Result<Filter, Failure> {
    filter.copy().ok_or_else(Failure::out_of_memory)
}
