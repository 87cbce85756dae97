//! Beam search down the choice graph.
//!
//! A node is scored by the sum over the query's terms of the highest impact that the term has in any item below it. No
//! item below can score more, so the score is an upper bound, and for a leaf it is the item's own score. The search
//! therefore returns exactly the scores of the flat ranking; what a narrow beam loses is what it never looked at, and
//! those branches are returned as well, with their bounds.
//!
//! The width limits branches only: once a node is opened all its leaves are taken, because their scores are known by
//! then.
//!
//! An exact search has no width. It opens the branch with the highest bound until no remaining bound reaches the last
//! place of the answer (best first). Its hits are those of the flat ranking, and the bound of every unopened branch
//! proves that nothing below it belongs to them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::BeamConfig;
use super::graph::{ChoiceGraph, NodeId, NodeKind};

/// Where the search reads which items hold a term.
pub(super) trait Postings {
    /// Calls `visit` with the number and the impact of every item that holds `term`, each once.
    fn for_each(&self, term: u32, visit: &mut dyn FnMut(u32, u32));
}

/// What a beam search found and what it left unopened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct BeamResult {
    /// Items with their scores (sums of impacts), best first, equal scores by item; no item with score 0.
    pub hits: Vec<(u32, u64)>,
    /// The nodes whose children were looked at, in that order.
    pub expanded: Vec<NodeId>,
    /// The branches that were not opened although an item below them shares a term with the query, each with the bound
    /// on the scores below it; highest bound first, equal bounds by node.
    pub pruned: Vec<(NodeId, u64)>,
}

/// The best `top_k` items that a beam of `config` reaches for a query of these terms (a repeated term counts again).
///
/// From the root down, at most `config.max_depth` levels, the `config.width` branches with the highest bounds are
/// opened on every level, and one more when the second is within the share `gap` of the first. While fewer than
/// `top_k` items were found, the branch with the highest bound of those left is opened. With unlimited width and
/// depth the hits are the flat ranking.
pub(super) fn beam_search(
    graph: &ChoiceGraph,
    query: &[u32],
    postings: &impl Postings,
    config: BeamConfig,
    top_k: usize,
    gap: f64,
) -> BeamResult {
    let mut search = Search::new(graph, query, postings);
    let mut left = BinaryHeap::new();
    let mut level: Vec<Branch> = search.branch(NodeId::ROOT).into_iter().collect();
    for _ in 0..config.max_depth.max(1) {
        let mut below: Vec<Branch> = level.drain(..).flat_map(|branch| search.open(branch)).collect();
        below.sort_unstable_by_key(|branch| Reverse(*branch));
        let kept = width(&below, config.width, gap);
        left.extend(below.drain(kept..));
        level = below;
    }
    left.extend(level);
    while search.found.hits.len() < top_k
        && let Some(branch) = left.pop()
    {
        left.extend(search.open(branch));
    }
    search.finish(left, top_k)
}

/// The best `top_k` items for a query of these terms, as the flat ranking has them, from as few branches as the bounds
/// allow. A bound that equals the score of the last place is opened too: the item below may have the lower number.
pub(super) fn exact_search(graph: &ChoiceGraph, query: &[u32], postings: &impl Postings, top_k: usize) -> BeamResult {
    let mut search = Search::new(graph, query, postings);
    let mut left: BinaryHeap<Branch> = search.branch(NodeId::ROOT).into_iter().collect();
    // The scores of the answer's places so far; the lowest is on top.
    let mut places: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    while let Some(branch) = left.peek().copied() {
        if places.len() == top_k && places.peek().is_none_or(|Reverse(last)| *last > branch.0) {
            break;
        }
        left.pop();
        let known = search.found.hits.len();
        left.extend(search.open(branch));
        for (_, score) in search.found.hits.iter().skip(known) {
            places.push(Reverse(*score));
            if places.len() > top_k {
                places.pop();
            }
        }
    }
    search.finish(left, top_k)
}

/// A node that could be opened next; the greatest comes first.
type Branch = (u64, Reverse<NodeId>);

