//! `koel uniq`

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use anyhow::{Context as _, anyhow, bail};
use clap::{Args, builder::TypedValueParser};
use koel::{ElasticBuilder, ElasticFilter, ParamError, hash::AnyHasher};

use crate::{
    errors::{self, Inserting},
    facts,
    file::{self, Output, Snapshot},
    items::{self, Format, Items, Short},
    numbers,
    terminal::{self, Closed, Out, Stream},
    text::counted,
};

/// The false-positive rate of a new filter if --fpr is not given.
const RATE: f64 = 1e-6;

/// The exit status if new lines could not be printed because standard output was closed: 128 plus 13, the number of SIGPIPE.
const CLOSED: u8 = 141;

/// Print the lines that have not been seen before.
///
/// Each new line is printed as it arrives; with --key, each line whose field is new. A filter remembers the lines in 5 to 8 bytes
/// each, however long they are. With --filter, it remembers them from one run to the next, in a file. The first run creates it; it
/// grows, and is a koel snapshot like any other.
///
/// A new line is mistaken for a seen one, and left out, at most at the filter's false-positive rate: --fpr, for a new filter.
///
/// The filter is written at the end, also after an error in the input and after a signal (Ctrl-C, SIGTERM, SIGHUP), so it has exactly
/// the lines that were printed, or that --count-only counted. Until then, other koel commands that change it wait, including another
/// `koel uniq`, so two runs never print the same line. If the command is killed, gets a second signal, or cannot print, the filter
/// stays unchanged: the next run prints the lines again, and none is lost. If there was no filter, an error before the first line
/// creates none.
///
/// Exit status: 0 if a line was new, 1 if none was, 2 on error, 128 + N after signal N (130 after Ctrl-C), with --filter 141 if
/// the reader of standard output has closed it: the filter is then unchanged.
#[derive(Args)]
#[command(
    mut_arg("short", |short| short.value_parser(short_lines()).help(
        "What to do with a line that has no field N, such as an empty one [default: pass, and tell their number on standard error]"
    )),
    after_help = "\
Examples:
    printf 'alice\\nbob\\nalice\\n' | koel uniq
    printf 'alice\\nbob\\nalice\\n' | koel uniq --filter seen.koel
    printf 'bob\\ncarol\\n' | koel uniq --filter seen.koel
    printf '10:01 alice\\n10:02 dave\\n\\n' | koel uniq --key 2 --short skip --filter seen.koel
    seq 1000 | koel uniq --filter numbers.koel --max-bytes 10MB --count-only"
)]
pub(crate) struct Uniq {
    /// The lines; `-` or no FILE for standard input
    file: Option<PathBuf>,

    /// Remember the lines in this file for later runs: a koel snapshot, created if there is no such file or an empty one. Without
    /// this option, lines are forgotten at the end
    #[arg(long, value_name = "FILTER")]
    filter: Option<PathBuf>,

    /// Print only the number of new lines, at the end, also after an error or a signal
    #[arg(long)]
    count_only: bool,

    /// At the end, also after an error or a signal, print on standard error the numbers of lines, and the filter's size and rate
    #[arg(long)]
    summary: bool,

    /// The false-positive rate of a new filter: the maximum fraction of new lines that are left out [default: 0.000001]
    #[arg(long, value_name = "E", value_parser = numbers::rate, allow_hyphen_values = true)]
    fpr: Option<f64>,

    /// The maximum memory of a filter that grows, such as 100MB; a new one needs up to 1.6 kB with the default rate. When it is
    /// reached, the command writes the filter and ends with an error that names the first line that it did not remember
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes, allow_hyphen_values = true)]
    max_bytes: Option<usize>,

    #[command(flatten)]
    format: Format,
}

/// Returns the parser of --short.
fn short_lines() -> impl TypedValueParser<Value = Short> {
    items::short([
        (Short::Pass, "Print it, as a new line that is not remembered"),
        (Short::Skip, "Leave it out"),
        (Short::Error, "End with an error; the lines before it are remembered"),
    ])
}

/// The state of a run, which the signal handler shares.
struct Sieve {
    filter: Snapshot,
    /// The file that the filter is written to, if any.
    output: Option<Output>,
    out: Out,
    /// True if the number of new lines is printed, not the lines.
    count_only: bool,
    has_summary: bool,
    short_lines: Short,
    /// The lines read so far, and of these: the short ones, the new ones with the short ones that were passed, and the others.
    lines: u64,
    short: u64,
    new: u64,
    seen: u64,
    is_finished: bool,
}

