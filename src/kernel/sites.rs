//! Many tables among which items are shared out.

use crate::table::Geometry;
#[cfg(x86_kernels)]
use crate::table::{AnySize, Uniform};

/// Packed tables, each of which has some of the items. All of them address their items alike.
#[cfg(x86_kernels)]
pub(crate) trait Sites<'a>: Copy {
    /// Where the lowest bits of fingerprints go, in each of the tables.
    fn address(self) -> AnySize;

    /// The bits of a hash that say in which table it is, and what that stores of it: arithmetic, without memory.
    fn stream(self, hash: Uniform) -> u64;

    /// Where a hash with this stream is.
    fn site(self, hash: Uniform, stream: u64) -> Site<'a>;
}

/// Where a hash is.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    /// A table with its padding. Other bytes may follow.
    pub(crate) table: &'a [u8],
    pub(crate) geometry: &'a Geometry,
    /// The bits of the fingerprint above those that address it.
    pub(crate) upper: u64,
}
