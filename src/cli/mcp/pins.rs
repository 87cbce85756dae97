//! `mcp pins`: the definitions that are pinned, and what waits for approval.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::cli::{Format, Outcome, print_json};
use crate::gateway::GatewayConfig;
use crate::gateway::guard::pins::{Pin, PinMode, Pins};

/// Look after the pinned definitions of tools
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show what is pinned; exit 1 when something waits for approval
    #[command(after_help = "Examples:
  contextweaver mcp pins list --config gateway.yaml
  contextweaver mcp pins list --config gateway.yaml --pending --format json")]
    List {
        #[command(flatten)]
        place: Place,
        /// Only what waits for approval
        #[arg(long)]
        pending: bool,
        /// How to print the result
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Approve the definitions that wait: of all servers, of one, or of one tool
    #[command(after_help = "Examples:
  contextweaver mcp pins approve --config gateway.yaml github create_issue
  contextweaver mcp pins approve --config gateway.yaml --all")]
    Approve {
        #[command(flatten)]
        place: Place,
        /// The server
        #[arg(required_unless_present = "all")]
        server: Option<String>,
        /// The tool, by the name that the server gives it; all of the server's without it
        tool: Option<String>,
        /// Of all servers
        #[arg(long, conflicts_with_all = ["server", "tool"])]
        all: bool,
    },
    /// Forget the pins of a server or of one tool: what it lists next is taken as it is
    #[command(after_help = "Example:\n  contextweaver mcp pins reset --config gateway.yaml github")]
    Reset {
        #[command(flatten)]
        place: Place,
        /// The server
        server: String,
        /// The tool; all of the server's without it
        tool: Option<String>,
    },
}

#[derive(Debug, clap::Args)]
struct Place {
    /// The configuration, YAML or JSON
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

impl Place {
    /// The pins that outlive a process; those in memory belong to a running gateway alone.
    fn pins(&self) -> Result<Pins> {
        let guards = GatewayConfig::load(&self.config)?.guards;
        if guards.pins.mode == PinMode::Off {
            bail!("{}: nothing is pinned; set `pins.mode: strict`", self.config.display());
        }
        if guards.pins.file.is_none() && guards.state.is_none() {
            bail!("{}: the pins are kept in memory; name a file with `pins.file` or `state`", self.config.display());
        }
        Ok(guards.open_pins()?)
    }
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    match &args.action {
        Action::List { place, pending, format } => {
            let mut pins = place.pins()?.list()?;
            let waits = pins.iter().any(|pin| pin.pending.is_some());
            pins.retain(|pin| !pending || pin.pending.is_some());
            match format {
                Format::Json => print_json(out, &pins)?,
                Format::Text => print(out, &pins)?,
            }
            Ok(if waits { Outcome::Drift } else { Outcome::Ok })
        }
        Action::Approve { place, server, tool, .. } => {
            let approved = place.pins()?.approve(server.as_deref(), tool.as_deref())?;
            for pin in &approved {
                writeln!(out, "approved {} · {}", pin.server, pin.name)?;
            }
            if approved.is_empty() {
                writeln!(out, "nothing waits for approval there")?;
            }
            Ok(Outcome::Ok)
        }
        Action::Reset { place, server, tool } => {
            let forgotten = place.pins()?.reset(server, tool.as_deref())?;
            if forgotten == 0 {
                bail!("nothing is pinned for `{server}`; `mcp pins list` shows what is");
            }
            writeln!(out, "forgot {forgotten} of {server}")?;
            Ok(Outcome::Ok)
        }
    }
}

fn print(out: &mut dyn Write, pins: &[Pin]) -> Result<()> {
    for pin in pins {
        let state = pin.complaint().map_or_else(|| "pinned".to_owned(), |complaint| format!("waits: {complaint}"));
        writeln!(out, "{} · {}: {state}", pin.server, pin.name)?;
    }
    if pins.is_empty() {
        writeln!(out, "nothing")?;
    }
    Ok(())
}
