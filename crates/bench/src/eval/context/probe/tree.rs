//! Questions about structured results: tables and trees of values.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Class, Kind, NEEDLES, Probe, draw, excerpt, is_distinctive};
use crate::eval::rng::Rng;
use contextweaver_context::event::Selector;

/// Columns asked about at most.
const COLUMNS: usize = 6;

/// Distinct values of a column that a summary can list.
const LISTED: usize = 8;

/// Names for the rows of a table.
const ROWS: [&str; 10] =
    ["rows", "row", "records", "items", "entries", "elements", "objects", "documents", "results", "values"];

/// A table found in a result.
struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    /// The row numbers that a reader may count, the header row included or not.
    counts: Vec<usize>,
    place: Place,
}

/// How a row is asked for.
enum Place {
    /// Row `n` of the whole.
    Rows,
    /// Element `n + skip` of the array at this pointer.
    Pointer { array: String, skip: usize },
    /// Line number of every row.
    Lines(Vec<usize>),
}

impl Place {
    fn of(&self, row: usize) -> Option<Selector> {
        match self {
            Self::Rows => Some(Selector::Rows { start: row as i64, end: Some(row as i64 + 1) }),
            Self::Pointer { array, skip } => Some(Selector::JsonPath { path: format!("{array}/{}", row + skip) }),
            Self::Lines(lines) => {
                let line = *lines.get(row)? as i64;
                Some(Selector::Lines { start: line, end: Some(line + 1) })
            }
        }
    }
}

/// The questions about a value.
pub(super) fn ask(value: &Value, rng: &mut Rng) -> (Kind, Vec<Probe>) {
    let Some((pointer, table)) = main_table(value) else { return (Kind::Tree, ask_tree(value, rng)) };
    let mut probes = ask_table(&table, rng);
    probes.extend(scalars_beside(value, &pointer).into_iter().take(4));
    probes.extend(errors(value));
    (Kind::Rows, probes)
}

/// The questions about JSON lines.
pub(super) fn ask_lines(values: Vec<(usize, Value)>, rng: &mut Rng) -> (Kind, Vec<Probe>) {
    let (lines, values): (Vec<usize>, Vec<Value>) = values.into_iter().unzip();
    match table(&values, None) {
        Some(found) => (Kind::Rows, ask_table(&Table { place: Place::Lines(lines), ..found }, rng)),
        None => (Kind::Tree, ask_tree(&Value::Array(values), rng)),
    }
}

/// The questions about delimited text, its first row being the header.
pub(super) fn ask_delimited(mut rows: Vec<Vec<String>>, rng: &mut Rng) -> Vec<Probe> {
    let columns = rows.remove(0);
    let cell = |cell: String| match cell.parse::<f64>().ok().and_then(serde_json::Number::from_f64) {
        Some(_) if cell.parse::<i64>().is_ok() => cell.parse::<i64>().map_or(Value::Null, Value::from),
        Some(number) if !cell.starts_with('+') => Value::Number(number),
        _ => Value::String(cell),
    };
    let rows: Vec<Vec<Value>> = rows.into_iter().map(|row| row.into_iter().map(cell).collect()).collect();
    let counts = vec![rows.len(), rows.len() + 1];
    let lines = (1..=rows.len()).collect();
    ask_table(&Table { columns, rows, counts, place: Place::Lines(lines) }, rng)
}

