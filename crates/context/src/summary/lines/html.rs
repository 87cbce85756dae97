//! Pages: title, headings, links, tables and the first paragraphs. XML, which has none of these, shows its elements.
//!
//! The text is only split into tokens; no tree is built, so an element that is never closed costs nothing. Scripts and
//! styles are skipped.

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use rustc_hash::FxHashMap;

use crate::brief::Piece;

use super::excerpt::{Tally, cut, samples};
use super::markdown::{Heading, headings_piece, links};
use super::rank;
use crate::summary::grid;
use contextweaver_core::text::counted;

/// The number of bytes of paragraphs kept.
const TEXT_KEPT: usize = 2000;
/// The number of headings, links and tables kept.
const KEPT: usize = 3000;
/// The number of bytes of one heading, one cell or one link text.
const LABEL_KEPT: usize = 200;

/// What the next text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    Title,
    Heading(usize),
}

/// The cells of a table.
#[derive(Debug, Default)]
struct Rows {
    /// Whether the first row names the columns.
    is_headed: bool,
    cells: Vec<Vec<String>>,
}

impl Rows {
    /// The cell that is being read.
    fn cell(&mut self) -> Option<&mut String> {
        self.cells.last_mut()?.last_mut()
    }

    /// The rows that have values which few others have.
    fn unusual(&self) -> Vec<Piece> {
        let Some((first, below)) = self.cells.split_first() else { return Vec::new() };
        let names: Vec<&str> = first.iter().map(|name| if self.is_headed { name.trim() } else { "" }).collect();
        grid::unusual(&names, if self.is_headed { below } else { &self.cells }, rank::LEAF_PLACE + 1)
    }
}

#[derive(Debug)]
struct Page {
    tag: String,
    attribute: Vec<u8>,
    inside: Inside,
    /// The element, if any, whose text is not part of the page.
    hidden: Option<String>,
    title: String,
    description: String,
    in_description: bool,
    content: String,
    headings: Vec<(usize, String)>,
    heading_count: usize,
    label: String,
    href: Option<String>,
    anchor: String,
    links: Vec<(String, String)>,
    link_count: usize,
    tables: Vec<String>,
    table_count: usize,
    row_count: usize,
    /// The table that is being read, and the one with the most rows.
    rows: Rows,
    largest: Rows,
    /// Whether cells of the first row of a table are being read.
    first_row: bool,
    cell: bool,
    paragraph: bool,
    in_content: bool,
    paragraphs: usize,
    images: usize,
    items: usize,
    forms: usize,
    words: usize,
    text: String,
    /// All that a reader of the page sees, except navigation.
    body: String,
    /// The number of navigations that are open.
    navigations: usize,
    elements: FxHashMap<String, usize>,
    element_count: usize,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            tag: String::new(),
            attribute: Vec::new(),
            inside: Inside::Nothing,
            hidden: None,
            title: String::new(),
            description: String::new(),
            in_description: false,
            content: String::new(),
            headings: Vec::new(),
            heading_count: 0,
            label: String::new(),
            href: None,
            anchor: String::new(),
            links: Vec::new(),
            link_count: 0,
            tables: Vec::new(),
            table_count: 0,
            row_count: 0,
            rows: Rows::default(),
            largest: Rows::default(),
            first_row: false,
            cell: false,
            paragraph: false,
            in_content: false,
            paragraphs: 0,
            images: 0,
            items: 0,
            forms: 0,
            words: 0,
            text: String::new(),
            body: String::new(),
            navigations: 0,
            elements: FxHashMap::default(),
            element_count: 0,
        }
    }
}

/// The level of a heading tag, `h1` to `h6`.
fn heading_level(tag: &[u8]) -> Option<usize> {
    match tag {
        [b'h', digit @ b'1'..=b'6'] => Some(usize::from(digit - b'0')),
        _ => None,
    }
}

/// Appends the words of `text` to `to`, separated by one blank, up to `most` bytes. Text of two elements is one word
/// unless a blank separates it.
fn add_words(to: &mut String, text: &str, most: usize) {
    let mut apart = text.starts_with(char::is_whitespace);
    for word in text.split_whitespace() {
        if to.len() + word.len() > most {
            return;
        }
        if apart {
            add_blank(to);
        }
        to.push_str(word);
        apart = true;
    }
    if text.ends_with(char::is_whitespace) {
        add_blank(to);
    }
}

