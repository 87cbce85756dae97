//! Pages while they are being written: Markdown blocks, and the pictures that they show.
//!
//! A chapter writes into one [`Document`], which is one page until the chapter begins another. Levels of headings are
//! counted here: the first heading of a page is its title, and what follows is below it.

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

/// One page of a document.
#[derive(Debug, Clone, Default)]
pub struct Leaf {
    /// What stands in its file name behind the name of the document; empty for the first page.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The headings right below the title, in their order.
    pub sections: Vec<String>,
    /// The Markdown, which begins with the title.
    pub text: String,
    /// The pictures that it shows, in their order.
    pub figures: Vec<Figure>,
    /// Whether the last heading of a section stands two levels below the title.
    is_deep: bool,
}

/// What a chapter writes: one page or several.
#[derive(Debug)]
pub struct Document {
    leaves: Vec<Leaf>,
}

impl Default for Document {
    fn default() -> Self {
        Self { leaves: vec![Leaf::default()] }
    }
}

impl Document {
    /// Begins another page; what stands in its file name behind the name of the chapter is `name`.
    pub fn page(&mut self, name: &str) {
        self.leaves.push(Leaf { name: name.to_owned(), ..Leaf::default() });
    }

    /// The pages on which something stands.
    #[must_use]
    pub fn into_leaves(self) -> Vec<Leaf> {
        self.leaves.into_iter().filter(|leaf| !leaf.text.is_empty()).collect()
    }

    /// What was written so far, on all pages.
    #[must_use]
    pub fn text(&self) -> String {
        self.leaves.iter().map(|leaf| leaf.text.as_str()).collect()
    }

    /// The text of all pages and the pictures they show, in their order.
    #[must_use]
    pub fn into_parts(self) -> (String, Vec<Figure>) {
        (self.text(), self.leaves.into_iter().flat_map(|leaf| leaf.figures).collect())
    }

    fn leaf(&mut self) -> &mut Leaf {
        if self.leaves.is_empty() {
            self.leaves.push(Leaf::default());
        }
        let last = self.leaves.len() - 1;
        &mut self.leaves[last]
    }

    /// The title of a page, or behind it the heading of a section.
    pub fn heading(&mut self, text: &str) {
        let leaf = self.leaf();
        let level = if leaf.title.is_empty() {
            text.clone_into(&mut leaf.title);
            "#"
        } else {
            leaf.sections.push(text.to_owned());
            leaf.is_deep = true;
            "##"
        };
        self.block(&format!("{level} {text}"));
    }

    /// The heading of a section, or of a part of the section that [`Self::heading`] began.
    pub fn subheading(&mut self, text: &str) {
        let leaf = self.leaf();
        let level = if leaf.is_deep { "###" } else { "##" };
        if !leaf.is_deep {
            leaf.sections.push(text.to_owned());
        }
        self.block(&format!("{level} {text}"));
    }

    /// A block of Markdown, set apart by an empty line.
    pub fn block(&mut self, text: &str) {
        let written = &mut self.leaf().text;
        if !written.is_empty() {
            written.push('\n');
        }
        written.push_str(text.trim_end());
        written.push('\n');
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
            self.leaf().figures.push(figure);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_heading_of_a_page_is_its_title_and_levels_follow() {
        let mut document = Document::default();
        document.heading("One");
        document.subheading("a");
        document.page("more");
        document.heading("Two");
        document.heading("b");
        document.subheading("c");
        document.page("empty");
        let leaves = document.into_leaves();
        let shown: Vec<(&str, &str, &[String])> =
            leaves.iter().map(|leaf| (leaf.name.as_str(), leaf.text.as_str(), leaf.sections.as_slice())).collect();
        let (first, second) = (["a".to_owned()], ["b".to_owned()]);
        assert_eq!(
            shown,
            [("", "# One\n\n## a\n", first.as_slice()), ("more", "# Two\n\n## b\n\n### c\n", second.as_slice())]
        );
    }
}
