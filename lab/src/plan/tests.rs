//! Plans of an experiment that takes no time, and fails where it is told to.

use std::{ops::Range, sync::Mutex};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::experiment::{Column, Table};

/// An experiment that records which cases it measured.
#[derive(Default)]
struct Fake {
    numbers: Vec<u64>,
    is_timed: bool,
    /// The memory that a case takes.
    memory: u64,
    /// The number of the case that goes wrong, and how.
    trouble: Option<(u64, Trouble)>,
    done: Mutex<Vec<u64>>,
}

#[derive(Clone, Copy)]
enum Trouble {
    Error,
    Panic,
    NotANumber,
    /// In the middle of a case.
    Interruption,
    /// When so many cases are finished, and not noticed before.
    Patience,
}

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
    fn of(numbers: impl IntoIterator<Item = u64>) -> Self {
        Self { numbers: all(numbers), ..Self::default() }
    }

    fn with(self, number: u64, trouble: Trouble) -> Self {
        Self { trouble: Some((number, trouble)), ..self }
    }

    /// Timed cases run in the order of the plan.
    fn timed(self) -> Self {
        Self { is_timed: true, ..self }
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

    /// Gives neither the order of the plan nor its reverse.
    fn effort(&self, case: &Numbered) -> u64 {
        case.number * 7 % 10
    }

    fn memory(&self, _: &Numbered) -> u64 {
        self.memory
    }

    fn measure(&self, &Numbered { number, .. }: &Numbered, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Drawn>> {
        let mut share = seed as f64 / u64::MAX as f64;
        match self.trouble.filter(|trouble| trouble.0 == number) {
            Some((_, Trouble::Error)) => bail!("it is too dark"),
            Some((_, Trouble::Panic)) => panic!("no. {number} fell over"),
            Some((_, Trouble::NotANumber)) => share = f64::NAN,
            Some((_, Trouble::Interruption)) => {
                interrupt.set();
                interrupt.check()?;
            }
            Some((_, Trouble::Patience)) | None => {}
        }
        let mut done = self.done.lock().unwrap();
        done.push(number);
        if matches!(self.trouble, Some((cases, Trouble::Patience)) if cases == done.len() as u64) {
            interrupt.set();
        }
        let note = number.is_multiple_of(2).then(|| String::from("even, \"in lines\"\nof two"));
        Ok(vec![Drawn { share, random: seed, note: None }, Drawn { share: share * 1e-9, random: !seed, note }])
    }

    fn findings(&self, measured: &[Measured<Numbered, Drawn>]) -> Findings {
        let mut table = Table::new("All of them", &["number"]);
        table.rows.extend(measured.iter().map(|m| vec![m.case.number.to_string()]));
        Findings { tables: vec![table], ..Findings::default() }
    }
}

const NUMBERS: Range<u64> = 0..23;
const JOURNAL: &str = ".partial.jsonl";

/// A temporary folder of results.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// With a journal of this text only.
    fn with_journal(text: impl AsRef<[u8]>) -> Self {
        let folder = Self::new();
        fs::write(folder.path(JOURNAL), text).unwrap();
        folder
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

    /// Replaces text in a file, and returns what is there now.
    fn change(&self, ending: &str, from: &str, to: &str) -> String {
        let text = self.text(ending);
        let changed = text.replace(from, to);
        assert_ne!(text, changed, "{from}");
        fs::write(self.path(ending), &changed).unwrap();
        changed
    }

    /// Replaces the program in all runs of a file: another hash, or an unknown one.
    fn rebuilt(&self, ending: &str, program: Option<&str>) {
        self.change(ending, &json!(Build::here().program).to_string(), &json!(program).to_string());
    }

    /// Runs to the end, with the results of an undisturbed run, and returns the cases that were measured for that.
    #[track_caller]
    fn completed(&self) -> Vec<u64> {
        let fake = Fake::of(NUMBERS);
        assert_eq!(fake.run(&self.settings()).unwrap(), Outcome::Complete);
        assert_eq!((self.results(), self.names()), (undisturbed(), vec![String::from("fake.csv"), String::from("fake.json")]));
        fake.done()
    }

    /// Checks that planning fails with an error that contains these parts, and changes nothing.
    #[track_caller]
    fn refuses(&self, fake: &Fake, settings: &Settings, parts: &[&str]) {
        let state = || (self.names(), fs::read(self.path(JOURNAL)).ok(), fs::read(self.path(".json")).ok());
        let before = state();
        let Err(error) = fake.plan(settings) else { panic!("nothing is wrong with that plan") };
        let message = format!("{error:#}");
        for part in parts {
            assert!(message.contains(part), "no \"{part}\" in: {message}");
        }
        assert!(fake.done().is_empty() && state() == before);
    }
}

/// Runs until a case fails, one case at a time.
fn die_at(number: u64, settings: &Settings) {
    Fake::of(NUMBERS).with(number, Trouble::Error).timed().run(settings).unwrap_err();
}

/// The results of a run without interruption.
fn undisturbed() -> (String, Value) {
    let folder = Folder::new();
    assert_eq!(Fake::of(NUMBERS).run(&folder.settings()).unwrap(), Outcome::Complete);
    folder.results()
}

fn all(numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
    numbers.into_iter().collect()
}

/// A folder in which a run died after this many cases: it has nothing but a journal of them.
fn died_after(cases: u64) -> Folder {
    let folder = Folder::new();
    die_at(cases, &folder.settings());
    assert_eq!(folder.names(), ["fake.partial.jsonl"]);
    folder
}

/// A record of a run that was interrupted after some cases.
fn interrupted_after(cases: u64) -> Folder {
    let folder = Folder::new();
    Fake::of(NUMBERS).timed().with(cases, Trouble::Interruption).run(&folder.settings()).unwrap();
    folder
}

#[test]
fn every_case_is_measured_once_and_written_in_the_plans_order() {
    let fake = Fake::of([3, 1, 2, 3, 20, 1]);
    let folder = Folder::new();
    let plan = fake.plan(&folder.settings()).unwrap();
    assert_eq!((plan.name(), plan.cases(), plan.cases_left()), ("fake", 4, 4));
    assert_eq!(plan.run(&Interrupt::new()).unwrap(), Outcome::Complete);
    assert_eq!((fake.done(), folder.names()), (vec![1, 2, 3, 20], vec![String::from("fake.csv"), String::from("fake.json")]));
    let record = folder.record();
    assert_eq!((&record["complete"], &record["run"]["scope"]["seed"]), (&json!(true), &json!(1)));
    assert_eq!(record["run"]["build"], json!(Build::here()));
    assert_eq!(record["tables"][0]["rows"], json!([["3"], ["1"], ["2"], ["20"]]));
    let mut reader = csv::Reader::from_path(folder.path(".csv")).unwrap();
    assert_eq!(reader.headers().unwrap(), ["number", "third", "name", "share", "random", "note"].as_slice());
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.iter().map(|row| &row[0]).collect::<Vec<_>>(), ["3", "3", "1", "1", "2", "2", "20", "20"]);
    // Numbers have all their digits, and text with commas, quotation marks and newlines is unchanged.
    assert_eq!((&rows[0][1], &rows[2][1]), ("1.0", "0.3333333333333333"));
    assert_eq!((&rows[4][2], &rows[4][5], &rows[5][5]), ("\"no. 2\", as it is", "", "even, \"in lines\"\nof two"));
    for (row, measured) in rows.chunks(2).zip(record["measured"].as_array().unwrap()) {
        assert_eq!(row[1][3].parse::<f64>().ok(), measured["rows"][1]["share"].as_f64());
        assert_eq!(row[1][4].parse::<u64>().ok(), measured["rows"][1]["random"].as_u64());
    }
}

