//! Tests of plans, with an experiment that takes no time and fails in a chosen case.

use std::{ops::Range, sync::Mutex};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::{Column, Table};

/// An experiment that records which cases it measured.
#[derive(Default)]
struct Fake {
    numbers: Vec<u64>,
    is_timed: bool,
    memory: u64,
    /// The number of the case that fails, and how it fails.
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

use Trouble::{Error, Interruption};

#[derive(Serialize, Deserialize)]
struct Numbered {
    number: u64,
    third: f64,
    name: String,
}

#[derive(Serialize, Deserialize)]
struct Drawn {
    share: f64,
    random: u64,
    note: Option<String>,
}

impl Fake {
    fn new(numbers: impl IntoIterator<Item = u64>) -> Self {
        Self { numbers: all(numbers), ..Self::default() }
    }

    fn with(self, number: u64, trouble: Trouble) -> Self {
        Self { trouble: Some((number, trouble)), ..self }
    }

    /// Makes the experiment timed, so that cases run in the order of the plan.
    fn timed(self) -> Self {
        Self { is_timed: true, ..self }
    }

    /// Returns the cases that were measured, sorted, with repetitions.
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
    type Case = Numbered;
    type Row = Drawn;

    fn about(&self) -> About {
        let columns = ["number", "third", "name", "share", "random", "note"].map(|name| Column::new(name, "", "")).to_vec();
        About { columns, is_timed: self.is_timed, ..About::new("fake", "A fake", "Nothing.") }
    }

    fn cases(&self, scope: &Scope) -> Vec<Numbered> {
        let numbers = scope.allowed(&self.numbers).into_iter();
        numbers.map(|n| Numbered { number: n, third: n as f64 / 3.0, name: format!("\"no. {n}\", as it is") }).collect()
    }

    /// Returns efforts whose order is neither that of the plan nor its reverse.
    fn effort(&self, case: &Numbered) -> u64 {
        case.number * 7 % 10
    }

    fn memory(&self, _: &Numbered) -> u64 {
        self.memory
    }

