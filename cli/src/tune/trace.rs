//! A log of real operations, replayed against the recommended filters and one that grows: `--trace FILE`.

use std::{
    collections::HashMap,
    fs,
    hint::black_box,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow, bail, ensure};
use clap::Args;
use koel::{Insert, Prehashed, tuning::Recommendation};
use koel_lab::{Axis, Chart, Lap, Mark, Rounds, Series, Stopwatch, chart, percent};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Answer, Tune,
    answer::{candidate, label, starred},
    call::Call,
    measure::{copies, disturbed, empty, hasher, in_rounds, median, rounds, times},
    plans::Growing,
};
use crate::{
    errors,
    items::{Items, Separator},
    options,
    terminal::Progress,
    text::{counted, dash, figures, narrow, paragraphs, wrapped},
};

/// Operations that are kept: 1 GiB.
const MOST: usize = 1 << 26;

/// At so many points of the log, and at its end, a filter is looked at.
const POINTS: usize = 200;

// No doc comment here: clap would take it for the help of the command.
#[derive(Args)]
#[group(skip)]
pub(super) struct Options {
    /// A log of real operations, one per line: `insert KEY`, `query KEY` or `remove KEY`; `-` for standard input. Replays it
    /// against the filters of the table, planned for the most items at any time, and against one that grows. Answers are compared
    /// with the exact multiset of keys. Removals of absent keys are counted and skipped: no filter supports them. Takes 16 bytes of
    /// memory per operation, for at most 67108864. Keys are told apart by their 64-bit hashes, as filters do
    #[arg(long, value_name = "FILE", conflicts_with_all = ["keys", "false_positive_cost"])]
    trace: Option<PathBuf>,

    /// With --trace, draw load and false-positive rate over the operations: FOLDER/trace.svg
    #[arg(short, long, value_name = "FOLDER", requires = "trace")]
    out: Option<PathBuf>,
}

/// An operation, and what is known about its key from those before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Insert,
    QueryPresent,
    QueryAbsent,
    Remove,
}

/// How often each hash is present.
#[derive(Default)]
struct Multiset(HashMap<u64, u32>);

impl Multiset {
    fn contains(&self, hash: u64) -> bool {
        self.0.contains_key(&hash)
    }

    /// Returns how many copies there are now.
    fn insert(&mut self, hash: u64) -> u32 {
        let copies = self.0.entry(hash).or_default();
        *copies += 1;
        *copies
    }

    /// Returns whether there was one.
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

/// A log, as operations on hashes, without the removals of absent keys.
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
    /// At any time.
    pub(super) most_items: usize,
    /// Of a key, at any time.
    most_copies: u32,
}