#[test]
fn results_depend_on_the_seed_and_not_on_threads() {
    let expected = undisturbed();
    for threads in [2, 4, 100] {
        let folder = Folder::new();
        Fake::of(NUMBERS).run(&Settings { threads, ..folder.settings() }).unwrap();
        assert_eq!(folder.results(), expected, "{threads} threads");
    }
    let folder = Folder::new();
    Fake::of(NUMBERS).run(&folder.seeded(2)).unwrap();
    assert_ne!(folder.results().0, expected.0);
    // Each case has its own random numbers.
    let randoms: HashSet<_> = (0..23).map(|case| expected.1[case]["rows"][0]["random"].as_u64()).collect();
    assert!(randoms.len() == 23 && !randoms.contains(&None), "{randoms:?}");
    // They do not depend on what else is measured.
    let folder = Folder::new();
    Fake::of(5..6).run(&folder.settings()).unwrap();
    assert_eq!(folder.record()["measured"][0], expected.1[5]);
}

#[test]
fn an_interrupted_run_goes_on_where_it_stopped() {
    for threads in [1, 4] {
        let folder = Folder::new();
        let settings = Settings { threads, ..folder.settings() };
        let mut done = Vec::new();
        for cases in [1, 5, 3] {
            let fake = Fake::of(NUMBERS).with(cases, Trouble::Patience);
            assert_eq!(fake.run(&settings).unwrap(), Outcome::Interrupted);
            assert_eq!((folder.names().len(), folder.record()["complete"].as_bool()), (2, Some(false)));
            assert!(fake.done().len() as u64 >= cases);
            done.extend(fake.done());
        }
        let before = folder.record();
        assert_eq!(Fake::of(NUMBERS).plan(&settings).unwrap().cases_left(), NUMBERS.count() - done.len());
        done.extend(folder.completed());
        done.sort_unstable();
        assert_eq!(done, all(NUMBERS));
        assert!(folder.record()["seconds"].as_f64() > before["seconds"].as_f64());
        assert_eq!(folder.record()["run"], before["run"]);
        // Nothing is left to measure, and it writes the same.
        let first = folder.record();
        assert_eq!((folder.completed(), folder.record()), (Vec::new(), first));
    }
    // In the middle of a case, which has not failed.
    assert_eq!(interrupted_after(9).completed(), all(9..23));
    // Before it began.
    let (folder, fake, interrupt) = (Folder::new(), Fake::of(NUMBERS), Interrupt::new());
    interrupt.set();
    assert_eq!(fake.plan(&folder.settings()).unwrap().run(&interrupt).unwrap(), Outcome::Interrupted);
    assert_eq!((fake.done(), folder.text(".csv")), (Vec::new(), String::from("number,third,name,share,random,note\n")));
    assert_eq!(folder.completed(), all(NUMBERS));
}

