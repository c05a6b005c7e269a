//! `koel uniq`

mod memory;
mod sieve;
mod spool;

use std::{
    fs,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context as _, bail};
use clap::Args;
use koel::{ElasticBuilder, ElasticFilter, hash::AnyHasher};
use koel_lab::Interrupted;

use self::{
    memory::Memory,
    sieve::{End, Select, Sieve, Tally, lock, pass_lines, wait_for_signal},
    spool::Spool,
};
use crate::{
    errors,
    file::{self, Growing, Output, Snapshot},
    format::{self, Format, Short},
    items::{self, Items},
    numbers, options,
    terminal::{self, Closed, Out, Stream},
    window::{Limits, Window},
};

/// The false-positive rate of a new filter if --fpr is not given.
const RATE: f64 = 1e-6;

/// The exit status if new lines could not be printed because standard output was closed: 128 plus 13, the number of SIGPIPE.
const CLOSED: u8 = 141;

/// Print each line once, when it is seen for the first time.
///
/// The lines need not be sorted, and each is printed as it arrives; with --key, each line whose fields are new. A filter remembers the
/// lines in 4 to 8 bytes each, however long they are. With --filter, it remembers them from one run to the next, in a file. The first
/// run creates it; it grows, and is a koel snapshot like any other.
///
/// --repeated prints a line when it is seen for the second time, and then never again. --unique and --count need the last line to know
/// which lines to print, and how often each was seen: they print at the end, in the order of the first lines. Until then, a temporary
/// file has each line once. With --filter, the lines of all runs are counted, but those without one of these three options count a
/// line only once.
///
/// A filter is never wrong about a line that it has seen. It mistakes a new line for a seen one at most at its false-positive rate:
/// --fpr, for a new filter. Such a line is left out; --repeated may print it although it is new, and the count of the line that it is
/// mistaken for includes it, so a count may be too high, but never too low. A line that --unique prints was seen only once.
///
/// The filter is written at the end, also after an error in the input and after a signal (Ctrl-C, SIGTERM, SIGHUP), so it has exactly
/// the lines that were printed, or that --count-only counted. Until then, other koel commands that change it wait, including another
/// `koel uniq`, so two runs never print the same line. If the command is killed, gets a second signal, cannot print, or gets a signal
/// while it prints the lines of --unique or --count after the last line, the filter stays unchanged: the next run prints the lines
/// again, and none is lost. If there was no filter, an error before the first line creates none.
///
/// With --forget, FILTER is a folder. Lines are forgotten in slices: with `--forget 1h`, a line counts as new if it was not seen for 65
/// minutes, and as seen if it was within the last 60, by the clock of this machine. (A time is rounded up to a multiple of 12 seconds.)
/// Each line is remembered before it is printed, so it is not printed again within that time, even if the command is killed. The next
/// run goes on from there. A kill may lose the lines that were about to be printed. Lines that cannot be printed, because a disk is full or
/// the reader has gone, are forgotten: the next run prints them, and perhaps the last lines before them again. (What a pipe has taken
/// is printed, even if nobody reads it.) `koel query`, `koel info` and `koel verify` take the folder.
///
/// Exit status: 0 if a line was printed or counted, 1 if none was, 2 on error, 128 + N after signal N (130 after Ctrl-C), with --filter
/// 141 if the reader of standard output has closed it: a filter in a file is then unchanged.
#[derive(Args)]
#[command(
    mut_arg("short", |short| format::short_of_lines(short, [
        "Print it, as a new line that is not remembered",
        "Leave it out",
        "End with an error; the lines before it are remembered",
    ])),
    after_help = "\
Examples:
    printf 'alice\\nbob\\nalice\\n' | koel uniq
    printf 'alice\\nbob\\nalice\\n' | koel uniq --filter seen.koel
    printf 'bob\\ncarol\\n' | koel uniq --filter seen.koel
    printf '10:01 alice\\n10:02 dave\\n\\n' | koel uniq --key 2 --short skip --filter seen.koel
    printf 'to be or\\nnot\\nTo Be Or\\n' | koel uniq -c -i
    printf '1,\"Doe, Jane\",x\\n2,\"Doe, Jane\",x\\n' | koel uniq --csv --key 2,3 --keys-only
    printf 'disk full\\ndisk full\\n' | koel uniq --filter alerts --forget 1h
    seq 1000 | koel uniq --filter numbers.koel --max-bytes 10MB --count-only"
)]
#[allow(clippy::struct_excessive_bools, reason = "options that are independent of each other")]
pub(crate) struct Uniq {
    /// The lines, from one file after another; `-` or no FILE for standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Remember the lines in this file for later runs: a koel snapshot, created if there is no such file or an empty one. Without
    /// this option, lines are forgotten at the end
    #[arg(long, value_name = "FILTER")]
    filter: Option<PathBuf>,

