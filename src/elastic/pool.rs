//! The memory of a generation's tables. Many small tables lie side by side in blocks, so that a 32-bit place locates each.
//!
//! ```text
//! place   │ number of the block │ offset of the table there, in units │
//! block   │ record │ table │ record │ table │ … │ padding │      all tables have the same depth and length
//! record  │ depth and prefix: 4 bytes │ item count: 4 bytes │
//! ```
//!
//! Removing a table moves the last table of the same depth into its place, and freeing a block gives its number to the last block.
//! So tables stay contiguous, and no list holds unused entries.
//!
//! A shard with few items has no table but an ordered list of its items. The places of lists are the last ones, in descending
//! order. They are beyond all blocks, so a lookup that finds no table at a place knows that a list is there.

use alloc::vec::Vec;

use super::{
    directory::{DepthLayout, Directory, PlaceCode, Route, ShardBytes},
    generation_plan::GenerationPlan,
    shard::Shard,
};
use crate::{
    bits::{PADDING, beyond, index, low_half, wide},
    kernel::Dispatch,
    storage::{OutOfMemory, Owned, collected, copied, reserve_exact, shrink_to},
    table::{
        Instructions, TableParams,
        list::{ClassKey, List, ListView},
    },
};

/// The least bytes of the largest blocks. They are shorter than twice this, unless they have only one table. Blocks of 2 MiB and
/// more use huge pages, which are zeroed in a fraction of a millisecond. With ordinary pages, an insertion that needs a block of
/// 2 to 4 MiB would take 2 ms.
const MAX_BLOCK: usize = if cfg!(huge_pages) { 2 << 20 } else { 128 << 10 };

/// Log₂ of the number of blocks that hold all tables of a depth, unless these would exceed [`MAX_BLOCK`]. With this many
/// blocks, an incomplete one wastes little space.
const LOG2_BLOCKS: u8 = 6;

/// Shards of uniform items are at most this much deeper than log₂ of the number of tables.
const MOST_ABOVE_MEAN: u8 = 3;

/// The bytes of a record. The record of the next table, or the padding of the block, serves as a table's padding.
const RECORD_BYTES: usize = PADDING;

/// The bytes that the pool's lists take for a block.
const BLOCK_ENTRY_BYTES: usize = size_of::<Owned>() + size_of::<u8>();

/// The smallest unit of offsets in places, in bytes.
const MIN_UNIT: u64 = 8;

/// The position of a shard's table or list in a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

impl Place {
    /// The place of the list with this index. There is always one with index 0 in a directory that is being built.
    pub const fn of_list(index: u32) -> Self {
        Self(u32::MAX - index)
    }
}

impl From<Place> for u64 {
    fn from(place: Place) -> Self {
        place.0.into()
    }
}

/// The properties of a shard, which are stored in front of its table. In a list, `items` is the number of different items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardRecord {
    /// The prefix, with a one above it.
    path: u32,
    items: u32,
}

impl ShardRecord {
    /// Returns the record of a shard for streams whose first `depth` bits are `prefix`.
    pub fn new(depth: u8, prefix: u32, items: u32) -> Self {
        Self { path: 1 << depth | prefix, items }
    }

    #[inline]
    pub fn depth(self) -> u8 {
        #[expect(clippy::cast_possible_truncation, reason = "31 at most")]
        let depth = self.path.ilog2() as u8;
        depth
    }

    pub fn prefix(self) -> u32 {
        self.path ^ 1 << self.depth()
    }

    /// Returns the record with this number of items.
    pub fn with_items(self, items: usize) -> Self {
        Self { items: low_half(wide(items)), ..self }
    }

    /// Returns the number of items in the table.
    #[inline]
    pub fn items(self) -> usize {
        index(self.items.into())
    }

    #[inline]
    fn decode(bytes: [u8; RECORD_BYTES]) -> Self {
        let record = u64::from_le_bytes(bytes);
        Self { path: low_half(record), items: low_half(record >> 32) }
    }

    #[inline]
    fn encode(self) -> [u8; RECORD_BYTES] {
        (u64::from(self.items) << 32 | u64::from(self.path)).to_le_bytes()
    }
}

/// A record in a pool that can be changed.
pub(crate) struct RecordMut<'a> {
    record: ShardRecord,
    bytes: &'a mut [u8; RECORD_BYTES],
}

impl RecordMut<'_> {
    #[inline]
    pub fn items(&self) -> usize {
        self.record.items()
    }

    pub fn prefix(&self) -> u32 {
        self.record.prefix()
    }

    #[inline]
    pub fn set_items(self, items: usize) {
        *self.bytes = self.record.with_items(items).encode();
    }
}

/// Returns the ratio of a generation's items to those in its tables if it had all extra copies of its partition. The header of a
/// partition in a snapshot has only their total, and a filter and its views state the same rate.
pub(crate) fn times_in_table(table_len: usize, extra_copies: u64) -> f64 {
    1.0 + extra_copies as f64 / table_len.max(1) as f64
}

