//! The filter of a key: one of koel's, one that was imported from RedisBloom, or both: an imported one has too few bits of each
//! item to grow, so new items go into a second one beside it.

use std::{
    cell::{Cell, RefCell},
    ffi::CStr,
    iter,
};

use koel::{ElasticFilter, InsertError, InsertErrorKind, Xxh3, redisbloom::RedisBloomFilter};

use crate::{
    counts::{self, OfFilter},
    dump::{Dump, imported_checksum},
    plan::Plan,
    reply::{Answer, Failure, reserved},
    server::allocations,
    server::boxed,
};

/// The capacity of the filter for new items beside an imported one, if that has fewer.
const LEAST_BESIDE: i64 = 1024;

/// What a sub-filter of an imported filter takes beside its slots, at most.
const SUB_FILTER_BYTES: u64 = 96;

/// Items that are handled together.
const BATCH: usize = 512;

/// See the module.
pub(crate) struct Filter {
    /// The capacity has no meaning as long as there are imported items only.
    pub(crate) plan: Plan,
    /// `None` as long as there are imported items only.
    pub(crate) own: Option<ElasticFilter>,
    pub(crate) imported: Option<Box<RedisBloomFilter>>,
    /// Items removed from the own filter since it was made or compacted.
    pub(crate) deleted: u64,
    /// The number of distinct items in the own filter, from when it was first needed: only where the filter must not expand.
    different: Option<u64>,
    /// What dumps have computed, until the next change.
    pub(crate) dump: RefCell<Option<Box<Dump>>>,
    /// Is the filter as it was when a dump of RedisBloom's chunks began? Their iterators have no room to say of what content they are.
    pub(crate) is_as_dumped: Cell<bool>,
    counted: OfFilter,
}

/// What bounds an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// For clients: the most bytes of a filter; and the capacity of one that does not expand, in different items.
    Bytes(usize),
    /// For what a primary or an append-only file says was done: nothing. The server that executed the client's command has
    /// decided.
    None,
}

impl Limit {
    /// The most bytes of a filter.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::None => usize::MAX,
        }
    }
}

/// Why an item was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The filter must not have more different items than its capacity.
    Capacity,
    /// The filter may not take more bytes.
    Limit,
    /// The filter can grow no further.
    Growth,
    OutOfMemory,
    /// It has as many copies as can be counted. INFO counts it with those for which the filter cannot grow.
    Copies,
}

impl Refusal {
    /// The reasons that INFO counts, by their names there.
    pub(crate) const COUNTED: [(&CStr, Self); 4] = [
        (c"refused_capacity", Self::Capacity),
        (c"refused_max_bytes", Self::Limit),
        (c"refused_growth", Self::Growth),
        (c"refused_out_of_memory", Self::OutOfMemory),
    ];

    /// The place of its count in that list.
    pub(crate) fn counter(self) -> usize {
        match self {
            Self::Capacity => 0,
            Self::Limit => 1,
            Self::Growth | Self::Copies => 2,
            Self::OutOfMemory => 3,
        }
    }
}

impl Filter {
    /// An empty filter.
    pub(crate) fn new(plan: Plan, limit: Limit) -> Result<Self, Failure> {
        let failed =
            |reason: &dyn std::fmt::Display| Failure::new(format_args!("ERR Insufficient memory to create filter: {reason}"));
        let params = plan.builder().params().map_err(|error| failed(&error))?;
        let (bytes, most) = (params.size_in_bytes(), limit.bytes());
        if bytes > most {
            counts::refused(Refusal::Limit, 1);
            return Err(failed(&format_args!(
                "it takes {bytes} bytes, and koel.max-bytes is {most}; {}, or raise koel.max-bytes with CONFIG SET",
                plan.remedy(most as u64)
            )));
        }
        let own = ElasticFilter::new(params, Xxh3).map_err(|error| {
            counts::refused(Refusal::OutOfMemory, 1);
            failed(&error)
        })?;
        Ok(Self::with(plan, Some(own), None, 0))
    }

