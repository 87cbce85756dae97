//! Describes arrays and objects: tables, leaves with their paths, texts inside strings.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashMap;

use super::column::{Column, Meaning};
use super::failure::{self, Failure};
use super::leaves::{below, varying};
use super::profile::{Mode, NodeId, Profile, has_header, is_list, is_told_by_item, mode};
use super::table::{Sample, Table};
use super::unusual::Unusual;
use super::{Pieces, rank, rows, shown};
use crate::brief::Piece;
use crate::literal::{Kind, Value};

/// The number of leaves offered as lines.
const MOST_LEAVES: usize = 300;
/// The number of arrays and objects that are searched for leaves.
const MOST_VISITS: usize = 4000;
/// The number of tables that are described in detail.
const MOST_TABLES: usize = 4;
/// The number of rows from which a table is told by its columns where it is most of the whole together with others.
const TOLD_ROWS: usize = 8;
/// The number of rows shown between the first and the last.
const SAMPLES: usize = 12;
/// The number of characters of a value in a row.
const CELL: usize = 48;
/// The number of characters of a value in a row without names.
const SHORT_CELL: usize = 32;
/// The number of keys of an object that are listed.
const MOST_KEYS: usize = 200;
/// The number of keys of a map that the shape names.
const FIRST_ROWS: usize = 4;
/// The number of rows whose number of inner rows is given.
const MOST_HOLDERS: usize = 100;
/// The number of endings of names that are listed.
const MOST_ENDINGS: usize = 6;
/// The number of bytes of an ending of a name.
const ENDING: usize = 8;
/// The number of characters of a value after its path, at first and when there is room.
const LEAF: [usize; 2] = [80, 400];
/// The number of bytes of a row that is shown as it was written.
const VERBATIM: usize = 600;
/// The number of bytes from which a string is a text to be summarised by itself.
const EMBEDDED: usize = 600;
/// The number of texts inside strings that are summarised.
const MOST_EMBEDDED: usize = 3;
/// The number of lines about values below the rows of a table.
const MOST_INNER: usize = 150;
/// The number of items of one array that are searched for them.
const MOST_ITEMS: usize = 100;
/// The number of values of a key on all levels from which they are counted together.
const LEAST_BY_KEY: usize = 10;
/// The number of times that the same keys are named.
const SAME_KEYS: usize = 2;
/// The number of rows whose names are listed.
const MOST_NAMED: usize = 120;
/// The number of nested patterns of a row that are described.
const MOST_NESTED: usize = 60;
/// The depth that is said at once.
const DEEP: usize = 20;

/// What most of a literal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bulk {
    /// A table, several tables together, or a long string.
    Told,
    /// Rows with names.
    Named,
    /// Anything else.
    Tree,
}

/// The description of a literal.
pub(super) struct Description {
    pub(super) pieces: Pieces,
    /// The long strings: path and text of each.
    pub(super) embedded: Vec<(String, String)>,
    /// What most of it is.
    pub(super) bulk: Bulk,
    /// What went wrong, below the root of what is neither a table nor a text.
    pub(super) failure: Option<Failure>,
}

struct Section<'d> {
    value: Value<'d>,
    path: String,
    node: NodeId,
    /// The names of columns next to the rows, e.g. `{"columns": […], "rows": […]}`.
    beside: Option<Value<'d>>,
}

impl Section<'_> {
    fn label(&self) -> String {
        if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) }
    }
}

struct Walk<'d> {
    profile: Profile<'d>,
    pieces: Pieces,
    tables: Vec<Section<'d>>,
    embedded: Vec<(String, Value<'d>)>,
    leaves: u32,
    total: usize,
    /// How often the same keys were named.
    named_keys: FxHashMap<Vec<String>, usize>,
}

