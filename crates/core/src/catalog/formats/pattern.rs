//! What is no regular expression, and what is none for the provider that looks.
//!
//! Patterns are written for many engines, none of which reads those of all others. So they are not compiled, but read
//! for what no engine reads, and for what Python's `re` does not. One pass each, however long a pattern is.

/// Whether no engine reads a pattern: a class or group does not end, or nothing stands before a repetition.
pub(in crate::catalog) fn is_broken(pattern: &str) -> bool {
    // In JavaScript `[]` is a class, in most others the `]` is its first member.
    let read = |bracket| Reader::new(pattern, bracket).read();
    read(Bracket::Closes).is_none() && read(Bracket::IsMember).is_none()
}

/// Whether OpenAI takes a pattern: Python's `re` reads it, and it does not look around.
pub(super) fn is_taken_by_openai(pattern: &str) -> bool {
    Reader::new(pattern, Bracket::IsMember).read() == Some(true)
}

/// What `]` is directly behind the beginning of a class.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Closes,
    IsMember,
}

struct Reader {
    characters: Vec<char>,
    at: usize,
    bracket: Bracket,
    /// Groups that have begun, and those that have not ended.
    groups: usize,
    open: usize,
    /// Whether Python's `re` has read all of it so far.
    is_python: bool,
}

impl Reader {
    fn new(pattern: &str, bracket: Bracket) -> Self {
        Self { characters: pattern.chars().collect(), at: 0, bracket, groups: 0, open: 0, is_python: true }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.characters.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek(0)?;
        self.at += 1;
        Some(next)
    }

    /// Whether Python reads the pattern; `None` if no engine does.
    fn read(mut self) -> Option<bool> {
        /// What stands before a repetition.
        #[derive(Clone, Copy, PartialEq)]
        enum Before {
            Nothing,
            Part,
            Repetition,
        }
        let mut before = Before::Nothing;
        while let Some(next) = self.next() {
            before = match next {
                '\\' => self.escape(false).map(|_| Before::Part)?,
                '[' => self.class().map(|()| Before::Part)?,
                '(' => {
                    self.group()?;
                    Before::Nothing
                }
                ')' => {
                    self.open = self.open.checked_sub(1)?;
                    Before::Part
                }
                '|' => Before::Nothing,
                '*' | '+' | '?' | '{' => {
                    if next == '{' && !self.counts()? {
                        Before::Part
                    } else {
                        match before {
                            Before::Nothing => return None,
                            // `a*?` takes as little as it can, and `a*+` gives nothing back.
                            Before::Repetition => self.is_python &= next != '*' && next != '{',
                            Before::Part => {}
                        }
                        Before::Repetition
                    }
                }
                _ => Before::Part,
            };
        }
        (self.open == 0).then_some(self.is_python)
    }

    /// Reads on behind `{`. Whether counts of a repetition stood there; `None` if the least is over the most.
    fn counts(&mut self) -> Option<bool> {
        let rest = self.characters.get(self.at..).unwrap_or_default();
        let Some(end) = rest.iter().take(32).position(|c| *c == '}') else { return Some(false) };
        let text: String = rest[..end].iter().collect();
        let (least, most) = text.split_once(',').unwrap_or((&text, &text));
        let is_count = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if least.is_empty() || !is_count(least) || !is_count(most) {
            return Some(false);
        }
        self.at += end + 1;
        let count = |text: &str, none: u128| text.parse().unwrap_or(none);
        (count(least, 0) <= count(most, u128::MAX)).then_some(true)
    }

    /// Reads on behind `\`. The character, if it stands for one that is known.
    fn escape(&mut self, in_class: bool) -> Option<Option<char>> {
        let next = self.next()?;
        let digits = |count: usize| (0..count).all(|ahead| self.peek(ahead).is_some_and(|c| c.is_ascii_hexdigit()));
        self.is_python &= match next {
            'x' => digits(2),
            'u' => digits(4),
            'U' => digits(8),
            'A' | 'B' | 'Z' => !in_class,
            'a' | 'b' | 'd' | 'D' | 'f' | 'n' | 'r' | 's' | 'S' | 't' | 'v' | 'w' | 'W' => true,
            '1'..='9' => in_class || next.to_digit(10).is_some_and(|number| number as usize <= self.groups),
            other => !other.is_ascii_alphabetic(),
        };
        Some(Some(next).filter(|next| !next.is_ascii_alphanumeric()))
    }

