//! The sample pool and the routing gold set of the Python project contextweaver.
//!
//! The pool is a table in its source text: namespaces, each with tools as `(name, description, [tags])`. The file of
//! samples that it ships has only a part of them.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::upstream::{RuleError, Upstream, refuse};
use super::super::written::{Asked, Draft, Layout};
use super::python;

const POOL: &str = "contextweaver/src/contextweaver/routing/catalog.py";
const GOLD: &str = "contextweaver/benchmarks/routing_gold.json";
const TABLE: &str = "_SAMPLE_FAMILIES";

#[derive(Deserialize)]
struct Row {
    query: String,
    expected: Vec<String>,
    namespace: String,
}

pub(super) fn build(upstream: &Upstream) -> Result<Draft, RuleError> {
    let table = python::assigned(upstream.text(POOL)?, TABLE).map_err(|reason| refuse(POOL, &reason))?;
    let pool: Map<String, Value> = serde_json::from_value(table).map_err(|error| refuse(POOL, &error))?;
    let mut tools = Vec::new();
    for (namespace, rows) in pool {
        let rows: Vec<(String, String, Vec<String>)> =
            serde_json::from_value(rows).map_err(|error| refuse(POOL, &error))?;
        for (name, description, mut tags) in rows {
            tags.sort_unstable();
            tools.push((format!("{namespace}.{name}"), description, tags, namespace.clone()));
        }
    }
    tools.sort_unstable();
    let tools = tools.into_iter().map(|(id, description, tags, namespace)| {
        let keys = [
            ("name", json!(id)),
            ("description", json!(description)),
            ("tags", json!(tags)),
            ("server", json!(namespace)),
            ("inputSchema", json!({"type": "object"})),
        ];
        keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    });
    let rows: Vec<Row> = upstream.json(GOLD)?;
    let queries = rows.into_iter().zip(0..).map(|(row, number)| {
        let mut asked = Asked::new(format!("cw-{number:03}"), &row.query, row.expected);
        asked.category = Some(row.namespace);
        asked
    });
    Ok(Draft { tools: tools.collect(), queries: queries.collect(), layout: Layout::ValuePerLine })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_is_read_from_the_source_text() {
        let mut upstream = Upstream::default();
        let mut add = |file: &str, text: &str| {
            let (source, path) = file.split_once('/').unwrap();
            upstream.insert(source, path, text.as_bytes().to_vec());
        };
        add(
            POOL,
            "import random\n\n_SAMPLE_FAMILIES: dict[str, list[tuple[str, str, list[str]]]] = {\n    \"search\": [\n        \
             (\"web\", \"Search the web\", [\"web\", \"search\"]),\n    ],\n    \"billing\": [(\"list\", \"List\", []),],\n}\n",
        );
        add(GOLD, r#"[{"query": "look — it up", "expected": ["search.web"], "tags": ["a"], "namespace": "search"}]"#);
        let files = build(&upstream).unwrap().files().unwrap();
        insta::assert_snapshot!(format!("{}\n{}", files.catalog.replace('\n', " "), files.queries), @r#"
        [ { "name": "billing.list", "description": "List", "tags": [], "server": "billing", "inputSchema": { "type": "object" } }, { "name": "search.web", "description": "Search the web", "tags": [ "search", "web" ], "server": "search", "inputSchema": { "type": "object" } } ]
        {"id": "cw-000", "query": "look \u2014 it up", "relevant": ["search.web"], "category": "search"}
        "#);
    }
}
