//! The items of a table as the values of its slots, with which tables of another filter are merged bucket by bucket.

use alloc::vec::Vec;

use super::{Generation, Key, Place, Shard, ShardMut};
use crate::{
    bits::{index, low_half, mask, wide},
    elastic::shard::{BUCKET_SIZE, ShardParams},
    filter::classes,
    storage::{OutOfMemory, copied, reserved},
    table::{Fingerprint, TableParams as _},
};

/// The number of slots in a bucket.
const SLOTS: usize = BUCKET_SIZE as usize;

/// The items of another filter's table, or some of them: the values of all slots, bucket by bucket, 0 for those that are empty.
pub(crate) struct Slots {
    /// The parameters of a table with these values, and its prefix.
    params: ShardParams,
    prefix: u64,
    values: Vec<u64>,
}

impl Slots {
    /// Returns the slots of a table with this prefix.
    pub fn of(table: &Shard<'_>, prefix: u64) -> Result<Self, OutOfMemory> {
        Ok(Self { params: *table.params(), prefix, values: table.values()? })
    }

    pub fn depth(&self) -> u8 {
        self.params.depth
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.values.iter().filter(|&&value| value > 0).count()
    }

    /// Returns a stream that leads to these items.
    pub fn stream(&self) -> u64 {
        self.prefix << 1 << (63 - self.params.depth)
    }

    /// Returns the slots of the two shards of which this one would consist if it were split.
    pub fn split(mut self) -> Result<[Self; 2], OutOfMemory> {
        self.params = ShardParams { depth: self.params.depth + 1, upper_bits: self.params.upper_bits - 1, ..self.params };
        self.prefix <<= 1;
        let (mut upper, bit) = (reserved(self.values.len())?, 1 << self.params.stored_bits());
        upper.extend(self.values.iter().map(|&value| if value & bit == 0 { 0 } else { value ^ bit }));
        for value in &mut self.values {
            *value = if *value & bit == 0 { *value } else { 0 };
        }
        let upper = Self { prefix: self.prefix | 1, values: upper, ..self };
        Ok([self, upper])
    }

    /// Removes the items that a table has, whose prefix is the same or shorter, and returns them.
    pub fn take_present(&mut self, table: &Shard<'_>) -> Result<Self, OutOfMemory> {
        let mut present = Self { values: copied(&self.values)?, ..*self };
        table.keep_present(&mut present.values, self.bits_above(*table.params()));
        self.toggle(&present);
        Ok(present)
    }

    /// Removes these items, which are here in the same slots, or puts them into these slots, which are empty here.
    pub fn toggle(&mut self, items: &Self) {
        self.values.iter_mut().zip(&items.values).for_each(|(value, toggled)| *value ^= toggled);
    }

    /// Returns the bits that a table with these parameters stores above the values.
    fn bits_above(&self, shallower: ShardParams) -> u64 {
        (self.prefix & mask(u32::from(self.params.depth - shallower.depth))) << self.params.stored_bits()
    }

    /// Returns the key of each item, once for each of its copies.
    pub fn keys(&self) -> impl Iterator<Item = Key> + Clone {
        self.values.iter().enumerate().filter_map(|(slot, &value)| {
            Some(Key::from_stored(self.params, self.prefix, wide(slot / SLOTS), Fingerprint::new(value)?))
        })
    }

    /// Calls `act` with each different item and the number of its copies, until it returns an error.
    pub fn each_item<E>(&self, act: &mut dyn FnMut(Key, u32) -> Result<(), E>) -> Result<(), E> {
        let (mut result, (buckets, _)) = (Ok(()), self.values.as_chunks::<SLOTS>());
        (0..).zip(buckets).all(|(bucket, values)| {
            classes(&self.params, bucket, values, |bucket| buckets[index(bucket)], &mut |(bucket, _), fingerprint, copies| {
                result = act(Key::from_stored(self.params, self.prefix, bucket, fingerprint), copies);
                result.is_ok()
            })
        });
        result
    }
}

impl Generation {
    /// Returns the place and the table to which the streams of these items lead, or the first of them; `None` if it is a list.
    pub fn table_for(&self, slots: &Slots) -> Option<(Place, Shard<'_>)> {
        let global = self.global_depth();
        let prefix = slots.prefix >> slots.depth().saturating_sub(global);
        let place = self.directory.at(slots.depth().min(global), low_half(prefix))?;
        Some((place, self.shard(place)?))
    }

    /// Adds items to the table at this place, which [`Slots::take_present`] has shown not to have them. Returns false, and changes
    /// nothing, if the table has no room for all of them.
    pub fn add_slots(&mut self, place: Place, slots: &Slots) -> Result<bool, OutOfMemory> {
        let Some((layout, record, table)) = self.pool.open(place) else { return Ok(false) };
        let (params, items) = (layout.params, record.items());
        let table = &mut table[..params.padded_bytes()];
        let before = copied(&table[..params.table_bytes()])?;
        let mut shard = ShardMut::from_parts(params, table, wide(items)).with_dispatch(self.dispatch);
        let are_added = shard.add_all(0, &slots.values, slots.bits_above(params));
        let len = shard.len();
        if are_added {
            record.set_items(len);
            self.len += len - items;
        } else {
            table[..before.len()].copy_from_slice(&before);
        }
        Ok(are_added)
    }

    /// Stores copies of items that the table at this place has: each that finds a free slot in one of its two buckets, as long as the rate
    /// allows more items. These are removed from `slots`. A list takes none.
    pub fn store_copies(&mut self, place: Place, slots: &mut Slots) {
        let Some((layout, record, table)) = self.pool.open(place) else { return };
        let (params, items) = (layout.params, record.items());
        let (above, most) = (slots.bits_above(params), self.plan.most_items().saturating_sub(items));
        let table = &mut table[..params.padded_bytes()];
        let mut shard = ShardMut::from_parts(params, table, wide(items)).with_dispatch(self.dispatch);
        shard.store_copies(&mut slots.values, above, most);
        let len = shard.len();
        record.set_items(len);
        self.len += len - items;
    }
}