#[test]
fn again_means_everything_and_keeps_what_there_was_until_all_of_it_is_new() {
    let folder = Folder::new();
    Fake::of(NUMBERS).run(&folder.settings()).unwrap();
    let fake = Fake::of(NUMBERS);
    fake.run(&folder.again()).unwrap();
    assert_eq!((fake.done(), folder.results()), (all(NUMBERS), undisturbed()));
    // The record has the results of the run before, and so has the journal, after another --again.
    for last in [&[6][..], &[6, 2]] {
        last.iter().for_each(|&number| die_at(number, &folder.again()));
        assert_eq!(folder.completed(), all(last[last.len() - 1]..23));
    }
    // Interrupted, continued, and interrupted once more.
    let before = folder.record();
    for (settings, number) in [(&folder.again(), 6), (&folder.settings(), 9)] {
        let fake = Fake::of(NUMBERS).with(number, Trouble::Interruption).timed();
        assert_eq!(fake.run(settings).unwrap(), Outcome::Interrupted);
        assert_eq!((folder.record(), folder.results(), folder.names().len()), (before.clone(), undisturbed(), 3));
    }
    assert_eq!(folder.completed(), all(9..23));
}

#[test]
fn what_fails_says_where_and_the_rest_is_kept() {
    let troubles = [
        (Trouble::Error, "it is too dark"),
        (Trouble::Panic, "panicked: no. 9 fell over"),
        (Trouble::NotANumber, "cannot be read back"),
    ];
    for (trouble, said) in troubles {
        for threads in [1, 4] {
            let folder = Folder::new();
            let fake = Fake::of(NUMBERS).with(9, trouble);
            let error = fake.run(&Settings { threads, ..folder.settings() }).unwrap_err();
            let message = format!("{error:#}");
            assert!(message.contains(said) && message.contains("\"number\":9"), "{message}");
            assert_eq!(folder.names(), ["fake.partial.jsonl"]);
            let done: Vec<_> = fake.done().into_iter().filter(|&number| number != 9).collect();
            assert!(!done.is_empty());
            assert_eq!(folder.completed(), all(NUMBERS.filter(|number| !done.contains(number))));
        }
    }
}

