//! The phases of an agent's loop with a scripted model in place of a real one: `cargo run --example agent_loop`.
//!
//! Each phase gets a prompt of its own: tools to choose from, then the schema of the one chosen, then what came back,
//! then the whole conversation. None exceeds its budget.

use std::error::Error;

use contextweaver::event::{ContextItem, ItemKind, Selector, ToolOutput};
use contextweaver::view::{Bounds, Cursor, view};
use contextweaver::{ContextManager, Phase, Request, Router};

const CATALOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/gold/workbench/catalog.json");

/// Stands for a model: it is shown a prompt, and says the next line of its script.
struct Model(std::array::IntoIter<&'static str, 4>);

impl Model {
    fn answer(&mut self, phase: Phase, prompt: &str, tokens: usize) -> &'static str {
        let answer = self.0.next().unwrap_or_default();
        println!("[{phase}] {} lines, {tokens} tokens in; out: {answer}", prompt.lines().count());
        answer
    }
}

/// Stands for a tool: a long list of deployments.
fn call_tool() -> ToolOutput {
    let line = |number: u32| {
        let state = if number == 1234 { "failed: migration 0042 timed out" } else { "ok" };
        format!("deploy {number} checkout {state}\n")
    };
    ToolOutput::text((1000..3000).map(line).collect::<String>())
}

fn main() -> Result<(), Box<dyn Error>> {
    let script = ["monitor:get_logs", r#"{"service": "checkout"}"#, "grep:failed", "Migration 0042 timed out."];
    let (mut model, query) = (Model(script.into_iter()), "search the logs for what failed in checkout");
    let (router, conversation) = (Router::from_path(CATALOG)?, ContextManager::default());
    conversation.ingest(ContextItem::new("u1", ItemKind::UserTurn, query))?;

    // Route: the model sees cards, and chooses one by id.
    let route = router.route(&Request::new(query))?;
    let count = route.choices.len();
    let cards: Vec<String> = (1..).zip(&route.choices).map(|(at, choice)| choice.card.line(at, count)).collect();
    let prompt = conversation.build_route_prompt(query, &cards)?.pack;
    let answer = model.answer(Phase::Route, &prompt.prompt, prompt.stats.prompt_tokens);
    let tool = route.validate_selection(answer).id.ok_or("the model chose none of the tools")?;

    // Call: the model sees the definition of this tool alone, and writes the arguments.
    let definition = router.catalog().get(&tool).ok_or("no such tool")?.definition_json();
    let prompt = conversation.build_call_prompt(query, &tool, &definition)?;
    let arguments = model.answer(Phase::Call, &prompt.prompt, prompt.stats.prompt_tokens);
    conversation.ingest(ContextItem::new("c1", ItemKind::ToolCall, format!("{tool}({arguments})")).under("u1"))?;
    let result = conversation.ingest_tool_result("c1", &call_tool())?;

    // Interpret: the model sees a summary, and asks for the part that it wants.
    let prompt = conversation.build(Phase::Interpret, query)?;
    let selector: Selector = model.answer(Phase::Interpret, &prompt.prompt, prompt.stats.prompt_tokens).parse()?;
    let artifact = result.artifacts.first().ok_or("nothing was stored")?;
    let bytes = conversation.stores().artifacts.get(&artifact.handle)?;
    let part =
        view(&artifact.handle, &bytes, &artifact.media_type, &selector, Cursor::default(), Bounds::default())?.text;
    println!("{selector} of {} shows: {part}", artifact.handle);
    conversation.ingest(ContextItem::new("d1", ItemKind::DocSnippet, part).under("c1"))?;

    // Answer: the model sees the conversation so far.
    let prompt = conversation.build(Phase::Answer, query)?;
    let answer = model.answer(Phase::Answer, &prompt.prompt, prompt.stats.prompt_tokens);
    conversation.ingest(ContextItem::new("a1", ItemKind::AgentMsg, answer))?;
    println!("\nthe last prompt:\n{}", prompt.prompt);
    Ok(())
}
