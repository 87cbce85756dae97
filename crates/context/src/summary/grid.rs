//! Tables in text form: CSV, TSV, tables of Markdown and of database shells, aligned columns.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use csv::StringRecord;
use rustc_hash::FxHasher;

use super::column::Column;
use super::data::sample_rows;
use super::table::{Sample, Table};
use super::{Pieces, lines, rank, shown};
use crate::brief::Piece;
use crate::split;

/// The number of lines from which the format is guessed.
const LOOKED_AT: usize = 40;
/// The number of rows below the header that a table has at least.
const LEAST_ROWS: usize = 2;
/// The number of columns that a table has at most; a text with more delimiters in a line is not a table.
const MOST_COLUMNS: usize = 512;
/// The number of characters of a field in a row that is shown.
const CELL: usize = 48;
/// The number of characters of a field in a row without names.
const SHORT_CELL: usize = 32;
/// Of so many lines one may be no row: a title, a total, a row that is cut.
const LINES_PER_OTHER: usize = 20;
/// The number of columns that a table has at least in which one blank may separate them.
const LEAST_WORDS: usize = 3;
/// The number of different values that a column has at most in which a value can be rare.
const FEW_VALUES: usize = 12;
/// How often a rare value occurs at most.
const RARE: usize = 2;
/// Of so many rows one may have a rare value of a column; with more of them the values are not rare.
const ROWS_PER_RARE: usize = 10;
/// When the first row with a rare value is shown: what it does not share with others after what is said first of each
/// column, and all of it after how often labels occur.
const RARE_RANKS: [u32; 2] = [rank::STAT + 1, rank::LABELS + 1];
/// The number of rows with rare values that are shown at most.
const RARE_ROWS: usize = 4;

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Fields between delimiters, quoted as in RFC 4180.
    Delimited(u8),
    /// Cells between bars, as in Markdown.
    Bars,
    /// Columns of equal width, with at least two blanks between them.
    Aligned,
    /// So many columns under their names, right or left, with one blank between them or more; the last is the rest of
    /// the line.
    Words(usize),
}

/// The delimiter of the delimited table that `text` is, if it is one.
pub(crate) fn delimiter_of(text: &str) -> Option<u8> {
    match format_of(text)? {
        Format::Delimited(delimiter) => Some(delimiter),
        Format::Bars | Format::Aligned | Format::Words(_) => None,
    }
}

/// The format of the table that `text` is, if it is one. Messages of programs are not, whatever separates their parts.
pub(super) fn format_of(text: &str) -> Option<Format> {
    if lines::begins_as_lines(text) {
        return None;
    }
    let lines: Vec<&str> = split::lines(text).take(LOOKED_AT).collect();
    let filled = lines.iter().filter(|line| !line.trim().is_empty()).count();
    if filled <= LEAST_ROWS {
        return None;
    }
    let bars = lines.iter().filter(|line| is_bar_line(line)).count();
    let ruled = lines.iter().any(|line| is_rule(line) && line.contains(['-', '─', '═']));
    if ruled && bars > LEAST_ROWS && bars * 10 >= filled * 6 {
        return Some(Format::Bars);
    }
    let delimited = [b'\t', b',', b';', b'|'].into_iter().find(|&delimiter| is_delimited(text, delimiter));
    delimited.map(Format::Delimited).or_else(|| {
        let starts = aligned_starts(&lines);
        let words = words_in_row(&lines).filter(|width| starts.as_ref().is_none_or(|starts| starts.len() < *width));
        let layout = words.map(Layout::Words).or_else(|| starts.map(Layout::Starts))?;
        let (rows, others) = split::lines(text).filter(|line| is_filled(line)).fold((0, 0), |(rows, others), line| {
            if layout.fields(line).is_some() { (rows + 1, others) } else { (rows, others + 1) }
        });
        (others * LINES_PER_OTHER <= rows).then(|| words.map_or(Format::Aligned, Format::Words))
    })
}

/// Whether a line of a table is a row, its header, or something else that says something.
fn is_filled(line: &str) -> bool {
    !line.trim().is_empty() && !is_rule(line)
}

