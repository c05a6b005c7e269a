//! The columns of the table.

use crate::{
    column::{Column, Role},
    experiments::times,
};

pub(super) fn columns() -> Vec<Column> {
    let mut columns = vec![
        Column::key("table", "", "packed or single"),
        Column::key("b", "slots", "slots per bucket"),
        Column::key("f", "bits", "length of a fingerprint"),
        Column::key("load", "", "load that was asked for, 0 to 1; `inserted` divided by `slots` is the exact one"),
        Column::key("items", "items", "items to insert"),
        Column::key("measure", "", "what was measured, of space, fpr, load, walk and speed"),
        Column::key("quick", "", "true: fewer probes, tables, rounds, and timed keys"),
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
    ];
    columns.extend(times::columns());
    columns
}