/// The tables of one depth, indexed from 0 without gaps.
pub(crate) struct Level {
    pub layout: DepthLayout,
    /// The bytes from one table to the next, a multiple of the unit.
    stride: usize,
    unit: usize,
    /// Log₂ of the number of tables in a block.
    log2_per_block: u8,
    /// Log₂ of the number of tables in a block of a level that grows table by table. Charges are based on it.
    log2_charged_block: u8,
    /// True if the level never grows: all its tables are in one block.
    is_one_block: bool,
    /// The numbers of this level's blocks in the pool.
    blocks: Vec<u32>,
    len: usize,
}

impl Level {
    /// Returns a level without tables.
    pub fn new(plan: &GenerationPlan, depth: u8) -> Self {
        let layout = DepthLayout::new(plan, depth);
        let unit = index(place_unit(plan));
        let stride = (RECORD_BYTES + layout.params.table_bytes()).next_multiple_of(unit);
        let is_one_block = plan.min_depth == plan.max_depth;
        let largest = MAX_BLOCK.div_ceil(stride).next_power_of_two().trailing_zeros();
        let log2 = if is_one_block { depth.into() } else { u32::from(depth.saturating_sub(LOG2_BLOCKS)).min(largest) };
        #[expect(clippy::cast_possible_truncation, reason = "a depth, or less")]
        let log2_per_block = log2 as u8;
        Self {
            layout,
            stride,
            unit,
            log2_per_block,
            log2_charged_block: log2_per_block,
            is_one_block,
            blocks: Vec::new(),
            len: 0,
        }
    }

    /// Returns the number of tables.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of a block. Its first table begins at a whole unit, after the record; padding follows the last table.
    fn block_bytes(&self) -> usize {
        self.stride.saturating_mul(1 << self.log2_per_block).saturating_add(self.unit - RECORD_BYTES + PADDING)
    }

    fn blocks_for(&self, tables: usize) -> usize {
        tables.div_ceil(1 << self.log2_per_block)
    }

    /// Returns the bytes that a table is charged against a memory limit: those of the table and of an entry in each list of blocks.
    /// The charge of a level depends on its number of tables alone, so that filters with equal content are charged the same.
    pub fn charge_per_table(&self) -> usize {
        self.stride.saturating_add(self.unit + BLOCK_ENTRY_BYTES + size_of::<u32>())
    }

    /// Returns the bytes charged for free space in the last block. A level that grows is always charged them, so that merging two
    /// tables never raises the charge.
    fn slack(&self) -> usize {
        if self.is_one_block { 0 } else { self.stride.saturating_mul((1 << self.log2_charged_block) - 1) }
    }

    /// Returns the charge of a level with this many tables.
    fn charge_for(&self, tables: usize) -> usize {
        self.charge_per_table().saturating_mul(tables).saturating_add(self.slack()).saturating_add(size_of::<Self>())
    }
}

/// Returns the unit of a generation's places in bytes: large enough that 32 bits locate eight times as many tables as are planned.
fn place_unit(plan: &GenerationPlan) -> u64 {
    let tables = wide(plan.shard(plan.max_depth).table_bytes() + RECORD_BYTES).saturating_mul(8 << plan.max_depth);
    (tables >> 32).next_power_of_two().max(MIN_UNIT)
}

/// A shard that is a list: its record, without items, and for each of these its class key and the number of its copies.
struct ListShard {
    record: ShardRecord,
    list: List,
}

/// The tables and lists of a generation.
pub(crate) struct Pool {
    lists: Vec<ListShard>,
    /// The bytes of all entries in lists, and the number of copies in them beyond the first of each item.
    needed_by_lists: usize,
    copies_in_lists: u64,
    blocks: Vec<Owned>,
    /// The level of each block. Records also store the depth, but an operation that took the layout from the record could not read
    /// record and table at the same time.
    block_levels: Vec<u8>,
    /// The levels from the least depth to the greatest in use.
    levels: Vec<Level>,
    min_depth: u8,
    places: PlaceCode,
}

impl Pool {
    /// Returns a pool without levels and tables.
    pub fn new(plan: &GenerationPlan) -> Self {
        let unit = place_unit(plan);
        let levels = (plan.min_depth..=plan.max_depth).map(|depth| Level::new(plan, depth));
        let longest = levels.map(|level| wide(level.block_bytes())).max().unwrap_or(unit);
        #[allow(clippy::cast_possible_truncation, reason = "32 at most, which the compiler may see")]
        let start_bits = (longest / unit + 1).next_power_of_two().trailing_zeros().min(32) as u8;
        #[expect(clippy::cast_possible_truncation, reason = "below 64")]
        let log2_unit = unit.trailing_zeros() as u8;
        let places = PlaceCode { log2_unit, start_bits };
        Self {
            lists: Vec::new(),
            needed_by_lists: 0,
            copies_in_lists: 0,
            blocks: Vec::new(),
            block_levels: Vec::new(),
            levels: Vec::new(),
            min_depth: plan.min_depth,
            places,
        }
    }

