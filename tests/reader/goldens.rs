//! Writes snapshots, and lists of the expected results of their queries:
//!
//! ```text
//! cargo run --features redisbloom --example goldens                    (to tests/data: the listed snapshots that do not exist yet)
//! cargo run --features redisbloom --example goldens -- random FOLDER   (to a new folder: random, damaged and fuzzed snapshots)
//! ```
//!
//! To add a golden file, add an entry without answers to `tests/data/goldens.json`, or to `tests/data/growing/growing.json` for a
//! growing filter. Existing files are never changed.

mod corpus;
#[allow(dead_code, reason = "the fuzz targets use all of it")]
#[path = "../../fuzz/src/formulas.rs"]
mod formulas;
#[path = "../common/golden.rs"]
mod golden;
#[path = "../common/growing.rs"]
mod growing;
mod list;
mod random;
mod random_growing;
#[path = "../../fuzz/src/repair.rs"]
mod repair;
#[path = "../../fuzz/src/sections.rs"]
mod sections;
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
            // Fails if the folder exists, so that no files of an earlier run are in it.
            fs::create_dir(folder).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
            let [fixed, growing] = corpus::snapshots()?;
            let files = random::goldens();
            let damaged = [random::damaged(&files), fixed].concat();
            write(folder, files, &damaged)?;
            let folder = folder.join("growing");
            fs::create_dir(&folder)?;
            let files = random_growing::goldens();
            let damaged = [random_growing::damaged(&files), growing].concat();
            write_growing(&folder, files, &damaged)
        }
        _ => Err(io::Error::other("usage: goldens [random FOLDER]")),
    }
}

/// Writes the files of all entries without answers, and the completed list.
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

/// Like [`write`], for growing filters.
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

/// Writes a new file. An existing file is never overwritten, and must have the same bytes.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::File::create_new(path) {
        Ok(mut file) => file.write_all(bytes),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && fs::read(path)? == bytes => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(io::Error::other(format!(
            "{} exists with different bytes; golden files never change, so choose another name",
            path.display()
        ))),
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
    }
}