/// Where the fields of a line are.
enum Layout {
    /// Between bars.
    Bars,
    /// At these byte positions.
    Starts(Vec<usize>),
    /// So many, between blanks.
    Words(usize),
}

impl Layout {
    /// The layout of a table that has no delimiters.
    fn of(text: &str, format: Format) -> Option<Self> {
        match format {
            Format::Delimited(_) => None,
            Format::Bars => Some(Self::Bars),
            Format::Words(width) => Some(Self::Words(width)),
            Format::Aligned => {
                aligned_starts(&split::lines(text).take(LOOKED_AT).collect::<Vec<_>>()).map(Self::Starts)
            }
        }
    }

    /// The fields of a line; none where it is not a row.
    fn fields<'a>(&self, line: &'a str) -> Option<Vec<&'a str>> {
        match self {
            Self::Bars => (is_bar_line(line) && !is_rule(line)).then(|| {
                let inner = line.trim().trim_start_matches(['|', '│', '┃']).trim_end_matches(['|', '│', '┃']);
                inner.split(['|', '│', '┃']).map(str::trim).collect()
            }),
            Self::Starts(starts) => {
                let ends = starts.iter().skip(1).copied().chain([usize::MAX]);
                let field = |(&start, end): (&usize, usize)| line.get(start.min(line.len())..end.min(line.len()));
                let fields = starts.iter().zip(ends).map(|range| field(range).unwrap_or_default().trim());
                let fields: Vec<&str> = Some(fields).filter(|_| is_filled(line) && !is_torn(line, starts))?.collect();
                // A row has more than its first field.
                Some(fields).filter(|fields| fields.iter().skip(1).any(|field| !field.is_empty()))
            }
            Self::Words(width) => words(line, *width).filter(|_| is_filled(line)),
        }
    }
}

/// Whether a column that begins at one of `starts` would begin inside a word.
fn is_torn(line: &str, starts: &[usize]) -> bool {
    let bytes = line.as_bytes();
    starts.iter().skip(1).any(|&start| {
        let blank = bytes.get(start - 1).is_none_or(|byte| *byte == b' ');
        !blank || !line.is_char_boundary(start.min(line.len()))
    })
}

/// The first words of a line, and the rest of it as the last of `width` fields.
fn words(line: &str, width: usize) -> Option<Vec<&str>> {
    let mut rest = line.trim();
    let mut fields = Vec::with_capacity(width);
    while fields.len() + 1 < width {
        let (word, behind) = rest.split_once(char::is_whitespace)?;
        fields.push(word);
        rest = behind.trim_start();
    }
    fields.push(rest);
    Some(fields).filter(|_| !rest.is_empty())
}

/// Whether a word can be a name of a column, or a part of one: it is not a stroke.
fn is_name(word: &str) -> bool {
    word.len() == 1 || word.contains(char::is_alphanumeric)
}

/// The number of fields in a row of a table whose columns stand under their names.
fn words_in_row(lines: &[&str]) -> Option<usize> {
    let filled: Vec<&str> = lines.iter().copied().filter(|line| is_filled(line)).collect();
    let (header, rows) = filled.split_first().filter(|(_, rows)| rows.len() >= LEAST_ROWS)?;
    let names: Vec<&str> = header.split_whitespace().collect();
    let is_plain = |name: &&str| {
        name.contains(char::is_alphabetic) && !name.starts_with('(') && !name.contains([',', ';', '{', '}', '"', '='])
    };
    let mut counts: Vec<usize> = rows.iter().map(|row| row.split_whitespace().count()).collect();
    counts.sort_unstable();
    // A name may be several words where the column is the last.
    let width = counts.get(rows.len() / LINES_PER_OTHER).copied()?.min(names.len());
    if width < LEAST_WORDS || names.len() > width + 1 || !names.iter().all(is_plain) || header.ends_with([':', '.']) {
        return None;
    }
    let heads = spans(header, width)?;
    let stands_under = |row: &&&str| {
        let beside = |cells: Vec<(usize, usize)>| {
            cells.iter().zip(&heads).filter(|((start, end), (from, to))| start >= to || from >= end).count()
        };
        // A value that is too long for its column moves those behind it.
        spans(row, width).is_some_and(|cells| beside(cells) * 3 + 2 <= width)
    };
    let spaced = rows.iter().filter(|row| row.trim().contains("  ")).count();
    let cells: Vec<Vec<&str>> = rows.iter().filter_map(|row| words(row, width)).collect();
    (is_most(rows.iter().filter(stands_under).count(), rows.len())
        && spaced * 2 >= rows.len()
        && are_values(&cells, &names))
    .then_some(width)
}

