//! Tables in text form: CSV, TSV, tables of Markdown and of database shells, aligned columns.

use csv::{ByteRecord, StringRecord};

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

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Fields between delimiters, quoted as in RFC 4180.
    Delimited(u8),
    /// Cells between bars, as in Markdown.
    Bars,
    /// Columns of equal width, with at least two blanks between them.
    Aligned,
}

/// The delimiter of the delimited table that `text` is, if it is one.
pub(crate) fn delimiter_of(text: &str) -> Option<u8> {
    match format_of(text)? {
        Format::Delimited(delimiter) => Some(delimiter),
        Format::Bars | Format::Aligned => None,
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
    delimited.map(Format::Delimited).or_else(|| aligned_starts(&lines).map(|_| Format::Aligned))
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
    if starts.len() < 2 || filled.len() <= LEAST_ROWS || header.contains(['{', '}', ';', '(']) {
        return None;
    }
    let fits = |line: &&&str| {
        let bytes = line.as_bytes();
        starts.iter().skip(1).all(|&start| {
            let blank = bytes.get(start - 1).is_none_or(|byte| *byte == b' ');
            blank && line.is_char_boundary(start.min(line.len()))
        }) && starts.iter().skip(1).any(|&start| bytes.get(start).is_some_and(|byte| *byte != b' '))
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
        Format::Bars => {
            let mut width = 0;
            for line in text.lines().filter(|line| is_bar_line(line) && !is_rule(line)) {
                let inner = line.trim().trim_start_matches(['|', '│', '┃']).trim_end_matches(['|', '│', '┃']);
                let fields: Vec<&str> = inner.split(['|', '│', '┃']).map(str::trim).collect();
                width = if width == 0 { fields.len() } else { width };
                if fields.len() == width {
                    row(&fields);
                }
            }
        }
        Format::Aligned => {
            let head: Vec<&str> = text.lines().take(LOOKED_AT).collect();
            let Some(starts) = aligned_starts(&head) else { return };
            for line in text.lines().filter(|line| !line.trim().is_empty() && !is_rule(line)) {
                let ends = starts.iter().skip(1).copied().chain([usize::MAX]);
                let fields: Vec<&str> = starts
                    .iter()
                    .zip(ends)
                    .map(|(&start, end)| {
                        line.get(start.min(line.len())..end.min(line.len())).unwrap_or_default().trim()
                    })
                    .collect();
                row(&fields);
            }
        }
    }
}

/// The number of rows below the header.
fn row_count(text: &str, format: Format) -> usize {
    let mut rows = 0_usize;
    match format {
        Format::Delimited(delimiter) => {
            let (mut reader, mut record) = (reader(text, delimiter), ByteRecord::new());
            while let Ok(true) = reader.read_byte_record(&mut record) {
                rows += 1;
            }
        }
        Format::Bars | Format::Aligned => for_each_row(text, format, |_| rows += 1),
    }
    rows.saturating_sub(1)
}

/// Describes a table in text form.
pub(super) fn pieces(text: &str, format: Format) -> Pieces {
    let rows = row_count(text, format);
    let wanted = sample_rows(rows);
    let mut names: Vec<String> = Vec::new();
    let mut columns: Vec<Column> = Vec::new();
    let mut samples: Vec<Sample> = Vec::new();
    let mut number = 0_usize;
    for_each_row(text, format, |fields| {
        if columns.is_empty() {
            names = fields.iter().enumerate().map(|(number, field)| name(number, field)).collect();
            columns = names.iter().map(|_| Column::default()).collect();
            return;
        }
        for (column, field) in columns.iter_mut().zip(fields) {
            column.add_field(field);
        }
        if wanted.contains(&number) {
            let entry =
                |(name, field): (&String, &&str)| format!("{name}={}", shown::text_cell(&shown::line(field, CELL)));
            let entries = names.iter().zip(fields).map(entry).collect();
            let values = fields.iter().map(|field| shown::line(field, SHORT_CELL)).collect();
            samples.push(Sample { number, entries, values, verbatim: None });
        }
        number += 1;
    });
    samples.sort_by_key(|sample| wanted.iter().position(|one| *one == sample.number));
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
    if format == Format::Bars || format == Format::Aligned {
        pieces.extend(around(text, format));
    }
    pieces
}

fn name(number: usize, field: &str) -> String {
    let field = field.trim().trim_start_matches('\u{feff}');
    if field.is_empty() { format!("column {}", number + 1) } else { shown::line(field, CELL) }
}

/// The lines before and after the table.
fn around(text: &str, format: Format) -> Pieces {
    if format != Format::Bars {
        return Vec::new();
    }
    let other: Vec<&str> = text.lines().filter(|line| !is_bar_line(line) && !line.trim().is_empty()).collect();
    let line = |place, line: &&str| Piece::line(place, rank::STAT, shown::line(line.trim(), 200));
    let mut pieces: Pieces = other.first().map(|text| line(0, text)).into_iter().collect();
    if other.len() > 1 {
        pieces.extend(other.last().map(|text| line(rank::AFTER_PLACE, text)));
    }
    pieces
}
