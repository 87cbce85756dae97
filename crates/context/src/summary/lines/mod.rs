//! Describes a large text of lines: counts, both ends, errors, labelled values, and an outline.
//!
//! Lines are numbered from 0, as selectors count them, so that what a summary names can be asked for.
//!
//! The kind of the text is guessed from a bounded sample of its lines; every kind has its own file. All statements are
//! [`Piece`]s in several wordings, so the cap alone decides how much is said. JSON, Python literals and tables are
//! described elsewhere.

mod blame;
mod code;
mod diff;
mod excerpt;
mod fold;
mod html;
mod listing;
mod log;
mod markdown;
mod matches;
mod packed;
mod parts;
mod paths;
mod plain;
mod rank;
mod template;
mod trace;

use crate::brief::Piece;
use crate::split::lines;

pub(super) use code::Language;
pub(crate) use markdown::{Fenced, Fences, fence, heading};

/// The number of lines at the start of a text that are sampled, and of lines spread over the rest.
const SAMPLE: usize = 160;
/// The number of bytes of a line that are looked at.
const LINE_BYTES: usize = 400;
/// The number of bytes that are searched for the start of a line.
const WINDOW: usize = 4096;
/// The number of characters by which a quotation is found again.
const QUOTED: usize = 60;

/// The kinds of text that are described differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    /// Several texts, each under its path.
    Parts,
    /// A diff or a commit log.
    Diff,
    /// The lines of a file, each with who changed it last.
    Blame,
    /// Messages of a program, one a line, with times or levels.
    Log,
    /// An error with the calls that led to it.
    StackTrace,
    /// A web page, or XML.
    Html,
    /// Text with headings, lists, links.
    Markdown,
    /// Source code in this language.
    Code(Language),
    /// The result of a search, `path:line:text`.
    Matches,
    /// Files, paths or names, one a line.
    Listing,
    /// Base64, or code without white space.
    Packed,
    /// Any other text: prose, settings, the output of commands.
    Plain,
}

/// The kind of `text`, by a sample of its lines.
pub(super) fn kind_of(text: &str) -> LineKind {
    let lines = sample(text);
    let share =
        |test: &dyn Fn(&str) -> bool| lines.iter().filter(|line| test(line)).count() as f64 / lines.len().max(1) as f64;
    if parts::is_several(text) {
        return LineKind::Parts;
    }
    if share(&|line| blame::parse(line).is_some()) >= 0.9 {
        return LineKind::Blame;
    }
    // Ten digits and more are rather a time.
    let is_hash = |hash: &str| hash.len() < 10 || hash.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_commit = |line: &str| diff::one_line_commit(line).is_some_and(|(hash, _)| is_hash(hash));
    let summed = share(&|line| is_commit(line) || diff::is_stat(line));
    if summed >= 0.9 || lines.iter().take(12).any(|line| diff::is_mark(line)) {
        return LineKind::Diff;
    }
    if is_html(text, &lines) {
        return LineKind::Html;
    }
    if packed::is_packed(text) {
        return LineKind::Packed;
    }
    // Their dates are those of files.
    if share(&|line| listing::is_marked(line)) >= 0.9 {
        return LineKind::Listing;
    }
    let frames = share(&|line| trace::is_frame(line));
    // The first lines stand in their order.
    let falls = log::uptimes_fall(lines.get(..SAMPLE).unwrap_or(&lines));
    let is_timed = |line: &str| starts_with_time(line) && !(falls && log::uptime(line).is_some());
    let logged = share(&|line| log::level(line).is_some() || is_timed(line));
    if frames >= 0.25 && logged < 0.4 {
        return LineKind::StackTrace;
    }
    if logged >= 0.4 {
        return LineKind::Log;
    }
    if share(&|line| matches::parse(line).is_some()) >= 0.6 {
        return LineKind::Matches;
    }
    let (language, coded) = code::language(&lines);
    // Headings of one level on consecutive lines are comments.
    let levels: Vec<Option<usize>> = lines.iter().map(|line| markdown::heading(line).map(|(level, _)| level)).collect();
    let together = levels.windows(2).filter(|pair| pair[0].is_some() && pair[0] == pair[1]).count();
    let found = levels.iter().flatten().count();
    let headings = if together * 3 > found { 0 } else { found };
    let listed_or_quoted = share(&|line| markdown::is_item(line) || line.starts_with("> ") || line.starts_with('|'));
    let marked = listed_or_quoted + headings as f64 / lines.len().max(1) as f64;
    let fences = lines.iter().filter(|line| markdown::fence(line).is_some()).count();
    let linked = share(&|line| line.contains("](") && !line.trim_start().starts_with(['/', '#', '*']));
    let structure = share(&|line| line.trim_end().ends_with(['{', '}', ';', '(', ')', ',', ':', '[', ']']));
    let shebang = text.starts_with("#!");
    let markdown = marked + 2.0 * linked + if fences > 0 { 0.4 } else { 0.0 };
    let comments =
        matches!(language, Language::Python | Language::Shell | Language::Ruby) && coded > 0.4 && fences == 0;
    if !shebang && !comments && (headings > 0 || fences > 1) && markdown >= 0.15 && markdown > coded * structure {
        return LineKind::Markdown;
    }
    let stated = lines.iter().filter(|line| code::is_python_statement(line)).count();
    if stated > 2 && fences == 0 {
        return LineKind::Code(Language::Python);
    }
    if shebang || (coded >= 0.25 && structure >= 0.3) || (coded >= 0.5 && structure >= 0.15) {
        return LineKind::Code(language);
    }
    let listed = share(&|line| listing::is_entry(line));
    let certain = share(&|line| listing::is_certain(line));
    if certain >= 0.5 || (listed >= 0.7 && lines.len() > 2 && is_of_names(text, &lines)) {
        return LineKind::Listing;
    }
    if markdown >= 0.3 && headings > 0 {
        return LineKind::Markdown;
    }
    LineKind::Plain
}

