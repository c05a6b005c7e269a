//! Writes snapshots, and a list of what each of them answers:
//!
//! ```text
//! cargo run --features redisbloom --example goldens                    (tests/data: those of the lists that are not there yet)
//! cargo run --features redisbloom --example goldens -- random FOLDER   (a new one: some of random kinds, and damaged ones)
//! ```
//!
//! A new golden file begins as an entry without answers in `tests/data/goldens.json`, or of a filter that grows, in
//! `tests/data/growing/growing.json`. Those that are there stay as they are.

#[path = "../common/golden.rs"]
mod golden;
#[path = "../common/growing.rs"]
mod growing;
mod list;
mod random;
mod random_growing;
#[path = "../common/split_mix.rs"]
mod split_mix;

use golden::{Golden, PROBES};
use growing::Growing;
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
            write(&folder, files, &[])?;
            let folder = folder.join("growing");
            let files = Growing::list(&fs::read_to_string(folder.join("growing.json"))?);
            write_growing(&folder, files, &[])
        }
        ["random", folder] => {
            let folder = Path::new(folder);
            // Nothing of an earlier run's is among them.
            fs::create_dir(folder).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
            let files = random::goldens();
            let damaged = random::damaged(&files);
            write(folder, files, &damaged)?;
            let folder = folder.join("growing");
            fs::create_dir(&folder)?;
            let files = random_growing::goldens();
            let damaged = random_growing::damaged(&files);
            write_growing(&folder, files, &damaged)
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
    let entries: Vec<String> = files.iter().map(list::entry).collect();
    write_list(&folder.join("goldens.json"), &entries, damaged)
}

/// The same, of filters that grow.
fn write_growing(folder: &Path, mut files: Vec<Growing>, damaged: &[String]) -> io::Result<()> {
    for golden in files.iter_mut().filter(|golden| golden.answers.is_none()) {
        let (filter, answers) = golden.make();
        write_new(&folder.join(&golden.file), &filter.to_bytes())?;
        println!("{}: {filter}, {} probes found", golden.file, answers.found.len());
        golden.answers = Some(answers);
    }
    let entries: Vec<String> = files.iter().map(list::growing_entry).collect();
    write_list(&folder.join("growing.json"), &entries, damaged)
}

fn write_list(path: &Path, files: &[String], damaged: &[String]) -> io::Result<()> {
    let lists = [("files", files.join(",\n  ")), ("damaged", damaged.join(",\n  "))];
    let lists: Vec<String> =
        lists.iter().filter(|(_, list)| !list.is_empty()).map(|(name, list)| format!("\"{name}\": [\n  {list}\n]")).collect();
    fs::write(path, format!("{{ \"probes\": {PROBES}, {} }}\n", lists.join(", ")))
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
