//! Remembers what the conversation has shown so far, so that nothing is paid for twice.
//!
//! Of every earlier result that has an artifact, the hash of the whole and the hashes of its *units* are kept: lines,
//! and the records of long lines (JSON and Python print tables on one line). Units are compared without what depends on
//! their place (brackets, commas, indentation, the mark of a diff), and units that are too short to be evidence are not
//! kept, so that an index takes at most about two bytes per byte of content.
//!
//! Decided: a result is a *repeat*, replaced by a single line, only if nothing new is lost by that. It must be equal to
//! an earlier result, or be contained in one whole, byte for byte and in one piece (the brackets around its rows
//! aside). Hashes only find the candidate; the bytes decide. Anything less is an *overlap*: the result is summarised,
//! and a note says where most of it was shown.

use std::hash::Hasher;
use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr_iter, memchr3_iter, memmem};
use rustc_hash::{FxHashMap, FxHasher};

use crate::event::{ArtifactRef, ContentHash, Handle};
use crate::literal::Document;
use crate::store::ArtifactStore;

/// Units with fewer bytes are not evidence: `return Ok(())` is in every file.
const LEAST_UNIT: usize = 16;

/// Lines with more bytes are divided into records.
const LONG_LINE: usize = 1024;

/// What the conversation has shown so far: hashes of earlier results and of their lines.
#[derive(Debug, Default)]
// In tests, copies are counted.
#[cfg_attr(not(test), derive(Clone))]
pub struct Seen {
    shown: Vec<Handle>,
    wholes: FxHashMap<ContentHash, u32>,
    /// The first and the last result that has the unit. For a line that is in hundreds of results no more is needed.
    units: FxHashMap<u64, (u32, u32)>,
    /// The next number to try for a further part of a result, by the prefix of its handle.
    pub(super) parts: FxHashMap<String, usize>,
}

#[cfg(test)]
thread_local! {
    /// The number of hashes of units in the copies that this thread made of what was shown.
    pub(crate) static COPIED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
impl Clone for Seen {
    fn clone(&self) -> Self {
        COPIED.set(COPIED.get() + self.units.len());
        Self {
            shown: self.shown.clone(),
            wholes: self.wholes.clone(),
            units: self.units.clone(),
            parts: self.parts.clone(),
        }
    }
}

/// How a result relates to earlier ones.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Relation {
    /// Most of it is new.
    New,
    /// It is equal to the content of this artifact.
    Same(Handle),
    /// It is contained in this artifact as a whole.
    Part {
        /// The handle of the artifact.
        of: Handle,
        /// The place in it, e.g. `rows 0–49`; empty where there is no way to count.
        place: String,
    },
    /// Most of it is contained in this artifact, in pieces.
    Overlap {
        /// The handle of the artifact.
        with: Handle,
        /// The share of its bytes, in per cent, rounded down.
        percent: usize,
    },
}

impl Relation {
    /// Whether the result shows its content, all of it or a summary, and so is added to what was shown.
    pub(super) fn is_new(&self) -> bool {
        matches!(self, Self::New | Self::Overlap { .. })
    }
}

impl Seen {
    /// How `content`, which `artifact` holds, relates to what was shown before.
    pub(super) fn relation(&self, content: &str, artifact: &ArtifactRef, artifacts: &dyn ArtifactStore) -> Relation {
        if let Some(earlier) = self.wholes.get(&artifact.content_hash).and_then(|&at| self.shown.get(at as usize)) {
            let there = artifacts.reference(earlier).is_ok_and(|it| it.content_hash == artifact.content_hash);
            if there && *earlier != artifact.handle {
                return Relation::Same(earlier.clone());
            }
        }
        if self.units.is_empty() {
            return Relation::New;
        }
        let mut total = 0;
        let mut in_result: FxHashMap<u32, usize> = FxHashMap::default();
        for (hash, bytes) in units(content) {
            total += bytes;
            if let Some(&(first, last)) = self.units.get(&hash) {
                *in_result.entry(first).or_default() += bytes;
                if last != first {
                    *in_result.entry(last).or_default() += bytes;
                }
            }
        }
        let Some((most, best)) = in_result.into_iter().map(|(at, bytes)| (bytes, std::cmp::Reverse(at))).max() else {
            return Relation::New;
        };
        let Some(with) = self.shown.get(best.0 as usize).filter(|earlier| **earlier != artifact.handle) else {
            return Relation::New;
        };
        if most == total
            && let Some(place) = artifacts.get(with).ok().and_then(|earlier| place_in(content, &earlier))
        {
            return Relation::Part { of: with.clone(), place };
        }
        match most * 100 / total {
            percent @ 50.. => Relation::Overlap { with: with.clone(), percent },
            _ => Relation::New,
        }
    }

