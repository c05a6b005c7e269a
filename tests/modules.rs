//! Modules of the library use only the modules that docs/DESIGN.md lets them use.

use std::{env, fs, path::Path};

/// The order of modules. Each may use those before it, and none after it.
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

/// Returns the modules that a file uses: the names after `crate::`, and those at the outer level of a list there. Types that
/// `lib.rs` exports give an empty name, but the library's own code does not use these paths.
fn used_modules(source: &str) -> Vec<&str> {
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

fn check(path: &Path, module: &str, violations: &mut Vec<String>) {
    if path.file_stem().is_some_and(|name| name == "tests") {
        return;
    }
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a folder of the library").flatten() {
            check(&entry.path(), module, violations);
        }
        return;
    }
    if path.extension().is_none_or(|extension| extension != "rs") {
        return;
    }
    let source = fs::read_to_string(path).expect("a file of the library");
    // Tests and comments may refer to any module.
    let code = source.split("\nmod tests {").next().unwrap_or_default();
    let code: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    for name in used_modules(&code.join("\n")) {
        if rank(name) > rank(module) {
            violations.push(format!("{} uses {name}", path.display()));
        }
    }
}

#[test]
fn modules_use_only_modules_below_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut violations = Vec::new();
    for entry in fs::read_dir(root).expect("the library").flatten() {
        let path = entry.path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        if name != "lib" {
            assert!(rank(&name).is_some(), "{name} has no place in the order of modules");
            check(&path, &name, &mut violations);
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[test]
fn used_modules_are_found_in_lists() {
    let source = "use crate::{\n    bits::{index, wide},\n    elastic::Generation,\n};\nfn f() -> crate::params::Params {}";
    assert_eq!(used_modules(source), ["bits", "elastic", "", "params"]);
}
