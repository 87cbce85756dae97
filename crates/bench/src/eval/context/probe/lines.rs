//! Questions about results that are lines of text.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::{Class, Kind, NEEDLES, Probe, draw, excerpt, is_distinctive};
use crate::eval::rng::Rng;
use contextweaver_context::event::Selector;

/// Outline entries asked about at most, spread evenly.
const OUTLINE: usize = 12;

/// Lines read to tell what kind of text it is.
const SAMPLE: usize = 400;

/// A pattern of this file; all of them are constants that compile.
fn pattern(text: &str) -> Regex {
    #[allow(clippy::unwrap_used, reason = "a constant, compiled in the tests")]
    Regex::new(text).unwrap()
}

macro_rules! patterns {
    ($($name:ident = $text:literal;)+) => { $(static $name: LazyLock<Regex> = LazyLock::new(|| pattern($text));)+ };
}

patterns! {
    LEVEL = r"\b(TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|ERR|CRITICAL|FATAL|SEVERE)\b|\blevel=(\w+)";
    TIME = r"\b\d{2}:\d{2}:\d{2}\b";
    STAMPED = r"^\W{0,2}(?:\w+=)?(?:\d{4}-\d{2}-\d{2}|\w{3} +\d{1,2} \d{2}:\d{2}|\d{2}:\d{2}:\d{2})";
    HUNK = r"(?m)^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@";
    FRAME = r#"^\s*(?:at .+|File "[^"]+", line \d+.*|\d+: 0x[0-9a-f]+.*)$"#;
    PYTHON_FRAME = r#"File "([^"]+)", line (\d+)(?:, in (\S+))?"#;
    OTHER_FRAME = r"^\s*at (?:(?:async )?([\w.$<>\[\]: ]+) ?\(([^()]+)\)|(.+))$";
    EXCEPTION = r"^((?:[\w.]+\.)?\w*(?:Error|Exception|Panic|Interrupt|Fault)\w*)(?::\s*(.*))?$";
    FAILURE = r"(?i)\b(error|exception|failed|failure|denied|fatal|enoent|not found|invalid|cannot)\b";
    DEFINITION = r"^\s*(?:pub(?:\([\w: ]+\))? |export |default |public |private |protected |static |final |abstract |async |const |unsafe |extern )*(fn|def|class|struct|enum|trait|interface|function|func|type|impl|module|namespace|macro_rules!)\s+(?:\([^)]*\)\s*)?([A-Za-z_]\w*)";
    CODE_LINE = r"[;{}]\s*$|^\s*(?:use|import|from|#include|package|return|let|const|var|def|class|fn|pub|func|public|private|if|for|while|elif|else|@\w+)\b|^\s*(?://|/\*|\*/)|\)\s*:\s*$|^\s*self\.";
    STATEMENT = r"^(?:\s*(?:def|class) \w+.*:|import [\w., ]+|from [\w.]+ import .+)$";
    HEADING = r"^#{1,6} +(.+?) *#*$";
    MARKDOWN_LINE = r"^(?:#{1,6} |[-*+] |\d+[.)] |> |```|\|.*\|$)|\[[^\]]+\]\([^)]+\)|\*\*[^*]+\*\*";
    PAIR = r"^\s*[-*]?\s*([A-Za-z_][\w .\-/]{0,39}?)\s*(?::\s|=>?)\s*(\S.*)$";
    ENTRY = r"^\s*(?:\[(?:FILE|DIR)\]\s+\S|[d-][rwxst-]{9}\s|(?:[\w@.+\- ]*/)*[\w@.+\-]+(?:\.\w{1,8}|/)?\s*(?:\d[\d.]* ?[KMG]?i?B)?\s*$)";
    SIZE = r"(\d[\d.]*) ?([KMG]?i?B)\s*$";
    LINK = r"\[([^\]]*)\]\([^)]*\)";
    TAG = r"<[^>]+>";
    INLINE_TAG = r"(?i)</?(?:a|abbr|b|code|em|i|kbd|mark|s|small|span|strong|sub|sup|tt|u|var)(?:\s[^>]*)?>";
    TITLE = r"(?is)<title[^>]*>(.*?)</title>";
    HTML_HEADING = r"(?is)<h[1-6][^>]*>(.*?)</h[1-6]>";
    TOTAL = r"^\s*((?:Total|Combined|Count|Found|Summary|Sum)[\w ]*):?\s+(.*\d.*)$";
}

