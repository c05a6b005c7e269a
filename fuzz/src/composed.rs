//! All operations of growing filters in any order: on all kernels in lockstep, beside a copy that went through a snapshot, and
//! compared with a multiset. tests/elastic/composed.rs has the same, with random inputs.

#![allow(clippy::cast_precision_loss, reason = "small numbers")]

use super::split_mix::SplitMix64;
use koel::{
    ElasticBuilder, ElasticFilter, ElasticView, InsertError, InsertErrorKind, Kernel, MergeError, Prehashed, SharedFilter,
    TableKind, pieces::SnapshotExtent,
};
use std::{collections::BTreeMap, fmt::Debug, iter, mem};

/// Bytes of an input that say what filter it is, and of each operation.
pub const HEADER: usize = 8;
pub const STEP: usize = 4;

/// How much an input may ask for.
#[derive(Clone, Copy)]
pub struct Size {
    /// Operations; what comes after them is not looked at.
    pub steps: usize,
    /// Different items in a filter.
    pub items: usize,
    /// Copies of all of them.
    pub copies: usize,
    /// Bytes of an empty filter. A few are large, and their tables nearly empty.
    pub bytes: u64,
    /// Absent hashes of each kind that the false-positive rate is measured with.
    pub probes: u64,
    /// Refused items of an operation, whose rest is left out: to refuse one, all places of a large walk are looked at.
    pub refusals: usize,
}

impl Size {
    /// For few inputs: filters that grow many times, and rates within a few per cent.
    pub const LARGE: Self = Self {
        steps: 64,
        items: 30_000,
        // To remove them takes a while where code is hardly optimised.
        copies: if cfg!(debug_assertions) { 1 << 16 } else { 1 << 20 },
        bytes: 1 << 17,
        probes: if cfg!(miri) { 20 } else { 20_000 },
        refusals: usize::MAX,
    };

    /// For a fuzzer, which finds more by trying more inputs.
    #[allow(dead_code, reason = "tests without all features replay no corpus")]
    pub const SMALL: Self = Self { steps: 32, items: 2000, copies: 1 << 14, bytes: 1 << 13, probes: 500, refusals: 2 };
}

type Merge = fn(&mut ElasticFilter, &ElasticFilter) -> Result<(), MergeError>;
type SharedMerge = fn(&mut SharedFilter, &SharedFilter) -> Result<(), MergeError>;

/// A form of storage: it gives the filter back that it was given.
pub type Format = fn(&ElasticFilter) -> ElasticFilter;

/// The forms that need nothing but the library.
const FORMATS: [Format; 5] = [through_bytes, through_stream, through_pieces, through_view, through_extent];

/// Does what the input says. `formats` are further forms of storage.
pub fn check(input: &[u8], size: Size, formats: &[Format]) {
    let Some((header, operations)) = decode(input) else { return };
    let formats = [&FORMATS, formats].concat();
    let Some(mut state) = State::new(&header, size, formats) else { return };
    for operation in operations.into_iter().take(size.steps) {
        state.take(operation);
        state.verify();
    }
    // Under Miri, to drain it takes longer than all else.
    if !cfg!(miri) {
        state.finish();
    }
}

/// What the input says, in words.
pub fn describe(input: &[u8]) -> String {
    let Some((header, operations)) = decode(input) else { return String::from("nothing") };
    let lines: Vec<String> = operations.iter().map(|operation| format!("  {operation:?}")).collect();
    format!("{header:?}\n{}", lines.join("\n"))
}

fn decode(input: &[u8]) -> Option<(Header, Vec<Operation>)> {
    let (&header, rest) = input.split_first_chunk()?;
    let header = Header::of(header);
    let operations = rest.as_chunks().0.iter().map(|&step| Operation::of(step, &header)).collect();
    Some((header, operations))
}

/// Which filters.
#[derive(Clone, Copy, Debug)]
struct Header {
    rate: f64,
    /// `None` for the packed table.
    bucket_size: Option<u32>,
    capacity: usize,
    max_capacity: Option<usize>,
    partitions: usize,
    seed: u64,
    universe: Universe,
    /// There are this many different items.
    items: u64,
}

