//! `demo`: what each engine does, on data that is part of the program.
//!
//! No network, no server and no file is used, and every figure is computed while it runs. Each demo ends with the commands
//! that do the same on the reader's own data.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::Outcome;
use super::price::{PriceArgs, rate, told};
use contextweaver_bench::eval::collection::{Collection, Source};
use contextweaver_bench::eval::engine::RouterEngine;
use contextweaver_bench::eval::record::Origin;
use contextweaver_bench::eval::run::{PromptTokens, evaluate};
use contextweaver_bench::report::number::{count, percent, share};
use contextweaver_context::adapters::from_session_lines;
use contextweaver_context::event::{Phase, ToolOutput};
use contextweaver_context::store::{ArtifactStore, MemoryArtifacts};
use contextweaver_context::summary::StructureSummarizer;
use contextweaver_context::view::{Bounds, Cursor, view};
use contextweaver_context::{ContextConfig, Firewall, Memory, Request as PromptRequest, compile, take_in};
use contextweaver_core::catalog::Catalog;
use contextweaver_core::text::{Estimator, Price};
use contextweaver_gateway::upstream::{Fault, InProcess};
use contextweaver_gateway::wire::Raw;
use contextweaver_gateway::{GatewayConfig, LocalClient, Target, UpstreamConfig};
use contextweaver_routing::{Request, Route, Router, RoutingConfig, Scorer, render_cards};

/// Tools of an office with many servers.
const TOOLS: &str = include_str!("../../gold/workbench/catalog.json");

/// What people ask of them, with the right answers.
const QUERIES: &str = include_str!("../../gold/workbench/queries.jsonl");

/// A conversation about an incident.
pub(super) const CONVERSATION: &str = include_str!("../../scenarios/context/outage.jsonl");

/// What the answer to that conversation needs: two words that belong together.
pub(super) const NEEDED: [(&str, &str); 4] = [
    ("migration", "20261110_add_batch_index"),
    ("lock", "ACCESS EXCLUSIVE"),
    ("backlog", "1 842"),
    ("repair", "7.19.3"),
];

/// What is asked in that conversation.
pub(super) const ASKED: &str = "timeline, cause, decisions, sentence for customers";

/// The tokens of a prompt there.
pub(super) const BUDGET: usize = 6_000;

/// Characters of the longest bar.
const BAR: usize = 40;

/// Show what contextweaver does, in seconds, on built-in data
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It needs no network, server or files; every figure is computed as it runs.

Examples:
  contextweaver demo
  contextweaver demo --price 3
  contextweaver demo huge-output")]
