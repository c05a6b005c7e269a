//! Tests of savers that fail, are killed, run at the same time, or find other files at their names.

#![cfg(not(target_family = "wasm"))]

use alloc::{
    format,
    string::{String, ToString as _},
    vec::Vec,
};
use std::{env, io::Write as _, process};

use super::*;
use crate::{
    elastic::ElasticFilter,
    filter::CuckooFilter,
    snapshot::file::{replace, replace_with},
};

/// The folder of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("koel-temporary-{name}-{}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Returns the names of the files in the folder, in order.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Returns the path of the temporary file `number` for `f.koel`.
    fn temporary(&self, number: u32) -> PathBuf {
        Names::of(&self.target()).unwrap().nth(number).into()
    }

    fn target(&self) -> PathBuf {
        self.0.join("f.koel")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, |mut file| file.write_all(bytes), |_| Ok(()))
}

#[test]
#[cfg_attr(miri, ignore = "Miri is isolated from files")]
fn leftovers_are_removed_and_files_in_use_stay() {
    let folder = Folder::new("leftovers");
    for number in [0, 1, 3, SEARCHED - 1] {
        fs::write(folder.temporary(number), "left").unwrap();
    }
    // This file looks like that of another live saver.
    let used = File::create(folder.temporary(2)).unwrap();
    used.lock().unwrap();
    save(&folder.target(), b"new").unwrap();
    assert_eq!(folder.names(), [folder.temporary(2).file_name().unwrap().to_str().unwrap(), "f.koel"]);
    drop(used);
    save(&folder.target(), b"newer").unwrap();
    assert_eq!(folder.names(), ["f.koel"]);
    // A saver of another target neither removes the leftover nor fails.
    fs::write(folder.temporary(0), "left").unwrap();
    save(&folder.0.join("g.koel"), b"other").unwrap();
    assert!(folder.temporary(0).exists());
    assert_eq!(fs::read(folder.target()).unwrap(), b"newer");
}

/// Saves `number` as one byte, while a nested saver saves the next number.
fn nest(folder: &Folder, number: u32) -> io::Result<()> {
    let write = |mut file: &File| {
        assert!((0..=number).all(|number| folder.temporary(number).exists()));
        file.write_all(&[u8::try_from(number).unwrap()])?;
        // Nests more savers than there are names to search for leftovers.
        if number <= SEARCHED { nest(folder, number + 1) } else { Ok(()) }
    };
    replace_with(&folder.target(), write, |_| Ok(()))
}

#[test]
#[cfg_attr(miri, ignore = "Miri is isolated from files")]
fn nested_savers_take_different_names() {
    let folder = Folder::new("nested");
    nest(&folder, 0).unwrap();
    assert_eq!(fs::read(folder.target()).unwrap(), [0]);
    assert_eq!(folder.names(), ["f.koel"]);
}

#[test]
#[cfg_attr(miri, ignore = "Miri is isolated from files")]
fn names_fit_beside_the_longest_target() {
    let folder = Folder::new("long");
    let target = folder.0.join("y".repeat(255));
    assert!(Names::of(&target).unwrap().nth(u32::MAX).file_name().unwrap().len() == LONGEST_NAME.len());
    for bytes in [b"old", b"new"] {
        save(&target, bytes).unwrap();
        assert_eq!(fs::read(&target).unwrap(), bytes);
    }
    assert_eq!(folder.names().len(), 1);
}

