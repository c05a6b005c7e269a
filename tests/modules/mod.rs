//! How the files of the repository refer to each other: which modules of the library may use which others, that no files need each
//! other in a circle, and that the glossary of docs/DESIGN.md names what exists.

mod glossary;
mod references;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use crate::common::Folder;
use references::{Modules, References};

/// The order of modules. Each may use those before it, and none after it.
const ORDER: [&str; 14] = [
    "bits",
    "message",
    "params",
    "storage",
    "table",
    "kernel",
    "hash",
    "filter",
    "elastic",
    "snapshot",
    "tuning",
    "go",
    "redisbloom",
    "guide",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().expect("the repository")
}

/// Returns the module of the library that a file belongs to, or `None` for `lib.rs` and files outside of the library.
fn library_module(file: &Path) -> Option<String> {
    let path = file.strip_prefix(repository().join("src")).ok()?;
    let name = Path::new(path.iter().next()?).file_stem()?.to_str()?;
    (name != "lib").then(|| name.to_owned())
}

fn rank(file: &Path) -> Option<usize> {
    let module = library_module(file)?;
    let rank = ORDER.iter().position(|&name| name == module);
    Some(rank.unwrap_or_else(|| panic!("{module} has no place in the order of modules")))
}

#[test]
fn modules_use_only_modules_below_them() {
    let references = Modules::read(&repository().join("src")).references();
    let above: Vec<_> =
        references.iter().filter(|((from, to), _)| rank(from).is_some_and(|from| rank(to) > Some(from))).collect();
    assert!(above.is_empty(), "{}", text(above));
    // The root of the crate is above all modules.
    let to_root: Vec<_> = references.iter().filter(|((from, to), _)| rank(from).is_some() && rank(to).is_none()).collect();
    assert!(to_root.is_empty(), "{}", text(to_root));
}

/// In every package, what two files need of each other is in a third file, below both.
///
/// A file may use what the modules that it is a part of define, at any depth but the root of its crate: `table/single.rs` implements
/// the traits of `table/mod.rs`, which chooses among the kinds of tables. A module and its parts are one subject, others use them
/// as one, and a file for each trait that they share would be one more to read. So these references are not followed.
#[test]
fn no_files_need_each_other_in_a_circle() {
    let mut references = Modules::read(&repository()).references();
    assert!(references.len() > 1000, "only {} references are found", references.len());
    references.retain(|(from, to), _| !is_part(from, to));
    let circles = circles(&references);
    assert!(circles.is_empty(), "{}", text(circles));
}

/// Returns true if `file` is a part of the module whose own file is `module`.
fn is_part(file: &Path, module: &Path) -> bool {
    match module.file_name().and_then(|name| name.to_str()) {
        Some("lib.rs" | "main.rs") => false,
        Some("mod.rs") => file != module && module.parent().is_some_and(|folder| file.starts_with(folder)),
        _ => file.starts_with(module.with_extension("")),
    }
}

/// Returns the references from which others lead back.
fn circles(references: &References) -> Vec<(&(PathBuf, PathBuf), &BTreeSet<String>)> {
    let mut used = BTreeMap::<_, Vec<_>>::new();
    for (from, to) in references.keys() {
        used.entry(from).or_default().push(to);
    }
    let leads_to = |from, to| {
        let (mut reached, mut next) = (BTreeSet::from([from]), vec![from]);
        while let Some(file) = next.pop() {
            next.extend(used.get(file).into_iter().flatten().filter(|&&file| reached.insert(file)));
        }
        reached.contains(to)
    };
    references.iter().filter(|((from, to), _)| leads_to(to, from)).collect()
}

fn text(references: Vec<(&(PathBuf, PathBuf), &BTreeSet<String>)>) -> String {
    let root = repository();
    let short = |file: &Path| file.strip_prefix(&root).unwrap_or(file).display().to_string();
    let line = |((from, to), names): (&(PathBuf, PathBuf), _)| format!("{} uses {names:?} of {}\n", short(from), short(to));
    references.into_iter().map(line).collect()
}

#[test]
fn circles_are_found() {
    let folder = Folder::new("circles");
    let file = |name| folder.path("").canonicalize().expect("the folder").join(name);
    for (name, source) in [
        ("lib.rs", "mod above; mod below; mod group; pub use above::Above;"),
        ("above.rs", "use crate::{below::{self, Below as Renamed}, group::Part}; pub struct Above; fn f() { below::g(); }"),
        ("below.rs", "//! crate::above::Above\npub struct Below; fn g() {} #[cfg(test)] mod tests { use crate::Above; }"),
        ("group/mod.rs", "mod one; mod two; pub use one::One as Part; pub struct Shared; fn f() -> two::Two {}"),
        ("group/one.rs", "use super::{Shared, two::*}; pub struct One(Two, r#\"crate::above::Above\"#);"),
        ("group/two.rs", "pub struct Two; fn f<'a>(x: char) -> bool { x == '\"' || super::one::One::new(\"\\\"\") }"),
    ] {
        let path = folder.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, source).expect("a file");
    }
    let mut references = Modules::read(&folder.path("")).references();
    let names = |from, to| references.get(&(file(from), file(to))).map(|names| Vec::from_iter(names.clone()));
    assert_eq!(names("above.rs", "below.rs"), Some(vec!["Below".to_owned(), "g".to_owned()]));
    assert_eq!(names("above.rs", "group/one.rs"), Some(vec!["One".to_owned()]));
    assert_eq!(names("group/one.rs", "group/mod.rs"), Some(vec!["Shared".to_owned()]));
    assert_eq!(names("below.rs", "above.rs"), None);
    assert_eq!((names("lib.rs", "above.rs"), names("group/mod.rs", "group/one.rs")), (None, None));
    references.retain(|(from, to), _| !is_part(from, to));
    let found = circles(&references).into_iter().map(|((from, _), _)| from.clone());
    assert_eq!(found.collect::<Vec<_>>(), [file("group/one.rs"), file("group/two.rs")]);
}
