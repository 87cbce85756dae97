//! The unit that routing selects: one tool, agent, skill, resource or prompt, as its source described it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::names::named;

named! {
    /// What kind of thing an item is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
    pub enum Kind {
        /// A callable tool.
        #[default]
        Tool = "tool",
        /// Another agent that takes a task.
        Agent = "agent",
        /// A skill: instructions loaded on demand.
        Skill = "skill",
        /// A readable resource.
        Resource = "resource",
        /// A prompt template.
        Prompt = "prompt",
        /// A navigation node or marker, never callable.
        Internal = "internal",
    }
}

impl Kind {
    /// Whether a model calls it with arguments, so that its definition belongs in a prompt without routing.
    #[must_use]
    pub fn is_callable(self) -> bool {
        matches!(self, Self::Tool | Self::Agent | Self::Skill)
    }
}

/// What a tool declares about the danger of calling it. Declared by its server and verified by nobody: it informs
/// people and ordering, it must not decide what is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Safety {
    /// Nothing was declared.
    #[default]
    #[serde(rename = "")]
    Undeclared,
    /// Declared to change nothing (`readOnlyHint`).
    ReadOnly,
    /// Declared to be able to destroy data (`destructiveHint`); wins over read-only.
    Destructive,
}

impl Safety {
    /// The tag that mirrors the class on items and cards; `None` when nothing was declared.
    #[must_use]
    pub fn tag(self) -> Option<&'static str> {
        match self {
            Self::Undeclared => None,
            Self::ReadOnly => Some("read-only"),
            Self::Destructive => Some("destructive"),
        }
    }
}

/// One selectable item. Valid once it is part of a [`Catalog`](super::Catalog), which checks it.
#[derive(Debug, Clone)]
pub struct SelectableItem {
    /// The catalog key: a canonical id, or one with a `~N` suffix where two primitives shared theirs.
    pub id: String,
    /// What kind of thing this is.
    pub kind: Kind,
    /// The name exactly as its source gave it (for a resource: its name, or its URI when it has none).
    pub name: String,
    /// The namespace of the id, within the id grammar.
    pub namespace: String,
    /// The server name exactly as configured or as the source gave it, when there was one.
    pub server: Option<String>,
    /// What the source says about the whole server, when it does.
    pub server_description: Option<String>,
    /// The version of the item, when its source gives one. It takes no part in ranking, and only some forms have it in the
    /// id too.
    pub version: Option<String>,
    /// The version of the whole server, agent or API, when the source gives one.
    pub server_version: Option<String>,
    /// What the item does; empty when the source said nothing.
    pub description: String,
    /// Sorted, without repeats. `read-only` and `destructive` mirror [`Self::safety`].
    pub tags: Vec<String>,
    /// JSON Schema of the arguments, an object; `None` when none was given. Those of a prompt are made from its
    /// argument list.
    pub args_schema: Option<Arc<Value>>,
    /// JSON Schema of the structured result, an object; `None` when none was given.
    pub output_schema: Option<Arc<Value>>,
    /// What it declares about its danger.
    pub safety: Safety,
    /// Whether a call may change something: true unless declared read-only. For people, not for authorization.
    pub side_effects: bool,
    /// Relative cost of a call, 0 when unknown; never negative or NaN.
    pub cost_hint: f64,
    /// Sample invocations or requests, for retrieval and people; never on cards.
    pub examples: Vec<String>,
    /// Free-form limits on use (native form only).
    pub constraints: BTreeMap<String, Value>,
    /// Ids of items that should have been called before this one.
    pub depends_on: Vec<String>,
    /// Names of the facts or resources that a call provides.
    pub provides: Vec<String>,
    /// Names of the facts or resources that a call needs.
    pub requires: Vec<String>,
    /// Everything else that the native form or the form of others carries about the item, and the `uri` of a resource;
    /// never on cards.
    pub metadata: BTreeMap<String, Value>,
    /// The MCP definition byte for byte as received (converted to JSON when that was YAML). `None` for items made in
    /// code, and for those of other forms, of which everything is here already.
    pub raw: Option<Arc<RawValue>>,
}

