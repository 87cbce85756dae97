//! What a file of events says of each tool, beside what its definition takes; and which tools nobody called.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead};

use serde::Serialize;

use super::event_lines::{BadLines, EventLines, Window};
use crate::telemetry::diagnostics::{Event, EventName};
use contextweaver_core::catalog::{Catalog, ItemTokens, inspect};
use contextweaver_core::text::Estimator;

/// The calls of one tool, or of a resource or prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolRow {
    /// Its id.
    pub tool: String,
    /// Its calls. Answers from the cache count, dry runs do not.
    pub calls: u64,
    /// Those that did not succeed.
    pub failed: u64,
    /// Tokens of the whole results of its server, about; `None` where no event says it.
    pub result_tokens: Option<u64>,
    /// Tokens of what went on to clients.
    pub answer_tokens: Option<u64>,
    /// `cl100k_base` tokens of its definition; `None` where it is not in the catalog.
    pub definition_tokens: Option<u64>,
}

impl ToolRow {
    fn new(tool: &str, definition: Option<&ItemTokens>) -> Self {
        Self {
            tool: tool.to_owned(),
            calls: 0,
            failed: 0,
            result_tokens: None,
            answer_tokens: None,
            definition_tokens: definition.map(|definition| definition.tokens as u64),
        }
    }

    fn add(&mut self, event: &Event) {
        let sum = |sum: Option<u64>, more: Option<u64>| match more {
            Some(more) => Some(sum.unwrap_or_default().saturating_add(more)),
            None => sum,
        };
        self.calls += 1;
        self.failed += u64::from(!event.success);
        self.result_tokens = sum(self.result_tokens, event.tokens("result_tokens"));
        self.answer_tokens = sum(self.answer_tokens, event.tokens("answer_tokens"));
    }
}

/// The tools of a catalog that no event is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NeverCalled {
    /// The tools, the largest definition first, then by id.
    pub tools: Vec<ItemTokens>,
    /// `cl100k_base` tokens of their definitions.
    pub tokens: u64,
    /// Tokens of all definitions of the catalog.
    pub of_tokens: u64,
}

/// The tools that were called, and those that were not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolRows {
    /// The tools that were called, that with the most calls first, then by id.
    pub items: Vec<ToolRow>,
    /// The tools that were never called; `None` without a catalog.
    pub never_called: Option<NeverCalled>,
    /// Lines that are not events.
    #[serde(flatten)]
    pub bad: BadLines,
}

impl ToolRows {
    /// Counts the calls of a file of events within `window` by tool, and compares them with the tools of a catalog.
    ///
    /// A tool of which the definition has changed since has another id. Its calls are those of the tool that has the
    /// rest of the id now, if there is one such tool.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(input: impl BufRead, window: &Window, catalog: Option<&Catalog>) -> io::Result<Self> {
        let report = catalog.map(|catalog| inspect(catalog, Estimator::Cl100kBase));
        let known = Known::of(report.as_ref().map_or(&[], |report| &report.tools));
        let (mut lines, mut rows) = (EventLines::of(input, window), BTreeMap::<String, ToolRow>::new());
        while let Some(event) = lines.next()? {
            let Some(id) = event.tool_id.as_deref().filter(|_| is_counted(event.event)) else { continue };
            let definition = known.get(id);
            let id = definition.map_or(id, |definition| &definition.id);
            rows.entry(id.to_owned()).or_insert_with(|| ToolRow::new(id, definition)).add(&event);
        }
        let never_called = report.map(|report| {
            let tools = report.tools.into_iter().filter(|tool| !rows.contains_key(&tool.id));
            let tools: Vec<ItemTokens> = tools.collect();
            let tokens = tools.iter().map(|tool| tool.tokens as u64).sum();
            NeverCalled { tools, tokens, of_tokens: report.tokens as u64 }
        });
        let mut items: Vec<ToolRow> = rows.into_values().collect();
        // A stable sort: among equals the order of the ids stays.
        items.sort_by_key(|row| Reverse(row.calls));
        Ok(Self { items, never_called, bad: lines.into_bad() })
    }

    /// Whether tools were called, and the catalog has none of them.
    #[must_use]
    pub fn knows_none(&self) -> bool {
        !self.items.is_empty() && self.items.iter().all(|row| row.definition_tokens.is_none())
    }
}

/// Whether it counts as a call of the tool that it is about.
fn is_counted(event: EventName) -> bool {
    matches!(event, EventName::ExecuteCompleted | EventName::ExecuteFailed | EventName::ExecuteCacheHit)
}

