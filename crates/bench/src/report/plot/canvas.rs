//! An SVG while it is being drawn: shapes at whole pixels, with classes instead of colours.
//!
//! The style sheet inside the picture gives the classes their colours, for light and for dark pages. A picture has a title
//! and a description that screen readers find, and a series is told from another by its marker and its dashes, so that
//! colour is never the only key.

use std::fmt::Write as _;

use super::super::markup::escaped_xml;

/// The width of every picture, in pixels: text stays readable when a telephone shows it at two thirds.
pub(super) const WIDTH: i32 = 640;

/// The height of text, in pixels.
const TEXT_PX: i32 = 15;

/// Pixels that a character of text takes, at most, on average.
const CHARACTER: i32 = 9;

/// Characters of a line of the title.
const TITLE_LINE: usize = 58;

/// The height of a line of the title.
const TITLE_STEP: i32 = 22;

/// Colours and dashes of series before they start again.
pub(super) const SERIES: usize = 7;

/// Blue, ink, orange, green, vermillion, purple, sky: those of Okabe and Ito, darker on white and lighter on black so that
/// each has a contrast of three to one at least.
const LIGHT: [&str; SERIES] = ["#0072b2", "#1a1a1a", "#a86f00", "#00795a", "#c24a00", "#a0447a", "#2280b8"];
const DARK: [&str; SERIES] = ["#58b0ee", "#f0f0f0", "#f2b83b", "#2fd0a0", "#ff8f4d", "#e79ac8", "#a5d8ff"];

/// Dashes by series.
const DASHES: [&str; SERIES] = ["none", "8 4", "2 4", "12 4 2 4", "5 3", "14 5", "1 3"];

/// Where a text is attached horizontally; vertically it is always its middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Text of the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    /// What is read.
    Text,
    /// Axes and notes.
    Quiet,
    /// On a pale cell of a heat map.
    OnPale,
    /// On a deep cell of a heat map.
    OnDeep,
}

/// A place in pixels.
pub(super) type At = (i32, i32);

/// The picture.
#[derive(Debug)]
pub(super) struct Canvas {
    title: String,
    description: String,
    body: String,
    top: i32,
}

impl Canvas {
    /// A picture with its title drawn; `description` says in words what it shows.
    pub(super) fn new(title: &str, description: String) -> Self {
        let mut canvas = Self { title: title.to_owned(), description, body: String::new(), top: 0 };
        for (at, line) in lines(title).iter().enumerate() {
            let y = 24 + TITLE_STEP * at as i32;
            let _ = writeln!(canvas.body, "<text class=\"h\" x=\"14\" y=\"{}\">{}</text>", y + 5, escaped_xml(line));
            canvas.top = y + 18;
        }
        canvas
    }

    /// The first free row below the title.
    pub(super) fn top(&self) -> i32 {
        self.top
    }

    /// A line of text.
    pub(super) fn text(&mut self, (x, y): At, anchor: Anchor, ink: Ink, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = match ink {
            Ink::Text => "t",
            Ink::Quiet => "q",
            Ink::OnPale => "p",
            Ink::OnDeep => "d",
        };
        let y = y + TEXT_PX / 3;
        let _ = writeln!(self.body, "<text class=\"{class}\"{anchor} x=\"{x}\" y=\"{y}\">{}</text>", escaped_xml(text));
    }

    /// A line of the grid.
    pub(super) fn grid(&mut self, from: At, to: At) {
        self.line("g", &[from, to]);
    }

    /// An axis, or a line to which others are compared.
    pub(super) fn axis(&mut self, from: At, to: At) {
        self.line("a", &[from, to]);
    }

    /// The line of a series, with its dashes.
    pub(super) fn series(&mut self, series: usize, points: &[At]) {
        let series = series % SERIES;
        self.line(&format!("s s{series} k{series}"), points);
    }

    /// A line in the colour of a series, without dashes and of one pixel where it is `thin`.
    pub(super) fn stroke(&mut self, series: usize, thin: bool, points: &[At]) {
        let width = if thin { "n" } else { "s" };
        self.line(&format!("{width} s{}", series % SERIES), points);
    }

    fn line(&mut self, class: &str, points: &[At]) {
        let _ = writeln!(self.body, "<path class=\"{class}\" d=\"{}\"/>", path(points));
    }

    /// The surface between two lines of a series.
    pub(super) fn band(&mut self, series: usize, outline: &[At]) {
        let _ = writeln!(self.body, "<path class=\"b f{}\" d=\"{}Z\"/>", series % SERIES, path(outline));
    }

    /// The marker of a series; a hollow one says that the value is not told apart from that to which it is compared.
    pub(super) fn marker(&mut self, series: usize, (x, y): At, hollow: bool) {
        let series = series % SERIES;
        let class = if hollow { format!("o s{series}") } else { format!("f{series}") };
        if series == 0 {
            let _ = writeln!(self.body, "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"5\"/>");
            return;
        }
        let shape: &[At] = match series {
            1 => &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
            2 => &[(0, -6), (6, 5), (-6, 5)],
            3 => &[(0, -6), (6, 0), (0, 6), (-6, 0)],
            4 => &[(0, 6), (6, -5), (-6, -5)],
            5 => &[
                (-6, -2),
                (-2, -2),
                (-2, -6),
                (2, -6),
                (2, -2),
                (6, -2),
                (6, 2),
                (2, 2),
                (2, 6),
                (-2, 6),
                (-2, 2),
                (-6, 2),
            ],
            _ => &[(-6, -3), (6, -3), (6, 3), (-6, 3)],
        };
        let points: Vec<At> = shape.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
        let _ = writeln!(self.body, "<path class=\"{class}\" d=\"{}Z\"/>", path(&points));
    }

