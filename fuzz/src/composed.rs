//! Random sequences of all operations of growing filters, on all kernels in lockstep and on a copy that goes through snapshots,
//! compared with a multiset. tests/elastic/composed.rs runs this with random inputs.

#![allow(clippy::cast_precision_loss, reason = "the numbers are small")]

use super::{chosen::Plan, split_mix::SplitMix64};
use koel::{
    ElasticBuilder, ElasticFilter, ElasticView, InsertError, InsertErrorKind, Kernel, MergeError, Prehashed, SharedFilter,
    pieces::SnapshotExtent,
};
use std::{collections::BTreeMap, fmt::Debug, iter, mem};

/// Bytes of the input's header, which describes the filters. The second is not used.
pub const HEADER: usize = 8;
/// Bytes of each operation in the input.
pub const STEP: usize = 4;

/// Limits on what an input may request.
#[derive(Clone, Copy)]
pub struct Size {
    /// The most operations; further ones are ignored.
    pub steps: usize,
    /// The most distinct items in a filter.
    pub items: usize,
    /// The most items in a filter, copies included.
    pub copies: usize,
    /// The most bytes of an empty filter's snapshot. Larger filters are skipped.
    pub bytes: u64,
    /// Absent hashes of each kind with which the false-positive rate is measured.
    pub probes: u64,
    /// The most refused items of an operation, whose rest is then skipped: each refusal takes a long eviction walk.
    pub refusals: usize,
    /// The most removals by which a filter is drained at the end. A filter with more items is cleared.
    pub removals: usize,
}

impl Size {
    /// For a few inputs: filters grow many times, and rates are measured within a few percent.
    pub const LARGE: Self = Self {
        steps: 64,
        items: 30_000,
        // Debug builds take long to remove them.
        copies: if cfg!(debug_assertions) { 1 << 16 } else { 1 << 20 },
        bytes: 1 << 17,
        probes: if cfg!(miri) { 20 } else { 20_000 },
        refusals: usize::MAX,
        removals: usize::MAX,
    };

    /// Items may have millions of copies, most of which are not removed one by one.
    #[allow(dead_code, reason = "no fuzz target uses it")]
    pub const HOSTILE: Self = Self {
        // 2³⁶ with 64 bits.
        copies: 1 << (usize::BITS / 2 + 4),
        removals: 1 << 15,
        ..Self::LARGE
    };

    /// For a fuzzer, which finds more with more inputs.
    #[allow(dead_code, reason = "only tests with all features replay the corpus")]
    pub const SMALL: Self =
        Self { steps: 32, items: 2000, copies: 1 << 14, bytes: 1 << 13, probes: 500, refusals: 2, ..Self::LARGE };
}

type Merge = fn(&mut ElasticFilter, &ElasticFilter) -> Result<(), MergeError>;
type SharedMerge = fn(&mut SharedFilter, &SharedFilter) -> Result<(), MergeError>;

/// Writes a filter in some format, and returns the filter that is read back.
pub type Format = fn(&ElasticFilter) -> ElasticFilter;

/// The formats that need only the library.
const FORMATS: [Format; 5] = [through_bytes, through_stream, through_pieces, through_view, through_extent];

/// Runs the input's operations and checks the filters after each. `formats` are additional formats.
pub fn check(input: &[u8], size: Size, formats: &[Format]) {
    let Some((header, operations)) = decode(input) else { return };
    let formats = [&FORMATS, formats].concat();
    let Some(mut state) = State::new(&header, size, formats) else { return };
    for operation in operations.into_iter().take(size.steps) {
        state.take(operation);
        state.verify();
    }
    // Under Miri, draining takes longer than everything else.
    if !cfg!(miri) {
        state.finish();
    }
}

/// Describes the input in words.
pub fn describe(input: &[u8]) -> String {
    let Some((header, operations)) = decode(input) else { return String::from("nothing") };
    let lines: Vec<String> = operations.iter().map(|operation| format!("  {operation:?}")).collect();
    format!("{header:?}\n{}", lines.join("\n"))
}

fn decode(input: &[u8]) -> Option<(Header, Vec<Operation>)> {
    let (&header, rest) = input.split_first_chunk()?;
    let header = Header::decode(header);
    let operations = rest.as_chunks().0.iter().map(|&step| Operation::decode(step, &header)).collect();
    Some((header, operations))
}

/// The parameters of the filters and their items.
#[derive(Clone, Copy, Debug)]
struct Header {
    rate: f64,
    capacity: usize,
    max_capacity: Option<usize>,
    partitions: usize,
    seed: u64,
    universe: Universe,
    /// The number of distinct items.
    items: u64,
}

impl Header {
    fn decode(bytes: [u8; HEADER]) -> Self {
        let pick = |at: usize, len: usize| usize::from(bytes[at]) % len;
        // Without growth, a plan of 12,000 items has shards of more than 4096 slots. Smaller ones are never full.
        let capacity = [1, 2, 10, 30, 100, 300, 1000, 3000, 12_000, 12_000][pick(2, 10)];
        let times = [Some(2), Some(2), Some(3), Some(4), Some(8), Some(32), Some(128), None][pick(3, 8)];
        Self {
            rate: match bytes[0] {
                250.. => 1e-8,
                _ => [0.3, 0.1, 0.05, 0.01, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7][pick(0, 10)],
            },
            capacity,
            max_capacity: times.map(|halves| capacity * halves / 2),
            partitions: [1, 1, 1, 1, 2, 2, 4, 8][pick(4, 8)],
            seed: u64::from(bytes[7] % 4),
            universe: match bytes[5] {
                248.. => Universe::Neighbors,
                240.. => Universe::OneShard,
                224.. => Universe::OnePair,
                _ => [
                    Universe::Items,
                    Universe::Items,
                    Universe::Items,
                    Universe::Low,
                    Universe::High,
                    Universe::Reversed,
                    Universe::Multiples,
                ][pick(5, 7)],
            },
            items: if capacity < 10_000 { [40, 300, 3000, 30_000][pick(6, 4)] } else { 30_000 },
        }
    }

    fn builder(&self) -> ElasticBuilder {
        let builder = ElasticFilter::builder().false_positive_rate(self.rate).capacity(self.capacity);
        let builder = builder.partitions(self.partitions).seed(self.seed);
        self.max_capacity.map_or(builder.clone(), |items| builder.max_capacity(items))
    }
}

/// How an item's number gives its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Universe {
    /// The filter's hasher hashes the number.
    Items,
    /// Prehashed: the number in the low bits, in the high bits, with reversed bits, or times a constant.
    Low,
    High,
    Reversed,
    Multiples,
    /// Chosen so that all items have the same two buckets and almost the same stream.
    OnePair,
    /// Chosen so that all items have the same stream.
    OneShard,
    /// Chosen so that consecutive numbers have consecutive fingerprints, and the same bucket and stream.
    Neighbors,
}