/// Whether `text` begins with messages of a program, with a time and a level or with a time each, or with an entry of a
/// listing, with a mark or a mode. The header of a table is neither.
pub(super) fn begins_as_lines(text: &str) -> bool {
    let mut filled = lines(text).map(front).filter(|line| !line.trim().is_empty());
    let first = filled.next().unwrap_or_default();
    (starts_with_time(first) && log::level(first).is_some())
        || (log::begins_with_time(first) && filled.next().is_some_and(log::begins_with_time))
        || listing::is_marked(first)
        || diff::is_stat(first)
}

/// Whether a line is one of the result of a search, `path:line:text`.
pub(super) fn is_match(line: &str) -> bool {
    matches::parse(line).is_some()
}

/// How much of the cap is said about a text of a kind, in hundredths; the rest shows its beginning and its end.
pub(super) fn share_of(kind: LineKind) -> usize {
    match kind {
        LineKind::Parts | LineKind::Log | LineKind::Matches | LineKind::Packed => 100,
        LineKind::Code(_) => 30,
        LineKind::Diff | LineKind::Blame => 25,
        LineKind::Html | LineKind::Markdown => 60,
        LineKind::Listing => 20,
        // Little that is said of these is shown to be worth more than the text itself: a count, and what went wrong.
        LineKind::StackTrace | LineKind::Plain => 12,
    }
}

/// The text with less and less of what says least in its kind, the fullest first: the forms of at most `limit` bytes, and the
/// last. None where the kind has no such form.
pub(super) fn shorter(kind: LineKind, text: &str, limit: usize) -> Vec<String> {
    match kind {
        LineKind::Diff => diff::shorter(text, limit),
        LineKind::StackTrace => trace::shorter(text, limit),
        LineKind::Code(language) => code::shorter(language, text, limit),
        LineKind::Html => html::shorter(text),
        LineKind::Plain => fold::forms(text, limit),
        _ => Vec::new(),
    }
}

/// Whether a statement at this place quotes the first line, the last or some between.
pub(super) fn quotes_ends(place: u32) -> bool {
    [rank::FIRST_LINE_PLACE, rank::SAMPLE_PLACE, rank::LAST_LINE_PLACE].contains(&place)
}

/// The shortest wording of a statement without which no summary is: the size, the first error.
pub(super) fn needed(piece: &Piece) -> Option<Piece> {
    let is_needed = [rank::SHAPE_PLACE, rank::ERROR_PLACE].contains(&piece.place);
    let first = piece.wordings.first().filter(|first| is_needed && first.rank <= rank::ERROR)?;
    Some(Piece { place: piece.place, wordings: vec![first.clone()] })
}

