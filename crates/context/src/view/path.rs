//! Paths to values: JSON Pointer (RFC 6901) and the commonly used part of JSONPath (RFC 9535).
//!
//! Supported of JSONPath: `.name`, `['name']`, `[3]`, `[-1]`, `[1:5]`, `.*`, `[*]`, `..name`, `..*`, and filters with
//! one comparison, `[?(@.name == 'x')]` with `==`, `!=`, `<`, `<=`, `>`, `>=`, or `[?(@.name)]` for presence. Not
//! supported: unions, functions, boolean operators, steps in slices.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::str::FromStr;

use rustc_hash::FxHashSet;

use crate::literal::{Decimal, Dialect, Document, Kind, Value};

/// Steps of a path, at most: each may visit the whole document.
const MOST_STEPS: usize = 64;

/// The steps from the outermost value to values within it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// A key of an object or, where a pointer meets an array, an index.
    Key(String),
    Index(i64),
    Slice(i64, Option<i64>),
    Every,
    /// The value and everything within it.
    Descend,
    Filter {
        at: Vec<String>,
        test: Test,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Present,
    Compare(Comparison, Operand),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operand {
    Text(String),
    Number(String),
    /// One of `true`, `false` and `null`.
    Word(String),
}

/// A text is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the path `{path}` does not read at byte {at}: {reason}; write a JSON Pointer (/rows/3/name) or a JSONPath ($.rows[3].name)"
)]
pub struct PathError {
    path: String,
    at: usize,
    reason: &'static str,
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Ok(Self { steps: Vec::new() });
        }
        if let Some(pointer) = text.strip_prefix('/') {
            let steps = pointer.split('/').map(|part| Step::Key(part.replace("~1", "/").replace("~0", "~"))).collect();
            return Ok(Self { steps });
        }
        let mut reader = Reader { text, at: usize::from(text.starts_with('$')) };
        let mut steps = Vec::new();
        // A path may leave out `$.`, as people do.
        if reader.at == 0 && !text.starts_with(['.', '[']) {
            steps.push(Step::Key(reader.name()?));
        }
        while !reader.rest().is_empty() {
            if steps.len() >= MOST_STEPS {
                return Err(reader.error("it has more than 64 steps"));
            }
            reader.step(&mut steps)?;
        }
        Ok(Self { steps })
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn error(&self, reason: &'static str) -> PathError {
        PathError { path: self.text.to_owned(), at: self.at, reason }
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// The text up to the first of `ends`, or to the end of the path.
    fn until(&mut self, ends: &[char]) -> String {
        let end = self.rest().find(ends).unwrap_or(self.rest().len());
        let taken = self.rest().get(..end).unwrap_or_default().to_owned();
        self.at += end;
        taken
    }

    fn name(&mut self) -> Result<String, PathError> {
        let name = self.until(&['.', '[', ']']);
        if name.is_empty() { Err(self.error("a name is missing")) } else { Ok(name) }
    }

    fn step(&mut self, steps: &mut Vec<Step>) -> Result<(), PathError> {
        if self.eat("..") {
            steps.push(Step::Descend);
            if self.rest().starts_with('[') {
                return Ok(());
            }
            return self.member(steps);
        }
        if self.eat(".") {
            return self.member(steps);
        }
        if !self.eat("[") {
            return Err(self.error("`.` or `[` is missing"));
        }
        self.spaces();
        let step = if self.eat("*") {
            Step::Every
        } else if self.eat("?") {
            self.filter()?
        } else if self.rest().starts_with(['\'', '"']) {
            Step::Key(self.quoted()?)
        } else {
            self.position()?
        };
        self.spaces();
        if !self.eat("]") {
            return Err(self.error("`]` is missing"));
        }
        steps.push(step);
        Ok(())
    }

    fn member(&mut self, steps: &mut Vec<Step>) -> Result<(), PathError> {
        steps.push(match self.name()? {
            name if name == "*" => Step::Every,
            name => Step::Key(name),
        });
        Ok(())
    }

    /// A name in quotes of either kind, with the escapes of JSON; behind any other backslash a character stands for itself.
    fn quoted(&mut self) -> Result<String, PathError> {
        let Some(quote) = self.rest().chars().next() else { return Err(self.error("a name is missing")) };
        self.at += 1;
        let mut name = String::new();
        let mut json = String::new();
        let mut escaped = false;
        let mut taken = 0;
        let mut closed = false;
        for character in self.rest().chars() {
            taken += character.len_utf8();
            match character {
                '\\' if !escaped => escaped = true,
                _ if character == quote && !escaped => {
                    closed = true;
                    break;
                }
                _ => {
                    if character == '"' || (escaped && character != '\'') {
                        json.push('\\');
                    }
                    json.push(character);
                    name.push(character);
                    escaped = false;
                }
            }
        }
        if !closed {
            return Err(self.error("a quote is not closed"));
        }
        self.at += taken;
        Ok(serde_json::from_str(&format!("\"{json}\"")).unwrap_or(name))
    }

    fn position(&mut self) -> Result<Step, PathError> {
        let before = self.at;
        let inside = self.until(&[']']);
        let error = PathError { at: before, ..self.error("an index, a slice, a quoted name, `*` or `?` is missing") };
        let whole = |text: &str| text.trim().parse::<i64>().map_err(|_| error.clone());
        match inside.split_once(':') {
            None => Ok(Step::Index(whole(&inside)?)),
            Some((start, end)) => {
                let start = if start.trim().is_empty() { 0 } else { whole(start)? };
                let end = if end.trim().is_empty() { None } else { Some(whole(end)?) };
                Ok(Step::Slice(start, end))
            }
        }
    }

    fn filter(&mut self) -> Result<Step, PathError> {
        self.spaces();
        let bracketed = self.eat("(");
        self.spaces();
        if !self.eat("@") {
            return Err(self.error("a filter begins with `@`"));
        }
        let mut at = Vec::new();
        loop {
            if self.eat(".") {
                let name = self.until(&['.', '[', ']', ')', '=', '!', '<', '>', ' ']);
                if name.is_empty() {
                    return Err(self.error("a name is missing"));
                }
                at.push(name);
            } else if self.rest().starts_with("['") || self.rest().starts_with("[\"") {
                self.at += 1;
                at.push(self.quoted()?);
                if !self.eat("]") {
                    return Err(self.error("`]` is missing"));
                }
            } else {
                break;
            }
        }
        self.spaces();
        let operators = [
            ("==", Comparison::Equal),
            ("!=", Comparison::Unequal),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let operator = operators.into_iter().find(|(token, _)| self.eat(token)).map(|(_, comparison)| comparison);
        let test = match operator {
            None => Test::Present,
            Some(comparison) => {
                self.spaces();
                Test::Compare(comparison, self.operand()?)
            }
        };
        self.spaces();
        if bracketed && !self.eat(")") {
            return Err(self.error("`)` is missing"));
        }
        Ok(Step::Filter { at, test })
    }

    fn operand(&mut self) -> Result<Operand, PathError> {
        if self.rest().starts_with(['\'', '"']) {
            return Ok(Operand::Text(self.quoted()?));
        }
        let before = self.at;
        let word = self.until(&[')', ']', ' ']);
        match word.as_str() {
            "true" | "false" | "null" => Ok(Operand::Word(word)),
            _ if Decimal::parse(&word).is_some() => Ok(Operand::Number(word)),
            _ => Err(PathError { at: before, ..self.error("a quoted text, a number, true, false or null is missing") }),
        }
    }
}

impl Path {
    /// The values that the path leads to, in the order of the document.
    #[must_use]
    pub fn values<'d>(&self, root: Value<'d>) -> Vec<Value<'d>> {
        self.steps.iter().fold(vec![root], |values, step| step.apply(values))
    }

    /// The text that stands in the way of the path, with the steps that are left.
    pub(super) fn beyond_text<'d>(&self, root: Value<'d>) -> Option<(Cow<'d, str>, Self)> {
        let mut values = vec![root];
        for (taken, step) in self.steps.iter().enumerate() {
            if let [value] = values.as_slice()
                && let Some(text) = value.string()
            {
                return Some((text, Self { steps: self.steps.get(taken..)?.to_vec() }));
            }
            values = step.apply(values);
        }
        None
    }

    /// How far the path leads, and what is there: for the message when it leads to nothing.
    #[must_use]
    pub fn nearest(&self, root: Value<'_>) -> String {
        let mut values = vec![root];
        for (taken, step) in self.steps.iter().enumerate() {
            let next = step.apply(values.clone());
            if next.is_empty() {
                let here = values.first().map_or("nothing".to_owned(), |value| match value.kind() {
                    Kind::Object => {
                        let keys: Vec<String> =
                            value.members().take(12).map(|(key, _)| key.plain().into_owned()).collect();
                        let more = if value.len() > keys.len() { " …" } else { "" };
                        format!("an object with the keys {}{more}", keys.join(", "))
                    }
                    Kind::Array => format!("an array of {}", value.len()),
                    _ => "a scalar".to_owned(),
                });
                return format!("after {taken} of {} steps there is {here}", self.steps.len());
            }
            values = next;
        }
        "the path leads to no value".to_owned()
    }
}