    /// Forget lines that were not seen for this time, such as 90s, 10m, 1h or 7d: at the latest after a twelfth of it more. FILTER, if
    /// given, is then a folder of snapshots, one for each twelfth; only the run that creates it needs this option. Not with --repeated,
    /// --unique, --count and --count-only
    #[arg(long, value_name = "TIME", value_parser = numbers::seconds, allow_hyphen_values = true)]
    forget: Option<u64>,

    /// Print only lines that are repeated, each once: when it is seen for the second time or, with --count, at the end
    #[arg(short = 'd', long)]
    repeated: bool,

    /// Print only lines that are not repeated, at the end
    #[arg(short, long, conflicts_with = "repeated")]
    unique: bool,

    /// Print before each line how often it was seen, at the end. A count may be too high, at most at the rate of --fpr
    #[arg(short, long)]
    count: bool,

    /// Print only the number of lines that would be printed, at the end, also after an error or a signal
    #[arg(long, conflicts_with = "count")]
    count_only: bool,

    /// Print the fields of --key instead of the line, in the order of --key. A short line is printed as it is
    #[arg(long, requires = "key")]
    keys_only: bool,

    /// At the end, also after an error in the input or a signal, print on standard error the numbers of lines, and the filter's size and rate
    #[arg(long)]
    summary: bool,

    /// The false-positive rate of a new filter: the maximum fraction of new lines that are left out [default: 0.000001]
    #[arg(long, value_name = "E", value_parser = numbers::rate, allow_hyphen_values = true)]
    fpr: Option<f64>,

    /// The maximum memory of a filter that grows, such as 100MB; a new one needs up to 1.6 kB with the default rate. When it is
    /// reached, the command writes the filter and ends with an error that names the first line that it did not remember. With
    /// --forget, each of 13 filters has a thirteenth of it
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes, allow_hyphen_values = true)]
    max_bytes: Option<usize>,

    #[command(flatten)]
    format: Format,
}

