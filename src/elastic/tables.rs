//! Many tables of one size, side by side in blocks, so that few numbers lead to them.

use alloc::vec::Vec;

use crate::{
    bits::{PADDING, beyond},
    storage::{OutOfMemory, Owned, Sealed as _, StorageMut as _, reserved, shrink_to},
};

/// Tables begin at multiples of a cache line.
const CACHE_LINE: usize = 64;

/// The largest blocks are at least so long, and shorter than twice this, or have one table. From 2 MiB on, a block is in huge
/// pages, which are zeroed in a fraction of a millisecond. Ordinary pages take a time for each, so that an insertion that needs a
/// block of 2 to 4 MiB takes 2 ms.
const LARGEST: usize = if cfg!(huge_pages) { 2 << 20 } else { 128 << 10 };

/// Log₂ of the share of all tables that a block has, if there are few tables, and if there are enough for huge pages: incomplete
/// blocks take little space.
const SMALL_SHARE: u32 = 5;
const LARGEST_SHARE: u32 = if cfg!(huge_pages) { 3 } else { SMALL_SHARE };

/// A list of tables. The last one takes the place of one that is removed, so that there are no gaps.
#[derive(Clone)]
pub(super) struct Tables {
    /// Bytes from one table to the next: those of a table, its padding, and what is left of a cache line.
    stride: usize,
    log2_per_block: u32,
    /// The same of a list that has grown table by table.
    log2_charged: u32,
    /// There are always as many tables as this one block has.
    is_one_block: bool,
    blocks: Vec<Owned>,
    len: usize,
}

impl Tables {
    /// No tables yet, of so many bytes each. There will be 2^`log2_tables` or so.
    pub(super) fn new(table_bytes: usize, log2_tables: u32) -> Self {
        let stride = (table_bytes + PADDING).next_multiple_of(CACHE_LINE);
        let largest = LARGEST.div_ceil(stride).next_power_of_two().trailing_zeros();
        let is_largest = log2_tables.saturating_sub(LARGEST_SHARE) >= largest;
        let log2_per_block = if is_largest { largest } else { log2_tables.saturating_sub(SMALL_SHARE) };
        Self { stride, log2_per_block, log2_charged: log2_per_block, is_one_block: false, blocks: Vec::new(), len: 0 }
    }

    /// The same, in blocks that have room for hardly more than so many.
    pub(super) fn for_few(self, tables: usize) -> Self {
        let enough = tables.max(1).next_power_of_two().trailing_zeros();
        Self { log2_per_block: self.log2_per_block.min(enough), ..self }
    }

    /// No tables yet, for so many in one block, whatever its length.
    pub(super) fn in_one_block(table_bytes: usize, log2_tables: u32) -> Self {
        Self { log2_per_block: log2_tables, is_one_block: true, ..Self::new(table_bytes, 0) }
    }

