//! One file per command, or one folder where a command has commands of its own: arguments, calls into rooms, print. Beside
//! them lies what several commands share.
//!
//! Commands write to the writer they are given, so that tests read what a person would. Progress and notes go to
//! standard error, results to standard output. Exit codes: 0 same or fine, 1 drift or a failed gate, 2 error.

use std::ffi::OsString;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, FromArgMatches, Parser, Subcommand, ValueEnum};

use contextweaver_bench::report::number;
use contextweaver_core::catalog::CatalogError;
use contextweaver_core::text::causes;

mod again;
mod bench;
mod budget_check;
mod build;
mod catalog;
mod client;
mod completions;
mod consolidate;
mod demo;
mod download;
mod export;
mod feedback;
mod files;
mod firewall;
mod gold;
mod handoff;
mod help;
mod http;
mod ingest;
mod init;
mod inspect;
mod mcp;
mod models;
mod output;
mod outside;
mod price;
mod print_tree;
mod replay;
mod route;
mod schema;
mod serve;
mod session;
mod source;
mod stats;
mod terminal;
mod tools;
mod verify;
mod view;

pub(crate) use self::output::Output;

/// How a command ended when nothing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Exit code 0.
    Ok,
    /// Exit code 1: something differs, or a gate failed.
    Drift,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Ok => Self::SUCCESS,
            Outcome::Drift => Self::from(1),
        }
    }
}

/// The form of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// For machines: one JSON document.
    Json,
}

#[derive(Debug, Parser)]
#[command(
    name = "contextweaver",
    version,
    styles = help::STYLES,
    about = "Routes queries to the right tools, compiles prompts within exact budgets, and measures how well that works",
    after_help = "Start here:\n  contextweaver demo\n  contextweaver init\n  contextweaver route --catalog tools.json \"open a ticket about the login bug\"\n  contextweaver firewall result.json\n  contextweaver bench eval --catalog tools.json --queries queries.jsonl\n\nExit codes: 0 same or fine, 1 drift or a failed gate, 2 error."
)]
#[command(arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what contextweaver does, in seconds, on built-in data
    Demo(demo::Args),
    /// Write the files for what you have: MCP clients, a list of tools, an OpenAPI document
    Init(init::Args),
    /// Rank the tools of a catalog for a query
    Route(Box<route::Args>),
    /// Read a conversation in any known format into a session file
    Ingest(ingest::Args),
    /// Write a conversation in the format of a provider or another program
    Export(export::Args),
    /// Print the prompt that a session gives for a phase
    Replay(replay::Args),
    /// Write what the next agent needs to know about a session, within a budget
    Handoff(handoff::Args),
    /// Consolidate several sessions into one memory: facts and episodes, with their sources
    Consolidate(consolidate::Args),
    /// Show what a prompt holds, what it leaves out, and why
    Stats(stats::Args),
    /// Inspect a session: events, artifacts, facts, prompts
    Inspect(inspect::Args),
    /// Show part of an artifact of a session
    View(view::Args),
    /// Check the prompts of a session against bounds, for CI
    BudgetCheck(budget_check::Args),
    /// Run, show and check the benchmark
    #[command(subcommand)]
    Bench(Box<bench::Command>),
    /// Serve the engines over HTTP: route, compile, compact, view, count, hand over, evaluate
    Serve(Box<serve::Args>),
    /// Inspect catalogs (contents, problems, differences) and convert them
    #[command(subcommand)]
    Catalog(catalog::Command),
    /// Manage the test collections
    #[command(subcommand)]
    Gold(gold::Command),
    /// Put one gateway in front of MCP servers, and check it
    #[command(subcommand)]
    Mcp(mcp::Command),
    /// Build the index and choice graph of a catalog and save them
    Build(build::Args),
    /// Keep a log of which queries led to which tools, for `route --feedback`
    #[command(subcommand)]
    Feedback(feedback::Command),
    /// Show the sentence encoder that `route --model` uses
    #[command(subcommand)]
    Models(models::Command),
    /// Show what a prompt would get in place of a result
    Firewall(firewall::Args),
    /// Show the choice graph for browsing a catalog
    PrintTree(print_tree::Args),
    /// Print the JSON Schema of a kind of file, for editors and checks
    Schema(schema::Args),
    /// Check that this installation works, without a network
    Verify(verify::Args),
    /// Print a completion script for a shell, or write the manual pages
    Completions(completions::Args),
}

