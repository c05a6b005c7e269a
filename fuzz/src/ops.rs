//! Random operations of fixed filters: with every kernel, a filter must equal the multiset that the format's formulas define, to the
//! last bit. tests/operations.rs runs this with random inputs.

use super::{
    formulas::{Formulas, HEADER as SNAPSHOT_HEADER, Key},
    same_bits::same_bits,
    split_mix::SplitMix64,
};
use koel::{Addressing, CuckooFilter, FilterView, InsertError, InsertErrorKind, Kernel, MergeError, Prehashed, TableKind};
use std::{collections::BTreeMap, fmt::Debug};

/// Bytes of the input's header, which describes the filter.
pub const HEADER: usize = 8;
/// Bytes of each step in the input. The steps after one with a list of items give the list.
pub const STEP: usize = 8;

/// The number of common items.
const COMMON: u8 = 40;

/// The most copies that are removed individually, or built again.
const MANY: u32 = 300;

/// The filter's parameters, and the operations.
#[derive(Debug)]
struct Plan {
    table: TableKind,
    addressing: Addressing,
    f: u32,
    b: u32,
    size: Size,
    seed: u64,
    kernels: [u8; 2],
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Size {
    Buckets(u64),
    /// The filter is planned for the common items, and gets no others, so it must not refuse any.
    Common,
}

#[derive(Debug)]
enum Step {
    Insert(Item),
    InsertUnique(Item),
    Remove(Item),
    /// Inserts this many copies of an item individually.
    InsertCopies(Item, u8),
    RemoveCopies(Item, u8),
    /// Inserts a number instead of a hash.
    InsertNumber(u32),
    RemoveNumber(u32),
    InsertBatch(Vec<Item>),
    RemoveBatch(Vec<Item>),
    ContainsBatch(Vec<Item>),
    /// Inserts new items until one is refused, at most twice as many as there are slots.
    Fill(u32),
    /// Removes one copy of every item but each n-th.
    KeepEveryNth(u8),
    /// Combines with a filter of these items.
    Combine(Combine, Vec<Item>),
    /// Merges with itself this many times.
    Double(u8),
    Clear,
    Reread,
    Rebuild,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Combine {
    Merge,
    Union,
    Intersect,
}

#[derive(Clone, Copy, Debug)]
enum Item {
    /// One of a few items, so that there are copies.
    Common(u8),
    /// An item with this bucket and fingerprint, so that buckets fill up.
    At(u8, u32),
    Any(u32),
}

impl Plan {
    fn decode(input: &[u8]) -> Option<Self> {
        let (&[kinds, f, b, m, one, other, seed @ ..], rest) = input.split_first_chunk::<HEADER>()?;
        let table = if kinds & 1 == 1 { TableKind::Packed } else { TableKind::Single };
        let (addressing, buckets) = if kinds & 2 == 2 {
            (Addressing::PowerOfTwo, 1 << (m % 6))
        } else {
            (Addressing::AnySize, 2 + 2 * u64::from(m % 20))
        };
        let (f, b) = if table == TableKind::Packed { (4 + f % 29, 4) } else { (2 + f % 31, 1 + b % 16) };
        let size = if kinds / 4 % 4 == 3 { Size::Common } else { Size::Buckets(buckets) };
        let mut records = rest.as_chunks().0.iter().copied();
        let mut steps = Vec::new();
        while let Some(record) = records.next() {
            steps.push(Step::decode(record, size, &mut records));
        }
        Some(Self {
            table,
            addressing,
            f: f.into(),
            b: b.into(),
            size,
            seed: u16::from_le_bytes(seed).into(),
            kernels: [one, other],
            steps,
        })
    }
}

impl Step {
    fn decode(record: [u8; STEP], size: Size, others: impl Iterator<Item = [u8; STEP]>) -> Self {
        let [kind, n, ..] = record;
        let (item, number) = (Item::decode(record, size), Item::number(record));
        let list = |end: u8| others.take(usize::from(n % end)).map(|record| Item::decode(record, size)).collect();
        match kind % 64 {
            0..19 => Self::Insert(item),
            19..23 => Self::InsertUnique(item),
            23..35 => Self::Remove(item),
            35 | 36 => Self::InsertCopies(item, n),
            37 | 38 => Self::RemoveCopies(item, n),
            39 => Self::InsertNumber(number),
            40 => Self::RemoveNumber(number),
            41 | 42 => Self::InsertBatch(list(128)),
            43 => Self::RemoveBatch(list(128)),
            44 => Self::ContainsBatch(list(128)),
            45 | 46 => Self::Fill(number),
            47..50 => Self::KeepEveryNth(2 + n % 8),
            50..54 => Self::Combine(Combine::Merge, list(40)),
            54..57 => Self::Combine(Combine::Union, list(40)),
            57 => Self::Combine(Combine::Intersect, list(128)),
            58 => Self::Double(1 + n % 32),
            59 => Self::Clear,
            60..63 => Self::Reread,
            _ => Self::Rebuild,
        }
    }
}

impl Item {
    fn decode(record: [u8; STEP], size: Size) -> Self {
        let [_, _, sort, place, ..] = record;
        match sort % 4 {
            0 | 1 => Self::Common(place % COMMON),
            _ if size == Size::Common => Self::Common(place % COMMON),
            2 => Self::At(place, Self::number(record)),
            _ => Self::Any(Self::number(record)),
        }
    }

