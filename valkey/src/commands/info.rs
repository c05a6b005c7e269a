//! CF.INFO and CF.DEBUG.

use std::ffi::CStr;

use koel::{ElasticFilter, redisbloom::RedisBloomFilter};

use crate::{
    filter::Filter,
    reply::{Failure, Field, Message, Outcome, Reply, reserved},
    server::{About, Access, Command, Context, Text},
    stored::Stored,
};

/// The most full buckets that an insertion searches for room.
const MAX_ITERATIONS: i64 = 4096;

/// The most items in tables that CF.INFO counts, so that it takes about a millisecond at most. CF.DEBUG counts any number.
const MAX_COUNTED: usize = 1 << 14;

/// CF.INFO: describes a filter.
pub(crate) struct Info;

/// CF.DEBUG: describes a filter in one line, in the format that RedisBloom's tests parse.
pub(crate) struct Debug;

impl Command for Info {
    const ABOUT: About = About {
        name: c"cf.info",
        flags: c"readonly fast",
        categories: c"read fast cuckoo",
        arity: 2,
        summary: c"Describes a cuckoo filter",
        complexity: c"O(n), where n is the number of the filter's tables",
        access: Access::Read,
        arguments: &[],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let key = context.read::<Stored>(arguments[1]);
        let filter = super::filter_for_read(&key)?.ok_or_else(Failure::not_found)?;
        let fields = fields(filter, MAX_COUNTED);
        let mut list = reserved(fields.len())?;
        list.extend(fields);
        Ok(Reply::Fields(list))
    }
}

impl Command for Debug {
    const ABOUT: About = About {
        name: c"cf.debug",
        flags: c"readonly",
        categories: c"read cuckoo",
        arity: 2,
        summary: c"Describes a cuckoo filter in one line, as RedisBloom does, and counts its distinct items",
        complexity: c"O(n), where n is the number of items",
        access: Access::Read,
        arguments: &[],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let key = context.read::<Stored>(arguments[1]);
        let filter = super::filter_for_read(&key)?.ok_or_else(Failure::not_found)?;
        let [_, buckets, filters, items, deletes, bucket_size, expansion, iterations, .., distinct, per_lookup] =
            fields(filter, usize::MAX).map(|(_, value)| value);
        Ok(Reply::Line(Message::new(format_args!(
            "bktsize:{bucket_size} buckets:{buckets} items:{items} deletes:{deletes} filters:{filters} max_iterations:{iterations} \
             expansion:{expansion} distinct:{distinct} buckets_per_lookup:{per_lookup}"
        ))?))
    }
}

/// Returns RedisBloom's eight fields, which clients need, then koel's own. All depend only on the filter's content, so copies,
/// replicas and restarted servers report the same. The number of distinct items is −1 if more than `most_counted` are in tables.
fn fields(filter: &Filter, most_counted: usize) -> [(&'static CStr, Field); 17] {
    let (own, imported) = (filter.own.as_ref(), filter.imported.as_deref());
    let integer = |number: u64| Field::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let sum = |own_value: fn(&ElasticFilter) -> u64, imported_value: fn(&RedisBloomFilter) -> u64| {
        integer(own.map_or(0, own_value).saturating_add(imported.map_or(0, imported_value)))
    };
    let [bucket_size, expansion, iterations] = match (own, imported) {
        (None, Some(imported)) => [imported.bucket_size(), imported.expansion(), imported.max_iterations()].map(i64::from),
        _ => [own.map_or(0, |own| i64::from(own.params().bucket_size())), filter.plan.expansion, MAX_ITERATIONS],
    };
    let distinct = match own {
        Some(own) if own.table_len() > most_counted => Field::Integer(-1),
        _ => sum(|own| own.distinct() as u64, RedisBloomFilter::taken),
    };
    let rate = own.map_or(0.0, ElasticFilter::false_positive_rate) + imported.map_or(0.0, RedisBloomFilter::false_positive_rate);
    [
        (c"Size", integer(filter.charged_bytes())),
        (c"Number of buckets", sum(buckets, RedisBloomFilter::buckets)),
        (c"Number of filters", sum(|own| own.buckets_per_lookup() as u64 / 2, |imported| imported.sub_filters() as u64)),
        (c"Number of items inserted", integer(filter.items())),
        (c"Number of items deleted", integer(filter.deleted.saturating_add(imported.map_or(0, RedisBloomFilter::deleted)))),
        (c"Bucket size", Field::Integer(bucket_size)),
        (c"Expansion rate", Field::Integer(expansion)),
        (c"Max iterations", Field::Integer(iterations)),
        (c"Error rate", Field::Rate(filter.plan.error_rate)),
        (c"False positive rate", Field::Rate(rate.min(1.0))),
        (c"Capacity", Field::Integer(filter.plan().capacity)),
        (c"Maximum capacity", integer(own.map_or(0, |own| own.params().max_capacity() as u64))),
        (c"Shards", integer(own.map_or(0, |own| own.shards() as u64))),
        (c"Imported items", integer(imported.map_or(0, RedisBloomFilter::taken))),
        (c"Seed", Field::Integer(filter.plan.seed)),
        (c"Number of distinct items", distinct),
        (c"Buckets per lookup", sum(|own| own.buckets_per_lookup() as u64, |imported| 2 * imported.sub_filters() as u64)),
    ]
}

/// Returns the number of buckets: at least enough for the capacity, although a small filter has a list of its items instead until it
/// grows.
fn buckets(own: &ElasticFilter) -> u64 {
    let params = own.params();
    own.buckets().max((params.capacity() as u64).div_ceil(params.bucket_size().into()))
}

/// CF.PANIC: panics, to test that the server survives.
#[cfg(feature = "failpoint")]
pub(crate) struct Panic;

#[cfg(feature = "failpoint")]
impl Command for Panic {
    const ABOUT: About = About {
        name: c"cf.panic",
        flags: c"write",
        categories: c"write cuckoo",
        arity: 2,
        summary: c"Panics",
        complexity: c"O(1)",
        access: Access::Update,
        arguments: &[],
    };

    fn run(context: &Context, arguments: &[Text<'_>]) -> Outcome {
        let _key = context.write::<Stored>(arguments[1]);
        panic!("CF.PANIC was called");
    }
}
