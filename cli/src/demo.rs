//! `koel demo`: every operation of a filter, on a list of words that comes with the command.

use std::{
    collections::HashSet,
    fs,
    hint::black_box,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use koel::{AnyHasher, Builder, CuckooFilter, TableKind};
use koel_lab::percent;

use crate::{
    errors,
    file::{self, Changing, Filter, Output},
    numbers, options,
    terminal::{self, Stream},
    text::table,
};

/// `data/README.md` has their origin and licence.
const WORDS: &[u8] = include_bytes!("../data/words.txt");

/// Absent items per word: enough to measure a rate of 0.001 to a few per cent.
const ABSENT_PER_WORD: usize = 20;

/// Demonstrate filters with a list of English words that comes with this command.
///
/// For the single and the packed table, at the same false-positive rate: builds a filter, saves it, reads it back, looks up all
/// words and two million absent items, and removes all words. Any wrong answer is an error. Then prints the space and the time
/// that both filters and a hash set of the same words take. The times are those of this run, on this machine.
#[derive(Args)]
#[command(after_help = "\
Examples:
    koel demo --keep words
    koel query words/packed.koel --item zebra")]
pub(crate) struct Demo {
    /// The false-positive rate: the fraction of absent items that may be reported as present, between 0 and 1, such as 0.1%
    #[arg(long, value_name = "E", default_value = "0.001", value_parser = numbers::rate, allow_negative_numbers = true)]
    fpr: f64,

    /// Keep the words and the two filters in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

impl Demo {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        // Refused before anything is written.
        Stream::Stdout.check()?;
        let single = self.empty(TableKind::Single)?;
        let packed = self.empty(TableKind::Packed)?;
        let temporary;
        let folder = if let Some(folder) = &self.keep {
            fs::create_dir_all(folder).with_context(|| format!("{}: cannot be created as a folder", folder.display()))?;
            let words = folder.join("words.txt");
            fs::write(&words, WORDS).with_context(|| format!("{}: cannot be written", words.display()))?;
            folder
        } else {
            temporary = tempfile::tempdir().context("no temporary folder can be created; name one with --keep")?;
            temporary.path()
        };
        let words = words();
        let absent = Absent::pairs(&words, ABSENT_PER_WORD);
        terminal::print(&format!("{} English words of {} bytes in all.\n", words.len(), letters(&words)))?;
        let single = live(single, &words, &absent, folder)?;
        let packed = live(packed, &words, &absent, folder)?;
        let set = hash_set(&words, &absent)?;
        terminal::print(&report(&single, &packed, &set, words.len()))?;
        if let Some(folder) = &self.keep {
            terminal::print(&format!("The words and the two filters are in {}.\n", folder.display()))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn empty(&self, table: TableKind) -> anyhow::Result<Filter> {
        let builder = CuckooFilter::builder().hasher(AnyHasher::Xxh3).capacity(words().len());
        let builder = options::kernel()?.into_iter().fold(builder, Builder::kernel);
        builder.table(table).false_positive_rate(self.fpr).build().map_err(errors::not_built)
    }
}

fn words() -> Vec<&'static [u8]> {
    WORDS.split(|&byte| byte == b'\n').filter(|word| !word.is_empty()).collect()
}

fn letters(words: &[&[u8]]) -> usize {
    words.iter().map(|word| word.len()).sum()
}

/// Builds, saves, reads, queries and empties a filter, and prints each result.
fn live(mut filter: Filter, words: &[&[u8]], absent: &Absent, folder: &Path) -> anyhow::Result<Row> {
    let table = filter.params().table();
    let empty = filter.clone();
    for word in words {
        filter.insert(*word).with_context(|| format!("the {table} table"))?;
    }
    let path = folder.join(format!("{table}.koel"));
    let bytes = Output::new(&path)?.save(&filter)?;
    let Changing::Fixed(mut read) = file::load_changing(&path)? else {
        bail!("the {table} table: another kind of filter was read back; please report this");
    };
    ensure!(read == filter, "the {table} table: the filter that was read back differs from the one saved; please report this");
    let found = words.iter().filter(|word| read.contains(**word)).count();
    ensure!(found == words.len(), "the {table} table: {found} of {} words found; please report this", words.len());
    let mistaken = absent.iter().filter(|item| read.contains(*item)).count();
    let expected = read.false_positive_rate();
    let bits_per_item = read.bits_per_item();
    for word in words {
        ensure!(read.remove(*word), "the {table} table: a word could not be removed; please report this");
    }
    ensure!(read == empty, "the {table} table: it is not empty after the removal of all words; please report this");
    terminal::print(&format!(
        "The {table} table: saved in {bytes} bytes and read back; all words found;\n  \
         {mistaken} of {} absent items reported as present; all words removed.\n",
        absent.len()
    ))?;
    Ok(Row {
        name: format!("{table} table"),
        bytes: read.params().table_bytes(),
        bits_per_item,
        false_positives: Some((mistaken as f64 / absent.len() as f64, expected)),
        times: measure(&mut read, words, absent, |set, word| set.insert(word).is_ok(), Filter::contains, Filter::remove)?,
    })
}

/// The same set in the standard library's hash set.
fn hash_set(words: &[&[u8]], absent: &Absent) -> anyhow::Result<Row> {
    let mut set: HashSet<Box<[u8]>> = HashSet::with_capacity(words.len());
    for word in words {
        ensure!(set.insert((*word).into()), "a word occurs twice in the list; please report this");
    }
    // The number of buckets is a power of two, and `capacity` is seven eighths of it. A bucket has an entry and a control byte.
    let buckets = (set.capacity() * 8 / 7).next_power_of_two();
    let bytes = buckets * (size_of::<Box<[u8]>>() + 1) + letters(words);
    set.clear();
    let bits_per_item = 8.0 * bytes as f64 / words.len() as f64;
    Ok(Row {
        name: String::from("HashSet *"),
        bytes,
        bits_per_item,
        false_positives: None,
        times: measure(&mut set, words, absent, |set, word| set.insert(word.into()), HashSet::contains, HashSet::remove)?,
    })
}

fn report(single: &Row, packed: &Row, set: &Row, words: usize) -> String {
    let columns = [Row::LABELS.map(String::from), single.cells(), packed.cells(), set.cells()];
    let rows: Vec<Vec<_>> = (0..Row::LABELS.len()).map(|row| columns.iter().map(|column| &column[row]).collect()).collect();
    let table = table(&rows, 2, &[0], &[1]);
    let share = |of: &Row| percent(packed.bytes as f64 / of.bytes as f64, 2);
    format!(
        "\n{table}\nThe packed table holds {words} words in {} of the hash set's bytes,\nand in {} of the single table's. \
         The times are those of this run.\n\
         * HashSet<Box<[u8]>>: 17 bytes per bucket of its table, and the words' bytes;\n  \
         the allocator's overhead per word is not counted.\n",
        share(set),
        share(single)
    )
}

/// An operation is repeated for at least this long.
const LONG_ENOUGH: Duration = Duration::from_millis(120);

/// Items that are not words, stored end to end in one allocation.
struct Absent {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Absent {
    /// Pairs of each word and `each` others, separated by a space. No word has a space, so no pair is a word; and the pairs are
    /// distinct as long as `each` is less than the number of words.
    fn pairs(words: &[&[u8]], each: usize) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(words.len() * each));
        for (first, word) in words.iter().enumerate() {
            for step in 1..=each {
                let second = words[(first + step) % words.len()];
                bytes.extend_from_slice(word);
                bytes.push(b' ');
                bytes.extend_from_slice(second);
                ends.push(bytes.len());
            }
        }
        Self { bytes, ends }
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let item = &self.bytes[start..end];
            start = end;
            item
        })
    }
}