fn add_blank(to: &mut String) {
    if !to.is_empty() && !to.ends_with(' ') {
        to.push(' ');
    }
}

impl Page {
    fn read(text: &str) -> Self {
        let mut page = Self::default();
        let callback = |event: CallbackEvent<'_>, _: Span<()>| -> Option<()> {
            page.event(&event);
            None
        };
        let mut emitter = CallbackEmitter::new(callback);
        emitter.naively_switch_states(true);
        for token in Tokenizer::new_with_emitter(text, emitter) {
            let Ok(()) = token;
        }
        page
    }

    /// Whether it has anything that pages have, and XML does not.
    fn is_page(&self) -> bool {
        self.heading_count + self.link_count + self.paragraphs + self.table_count > 0 || !self.title.is_empty()
    }

    fn event(&mut self, event: &CallbackEvent<'_>) {
        match event {
            CallbackEvent::OpenStartTag { name } => self.open(name),
            CallbackEvent::AttributeName { name } => {
                self.attribute.clear();
                self.attribute.extend_from_slice(name);
            }
            CallbackEvent::AttributeValue { value } => self.value(value),
            CallbackEvent::CloseStartTag { self_closing } => self.opened(*self_closing),
            CallbackEvent::EndTag { name } => self.close(name),
            CallbackEvent::String { value } => self.string(&String::from_utf8_lossy(value)),
            _ => {}
        }
    }

    fn open(&mut self, name: &[u8]) {
        self.tag.clear();
        self.tag.push_str(&String::from_utf8_lossy(name));
        self.attribute.clear();
        self.content.clear();
        self.in_description = false;
        self.element_count += 1;
        if let Some(count) = self.elements.get_mut(&self.tag) {
            *count += 1;
        } else if self.elements.len() < 500 {
            self.elements.insert(self.tag.clone(), 1);
        }
    }

    fn value(&mut self, value: &[u8]) {
        match (self.tag.as_str(), self.attribute.as_slice()) {
            ("a", b"href") => self.href = Some(String::from_utf8_lossy(value).into_owned()),
            ("meta", b"name" | b"property") => {
                self.in_description = matches!(value, b"description" | b"og:description");
            }
            ("meta", b"content") => add_words(&mut self.content, &String::from_utf8_lossy(value), 400),
            _ => {}
        }
    }

    /// Takes a start tag after all its attributes.
    fn opened(&mut self, self_closing: bool) {
        self.lay_out();
        match self.tag.as_str() {
            "meta" if self.in_description && self.description.is_empty() => {
                self.description = std::mem::take(&mut self.content);
            }
            "script" | "style" | "template" | "svg" if !self_closing && self.hidden.is_none() => {
                self.hidden = Some(self.tag.clone());
            }
            "title" if self.title.is_empty() && self.hidden.is_none() => self.inside = Inside::Title,
            "a" => self.anchor.clear(),
            // Text before the main content is navigation.
            "main" | "article" if !self.in_content => {
                self.in_content = true;
                self.text.clear();
            }
            "p" => {
                self.paragraphs += 1;
                self.paragraph = true;
                self.break_words();
            }
            "br" | "div" => self.break_words(),
            "table" => {
                self.table_count += 1;
                self.end_table();
                self.first_row = self.tables.len() < 50;
                if self.first_row {
                    self.tables.push(String::new());
                }
            }
            "tr" => {
                self.row_count += 1;
                self.rows.cells.push(Vec::new());
                self.first_row &= self.tables.last().is_some_and(String::is_empty);
            }
            "td" | "th" => {
                self.rows.is_headed |= self.tag == "th" && self.rows.cells.len() == 1;
                if let Some(row) = self.rows.cells.last_mut() {
                    row.push(String::new());
                }
                self.cell = self.first_row;
                if let Some(table) = self.tables.last_mut().filter(|table| self.first_row && !table.is_empty()) {
                    table.truncate(table.trim_end().len());
                    table.push_str(" | ");
                }
            }
            "img" => self.images += 1,
            "li" => self.items += 1,
            "form" => self.forms += 1,
            tag => {
                if let Some(level) = heading_level(tag.as_bytes()) {
                    self.label.clear();
                    self.inside = Inside::Heading(level);
                }
            }
        }
    }

    /// Ends the table that is being read.
    fn end_table(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        if rows.cells.len() > self.largest.cells.len() {
            self.largest = rows;
        }
    }

    /// Begins a new line of the body, an entry or a cell where the tag does.
    fn lay_out(&mut self) {
        if self.hidden.is_some() {
            return;
        }
        let mark = match self.tag.as_bytes() {
            b"nav" => {
                self.navigations += 1;
                return;
            }
            b"td" | b"th" if !self.body.ends_with('\n') && !self.body.is_empty() => return self.body.push_str(" | "),
            b"li" => "- ".to_owned(),
            b"p" | b"br" | b"div" | b"section" | b"ul" | b"ol" | b"dt" | b"dd" | b"tr" | b"table" | b"pre"
            | b"footer" | b"blockquote" => String::new(),
            tag => match heading_level(tag) {
                Some(level) => "#".repeat(level) + " ",
                None => return,
            },
        };
        self.end_line();
        self.body.push_str(&mark);
    }

    /// Ends a line of the body that says something; marks before nothing are taken away.
    fn end_line(&mut self) {
        let start = self.body.rfind('\n').map_or(0, |at| at + 1);
        let line = self.body.get(start..).unwrap_or_default();
        if line.chars().any(char::is_alphanumeric) {
            self.body.push('\n');
        } else {
            self.body.truncate(start);
        }
    }

    /// Makes the next text begin a new word.
    fn break_words(&mut self) {
        add_blank(&mut self.text);
        add_blank(&mut self.label);
        if self.cell
            && let Some(table) = self.tables.last_mut()
        {
            add_blank(table);
        }
    }

    fn close(&mut self, name: &[u8]) {
        if self.hidden.as_deref().is_some_and(|hidden| hidden.as_bytes() == name) {
            self.hidden = None;
            return;
        }
        if heading_level(name).is_some() || matches!(name, b"p" | b"li" | b"tr" | b"table") {
            self.end_line();
        }
        match name {
            b"nav" => self.navigations = self.navigations.saturating_sub(1),
            b"title" if self.inside == Inside::Title => self.inside = Inside::Nothing,
            b"a" => {
                if let Some(href) = self.href.take() {
                    self.link_count += 1;
                    if self.navigations == 0 && self.links.len() < KEPT {
                        self.links.push((self.anchor.clone(), href));
                    }
                }
            }
            b"p" => self.paragraph = false,
            b"td" | b"th" => self.cell = false,
            b"table" => self.end_table(),
            _ => {
                if heading_level(name).is_some()
                    && let Inside::Heading(level) = self.inside
                {
                    let title = self.label.trim_end_matches(['§', '¶', '#', ' ']).trim_start_matches(['§', '¶', ' ']);
                    if !title.is_empty() {
                        self.heading_count += 1;
                        if self.headings.len() < KEPT {
                            self.headings.push((level, title.to_owned()));
                        }
                    }
                    self.inside = Inside::Nothing;
                }
            }
        }
    }

    fn string(&mut self, text: &str) {
        if self.hidden.is_some() {
            return;
        }
        match self.inside {
            Inside::Title => return add_words(&mut self.title, text, 300),
            Inside::Heading(_) => add_words(&mut self.label, text, LABEL_KEPT),
            Inside::Nothing => {}
        }
        self.words += text.split_ascii_whitespace().count();
        if self.navigations == 0 {
            add_words(&mut self.body, text, usize::MAX);
        }
        if self.href.is_some() {
            add_words(&mut self.anchor, text, LABEL_KEPT);
        }
        if self.cell
            && let Some(table) = self.tables.last_mut()
        {
            add_words(table, text, LABEL_KEPT);
        }
        if let Some(cell) = self.rows.cell() {
            add_words(cell, text, LABEL_KEPT);
        }
        if self.paragraph {
            add_words(&mut self.text, text, TEXT_KEPT);
        }
    }
}

