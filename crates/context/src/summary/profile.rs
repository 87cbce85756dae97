//! Gathers statistics of a literal by pattern of path, in one pass.
//!
//! `rows[0].price` and `rows[1].price` are one pattern, whose values form a column. The patterns of a document are a
//! tree of bounded size. A list inside a list of the same name (children of children) is one pattern, so that trees of
//! any depth are described together. Where items that hold tables are described one by one, each has its own patterns:
//! what is said of a table in one of them is not to count the rows in another.

use rustc_hash::{FxHashMap, FxHashSet};

use super::column::Column;
use crate::literal::{Kind, Value};

/// The number of patterns of one document at most; the values of further ones are counted together.
const MOST_PATTERNS: usize = 4096;
/// The number of different keys of one object pattern at most.
const MOST_KEYS: usize = 512;
/// The number of patterns up to which what is there once has patterns of its own.
const MOST_ALONE: usize = 1024;
/// The number of items of one array that have patterns of their own.
const EACH: usize = 64;
/// The number of items up to which an array of objects is described item by item instead of as a table.
const FEW: usize = 2;
/// The number of members from which an object of objects with the same keys is read as rows with names.
const MAP_SIZE: usize = 5;
/// The number of members from which rows may lack some of each other's keys.
const LARGE_MAP: usize = 20;
/// The number of rows that are compared to see whether they are alike.
const COMPARED: usize = 8;
/// The keys that name a row where several texts are different in every row.
pub(super) const NAMING: [&str; 4] = ["name", "title", "id", "key"];

pub(super) type NodeId = usize;

/// The statistics of a document.
#[derive(Debug)]
pub(super) struct Profile<'d> {
    nodes: Vec<Node<'d>>,
    by_step: FxHashMap<(NodeId, &'d str), NodeId>,
    /// The patterns that occur below themselves.
    recursive: FxHashSet<NodeId>,
    /// The greatest depth of arrays and objects inside each other.
    pub(super) depth: usize,
    /// The number of strings, numbers, booleans and nulls.
    pub(super) leaves: usize,
}

#[derive(Debug)]
pub(super) struct Node<'d> {
    parent: NodeId,
    /// The key as it is written; `None` for items.
    key: Option<Value<'d>>,
    step: &'d str,
    pub(super) column: Column,
    children: Vec<NodeId>,
    pub(super) count: usize,
    /// Whether it is the pattern of one value alone, to which keys and items described one by one lead.
    alone: bool,
}

/// How the entries of an array or object are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Members with different meanings.
    Keys,
    /// Similar members: rows with names.
    Map,
    /// Items that are alike.
    Items,
    /// Items that are arrays of one length: rows without names.
    Rows,
    /// The row of names above such rows.
    Header,
    /// Items of such a row: columns.
    Positions,
}

#[derive(Clone, Copy)]
struct Open<'d> {
    value: Value<'d>,
    node: NodeId,
    mode: Mode,
    /// The position of the next entry.
    next: usize,
    /// Whether the first item is a row of names.
    header: bool,
    /// Whether its items have patterns of their own.
    each: bool,
    /// The pattern of entries without names, once there was one.
    item: Option<NodeId>,
}

/// How the entries of `value` are read, taken by itself.
pub(super) fn mode(value: Value<'_>) -> Mode {
    match value.kind() {
        Kind::Object if is_map(value) => Mode::Map,
        Kind::Object => Mode::Keys,
        _ if is_rows(value) => Mode::Rows,
        _ => Mode::Items,
    }
}

/// Whether the items of an array that is no list of scalars are described one by one and not as a table: they are few, or
/// the first of them are scalars.
pub(super) fn is_told_by_item(array: Value<'_>) -> bool {
    let holds_more = |first: usize| array.items().take(first).any(Value::is_container);
    holds_more(EACH) && (array.len() <= FEW || !holds_more(COMPARED))
}