/// How many of `branches`, best first, stay in the beam.
fn width(branches: &[Branch], width: usize, gap: f64) -> usize {
    let close = match branches {
        [(first, _), (second, _), ..] => ((first - second) as f64) < gap * *first as f64,
        _ => false,
    };
    width.max(1).saturating_add(usize::from(close)).min(branches.len())
}

/// A search under way.
struct Search<'g> {
    graph: &'g ChoiceGraph,
    /// Per node: the most that an item below it can score.
    bounds: Vec<u64>,
    found: BeamResult,
}

impl<'g> Search<'g> {
    fn new(graph: &'g ChoiceGraph, query: &[u32], postings: &impl Postings) -> Self {
        Self { graph, bounds: bounds(graph, query, postings), found: BeamResult::default() }
    }

    /// The result of a search that leaves the branches `left` unopened.
    fn finish(self, left: BinaryHeap<Branch>, top_k: usize) -> BeamResult {
        let mut found = self.found;
        found.hits.sort_unstable_by_key(|(item, score)| (Reverse(*score), *item));
        found.hits.truncate(top_k);
        found.pruned = left.into_sorted_vec().into_iter().rev().map(|(bound, Reverse(node))| (node, bound)).collect();
        found
    }

    /// The node as a branch, unless nothing below it shares a term with the query.
    fn branch(&self, node: NodeId) -> Option<Branch> {
        let bound = self.bounds[node.index()];
        (bound > 0).then_some((bound, Reverse(node)))
    }

    /// Takes the leaves of a branch and returns the branches below it.
    fn open(&mut self, (_, Reverse(node)): Branch) -> Vec<Branch> {
        self.found.expanded.push(node);
        let mut below = Vec::new();
        for child in self.graph.children(node) {
            let Some(branch) = self.branch(child) else { continue };
            match self.graph.node(child).kind {
                NodeKind::Leaf(item) => self.found.hits.push((item, branch.0)),
                _ => below.push(branch),
            }
        }
        below
    }
}

