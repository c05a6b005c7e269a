//! The tables of a generation: many small ones, side by side in blocks, so that one number of 32 bits leads to each.
//!
//! ```text
//! place   │ number of the block │ where the table begins there, in units │
//! block   │ record │ table │ record │ table │ … │ padding │      tables of one depth, which are of one length
//! record  │ depth and prefix: 4 bytes │ number of items: 4 bytes │
//! ```
//!
//! Removing a table moves the last one of its depth to its place, and freeing a block gives its number to the last block. So there
//! are no gaps, and lists are no longer than they must be.

use alloc::vec::Vec;

use super::{
    plan::GenerationPlan,
    shard::{Key, Shard, ShardParams},
    stream::Window,
};
use crate::{
    bits::{PADDING, beyond, index, low_half, wide},
    filter::{Slots, slots},
    kernel::Dispatch,
    params::{mean_matches, rate_beside_copies},
    storage::{OutOfMemory, Owned, reserve_exact, reserved, shrink_to},
    table::{DeepGeometry, Instructions, TableParams as _},
};

/// The largest blocks are at least so long, and shorter than twice this, or have one table. From 2 MiB on, a block is in huge
/// pages, which are zeroed in a fraction of a millisecond. Ordinary pages take a time for each, so that an insertion that needs a
/// block of 2 to 4 MiB takes 2 ms.
const LARGEST: usize = if cfg!(huge_pages) { 2 << 20 } else { 128 << 10 };

/// Log₂ of the share of all tables that a block has: incomplete blocks take little space.
const SHARE: u32 = 5;

/// Bytes of a record. That of the next table, or the padding of the block, is a table's padding.
const RECORD_BYTES: usize = PADDING;

/// Bytes of what lists say of a block.
const BLOCK_ENTRIES: usize = size_of::<Owned>() + size_of::<u8>();

/// The shortest unit in which places are counted.
const LEAST_UNIT: u64 = 8;

/// Where a table begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

impl Place {
    /// Of no table.
    pub const NONE: Self = Self(u32::MAX);
}

/// What is known of a shard besides its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardRecord {
    /// The prefix, with a one above it.
    path: u32,
    items: u32,
}

impl ShardRecord {
    /// Of a shard to which the first `depth` bits of a stream lead, if these are `prefix`.
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

    /// The number of items.
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

/// A record that can be changed.
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
        *self.bytes = ShardRecord { items: low_half(wide(items)), ..self.record }.encode();
    }
}

/// What all shards of one depth have in common.
#[derive(Clone, Copy)]
pub(crate) struct DepthLayout {
    pub params: ShardParams,
    pub geometry: DeepGeometry,
    /// The bits of a stream that the shards store.
    pub upper: Window,
}

impl DepthLayout {
    pub fn new(params: ShardParams) -> Self {
        Self { geometry: DeepGeometry::new(&params), upper: params.upper(), params }
    }

    /// A whole shard with this table and this many items.
    pub fn shard<'a>(&self, dispatch: Dispatch, bytes: &'a [u8], items: usize) -> Shard<'a> {
        Shard::from_parts(self.params, &bytes[..self.params.padded_bytes()], items).with_dispatch(dispatch)
    }

    /// The number of copies of an item in such a shard.
    pub fn count(&self, dispatch: Dispatch, bytes: &[u8], key: Key) -> u32 {
        key.copies(self.upper).count(&|bucket| self.slots(dispatch, bytes, bucket))
    }

    /// The slots of a bucket in such a shard.
    #[inline(never)]
    pub fn slots(&self, dispatch: Dispatch, bytes: &[u8], bucket: u64) -> Slots {
        slots(bucket, |copy| dispatch.read_deep(&self.geometry, bytes, copy))
    }

    /// The probability that an absent item is found in a shard with this many items; with further copies, there are `times` as many.
    pub fn false_positive_rate(&self, items: usize, times: f64) -> f64 {
        let load = items as f64 / self.params.slots() as f64;
        let mean = mean_matches(self.params.low_bits.into(), self.params.bucket_size(), load);
        rate_beside_copies(mean / (1_u64 << self.params.spare_bits) as f64, times)
    }
}

