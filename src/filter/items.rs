//! What operations take: an item or its hash, one or many.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use alloc::vec::Vec;

use crate::{
    hash::HashItem,
    kernel::{BATCH, Hashes},
    params::Addressing,
    table::Uniform,
};

/// A key that is hashed already: a 64-bit number that stands for an item in every operation of every filter.
///
/// The number is from [`hash`](crate::CuckooFilter::hash), so that one hash can serve several filters, or it is any other that
/// identifies the item, such as a user id. [Hashes](crate::CuckooFilter#hashes) says what is required of it.
///
/// Batches take whole slices of numbers, where they are: `&Prehashed(&hashes)`, with a `Vec<u64>`, an array or a slice.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, Prehashed};
///
/// let mut filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
/// filter.insert(&Prehashed(filter.hash("alice")))?;
/// assert!(filter.contains("alice"));
///
/// let ids = vec![42, 43];
/// filter.insert_batch(&Prehashed(&ids))?;
/// assert!(filter.contains(&Prehashed(43)));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
// Neither an `Item` nor `core::hash::Hash`: then a hasher would hash it like any other item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prehashed<T = u64>(pub T);

impl<H> HashItem<Prehashed> for H {
    #[inline(always)]
    fn hash_item(&self, seed: u64, key: &Prehashed) -> u64 {
        self.place_item(seed, Addressing::AnySize, key)
    }

    #[inline(always)]
    fn place_item(&self, _seed: u64, addressing: Addressing, key: &Prehashed) -> u64 {
        Uniform::of(addressing, key.0).0
    }
}

/// What a batch operation takes: a slice, an array or a vector of items that the hasher `H` takes, or the hashes of items, as
/// [`Prehashed`].
///
/// This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a batch of items for the hasher `{H}`",
    note = "slices, arrays and vectors of items are, and `Prehashed(&hashes)` with hashes in a slice, an array or a vector"
)]
pub trait Items<H> {
    #[doc(hidden)]
    type Batch<'a>: Batch<H>
    where
        Self: 'a;

    /// As a slice: whatever the items are kept in, operations are compiled once.
    #[doc(hidden)]
    fn batch(&self) -> Self::Batch<'_>;
}

/// Items in a slice, or their hashes.
#[allow(unreachable_pub, reason = "belongs to a sealed trait")]
pub trait Batch<H>: Copy {
    fn len(self) -> usize;

    /// See [`Hashes::fill`].
    fn fill(keys: &Hashed<'_, Self, H>, start: usize, hashes: &mut [u64; BATCH]);
}

impl<T, H: HashItem<T>> Batch<H> for &[T] {
    #[inline(always)]
    fn len(self) -> usize {
        <[T]>::len(self)
    }

    #[inline(always)]
    fn fill(keys: &Hashed<'_, Self, H>, start: usize, hashes: &mut [u64; BATCH]) {
        for (hash, item) in hashes.iter_mut().zip(&keys.items[start..]) {
            *hash = keys.hasher.place_item(keys.seed, keys.addressing, item);
        }
    }
}

impl<H> Batch<H> for Prehashed<&[u64]> {
    #[inline(always)]
    fn len(self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn fill(keys: &Hashed<'_, Self, H>, start: usize, hashes: &mut [u64; BATCH]) {
        for (hash, &given) in hashes.iter_mut().zip(&keys.items.0[start..]) {
            *hash = Uniform::of(keys.addressing, given).0;
        }
    }
}

macro_rules! slices {
    ($($(const $len:ident,)? $items:ty;)+) => {$(
        impl<T, H: HashItem<T>, $(const $len: usize)?> Items<H> for $items {
            type Batch<'a> = &'a [T] where Self: 'a;

            #[inline]
            fn batch(&self) -> &[T] {
                self
            }
        }
    )+};
}
slices! {
    [T];
    const N, [T; N];
    Vec<T>;
}

impl<I: Items<H> + ?Sized, H> Items<H> for &I {
    type Batch<'a>
        = I::Batch<'a>
    where
        Self: 'a;

    #[inline]
    fn batch(&self) -> I::Batch<'_> {
        I::batch(self)
    }
}

impl<S: AsRef<[u64]>, H> Items<H> for Prehashed<S> {
    type Batch<'a>
        = Prehashed<&'a [u64]>
    where
        Self: 'a;

    #[inline]
    fn batch(&self) -> Prehashed<&[u64]> {
        Prehashed(self.0.as_ref())
    }
}

/// A batch that a filter hashes on demand.
#[allow(unreachable_pub, reason = "named by a sealed trait")]
pub struct Hashed<'a, B, H> {
    pub(crate) items: B,
    pub(crate) hasher: &'a H,
    pub(crate) seed: u64,
    pub(crate) addressing: Addressing,
}

impl<B: Batch<H>, H> Hashes for Hashed<'_, B, H> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.items.len()
    }

    #[inline(always)]
    fn fill(&self, start: usize, hashes: &mut [u64; BATCH]) {
        B::fill(self, start, hashes);
    }
}

/// Writes the answers for one batch after the other.
pub(crate) fn answers_in_order(found: &mut [bool]) -> impl FnMut(u64) {
    let mut rest = found;
    move |answers| {
        let found = core::mem::take(&mut rest);
        let (batch, behind) = found.split_at_mut(found.len().min(BATCH));
        rest = behind;
        if let Some(whole) = batch.first_chunk_mut::<BATCH>() {
            // A fixed length lets the compiler vectorize the loop.
            spread(answers, whole);
        } else {
            spread(answers, batch);
        }
    }
}

/// Unpacks the bits of `answers` into booleans, the lowest bit first.
#[inline(always)]
fn spread(answers: u64, found: &mut [bool]) {
    for (found, answers) in found.chunks_mut(8).zip(answers.to_le_bytes()) {
        // Byte i of the word keeps bit i of the eight.
        let spread = u64::from(answers).wrapping_mul(0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
        for (found, bit) in found.iter_mut().zip(spread.to_le_bytes()) {
            *found = bit != 0;
        }
    }
}

#[track_caller]
pub(crate) fn same_length(items: usize, answers: usize) {
    assert!(items == answers, "{items} items but room for {answers} answers: the two slices must have the same length");
}
