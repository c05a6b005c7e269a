//! Parts of a growing filter, which are built on their own and joined: a set that is larger than one machine's memory.

use alloc::{string::String, vec::Vec};
use core::{fmt, ops::Range};
use std::{
    io::{self, Read, Write},
    path::Path,
};

use super::{
    CoreGrow, Elastic, ElasticBuilder, ElasticFilter, ElasticParams, OwnedShards, builder::Plan, facts::summarize, lane::Lane,
    plan::MOST_LANES, storage::sealed::Sealed as _,
};
use crate::{
    bits::wide,
    filter::{BuildError, Core, CoreRemove, Filter, InsertError, MergeError, Planned},
    hash::{HashItem, HasherId, Xxh3},
    kernel::{Dispatch, Hashes, answers},
    params::{Addressing, ParamError, Parameter},
    snapshot::{Listing, Reader, Reading, Writing, open, replace},
    storage::{reserve, reserved},
    table::Uniform,
};

/// Lanes for each part, at least, if there may be so many: the parts of a job get nearly equal numbers of items.
const LANES_OF_PART: usize = 8;

/// A part of a growing filter: it takes the items of some lanes, and leaves the others to the other parts.
///
/// Threads, processes or machines build parts independently, with equal builders; then the parts are joined, without the items.
/// So a set can be larger than one machine's memory. The joined filter equals the one that would have been built in one place.
///
/// Which part an item belongs to follows from its hash alone. A job may give each part its own items ([`part_of`](ElasticPart::part_of)),
/// or all items to every part: what belongs to another part is left out.
///
/// # Example
/// ```
/// use koel::{ElasticFilter, ElasticPart};
/// let builder = ElasticFilter::builder().false_positive_rate(0.001).capacity(50_000);
/// // These three may run on different machines,
/// let mut snapshots = Vec::new();
/// for part in 0..3 {
///     let mut part = builder.clone().build_part(part, 3)?;
///     part.insert_iter(0..50_000u64)?;
///     let mut snapshot = Vec::new(); // or a file
///     part.write_to(&mut snapshot)?;
///     snapshots.push(snapshot);
/// }
/// // and this one needs memory for one shard at a time.
/// let mut joined = Vec::new();
/// ElasticPart::join_snapshots(snapshots.iter().map(|snapshot| &snapshot[..]), &mut joined)?;
/// let filter = ElasticFilter::from_bytes(&joined)?;
/// assert!(filter.len() == 50_000 && filter.contains(&7u64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type ElasticPart<H = Xxh3> = Filter<Part, H>;

/// Some lanes of a filter: the core of an [`ElasticPart`].
pub struct Part {
    pub(super) params: ElasticParams,
    number: usize,
    parts: usize,
    /// The number of its first lane in the filter.
    first: usize,
    storage: OwnedShards,
}

impl<H> ElasticBuilder<H> {
    /// The empty part with the number `part`, from 0, of a filter in `parts` parts. Capacities are those of the whole filter; the part
    /// takes its share of the memory. [`max_bytes`](Self::max_bytes) limits the part.
    ///
    /// By default, the number of [`lanes`](Self::lanes) is eight times the number of parts, rounded up to a power of two, and at
    /// most 256. Parts differ by one lane at most: up to 32 parts by an eighth of their size, more parts by a factor of two at most.
    ///
    /// # Errors
    /// As [`build`](Self::build), and if `part` is not below `parts`, or there are fewer lanes than parts.
    pub fn build_part(mut self, part: usize, parts: usize) -> Result<ElasticPart<H>, BuildError> {
        if parts == 0 || parts > MOST_LANES {
            let nearest = parts.clamp(1, MOST_LANES);
            return Err(wrong_parts(text!(
                "{parts} given, but a filter has 1 to {MOST_LANES}; the nearest that works is {nearest}"
            )));
        }
        if part >= parts {
            return Err(wrong_parts(text!("number {part} given, but {parts} are numbered from 0; give a lower number")));
        }
        self.lanes_or((LANES_OF_PART * parts).next_power_of_two().min(MOST_LANES));
        let of_part = |lanes: usize| {
            // Lane n belongs to part ⌊n·parts/lanes⌋.
            let [first, end] = [part, part + 1].map(|part| (part * lanes).div_ceil(parts));
            first..end
        };
        let Plan { params, hasher, dispatch, max_bytes } = self.plan(|lanes| of_part(lanes).len())?;
        let lanes = params.lanes();
        if lanes < parts {
            let words = text!("{parts} given, but the filter has {lanes} lanes; the nearest that works is {lanes}");
            return Err(wrong_parts(words));
        }
        let Range { start: first, end } = of_part(lanes);
        let mut lanes = reserved(end - first)?;
        for _ in first..end {
            lanes.push(Lane::new(&params, dispatch)?);
        }
        let core = Part { params, number: part, parts, first, storage: OwnedShards { lanes, max_bytes } };
        Ok(ElasticPart { core, hasher })
    }
}