/// Describes `root`. Rows of an array for which `is_path_needed` are named by their path below `base`, the JSONPath of
/// `root`.
pub(super) fn describe(root: Value<'_>, base: &str, is_path_needed: impl Fn(Value<'_>) -> bool) -> Description {
    let profile = Profile::of(root);
    let mut walk = Walk {
        profile,
        pieces: Vec::new(),
        tables: Vec::new(),
        embedded: Vec::new(),
        leaves: 0,
        total: root.span().len(),
        named_keys: FxHashMap::default(),
    };
    walk.shape(root);
    walk.sections(root);
    walk.last(root);
    walk.tables.sort_by_key(|table| (std::cmp::Reverse(table.value.span().len()), table.value.span().start));
    let bulk = walk.bulk();
    let mut counted = false;
    for (number, section) in walk.tables.iter().enumerate().take(MOST_TABLES * 4) {
        let detailed = number < MOST_TABLES;
        let small = is_small(section.value.span().len(), walk.total);
        let number = u32::try_from(number).unwrap_or(u32::MAX / 10_000);
        let place = rank::TABLE_PLACE + number * rank::TABLE_PLACES;
        let delay = number * rank::TABLE_DELAY + if small { rank::SMALL_DELAY } else { 0 };
        let mut table = walk.table(section);
        table.rows_at = (section.value.kind() == Kind::Array && is_path_needed(section.value))
            .then(|| (rows::path_below(base, &section.path), section.value.len() - table.rows));
        // Where no table is most of the whole, the names of columns alone could be those of any.
        table.qualified = number > 0 || section.path.contains(['.', '[']) || (bulk == Bulk::Told && small);
        let unusual = detailed.then(|| Unusual::of(&walk.profile, section.value, section.node, &table));
        table.samples.retain(|sample| {
            let is_end = sample.number == 0 || sample.number + 1 == table.rows;
            is_end || !unusual.as_ref().is_some_and(|unusual| unusual.shows(sample.number))
        });
        let pieces = table.pieces(place, delay);
        let deep = table.is_deep();
        walk.pieces.extend(pieces.into_iter().take(if detailed { usize::MAX } else { 1 }));
        if detailed {
            if mode(section.value) == Mode::Map {
                let head = first_of(&format!("{}keys", section.label()), section.value.len(), MOST_KEYS);
                let least = (delay + rank::ALL_NAMES, 12);
                let place = place + rank::FIRST_PLACE;
                let keys = keys(section.value);
                walk.pieces.push(Piece::list(place, &head, keys, ", ", least, delay + rank::MORE_NESTED));
            }
            walk.pieces.extend(unusual.iter().flat_map(|unusual| unusual.pieces(place, delay)));
            walk.pieces.extend(walk.row_names(section, deep, place + rank::INNER_PLACE - 1, delay));
            let totals = walk.totals(section, place + rank::STAT_PLACE, delay);
            counted |= totals.is_some();
            walk.pieces.extend(totals);
            walk.pieces.extend(walk.holders(section, place + rank::STAT_PLACE, delay));
            walk.pieces.extend(inner(section, place + rank::INNER_PLACE, delay));
        }
    }
    if !counted {
        walk.pieces.extend(walk.by_key());
    }
    walk.embedded.sort_by_key(|(_, value)| (std::cmp::Reverse(value.span().len()), value.span().start));
    let failure = if bulk == Bulk::Told { None } else { failure::of(&walk.profile, root) };
    let embedded = walk.embedded.iter().take(MOST_EMBEDDED);
    let embedded = embedded.map(|(path, value)| (path.clone(), value.plain().into_owned())).collect();
    Description { pieces: walk.pieces, embedded, bulk, failure }
}

/// Whether a part of this length is not most of the whole.
fn is_small(length: usize, whole: usize) -> bool {
    length * 3 < whole * 2
}

impl<'d> Walk<'d> {
    /// The size of the whole, unless a table says it.
    fn shape(&mut self, root: Value<'d>) {
        let size = || format!("{} values, depth {}", self.profile.leaves, self.profile.depth);
        match (root.kind(), mode(root)) {
            (Kind::Object, Mode::Keys) => {
                let deep =
                    if self.profile.depth > DEEP { format!(", depth {}", self.profile.depth) } else { String::new() };
                let head = format!("object, {}{deep}", shown::count(root.len(), "key"));
                let mut piece = Piece::line(0, rank::SHAPE, head.clone());
                let (head, keys) = (first_of(&head, root.len(), MOST_KEYS), keys(root));
                let named = Piece::list(0, &head, keys, ", ", (rank::NAMES, 12), rank::ALL_NAMES);
                piece.wordings.extend(named.wordings);
                self.pieces.push(piece);
                self.pieces.push(Piece::line(1, rank::SIZE, size()));
            }
            (Kind::Array, _) if self.profile.depth > 2 => {
                self.pieces.push(Piece::line(1, rank::SIZE, size()));
            }
            _ => {}
        }
    }