    /// Reads on behind `[`; `None` if the class does not end, or a range in it ends before it begins.
    fn class(&mut self) -> Option<()> {
        if self.peek(0) == Some('^') {
            self.at += 1;
        }
        let mut first = self.bracket == Bracket::IsMember;
        loop {
            let next = self.next()?;
            if next == ']' && !first {
                return Some(());
            }
            first = false;
            let is_set = |at: Option<char>| at.is_some_and(|c| "dDsSwW".contains(c));
            let begins_with_set = next == '\\' && is_set(self.peek(0));
            let begin = if next == '\\' { self.escape(true)? } else { Some(next) };
            if self.peek(0) != Some('-') || self.peek(1).is_none_or(|c| c == ']') {
                continue;
            }
            // A set of characters is neither the begin nor the end of a range.
            if begins_with_set || self.peek(1) == Some('\\') && is_set(self.peek(2)) {
                self.is_python = false;
                continue;
            }
            if matches!(self.peek(1), Some('\\' | '[')) {
                continue;
            }
            self.at += 1;
            let end = self.next()?;
            if begin.is_some_and(|begin| end < begin) {
                return None;
            }
        }
    }

    /// Reads what follows on `(`, up to what is in the group.
    fn group(&mut self) -> Option<()> {
        self.open += 1;
        if self.peek(0) != Some('?') {
            self.groups += 1;
            return Some(());
        }
        self.at += 1;
        let begins_pattern = self.at == 2;
        match self.next()? {
            ':' | '>' => {}
            '=' | '!' => self.is_python = false,
            // Python calls a group `(?P<name>`.
            '<' => {
                self.is_python = false;
                self.groups += 1;
            }
            'P' => self.groups += usize::from(self.peek(0) == Some('<')),
            '#' => {
                while self.peek(0)? != ')' {
                    self.at += 1;
                }
            }
            '(' => self.open += 1,
            flag => {
                let mut flag = flag;
                while "aiLmsux-".contains(flag) {
                    flag = self.next()?;
                }
                match flag {
                    ':' => {}
                    // Python takes flags for the whole pattern only in front of it.
                    ')' => {
                        self.open -= 1;
                        self.is_python &= begins_pattern;
                    }
                    _ => self.is_python = false,
                }
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_are_told_apart() {
        let taken = [
            "",
            r"^[a-z0-9_-]{1,64}$",
            r"^(foo|bar)?\.txt$",
            r"^\d{4}-\d{2}-\d{2}T(?:[01]\d|2[0-3])$",
            r"[]a]",
            r"[^]]",
            r"^{[a-z]}$",
            r"a{2,}b{3}c{,4}",
            r"(?P<year>\d+)(?P=year)",
            r"(?i)abc",
            r"(?i:abc)",
            r"(a)\1",
            r"\/path\/\-",
            r"[\w\]-]",
            r"[+--]",
            r"[а-яё]+",
            "\u{e9}\\u00e9[\\u0000-\\u001f\\x7f]",
            r"a+?b??c*+",
            r"(?#a [ comment)x",
            r"[[a]",
            r"[\w.-]",
            r"[\x00-\x1f]",
        ];
        let refused = [
            r"^[\p{L}\p{N} ]+$",
            r"\P{L}",
            r"^(?!undefined$|null$)",
            r"(?=.*\S)a",
            r"(?<=a)b",
            r"(?<!a)b",
            r"(?<year>\d+)",
            r"\u{1F600}",
            r"a\z",
            r"\cA",
            r"\k<a>",
            r"a(?i)b",
            r"[]",
            r"a**",
            r"\2",
            r"[\w-z]",
            r"[a-\d]",
        ];
        let broken =
            ["[(", "(", "a)", "(a", "[a", r"a\", "*a", "a|*", "(+)", "a{3,2}", "[z-a]", "(?", "(?i", "{2}", "(?:*)"];
        let shown = |pattern: &&str| (is_taken_by_openai(pattern), is_broken(pattern));
        let of = |patterns: &[&'static str], expected: (bool, bool)| -> Vec<&'static str> {
            patterns.iter().copied().filter(|pattern| shown(pattern) != expected).collect()
        };
        assert_eq!(of(&taken, (true, false)), [""; 0]);
        assert_eq!(of(&refused, (false, false)), [""; 0]);
        assert_eq!(of(&broken, (false, true)), [""; 0]);
        // The engine at hand reads none of them either.
        assert_eq!(broken.iter().filter(|pattern| regex::Regex::new(pattern).is_ok()).count(), 0);
    }

    proptest! {
        /// What an engine reads is not called broken.
        #[test]
        fn what_is_read_is_not_broken(pattern in r"[\[\](){}|*+?\\^$.,a-c0-2:=!<>P#\-]{0,12}") {
            if regex::Regex::new(&pattern).is_ok() {
                prop_assert!(!is_broken(&pattern), "{pattern}");
            }
        }
    }
}
