//! Where fingerprints are stored: buckets of them, found by number. A table never sees an item or a hash.

mod address;
mod packed;
mod single;
#[cfg(test)]
mod tests;
mod walk;

use alloc::format;
use core::{num::NonZeroU32, ops::Range};

use crate::{
    bits::PADDING,
    error::{ParamError, Parameter},
    params::Params,
    params::TableKind,
    storage::Memory,
    storage::Storage,
};
pub(crate) use address::{Address, MULTIPLIER};
#[cfg(all(feature = "kernels", target_arch = "x86_64"))]
pub(crate) use packed::narrow::{Narrow, Spread};
pub(crate) use packed::{Packed, codebook};
pub(crate) use single::Single;
pub(crate) use walk::{evict, place};

/// The f bits by which a bucket knows an item. Never 0, which is the empty slot.
pub(crate) type Fingerprint = NonZeroU32;

/// An item's first and its second bucket. Not an array: those are passed in memory, where a store to the table that is still
/// waiting for its address holds them up.
pub(crate) type Pair = (u64, u64);

/// The fingerprints among the values of a bucket's slots.
#[inline]
pub(crate) fn fingerprints(values: &impl AsRef<[u32]>) -> impl Iterator<Item = Fingerprint> {
    values.as_ref().iter().filter_map(|&value| Fingerprint::new(value))
}

/// Why a bucket that came in from outside is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Corrupt {
    /// The codeword is not in the codebook.
    Codeword(u32),
    /// The fingerprints are not in order.
    Order,
}

/// What can be asked of a table, whoever's its bytes are. Buckets are numbered from 0; a number beyond the last is a panic.
pub(crate) trait Table {
    /// The values of a bucket's slots, in their order; 0 for empty ones.
    type Values: AsRef<[u32]>;

    /// Is the fingerprint in one of the buckets?
    fn contains(&self, buckets: Pair, fingerprint: Fingerprint) -> bool;
    /// Everything in the bucket.
    fn values(&self, bucket: u64) -> Self::Values;
    /// Has the bucket an empty slot?
    fn has_room(&self, bucket: u64) -> bool;
    /// The byte in which the bucket begins.
    fn position(&self, bucket: u64) -> usize;
    /// How many slots of the buckets are taken, if this table could have written all of them. Until this has been asked of
    /// buckets that came in from outside, they are only read, and their answers mean nothing.
    fn taken(&self, buckets: Range<u64>) -> Option<u64>;
    /// Why this table could not have written the bucket, if it could not.
    fn corrupt(&self, bucket: u64) -> Option<Corrupt>;
    /// The buckets' bits, and [`PADDING`] bytes behind them.
    fn memory(&self) -> &[u8];
}

/// What can be done to a table. All its buckets are ones that this could have written.
pub(crate) trait TableMut: Table {
    /// Puts the fingerprint into the emptier of two buckets, the first if neither is. False, and nothing changed, if both are
    /// full.
    fn insert(&mut self, buckets: Pair, fingerprint: Fingerprint) -> bool;
    /// Takes one copy of the fingerprint out, of the first bucket if it is in both. False, and nothing changed, if there is
    /// none.
    fn remove(&mut self, buckets: Pair, fingerprint: Fingerprint) -> bool;
    /// Puts the fingerprint into an empty slot. False, and nothing changed, if there is none.
    fn put(&mut self, bucket: u64, fingerprint: Fingerprint) -> bool;
    /// Puts `new` into the place of a copy of `old`, which is there.
    fn replace(&mut self, bucket: u64, old: Fingerprint, new: Fingerprint);
    /// The buckets' bits, and [`PADDING`] bytes of zero, to be filled with others.
    fn memory_mut(&mut self) -> &mut [u8];
}

/// Either table, chosen at run time. Whoever does more than one thing with it matches once, and goes on with the table
/// itself.
#[derive(Clone)]
pub(crate) enum AnyTable<S = Memory> {
    Single(Single<S>),
    Packed(Packed<S>),
}

/// Evaluates an expression with `$table` bound to whichever table it is.
macro_rules! with_table {
    ($any:expr, $table:ident => $body:expr) => {
        match $any {
            $crate::table::AnyTable::Single($table) => $body,
            $crate::table::AnyTable::Packed($table) => $body,
        }
    };
}
pub(crate) use with_table;

impl AnyTable {
    /// The factory: an empty table as the parameters want it.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn new(params: &Params) -> Result<Self, ParamError> {
        let len = params.table_bytes() + PADDING;
        let bytes = Memory::zeroed(len).ok_or_else(|| ParamError {
            parameter: Parameter::TableSize,
            given: format!("{} bytes", params.table_bytes()),
            limit: "that much memory could not be allocated".into(),
            remedy: "ask for a smaller capacity or a higher false-positive rate".into(),
        })?;
        Ok(Self::from_padded(params, bytes))
    }

    pub(crate) fn clear(&mut self) {
        with_table!(self, table => table.memory_mut()).fill(0);
    }
}

impl<S: Storage> AnyTable<S> {
    /// A table of these bytes, [`PADDING`] included.
    ///
    /// # Panics
    /// If they are not as many as the parameters say: what vectors gather is not checked again.
    pub(crate) fn from_padded(params: &Params, bytes: S) -> Self {
        assert!(bytes.len() == params.table_bytes() + PADDING, "a table has the length of its parameters");
        match params.table() {
            TableKind::Single => Self::Single(Single::new(params, bytes)),
            TableKind::Packed => Self::Packed(Packed::new(params, bytes)),
        }
    }

    /// The buckets' bits, without the padding.
    pub(crate) fn bytes(&self) -> &[u8] {
        let padded = with_table!(self, table => table.memory());
        &padded[..padded.len() - PADDING]
    }

    /// What holds the bytes.
    pub(crate) fn storage(&self) -> &S {
        with_table!(self, table => table.storage())
    }

    /// The table with its padding, in bytes.
    pub(crate) fn size_in_bytes(&self) -> usize {
        with_table!(self, table => table.memory().len())
    }

    /// A copy, or `None` if there is no memory for it.
    pub(crate) fn to_owned(&self, params: &Params) -> Option<AnyTable> {
        Some(AnyTable::from_padded(params, Memory::copied(self.bytes(), PADDING)?))
    }
}
