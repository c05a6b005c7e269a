//! Estimates the times of a filter of any shape and size from the results.

use std::path::Path;

use anyhow::bail;
use koel::TableKind;

use super::{Case, NAME, Row};
use crate::{Machine, Measured, experiments::times::Operation, record::ResultFiles};

/// The times of filters on the machine that measured them: the results of the experiment `speed`.
#[derive(Clone, Debug)]
pub struct SpeedTable {
    machine: Machine,
    rows: Vec<Row>,
}

/// The median times of a row, in the order of [`Operation::ALL`].
type Medians = [f64; Operation::ALL.len()];

/// Nanoseconds per key, including hashing, one key at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speeds {
    /// The time to look up an absent key.
    pub find_absent: f64,
    /// The time to look up a present key.
    pub find_present: f64,
}

impl SpeedTable {
    /// Reads the results in a folder. Returns `None` if there are none.
    ///
    /// # Errors
    /// If the record cannot be read, is not from this experiment, or lacks times because an earlier version measured fewer operations.
    pub fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let files = ResultFiles::new(folder, NAME);
        let Some(record) = files.read()? else { return Ok(None) };
        let measured: Vec<Measured<Case, Row>> = files.typed(&record)?;
        let rows: Vec<_> = measured.into_iter().flat_map(|measured| measured.rows).collect();
        if rows.iter().any(|row| row.times.medians().is_none()) {
            bail!("{}: from an earlier version, which measured fewer operations", files.json().display());
        }
        Ok((!rows.is_empty()).then_some(Self { machine: record.run.machine, rows }))
    }

    /// Returns the machine that measured.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Returns the number of filters whose times other work on the processor disturbed, and the number of all filters.
    #[must_use]
    pub fn disturbed(&self) -> (usize, usize) {
        (self.rows.iter().filter(|row| row.times.are_disturbed()).count(), self.rows.len())
    }

    /// Returns the size in bytes of the largest measured table.
    #[must_use]
    pub fn most_bytes(&self) -> u64 {
        self.rows.iter().map(|row| row.bytes).max().unwrap_or(0)
    }

    /// Estimates the times of a table of this many bytes, with buckets of this many slots. Between the measured sizes, times
    /// are linear in the logarithm of the size; between the measured bucket sizes, they are linear in the bucket size. Beyond
    /// the largest size, they continue to rise as they do between the two largest. Below the smallest size, and beyond the measured
    /// bucket sizes, they are those of the nearest one. Returns `None` if no table of this kind was measured.
    #[must_use]
    pub fn at(&self, table: TableKind, bucket_size: u32, bytes: f64) -> Option<Speeds> {
        let mut shapes: Vec<_> = self.rows.iter().filter(|row| row.table == table).map(|row| row.b).collect();
        shapes.sort_unstable();
        shapes.dedup();
        let below = shapes.iter().copied().rev().find(|&b| b <= bucket_size);
        let above = shapes.iter().copied().find(|&b| b >= bucket_size);
        let (below, above) = (below.or(above)?, above.or(below)?);
        let share = if below == above { 0.0 } else { f64::from(bucket_size - below) / f64::from(above - below) };
        let [low, high] = [below, above].map(|b| self.times_of_shape(table, b, bytes));
        let [find_absent, find_present, ..] = between(&low?, &high?, share);
        Some(Speeds { find_absent, find_present })
    }

    /// Estimates the times of a measured shape at this size.
    fn times_of_shape(&self, table: TableKind, b: u32, bytes: f64) -> Option<Medians> {
        let mut rows: Vec<_> = self.rows.iter().filter(|row| (row.table, row.b) == (table, b)).collect();
        rows.sort_by_key(|row| row.bytes);
        let larger = rows.iter().position(|row| row.bytes as f64 >= bytes);
        let (from, to) = match larger {
            None => (rows.len().checked_sub(2), rows.len().checked_sub(1)?),
            Some(larger) => (larger.checked_sub(1), larger),
        };
        let (from, to) = (rows[from.unwrap_or(to)], rows[to]);
        let (low, high) = (from.times.medians()?, to.times.medians()?);
        let log = |row: &Row| (row.bytes as f64).ln();
        let share = if from.bytes == to.bytes { 1.0 } else { (bytes.ln() - log(from)) / (log(to) - log(from)) };
        let times = between(&low, &high, share);
        // If a time falls between the two largest sizes, it does so by chance, and is not extrapolated.
        Some(if larger.is_none() { std::array::from_fn(|n| times[n].max(high[n])) } else { times })
    }
}

/// Interpolates between two lists of times, or extrapolates if `share` is not between 0 and 1.
fn between(from: &Medians, to: &Medians, share: f64) -> Medians {
    std::array::from_fn(|n| from[n] + share * (to[n] - from[n]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a table of rows with these times to look up an absent key. Other times are multiples of these.
    fn speed_table(rows: &[(&str, u32, u64, f64)]) -> SpeedTable {
        let row = |&(table, b, bytes, ns): &(&str, u32, u64, f64)| {
            let mut row = serde_json::json!({ "table": table, "b": b, "f": 12, "items": 1, "bytes": bytes, "rounds": 1 });
            for (operation, median) in Operation::ALL.into_iter().zip((1..).map(|n| f64::from(n) * ns)) {
                for (column, time) in operation.columns().into_iter().zip([median, ns, median + ns]) {
                    row[column] = time.into();
                }
            }
            serde_json::from_value(row).expect("a row")
        };
        SpeedTable { machine: Machine::current(), rows: rows.iter().map(row).collect() }
    }

    #[test]
    fn times_are_interpolated_and_extrapolated() {
        let table = speed_table(&[
            ("packed", 4, 1 << 14, 10.0),
            ("packed", 4, 1 << 16, 20.0),
            ("single", 2, 1 << 14, 6.0),
            ("single", 4, 1 << 14, 8.0),
            ("single", 4, 1 << 16, 10.0),
        ]);
        let absent = |kind, b, bytes: f64| table.at(kind, b, bytes).expect("it was measured").find_absent;
        let [single, packed] = [TableKind::Single, TableKind::Packed];
        // The sizes are the measured ones, one between them, and one beyond each end.
        let by_size = [1000.0, 16_384.0, 32_768.0, 65_536.0, 262_144.0].map(|bytes| absent(packed, 4, bytes));
        assert!(by_size.iter().zip([10.0, 10.0, 15.0, 20.0, 30.0]).all(|(one, other)| (one - other).abs() < 1e-9), "{by_size:?}");
        let by_bucket = [1, 2, 3, 4, 16].map(|b| absent(single, b, 16_384.0));
        assert_eq!(by_bucket.map(f64::to_bits), [6.0, 6.0, 7.0, 8.0, 8.0].map(f64::to_bits));
        let all = table.at(packed, 4, 16_384.0).expect("it was measured");
        assert_eq!(all, Speeds { find_absent: 10.0, find_present: 20.0 });
        assert_eq!((table.most_bytes(), table.disturbed()), (1 << 16, (0, 5)));
        assert!(speed_table(&[("packed", 4, 1, 1.0)]).at(single, 4, 1.0).is_none());
        // A single size gives no slope, and times never fall beyond the largest size.
        let falling = speed_table(&[("packed", 4, 1 << 14, 10.0), ("packed", 4, 1 << 16, 8.0), ("single", 4, 1 << 14, 7.0)]);
        let beyond = |kind| falling.at(kind, 4, 1e9).expect("it was measured").find_absent;
        assert_eq!([beyond(packed), beyond(single)].map(f64::to_bits), [8.0, 7.0].map(f64::to_bits));
    }
}
