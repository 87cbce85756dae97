//! Recognises what a content is by looking at it: the media type that a source claims is wrong too often.

use std::borrow::Cow;
use std::cell::LazyCell;

use super::data::{self, Bulk, Description};
use super::failure::Failure;
use super::inner::{has_rows, inner_text};
use super::{Pieces, RowSpans, Summarizer, ends, grid, lines, lossless, rank, rows, shown};
use crate::brief::{Piece, pack};
use crate::clean::without_sequences;
use crate::literal::{Dialect, Document, LiteralError, Value};
use crate::xml;
use contextweaver_core::text::Estimator;

/// The number of bytes that may come before a literal, e.g. `Error calling tool 'x': `.
const LONGEST_LEAD: usize = 400;
/// The number of lines that may come before a table.
const MOST_LEAD_LINES: usize = 4;
/// Bytes of text per token of the cap, up to which the lossless form is tried. English has four to five.
const BYTES_PER_TOKEN: usize = 8;
/// How much of the cap is said about a tree, in hundredths; the rest shows its beginning and its end. More than its shape is not
/// shown to be worth as much as the tree itself.
const TREE: usize = 12;
/// The same for rows with names, which may be parts of a whole.
const NAMED: usize = 35;
/// The same with what went wrong.
const MOST_TOLD: usize = 60;
/// The number of levels of texts inside strings inside literals.
const DEEPEST: usize = 3;
/// The JSONPath of the outermost value.
const ROOT: &str = "$";

/// The summariser that knows structure: tables, trees, logs, diffs, code and so on, each told in its own terms.
#[derive(Debug, Clone, Copy, Default)]
pub struct StructureSummarizer;

impl Summarizer for StructureSummarizer {
    fn summarize(&self, content: &str, _media_type: &str, cap: usize, estimator: Estimator) -> String {
        let plain = without_sequences(content.trim_start_matches('\u{feff}'));
        let content = &*plain;
        if let Some(found) = literal(content) {
            return packed(&found, cap, estimator);
        }
        if content.len() <= room(cap) && estimator.count(content) <= cap {
            return content.to_owned();
        }
        let tree = xml::as_json(content);
        if let Some(found) = tree.as_deref().and_then(|json| Found::of_xml(json, content)) {
            return packed(&found, cap, estimator);
        }
        told(content, cap, estimator)
    }

    fn summarize_literal(&self, document: &Document<'_>, media_type: &str, cap: usize, estimator: Estimator) -> String {
        if !document.root().is_container() {
            return self.summarize(document.source(), media_type, cap, estimator);
        }
        let written = document.source();
        let document = Cow::Borrowed(document);
        packed(&Found { lead: "", document, written, note: None, is_xml: false }, cap, estimator)
    }
}

/// The number of bytes of a text that may fit into `cap` tokens.
fn room(cap: usize) -> usize {
    cap.saturating_mul(BYTES_PER_TOKEN)
}

/// The summary of a literal.
fn packed(found: &Found<'_>, cap: usize, estimator: Estimator) -> String {
    let Told { pieces, bulk, failure } = about_literal(found, ROOT, 0);
    let mut forms = lossless::forms(found.document.root(), room(cap)).into_iter();
    if let Some(whole) = forms.find(|form| estimator.count(form) <= cap) {
        // Sums and counts are worth more than the rest of the rows: the whole follows them or is left out.
        let mut derived: Pieces = pieces.iter().filter_map(without_quotes).collect();
        derived.push(Piece::line(rank::LOSSLESS_PLACE, rank::LOSSLESS, whole.as_str()));
        let text = pack(&derived, cap, estimator);
        if text.ends_with(&whole) {
            return text;
        }
    }
    let (pieces, share) = match bulk {
        Bulk::Told => return ends::around(&pieces, &[found.written.trim()], 100, cap, estimator),
        Bulk::Named => (pieces.into_iter().filter(|piece| !shows_end(piece)).collect(), NAMED),
        Bulk::Tree => (pieces, TREE),
    };
    // Its indentation would take tokens from what it holds.
    let source = found.written.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let told = ends::around(&pieces, &[source.trim()], share, cap, estimator);
    let Some(failure) = failure.filter(|failure| !told.contains(&failure.quoted)) else { return told };
    let room = estimator.count(&pack(std::slice::from_ref(&failure.piece), cap, estimator)) + 1;
    let share = (share + (room * 100).div_ceil(cap.max(1))).min(MOST_TOLD);
    ends::around(&[pieces, vec![failure.piece]].concat(), &[source.trim()], share, cap, estimator)
}

/// The part of the statement that says more than the whole itself: sizes and statistics, but no rows, values or names.
fn without_quotes(piece: &Piece) -> Option<Piece> {
    let at = piece.place;
    let in_table = (rank::TABLE_PLACE..rank::EMBEDDED_PLACE).contains(&at).then_some(at % rank::TABLE_PLACES);
    let is_statistic = in_table.is_some_and(|at| (rank::STAT_PLACE..rank::INNER_PLACE).contains(&at));
    let is_shape = at < rank::LEAF_PLACE || in_table == Some(rank::SHAPE_PLACE);
    let most = if is_shape { 1 } else { usize::MAX };
    let wordings = piece.wordings.iter().take(most).cloned().collect();
    (is_shape || is_statistic || at == rank::BY_KEY_PLACE).then_some(Piece { place: at, wordings })
}

