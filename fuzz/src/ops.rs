//! Random operations: with every kernel, a filter must equal the multiset that the format's formulas define, to the last bit.

use super::{
    model::{HEADER, Key, Model},
    split_mix::SplitMix64,
};
use arbitrary::{Arbitrary, Unstructured};
use koel::{Addressing, CuckooFilter, FilterView, InsertError, Kernel, MergeError, Prehashed, TableKind};
use std::{collections::BTreeMap, fmt::Debug};

/// A decoded input. Numbers are reduced to their valid ranges.
#[derive(Arbitrary, Debug)]
struct Plan {
    is_packed: bool,
    is_power_of_two: bool,
    f: u8,
    b: u8,
    m: u8,
    seed: u64,
    kernels: [u8; 2],
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Insert(Hash),
    InsertUnique(Hash),
    Remove(Hash),
    InsertItem(Vec<u8>),
    RemoveItem(Vec<u8>),
    InsertBatch(Vec<Hash>),
    RemoveBatch(Vec<Hash>),
    ContainsBatch(Vec<Hash>),
    /// Inserts new items until one is refused, at most twice as many as there are slots.
    Fill(u8),
    /// Removes one copy of every item but each n-th.
    KeepEveryNth(u8),
    /// Merges with a filter of these items; without items, with itself, so that a few steps give millions of copies.
    Merge(Vec<Hash>),
    Clear,
    Reread,
    Rebuild,
    Union(Vec<Hash>),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Hash {
    /// One of 16 hashes, so that there are copies.
    Common(u8),
    /// A hash with this bucket and fingerprint, so that buckets fill up.
    At(u8, u16),
    Any(u64),
}

/// The most copies of an item that are removed individually.
const MOST_REMOVED: u32 = 300;

/// Runs the operations of the input.
pub fn check(input: &[u8]) {
    if let Ok(plan) = Plan::arbitrary_take_rest(Unstructured::new(input)) {
        let mut state = State::new(&plan);
        plan.steps.iter().for_each(|step| state.take(step));
        state.drain();
    }
}

/// Two filters that differ only in their kernels, and the items in them.
struct State {
    twins: [CuckooFilter; 2],
    model: Model,
    items: BTreeMap<Key, u32>,
}

impl State {
    fn new(plan: &Plan) -> Self {
        let table = if plan.is_packed { TableKind::Packed } else { TableKind::Single };
        let (f, b) = if plan.is_packed { (4 + plan.f % 29, 4) } else { (2 + plan.f % 31, 1 + plan.b % 16) };
        let (addressing, buckets) = if plan.is_power_of_two {
            (Addressing::PowerOfTwo, 1 << (plan.m % 6))
        } else {
            (Addressing::AnySize, 2 + 2 * u64::from(plan.m % 20))
        };
        let builder = CuckooFilter::builder().table(table).fingerprint_bits(f.into()).bucket_size(b.into());
        let builder = builder.addressing(addressing).buckets(buckets).seed(plan.seed);
        let kernels: Vec<Kernel> = Kernel::available().collect();
        let twins = plan.kernels.map(|kernel| {
            let kernel = kernels[usize::from(kernel) % kernels.len()];
            builder.clone().kernel(kernel).build().expect("valid parameters")
        });
        let model = Model::of(&twins[0].params());
        Self { twins, model, items: BTreeMap::new() }
    }

    fn len(&self) -> usize {
        self.items.values().map(|&copies| copies as usize).sum()
    }

    fn copies(&self, hash: u64) -> u32 {
        self.items.get(&self.model.key(hash)).copied().unwrap_or(0)
    }

    fn added(&mut self, hash: u64) {
        *self.items.entry(self.model.key(hash)).or_default() += 1;
    }

    /// Removes a copy from the model. Returns false if there was none.
    fn removed(&mut self, hash: u64) -> bool {
        let key = self.model.key(hash);
        let Some(copies) = self.items.get_mut(&key) else { return false };
        *copies -= 1;
        if *copies == 0 {
            self.items.remove(&key);
        }
        true
    }

