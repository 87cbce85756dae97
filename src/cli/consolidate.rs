//! `consolidate`: what several sessions say, as one memory.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::files::{Files, Overwrite, is_stream, shown, words_about};
use super::ingest::prefix;
use super::session::{context_config, load};
use super::{Format, Outcome, counted, note, print_document, print_json};
use contextweaver_context::memory::{Agreement, Consolidated, Day, MemoryFile, Rules, Standing, consolidate};
use contextweaver_context::store::Session;
use contextweaver_core::files::ReadError;

/// Consolidate several sessions into one memory: facts and episodes, with their sources
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A session is a session file or an SQLite store; memory files may be among them. The day of a session is the latest \
that its events name, or the one after an @. Where sessions contradict each other, the latest one holds and names \
the others; without days, the values are kept side by side.

Examples:
  contextweaver consolidate monday.session tuesday.session --out memory.json
  contextweaver consolidate memory.json wednesday.session@2026-11-25 --out memory.json --as-of 2026-11-25
  contextweaver replay --session next.session --memory memory.json --query \"the checkout\"")]
pub(super) struct Args {
    /// Sessions and memories: FILE, or FILE@DAY
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<String>,
    /// The memory file to write; `-` is standard output
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    overwrite: Overwrite,
    /// The day to count as today, e.g. 2026-11-24; without it nothing fades
    #[arg(long, value_name = "DAY")]
    as_of: Option<Day>,
    /// Number of sessions that must mention a fact before it is in force
    #[arg(long, value_name = "N", default_value_t = Rules::default().min_sessions)]
    min_sessions: usize,
    /// Percentage of their words that two statements must share to count as one
    #[arg(long, value_name = "PERCENT", default_value_t = Rules::default().similarity)]
    similarity: u8,
    /// Days after which a fact or episode fades if no session mentions it
    #[arg(long, value_name = "DAYS", default_value_t = Rules::default().forget_after, requires = "as_of")]
    forget_after: u64,
    /// Context configuration (TOML), for what is too sensitive [default: built in]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let config = context_config(args.config.as_deref())?;
    // A memory may become its own successor; a session would be lost.
    let sessions = args.sessions.iter().filter_map(|argument| Some(place(argument).ok()?.0));
    let sessions = sessions.filter(|path| !matches!(memory(path), Ok(Some(_))));
    Files::default().read("SESSION", sessions).read("--config", &args.config).written("--out", [&args.out]).check()?;
    args.overwrite.check(&args.out, "a memory", MemoryFile::is_one)?;
    let (mut sessions, mut memories): (Vec<(String, Option<Day>, Session)>, _) = (Vec::new(), Vec::new());
    for argument in &args.sessions {
        let (path, day) = place(argument)?;
        match memory(path)? {
            Some(_) if day.is_some() => bail!("`{argument}`: a memory has days of its own; leave out the @"),
            Some(memory) => memories.push(memory),
            None => sessions.push((prefix(path), day, load(path)?)),
        }
    }
    let rules = Rules {
        as_of: args.as_of,
        min_sessions: args.min_sessions,
        similarity: args.similarity,
        forget_after: args.forget_after,
    };
    let taken: Vec<Consolidated<'_>> =
        sessions.iter().map(|(name, day, session)| Consolidated { name, day: *day, session }).collect();
    let made = consolidate(&taken, &memories, &rules, &config)?;
    match is_stream(&args.out) {
        true => print_document(out, &made)?,
        false => made.save(&args.out)?,
    }
    let mut words = io::stderr();
    let out = words_about(&args.out, out, &mut words);
    for session in made.sessions.iter().filter(|session| session.left_out > 0) {
        note(&format!("note: {}: {} statements were not read; there are too many", session.name, session.left_out));
    }
    match args.format {
        Format::Json => print_json(out, "consolidate", &made)?,
        Format::Text => print(&args.out, &made, out)?,
    }
    Ok(Outcome::Ok)
}

/// The path and the day of `FILE@DAY`.
fn place(argument: &str) -> Result<(&Path, Option<Day>)> {
    let whole = Path::new(argument);
    match argument.rsplit_once('@').filter(|_| !whole.exists()) {
        Some((path, day)) => Ok((Path::new(path), Some(day.parse().with_context(|| argument.to_owned())?))),
        None => Ok((whole, None)),
    }
}

/// The memory in a file; `None` for a file that is something else.
pub(super) fn memory(path: &Path) -> Result<Option<MemoryFile>> {
    let bytes = std::fs::read(path).map_err(ReadError::at(path))?;
    Ok(if MemoryFile::is_one(&bytes) { Some(MemoryFile::parse(&bytes, path)?) } else { None })
}

fn print(path: &Path, made: &MemoryFile, out: &mut dyn Write) -> Result<()> {
    let facts = |standing: Standing| made.facts.iter().filter(|fact| fact.standing == standing).count();
    let faded = made.episodes.iter().filter(|episode| episode.standing == Standing::Faded).count();
    writeln!(
        out,
        "wrote {}: a memory of {}",
        shown(path, "to standard output"),
        counted(made.sessions.len(), "session")
    )?;
    writeln!(
        out,
        "  facts     {} in force, {} waiting for another session, {} faded",
        facts(Standing::InForce),
        facts(Standing::Waiting),
        facts(Standing::Faded)
    )?;
    writeln!(out, "  episodes  {} in force, {faded} faded", made.episodes.len() - faded)?;
    for fact in made.conflicts() {
        let said = if fact.agreement == Agreement::Latest { "the latest holds" } else { "unclear which one holds" };
        writeln!(out, "conflict: {}: {said}", fact.key)?;
        for value in &fact.values {
            let name = |sha256: &str| made.sessions.iter().find(|session| session.sha256 == sha256);
            let who = value.seen.iter().filter_map(|seen| name(&seen.session)).map(|session| match session.day {
                Some(day) => format!("{} of {day}", session.name),
                None => session.name.clone(),
            });
            writeln!(out, "  {}  ({})", value.value, who.collect::<Vec<_>>().join(", "))?;
        }
    }
    Ok(())
}