    /// Remembers the content of `artifact`.
    pub(super) fn add(&mut self, content: &str, artifact: &ArtifactRef) {
        let number = self.add_whole(artifact);
        for (hash, _) in units(content) {
            self.units.entry(hash).and_modify(|(_, last)| *last = number).or_insert((number, number));
        }
    }

    /// Remembers the hash of the content of `artifact`, without reading it. Returns its number.
    pub(super) fn add_whole(&mut self, artifact: &ArtifactRef) -> u32 {
        let number = self.shown.len() as u32;
        self.shown.push(artifact.handle.clone());
        self.wholes.entry(artifact.content_hash.clone()).or_insert(number);
        number
    }
}

/// The hash and the size of each unit of `content` that is long enough.
fn units(content: &str) -> impl Iterator<Item = (u64, usize)> {
    let bytes = content.as_bytes();
    let lines = pieces(bytes, memchr_iter(b'\n', bytes).map(|at| at + 1));
    lines.flat_map(|line| pieces(line, record_ends(line))).map(trimmed).filter(|unit| unit.len() >= LEAST_UNIT).map(
        |unit| {
            let mut hasher = FxHasher::default();
            hasher.write(unit);
            (hasher.finish(), unit.len())
        },
    )
}

/// Splits `bytes` at `ends`.
fn pieces(bytes: &[u8], ends: impl Iterator<Item = usize>) -> impl Iterator<Item = &[u8]> {
    ends.chain([bytes.len()]).scan(0, move |start, end| {
        let piece = bytes.get(*start..end).unwrap_or_default();
        *start = end;
        Some(piece)
    })
}

/// The positions after every comma that follows a closing bracket, if the line is long.
fn record_ends(line: &[u8]) -> impl Iterator<Item = usize> {
    // There are far fewer closing brackets than commas.
    let brackets = memchr3_iter(b'}', b']', b')', if line.len() > LONG_LINE { line } else { &[] });
    brackets.filter(|&at| line.get(at + 1) == Some(&b',')).map(|at| at + 2)
}

/// A unit without what depends on its place.
fn trimmed(mut unit: &[u8]) -> &[u8] {
    let placed = |byte: &u8| byte.is_ascii_whitespace() || b"[](){},+-".contains(byte);
    while let [first, rest @ ..] = unit
        && placed(first)
    {
        unit = rest;
    }
    while let [rest @ .., last] = unit
        && placed(last)
    {
        unit = rest;
    }
    unit
}

/// The place of `content` in `earlier`, in one piece, from line to line or from row to row.
fn place_in(content: &str, earlier: &Arc<[u8]>) -> Option<String> {
    let earlier = std::str::from_utf8(earlier).ok()?;
    let needle = inside(content);
    if needle.is_empty() {
        return None;
    }
    let start = memmem::find_iter(earlier.as_bytes(), needle.as_bytes())
        .find(|&start| is_whole(earlier, start..start + needle.len(), needle.starts_with(['{', '[', '('])))?;
    let span = start..start + needle.len();
    Some(rows(earlier, &span).or_else(|| lines(earlier, &span)).unwrap_or_default())
}

/// The content without white space and the brackets of an outermost list around it.
fn inside(content: &str) -> &str {
    let content = content.trim();
    let list = content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).map(str::trim);
    // `[a], [b]` begins and ends with brackets that do not match each other, but then none of its rows is whole.
    list.filter(|list| list.starts_with(['{', '[', '('])).unwrap_or(content)
}

/// Whether `span` begins and ends at the border of a line or, for `rows`, of a row.
fn is_whole(text: &str, span: Range<usize>, rows: bool) -> bool {
    let before = text.get(..span.start).unwrap_or_default().trim_end_matches([' ', '\t']);
    let after = text.get(span.end..).unwrap_or_default().trim_start_matches([' ', '\t', '\r']);
    let line = (before.is_empty() || before.ends_with('\n')) && (after.is_empty() || after.starts_with('\n'));
    let row = || before.trim_end().ends_with(['[', ',']) && after.trim_start().starts_with([']', ',']);
    line || (rows && row())
}

/// The place of `span` in the array `text`, as `rows 0–49`.
fn rows(text: &str, span: &Range<usize>) -> Option<String> {
    let array = text.trim_start().starts_with('[').then(|| Document::parse_any(text).ok()).flatten()?;
    let mut inside = array.root().items().enumerate().filter(|(_, row)| row.span().start >= span.start);
    let (first, _) = inside.next()?;
    let last = inside.take_while(|(_, row)| row.span().end <= span.end).last().map_or(first, |(last, _)| last);
    Some(format!("rows {first}–{last}"))
}

