//! Help, whose examples work as they are, and what is made of it: completion scripts and manual pages.

use std::process::Command;

use crate::common::Koel;

const COMMANDS: &str = "build,query,add,remove,merge,info,verify,convert,shard,shard split,shard build,shard join,tune,\
                        experiment sweep,experiment compare,demo,completions,man";

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
    for command in COMMANDS.split(',') {
        assert!(command.contains(' ') || overview.text().contains(&format!("\n  {command} ")), "{command}");
        let examples = examples(&koel, command);
        assert!(examples.iter().any(|line| line.contains(&format!("koel {command} "))), "{command}: {examples:?}");
    }
    assert_eq!(koel.run(["--version"]).ok(), format!("koel {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
}

#[test]
#[cfg(unix)]
fn every_example_works_when_pasted() {
    for command in COMMANDS.split(',') {
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

/// All subcommands, as the help lists them.
fn commands(koel: &Koel) -> Vec<String> {
    let names = listed(koel, &["--help"]);
    assert!(["build", "man"].iter().all(|name| names.contains(&String::from(*name))) && names.len() > 12, "{names:?}");
    names
}

/// The subcommands that a help lists.
fn listed(koel: &Koel, args: &[&str]) -> Vec<String> {
    let help = koel.run(args).text();
    let (_, list) = help.split_once("\nCommands:\n").expect("a list of commands");
    let names =
        list.lines().take_while(|line| !line.is_empty()).filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(String::from).collect()
}

#[test]
fn every_shell_has_a_script_that_knows_every_command() {
    let koel = Koel::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = koel.run(["completions", shell]);
        script.ok();
        let script = script.text();
        for command in commands(&koel) {
            assert!(script.contains(&command), "{shell}: {command}");
        }
        for option in ["capacity", "addressing", "bucket-size"] {
            assert!(script.contains(option), "{shell}: {option}");
        }
    }
    koel.run(["completions", "tcsh"]).error(&["'tcsh'", "bash, elvish, fish, powershell, zsh"]);
    koel.run(["completions"]).error(&["<SHELL>"]);
    assert!(koel.names().is_empty());
}

#[test]
#[cfg(unix)]
fn bash_completes_with_the_script() {
    let koel = Koel::new();
    koel.shell("koel completions bash > koel.bash; bash -n koel.bash").ok();
    let complete = |words: &str| {
        let lines = [
            "source ./koel.bash",
            &format!("COMP_WORDS=({words})"),
            "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))",
            "_koel koel \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"",
            "echo \"${COMPREPLY[@]}\"",
        ];
        koel.write("complete.bash", lines.join("\n"));
        koel.shell("bash complete.bash").text()
    };
    assert_eq!(complete("koel ver"), "verify\n");
    assert_eq!(complete("koel build list.txt --add"), "--addressing\n");
    assert_eq!(complete("koel build list.txt --table ''"), "single packed\n");
}

#[test]
fn every_command_has_a_manual_page() {
    let koel = Koel::new();
    koel.run(["man", "--dir", "new/man1"]).ok();
    let commands = commands(&koel);
    let mut expected: Vec<_> = commands.iter().filter(|name| *name != "help").map(|name| format!("koel-{name}.1")).collect();
    expected.push(String::from("koel.1"));
    for group in ["shard", "experiment"] {
        let listed = listed(&koel, &[group, "--help"]);
        expected.extend(listed.iter().filter(|name| *name != "help").map(|name| format!("koel-{group}-{name}.1")));
    }
    let mut pages: Vec<_> = std::fs::read_dir(koel.path("new/man1"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    expected.sort();
    pages.sort();
    assert_eq!(pages, expected);
    for page in &pages {
        let text = String::from_utf8(koel.read(&format!("new/man1/{page}"))).expect("UTF-8");
        let name = page.trim_end_matches(".1");
        assert!(text.contains(&format!("\n.TH {name} 1 ")), "{page}: {text}");
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"] {
            assert!(text.contains(&format!("\n.SH {section}\n")), "{page}: no {section}");
        }
        assert!(page == "koel.1" || text.contains("\n.SH EXAMPLES\n"), "{page}: no examples");
        assert!(!text.contains(".SH EXTRA"), "{page}");
        // The same as is printed.
        let command = name.split('-').skip(1);
        assert_eq!(koel.run(["man"].into_iter().chain(command)).text(), text, "{page}");
    }
    assert!(String::from_utf8(koel.read("new/man1/koel-build.1")).expect("UTF-8").contains("\\-\\-bucket\\-size"));
}

#[test]
#[cfg(unix)]
fn the_pages_can_be_read_with_man() {
    if Command::new("man").arg("--version").output().is_err() {
        println!("not checked: man is not installed here");
        return;
    }
    let koel = Koel::new();
    koel.run(["man", "--dir", "man1"]).ok();
    let pages = std::fs::read_dir(koel.path("man1")).expect("a folder").count();
    let run = koel.shell("for page in man1/*.1; do man --warnings --local-file \"$page\" | cat; done");
    assert_eq!(String::from_utf8_lossy(run.ok()).matches("SYNOPSIS").count(), pages);
}

#[test]
fn pages_that_do_not_exist_are_named() {
    let koel = Koel::with_filter("a\n");
    koel.run(["man", "help"]).error(&["COMMAND: 'help' given", "build, query, add"]);
    koel.run(["man", "unbuild"]).error(&["COMMAND: 'unbuild' given", "build, query, add"]);
    koel.run(["man", "shard", "tear"]).error(&["COMMAND: 'tear' given, but its commands are split, build, join"]);
    koel.run(["man", "build", "--dir", "x"]).error(&["--dir", "COMMAND"]);
    koel.run(["man", "--dir", "f.koel"]).error(&["f.koel: cannot be created"]);
    assert_eq!(koel.names(), ["f.koel"]);
}
