//! Filters that forget after a time: each has the lines of one slice of time, and the oldest are dropped.
//!
//! In a folder, a slice is an ordinary snapshot, whose name has the slice's begin and length. While a run goes on, its newest slice
//! also has a journal: the hash of each line in 8 bytes, little-endian, written before the line is printed. So no line is printed that
//! is not remembered, even if the run is killed. When the slice or the run ends, a snapshot replaces the journal.
//!
//! ```text
//! seen/20261128T124000Z-300s.koel       12:40 to 12:45
//!      20261128T124500Z-300s.koel       12:45 to 12:50, as it was at the begin of the run
//!      20261128T124500Z-300s.hashes     what the run has added
//!      lock                             locked by the run
//! ```

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    env,
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write as _},
    mem,
    path::{Path, PathBuf},
    process,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, anyhow, bail};
use koel::{BuildError, ElasticBuilder, ElasticFilter, InsertError, InsertErrorKind, ParamError, Prehashed, hash::AnyHasher};

use crate::{
    errors::{self, Inserting},
    file::{
        self, Growing, Invalid, Output, Snapshot,
        slice::{LAST_SECOND, Part, format_time},
    },
    options, terminal,
};

/// The number of whole slices that lines are remembered for. The newest slice, which has just begun, is one more.
const SLICES: u64 = 12;

/// The number of filters at most.
const FILTERS: usize = 13;

/// The name of the file that is locked while a folder changes.
const LOCK: &str = "lock";

/// Settings for tests, from environment variables that only builds with debug assertions read: the clock, and the step at which the
/// run aborts.
#[derive(Clone, Copy)]
struct Trial {
    /// The time of the next line, in seconds since 1970, and the seconds between two lines.
    clock: Option<(u64, u64)>,
    /// The number of the step before which the run aborts.
    abort_at: Option<u64>,
}

impl Trial {
    /// Reads `KOEL_CLOCK`, such as `1800000000+60`, and `KOEL_ABORT_AT`.
    fn from_env() -> Self {
        let variable = |name| if cfg!(debug_assertions) { env::var(name).ok() } else { None };
        let clock = variable("KOEL_CLOCK");
        let clock = clock.as_deref().and_then(|clock| clock.split_once('+'));
        Self {
            clock: clock.and_then(|(first, apart)| Some((first.parse().ok()?, apart.parse().ok()?))),
            abort_at: variable("KOEL_ABORT_AT").and_then(|step| step.parse().ok()),
        }
    }

    /// Returns the time, in seconds since 1970.
    fn now(self) -> u64 {
        let of_system = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        self.clock.map_or_else(of_system, |(now, _)| now).min(LAST_SECOND)
    }

    /// Returns the time of a line.
    fn tick(&mut self) -> u64 {
        let now = self.now();
        self.clock = self.clock.map(|(now, apart)| (now + apart, apart));
        now
    }
}

/// A time after which lines are forgotten: that of whole slices.
fn forget_after(slice: u64) -> impl std::fmt::Display {
    humantime::format_duration(Duration::from_secs(SLICES * slice))
}

/// The files of a folder.
#[derive(Default)]
struct Listing {
    /// The parts of each slice, by its begin.
    slices: BTreeMap<u64, Vec<Part>>,
    /// The length of the slices in seconds; 0 if there are none.
    slice: u64,
    /// Files that a killed command left while it wrote a snapshot.
    leftovers: Vec<PathBuf>,
}

impl Listing {
    /// Lists a folder. Fails if it has other files.
    fn read(folder: &Path) -> anyhow::Result<Self> {
        let (name, mut listing) = (folder.display(), Self::default());
        let context = || format!("{name}: cannot be read");
        for entry in fs::read_dir(folder).with_context(context)? {
            let entry = entry.with_context(context)?;
            let file = entry.file_name().to_string_lossy().into_owned();
            match Part::parse(&file) {
                Some((_, _, slice)) if listing.slice > 0 && listing.slice != slice => {
                    bail!("{name}: has slices of {} and of {slice} seconds; move one kind to another folder", listing.slice)
                }
                Some((part, start, slice)) => {
                    listing.slice = slice;
                    listing.slices.entry(start).or_default().push(part);
                }
                None if file.strip_prefix(".koel-").and_then(|rest| rest.strip_suffix(".tmp")).is_some() => {
                    listing.leftovers.push(entry.path());
                }
                None if file == LOCK => {}
                None => bail!("{name}: has other files, such as {file}; give a folder of its own to `koel uniq --forget`"),
            }
        }
        Ok(listing)
    }

