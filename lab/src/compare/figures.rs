//! The figures of a record, by what they are of.

use std::collections::BTreeMap;

use serde_json::Value;

use super::noise::{Sample, Spread};
use crate::experiment::{Column, Fields, Measured, Role};

/// What a figure is of: the row, its place among the rows with the same key, and the column, by its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Of {
    pub(super) row: String,
    place: usize,
    column: usize,
    pub(super) name: String,
}

/// The figures of a case.
pub(super) type Figures = BTreeMap<Of, Figure>;

/// A figure: one value, or those of all repetitions of a case.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    pub(super) unit: String,
    pub(super) role: Role,
    samples: Vec<Sample>,
}

impl Figure {
    /// Whether it is a time.
    pub(super) fn is_time(&self) -> bool {
        matches!(self.role, Role::Time | Role::Median { .. })
    }

    /// The mean of all repetitions. Times have the spread that shows in them; all else is the same in each.
    pub(super) fn sample(&self) -> Sample {
        let count = self.samples.len() as f64;
        let value = self.samples.iter().map(|sample| sample.value).sum::<f64>() / count;
        let spread = match (&self.role, &self.samples[..]) {
            (Role::Time, samples) => {
                let square = samples.iter().map(|sample| (sample.value - value).powi(2)).sum::<f64>();
                Spread::of_mean((square / (count - 1.0).max(1.0)).sqrt(), count)
            }
            (_, [first, ..]) => first.spread,
            (_, []) => Spread::Unknown,
        };
        Sample { value, spread }
    }
}

/// The figures of all cases, by the case's JSON without the number of its repetition, in the order of the record.
pub(super) fn figures(columns: &[Column], measured: &[Measured]) -> Vec<(String, Figures)> {
    let mut cases: Vec<(String, Figures)> = Vec::new();
    let mut places = BTreeMap::new();
    for Measured { case, rows } in measured {
        let identity: Fields = case.iter().filter(|(name, _)| *role(columns, name, None) != Role::Round).map(owned).collect();
        let identity = Value::Object(identity).to_string();
        let place = *places.entry(identity.clone()).or_insert_with(|| {
            cases.push((identity, Figures::new()));
            cases.len() - 1
        });
        let mut seen = BTreeMap::<String, usize>::new();
        for row in rows {
            let key: Fields =
                row.iter().filter(|(name, value)| *role(columns, name, Some(value)) == Role::Key).map(owned).collect();
            let key = if key.is_empty() { String::new() } else { Value::Object(key).to_string() };
            let number = seen.entry(key.clone()).or_default();
            for (column, (name, value)) in row.iter().enumerate() {
                let role = role(columns, name, Some(value));
                let Some(spread) = value.as_f64().and_then(|value| spread(role, value, case, row)) else { continue };
                let of = Of { row: key.clone(), place: *number, column, name: name.clone() };
                let unit = columns.iter().find(|column| column.name == *name).map_or("", |column| &column.unit);
                let new = || Figure { unit: unit.to_owned(), role: role.clone(), samples: Vec::new() };
                let sample = Sample { value: value.as_f64().unwrap_or_default(), spread };
                cases[place].1.entry(of).or_insert_with(new).samples.push(sample);
            }
            *number += 1;
        }
    }
    cases
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// The role of a field, of a row if it has a value. A field that is not described is a key if it is one of the case or not a number.
fn role<'a>(columns: &'a [Column], name: &str, value: Option<&Value>) -> &'a Role {
    let described = columns.iter().find(|column| column.name == name).map(|column| &column.role);
    described.unwrap_or(if value.is_some_and(|value| value.is_number() || value.is_null()) { &Role::Exact } else { &Role::Key })
}

/// The column that marks rows whose times other work on the processor disturbed.
const DISTURBED: &str = "disturbed";

/// The spread of a value. `None` if it is not compared.
fn spread(role: &Role, value: f64, case: &Fields, row: &Fields) -> Option<Spread> {
    let field = |name: &str| row.get(name).or_else(|| case.get(name)).and_then(Value::as_f64);
    let known = |error| Spread::Error { error, freedom: None };
    Some(match role {
        Role::Key | Role::Round | Role::Detail => return None,
        Role::Exact => Spread::Exact,
        Role::Count => known(value.max(1.0).sqrt()),
        // One event more or less is always possible.
        Role::Share { of } => {
            field(of).map_or(Spread::Unknown, |events| known(((value * (1.0 - value) + 1.0 / events) / events).sqrt()))
        }
        Role::Estimate { low, high } => field(low)
            .zip(field(high))
            .map_or(Spread::Unknown, |(low, high)| known((high - low) / 2.0 / crate::statistics::DEVIATIONS)),
        Role::Mean { least, most, of } => match (field(least), field(most), field(of)) {
            (Some(least), Some(most), Some(of)) => Spread::of_range(least, most, of),
            _ => Spread::Unknown,
        },
        // Too few of its rounds were undisturbed: their spread does not say how far off they are.
        Role::Median { .. } if row.get(DISTURBED).and_then(Value::as_bool) == Some(true) => Spread::Unknown,
        Role::Median { low, high, of } => match (field(low), field(high), field(of)) {
            (Some(low), Some(high), Some(of)) => Spread::of_median(low, high, of),
            _ => Spread::Unknown,
        },
        // It shows in the repetitions.
        Role::Time => Spread::Unknown,
    })
}
