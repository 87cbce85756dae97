//! Describes rows and columns: how many there are, what each column holds, both ends, samples.

use std::collections::BTreeMap;

use super::column::{Column, Meaning};
use super::{Pieces, rank, shown};
use crate::brief::Piece;

/// The number of columns whose statistics are offered.
const MOST_COLUMNS: usize = 120;
/// The number of bytes from which only a part of a row is shown first.
const LONG_ROW: usize = 260;
/// The number of values in that part.
const PART_OF_ROW: usize = 8;
/// The same where a row has its values in objects.
const PART_OF_DEEP_ROW: usize = 3;
/// The number of values of a row without names that come before the statistics, and how many of a longer row.
const FIRST_VALUES: usize = 6;
const FIRST_OF_MANY: usize = 4;
/// The number of rows from which objects in them are told by what all of them hold.
const DEEP_ROWS: usize = 8;
/// Keys that name no column without the key before them where the column is below a list.
const BARE: [&str; 5] = ["name", "title", "id", "key", "value"];
/// The number of column names that are shown at once.
const NAMES: usize = 16;

/// A table, wherever it came from.
#[derive(Debug, Default)]
pub(super) struct Table<'t> {
    /// The path of the table with a colon and a blank; empty for the whole text.
    pub(super) label: String,
    /// Whether the label also comes before the names of columns.
    pub(super) qualified: bool,
    /// The number of rows, and what else there is to say of the whole.
    pub(super) shape: String,
    pub(super) rows: usize,
    /// Where the selector `rows` shows other rows: the path of the array, and the number of items above the first row.
    pub(super) rows_at: Option<(String, usize)>,
    /// The names of the columns in order, as they are shown.
    pub(super) names: Vec<String>,
    /// The statistics with the names that they are shown under; columns of nested values after those of the rows.
    pub(super) columns: Vec<(String, &'t Column)>,
    /// The rows at chosen positions: the first and the last, then samples.
    pub(super) samples: Vec<Sample>,
}

/// A row that is shown.
#[derive(Debug)]
pub(super) struct Sample {
    /// The number of the row, from 0.
    pub(super) number: usize,
    /// Every value with its column.
    pub(super) entries: Vec<String>,
    /// Every value, shorter and without its column; empty if the columns do not tell which is which.
    pub(super) values: Vec<String>,
    /// The row as it was written, if that is short.
    pub(super) verbatim: Option<String>,
}

