//! Tools whose code is in this process, as a server that the gateway has in front of it.
//!
//! The protocol is spoken here, so that a tool is a definition and a function. What stands before every tool of a server
//! stands before these too: arguments are checked against the schema, policies and limits hold, large results are kept.
//! There are no tools of our own here.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::fault::Fault;
use super::in_process::{Answer, Stop};
use crate::protocol::message::{INVALID_PARAMS, METHOD_NOT_FOUND, Raw, RpcError};
use crate::protocol::versions::LEGACY_VERSIONS;

/// A function that answers at once.
type Quick = dyn Fn(&Map<String, Value>) -> Result<Value, String> + Send + Sync;

/// A function that is told when to end.
type Long = dyn Fn(&Map<String, Value>, &Stop) -> Result<Value, String> + Send + Sync;

/// What a tool does with its arguments.
enum Function {
    /// At once.
    Quick(Box<Quick>),
    /// In a while.
    Long(Box<Long>),
}

/// A tool: what is said of it, and the function that is called.
pub struct Tool {
    name: String,
    definition: Map<String, Value>,
    function: Function,
}

impl Tool {
    /// A tool whose arguments fit `input_schema`, a JSON Schema of an object.
    ///
    /// The function gets arguments that fit. A text that it gives is the result as it is, and where the tool has an
    /// `outputSchema` the member `result` of the structured content; another value is the result as JSON, and structured
    /// content where it is an object. Its error is a result that says that the tool failed, for the model to read. It is
    /// called from many calls at once and must not wait: what it does, the runtime waits for.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
        function: impl Fn(&Map<String, Value>) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        Self::of(name.into(), description.into(), input_schema, Function::Quick(Box::new(function)))
    }

    /// The same for a function that may take long: it is called beside the runtime, when the turn of the caller comes, and
    /// must end soon after what it gets as its second argument is due.
    #[must_use]
    pub fn long(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
        function: impl Fn(&Map<String, Value>, &Stop) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        Self::of(name.into(), description.into(), input_schema, Function::Long(Box::new(function)))
    }

    fn of(name: String, description: String, input_schema: Value, function: Function) -> Self {
        let definition =
            [("name", name.as_str().into()), ("description", description.into()), ("inputSchema", input_schema)];
        let definition = definition.map(|(member, value): (&str, Value)| (member.to_owned(), value));
        Self { name, definition: definition.into_iter().collect(), function }
    }

    /// The same with another member of a tool of MCP: `outputSchema`, `annotations`, or `tags`, the capabilities by which a
    /// policy and a search take or leave it.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.definition.insert(member.to_owned(), value.into());
        self
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tool").field("definition", &self.definition).finish_non_exhaustive()
    }
}

/// Two tools of a [`Toolset`] have one name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two tools are called `{0}`; give one of them another name")]
pub struct DuplicateTool(pub String);

/// The tools of a server, by their names.
#[derive(Debug)]
pub struct Toolset {
    name: String,
    version: String,
    tools: BTreeMap<String, Tool>,
}

impl Toolset {
    /// A server of this name and version with these tools.
    ///
    /// # Errors
    /// [`DuplicateTool`]: two have one name.
    pub fn new(
        name: impl Into<String>,
        version: impl Into<String>,
        tools: impl IntoIterator<Item = Tool>,
    ) -> Result<Self, DuplicateTool> {
        let mut by_name = BTreeMap::new();
        for tool in tools {
            if let Some(earlier) = by_name.insert(tool.name.clone(), tool) {
                return Err(DuplicateTool(earlier.name));
            }
        }
        Ok(Self { name: name.into(), version: version.into(), tools: by_name })
    }

    /// A server of our own, whose tools have names of their own each.
    pub(crate) fn of(name: &str, version: &str, tools: impl IntoIterator<Item = Tool>) -> Self {
        let tools = tools.into_iter().map(|tool| (tool.name.clone(), tool)).collect();
        Self { name: name.to_owned(), version: version.to_owned(), tools }
    }

    fn call(&self, params: Option<&Raw>, stop: &Stop) -> Result<Value, RpcError> {
        #[derive(Deserialize)]
        struct Call {
            name: String,
            #[serde(default)]
            arguments: Map<String, Value>,
        }
        let call = params.ok_or_else(|| RpcError::invalid_params("a call has `name` and `arguments`"))?;
        let call: Call = call.read().map_err(RpcError::invalid_params)?;
        let Some(tool) = self.tools.get(&call.name) else {
            return Err(RpcError::new(INVALID_PARAMS, format!("unknown tool: {}", call.name)));
        };
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        let result = match &tool.function {
            Function::Quick(function) => function(&call.arguments),
            Function::Long(function) => function(&call.arguments, stop),
        };
        Ok(match result {
            Ok(Value::String(result)) if tool.definition.contains_key("outputSchema") => {
                json!({"content": text(&result), "structuredContent": {"result": result}})
            }
            Ok(Value::String(result)) => json!({"content": text(&result)}),
            Ok(result @ Value::Object(_)) => {
                json!({"content": text(&result.to_string()), "structuredContent": result})
            }
            Ok(result) => json!({"content": text(&result.to_string())}),
            Err(reason) => json!({"content": text(&reason), "isError": true}),
        })
    }
}