impl SelectableItem {
    /// A tool with the given id, namespace, name and description, and nothing else: for code and tests.
    #[must_use]
    pub fn tool(id: &str, namespace: &str, name: &str, description: &str) -> Self {
        Self {
            id: id.to_owned(),
            kind: Kind::Tool,
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            server: None,
            server_description: None,
            version: None,
            server_version: None,
            description: description.to_owned(),
            tags: Vec::new(),
            args_schema: None,
            output_schema: None,
            safety: Safety::Undeclared,
            side_effects: true,
            cost_hint: 0.0,
            examples: Vec::new(),
            constraints: BTreeMap::new(),
            depends_on: Vec::new(),
            provides: Vec::new(),
            requires: Vec::new(),
            metadata: BTreeMap::new(),
            raw: None,
        }
    }

    /// The definition as its server gave it; where there is none, as [`Self::definition_json`] writes it.
    #[must_use]
    pub fn definition(&self) -> Cow<'_, str> {
        match &self.raw {
            Some(raw) => raw.get().into(),
            None => self.definition_json().into(),
        }
    }

    /// The definition that a model would be shown without routing: one line of compact JSON with the name, the
    /// description and the argument schema, key order as received.
    #[must_use]
    pub fn definition_json(&self) -> String {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Definition<'i> {
            name: &'i str,
            description: &'i str,
            input_schema: &'i Value,
        }
        let any;
        let input_schema = match &self.args_schema {
            Some(schema) => schema.as_ref(),
            None => {
                any = serde_json::json!({"type": "object"});
                &any
            }
        };
        let definition = Definition { name: &self.name, description: &self.description, input_schema };
        // Strings and JSON values always serialise.
        serde_json::to_string(&definition).unwrap_or_default()
    }

    /// Calls `visit` with the name and the description (possibly empty) of every argument: top-level properties
    /// of the argument schema, then nested ones, in schema order.
    pub fn for_each_parameter(&self, mut visit: impl FnMut(&str, &str)) {
        if let Some(schema) = &self.args_schema {
            visit_properties(schema, 0, &mut visit);
        }
    }
}

/// Nesting below this depth says nothing more about what a tool is for.
const PARAMETER_DEPTH: usize = 6;

fn visit_properties(schema: &Value, depth: usize, visit: &mut impl FnMut(&str, &str)) {
    if depth > PARAMETER_DEPTH {
        return;
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, property) in properties {
            visit(name, property.get("description").and_then(Value::as_str).unwrap_or(""));
            visit_properties(property, depth + 1, visit);
        }
    }
    if let Some(items) = schema.get("items") {
        visit_properties(items, depth + 1, visit);
    }
    for combinator in ["anyOf", "oneOf", "allOf"] {
        for part in schema.get(combinator).and_then(Value::as_array).into_iter().flatten() {
            visit_properties(part, depth + 1, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_is_one_line_in_the_order_received() {
        let mut item = SelectableItem::tool("s:a@1", "s", "a \"b\"", "Says\n\u{e9}\u{1}");
        let expected = |schema: &Value| {
            json!({"name": item.name, "description": item.description, "inputSchema": schema}).to_string()
        };
        let schema: Value = serde_json::from_str(r#"{"z": 1.50, "a": {"y": [1e3, null], "b": "\u00e9"}}"#).unwrap();
        let (bare, full) = (expected(&json!({"type": "object"})), expected(&schema));
        assert_eq!(item.definition_json(), bare);
        item.args_schema = Some(Arc::new(schema));
        assert_eq!((item.definition_json(), &*item.definition()), (full.clone(), &*full));
        let received = r#"{"b": 1.50, "name": "x"}"#;
        item.raw = Some(Arc::from(RawValue::from_string(received.to_owned()).unwrap()));
        assert_eq!((item.definition_json(), &*item.definition()), (full, received));
    }
}