    /// Adds levels up to this depth. `tables` is the number of tables of all levels. On failure, nothing changes.
    pub fn add_levels(&mut self, plan: &GenerationPlan, depth: u8, tables: usize) -> Result<(), OutOfMemory> {
        let missing = (usize::from(depth - self.min_depth) + 1).saturating_sub(self.levels.len());
        reserve_exact(&mut self.levels, missing)?;
        let log2_tables = low_byte(index(tables.max(1).ilog2().into()));
        for _ in 0..missing {
            let depth = self.min_depth + low_byte(self.levels.len());
            self.levels.push(Level::new(plan, depth));
            // Chosen items can make one shard far deeper than the others, and its level should not have blocks for many tables. Uniform
            // items never do, so that the blocks for them depend on depths alone, not on the order in which levels were added.
            if depth > log2_tables + MOST_ABOVE_MEAN {
                self.shorten_blocks_to(depth, log2_tables.saturating_sub(LOG2_BLOCKS - 1));
            }
        }
        Ok(())
    }

    /// Removes the last levels if they have no tables.
    pub fn drop_unused_levels(&mut self) {
        while self.levels.pop_if(|level| level.blocks.is_empty()).is_some() {}
        shrink_to(&mut self.levels, 0);
    }

    /// Shortens the blocks of this level, if it is to have tables, to this many, rounded up to a power of two. It must have no blocks yet.
    pub fn shorten_blocks(&mut self, depth: u8, tables: usize) {
        if tables > 0 {
            self.shorten_blocks_to(depth, low_byte(index(tables.next_power_of_two().trailing_zeros().into())));
        }
    }

    /// Shortens the blocks of a level without blocks to 2 to the power of `log2_per_block` tables, or to as many that half of all places
    /// remain enough for all tables that the level may ever have.
    #[inline(never)]
    fn shorten_blocks_to(&mut self, depth: u8, log2_per_block: u8) {
        let least = depth.saturating_sub(31_u8.saturating_sub(self.places.start_bits));
        let level = self.level_of(depth);
        let level = &mut self.levels[level];
        level.log2_per_block = level.log2_per_block.min(log2_per_block.max(least));
    }

    /// Returns the depth of the deepest shard.
    pub fn greatest_depth(&self) -> u8 {
        let in_lists = self.lists.iter().map(|shard| shard.record.depth()).max().unwrap_or(0);
        in_lists.max(self.min_depth + low_byte(self.levels.len().saturating_sub(1)))
    }

    fn level_of(&self, depth: u8) -> usize {
        usize::from(depth - self.min_depth)
    }

    #[inline]
    pub fn level(&self, depth: u8) -> &Level {
        &self.levels[self.level_of(depth)]
    }

    /// Returns the number of tables.
    #[inline(never)]
    pub fn tables(&self) -> usize {
        self.levels.iter().map(Level::len).sum()
    }

    /// Returns the route from streams to the pool's tables.
    #[allow(clippy::inline_always, reason = "a call takes a tenth of a lookup's instructions")]
    #[inline(always)]
    pub fn route<'a>(&'a self, directory: &'a Directory<Place>) -> Route<'a, Place, Owned> {
        Route::new(directory, &self.blocks, self.places)
    }

