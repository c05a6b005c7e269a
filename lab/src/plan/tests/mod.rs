//! Tests with an experiment that takes no time, and fails where it is told to.

mod builds;
mod journal;
mod refusals;
mod runs;

use std::{
    fs,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::bail;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::experiment::{Column, Fields, Findings, Table, fields};

/// An experiment that records which cases it measured.
struct Fake {
    numbers: Vec<u64>,
    is_timed: bool,
    /// The memory that a case takes.
    memory: u64,
    /// It is interrupted after this many cases.
    patience: AtomicU64,
    /// The number of the case that fails, and how.
    trouble: Option<(u64, Trouble)>,
    done: Mutex<Vec<u64>>,
}

#[derive(Clone, Copy)]
enum Trouble {
    Error,
    Panic,
    NotANumber,
    Interruption,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Numbered {
    number: u64,
    third: f64,
    name: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Drawn {
    share: f64,
    random: u64,
    note: Option<String>,
}

impl Fake {
    fn of(numbers: impl IntoIterator<Item = u64>) -> Self {
        Self {
            numbers: numbers.into_iter().collect(),
            is_timed: false,
            memory: 1 << 20,
            patience: AtomicU64::new(u64::MAX),
            trouble: None,
            done: Mutex::default(),
        }
    }

    fn stopping_after(mut self, cases: u64) -> Self {
        self.patience = AtomicU64::new(cases);
        self
    }

    fn with(mut self, number: u64, trouble: Trouble) -> Self {
        self.trouble = Some((number, trouble));
        self
    }

    fn timed(mut self) -> Self {
        self.is_timed = true;
        self
    }

    /// The cases that were measured, sorted, with repetitions.
    fn done(&self) -> Vec<u64> {
        let mut done = self.done.lock().unwrap().clone();
        done.sort_unstable();
        done
    }

    fn plan<'a>(&'a self, settings: &Settings) -> anyhow::Result<Plan<'a>> {
        Plan::new(self, settings)
    }

    fn run(&self, settings: &Settings) -> anyhow::Result<Outcome> {
        self.plan(settings)?.run(&Interrupt::new())
    }
}

impl Experiment for &Fake {
    fn about(&self) -> About {
        let columns = ["number", "third", "name", "share", "random", "note"].map(|name| Column::new(name, "", "")).to_vec();
        About { columns, is_timed: self.is_timed, ..About::new("fake", "A fake", "Nothing.") }
    }

    fn cases(&self, scope: &Scope) -> anyhow::Result<Vec<Planned>> {
        let case = |number| {
            let case = Numbered { number, third: number as f64 / 3.0, name: format!("\"no. {number}\", as it is") };
            // The efforts give neither the order of the plan nor its reverse.
            Planned::new(&case, number * 7 % 10, self.memory)
        };
        scope.allowed(&self.numbers).into_iter().map(case).collect()
    }

    fn measure(&self, case: &Fields, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Fields>> {
        let case = Numbered::deserialize(case)?;
        // Not all experiments check it in the middle of a case.
        if case.number.is_multiple_of(2) {
            interrupt.check()?;
        }
        let mut share = seed as f64 / u64::MAX as f64;
        match self.trouble {
            Some((number, Trouble::Error)) if number == case.number => bail!("it is too dark"),
            Some((number, Trouble::Panic)) if number == case.number => panic!("no. {number} fell over"),
            Some((number, Trouble::NotANumber)) if number == case.number => share = f64::NAN,
            Some((number, Trouble::Interruption)) if number == case.number => {
                interrupt.set();
                interrupt.check()?;
            }
            _ => {}
        }
        self.done.lock().unwrap().push(case.number);
        if self.patience.fetch_sub(1, Ordering::Relaxed) == 1 {
            interrupt.set();
        }
        let note = case.number.is_multiple_of(2).then(|| String::from("even, \"in lines\"\nof two"));
        let rows = [Drawn { share, random: seed, note: None }, Drawn { share: share * 1e-9, random: !seed, note }];
        rows.iter().map(fields).collect()
    }

    fn findings(&self, measured: &[Measured]) -> anyhow::Result<Findings> {
        let measured = Measured::<Numbered, Drawn>::typed(measured)?;
        let mut table = Table::new("All of them", &["number"]);
        table.rows.extend(measured.iter().map(|m| vec![m.case.number.to_string()]));
        Ok(Findings { tables: vec![table], ..Findings::default() })
    }
}

/// A temporary folder of results.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn settings(&self) -> Settings {
        let scope = Scope { quick: true, seed: 1, max_slots: None };
        Settings { folder: self.0.path().to_owned(), scope, threads: 1, again: false }
    }

    fn path(&self, ending: &str) -> PathBuf {
        self.0.path().join(format!("fake{ending}"))
    }

    fn text(&self, ending: &str) -> String {
        fs::read_to_string(self.path(ending)).unwrap_or_else(|error| panic!("{ending}: {error}"))
    }

    fn record(&self) -> Value {
        serde_json::from_str(&self.text(".json")).unwrap()
    }

    /// The table and all results: the same for every way of running.
    fn results(&self) -> (String, Value) {
        (self.text(".csv"), self.record()["measured"].clone())
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

const NUMBERS: std::ops::Range<u64> = 0..23;
const JOURNAL: &str = ".partial.jsonl";

/// The results of a run without interruption.
fn undisturbed() -> (String, Value) {
    let folder = Folder::new();
    assert_eq!(Fake::of(NUMBERS).run(&folder.settings()).unwrap(), Outcome::Complete);
    folder.results()
}

/// Checks that planning fails with an error that contains these parts.
#[track_caller]
fn refused(fake: &Fake, settings: &Settings, parts: &[&str]) {
    let Err(error) = fake.plan(settings) else { panic!("nothing is wrong with that plan") };
    let message = format!("{error:#}");
    for part in parts {
        assert!(message.contains(part), "no \"{part}\" in: {message}");
    }
    assert!(fake.done().is_empty());
}

fn all(numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
    numbers.into_iter().collect()
}

/// A folder in which a run died after this many cases: it has nothing but a journal of them.
fn died_after(cases: u64) -> Folder {
    let folder = Folder::new();
    let trouble = Fake::of(0..=cases).with(cases, Trouble::Error);
    // Timed cases run in the order of the plan.
    trouble.timed().run(&folder.settings()).unwrap_err();
    assert_eq!(folder.names(), ["fake.partial.jsonl"]);
    folder
}

/// Runs to the end, and returns the cases that were measured for that.
#[track_caller]
fn completed(folder: &Folder) -> Vec<u64> {
    let fake = Fake::of(NUMBERS);
    assert_eq!(fake.run(&folder.settings()).unwrap(), Outcome::Complete);
    assert_eq!(folder.results(), undisturbed());
    assert_eq!(folder.names(), ["fake.csv", "fake.json"]);
    fake.done()
}