pub(super) struct Args {
    /// What to show
    #[arg(value_enum, default_value_t)]
    demo: Demo,
    #[command(flatten)]
    price: PriceArgs,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Demo {
    /// A whole prompt, without and with contextweaver: many tools and a long conversation
    #[default]
    Killer,
    /// Find the right few of many tools
    LargeCatalog,
    /// Keep a large result out of the prompt, and reach every part of it
    HugeOutput,
    /// Call a tool of a server through the gateway
    Gateway,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let price = args.price.stated()?;
    let price = price.as_ref();
    match args.demo {
        Demo::Killer => killer(price, out)?,
        Demo::LargeCatalog => large_catalog(price, out)?,
        Demo::HugeOutput => huge_output(price, out)?,
        Demo::Gateway => gateway(price, out)?,
    }
    Ok(Outcome::Ok)
}

fn tokens(text: &str) -> usize {
    Estimator::Cl100kBase.count(text)
}

pub(super) fn catalog() -> Result<Arc<Catalog>> {
    Ok(Arc::new(Catalog::from_json(TOOLS)?))
}

/// The tokens of every definition, a line each.
fn definitions(catalog: &Catalog) -> usize {
    catalog.items().iter().map(|item| tokens(&format!("{}\n", item.definition_json()))).sum()
}

/// The cards of a route as one page, and its tokens.
fn page(route: &Route) -> (String, usize) {
    let cards: Vec<_> = route.choices.iter().map(|choice| choice.card.clone()).collect();
    let page = render_cards(&cards);
    let size = tokens(&page);
    (page, size)
}

/// A picture of amounts: a line each, the largest with the longest bar.
fn bars(rows: &[(&str, usize)], unit: &str) -> String {
    let most = rows.iter().map(|(_, value)| *value).max().unwrap_or(1).max(1);
    let name = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let number = rows.iter().map(|(_, value)| count(*value).chars().count()).max().unwrap_or_default();
    let line = |(label, value): &(&str, usize)| {
        let eighths = (value * BAR * 8).div_ceil(most);
        let end = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
        format!("  {label:<name$}  {:>number$} {unit}  {}{end}\n", count(*value), "█".repeat(eighths / 8))
    };
    rows.iter().map(line).collect()
}

/// Says what so many tokens cost, with and without, where a price is stated.
fn costs(out: &mut dyn Write, price: Option<&Price>, with: usize, without: usize) -> Result<()> {
    if let Some(price) = price {
        let (with, without) = (told(price, with), told(price, without));
        writeln!(out, "At {}: {with} instead of {without}, each time that it is sent.", rate(price))?;
    }
    Ok(())
}

fn next(out: &mut dyn Write, commands: [&str; 3]) -> Result<()> {
    writeln!(out, "\nOn your own data:")?;
    commands.iter().try_for_each(|command| writeln!(out, "  {command}"))?;
    Ok(())
}

fn killer(price: Option<&Price>, out: &mut dyn Write) -> Result<()> {
    let catalog = catalog()?;
    let conversation = from_session_lines(CONVERSATION.as_bytes(), "outage")?;
    let router = Router::build(Arc::clone(&catalog), RoutingConfig::default())?;
    let all_tools = definitions(&catalog);
    let history: usize = conversation.events.iter().map(|event| tokens(&format!("{}\n", event.item.text))).sum();
    let (_, cards) = page(&router.route(&Request::new("roll back the release of the payments worker"))?);

    let (config, artifacts) = (ContextConfig::default(), MemoryArtifacts::default());
    let firewall = Firewall::new(&config.firewall, config.estimator, &StructureSummarizer, &artifacts);
    let events = conversation.events.len();
    let transcript = take_in(conversation, &firewall)?.transcript;
    let request = PromptRequest { budget: Some(BUDGET), ..PromptRequest::new(Phase::Answer, ASKED) };
    let pack = compile(&transcript, &Memory::default(), &firewall, &request, &config)?;
    let (before, after) = (all_tools + history, cards + pack.stats.prompt_tokens);

    writeln!(
        out,
        "An agent with {} tools in a conversation of {} events is asked:\n  \"{ASKED}\"\n",
        count(catalog.len()),
        count(events)
    )?;
    writeln!(out, "Everything in the prompt:")?;
    write!(out, "{}", bars(&[("tool definitions", all_tools), ("conversation", history)], "tokens"))?;
    writeln!(out, "\nWith contextweaver, and a budget of {} tokens for the conversation:", count(BUDGET))?;
    // In the scale of the first picture.
    let rows =
        [("tool definitions", all_tools), ("ten tool cards", cards), ("compiled prompt", pack.stats.prompt_tokens)];
    write!(out, "{}", bars(&rows, "tokens").split_once('\n').map_or("", |(_, rest)| rest))?;
    writeln!(
        out,
        "\n{} tokens instead of {}: {} less, computed exactly and the same on every machine.",
        count(after),
        count(before),
        percent(1.0 - after as f64 / before as f64)
    )?;
    costs(out, price, after, before)?;
    writeln!(out, "\nWhat the answer needs is still there:")?;
    for (what, value) in NEEDED {
        let found = if pack.prompt.contains(value) { "in the prompt" } else { "left out" };
        writeln!(out, "  {what:<10} {value:<26} {found}")?;
    }
    let shown = pack.stats.included_items.len();
    writeln!(
        out,
        "\n{} of {} events are shown; `contextweaver stats` names the others with the reason for each.",
        count(shown),
        count(events)
    )?;
    next(
        out,
        [
            "contextweaver ingest --events conversation.json --out chat.session",
            "contextweaver replay --session chat.session --query \"what went wrong\" --budget 6000",
            "contextweaver stats --session chat.session",
        ],
    )
}

fn large_catalog(price: Option<&Price>, out: &mut dyn Write) -> Result<()> {
    let source = |path, text: &'static str| Source { path: Path::new(path), bytes: text.as_bytes() };
    let collection = Collection::from_bytes(
        "workbench",
        Origin::Embedded,
        source("workbench/catalog.json", TOOLS),
        source("workbench/queries.jsonl", QUERIES),
    )?;
    let catalog = &collection.catalog;
    let router = Router::build(Arc::clone(catalog), RoutingConfig::default())?;
    let all = definitions(catalog);
    writeln!(out, "{} tools of {} servers.\n", count(catalog.len()), count(catalog.namespaces().len()))?;
    let mut cards = 0;
    for query in ["who is on call tonight", "put the release notes on the wiki", "why did the nightly job fail"] {
        let route = router.route(&Request::new(query))?;
        cards = cards.max(page(&route).1);
        writeln!(out, "> {query}")?;
        for (number, choice) in route.choices.iter().take(3).enumerate() {
            writeln!(out, "  {}", choice.card.line(number + 1, route.choices.len()))?;
        }
        if let Some(best) = route.choices.first() {
            writeln!(out, "  first because of: {}\n", best.explanation())?;
        }
    }
    writeln!(out, "What a prompt pays for tools:")?;
    write!(out, "{}", bars(&[("all definitions", all), ("ten cards, at most", cards)], "tokens"))?;
    costs(out, price, cards, all)?;

    let flat = RoutingConfig { scorer: Scorer::Bm25, k1: 1.2, b: 0.75, ..RoutingConfig::default() };
    let recall = |name: &str, config: RoutingConfig| -> Result<f64> {
        let measured = evaluate(&collection, &RouterEngine::new(name, config), PromptTokens::Skip)?;
        Ok(measured.facts.measures.get("recall@5").context("nothing was measured")?.mean)
    };
    writeln!(
        out,
        "\nOver {} labelled queries, some in other languages, the needed tools are among the first five with recall@5 {} (flat \
         BM25: {}).",
        count(collection.queries.iter().filter(|query| !query.groups.is_empty()).count()),
        share(recall("default", RoutingConfig::default())?),
        share(recall("bm25", flat)?)
    )?;
    next(
        out,
        [
            "contextweaver mcp import                                # the servers of your MCP client",
            "contextweaver route --catalog tools.json --explain \"what you want done\"",
            "contextweaver catalog inspect tools.json                # tokens by server and tool",
        ],
    )
}

/// A result as a shop's server gives it.
pub(super) fn orders() -> String {
    let order = |number: usize| {
        let state = match number {
            731 => "chargeback",
            _ => ["paid", "shipped", "paid", "refunded"][number % 4],
        };
        let city = ["Oslo", "Porto", "Graz", "Gent", "Turku"][number * 7 % 5];
        json!({"id": 5000 + number, "state": state, "total": (number * 37 % 900) as f64 / 4.0, "city": city, "items": number % 7})
    };
    let text: Vec<String> = (0..1_000).map(|number| order(number).to_string()).collect();
    format!("[{}]", text.join(",\n"))
}

fn huge_output(price: Option<&Price>, out: &mut dyn Write) -> Result<()> {
    let (text, store) = (orders(), MemoryArtifacts::default());
    let firewall = Firewall::with_defaults(&store);
    let kept = firewall.result("orders", &ToolOutput::text(text.clone()))?;
    let reference = kept.artifacts.first().context("the result was not stored")?;
    let bytes = store.get(&reference.handle)?;
    let whole = tokens(&text);
    writeln!(
        out,
        "A tool returns 1,000 orders as JSON. The prompt would get all of it, and with the firewall this:\n"
    )?;
    kept.summary.lines().try_for_each(|line| writeln!(out, "  | {line}"))?;
    writeln!(out)?;
    let summary = tokens(&kept.summary);
    write!(out, "{}", bars(&[("the whole result", whole), ("its summary", summary)], "tokens"))?;
    costs(out, price, summary, whole)?;
    let is_whole = *bytes == *text.as_bytes();
    writeln!(
        out,
        "\nThe result is in the artifact store as {}, {} bytes, {}. Views show parts of it:",
        reference.handle,
        count(bytes.len()),
        if is_whole { "byte for byte" } else { "and not as it came" }
    )?;
    for selector in ["grep:chargeback", "json_path:$[?(@.id == 5042)]"] {
        let parsed = selector.parse()?;
        let part =
            view(&reference.handle, &bytes, &reference.media_type, &parsed, Cursor::default(), Bounds::default())?;
        writeln!(out, "\n> view {selector}   ({} tokens)", count(tokens(&part.text)))?;
        part.text.lines().try_for_each(|line| writeln!(out, "  {line}"))?;
    }
    next(
        out,
        [
            "contextweaver firewall result.json                      # any tool result, log or file",
            "contextweaver bench fidelity result.json                # which questions its summary still answers",
            "contextweaver view --session chat.session HANDLE 'grep:ERROR'",
        ],
    )
}

/// A server of this process that has the built-in tools and answers every call with orders.
pub(super) fn office(method: &str, params: Option<&Raw>) -> Result<Raw, Fault> {
    let tools: Value = serde_json::from_str(TOOLS).unwrap_or_default();
    let tool = |tool: &Value| {
        let server = tool["server"].as_str().unwrap_or("office");
        let name = format!("{server}_{}", tool["name"].as_str().unwrap_or_default());
        json!({"name": name, "description": tool["description"], "inputSchema": tool["inputSchema"]})
    };
    Ok(Raw::of(&match method {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "office", "version": "1"},
        }),
        "tools/list" => json!({"tools": tools.as_array().map(|all| all.iter().map(tool).collect::<Vec<_>>())}),
        "tools/call" => {
            let call: Value = params.and_then(|params| params.read().ok()).unwrap_or_default();
            let lines: String = (0..800)
                .map(|line| {
                    format!("02:{:02}:{:02} worker {} job {line} {}\n", line / 60, line % 60, line % 7, state(line))
                })
                .collect();
            json!({"content": [{"type": "text", "text": format!("{}\n{lines}", call["name"].as_str().unwrap_or_default())}]})
        }
        _ => json!({}),
    }))
}

