//! A layer: the shards of a lane, found by a directory as in extendible hashing.

use alloc::vec::Vec;
use core::iter;

use super::{
    error::Refused,
    shard::{self, Key, Shard, ShardParams, Window},
};
use crate::{
    bits::{PADDING, index, low_half, wide},
    filter::Located,
    kernel::Dispatch,
    params::false_positive_rate,
    storage::{OutOfMemory, reserve, reserved},
    table::TableParams as _,
};

/// The share of its slots from which on a shard is split, if it can be. Fuller ones would take more time to fill than they save
/// in space.
const FULL: (usize, usize) = (15, 16);

/// A full shard is split only if one slot in so many is taken: otherwise copies of a few items fill their buckets.
const LEAST_TO_SPLIT: usize = 2;

/// A shard, and the bits of the stream that lead to it.
#[derive(Clone)]
struct Entry {
    shard: Shard,
    /// The bits of the stream that it stores.
    upper: Window,
    /// The bits of the stream between those of the lane and the upper ones.
    prefix: u32,
    /// The number of bits of `prefix`.
    depth: u8,
}

impl Entry {
    fn new(shard: Shard, prefix: u32, depth: u8) -> Self {
        Self { upper: shard.params().upper(), shard, prefix, depth }
    }
}

/// Which shards a lane has for its items.
#[derive(Clone)]
pub(super) struct Layer {
    entries: Vec<Entry>,
    /// For each value of the `depth` bits after those of the lane, the index of its entry. Shards of a smaller depth are there
    /// several times, in a row.
    directory: Vec<u32>,
    directory_bits: Window,
    depth: u8,
    /// Its number among the plans of its lane. Layers of higher numbers know more bits of each item.
    number: usize,
    /// The number of items.
    len: usize,
    /// Bytes of all tables with their padding.
    table_bytes: usize,
    /// Bits of the stream that belong to the lane.
    lane_bits: u8,
    /// The number of items from which on a shard is split.
    full_from: usize,
    /// Shards of this depth are not joined, and those of the other are not split.
    least_depth: u8,
    most_depth: u8,
}

/// What a layer is planned as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LayerPlan {
    pub(super) number: usize,
    /// The parameters of a shard of depth 0.
    pub(super) whole: ShardParams,
    pub(super) least_depth: u8,
    pub(super) most_depth: u8,
}

impl LayerPlan {
    pub(super) fn shard(&self, depth: u8) -> ShardParams {
        let whole = self.whole;
        ShardParams { upper_bits: whole.upper_bits - depth, known_bits: whole.known_bits + depth, ..whole }
    }
}

impl Layer {
    /// Empty shards of the least depth.
    pub(super) fn new(plan: LayerPlan, dispatch: Dispatch) -> Result<Self, OutOfMemory> {
        let depth = plan.least_depth;
        let (shards, params) = (1_usize << depth, plan.shard(depth));
        let mut entries = reserved(shards)?;
        for prefix in 0..1 << depth {
            entries.push(Entry::new(Shard::new(params)?.with_dispatch(dispatch), prefix, depth));
        }
        let mut directory = reserved(shards)?;
        directory.extend(0..1 << depth);
        Ok(Self {
            entries,
            directory,
            directory_bits: Window::new(plan.whole.known_bits.into(), depth.into(), 0),
            depth,
            number: plan.number,
            len: 0,
            table_bytes: shards * (params.table_bytes() + PADDING),
            full_from: params.slots() / FULL.1 * FULL.0,
            lane_bits: plan.whole.known_bits,
            least_depth: plan.least_depth,
            most_depth: plan.most_depth,
        })
    }

    /// The index of the shard for an item.
    #[inline]
    pub(super) fn find(&self, key: Key) -> usize {
        index(self.directory[index(self.directory_bits.of(key.stream))].into())
    }

    /// The shard for an item, and where it keeps the item.
    #[inline]
    pub(super) fn locate(&self, key: Key) -> (&Shard, Located) {
        let Entry { shard, upper, .. } = &self.entries[self.find(key)];
        (shard, key.locate(*upper))
    }

    #[inline]
    pub(super) fn contains(&self, key: Key) -> bool {
        let (shard, located) = self.locate(key);
        shard.contains_located(located)
    }

    /// Inserts an item. If its shard is full and should be split, returns the index of that shard, and nothing has changed.
    #[inline]
    pub(super) fn insert(&mut self, key: Key) -> Result<(), usize> {
        let at = self.find(key);
        let Entry { shard, depth, .. } = &self.entries[at];
        if shard.len() >= self.full_from && *depth < self.most_depth {
            return Err(at);
        }
        self.insert_at(at, key)
    }

