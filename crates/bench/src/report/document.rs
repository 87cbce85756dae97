//! A page while it is being written: Markdown blocks, and the pictures that they show.

use super::plot::{Line, LineChart, Scale};
use super::table::Table;

/// A picture with its file name.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The file name within the scorecard folder.
    pub path: String,
    /// What it shows, for readers who do not see it.
    pub alt: String,
    /// The picture as SVG.
    pub svg: String,
}

impl Figure {
    /// The Markdown that shows the picture from a page which lies `folder` above it (empty or ending in `/`).
    #[must_use]
    pub fn link(&self, folder: &str) -> String {
        format!("![{}]({folder}{})", self.alt, self.path)
    }
}

/// The page while it is being written.
#[derive(Debug, Default)]
pub struct Document {
    text: String,
    figures: Vec<Figure>,
}

impl Document {
    /// What was written so far.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text and the pictures it shows, in their order.
    #[must_use]
    pub fn into_parts(self) -> (String, Vec<Figure>) {
        (self.text, self.figures)
    }

    /// The heading of a chapter.
    pub fn heading(&mut self, text: &str) {
        self.block(&format!("## {text}"));
    }

    /// The heading of a section.
    pub fn subheading(&mut self, text: &str) {
        self.block(&format!("### {text}"));
    }

    /// A block of Markdown, set apart by an empty line.
    pub fn block(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// Lines that are shown as they are.
    pub fn verbatim(&mut self, text: &str) {
        let lines: Vec<String> = text.lines().map(|line| format!("    {line}").trim_end().to_owned()).collect();
        self.block(&lines.join("\n"));
    }

    /// How to read the table, and the table; a sentence instead when there is nothing in it.
    pub fn table(&mut self, reading: &str, table: &Table) {
        if table.is_empty() {
            self.block("Nothing is recorded for this section.");
        } else {
            self.block(reading);
            self.block(&table.markdown());
        }
    }

    /// A picture, where there is one.
    pub fn figure(&mut self, figure: Option<Figure>) {
        if let Some(figure) = figure {
            self.block(&figure.link(""));
            self.figures.push(figure);
        }
    }
}

/// Lines against the number of tools.
#[must_use]
pub fn line_figure(path: String, title: String, y_title: &str, y_scale: Scale, lines: Vec<Line>) -> Option<Figure> {
    let x_title = "tools in the catalog (logarithmic)".to_owned();
    let chart = LineChart { title: title.clone(), x_title, y_title: y_title.to_owned(), y_scale, lines };
    chart.svg().map(|svg| Figure { path, alt: title, svg })
}
