//! Completion scripts and manual pages: what is made of the command's own help.

use std::process::Command;

use crate::common::Koel;

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
fn mistakes_are_named() {
    let koel = Koel::with_filter("a\n");
    koel.run(["man", "help"]).error(&["COMMAND: 'help' given", "build, query, add"]);
    koel.run(["man", "unbuild"]).error(&["COMMAND: 'unbuild' given", "build, query, add"]);
    koel.run(["man", "shard", "tear"]).error(&["COMMAND: 'tear' given, but its commands are split, build, join"]);
    koel.run(["man", "build", "--dir", "x"]).error(&["--dir", "COMMAND"]);
    koel.run(["man", "--dir", "f.koel"]).error(&["f.koel: cannot be created"]);
    assert_eq!(koel.names(), ["f.koel"]);
}
