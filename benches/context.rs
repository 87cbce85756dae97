//! The hot functions of the context engine: a whole build, and the search for near-duplicates within it.

use std::hint::black_box;

use contextweaver::context::summary::Summarizer;
use contextweaver::context::{ContextConfig, Firewall, Memory, Request, Workspace, compile, compile_in};
use contextweaver::event::{ContextItem, ItemKind, Phase, Transcript};
use contextweaver::store::MemoryArtifacts;
use contextweaver::text::Estimator;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Says nothing: what a summary costs is measured elsewhere.
struct Nothing;

impl Summarizer for Nothing {
    fn summarize(&self, _: &str, _: &str, _: usize, _: Estimator) -> String {
        String::new()
    }
}

/// What the events of a log have in common.
#[derive(Clone, Copy)]
enum Likeness {
    /// Every result says something else.
    Distinct,
    /// Results are alike but for a few words, as those of a polled service.
    Near,
}

/// An incident: requests, answers, and two calls with results a round.
fn incident(events: usize, likeness: Likeness) -> Transcript {
    let mut transcript = Transcript::default();
    for round in 0..events.div_ceil(6) {
        let service = ["checkout", "billing", "search", "login", "catalog"][round % 5];
        let texts = [
            (
                ItemKind::UserTurn,
                format!("What does {service} report in window {round}? Compare it with the last one."),
            ),
            (ItemKind::ToolCall, format!("logs.search(service='{service}', window='{round}m', level='ERROR')")),
            (ItemKind::ToolResult, result(service, round, likeness)),
            (ItemKind::ToolCall, format!("deploys.list(service='{service}', limit={})", round % 9)),
            (ItemKind::ToolResult, result(service, round + 1, likeness)),
            (
                ItemKind::AgentMsg,
                format!("{service} had {} errors in window {round}; the last deploy is older.", round * 7 % 90),
            ),
        ];
        for (number, (kind, text)) in texts.into_iter().enumerate() {
            let mut item = ContextItem::new(format!("e{round}.{number}"), kind, text);
            if kind == ItemKind::ToolResult {
                item = item.under(format!("e{round}.{}", number - 1));
            }
            transcript.push(item).expect("ids are distinct and parents come first");
        }
    }
    transcript
}

fn result(service: &str, round: usize, likeness: Likeness) -> String {
    let differing = match likeness {
        Likeness::Distinct => 12,
        Likeness::Near => 1,
    };
    let details: Vec<String> = (0..differing).map(|n| format!("field{n}=v{}", round * 31 + n)).collect();
    format!(
        "ts=2026-05-15 level=ERROR service={service} region=west msg=\"payment gateway timeout on session of customer, \
         retry scheduled by worker after backoff\" {}",
        details.join(" ")
    )
}

fn builds(criterion: &mut Criterion) {
    let config = ContextConfig::default();
    let request = Request::new(Phase::Answer, "checkout timeout after the last deploy");
    for (name, likeness) in [("compile", Likeness::Distinct), ("compile_near_duplicates", Likeness::Near)] {
        let mut group = criterion.benchmark_group(name);
        for events in [100, 1_000, 10_000] {
            let transcript = incident(events, likeness);
            let artifacts = MemoryArtifacts::default();
            let firewall = Firewall::new(&config.firewall, config.estimator, &Nothing, &artifacts);
            let memory = Memory::default();
            group.sample_size(20).throughput(Throughput::Elements(events as u64));
            group.bench_with_input(BenchmarkId::new("cold", events), &transcript, |bencher, transcript| {
                bencher.iter(|| compile(black_box(transcript), &memory, &firewall, &request, &config));
            });
            let mut workspace = Workspace::default();
            group.bench_with_input(BenchmarkId::new("warm", events), &transcript, |bencher, transcript| {
                bencher
                    .iter(|| compile_in(&mut workspace, black_box(transcript), &memory, &firewall, &request, &config));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, builds);
criterion_main!(benches);
