//! A lane: the part of a growing filter that has the items whose stream begins with certain bits. Lanes grow independently.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use alloc::vec::Vec;
use core::iter;

use super::{ElasticParams, layer::Layer, pool::Place, shard::Key};
use crate::{
    bits::wide,
    filter::{Combine, InsertError, InsertErrorKind, Located, Sought},
    kernel::{Dispatch, Task},
    storage::{OutOfMemory, reserve_exact, reserved, shrink_to},
    table::{AnySize, Fingerprint, Form as _, Geometry, Instructions, Narrow, Uniform, copies},
};

/// What a lane is charged against a limit beside its layers: its struct, and the lock of one that is shared.
pub(super) const LANE_BYTES: usize = 1 << 10;
const _: () = assert!(size_of::<Lane>() <= LANE_BYTES);

/// See the module.
#[derive(Clone)]
pub(crate) struct Lane {
    params: ElasticParams,
    /// Where the low fingerprints go, in all its shards.
    address: AnySize,
    first: Layer,
    /// Added when the bits of the layer before were used up.
    later: Vec<Layer>,
    /// True if a layer has further copies.
    has_further: bool,
    dispatch: Dispatch,
}

impl Lane {
    pub(super) fn new(params: &ElasticParams, dispatch: Dispatch) -> Result<Self, OutOfMemory> {
        let plan = params.layer(0);
        let first = if plan.begins_unused() { Layer::unused(plan, dispatch) } else { Layer::new(plan, dispatch)? };
        Ok(Self::with_first(params, first))
    }

    /// A lane with this first layer alone.
    pub(super) fn with_first(params: &ElasticParams, first: Layer) -> Self {
        let (address, dispatch) = (params.address(), first.dispatch());
        Self { params: *params, address, first, later: Vec::new(), has_further: false, dispatch }
    }

    /// Adds a later layer that was read.
    pub(super) fn push_layer(&mut self, layer: Layer) -> Result<(), OutOfMemory> {
        reserve_exact(&mut self.later, 1)?;
        self.later.push(layer);
        Ok(())
    }

    /// Adds the further copies of a snapshot, which are valid.
    pub(super) fn set_further(&mut self, copies: copies::Layered<'_>) -> Result<(), OutOfMemory> {
        self.layers_mut().try_for_each(|layer| layer.set_further(&copies.of_layer(layer.number())))?;
        self.note_copies();
        Ok(())
    }

    /// The number of copies in the tables of what a key stands for in the layer with this number; 0 if that is nothing.
    pub(super) fn occurrences_of(&self, layer: u8, listed: copies::Key) -> u32 {
        self.layers().nth(layer.into()).map_or(0, |layer| layer.occurrences_of(listed))
    }

    /// To be called after everything that may have changed the number of further copies, or where items go: whether insertions ask first
    /// follows from what the lane holds. Insertions into tables need not call it: they only make further copies a smaller share.
    pub(super) fn note_copies(&mut self) {
        let (had_further, has_further) = (self.has_further, self.layers().any(Layer::has_further));
        self.has_further = has_further;
        if has_further || had_further {
            let (further, many) = self.layers().fold((0_u64, 0_u64), |(further, many), layer| {
                (further.saturating_add(layer.further_totals().0), many.saturating_add(layer.many_copies()))
            });
            let asks_first = has_further && further >= many;
            self.layers_mut().for_each(|layer| layer.set_asks_first(false));
            self.last_mut().set_asks_first(asks_first);
        }
    }

    pub(super) fn layers(&self) -> impl Iterator<Item = &Layer> + Clone {
        iter::once(&self.first).chain(&self.later)
    }

    fn layers_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Layer> {
        iter::once(&mut self.first).chain(&mut self.later)
    }

    /// The layer with this index, the first one included.
    fn layer_mut(&mut self, at: usize) -> &mut Layer {
        if at == 0 { &mut self.first } else { &mut self.later[at - 1] }
    }

    /// The layer that takes new items.
    #[inline]
    pub(super) fn last(&self) -> &Layer {
        self.later.last().unwrap_or(&self.first)
    }

    #[inline]
    pub(super) fn last_mut(&mut self) -> &mut Layer {
        self.later.last_mut().unwrap_or(&mut self.first)
    }