/// The tables of one depth, numbered from 0 without gaps.
#[derive(Clone)]
pub(crate) struct Level {
    pub layout: DepthLayout,
    /// Bytes from one table to the next, a multiple of a unit.
    stride: usize,
    unit: usize,
    log2_per_block: u8,
    /// The same of a level that has grown table by table.
    log2_charged: u8,
    /// Whether there are always as many tables as one block has.
    is_one_block: bool,
    /// The numbers of its blocks.
    blocks: Vec<u32>,
    len: usize,
}

impl Level {
    /// No tables yet.
    pub fn new(plan: &GenerationPlan, depth: u8) -> Self {
        let layout = DepthLayout::new(plan.shard(depth));
        let unit = index(unit_of(plan));
        let stride = (RECORD_BYTES + layout.params.table_bytes()).next_multiple_of(unit);
        let is_one_block = plan.least_depth == plan.most_depth;
        let largest = LARGEST.div_ceil(stride).next_power_of_two().trailing_zeros();
        let log2 = if is_one_block { depth.into() } else { u32::from(depth).saturating_sub(SHARE).min(largest) };
        #[expect(clippy::cast_possible_truncation, reason = "a depth, or less")]
        let log2_per_block = log2 as u8;
        Self { layout, stride, unit, log2_per_block, log2_charged: log2_per_block, is_one_block, blocks: Vec::new(), len: 0 }
    }

    /// The number of tables.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The first table begins at a whole unit, behind its record; padding follows the last one.
    fn block_bytes(&self) -> usize {
        self.stride.saturating_mul(1 << self.log2_per_block).saturating_add(self.unit - RECORD_BYTES + PADDING)
    }

    fn blocks_for(&self, tables: usize) -> usize {
        tables.div_ceil(1 << self.log2_per_block)
    }

    /// What a table is charged against a limit of memory: its bytes, and an entry in each list of blocks. What all tables are
    /// charged follows from their number alone, so that filters of equal content are charged the same, however they came about.
    fn charge(&self) -> usize {
        self.stride.saturating_add(self.unit + BLOCK_ENTRIES + size_of::<u32>())
    }

    /// What is charged for room in the last block of a list of changing length, whether there is any or not: so joining two tables
    /// never raises the charge.
    fn slack(&self) -> usize {
        if self.is_one_block { 0 } else { self.stride.saturating_mul((1 << self.log2_charged) - 1) }
    }

    /// What this many tables are charged, if there are no others of this depth.
    fn charge_of(&self, tables: usize) -> usize {
        self.charge().saturating_mul(tables).saturating_add(self.slack()).saturating_add(size_of::<Self>())
    }
}

/// The unit of a generation's places: so long that 32 bits suffice for eight times as many tables as it is planned for.
fn unit_of(plan: &GenerationPlan) -> u64 {
    let tables = wide(plan.shard(plan.most_depth).table_bytes() + RECORD_BYTES).saturating_mul(8 << plan.most_depth);
    (tables >> 32).next_power_of_two().max(LEAST_UNIT)
}

/// The blocks of a pool, and how places number them.
#[derive(Clone, Copy)]
pub(crate) struct Blocks<'a> {
    blocks: &'a [Owned],
    places: Places,
}

/// How places are made up.
#[derive(Clone, Copy)]
struct Places {
    log2_unit: u8,
    /// Bits that say where in its block a table begins.
    start_bits: u8,
}

impl Places {
    /// The block of a place, and where in it the table begins.
    #[allow(clippy::inline_always, reason = "a call takes a tenth of a lookup's instructions")]
    #[inline(always)]
    fn split(self, place: Place) -> (usize, usize) {
        let (block, start) = (u64::from(place.0) >> self.start_bits, u64::from(place.0) & ((1 << self.start_bits) - 1));
        (index(block), index(start << self.log2_unit))
    }
}

