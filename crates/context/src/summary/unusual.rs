//! The rows of a table with values that few others have.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::leaves::{below, varying};
use super::profile::{NAMING, NodeId, Profile};
use super::table::Table;
use super::{Pieces, rank, shown};
use crate::brief::Piece;
use crate::literal::{Kind, Value};

/// The number of rows among which a row can be unusual, and of unusual rows that are shown.
const LEAST_ROWS: usize = 10;
const MOST: usize = 4;
/// The number of usual values that are shown of one.
const USUAL: usize = 4;
/// The number of members of a row that are looked at.
const MEMBERS: usize = 60;
/// The number of characters of an unusual value and of a usual one.
const VALUE: usize = 80;
const CELL: usize = 48;

/// The unusual rows of a table.
pub(super) struct Unusual {
    rows: Vec<Row>,
    /// Whether a row is told by what is in its objects, or has a key.
    first: bool,
    /// Whether all of them are shown.
    all: bool,
}

struct Row {
    /// The number of the row, from 0.
    number: usize,
    /// What it is called, with its table.
    label: String,
    /// Values with their columns, the rare ones at the front.
    entries: Vec<String>,
    rare: usize,
}

/// A row in which values are rare.
struct Found<'v> {
    rare: usize,
    number: usize,
    key: Option<Value<'v>>,
    row: Value<'v>,
}

impl Unusual {
    /// The unusual ones among the rows of `table`, the items or members of `value`, whose pattern is `node`.
    pub(super) fn of<'d>(profile: &Profile<'d>, value: Value<'d>, node: NodeId, table: &Table<'_>) -> Self {
        let item = profile.item(node);
        let mut children = item.into_iter().flat_map(|item| profile.children(item));
        let rare = table.columns.iter().flat_map(|(_, column)| column.rare(table.rows)).flatten();
        let rare: BTreeSet<usize> = rare.copied().collect();
        let mut found: Vec<Found<'d>> = Vec::new();
        // On the other levels of a tree a value may be frequent.
        if !rare.is_empty() && table.rows >= LEAST_ROWS && !children.any(|child| profile.is_recursive(*child)) {
            let keys = value.members().map(|(key, _)| Some(key)).chain(std::iter::repeat(None));
            let rows = value.items().zip(keys).skip(value.len() - table.rows).enumerate();
            let counted = rows.map(|(number, (row, key))| {
                let rare = rare.range(row.span()).count();
                Found { rare, number, key, row }
            });
            found.extend(counted.filter(|found| found.rare > 0));
        }
        found.sort_by_key(|found| (Reverse(found.rare), found.number));
        let (all, first) = (found.len() <= MOST, table.is_deep() || value.kind() == Kind::Object);
        let naming = item.and_then(|item| profile.naming(item)).unwrap_or_default();
        let rows = found.into_iter().take(MOST).map(|found| found.shown(&rare, &naming, table)).collect();
        Self { rows, first, all }
    }

    /// Whether the row with this number, from 0, is shown.
    pub(super) fn shows(&self, number: usize) -> bool {
        self.rows.iter().any(|row| row.number == number)
    }

    /// The statements about them.
    pub(super) fn pieces(&self, place: u32, delay: u32) -> Pieces {
        let rank = match () {
            () if !self.all => rank::SAMPLE,
            () if self.first => rank::FIRST_UNUSUAL,
            () => rank::UNUSUAL,
        };
        let piece = |(row, order): (&Row, u32)| {
            let head = format!("{}: ", row.label);
            let least = (delay + rank, row.rare + USUAL);
            let place = place + rank::UNUSUAL_PLACE + order;
            Piece::list(place, &head, row.entries.clone(), " ", least, delay + rank::SAMPLE)
        };
        self.rows.iter().zip(0..).map(piece).collect()
    }
}

impl Found<'_> {
    /// The rare values, then the name, then the others. `naming` are the keys that lead to the name.
    fn shown(&self, rare: &BTreeSet<usize>, naming: &[String], table: &Table<'_>) -> Row {
        let Self { number, key, row, .. } = *self;
        let named = below(row, naming).filter(|_| !naming.is_empty());
        let is_named = |value: &Value<'_>| named.is_some_and(|name| name.place() == value.place());
        let is_rare = |value: &Value<'_>| rare.range(value.span()).next().is_some();
        let is_usual_name = naming.last().is_some_and(|key| NAMING.contains(&key.as_str()));
        let label = match (key, named.filter(|_| is_usual_name)) {
            (Some(key), _) => format!("{}{}", table.label, shown::key(&key.plain())),
            (None, Some(name)) => format!("{} ({})", table.row(number), shown::line(&name.plain(), CELL)),
            (None, None) => table.row(number),
        };
        let (unusual, mut usual): (Vec<_>, Vec<_>) =
            varying(row, table).into_iter().partition(|(_, value)| is_rare(value));
        if row.kind() == Kind::Object && !table.is_deep() {
            let members = row.members().take(MEMBERS).filter(|(_, value)| !is_rare(value));
            let members: Vec<_> = members.map(|(key, value)| (shown::key(&key.plain()), value)).collect();
            // Where the whole row is in the member with the rare value, what stands beside that is its own.
            usual = if members.is_empty() { usual } else { members };
        }
        usual.retain(|(_, value)| key.is_some() || !is_usual_name || !is_named(value));
        usual.sort_by_key(|(_, value)| !is_named(value));
        let unusual = unusual.into_iter().map(|cell| (cell, VALUE));
        let entries = unusual.chain(usual.into_iter().map(|cell| (cell, CELL)));
        let entries = entries.map(|((name, value), limit)| format!("{name}={}", shown::cell(value, limit))).collect();
        Row { number, label, entries, rare: self.rare }
    }
}