impl Uniq {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if self.filter.as_ref().is_some_and(|filter| file::is_dash(filter)) {
            bail!("standard input: cannot be the filter, which is replaced; give a file, or leave --filter out");
        }
        Stream::Stdout.check()?;
        let builder = ElasticFilter::builder().hasher(AnyHasher::default()).false_positive_rate(self.fpr.unwrap_or(RATE));
        builder.clone().params().map_err(|error| match error {
            ParamError::FalsePositiveRate { given, min } => errors::rate(given, min, "a growing filter", ""),
            error => errors::parameter(&error),
        })?;
        let output = self.filter.as_ref().map(|filter| Output::existing_or_new(filter)).transpose()?;
        let filter = if let Some(output) = output.as_ref().filter(|output| !output.is_empty()) {
            self.with_limits(output.load()?, output.name())?
        } else {
            let builder = self.max_bytes.into_iter().fold(builder, ElasticBuilder::max_bytes);
            Snapshot::Growing(Box::new(builder.build().map_err(|error| errors::build(error, ""))?))
        };
        let list = self.file.as_deref().unwrap_or(Path::new("-"));
        output.as_ref().map_or(Ok(()), |output| items::check_distinct(list, output))?;
        let format = self.format.clone().or_short(Short::Pass);
        let sieve = Arc::new(Mutex::new(Sieve {
            filter,
            output,
            out: Out::new(),
            count_only: self.count_only,
            has_summary: self.summary,
            short_lines: format.short_lines(),
            lines: 0,
            short: 0,
            new: 0,
            seen: 0,
            is_finished: false,
        }));
        // Reading may block forever, so it does not hold the lock.
        let shared = Arc::clone(&sieve);
        terminal::before_end(move || lock(&shared).finish(End::Read(Ok(()))))?;
        let (end, short) = match Items::open(list, &format, self.count_only || terminal::is_stdout_apart()) {
            Ok(mut items) => {
                let end = pass_lines(&mut items, &sieve);
                items.hide_progress();
                (end, items.short_lines().filter(|_| !self.format.has_short()))
            }
            Err(error) => (End::Read(Err(error)), None),
        };
        let mut sieve = lock(&sieve);
        match sieve.finish(end) {
            Err(error) if error.is::<Closed>() && self.filter.is_some() => return Ok(ExitCode::from(CLOSED)),
            finished => finished?,
        }
        if let Some(short) = short {
            let fate = if self.count_only { "counted as new" } else { "printed as new" };
            terminal::say(format_args!("koel: {short}; {fate}, and not remembered; --short skip leaves out such lines\n"));
        }
        Ok(ExitCode::from(u8::from(sieve.new == 0)))
    }

    /// Applies the options to a filter that was read.
    fn with_limits(&self, mut filter: Snapshot, name: &str) -> anyhow::Result<Snapshot> {
        match &mut filter {
            Snapshot::Growing(filter) => {
                let rate = filter.params().false_positive_rate();
                if let Some(wanted) = self.fpr.filter(|wanted| wanted.to_bits() != rate.to_bits()) {
                    bail!("--fpr: {wanted} given, but {name} was built for {rate}; leave --fpr out, or give another file");
                }
                if let Some(bytes) = self.max_bytes {
                    filter.set_max_bytes(bytes);
                    let taken = filter.charged_bytes();
                    if taken > bytes {
                        terminal::say(format_args!(
                            "koel: {name}: takes {taken} bytes already, and --max-bytes is {bytes}, so it does not grow\n"
                        ));
                    }
                }
            }
            Snapshot::Fixed(_) => {
                if self.fpr.is_some() || self.max_bytes.is_some() {
                    bail!("{name}: has a fixed size and rate, and takes neither --fpr nor --max-bytes; leave them out");
                }
            }
        }
        Ok(filter)
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
        let advanced = items.advance_line();
        let mut sieve = lock(sieve);
        if sieve.is_finished {
            drop(sieve);
            wait_for_signal();
        }
        (sieve.lines, sieve.short) = (items.lines(), items.short());
        match advanced {
            Ok(true) => {}
            end => return End::Read(end.map(|_| ())),
        }
        let is_new = match sieve.is_new(items) {
            Err(error) => return End::Read(Err(error)),
            Ok(is_new) => is_new,
        };
        if sieve.count_only {
            continue;
        }
        let printed = if is_new { sieve.out.item(items.line(), items.separator()) } else { Ok(()) };
        // The next line may take long to arrive, so this one is flushed.
        let printed = if items.is_waiting() { printed.and_then(|()| sieve.out.flush()) } else { printed };
        if let Err(error) = printed {
            return End::NotPrinted(error);
        }
    }
}

