//! Tables in text form: CSV, TSV, tables of Markdown and of database shells, aligned columns.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;

use csv::StringRecord;
use rustc_hash::FxHasher;

use super::amount;
use super::column::{Column, is_date};
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
/// The number of lines of a record at most; longer ones come from a quote that is none.
const MOST_LINES: u64 = 100;
/// The numbers that can be names of columns because they are years.
const YEARS: RangeInclusive<i64> = 1900..=2100;

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Fields between delimiters.
    Delimited(Delimited),
    /// Cells between bars, as in Markdown.
    Bars,
    /// Columns of equal width, with at least two blanks between them.
    Aligned,
    /// So many columns under their names, right or left, with one blank between them or more; the last is the rest of
    /// the line.
    Words(usize),
}

/// How a delimited table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delimited {
    /// What stands between two fields.
    pub(crate) delimiter: u8,
    /// Whether quotes enclose fields, as in RFC 4180; otherwise they are characters like others.
    pub(crate) is_quoted: bool,
    /// Whether the first record names the columns.
    pub(crate) has_header: bool,
}

impl Delimited {
    /// The format of RFC 4180, with a header.
    pub(crate) fn usual(delimiter: u8) -> Self {
        Self { delimiter, is_quoted: true, has_header: true }
    }

    /// What reads the records of a table.
    pub(crate) fn reader(self, text: &str) -> csv::Reader<&[u8]> {
        let mut builder = csv::ReaderBuilder::new();
        builder.delimiter(self.delimiter).quoting(self.is_quoted).flexible(true).has_headers(false);
        builder.from_reader(text.as_bytes())
    }
}

/// The rows of a table, as byte ranges of the text.
pub(crate) struct RowSpans {
    /// The record or line above the rows, if there is one.
    pub(crate) header: Option<(usize, usize)>,
    /// The rows.
    pub(crate) rows: Vec<(usize, usize)>,
}

/// The rows of a table, numbered as [`pieces`] numbers them.
pub(crate) fn spans_of(text: &str, format: Format) -> Option<RowSpans> {
    let Format::Delimited(delimited) = format else {
        let layout = Layout::of(text, format)?;
        let mut at = 0;
        let mut spans = text.split_inclusive('\n').filter_map(|line| {
            let start = at;
            at += line.len();
            let line = line.trim_end_matches(['\r', '\n']);
            layout.fields(line).map(|_| (start, start + line.len()))
        });
        return Some(RowSpans { header: Some(spans.next()?), rows: spans.collect() });
    };
    let mut reader = delimited.reader(text);
    let mut starts = Vec::new();
    let mut record = csv::ByteRecord::new();
    while reader.read_byte_record(&mut record).ok()? {
        starts.push(usize::try_from(record.position()?.byte()).ok()?);
    }
    starts.push(text.len());
    let trimmed = |start: usize, end: usize| {
        let record = text.get(start..end).unwrap_or_default();
        let begun = start + (record.len() - record.trim_start_matches(['\r', '\n']).len());
        (begun, begun.max(start + record.trim_end_matches(['\r', '\n']).len()))
    };
    let mut spans = starts.windows(2).map(|pair| trimmed(pair[0], pair[1]));
    let header = if delimited.has_header { Some(spans.next()?) } else { None };
    Some(RowSpans { header, rows: spans.collect() })
}

