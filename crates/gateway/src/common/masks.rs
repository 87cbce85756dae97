//! What stands for values that a configuration took from the environment or a file, wherever an upstream is spoken of.
//!
//! A value that is substituted for `${env:NAME}` or `${file:PATH}` may be a secret, in a program's name and its arguments
//! as well as in a header. Programs print what they were given, and systems what they could not start. Before any such text
//! goes to a log, a report or a client, each of the values becomes the reference that the file has in its place. Values of
//! fewer than four characters stay: they would cover what is not a value. Of a value of several lines each line is covered
//! too, since what a program prints is read line by line. A value in another encoding is not recognised.
//!
//! A value is looked for in what is seen of a text: it is read as well where a program has coloured a part of it, where
//! characters that nobody sees stand in it, or where a line ends in it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::settings::{ExpandError, Reference, replaced};
use contextweaver_context::clean::clean;
use contextweaver_core::files::read_text_file;

/// Bytes of a file with a secret that a configuration refers to, at most.
pub(crate) const LARGEST_SECRET: u64 = 64 << 10;

/// Characters of a value that is covered, at least.
const SHORTEST: usize = 4;

/// Characters of a line of a longer value that is covered, at least: shorter ones are more often text of others.
const SHORTEST_LINE: usize = 6;

/// Characters, but white space, of a value that is also covered where there is white space between them, at least: words
/// side by side make shorter ones.
const SHORTEST_SPACED: usize = 8;

/// Bytes of a value that are covered where the rest of it is missing, at least. They are at least half of it too.
const SHORTEST_PIECE: usize = 12;

/// Bytes of a value that is looked for together with the others, at most. A longer one is compared for too long at each
/// place of a text, and a file has few of them, so each is looked for alone.
const LONGEST_TOGETHER: usize = 1 << 10;

/// The lines of a value of several that say what it is; none of a value of one line.
fn telling_lines(value: &str) -> impl Iterator<Item = &str> {
    let is_whole = !value.contains(['\n', '\r']);
    let lines = value.split(['\n', '\r']).map(str::trim);
    lines.filter(move |line| !is_whole && line.chars().count() >= SHORTEST_LINE && !is_common(line))
}

/// Whether a line stands in many values: those around a text in PEM form, and those without letters or digits.
fn is_common(line: &str) -> bool {
    let is_border =
        line.starts_with("----") && line.ends_with("----") && (line.contains("BEGIN ") || line.contains("END "));
    is_border || !line.contains(char::is_alphanumeric)
}

/// Characters of a text that say nothing in a value: white space, and of those that cleaning leaves, joiners, selectors of
/// forms, and what stands for bytes that are no text.
fn is_skipped(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{fffd}')
}

/// A text as values are looked for in it, and where each of its bytes came from.
struct Folded {
    text: String,
    /// For each byte of `text`, the place of its character in the original.
    from: Vec<(usize, usize)>,
    /// Where the lines of the original end in `text`.
    ends: Vec<usize>,
}

impl Folded {
    fn of(text: &str) -> Self {
        let (mut folded, mut from, mut ends) = (String::with_capacity(text.len()), Vec::new(), Vec::new());
        for (at, c) in text.char_indices() {
            if !is_skipped(c) {
                folded.push(c);
                from.resize(folded.len(), (at, at + c.len_utf8()));
            } else if matches!(c, '\n' | '\r') {
                ends.push(folded.len());
            }
        }
        ends.push(folded.len());
        Self { text: folded, from, ends }
    }

    /// The lines that are not blank.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut start = 0;
        let lines = self.ends.iter().map(move |end| std::mem::replace(&mut start, *end)..*end);
        lines.filter_map(|line| Some((line.start, self.text.get(line)?))).filter(|(_, line)| !line.is_empty())
    }

    /// The place in the original of a part that is not empty.
    fn place(&self, part: &Range<usize>) -> Range<usize> {
        let start = self.from.get(part.start).map_or(0, |(start, _)| *start);
        let end = part.end.checked_sub(1).and_then(|last| self.from.get(last)).map_or(start, |(_, end)| *end);
        start..end
    }
}

fn spaces_in(text: &str) -> usize {
    text.chars().filter(|c| c.is_whitespace()).count()
}