impl Universe {
    /// Returns true if the filter may not be able to tell the items apart.
    fn is_chosen(self) -> bool {
        matches!(self, Self::OnePair | Self::OneShard | Self::Neighbors)
    }
}

/// Items whose buckets, fingerprints and streams are chosen.
struct Chosen {
    plan: Plan,
    /// The bucket that many items have in common, and the fingerprints with the same other bucket.
    bucket: u64,
    fingerprints: Vec<u64>,
}

impl Chosen {
    /// The stream bits that are chosen.
    const BITS: u64 = 30;

    fn new(empty: &ElasticFilter) -> Self {
        let plan = Plan::of(empty);
        let bucket = plan.m / 3;
        Self { plan, bucket, fingerprints: plan.fingerprints_of_one_pair(bucket) }
    }

    fn hash(&self, universe: Universe, number: u64) -> u64 {
        let (pairs, t) = (self.fingerprints.len() as u64, (1 << self.plan.f) - 1);
        let mixed = SplitMix64(number).next().unwrap_or_default();
        let (bucket, t, prefix) = match universe {
            Universe::OnePair => (self.bucket, self.fingerprints[index(number % pairs)], number / pairs),
            Universe::OneShard => ((mixed >> 32) % self.plan.m, 1 + mixed % t, 0),
            _ => (number / t % self.plan.m, 1 + number % t, 0),
        };
        // No two items have the same hash: others with the same fields have later ones.
        let mut hashes = self.plan.hashes(bucket, t, [prefix, Self::BITS]);
        hashes.nth(index(number % 3)).unwrap_or(number)
    }
}

/// How several items are passed to a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    One,
    Batch,
    Iterator,
    Unordered,
}

fn trues(answers: &[bool]) -> usize {
    answers.iter().filter(|&&answer| answer).count()
}

/// The items with `len` consecutive numbers.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: u64,
    len: u64,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Insert(Form, Range),
    /// Several copies of a few items.
    InsertCopies(Form, Range),
    /// Inserts other items until there are this many percent of `max_capacity`.
    Fill(u8),
    /// Merges each filter this many times with a copy of itself.
    Double(u8),
    InsertUnique(Form, Range),
    Remove(Form, Range),
    /// Removes a copy of every item but each n-th.
    KeepEveryNth(u8),
    Find(Range),
    /// Swaps the two sides; all operations apply to the first one.
    Swap,
    Merge,
    Union,
    Intersect,
    /// Replaces the second side by a copy of the first.
    Copy {
        is_fallible: bool,
    },
    Shrink,
    Clear,
    Share,
    Unshare,
    /// Replaces the filters by ones that are written and read back.
    Reread(u8),
    /// Replaces only the last of the filters that must stay equal.
    RereadOne(u8),
    /// Replaces the second side by a merge of filters that several workers fill.
    Workers(u8, Range),
    /// Replaces the second side by a filter with copies of some items, and merges or unites that into the first side.
    AddCopies {
        is_union: bool,
        range: Range,
    },
    /// Limits the memory to this many bytes more than the filters take.
    Limit(usize),
    NoLimit,
    Kernels(u8),
    Rate,
}

impl Operation {
    fn decode([kind, a, b, c]: [u8; STEP], header: &Header) -> Self {
        let len = [1, 1, 2, 7, 20, 65, 92, 150, 400, 1000, 2500, 6000][usize::from(c % 12)];
        let range = Range { first: u64::from(a) * header.items / 256, len };
        let short = Range { len: 1 + len % 5, ..range };
        let form = [Form::One, Form::Batch, Form::Iterator, Form::Unordered][usize::from(b % 4)];
        match kind % 64 {
            0..17 => Self::Insert(form, range),
            17 => Self::Fill(85 + a % 40),
            18 | 19 => Self::AddCopies { is_union: b % 4 == 0, range },
            20..23 => Self::InsertCopies(form, short),
            23 => Self::Double(1 + a % 20),
            24..27 => Self::InsertUnique(form, range),
            27..33 => Self::Remove(form, range),
            33..36 => Self::KeepEveryNth(2 + a % 16),
            36 => Self::Find(range),
            37..41 => Self::Swap,
            41..44 => Self::Merge,
            44 | 45 => Self::Union,
            46 | 47 => Self::Copy { is_fallible: a % 2 == 0 },
            48 | 49 => Self::Shrink,
            50 => Self::Clear,
            51..53 => Self::Share,
            53 => Self::Unshare,
            54 => Self::Reread(a),
            55..57 => Self::RereadOne(a),
            57 => Self::Workers(b, range),
            58..60 => Self::Limit([0, 64, 1000, 4000, 20_000, 100_000][usize::from(a % 6)]),
            60 => Self::NoLimit,
            61 => Self::Kernels(a),
            62 => Self::Intersect,
            _ => Self::Rate,
        }
    }
}

/// The arguments of a batch: hashes, and the numbers if the filter hashes them.
struct Keys {
    numbers: Option<Vec<u64>>,
    hashes: Vec<u64>,
}

impl Keys {
    fn truncate(&mut self, len: usize) {
        self.hashes.truncate(len);
        if let Some(numbers) = &mut self.numbers {
            numbers.truncate(len);
        }
    }
}

/// The result of an insertion: why an item was refused, and its position in the call.
type Outcome = Result<(), (InsertErrorKind, usize)>;

fn outcome(result: Result<(), InsertError>) -> Outcome {
    result.map_err(|error| {
        assert!(!error.to_string().is_empty());
        (kind(&error), error.position())
    })
}

/// Returns the kind of error without the numbers of a limit, which depend on the order of insertion.
fn kind(error: &InsertError) -> InsertErrorKind {
    match error.kind() {
        InsertErrorKind::Limit { .. } => InsertErrorKind::Limit { needed: 0, max_bytes: 0 },
        kind => kind,
    }
}

/// A filter of either type, with the same operations.
enum Filter {
    Own(ElasticFilter),
    Shared(SharedFilter),
}

use Filter::{Own, Shared};

/// Evaluates an expression with the filter, whichever type it has.
macro_rules! either {
    ($any:expr, $filter:ident => $value:expr) => {
        match $any {
            Own($filter) => $value,
            Shared($filter) => $value,
        }
    };
}

impl Filter {
    fn own(self) -> Self {
        match self {
            Shared(filter) => Own(filter.into_elastic().expect("there is memory")),
            own @ Own(_) => own,
        }
    }

    fn shared(self) -> Self {
        match self {
            Own(filter) => Shared(filter.into_shared().expect("there is memory")),
            shared @ Shared(_) => shared,
        }
    }

    fn insert_hash(&mut self, hash: u64) -> Outcome {
        outcome(either!(self, filter => filter.insert(&Prehashed(hash))))
    }

