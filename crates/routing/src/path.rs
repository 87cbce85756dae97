//! Paths through the choice graph, as `tool_browse` takes them.
//!
//! A path is `/`, or segments with a slash before each: the namespace, then clusters, then an item. There are two
//! errors: a path is malformed, or it names no node. A `*` asks for all children of the node before it, which is what a
//! path shows anyway, so it changes nothing at the end of a path; elsewhere it is well formed and names no node.

use std::fmt;
use std::str::FromStr;

use super::graph::{ChoiceGraph, NodeId, NodeKind, is_root_segment, is_segment};

/// The segment that stands for all children.
const ALL: &str = "*";

/// A well-formed path: `/`, or segments with a slash before each.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(String);

impl Path {
    /// The path of a node; for a group, which paths skip, that of the root.
    #[must_use]
    pub fn of(graph: &ChoiceGraph, id: NodeId) -> Self {
        Self::join(&graph.segments(id))
    }

    /// The segments from the root on, `*` included; no segments for `/`.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|segment| !segment.is_empty())
    }

    /// The path as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn join(segments: &[&str]) -> Self {
        Self(format!("/{}", segments.join("/")))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let refuse = |reason| Err(PathError::Invalid { path: text.to_owned(), reason });
        let Some(rest) = text.strip_prefix('/') else {
            return refuse("it does not begin with /");
        };
        if rest.is_empty() {
            return Ok(Self(text.to_owned()));
        }
        for (depth, segment) in rest.split('/').enumerate() {
            if segment.is_empty() {
                return refuse("a segment is empty; write no // and no / at the end");
            }
            if segment != ALL && !is_segment(segment) {
                return refuse("a segment is `*` or at most 64 of a-z 0-9 _ -, beginning with a letter or digit");
            }
            if depth == 0 && segment != ALL && !is_root_segment(segment) {
                return refuse("the first segment is a namespace, which begins with a letter");
            }
        }
        Ok(Self(text.to_owned()))
    }
}

/// A path leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text is not a path.
    #[error("path `{}` is not valid: {reason}", shown(path))]
    Invalid {
        /// The text that was given.
        path: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// The path is well formed, but names no node.
    #[error(
        "path `{}` does not exist: `{}` holds no `{}`; browse `{}`",
        shown(path),
        shown(parent),
        missing,
        shown(parent)
    )]
    NotFound {
        /// The path that was given.
        path: String,
        /// The longest prefix of it that exists.
        parent: String,
        /// The segment after that prefix, which does not exist.
        missing: String,
    },
}

impl PathError {
    /// The code of the error in answers to clients: `PATH_INVALID` or `PATH_NOT_FOUND`. The message that goes with it
    /// is the [`fmt::Display`] form.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => "PATH_INVALID",
            Self::NotFound { .. } => "PATH_NOT_FOUND",
        }
    }

    /// The path as it was given.
    #[must_use]
    pub fn path(&self) -> &str {
        let (Self::Invalid { path, .. } | Self::NotFound { path, .. }) = self;
        path
    }
}

/// The number of characters of a path that a message shows at most.
const SHOWN_CHARACTERS: usize = 120;

/// `path` on one line without control characters, shortened.
fn shown(path: &str) -> String {
    let mut shown: String = path.chars().take(SHOWN_CHARACTERS).flat_map(char::escape_debug).collect();
    if path.chars().nth(SHOWN_CHARACTERS).is_some() {
        shown.push('…');
    }
    shown
}

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The node that the path names.
    pub node: NodeId,
    /// Its namespaces, clusters and leaves, in this order, with groups replaced by their content; for a leaf the leaf
    /// itself.
    pub children: Vec<NodeId>,
}

