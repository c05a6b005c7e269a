//! Merge, union and intersection of filters that may have grown differently.
//!
//! ```text
//! first generation   ours, in the shards that its items would have grown ◀── theirs, shard by shard
//! later generations  ◀── ours and theirs: an item that an earlier generation has by now is counted there
//! ```
//!
//! So the result depends on the items alone up to `max_capacity`, not on how the filters have grown and shrunk.

use alloc::vec::Vec;
use core::ops::Deref;

#[cfg(feature = "std")]
use super::shared::{Shared, add_locks};
use super::{
    Elastic, ElasticParams,
    generation::{Generation, Slots},
    generation_plan::GenerationPlan,
    lookup::Shards as _,
    partition::Partition,
    shard::Key,
};
use crate::{
    bits::{in_memory, index, low_half, wide},
    filter::{Combine, Core as _, InsertError, InsertErrorKind, MergeError},
    storage::{OutOfMemory, collected, reserved},
    table::{
        TableParams as _,
        copies::{Copies, ExtraCopies},
        list::ClassKey,
    },
};

/// Why partitions cannot be merged.
enum Refused {
    /// A generation has no room for an item.
    Full,
    Insertion(InsertError),
}

impl<E: Into<InsertError>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Insertion(error.into())
    }
}

/// The number of items after which a merge checks its limit.
const CHECK_INTERVAL: u32 = 1 << 8;

/// A merge treats a table as one with copies if more than one item in this many is present. If it always added absent items in bulk, more
/// copies would go into tables in some orders of merges than in others, and filters with equal content would differ in size.
const MANY_ONE_IN: usize = 64;

/// A table is merged item by item if it would fill less than one in this many slots of ours, and if parts of it would.
const FEW_ONE_IN: usize = 32;
const FEW_OF_PARTS_ONE_IN: usize = 4;

impl Elastic {
    /// Merges a filter with equal parameters into this one. On failure, nothing changes.
    pub fn combine(&mut self, other: &Self, how: Combine) -> Result<(), MergeError> {
        let partitions = self.partitions.iter().zip(&other.partitions);
        self.partitions = merged(partitions, how, self.budget()).map_err(|refused| {
            let items = [self.len().saturating_add(other.len()), self.table_len().saturating_add(other.table_len())];
            merge_error(refused, items, &self.params, |error| self.with_limit(error))
        })?;
        Ok(())
    }

    /// Keeps the smaller number of copies of each item that two filters with equal parameters have. On failure, nothing changes.
    pub fn intersect(&mut self, other: &Self) -> Result<(), MergeError> {
        let pairs = self.partitions.iter().zip(&other.partitions);
        self.partitions = collected(pairs.map(|(ours, theirs)| ours.intersection(theirs)))?;
        Ok(())
    }
}

#[cfg(feature = "std")]
impl Shared {
    /// Merges a filter with equal parameters into this one. Each of its partitions is read at one moment. On failure, nothing
    /// changes.
    pub fn combine(&mut self, other: &Self, how: Combine) -> Result<(), MergeError> {
        let partitions = self.partitions.iter().zip(&other.partitions).map(|(ours, theirs)| (ours.read(), theirs.read()));
        let locked = merged(partitions, how, self.budget())
            .and_then(|partitions| Ok(add_locks(partitions, reserved(self.partitions.len())?)));
        self.partitions = locked.map_err(|refused| {
            let items = [self.len().saturating_add(other.len()), self.table_len().saturating_add(other.table_len())];
            merge_error(refused, items, &self.params, |error| self.with_limit(error))
        })?;
        Ok(())
    }

    /// Keeps the smaller number of copies of each item that two filters with equal parameters have. Each partition of the other is
    /// read at one moment. On failure, nothing changes.
    pub fn intersect(&mut self, other: &Self) -> Result<(), MergeError> {
        let pairs = self.partitions.iter().zip(&other.partitions);
        let partitions = collected(pairs.map(|(ours, theirs)| ours.read().intersection(&theirs.read())))?;
        self.partitions = add_locks(partitions, reserved(self.partitions.len())?);
        Ok(())
    }
}