/// A value, with the reference that it stands for.
#[derive(Clone, PartialEq, Eq)]
struct Mask {
    value: String,
    reference: String,
    /// The value as it is looked for in a [`Folded`] text.
    folded: String,
    /// How many characters of white space stand in it where it counts; `None` where it does not.
    spaces: Option<usize>,
    /// Bytes of a piece of `folded` that is covered, at least; `None` where each line is a value too.
    piece: Option<usize>,
    /// Whether it is an address or a path without a name or a password before an `@`, of which any part may be secret.
    is_address: bool,
}

impl Mask {
    fn new(value: String, reference: String) -> Self {
        let visible = clean(&value);
        let folded = Folded::of(&visible).text;
        let spaces = (folded.chars().count() < SHORTEST_SPACED).then(|| spaces_in(&visible));
        let piece = (!value.contains(['\n', '\r'])).then(|| folded.len().div_ceil(2).max(SHORTEST_PIECE));
        let is_address = (folded.contains("://") || folded.starts_with('/')) && !folded.contains('@');
        Self { value, reference, folded, spaces, piece, is_address }
    }

    /// Whether what was found in a text is the value, as far as the white space in it goes.
    fn is_spaced_as(&self, found: &str) -> bool {
        self.spaces.is_none_or(|spaces| spaces_in(found) == spaces)
    }

    /// Whether a piece of so many bytes is covered.
    fn has_piece(&self, length: usize) -> bool {
        self.piece.is_some_and(|least| (least..self.folded.len()).contains(&length))
    }

    /// Whether the beginning of so many bytes says where something is, with whole parts of an address or a path: one looks
    /// for a host in a message of a server that cannot be reached. What follows a `?`, a `#` or a `=` may be secret.
    fn is_location(&self, length: usize) -> bool {
        self.is_address
            && self.folded.split_at_checked(length).is_some_and(|(piece, rest)| {
                !piece.contains(['?', '#', '='])
                    && (piece.ends_with(['/', ':']) || rest.starts_with(['/', '?', '#', ':']))
            })
    }

    /// Where the whole value stands in a text.
    fn places(&self, text: &str, folded: &Folded) -> Vec<Range<usize>> {
        let (mut places, mut from) = (Vec::new(), 0);
        if self.folded.is_empty() || self.folded.len() > folded.text.len() {
            return places;
        }
        while let Some(at) = folded.text.get(from..).and_then(|rest| rest.find(&self.folded)) {
            let part = from + at..from + at + self.folded.len();
            let place = folded.place(&part);
            if self.is_spaced_as(text.get(place.clone()).unwrap_or_default()) {
                places.push(place);
                from = part.end;
            } else {
                from = folded.text.ceil_char_boundary(part.start + 1);
            }
        }
        places
    }

    /// Where a line of a text ends with the beginning of the value or begins with its end, and what covers that.
    fn pieces(&self, folded: &Folded) -> Vec<(Range<usize>, String)> {
        let mut pieces = Vec::new();
        let Some(least) = self.piece else { return pieces };
        for (start, line) in folded.lines() {
            let end = start + line.len();
            // The longest first.
            let mut lengths = (least..self.folded.len().min(line.len() + 1)).rev();
            let is_beginning = |length: &usize| {
                let piece = self.folded.get(..*length);
                piece.is_some_and(|piece| line.ends_with(piece)) && !self.is_location(*length)
            };
            if let Some(length) = lengths.clone().find(is_beginning) {
                pieces.push((folded.place(&(end - length..end)), format!("{}…", self.reference)));
            }
            let is_end = |length: &usize| {
                let piece = self.folded.get(self.folded.len() - length..);
                piece.is_some_and(|piece| line.starts_with(piece))
            };
            if let Some(length) = lengths.find(is_end) {
                pieces.push((folded.place(&(start..start + length)), format!("…{}", self.reference)));
            }
        }
        pieces
    }
}

/// A text that is looked for.
#[derive(PartialEq, Eq)]
struct Sought {
    /// The first bytes of `text` as a number of the same order: mostly they differ, and comparing numbers takes less time.
    head: u64,
    text: Box<[u8]>,
    /// The number of its mask.
    mask: usize,
    /// Where the longest other one stands that this one begins with.
    within: Option<usize>,
}