    pub(super) fn params(&self) -> &ElasticParams {
        &self.params
    }

    /// The number of shards.
    pub fn shards(&self) -> usize {
        self.layers().map(Layer::shards).sum()
    }

    /// The number of slots of all shards; or of the items in a list instead.
    pub(super) fn slots(&self) -> u64 {
        self.params.slots_of(self.shards()) + wide(self.number_of_few())
    }

    #[inline]
    pub(super) fn contains(&self, hash: Uniform) -> bool {
        self.dispatch.run(Find { lane: self, hash })
    }

    /// True if a hash has been inserted, as far as all stored bits tell, and not only those that lookups compare.
    #[inline]
    pub(super) fn holds(&self, hash: Uniform) -> bool {
        self.contains(hash) && self.count(hash) > 0
    }

    /// What the lane needs of a hash.
    #[inline]
    pub(super) fn key(&self, hash: Uniform) -> Key {
        Key::new(&self.address, self.params.shares().stream(hash), hash)
    }

    /// The layout of the first layer's tables.
    #[inline]
    pub(super) fn geometry(&self) -> &Geometry {
        self.first.geometry()
    }

    /// The table of the first layer to which a stream leads; none if the lane has no tables.
    #[inline(always)]
    pub(super) fn table(&self, stream: u64) -> Option<&[u8]> {
        self.first.table(stream)
    }