impl Header {
    fn of(bytes: [u8; HEADER]) -> Self {
        let pick = |at: usize, len: usize| usize::from(bytes[at]) % len;
        let capacity = [1, 2, 10, 30, 100, 300, 1000, 3000][pick(2, 8)];
        let times = [Some(2), Some(2), Some(3), Some(4), Some(8), Some(32), Some(128), None][pick(3, 8)];
        Self {
            rate: [0.3, 0.1, 0.05, 0.01, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7][pick(0, 10)],
            bucket_size: [None, None, None, Some(1), Some(2), Some(3), Some(4), Some(5), Some(8), Some(16)][pick(1, 10)],
            capacity,
            max_capacity: times.map(|halves| capacity * halves / 2),
            partitions: [1, 1, 1, 1, 2, 2, 4, 8][pick(4, 8)],
            seed: u64::from(bytes[7] % 4),
            universe: [
                Universe::Items,
                Universe::Items,
                Universe::Items,
                Universe::Low,
                Universe::High,
                Universe::Reversed,
                Universe::Multiples,
            ][pick(5, 7)],
            items: [40, 300, 3000, 30_000][pick(6, 4)],
        }
    }

    fn builder(&self) -> ElasticBuilder {
        let builder = ElasticFilter::builder().false_positive_rate(self.rate).capacity(self.capacity);
        let builder = builder.partitions(self.partitions).seed(self.seed);
        let builder = self.max_capacity.map_or(builder.clone(), |items| builder.max_capacity(items));
        self.bucket_size.map_or(builder.clone(), |b| builder.table(TableKind::Single).bucket_size(b))
    }
}

/// What the hashes of items are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Universe {
    /// Those of the filter's hasher.
    Items,
    /// Numbers: in the low bits, in the high ones, backwards, and multiples of a constant.
    Low,
    High,
    Reversed,
    Multiples,
}

/// How several items are given to a filter.
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

/// Items from this number on.
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
    /// Merges each filter so often with a copy of itself.
    Double(u8),
    InsertUnique(Form, Range),
    Remove(Form, Range),
    /// Removes a copy of all items but each n-th.
    Thin(u8),
    Find(Range),
    /// The two filters change places: all operations are done to the first one.
    Swap,
    Merge,
    Union,
    /// The second filter becomes a copy of the first one.
    Copy {
        is_fallible: bool,
    },
    Shrink,
    Clear,
    Share,
    Unshare,
    /// Goes on with what comes back from storage.
    Reread(u8),
    /// The same for one of the filters that must stay equal.
    RereadOne(u8),
    /// The second filter becomes one that several workers have filled.
    Workers(u8, Range),
    /// This many bytes beyond those that there are.
    Limit(usize),
    NoLimit,
    Kernels(u8),
    Rate,
}

impl Operation {
    fn of([what, a, b, c]: [u8; STEP], header: &Header) -> Self {
        let len = [1, 1, 2, 7, 20, 65, 92, 150, 400, 1000, 2500, 6000][usize::from(c % 12)];
        let range = Range { first: u64::from(a) * header.items / 256, len };
        let few = Range { len: 1 + len % 5, ..range };
        let form = [Form::One, Form::Batch, Form::Iterator, Form::Unordered][usize::from(b % 4)];
        match what % 64 {
            0..20 => Self::Insert(form, range),
            20..23 => Self::InsertCopies(form, few),
            23 => Self::Double(1 + a % 20),
            24..27 => Self::InsertUnique(form, range),
            27..33 => Self::Remove(form, range),
            33..36 => Self::Thin(2 + a % 16),
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
            _ => Self::Rate,
        }
    }
}

/// Items as they are given to a filter: by their numbers, if the filter hashes them, or as hashes.
struct Asked {
    numbers: Option<Vec<u64>>,
    hashes: Vec<u64>,
}

impl Asked {
    fn truncate(&mut self, len: usize) {
        self.hashes.truncate(len);
        if let Some(numbers) = &mut self.numbers {
            numbers.truncate(len);
        }
    }
}

/// Why an item was refused, and its position in the call.
type Said = Result<(), (InsertErrorKind, usize)>;

fn said(result: Result<(), InsertError>) -> Said {
    result.map_err(|error| {
        assert!(!error.to_string().is_empty());
        (kind(&error), error.position())
    })
}

/// The kind without the bytes of a limit: those that a filter has when it refuses an item depend on the order of insertion.
fn kind(error: &InsertError) -> InsertErrorKind {
    match error.kind() {
        InsertErrorKind::Limit { .. } => InsertErrorKind::Limit { needed: 0, max_bytes: 0 },
        kind => kind,
    }
}

/// A filter of one owner, or a shared one, which can do the same.
enum Filter {
    Own(ElasticFilter),
    Shared(SharedFilter),
}

