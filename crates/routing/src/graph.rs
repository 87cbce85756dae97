//! The choice graph: a catalog arranged so that every step of a choice shows a bounded number of options.
//!
//! Nodes are in one vector in breadth-first order and name only their parent; everything else (children, sizes, the
//! leaf of an item) is derived. A parent therefore always comes before its children, a cycle cannot be written down,
//! and the one check in [`ChoiceGraph::new`] serves both graphs that were built and graphs that were loaded. The graph
//! is a tree, although the field says graph: an item has exactly one place.
//!
//! The graph knows item numbers, not items. [`ChoiceGraph::validate`] checks whether it belongs to a catalog; whether
//! the texts of that catalog have changed since is the business of whoever saved both.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use contextweaver_core::catalog::SelectableItem;

/// The longest path segment, in bytes.
pub(super) const MAX_SEGMENT_BYTES: usize = 64;

/// Whether `text` can be a segment of a path: `[a-z0-9][a-z0-9_-]{0,63}`.
pub(super) fn is_segment(text: &str) -> bool {
    text.len() <= MAX_SEGMENT_BYTES
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-'))
}

/// Whether `text` can be the first segment of a path, which names a namespace: a segment that begins with a letter.
pub(super) fn is_root_segment(text: &str) -> bool {
    is_segment(text) && !text.as_bytes().first().is_some_and(u8::is_ascii_digit)
}

/// The position of a node in its graph. Only meaningful for the graph that it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(u32);

impl NodeId {
    /// The root of every graph.
    pub const ROOT: Self = Self(0);

    /// The position as an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The id of the node at `index`.
    ///
    /// # Errors
    /// [`GraphError::TooLarge`] from 2^32 nodes on.
    pub(super) fn at(index: usize) -> Result<Self, GraphError> {
        u32::try_from(index).map(Self).map_err(|_| GraphError::TooLarge)
    }
}

/// What a node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// The one node without a parent.
    Root,
    /// A range of namespaces, which exists only to keep its parent bounded: paths and listings skip it.
    Group,
    /// All items of one namespace.
    Namespace,
    /// Items of a namespace that belong together.
    Cluster,
    /// One item, by its position in [`Catalog::items`](contextweaver_core::catalog::Catalog::items).
    Leaf(u32),
}

impl NodeKind {
    /// Whether a node of this kind may be a child of a node of kind `parent`.
    fn may_be_below(self, parent: Self) -> bool {
        match self {
            Self::Root => false,
            Self::Group | Self::Namespace => matches!(parent, Self::Root | Self::Group),
            Self::Cluster | Self::Leaf(_) => matches!(parent, Self::Namespace | Self::Cluster),
        }
    }
}

/// One node, as it is saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// What the node stands for.
    pub kind: NodeKind,
    /// The node above; `None` for the root alone.
    pub parent: Option<NodeId>,
    /// Its part of a path. Empty for the root; for a group, which paths skip, the first segment below it.
    pub segment: String,
    /// What to call the items below, in a few words; for a leaf the item's name. Never empty.
    pub label: String,
    /// The number of items below and some of their names; empty for a leaf, whose item describes itself.
    pub hint: String,
}

impl Node {
    /// The order of a node among its siblings: branches by segment, then leaves by item.
    pub(super) fn rank(&self) -> (u32, &str) {
        match self.kind {
            NodeKind::Leaf(item) => (item.saturating_add(1), ""),
            _ => (0, &self.segment),
        }
    }
}

/// A checked tree over the items of one catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SavedGraph", into = "SavedGraph")]
pub struct ChoiceGraph {
    max_children: usize,
    nodes: Vec<Node>,
    /// Per node the positions of its children.
    children: Vec<Range<u32>>,
    /// Per item its leaf.
    leaves: Vec<NodeId>,
    /// Per node the number of items at and below it.
    sizes: Vec<u32>,
}

/// The saved form: what cannot be derived.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedGraph {
    max_children: usize,
    nodes: Vec<Node>,
}

impl TryFrom<SavedGraph> for ChoiceGraph {
    type Error = GraphError;

    fn try_from(saved: SavedGraph) -> Result<Self, GraphError> {
        Self::new(saved.max_children, saved.nodes)
    }
}

impl From<ChoiceGraph> for SavedGraph {
    fn from(graph: ChoiceGraph) -> Self {
        Self { max_children: graph.max_children, nodes: graph.nodes }
    }
}

