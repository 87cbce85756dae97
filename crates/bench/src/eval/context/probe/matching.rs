//! Whether a text states a label and a value together.
//!
//! The rules, which err on the side of "no":
//! - Case and the amount of white space do not matter.
//! - A term stands between word boundaries: neither a letter, a digit nor `_` continues it.
//! - A number may be written with separators of thousands (`,`, `_`, `'`, a space) and with more or fewer zeros behind
//!   the decimal point. An integer must be exact. A number with decimals may be rounded, to three digits or more. A number
//!   that is a part of a date, a version or an identifier is not a number.
//! - Label and value are at most [`NEAR`] bytes apart on one line, [`NEAR_ACROSS`] across lines, and [`NEAR_SHORT`] when
//!   one of them has fewer than three characters: bare small numbers would otherwise survive by chance.

/// Bytes between a label and its value on one line at most.
const NEAR: usize = 160;

/// Bytes between a label and its value on different lines at most.
const NEAR_ACROSS: usize = 80;

/// Bytes between a label and its value at most, when one of them has one or two characters.
const NEAR_SHORT: usize = 48;

/// A text in which terms are looked for.
#[derive(Debug)]
pub struct Haystack {
    text: String,
}

/// Where a term stands: start and end in bytes.
type Span = (usize, usize);

/// Lower case, with one blank or one line break for every run of white space.
fn normalized(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut gap: Option<char> = None;
    for c in text.chars() {
        if c.is_whitespace() {
            gap = if c == '\n' || gap == Some('\n') { Some('\n') } else { Some(' ') };
        } else {
            if let Some(gap) = gap.take().filter(|_| !out.is_empty()) {
                out.push(gap);
            }
            out.extend(c.to_lowercase());
        }
    }
    out
}