    /// A filter of these parts.
    pub(crate) fn with(plan: Plan, own: Option<ElasticFilter>, imported: Option<Box<RedisBloomFilter>>, deleted: u64) -> Self {
        let items = own.as_ref().map_or(0, ElasticFilter::len) as u64;
        // Of an imported filter, what is there, not what its header says, which nothing vouches for.
        let taken = imported.as_ref().map_or(0, |imported| imported.taken());
        let counted = OfFilter::new(items + taken, imported.is_some());
        Self { plan, own, imported, deleted, different: None, dump: RefCell::new(None), is_as_dumped: Cell::new(false), counted }
    }

    /// The plan, and as long as there are imported items only, that of the filter that new items would go into. It follows from
    /// the content, so that it is the same for every copy, whenever and from whatever that was read.
    pub(crate) fn plan(&self) -> Plan {
        match &self.imported {
            Some(imported) if self.own.is_none() => {
                let items = i64::try_from(imported.len()).unwrap_or(i64::MAX);
                Plan { capacity: items.clamp(LEAST_BESIDE, 1 << 30), ..self.plan }
            }
            _ => self.plan,
        }
    }

    /// The number of items.
    pub(crate) fn items(&self) -> u64 {
        self.counted.items()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.own.as_ref().is_none_or(ElasticFilter::is_empty) && self.imported.as_ref().is_none_or(|imported| imported.is_empty())
    }

    /// To be called with every change, with the numbers of items that came and went.
    fn change(&mut self, inserted: u64, removed: u64) {
        *self.dump.get_mut() = None;
        self.is_as_dumped.set(false);
        self.counted.change(inserted, removed);
    }

    /// The own filter, to insert items, and how many it may take, whatever they are. Beyond them, it depends on whether an item is a
    /// copy.
    fn growing(&mut self, limit: Limit) -> Result<(&mut ElasticFilter, u64), Refusal> {
        let plan = self.plan();
        let own = match &mut self.own {
            Some(own) => own,
            none => {
                let params = plan.builder().params().map_err(|_| Refusal::Growth)?;
                if params.size_in_bytes() > limit.bytes() {
                    return Err(Refusal::Limit);
                }
                let own = ElasticFilter::new(params, Xxh3).map_err(|_| Refusal::OutOfMemory)?;
                self.plan = plan;
                none.insert(own)
            }
        };
        own.set_max_bytes(limit.bytes());
        let room = match limit {
            Limit::Bytes(_) if plan.expansion > 0 => u64::MAX,
            // All items may be different ones, which are not counted yet.
            Limit::Bytes(_) if self.different.is_none() => plan.capacity.unsigned_abs().saturating_sub(own.len() as u64),
            Limit::Bytes(_) => 0,
            Limit::None => {
                self.different = None;
                u64::MAX
            }
        };
        Ok((own, room))
    }

    /// The number of distinct items in the own filter. It follows from the content, so that all copies of a filter accept the same.
    fn different(&mut self) -> u64 {
        match &self.own {
            None => 0,
            // Its capacity is exceeded, or items were chosen to crowd a table.
            Some(own) if has_later_generations(own) => u64::MAX,
            Some(own) => *self.different.get_or_insert_with(|| own.distinct() as u64),
        }
    }

    /// Notes that a different item came, or went, where these are counted.
    fn note_different(&mut self, has_come: bool, has_gone: bool) {
        let is_counted = self.own.as_ref().is_some_and(|own| !has_later_generations(own));
        self.different =
            self.different.filter(|_| is_counted).map(|items| (items + u64::from(has_come)).saturating_sub(has_gone.into()));
    }

    /// Inserts by `insert`, which says how many items it inserted. If it inserts none, nothing has changed.
    fn inserting(&mut self, insert: impl FnOnce(&mut Self) -> usize) {
        let has_none = self.own.is_none();
        match insert(self) {
            0 if has_none => (self.own, self.different) = (None, None),
            0 => {}
            inserted => self.change(inserted as u64, 0),
        }
    }