impl Uniq {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if self.filter.as_ref().is_some_and(|filter| file::is_dash(filter)) {
            bail!("standard input: cannot be the filter, which is replaced; give a file, or leave --filter out");
        }
        Stream::Stdout.check()?;
        let stdin = [PathBuf::from("-")];
        let files = if self.files.is_empty() { &stdin } else { &*self.files };
        // Otherwise, the lines of the first file would be printed before the error about the last one.
        for list in files.iter().filter(|list| !file::is_dash(list)) {
            fs::metadata(list).with_context(|| format!("{}: cannot be read", list.display()))?;
        }
        let memory = self.open()?;
        if let Memory::Filter { output: Some(output), .. } = &memory {
            files.iter().try_for_each(|list| items::check_distinct(list, output))?;
        }
        let format = self.format.clone().or_short(Short::Pass);
        let is_interrupted = Arc::new(AtomicBool::new(false));
        let sieve = Arc::new(Mutex::new(Sieve {
            memory,
            select: self.select()?,
            format: format.clone(),
            keys_only: self.keys_only,
            count_only: self.count_only,
            has_summary: self.summary,
            out: Out::new(),
            tally: Tally::default(),
            is_changed: false,
            is_finished: false,
            is_interrupted: Arc::clone(&is_interrupted),
        }));
        // Reading may block forever, so it does not hold the lock. Printing the lines at the end does, and looks at the flag.
        let (shared, flag) = (Arc::clone(&sieve), Arc::clone(&is_interrupted));
        terminal::before_end(move || {
            flag.store(true, Ordering::Relaxed);
            lock(&shared).finish(End::Interrupted)
        })?;
        let (mut end, mut notes) = (End::Read(Ok(())), Vec::new());
        for list in files {
            match Items::open(list, &format, self.count_only || terminal::is_stdout_apart()) {
                Ok(mut items) => {
                    end = pass_lines(&mut items, &sieve);
                    items.hide_progress();
                    notes.extend(items.short_lines().filter(|_| self.format.short.is_none()));
                }
                Err(error) => end = End::Read(Err(error)),
            }
            if !matches!(end, End::Read(Ok(()))) {
                break;
            }
        }
        let mut sieve = lock(&sieve);
        let finished = sieve.finish(end);
        // The signal waits for the lock to end the process.
        if is_interrupted.load(Ordering::Relaxed) {
            if let Err(error) = finished.as_ref()
                && !error.is::<Interrupted>()
            {
                terminal::failure(error);
            }
            drop(sieve);
            wait_for_signal();
        }
        match finished {
            Err(error) if error.is::<Closed>() && self.filter.is_some() => return Ok(ExitCode::from(CLOSED)),
            finished => finished?,
        }
        for note in notes {
            terminal::say(format_args!("koel: {note}; they are new, and not remembered; --short skip leaves out such lines\n"));
        }
        Ok(ExitCode::from(u8::from(sieve.tally.printed == 0)))
    }

    /// Opens what remembers the lines.
    fn open(&self) -> anyhow::Result<Memory> {
        let folder = self.filter.as_deref();
        if self.forget.is_none() && !folder.is_some_and(file::slice::is_window) {
            // Before a file is opened.
            self.builder().params().map_err(|error| errors::growing(&error, ""))?;
            if let Some(path) = folder {
                file::slice::refuse_window(path)?;
                if path.is_dir() {
                    bail!(
                        "{}: is a folder; give --forget and a time to remember lines in it, or the name of a file in it",
                        path.display()
                    );
                }
            }
            let output = folder.map(Output::existing_or_new).transpose()?;
            let filter = match output.as_ref().filter(|output| !output.is_empty()) {
                Some(output) => self.with_limits(output.load()?, output.name())?,
                None => Snapshot::Growing(Box::new(self.new_filter()?)),
            };
            return Ok(Memory::Filter { filter, output });
        }
        let options = [
            (self.repeated, "--repeated"),
            (self.unique, "--unique"),
            (self.count, "--count"),
            (self.count_only, "--count-only"),
        ];
        if let Some((_, option)) = options.iter().find(|(is_given, _)| *is_given) {
            bail!("{option}: is not for filters that forget, as --forget makes them; leave it out, or give a file with --filter");
        }
        let limits = Limits::new(self.fpr.unwrap_or(RATE), self.max_bytes);
        Ok(Memory::Window(Window::open(folder, self.forget, self.fpr, limits)?))
    }

    /// Returns the choice of lines that the options make.
    fn select(&self) -> anyhow::Result<Select> {
        let accepts: fn(u32) -> bool = match (self.repeated, self.unique) {
            (true, _) if !self.count => return Ok(Select::Repeated),
            (true, _) => |count| count > 1,
            (_, true) => |count| count == 1,
            _ if !self.count => return Ok(Select::New),
            _ => |count| count > 0,
        };
        let of_this_run = if self.filter.is_some() { Some(Box::new(self.new_filter()?)) } else { None };
        Ok(Select::AtEnd { lines: Some(Spool::new()?), of_this_run, accepts, with_counts: self.count })
    }

    fn builder(&self) -> ElasticBuilder<AnyHasher> {
        ElasticFilter::builder().hasher(AnyHasher::default()).false_positive_rate(self.fpr.unwrap_or(RATE))
    }

    fn new_filter(&self) -> anyhow::Result<Growing> {
        let builder = self.max_bytes.into_iter().fold(self.builder(), ElasticBuilder::max_bytes);
        let builder = options::kernel()?.into_iter().fold(builder, ElasticBuilder::kernel);
        builder.build().map_err(|error| errors::build(error, ""))
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
