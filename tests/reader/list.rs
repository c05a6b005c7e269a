//! Formats the lists of golden snapshots.

use crate::{
    golden::{Answers, Golden, Items, Step},
    growing::Growing,
};
use serde_json::{Value, json};

/// Formats an entry of a fixed filter.
pub(crate) fn entry(golden: &Golden) -> String {
    let made = [
        ("file", json!(golden.file)),
        ("table", json!(golden.table.to_string())),
        ("f", json!(golden.f)),
        ("b", json!(golden.b)),
        ("addressing", json!(golden.addressing.to_string())),
        ("buckets", json!(golden.buckets)),
        ("hasher", json!(golden.hasher.to_string())),
        ("seed", json!(golden.seed)),
        ("items", items_to_json(golden.items)),
    ];
    lines(&made, &[("steps", steps_to_json(&golden.steps))], golden.answers.as_ref())
}

/// Formats an entry of a growing filter.
pub(crate) fn growing_entry(golden: &Growing) -> String {
    let made = [
        ("file", json!(golden.file)),
        ("rate", json!(golden.rate)),
        ("capacity", json!(golden.capacity)),
        ("max_capacity", json!(golden.max_capacity)),
        ("partitions", json!(golden.partitions)),
        ("seed", json!(golden.seed)),
        ("items", items_to_json(golden.items)),
    ];
    let mut others = vec![("steps", steps_to_json(&golden.steps)), ("shrink", json!(golden.shrink))];
    if !golden.hashes.is_empty() {
        let hashes: Vec<String> = golden.hashes.iter().map(u64::to_string).collect();
        others.insert(0, ("hashes", json!(hashes)));
    }
    lines(&made, &others, golden.answers.as_ref())
}

/// Formats an entry: `made` on one line, and each other field on its own line.
fn lines(made: &[(&str, Value)], others: &[(&str, Value)], answers: Option<&Answers>) -> String {
    let mut others = others.to_vec();
    if let Some(Answers { holds, found }) = answers {
        let holds: Vec<Value> = holds.iter().map(|(run, copies)| json!([run.start, run.end, copies])).collect();
        others.extend([("holds", json!(holds)), ("found", json!(found))]);
    }
    let line = |fields: &[(&str, Value)]| -> String {
        fields.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect::<Vec<_>>().join(", ")
    };
    let lines: Vec<String> = [made].into_iter().chain(others.chunks(1)).map(line).collect();
    format!("{{ {} }}", lines.join(",\n    "))
}

fn items_to_json(items: Items) -> Value {
    let (_, name) = Items::NAMES.iter().find(|(named, _)| *named == items).expect("a known kind");
    json!(name)
}

fn steps_to_json(steps: &[Step]) -> Value {
    steps.iter().map(step_to_json).collect()
}

fn step_to_json(step: &Step) -> Value {
    match step {
        Step::Insert(items) => json!(["insert", items.start, items.end]),
        Step::Copies(items, number) => json!(["copies", items.start, items.end, number]),
        Step::Remove(items) => json!(["remove", items.start, items.end]),
        Step::Convert(dump, items) => json!(["convert", dump, items.start, items.end]),
    }
}
