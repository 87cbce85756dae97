//! `export`: a conversation in the format of a provider or another program.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use clap::builder::PossibleValue;

use super::files::{Files, Overwrite, read_input, write_result};
use super::ingest::prefix;
use super::session::load;
use super::{Outcome, note};
use contextweaver_context::adapters::{
    Conversation, Event, Format, episodes_to_lines, facts_to_lines, from_mcp_result, read_episodes, read_facts,
    recognise, to_mcp_result,
};
use contextweaver_context::event::{ItemKind, ToolOutput};
use contextweaver_context::store::Results;

/// Write a conversation in the format of a provider or another program
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("from").required(true)),
    after_help = "A conversation that is already in this format comes out unchanged, unless it went through a session: large results are then written as prompts show them, or whole with --whole.\n\nExamples:\n  contextweaver export --events chat.json --to anthropic\n  contextweaver export --session chat.session --to openai --out short.json\n  contextweaver export --session chat.session --to mcp --event result:call_7 --whole"
)]
pub(super) struct Args {
    /// A conversation in any format that `ingest` reads; `-` is standard input
    #[arg(long, value_name = "FILE", group = "from")]
    events: Option<PathBuf>,
    /// Session file, as `contextweaver ingest` writes it, or SQLite store of a program
    #[arg(long, value_name = "FILE", group = "from")]
    session: Option<PathBuf>,
    /// What to write
    #[arg(long, value_name = "FORMAT")]
    to: To,
    /// The result to write, for `mcp`
    #[arg(long, value_name = "ID", required_if_eq("to", "mcp"))]
    event: Option<String>,
    /// Write the results of a session whole, instead of as prompts show them
    #[arg(long, requires = "session", conflicts_with = "events")]
    whole: bool,
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
}

/// What a conversation is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    /// A conversation.
    Format(Format),
    /// One of its results, as a server of MCP answers.
    Mcp,
    /// What it remembers, for `ingest --facts`.
    Facts,
    /// What happened before it, for `ingest --episodes`.
    Episodes,
}

impl To {
    /// What a file is called that it may take the place of, and how one is told.
    fn kind(self) -> (&'static str, fn(&[u8]) -> bool) {
        match self {
            Self::Format(_) => ("a conversation", |bytes| recognise(bytes, "").is_ok()),
            Self::Mcp => ("the result of a tool", |bytes| {
                std::str::from_utf8(bytes).is_ok_and(|text| from_mcp_result(text).is_ok())
            }),
            Self::Facts => ("a list of facts", |bytes| read_facts(bytes).is_ok()),
            Self::Episodes => ("a list of episodes", |bytes| read_episodes(bytes).is_ok()),
        }
    }
}

impl ValueEnum for To {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [To; Format::ALL.len() + 3] = {
            let mut all = [To::Mcp; Format::ALL.len() + 3];
            let mut at = 0;
            while at < Format::ALL.len() {
                all[at] = To::Format(Format::ALL[at]);
                at += 1;
            }
            all[at + 1] = To::Facts;
            all[at + 2] = To::Episodes;
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Format(format) => PossibleValue::new(format.key()).help(format.name()),
            Self::Mcp => PossibleValue::new("mcp").help("one result, as an MCP server returns it"),
            Self::Facts => PossibleValue::new("facts").help("what it remembers, for `ingest --facts`"),
            Self::Episodes => PossibleValue::new("episodes").help("what happened before, for `ingest --episodes`"),
        })
    }
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let files = Files::default().read("--events", &args.events).read("--session", &args.session);
    files.written("--out", &args.out).check()?;
    let (what, is_one) = args.to.kind();
    args.out.iter().try_for_each(|path| args.overwrite.check(path, what, is_one))?;
    let conversation = conversation(args)?;
    let text = match args.to {
        To::Format(format) => {
            remark(&format.remarks(&conversation));
            format.write(&conversation)?
        }
        To::Mcp => result(&conversation, args.event.as_deref().unwrap_or_default())?,
        To::Facts => facts_to_lines(&conversation.facts),
        To::Episodes => episodes_to_lines(&conversation.episodes),
    };
    write_result(args.out.as_deref(), text.as_bytes(), out)?;
    Ok(Outcome::Ok)
}

fn conversation(args: &Args) -> Result<Conversation> {
    match (&args.events, &args.session) {
        (Some(path), _) => {
            let place = path.display().to_string();
            let (format, mut conversation) = recognise(&read_input(path)?, &prefix(path)).context(place)?;
            if args.to != To::Format(format) {
                remark(&conversation.remarks);
            }
            // What stands around the events (the model, the tools) has no meaning in another format.
            conversation.document = conversation.document.filter(|_| args.to == To::Format(format));
            Ok(conversation)
        }
        (None, Some(path)) => {
            let results = if args.whole { Results::Whole } else { Results::Shown };
            Ok(load(path)?.conversation(results)?)
        }
        (None, None) => bail!("give --events or --session"),
    }
}

/// Says what is left out, on standard error.
fn remark(remarks: &[String]) {
    remarks.iter().for_each(|remark| note(&format!("note: {remark}")));
}

/// The result called `id` as the answer of a server.
fn result(conversation: &Conversation, id: &str) -> Result<String> {
    let results = || conversation.events.iter().filter(|event| event.item.kind == ItemKind::ToolResult);
    let Event { item, output, .. } = results().find(|event| event.item.id.as_str() == id).ok_or_else(|| {
        let known: Vec<&str> = results().map(|event| event.item.id.as_str()).take(10).collect();
        match known.is_empty() {
            true => anyhow!("the conversation has no results"),
            false => anyhow!("no result has the id `{id}`; the first are {}", known.join(", ")),
        }
    })?;
    let output = output.clone().unwrap_or_else(|| ToolOutput::text(item.text.clone()));
    Ok(format!("{:#}\n", to_mcp_result(&output)?))
}