fn wrong_parts(words: String) -> BuildError {
    ParamError::new(Parameter::Parts, words).into()
}

impl Part {
    /// The index of the lane of a hash, if this part has it.
    fn place(&self, hash: Uniform) -> Option<usize> {
        self.params.shares().lane(hash).checked_sub(self.first).filter(|&lane| lane < self.storage.lanes.len())
    }

    fn lane(&self, hash: Uniform) -> Option<&Lane> {
        self.place(hash).map(|lane| &self.storage.lanes[lane])
    }

    /// Returns false if the hash belongs to another part, or if `is_unique`, if it is there already.
    fn insert(&mut self, hash: Uniform, is_unique: bool) -> Result<bool, InsertError> {
        match self.place(hash) {
            Some(lane) if !is_unique || !self.storage.lanes[lane].holds(hash) => self.storage.insert(lane, hash).map(|()| true),
            _ => Ok(false),
        }
    }

    /// All lanes of the filter, as far as this part has them.
    pub(super) fn each_lane(&self) -> impl Iterator<Item = Option<&Lane>> {
        (0..self.params.lanes()).map(|number| self.storage.lanes.get(number.wrapping_sub(self.first)))
    }
}

/// What belongs to another part is not found.
#[allow(private_bounds, private_interfaces, reason = "the trait is sealed")]
impl Core for Part {
    const NAME: &'static str = "ElasticPart";

    fn seed(&self) -> u64 {
        self.params.seed()
    }

    fn addressing(&self) -> Addressing {
        Addressing::AnySize
    }

    fn contains(&self, hash: Uniform) -> bool {
        self.lane(hash).is_some_and(|lane| lane.contains(hash))
    }

    fn count(&self, hash: Uniform) -> u32 {
        self.lane(hash).map_or(0, |lane| lane.count(hash))
    }

    fn contains_all(&self, hashes: &impl Hashes, mut answer: impl FnMut(u64)) {
        hashes.each_batch(0..hashes.len(), |batch| {
            answer(answers(batch, |hash| self.contains(hash)));
            true
        });
    }

    fn len(&self) -> usize {
        self.storage.len()
    }

    /// The rate of the whole filter, as far as this part has it.
    fn false_positive_rate(&self) -> f64 {
        self.storage.false_positive_rate() * self.storage.lanes.len() as f64 / self.params.lanes() as f64
    }

    fn describe(&self, debug: &mut fmt::DebugStruct<'_, '_>) {
        debug.field("part", &self.number).field("parts", &self.parts);
    }

    fn summarize(&self, f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
        summarize(self, f, bytes)
    }

    fn bytes_behind(&self) -> usize {
        self.storage.size_in_bytes()
    }
}

#[allow(private_bounds, private_interfaces, reason = "the trait is sealed")]
impl Planned for Part {
    type Params = ElasticParams;

    /// Those of the whole filter.
    fn params(&self) -> ElasticParams {
        self.params
    }

    fn dispatch(&self) -> Dispatch {
        self.storage.dispatch()
    }

    fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.storage.set_dispatch(dispatch);
    }
}

#[allow(private_bounds, private_interfaces, reason = "the trait is sealed")]
impl CoreGrow for Part {
    fn shards(&self) -> usize {
        self.storage.shard_count()
    }

    fn layers(&self) -> usize {
        self.storage.layers()
    }

    fn table_bytes(&self) -> usize {
        self.storage.table_bytes()
    }
}

#[allow(private_bounds, private_interfaces, reason = "the trait is sealed")]
impl CoreRemove for Part {
    fn remove(&mut self, hash: Uniform) -> bool {
        self.place(hash).is_some_and(|lane| self.storage.lanes[lane].remove(hash))
    }
}

// Filling a part, and writing it.

impl<H> ElasticPart<H> {
    /// Inserts an item as [`ElasticFilter::insert`](crate::ElasticFilter::insert) does, if it belongs to this part. Returns false
    /// if it belongs to another one.
    ///
    /// # Errors
    /// As `ElasticFilter::insert`.
    #[inline]
    pub fn insert<T: ?Sized>(&mut self, item: &T) -> Result<bool, InsertError>
    where
        H: HashItem<T>,
    {
        let hash = self.uniform(item);
        self.core.insert(hash, false)
    }

