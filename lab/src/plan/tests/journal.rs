//! The journal: what a run leaves when it dies, and its lock.

use std::io::Write as _;

use super::*;

#[test]
fn a_journal_is_taken_up() {
    let folder = died_after(10);
    let spent = |line: &str| serde_json::from_str::<Value>(line).unwrap()["measured"]["seconds"].as_f64();
    let spent = folder.text(JOURNAL).lines().last().and_then(spent).unwrap();
    assert_eq!(completed(&folder), all(10..23));
    assert!(spent > 0.0 && folder.record()["seconds"].as_f64().unwrap() > spent);
}

#[test]
fn a_line_that_was_cut_off_is_measured_again() {
    let whole = died_after(10).text(JOURNAL);
    let line = whole.trim_end().rfind('\n').unwrap() + 1;
    for end in [line + 1, whole.len() - 20, whole.len() - 1] {
        let folder = died_after(10);
        fs::write(folder.path(JOURNAL), &whole[..end]).unwrap();
        // Dies once more: the next line must not be appended to an incomplete one.
        Fake::of(NUMBERS).with(13, Trouble::Error).timed().run(&folder.settings()).unwrap_err();
        assert_eq!(completed(&folder), all(13..23), "cut at {end} of {}", whole.len());
    }
}

#[test]
fn a_damaged_line_costs_that_case_alone() {
    let damages = [&b"{}"[..], b"\0\0\0\0", b"\xff\xfe", b"{\"measured\":{\"seconds\":1,\"measured\":{\"case\":7,\"rows\":[]}}}"];
    for damage in damages {
        let folder = died_after(10);
        let text = folder.text(JOURNAL);
        let mut file = fs::File::create(folder.path(JOURNAL)).unwrap();
        // The fourth case, after the lines of the process and of the run.
        for (place, line) in text.lines().enumerate() {
            file.write_all(if place == 5 { damage } else { line.as_bytes() }).unwrap();
            file.write_all(b"\n").unwrap();
        }
        assert_eq!(completed(&folder), all([3].into_iter().chain(10..23)));
    }
}

#[test]
fn a_journal_with_nothing_in_it_is_none() {
    let whole = died_after(3).text(JOURNAL);
    let process = whole.find('\n').unwrap() + 1;
    for text in ["", "\n", &whole[..20], &whole[..process], &whole[..process + 30]] {
        let folder = Folder::new();
        fs::write(folder.path(JOURNAL), text).unwrap();
        assert_eq!(completed(&folder), all(NUMBERS), "{text}");
    }
}

#[test]
fn a_journal_that_cannot_be_understood_is_not_thrown_away() {
    let whole = died_after(3).text(JOURNAL);
    let (process, rest) = whole.split_once('\n').unwrap();
    let (_, cases) = rest.split_once('\n').unwrap();
    for text in [format!("{process}\n{cases}"), format!("{process}\n{{}}\n{cases}"), String::from("Dear diary,\n")] {
        let folder = Folder::new();
        fs::write(folder.path(JOURNAL), &text).unwrap();
        refused(&Fake::of(NUMBERS), &folder.settings(), &["fake.partial.jsonl", "damaged", "another --out", "--again"]);
        assert_eq!(folder.text(JOURNAL), text);
        let fake = Fake::of(NUMBERS);
        fake.run(&Settings { again: true, ..folder.settings() }).unwrap();
        assert_eq!((fake.done(), folder.results()), (all(NUMBERS), undisturbed()));
    }
}

#[test]
fn a_journal_adds_to_the_record() {
    let folder = Folder::new();
    Fake::of(NUMBERS).timed().stopping_after(8).run(&folder.settings()).unwrap();
    Fake::of(NUMBERS).with(15, Trouble::Error).timed().run(&folder.settings()).unwrap_err();
    assert_eq!(folder.names(), ["fake.csv", "fake.json", "fake.partial.jsonl"]);
    assert_eq!(completed(&folder), all(15..23));

    // It died between writing the record and removing the journal.
    let folder = died_after(12);
    let journal = folder.text(JOURNAL);
    completed(&folder);
    fs::write(folder.path(JOURNAL), journal).unwrap();
    assert_eq!(completed(&folder), all(12..23));
}

#[test]
fn one_run_at_a_time() {
    let folder = Folder::new();
    let first = Fake::of(NUMBERS);
    let plan = first.plan(&folder.settings()).unwrap();
    let id = if cfg!(unix) { format!("process {}, started at 2", std::process::id()) } else { String::from("process") };
    refused(&Fake::of(NUMBERS), &folder.settings(), &["fake.partial.jsonl", &id, "wait", "another --out"]);
    refused(&Fake::of(NUMBERS), &Settings { again: true, ..folder.settings() }, &[&id]);
    assert_eq!(plan.run(&Interrupt::new()).unwrap(), Outcome::Complete);
    assert!(completed(&folder).is_empty());
}