    /// What leads to the tables of the first layer.
    #[cfg(x86_kernels)]
    #[inline(always)]
    pub(super) fn directory(&self) -> super::layer::Directory<'_> {
        self.first.directory()
    }

    /// True if the lane has no tables, since it has few items.
    #[inline]
    pub(super) fn is_unused(&self) -> bool {
        self.first.is_unused()
    }

    /// True if there are later layers.
    #[inline]
    pub(super) fn has_later(&self) -> bool {
        !self.later.is_empty()
    }

    /// The answer of a lookup that has found no table. Takes what that has in registers.
    #[cold]
    #[inline(never)]
    fn is_among_few(&self, first: u64, second: u64, low: Fingerprint, stream: u64) -> bool {
        self.first.is_among_few(Key::of_parts((first, second), low, stream))
    }

    /// Prefetches the buckets of a hash in the layer that takes new items.
    pub(super) fn prefetch(&self, hash: Uniform) {
        self.last().prefetch(self.key(hash));
    }

    /// True if a hash is in any layer.
    #[cold]
    #[inline(never)]
    fn is_in_any_layer(&self, hash: Uniform) -> bool {
        let key = self.key(hash);
        self.layers().any(|layer| layer.contains(key))
    }

    /// True if a hash is in a later layer.
    #[cold]
    pub(super) fn later_contain(&self, hash: Uniform) -> bool {
        let key = self.key(hash);
        self.later.iter().any(|layer| layer.contains(key))
    }

    pub(super) fn count(&self, hash: Uniform) -> u32 {
        let key = self.key(hash);
        self.layers().map(|layer| layer.count(key)).fold(0, u32::saturating_add)
    }

    /// Inserts a hash, if it fits into the last layer as that is; otherwise nothing has changed, and the place of the full shard is
    /// returned. (Or of its shard, where insertions ask first.)
    #[inline]
    pub(super) fn insert(&mut self, hash: Uniform) -> Result<(), Place> {
        let key = self.key(hash);
        self.last_mut().insert(key)
    }

    /// Inserts a hash for which [`insert`](Self::insert) has returned this place, where insertions ask first. Returns false, and has
    /// changed nothing, if that takes longer; or if it may change what the lane is charged, and must not.
    pub(super) fn insert_asking(&mut self, hash: Uniform, place: Place, is_limited: bool) -> bool {
        self.last().asks_first() && self.insert_after_asking(self.key(hash), place, is_limited)
    }

    #[inline(never)]
    fn insert_after_asking(&mut self, key: Key, place: Place, is_limited: bool) -> bool {
        for layer in self.layers_mut().rev().filter(|layer| layer.contains(key)) {
            if layer.count_another(key, !is_limited) {
                // A copy more: insertions go on asking.
                return true;
            }
            if layer.count_in_table(key) > 0 {
                return false;
            }
        }
        let is_inserted = self.last_mut().insert_unasked(place, key);
        self.note_copies();
        is_inserted
    }

    /// Inserts a hash for which [`insert`](Self::insert) has returned this place. What the lane is charged may rise by `allowed`
    /// bytes. If it fails, nothing has changed.
    #[cold]
    pub(super) fn insert_growing(&mut self, hash: Uniform, place: Place, allowed: usize) -> Result<(), InsertError> {
        let key = self.key(hash);
        let result = self.insert_with(place, key, allowed);
        self.note_copies();
        result
    }

    fn insert_with(&mut self, place: Place, key: Key, allowed: usize) -> Result<(), InsertError> {
        if self.is_unused() && !self.first.is_among_few(key) {
            return self.insert_among_few(key, allowed);
        }
        // A copy never makes the lane grow.
        let may_be_another = self.may_be_another(key);
        if let Some(layer) = self.layers_mut().rev().find(|layer| layer.has(key)).filter(|layer| layer.is_copy(key, may_be_another)) {
            return layer.count_further(key, 1, allowed);
        }
        let last = self.last_mut();
        if last.asks_first() && last.insert_unasked(place, key) {
            return Ok(());
        }
        let refused = match last.insert_growing(place, key, allowed) {
            Ok(true) => return Ok(()),
            Ok(false) => match self.add_layer(allowed, Some(key)) {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            },
            Err(refused) => refused,
        };
        // Where an item goes must not depend on the memory that there is: a replica may have more.
        let may_go_elsewhere = matches!(refused.kind(), InsertErrorKind::Crowded | InsertErrorKind::Layers);
        let has_room = may_go_elsewhere && self.layers_mut().rev().any(|layer| layer.insert_as_it_is(key));
        if has_room { Ok(()) } else { Err(refused) }
    }

    /// Inserts an item into a lane without tables that does not have it. If the list has no room for one more, the lane gets tables.
    fn insert_among_few(&mut self, key: Key, allowed: usize) -> Result<(), InsertError> {
        if !self.first.has_room_for_few() {
            match self.with_tables(Some(key)) {
                Ok(grown) => return self.replace_by(grown, allowed),
                // Chosen items, for which tables have no room, must not keep out all others.
                Err(refused) if matches!(refused.kind(), InsertErrorKind::Crowded | InsertErrorKind::Layers) => {}
                Err(refused) => return Err(refused),
            }
        }
        self.first.insert_among_few(key, allowed)
    }

    /// A lane with the items of this one, which has no tables, and with another one, in tables.
    fn with_tables(&self, key: Option<Key>) -> Result<Self, InsertError> {
        let mut grown = Self::with_first(&self.params, Layer::new(self.params.layer(0), self.dispatch)?);
        for (key, copies) in self.first.few_items().chain(key.map(|key| (key, 1))) {
            grown.insert_stored(key, 0, copies, usize::MAX)?;
        }
        Ok(grown)
    }

    /// Replaces the lane, if the charge does not rise by more than `allowed`.
    fn replace_by(&mut self, other: Self, allowed: usize) -> Result<(), InsertError> {
        let needed = other.charged().saturating_sub(self.charged());
        if needed > allowed {
            return Err(InsertError::limit(needed));
        }
        *self = other;
        Ok(())
    }

    /// True if what looks like a copy of an item that is there may well be another item, alike by chance, that would make room for itself by
    /// a split. (If it were counted, filters of the same different items would not be of the same size, as they are within the maximal
    /// capacity.)
    fn may_be_another(&self, key: Key) -> bool {
        !self.has_further && !self.has_later() && self.first.may_split(key)
    }

    /// Adds an empty layer, and an item to it. If that is not possible, nothing has changed.
    fn add_layer(&mut self, allowed: usize, key: Option<Key>) -> Result<(), InsertError> {
        let number = self.last().number().checked_add(1).filter(|&number| usize::from(number) < self.params.most_layers());
        let number = number.ok_or(InsertError::of(InsertErrorKind::Layers))?;
        let plan = self.params.layer(number);
        let needed = Layer::charged_when_empty(&plan).saturating_add(size_of::<Layer>());
        if needed > allowed {
            return Err(InsertError::limit(needed));
        }
        let mut layer = Layer::new(plan, self.dispatch)?;
        // An empty shard has room.
        let is_inserted = key.is_none_or(|key| layer.insert(key).is_ok());
        debug_assert!(is_inserted);
        Ok(self.push_layer(layer)?)
    }

    /// A copy, or an error if memory cannot be allocated.
    pub(super) fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut later = reserved(self.later.len())?;
        for layer in &self.later {
            later.push(layer.try_clone()?);
        }
        Ok(Self { first: self.first.try_clone()?, later, ..*self })
    }

    /// A lane with the items of this one and of another one with the same number, of each as many copies as `how` says. It may be
    /// charged `most` bytes.
    ///
    /// Inserting an item takes longer than copying it. So a sum begins with a copy of the larger lane.
    pub(super) fn merged(&self, other: &Self, how: Combine, most: usize) -> Result<Self, InsertError> {
        let (copied, inserted) = if how == Combine::Sum && self.len() < other.len() { (other, self) } else { (self, other) };
        if copied.charged() > most {
            return Err(InsertError::limit(copied.charged() - self.charged()));
        }
        let mut lane = copied.try_clone()?;
        lane.set_dispatch(self.dispatch);
        lane.merge(inserted, how, most)?;
        Ok(lane)
    }

    /// Inserts all items of another lane with the same number, each into the layer of the same number; or for a union, of each item as many
    /// copies as that layer lacks. The lane may be charged `most` bytes. If it fails, some have been inserted.
    fn merge(&mut self, other: &Self, how: Combine, most: usize) -> Result<(), InsertError> {
        for (at, layer) in other.layers().enumerate() {
            self.add_layers_up_to(at, most)?;
            let mut take = |key, copies: u32| {
                let ours = if how == Combine::Union { self.layer_mut(at).count(key) } else { 0 };
                self.insert_stored(key, at, copies.saturating_sub(ours), most)
            };
            layer.few_items().try_for_each(|(key, copies)| take(key, copies))?;
            for (shard, prefix) in layer.evenly() {
                let mut result = Ok(());
                shard.each_class(&mut |(bucket, _), fingerprint, in_table| {
                    let key = Key::of_stored(shard.params(), prefix, bucket, fingerprint);
                    result = take(key, in_table.saturating_add(layer.further(key)));
                    result.is_ok()
                });
                result?;
            }
        }
        self.drop_empty_layers();
        self.note_copies();
        Ok(())
    }

    /// Adds empty layers, until there is one with this number.
    fn add_layers_up_to(&mut self, number: usize, most: usize) -> Result<(), InsertError> {
        if number > 0 && self.is_unused() {
            self.replace_by(self.with_tables(None)?, most.saturating_sub(self.charged()))?;
        }
        while self.later.len() < number {
            self.add_layer(most.saturating_sub(self.charged()), None)?;
        }
        Ok(())
    }

    /// Inserts copies of an item into the layer with this number: as many as one by one would go into tables, and the others are counted at
    /// once. The lane may be charged `most` bytes. If it fails, some have been inserted.
    fn insert_stored(&mut self, key: Key, at: usize, copies: u32, most: usize) -> Result<(), InsertError> {
        let mut left = copies;
        while left > 0 {
            if self.is_unused() && !self.first.is_among_few(key) {
                self.insert_among_few(key, most.saturating_sub(self.charged()))?;
                self.note_copies();
                left -= 1;
                continue;
            }
            let (asks_first, may_be_another) = (self.last().asks_first(), self.may_be_another(key));
            let allowed = most.saturating_sub(self.charged());
            let layer = self.layer_mut(at);
            if !(asks_first && layer.has(key)) && layer.insert_where_it_leads(key) {
                left -= 1;
                continue;
            }
            if layer.has(key) && layer.is_copy(key, may_be_another) {
                layer.count_further(key, left, allowed)?;
                left = 0;
            } else if layer.insert_growing(layer.place(key), key, allowed)? || layer.insert_as_it_is(key) {
                left -= 1;
            } else {
                return Err(InsertError::of(InsertErrorKind::Layers));
            }
            self.note_copies();
        }
        Ok(())
    }

    /// Removes one copy of the hash's fingerprint, of the longest that there is: an item in a later layer, where more of its bits
    /// are known, is never taken for another one in an earlier layer. Frees memory if two shards have become underfull.
    #[inline]
    pub(super) fn remove(&mut self, hash: Uniform) -> bool {
        let key = self.key(hash);
        if self.has_further {
            return self.remove_beside_copies(key);
        }
        if self.has_later() && self.remove_later(key) {
            return true;
        }
        let is_removed = self.first.remove_and_join(key);
        if self.first.has_few() {
            self.drop_empty_layers();
        }
        is_removed
    }

    /// The same where there are further copies. A layer gives up those first, so that a table has one as long as there are others.
    #[cold]
    fn remove_beside_copies(&mut self, key: Key) -> bool {
        let is_removed = self.layers_mut().rev().any(|layer| layer.take_copies(key, 1) == 1 || layer.remove_and_join(key));
        self.drop_empty_layers();
        self.note_copies();
        is_removed
    }

    /// The same, from later layers.
    #[cold]
    fn remove_later(&mut self, key: Key) -> bool {
        let is_removed = self.later.iter_mut().rev().any(|layer| layer.remove_and_join(key));
        if is_removed {
            self.drop_empty_layers();
        }
        is_removed
    }

    /// A later layer that has become empty is not needed, and neither are the shards of a lane with few items.
    #[inline(never)]
    fn drop_empty_layers(&mut self) {
        let layers = self.later.len();
        while self.later.pop_if(|layer| layer.len() == 0).is_some() {}
        if self.later.len() < layers {
            shrink_to(&mut self.later, 0);
        }
        if self.later.is_empty() && self.first.release() {
            self.note_copies();
        }
    }

    /// Joins all shards that are underfull, as far as there is memory for it.
    pub(super) fn shrink(&mut self) {
        self.drop_empty_layers();
        for layer in self.layers_mut() {
            layer.join_all();
        }
        self.note_copies();
    }

    /// Removes all items, and frees the memory that the lane has grown by; without memory for the tables that it begins with, it
    /// keeps those of the first layer.
    pub(super) fn clear(&mut self) {
        if let Ok(empty) = Self::new(&self.params, self.dispatch) {
            *self = empty;
        } else {
            self.later = Vec::new();
            self.first.empty();
            self.note_copies();
        }
    }

    /// The probability that a hash of this lane is found that was never inserted.
    pub(super) fn false_positive_rate(&self) -> f64 {
        let times = self.len() as f64 / self.table_len().max(1) as f64;
        self.layers().map(|layer| layer.false_positive_rate(times)).sum::<f64>().min(1.0)
    }

    pub(super) fn dispatch(&self) -> Dispatch {
        self.dispatch
    }

    pub(super) fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.dispatch = dispatch;
        self.layers_mut().for_each(|layer| layer.set_dispatch(dispatch));
    }

    pub fn len(&self) -> usize {
        self.layers().map(Layer::len).fold(0, usize::saturating_add)
    }

    /// The number of items in the tables.
    pub(super) fn table_len(&self) -> usize {
        self.layers().map(Layer::table_len).sum()
    }

    /// The number of different items, in each layer.
    pub(super) fn different(&self) -> u64 {
        let mut different = wide(self.first.list_of_few().len());
        for (shard, _) in self.layers().flat_map(Layer::evenly) {
            shard.each_class(&mut |_, _, _| {
                different += 1;
                true
            });
        }
        different
    }

    /// All further copies: the number of the layer, the key and the number of copies, in order.
    pub(crate) fn further_copies(&self) -> impl Iterator<Item = (u8, copies::Key, u32)> + Clone {
        self.further_copies_from(0, 0).map(|(_, entry)| entry)
    }

    /// Those from a slot of the layer with this number on, and their slots.
    pub(crate) fn further_copies_from(
        &self,
        number: u8,
        slot: usize,
    ) -> impl Iterator<Item = (usize, (u8, copies::Key, u32))> + Clone {
        let layers = self.layers().filter(move |layer| layer.number() >= number);
        layers.filter_map(|layer| Some((layer.number(), layer.further_copies()?))).flat_map(move |(layer, copies)| {
            let entries = copies.iter_from(if layer == number { slot } else { 0 });
            entries.map(move |(slot, (key, copies))| (slot, (layer, key, copies)))
        })
    }

    /// What stands for the different items of a lane without tables, in order.
    pub(crate) fn few(&self) -> impl Iterator<Item = copies::Key> {
        self.first.list_of_few().keys()
    }

    /// Their number.
    pub(crate) fn number_of_few(&self) -> usize {
        self.first.list_of_few().len()
    }

    /// The length of such a key in a snapshot.
    pub(crate) fn key_bytes(&self) -> usize {
        self.first.key_bytes()
    }

    /// The number of items that have some, each layer by itself.
    pub(crate) fn entries(&self) -> u64 {
        self.layers().map(|layer| wide(layer.further_totals().1)).sum()
    }

    /// Bytes of all tables, with their padding.
    pub(super) fn table_bytes(&self) -> usize {
        self.layers().map(Layer::table_bytes).sum()
    }

    pub(super) fn size_in_bytes(&self) -> usize {
        self.later.capacity() * size_of::<Layer>() + self.layers().map(Layer::size_in_bytes).sum::<usize>()
    }

    /// What the lane is charged against a limit: see [`Layer::charged`].
    pub(super) fn charged(&self) -> usize {
        let later = self.later.len() * size_of::<Layer>();
        self.layers().map(Layer::charged).fold(LANE_BYTES + later, usize::saturating_add)
    }

    /// What an empty lane is charged.
    pub(super) fn charged_when_empty(params: &ElasticParams) -> usize {
        Layer::charged_when_empty(&params.layer(0)).saturating_add(LANE_BYTES)
    }
}