    /// Returns the table or the list at a place.
    #[inline]
    pub fn bytes(&self, place: Place) -> ShardBytes<'_> {
        match self.layout_and_table(place) {
            Some((layout, table)) => ShardBytes::Table(layout, table),
            None => ShardBytes::List(self.list(place).map_or(ListView::new(&[], 1, 0, 0), List::view)),
        }
    }

    /// Prefetches a record and the start of its table, if there is one.
    #[allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions")]
    #[inline(always)]
    pub fn prefetch_record(&self, instructions: impl Instructions, place: Place) {
        let (block, start) = self.places.split(place);
        if let Some(block) = self.blocks.get(block) {
            instructions.prefetch(block, start.wrapping_sub(RECORD_BYTES));
        }
    }

    #[inline]
    pub fn table_mut(&mut self, place: Place) -> &mut [u8] {
        let (block, start) = self.places.split(place);
        &mut self.blocks[block][start..]
    }

    /// Returns a shard to change: the layout of its depth, its record, and its table with all that follows it in the block; `None`
    /// if it is a list.
    #[inline]
    pub fn open(&mut self, place: Place) -> Option<(&DepthLayout, RecordMut<'_>, &mut [u8])> {
        let (block, start) = self.places.split(place);
        let level = self.levels.get(usize::from(*self.block_levels.get(block)?))?;
        let (bytes, table) = self.blocks.get_mut(block)?.get_mut(start.wrapping_sub(RECORD_BYTES)..)?.split_first_chunk_mut()?;
        Some((&level.layout, RecordMut { record: ShardRecord::decode(*bytes), bytes }, table))
    }

    /// Returns the layout of a shard's table and the table with all that follows it in the block, or `None` if it is a list.
    #[inline]
    pub fn layout_and_table(&self, place: Place) -> Option<(&DepthLayout, &[u8])> {
        let (block, start) = self.places.split(place);
        let level = self.levels.get(usize::from(*self.block_levels.get(block)?))?;
        Some((&level.layout, self.blocks.get(block)?.get(start..)?))
    }

    /// Returns one table to read and one to write. They must have different depths.
    pub fn two_tables(&mut self, read: Place, written: Place) -> (&[u8], &mut [u8]) {
        let [(block, start), (other, other_start)] = [self.places.split(read), self.places.split(written)];
        match self.blocks.get_disjoint_mut([block, other]) {
            Ok([read, written]) => (&read[start..], &mut written[other_start..]),
            Err(_) => beyond(),
        }
    }

    /// Returns the local depth of a shard.
    #[inline(never)]
    pub fn depth(&self, place: Place) -> u8 {
        let (block, _) = self.places.split(place);
        self.block_levels.get(block).map_or_else(|| self.record(place).depth(), |level| self.min_depth + level)
    }

    #[inline(never)]
    pub fn record(&self, place: Place) -> ShardRecord {
        let (block, start) = self.places.split(place);
        let record = self.blocks.get(block).and_then(|block| block.get(start.wrapping_sub(RECORD_BYTES)..)?.first_chunk());
        record.map_or_else(|| self.list_record(place), |&bytes| ShardRecord::decode(bytes))
    }

    pub fn set_record(&mut self, place: Place, record: ShardRecord) {
        let (block, start) = self.places.split(place);
        self.blocks[block][start - RECORD_BYTES..start].copy_from_slice(&record.encode());
    }

    /// Returns the place of the table with this depth and index.
    pub fn place_of_table(&self, depth: u8, table: usize) -> Place {
        let level = self.level(depth);
        let in_block = table & ((1 << level.log2_per_block) - 1);
        let start = level.unit + in_block * level.stride;
        let block = u64::from(level.blocks[table >> level.log2_per_block]);
        Place(low_half(block << self.places.start_bits | wide(start >> self.places.log2_unit)))
    }

    /// Returns the table of a shard and its prefix, or `None` if it is a list.
    pub fn shard(&self, dispatch: Dispatch, place: Place) -> Option<(Shard<'_>, u32)> {
        let (layout, table) = self.layout_and_table(place)?;
        let record = self.record(place);
        Some((layout.shard(dispatch, table, record.items()), record.prefix()))
    }

    /// Allocates room for this many more tables. On failure, nothing changes.
    pub fn reserve(&mut self, depth: u8, more: usize) -> Result<(), OutOfMemory> {
        let at = self.level_of(depth);
        let level = &self.levels[at];
        let wanted = level.blocks_for(level.len + more);
        let missing = wanted.saturating_sub(level.blocks.len());
        if missing == 0 {
            return Ok(());
        }
        let bytes = level.block_bytes();
        // The last places are those of lists.
        let last = wide(self.blocks.len() + missing) << self.places.start_bits;
        if last > u32::MAX.into() {
            return Err(OutOfMemory::of(bytes));
        }
        let mut added = collected((0..missing).map(|_| Owned::zeroed(bytes - PADDING).ok_or(OutOfMemory::of(bytes))))?;
        let Self { blocks, block_levels, levels, .. } = self;
        let numbers = &mut levels[at].blocks;
        reserve_exact(numbers, missing)?;
        reserve_exact(block_levels, missing)?;
        reserve_exact(blocks, missing)?;
        // Nothing fails from here on.
        numbers.extend((blocks.len()..).take(missing).map(|number| low_half(wide(number))));
        blocks.append(&mut added);
        block_levels.resize(blocks.len(), low_byte(at));
        Ok(())
    }

    /// Appends an empty table for this record. Call [`reserve`](Self::reserve) first. The record's item count is stored as it is.
    pub fn push(&mut self, record: ShardRecord) -> Place {
        let (depth, level) = (record.depth(), self.level_of(record.depth()));
        self.levels[level].len += 1;
        let place = self.place_of_table(depth, self.levels[level].len - 1);
        self.set_record(place, record);
        place
    }

    /// Removes a table or a list. Calls `moved` with the record, the old place and the new place of each one that has moved.
    pub fn remove(&mut self, place: Place, moved: &mut dyn FnMut(ShardRecord, Place, Place)) {
        if self.list_shard(place).is_some() {
            return self.remove_list(place, moved);
        }
        let depth = self.depth(place);
        let level = self.level_of(depth);
        let last = self.place_of_table(depth, self.levels[level].len - 1);
        let [(block, start), (last_block, last_start)] = [place, last].map(|place| {
            let (block, start) = self.places.split(place);
            (block, start - RECORD_BYTES)
        });
        let (stride, record) = (self.levels[level].stride, self.record(last));
        if block == last_block {
            self.blocks[block].copy_within(last_start..last_start + stride, start);
        } else if let Ok([whole, last]) = self.blocks.get_disjoint_mut([block, last_block]) {
            whole[start..start + stride].copy_from_slice(&last[last_start..last_start + stride]);
        }
        self.blocks[last_block][last_start..last_start + stride].fill(0);
        self.levels[level].len -= 1;
        if place != last {
            moved(record, last, place);
        }
        self.free_empty_blocks(depth, moved);
        self.drop_unused_levels();
    }

    /// Frees the blocks of this depth that have no tables. Calls `moved` as [`remove`](Self::remove) does.
    pub fn free_empty_blocks(&mut self, depth: u8, moved: &mut dyn FnMut(ShardRecord, Place, Place)) {
        let level = self.level_of(depth);
        let Some(needed) = self.levels.get(level).map(|level| level.blocks_for(level.len)) else { return };
        while self.levels[level].blocks.len() > needed {
            let Some(free) = self.levels[level].blocks.pop() else { return };
            self.blocks.swap_remove(index(free.into()));
            self.block_levels.swap_remove(index(free.into()));
            let last = low_half(wide(self.blocks.len()));
            if free < last {
                self.renumber(last, free, moved);
            }
        }
        shrink_to(&mut self.levels[level].blocks, 0);
        shrink_to(&mut self.blocks, 0);
        shrink_to(&mut self.block_levels, 0);
    }

    /// Updates the level of the block whose number has changed, and calls `moved` for its tables.
    fn renumber(&mut self, from: u32, to: u32, moved: &mut dyn FnMut(ShardRecord, Place, Place)) {
        let mut levels = (self.min_depth..).zip(&mut self.levels);
        let found = levels.find_map(|(depth, level)| {
            let block = level.blocks.iter().position(|&number| number == from)?;
            level.blocks[block] = to;
            let first = block << level.log2_per_block;
            Some((depth, first..level.len.min(first + (1 << level.log2_per_block))))
        });
        let Some((depth, tables)) = found else { return };
        for table in tables {
            let place = self.place_of_table(depth, table);
            let in_block = place.0 & low_half((1 << self.places.start_bits) - 1);
            let before = Place(low_half(u64::from(from) << self.places.start_bits) | in_block);
            moved(self.record(place), before, place);
        }
    }

    /// Returns a copy, or an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let copy = |bytes: &[u8]| Owned::copied(&bytes[..bytes.len() - PADDING]).ok_or(OutOfMemory::of(bytes.len()));
        let blocks = self.blocks.iter().map(|block| copy(block));
        let lists = self.lists.iter().map(|shard| shard.list.try_clone().map(|list| ListShard { list, ..*shard }));
        let levels = self.levels.iter().map(|level| copied(&level.blocks).map(|blocks| Level { blocks, ..*level }));
        Ok(Self {
            lists: collected(lists)?,
            blocks: collected(blocks)?,
            block_levels: copied(&self.block_levels)?,
            levels: collected(levels)?,
            ..*self
        })
    }

    /// Returns the bytes of all blocks, and of the different items in lists.
    pub fn table_bytes(&self) -> usize {
        let in_lists = |shard: &ListShard| shard.list.len() * usize::from(shard.list.key_bytes());
        self.block_bytes() + self.lists.iter().map(in_lists).sum::<usize>()
    }

    fn block_bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.len()).sum()
    }

    /// Returns the bytes of all blocks and lists. Spare capacity of lists, which is left only if shrinking one failed, does not
    /// count.
    pub fn size_in_bytes(&self) -> usize {
        let numbers = self.levels.iter().map(|level| level.blocks.len() * size_of::<u32>()).sum::<usize>();
        let blocks = self.block_bytes() + self.blocks.len() * BLOCK_ENTRY_BYTES;
        blocks + self.levels.len() * size_of::<Level>() + numbers + self.list_bytes()
    }

    /// Returns the bytes that all tables are charged against a limit: at least [`size_in_bytes`](Self::size_in_bytes), and equal
    /// for pools with equal numbers of tables at each depth.
    pub fn charged_bytes(&self) -> usize {
        self.levels.iter().map(|level| level.charge_for(level.len)).fold(self.list_bytes(), usize::saturating_add)
    }

    /// Returns the bytes of all lists, which are also their charge.
    fn list_bytes(&self) -> usize {
        self.lists.len() * EMPTY_LIST_BYTES + self.needed_by_lists
    }

    /// Returns what this many more tables of this depth add to [`charged_bytes`](Self::charged_bytes).
    pub fn charge_for_more(&self, plan: &GenerationPlan, depth: u8, tables: usize) -> usize {
        if let Some(level) = self.levels.get(self.level_of(depth)) {
            return level.charge_per_table().saturating_mul(tables);
        }
        let missing = self.min_depth + low_byte(self.levels.len())..depth;
        let between = missing.map(|depth| Level::new(plan, depth).charge_for(0));
        between.fold(Level::new(plan, depth).charge_for(tables), usize::saturating_add)
    }

    /// Returns what a shard is charged: its table and its entries in lists of blocks, or its list.
    #[inline(never)]
    pub fn charge_of(&self, place: Place) -> usize {
        let list = self.list(place).map(|list| EMPTY_LIST_BYTES.saturating_add(list.needed_bytes()));
        list.unwrap_or_else(|| self.level(self.depth(place)).charge_per_table())
    }

    /// Returns the bytes that are freed and taken, of the size and of the charge, if `wholes` tables replace these tables of a depth.
    pub fn merged_bytes(&self, depth: u8, tables: usize, wholes: usize) -> [[usize; 2]; 2] {
        let [level, merged] = [depth, depth - 1].map(|depth| self.level(depth));
        let blocks =
            |level: &Level, tables| level.blocks_for(tables) * (level.block_bytes() + BLOCK_ENTRY_BYTES + size_of::<u32>());
        let freed = blocks(level, level.len) - blocks(level, level.len - tables);
        let taken = blocks(merged, merged.len + wholes) - blocks(merged, merged.len);
        [[freed, taken], [level.charge_per_table() * tables, merged.charge_per_table() * wholes]]
    }
}

