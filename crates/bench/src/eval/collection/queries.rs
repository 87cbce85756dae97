//! The query file: one JSON object per line, and what each names in the catalog.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize};

use contextweaver_core::catalog::Catalog;

use super::super::distinct::distinct;
use super::super::files::without_mark;
use super::{Collection, CollectionError, Source, full_handle, full_handles};

/// One query and the tools that answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Unique in its collection.
    pub id: String,
    /// What the user said; never blank.
    pub text: String,
    /// One group per tool that the query needs, as item numbers: first the named tool, then its declared
    /// equivalents. Empty when no tool answers. No item occurs twice.
    pub groups: Vec<Vec<u32>>,
    /// How the user speaks: in the collections of this project `plain`, `terse`, `chatty`, `typo` or `foreign`.
    pub register: Option<String>,
    /// Language code of the text.
    pub lang: Option<String>,
    /// A label that some public collections give.
    pub category: Option<String>,
}

impl Query {
    /// The first tool that it needs, by which queries are clustered; `None` where no tool answers it.
    #[must_use]
    pub fn first_tool(&self) -> Option<u32> {
        self.groups.first()?.first().copied()
    }
}

/// A line as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: String,
    query: String,
    relevant: Vec<String>,
    #[serde(default, deserialize_with = "by_tool", skip_serializing_if = "BTreeMap::is_empty")]
    equivalent: BTreeMap<String, Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    register: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lang: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    /// A proposal that nobody has looked at yet: `gold draft` writes it, and nothing is measured with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    draft: bool,
}

/// The equivalents of each tool, none of which has two lists.
fn by_tool<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    distinct(deserializer, "`equivalent`: tool")
}

/// The way out for a draft.
const REVIEW: &str = "it is a draft that nobody has reviewed: make `query` what a user would say and `relevant` the tools that \
     answer it, then remove `\"draft\": true`";

/// A query as it is written, with the tools as it names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The line that it is on, from 1.
    pub line: usize,
    /// Unique in its file.
    pub id: String,
    /// What the user said.
    pub text: String,
    /// One group per tool that the query needs: the named tool, then its declared equivalents.
    pub groups: Vec<Vec<String>>,
}

/// The queries of a file that is to be read with more than one catalog. That their tools exist is not checked.
///
/// # Errors
/// [`CollectionError`] for a line that is not a query, asks nothing or has equivalents of a tool that it does not need, and for
/// a draft.
pub fn asked(path: &Path) -> Result<Vec<Asked>, CollectionError> {
    let bytes = super::read(path)?;
    let lines = lines(Source { path, bytes: &bytes })?.into_iter();
    let asked = |(line, mut wire): (usize, Line)| {
        let group = |named: String| {
            let equivalents = wire.equivalent.remove(&named).unwrap_or_default();
            std::iter::once(named).chain(equivalents).collect()
        };
        let groups = wire.relevant.into_iter().map(group).collect();
        Asked { line, id: wire.id, text: wire.query, groups }
    };
    Ok(lines.map(asked).collect())
}

/// The queries of `source`, checked against `catalog`. Blank lines are skipped.
pub(super) fn parse(source: Source, catalog: &Catalog, handles: &[String]) -> Result<Vec<Query>, CollectionError> {
    let names = Names::new(catalog, handles);
    let query = |(line, wire): (usize, Line)| {
        let id = wire.id.clone();
        check(wire, &names).map_err(|reason| refusal(source, line, &id, reason))
    };
    lines(source)?.into_iter().map(query).collect()
}

/// The lines of `source` with their numbers. Their ids are unique, none is a draft or asks nothing, and equivalents are those
/// of a tool that is needed.
fn lines(source: Source) -> Result<Vec<(usize, Line)>, CollectionError> {
    let mut found = Vec::new();
    let mut lines_by_id: BTreeMap<String, usize> = BTreeMap::new();
    for (index, bytes) in without_mark(source.bytes).split(|byte| *byte == b'\n').enumerate() {
        let line = index + 1;
        let refuse = |id: &str, reason: String| refusal(source, line, id, reason);
        let text = std::str::from_utf8(bytes).map_err(|_| refuse("", "the line is not valid UTF-8".to_owned()))?;
        if text.trim().is_empty() {
            continue;
        }
        let wire: Line = serde_json::from_str(text).map_err(|error| refuse("", no_query(text, &error)))?;
        if wire.id.trim().is_empty() {
            return Err(refuse("", "the id is empty".to_owned()));
        }
        if let Some(first) = lines_by_id.insert(wire.id.clone(), line) {
            return Err(refuse(&wire.id, format!("the id was used on line {first} already")));
        }
        if wire.draft {
            return Err(refuse(&wire.id, REVIEW.to_owned()));
        }
        if wire.query.trim().is_empty() {
            return Err(refuse(&wire.id, "the query text is empty".to_owned()));
        }
        if let Some(stray) = wire.equivalent.keys().find(|tool| !wire.relevant.contains(tool)) {
            return Err(refuse(&wire.id, format!("`equivalent` names `{stray}`, which is not in `relevant`")));
        }
        found.push((line, wire));
    }
    if found.is_empty() {
        return Err(CollectionError::NoQueries { path: source.path.to_owned() });
    }
    Ok(found)
}

fn refusal(source: Source, line: usize, id: &str, reason: String) -> CollectionError {
    CollectionError::Query { path: source.path.to_owned(), line, id: id.to_owned(), reason }
}