/// Equal shards, with equal tables, and equal copies beside them.
impl PartialEq for Lane {
    fn eq(&self, other: &Self) -> bool {
        let has_equal_few = self.first.list_of_few() == other.first.list_of_few();
        has_equal_few && self.records().eq(other.records()) && self.further_copies().eq(other.further_copies())
    }
}

impl Eq for Lane {}

/// A lookup in the first layer, as one function from the hash to the bits of the table; later layers are looked up behind it.
struct Find<'a> {
    lane: &'a Lane,
    hash: Uniform,
}

impl Task for Find<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<I: Instructions>(self, instructions: I) -> bool {
        let Self { lane, hash } = self;
        if lane.has_later() {
            return lane.is_in_any_layer(hash);
        }
        // The first layer has no spare bits, so that nothing but the low fingerprint is compared.
        let (buckets, fingerprint) = lane.address.buckets(hash);
        let stream = lane.params.shares().stream(hash);
        let Some(table) = lane.table(stream) else { return lane.is_among_few(buckets.0, buckets.1, fingerprint, stream) };
        match lane.geometry() {
            Geometry::Narrow(geometry) => Narrow::read(geometry, table, instructions, Sought { buckets, fingerprint }),
            // A function of its own, so that this one needs none of its registers.
            geometry => lane.dispatch.read(geometry, table, Located::new(buckets, fingerprint)),
        }
    }
}

/// For [`ElasticFilter::assert_consistent`](super::ElasticFilter::assert_consistent).
impl Lane {
    pub(super) fn assert_consistent(&self) {
        for (position, layer) in self.layers().enumerate() {
            let number = layer.number();
            assert_eq!(usize::from(number), position, "the number of a layer");
            layer.assert_consistent(&self.params.layer(number), self.dispatch);
        }
        assert!(self.later.last().is_none_or(|layer| layer.len() > 0), "the last layer is empty");
        assert!(!self.is_unused() || self.later.is_empty(), "the lane has later layers, and no tables in the first one");
        let is_needed = self.len() > 0 || self.is_unused() || !self.params.layer(0).begins_unused();
        assert!(is_needed, "the lane has shards without items");
        assert_eq!(self.has_further, self.layers().any(Layer::has_further), "further copies");
        let mut noted = self.clone();
        noted.note_copies();
        let asks_first = |lane: &Self| lane.layers().map(Layer::asks_first).collect::<Vec<_>>();
        assert_eq!(asks_first(&noted), asks_first(self), "which layer asks first");
        assert!(self.size_in_bytes() <= self.charged(), "{} bytes, charged {}", self.size_in_bytes(), self.charged());
    }
}