impl Haystack {
    /// The text, ready for searching.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: normalized(text) }
    }

    /// Whether one of `answers` is given: all its values stand near one of `labels`, or anywhere without labels.
    #[must_use]
    pub fn states(&self, labels: &[String], answers: &[Vec<String>]) -> bool {
        let spans_of = |values: &[String]| -> Vec<(bool, Vec<Span>)> {
            values.iter().map(|value| (is_short(value), self.find(value))).collect()
        };
        answers.iter().filter(|values| !values.is_empty()).any(|values| {
            let found = spans_of(values);
            if found.iter().any(|(_, spans)| spans.is_empty()) {
                return false;
            }
            labels.is_empty()
                || labels.iter().any(|label| {
                    let short_label = is_short(label);
                    self.find(label)
                        .into_iter()
                        .any(|at| found.iter().all(|(short, spans)| self.any_near(at, spans, *short || short_label)))
                })
        })
    }

    /// Every place of a term, in order.
    fn find(&self, term: &str) -> Vec<Span> {
        let term = normalized(term);
        match Number::parse(&term) {
            Some(number) => self.find_number(number),
            None => self.find_words(&term),
        }
    }

    fn find_words(&self, term: &str) -> Vec<Span> {
        if term.is_empty() {
            return Vec::new();
        }
        let continues = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let opens = continues(term.chars().next());
        let closes = continues(term.chars().next_back());
        let places = self.text.match_indices(term).map(|(start, term)| (start, start + term.len()));
        let bounded = |&(start, end): &Span| {
            let before = self.text.get(..start).and_then(|text| text.chars().next_back());
            let after = self.text.get(end..).and_then(|text| text.chars().next());
            !(opens && continues(before) || closes && continues(after))
        };
        places.filter(bounded).collect()
    }

    fn find_number(&self, wanted: Number) -> Vec<Span> {
        let bytes = self.text.as_bytes();
        let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let mut spans = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            if !digit(at) {
                at += 1;
                continue;
            }
            // The digits up to here belong to one number, whichever way it is read.
            let run_end = (at..).find(|&next| !digit(next)).unwrap_or(bytes.len());
            if self.opens_number(at) {
                for end in self.number_ends(at, run_end) {
                    let shown = self.text.get(at..end).and_then(Number::parse);
                    let negative = self.is_negative(at);
                    if shown.is_some_and(|shown| shown.stands_for(wanted, negative)) {
                        spans.push((at, end));
                        break;
                    }
                }
            }
            at = run_end;
        }
        spans
    }

    /// Whether a number can begin at `at`: nothing before it makes it a part of a longer word or number.
    fn opens_number(&self, at: usize) -> bool {
        let mut before = self.text.get(..at).unwrap_or_default().chars().rev();
        let (last, earlier) = (before.next(), before.next());
        let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        match last {
            Some('.' | '-' | ':') => !in_word(earlier),
            other => !in_word(other),
        }
    }

    fn is_negative(&self, at: usize) -> bool {
        let before = self.text.get(..at).unwrap_or_default();
        before.ends_with('-') || before.ends_with('\u{2212}')
    }

    /// The ends of the readings of a number whose first digits are `at..run_end`: with groups and decimals first.
    fn number_ends(&self, at: usize, run_end: usize) -> Vec<usize> {
        let bytes = self.text.as_bytes();
        let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let run = |from: usize| (from..).find(|&next| !digit(next)).unwrap_or(bytes.len());
        let mut grouped = run_end;
        if run_end - at <= 3 {
            while matches!(bytes.get(grouped), Some(b',' | b'_' | b'\'' | b' ')) && run(grouped + 1) == grouped + 4 {
                grouped += 4;
            }
        }
        let mut ends = Vec::new();
        for whole in [grouped, run_end] {
            let decimals = if bytes.get(whole) == Some(&b'.') && digit(whole + 1) { run(whole + 1) } else { whole };
            let tail = self.text.get(decimals..).unwrap_or_default();
            let mut after = tail.chars();
            let (next, beyond) = (after.next(), after.next());
            let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            let goes_on = word(next) || matches!(next, Some('.' | '-' | ':')) && word(beyond);
            if !goes_on && !ends.contains(&decimals) {
                ends.push(decimals);
            }
        }
        ends
    }

    fn any_near(&self, label: Span, values: &[Span], short: bool) -> bool {
        // Spans are in order, so only those within reach are looked at.
        let from = values.partition_point(|&(_, end)| end + NEAR < label.0);
        values
            .iter()
            .skip(from)
            .take_while(|(start, _)| *start <= label.1 + NEAR)
            .any(|&value| self.near(label, value, short))
    }

    fn near(&self, label: Span, value: Span, short: bool) -> bool {
        // A term does not stand beside itself.
        if label.0 < value.1 && value.0 < label.1 {
            return false;
        }
        let (from, to) = if label.1 <= value.0 { (label.1, value.0) } else { (value.1, label.0) };
        let across = self.text.get(from..to).is_some_and(|between| between.contains('\n'));
        to - from
            <= if short {
                NEAR_SHORT
            } else if across {
                NEAR_ACROSS
            } else {
                NEAR
            }
    }
}

fn is_short(term: &str) -> bool {
    term.trim().chars().count() < 3
}

/// A number as a text writes it.
#[derive(Debug, Clone, Copy)]
struct Number {
    value: f64,
    /// Digits behind the decimal point, zeros at the end not counted.
    decimals: i32,
    /// Digits in all, zeros at the start not counted.
    digits: usize,
    /// Zeros stand before other digits: an identifier rather than a quantity.
    padded: bool,
}