/// A graph cannot be used: it was damaged, or it belongs to another catalog. Build it again from the catalog.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// The bound on children is too small for a tree.
    #[error("max_children is {0}; a tree needs at least 2")]
    Bound(usize),
    /// There are more nodes than a node number can tell apart.
    #[error("the choice graph has 2^32 nodes or more; split the catalog")]
    TooLarge,
    /// A node is in a place that the order of nodes or their kinds do not allow.
    #[error("node {node} of the choice graph: {reason}; build the graph again")]
    Structure {
        /// The position of the node.
        node: usize,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// A node has more children than the bound allows.
    #[error("node {node} (`{label}`) of the choice graph has {children} children, more than {max_children}")]
    TooWide {
        /// The position of the node.
        node: usize,
        /// The label of the node.
        label: String,
        /// How many children it has.
        children: usize,
        /// The bound on children.
        max_children: usize,
    },
    /// A node's segment cannot be written in a path.
    #[error(
        "node {node} of the choice graph: `{segment}` is not a path segment; a namespace is [a-z][a-z0-9_-]{{0,63}}, \
         anything below it [a-z0-9][a-z0-9_-]{{0,63}}"
    )]
    Segment {
        /// The position of the node.
        node: usize,
        /// The segment that cannot be written.
        segment: String,
    },
    /// Two siblings would have the same path.
    #[error("node {node} of the choice graph: a sibling already has the path segment `{segment}`")]
    DuplicateSegment {
        /// The position of the second sibling.
        node: usize,
        /// The segment that both have.
        segment: String,
    },
    /// The leaves are not exactly the items 0, 1, 2 …
    #[error("item {item} of {leaves} has {count} leaves in the choice graph, not one; build the graph again")]
    Leaves {
        /// The number of the item.
        item: usize,
        /// The number of leaves in the graph.
        leaves: usize,
        /// The number of leaves of this item.
        count: usize,
    },
    /// The graph was built for another catalog.
    #[error("the choice graph belongs to another catalog: {0}; build it again from this one")]
    OtherCatalog(String),
}

impl ChoiceGraph {
    /// Checks nodes in breadth-first order, with at most `max_children` children each, and makes them a graph.
    ///
    /// # Errors
    /// A [`GraphError`] that names the first node or item that breaks a rule.
    pub fn new(max_children: usize, nodes: Vec<Node>) -> Result<Self, GraphError> {
        if max_children < 2 {
            return Err(GraphError::Bound(max_children));
        }
        let children = check_structure(&nodes)?;
        check_nodes(max_children, &nodes, &children)?;
        check_paths(&nodes)?;
        let leaves = check_leaves(&nodes)?;
        let sizes = sizes(&nodes);
        Ok(Self { max_children, nodes, children, leaves, sizes })
    }

    /// Checks that this can be the graph of a catalog with these items: as many, each below its own namespace.
    ///
    /// # Errors
    /// [`GraphError::OtherCatalog`] with the first difference.
    pub fn validate(&self, items: &[SelectableItem]) -> Result<(), GraphError> {
        if items.len() != self.leaves.len() {
            let reason = format!("it has {} items, but the catalog has {}", self.leaves.len(), items.len());
            return Err(GraphError::OtherCatalog(reason));
        }
        for (item, leaf) in items.iter().zip(&self.leaves) {
            let namespace = self.namespace(*leaf);
            if namespace != Some(item.namespace.as_str()) {
                let found = namespace.unwrap_or_default();
                let reason = format!("`{}` is in namespace `{}`, not in `{found}`", item.id, item.namespace);
                return Err(GraphError::OtherCatalog(reason));
            }
        }
        Ok(())
    }

    /// How many nodes there are, the root included.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a graph always has its root")]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// How many items there are.
    #[must_use]
    pub fn items(&self) -> usize {
        self.leaves.len()
    }