#[test]
#[cfg_attr(miri, ignore = "Miri is isolated from files")]
fn failed_saves_keep_the_old_file_and_leave_no_other() {
    let folder = Folder::new("save");
    let path = folder.target();
    let fails = |_: &File| Err(io::Error::new(ErrorKind::StorageFull, "the disk is full"));
    let error = replace(&path, fails).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert!(error.to_string().ends_with("f.koel: cannot be written: the disk is full"), "{error}");
    assert!(folder.names().is_empty());
    save(&path, b"old").unwrap();
    let error = replace(&path, |mut file| file.write_all(b"new, but not all of it").and_then(|()| fails(file))).unwrap_err();
    assert!(error.to_string().contains("f.koel: cannot be written; the old file is unchanged: the disk is full"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(folder.names(), ["f.koel"]);
}

/// A corrupt header or list of shards, or another length, is found before a file is replaced.
#[test]
#[cfg_attr(miri, ignore = "Miri is isolated from files")]
fn unreadable_snapshots_do_not_replace_a_file() {
    let folder = Folder::new("back");
    let path = folder.target();
    let mut fixed = CuckooFilter::builder().capacity(100).false_positive_rate(0.01).build().unwrap();
    fixed.insert("koel").unwrap();
    let growing = ElasticFilter::builder().capacity(100).max_capacity(1000).false_positive_rate(0.01);
    let growing = {
        let mut filter = growing.build().unwrap();
        filter.insert_iter(0..2000_u64).unwrap();
        filter.to_bytes()
    };
    // The bytes to corrupt are the header and, in the growing filter, the first section up to the middle of a record.
    for (valid, checked) in [(fixed.to_bytes(), 64), (growing, 64 + 32 + 16)] {
        let write = |bytes: &[u8]| replace(&path, |mut file| file.write_all(bytes));
        write(&valid).unwrap();
        let corrupt = |at: usize| {
            let mut bytes = valid.clone();
            bytes[at] ^= 4;
            bytes
        };
        let longer = [&valid[..], &[0]].concat();
        let shorter = (0..4).map(|n| valid[..n * (valid.len() - 1) / 3].to_vec());
        for bytes in (0..checked).map(corrupt).chain(shorter).chain([longer]) {
            let error = write(&bytes).unwrap_err().to_string();
            assert!(
                error.contains("f.koel: cannot be written; the old file is unchanged: the written file cannot be read back"),
                "{error}"
            );
            assert!(fs::read(&path).unwrap() == valid);
            assert_eq!(folder.names(), ["f.koel"]);
        }
    }
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::{os::unix::fs::symlink, process::Command};

    /// The temporary file must not be readable by users who may not read the old file.
    #[test]
    #[cfg_attr(miri, ignore = "Miri is isolated from files")]
    fn a_temporary_file_is_private_until_it_gets_the_old_permissions() {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |file: &File| Ok::<_, io::Error>(file.metadata()?.permissions().mode() & 0o7777);
        let folder = Folder::new("private");
        let usual = mode(&File::create(folder.0.join("usual")).unwrap()).unwrap();
        let mut seen = Vec::new();
        for _ in 0..2 {
            replace_with(&folder.target(), |file| mode(file).map(|mode| seen.push(mode)), |_| Ok(())).unwrap();
        }
        assert_eq!(seen, [usual, 0o600]);
        assert_eq!(mode(&File::open(folder.target()).unwrap()).unwrap(), usual);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri is isolated from files")]
    fn planted_files_are_never_written_to() {
        let folder = Folder::new("planted");
        let victim = folder.0.join("victim");
        fs::write(&victim, "precious").unwrap();
        symlink("victim", folder.temporary(0)).unwrap();
        symlink("nowhere", folder.temporary(1)).unwrap();
        fs::create_dir(folder.temporary(2)).unwrap();
        assert!(Command::new("mkfifo").arg(folder.temporary(3)).status().unwrap().success());
        // A hard link to the victim: this name is removed, and the file stays.
        fs::hard_link(&victim, folder.temporary(4)).unwrap();
        save(&folder.target(), b"new").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert!((0..4).all(|number| fs::symlink_metadata(folder.temporary(number)).is_ok()));
        assert!(!folder.temporary(4).exists() && !folder.0.join("nowhere").exists());
        assert_eq!(fs::read(folder.target()).unwrap(), b"new");
        assert_eq!(folder.names().len(), 6);
    }

    /// A file that someone else put at the temporary name never becomes the target, and is not removed.
    #[test]
    #[cfg_attr(miri, ignore = "Miri is isolated from files")]
    fn saving_fails_if_the_temporary_file_is_removed_or_replaced() {
        let folder = Folder::new("replaced");
        save(&folder.target(), b"old").unwrap();
        for is_replaced in [false, true] {
            let write = |mut file: &File| {
                fs::remove_file(folder.temporary(0))?;
                if is_replaced {
                    fs::write(folder.temporary(0), "another")?;
                }
                file.write_all(b"new")
            };
            let error = format!("{}", replace_with(&folder.target(), write, |_| Ok(())).unwrap_err());
            assert!(error.contains("f.koel: cannot be written; the old file is unchanged: "), "{error}");
            assert!(error.ends_with(".tmp: another program removed or replaced the temporary file; save again"), "{error}");
            assert_eq!(fs::read(folder.target()).unwrap(), b"old");
            assert_eq!(folder.temporary(0).exists(), is_replaced);
        }
    }

    // Under qemu, a test cannot start itself as another process.
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    mod processes {
        use super::*;
        use std::{
            io::{BufRead as _, BufReader, Read as _},
            process::{Child, Stdio},
            thread::{self, ScopedJoinHandle},
        };

        const SAVER: &str = "KOEL_TEST_SAVER";

        /// Returns the bytes of a snapshot, which differs for each number.
        fn snapshot(number: usize) -> Vec<u8> {
            let mut filter = CuckooFilter::builder().capacity(1000 * (number + 1)).false_positive_rate(0.01).build().unwrap();
            (0..500_u32).for_each(|item| filter.insert(&item).unwrap());
            filter.to_bytes()
        }

        /// The number of steps of one save: before each of 8 pieces of the snapshot, after the last, and when the file is saved.
        const STEPS: usize = 10;

        /// A process that saves a snapshot repeatedly and reports each step as a line.
        struct Saver(Child);

        impl Saver {
            /// Starts a process that saves snapshot `number` `saves` times. It halts after `stop` steps, unless that is 0.
            fn start(folder: &Folder, number: usize, saves: usize, stop: usize) -> Self {
                let mut command = Command::new(env::current_exe().unwrap());
                command.args(["snapshot::temporary::tests::unix::processes::saver", "--exact", "--nocapture"]);
                let arguments = format!("{number} {saves} {stop} {}", folder.target().display());
                Self(command.env(SAVER, arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
            }

            /// Kills the process once it has reported this many steps.
            fn kill_after(mut self, steps: usize) {
                let lines = BufReader::new(self.0.stdout.take().unwrap()).lines();
                let seen = lines.map(Result::unwrap).filter(|line| line.ends_with("step")).take(steps).count();
                self.0.kill().unwrap();
                self.0.wait().unwrap();
                assert_eq!(seen, steps);
            }

            fn finish(mut self) {
                self.0.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
                assert!(self.0.wait().unwrap().success());
            }
        }

        /// Runs as the process of a [`Saver`]. Without its arguments, as in a normal test run, it does nothing.
        #[test]
        #[cfg_attr(miri, ignore = "Miri has no environment")]
        fn saver() {
            let Ok(arguments) = env::var(SAVER) else { return };
            let mut arguments = arguments.splitn(4, ' ');
            let [number, saves, stop] = [(); 3].map(|()| arguments.next().unwrap().parse::<usize>().unwrap());
            let target = Path::new(arguments.next().unwrap());
            let bytes = snapshot(number);
            let mut steps = 0;
            let mut step = || {
                std::println!("step");
                steps += 1;
                if steps == stop {
                    io::stdin().read_to_end(&mut Vec::new()).unwrap();
                }
            };
            for _ in 0..saves {
                let write = |mut file: &File| {
                    for piece in bytes.chunks(bytes.len().div_ceil(STEPS - 2)) {
                        step();
                        file.write_all(piece)?;
                    }
                    step();
                    Ok(())
                };
                replace(target, write).unwrap();
                step();
            }
        }

        /// A saver that is killed at any point leaves at most one temporary file, and the next saver removes it.
        #[test]
        #[cfg_attr(miri, ignore = "Miri is isolated from processes")]
        fn killed_savers_leave_at_most_one_file_for_the_next_to_remove() {
            let folder = Folder::new("killed");
            let [old, new] = [0, 1].map(snapshot);
            save(&folder.target(), &old).unwrap();
            let kill = |stop, steps| {
                Saver::start(&folder, 1, 1000, stop).kill_after(steps);
                let names = folder.names();
                assert!(names.len() <= 2 && names.last().unwrap() == "f.koel", "{names:?}");
                let found = fs::read(folder.target()).unwrap();
                assert!(found == new || found == old);
                (names.len() - 1, found == new)
            };
            let clean = || {
                save(&folder.target(), &old).unwrap();
                assert_eq!(folder.names(), ["f.koel"]);
            };
            for steps in 1..=2 * STEPS {
                // The second saver finds what the first one left.
                let expected = (usize::from(steps % STEPS != 0), steps >= STEPS);
                assert_eq!([(); 2].map(|()| kill(steps, steps)), [expected; 2], "{steps} steps");
                clean();
            }
            // These savers do not halt, so the kill hits them at any point.
            for steps in 1..=3 * STEPS {
                kill(0, steps);
            }
            clean();
        }

        /// While threads and processes save to one target, a reader always finds a whole file.
        #[test]
        #[cfg_attr(miri, ignore = "Miri is isolated from processes")]
        fn concurrent_savers_leave_one_whole_file() {
            let folder = Folder::new("concurrent");
            let (target, snapshots) = (folder.target(), (0..8).map(snapshot).collect::<Vec<_>>());
            save(&target, &snapshots[0]).unwrap();
            let processes: Vec<_> = (0..4).map(|number| Saver::start(&folder, number, 30, 0)).collect();
            thread::scope(|scope| {
                let threads: Vec<_> = snapshots[4..]
                    .iter()
                    .map(|bytes| scope.spawn(|| (0..30).for_each(|_| save(&target, bytes).unwrap())))
                    .collect();
                while !threads.iter().all(ScopedJoinHandle::is_finished) {
                    let found = fs::read(&target).unwrap();
                    assert!(snapshots.contains(&found), "{} bytes", found.len());
                }
            });
            processes.into_iter().for_each(Saver::finish);
            assert!(snapshots.contains(&fs::read(&target).unwrap()));
            assert_eq!(folder.names(), ["f.koel"]);
        }
    }
}
