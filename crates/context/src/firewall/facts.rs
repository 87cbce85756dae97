//! Takes statements from a result for the fact store: few, short, and never one per row of a table.
//!
//! From structured data: the scalars at the top, or those inside an outermost object with a single key, but no texts that
//! are empty, longer than a fact, or encoded. From text:
//! `key: value` and `key=value` lines whose key occurs once (a repeated key is a column), and numbered or bulleted
//! lines where there are few. Only the beginning of a text is read, since facts there are about the whole.

use std::collections::HashSet;

use rustc_hash::FxHashMap;

use crate::config::FirewallConfig;
use crate::event::{Fact, ItemId};
use crate::literal::{Document, Kind, Value};

/// The number of bytes of a text that are read.
const MOST_READ: usize = 64 * 1024;

/// The number of list entries beyond which a list is data.
const MOST_ENTRIES: usize = 12;

/// The number of words of a key at most, and of its characters.
const MOST_KEY_WORDS: usize = 4;
const MOST_KEY_CHARS: usize = 40;

/// The letters and digits of a SHA-256 digest. More of them without a blank are encoded data.
const LONGEST_CODE: usize = 64;

/// The facts of `content`, in its order, without duplicates. `document` is the content as a literal, if it is one.
pub(super) fn facts(content: &str, document: Option<&Document<'_>>, config: &FirewallConfig) -> Vec<String> {
    let found = match document {
        Some(document) => of_value(document.root(), config),
        None => of_text(content),
    };
    let mut known = HashSet::new();
    let clipped = found.into_iter().map(|fact| clip(&fact, config.max_fact_chars));
    clipped.filter(|fact| !fact.is_empty() && known.insert(fact.clone())).take(config.max_facts).collect()
}

/// The facts of the result `item` as the fact store keeps them: with keys `<item id>:fact:<number>`.
#[must_use]
pub fn fact_records(item: &ItemId, facts: &[String]) -> Vec<Fact> {
    let record =
        |(number, value): (usize, &String)| Fact { key: format!("{item}:fact:{number}"), value: value.clone() };
    facts.iter().enumerate().map(record).collect()
}

/// The scalars at the top. The members of an object that is the only member of another one are at the top, too.
fn of_value(mut value: Value<'_>, config: &FirewallConfig) -> Vec<String> {
    while value.kind() == Kind::Object
        && value.len() == 1
        && let Some(inner) = value.items().next().filter(|inner| inner.kind() == Kind::Object)
    {
        value = inner;
    }
    let scalars = value.members().filter(|(_, value)| !value.is_container() && value.kind() != Kind::Null);
    let said = scalars.map(|(key, value)| (key, value.plain())).filter(|(_, said)| is_statement(said, config));
    said.map(|(key, said)| format!("{}: {said}", key.plain())).take(config.max_facts).collect()
}

/// Whether a value says something by itself: the beginning of a long text does not, nor does a text in base64.
fn is_statement(value: &str, config: &FirewallConfig) -> bool {
    let is_code = |c: char| c.is_ascii_alphanumeric() || "+/=_-".contains(c);
    let is_encoded = value.len() > LONGEST_CODE && value.chars().all(is_code);
    !value.trim().is_empty() && value.chars().nth(config.max_fact_chars).is_none() && !is_encoded
}

fn of_text(content: &str) -> Vec<String> {
    let read = content.get(..content.floor_char_boundary(MOST_READ)).unwrap_or_default();
    let lines: Vec<&str> = read.lines().map(str::trim_end).collect();
    let mut times: FxHashMap<&str, usize> = FxHashMap::default();
    for (key, _) in lines.iter().filter_map(|line| key_and_value(line)) {
        *times.entry(key).or_default() += 1;
    }
    let few = lines.iter().filter(|line| list_entry(line).is_some()).count() <= MOST_ENTRIES;
    let fact = |line: &&str| match key_and_value(line) {
        Some((key, value)) => (times.get(key) == Some(&1)).then(|| format!("{key}: {value}")),
        None => list_entry(line).filter(|_| few).map(str::to_owned),
    };
    lines.iter().filter_map(fact).collect()
}

