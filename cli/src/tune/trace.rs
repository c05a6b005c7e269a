//! `--trace FILE`: replays a log of real operations against the recommended filters and one that grows.

use std::{
    collections::{HashMap, TryReserveError},
    hint::black_box,
    path::{Path, PathBuf},
};

use anyhow::{anyhow, bail, ensure};
use clap::Args;
use koel::{Insert, Params, Prehashed, tuning::Candidate};
use koel_lab::{Axis, Chart, Lap, Mark, Rounds, Series, Stopwatch, chart, percent};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Tune,
    call::{Call, GrowingPlan},
    measure::{build_repeats, disturbed, empty, hash, in_rounds, median, rounds, times},
};
use crate::{
    errors,
    file::{self, Filter},
    format::Format,
    items::Items,
    options,
    terminal::Progress,
    text::{Part, counted, label, or_dash, short_rate},
};

/// The maximum number of operations. They take 1 GiB.
const MAX_OPERATIONS: usize = 1 << 26;

/// The maximum number of points of the log at which the state of a filter is recorded. The last one is the end.
const POINTS: usize = 200;

// No doc comment here: clap would use it as the help of the command.
#[derive(Args)]
#[group(skip)]
pub(super) struct Options {
    /// A log of real operations, one per line: `insert KEY`, `query KEY` or `remove KEY`; `-` for standard input. Replays it
    /// against the filters of the table, planned for the most items at any time, and against one that grows. Results are compared
    /// with the exact multiset of keys. Removals of absent keys are counted and skipped: no filter supports them. Takes up to 32 bytes
    /// of memory per operation, for at most 67108864 operations, and up to 60 per distinct key that is present at the same time. As in
    /// filters, keys are distinguished by their 64-bit hashes
    #[arg(long, value_name = "FILE", conflicts_with = "keys")]
    trace: Option<PathBuf>,

    /// With --trace, draw a chart of load and false-positive rate over the operations: FOLDER/trace.svg
    #[arg(short, long, value_name = "FOLDER", requires = "trace")]
    out: Option<PathBuf>,
}

/// An operation. The operations before it determine whether the key of a query is present.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Insert,
    QueryPresent,
    QueryAbsent,
    Remove,
}

/// The number of copies of each hash that is present. A hash takes 17 bytes in a table that is half to seven eighths full, and while it
/// grows, the old table is there, too: 58 bytes in all.
#[derive(Default)]
struct Multiset(HashMap<u64, u32>);

impl Multiset {
    fn contains(&self, hash: u64) -> bool {
        self.0.contains_key(&hash)
    }

    /// Adds a copy. Returns the new number of copies.
    fn insert(&mut self, hash: u64) -> Result<u32, TryReserveError> {
        self.0.try_reserve(1)?;
        let copies = self.0.entry(hash).or_default();
        *copies += 1;
        Ok(*copies)
    }

    /// Removes a copy. Returns whether there was one.
    fn remove(&mut self, hash: u64) -> bool {
        match self.0.get_mut(&hash) {
            Some(1) => self.0.remove(&hash).is_some(),
            Some(copies) => {
                *copies -= 1;
                true
            }
            None => false,
        }
    }
}

/// The operations of a log, with hashes instead of keys. Removals of absent keys are left out.
#[derive(Default, Serialize)]
pub(super) struct Trace {
    #[serde(skip)]
    operations: Vec<(u64, Operation)>,
    insertions: usize,
    present_queries: usize,
    absent_queries: usize,
    removals: usize,
    /// Removals of absent keys.
    skipped_removals: usize,
    /// The maximum number of items at any time, copies included.
    most_items: usize,
    /// The maximum number of distinct items at any time.
    pub(super) most_distinct_items: usize,
    /// The maximum number of copies of one key at any time.
    most_copies: u32,
}