    /// [`insert`](Self::insert), unless the part probably has the item already. Returns true if the item was inserted.
    ///
    /// # Errors
    /// As `ElasticFilter::insert`.
    #[inline]
    pub fn insert_unique<T: ?Sized>(&mut self, item: &T) -> Result<bool, InsertError>
    where
        H: HashItem<T>,
    {
        let hash = self.uniform(item);
        self.core.insert(hash, true)
    }

    /// [`insert`](Self::insert) for each item of an iterator, in order. Returns the number of items that belong to this part.
    ///
    /// # Errors
    /// [`InsertError`] at the first item that is refused; [`InsertError::position`] is the number of items before it, of whichever
    /// part. Those that belong to this one are in it.
    pub fn insert_iter<I: IntoIterator>(&mut self, items: I) -> Result<usize, InsertError>
    where
        H: HashItem<I::Item>,
    {
        self.insert_all(items, false)
    }

    /// [`insert_unique`](Self::insert_unique) for each item of an iterator, in order. Returns the number of items inserted.
    ///
    /// # Errors
    /// As [`insert_iter`](Self::insert_iter).
    pub fn insert_unique_iter<I: IntoIterator>(&mut self, items: I) -> Result<usize, InsertError>
    where
        H: HashItem<I::Item>,
    {
        self.insert_all(items, true)
    }

    fn insert_all<I: IntoIterator>(&mut self, items: I, is_unique: bool) -> Result<usize, InsertError>
    where
        H: HashItem<I::Item>,
    {
        let mut inserted = 0;
        for (position, item) in items.into_iter().enumerate() {
            let hash = self.uniform(&item);
            inserted += usize::from(self.core.insert(hash, is_unique).map_err(|error| error.at(position))?);
        }
        Ok(inserted)
    }

    /// The number of this part, from 0.
    #[must_use]
    pub fn part(&self) -> usize {
        self.core.number
    }

    /// The number of parts.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.core.parts
    }

    /// The number of the part that an item belongs to, from 0. It depends on the numbers of parts and lanes, the hasher and its
    /// seed, and on nothing else.
    #[must_use]
    pub fn part_of<T: ?Sized>(&self, item: &T) -> usize
    where
        H: HashItem<T>,
    {
        self.core.params.shares().lane(self.uniform(item)) * self.core.parts / self.core.params.lanes()
    }
}

// Joining parts: lanes are put side by side as they are.

impl ElasticPart {
    /// Joins the snapshots of all parts of a filter, in any order, and writes the snapshot of the whole, which
    /// [`ElasticFilter::read_from`] and [`ElasticView`](crate::ElasticView) read. Returns the number of items.
    ///
    /// Reads all parts at the same time, and takes the memory of one shard and one list of shards, whatever their sizes. Verifies
    /// everything that it copies. The hasher may be any: nothing is hashed.
    ///
    /// # Errors
    /// If the parts do not make up one filter, if one of them is corrupt or goes on after its end, or if reading or writing fails.
    /// What the writer has received by then is not a valid snapshot.
    ///
    /// # Example
    /// See [`ElasticPart`].
    pub fn join_snapshots<R: Read, W: Write>(parts: impl IntoIterator<Item = R>, mut writer: W) -> Result<u64, MergeError> {
        let mut readings = Vec::new();
        for (part, reader) in parts.into_iter().enumerate() {
            reserve(&mut readings, 1)?;
            readings.push(Reading::start(Reader(reader)).map_err(|error| MergeError::Part { part, error })?);
        }
        let Some(first) = readings.first() else { return Err(MergeError::NoParts) };
        let (params, hasher): (ElasticParams, HasherId) = (first.header.fields, first.header.hasher);
        if let Some(part) = readings.iter().position(|other| (other.header.fields, other.header.hasher) != (params, hasher)) {
            return Err(MergeError::DifferentPart { part });
        }
        let mut writing = Writing::start(&params, hasher, |piece: &[u8]| writer.write_all(piece))?;
        let mut items = 0;
        for lane in 0..params.lanes() {
            let Some((part, listing)) = owner(&mut readings, lane)? else {
                return Err(MergeError::MissingPart { lane, lanes: params.lanes() });
            };
            items += listing.items();
            writing.list(&listing)?;
            let mut written = Ok(());
            let copied = readings[part].tables(&listing, |table| {
                written = writing.table(table);
                written.is_ok()
            });
            written?;
            copied.map_err(|error| MergeError::Part { part, error })?;
            readings[part].release();
        }
        for (part, reading) in readings.into_iter().enumerate() {
            reading.finish_at_end().map_err(|error| MergeError::Part { part, error })?;
        }
        writing.finish()?;
        Ok(items)
    }