    /// The bytes of a table and of its padding, and those behind it in its block. (To leave them out costs time.)
    #[inline]
    pub(super) fn get(&self, at: usize) -> &[u8] {
        let (block, start) = self.find(at);
        match self.blocks.get(block).and_then(|block| block.bytes().get(start..)) {
            Some(table) => table,
            None => beyond(),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: usize) -> &mut [u8] {
        let (block, start) = self.find(at);
        &mut self.blocks[block].bytes_mut()[start..]
    }

    /// The block with a table, and where it begins there.
    #[inline]
    fn find(&self, at: usize) -> (usize, usize) {
        (at >> self.log2_per_block, (at & ((1 << self.log2_per_block) - 1)) * self.stride)
    }

    fn block_bytes(&self) -> usize {
        self.stride.saturating_mul(1 << self.log2_per_block)
    }

    /// The number of tables that there is room for.
    pub(super) fn capacity(&self) -> usize {
        self.blocks.len() << self.log2_per_block
    }

    /// Bytes of so many tables, with their padding and what is left of their blocks.
    pub(super) fn bytes_of(&self, tables: usize) -> usize {
        tables.div_ceil(1 << self.log2_per_block).saturating_mul(self.block_bytes())
    }

    /// What a table is charged against a limit of memory: its bytes, an entry in the list of blocks, and `beside` bytes. What all
    /// tables are charged follows from their number alone, so that filters of equal content are charged the same, however they
    /// came about.
    pub(super) fn charge(&self, beside: usize) -> usize {
        self.stride + size_of::<Owned>() + beside
    }

    /// What is charged for room in the last block of a list of changing length, whether there is any or not: so joining two tables
    /// never raises the charge.
    pub(super) fn slack(&self, beside: usize) -> usize {
        if self.is_one_block { 0 } else { (self.stride + beside).saturating_mul((1 << self.log2_charged) - 1) }
    }

    /// The number of tables for which there is room after `more` have been added.
    pub(super) fn capacity_for(&self, more: usize) -> usize {
        self.blocks.len().max((self.len + more).div_ceil(1 << self.log2_per_block)) << self.log2_per_block
    }

    /// Makes room for so many more tables. If that fails, nothing has changed.
    pub(super) fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        let missing = (self.capacity_for(more) >> self.log2_per_block) - self.blocks.len();
        if missing == 0 {
            return Ok(());
        }
        // A new list, so that there is nothing to undo.
        let mut blocks = reserved(self.blocks.len() + missing)?;
        for _ in 0..missing {
            blocks.push(Owned::zeroed(self.block_bytes() - PADDING).ok_or(OutOfMemory::of(self.block_bytes()))?);
        }
        blocks.append(&mut self.blocks);
        blocks.rotate_left(missing);
        self.blocks = blocks;
        Ok(())
    }

    /// Adds an empty table, for which there must be room. Returns its index.
    pub(super) fn push(&mut self) -> usize {
        self.len += 1;
        self.len - 1
    }

    /// Removes a table; the last one takes its place.
    pub(super) fn swap_remove(&mut self, at: usize) {
        let last = self.len - 1;
        if at < last {
            let ((block, start), (last_block, last_start)) = (self.find(at), self.find(last));
            if block == last_block {
                self.blocks[block].bytes_mut().copy_within(last_start..last_start + self.stride, start);
            } else {
                let (before, rest) = self.blocks.split_at_mut(last_block);
                let moved = &rest[0].bytes()[last_start..last_start + self.stride];
                before[block].bytes_mut()[start..start + self.stride].copy_from_slice(moved);
            }
        }
        self.len = last;
        self.release();
        if last < self.blocks.len() << self.log2_per_block {
            let stride = self.stride;
            self.get_mut(last)[..stride].fill(0);
        }
    }

    /// Frees blocks without tables.
    pub(super) fn release(&mut self) {
        self.blocks.truncate(self.len.div_ceil(1 << self.log2_per_block));
        shrink_to(&mut self.blocks, 0);
    }

    /// A copy, or an error if memory cannot be allocated.
    pub(super) fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut blocks = reserved(self.blocks.len())?;
        for block in &self.blocks {
            let bytes = block.bytes();
            blocks.push(Owned::copied(&bytes[..bytes.len() - PADDING]).ok_or(OutOfMemory::of(bytes.len()))?);
        }
        Ok(Self { blocks, ..*self })
    }

    /// Bytes of all tables, with their padding and what is left of their blocks.
    pub(super) fn table_bytes(&self) -> usize {
        self.blocks.len().saturating_mul(self.block_bytes())
    }

    /// The same, and of the list of blocks.
    pub(super) fn size_in_bytes(&self) -> usize {
        self.table_bytes() + self.blocks.capacity() * size_of::<Owned>()
    }
}