/// What kind of text it is.
pub(super) fn detect(text: &str) -> Kind {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(SAMPLE).collect();
    let share = |pattern: &Regex| lines.iter().filter(|line| pattern.is_match(line)).count() * 100 / lines.len().max(1);
    let begins = text.trim_start().get(..200.min(text.trim_start().len())).unwrap_or(text).to_lowercase();
    let frames = lines.iter().filter(|line| FRAME.is_match(line)).count();
    if HUNK.is_match(text) && (text.contains("\n+++ ") || text.contains("diff --git ")) {
        Kind::Diff
    } else if begins.contains("traceback (most recent call last)") || frames >= 3 && frames * 4 >= lines.len() {
        Kind::Trace
    } else if begins.starts_with("<!doctype html")
        || begins.starts_with("<html")
        || text.matches("</").count() > 9 && share(&TAG) >= 40
    {
        Kind::Html
    } else if lines.len() >= 4 && share(&STAMPED) >= 50 || share(&LEVEL) >= 50 {
        Kind::Log
    } else if share(&CODE_LINE) >= 35 || is_python(&lines) {
        Kind::Code
    } else if lines.len() >= 4 && share(&ENTRY) >= 70 {
        Kind::Listing
    } else if share(&MARKDOWN_LINE) >= 15 || lines.iter().any(|line| line.starts_with("# ") || line.starts_with("## "))
    {
        Kind::Markdown
    } else if lines.len() >= 3 && share(&PAIR) >= 60 {
        Kind::Keyvalue
    } else {
        Kind::Plain
    }
}

/// Whether these are lines of Python, whose comments look like headings and whose texts look like prose.
fn is_python(lines: &[&str]) -> bool {
    let statements = lines.iter().filter(|line| STATEMENT.is_match(line)).count();
    statements > 2 && !lines.iter().any(|line| line.starts_with("```"))
}

/// A line that is not blank, with its number.
type Line<'t> = (usize, &'t str);

/// The questions about a text of this kind.
pub(super) fn ask(kind: Kind, text: &str, rng: &mut Rng) -> Vec<Probe> {
    let all = text.lines().count();
    let lines: Vec<Line> = text.lines().enumerate().filter(|(_, line)| letters(line) >= 4).collect();
    let mut probes = match kind {
        Kind::Diff => return diff(text, rng),
        Kind::Html => return html(text, rng),
        Kind::Listing => return listing(text, rng),
        Kind::Keyvalue => return pairs(&lines, all, rng),
        Kind::Trace => trace(text),
        Kind::Log => log(&lines),
        Kind::Code => outline(definitions(text)),
        Kind::Markdown => outline(headings(text)),
        _ => Vec::new(),
    };
    if all > 1 && kind != Kind::Trace {
        probes.push(Probe::new(Class::Shape, &["lines", "line", "entries", "loc", "rows"], all.to_string()));
    }
    if kind != Kind::Trace {
        probes.extend(lines.first().and_then(|line| line_probe(Class::Ends, line.1)));
        // Text that ends with a closing bracket has no telling end.
        let last = text.lines().rfind(|line| !line.trim().is_empty()).filter(|_| lines.len() > 1);
        probes.extend(last.and_then(|line| line_probe(Class::Ends, line)));
    }
    if matches!(kind, Kind::Plain | Kind::Markdown) && lines.len() < 40 {
        probes.extend(first_failure(&lines));
    }
    probes.extend(needles(&lines, rng));
    probes
}

fn letters(line: &str) -> usize {
    line.chars().filter(|c| c.is_alphanumeric()).count()
}