/// Why a line is not a query. A file in another form is told by its first line.
fn no_query(text: &str, error: &serde_json::Error) -> String {
    match text.trim_start().starts_with('[') {
        true => "it begins a JSON array; write one JSON object per line, without an array around them".to_owned(),
        false if error.is_eof() => {
            "the JSON object does not end on this line; write one JSON object per line".to_owned()
        }
        false => one_line(error),
    }
}

/// The message of a JSON error without its own line number, which is always 1 here.
fn one_line(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at column ")
}

fn check(mut line: Line, names: &Names) -> Result<Query, String> {
    let mut groups = Vec::with_capacity(line.relevant.len());
    let mut used = Vec::new();
    for named in &line.relevant {
        let equivalents = line.equivalent.remove(named).unwrap_or_default();
        let mut group = Vec::with_capacity(1 + equivalents.len());
        for reference in std::iter::once(named).chain(&equivalents) {
            let item = names.resolve(reference)?;
            if used.contains(&item) {
                return Err(listed_twice(reference));
            }
            used.push(item);
            group.push(item);
        }
        groups.push(group);
    }
    let Line { id, query, register, lang, category, .. } = line;
    Ok(Query { id, text: query, groups, register, lang, category })
}

/// Why a query may not name a tool a second time.
pub(crate) fn listed_twice(reference: &str) -> String {
    format!("`{reference}` is listed twice; one tool can stand for one need only")
}

/// Every way in which a query may name a tool.
pub(crate) struct Names<'a> {
    catalog: &'a Catalog,
    handles: &'a [String],
    /// Tool name to the items that have it.
    by_name: BTreeMap<&'a str, Vec<u32>>,
    /// `server:name` and `namespace:name` to the items that have it.
    by_server: BTreeMap<String, Vec<u32>>,
}

impl<'a> Names<'a> {
    /// The names of `catalog`, whose items have these `handles`.
    pub(crate) fn new(catalog: &'a Catalog, handles: &'a [String]) -> Self {
        let mut by_name: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        let mut by_server: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for (item, number) in catalog.items().iter().zip(0u32..) {
            by_name.entry(&item.name).or_default().push(number);
            let namespaced = format!("{}:{}", item.namespace, item.name);
            let full = full_handle(item.server.as_deref(), &item.name);
            if item.server.is_some() && full != namespaced {
                by_server.entry(full).or_default().push(number);
            }
            by_server.entry(namespaced).or_default().push(number);
        }
        Self { catalog, handles, by_name, by_server }
    }

    /// The item that `reference` names; else why there is none, with the way out.
    pub(crate) fn resolve(&self, reference: &str) -> Result<u32, String> {
        let by_name = self.by_name.get(reference).map(Vec::as_slice);
        if let Some(&[item]) = by_name {
            return Ok(item);
        }
        if let Some(&[item]) = self.by_server.get(reference).map(Vec::as_slice) {
            return Ok(item);
        }
        if let Some(item) = self.catalog.position(reference).and_then(|position| u32::try_from(position).ok()) {
            return Ok(item);
        }
        let several = by_name.or_else(|| self.by_server.get(reference).map(Vec::as_slice));
        Err(match several {
            Some(items) => {
                let choices: Vec<&str> = items.iter().map(|item| self.handles[*item as usize].as_str()).collect();
                format!("{} tools are called `{reference}`; write {}", items.len(), choices.join(" or "))
            }
            None => format!("no tool is called `{reference}`; the nearest name is `{}`", self.nearest(reference)),
        })
    }

    /// The name that is nearest, with the namespace in place of a server, as ids and cards have it.
    fn nearest(&self, reference: &str) -> String {
        let full = self.by_server.keys().filter(|_| reference.contains(':')).map(String::as_str);
        let candidates = self.handles.iter().map(String::as_str).chain(full);
        let nearest = candidates.min_by_key(|candidate| (strsim::levenshtein(candidate, reference), *candidate));
        let of_server = nearest.and_then(|nearest| self.by_server.get(nearest));
        let item = of_server.and_then(|items| self.catalog.items().get(*items.first()? as usize));
        let namespaced = item.map(|item| format!("{}:{}", item.namespace, item.name));
        let namespaced = namespaced.filter(|name| self.by_server.get(name) == of_server);
        namespaced.unwrap_or_else(|| nearest.unwrap_or_default().to_owned())
    }
}

/// The queries as a file, one line each, every tool named so that added tools cannot make the name ambiguous.
/// `further` gives the handles of equivalents that a tool has besides the declared ones.
pub(crate) fn to_jsonl<'q>(
    collection: &Collection,
    queries: impl Iterator<Item = &'q Query>,
    further: impl Fn(u32) -> Vec<String>,
) -> String {
    let handles = full_handles(&collection.catalog);
    let handle = |number: u32| handles[number as usize].clone();
    let mut text = String::new();
    for query in queries {
        let mut line = Line {
            id: query.id.clone(),
            query: query.text.clone(),
            relevant: Vec::with_capacity(query.groups.len()),
            equivalent: BTreeMap::new(),
            register: query.register.clone(),
            lang: query.lang.clone(),
            category: query.category.clone(),
            draft: false,
        };
        for group in &query.groups {
            let Some((named, declared)) = group.split_first() else { continue };
            let mut equivalents: Vec<String> = declared.iter().map(|item| handle(*item)).collect();
            equivalents.extend(group.iter().flat_map(|item| further(*item)));
            line.relevant.push(handle(*named));
            if !equivalents.is_empty() {
                line.equivalent.insert(handle(*named), equivalents);
            }
        }
        // Strings, lists and maps with string keys: writing them cannot fail.
        text.push_str(&serde_json::to_string(&line).unwrap_or_default());
        text.push('\n');
    }
    text
}