/// The tools of a catalog by their ids.
struct Known<'t> {
    by_id: HashMap<&'t str, &'t ItemTokens>,
    /// By what stays of an id when the definition changes; `None` where several tools share it.
    by_stable: HashMap<&'t str, Option<&'t ItemTokens>>,
}

impl<'t> Known<'t> {
    fn of(tools: &'t [ItemTokens]) -> Self {
        let mut by_stable = HashMap::new();
        for tool in tools {
            by_stable.entry(without_hash(&tool.id)).and_modify(|shared| *shared = None).or_insert(Some(tool));
        }
        Self { by_id: tools.iter().map(|tool| (tool.id.as_str(), tool)).collect(), by_stable }
    }

    fn get(&self, id: &str) -> Option<&'t ItemTokens> {
        self.by_id.get(id).copied().or_else(|| self.by_stable.get(without_hash(id)).copied().flatten())
    }
}

fn without_hash(id: &str) -> &str {
    id.split('#').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use contextweaver_core::catalog::SelectableItem;

    fn line(tool: &str, event: &str, success: bool, attributes: &str) -> String {
        format!(
            r#"{{"attributes":{{{attributes}}},"duration_ms":1.0,"event":"{event}","namespace":"a","session_id":"s","success":{success},"timestamp":"2026-11-22T12:00:00+00:00","tool_id":"{tool}","version":1}}"#
        ) + "\n"
    }

    fn events() -> String {
        [
            line("a:read#11111111", "execute.completed", true, r#""answer_tokens":10,"result_tokens":500"#),
            line("a:read#22222222", "execute.cache_hit", true, r#""answer_tokens":10,"result_tokens":500"#),
            line("a:find#11111111", "execute.failed", false, r#""answer_tokens":5,"code":"ARGS_INVALID""#),
            line("a:find#11111111", "execute.completed", false, r#""tool_error":true"#),
            line("a:find#11111111", "execute.completed", true, ""),
            line("a:drop#11111111", "execute.dry_run", true, ""),
            line("a:drop#11111111", "hydrate.completed", true, ""),
            line("b:gone#11111111", "execute.completed", true, r#""answer_tokens":7,"result_tokens":7"#),
            "torn\n".to_owned(),
        ]
        .concat()
    }

    #[test]
    fn calls_stand_beside_definitions() {
        let tool = |id: &str, description: &str| {
            let name = id.split([':', '#']).nth(1).unwrap();
            SelectableItem::tool(id, "a", name, description)
        };
        let items = vec![
            tool("a:drop#11111111", "Drops"),
            tool("a:find#11111111", "Finds"),
            tool("a:long#11111111", &"long ".repeat(50)),
            tool("a:read#22222222", "Reads"),
        ];
        let catalog = Catalog::new(items).unwrap();
        let tokens: HashMap<String, u64> = inspect(&catalog, Estimator::Cl100kBase)
            .tools
            .into_iter()
            .map(|tool| (tool.id, tool.tokens as u64))
            .collect();
        let rows = ToolRows::read(events().as_bytes(), &Window::all(), Some(&catalog)).unwrap();
        let shown: Vec<String> = rows
            .items
            .iter()
            .map(|row| {
                assert_eq!(row.definition_tokens, tokens.get(&row.tool).copied(), "{row:?}");
                let ToolRow { tool, calls, failed, result_tokens, answer_tokens, .. } = row;
                format!("{tool} {calls} {failed} {result_tokens:?} {answer_tokens:?}")
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        a:find#11111111 3 2 None Some(5)
        a:read#22222222 2 0 Some(1000) Some(20)
        b:gone#11111111 1 0 Some(7) Some(7)
        ");
        assert!(!rows.knows_none());
        let never = rows.never_called.unwrap();
        let ids: Vec<&str> = never.tools.iter().map(|tool| tool.id.as_str()).collect();
        assert_eq!(ids, ["a:long#11111111", "a:drop#11111111"]);
        assert_eq!(never.tokens, tokens["a:long#11111111"] + tokens["a:drop#11111111"]);
        assert_eq!((never.of_tokens, rows.bad.count), (tokens.values().sum(), 1));
    }

    #[test]
    fn without_a_catalog_ids_stay_as_they_are_and_nothing_is_said_of_definitions() {
        let rows = ToolRows::read(events().as_bytes(), &Window::all(), None).unwrap();
        let ids: Vec<&str> = rows.items.iter().map(|row| row.tool.as_str()).collect();
        assert_eq!(ids, ["a:find#11111111", "a:read#11111111", "a:read#22222222", "b:gone#11111111"]);
        assert!(rows.knows_none());
        assert_eq!(rows.never_called, None);
    }
}
