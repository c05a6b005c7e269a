//! `koel uniq`

use std::{
    path::{Path, PathBuf},
    process::{self, ExitCode},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context as _, bail};
use clap::Args;
use koel::{ElasticFilter, hash::AnyHasher};
use koel_lab::on_termination;

use crate::{
    errors,
    file::{self, Output, Snapshot},
    items::{self, Format, Items},
    numbers,
    terminal::{self, Out, Stream},
};

/// The false-positive rate of a new filter if --fpr is not given.
const RATE: f64 = 1e-6;

/// The exit status after a signal: 128 plus 2, the number of SIGINT.
const INTERRUPTED: i32 = 130;

/// Print the lines that have not been seen before.
///
/// A filter remembers the lines from one run to the next, in about 5 bytes each, at least 200 kB, however long they are. The first
/// run creates it; it grows, and is a koel snapshot like any other. Each new line is printed as it arrives; with --key, each line
/// whose field is new.
///
/// A new line is mistaken for a seen one, and left out, at the filter's false-positive rate: --fpr, for a new filter.
///
/// The filter is written at the end, also after Ctrl-C or a request to terminate. Until then, other koel commands that change it
/// wait, including another `koel uniq`, so two runs never print the same line. If the command is killed, or its standard output
/// is closed, the filter stays unchanged: the next run prints the lines again, and none is lost.
///
/// Exit status: 0 if a line was new, 1 if none was, 2 on error.
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'alice\\nbob\\nalice\\n' | koel uniq --filter seen.koel
    printf 'bob\\ncarol\\n' | koel uniq --filter seen.koel
    printf '10:01 alice\\n10:02 dave\\n' | koel uniq --key 2 --filter seen.koel
    seq 1000 | koel uniq --filter numbers.koel --max-bytes 10MB --count-only")]
pub(crate) struct Uniq {
    /// The lines; `-` or no FILE for standard input
    file: Option<PathBuf>,

    /// The filter that remembers the lines, a koel snapshot; created if there is none
    #[arg(long, value_name = "FILTER")]
    filter: PathBuf,

    /// Print only the number of new lines
    #[arg(long)]
    count_only: bool,

    /// The false-positive rate of a new filter: the fraction of new lines that may be left out [default: 0.000001]
    #[arg(long, value_name = "E", value_parser = numbers::rate, allow_hyphen_values = true)]
    fpr: Option<f64>,

    /// The maximum memory of a filter that grows, such as 100MB. When it is reached, the command writes the filter and ends with an
    /// error that names the first line that it did not remember
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes, allow_hyphen_values = true)]
    max_bytes: Option<usize>,

    #[command(flatten)]
    format: Format,
}

/// The state of a run, which the signal handler shares.
struct Sieve {
    filter: Snapshot,
    output: Output,
    out: Out,
    prints: bool,
    new: u64,
    is_finished: bool,
}

impl Uniq {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if file::is_dash(&self.filter) {
            bail!("standard input: cannot be the filter, which is replaced; give a file");
        }
        Stream::Stdout.check()?;
        let builder = ElasticFilter::builder().hasher(AnyHasher::default()).false_positive_rate(self.fpr.unwrap_or(RATE));
        builder.clone().params().map_err(|error| errors::parameter(&error))?;
        let new = || builder.clone().build().map_err(errors::build);
        let output = Output::existing_or_new(&self.filter, new)?;
        let mut filter = output.load()?;
        self.set_limits(&mut filter, output.name())?;
        let list = self.file.as_deref().unwrap_or(Path::new("-"));
        let mut items = items::open_for(list, &self.format, &output)?;
        let sieve = Sieve { filter, output, out: Out::new(), prints: !self.count_only, new: 0, is_finished: false };
        let sieve = Arc::new(Mutex::new(sieve));
        save_on_signal(&sieve)?;
        let end = pass_lines(&mut items, &sieve);
        let new = lock(&sieve).finish(end)?;
        if self.count_only {
            terminal::print(&format!("{new}\n"))?;
        }
        Ok(ExitCode::from(u8::from(new == 0)))
    }

    /// Applies the options to a filter that was read.
    fn set_limits(&self, filter: &mut Snapshot, name: &str) -> anyhow::Result<()> {
        match filter {
            Snapshot::Growing(filter) => {
                let rate = filter.params().false_positive_rate();
                if let Some(wanted) = self.fpr.filter(|wanted| wanted.to_bits() != rate.to_bits()) {
                    bail!("--fpr: {wanted} given, but {name} was built for {rate}; leave --fpr out, or give another file");
                }
                if let Some(bytes) = self.max_bytes {
                    filter.set_max_bytes(bytes);
                }
            }
            Snapshot::Fixed(_) => {
                if self.fpr.is_some() || self.max_bytes.is_some() {
                    bail!("{name}: has a fixed size and rate, and takes neither --fpr nor --max-bytes; leave them out");
                }
            }
        }
        Ok(())
    }
}

/// The reason why reading lines ended.
enum End {
    /// There are no more lines, or a line could not be read or remembered.
    Read(anyhow::Result<()>),
    /// A new line could not be printed.
    NotPrinted(anyhow::Error),
}

/// Prints the new lines, until there are no more or a line fails.
fn pass_lines(items: &mut Items, sieve: &Mutex<Sieve>) -> End {
    loop {
        match items.advance() {
            Ok(Some(_)) => {}
            end => return End::Read(end.map(|_| ())),
        }
        let mut sieve = lock(sieve);
        let printed = match sieve.remember(items) {
            Err(error) => return End::Read(Err(error)),
            Ok(is_new) if is_new && sieve.prints => sieve.out.item(items.line(), items.separator()),
            Ok(_) => Ok(()),
        };
        // The next line may take long to arrive, so this one is flushed.
        let printed = if items.is_waiting() { printed.and_then(|()| sieve.out.flush()) } else { printed };
        if let Err(error) = printed {
            return End::NotPrinted(error);
        }
    }
}

/// Installs a handler that writes the filter when a signal ends the command. Reading may block forever, so it does not hold the
/// lock.
fn save_on_signal(sieve: &Arc<Mutex<Sieve>>) -> anyhow::Result<()> {
    let sieve = Arc::clone(sieve);
    let end = move || {
        if let Err(error) = lock(&sieve).finish(End::Read(Ok(()))) {
            terminal::failure(&error);
        }
        process::exit(INTERRUPTED);
    };
    on_termination(end)
}

fn lock(sieve: &Mutex<Sieve>) -> MutexGuard<'_, Sieve> {
    sieve.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sieve {
    /// Adds the item that was read last to the filter. Returns whether it is new.
    fn remember(&mut self, items: &Items) -> anyhow::Result<bool> {
        let is_new = self.filter.add_item(items, true, "build a new one with", "the lines before it are remembered")?;
        self.new += u64::from(is_new);
        Ok(is_new)
    }

    /// Ends the run: prints the buffered lines, and only then writes the filter. A second call does nothing. Returns the number of
    /// new lines.
    fn finish(&mut self, end: End) -> anyhow::Result<u64> {
        if self.is_finished {
            return Ok(self.new);
        }
        self.is_finished = true;
        let name = self.output.name();
        let read = match end {
            End::Read(read) => self.out.flush().map(|()| read),
            End::NotPrinted(error) => Err(error),
        };
        let read = read.inspect_err(|_| {
            terminal::say(format_args!("koel: {name}: is unchanged; the next run prints the same lines again\n"));
        })?;
        if self.new > 0 {
            let saved = self.output.save_snapshot(&self.filter);
            saved.context("the lines that were printed are not remembered")?;
        }
        read.map(|()| self.new)
    }
}
