//! The experiment of one's own, of the documentation, runs and finds what it says.

#[path = "../examples/hashers.rs"]
#[allow(dead_code, clippy::print_stdout, reason = "its `main` is not called")]
mod hashers;

use koel_lab::{Outcome, Plan, Settings, report};
use serde_json::Value;

#[test]
fn an_experiment_of_ones_own_leaves_what_koels_leave() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::new(folder.path());
    let run = || {
        let plan = Plan::new(hashers::Hashers, &settings).unwrap();
        koel_lab::run("hashers", vec![plan], &settings).unwrap()
    };
    assert_eq!(run(), Outcome::Complete);
    let mut names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["hashers-load.svg", "hashers.csv", "hashers.json", report::FILE]);
    let record: Value = serde_json::from_str(&std::fs::read_to_string(folder.path().join("hashers.json")).unwrap()).unwrap();
    let loads = record["measured"].as_array().unwrap().iter().map(|measured| {
        let hash = measured["case"]["hash"].as_str().unwrap().to_owned();
        (hash, measured["rows"][0]["load"].as_f64().unwrap())
    });
    for (hash, load) in loads {
        assert!(if hash == "xxh3" { load > 0.95 } else { load < 0.3 }, "{hash}: {load}");
    }
}
