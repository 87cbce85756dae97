//! Under which name a model calls a tool.
//!
//! Providers allow few characters and 64 of them, and a request holds no two tools of one name. Names are given over a
//! whole catalog, so that a tool has the same one in every request, and a table leads back from each to its tool.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::ToolFormat;
use super::providers::{rename_keys, renamed};
use crate::catalog::SelectableItem;
use crate::text::sha256_hex;

/// The names under which the tools of a catalog are called, and the tools behind the names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallNames {
    names: BTreeMap<String, String>,
    ids: BTreeMap<String, String>,
    /// By the id of a tool, the original names of its arguments that are written under other names, by those.
    arguments: BTreeMap<String, BTreeMap<String, String>>,
}

/// What a provider allows as a name.
#[derive(Clone, Copy)]
struct Grammar {
    longest: usize,
    dots: bool,
    digit_first: bool,
}

impl Grammar {
    fn of(format: ToolFormat) -> Self {
        match format {
            ToolFormat::Mcp => Self { longest: 128, dots: true, digit_first: true },
            ToolFormat::Gemini => Self { longest: 64, dots: false, digit_first: false },
            _ => Self { longest: 64, dots: false, digit_first: true },
        }
    }

    /// The name itself when it is allowed, otherwise the nearest that is.
    fn fit(self, name: &str) -> String {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || self.dots && c == '.';
        let mut fitting: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
        let first = fitting.bytes().next();
        if first.is_none_or(|byte| !self.digit_first && (byte.is_ascii_digit() || byte == b'-')) {
            fitting.insert(0, '_');
        }
        if fitting.len() <= self.longest { fitting } else { self.marked(&fitting, name) }
    }

    /// A name cut to make room for a digest of `whole`.
    fn marked(self, fitting: &str, whole: &str) -> String {
        const DIGITS: usize = 8;
        let room = fitting.len().min(self.longest - DIGITS - 1);
        format!("{}_{}", &fitting[..room], &sha256_hex(whole.as_bytes())[..DIGITS])
    }
}

/// Names of what a conversation calls, as `format` takes them, by what they were: one that is allowed stays, of others each
/// gets the nearest that is allowed and of no other. `names` come in the order in which they were first said, so that
/// a name stays when a conversation grows.
#[must_use]
pub fn fitting_names<'n>(names: &[&'n str], format: ToolFormat) -> BTreeMap<&'n str, String> {
    fitting(names, Grammar::of(format))
}

/// As [`fitting_names`], for ids of calls of at most `longest` characters, 16 or more: letters, digits, `_` and `-`.
#[must_use]
pub fn fitting_ids<'n>(ids: &[&'n str], longest: usize) -> BTreeMap<&'n str, String> {
    fitting(ids, Grammar { longest: longest.max(16), dots: false, digit_first: true })
}

fn fitting<'n>(names: &[&'n str], grammar: Grammar) -> BTreeMap<&'n str, String> {
    let is_allowed = |name: &&&str| grammar.fit(name) == **name;
    let mut fitting: BTreeMap<&str, String> =
        names.iter().filter(is_allowed).map(|&name| (name, name.to_owned())).collect();
    let mut taken: BTreeSet<String> = fitting.values().cloned().collect();
    for &name in names {
        if fitting.contains_key(name) {
            continue;
        }
        let nearest = grammar.fit(name);
        let (mut new, mut whole) = (nearest.clone(), name.to_owned());
        while !taken.insert(new.clone()) {
            new = grammar.marked(&nearest, &whole);
            whole.push('~');
        }
        fitting.insert(name, new);
    }
    fitting
}

