//! Converts RedisBloom's filters to filters of this crate, and back.
//!
//! A sub-filter stores its fingerprints as the single table does. With [`Addressing::PowerOfTwo`] and [`RedisBloomHash`], items
//! have the same buckets in both. So slots are copied unchanged.

use core::{error::Error, fmt};

use super::{
    FINGERPRINT_BITS, RedisBloomFilter, SubFilter, SubFilters,
    format::{BUCKET_SIZE, BUCKETS, EXPANSION, FILTERS, Header, ITEMS, MAX_ITERATIONS, MAX_SLOTS},
};
use crate::{
    bits::{index, wide},
    filter::{CuckooFilter, RawFilter, unsupported},
    hash::{Hasher, HasherId, RedisBloomHash},
    params::{Addressing, Params, TableKind},
    storage::{OutOfMemory, Owned, reserved},
};

/// The seed that RedisBloom always uses.
const SEED: u64 = 0;

// The defaults of `CF.RESERVE`.
const DEFAULT_MAX_ITERATIONS: u64 = 20;
const DEFAULT_EXPANSION: u64 = 1;

impl RedisBloomFilter {
    /// Copies a filter with one sub-filter, and buckets of at most 16 slots, into a [`CuckooFilter`]. That can be saved, queried in
    /// place, merged and changed.
    ///
    /// `contains` returns the same as here, false positives included. So does `count`, except for items whose two buckets are the
    /// same: RedisBloom counts each copy of them twice. The other fields of the header are lost: removed items, maximum evictions
    /// and expansion. `len` is the number of taken slots, which differs from the header's count if clients wrote to the filter
    /// during the dump.
    ///
    /// An insertion without room is refused: a [`CuckooFilter`] does not grow.
    ///
    /// # Errors
    /// If there are several sub-filters or larger buckets, or memory cannot be allocated.
    ///
    /// # Example
    /// ```
    /// use koel::{FilterView, redisbloom::{RedisBloomFilter, RedisBloomHash}};
    /// # let header = [&[1, 0, 0, 0, 0, 0, 0, 0, 2][..], &[0; 15], &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 20, 0, 1, 0]].concat();
    /// # let filter = RedisBloomFilter::from_chunks([(1, &header[..]), (5, &[0, 213, 0, 0])])?;
    /// # let dump = filter.to_dump();
    /// let mut filter = RedisBloomFilter::from_dump(&dump)?.to_filter()?;
    /// assert!(filter.contains("alice"));
    /// filter.insert("bob")?;
    /// let snapshot = filter.to_bytes();
    /// assert!(FilterView::over_with(&snapshot, |_| Some(RedisBloomHash))?.contains("bob"));
    ///
    /// // For CF.LOADCHUNK:
    /// assert!(RedisBloomFilter::from_filter(&filter)?.contains("bob"));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn to_filter(&self) -> Result<CuckooFilter<RedisBloomHash>, RedisBloomError> {
        let [filter] = &self.core.filters[..] else { return Err(RedisBloomError::SubFilters(self.core.filters.len())) };
        let b = self.bucket_size();
        if !TableKind::Single.bucket_sizes().contains(&b) {
            return Err(RedisBloomError::BucketSize(b));
        }
        let slots = &filter.slots;
        // A sub-filter has at most 2³² slots, so its number of buckets is valid. `Params::new` fails only if the table exceeds the
        // address space.
        let params = Params::new(TableKind::Single, FINGERPRINT_BITS, b, filter.buckets(), Addressing::PowerOfTwo, SEED).ok();
        let parts = params.and_then(|params| Some((params, Owned::copied(slots)?)));
        let (params, storage) = parts.ok_or(OutOfMemory::of(slots.len()))?;
        Ok(CuckooFilter { core: RawFilter::from_parts(params, storage, filter.taken), hasher: RedisBloomHash })
    }

    /// Copies a [`CuckooFilter`] with parameters that RedisBloom supports: the hasher [`RedisBloomHash`], the seed 0, the single
    /// table, fingerprints of 8 bits and [`Addressing::PowerOfTwo`]. Copy a view with
    /// [`FilterView::to_filter`](crate::FilterView::to_filter) first.
    ///
    /// Fields that a [`CuckooFilter`] lacks get RedisBloom's defaults: no removed items, 20 evictions, expansion 1.
    ///
    /// The hasher may also be `RedisBloomHash` as an [`AnyHasher`](crate::hash::AnyHasher).
    ///
    /// # Errors
    /// If RedisBloom does not support these parameters. If the filter counts copies beside its table, or has more than 2³² slots.
    /// If memory cannot be allocated.
    pub fn from_filter<H: Hasher>(filter: &CuckooFilter<H>) -> Result<Self, RedisBloomError> {
        let params = filter.params();
        check(&params, filter.hasher().id())?;
        if let (copies @ 1.., _) = filter.core.extra_totals() {
            return Err(RedisBloomError::Copies(copies));
        }
        let mut table = SubFilter::new(params.buckets(), index(params.bucket_size().into()));
        let mut filters = reserved(1)?;
        table.append(filter.core.table())?;
        let header = Header::new([
            (ITEMS, table.taken),
            (BUCKETS, params.buckets()),
            (FILTERS, 1),
            (BUCKET_SIZE, params.bucket_size().into()),
            (MAX_ITERATIONS, DEFAULT_MAX_ITERATIONS),
            (EXPANSION, DEFAULT_EXPANSION),
        ]);
        filters.push(table);
        Ok(Self::of(SubFilters { header, filters }))
    }
}

