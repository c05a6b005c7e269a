//! The columns of the table.

use crate::column::{Column, Role};

pub(super) fn columns() -> Vec<Column> {
    let mut columns = vec![
        Column::key("table", "", "packed or single"),
        Column::key("b", "slots", "slots per bucket"),
        Column::key("f", "bits", "length of a fingerprint"),
        Column::key("load", "", "load that was asked for, 0 to 1; `inserted` divided by `slots` is the exact one"),
        Column::key("items", "items", "items to insert"),
        Column::key("measure", "", "what was measured, of space, fpr, load, walk and speed"),
        Column::key("quick", "", "true: fewer probes, tables and rounds"),
        Column::new("slots", "slots", "slots of the table").compared(Role::Exact),
        Column::new("inserted", "items", "items in the filter: fewer if one was refused").compared(Role::Exact),
        Column::new("bytes", "bytes", "size of the table").compared(Role::Exact),
        Column::new("bits_per_item", "bits", "bits of the table, divided by items").compared(Role::Exact),
        Column::new("probes", "probes", "absent items that were looked up").compared(Role::Exact),
        Column::new("found", "probes", "those that were found: false positives"),
        Column::new("predicted_rate", "", "false-positive rate by the formula, 0 to 1").compared(Role::Exact),
        Column::new("rate", "", "measured false-positive rate, 0 to 1").compared(Role::estimate("rate_low", "rate_high")),
        Column::new("rate_low", "", "lower end of its 99 % confidence interval"),
        Column::new("rate_high", "", "upper end of its 99 % confidence interval"),
        Column::new("tables", "tables", "tables of this size that were filled until they refused an item").compared(Role::Exact),
        Column::new("first_refusal", "", "mean load at the first refusal, 0 to 1").compared(Role::mean(
            "first_refusal_min",
            "first_refusal_max",
            "tables",
        )),
        Column::new("first_refusal_min", "", "least load at the first refusal"),
        Column::new("first_refusal_max", "", "greatest load at the first refusal"),
        Column::new("insertions", "insertions", "insertions over the last per cent before the load").compared(Role::Exact),
        Column::new("evictions", "evictions", "mean evictions of one of them")
            .compared(Role::estimate("evictions_low", "evictions_high")),
        Column::new("evictions_low", "evictions", "lower end of its 99 % confidence interval"),
        Column::new("evictions_high", "evictions", "upper end of its 99 % confidence interval"),
        Column::new("evictions_p50", "evictions", "half of these insertions took at most so many evictions"),
        Column::new("evictions_p99", "evictions", "99 % of these insertions took at most so many evictions"),
        Column::new("evictions_max", "evictions", "most evictions of one of these insertions"),
        Column::new("rounds", "rounds", "how many rounds of times count"),
    ];
    columns.extend([
        Column::new("find_absent_ns", "ns", "time to look up a key that is absent: median of all rounds").compared(Role::median(
            "find_absent_ns_q1",
            "find_absent_ns_q3",
            "rounds",
        )),
        Column::new("find_absent_ns_q1", "ns", "its lower quartile"),
        Column::new("find_absent_ns_q3", "ns", "its upper quartile"),
        Column::new("find_present_ns", "ns", "time to look up a key that is present: median of all rounds")
            .compared(Role::median("find_present_ns_q1", "find_present_ns_q3", "rounds")),
        Column::new("find_present_ns_q1", "ns", "its lower quartile"),
        Column::new("find_present_ns_q3", "ns", "its upper quartile"),
        Column::new("insert_ns", "ns", "time to insert a key, over the last five per cent before the load: median of all rounds")
            .compared(Role::median("insert_ns_q1", "insert_ns_q3", "rounds")),
        Column::new("insert_ns_q1", "ns", "its lower quartile"),
        Column::new("insert_ns_q3", "ns", "its upper quartile"),
        Column::new("remove_ns", "ns", "time to remove one of these keys: median of all rounds").compared(Role::median(
            "remove_ns_q1",
            "remove_ns_q3",
            "rounds",
        )),
        Column::new("remove_ns_q1", "ns", "its lower quartile"),
        Column::new("remove_ns_q3", "ns", "its upper quartile"),
        Column::new("disturbed", "", "true if other work on the processor disturbed too many rounds"),
    ]);
    columns
}
