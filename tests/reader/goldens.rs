//! Writes snapshots, and a list of what each of them answers:
//!
//! ```text
//! cargo run --example goldens                        (tests/data: those of goldens.json that are not there yet)
//! cargo run --example goldens -- random FOLDER       (a new one: some of random kinds, and damaged ones)
//! ```
//!
//! A new golden file begins as an entry without answers in `tests/data/goldens.json`. Those that are there stay as they are.

#[path = "../common/golden.rs"]
mod golden;
mod list;
mod random;
#[path = "../common/split_mix.rs"]
mod split_mix;

use golden::{Golden, PROBES};
use std::{
    env, fs,
    io::{self, Write as _},
    path::Path,
};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
            let files = Golden::list(&fs::read_to_string(folder.join("goldens.json"))?);
            write(&folder, files, &[])
        }
        ["random", folder] => {
            let folder = Path::new(folder);
            // Nothing of an earlier run's is among them.
            fs::create_dir(folder).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
            let files = random::goldens();
            let damaged = random::damaged(&files);
            write(folder, files, &damaged)
        }
        _ => Err(io::Error::other("usage: goldens [random FOLDER]")),
    }
}

/// The files that have no answers yet, and the list.
fn write(folder: &Path, mut files: Vec<Golden>, damaged: &[String]) -> io::Result<()> {
    for golden in files.iter_mut().filter(|golden| golden.answers.is_none()) {
        let Some((filter, answers)) = golden.make() else {
            return Err(io::Error::other(format!("{}: its hasher is missing", golden.file)));
        };
        write_new(&folder.join(&golden.file), &filter.to_bytes())?;
        println!("{}: {} items, {} probes found", golden.file, filter.len(), answers.found.len());
        golden.answers = Some(answers);
    }
    let files: Vec<String> = files.iter().map(list::entry).collect();
    let lists = [("files", files.join(",\n  ")), ("damaged", damaged.join(",\n  "))];
    let lists: Vec<String> =
        lists.iter().filter(|(_, list)| !list.is_empty()).map(|(name, list)| format!("\"{name}\": [\n  {list}\n]")).collect();
    fs::write(folder.join("goldens.json"), format!("{{ \"probes\": {PROBES}, {} }}\n", lists.join(", ")))
}

/// Never over a file: one that is there must be the same.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::File::create_new(path) {
        Ok(mut file) => file.write_all(bytes),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && fs::read(path)? == bytes => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(io::Error::other(format!(
            "{} is there, with other bytes: golden files stay as they are, take another name",
            path.display()
        ))),
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
    }
}