use Filter::{Own, Shared};

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

    fn insert_hash(&mut self, hash: u64) -> Said {
        said(match self {
            Own(filter) => filter.insert(&Prehashed(hash)),
            Shared(filter) => filter.insert(&Prehashed(hash)),
        })
    }

    /// Inserts several items; what was said of each, or of the call.
    fn insert(&mut self, form: Form, Asked { numbers, hashes }: &Asked) -> Vec<Said> {
        let each =
            |insert: &mut dyn FnMut(usize) -> Result<(), InsertError>| (0..hashes.len()).map(|at| said(insert(at))).collect();
        match (self, form, numbers) {
            (Own(filter), Form::One, Some(numbers)) => each(&mut |at| filter.insert(&numbers[at])),
            (Own(filter), Form::One, None) => each(&mut |at| filter.insert(&Prehashed(hashes[at]))),
            (Own(filter), Form::Batch, Some(numbers)) => vec![said(filter.insert_batch(numbers))],
            (Own(filter), Form::Iterator, Some(numbers)) => {
                vec![said(filter.insert_iter(numbers).map(|inserted| assert_eq!(inserted, numbers.len())))]
            }
            (Own(filter), Form::Batch | Form::Iterator, None) => vec![said(filter.insert_batch(&Prehashed(hashes)))],
            (Own(filter), Form::Unordered, Some(numbers)) => vec![said(filter.insert_unordered(numbers))],
            (Own(filter), Form::Unordered, None) => vec![said(filter.insert_unordered(&Prehashed(hashes)))],
            (Shared(filter), Form::One, Some(numbers)) => each(&mut |at| filter.insert(&numbers[at])),
            (Shared(filter), Form::One, None) => each(&mut |at| filter.insert(&Prehashed(hashes[at]))),
            (Shared(filter), _, Some(numbers)) => vec![said(filter.insert_batch(numbers))],
            (Shared(filter), _, None) => vec![said(filter.insert_batch(&Prehashed(hashes)))],
        }
    }

    /// Inserts items that are not found; the number of those that were inserted.
    fn insert_unique(&mut self, form: Form, Asked { numbers, hashes }: &Asked) -> Result<usize, InsertErrorKind> {
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

    fn remove(&mut self, form: Form, Asked { numbers, hashes }: &Asked) -> Vec<bool> {
        let mut removed = vec![false; hashes.len()];
        match (self, form, numbers) {
            (Own(filter), Form::One, Some(numbers)) => return numbers.iter().map(|number| filter.remove(number)).collect(),
            (Own(filter), Form::One, None) => return hashes.iter().map(|&hash| filter.remove(&Prehashed(hash))).collect(),
            (Own(filter), _, Some(numbers)) => filter.remove_batch(numbers, &mut removed),
            (Own(filter), _, None) => filter.remove_batch(&Prehashed(hashes), &mut removed),
            (Shared(filter), Form::One, Some(numbers)) => return numbers.iter().map(|number| filter.remove(number)).collect(),
            (Shared(filter), Form::One, None) => return hashes.iter().map(|&hash| filter.remove(&Prehashed(hash))).collect(),
            (Shared(filter), _, Some(numbers)) => filter.remove_batch(numbers, &mut removed),
            (Shared(filter), _, None) => filter.remove_batch(&Prehashed(hashes), &mut removed),
        }
        removed
    }

    fn contains_hashes(&self, hashes: &[u64]) -> Vec<bool> {
        let mut found = vec![false; hashes.len()];
        match self {
            Own(filter) => filter.contains_batch(&Prehashed(hashes), &mut found),
            Shared(filter) => filter.contains_batch(&Prehashed(hashes), &mut found),
        }
        found
    }

    /// Which of these are found, in all ways of asking, which must agree.
    fn find(&self, Asked { numbers, hashes }: &Asked) -> Vec<bool> {
        let expected = self.contains_hashes(hashes);
        let mut found = vec![!expected.first().unwrap_or(&false); hashes.len()];
        let members = expected.iter().filter(|&&found| found).count();
        for (&hash, &expected) in hashes.iter().zip(&expected) {
            let (found, count) = match self {
                Own(filter) => (filter.contains(&Prehashed(hash)), filter.count(&Prehashed(hash))),
                Shared(filter) => (filter.contains(&Prehashed(hash)), filter.count(&Prehashed(hash))),
            };
            assert!(found == expected && (found || count == 0), "{hash:#x}");
        }
        let Some(numbers) = numbers else { return expected };
        match self {
            Own(filter) => {
                filter.contains_batch(numbers, &mut found);
                assert_eq!(filter.count_members(numbers), members);
                assert!(filter.contains_iter(numbers).map(|(_, found)| found).eq(expected.iter().copied()));
                assert!(numbers.iter().map(|number| filter.contains(number)).eq(expected.iter().copied()));
                assert!(numbers.iter().zip(&expected).all(|(number, &found)| found || filter.count(number) == 0));
            }
            Shared(filter) => {
                filter.contains_batch(numbers, &mut found);
                assert!(filter.contains_iter(numbers).map(|(_, found)| found).eq(expected.iter().copied()));
                assert!(numbers.iter().map(|number| filter.contains(number)).eq(expected.iter().copied()));
                assert!(numbers.iter().zip(&expected).all(|(number, &found)| found || filter.count(number) == 0));
            }
        }
        assert_eq!(found, expected);
        expected
    }

    fn count_hash(&self, hash: u64) -> u32 {
        match self {
            Own(filter) => filter.count(&Prehashed(hash)),
            Shared(filter) => filter.count(&Prehashed(hash)),
        }
    }

    fn len(&self) -> usize {
        let (len, is_empty) = match self {
            Own(filter) => (filter.len(), filter.is_empty()),
            Shared(filter) => (filter.len(), filter.is_empty()),
        };
        assert_eq!(is_empty, len == 0);
        len
    }

    fn false_positive_rate(&self) -> f64 {
        match self {
            Own(filter) => filter.false_positive_rate(),
            Shared(filter) => filter.false_positive_rate(),
        }
    }

    fn shrink(&mut self) {
        match self {
            Own(filter) => filter.shrink(),
            Shared(filter) => filter.shrink(),
        }
    }

    fn clear(&mut self) {
        match self {
            Own(filter) => filter.clear(),
            Shared(filter) => filter.clear(),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Own(filter) => filter.to_bytes(),
            Shared(filter) => {
                let mut bytes = Vec::new();
                filter.write_to(&mut bytes).expect("a vector takes all");
                bytes
            }
        }
    }

    fn buckets_per_lookup(&self) -> usize {
        match self {
            Own(filter) => filter.buckets_per_lookup(),
            Shared(filter) => filter.buckets_per_lookup(),
        }
    }

    /// Bytes that the filter takes, and that it is charged against a limit.
    fn sizes(&self) -> (usize, usize) {
        match self {
            Own(filter) => (filter.size_in_bytes(), filter.charged_bytes()),
            Shared(filter) => (filter.size_in_bytes(), filter.charged_bytes()),
        }
    }
}