impl<'a> Blocks<'a> {
    /// A table, and what follows it in its block. (To leave that out costs time.) `None` if there is none at this place.
    #[allow(clippy::inline_always, reason = "a call takes a tenth of a lookup's instructions")]
    #[inline(always)]
    pub fn get(self, place: Place) -> Option<&'a [u8]> {
        let (block, start) = self.places.split(place);
        self.blocks.get(block)?.get(start..)
    }
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Pool {
    blocks: Vec<Owned>,
    /// For each block, the index of its tables' level. Records have the depth, too; but an operation that waited for a record to
    /// know the layout of its table would read the two one after the other.
    levels_of_blocks: Vec<u8>,
    /// From the least depth to the greatest in use.
    levels: Vec<Level>,
    least_depth: u8,
    places: Places,
}

impl Pool {
    /// No levels and no tables yet.
    pub fn new(plan: &GenerationPlan) -> Self {
        let unit = unit_of(plan);
        let levels = (plan.least_depth..=plan.most_depth).map(|depth| Level::new(plan, depth));
        let longest = levels.map(|level| wide(level.block_bytes())).max().unwrap_or(unit);
        #[allow(clippy::cast_possible_truncation, reason = "32 at most, which the compiler may see")]
        let start_bits = (longest / unit + 1).next_power_of_two().trailing_zeros().min(32) as u8;
        #[expect(clippy::cast_possible_truncation, reason = "below 64")]
        let log2_unit = unit.trailing_zeros() as u8;
        let places = Places { log2_unit, start_bits };
        Self { blocks: Vec::new(), levels_of_blocks: Vec::new(), levels: Vec::new(), least_depth: plan.least_depth, places }
    }

    /// Adds levels up to this depth. If that fails, nothing has changed.
    pub fn add_levels(&mut self, plan: &GenerationPlan, depth: u8) -> Result<(), OutOfMemory> {
        let wanted = usize::from(depth - self.least_depth) + 1;
        let missing = wanted.saturating_sub(self.levels.len());
        reserve_exact(&mut self.levels, missing)?;
        self.levels.extend((0..missing).map(|level| Level::new(plan, depth - low_byte(missing - 1 - level))));
        Ok(())
    }

    /// Removes the levels beyond this depth, which have no tables.
    pub fn drop_levels(&mut self, depth: u8) {
        debug_assert!(self.levels[self.level_of(depth) + 1..].iter().all(|level| level.blocks.is_empty()));
        self.levels.truncate(self.level_of(depth) + 1);
        shrink_to(&mut self.levels, 0);
    }

    /// Makes blocks of this level, which has none, so short that they have room for hardly more than this many tables.
    pub fn expect_few(&mut self, depth: u8, tables: usize) {
        let level = self.level_of(depth);
        let level = &mut self.levels[level];
        level.log2_per_block =
            level.log2_per_block.min(low_byte(index(tables.max(1).next_power_of_two().trailing_zeros().into())));
    }

    /// The depth of the last level.
    pub fn greatest_depth(&self) -> u8 {
        self.least_depth + low_byte(self.levels.len().saturating_sub(1))
    }

    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    fn level_of(&self, depth: u8) -> usize {
        usize::from(depth - self.least_depth)
    }

    #[inline]
    pub fn level(&self, depth: u8) -> &Level {
        &self.levels[usize::from(depth - self.least_depth)]
    }

    /// The number of tables.
    pub fn len(&self) -> usize {
        self.levels.iter().map(Level::len).sum()
    }

