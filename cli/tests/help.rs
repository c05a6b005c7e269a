//! Help, and its examples, which work as they are.

use crate::common::Koel;

const COMMANDS: [&str; 18] = [
    "build",
    "query",
    "add",
    "remove",
    "merge",
    "info",
    "verify",
    "convert",
    "shard",
    "shard split",
    "shard build",
    "shard join",
    "tune",
    "experiment sweep",
    "experiment compare",
    "demo",
    "completions",
    "man",
];

/// The lines of the examples in a command's help.
fn examples(koel: &Koel, command: &str) -> Vec<String> {
    let help = koel.run(command.split(' ').chain(["--help"]));
    help.ok();
    let text = help.text();
    let (_, examples) = text.split_once("\nExamples:\n").unwrap_or_else(|| panic!("no example: {text}"));
    examples.lines().map_while(|line| line.strip_prefix("    ").map(String::from)).collect()
}

#[test]
fn every_command_has_help_and_examples() {
    let koel = Koel::new();
    let overview = koel.run(["--help"]);
    overview.ok();
    for command in COMMANDS {
        assert!(command.contains(' ') || overview.text().contains(&format!("\n  {command} ")), "{command}");
        let examples = examples(&koel, command);
        assert!(examples.iter().any(|line| line.contains(&format!("koel {command} "))), "{command}: {examples:?}");
    }
    assert_eq!(koel.run(["--version"]).ok(), format!("koel {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
}

#[test]
#[cfg(unix)]
fn every_example_works_when_pasted() {
    for command in COMMANDS {
        let koel = Koel::new();
        let script = examples(&koel, command).join("\n");
        let run = koel.shell(&script);
        // Experiments say what they do.
        if script.contains("koel experiment ") {
            run.status(0)
        } else {
            run.ok()
        };
    }
}

#[test]
#[cfg(unix)]
fn the_examples_show_what_they_say() {
    let koel = Koel::new();
    let query = koel.shell(&examples(&koel, "query").join("\n")).text();
    assert!(query.ends_with("apple\nplum\nprobably present\n"), "{query}");
    let add = koel.shell(&examples(&koel, "add").join("\n")).text();
    assert!(add.contains("1 added; 3 in") && add.contains("1 added, 1 skipped"), "{add}");
    let remove = koel.shell(&examples(&koel, "remove").join("\n")).text();
    assert!(remove.contains("2 removed, 0 not found; 0 in"), "{remove}");
    let merge = koel.shell(&examples(&koel, "merge").join("\n")).text();
    assert!(merge.ends_with("\napple\nfig\n"), "{merge}");
    let verify = koel.shell(&examples(&koel, "verify").join("\n")).text();
    assert!(verify.contains("fruit.koel: ok: ") && verify.contains("all good\nstandard input: ok: "), "{verify}");
    #[cfg(target_endian = "little")]
    {
        let convert = koel.shell(&examples(&koel, "convert").join("\n")).text();
        assert!(convert.contains("file bytes        32\napple\n"), "{convert}");
        assert!(koel.read("again.koel") == koel.read("fruit.koel"));
        assert!(koel.read("same.koel") == koel.read("other.koel"));
    }
}

#[test]
fn removal_comes_with_its_warning() {
    let help = Koel::new().run(["remove", "--help"]).text();
    assert!(help.contains("Remove only what was added.") && help.contains("fingerprint of another one"), "{help}");
}
