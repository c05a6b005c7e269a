//! What is done with one item or with many, in the instructions of particular processors. All kernels give the same answers
//! and write the same bytes; which one it is, is chosen once per process, and can be said otherwise for each filter.

#![allow(clippy::inline_always, reason = "what is inlined is compiled for the kernel's processor, what is called is not")]

mod batch;
mod choice;
#[cfg(test)]
mod tests;
#[cfg(all(feature = "kernels", target_arch = "x86_64"))]
mod vector;
#[cfg(all(feature = "kernels", target_arch = "x86_64"))]
mod x86_64;

use core::{hint::black_box, ops::Range};

pub(crate) use batch::{BATCH, Hashes};
use batch::{FETCH_FROM, one_by_one};
pub use choice::Kernel;

use crate::{
    storage::Storage,
    table::Address,
    table::{AnyTable, Table, TableMut as _, fingerprints, with_table},
};

/// Calls one of the kernels of x86-64.
#[cfg(all(feature = "kernels", target_arch = "x86_64"))]
macro_rules! x86_64 {
    ($function:ident($($argument:expr),*)) => {{
        #[allow(unsafe_code)]
        // SAFETY: only a kernel that is available can be chosen, and this one is it, or part of it.
        unsafe {
            x86_64::$function($($argument),*)
        }
    }};
}

/// A function of its own for each table: in one for both, either would pay for the other's registers.
#[inline(never)]
fn look_up<T: Table>(table: &T, address: &Address, hash: u64) -> bool {
    let (buckets, fingerprint) = address.buckets(hash);
    table.contains(buckets, fingerprint)
}

#[cfg_attr(not(all(feature = "kernels", target_arch = "x86_64")), allow(clippy::unused_self))]
impl Kernel {
    /// Is the item in the table?
    #[inline]
    pub(crate) fn contains(self, table: &AnyTable<impl Storage>, address: &Address, hash: u64) -> bool {
        match table {
            #[cfg(all(feature = "kernels", target_arch = "x86_64"))]
            AnyTable::Packed(packed) if self >= Self::Bmi2 => x86_64!(contains(packed, address, hash)),
            table => with_table!(table, table => look_up(table, address, hash)),
        }
    }

    /// Puts an item into the emptier of its buckets. False, and nothing changed, if both are full.
    #[inline]
    pub(crate) fn insert(self, table: &mut AnyTable, address: &Address, hash: u64) -> bool {
        match table {
            #[cfg(all(feature = "kernels", target_arch = "x86_64"))]
            AnyTable::Packed(packed) if self >= Self::Bmi2 && packed.is_narrow() => x86_64!(insert(packed, address, hash)),
            table => {
                let (buckets, fingerprint) = address.buckets(hash);
                with_table!(table, table => table.insert(buckets, fingerprint))
            }
        }
    }

    /// Takes one copy of an item out. False, and nothing changed, if there is none.
    #[inline]
    pub(crate) fn remove(self, table: &mut AnyTable, address: &Address, hash: u64) -> bool {
        match table {
            #[cfg(all(feature = "kernels", target_arch = "x86_64"))]
            AnyTable::Packed(packed) if self >= Self::Bmi2 && packed.is_narrow() => x86_64!(remove(packed, address, hash)),
            table => {
                let (buckets, fingerprint) = address.buckets(hash);
                with_table!(table, table => table.remove(buckets, fingerprint))
            }
        }
    }

    /// Puts an item into its first bucket. False, and nothing changed, if that is full.
    #[inline]
    pub(crate) fn put(self, table: &mut AnyTable, address: &Address, hash: u64) -> bool {
        match table {
            #[cfg(all(feature = "kernels", target_arch = "x86_64"))]
            AnyTable::Packed(packed) if self >= Self::Bmi2 && packed.is_narrow() => x86_64!(put(packed, address, hash)),
            table => {
                let (bucket, fingerprint) = address.locate(hash);
                with_table!(table, table => table.put(bucket, fingerprint))
            }
        }
    }

    /// Has the buckets of items fetched, so that they are at hand when they are needed.
    #[inline(always)]
    pub(crate) fn fetch<T: Table>(self, table: &T, address: &Address, hashes: &[u64]) {
        if table.memory().len() < FETCH_FROM {
            return;
        }
        for &hash in hashes {
            let ((first, second), _) = address.buckets(hash);
            self.fetch_bucket(table, first);
            self.fetch_bucket(table, second);
        }
    }

    /// Of items whose buckets are full, has the alternates of those buckets' residents fetched.
    #[inline(always)]
    pub(crate) fn fetch_alternates<T: Table>(self, table: &T, address: &Address, hashes: &[u64]) {
        if table.memory().len() < FETCH_FROM {
            return;
        }
        for &hash in hashes {
            let ((first, second), _) = address.buckets(hash);
            if !table.has_room(first) & !table.has_room(second) {
                self.fetch_residents(table, address, first);
                self.fetch_residents(table, address, second);
            }
        }
    }

    /// Has the alternates of a bucket's residents fetched.
    #[inline(always)]
    fn fetch_residents<T: Table>(self, table: &T, address: &Address, bucket: u64) {
        for resident in fingerprints(&table.values(bucket)) {
            self.fetch_bucket(table, address.alternate(bucket, resident));
        }
    }

    #[inline(always)]
    fn fetch_bucket<T: Table>(self, table: &T, bucket: u64) {
        let position = table.position(bucket);
        match self {
            #[cfg(all(feature = "kernels", target_arch = "x86_64"))]
            Self::Bmi2 | Self::Avx2 | Self::Avx512 => x86_64::fetch(table.memory().as_ptr().wrapping_add(position)),
            // A read that nothing waits for.
            _ => _ = black_box(table.memory()[position]),
        }
    }

    /// [`Table::taken`].
    pub(crate) fn taken(self, table: &AnyTable<impl Storage>, buckets: Range<u64>) -> Option<u64> {
        match table {
            #[cfg(all(feature = "kernels", target_arch = "x86_64"))]
            AnyTable::Packed(packed) if self >= Self::Bmi2 && packed.is_narrow() => x86_64!(taken(packed, buckets)),
            table => with_table!(table, table => table.taken(buckets)),
        }
    }

    /// Looks all hashes up. Each [`BATCH`] of them, in their order, gives `answer` one number whose bit i is the answer for
    /// the i-th of them.
    pub(crate) fn contains_all(
        self,
        table: &AnyTable<impl Storage>,
        address: &Address,
        hashes: &impl Hashes,
        answer: impl FnMut(u64),
    ) {
        match self {
            #[cfg(all(feature = "kernels", target_arch = "x86_64"))]
            Self::Avx512 => x86_64!(avx512(table, address, hashes, answer)),
            #[cfg(all(feature = "kernels", target_arch = "x86_64"))]
            Self::Avx2 => x86_64!(avx2(table, address, hashes, answer)),
            #[cfg(all(feature = "kernels", target_arch = "x86_64"))]
            Self::Bmi2 => x86_64!(bmi2(table, address, hashes, answer)),
            _ => with_table!(table, table => {
                let contains = |hash| {
                    let (buckets, fingerprint) = address.buckets(hash);
                    table.contains(buckets, fingerprint)
                };
                one_by_one(self, table, address, hashes, contains, answer);
            }),
        }
    }
}