/// The format of the table that `text` is, if it is one. Messages of programs are not, whatever separates their parts.
pub(super) fn format_of(text: &str) -> Option<Format> {
    if lines::begins_as_lines(text) {
        return None;
    }
    let lines: Vec<&str> = split::lines(text).take(LOOKED_AT).collect();
    let filled = lines.iter().filter(|line| !line.trim().is_empty()).count();
    // What stands behind the place of a match is a line of any file, and may have delimiters.
    if filled <= LEAST_ROWS || lines.iter().filter(|line| lines::is_match(line)).count() * 10 >= filled * 6 {
        return None;
    }
    let bars = lines.iter().filter(|line| is_bar_line(line)).count();
    let ruled = lines.iter().any(|line| is_rule(line) && line.contains(['-', '─', '═']));
    if ruled && bars > LEAST_ROWS && bars * 10 >= filled * 6 {
        // The rules of Markdown are under names: each is of a table of its own.
        let is_under_names =
            |line: &&str| is_rule(line) && line.contains('|') && line.contains('-') && !line.contains('+');
        let tables = split::lines(text).filter(is_under_names).take(2).count();
        return (tables < 2).then_some(Format::Bars);
    }
    let delimited = [b'\t', b',', b';', b'|'].into_iter().find_map(|delimiter| delimited(text, delimiter));
    delimited.map(Format::Delimited).or_else(|| {
        let starts = aligned_starts(&lines);
        let is_better =
            |width: &usize| starts.as_ref().is_none_or(|starts| starts.len() < *width && !are_whole(&lines, starts));
        let words = words_in_row(&lines).filter(is_better);
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
    Bars(Bars),
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
            Format::Bars => split::lines(text).find_map(Bars::of).map(Self::Bars),
            Format::Words(width) => Some(Self::Words(width)),
            Format::Aligned => {
                aligned_starts(&split::lines(text).take(LOOKED_AT).collect::<Vec<_>>()).map(Self::Starts)
            }
        }
    }

    /// The fields of a line; none where it is not a row.
    fn fields<'a>(&self, line: &'a str) -> Option<Vec<&'a str>> {
        match self {
            Self::Bars(bars) => bars.fields(line),
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

/// What is drawn between two cells.
const BARS: [char; 3] = ['|', '│', '┃'];

/// The cells of a table between bars, as its first row has them.
struct Bars {
    /// The number of cells; a row with fewer has empty ones at its end, and the last cell of one with more has the rest.
    width: usize,
    /// Whether a bar begins each row, and whether one ends it: otherwise an empty cell does.
    begins: bool,
    ends: bool,
}

impl Bars {
    /// The layout that `line` has, if it can be the first row.
    fn of(line: &str) -> Option<Self> {
        let line = line.trim();
        if is_rule(line) {
            return None;
        }
        let frame = Self { width: MOST_COLUMNS, begins: line.starts_with(BARS), ends: line.ends_with(BARS) };
        let width = frame.cells(line).len();
        (width > 1).then_some(Self { width, ..frame })
    }

    /// The cells of a row; none for a rule, a title, or a line without bars.
    fn fields<'a>(&self, line: &'a str) -> Option<Vec<&'a str>> {
        let mut cells = Some(self.cells(line)).filter(|cells| cells.len() > 1 && !is_rule(line))?;
        cells.resize(self.width, "");
        Some(cells)
    }

    fn cells<'a>(&self, line: &'a str) -> Vec<&'a str> {
        let mut rest = line.trim();
        if self.begins {
            rest = rest.strip_prefix(BARS).unwrap_or(rest);
        }
        if self.ends {
            rest = rest.strip_suffix(BARS).unwrap_or(rest);
        }
        let (mut cells, mut start) = (Vec::new(), 0);
        for (at, bar) in rest.match_indices(BARS) {
            // A bar behind a backslash is text.
            let is_text = rest.as_bytes().get(..at).is_some_and(|before| before.ends_with(b"\\"));
            if !is_text && cells.len() + 1 < self.width {
                cells.push(rest.get(start..at).unwrap_or_default().trim());
                start = at + bar.len();
            }
        }
        cells.push(rest.get(start..).unwrap_or_default().trim());
        cells
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
        name.contains(char::is_alphabetic)
            && !name.starts_with('(')
            && !name.contains([',', ';', '{', '}', '"', '=', '|'])
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
    let (mut spans, mut from, mut place) = (Vec::with_capacity(width), 0, 0);
    for word in words(line, width)? {
        let before = line.get(from..)?.find(word)?;
        let start = place + line.get(from..from + before)?.chars().count();
        // Counted from the end of the word before: from the beginning of the line, all words take the square of its length.
        place = start + word.chars().count();
        from += before + word.len();
        spans.push((start, place));
    }
    Some(spans)
}

fn is_bar_line(line: &str) -> bool {
    line.contains(BARS) || is_rule(line)
}

/// Whether a line consists of strokes and crossings only.
fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3 && line.chars().all(|c| " -+|:=─━┼┬┴├┤┌┐└┘│╞╡╪═╔╗╚╝║┃╇┡┩┏┓┳┻".contains(c))
}