/// Copies of items by their hashes.
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

    /// False if there was none.
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

/// Filters that must stay equal, and what is in them.
struct Side {
    /// One for each kernel, and one more, which `RereadOne` exchanges.
    filters: Vec<Filter>,
    /// The charge of each before the last operation.
    charged: Vec<usize>,
    limit: usize,
    model: Model,
}

impl Side {
    fn new(filters: Vec<ElasticFilter>, limit: usize, model: Model) -> Self {
        let filters: Vec<Filter> = filters.into_iter().map(Own).collect();
        let charged = filters.iter().map(|filter| filter.sizes().1).collect();
        Self { filters, charged, limit, model }
    }

    /// The same with all of them, which must answer the same.
    fn each<T: Debug + PartialEq>(&mut self, mut run: impl FnMut(&mut Filter) -> T) -> T {
        let mut answers = self.filters.iter_mut().map(&mut run);
        let first = answers.next().expect("there is a kernel");
        for (at, answer) in (1..).zip(answers) {
            assert_eq!(answer, first, "filter {at} differs from filter 0 in its answer");
        }
        first
    }

    /// Makes all filters those of one owner, or shared ones.
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

    fn measure(&mut self) {
        self.charged = self.filters.iter().map(|filter| filter.sizes().1).collect();
    }

    /// A copy of the first one that owns its items.
    fn copy(&self) -> Filter {
        let mut copy = match &self.filters[0] {
            Own(filter) => filter.try_clone().expect("there is memory"),
            shared @ Shared(_) => ElasticFilter::from_bytes(&shared.to_bytes()).expect("what is written can be read"),
        };
        copy.set_max_bytes(self.limit);
        Own(copy)
    }
}

struct State {
    header: Header,
    size: Size,
    formats: Vec<Format>,
    /// It hashes, and says what an empty filter is.
    empty: ElasticFilter,
    sides: [Side; 2],
}

