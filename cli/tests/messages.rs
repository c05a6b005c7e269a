//! Errors of all subcommands that the tests of single subcommands do not provoke: each message names options of its subcommand, and
//! its remedy works. `common::messages` checks the messages of all other tests, too.

use std::ffi::OsString;

use crate::common::{Koel, data, messages, numbers, value_after};

/// Creates a folder with files that commands refuse, and some that they accept.
fn folder() -> Koel {
    let koel = Koel::with_filter("apple\nbanana\n");
    koel.write("list.txt", "apple\nplum\n");
    koel.write("short.txt", "1 a\n\n2 b\n");
    koel.write("many.txt", numbers(0..2000));
    koel.write("empty", "");
    koel.write("text", "no filter, but long enough to be read as one, and then refused as such");
    koel.feed(numbers(0..8), "build - -o full.koel --capacity 8").ok();
    koel.feed(numbers(0..100), "build - -o growing.koel --grow").ok();
    koel.feed(numbers(0..100), "build - -o hundred.koel --capacity 200").ok();
    koel.feed(numbers(100..250), "build - -o other.koel --capacity 200").ok();
    koel.feed("x\n", "build - -o metro.koel --grow --hasher metrohash64").ok();
    let mut damaged = koel.read("growing.koel");
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    koel.write("damaged.koel", &damaged);
    koel.write("cut.koel", &damaged[..middle]);
    koel.write("go.bin", data("go/packed_b4_f13_n2000_m0.bin"));
    koel.write("grown.chunks", data("redisbloom/rb_deleted.chunks"));
    koel.shell("mkfifo pipe; mkdir bad; echo {} > bad/load.json").ok();
    koel
}