/// Lines that stand once in the text and say something.
fn needles(lines: &[Line], rng: &mut Rng) -> Vec<Probe> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, line) in lines {
        *counts.entry(excerpt(line, 36)).or_default() += 1;
    }
    let telling = |line: &str| letters(excerpt(line, 36)) >= 10 && counts.get(excerpt(line, 36)) == Some(&1);
    let telling: Vec<&Line> = lines.iter().filter(|(_, line)| telling(line)).collect();
    let drawn = draw(rng, telling.len(), NEEDLES).into_iter().filter_map(|at| telling.get(at));
    drawn.filter_map(|(number, line)| Some(needle(*number, line.len(), line_probe(Class::Needle, line)?))).collect()
}

/// The probe as a needle in the line of this number and length: asked for by the number, or by what it says where the
/// line is too long to be read whole.
fn needle(number: usize, length: usize, probe: Probe) -> Probe {
    const LONG: usize = 400;
    let value = probe.answers.first().and_then(|answer| answer.first());
    let place = match value {
        Some(value) if length > LONG => Selector::Grep { pattern: regex::escape(value), context: 0 },
        _ => Selector::Lines { start: number as i64, end: Some(number as i64 + 1) },
    };
    probe.at(place)
}

/// A line as a question: its beginning names it, what follows is the answer. A short line speaks for itself.
fn line_probe(class: Class, line: &str) -> Option<Probe> {
    let line = line.trim();
    let whole = excerpt(line, 36);
    if letters(whole) < 4 {
        return None;
    }
    let Some(split) = whole.char_indices().skip(12).find(|(_, c)| *c == ' ').map(|(at, _)| at) else {
        return Some(Probe::new(class, &[], whole));
    };
    let (label, value) = (whole.get(..split)?, whole.get(split..)?.trim());
    if letters(value) < 4 { Some(Probe::new(class, &[], whole)) } else { Some(Probe::new(class, &[label], value)) }
}

/// The first line that reports a failure: the word, and what the line says behind it.
fn first_failure(lines: &[Line]) -> Option<Probe> {
    let (line, found) = lines.iter().find_map(|(_, line)| Some((*line, FAILURE.find(line)?)))?;
    let after = line.get(found.end()..)?.trim_start_matches([':', ' ', '-', ']']);
    let message = excerpt(after, 36);
    if letters(message) >= 4 {
        return Some(Probe::new(Class::Error, &[found.as_str()], message));
    }
    Some(Probe::new(Class::Error, &[], excerpt(line, 36))).filter(|_| letters(excerpt(line, 36)) >= 4)
}

fn log(lines: &[Line]) -> Vec<Probe> {
    let level = |line: &str| {
        let found = LEVEL.captures(line)?;
        let word = found.get(1).or(found.get(2))?.as_str().to_uppercase();
        Some(if word == "WARNING" {
            "WARN".to_owned()
        } else if word == "ERR" {
            "ERROR".to_owned()
        } else {
            word
        })
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, line) in lines {
        if let Some(level) = level(line) {
            *counts.entry(level).or_default() += 1;
        }
    }
    let stat = |(level, count): (String, usize)| {
        let labels = match level.as_str() {
            "WARN" => vec!["WARN", "WARNING", "warnings"],
            "ERROR" => vec!["ERROR", "errors"],
            other => vec![other],
        };
        Probe::new(Class::Stat, &labels, count.to_string())
    };
    let mut probes: Vec<Probe> = counts.into_iter().map(stat).collect();
    let is_error = |line: &str| {
        level(line).is_some_and(|level| matches!(level.as_str(), "ERROR" | "CRITICAL" | "FATAL" | "SEVERE"))
    };
    let first = lines.iter().find(|(_, line)| is_error(line)).map(|(_, line)| *line);
    probes.extend(first.and_then(|line| {
        let end = LEVEL.find(line)?.end();
        let message = line.get(end..)?.trim_start_matches([']', ':', ' ', '-', '|']);
        let message = excerpt(message, 36);
        (letters(message) >= 4)
            .then(|| Probe::new(Class::Error, &["error", "errors", "critical", "fatal", "severe"], message))
    }));
    // The time of the first and the last line says how long it all took.
    for (_, line) in [lines.first(), lines.last()].into_iter().flatten() {
        probes.extend(TIME.find(line).map(|time| Probe::new(Class::Ends, &[], time.as_str())));
    }
    probes
}