impl Trace {
    /// Reads the operations, and applies them to an exact multiset.
    fn read(path: &Path, format: &Format) -> anyhow::Result<Self> {
        let mut lines = Items::open(path, format, true)?;
        let (mut trace, mut keys, mut items) = (Self::default(), Multiset::default(), 0);
        let no_memory = |place: String, operations: usize, keys: usize| {
            anyhow!(
                "{place}: no memory for more than the {operations} operations and {keys} distinct keys so far; give a shorter log, or use \
                 a machine with more memory"
            )
        };
        while let Some(line) = lines.advance()? {
            let operation = parse(line).map(|(operation, key)| (operation, hash(key)));
            let (mut operation, hash) = operation.map_err(|mistake| anyhow!("{}: {mistake}; {REMEDY}", lines.place()))?;
            match operation {
                Operation::Insert => {
                    items += 1;
                    trace.insertions += 1;
                    let inserted = keys.insert(hash);
                    let copies = inserted.map_err(|_| no_memory(lines.place(), trace.operations.len(), keys.0.len()))?;
                    trace.most_copies = trace.most_copies.max(copies);
                    trace.most_items = trace.most_items.max(items);
                    trace.most_distinct_items = trace.most_distinct_items.max(keys.0.len());
                }
                Operation::Remove if keys.remove(hash) => {
                    items -= 1;
                    trace.removals += 1;
                }
                Operation::Remove => {
                    trace.skipped_removals += 1;
                    continue;
                }
                _ if keys.contains(hash) => {
                    operation = Operation::QueryPresent;
                    trace.present_queries += 1;
                }
                _ => trace.absent_queries += 1,
            }
            let kept = trace.operations.len();
            ensure!(
                kept < MAX_OPERATIONS,
                "{}: {MAX_OPERATIONS} operations have been kept, the limit; give a shorter log",
                lines.place()
            );
            trace.operations.try_reserve(1).map_err(|_| no_memory(lines.place(), kept, keys.0.len()))?;
            trace.operations.push((hash, operation));
        }
        if trace.operations.is_empty() {
            let but = if lines.count() == 0 { "" } else { " but removals of absent keys" };
            bail!("--trace: {} has no operations{but}; {REMEDY}", crate::file::name(path));
        }
        Ok(trace)
    }

    /// Returns the share of absent keys among the queries, if there are any.
    pub(super) fn absent_share(&self) -> Option<f64> {
        let queries = self.present_queries + self.absent_queries;
        (queries > 0).then(|| self.absent_queries as f64 / queries as f64)
    }
}

const REMEDY: &str = "give lines such as insert KEY, query KEY and remove KEY";

/// Parses an operation and its key. A query is always returned as `QueryAbsent`: the caller finds out whether its key is present.
fn parse(line: &[u8]) -> Result<(Operation, &[u8]), String> {
    let end = line.iter().position(|&byte| byte == b' ');
    let word = &line[..end.unwrap_or(line.len())];
    let shown = || String::from_utf8_lossy(&word[..word.len().min(40)]).into_owned();
    let operation = match word {
        b"insert" => Operation::Insert,
        b"query" => Operation::QueryAbsent,
        b"remove" => Operation::Remove,
        _ => return Err(format!("'{}' is not an operation", shown())),
    };
    end.map(|end| (operation, &line[end + 1..])).ok_or_else(|| format!("{} without a key", shown()))
}

/// The state of a filter at one point of the log.
#[derive(Clone, Copy, Serialize)]
struct Point {
    /// The number of operations so far.
    operations: usize,
    items: usize,
    load_factor: f64,
    bytes: usize,
    absent_queries: usize,
    false_positives: usize,
}

/// The counts of a replay.
#[derive(Default, Serialize)]
struct Replay {
    refused_insertions: usize,
    /// Queries for present keys that were not found. This happens only to keys that the filter had refused.
    false_negatives: usize,
    false_positives: usize,
    /// The expected number of false positives, from the parameters and the loads.
    expected_false_positives: f64,
    most_bytes: usize,
    most_load_factor: f64,
    course: Vec<Point>,
}