    /// Runs an operation on both filters, and asserts that the results are equal.
    fn both<T: Debug + PartialEq>(&mut self, mut run: impl FnMut(&mut CuckooFilter) -> T) -> T {
        let [one, other] = self.twins.each_mut().map(&mut run);
        assert_eq!(one, other, "{:?}", self.twins.each_ref().map(CuckooFilter::kernel));
        one
    }

    fn hash(&self, hash: Hash) -> u64 {
        match hash {
            Hash::Common(n) => SplitMix64(u64::from(n % 16)).next().unwrap_or_default(),
            Hash::At(bucket, fingerprint) => {
                let most = ((1u64 << self.model.f) - 1).min(u64::from(u16::MAX));
                let fingerprint = u32::from(fingerprint) % u32::try_from(most).expect("at most 16 bits") + 1;
                self.model.hash((fingerprint, u64::from(bucket) % self.model.m))
            }
            Hash::Any(hash) => hash,
        }
    }

    fn hashes(&self, hashes: &[Hash]) -> Vec<u64> {
        hashes.iter().map(|&hash| self.hash(hash)).collect()
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Insert(hash) => _ = self.insert(self.hash(*hash)),
            Step::InsertUnique(hash) => self.insert_unique(self.hash(*hash)),
            Step::Remove(hash) => self.remove(self.hash(*hash)),
            Step::InsertItem(item) => {
                if self.both(|filter| filter.insert(item)).is_ok() {
                    self.added(self.twins[0].hash(item));
                }
            }
            Step::RemoveItem(item) => {
                let removed = self.both(|filter| filter.remove(item));
                let hash = self.twins[0].hash(item);
                assert_eq!(removed, self.removed(hash));
            }
            Step::InsertBatch(hashes) => self.insert_batch(&self.hashes(hashes)),
            Step::RemoveBatch(hashes) => self.remove_batch(&self.hashes(hashes)),
            Step::ContainsBatch(hashes) => self.contains_batch(&self.hashes(hashes)),
            Step::Fill(seed) => {
                let most = 2 * self.twins[0].slots();
                let mut fresh = SplitMix64(1 << 32 | u64::from(*seed)).take(most);
                while fresh.next().is_some_and(|hash| self.insert(hash)) {}
            }
            Step::KeepEveryNth(n) => {
                let hashes: Vec<u64> = self.items.keys().map(|&key| self.model.hash(key)).collect();
                let n = usize::from(*n % 8) + 2;
                hashes.iter().enumerate().filter(|(place, _)| place % n != 0).for_each(|(_, &hash)| self.remove(hash));
            }
            Step::Merge(hashes) => self.combine(&self.hashes(hashes), false),
            Step::Union(hashes) => self.combine(&self.hashes(hashes), true),
            Step::Clear => {
                self.both(CuckooFilter::clear);
                self.items.clear();
            }
            Step::Reread => self.reread(),
            Step::Rebuild => self.rebuild(),
        }
        self.compare();
    }

    /// Returns false if there was no room.
    fn insert(&mut self, hash: u64) -> bool {
        let before = self.twins[0].to_bytes();
        match self.both(|filter| filter.insert(&Prehashed(hash))) {
            Ok(()) => self.added(hash),
            Err(full) => {
                self.check_refusal(&full, hash, &before);
                return false;
            }
        }
        true
    }

