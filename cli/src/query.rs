//! `koel query`

use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::bail;
use clap::Args;

use crate::{
    file::{self, Opened, Stored},
    items::ItemArgs,
    stdout,
    streams::Stream,
};

/// Print the items that may be in a filter.
///
/// An item that was put in is always printed. One that was not is printed by mistake at the filter's false-positive rate,
/// which `koel info` tells. Exit status: 0 if something was selected, 1 if nothing was, 2 if there was an error.
///
/// A filter in a file is not read but mapped into memory, so that the answer comes at once, however large it is. Only its header
/// is checked then, and damage behind it may give wrong answers: --verify checks everything first, and `koel verify` does so
/// once for many queries. Filters from pipes and devices, and files of Go's linvon/cuckoo-filter, are read and checked to the
/// end in any case.
///
/// While a query waits for items, `koel add` and the others may replace the file; the answers stay those of the old one. Nothing
/// may change the file in place, as `cp` onto it does: if it is cut short, the system ends the query. (`mv` is safe.)
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'apple\\nbanana\\n' | koel build - -o fruit.koel
    koel query fruit.koel --item apple --item cherry
    printf 'banana\\nplum\\n' | koel query fruit.koel --absent
    if koel query fruit.koel --quiet --verify --item apple; then echo 'probably there'; fi")]
#[allow(clippy::struct_excessive_bools, reason = "options that are independent of each other")]
pub(crate) struct Query {
    /// The filter, a koel snapshot or a file of Go's; `-` is standard input
    filter: PathBuf,

    #[command(flatten)]
    items: ItemArgs,

    /// Select the other items: those that are surely not in the filter
    #[arg(long)]
    absent: bool,

    /// Print only how many items were selected
    #[arg(long)]
    count: bool,

    /// Print nothing, and stop at the first item that is selected
    #[arg(long, conflicts_with = "count")]
    quiet: bool,

    /// Check all of the filter before the first answer, which takes the time to read it
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
        let filter = file::open(&self.filter)?;
        if self.verify {
            filter.verify(&self.filter)?;
        }
        match filter {
            Opened::Mapped(filter) => self.select(|item| filter.contains(item)),
            Opened::Read(Stored::Koel(filter)) => self.select(|item| filter.contains(item)),
            #[cfg(target_endian = "little")]
            Opened::Read(Stored::Go(filter)) => self.select(|item| filter.contains(item)),
        }
    }

    fn select(self, contains: impl Fn(&[u8]) -> bool) -> anyhow::Result<ExitCode> {
        let separator = self.items.separator();
        let print = !self.count && !self.quiet;
        // A bar would run into items that are printed on the same screen.
        let mut items = self.items.open(!(print && io::stdout().is_terminal()))?;
        let mut out = stdout::Out::new();
        let mut selected = 0_u64;
        while let Some(item) = items.advance()? {
            if contains(item) != self.absent {
                selected += 1;
                if print {
                    out.item(item, separator)?;
                } else if self.quiet {
                    break;
                }
            }
            // Whoever feeds items one by one waits for the answer before the next.
            if items.is_waiting() {
                out.flush()?;
            }
        }
        out.flush()?;
        drop(out);
        if self.count {
            stdout::say(&format!("{selected}\n"))?;
        }
        Ok(ExitCode::from(u8::from(selected == 0)))
    }
}
