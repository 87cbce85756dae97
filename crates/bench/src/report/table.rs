//! A table of text cells, written as Markdown or as plain text for a terminal.
//!
//! The first column holds names and is aligned to the left, the others to the right unless said otherwise.

use super::markup::escaped_xml;

/// Characters of the rule below a title in Markdown, at least.
const LEAST_WIDTH: usize = 3;

/// A header and rows of equal length.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

#[derive(Debug, Clone)]
struct Column {
    title: String,
    align: Align,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

impl Table {
    /// An empty table with these column titles; the first column is left-aligned, the others are right-aligned.
    pub fn new<T: Into<String>>(titles: impl IntoIterator<Item = T>) -> Self {
        let columns = titles
            .into_iter()
            .enumerate()
            .map(|(at, title)| Column { title: title.into(), align: if at == 0 { Align::Left } else { Align::Right } })
            .collect();
        Self { columns, rows: Vec::new() }
    }

    /// The same table with the columns of these titles aligned to the left: for words.
    pub fn words(mut self, titles: &[&str]) -> Self {
        for column in self.columns.iter_mut().filter(|column| titles.contains(&column.title.as_str())) {
            column.align = Align::Left;
        }
        self
    }

    /// The same table with the first column aligned to the right: for numbers.
    pub fn numbered(mut self) -> Self {
        if let Some(column) = self.columns.first_mut() {
            column.align = Align::Right;
        }
        self
    }

    /// Adds a row; missing cells stay empty and cells beyond the header are left out.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// Whether no row was added.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A Markdown table, padded so that its source is readable too. Ends with a line feed.
    pub fn markdown(&self) -> String {
        let (titles, rows) = self.escaped();
        let widths = self.widths(&titles, &rows, LEAST_WIDTH);
        self.markdown_of(&titles, &rows, &widths)
    }

    /// As [`Self::markdown`], without padding: one long cell, of text from outside, makes no other row longer.
    pub fn unpadded_markdown(&self) -> String {
        let (titles, rows) = self.escaped();
        self.markdown_of(&titles, &rows, &vec![0; self.columns.len()])
    }

    fn escaped(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let titles = self.columns.iter().map(|column| escaped(&column.title)).collect();
        (titles, self.rows.iter().map(|row| row.iter().map(|cell| escaped(cell)).collect()).collect())
    }

    fn markdown_of(&self, titles: &[String], rows: &[Vec<String>], widths: &[usize]) -> String {
        let mut text = markdown_line(&self.padded(titles, widths));
        let rule = self.columns.iter().zip(widths).map(|(column, width)| column.align.rule((*width).max(LEAST_WIDTH)));
        text.push_str(&markdown_line(&rule.collect::<Vec<_>>()));
        for row in rows {
            text.push_str(&markdown_line(&self.padded(row, widths)));
        }
        text
    }

    /// Comma-separated values (RFC 4180) with the titles in the first line and LF at the end of each.
    pub fn csv(&self) -> String {
        let quoted = |cell: &str| match cell.contains(['"', ',', '\n', '\r']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.to_owned(),
        };
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.clone()).collect();
        let lines = std::iter::once(&titles).chain(&self.rows);
        lines.map(|row| row.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\n").collect()
    }

    /// An HTML table with its title, in a part of the page that scrolls by itself.
    pub fn html(&self, caption: &str) -> String {
        let class = |column: &Column| if column.align == Align::Right { " class=\"n\"" } else { "" };
        let mut text = format!(
            "<div class=\"scroll\" role=\"region\" aria-label=\"{caption}\" tabindex=\"0\">\n<table class=\"plain\">\n\
             <caption>{caption}</caption>\n<thead><tr>",
            caption = escaped_xml(caption)
        );
        for column in &self.columns {
            text.push_str(&format!("<th scope=\"col\"{}>{}</th>", class(column), escaped_xml(&column.title)));
        }
        text.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            let cells = self.columns.iter().zip(row).enumerate().map(|(at, (column, cell))| match at {
                0 => format!("<th scope=\"row\"{}>{}</th>", class(column), escaped_xml(cell)),
                _ => format!("<td{}>{}</td>", class(column), escaped_xml(cell)),
            });
            text.push_str(&format!("<tr>{}</tr>\n", cells.collect::<String>()));
        }
        text.push_str("</tbody>\n</table>\n</div>\n");
        text
    }