#[test]
fn a_plan_that_is_not_run_leaves_nothing() {
    let folder = Folder::new();
    drop(Fake::of(NUMBERS).plan(&folder.settings()).unwrap());
    assert_eq!(folder.names(), [""; 0]);
    let folder = died_after(4);
    let journal = folder.text(JOURNAL);
    for settings in [folder.settings(), folder.again()] {
        drop(Fake::of(NUMBERS).plan(&settings).unwrap());
        assert_eq!(folder.text(JOURNAL), journal);
    }
}

#[test]
fn a_journal_is_taken_up_after_a_death() {
    let folder = died_after(10);
    let whole = folder.text(JOURNAL);
    let spent = |line: &str| serde_json::from_str::<Value>(line).unwrap()["measured"]["seconds"].as_f64();
    let spent = whole.lines().last().and_then(spent).unwrap();
    assert_eq!(folder.completed(), all(10..23));
    assert!(spent > 0.0 && folder.record()["seconds"].as_f64().unwrap() > spent);
    // It died between writing the record and removing the journal.
    fs::write(folder.path(JOURNAL), &whole).unwrap();
    assert_eq!(folder.completed(), all(10..23));
    // Cut off in its last line. It dies once more: the next line must not be appended to an incomplete one.
    let last = whole.trim_end().rfind('\n').unwrap() + 1;
    for end in [last + 1, whole.len() - 20, whole.len() - 1] {
        let folder = Folder::with_journal(&whole[..end]);
        die_at(13, &folder.settings());
        assert_eq!(folder.completed(), all(13..23), "cut at {end} of {}", whole.len());
    }
    // A damaged line costs that case alone: the fourth one, after the line of the run.
    let wrong = b"{\"measured\":{\"seconds\":1,\"measured\":{\"case\":7,\"rows\":[]}}}";
    for damage in [&b"{}"[..], b"\0\0\0\0", b"\xff\xfe", wrong] {
        let mut lines: Vec<_> = whole.lines().map(str::as_bytes).collect();
        lines[4] = damage;
        let folder = Folder::with_journal([&lines.join(&b'\n')[..], b"\n"].concat());
        assert_eq!(folder.completed(), all([3].into_iter().chain(10..23)));
    }
    // Nothing in it.
    let begun = whole.find('\n').unwrap() + 1;
    for text in ["", "\n", &whole[..20], &whole[..begun], &whole[..begun + 30]] {
        assert_eq!(Folder::with_journal(text).completed(), all(NUMBERS), "{text}");
    }
    // Beside a record.
    let folder = interrupted_after(8);
    die_at(15, &folder.settings());
    assert_eq!((folder.names().len(), folder.completed()), (3, all(15..23)));
}

#[test]
fn a_journal_that_cannot_be_understood_is_not_thrown_away() {
    let whole = died_after(3).text(JOURNAL);
    let (_, cases) = whole.split_once('\n').unwrap();
    for text in [cases, &format!("{{}}\n{cases}"), "Dear diary,\n"] {
        let folder = Folder::with_journal(text);
        let parts = ["fake.partial.jsonl", "damaged", "another --out", "--again"];
        folder.refuses(&Fake::of(NUMBERS), &folder.settings(), &parts);
        let fake = Fake::of(NUMBERS);
        fake.run(&folder.again()).unwrap();
        assert_eq!((fake.done(), folder.results()), (all(NUMBERS), undisturbed()));
    }
}