    /// Looks for tables, leaves and texts, those near the root first.
    fn sections(&mut self, root: Value<'d>) {
        let mut queue = VecDeque::from([Section { value: root, path: String::new(), node: 0, beside: None }]);
        let mut visits = 0;
        while let Some(section) = queue.pop_front() {
            let Section { value, path, node, beside } = section;
            visits += 1;
            if visits > MOST_VISITS {
                return;
            }
            match (value.kind(), mode(value)) {
                (Kind::Object | Kind::Array, _) if value.is_empty() => self.leaf(value, &path),
                (Kind::Object, Mode::Map) | (Kind::Array, Mode::Rows) => {
                    self.tables.push(Section { value, path, node, beside });
                }
                (Kind::Object, _) => {
                    if !path.is_empty() {
                        self.keys(value, &path);
                    }
                    // The names of columns are given with their table.
                    let mut beside = Beside::of(value);
                    let names: BTreeSet<usize> = value
                        .items()
                        .filter_map(|member| beside.names(member))
                        .map(|names| names.span().start)
                        .collect();
                    for (key, member) in value.members() {
                        if names.contains(&member.span().start) {
                            continue;
                        }
                        // Entries further back in the queue are never looked into.
                        if visits + queue.len() >= MOST_VISITS {
                            break;
                        }
                        if let Some(node) = self.profile.member(node, key) {
                            let path = shown::member_path(&path, &key.plain());
                            queue.push_back(Section { value: member, path, node, beside: beside.names(member) });
                        }
                    }
                }
                (Kind::Array, _) => {
                    if !value.items().take(64).any(Value::is_container) {
                        self.list(value, &path, node);
                    } else if !is_told_by_item(value) {
                        self.tables.push(Section { value, path, node, beside });
                    } else {
                        let room = MOST_VISITS.saturating_sub(visits + queue.len());
                        for (index, value) in value.items().enumerate().take(room) {
                            if let Some(node) = self.profile.item_at(node, index) {
                                let path = format!("{path}[{index}]");
                                queue.push_back(Section { value, path, node, beside: None });
                            }
                        }
                    }
                }
                _ => self.leaf(value, &path),
            }
        }
    }

    /// What most of the whole is.
    fn bulk(&self) -> Bulk {
        let texts = self.embedded.iter().map(|(_, value)| *value);
        let large = self.tables.iter().map(|table| table.value).chain(texts);
        let mut large = large.filter(|value| !is_small(value.span().len(), self.total));
        // Objects under keys are parts of a whole more often than rows.
        match large.next() {
            Some(value) if mode(value) != Mode::Map => Bulk::Told,
            Some(value) if is_list(value) && value.span().len() * 10 > self.total * 9 => Bulk::Named,
            None if self.has_tables() => Bulk::Told,
            _ => Bulk::Tree,
        }
    }

    /// Whether the tables that are described in detail are most of the whole together.
    fn has_tables(&self) -> bool {
        let tables = self.tables.iter().take(MOST_TABLES).map(|table| table.value);
        let told = tables.filter(|value| mode(*value) != Mode::Map && value.len() >= TOLD_ROWS);
        !is_small(told.map(|value| value.span().len()).sum(), self.total)
    }

    /// The value at the end of a tree, unless a table or the lines at the root show it.
    fn last(&mut self, root: Value<'d>) {
        let (mut value, mut path) = (root, String::new());
        for depth in 0.. {
            let next = match value.kind() {
                Kind::Object if mode(value) == Mode::Keys => {
                    value.members().last().map(|(key, member)| (member, shown::member_path(&path, &key.plain())))
                }
                Kind::Array if !value.items().any(Value::is_container) => {
                    value.items().last().map(|item| (item, format!("{path}[{}]", value.len() - 1)))
                }
                Kind::Object | Kind::Array => None,
                _ if depth < 2 => None,
                _ => {
                    let text = format!("last value: {path}: {}", shown::value(value, CELL));
                    self.pieces.push(Piece::line(rank::LAST_LEAF_PLACE, rank::LAST_LEAF, text));
                    None
                }
            };
            match next {
                Some(next) => (value, path) = next,
                None => return,
            }
        }
    }

