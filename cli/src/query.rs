//! `koel query`

use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::bail;
use clap::Args;

use crate::{
    file,
    items::ItemArgs,
    terminal::{self, Stream},
};

/// Print the items that may be in a filter.
///
/// An added item is always printed. Any other is printed, by mistake, at the filter's false-positive rate, which `koel info`
/// shows. Exit status: 0 if an item was selected, 1 if none was, 2 on error.
///
/// A filter in a file is mapped into memory, not read, so a large filter answers as soon as a small one. Only the header is checked
/// then: damage after it may lead to wrong answers. --verify checks everything first; `koel verify` does so once for many queries.
/// Filters from pipes and devices, and files of other programs, are always read and checked completely.
///
/// Files of other programs are those of Go's linvon/cuckoo-filter, and dumps of RedisBloom: the chunks from CF.SCANDUMP, each after
/// its iterator and its length, as 64-bit little-endian numbers.
///
/// While a query waits for items, other koel commands may replace the file; the query continues with the old one. Do not change
/// the file in place, as `cp` onto it does: if it gets shorter, the system kills the query. (`mv` is safe.)
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'apple\\nbanana\\n' | koel build - -o fruit.koel
    koel query fruit.koel --item apple --item cherry
    printf 'banana\\nplum\\n' | koel query fruit.koel --absent
    if koel query fruit.koel --quiet --verify --item apple; then echo 'probably present'; fi")]
#[allow(clippy::struct_excessive_bools, reason = "options that are independent of each other")]
pub(crate) struct Query {
    /// The filter: a koel snapshot, a file of Go's, or a dump of RedisBloom; `-` for standard input
    filter: PathBuf,

    #[command(flatten)]
    items: ItemArgs,

    /// Select the other items: those that are certainly not in the filter
    #[arg(long)]
    absent: bool,

    /// Print only the number of selected items
    #[arg(long)]
    count: bool,

    /// Print nothing, and stop at the first selected item
    #[arg(long, conflicts_with = "count")]
    quiet: bool,

    /// Check the whole filter before the first answer, which takes as long as reading it
    #[arg(long)]
    verify: bool,
}

impl Query {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if file::is_dash(&self.filter) && self.items.path().is_some_and(file::is_dash) {
            bail!("standard input: cannot be both the filter and the items; give a file for one of them, or --item");
        }
        if !self.quiet {
            Stream::Stdout.check()?;
        }
        let filter = file::open(&self.filter, self.verify)?;
        let separator = self.items.separator();
        let print = !self.count && !self.quiet;
        // A bar would get in the way of items printed on the same terminal.
        let mut items = self.items.open(!(print && io::stdout().is_terminal()))?;
        let mut out = terminal::Out::new();
        let mut selected = 0_u64;
        while let Some(item) = items.advance()? {
            if filter.contains(item) != self.absent {
                selected += 1;
                if print {
                    out.item(item, separator)?;
                } else if self.quiet {
                    break;
                }
            }
            // A program that sends items one by one waits for each answer before it sends the next item.
            if items.is_waiting() {
                out.flush()?;
            }
        }
        out.flush()?;
        drop(out);
        if self.count {
            terminal::print(&format!("{selected}\n"))?;
        }
        Ok(ExitCode::from(u8::from(selected == 0)))
    }
}
