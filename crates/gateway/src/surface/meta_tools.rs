//! The tools that the gateway offers of its own.

use serde_json::{Value, json};

use super::mode::Mode;
use contextweaver_context::view::drilldown_tool_spec;

/// Queries of one search, at most.
pub(crate) const MOST_QUERIES: usize = 5;

/// A tool of the gateway's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MetaTool {
    Browse,
    Execute,
    View,
    Hydrate,
    ResourceBrowse,
    ResourceRead,
    PromptBrowse,
    PromptGet,
}

impl MetaTool {
    pub(crate) const ALL: [Self; 8] = [
        Self::Browse,
        Self::Execute,
        Self::View,
        Self::Hydrate,
        Self::ResourceBrowse,
        Self::ResourceRead,
        Self::PromptBrowse,
        Self::PromptGet,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Browse => "tool_browse",
            Self::Execute => "tool_execute",
            Self::View => "tool_view",
            Self::Hydrate => "tool_hydrate",
            Self::ResourceBrowse => "resource_browse",
            Self::ResourceRead => "resource_read",
            Self::PromptBrowse => "prompt_browse",
            Self::PromptGet => "prompt_get",
        }
    }

    /// Whether it asks an upstream for something: a call of a tool, or a read of a resource or prompt.
    pub(crate) fn is_call(self) -> bool {
        matches!(self, Self::Execute | Self::ResourceRead | Self::PromptGet)
    }

    /// Whether a client is offered the tool in this mode, where there are resources and prompts or not.
    pub(crate) fn is_offered(self, mode: Mode, resources: bool, prompts: bool) -> bool {
        match (mode, self) {
            (Mode::Passthrough, _) => false,
            (Mode::Gateway, Self::Browse | Self::View) | (_, Self::Execute) => true,
            (Mode::Proxy, Self::Hydrate) => true,
            (Mode::Gateway, Self::ResourceBrowse | Self::ResourceRead) => resources,
            (Mode::Gateway, Self::PromptBrowse | Self::PromptGet) => prompts,
            _ => false,
        }
    }

    /// Whether a call of the tool is answered in this mode. `tool_hydrate` answers in mode `gateway` too, where it is not
    /// offered: three definitions are enough, and `tool_browse` shows arguments.
    pub(crate) fn is_served(self, mode: Mode, resources: bool, prompts: bool) -> bool {
        self.is_offered(mode, resources, prompts) || (mode, self) == (Mode::Gateway, Self::Hydrate)
    }

    /// The tools that a client is offered.
    pub(crate) fn offered(mode: Mode, resources: bool, prompts: bool) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |tool| tool.is_offered(mode, resources, prompts))
    }

    /// The definition as `tools/list` shows it in this mode.
    pub(crate) fn definition(self, mode: Mode) -> Value {
        let (mut description, schema) = self.described();
        // Other modes give results as the upstream gave them, and list what is called.
        if self == Self::Execute && mode != Mode::Gateway {
            description = "Call a listed tool. The arguments are checked against its schema first; when they do not fit, the \
                           answer says what is expected.";
        }
        json!({
            "name": self.name(),
            "description": description,
            "inputSchema": schema,
            "annotations": {"readOnlyHint": self != Self::Execute},
        })
    }

    /// The schema of its arguments.
    pub(crate) fn schema(self) -> Value {
        self.described().1
    }

    /// What it does in mode `gateway`, and the schema of its arguments.
    fn described(self) -> (&'static str, Value) {
        let object = |properties: Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
        let browse = |what: &str| {
            json!({
                "query": {"type": "string", "description": format!("short, in words of its description: finds the best {what}")},
                "path": {"type": "string", "description": "or a path to list instead: `/`, `/namespace`, …"},
                "top_k": {"type": "integer", "minimum": 1, "description": "fewer of them"},
                "cursor": {"type": "string", "description": "goes on with a path"},
            })
        };
        match self {
            Self::Browse => {
                let mut properties = browse("tools");
                properties["queries"] = json!({
                    "type": "array", "items": {"type": "string"}, "maxItems": MOST_QUERIES,
                    "description": "several at once",
                });
                properties["detail"] = json!({
                    "type": "boolean",
                    "description": "also arguments; of a tool_id as query the definition",
                });
                (
                    "Find tools by what they do, or walk the catalog by path. Best: two or three short `queries` in a \
                     tool author's words, like `create issue`. Each line of the answer starts with the tool_id to \
                     give to tool_execute.",
                    object(properties, &[]),
                )
            }
            Self::Execute => (
                "Call a tool found before. The arguments are checked against its schema first; when they do not fit, \
                 the answer says what is expected. Large results come as a summary with the handle of the whole.",
                object(
                    json!({
                        "tool_id": {"type": "string"},
                        "args": {"type": "object", "description": "the tool's arguments"},
                        "dry_run": {"type": "boolean", "description": "check without calling"},
                    }),
                    &["tool_id"],
                ),
            ),
            Self::View => (
                "Look into a stored result by its handle. Ask for as little as answers the question; a long answer \
                 names a cursor to go on with.",
                view_schema(),
            ),
            Self::Hydrate => (
                "The full definition of a tool, with the schema of its arguments.",
                object(json!({"tool_id": {"type": "string"}}), &["tool_id"]),
            ),
            Self::ResourceBrowse => {
                ("Find resources by what they hold, or walk them by path.", object(browse("resources"), &[]))
            }
            Self::ResourceRead => {
                ("Read a resource found before.", object(json!({"resource_id": {"type": "string"}}), &["resource_id"]))
            }
            Self::PromptBrowse => {
                ("Find prompts by what they are for, or walk them by path.", object(browse("prompts"), &[]))
            }
            Self::PromptGet => (
                "Fill in a prompt found before.",
                object(json!({"prompt_id": {"type": "string"}, "args": {"type": "object"}}), &["prompt_id"]),
            ),
        }
    }

    /// Arguments that show how it is called.
    pub(crate) fn example(self) -> Value {
        match self {
            Self::Browse => json!({"queries": ["list open issues", "search issues"]}),
            Self::Execute => json!({"tool_id": "git:git_log", "args": {"repo_path": "."}}),
            Self::View => {
                json!({"handle": "artifact:result:0a1b2c3d4e5f", "selector": {"type": "lines", "start": 0, "end": 20}})
            }
            Self::Hydrate => json!({"tool_id": "git:git_log"}),
            Self::ResourceBrowse => json!({"query": "release notes"}),
            Self::ResourceRead => json!({"resource_id": "resource::docs:readme"}),
            Self::PromptBrowse => json!({"query": "review a change"}),
            Self::PromptGet => json!({"prompt_id": "prompt::git:review", "args": {}}),
        }
    }

    /// The meta-tool called `name`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }
}

/// The selectors are those of the context engine's own tool.
fn view_schema() -> Value {
    drilldown_tool_spec().get_mut("inputSchema").map(Value::take).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_fit_the_definitions() {
        for tool in MetaTool::ALL {
            let validator = jsonschema::validator_for(&tool.schema()).unwrap();
            assert!(validator.is_valid(&tool.example()), "{}", tool.name());
        }
    }

    #[test]
    fn a_proxy_speaks_of_no_tool_that_it_does_not_have() {
        let foreign = ["browse", "view", "handle", "summary"];
        for tool in MetaTool::offered(Mode::Proxy, true, true) {
            let text = tool.definition(Mode::Proxy).to_string();
            assert!(foreign.iter().all(|word| !text.contains(word)), "{text}");
        }
    }
}
