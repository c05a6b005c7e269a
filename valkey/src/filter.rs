//! The filter of a key: one of koel's, one that was imported from RedisBloom, or both: an imported one has too few bits of each
//! item to grow, so new items go into a second one beside it.

use std::cell::RefCell;

use koel::{ElasticFilter, GrowErrorKind, OutOfMemory, SnapshotIndex, Xxh3, redisbloom::RedisBloomFilter};

use crate::{plan::Plan, reply::Failure};

/// The capacity of the filter for new items beside an imported one, if that has fewer.
const LEAST_BESIDE: i64 = 1024;

/// See the module.
pub(crate) struct Filter {
    pub(crate) plan: Plan,
    /// `None` as long as there are imported items only.
    pub(crate) own: Option<ElasticFilter>,
    pub(crate) imported: Option<RedisBloomFilter>,
    /// Items removed from the own filter since it was made or compacted.
    pub(crate) deleted: u64,
    /// The number of changes, and of the items that were there at the beginning; tells a dump that it is not of one moment.
    pub(crate) changes: u64,
    /// The number of tables when an item was refused last.
    tables: usize,
    /// What dumps have computed, until the next change.
    pub(crate) index: RefCell<Option<SnapshotIndex>>,
}

/// Why an item was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Copies of it fill its buckets.
    Copies,
    /// The filter must not grow beyond its capacity.
    Capacity,
    /// The tables may not take more bytes.
    Limit,
    OutOfMemory,
}

impl Filter {
    /// An empty filter.
    pub(crate) fn new(plan: Plan) -> Result<Self, Failure> {
        Ok(Self::with(plan, Some(build(&plan)?), None, 0))
    }

    /// A filter of these parts.
    pub(crate) fn with(plan: Plan, own: Option<ElasticFilter>, imported: Option<RedisBloomFilter>, deleted: u64) -> Self {
        let items = own.as_ref().map_or(0, ElasticFilter::len) + imported.as_ref().map_or(0, RedisBloomFilter::len);
        let tables = own.as_ref().map_or(0, ElasticFilter::shards);
        Self { plan, own, imported, deleted, changes: items as u64, tables, index: RefCell::new(None) }
    }

    /// The plan of the filter beside an imported one.
    pub(crate) fn beside(imported: &RedisBloomFilter, plan: Plan) -> Plan {
        let items = i64::try_from(imported.len()).unwrap_or(i64::MAX);
        Plan { capacity: items.clamp(LEAST_BESIDE, 1 << 30), ..plan }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.own.as_ref().is_none_or(ElasticFilter::is_empty) && self.imported.as_ref().is_none_or(RedisBloomFilter::is_empty)
    }

    /// To be called before every change.
    fn change(&mut self) {
        self.changes += 1;
        *self.index.get_mut() = None;
    }

    /// The own filter, to insert items.
    fn growing(&mut self) -> Result<&mut ElasticFilter, Refusal> {
        let own = match &mut self.own {
            Some(own) => own,
            none => none.insert(build(&self.plan).map_err(|_| Refusal::Limit)?),
        };
        own.set_max_bytes(self.plan.limit());
        let is_full = self.plan.expansion == 0 && own.len() as u64 >= self.plan.capacity.unsigned_abs();
        if is_full { Err(Refusal::Capacity) } else { Ok(own) }
    }

    /// Inserts an item, even if it is there.
    pub(crate) fn insert(&mut self, item: &[u8]) -> Result<(), Refusal> {
        self.change();
        self.growing()?.insert(item).map_err(|error| refusal(error.kind()))
    }

    /// Inserts an item unless it is there. Returns true if it was inserted.
    pub(crate) fn insert_unique(&mut self, item: &[u8]) -> Result<bool, Refusal> {
        if self.contains(item) {
            return Ok(false);
        }
        self.insert(item).map(|()| true)
    }