#[test]
fn one_run_at_a_time() {
    let folder = Folder::new();
    let first = Fake::of(NUMBERS);
    let plan = first.plan(&folder.settings()).unwrap();
    for settings in [folder.settings(), folder.again()] {
        let parts = ["fake.partial.jsonl", "another process is measuring", "wait", "another --out"];
        folder.refuses(&Fake::of(NUMBERS), &settings, &parts);
    }
    assert_eq!(plan.run(&Interrupt::new()).unwrap(), Outcome::Complete);
    assert!(folder.completed().is_empty());
}

#[test]
fn an_unfinished_run_of_another_build_is_refused_and_not_mixed() {
    for (make, ending) in [(died_after as fn(u64) -> Folder, JOURNAL), (interrupted_after, ".json")] {
        for (program, named) in [(Some("0123456789abcdef"), "program 0123456789abcdef"), (None, "program unknown")] {
            let folder = make(5);
            folder.rebuilt(ending, program);
            let ours = format!("but this is koel {}, {}:", env!("CARGO_PKG_VERSION"), Build::here());
            let file = format!("fake{ending}: measured by another build");
            let parts = [&*file, named, &ours, "continue with that build", "another --out", "--again"];
            folder.refuses(&Fake::of(NUMBERS), &folder.settings(), &parts);
            folder.refuses(&Fake::of(NUMBERS).timed(), &folder.settings(), &parts);
            // Both remedies work.
            for settings in [Settings { folder: folder.0.path().join("new"), ..folder.settings() }, folder.again()] {
                let fake = Fake::of(NUMBERS);
                fake.run(&settings).unwrap();
                assert_eq!(fake.done(), all(NUMBERS));
            }
            assert_eq!(folder.results(), undisturbed());
        }
    }
    // A record and a journal of two builds.
    let folder = interrupted_after(8);
    die_at(15, &folder.settings());
    folder.rebuilt(".json", Some("0123456789abcdef"));
    let parts =
        ["fake.json: measured by another build", "program 0123456789abcdef, but ", "fake.partial.jsonl is koel", "--again"];
    folder.refuses(&Fake::of(NUMBERS), &folder.settings(), &parts);
}

#[test]
fn complete_results_of_another_build_or_machine_are_drawn_as_its_own() {
    for program in [Some("0123456789abcdef"), None] {
        let folder = Folder::new();
        Fake::of(NUMBERS).timed().run(&folder.settings()).unwrap();
        assert!(Fake::of(NUMBERS).plan(&folder.settings()).unwrap().other_build().is_none());
        folder.rebuilt(".json", program);
        let changed = folder.change(".json", &format!("\"{}\"", Machine::here().processor), "\"Abacus\"");
        let fake = Fake::of(NUMBERS).timed();
        let plan = fake.plan(&folder.settings()).unwrap();
        assert_eq!(plan.other_build().map(|build| build.program.as_deref()), Some(program));
        assert_eq!(plan.run(&Interrupt::new()).unwrap(), Outcome::Complete);
        assert_eq!((fake.done(), folder.text(".json")), (Vec::new(), changed));
        // Nothing is added to them.
        folder.refuses(&Fake::of(0..30), &folder.settings(), &["measured by another build", "--again"]);
    }
}

#[test]
fn times_are_taken_alone_and_on_one_machine() {
    let folder = Folder::new();
    let many = Settings { threads: 8, ..folder.settings() };
    let threads = |fake: &Fake| fake.plan(&many).unwrap().threads;
    assert_eq!((threads(&Fake::of(NUMBERS)), threads(&Fake::of(NUMBERS).timed())), (8, 1));
    let machine = Machine::here();
    for what in [&machine.processor, &machine.kernel, &machine.system, &machine.system_kernel.unwrap()] {
        let folder = died_after(5);
        folder.change(JOURNAL, &format!("\"{what}\""), "\"Abacus\"");
        let parts = ["times measured on another machine", "another --out", "--again"];
        folder.refuses(&Fake::of(NUMBERS).timed(), &folder.settings(), &parts);
        // Counts are the same everywhere.
        assert_eq!(folder.completed(), all(5..23));
    }
}