/// Parses `arguments` (the program's name first) and runs the command.
///
/// # Errors
/// Whatever stopped the command, with its causes. A wrong command line is reported here too; `--help` and
/// `--version` print and succeed.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let mut command = help::command();
    let matches = command.try_get_matches_from_mut(arguments);
    let knows_lenient = matches.as_ref().is_ok_and(knows_lenient);
    let parsed = matches.and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches));
    let cli = match parsed.map_err(|error| error.format(&mut command)) {
        Ok(cli) => cli,
        // A bare command asks what there is.
        Err(error) if error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            return Err(error.into());
        }
        // Help is for whoever looks at standard output: colours follow what that is.
        Err(help) => {
            let mut stdout = anstream::stdout();
            let written = write!(stdout, "{}", help.render().ansi()).and_then(|()| stdout.flush());
            output::read_or_not(written, ())?;
            return Ok(Outcome::Ok);
        }
    };
    let ended = match cli.command {
        Command::Demo(args) => demo::run(&args, out),
        Command::Init(args) => init::run(&args, out),
        Command::Route(args) => route::run(&args, out),
        Command::Ingest(args) => ingest::run(&args, out),
        Command::Export(args) => export::run(&args, out),
        Command::Replay(args) => replay::run(&args, out),
        Command::Handoff(args) => handoff::run(&args, out),
        Command::Consolidate(args) => consolidate::run(&args, out),
        Command::Stats(args) => stats::run(&args, out),
        Command::Inspect(args) => inspect::run(&args, out),
        Command::View(args) => view::run(&args, out),
        Command::BudgetCheck(args) => budget_check::run(&args, out),
        Command::Bench(command) => bench::run(&command, out),
        Command::Catalog(command) => catalog::run(&command, out),
        Command::Gold(command) => gold::run(&command, out),
        Command::Mcp(command) => mcp::run(&command, out),
        Command::Serve(args) => serve::run(&args),
        Command::Build(args) => build::run(&args, out),
        Command::Feedback(command) => feedback::run(&command, out),
        Command::Models(command) => models::run(&command, out),
        Command::Firewall(args) => firewall::run(&args, out),
        Command::PrintTree(args) => print_tree::run(&args, out),
        Command::Schema(args) => schema::run(&args, out),
        Command::Verify(args) => verify::run(&args, out),
        Command::Completions(args) => completions::run(&args, &mut command, out),
    };
    ended.map_err(|error| if knows_lenient { error } else { without_lenient(error) })
}

/// Whether the command that was given has the flag `--lenient`.
fn knows_lenient(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, matches)) => knows_lenient(matches),
        None => matches.try_contains_id("lenient").is_ok(),
    }
}

/// The error without the advice to use a flag that the command does not have.
fn without_lenient(mut error: anyhow::Error) -> anyhow::Error {
    if let Some(CatalogError::Parse { fault, .. }) = error.downcast_mut() {
        fault.can_be_left_out = false;
    }
    error
}

/// Says on standard error what went wrong: as JSON in the one form where the command line asks for JSON, else as text. That
/// it cannot be written is no reason to fail otherwise.
pub(crate) fn report(error: &anyhow::Error, arguments: impl IntoIterator<Item = OsString>) {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let is_json = arguments.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json")
        || arguments.iter().any(|one| one == "--format=json");
    let usage = error.downcast_ref::<clap::Error>().map(clap::Error::render);
    let _ = match (is_json, usage) {
        (false, Some(usage)) => {
            writeln!(anstream::stderr(), "{}", in_words(&usage.ansi().to_string()).trim_end())
        }
        (false, None) => {
            let style = help::STYLES.get_error();
            writeln!(anstream::stderr(), "{style}error:{style:#} {}", chain(error))
        }
        (true, usage) => {
            let message = usage.map_or_else(|| chain(error), |usage| in_words(&usage.to_string()));
            let message = message.trim_start_matches("error: ").trim_end();
            writeln!(io::stderr(), "{}", contextweaver_api::Problem::document(message))
        }
    };
}

/// What the parser of the command line says of a number, as people say it; without its tip to take an unknown flag for a value,
/// which nobody means.
fn in_words(usage: &str) -> String {
    let is_tip = |line: &str| line.contains("as a value, use") && line.contains("-- --");
    let usage = match usage.split("\n\n").any(is_tip) {
        true => usage.split("\n\n").filter(|part| !is_tip(part)).collect::<Vec<_>>().join("\n\n"),
        false => usage.to_owned(),
    };
    [
        ("invalid digit found in string", "give a whole number"),
        ("invalid float literal", "give a number"),
        ("cannot parse integer from empty string", "give a whole number"),
        ("cannot parse float from empty string", "give a number"),
        ("number too large to fit in target type", "the number is too large"),
    ]
    .into_iter()
    .fold(usage, |usage, (theirs, ours)| usage.replace(theirs, ours))
}

/// An error and its causes on one line each.
fn chain(error: &anyhow::Error) -> String {
    causes(error.as_ref()).join("\n  caused by: ")
}

/// An error and its causes on one line; what passes its cause on says nothing twice.
fn in_one_line(error: &anyhow::Error) -> String {
    causes(error.as_ref()).join(": ")
}