impl Step {
    fn apply<'d>(&self, values: Vec<Value<'d>>) -> Vec<Value<'d>> {
        let mut found = Vec::new();
        // Values within others are reached from each of them, and are shown once: of two steps that descend the second
        // would see each value as often as there are values around it.
        let mut seen = FxHashSet::default();
        for value in values {
            match self {
                Self::Key(key) => match value.kind() {
                    Kind::Object => found.extend(value.get(key)),
                    Kind::Array => found.extend(key.parse().ok().and_then(|index| value.at(index))),
                    _ => {}
                },
                Self::Index(index) => {
                    let place = usize::try_from(*index)
                        .ok()
                        .or_else(|| value.len().checked_sub(usize::try_from(index.unsigned_abs()).ok()?));
                    found.extend(place.and_then(|place| value.at(place)));
                }
                Self::Slice(start, end) if value.kind() == Kind::Array => {
                    let (start, end) = super::units::resolve(*start, *end, value.len());
                    found.extend(value.items().take(end).skip(start));
                }
                Self::Slice(..) => {}
                Self::Every => found.extend(value.items()),
                Self::Descend => descend(value, &mut seen, &mut found),
                Self::Filter { at, test } => found.extend(value.items().filter(|item| test.holds(*item, at))),
            }
        }
        found
    }
}