    /// Returns the begins of the slices that have this part.
    fn with(&self, part: Part) -> Vec<u64> {
        self.slices.iter().filter(|(_, parts)| parts.contains(&part)).map(|(&start, _)| start).collect()
    }
}

/// The lines of one slice of time.
struct Slice {
    /// The begin, in seconds since 1970.
    start: u64,
    filter: Growing,
    /// True if the filter differs from the one in its file.
    is_changed: bool,
}

impl Slice {
    fn new(start: u64, limits: Limits) -> anyhow::Result<Self> {
        Ok(Self { start, filter: limits.build()?, is_changed: true })
    }

    fn insert(&mut self, hash: u64) -> Result<bool, InsertError> {
        let is_new = self.filter.insert_unique(&Prehashed(hash))?;
        self.is_changed |= is_new;
        Ok(is_new)
    }
}

/// The limits of the filters.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// The false-positive rate of all together, and of each.
    rate: f64,
    rate_of_each: f64,
    /// The bytes of all together.
    max_bytes: Option<usize>,
}

impl Limits {
    pub(crate) fn new(rate: f64, max_bytes: Option<usize>) -> Self {
        Self { rate, rate_of_each: rate_of_each(rate), max_bytes }
    }

    /// Returns the limit of each filter in bytes.
    fn max_bytes_of_each(self) -> usize {
        self.max_bytes.map_or(usize::MAX, |bytes| bytes / FILTERS)
    }

    /// Builds an empty filter.
    fn build(self) -> anyhow::Result<Growing> {
        let builder = |rate| ElasticFilter::builder().hasher(AnyHasher::default()).false_positive_rate(rate);
        let error = |error| match error {
            BuildError::Param(ParamError::FalsePositiveRate { min, .. }) => {
                errors::rate(self.rate, rate_of_all(min), "a filter with --forget", "")
            }
            BuildError::Param(ParamError::MaxBytes { needed, .. }) => anyhow!(
                "--max-bytes: {} given, but {FILTERS} empty filters take up to {}; give more",
                self.max_bytes.unwrap_or(0),
                needed.saturating_mul(FILTERS)
            ),
            error => errors::build(error, ""),
        };
        // A share of a rate above 1 may be a valid rate.
        builder(self.rate).params().map_err(|param| error(param.into()))?;
        let builder = builder(self.rate_of_each).max_bytes(self.max_bytes_of_each());
        options::kernel()?.into_iter().fold(builder, ElasticBuilder::kernel).build().map_err(error)
    }
}

/// Returns the rate of each filter: they add up.
fn rate_of_each(rate: f64) -> f64 {
    rate / FILTERS as f64
}

/// Returns the rate of all filters with this one.
fn rate_of_all(rate: f64) -> f64 {
    rate * FILTERS as f64
}

/// Returns the shortest rate of all filters that gives each of them this one.
fn shortest_rate_of_all(each: f64) -> f64 {
    let all = rate_of_all(each);
    let mut rates = (0..17).filter_map(|digits| format!("{all:.digits$e}").parse().ok());
    rates.find(|&rate| rate_of_each(rate).to_bits() == each.to_bits()).unwrap_or(all)
}

/// Returns the message about a line that the newest filter refused.
pub(crate) fn refused(place: &str, error: &InsertError) -> String {
    match error.kind() {
        InsertErrorKind::Limit { needed, max_bytes } => format!(
            "{place}: one of {FILTERS} filters would take {needed} bytes, which is more than {max_bytes}, its share of --max-bytes; \
             give a higher --max-bytes"
        ),
        _ => errors::refused(place, error, 0, Inserting::Uniq),
    }
}

/// The folder that keeps a window.
struct Store {
    folder: PathBuf,
    /// The length of a slice in seconds.
    slice: u64,
    journal: Option<File>,
    /// Hashes that are not in the journal yet.
    unwritten: Vec<u8>,
    /// The length of the journal, and of its part whose lines were printed.
    written: u64,
    printed: u64,
    steps: u64,
    abort_at: Option<u64>,
    /// Dropping it removes the lock file, if this run created it.
    lock: Output,
}

impl Store {
    fn name(&self) -> String {
        self.folder.display().to_string()
    }

    fn path(&self, part: Part, start: u64) -> PathBuf {
        self.folder.join(part.name(start, self.slice))
    }

