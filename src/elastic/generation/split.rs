//! Splitting and merging of shards: the decision, the tables and the directory.
//!
//! A full shard splits in two. Each item gives up the first of its upper bits, which selects its half:
//!
//! ```text
//! a shard, prefix 01            prefix 010                prefix 011
//! bucket 0  │ 1.a 0.b 1.c     │ │ b            │          │ a c          │
//! bucket 1  │ 0.d 0.e 1.f 1.g │ │ d e          │          │ f g          │
//! ```
//!
//! A split allocates first, then tries, then commits. It fills only the half of the new item, and inserts the item there. If that half
//! has no room either, it tries the next depth. Otherwise it fills the other parts and changes the directory. Merging two underfull
//! shards is the reverse.

use super::{Dispatch, Generation, List, Place, Shard, ShardMut, ShardRecord};
use crate::{
    bits::{index, low_half, wide},
    elastic::{directory::Directory, pool::EMPTY_LIST_BYTES, stream::Window},
    filter::InsertError,
    storage::OutOfMemory,
    table::copies::Copies,
};

/// Returns the depths of the parts into which a shard splits, with the number of parts of each.
fn parts(from: u8, depth: u8) -> impl Iterator<Item = (u8, usize)> {
    (from + 1..=depth).map(move |part| (part, if part == depth { 2 } else { 1 }))
}

impl Generation {
    /// Splits a shard repeatedly, until the stream leads to a part of this depth. Calls `act` with that part, and returns its
    /// result. If `act` returns false, it must have changed nothing, and the split is undone. On failure, nothing changes.
    pub fn split(
        &mut self,
        place: Place,
        depth: u8,
        stream: u64,
        budget: usize,
        act: impl FnOnce(&mut Self, Place) -> bool,
    ) -> Result<bool, InsertError> {
        let from = self.pool.depth(place);
        let charge = self.charge_for_splits(from, depth);
        InsertError::check_budget(charge, budget)?;
        // The stream bits between the shard's prefix and that of a part.
        let bits_to = |depth: u8| low_half(Window::new(from.into(), (depth - from).into()).extract(stream));
        self.pool.add_levels(&self.plan, depth, self.pool.tables())?;
        let reserved = parts(from, depth).try_for_each(|(depth, tables)| self.pool.reserve(depth, tables));
        let mut with_lists = Ok(());
        let is_split = reserved.and_then(|()| self.directory.deepened(depth)).map(|deeper| {
            let part = self.push_part(place, depth, bits_to(depth));
            with_lists = if budget < usize::MAX { self.check_lists(place, part, charge, budget) } else { Ok(()) };
            let is_done = with_lists.is_ok() && act(self, part);
            if is_done {
                // Nothing fails from here on.
                if let Some(deeper) = deeper {
                    self.directory = deeper;
                }
                self.commit_split(place, part, depth, bits_to);
            } else {
                self.remove_shard(part, &mut |_, _| ());
            }
            is_done
        });
        if is_split != Ok(true) {
            (from + 1..=depth).for_each(|depth| self.pool.free_empty_blocks(depth, &mut |_, _, _| ()));
            self.pool.drop_unused_levels();
        }
        with_lists?;
        Ok(is_split?)
    }

    /// Replaces a shard by its parts. Their memory is reserved, so this cannot fail.
    fn commit_split(&mut self, whole: Place, part: Place, depth: u8, bits_to: impl Fn(u8) -> u32) {
        let record = self.pool.record(whole);
        let prefix_of = |depth: u8| record.prefix() << (depth - record.depth());
        self.point_to(part);
        for depth in record.depth() + 1..=depth {
            let other = self.push_part(whole, depth, bits_to(depth) ^ 1);
            self.point_to(other);
        }
        self.remove_shard(whole, &mut |_, _| ());
        // Parts may have moved, so each is found by its prefix.
        for part in record.depth() + 1..=depth {
            for bits in [bits_to(part), bits_to(part) ^ 1] {
                if let Some(place) = self.directory.at(part, prefix_of(part) | bits) {
                    self.list_again(place);
                }
            }
        }
    }