    /// Inserts items; says of each why it was refused, if it was.
    pub(crate) fn insert_all(&mut self, items: &[&[u8]]) -> Vec<Result<(), Refusal>> {
        if self.plan.expansion == 0 {
            return items.iter().map(|item| self.insert(item)).collect();
        }
        self.change();
        let own = match self.growing() {
            Ok(own) => own,
            Err(refusal) => return vec![Err(refusal); items.len()],
        };
        let mut results = Vec::with_capacity(items.len());
        while results.len() < items.len() {
            match own.insert_batch(&items[results.len()..]) {
                Ok(()) => results.resize(items.len(), Ok(())),
                Err(error) => {
                    results.resize(results.len() + error.position(), Ok(()));
                    results.push(Err(refusal(error.kind())));
                }
            }
        }
        results
    }

    /// True if tables may have been split since an item was refused last: so may have an insertion that was refused in the end.
    pub(crate) fn has_grown(&mut self) -> bool {
        let tables = self.own.as_ref().map_or(0, ElasticFilter::shards);
        std::mem::replace(&mut self.tables, tables) != tables
    }

    pub(crate) fn contains(&self, item: &[u8]) -> bool {
        self.own.as_ref().is_some_and(|own| own.contains(item)) || self.imported.as_ref().is_some_and(|old| old.contains(item))
    }

    pub(crate) fn contains_all(&self, items: &[&[u8]]) -> Vec<bool> {
        let mut found = vec![false; items.len()];
        if let Some(own) = &self.own {
            own.contains_batch(items, &mut found);
        }
        if let Some(imported) = &self.imported {
            for (found, item) in found.iter_mut().zip(items) {
                *found = *found || imported.contains(item);
            }
        }
        found
    }

    pub(crate) fn count(&self, item: &[u8]) -> u64 {
        self.own.as_ref().map_or(0, |own| u64::from(own.count(item))) + self.imported.as_ref().map_or(0, |old| old.count(item))
    }

    /// Removes one copy of an item. Returns true if there was one.
    pub(crate) fn remove(&mut self, item: &[u8]) -> bool {
        self.change();
        // The own filter first: it tells items apart better.
        if self.own.as_mut().is_some_and(|own| own.remove(item)) {
            self.deleted += 1;
            return true;
        }
        self.imported.as_mut().is_some_and(|imported| imported.remove(item))
    }

    /// Gives back memory.
    pub(crate) fn compact(&mut self) -> Result<(), OutOfMemory> {
        self.change();
        if let Some(imported) = &mut self.imported {
            imported.compact();
        }
        if let Some(own) = &mut self.own {
            own.shrink()?;
        }
        self.deleted = 0;
        Ok(())
    }

    /// A copy, or `None` if there is no memory for it.
    pub(crate) fn copy(&self) -> Option<Self> {
        let own = self.own.as_ref().map(ElasticFilter::try_clone).transpose().ok()?;
        Some(Self { changes: self.changes, ..Self::with(self.plan, own, self.imported.clone(), self.deleted) })
    }

    /// Bytes of memory, with those of the struct.
    pub(crate) fn size_in_bytes(&self) -> usize {
        let index = self.index.borrow().as_ref().map_or(0, SnapshotIndex::size_in_bytes);
        let behind = |total: Option<usize>, of_struct| total.map_or(0, |total| total - of_struct);
        size_of::<Self>()
            + behind(self.own.as_ref().map(ElasticFilter::size_in_bytes), size_of::<ElasticFilter>())
            + behind(self.imported.as_ref().map(RedisBloomFilter::size_in_bytes), size_of::<RedisBloomFilter>())
            + index
    }

