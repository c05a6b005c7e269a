//! Finds out which Rust file of the repository refers to which other file.
//!
//! A file refers to another one if its code has a path (`crate::`, `super::`, a module, or an imported name) that leads to an item
//! that the other file defines. Paths are followed through imports and re-exports, as the compiler does it. These are no
//! references:
//!
//! - the declaration of a module;
//! - a re-export (`pub use`) whose name the file itself does not use: it only hands the item on;
//! - a call of a method, which names no path: so a type's methods may be spread over files, if only one way names items;
//! - what is compiled for unit tests only;
//! - what a macro's expansion refers to, unless the macro's text has the path.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fs,
    iter::Peekable,
    path::{Path, PathBuf},
    vec::IntoIter,
};

/// From a file to another one, the names of the items.
pub type References = BTreeMap<(PathBuf, PathBuf), BTreeSet<String>>;

/// The modules of all crates in a folder. A file that several crates have is several modules.
#[derive(Default)]
pub struct Modules(Vec<Module>);

#[derive(Default)]
struct Module {
    file: PathBuf,
    parent: Option<usize>,
    children: HashMap<String, usize>,
    items: HashMap<String, Item>,
    imports: Vec<Import>,
    /// The paths in the module's code, also those of a single name.
    paths: Vec<Vec<String>>,
}

struct Item {
    /// Such as `struct`.
    keyword: String,
    /// True for `pub`, false for `pub(crate)` and private items.
    is_public: bool,
}

struct Import {
    /// The name is `*` if the module imports all items of another one.
    name: String,
    path: Vec<String>,
    is_public: bool,
}

enum Target {
    Module(usize),
    Item(usize, String),
}

impl Modules {
    /// Reads all Rust files below `folder`, in their canonical paths. A file that no other one declares as its module is the root of
    /// a crate.
    pub fn read(folder: &Path) -> Self {
        let mut files = Vec::new();
        find_files(&folder.canonicalize().expect("a folder"), &mut files);
        let mut all = Self::default();
        for file in &files {
            all.read_file(file, None);
        }
        let is_declared = |module: &&Module| module.parent.is_some_and(|parent| all.0[parent].file != module.file);
        let declared: HashSet<_> = all.0.iter().filter(is_declared).map(|module| &module.file).collect();
        let mut modules = Self::default();
        for root in files.iter().filter(|file| !declared.contains(file)) {
            modules.read_file(root, None);
        }
        modules
    }

    /// Returns the references from each file to others.
    pub fn references(&self) -> References {
        let mut found = References::new();
        for (number, module) in self.0.iter().enumerate() {
            let imported = module.imports.iter().filter(|import| !import.is_public).map(|import| &import.path);
            for path in module.paths.iter().chain(imported) {
                if let Some(Target::Item(target, name)) = self.resolve(number, path, 0) {
                    let (from, to) = (&module.file, &self.0[target].file);
                    if from != to {
                        found.entry((from.clone(), to.clone())).or_default().insert(name);
                    }
                }
            }
        }
        found
    }

    /// Returns true if a module defines an item with this name.
    pub fn has_item(&self, name: &str) -> bool {
        self.0.iter().any(|module| module.items.contains_key(name))
    }

    /// Returns true if an item of a file is a type or a trait for the crate alone.
    pub fn is_type_of_crate(&self, file: &Path, name: &str) -> bool {
        let mut items = self.0.iter().filter(|module| module.file == file).filter_map(|module| module.items.get(name));
        items.any(|item| TYPES.contains(&&*item.keyword) && !item.is_public)
    }

    fn resolve(&self, from: usize, path: &[String], imports: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        let mut target = match first.as_str() {
            "crate" => {
                let mut root = from;
                while let Some(parent) = self.0[root].parent {
                    root = parent;
                }
                Target::Module(root)
            }
            "self" => Target::Module(from),
            "super" => Target::Module(self.0[from].parent?),
            name => self.member(from, name, imports)?,
        };
        for name in rest {
            let Target::Module(module) = target else { break };
            target = match name.as_str() {
                "self" => target,
                "super" => Target::Module(self.0[module].parent?),
                // A name that is not found is defined by a macro.
                name => self.member(module, name, imports).unwrap_or_else(|| Target::Item(module, name.to_owned())),
            };
        }
        Some(target)
    }

