//! `koel demo`: the whole life of a filter, on a list of words that comes with the command.

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
use tabled::{
    builder::Builder,
    settings::{Alignment, Style, object::Columns},
};

use crate::{
    facts::percent,
    file::{self, Filter, Output},
    messages, options, stdout,
    streams::Stream,
};
use measure::{Absent, Row, Set, measure};

/// `data/README.md` has their origin and licence.
const WORDS: &[u8] = include_bytes!("../../data/words.txt");

/// Absent items for each word: enough that a rate of 0.001 is known to a few per cent.
const ABSENT_PER_WORD: usize = 20;

/// Show what a filter does, on a list of English words that comes with this command.
///
/// Builds the single and the packed table at the same false-positive rate, saves each, reads it back, looks all words up, looks
/// two million items up that are not in it, and removes all words again. Any wrong answer is an error. Then it prints what each
/// takes, and what a hash set of the same words takes. The times are of this run, on this machine.
#[derive(Args)]
#[command(after_help = "\
Examples:
    koel demo --keep words
    koel query words/packed.koel --item zebra")]
pub(crate) struct Demo {
    /// The share of absent items that may seem to be there, between 0 and 1
    #[arg(long, value_name = "E", default_value = "0.001", value_parser = options::rate, allow_negative_numbers = true)]
    fpr: f64,

    /// Leave the words and the filters of them in this folder
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
            fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made a folder", folder.display()))?;
            let words = folder.join("words.txt");
            fs::write(&words, WORDS).with_context(|| format!("{}: cannot be written", words.display()))?;
            folder
        } else {
            temporary = tempfile::tempdir().context("no temporary folder can be made; name one with --keep")?;
            temporary.path()
        };
        let words = words();
        let absent = Absent::pairs(&words, ABSENT_PER_WORD);
        stdout::say(&format!("{} English words, {} bytes of letters.\n", words.len(), letters(&words)))?;
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
        builder.table(table).false_positive_rate(self.fpr).build().map_err(|error| messages::parameter(&error))
    }
}

fn words() -> Vec<&'static [u8]> {
    WORDS.split(|&byte| byte == b'\n').filter(|word| !word.is_empty()).collect()
}

fn letters(words: &[&[u8]]) -> usize {
    words.iter().map(|word| word.len()).sum()
}

/// The life of a filter, told as it goes.
fn live(mut filter: Filter, words: &[&[u8]], absent: &Absent, folder: &Path) -> anyhow::Result<Row> {
    let table = filter.params().table();
    let empty = filter.clone();
    for word in words {
        filter.insert(*word).with_context(|| format!("the {table} table"))?;
    }
    let path = folder.join(format!("{table}.koel"));
    let bytes = Output::new(&path)?.save(&filter)?;
    let (mut read, _) = file::load(&path)?;
    ensure!(read == filter, "the {table} table: read back, it is another filter; please report this");
    let found = words.iter().filter(|word| read.contains(**word)).count();
    ensure!(found == words.len(), "the {table} table: {found} of {} words found; please report this", words.len());
    let mistaken = absent.iter().filter(|item| read.contains(*item)).count();
    let expected = read.false_positive_rate();
    let bits_per_item = read.bits_per_item();
    for word in words {
        ensure!(read.remove(*word), "the {table} table: a word could not be removed; please report this");
    }
    ensure!(read == empty, "the {table} table: all words are removed, and something is left; please report this");
    stdout::say(&format!(
        "The {table} table: saved in {bytes} bytes, read back; all words found;\n  \
         {mistaken} of {} absent items seemed to be there; emptied without a trace.\n",
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

/// What the standard library would take.
fn hash_set(words: &[&[u8]], absent: &Absent) -> anyhow::Result<Row> {
    let mut set: HashSet<Box<[u8]>> = HashSet::with_capacity(words.len());
    for word in words {
        ensure!(Set::insert(&mut set, word), "a word comes twice in the list; please report this");
    }
    // A table of a power of two, of which `capacity` is seven eighths; an entry for each, and a byte to find it by.
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
    let share = |of: &Row| percent(packed.bytes as f64 / of.bytes as f64);
    format!(
        "\n{table}\n\nThe packed table holds {words} words in {} of the hash set's bytes,\nand in {} of the single table's. \
         Times are those of this run.\n\
         * HashSet<Box<[u8]>>: 17 bytes for each bucket of its table, and the letters;\n  \
         what the allocator adds to each word is not counted.\n",
        share(set),
        share(single)
    )
}