    /// A cell whose depth of colour is `percent`.
    pub(super) fn cell(&mut self, (x, y): At, (width, height): At, percent: i32) {
        let _ = writeln!(
            self.body,
            "<rect class=\"c\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill-opacity=\"{}\"/>",
            f64::from(percent) / 100.0
        );
    }

    /// The picture with this height, in pixels.
    pub(super) fn svg(self, height: i32) -> String {
        let Self { title, description, body, .. } = self;
        let (title, description) = (escaped_xml(&title), escaped_xml(&description));
        let style = style();
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
             role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">{title}</title>\n\
             <desc id=\"desc\">{description}</desc>\n<style>\n{style}</style>\n\
             <rect class=\"w\" width=\"{WIDTH}\" height=\"{height}\"/>\n{body}</svg>\n"
        )
    }
}

/// Room for labels: pixels that the longest of them takes, at least `least` and at most `most`.
pub(super) fn room<'a>(labels: impl IntoIterator<Item = &'a str>, least: i32, most: i32) -> i32 {
    let longest = labels.into_iter().map(|label| label.chars().count()).max().unwrap_or(0);
    (longest as i32).saturating_mul(CHARACTER).saturating_add(8).clamp(least, most)
}

/// As much of `label` as fits: its beginning and its end, where names have what tells them apart.
pub(super) fn fitted(label: &str, pixels: i32) -> String {
    let (most, length) = ((pixels / CHARACTER).max(1) as usize, label.chars().count());
    if length <= most {
        return label.to_owned();
    }
    let end = most / 3;
    let start = label.chars().take(most - 1 - end);
    start.chain(['…']).chain(label.chars().skip(length - end)).collect()
}

/// A title in lines of [`TITLE_LINE`].
fn lines(title: &str) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in title.split(' ') {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > TITLE_LINE {
            lines.push(word.to_owned());
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}

fn path(points: &[At]) -> String {
    let mut text = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let _ = write!(text, "{}{x} {y}", if at == 0 { "M" } else { "L" });
    }
    text
}

/// The style sheet: geometry once, colours for light pages, and those of dark pages in their place.
fn style() -> String {
    let mut text = format!(
        "text{{font:{TEXT_PX}px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}}\n\
         .h{{font-size:17px;font-weight:600}}\n.g,.a,.s,.n,.o{{fill:none}}\n.s{{stroke-width:2.5}}\n.o{{stroke-width:2}}\n\
         .b{{opacity:.12}}\n"
    );
    for (series, dashes) in DASHES.iter().enumerate() {
        if *dashes != "none" {
            let _ = writeln!(text, ".k{series}{{stroke-dasharray:{dashes}}}");
        }
    }
    text.push_str(&colours(
        &LIGHT,
        ".w{fill:#fff}.h,.t,.p{fill:#1a1a1a}.q{fill:#555}.d{fill:#fff}.g{stroke:#dcdcdc}.a{stroke:#5a5a5a}.c{fill:#0b5a9d}",
    ));
    text.push_str("@media(prefers-color-scheme:dark){\n");
    text.push_str(&colours(
        &DARK,
        ".w{fill:#0d1117}.h,.t,.p,.d{fill:#eceff3}.q{fill:#a9b3bf}.g{stroke:#2b323b}.a{stroke:#8b949e}.c{fill:#1f6fc2}",
    ));
    text.push_str("}\n");
    text
}

fn colours(palette: &[&str; SERIES], rest: &str) -> String {
    let mut text = String::new();
    for (series, colour) in palette.iter().enumerate() {
        let _ = write!(text, ".s{series}{{stroke:{colour}}}.f{series}{{fill:{colour}}}");
    }
    format!("{text}\n{rest}\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_picture_says_what_it_shows_and_holds_nothing_foreign() {
        let mut canvas = Canvas::new("a & b", "x < y\u{1}".to_owned());
        canvas.text((10, 20), Anchor::End, Ink::Text, "</text><script>");
        let svg = canvas.svg(100);
        assert!(svg.contains("<title id=\"title\">a &amp; b</title>") && svg.contains(">x &lt; y\u{fffd}</desc>"));
        assert!(svg.contains("role=\"img\" aria-labelledby=\"title desc\"") && !svg.contains("<script"));
        assert!(svg.contains("@media(prefers-color-scheme:dark)"));
    }

    #[test]
    fn series_differ_without_colour() {
        let drawn = |series: usize| {
            let mut canvas = Canvas::new("", String::new());
            canvas.marker(series, (0, 0), false);
            canvas.body.replace(&format!("f{series}"), "")
        };
        let looks: BTreeSet<String> = (0..SERIES).map(drawn).collect();
        let dashes: BTreeSet<&str> = DASHES.into();
        assert_eq!((looks.len(), dashes.len()), (SERIES, SERIES));
    }

    #[test]
    fn titles_are_wrapped_and_labels_cut() {
        assert_eq!(lines(&["word"; 20].join(" ")).iter().map(String::len).collect::<Vec<_>>(), [54, 44]);
        assert_eq!(fitted("keyword-stuffed (12)", 90), "keywor…12)");
        assert_eq!(fitted("short", 64), "short");
    }
}