fn is_map(value: Value<'_>) -> bool {
    value.len() >= MAP_SIZE
        && value.items().take(COMPARED).all(|row| row.kind() == Kind::Object)
        && (are_alike(value.items().take(COMPARED), 2) || (value.len() >= LARGE_MAP && is_filled(value)))
}

/// Whether a map holds enough rows, and rows that are alike enough, to be read like a list.
pub(super) fn is_list(map: Value<'_>) -> bool {
    map.len() >= COMPARED && are_alike(map.items(), 4)
}

/// Whether at most one in `part` of the keys of each object is not among those of the first, or the other way round.
fn are_alike<'v>(mut rows: impl Iterator<Item = Value<'v>>, part: usize) -> bool {
    let keys: FxHashSet<&str> = rows.next().into_iter().flat_map(Value::members).map(|(key, _)| key.text()).collect();
    !keys.is_empty()
        && rows.all(|row| {
            let shared = row.members().filter(|(key, _)| keys.contains(key.text())).count();
            shared * part >= row.len().max(keys.len()) * (part - 1)
        })
}

/// Whether the first rows have half of each other's keys on average.
fn is_filled(value: Value<'_>) -> bool {
    let rows = || value.items().take(COMPARED);
    let keys: FxHashSet<&str> = rows().flat_map(Value::members).map(|(key, _)| key.text()).collect();
    !keys.is_empty() && rows().map(Value::len).sum::<usize>() * 2 >= keys.len() * rows().count()
}

fn is_rows(value: Value<'_>) -> bool {
    let mut rows = value.items().take(COMPARED);
    let Some(first) = rows.next() else { return false };
    let width = first.len();
    let scalar =
        |row: Value<'_>| row.kind() == Kind::Array && row.len() == width && !row.items().any(Value::is_container);
    value.kind() == Kind::Array && value.len() > 1 && width > 0 && scalar(first) && rows.all(scalar)
}

/// Whether the first row holds the names of the columns.
pub(super) fn has_header(rows: Value<'_>) -> bool {
    let mut all = rows.items().take(COMPARED + 1);
    let Some(first) = all.next() else { return false };
    let names: Vec<_> = first.items().filter_map(Value::string).collect();
    let named = |name: &str| !name.is_empty() && name.len() <= 80 && !name.starts_with(|c: char| c.is_ascii_digit());
    let distinct: std::collections::BTreeSet<&str> = names.iter().map(AsRef::as_ref).collect();
    let rest: Vec<Value<'_>> = all.collect();
    let repeated = rest.iter().any(|row| row.items().zip(&names).any(|(cell, name)| cell.is_text(name)));
    names.len() == first.len()
        && distinct.len() == names.len()
        && names.iter().all(|name| named(name))
        && !repeated
        && rest.len() > 1
}

impl<'d> Profile<'d> {
    pub(super) fn of(root: Value<'d>) -> Self {
        let mut profile = Self {
            nodes: vec![Node::new(0, "", None, true)],
            by_step: FxHashMap::default(),
            recursive: FxHashSet::default(),
            depth: 0,
            leaves: 0,
        };
        let mut open: Vec<Open<'d>> = Vec::new();
        for visit in root.descendants() {
            open.truncate(visit.depth);
            let (node, mode) = match open.last_mut() {
                None => (0, self::mode(visit.value)),
                Some(outer) => {
                    let found = profile.child_of(outer, visit.key, visit.value);
                    outer.next += 1;
                    found
                }
            };
            if visit.value.is_container() {
                let header = mode == Mode::Rows && has_header(visit.value);
                let each = mode == Mode::Items && profile.has_own_items(node, visit.value);
                profile.depth = profile.depth.max(visit.depth + 1);
                open.push(Open { value: visit.value, node, mode, next: 0, header, each, item: None });
            } else if mode != Mode::Header {
                profile.leaves += 1;
            }
            if mode != Mode::Header
                && let Some(node) = profile.nodes.get_mut(node)
            {
                node.count += 1;
                node.column.add(visit.value);
            }
        }
        profile
    }

