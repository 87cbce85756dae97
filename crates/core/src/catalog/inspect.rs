//! What is in a catalog and what it costs: counts and exact tokens.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::Serialize;

use super::{Catalog, Kind, Safety, SelectableItem};
use crate::text::Estimator;

/// What a catalog holds. Tokens are those of a prompt without routing: the definition of every callable item as one
/// line of compact JSON; resources and prompts are in no such prompt and cost nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InspectReport {
    /// The estimator of all counts here.
    pub estimator: Estimator,
    /// The number of items of all kinds.
    pub items: usize,
    /// Items of each kind that occurs.
    pub kinds: BTreeMap<Kind, usize>,
    /// Tokens of all definitions together.
    pub tokens: usize,
    /// Every namespace, in order of the namespace.
    pub servers: Vec<ServerSummary>,
    /// Every callable item, the largest first, then by id.
    pub tools: Vec<ItemTokens>,
    /// What the callable items declare about their danger.
    pub safety: SafetyCounts,
    /// Which of the callable items have schemas.
    pub schemas: SchemaCounts,
    /// Callable items with a version of their own.
    #[serde(skip_serializing_if = "is_zero")]
    pub versions: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The items of one namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerSummary {
    /// The namespace that these items share.
    pub namespace: String,
    /// The server as its source calls it; `None` when the namespace was inferred.
    pub server: Option<String>,
    /// Its version, when the source gives one; several are joined with commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The number of callable items (see [`Kind::is_callable`]).
    pub tools: usize,
    /// The number of resources.
    pub resources: usize,
    /// The number of prompts.
    pub prompts: usize,
    /// Tokens of the definitions.
    pub tokens: usize,
}

/// What one item costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ItemTokens {
    /// The id of the item.
    pub id: String,
    /// Tokens of its definition and the line feed after it.
    pub tokens: usize,
}

/// Items by what they declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SafetyCounts {
    /// Declared to change nothing.
    pub read_only: usize,
    /// Declared to be able to destroy data.
    pub destructive: usize,
    /// Declared to be neither.
    pub undeclared: usize,
}

/// Items by their schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SchemaCounts {
    /// With an argument schema.
    pub arguments: usize,
    /// With a schema of the structured result.
    pub results: usize,
    /// Parameters of all argument schemas, nested ones included.
    pub parameters: usize,
    /// Parameters among them that have a description.
    pub described_parameters: usize,
}

/// Counts the items of `catalog` and their tokens.
#[must_use]
pub fn inspect(catalog: &Catalog, estimator: Estimator) -> InspectReport {
    let items = catalog.items();
    let tokens: Vec<usize> = items.par_iter().map(|item| definition_tokens(item, estimator)).collect();
    let mut report = InspectReport {
        estimator,
        items: items.len(),
        kinds: BTreeMap::new(),
        tokens: tokens.iter().sum(),
        servers: Vec::new(),
        tools: Vec::new(),
        safety: SafetyCounts::default(),
        schemas: SchemaCounts::default(),
        versions: 0,
    };
    let versions = server_versions(items);
    let mut servers: BTreeMap<&str, ServerSummary> = BTreeMap::new();
    for (item, tokens) in items.iter().zip(tokens) {
        *report.kinds.entry(item.kind).or_default() += 1;
        let server = servers.entry(&item.namespace).or_insert_with(|| ServerSummary {
            namespace: item.namespace.clone(),
            server: item.server.clone(),
            version: versions.get(item.namespace.as_str()).and_then(joined),
            tools: 0,
            resources: 0,
            prompts: 0,
            tokens: 0,
        });
        match item.kind {
            Kind::Resource => server.resources += 1,
            Kind::Prompt => server.prompts += 1,
            Kind::Internal => {}
            Kind::Tool | Kind::Agent | Kind::Skill => {
                server.tools += 1;
                server.tokens += tokens;
                report.tools.push(ItemTokens { id: item.id.clone(), tokens });
                count_safety(&mut report.safety, item);
                count_schemas(&mut report.schemas, item);
                report.versions += usize::from(item.version.is_some());
            }
        }
    }
    report.servers = servers.into_values().collect();
    report.tools.sort_by(|left, right| right.tokens.cmp(&left.tokens).then_with(|| left.id.cmp(&right.id)));
    report
}