/// The first eight bytes of a text, and zeros where it has fewer, so that no number is greater than that of a later text.
fn head_of(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(head) => u64::from_be_bytes(*head),
        None => text.iter().zip((0..8).rev()).map(|(byte, place)| u64::from(*byte) << (8 * place)).sum(),
    }
}

/// Texts in alphabetical order, so that those that stand at a place are found in a few steps, however many there are.
#[derive(PartialEq, Eq, Default)]
struct Sorted {
    texts: Vec<Sought>,
    longest: usize,
}

impl Sorted {
    fn of(texts: impl Iterator<Item = (Vec<u8>, usize)>) -> Self {
        let mut sorted: Vec<(Vec<u8>, usize)> = texts.collect();
        sorted.sort();
        let mut texts: Vec<Sought> = Vec::with_capacity(sorted.len());
        // Those that the next may begin with; each begins with the one before it.
        let mut open: Vec<usize> = Vec::new();
        for (text, mask) in sorted {
            while let Some(last) = open.last() {
                if texts.get(*last).is_some_and(|last| text.starts_with(&last.text)) {
                    break;
                }
                open.pop();
            }
            let within = open.last().copied();
            open.push(texts.len());
            texts.push(Sought { head: head_of(&text), text: text.into(), mask, within });
        }
        let longest = texts.iter().map(|sought| sought.text.len()).max().unwrap_or_default();
        Self { texts, longest }
    }

    /// How many come before a text.
    fn before(&self, text: &[u8]) -> usize {
        let head = head_of(text);
        self.texts.partition_point(|sought| (sought.head, &*sought.text) < (head, text))
    }

    /// How many come before a text or are the same.
    fn up_to(&self, text: &[u8]) -> usize {
        let head = head_of(text);
        self.texts.partition_point(|sought| (sought.head, &*sought.text) <= (head, text))
    }

    /// Those that a text begins with, the longest first.
    fn at_start_of(&self, mut text: &[u8]) -> impl Iterator<Item = &Sought> {
        let longest = loop {
            let Some(last) = self.up_to(text).checked_sub(1).and_then(|last| self.texts.get(last)) else { break None };
            if text.starts_with(&last.text) {
                break Some(last);
            }
            // What the text begins with stands before this one, so this one begins with it too.
            let common = text.iter().zip(&last.text).take_while(|(one, other)| one == other).count();
            text = text.get(..common).unwrap_or_default();
        };
        std::iter::successors(longest, |sought| self.texts.get(sought.within?))
    }

    /// The lengths of what a line ends with and some of these begin with, the longest first, each with the first of the
    /// masks that it `is_piece` of. Shorter ones are left out where they would be covered by the same mask or a later one:
    /// a longer one covers their place before them.
    fn pieces_at_end_of(&self, line: &[u8], is_piece: impl Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
        let (mut pieces, mut first) = (Vec::new(), usize::MAX);
        for length in (SHORTEST_PIECE..self.longest.min(line.len() + 1)).rev() {
            let piece = line.get(line.len() - length..).unwrap_or_default();
            let beginning =
                self.texts.iter().skip(self.before(piece)).take_while(|sought| sought.text.starts_with(piece));
            let masks = beginning.map(|sought| sought.mask).filter(|mask| *mask < first && is_piece(*mask, length));
            if let Some(mask) = masks.min() {
                first = mask;
                pieces.push((mask, length));
            }
        }
        pieces
    }
}

/// Masks, and what finds those that a text has without a look for each: a file may have thousands of lines.
#[derive(PartialEq, Eq, Default)]
struct Known {
    /// The longest value first.
    masks: Vec<Mask>,
    /// Each reference once.
    references: Vec<String>,
    /// The numbers of the masks that are looked for alone.
    alone: Vec<usize>,
    /// The values of the others, as they are looked for.
    values: Sorted,
    /// Those of them whose pieces are covered.
    beginnings: Sorted,
    /// The same, from their ends to their beginnings.
    ends: Sorted,
}