/// Per node the sum over the terms of the highest impact of an item at or below it, in one pass over the postings: an
/// impact climbs from its leaf until it meets one at least as high.
fn bounds(graph: &ChoiceGraph, query: &[u32], postings: &impl Postings) -> Vec<u64> {
    let mut bounds = vec![0; graph.len()];
    let mut highest = vec![0; graph.len()];
    let mut touched: Vec<NodeId> = Vec::new();
    for term in query {
        postings.for_each(*term, &mut |item, impact| {
            let mut next = graph.leaf(item);
            while let Some(node) = next {
                let highest = &mut highest[node.index()];
                if *highest >= impact {
                    break;
                }
                if *highest == 0 {
                    touched.push(node);
                }
                *highest = impact;
                next = graph.node(node).parent;
            }
        });
        for node in touched.drain(..) {
            bounds[node.index()] += u64::from(std::mem::take(&mut highest[node.index()]));
        }
    }
    bounds
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::super::graph::Node;
    use super::super::tree::TreeBuilder;
    use super::super::tree::tests::any_catalog;
    use super::super::{Path, TreeConfig};
    use super::*;

    /// Per term: item to impact.
    type Table = Vec<BTreeMap<u32, u32>>;

    impl Postings for Table {
        fn for_each(&self, term: u32, visit: &mut dyn FnMut(u32, u32)) {
            self.get(term as usize).into_iter().flatten().for_each(|(item, impact)| visit(*item, *impact));
        }
    }

    /// Every item scored, best first.
    fn flat(query: &[u32], table: &Table) -> Vec<(u32, u64)> {
        let mut scores: BTreeMap<u32, u64> = BTreeMap::new();
        for term in query {
            table.for_each(*term, &mut |item, impact| *scores.entry(item).or_default() += u64::from(impact));
        }
        let mut ranking: Vec<_> = scores.into_iter().filter(|(_, score)| *score > 0).collect();
        ranking.sort_by_key(|(item, score)| (Reverse(*score), *item));
        ranking
    }

    /// `/a/x` with the items 0 and 1, `/a/y` with 2 and 3, `/b` with 4, `/c` with 5.
    fn small() -> ChoiceGraph {
        use NodeKind::{Cluster, Leaf, Namespace, Root};
        let places = [
            (Root, None, ""),
            (Namespace, Some(0), "a"),
            (Namespace, Some(0), "b"),
            (Namespace, Some(0), "c"),
            (Cluster, Some(1), "x"),
            (Cluster, Some(1), "y"),
            (Leaf(4), Some(2), "t4"),
            (Leaf(5), Some(3), "t5"),
            (Leaf(0), Some(4), "t0"),
            (Leaf(1), Some(4), "t1"),
            (Leaf(2), Some(5), "t2"),
            (Leaf(3), Some(5), "t3"),
        ];
        let node = |(kind, parent, segment): (NodeKind, Option<usize>, &str)| Node {
            kind,
            parent: parent.and_then(|parent| NodeId::at(parent).ok()),
            segment: segment.to_owned(),
            label: format!("<{segment}>"),
            hint: String::new(),
        };
        ChoiceGraph::new(3, places.map(node).to_vec()).unwrap()
    }

    #[test]
    fn a_narrow_beam_leaves_what_a_wide_one_finds() {
        let graph = small();
        // Term 0 and term 1 meet in no item below /a, so its bound of 9 + 8 is too hopeful.
        let table: Table =
            vec![[(0, 9), (2, 1), (4, 6)].into_iter().collect(), [(3, 8), (4, 5), (5, 7)].into_iter().collect()];
        let show = |width, top_k, gap| {
            let found = beam_search(&graph, &[0, 1, 7], &table, BeamConfig { width, max_depth: 8 }, top_k, gap);
            let path = |node: &NodeId| Path::of(&graph, *node).to_string();
            let expanded: Vec<_> = found.expanded.iter().map(path).collect();
            let pruned: Vec<_> = found.pruned.iter().map(|(node, bound)| format!("{}<={bound}", path(node))).collect();
            let hits: Vec<_> = found.hits.iter().map(|(item, score)| format!("{item}={score}")).collect();
            format!("{} | opened {} | left {}", hits.join(" "), expanded.join(" "), pruned.join(" "))
        };
        let lines = [
            ("one wide", show(1, 1, 0.0)),
            ("filled up", show(1, 2, 0.0)),
            ("the gap widens", show(1, 1, 0.5)),
            ("two wide", show(2, 10, 0.0)),
            ("all", show(usize::MAX, 10, 0.0)),
            ("nothing asked for", show(1, 0, 0.0)),
        ];
        let lines: Vec<_> = lines.iter().map(|(what, line)| format!("{what}: {line}")).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        one wide: 0=9 | opened / /a /a/x | left /b<=11 /a/y<=9 /c<=7
        filled up: 4=11 0=9 | opened / /a /a/x /b | left /a/y<=9 /c<=7
        the gap widens: 4=11 | opened / /a /b /a/x /a/y | left /c<=7
        two wide: 4=11 0=9 3=8 5=7 2=1 | opened / /a /b /a/x /a/y /c | left 
        all: 4=11 0=9 3=8 5=7 2=1 | opened / /a /b /c /a/x /a/y | left 
        nothing asked for:  | opened / /a /a/x | left /b<=11 /a/y<=9 /c<=7
        ");
        let none = beam_search(&graph, &[7], &table, BeamConfig::default(), 5, 0.15);
        assert_eq!(none, BeamResult::default());
    }

    #[test]
    fn an_exact_search_stops_when_no_bound_reaches_the_last_place() {
        let graph = small();
        let table: Table = vec![[(0, 9), (2, 1), (4, 9), (5, 8)].into_iter().collect()];
        let show = |top_k| {
            let found = exact_search(&graph, &[0], &table, top_k);
            let path = |node: &NodeId| Path::of(&graph, *node).to_string();
            let left: Vec<_> = found.pruned.iter().map(|(node, bound)| format!("{}<={bound}", path(node))).collect();
            (found.hits, found.expanded.iter().map(path).collect::<Vec<_>>().join(" "), left.join(" "))
        };
        assert_eq!(show(1), (vec![(0, 9)], "/ /a /b /a/x".to_owned(), "/c<=8 /a/y<=1".to_owned()), "ties by item");
        assert_eq!(show(3), (vec![(0, 9), (4, 9), (5, 8)], "/ /a /b /a/x /c".to_owned(), "/a/y<=1".to_owned()));
        assert_eq!(show(0), (vec![], String::new(), "/<=9".to_owned()));
    }

    #[test]
    fn depth_ends_the_beam_and_not_the_search() {
        let table: Table = vec![[(0, 3), (2, 2)].into_iter().collect()];
        let shallow = BeamConfig { width: 1, max_depth: 1 };
        let found = beam_search(&small(), &[0], &table, shallow, 2, 0.0);
        assert_eq!(found.hits, [(0, 3), (2, 2)]);
        assert_eq!(beam_search(&small(), &[0], &table, shallow, 0, 0.0).expanded, [NodeId::ROOT]);
    }

    fn any_search() -> impl Strategy<Value = (ChoiceGraph, Table, Vec<u32>)> {
        (any_catalog(), 2usize..=20).prop_flat_map(|(catalog, max_children)| {
            let graph = TreeBuilder::new(TreeConfig { max_children }).build(&catalog).unwrap();
            let table = vec(btree_map(0..catalog.len() as u32, 0u32..40, 0..60), 1..6);
            (Just(graph), table, vec(0u32..6, 0..8))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn an_unlimited_beam_is_the_flat_ranking((graph, table, query) in any_search(), top_k in 0usize..30) {
            let unlimited = BeamConfig { width: usize::MAX, max_depth: graph.len() };
            let found = beam_search(&graph, &query, &table, unlimited, top_k, 0.15);
            let mut expected = flat(&query, &table);
            expected.truncate(top_k);
            prop_assert_eq!(found.hits, expected);
            prop_assert_eq!(found.pruned, []);
        }

        #[test]
        fn an_exact_search_is_the_flat_ranking_and_leaves_what_cannot_matter(
            (graph, table, query) in any_search(),
            top_k in 0usize..30,
        ) {
            let found = exact_search(&graph, &query, &table, top_k);
            let mut expected = flat(&query, &table);
            expected.truncate(top_k);
            let last = expected.last().map_or(u64::MAX, |(_, last)| *last);
            prop_assert!(found.pruned.is_empty() || expected.len() == top_k, "left although a place was free");
            prop_assert!(found.pruned.iter().all(|(_, bound)| *bound < last));
            prop_assert_eq!(found.hits, expected);
            // Whatever was opened could have held a hit.
            let all = exact_search(&graph, &query, &table, usize::MAX);
            prop_assert_eq!(all.pruned, []);
            prop_assert!(found.expanded.len() <= all.expanded.len());
        }

        #[test]
        fn any_beam_tells_the_truth(
            (graph, table, query) in any_search(),
            width in 0usize..5,
            max_depth in 0usize..10,
            top_k in 0usize..30,
            gap in 0.0f64..1.0,
        ) {
            let config = BeamConfig { width, max_depth };
            let flat = flat(&query, &table);
            let scores: BTreeMap<u32, u64> = flat.iter().copied().collect();
            let found = beam_search(&graph, &query, &table, config, top_k, gap);
            prop_assert_eq!(found.hits.len(), top_k.min(flat.len()), "filled up as far as there is anything");
            prop_assert!(found.hits.is_sorted_by_key(|(item, score)| (Reverse(*score), *item)));
            prop_assert!(found.hits.windows(2).all(|pair| pair[0].0 != pair[1].0), "no leaf twice");
            prop_assert!(found.hits.iter().all(|(item, score)| scores[item] == *score));
            prop_assert!(found.pruned.is_sorted_by_key(|(node, bound)| (Reverse(*bound), *node)));
            for (node, bound) in &found.pruned {
                for (_, below) in graph.walk(*node, usize::MAX) {
                    prop_assert!(!found.expanded.contains(&below));
                    if let NodeKind::Leaf(item) = graph.node(below).kind {
                        prop_assert!(scores.get(&item).is_none_or(|score| score <= bound));
                    }
                }
            }
            let everything = beam_search(&graph, &query, &table, config, usize::MAX, gap);
            prop_assert_eq!(everything.hits, flat, "nothing is out of reach");
        }
    }
}
