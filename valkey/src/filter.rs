//! The filter of a key: one of koel's (the own filter), one imported from RedisBloom, or both. An imported filter knows too few
//! bits of each item to grow, so new items go into an own filter beside it.

use std::{
    cell::{Cell, RefCell},
    iter,
};

use koel::{ElasticFilter, InsertError, MergeError, Xxh3, pieces::SnapshotIndex, redisbloom::RedisBloomFilter};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    counts::{self, FilterCounts},
    explain,
    plan::Plan,
    refusal::{Limit, Refusal},
    reply::{Failure, ItemResult, reserved},
    server::{allocated_bytes, allocation_count, boxed},
};

/// The least capacity of an own filter beside an imported one.
const MIN_CAPACITY_BESIDE: i64 = 1024;

/// The most bytes of a sub-filter beside its slots, in an imported filter.
const SUB_FILTER_BYTES: u64 = 96;

/// The number of items in a batch.
const BATCH: usize = 512;

/// An own filter, an imported one, or both.
pub(crate) struct Filter {
    /// The plan of the own filter. Its capacity has no meaning while there is none.
    pub(crate) plan: Plan,
    /// koel's filter. `None` while all items are imported.
    pub(crate) own: Option<ElasticFilter>,
    pub(crate) imported: Option<Box<RedisBloomFilter>>,
    /// The number of items removed from the own filter since it was created or compacted.
    pub(crate) deleted: u64,
    /// The number of distinct items in the own filter. Computed when it is first needed, only for filters that must not expand.
    distinct: Option<u64>,
    /// Cached data for dumps, until the next change.
    pub(crate) dump: RefCell<Option<Box<Dump>>>,
    /// True if the filter is unchanged since a dump in RedisBloom's chunks began. Koel's own iterators have a tag of the content
    /// instead; RedisBloom's have no bits for it.
    pub(crate) is_unchanged_since_dump: Cell<bool>,
    counted: FilterCounts,
}

/// Data that a dump needs besides the filter, with a tag of the content.
pub(crate) struct Dump {
    pub(crate) index: SnapshotIndex,
    pub(crate) tag: u64,
}

impl Dump {
    /// Returns the memory in bytes, including the struct.
    pub(crate) fn size_in_bytes(&self) -> usize {
        size_of::<Self>() - size_of::<SnapshotIndex>() + self.index.size_in_bytes()
    }
}

impl Filter {
    /// Creates an empty filter.
    pub(crate) fn new(plan: Plan, limit: Limit) -> Result<Self, Failure> {
        let params = plan.builder().params().map_err(|error| explain::impossible(&plan, &error))?;
        let (bytes, most) = (params.size_in_bytes(), limit.bytes());
        if bytes > most {
            counts::count_refusals(Refusal::Limit { needed: bytes as u64 }, 1);
            return Err(Failure::new(format_args!(
                "ERR Insufficient memory to create filter: it takes {bytes} bytes, and koel.max-bytes is {most}; {}, or raise \
                 koel.max-bytes with CONFIG SET",
                plan.remedy(most as u64)
            )));
        }
        let own = ElasticFilter::new(params, Xxh3).map_err(|error| {
            counts::count_refusals(Refusal::OutOfMemory, 1);
            explain::not_allocated(error)
        })?;
        Ok(Self::from_parts(plan, Some(own), None, 0))
    }

    /// Creates a filter from its parts.
    pub(crate) fn from_parts(
        plan: Plan,
        own: Option<ElasticFilter>,
        imported: Option<Box<RedisBloomFilter>>,
        deleted: u64,
    ) -> Self {
        let items = own.as_ref().map_or(0, ElasticFilter::len) as u64;
        // Counts the occupied slots of an imported filter, since the number in its header may be wrong.
        let taken = imported.as_ref().map_or(0, |imported| imported.taken());
        let counted = FilterCounts::new(items + taken, imported.is_some());
        let mut filter = Self {
            plan,
            own,
            imported,
            deleted,
            distinct: None,
            dump: RefCell::new(None),
            is_unchanged_since_dump: Cell::new(false),
            counted,
        };
        filter.record_memory();
        filter
    }

