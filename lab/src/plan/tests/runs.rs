//! What a run measures and writes, however it ends.

use super::*;

#[test]
fn every_case_is_measured_once_and_written_in_the_plans_order() {
    let fake = Fake::of([3, 1, 2, 3, 20, 1]);
    let folder = Folder::new();
    let plan = fake.plan(&folder.settings()).unwrap();
    assert_eq!((plan.name(), plan.cases(), plan.cases_left()), ("fake", 4, 4));
    assert_eq!(plan.run(&Interrupt::new()).unwrap(), Outcome::Complete);
    assert_eq!(fake.done(), [1, 2, 3, 20]);
    assert_eq!(folder.names(), ["fake.csv", "fake.json"]);

    let record = folder.record();
    assert_eq!(record["complete"], true);
    assert_eq!(record["run"]["scope"]["seed"], 1);
    assert_eq!(record["tables"][0]["rows"], serde_json::json!([["3"], ["1"], ["2"], ["20"]]));
    let mut reader = csv::Reader::from_path(folder.path(".csv")).unwrap();
    assert_eq!(reader.headers().unwrap(), ["number", "third", "name", "share", "random", "note"].as_slice());
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.iter().map(|row| &row[0]).collect::<Vec<_>>(), ["3", "3", "1", "1", "2", "2", "20", "20"]);
    // Numbers have all their digits, and text with commas, quotation marks and newlines is unchanged.
    assert_eq!((&rows[0][1], &rows[2][1]), ("1.0", "0.3333333333333333"));
    assert_eq!((&rows[4][2], &rows[4][5], &rows[5][5]), ("\"no. 2\", as it is", "", "even, \"in lines\"\nof two"));
    for (row, measured) in rows.chunks(2).zip(record["measured"].as_array().unwrap()) {
        for (row, measured) in row.iter().zip(measured["rows"].as_array().unwrap()) {
            assert_eq!(row[3].parse::<f64>().ok(), measured["share"].as_f64());
            assert_eq!(row[4].parse::<u64>().ok(), measured["random"].as_u64());
        }
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
    let scope = Scope { seed: 2, ..folder.settings().scope };
    Fake::of(NUMBERS).run(&Settings { scope, ..folder.settings() }).unwrap();
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
        for stop in [1, 5, 3] {
            let fake = Fake::of(NUMBERS).stopping_after(stop);
            assert_eq!(fake.run(&settings).unwrap(), Outcome::Interrupted);
            assert_eq!(folder.names(), ["fake.csv", "fake.json"]);
            assert_eq!(folder.record()["complete"], false);
            assert!(fake.done().len() >= usize::try_from(stop).unwrap());
            done.extend(fake.done());
        }
        let before = folder.record();
        let fake = Fake::of(NUMBERS);
        let plan = fake.plan(&settings).unwrap();
        assert_eq!(plan.cases_left(), NUMBERS.count() - done.len());
        plan.run(&Interrupt::new()).unwrap();
        done.extend(fake.done());
        done.sort_unstable();
        assert!(done.iter().copied().eq(NUMBERS), "{done:?}");
        assert_eq!(folder.results(), undisturbed());
        assert!(folder.record()["seconds"].as_f64() > before["seconds"].as_f64());
        assert_eq!(folder.record()["run"], before["run"]);
    }
}

#[test]
fn one_that_was_asked_to_stop_before_it_began_measures_nothing() {
    let (folder, fake, interrupt) = (Folder::new(), Fake::of(NUMBERS), Interrupt::new());
    interrupt.set();
    assert_eq!(fake.plan(&folder.settings()).unwrap().run(&interrupt).unwrap(), Outcome::Interrupted);
    assert!(fake.done().is_empty());
    assert_eq!(folder.text(".csv"), "number,third,name,share,random,note\n");
    Fake::of(NUMBERS).run(&folder.settings()).unwrap();
    assert_eq!(folder.results(), undisturbed());
}

#[test]
fn one_that_is_stopped_in_the_middle_of_a_case_has_not_failed() {
    let folder = Folder::new();
    let fake = Fake::of(NUMBERS).with(9, Trouble::Interruption).timed();
    assert_eq!(fake.run(&folder.settings()).unwrap(), Outcome::Interrupted);
    assert_eq!((fake.done(), completed(&folder)), (all(0..9), all(9..23)));
}

#[test]
fn a_second_run_measures_nothing_and_writes_the_same() {
    let folder = Folder::new();
    Fake::of(NUMBERS).run(&folder.settings()).unwrap();
    let first = folder.record();
    let fake = Fake::of(NUMBERS);
    assert_eq!(fake.run(&folder.settings()).unwrap(), Outcome::Complete);
    assert!(fake.done().is_empty());
    assert_eq!(folder.record(), first);
    assert_eq!(folder.names(), ["fake.csv", "fake.json"]);
}

#[test]
fn again_means_everything_also_if_it_dies() {
    let folder = Folder::new();
    Fake::of(NUMBERS).run(&folder.settings()).unwrap();
    let again = Settings { again: true, ..folder.settings() };
    let fake = Fake::of(NUMBERS);
    assert_eq!(fake.plan(&again).unwrap().cases_left(), 23);
    fake.run(&again).unwrap();
    assert_eq!((fake.done(), folder.results()), (all(NUMBERS), undisturbed()));

    // The record now has the results of the run before.
    Fake::of(NUMBERS).with(6, Trouble::Error).timed().run(&again).unwrap_err();
    assert_eq!(completed(&folder), all(6..23));
    Fake::of(NUMBERS).with(6, Trouble::Error).timed().run(&again).unwrap_err();
    // And so has the journal, after another --again.
    Fake::of(NUMBERS).with(2, Trouble::Error).timed().run(&again).unwrap_err();
    assert_eq!(completed(&folder), all(2..23));
}

#[test]
fn again_keeps_what_there_was_until_all_of_it_is_new() {
    let folder = Folder::new();
    Fake::of(NUMBERS).run(&folder.settings()).unwrap();
    let before = folder.record();
    let again = Settings { again: true, ..folder.settings() };
    // Interrupted, continued, and interrupted once more.
    for (settings, number) in [(&again, 6), (&folder.settings(), 9)] {
        let fake = Fake::of(NUMBERS).with(number, Trouble::Interruption).timed();
        assert_eq!(fake.run(settings).unwrap(), Outcome::Interrupted);
        assert_eq!((folder.record(), folder.results()), (before.clone(), undisturbed()));
        assert_eq!(folder.names(), ["fake.csv", "fake.json", "fake.partial.jsonl"]);
    }
    assert_eq!(completed(&folder), all(9..23));
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
            let rest: Vec<_> = NUMBERS.filter(|number| !done.contains(number)).collect();
            assert!(!done.is_empty());
            assert_eq!(completed(&folder), rest);
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
    drop(Fake::of(NUMBERS).plan(&folder.settings()).unwrap());
    assert_eq!(folder.text(JOURNAL), journal);
}