impl Answer for Toolset {
    fn answer(&self, method: &str, params: Option<&Raw>) -> Result<Raw, Fault> {
        self.work(method, params, &Stop::after(Duration::MAX))
    }

    fn takes_long(&self, method: &str) -> bool {
        method == "tools/call" && self.tools.values().any(|tool| matches!(tool.function, Function::Long(_)))
    }

    fn work(&self, method: &str, params: Option<&Raw>, stop: &Stop) -> Result<Raw, Fault> {
        let answer = match method {
            "initialize" => Ok(json!({
                "protocolVersion": LEGACY_VERSIONS[0],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": self.name, "version": self.version},
            })),
            "ping" => Ok(json!({})),
            "tools/list" => {
                let tools: Vec<&Map<String, Value>> = self.tools.values().map(|tool| &tool.definition).collect();
                Ok(json!({ "tools": tools }))
            }
            "tools/call" => self.call(params, stop),
            _ => Err(RpcError::new(METHOD_NOT_FOUND, format!("unknown method: {method}"))),
        };
        answer.map(|answer| Raw::of(&answer)).map_err(Fault::Rpc)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::config::file::GatewayConfig;
    use crate::server::local_client::LocalClient;
    use crate::upstream::config::{Target, UpstreamConfig};
    use crate::upstream::in_process::InProcess;

    fn schema() -> Value {
        json!({"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]})
    }

    fn echo(name: &str) -> Tool {
        Tool::new(name, "Give a number back", schema(), |arguments| Ok(arguments["number"].clone()))
    }

    #[test]
    fn tools_of_one_name_are_refused() {
        let refused = Toolset::new("s", "1", [echo("a"), echo("b"), echo("a")]).unwrap_err();
        assert_eq!(refused.to_string(), "two tools are called `a`; give one of them another name");
    }

    #[test]
    fn what_a_function_gives_is_a_result() {
        let called = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&called);
        let tools = [
            Tool::new("text", "Say a number", schema(), |arguments| Ok(format!("no. {}", arguments["number"]).into())),
            Tool::new("object", "Wrap a number", schema(), |arguments| Ok(json!({"n": arguments["number"]}))),
            Tool::new("fails", "Refuse a number", schema(), |_| Err("there is no such number".to_owned())),
            Tool::new("counts", "Count the calls", schema(), move |_| {
                Ok(Value::from(counted.fetch_add(1, Ordering::Relaxed)))
            })
            .with("annotations", json!({"readOnlyHint": true}))
            .with("tags", json!(["counting"])),
        ];
        let mut config = GatewayConfig::default();
        let server = Toolset::new("numbers", "1", tools).unwrap();
        let target = Target::InProcess(InProcess::new(server));
        config.upstreams.insert("numbers".to_owned(), UpstreamConfig::new(target));
        let client = LocalClient::start(config).unwrap();
        let mut said = String::new();
        let cases = [
            ("text", json!(4)),
            ("object", json!(4)),
            ("fails", json!(4)),
            ("counts", json!(4)),
            ("counts", json!("four")),
            ("none", json!(4)),
        ];
        for (tool, number) in cases {
            let arguments = json!({"tool_id": format!("numbers:{tool}"), "args": {"number": number}});
            let answer: Value = client.call("tool_execute", &arguments).unwrap().read().unwrap();
            let text = answer["content"][0]["text"].as_str().unwrap();
            said += &format!("{tool} {number}: {}{text}\n", if answer["isError"] == true { "! " } else { "" });
        }
        insta::assert_snapshot!(said, @r#"
        text 4: no. 4
        object 4: {"n":4}
        fails 4: ! there is no such number
        counts 4: 0
        counts "four": ! {"error":"ARGS_INVALID","message":"/number: \"four\" is not of type \"integer\"","path":"numbers:counts#b2fedda2","retryable":false,"details":{"violations":[{"path":"/number","reason":"\"four\" is not of type \"integer\""}],"arguments":"{number: integer}","example":{"number":1}}}
        none 4: ! {"error":"HYDRATE_FAILED","message":"no such tool is in the catalog now; the nearest is numbers:object#68a8021c; or find one with tool_browse","path":"numbers:none","retryable":false,"details":{"nearest":["numbers:object#68a8021c","numbers:text#55e277ee","numbers:counts#b2fedda2"]}}
        "#);
        assert_eq!(called.load(Ordering::Relaxed), 1, "arguments that do not fit reach no function");
    }
}