    /// Returns the plan of the own filter. While there is none, returns the plan that it would be created with. That depends only
    /// on the content, so it is the same for all copies of a filter. The number of items in an imported header may be wrong.
    pub(crate) fn plan(&self) -> Plan {
        match &self.imported {
            Some(imported) if self.own.is_none() => {
                let items = i64::try_from(imported.taken()).unwrap_or(i64::MAX);
                Plan { capacity: items.clamp(MIN_CAPACITY_BESIDE, 1 << 30), ..self.plan }
            }
            _ => self.plan,
        }
    }

    /// Returns the bytes of the own filter that the first new item creates beside an imported one, or `None` if there is an own one.
    pub(crate) fn missing_bytes(&self) -> Option<u64> {
        if self.own.is_some() { None } else { self.plan().bytes() }
    }

    /// Returns the number of items.
    pub(crate) fn items(&self) -> u64 {
        self.counted.items()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items() == 0
    }

    /// Records a change, with the numbers of items inserted and removed. Must be called after every change.
    fn record_change(&mut self, inserted: u64, removed: u64) {
        *self.dump.get_mut() = None;
        self.is_unchanged_since_dump.set(false);
        self.counted.change(inserted, removed);
    }

    /// Records the memory of the filter, and whether it has grown beyond its plan. Must be called when memory was allocated or freed.
    /// Takes time in proportion to the number of tables.
    fn record_memory(&mut self) {
        let is_beyond_plan = self.own.as_ref().is_some_and(has_later_generations);
        self.counted.set_memory(self.size_in_bytes() as u64, is_beyond_plan);
    }

    /// Returns the own filter, created if necessary.
    fn own_for_insert(&mut self, limit: Limit) -> Result<&mut ElasticFilter, Refusal> {
        let plan = self.plan();
        if limit == Limit::None {
            // Insertions without a limit do not update the number.
            self.distinct = None;
        }
        let own = match &mut self.own {
            Some(own) => own,
            none => {
                let params = plan.builder().params().map_err(|_| Refusal::Growth)?;
                let needed = params.size_in_bytes();
                if needed > limit.bytes() {
                    return Err(Refusal::Limit { needed: needed as u64 });
                }
                let own = ElasticFilter::new(params, Xxh3).map_err(|_| Refusal::OutOfMemory)?;
                self.plan = plan;
                none.insert(own)
            }
        };
        own.set_max_bytes(limit.bytes());
        Ok(own)
    }

    /// Returns how many items fit within the capacity even if all are distinct: at least one. Returns `None` if there may be no
    /// room for a distinct item, or if the distinct items are being counted: then each item must be looked up before it is
    /// inserted.
    fn unchecked_items(&self, limit: Limit) -> Option<usize> {
        let plan = self.plan();
        if limit == Limit::None || plan.expansion > 0 {
            return Some(usize::MAX);
        }
        if self.distinct.is_some() {
            return None;
        }
        let items = self.own.as_ref().map_or(0, ElasticFilter::len) as u64;
        let room = plan.capacity.unsigned_abs().saturating_sub(items);
        if room > 0 { Some(usize::try_from(room).unwrap_or(usize::MAX)) } else { None }
    }

    /// Returns the number of distinct items in the own filter. It depends only on the content, so all copies of a filter accept the
    /// same items.
    fn distinct(&mut self) -> u64 {
        match &self.own {
            None => 0,
            // The filter exceeds its capacity, or items were chosen to crowd one table.
            Some(own) if has_later_generations(own) => u64::MAX,
            Some(own) => *self.distinct.get_or_insert_with(|| own.distinct() as u64),
        }
    }