    #[allow(clippy::inline_always, reason = "a call takes a tenth of a lookup's instructions")]
    #[inline(always)]
    pub fn blocks(&self) -> Blocks<'_> {
        Blocks { blocks: &self.blocks, places: self.places }
    }

    #[inline]
    pub fn table(&self, place: Place) -> &[u8] {
        self.blocks().get(place).unwrap_or_else(|| beyond())
    }

    /// Prefetches a record, and the beginning of its table.
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

    /// A shard to be changed: what its depth has in common with others, its record, and its table with what follows.
    #[inline]
    pub fn open(&mut self, place: Place) -> (&DepthLayout, RecordMut<'_>, &mut [u8]) {
        let (block, start) = self.places.split(place);
        let level = self.levels_of_blocks.get(block).and_then(|&level| self.levels.get(usize::from(level)));
        let opened = self.blocks.get_mut(block).and_then(|block| block.get_mut(start.wrapping_sub(RECORD_BYTES)..));
        match (level, opened.and_then(<[u8]>::split_first_chunk_mut)) {
            (Some(level), Some((bytes, table))) => {
                (&level.layout, RecordMut { record: ShardRecord::decode(*bytes), bytes }, table)
            }
            _ => beyond(),
        }
    }

    /// Two tables, the second of which is to be changed. They are of different depths.
    pub fn two_tables(&mut self, read: Place, written: Place) -> (&[u8], &mut [u8]) {
        let [(block, start), (other, other_start)] = [self.places.split(read), self.places.split(written)];
        match self.blocks.get_disjoint_mut([block, other]) {
            Ok([read, written]) => (&read[start..], &mut written[other_start..]),
            Err(_) => beyond(),
        }
    }

    /// The local depth of a shard.
    #[inline]
    pub fn depth(&self, place: Place) -> u8 {
        let (block, _) = self.places.split(place);
        self.levels_of_blocks.get(block).map_or_else(|| beyond(), |level| self.least_depth + level)
    }

    #[inline]
    pub fn record(&self, place: Place) -> ShardRecord {
        let (block, start) = self.places.split(place);
        let record = self.blocks.get(block).and_then(|block| block.get(start.wrapping_sub(RECORD_BYTES)..)?.first_chunk());
        record.map_or_else(|| beyond(), |&bytes| ShardRecord::decode(bytes))
    }

    fn set_record(&mut self, place: Place, record: ShardRecord) {
        let (block, start) = self.places.split(place);
        self.blocks[block][start - RECORD_BYTES..start].copy_from_slice(&record.encode());
    }

    pub fn set_items(&mut self, place: Place, record: ShardRecord, items: usize) {
        self.set_record(place, ShardRecord { items: low_half(wide(items)), ..record });
    }

    /// Where the table with this number is.
    pub fn place(&self, depth: u8, number: usize) -> Place {
        let level = self.level(depth);
        let in_block = number & ((1 << level.log2_per_block) - 1);
        let start = level.unit + in_block * level.stride;
        let block = u64::from(level.blocks[number >> level.log2_per_block]);
        Place(low_half(block << self.places.start_bits | wide(start >> self.places.log2_unit)))
    }

    /// A whole shard, and its prefix.
    pub fn shard(&self, dispatch: Dispatch, place: Place) -> (Shard<'_>, u32) {
        let record = self.record(place);
        (self.level(record.depth()).layout.shard(dispatch, self.table(place), record.items()), record.prefix())
    }

    /// A table without what follows it, and its record.
    pub fn whole_table(&self, place: Place) -> (ShardRecord, &[u8]) {
        let record = self.record(place);
        (record, &self.table(place)[..self.level(record.depth()).layout.params.table_bytes()])
    }

    /// Makes room for this many more tables. If that fails, nothing has changed.
    pub fn reserve(&mut self, depth: u8, more: usize) -> Result<(), OutOfMemory> {
        let at = self.level_of(depth);
        let level = &self.levels[at];
        let wanted = level.blocks_for(level.len + more);
        let missing = wanted.saturating_sub(level.blocks.len());
        if missing == 0 {
            return Ok(());
        }
        let bytes = level.block_bytes();
        let last = wide(self.blocks.len() + missing - 1) << self.places.start_bits;
        if last > u32::MAX.into() {
            return Err(OutOfMemory::of(bytes));
        }
        // New lists, so that there is nothing to undo.
        let (mut numbers, mut blocks) = (reserved(wanted)?, reserved(self.blocks.len() + missing)?);
        let mut levels_of_blocks = reserved(self.blocks.len() + missing)?;
        for _ in 0..missing {
            blocks.push(Owned::zeroed(bytes - PADDING).ok_or(OutOfMemory::of(bytes))?);
        }
        numbers.extend_from_slice(&level.blocks);
        numbers.extend((self.blocks.len()..).take(missing).map(|number| low_half(wide(number))));
        blocks.append(&mut self.blocks);
        blocks.rotate_left(missing);
        levels_of_blocks.extend_from_slice(&self.levels_of_blocks);
        levels_of_blocks.resize(blocks.len(), low_byte(at));
        (self.blocks, self.levels[at].blocks, self.levels_of_blocks) = (blocks, numbers, levels_of_blocks);
        Ok(())
    }

    /// Adds a table of the depth that the record says, for which there must be room. It is empty, whatever the record says.
    pub fn push(&mut self, record: ShardRecord) -> Place {
        let (depth, level) = (record.depth(), self.level_of(record.depth()));
        self.levels[level].len += 1;
        let place = self.place(depth, self.levels[level].len - 1);
        self.set_record(place, record);
        place
    }

    /// Removes a table. Calls `moved` with the record of each one that is somewhere else afterwards, and where it was and is.
    pub fn remove(&mut self, place: Place, moved: &mut dyn FnMut(ShardRecord, Place, Place)) {
        let depth = self.depth(place);
        let level = self.level_of(depth);
        let last = self.place(depth, self.levels[level].len - 1);
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
        self.release(depth, moved);
    }

    /// Frees blocks without tables. As [`remove`](Self::remove).
    pub fn release(&mut self, depth: u8, moved: &mut dyn FnMut(ShardRecord, Place, Place)) {
        let level = self.level_of(depth);
        let needed = self.levels[level].blocks_for(self.levels[level].len);
        while self.levels[level].blocks.len() > needed {
            let Some(free) = self.levels[level].blocks.pop() else { return };
            self.blocks.swap_remove(index(free.into()));
            self.levels_of_blocks.swap_remove(index(free.into()));
            let last = low_half(wide(self.blocks.len()));
            if free < last {
                self.renumber(last, free, moved);
            }
        }
        shrink_to(&mut self.levels[level].blocks, 0);
        shrink_to(&mut self.blocks, 0);
        shrink_to(&mut self.levels_of_blocks, 0);
    }

    /// Lets places lead to the block that has another number now.
    fn renumber(&mut self, from: u32, to: u32, moved: &mut dyn FnMut(ShardRecord, Place, Place)) {
        let mut levels = (self.least_depth..).zip(&mut self.levels);
        let found = levels.find_map(|(depth, level)| {
            let number = level.blocks.iter().position(|&number| number == from)?;
            level.blocks[number] = to;
            let first = number << level.log2_per_block;
            Some((depth, first..level.len.min(first + (1 << level.log2_per_block))))
        });
        let Some((depth, tables)) = found else { return };
        for table in tables {
            let place = self.place(depth, table);
            let in_block = place.0 & low_half((1 << self.places.start_bits) - 1);
            let before = Place(low_half(u64::from(from) << self.places.start_bits) | in_block);
            moved(self.record(place), before, place);
        }
    }

    /// A copy, or an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let (mut blocks, mut levels) = (reserved(self.blocks.len())?, reserved(self.levels.len())?);
        let mut levels_of_blocks = reserved(self.blocks.len())?;
        levels_of_blocks.extend_from_slice(&self.levels_of_blocks);
        for block in &self.blocks {
            let bytes = &block;
            blocks.push(Owned::copied(&bytes[..bytes.len() - PADDING]).ok_or(OutOfMemory::of(bytes.len()))?);
        }
        for level in &self.levels {
            let mut numbers = reserved(level.blocks.len())?;
            numbers.extend_from_slice(&level.blocks);
            levels.push(Level { blocks: numbers, ..*level });
        }
        Ok(Self { blocks, levels_of_blocks, levels, ..*self })
    }

    /// Bytes of all blocks.
    pub fn table_bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.len()).sum()
    }

    /// The same, and of the lists, which have room for no more unless memory to make them shorter was refused.
    pub fn size_in_bytes(&self) -> usize {
        let numbers = self.levels.iter().map(|level| level.blocks.len() * size_of::<u32>()).sum::<usize>();
        self.table_bytes() + self.blocks.len() * BLOCK_ENTRIES + self.levels.len() * size_of::<Level>() + numbers
    }

    /// What all tables are charged against a limit: at least [`size_in_bytes`](Self::size_in_bytes), and equal for pools with
    /// equal numbers of tables.
    pub fn charged(&self) -> usize {
        self.levels.iter().map(|level| level.charge_of(level.len)).fold(0, usize::saturating_add)
    }

    /// What this many more tables of this depth add to that.
    pub fn charge_of_more(&self, plan: &GenerationPlan, depth: u8, tables: usize) -> usize {
        match self.levels.get(self.level_of(depth)) {
            Some(level) => level.charge().saturating_mul(tables),
            None => Level::new(plan, depth).charge_of(tables),
        }
    }
}