impl CallNames {
    /// The names of the callable items among `items` for `format`. A name that is allowed and of one tool stays as it is;
    /// tools that would share one get their namespace in front, or else a digest of their id behind. A choice card of
    /// `weaver-spec` names an item by its id. The order of `items` changes nothing.
    #[must_use]
    pub fn new(items: &[SelectableItem], format: ToolFormat) -> Self {
        let grammar = Grammar::of(format);
        let mut table = Self::default();
        let mut open: Vec<&SelectableItem> = items.iter().filter(|item| item.kind.is_callable()).collect();
        if format == ToolFormat::WeaverSpec {
            open.into_iter().for_each(|item| table.insert(item, item.id.clone()));
            return table;
        }
        let arguments = open.iter().map(|item| (item.id.clone(), renamed(item, format)));
        table.arguments = arguments.filter(|(_, names)| !names.is_empty()).collect();
        open.sort_unstable_by(|left, right| left.id.cmp(&right.id));
        open = table.give(open, |item| grammar.fit(&item.name));
        open = table.give(open, |item| grammar.fit(&format!("{}_{}", item.namespace, item.name)));
        for item in open {
            let mut whole = item.id.clone();
            let name = loop {
                let name = grammar.marked(&grammar.fit(&item.name), &whole);
                if !table.ids.contains_key(&name) {
                    break name;
                }
                whole.push('~');
            };
            table.insert(item, name);
        }
        table
    }

    /// Every tool under its own name, whatever characters it has and how many tools share it.
    #[must_use]
    pub fn as_they_are() -> Self {
        Self::default()
    }

    /// The name under which the tool with this id is called.
    #[must_use]
    pub fn name(&self, id: &str) -> Option<&str> {
        self.names.get(id).map(String::as_str)
    }

    /// The id of the tool that is called under this name.
    #[must_use]
    pub fn id(&self, name: &str) -> Option<&str> {
        self.ids.get(name).map(String::as_str)
    }

    /// The original names of those arguments of the tool with this id that its provider gets under other names, by
    /// those;
    /// `None` if all have their own.
    #[must_use]
    pub fn arguments(&self, id: &str) -> Option<&BTreeMap<String, String>> {
        self.arguments.get(id)
    }

    /// Gives the arguments of a call of the tool with this id the names that the tool knows.
    pub fn restore(&self, id: &str, arguments: &mut Map<String, Value>) {
        if let Some(names) = self.arguments(id) {
            rename_keys(arguments, &names.iter().map(|(new, original)| (new.as_str(), original.as_str())).collect());
        }
    }