    fn number([.., a, b, c, d]: [u8; STEP]) -> u32 {
        u32::from_le_bytes([a, b, c, d])
    }
}

/// Runs the operations of the input.
pub fn check(input: &[u8]) {
    if let Some(plan) = Plan::decode(input) {
        let mut state = State::new(&plan);
        plan.steps.iter().for_each(|step| state.take(step));
        state.drain();
    }
}

/// Describes the input in words.
#[allow(dead_code, reason = "only tests describe inputs")]
pub fn describe(input: &[u8]) -> String {
    let Some(plan) = Plan::decode(input) else { return String::from("nothing") };
    let lines: Vec<String> = plan.steps.iter().map(|step| format!("  {step:?}")).collect();
    format!("{:?}\n{}", Plan { steps: Vec::new(), ..plan }, lines.join("\n"))
}

/// Two filters that differ only in their kernels, and the items in them.
struct State {
    twins: [CuckooFilter; 2],
    formulas: Formulas,
    /// The copies of each item. An item is as good as another with its key.
    items: BTreeMap<Key, u32>,
    size: Size,
}

impl State {
    fn new(plan: &Plan) -> Self {
        let builder = CuckooFilter::builder().table(plan.table).fingerprint_bits(plan.f).bucket_size(plan.b);
        let builder = builder.addressing(plan.addressing).seed(plan.seed);
        let builder = match plan.size {
            Size::Buckets(buckets) => builder.buckets(buckets),
            Size::Common => builder.capacity(COMMON.into()),
        };
        let kernels: Vec<Kernel> = Kernel::available().collect();
        let twins = plan.kernels.map(|kernel| {
            let kernel = kernels[usize::from(kernel) % kernels.len()];
            builder.clone().kernel(kernel).build().expect("valid parameters")
        });
        let formulas = Formulas::of(&twins[0].params());
        Self { twins, formulas, items: BTreeMap::new(), size: plan.size }
    }

    fn len(&self) -> u64 {
        self.items.values().map(|&copies| u64::from(copies)).sum()
    }

    fn copies(&self, hash: u64) -> u32 {
        self.items.get(&self.formulas.key(hash)).copied().unwrap_or(0)
    }

    fn added(&mut self, hash: u64) {
        let copies = self.items.entry(self.formulas.key(hash)).or_default();
        *copies = copies.checked_add(1).expect("more copies are accepted than can be counted");
    }

    /// Removes a copy from the multiset. Returns false if there was none.
    fn removed(&mut self, hash: u64) -> bool {
        let key = self.formulas.key(hash);
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

    fn hash(&self, item: Item) -> u64 {
        match item {
            Item::Common(n) => SplitMix64(n.into()).next().unwrap_or_default(),
            Item::At(bucket, fingerprint) => {
                let fingerprint = fingerprint % (u32::MAX >> (32 - self.formulas.f)) + 1;
                self.formulas.hash((fingerprint, u64::from(bucket) % self.formulas.m))
            }
            Item::Any(number) => SplitMix64(1 << 40 | u64::from(number)).next().unwrap_or_default(),
        }
    }

    fn hashes(&self, items: &[Item]) -> Vec<u64> {
        items.iter().map(|&item| self.hash(item)).collect()
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Insert(item) => _ = self.insert(self.hash(*item)),
            Step::InsertUnique(item) => self.insert_unique(self.hash(*item)),
            Step::Remove(item) => self.remove(self.hash(*item)),
            Step::InsertCopies(item, copies) => _ = (0..*copies).all(|_| self.insert(self.hash(*item))),
            Step::RemoveCopies(item, copies) => (0..*copies).for_each(|_| self.remove(self.hash(*item))),
            Step::InsertNumber(_) | Step::RemoveNumber(_) | Step::Fill(_) if self.size == Size::Common => {}
            Step::InsertNumber(number) => {
                if self.both(|filter| filter.insert(number)).is_ok() {
                    self.added(self.twins[0].hash(number));
                }
            }
            Step::RemoveNumber(number) => {
                let removed = self.both(|filter| filter.remove(number));
                let hash = self.twins[0].hash(number);
                assert_eq!(removed, self.removed(hash));
            }
            Step::InsertBatch(items) => self.insert_batch(&self.hashes(items)),
            Step::RemoveBatch(items) => self.remove_batch(&self.hashes(items)),
            Step::ContainsBatch(items) => self.contains_batch(&self.hashes(items)),
            Step::Fill(seed) => {
                let most = 2 * self.twins[0].slots();
                let mut fresh = SplitMix64(1 << 32 | u64::from(*seed)).take(most);
                while fresh.next().is_some_and(|hash| self.insert(hash)) {}
            }
            Step::KeepEveryNth(n) => {
                let hashes: Vec<u64> = self.items.keys().map(|&key| self.formulas.hash(key)).collect();
                let removed = hashes.iter().enumerate().filter(|(place, _)| place % usize::from(*n) != 0);
                removed.for_each(|(_, &hash)| self.remove(hash));
            }
            Step::Combine(how, items) => self.combine_with(&self.hashes(items), *how),
            Step::Double(times) => self.double(*times),
            Step::Clear => {
                self.both(CuckooFilter::clear);
                self.items.clear();
            }
            Step::Reread => self.reread(),
            Step::Rebuild => self.rebuild(),
        }
        self.compare();
    }