    /// The node with this id.
    ///
    /// # Panics
    /// When the id was given out by a larger graph.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// All nodes in breadth-first order, every parent before its children.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node)> + ExactSizeIterator {
        self.nodes.iter().enumerate().map(|(index, node)| (NodeId(index as u32), node))
    }

    /// The children of a node: branches by segment, then leaves by item.
    pub fn children(&self, id: NodeId) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        self.children[id.index()].clone().map(NodeId)
    }

    /// The number of items at and below a node; 1 for a leaf.
    #[must_use]
    pub fn size(&self, id: NodeId) -> usize {
        self.sizes[id.index()] as usize
    }

    /// The leaf of an item; `None` outside the catalog.
    #[must_use]
    pub fn leaf(&self, item: u32) -> Option<NodeId> {
        self.leaves.get(item as usize).copied()
    }

    /// The children as a path sees them: groups are replaced by what is below them, so there may be more than a node
    /// may have.
    #[must_use]
    pub fn path_children(&self, id: NodeId) -> Vec<NodeId> {
        let mut visible = Vec::new();
        let mut open: Vec<NodeId> = self.children(id).rev().collect();
        while let Some(next) = open.pop() {
            match self.node(next).kind {
                NodeKind::Group => open.extend(self.children(next).rev()),
                _ => visible.push(next),
            }
        }
        visible
    }

    /// The segments of the path from the root to a node; for a group, those of its parent.
    #[must_use]
    pub fn segments(&self, id: NodeId) -> Vec<&str> {
        let mut segments: Vec<&str> = self
            .upwards(id)
            .filter(|node| !matches!(node.kind, NodeKind::Root | NodeKind::Group))
            .map(|node| node.segment.as_str())
            .collect();
        segments.reverse();
        segments
    }

    /// The namespace of a node or of its ancestors; `None` above the namespaces.
    #[must_use]
    pub fn namespace(&self, id: NodeId) -> Option<&str> {
        self.upwards(id).find(|node| node.kind == NodeKind::Namespace).map(|node| node.segment.as_str())
    }

    /// A node, its parent, and so on to the root.
    fn upwards(&self, id: NodeId) -> impl Iterator<Item = &Node> {
        std::iter::successors(Some(self.node(id)), |node| node.parent.map(|parent| self.node(parent)))
    }

    /// The nodes in the order in which a tree is printed: depth first, each with its depth (0 for `from`), none deeper
    /// than `max_depth`.
    pub fn walk(&self, from: NodeId, max_depth: usize) -> impl Iterator<Item = (usize, NodeId)> {
        let mut open = vec![(0, from)];
        std::iter::from_fn(move || {
            let (depth, id) = open.pop()?;
            if depth < max_depth {
                open.extend(self.children(id).rev().map(|child| (depth + 1, child)));
            }
            Some((depth, id))
        })
    }
}

/// Checks order and kinds, and returns the children of every node.
fn check_structure(nodes: &[Node]) -> Result<Vec<Range<u32>>, GraphError> {
    let refuse = |node, reason| Err(GraphError::Structure { node, reason });
    NodeId::at(nodes.len())?;
    if nodes.first().is_none_or(|node| node.kind != NodeKind::Root || node.parent.is_some()) {
        return refuse(0, "the first node must be the root and have no parent");
    }
    let mut children = vec![0..0; nodes.len()];
    let mut previous = NodeId::ROOT;
    for (index, node) in nodes.iter().enumerate().skip(1) {
        let Some(parent) = node.parent else {
            return refuse(index, "it has no parent");
        };
        if parent.index() >= index {
            return refuse(index, "its parent does not come before it");
        }
        if parent < previous {
            return refuse(index, "the nodes are not in breadth-first order");
        }
        if !node.kind.may_be_below(nodes[parent.index()].kind) {
            return refuse(index, "its kind cannot be below that of its parent");
        }
        let range: &mut Range<u32> = &mut children[parent.index()];
        if range.start == range.end {
            range.start = index as u32;
        } else if nodes[index - 1].rank() >= node.rank() {
            return refuse(index, "it is not in order among its siblings");
        }
        range.end = index as u32 + 1;
        previous = parent;
    }
    Ok(children)
}

/// Checks the number of children and the texts of every node.
fn check_nodes(max_children: usize, nodes: &[Node], children: &[Range<u32>]) -> Result<(), GraphError> {
    for (index, (node, children)) in nodes.iter().zip(children).enumerate() {
        if children.len() > max_children {
            return Err(GraphError::TooWide {
                node: index,
                label: node.label.clone(),
                children: children.len(),
                max_children,
            });
        }
        if children.is_empty() && !matches!(node.kind, NodeKind::Leaf(_)) {
            return Err(GraphError::Structure { node: index, reason: "nothing is below it and it is not a leaf" });
        }
        if node.label.trim().is_empty() {
            return Err(GraphError::Structure { node: index, reason: "its label is empty" });
        }
        let fits = match node.kind {
            NodeKind::Root => node.segment.is_empty(),
            NodeKind::Group | NodeKind::Namespace => is_root_segment(&node.segment),
            NodeKind::Cluster | NodeKind::Leaf(_) => is_segment(&node.segment),
        };
        if !fits {
            return Err(GraphError::Segment { node: index, segment: node.segment.clone() });
        }
    }
    Ok(())
}