/// Bytes of the blocks that a generation begins with.
pub(crate) fn first_table_bytes(plan: &GenerationPlan) -> usize {
    if plan.begins_unused() {
        return 0;
    }
    let level = Level::new(plan, plan.least_depth);
    level.blocks_for(1 << plan.least_depth).saturating_mul(level.block_bytes())
}

/// What tables of a generation at the beginning are charged.
pub(crate) fn charged_when_empty(plan: &GenerationPlan) -> usize {
    Level::new(plan, plan.least_depth).charge_of(1 << plan.least_depth)
}

fn low_byte(number: usize) -> u8 {
    number.to_le_bytes()[0]
}

/// For [`ElasticFilter::assert_consistent`](super::ElasticFilter::assert_consistent).
impl Pool {
    /// Calls `check` with every table, of which the record must be of its level. There are no more blocks than the tables need, and
    /// what no table has is zero, since the next one begins empty.
    pub fn assert_consistent(&self, mut check: impl FnMut(Place, ShardRecord)) {
        let mut numbers: Vec<u32> = Vec::new();
        for (depth, level) in (self.least_depth..).zip(&self.levels) {
            let per_block = 1 << level.log2_per_block;
            assert_eq!(level.blocks.len(), level.len.div_ceil(per_block), "blocks of {per_block} for {} tables", level.len);
            numbers.extend(&level.blocks);
            for number in 0..level.blocks.len() * per_block {
                let place = self.place(depth, number);
                if number < level.len {
                    let depths = [self.record(place).depth(), self.depth(place)];
                    assert_eq!(depths, [depth; 2], "the depth of table {number}");
                    check(place, self.record(place));
                } else {
                    let (block, start) = self.places.split(place);
                    let bytes = &self.blocks[block][start - RECORD_BYTES..][..level.stride];
                    assert!(bytes.iter().all(|&byte| byte == 0), "table {number} of {} is not empty", level.len);
                }
            }
        }
        numbers.sort_unstable();
        assert_eq!(self.levels_of_blocks.len(), self.blocks.len(), "levels of blocks");
        assert!(numbers.iter().map(|&number| index(number.into())).eq(0..self.blocks.len()), "numbers of blocks: {numbers:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::{super::plan::ElasticRequest, *};
    use alloc::vec;

    fn plan(request: ElasticRequest) -> GenerationPlan {
        ElasticRequest { false_positive_rate: Some(0.001), ..request }.params().unwrap().generation(0)
    }

    /// Random additions and removals at three depths, compared with a list of what the tables contain. Every move is reported.
    #[test]
    fn tables_are_lists_without_gaps() {
        let plan = plan(ElasticRequest { capacity: Some(50_000), max_capacity: Some(10_000_000), ..ElasticRequest::default() });
        let depths = [plan.least_depth, plan.least_depth + 1, plan.least_depth + 2];
        let mut pool = Pool::new(&plan);
        pool.add_levels(&plan, depths[2]).unwrap();
        let mut model: Vec<(Place, u8, u32)> = Vec::new();
        for step in 1..if cfg!(miri) { 60 } else { 2000_u32 } {
            let random = index((step.wrapping_mul(0x9e37_79b9) >> 8).into());
            if model.is_empty() || random % 5 < if step % 400 < 200 { 4 } else { 2 } && model.len() < 60 {
                let depth = depths[random % 3];
                pool.reserve(depth, 1).unwrap();
                let place = pool.push(ShardRecord::new(depth, step & 1, step));
                assert!(pool.whole_table(place).1.iter().all(|&byte| byte == 0));
                let bytes = plan.shard(depth).table_bytes();
                pool.table_mut(place)[..bytes].fill(step.to_le_bytes()[0] | 1);
                model.push((place, depth, step));
            } else {
                let (removed, ..) = model.swap_remove(random % model.len());
                pool.remove(removed, &mut |record, from, to| {
                    let moved = model.iter_mut().find(|(place, ..)| *place == from).expect("it is there");
                    assert_eq!((record.depth(), record.items()), (moved.1, moved.2 as usize));
                    moved.0 = to;
                });
            }
            let mut tables = 0;
            pool.assert_consistent(|_, _| tables += 1);
            assert_eq!((tables, pool.len()), (model.len(), model.len()));
            for &(place, depth, step) in &model {
                assert_eq!(pool.record(place), ShardRecord::new(depth, step & 1, step));
                let content = step.to_le_bytes()[0] | 1;
                assert_eq!(pool.whole_table(place).1, vec![content; plan.shard(depth).table_bytes()]);
            }
            assert!(pool.size_in_bytes() <= pool.charged());
        }
    }

    /// A block is a 32nd of the tables of its depth, at most a few MiB, or all tables of a filter that does not grow.
    #[test]
    fn blocks_are_bounded() {
        let growing = plan(ElasticRequest { max_capacity: Some(1_000_000_000), ..ElasticRequest::default() });
        for depth in growing.least_depth..=growing.most_depth {
            let level = Level::new(&growing, depth);
            let bytes = level.block_bytes();
            assert!(level.log2_per_block == depth.saturating_sub(5) || bytes >= LARGEST && bytes < 2 * LARGEST + level.stride);
        }
        let planned =
            plan(ElasticRequest { capacity: Some(10_000_000), max_capacity: Some(10_000_000), ..ElasticRequest::default() });
        let level = Level::new(&planned, planned.least_depth);
        assert!(level.slack() == 0 && level.blocks_for(1 << planned.least_depth) == 1);
    }

    /// Tables that begin beyond 2³² bytes, in one block and in many, without the memory for them.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    #[cfg(target_pointer_width = "64")]
    fn places_beyond_four_gigabytes_are_found() {
        for capacity in [None, Some(800_000_000_000)] {
            let plan = plan(ElasticRequest { capacity, max_capacity: Some(800_000_000_000), ..ElasticRequest::default() });
            let mut pool = Pool::new(&plan);
            pool.add_levels(&plan, plan.most_depth).unwrap();
            let last = (1_usize << plan.most_depth) - 1;
            let level = pool.level_of(plan.most_depth);
            let blocks = pool.levels[level].blocks_for(last + 1);
            pool.levels[level].blocks = (0..blocks as u32).collect();
            let (stride, per_block) = (pool.levels[level].stride, 1 << pool.levels[level].log2_per_block);
            let (block, start) = pool.places.split(pool.place(plan.most_depth, last));
            assert_eq!((block, start), (last / per_block, pool.levels[level].unit + last % per_block * stride));
            assert!(block * per_block * stride + start > 1 << 40);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri takes the memory")]
    fn without_memory_nothing_has_changed() {
        let plan = plan(ElasticRequest {
            capacity: Some(u64::MAX >> 24),
            max_capacity: Some(u64::MAX >> 24),
            ..ElasticRequest::default()
        });
        let mut pool = Pool::new(&plan);
        pool.add_levels(&plan, plan.least_depth).unwrap();
        assert!(pool.reserve(plan.least_depth, 1 << plan.least_depth).is_err());
        assert_eq!((pool.table_bytes(), pool.len()), (0, 0));
    }
}