/// What a reader of the page sees, line by line; none for other markup.
pub(super) fn shorter(text: &str) -> Vec<String> {
    let page = Page::read(text);
    if page.body.trim().is_empty() || !page.is_page() {
        return Vec::new();
    }
    let is_said = page.title.is_empty() || page.headings.iter().any(|(_, heading)| *heading == page.title);
    let shown = if is_said { page.body } else { format!("title: {}\n{}", page.title, page.body) };
    if shown.len() < text.len() { vec![shown] } else { Vec::new() }
}

/// Describes a page.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let page = Page::read(text);
    let tally = Tally::of(text);
    let is_page = page.is_page();
    let mut pieces = vec![shape(&page, &tally, is_page)];
    pieces.extend(tally.ends());
    for (label, value, rank) in [("title", &page.title, rank::ENDS - 1), ("description", &page.description, rank::LEAF)]
    {
        if !value.is_empty() {
            pieces.push(Piece::line(rank::SHAPE_PLACE + 1, rank, format!("{label}: {}", cut(value, 200))));
        }
    }
    if is_page {
        pieces.push(counts(&page));
    } else {
        pieces.push(elements(&page));
    }
    let headings = page.headings.iter().map(|(level, title)| Heading { level: *level, title, line: None });
    let headings: Vec<Heading> = headings.collect();
    pieces.extend(headings_piece(&headings, "headings:\n"));
    if page.text.len() > 40 {
        let wording = |length| format!("text: {}", cut(&page.text, length));
        pieces.push(
            Piece::line(rank::LEAF_PLACE, rank::LEAF + 1, wording(120))
                .or(rank::LONGER, wording(300))
                .or(rank::LONGEST, wording(700)),
        );
    }
    let tables: Vec<String> =
        page.tables.iter().filter(|table| !table.is_empty()).map(|table| cut(table, LABEL_KEPT)).collect();
    if !tables.is_empty() {
        let least = (rank::MORE_STAT, 1);
        pieces.push(Piece::list(
            rank::LEAF_PLACE,
            "first rows of tables:\n",
            tables,
            "\n",
            least,
            rank::SECOND_OUTLINE,
        ));
    }
    pieces.extend(page.largest.unusual());
    let addresses =
        page.links
            .iter()
            .filter(|(_, href)| !href.is_empty() && !href.starts_with('#') && !href.starts_with("javascript:"))
            .map(|(anchor, href)| {
                if anchor.is_empty() || anchor == href {
                    href.clone()
                } else {
                    format!("{} -> {href}", cut(anchor, 60))
                }
            })
            .collect();
    pieces.extend(links(addresses));
    pieces.extend(samples(text, &tally));
    pieces
}

