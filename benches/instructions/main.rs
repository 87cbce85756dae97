//! The hot functions, one a run, for `scripts/instructions`: valgrind counts what is executed inside [`measured`], and the
//! count is the same on a quiet and on a busy machine.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use contextweaver_context::event::{ContextItem, ItemKind, Phase, Selector, ToolOutput, Transcript};
use contextweaver_context::store::MemoryArtifacts;
use contextweaver_context::summary::StructureSummarizer;
use contextweaver_context::view::{Bounds, Cursor, view};
use contextweaver_context::{ContextConfig, Firewall, Memory, Request, compile};
use contextweaver_core::catalog::Catalog;
use contextweaver_core::text::Estimator;
use contextweaver_routing::{ChoiceCard, Index, Router, RoutingConfig, Scratch};

/// The functions by name, in the order of the list.
const NAMES: [&str; 10] = [
    "read-catalog",
    "count-tokens",
    "build-index",
    "analyse-queries",
    "search-by-words",
    "search-with-meaning",
    "cards",
    "summarise-result",
    "select-part",
    "compile-prompt",
];

/// What is counted: everything below this function, and nothing else.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    work();
    // Not a tail call: the function must still be there when the work is done.
    black_box(());
}

fn orders() -> String {
    let order = |number: usize| {
        let state = ["paid", "open", "paid", "refunded", "paid"][number % 5];
        format!(r#"{{"id": {number}, "state": "{state}", "total": {}.50, "city": "Oslo"}}"#, number * 7 % 400)
    };
    format!("[{}]", (0..500).map(order).collect::<Vec<_>>().join(",\n"))
}

fn conversation() -> Result<Transcript, Box<dyn Error>> {
    let mut transcript = Transcript::default();
    for round in 0..60 {
        let call = format!("call{round}");
        let asked = format!("What does checkout report in window {round}?");
        transcript.push(ContextItem::new(format!("user{round}"), ItemKind::UserTurn, asked))?;
        let called = format!("logs.search(window='{round}m', level='ERROR')");
        transcript.push(ContextItem::new(call.as_str(), ItemKind::ToolCall, called))?;
        let result = format!("level=ERROR service=checkout window={round} msg=\"timeout of session {}\"", round * 31);
        transcript.push(ContextItem::new(format!("result{round}"), ItemKind::ToolResult, result).under(call))?;
    }
    Ok(transcript)
}

/// The texts of a queries file.
fn queries(lines: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let text = |line: &str| -> Result<String, Box<dyn Error>> {
        let query: serde_json::Value = serde_json::from_str(line)?;
        Ok(query["query"].as_str().ok_or("a line without a query")?.to_owned())
    };
    lines.lines().map(text).collect()
}

fn run(name: &str) -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gold/workbench");
    let catalog = Arc::new(Catalog::from_json(&std::fs::read_to_string(folder.join("catalog.json"))?)?);
    let words = RoutingConfig { semantic: 0.0, ..RoutingConfig::default() };
    let queries = queries(&std::fs::read_to_string(folder.join("queries.jsonl"))?)?;
    match name {
        "read-catalog" => {
            let text = std::fs::read_to_string(folder.join("catalog.json"))?;
            measured(&mut || drop(black_box(Catalog::from_json(black_box(&text)))));
        }
        "count-tokens" => {
            let text: String = queries.iter().map(|query| format!("{query}\n")).collect();
            measured(&mut || {
                black_box(Estimator::Cl100kBase.count(black_box(&text)));
            });
        }
        "build-index" => {
            let config = RoutingConfig::default();
            measured(&mut || drop(black_box(Index::build(black_box(&catalog), &config))));
        }
        "analyse-queries" => {
            let index = Index::build(&catalog, &words);
            measured(&mut || {
                queries.iter().for_each(|query| drop(black_box(index.analyze(black_box(query.as_str())))));
            });
        }
        "search-by-words" | "search-with-meaning" => {
            let config = if name == "search-by-words" { words } else { RoutingConfig::default() };
            let router = Router::build(catalog, config)?;
            let mut scratch = Scratch::default();
            measured(&mut || {
                queries
                    .iter()
                    .for_each(|query| drop(black_box(router.search(black_box(query.as_str()), 10, &mut scratch))));
            });
        }
        "cards" => measured(&mut || catalog.items().iter().for_each(|item| drop(black_box(ChoiceCard::of(item))))),
        "summarise-result" => {
            let (store, output) = (MemoryArtifacts::default(), ToolOutput::text(orders()));
            let firewall = Firewall::with_defaults(&store);
            measured(&mut || drop(black_box(firewall.result("orders", black_box(&output)))));
        }
        "select-part" => {
            let (text, selector) = (orders(), "json_path:$[?(@.total > 300)].state".parse::<Selector>());
            let selector = selector.or_else(|_| "json_path:$[*].state".parse::<Selector>())?;
            let bounds = Bounds::new(300, 100, Estimator::Cl100kBase);
            let store = MemoryArtifacts::default();
            let kept = Firewall::with_defaults(&store).result("orders", &ToolOutput::text(text.clone()))?;
            let handle = &kept.artifacts.first().ok_or("the result is too small to be kept")?.handle;
            measured(&mut || {
                let part = view(handle, text.as_bytes(), "application/json", &selector, Cursor::default(), bounds);
                drop(black_box(part));
            });
        }
        "compile-prompt" => {
            let (config, store, transcript) = (ContextConfig::default(), MemoryArtifacts::default(), conversation()?);
            let firewall = Firewall::new(&config.firewall, config.estimator, &StructureSummarizer, &store);
            let request = Request::new(Phase::Answer, "checkout timeout");
            measured(&mut || {
                drop(black_box(compile(black_box(&transcript), &Memory::default(), &firewall, &request, &config)));
            });
        }
        other => return Err(format!("no function `{other}`; there are {}", NAMES.join(", ")).into()),
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("--list") | None => println!("{}", NAMES.join("\n")),
        Some(name) => run(name)?,
    }
    Ok(())
}