    /// Marks a moment when a kill leaves the folder in another state.
    fn step(&mut self) {
        self.steps += 1;
        if self.abort_at == Some(self.steps) {
            process::abort();
        }
    }

    /// Writes a slice, if it has changed, and removes its journal, whose lines it has.
    fn save(&mut self, slice: &mut Slice) -> anyhow::Result<()> {
        if slice.is_changed {
            self.step();
            self.lock.check_lock()?;
            // The error names the file.
            slice.filter.save(self.path(Part::Filter, slice.start))?;
            slice.is_changed = false;
        }
        let journal = self.path(Part::Journal, slice.start);
        // An open file cannot be removed on every system.
        if self.journal.take().is_some() || journal.exists() {
            (self.written, self.printed) = (0, 0);
            self.remove(&journal)?;
        }
        Ok(())
    }

    fn remove(&mut self, path: &Path) -> anyhow::Result<()> {
        self.step();
        match fs::remove_file(path) {
            // Another program has removed it.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.with_context(|| format!("{}: cannot be removed", path.display())),
        }
    }

    /// Appends the hashes of lines that are about to be printed to the journal.
    fn write(&mut self, start: u64) -> anyhow::Result<()> {
        if self.unwritten.is_empty() {
            return Ok(());
        }
        self.step();
        self.lock.check_lock()?;
        let path = self.path(Part::Journal, start);
        let mut file = match self.journal.take() {
            Some(file) => Ok(file),
            // Not to append: a file that is open for that cannot be shortened on every system. There is no other journal: it was
            // loaded and removed.
            None => OpenOptions::new().write(true).create(true).truncate(true).open(&path),
        };
        let written = file.as_mut().map_err(|error| error.kind().into()).and_then(|file| file.write_all(&self.unwritten));
        self.journal = file.ok();
        written.with_context(|| format!("{}: cannot be written", path.display()))?;
        self.written += mem::take(&mut self.unwritten).len() as u64;
        self.step();
        Ok(())
    }

    /// Removes the lines from the journal that could not be printed.
    fn take_back(&self) -> anyhow::Result<()> {
        let cut = self.journal.as_ref().map_or(Ok(()), |journal| journal.set_len(self.printed));
        cut.with_context(|| format!("{}: lines that were not printed stay remembered", self.name()))
    }
}

/// Filters that forget lines that were not seen for some time.
pub(crate) struct Window {
    /// `None` if nothing is kept for later runs.
    store: Option<Store>,
    trial: Trial,
    /// The time of the last line, in seconds since 1970.
    now: u64,
    /// The length of a slice in seconds.
    slice: u64,
    limits: Limits,
    newest: Slice,
    /// The other slices, newest first.
    older: VecDeque<Slice>,
}

impl Window {
    /// Opens the window in a folder, which is created if there is none. Without a folder, makes an empty one. What is not given, of the
    /// seconds after which a line is forgotten and the false-positive rate, is taken from the folder.
    pub(crate) fn open(folder: Option<&Path>, forget: Option<u64>, rate: Option<f64>, limits: Limits) -> anyhow::Result<Self> {
        // Invalid limits are reported before the folder is created.
        limits.build()?;
        let trial = Trial::from_env();
        let wanted = forget.map(|forget| forget.div_ceil(SLICES));
        let Some(folder) = folder else {
            let (now, slice) = (trial.now(), wanted.unwrap_or(1));
            let newest = Slice::new(now - now % slice, limits)?;
            return Ok(Self { store: None, trial, now, slice, limits, newest, older: VecDeque::new() });
        };
        let name = folder.display();
        match fs::create_dir(folder) {
            // Another run may have created it at the same time.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => created.with_context(|| format!("{name}: cannot be created as a folder; give a name in a folder"))?,
        }
        if !folder.is_dir() {
            bail!("{name}: is not a folder, which --forget takes; give the name of one, or leave --forget out");
        }
        let lock = Output::existing_or_new(&folder.join(LOCK))?;
        // Another run may have held the lock for long.
        let now = trial.now();
        let listing = Listing::read(folder)?;
        let slice = match (listing.slice, wanted) {
            (0, wanted) => wanted.unwrap_or(1),
            (slice, Some(wanted)) if slice != wanted => bail!(
                "--forget: {} given, but {name} forgets after {}; leave --forget out, or give another folder",
                forget_after(wanted),
                forget_after(slice)
            ),
            (slice, _) => slice,
        };
        let mut store = Store {
            folder: folder.to_owned(),
            slice,
            journal: None,
            unwritten: Vec::new(),
            written: 0,
            printed: 0,
            steps: 0,
            abort_at: trial.abort_at,
            lock,
        };
        let (mut older, limits) = load(&mut store, &listing, rate, limits)?;
        let mut newest = match older.pop_front() {
            Some(newest) => newest,
            None => Slice::new(now - now % slice, limits)?,
        };
        newest.filter.set_max_bytes(limits.max_bytes_of_each());
        if newest.start > now {
            terminal::say(format_args!(
                "koel: {name}: has lines from {}, which is in the future for this machine's clock; until then, none is forgotten; if \
                 that clock was wrong, remove the file of that time\n",
                format_time(newest.start)
            ));
        }
        let mut window = Self { store: Some(store), trial, now, slice, limits, newest, older };
        // The folder always has a filter, which tells the length of slices and the rate.
        window.save()?;
        window.drop_oldest()?;
        Ok(window)
    }

