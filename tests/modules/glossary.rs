//! The glossary with which docs/DESIGN.md begins: what it names exists, and it has the types that modules share.

use std::{collections::BTreeSet, fs};

use super::{library_module, references::Modules, repository};

/// The modules whose types a reader meets in all others.
const CORE: [&str; 5] = ["table", "kernel", "hash", "filter", "elastic"];

/// Returns the part of docs/DESIGN.md between two headings, or from its beginning.
fn section(start: &str, end: &str) -> String {
    let page = fs::read_to_string(repository().join("docs/DESIGN.md")).expect("the page");
    let (_, page) = page.split_once(start).expect("the section begins");
    page.split_once(end).expect("the section ends").0.to_owned()
}

/// Returns the names in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn the_glossary_names_what_exists() {
    let library = Modules::read(&repository().join("src"));
    let glossary = section("| term |", "## Modules");
    let rows: Vec<Vec<&str>> =
        glossary.lines().filter(|line| line.starts_with('|')).map(|row| row.split('|').collect()).collect();
    assert!(rows.len() > 15, "only {} rows are found", rows.len());
    for row in &rows {
        assert_eq!(row.len(), 5, "a row has a term, names and a meaning: {row:?}");
        for name in quoted(row[2]) {
            assert!(library.has_item(name), "{}: src has no item {name}", row[1].trim());
        }
    }
    let names: Vec<&str> = rows.iter().flat_map(|row| quoted(row[2])).collect();
    let twice: Vec<_> = names.iter().enumerate().filter(|&(at, name)| names[..at].contains(name)).collect();
    assert!(twice.is_empty(), "in two rows: {twice:?}");
}

#[test]
fn types_that_modules_share_are_explained() {
    let library = Modules::read(&repository().join("src"));
    let explained = section("| term |", "## Where to change what");
    let explained: BTreeSet<&str> = quoted(&explained).collect();
    let mut missing = BTreeSet::new();
    for ((from, to), names) in library.references() {
        let (user, owner) = (library_module(&from), library_module(&to));
        if user != owner && owner.as_deref().is_some_and(|owner| CORE.contains(&owner)) {
            let unexplained = names.iter().filter(|&name| library.is_type_of_crate(&to, name) && !explained.contains(&**name));
            missing.extend(unexplained.map(|name| format!("{name} of {}", owner.as_deref().unwrap_or_default())));
        }
    }
    assert!(missing.is_empty(), "neither in the glossary nor in the table of modules: {missing:#?}");
}