/// Whether a statement shows the first or the last row of a table.
fn shows_end(piece: &Piece) -> bool {
    let in_table = (rank::TABLE_PLACE..rank::EMBEDDED_PLACE).contains(&piece.place);
    in_table && [rank::FIRST_PLACE, rank::LAST_PLACE].contains(&(piece.place % rank::TABLE_PLACES))
}

/// A literal and the text around it.
struct Found<'a> {
    lead: &'a str,
    document: Cow<'a, Document<'a>>,
    /// The literal as it is written.
    written: &'a str,
    note: Option<String>,
    /// Whether the literal stands for XML.
    is_xml: bool,
}

impl<'a> Found<'a> {
    fn of(lead: &'a str, document: Document<'a>, note: Option<String>) -> Self {
        let written = document.source();
        Self { lead, document: Cow::Owned(document), written, note, is_xml: false }
    }

    /// The document `written` in XML, which stands for `json`.
    fn of_xml(json: &'a str, written: &'a str) -> Option<Self> {
        let document = Document::parse(json, Dialect::Json).ok()?;
        let note = format!("XML, {}, read as JSON:", shown::count(written.lines().count(), "line"));
        Some(Self { written, is_xml: true, ..Self::of("", document, Some(note)) })
    }

    /// The array whose items the selector `rows` shows, unless it shows those of a text inside.
    fn rows(&self) -> Option<Value<'_>> {
        let root = self.document.root();
        if self.is_xml {
            return rows::rows_below(root);
        }
        rows::rows_of(root).filter(|_| inner_text(root, has_rows).is_none())
    }
}

/// The literal that a summary of `text` tells: the text itself, what stands behind a short lead, or what could be read of
/// one that breaks off.
pub(crate) fn document_in(text: &str) -> Option<Document<'_>> {
    document_and_rest(text).map(|(document, _)| document)
}

/// As [`document_in`], with what stands before and behind the literal.
pub(crate) fn document_and_rest(text: &str) -> Option<(Document<'_>, [&str; 2])> {
    let marked = text.trim_start_matches('\u{feff}');
    let Found { lead, document, .. } = literal(marked)?;
    let before = text.len() - marked.len() + lead.len();
    let span = document.root().span();
    let rest = [text.get(..before + span.start), text.get(before + span.end..)].map(Option::unwrap_or_default);
    Some((document.into_owned(), rest))
}

/// The literal that `text` is, or holds after a short lead, or begins with and breaks off.
fn literal(text: &str) -> Option<Found<'_>> {
    let trimmed = text.trim_start();
    let opens = |text: &str| text.starts_with(['[', '{', '(']);
    if !opens(trimmed) {
        return behind_lead(text);
    }
    let whole = Document::parse_any(text);
    let error = match whole {
        Ok(document) => return document.root().is_container().then(|| Found::of("", document, None)),
        Err(error) => error,
    };
    for dialect in [Dialect::Json, Dialect::Python] {
        if let Ok(document) = Document::sequence(text, dialect) {
            return Some(Found::of("", document, None));
        }
    }
    broken(text, &error).or_else(|| behind_lead(text))
}

fn behind_lead(text: &str) -> Option<Found<'_>> {
    // A text without either is not read to its end.
    let front = text.as_bytes().get(..text.len().min(LONGEST_LEAD + 1))?;
    let start = memchr::memchr2(b'{', b'[', front)?;
    if text.len() < start * 2 {
        return None;
    }
    let (lead, rest) = text.split_at_checked(start)?;
    if lead.matches('\n').count() > 3 {
        return None;
    }
    let document = Document::parse_any(rest.trim_end()).ok()?;
    (!document.root().is_empty()).then(|| Found::of(lead, document, None))
}

/// A literal that ends too early or goes wrong after most of it.
fn broken<'a>(text: &'a str, error: &LiteralError) -> Option<Found<'a>> {
    for dialect in [Dialect::Json, Dialect::Python] {
        if let Ok((document, end)) = Document::prefix(text, dialect)
            && end * 10 >= text.len() * 8
        {
            let rest = text.get(end..).unwrap_or_default().trim();
            return Some(Found::of("", document, Some(format!("then: {}", shown::line(rest, 200)))));
        }
        if let Some((document, Some(stop))) = Document::partial(text, dialect)
            && stop.offset * 10 >= text.len() * 5
            && !document.root().is_empty()
            && document.root().is_container()
        {
            let note = format!("incomplete: {error}; what could be read:");
            return Some(Found::of("", document, Some(note)));
        }
    }
    None
}

