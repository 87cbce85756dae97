//! Which tools of a catalog are copies of one another: the same job offered by several servers, or by one server in
//! several versions.
//!
//! Where a hundred servers offer the same tool, its copies fill the first ten places and push everything else out. So
//! copies form a group; a ranking shows the best of them for the query and names the others as its alternatives.
//!
//! Two tools are copies when they agree in all of these:
//!
//! - the words of their names, in order (`sync_a_with_b` is not `sync_b_with_a`), apart from leading words that are
//!   those of the server and from version marks (`v2`). A plain number tells tools apart: `songs of the 80s`. A
//!   namespace that was inferred from the name is part of the name and no server: `create` of `create_invoice_v2`;
//! - the names of their arguments;
//! - three quarters of the distinct words of name and description together, numbers aside. In a text of two or three
//!   words a quarter is less than a word, so a text that says everything the other says and one word more counts as
//!   similar too. A single word is too little for that: it would make a `search` described by nothing else a copy of
//!   other tools;
//! - the place they are about: a description that names its own server where the other does not name it is about that
//!   server's things, as the products of one shop are not those of another.
//!
//! All are required because each alone is common among tools that are not copies: every server has a `search`, and the
//! tools of one server are described alike.
//!
//! Groups are made in the order of ids and around their first member, so the order of loading changes nothing and no
//! chain of similar tools joins two that differ. Not here: what the copies of a tool differ in, which the reader of the
//! alternatives has to find out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use contextweaver_core::catalog::{Catalog, SelectableItem};
use contextweaver_core::text::{Analyzer, TermSet, for_each_word, jaccard};

/// The share of words that copies must have in common.
const ALIKE: f64 = 0.75;

/// A tool is compared with at most this many groups of its names; tools beyond that stay on their own. Real catalogs
/// have a handful; without a bound, a hundred thousand tools of one name would take hours.
const MOST_COMPARED: usize = 256;

/// The groups of copies in one catalog.
#[derive(Debug)]
pub(super) struct CopyGroups {
    /// For every item the first item of its group.
    first: Vec<u32>,
    /// Every group of several items: its first item, and all of them in ascending order.
    members: BTreeMap<u32, Vec<u32>>,
}

/// What two copies have exactly in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Names {
    name: Vec<String>,
    arguments: BTreeSet<String>,
}

/// What two copies have nearly in common.
struct Words {
    /// The terms of the name, without the server, and of the description.
    words: TermSet,
    /// The terms of the description that name the server, hashed.
    place: Vec<u64>,
}

impl Words {
    fn of(item: &SelectableItem, names: &Names, analyzer: &Analyzer) -> Self {
        let description = without_numbers(&item.description);
        let place = TermSet::of(analyzer, item.server.as_deref().unwrap_or_default());
        let about = TermSet::of(analyzer, &description);
        Self {
            words: TermSet::of(analyzer, &format!("{} {description}", without_numbers(&names.name.join(" ")))),
            place: about.hashes().iter().filter(|term| place.hashes().binary_search(term).is_ok()).copied().collect(),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let names_all =
            |of: &Self, by: &Self| of.place.iter().all(|term| by.words.hashes().binary_search(term).is_ok());
        let shared = self.words.intersection(&other.words);
        let one_more = shared >= 2 && self.words.len() + other.words.len() - 2 * shared <= 1;
        (one_more || jaccard(&self.words, &other.words) >= ALIKE) && names_all(self, other) && names_all(other, self)
    }
}

impl CopyGroups {
    pub(super) fn of(catalog: &Catalog) -> Self {
        let analyzer = Analyzer::default();
        let mut groups: BTreeMap<Names, Vec<(u32, Words)>> = BTreeMap::new();
        let mut first = Vec::with_capacity(catalog.len());
        let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (item, number) in catalog.items().iter().zip(0..) {
            let names = Names::of(item, &analyzer);
            let said = Words::of(item, &names, &analyzer);
            let leaders = groups.entry(names).or_default();
            let leader = leaders.iter().take(MOST_COMPARED).find(|(_, other)| said.is_like(other));
            match leader.map(|(leader, _)| *leader) {
                Some(leader) => {
                    first.push(leader);
                    members.entry(leader).or_insert_with(|| vec![leader]).push(number);
                }
                None => {
                    first.push(number);
                    if leaders.len() < MOST_COMPARED {
                        leaders.push((number, said));
                    }
                }
            }
        }
        Self { first, members }
    }

    /// The group of an item, as the number of its first item.
    pub(super) fn of_item(&self, item: u32) -> u32 {
        self.first.get(item as usize).copied().unwrap_or(item)
    }

    /// The number of groups that `items` belong to.
    pub(super) fn count(&self, items: impl Iterator<Item = u32>) -> usize {
        items.map(|item| self.of_item(item)).collect::<BTreeSet<u32>>().len()
    }

