//! The MCP gateway inside a program, before a server of this process: `cargo run --example embed_gateway`.
//!
//! In place of the server's tools a client sees three: find, call, look into results. Other servers come in by
//! `Target::Stdio` and `Target::Http`, or from a file by `GatewayConfig::load`.

use std::error::Error;

use contextweaver::GatewayConfig;
use contextweaver::gateway::upstream::{DuplicateTool, InProcess, Tool, Toolset};
use contextweaver::gateway::wire::Raw;
use contextweaver::gateway::{LocalClient, Target, UpstreamConfig};
use serde_json::{Value, json};

/// A server with two hundred tools, each of which looks up one kind of thing.
fn warehouse() -> Result<Toolset, DuplicateTool> {
    let things =
        ["order", "invoice", "parcel", "customer", "supplier", "contract", "return", "shelf", "pallet", "route"];
    let tool = |number: usize| {
        let (thing, part) = (things[number % things.len()], number / things.len());
        let name = format!("find_{thing}_{part}");
        let schema = json!({"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]});
        let description = format!("Find a {thing} of warehouse {part} by its number.");
        Tool::new(name.clone(), description, schema, move |arguments| {
            Ok(format!("{name} {}: in stock", arguments["number"]).into())
        })
    };
    Toolset::new("warehouse", "1", (0..200).map(tool))
}

fn text_of(result: &Raw) -> Result<String, serde_json::Error> {
    let result: Value = result.read()?;
    Ok(result["content"][0]["text"].as_str().unwrap_or_default().to_owned())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut config = GatewayConfig::default();
    let server = UpstreamConfig::new(Target::InProcess(InProcess::new(warehouse()?)));
    config.upstreams.insert("warehouse".to_owned(), server);
    config.top_k = 3;

    let client = LocalClient::start(config)?;
    for tool in client.tools().map_err(|error| error.message)? {
        let tool: Value = serde_json::from_str(tool.get())?;
        println!("a client sees {}", tool["name"]);
    }
    let ask = |tool: &str, arguments: Value| client.call(tool, &arguments).map_err(|error| error.message);
    let found = ask("tool_browse", json!({"query": "find the parcel in warehouse 7"}))?;
    println!("\ntool_browse:\n{}", text_of(&found)?);
    // Each line starts with the id that `tool_execute` takes.
    let text = text_of(&found)?;
    let id = text.split(' ').next().unwrap_or_default();
    let called = ask("tool_execute", json!({"tool_id": id, "args": {"number": 42}}))?;
    println!("\ntool_execute:\n{}", text_of(&called)?);
    let wrong = ask("tool_execute", json!({"tool_id": id, "args": {"number": "forty"}}))?;
    println!("\ntool_execute with an argument of the wrong type:\n{}", text_of(&wrong)?);
    Ok(())
}
