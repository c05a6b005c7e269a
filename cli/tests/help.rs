//! Help texts, whose examples must work as they are, and completion scripts.

use crate::common::Koel;

/// Returns all commands that the help lists. Those of a group have its name before them.
fn commands(koel: &Koel) -> Vec<String> {
    let listed = |group: &str| {
        let help = koel.run(&format!("{group} --help")).text();
        let (_, list) = help.split_once("\nCommands:\n").expect("a list of commands");
        let lines = list.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
        let names = lines.filter_map(|line| line.split_whitespace().next()).filter(|&name| name != "help");
        names.map(|name| format!("{group} {name}").trim_start().to_owned()).collect::<Vec<_>>()
    };
    let all: Vec<_> = ["", "experiment"].into_iter().flat_map(listed).collect();
    assert!(all.len() > 12, "{all:?}");
    all
}

/// Returns the lines of the examples in a command's help.
pub(crate) fn examples(koel: &Koel, command: &str) -> Vec<String> {
    let text = koel.run(&format!("{command} --help")).printed();
    let (_, examples) = text.split_once("\nExamples:\n").unwrap_or_else(|| panic!("no example: {text}"));
    examples.lines().map_while(|line| line.strip_prefix("    ").map(String::from)).collect()
}

#[test]
fn every_command_has_help_and_examples() {
    let koel = Koel::new();
    for command in commands(&koel) {
        let examples = examples(&koel, &command);
        assert!(examples.iter().any(|line| line.contains(&format!("koel {command} "))), "{command}: {examples:?}");
    }
    assert_eq!(koel.run("--version").ok(), format!("koel {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
}

/// The output of some examples is compared, too. The demo's examples have their own test, and all experiments take minutes.
#[test]
#[cfg(unix)]
fn every_example_works_when_pasted() {
    for command in commands(&Koel::new()).iter().filter(|&command| command != "demo" && command != "experiment") {
        let koel = Koel::new();
        // The largest sizes take seconds each. Smaller ones run the same code.
        let script = examples(&koel, command).join("\n").replace("--max-slots 30k", "--max-slots 700");
        let run = koel.shell(&script);
        run.status(0);
        // Experiments report their progress on standard error.
        assert!(run.stderr.is_empty() || script.contains("koel experiment "), "{command}: {}", run.stderr);
        let shown: &[&str] = match command.as_str() {
            "query" => &["apple\nplum\nprobably present\n"],
            "add" => &["1 added; 3 in", "1 added, 1 skipped"],
            "remove" => &["2 removed, 0 not found; 0 in"],
            "merge" => &["\napple\nfig\n"],
            "verify" => &["fruit.koel: ok: ", "all good\nstandard input: ok: "],
            "convert" => &["file bytes        32\napple\n"],
            "tune" => &["Times: koel-experiments/speed.json, measured on "],
            _ => &[],
        };
        assert!(shown.iter().all(|part| run.text().contains(part)), "{command}: {}", run.text());
        assert!(!run.text().contains("another machine"), "{}", run.text());
        if command == "convert" {
            assert!(koel.read("again.koel") == koel.read("fruit.koel") && koel.read("same.koel") == koel.read("other.koel"));
        }
    }
}

/// README's session prints what README shows.
#[test]
#[cfg(unix)]
fn the_session_in_readme_works() {
    let koel = Koel::new();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = std::fs::read_to_string(path).expect("README.md");
    let (_, section) = readme.split_once("\n## The command\n").expect("its section");
    let (_, block) = section.split_once("\n```text\n$ ").expect("a session");
    let (session, _) = block.split_once("\n```\n").expect("its end");
    let steps: Vec<_> = session.split("\n$ ").map(|step| step.split_once('\n').unwrap_or((step, ""))).collect();
    assert!(steps.len() >= 5, "{steps:?}");
    for (command, output) in steps {
        assert_eq!(String::from_utf8_lossy(koel.shell(command).ok()).trim_end(), output, "{command}");
    }
}

#[test]
fn removal_help_has_a_warning() {
    let help = Koel::new().run("remove --help").text();
    assert!(help.contains("Remove only what was added.") && help.contains("fingerprint of another one"), "{help}");
}

#[test]
fn completion_scripts_have_every_command() {
    let koel = Koel::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = koel.run(["completions", shell]).printed();
        for command in commands(&koel).iter().filter(|command| !command.contains(' ')) {
            assert!(script.contains(command), "{shell}: {command}");
        }
        assert!(["capacity", "addressing", "bucket-size"].iter().all(|option| script.contains(option)), "{shell}");
    }
    koel.run("completions tcsh").error(&["'tcsh'", "bash, elvish, fish, powershell, zsh"]);
    koel.run("completions").error(&["<SHELL>"]);
    assert!(koel.names().is_empty());
}

/// The pages have the texts of the help, for every command.
#[test]
fn manual_pages_have_every_command() {
    let koel = Koel::new();
    assert_eq!(koel.run("man pages/man1").ok(), b"");
    let name = |command: &str| format!("pages/man1/koel-{}.1", command.replace(' ', "-"));
    let pages = std::fs::read_dir(koel.path("pages/man1")).expect("the pages").count();
    assert_eq!(pages, commands(&koel).len() + 1);
    for command in commands(&koel) {
        let page = String::from_utf8(koel.read(&name(&command))).expect("UTF-8");
        // Hyphens are written as `\-`.
        let plain = page.replace("\\-", "-");
        assert!(plain.contains(".SH EXAMPLES\n.nf\n") && plain.contains(&format!("koel {command} ")), "{command}: {plain}");
        assert!(!plain.contains("Examples:") && !plain.contains(".SH EXTRA"), "{command}: {plain}");
    }
    let whole = String::from_utf8(koel.read("pages/man1/koel.1")).expect("UTF-8");
    assert!(whole.contains("koel\\-uniq(1)") && whole.contains("Exit status"), "{whole}");
    koel.write("file", "");
    koel.run("man file").error(&["file: cannot be created as a folder"]);
}
