//! `bench fidelity`: how much of anybody's large results survives in their summaries.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::cli::{Format, Outcome, note, print_json};
use contextweaver_bench::chapters;
use contextweaver_bench::eval::context::fidelity::{CAPS, Content, Fidelity, fidelity, measure};
use contextweaver_bench::eval::context::{reach, source};
use contextweaver_context::FirewallConfig;
use contextweaver_context::event::Selector;
use contextweaver_context::summary::StructureSummarizer;
use contextweaver_core::files::ReadError;
use contextweaver_core::text::Estimator;

pub(super) const EXAMPLE: &str = "\
FILE is a recorded session, one result of an MCP tool (a CallToolResult as JSON), or any text; in a session, the
results over 2000 characters are measured. Questions whose answers are known are asked about every result; a question
survives when a summary states label and answer together. Only the machine judges them: to read the summaries yourself,
use `contextweaver firewall`.

Examples:
  contextweaver bench fidelity session.json
  contextweaver bench fidelity result.json access.log --tokens 100,200,400 --format json";

/// Measure how much of large results survives in their summaries
#[derive(Debug, Args)]
pub(in crate::cli) struct FidelityArgs {
    /// Results or recorded sessions
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Maximum tokens of a summary
    #[arg(long, value_delimiter = ',', value_name = "N,…", default_values_t = CAPS)]
    tokens: Vec<usize>,
    /// List every question that no summary answers
    #[arg(long)]
    lost: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Output {
    together: Fidelity,
    results: Vec<Single>,
}

#[derive(Serialize)]
struct Single {
    name: String,
    kind: &'static str,
    fidelity: Fidelity,
}

pub(super) fn run(args: &FidelityArgs, out: &mut dyn Write) -> Result<Outcome> {
    let mut caps = args.tokens.clone();
    caps.sort_unstable();
    caps.dedup();
    let mut contents = Vec::new();
    for path in &args.files {
        let bytes = fs::read(path).map_err(ReadError::at(path))?;
        contents.extend(large(source::contents(&path.display().to_string(), &bytes)));
    }
    if contents.is_empty() {
        note("no result over 2000 characters in these files: all of them would go into the prompt unchanged");
        return Ok(Outcome::Ok);
    }
    let view = |content: &Content, selector: &Selector| reach::by_selector(content, selector);
    let measured = measure(&contents, &caps, Estimator::default(), &StructureSummarizer, Some(&view));
    let together = fidelity(&measured);
    if args.format == Format::Json {
        let single = |one: &_| Single::of(one);
        print_json(out, "bench fidelity", &Output { together, results: measured.iter().map(single).collect() })?;
        return Ok(Outcome::Ok);
    }
    write!(out, "{}", chapters::context::fidelity(&together))?;
    if args.lost {
        writeln!(out)?;
    }
    for one in measured.iter().filter(|_| args.lost) {
        let found = |at: usize| one.summaries.iter().any(|summary| summary.survives.get(at) == Some(&true));
        for (_, probe) in one.probes.iter().enumerate().filter(|(at, _)| !found(*at)) {
            writeln!(out, "{} ({}), {}: {}", one.name, one.kind, probe.class, probe.statement())?;
        }
    }
    Ok(Outcome::Ok)
}

impl Single {
    fn of(one: &contextweaver_bench::eval::context::fidelity::Measured) -> Self {
        Self { name: one.name.clone(), kind: one.kind.name(), fidelity: fidelity(std::slice::from_ref(one)) }
    }
}

/// One result is measured whatever its size; of several those that the firewall would not pass untouched.
fn large(contents: Vec<Content>) -> Vec<Content> {
    let threshold = FirewallConfig::default().threshold_chars;
    let is_large = |content: &Content| content.text.chars().nth(threshold).is_some();
    if contents.len() == 1 { contents } else { contents.into_iter().filter(is_large).collect() }
}