/// The table that makes up most of a value, with its pointer.
fn main_table<'v>(value: &'v Value) -> Option<(String, Table)> {
    let mut best: Option<(usize, String, &'v [Value], Option<&'v Value>)> = None;
    let mut level: Vec<(String, &'v Value, Option<&'v Value>)> = vec![(String::new(), value, None)];
    for _ in 0..4 {
        let mut next = Vec::new();
        for (pointer, value, parent) in level {
            match value {
                Value::Array(items)
                    if best.as_ref().is_none_or(|(size, ..)| items.len() > *size) && items.len() > 1 =>
                {
                    best = Some((items.len(), pointer, items, parent));
                }
                Value::Object(members) => {
                    let member = |(key, member): (&'v String, &'v Value)| {
                        (format!("{pointer}/{}", escaped(key)), member, Some(value))
                    };
                    next.extend(members.iter().map(member));
                }
                _ => {}
            }
        }
        level = next;
    }
    let (_, pointer, items, parent) = best?;
    let mut found = table(items, parent)?;
    let inside: usize = found.rows.iter().map(Vec::len).sum();
    if inside * 10 < leaves(value) * 6 {
        return None;
    }
    if let (Place::Pointer { array, .. }, false) = (&mut found.place, pointer.is_empty()) {
        array.clone_from(&pointer);
    } else if !pointer.is_empty() {
        found.place = Place::Pointer { array: pointer.clone(), skip: 0 };
    }
    Some((pointer, found))
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn leaves(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(leaves).sum(),
        Value::Object(members) => members.values().map(leaves).sum(),
        _ => 1,
    }
}