fn diff(text: &str, rng: &mut Rng) -> Vec<Probe> {
    let mut files: Vec<(String, usize, usize)> = Vec::new();
    let mut changed: Vec<Line> = Vec::new();
    let (mut before, mut old) = ("", "");
    // Headers only count where no hunk is open, since added lines may look like headers.
    let (mut minus_left, mut plus_left) = (0usize, 0usize);
    let mut probes = Vec::new();
    for (number, line) in text.lines().enumerate() {
        // Lines of a hunk are marked; others end it, whatever length its header claims.
        if line.starts_with("diff --git ") || line.starts_with("@@ -") {
            (minus_left, plus_left) = (0, 0);
        }
        if minus_left == 0 && plus_left == 0 {
            if let Some(path) = line.strip_prefix("+++ ")
                && before.starts_with("--- ")
            {
                let path = if path.trim() == "/dev/null" { old } else { path };
                files.push((plain_path(path), 0, 0));
            } else if let Some(path) = line.strip_prefix("--- ") {
                old = path;
            } else if let Some((minus, plus)) = hunk(line) {
                (minus_left, plus_left) = (minus, plus);
            } else if files.is_empty() && probes.len() < 3 {
                probes.extend(header(line));
            }
        } else {
            let file = files.last_mut();
            match (line.as_bytes().first(), file) {
                (Some(b'+'), Some(file)) => {
                    plus_left = plus_left.saturating_sub(1);
                    file.1 += 1;
                    changed.push((number, line.get(1..).unwrap_or_default()));
                }
                (Some(b'-'), Some(file)) => {
                    minus_left = minus_left.saturating_sub(1);
                    file.2 += 1;
                    changed.push((number, line.get(1..).unwrap_or_default()));
                }
                (Some(b'\\'), _) => {}
                _ => {
                    plus_left = plus_left.saturating_sub(1);
                    minus_left = minus_left.saturating_sub(1);
                }
            }
        }
        before = line;
    }
    let added: usize = files.iter().map(|file| file.1).sum();
    let removed: usize = files.iter().map(|file| file.2).sum();
    probes.push(Probe::new(Class::Shape, &["files", "file"], files.len().to_string()));
    probes.push(Probe::new(Class::Stat, &["+", "added", "additions", "insertions", "lines"], added.to_string()));
    if removed > 0 {
        probes.push(Probe::new(
            Class::Stat,
            &["-", "\u{2212}", "removed", "deleted", "deletions", "lines"],
            removed.to_string(),
        ));
    }
    let mut largest: Vec<&(String, usize, usize)> = files.iter().collect();
    largest.sort_by_key(|file| (std::cmp::Reverse(file.1 + file.2), file.0.as_str()));
    probes.extend(largest.iter().take(2).filter(|_| files.len() > 1).map(|file| {
        let more = file.1.max(file.2);
        Probe::new(Class::Stat, &[last_name(&file.0)], more.to_string())
    }));
    probes.extend([files.first(), files.last()].into_iter().flatten().map(|file| path_probe(Class::Ends, &file.0)));
    let paths = spread(files.iter().map(|file| file.0.clone()).collect());
    probes.extend(paths.iter().map(|path| path_probe(Class::Outline, path)));
    let changed: Vec<Line> = changed.into_iter().filter(|(_, line)| letters(line) >= 4).collect();
    probes.extend(needles(&changed, rng));
    probes
}

/// The commit, author or date above a diff; a hash may be shortened.
fn header(line: &str) -> Option<Probe> {
    let (key, value) = line.split_once([' ', ':'])?;
    let value = value.trim_start_matches([':', ' ']).trim();
    match key {
        "Author" | "Date" => Some(Probe::new(Class::Leaf, &[key], excerpt(value, 40))),
        "commit" => {
            let lengths = [40, 16, 12, 10, 9, 8, 7];
            let prefixes = lengths.iter().filter_map(|length| Some(vec![value.get(..*length)?.to_owned()]));
            Some(Probe { answers: prefixes.collect(), ..Probe::new(Class::Leaf, &[key, "HEAD"], "") })
        }
        _ => None,
    }
}