    /// Returns false if the item is refused.
    fn insert(&mut self, hash: u64) -> bool {
        let before = self.twins[0].to_bytes();
        match self.both(|filter| filter.insert(&Prehashed(hash))) {
            Ok(()) => self.added(hash),
            Err(error) => {
                self.check_refusal(&error, hash, &before);
                return false;
            }
        }
        true
    }

    fn check_refusal(&mut self, error: &InsertError, hash: u64, before: &[u8]) {
        self.both(|filter| assert_eq!(filter.to_bytes(), before, "a refused insertion changed something"));
        if self.copies(hash) == u32::MAX {
            return assert_eq!(error.kind(), InsertErrorKind::TooManyCopies);
        }
        assert_eq!(self.copies(hash), 0, "a copy is refused");
        assert!(self.size != Size::Common, "one of the planned items is refused");
        let (distinct, len) = (self.twins[0].table_len(), self.twins[0].len());
        assert_eq!(error.kind(), InsertErrorKind::Full { distinct, len });
        // The item's buckets hold no copies that could be counted beside the table to make room.
        let table = &before[SNAPSHOT_HEADER..][..self.twins[0].params().table_bytes()];
        let buckets = self.formulas.table(table).expect("a filter writes a valid table");
        let (stored, (bucket, fingerprint)) = (self.formulas.items(&buckets), self.formulas.locate(hash));
        for bucket in [bucket, self.formulas.alternate(bucket, fingerprint)] {
            let slots = &buckets[usize::try_from(bucket).expect("a small number")];
            assert!(slots.iter().all(|&other| stored[&self.formulas.key_in(bucket, other)] == 1), "{error}");
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
            Err(error) => {
                assert!(!is_present);
                self.check_refusal(&error, hash, &before);
            }
        }
    }

    fn remove(&mut self, hash: u64) {
        let removed = self.both(|filter| filter.remove(&Prehashed(hash)));
        assert_eq!(removed, self.removed(hash), "{hash:#x}");
    }