fn is_nested(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

/// `items` as a table: objects of much the same keys, or arrays of one width, nearly all cells being scalars. `beside`
/// is the object that holds the array, where column names may stand.
fn table(items: &[Value], beside: Option<&Value>) -> Option<Table> {
    if items.len() < 2 {
        return None;
    }
    let found = if items.iter().all(Value::is_object) { of_objects(items) } else { of_arrays(items, beside)? };
    let cells: usize = found.rows.iter().map(Vec::len).sum();
    let nested = found.rows.iter().flatten().filter(|cell| is_nested(cell)).count();
    (nested * 10 <= cells && cells > 0).then_some(found)
}

fn of_objects(items: &[Value]) -> Table {
    let mut columns: Vec<String> = Vec::new();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for key in items.iter().filter_map(Value::as_object).flat_map(|members| members.keys()) {
        if known.insert(key) {
            columns.push(key.clone());
        }
    }
    let row = |item: &Value| columns.iter().map(|column| item.get(column).cloned().unwrap_or_default()).collect();
    let rows: Vec<Vec<Value>> = items.iter().map(row).collect();
    Table { counts: vec![rows.len()], columns, rows, place: Place::Rows }
}

fn of_arrays(items: &[Value], beside: Option<&Value>) -> Option<Table> {
    let mut rows: Vec<Vec<Value>> = items.iter().map(|item| item.as_array().cloned()).collect::<Option<_>>()?;
    let width = rows.first()?.len();
    if width < 2 || rows.iter().any(|row| row.len() != width) {
        return None;
    }
    let names = |cells: &[Value]| -> Option<Vec<String>> {
        cells.iter().map(|cell| cell.as_str().filter(|name| !name.is_empty()).map(str::to_owned)).collect()
    };
    let stated = beside.and_then(|beside| ["columns", "headers", "fields"].iter().find_map(|key| beside.get(key)));
    if let Some(columns) =
        stated.and_then(Value::as_array).and_then(|cells| names(cells)).filter(|names| names.len() == width)
    {
        return Some(Table { counts: vec![rows.len()], columns, rows, place: Place::Rows });
    }
    let numeric_below = rows.iter().skip(1).any(|row| row.iter().any(Value::is_number));
    let header = rows.first().and_then(|row| names(row)).filter(|_| numeric_below && rows.len() > 2);
    let counts = vec![rows.len(), rows.len().saturating_sub(1)];
    match header {
        Some(columns) => {
            rows.remove(0);
            Some(Table { columns, rows, counts, place: Place::Pointer { array: String::new(), skip: 1 } })
        }
        None => Some(Table { columns: Vec::new(), counts: vec![rows.len()], rows, place: Place::Rows }),
    }
}

/// A scalar as every notation writes it; `None` for containers, null and empty texts.
fn shown(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => excerpt(text, 32).to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

fn ask_table(table: &Table, rng: &mut Rng) -> Vec<Probe> {
    let mut probes = Vec::new();
    let counts: Vec<Vec<String>> = table.counts.iter().map(|count| vec![count.to_string()]).collect();
    probes.push(Probe { answers: counts, ..Probe::new(Class::Shape, &ROWS, "") });
    if !table.columns.is_empty() {
        let names: Vec<String> = table.columns.iter().map(|name| excerpt(name, 32).to_owned()).collect();
        probes.push(match names.len() {
            ..=12 => Probe { answers: vec![names], ..Probe::new(Class::Shape, &[], "") },
            count => Probe::new(Class::Shape, &["columns", "fields", "keys", "cols"], count.to_string()),
        });
    }
    let variety = variety(table);
    for row in [0, table.rows.len() - 1] {
        probes.extend(cells(table, row, &variety, Class::Ends, 2));
    }
    for row in draw(rng, table.rows.len(), NEEDLES) {
        let Some(place) = table.place.of(row) else { continue };
        probes.extend(cells(table, row, &variety, Class::Needle, 1).into_iter().map(|probe| probe.at(place.clone())));
    }
    let columns: Vec<usize> = (0..table.columns.len()).take(COLUMNS).collect();
    for column in columns {
        probes.extend(column_probes(table, column));
    }
    probes
}

/// The number of different values in each of the first columns.
fn variety(table: &Table) -> Vec<usize> {
    let distinct = |column: usize| {
        let cells = table.rows.iter().filter_map(|row| row.get(column)).filter_map(shown);
        cells.collect::<BTreeSet<String>>().len()
    };
    (0..table.rows.first().map_or(0, Vec::len).min(8)).map(distinct).collect()
}

/// Cells of a row, each with the row's first cell as its label: those of the columns that vary most, among neighbours
/// of the label, to which they stand close in every notation.
fn cells(table: &Table, row: usize, variety: &[usize], class: Class, most: usize) -> Vec<Probe> {
    let Some(cells) = table.rows.get(row) else { return Vec::new() };
    let mut shown = cells.iter().enumerate().filter_map(|(column, cell)| Some((column, shown(cell)?)));
    let Some((_, label)) = shown.next() else { return Vec::new() };
    let mut near: Vec<(usize, String)> = shown.take(3).filter(|(_, cell)| *cell != label).collect();
    if near.is_empty() {
        return vec![Probe::new(class, &[], label.as_str())].into_iter().filter(|_| is_distinctive(&label)).collect();
    }
    // A flag beside a label says nothing about this row, unless there is nothing else.
    if near.iter().any(|(_, cell)| cell.chars().count() > 1) {
        near.retain(|(_, cell)| cell.chars().count() > 1 || cell.parse::<f64>().is_ok());
    }
    near.sort_by_key(|(column, cell)| {
        std::cmp::Reverse((variety.get(*column).copied().unwrap_or_default(), cell.chars().count()))
    });
    near.into_iter().take(most).map(|(_, cell)| Probe::new(class, &[&label], cell)).collect()
}

fn column_probes(table: &Table, column: usize) -> Vec<Probe> {
    let mut probes = Vec::new();
    let Some(name) = table.columns.get(column) else { return probes };
    let name = excerpt(name, 32);
    let cells = || table.rows.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.is_null());
    let texts: Vec<String> = cells().filter_map(shown).collect();
    if name.is_empty() || texts.len() * 2 < table.rows.len() || texts.len() < 2 {
        return probes;
    }
    // Whole values: excerpts of different texts may be the same.
    let distinct: BTreeSet<String> = cells().filter(|cell| shown(cell).is_some()).map(Value::to_string).collect();
    let numbers: Vec<f64> = cells().filter_map(Value::as_f64).collect();
    if numbers.len() == texts.len() {
        let by_value = |left: &&Value, right: &&Value| {
            left.as_f64().unwrap_or_default().total_cmp(&right.as_f64().unwrap_or_default())
        };
        let ends =
            [cells().min_by(by_value), cells().max_by(by_value)].map(|end| end.and_then(shown).unwrap_or_default());
        probes.push(Probe { answers: vec![ends.to_vec()], ..Probe::new(Class::Stat, &[name], "") });
        // Numbers that never repeat are more often identifiers than quantities, and so are those that are called so.
        let lower = name.to_lowercase();
        let identifies = lower == "id" || lower.ends_with("_id") || name.ends_with("Id");
        if distinct.len() < texts.len() && !identifies {
            probes.push(Probe::new(Class::Sum, &[name], sum(cells())));
        }
    } else if distinct.len() <= LISTED {
        let listed: Vec<String> = texts.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect();
        probes.push(Probe::new(Class::Stat, &[name], distinct.len().to_string()).or(&listed));
    } else if distinct.len() == texts.len() {
        let probe = Probe::new(Class::Stat, &[name], distinct.len().to_string());
        probes.push(["unique", "distinct"].iter().fold(probe, |probe, word| probe.or(&[(*word).to_owned()])));
    } else {
        probes.push(Probe::new(Class::Stat, &[name], distinct.len().to_string()));
    }
    probes
}

/// The sum of numbers: exact for integers, to the cent and beyond for others.
fn sum<'v>(cells: impl Iterator<Item = &'v Value>) -> String {
    let (mut whole, mut real, mut exact) = (0i128, 0.0f64, true);
    for cell in cells {
        match cell.as_i64() {
            Some(integer) => whole += i128::from(integer),
            None => {
                exact = false;
                real += cell.as_f64().unwrap_or_default();
            }
        }
    }
    if exact { whole.to_string() } else { format!("{:.6}", real + whole as f64) }
}