    /// Inserts an item into its shard, which is at this index, if that has room at all. Otherwise nothing has changed.
    #[inline]
    fn insert_at(&mut self, at: usize, key: Key) -> Result<(), usize> {
        let Entry { shard, upper, .. } = &mut self.entries[at];
        if !key.insert_into(shard, *upper) {
            return Err(at);
        }
        self.len += 1;
        Ok(())
    }

    /// Removes one copy of an item. Returns the index of the shard that had one.
    #[inline]
    pub(super) fn remove(&mut self, key: Key) -> Option<usize> {
        let at = self.find(key);
        let Entry { shard, upper, .. } = &mut self.entries[at];
        let is_removed = shard.remove_located(key.locate(*upper));
        self.len -= usize::from(is_removed);
        is_removed.then_some(at)
    }

    #[inline]
    pub(super) fn shard(&self, at: usize) -> &Shard {
        &self.entries[at].shard
    }

    pub(super) fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.entries.iter().map(|entry| &entry.shard)
    }

    pub(super) fn shards_mut(&mut self) -> impl Iterator<Item = &mut Shard> {
        self.entries.iter_mut().map(|entry| &mut entry.shard)
    }

    /// Shards in the order of the streams that lead to them, with the bits that do.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (&Shard, u64)> {
        let mut next = 0;
        iter::from_fn(move || {
            let entry = &self.entries[index((*self.directory.get(next)?).into())];
            next += 1 << (self.depth - entry.depth);
            Some((&entry.shard, entry.prefix.into()))
        })
    }

    /// Inserts an item for which [`insert`](Self::insert) has found the shard at this index full. The tables may take `allowed` more
    /// bytes. Returns false if the upper bits are used up, so that the shard cannot be split.
    ///
    /// Nothing has changed, unless the item was inserted.
    pub(super) fn insert_growing(&mut self, at: usize, key: Key, allowed: usize) -> Result<bool, Refused> {
        if let Some(refused) = copies(self.shard(at), key) {
            return Err(refused);
        }
        match self.insert_splitting(at, key, allowed) {
            // There may be room as it is.
            Err(refused) => self.insert_at(at, key).map_or(Err(refused), |()| Ok(true)),
            result => result,
        }
    }

    /// Splits the full shard at this index until the item has room in the part that it belongs to, and inserts it there. The
    /// tables may take `allowed` more bytes. Returns false if the upper bits are used up before.
    ///
    /// Nothing has changed, unless the item was inserted.
    fn insert_splitting(&mut self, at: usize, key: Key, allowed: usize) -> Result<bool, Refused> {
        let Entry { shard: ref full, prefix, depth, .. } = self.entries[at];
        let (mut depth, mut prefix) = (depth, prefix);
        let (bytes_before, mut bytes_after) = (bytes(full), 0);
        let mut others = reserved(usize::from(self.most_depth - depth))?;
        let mut part: Option<Shard> = None;
        loop {
            if depth == self.most_depth {
                return Ok(false);
            }
            let whole = part.as_ref().unwrap_or(full);
            let needed = bytes_after + 2 * whole.params().half().map_or(0, |half| half.table_bytes() + PADDING);
            if needed.saturating_sub(bytes_before) > allowed {
                return Err(Refused::Limit { needed: needed - bytes_before });
            }
            let Some([first, second]) = shard::split(whole)? else { return Ok(false) };
            (depth, prefix) = (depth + 1, prefix << 1);
            let is_second = Window::new(u32::from(self.lane_bits) + u32::from(depth) - 1, 1, 0).of(key.stream) == 1;
            let (mut mine, other) = if is_second { (second, first) } else { (first, second) };
            bytes_after += bytes(&other);
            others.push(Entry::new(other, prefix | u32::from(!is_second), depth));
            prefix |= u32::from(is_second);
            let upper = mine.params().upper();
            if key.insert_into(&mut mine, upper) {
                bytes_after += bytes(&mine);
                others.push(Entry::new(mine, prefix, depth));
                break;
            }
            if let Some(refused) = copies(&mine, key) {
                return Err(refused);
            }
            part = Some(mine);
        }
        reserve(&mut self.entries, others.len())?;
        self.deepen(depth)?;
        // Nothing can fail from here on.
        self.table_bytes = self.table_bytes + bytes_after - bytes_before;
        self.len += 1;
        if let Some(mine) = others.pop() {
            self.entries[at] = mine;
            self.point_to(at);
        }
        for other in others {
            self.entries.push(other);
            self.point_to(self.entries.len() - 1);
        }
        Ok(true)
    }

    /// Writes the directory's entries for a shard.
    fn point_to(&mut self, at: usize) {
        let Entry { prefix, depth, .. } = self.entries[at];
        let unused = self.depth - depth;
        let first = index(prefix.into()) << unused;
        self.directory[first..first + (1 << unused)].fill(low_half(wide(at)));
    }

    /// Makes the directory at least so deep.
    fn deepen(&mut self, depth: u8) -> Result<(), OutOfMemory> {
        if depth > self.depth {
            let copies = 1 << (depth - self.depth);
            let mut deeper = reserved(copies * self.directory.len())?;
            deeper.extend(self.directory.iter().flat_map(|&entry| iter::repeat_n(entry, copies)));
            self.directory = deeper;
            self.set_depth(depth);
        }
        Ok(())
    }

    fn set_depth(&mut self, depth: u8) {
        self.depth = depth;
        self.directory_bits = Window::new(self.lane_bits.into(), depth.into(), 0);
    }

    /// Makes the directory as shallow as the shards allow.
    fn halve(&mut self) {
        while self.depth > self.least_depth
            && self.entries.len() <= self.directory.len() / 2
            && self.entries.iter().all(|entry| entry.depth < self.depth)
        {
            let mut at = 0;
            self.directory.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.directory.shrink_to_fit();
            self.set_depth(self.depth - 1);
        }
    }

    /// The other half of the shard that was split to make this one, unless it has been split further.
    fn sibling(&self, at: usize) -> Option<usize> {
        let Entry { prefix, depth, .. } = self.entries[at];
        if depth <= self.least_depth {
            return None;
        }
        let other = index(self.directory[index((prefix ^ 1).into()) << (self.depth - depth)].into());
        (self.entries[other].depth == depth).then_some(other)
    }

    /// Joins a shard with its sibling if the two hold at most `most` items. Returns the lowest index at which there is another
    /// shard now, or `None` if nothing has changed.
    pub(super) fn join(&mut self, at: usize, most: usize) -> Result<Option<usize>, OutOfMemory> {
        let Some(other) = self.sibling(at) else { return Ok(None) };
        if self.shard(at).len() + self.shard(other).len() > most {
            return Ok(None);
        }
        let Entry { prefix, depth, .. } = self.entries[at];
        let [first, second] = if prefix & 1 == 0 { [at, other] } else { [other, at] };
        let Some(shard) = shard::join([self.shard(first), self.shard(second)])? else { return Ok(None) };
        self.table_bytes = self.table_bytes + bytes(&shard) - bytes(self.shard(first)) - bytes(self.shard(second));
        self.entries[first] = Entry::new(shard, prefix >> 1, depth - 1);
        self.point_to(first);
        // The last entry takes the place of the second one.
        let last = self.entries.len() - 1;
        self.entries.swap_remove(second);
        if second < last {
            self.point_to(second);
        }
        self.halve();
        Ok(Some(first.min(second)))
    }

    /// Joins all shards that can be, siblings of `most` items together at most.
    pub(super) fn join_all(&mut self, most: usize) -> Result<(), OutOfMemory> {
        let mut at = 0;
        while at < self.entries.len() {
            match self.join(at, most)? {
                // What was joined may be joined again, and the last shard has moved to the front.
                Some(changed) => at = at.min(changed),
                None => at += 1,
            }
        }
        self.entries.shrink_to_fit();
        Ok(())
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// A copy, or an error if memory cannot be allocated.
    pub(super) fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut entries = reserved(self.entries.len())?;
        for entry in &self.entries {
            entries.push(Entry { shard: entry.shard.to_owned()?, ..*entry });
        }
        let mut directory = reserved(self.directory.len())?;
        directory.extend_from_slice(&self.directory);
        Ok(Self { entries, directory, ..*self })
    }

    /// The number of items.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The mean of the shards' false-positive rates, each in proportion to the streams that lead to it.
    pub(super) fn false_positive_rate(&self) -> f64 {
        let rate = |Entry { shard, depth, .. }: &Entry| {
            let (params, load) = (shard.params(), shard.len() as f64 / shard.params().slots() as f64);
            let rate = false_positive_rate(params.low_bits.into(), params.bucket_size(), load);
            rate / (1_u64 << (params.upper_bits + depth)) as f64
        };
        self.entries.iter().map(rate).sum()
    }

    /// Bytes of all tables, with their padding.
    pub(super) fn table_bytes(&self) -> usize {
        self.table_bytes
    }

    /// The same, and of what leads to them.
    pub(super) fn size_in_bytes(&self) -> usize {
        self.table_bytes + self.entries.capacity() * size_of::<Entry>() + self.directory.capacity() * size_of::<u32>()
    }
}

/// Whether it is for copies that a shard has no room for the item: splitting the shard would be of no use.
fn copies(shard: &Shard, key: Key) -> Option<Refused> {
    let (params, count) = (shard.params(), shard.count_located(key.locate(shard.params().upper())));
    if count == 2 * params.bucket_size() {
        Some(Refused::Copies(count))
    } else {
        (shard.len() < params.slots() / LEAST_TO_SPLIT).then_some(Refused::OthersCopies)
    }
}

/// Bytes of a shard's table with its padding.
fn bytes(shard: &Shard) -> usize {
    shard.params().table_bytes() + PADDING
}