    /// Returns by how much splitting a shard from depth `from` to `depth` raises the charge while the shard itself still exists.
    fn charge_for_splits(&self, from: u8, depth: u8) -> usize {
        let directory = if depth > self.global_depth() { Directory::<Place>::bytes_at_depth(depth) } else { 0 };
        let charges = parts(from, depth).map(|(depth, tables)| self.pool.charge_for_more(&self.plan, depth, tables));
        charges.fold(directory, usize::saturating_add)
    }

    /// Checks the budget once more, for the parts of `whole` that become lists after a split. These have few items, but where some have
    /// many copies, all counts are long, and lists may be charged more than tables. Parts with more items are counted as if they were the
    /// longest lists. `part` is the part to which an item is added, and `charge` that of all parts as tables.
    #[inline(never)]
    fn check_lists(&self, whole: Place, part: Place, charge: usize, budget: usize) -> Result<(), InsertError> {
        let [(from, items), (depth, own)] = [whole, part].map(|place| {
            let record = self.pool.record(place);
            (record.depth(), record.items())
        });
        let mut needed = charge;
        for part in from..=depth {
            // There is no part of depth `from`: that is the turn of the one with the new item. Each other part has some of the other
            // items.
            let (depth, items) = if part == from { (depth, own + 1) } else { (part, items - own) };
            let list = self.charge_for_list(items.min(self.plan.list_again_at(depth)));
            needed = needed.saturating_add(list.saturating_sub(self.pool.level(depth).charge_per_table()));
        }
        InsertError::check_budget(needed.saturating_sub(self.pool.level(from).charge_per_table()), budget)
    }

    /// Returns the most that a list is charged which replaces a table with this many items.
    #[inline(never)]
    fn charge_for_list(&self, items: usize) -> usize {
        // Counts in lists include the copies in the table, so that 0, 1 or more bytes become 1, 2 or 4.
        let count_bytes = 1 << self.copies.list().map_or(0, Copies::most_count_bytes).min(2);
        EMPTY_LIST_BYTES + List::bytes_for(self.plan.key_bytes(), items, count_bytes)
    }

    /// Adds a shard of this depth with the items of `whole` whose upper bits begin with `bits`. Room must be reserved. The
    /// directory does not lead to the new shard yet.
    fn push_part(&mut self, whole: Place, depth: u8, bits: u32) -> Place {
        let record = self.pool.record(whole);
        let place = self.pool.push(ShardRecord::new(depth, record.prefix() << (depth - record.depth()) | bits, 0));
        let is_complete = self.fill(whole, place, &|part, whole| part.fill_part(whole, bits));
        debug_assert!(is_complete, "a bucket of a part never has more items than that of the whole");
        place
    }

    /// Calls `fill` to copy items from one shard to another of a different depth. Returns its result.
    fn fill(&mut self, from: Place, to: Place, fill: &dyn Fn(&mut ShardMut<'_>, &Shard<'_>) -> bool) -> bool {
        let [source, target] = [from, to].map(|place| self.pool.record(place));
        let [source_layout, layout] = [source, target].map(|record| self.pool.level(record.depth()).layout);
        let (read, written) = self.pool.two_tables(from, to);
        let source = source_layout.shard(self.dispatch, read, source.items());
        let written = &mut written[..layout.params.padded_bytes()];
        let mut shard = ShardMut::from_parts(layout.params, written, wide(target.items())).with_dispatch(self.dispatch);
        let (is_filled, items) = (fill(&mut shard, &source), shard.len());
        self.pool.set_record(to, target.with_items(items));
        is_filled
    }