impl ElasticParams {
    /// Returns an error unless both filters have equal parameters.
    pub(super) fn check_equal(&self, theirs: &Self) -> Result<(), MergeError> {
        let [ours_rate, theirs_rate] = [self, theirs].map(Self::false_positive_rate);
        if ours_rate.to_bits() != theirs_rate.to_bits() {
            return Err(MergeError::DifferentRates { ours: ours_rate, theirs: theirs_rate });
        }
        let different = self.numbers().into_iter().zip(theirs.numbers()).find(|(ours, theirs)| ours != theirs);
        different.map_or(Ok(()), |((parameter, ours), (_, theirs))| Err(MergeError::DifferentPlans { parameter, ours, theirs }))
    }

    /// Returns all parameters but the rate. Those from `buckets` on follow from the others, in a way that may change with the version of
    /// the library.
    fn numbers(&self) -> [(&'static str, u64); 10] {
        let &Self {
            capacity,
            max_capacity,
            false_positive_rate: _,
            seed,
            buckets,
            low_bits,
            shares,
            min_depth,
            max_depth,
            spare_bits,
        } = self;
        [
            ("capacity", capacity),
            ("max_capacity", max_capacity),
            ("partitions", wide(self.partitions())),
            ("seed", seed),
            ("buckets", buckets.into()),
            ("fingerprint_bits", low_bits.into()),
            ("min_depth", min_depth.into()),
            ("max_depth", max_depth.into()),
            ("spare_bits", spare_bits.into()),
            ("is_staggered", shares.is_staggered().into()),
        ]
    }
}

/// Returns the merged partitions of two filters. Their total charge may exceed that of the first partitions of all pairs by
/// `budget` bytes.
fn merged<L: Deref<Target = Partition>>(
    pairs: impl ExactSizeIterator<Item = (L, L)>,
    how: Combine,
    budget: usize,
) -> Result<Vec<Partition>, Refused> {
    let mut rest = budget;
    let partitions = collected(pairs.map(|(ours, theirs)| {
        let max_charge = ours.charged_bytes().saturating_add(rest);
        let partition = ours.merged(&theirs, how, max_charge)?;
        rest = max_charge.saturating_sub(partition.charged_bytes());
        Ok(partition)
    }));
    partitions.map_err(|refused| match refused {
        // The error states the bytes beyond the budget.
        Refused::Insertion(error) => Refused::Insertion(error.within(budget, usize::MAX)),
        Refused::Full => Refused::Full,
    })
}

/// Returns the error of a failed merge. `items` and `in_tables` are the numbers of items in both filters, the latter without extra
/// copies. `with_limit` adds the filter's limit to an insertion error.
fn merge_error(
    refused: Refused,
    [items, in_tables]: [usize; 2],
    params: &ElasticParams,
    with_limit: impl FnOnce(InsertError) -> InsertError,
) -> MergeError {
    match refused {
        Refused::Insertion(error) => match error.kind() {
            InsertErrorKind::OutOfMemory { bytes } => MergeError::OutOfMemory(OutOfMemory::of(bytes)),
            _ => MergeError::Insert(with_limit(error)),
        },
        Refused::Full => MergeError::MaxCapacity {
            items,
            max_capacity: params.max_capacity(),
            needed: params.sufficient_capacity(params.most_distinct(wide(in_tables)).min(wide(items))).map(in_memory),
        },
    }
}

impl Partition {
    /// Returns the merge of this partition and the one with the same index in another filter. `how` determines the number of
    /// copies of each item. The result may be charged at most `max_charge` bytes.
    ///
    /// Inserting an item takes longer than copying it, so a sum begins with a copy of the larger first generation.
    fn merged(&self, other: &Self, how: Combine, max_charge: usize) -> Result<Self, Refused> {
        let is_other_copied = how == Combine::Sum && self.first.table_len() < other.first.table_len();
        let (copied, inserted) = if is_other_copied { (other, self) } else { (self, other) };
        let partition = Self::with_first(copied.first.normalized(self.dispatch())?);
        let mut merging =
            Merging { partition, source: inserted, how, max_charge, until_check: 1, has_new_items: is_other_copied };
        merging.insert_all(&inserted.first)?;
        for at in 0..self.later.len().max(other.later.len()) {
            let [ours, theirs] = [self, other].map(|partition| partition.later.get(at));
            merging.source = self;
            match ours {
                // An item that one filter has in an earlier generation than the other must be there first.
                Some(ours) if merging.has_new_items => merging.insert_all(ours)?,
                Some(ours) => merging.partition.push_generation(ours.normalized(self.dispatch())?)?,
                None => {}
            }
            merging.source = other;
            theirs.map_or(Ok(()), |theirs| merging.insert_all(theirs))?;
        }
        merging.partition.generations_mut().for_each(Generation::normalize_lists);
        merging.partition.drop_empty_generations();
        merging.check_limit()?;
        Ok(merging.partition)
    }

