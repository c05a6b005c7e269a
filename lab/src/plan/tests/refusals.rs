//! Errors that are found before anything is measured.

use super::*;

#[test]
fn results_of_another_run_are_refused() {
    let complete = Folder::new();
    Fake::of(NUMBERS).run(&complete.settings()).unwrap();
    for (folder, file) in [(complete, "fake.json"), (died_after(5), "fake.partial.jsonl")] {
        let names = folder.names();
        let journal = fs::read(folder.path(JOURNAL)).ok();
        let remedies = [file, "another --out", "--again"];
        let with = |scope: Scope, parts: &[&str]| {
            refused(&Fake::of(NUMBERS), &Settings { scope, ..folder.settings() }, &[&remedies, parts].concat());
            assert_eq!((folder.names(), fs::read(folder.path(JOURNAL)).ok()), (names.clone(), journal.clone()));
        };
        let scope = folder.settings().scope;
        with(Scope { seed: 2, ..scope }, &["results of a quick run of fake", "seed 1,", "but this is", "seed 2:"]);
        with(Scope { quick: false, ..scope }, &["results of a quick run", "but this is a full run"]);
        with(Scope { max_slots: Some(99), ..scope }, &["with at most 99 slots"]);
    }
    // Cases that are not part of this run.
    for folder in [died_after(5), died_after(5)] {
        refused(&Fake::of(0..3), &folder.settings(), &["not part of this run", "\"number\":3", "--out", "--again"]);
    }
}

#[test]
fn where_nothing_was_measured_anything_can_be() {
    // Interrupted at once: an empty record. Died at once: a journal without cases, alone or beside results.
    let (recorded, died, again) = (Folder::new(), died_after(0), Folder::new());
    Fake::of(NUMBERS).stopping_after(1).run(&again.settings()).unwrap();
    let died_again = Fake::of(0..1).with(0, Trouble::Error);
    let full = Scope { quick: false, ..again.settings().scope };
    died_again.run(&Settings { again: true, scope: full, ..again.settings() }).unwrap_err();
    let interrupt = Interrupt::new();
    interrupt.set();
    Fake::of(NUMBERS).plan(&recorded.settings()).unwrap().run(&interrupt).unwrap();
    for folder in [recorded, died] {
        let scope = Scope { seed: 7, ..folder.settings().scope };
        let settings = Settings { scope, ..folder.settings() };
        Fake::of(NUMBERS).with(4, Trouble::Error).timed().run(&settings).unwrap_err();
        let fake = Fake::of(NUMBERS);
        fake.run(&settings).unwrap();
        assert_eq!((fake.done(), &folder.record()["run"]["scope"]["seed"]), (all(4..23), &Value::from(7)));
    }
    // Those results still count, also after another death.
    refused(
        &Fake::of(NUMBERS),
        &Settings { scope: Scope { seed: 2, ..again.settings().scope }, ..again.settings() },
        &["--again"],
    );
    let first = Fake::of(NUMBERS).plan(&again.settings()).unwrap().cases_left();
    Fake::of(NUMBERS).with(12, Trouble::Error).timed().run(&again.settings()).unwrap_err();
    assert_eq!((first, completed(&again)), (22, all(12..23)));
}

#[test]
fn times_are_taken_alone_and_on_one_machine() {
    let folder = Folder::new();
    let many = Settings { threads: 8, ..folder.settings() };
    assert_eq!(Fake::of(NUMBERS).plan(&many).unwrap().threads, 8);
    assert_eq!(Fake::of(NUMBERS).timed().plan(&many).unwrap().threads, 1);
    let machine = Machine::here();
    for what in [&machine.processor, &machine.kernel, &machine.system, &machine.system_kernel.unwrap()] {
        let folder = died_after(5);
        let text = folder.text(JOURNAL);
        let changed = text.replace(&format!("\"{what}\""), "\"Abacus\"");
        assert_ne!(text, changed, "{what}");
        fs::write(folder.path(JOURNAL), changed).unwrap();
        refused(
            &Fake::of(NUMBERS).timed(),
            &folder.settings(),
            &["times measured on another machine", "another --out", "--again"],
        );
        // Counts are the same everywhere.
        assert_eq!(completed(&folder), all(5..23));
    }
}

#[test]
fn what_another_machine_has_measured_can_be_drawn_here() {
    let folder = Folder::new();
    Fake::of(NUMBERS).timed().run(&folder.settings()).unwrap();
    let text = folder.text(".json");
    let other = text.replace(&format!("\"{}\"", Machine::here().processor), "\"Abacus\"");
    assert_ne!(text, other);
    fs::write(folder.path(".json"), &other).unwrap();
    let fake = Fake::of(NUMBERS).timed();
    let plan = fake.plan(&folder.settings()).unwrap();
    assert_eq!(plan.cases_left(), 0);
    assert_eq!(plan.run(&Interrupt::new()).unwrap(), Outcome::Complete);
    assert_eq!(folder.text(".json"), other);
}

#[test]
fn tables_beyond_memory_are_refused_and_threads_get_what_there_is() {
    let scope = Folder::new().settings().scope;
    let threads = |memory, threads, free| {
        let fake = Fake { memory, ..Fake::of(0..3) };
        let fake = &fake;
        threads_within_memory(&fake.about(), &fake.cases(&scope).unwrap(), threads, free)
    };
    assert_eq!(threads(10 << 20, 4, 100 << 20).unwrap(), 4);
    assert_eq!(threads(10 << 20, 4, 30 << 20).unwrap(), 3);
    assert_eq!(threads(10 << 20, 4, 10 << 20).unwrap(), 1);
    assert_eq!(threads(0, 4, 1 << 20).unwrap(), 4);
    let message = threads((9 << 20) + 1, 4, 9 << 20).unwrap_err().to_string();
    for part in ["fake: ", "takes 10 MiB", "9 MiB are available", "--max-slots"] {
        assert!(message.contains(part), "{message}");
    }
    let folder = Folder::new();
    let settings = Settings { folder: folder.path("-new"), ..folder.settings() };
    refused(&Fake { memory: 1 << 60, ..Fake::of(0..3) }, &settings, &["takes 1099511627776 MiB", "--max-slots"]);
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn too_few_slots_leave_nothing() {
    let folder = Folder::new();
    let scope = Scope { max_slots: Some(99), ..folder.settings().scope };
    refused(&Fake::of([1000, 100, 500]), &Settings { scope, ..folder.settings() }, &["fake: --max-slots 99", "at least 100"]);
    for slots in 0..100 {
        assert_eq!(least_slots(&&Fake::of([1000, 100, 500]), &folder.settings().scope, slots), 100);
    }
    assert_eq!(folder.names(), [""; 0]);
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
        refused(&Fake::of(NUMBERS), &Settings { folder: path, ..folder.settings() }, &[&name, "another --out"]);
    }
    // There is a folder with the name of the journal.
    fs::create_dir(folder.path(JOURNAL)).unwrap();
    refused(&Fake::of(NUMBERS), &folder.settings(), &["fake.partial.jsonl"]);
}
