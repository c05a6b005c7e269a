//! The library's modules: which may use which, as docs/DESIGN.md draws it.

use std::{env, fs, path::Path};

/// Each uses those before it, and none behind it.
const ORDER: [&str; 13] = [
    "bits",
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

fn rank(module: &str) -> Option<usize> {
    ORDER.iter().position(|&name| name == module)
}

/// The modules that a file uses: the names behind `crate::`, and those at the outer level of a list there. (What `lib.rs` exports
/// has names of types, which are not looked at; the library's own code does not use these.)
fn used(source: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for rest in source.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            found.push(first_word(rest));
            continue;
        };
        let (mut depth, mut start) = (0, 0);
        for (at, byte) in list.bytes().enumerate() {
            match byte {
                b'{' => depth += 1,
                b'}' if depth > 0 => depth -= 1,
                b',' | b'}' if depth == 0 => {
                    found.push(first_word(list[start..at].trim_start()));
                    start = at + 1;
                    if byte == b'}' {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    found
}

fn first_word(text: &str) -> &str {
    text.split(|letter: char| !(letter.is_ascii_lowercase() || letter == '_')).next().unwrap_or_default()
}

fn check(path: &Path, module: &str, wrong: &mut Vec<String>) {
    if path.file_stem().is_some_and(|name| name == "tests") {
        return;
    }
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a folder of the library").flatten() {
            check(&entry.path(), module, wrong);
        }
        return;
    }
    if path.extension().is_none_or(|extension| extension != "rs") {
        return;
    }
    let source = fs::read_to_string(path).expect("a file of the library");
    // Tests build what they like; comments link to what they like.
    let code = source.split("\nmod tests {").next().unwrap_or_default();
    let code: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    for name in used(&code.join("\n")) {
        if rank(name) > rank(module) {
            wrong.push(format!("{} uses {name}", path.display()));
        }
    }
}

#[test]
fn modules_use_only_those_below_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for entry in fs::read_dir(root).expect("the library").flatten() {
        let path = entry.path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        if name != "lib" {
            assert!(rank(&name).is_some(), "{name} has no place in the order of modules");
            check(&path, &name, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_are_found_in_lists() {
    let source = "use crate::{\n    bits::{index, wide},\n    elastic::Generation,\n};\nfn f() -> crate::params::Params {}";
    assert_eq!(used(source), ["bits", "elastic", "", "params"]);
}