    fn check_refusal(&mut self, full: &InsertError, hash: u64, before: &[u8]) {
        self.both(|filter| assert_eq!(filter.to_bytes(), before, "a refused insertion changed something"));
        assert_eq!(self.copies(hash), 0, "a copy is refused");
        let counts = format!("{} items in {} slots", self.twins[0].table_len(), self.twins[0].slots());
        assert!(full.to_string().contains(&counts), "{full}");
        // The item's buckets hold no copies that could be counted beside the table to make room.
        let table = &before[HEADER..][..self.twins[0].params().table_bytes()];
        let buckets = self.model.table(table).expect("a filter writes a valid table");
        let (stored, (bucket, fingerprint)) = (self.model.items(&buckets), self.model.locate(hash));
        for bucket in [bucket, self.model.alternate(bucket, fingerprint)] {
            let slots = &buckets[usize::try_from(bucket).expect("a small number")];
            assert!(slots.iter().all(|&other| stored[&self.model.key_in(bucket, other)] == 1), "{full}");
        }
    }

    fn insert_unique(&mut self, hash: u64) {
        let before = self.twins[0].to_bytes();
        let is_present = self.copies(hash) > 0;
        match self.both(|filter| filter.insert_unique(&Prehashed(hash))) {
            Ok(stored) => {
                assert_eq!(stored, !is_present);
                if stored {
                    self.added(hash);
                }
            }
            Err(full) => {
                assert!(!is_present);
                self.check_refusal(&full, hash, &before);
            }
        }
    }

    fn remove(&mut self, hash: u64) {
        let removed = self.both(|filter| filter.remove(&Prehashed(hash)));
        assert_eq!(removed, self.removed(hash), "{hash:#x}");
    }

    fn insert_batch(&mut self, hashes: &[u64]) {
        let mut alone = self.twins[0].clone();
        let accepted = hashes.iter().take_while(|&&hash| alone.insert(&Prehashed(hash)).is_ok()).count();
        match self.both(|filter| filter.insert_batch(&Prehashed(hashes))) {
            Ok(()) => assert_eq!(accepted, hashes.len()),
            Err(full) => assert_eq!(full.position(), accepted),
        }
        assert!(alone == self.twins[0], "a batch differs from single insertions");
        hashes[..accepted].iter().for_each(|&hash| self.added(hash));
    }

    fn remove_batch(&mut self, hashes: &[u64]) {
        let removed = self.both(|filter| {
            let mut removed = vec![false; hashes.len()];
            filter.remove_batch(&Prehashed(hashes), &mut removed);
            removed
        });
        let expected: Vec<bool> = hashes.iter().map(|&hash| self.removed(hash)).collect();
        assert_eq!(removed, expected);
    }

    fn contains_batch(&mut self, hashes: &[u64]) {
        let (found, count) = self.both(|filter| {
            let mut found = vec![false; hashes.len()];
            filter.contains_batch(&Prehashed(hashes), &mut found);
            (found, filter.count_members(&Prehashed(hashes)))
        });
        let expected: Vec<bool> = hashes.iter().map(|&hash| self.copies(hash) > 0).collect();
        assert_eq!(found, expected);
        assert_eq!(count, expected.iter().filter(|&&found| found).count());
    }

    fn combine(&mut self, hashes: &[u64], is_union: bool) {
        let mut other = self.twins[0].clone();
        let is_double = hashes.is_empty() && !is_union;
        if !is_double {
            other.clear();
        }
        let taken: Vec<u64> = hashes.iter().copied().filter(|&hash| other.insert(&Prehashed(hash)).is_ok()).collect();
        let before = self.twins[0].to_bytes();
        let message_of = |merged: Result<(), MergeError>| merged.map_err(|error| error.to_string());
        let merged = self.both(|filter| message_of(if is_union { filter.union(&other) } else { filter.merge(&other) }));
        let mut viewed = CuckooFilter::from_bytes(&before).expect("a valid snapshot");
        let copy = FilterView::over(other.to_bytes()).and_then(|view| view.to_filter()).expect("a valid snapshot");
        let merged_view = message_of(if is_union { viewed.union(&copy) } else { viewed.merge(&copy) });
        assert_eq!(merged_view, merged, "merging a view's filter differs");
        assert!(viewed == self.twins[0], "merging a view's filter differs");
        if is_double {
            let doubled = self.items.iter().map(|(&key, &copies)| Some((key, copies.checked_mul(2)?))).collect::<Option<_>>();
            assert_eq!(merged.is_ok(), doubled.is_some(), "{merged:?}");
            self.items = doubled.unwrap_or(std::mem::take(&mut self.items));
        }
        if merged.is_ok() {
            // A union adds the copies that the other filter has more of. Keys distinguish items exactly as filters do.
            for hash in taken {
                if !is_union || self.copies(hash) < other.count(&Prehashed(hash)) {
                    self.added(hash);
                }
            }
        } else {
            assert_eq!(self.twins[0].to_bytes(), before, "a refused merge changed something");
        }
    }