/// Whether one column has numbers, and none the name above it again: lines that are all alike have no header.
fn are_values(rows: &[Vec<&str>], names: &[&str]) -> bool {
    let is_number = |cell: &&str| cell.starts_with(|first: char| first.is_ascii_digit());
    let numbers = |column: usize| rows.iter().filter(|row| row.get(column).is_some_and(is_number)).count();
    let repeats = rows.iter().any(|row| row.iter().zip(names).any(|(cell, name)| cell == name));
    !repeats && (0..names.len()).any(|column| is_most(numbers(column), rows.len()))
}

/// Whether a number of lines is nearly all of them.
fn is_most(count: usize, all: usize) -> bool {
    count * 10 >= all * 9
}

/// The positions, in characters, at which the fields of a row begin and end.
fn spans(line: &str, width: usize) -> Option<Vec<(usize, usize)>> {
    let (mut spans, mut from) = (Vec::with_capacity(width), 0);
    for word in words(line, width)? {
        let start = from + line.get(from..)?.find(word)?;
        from = start + word.len();
        let place = line.get(..start)?.chars().count();
        spans.push((place, place + word.chars().count()));
    }
    Some(spans)
}

fn is_bar_line(line: &str) -> bool {
    line.matches(['|', '│', '┃']).count() >= 1 || is_rule(line)
}

/// Whether a line consists of strokes and crossings only.
fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3 && line.chars().all(|c| " -+|:=─━┼┬┴├┤┌┐└┘│╞╡╪═╔╗╚╝║┃╇┡┩┏┓┳┻".contains(c))
}

fn is_delimited(text: &str, delimiter: u8) -> bool {
    // Most texts are not tables, and making a reader takes longer than this.
    let mut first = split::lines(text).find(|line| !line.is_empty()).unwrap_or_default().bytes();
    if !first.any(|byte| byte == delimiter || byte == b'"' || byte == b'\r') {
        return false;
    }
    let mut widths: Vec<usize> = Vec::new();
    let mut lengths = 0;
    for record in reader(text, delimiter).records().take(LOOKED_AT) {
        let Ok(record) = record else { return false };
        if record.iter().any(|field| field.len() > 4000) {
            return false;
        }
        lengths += record.iter().filter(|field| field.contains(' ')).count();
        widths.push(record.len());
    }
    let Some(&width) = widths.first() else { return false };
    let header = reader(text, delimiter).records().next().and_then(Result::ok);
    let header_like = header.is_some_and(|header| {
        header.iter().all(|field| field.trim().len() <= 60)
            && header.iter().filter(|field| !field.trim().is_empty()).count() * 2 > width
    });
    let same = widths.iter().filter(|one| **one == width).count();
    // In prose and code, a line here and there has as many commas as the first.
    let loose = width == 2 && delimiter == b',' && lengths > widths.len();
    (2..=MOST_COLUMNS).contains(&width)
        && widths.len() > LEAST_ROWS
        && same * 20 >= widths.len() * 19
        && header_like
        && !loose
}

fn reader(text: &str, delimiter: u8) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).has_headers(false).from_reader(text.as_bytes())
}