impl State {
    /// None if there are no such filters.
    fn new(header: &Header, size: Size, formats: Vec<Format>) -> Option<Self> {
        let empty = header.builder().build().ok().filter(|empty| empty.snapshot_bytes() <= size.bytes)?;
        let sides = [(); 2].map(|()| Side::new(on_kernels(&empty), usize::MAX, Model::default()));
        Some(Self { header: *header, size, formats, empty, sides })
    }

    fn hash(&self, number: u64) -> u64 {
        match self.header.universe {
            Universe::Items => self.empty.hash(&number),
            Universe::Low => number,
            Universe::High => number << 32,
            Universe::Reversed => number.reverse_bits(),
            Universe::Multiples => number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        }
    }

    fn of_numbers(&self, numbers: Vec<u64>) -> Asked {
        let hashes = numbers.iter().map(|&number| self.hash(number)).collect();
        Asked { hashes, numbers: (self.header.universe == Universe::Items).then_some(numbers) }
    }

    fn asked(&self, range: Range) -> Asked {
        let len = range.len.min(self.size.items as u64);
        self.of_numbers((range.first..range.first + len).map(|number| number % self.header.items).collect())
    }

    fn format(&self, which: u8) -> Format {
        self.formats[usize::from(which) % self.formats.len()]
    }

    fn take(&mut self, operation: Operation) {
        let [first, second] = &mut self.sides;
        match operation {
            Operation::Insert(form, range) => {
                if first.model.copies.len() < self.size.items {
                    self.insert(form, self.asked(range));
                }
            }
            Operation::InsertCopies(form, range) => {
                let copies = 1 + range.first % 20;
                let numbers = (0..copies * range.len).map(|n| (range.first + n / copies) % self.header.items).collect();
                self.insert(form, self.of_numbers(numbers));
            }
            Operation::Double(times) => self.double(times),
            Operation::InsertUnique(form, range) => {
                if first.model.copies.len() < self.size.items {
                    self.insert_unique(form, &self.asked(range));
                }
            }
            Operation::Remove(form, range) => self.remove(form, &self.asked(range)),
            Operation::Thin(n) => {
                let hashes = first.model.hashes();
                let hashes = hashes.iter().enumerate().filter(|(at, _)| at % usize::from(n) > 0).map(|(_, &hash)| hash).collect();
                self.remove(Form::Batch, &Asked { numbers: None, hashes });
            }
            Operation::Find(range) => {
                let asked = self.asked(range);
                let side = &mut self.sides[0];
                let found = side.each(|filter| filter.find(&asked));
                assert!(asked.hashes.iter().zip(&found).all(|(&hash, &found)| found || side.model.count(hash) == 0));
            }
            Operation::Swap => self.sides.swap(0, 1),
            Operation::Merge => self.merge(ElasticFilter::merge, SharedFilter::merge, |one, other| one + other),
            Operation::Union => {
                let most = self.sides.iter().map(|side| side.model.len).sum();
                self.merge(ElasticFilter::union, SharedFilter::union, u32::max);
                self.forget_united(most);
            }
            Operation::Copy { is_fallible } => {
                let copy = |filter: &mut ElasticFilter| {
                    if is_fallible { filter.try_clone().expect("there is memory") } else { filter.clone() }
                };
                let filters = first.own().map(copy);
                *second = Side::new(filters.collect(), first.limit, first.model.clone());
            }
            Operation::Shrink => first.each(Filter::shrink),
            Operation::Clear => {
                first.each(Filter::clear);
                first.model = Model::default();
                assert!(first.filters[0].to_bytes() == self.empty.to_bytes(), "a cleared filter is not as a new one");
            }
            Operation::Share => first.convert(Filter::shared),
            Operation::Unshare => first.convert(Filter::own),
            Operation::Reread(which) => {
                let format = self.format(which);
                let side = &mut self.sides[0];
                let (limit, kernels) = (side.limit, Kernel::available());
                for (filter, kernel) in side.own().zip(kernels) {
                    *filter = reread(filter, format, limit);
                    filter.set_kernel(kernel).expect("it is available");
                }
                self.sides[0].measure();
            }
            Operation::RereadOne(which) => {
                let format = self.format(which);
                let side = &mut self.sides[0];
                let limit = side.limit;
                let mut filters: Vec<_> = side.own().collect();
                let source = filters.remove(0);
                **filters.last_mut().expect("there are two") = reread(source, format, limit);
                self.sides[0].measure();
            }
            Operation::Workers(workers, range) => self.fill_by_workers(workers, &self.asked(range)),
            Operation::Limit(more) => {
                let limit = first.own().map(|filter| filter.size_in_bytes()).max().unwrap_or(0) + more;
                first.limit = limit;
                first.own().for_each(|filter| filter.set_max_bytes(limit));
            }
            Operation::NoLimit => {
                first.limit = usize::MAX;
                first.own().for_each(|filter| filter.set_max_bytes(usize::MAX));
            }
            Operation::Kernels(turn) => {
                let kernels = Kernel::available().collect::<Vec<_>>();
                for (at, filter) in (usize::from(turn)..).zip(first.own()) {
                    filter.set_kernel(kernels[at % kernels.len()]).expect("it is available");
                }
            }
            Operation::Rate => self.measure_rate(),
        }
    }

