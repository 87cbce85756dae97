//! A conversation that outlives the process, in one SQLite file: `cargo run --example sqlite_stores -- [FILE]`.
//!
//! Run with a file it goes on where the run before stopped. `contextweaver inspect --session FILE` reads the file too,
//! also while a program writes to it.

use std::error::Error;
use std::path::Path;

use contextweaver::event::{ContextItem, ItemKind, ToolOutput};
use contextweaver::{ContextManager, Phase, Session, Stores};

/// One turn of an agent: the stores are opened, written to and closed.
fn turn(path: &Path, question: &str, folder: &str) -> Result<usize, Box<dyn Error>> {
    let conversation = ContextManager::in_stores(Stores::sqlite(path)?);
    let number = conversation.stores().events.len()?;
    let (user, call) = (format!("u{number}"), format!("c{number}"));
    conversation.ingest(ContextItem::new(user.as_str(), ItemKind::UserTurn, question))?;
    conversation.ingest(
        ContextItem::new(call.as_str(), ItemKind::ToolCall, format!("list_files({folder})")).under(user.as_str()),
    )?;
    let listing: String = (0..800).map(|file| format!("{folder}/part-{file:04}.csv\n")).collect();
    conversation.ingest_tool_result(&call, &ToolOutput::text(listing))?;
    conversation.add_fact("last folder", folder)?;
    conversation.add_episode(&user, &format!("Asked: {question}"))?;
    Ok(conversation.stores().events.len()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = match std::env::args().nth(1) {
        Some(path) => path.into(),
        None => std::env::temp_dir().join(format!("contextweaver-example-{}.sqlite", std::process::id())),
    };
    for (question, folder) in [("Which orders are there?", "/srv/orders"), ("And which invoices?", "/srv/invoices")] {
        println!("{} events after \"{question}\"", turn(&path, question, folder)?);
    }

    // Opened once more, as after a restart.
    let conversation = ContextManager::in_stores(Stores::sqlite(&path)?);
    let pack = conversation.build(Phase::Answer, "invoices")?;
    println!("\n{} tokens of {}:\n{}", pack.stats.prompt_tokens, pack.stats.budget, pack.prompt);

    // The same as one file of JSON lines, for `contextweaver replay` and for tests.
    let session = Session::from_stores("an example", conversation.stores())?;
    println!("\n{} events, {} artifacts", session.transcript.len(), conversation.stores().artifacts.list()?.len());
    if std::env::args().nth(1).is_none() {
        drop(conversation);
        std::fs::remove_file(&path)?;
    }
    Ok(())
}
