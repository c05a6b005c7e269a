//! Checks messages: they name options of the subcommand at hand, whole commands in backquotes, and no word of the library.

use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsString,
    process::Command,
    sync::{Mutex, PoisonError},
};

/// Names of the library that do not contain an underscore, as most do.
const LIBRARY: [&str; 8] = [
    "ElasticFilter",
    "CuckooFilter",
    "SharedFilter",
    "FilterView",
    "ElasticView",
    "ParamError",
    "InsertError",
    "false-positive rate:",
];

/// Asserts that the options in a message are in the help of its subcommand, or among the given arguments. The options of a command
/// in backquotes, such as `koel build --grow`, are in that command's help. Asserts that no word is one of the library.
#[track_caller]
pub(crate) fn check(args: &[OsString], message: &str) {
    if let Some(fault) = fault(args, message) {
        panic!("{args:?}: {fault}: {message}");
    }
}

/// Returns what is wrong with a message, if anything.
pub(crate) fn fault(args: &[OsString], message: &str) -> Option<String> {
    let args: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    let given: String = args.iter().flat_map(|arg| [arg, "\n"]).collect();
    let known = [options(&help(&args)), options(&given)].concat();
    // The parts at odd places are in backquotes.
    for (place, part) in message.split('`').enumerate() {
        let command = part.strip_prefix("koel ").filter(|_| place % 2 == 1);
        let own = place % 2 == 0 || part.starts_with('-');
        let words: Vec<_> = command.unwrap_or_default().split_whitespace().collect();
        let known = match command {
            Some(_) => &options(&help(&words)),
            None if own => &known,
            None => continue,
        };
        if let Some(option) = options(part).into_iter().find(|option| !known.contains(option)) {
            return Some(format!("{option} is not an option there"));
        }
    }
    if let Some(word) = LIBRARY.iter().find(|&word| message.contains(word)) {
        return Some(format!("{word} is a word of the library"));
    }
    let words = message.split(|c: char| !(c.is_alphanumeric() || "_./-".contains(c)));
    let mut names = words.filter(|word| word.contains('_') && !word.contains(['/', '.']) && word.contains(char::is_lowercase));
    names.find(|word| !given.contains(word)).map(|word| format!("{word} is a word of the library"))
}

/// Returns the options that a text names, long and short.
fn options(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    let is_option = |word: &&str| {
        let name = word.trim_start_matches('-');
        let dashes = word.len() - name.len();
        name.starts_with(|c: char| c.is_ascii_lowercase()) && (dashes == 2 || dashes == 1 && name.len() == 1)
    };
    words.filter(is_option).map(String::from).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns the help of the subcommand that the arguments begin with, or of `koel` itself.
fn help<T: AsRef<str>>(args: &[T]) -> String {
    static HELP: Mutex<Option<HashMap<String, String>>> = Mutex::new(None);
    let mut all = HELP.lock().unwrap_or_else(PoisonError::into_inner);
    let read = |name: &str| {
        let output = Command::new(super::KOEL).args(name.split_whitespace()).arg("--help").output().expect("its help");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    // An unknown subcommand has no help.
    let read = |name: &str| Some(read(name)).filter(|help| !help.is_empty()).unwrap_or_else(|| read(""));
    let mut of = |name: String| all.get_or_insert_default().entry(name).or_insert_with_key(|name| read(name)).clone();
    let mut names = args.iter().map(AsRef::as_ref).take_while(|arg: &&str| arg.chars().all(|c| c.is_ascii_lowercase()));
    let outer = names.next().unwrap_or_default();
    let help = of(outer.to_owned());
    // The list of its own subcommands ends with an empty line.
    let mut commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).map_while(|line| line.split_whitespace().next());
    match names.next().filter(|inner| commands.any(|name| name == *inner)) {
        Some(inner) => of(format!("{outer} {inner}")),
        None => help,
    }
}