    /// The words for a refusal.
    pub(crate) fn words(&self, refusal: Refusal, item: &[u8]) -> Failure {
        Failure::new(match refusal {
            Refusal::Copies => {
                let copies = self.count(item);
                format!(
                    "Filter is full: no room for one more copy of this item, of which there are {copies}; CF.ADDNX adds it once"
                )
            }
            Refusal::Capacity => {
                let capacity = self.plan.capacity;
                format!("Filter is full: it has {capacity} items, its capacity, and EXPANSION 0; reserve one that expands")
            }
            Refusal::Limit => format!(
                "Maximum expansions reached: the filter's tables may take {} bytes; raise koel.max-bytes with CONFIG SET, or remove \
                 items and call CF.COMPACT",
                self.plan.max_bytes
            ),
            Refusal::OutOfMemory => return Failure::out_of_memory(),
        })
    }
}

fn refusal(kind: GrowErrorKind) -> Refusal {
    match kind {
        GrowErrorKind::Copies => Refusal::Copies,
        GrowErrorKind::OutOfMemory => Refusal::OutOfMemory,
        _ => Refusal::Limit,
    }
}

fn build(plan: &Plan) -> Result<ElasticFilter, Failure> {
    let failed = |reason: &dyn std::fmt::Display| Failure::new(format!("ERR Insufficient memory to create filter: {reason}"));
    let params = plan.builder().params().map_err(|error| failed(&error))?;
    let bytes = params.table_bytes();
    if bytes > plan.limit() as u64 {
        return Err(failed(&format_args!(
            "its tables take {bytes} bytes, and koel.max-bytes is {}; reserve a smaller capacity, or raise it with CONFIG SET",
            plan.max_bytes
        )));
    }
    ElasticFilter::new(params, Xxh3).map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(expansion: i64) -> Filter {
        Filter::new(Plan { capacity: 10, expansion, error_rate: 0.01, seed: 0, max_bytes: i64::MAX }).unwrap()
    }

    #[test]
    fn a_ninth_copy_is_refused_alone() {
        let mut filter = filter(1);
        let items: Vec<&[u8]> = std::iter::repeat_n(&b"a"[..], 9).chain([&b"b"[..]]).collect();
        let results = filter.insert_all(&items);
        assert_eq!(results.iter().position(Result::is_err), Some(8));
        assert_eq!(results[8], Err(Refusal::Copies));
        assert!(results[9].is_ok() && filter.count(b"a") == 8 && filter.contains(b"b"));
        let words = filter.words(Refusal::Copies, b"a").to_string();
        assert!(words.starts_with("Filter is full") && words.contains('8'), "{words}");
    }

    #[test]
    fn without_expansion_the_capacity_is_the_limit() {
        let mut filter = filter(0);
        let items: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        let items: Vec<&[u8]> = items.iter().map(String::as_bytes).collect();
        let refused = filter.insert_all(&items).into_iter().filter(|result| *result == Err(Refusal::Capacity)).count();
        assert_eq!(refused, 2);
        assert!(filter.remove(b"3") && filter.insert(b"x").is_ok());
    }

    #[test]
    fn a_limit_of_memory_is_kept() {
        let mut filter = filter(1);
        let most = filter.own.as_ref().unwrap().table_bytes() + 5000;
        filter.plan.max_bytes = i64::try_from(most).unwrap();
        let refused = (0..100_000_u32).find(|n| filter.insert(&n.to_le_bytes()).is_err()).unwrap();
        assert!(filter.own.as_ref().unwrap().table_bytes() <= most);
        assert_eq!(filter.insert(&refused.to_le_bytes()).err(), Some(Refusal::Limit));
        assert!(filter.has_grown());
        assert_eq!(filter.insert(&refused.to_le_bytes()).err(), Some(Refusal::Limit));
        assert!(!filter.has_grown());
        filter.plan.max_bytes = i64::MAX;
        assert!(filter.insert(&refused.to_le_bytes()).is_ok());
    }

    #[test]
    fn copies_are_equal() {
        let mut filter = filter(1);
        (0..50_000_u32).for_each(|n| filter.insert(&n.to_le_bytes()).unwrap());
        let copy = filter.copy().unwrap();
        assert!(copy.own.unwrap().to_bytes() == filter.own.unwrap().to_bytes());
    }
}