    /// Finds a name in a module, after so many imports; more than a few are a circle of `use ...::*`.
    fn member(&self, number: usize, name: &str, imports: usize) -> Option<Target> {
        let module = &self.0[number];
        if module.items.contains_key(name) {
            return Some(Target::Item(number, name.to_owned()));
        }
        if let Some(&child) = module.children.get(name) {
            return Some(Target::Module(child));
        }
        if imports > 5 {
            return None;
        }
        if let Some(import) = module.imports.iter().find(|import| import.name == name) {
            return self.resolve(number, &import.path, imports + 1);
        }
        let everything = module.imports.iter().filter(|import| import.name == "*");
        everything.filter_map(|import| self.resolve(number, &import.path, imports + 1)).find_map(|target| match target {
            Target::Module(module) => self.member(module, name, imports + 1),
            Target::Item(..) => None,
        })
    }

    fn read_file(&mut self, file: &Path, parent: Option<usize>) -> usize {
        let source = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let folder = file.parent().expect("a file is in a folder");
        // The modules of a file are in the folder that is called like it, and those of `mod.rs` and of a crate's root beside it.
        let folders = [folder.join(file.file_stem().expect("a name")), folder.to_path_buf()];
        let module = self.add(file, parent);
        self.read_module(&mut tokens(&source).into_iter().peekable(), module, &folders);
        module
    }

    fn add(&mut self, file: &Path, parent: Option<usize>) -> usize {
        self.0.push(Module { file: file.to_path_buf(), parent, ..Module::default() });
        self.0.len() - 1
    }

    /// Reads a module up to its last token, or up to the brace that closes a module within a file.
    fn read_module(&mut self, tokens: &mut Tokens<'_>, number: usize, folders: &[PathBuf]) {
        let (mut depth, mut previous, mut chosen_file) = (0, "", None);
        while let Some(token) = tokens.next() {
            match token {
                "#" => {
                    let attribute = attribute(tokens);
                    if attribute.starts_with(&["cfg", "(", "test"]) || attribute.starts_with(&["cfg", "(", "all", "(", "test"]) {
                        skip_item(tokens);
                    } else if let ["path", "=", file] = attribute[..] {
                        chosen_file = Some(file.trim_matches('"').to_owned());
                    }
                }
                "{" => depth += 1,
                "}" if depth == 0 => return,
                "}" => depth -= 1,
                // In a macro, the name may be a parameter.
                "mod" if tokens.peek().is_some_and(|next| is_word(next)) => {
                    let name = tokens.next().expect("the name of a module");
                    let file = self.0[number].file.clone();
                    let child = if tokens.next() == Some("{") {
                        let child = self.add(&file, Some(number));
                        let folders: Vec<_> = folders.iter().map(|folder| folder.join(name)).collect();
                        self.read_module(tokens, child, &folders);
                        child
                    } else {
                        let chosen = chosen_file.take().map(|chosen| file.with_file_name(chosen));
                        let usual = folders
                            .iter()
                            .flat_map(|folder| [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")]);
                        let found = chosen.into_iter().chain(usual).find_map(|file| file.canonicalize().ok());
                        let found = found.unwrap_or_else(|| panic!("{}: the file of {name} is not found", file.display()));
                        self.read_file(&found, Some(number))
                    };
                    self.0[number].children.insert(name.to_owned(), child);
                }
                // `impl Trait + use<...>` imports nothing.
                "use" if tokens.peek() != Some(&"<") => {
                    read_imports(tokens, &[], previous == "pub" || previous == ")", &mut self.0[number].imports);
                }
                word if is_word(word) => {
                    let next = tokens.peek().copied().unwrap_or_default();
                    if depth == 0 && KEYWORDS.contains(&word) && previous != "*" && is_word(next) && !KEYWORDS.contains(&next) {
                        let item = Item { keyword: word.to_owned(), is_public: previous == "pub" };
                        self.0[number].items.insert(next.to_owned(), item);
                    } else if word == "macro_rules" {
                        let name = tokens.nth(1).expect("the name of a macro");
                        let item = Item { keyword: word.to_owned(), is_public: false };
                        self.0[number].items.insert(name.to_owned(), item);
                    } else if previous != "." && previous != "::" {
                        let mut path = vec![word.to_owned()];
                        while tokens.next_if_eq(&"::").is_some()
                            && let Some(next) = tokens.next_if(|next| is_word(next))
                        {
                            path.push(next.to_owned());
                        }
                        self.0[number].paths.push(path);
                    }
                }
                _ => {}
            }
            previous = token;
        }
    }
}

type Tokens<'a> = Peekable<IntoIter<&'a str>>;

/// An item's name follows one of these keywords.
const KEYWORDS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

/// The keywords that define types and traits.
const TYPES: [&str; 5] = ["struct", "enum", "union", "trait", "type"];

fn find_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("a folder of the repository").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !name.starts_with('.') && name != "target" && name != "node_modules" {
            find_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the tokens between the brackets of an attribute.
fn attribute<'a>(tokens: &mut Tokens<'a>) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut depth = 0;
    tokens.next_if_eq(&"!");
    // In a macro, `#` may stand by itself.
    if tokens.next_if_eq(&"[").is_some() {
        for token in tokens {
            match token {
                "[" => depth += 1,
                "]" if depth == 0 => break,
                "]" => depth -= 1,
                _ => {}
            }
            found.push(token);
        }
    }
    found
}

/// Skips an item up to its semicolon or its closing brace.
fn skip_item(tokens: &mut Tokens<'_>) {
    let mut depth = 0;
    for token in tokens {
        match token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" => depth -= 1,
            "}" => {
                depth -= 1;
                if depth == 0 {
                    return;
                }
            }
            ";" if depth == 0 => return,
            _ => {}
        }
    }
}