#[test]
fn results_of_another_run_are_refused() {
    let complete = Folder::new();
    Fake::of(NUMBERS).run(&complete.settings()).unwrap();
    for (folder, file) in [(complete, "fake.json"), (died_after(5), "fake.partial.jsonl")] {
        let with = |scope: Scope, parts: &[&str]| {
            let parts = [&[file, "another --out", "--again"], parts].concat();
            folder.refuses(&Fake::of(NUMBERS), &Settings { scope, ..folder.settings() }, &parts);
        };
        let scope = folder.settings().scope;
        with(Scope { seed: 2, ..scope }, &["results of a quick run of fake", "seed 1,", "but this is", "seed 2:"]);
        with(Scope { quick: false, ..scope }, &["results of a quick run", "but this is a full run"]);
        with(Scope { max_slots: Some(99), ..scope }, &["with at most 99 slots"]);
        // Cases that are not part of this run.
        folder.refuses(&Fake::of(0..3), &folder.settings(), &["not part of this run", "\"number\":3", "--out", "--again"]);
    }
}

#[test]
fn where_nothing_was_measured_anything_can_be() {
    // Interrupted at once: an empty record. Died at once: a journal without cases.
    for folder in [interrupted_after(0), died_after(0)] {
        die_at(4, &folder.seeded(7));
        let fake = Fake::of(NUMBERS);
        fake.run(&folder.seeded(7)).unwrap();
        assert_eq!((fake.done(), &folder.record()["run"]["scope"]["seed"]), (all(4..23), &json!(7)));
    }
    // Beside results, which still count, also after another death.
    let folder = interrupted_after(1);
    die_at(0, &Settings { scope: Scope { quick: false, ..folder.settings().scope }, ..folder.again() });
    folder.refuses(&Fake::of(NUMBERS), &folder.seeded(2), &["--again"]);
    assert_eq!(Fake::of(NUMBERS).plan(&folder.settings()).unwrap().cases_left(), 22);
    die_at(12, &folder.settings());
    assert_eq!(folder.completed(), all(12..23));
}

#[test]
fn tables_beyond_memory_are_refused_and_threads_get_what_there_is() {
    let folder = Folder::new();
    let threads = |memory, threads, free| {
        let fake = &Fake { memory, ..Fake::of(0..3) };
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
    let settings = Settings { folder: folder.path("-new"), ..folder.settings() };
    folder.refuses(&Fake { memory: 1 << 60, ..Fake::of(0..3) }, &settings, &["takes 1099511627776 MiB", "--max-slots"]);
    // Too few slots leave nothing.
    let settings = Settings { scope: Scope { max_slots: Some(99), ..settings.scope }, ..settings };
    folder.refuses(&Fake::of([1000, 100, 500]), &settings, &["fake: --max-slots 99", "at least 100"]);
}

#[test]
fn folders_are_made_and_files_are_none() {
    let folder = Folder::new();
    let inner = folder.path("-a").join("b");
    Fake::of(NUMBERS).run(&Settings { folder: inner.clone(), ..folder.settings() }).unwrap();
    assert!(inner.join("fake.csv").exists());
    fs::write(folder.path("-file"), "").unwrap();
    for path in [folder.path("-file"), folder.path("-file").join("below")] {
        let name = path.display().to_string();
        folder.refuses(&Fake::of(NUMBERS), &Settings { folder: path, ..folder.settings() }, &[&name, "another --out"]);
    }
    // There is a folder with the name of the journal.
    fs::create_dir(folder.path(JOURNAL)).unwrap();
    folder.refuses(&Fake::of(NUMBERS), &folder.settings(), &["fake.partial.jsonl"]);
}