/// The lengths of a hunk on both sides.
fn hunk(line: &str) -> Option<(usize, usize)> {
    let rest = line.strip_prefix("@@ -")?;
    let (minus, rest) = rest.split_once(" +")?;
    let (plus, _) = rest.split_once(" @@")?;
    let length = |side: &str| side.split_once(',').map_or(Some(1), |(_, length)| length.parse().ok());
    Some((length(minus)?, length(plus)?))
}

fn plain_path(path: &str) -> String {
    let path = path.split('\t').next().unwrap_or(path).trim().trim_matches('"');
    path.strip_prefix("a/").or(path.strip_prefix("b/")).unwrap_or(path).to_owned()
}

fn last_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// A path: its last name, beside the folder that holds it where there is one.
fn path_probe(class: Class, path: &str) -> Probe {
    let name = last_name(path);
    let folder =
        path.trim_end_matches('/').strip_suffix(name).map_or("", |folder| last_name(folder.trim_end_matches('/')));
    if folder.is_empty() { Probe::new(class, &[], name) } else { Probe::new(class, &[folder], name) }
}

/// At most [`OUTLINE`] of the distinct entries, spread evenly.
fn spread(names: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let names: Vec<String> = names.into_iter().filter(|name| seen.insert(name.clone())).collect();
    let count = names.len().min(OUTLINE);
    (0..count).filter_map(|at| names.get(at * names.len() / count.max(1)).cloned()).collect()
}

fn outline(names: Vec<String>) -> Vec<Probe> {
    spread(names).into_iter().map(|name| Probe::new(Class::Outline, &[], name)).collect()
}

fn definitions(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| DEFINITION.captures(line)?.get(2).map(|name| name.as_str().to_owned()));
    // Shorter names are words that stand anywhere.
    names.filter(|name| name.len() > 5).collect()
}

fn headings(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let heading = HEADING.captures(line).filter(|_| !fenced).and_then(|found| found.get(1));
        let text = heading.map(|heading| LINK.replace_all(heading.as_str(), "$1"));
        // What follows a dash is a date or a remark.
        let text =
            text.map(|text| excerpt(text.split(" - ").next().unwrap_or(&text).trim_matches(['[', ']']), 40).to_owned());
        found.extend(text.filter(|text| letters(text) > 2));
    }
    found
}

fn listing(text: &str, rng: &mut Rng) -> Vec<Probe> {
    let lines: Vec<Line> = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
    let (totals, entries): (Vec<Line>, Vec<Line>) = lines.into_iter().partition(|(_, line)| TOTAL.is_match(line));
    let marked = |mark: &str| entries.iter().filter(|(_, line)| line.trim_start().starts_with(mark)).count();
    let (files, folders) = (marked("[FILE]"), marked("[DIR]"));
    let mut probes = Vec::new();
    if files + folders > 0 {
        probes.push(Probe::new(Class::Shape, &["files", "file"], files.to_string()));
        let labels = ["directories", "dirs", "folders", "directory", "dir"];
        probes.extend((folders > 0).then(|| Probe::new(Class::Shape, &labels, folders.to_string())));
    } else {
        let labels = ["files", "entries", "paths", "items", "lines", "names", "results", "matches"];
        probes.push(Probe::new(Class::Shape, &labels, entries.len().to_string()));
    }
    let leaf = |line: &str| {
        let found = TOTAL.captures(line)?;
        Some(Probe::new(Class::Leaf, &[found.get(1)?.as_str()], excerpt(found.get(2)?.as_str(), 24)))
    };
    probes.extend(totals.iter().filter_map(|(_, line)| leaf(line)));
    let ends = [entries.first(), entries.last().filter(|_| entries.len() > 1)].into_iter().flatten();
    probes.extend(ends.map(|(_, line)| entry(Class::Ends, line)));
    let drawn = draw(rng, entries.len(), NEEDLES).into_iter().filter_map(|at| entries.get(at));
    probes.extend(drawn.map(|&(number, line)| needle(number, line.len(), entry(Class::Needle, line))));
    probes
}

