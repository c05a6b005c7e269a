//! A log of real operations, replayed against the recommended filters and one that grows: `--trace FILE`.

use std::{
    collections::HashMap,
    fs,
    hint::black_box,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow, bail, ensure};
use clap::Args;
use koel::{
    Addressing, ElasticFilter, Filter, Hasher, Params, Prehashed,
    backing::{Core, CoreMut, CoreRemove},
    tuning::{Candidate, Recommendation},
};
use koel_lab::{Axis, Chart, Lap, Mark, Rounds, Series, Stopwatch, chart, percent};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Answer, Tune,
    answer::{candidate, label},
    call::Call,
    plans::Growing,
    trial::{self, COPIES, DISTURBED, LAP, MANY_KEYS},
};
use crate::{
    errors,
    items::{Items, Separator},
    numbers::MAX_COPIES,
    options,
    terminal::Progress,
    text::{counted, narrow, table, wrapped},
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

/// A log, as operations on hashes, without the removals of absent keys.
#[derive(Serialize)]
pub(super) struct Trace {
    #[serde(skip)]
    operations: Vec<(u64, Operation)>,
    insertions: usize,
    present_queries: usize,
    absent_queries: usize,
    removals: usize,
    /// Removals of absent keys.
    skipped_removals: usize,
    most_items: usize,
    most_copies: u32,
}

impl Trace {
    /// The most items at any time.
    pub(super) fn most_items(&self) -> usize {
        self.most_items
    }

    /// The most copies of a key at any time for which a filter can have room.
    pub(super) fn most_copies(&self) -> u32 {
        self.most_copies.clamp(1, MAX_COPIES)
    }

    fn read(path: &Path, separator: Separator) -> anyhow::Result<Self> {
        let (mut items, hasher) = (Items::open(path, separator, true)?, trial::hasher()?);
        let mut lines = 0;
        let next = || {
            let Some(line) = items.advance()? else { return Ok(None) };
            let operation = parse(line).map(|(operation, key)| (operation, hasher.hash(key)));
            let operation = operation.map_err(|what| anyhow!("{}: {what}; {REMEDY}", items.place()))?;
            ensure!(lines < MOST, "{}: {MOST} operations have been kept, the limit; give a shorter log", items.place());
            lines += 1;
            Ok(Some(operation))
        };
        let trace = Self::of(next)?;
        if lines == 0 {
            bail!("--trace: {} has no operations; {REMEDY}", crate::file::name(path));
        }
        Ok(trace)
    }

    /// Follows the operations with an exact multiset.
    fn of(mut next: impl FnMut() -> anyhow::Result<Option<(Operation, u64)>>) -> anyhow::Result<Self> {
        let mut trace = Self {
            operations: Vec::new(),
            insertions: 0,
            present_queries: 0,
            absent_queries: 0,
            removals: 0,
            skipped_removals: 0,
            most_items: 0,
            most_copies: 0,
        };
        let (mut copies, mut items) = (HashMap::<u64, u32>::new(), 0);
        while let Some((mut operation, hash)) = next()? {
            match operation {
                Operation::Insert => {
                    let copies = copies.entry(hash).or_default();
                    *copies += 1;
                    items += 1;
                    trace.insertions += 1;
                    trace.most_copies = trace.most_copies.max(*copies);
                    trace.most_items = trace.most_items.max(items);
                }
                Operation::Remove => {
                    let Some(left) = copies.get_mut(&hash) else {
                        trace.skipped_removals += 1;
                        continue;
                    };
                    *left -= 1;
                    items -= 1;
                    trace.removals += 1;
                    if *left == 0 {
                        copies.remove(&hash);
                    }
                }
                Operation::QueryAbsent | Operation::QueryPresent if copies.contains_key(&hash) => {
                    operation = Operation::QueryPresent;
                    trace.present_queries += 1;
                }
                Operation::QueryAbsent | Operation::QueryPresent => trace.absent_queries += 1,
            }
            trace.operations.push((hash, operation));
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
fn replay<C: CoreMut + Core + CoreRemove, H: Hasher>(
    filter: &mut Filter<C, H>,
    trace: &Trace,
    size: impl Fn(&Filter<C, H>) -> (f64, usize),
) -> anyhow::Result<Replay> {
    let mut found = Replay::default();
    // Copies that are not in the filter.
    let mut refused = HashMap::<u64, u32>::new();
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
                    *refused.entry(hash).or_default() += 1;
                }
                Operation::QueryAbsent => {
                    absent_queries += 1;
                    found.false_positives += usize::from(filter.contains(&key));
                }
                Operation::QueryPresent if !filter.contains(&key) => {
                    ensure!(refused.contains_key(&hash), "a filter lost a key; please report this");
                    found.false_negatives += 1;
                }
                Operation::Insert | Operation::QueryPresent => {}
                Operation::Remove => match refused.get_mut(&hash) {
                    Some(1) => drop(refused.remove(&hash)),
                    Some(copies) => *copies -= 1,
                    None => ensure!(filter.remove(&key), "a filter lost a key; please report this"),
                },
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

/// The time of all operations, and how many these are: few operations are repeated in filters of their own.
fn time<C: CoreMut + Core + CoreRemove, H: Hasher>(
    empty: impl Fn() -> anyhow::Result<Filter<C, H>>,
    trace: &Trace,
    bytes: usize,
    watch: &mut Stopwatch,
) -> anyhow::Result<(Lap, usize)> {
    let copies = LAP.div_ceil(trace.operations.len().max(1)).min(COPIES / bytes.max(1)).max(1);
    let mut filters = (0..copies).map(|_| empty()).collect::<anyhow::Result<Vec<_>>>()?;
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
    Ok((lap, copies * trace.operations.len()))
}

/// A filter that is tried.
enum Subject<'a> {
    Fixed(&'a Candidate),
    Growing(Growing),
}

impl Subject<'_> {
    fn label(&self, is_best: bool) -> String {
        match self {
            Self::Fixed(candidate) => label(candidate.params(), is_best),
            Self::Growing(_) => String::from("growing"),
        }
    }

    fn empty(params: &Params) -> anyhow::Result<crate::file::Filter> {
        trial::empty(*params)
    }

    fn empty_growing(growing: &Growing) -> anyhow::Result<ElasticFilter> {
        let builder = options::kernel()?.into_iter().fold(growing.builder(), koel::ElasticBuilder::kernel);
        builder.build().map_err(errors::not_built)
    }

    fn replay(&self, trace: &Trace) -> anyhow::Result<Replay> {
        match self {
            Self::Fixed(candidate) => {
                let bytes = candidate.bytes();
                replay(&mut Self::empty(candidate.params())?, trace, |filter| (filter.load_factor(), bytes))
            }
            Self::Growing(growing) => replay(&mut Self::empty_growing(growing)?, trace, |filter| {
                let slots = filter.buckets() as f64 * f64::from(filter.params().bucket_size());
                (filter.len() as f64 / slots, filter.size_in_bytes())
            }),
        }
    }

    fn time(&self, trace: &Trace, bytes: usize, watch: &mut Stopwatch) -> anyhow::Result<(Lap, usize)> {
        match self {
            Self::Fixed(candidate) => time(|| Self::empty(candidate.params()), trace, bytes, watch),
            Self::Growing(growing) => time(|| Self::empty_growing(growing), trace, bytes, watch),
        }
    }
}

/// A filter, and how it fared.
struct Tried<'a> {
    subject: Subject<'a>,
    replay: Replay,
    time: Rounds,
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
        let mut subjects: Vec<_> = asked.shown(filters).into_iter().map(Subject::Fixed).collect();
        if asked.addressing == Addressing::AnySize {
            subjects.push(Subject::Growing(Growing {
                capacity: asked.items.most.map_or(0, |_| asked.items.now),
                most: planned,
                rate: rate.unwrap_or_else(|| best.false_positive_rate()),
                table: asked.table,
                bucket_size: asked.growing_bucket_size(),
            }));
        }
        let rounds = if trace.operations.len() < MANY_KEYS { trial::ROUNDS } else { trial::FEWER_ROUNDS };
        let progress = Progress::counting((rounds + 1) * subjects.len(), "measurements");
        let replays = subjects.into_iter().zip(1..).map(|(subject, number)| {
            let replay = subject.replay(trace)?;
            progress.at(0, number);
            Ok(Tried { subject, replay, time: Rounds::new(rounds) })
        });
        let mut tried = replays.collect::<anyhow::Result<Vec<_>>>()?;
        let mut watch = Stopwatch::new();
        for round in 0..rounds + rounds.div_ceil(2) {
            for tried in tried.iter_mut().filter(|tried| round < rounds || tried.time.lack()) {
                let (lap, operations) = tried.subject.time(trace, tried.replay.most_bytes, &mut watch)?;
                tried.time.keep(lap, operations);
            }
            progress.at(0, ((round + 2).min(rounds + 1) * tried.len()) as u64);
        }
        drop(progress);
        let picture = self.out.as_deref().map(|folder| draw(folder, trace, &tried)).transpose()?;
        let call = Call::of(best, planned, rate)?;
        let name = self.trace.as_deref().map(crate::file::name).unwrap_or_default();
        let replayed = [question(trace, &name), table_of(trace, &tried), notes(trace, &tried, picture.as_deref())].join("\n");
        Ok(Answer {
            text: format!("{replayed}\n{}\n\n{}\n", call.command(), call.rust()),
            object: json!({
                "asked": asked.object(),
                "trace": trace,
                "candidates": tried.iter().map(|tried| tried.object(planned)).collect::<Vec<_>>(),
                "picture": picture,
                "builder": call.rust(),
                "command": call.command(),
            }),
            found: true,
        })
    }
}

impl Tried<'_> {
    fn object(&self, planned: usize) -> Value {
        let mut object = match &self.subject {
            Subject::Fixed(filter) => candidate(filter, planned),
            Subject::Growing(growing) => {
                json!({ "grows": true, "command": growing.call().command(), "builder": growing.call().rust() })
            }
        };
        object["replay"] = json!(self.replay);
        object["operation_ns"] = trial::times(&self.time);
        object
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
        if trace.most_copies == 1 { String::from("1 copy") } else { format!("{} copies", trace.most_copies) },
    ));
    if trace.skipped_removals > 0 {
        notes += &wrapped(&format!(
            "{} of absent keys skipped: a filter might remove other keys instead.",
            counted(trace.skipped_removals, "removal")
        ));
    }
    notes
}