    /// Inserts several items. Returns the outcome of each item or of the whole call.
    fn insert(&mut self, form: Form, Keys { numbers, hashes }: &Keys) -> Vec<Outcome> {
        let each =
            |insert: &mut dyn FnMut(usize) -> Result<(), InsertError>| (0..hashes.len()).map(|at| outcome(insert(at))).collect();
        match (self, form, numbers) {
            (Own(filter), Form::One, Some(numbers)) => each(&mut |at| filter.insert(&numbers[at])),
            (Own(filter), Form::One, None) => each(&mut |at| filter.insert(&Prehashed(hashes[at]))),
            (Own(filter), Form::Batch, Some(numbers)) => vec![outcome(filter.insert_batch(numbers))],
            (Own(filter), Form::Iterator, Some(numbers)) => {
                vec![outcome(filter.insert_iter(numbers).map(|inserted| assert_eq!(inserted, numbers.len())))]
            }
            (Own(filter), Form::Batch | Form::Iterator, None) => vec![outcome(filter.insert_batch(&Prehashed(hashes)))],
            (Own(filter), Form::Unordered, Some(numbers)) => vec![outcome(filter.insert_unordered(numbers))],
            (Own(filter), Form::Unordered, None) => vec![outcome(filter.insert_unordered(&Prehashed(hashes)))],
            (Shared(filter), Form::One, Some(numbers)) => each(&mut |at| filter.insert(&numbers[at])),
            (Shared(filter), Form::One, None) => each(&mut |at| filter.insert(&Prehashed(hashes[at]))),
            (Shared(filter), _, Some(numbers)) => vec![outcome(filter.insert_batch(numbers))],
            (Shared(filter), _, None) => vec![outcome(filter.insert_batch(&Prehashed(hashes)))],
        }
    }

    /// Inserts the items that are not found. Returns how many were inserted.
    fn insert_unique(&mut self, form: Form, Keys { numbers, hashes }: &Keys) -> Result<usize, InsertErrorKind> {
        let each = |insert: &mut dyn FnMut(usize) -> Result<bool, InsertError>| {
            (0..hashes.len()).try_fold(0, |inserted, at| insert(at).map(|is_new| inserted + usize::from(is_new)))
        };
        let mut new = vec![true; hashes.len()];
        let inserted = match (self, form, numbers) {
            (Own(filter), Form::Iterator, Some(numbers)) => filter.insert_unique_iter(numbers),
            (Own(filter), Form::Batch, Some(numbers)) => filter.insert_unique_batch(numbers, &mut new).map(|()| trues(&new)),
            (Own(filter), Form::Batch, None) => filter.insert_unique_batch(&Prehashed(hashes), &mut new).map(|()| trues(&new)),
            (Own(filter), _, Some(numbers)) => each(&mut |at| filter.insert_unique(&numbers[at])),
            (Own(filter), _, None) => each(&mut |at| filter.insert_unique(&Prehashed(hashes[at]))),
            (Shared(filter), _, Some(numbers)) => each(&mut |at| filter.insert_unique(&numbers[at])),
            (Shared(filter), _, None) => each(&mut |at| filter.insert_unique(&Prehashed(hashes[at]))),
        };
        inserted.map_err(|error| kind(&error))
    }

    fn remove(&mut self, form: Form, Keys { numbers, hashes }: &Keys) -> Vec<bool> {
        let mut removed = vec![false; hashes.len()];
        either!(self, filter => match (form, numbers) {
            (Form::One, Some(numbers)) => return numbers.iter().map(|number| filter.remove(number)).collect(),
            (Form::One, None) => return hashes.iter().map(|&hash| filter.remove(&Prehashed(hash))).collect(),
            (_, Some(numbers)) => filter.remove_batch(numbers, &mut removed),
            (_, None) => filter.remove_batch(&Prehashed(hashes), &mut removed),
        });
        removed
    }

    fn contains_hashes(&self, hashes: &[u64]) -> Vec<bool> {
        let mut found = vec![false; hashes.len()];
        either!(self, filter => filter.contains_batch(&Prehashed(hashes), &mut found));
        found
    }

    /// Looks the items up by every method, asserts that the results agree, and returns them.
    fn find(&self, Keys { numbers, hashes }: &Keys) -> Vec<bool> {
        let expected = self.contains_hashes(hashes);
        let mut found = vec![!expected.first().unwrap_or(&false); hashes.len()];
        let members = expected.iter().filter(|&&found| found).count();
        for (&hash, &expected) in hashes.iter().zip(&expected) {
            let (found, count) = either!(self, filter => (filter.contains(&Prehashed(hash)), filter.count(&Prehashed(hash))));
            assert!(found == expected && (found || count == 0), "{hash:#x}");
        }
        let Some(numbers) = numbers else { return expected };
        either!(self, filter => {
            filter.contains_batch(numbers, &mut found);
            assert_eq!(filter.count_members(numbers), members);
            assert!(filter.contains_iter(numbers).map(|(_, found)| found).eq(expected.iter().copied()));
            assert!(numbers.iter().map(|number| filter.contains(number)).eq(expected.iter().copied()));
            assert!(numbers.iter().zip(&expected).all(|(number, &found)| found || filter.count(number) == 0));
        });
        assert_eq!(found, expected);
        expected
    }

    fn count_hash(&self, hash: u64) -> u32 {
        either!(self, filter => filter.count(&Prehashed(hash)))
    }

    fn len(&self) -> usize {
        let (len, is_empty) = either!(self, filter => (filter.len(), filter.is_empty()));
        assert_eq!(is_empty, len == 0);
        len
    }

    fn false_positive_rate(&self) -> f64 {
        either!(self, filter => filter.false_positive_rate())
    }

    fn shrink(&mut self) {
        either!(self, filter => filter.shrink());
    }

    fn clear(&mut self) {
        either!(self, filter => filter.clear());
    }

    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Own(filter) => filter.to_bytes(),
            Shared(filter) => {
                let mut bytes = Vec::new();
                filter.write_to(&mut bytes).expect("writing to a vector succeeds");
                bytes
            }
        }
    }

    fn buckets_per_lookup(&self) -> usize {
        either!(self, filter => filter.buckets_per_lookup())
    }

    /// Returns the bytes that the filter takes, and the bytes charged against a limit.
    fn sizes(&self) -> (usize, usize) {
        either!(self, filter => (filter.size_in_bytes(), filter.charged_bytes()))
    }
}

/// The count of each item, by hash.
#[derive(Clone, Default)]
struct Model {
    copies: BTreeMap<u64, u32>,
    len: usize,
}

impl Model {
    fn count(&self, hash: u64) -> u32 {
        self.copies.get(&hash).copied().unwrap_or(0)
    }

    fn add(&mut self, hash: u64, copies: u32) {
        if copies > 0 {
            *self.copies.entry(hash).or_default() += copies;
            self.len += copies as usize;
        }
    }

    /// Removes one copy. Returns false if there was none.
    fn remove(&mut self, hash: u64) -> bool {
        let Some(copies) = self.copies.get_mut(&hash) else { return false };
        *copies -= 1;
        self.len -= 1;
        if *copies == 0 {
            self.copies.remove(&hash);
        }
        true
    }