/// Replays the log against an empty filter. `size` returns its load factor and its bytes.
fn replay<F: Insert>(filter: &mut F, trace: &Trace, size: impl Fn(&F) -> (f64, usize)) -> anyhow::Result<Replay> {
    let mut found = Replay::default();
    // The refused copies, which are not in the filter.
    let mut refused = Multiset::default();
    let mut absent_queries = 0;
    let step = trace.operations.len().div_ceil(POINTS).max(1);
    let mut rate = filter.false_positive_rate();
    for (window, number) in trace.operations.chunks(step).zip(1..) {
        let before = absent_queries;
        for &(hash, operation) in window {
            let key = Prehashed(hash);
            match operation {
                Operation::Insert if filter.insert(&key).is_err() => {
                    found.refused_insertions += 1;
                    refused.insert(hash).map_err(|_| {
                        let number = found.refused_insertions;
                        anyhow!("--trace: no memory for the {number} insertions that a filter refused; give a larger --items")
                    })?;
                }
                Operation::QueryAbsent => {
                    absent_queries += 1;
                    found.false_positives += usize::from(filter.contains(&key));
                }
                Operation::QueryPresent if !filter.contains(&key) => {
                    ensure!(refused.contains(hash), "a filter lost a key; please report this");
                    found.false_negatives += 1;
                }
                Operation::Remove if !refused.remove(hash) => {
                    ensure!(filter.remove(&key), "a filter lost a key; please report this");
                }
                Operation::Insert | Operation::QueryPresent | Operation::Remove => {}
            }
        }
        let rate_before = std::mem::replace(&mut rate, filter.false_positive_rate());
        found.expected_false_positives += (absent_queries - before) as f64 * f64::midpoint(rate_before, rate);
        let (load_factor, bytes) = size(filter);
        found.most_bytes = found.most_bytes.max(bytes);
        found.most_load_factor = found.most_load_factor.max(load_factor);
        found.course.push(Point {
            operations: (number * step).min(trace.operations.len()),
            items: filter.len(),
            load_factor,
            bytes,
            absent_queries,
            false_positives: found.false_positives,
        });
    }
    Ok(found)
}

/// A function that runs all operations of the log in empty filters. It returns the time and the number of operations.
type TimeOperations<'a> = Box<dyn Fn(&mut Stopwatch) -> anyhow::Result<(Lap, usize)> + 'a>;

/// The results of a filter's replay.
#[derive(Serialize)]
pub(super) struct ReplayedFilter<'a> {
    #[serde(skip)]
    plan: Plan,
    #[serde(flatten)]
    replay: Replay,
    #[serde(rename = "operation_ns", serialize_with = "times")]
    time: Rounds,
    #[serde(skip)]
    time_operations: TimeOperations<'a>,
}

/// The parameters of a filter that is replayed.
enum Plan {
    Fixed(Params),
    Growing(GrowingPlan),
}

impl<'a> ReplayedFilter<'a> {
    /// Replays the log against an empty filter.
    fn new<F: Insert>(
        plan: Plan,
        trace: &'a Trace,
        empty: impl Fn() -> anyhow::Result<F> + 'a,
        size: impl Fn(&F) -> (f64, usize),
    ) -> anyhow::Result<Self> {
        let (replay, operations) = (replay(&mut empty()?, trace, size)?, trace.operations.len());
        let bytes = replay.most_bytes;
        let time_operations = move |watch: &mut Stopwatch| {
            let mut filters = build_repeats(operations, bytes, &empty)?;
            let ((), lap) = watch.time(|| {
                for filter in &mut filters {
                    for &(hash, operation) in &trace.operations {
                        let key = Prehashed(hash);
                        black_box(match operation {
                            Operation::Insert => filter.insert(&key).is_ok(),
                            Operation::QueryPresent | Operation::QueryAbsent => filter.contains(&key),
                            Operation::Remove => filter.remove(&key),
                        });
                    }
                }
            });
            Ok((lap, filters.len() * operations))
        };
        let time = Rounds::new(rounds(operations));
        Ok(Self { plan, replay, time, time_operations: Box::new(time_operations) })
    }