fn table_of(trace: &Trace, tried: &[Tried<'_>]) -> String {
    let header = ["filter", "bytes", "load", "refused", "missed", "\u{3b5}", "expected", "ns"];
    let mut rows = vec![header.map(String::from).to_vec()];
    rows.extend(tried.iter().enumerate().map(|(number, Tried { subject, replay, time })| {
        let rate = |hits: f64| match trace.absent_queries {
            0 => String::from("-"),
            absent => narrow(hits / absent as f64),
        };
        vec![
            subject.label(number == 0),
            replay.most_bytes.to_string(),
            percent(replay.most_load_factor, 1),
            replay.refused_insertions.to_string(),
            replay.false_negatives.to_string(),
            rate(replay.false_positives as f64),
            rate(replay.expected_false_positives),
            trial::time(time),
        ]
    }));
    table(&rows, 2, &[0], &[1])
}

fn notes(trace: &Trace, tried: &[Tried<'_>], picture: Option<&Path>) -> String {
    let mut notes = vec![
        String::from(
            "* The smallest for its rate. f: bits per fingerprint, b: slots per bucket. Bytes, load: the most at any time.",
        ),
        format!(
            "Missed: queries for present keys that were answered \"absent\": there are none unless insertions were refused. \u{3b5}: \
             false positives among the {} for absent keys, measured, and expected at these loads.",
            if trace.absent_queries == 1 { String::from("1 query") } else { format!("{} queries", trace.absent_queries) }
        ),
        String::from("ns: per operation of this log, the median of several rounds; hashing is not included."),
    ];
    if tried.iter().any(|tried| trial::is_disturbed(&tried.time)) {
        notes.push(String::from(DISTURBED));
    }
    if tried.iter().any(|tried| tried.replay.refused_insertions > 0) {
        notes.push(String::from("Insertions were refused: give a larger --items, or --bucket-size for more copies of a key."));
    }
    notes.extend(picture.map(|path| format!("Picture: {}", path.display())));
    notes.iter().map(|note| wrapped(note)).collect()
}

/// Draws load and false-positive rate of the best filter and of the one that grows. Returns the picture's path.
fn draw(folder: &Path, trace: &Trace, tried: &[Tried<'_>]) -> anyhow::Result<PathBuf> {
    let shown = tried.iter().enumerate().filter(|(number, tried)| *number == 0 || matches!(tried.subject, Subject::Growing(_)));
    let series = shown.enumerate().flat_map(|(colour, (_, tried))| {
        let line = |what: &str, mark, of: fn(&Point) -> f64| {
            let points = tried.replay.course.iter().map(|point| (point.operations as f64, of(point)));
            Series {
                name: format!("{}: {what}", tried.subject.label(false)),
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
    let chart = Chart {
        file: String::from("trace"),
        topic: format!("Load and false-positive rate over {}", counted(trace.operations.len(), "operation")),
        finding: None,
        caption: String::new(),
        x: Axis::linear("operations"),
        y: Axis::log("load; false-positive rate"),
        series: series.filter(|series| !series.points.is_empty()).collect(),
    };
    fs::create_dir_all(folder).with_context(|| format!("{}: cannot be created as a folder", folder.display()))?;
    let path = folder.join("trace.svg");
    chart::save(&chart, &path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use koel::tuning::{Constraints, recommend};

    use super::*;

    fn trace(operations: &[(Operation, u64)]) -> Trace {
        let mut operations = operations.iter().copied();
        Trace::of(|| Ok(operations.next())).expect("nothing to read")
    }

    /// 1000 keys: inserted, queried with as many others, every second one removed, queried again.
    fn life() -> Trace {
        let key = |n: u64| koel::Xxh3.hash(7, &n.to_le_bytes());
        let all = |operation, keys: std::ops::Range<u64>, step| keys.step_by(step).map(move |n| (operation, key(n)));
        let life = all(Operation::Insert, 0..1000, 1)
            .chain(all(Operation::QueryAbsent, 0..2000, 1))
            .chain(all(Operation::Remove, 0..1000, 2))
            .chain(all(Operation::QueryAbsent, 0..1000, 1));
        trace(&life.collect::<Vec<_>>())
    }

    #[test]
    fn a_multiset_knows_what_is_present() {
        use Operation::{Insert, QueryAbsent as Query, QueryPresent, Remove};
        let found = trace(&[(Query, 1), (Insert, 1), (Insert, 1), (Remove, 1), (Query, 1), (Remove, 1), (Query, 1), (Remove, 1)]);
        assert_eq!((found.insertions, found.present_queries, found.absent_queries), (2, 1, 2));
        assert_eq!((found.removals, found.skipped_removals, found.most_items, found.most_copies), (2, 1, 2, 2));
        assert!(found.operations[4].1 == QueryPresent && found.operations.len() == 7);
    }

    #[test]
    fn nothing_is_missed_and_rates_are_as_expected() {
        let trace = life();
        assert_eq!((trace.present_queries, trace.absent_queries, trace.most_items), (1500, 1500, 1000));
        let advice = recommend(1000, 0.1, &Constraints::default());
        let growing = Growing { capacity: 0, most: 1000, rate: 0.1, table: None, bucket_size: None };
        for subject in advice.candidates().iter().map(Subject::Fixed).chain([Subject::Growing(growing)]) {
            let found = subject.replay(&trace).expect("no key is lost");
            let what = subject.label(false);
            assert_eq!((found.refused_insertions, found.false_negatives), (0, 0), "{what}");
            // Five standard deviations.
            let expected = found.expected_false_positives;
            assert!((found.false_positives as f64 - expected).abs() < 5.0 * expected.sqrt(), "{what}: {expected}");
            let last = found.course[found.course.len() - 1];
            assert_eq!((last.operations, last.items, last.absent_queries), (4500, 500, 1500), "{what}");
            assert!(found.most_load_factor > last.load_factor && last.load_factor > 0.0, "{what}");
        }
    }

    /// Refused keys are missed, and their removal takes nothing away.
    #[test]
    fn a_filter_that_is_too_small_misses_what_it_refused_and_no_more() {
        let trace = life();
        let advice = recommend(400, 0.1, &Constraints::default());
        let found = Subject::Fixed(advice.best().expect("one")).replay(&trace).expect("no other key is lost");
        assert!(found.refused_insertions > 400 && found.refused_insertions < 600, "{}", found.refused_insertions);
        assert!(found.false_negatives > 400 && found.false_negatives < 2 * found.refused_insertions, "{}", found.false_negatives);
        // What is left was inserted, and half of it was removed.
        let last = found.course[found.course.len() - 1];
        let stored = 1000 - found.refused_insertions;
        assert!(last.items.abs_diff(stored / 2) < 60, "{} of {stored}", last.items);
    }
}