    /// Inserts items into all filters, and one by one into a copy.
    fn insert(&mut self, form: Form, mut asked: Asked) {
        let side = &mut self.sides[0];
        let is_shared = matches!(side.filters[0], Shared(_));
        // Partitions that are filled one after the other share out a limit in another way.
        let form = if is_shared && side.limit < usize::MAX { Form::One } else { form };
        let ends_at_first = !is_shared && matches!(form, Form::Batch | Form::Iterator);
        let mut before = side.copy();
        let mut copy = side.copy();
        let (mut accepted, mut refused) = (Vec::new(), Vec::new());
        let mut answers = Vec::new();
        for (at, &hash) in asked.hashes.iter().enumerate() {
            let answer = copy.insert_hash(hash);
            answers.push(answer);
            match answer {
                Ok(()) => accepted.push(hash),
                Err((kind, _)) => refused.push((kind, at)),
            }
            if !refused.is_empty() && ends_at_first {
                break;
            }
            if refused.len() == self.size.refusals {
                asked.truncate(at + 1);
                break;
            }
        }
        if form != Form::One {
            answers = vec![refused.first().map_or(Ok(()), |&refused| Err(refused))];
        }
        let said = side.each(|filter| filter.insert(form, &asked));
        assert!(said == answers, "{form:?} refuses others than one by one: {} and {}", Summary(&said), Summary(&answers));
        for &(kind, _) in &refused {
            self.judge(kind);
        }
        let side = &mut self.sides[0];
        if !refused.is_empty() {
            for &hash in &accepted {
                assert_eq!(before.insert_hash(hash), Ok(()), "an item is refused where others were not refused before");
            }
            assert!(before.to_bytes() == copy.to_bytes(), "a refused insertion changed something: {:?}", refused[0].0);
        }
        assert!(side.filters[0].to_bytes() == copy.to_bytes(), "{form:?} does not do the same as one by one");
        accepted.into_iter().for_each(|hash| side.model.add(hash, 1));
    }

    /// A refusal has a reason, which is never copies.
    fn judge(&self, kind: InsertErrorKind) {
        let Side { limit, .. } = &self.sides[0];
        match kind {
            InsertErrorKind::Limit { .. } => assert!(*limit < usize::MAX, "refused for a limit that there is not"),
            kind => assert!(self.header.universe != Universe::Items, "refused as {kind:?}"),
        }
    }

