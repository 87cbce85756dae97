//! `mcp call`: the gateway as a client sees it, from a terminal or a script.
//!
//! It is one session of one client in this process, over the same paths as any other: guards, limits, quotas, and the logs of the
//! configuration count its calls. It can answer no question, so that a call which needs an approval is refused.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::block_on;
use super::chain::{self, Started};
use crate::cli::http::{Told, signals};
use crate::cli::terminal::{line, shown};
use crate::cli::{Format, Outcome, counted, note, print_json};
use contextweaver_core::text::grouped;
use contextweaver_gateway::wire::RpcError;
use contextweaver_gateway::{CatalogFile, Gateway, GatewayConfig, LocalSession, Mode};

/// List or call tools through the gateway, as a client does
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without a TOOL, it lists the tools that a client sees. Arguments of a tool follow its name: NAME=VALUE, repeatable, or \
one JSON object. A VALUE that is JSON counts as such (limit=5, draft=true); quote it twice for a text (id='\"5\"'). \
In mode `gateway`, a TOOL of a server is called through tool_execute. Several tools are called one after the other, in \
one session, until one fails; none is called if one of the names is unknown.

The servers are started, and tools are really called. Exit codes: 0 all calls succeeded, 1 a tool failed, 2 error.

Examples:
  contextweaver mcp call
  contextweaver mcp call tool_browse query='open an issue'
  contextweaver mcp call git_log repo_path=. max_count=3
  contextweaver mcp call git_log '{\"repo_path\": \".\"}' git_status repo_path=.
  contextweaver mcp call --catalog tools.json tool_browse query='open an issue' --format json")]
pub(in crate::cli) struct Args {
    /// A tool, and its arguments behind it; may be repeated
    #[arg(value_name = "TOOL [NAME=VALUE]...")]
    words: Vec<String>,
    #[command(flatten)]
    started: Started,
    /// A catalog file: its tools can be browsed, and called if there are answers
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "client"])]
    catalog: Option<PathBuf>,
    /// The answers to calls of the catalog, JSON
    #[arg(long, value_name = "FILE", requires = "catalog")]
    answers: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A call that was asked for.
#[derive(Debug, PartialEq)]
struct Call {
    tool: String,
    arguments: Map<String, Value>,
}

/// The calls of a command line.
///
/// # Errors
/// Arguments without a tool, or that are no JSON object.
fn calls(words: &[String]) -> Result<Vec<Call>> {
    let mut calls: Vec<Call> = Vec::new();
    for word in words {
        let of_the_last = |calls: &mut Vec<Call>| match calls.pop() {
            Some(call) => Ok(call),
            None => Err(anyhow!("the name of a tool comes before its arguments: `{word}` has none before it")),
        };
        if word.trim_start().starts_with('{') {
            let mut call = of_the_last(&mut calls)?;
            let given: Map<String, Value> =
                serde_json::from_str(word).with_context(|| format!("arguments of {}: no JSON object", call.tool))?;
            call.arguments.extend(given);
            calls.push(call);
        } else if let Some((name, value)) = word.split_once('=') {
            let mut call = of_the_last(&mut calls)?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            call.arguments.insert(name.to_owned(), value);
            calls.push(call);
        } else {
            calls.push(Call { tool: word.clone(), arguments: Map::new() });
        }
    }
    Ok(calls)
}

/// A definition as a client sees it.
#[derive(Debug, Deserialize)]
struct Definition {
    name: String,
    #[serde(default)]
    description: String,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let calls = calls(&args.words)?;
    let config = match &args.catalog {
        Some(path) => {
            let catalog = CatalogFile { path: path.clone(), answers: args.answers.clone() };
            GatewayConfig { catalog: Some(catalog), ..GatewayConfig::default() }
        }
        None => chain::load(&args.started.config.path()?, None, &args.started.client)?.0,
    };
    block_on(async {
        let mut told = Told::from(signals()?);
        let Some(opening) = told.unless_ended(Gateway::begin(config)).await else {
            Gateway::abandoned().await;
            bail!("interrupted");
        };
        let opening = opening.context("the gateway did not start")?;
        let gateway = Arc::clone(opening.gateway());
        let done = told.unless_ended(async {
            opening.open().await.context("the gateway did not start")?;
            serve(&gateway, &calls, args.format, out).await
        });
        let done = done.await;
        gateway.close().await;
        done.unwrap_or_else(|| bail!("interrupted"))
    })
}