/// Returns an error if RedisBloom does not support these parameters and this hasher.
fn check(params: &Params, hasher: HasherId) -> Result<(), RedisBloomError> {
    if hasher != HasherId::REDIS_BLOOM {
        return Err(RedisBloomError::Hasher(hasher));
    }
    if params.seed() != SEED {
        return Err(RedisBloomError::Seed(params.seed()));
    }
    if params.table() != TableKind::Single {
        return Err(RedisBloomError::Table(params.table()));
    }
    if params.fingerprint_bits() != FINGERPRINT_BITS {
        return Err(RedisBloomError::FingerprintBits(params.fingerprint_bits()));
    }
    if params.addressing() != Addressing::PowerOfTwo {
        return Err(RedisBloomError::Addressing(params.addressing()));
    }
    let slots = wide(params.slots());
    if slots > MAX_SLOTS { Err(RedisBloomError::Slots(slots)) } else { Ok(()) }
}

/// The reason that a filter cannot be converted from RedisBloom's to a [`CuckooFilter`](crate::CuckooFilter), or back.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, redisbloom::{RedisBloomError, RedisBloomFilter}};
/// let filter = CuckooFilter::builder().capacity(10).fingerprint_bits(8).build()?;
/// let error = RedisBloomFilter::from_filter(&filter).unwrap_err();
/// assert!(matches!(error, RedisBloomError::Hasher(_)));
/// assert_eq!(error.to_string(), "hasher: xxh3 given, but RedisBloom's is redisbloom; build the filter with that hasher");
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum RedisBloomError {
    /// RedisBloom's filter has grown, so it has several sub-filters.
    SubFilters(usize),
    /// RedisBloom's filter has buckets of more than 16 slots.
    BucketSize(u32),
    /// The hasher must be `RedisBloomHash`.
    Hasher(HasherId),
    /// The seed must be 0.
    Seed(u64),
    /// The table must be single.
    Table(TableKind),
    /// Fingerprints must have 8 bits.
    FingerprintBits(u32),
    /// The number of buckets must be a power of two.
    Addressing(Addressing),
    /// There are more than 2³² slots. RedisBloom finds nothing in such a table.
    Slots(u64),
    /// This many copies are counted beside the table, and RedisBloom's filters have tables alone.
    Copies(u64),
    /// Memory for the table cannot be allocated.
    OutOfMemory(OutOfMemory),
}

impl fmt::Display for RedisBloomError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const REMEDY: &str = "query the dump as it is, or insert the items into a new filter";
        match self {
            Self::SubFilters(filters) => {
                write!(f, "sub-filters: {filters} given, but a filter of fixed size has 1 table; {REMEDY}")
            }
            Self::BucketSize(slots) => {
                write!(f, "bucket size: {slots} given, but the single table takes 1 to 16; {REMEDY}")
            }
            Self::Hasher(given) => unsupported(f, "hasher", given, "RedisBloom's is redisbloom", "that hasher"),
            Self::Seed(given) => unsupported(f, "seed", given, "RedisBloom always uses 0", "that seed"),
            Self::Table(given) => unsupported(f, "table", given, "RedisBloom's is single", "that table"),
            Self::FingerprintBits(given) => unsupported(f, "fingerprint bits", given, "RedisBloom's have 8", "that length"),
            Self::Addressing(given) => unsupported(f, "addressing", given, "RedisBloom uses power-of-two", "that addressing"),
            Self::Slots(given) => unsupported(f, "slots", given, "RedisBloom can use at most 4294967296", "a smaller capacity"),
            Self::Copies(copies) => write!(
                f,
                "copies: {copies} are counted beside the table, and RedisBloom has tables alone; store items once, with insert_unique"
            ),
            Self::OutOfMemory(_) => f.write_str("the filter cannot be copied"),
        }
    }
}

impl Error for RedisBloomError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::OutOfMemory(error) => Some(error),
            _ => None,
        }
    }
}

impl From<OutOfMemory> for RedisBloomError {
    fn from(error: OutOfMemory) -> Self {
        Self::OutOfMemory(error)
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    /// Checks the limit without allocating tables of that size.
    #[test]
    fn more_slots_than_redisbloom_can_use_are_refused() {
        let checked = |b, buckets| {
            let params = Params::new(TableKind::Single, 8, b, buckets, Addressing::PowerOfTwo, SEED).unwrap();
            check(&params, HasherId::REDIS_BLOOM)
        };
        for (b, buckets) in [(1, 1 << 32), (2, 1 << 31), (3, 1 << 30), (16, 1 << 28)] {
            assert!(checked(b, buckets).is_ok());
        }
        for (b, buckets) in [(2, 1 << 32), (3, 1 << 31), (16, 1 << 29)] {
            assert!(matches!(checked(b, buckets), Err(RedisBloomError::Slots(slots)) if slots == u64::from(b) * buckets));
        }
    }
}