    /// Updates the number of distinct items, if it is known, after a distinct item came or went.
    fn update_distinct(&mut self, is_new: bool, is_gone: bool) {
        let is_counted = self.own.as_ref().is_some_and(|own| !has_later_generations(own));
        self.distinct =
            self.distinct.filter(|_| is_counted).map(|items| (items + u64::from(is_new)).saturating_sub(is_gone.into()));
    }

    /// Inserts with `insert`, which returns the number of items that it inserted. If it inserts none, nothing changes.
    fn insert_with(&mut self, insert: impl FnOnce(&mut Self) -> usize) {
        let (had_none, allocations) = (self.own.is_none(), allocation_count());
        match insert(self) {
            0 if had_none => (self.own, self.distinct) = (None, None),
            0 => {}
            inserted => self.record_change(inserted as u64, 0),
        }
        if allocation_count() != allocations {
            self.record_memory();
        }
    }

    /// Inserts an item, even if it is present.
    pub(crate) fn insert(&mut self, item: &[u8], limit: Limit) -> Result<(), Refusal> {
        let mut result = Ok(());
        self.insert_with(|filter| {
            result = filter.check_and_insert(item, limit).inspect_err(|&refusal| counts::count_refusals(refusal, 1));
            result.is_ok().into()
        });
        result
    }

    /// Inserts an item without recording the change or the refusal.
    fn check_and_insert(&mut self, item: &[u8], limit: Limit) -> Result<(), Refusal> {
        // A copy does not count toward the capacity.
        let is_distinct = self.unchecked_items(limit).is_none() && self.own.as_ref().is_none_or(|own| own.count(item) == 0);
        if is_distinct && self.distinct() >= self.plan.capacity.unsigned_abs() {
            return Err(Refusal::Capacity);
        }
        let own = self.own_for_insert(limit)?;
        counting_growth(|| own.insert(item)).map_err(|error| Refusal::of(error.kind()))?;
        self.update_distinct(is_distinct, false);
        Ok(())
    }

    /// Inserts an item unless it is present. Returns true if it was inserted.
    pub(crate) fn insert_unique(&mut self, item: &[u8], limit: Limit) -> Result<bool, Refusal> {
        if self.contains(item) {
            return Ok(false);
        }
        self.insert(item, limit).map(|()| true)
    }