/// Reads a number of things that cannot be none.
fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "give a whole number, at least 1".to_owned())
}

/// Writes what a command found as indented JSON, in the one form of all commands: an object that begins with
/// `schema_version` and `kind`: the words of the command, and of what changes the form of its results. A list is its member
/// `items`.
///
/// # Errors
/// What cannot be written, or a value of the command that has one of the two names itself.
fn print_json(out: &mut dyn Write, kind: &str, value: &impl serde::Serialize) -> anyhow::Result<()> {
    print_document(out, &contextweaver_api::envelope(kind, value)?)
}

/// Writes a document whose form others define as indented JSON.
fn print_document(out: &mut dyn Write, value: &impl serde::Serialize) -> anyhow::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)?;
    Ok(())
}

/// A count with its noun, of which the plural takes an s: `1 tool`, `2,000 tools`.
fn counted(number: usize, noun: &str) -> String {
    number::counted(number, noun, &format!("{noun}s"))
}

/// Writes a note for people to standard error. That it cannot be written is no reason to stop.
fn note(text: &str) {
    let _ = write_line(&mut io::stderr(), text);
}

/// Writes a line at once. Standard error holds nothing back, so that `writeln!` would write each part by itself: who waits
/// for the line could read half of it, and a line of another thread could come between.
fn write_line(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(format!("{text}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    /// Holds what each call wrote.
    struct Calls(Vec<Vec<u8>>);

    impl Write for Calls {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What a command writes to standard output, or its error.
    fn ran(arguments: &[&str]) -> Result<String, String> {
        let mut out = Vec::new();
        let arguments = std::iter::once("contextweaver").chain(arguments.iter().copied()).map(Into::into);
        match super::run(arguments, &mut out) {
            Ok(_) => Ok(String::from_utf8_lossy(&out).into_owned()),
            Err(error) => Err(super::in_words(&super::chain(&error))),
        }
    }

    #[test]
    fn a_result_for_standard_output_has_it_for_itself() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (tools, chat, session) = (at("tools.json"), at("chat.json"), at("chat.session"));
        std::fs::write(&tools, r#"[{"name": "pay", "description": "Pay a bill"}]"#).unwrap();
        std::fs::write(&chat, r#"[{"role": "user", "content": "pay the bill"}]"#).unwrap();
        ran(&["ingest", "--events", &chat, "--out", &session]).unwrap();
        let gold = concat!(env!("CARGO_MANIFEST_DIR"), "/gold");
        let table: [(&[&str], &str); 8] = [
            (&["catalog", "convert", &tools, "--to", "mcp"], "{\n  \"tools\": ["),
            (&["build", "--catalog", &tools], "{\"format\":\"contextweaver-index\""),
            (&["ingest", "--events", &chat], "{\n\"format\": \"contextweaver session\""),
            (&["export", "--session", &session, "--to", "openai"], "["),
            (&["handoff", "--session", &session, "--format", "json"], "{\n\"format\": \"contextweaver session\""),
            (&["consolidate", &session], "{\n  \"format\": \"contextweaver memory\""),
            (&["gold", "draft", "--catalog", &tools], "{\"id\":\"draft-001\""),
            (&["gold", "grow", "workbench", "--gold", gold, "--grade", "sibling", "--size", "80"], "["),
        ];
        for (command, begins) in table {
            let written = ran(&[command, &["--out", "-"]].concat()).unwrap();
            assert!(written.starts_with(begins), "{command:?}: {written:.200}");
            assert!(!written.contains("wrote "), "{command:?}");
        }
        assert!(!std::path::Path::new("-").exists());
        let names = ran(&["catalog", "convert", &tools, "--to", "openai", "--names", "-"]).unwrap_err();
        assert_eq!(names, "--names -: only --out can be standard output; name a file");
    }

    #[test]
    fn what_is_wrong_with_a_command_line_says_what_helps() {
        for (arguments, said, unsaid) in [
            (&["demo", "--format", "json"][..], "unexpected argument '--format' found", "-- --format"),
            (&["route", "--catalog", "t", "-k", "-1", "x"], "give a whole number, at least 1", "-- -1"),
            (&["print-tree"], "<--catalog <PATH>|--graph <FILE>>", "tip"),
        ] {
            let text = ran(arguments).unwrap_err();
            assert!(text.contains(said) && !text.contains(unsaid), "{arguments:?}: {text}");
        }
    }

    #[test]
    fn nobody_reads_half_a_line() {
        let mut calls = Calls(Vec::new());
        super::write_line(&mut calls, "listening at http://127.0.0.1:8100").unwrap();
        assert_eq!(calls.0, [b"listening at http://127.0.0.1:8100\n"]);
    }
}