    /// How often the values of a key occur on all levels, where it is in several places and has few values.
    fn by_key(&self) -> Option<Piece> {
        let mut keys: BTreeMap<String, Vec<NodeId>> = BTreeMap::new();
        for (id, name) in self.profile.named() {
            keys.entry(name).or_default().push(id);
        }
        let mut found: Vec<(usize, String)> = Vec::new();
        for (key, ids) in keys.iter().filter(|(_, ids)| ids.len() > 1) {
            let columns = || ids.iter().filter_map(|id| self.profile.node(*id)).map(|node| &node.column);
            let filled = columns().map(Column::filled).sum();
            if filled >= LEAST_BY_KEY
                && !columns().any(Column::is_nested)
                && let Some(values) = Column::frequent_in(columns())
            {
                found.push((filled, format!("{} {values}", shown::key(key))));
            }
        }
        found.sort_by(|left, right| right.0.cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
        let entries: Vec<String> = found.into_iter().map(|(_, text)| text).collect();
        let least = (rank::BY_KEY, 3);
        let place = rank::BY_KEY_PLACE;
        (!entries.is_empty()).then(|| Piece::list(place, "on all levels: ", entries, ", ", least, rank::ALL_NAMES))
    }

    fn place_of_leaf(&mut self) -> Option<u32> {
        self.leaves += 1;
        ((self.leaves as usize) < MOST_LEAVES).then_some(rank::LEAF_PLACE + self.leaves)
    }

    fn leaf(&mut self, value: Value<'d>, path: &str) {
        let length = value.span().len();
        if value.kind() == Kind::String
            && length > EMBEDDED
            && (length * 3 > self.total || value.text().contains('\n') || value.text().contains("\\n"))
        {
            self.embedded.push((path.to_owned(), value));
            return;
        }
        let Some(place) = self.place_of_leaf() else { return };
        let label = if path.is_empty() { String::new() } else { format!("{path}: ") };
        let [short, long] = LEAF.map(|limit| format!("{label}{}", shown::value(value, limit)));
        let mut piece = Piece::line(place, rank::leaf(self.leaves, path), short.clone());
        if long != short {
            piece.wordings.extend(Piece::line(place, rank::LONGER, long).wordings);
        }
        self.pieces.push(piece);
    }

    fn keys(&mut self, value: Value<'d>, path: &str) {
        let keys = keys(value);
        let again = self.named_keys.entry(keys.clone()).or_default();
        *again += 1;
        // Objects that are all alike would hide what they hold.
        if *again > SAME_KEYS {
            return;
        }
        let Some(place) = self.place_of_leaf() else { return };
        let head = first_of(&format!("{path}: {}", shown::count(value.len(), "key")), value.len(), MOST_KEYS);
        let mut piece = Piece { place, wordings: Vec::new() };
        if !path.contains(['.', '[']) {
            let first = Piece::list(place, &head, keys.clone(), ", ", (rank::FIRST_KEYS, FIRST_ROWS), rank::KEYS);
            piece.wordings.extend(first.wordings.into_iter().take(1));
        }
        piece.wordings.extend(Piece::list(place, &head, keys, ", ", (rank::KEYS, 10), rank::ALL_NAMES).wordings);
        self.pieces.push(piece);
    }

    /// Describes an array of scalars.
    fn list(&mut self, value: Value<'d>, path: &str, node: NodeId) {
        let Some(place) = self.place_of_leaf() else { return };
        let label = if path.is_empty() { "items: ".to_owned() } else { format!("{path}: ") };
        let items: Vec<String> = value.items().take(MOST_ITEMS).map(|item| shown::cell(item, LEAF[0])).collect();
        let head = format!("{label}{}: ", shown::count(value.len(), "item"));
        if value.len() > 8
            && let Some(column) =
                self.profile.item(node).and_then(|item| self.profile.node(item)).map(|node| &node.column)
        {
            let last = value.items().last().map_or_else(String::new, |last| shown::cell(last, LEAF[0]));
            let first = items.first().cloned().unwrap_or_default();
            let [_, full, _] = column.statements(value.len(), Meaning::Quantity);
            self.pieces.push(Piece::line(
                place,
                rank::leaf(self.leaves, path),
                format!("{label}{}, first {first}, last {last}", shown::count(value.len(), "item")),
            ));
            self.pieces.push(Piece::line(place, rank::STAT, format!("{label}{full}")));
            let head = if path.is_empty() { "items".to_owned() } else { format!("{path}: items") };
            let head = first_of(&head, value.len(), MOST_ITEMS);
            self.pieces.push(Piece::list(place, &head, items, ", ", (rank::NESTED, 5), rank::SAMPLE));
        } else {
            self.pieces.push(Piece::list(
                place,
                &head,
                items,
                ", ",
                (rank::leaf(self.leaves, path), 8),
                rank::ALL_NAMES,
            ));
        }
    }

    fn table<'w>(&'w self, section: &Section<'d>) -> Table<'w> {
        let Section { value, node, beside, .. } = section;
        let mode = mode(*value);
        let header = rows::header_of(*value).is_some();
        let rows = value.len() - usize::from(header);
        let mut table = Table { rows, ..Table::default() };
        table.label = section.label();
        let counted = shown::count(rows, "row");
        table.shape = match mode {
            _ if header => format!("{counted} below a header row"),
            Mode::Map => {
                let keys = value.members().take(FIRST_ROWS).map(|(key, _)| shown::key(&key.plain()));
                let keys: Vec<String> = keys.collect();
                format!("{} ({}, …) with a row each", shown::count(rows, "key"), keys.join(", "))
            }
            Mode::Rows => counted,
            _ => counted,
        };
        let Some(item) = self.profile.item(*node) else { return table };
        table.names = self.names(*value, item, mode, header.then(|| value.at(0)).flatten().or(*beside));
        let mut seen = BTreeSet::from([item]);
        if mode == Mode::Rows {
            for (name, child) in table.names.iter().zip(self.profile.children(item)) {
                table.columns.extend(self.profile.node(*child).map(|node| (name.clone(), &node.column)));
            }
        } else {
            self.columns(item, "", &mut seen, &mut table);
        }
        table.samples = self.samples(*value, item, mode, header, &table);
        table
    }

    /// The names of objects that hold more than scalars. Of `deep` ones the names come first.
    fn row_names(&self, section: &Section<'d>, deep: bool, place: u32, delay: u32) -> Option<Piece> {
        let Section { value, node, .. } = section;
        if mode(*value) != Mode::Items || value.len() > MOST_NAMED {
            return None;
        }
        let item = self.profile.item(*node)?;
        let children = self.profile.children(item);
        let holds_more =
            children.iter().filter_map(|child| self.profile.node(*child)).any(|node| node.column.is_nested());
        let first = self.profile.node(*children.first()?).filter(|first| first.column.names_rows());
        let keys = match first.and_then(|first| first.name()).filter(|_| holds_more) {
            Some(key) => vec![key],
            None => self.profile.naming(item).filter(|_| deep)?,
        };
        let path = keys.iter().fold(String::new(), |path, key| shown::member_path(&path, key));
        let head = format!("{}{path}: ", section.label());
        let names = cells(value.items().filter_map(|row| below(row, &keys)));
        let ([first, more], least) =
            if deep { ([rank::STAT, rank::ALL_NAMES], 6) } else { ([rank::NESTED, rank::MORE_NESTED], 12) };
        Some(Piece::list(place, &head, names, ", ", (delay + first, least), delay + more))
    }

    /// For rows that hold rows like themselves: how many there are on all levels, and their frequent values.
    fn totals(&self, section: &Section<'d>, place: u32, delay: u32) -> Option<Piece> {
        let item = self.profile.item(section.node)?;
        let nested = self.profile.children(item).iter().copied().find(|child| self.profile.is_recursive(*child))?;
        let inner = self.profile.item(nested)?;
        let count = self.profile.node(item)?.count + self.profile.node(inner)?.count;
        let mut said = vec![format!("on all levels: {}", shown::count(count, "object"))];
        for &child in self.profile.children(item) {
            let Some(node) = self.profile.node(child) else { continue };
            let same = |other: &&NodeId| self.profile.node(**other).is_some_and(|other| other.name() == node.name());
            let other = self.profile.children(inner).iter().find(same).and_then(|other| self.profile.node(*other));
            let values = other.and_then(|other| node.column.frequent_with(&other.column));
            said.extend(values.map(|values| format!("{} {values}", node.name().unwrap_or_default())));
        }
        Some(Piece::line(place, delay + rank::TOTALS, format!("{}{}", section.label(), said.join(", "))))
    }

    /// For rows that hold rows like themselves: how many each of them holds, and how often their names end alike.
    fn holders(&self, section: &Section<'d>, place: u32, delay: u32) -> Pieces {
        let item = self.profile.item(section.node);
        let nested = item.and_then(|item| {
            let nested = self.profile.children(item).iter().copied().find(|child| self.profile.is_recursive(*child))?;
            self.profile.node(nested)?.name()
        });
        let Some(nested) = nested else { return Vec::new() };
        let name = |row: Value<'_>| row.members().find_map(|(_, value)| value.string().map(|name| name.into_owned()));
        let naming = item.and_then(|item| self.profile.naming(item));
        let unique = |row: Value<'d>| below(row, naming.as_deref()?)?.string();
        let mut held: Vec<String> = Vec::new();
        for row in section.value.items().take(MOST_HOLDERS) {
            let (Some(name), Some(rows)) = (unique(row), row.get(&nested)) else { continue };
            let all = rows.descendants().filter(|visit| visit.value.kind() == Kind::Object).count();
            let deeper = if all > rows.len() { format!(" ({all} on all levels)") } else { String::new() };
            held.push(format!("{} {}{deeper}", shown::line(&name, CELL), rows.len()));
        }
        let mut endings: BTreeMap<String, usize> = BTreeMap::new();
        for visit in section.value.descendants().filter(|visit| visit.value.kind() == Kind::Object) {
            if visit.value.get(&nested).is_none()
                && let Some(ending) = name(visit.value).as_deref().and_then(ending)
            {
                *endings.entry(ending.to_owned()).or_default() += 1;
            }
        }
        let mut endings: Vec<(String, usize)> = endings.into_iter().collect();
        endings.sort_by_key(|(ending, count)| (std::cmp::Reverse(*count), ending.clone()));
        let endings: Vec<String> =
            endings.iter().take(MOST_ENDINGS).map(|(ending, count)| format!(".{ending} {count}")).collect();
        let list = |place, head: &str, entries: Vec<String>| {
            let head = format!("{}{head}: ", section.label());
            Piece::list(place, &head, entries, ", ", (delay + rank::TOTALS, 12), delay + rank::STAT)
        };
        let mut pieces = Vec::new();
        if !held.is_empty() {
            pieces.push(list(place, &format!("number of {nested}"), held));
        }
        if !endings.is_empty() {
            pieces.push(list(place, "names by ending", endings));
        }
        pieces
    }

    fn names(&self, value: Value<'d>, item: NodeId, mode: Mode, names: Option<Value<'d>>) -> Vec<String> {
        let children = self.profile.children(item);
        match mode {
            Mode::Rows => {
                let width = value.at(0).map_or(0, Value::len);
                let names: Option<Vec<String>> =
                    names.map(|names| names.items().map(|name| shown::key(&name_of(name))).collect());
                names.unwrap_or_else(|| (1..=width).map(|number| format!("column {number}")).collect())
            }
            _ => children
                .iter()
                .filter_map(|child| self.profile.node(*child))
                .filter_map(|node| node.name())
                .map(|name| shown::key(&name))
                .collect(),
        }
    }

    /// The columns of rows, followed by those of nested values.
    fn columns<'w>(&'w self, item: NodeId, path: &str, seen: &mut BTreeSet<NodeId>, table: &mut Table<'w>) {
        let mut queue = VecDeque::from([(item, path.to_owned())]);
        while let Some((id, path)) = queue.pop_front() {
            for &child in self.profile.children(id) {
                let Some(node) = self.profile.node(child) else { continue };
                if !seen.insert(child) || table.columns.len() > MOST_NESTED + table.names.len() {
                    continue;
                }
                let path = match node.name() {
                    Some(name) => shown::member_path(&path, &name),
                    None => format!("{path}[*]"),
                };
                if node.column.filled() > 0 || id == item {
                    table.columns.push((path.clone(), &node.column));
                }
                queue.push_back((child, path));
            }
        }
    }