/// Scalars on the way to the table and beside it.
fn scalars_beside(value: &Value, table: &str) -> Vec<Probe> {
    let mut probes = Vec::new();
    let mut here = Some(value);
    let mut steps = table.split('/').skip(1);
    while let Some(Value::Object(members)) = here {
        let scalars = members.iter().filter_map(|(key, member)| Some((key, shown(member)?)));
        probes.extend(scalars.map(|(key, text)| Probe::new(Class::Leaf, &[key], text)));
        here = steps.next().and_then(|step| members.get(&step.replace("~1", "/").replace("~0", "~")));
    }
    probes
}

/// The messages of members called `error` and the like.
fn errors(value: &Value) -> Vec<Probe> {
    let Value::Object(members) = value else { return Vec::new() };
    let message = |key: &str| {
        let member = members.get(key)?;
        let text = member.as_str().or_else(|| member.get("message")?.as_str())?;
        Some(Probe::new(Class::Error, &[key, "message"], excerpt(text, 40)))
    };
    ["error", "errors", "exception"].iter().filter_map(|key| message(key)).collect()
}

/// A scalar in a tree: its pointer, the names that lead to it (the nearest first), and itself.
struct Leaf {
    pointer: String,
    names: Vec<String>,
    text: String,
}

fn ask_tree(value: &Value, rng: &mut Rng) -> Vec<Probe> {
    let mut probes = Vec::new();
    let members: Vec<&Value> = match value {
        Value::Array(items) => {
            probes.push(Probe::new(Class::Shape, &ROWS, items.len().to_string()));
            items.iter().collect()
        }
        Value::Object(members) => {
            let keys: Vec<String> = members.keys().map(|key| excerpt(key, 32).to_owned()).collect();
            probes.push(match keys.len() {
                ..=12 => Probe { answers: vec![keys], ..Probe::new(Class::Shape, &[], "") },
                count => Probe::new(Class::Shape, &["keys", "members", "fields", "entries"], count.to_string()),
            });
            members.values().collect()
        }
        _ => Vec::new(),
    };
    let mut all = Vec::new();
    collect(value, String::new(), &mut Vec::new(), &mut all);
    let end = |leaf: &Leaf, word: &str| {
        let mut labels: Vec<&str> = leaf.names.iter().map(String::as_str).collect();
        labels.push(word);
        Probe::new(Class::Ends, &labels, leaf.text.as_str())
    };
    if members.len() > 1 {
        let top = |leaf: &Leaf| leaf.pointer.split('/').nth(1).map(str::to_owned);
        let last = all.last().and_then(top);
        probes.extend(all.first().map(|leaf| end(leaf, "first")));
        probes.extend(all.iter().find(|leaf| top(leaf) == last).map(|leaf| end(leaf, "last")));
    }
    probes.extend(frequent(&all));
    let mut shallow: Vec<&Leaf> = all.iter().filter(|leaf| pointer_depth(leaf) <= 3 && value.is_object()).collect();
    shallow.sort_by_key(|leaf| pointer_depth(leaf));
    probes.extend(shallow.into_iter().take(4).map(|leaf| named(Class::Leaf, leaf)));
    probes.extend(errors(value));
    // A text that occurs more than once, or has one or two characters, would be found anywhere.
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for leaf in &all {
        *counts.entry(&leaf.text).or_default() += 1;
    }
    let telling = |leaf: &&Leaf| leaf.text.len() > 2 && counts.get(leaf.text.as_str()) == Some(&1);
    let telling: Vec<&Leaf> = all.iter().filter(telling).collect();
    let needles = draw(rng, telling.len(), NEEDLES).into_iter().filter_map(|at| telling.get(at));
    probes.extend(needles.map(|leaf| {
        let place = Selector::JsonPath { path: leaf.pointer.clone() };
        named(Class::Needle, leaf).at(place)
    }));
    probes
}

