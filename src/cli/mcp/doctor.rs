//! `mcp doctor`: what is wrong with a configuration, and what to do.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};

use super::block_on;
use super::chain::{self, Started, Values};
use crate::cli::files::{Files, writable, write};
use crate::cli::terminal::line;
use crate::cli::{Format, Outcome, counted, note, print_json};
use contextweaver_bench::report::html;
use contextweaver_core::catalog::Severity;
use contextweaver_core::text::grouped;
use contextweaver_gateway::{ClientFile, Confusable, Examination, Place, Reach, examine};

/// Pairs of tools that are shown without `--notes`, at most.
const MOST_PAIRS: usize = 5;

/// Check a configuration and the servers behind it, and say what to fix
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every server is started and asked for its lists; no tool is called. Variables have the values that a client starts the
gateway with: those of its entry in a client's file come before those of this environment.
Exit codes: 0 everything works, 1 something does not, 2 the check itself failed.

Examples:
  contextweaver mcp doctor
  contextweaver mcp doctor --config gateway.yaml --client servers.json
  contextweaver mcp doctor --config gateway.yaml --notes
  contextweaver mcp doctor --config gateway.yaml --html doctor.html
  contextweaver mcp doctor --config gateway.yaml --format json")]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    started: Started,
    /// Also show notes (JSON always has them)
    #[arg(long)]
    notes: bool,
    /// Also write the diagnosis as an HTML page: the servers, what a client sees, and what to fix, with all notes
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let (config, clients) = (args.started.config.path()?, &args.started.client);
    if !config.exists() {
        bail!(
            "{}: there is no such file; name a file that exists, or create one with `mcp import --write` or `mcp add`",
            config.display()
        );
    }
    let files = Files::default().read("--config", [&config]).read("--client", clients);
    files.page(&args.html).check()?;
    args.html.iter().try_for_each(|path| writable("--html", path))?;
    for path in clients {
        ClientFile::read(Place::of(path, None))?;
    }
    // What is wrong with the configuration itself is said below.
    let values = Values::of(&config, clients).ok();
    let environment = |name: &str| match &values {
        Some(values) => values.get(name),
        None => std::env::var(name).ok(),
    };
    let found = block_on(async { Ok(examine(&config, &environment).await) })?;
    let origins = values.as_ref().map(origins).unwrap_or_default();
    if let Some(path) = &args.html {
        let page = html::doctor(&config.display().to_string(), &found, &origins);
        write(path, page.as_bytes())?;
    }
    match args.format {
        Format::Json => print_json(out, "mcp doctor", &found)?,
        Format::Text => {
            print(out, &found, args.notes)?;
            // What follows on standard error is about what stands here.
            out.flush()?;
            origins.iter().for_each(|origin| note(origin));
            let flag = chain::flag(&config);
            let clients = chain::clients(clients);
            note(&match found.has_errors() {
                true => format!("next, when that is fixed: contextweaver mcp doctor{flag}{clients}"),
                false => format!("next: contextweaver mcp preview{flag}{clients}"),
            });
        }
    }
    Ok(if found.has_errors() { Outcome::Drift } else { Outcome::Ok })
}

/// Where values of variables come from, and which were not known.
fn origins(values: &Values) -> Vec<String> {
    let mut origins = Vec::new();
    let of_clients: Vec<String> = values.of_clients().into_iter().collect();
    if !of_clients.is_empty() {
        origins.push(format!("read from a client's file: {}", of_clients.join(", ")));
    }
    let asked: Vec<String> = values.asked().into_iter().collect();
    if !asked.is_empty() {
        let asked = asked.join(", ");
        origins.push(format!("only the client knows {asked}: set it in this shell to check the servers that need it"));
    }
    origins
}

fn print(out: &mut dyn Write, found: &Examination, notes: bool) -> Result<()> {
    let local = || found.upstreams.iter().filter(|health| health.reach != Reach::Remote);
    let is_open_to_all = local().count() > 1 && local().all(|health| health.reach == Reach::User);
    for health in &found.upstreams {
        match (&health.version, health.start_ms) {
            (Some(version), Some(start)) => line(
                out,
                format_args!(
                    "{}: {} tools, {} resources, {} prompts; speaks {version}; started in {start} ms",
                    health.name, health.tools, health.resources, health.prompts
                ),
            )?,
            _ => line(out, format_args!("{}: does not work", health.name))?,
        }
        if health.reach != Reach::Remote && !is_open_to_all {
            line(out, format_args!("  {}", health.reach))?;
        }
    }
    if is_open_to_all {
        writeln!(out, "none of them is in a sandbox: each may do whatever the gateway's user may")?;
    }
    if let Some(outlook) = &found.outlook {
        let saved = outlook.saved_share() * 100.0;
        let saved = if saved >= 0.5 { format!(", {saved:.0} % less") } else { String::new() };
        writeln!(
            out,
            "a client sees {} tools of {} tokens (mode {}) instead of {} tools of {} tokens{saved}",
            outlook.listed_tools,
            grouped(outlook.listed_tokens),
            outlook.mode,
            outlook.tools,
            grouped(outlook.tokens)
        )?;
        if outlook.listed_tokens > outlook.tokens {
            writeln!(out, "  {}", chain::COSTS_MORE)?;
        }
    }
    if !found.confusable.is_empty() {
        let rest = found.confusable.len().saturating_sub(if notes { usize::MAX } else { MOST_PAIRS });
        writeln!(out, "easily confused, since their words are nearly the same:")?;
        for Confusable { tool, with, similarity } in found.confusable.iter().take(found.confusable.len() - rest) {
            line(out, format_args!("  {tool} and {with} ({:.0} % alike)", similarity * 100.0))?;
        }
        if rest > 0 {
            writeln!(out, "  and {rest} more pairs (--notes)")?;
        }
        writeln!(out, "  list one of a pair in `exclude_tools` where the other is enough")?;
    }
    for complaint in found.complaints.iter().filter(|complaint| notes || complaint.severity > Severity::Note) {
        line(out, format_args!("{}: {}: {}", complaint.severity, complaint.place, complaint.problem))?;
        line(out, format_args!("  {}", complaint.remedy))?;
    }
    let count = |severity| found.complaints.iter().filter(|complaint| complaint.severity == severity).count();
    writeln!(
        out,
        "{}, {}, {}",
        counted(count(Severity::Error), "error"),
        counted(count(Severity::Warning), "warning"),
        counted(count(Severity::Note), "note")
    )?;
    Ok(())
}