    fn samples(&self, value: Value<'d>, item: NodeId, mode: Mode, header: bool, table: &Table<'_>) -> Vec<Sample> {
        let skipped = usize::from(header);
        let rows = value.len() - skipped;
        let wanted = sample_rows(rows);
        let mut samples: Vec<Sample> = Vec::new();
        let deep = table.is_deep();
        let mut take = |number: usize, key: Option<Value<'d>>, row: Value<'d>| {
            if wanted.contains(&number) {
                let mut sample = sample(number, key, row, &table.names);
                if deep {
                    let key = key.map(|key| format!("{}:", shown::key(&key.plain())));
                    let name = self.profile.naming(item).and_then(|keys| below(row, &keys)).map(|name| name.span());
                    let mut leaves = varying(row, table);
                    leaves.sort_by_key(|(_, value)| Some(value.span()) != name);
                    let leaves = leaves.into_iter().map(|(path, value)| format!("{path}={}", shown::cell(value, CELL)));
                    sample.entries = key.into_iter().chain(leaves).collect();
                    sample.values.clear();
                }
                samples.push(sample);
            }
        };
        if mode == Mode::Map {
            for (number, (key, row)) in value.members().enumerate() {
                take(number, Some(key), row);
            }
        } else {
            for (number, row) in value.items().skip(skipped).enumerate() {
                take(number, None, row);
            }
        }
        let order = |number: usize| wanted.iter().position(|one| *one == number);
        samples.sort_by_key(|sample| order(sample.number));
        samples
    }
}