/// The errors: arguments, and a part of the message. `READS` stands for each command that reads a filter, `CHANGES` for each that
/// changes one, `LISTS` for each that reads a list.
const ERRORS: &[(&str, &str)] = &[
    // Filters.
    ("READS no.koel", "no.koel: cannot be read: No such file"),
    ("READS empty", "is empty, and so is no filter; give a file that `koel build` wrote"),
    ("READS text", "neither a koel snapshot nor"),
    ("READS cut.koel", "cut.koel"),
    ("READS damaged.koel", "damaged.koel"),
    ("READS .", ".: is a folder"),
    ("CHANGES no.koel --item a", "no.koel: cannot be read: no such file; `koel build` creates one"),
    ("CHANGES text --item a", "nor a dump of RedisBloom; give a file that `koel build` wrote\n"),
    ("CHANGES text/f --item a", "text is a file, not a folder"),
    ("CHANGES /dev/stdout --item a", "give the name of a file that `koel build` wrote"),
    ("CHANGES /dev/stdin --item a", "give the name of a file that `koel build` wrote"),
    ("merge f.koel text -o new", "nor a dump of RedisBloom; give a file that `koel build` wrote\n"),
    ("CHANGES damaged.koel --item a", "damaged.koel"),
    ("CHANGES - --item a", "cannot be replaced by the changed filter"),
    ("CHANGES . --item a", "is a folder"),
    (
        "CHANGES pipe --item a",
        "is a named pipe, not a regular file, and is not replaced; give the name of a file that `koel build` wrote",
    ),
    ("CHANGES f.koel f.koel", "both the filter and the items"),
    ("CHANGES f.koel no.txt", "to pass an item itself, use --item"),
    ("CHANGES f.koel --key 2 --item a", "--item is an item itself; leave one of them out"),
    // Lists.
    ("LISTS no.txt", "no.txt: cannot be read: "),
    ("LISTS .", "is a folder"),
    ("LISTS short.txt --key 2 --short error", "give another --key or --delimiter, or --short skip"),
    ("LISTS short.txt --key 0", "'0' for '--key <N>': it takes the number of a field, 1 for the first one"),
    ("LISTS short.txt --key 1 --delimiter ab", "'ab' for '--delimiter <C>': it takes one character"),
    ("LISTS short.txt --short skip", "not provided:\n  --key <N>"),
    ("LISTS short.txt --delimiter ,", "not provided:\n  --key <N>"),
    ("LISTS short.txt --key 2 --short all", "possible values"),
    // Building.
    ("build short.txt --key 2 -o new", "line 2 of short.txt: has 0 fields"),
    ("build short.txt --key 2 --short pass -o new", "skip, error"),
    ("build many.txt -o new --fpr 1e-9", "or --bucket-size 2"),
    ("build many.txt -o new --fpr 1e-9 --table packed", "or --bucket-size 2 and no --table"),
    ("build many.txt -o new --fpr 1e-12", "with --bucket-size 1"),
    ("build many.txt -o new --grow --max-capacity 9999999999999999999", "--max-capacity"),
    ("build many.txt -o pipe", "redirect standard output: `-o - > pipe`"),
    // Adding.
    ("add full.koel many.txt", "build a new filter: `koel build --grow`, or `koel build --capacity N` with N above 8"),
    // Lines that are new.
    ("uniq no.txt --filter new", "no.txt: cannot be read: No such file"),
    ("uniq list.txt --filter -", "standard input: cannot be the filter, which is replaced; give a file, or leave --filter out"),
    ("uniq list.txt --filter .", ".: is a folder"),
    ("uniq list.txt --filter pipe", "leave --filter out to remember nothing for the next run"),
    ("uniq list.txt --filter text", "; give a file that `koel uniq` or `koel build` wrote, or the name of a new one\n"),
    ("uniq list.txt --filter text/f", "text is a file, not a folder; give a name in a folder"),
    ("uniq list.txt --filter /dev/stdout", "leave --filter out to remember nothing for the next run"),
    ("uniq list.txt --filter /dev/stdin", "leave --filter out to remember nothing for the next run"),
    ("uniq list.txt --filter go.bin", "`koel convert --to koel` makes a snapshot of it"),
    ("uniq list.txt --filter grown.chunks", "is a dump of RedisBloom"),
    ("uniq list.txt --filter damaged.koel", "damaged.koel"),
    ("uniq list.txt --filter list.txt", "list.txt"),
    ("uniq f.koel --filter f.koel", "f.koel: cannot be both the list and the filter"),
    ("uniq f.koel --filter f.koel --binary", "both the list and the filter"),
    ("uniq list.txt --filter no/new", "there is no folder no; make it first"),
    ("uniq list.txt --filter full.koel --max-bytes 1M", "full.koel: has a fixed size and rate, and takes neither"),
    ("uniq list.txt --filter full.koel --max-bytes 1M", "leave them out"),
    ("uniq list.txt --filter growing.koel --fpr 0.5", "--fpr: 0.5 given, but growing.koel was built for 0.001"),
    ("uniq list.txt --filter growing.koel --fpr 0.5", "leave --fpr out, or give another file"),
    ("uniq list.txt --filter new --fpr 1e-12", "a growing filter keeps rates from"),
    ("uniq list.txt --filter new --fpr 2", "--fpr: 2 given, but a growing filter keeps rates from 1.89e-9 to below 1"),
    ("uniq many.txt --filter full.koel --count-only", "name another file with --filter"),
    // Queries.
    ("query f.koel --key 2 --item a", "koel: --key: takes a field of each line of a list, and --item"),
    ("query f.koel --key 2 --item a", "--item is an item itself; leave one of them out"),
    // Merging.
    ("merge f.koel hundred.koel -o new", "build both with the same `koel build --capacity`"),
    ("merge growing.koel metro.koel -o new", "`koel build --hasher`"),
    ("merge hundred.koel go.bin -o new", "`koel convert --to koel` makes a snapshot of it"),
    ("merge hundred.koel other.koel -o pipe", "redirect standard output: `-o - > pipe`"),
    // Converting.
    ("convert f.koel -o new --to go", "`koel build --addressing power-of-two"),
    ("convert f.koel -o new --to redisbloom", "`koel build --table single"),
    ("convert f.koel -o pipe --to koel", "redirect standard output: `-o - > pipe`"),
    // Tuning.
    ("tune --items 10 --fpr 0.1 --headroom 50", "50%"),
    ("tune --items 18446744073709551615 --headroom 50% --fpr 0.1", "give fewer items"),
    // The rest.
    ("info - -", "standard input"),
    ("info no.koel f.koel", "No such file"),
    ("demo --keep list.txt", "cannot be created as a folder"),
    ("experiment compare bad bad", "bad/load.json: not a record of koel, or a damaged one; give a folder"),
];