    /// Inserts an item, even if it is there.
    pub(crate) fn insert(&mut self, item: &[u8], limit: Limit) -> Result<(), Refusal> {
        let mut result = Ok(());
        self.inserting(|filter| {
            result = filter.insert_one(item, limit);
            result.is_ok().into()
        });
        result
    }

    /// The same, without noting the change.
    fn insert_one(&mut self, item: &[u8], limit: Limit) -> Result<(), Refusal> {
        self.weigh_and_insert(item, limit).inspect_err(|&refusal| counts::refused(refusal, 1))
    }

    fn weigh_and_insert(&mut self, item: &[u8], limit: Limit) -> Result<(), Refusal> {
        let (own, room) = self.growing(limit)?;
        // A copy takes none of the capacity.
        let is_another = room == 0 && own.count(item) == 0;
        if is_another && self.different() >= self.plan.capacity.unsigned_abs() {
            return Err(Refusal::Capacity);
        }
        let (own, _) = self.growing(limit)?;
        counting_growth(|| own.insert(item)).map_err(|error| refusal(error.kind()))?;
        self.note_different(is_another, false);
        Ok(())
    }

    /// Inserts an item unless it is there. Returns true if it was inserted.
    pub(crate) fn insert_unique(&mut self, item: &[u8], limit: Limit) -> Result<bool, Refusal> {
        if self.contains(item) {
            return Ok(false);
        }
        self.insert(item, limit).map(|()| true)
    }

