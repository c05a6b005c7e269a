//! `koel demo`: every operation of a filter, on a list of words that comes with the command.

mod measure;

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, ensure};
use clap::Args;
use koel::{AnyHasher, CuckooFilter, TableKind};
use koel_lab::percent;
use tabled::{
    builder::Builder,
    settings::{Alignment, Style, object::Columns},
};

use crate::{
    file::{self, Filter, Output},
    messages, numbers, options, stdout,
    streams::Stream,
};
use measure::{Absent, Row, Set, measure};

/// `data/README.md` has their origin and licence.
const WORDS: &[u8] = include_bytes!("../../data/words.txt");

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
        stdout::say(&format!("{} English words of {} bytes in all.\n", words.len(), letters(&words)))?;
        let single = live(single, &words, &absent, folder)?;
        let packed = live(packed, &words, &absent, folder)?;
        let set = hash_set(&words, &absent)?;
        stdout::say(&report(&single, &packed, &set, words.len()))?;
        if let Some(folder) = &self.keep {
            stdout::say(&format!("The words and the two filters are in {}.\n", folder.display()))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn empty(&self, table: TableKind) -> anyhow::Result<Filter> {
        let mut builder = CuckooFilter::builder().hasher(AnyHasher::Xxh3).capacity(words().len());
        if let Some(kernel) = options::kernel()? {
            builder = builder.kernel(kernel);
        }
        builder.table(table).false_positive_rate(self.fpr).build().map_err(messages::not_built)
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
    let (mut read, _) = file::load(&path)?;
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
    stdout::say(&format!(
        "The {table} table: saved in {bytes} bytes and read back; all words found;\n  \
         {mistaken} of {} absent items reported as present; all words removed.\n",
        absent.len()
    ))?;
    Ok(Row {
        name: format!("{table} table"),
        bytes: read.params().table_bytes(),
        bits_per_item,
        false_positives: Some((mistaken as f64 / absent.len() as f64, expected)),
        times: measure(&mut read, words, absent)?,
    })
}

/// The same set in the standard library's hash set.
fn hash_set(words: &[&[u8]], absent: &Absent) -> anyhow::Result<Row> {
    let mut set: HashSet<Box<[u8]>> = HashSet::with_capacity(words.len());
    for word in words {
        ensure!(Set::insert(&mut set, word), "a word occurs twice in the list; please report this");
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
        times: measure(&mut set, words, absent)?,
    })
}

fn report(single: &Row, packed: &Row, set: &Row, words: usize) -> String {
    let columns = [single, packed, set].map(Row::cells);
    let mut table = Builder::new();
    for (label, row) in Row::LABELS.into_iter().zip(0..) {
        table.push_record([label].into_iter().chain(columns.iter().map(|column| column[row].as_str())));
    }
    let mut table = table.build();
    table.with(Style::markdown()).modify(Columns::new(1..), Alignment::right());
    let share = |of: &Row| percent(packed.bytes as f64 / of.bytes as f64, 2);
    format!(
        "\n{table}\n\nThe packed table holds {words} words in {} of the hash set's bytes,\nand in {} of the single table's. \
         The times are those of this run.\n\
         * HashSet<Box<[u8]>>: 17 bytes per bucket of its table, and the words' bytes;\n  \
         the allocator's overhead per word is not counted.\n",
        share(set),
        share(single)
    )
}