impl Known {
    fn of(masks: Vec<Mask>) -> Self {
        let mut seen = BTreeSet::new();
        let references = masks.iter().map(|mask| &mask.reference).filter(|reference| seen.insert(*reference));
        let references = references.cloned().collect();
        let is_alone = |mask: &Mask| mask.folded.len() > LONGEST_TOGETHER;
        let numbered = || masks.iter().enumerate();
        let alone = numbered().filter(|(_, mask)| is_alone(mask)).map(|(number, _)| number).collect();
        let together = || numbered().filter(|(_, mask)| !is_alone(mask) && !mask.folded.is_empty());
        let in_pieces = || together().filter(|(_, mask)| mask.piece.is_some_and(|least| least < mask.folded.len()));
        let values = Sorted::of(together().map(|(number, mask)| (mask.folded.bytes().collect(), number)));
        let beginnings = Sorted::of(in_pieces().map(|(number, mask)| (mask.folded.bytes().collect(), number)));
        let ends = Sorted::of(in_pieces().map(|(number, mask)| (mask.folded.bytes().rev().collect(), number)));
        Self { references, alone, values, beginnings, ends, masks }
    }

    fn alone(&self) -> impl Iterator<Item = (usize, &Mask)> {
        self.alone.iter().filter_map(|number| Some((*number, self.masks.get(*number)?)))
    }

    /// Where whole values stand in a text, and what covers them; those of the first mask first.
    fn places(&self, text: &str, folded: &Folded) -> Vec<(Range<usize>, &str)> {
        let mut places: Vec<(usize, Range<usize>, &str)> = Vec::new();
        for (number, mask) in self.alone() {
            places.extend(mask.places(text, folded).into_iter().map(|place| (number, place, mask.reference.as_str())));
        }
        // Where the next place of each mask may begin: those of one do not overlap.
        let mut free = vec![0; self.masks.len()];
        let bytes = folded.text.as_bytes();
        for at in 0..bytes.len() {
            for sought in self.values.at_start_of(bytes.get(at..).unwrap_or_default()) {
                let (Some(mask), Some(free)) = (self.masks.get(sought.mask), free.get_mut(sought.mask)) else {
                    continue;
                };
                if *free > at {
                    continue;
                }
                let end = at + sought.text.len();
                let place = folded.place(&(at..end));
                if mask.is_spaced_as(text.get(place.clone()).unwrap_or_default()) {
                    *free = end;
                    places.push((sought.mask, place, &mask.reference));
                }
            }
        }
        places.sort_by_key(|(number, ..)| *number);
        places.into_iter().map(|(_, place, reference)| (place, reference)).collect()
    }

    /// Where lines of a text end with the beginning of a value or begin with its end, and what covers that; those of the
    /// first mask first.
    fn pieces(&self, folded: &Folded) -> Vec<(Range<usize>, String)> {
        let mut pieces: Vec<(usize, Range<usize>, String)> = Vec::new();
        for (number, mask) in self.alone() {
            pieces.extend(mask.pieces(folded).into_iter().map(|(place, cover)| (number, place, cover)));
        }
        let is_end = |number: usize, length| self.masks.get(number).is_some_and(|mask| mask.has_piece(length));
        let is_beginning = |number: usize, length| {
            is_end(number, length) && self.masks.get(number).is_some_and(|mask| !mask.is_location(length))
        };
        let reference = |number: usize| self.masks.get(number).map_or("", |mask| &mask.reference);
        for (start, line) in folded.lines() {
            let end = start + line.len();
            for (number, length) in self.beginnings.pieces_at_end_of(line.as_bytes(), is_beginning) {
                pieces.push((number, folded.place(&(end - length..end)), format!("{}…", reference(number))));
            }
            let mut head: Vec<u8> = line.bytes().take(self.ends.longest).collect();
            head.reverse();
            for (number, length) in self.ends.pieces_at_end_of(&head, is_end) {
                pieces.push((number, folded.place(&(start..start + length)), format!("…{}", reference(number))));
            }
        }
        pieces.sort_by_key(|(number, ..)| *number);
        pieces.into_iter().map(|(_, place, cover)| (place, cover)).collect()
    }
}

/// Values, with the references that they stand for; the longest first.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Masks(Arc<Known>);