const READS: [&str; 6] = [
    "info {}",
    "verify {}",
    "query {} --item a --verify",
    "merge {} f.koel -o new",
    "merge f.koel {} -o new",
    "convert {} -o new --to koel",
];
const CHANGES: [&str; 2] = ["add {}", "remove {}"];
pub(crate) const LISTS: [&str; 5] =
    ["build {} -o new", "add f.koel {}", "remove f.koel {}", "uniq --filter seen {}", "tune --fpr 0.1 --keys {}"];

#[test]
#[cfg(target_os = "linux")]
fn every_error_has_a_remedy_for_its_command() {
    let koel = folder();
    let mut faults = Vec::new();
    for &(case, part) in ERRORS {
        let commands = match case.split_once(' ') {
            Some(("READS", rest)) => READS.map(|command| command.replace("{}", rest)).to_vec(),
            Some(("CHANGES", rest)) => CHANGES.map(|command| command.replace("{}", rest)).to_vec(),
            Some(("LISTS", rest)) => LISTS.map(|command| command.replace("{}", rest)).to_vec(),
            _ => vec![String::from(case)],
        };
        for command in commands {
            // `run` checks the words of the message.
            let run = koel.run(&command);
            let is_good =
                run.status == 2 && run.stderr.starts_with("koel: ") && run.stderr.contains(part) && !koel.path("new").exists();
            faults.extend((!is_good).then(|| format!("{command}: {}, no \"{part}\" in: {}", run.status, run.stderr)));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_check_of_messages_finds_mistakes() {
    let fault = |args: &str, message| messages::fault(&args.split(' ').map(OsString::from).collect::<Vec<_>>(), message);
    for (args, message) in [
        ("uniq --filter f", "koel: give a smaller --capacity"),
        ("uniq --filter f", "koel: redirect standard output: `-o - > f`"),
        ("add f", "koel: `koel build --growing` builds one"),
        ("add f", "koel: `koel build` builds one, with --grow"),
        ("merge f", "koel: give a higher max_bytes"),
        ("merge f", "koel: use an ElasticFilter"),
        ("build f", "koel: false-positive rate: 1 given"),
    ] {
        assert!(fault(args, message).is_some(), "{args}: {message}");
    }
    for (args, message) in [
        ("uniq --filter max_bytes", "koel: max_bytes: give another --filter, or --max-bytes"),
        ("add f --no-such", "koel: unexpected argument '--no-such' found"),
        ("add f", "koel: `koel build --grow` builds one; `gzip -dc f` helps; -h or --help"),
        ("experiment sweep --f 9", "koel: give another --f"),
        ("build f", "koel: give -o"),
    ] {
        assert_eq!(fault(args, message), None, "{args}: {message}");
    }
}

/// Each remedy for a low rate is followed.
#[test]
fn remedies_for_low_rates_work() {
    let koel = Koel::new();
    koel.write("list.txt", numbers(0..500));
    let mut bucket_sizes = Vec::new();
    for rate in ["1.7e-9", "1e-9", "9.5e-10", "5e-10", "4.6e-10", "1e-10", "1e-15"] {
        for options in
            ["", "--table packed", "--table single", "--capacity 1000", "--addressing power-of-two", "--bucket-size 3", "--grow"]
        {
            let run = koel.run(&format!("build list.txt -o new {options} --fpr {rate}"));
            if options == "--bucket-size 3" && run.status == 0 {
                continue;
            }
            if options == "--grow" {
                run.error(&["koel: --fpr: ", "a growing filter keeps rates from"]);
                let lowest = value_after(&run.stderr, "keeps rates from ");
                koel.run(&format!("build list.txt -o new --grow --fpr {lowest}")).ok();
                continue;
            }
            run.error(&["koel: --fpr: ", "slots per bucket"]);
            assert!(!run.stderr.contains("smaller --capacity"), "{}", run.stderr);
            let options = if run.stderr.contains("no --table") { "" } else { options };
            let (others, _) = options.split_once("--bucket-size").unwrap_or((options, ""));
            let lowest = value_after(&run.stderr, "keeps rates from ");
            koel.run(&format!("build list.txt -o new {options} --fpr {lowest}")).ok();
            let rate = if run.stderr.contains("or one from ") { value_after(&run.stderr, "or one from ") } else { rate };
            if run.stderr.contains("--bucket-size ") {
                let size = value_after(&run.stderr, "--bucket-size ");
                koel.run(&format!("build list.txt -o new {others} --fpr {rate} --bucket-size {size}")).ok();
                bucket_sizes.push(size.to_owned());
            } else {
                assert_eq!(options, "--bucket-size 1", "{}", run.stderr);
            }
        }
    }
    bucket_sizes.sort();
    bucket_sizes.dedup();
    assert_eq!(bucket_sizes, ["1", "2", "3"]);
    // Small buckets keep lower rates with a given capacity.
    let refused = koel.run("build list.txt -o new --fpr 2e-10 --bucket-size 1");
    refused.error(&["with 1 slot per bucket keeps rates from", " if no more items are distinct"]);
    let capacity = value_after(&refused.stderr, "or --capacity ");
    assert_eq!(capacity, "1000");
    koel.run(&format!("build list.txt -o new --fpr 2e-10 --bucket-size 1 --capacity {capacity}")).ok();
    let tuned = koel.run("tune --items 1000 --fpr 1e-9 --bucket-size 4").text();
    assert!(tuned.contains("--fpr: 1e-9 given, but filters with 4 slots per bucket"), "{tuned}");
}

#[test]
fn remedies_for_full_filters_work() {
    let koel = folder();
    let full = koel.run("add full.koel many.txt");
    full.error(&["`koel build --grow`"]);
    let least: u64 = value_after(&full.stderr, "with N above ").parse().expect("a number");
    assert_eq!(least, 8);
    koel.feed(numbers(0..8), "build - -o new.koel --grow").ok();
    koel.run("add new.koel many.txt --unique").ok();
    // The lines that the full filter has no room for go to a new one.
    let first = koel.run("uniq many.txt --filter full.koel");
    assert!(first.stderr.ends_with("; the lines before it are remembered\n"), "{}", first.stderr);
    koel.run("uniq many.txt --filter another.koel").ok();
    // A limit can be raised.
    let first = koel.feed(numbers(0..100_000), "uniq --filter small.koel --max-bytes 300kB");
    assert!(first.stderr.contains("bytes, and --max-bytes is 300000; give a higher --max-bytes; the lines"), "{}", first.stderr);
    let second = koel.feed(numbers(0..100_000), "uniq --filter small.koel --max-bytes 10MB");
    assert!([first.stdout, second.ok().to_vec()].concat() == numbers(0..100_000).as_bytes());
    // The message has a capacity that is large enough for the merge.
    let merged = koel.run("merge hundred.koel other.koel -o new");
    let needed = value_after(&merged.stderr, "build --capacity ");
    koel.feed(numbers(0..100), &format!("build - -o hundred.koel --capacity {needed}")).ok();
    koel.feed(numbers(100..250), &format!("build - -o other.koel --capacity {needed}")).ok();
    koel.run("merge hundred.koel other.koel -o both.koel").ok();
}

/// No number of items is too large for a plan.
#[test]
fn a_filter_grows_far_beyond_its_plan() {
    let koel = Koel::new();
    koel.feed(numbers(0..100_000), "build - -o f.koel --grow --max-capacity 1 --fpr 1e-7").ok();
    koel.feed(numbers(100_000..200_000), "add f.koel").ok();
    assert_eq!(koel.feed(numbers(0..200_000), "query f.koel --count").ok(), b"200000\n");
    assert_eq!(koel.feed(numbers(200_000..300_000), "uniq --filter f.koel --count-only").ok(), b"100000\n");
}