fn shape(page: &Page, tally: &Tally, is_page: bool) -> Piece {
    let lines = counted(tally.lines, "line");
    let text = if is_page {
        format!("HTML: {lines}, {}, {}", counted(page.heading_count, "heading"), counted(page.link_count, "link"))
    } else {
        format!("markup: {lines}, {}", counted(page.element_count, "element"))
    };
    Piece::line(rank::SHAPE_PLACE, rank::SHAPE, text)
}

fn counts(page: &Page) -> Piece {
    let mut said = vec![counted(page.words, "word")];
    for (count, noun) in [
        (page.paragraphs, "paragraph"),
        (page.table_count, "table"),
        (page.row_count, "table row"),
        (page.items, "list item"),
        (page.images, "image"),
        (page.forms, "form"),
    ] {
        if count > 0 {
            said.push(counted(count, noun));
        }
    }
    Piece::line(rank::STAT_PLACE, rank::STAT, said.join(", "))
}

/// The elements by their count.
fn elements(page: &Page) -> Piece {
    let mut counts: Vec<(&str, usize)> = page.elements.iter().map(|(name, &count)| (name.as_str(), count)).collect();
    counts.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let entries = counts.iter().map(|(name, count)| format!("{name} ×{count}")).collect();
    Piece::list(rank::OUTLINE_PLACE, "elements: ", entries, ", ", (rank::STAT, 4), rank::WHOLE_OUTLINE)
}

#[cfg(test)]
mod tests {
    use super::super::told;