/// How the table is written that `text` is, if its fields stand between delimiters.
fn delimited(text: &str, delimiter: u8) -> Option<Delimited> {
    // Most texts are not tables, and making a reader takes longer than this.
    let mut first = split::lines(text).find(|line| !line.is_empty()).unwrap_or_default().bytes();
    if !first.any(|byte| byte == delimiter || byte == b'"' || byte == b'\r') {
        return None;
    }
    let format = Delimited::usual(delimiter);
    if let Some(has_header) = looks_delimited(text, format)
        && !is_swallowed(text, format)
    {
        return Some(Delimited { has_header, ..format });
    }
    let plain = Delimited { is_quoted: false, ..format };
    // Quotes mean nothing in most tables with tabs. In others they do, unless one swallows rows.
    let may_be_plain = delimiter == b'\t' || looks_delimited(text, format).is_some();
    let has_header = looks_delimited(text, plain).filter(|_| may_be_plain)?;
    Some(Delimited { has_header, ..plain })
}

/// Whether a quote that nothing closes makes one record of many lines.
fn is_swallowed(text: &str, format: Delimited) -> bool {
    if memchr::memchr(b'"', text.as_bytes()).is_none() {
        return false;
    }
    let mut reader = format.reader(text);
    let mut record = csv::ByteRecord::new();
    let mut begun = reader.position().line();
    while let Ok(true) = reader.read_byte_record(&mut record) {
        let end = reader.position().line();
        if end - begun > MOST_LINES {
            return true;
        }
        begun = end;
    }
    false
}

/// Whether `text` looks like a table that is written like this, and whether its first record then names the columns.
fn looks_delimited(text: &str, format: Delimited) -> Option<bool> {
    let records: Vec<StringRecord> =
        format.reader(text).records().take(LOOKED_AT).collect::<Result<_, csv::Error>>().ok()?;
    let fields = || records.iter().flatten();
    if fields().any(|field| field.len() > 4000) {
        return None;
    }
    let header = records.first()?;
    let width = header.len();
    let header_like = header.iter().all(|field| field.trim().len() <= 60)
        && header.iter().filter(|field| !field.trim().is_empty()).count() * 2 > width;
    let same = records.iter().filter(|record| record.len() == width).count();
    // In prose and code, a line here and there has as many commas as the first; a bar stands between a name and a message.
    let loose = width == 2
        && (format.delimiter == b'|'
            || format.delimiter == b',' && fields().filter(|field| field.contains(' ')).count() > records.len());
    let is_table = (2..=MOST_COLUMNS).contains(&width)
        && records.len() > LEAST_ROWS
        && same * 20 >= records.len() * 19
        && header_like
        && !loose;
    is_table.then(|| has_header(&records))
}

/// Whether the first record names the columns: it has no value like those below it.
fn has_header(records: &[StringRecord]) -> bool {
    let Some((header, rows)) = records.split_first() else { return false };
    let below = |column: usize| rows.iter().filter_map(move |row| row.get(column)).map(str::trim);
    let is_repeated = |(column, name): (usize, &str)| {
        let same = below(column).filter(|cell| *cell == name).count();
        !name.is_empty() && same >= LEAST_ROWS && same * 10 >= rows.len()
    };
    if header.iter().map(str::trim).enumerate().any(is_repeated) {
        return false;
    }
    let is_like = |(column, name): &(usize, &str)| {
        is_most(below(*column).filter(|cell| are_alike(name, cell)).count(), rows.len())
    };
    let values: Vec<&str> = header.iter().map(str::trim).enumerate().filter(is_like).map(|(_, name)| name).collect();
    // Years and numbers in a row can be names.
    let numbers: Vec<i64> = values.iter().filter_map(|value| value.parse().ok()).collect();
    let is_numbered = numbers.len() > 1 && numbers.windows(2).all(|pair| pair[1] == pair[0] + 1);
    values.len() == numbers.len() && (is_numbered || numbers.iter().all(|number| YEARS.contains(number)))
}