/// The beginning of what a statement quotes behind its label.
pub(super) fn quoted(statement: &str) -> &str {
    let line = statement.lines().next().unwrap_or_default();
    let quoted = line.split_once(": ").map_or(line, |(_, quoted)| quoted);
    let end = quoted.char_indices().nth(QUOTED).map_or(quoted.len(), |(at, _)| at);
    quoted.get(..end).unwrap_or_default().trim_end_matches('…')
}

/// Whether a statement is what stands around errors.
pub(super) fn is_excerpt(piece: &Piece) -> bool {
    piece.place == rank::EXCERPT_PLACE
}

/// Whether a statement is the size of the text.
pub(super) fn is_size(piece: &Piece) -> bool {
    piece.place == rank::SHAPE_PLACE
}

/// Describes a text of a kind.
pub(super) fn pieces(kind: LineKind, text: &str) -> Vec<Piece> {
    match kind {
        LineKind::Parts => parts::pieces(text),
        LineKind::Diff => diff::pieces(text),
        LineKind::Blame => blame::pieces(text),
        LineKind::Log => log::pieces(text),
        LineKind::StackTrace => trace::pieces(text),
        LineKind::Html => html::pieces(text),
        LineKind::Markdown => markdown::pieces(text),
        LineKind::Code(language) => code::pieces(language, text),
        LineKind::Matches => matches::pieces(text),
        LineKind::Listing => listing::pieces(text),
        LineKind::Packed => packed::pieces(text),
        LineKind::Plain => plain::pieces(text),
    }
}

/// Whether lines that may be names are: they differ, and none tells of an error.
fn is_of_names(text: &str, sampled: &[&str]) -> bool {
    let mut different = sampled.to_vec();
    different.sort_unstable();
    different.dedup();
    let is_error = |line: &str| line.trim().contains(' ') && log::tells_of_error(line);
    different.len() * 2 >= sampled.len() && !(log::may_tell_of_error(text) && lines(text).any(is_error))
}

/// The first lines of the text and as many spread over the rest, without blank ones, each with its first bytes.
fn sample(text: &str) -> Vec<&str> {
    let mut sampled: Vec<&str> = lines(text).filter(|line| !line.trim().is_empty()).take(SAMPLE).map(front).collect();
    if sampled.len() < SAMPLE {
        return sampled;
    }
    for number in 1..SAMPLE {
        let at = text.len() / SAMPLE * number;
        let window = text.as_bytes().get(at..(at + WINDOW).min(text.len())).unwrap_or_default();
        let Some(start) = memchr::memchr(b'\n', window) else { continue };
        let line = text.get(at + start + 1..).and_then(|rest| lines(rest).next()).unwrap_or_default();
        if !line.trim().is_empty() {
            sampled.push(front(line));
        }
    }
    sampled
}

/// The first bytes of a line.
fn front(line: &str) -> &str {
    line.get(..line.floor_char_boundary(LINE_BYTES)).unwrap_or_default()
}

fn starts_with_time(line: &str) -> bool {
    log::time(line.get(..line.floor_char_boundary(80)).unwrap_or_default()).is_some()
}

fn is_html(text: &str, lines: &[&str]) -> bool {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let begins = |with: &str| start.get(..with.len()).is_some_and(|front| front.eq_ignore_ascii_case(with));
    if begins("<!doctype html") || begins("<html") || begins("<?xml") {
        return true;
    }
    // A tool may announce the page in a line or two.
    let opens = |line: &&str| {
        ["<!doctype html", "<html"]
            .iter()
            .any(|with| line.get(..with.len()).is_some_and(|front| front.eq_ignore_ascii_case(with)))
    };
    if lines.iter().take(4).any(opens) {
        return true;
    }
    let tags = lines.iter().filter(|line| {
        let line = line.trim_start();
        line.starts_with('<') && line[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '!')
    });
    start.starts_with('<') && tags.count() * 2 > lines.len()
}