    /// Inserts items, and adds an answer for each to the list, which must have room for them.
    pub(crate) fn insert_all<'a>(&mut self, items: impl Iterator<Item = &'a [u8]>, limit: Limit, answers: &mut Vec<Answer>) {
        self.inserting(|filter| {
            each_batch(items, |batch| filter.insert_batch(batch, limit, answers));
            inserted(answers)
        });
    }

    fn insert_batch(&mut self, items: &[&[u8]], limit: Limit, answers: &mut Vec<Answer>) {
        let mut left = items;
        while !left.is_empty() {
            let (own, room) = match self.growing(limit) {
                Ok(growing) => growing,
                Err(refusal) => {
                    counts::refused(refusal, left.len());
                    return answers.extend(iter::repeat_n(Answer::Refused, left.len()));
                }
            };
            if room == 0 {
                answers.push(if self.insert_one(left[0], limit).is_ok() { Answer::Inserted } else { Answer::Refused });
                left = &left[1..];
                continue;
            }
            let some = &left[..usize::try_from(room).map_or(left.len(), |room| left.len().min(room))];
            let result = counting_growth(|| own.insert_batch(some));
            let inserted = result.as_ref().map_or_else(InsertError::position, |()| some.len());
            answers.extend(iter::repeat_n(Answer::Inserted, inserted));
            let after = &left[inserted..];
            let mut refused = 0;
            if let Err(error) = &result {
                // What is refused changes nothing, so that the same item is refused again.
                refused = after.iter().take_while(|&item| item == &after[0]).count();
                counts::refused(refusal(error.kind()), refused);
                answers.extend(iter::repeat_n(Answer::Refused, refused));
            }
            left = &after[refused..];
        }
    }

    /// The same, but inserts only items that are not there.
    pub(crate) fn insert_all_unique<'a>(
        &mut self,
        items: impl Iterator<Item = &'a [u8]>,
        limit: Limit,
        answers: &mut Vec<Answer>,
    ) {
        self.inserting(|filter| {
            answers.extend(items.map(|item| match filter.contains(item) {
                true => Answer::Known,
                false if filter.insert_one(item, limit).is_ok() => Answer::Inserted,
                false => Answer::Refused,
            }));
            inserted(answers)
        });
    }

    pub(crate) fn contains(&self, item: &[u8]) -> bool {
        self.own.as_ref().is_some_and(|own| own.contains(item)) || self.imported.as_ref().is_some_and(|old| old.contains(item))
    }

    /// Whether each of this many items is there.
    pub(crate) fn contains_all<'a>(&self, items: impl ExactSizeIterator<Item = &'a [u8]>) -> Result<Vec<bool>, Failure> {
        let mut found = reserved(items.len())?;
        each_batch(items, |batch| {
            let start = found.len();
            found.resize(start + batch.len(), false);
            let found = &mut found[start..];
            if let Some(own) = &self.own {
                own.contains_batch(batch, found);
            }
            if let Some(imported) = &self.imported {
                for (found, item) in found.iter_mut().zip(batch) {
                    *found = *found || imported.contains(item);
                }
            }
        });
        Ok(found)
    }

    pub(crate) fn count(&self, item: &[u8]) -> u64 {
        self.own.as_ref().map_or(0, |own| u64::from(own.count(item)))
            + self.imported.as_ref().map_or(0, |old| u64::from(old.count(item)))
    }

    /// Removes one copy of an item. Returns true if there was one.
    pub(crate) fn remove(&mut self, item: &[u8]) -> bool {
        // The own filter first: it tells items apart better.
        let from_own = self.own.as_mut().is_some_and(|own| own.remove(item));
        if from_own {
            self.deleted += 1;
            if self.different.is_some() {
                let is_gone = self.own.as_ref().is_none_or(|own| own.count(item) == 0);
                self.note_different(false, is_gone);
            }
        }
        let is_removed = from_own || self.imported.as_mut().is_some_and(|imported| imported.remove(item));
        if is_removed {
            self.change(0, 1);
        }
        is_removed
    }

    /// Refuses a filter that cannot become the union of itself and others: there is an imported part, or it takes too many bytes.
    pub(crate) fn weigh(&self, limit: Limit) -> Result<(), Failure> {
        let (Some(own), None) = (&self.own, &self.imported) else {
            return Err(Failure::new(
                "ERR items that were imported from RedisBloom cannot be united, since 8 bits of each are known; fill a new filter \
                 from the original items",
            ));
        };
        let (bytes, most) = (own.size_in_bytes(), limit.bytes());
        if bytes > most {
            counts::refused(Refusal::Limit, 1);
            return Err(Failure::new(format_args!(
                "ERR Insufficient memory to create filter: it takes {bytes} bytes, and koel.max-bytes is {most}; raise it with CONFIG SET"
            )));
        }
        Ok(())
    }

    /// Makes the filter hold, of each item, the larger number of copies of both.
    pub(crate) fn unite(&mut self, other: &Self, limit: Limit) -> Result<(), Failure> {
        self.weigh(Limit::None)?;
        other.weigh(Limit::None)?;
        let (Some(own), Some(others)) = (&mut self.own, &other.own) else { return Ok(()) };
        own.set_max_bytes(limit.bytes());
        let before = own.len() as u64;
        own.union(others).map_err(|error| Failure::new(format_args!("ERR the filters cannot be united: {error}")))?;
        let (items, most) = (own.len() as u64, self.plan.capacity.unsigned_abs());
        self.different = None;
        if limit != Limit::None && self.plan.expansion == 0 && items > most && self.different() > most {
            return Err(Failure::new(format_args!(
                "Filter is full: the union has more than {most} different items, its capacity, and EXPANSION 0; unite them in one that \
                 expands"
            )));
        }
        self.change(items - before, 0);
        Ok(())
    }

    /// Frees memory. Tables that there is no memory to join stay as they are. Returns true if anything has changed.
    pub(crate) fn compact(&mut self) -> bool {
        let before = self.arrangement();
        if let Some(imported) = &mut self.imported {
            imported.compact();
        }
        if let Some(own) = &mut self.own {
            own.shrink();
        }
        self.deleted = 0;
        let is_changed = self.arrangement() != before;
        if is_changed {
            self.change(0, 0);
        }
        is_changed
    }

    /// What compaction changes: tables that are joined are fewer.
    fn arrangement(&self) -> (u64, usize, u64) {
        let imported = self.imported.as_deref().map_or(0, imported_checksum);
        (self.deleted, self.own.as_ref().map_or(0, ElasticFilter::shards), imported)
    }

    /// A copy, or `None` if there is no memory for it. A dump that the filter has begun goes on with the copy, which takes its place while
    /// the server defragments.
    pub(crate) fn copy(&self) -> Option<Self> {
        let own = self.own.as_ref().map(ElasticFilter::try_clone).transpose().ok()?;
        let imported = self.imported.as_ref().map(|imported| imported.try_clone()).transpose().ok()?;
        let imported = imported.map(boxed).transpose().ok()?;
        Some(Self { is_as_dumped: self.is_as_dumped.clone(), ..Self::with(self.plan, own, imported, self.deleted) })
    }

    /// Bytes that the filter takes, as `koel.max-bytes` counts them: equal for all filters of the same content, while those of
    /// `size_in_bytes` depend on how they came to it.
    pub(crate) fn charged_bytes(&self) -> u64 {
        let own = self.own.as_ref().map_or(0, ElasticFilter::charged_bytes) as u64;
        let of_imported =
            |imported: &RedisBloomFilter| imported.slots() as u64 + imported.sub_filters() as u64 * SUB_FILTER_BYTES;
        size_of::<Self>() as u64 + own + self.imported.as_deref().map_or(0, of_imported)
    }

    /// Bytes of memory, with those of the struct.
    pub(crate) fn size_in_bytes(&self) -> usize {
        let dump = self.dump.borrow().as_ref().map_or(0, |dump| dump.size_in_bytes());
        let behind = |total: Option<usize>, of_struct| total.map_or(0, |total| total - of_struct);
        size_of::<Self>()
            + behind(self.own.as_ref().map(ElasticFilter::size_in_bytes), size_of::<ElasticFilter>())
            + self.imported.as_ref().map_or(0, |imported| imported.size_in_bytes())
            + dump
    }

    /// The words for a refusal.
    pub(crate) fn words(&self, refusal: Refusal, limit: Limit) -> Failure {
        match refusal {
            Refusal::Copies => Failure::new(format_args!(
                "Filter is full: this item has {} copies, the most that are counted; CF.ADDNX adds an item only once",
                u32::MAX
            )),
            Refusal::Capacity => Failure::new(format_args!(
                "Filter is full: its capacity is {} different items, and EXPANSION 0; reserve one that expands",
                self.plan().capacity
            )),
            Refusal::Limit => Failure::new(format_args!(
                "Maximum expansions reached: the filter may take {} bytes; raise koel.max-bytes with CONFIG SET, or remove items and \
                 call CF.COMPACT",
                limit.bytes()
            )),
            Refusal::Growth => Failure::new(
                "Maximum expansions reached: too many items share the first bits of their hashes, or the filter holds many times \
                 its planned capacity; fill a new one that is reserved with another SEED and a larger EXPANSION",
            ),
            Refusal::OutOfMemory => Failure::out_of_memory(),
        }
    }
}