/// Whether two cells are dates, or amounts in one unit.
fn are_alike(one: &str, other: &str) -> bool {
    let unit = |cell| {
        let unit = amount::parse(cell)?.unit;
        let letters = unit.trim_end_matches('B').trim_end_matches('i');
        Some(if matches!(letters, "K" | "M" | "G" | "T") { "" } else { unit })
    };
    (is_date(one) && is_date(other)) || (unit(one).is_some() && unit(one) == unit(other))
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
    let is_code = header.contains(['{', '}', ';', '|']) || header.contains(" (") || header.contains("()");
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

/// Whether every row has a value at each start, and none has two: what stands above it is then one name of several words.
fn are_whole(lines: &[&str], starts: &[usize]) -> bool {
    let layout = Layout::Starts(starts.to_vec());
    let is_value = |field: &&str| !field.is_empty() && !field.contains("  ");
    lines.iter().filter_map(|line| layout.fields(line)).all(|fields| fields.iter().all(is_value))
}

/// Calls `row` with the fields of every row, the header first; it is empty where there is none.
fn for_each_row(text: &str, format: Format, mut row: impl FnMut(&[&str])) {
    match format {
        Format::Delimited(delimited) => {
            let mut reader = delimited.reader(text);
            let mut record = StringRecord::new();
            let width = if delimited.has_header { None } else { delimited.reader(text).records().next() };
            if let Some(Ok(first)) = width {
                row(&vec![""; first.len()]);
            }
            // The text is UTF-8 and its rows may differ in width, so no row is an error.
            while let Ok(true) = reader.read_record(&mut record) {
                row(&record.iter().collect::<Vec<_>>());
            }
        }
        Format::Bars | Format::Aligned | Format::Words(_) => {
            let Some(layout) = Layout::of(text, format) else { return };
            for fields in text.lines().filter_map(|line| layout.fields(line)) {
                row(&fields);
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
        shape: shown::count(rows, "row"),
        rows,
        columns: names.iter().cloned().zip(&columns).collect(),
        names: names.clone(),
        samples,
        ..Table::default()
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

/// The rows with rare values among `rows`, whose columns `names` names; those of another width are no rows.
pub(super) fn unusual(names: &[&str], rows: &[Vec<String>], place: u32) -> Pieces {
    let names: Vec<String> = names.iter().enumerate().map(|(number, field)| name(number, field)).collect();
    let mut few: Vec<Few> = names.iter().map(|_| Few::default()).collect();
    for (number, row) in rows.iter().enumerate().filter(|(_, row)| row.len() == names.len()) {
        few.iter_mut().zip(row).for_each(|(few, field)| few.add(number, field.trim()));
    }
    let mut rare = rare_rows(&few, rows.len());
    rare.sort_unstable();
    let fields = |number: usize| rows.get(number).map(|row| row.iter().map(|field| field.trim()).collect::<Vec<_>>());
    let rare = rare.into_iter().filter_map(|number| Some(sample(number, &fields(number)?, &names)));
    rare.map(|row| told(&row, &few, rows.len(), place)).collect()
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
    if field.is_empty() { format!("column {}", number + 1) } else { shown::key(field) }
}

/// The lines that are no rows of a table whose rows are lines: before it, after it, and how many between.
fn around(text: &str, format: Format) -> Pieces {
    let Some(layout) = Layout::of(text, format) else { return Pieces::new() };
    let said = |line: &str| shown::line(line.trim(), 200);
    let mut has_rows = false;
    let (mut before, mut between) = (None, (0, None));
    // Those since the last row: how many, the first with its number, and the last.
    let mut after = (0, None, None);
    for (number, line) in text.lines().enumerate().filter(|(_, line)| is_filled(line)) {
        if layout.fields(line).is_some() {
            has_rows = true;
            between = (between.0 + after.0, between.1.or(after.1));
            after = (0, None, None);
        } else if has_rows {
            after = (after.0 + 1, after.1.or(Some((number, line))), Some(line));
        } else {
            before = before.or(Some(line));
        }
    }
    let mut pieces = Pieces::new();
    pieces.extend(before.map(|line| Piece::line(0, rank::STAT, said(line))));
    if let (count, Some((number, line))) = between {
        let text = match count {
            1 => format!("line {number} is no row: {}", said(line)),
            _ => format!("{} are no rows, first (line {number}): {}", shown::count(count, "line"), said(line)),
        };
        pieces.push(Piece::line(rank::AFTER_PLACE, rank::STAT, text));
    }
    pieces.extend(after.2.map(|line| Piece::line(rank::AFTER_PLACE + 1, rank::STAT, said(line))));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_their_places_in_characters() {
        assert_eq!(spans("  é  aé   b c ", 3), Some(vec![(2, 3), (5, 7), (10, 13)]));
        assert_eq!(spans("a b", 3), None);
        // With a look back to the beginning of the line for each word, this takes minutes.
        let (width, word) = (1_000_000, "é2345 ");
        let found = spans(&word.repeat(width), width).unwrap();
        assert_eq!((found.len(), found.last()), (width, Some(&(6 * width - 6, 6 * width - 1))));
    }
}
