//! `koel demo`, which shows what filters do and take, with a list of words that comes with the command.

use std::{
    collections::HashSet,
    fs,
    hint::black_box,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use koel::{CuckooFilter, TableKind, hash::AnyHasher};
use koel_lab::percent;

use crate::{
    errors,
    file::{self, Output, Snapshot},
    options,
    terminal::{self, Stream},
    text,
};

/// The words. `data/README.md` has their origin and license.
const WORDS: &[u8] = include_bytes!("../data/words.txt");

/// The number of absent items per word: enough to measure a rate of 0.001 with an error of a few percent.
const ABSENT_PER_WORD: usize = 20;

/// Demonstrate filters with a list of English words that comes with this command.
///
/// For the single and the packed table, at a false-positive rate of 0.1 %: builds a filter, saves it, reads it back, looks up all
/// words and two million absent items, and removes all words. Any wrong result is an error. Then prints the space and the time
/// that both filters and a hash set of the same words take. Times are measured in this run, on this machine.
#[derive(Args)]
#[command(after_help = "\
Examples:
    koel demo --keep words
    koel query words/packed.koel --item zebra")]
pub(crate) struct Demo {
    /// Keep the words and the two filters in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

impl Demo {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        // These errors must come before anything is written.
        Stream::Stdout.check()?;
        options::kernel()?;
        let temporary;
        let folder = if let Some(folder) = &self.keep {
            file::create_folder(folder)?;
            let words = folder.join("words.txt");
            fs::write(&words, WORDS).with_context(|| format!("{}: cannot be written", words.display()))?;
            folder
        } else {
            temporary = tempfile::tempdir().context("no temporary folder can be created; name one with --keep")?;
            temporary.path()
        };
        let words = lines(WORDS);
        let absent = pairs(&words);
        let absent = lines(&absent);
        let letters: usize = words.iter().map(|word| word.len()).sum();
        terminal::print(&format!("{} English words of {letters} bytes in all.\n", words.len()))?;
        let single = filter(TableKind::Single, &words, &absent, folder)?;
        let packed = filter(TableKind::Packed, &words, &absent, folder)?;
        let set = hash_set(&words, &absent, letters)?;
        let share = |of: &Column| percent(packed.bytes as f64 / of.bytes as f64, 2);
        let (of_set, of_single) = (share(&set), share(&single));
        terminal::print(&format!(
            "\n{}\nThe packed table holds {} words in {of_set} of the hash set's bytes,\nand in {of_single} of the single table's. \
             The times are those of this run.\n* HashSet<Box<[u8]>>: 17 bytes per bucket of its table, and the words' bytes;\n  \
             the allocator's overhead per word is not counted.\n",
            table(&[single, packed, set], words.len()),
            words.len()
        ))?;
        if let Some(folder) = &self.keep {
            terminal::print(&format!("The words and the two filters are in {}.\n", folder.display()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect()
}

/// Returns pairs of each word and some others, one per line. No word has a space, so no pair is a word. All pairs are distinct.
fn pairs(words: &[&[u8]]) -> Vec<u8> {
    let mut pairs = Vec::new();
    for (first, word) in words.iter().enumerate() {
        for step in 1..=ABSENT_PER_WORD {
            [word, &b" "[..], words[(first + step) % words.len()], b"\n"].iter().for_each(|part| pairs.extend_from_slice(part));
        }
    }
    pairs
}

/// Calls `act` with each item. Returns how often it returned `true`, and the nanoseconds per call.
fn time_each(items: &[&[u8]], mut act: impl FnMut(&[u8]) -> bool) -> (usize, f64) {
    let start = Instant::now();
    let number = items.iter().filter(|item| black_box(act(black_box(item)))).count();
    (number, start.elapsed().as_secs_f64() * 1e9 / items.len() as f64)
}

/// The results of one kind of set that holds all words.
struct Column {
    name: String,
    bytes: usize,
    /// The measured and the expected rate; `None` for a hash set, which has no false positives.
    false_positives: Option<[f64; 2]>,
    /// Nanoseconds of an insertion, of a lookup of a word, of a lookup of an absent item, and of a removal.
    times: [f64; 4],
}

/// Builds, saves, reads, queries and empties a filter, and prints each result.
fn filter(table: TableKind, words: &[&[u8]], absent: &[&[u8]], folder: &Path) -> anyhow::Result<Column> {
    let builder = CuckooFilter::builder().hasher(AnyHasher::Xxh3).table(table).false_positive_rate(options::RATE);
    let mut filter = builder.capacity(words.len()).build().map_err(|error| errors::build(error, ""))?;
    options::set_kernel(|kernel| filter.set_kernel(kernel))?;
    let empty = filter.clone();
    let (inserted, insert) = time_each(words, |word| filter.insert(word).is_ok());
    let path = folder.join(format!("{table}.koel"));
    let bytes = Output::new(&path)?.save(&filter)?;
    let Snapshot::Fixed(mut read) = file::load_snapshot(&path)? else {
        bail!("the {table} table: another kind of filter was read back; please report this");
    };
    ensure!(read == filter, "the {table} table: the filter that was read back differs from the one saved; please report this");
    let expected = read.false_positive_rate();
    let (found, find) = time_each(words, |word| read.contains(word));
    let (false_positives, miss) = time_each(absent, |item| read.contains(item));
    let (removed, remove) = time_each(words, |word| read.remove(word));
    let counts = [inserted, found, removed];
    ensure!(
        counts == [words.len(); 3] && read == empty,
        "the {table} table: of {} words, inserted, found and removed: {counts:?}; please report this",
        words.len()
    );
    terminal::print(&format!(
        "The {table} table: saved in {bytes} bytes and read back; all words found;\n  \
         {false_positives} of {} absent items reported as present; all words removed.\n",
        absent.len()
    ))?;
    Ok(Column {
        name: format!("{table} table"),
        bytes: read.params().table_bytes(),
        false_positives: Some([false_positives as f64 / absent.len() as f64, expected]),
        times: [insert, find, miss, remove],
    })
}

/// Fills, queries and empties the standard library's hash set.
fn hash_set(words: &[&[u8]], absent: &[&[u8]], letters: usize) -> anyhow::Result<Column> {
    let mut set: HashSet<Box<[u8]>> = HashSet::with_capacity(words.len());
    // The number of buckets is a power of two, and `capacity` is seven eighths of it. Each bucket has an entry and a control byte.
    let buckets = (set.capacity() * 8 / 7).next_power_of_two();
    let (inserted, insert) = time_each(words, |word| set.insert(word.into()));
    ensure!(inserted == words.len(), "a word occurs twice in the list; please report this");
    let [find, miss] = [words, absent].map(|items| time_each(items, |item| set.contains(item)).1);
    let (_, remove) = time_each(words, |word| set.remove(word));
    Ok(Column {
        name: String::from("HashSet *"),
        bytes: buckets * (size_of::<Box<[u8]>>() + 1) + letters,
        false_positives: None,
        times: [insert, find, miss, remove],
    })
}

fn table(columns: &[Column; 3], words: usize) -> String {
    let row =
        |label: &str, cell: &dyn Fn(&Column) -> String| [label.to_owned()].into_iter().chain(columns.iter().map(cell)).collect();
    let rate = |column: &Column, which: usize| {
        column.false_positives.map_or_else(|| String::from("none"), |rates| percent(rates[which], 2))
    };
    let [single, packed, set] = columns.each_ref().map(|column| column.name.as_str());
    let labels = ["ns to insert a word", "ns to find a word", "ns to miss an absent item", "ns to remove a word"];
    let times = labels.iter().enumerate().map(|(which, label)| row(label, &|column| format!("{:.1}", column.times[which])));
    let facts = [
        row("bytes", &|column| column.bytes.to_string()),
        row("bits per item", &|column| format!("{:.2}", 8.0 * column.bytes as f64 / words as f64)),
        row("false positives", &|column| rate(column, 0)),
        row("- expected", &|column| rate(column, 1)),
    ];
    let header = ["set", single, packed, set].map(String::from).to_vec();
    text::table(&[header].into_iter().chain(facts).chain(times).collect::<Vec<_>>(), &[0], &[1])
}