    /// Keeps of every group the first in the order of the ranking, or one that must be kept.
    pub(super) fn fold<T>(&self, ranked: &mut Vec<T>, item: impl Fn(&T) -> u32, keep: impl Fn(u32) -> bool) {
        let kept = ranked.iter().map(&item).filter(|item| keep(*item));
        let mut seen: BTreeSet<u32> = kept.map(|item| self.of_item(item)).collect();
        ranked.retain(|one| keep(item(one)) || seen.insert(self.of_item(item(one))));
    }

    /// The other items of the group of `item`, in the order of their ids.
    pub(super) fn alternatives(&self, item: u32) -> impl Iterator<Item = u32> + '_ {
        let members = self.members.get(&self.of_item(item)).map(Vec::as_slice).unwrap_or_default();
        members.iter().copied().filter(move |other| *other != item)
    }
}

impl Names {
    fn of(item: &SelectableItem, analyzer: &Analyzer) -> Self {
        let place = stems(item.server.as_deref().unwrap_or_default(), analyzer);
        let mut name = stems(&item.name, analyzer);
        name.retain(|word| !is_version(word));
        let leading = name.iter().take_while(|word| place.contains(word)).count();
        // A name made of the server's words alone is what the tool is called.
        if leading < name.len() {
            name.drain(..leading);
        }
        let properties = item.args_schema.as_deref().and_then(|schema| schema.get("properties"));
        let properties = properties.and_then(Value::as_object).into_iter();
        Self { name, arguments: properties.flat_map(|properties| properties.keys().cloned()).collect() }
    }
}

fn stems(text: &str, analyzer: &Analyzer) -> Vec<String> {
    let mut stems = Vec::new();
    for_each_word(text, |word| stems.push(analyzer.stem(word).into_owned()));
    stems
}

fn without_numbers(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for_each_word(text, |word| {
        if !is_version(word) && !is_number(word) {
            words.push_str(word);
            words.push(' ');
        }
    });
    words
}