    /// Notes that a line has arrived. Returns whether a new slice begins with it. Then lines that were seen before must be printed, and
    /// [`turn`](Self::turn) called.
    pub(crate) fn tick(&mut self) -> bool {
        self.now = self.trial.tick();
        // If the clock goes back, the slice lasts longer.
        self.now >= self.newest.start + self.slice
    }

    /// Begins a slice, and forgets those that are too old.
    pub(crate) fn turn(&mut self) -> anyhow::Result<()> {
        self.save()?;
        let newest = Slice::new(self.now - self.now % self.slice, self.limits)?;
        self.older.push_front(mem::replace(&mut self.newest, newest));
        self.save()?;
        self.drop_oldest()
    }

    /// Drops the slices that are too old.
    fn drop_oldest(&mut self) -> anyhow::Result<()> {
        while let Some(oldest) = self.older.back().filter(|oldest| oldest.start + (SLICES + 1) * self.slice <= self.now) {
            if let Some(store) = &mut self.store {
                let path = store.path(Part::Filter, oldest.start);
                store.remove(&path)?;
            }
            self.older.pop_back();
        }
        Ok(())
    }

    /// Remembers a line. Returns whether it was not seen within the window.
    pub(crate) fn see(&mut self, line: &[u8]) -> Result<bool, InsertError> {
        let key = Prehashed::of(&AnyHasher::default(), 0, line);
        // A line that an older slice has is remembered from now on.
        let is_first = self.newest.insert(key.0)?;
        if let Some(store) = self.store.as_mut().filter(|_| is_first) {
            store.unwritten.extend(key.0.to_le_bytes());
        }
        Ok(is_first && !self.older.iter().any(|slice| slice.filter.contains(&key)))
    }

    /// Writes what is remembered of the lines since the last call. Call it before they are printed.
    pub(crate) fn write(&mut self) -> anyhow::Result<()> {
        self.store.as_mut().map_or(Ok(()), |store| store.write(self.newest.start))
    }

    /// Notes that all lines were printed.
    pub(crate) fn mark_printed(&mut self) {
        if let Some(store) = &mut self.store {
            store.step();
            store.printed = store.written;
        }
    }

    /// Forgets the lines that could not be printed.
    pub(crate) fn take_back(&self) -> anyhow::Result<()> {
        self.store.as_ref().map_or(Ok(()), Store::take_back)
    }

    /// Writes the newest slice, whose lines were printed.
    pub(crate) fn save(&mut self) -> anyhow::Result<()> {
        self.store.as_mut().map_or(Ok(()), |store| store.save(&mut self.newest))
    }

    /// Returns the folder's name, if there is one.
    pub(crate) fn name(&self) -> Option<String> {
        self.store.as_ref().map(Store::name)
    }

    /// Unlocks the folder.
    pub(crate) fn close(&mut self) {
        self.store = None;
    }

    /// Returns the filters, newest first.
    pub(crate) fn filters(&self) -> impl Iterator<Item = &Growing> {
        [&self.newest].into_iter().chain(&self.older).map(|slice| &slice.filter)
    }
}