/// What is said of a literal.
struct Told {
    pieces: Pieces,
    /// What most of it is: nothing replaces the beginning and the end of what is neither a table nor a text.
    bulk: Bulk,
    /// What went wrong, which is said besides.
    failure: Option<Failure>,
}

/// What is said of a literal with the JSONPath `base`, inside of so many texts.
fn about_literal(found: &Found<'_>, base: &str, depth: usize) -> Told {
    // Of a text inside, only paths lead to rows.
    let rows = LazyCell::new(|| (depth == 0).then(|| found.rows()).flatten().map(|rows| rows.place()));
    let is_path_needed = |table: Value<'_>| *rows != Some(table.place());
    let Description { pieces: said, embedded, bulk, failure } =
        data::describe(found.document.root(), base, is_path_needed);
    let mut pieces = Pieces::new();
    let lead = found.lead.split_whitespace().collect::<Vec<_>>().join(" ");
    if !lead.is_empty() {
        pieces.push(Piece::line(0, rank::LEAD, shown::line(&lead, LONGEST_LEAD)));
        let lines = found.lead.matches('\n').count() + found.document.source().lines().count();
        pieces.push(Piece::line(0, rank::SIZE, shown::count(lines, "line")));
    }
    pieces.extend(found.note.iter().map(|note| Piece::line(0, rank::SHAPE, note.clone())));
    pieces.extend(said);
    for (number, (path, text)) in embedded.iter().enumerate() {
        let number = u32::try_from(number).unwrap_or(0);
        let place = rank::EMBEDDED_PLACE + number * rank::EMBEDDED_PLACES;
        let delay = number * rank::EMBEDDED_DELAY;
        let label = format!("{path}: text of {} characters", text.chars().count());
        pieces.push(Piece::line(place, rank::SHAPE + delay, label));
        if depth < DEEPEST {
            let inner = about(text, &rows::path_below(base, path), depth + 1);
            pieces.extend(inner.into_iter().map(|piece| moved(piece, place + 1, delay + 1)));
        }
    }
    Told { pieces, bulk, failure }
}

fn about(text: &str, base: &str, depth: usize) -> Pieces {
    let text = &*without_sequences(text);
    let tree = xml::as_json(text);
    let found = literal(text).or_else(|| Found::of_xml(tree.as_deref()?, text));
    found.map_or_else(|| about_text(text), |found| about_literal(&found, base, depth).pieces)
}

fn about_text(text: &str) -> Pieces {
    if let Some(format) = grid::format_of(text) {
        return grid::pieces(text, format);
    }
    if let Some((lead, rest, format)) = grid_behind_lead(text) {
        let mut pieces = grid::pieces(rest, format);
        let lead = lead.split_whitespace().collect::<Vec<_>>().join(" ");
        pieces.push(Piece::line(0, rank::LEAD, shown::line(&lead, LONGEST_LEAD)));
        return pieces;
    }
    lines::pieces(lines::kind_of(text), text)
}

/// A delimited table after a few lines that announce it, the last of which ends with a colon.
fn grid_behind_lead(text: &str) -> Option<(&str, &str, grid::Format)> {
    let breaks = text.match_indices('\n').map(|(at, _)| at).take(MOST_LEAD_LINES);
    breaks.take_while(|at| *at <= LONGEST_LEAD).find_map(|at| {
        let (lead, rest) = text.split_at_checked(at)?;
        let rest = rest.trim_start_matches(['\r', '\n']);
        let format = lead.trim_end().ends_with(':').then(|| grid::format_of(rest)).flatten()?;
        matches!(format, grid::Format::Delimited(_)).then_some((lead, rest, format))
    })
}

/// The rows of the table in text form that `text` is, or holds after a few lines that announce it.
pub(crate) fn rows_in(text: &str) -> Option<RowSpans> {
    if let Some(format) = grid::format_of(text) {
        return grid::spans_of(text, format);
    }
    let (_, rest, format) = grid_behind_lead(text)?;
    let before = text.len() - rest.len();
    let moved = |(start, end): (usize, usize)| (start + before, end + before);
    let RowSpans { header, rows } = grid::spans_of(rest, format)?;
    Some(RowSpans { header: header.map(moved), rows: rows.into_iter().map(moved).collect() })
}

/// The summary of a text that is not a literal: a table by its columns, anything else with as much of itself as its kind gets.
fn told(text: &str, cap: usize, estimator: Estimator) -> String {
    if grid::format_of(text).is_some() || grid_behind_lead(text).is_some() {
        return pack(&about_text(text), cap, estimator);
    }
    let kind = lines::kind_of(text);
    let shorter = lines::shorter(kind, text, room(cap));
    let forms: Vec<&str> = [text].into_iter().chain(shorter.iter().map(String::as_str)).collect();
    ends::around(&lines::pieces(kind, text), &forms, lines::share_of(kind), cap, estimator)
}

fn moved(mut piece: Piece, place: u32, delay: u32) -> Piece {
    piece.place = piece.place.saturating_add(place);
    for wording in &mut piece.wordings {
        wording.rank += delay;
    }
    piece
}
