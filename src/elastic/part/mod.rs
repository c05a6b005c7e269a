//! Parts of a growing filter, which are built on their own and joined: a set that is larger than one machine's memory.

mod error;
mod join;
mod operations;

use alloc::{string::String, vec::Vec};
use core::{fmt, ops::Range};

use super::{
    ElasticBuilder, ElasticParams, GrowError, builder::Plan, error::Refused, lane::Lane, plan::MOST_LANES, storage::FILTER_BYTES,
};
use crate::{
    filter::BuildError,
    hash::Xxh3,
    params::{ParamError, Parameter},
    storage::reserved,
};
pub use error::JoinError;

/// Lanes for each part, at least, if there may be so many: the parts of a job get nearly equal numbers of items.
const LANES_OF_PART: usize = 8;

/// A part of a growing filter: it takes the items of some lanes, and leaves the others to the other parts.
///
/// Parts are built anywhere, by threads, processes or machines that know nothing of each other, with a builder that was told the
/// same; then they are joined, without the items. So a set can be larger than one machine's memory. The joined filter is the one
/// that would have been built in one place.
///
/// Which part an item belongs to follows from its hash alone. A job may give each part its own items ([`part_of`](Self::part_of)),
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
pub struct ElasticPart<H = Xxh3> {
    params: ElasticParams,
    hasher: H,
    part: usize,
    parts: usize,
    /// The number of its first lane in the filter.
    first: usize,
    lanes: Vec<Lane>,
    max_bytes: usize,
}

impl<H> ElasticBuilder<H> {
    /// An empty part of a filter that has so many parts, which are numbered from 0. Capacities are those of the whole filter; the
    /// part takes its share of the memory. [`max_bytes`](Self::max_bytes) limits the part.
    ///
    /// The number of [`lanes`](Self::lanes) is by default the next power of two from eight times the number of parts on, and 256 at
    /// most. Each part has as many of them as the others, or one more: so up to 32 parts differ by an eighth, more by a factor of
    /// two at most.
    ///
    /// # Errors
    /// As [`build`](Self::build), and if there are not as many parts, or not as many lanes as parts.
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
        Ok(ElasticPart { params, hasher, part, parts, first, lanes, max_bytes })
    }
}

fn wrong_parts(words: String) -> BuildError {
    ParamError::new(Parameter::Parts, words).into()
}

impl<H> ElasticPart<H> {
    /// The number of items in the part, counting duplicates.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lanes.iter().map(Lane::len).sum()
    }

    /// True if the part holds no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The parameters of the whole filter.
    #[must_use]
    pub fn params(&self) -> ElasticParams {
        self.params
    }

    /// The number of this part, from 0.
    #[must_use]
    pub fn part(&self) -> usize {
        self.part
    }

    /// The number of parts.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// The hasher.
    #[must_use]
    pub fn hasher(&self) -> &H {
        &self.hasher
    }

    /// Bytes of all tables of this part, with their padding.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.lanes.iter().map(Lane::table_bytes).sum()
    }

    /// What the part is charged against its limit.
    fn charged(&self) -> usize {
        self.lanes.iter().map(Lane::charged).fold(FILTER_BYTES, usize::saturating_add)
    }

    fn refuse(&self, reason: Refused) -> GrowError {
        GrowError::new(reason, self.charged(), self.max_bytes)
    }
}

/// The parameters and the number of items, without the tables.
impl<H> fmt::Debug for ElasticPart<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { params, part, parts, .. } = self;
        let mut debug = f.debug_struct("ElasticPart");
        debug.field("part", part).field("parts", parts).field("params", params).field("len", &self.len()).finish_non_exhaustive()
    }
}
