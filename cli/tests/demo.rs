//! `koel demo`, and the words that come with it.

use std::collections::HashSet;

use crate::{
    common::{Koel, facts},
    help::examples,
};

const WORDS: &str = include_str!("../data/words.txt");

#[test]
fn the_demo_shows_both_tables_and_a_hash_set() {
    let koel = Koel::new();
    let text = koel.shell(&examples(&koel, "demo").join("\n")).printed();
    assert!(text.ends_with("\nzebra\n"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // The table has a column per set and a row per fact. At least two blanks separate the cells.
    let cells = text.lines().map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>());
    let rows: Vec<_> = cells.filter(|cells| cells.len() == 4).collect();
    let column = |place: usize| rows.iter().map(|row| String::from(row[place])).collect::<Vec<_>>();
    let number = |cell: &str| cell.trim_end_matches(" %").parse::<f64>().unwrap_or_else(|_| panic!("{cell}: {text}"));
    let [labels, single, packed, set] = [0, 1, 2, 3].map(column);
    assert_eq!([&single[0], &packed[0], &set[0]], ["single table", "packed table", "HashSet *"]);
    assert_eq!(labels.iter().filter(|label| label.starts_with("ns ")).count(), 4);
    let [bytes, bits_per_item, measured, expected] = ["bytes", "bits per item", "false positives", "- expected"]
        .map(|label| labels.iter().position(|other| other == label).unwrap_or_else(|| panic!("no {label}: {text}")));
    assert!(number(&packed[bytes]) < number(&single[bytes]) && number(&single[bytes]) < number(&set[bytes]));
    assert!(number(&packed[bits_per_item]) < number(&single[bits_per_item]));
    for table in [&single, &packed] {
        // Two million samples of a rate of about 0.001: six standard errors are 15 %.
        assert!((number(&table[measured]) / number(&table[expected]) - 1.0).abs() < 0.15, "{text}");
        assert!(number(&table[expected]) <= 0.1, "{text}");
    }
    assert!([single, packed, set].iter().all(|row| row[expected + 1..].iter().all(|time| number(time) > 0.0)), "{text}");
    assert!(text.contains("The packed table holds 104334 words in "), "{text}");

    assert!(koel.read("words/words.txt") == WORDS.as_bytes());
    let words: HashSet<&str> = WORDS.lines().collect();
    assert_eq!((words.len(), WORDS.lines().count()), (104_334, 104_334));
    // Absent items are two words with a blank between them, so no word may have a blank.
    assert!(words.iter().all(|word| !word.is_empty() && !word.contains(' ')));
    for table in ["single", "packed"] {
        let filter = format!("words/{table}.koel");
        assert_eq!(facts(&koel, &filter)["table"], table);
        assert_eq!(facts(&koel, &filter)["items"], 104_334);
        assert_eq!(koel.run(&format!("query {filter} words/words.txt --absent")).status(1), b"");
    }
}