/// The byte positions at which the columns of a table without delimiters begin.
fn aligned_starts(lines: &[&str]) -> Option<Vec<usize>> {
    let filled: Vec<&&str> = lines.iter().filter(|line| !line.trim().is_empty() && !is_rule(line)).collect();
    let header = filled.first()?;
    let mut starts: Vec<usize> = Vec::new();
    let bytes = header.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let before = |back: usize| at.checked_sub(back).and_then(|at| bytes.get(at)).is_none_or(|byte| *byte == b' ');
        if *byte != b' ' && before(1) && before(2) && (at != 1) {
            starts.push(at);
        }
    }
    let is_code = header.contains(['{', '}', ';']) || header.contains(" (") || header.contains("()");
    if starts.len() < 2
        || filled.len() <= LEAST_ROWS
        || is_code
        || !header.split(' ').all(|word| word.is_empty() || is_name(word))
    {
        return None;
    }
    let fits = |line: &&&str| {
        let begins = |start: &usize| line.as_bytes().get(*start).is_some_and(|byte| *byte != b' ');
        !is_torn(line, &starts) && starts.iter().skip(1).any(begins)
    };
    let fitting = filled.iter().filter(|line| fits(line)).count();
    (fitting == filled.len()).then_some(starts)
}

/// Calls `row` with the fields of every row, the header first.
fn for_each_row(text: &str, format: Format, mut row: impl FnMut(&[&str])) {
    match format {
        Format::Delimited(delimiter) => {
            let mut reader = reader(text, delimiter);
            let mut record = StringRecord::new();
            // The text is UTF-8 and its rows may differ in width, so no row is an error.
            while let Ok(true) = reader.read_record(&mut record) {
                row(&record.iter().collect::<Vec<_>>());
            }
        }
        Format::Bars | Format::Aligned | Format::Words(_) => {
            let Some(layout) = Layout::of(text, format) else { return };
            let mut width = 0;
            for fields in text.lines().filter_map(|line| layout.fields(line)) {
                width = if width == 0 { fields.len() } else { width };
                if fields.len() == width {
                    row(&fields);
                }
            }
        }
    }
}

/// Describes a table in text form.
pub(super) fn pieces(text: &str, format: Format) -> Pieces {
    let mut names: Vec<String> = Vec::new();
    let mut columns: Vec<Column> = Vec::new();
    let mut few: Vec<Few> = Vec::new();
    let mut rows = 0_usize;
    for_each_row(text, format, |fields| {
        if columns.is_empty() {
            names = fields.iter().enumerate().map(|(number, field)| name(number, field)).collect();
            columns = names.iter().map(|_| Column::default()).collect();
            few = names.iter().map(|_| Few::default()).collect();
            return;
        }
        for ((column, few), field) in columns.iter_mut().zip(&mut few).zip(fields) {
            column.add_field(field);
            few.add(rows, field);
        }
        rows += 1;
    });
    let rare = rare_rows(&few, rows);
    let first_rare = rare.first().copied();
    let mut wanted = sample_rows(rows);
    wanted.retain(|row| !rare.contains(row));
    // Behind both ends.
    let ends = wanted.len().min(2);
    wanted.splice(ends..ends, rare);
    let mut samples: Vec<Sample> = Vec::new();
    let mut line = 0_usize;
    for_each_row(text, format, |fields| {
        // The header comes first.
        if let Some(number) = line.checked_sub(1).filter(|row| wanted.contains(row)) {
            samples.push(sample(number, fields, &names));
        }
        line += 1;
    });
    samples.sort_by_key(|sample| wanted.iter().position(|&number| number == sample.number));
    let table = Table {
        label: String::new(),
        shape: shown::count(rows, "row"),
        rows,
        qualified: false,
        columns: names.iter().cloned().zip(&columns).collect(),
        names: names.clone(),
        samples,
    };
    let mut pieces = table.pieces(rank::TABLE_PLACE, 0);
    if let Some(rare) = table.samples.iter().find(|sample| Some(sample.number) == first_rare) {
        // The samples stand in the order of their numbers.
        let before = table.samples.iter().filter(|sample| sample.number < rare.number).count();
        let place = rank::TABLE_PLACE + rank::SAMPLE_PLACE + u32::try_from(before).unwrap_or(0);
        pieces.iter_mut().filter(|piece| piece.place == place).for_each(|piece| *piece = told(rare, &few, rows, place));
    }
    pieces.extend(around(text, format));
    pieces
}

