//! The collection among the tools of many more servers: what a search is asked in a place with everything.
//!
//! `gold/everyday/crowd.json` says which catalogs are those of the collection's own servers, and which tools of others do the same.
//! Such a tool is right as well where the query names no product of the own server.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::COLLECTION;
use crate::eval::collection::{ASKED_FILE, CATALOG_FILE, Collection, Source};
use crate::eval::record::Origin;

/// The file that says what is added.
const FILE: &str = "crowd.json";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Crowd {
    #[serde(rename = "about")]
    _about: String,
    /// Files of catalogs that are left out.
    without: BTreeSet<String>,
    /// Words by which a query names a product of a server, by server.
    products: BTreeMap<String, Vec<String>>,
    /// Tools of other servers that do the same, by tool.
    equivalent: BTreeMap<String, Vec<String>>,
}

impl Crowd {
    /// The tools of others that are right for a query where `tool` is.
    fn others(&self, tool: &str, query: &str) -> &[String] {
        let query = query.to_lowercase();
        let server = tool.split_once(':').map_or(tool, |(server, _)| server);
        let products = self.products.get(server).map_or(&[][..], Vec::as_slice);
        if products.iter().any(|product| query.contains(product)) {
            return &[];
        }
        self.equivalent.get(tool).map_or(&[], Vec::as_slice)
    }
}

/// The collection of the folder `own` with the tools of the folder `catalogs`.
///
/// # Errors
/// A file that cannot be read or is not of its form.
pub(super) fn collection(own: &Path, catalogs: &Path) -> Result<Collection> {
    let crowd: Crowd =
        serde_json::from_slice(&read(&own.join(FILE))?).with_context(|| own.join(FILE).display().to_string())?;
    let mut tools: Vec<Value> = parsed(&own.join(CATALOG_FILE))?;
    let entries = fs::read_dir(catalogs).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut files: Vec<PathBuf> =
        entries.with_context(|| catalogs.display().to_string())?.iter().map(fs::DirEntry::path).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    for file in &files {
        let name = |of: Option<&std::ffi::OsStr>| of.unwrap_or_default().to_string_lossy().into_owned();
        if crowd.without.contains(&name(file.file_name())) {
            continue;
        }
        let listing: Listing = parsed(file)?;
        let server = name(file.file_stem()).replace('.', "_");
        tools.extend(listing.tools.into_iter().map(|mut tool| {
            tool.insert("server".to_owned(), server.as_str().into());
            Value::Object(tool)
        }));
    }
    let queries =
        String::from_utf8(read(&own.join(ASKED_FILE))?).with_context(|| own.join(ASKED_FILE).display().to_string())?;
    let lines: Vec<String> = queries
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| with_others(line, &crowd))
        .collect::<Result<_, _>>()
        .with_context(|| own.join(ASKED_FILE).display().to_string())?;
    let (tools, queries) = (serde_json::to_vec(&tools)?, lines.join("\n"));
    let source = |bytes| Source { path: own, bytes };
    Ok(Collection::from_bytes(COLLECTION, Origin::Public, source(&tools), source(queries.as_bytes()))?)
}

/// The tools of a catalog file.
#[derive(Deserialize)]
struct Listing {
    tools: Vec<Map<String, Value>>,
}

/// The line of a query with what others have for it.
fn with_others(line: &str, crowd: &Crowd) -> serde_json::Result<String> {
    let mut query: Map<String, Value> = serde_json::from_str(line)?;
    let text = query.get("query").and_then(Value::as_str).unwrap_or_default().to_owned();
    let relevant: Vec<String> =
        query.get("relevant").cloned().map(serde_json::from_value).transpose()?.unwrap_or_default();
    let equivalent = query.entry("equivalent").or_insert_with(|| json!({}));
    for tool in relevant {
        let others = crowd.others(&tool, &text);
        let known = equivalent.as_object().and_then(|known| known.get(&tool)).cloned();
        let mut all: Vec<String> = known.map(serde_json::from_value).transpose()?.unwrap_or_default();
        all.extend(others.iter().filter(|other| !all.contains(other)).cloned().collect::<Vec<_>>());
        if !all.is_empty() {
            equivalent[tool.as_str()] = all.into();
        }
    }
    serde_json::to_string(&query)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

fn parsed<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T> {
    serde_json::from_slice(&read(path)?).with_context(|| path.display().to_string())
}
