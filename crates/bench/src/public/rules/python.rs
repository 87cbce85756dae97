//! Tables in the source text of Python programs: dictionaries, lists and tuples of strings.
//!
//! Only such literals are read; nothing is run.

use serde_json::{Map, Value};

/// Literals are read to this depth.
const DEPTH: usize = 16;

/// The literal that `name` is set to at the beginning of a line of `source`, tuples as arrays.
pub(super) fn assigned(source: &str, name: &str) -> Result<Value, String> {
    let mut lines = source.split_inclusive('\n').scan(0, |start, line| {
        let from = *start;
        *start += line.len();
        Some((from, line))
    });
    let is_it = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', '=', ' ']));
    let (start, line) = lines.find(|(_, line)| is_it(line)).ok_or_else(|| format!("no line sets {name}"))?;
    let equals = line.find('=').ok_or_else(|| format!("{name} is set to nothing on its line"))?;
    let mut literal = Literal { rest: &source[start + equals + 1..] };
    literal.value(DEPTH).ok_or_else(|| {
        let line = 1 + source[..source.len() - literal.rest.len()].matches('\n').count();
        format!("line {line}: {name} holds more than dictionaries, lists, tuples and strings")
    })
}

struct Literal<'a> {
    rest: &'a str,
}

impl Literal<'_> {
    /// The value at the beginning of the rest; `None` when there is none of the known kinds.
    fn value(&mut self, depth: usize) -> Option<Value> {
        self.skip_blank();
        let depth = depth.checked_sub(1)?;
        match self.rest.chars().next()? {
            '"' | '\'' => self.string().map(Value::String),
            '{' => {
                let mut map = Map::new();
                self.enter();
                while !self.closed('}') {
                    let key = self.string()?;
                    self.skip_blank();
                    self.rest = self.rest.strip_prefix(':')?;
                    map.insert(key, self.value(depth)?);
                    self.separated('}')?;
                }
                Some(Value::Object(map))
            }
            open @ ('[' | '(') => {
                let close = if open == '[' { ']' } else { ')' };
                let mut values = Vec::new();
                self.enter();
                while !self.closed(close) {
                    values.push(self.value(depth)?);
                    self.separated(close)?;
                }
                Some(Value::Array(values))
            }
            _ => None,
        }
    }

    fn enter(&mut self) {
        self.rest = &self.rest[1..];
        self.skip_blank();
    }

    /// Whether the collection ends here, which is then left.
    fn closed(&mut self, close: char) -> bool {
        let after = self.rest.strip_prefix(close);
        if let Some(after) = after {
            self.rest = after;
        }
        after.is_some()
    }

    /// Passes the comma behind a member; there may be none behind the last.
    fn separated(&mut self, close: char) -> Option<()> {
        self.skip_blank();
        match self.rest.strip_prefix(',') {
            Some(after) => self.rest = after,
            None if self.rest.starts_with(close) => {}
            None => return None,
        }
        self.skip_blank();
        Some(())
    }

    /// A string in one kind of quotes, without escapes.
    fn string(&mut self) -> Option<String> {
        let quote = self.rest.chars().next().filter(|first| matches!(first, '"' | '\''))?;
        let (text, after) = self.rest[1..].split_once(quote)?;
        if text.is_empty() && after.starts_with(quote) || text.contains(['\\', '\n']) {
            return None;
        }
        self.rest = after;
        Some(text.to_owned())
    }

    /// Passes white space and comments.
    fn skip_blank(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            match self.rest.strip_prefix('#') {
                Some(comment) => self.rest = comment.split_once('\n').map_or("", |(_, after)| after),
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn literals_are_read_and_nothing_else() {
        let table = [
            ("T = []", "[]"),
            ("X = 1\nT: dict = {'a': ('b', \"c\",), # d\n 'e': [],}\nY = 2", r#"{"a":["b","c"],"e":[]}"#),
            ("TT = []", "no line sets T"),
            ("def f():\n    T = []", "no line sets T"),
            ("T: list", "T is set to nothing on its line"),
            ("T = [\n  'a',\n  f(),\n]", "line 3: T holds more than dictionaries, lists, tuples and strings"),
            ("T = ['a\\n']", "line 1: T holds more than dictionaries, lists, tuples and strings"),
            ("T = ['a' 'b']", "line 1: T holds more than dictionaries, lists, tuples and strings"),
            ("T = ['a'", "line 1: T holds more than dictionaries, lists, tuples and strings"),
            ("T = {'a' 'b'}", "line 1: T holds more than dictionaries, lists, tuples and strings"),
            ("T = '''a'''", "line 1: T holds more than dictionaries, lists, tuples and strings"),
        ];
        for (source, expected) in table {
            let found = assigned(source, "T").map_or_else(|error| error, |value| value.to_string());
            assert_eq!(found, expected, "{source}");
        }
        let deep = format!("T = {}", "[".repeat(100_000));
        assert!(assigned(&deep, "T").is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[\\[\\](){}'\",:#a\n\\PC]{0,40}") {
            assigned(&format!("T = {text}"), "T").ok();
        }
    }
}