    /// Points the directory's entries for a shard at its place.
    pub fn point_to(&mut self, place: Place) {
        let record = self.pool.record(place);
        self.directory.point(record.depth(), record.prefix(), place);
    }

    /// Removes a shard to which the directory does not lead, or soon will not. Calls `moved` with the old and new place of each
    /// shard that has moved.
    pub(super) fn remove_shard(&mut self, place: Place, moved: &mut dyn FnMut(Place, Place)) {
        let Self { directory, pool, .. } = self;
        pool.remove(place, &mut |record, from, to| {
            directory.point(record.depth(), record.prefix(), to);
            moved(from, to);
        });
    }

    /// Adds an empty table beside the list with this record. The directory does not lead to it yet.
    pub(super) fn push_table_for(&mut self, record: ShardRecord) -> Result<Place, OutOfMemory> {
        self.pool.add_levels(&self.plan, record.depth(), self.pool.tables())?;
        let reserved = self.pool.reserve(record.depth(), 1);
        let place = reserved.map(|()| self.pool.push(record.with_items(0)));
        self.pool.drop_unused_levels();
        place
    }
}

// Merging.

impl Generation {
    /// Makes the directory as shallow as the shards allow.
    fn shrink_directory(&mut self) {
        let deepest = self.pool.greatest_depth().max(self.plan.min_depth);
        while self.global_depth() > deepest {
            self.directory.halve();
        }
    }

    /// Returns the two halves of the shard whose split has made the one with this prefix or with its sibling's, unless one of them has
    /// been split further or both have more than `most` items together.
    fn halves(&self, depth: u8, prefix: u32, most: usize) -> Option<[Place; 2]> {
        if depth == self.plan.min_depth || depth > self.global_depth() {
            return None;
        }
        let halves = [self.directory.at(depth, prefix & !1)?, self.directory.at(depth, prefix | 1)?];
        let are_whole = halves.iter().all(|&half| self.pool.depth(half) == depth);
        (are_whole && halves.iter().map(|&half| self.items(half)).sum::<usize>() <= most).then_some(halves)
    }

    /// Merges a shard that has become underfull with its sibling, or replaces it by a list, if there is memory and neither raises the
    /// charge.
    #[cold]
    #[inline(never)]
    pub(super) fn shrink_shard(&mut self, place: Place) {
        let is_merged = self.merge_with_sibling(place, 2 * index(self.merge_at.into()));
        if !is_merged.unwrap_or(true)
            && self.pool.list(place).is_none()
            && self.items(place) <= self.plan.list_again_at(u8::MAX)
            && self.charge_for_list(self.items(place)) <= self.pool.charge_of(place)
        {
            self.list_again(place);
        }
    }

    /// Returns false if new filters have a table in this place. It then stays one, however few items it has. (Removals that merge the
    /// lists of its two halves leave a list even there, since a table would raise the charge.)
    fn may_be_list(&self, place: Place) -> bool {
        self.plan.begins_as_list() || self.pool.depth(place) > self.plan.min_depth
    }

    /// Replaces a table with few items by a list, if there is memory.
    #[inline(never)]
    fn list_again(&mut self, place: Place) {
        let list_again_at = self.plan.list_again_at(self.pool.depth(place));
        if self.may_be_list(place) && self.items(place) <= list_again_at && self.pool.list(place).is_none() {
            _ = self.table_to_list(place);
        }
    }

    /// Merges a shard with its sibling if the two have at most `most` items. Returns false if nothing has changed. Otherwise `place`
    /// is no longer valid, even after an error.
    pub fn merge_with_sibling(&mut self, place: Place, most: usize) -> Result<bool, OutOfMemory> {
        let record = self.pool.record(place);
        let Some(halves) = self.halves(record.depth(), record.prefix(), most) else { return Ok(false) };
        if self.charge_for_merged(halves) > halves.iter().map(|&half| self.pool.charge_of(half)).sum() {
            return Ok(false);
        }
        self.merge_halves(halves, most)
    }

