//! The answer for people.

use super::tune;

#[test]
fn the_answer_for_people() {
    let run = tune("--items 1000000 --fpr 0.001 --deletes --copies 5");
    let golden = "\
1000000 items, a false-positive rate ε of at most 0.001.

filter                    size  bits/item        ε    load  delete  grow  static
--------------------------------------------------------------------------------
packed f=13 b=4 *      1.54 MB      12.31  9.52e-4  97.5 %     yes    no      no
single f=13 b=4        1.67 MB      13.33  9.52e-4  97.5 %     yes    no      no
single f=13 b=3        1.71 MB      13.68  6.96e-4  95.0 %     yes    no      no
single f=14 b=8        1.76 MB      14.06  9.72e-4  99.6 %     yes    no      no
--------------------------------------------------------------------------------
lower bound            1.25 MB       9.97  0.00100       -       -     -       -
quotient               1.60 MB      12.76  0.00100       -     yes   yes      no
d-left counting Bloom  2.83 MB      22.67  0.00100       -     yes    no      no
counting Bloom         7.19 MB      57.51  0.00100       -     yes    no      no

* The smallest: 1538472 bytes, 256412 buckets of 4 slots. Room for 1000006
  distinct items, or for 8 copies of one item if its two buckets have no others.
f: bits per fingerprint, b: slots per bucket.
11 other filters are no smaller: --all shows them.
Below the line: formulas of their authors, for large sets, at ε = 0.00100.

Left out:
- single b=1, 2: room for 5 copies of an item takes buckets of 3 slots or more.
- Bloom, blocked Bloom, Golomb-coded sequence, xor, binary fuse: cannot delete.

koel build IN -o OUT --capacity 1000000 --fpr 0.001

use koel::CuckooFilter;
let mut filter = CuckooFilter::builder()
    .capacity(1_000_000)
    .false_positive_rate(0.001)
    .build()?;
";
    assert_eq!(String::from_utf8_lossy(run.ok()), golden);
}

/// What is left out of the table is counted, and --all has it.
#[test]
fn all_filters_are_shown_on_request() {
    for options in ["--items 1M --fpr 0.1%", "--items 17 --fpr 0.1%", "--items 1000 --bytes 2k"] {
        let (short, long) = (tune(options).text(), tune(&format!("{options} --all")).text());
        let rows = |text: &str| text.lines().filter(|line| line.contains(" b=") && !line.starts_with(['-', 'f', '*'])).count();
        let (_, hidden) = short.split_once("slots per bucket.\n").expect("the notes");
        let (hidden, _) = hidden.split_once(" other filters are no ").unwrap_or_else(|| panic!("{short}"));
        assert_eq!(rows(&short) + hidden.parse::<usize>().expect("a number"), rows(&long), "{short}{long}");
        assert!((15..=17).contains(&rows(&long)) && !long.contains("--all"), "{long}");
        // What a builder chooses by itself is there.
        assert!(short.contains("packed f=") && short.lines().any(|line| line.starts_with("single f=") && line.contains(" b=4 ")));
    }
    // Each of the 17 tables has a reason of its own.
    let (short, long) = (tune("--items 1M --bytes 1k").text(), tune("--items 1M --bytes 1k --all").text());
    assert!(short.contains("\n- 13 further reasons: --all shows them.\n"), "{short}");
    assert!(!long.contains("--all") && long.matches("\n- ").count() == 17, "{long}");
}

/// Whatever the size: 80 columns. Only what is to be pasted may be longer.
#[test]
fn it_is_legible_at_every_size() {
    let wanted = ["--fpr 0.5", "--fpr 0.00123456789", "--fpr 1e-9", "--fpr 1e-12", "--bytes 100", "--bytes 2.5TiB"];
    for items in ["0", "1", "10", "1000", "1000000", "1000000000", "1000000000000", "1000000000000000"] {
        for wanted in wanted.into_iter().chain(["--fpr 0.1 --addressing power-of-two"]) {
            let run = tune(&format!("--items {items} {wanted}"));
            assert!(run.stderr.is_empty() && run.status <= 1, "{items} {wanted}: {}", run.stderr);
            let text = run.text();
            let (table, _) = text.split_once("\nkoel build ").unwrap_or((&text, ""));
            for line in table.lines() {
                assert!(line.chars().count() <= 80 && line.trim_end() == line, "{line}");
                assert!(!line.contains("NaN") && !line.contains("inf"), "{line}");
            }
            assert_eq!(text.contains("No filter meets these requirements."), run.status == 1);
        }
    }
}
