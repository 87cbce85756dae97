//! `mcp approvals`: what waits at the console of a running gateway, and the answers to it, for scripts.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use reqwest::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{block_on, running};
use crate::cli::terminal::{line, shown};
use crate::cli::{Format, Outcome, print_json};
use contextweaver_gateway::ConsoleServer;

/// Answer calls that wait for an approval at the console of a running gateway
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the calls that are waiting; exit with 1 if there are any
    #[command(after_help = "Examples:
  contextweaver mcp approvals list --url http://127.0.0.1:7070 --token-file console-token
  contextweaver mcp approvals list --url http://127.0.0.1:7070 --token-file console-token --format json")]
    List {
        #[command(flatten)]
        console: Console,
    },
    /// Let a call proceed
    #[command(after_help = "\
The number is the one that `mcp approvals list` shows. A call waits for five minutes, and can be answered once.

Example:
  contextweaver mcp approvals approve 3 --url http://127.0.0.1:7070 --token-file console-token")]
    Approve {
        /// The number of the call
        id: u64,
        #[command(flatten)]
        console: Console,
    },
    /// Refuse a call
    #[command(after_help = "\
Example:
  contextweaver mcp approvals decline 3 --url http://127.0.0.1:7070 --token-file console-token")]
    Decline {
        /// The number of the call
        id: u64,
        #[command(flatten)]
        console: Console,
    },
}

#[derive(Debug, clap::Args)]
struct Console {
    /// The address of the console, as `mcp serve --console` takes or prints it, without the token
    #[arg(long, value_name = "URL")]
    url: String,
    /// A file with the token: that of `mcp serve --console-token-file`, or what follows `#token=` in the printed
    /// address
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
    /// How long the console has to answer
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The part of what the console says that is about approvals.
#[derive(Debug, Deserialize)]
struct State {
    approvals: Vec<Case>,
}

/// What the console says when it has passed an answer on.
#[derive(Debug, Deserialize)]
struct PassedOn {
    approve: bool,
}

/// A call that waits.
#[derive(Debug, Serialize, Deserialize)]
struct Case {
    id: u64,
    caller: String,
    profile: Option<String>,
    item: String,
    reason: String,
    arguments: Vec<String>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    match &args.action {
        Action::List { console } => {
            let running::Answer { address, status, text } = console.ask("/api/state", None)?;
            if status != StatusCode::OK {
                bail!("{address}: {}", refusal(status, &text));
            }
            let found: State = serde_json::from_str(&text).with_context(|| no_console(&address))?;
            match console.format {
                Format::Json => print_json(out, "mcp approvals list", &json!({ "items": found.approvals }))?,
                Format::Text => print(out, &found.approvals)?,
            }
            Ok(if found.approvals.is_empty() { Outcome::Ok } else { Outcome::Drift })
        }
        Action::Approve { id, console } => console.answer(*id, true, out),
        Action::Decline { id, console } => console.answer(*id, false, out),
    }
}

impl Console {
    /// Asks the console, or tells it something.
    fn ask(&self, path: &str, body: Option<String>) -> Result<running::Answer> {
        let (token, patience) = (Some(self.token_file.as_path()), Duration::from_secs(self.timeout));
        block_on(running::ask(&self.url, path, body, token, patience)).map_err(|error| {
            let unreached = error.downcast_ref::<reqwest::Error>().is_some_and(|error| error.is_connect());
            if unreached { error.context("no console; is the gateway running, with --console?") } else { error }
        })
    }

    /// Answers a call.
    fn answer(&self, id: u64, approve: bool, out: &mut dyn Write) -> Result<Outcome> {
        let body = json!({ "approve": approve }).to_string();
        let running::Answer { address, status, text } = self.ask(&format!("/api/approvals/{id}"), Some(body))?;
        match status {
            // Any server may answer 200: only a console repeats what was answered.
            StatusCode::OK => {
                let passed: PassedOn = serde_json::from_str(&text).with_context(|| no_console(&address))?;
                if passed.approve != approve {
                    bail!("{}: it understood a different answer", no_console(&address));
                }
            }
            // Of a call, what the console says is enough.
            StatusCode::NOT_FOUND | StatusCode::CONFLICT | StatusCode::GONE if ConsoleServer::says_of_a_call(&text) => {
                bail!("{id}: {}; `mcp approvals list` shows what is waiting", first_line(&text));
            }
            StatusCode::NOT_FOUND | StatusCode::CONFLICT | StatusCode::GONE => {
                bail!("{}: {}", no_console(&address), refusal(status, &text));
            }
            _ => bail!("{address}: {}", refusal(status, &text)),
        }
        let (kind, said) = match approve {
            true => ("mcp approvals approve", "approved"),
            false => ("mcp approvals decline", "declined"),
        };
        match self.format {
            Format::Json => print_json(out, kind, &json!({"id": id, "approve": approve}))?,
            Format::Text => writeln!(out, "{said} {id}")?,
        }
        Ok(Outcome::Ok)
    }
}

/// What is wrong where another server answers.
fn no_console(address: &str) -> String {
    format!("{address}: this is not the console of a gateway")
}

/// Why the console gave no answer.
fn refusal(status: StatusCode, text: &str) -> String {
    match status {
        StatusCode::UNAUTHORIZED => {
            "the token does not belong to this console; a gateway makes and prints a new one at each start".to_owned()
        }
        _ => format!("the server answered {status} {}", first_line(text)),
    }
}

/// The first line of what a server said, bounded and safe to show.
fn first_line(text: &str) -> String {
    shown(&text.lines().next().unwrap_or_default().chars().take(200).collect::<String>())
}

fn print(out: &mut dyn Write, cases: &[Case]) -> Result<()> {
    for Case { id, caller, profile, item, reason, arguments } in cases {
        let profile = profile.as_ref().map(|profile| format!(" ({profile})")).unwrap_or_default();
        line(out, format_args!("{id}  {item}  by {caller}{profile}: {reason}"))?;
        for argument in arguments {
            line(out, format_args!("     {argument}"))?;
        }
    }
    if cases.is_empty() {
        writeln!(out, "nothing waits")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_forges_no_line_of_the_list() {
        let case = Case {
            id: 3,
            caller: "ci\n4  shop:list  by me: harmless".to_owned(),
            profile: Some("writer".to_owned()),
            item: "shop:pay#12".to_owned(),
            reason: "it \u{1b}[8mcosts".to_owned(),
            arguments: vec!["sum = 1\r\n     sum = 0".to_owned()],
        };
        let mut out = Vec::new();
        print(&mut out, &[case]).unwrap();
        print(&mut out, &[]).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
        3  shop:pay#12  by ci\n4  shop:list  by me: harmless (writer): it \u{1b}[8mcosts
             sum = 1\r\n     sum = 0
        nothing waits
        ");
    }
}
