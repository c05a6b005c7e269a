//! Tests of runs, with an experiment that takes no time and fails in a chosen case.

use std::{ops::Range, sync::Mutex};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::{Column, Table};

/// An experiment that records which cases it measured.
#[derive(Default)]
struct Fake<'a> {
    numbers: Vec<u64>,
    is_timed: bool,
    memory: u64,
    /// The number of the case that fails, and how it fails.
    trouble: Option<(u64, Trouble)>,
    /// Called before each case.
    before_case: Option<&'a (dyn Fn() + Sync)>,
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

impl Fake<'_> {
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

    fn plan(&self, settings: &Settings) -> anyhow::Result<Plan<'_>> {
        Plan::new(self, settings)
    }

    fn run(&self, settings: &Settings) -> anyhow::Result<Outcome> {
        self.plan(settings)?.run(&Interrupt::new())
    }
}

impl Experiment for &Fake<'_> {
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
        if let Some(before_case) = self.before_case {
            before_case();
        }
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

fn all(numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
    numbers.into_iter().collect()
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// Creates a folder after a run that ended at this case.
    fn after(number: u64, trouble: Trouble) -> Self {
        let folder = Self::new();
        folder.run_until(number, trouble, &folder.settings());
        folder
    }

    /// Runs one case at a time, and checks that the run ends at this case.
    fn run_until(&self, number: u64, trouble: Trouble, settings: &Settings) {
        let ended = Fake::new(NUMBERS).with(number, trouble).timed().run(settings);
        assert!(matches!((trouble, ended), (Error, Err(_)) | (Interruption, Ok(Outcome::Interrupted(_)))), "{:?}", self.names());
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
    fn assert_refused(&self, fake: &Fake<'_>, settings: &Settings, parts: &[&str]) {
        let state = || (self.names(), fs::read(self.path(".json")).ok());
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
    assert_eq!(record["run"]["build"], json!(Build::current()));
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
            assert_eq!(fake.run(&settings).unwrap(), Outcome::Interrupted(Signal::INTERRUPT));
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
    assert_eq!(fake.plan(&folder.settings()).unwrap().run(&interrupt).unwrap(), Outcome::Interrupted(Signal::INTERRUPT));
    assert_eq!((fake.done(), folder.names()), (Vec::new(), Vec::new()));
    assert_eq!(folder.complete(), all(NUMBERS));
}

#[test]
fn measuring_again_replaces_results_once_there_are_new_ones() {
    let folder = Folder::new();
    measure_all(&folder.settings());
    measure_all(&folder.again());
    assert_eq!(folder.results(), uninterrupted());
    // Without a new result, the earlier ones are kept. A plan that is not run changes nothing.
    let before = folder.record();
    drop(Fake::new(NUMBERS).plan(&folder.again()).unwrap());
    for trouble in [Error, Interruption] {
        folder.run_until(0, trouble, &folder.again());
        assert_eq!((folder.record(), folder.results()), (before.clone(), uninterrupted()));
    }
    for trouble in [Error, Interruption] {
        folder.run_until(6, trouble, &folder.again());
        assert_eq!(folder.record()["measured"].as_array().map(Vec::len), Some(6));
    }
    assert_eq!(folder.complete(), all(6..23));
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
            let done: Vec<_> = fake.done().into_iter().filter(|&number| number != 9).collect();
            assert!(!done.is_empty());
            assert_eq!((folder.names().len(), folder.record()["complete"].as_bool()), (2, Some(false)));
            assert_eq!(folder.complete(), all(NUMBERS.filter(|number| !done.contains(number))));
        }
    }
}

/// A killed process leaves the results of its last save, without charts, a table or a CSV file.
#[test]
fn runs_continue_after_a_crash() {
    let (folder, saved) = (Folder::new(), Mutex::new(None));
    let fake = Fake::new(NUMBERS).with(1, Error).timed();
    let look = || *saved.lock().unwrap() = fs::read(folder.path(".json")).ok();
    let fake = Fake { before_case: Some(&look), ..fake };
    fake.run(&folder.settings()).unwrap_err();
    let folder = Folder::new();
    fs::write(folder.path(".json"), saved.into_inner().unwrap().expect("the first case is saved at once")).unwrap();
    assert_eq!(folder.record()["tables"], json!([]));
    assert_eq!(folder.complete(), all(1..23));
}

