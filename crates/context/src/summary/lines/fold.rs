//! A plain text without what it says again: lines that are like earlier ones, and sentences that are repeated.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use crate::split::lines;

use super::template::pattern;

/// How many lines of one pattern are shown, the most first.
const SHOWN: [usize; 5] = [32, 16, 8, 4, 2];
/// The number of different lines and of sentences that are remembered; later ones are taken for new.
const KNOWN: usize = 4096;
/// The number of bytes from which a line is read as sentences.
const LONG_LINE: usize = 240;
/// A text is folded where at most this part of it is left then, in hundredths.
const LEFT: usize = 40;
/// A text is not folded where at least this part of its lines are names with values, in hundredths: the values of one
/// record say nothing about those of the next.
const VALUES: usize = 60;
/// The number of bytes of a name at most.
const NAME: usize = 40;

/// The text with fewer and fewer of the lines that are alike: the forms of at most `limit` bytes, and the last. None
/// where few lines are.
pub(super) fn forms(text: &str, limit: usize) -> Vec<String> {
    if is_of_values(text) {
        return Vec::new();
    }
    let Some(last) = folded(text, 1, text.len() * LEFT / 100) else { return Vec::new() };
    let mut forms: Vec<String> = SHOWN.iter().filter_map(|&shown| folded(text, shown, limit)).collect();
    forms.push(last);
    forms
}

/// Whether most lines are a name with its value: `name: value`, `name = value`, `NAME=value`. A name that the line before
/// has, too, is a word that begins messages: `PASS: …`.
fn is_of_values(text: &str) -> bool {
    let name = |line: &str| line.find(": ").into_iter().chain(line.find('=')).min().filter(|end| *end <= NAME);
    let (mut filled, mut values, mut before) = (0_usize, 0_usize, "");
    for line in lines(text).filter(|line| !line.trim().is_empty()) {
        filled += 1;
        let name = name(line).and_then(|end| line.get(..end)).unwrap_or_default();
        values += usize::from(!name.is_empty() && name != before);
        before = if name.is_empty() { before } else { name };
    }
    values * 100 >= filled * VALUES
}

/// The text with at most `shown` of the lines of each pattern, and with its last line, if that takes at most `most`
/// bytes.
fn folded(text: &str, shown: usize, most: usize) -> Option<String> {
    let mut said = Said::default();
    let mut seen: FxHashMap<u64, usize> = FxHashMap::default();
    let mut all = (0..).zip(lines(text)).peekable();
    while let Some((number, line)) = all.next() {
        let mut end = number + 1;
        while all.next_if(|(_, next)| *next == line).is_some() {
            end += 1;
        }
        if line.trim().is_empty() {
            said.is_apart = true;
            continue;
        }
        if seen_again(&mut seen, pattern(line)) < shown {
            said.write(line, end - number);
        } else {
            said.leave_out(line, number..end);
        }
        if said.text.len() > most {
            return None;
        }
    }
    // The last line is shown whatever it is like.
    if let Some(mut gap) = said.gap.take() {
        gap.count -= 1;
        gap.lines.end = gap.last.1;
        let last = gap.last.0;
        said.gap = (gap.count > 0).then_some(gap);
        said.write(last, 1);
    }
    (said.text.len() <= most).then_some(said.text)
}

/// How often a pattern was seen before, which is then seen once more.
fn seen_again(seen: &mut FxHashMap<u64, usize>, pattern: u64) -> usize {
    if let Some(times) = seen.get_mut(&pattern) {
        *times += 1;
        return *times - 1;
    }
    if seen.len() < KNOWN {
        seen.insert(pattern, 1);
    }
    0
}

/// Lines that are left out.
struct Gap<'a> {
    /// Their numbers, blank ones between them included.
    lines: std::ops::Range<usize>,
    /// How many are not blank.
    count: usize,
    first: &'a str,
    /// The last with its number.
    last: (&'a str, usize),
}

/// What is shown so far.
#[derive(Default)]
struct Said<'a> {
    text: String,
    gap: Option<Gap<'a>>,
    /// Whether a blank line is next.
    is_apart: bool,
    sentences: FxHashSet<u64>,
}

impl<'a> Said<'a> {
    fn leave_out(&mut self, line: &'a str, lines: std::ops::Range<usize>) {
        let (count, last) = (lines.len(), (line, lines.end - 1));
        match &mut self.gap {
            Some(gap) => {
                gap.lines.end = lines.end;
                gap.count += count;
                gap.last = last;
            }
            None => self.gap = Some(Gap { lines, count, first: line, last }),
        }
    }