/// A row with a rare value: what it does not share with most rows, then all of it.
fn told(row: &Sample, columns: &[Few], rows: usize, place: u32) -> Piece {
    let is_own = |few: &Few| !few.is_shared(rows) || few.rare(rows).contains(&row.number);
    let own = row.entries.iter().zip(columns).filter(|(_, few)| is_own(few));
    let own: Vec<&str> = own.map(|(entry, _)| entry.as_str()).collect();
    let line = |entries: String| format!("row {}: {entries}", row.number);
    Piece::line(place, RARE_RANKS[0], line(own.join(" "))).or(RARE_RANKS[1], line(row.entries.join(" ")))
}

fn sample(number: usize, fields: &[&str], names: &[String]) -> Sample {
    let entry = |(name, field): (&String, &&str)| format!("{name}={}", shown::text_cell(&shown::line(field, CELL)));
    let entries = names.iter().zip(fields).map(entry).collect();
    let values = fields.iter().map(|field| shown::line(field, SHORT_CELL)).collect();
    Sample { number, entries, values, verbatim: None }
}

/// The values of a column, as long as they are few, with how often each occurs and the first rows that have it.
#[derive(Debug, Default)]
struct Few {
    values: Vec<(u64, usize, [usize; RARE])>,
    are_many: bool,
}

impl Few {
    fn add(&mut self, row: usize, field: &str) {
        if self.are_many {
            return;
        }
        let mut hasher = FxHasher::default();
        field.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some((_, count, rows)) = self.values.iter_mut().find(|(known, ..)| *known == hash) {
            if let Some(place) = rows.get_mut(*count) {
                *place = row;
            }
            *count += 1;
        } else if self.values.len() < FEW_VALUES {
            self.values.push((hash, 1, [row; RARE]));
        } else {
            self.are_many = true;
        }
    }

    /// Whether most of `rows` have one value.
    fn is_shared(&self, rows: usize) -> bool {
        !self.are_many && self.values.iter().any(|(_, count, _)| count * 2 > rows)
    }

    /// The rows with a value that occurs once or twice, of `rows`.
    fn rare(&self, rows: usize) -> Vec<usize> {
        let rare = self.values.iter().filter(|(_, count, _)| *count <= RARE && !self.are_many);
        let found: Vec<usize> = rare.flat_map(|(_, count, rows)| rows.iter().take(*count).copied()).collect();
        if found.len() * ROWS_PER_RARE <= rows { found } else { Vec::new() }
    }
}

/// The rows that have rare values: those with the most of them first.
fn rare_rows(columns: &[Few], rows: usize) -> Vec<usize> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    // Both ends are shown anyway.
    for row in columns.iter().flat_map(|column| column.rare(rows)).filter(|&row| row > 0 && row + 1 < rows) {
        *counts.entry(row).or_default() += 1;
    }
    let mut found: Vec<(usize, usize)> = counts.into_iter().collect();
    found.sort_by_key(|&(row, count)| (std::cmp::Reverse(count), row));
    found.into_iter().take(RARE_ROWS).map(|(row, _)| row).collect()
}

fn name(number: usize, field: &str) -> String {
    let field = field.trim().trim_start_matches('\u{feff}');
    if field.is_empty() { format!("column {}", number + 1) } else { shown::line(field, CELL) }
}

/// The lines before and after a table whose rows are lines.
fn around(text: &str, format: Format) -> Pieces {
    let Some(layout) = Layout::of(text, format) else { return Pieces::new() };
    let mut other = text.lines().filter(|line| is_filled(line) && layout.fields(line).is_none());
    let line = |place, line: &str| Piece::line(place, rank::STAT, shown::line(line.trim(), 200));
    let mut pieces: Pieces = other.next().map(|text| line(0, text)).into_iter().collect();
    pieces.extend(other.next_back().map(|text| line(rank::AFTER_PLACE, text)));
    pieces
}