    /// The pattern of an entry, and how its own entries are read.
    fn child_of(&mut self, outer: &mut Open<'d>, key: Option<Value<'d>>, value: Value<'d>) -> (NodeId, Mode) {
        match outer.mode {
            Mode::Keys => (self.step(outer, key, value), mode(value)),
            Mode::Items | Mode::Map => {
                let mode = if outer.mode == Mode::Map { Mode::Keys } else { mode(value) };
                let is_own = outer.each && outer.next < EACH;
                let node =
                    if is_own { self.position(outer.node, outer.next, true) } else { self.item_of(outer, value) };
                (node, mode)
            }
            Mode::Rows if outer.next == 0 && outer.header => (outer.node, Mode::Header),
            Mode::Rows => (self.item_of(outer, value), Mode::Positions),
            Mode::Header => (outer.node, Mode::Header),
            Mode::Positions => (self.position(outer.node, outer.next, false), mode(value)),
        }
    }

    /// Whether the items of `array`, whose pattern is `id`, have patterns of their own: where there are tables in several.
    fn has_own_items(&self, id: NodeId, array: Value<'d>) -> bool {
        let is_alone = self.nodes.get(id).is_some_and(|node| node.alone);
        let is_table = |value: Value<'_>| match mode(value) {
            Mode::Map | Mode::Rows => true,
            _ => value.kind() == Kind::Array && value.len() > FEW,
        };
        let inside = || array.descendants().skip(1).take(MOST_PATTERNS).map(|visit| visit.value);
        let holds_tables = || inside().any(|value| value.is_container() && is_table(value));
        is_alone && self.nodes.len() < MOST_ALONE && is_told_by_item(array) && (array.len() == 1 || holds_tables())
    }

    fn item_of(&mut self, outer: &mut Open<'d>, value: Value<'d>) -> NodeId {
        let item = outer.item.unwrap_or_else(|| self.step(outer, None, value));
        outer.item = Some(item);
        item
    }

    fn step(&mut self, outer: &Open<'d>, key: Option<Value<'d>>, value: Value<'d>) -> NodeId {
        let (parent, step) = (outer.node, key.map_or("", Value::text));
        let children = self.children(parent);
        if let Some(&child) = children.get(outer.next)
            && self.nodes.get(child).is_some_and(|node| node.step == step)
        {
            return child;
        }
        if let Some(&child) = self.by_step.get(&(parent, step)) {
            return child;
        }
        let full = self.nodes.len() >= MOST_PATTERNS || children.len() >= MOST_KEYS;
        let (step, key) = if full { ("…", None) } else { (step, key) };
        if full && let Some(&child) = self.by_step.get(&(parent, step)) {
            return child;
        }
        let child = match self.recursion(outer, step, value) {
            Some(ancestor) => {
                self.recursive.insert(ancestor);
                ancestor
            }
            None => {
                let alone = key.is_some() && self.nodes.get(parent).is_some_and(|node| node.alone);
                self.add(parent, step, key, alone && self.nodes.len() < MOST_ALONE)
            }
        };
        self.by_step.insert((parent, step), child);
        child
    }

    fn add(&mut self, parent: NodeId, step: &'d str, key: Option<Value<'d>>, alone: bool) -> NodeId {
        let id = self.nodes.len();
        self.nodes.push(Node::new(parent, step, key, alone));
        if let Some(node) = self.nodes.get_mut(parent) {
            node.children.push(id);
        }
        id
    }

    fn position(&mut self, parent: NodeId, position: usize, alone: bool) -> NodeId {
        match self.nodes.get(parent).and_then(|node| node.children.get(position)) {
            Some(&child) => child,
            None => self.add(parent, "", None, alone),
        }
    }

    /// The pattern above `outer` with the same key and kind of value, if a list is between them and the objects that hold
    /// the key are alike. Items with patterns of their own are no list.
    fn recursion(&self, outer: &Open<'d>, step: &str, value: Value<'d>) -> Option<NodeId> {
        let (mut id, mut listed) = (outer.node, false);
        while id != 0 && !step.is_empty() {
            let node = self.nodes.get(id)?;
            listed |= node.step.is_empty() && !node.alone;
            if listed && node.step == step && node.column.may_hold(value) && self.is_like(outer.value, node.parent) {
                return Some(id);
            }
            id = node.parent;
        }
        None
    }

    /// Whether half of the keys of `object` are among those of the pattern `id`.
    fn is_like(&self, object: Value<'d>, id: NodeId) -> bool {
        let known: FxHashSet<&str> =
            self.children(id).iter().filter_map(|child| self.nodes.get(*child)).map(|node| node.step).collect();
        let shared = object.members().take(MOST_KEYS).filter(|(key, _)| known.contains(key.text())).count();
        shared * 2 >= object.len().min(MOST_KEYS)
    }

    /// The number of keys and lists above the pattern.
    pub(super) fn level(&self, mut id: NodeId) -> usize {
        let mut level = 0;
        while id != 0 {
            id = self.nodes.get(id).map_or(0, |node| node.parent);
            level += 1;
        }
        level
    }

    /// The pattern around a pattern.
    pub(super) fn parent(&self, id: NodeId) -> NodeId {
        self.nodes.get(id).map_or(0, |node| node.parent)
    }

    pub(super) fn node(&self, id: NodeId) -> Option<&Node<'d>> {
        self.nodes.get(id)
    }

    /// All patterns that have a name.
    pub(super) fn named(&self) -> impl Iterator<Item = (NodeId, String)> {
        self.nodes.iter().enumerate().filter_map(|(id, node)| Some((id, node.name()?)))
    }

    /// The pattern of the items of an array, or of the rows of a map.
    pub(super) fn item(&self, id: NodeId) -> Option<NodeId> {
        self.children(id).iter().copied().find(|&child| self.nodes.get(child).is_some_and(|node| node.step.is_empty()))
    }

    /// The pattern of the item at `index` of an array whose items are described one by one.
    pub(super) fn item_at(&self, id: NodeId, index: usize) -> Option<NodeId> {
        let own = self.children(id).get(index.min(EACH)).copied();
        own.filter(|&child| self.nodes.get(child).is_some_and(|node| node.step.is_empty())).or_else(|| self.item(id))
    }

    /// The pattern of the member with `key`.
    pub(super) fn member(&self, id: NodeId, key: Value<'_>) -> Option<NodeId> {
        self.by_step.get(&(id, key.text())).copied()
    }

    /// The keys that lead to the name of a row: to a text that is different in every row, in it or one level below.
    pub(super) fn naming(&self, item: NodeId) -> Option<Vec<String>> {
        let rows = self.node(item)?.count;
        let named = |parent: NodeId| {
            let children = self.children(parent).iter().filter_map(|child| self.node(*child));
            let naming = children.filter(|node| node.count == rows && node.column.is_naming());
            let keys: Vec<String> = naming.filter_map(Node::name).collect();
            let usual = NAMING.iter().find_map(|name| keys.iter().find(|key| key == name));
            usual.or(keys.first()).cloned()
        };
        named(item).map(|key| vec![key]).or_else(|| {
            self.children(item).iter().find_map(|&child| {
                let outer = self.node(child).filter(|node| node.column.is_objects())?.name()?;
                Some(vec![outer, named(child)?])
            })
        })
    }

    pub(super) fn is_recursive(&self, id: NodeId) -> bool {
        self.recursive.contains(&id)
    }

    pub(super) fn children(&self, id: NodeId) -> &[NodeId] {
        self.nodes.get(id).map_or(&[], |node| &node.children)
    }
}

impl<'d> Node<'d> {
    fn new(parent: NodeId, step: &'d str, key: Option<Value<'d>>, alone: bool) -> Self {
        Self { parent, key, step, column: Column::default(), children: Vec::new(), count: 0, alone }
    }

    /// The name of the key; `None` for items.
    pub(super) fn name(&self) -> Option<String> {
        match self.key {
            Some(key) => Some(key.plain().into_owned()),
            None if self.step.is_empty() => None,
            None => Some(self.step.to_owned()),
        }
    }
}