/// Short cases are written together, and a long one at once.
#[test]
fn results_are_written_after_a_second_of_measuring() {
    let folder = Folder::new();
    let fake = Fake::new(NUMBERS);
    let mut plan = fake.plan(&folder.settings()).unwrap();
    let mut shared =
        Shared { results: &mut plan.results, record: &mut plan.record, todo: Vec::new(), unsaved: Duration::ZERO, error: None };
    let mut is_saved = |took| {
        fs::remove_file(folder.path(".json")).ok();
        shared.save(Duration::from_millis(took), &plan.files).unwrap();
        folder.path(".json").exists()
    };
    assert_eq!([400, 599, 1, 999, 3_600_000, 0, 1000].map(&mut is_saved), [false, false, true, false, true, false, true]);
}

#[test]
fn unreadable_records_are_kept() {
    let whole = Folder::after(3, Error).text(".json");
    for text in ["", "Dear diary,\n", "{}", &whole[..whole.len() - 20], &whole.replacen("\"third\":", "\"fourth\":", 1)] {
        let folder = Folder::new();
        fs::write(folder.path(".json"), text).unwrap();
        let parts = ["fake.json", "damaged", "another --out", "--again"];
        folder.assert_refused(&Fake::new(NUMBERS), &folder.settings(), &parts);
        measure_all(&folder.again());
        assert_eq!(folder.results(), uninterrupted());
    }
}

#[test]
fn a_folder_has_one_run_of_an_experiment_at_a_time() {
    let folder = Folder::new();
    let fake = Fake::new(NUMBERS);
    let plan = fake.plan(&folder.settings()).unwrap();
    for settings in [folder.settings(), folder.again()] {
        folder.assert_refused(&Fake::new(NUMBERS), &settings, &["fake.lock", "another process", "wait", "another --out"]);
    }
    drop(plan);
    assert_eq!(folder.complete(), all(NUMBERS));
    // A killed process leaves the file, but not its lock.
    fs::write(folder.path(".lock"), "").unwrap();
    assert!(folder.complete().is_empty());
}

/// The error names the reason and the remedies, and the remedies work.
#[test]
fn results_of_another_run_are_refused() {
    const OTHER: &str = "0123456789abcdef";
    let complete = Folder::new();
    measure_all(&complete.settings());
    for folder in [complete, Folder::after(5, Error), Folder::after(5, Interruption)] {
        let ours = format!("but this is koel {}, {}:", env!("CARGO_PKG_VERSION"), Build::current());
        let assert_refused = |fake: Fake<'_>, settings: &Settings, parts: &[&str]| {
            folder.assert_refused(&fake, settings, &[&["fake.json", "another --out", "--again"], parts].concat());
        };
        let with =
            |scope: Scope, parts: &[&str]| assert_refused(Fake::new(NUMBERS), &Settings { scope, ..folder.settings() }, parts);
        let scope = folder.settings().scope;
        with(Scope { seed: 2, ..scope }, &["results of a quick run of fake", "seed 1,", "but this is", "seed 2:"]);
        with(Scope { quick: false, ..scope }, &["results of a quick run", "but this is a full run"]);
        with(Scope { max_slots: Some(99), ..scope }, &["with at most 99 slots"]);
        assert_refused(Fake::new(0..3), &folder.settings(), &["not part of this run", "\"number\":3"]);
        // Another build, and then an unknown one, left cases to measure.
        for (from, to, named) in [(json!(Build::current().program), json!(OTHER), OTHER), (json!(OTHER), json!(null), "unknown")]
        {
            folder.change(".json", &from.to_string(), &to.to_string());
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
}

#[test]
fn complete_results_of_another_build_or_machine_can_be_drawn() {
    for program in [Some("0123456789abcdef"), None] {
        let folder = Folder::new();
        Fake::new(NUMBERS).timed().run(&folder.settings()).unwrap();
        assert!(Fake::new(NUMBERS).plan(&folder.settings()).unwrap().other_build().is_none());
        folder.change(".json", &json!(Build::current().program).to_string(), &json!(program).to_string());
        let changed = folder.change(".json", &format!("\"{}\"", Machine::current().processor), "\"Abacus\"");
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
    let threads = |fake: &Fake<'_>| fake.plan(&many).unwrap().threads;
    assert_eq!((threads(&Fake::new(NUMBERS)), threads(&Fake::new(NUMBERS).timed())), (8, 1));
    let machine = Machine::current();
    for what in [&machine.processor, &machine.kernel, &machine.system, &machine.system_kernel.unwrap()] {
        let folder = Folder::after(5, Error);
        folder.change(".json", &format!("\"{what}\""), "\"Abacus\"");
        let parts = ["times measured on another machine", "another --out", "--again"];
        folder.assert_refused(&Fake::new(NUMBERS).timed(), &folder.settings(), &parts);
        // An experiment without times may continue on another machine.
        assert_eq!(folder.complete(), all(5..23));
    }
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
