//! Decides which lines are printed, and remembers them.

use std::{
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use anyhow::anyhow;
use koel_lab::Interrupted;

use super::{memory::Memory, spool::Spool};
use crate::{
    errors::Inserting,
    facts,
    file::{Growing, Snapshot},
    format::{Format, Short},
    items::{Advance, Items},
    terminal::{self, Closed, Out},
    text::counted,
    window,
};

/// Which lines are printed, and when.
pub(super) enum Select {
    /// Each line when it is seen for the first time.
    New,
    /// Each line when it is seen for the second time.
    Repeated,
    /// At the end, the lines that were seen as often as that. With --count, their numbers come before them.
    AtEnd {
        lines: Option<Spool>,
        /// With --filter, the lines of this run.
        of_this_run: Option<Box<Growing>>,
        accepts: fn(u32) -> bool,
        with_counts: bool,
    },
}

/// The state of a run, which the signal handler shares.
#[allow(clippy::struct_excessive_bools, reason = "options and facts that are independent of each other")]
pub(super) struct Sieve {
    pub(super) memory: Memory,
    pub(super) select: Select,
    pub(super) format: Format,
    pub(super) keys_only: bool,
    /// True if the number of lines is printed, not the lines.
    pub(super) count_only: bool,
    pub(super) has_summary: bool,
    pub(super) out: Out,
    pub(super) tally: Tally,
    /// True if more is remembered than before the run.
    pub(super) is_changed: bool,
    pub(super) is_finished: bool,
    /// Set by a signal. While lines are printed at the end, it ends the run, which then leaves the filter unchanged.
    pub(super) is_interrupted: Arc<AtomicBool>,
}

/// The numbers of lines: all, and of these the short ones, those that no run had seen before with the short ones that were passed,
/// the others, and those that were printed.
#[derive(Default)]
pub(super) struct Tally {
    lines: u64,
    short: u64,
    new: u64,
    seen: u64,
    pub(super) printed: u64,
}

/// The reason why reading lines ended.
pub(super) enum End {
    /// There are no more lines, or a line could not be read or remembered.
    Read(anyhow::Result<()>),
    /// A signal came.
    Interrupted,
    /// A line could not be printed.
    NotPrinted(anyhow::Error),
}

/// Takes lines until there are no more or one fails, and prints those that can be printed at once.
pub(super) fn pass_lines(items: &mut Items, sieve: &Mutex<Sieve>) -> End {
    let (mut lines, mut short) = (0, 0);
    loop {
        let advanced = items.advance_line();
        let mut sieve = lock(sieve);
        // The filter was written because of a signal, which ends the process, so no line may be printed any more.
        if sieve.is_finished {
            drop(sieve);
            wait_for_signal();
        }
        sieve.tally.lines += items.lines() - mem::replace(&mut lines, items.lines());
        sieve.tally.short += items.short() - mem::replace(&mut short, items.short());
        match advanced {
            Ok(Advance::Line) => {}
            // The next line may take long to arrive, so those before it are printed.
            Ok(Advance::Wait) => match sieve.flush() {
                Ok(()) => continue,
                Err(error) => return End::NotPrinted(error),
            },
            end => return End::Read(end.map(|_| ())),
        }
        if let Err(end) = sieve.begin_line(items) {
            return end;
        }
        let is_printed = match sieve.take(items) {
            Err(error) => return End::Read(Err(error)),
            Ok(is_printed) => is_printed,
        };
        let printed = if is_printed { sieve.print_line(items, None) } else { Ok(()) };
        if let Err(error) = printed {
            return End::NotPrinted(error);
        }
    }
}

/// Waits for the end of the process, which a signal has caused.
pub(super) fn wait_for_signal() -> ! {
    loop {
        thread::park();
    }
}

pub(super) fn lock(sieve: &Mutex<Sieve>) -> MutexGuard<'_, Sieve> {
    sieve.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sieve {
    /// Prints the buffered lines if the line that was read last does not fit among them, or begins a slice of a window. What a window
    /// writes about a line then comes before the line is printed.
    fn begin_line(&mut self, items: &Items) -> Result<(), End> {
        let Memory::Window(window) = &mut self.memory else { return Ok(()) };
        let has_turned = window.tick();
        if has_turned || !self.out.has_room(items.line().len()) {
            self.flush().map_err(End::NotPrinted)?;
        }
        match &mut self.memory {
            Memory::Window(window) if has_turned => window.turn().map_err(|error| End::Read(Err(error))),
            _ => Ok(()),
        }
    }

    /// Prints the buffered lines, which a window remembers first.
    fn flush(&mut self) -> anyhow::Result<()> {
        let Memory::Window(window) = &mut self.memory else { return self.out.flush() };
        window.write()?;
        self.out.flush()?;
        window.mark_printed();
        Ok(())
    }

    /// Remembers the line that was read last. Returns whether it is printed now.
    fn take(&mut self, items: &Items) -> anyhow::Result<bool> {
        let Some(item) = items.item() else {
            // A short line that is passed is new, and not remembered.
            self.tally.new += 1;
            return match &mut self.select {
                Select::New => Ok(true),
                Select::Repeated => Ok(false),
                Select::AtEnd { lines, .. } => lines.as_mut().map_or(Ok(()), |lines| lines.push(items)).map(|()| false),
            };
        };
        let (is_changed, is_new, is_printed) = match (&mut self.memory, &mut self.select) {
            (Memory::Window(window), _) => {
                let is_new = window.see(item);
                let is_new = is_new.map_err(|error| anyhow!(window::refused(&items.place(), &error)))?;
                (true, is_new, is_new)
            }
            (Memory::Filter { filter, .. }, Select::New) => {
                let is_new = filter.insert_unique(item).map_err(|error| refused(items, filter, &error))?;
                (is_new, is_new, is_new)
            }
            (Memory::Filter { filter, .. }, Select::Repeated) => {
                let before = filter.count(item);
                if before < 2 {
                    filter.insert(item).map_err(|error| refused(items, filter, &error))?;
                }
                (before < 2, before == 0, before == 1)
            }
            (Memory::Filter { filter, .. }, Select::AtEnd { lines, of_this_run, .. }) => {
                let is_new = filter.count(item) == 0;
                let is_first = match of_this_run {
                    Some(run) => run.insert_unique(item).map_err(|error| refused(items, filter, &error))?,
                    None => is_new,
                };
                if let Some(lines) = lines.as_mut().filter(|_| is_first) {
                    lines.push(items)?;
                }
                filter.insert(item).map_err(|error| refused(items, filter, &error))?;
                (true, is_new, false)
            }
        };
        self.is_changed |= is_changed;
        self.tally.new += u64::from(is_new);
        self.tally.seen += u64::from(!is_new);
        Ok(is_printed)
    }

    /// Prints the line that was read last, or its keys, after this count; with --count-only, only counts it.
    fn print_line(&mut self, items: &Items, count: Option<u32>) -> anyhow::Result<()> {
        self.tally.printed += 1;
        if self.count_only {
            return Ok(());
        }
        let line = if self.keys_only { items.key() } else { items.line() };
        match &mut self.memory {
            // The buffer does not hold it, so it is printed at once.
            Memory::Window(window) if !self.out.has_room(line.len()) => window.write()?,
            _ => {}
        }
        // As wide as in `uniq -c`.
        count.map_or(Ok(()), |count| self.out.text(format_args!("{count:>7} ")))?;
        self.out.item(line, items.separator())
    }

    /// Prints the lines that had to wait for the end, until there is a signal. If a signal was the end, only another one stops it.
    fn print_lines_at_end(&mut self, is_interrupted: bool) -> anyhow::Result<()> {
        let Select::AtEnd { lines, accepts, with_counts, .. } = &mut self.select else { return Ok(()) };
        let (Some(lines), accepts, with_counts) = (lines.take(), *accepts, *with_counts) else { return Ok(()) };
        let mut items = lines.into_items(&self.format)?;
        loop {
            match items.advance_line()? {
                Advance::Line => {}
                Advance::Wait => continue,
                Advance::End => return Ok(()),
            }
            if !is_interrupted && self.is_interrupted.load(Ordering::Relaxed) {
                return Err(Interrupted.into());
            }
            let count = match &self.memory {
                Memory::Filter { filter, .. } => items.item().map_or(1, |item| filter.count(item)),
                // It counts nothing.
                Memory::Window(_) => 1,
            };
            if accepts(count) {
                self.print_line(&items, with_counts.then_some(count))?;
            }
        }
    }

    /// Prints the buffered lines, or their number unless an error came before the first one.
    fn print(&mut self, has_failed: bool) -> anyhow::Result<()> {
        if self.count_only && !(has_failed && self.tally.new + self.tally.seen == 0) {
            self.out.item(self.tally.printed.to_string().as_bytes(), b'\n')?;
        }
        match self.flush() {
            // Without a filter, nothing is lost.
            Err(error) if error.is::<Closed>() && self.count_only && self.memory.name().is_none() => Ok(()),
            flushed => flushed,
        }
    }

    /// Ends the run: prints what is to be printed, and only then writes the filter. A second call does nothing.
    pub(super) fn finish(&mut self, end: End) -> anyhow::Result<()> {
        if self.is_finished {
            return Ok(());
        }
        self.is_finished = true;
        let finished = self.print_and_save(end);
        self.memory.close();
        finished
    }

    fn print_and_save(&mut self, end: End) -> anyhow::Result<()> {
        let (is_interrupted, read) = match end {
            End::Read(read) => (false, read),
            End::Interrupted => (true, Ok(())),
            End::NotPrinted(error) => return self.take_back(error),
        };
        let printed = self.print_lines_at_end(is_interrupted).and_then(|()| self.print(read.is_err()));
        if let Err(error) = printed {
            return self.take_back(error);
        }
        let saved = self.memory.save(self.is_changed, read.is_ok(), self.count_only);
        if let (Err(_), Err(error)) = (&saved, &read) {
            terminal::failure(error);
        }
        saved?;
        if self.has_summary {
            terminal::say(format_args!("{}", self.summary()));
        }
        if self.memory.name().is_some() && (self.tally.seen > 0 || self.is_changed) {
            return read.map_err(|error| anyhow!("{error:#}; the lines before it are remembered"));
        }
        read
    }

    /// Forgets the lines that this error has kept from being printed.
    fn take_back(&self, error: anyhow::Error) -> anyhow::Result<()> {
        self.memory.take_back(self.count_only).and(Err(error))
    }

    fn summary(&self) -> String {
        let Tally { lines, short, new, seen, printed } = self.tally;
        let name = self.memory.name().unwrap_or_else(|| String::from("not kept"));
        let (items, extent, rate) = self.memory.extent();
        let mut facts = vec![("lines", lines.to_string()), ("  new", new.to_string())];
        let fate = match self.format.short {
            Some(Short::Pass) => "counted as new",
            Some(Short::Skip) => "left out",
            Some(Short::Error) | None => "an error",
        };
        facts.extend((short > 0).then(|| ("  short", format!("{short}, without the field of --key; {fate}"))));
        facts.push(("  seen before", seen.to_string()));
        let verb = if self.count_only { "counted" } else { "printed" };
        facts.extend((!matches!(self.select, Select::New)).then(|| (verb, printed.to_string())));
        facts.extend([
            ("filter", format!("{name}, {} ({extent})", counted(items, "item"))),
            ("false positives", facts::rate(rate)),
        ]);
        facts::aligned(&facts)
    }
}

/// Returns the error about the line that was read last, which a filter refused.
fn refused(items: &Items, filter: &Snapshot, error: &koel::InsertError) -> anyhow::Error {
    anyhow!(items.refused_by(filter, error, Inserting::Uniq))
}

#[cfg(test)]
mod tests {
    use koel::{ElasticFilter, hash::AnyHasher};

    use super::*;
    use crate::terminal::Progress;

    /// A signal stops the lines that are printed at the end, unless a signal was the end.
    #[test]
    fn a_signal_stops_the_lines_at_the_end() {
        for is_end in [false, true] {
            let format = Format::default();
            let input = Box::new(&b"a\nb\na\n"[..]);
            let mut items = Items::from_reader(input, &format, String::from("list"), Progress::hidden()).expect("a list");
            let filter =
                ElasticFilter::builder().hasher(AnyHasher::default()).false_positive_rate(1e-6).build().expect("a filter");
            let lines = Some(Spool::new().expect("a temporary file"));
            let sieve = Mutex::new(Sieve {
                memory: Memory::Filter { filter: Snapshot::Growing(Box::new(filter)), output: None },
                select: Select::AtEnd { lines, of_this_run: None, accepts: |_| false, with_counts: false },
                format,
                keys_only: false,
                count_only: false,
                has_summary: false,
                out: Out::new(),
                tally: Tally::default(),
                is_changed: false,
                is_finished: false,
                is_interrupted: Arc::default(),
            });
            let end = pass_lines(&mut items, &sieve);
            assert!(matches!(end, End::Read(Ok(()))));
            let mut sieve = lock(&sieve);
            sieve.is_interrupted.store(true, Ordering::Relaxed);
            let ended = sieve.finish(if is_end { End::Interrupted } else { end });
            assert_eq!(ended.is_err_and(|error| error.is::<Interrupted>()), !is_end);
        }
    }
}