    fn measure(&self, &Numbered { number, .. }: &Numbered, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Drawn>> {
        let mut share = seed as f64 / u64::MAX as f64;
        match self.trouble.filter(|trouble| trouble.0 == number) {
            Some((_, Trouble::Error)) => bail!("a made-up error"),
            Some((_, Trouble::Panic)) => panic!("case {number} panicked"),
            Some((_, Trouble::NotANumber)) => share = f64::NAN,
            Some((_, Trouble::Interruption)) => {
                interrupt.set();
                interrupt.check()?;
            }
            None => {}
        }
        self.done.lock().unwrap().push(number);
        let note = number.is_multiple_of(2).then(|| String::from("even, \"in lines\"\nof two"));
        Ok(vec![Drawn { share, random: seed, note: None }, Drawn { share: share * 1e-9, random: !seed, note }])
    }

    fn findings(&self, measured: &[Measured<Numbered, Drawn>]) -> Findings {
        let rows = measured.iter().map(|m| vec![m.case.number.to_string()]);
        Findings { tables: vec![Table::new("All of them", &["number"], rows)], ..Findings::default() }
    }
}

const NUMBERS: Range<u64> = 0..23;
const JOURNAL: &str = ".partial.jsonl";

fn all(numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
    numbers.into_iter().collect()
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// Creates a folder that has only a journal with this text.
    fn with_journal(text: impl AsRef<[u8]>) -> Self {
        let folder = Self::new();
        fs::write(folder.path(JOURNAL), text).unwrap();
        folder
    }

    /// Creates a folder after a run that ended at this case. An error leaves a journal, and an interruption leaves a record.
    fn after(number: u64, trouble: Trouble) -> Self {
        let folder = Self::new();
        folder.run_until(number, trouble, &folder.settings());
        folder
    }

    /// Runs one case at a time, and checks that the run ends at this case.
    fn run_until(&self, number: u64, trouble: Trouble, settings: &Settings) {
        let ended = Fake::new(NUMBERS).with(number, trouble).timed().run(settings);
        assert!(matches!((trouble, ended), (Error, Err(_)) | (Interruption, Ok(Outcome::Interrupted))), "{:?}", self.names());
    }

    fn settings(&self) -> Settings {
        let scope = Scope { quick: true, seed: 1, max_slots: None };
        Settings { folder: self.0.path().to_owned(), scope, threads: 1, again: false }
    }

    fn again(&self) -> Settings {
        Settings { again: true, ..self.settings() }
    }

    fn seeded(&self, seed: u64) -> Settings {
        Settings { scope: Scope { seed, ..self.settings().scope }, ..self.settings() }
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

    /// Returns the table and all results, which must not depend on how they were measured.
    fn results(&self) -> (String, Value) {
        (self.text(".csv"), self.record()["measured"].clone())
    }

    /// Returns the endings of all file names.
    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.map(|name| name.replace("fake", "")).collect();
        names.sort();
        names
    }

    /// Replaces text in a file, and returns the new content.
    fn change(&self, ending: &str, from: &str, to: &str) -> String {
        let text = self.text(ending);
        let changed = text.replace(from, to);
        assert_ne!(text, changed, "{from}");
        fs::write(self.path(ending), &changed).unwrap();
        changed
    }

    /// Runs to the end, and checks that the results are those of an uninterrupted run. Returns the cases that were measured.
    #[track_caller]
    fn complete(&self) -> Vec<u64> {
        let fake = Fake::new(NUMBERS);
        assert_eq!(fake.run(&self.settings()).unwrap(), Outcome::Complete);
        assert_eq!((self.results(), self.names()), (uninterrupted(), vec![String::from(".csv"), String::from(".json")]));
        fake.done()
    }

    /// Checks that planning fails with an error that contains these parts, and changes nothing.
    #[track_caller]
    fn assert_refused(&self, fake: &Fake, settings: &Settings, parts: &[&str]) {
        let state = || (self.names(), fs::read(self.path(JOURNAL)).ok(), fs::read(self.path(".json")).ok());
        let before = state();
        let Err(error) = fake.plan(settings) else { panic!("the plan was accepted") };
        let message = format!("{error:#}");
        for part in parts {
            assert!(message.contains(part), "no \"{part}\" in: {message}");
        }
        assert!(fake.done().is_empty() && state() == before);
    }
}

/// Checks that a run measures all cases.
#[track_caller]
fn measure_all(settings: &Settings) {
    let fake = Fake::new(NUMBERS);
    assert_eq!((fake.run(settings).unwrap(), fake.done()), (Outcome::Complete, all(NUMBERS)));
}

/// Returns the results of an uninterrupted run.
fn uninterrupted() -> (String, Value) {
    let folder = Folder::new();
    measure_all(&folder.settings());
    folder.results()
}

#[test]
fn cases_are_measured_once_and_written_in_the_plans_order() {
    let fake = Fake::new([3, 1, 2, 3, 20, 1]);
    let folder = Folder::new();
    drop(fake.plan(&folder.settings()).unwrap());
    assert_eq!(folder.names(), [""; 0], "the plan was not run");
    let plan = fake.plan(&folder.settings()).unwrap();
    assert_eq!((plan.name(), plan.cases(), plan.cases_left()), ("fake", 4, 4));
    assert_eq!(plan.run(&Interrupt::new()).unwrap(), Outcome::Complete);
    assert_eq!((fake.done(), folder.names()), (vec![1, 2, 3, 20], vec![String::from(".csv"), String::from(".json")]));
    let record = folder.record();
    assert_eq!((&record["complete"], &record["run"]["scope"]["seed"]), (&json!(true), &json!(1)));
    assert_eq!(record["run"]["build"], json!(Build::here()));
    assert_eq!(record["tables"][0]["rows"], json!([["3"], ["1"], ["2"], ["20"]]));
    let mut reader = csv::Reader::from_path(folder.path(".csv")).unwrap();
    assert_eq!(reader.headers().unwrap(), ["number", "third", "name", "share", "random", "note"].as_slice());
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.iter().map(|row| &row[0]).collect::<Vec<_>>(), ["3", "3", "1", "1", "2", "2", "20", "20"]);
    // The table has numbers with all digits, and unchanged text with commas, quotation marks and newlines.
    assert_eq!((&rows[0][1], &rows[2][1]), ("1.0", "0.3333333333333333"));
    assert_eq!((&rows[4][2], &rows[4][5], &rows[5][5]), ("\"no. 2\", as it is", "", "even, \"in lines\"\nof two"));
    for (row, measured) in rows.chunks(2).zip(record["measured"].as_array().unwrap()) {
        assert_eq!(row[1][3].parse::<f64>().ok(), measured["rows"][1]["share"].as_f64());
        assert_eq!(row[1][4].parse::<u64>().ok(), measured["rows"][1]["random"].as_u64());
    }
}

#[test]
fn results_depend_on_the_seed_but_not_on_threads() {
    let expected = uninterrupted();
    for threads in [2, 4, 100] {
        let folder = Folder::new();
        measure_all(&Settings { threads, ..folder.settings() });
        assert_eq!(folder.results(), expected, "{threads} threads");
    }
    let folder = Folder::new();
    measure_all(&folder.seeded(2));
    assert_ne!(folder.results().0, expected.0);
    // Each case has its own random numbers.
    let randoms: HashSet<_> = (0..23).map(|case| expected.1[case]["rows"][0]["random"].as_u64()).collect();
    assert!(randoms.len() == 23 && !randoms.contains(&None), "{randoms:?}");
    // Results do not depend on other cases.
    let folder = Folder::new();
    Fake::new(5..6).run(&folder.settings()).unwrap();
    assert_eq!(folder.record()["measured"][0], expected.1[5]);
}

#[test]
fn interrupted_runs_continue() {
    // A single thread reaches these cases in this order, by their efforts.
    for (threads, numbers) in [(1, &[14, 5, 3][..]), (4, &[22])] {
        let folder = Folder::new();
        let settings = Settings { threads, ..folder.settings() };
        let mut done = Vec::new();
        for &number in numbers {
            let fake = Fake::new(NUMBERS).with(number, Interruption);
            assert_eq!(fake.run(&settings).unwrap(), Outcome::Interrupted);
            assert_eq!((folder.names().len(), folder.record()["complete"].as_bool()), (2, Some(false)));
            assert!(!fake.done().is_empty());
            done.extend(fake.done());
        }
        let before = folder.record();
        assert_eq!(Fake::new(NUMBERS).plan(&settings).unwrap().cases_left(), NUMBERS.count() - done.len());
        done.extend(folder.complete());
        done.sort_unstable();
        assert_eq!(done, all(NUMBERS));
        assert!(folder.record()["seconds"].as_f64() > before["seconds"].as_f64());
        assert_eq!(folder.record()["run"], before["run"]);
        // If no case is left, another run writes the same results.
        let first = folder.record();
        assert_eq!((folder.complete(), folder.record()), (Vec::new(), first));
    }
    // A run may be interrupted before its first case.
    let (folder, fake, interrupt) = (Folder::new(), Fake::new(NUMBERS), Interrupt::new());
    interrupt.set();
    assert_eq!(fake.plan(&folder.settings()).unwrap().run(&interrupt).unwrap(), Outcome::Interrupted);
    assert_eq!((fake.done(), folder.text(".csv")), (Vec::new(), String::from("number,third,name,share,random,note\n")));
    assert_eq!(folder.complete(), all(NUMBERS));
}

#[test]
fn measuring_again_keeps_old_results_until_all_are_new() {
    let folder = Folder::new();
    measure_all(&folder.settings());
    measure_all(&folder.again());
    assert_eq!(folder.results(), uninterrupted());
    // The record has the results of an earlier run; in the second round, so has the journal.
    for last in [&[6][..], &[6, 2]] {
        last.iter().for_each(|&number| folder.run_until(number, Error, &folder.again()));
        assert_eq!(folder.complete(), all(last[last.len() - 1]..23));
    }
    // The run is interrupted, continued, and interrupted again.
    let before = folder.record();
    for (settings, number) in [(folder.again(), 6), (folder.settings(), 9)] {
        folder.run_until(number, Interruption, &settings);
        assert_eq!((folder.record(), folder.results(), folder.names().len()), (before.clone(), uninterrupted(), 3));
    }
    assert_eq!(folder.complete(), all(9..23));
}

#[test]
fn failures_name_the_case_and_keep_other_results() {
    let troubles = [
        (Trouble::Error, "a made-up error"),
        (Trouble::Panic, "panicked: case 9 panicked"),
        (Trouble::NotANumber, "cannot be read back"),
    ];
    for (trouble, expected) in troubles {
        for threads in [1, 4] {
            let folder = Folder::new();
            let fake = Fake::new(NUMBERS).with(9, trouble);
            let error = fake.run(&Settings { threads, ..folder.settings() }).unwrap_err();
            let message = format!("{error:#}");
            assert!(message.contains(expected) && message.contains("\"number\":9"), "{message}");
            assert_eq!(folder.names(), [JOURNAL]);
            let done: Vec<_> = fake.done().into_iter().filter(|&number| number != 9).collect();
            assert!(!done.is_empty());
            assert_eq!(folder.complete(), all(NUMBERS.filter(|number| !done.contains(number))));
        }
    }
}

#[test]
fn runs_continue_from_a_journal_after_a_crash() {
    let folder = Folder::after(10, Error);
    let whole = folder.text(JOURNAL);
    // A plan that is not run changes nothing.
    drop(Fake::new(NUMBERS).plan(&folder.again()).unwrap());
    assert_eq!(folder.text(JOURNAL), whole);
    let spent = |line: &str| serde_json::from_str::<Value>(line).unwrap()["measured"]["seconds"].as_f64();
    let spent = whole.lines().last().and_then(spent).unwrap();
    assert_eq!(folder.complete(), all(10..23));
    assert!(spent > 0.0 && folder.record()["seconds"].as_f64().unwrap() > spent);
    // The process was killed after writing the record and before removing the journal.
    fs::write(folder.path(JOURNAL), &whole).unwrap();
    assert_eq!(folder.complete(), all(10..23));
    // The journal ends in an incomplete line. The next line must not be appended to it, even if the next run fails, too.
    let last = whole.trim_end().rfind('\n').unwrap() + 1;
    for end in [last + 1, whole.len() - 20, whole.len() - 1] {
        let folder = Folder::with_journal(&whole[..end]);
        folder.run_until(13, Error, &folder.settings());
        assert_eq!(folder.complete(), all(13..23), "cut at {end} of {}", whole.len());
    }
    // A damaged line loses one case: the fourth one, after the line of the run.
    let wrong = b"{\"measured\":{\"seconds\":1,\"measured\":{\"case\":7,\"rows\":[]}}}";
    for damage in [&b"{}"[..], b"\0\0\0\0", b"\xff\xfe", wrong] {
        let mut lines: Vec<_> = whole.lines().map(str::as_bytes).collect();
        lines[4] = damage;
        let folder = Folder::with_journal([&lines.join(&b'\n')[..], b"\n"].concat());
        assert_eq!(folder.complete(), all([3].into_iter().chain(10..23)));
    }
    // The journal has no complete case.
    let begun = whole.find('\n').unwrap() + 1;
    for text in ["", "\n", &whole[..20], &whole[..begun], &whole[..begun + 30]] {
        assert_eq!(Folder::with_journal(text).complete(), all(NUMBERS), "{text}");
    }
    // There is a record, too.
    let folder = Folder::after(8, Interruption);
    folder.run_until(15, Error, &folder.settings());
    assert_eq!((folder.names().len(), folder.complete()), (3, all(15..23)));
}

#[test]
fn unreadable_journals_are_kept() {
    let whole = Folder::after(3, Error).text(JOURNAL);
    let (_, cases) = whole.split_once('\n').unwrap();
    for text in [cases, &format!("{{}}\n{cases}"), "Dear diary,\n"] {
        let folder = Folder::with_journal(text);
        let parts = ["fake.partial.jsonl", "damaged", "another --out", "--again"];
        folder.assert_refused(&Fake::new(NUMBERS), &folder.settings(), &parts);
        measure_all(&folder.again());
        assert_eq!(folder.results(), uninterrupted());
    }
}

/// The error names the reason and the remedies, and the remedies work.
#[test]
fn results_of_another_run_are_refused() {
    const OTHER: &str = "0123456789abcdef";
    let complete = Folder::new();
    measure_all(&complete.settings());
    for (folder, file) in [(complete, ".json"), (Folder::after(5, Error), JOURNAL), (Folder::after(5, Interruption), ".json")] {
        let [file, ours] = [format!("fake{file}"), format!("but this is koel {}, {}:", env!("CARGO_PKG_VERSION"), Build::here())];
        let assert_refused = |fake: Fake, settings: &Settings, parts: &[&str]| {
            folder.assert_refused(&fake, settings, &[&[&*file, "another --out", "--again"], parts].concat());
        };
        let with =
            |scope: Scope, parts: &[&str]| assert_refused(Fake::new(NUMBERS), &Settings { scope, ..folder.settings() }, parts);
        let scope = folder.settings().scope;
        with(Scope { seed: 2, ..scope }, &["results of a quick run of fake", "seed 1,", "but this is", "seed 2:"]);
        with(Scope { quick: false, ..scope }, &["results of a quick run", "but this is a full run"]);
        with(Scope { max_slots: Some(99), ..scope }, &["with at most 99 slots"]);
        assert_refused(Fake::new(0..3), &folder.settings(), &["not part of this run", "\"number\":3"]);
        // Another build, and then an unknown one, left cases to measure.
        for (from, to, named) in [(json!(Build::here().program), json!(OTHER), OTHER), (json!(OTHER), json!(null), "unknown")] {
            folder.change(&file["fake".len()..], &from.to_string(), &to.to_string());
            let parts = ["measured by another build", &format!("program {named}, "), &ours, "continue with that build"];
            for fake in [Fake::new(0..30), Fake::new(0..30).timed()] {
                assert_refused(fake, &folder.settings(), &parts);
            }
        }
        for settings in [Settings { folder: folder.0.path().join("new"), ..folder.settings() }, folder.again()] {
            measure_all(&settings);
        }
        assert_eq!(folder.results(), uninterrupted());
    }
    // The record and the journal are from two builds.
    let folder = Folder::after(8, Interruption);
    folder.run_until(15, Error, &folder.settings());
    folder.change(".json", &json!(Build::here().program).to_string(), &json!(OTHER).to_string());
    let parts = ["fake.json: measured by another build", OTHER, ", but ", "fake.partial.jsonl is koel", "--again"];
    folder.assert_refused(&Fake::new(NUMBERS), &folder.settings(), &parts);
}

#[test]
fn complete_results_of_another_build_or_machine_can_be_drawn() {
    for program in [Some("0123456789abcdef"), None] {
        let folder = Folder::new();
        Fake::new(NUMBERS).timed().run(&folder.settings()).unwrap();
        assert!(Fake::new(NUMBERS).plan(&folder.settings()).unwrap().other_build().is_none());
        folder.change(".json", &json!(Build::here().program).to_string(), &json!(program).to_string());
        let changed = folder.change(".json", &format!("\"{}\"", Machine::here().processor), "\"Abacus\"");
        let fake = Fake::new(NUMBERS).timed();
        let plan = fake.plan(&folder.settings()).unwrap();
        assert_eq!(plan.other_build().map(|build| build.program.as_deref()), Some(program));
        assert_eq!(plan.run(&Interrupt::new()).unwrap(), Outcome::Complete);
        assert_eq!((fake.done(), folder.text(".json")), (Vec::new(), changed));
    }
}

#[test]
fn times_are_measured_one_at_a_time_on_one_machine() {
    let folder = Folder::new();
    let many = Settings { threads: 8, ..folder.settings() };
    let threads = |fake: &Fake| fake.plan(&many).unwrap().threads;
    assert_eq!((threads(&Fake::new(NUMBERS)), threads(&Fake::new(NUMBERS).timed())), (8, 1));
    let machine = Machine::here();
    for what in [&machine.processor, &machine.kernel, &machine.system, &machine.system_kernel.unwrap()] {
        let folder = Folder::after(5, Error);
        folder.change(JOURNAL, &format!("\"{what}\""), "\"Abacus\"");
        let parts = ["times measured on another machine", "another --out", "--again"];
        folder.assert_refused(&Fake::new(NUMBERS).timed(), &folder.settings(), &parts);
        // An experiment without times may continue on another machine.
        assert_eq!(folder.complete(), all(5..23));
    }
}

#[test]
fn empty_results_match_any_settings() {
    // An interruption in the first case leaves an empty record, and an error there leaves a journal without cases.
    for trouble in [Interruption, Error] {
        let folder = Folder::after(0, trouble);
        folder.run_until(4, Error, &folder.seeded(7));
        let fake = Fake::new(NUMBERS);
        fake.run(&folder.seeded(7)).unwrap();
        assert_eq!((fake.done(), &folder.record()["run"]["scope"]["seed"]), (all(4..23), &json!(7)));
    }
    // Results in the record still count, even after another failure.
    let folder = Folder::after(1, Interruption);
    folder.run_until(0, Error, &Settings { scope: Scope { quick: false, ..folder.settings().scope }, ..folder.again() });
    folder.assert_refused(&Fake::new(NUMBERS), &folder.seeded(2), &["--again"]);
    assert_eq!(Fake::new(NUMBERS).plan(&folder.settings()).unwrap().cases_left(), 22);
    folder.run_until(12, Error, &folder.settings());
    assert_eq!(folder.complete(), all(12..23));
}

#[test]
fn cases_beyond_memory_are_refused_and_memory_limits_threads() {
    let folder = Folder::new();
    let threads = |memory, threads, free| {
        let fake = &Fake { memory, ..Fake::new(0..3) };
        threads_within_memory(&Untyped::about(&fake), &Untyped::cases(&fake, &folder.settings().scope)?, threads, free)
    };
    for (memory, free, expected) in [(10 << 20, 100 << 20, 4), (10 << 20, 30 << 20, 3), (10 << 20, 10 << 20, 1), (0, 1 << 20, 4)]
    {
        assert_eq!(threads(memory, 4, free).unwrap(), expected);
    }
    let message = threads((9 << 20) + 1, 4, 9 << 20).unwrap_err().to_string();
    for part in ["fake: ", "takes 10 MiB", "9 MiB are available", "--max-slots"] {
        assert!(message.contains(part), "{message}");
    }
}