    /// [`join_snapshots`](Self::join_snapshots) for files. Creates or replaces the file at `path` as [`ElasticFilter::save`]
    /// does: if joining fails, the file is unchanged.
    ///
    /// # Errors
    /// As `join_snapshots`.
    pub fn join_files<P: AsRef<Path>>(parts: impl IntoIterator<Item = P>, path: impl AsRef<Path>) -> Result<u64, MergeError> {
        let mut files = Vec::new();
        for (part, path) in parts.into_iter().enumerate() {
            let path = path.as_ref();
            let file = open(path).map_err(|error| MergeError::Part { part, error })?;
            reserve(&mut files, 1)?;
            files.push(file);
        }
        let (mut items, mut refused) = (0, None);
        let written = replace(path.as_ref(), |file| match Self::join_snapshots(files, file) {
            Ok(joined) => {
                items = joined;
                Ok(())
            }
            Err(MergeError::Io(error)) => Err(error),
            Err(error) => {
                refused = Some(error);
                // Never seen: `refused` is returned.
                Err(io::ErrorKind::Other.into())
            }
        });
        match refused {
            Some(error) => Err(error),
            None => Ok(written.map(|()| items)?),
        }
    }
}

/// The index of the part that has a lane, and what its list says.
fn owner<R: Read>(readings: &mut [Reading<Reader<R>>], lane: usize) -> Result<Option<(usize, Listing)>, MergeError> {
    let mut owner: Option<(usize, Listing)> = None;
    for (part, reading) in readings.iter_mut().enumerate() {
        let listing = reading.listing(wide(lane)).map_err(|error| MergeError::Part { part, error })?;
        if listing.is_absent() {
            continue;
        }
        if let Some((first, _)) = owner {
            return Err(MergeError::SamePart { parts: [first, part] });
        }
        owner = Some((part, listing));
    }
    Ok(owner)
}

impl<H: PartialEq> ElasticFilter<H> {
    /// Joins all parts of a filter, in any order, without copying their tables.
    ///
    /// # Errors
    /// If the parts do not make up one filter, or if memory for their list cannot be allocated.
    ///
    /// # Example
    /// ```
    /// use koel::ElasticFilter;
    /// use std::thread;
    ///
    /// let builder = ElasticFilter::builder().false_positive_rate(0.001).capacity(50_000);
    /// let builders = (0..4).map(|part| (part, builder.clone()));
    /// let threads: Vec<_> = builders
    ///     .map(|(part, builder)| {
    ///         thread::spawn(move || {
    ///             let mut part = builder.build_part(part, 4).expect("the same for all parts");
    ///             part.insert_iter(0..50_000u64).map(|_| part)
    ///         })
    ///     })
    ///     .collect();
    /// let parts = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Result<Vec<_>, _>>()?;
    /// let filter = ElasticFilter::join(parts)?;
    /// assert_eq!(filter.len(), 50_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join(parts: impl IntoIterator<Item = ElasticPart<H>>) -> Result<Self, MergeError> {
        let mut given = Vec::new();
        for part in parts.into_iter().enumerate() {
            reserve(&mut given, 1)?;
            given.push(part);
        }
        if let Some(part) =
            given.iter().position(|(_, part)| part.core.params != given[0].1.core.params || part.hasher != given[0].1.hasher)
        {
            return Err(MergeError::DifferentPart { part });
        }
        given.sort_unstable_by_key(|(index, part)| (part.core.first, *index));
        let of_all = given.first().map_or(0, |(_, part)| part.core.params.lanes());
        let (mut lanes, mut last, mut whole) = (reserved(of_all)?, 0, None);
        for (index, part) in given {
            if part.core.first < lanes.len() {
                return Err(MergeError::SamePart { parts: [last, index] });
            }
            if part.core.first > lanes.len() {
                return Err(MergeError::MissingPart { lane: lanes.len(), lanes: part.core.params.lanes() });
            }
            // There is room for as many lanes as there are, and no part has more of them.
            lanes.extend(part.core.storage.lanes);
            last = index;
            whole.get_or_insert((part.core.params, part.hasher));
        }
        let Some((params, hasher)) = whole else { return Err(MergeError::NoParts) };
        if lanes.len() < params.lanes() {
            return Err(MergeError::MissingPart { lane: lanes.len(), lanes: params.lanes() });
        }
        Ok(Self { core: Elastic::from_lanes(lanes, params), hasher })
    }
}