/// The account of a text in at most `cap` tokens, under the name of its kind.
#[cfg(test)]
fn told(text: &str, cap: usize) -> String {
    let kind = kind_of(text);
    let packed = crate::brief::pack(&pieces(kind, text), cap, contextweaver_core::text::Estimator::Cl100kBase);
    format!("[{kind:?}]\n{packed}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::brief::pack;
    use contextweaver_core::text::Estimator;

    const KINDS: [LineKind; 12] = [
        LineKind::Parts,
        LineKind::Diff,
        LineKind::Blame,
        LineKind::Log,
        LineKind::StackTrace,
        LineKind::Html,
        LineKind::Markdown,
        LineKind::Code(Language::Rust),
        LineKind::Matches,
        LineKind::Listing,
        LineKind::Packed,
        LineKind::Plain,
    ];

    #[test]
    fn a_line_break_of_another_system_changes_nothing_but_itself() {
        let text: String = (0..80).map(|n| format!("key{n}: value {n}\n")).collect();
        assert_eq!(told(&text, 200), told(&text.replace('\n', "\r\n"), 200));
    }

    #[test]
    fn messages_and_entries_are_no_heads_of_tables() {
        for (line, own) in [
            ("2026-11-01 00:00:00 ERROR x", true),
            ("[FILE] scan_core.py     4.19 KB", true),
            ("-rw-r--r-- 1 a b 12 Nov 22 04:56 x", true),
            ("name,size", false),
            ("2026-11-01,12", false),
        ] {
            assert_eq!(begins_as_lines(line), own, "{line}");
        }
    }

    /// Pieces of texts of every kind, mixed.
    fn text() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            "\\PC{0,20}",
            "[ -~]{0,40}",
            Just("diff --git a/x b/y".to_owned()),
            Just("@@ -1,2 +1,9 @@".to_owned()),
            Just("--- a/x".to_owned()),
            Just("+++ /dev/null".to_owned()),
            Just("commit 0123456789abcdef".to_owned()),
            Just("^0123456 (Ada é 2026-11-01 00:00:00 +0000 12) x".to_owned()),
            Just("2026-11-01 00:00:00 ERROR x".to_owned()),
            Just("\tat a.b(c:1)".to_owned()),
            Just("  File \"x\", line 3, in y".to_owned()),
            Just("ValueError: é".to_owned()),
            Just("# Title".to_owned()),
            Just("```".to_owned()),
            Just("---".to_owned()),
            Just("pub fn f<T>(x: T) {".to_owned()),
            Just("impl<T> X for Y<T> {".to_owned()),
            Just("class A:".to_owned()),
            Just("CREATE TABLE é".to_owned()),
            Just("src/a.rs:".to_owned()),
            Just("src/a.rs:12: x".to_owned()),
            Just("[FILE] a  1.5 KB".to_owned()),
            Just("-rw-r--r-- 1 a b 12 Nov 22 04:56 é".to_owned()),
            Just("key: 12".to_owned()),
            Just("[section]".to_owned()),
            Just("<table><tr><td>é</td><a href='x'>".to_owned()),
            Just("</table></a><h1>é</h1><script>".to_owned()),
            Just("日本語 テキスト".repeat(30)),
            Just("word ".repeat(60)),
        ];
        let ending = prop_oneof![Just("\n"), Just("\r\n"), Just("\n\n"), Just("")];
        prop::collection::vec((part, ending), 0..40)
            .prop_map(|parts| parts.into_iter().map(|(part, ending)| part + ending).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn every_kind_takes_every_text_and_keeps_the_cap(text in text(), cap in 0usize..300, number in 0usize..11) {
            let guessed = kind_of(&text);
            prop_assert_eq!(guessed, kind_of(&text));
            for kind in [guessed, KINDS[number]] {
                let told = pieces(kind, &text);
                let packed = pack(&told, cap, Estimator::Cl100kBase);
                prop_assert!(Estimator::Cl100kBase.count(&packed) <= cap);
                prop_assert_eq!(&packed, &pack(&pieces(kind, &text), cap, Estimator::Cl100kBase));
                let forms = shorter(kind, &text, 200);
                prop_assert!(forms.iter().rev().skip(1).all(|form| form.len() <= 200));
                prop_assert!(forms.is_sorted_by_key(|form| std::cmp::Reverse(form.len())), "{:?}", forms);
                for piece in &told {
                    prop_assert!(piece.wordings.is_sorted_by_key(|wording| wording.rank), "{:?}", piece);
                }
            }
        }
    }
}
