//! A large result: what the prompt gets in its place, and looking into the rest.
//! `cargo run --example firewall -- [FILE]`.

use std::error::Error;

use contextweaver::Firewall;
use contextweaver::event::{Selector, ToolOutput};
use contextweaver::store::{ArtifactStore, MemoryArtifacts};
use contextweaver::view::{Bounds, Cursor, view};

/// What a tool may answer: two thousand orders as JSON.
fn orders() -> String {
    let order = |number: usize| {
        let state = ["paid", "open", "paid", "refunded", "paid"][number % 5];
        format!(r#"{{"id": {number}, "state": "{state}", "total": {}.50, "city": "Oslo"}}"#, number * 7 % 400)
    };
    format!("[{}]", (0..2000).map(order).collect::<Vec<_>>().join(",\n"))
}

fn main() -> Result<(), Box<dyn Error>> {
    let text = match std::env::args().nth(1) {
        Some(path) => std::fs::read_to_string(path)?,
        None => orders(),
    };
    let store = MemoryArtifacts::default();
    let envelope = Firewall::with_defaults(&store).result("orders", &ToolOutput::text(text))?;
    println!("--- what the prompt gets\n{}\n", envelope.summary);
    let Some(stats) = &envelope.firewall else { return Ok(()) };
    println!("--- {} bytes became {} tokens ({:?})", stats.original_bytes, stats.summary_tokens, stats.strategy);

    // Small results pass as they are, and nothing is stored.
    let Some(artifact) = envelope.artifacts.first() else { return Ok(()) };
    println!("--- the whole is {}, {}, {} bytes", artifact.handle, artifact.media_type, artifact.size_bytes);
    for offered in &envelope.views {
        println!("    {}: {}", offered.selector, offered.label);
    }
    let bytes = store.get(&artifact.handle)?;
    for wanted in ["rows:-2..", "json_path:$[3].state", "grep:\"total\": 399"] {
        let selector: Selector = wanted.parse()?;
        match view(
            &artifact.handle,
            &bytes,
            &artifact.media_type,
            &selector,
            Cursor::default(),
            Bounds::new(300, 100, stats.estimator),
        ) {
            Ok(part) => {
                let more = part.next.map_or_else(String::new, |next| format!("\n(more behind cursor {next})"));
                println!("--- {selector}\n{}{more}", part.text);
            }
            // What is wrong is said in words that a model can act on.
            Err(error) => println!("--- {selector}\n{error}"),
        }
    }
    Ok(())
}