fn pointer_depth(leaf: &Leaf) -> usize {
    leaf.pointer.matches('/').count()
}

fn named(class: Class, leaf: &Leaf) -> Probe {
    let labels: Vec<&str> = leaf.names.iter().map(String::as_str).collect();
    Probe::new(class, &labels, leaf.text.as_str())
}

fn collect(value: &Value, pointer: String, names: &mut Vec<String>, all: &mut Vec<Leaf>) {
    match value {
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                collect(item, format!("{pointer}/{number}"), names, all);
            }
        }
        Value::Object(members) => {
            // The name of a node names what hangs below it, as a directory does its files.
            let own = ["name", "id", "title"].iter().find_map(|key| members.get(*key)?.as_str());
            for (key, member) in members {
                names.push(key.clone());
                let titled = is_nested(member) && own.is_some();
                if let (true, Some(own)) = (titled, own) {
                    names.push(excerpt(own, 32).to_owned());
                }
                collect(member, format!("{pointer}/{}", escaped(key)), names, all);
                names.truncate(names.len() - 1 - usize::from(titled));
            }
        }
        scalar => {
            if let Some(text) = shown(scalar) {
                // The nearest names; those further up are shared by too much.
                let names = names.iter().rev().filter(|name| **name != text).take(4).cloned().collect();
                all.push(Leaf { pointer, names, text });
            }
        }
    }
}

/// How often the most frequent texts of a key occur, where a key has few.
fn frequent(all: &[Leaf]) -> Vec<Probe> {
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for leaf in all {
        if let Some(key) = leaf.names.first() {
            *counts.entry(key).or_default().entry(&leaf.text).or_default() += 1;
        }
    }
    let mut probes: Vec<(usize, Probe)> = Vec::new();
    for texts in counts.values() {
        let total: usize = texts.values().sum();
        if total >= 10 && (2..=LISTED).contains(&texts.len()) {
            let worded = texts.iter().filter(|(text, _)| text.chars().any(char::is_alphabetic));
            probes.extend(worded.map(|(text, count)| {
                let plural = text.strip_suffix('y').map_or(format!("{text}s"), |stem| format!("{stem}ies"));
                let mut labels = vec![*text, plural.as_str()];
                labels.extend((*text == "directory").then_some("dirs"));
                (*count, Probe::new(Class::Stat, &labels, count.to_string()))
            }));
        }
    }
    probes.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    probes.into_iter().take(4).map(|(_, probe)| probe).collect()
}