// Lists.

impl Pool {
    fn list_shard(&self, place: Place) -> Option<&ListShard> {
        self.lists.get(index((u32::MAX - place.0).into()))
    }

    /// Returns the list at a place, or `None` if there is a table.
    #[inline(never)]
    pub fn list(&self, place: Place) -> Option<&List> {
        self.list_shard(place).map(|shard| &shard.list)
    }

    #[cold]
    fn list_record(&self, place: Place) -> ShardRecord {
        self.list_shard(place).map_or_else(|| beyond(), |ListShard { record, list }| record.with_items(list.len()))
    }

    /// Adds copies of an item to the list at a place, as [`List::add_at`] does, with no other limit than that of a count.
    pub fn add_to_list(
        &mut self,
        place: Place,
        found: Result<usize, usize>,
        key: ClassKey,
        copies: u32,
    ) -> Result<bool, OutOfMemory> {
        let Some(shard) = self.lists.get_mut(index((u32::MAX - place.0).into())) else { beyond() };
        let (charged, len) = (shard.list.needed_bytes(), shard.list.len());
        let is_added = shard.list.add_at(found, key, copies, u32::MAX)?;
        if is_added {
            self.needed_by_lists = self.needed_by_lists - charged + shard.list.needed_bytes();
            self.copies_in_lists = self.copies_in_lists + u64::from(copies) - wide(shard.list.len() - len);
        }
        Ok(is_added)
    }