/// Nanoseconds per operation.
struct Times {
    insert: f64,
    present: f64,
    absent: f64,
    remove: f64,
}

/// Measures an empty set, and leaves it empty. Checks every answer except false positives: whether a word was inserted, found or
/// removed.
fn measure<S>(
    set: &mut S,
    words: &[&[u8]],
    absent: &Absent,
    insert_one: impl Fn(&mut S, &[u8]) -> bool,
    contains: impl Fn(&S, &[u8]) -> bool,
    remove_one: impl Fn(&mut S, &[u8]) -> bool,
) -> anyhow::Result<Times> {
    let (mut insert, mut present, mut remove) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let mut rounds = 0_usize;
    while insert.min(present).min(remove) < LONG_ENOUGH {
        let mut clock = Instant::now();
        let mut lap = move || std::mem::replace(&mut clock, Instant::now()).elapsed();
        let inserted = words.iter().filter(|word| black_box(insert_one(set, black_box(word)))).count();
        insert += lap();
        let found = words.iter().filter(|word| black_box(contains(set, black_box(word)))).count();
        present += lap();
        let removed = words.iter().filter(|word| black_box(remove_one(set, black_box(word)))).count();
        remove += lap();
        ensure!([inserted, found, removed] == [words.len(); 3], "a word was lost during the measurement; please report this");
        rounds += 1;
    }
    let inserted = words.iter().filter(|word| insert_one(set, word)).count();
    let (mut missing, mut absents) = (Duration::ZERO, 0);
    while missing < LONG_ENOUGH {
        let start = Instant::now();
        black_box(absent.iter().filter(|item| black_box(contains(set, black_box(item)))).count());
        missing += start.elapsed();
        absents += absent.len();
    }
    let removed = words.iter().filter(|word| remove_one(set, word)).count();
    ensure!(inserted == removed, "a word was lost during the measurement; please report this");
    let each = |time: Duration, operations: usize| time.as_secs_f64() * 1e9 / operations as f64;
    let all = rounds * words.len();
    Ok(Times {
        insert: each(insert, all),
        present: each(present, all),
        absent: each(missing, absents),
        remove: each(remove, all),
    })
}

/// The results for one set.
struct Row {
    name: String,
    bytes: usize,
    bits_per_item: f64,
    /// The measured and the expected rate. A hash set has no false positives.
    false_positives: Option<(f64, f64)>,
    times: Times,
}

impl Row {
    /// The labels of the cells.
    const LABELS: [&str; 9] = [
        "set",
        "bytes",
        "bits per item",
        "false positives",
        "- expected",
        "ns to insert a word",
        "ns to find a word",
        "ns to miss an absent item",
        "ns to remove a word",
    ];

    fn cells(&self) -> [String; 9] {
        let (measured, expected) = match self.false_positives {
            Some((measured, expected)) => (percent(measured, 2), percent(expected, 2)),
            None => (String::from("none"), String::from("none")),
        };
        let Times { insert, present, absent, remove } = self.times;
        let [insert, present, absent, remove] = [insert, present, absent, remove].map(|time| format!("{time:.1}"));
        let (bytes, bits_per_item) = (self.bytes.to_string(), format!("{:.2}", self.bits_per_item));
        [self.name.clone(), bytes, bits_per_item, measured, expected, insert, present, absent, remove]
    }
}