/// Parses `key: value` or `key=value` from the beginning of the line.
fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let at = memchr::memchr2(b':', b'=', line.as_bytes())?;
    let (key, rest) = line.split_at(at);
    let (key, value) = (key.trim_end(), rest.get(1..)?);
    // In `https://`, `12:30`, `a::b`, `==` and `=>` the sign separates no key from a value.
    let separated = if rest.starts_with(':') {
        value.starts_with([' ', '\t'])
    } else {
        !key.contains(' ') && !value.starts_with(['=', '>'])
    };
    let word = |c: char| c.is_alphanumeric() || " _-./".contains(c);
    let is_key = key.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && key.chars().all(word)
        && key.chars().count() <= MOST_KEY_CHARS
        && key.split(' ').count() <= MOST_KEY_WORDS;
    let value = value.trim();
    // A line of code that opens a block says nothing yet.
    let ends = !value.is_empty() && !value.ends_with(['{', '[', '(']);
    (separated && is_key && ends).then_some((key, value))
}

/// The text of a numbered or bulleted line.
fn list_entry(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match line.get(digits..)? {
        rest if digits > 0 => rest.strip_prefix(['.', ')'])?,
        rest => rest.strip_prefix(['-', '*', '•'])?,
    };
    rest.strip_prefix(' ').map(str::trim).filter(|text| !text.is_empty())
}

/// One line of at most `most` characters.
pub(super) fn clip(text: &str, most: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(most) {
        None => text,
        Some(_) => {
            let mut kept: String = text.chars().take(most.saturating_sub(1)).collect();
            if most > 0 {
                kept.push('…');
            }
            kept
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn taken(content: &str) -> Vec<String> {
        facts(content, Document::parse_any(content).ok().as_ref(), &FirewallConfig::default())
    }

    #[test]
    fn facts_are_the_statements_that_stand_alone() {
        let texts = [
            r#"{"temperature": 36, "conditions": "Light rain", "hours": [1, 2], "wind": null, "ok": true}"#,
            r#"{"result": {"status": "done", "count": 42}}"#,
            "[{'id': 1, 'name': 'a'}, {'id': 2, 'name': 'b'}]",
            "size: 225570\nmodified: Mon Jul 24\npermissions: 644\nsee https://example.org/a?b=c\nat 12:30 it was::so\n  indented: no",
            "Commit: 1\nAuthor: a\nCommit: 2\nAuthor: b\nBranch: main",
            "LANG=C\nA == B\nx => y\nlet name = value",
            "Steps\n1. open\n2) close\n- done\n-not an entry",
        ];
        let shown: Vec<String> = texts.iter().map(|text| taken(text).join(" | ")).collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        temperature: 36 | conditions: Light rain | ok: true
        status: done | count: 42

        size: 225570 | modified: Mon Jul 24 | permissions: 644
        Branch: main
        LANG: C
        open | close | done
        ");
    }

    #[test]
    fn a_value_that_says_nothing_by_itself_is_no_fact() {
        let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        let content = serde_json::json!({
            "stdout": "Compiling\n".repeat(40),
            "stderr": "",
            "exit_code": 101,
            "data": "iVBORw0KGgo".repeat(9),
            "sha256": digest,
            "see": format!("https://example.org/{}", "part/".repeat(20)),
        });
        let expected = [
            "exit_code: 101".to_owned(),
            format!("see: https://example.org/{}", "part/".repeat(20)),
            format!("sha256: {digest}"),
        ];
        let mut facts = taken(&content.to_string());
        facts.sort_unstable();
        assert_eq!(facts, expected);
    }

    #[test]
    fn facts_are_bounded() {
        let many: String = (0..50_000).map(|number| format!("key {number}: {}\n", "value ".repeat(100))).collect();
        let facts = taken(&many);
        assert_eq!(facts.len(), 32);
        assert!(facts.iter().all(|fact| fact.chars().count() == 200), "{facts:?}");
        let list: String = (0..100).map(|number| format!("- entry {number}\n")).collect();
        assert_eq!(taken(&list), [""; 0]);
        let records = fact_records(&ItemId::from("result:tc1"), &["a: 1".to_owned()]);
        assert_eq!(records, [Fact { key: "result:tc1:fact:0".to_owned(), value: "a: 1".to_owned() }]);
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_bounds(content in "(\\PC|[\\n\\t:=.\\-0-9]|[a-z]{1,6}: ){0,80}", max_facts in 0usize..5, max_fact_chars in 0usize..12) {
            let config = FirewallConfig { max_facts, max_fact_chars, ..FirewallConfig::default() };
            let facts = facts(&content, Document::parse_any(&content).ok().as_ref(), &config);
            prop_assert!(facts.len() <= max_facts);
            prop_assert!(facts.iter().all(|fact| fact.chars().count() <= max_fact_chars && !fact.contains('\n')));
        }
    }
}