    /// Inserts items, and appends the result of each to `results`, which must have capacity for them.
    pub(crate) fn insert_all<'a>(&mut self, items: impl Iterator<Item = &'a [u8]>, limit: Limit, results: &mut Results) {
        self.insert_with(|filter| {
            each_batch(items, |batch| filter.insert_batch(batch, limit, results));
            results.inserted()
        });
    }

    fn insert_batch(&mut self, items: &[&[u8]], limit: Limit, results: &mut Results) {
        let mut left = items;
        while !left.is_empty() {
            let Some(unchecked) = self.unchecked_items(limit) else {
                match self.check_and_insert(left[0], limit) {
                    Ok(()) => results.push(ItemResult::Inserted, 1),
                    Err(refusal) => results.refuse(refusal, 1),
                }
                left = &left[1..];
                continue;
            };
            let own = match self.own_for_insert(limit) {
                Ok(own) => own,
                Err(refusal) => return results.refuse(refusal, left.len()),
            };
            let fitting = &left[..left.len().min(unchecked)];
            let result = counting_growth(|| own.insert_batch(fitting));
            let inserted = result.as_ref().map_or_else(InsertError::position, |()| fitting.len());
            results.push(ItemResult::Inserted, inserted);
            let after = &left[inserted..];
            let mut refused = 0;
            if let Err(error) = &result {
                // A refused item changes nothing, so equal items that follow are refused, too.
                refused = after.iter().take_while(|&item| item == &after[0]).count();
                results.refuse(Refusal::of(error.kind()), refused);
            }
            left = &after[refused..];
        }
    }

    /// Inserts the items that are not present, and appends the result of each to `results`.
    pub(crate) fn insert_all_unique<'a>(&mut self, items: impl Iterator<Item = &'a [u8]>, limit: Limit, results: &mut Results) {
        self.insert_with(|filter| {
            for item in items {
                if filter.contains(item) {
                    results.push(ItemResult::Present, 1);
                    continue;
                }
                match filter.check_and_insert(item, limit) {
                    Ok(()) => results.push(ItemResult::Inserted, 1),
                    Err(refusal) => results.refuse(refusal, 1),
                }
            }
            results.inserted()
        });
    }

    pub(crate) fn contains(&self, item: &[u8]) -> bool {
        self.own.as_ref().is_some_and(|own| own.contains(item)) || self.imported.as_ref().is_some_and(|old| old.contains(item))
    }

    /// Returns whether each item is present.
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
        let (allocations, bytes) = (allocation_count(), allocated_bytes());
        // The own filter comes first: it distinguishes items better.
        let from_own = self.own.as_mut().is_some_and(|own| own.remove(item));
        if from_own {
            self.deleted += 1;
            if self.distinct.is_some() {
                let is_gone = self.own.as_ref().is_none_or(|own| own.count(item) == 0);
                self.update_distinct(false, is_gone);
            }
        }
        let is_removed = from_own || self.imported.as_mut().is_some_and(|imported| imported.remove(item));
        if is_removed {
            self.record_change(0, 1);
            self.drop_empty_imported();
        }
        // Other threads only free memory, so what a compaction frees always shows.
        if (allocation_count(), allocated_bytes()) != (allocations, bytes) {
            self.record_memory();
        }
        is_removed
    }

    /// Drops an imported filter whose last item has been removed. It then has the own one alone, which is in snapshots and unions, unless
    /// there is no memory for it.
    fn drop_empty_imported(&mut self) {
        // The number in its header may be wrong.
        let has_imported_items = self.items() > self.own.as_ref().map_or(0, ElasticFilter::len) as u64;
        if self.imported.is_some() && !has_imported_items && self.own_for_insert(Limit::None).is_ok() {
            let deleted = self.imported.take().map_or(0, |imported| imported.deleted());
            self.deleted = self.deleted.saturating_add(deleted);
            self.counted.imported_is_gone();
        }
    }

    /// Returns an error if the filter cannot be part of a union: it has an imported part, or exceeds the limit.
    pub(crate) fn check_union(&self, limit: Limit) -> Result<(), Failure> {
        let (Some(own), None) = (&self.own, &self.imported) else {
            return Err(Failure::new(
                "ERR items that were imported from RedisBloom cannot be united, since only 8 bits of each are known; fill a new \
                 filter from the original items",
            ));
        };
        let (bytes, most) = (own.charged_bytes(), limit.bytes());
        if bytes > most {
            counts::count_refusals(Refusal::Limit { needed: bytes as u64 }, 1);
            return Err(Failure::new(format_args!(
                "ERR Insufficient memory to create filter: it takes {bytes} bytes, and koel.max-bytes is {most}; raise it with CONFIG SET"
            )));
        }
        Ok(())
    }

    /// Unites the filter with another: each item gets the larger of its two numbers of copies.
    pub(crate) fn unite(&mut self, other: &Self, limit: Limit) -> Result<(), Failure> {
        self.check_union(Limit::None)?;
        other.check_union(Limit::None)?;
        let (Some(own), Some(others)) = (&mut self.own, &other.own) else { return Ok(()) };
        own.set_max_bytes(limit.bytes());
        let before = own.len() as u64;
        if let Err(error) = own.union(others) {
            if let MergeError::Insert(error) = &error {
                counts::count_refusals(Refusal::of(error.kind()), 1);
            }
            return Err(explain::not_united(&self.plan, &other.plan, limit, &error));
        }
        let (items, most) = (own.len() as u64, self.plan.capacity.unsigned_abs());
        self.distinct = None;
        if limit != Limit::None && self.plan.expansion == 0 && items > most && self.distinct() > most {
            return Err(Failure::new(format_args!(
                "Filter is full: the union has more than {most} distinct items, its capacity, and EXPANSION 0; unite them in one that \
                 expands"
            )));
        }
        self.record_change(items - before, 0);
        self.record_memory();
        Ok(())
    }

    /// Frees memory. Tables stay as they are if there is no memory to merge them. Returns true if anything changed.
    pub(crate) fn compact(&mut self) -> bool {
        let before = self.compaction_state();
        if let Some(imported) = &mut self.imported {
            imported.compact();
        }
        if let Some(own) = &mut self.own {
            own.shrink();
        }
        self.deleted = 0;
        let is_changed = self.compaction_state() != before;
        if is_changed {
            self.record_change(0, 0);
        }
        self.record_memory();
        is_changed
    }

    /// Returns numbers of which a compaction that has an effect changes at least one. Merging tables, for instance, leaves fewer.
    fn compaction_state(&self) -> (u64, usize, u64) {
        let imported = self.imported.as_deref().map_or(0, imported_checksum);
        (self.deleted, self.own.as_ref().map_or(0, ElasticFilter::shards), imported)
    }

    /// Returns a copy, or `None` if there is no memory for it. A dump of the original can continue from the copy, which replaces it
    /// when the server defragments.
    pub(crate) fn copy(&self) -> Option<Self> {
        let own = self.own.as_ref().map(ElasticFilter::try_clone).transpose().ok()?;
        let imported = self.imported.as_ref().map(|imported| imported.try_clone()).transpose().ok()?;
        let imported = imported.map(boxed).transpose().ok()?;
        Some(Self {
            is_unchanged_since_dump: self.is_unchanged_since_dump.clone(),
            ..Self::from_parts(self.plan, own, imported, self.deleted)
        })
    }

    /// Returns the bytes that `koel.max-bytes` limits, and those of an imported filter. They are equal for all filters with the same
    /// content, while `size_in_bytes` depends on how a filter came to its content.
    pub(crate) fn charged_bytes(&self) -> u64 {
        let own = self.own.as_ref().map_or(0, ElasticFilter::charged_bytes) as u64;
        let imported_bytes =
            |imported: &RedisBloomFilter| imported.slots() as u64 + imported.sub_filters() as u64 * SUB_FILTER_BYTES;
        own + self.imported.as_deref().map_or(0, imported_bytes)
    }

    /// Returns the memory in bytes, including the struct.
    pub(crate) fn size_in_bytes(&self) -> usize {
        let dump = self.dump.borrow().as_ref().map_or(0, |dump| dump.size_in_bytes());
        let heap_bytes = |total: Option<usize>, struct_bytes| total.map_or(0, |total| total - struct_bytes);
        size_of::<Self>()
            + heap_bytes(self.own.as_ref().map(ElasticFilter::size_in_bytes), size_of::<ElasticFilter>())
            + self.imported.as_ref().map_or(0, |imported| imported.size_in_bytes())
            + dump
    }

    /// Returns the error for a refused item.
    pub(crate) fn failure(&self, refusal: Refusal, limit: Limit) -> Failure {
        explain::refused(refusal, &self.plan(), limit)
    }
}