/// Checks that no two nodes have one path.
fn check_paths(nodes: &[Node]) -> Result<(), GraphError> {
    // Groups are only between the root and the namespaces, so a node's parent in paths is the root or its parent.
    let path_parent = |node: &Node| if node.kind == NodeKind::Namespace { Some(NodeId::ROOT) } else { node.parent };
    let mut seen = BTreeSet::new();
    for (index, node) in nodes.iter().enumerate() {
        if node.kind != NodeKind::Group && !seen.insert((path_parent(node), &node.segment)) {
            return Err(GraphError::DuplicateSegment { node: index, segment: node.segment.clone() });
        }
    }
    Ok(())
}

/// Checks that the leaves are the items from 0 on, once each, and returns the leaf of every item.
fn check_leaves(nodes: &[Node]) -> Result<Vec<NodeId>, GraphError> {
    let mut leaves: Vec<(u32, NodeId)> = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        if let NodeKind::Leaf(item) = node.kind {
            leaves.push((item, NodeId::at(index)?));
        }
    }
    leaves.sort_unstable();
    if let Some(expected) = leaves.iter().enumerate().position(|(expected, (item, _))| expected != *item as usize) {
        // The first number out of step repeats the one before it, or `expected` is missing.
        let repeated = (leaves[expected].0 as usize) < expected;
        let item = if repeated { expected - 1 } else { expected };
        let count = leaves.iter().filter(|leaf| leaf.0 as usize == item).count();
        return Err(GraphError::Leaves { item, leaves: leaves.len(), count });
    }
    Ok(leaves.into_iter().map(|(_, leaf)| leaf).collect())
}

