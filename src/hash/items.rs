//! The arguments of operations: an item or a hash, one or many.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]
#![allow(private_bounds, private_interfaces, reason = "`Items` is sealed: nobody else can implement or call it")]

use alloc::vec::Vec;

use super::{HashItem, Uniform};
use crate::kernel::{BATCH, Hashes};

/// A key that is already hashed: a 64-bit number that represents an item in every operation of every filter.
///
/// [`Prehashed::of`] hashes an item without a filter. Any other number that identifies an item, such as a user id, is a key, too;
/// [Hashes](crate::CuckooFilter#hashes) states the requirements.
///
/// Batches take whole slices of numbers in place: `&Prehashed(&hashes)`, where `hashes` is a `Vec<u64>`, an array or a slice.
/// This works with the methods of the filters themselves. Those of the trait [`Contains`](crate::Contains), which an
/// `Arc<CuckooFilter>` also has, take `&[Prehashed]`.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, Prehashed, Xxh3};
///
/// let mut filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
/// filter.insert(&Prehashed::of(&Xxh3, 0, "alice"))?;
/// assert!(filter.contains("alice"));
///
/// let ids = vec![42, 43];
/// filter.insert_batch(&Prehashed(&ids))?;
/// assert!(filter.contains(&Prehashed(43)));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
// Does not implement `Item` or `core::hash::Hash`: a hasher would hash it like any other item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prehashed<T = u64>(pub T);

impl Prehashed {
    /// Hashes an item as every filter with an equal hasher and seed does, regardless of the filter's type, size and
    /// [`Addressing`](crate::Addressing). A filter's seed is 0 unless its builder was given another.
    ///
    /// So a client can hash before the filter exists, or without access to it, and one hash can query any number of filters.
    ///
    /// # Example
    /// ```
    /// use koel::{CuckooFilter, ElasticFilter, Prehashed, Xxh3};
    ///
    /// let key = Prehashed::of(&Xxh3, 7, "alice"); // 7 is the filters' seed
    /// let mut blocked = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).seed(7).build()?;
    /// let mut seen = ElasticFilter::builder().false_positive_rate(0.001).seed(7).build()?;
    /// blocked.insert("alice")?;
    /// seen.insert(&key)?;
    /// assert!(blocked.contains(&key) && seen.contains("alice"));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn of<H: HashItem<T>, T: ?Sized>(hasher: &H, seed: u64, item: &T) -> Self {
        Self(hasher.uniform(seed, item).prehashed())
    }
}

/// A batch: items that the hasher `H` takes, in a slice, an array or a vector; or hashes of items, as [`Prehashed`].
///
/// This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a batch of items for the hasher `{H}`",
    note = "slices, arrays and vectors of items are, and `Prehashed(&hashes)` with hashes in a slice, an array or a vector"
)]
pub trait Items<H> {
    /// Returns the hashes of the items. Vectors and arrays return those of a slice, so that operations are compiled once.
    #[doc(hidden)]
    fn hashes<'a>(&'a self, hasher: &'a H, seed: u64) -> impl Hashes + 'a;
}

impl<T, H: HashItem<T>> Items<H> for [T] {
    #[inline]
    fn hashes<'a>(&'a self, hasher: &'a H, seed: u64) -> impl Hashes + 'a {
        Hashed { items: self, hasher, seed }
    }
}

impl<S: AsRef<[u64]>, H> Items<H> for Prehashed<S> {
    #[inline]
    fn hashes<'a>(&'a self, _hasher: &'a H, _seed: u64) -> impl Hashes + 'a {
        Prehashed(self.0.as_ref())
    }
}

macro_rules! slices {
    ($([$($generics:tt)*] $items:ty: $slice:ty;)+) => {$(
        impl<$($generics)*, H> Items<H> for $items
        where
            $slice: Items<H>,
        {
            #[inline]
            fn hashes<'a>(&'a self, hasher: &'a H, seed: u64) -> impl Hashes + 'a {
                <$slice>::hashes(self, hasher, seed)
            }
        }
    )+};
}
slices! {
    [T, const N: usize] [T; N]: [T];
    [T] Vec<T>: [T];
    [I: Items<H> + ?Sized] &I: I;
}

/// Items of a slice or an iterator, which are hashed on demand.
pub(crate) struct Hashed<'a, I, H> {
    items: I,
    hasher: &'a H,
    seed: u64,
}

impl<T, H: HashItem<T>> Hashes for Hashed<'_, &[T], H> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.items.len()
    }

    #[inline(always)]
    fn fill(&self, start: usize, hashes: &mut [u64; BATCH]) {
        for (hash, item) in hashes.iter_mut().zip(&self.items[start..]) {
            *hash = self.hasher.uniform(self.seed, item).0;
        }
    }
}

impl Hashes for Prehashed<&[u64]> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn fill(&self, start: usize, hashes: &mut [u64; BATCH]) {
        for (hash, &key) in hashes.iter_mut().zip(&self.0[start..]) {
            *hash = Uniform::of_prehashed(key).0;
        }
    }
}

impl<'a, I: Iterator, H: HashItem<I::Item>> Hashed<'a, I, H> {
    pub fn new(items: impl IntoIterator<IntoIter = I>, hasher: &'a H, seed: u64) -> Self {
        Self { items: items.into_iter(), hasher, seed }
    }

    /// Calls `act` with the number of items so far and the hashes of the next 64, and of the remaining ones at the end, until it
    /// returns an error. Returns the number of items.
    pub fn each_batch<E>(mut self, mut act: impl FnMut(usize, &[u64]) -> Result<(), E>) -> Result<usize, E> {
        let mut start = 0;
        loop {
            let (mut hashes, mut len) = ([0; BATCH], 0);
            for (hash, item) in hashes.iter_mut().zip(&mut self.items) {
                *hash = self.hasher.uniform(self.seed, &item).0;
                len += 1;
            }
            act(start, &hashes[..len])?;
            start += len;
            if len < BATCH {
                return Ok(start);
            }
        }
    }
}

/// Returns a function that writes the results of one batch after the other to `found`.
pub(crate) fn results_writer(found: &mut [bool]) -> impl FnMut(u64) {
    let mut rest = found;
    move |results| {
        let found = core::mem::take(&mut rest);
        let (batch, behind) = found.split_at_mut(found.len().min(BATCH));
        rest = behind;
        if let Some(whole) = batch.first_chunk_mut::<BATCH>() {
            // A fixed length lets the compiler vectorize the loop.
            spread(results, whole);
        } else {
            spread(results, batch);
        }
    }
}

/// Unpacks the bits of `results` into booleans, the lowest bit first.
#[inline(always)]
fn spread(results: u64, found: &mut [bool]) {
    for (found, eight) in found.chunks_mut(8).zip(results.to_le_bytes()) {
        // Byte i of the word keeps bit i of the eight bits.
        let spread = u64::from(eight).wrapping_mul(0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
        for (found, bit) in found.iter_mut().zip(spread.to_le_bytes()) {
            *found = bit != 0;
        }
    }
}

#[track_caller]
pub(crate) fn assert_same_length(items: usize, answers: usize) {
    assert!(items == answers, "{items} items but room for {answers} answers: the two slices must have the same length");
}