    /// Replays the log against an empty growing filter.
    fn growing(plan: GrowingPlan, trace: &'a Trace) -> anyhow::Result<Self> {
        let empty = move || {
            let builder = options::kernel()?.into_iter().fold(plan.builder(), koel::ElasticBuilder::kernel);
            builder.build().map_err(|error| errors::build(error, ""))
        };
        Self::new(Plan::Growing(plan), trace, empty, |filter| {
            // A few items are in a list, which has no load factor.
            let load = if filter.buckets() == 0 { 0.0 } else { filter.load_factor() };
            (load, filter.size_in_bytes())
        })
    }

    fn label(&self) -> String {
        match &self.plan {
            Plan::Fixed(params) => label(params),
            Plan::Growing(_) => String::from("growing"),
        }
    }
}

impl Options {
    /// Creates the folder of the chart, and reads the log, if they are given.
    pub(super) fn read(&self, format: &Format) -> anyhow::Result<Option<Trace>> {
        let Some(path) = &self.trace else { return Ok(None) };
        if format.has_key() {
            bail!("--key: takes a field of each line as the key, and a line of --trace has an operation and a key; leave it out");
        }
        // Reading and replaying may take long, so this must fail first.
        self.out.as_deref().map_or(Ok(()), file::create_folder)?;
        Trace::read(path, format).map(Some)
    }

    /// Replays the log against these filters, the best first, and against one that grows at this rate.
    pub(super) fn replay<'a>(
        &self,
        request: &Tune,
        trace: &'a Trace,
        filters: &[&Candidate],
        rate: f64,
    ) -> anyhow::Result<Replays<'a>> {
        let progress = Progress::counting(filters.len() + 1, "replays");
        let mut replayed = Vec::new();
        for filter in filters {
            let (bytes, params) = (filter.bytes(), *filter.params());
            let size = |filter: &Filter| (filter.load_factor(), bytes);
            replayed.push(ReplayedFilter::new(Plan::Fixed(params), trace, move || empty(params), size)?);
            progress.update(0, replayed.len() as u64);
        }
        if let Some(plan) = GrowingPlan::new(request, request.planned(request.items), rate) {
            replayed.push(ReplayedFilter::growing(plan, trace)?);
        }
        drop(progress);
        in_rounds(
            rounds(trace.operations.len()),
            &mut replayed,
            |filter| filter.time.needs_more(),
            |filter, watch| {
                let (lap, operations) = (filter.time_operations)(watch)?;
                filter.time.record(lap, operations);
                Ok(())
            },
        )?;
        let picture = self.out.as_deref().map(|folder| draw(folder, trace, &replayed)).transpose()?;
        let log = self.trace.as_deref().map(crate::file::name).unwrap_or_default();
        Ok(Replays { trace, log, filters: replayed, picture })
    }
}

/// The log, and the results of its replays.
pub(super) struct Replays<'a> {
    pub(super) trace: &'a Trace,
    /// The name of the log.
    log: String,
    /// The filters, the best first; the one that grows is the last.
    filters: Vec<ReplayedFilter<'a>>,
    /// The path of the chart.
    pub(super) picture: Option<PathBuf>,
}