impl Table<'_> {
    /// Whether at least half of the columns of several rows hold objects, so that the rows are told by what is in these.
    pub(super) fn is_deep(&self) -> bool {
        if self.rows < DEEP_ROWS {
            return false;
        }
        let objects = self.columns.iter().take(self.names.len()).filter(|(_, column)| column.is_objects()).count();
        objects * 2 >= self.names.len().max(1)
    }

    /// How the row with this number, from 0, is called so that a selector leads to it.
    pub(super) fn row(&self, number: usize) -> String {
        match &self.rows_at {
            Some((path, above)) => format!("{path}[{}]", number + above),
            None => format!("{}row {number}", self.label),
        }
    }

    /// The statements, with `place` and `delay` added to places and ranks.
    pub(super) fn pieces(&self, place: u32, delay: u32) -> Pieces {
        let mut pieces = Vec::new();
        let at = |offset: u32| place + offset;
        let columns = match self.names.len() {
            0 => String::new(),
            count => format!(", {}", shown::count(count, "column")),
        };
        let shape = format!("{}{}{columns}", self.label, self.shape);
        if self.names.is_empty() {
            pieces.push(Piece::line(at(rank::SHAPE_PLACE), delay + rank::SHAPE, shape));
        } else {
            let bare = Piece::line(at(rank::SHAPE_PLACE), delay + rank::SHAPE, shape.clone());
            let named = Piece::list(
                0,
                &format!("{shape}: "),
                self.names.clone(),
                ", ",
                (delay + rank::NAMES, NAMES),
                delay + rank::ALL_NAMES,
            );
            pieces
                .push(Piece { place: bare.place, wordings: bare.wordings.into_iter().chain(named.wordings).collect() });
        }
        self.ends(&mut pieces, place, delay);
        let deep = self.is_deep();
        if deep {
            pieces.extend(self.constants(place + rank::LAST_PLACE, delay));
        }
        for (position, (name, column)) in self.by_worth() {
            let [brief, full, rich] = column.statements(self.rows, Meaning::of(name));
            // For items that are objects the columns are described.
            if rich.is_empty() || (name.ends_with("[*]") && column.is_nested()) {
                continue;
            }
            let nested = name.contains(['.', '[']);
            let place = at(rank::STAT_PLACE + u32::try_from(position).unwrap_or(u32::MAX));
            let line = |text: &str| {
                if self.qualified { format!("{}{name}: {text}", self.label) } else { format!("{name}: {text}") }
            };
            let mut piece = Piece { place, wordings: Vec::new() };
            let ranks = match () {
                () if deep && (column.is_nested() || column.constant().is_some()) => [rank::MORE_NESTED; 3],
                () if nested && column.is_aside(self.rows) => [rank::NESTED, rank::NESTED, rank::MORE_NESTED],
                () if deep && column.is_counted() => [rank::STAT, rank::STAT, rank::LABELS],
                () if deep => [rank::MORE_STAT, rank::LABELS, rank::RICH_STAT],
                () if nested => [rank::NESTED, rank::NESTED, rank::MORE_NESTED],
                () if column.is_labels() => [rank::STAT, rank::MORE_STAT, rank::LABELS],
                () => [rank::STAT, rank::MORE_STAT, rank::RICH_STAT],
            };
            let mut before = "";
            for (text, rank) in [&brief, &full, &rich].into_iter().zip(ranks) {
                if text != before {
                    piece.wordings.extend(Piece::line(place, delay + rank, line(text)).wordings);
                }
                before = text;
            }
            pieces.push(piece);
        }
        pieces
    }

    /// What all rows have and is the same everywhere.
    fn constants(&self, place: u32, delay: u32) -> Option<Piece> {
        let names = self.short_names();
        let same = self.columns.iter().filter(|(_, column)| column.filled() >= self.rows);
        let entries: Vec<String> = same
            .filter_map(|(name, column)| {
                Some(format!("{}={}", names.get(name.as_str())?, shown::text_cell(column.constant()?)))
            })
            .collect();
        let head = format!("{}everywhere the same: ", self.label);
        let least = (delay + rank::MORE_STAT, PART_OF_ROW);
        (!entries.is_empty()).then(|| Piece::list(place, &head, entries, " ", least, delay + rank::RICH_STAT))
    }

    /// For the name of each column its end: as many keys as tell it from the others, and of which thing it is.
    pub(super) fn short_names(&self) -> BTreeMap<&str, &str> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for end in self.columns.iter().flat_map(|(name, _)| name_ends(name)) {
            *counts.entry(end).or_default() += 1;
        }
        let named = self.columns.iter().map(|(name, _)| {
            let is_bare = |end: &str| name.contains("[*]") && BARE.iter().any(|key| end.eq_ignore_ascii_case(key));
            let end = name_ends(name).into_iter().find(|end| counts.get(*end) == Some(&1) && !is_bare(end));
            (name.as_str(), end.unwrap_or(name))
        });
        named.collect()
    }

    /// The columns in the order in which their statistics are worth most, with their positions.
    fn by_worth(&self) -> Vec<(usize, &(String, &Column))> {
        let mut order: Vec<_> = self.columns.iter().enumerate().take(MOST_COLUMNS).collect();
        order.sort_by_key(|(position, (name, column))| (column.worth(self.rows, Meaning::of(name)), *position));
        order
    }

    fn ends(&self, pieces: &mut Pieces, place: u32, delay: u32) {
        let deep = self.is_deep();
        let mut numbers: Vec<usize> = self.samples.iter().map(|sample| sample.number).collect();
        numbers.sort_unstable();
        for (position, sample) in self.samples.iter().enumerate() {
            let order = numbers.iter().position(|number| *number == sample.number).unwrap_or(0);
            let last = sample.number + 1 == self.rows && sample.number > 0;
            let (head, offset) = match sample.number {
                0 => (format!("{}first row", self.label), rank::FIRST_PLACE),
                _ if last => (format!("{}last row", self.label), rank::LAST_PLACE),
                number => (self.row(number), rank::SAMPLE_PLACE + u32::try_from(order).unwrap_or(0)),
            };
            let line = format!("{head}: {}", sample.entries.join(" "));
            let end = sample.number == 0 || last;
            if !end {
                if line.len() <= LONG_ROW {
                    let rank = delay + rank::SAMPLE + u32::try_from(position).unwrap_or(0);
                    pieces.push(Piece::line(place + offset, rank, line));
                }
                continue;
            }
            let bare = !sample.values.is_empty();
            let head = format!("{head}: ");
            let mut piece = Piece { place: place + offset, wordings: Vec::new() };
            if bare {
                let first = if self.names.len() > FIRST_VALUES { FIRST_OF_MANY } else { FIRST_VALUES };
                let least = (delay + rank::SHORT_ENDS, first);
                let values = Piece::list(0, &head, sample.values.clone(), " | ", least, delay + rank::WHOLE_ENDS);
                piece.wordings.extend(values.wordings);
            }
            let first_rank = delay + if bare { rank::ENDS } else { rank::SHORT_ENDS };
            let named = if line.len() <= LONG_ROW && !deep {
                Piece::line(0, first_rank, line)
            } else if bare && self.names.len() > FIRST_VALUES {
                // A part with names would say less than all values without.
                Piece { place: 0, wordings: Vec::new() }
            } else {
                let entries = sample.entries.clone();
                let part = if deep { PART_OF_DEEP_ROW } else { PART_OF_ROW };
                Piece::list(0, &head, entries, " ", (first_rank, part), delay + rank::VERBATIM)
            };
            piece.wordings.extend(named.wordings);
            if let Some(verbatim) = &sample.verbatim {
                let verbatim = Piece::line(0, delay + rank::VERBATIM, format!("{head}{verbatim}"));
                piece.wordings.extend(verbatim.wordings);
            }
            pieces.push(piece);
        }
    }
}

/// The ends of the name of a column that begin with a key, the shortest first.
fn name_ends(name: &str) -> Vec<&str> {
    let mut quoted = false;
    let mut starts = vec![0];
    for (at, character) in name.char_indices() {
        quoted ^= character == '"';
        if character == '.' && !quoted {
            starts.push(at + 1);
        }
    }
    starts.into_iter().rev().filter_map(|start| name.get(start..)).collect()
}
