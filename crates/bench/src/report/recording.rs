//! Recorded times: those of the newest day, as a table.

use super::number::{MISSING, count, quantity};
use super::table::Table;
use crate::eval::matrix::engine_position;
use crate::eval::timing::TimingRow;

/// Times as a table, in the order of `rows`.
#[must_use]
pub fn times(rows: &[&TimingRow]) -> Table {
    let titles = ["subject", "engine", "size", "unit", "runs", "median", "p95", "p99", "MAD"];
    let mut table = Table::new(titles).words(&["engine", "unit"]);
    for row in rows {
        let cells = [
            row.subject.name().to_owned(),
            row.engine.clone().unwrap_or_else(|| MISSING.to_owned()),
            row.tools.map_or_else(|| MISSING.to_owned(), count),
            row.unit.symbol().to_owned(),
            count(row.runs),
            quantity(row.median),
            quantity(row.p95),
            quantity(row.p99),
            quantity(row.mad),
        ];
        table.row(cells);
    }
    table
}

/// The timings of one day on one machine.
#[derive(Debug)]
pub struct Recording<'a> {
    /// Its rows by subject, engine and size.
    pub rows: Vec<&'a TimingRow>,
    /// Whether other recordings were left out.
    is_one_of_several: bool,
}

impl<'a> Recording<'a> {
    /// The recording of the latest day (of several machines, the last by name); `None` without rows.
    #[must_use]
    pub fn newest(timings: &'a [TimingRow]) -> Option<Self> {
        let key = |row: &'a TimingRow| (&row.date, row.machine.as_str());
        let newest = timings.iter().map(key).max()?;
        let mut rows: Vec<&TimingRow> = timings.iter().filter(|row| key(row) == newest).collect();
        rows.sort_by(|left, right| {
            let place = |row: &'a TimingRow| {
                let engine = row.engine.as_deref();
                (row.subject, engine.map(engine_position), engine, row.tools)
            };
            place(left).cmp(&place(right)).then(left.median.total_cmp(&right.median))
        });
        let is_one_of_several = rows.len() < timings.len();
        Some(Self { rows, is_one_of_several })
    }

    /// A sentence on where and when the times were taken.
    #[must_use]
    pub fn origin(&self) -> String {
        let Some(first) = self.rows.first() else { return String::new() };
        let TimingRow { date, machine, cpu, os, rustc, revision, .. } = first;
        let mut text = format!(
            "Recorded, not computed: {date} on `{machine}`: {cpu}, {os}, rustc {rustc}, revision `{revision}`."
        );
        if self.is_one_of_several {
            text.push_str(" This is the newest recording; `timings/` holds the others.");
        }
        text
    }
}