/// Loads all slices, newest first, and replaces the journals of runs that were killed by snapshots. Without a given `rate`, that of the
/// folder becomes the limit.
fn load(
    store: &mut Store,
    listing: &Listing,
    rate: Option<f64>,
    mut limits: Limits,
) -> anyhow::Result<(VecDeque<Slice>, Limits)> {
    for path in &listing.leftovers {
        store.remove(path)?;
    }
    let mut slices = VecDeque::new();
    for start in listing.with(Part::Filter) {
        let filter = load_filter(&store.path(Part::Filter, start))?;
        let found = filter.params().false_positive_rate();
        match rate {
            None => limits.rate_of_each = found,
            Some(rate) if rate_of_each(rate).to_bits() == found.to_bits() => {}
            Some(rate) => {
                let (name, built) = (store.name(), shortest_rate_of_all(found));
                bail!("--fpr: {rate:?} given, but {name} was built for {built:?}; leave --fpr out, or give another folder");
            }
        }
        slices.push_front(Slice { start, filter, is_changed: false });
    }
    for start in listing.with(Part::Journal) {
        let path = store.path(Part::Journal, start);
        let at = slices.iter().position(|slice: &Slice| slice.start <= start).unwrap_or(slices.len());
        if slices.get(at).is_none_or(|slice| slice.start < start) {
            slices.insert(at, Slice::new(start, Limits { max_bytes: None, ..limits })?);
        }
        for hash in read_journal(&path)? {
            slices[at].insert(hash).with_context(|| format!("{}: cannot be loaded", path.display()))?;
        }
        store.save(&mut slices[at])?;
    }
    Ok((slices, limits))
}

/// Reads a filter, which must have the hashes of journals.
fn load_filter(path: &Path) -> anyhow::Result<Growing> {
    let loaded = file::load_snapshot(path).map_err(|error| {
        // Whatever else prevents reading may pass, and the lines are still there.
        if error.is::<Invalid>() { anyhow!("{error}; to go on without the lines in this file, remove it") } else { error }
    });
    match loaded? {
        Snapshot::Growing(filter) if *filter.hasher() == AnyHasher::default() && filter.params().seed() == 0 => Ok(*filter),
        _ => bail!("{}: was not written by `koel uniq --forget`; remove it from the folder", path.display()),
    }
}

/// Reads the hashes in a journal. The last one may be incomplete: its line was not printed.
fn read_journal(path: &Path) -> anyhow::Result<Vec<u64>> {
    let bytes = fs::read(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    Ok(bytes.as_chunks().0.iter().map(|&hash| u64::from_le_bytes(hash)).collect())
}

/// The contents of a window's folder.
pub(crate) struct Contents {
    /// The filters, oldest first.
    pub(crate) filters: Vec<Growing>,
    /// The hashes of lines in journals, which are in no filter yet.
    pub(crate) in_journals: HashSet<u64>,
    /// The begin of the oldest slice, and the end of the newest.
    pub(crate) times: [String; 2],
    /// The seconds after which a line is forgotten, at least and at most.
    pub(crate) forgets_after: [u64; 2],
    /// The bytes of all files.
    pub(crate) bytes: u64,
}

impl Contents {
    /// Reads and checks all of a folder. A run may change it in the meantime, but no line goes missing: journals are read before the
    /// filters that replace them.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Self> {
        // An invalid kernel is not an error in the files.
        options::kernel()?;
        let listing = Listing::read(folder)?;
        let (mut filters, mut in_journals, mut bytes) = (Vec::new(), HashSet::new(), 0);
        for part in [Part::Journal, Part::Filter] {
            for start in listing.with(part) {
                let path = folder.join(part.name(start, listing.slice));
                let length = fs::metadata(&path).map_or(0, |metadata| metadata.len());
                let read = match part {
                    Part::Filter => load_filter(&path).map(|filter| filters.push(filter)),
                    Part::Journal => read_journal(&path).map(|hashes| in_journals.extend(hashes)),
                };
                match read {
                    // It was forgotten, or a snapshot has replaced it.
                    Err(_) if !path.exists() => {}
                    read => read?,
                }
                bytes += length;
            }
        }
        let (first, last) = (listing.slices.keys().next().unwrap_or(&0), listing.slices.keys().last().unwrap_or(&0));
        let times = [*first, last + listing.slice].map(|second| format_time(second).to_string());
        let forgets_after = [SLICES, SLICES + 1].map(|slices| slices * listing.slice);
        Ok(Self { filters, in_journals, times, forgets_after, bytes })
    }

    /// Returns whether the folder has a line.
    pub(crate) fn contains(&self, line: &[u8]) -> bool {
        let key = Prehashed::of(&AnyHasher::default(), 0, line);
        self.in_journals.contains(&key.0) || self.filters.iter().any(|filter| filter.contains(&key))
    }
}