    /// [Merges](Self::merge_with_sibling) two halves, whatever that is charged.
    fn merge_halves(&mut self, halves: [Place; 2], most: usize) -> Result<bool, OutOfMemory> {
        match halves.map(|half| self.pool.list(half).is_some()) {
            [true, true] => self.merge_lists(halves).map(|()| true),
            [false, false] => self.merge_tables(halves),
            [true, false] => Ok(self.merge_list_with_table(halves[0], most)),
            [false, true] => Ok(self.merge_list_with_table(halves[1], most)),
        }
    }

    /// Merges a list with its sibling, a table: the list becomes a table first, and a list again if the two tables cannot be merged.
    /// Returns false, and changes nothing, if it cannot become a table.
    fn merge_list_with_table(&mut self, list: Place, most: usize) -> bool {
        let record = self.pool.record(list);
        if !self.list_to_table(list, None, usize::MAX).unwrap_or(false) {
            return false;
        }
        let half = |generation: &Self| generation.directory.at(record.depth(), record.prefix());
        let is_merged = half(self).map_or(Ok(false), |table| self.merge_with_sibling(table, most));
        if !is_merged.unwrap_or(false)
            && let Some(table) = half(self)
        {
            // However long it was.
            _ = self.table_to_list(table);
        }
        // Shards have moved, even if the two are not merged.
        true
    }

    /// Returns what the shard is charged that replaces two halves, and copies that would be counted beside its table.
    fn charge_for_merged(&self, halves: [Place; 2]) -> usize {
        match halves.map(|half| self.pool.list(half)) {
            [Some(lower), Some(upper)] => {
                let count_bytes = lower.view().count_bytes().max(upper.view().count_bytes());
                EMPTY_LIST_BYTES + List::bytes_for(lower.key_bytes(), lower.len() + upper.len(), count_bytes)
            }
            lists => {
                let counted = lists.into_iter().flatten().flat_map(List::iter).filter(|&(_, copies)| copies > 1).count();
                let entries = self.charge_for_copies(counted).saturating_sub(self.charge_for_copies(0));
                self.pool.charge_for_more(&self.plan, self.pool.depth(halves[0]) - 1, 1).saturating_add(entries)
            }
        }
    }

    fn merge_lists(&mut self, [lower, upper]: [Place; 2]) -> Result<(), OutOfMemory> {
        let record = self.pool.record(lower);
        let (Some(first), Some(second)) = (self.pool.list(lower), self.pool.list(upper)) else { return Ok(()) };
        let mut joined = first.try_clone()?;
        joined.append(second)?;
        self.pool.reserve_lists(1)?;
        let whole = self.pool.push_list(record.depth() - 1, record.prefix() >> 1, joined);
        self.replace_halves([lower, upper], whole);
        Ok(())
    }

    fn merge_tables(&mut self, halves: [Place; 2]) -> Result<bool, OutOfMemory> {
        let record = self.pool.record(halves[0]);
        let whole = self.push_table_for(ShardRecord::new(record.depth() - 1, record.prefix() >> 1, 0))?;
        let is_filled = (0..).zip(halves).all(|(bit, half)| self.fill(half, whole, &|whole, half| whole.add_half(half, bit)));
        if is_filled {
            self.replace_halves(halves, whole);
        } else {
            // The directory does not lead to it.
            self.remove_shard(whole, &mut |_, _| ());
        }
        Ok(is_filled)
    }

    /// Removes two halves, and points the directory at the shard that has replaced them.
    fn replace_halves(&mut self, mut halves: [Place; 2], mut whole: Place) {
        for half in 0..halves.len() {
            let mut places = halves;
            self.remove_shard(halves[half], &mut |from, to| {
                for place in places.iter_mut().chain([&mut whole]) {
                    if *place == from {
                        *place = to;
                    }
                }
            });
            halves = places;
        }
        self.point_to(whole);
        self.shrink_directory();
    }