    fn hashes(&self) -> Vec<u64> {
        self.copies.keys().copied().collect()
    }
}

/// Filters that must stay equal, and the items in them.
struct Side {
    /// One filter for each kernel, and one more, which `RereadOne` replaces.
    filters: Vec<Filter>,
    /// The charged bytes of each filter before the last operation.
    charged: Vec<usize>,
    limit: usize,
    model: Model,
}

impl Side {
    /// Combines each filter with the other side's for the same kernel.
    fn combine(&mut self, other: &mut Self, own: Merge, shared: SharedMerge) -> Vec<Result<(), MergeError>> {
        match (&self.filters[0], &other.filters[0]) {
            (Shared(_), Shared(_)) => {
                let pairs = self.filters.iter_mut().zip(&other.filters);
                pairs
                    .filter_map(|pair| if let (Shared(one), Shared(other)) = pair { Some(shared(one, other)) } else { None })
                    .collect()
            }
            _ => self.own().zip(other.own()).map(|(one, other)| own(one, other)).collect(),
        }
    }

    fn new(filters: Vec<ElasticFilter>, limit: usize, model: Model) -> Self {
        let filters: Vec<Filter> = filters.into_iter().map(Own).collect();
        let charged = filters.iter().map(|filter| filter.sizes().1).collect();
        Self { filters, charged, limit, model }
    }

    /// Runs an operation on all filters, asserts that the results are equal, and returns the result.
    fn each<T: Debug + PartialEq>(&mut self, mut run: impl FnMut(&mut Filter) -> T) -> T {
        let mut answers = self.filters.iter_mut().map(&mut run);
        let first = answers.next().expect("there is a filter");
        for (at, answer) in (1..).zip(answers) {
            assert_eq!(answer, first, "filter {at} and filter 0 have different results");
        }
        first
    }

    /// Converts all filters to owned or shared ones.
    fn convert(&mut self, convert: impl Fn(Filter) -> Filter) {
        self.filters = mem::take(&mut self.filters).into_iter().map(convert).collect();
        self.measure();
    }

    fn own(&mut self) -> impl Iterator<Item = &mut ElasticFilter> {
        self.convert(Filter::own);
        self.filters.iter_mut().filter_map(|filter| match filter {
            Own(filter) => Some(filter),
            Shared(_) => None,
        })
    }

    /// Returns the size and the charge of each filter.
    fn each_size(&self) -> Vec<(usize, usize)> {
        self.filters.iter().map(Filter::sizes).collect()
    }

    fn measure(&mut self) {
        self.charged = self.filters.iter().map(|filter| filter.sizes().1).collect();
    }

    fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.own().for_each(|filter| filter.set_max_bytes(limit));
    }

    /// Assigns the kernels to the filters, beginning with number `turn`.
    fn set_kernels(&mut self, turn: u8) {
        let kernels = Kernel::available().collect::<Vec<_>>();
        for (at, filter) in (usize::from(turn)..).zip(self.own()) {
            filter.set_kernel(kernels[at % kernels.len()]).expect("the kernel is available");
        }
    }

    /// Asserts that `shrink` takes no memory.
    fn shrink(&mut self) {
        let before = self.each_size();
        self.each(Filter::shrink);
        let is_smaller = self.each_size().iter().zip(&before).all(|(after, before)| after.0 <= before.0 && after.1 <= before.1);
        assert!(is_smaller, "a `shrink` takes memory: {before:?} to {:?}", self.each_size());
    }

    /// Replaces the filters by ones that are written and read back.
    fn reread(&mut self, format: Format) {
        let limit = self.limit;
        for (filter, kernel) in self.own().zip(Kernel::available()) {
            *filter = reread(filter, format, limit);
            filter.set_kernel(kernel).expect("the kernel is available");
        }
        self.measure();
    }

    /// Replaces the last filter by the first one, written and read back.
    fn reread_one(&mut self, format: Format) {
        let limit = self.limit;
        let mut filters: Vec<_> = self.own().collect();
        let source = filters.remove(0);
        **filters.last_mut().expect("there are two filters") = reread(source, format, limit);
        self.measure();
    }

    /// Returns an owned copy of the first filter, with the same limit.
    fn copy(&self) -> Filter {
        let mut copy = match &self.filters[0] {
            Own(filter) => filter.try_clone().expect("there is memory"),
            shared @ Shared(_) => ElasticFilter::from_bytes(&shared.to_bytes()).expect("a written filter can be read"),
        };
        copy.set_max_bytes(self.limit);
        Own(copy)
    }
}

struct State {
    header: Header,
    size: Size,
    formats: Vec<Format>,
    /// An empty filter: it hashes items, and is compared with emptied filters.
    empty: ElasticFilter,
    chosen: Chosen,
    sides: [Side; 2],
    /// The number of refused items.
    refused: usize,
}

/// The only message of a share that is measured for chosen items, too.
const RANDOM: &str = "random hashes are found";

impl State {
    /// Returns `None` if the parameters are invalid or the empty filter is too large.
    fn new(header: &Header, size: Size, formats: Vec<Format>) -> Option<Self> {
        let empty = header.builder().build().ok().filter(|empty| empty.snapshot_bytes() <= size.bytes)?;
        let sides = [(); 2].map(|()| Side::new(on_kernels(&empty), usize::MAX, Model::default()));
        let chosen = Chosen::new(&empty);
        Some(Self { header: *header, size, formats, empty, chosen, sides, refused: 0 })
    }

    fn hash(&self, number: u64) -> u64 {
        match self.header.universe {
            Universe::Items => self.empty.hash(&number),
            Universe::Low => number,
            Universe::High => number << 32,
            Universe::Reversed => number.reverse_bits(),
            Universe::Multiples => number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            universe => self.chosen.hash(universe, number),
        }
    }

    fn keys_of(&self, numbers: Vec<u64>) -> Keys {
        let hashes = numbers.iter().map(|&number| self.hash(number)).collect();
        Keys { hashes, numbers: (self.header.universe == Universe::Items).then_some(numbers) }
    }

    fn keys(&self, range: Range) -> Keys {
        let len = range.len.min(self.size.items as u64);
        self.keys_of((range.first..range.first + len).map(|number| number % self.header.items).collect())
    }

    fn format(&self, which: u8) -> Format {
        self.formats[usize::from(which) % self.formats.len()]
    }

