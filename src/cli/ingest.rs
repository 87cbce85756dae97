//! `ingest`: a conversation of any known format becomes a session file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::files::{Files, Overwrite, read_input, shown, words_about};
use super::session::{context_config, refuse_other, save};
use super::{Outcome, counted, note, outside};
use contextweaver_context::adapters::{read_episodes, read_facts};
use contextweaver_context::event::Strategy;
use contextweaver_context::store::{ArtifactStore, EpisodicStore, FactStore};
use contextweaver_context::{ContextConfig, Ingested, Secrets, count_kinds, ingest_with, remember};

/// Read a conversation in any known format into a session file
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The format is recognised by content: session JSONL, session JSON, a recorded session, OpenAI chat or Responses, Anthropic, Gemini, an A2A task, transcripts of Claude Code and Codex, OpenTelemetry spans, LangSmith runs, messages of LangChain and Pydantic AI.\n\nExamples:\n  contextweaver ingest --events chat.json --out chat.session\n  contextweaver replay --session chat.session --query \"what went wrong\""
)]
pub(super) struct Args {
    /// The conversation; `-` is standard input
    #[arg(long, value_name = "FILE")]
    events: PathBuf,
    /// The session file to write; an SQLite store if it ends in `.sqlite` or `.db`; `-` is standard output
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Facts to remember (JSON or JSONL)
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    /// Episodes to remember (JSON or JSONL)
    #[arg(long, value_name = "FILE")]
    episodes: Option<PathBuf>,
    /// Context configuration (TOML) [default: built in]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Maximum tokens to show for a large result [default: the configuration's]
    #[arg(long, value_name = "N")]
    tokens: Option<usize>,
    /// Characters above which a result is large [default: the configuration's]
    #[arg(long, value_name = "N")]
    threshold: Option<usize>,
    /// Mask passwords, keys and tokens before anything is stored
    #[arg(long)]
    redact_secrets: bool,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let files = Files::default().read("--events", [&args.events]).read("--facts", &args.facts);
    let files = files.read("--episodes", &args.episodes).read("--config", &args.config);
    files.written("--out", [&args.out]).check()?;
    refuse_other(&args.out, &args.overwrite)?;
    let config = config(args)?;
    let place = args.events.display().to_string();
    let hooks = outside::hooks(&config)?;
    let ingested = ingest_with(hooks.as_ref(), read_input(&args.events)?, &prefix(&args.events), &place, &config)
        .context(place)?;
    let session = &ingested.session;
    let facts = args.facts.as_deref().map(|path| read_facts(&read_input(path)?).context(path.display().to_string()));
    let more =
        args.episodes.as_deref().map(|path| read_episodes(&read_input(path)?).context(path.display().to_string()));
    let (facts, more) = (facts.transpose()?.unwrap_or_default(), more.transpose()?.unwrap_or_default());
    let notes = remember(session, hooks.as_ref(), facts, more, &config)?;
    save(session, &args.out, out)?;
    ingested.remarks.iter().chain(&notes).for_each(|remark| note(&format!("note: {remark}")));
    print(args, &ingested, words_about(&args.out, out, &mut io::stderr()))?;
    Ok(Outcome::Ok)
}

fn config(args: &Args) -> Result<ContextConfig> {
    let mut config = context_config(args.config.as_deref())?;
    config.firewall.summary_tokens = args.tokens.unwrap_or(config.firewall.summary_tokens);
    config.firewall.threshold_chars = args.threshold.unwrap_or(config.firewall.threshold_chars);
    if args.redact_secrets {
        config.firewall.secrets = Secrets::Redact;
    }
    config.validate()?;
    Ok(config)
}

/// What session lines without an id are called after.
pub(super) fn prefix(path: &Path) -> String {
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    name.filter(|name| name != "-").unwrap_or_else(|| "session".to_owned())
}

fn print(args: &Args, Ingested { format, session, screened, .. }: &Ingested, out: &mut dyn Write) -> Result<()> {
    let kinds: Vec<String> =
        count_kinds(&session.transcript).iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let artifacts = session.artifacts.list()?;
    let bytes: u64 = artifacts.iter().map(|artifact| artifact.size_bytes).sum();
    let events = counted(session.transcript.len(), "event");
    writeln!(out, "wrote {}: {format}, {events}", shown(&args.out, "to standard output"))?;
    writeln!(out, "  events     {}", if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") })?;
    writeln!(out, "  artifacts  {}, {bytes} bytes", artifacts.len())?;
    let (facts, episodes) = (session.facts.all()?.len(), session.episodes.all()?.len());
    writeln!(out, "  memory     {}, {}", counted(facts, "fact"), counted(episodes, "episode"))?;
    let replaced: Vec<_> = screened.iter().filter(|(_, stats)| stats.strategy != Strategy::Passthrough).collect();
    if !replaced.is_empty() {
        writeln!(out, "kept out of prompts, {}:", counted(replaced.len(), "result"))?;
    }
    for (id, stats) in replaced {
        let shown = match stats.strategy {
            Strategy::Passthrough => "as it is",
            Strategy::Compact => "whole, in a shorter form",
            Strategy::Summary => "a summary",
            Strategy::Repeat => "a line: shown before",
            Strategy::Echo => "a line: an echo of the call",
        };
        writeln!(out, "  {id}  {} bytes -> {} tokens ({shown})", stats.original_bytes, stats.summary_tokens)?;
    }
    Ok(())
}