    /// Columns separated by two spaces, without rules; every line ends with a line feed and has no trailing space.
    pub fn plain(&self) -> String {
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.clone()).collect();
        let widths = self.widths(&titles, &self.rows, 0);
        let mut text = String::new();
        for row in std::iter::once(&titles).chain(&self.rows) {
            text.push_str(self.padded(row, &widths).join("  ").trim_end());
            text.push('\n');
        }
        text
    }

    fn widths(&self, titles: &[String], rows: &[Vec<String>], least: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = titles.iter().map(|title| title.chars().count().max(least)).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }

    fn padded(&self, cells: &[String], widths: &[usize]) -> Vec<String> {
        self.columns
            .iter()
            .zip(cells)
            .zip(widths)
            .map(|((column, cell), width)| match column.align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            })
            .collect()
    }
}

impl Align {
    fn rule(self, width: usize) -> String {
        match self {
            Self::Left => "-".repeat(width),
            Self::Right => format!("{}:", "-".repeat(width.saturating_sub(1))),
        }
    }
}

fn markdown_line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// `text` so that Markdown shows it as it is inside a table cell; line breaks become spaces.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '|' | '*' | '`' => out.extend(['\\', character]),
            '<' => out.push_str("&lt;"),
            '\n' | '\r' => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

/// Those of `tables` that have rows, as plain text one below the other.
#[must_use]
pub fn plain(tables: &[Table]) -> String {
    tables.iter().filter(|table| !table.is_empty()).map(Table::plain).collect::<Vec<_>>().join("\n")
}

/// What failed and why: a row each, the first column headed `what`.
pub fn failures<'f>(what: &str, failed: impl Iterator<Item = (&'f str, &'f str)>) -> Table {
    let mut table = Table::new([what, "message"]).words(&["message"]);
    failed.for_each(|(name, message)| table.row([name, message]));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(["case", "tools", "verdict"]).words(&["verdict"]);
        table.row(["a|b", "1,000", "better"]);
        table.row(["été\n<x>", "–"]);
        table
    }

    #[test]
    fn markdown_is_aligned_and_escaped() {
        insta::assert_snapshot!(sample().markdown(), @r"
        | case       | tools | verdict |
        | ---------- | ----: | ------- |
        | a\|b       | 1,000 | better  |
        | été &lt;x> |     – |         |
        ");
    }

    #[test]
    fn values_with_commas_quotes_and_line_breaks_are_quoted() {
        let mut table = Table::new(["engine", "a,b"]);
        table.row(["say \"hi\"", "1"]);
        table.row(["two\nlines", "0.5"]);
        assert_eq!(table.csv(), "engine,\"a,b\"\n\"say \"\"hi\"\"\",1\n\"two\nlines\",0.5\n");
    }

    #[test]
    fn html_is_escaped_and_has_its_heads() {
        let html = sample().html("t<i>");
        assert!(
            html.contains("<caption>t&lt;i&gt;</caption>") && html.contains("<th scope=\"row\">été&#10;&lt;x&gt;</th>")
        );
        assert!(html.contains("<td class=\"n\">1,000</td>") && html.contains("<td>better</td>"), "{html}");
    }

    #[test]
    fn plain_text_is_aligned_without_trailing_space() {
        let mut table = Table::new(["case", "tools", "verdict"]).words(&["verdict"]);
        table.row(["a|b", "1,000", "better"]);
        table.row(["x", "–"]);
        assert_eq!(table.plain(), "case  tools  verdict\na|b   1,000  better\nx         –\n");
    }
}