/// `value` and everything within it that was not seen, in the order of the document.
fn descend<'d>(value: Value<'d>, seen: &mut FxHashSet<u32>, found: &mut Vec<Value<'d>>) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        // What is within a value that was seen was seen with it.
        if !seen.insert(value.place()) {
            continue;
        }
        found.push(value);
        let children: Vec<Value<'d>> = value.items().collect();
        open.extend(children.into_iter().rev());
    }
}

impl Test {
    fn holds(&self, item: Value<'_>, at: &[String]) -> bool {
        let found = at.iter().try_fold(item, |value, key| value.get(key));
        match (self, found) {
            (Self::Present, found) => found.is_some(),
            // What is not there differs from every value, and is neither less nor greater.
            (Self::Compare(comparison, _), None) => *comparison == Comparison::Unequal,
            (Self::Compare(comparison, operand), Some(value)) => comparison.holds(value, operand),
        }
    }
}

impl Comparison {
    fn holds(self, value: Value<'_>, operand: &Operand) -> bool {
        let order = match operand {
            Operand::Text(text) if value.kind() == Kind::String => Some(value.plain().as_ref().cmp(text)),
            Operand::Number(number) => value.number().and_then(|found| order_of(found, number)),
            Operand::Word(word) if matches!(value.kind(), Kind::Bool | Kind::Null) => {
                let written = Document::parse(word, Dialect::Json).is_ok_and(|document| document.root().same(value));
                written.then_some(Ordering::Equal)
            }
            _ => None,
        };
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::Unequal => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

/// The order of two numbers. Those with too many digits for an exact comparison are compared as closely as floating
/// point does.
fn order_of(left: &str, right: &str) -> Option<Ordering> {
    if let (Some(left), Some(right)) = (Decimal::parse(left), Decimal::parse(right)) {
        return Some(left.cmp(&right));
    }
    let read = |text: &str| text.parse::<f64>().ok();
    read(left).zip(read(right)).and_then(|(left, right)| left.partial_cmp(&right))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::summary::selector_path;

    const DOCUMENT: &str = r#"{"rows": [{"id": 1, "name": "a.b", "ok": true}, {"id": 2, "name": "c", "ok": null, "in": {"deep": [7, 8]}}], "a/b": {"m~n": 5}, "id": 9}"#;

    fn found(path: &str) -> String {
        let document = Document::parse_any(DOCUMENT).unwrap();
        match path.parse::<Path>() {
            Ok(path) => path.values(document.root()).iter().map(|value| value.text()).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn filters_compare_exactly_and_tell_what_is_absent() {
        const ROWS: &str = r#"[{"n": "a", "id": 1234567890123456711, "x": 0.1}, {"n": "b", "id": 1234567890123456712, "ok": false},
            {"n": "c", "id": 12345678901234567110e-1, "x": null}, {"n": "d", "id": "1234567890123456711", "ok": true}, 7]"#;
        let document = Document::parse_any(ROWS).unwrap();
        for (filter, names) in [
            ("@.id == 1234567890123456711", "a c"),
            ("@.id != 1234567890123456711", "b d"),
            ("@.id > 1234567890123456711", "b"),
            ("@.id <= 1234567890123456711", "a c"),
            ("@.id < 1e400", "a b c"),
            ("@.id == 1234567890123456700", ""),
            ("@.x == 0.10", "a"),
            ("@.x != 'y'", "a b c d"),
            ("@.x != null", "a b d"),
            ("@.x == null", "c"),
            ("@.x < 1", "a"),
            ("@.zzz != 'x'", "a b c d"),
            ("@.zzz == 'x'", ""),
            ("@.zzz >= 0", ""),
            ("@.zzz == null", ""),
            ("@.ok < true", ""),
            ("@.ok <= true", "d"),
            ("@.ok != true", "a b c"),
        ] {
            let path: Path = format!("$[?({filter})].n").parse().unwrap();
            let found: Vec<_> = path.values(document.root()).iter().map(|value| value.plain().into_owned()).collect();
            assert_eq!(found.join(" "), names, "{filter}");
        }
    }

    #[test]
    fn paths_lead_to_values() {
        for (path, values) in [
            ("/rows/1/name", "\"c\""),
            ("/a~1b/m~0n", "5"),
            ("$.rows[0].id", "1"),
            ("rows[0].id", "1"),
            ("$['rows'][-1]['in'].deep[0]", "7"),
            ("$.rows[*].id", "1 2"),
            ("$.rows[0:1].id", "1"),
            ("$.rows[-1:].id", "2"),
            ("$..id", "9 1 2"),
            ("$..deep[*]", "7 8"),
            ("$.rows[?(@.id == 2)].name", "\"c\""),
            ("$.rows[?(@.name=='a.b')].id", "1"),
            ("$.rows[?@.ok == null].id", "2"),
            ("$.rows[?(@.id >= 1.5)].id", "2"),
            ("$.rows[?(@.id != 1)].id", "2"),
            ("$.rows[?(@.in.deep)].id", "2"),
            ("$['a/b'].*", "5"),
            (r#"$["a\/b"]['m\u007en']"#, "5"),
            (r"$['r\ows'][0].id", "1"),
            (r"$['\nows'][0].id", ""),
            ("/nothing", ""),
            ("$.rows[7]", ""),
            ("$.rows[-7]", ""),
        ] {
            assert_eq!(found(path), values, "{path}");
        }
        assert_eq!(found("$"), DOCUMENT);
        assert_eq!(found(""), DOCUMENT);
    }

    #[test]
    fn what_is_no_path_is_refused_by_place() {
        let reason = |path: &str| path.parse::<Path>().map(|_| ()).map_err(|error| (error.at, error.reason));
        for (path, at) in [
            ("$.rows[", 7),
            ("$.rows[x]", 7),
            ("$.rows['x", 8),
            ("$.", 2),
            ("$x", 1),
            ("$[?(name)]", 4),
            ("$[?(@.a == b)]", 11),
            ("$[1:2:3]", 2),
        ] {
            assert_eq!(reason(path).map_err(|(at, _)| at), Err(at), "{path} {:?}", reason(path));
        }
    }

    #[test]
    fn a_path_that_leads_nowhere_says_how_far_it_leads() {
        let document = Document::parse_any(DOCUMENT).unwrap();
        let path: Path = "$.rows[1].in.depth".parse().unwrap();
        assert_eq!(path.nearest(document.root()), "after 3 of 4 steps there is an object with the keys deep");
    }

    #[test]
    fn steps_that_descend_visit_each_value_once() {
        let nested = (0..300).fold("5".to_owned(), |inner, _| format!("{{\"a\": {inner}}}"));
        let document = Document::parse_any(&nested).unwrap();
        let count = |path: &str| path.parse::<Path>().unwrap().values(document.root()).len();
        let start = std::time::Instant::now();
        assert_eq!((count("$..a"), count("$..a..a"), count("$..a..a..a..a..a")), (300, 299, 296));
        assert_eq!(count(&"..*".repeat(32)), 269);
        assert!(start.elapsed() < std::time::Duration::from_secs(2), "{:?}", start.elapsed());
        assert!("..*".repeat(33).parse::<Path>().is_err());
    }

    proptest! {
        #[test]
        fn the_path_of_a_key_leads_to_it(key in "[ $*?.()\\[\\]'\"\\\\/@a-c0\n\t\u{1}\u{e9}-]{0,12}|[a.]{130}") {
            let inner = serde_json::json!({"other": [1], key.as_str(): {"x": [2]}});
            let written = serde_json::json!({"in": inner}).to_string();
            let document = Document::parse(&written, Dialect::Json).unwrap();
            let path = format!("{}.x", selector_path("$.in", &key));
            let found: Vec<_> = path.parse::<Path>().unwrap().values(document.root()).iter().map(|at| at.text()).collect();
            prop_assert_eq!(found, ["[2]"], "{}", path);
        }

        #[test]
        fn any_text_is_a_path_or_an_error(text in "[$.\\[\\]*?@()a-c0-9'\"=<>! :/~-]{0,24}") {
            let document = Document::parse_any(DOCUMENT).unwrap();
            if let Ok(path) = text.parse::<Path>() {
                let _ = path.values(document.root());
                let _ = path.nearest(document.root());
            }
        }
    }
}