impl fmt::Debug for Masks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.masks.iter().map(|mask| &mask.reference)).finish()
    }
}

impl Masks {
    /// The text without what could act on a terminal or a model, with every value covered by its reference, whatever stood
    /// between its characters. Where a line ends or begins within a value, a long piece of it is covered too.
    #[must_use]
    pub fn cover<'t>(&self, text: &'t str) -> Cow<'t, str> {
        // What is removed later could leave a value that was not one before.
        let visible = clean(text);
        match self.covered(&visible) {
            Some(covered) => Cow::Owned(covered),
            None => visible,
        }
    }

    /// The text as it is but for its values, for what is compared or kept and not shown.
    pub(crate) fn cover_verbatim<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut covered = Cow::Borrowed(text);
        for Mask { value, reference, .. } in &self.0.masks {
            if covered.contains(value.as_str()) {
                covered = Cow::Owned(covered.replace(value, reference));
            }
        }
        covered
    }

    /// A clean text with its values covered; `None` when it has none.
    fn covered(&self, text: &str) -> Option<String> {
        if self.0.masks.is_empty() {
            return None;
        }
        let folded = Folded::of(text);
        let mut found: Vec<(Range<usize>, Cow<'_, str>)> = Vec::new();
        for reference in &self.0.references {
            // A text that is covered again stays as it is, although a value may stand in a reference.
            let covered = text.match_indices(reference.as_str());
            found.extend(covered.map(|(at, _)| (at..at + reference.len(), reference.into())));
        }
        found.extend(self.0.places(text, &folded).into_iter().map(|(place, reference)| (place, reference.into())));
        found.extend(self.0.pieces(&folded).into_iter().map(|(place, cover)| (place, cover.into())));
        if found.is_empty() {
            return None;
        }
        // Values may overlap: what is found first covers its place, and the others what is left of theirs.
        let mut covers: Vec<Option<usize>> = vec![None; text.len()];
        for (number, (place, _)) in found.iter().enumerate() {
            for byte in covers.get_mut(place.clone()).into_iter().flatten() {
                byte.get_or_insert(number);
            }
        }
        let (mut shown, mut before) = (String::with_capacity(text.len()), None);
        for (at, c) in text.char_indices() {
            let cover = covers.get(at).copied().flatten();
            match cover.and_then(|number| found.get(number)) {
                Some((_, reference)) if cover != before => shown.push_str(reference),
                Some(_) => {}
                None => shown.push(c),
            }
            before = cover;
        }
        Some(shown)
    }
}

/// An environment and a folder of files that note what is read of them.
pub(crate) struct Noted<'e> {
    environment: &'e dyn Fn(&str) -> Option<String>,
    folder: &'e Path,
    read: RefCell<BTreeMap<String, String>>,
    /// Where a variable that is not set counts as empty, those that are not.
    unset: Option<RefCell<BTreeSet<String>>>,
}

impl<'e> Noted<'e> {
    /// Nothing was read of `environment` yet, nor of the files, whose paths are relative to `folder`.
    pub(crate) fn new(environment: &'e dyn Fn(&str) -> Option<String>, folder: &'e Path) -> Self {
        Self { environment, folder, read: RefCell::default(), unset: None }
    }

    /// The same, where a variable that is not set is noted and counts as empty.
    pub(crate) fn tolerant(self) -> Self {
        Self { unset: Some(RefCell::default()), ..self }
    }

    /// The variables that were asked for and are not set.
    pub(crate) fn unset(&self) -> Vec<String> {
        self.unset.iter().flat_map(|unset| unset.borrow().iter().cloned().collect::<Vec<_>>()).collect()
    }