    fn take(&mut self, operation: Operation) {
        let has_room = self.sides[0].model.copies.len() < self.size.items;
        match operation {
            Operation::Insert(form, range) if has_room => self.insert(form, self.keys(range)),
            Operation::InsertUnique(form, range) if has_room => self.insert_unique(form, &self.keys(range)),
            Operation::Insert(..) | Operation::InsertUnique(..) => {}
            Operation::InsertCopies(form, range) => self.insert(form, self.copies(range, self.size.copies)),
            Operation::Fill(percent) => self.fill(percent),
            Operation::Double(times) => self.double(times),
            Operation::Remove(form, range) => self.remove(form, &self.keys(range)),
            Operation::KeepEveryNth(n) => self.keep_every_nth(n),
            Operation::Find(range) => self.find(&self.keys(range)),
            Operation::Swap => self.sides.swap(0, 1),
            Operation::Merge => self.merge(ElasticFilter::merge, SharedFilter::merge, |one, other| one + other),
            Operation::Union => self.union(),
            Operation::Intersect => self.intersect(),
            Operation::Copy { is_fallible } => self.copy(is_fallible),
            Operation::Shrink => self.sides[0].shrink(),
            Operation::Clear => self.clear(),
            Operation::Share => self.sides[0].convert(Filter::shared),
            Operation::Unshare => self.sides[0].convert(Filter::own),
            Operation::Reread(which) => self.sides[0].reread(self.format(which)),
            Operation::RereadOne(which) => self.sides[0].reread_one(self.format(which)),
            Operation::Workers(workers, range) => self.fill_by_workers(workers, &self.keys(range)),
            Operation::AddCopies { is_union, range } => self.add_copies(is_union, range),
            Operation::Limit(more) => {
                let largest = self.sides[0].own().map(|filter| filter.size_in_bytes()).max().unwrap_or(0);
                self.sides[0].set_limit(largest + more);
            }
            Operation::NoLimit => self.sides[0].set_limit(usize::MAX),
            Operation::Kernels(turn) => self.sides[0].set_kernels(turn),
            Operation::Rate => self.measure_rate(),
        }
    }

    /// Returns several copies of each item in a range, at most this many in all.
    fn copies(&self, Range { first, len }: Range, most: usize) -> Keys {
        let copies = [2, 3, 5, 8, 20, 100, 500, 3000][index(first % 8)].min(most as u64 / len);
        self.keys_of((0..copies * len).map(|n| (first + n / copies) % self.header.items).collect())
    }

    /// A planned filter is full a few percent beyond its plan, and then begins another generation.
    fn fill(&mut self, percent: u8) {
        let Some(max_capacity) = self.header.max_capacity else { return };
        let model = &self.sides[0].model;
        let target = (max_capacity * usize::from(percent) / 100).min(self.size.items);
        let missing = target.saturating_sub(model.copies.len());
        let absent = (0..self.header.items).filter(|&number| model.count(self.hash(number)) == 0);
        self.insert(Form::Batch, self.keys_of(absent.take(missing).collect()));
    }

    fn keep_every_nth(&mut self, n: u8) {
        let hashes = self.sides[0].model.hashes();
        let hashes = hashes.iter().enumerate().filter(|(at, _)| at % usize::from(n) > 0).map(|(_, &hash)| hash).collect();
        self.remove(Form::Batch, &Keys { numbers: None, hashes });
    }

    /// Asserts that all items of the model are found.
    fn find(&mut self, keys: &Keys) {
        let side = &mut self.sides[0];
        let found = side.each(|filter| filter.find(keys));
        assert!(keys.hashes.iter().zip(&found).all(|(&hash, &found)| found || side.model.count(hash) == 0));
    }

    /// Replaces the second side by a copy of the first.
    fn copy(&mut self, is_fallible: bool) {
        let [first, second] = &mut self.sides;
        let copy = |filter: &mut ElasticFilter| {
            if is_fallible { filter.try_clone().expect("there is memory") } else { filter.clone() }
        };
        let filters = first.own().map(copy);
        *second = Side::new(filters.collect(), first.limit, first.model.clone());
    }

    fn clear(&mut self) {
        let side = &mut self.sides[0];
        side.each(Filter::clear);
        side.model = Model::default();
        assert!(side.filters[0].to_bytes() == self.empty.to_bytes(), "a cleared filter differs from a new one");
    }

    /// Inserts items into all filters, and individually into a copy, and compares the results.
    fn insert(&mut self, form: Form, mut keys: Keys) {
        let side = &mut self.sides[0];
        let is_shared = matches!(side.filters[0], Shared(_));
        // A batch fills a shared filter partition by partition, which uses up a limit in a different order.
        let form = if is_shared && side.limit < usize::MAX { Form::One } else { form };
        let ends_at_first = !is_shared && matches!(form, Form::Batch | Form::Iterator);
        let mut before = side.copy();
        let mut copy = side.copy();
        let (mut accepted, mut refused) = (Vec::new(), Vec::new());
        let mut expected = Vec::new();
        for (at, &hash) in keys.hashes.iter().enumerate() {
            let answer = copy.insert_hash(hash);
            expected.push(answer);
            match answer {
                Ok(()) => accepted.push(hash),
                Err((kind, _)) => refused.push((kind, at)),
            }
            if !refused.is_empty() && ends_at_first {
                break;
            }
            if refused.len() == self.size.refusals {
                keys.truncate(at + 1);
                break;
            }
        }
        if form != Form::One {
            expected = vec![refused.first().map_or(Ok(()), |&refused| Err(refused))];
        }
        let outcomes = side.each(|filter| filter.insert(form, &keys));
        assert!(
            outcomes == expected,
            "{form:?} refuses other items than single insertions: {} and {}",
            Summary(&outcomes),
            Summary(&expected)
        );
        for &(kind, _) in &refused {
            self.check_refusal(kind, self.sides[0].limit, self.sides[0].model.len + accepted.len());
        }
        self.refused += refused.len();
        let side = &mut self.sides[0];
        if !refused.is_empty() {
            for &hash in &accepted {
                assert_eq!(before.insert_hash(hash), Ok(()), "an accepted item is refused without the refused ones");
            }
            assert!(before.to_bytes() == copy.to_bytes(), "a refused insertion changed something: {:?}", refused[0].0);
        }
        assert!(side.filters[0].to_bytes() == copy.to_bytes(), "{form:?} differs from single insertions");
        accepted.into_iter().for_each(|hash| side.model.add(hash, 1));
    }

    /// Asserts that a filter with this limit, and this many items in all, may refuse one: at the limit, for prehashed items, or beyond
    /// the largest count.
    fn check_refusal(&self, kind: InsertErrorKind, limit: usize, total: usize) {
        match kind {
            InsertErrorKind::Limit { .. } => assert!(limit < usize::MAX, "refused without a limit"),
            InsertErrorKind::Crowded => assert!(self.header.universe != Universe::Items, "refused as {kind:?}"),
            InsertErrorKind::TooManyCopies => assert!(total >= u32::MAX as usize, "too many copies, with {total} items"),
            kind => panic!("refused as {kind:?}"),
        }
    }