    fn insert_unique(&mut self, form: Form, asked: &Asked) {
        let side = &mut self.sides[0];
        let mut copy = side.copy();
        let mut expected = Ok(0);
        for &hash in &asked.hashes {
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
        assert_eq!(side.each(|filter| filter.insert_unique(form, asked)), expected);
        assert!(side.filters[0].to_bytes() == copy.to_bytes(), "insert_unique is not count and insert");
        if let Err(kind) = expected {
            self.judge(kind);
        }
    }

    /// Removes what is there, and what is not found.
    fn remove(&mut self, form: Form, Asked { numbers, hashes }: &Asked) {
        let side = &mut self.sides[0];
        let is_found = side.filters[0].contains_hashes(hashes);
        let mut model = side.model.clone();
        let mut asked = Asked { numbers: numbers.as_ref().map(|_| Vec::new()), hashes: Vec::new() };
        let mut expected = Vec::new();
        for (at, &hash) in hashes.iter().enumerate() {
            let is_there = model.remove(hash);
            // To remove what was never inserted is a mistake: it may be another item that is found.
            if !is_there && is_found[at] {
                continue;
            }
            asked.hashes.push(hash);
            expected.push(is_there);
            if let (Some(given), Some(numbers)) = (&mut asked.numbers, numbers) {
                given.push(numbers[at]);
            }
        }
        let removed = side.each(|filter| filter.remove(form, &asked));
        assert!(removed == expected, "what is there is not removed, or what is not there is");
        side.model = model;
    }

    /// Takes the second filter's items into the first one.
    fn merge(&mut self, merge: Merge, shared: SharedMerge, copies: impl Fn(u32, u32) -> u32) {
        let [first, second] = &mut self.sides;
        let [items, copies_of_all] = [|model: &Model| model.copies.len(), |model: &Model| model.len]
            .map(|count: fn(&Model) -> usize| count(&first.model) + count(&second.model));
        if items > self.size.items || copies_of_all > self.size.copies {
            return;
        }
        let before = first.filters[0].to_bytes();
        let results: Vec<_> = match (&first.filters[0], &second.filters[0]) {
            (Shared(_), Shared(_)) => {
                let pairs = first.filters.iter_mut().zip(&second.filters);
                pairs
                    .filter_map(|pair| if let (Shared(one), Shared(other)) = pair { Some(shared(one, other)) } else { None })
                    .collect()
            }
            _ => first.own().zip(second.own()).map(|(one, other)| merge(one, other)).collect(),
        };
        let refusal = |result: &Result<(), MergeError>| match result {
            Ok(()) => None,
            Err(MergeError::Insert(error)) => Some(format!("{:?}", kind(error))),
            Err(error) => Some(error.to_string()),
        };
        let refusals: Vec<_> = results.iter().map(refusal).collect();
        assert!(refusals.iter().all(|refusal| *refusal == refusals[0]), "not all are merged: {refusals:?}");
        if refusals[0].is_some() {
            assert!(first.filters[0].to_bytes() == before, "a refused merge changed something");
            return;
        }
        for (&hash, &theirs) in &second.model.copies {
            let ours = first.model.count(hash);
            first.model.add(hash, copies(ours, theirs) - ours);
        }
    }

    /// Doubles the copies of all items, so often as there may be as many. In filters that are full, that may be refused.
    fn double(&mut self, times: u8) {
        let side = &mut self.sides[0];
        for _ in 0..times {
            if 2 * side.model.len > self.size.copies {
                return;
            }
            let before = side.filters[0].to_bytes();
            let is_done = side.each(|filter| match filter {
                Own(filter) => filter.merge(&filter.clone()).is_ok(),
                Shared(filter) => filter.merge(&filter.try_clone().expect("there is memory")).is_ok(),
            });
            if !is_done {
                assert!(side.filters[0].to_bytes() == before, "a refused merge changed something");
                return;
            }
            side.model.copies.values_mut().for_each(|copies| *copies *= 2);
            side.model.len *= 2;
        }
    }

    /// Two items that a filter cannot tell apart are one in a union: then it has fewer items than the model, and is emptied. (Whether
    /// all are found was looked at before.) Where items are in several generations, which are united one by one, it may have more: up
    /// to `most`, the items of both. Then it is emptied, too.
    fn forget_united(&mut self, most: usize) {
        let side = &mut self.sides[0];
        let len = side.filters[0].len();
        let is_there = |hash| side.filters[0].count_hash(hash) >= side.model.count(hash);
        assert!(side.model.hashes().into_iter().all(is_there), "lost by a union");
        let most = if side.filters[0].buckets_per_lookup() > 2 { most } else { side.model.len };
        assert!(len <= most, "a union has more than both: {len} instead of {most}");
        if len != side.model.len {
            side.each(Filter::clear);
            side.model = Model::default();
        }
    }

    /// Each of up to four workers fills a filter with its share of the items, and the second filter becomes the merged one.
    fn fill_by_workers(&mut self, workers: u8, asked: &Asked) {
        let workers = 1 + usize::from(workers) % 4;
        let (mut merged, mut model) = (self.header.builder().build().expect("there is such a filter"), Model::default());
        for worker in 0..workers {
            let (mut filter, mut inserted) = (self.header.builder().build().expect("there is such a filter"), Vec::new());
            for &hash in asked.hashes.iter().skip(worker).step_by(workers) {
                if filter.insert(&Prehashed(hash)).is_ok() {
                    inserted.push(hash);
                }
            }
            // More than the maximal capacity may be refused; what is merged before stays.
            if merged.merge(&filter).is_ok() {
                inserted.into_iter().for_each(|hash| model.add(hash, 1));
            }
        }
        self.sides[1] = Side::new(on_kernels(&merged), usize::MAX, model);
    }

    /// All filters are equal, and have what they should.
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
        let read = ElasticFilter::from_bytes(&bytes).unwrap_or_else(|error| panic!("what is written cannot be read: {error}"));
        assert!(read.to_bytes() == bytes, "there are two ways to write a filter");
        let (stated, promised) = (side.filters[0].false_positive_rate(), self.header.rate);
        assert!(stated <= promised, "a rate of {stated:e}, {promised:e} promised");
    }

