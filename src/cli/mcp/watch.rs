//! A view that follows what happens until it is ended.
//!
//! On a terminal a view stands in one place and is drawn anew: no line is longer than the terminal is wide, and no view higher. To a
//! file or a pipe each view is written once, below the last, and only when something changed; no character moves a cursor there.
//! There are no colours.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use anyhow::Result;

use super::block_on;
use crate::cli::http::signalled;
use crate::cli::output::reader_has_gone;
use crate::cli::terminal::shown;
use crate::cli::{Format, Outcome, print_json};

/// How many columns and lines a view may have.
#[derive(Debug, Clone, Copy)]
struct Room {
    columns: usize,
    lines: usize,
}

/// Where a terminal does not say how large it is.
const USUAL: Room = Room { columns: 80, lines: 24 };

/// Writes what `look` gives, at once and then every so often, until the process is told to end or nobody reads any more. `head`
/// stands above each view on a terminal.
///
/// # Errors
/// What `look` gives, or the view cannot be written.
pub(super) fn watch(
    every: Duration,
    head: &str,
    out: &mut dyn Write,
    mut look: impl AsyncFnMut() -> Result<String>,
) -> Result<Outcome> {
    let on_terminal = std::io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    block_on(async {
        let ended = signalled()?;
        tokio::pin!(ended);
        let (mut last, mut drawn) = (None, 0);
        loop {
            let view = tokio::select! {
                view = look() => view?,
                () = &mut ended => break,
            };
            if on_terminal {
                let view = fitted(&format!("{head}\n\n{view}"), room());
                // Up to where the last view began, and nothing of it stays.
                if drawn > 0 {
                    write!(out, "\x1b[{drawn}A")?;
                }
                write!(out, "\r\x1b[J{view}")?;
                drawn = view.lines().count();
            } else if last.as_ref() != Some(&view) {
                if last.is_some() {
                    writeln!(out)?;
                }
                write!(out, "{view}")?;
                last = Some(view);
            }
            out.flush()?;
            if reader_has_gone() {
                break;
            }
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                () = &mut ended => break,
            }
        }
        Ok(Outcome::Ok)
    })
}

/// Follows a gateway that runs at `url`, which is asked every so many seconds. One that does not answer at first is an error; one that
/// has answered may be on its way up again.
///
/// # Errors
/// As [`watch`].
pub(super) fn watch_gateway(
    url: &str,
    interval: u64,
    format: Format,
    out: &mut dyn Write,
    mut look: impl AsyncFnMut() -> Result<String>,
) -> Result<Outcome> {
    let head = format!("{}, every {interval} s; Ctrl-C ends it", shown(url));
    let mut has_answered = false;
    watch(Duration::from_secs(interval), &head, out, async || match look().await {
        Ok(view) => {
            has_answered = true;
            Ok(view)
        }
        Err(error) if has_answered => Ok(failure(format, &error)),
        Err(error) => Err(error),
    })
}

/// The room of the terminal now: it may have been made larger or smaller.
fn room() -> Room {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdout())
        && size.ws_col > 0
        && size.ws_row > 0
    {
        return Room { columns: usize::from(size.ws_col), lines: usize::from(size.ws_row) };
    }
    USUAL
}

/// The view with its lines cut off at the last column, and one line less than there is room for: the cursor stands there.
fn fitted(view: &str, room: Room) -> String {
    let most = room.lines.saturating_sub(1).max(1);
    let mut text = String::new();
    let all = view.lines().count();
    for line in view.lines().take(if all > most { most - 1 } else { most }) {
        text.push_str(&cut(line, room.columns));
        text.push('\n');
    }
    if all > most {
        text.push_str("…\n");
    }
    text
}

/// The beginning of a line that fits, with a mark where something is missing.
fn cut(line: &str, columns: usize) -> String {
    if line.chars().map(width).sum::<usize>() <= columns {
        return line.to_owned();
    }
    let mut room = columns.saturating_sub(1);
    let fits = |c: &char| {
        let left = room.checked_sub(width(*c));
        room = left.unwrap_or(room);
        left.is_some()
    };
    let text: String = line.chars().take_while(fits).collect();
    text.trim_end().to_owned() + "…"
}

/// Columns of a character, about: those of East Asia and pictures take two.
fn width(c: char) -> usize {
    match c {
        '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' => 2,
        '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{1f300}'..='\u{1faff}' | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// What a command prints, as text.
pub(super) fn written(write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<String> {
    let mut view = Vec::new();
    write(&mut view)?;
    Ok(String::from_utf8(view)?)
}

/// A document of the command on one line.
pub(super) fn json_line(kind: &str, value: &impl serde::Serialize) -> Result<String> {
    let document: serde_json::Value = serde_json::from_str(&written(|view| print_json(view, kind, value))?)?;
    Ok(format!("{document}\n"))
}

/// What is wrong for a while, in the form of the output.
fn failure(format: Format, error: &anyhow::Error) -> String {
    let message = format!("{error:#}");
    match format {
        Format::Json => contextweaver_api::Problem::document(&message).to_string() + "\n",
        Format::Text => shown(&message) + "\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_fits_the_terminal() {
        let cases = [
            ("short\nlines\n", (80, 24), "short\nlines\n"),
            ("a line of thirty characters ...\n", (10, 24), "a line of…\n"),
            ("ends in a space\n", (9, 24), "ends in…\n"),
            ("日本語の名前\n", (12, 24), "日本語の名前\n"),
            ("日本語の名前\n", (8, 24), "日本語…\n"),
            ("1\n2\n3\n4\n", (80, 5), "1\n2\n3\n4\n"),
            ("1\n2\n3\n4\n5\n", (80, 5), "1\n2\n3\n…\n"),
            ("1\n2\n", (1, 1), "…\n"),
        ];
        for (view, (columns, lines), expected) in cases {
            assert_eq!(fitted(view, Room { columns, lines }), expected, "{view:?} in {columns} × {lines}");
        }
    }
}