    /// Removes copies of an item from the list at a place, as [`List::take`] does.
    pub fn take_from_list(&mut self, place: Place, key: ClassKey, most: u32) -> u32 {
        let Some(shard) = self.lists.get_mut(index((u32::MAX - place.0).into())) else { return 0 };
        let (charged, len) = (shard.list.needed_bytes(), shard.list.len());
        let taken = shard.list.take(key, most);
        self.needed_by_lists = self.needed_by_lists - charged + shard.list.needed_bytes();
        self.copies_in_lists = self.copies_in_lists + wide(len - shard.list.len()) - u64::from(taken);
        taken
    }

    /// Removes all items of the list at a place.
    pub fn clear_list(&mut self, place: Place) {
        if let Some(shard) = self.lists.get_mut(index((u32::MAX - place.0).into())) {
            self.needed_by_lists -= shard.list.needed_bytes();
            self.copies_in_lists -= extra_copies(&shard.list);
            shard.list = List::new(shard.list.key_bytes());
        }
    }

    /// Returns the number of lists.
    pub fn lists_len(&self) -> usize {
        self.lists.len()
    }

    /// Returns all lists with the records of their shards.
    pub fn lists(&self) -> impl Iterator<Item = (ShardRecord, &List)> {
        self.lists.iter().map(|ListShard { record, list }| (record.with_items(list.len()), list))
    }

    /// Returns the places of all shards: tables come first, then lists.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let tables_of = move |(depth, level): (u8, &Level)| (0..level.len).map(move |table| self.place_of_table(depth, table));
        let tables = (self.min_depth..).zip(&self.levels).flat_map(tables_of);
        tables.chain((0..low_half(wide(self.lists.len()))).map(Place::of_list))
    }

    /// Returns the number of copies in lists beyond the first of each item.
    pub fn copies_in_lists(&self) -> u64 {
        self.copies_in_lists
    }

    /// Allocates room for this many more lists. On failure, nothing changes.
    pub fn reserve_lists(&mut self, more: usize) -> Result<(), OutOfMemory> {
        // The places of lists share the number of a block that does not exist.
        if wide(self.lists.len() + more) > 1 << self.places.start_bits {
            return Err(OutOfMemory::of(size_of::<ListShard>()));
        }
        reserve_exact(&mut self.lists, more)
    }

    /// Adds a list. Call [`reserve_lists`](Self::reserve_lists) first.
    pub fn push_list(&mut self, depth: u8, prefix: u32, list: List) -> Place {
        self.needed_by_lists += list.needed_bytes();
        self.copies_in_lists += extra_copies(&list);
        self.lists.push(ListShard { record: ShardRecord::new(depth, prefix, 0), list });
        Place::of_list(low_half(wide(self.lists.len() - 1)))
    }

    fn remove_list(&mut self, place: Place, moved: &mut dyn FnMut(ShardRecord, Place, Place)) {
        let last = Place::of_list(low_half(wide(self.lists.len() - 1)));
        let ListShard { list, .. } = self.lists.swap_remove(index((u32::MAX - place.0).into()));
        self.needed_by_lists -= list.needed_bytes();
        self.copies_in_lists -= extra_copies(&list);
        if last != place {
            moved(self.record(place), last, place);
        }
        shrink_to(&mut self.lists, 0);
    }
}