    /// Asserts that a filter with this limit may refuse to merge one with these items into one with those: as it may refuse an item,
    /// or beyond the planned number of distinct items. Chosen ones may fill a shard of a later generation before that.
    fn check_refused_merge(&self, error: &MergeError, limit: usize, models: [&Model; 2]) {
        let [ours, theirs] = models;
        let total = ours.len + theirs.len;
        match error {
            MergeError::Insert(error) => self.check_refusal(error.kind(), limit, total),
            &MergeError::MaxCapacity { items, max_capacity, .. } => {
                assert_eq!((items, max_capacity), (total, self.empty.params().max_capacity()));
                let distinct = ours.copies.len() + theirs.copies.keys().filter(|&&hash| ours.count(hash) == 0).count();
                let may_be = distinct > max_capacity || self.header.universe.is_chosen();
                assert!(may_be, "a merge is refused with {distinct} distinct items: {error}");
            }
            error => panic!("a merge is refused: {error}"),
        }
    }

    fn insert_unique(&mut self, form: Form, keys: &Keys) {
        let side = &mut self.sides[0];
        let mut copy = side.copy();
        let mut expected = Ok(0);
        for &hash in &keys.hashes {
            let is_held = copy.count_hash(hash) > 0;
            assert!(is_held || side.model.count(hash) == 0, "{hash:#x} is lost");
            if is_held {
                continue;
            }
            match copy.insert_hash(hash) {
                Ok(()) => {
                    side.model.add(hash, 1);
                    expected = expected.map(|inserted| inserted + 1);
                }
                Err((kind, _)) => {
                    expected = Err(kind);
                    break;
                }
            }
        }
        assert_eq!(side.each(|filter| filter.insert_unique(form, keys)), expected);
        assert!(side.filters[0].to_bytes() == copy.to_bytes(), "insert_unique differs from count and insert");
        if let Err(kind) = expected {
            self.refused += 1;
            self.check_refusal(kind, self.sides[0].limit, self.sides[0].model.len);
        }
    }

    /// Removes items that are present, and tries to remove items that are not found.
    fn remove(&mut self, form: Form, Keys { numbers, hashes }: &Keys) {
        let side = &mut self.sides[0];
        let is_found = side.filters[0].contains_hashes(hashes);
        let mut model = side.model.clone();
        let mut keys = Keys { numbers: numbers.as_ref().map(|_| Vec::new()), hashes: Vec::new() };
        let mut expected = Vec::new();
        for (at, &hash) in hashes.iter().enumerate() {
            let is_present = model.remove(hash);
            // An absent item that is found must not be removed: that could remove another item.
            if !is_present && is_found[at] {
                continue;
            }
            keys.hashes.push(hash);
            expected.push(is_present);
            if let (Some(given), Some(numbers)) = (&mut keys.numbers, numbers) {
                given.push(numbers[at]);
            }
        }
        let before = side.each_size();
        let removed = side.each(|filter| filter.remove(form, &keys));
        assert!(removed == expected, "a present item was not removed, or an absent one was");
        let is_charged_less = side.each_size().iter().zip(&before).all(|(after, before)| after.1 <= before.1);
        assert!(is_charged_less, "a removal raises the charge: {before:?} to {:?}", side.each_size());
        side.model = model;
    }

    /// Merges or unites the second side's filters into the first's.
    fn merge(&mut self, merge: Merge, shared: SharedMerge, copies: impl Fn(u32, u32) -> u32) {
        let [first, second] = &mut self.sides;
        let [distinct, total] = [|model: &Model| model.copies.len(), |model: &Model| model.len]
            .map(|count: fn(&Model) -> usize| count(&first.model) + count(&second.model));
        if distinct > self.size.items || total > self.size.copies {
            return;
        }
        let before = first.filters[0].to_bytes();
        if let Err(error) = agreed(first.combine(second, merge, shared)) {
            assert!(first.filters[0].to_bytes() == before, "a refused merge changed something");
            let [first, second] = &self.sides;
            return self.check_refused_merge(&error, first.limit, [&first.model, &second.model]);
        }
        for (&hash, &theirs) in &second.model.copies {
            let ours = first.model.count(hash);
            first.model.add(hash, copies(ours, theirs) - ours);
        }
    }

    /// Unites the second side's filters with the first's.
    fn union(&mut self) {
        let most = self.sides.iter().map(|side| side.model.len).sum();
        self.merge(ElasticFilter::union, SharedFilter::union, u32::max);
        self.clear_if_items_collide(most);
    }

    /// Keeps what the first side's filters have in common with the second's, and clears them if items of only one side stay. As many
    /// may as are confused with others: those of the first side for the second, and the other way around.
    fn intersect(&mut self) {
        let [first, second] = &mut self.sides;
        let before = first.each_size();
        let results = first.combine(second, ElasticFilter::intersect, SharedFilter::intersect);
        assert!(results.iter().all(Result::is_ok), "an intersection is refused: {results:?}");
        let is_charged_less = first.each_size().iter().zip(&before).all(|(after, before)| after.1 <= before.1);
        assert!(is_charged_less, "an intersection raises the charge: {before:?} to {:?}", first.each_size());
        let mut common = Model::default();
        for (&hash, &copies) in &first.model.copies {
            common.add(hash, copies.min(second.model.count(hash)));
        }
        let filter = &first.filters[0];
        let is_present = |hash| filter.count_hash(hash) >= common.count(hash);
        assert!(common.hashes().into_iter().all(is_present), "an intersection has lost an item");
        assert!(
            filter.len() >= common.len && filter.len() <= first.model.len,
            "{} items, {} in common",
            filter.len(),
            common.len
        );
        let confused = first.model.copies.keys().filter(|&&hash| filter.count_hash(hash) > common.count(hash)).count();
        // Items of the second side that are known by more bits may look like items of the first, too.
        let (is_exact, items) = (filter.len() == common.len, first.model.copies.len() + second.model.copies.len());
        first.model = common;
        if !self.header.universe.is_chosen() {
            let most = self.most_confused(3.0, items);
            assert!(confused as f64 <= most, "an intersection keeps {confused} items too many, at most {most} expected");
        }
        if !is_exact {
            self.clear();
        }
    }

    /// Doubles the count of all items up to `times` times, within the limit on copies. A merge beyond the plan may be refused.
    fn double(&mut self, times: u8) {
        let side = &mut self.sides[0];
        for _ in 0..times {
            if 2 * side.model.len > self.size.copies {
                return;
            }
            let before = side.filters[0].to_bytes();
            let results = side.filters.iter_mut().map(|filter| match filter {
                Own(filter) => filter.merge(&filter.clone()),
                Shared(filter) => filter.merge(&filter.try_clone().expect("there is memory")),
            });
            if let Err(error) = agreed(results.collect()) {
                assert!(side.filters[0].to_bytes() == before, "a refused merge changed something");
                let side = &self.sides[0];
                return self.check_refused_merge(&error, side.limit, [&side.model; 2]);
            }
            side.model.copies.values_mut().for_each(|copies| *copies *= 2);
            side.model.len *= 2;
        }
    }

