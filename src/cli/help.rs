//! The look of the help: its colours, and long lists in groups.
//!
//! A terminal gets colours unless `NO_COLOR` is set; what is not a terminal gets text alone.

use std::fmt::Write as _;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Arg, Command, CommandFactory};

use super::Cli;

/// Colours that can be read on light and dark ground.
pub(super) const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Columns of the list of commands, at most.
const COLUMNS: usize = 80;

/// The commands by what they are for. One that is in no group is listed at the end.
const GROUPS: [(&str, &[&str]); 6] = [
    ("First steps", &["demo", "init"]),
    ("Tools", &["route", "catalog", "build", "print-tree", "feedback", "models"]),
    (
        "Results and conversations",
        &[
            "firewall",
            "ingest",
            "export",
            "replay",
            "stats",
            "inspect",
            "view",
            "budget-check",
            "handoff",
            "consolidate",
        ],
    ),
    ("Servers", &["mcp", "serve"]),
    ("Measurements", &["bench", "gold"]),
    ("This program", &["verify", "schema", "completions", "help"]),
];

/// The flags of `route` by what they are for. Those that are in no group stay among the options.
const ROUTE: [(&str, &[&str]); 3] = [
    ("Which tools may be found", &["namespace", "tag", "exclude", "exclude_tag", "no_destructive", "pin", "quota"]),
    ("What came before", &["called", "last_result", "feedback"]),
    ("What is printed", &["explain", "schema", "tools_as", "decided_at", "names", "html", "format"]),
];

/// The whole command line, with its commands in groups.
pub(super) fn command() -> Command {
    let command = Cli::command();
    let list = list(&command);
    let header = STYLES.get_header();
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{header}Commands:{header:#}\n{list}\n\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    ))
}

fn list(command: &Command) -> String {
    let mut about: Vec<(&str, String)> = command
        .get_subcommands()
        .map(|one| (one.get_name(), one.get_about().map(ToString::to_string).unwrap_or_default()))
        .collect();
    about.push(("help", "Print this, or the help of a command".to_owned()));
    let width = about.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let listed = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others: Vec<&str> = about.iter().map(|(name, _)| *name).filter(|name| !listed(name)).collect();
    let (header, literal) = (STYLES.get_header(), STYLES.get_literal());
    let mut text = String::new();
    for (heading, names) in
        GROUPS.iter().chain([("Others", others.as_slice())].iter()).filter(|(_, names)| !names.is_empty())
    {
        // Writing to a string never fails.
        let _ = writeln!(text, "\n{header}{heading}:{header:#}");
        for (name, about) in names.iter().filter_map(|name| about.iter().find(|(other, _)| other == name)) {
            let _ = write!(text, "  {literal}{name:width$}{literal:#} ");
            let mut column = width + 3;
            for word in about.split(' ') {
                if column + 1 + word.len() > COLUMNS {
                    let _ = write!(text, "\n{:1$}", "", width + 3);
                    column = width + 3;
                }
                let _ = write!(text, " {word}");
                column += 1 + word.len();
            }
            text.push('\n');
        }
    }
    text
}

/// Puts a flag of `route` under the heading of its group.
pub(super) fn under_heading(flag: Arg) -> Arg {
    let heading = ROUTE.iter().find(|(_, ids)| ids.contains(&flag.get_id().as_str()));
    match heading {
        Some((heading, _)) => flag.help_heading(*heading),
        None => flag,
    }
}