impl Trace {
    /// Reads the operations, and follows them with an exact multiset.
    fn read(path: &Path, separator: Separator) -> anyhow::Result<Self> {
        let (mut lines, hasher) = (Items::open(path, separator, true)?, hasher()?);
        let (mut trace, mut keys, mut items) = (Self::default(), Multiset::default(), 0);
        while let Some(line) = lines.advance()? {
            let operation = parse(line).map(|(operation, key)| (operation, hasher.hash(key)));
            let (mut operation, hash) = operation.map_err(|what| anyhow!("{}: {what}; {REMEDY}", lines.place()))?;
            match operation {
                Operation::Insert => {
                    items += 1;
                    trace.insertions += 1;
                    trace.most_copies = trace.most_copies.max(keys.insert(hash));
                    trace.most_items = trace.most_items.max(items);
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
            ensure!(kept < MOST, "{}: {MOST} operations have been kept, the limit; give a shorter log", lines.place());
            trace.operations.push((hash, operation));
        }
        if lines.count() == 0 {
            bail!("--trace: {} has no operations; {REMEDY}", crate::file::name(path));
        }
        Ok(trace)
    }
}

const REMEDY: &str = "give lines such as insert KEY, query KEY and remove KEY";

/// An operation of a log and its key; whether the key of a query is present is not known here.
fn parse(line: &[u8]) -> Result<(Operation, &[u8]), String> {
    let end = line.iter().position(|&byte| byte == b' ');
    let word = &line[..end.unwrap_or(line.len())];
    let said = || String::from_utf8_lossy(&word[..word.len().min(40)]).into_owned();
    let operation = match word {
        b"insert" => Operation::Insert,
        b"query" => Operation::QueryAbsent,
        b"remove" => Operation::Remove,
        _ => return Err(format!("'{}' is no operation", said())),
    };
    end.map(|end| (operation, &line[end + 1..])).ok_or_else(|| format!("{} without a key", said()))
}

/// A filter at one point of the log.
#[derive(Clone, Copy, Serialize)]
struct Point {
    /// Operations so far.
    operations: usize,
    items: usize,
    load_factor: f64,
    bytes: usize,
    absent_queries: usize,
    false_positives: usize,
}

/// What was counted in a replay.
#[derive(Default, Serialize)]
struct Replay {
    refused_insertions: usize,
    /// Queries for keys that had been inserted, but were not found: only such as the filter had refused.
    false_negatives: usize,
    false_positives: usize,
    /// As many as are expected from the parameters and the loads.
    expected_false_positives: f64,
    most_bytes: usize,
    most_load_factor: f64,
    course: Vec<Point>,
}

/// Replays the log against an empty filter, whose load and bytes `size` gives.
fn replay<F: Insert>(filter: &mut F, trace: &Trace, size: impl Fn(&F) -> (f64, usize)) -> anyhow::Result<Replay> {
    let mut found = Replay::default();
    // Those that are not in the filter.
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
                    refused.insert(hash);
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

/// All operations of the log in empty filters of their own, and how many these are.
type Timed<'a> = Box<dyn Fn(&mut Stopwatch) -> anyhow::Result<(Lap, usize)> + 'a>;

/// A filter, and how it fared.
#[derive(Serialize)]
struct Tried<'a> {
    #[serde(skip)]
    label: String,
    #[serde(flatten)]
    filter: Value,
    replay: Replay,
    #[serde(rename = "operation_ns", serialize_with = "times")]
    time: Rounds,
    #[serde(skip)]
    timed: Timed<'a>,
}

/// The label of the filter that grows.
const GROWING: &str = "growing";

impl<'a> Tried<'a> {
    /// Replays the log against an empty filter.
    fn new<F: Insert>(
        (label, filter): (String, Value),
        trace: &'a Trace,
        empty: impl Fn() -> anyhow::Result<F> + 'a,
        size: impl Fn(&F) -> (f64, usize),
    ) -> anyhow::Result<Self> {
        let (replay, operations) = (replay(&mut empty()?, trace, size)?, trace.operations.len());
        let bytes = replay.most_bytes;
        let timed = move |watch: &mut Stopwatch| {
            let mut filters = copies(operations, bytes, &empty)?;
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
        Ok(Self { label, filter, replay, time: Rounds::new(rounds(operations)), timed: Box::new(timed) })
    }

    /// One filter that grows.
    fn growing(growing: Growing, trace: &'a Trace) -> anyhow::Result<Self> {
        let call = Call::growing(&growing);
        let object = json!({ "grows": true, "command": call.command(), "builder": call.rust() });
        let empty = move || {
            let builder = options::kernel()?.into_iter().fold(growing.builder(), koel::ElasticBuilder::kernel);
            builder.build().map_err(errors::not_built)
        };
        Self::new((String::from(GROWING), object), trace, empty, |filter| {
            // As long as there are few items, they are in a list.
            let load = if filter.shards() == 0 { 0.0 } else { filter.load_factor() };
            (load, filter.size_in_bytes())
        })
    }
}

impl Options {
    /// The log, if one is given.
    pub(super) fn read(&self, separator: Separator) -> anyhow::Result<Option<Trace>> {
        self.trace.as_deref().map(|path| Trace::read(path, separator)).transpose()
    }

    /// Replays the log against these filters, of which there is one at least, and one that grows.
    pub(super) fn answer(&self, asked: &Tune, trace: &Trace, filters: &Recommendation) -> anyhow::Result<Answer> {
        let best = filters.best().context("no filter to replay the log against; please report this")?;
        let (planned, rate) = (asked.planned(asked.most_items()), asked.fpr);
        let shown = asked.shown(filters.candidates(), |filter| filter);
        let progress = Progress::counting(shown.len() + 1, "replays");
        let mut tried = Vec::new();
        for filter in shown {
            let (bytes, params) = (filter.bytes(), *filter.params());
            let name = (label(&params), candidate(filter, planned));
            tried.push(Tried::new(name, trace, move || empty(params), |filter| (filter.load_factor(), bytes))?);
            progress.at(0, tried.len() as u64);
        }
        let capacity = asked.items.most.map_or(0, |_| asked.items.now);
        if let Some(growing) = Growing::of(asked, capacity, planned, rate.unwrap_or_else(|| best.false_positive_rate())) {
            tried.push(Tried::growing(growing, trace)?);
        }
        drop(progress);
        in_rounds(
            rounds(trace.operations.len()),
            &mut tried,
            |tried| tried.time.lack(),
            |tried, watch| {
                let (lap, operations) = (tried.timed)(watch)?;
                tried.time.keep(lap, operations);
                Ok(())
            },
        )?;
        let picture = self.out.as_deref().map(|folder| draw(folder, trace, &tried)).transpose()?;
        let call = Call::of(best, planned, rate)?;
        let name = self.trace.as_deref().map(crate::file::name).unwrap_or_default();
        let text = format!("\n{}\n{}\n{call}", table(trace, &tried), notes(trace, &tried, picture.as_deref()));
        let object = json!({ "asked": asked, "trace": trace, "candidates": tried, "picture": picture });
        Ok(Answer::of(asked, &question(trace, &name), Some((&call, text)), "", object))
    }
}

fn question(trace: &Trace, name: &str) -> String {
    let queries = trace.present_queries + trace.absent_queries;
    let present = percent(trace.present_queries as f64 / queries.max(1) as f64, 1);
    let mut notes = wrapped(&format!(
        "Replayed {} of {name}: {}, {queries} queries ({present} for present keys), {}. At most {} at a time, and {} of a key.",
        counted(trace.operations.len(), "operation"),
        counted(trace.insertions, "insertion"),
        counted(trace.removals, "removal"),
        counted(trace.most_items, "item"),
        counted(trace.most_copies, "copy"),
    ));
    if trace.skipped_removals > 0 {
        notes += &wrapped(&format!(
            "{} of absent keys skipped: a filter might remove other keys instead.",
            counted(trace.skipped_removals, "removal")
        ));
    }
    notes
}

fn table(trace: &Trace, tried: &[Tried<'_>]) -> String {
    let rows = tried.iter().enumerate().map(|(place, Tried { label, replay, time, .. })| {
        let absent = Some(trace.absent_queries as f64).filter(|&absent| absent > 0.0);
        let rate = |hits: f64| dash(absent.map(|absent| narrow(hits / absent)));
        vec![
            starred(label.clone(), place == 0),
            replay.most_bytes.to_string(),
            percent(replay.most_load_factor, 1),
            replay.refused_insertions.to_string(),
            replay.false_negatives.to_string(),
            rate(replay.false_positives as f64),
            rate(replay.expected_false_positives),
            median(time),
        ]
    });
    figures(&["filter", "bytes", "load", "refused", "missed", "\u{3b5}", "expected", "ns"], rows)
}

fn notes(trace: &Trace, tried: &[Tried<'_>], picture: Option<&Path>) -> String {
    let mut notes = vec![
        String::from(
            "* The smallest for its rate. f: bits per fingerprint, b: slots per bucket. Bytes, load: the most at any time.",
        ),
        format!(
            "Missed: queries for present keys that were answered \"absent\": there are none unless insertions were refused. \u{3b5}: \
             false positives among the {} for absent keys, measured, and expected at these loads.",
            counted(trace.absent_queries, "query")
        ),
        String::from("ns: per operation of this log, the median of several rounds; hashing is not included."),
    ];
    notes.extend(disturbed(tried.iter().map(|tried| &tried.time)));
    if tried.iter().any(|tried| tried.replay.refused_insertions > 0) {
        notes.push(String::from("Insertions were refused: give a larger --items."));
    }
    notes.extend(picture.map(|path| format!("Picture: {}", path.display())));
    paragraphs(&notes)
}

/// Draws load and false-positive rate of the best filter and of the one that grows. Returns the picture's path.
fn draw(folder: &Path, trace: &Trace, tried: &[Tried<'_>]) -> anyhow::Result<PathBuf> {
    let shown = tried.iter().enumerate().filter(|(place, tried)| *place == 0 || tried.label == GROWING);
    let series = shown.enumerate().flat_map(|(colour, (_, tried))| {
        let line = |what: &str, mark, of: fn(&Point) -> f64| {
            let points = tried.replay.course.iter().map(|point| (point.operations as f64, of(point)));
            Series {
                name: format!("{}: {what}", tried.label),
                colour,
                mark,
                // A logarithmic axis has no place for nothing.
                points: points.filter(|point| point.1 > 0.0).collect(),
                intervals: Vec::new(),
            }
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
    fs::create_dir_all(folder).with_context(|| format!("{}: cannot be created as a folder", folder.display()))?;
    let path = folder.join("trace.svg");
    chart::save(&chart, &path)?;
    Ok(path)
}