/// The part of a name after its last dot, as of a file.
fn ending(name: &str) -> Option<&str> {
    let (stem, ending) = name.rsplit_once('.')?;
    let short = (1..=ENDING).contains(&ending.len()) && ending.chars().all(char::is_alphanumeric);
    (short && !stem.is_empty()).then_some(ending)
}

/// Finds the names of columns among the members of an object.
struct Beside<'d> {
    around: Value<'d>,
    by_width: FxHashMap<usize, Option<Value<'d>>>,
}

impl<'d> Beside<'d> {
    fn of(around: Value<'d>) -> Self {
        Self { around, by_width: FxHashMap::default() }
    }

    /// The names of the columns of `rows`, from a sibling: as many texts as there are columns, all different, or
    /// objects with a name.
    fn names(&mut self, rows: Value<'d>) -> Option<Value<'d>> {
        if mode(rows) != Mode::Rows || has_header(rows) {
            return None;
        }
        let (around, width) = (self.around, rows.at(0)?.len());
        *self.by_width.entry(width).or_insert_with(|| {
            around.members().map(|(_, names)| names).find(|names| {
                if names.kind() != Kind::Array || names.len() != width {
                    return false;
                }
                let distinct: BTreeSet<String> = names.items().map(name_of).filter(|name| !name.is_empty()).collect();
                distinct.len() == width && mode(*names) != Mode::Rows
            })
        })
    }
}

/// The name of a column in an entry of a list of names.
fn name_of(entry: Value<'_>) -> String {
    match entry.kind() {
        Kind::String => entry.plain().into_owned(),
        Kind::Object => entry
            .get("name")
            .filter(|name| name.kind() == Kind::String)
            .map_or_else(String::new, |name| name.plain().into_owned()),
        _ => String::new(),
    }
}

/// The values below the rows of a table, array by array in document order: `[2].tags: a, b`, `[2].lines[*].sku: x, y`.
fn inner(section: &Section<'_>, place: u32, delay: u32) -> Pieces {
    let mut pieces = Vec::new();
    // With each value, whether its scalars are listed: those of rows and of items have columns.
    let mut queue: VecDeque<(Value<'_>, String, bool)> = VecDeque::new();
    if mode(section.value) == Mode::Map {
        let rows = section.value.members().take(MOST_ITEMS);
        queue.extend(rows.map(|(key, row)| (row, shown::member_path(&section.path, &key.plain()), false)));
    } else {
        queue.extend(indexed(section.value, &section.path));
    }
    let mut visits = 0;
    while let Some((value, path, told)) = queue.pop_front() {
        visits += 1;
        if visits > MOST_VISITS || pieces.len() > MOST_INNER {
            break;
        }
        let mut line = |path: &str, values: Vec<String>, all: usize, later: bool| {
            let (place, head) = (place + u32::try_from(pieces.len()).unwrap_or(0), first_of(path, all, MOST_ITEMS));
            let [least, all] = if later { [rank::MORE_INNER; 2] } else { [rank::INNER, rank::ALL_INNER] };
            pieces.push(Piece::list(place, &head, values, ", ", (delay + least, 12), delay + all));
        };
        match value.kind() {
            Kind::Object => {
                for (key, member) in value.members() {
                    let path = shown::member_path(&path, &key.plain());
                    if member.is_container() {
                        queue.push_back((member, path, true));
                    } else if told {
                        line(&path, vec![shown::value(member, LEAF[0])], 1, false);
                    }
                }
            }
            Kind::Array => {
                if let Some(first) = value.items().find(|item| item.kind() == Kind::Object) {
                    // The first scalar names the item; the second says less.
                    let keys = first.members().filter(|(_, member)| !member.is_container());
                    for ((key, _), later) in keys.zip([false, true]) {
                        let values = value.items().filter_map(|item| item.get(&key.plain()));
                        let path = shown::member_path(&format!("{path}[*]"), &key.plain());
                        line(&path, cells(values), value.len(), later);
                    }
                    queue.extend(indexed(value, &path));
                } else if told && !value.is_empty() {
                    line(&path, cells(value.items()), value.len(), false);
                }
            }
            _ => {}
        }
    }
    pieces
}

fn indexed<'v>(value: Value<'v>, path: &str) -> impl Iterator<Item = (Value<'v>, String, bool)> {
    value.items().take(MOST_ITEMS).enumerate().map(move |(at, item)| (item, format!("{path}[{at}]"), false))
}

/// The keys of an object that are listed.
fn keys(value: Value<'_>) -> Vec<String> {
    value.members().take(MOST_KEYS).map(|(key, _)| shown::key(&key.plain())).collect()
}

/// How a list of the first `most` of `all` entries begins: the number that it leaves out is one of those that it is of.
fn first_of(head: &str, all: usize, most: usize) -> String {
    if all > most { format!("{head}, first {most}: ") } else { format!("{head}: ") }
}

fn cells<'v>(values: impl Iterator<Item = Value<'v>>) -> Vec<String> {
    values.take(MOST_ITEMS).map(|value| shown::cell(value, CELL)).collect()
}