/// Returns a checksum of the imported filter.
pub(crate) fn imported_checksum(imported: &RedisBloomFilter) -> u64 {
    imported.chunks().fold(0, |checksum, (_, bytes)| xxh3_64_with_seed(bytes, checksum))
}

/// Returns true if a filter has grown beyond its plan. With EXPANSION 0, it takes no further items, so their number is not needed.
fn has_later_generations(own: &ElasticFilter) -> bool {
    own.buckets_per_lookup() > 2
}

/// Inserts with `insert`, and counts an insertion that allocates memory.
fn counting_growth<T>(insert: impl FnOnce() -> T) -> T {
    let before = allocation_count();
    let result = insert();
    if allocation_count() != before {
        counts::count_growth();
    }
    result
}

/// The results of the items of a command.
pub(crate) struct Results {
    /// One for each item so far, with capacity for all.
    pub(crate) list: Vec<ItemResult>,
    /// The reason for the first refusal.
    pub(crate) refusal: Option<Refusal>,
}

impl Results {
    /// Returns an empty list for this many items.
    pub(crate) fn new(items: usize) -> Result<Self, Failure> {
        Ok(Self { list: reserved(items)?, refusal: None })
    }

    fn push(&mut self, result: ItemResult, items: usize) {
        self.list.extend(iter::repeat_n(result, items));
    }