/// Returns the number of copies in a list beyond the first of each item.
fn extra_copies(list: &List) -> u64 {
    list.iter().map(|(_, copies)| u64::from(copies - 1)).sum()
}

/// Returns the bytes that an empty list is charged.
pub(crate) const EMPTY_LIST_BYTES: usize = size_of::<ListShard>();

/// Returns the bytes of a generation's first blocks; 0 if it starts as a list.
pub(crate) fn initial_table_bytes(plan: &GenerationPlan) -> usize {
    if plan.begins_as_list() {
        return 0;
    }
    let level = Level::new(plan, plan.min_depth);
    level.blocks_for(1 << plan.min_depth).saturating_mul(level.block_bytes())
}

/// Returns the bytes that a generation's first shards are charged. A list is charged with one item: a limit that has room for none
/// would be of no use.
pub(crate) fn empty_charged_bytes(plan: &GenerationPlan) -> usize {
    if plan.begins_as_list() {
        EMPTY_LIST_BYTES + List::bytes_for(plan.key_bytes(), 1, 0)
    } else {
        Level::new(plan, plan.min_depth).charge_for(1 << plan.min_depth)
    }
}

fn low_byte(number: usize) -> u8 {
    number.to_le_bytes()[0]
}

/// The checks of [`ElasticFilter::assert_consistent`](super::ElasticFilter::assert_consistent).
impl Pool {
    /// Asserts that records match their levels, that no block is superfluous, and that unused space is zero, because new tables
    /// must be empty. Calls `check` with each table's place and record.
    pub fn assert_consistent(&self, mut check: impl FnMut(Place, ShardRecord)) {
        let mut numbers: Vec<u32> = Vec::new();
        assert!(self.levels.last().is_none_or(|level| level.len > 0), "the last level has no tables");
        let lists = self.lists.iter().map(|shard| (shard.list.needed_bytes(), extra_copies(&shard.list)));
        let sums = lists.fold((0, 0), |sums, (charge, copies)| (sums.0 + charge, sums.1 + copies));
        assert_eq!(sums, (self.needed_by_lists, self.copies_in_lists), "charge and copies of lists");
        (0..low_half(wide(self.lists.len()))).map(Place::of_list).for_each(|place| check(place, self.record(place)));
        for (depth, level) in (self.min_depth..).zip(&self.levels) {
            let per_block = 1 << level.log2_per_block;
            assert_eq!(level.blocks.len(), level.len.div_ceil(per_block), "blocks of {per_block} for {} tables", level.len);
            numbers.extend(&level.blocks);
            for table in 0..level.blocks.len() * per_block {
                let place = self.place_of_table(depth, table);
                if table < level.len {
                    let depths = [self.record(place).depth(), self.depth(place)];
                    assert_eq!(depths, [depth; 2], "the depth of table {table}");
                    check(place, self.record(place));
                } else {
                    let (block, start) = self.places.split(place);
                    let bytes = &self.blocks[block][start - RECORD_BYTES..][..level.stride];
                    assert!(bytes.iter().all(|&byte| byte == 0), "unused space for table {table} of {} is not zero", level.len);
                }
            }
        }
        numbers.sort_unstable();
        assert_eq!(self.block_levels.len(), self.blocks.len(), "levels of blocks");
        assert!(numbers.iter().map(|&number| index(number.into())).eq(0..self.blocks.len()), "numbers of blocks: {numbers:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::{super::plan::ElasticRequest, *};
    use alloc::vec;

    /// Returns a table without padding.
    fn table_at(pool: &Pool, place: Place) -> &[u8] {
        let (layout, table) = pool.layout_and_table(place).expect("there is a table");
        &table[..layout.params.table_bytes()]
    }

    fn plan(request: ElasticRequest) -> GenerationPlan {
        ElasticRequest { false_positive_rate: Some(0.001), ..request }.params().unwrap().generation(0)
    }

    /// Compares random insertions and removals at three depths with a list of the tables' contents. Each move must be reported.
    #[test]
    fn tables_stay_contiguous_and_moves_are_reported() {
        let plan = plan(ElasticRequest { capacity: Some(50_000), max_capacity: Some(10_000_000), ..ElasticRequest::default() });
        let depths = [plan.min_depth, plan.min_depth + 1, plan.min_depth + 2];
        let mut pool = Pool::new(&plan);
        let mut model: Vec<(Place, u8, u32)> = Vec::new();
        for step in 1..if cfg!(miri) { 60 } else { 2000_u32 } {
            let random = index((step.wrapping_mul(0x9e37_79b9) >> 8).into());
            if model.is_empty() || random % 5 < if step % 400 < 200 { 4 } else { 2 } && model.len() < 60 {
                let depth = depths[random % 3];
                pool.add_levels(&plan, depth, usize::MAX).unwrap();
                pool.reserve(depth, 1).unwrap();
                let place = pool.push(ShardRecord::new(depth, step & 1, step));
                assert!(table_at(&pool, place).iter().all(|&byte| byte == 0));
                let bytes = plan.shard(depth).table_bytes();
                pool.table_mut(place)[..bytes].fill(step.to_le_bytes()[0] | 1);
                model.push((place, depth, step));
            } else {
                let (removed, ..) = model.swap_remove(random % model.len());
                pool.remove(removed, &mut |record, from, to| {
                    let moved = model.iter_mut().find(|(place, ..)| *place == from).expect("the model has no such table");
                    assert_eq!((record.depth(), record.items()), (moved.1, moved.2 as usize));
                    moved.0 = to;
                });
            }
            let mut tables = 0;
            pool.assert_consistent(|_, _| tables += 1);
            assert_eq!((tables, pool.tables()), (model.len(), model.len()));
            for &(place, depth, step) in &model {
                assert_eq!(pool.record(place), ShardRecord::new(depth, step & 1, step));
                let content = step.to_le_bytes()[0] | 1;
                assert_eq!(table_at(&pool, place), vec![content; plan.shard(depth).table_bytes()]);
            }
            assert!(pool.size_in_bytes() <= pool.charged_bytes());
        }
    }

    /// Checks that a block has a 64th of the tables of its depth and at most a few MiB, or all tables if the filter does not grow.
    #[test]
    fn block_sizes_are_bounded() {
        let growing = plan(ElasticRequest { max_capacity: Some(1_000_000_000), ..ElasticRequest::default() });
        for depth in growing.min_depth..=growing.max_depth {
            let level = Level::new(&growing, depth);
            let bytes = level.block_bytes();
            assert!(
                level.log2_per_block == depth.saturating_sub(6) || bytes >= MAX_BLOCK && bytes < 2 * MAX_BLOCK + level.stride
            );
        }
        let planned =
            plan(ElasticRequest { capacity: Some(10_000_000), max_capacity: Some(10_000_000), ..ElasticRequest::default() });
        let level = Level::new(&planned, planned.min_depth);
        assert!(level.slack() == 0 && level.blocks_for(1 << planned.min_depth) == 1);
    }

    /// Checks places of tables beyond 2³² bytes, in one block and in many. No memory is allocated.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    #[cfg(target_pointer_width = "64")]
    fn places_reach_beyond_four_gigabytes() {
        for capacity in [None, Some(800_000_000_000)] {
            let plan = plan(ElasticRequest { capacity, max_capacity: Some(800_000_000_000), ..ElasticRequest::default() });
            let mut pool = Pool::new(&plan);
            pool.add_levels(&plan, plan.max_depth, usize::MAX).unwrap();
            let last = (1_usize << plan.max_depth) - 1;
            let level = pool.level_of(plan.max_depth);
            let blocks = pool.levels[level].blocks_for(last + 1);
            pool.levels[level].blocks = (0..blocks as u32).collect();
            let (stride, per_block) = (pool.levels[level].stride, 1 << pool.levels[level].log2_per_block);
            let (block, start) = pool.places.split(pool.place_of_table(plan.max_depth, last));
            assert_eq!((block, start), (last / per_block, pool.levels[level].unit + last % per_block * stride));
            assert!(block * per_block * stride + start > 1 << 40);
        }
    }

    /// Readers make blocks for the tables that a snapshot has. Even if these are few, there are places for all that the levels may have
    /// later. Shards are disjoint, so they need at most as many blocks as all tables of one level, and one more for each other level.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    #[cfg(target_pointer_width = "64")]
    fn short_blocks_leave_places_for_all_tables() {
        for max_capacity in [1_000_000, 16_000_000, 50_000_000, 100_000_000, 10_000_000_000, 800_000_000_000] {
            let plan = plan(ElasticRequest { max_capacity: Some(max_capacity), ..ElasticRequest::default() });
            for tables in [0, 1, 3, 8, 1000] {
                let mut read = Pool::new(&plan);
                read.add_levels(&plan, plan.max_depth, usize::MAX).unwrap();
                (plan.min_depth..=plan.max_depth).for_each(|depth| read.shorten_blocks(depth, tables));
                // Chosen items made one shard much deeper than the others.
                let mut chosen = Pool::new(&plan);
                chosen.add_levels(&plan, plan.max_depth, tables).unwrap();
                for pool in [read, chosen] {
                    let all = pool.levels.iter().map(|level| level.blocks_for(1 << level.layout.params.depth)).max().unwrap_or(0);
                    let blocks = wide(all + pool.levels.len());
                    assert!(blocks << pool.places.start_bits <= u32::MAX.into(), "{blocks} blocks for {max_capacity} items");
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri takes the memory")]
    fn a_failed_reservation_changes_nothing() {
        let plan = plan(ElasticRequest {
            capacity: Some(u64::MAX >> 24),
            max_capacity: Some(u64::MAX >> 24),
            ..ElasticRequest::default()
        });
        let mut pool = Pool::new(&plan);
        pool.add_levels(&plan, plan.min_depth, usize::MAX).unwrap();
        assert!(pool.reserve(plan.min_depth, 1 << plan.min_depth).is_err());
        assert_eq!((pool.table_bytes(), pool.tables()), (0, 0));
    }
}