/// An entry of a listing: its name with its size, or with its folder.
fn entry(class: Class, line: &str) -> Probe {
    let line = line.trim().trim_start_matches("[FILE]").trim_start_matches("[DIR]").trim();
    let Some(size) = SIZE.captures(line) else { return path_probe(class, line.rsplit("  ").next().unwrap_or(line)) };
    let (from, number) = (size.get(0).map_or(0, |all| all.start()), size.get(1).map_or("", |number| number.as_str()));
    Probe::new(class, &[last_name(line.get(..from).unwrap_or_default().trim())], number)
}

fn pairs(lines: &[Line], all: usize, rng: &mut Rng) -> Vec<Probe> {
    let pair = |class: Class, line: &str| {
        let found = PAIR.captures(line)?;
        Some(Probe::new(class, &[found.get(1)?.as_str().trim()], excerpt(found.get(2)?.as_str(), 30)))
    };
    let found: Vec<&Line> = lines.iter().filter(|(_, line)| PAIR.is_match(line)).collect();
    let mut counts = vec![all, lines.len(), found.len()];
    counts.dedup();
    let counts = counts.into_iter().map(|count| vec![count.to_string()]).collect();
    let labels = ["lines", "pairs", "keys", "entries", "fields", "settings"];
    let mut probes = vec![Probe { answers: counts, ..Probe::new(Class::Shape, &labels, "") }];
    let ends = [found.first(), found.last().filter(|_| found.len() > 1)].into_iter().flatten();
    probes.extend(ends.filter_map(|(_, line)| pair(Class::Ends, line)));
    // A key that comes again is one of many records, and its value a needle.
    let key = |line: &str| PAIR.captures(line).and_then(|found| found.get(1).map(|key| key.as_str().to_lowercase()));
    let mut counts: BTreeMap<Option<String>, usize> = BTreeMap::new();
    found.iter().for_each(|(_, line)| *counts.entry(key(line)).or_default() += 1);
    let single: Vec<&&Line> = found.iter().filter(|(_, line)| counts.get(&key(line)) == Some(&1)).collect();
    let leaves = draw(&mut rng.fork("leaf"), single.len().min(12), 4).into_iter().filter_map(|at| single.get(at));
    probes.extend(leaves.filter_map(|(_, line)| pair(Class::Leaf, line)));
    let drawn = draw(rng, found.len(), NEEDLES).into_iter().filter_map(|at| found.get(at));
    probes.extend(drawn.filter_map(|(number, line)| Some(needle(*number, line.len(), pair(Class::Needle, line)?))));
    probes.extend(first_failure(lines).filter(|_| all < 40));
    probes
}