fn state(line: usize) -> &'static str {
    if line == 617 { "ERROR migration 0042 timed out" } else { "ok" }
}

fn gateway(price: Option<&Price>, out: &mut dyn Write) -> Result<()> {
    let mut config = GatewayConfig::default();
    config.upstreams.insert("office".to_owned(), UpstreamConfig::new(Target::InProcess(InProcess::new(office))));
    config.top_k = 3;
    let client = LocalClient::start(config)?;
    let listed = client.tools().map_err(|error| anyhow::anyhow!(error.message))?;
    let seen: usize = listed.iter().map(|tool| tokens(tool.get())).sum();
    let behind = office("tools/list", None).ok().and_then(|answer| answer.read::<Value>().ok()).unwrap_or_default();
    let behind = behind["tools"].as_array().cloned().unwrap_or_default();
    let all: usize = behind.iter().map(|tool| tokens(&tool.to_string())).sum();
    writeln!(
        out,
        "A server with {} tools, behind the gateway. What a client carries in every prompt:\n",
        count(behind.len())
    )?;
    let through = format!("through the gateway ({})", count(listed.len()));
    write!(out, "{}", bars(&[("the server itself", all), (&through, seen)], "tokens"))?;
    costs(out, price, seen, all)?;

    let ask = |tool: &str, arguments: &Value| -> Result<String> {
        let answer = client.call(tool, arguments).map_err(|error| anyhow::anyhow!(error.message))?;
        let answer: Value = answer.read()?;
        Ok(answer["content"][0]["text"].as_str().unwrap_or_default().to_owned())
    };
    let mut show = |tool: &str, arguments: &Value| -> Result<String> {
        writeln!(out, "\n> {tool} {arguments}")?;
        let text = ask(tool, arguments)?;
        // The answer to a call is an object, of which people read the summary.
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        let shown = answer["summary"].as_str().unwrap_or(&text);
        shown.lines().take(14).try_for_each(|line| writeln!(out, "  {line}"))?;
        Ok(text)
    };
    let found = show("tool_browse", &json!({"query": "logs of a service"}))?;
    let id = found.split_whitespace().next().context("nothing was found")?.to_owned();
    let result = show("tool_execute", &json!({"tool_id": id, "args": {"query": "nightly job"}}))?;
    let result: Value = serde_json::from_str(&result)?;
    let handle = result["artifacts"][0]["handle"].as_str().context("the result was not stored")?;
    show("tool_view", &json!({"handle": handle, "selector": "grep:ERROR"}))?;
    next(
        out,
        [
            "contextweaver mcp import                                 # the servers that your clients have now",
            "contextweaver mcp import --apply                         # the gateway in their place; --restore takes it back",
            "contextweaver mcp doctor                                 # start them all, and say what to fix",
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(demo: Demo) -> String {
        let mut out = Vec::new();
        run(&Args { demo, price: PriceArgs::default() }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_price_adds_a_line_with_both_amounts() {
        let mut out = Vec::new();
        crate::cli::run(["contextweaver", "demo", "--price", "3"].map(Into::into), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (before, plain) = text.split_once("At $3.00 a million tokens: ").unwrap();
        let (line, after) = plain.split_once('\n').unwrap();
        assert_eq!(line, "$0.02 instead of $0.13, each time that it is sent.");
        assert_eq!(format!("{before}{after}"), shown(Demo::Killer));
    }

    #[test]
    fn every_demo_shows_its_point_and_the_next_commands() {
        let points = [
            (Demo::Killer, ["less, computed exactly", "20261110_add_batch_index"]),
            (Demo::LargeCatalog, ["first because of:", "recall@5"]),
            (Demo::HugeOutput, ["byte for byte", "\"state\":\"chargeback\""]),
            (
                Demo::Gateway,
                ["\n  log: 801 lines", "\"selector\":\"grep:ERROR\"}\n  618: 02:10:17 worker 1 job 617 ERROR"],
            ),
        ];
        for (demo, expected) in points {
            let text = shown(demo);
            for part in expected {
                assert!(text.contains(part), "{demo:?}: no {part} in\n{text}");
            }
            let commands: Vec<&str> = text.split_once("On your own data:\n").unwrap().1.lines().collect();
            assert_eq!(commands.len(), 3);
            assert!(commands.iter().all(|command| command.starts_with("  contextweaver ")), "{commands:?}");
            assert!(!text.contains("left out\n"), "{text}");
            assert_eq!(text, shown(demo), "the same each time");
        }
    }

    #[test]
    fn bars_have_one_scale() {
        assert_eq!(
            bars(&[("a", 80), ("bb", 1), ("c", 0)], "x"),
            format!("  a   80 x  {}\n  bb   1 x  ▌\n  c    0 x  \n", "█".repeat(40))
        );
    }
}
