//! The list of goldens, written.

use crate::golden::{Answers, Golden, Items, Step};
use serde_json::{Value, json};

/// One entry of it.
pub(crate) fn entry(golden: &Golden) -> String {
    let (_, items) = Items::NAMES.iter().find(|(items, _)| *items == golden.items).expect("one of four");
    let steps: Vec<Value> = golden.steps.iter().map(step_to_json).collect();
    let mut fields = vec![
        ("file", json!(golden.file)),
        ("table", json!(golden.table.to_string())),
        ("f", json!(golden.f)),
        ("b", json!(golden.b)),
        ("addressing", json!(golden.addressing.to_string())),
        ("buckets", json!(golden.buckets)),
        ("hasher", json!(golden.hasher.to_string())),
        ("seed", json!(golden.seed)),
        ("items", json!(items)),
        ("steps", json!(steps)),
    ];
    if let Some(Answers { holds, found }) = &golden.answers {
        let holds: Vec<Value> = holds.iter().map(|(run, copies)| json!([run.start, run.end, copies])).collect();
        fields.extend([("holds", json!(holds)), ("found", json!(found))]);
    }
    // What it is on one line, then one line each.
    let (made, answers) = fields.split_at(9);
    let line = |fields: &[(&str, Value)]| -> String {
        fields.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect::<Vec<_>>().join(", ")
    };
    let lines: Vec<String> = [made].into_iter().chain(answers.chunks(1)).map(line).collect();
    format!("{{ {} }}", lines.join(",\n    "))
}

fn step_to_json(step: &Step) -> Value {
    match step {
        Step::Insert(items) => json!(["insert", items.start, items.end]),
        Step::Remove(items) => json!(["remove", items.start, items.end]),
    }
}