/// Tokens that the definition of an item takes in a prompt without routing; none of a resource or prompt.
#[must_use]
pub fn definition_tokens(item: &SelectableItem, estimator: Estimator) -> usize {
    if item.kind.is_callable() { estimator.count(&(item.definition_json() + "\n")) } else { 0 }
}

/// The versions of the servers in each namespace that occurs.
pub(super) fn server_versions(items: &[SelectableItem]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for item in items {
        versions.entry(&item.namespace).or_default().extend(item.server_version.as_deref());
    }
    versions
}

/// Versions as one text; `None` when there is none.
pub(super) fn joined(versions: &BTreeSet<&str>) -> Option<String> {
    (!versions.is_empty()).then(|| versions.iter().copied().collect::<Vec<_>>().join(", "))
}

fn count_safety(counts: &mut SafetyCounts, item: &SelectableItem) {
    match item.safety {
        Safety::ReadOnly => counts.read_only += 1,
        Safety::Destructive => counts.destructive += 1,
        Safety::Undeclared => counts.undeclared += 1,
    }
}

fn count_schemas(counts: &mut SchemaCounts, item: &SelectableItem) {
    counts.arguments += usize::from(item.args_schema.is_some());
    counts.results += usize::from(item.output_schema.is_some());
    item.for_each_parameter(|_, description| {
        counts.parameters += 1;
        counts.described_parameters += usize::from(!description.trim().is_empty());
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_is_counted() {
        let described =
            json!({"type": "object", "properties": {"a": {"description": "A"}, "b": {"properties": {"c": {}}}}});
        let tools = [
            json!({"name": "get", "description": "Gets", "annotations": {"readOnlyHint": true}, "inputSchema": described}),
            json!({"name": "wipe", "annotations": {"destructiveHint": true}, "outputSchema": {}}),
            json!({"name": "x", "server": "Other", "description": "Does something else"}),
        ];
        let mut items = Catalog::from_values(&tools, Some("s")).unwrap().items().to_vec();
        let kinds = [("p", Kind::Prompt), ("r", Kind::Resource), ("n", Kind::Internal), ("g", Kind::Agent)];
        items.extend(kinds.map(|(id, kind)| SelectableItem { kind, ..SelectableItem::tool(id, "s", id, "words") }));
        let catalog = Catalog::new(items).unwrap();
        let report = inspect(&catalog, Estimator::Cl100kBase);
        insta::assert_snapshot!(serde_json::to_string_pretty(&report).unwrap(), @r#"
        {
          "estimator": "cl100k_base",
          "items": 7,
          "kinds": {
            "tool": 3,
            "agent": 1,
            "resource": 1,
            "prompt": 1,
            "internal": 1
          },
          "tokens": 82,
          "servers": [
            {
              "namespace": "other",
              "server": "Other",
              "tools": 1,
              "resources": 0,
              "prompts": 0,
              "tokens": 18
            },
            {
              "namespace": "s",
              "server": null,
              "tools": 3,
              "resources": 1,
              "prompts": 1,
              "tokens": 64
            }
          ],
          "tools": [
            {
              "id": "s:get#afd9c598",
              "tokens": 34
            },
            {
              "id": "other:x#a32362d4",
              "tokens": 18
            },
            {
              "id": "g",
              "tokens": 16
            },
            {
              "id": "s:wipe#bb6cf94e",
              "tokens": 14
            }
          ],
          "safety": {
            "read_only": 1,
            "destructive": 1,
            "undeclared": 2
          },
          "schemas": {
            "arguments": 1,
            "results": 1,
            "parameters": 3,
            "described_parameters": 1
          }
        }
        "#);
        // Without versions nothing is said of them; of a server, each is named once.
        let tool = |name: &str, version: &str| json!({"name": name, "version": 2, "serverVersion": version});
        let tools = [tool("a", "1.1"), tool("b", "1.0"), tool("c", "1.1")];
        let of = inspect(&Catalog::from_values(&tools, Some("s")).unwrap(), Estimator::Cl100kBase);
        assert_eq!((of.servers[0].version.as_deref(), of.versions), (Some("1.0, 1.1"), 3));
        let line = r#"{"name":"wipe","description":"","inputSchema":{"type":"object"}}"#.to_owned() + "\n";
        let wipe = report.tools.iter().find(|tool| tool.id.contains("wipe")).unwrap();
        assert_eq!(wipe.tokens, Estimator::Cl100kBase.count(&line));
        assert_eq!(report.tokens, report.servers.iter().map(|server| server.tokens).sum::<usize>());
    }
}