impl Number {
    fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['-', '\u{2212}']).unwrap_or(text);
        let plain: String = unsigned.chars().filter(|c| !matches!(c, ',' | '_' | '\'' | ' ')).collect();
        let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
        let digits_only = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits_only(whole) || !digits_only(fraction) || plain.ends_with('.') {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let value: f64 = plain.parse().ok()?;
        let significant = whole.trim_start_matches('0').len() + fraction.len();
        Some(Self {
            value: if unsigned.len() == text.len() { value } else { -value },
            decimals: fraction.len() as i32,
            digits: significant,
            padded: whole.len() > 1 && whole.starts_with('0'),
        })
    }

    /// Whether this number, written after a minus sign or not, says `wanted`.
    fn stands_for(self, wanted: Self, negative: bool) -> bool {
        let value = if negative { -self.value } else { self.value };
        // A hyphen before a number is more often punctuation than a sign.
        let positive = wanted.value >= 0.0 && self.value == wanted.value;
        if self.padded != wanted.padded {
            return false;
        }
        if value == wanted.value || positive {
            return true;
        }
        let unit = libm::exp10(-f64::from(self.decimals));
        wanted.decimals > self.decimals && self.digits >= 3 && (value - wanted.value).abs() <= unit / 2.0 * (1.0 + 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(text: &str, label: &str, value: &str) -> bool {
        let labels: Vec<String> = (!label.is_empty()).then(|| label.to_owned()).into_iter().collect();
        Haystack::new(text).states(&labels, &[vec![value.to_owned()]])
    }

    #[test]
    fn label_and_value_are_found_together() {
        for (text, label, value) in [
            ("6000 rows", "rows", "6000"),
            ("6,000 Rows", "rows", "6000"),
            ("6 000 rows", "rows", "6000"),
            ("qty: int 1..9", "qty", "9"),
            ("qty: int 1–9", "qty", "1"),
            ("price sum 1234.50", "price", "1234.5"),
            ("price sum 1234.5", "price", "1234.50"),
            ("price sum 1234.6", "price", "1234.5678"),
            ("balance min -12", "balance", "-12"),
            ("1,597,SKU-0008", "1", "SKU-0008"),
            ("1,597,SKU-0008", "SKU-0008", "597"),
            ("\"status\":\n   \"shipped\"", "status", "shipped"),
            ("src/handler/client.rs", "handler", "client.rs"),
            ("truncated: True", "truncated", "true"),
            ("6000×8 rows", "rows", "6000"),
            ("anything", "", "anything"),
        ] {
            assert!(states(text, label, value), "{text} / {label} / {value}");
        }
    }

    #[test]
    fn what_only_looks_like_it_is_not_taken() {
        for (text, label, value) in [
            ("16000 rows", "rows", "6000"),
            ("6000.5 rows", "rows", "6000"),
            ("6001 rows", "rows", "6000"),
            ("qty on 2026-05-09", "qty", "9"),
            ("qty SKU-0009", "qty", "9"),
            ("qty v1.9", "qty", "9"),
            ("quantity 9", "qty", "9"),
            ("price sum 1234", "price", "1234.5678"),
            ("price sum 12.4", "price", "1234.5678"),
            ("balance min 12", "balance", "-12"),
            ("rows", "rows", "rows"),
            ("my_error.rs in handler", "handler", "error.rs"),
            ("", "", "x"),
        ] {
            assert!(!states(text, label, value), "{text} / {label} / {value}");
        }
        let far = format!("qty {} 9", "word ".repeat(20));
        assert!(!states(&far, "qty", "9"));
        assert!(states(&far, "qty", "word"));
        assert!(!states(&format!("name {} value", "\nline of text".repeat(8)), "name", "value"));
    }

    #[test]
    fn every_value_of_an_answer_is_needed() {
        let text = Haystack::new("qty 1..9 distinct\nstatus: new, paid");
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert!(text.states(&own(&["qty"]), &[own(&["1", "9"])]));
        assert!(!text.states(&own(&["qty"]), &[own(&["1", "8"])]));
        assert!(text.states(&own(&["status"]), &[own(&["5"]), own(&["new", "paid"])]));
        assert!(!text.states(&own(&["status"]), &[own(&[])]));
    }
}
