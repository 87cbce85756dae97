//! A text in passages, each of which is found and shown by itself.

/// Bytes from which a passage ends at the next blank line.
const ENOUGH: usize = 1_000;

/// Bytes from which it ends at the next line.
const MOST: usize = 2_000;

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Passage<'t> {
    /// The headings above it, the outermost first, with ` > ` between them; empty where there is none.
    pub(super) heading: String,
    /// Its first line, counted from 1.
    pub(super) first: usize,
    /// Its last line.
    pub(super) last: usize,
    /// Its lines.
    pub(super) text: &'t str,
}

/// What is being put together.
#[derive(Default)]
struct Open {
    /// The bytes before it, and the line it begins with.
    start: usize,
    first: usize,
    /// The end of its last line that is not blank, and the number of that.
    end: usize,
    last: usize,
    /// Whether it has more than headings.
    has_body: bool,
}

/// The passages of a document, and of one in Markdown by its headings. `None` where there are more than `most`.
pub(super) fn passages<'t>(text: &'t str, is_markdown: bool, most: usize) -> Option<Vec<Passage<'t>>> {
    let mut found: Vec<Passage<'t>> = Vec::new();
    let mut headings: Vec<(usize, &str)> = Vec::new();
    let (mut open, mut at, mut in_code): (Option<Open>, usize, bool) = (None, 0, false);
    let close = |found: &mut Vec<Passage<'t>>, headings: &[(usize, &str)], open: &mut Option<Open>| {
        let Some(Open { start, first, end, last, .. }) = open.take() else { return };
        let names: Vec<&str> = headings.iter().map(|(_, title)| *title).collect();
        let text = text.get(start..end).unwrap_or_default();
        found.push(Passage { heading: names.join(" > "), first, last, text });
    };
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let (start, shown) = (at, line.trim_end());
        at += line.len();
        let is_fence = shown.trim_start().starts_with("```") || shown.trim_start().starts_with("~~~");
        in_code ^= is_markdown && is_fence;
        let heading = if is_markdown && !in_code && !is_fence { heading(shown) } else { None };
        if let Some((level, title)) = heading {
            // A heading right below a heading stands with it.
            let goes_on = open.as_ref().is_some_and(|open| !open.has_body)
                && headings.last().is_some_and(|(above, _)| *above < level);
            if !goes_on {
                close(&mut found, &headings, &mut open);
            }
            headings.truncate(headings.iter().take_while(|(above, _)| *above < level).count());
            headings.push((level, title));
        } else if let Some(size) = open.as_ref().map(|open| start - open.start)
            && (size >= MOST || (size >= ENOUGH && shown.is_empty()))
        {
            close(&mut found, &headings, &mut open);
        }
        if found.len() > most {
            return None;
        }
        if shown.is_empty() {
            continue;
        }
        let part = open.get_or_insert(Open { start, first: number, ..Open::default() });
        (part.end, part.last) = (start + shown.len(), number);
        part.has_body |= heading.is_none();
    }
    close(&mut found, &headings, &mut open);
    (found.len() <= most).then_some(found)
}

/// The level and the title of a heading of Markdown.
fn heading(line: &str) -> Option<(usize, &str)> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    let is_heading = (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    is_heading.then(|| (level, rest.trim().trim_end_matches('#').trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, is_markdown: bool) -> String {
        let line = |passage: &Passage<'_>| {
            let Passage { heading, first, last, text } = passage;
            format!("{first}-{last} [{heading}] {}\n", text.replace('\n', "|"))
        };
        passages(text, is_markdown, 100).unwrap().iter().map(line).collect()
    }

    #[test]
    fn markdown_is_cut_at_its_headings() {
        let text =
            "intro\n\n# Guide\n## Start ##\n\nRun it.\n\n```sh\n# no heading\n```\n## Stop\nEnd it.\n# Else\n#no\n";
        insta::assert_snapshot!(shown(text, true), @"
        1-1 [] intro
        3-10 [Guide > Start] # Guide|## Start ##||Run it.||```sh|# no heading|```
        11-12 [Guide > Stop] ## Stop|End it.
        13-14 [Else] # Else|#no
        ");
        assert_eq!(shown("# a\r\nb\r\n\r\n", false), "1-2 [] # a\r|b\n");
        assert_eq!(shown(" \n\n", true), "");
    }

    #[test]
    fn long_parts_are_cut_at_blank_lines_or_else_at_lines() {
        let line = "word ".repeat(40);
        let text = format!("{}\n\n{}", format!("{line}\n").repeat(6), format!("{line}\n").repeat(15));
        let lines: Vec<(usize, usize)> =
            passages(&text, false, 100).unwrap().iter().map(|passage| (passage.first, passage.last)).collect();
        assert_eq!(lines, [(1, 6), (9, 18), (19, 23)]);
        assert_eq!(passages(&text, false, 3).map(|found| found.len()), Some(3));
        assert_eq!(passages(&text, false, 2), None);
    }

    proptest::proptest! {
        #[test]
        fn every_line_with_words_is_in_one_passage(text in "([#` a-z\u{e9}]{0,40}\r?\n){0,40}", is_markdown: bool) {
            let found = passages(&text, is_markdown, 1_000).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            let mut next = 1;
            for passage in &found {
                assert!(lines[next - 1..passage.first - 1].iter().all(|line| line.trim().is_empty()));
                assert_eq!(passage.text.lines().count(), passage.last + 1 - passage.first);
                assert!(lines[passage.first - 1].starts_with(passage.text.lines().next().unwrap().trim_end()));
                next = passage.last + 1;
            }
            assert!(lines[next - 1..].iter().all(|line| line.trim().is_empty()));
        }
    }
}