    #[test]
    fn a_page() {
        let text = "<!DOCTYPE html>\n<html><head><title>Guide &amp; more</title>\n<meta name=\"description\" content=\"How to use it\">\n<script>var x = '<h1>no</h1>';</script></head>\n<body><nav><p>Skip me please</p></nav><main>\n<h1>Guide</h1><p>It begins with a paragraph of some length, then goes on.</p>\n<h2>Use <code>it</code></h2><a href=\"https://example.org/a\">an example</a>\n<table><tr><th>Name</th><th>Size</th></tr><tr><td>a</td><td>1</td></tr></table>\n</main></body>\n</html>\n";
        insta::assert_snapshot!(told(text, 300), @r#"
        [Html]
        HTML: 10 lines, 2 headings, 1 link
        title: Guide & more
        description: How to use it
        first line: <!DOCTYPE html>
        23 words, 2 paragraphs, 1 table, 2 table rows
        text: It begins with a paragraph of some length, then goes on.
        first rows of tables:
        Name | Size
        headings:
        # Guide
        ## Use it
        links:
        an example -> https://example.org/a
        some lines:
        0: <!DOCTYPE html>
        1: <html><head><title>Guide &amp; more</title>
        2: <meta name="description" content="How to use it">
        3: <script>var x = '<h1>no</h1>';</script></head>
        4: <body><nav><p>Skip me please</p></nav><main>
        5: <h1>Guide</h1><p>It begins with a paragraph of some length, then goes on.</p>
        6: <h2>Use <code>it</code></h2><a href="https://example.org/a">an example</a>
        7: <table><tr><th>Name</th><th>Size</th></tr><tr><td>a</td><td>1</td></tr></table>
        8: </main></body>
        9: </html>
        last line: </html>
        "#);
    }

    #[test]
    fn what_a_reader_of_a_page_sees() {
        let text = "<html><head><title>Status</title><style>b{margin:0}</style></head><body><nav><ul><li><a href='/p'>Menu</a></ul></nav>\n<main><h1>Incident <b>47</b></h1><div><p>The disk was full.</p></div><ul><li>at 10:42</li><li><a href='/l'>log</a></li></ul>\n<table><tr><th>Time</th><th>Event</th></tr><tr><td>10:42</td><td>down &amp; out</td></tr></table></main></body></html>";
        insta::assert_snapshot!(super::shorter(text)[0], @r"
        title: Status
        # Incident 47
        The disk was full.
        - at 10:42
        - log
        Time | Event
        10:42 | down & out
        ");
        let told = told(text, 300);
        assert!(told.contains("\nlinks:\nlog -> /l\n") && !told.contains("Menu ->"), "{told}");
    }

    #[test]
    fn a_row_of_a_table_that_is_unlike_the_others_is_told() {
        let row = |n: usize| format!("<tr><td>h{n}<td>{}</tr>\n", if n == 66 { "<b>DOWN</b>" } else { "up" });
        let rows: String = (0..150).map(row).collect();
        let headed = format!("<!DOCTYPE html><table>\n<tr><th>Host<th>Status</tr>\n{rows}</table><p>End");
        insta::assert_snapshot!(told(&headed, 100), @r"
        [Html]
        HTML: 153 lines, 0 headings, 0 links
        first line: <!DOCTYPE html><table>
        303 words, 1 paragraph, 1 table, 151 table rows
        first rows of tables:
        Host | Status
        row 66: Host=h66 Status=DOWN
        some lines:
        74: <tr><td>h72<td>up</tr>
        … +37
        last line: </table><p>End
        ");
        let bare = told(&format!("<!DOCTYPE html><table>{rows}</table>"), 100);
        assert!(bare.contains("\nrow 66: column 1=h66 column 2=DOWN\n"), "{bare}");
    }

    #[test]
    fn elements_inside_a_word_do_not_divide_it() {
        let text = "<!DOCTYPE html>\n<h1><code>cfg(doc)</code>: the <em>whole</em>st<br>story</h1>\n<table><tr><td>a <b>b</b> </td><td>c</td></tr></table>\n";
        insta::assert_snapshot!(told(text, 100), @r"
        [Html]
        HTML: 3 lines, 1 heading, 0 links
        first line: <!DOCTYPE html>
        9 words, 1 table, 1 table row
        first rows of tables:
        a b | c
        headings:
        # cfg(doc): the wholest story
        last line: <table><tr><td>a <b>b</b> </td><td>c</td></tr></table>
        ");
    }

    #[test]
    fn xml_shows_its_elements() {
        let text = "<?xml version=\"1.0\"?>\n<list>\n<item>1</item>\n<item>2</item>\n</list>\n";
        insta::assert_snapshot!(told(text, 300), @r#"
        [Html]
        markup: 5 lines, 3 elements
        first line: <?xml version="1.0"?>
        elements: item ×2, list ×1
        some lines:
        0: <?xml version="1.0"?>
        1: <list>
        2: <item>1</item>
        3: <item>2</item>
        4: </list>
        last line: </list>
        "#);
    }
}