/// For [`ElasticFilter::assert_consistent`](super::ElasticFilter::assert_consistent).
impl Tables {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// There are no more blocks than the tables need, and what no table has is zero, since the next one begins empty.
    pub(super) fn assert_consistent(&self) {
        let per_block = 1 << self.log2_per_block;
        assert_eq!(self.blocks.len(), self.len.div_ceil(per_block), "blocks of {per_block} for {} tables", self.len);
        for at in self.len..self.blocks.len() * per_block {
            assert!(self.get(at)[..self.stride].iter().all(|&byte| byte == 0), "table {at} of {} is not empty", self.len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{vec, vec::Vec};

    /// Random additions and removals, compared with a vector of what the tables contain.
    #[test]
    fn tables_are_a_list_without_gaps() {
        for log2_per_block in [0, 1, 3] {
            let (mut tables, mut model) = (Tables::new(100, log2_per_block + SMALL_SHARE), Vec::new());
            for step in 1..if cfg!(miri) { 40 } else { 1000_u32 } {
                let random = usize::try_from(step.wrapping_mul(0x9e37_79b9) >> 8).unwrap();
                if model.is_empty() || random % 5 < 3 && model.len() < 30 {
                    tables.reserve(1).unwrap();
                    let at = tables.push();
                    assert!(at == model.len() && tables.get(at)[..128].iter().all(|&byte| byte == 0));
                    let content = step.to_le_bytes()[0] | 1;
                    tables.get_mut(at)[..108].fill(content);
                    model.push(content);
                } else {
                    let at = random % model.len();
                    tables.swap_remove(at);
                    model.swap_remove(at);
                }
                for (at, &content) in model.iter().enumerate() {
                    assert_eq!(tables.get(at)[..108], vec![content; 108]);
                }
                assert_eq!(tables.table_bytes(), model.len().div_ceil(1 << log2_per_block) * (128 << log2_per_block));
            }
            assert_eq!(tables.try_clone().unwrap().get(0)[..108], tables.get(0)[..108]);
        }
    }

    #[test]
    fn blocks_are_bounded() {
        let block = |tables: Tables| tables.block_bytes();
        assert_eq!(block(Tables::new(1000, 4)), 1024);
        if cfg!(huge_pages) {
            // A 32nd of the tables, or an eighth if these are a huge page.
            assert_eq!(block(Tables::new(1000, 13)), 1024 << 8);
            assert_eq!(block(Tables::new(1000, 14)), 2 << 20);
            assert_eq!(block(Tables::new(14_000, 20)), 256 * 14_016);
        } else {
            assert_eq!(block(Tables::new(1000, 11)), 1024 << 6);
            assert_eq!(block(Tables::new(1000, 12)), 128 << 10);
            assert_eq!(block(Tables::new(1000, 20)), 128 << 10);
            assert_eq!(block(Tables::new(14_000, 20)), 16 * 14_016);
        }
        assert_eq!(block(Tables::new(10 << 20, 20)), (10 << 20) + 64);
        assert_eq!(block(Tables::in_one_block(1 << 20, 4)), 16 * ((1 << 20) + 64));
    }

    /// Tables that begin beyond 2³² bytes, in one block and in many, without the memory for them.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn places_beyond_four_gigabytes_are_found() {
        let last = (1 << 27) - 1;
        let tables = Tables::in_one_block(90_000, 27);
        assert_eq!(tables.find(last), (0, last * 90_048));
        assert_eq!((tables.block_bytes(), tables.slack(0)), (90_048 << 27, 0));
        let tables = Tables::new(90_000, 27);
        let per_block = 1 << tables.log2_per_block;
        assert_eq!(tables.find(last), (last / per_block, (per_block - 1) * 90_048));
        assert_eq!(tables.slack(0), (per_block - 1) * 90_048);
    }

    #[test]
    fn without_memory_nothing_has_changed() {
        let mut tables = Tables::in_one_block(usize::MAX / 4, 2);
        assert!(tables.reserve(1).is_err());
        assert_eq!((tables.table_bytes(), tables.capacity()), (0, 0));
    }
}