    /// Asserts that a union has lost no item, and clears it if its length differs from the model's. It may be shorter, since items
    /// that the filter cannot tell apart become one. With several generations, which are united individually, it may be longer, up
    /// to `most`, the items of both filters.
    fn clear_if_items_collide(&mut self, most: usize) {
        let side = &self.sides[0];
        let len = side.filters[0].len();
        let is_present = |hash| side.filters[0].count_hash(hash) >= side.model.count(hash);
        assert!(side.model.hashes().into_iter().all(is_present), "a union has lost an item");
        let is_beyond = side.filters[0].buckets_per_lookup() > 2;
        let most = if is_beyond { most } else { side.model.len };
        assert!(len <= most, "a union has {len} items, at most {most} expected");
        if is_beyond && !self.header.universe.is_chosen() {
            let high = side.model.copies.iter().filter(|&(&hash, &copies)| side.filters[0].count_hash(hash) > copies).count();
            let most = self.most_confused(3.0, side.model.copies.len());
            assert!(high as f64 <= most, "a union counts {high} items too high, at most {most} expected");
        }
        let side = &mut self.sides[0];
        if len != side.model.len {
            side.each(Filter::clear);
            side.model = Model::default();
        }
    }

    /// Up to four workers fill a filter each with their share of the items, and the second side becomes the merged filter.
    fn fill_by_workers(&mut self, workers: u8, keys: &Keys) {
        let workers = 1 + usize::from(workers) % 4;
        let (mut merged, mut model) = (self.header.builder().build().expect("valid parameters"), Model::default());
        for worker in 0..workers {
            let (mut filter, mut inserted) = (self.header.builder().build().expect("valid parameters"), Model::default());
            for &hash in keys.hashes.iter().skip(worker).step_by(workers) {
                match filter.insert(&Prehashed(hash)) {
                    Ok(()) => inserted.add(hash, 1),
                    Err(error) => self.check_refusal(error.kind(), usize::MAX, inserted.len),
                }
            }
            // A merge beyond `max_capacity` may be refused; the items merged before stay.
            match merged.merge(&filter) {
                Ok(()) => inserted.copies.into_iter().for_each(|(hash, copies)| model.add(hash, copies)),
                Err(error) => self.check_refused_merge(&error, usize::MAX, [&model, &inserted]),
            }
        }
        self.sides[1] = Side::new(on_kernels(&merged), usize::MAX, model);
    }

    /// Merges or unites a new filter with copies of some items into the first side's filters.
    fn add_copies(&mut self, is_union: bool, range: Range) {
        let keys = self.copies(Range { len: range.len.min(self.size.items as u64), ..range }, self.size.copies.min(1 << 14));
        let (mut filter, mut model) = (self.header.builder().build().expect("valid parameters"), Model::default());
        // Chosen items are refused after long eviction walks: the first one is enough.
        for hash in keys.hashes {
            if let Err(error) = filter.insert(&Prehashed(hash)) {
                self.check_refusal(error.kind(), usize::MAX, model.len);
                break;
            }
            model.add(hash, 1);
        }
        self.sides[1] = Side::new(on_kernels(&filter), usize::MAX, model);
        if is_union { self.union() } else { self.merge(ElasticFilter::merge, SharedFilter::merge, |one, other| one + other) }
    }

    /// Returns how many of this number of items may be confused with others, at this many times the promised rate.
    fn most_confused(&self, times: f64, items: usize) -> f64 {
        // At a limit, only items that are confused with others are accepted.
        let expected = times * self.header.rate * (items + 2 * self.refused) as f64;
        0.001 * items as f64 + expected + 6.0 * (2.0 * expected).sqrt() + 6.0
    }

    /// Asserts that all filters are equal, consistent and within their limit, and hold the items of the model.
    fn verify(&mut self) {
        let side = &mut self.sides[0];
        let bytes = side.filters[0].to_bytes();
        let hashes = side.model.hashes();
        for (at, filter) in side.filters.iter().enumerate() {
            assert_eq!(filter.len(), side.model.len, "filter {at}");
            assert!(filter.contains_hashes(&hashes).iter().all(|&found| found), "an item is lost in filter {at}");
            assert!(at == 0 || filter.to_bytes() == bytes, "filter {at} differs from filter 0");
        }
        let counted = &side.filters[side.model.len % side.filters.len()];
        for (&hash, &copies) in &side.model.copies {
            assert!(counted.count_hash(hash) >= copies, "{copies} copies of {hash:#x}, {} found", counted.count_hash(hash));
        }
        self.verify_counts(&bytes, &hashes);
        let side = &mut self.sides[0];
        for filter in [&side.filters[0], &side.filters[side.filters.len() - 1]] {
            if let Own(filter) = filter {
                filter.assert_consistent();
            }
        }
        for (filter, before) in side.filters.iter().zip(&side.charged) {
            let ((size, charged), limit) = (filter.sizes(), side.limit);
            assert!(size <= charged, "{size} bytes, charged {charged}");
            assert!(charged <= limit.max(*before), "charged {charged} bytes, {before} before, the limit is {limit}");
        }
        side.measure();
        let read = ElasticFilter::from_bytes(&bytes).unwrap_or_else(|error| panic!("a written filter cannot be read: {error}"));
        assert!(read.to_bytes() == bytes, "the filter is written differently");
        let (stated, promised) = (side.filters[0].false_positive_rate(), self.header.rate);
        assert!(stated <= promised, "a rate of {stated:e}, {promised:e} promised");
    }

    /// Asserts that a view has the same answers, and that each item is one item, however far the filter has grown.
    fn verify_counts(&self, bytes: &[u8], hashes: &[u64]) {
        let Side { filters, model, .. } = &self.sides[0];
        let view = ElasticView::over(bytes).expect("a written filter can be read");
        let mut found = vec![false; hashes.len()];
        view.contains_batch(&Prehashed(hashes), &mut found);
        assert!(found.iter().all(|&found| found), "an item is lost in a view");
        let distinct = view.distinct();
        if let Own(filter) = &filters[0] {
            assert_eq!(filter.distinct(), distinct);
            assert!(hashes.iter().step_by(7).all(|&hash| filter.count(&Prehashed(hash)) == view.count(&Prehashed(hash))));
        }
        if !self.header.universe.is_chosen() {
            let most = self.most_confused(2.0, model.copies.len());
            let items = model.copies.len();
            assert!((distinct as f64 - items as f64).abs() <= most, "{distinct} distinct items instead of {items}");
        }
    }

