//! Results of another build: neither continued nor taken for this one's.

use super::*;

/// Replaces the program in all runs of a file: another hash, or an unknown one, as in files without it.
fn rebuilt(folder: &Folder, ending: &str, program: Option<&str>) -> String {
    let ours = Build::here().program.clone().unwrap();
    let theirs = program.map_or_else(|| String::from("null"), |program| format!("\"{program}\""));
    let text = folder.text(ending);
    assert!(text.contains(&ours));
    let changed = text.replace(&format!("\"{ours}\""), &theirs);
    fs::write(folder.path(ending), &changed).unwrap();
    changed
}

/// A record of a run that was interrupted after some cases.
fn interrupted_after(cases: u64) -> Folder {
    let folder = Folder::new();
    Fake::of(NUMBERS).timed().stopping_after(cases).run(&folder.settings()).unwrap();
    folder
}

#[test]
fn every_record_names_its_program() {
    let folder = Folder::new();
    Fake::of(NUMBERS).run(&folder.settings()).unwrap();
    let build = &folder.record()["run"]["build"];
    assert_eq!(build, &serde_json::to_value(Build::here()).unwrap());
    assert_eq!(build["program"].as_str().map(str::len), Some(16));
    for line in died_after(2).text(JOURNAL).lines().filter(|line| line.contains("\"begun\"")) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(&line["begun"]["run"]["build"], build);
    }
}

#[test]
fn an_unfinished_run_of_another_build_is_refused() {
    for (make, ending) in [(died_after as fn(u64) -> Folder, JOURNAL), (interrupted_after, ".json")] {
        for (program, named) in [(Some("0123456789abcdef"), "program 0123456789abcdef,"), (None, "program unknown,")] {
            let folder = make(5);
            let changed = rebuilt(&folder, ending, program);
            let ours =
                format!("but this is koel {}, program {}", env!("CARGO_PKG_VERSION"), Build::here().program.as_ref().unwrap());
            let file = format!("fake{ending}: measured by another build");
            let parts = [&*file, named, &ours, "continue with that build", "another --out", "--again"];
            refused(&Fake::of(NUMBERS), &folder.settings(), &parts);
            refused(&Fake::of(NUMBERS).timed(), &folder.settings(), &parts);
            assert_eq!(folder.text(ending), changed);
            // Both remedies work.
            let elsewhere = Settings { folder: folder.0.path().join("new"), ..folder.settings() };
            let again = Settings { again: true, ..folder.settings() };
            for settings in [elsewhere, again] {
                let fake = Fake::of(NUMBERS);
                fake.run(&settings).unwrap();
                assert_eq!(fake.done(), all(NUMBERS));
            }
            assert_eq!(folder.results(), undisturbed());
        }
    }
}

#[test]
fn complete_results_of_another_build_are_drawn_as_its_own() {
    for program in [Some("0123456789abcdef"), None] {
        let folder = Folder::new();
        Fake::of(NUMBERS).run(&folder.settings()).unwrap();
        assert!(Fake::of(NUMBERS).plan(&folder.settings()).unwrap().other_build().is_none());
        let changed = rebuilt(&folder, ".json", program);
        let fake = Fake::of(NUMBERS);
        let plan = fake.plan(&folder.settings()).unwrap();
        assert_eq!(plan.other_build().map(|build| build.program.as_deref()), Some(program));
        assert_eq!(plan.run(&Interrupt::new()).unwrap(), Outcome::Complete);
        assert_eq!((fake.done(), folder.text(".json")), (all(5..5), changed));
        // Nothing is added to them.
        refused(&Fake::of(0..30), &folder.settings(), &["measured by another build", "--again"]);
    }
}

#[test]
fn a_journal_and_a_record_of_two_builds_are_not_mixed() {
    let folder = interrupted_after(8);
    Fake::of(NUMBERS).with(15, Trouble::Error).timed().run(&folder.settings()).unwrap_err();
    rebuilt(&folder, ".json", Some("0123456789abcdef"));
    let other = "program 0123456789abcdef, but ";
    refused(
        &Fake::of(NUMBERS),
        &folder.settings(),
        &["fake.json: measured by another build", other, "fake.partial.jsonl is koel", "--again"],
    );
}