    /// Replaces both filters by ones that are read from a snapshot.
    fn reread(&mut self) {
        let kernels = self.twins.each_ref().map(CuckooFilter::kernel);
        let bytes = self.twins[0].to_bytes();
        let view = FilterView::over(&bytes).expect("a valid snapshot");
        assert!(view == self.twins[1]);
        self.twins = [
            CuckooFilter::from_bytes(&bytes).expect("a valid snapshot"),
            CuckooFilter::read_from(&bytes[..]).expect("a valid snapshot"),
        ];
        for (twin, kernel) in self.twins.iter_mut().zip(kernels) {
            twin.set_kernel(kernel).expect("the kernel is available");
        }
    }

    /// Replaces both filters by one that `build_from_items` builds from the same items, if it succeeds.
    fn rebuild(&mut self) {
        let copies = |(&key, &copies): (&Key, &u32)| vec![self.model.hash(key); copies as usize];
        let hashes: Vec<u64> = self.items.iter().flat_map(copies).collect();
        let params = self.twins[0].params();
        let builder = CuckooFilter::builder().table(params.table()).fingerprint_bits(params.fingerprint_bits());
        let builder = builder.bucket_size(params.bucket_size()).addressing(params.addressing());
        if let Ok(mut built) = builder.buckets(params.buckets()).seed(params.seed()).build_from_items(&Prehashed(&hashes)) {
            self.twins = self.twins.each_ref().map(|twin| {
                built.set_kernel(twin.kernel()).expect("the kernel is available");
                built.clone()
            });
        }
    }

    /// Asserts that both filters have equal bytes, and hold the items of the model.
    fn compare(&self) {
        let [bytes, others] = self.twins.each_ref().map(CuckooFilter::to_bytes);
        assert_eq!(bytes, others, "kernels differ");
        let (_, items) = Model::verdict(&bytes).expect("a filter writes a valid snapshot");
        assert_eq!(items, self.items);
        for twin in &self.twins {
            assert_eq!((twin.len(), twin.is_empty()), (self.len(), self.items.is_empty()));
            for (&key, &copies) in &self.items {
                assert_eq!(twin.count(&Prehashed(self.model.hash(key))), copies, "{key:?}");
            }
            for hash in SplitMix64(3).take(8) {
                assert_eq!(twin.contains(&Prehashed(hash)), self.copies(hash) > 0, "{hash:#x}");
            }
        }
    }

    fn drain(mut self) {
        let hashes: Vec<(u64, u32)> = self.items.iter().map(|(&key, &copies)| (self.model.hash(key), copies)).collect();
        for (hash, copies) in hashes {
            // After merges there may be millions of copies.
            (0..copies.min(MOST_REMOVED)).for_each(|_| self.remove(hash));
        }
        self.compare();
        if !self.items.is_empty() {
            return;
        }
        let bytes = self.twins[0].to_bytes();
        assert_eq!(bytes.len() as u64, self.twins[0].params().snapshot_bytes(), "a drained filter counts no copies");
        assert!(bytes[64..bytes.len() - 8].iter().all(|&byte| byte == 0), "a drained table is not zero");
    }
}
