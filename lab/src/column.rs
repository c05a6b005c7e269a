//! The description of an experiment's columns.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A column of an experiment's table: a field of its cases or of its rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// The field's name.
    pub name: Cow<'static, str>,
    /// Its unit; empty for text and for plain numbers.
    pub unit: Cow<'static, str>,
    /// What it says.
    pub about: Cow<'static, str>,
    /// How values of two runs are compared.
    pub role: Role,
}

/// How the values of a column in two runs are compared. Names are those of other columns, of the row or of its case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It says what was measured: a field of the case, or one that tells its rows apart.
    Key,
    /// A field of the case that numbers its repetitions. Cases that differ in nothing else are samples of one case.
    Round,
    /// It follows from the case: any difference counts.
    Exact,
    /// It is not compared: it depends on chance, and its spread is not known, or another column says the same.
    Detail,
    /// A number of independent random events.
    Count,
    /// The share of random events in which something happened.
    Share {
        /// The column that counts the events.
        of: Cow<'static, str>,
    },
    /// An estimate whose 99 % confidence interval is in two other columns.
    Estimate {
        /// The column of its lower end.
        low: Cow<'static, str>,
        /// The column of its upper end.
        high: Cow<'static, str>,
    },
    /// The mean of several values.
    Mean {
        /// The column of the least of them.
        least: Cow<'static, str>,
        /// The column of the greatest of them.
        most: Cow<'static, str>,
        /// The column that counts them.
        of: Cow<'static, str>,
    },
    /// The median of several times. Half of them lie between those of two other columns.
    Median {
        /// The column of the lower one.
        low: Cow<'static, str>,
        /// The column of the higher one.
        high: Cow<'static, str>,
        /// The column that counts the times.
        of: Cow<'static, str>,
    },
    /// A single time. Its spread shows in the repetitions of the case.
    Time,
}

impl Column {
    /// A column that is not compared.
    #[must_use]
    pub const fn new(name: &'static str, unit: &'static str, about: &'static str) -> Self {
        let [name, unit, about] = [Cow::Borrowed(name), Cow::Borrowed(unit), Cow::Borrowed(about)];
        Self { name, unit, about, role: Role::Detail }
    }

    /// A column that says what was measured.
    #[must_use]
    pub fn key(name: &'static str, unit: &'static str, about: &'static str) -> Self {
        Self { role: Role::Key, ..Self::new(name, unit, about) }
    }

    /// The same column in this role.
    #[must_use]
    pub fn compared(self, role: Role) -> Self {
        Self { role, ..self }
    }
}

impl Role {
    /// A share of as many events as another column says.
    #[must_use]
    pub const fn share(of: &'static str) -> Self {
        Self::Share { of: Cow::Borrowed(of) }
    }

    /// An estimate within a 99 % interval.
    #[must_use]
    pub const fn estimate(low: &'static str, high: &'static str) -> Self {
        Self::Estimate { low: Cow::Borrowed(low), high: Cow::Borrowed(high) }
    }

    /// A mean of values between two others.
    #[must_use]
    pub const fn mean(least: &'static str, most: &'static str, of: &'static str) -> Self {
        Self::Mean { least: Cow::Borrowed(least), most: Cow::Borrowed(most), of: Cow::Borrowed(of) }
    }

    /// A median, with half of the times between two others.
    #[must_use]
    pub const fn median(low: &'static str, high: &'static str, of: &'static str) -> Self {
        Self::Median { low: Cow::Borrowed(low), high: Cow::Borrowed(high), of: Cow::Borrowed(of) }
    }
}
