//! The WebAssembly module of the npm package `koel-filter`: filters in snapshots, which JavaScript opens and queries by handle.
//!
//! Items and snapshots pass through one buffer that belongs to this module, so it never follows a pointer from JavaScript.
#![no_std]

extern crate alloc;

mod exports;

use alloc::vec::Vec;
use core::mem;

use koel::{ElasticView, FilterView, Prehashed, SnapshotError, hash::AnyHasher};

/// The offset of the kind of table in a header, and the kind of growing filters (docs/FORMAT.md).
const TABLE_KIND_AT: usize = 10;
const GROWING: u8 = 2;

/// A snapshot in the memory of the module.
enum Snapshot {
    Fixed(FilterView<Vec<u8>, AnyHasher>),
    Growing(ElasticView<Vec<u8>, AnyHasher>),
}

macro_rules! each_kind {
    ($snapshot:expr, $view:ident => $result:expr) => {
        match $snapshot {
            Snapshot::Fixed($view) => $result,
            Snapshot::Growing($view) => $result,
        }
    };
}

impl Snapshot {
    fn open(bytes: Vec<u8>, verify: bool) -> Result<Self, SnapshotError> {
        let is_growing = bytes.get(TABLE_KIND_AT) == Some(&GROWING);
        let snapshot = if is_growing {
            Self::Growing(ElasticView::over_with(bytes, AnyHasher::from_id)?)
        } else {
            Self::Fixed(FilterView::over_with(bytes, AnyHasher::from_id)?)
        };
        if verify {
            each_kind!(&snapshot, view => view.verify()?);
        }
        Ok(snapshot)
    }

    fn hash(&self, item: &[u8]) -> u64 {
        each_kind!(self, view => view.hash(item))
    }

    /// Looks up an item by its hash. All items are looked up so, and the code for it is there once.
    fn contains(&self, hash: u64) -> bool {
        each_kind!(self, view => view.contains(&Prehashed(hash)))
    }

    fn count(&self, hash: u64) -> u32 {
        each_kind!(self, view => view.count(&Prehashed(hash)))
    }

    /// Returns a property by its number, the same as in koel.js.
    #[allow(clippy::cast_precision_loss, reason = "an address has 32 bits")]
    fn property(&self, number: u32) -> f64 {
        each_kind!(self, view => match number {
            0 => view.len() as f64,
            1 => view.false_positive_rate(),
            2 => view.bits_per_item(),
            3 => view.load_factor(),
            _ => f64::NAN,
        })
    }
}

/// Returns an error as koel.js reads it, which has its texts and remedies: the numbers of its kind and of its text, the offset, and
/// three numbers for the gaps of the text, in 8 bytes each.
fn encode(error: &SnapshotError) -> Vec<u8> {
    let (text, [first, second, third]) = error.parts();
    let numbers = [error.kind() as u64, text.into(), error.offset(), first, second, third];
    numbers.map(u64::to_le_bytes).as_flattened().to_vec()
}

/// The state of the module between calls.
struct Module {
    /// The open snapshots by handle. Handles of closed ones are used again.
    open: Vec<Option<Snapshot>>,
    /// The arguments from JavaScript and the results for it.
    buffer: Vec<u8>,
}

impl Module {
    const fn new() -> Self {
        Self { open: Vec::new(), buffer: Vec::new() }
    }

    fn snapshot(&self, handle: u32) -> Option<&Snapshot> {
        self.open.get(handle as usize)?.as_ref()
    }

    fn item(&self, len: usize) -> &[u8] {
        self.buffer.get(..len).unwrap_or_default()
    }

    /// Makes the buffer at least `len` bytes long. Returns `None` if there is no memory.
    fn reserve(&mut self, len: usize) -> Option<*mut u8> {
        let more = len.saturating_sub(self.buffer.len());
        self.buffer.try_reserve_exact(more).ok()?;
        self.buffer.resize(self.buffer.len() + more, 0);
        Some(self.buffer.as_mut_ptr())
    }

    /// Opens the first `len` bytes of the buffer as a snapshot, which keeps the buffer's memory. Returns the handle. On an error,
    /// the buffer has it, [encoded](encode).
    fn open(&mut self, len: usize, verify: bool) -> Option<u32> {
        let mut bytes = mem::take(&mut self.buffer);
        bytes.truncate(len);
        // An earlier item was longer. Without memory for a copy, the filter keeps the buffer's length.
        let mut exact = Vec::new();
        if bytes.capacity() > len && exact.try_reserve_exact(len).is_ok() {
            exact.extend_from_slice(&bytes);
            bytes = exact;
        }
        let snapshot = match Snapshot::open(bytes, verify) {
            Ok(snapshot) => snapshot,
            Err(error) => {
                self.buffer = encode(&error);
                return None;
            }
        };
        let handle = self.open.iter().position(Option::is_none).unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() - 1
        });
        self.open[handle] = Some(snapshot);
        u32::try_from(handle).ok()
    }

    /// Looks up `count` integers of 8 bytes each in the buffer, and replaces the first `count` bytes by the results.
    fn contains_batch(&mut self, handle: u32, count: usize) {
        let Some(Some(snapshot)) = self.open.get(handle as usize) else { return };
        for at in 0..count.min(self.buffer.len() / 8) {
            let found = snapshot.contains(snapshot.hash(&self.buffer[8 * at..8 * at + 8]));
            self.buffer[at] = found.into();
        }
    }
}