    /// Every name and the id behind it, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.ids.iter().map(|(name, id)| (name.as_str(), id.as_str()))
    }

    /// Gives `items` their candidates where no other wants the same one and no earlier one has it, and gives back those
    /// that have no name yet. Of several, one whose own name the candidate is comes first.
    fn give<'i>(
        &mut self,
        items: Vec<&'i SelectableItem>,
        candidate: impl Fn(&SelectableItem) -> String,
    ) -> Vec<&'i SelectableItem> {
        let mut wanted: BTreeMap<String, Vec<&SelectableItem>> = BTreeMap::new();
        for item in items {
            wanted.entry(candidate(item)).or_default().push(item);
        }
        let mut open = Vec::new();
        for (name, mut items) in wanted {
            let mut own = items.iter().enumerate().filter(|(_, item)| item.name == name).map(|(position, _)| position);
            let first = match (items.len(), own.next(), own.next()) {
                (1, ..) => Some(0),
                (_, Some(position), None) => Some(position),
                _ => None,
            };
            if let Some(first) = first.filter(|_| !self.ids.contains_key(&name)) {
                self.insert(items.remove(first), name);
            }
            open.extend(items);
        }
        open
    }

    fn insert(&mut self, item: &SelectableItem, name: String) {
        self.names.insert(item.id.clone(), name.clone());
        self.ids.insert(name, item.id.clone());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(tools: &[(&str, &str)], format: ToolFormat) -> Vec<String> {
        let items: Vec<SelectableItem> = tools
            .iter()
            .map(|(space, name)| SelectableItem::tool(&format!("{space}:{name}"), space, name, ""))
            .collect();
        let table = CallNames::new(&items, format);
        items.iter().map(|item| table.name(&item.id).unwrap().to_owned()).collect()
    }

    #[test]
    fn names_are_as_near_as_the_provider_allows() {
        let long = "x".repeat(80);
        let tools = [
            ("s", "plain"),
            ("s", "git.log"),
            ("s", "7zip"),
            ("a", "search"),
            ("b", "search"),
            ("s", "a.b"),
            ("s", "a_b"),
            ("s", "größe"),
            ("s", "x/y"),
            ("s", "x y"),
            ("s", &long),
            ("a", "b_c"),
            ("a_b", "c"),
            ("z", "b_c"),
            ("z", "c"),
        ];
        insta::assert_snapshot!(names(&tools, ToolFormat::OpenAi).join("\n"), @r"
        plain
        git_log
        7zip
        a_search
        b_search
        s_a_b
        a_b
        gr__e
        x_y_8cefbaf9
        x_y_62ed6265
        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_d929cdee
        b_c_7b2a61b0
        c_b42d7d0b
        z_b_c
        z_c
        ");
        insta::assert_snapshot!(names(&tools[..3], ToolFormat::Gemini).join(" "), @"plain git_log _7zip");
        insta::assert_snapshot!(names(&tools[1..6], ToolFormat::Mcp).join(" "), @"git.log 7zip a_search b_search a.b");
    }

    #[test]
    fn what_a_conversation_calls_gets_names_that_providers_take() {
        let long = "a".repeat(70);
        let names = ["a/b", "read", "a.b", "a_b", "9 lives", &long];
        let shown = |names: BTreeMap<&str, String>| {
            names.iter().map(|(name, new)| format!("{name:.10} -> {new}")).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(shown(fitting_names(&names, ToolFormat::Gemini)), @r"
        9 lives -> _9_lives
        a.b -> a_b_2e7336dc
        a/b -> a_b_c14cddc0
        a_b -> a_b
        aaaaaaaaaa -> aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_6bd5e503
        read -> read
        ");
        insta::assert_snapshot!(shown(fitting_ids(&["call:1", "call_1", "x", &long], 40)), @r"
        aaaaaaaaaa -> aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_6bd5e503
        call:1 -> call_1_0af63155
        call_1 -> call_1
        x -> x
        ");
        assert_eq!(fitting_names(&[""], ToolFormat::Anthropic)[""], "_");
        // Names that come later change none, unless they are allowed.
        let of = |names: &[&'static str]| fitting_names(names, ToolFormat::Anthropic);
        let (few, all) = (of(&["a/b", "read", "a.b"]), of(&["a/b", "read", "a.b", "a b", "9 lives"]));
        assert!(few.iter().all(|(name, new)| all[name] == *new));
    }

    proptest! {
        #[test]
        fn every_name_is_allowed_and_leads_back(
            tools in proptest::collection::btree_set(("[ab_]{1,3}", "[ab_. /ü7]{1,5}|[ab]{62,70}"), 1..30),
        ) {
            for (format, longest) in [(ToolFormat::OpenAi, 64), (ToolFormat::Gemini, 64), (ToolFormat::Mcp, 128)] {
                let mut items: Vec<SelectableItem> = tools
                    .iter()
                    .map(|(space, name)| SelectableItem::tool(&format!("{space}:{name}"), space, name, ""))
                    .collect();
                let table = CallNames::new(&items, format);
                for item in &items {
                    let name = table.name(&item.id).unwrap();
                    prop_assert!((1..=longest).contains(&name.len()), "{}", name);
                    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b) || longest > 64 && b == b'.';
                    prop_assert!(name.bytes().all(allowed), "{}", name);
                    prop_assert!(format != ToolFormat::Gemini || !name.as_bytes()[0].is_ascii_digit());
                    prop_assert_eq!(table.id(name), Some(item.id.as_str()));
                }
                prop_assert_eq!(table.iter().count(), items.len());
                items.reverse();
                prop_assert_eq!(CallNames::new(&items, format), table);
            }
        }
    }
}
