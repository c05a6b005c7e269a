//! Mistakes in the options of `koel tune`.

use crate::common::Koel;

#[test]
fn mistakes_are_named() {
    let koel = Koel::new();
    let cases: [(&str, &[&str]); 29] = [
        ("", &["--items <N[..M]>", "--fpr <E>|--bytes <BYTES>"]),
        ("--items 5", &["--fpr <E>|--bytes <BYTES>", "not provided"]),
        ("--fpr 0.1", &["--items <N[..M]>", "not provided"]),
        ("--items -1 --fpr 0.1", &["--items", "'-1'", "whole number from 0"]),
        ("--items 1.5 --fpr 0.1", &["--items", "'1.5'", "not a whole number", "1 and 2"]),
        ("--items 10..5 --fpr 0.1", &["--items", "'10..5'", "from 10 down to 5", "give 5..10"]),
        ("--items 5.. --fpr 0.1", &["--items", "'5..'", "whole number from 0"]),
        ("--items 5..10 --bytes 100", &["--items: 5..10 given without a rate", "give --fpr"]),
        ("--items 5..10 --fpr 0", &["--fpr", "0 given", "between 0 and 0.5", "nearest"]),
        ("--items 5 --fpr 0.1 --headroom -5", &["--headroom", "'-5'", "such as 50%"]),
        ("--items 5 --fpr 0.1 --headroom half", &["--headroom", "'half'", "such as 50%"]),
        ("--items 5 --fpr 0.1 --headroom 1/0", &["--headroom", "'1/0'", "such as 50%"]),
        ("--items 5 --fpr 2", &["--fpr", "2 given", "more than 0.5", "most absent items", "nearest that works is 0.5", "bytes"]),
        ("--items 5 --fpr 0", &["--fpr", "0 given", "between 0 and 0.5", "nearest"]),
        ("--items 5 --fpr -0.5 --table packed", &["--fpr", "-0.5 given", "between 0 and 0.5", "nearest"]),
        ("--items 5 --fpr NaN", &["--fpr", "NaN given", "between 0 and 0.5", "nearest"]),
        ("--items 5 --fpr few", &["--fpr", "'few'", "between 0 and 1", "0.001"]),
        ("--items 5 --bytes 1.5", &["--bytes", "'1.5'", "64KiB", "1.5MB"]),
        ("--items 5 --bytes -5", &["--bytes", "'-5'", "64KiB", "1.5MB"]),
        ("--items 5 --bytes 3XB", &["--bytes", "'3XB'", "kB to TB", "KiB to TiB"]),
        ("--items 5 --bytes 99999999TB", &["--bytes", "'99999999TB'", &usize::MAX.to_string()]),
        ("--items 5 --fpr 0.1 --bucket-size 0", &["--bucket-size", "0 given", "1 to 16", "nearest that works is 1"]),
        ("--items 5 --bytes 90 --bucket-size 17", &["--bucket-size", "17 given", "1 to 16", "nearest that works is 16"]),
        ("--items 5 --fpr 0.1 --bucket-size 8 --table packed", &["--bucket-size", "8 given", "takes 4"]),
        ("--items 5 --fpr 0.1 --copies 0", &["--copies", "'0'", "from 1 to 32"]),
        ("--items 5 --fpr 0.1 --copies 33", &["--copies", "'33'", "from 1 to 32", "16 slots"]),
        (
            "--items 5 --fpr 0.1 --copies 7 --bucket-size 3",
            &["--copies: 7 given", "room for 6", "works is 6", "--bucket-size out"],
        ),
        ("--items 5 --fpr 0.1 --copies 9 --table packed", &["--copies: 9 given", "room for 8", "works is 8", "--table out"]),
        ("--items 5 --fpr 0.1 --table cuckoo", &["--table", "'cuckoo'", "single, packed"]),
    ];
    for (options, parts) in cases {
        koel.run(["tune"].into_iter().chain(options.split_whitespace())).error(parts);
    }
    assert!(koel.names().is_empty());
}
