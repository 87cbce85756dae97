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
    let command = laid_out(Cli::command());
    let list = list(&command);
    let header = STYLES.get_header();
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{header}Commands:{header:#}\n{list}\n\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    ))
}

/// The command and all below it, with the text behind their options laid out.
fn laid_out(command: Command) -> Command {
    let command = match command.get_after_help().map(|text| layout(&text.to_string())) {
        Some(text) => command.after_help(text),
        None => command,
    };
    command.mut_subcommands(laid_out)
}

/// Each paragraph as one line, which the width of the terminal breaks, and examples in lines that it does not break.
fn layout(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        match lines.last_mut() {
            _ if line.starts_with(' ') => lines.extend(folded(line)),
            Some(last) if !line.is_empty() && !last.is_empty() && !last.starts_with(' ') => {
                last.push(' ');
                last.push_str(line);
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n")
}

/// An example in lines that can be pasted together, broken before a flag, an argument in quotes or a redirection.
fn folded(line: &str) -> Vec<String> {
    const COLUMNS: usize = 78;
    let is_command = line.contains("contextweaver ") || line.trim_start().starts_with("--");
    if line.chars().count() <= COLUMNS || !is_command {
        return vec![line.to_owned()];
    }
    let mut parts: Vec<String> = Vec::new();
    let (mut is_quoted, mut is_value) = (false, false);
    for word in line.split(' ') {
        let begins = word.starts_with(['-', '>']) || (word.starts_with(['"', '\'']) && !is_value);
        match parts.last_mut() {
            Some(part) if is_quoted || !begins => {
                part.push(' ');
                part.push_str(word);
            }
            _ => parts.push(word.to_owned()),
        }
        is_quoted ^= word.matches(['"', '\'']).count() % 2 == 1;
        is_value = word.starts_with('-');
    }
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(last) if last.chars().count() + part.chars().count() + " ".len() + " \\".len() <= COLUMNS => {
                last.push(' ');
                last.push_str(&part);
            }
            Some(last) => {
                last.push_str(" \\");
                lines.push(format!("    {part}"));
            }
            None => lines.push(part),
        }
    }
    lines
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_whole_and_examples_are_folded() {
        insta::assert_snapshot!(layout("\
One sentence,
and its end.

Examples:
  contextweaver short
  contextweaver bench eval --catalog tools.json --queries queries.jsonl --choose 'model=python3 chooser.py' \\
    --record answers.jsonl
  contextweaver feedback add --log feedback.jsonl --catalog tools.json --tool \"pager:get\" \"who is on call - now\"
  contextweaver completions bash > ~/.local/share/bash-completion/completions/contextweaver

Exit codes: 0 good,
1 bad."), @r#"
        One sentence, and its end.

        Examples:
          contextweaver short
          contextweaver bench eval --catalog tools.json --queries queries.jsonl \
            --choose 'model=python3 chooser.py' \
            --record answers.jsonl
          contextweaver feedback add --log feedback.jsonl --catalog tools.json \
            --tool "pager:get" "who is on call - now"
          contextweaver completions bash \
            > ~/.local/share/bash-completion/completions/contextweaver

        Exit codes: 0 good, 1 bad.
        "#);
    }
}