/// True if a filter has grown beyond its plan. An item may then be in several generations, so that different ones are not counted.
fn has_later_generations(own: &ElasticFilter) -> bool {
    own.buckets_per_lookup() > 2
}

/// Inserts by `insert`, and counts it if it takes memory.
fn counting_growth<T>(insert: impl FnOnce() -> T) -> T {
    let before = allocations();
    let result = insert();
    if allocations() != before {
        counts::grown();
    }
    result
}

/// How many of these were inserted.
fn inserted(answers: &[Answer]) -> usize {
    answers.iter().filter(|&&answer| answer == Answer::Inserted).count()
}

fn refusal(kind: InsertErrorKind) -> Refusal {
    match kind {
        InsertErrorKind::TooManyCopies => Refusal::Copies,
        InsertErrorKind::Limit { .. } => Refusal::Limit,
        InsertErrorKind::OutOfMemory { .. } => Refusal::OutOfMemory,
        _ => Refusal::Growth,
    }
}

/// Passes on items in batches, without memory for all of them: clients decide how many there are.
fn each_batch<'a>(items: impl Iterator<Item = &'a [u8]>, mut act: impl FnMut(&[&'a [u8]])) {
    let (mut batch, mut len) = ([&[][..]; BATCH], 0);
    for item in items {
        batch[len] = item;
        len += 1;
        if len == BATCH {
            act(&batch);
            len = 0;
        }
    }
    if len > 0 {
        act(&batch[..len]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(expansion: i64) -> Filter {
        Filter::new(Plan { capacity: 10, expansion, error_rate: 0.01, seed: 0 }, Limit::None).unwrap()
    }

    fn insert_all(filter: &mut Filter, items: &[&[u8]], limit: Limit) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(items.len());
        filter.insert_all(items.iter().copied(), limit, &mut answers);
        assert_eq!(answers.len(), items.len());
        answers
    }

    const CLIENT: Limit = Limit::Bytes(1 << 30);

    #[test]
    fn copies_are_refused_only_where_they_cannot_be_counted() {
        let mut filter = filter(1);
        let items: Vec<&[u8]> = iter::repeat_n(&b"a"[..], 1000).chain([&b"b"[..]]).collect();
        assert_eq!(insert_all(&mut filter, &items, CLIENT), [Answer::Inserted; 1001]);
        assert_eq!((filter.count(b"a"), filter.count(b"b"), filter.items()), (1000, 1, 1001));
        assert!((0..1000).all(|_| filter.remove(b"a")) && !filter.remove(b"a") && filter.contains(b"b"));
        // Copies are doubled, and one is added, until there are 2³² − 1.
        filter.insert(b"a", CLIENT).unwrap();
        let one = filter.copy().unwrap().own.unwrap();
        let own = filter.own.as_mut().unwrap();
        for _ in 1..32 {
            own.merge(&own.clone()).unwrap();
            own.merge(&one).unwrap();
        }
        let before = own.to_bytes();
        assert_eq!(filter.insert(b"a", CLIENT), Err(Refusal::Copies));
        assert_eq!(insert_all(&mut filter, &[b"a", b"a"], Limit::None), [Answer::Refused; 2]);
        assert_eq!(filter.insert_unique(b"a", CLIENT), Ok(false));
        assert!(filter.count(b"a") == u32::MAX.into() && filter.own.as_ref().unwrap().to_bytes() == before);
        let words = filter.words(Refusal::Copies, CLIENT).to_string();
        assert!(words.starts_with("Filter is full") && words.contains("4294967295") && words.contains("CF.ADDNX"), "{words}");
        assert!(filter.remove(b"a") && filter.insert(b"a", CLIENT).is_ok() && filter.insert(b"c", CLIENT).is_ok());
    }

    /// Every reason has a count, and the one of its name.
    #[test]
    fn refusals_have_counts() {
        for (at, &(_, refusal)) in Refusal::COUNTED.iter().enumerate() {
            assert_eq!(refusal.counter(), at);
        }
        assert_eq!(Refusal::Copies.counter(), Refusal::Growth.counter());
    }

    #[test]
    fn without_expansion_the_capacity_is_the_limit_of_clients() {
        let mut filter = filter(0);
        let items: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        let items: Vec<&[u8]> = items.iter().map(String::as_bytes).collect();
        let answers = insert_all(&mut filter, &items, Limit::Bytes(1 << 30));
        assert_eq!(answers[..10], [Answer::Inserted; 10]);
        assert_eq!(answers[10..], [Answer::Refused; 2]);
        assert_eq!(filter.insert(b"x", Limit::Bytes(1 << 30)), Err(Refusal::Capacity));
        assert!(filter.remove(b"3") && filter.insert(b"x", Limit::Bytes(1 << 30)).is_ok());
        // What a primary has done is done here.
        let others: [&[u8]; 2] = [b"y", b"z"];
        assert_eq!(insert_all(&mut filter, &others, Limit::None), [Answer::Inserted; 2]);
        assert_eq!(filter.insert(b"v", Limit::Bytes(1 << 30)), Err(Refusal::Capacity));
    }

    /// Each of as many different items as the capacity, eight times, and no other one; in either order, in one command or in many.
    #[test]
    fn copies_take_none_of_the_capacity() {
        let names: Vec<String> = (0..2000).map(|n| n.to_string()).collect();
        let items: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
        let in_a_row = items.iter().flat_map(|&item| iter::repeat_n(item, 8)).collect::<Vec<_>>();
        let by_passes = iter::repeat_n(&items, 8).flatten().copied().collect::<Vec<_>>();
        for order in [in_a_row, by_passes] {
            for size in [1, 700, usize::MAX] {
                let mut filter = Filter::new(Plan { capacity: 2000, expansion: 0, error_rate: 0.0001, seed: 0 }, CLIENT).unwrap();
                for some in order.chunks(size.min(order.len())) {
                    assert!(insert_all(&mut filter, some, CLIENT).iter().all(|&answer| answer == Answer::Inserted));
                }
                assert_eq!(filter.insert(b"another", CLIENT), Err(Refusal::Capacity));
                assert_eq!(insert_all(&mut filter, &[b"0", b"another"], CLIENT), [Answer::Inserted, Answer::Refused]);
                assert!(filter.remove(b"0") && items.iter().all(|item| filter.count(item) == 8));
                // The last copy makes room.
                (0..7).for_each(|_| assert!(filter.remove(b"0")));
                assert_eq!(filter.insert(b"another", CLIENT), Err(Refusal::Capacity));
                assert!(filter.remove(b"0") && filter.insert(b"another", CLIENT).is_ok());
                assert_eq!(filter.insert(b"0", CLIENT), Err(Refusal::Capacity));
            }
        }
    }

    /// The number of different items is right where it is known, though items collide: a copy of the filter accepts the same.
    #[test]
    fn different_items_are_counted() {
        let plan = Plan { capacity: 500, expansion: 0, error_rate: 0.3, seed: 0 };
        let (mut filter, mut random) = (Filter::new(plan, CLIENT).unwrap(), 1_u64);
        let mut known = 0;
        for turn in 0..40_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let item = ((random >> 40) % 1200).to_le_bytes();
            match random >> 61 {
                0..=3 => _ = filter.insert(&item, CLIENT),
                4 | 5 => _ = filter.remove(&item),
                6 => _ = insert_all(&mut filter, &[&item, &item, b"x"], CLIENT),
                _ if turn % 10 == 0 => _ = filter.compact(),
                _ => _ = filter.insert(b"y", if turn % 100 == 1 { Limit::None } else { CLIENT }),
            }
            if let Some(different) = filter.different {
                known += 1;
                assert_eq!(filter.own.as_ref().unwrap().distinct() as u64, different, "after {turn}");
            }
        }
        assert!(known > 10_000 && filter.own.as_ref().unwrap().buckets_per_lookup() == 2, "{known}");
    }

    #[test]
    fn a_limit_of_memory_is_kept() {
        let mut filter = filter(1);
        let limit = Limit::Bytes(filter.own.as_ref().unwrap().size_in_bytes() + 5000);
        let refused = (0..100_000_u32).find(|n| filter.insert(&n.to_le_bytes(), limit).is_err()).unwrap();
        assert!(filter.own.as_ref().unwrap().table_bytes() <= limit.bytes());
        let before = filter.own.as_ref().unwrap().to_bytes();
        assert_eq!(filter.insert(&refused.to_le_bytes(), limit), Err(Refusal::Limit));
        assert!(before == filter.own.as_ref().unwrap().to_bytes());
        assert!(filter.insert(&refused.to_le_bytes(), Limit::None).is_ok());
    }

    #[test]
    fn copies_are_equal() {
        let mut filter = filter(1);
        (0..50_000_u32).for_each(|n| filter.insert(&n.to_le_bytes(), Limit::None).unwrap());
        let copy = filter.copy().unwrap();
        assert!(copy.own.unwrap().to_bytes() == filter.own.unwrap().to_bytes());
    }
}