/// The number of items at and below every node.
fn sizes(nodes: &[Node]) -> Vec<u32> {
    let mut sizes: Vec<u32> = nodes.iter().map(|node| u32::from(matches!(node.kind, NodeKind::Leaf(_)))).collect();
    for (index, node) in nodes.iter().enumerate().rev() {
        if let Some(parent) = node.parent {
            sizes[parent.index()] += sizes[index];
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: NodeKind, parent: Option<u32>, segment: &str) -> Node {
        let (segment, label) = (segment.to_owned(), format!("<{segment}>"));
        Node { kind, parent: parent.map(NodeId), segment, label, hint: String::new() }
    }

    /// Two grouped namespaces: `ab` with items 0 and the cluster `c` of 1 and 2, and `x` with item 3.
    fn nodes() -> Vec<Node> {
        use NodeKind::{Cluster, Group, Leaf, Namespace, Root};
        vec![
            node(Root, None, ""),
            node(Group, Some(0), "ab"),
            node(Namespace, Some(0), "x"),
            node(Namespace, Some(1), "ab"),
            node(Leaf(3), Some(2), "go"),
            node(Cluster, Some(3), "c"),
            node(Leaf(0), Some(3), "a"),
            node(Leaf(1), Some(5), "a"),
            node(Leaf(2), Some(5), "b"),
        ]
    }

    fn graph() -> ChoiceGraph {
        ChoiceGraph::new(2, nodes()).unwrap()
    }

    #[test]
    fn what_is_derived_follows_from_the_parents() {
        let graph = graph();
        let ids = |ids: Vec<NodeId>| ids.into_iter().map(|id| id.0).collect::<Vec<_>>();
        assert_eq!(ids(graph.children(NodeId::ROOT).collect()), [1, 2]);
        assert_eq!(ids(graph.path_children(NodeId::ROOT)), [3, 2]);
        assert_eq!(ids((0..4).filter_map(|item| graph.leaf(item)).collect()), [6, 7, 8, 4]);
        assert_eq!(graph.leaf(4), None);
        assert_eq!(graph.nodes().map(|(id, _)| graph.size(id)).collect::<Vec<_>>(), [4, 3, 1, 3, 1, 2, 1, 1, 1]);
        assert_eq!((graph.segments(NodeId(8)), graph.segments(NodeId(1))), (vec!["ab", "c", "b"], vec![]));
        assert_eq!((graph.namespace(NodeId(8)), graph.namespace(NodeId(1))), (Some("ab"), None));
        let walked: Vec<_> = graph.walk(NodeId::ROOT, 2).map(|(depth, id)| (depth, id.0)).collect();
        assert_eq!(walked, [(0, 0), (1, 1), (2, 3), (1, 2), (2, 4)]);
        assert_eq!(graph.walk(NodeId(3), 0).count(), 1);
    }

    #[test]
    fn what_breaks_a_rule_is_refused_with_the_place() {
        type Damage = fn(&mut Vec<Node>);
        let table: [(Damage, &str); 17] = [
            (|nodes| nodes.clear(), "node 0 of the choice graph: the first node must be the root"),
            (|nodes| nodes[0].parent = Some(NodeId(0)), "node 0 of the choice graph: the first node must be the root"),
            (|nodes| nodes[4].parent = None, "node 4 of the choice graph: it has no parent"),
            (
                |nodes| nodes[3].parent = Some(NodeId(5)),
                "node 3 of the choice graph: its parent does not come before it",
            ),
            (
                |nodes| nodes[3].parent = Some(NodeId(99)),
                "node 3 of the choice graph: its parent does not come before it",
            ),
            (|nodes| nodes.swap(4, 5), "node 5 of the choice graph: the nodes are not in breadth-first order"),
            (|nodes| nodes[5].parent = Some(NodeId(2)), "node 5 of the choice graph: it is not in order"),
            (|nodes| nodes[6].kind = NodeKind::Namespace, "node 6 of the choice graph: its kind cannot be below"),
            (|nodes| nodes[7].kind = NodeKind::Leaf(2), "node 8 of the choice graph: it is not in order"),
            (|nodes| nodes.truncate(7), "node 5 of the choice graph: nothing is below it"),
            (|nodes| nodes[8].label = " ".to_owned(), "node 8 of the choice graph: its label is empty"),
            (
                |nodes| nodes.push(node(NodeKind::Leaf(4), Some(5), "c")),
                "node 5 (`<c>`) of the choice graph has 3 children",
            ),
            (|nodes| nodes[3].segment = "2x".to_owned(), "node 3 of the choice graph: `2x` is not a path segment"),
            (|nodes| nodes[7].segment = "A".to_owned(), "node 7 of the choice graph: `A` is not a path segment"),
            (|nodes| nodes[2].segment = "ab".to_owned(), "node 2 of the choice graph: it is not in order"),
            (
                |nodes| nodes[8].segment = "a".to_owned(),
                "node 8 of the choice graph: a sibling already has the path segment `a`",
            ),
            (|nodes| nodes[4].kind = NodeKind::Leaf(0), "item 0 of 4 has 2 leaves"),
        ];
        for (damage, expected) in table {
            let mut nodes = nodes();
            damage(&mut nodes);
            let message = ChoiceGraph::new(2, nodes).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message} is not {expected}");
        }
        let mut missing = nodes();
        missing[4].kind = NodeKind::Leaf(5);
        assert_eq!(ChoiceGraph::new(2, missing), Err(GraphError::Leaves { item: 3, leaves: 4, count: 0 }));
        let mut hidden = nodes();
        hidden[3].segment = "x".to_owned();
        assert_eq!(
            ChoiceGraph::new(2, hidden),
            Err(GraphError::DuplicateSegment { node: 3, segment: "x".to_owned() }),
            "siblings in paths, though not in the tree"
        );
    }

    #[test]
    fn a_saved_graph_is_checked_when_it_is_loaded() {
        let saved = serde_json::to_string(&graph()).unwrap();
        assert_eq!(serde_json::from_str::<ChoiceGraph>(&saved).unwrap(), graph());
        let error = serde_json::from_str::<ChoiceGraph>(&saved.replace("\"c\"", "\"../c\"")).unwrap_err();
        assert!(error.to_string().contains("`../c` is not a path segment"), "{error}");
        let bytes = postcard::to_stdvec(&graph()).unwrap();
        assert_eq!(postcard::from_bytes::<ChoiceGraph>(&bytes).unwrap(), graph());
    }

    #[test]
    fn a_graph_of_another_catalog_is_refused() {
        let items = |namespaces: &[&str]| {
            let item = |namespace: &&str| SelectableItem::tool(&format!("{namespace}:t"), namespace, "t", "");
            namespaces.iter().map(item).collect::<Vec<_>>()
        };
        let graph = graph();
        assert_eq!(graph.validate(&items(&["ab", "ab", "ab", "x"])), Ok(()));
        let message = |namespaces| graph.validate(&items(namespaces)).unwrap_err().to_string();
        assert!(message(&["ab", "ab", "x"]).contains("it has 4 items, but the catalog has 3"));
        assert!(message(&["ab", "ab", "y", "x"]).contains("`y:t` is in namespace `y`, not in `ab`"));
    }
}