    /// Returns a copy of this partition without the copies of items that the one with the same index in another filter lacks.
    ///
    /// The other may have an item in an earlier generation, which knows fewer of its bits, or in a later one, which knows more. All
    /// copies there count that agree in the bits that both know: they may be this item's.
    fn intersection(&self, other: &Self) -> Result<Self, OutOfMemory> {
        let mut common = self.try_clone()?;
        for (ours, common) in self.generations().zip(common.generations_mut()) {
            let plan = ours.plan();
            let later = other.copies_in_later_generations(ours)?;
            ours.each_item(&mut |key, stored| {
                let class_key = plan.class_key(key);
                let same = other.generations().nth(plan.number.into()).map_or(0, |theirs| theirs.count_all(key));
                let theirs = other.count_earlier(plan, key).saturating_add(same).saturating_add(later.get(class_key));
                if theirs < stored.saturating_add(ours.extra_copies_of(class_key)) {
                    common.keep_at_most(key, theirs);
                }
                Ok::<(), OutOfMemory>(())
            })?;
        }
        common.drop_empty_generations();
        Ok(common)
    }

    /// Returns the number of copies that this partition has of an item of a generation with this plan in earlier ones.
    fn count_earlier(&self, plan: &GenerationPlan, key: Key) -> u32 {
        let counts = self.generations().take(plan.number.into()).map(|generation| {
            let earlier = plan.earlier(key, generation.plan());
            generation.count(earlier, generation.plan().extra(earlier))
        });
        counts.fold(0, u32::saturating_add)
    }

    /// Returns the number of copies by which a union has too few of an item of a generation with this plan: those that another
    /// partition has in it and in earlier ones, without those that this one has there. Copies that extra bits tell apart in that
    /// generation are of different items, so each number of them is compared by itself.
    fn missing_copies(&self, other: &Self, plan: &GenerationPlan, key: Key) -> u32 {
        let [ours, theirs] = [self, other].map(|partition| partition.generations().nth(plan.number.into()));
        let unknown = |generation: Option<&Generation>| generation.map_or(0, |generation| generation.count(key, 0));
        let entries =
            theirs.into_iter().flat_map(|theirs| theirs.entries_of(plan.class_key(key))).filter(|&(extra, _)| extra > 0);
        let known = entries.fold(0_u32, |sum, (extra, copies)| {
            let own = ours.map_or(0, |ours| ours.count(key, extra) - ours.count(key, 0));
            sum.saturating_add(copies.saturating_sub(own))
        });
        let theirs = other.count_earlier(plan, key).saturating_add(unknown(theirs)).saturating_add(known);
        theirs.saturating_sub(self.count_earlier(plan, key).saturating_add(unknown(ours)))
    }

    /// Returns the copies of items that another filter's generation has, and this partition in later generations, with the items' class
    /// keys in that generation.
    fn copies_in_later_generations(&self, earlier: &Generation) -> Result<ExtraCopies, OutOfMemory> {
        let (plan, mut counts) = (earlier.plan(), ExtraCopies::NONE);
        for generation in self.generations().skip(usize::from(earlier.plan().number) + 1) {
            generation.each_item(&mut |key, stored| {
                let projected = generation.plan().earlier(key, plan);
                if earlier.contains_exactly(projected) {
                    let class_key = plan.class_key(projected);
                    let copies = stored.saturating_add(generation.extra_copies_of(generation.plan().class_key(key)));
                    let added = copies.min(u32::MAX - counts.get(class_key));
                    counts.list_or_new(plan.class_keys())?.add(class_key, added)?;
                }
                Ok::<(), OutOfMemory>(())
            })?;
        }
        Ok(counts)
    }
}

/// A partition into which others are merged.
struct Merging<'a> {
    partition: Partition,
    /// The partition whose items are inserted.
    source: &'a Partition,
    how: Combine,
    max_charge: usize,
    /// The number of items before the next check of the limit.
    until_check: u32,
    /// True if a generation has items that this filter has not.
    has_new_items: bool,
}