    /// Records and counts refused items.
    fn refuse(&mut self, refusal: Refusal, items: usize) {
        counts::count_refusals(refusal, items);
        self.refusal.get_or_insert(refusal);
        self.push(ItemResult::Refused, items);
    }

    /// Returns the number of inserted items.
    fn inserted(&self) -> usize {
        self.list.iter().filter(|&&result| result == ItemResult::Inserted).count()
    }
}

/// Calls `act` with batches of items. Needs no memory for all of them, because clients choose their number.
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

    fn insert_all(filter: &mut Filter, items: &[&[u8]], limit: Limit) -> Vec<ItemResult> {
        let mut results = Results::new(items.len()).unwrap();
        filter.insert_all(items.iter().copied(), limit, &mut results);
        assert_eq!(results.list.len(), items.len());
        assert_eq!(results.refusal.is_some(), results.list.contains(&ItemResult::Refused));
        results.list
    }

    const CLIENT: Limit = Limit::Bytes(1 << 30);

    #[test]
    fn copies_beyond_the_largest_count_are_refused() {
        let mut filter = filter(1);
        let items: Vec<&[u8]> = iter::repeat_n(&b"a"[..], 1000).chain([&b"b"[..]]).collect();
        assert_eq!(insert_all(&mut filter, &items, CLIENT), [ItemResult::Inserted; 1001]);
        assert_eq!((filter.count(b"a"), filter.count(b"b"), filter.items()), (1000, 1, 1001));
        assert!((0..1000).all(|_| filter.remove(b"a")) && !filter.remove(b"a") && filter.contains(b"b"));
        // Doubles the copies and adds one, until there are 2³² − 1.
        filter.insert(b"a", CLIENT).unwrap();
        let one = filter.copy().unwrap().own.unwrap();
        let own = filter.own.as_mut().unwrap();
        for _ in 1..32 {
            own.merge(&own.clone()).unwrap();
            own.merge(&one).unwrap();
        }
        let before = own.to_bytes();
        assert_eq!(filter.insert(b"a", CLIENT), Err(Refusal::Copies));
        assert_eq!(insert_all(&mut filter, &[b"a", b"a"], Limit::None), [ItemResult::Refused; 2]);
        assert_eq!(filter.insert_unique(b"a", CLIENT), Ok(false));
        assert!(filter.count(b"a") == u32::MAX.into() && filter.own.as_ref().unwrap().to_bytes() == before);
        let message = filter.failure(Refusal::Copies, CLIENT).to_string();
        assert!(
            message.starts_with("Filter is full") && message.contains("4294967295") && message.contains("CF.ADDNX"),
            "{message}"
        );
        assert!(filter.remove(b"a") && filter.insert(b"a", CLIENT).is_ok() && filter.insert(b"c", CLIENT).is_ok());
    }

    #[test]
    fn without_expansion_clients_cannot_exceed_the_capacity() {
        let mut filter = filter(0);
        let items: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        let items: Vec<&[u8]> = items.iter().map(String::as_bytes).collect();
        let results = insert_all(&mut filter, &items, Limit::Bytes(1 << 30));
        assert_eq!(results[..10], [ItemResult::Inserted; 10]);
        assert_eq!(results[10..], [ItemResult::Refused; 2]);
        assert_eq!(filter.insert(b"x", Limit::Bytes(1 << 30)), Err(Refusal::Capacity));
        assert!(filter.remove(b"3") && filter.insert(b"x", Limit::Bytes(1 << 30)).is_ok());
        // A primary's insertions are repeated without a limit.
        let others: [&[u8]; 2] = [b"y", b"z"];
        assert_eq!(insert_all(&mut filter, &others, Limit::None), [ItemResult::Inserted; 2]);
        assert_eq!(filter.insert(b"v", Limit::Bytes(1 << 30)), Err(Refusal::Capacity));
    }

    /// Inserts as many distinct items as the capacity, each eight times. The next distinct item is refused, for any order and any
    /// number of commands.
    #[test]
    fn copies_do_not_count_toward_the_capacity() {
        let names: Vec<String> = (0..2000).map(|n| n.to_string()).collect();
        let items: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
        let grouped = items.iter().flat_map(|&item| iter::repeat_n(item, 8)).collect::<Vec<_>>();
        let interleaved = iter::repeat_n(&items, 8).flatten().copied().collect::<Vec<_>>();
        for order in [grouped, interleaved] {
            for size in [1, 700, usize::MAX] {
                let mut filter = Filter::new(Plan { capacity: 2000, expansion: 0, error_rate: 0.0001, seed: 0 }, CLIENT).unwrap();
                for batch in order.chunks(size.min(order.len())) {
                    assert!(insert_all(&mut filter, batch, CLIENT).iter().all(|&result| result == ItemResult::Inserted));
                }
                assert_eq!(filter.insert(b"another", CLIENT), Err(Refusal::Capacity));
                assert_eq!(insert_all(&mut filter, &[b"0", b"another"], CLIENT), [ItemResult::Inserted, ItemResult::Refused]);
                assert!(filter.remove(b"0") && items.iter().all(|item| filter.count(item) == 8));
                // Only removing the last copy makes room.
                (0..7).for_each(|_| assert!(filter.remove(b"0")));
                assert_eq!(filter.insert(b"another", CLIENT), Err(Refusal::Capacity));
                assert!(filter.remove(b"0") && filter.insert(b"another", CLIENT).is_ok());
                assert_eq!(filter.insert(b"0", CLIENT), Err(Refusal::Capacity));
            }
        }
    }

    /// Whenever the number of distinct items is known, it equals the one that the filter itself computes, although items collide.
    /// So a copy of the filter, which has to compute it, accepts the same items.
    #[test]
    fn distinct_items_are_counted() {
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
            if let Some(distinct) = filter.distinct {
                known += 1;
                assert_eq!(filter.own.as_ref().unwrap().distinct() as u64, distinct, "after {turn}");
            }
        }
        assert!(known > 10_000 && filter.own.as_ref().unwrap().buckets_per_lookup() == 2, "{known}");
    }

    #[test]
    fn the_limit_of_bytes_is_kept() {
        let mut filter = filter(1);
        let limit = Limit::Bytes(filter.own.as_ref().unwrap().size_in_bytes() + 5000);
        let refused = (0..100_000_u32).find(|n| filter.insert(&n.to_le_bytes(), limit).is_err()).unwrap();
        assert!(filter.own.as_ref().unwrap().table_bytes() <= limit.bytes());
        let before = filter.own.as_ref().unwrap().to_bytes();
        let refusal = filter.insert(&refused.to_le_bytes(), limit);
        assert!(matches!(refusal, Err(Refusal::Limit { needed }) if needed > limit.bytes() as u64), "{refusal:?}");
        assert!(before == filter.own.as_ref().unwrap().to_bytes());
        assert!(filter.insert(&refused.to_le_bytes(), Limit::None).is_ok());
    }

    #[test]
    fn a_copy_of_a_filter_has_equal_bytes() {
        let mut filter = filter(1);
        (0..50_000_u32).for_each(|n| filter.insert(&n.to_le_bytes(), Limit::None).unwrap());
        let copy = filter.copy().unwrap();
        assert!(copy.own.unwrap().to_bytes() == filter.own.unwrap().to_bytes());
    }
}