/// Makes the calls, or lists the tools where there is none.
async fn serve(gateway: &Arc<Gateway>, calls: &[Call], format: Format, out: &mut dyn Write) -> Result<Outcome> {
    let client = LocalSession::open(Arc::clone(gateway), "contextweaver mcp call").await;
    let client = client.map_err(|error| anyhow!("the handshake failed: {}", error.message))?;
    let listed = client.tools().await.map_err(|error| anyhow!("the tools cannot be listed: {}", error.message))?;
    let tools: Vec<Definition> =
        listed.iter().map(|tool| serde_json::from_str(tool.get())).collect::<Result<_, _>>()?;
    if calls.is_empty() {
        match format {
            Format::Json => print_json(out, "mcp call", &json!({ "tools": listed }))?,
            Format::Text => list(out, &tools)?,
        }
        return Ok(Outcome::Ok);
    }
    let (mode, is_listed) = (gateway.config().mode, |call: &Call| tools.iter().any(|tool| tool.name == call.tool));
    // A word that was meant as an argument is taken for a tool: before it is known that none is, nothing may be called.
    for call in calls.iter().filter(|call| !is_listed(call)) {
        // Where the tools of the servers are listed themselves, their whole ids are taken too.
        let reason = client.find(&call.tool).err().map(|error| error.message().to_owned());
        if let Some(reason) = reason {
            bail!("`{}`: {reason}; nothing was called. An argument of a tool is written NAME=VALUE", shown(&call.tool));
        }
    }
    let (mut results, mut outcome) = (Vec::new(), Outcome::Ok);
    for call in calls {
        // The tools of the servers are behind this one, and it knows their short names too.
        let result = if !is_listed(call) && mode == Mode::Gateway {
            client.call("tool_execute", &json!({"tool_id": call.tool, "args": call.arguments})).await
        } else {
            client.call(&call.tool, &call.arguments).await
        };
        if format == Format::Text && calls.len() > 1 {
            line(out, format_args!("{}:", call.tool))?;
        }
        let failed = match result {
            Ok(result) => {
                let result: Value = result.read()?;
                let failed = result["isError"] == true;
                match format {
                    Format::Text => print(out, &result)?,
                    Format::Json => {
                        results.push(json!({"tool": call.tool, "arguments": call.arguments, "result": result}));
                    }
                }
                failed
            }
            // Earlier calls were made all the same, and their results are shown.
            Err(RpcError { message, .. }) => {
                match format {
                    Format::Text => line(out, format_args!("error: {message}"))?,
                    Format::Json => {
                        results.push(json!({"tool": call.tool, "arguments": call.arguments, "error": message}));
                    }
                }
                true
            }
        };
        if failed {
            outcome = Outcome::Drift;
            break;
        }
    }
    if format == Format::Json {
        print_json(out, "mcp call", &json!({ "results": results }))?;
    }
    Ok(outcome)
}

/// One line for each tool.
fn list(out: &mut dyn Write, tools: &[Definition]) -> Result<()> {
    let widest = tools.iter().map(|tool| tool.name.chars().count()).max().unwrap_or_default().min(40);
    for tool in tools {
        let first = tool.description.trim().lines().next().unwrap_or_default();
        line(out, format_args!("{:<widest$}  {first}", tool.name))?;
    }
    note(&format!("{}; to call one: contextweaver mcp call TOOL NAME=VALUE", counted(tools.len(), "tool")));
    Ok(())
}

/// What a model would read of a result; what is no text is named with its size.
fn print(out: &mut dyn Write, result: &Value) -> Result<()> {
    if result["content"].as_array().is_none_or(Vec::is_empty) && !result["structuredContent"].is_null() {
        line(out, &result["structuredContent"])?;
    }
    for block in result["content"].as_array().into_iter().flatten() {
        if let Some(text) = block["text"].as_str().or(block["resource"]["text"].as_str()) {
            for text in text.lines() {
                // Tabs are harmless, and tables have them.
                let parts: Vec<String> = text.split('\t').map(shown).collect();
                writeln!(out, "{}", parts.join("\t"))?;
            }
            continue;
        }
        let of = if block["resource"].is_object() { &block["resource"] } else { block };
        let what = [&block["type"], &of["mimeType"], &of["uri"]].map(|one| one.as_str().unwrap_or_default());
        let what: Vec<&str> = what.into_iter().filter(|one| !one.is_empty()).collect();
        let data = of["data"].as_str().or(of["blob"].as_str());
        let size = data.map(|data| format!(", {} bytes in base64", grouped(data.len() as u64))).unwrap_or_default();
        line(out, format_args!("[{}{size}]", what.join(" ")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Result<Vec<Call>> {
        calls(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_belong_to_the_tool_before_them() {
        let found = of(&["a", "x=1", "y=one two", r#"z="5""#, "b", r#"{"x": [1], "y": null}"#, "y=true", "c"]).unwrap();
        let found: Vec<(String, Value)> =
            found.into_iter().map(|call| (call.tool, Value::Object(call.arguments))).collect();
        assert_eq!(
            found,
            [
                ("a".to_owned(), json!({"x": 1, "y": "one two", "z": "5"})),
                ("b".to_owned(), json!({"x": [1], "y": true})),
                ("c".to_owned(), json!({})),
            ]
        );
        for (words, expected) in [
            (&["x=1", "a"][..], "the name of a tool comes before its arguments: `x=1` has none before it"),
            (&["a", "{\"x\": }"], "arguments of a: no JSON object: expected value at line 1 column 7"),
        ] {
            assert_eq!(format!("{:#}", of(words).unwrap_err()), expected);
        }
    }

    #[test]
    fn a_result_is_printed_for_people() {
        let result = json!({"content": [
            {"type": "text", "text": "a\tb\n\u{1b}[31mred"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "application/pdf", "blob": "AAAAAAAA"}},
            {"type": "resource_link", "uri": "file:///b", "name": "b"},
        ]});
        let mut out = Vec::new();
        print(&mut out, &result).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
        a	b
        \u{1b}[31mred
        [image image/png, 4 bytes in base64]
        [resource application/pdf file:///a, 8 bytes in base64]
        [resource_link file:///b]
        ");
    }
}
