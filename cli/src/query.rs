//! `koel query`

use std::{
    ffi::OsString,
    mem,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::bail;
use clap::Args;
use serde_json::json;

use crate::{
    facts::bytes_as_json,
    file,
    format::{self, Format, Short},
    items::{Advance, ItemArgs, Items},
    terminal::{self, Out, Stream},
    window::Contents,
};

/// Print the items that may be in a filter.
///
/// An item that was added is always printed. Any other item is printed by mistake at the filter's false-positive rate, which
/// `koel info` shows. Exit status: 0 if an item was selected, 1 if none was, 2 on error.
///
/// The last of several files is the list of items, unless it is a koel snapshot or a folder of `koel uniq --forget`. With several
/// filters, the names of those that have an item are printed before it, as grep prints file names. With --key, whole lines are printed.
///
/// A filter in a file is mapped into memory, not read, so a large filter answers as soon as a small one. Then only the header is
/// checked, and damage after it may cause wrong results. --verify checks everything first; `koel verify` does so once for many
/// queries. Filters from pipes and devices, and files of other programs, are always read and checked completely.
///
/// Files of other programs are those of Go's linvon/cuckoo-filter, and RedisBloom dumps: the chunks from CF.SCANDUMP, each after
/// its iterator and its length, as 64-bit little-endian numbers. The folder of `koel uniq --forget` is one filter, of the lines that its
/// files have; it is read and checked completely.
///
/// While a query waits for items, other koel commands may replace the file; the query continues with the old one. Do not change
/// the file in place, as `cp` onto it does: if it becomes shorter, the system kills the query. (`mv` is safe.)
#[derive(Args)]
#[command(
    mut_arg("short", |short| format::short_of_lines(short, [
        "It counts as absent: only --absent selects it",
        "Leave it out",
        "End with an error",
    ])),
    override_usage = "koel query [OPTIONS] <FILTER>... [FILE]\n       koel query [OPTIONS] <FILTER>... --item <ITEM>...",
    after_help = "\
Examples:
    printf 'apple\\nbanana\\n' | koel build - -o fruit.koel
    koel query fruit.koel --item apple --item cherry
    printf 'banana\\nplum\\n' | koel query fruit.koel --absent
    if koel query fruit.koel --quiet --verify --item apple; then echo 'probably present'; fi
    printf 'leek\\n' | koel build - -o vegetables.koel
    koel query fruit.koel vegetables.koel --item leek"
)]
#[allow(clippy::struct_excessive_bools, reason = "options that are independent of each other")]
pub(crate) struct Query {
    /// The filters: koel snapshots, Go files or RedisBloom dumps; `-` for standard input. After them, the items, one per line;
    /// `-` or no FILE for standard input
    #[arg(required = true, value_name = "FILTER")]
    files: Vec<PathBuf>,

    /// An item, instead of a file of items; may be repeated
    #[arg(long = "item", value_name = "ITEM", allow_hyphen_values = true)]
    items: Vec<OsString>,

    #[command(flatten)]
    format: Format,

    /// Select the other items: those that are certainly not in the filter
    #[arg(short = 'v', long)]
    absent: bool,

    /// Print only the number of selected items
    #[arg(short, long)]
    count: bool,

    /// Print nothing, and stop at the first selected item
    #[arg(short, long, conflicts_with = "count")]
    quiet: bool,

    /// Print a JSON object per line: `filter`, its name; `item`, as text or, if it is not UTF-8, as an array of its bytes, null if the
    /// line is short; and with --key, the `line`. With --count, print one per filter: `filter` and the number `selected`
    #[arg(long, conflicts_with = "quiet")]
    json: bool,

    /// Check the whole filter before the first lookup, which takes as long as reading it
    #[arg(long)]
    verify: bool,
}

/// Looks up an item in a file or folder.
type Lookup = Box<dyn Fn(&[u8]) -> bool>;

/// A filter, and the number of items that it selected.
struct Queried {
    name: String,
    contains: Lookup,
    selected: u64,
}

impl Query {
    pub(crate) fn run(mut self) -> anyhow::Result<ExitCode> {
        let (file, format) = (self.take_list(), self.format.clone().or_short(Short::Pass));
        let items = ItemArgs { file, items: mem::take(&mut self.items), format };
        let is_stdin = |path: &&Path| file::is_dash(path);
        let readers = self.files.iter().map(PathBuf::as_path).chain(items.path());
        if readers.filter(is_stdin).count() > 1 {
            bail!("standard input: cannot be both the filter and the items, or several filters; give files, or --item");
        }
        if !self.quiet {
            Stream::Stdout.check()?;
        }
        let open = |path: &PathBuf| {
            let contains: Lookup = if file::slice::is_window(path) {
                let contents = Contents::read(path)?;
                Box::new(move |item| contents.contains(item))
            } else {
                let filter = file::open(path, self.verify)?;
                Box::new(move |item| filter.contains(item))
            };
            Ok(Queried { name: file::name(path), contains, selected: 0 })
        };
        let mut filters = self.files.iter().map(open).collect::<anyhow::Result<Vec<_>>>()?;
        let mut items = items.open(self.count || self.quiet || terminal::is_stdout_apart())?;
        self.select(&mut filters, &mut items)?;
        if let Some(short) = items.short_lines().filter(|_| self.format.short.is_none() && !self.quiet) {
            terminal::say(format_args!("koel: {short}; they count as absent; --short skip leaves out such lines\n"));
        }
        if self.count {
            let line = |queried: &Queried| match filters.len() {
                _ if self.json => format!("{}\n", json!({ "filter": queried.name, "selected": queried.selected })),
                1 => format!("{}\n", queried.selected),
                _ => format!("{}:{}\n", queried.name, queried.selected),
            };
            terminal::print(&filters.iter().map(line).collect::<String>())?;
        }
        Ok(ExitCode::from(u8::from(filters.iter().all(|queried| queried.selected == 0))))
    }

    /// Removes the list of items from the files and returns it: the last of several files, unless it is a koel snapshot or a folder.
    fn take_list(&mut self) -> Option<PathBuf> {
        let is_list = |last: &mut PathBuf| !file::is_snapshot_file(last) && !file::slice::is_window(last);
        if self.items.is_empty() && self.files.len() > 1 { self.files.pop_if(is_list) } else { None }
    }

    /// Prints the selected items, and counts them.
    fn select(&self, filters: &mut [Queried], items: &mut Items) -> anyhow::Result<()> {
        let (mut out, are_named) = (Out::new(), filters.len() > 1);
        loop {
            match items.advance_line()? {
                Advance::Line => {}
                // A program that sends items individually waits for each result before it sends the next item.
                Advance::Wait => {
                    out.flush()?;
                    continue;
                }
                Advance::End => return out.flush(),
            }
            for queried in &mut *filters {
                if items.item().is_some_and(|item| (queried.contains)(item)) == self.absent {
                    continue;
                }
                queried.selected += 1;
                if self.quiet {
                    return Ok(());
                }
                if self.count {
                    continue;
                }
                if self.json {
                    let mut object = json!({ "filter": queried.name, "item": items.item().map(bytes_as_json) });
                    if self.format.has_key() {
                        object["line"] = bytes_as_json(items.line());
                    }
                    out.text(format_args!("{object}\n"))?;
                    continue;
                }
                if are_named {
                    // As grep does.
                    out.item(queried.name.as_bytes(), b':')?;
                }
                out.item(items.line(), items.separator())?;
            }
        }
    }
}
