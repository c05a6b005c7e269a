//! Filling a part, and writing it.

use std::{
    io::{self, Write},
    path::Path,
};

use super::{
    super::{operations::spread, snapshot::write},
    ElasticPart, GrowError,
};
use crate::{
    hash::{HashItem, Hasher},
    snapshot::replace,
    table::Uniform,
};

impl<H> ElasticPart<H> {
    /// Inserts an item as [`ElasticFilter::insert`](crate::ElasticFilter::insert) does, if it belongs to this part. Returns false
    /// if it belongs to another one.
    ///
    /// # Errors
    /// As `ElasticFilter::insert`.
    #[inline]
    pub fn insert<T: ?Sized>(&mut self, item: &T) -> Result<bool, GrowError>
    where
        H: HashItem<T>,
    {
        self.insert_uniform(self.uniform(item), false)
    }

    /// [`insert`](Self::insert), unless the part probably has the item already. Returns true if the item was inserted.
    ///
    /// # Errors
    /// As `ElasticFilter::insert`.
    #[inline]
    pub fn insert_unique<T: ?Sized>(&mut self, item: &T) -> Result<bool, GrowError>
    where
        H: HashItem<T>,
    {
        self.insert_uniform(self.uniform(item), true)
    }

    /// [`insert`](Self::insert) for a hash.
    ///
    /// # Errors
    /// As `ElasticFilter::insert`.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<bool, GrowError> {
        self.insert_uniform(spread(hash), false)
    }

    /// [`insert`](Self::insert) for each item of an iterator, in order. Returns the number of items that belong to this part.
    ///
    /// # Errors
    /// [`GrowError`] at the first item that is refused; [`GrowError::position`] is the number of items before it, of whichever
    /// part. Those that belong to this one are in it.
    pub fn insert_iter<I: IntoIterator>(&mut self, items: I) -> Result<usize, GrowError>
    where
        H: HashItem<I::Item>,
    {
        let mut inserted = 0;
        for (position, item) in items.into_iter().enumerate() {
            inserted += usize::from(self.insert(&item).map_err(|error| error.at(position))?);
        }
        Ok(inserted)
    }

    fn insert_uniform(&mut self, hash: Uniform, unique: bool) -> Result<bool, GrowError> {
        let number = self.params.shares().lane(hash).wrapping_sub(self.first);
        let Some(lane) = self.lanes.get_mut(number) else { return Ok(false) };
        if unique && lane.contains(hash) {
            return Ok(false);
        }
        if let Err(full) = lane.insert(hash) {
            let allowed = self.max_bytes.saturating_sub(self.charged());
            self.lanes[number].insert_growing(hash, full, allowed).map_err(|reason| self.refuse(reason))?;
        }
        Ok(true)
    }

    /// The number of the part that an item belongs to, from 0. It depends on the numbers of parts and lanes, the hasher and its
    /// seed, and on nothing else.
    #[must_use]
    pub fn part_of<T: ?Sized>(&self, item: &T) -> usize
    where
        H: HashItem<T>,
    {
        self.params.shares().lane(self.uniform(item)) * self.parts / self.params.lanes()
    }

    #[inline]
    fn uniform<T: ?Sized>(&self, item: &T) -> Uniform
    where
        H: HashItem<T>,
    {
        Uniform(self.hasher.hash_item(self.params.seed(), item))
    }

    /// Writes the part as a snapshot for [`join_snapshots`](ElasticPart::join_snapshots).
    ///
    /// # Errors
    /// The writer's error. What it has received by then is not a valid snapshot.
    pub fn write_to<W: Write>(&self, mut writer: W) -> io::Result<()>
    where
        H: Hasher,
    {
        let lanes = (0..self.params.lanes()).map(|number| Ok(self.lanes.get(number.wrapping_sub(self.first))));
        write(&self.params, self.hasher.id(), lanes, |piece| writer.write_all(piece))
    }

    /// Writes the part to a file, which it creates or replaces as [`ElasticFilter::save`](crate::ElasticFilter::save) does.
    ///
    /// # Errors
    /// As `ElasticFilter::save`.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()>
    where
        H: Hasher,
    {
        replace(path.as_ref(), |file| self.write_to(file))
    }
}