    fn insert_batch(&mut self, hashes: &[u64]) {
        let mut alone = self.twins[0].clone();
        let refused = (0..).zip(hashes).find_map(|(at, &hash)| Some((at, alone.insert(&Prehashed(hash)).err()?.kind())));
        let inserted = self.both(|filter| filter.insert_batch(&Prehashed(hashes)));
        assert_eq!(inserted.map_err(|error| (error.position(), error.kind())).err(), refused);
        assert!(same_bits(&alone, &self.twins[0]), "a batch differs from single insertions");
        hashes[..refused.map_or(hashes.len(), |(at, _)| at)].iter().for_each(|&hash| self.added(hash));
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

    fn double(&mut self, times: u8) {
        for _ in 0..times {
            // A filter counts its items in a `usize`.
            if usize::try_from(2 * self.len()).is_ok() {
                self.combine(&self.twins[0].clone(), &self.items.clone(), Combine::Merge);
            }
        }
    }

    fn combine_with(&mut self, hashes: &[u64], how: Combine) {
        let mut other = self.twins[0].clone();
        other.clear();
        let mut theirs = BTreeMap::new();
        for &hash in hashes {
            if other.insert(&Prehashed(hash)).is_ok() {
                *theirs.entry(self.formulas.key(hash)).or_default() += 1;
            }
        }
        self.combine(&other, &theirs, how);
    }

    /// Combines the filters with another, and a third filter with a view of the other.
    fn combine(&mut self, other: &CuckooFilter, theirs: &BTreeMap<Key, u32>, how: Combine) {
        let before = self.twins[0].to_bytes();
        let run = |filter: &mut CuckooFilter, other: &CuckooFilter| -> Result<(), String> {
            let merged = match how {
                Combine::Merge => filter.merge(other),
                Combine::Union => filter.union(other),
                Combine::Intersect => filter.intersect(other),
            };
            merged.map_err(|error: MergeError| error.to_string())
        };
        let merged = self.both(|filter| run(filter, other));
        let mut third = CuckooFilter::from_bytes(&before).expect("a valid snapshot");
        let viewed = FilterView::over(other.to_bytes()).and_then(|view| view.to_filter()).expect("a valid snapshot");
        assert_eq!(run(&mut third, &viewed), merged, "merging a view's filter differs");
        assert!(same_bits(&third, &self.twins[0]), "merging a view's filter differs");
        let count = |items: &BTreeMap<Key, u32>, key: &Key| items.get(key).copied().unwrap_or(0);
        let copies_in_both = |key: &Key| match (count(&self.items, key), count(theirs, key)) {
            (ours, theirs) if how == Combine::Merge => ours.checked_add(theirs),
            (ours, theirs) if how == Combine::Union => Some(ours.max(theirs)),
            (ours, theirs) => Some(ours.min(theirs)),
        };
        let keys = self.items.keys().chain(theirs.keys());
        let expected: Option<BTreeMap<Key, u32>> = keys.map(|&key| Some((key, copies_in_both(&key)?))).collect();
        if merged.is_ok() {
            self.items = expected.expect("more copies are accepted than can be counted");
            self.items.retain(|_, copies| *copies > 0);
            return;
        }
        assert_eq!(self.twins[0].to_bytes(), before, "a refused merge changed something");
        assert_ne!(how, Combine::Intersect, "{merged:?}");
        // Only new items can fill the table.
        let has_new = theirs.keys().any(|key| !self.items.contains_key(key));
        assert!(expected.is_none() || has_new && self.size != Size::Common, "{merged:?}");
    }

    /// Replaces both filters by ones that are read from a snapshot.
    fn reread(&mut self) {
        let kernels = self.twins.each_ref().map(CuckooFilter::kernel);
        let bytes = self.twins[0].to_bytes();
        assert_eq!(bytes.len() as u64, self.twins[0].snapshot_bytes());
        let view = FilterView::over(&bytes).expect("a valid snapshot");
        assert!(same_bits(&view, &self.twins[1]));
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
        if self.items.values().any(|&copies| copies > MANY) {
            return;
        }
        let copies = |(&key, &copies): (&Key, &u32)| vec![self.formulas.hash(key); copies as usize];
        let hashes: Vec<u64> = self.items.iter().flat_map(copies).collect();
        let params = self.twins[0].params();
        let builder = CuckooFilter::builder().table(params.table()).fingerprint_bits(params.fingerprint_bits());
        let builder = builder.bucket_size(params.bucket_size()).addressing(params.addressing());
        let built = builder.buckets(params.buckets()).seed(params.seed()).build_from_items(&Prehashed(&hashes));
        assert!(built.is_ok() || self.size != Size::Common, "{built:?}");
        if let Ok(mut built) = built {
            self.twins = self.twins.each_ref().map(|twin| {
                built.set_kernel(twin.kernel()).expect("the kernel is available");
                built.clone()
            });
        }
    }

    /// Asserts that both filters have equal bytes, and hold the items of the multiset.
    fn compare(&self) {
        let [bytes, others] = self.twins.each_ref().map(CuckooFilter::to_bytes);
        assert_eq!(bytes, others, "kernels differ");
        let items = self.formulas.contents(&bytes).expect("a filter writes a valid table");
        assert_eq!(items, self.items);
        for twin in &self.twins {
            assert_eq!((twin.len() as u64, twin.is_empty()), (self.len(), self.items.is_empty()));
            for (&key, &copies) in &self.items {
                assert_eq!(twin.count(&Prehashed(self.formulas.hash(key))), copies, "{key:?}");
            }
            for hash in SplitMix64(3).take(8) {
                assert_eq!(twin.contains(&Prehashed(hash)), self.copies(hash) > 0, "{hash:#x}");
            }
        }
    }

    fn drain(mut self) {
        let hashes: Vec<(u64, u32)> = self.items.iter().map(|(&key, &copies)| (self.formulas.hash(key), copies)).collect();
        for (hash, copies) in hashes {
            // After merges there may be millions of copies.
            (0..copies.min(MANY)).for_each(|_| self.remove(hash));
        }
        self.compare();
        if !self.items.is_empty() {
            return;
        }
        let bytes = self.twins[0].to_bytes();
        assert_eq!(bytes.len() as u64, self.twins[0].params().snapshot_bytes(), "a drained filter counts no copies");
        let table = &bytes[SNAPSHOT_HEADER..bytes.len() - 8];
        assert!(table.iter().all(|&byte| byte == 0), "a drained table is not zero");
    }
}