    /// Asserts that the rate measured with absent hashes, random ones and ones like those present, is at most the stated one, and
    /// that at most the same share of the items is counted with others. With several generations it is twice that share: a later
    /// item that matches one of an earlier generation may be taken for its copy, which makes both counts too high.
    fn measure_rate(&self) {
        let Side { filters, model, .. } = &self.sides[0];
        let Size { probes: number, .. } = self.size;
        if model.len == 0 {
            return;
        }
        let filter = &filters[model.len % filters.len()];
        let random: Vec<u64> = SplitMix64(0x5eed).filter(|&hash| model.count(hash) == 0).take(index(number)).collect();
        let alike: Vec<u64> = (self.header.items..self.header.items + number).map(|item| self.hash(item)).collect();
        let stated = filter.false_positive_rate();
        let found = |probes: &[u64]| trues(&filter.contains_hashes(probes));
        let miscounted = model.copies.iter().filter(|&(&hash, &copies)| filter.count_hash(hash) != copies).count();
        let counts = if filter.buckets_per_lookup() > 2 { 2.0 } else { 1.0 };
        let is_chosen = self.header.universe.is_chosen();
        for (kind, found, number, times) in [
            (RANDOM, found(&random), random.len(), 1.0),
            ("alike hashes are found", found(&alike), alike.len(), 1.0),
            // At a limit, only items that are confused with others are accepted, each of which is counted with at least one.
            ("items are counted with others", miscounted, model.copies.len() + 2 * self.refused, counts),
        ] {
            // Chosen items, and ones like them, are confused on purpose.
            if is_chosen && kind != RANDOM {
                continue;
            }
            // The margin also covers which hashes a filter with few items confuses.
            let expected = times * number as f64 * stated * (1.0 + 6.0 / (model.copies.len() as f64 + 1.0).sqrt());
            let most = expected + 6.0 * expected.sqrt() + 3.0;
            assert!(found as f64 <= most, "{found} of {number} {kind}, at a rate of {stated:e} with {} items", model.len);
        }
    }

    /// Asserts that filters without items equal new ones. If these have several tables, lists may be left in the place of some, which
    /// take less memory.
    fn verify_drained(&mut self) {
        if self.empty.shards() == self.header.partitions {
            assert!(self.sides[0].filters[0].to_bytes() == self.empty.to_bytes(), "a drained filter differs from a new one");
        }
        let Own(drained) = self.sides[0].copy() else { return };
        assert!(drained == self.empty && drained.charged_bytes() <= self.empty.charged_bytes(), "a drained filter is larger");
    }

    /// Removes all items from both sides, and asserts that the filters equal new ones.
    fn finish(mut self) {
        for _ in 0..2 {
            self.verify();
            self.measure_rate();
            if self.sides[0].model.len > self.size.removals {
                self.take(Operation::KeepEveryNth(2));
                self.verify();
                self.take(Operation::Clear);
            }
            while self.sides[0].model.len > 0 {
                let copies = self.sides[0].model.copies.iter();
                // Each round removes half of the copies.
                let hashes = copies.flat_map(|(&hash, &copies)| iter::repeat_n(hash, 1 + index((copies / 2).into()))).collect();
                self.remove(Form::Batch, &Keys { numbers: None, hashes });
            }
            self.verify();
            self.sides[0].each(Filter::shrink);
            self.verify_drained();
            self.sides.swap(0, 1);
        }
    }
}

/// Asserts that filters that must stay equal have the same result, and returns it.
fn agreed(mut results: Vec<Result<(), MergeError>>) -> Result<(), MergeError> {
    let refusal = |result: &Result<(), MergeError>| match result {
        Ok(()) => None,
        Err(MergeError::Insert(error)) => Some(format!("{:?}", kind(error))),
        Err(error) => Some(error.to_string()),
    };
    let refusals: Vec<_> = results.iter().map(refusal).collect();
    assert!(refusals.iter().all(|refusal| *refusal == refusals[0]), "the filters have different results: {refusals:?}");
    results.swap_remove(0)
}

/// Displays how many items were refused, and why the first one was.
struct Summary<'a>(&'a [Outcome]);

impl std::fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let refused = self.0.iter().filter(|outcome| outcome.is_err()).count();
        write!(f, "{refused} of {} refused, the first {:?}", self.0.len(), self.0.iter().find(|outcome| outcome.is_err()))
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("a small number")
}

/// Returns a copy for each kernel, and one more.
fn on_kernels(filter: &ElasticFilter) -> Vec<ElasticFilter> {
    let on = |kernel| {
        let mut copy = filter.clone();
        copy.set_kernel(kernel).expect("the kernel is available");
        copy
    };
    Kernel::available().map(on).chain([filter.clone()]).collect()
}

fn reread(filter: &ElasticFilter, format: Format, limit: usize) -> ElasticFilter {
    let mut read = format(filter);
    read.set_max_bytes(limit);
    read
}

fn through_bytes(filter: &ElasticFilter) -> ElasticFilter {
    ElasticFilter::from_bytes(&filter.to_bytes()).expect("a written filter can be read")
}

fn through_stream(filter: &ElasticFilter) -> ElasticFilter {
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).expect("writing to a vector succeeds");
    ElasticFilter::read_from(&bytes[..]).expect("a written filter can be read")
}

fn through_pieces(filter: &ElasticFilter) -> ElasticFilter {
    let index = filter.snapshot_index().expect("there is memory");
    let (mut bytes, mut piece) = (Vec::new(), [0; 777]);
    while let len @ 1.. = filter.read_snapshot(&index, bytes.len() as u64, &mut piece) {
        bytes.extend_from_slice(&piece[..len]);
    }
    assert!(bytes == filter.to_bytes() && index.snapshot_bytes() == bytes.len() as u64, "the pieces differ from the snapshot");
    ElasticFilter::from_bytes(&bytes).expect("a written filter can be read")
}

fn through_view(filter: &ElasticFilter) -> ElasticFilter {
    let view = ElasticView::over(filter.to_bytes()).expect("a written filter can be read");
    view.verify().expect("a valid snapshot");
    assert_eq!((view.len(), view.shards(), view.params()), (filter.len(), filter.shards(), filter.params()));
    assert_eq!(view.distinct(), filter.distinct());
    assert!((view.false_positive_rate() - filter.false_positive_rate()).abs() <= 1e-9 * filter.false_positive_rate());
    let hashes: Vec<u64> = SplitMix64(1).take(500).collect();
    let (mut in_view, mut in_filter) = ([false; 500], [false; 500]);
    view.contains_batch(&Prehashed(&hashes), &mut in_view);
    filter.contains_batch(&Prehashed(&hashes), &mut in_filter);
    assert_eq!(in_view, in_filter);
    view.to_filter().expect("a valid snapshot")
}

/// Pushes the snapshot and other bytes in pieces, and asserts that its end is found.
fn through_extent(filter: &ElasticFilter) -> ElasticFilter {
    let (bytes, mut extent) = (filter.to_bytes(), SnapshotExtent::new());
    let followed = [&bytes[..], b"something else"].concat();
    let mut kept = Vec::new();
    for piece in followed.chunks(1 + bytes.len() % 61) {
        let len = extent.push(piece).expect("a valid snapshot");
        kept.extend_from_slice(&piece[..len]);
    }
    assert!(extent.is_complete() && extent.received() == bytes.len() as u64 && kept == bytes, "the end is wrong");
    ElasticFilter::from_bytes(&kept).expect("a written filter can be read")
}