/// Whether a word is a version mark, such as `v2`.
fn is_version(word: &str) -> bool {
    word.strip_prefix('v').is_some_and(is_number)
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::json;

    use super::super::{CARD_CAP, Copies, Filter, Placement, Request, Route, Router, RoutingConfig, Scratch};
    use super::*;

    fn tool(namespace: &str, name: &str, description: &str, arguments: &[&str]) -> SelectableItem {
        let properties: serde_json::Map<String, Value> =
            arguments.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        SelectableItem {
            args_schema: Some(Arc::new(json!({ "properties": properties }))),
            server: Some(namespace.to_owned()),
            ..SelectableItem::tool(&format!("{namespace}:{name}#00000001"), namespace, name, description)
        }
    }

    fn groups(items: Vec<SelectableItem>) -> Vec<String> {
        let catalog = Catalog::new(items).unwrap();
        let groups = CopyGroups::of(&catalog);
        let id = |item: &u32| catalog.items()[*item as usize].id.replace("#00000001", "");
        groups.members.values().map(|items| items.iter().map(id).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn copies_agree_in_names_arguments_and_words() {
        let text = "Open a new issue in a repository of the forge";
        let items = vec![
            tool("a", "create_issue", text, &["title"]),
            tool("b", "b_createIssue", text, &["title"]),
            tool("c", "create_issue_v2", &format!("{text} (variant 2)"), &["title"]),
            tool("d", "create_issue", text, &["title", "body"]),
            tool("e", "open_issue", text, &["title"]),
            tool("f", "search", "Search mail", &[]),
            tool("g", "search", "Search pages", &[]),
        ];
        assert_eq!(groups(items), ["a:create_issue b:b_createIssue c:create_issue_v2"]);
    }

    #[test]
    fn one_word_more_makes_a_short_text_no_other_tool() {
        let items = vec![
            tool("a", "create_invoice", "Create an invoice", &["amount"]),
            tool("b", "create_invoice", "Create an invoice (variant 2)", &["amount"]),
            tool("c", "get_weather", "Get weather forecast", &["city"]),
            tool("d", "get_weather", "Get weather history", &["city"]),
            tool("e", "search", "", &["query"]),
            tool("f", "search", "Search mail", &["query"]),
        ];
        assert_eq!(groups(items), ["a:create_invoice b:create_invoice"]);
    }

    #[test]
    fn an_inferred_namespace_is_a_piece_of_the_name() {
        let inferred = |namespace: &str, name: &str| SelectableItem {
            server: None,
            ..tool(namespace, name, "Get the latest news headlines", &["topic"])
        };
        let items = vec![inferred("mcp", "get_news"), inferred("get", "get_news_v2"), inferred("get", "get_old_news")];
        assert_eq!(groups(items), ["get:get_news_v2 mcp:get_news"]);
    }

    #[test]
    fn what_differs_in_order_number_or_place_is_no_copy() {
        let text = "Calls the endpoint that brings both sides of the pair up to date";
        let items = vec![
            tool("api", "sync_spec_with_collection", text, &[]),
            tool("api", "sync_collection_with_spec", text, &[]),
            tool("charts", "songs_of_the_80s", "The greatest songs of all time", &[]),
            tool("charts", "songs_of_the_90s", "The greatest songs of all time", &[]),
            tool(
                "quantities_constants",
                "quantities_constants_get_all_quantities",
                "Return back data of all these",
                &[],
            ),
            tool(
                "quantities_constants",
                "quantities_constants_get_all_constants",
                "Return back data of all these",
                &[],
            ),
            tool("safeway", "vegan_products", "Get available vegan products at the Safeway store", &[]),
            tool("walmart", "vegan_products", "Get available vegan products at the Walmart store", &[]),
            tool("playwright", "playwright_evaluate", "Execute JavaScript in the browser console", &[]),
            tool("puppeteer", "puppeteer_evaluate", "Execute JavaScript in the browser console", &[]),
        ];
        assert_eq!(groups(items), ["playwright:playwright_evaluate puppeteer:puppeteer_evaluate"]);
    }

    fn many() -> Vec<SelectableItem> {
        let copies =
            (0..40).map(|n| tool(&format!("s{n:02}"), "create_issue", "Open a new issue in a repository", &["title"]));
        let others = [
            tool("mail", "send_mail", "Send a letter about an issue", &["to"]),
            tool("forge", "list_issues", "List the issues of a repository", &[]),
        ];
        copies.chain(others).collect()
    }

    fn routed(items: Vec<SelectableItem>, copies: Copies, request: &Request) -> Route {
        let config = RoutingConfig { copies, semantic: 0.0, ..RoutingConfig::default() };
        Router::build(Arc::new(Catalog::new(items).unwrap()), config).unwrap().route(request).unwrap()
    }

    #[test]
    fn copies_share_a_place_and_are_named() {
        let request = |query: &str| Request { query: query.to_owned(), top_k: Some(3), ..Request::default() };
        let apart = routed(many(), Copies::Apart, &request("open a new issue"));
        assert!(apart.ids().iter().all(|id| id.contains("create_issue")), "{:?}", apart.ids());
        let together = routed(many(), Copies::Together, &request("open a new issue"));
        let shown: Vec<&str> = together.choices.iter().map(|choice| choice.card.name()).collect();
        assert_eq!(shown, ["create_issue", "list_issues", "send_mail"]);
        assert_eq!(together.ambiguity, None, "copies of one tool are no question");
        let line = together.choices[0].card.line(1, 3);
        assert!(line.ends_with(" | also s01:create_issue#00000001 +38") || line.contains(" | also s01"), "{line}");
        assert!(together.choices.iter().all(|choice| choice.card.tokens() <= CARD_CAP));
        assert_eq!(together.confidence, apart.confidence, "copies make nothing more or less certain");
    }

    #[test]
    fn a_pinned_copy_stands_for_its_group() {
        let filter = Filter { pins: vec!["s07:create_issue#00000001".to_owned()], ..Filter::default() };
        let request = Request { query: "open a new issue".to_owned(), filter, ..Request::default() };
        let route = routed(many(), Copies::Together, &request);
        let first = &route.choices[0];
        assert_eq!((first.card.id(), first.placement), ("s07:create_issue#00000001", Placement::Pinned));
        assert_eq!(route.choices.iter().filter(|choice| choice.card.name() == "create_issue").count(), 1);
    }

    #[test]
    fn what_may_not_be_shown_is_no_alternative() {
        let filter = Filter { allow_namespaces: vec!["s01".to_owned(), "s05".to_owned()], ..Filter::default() };
        let request = Request { query: "open a new issue".to_owned(), filter, ..Request::default() };
        let route = routed(many(), Copies::Together, &request);
        let line = route.choices[0].card.line(1, 1);
        assert!(line.contains("s01:") && line.ends_with("| also s05:create_issue#00000001"), "{line}");
    }

    proptest! {
        #[test]
        fn order_of_loading_changes_nothing_and_a_search_is_the_route(
            order in Just((0..many().len()).collect::<Vec<_>>()).prop_shuffle(),
            top_k in 1usize..5,
            query in prop::sample::select(&["open a new issue", "issue", "letter", "create_issue", "x"][..]),
        ) {
            let request = Request { query: query.to_owned(), top_k: Some(top_k), ..Request::default() };
            let items = many();
            let shuffled: Vec<SelectableItem> = order.iter().map(|at| items[*at].clone()).collect();
            let plain = routed(items.clone(), Copies::Together, &request);
            let again = routed(shuffled, Copies::Together, &request);
            prop_assert_eq!(serde_json::to_string(&plain).unwrap(), serde_json::to_string(&again).unwrap());
            let config = RoutingConfig { copies: Copies::Together, semantic: 0.0, ..RoutingConfig::default() };
            let router = Router::build(Arc::new(Catalog::new(items).unwrap()), config).unwrap();
            let found = router.search(query, top_k, &mut Scratch::default());
            let found: Vec<&str> = found.iter().map(|hit| &*router.catalog().items()[hit.item as usize].id).collect();
            prop_assert_eq!(plain.ids(), found);
        }
    }
}
