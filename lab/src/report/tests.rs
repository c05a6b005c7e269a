use std::{fs, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::{
    build::Build,
    chart::{self, Axis, Chart, Series},
    experiment::{Fields, Measured, Scope, Table},
    machine::Machine,
    record::{Picture, Place, Run},
};

/// Text that must be escaped in the page.
const HOSTILE: &str = "<script>alert(\"1\")</script> & 'more'";

fn machine() -> Machine {
    Machine {
        processor: String::from("a processor"),
        cores: 2,
        memory_mib: 2048,
        system: String::from("a system"),
        system_kernel: None,
        kernel: String::from("portable"),
        optimized: true,
    }
}

fn build() -> Build {
    Build { commit: Some(String::from("c0ffee")), program: Some(String::from("0123456789abcdef")), ..Build::default() }
}

fn fields(value: &Value) -> Fields {
    value.as_object().expect("an object").clone()
}

/// A record with two rows, a table and a chart.
fn record(name: &str) -> Record {
    let rows =
        vec![fields(&json!({"mean": 0.1, "note": HOSTILE})), fields(&json!({"mean": 0.937_461_038_961_038_9, "note": null}))];
    let mut table = Table::new(HOSTILE, &["what", HOSTILE]);
    table.rows.push(vec![String::from("7"), HOSTILE.to_owned()]);
    Record {
        run: Run {
            experiment: name.to_owned(),
            koel: String::from("0.1.0"),
            build: build(),
            scope: Scope { quick: true, seed: 5, max_slots: None },
            machine: machine(),
            started: String::from("2026-11-21T00:52:47Z"),
        },
        title: format!("The title of {name} {HOSTILE}"),
        columns: Vec::new(),
        about: HOSTILE.to_owned(),
        complete: true,
        seconds: 61.6,
        warnings: Vec::new(),
        pictures: vec![Picture {
            file: format!("{name}-one.svg"),
            title: HOSTILE.to_owned(),
            is_finding: name == "load",
            caption: HOSTILE.to_owned(),
        }],
        tables: vec![table],
        measured: vec![Measured { case: fields(&json!({"slots": 100})), rows }],
    }
}

fn put(folder: &Path, name: &'static str, record: &Record) {
    let place = Place::new(folder, name);
    place.write(record).expect("it can be written");
    place.write_csv(&record.measured, &[]).expect("it can be written");
    let chart = Chart {
        file: String::from("one"),
        topic: HOSTILE.to_owned(),
        finding: None,
        caption: HOSTILE.to_owned(),
        x: Axis::linear(HOSTILE),
        y: Axis::log("y"),
        series: vec![Series::new(HOSTILE, 0, vec![(1.0, 1.0), (2.0, 10.0)])],
    };
    fs::write(place.file("-one.svg"), chart::draw(&chart)).expect("it can be written");
}

/// A folder with these experiments, after a change to each record.
fn folder(names: &[&'static str], change: impl Fn(&mut Record)) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for &name in names {
        let mut record = record(name);
        change(&mut record);
        put(folder.path(), name, &record);
    }
    folder
}

fn page(folder: &TempDir) -> String {
    write(folder.path()).expect("a page");
    fs::read_to_string(folder.path().join(FILE)).expect("a page")
}

fn error(folder: &TempDir) -> String {
    fs::remove_file(folder.path().join(FILE)).ok();
    let error = format!("{:#}", write(folder.path()).expect_err("it has to be refused"));
    assert!(!folder.path().join(FILE).exists());
    error
}

#[test]
fn nothing_gets_in_as_it_is() {
    let page = page(&folder(&["load"], |_| ()));
    assert!(!page.contains("<script"), "{page}");
    // In the page: title, contents, about, caption, the table's caption, label, header and cells; in the chart: title, label,
    // text, axis and legend.
    assert!(page.matches("&lt;script").count() >= 12, "{}", page.matches("&lt;script").count());
}

#[test]
fn nothing_is_fetched() {
    let page = page(&folder(&["load", "peers"], |_| ())).replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for reference in ["http:", "https:", "//", "src=", "url(", "@import", "<link", "<iframe", "<object"] {
        assert!(!page.contains(reference), "{reference}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn the_known_ones_come_first() {
    let page = page(&folder(&["abacus", "growth", "peers", "speed", "fpr", "space", "load", "zebra"], |_| ()));
    let at = |name: &str| page.find(&format!("<section id=\"{name}\"")).unwrap_or_else(|| panic!("{name} is missing"));
    let places = ["load", "space", "fpr", "speed", "peers", "growth", "abacus", "zebra"].map(at);
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(page.matches("<svg ").count(), 8);
    assert!(page.contains("<a href=\"#zebra\">"));
}

#[test]
fn the_rules_for_dark_pages_are_there_once() {
    let page = page(&folder(&["load", "space"], |_| ()));
    assert_eq!(page.matches("<style>").count(), 1);
    assert_eq!(page.matches("[fill=\"#1D1D21\"]").count(), 1);
}

#[test]
fn the_rows_are_in_it_byte_for_byte() {
    let folder = folder(&["load"], |_| ());
    let page = page(&folder);
    let (_, rest) = page.split_once("href=\"data:text/csv;charset=utf-8;base64,").expect("a link");
    let (encoded, rest) = rest.split_once('"').expect("an end");
    assert!(rest.starts_with(">All 2 rows as load.csv</a>"), "{}", &rest[..60]);
    let csv = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, encoded).expect("base64");
    assert_eq!(csv, fs::read(folder.path().join("load.csv")).expect("a table"));
    assert!(csv.starts_with(b"slots,mean,note\n100,0.1,"));
}

#[test]
fn facts_are_told_once_unless_they_differ() {
    let folder = folder(&["load"], |_| ());
    assert_eq!(page(&folder).matches("<dd>a processor</dd>").count(), 1);
    put(folder.path(), "space", &record("space"));
    let same = page(&folder);
    assert_eq!((same.matches("<dd>a processor</dd>").count(), same.matches("<dt>Seed</dt>").count()), (1, 1));
    assert!(same.contains("<dd>2m 4s</dd>") || same.contains("<dd>2m 3s</dd>"), "{same}");
    assert!(same.contains("2026-11-21 at 00:52:47 UTC") && same.contains("took 1m 2s"));
    let mut other = record("space");
    other.run.machine.processor = String::from("another one");
    put(folder.path(), "space", &other);
    let page = page(&folder);
    let (head, section) = page.split_once("<section id=\"space\"").expect("a section");
    assert!(
        !head.contains("<dd>another one</dd>")
            && head.contains("on a processor and another one.")
            && section.contains("<dd>another one</dd>")
    );
    assert_eq!(page.matches("<dt>Seed</dt>").count(), 1);
}

#[test]
fn warnings_say_what_is_wrong() {
    assert!(!page(&folder(&["load", "fpr"], |_| ())).contains("class=\"warning\""));
    let slow = page(&folder(&["load", "fpr"], |record| record.run.machine.optimized = record.run.experiment == "load"));
    assert_eq!(slow.matches("class=\"warning\"").count(), 1);
    assert!(slow.contains("that measured fpr was compiled without optimization"));
    let part = page(&folder(&["load", "fpr"], |record| record.complete = record.run.experiment == "load"));
    assert_eq!(part.matches("class=\"warning\"").count(), 1);
    assert!(part.contains("1 cases were measured"), "{part}");
}

#[test]
fn every_section_names_the_program_that_measured() {
    let folder = folder(&["load", "space"], |record| {
        if record.run.experiment == "space" {
            record.run.build = Build { commit: Some(String::from("beefbeefbeefbeef")), modified: Some(true), ..Build::default() };
        }
    });
    let page = page(&folder);
    let (first, second) = page.split_once("<section id=\"space\"").expect("a section");
    assert!(first.contains("Measured by koel 0.1.0, commit c0ffee, program 0123456789abcdef."), "{first}");
    assert!(first.contains("<dt>Program</dt><dd>0123456789abcdef</dd>") && first.contains("<dt>Compiler</dt><dd>unknown</dd>"));
    assert!(second.contains("Measured by koel 0.1.0, commit beefbeefbe with changes, program unknown."), "{second}");
    assert!(second.contains("<dt>Program</dt><dd>unknown</dd>") && !second.contains("<dt>Compiler</dt>"));
    assert!(first.contains("The records of space do not say which program measured them."), "{first}");
}

#[test]
fn what_must_be_known_first_stands_above_the_charts() {
    let page = page(&folder(&["load", "speed"], |record| {
        if record.run.experiment == "speed" {
            record.warnings.push(format!("Seven times were disturbed. {HOSTILE}"));
        }
    }));
    assert_eq!(page.matches("class=\"note\"").count(), 2);
    assert!(page.contains("There are notes above the charts of speed."));
    let (_, section) = page.split_once("<section id=\"speed\"").expect("a section");
    let note = section.find("<p class=\"note\">Seven times were disturbed. &lt;script").expect("a note");
    assert!(note < section.find("<svg ").expect("a chart"));
}

#[test]
fn what_is_damaged_is_named_and_the_remedy() {
    let folder = folder(&["load"], |_| ());
    let path = folder.path().join("load-one.svg");
    let svg = fs::read_to_string(&path).expect("a chart");
    for (text, problem) in [
        (&svg[..svg.len() / 2], "load-one.svg: this chart is damaged: run the experiment load again"),
        ("", "load-one.svg: this chart is damaged"),
        (&*svg.replace("</style>", ""), "load-one.svg: this chart is damaged"),
    ] {
        fs::write(&path, text).expect("it can be written");
        let error = error(&folder);
        assert!(error.contains(problem), "{error}");
    }
    fs::remove_file(&path).expect("it is there");
    let missing = error(&folder);
    assert!(missing.contains("load-one.svg: this chart is missing: run the experiment load again"), "{missing}");

    let mut outside = record("load");
    outside.pictures[0].file = String::from("../load-one.svg");
    put(folder.path(), "load", &outside);
    assert!(error(&folder).contains("\"../load-one.svg\" is not"), "{}", error(&folder));

    let path = folder.path().join("load.json");
    let json = fs::read_to_string(&path).expect("a record");
    for text in ["", "{}", &json[..json.len() - 4]] {
        fs::write(&path, text).expect("it can be written");
        let error = error(&folder);
        assert!(error.contains("load.json: this record is damaged: measure load --again, or delete"), "{error}");
    }
    fs::remove_file(&path).expect("it is there");
    assert!(error(&folder).contains("no results here: measure some with `koel experiment all`"));
}

/// Users may keep other files in the folder.
#[test]
fn other_files_are_left_alone() {
    let folder = folder(&["load", "abacus"], |_| ());
    fs::write(folder.path().join("package.json"), "{\"name\": \"mine\", // not even JSON").expect("it can be written");
    fs::copy(folder.path().join("load.json"), folder.path().join("copy of load.json")).expect("it can be copied");
    assert_eq!(page(&folder).matches("<section ").count(), 2);
    // A truncated record is noticed, also of an unknown experiment.
    let path = folder.path().join("abacus.json");
    let json = fs::read_to_string(&path).expect("a record");
    fs::write(&path, &json[..json.len() / 2]).expect("it can be written");
    assert!(error(&folder).contains("abacus.json: this record is damaged"));
}

#[test]
fn the_summary_says_what_was_found_and_how_disturbed_it_was() {
    let quiet = page(&folder(&["load", "space"], |_| ()));
    let (summary, _) = quiet.split_once("<nav").expect("contents");
    assert!(summary.contains("2 experiments with 4 rows, measured in 2m"), "{summary}");
    assert!(summary.contains("on a processor. No row is marked as disturbed"), "{summary}");
    // Only the chart of load says what it shows.
    assert!(summary.contains("<a href=\"#load\">The title of load") && !summary.contains("#space"), "{summary}");
    for disturbed in [json!(true), json!(2)] {
        let page = page(&folder(&["load"], |record| {
            record.measured[0].rows[0].insert(String::from("disturbed"), disturbed.clone());
            record.measured[0].rows[1].insert(String::from("disturbed"), json!(0));
        }));
        assert!(page.contains("1 experiment with 2 rows") && page.contains("disturbed 1 of the rows"), "{page}");
    }
}
