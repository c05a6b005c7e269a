//! Lookup in many packed tables of one layout, one item per lane. The items of a batch are in different tables, so words are gathered
//! from addresses, and not from offsets in one table.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::{marker::PhantomData, ptr};

use super::{
    bmi2::prefetch,
    lanes::Lanes,
    stages::{answers, pipelined},
    vector::{AddressLanes, found, narrow_highs},
};
use crate::{
    bits::{PADDING, beyond, index},
    kernel::{BATCH, Hashes, Tables},
    table::{Geometry, PackedGeometry, Uniform, codebook::CODEWORD_BITS},
};

/// See the module.
pub(super) struct ShardsVector<'a, L: Lanes, T> {
    proof: L::Proof,
    tables: T,
    /// Addresses in targets are of tables that live as long.
    lifetime: PhantomData<&'a [u8]>,
    address: AddressLanes,
    geometry: PackedGeometry,
    is_narrow: bool,
    /// The length of each table with its padding, in bytes.
    table_bytes: usize,
    /// Whether buckets are prefetched.
    prefetches: bool,
}

/// Where to look up a batch. Each of the first items, up to the end of a vector, has the address of a table, and two buckets inside it.
pub(super) struct Targets {
    tables: [*const u8; BATCH],
    /// The first bit of each of the two buckets.
    firsts: [[u64; BATCH]; 2],
    fingerprints: [u64; BATCH],
}

impl<'a, L: Lanes, T: Tables<'a>> ShardsVector<'a, L, T> {
    /// `None` if tables are not packed, or have too many buckets for vectors.
    pub(super) fn new(proof: L::Proof, tables: T, prefetches: bool) -> Option<Self> {
        let (geometry, is_narrow) = match *tables.geometry() {
            Geometry::Narrow(geometry) => (geometry, true),
            Geometry::Wide(geometry) => (geometry, false),
            Geometry::Single(_) => return None,
        };
        let address = AddressLanes::new(tables.address())?;
        let bits = tables.address().buckets.checked_mul(geometry.bucket_bits().into())?;
        let table_bytes = usize::try_from(bits.div_ceil(8)).ok()?.checked_add(PADDING)?;
        Some(Self { proof, tables, lifetime: PhantomData, address, geometry, is_narrow, table_bytes, prefetches })
    }

    /// The words that begin this many bits behind the first bits of two buckets of each table.
    ///
    /// # Safety
    /// As for [`Lanes::gather_from`], for the byte of each bit.
    #[inline(always)]
    unsafe fn words(&self, tables: &[*const u8], [first, second]: [L; 2], behind: u32) -> [L; 2] {
        let (behind, seven) = (L::splat(self.proof, behind.into()), L::splat(self.proof, 7));
        let (first, second) = (first.add(behind), second.add(behind));
        // SAFETY: the caller guarantees it.
        let (words, others) =
            unsafe { (self.gather(tables, first.shift_right::<3>()), self.gather(tables, second.shift_right::<3>())) };
        [words.shift_right_by(first.and(seven)), others.shift_right_by(second.and(seven))]
    }

    /// [`Lanes::gather_from`], or the same without addresses: Miri checks pointers.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn gather(&self, tables: &[*const u8], bytes: L) -> L {
        if cfg!(miri) {
            let mut words = [0; BATCH];
            bytes.store(&mut words);
            for (word, table) in words.iter_mut().zip(&tables[..L::COUNT]) {
                // SAFETY: the caller guarantees it.
                *word = unsafe { table.add(index(*word)).cast::<u64>().read_unaligned() };
            }
            return L::load(self.proof, &words);
        }
        // SAFETY: the caller guarantees it.
        unsafe { bytes.gather_from(tables) }
    }

    /// The answers for the items of a vector from this index on.
    ///
    /// # Safety
    /// Targets from there to the end of the vector must have been located.
    #[inline(always)]
    unsafe fn compare(&self, targets: &Targets, at: usize, is_narrow: bool) -> u32 {
        let tables = &targets.tables[at..];
        let bits = [L::load(self.proof, &targets.firsts[0][at..]), L::load(self.proof, &targets.firsts[1][at..])];
        // SAFETY: buckets are below the number of them, whatever the hash, and `locate` has checked that each table has so many, with
        // as many bytes of padding as a word has. All words begin inside their bucket.
        let words = unsafe { self.words(tables, bits, 0) };
        let highs = if is_narrow {
            narrow_highs(words)
        } else {
            // SAFETY: as above.
            let (firsts, seconds) = unsafe {
                let behind = CODEWORD_BITS + 2 * self.geometry.high_bits();
                (self.words(tables, bits, CODEWORD_BITS), self.words(tables, bits, behind))
            };
            [[firsts[0], seconds[0]], [firsts[1], seconds[1]]]
        };
        let fingerprints = L::load(self.proof, &targets.fingerprints[at..]);
        found(self.proof, &self.geometry, is_narrow, words, highs, fingerprints)
    }
    /// Looks up all hashes. Calls `answer` with each batch of them, in order, and the answers: bit i is that for the i-th.
    #[inline(always)]
    pub(super) fn contains_all(&self, hashes: &impl Hashes, answer: impl FnMut(&[u64], u64)) {
        let targets = || Targets { tables: [ptr::null(); BATCH], firsts: [[0; BATCH]; 2], fingerprints: [0; BATCH] };
        let locate = |hashes: &_, len, targets: &mut _| self.locate(hashes, len, targets);
        pipelined(hashes, [targets(), targets()], locate, |targets, len| self.look_up(targets, len), answer);
    }

    /// Finds out where the first `len` hashes are, and prefetches their buckets.
    fn locate(&self, hashes: &[u64; BATCH], len: usize, targets: &mut Targets) {
        L::run(self.proof, move || {
            // One loop for each thing that the processor does best alone: arithmetic, which the compiler does in vectors; loads that
            // depend on each other; arithmetic again; prefetching.
            let mut streams = [0; BATCH];
            for (stream, &hash) in streams.iter_mut().zip(hashes) {
                *stream = self.tables.stream(Uniform(hash));
            }
            let end = len.next_multiple_of(L::COUNT);
            // Behind the last item, to the end of the vector, are hashes of earlier batches or zeros, which have tables, too.
            let needed = self.table_bytes;
            self.tables.each_table(&hashes[..end], &streams[..end], &mut targets.tables[..end], |table| {
                if table.len() < needed {
                    beyond();
                }
                let start = table.as_ptr();
                _ = start.expose_provenance();
                start
            });
            let bucket_bits = L::splat(self.proof, self.geometry.bucket_bits().into());
            for at in (0..end).step_by(L::COUNT) {
                let (buckets, fingerprints) = self.address.buckets(self.proof, L::load(self.proof, &hashes[at..]));
                for (bits, bucket) in targets.firsts.iter_mut().zip(buckets) {
                    bucket.product(bucket_bits).store(&mut bits[at..]);
                }
                fingerprints.store(&mut targets.fingerprints[at..]);
            }
            if self.prefetches {
                for bits in &targets.firsts {
                    for (table, bits) in targets.tables.iter().zip(bits).take(len) {
                        prefetch(table.wrapping_add(index(bits / 8)));
                    }
                }
            }
        });
    }

    /// The answers for the first `len` targets.
    fn look_up(&self, targets: &Targets, len: usize) -> u64 {
        // SAFETY: `locate` was called for as many items.
        L::run(self.proof, move || unsafe {
            if self.is_narrow {
                answers::<L>(len, |at| self.compare(targets, at, true))
            } else {
                answers::<L>(len, |at| self.compare(targets, at, false))
            }
        })
    }
}