/// Reads what follows `use`, or one entry of a list there.
fn read_imports(tokens: &mut Tokens<'_>, prefix: &[String], is_public: bool, found: &mut Vec<Import>) {
    let mut path = prefix.to_vec();
    let mut name = None;
    loop {
        match tokens.peek().copied() {
            Some("{") => {
                tokens.next();
                while tokens.next_if_eq(&"}").is_none() {
                    read_imports(tokens, &path, is_public, found);
                    tokens.next_if_eq(&",");
                }
                return;
            }
            Some("as") => {
                tokens.next();
                name = tokens.next().map(str::to_owned);
            }
            Some("*") => {
                tokens.next();
                name = Some("*".to_owned());
            }
            Some("::") => {
                tokens.next();
                // A path that begins so leads to another crate.
                if path.is_empty() {
                    path.push("::".to_owned());
                }
            }
            Some(word) if is_word(word) => {
                path.push(word.to_owned());
                tokens.next();
            }
            _ => break,
        }
    }
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if let Some(name) = name.or_else(|| path.last().cloned()) {
        found.push(Import { name, path, is_public });
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Splits a source into words, strings, `::` and single characters, without comments, lifetimes and characters in quotes.
fn tokens(source: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = raw_string(rest) {
            length
        } else if first == '"' {
            quoted(rest)
        } else if first == '\'' {
            let mut letters = rest.chars().skip(1);
            match (letters.next(), letters.next()) {
                (Some('\\'), _) => quoted(rest),
                (Some(letter), Some('\'')) => letter.len_utf8() + 2,
                _ => 1 + word(&rest[1..]),
            }
        } else if rest.starts_with("::") {
            2
        } else {
            word(rest).max(first.len_utf8())
        };
        let token = &rest[..length];
        if !(token.starts_with("//") || token.starts_with("/*") || first == '\'' || first.is_whitespace()) {
            found.push(token);
        }
        rest = &rest[length..];
    }
    found
}

fn word(text: &str) -> usize {
    text.find(|letter: char| !(letter.is_alphanumeric() || letter == '_')).unwrap_or(text.len())
}

/// Returns the length of a string or a character that `text` begins with.
fn quoted(text: &str) -> usize {
    let quote = text.as_bytes()[0];
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        if byte == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = byte == b'\\' && !is_escaped;
    }
    text.len()
}

fn raw_string(text: &str) -> Option<usize> {
    let marks = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = marks.len() - marks.trim_start_matches('#').len();
    let content = marks[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(text.len() - content.len() + content.find(&end)? + end.len())
}