/// The first and last of `rows`, then some spread between them.
pub(super) fn sample_rows(rows: usize) -> Vec<usize> {
    let mut wanted: Vec<usize> = Vec::new();
    let spread = (1..SAMPLES).map(|step| (rows.saturating_sub(1)) * bit_reversed(step) / 16);
    for number in [0, rows.saturating_sub(1)].into_iter().chain(spread) {
        if number < rows && !wanted.contains(&number) {
            wanted.push(number);
        }
    }
    wanted
}

/// 8, 4, 12, 2, 10, …: sixteenths in an order in which every prefix is spread.
fn bit_reversed(number: usize) -> usize {
    (number & 1) << 3 | (number & 2) << 1 | (number & 4) >> 1 | (number & 8) >> 3
}

fn sample(number: usize, key: Option<Value<'_>>, row: Value<'_>, names: &[String]) -> Sample {
    let mut entries: Vec<String> = Vec::new();
    entries.extend(key.map(|key| format!("{}:", shown::key(&key.plain()))));
    match row.kind() {
        Kind::Object => {
            entries.extend(
                row.members()
                    .take(200)
                    .map(|(key, value)| format!("{}={}", shown::key(&key.plain()), shown::cell(value, CELL))),
            );
        }
        Kind::Array if row.len() == names.len() => {
            entries.extend(
                names.iter().zip(row.items()).map(|(name, value)| format!("{name}={}", shown::cell(value, CELL))),
            );
        }
        _ => entries.push(shown::value(row, LEAF[1])),
    }
    let values = bare_values(key, row, names);
    let written = row.text();
    let verbatim = match key {
        Some(_) => None,
        None if row.kind() == Kind::Array => None,
        None if written.len() <= VERBATIM && written.ends_with('}') && !written.contains(char::is_control) => {
            Some(written.to_owned())
        }
        None => row.minified(VERBATIM),
    };
    Sample { number, entries, values, verbatim }
}

/// The values of a row in the order of the columns, with a dash for a missing value.
fn bare_values(key: Option<Value<'_>>, row: Value<'_>, names: &[String]) -> Vec<String> {
    let shown = |value: Value<'_>| shown::value(value, SHORT_CELL);
    let cells: Vec<String> = match row.kind() {
        // Two very long keys can be shown alike.
        Kind::Object if names.iter().collect::<BTreeSet<_>>().len() < names.len() => return Vec::new(),
        Kind::Object => {
            let mut members: BTreeMap<String, String> =
                row.members().map(|(key, value)| (shown::key(&key.plain()), shown(value))).collect();
            names.iter().map(|name| members.remove(name).unwrap_or_else(|| "–".to_owned())).collect()
        }
        Kind::Array if row.len() == names.len() => row.items().map(shown).collect(),
        _ => return Vec::new(),
    };
    let missing = cells.iter().filter(|cell| *cell == "–").count();
    if missing * 2 > cells.len() {
        return Vec::new();
    }
    let key = key.map(|key| shown::key(&key.plain()));
    key.into_iter().map(|key| format!("{key}:")).chain(cells).collect()
}