/// The place of `span` in `text`, as `lines 3–40`, counted from 0.
fn lines(text: &str, span: &Range<usize>) -> Option<String> {
    let breaks = |range: Range<usize>| memchr_iter(b'\n', text.as_bytes().get(range).unwrap_or_default()).count();
    let first = breaks(0..span.start);
    let last = first + breaks(span.clone());
    text.contains('\n').then(|| format!("lines {first}–{last}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::MemoryArtifacts;

    /// What becomes of the last of `results` after the others were shown.
    fn related(results: &[&str]) -> Relation {
        let (store, mut seen) = (MemoryArtifacts::default(), Seen::default());
        let mut relation = Relation::New;
        for (number, content) in results.iter().enumerate() {
            let handle = Handle::new(format!("r{number}"));
            let artifact = store.put(&handle, content.as_bytes(), "text/plain", "").unwrap();
            relation = seen.relation(content, &artifact, &store);
            seen.add(content, &artifact);
        }
        relation
    }

    fn log(range: Range<usize>) -> String {
        range.map(|number| format!("2024-05-01 request {number} answered in {} ms\n", number * 7 % 13)).collect()
    }

    fn python(range: Range<usize>) -> String {
        let rows: Vec<String> = range.map(|id| format!("{{'id': {id}, 'sku': 'SKU-{id:04}', 'note': None}}")).collect();
        format!("[{}]", rows.join(", "))
    }

    fn part(of: &str, place: &str) -> Relation {
        Relation::Part { of: Handle::new(of), place: place.to_owned() }
    }

    #[test]
    fn only_what_stands_in_one_piece_in_an_earlier_result_is_a_repeat() {
        let (long, middle) = (log(0..100), log(20..60));
        assert_eq!(related(&[&long, &long]), Relation::Same(Handle::new("r0")));
        assert_eq!(related(&[&middle, &long, &middle]), Relation::Same(Handle::new("r0")));
        assert_eq!(related(&[&long, &middle]), part("r0", "lines 20–59"));
        assert_eq!(related(&[&long, middle.trim_end()]), part("r0", "lines 20–59"));
        // Nothing of it is new but the order.
        let swapped = format!("{}{}", log(20..60), log(0..20));
        assert_eq!(related(&[&long, &swapped]), Relation::Overlap { with: Handle::new("r0"), percent: 100 });
        assert_eq!(related(&[&middle, &long]), Relation::New);
        assert_eq!(related(&[&log(0..60), &long]), Relation::Overlap { with: Handle::new("r0"), percent: 59 });
    }

    #[test]
    fn rows_on_one_line_are_found_without_the_brackets_around_them() {
        let all = python(0..500);
        assert_eq!(related(&[&all, &python(0..50)]), part("r0", "rows 0–49"));
        assert_eq!(related(&[&all, &python(450..500)]), part("r0", "rows 450–499"));
        assert_eq!(related(&[&all, &python(100..200)]), part("r0", "rows 100–199"));
        assert_eq!(related(&[&python(0..50), &all]), Relation::New);
        assert_eq!(related(&[&python(0..400), &all]), Relation::Overlap { with: Handle::new("r0"), percent: 79 });
    }

    #[test]
    fn a_file_is_known_from_the_diff_that_added_it() {
        let file = log(0..50);
        let diff: String = file.lines().map(|line| format!("+{line}\n")).collect();
        assert_eq!(
            related(&[&format!("+++ b/access.log\n{diff}"), &file]),
            Relation::Overlap { with: Handle::new("r0"), percent: 100 }
        );
    }

    #[test]
    fn an_artifact_that_is_gone_or_was_replaced_is_no_repeat() {
        let (store, mut seen) = (MemoryArtifacts::default(), Seen::default());
        let text = log(0..50);
        let put = |name: &str, text: &str| store.put(&Handle::new(name), text.as_bytes(), "text/plain", "").unwrap();
        let first = put("r0", &text);
        seen.add(&text, &first);
        let second = put("r1", &text);
        store.delete(&first.handle).unwrap();
        assert!(!matches!(seen.relation(&text, &second, &store), Relation::Same(_) | Relation::Part { .. }));
        put("r0", "something else");
        assert!(!matches!(seen.relation(&text, &second, &store), Relation::Same(_) | Relation::Part { .. }));
    }

    proptest! {
        #[test]
        fn a_part_is_always_contained(lines in prop::collection::vec("[a-c {}\\[\\],]{0,24}", 1..12), pick in any::<[prop::sample::Index; 2]>()) {
            let (one, other) = (pick[0].index(lines.len()), pick[1].index(lines.len()));
            let (first, last) = (one.min(other), one.max(other));
            let (whole, part) = (lines.join("\n"), lines[first..=last].join("\n"));
            match related(&[&whole, &part]) {
                Relation::Same(_) => prop_assert_eq!(&whole, &part),
                Relation::Part { .. } => prop_assert!(whole.contains(inside(&part))),
                _ => {}
            }
        }
    }
}