impl Merging<'_> {
    /// Inserts all items of a generation. On failure, some have been inserted.
    fn insert_all(&mut self, theirs: &Generation) -> Result<(), Refused> {
        while self.partition.later.len() < theirs.plan().number.into() {
            let generation = self.partition.next_generation()?;
            self.partition.push_generation(generation)?;
            self.has_new_items = true;
        }
        let (is_first, is_sum) = (theirs.plan().number == 0, self.how == Combine::Sum);
        for (place, prefix) in theirs.places_bit_reversed() {
            match theirs.shard(place) {
                Some(table) if is_first && (is_sum || !theirs.has_extra_copies()) => {
                    self.insert_slots(theirs, Slots::of(&table, prefix)?, false)?;
                    self.check_limit()?;
                }
                Some(table) => table.each_item(prefix, &mut |key, copies| self.insert(theirs, key, copies))?,
                None => theirs.each_item_of_list(place, &mut |key, copies| self.insert(theirs, key, copies))?,
            }
        }
        // After all items, because lists do not tell extra bits apart, and some are tables by now.
        self.insert_entries(theirs)
    }

    /// Inserts the extra copies of a generation, whose items have been inserted: list by list, where single insertions would count them.
    fn insert_entries(&mut self, theirs: &Generation) -> Result<(), Refused> {
        let is_first_of_sum = theirs.plan().number == 0 && self.how == Combine::Sum;
        // In the order of keys, the first lists would become long before others split them.
        for list in theirs.extra_copy_list().into_iter().flat_map(Copies::lists) {
            if is_first_of_sum && self.partition.note_copies() {
                let mut entries = reserved(list.len())?;
                entries.extend(list.iter());
                self.partition.first.add_entries(entries)?;
                self.check_limit()?;
            } else {
                list.iter().try_for_each(|(entry, copies)| self.insert_counted(theirs, entry, copies))?;
            }
        }
        Ok(())
    }

    /// Inserts the items of a table of a first generation, or some of them, without extra copies: those that we have not bucket by
    /// bucket, which takes a fraction of the time, and the others one by one or, in a merge, in bulk. They go into a table of ours
    /// with the same prefix or a shorter one. If it has no room, it splits first, as with single insertions, and if ours are deeper,
    /// the items are divided among them. If there is a list, or if the items are so few that reading a table of ours takes longer
    /// than inserting them, all are inserted one by one.
    fn insert_slots(&mut self, theirs: &Generation, mut slots: Slots, are_absent: bool) -> Result<(), Refused> {
        let first = &mut self.partition.first;
        let Some((place, ours)) = first.table_for(&slots) else { return self.insert_each(theirs, &slots) };
        let (len, depth) = (slots.len(), ours.params().depth);
        if len == 0 {
            return Ok(());
        }
        let deeper = u32::from(depth.saturating_sub(slots.depth()));
        let few_one_in = if deeper == 0 { FEW_ONE_IN } else { FEW_OF_PARTS_ONE_IN };
        if len >> deeper < ours.params().slots() / few_one_in {
            return self.insert_each(theirs, &slots);
        }
        if deeper > 0 {
            return slots.split()?.into_iter().try_for_each(|half| self.insert_slots(theirs, half, are_absent));
        }
        if !are_absent {
            let present = slots.take_present(&ours)?;
            if self.how == Combine::Sum && present.len() > len / MANY_ONE_IN {
                return self.insert_with_copies(theirs, slots, present);
            }
            self.insert_slots(theirs, slots, true)?;
            // A union adds nothing to an item of which the other filter has one copy.
            let least = if self.how == Combine::Sum { 1 } else { 2 };
            return present.each_item(&mut |key, copies| if copies < least { Ok(()) } else { self.insert(theirs, key, copies) });
        }
        if ours.len() + len > index(first.plan().full_at(depth).into()) {
            let may_split = depth < first.max_split_depth();
            if may_split && first.split(place, depth + 1, slots.stream(), usize::MAX, |_, _| true)? {
                return self.insert_slots(theirs, slots, true);
            }
            return self.insert_each(theirs, &slots);
        }
        if !first.add_slots(place, &slots)? {
            return self.insert_each(theirs, &slots);
        }
        self.has_new_items = true;
        Ok(())
    }

    /// Inserts the items of a table of which many are present: all of them one by one, or in bulk first those that are absent, and then
    /// copies of the present ones.
    ///
    /// In bulk, copies are counted. So this is for partitions where single insertions count them, too, because copies are frequent, and
    /// for tables of which we have most items: until copies are frequent, those of such items that find a free slot go into a table.
    fn insert_with_copies(&mut self, theirs: &Generation, absent: Slots, present: Slots) -> Result<(), Refused> {
        let has_frequent_copies = self.partition.note_copies();
        if !has_frequent_copies && present.len() < absent.len() {
            let mut all = absent;
            all.toggle(&present);
            return self.insert_each(theirs, &all);
        }
        self.insert_slots(theirs, absent, true)?;
        Ok(self.partition.first.add_present(present, !has_frequent_copies)?)
    }

    /// Inserts items one by one.
    fn insert_each(&mut self, theirs: &Generation, slots: &Slots) -> Result<(), Refused> {
        slots.each_item(&mut |key, copies| self.insert(theirs, key, copies))
    }

    /// Checks the limit now and then: computing the charge takes time.
    fn check(&mut self) -> Result<(), Refused> {
        self.until_check -= 1;
        if self.until_check > 0 { Ok(()) } else { self.check_limit() }
    }

    /// Fails if the limit is exceeded.
    fn check_limit(&mut self) -> Result<(), Refused> {
        self.until_check = CHECK_INTERVAL;
        let more = self.partition.charged_bytes().saturating_sub(self.max_charge);
        Ok(InsertError::check_budget(more, 0)?)
    }

    /// Inserts an item of a generation, of which that has `stored` copies in its table or list. A union also inserts those that are
    /// counted beside the table with unknown extra bits, and all of them if an earlier generation has the item: their number decides.
    fn insert(&mut self, theirs: &Generation, key: Key, stored: u32) -> Result<(), Refused> {
        self.check()?;
        let (plan, class_key) = (theirs.plan(), theirs.plan().class_key(key));
        if self.add_in_earlier(plan, key, stored)? {
            return Ok(());
        }
        let has_frequent_copies = self.partition.note_copies();
        let Some(generation) = self.partition.generations_mut().nth(plan.number.into()) else { return Ok(()) };
        let is_present = generation.contains_exactly(key);
        self.has_new_items |= !is_present;
        // The first entry has unknown extra bits, if any has.
        let counted = theirs.entries_of(class_key).take(usize::from(self.how == Combine::Union)).filter(|&(extra, _)| extra == 0);
        let theirs = counted.fold(stored, |sum, (_, copies)| sum.saturating_add(copies));
        let new = self.how.added(|| if is_present { generation.count(key, 0) } else { 0 }, theirs);
        // Copies that are counted with their extra bits come on top of those whose extra bits are unknown. In a union, the other
        // filter may have counted the same copies without them.
        if self.how == Combine::Union && new > 0 {
            generation.take_from_each_entry(class_key, |_| new);
        }
        let mut added = new;
        // As many copies go into tables as with single insertions.
        let insert =
            |generation: &mut Generation| if is_present { generation.insert_even_if_full(key) } else { generation.insert(key) };
        while added > 0 && !has_frequent_copies && insert(generation) {
            added -= 1;
        }
        // A second copy may be another item, so it is inserted like one.
        let is_stored = is_present || added < new && (added > 1 || has_frequent_copies);
        if added > 0 && is_stored {
            generation.add_copies(key, 0, added, usize::MAX)?;
        } else if added > 0 && !generation.add(key, added, false, usize::MAX)? {
            if !generation.insert_even_if_full(key) {
                return Err(Refused::Full);
            }
            generation.add_copies(key, 0, added - 1, usize::MAX)?;
        }
        Ok(())
    }

    /// If an earlier generation has an item, counts copies of it there. A sum adds this number of copies, and a union as many as are
    /// missing. Returns false if none has the item.
    fn add_in_earlier(&mut self, plan: &GenerationPlan, key: Key, copies: u32) -> Result<bool, Refused> {
        let is_in = |generation: &Generation| generation.contains_exactly(plan.earlier(key, generation.plan()));
        let Some(at) = self.partition.generations().take(plan.number.into()).position(is_in) else { return Ok(false) };
        let added = match self.how {
            Combine::Sum => copies,
            // A filter may have copies of an item in several generations: where the last one has no room for a chosen item, it goes
            // into an earlier one, which may not tell it apart from items of later ones.
            Combine::Union => self.partition.missing_copies(self.source, plan, key),
        };
        if let Some(generation) = self.partition.generations_mut().nth(at).filter(|_| added > 0) {
            let earlier = plan.earlier(key, generation.plan());
            generation.add_copies(earlier, generation.plan().extra(earlier), added, usize::MAX)?;
        }
        Ok(true)
    }

    /// Inserts the copies of an entry of extra copies, whose item is there. A union has inserted those without extra bits with the
    /// item, and all of them with an item of an earlier generation.
    fn insert_counted(&mut self, theirs: &Generation, entry: ClassKey, copies: u32) -> Result<(), Refused> {
        self.check()?;
        let (plan, is_sum) = (theirs.plan(), self.how == Combine::Sum);
        let (class_key, extra) = plan.entry_parts(entry);
        let Some(key) = plan.item_of(class_key).filter(|_| is_sum || extra > 0) else { return Ok(()) };
        if self.add_in_earlier(plan, key, copies)? {
            return Ok(());
        }
        let has_frequent_copies = self.partition.note_copies();
        let Some(generation) = self.partition.generations_mut().nth(plan.number.into()) else { return Ok(()) };
        let added = match self.how {
            Combine::Sum => {
                let stored = |_: &u32| extra == 0 && !has_frequent_copies && generation.insert_even_if_full(key);
                copies - low_half(wide((0..copies).take_while(stored).count()))
            }
            Combine::Union => {
                let others = generation.count(key, 0);
                let own = generation.count(key, extra) - others;
                copies.saturating_sub(others.saturating_sub(theirs.count(key, 0))).saturating_sub(own)
            }
        };
        if added > 0 { Ok(generation.add_copies(key, extra, added, usize::MAX)?) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        ElasticFilter,
        bits::{index, wide},
        table::steps,
    };

    /// Single insertions would move dozens of entries of a list for each item.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn copies_of_common_items_are_counted_in_bulk() {
        let planned = |capacity| ElasticFilter::builder().capacity(capacity).max_capacity(capacity);
        for (builder, rate, items) in [
            (ElasticFilter::builder(), 0.001, 120_000),
            (planned(130_000), 0.001, 120_000),
            (planned(300_000), 0.001, 120_000),
            // The keys of copies have more than 64 bits behind the prefix.
            (ElasticFilter::builder().max_capacity(1_000_000_000), 2.5e-9, 3000),
        ] {
            let mut filter = builder.false_positive_rate(rate).build().expect("valid parameters");
            filter.insert_iter(0..items).expect("the filter grows");
            let other = filter.clone();
            for number in 2..5 {
                steps::taken();
                filter.merge(&other).expect("there is room");
                let (_, entries) = steps::taken();
                assert!(entries <= 4 * wide(other.len()), "{entries} entries moved: {filter}");
                assert_eq!(filter.len(), other.len() * index(number.into()));
                let wrong = (0..items).filter(|item: &u64| filter.count(item) != number).count();
                assert!(wrong as f64 <= 2.0 * rate * items as f64, "{wrong} counts are wrong: {filter}");
            }
        }
    }
}