    /// The rate of absent hashes is not above the stated one, whether they are random or like those that are there.
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
        for (what, probes) in [("random", random), ("alike", alike)] {
            let found = filter.contains_hashes(&probes).iter().filter(|&&found| found).count() as f64;
            // Which hashes a filter of so few items confuses is chance, too.
            let expected = number as f64 * stated * (1.0 + 6.0 / (model.copies.len() as f64 + 1.0).sqrt());
            let most = expected + 6.0 * expected.sqrt() + 3.0;
            assert!(found <= most, "{found} of {number} {what} hashes are found, at a rate of {stated:e} of {}", model.len);
        }
    }

    /// Without its items, a filter is as it was.
    fn finish(mut self) {
        for _ in 0..2 {
            self.verify();
            self.measure_rate();
            while self.sides[0].model.len > 0 {
                let copies = self.sides[0].model.copies.iter();
                // Half of the copies at a time.
                let hashes = copies.flat_map(|(&hash, &copies)| iter::repeat_n(hash, 1 + index((copies / 2).into()))).collect();
                self.remove(Form::Batch, &Asked { numbers: None, hashes });
            }
            self.verify();
            self.sides[0].each(Filter::shrink);
            assert!(self.sides[0].filters[0].to_bytes() == self.empty.to_bytes(), "a drained filter is not as a new one");
            self.sides.swap(0, 1);
        }
    }
}

/// How many were refused, and why the first one was.
struct Summary<'a>(&'a [Said]);

impl std::fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let refused = self.0.iter().filter(|said| said.is_err()).count();
        write!(f, "{refused} of {} refused, the first {:?}", self.0.len(), self.0.iter().find(|said| said.is_err()))
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("a small number")
}

/// A copy for each kernel, and one more.
fn on_kernels(filter: &ElasticFilter) -> Vec<ElasticFilter> {
    let on = |kernel| {
        let mut copy = filter.clone();
        copy.set_kernel(kernel).expect("it is available");
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
    ElasticFilter::from_bytes(&filter.to_bytes()).expect("what is written can be read")
}

fn through_stream(filter: &ElasticFilter) -> ElasticFilter {
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).expect("a vector takes all");
    ElasticFilter::read_from(&bytes[..]).expect("what is written can be read")
}

fn through_pieces(filter: &ElasticFilter) -> ElasticFilter {
    let index = filter.snapshot_index().expect("there is memory");
    let (mut bytes, mut piece) = (Vec::new(), [0; 777]);
    while let len @ 1.. = filter.read_snapshot(&index, bytes.len() as u64, &mut piece) {
        bytes.extend_from_slice(&piece[..len]);
    }
    assert!(bytes == filter.to_bytes() && index.snapshot_bytes() == bytes.len() as u64, "pieces are not the whole");
    ElasticFilter::from_bytes(&bytes).expect("what is written can be read")
}

fn through_view(filter: &ElasticFilter) -> ElasticFilter {
    let view = ElasticView::over(filter.to_bytes()).expect("what is written can be read");
    view.verify().expect("it is as it was written");
    assert_eq!((view.len(), view.shards(), view.params()), (filter.len(), filter.shards(), filter.params()));
    assert_eq!(view.distinct(), filter.distinct());
    assert!((view.false_positive_rate() - filter.false_positive_rate()).abs() <= 1e-9 * filter.false_positive_rate());
    let hashes: Vec<u64> = SplitMix64(1).take(500).collect();
    let (mut in_view, mut in_filter) = ([false; 500], [false; 500]);
    view.contains_batch(&Prehashed(&hashes), &mut in_view);
    filter.contains_batch(&Prehashed(&hashes), &mut in_filter);
    assert_eq!(in_view, in_filter);
    view.to_filter().expect("it is as it was written")
}

/// The end is found where it is, in pieces of any length.
fn through_extent(filter: &ElasticFilter) -> ElasticFilter {
    let (bytes, mut extent) = (filter.to_bytes(), SnapshotExtent::new());
    let followed = [&bytes[..], b"something else"].concat();
    let mut kept = Vec::new();
    for piece in followed.chunks(1 + bytes.len() % 61) {
        let len = extent.push(piece).expect("a snapshot");
        kept.extend_from_slice(&piece[..len]);
    }
    assert!(extent.is_complete() && extent.received() == bytes.len() as u64 && kept == bytes, "its end is elsewhere");
    ElasticFilter::from_bytes(&kept).expect("what is written can be read")
}