    /// Merges all siblings that together fill at most nine tenths of a table, as far as there is memory for it, at depths where it
    /// takes no memory.
    pub fn merge_all_siblings(&mut self) {
        let most = self.plan.shrink_at();
        for depth in (self.plan.min_depth + 1..=self.global_depth()).rev() {
            let pairs = (0..1 << depth).step_by(2);
            let tables = pairs.clone().filter_map(|prefix| self.halves(depth, prefix, most));
            let wholes = tables.filter(|halves| halves.iter().all(|&half| self.pool.list(half).is_none())).count();
            let frees_memory = wholes > 0 && self.merging_frees_memory(depth, 2 * wholes, wholes, None);
            // Some pairs of tables may turn out not to fit into one. What lists then need has to be free without them.
            for are_tables in [true, false] {
                for prefix in pairs.clone() {
                    let Some(halves) = self.halves(depth, prefix, most) else { continue };
                    _ = match halves.map(|half| self.pool.list(half)) {
                        [None, None] if are_tables && frees_memory => self.merge_tables(halves),
                        [Some(_), Some(_)] if !are_tables => self.merge_with_sibling(halves[0], most),
                        [Some(list), None] | [None, Some(list)]
                            if !are_tables && self.merging_frees_memory(depth, 1, 1, Some(list)) =>
                        {
                            self.merge_halves(halves, most)
                        }
                        _ => continue,
                    };
                }
            }
        }
    }

    /// Returns true if replacing this many tables, and a list, by `wholes` tables raises neither the size nor the charge.
    fn merging_frees_memory(&self, depth: u8, tables: usize, wholes: usize, list: Option<&List>) -> bool {
        let counted = list.map_or(0, |list| list.iter().filter(|&(_, copies)| copies > 1).count());
        let (list, copies) = (list.map_or(0, |list| EMPTY_LIST_BYTES + list.size_in_bytes()), self.charge_for_copies(counted));
        let [size, charge] = self.pool.merged_bytes(depth, tables, wholes);
        let is_less = |[freed, taken]: [usize; 2], copies_before: usize| {
            taken.saturating_add(if counted > 0 { copies.saturating_sub(copies_before) } else { 0 }) <= freed + list
        };
        is_less(size, self.copies.size_in_bytes()) && is_less(charge, self.charge_for_copies(0))
    }

    /// Returns a copy with this kernel. It has the shards that a generation has into which the same items have been inserted,
    /// unless memory is short: merges all siblings that fit into one table, and makes each shard a list or a table as a split does.
    pub fn normalized(&self, dispatch: Dispatch) -> Result<Self, OutOfMemory> {
        let (mut copy, most) = (Self { dispatch, ..self.try_clone()? }, index(self.plan.full_at(0).into()));
        for depth in (copy.plan.min_depth + 1..=copy.global_depth()).rev() {
            for prefix in (0..1 << depth).step_by(2) {
                if let Some(halves) = copy.halves(depth, prefix, most) {
                    // A merged list may be charged more than the two, since the memory of lists is rounded up.
                    _ = copy.merge_halves(halves, most);
                }
            }
        }
        copy.normalize_lists();
        Ok(copy)
    }

    /// Makes each shard a list or a table as its depth and number of items demand. Lists may otherwise be longer, and are left in the
    /// place of a new filter's tables.
    pub fn normalize_lists(&mut self) {
        let mut entry = 0;
        while let Some(&place) = self.directory.entries().get(entry) {
            let most = self.plan.list_again_at(self.pool.depth(place));
            match self.pool.list(place) {
                Some(list) if list.len() > most || !self.may_be_list(place) => _ = self.list_to_table(place, None, usize::MAX),
                _ => self.list_again(place),
            }
            let place = self.directory.entries()[entry];
            entry += 1 << (self.global_depth() - self.pool.depth(place));
        }
    }
}
