//! What compiling and screening take: generated logs of growing length, and one large result.

use std::hint::black_box;
use std::time::Instant;

use crate::eval::latency::Sample;
use crate::eval::rng::Rng;
use crate::eval::timing::{Subject, Unit};
use contextweaver_context::event::{ContextItem, ItemKind, Phase, Transcript};
use contextweaver_context::store::MemoryArtifacts;
use contextweaver_context::summary::Summarizer;
use contextweaver_context::{ContextConfig, Firewall, Memory, Request, Seen, compile};

/// Numbers of events at which compiling is timed.
pub const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];

/// Megabytes of the result that is screened.
pub const MEGABYTES: usize = 10;

const WORDS: [&str; 24] = [
    "deploy", "invoice", "queue", "region", "ticket", "error", "budget", "report", "account", "retry", "latency",
    "owner", "shard", "payment", "search", "index", "alert", "release", "backup", "schema", "token", "merge", "quota",
    "probe",
];

/// A log of `count` events in turns of four: a question, a call, its result, a message.
fn log(count: usize) -> Result<Transcript, String> {
    let mut rng = Rng::new(7).fork("context log");
    let mut words = |number: usize| -> String {
        let word = |_| WORDS.get(rng.below(WORDS.len())).copied().unwrap_or_default();
        format!("{} {}", (0..number).map(word).collect::<Vec<_>>().join(" "), rng.below(100_000))
    };
    let mut transcript = Transcript::default();
    for number in 0..count {
        let item = match number % 4 {
            0 => ContextItem::new(format!("u{number}"), ItemKind::UserTurn, words(12)),
            1 => ContextItem::new(format!("c{number}"), ItemKind::ToolCall, words(6)).under(format!("u{}", number - 1)),
            2 => ContextItem::new(format!("r{number}"), ItemKind::ToolResult, words(40))
                .under(format!("c{}", number - 1)),
            _ => ContextItem::new(format!("a{number}"), ItemKind::AgentMsg, words(20)),
        };
        transcript.push(item).map_err(|error| error.to_string())?;
    }
    Ok(transcript)
}

/// A JSON array of records of about `bytes` bytes.
fn records(bytes: usize) -> String {
    let mut rng = Rng::new(7).fork("records");
    let mut text = String::with_capacity(bytes + 200);
    let mut number = 0;
    while text.len() < bytes {
        text.push_str(if number == 0 { "[" } else { ",\n " });
        let word = WORDS.get(rng.below(WORDS.len())).copied().unwrap_or_default();
        let (amount, units) = (rng.below(1_000_000), rng.below(50));
        text.push_str(&format!(
            "{{\"id\": {number}, \"name\": \"{word} {amount}\", \"amount\": {}.{:02}, \"units\": {units}, \"open\": {}}}",
            amount / 100,
            amount % 100,
            units % 2 == 0
        ));
        number += 1;
    }
    text.push(']');
    text
}

/// Times the compiler on generated logs, and the firewall on one large result, `rounds` times each after a round that is
/// not counted.
///
/// # Errors
/// The message of what failed.
pub fn samples(summarizer: &dyn Summarizer, rounds: usize) -> Result<Vec<Sample>, String> {
    let config = ContextConfig::default();
    let mut samples = Vec::new();
    for size in SIZES {
        let transcript = log(size)?;
        let artifacts = MemoryArtifacts::default();
        let firewall = Firewall::new(&config.firewall, config.estimator, summarizer, &artifacts);
        let request = Request::new(Phase::Answer, "which invoice failed after the release");
        let times = timed(rounds, || {
            let pack = compile(&transcript, &Memory::default(), &firewall, &request, &config);
            pack.map(|pack| pack.stats.prompt_tokens).map_err(|error| error.to_string())
        })?;
        samples.push(Sample::of(Subject::ContextCompile, None, Some(size), Unit::Milliseconds, times));
    }
    let result = ContextItem::new("result:call", ItemKind::ToolResult, records(MEGABYTES << 20));
    let times = timed(rounds, || {
        let artifacts = MemoryArtifacts::default();
        let firewall = Firewall::new(&config.firewall, config.estimator, summarizer, &artifacts);
        let screened = firewall.screen(None, &result, &mut Seen::default());
        screened.map(|screened| screened.stats.summary_tokens).map_err(|error| error.to_string())
    })?;
    samples.push(Sample::of(Subject::Firewall, None, Some(MEGABYTES), Unit::Milliseconds, times));
    Ok(samples)
}

fn timed(rounds: usize, run: impl Fn() -> Result<usize, String>) -> Result<Vec<f64>, String> {
    let mut times = Vec::new();
    for round in 0..=rounds.max(1) {
        let start = Instant::now();
        black_box(run()?);
        if round > 0 {
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_inputs_are_what_they_say() {
        assert_eq!(log(10).unwrap().len(), 10);
        let text = records(5_000);
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(parsed.as_array().unwrap().len() > 30 && text.len() < 5_200);
    }
}