/// Looks `path` up in `graph`.
///
/// # Errors
/// [`PathError::NotFound`] when it names no node.
pub fn resolve(graph: &ChoiceGraph, path: &Path) -> Result<Listing, PathError> {
    let mut segments: Vec<&str> = path.segments().collect();
    while segments.last() == Some(&ALL) {
        segments.pop();
    }
    let mut node = NodeId::ROOT;
    for (depth, segment) in segments.iter().enumerate() {
        let Some(child) = graph.path_children(node).into_iter().find(|child| graph.node(*child).segment == *segment)
        else {
            return Err(PathError::NotFound {
                path: path.as_str().to_owned(),
                parent: Path::join(&segments[..depth]).0,
                missing: (*segment).to_owned(),
            });
        };
        node = child;
    }
    let children = match graph.node(node).kind {
        NodeKind::Leaf(_) => vec![node],
        _ => graph.path_children(node),
    };
    Ok(Listing { node, children })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::TreeConfig;
    use super::super::tree::TreeBuilder;
    use super::super::tree::tests::any_catalog;
    use super::*;
    use contextweaver_core::catalog::{Catalog, SelectableItem};

    #[test]
    fn the_grammar_is_that_of_the_gateway_surface() {
        let (longest, too_long) = ("a".repeat(64), "a".repeat(65));
        let table = [
            ("/", None),
            ("/github", None),
            ("/github/issues/create_issue", None),
            ("/github/2fa-x_", None),
            ("/github/issues/*", None),
            ("/*", None),
            ("/*/*", None),
            ("/github/*/create_issue", None),
            (&format!("/{longest}"), None),
            ("", Some("begin")),
            ("github", Some("begin")),
            ("//", Some("empty")),
            ("//github", Some("empty")),
            ("/github/", Some("empty")),
            ("/github//issues", Some("empty")),
            ("/GitHub", Some("a-z")),
            ("/github/_x", Some("a-z")),
            ("/github/-x", Some("a-z")),
            ("/github/**", Some("a-z")),
            ("/github/*?tag=read-only", Some("a-z")),
            ("/git hub", Some("a-z")),
            ("/github/é", Some("a-z")),
            (&format!("/{too_long}"), Some("a-z")),
            ("/2fa", Some("namespace")),
            ("/github\n", Some("a-z")),
        ];
        for (text, expected) in table {
            match (text.parse::<Path>(), expected) {
                (Ok(path), None) => assert_eq!(path.as_str(), text),
                (Err(error), Some(reason)) => {
                    assert_eq!((error.code(), error.path()), ("PATH_INVALID", text));
                    assert!(error.to_string().contains(reason), "{text}: {error}");
                }
                (parsed, _) => panic!("{text}: {parsed:?}"),
            }
        }
    }

    fn hub() -> (Catalog, ChoiceGraph) {
        let tools = ["open_issue", "close_issue", "merge_pull", "list_pulls", "Search"];
        let mut items: Vec<_> =
            tools.iter().map(|name| SelectableItem::tool(&format!("hub:{name}"), "hub", name, "")).collect();
        for namespace in ["bank", "mail", "wiki", "zoo"] {
            items.push(SelectableItem::tool(&format!("{namespace}:go"), namespace, "go", ""));
        }
        let catalog = Catalog::new(items).unwrap();
        let graph = TreeBuilder::new(TreeConfig { max_children: 4 }).build(&catalog).unwrap();
        (catalog, graph)
    }

    fn listed(graph: &ChoiceGraph, path: &str) -> String {
        match path.parse().and_then(|path| resolve(graph, &path)) {
            Ok(listing) => listing.children.iter().map(|id| Path::of(graph, *id).0).collect::<Vec<_>>().join(" "),
            Err(error) => format!("{}: {error}", error.code()),
        }
    }

    #[test]
    fn a_path_lists_what_is_below() {
        let (_, graph) = hub();
        let paths = [
            "/",
            "/*",
            "/hub",
            "/hub/*/*",
            "/hub/issue",
            "/hub/issue/*",
            "/hub/issue/open_issue",
            "/hub/search/*",
            "/bank/go",
            "/hub/issue/open_issue/x",
            "/hub/*/open_issue",
            "/bank/issue",
            "/nothing/here",
        ];
        let lines = paths.map(|path| format!("{path} => {}", listed(&graph, path)));
        insta::assert_snapshot!(lines.join("\n"), @r"
        / => /bank /hub /mail /wiki /zoo
        /* => /bank /hub /mail /wiki /zoo
        /hub => /hub/issue /hub/pull /hub/search
        /hub/*/* => /hub/issue /hub/pull /hub/search
        /hub/issue => /hub/issue/close_issue /hub/issue/open_issue
        /hub/issue/* => /hub/issue/close_issue /hub/issue/open_issue
        /hub/issue/open_issue => /hub/issue/open_issue
        /hub/search/* => /hub/search
        /bank/go => /bank/go
        /hub/issue/open_issue/x => PATH_NOT_FOUND: path `/hub/issue/open_issue/x` does not exist: `/hub/issue/open_issue` holds no `x`; browse `/hub/issue/open_issue`
        /hub/*/open_issue => PATH_NOT_FOUND: path `/hub/*/open_issue` does not exist: `/hub` holds no `*`; browse `/hub`
        /bank/issue => PATH_NOT_FOUND: path `/bank/issue` does not exist: `/bank` holds no `issue`; browse `/bank`
        /nothing/here => PATH_NOT_FOUND: path `/nothing/here` does not exist: `/` holds no `nothing`; browse `/`
        ");
    }

    #[test]
    fn messages_are_one_short_line() {
        let error = format!("/\u{1}\n{}", "x".repeat(1000)).parse::<Path>().unwrap_err();
        let message = error.to_string();
        assert!(message.len() < 400 && !message.contains(char::is_control), "{message}");
    }

    proptest! {
        #[test]
        fn what_is_well_formed_is_printed_as_it_was_read(text in "(/([a-z][a-z0-9_-]{0,8}|\\*)){1,5}") {
            let path: Path = text.parse().unwrap();
            prop_assert_eq!(path.to_string(), &*text);
            let segments: Vec<&str> = path.segments().collect();
            prop_assert_eq!(Path::join(&segments), path.clone());
        }

        #[test]
        fn no_text_panics(text in "[/a*0_A -]{0,20}|\\PC{0,30}") {
            let (_, graph) = hub();
            match text.parse::<Path>() {
                Ok(path) => drop(resolve(&graph, &path)),
                Err(error) => prop_assert_eq!(error.code(), "PATH_INVALID"),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn every_item_is_reached_by_browsing_and_by_its_own_path(catalog in any_catalog(), max_children in 2usize..=20) {
            let graph = TreeBuilder::new(TreeConfig { max_children }).build(&catalog).unwrap();
            let mut found = Vec::new();
            let mut open = vec!["/".to_owned()];
            while let Some(path) = open.pop() {
                let path: Path = path.parse().unwrap();
                let listing = resolve(&graph, &path).unwrap();
                let all: Path = format!("{}/*", path.as_str().trim_end_matches('/')).parse().unwrap();
                prop_assert_eq!(resolve(&graph, &all).unwrap(), listing.clone());
                prop_assert!(path.as_str() == "/" || listing.children.len() <= max_children);
                for child in listing.children {
                    match graph.node(child).kind {
                        NodeKind::Leaf(item) => found.push(item),
                        _ => open.push(Path::of(&graph, child).0),
                    }
                }
            }
            found.sort_unstable();
            prop_assert_eq!(found, (0..catalog.len() as u32).collect::<Vec<_>>());
            for item in 0..catalog.len() as u32 {
                let leaf = graph.leaf(item).unwrap();
                let listing = resolve(&graph, &Path::of(&graph, leaf)).unwrap();
                prop_assert_eq!(listing, Listing { node: leaf, children: vec![leaf] });
            }
        }
    }
}