    /// Writes a line that occurs so many times, behind what is left out before it.
    fn write(&mut self, line: &str, times: usize) {
        let apart = std::mem::take(&mut self.is_apart);
        match self.gap.take() {
            // A note is not shorter than the line.
            Some(gap) if gap.count == 1 => self.line(gap.first),
            Some(gap) => self.line(&format!("… lines {}..{} alike", gap.lines.start, gap.lines.end)),
            None if apart => self.line(""),
            None => {}
        }
        let once = self.once(line);
        self.line(&if times > 1 { format!("{once} (×{times})") } else { once });
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// The line without the sentences that are written already; a short line as it is.
    fn once(&mut self, line: &str) -> String {
        if line.len() < LONG_LINE {
            return line.to_owned();
        }
        let mut said = String::new();
        let mut all = sentences(line).peekable();
        while let Some(sentence) = all.next() {
            let mut times = 1;
            while all.next_if(|next| next.trim_end() == sentence.trim_end()).is_some() {
                times += 1;
            }
            let is_new = self.sentences.len() >= KNOWN || self.sentences.insert(hash(sentence.trim_end()));
            match (is_new, times) {
                (true, 1) => said.push_str(sentence),
                (true, _) => said.push_str(&format!("{} (×{times}) ", sentence.trim_end())),
                (false, _) if said.ends_with("… ") => {}
                (false, _) => said.push_str("… "),
            }
        }
        said.truncate(said.trim_end().len());
        said
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = FxHasher::default();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The sentences of a line, each with the blanks behind it.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    line.split_inclusive(". ").flat_map(|part| part.split_inclusive("? ")).flat_map(|part| part.split_inclusive("! "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_alike_are_left_out() {
        let text: String = (0..40)
            .map(|n| match n {
                17 => "FAIL src/pay.test.js\n  expected 500, received 0\n\n".to_owned(),
                _ => format!("PASS src/a{n}.test.js\n"),
            })
            .chain(["\nTests: 1 failed, 39 passed\n".to_owned()])
            .collect();
        let shown = forms(&text, 400);
        insta::assert_snapshot!(shown.last().unwrap(), @r"
        PASS src/a0.test.js
        … lines 1..17 alike
        FAIL src/pay.test.js
          expected 500, received 0
        … lines 20..42 alike
        Tests: 1 failed, 39 passed
        ");
        assert!(shown.iter().all(|form| form.len() <= 400), "{shown:?}");
        assert!(shown[0].len() > shown[1].len());
    }

    #[test]
    fn blocks_that_alternate_are_left_out() {
        let text: String = (0..30)
            .map(|n| {
                format!(
                    "  # web[{n}] will be {}\n    + id = {n}\n    }}\n\n",
                    if n == 9 { "destroyed" } else { "created" }
                )
            })
            .chain(["Plan: 29 to add, 1 to destroy.\n".to_owned()])
            .collect();
        insta::assert_snapshot!(forms(&text, 2_000).last().unwrap(), @r"
          # web[0] will be created
            + id = 0
            }
        … lines 4..35 alike
          # web[9] will be destroyed
        … lines 37..119 alike
        Plan: 29 to add, 1 to destroy.
        ");
    }

    #[test]
    fn what_is_said_again_is_counted() {
        insta::assert_snapshot!(forms(&"waiting for the pod\n".repeat(400), 100)[0], @r"
        waiting for the pod (×400)
        ");
        let text = format!(
            "Hi,\n\n{}Decision: we ship on Friday. {}\n\nBest,\nIna\n",
            "Nothing was decided about colours. ".repeat(30),
            "Then there was coffee. Nothing was decided about colours. ".repeat(9)
        );
        insta::assert_snapshot!(forms(&text, 1_000)[0], @r"
        Hi,

        Nothing was decided about colours. (×30) Decision: we ship on Friday. Then there was coffee. …

        Best,
        Ina
        ");
    }

    #[test]
    fn values_are_not_taken_for_each_other() {
        let tests: String =
            (0..60).map(|n| format!("{}: check {n}\n", if n == 31 { "FAIL" } else { "PASS" })).collect();
        assert_eq!(
            forms(&tests, 1_000).last().unwrap(),
            "PASS: check 0\n… lines 1..31 alike\nFAIL: check 31\n… lines 32..59 alike\nPASS: check 59\n"
        );
        let records: String = (0..60).map(|n| format!("order: {n}\nstate: open {n}\n\n")).collect();
        assert_eq!(forms(&records, 1_000), Vec::<String>::new());
    }

    #[test]
    fn a_text_of_different_lines_is_not_folded() {
        let text: String = ["one", "two", "three"].iter().map(|word| format!("{word} {}\n", word.repeat(9))).collect();
        assert_eq!(forms(&text, 1_000), Vec::<String>::new());
    }
}
