//! `mcp audit`: whether an audit log is whole, and what it says.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cli::terminal::line;
use crate::cli::{Format, Outcome, print_json};
use contextweaver_core::files::ReadError;
use contextweaver_gateway::{AuditCheck, AuditDecision, AuditFilter, AuditLine};

/// Check the audit log of a gateway, and show what it says
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Check that every line follows the one before; otherwise name the first one that does not, and exit with 1
    #[command(after_help = "\
Lines cut off at the end leave no trace in the file. Keep the printed hash somewhere else, and pass it with --head the
next time: a line must still have it.

Examples:
  contextweaver mcp audit verify audit.jsonl
  contextweaver mcp audit verify audit.jsonl --head 5fdc4b3f...")]
    Verify {
        /// The audit log
        file: PathBuf,
        /// A hash that an earlier check printed
        #[arg(long, value_name = "HASH")]
        head: Option<String>,
        /// Output format
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Show lines; with several filters, those that match all of them
    #[command(after_help = "\
Examples:
  contextweaver mcp audit show audit.jsonl --decision refuse
  contextweaver mcp audit show audit.jsonl --caller ci --item github: --time 2026-11-25")]
    Show {
        /// The audit log
        file: PathBuf,
        /// The name of the caller
        #[arg(long, value_name = "NAME")]
        caller: Option<String>,
        /// A part of the id of a tool, resource or prompt
        #[arg(long, value_name = "TEXT")]
        item: Option<String>,
        /// What was decided: allow, refuse or ask
        #[arg(long, value_name = "DECISION", value_parser = ["allow", "refuse", "ask"])]
        decision: Option<String>,
        /// How it ended or why it was refused, such as OK or POLICY_DENIED
        #[arg(long, value_name = "CODE")]
        code: Option<String>,
        /// The beginning of the time, such as 2026-11-25T12
        #[arg(long, value_name = "TIME")]
        time: Option<String>,
        /// Output format: one line each
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    match &args.action {
        Action::Verify { file, head, format } => verify(file, head.as_deref(), *format, out),
        Action::Show { file, caller, item, decision, code, time, format } => {
            let (caller, item, decision) = (caller.clone(), item.clone(), decision.clone());
            let filter = AuditFilter { caller, item, decision, code: code.clone(), time: time.clone() };
            let show = |found: &AuditLine| match format {
                Format::Json => writeln!(out, "{}", serde_json::to_string(found)?),
                Format::Text => line(out, told(found)),
            };
            if !filter.lines(open(file)?, show).with_context(|| file.display().to_string())? {
                bail!(
                    "{}: no line of it is a line of an audit log; name the file that `audit` of the gateway's configuration \
                     names",
                    file.display()
                );
            }
            Ok(Outcome::Ok)
        }
    }
}

fn open(file: &Path) -> Result<BufReader<File>> {
    Ok(BufReader::new(File::open(file).map_err(ReadError::at(file))?))
}

fn verify(file: &Path, head: Option<&str>, format: Format, out: &mut dyn Write) -> Result<Outcome> {
    let is_hash = |text: &&str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some(text) = head.filter(|text| !is_hash(text)) {
        bail!("--head: `{text}` is not a hash; give the 64 digits that `mcp audit verify` printed");
    }
    let head = head.map(str::to_ascii_lowercase);
    let check = AuditCheck::read(open(file)?, head.as_deref()).with_context(|| file.display().to_string())?;
    match format {
        Format::Json => print_json(out, "mcp audit verify", &check)?,
        Format::Text => print(file, &check, out)?,
    }
    Ok(if check.is_whole() { Outcome::Ok } else { Outcome::Drift })
}

fn print(file: &Path, check: &AuditCheck, out: &mut dyn Write) -> Result<()> {
    let file = file.display();
    match &check.misfit {
        Some(misfit) => {
            line(out, format_args!("{file}: line {} does not fit: {}", misfit.line, misfit.reason))?;
            writeln!(out, "lines before it that follow each other: {}", check.lines)?;
        }
        None => line(out, format_args!("{file}: {} lines, and each follows the one before", check.lines))?,
    }
    if check.torn > 0 {
        writeln!(out, "cut short, with lines after them: {}", check.torn)?;
    }
    if check.lost > 0 {
        writeln!(out, "lines that could not be written: {}", check.lost)?;
    }
    if check.open > 0 {
        writeln!(out, "allowed, but with no recorded end: {}", check.open)?;
    }
    if check.holds == Some(false) {
        writeln!(out, "no line has the hash of --head: lines were cut off, or it is from another file")?;
    }
    if let Some(after) = &check.after {
        writeln!(out, "goes on after a file whose last line has the hash {after}: check that one with this as --head")?;
    }
    writeln!(out, "head: {}", check.head)?;
    Ok(())
}

/// A line for people.
fn told(line: &AuditLine) -> String {
    let mut text = format!("{} {} {}", line.seq, line.time, line.event.name());
    let mut add = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            text.push_str(name);
            text.push_str(value);
        }
    };
    let call = line.call.map(|call| call.to_string());
    let ms = line.ms.map(|ms| format!("{ms} ms"));
    add(" of ", call.as_deref());
    add(" ", line.decision.map(AuditDecision::name));
    add(" ", line.code.as_deref());
    add(" ", ms.as_deref());
    add(" ", line.operation.as_deref());
    add(" ", line.item.as_deref());
    add(" for ", line.caller.as_deref());
    add(" with profile ", line.profile.as_deref());
    add(" by ", line.guard.as_deref());
    add(" ", line.rule.as_deref());
    add(", approved or declined by ", line.approver.as_deref());
    text
}