    /// The value that a reference stands for, which is covered from now on. Of a file it is the text without the white space
    /// around it and without a byte order mark.
    ///
    /// # Errors
    /// A variable that is not set, unless that is noted, and a file that cannot be read or is empty.
    pub(crate) fn get(&self, reference: Reference<'_>) -> Result<String, ExpandError> {
        let value = match reference {
            Reference::Variable(name) => match ((self.environment)(name), &self.unset) {
                (Some(value), _) => value,
                (None, None) => return Err(ExpandError::Unset(name.to_owned())),
                (None, Some(unset)) => {
                    unset.borrow_mut().insert(name.to_owned());
                    return Ok(String::new());
                }
            },
            Reference::File(path) => {
                let text = read_text_file(&self.folder.join(path), LARGEST_SECRET);
                let text = text.map_err(|error| ExpandError::Unread(error.to_string()))?;
                // Some editors put a mark in front of it.
                match text.trim_start_matches('\u{feff}').trim() {
                    // As it is while it is being replaced.
                    "" => return Err(ExpandError::Unread(format!("{path}: the file is empty"))),
                    text => text.to_owned(),
                }
            }
        };
        let whole = value.trim();
        if whole.chars().count() >= SHORTEST {
            let mut read = self.read.borrow_mut();
            read.insert(whole.to_owned(), reference.to_string());
            for line in telling_lines(whole) {
                // A value of its own is known by its own name.
                read.entry(line.to_owned()).or_insert_with(|| reference.to_string());
            }
        }
        Ok(value)
    }

    /// The text with its references replaced, as [`Self::get`] does it.
    ///
    /// # Errors
    /// As [`Self::get`], and a reference that does not end.
    pub(crate) fn expand(&self, text: &str) -> Result<String, ExpandError> {
        replaced(text, &|reference| self.get(reference))
    }

