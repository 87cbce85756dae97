//! The servers that resource addresses belong to.
//!
//! A resource belongs to the server that lists its URI, or whose template matches it; where two list one URI, to the
//! first by name. A URI that neither covers belongs to the server that alone uses its scheme: tools link to resources
//! that no list names.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::protocol::listing::{Address, Listing, address_of};
use crate::protocol::message::Raw;
use contextweaver_core::catalog::SelectableItem;

/// The servers that resource addresses belong to.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// The server of each URI.
    servers: BTreeMap<String, String>,
    /// The templates with their servers.
    patterns: Vec<(Pattern, String)>,
    /// The server of each scheme that only one uses.
    schemes: BTreeMap<String, Option<String>>,
    resources: Vec<Box<RawValue>>,
    templates: Vec<Box<RawValue>>,
}

impl Routes {
    /// The routes to what these servers list.
    pub(crate) fn new<'l>(listings: impl Iterator<Item = (&'l str, &'l Listing)>) -> Self {
        let mut routes = Self::default();
        for (server, listing) in listings {
            for raw in listing.resources.iter().chain(&listing.templates) {
                match address_of(raw) {
                    Some(Address::Resource(uri)) => routes.add_resource(server, uri, raw),
                    Some(Address::Template(template)) => routes.add_template(server, &template, raw),
                    None => tracing::debug!(server, "a resource without an address is not listed"),
                }
            }
        }
        routes
    }

    /// The routes to the resources of a catalog from a file, which has no templates: each URI with its server, whose name is
    /// empty where the file names none. What the file does not list leads nowhere.
    pub(crate) fn of_items<'i>(items: impl Iterator<Item = &'i SelectableItem>) -> Self {
        let mut routes = Self::default();
        for item in items {
            let Some(uri) = item.metadata.get("uri").and_then(Value::as_str) else { continue };
            let server = item.server.as_deref().unwrap_or_default();
            match &item.raw {
                Some(raw) => routes.add_listed(server, uri.to_owned(), raw),
                // Of another form: what a server would list of it.
                None => {
                    let listed = json!({"uri": uri, "name": item.name, "description": item.description});
                    routes.add_listed(server, uri.to_owned(), &Raw::of(&listed).to_raw_value());
                }
            }
        }
        routes
    }

    fn add_resource(&mut self, server: &str, uri: String, raw: &RawValue) {
        self.add_scheme(server, &uri);
        self.add_listed(server, uri, raw);
    }

    fn add_listed(&mut self, server: &str, uri: String, raw: &RawValue) {
        if let std::collections::btree_map::Entry::Vacant(free) = self.servers.entry(uri) {
            free.insert(server.to_owned());
            self.resources.push(raw.to_owned());
        }
    }

    fn add_template(&mut self, server: &str, template: &str, raw: &RawValue) {
        self.add_scheme(server, template);
        let pattern = Pattern::new(template);
        if !self.patterns.iter().any(|(other, _)| *other == pattern) {
            self.patterns.push((pattern, server.to_owned()));
            self.templates.push(raw.to_owned());
        }
    }

    fn add_scheme(&mut self, server: &str, uri: &str) {
        if let Some(scheme) = scheme_of(uri) {
            let only = self.schemes.entry(scheme.to_owned()).or_insert_with(|| Some(server.to_owned()));
            if only.as_deref() != Some(server) {
                *only = None;
            }
        }
    }

    /// The server that a URI belongs to.
    pub(crate) fn server_of_uri(&self, uri: &str) -> Option<&str> {
        let listed = || self.servers.get(uri);
        let by_template = || {
            let fitting = self.patterns.iter().filter(|(pattern, _)| pattern.matches(uri));
            // Of several the most literal; the first of equals.
            fitting.rev().max_by_key(|(pattern, _)| pattern.literals()).map(|(_, server)| server)
        };
        let by_scheme = || self.schemes.get(scheme_of(uri)?)?.as_ref();
        listed().or_else(by_template).or_else(by_scheme).map(String::as_str)
    }

    /// The server of a template as it is listed.
    pub(crate) fn server_of_template(&self, template: &str) -> Option<&str> {
        let pattern = Pattern::new(template);
        self.patterns.iter().find(|(other, _)| *other == pattern).map(|(_, server)| server.as_str())
    }

    /// The resources as they are listed, each URI once.
    pub(crate) fn resources(&self) -> &[Box<RawValue>] {
        &self.resources
    }

    /// The templates as they are listed, each once.
    pub(crate) fn templates(&self) -> &[Box<RawValue>] {
        &self.templates
    }
}

fn scheme_of(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    (!scheme.is_empty() && !scheme.contains('{')).then_some(scheme)
}

/// A URI template (RFC 6570), reduced to the literal texts between its expressions.
#[derive(Debug, PartialEq, Eq)]
struct Pattern {
    first: String,
    /// The texts behind each expression.
    rest: Vec<String>,
}

impl Pattern {
    fn new(template: &str) -> Self {
        let mut pieces = template.split('{');
        let first = pieces.next().unwrap_or_default().to_owned();
        let rest = pieces.map(|piece| piece.split_once('}').map_or("", |(_, text)| text).to_owned()).collect();
        Self { first, rest }
    }

    fn literals(&self) -> usize {
        self.first.len() + self.rest.iter().map(String::len).sum::<usize>()
    }

    fn matches(&self, uri: &str) -> bool {
        let Some(mut left) = uri.strip_prefix(self.first.as_str()) else { return false };
        let Some((last, between)) = self.rest.split_last() else { return left.is_empty() };
        for text in between {
            let Some((_, behind)) = left.split_once(text.as_str()) else { return false };
            left = behind;
        }
        left.ends_with(last.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(resources: &[&str], templates: &[&str]) -> Listing {
        let raw = |key: &str, texts: &[&str]| -> Vec<Box<RawValue>> {
            texts.iter().map(|text| serde_json::value::to_raw_value(&json!({ key: text })).unwrap()).collect()
        };
        Listing { resources: raw("uri", resources), templates: raw("uriTemplate", templates), ..Listing::default() }
    }

    #[test]
    fn a_uri_belongs_to_who_lists_it_then_to_the_closest_template_then_to_the_only_user_of_its_scheme() {
        let (a, b) = (
            listing(&["file:///a", "x:1", "only-a:1"], &["file:///logs/{day}", "x:{+any}"]),
            listing(&["file:///b", "x:1"], &["file:///logs/{day}/errors{?n}", "x:{+any}", "y://{host}/{id}/v"]),
        );
        let routes = Routes::new([("a", &a), ("b", &b)].into_iter());
        assert_eq!((routes.resources().len(), routes.templates().len()), (4, 4));
        let cases = [
            ("file:///a", Some("a")),
            ("file:///b", Some("b")),
            ("x:1", Some("a")),
            ("x:2", Some("a")),
            ("file:///logs/monday", Some("a")),
            ("file:///logs/monday/errors", Some("b")),
            ("y://h/7/v", Some("b")),
            ("y://h/7/w", Some("b")),
            ("only-a:2", Some("a")),
            ("file:///c", None),
            ("z:1", None),
            ("", None),
        ];
        for (uri, expected) in cases {
            assert_eq!(routes.server_of_uri(uri), expected, "{uri}");
        }
        assert_eq!(routes.server_of_template("file:///logs/{day}/errors{?n}"), Some("b"));
    }
}