fn trace(text: &str) -> Vec<Probe> {
    let frame = |line: &str| {
        if let Some(found) = PYTHON_FRAME.captures(line) {
            return Some((last_name(found.get(1)?.as_str()).to_owned(), found.get(2)?.as_str().to_owned()));
        }
        let found = OTHER_FRAME.captures(line)?;
        let (name, place) = match (found.get(1), found.get(2)) {
            (Some(name), Some(place)) => (name.as_str(), place.as_str()),
            _ => found.get(3)?.as_str().rsplit_once('/').unwrap_or(("", found.get(3)?.as_str())),
        };
        let (file, line) = last_name(place).split_once(':').unwrap_or((last_name(place), ""));
        let own = name.rsplit(['.', ':', ' ']).next().unwrap_or(name);
        Some(if line.is_empty() {
            (own.to_owned(), file.to_owned())
        } else {
            (file.to_owned(), line.split(':').next().unwrap_or(line).to_owned())
        })
    };
    let frames: Vec<(String, String)> = text.lines().filter(|line| FRAME.is_match(line)).filter_map(frame).collect();
    let mut probes = vec![Probe::new(Class::Shape, &["frames", "frame", "stack", "calls"], frames.len().to_string())];
    let at_ends = [frames.first(), frames.last().filter(|_| frames.len() > 1)].into_iter().flatten();
    probes.extend(at_ends.map(|(file, line)| Probe::new(Class::Ends, &[file], line.as_str())));
    let mut exceptions = text.lines().filter_map(|line| EXCEPTION.captures(line.trim()));
    let probe = |found: regex::Captures| {
        let name = last_part(found.get(1)?.as_str()).to_owned();
        let message = found.get(2).map_or("", |message| excerpt(message.as_str(), 36)).to_owned();
        Some(if letters(&message) < 3 {
            Probe::new(Class::Error, &[], name)
        } else {
            Probe::new(Class::Error, &[&name], message)
        })
    };
    let (first, last) = (exceptions.next().and_then(probe), exceptions.next_back().and_then(probe));
    probes.extend(first);
    probes.extend(last);
    probes
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn html(text: &str, rng: &mut Rng) -> Vec<Probe> {
    let plain = |markup: &str| {
        let text = INLINE_TAG.replace_all(markup, "");
        let text = TAG.replace_all(&text, " ");
        let text = text.replace("&amp;", "&").replace("&nbsp;", " ");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let mut probes = Vec::new();
    let title = TITLE.captures(text).and_then(|found| Some(plain(found.get(1)?.as_str())));
    probes.extend(
        title.filter(|title| letters(title) > 2).map(|title| Probe::new(Class::Leaf, &[], excerpt(&title, 36))),
    );
    let headings = HTML_HEADING.captures_iter(text).filter_map(|found| Some(plain(found.get(1)?.as_str())));
    let headings: Vec<String> = headings
        .filter(|text| letters(text) > 2 && !text.contains('&'))
        .map(|text| excerpt(&text, 40).to_owned())
        .collect();
    let at_ends = [headings.first(), headings.last().filter(|_| headings.len() > 1)].into_iter().flatten();
    probes.extend(at_ends.map(|heading| Probe::new(Class::Ends, &[], heading.as_str())));
    probes.extend(outline(headings.clone()));
    let visible: Vec<(usize, String)> = text
        .lines()
        .enumerate()
        .map(|(number, line)| (number, plain(line)))
        .filter(|(_, line)| is_distinctive(line) && !line.contains(['&', '{', '}', ';']))
        .collect();
    let lines: Vec<Line> = visible.iter().map(|(number, line)| (*number, line.as_str())).collect();
    let markup: Vec<&str> = text.lines().collect();
    // What is read as one short line may stand in a long line of markup.
    let in_markup = |probe: Probe| match probe.place {
        Some(Selector::Lines { start, .. }) => {
            let number = start as usize;
            needle(number, markup.get(number).map_or(0, |line| line.len()), probe)
        }
        _ => probe,
    };
    probes.extend(needles(&lines, rng).into_iter().map(in_markup));
    probes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_every_kind_is_told() {
        for (text, kind) in [
            ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", Kind::Diff),
            ("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: no\n", Kind::Trace),
            ("Error: boom\n    at f (a.js:1:2)\n    at g (b.js:3:4)\n    at h (c.js:5:6)\n", Kind::Trace),
            ("<!DOCTYPE html><html><h1>Hello</h1></html>", Kind::Html),
            (
                "2026-01-01T00:00:00Z INFO a\n2026-01-01T00:00:01Z WARN b\n2026-01-01 00:00:02 x\n2026-01-01 y\n",
                Kind::Log,
            ),
            ("use std::fmt;\n\nfn main() {\n    run();\n}\n", Kind::Code),
            ("# A comment\n\"\"\"Some words\nand more words.\n\"\"\"\nimport re\nimport os\ndef f(x):\n", Kind::Code),
            ("[FILE] a.rs   1 KB\n[FILE] b.rs   2 KB\n[DIR] src\n[FILE] c.rs 10 B\n", Kind::Listing),
            ("src/a.rs\nsrc/b.rs\nsrc/c/d.rs\nREADME.md\n", Kind::Listing),
            ("# Title\n\nSome words here.\n\n## Part\n- one\n", Kind::Markdown),
            ("size: 10\nowner: root\nmode: 644\n", Kind::Keyvalue),
            ("nothing in particular is said here\nand nothing more", Kind::Plain),
        ] {
            assert_eq!(detect(text), kind, "{text}");
        }
    }
}