impl<'a> Replays<'a> {
    /// Returns the results of the filter with these parameters, if there are any.
    pub(super) fn of(&self, params: &Params) -> Option<&ReplayedFilter<'a>> {
        self.filters.iter().find(|filter| matches!(&filter.plan, Plan::Fixed(other) if other == params))
    }

    /// Returns the label of the growing filter, the most bytes that it had at any time, and the filter as JSON.
    pub(super) fn growing(&self) -> Option<(String, usize, Value)> {
        self.filters.iter().find_map(|filter| {
            let Plan::Growing(plan) = &filter.plan else { return None };
            let call = Call::growing(plan);
            let object = json!({ "grows": true, "command": call.command(), "builder": call.rust(), "replay": filter });
            Some((filter.label(), filter.replay.most_bytes, object))
        })
    }

    /// Returns what was read.
    pub(super) fn input(&self) -> Vec<String> {
        let trace = self.trace;
        let queries = trace.present_queries + trace.absent_queries;
        let present = percent(trace.present_queries as f64 / queries.max(1) as f64, 1);
        let mut notes = vec![format!(
            "Replayed {} of {}: {}, {} ({present} for present keys), {}. At most {} at a time, at most {} of them \
             distinct, and at most {} of one key.",
            counted(trace.operations.len(), "operation"),
            self.log,
            counted(trace.insertions, "insertion"),
            counted(queries, "query"),
            counted(trace.removals, "removal"),
            counted(trace.most_items, "item"),
            trace.most_distinct_items,
            counted(trace.most_copies, "copy"),
        )];
        notes.extend((trace.skipped_removals > 0).then(|| {
            format!(
                "{} of absent keys skipped, because a filter might remove other keys instead.",
                counted(trace.skipped_removals, "removal")
            )
        }));
        notes
    }

    /// Returns the columns of the replays.
    pub(super) fn part(&self) -> Part {
        let absent = Some(self.trace.absent_queries as f64).filter(|&absent| absent > 0.0);
        let rate = |hits: f64| or_dash(absent.map(|absent| short_rate(hits / absent)));
        let rows = self.filters.iter().map(|ReplayedFilter { replay, time, .. }| {
            vec![
                replay.most_bytes.to_string(),
                percent(replay.most_load_factor, 1),
                replay.refused_insertions.to_string(),
                replay.false_negatives.to_string(),
                rate(replay.expected_false_positives),
                rate(replay.false_positives as f64),
                median(time),
            ]
        });
        Part::new(&["bytes", "load", "refused", "missed", "expected", "measured", "ns"], rows)
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            format!(
                "Bytes, load: the most at any time. Missed: queries for present keys that returned \"absent\": there are none \
                 unless insertions were refused. Expected, measured: \u{3b5} at these loads, among the {} for absent keys.",
                counted(self.trace.absent_queries, "query")
            ),
            String::from("ns: per operation of this log, the median of several rounds; hashing is not included."),
        ];
        notes.extend(disturbed(self.filters.iter().map(|filter| &filter.time)));
        if self.filters.iter().any(|filter| filter.replay.refused_insertions > 0) {
            notes.push(String::from("Insertions were refused: give a larger --items."));
        }
        notes.extend(self.picture.as_ref().map(|path| format!("Picture: {}", path.display())));
        notes
    }
}

/// Draws the load and false-positive rate of the best filter and of the growing one. Returns the path of the chart.
fn draw(folder: &Path, trace: &Trace, replayed: &[ReplayedFilter<'_>]) -> anyhow::Result<PathBuf> {
    let shown = replayed.iter().enumerate().filter(|(place, filter)| *place == 0 || matches!(filter.plan, Plan::Growing(_)));
    let series = shown.enumerate().flat_map(|(color, (_, filter))| {
        let line = |quantity: &str, mark, value: fn(&Point) -> f64| {
            let points = filter.replay.course.iter().map(|point| (point.operations as f64, value(point)));
            // A logarithmic axis cannot show 0.
            let points = points.filter(|point| point.1 > 0.0).collect();
            Series::new(format!("{}: {quantity}", filter.label()), color, points).marked(mark)
        };
        [
            line("load", Mark::Line, |point| point.load_factor),
            line("false-positive rate so far", Mark::Dashes, |point| {
                point.false_positives as f64 / point.absent_queries.max(1) as f64
            }),
        ]
    });
    let topic = format!("Load and false-positive rate over {}", counted(trace.operations.len(), "operation"));
    let chart = Chart::new("trace", topic, [Axis::linear("operations"), Axis::log("load; false-positive rate")], series);
    let path = folder.join("trace.svg");
    chart::save(&chart, &path)?;
    Ok(path)
}