/// Waits for the end of the process: the filter was written because of a signal, so no line may be printed any more.
fn wait_for_signal() -> ! {
    loop {
        thread::park();
    }
}

fn lock(sieve: &Mutex<Sieve>) -> MutexGuard<'_, Sieve> {
    sieve.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sieve {
    /// Adds the item of the line that was read last to the filter. Returns whether it is new, as a short line always is.
    fn is_new(&mut self, items: &Items) -> anyhow::Result<bool> {
        let inserted = items.item().map_or(Ok(true), |item| self.filter.insert_unique(item));
        let is_new = inserted.map_err(|error| anyhow!(items.refused_by(&self.filter, &error, Inserting::Uniq)))?;
        self.new += u64::from(is_new);
        self.seen += u64::from(!is_new);
        Ok(is_new)
    }

    /// Returns whether lines were read and remembered, in this run or before.
    fn has_remembered(&self) -> bool {
        self.seen > 0 || self.has_items()
    }

    /// Returns whether the run added items to the filter. Short lines have none.
    fn has_items(&self) -> bool {
        self.new > if self.short_lines == Short::Pass { self.short } else { 0 }
    }

    /// Prints the buffered lines, or the number of new lines unless an error came before the first one.
    fn print(&mut self, has_failed: bool) -> anyhow::Result<()> {
        if self.count_only && !(has_failed && self.new + self.seen == 0) {
            self.out.item(self.new.to_string().as_bytes(), b'\n')?;
        }
        match self.out.flush() {
            // Without a filter, nothing is lost.
            Err(error) if error.is::<Closed>() && self.count_only && self.output.is_none() => Ok(()),
            flushed => flushed,
        }
    }

    /// Ends the run: prints what is to be printed, and only then writes the filter. A second call does nothing.
    fn finish(&mut self, end: End) -> anyhow::Result<()> {
        if self.is_finished {
            return Ok(());
        }
        self.is_finished = true;
        let read = match end {
            End::Read(read) => self.print(read.is_err()).map(|()| read),
            End::NotPrinted(error) => Err(error),
        };
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                // Dropping the output removes an empty file that this run created.
                if let Some(output) = self.output.take() {
                    let name = output.name();
                    let verb = if self.count_only { "counts" } else { "prints" };
                    terminal::say(format_args!("koel: {name}: is unchanged; the next run {verb} the same lines again\n"));
                }
                return Err(error);
            }
        };
        let is_new = self.output.as_ref().is_some_and(Output::is_empty) && read.is_ok();
        if let Some(output) = self.output.as_ref().filter(|_| is_new || self.has_items()) {
            let fate = if self.count_only { "counted" } else { "printed" };
            let saved =
                output.save_snapshot(&self.filter).with_context(|| format!("the lines that were {fate} are not remembered"));
            if let (Err(_), Err(error)) = (&saved, &read) {
                terminal::failure(error);
            }
            saved?;
        }
        if self.has_summary {
            terminal::say(format_args!("{}", self.summary()));
        }
        match self.output.take() {
            Some(_) if self.has_remembered() => read.map_err(|error| anyhow!("{error:#}; the lines before it are remembered")),
            _ => read,
        }
    }

    fn summary(&self) -> String {
        let Self { lines, short, new, seen, .. } = *self;
        let name = self.output.as_ref().map_or("not kept", Output::name);
        let mut facts = vec![("lines", lines.to_string()), ("  new", new.to_string())];
        let fate = match self.short_lines {
            Short::Pass => "counted as new",
            Short::Skip => "left out",
            Short::Error => "an error",
        };
        facts.extend((short > 0).then(|| ("  short", format!("{short}, without the field of --key; {fate}"))));
        facts.extend([
            ("  seen before", seen.to_string()),
            ("filter", format!("{name}, {} ({})", counted(self.filter.len(), "item"), self.filter.extent())),
            ("false positives", facts::rate(self.filter.false_positive_rate())),
        ]);
        facts::aligned(&facts)
    }
}