    /// What covers everything that was read.
    pub(crate) fn masks(self) -> Masks {
        let read = self.read.into_inner().into_iter();
        let mut masks: Vec<Mask> = read.map(|(value, reference)| Mask::new(value, reference)).collect();
        // A value may be a part of another.
        masks.sort_by_key(|mask| std::cmp::Reverse(mask.value.len()));
        Masks(Arc::new(Known::of(masks)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What covers the values of these variables.
    fn masks(variables: &[(&str, &str)]) -> Masks {
        let value =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let noted = Noted::new(&value, Path::new("."));
        for (name, _) in variables {
            noted.get(Reference::Variable(name)).unwrap();
        }
        noted.masks()
    }

    #[test]
    fn a_value_is_covered_whatever_stands_between_its_characters() {
        let masks = masks(&[("V", "s3cr3t/Value+with=odd&chars9"), ("SHORT", "here")]);
        let between = [
            "\u{1b}[0m",
            "\u{1b}[1;31m\u{1b}[K",
            "\u{1b}]8;;http://a\u{7}",
            "\u{8}",
            "\0",
            "\u{200b}",
            "\u{200d}",
            "\u{fe0f}",
            "\u{fffd}",
            "<|im_start|>",
            "<|im_\u{200b}start|>",
            "\r",
            "\n",
            "\r\n",
            "\t",
            " \u{1b}[K\n  ",
        ];
        for between in between {
            let text = format!("a s3cr3t/Va{between}lue+with=odd&chars9 b");
            assert_eq!(masks.cover(&text), "a ${env:V} b", "{text:?}");
        }
        // Words side by side are not a short value.
        for (text, expected) in [
            ("the reason", "the reason"),
            ("he re, he\nre", "he re, he\nre"),
            ("he re here", "he re ${env:SHORT}"),
            ("\u{1b}[1mhe\u{1b}[0mre, h\0ere", "${env:SHORT}, ${env:SHORT}"),
        ] {
            assert_eq!(masks.cover(text), expected, "{text:?}");
        }
        assert_eq!(masks.cover_verbatim("a\0 s3cr3t/Value+with=odd&chars9"), "a\0 ${env:V}");
    }

    #[test]
    fn a_value_with_characters_that_are_not_seen_is_covered() {
        for value in ["s3cr\u{1b}[1met-of\u{200b}-it", "s3cret<|im_start|>-of-it", "s3cr\u{fffd}et-of-it"] {
            let masks = masks(&[("V", value)]);
            for text in [value, "s3cret-of-it"] {
                assert_eq!(masks.cover(text), "${env:V}", "{value:?}");
            }
        }
        // Nothing of it is seen.
        assert_eq!(masks(&[("V", "\u{200d}\u{fe0f}\u{200d}\u{fe0f}")]).cover("a text"), "a text");
    }

    #[test]
    fn a_long_piece_of_a_value_is_covered_where_a_line_breaks_off() {
        let masks = masks(&[("V", "s3cr3t/Value+with=odd&chars9"), ("WORDS", "not a secret")]);
        let cases = [
            ("begin s3cr3t/Value+with=odd&", "begin ${env:V}…"),
            ("begin s3cr3t/Va\u{1b}[0mlue+with=odd&chars \nnext", "begin ${env:V}… \nnext"),
            ("s3cr3t/Value+with=odd&\r\nnext", "${env:V}…\r\nnext"),
            ("+with=odd&chars9 is bad", "…${env:V} is bad"),
            ("no\n 3cr3t/Value+with=odd&chars9", "no\n …${env:V}"),
            // Less than half of it, and what goes on with something else.
            ("begin s3cr3t/Value", "begin s3cr3t/Value"),
            ("s3cr3t/Value+with=even", "s3cr3t/Value+with=even"),
            ("a +with=odd&chars9", "a +with=odd&chars9"),
            ("this is not a secre", "this is not a secre"),
        ];
        for (text, expected) in cases {
            let covered = masks.cover(text);
            assert_eq!(covered, expected, "{text:?}");
            assert_eq!(masks.cover(&covered), expected, "again");
        }
    }

    #[test]
    fn the_beginning_of_an_address_is_shown_and_not_a_piece_with_a_secret() {
        let masks = masks(&[
            ("API", "https://api.github.com/graphql"),
            ("FOLDER", "/srv/models/of/everybody/weights.bin"),
            ("DATABASE", "postgres://reader:pass/word@db.example.com/all"),
            ("QUERY", "https://example.org/hook?key=0123/456789abcdef0123456789"),
            ("KEY", "/9j4AAQSkZJRgABAQ+AAAQABAAD"),
        ]);
        for (text, expected) in [
            ("failed at https://api.github.com", "failed at https://api.github.com"),
            ("failed at https://api.github.com/", "failed at https://api.github.com/"),
            ("failed at https://api.github.com/graphql", "failed at ${env:API}"),
            ("failed at https://api.github.com/grap", "failed at ${env:API}…"),
            ("no /srv/models/of/everybody", "no /srv/models/of/everybody"),
            ("no /srv/models/of/everybody/wei", "no ${env:FOLDER}…"),
            ("no postgres://reader:pass/word", "no ${env:DATABASE}…"),
            ("no postgres://reader:pass/word@db.example.com", "no ${env:DATABASE}…"),
            ("no https://example.org/hook?key=0123", "no ${env:QUERY}…"),
            ("no /9j4AAQSkZJRgABAQ+", "no ${env:KEY}…"),
        ] {
            assert_eq!(masks.cover(text), expected, "{text:?}");
        }
    }

    #[test]
    fn values_overlap_each_other_and_their_references() {
        let masks = masks(&[("A", "first-half-and"), ("B", "and-second-half"), ("TOKEN", "TOKEN")]);
        for (text, expected) in [
            ("is first-half-and-second-half.", "is ${env:A}${env:B}."),
            ("is TOKEN", "is ${env:TOKEN}"),
            ("is ${env:TOKEN}", "is ${env:TOKEN}"),
        ] {
            assert_eq!(masks.cover(text), expected);
        }
    }

    #[test]
    fn a_long_value_is_looked_for_in_little_time() {
        let start = std::time::Instant::now();
        let value = format!("{}b", "a".repeat(20_000));
        let masks = masks(&[("V", value.as_str())]);
        // The end of the value almost stands where these begin, in every length.
        assert_eq!(masks.cover(&"a".repeat(16_000)), "${env:V}…");
        let lines = "aaaaaaaaaaaaaaa\n".repeat(1_000);
        assert_eq!(masks.cover(&lines), lines);
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }

    #[test]
    fn many_values_are_looked_for_in_little_time() {
        let short: Vec<String> =
            (0..6_500).map(|number| format!("k{:08x}", 2_654_435_761_u32.wrapping_mul(number))).collect();
        // Of these pieces are covered too, and they begin alike.
        let long: Vec<String> = short.iter().take(1_600).map(|line| format!("API_TOKEN_OF_{line}{line}")).collect();
        let piece = |line: &String| line.get(..30).unwrap().to_owned();
        let start = std::time::Instant::now();
        for (lines, seen) in [(&short, short.clone()), (&long, long.clone()), (&long, long.iter().map(piece).collect())]
        {
            let masks = masks(&[("V", lines.join("\n").as_str())]);
            let other = "kAPI_TOKEN_OF_k00000-0".repeat(1_000);
            assert_eq!(masks.cover(&other), other);
            let others = "a_line_that_is_no_API_TOKEN_OF_k\n".repeat(1_000);
            assert_eq!(masks.cover(&others), others);
            let every = seen.join("\nand ");
            let covered = masks.cover(&every);
            assert!(!covered.contains("k0") && covered.matches("${env:V}").count() == seen.len(), "{covered}");
        }
        assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    }

    #[test]
    fn values_are_covered_by_the_names_of_their_variables() {
        let environment = |name: &str| {
            Some(match name {
                "TOKEN" => "s3cret-token\n".to_owned(),
                "PART" => "s3cret".to_owned(),
                _ => "a".to_owned(),
            })
        };
        let noted = Noted::new(&environment, Path::new("."));
        for name in ["PART", "TOKEN", "SHORT"] {
            noted.get(Reference::Variable(name)).unwrap();
        }
        let masks = noted.masks();
        assert_eq!(masks.cover("a s3cret-token and s3cret"), "a ${env:TOKEN} and ${env:PART}");
        assert!(matches!(masks.cover("nothing of it"), Cow::Borrowed(_)));
        assert_eq!(format!("{masks:?}"), r#"{"${env:TOKEN}", "${env:PART}"}"#);
    }

    #[test]
    fn each_line_of_a_value_is_covered() {
        const PEM: &str =
            "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\nq83=\n-----END PRIVATE KEY-----\n";
        let cases = [
            (PEM, "read MIIEvQIBADANBgkq", "read ${env:V}"),
            (PEM, "hkiG9w0BAQEFAASC\r", "${env:V}\r"),
            (PEM, "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----"),
            (PEM, "-----END PRIVATE KEY-----", "-----END PRIVATE KEY-----"),
            (PEM, "q83=", "q83="),
            (PEM, PEM, "${env:V}\n"),
            ("first-line\r\n  second-line\r\n", "a first-line, a second-line", "a ${env:V}, a ${env:V}"),
            ("s3cret\n------------\n{\n}", "s3cret ------------ {", "${env:V} ------------ {"),
            ("one\ntwo33\nthree3", "one, two33, three3", "one, two33, ${env:V}"),
            ("one\ntwo33\nthree3", "one two33 three3", "${env:V}"),
            // A value of one line is covered as a whole alone.
            ("s3cret token", "s3cret s3cret token", "s3cret ${env:V}"),
        ];
        for (value, text, expected) in cases {
            let environment = |_: &str| Some(value.to_owned());
            let noted = Noted::new(&environment, Path::new("."));
            noted.get(Reference::Variable("V")).unwrap();
            assert_eq!(noted.masks().cover(text), expected, "{value:?}");
        }
        // A line that is the value of another variable has its name, whichever is read first.
        for names in [["ALL", "LINE"], ["LINE", "ALL"]] {
            let environment = |name: &str| Some(if name == "ALL" { "s3cret\nother0" } else { "s3cret" }.to_owned());
            let noted = Noted::new(&environment, Path::new("."));
            for name in names {
                noted.get(Reference::Variable(name)).unwrap();
            }
            assert_eq!(noted.masks().cover("s3cret, other0"), "${env:LINE}, ${env:ALL}");
        }
    }

    #[test]
    fn what_a_file_holds_is_covered_by_its_path() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "s3cret-of-a-file\n").unwrap();
        std::fs::write(folder.path().join("long"), "x".repeat(1 << 17)).unwrap();
        let environment = |_: &str| None;
        let noted = Noted::new(&environment, folder.path());
        assert_eq!(noted.get(Reference::File("key")).unwrap(), "s3cret-of-a-file");
        for (path, reason) in [("none", "none"), ("long", "it has more than 65536 bytes")] {
            let error = noted.get(Reference::File(path)).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert_eq!(noted.masks().cover("is s3cret-of-a-file"), "is ${file:key}");
    }
}
