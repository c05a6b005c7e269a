//! The list of goldens, written.

use crate::{
    golden::{Answers, Golden, Items, Step},
    growing::Growing,
};
use serde_json::{Value, json};

/// One entry of it.
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

/// One entry of the list of filters that grow.
pub(crate) fn growing_entry(golden: &Growing) -> String {
    let made = [
        ("file", json!(golden.file)),
        ("table", json!(golden.table.to_string())),
        ("bucket_size", json!(golden.bucket_size)),
        ("rate", json!(golden.rate)),
        ("capacity", json!(golden.capacity)),
        ("max_capacity", json!(golden.max_capacity)),
        ("partitions", json!(golden.partitions)),
        ("seed", json!(golden.seed)),
        ("items", items_to_json(golden.items)),
    ];
    let steps = [("steps", steps_to_json(&golden.steps)), ("shrink", json!(golden.shrink))];
    lines(&made, &steps, golden.answers.as_ref())
}

/// What it is on one line, then one line each.
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
    let (_, name) = Items::NAMES.iter().find(|(of_name, _)| *of_name == items).expect("one of five");
    json!(name)
}

fn steps_to_json(steps: &[Step]) -> Value {
    steps.iter().map(step_to_json).collect()
}

fn step_to_json(step: &Step) -> Value {
    match step {
        Step::Insert(items) => json!(["insert", items.start, items.end]),
        Step::Remove(items) => json!(["remove", items.start, items.end]),
        Step::Convert(dump, items) => json!(["convert", dump, items.start, items.end]),
    }
}
