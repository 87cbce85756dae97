//! Builds the choice graph of a catalog.
//!
//! The root, then namespaces, then items, with clusters between them where a namespace has more items than a node may
//! have children. Every step divides a list of items into disjoint parts that together are the list, so no item can be
//! lost. A division that is not worth its name (one part takes most of the items) is replaced by alphabetical ranges,
//! so the depth is bounded by the logarithm of the catalog. The work per level is linear in the text below it, times
//! the bounded number of parts. What comes below one node depends on no other, so a level is arranged on all cores;
//! sums of floats are taken in the order of the items, so the graph is the same on any number of cores.
//!
//! Clusters start from the texts that are least alike (Jaccard, farthest first). Such texts are outliers by choice, so
//! a few rounds then move every item to the cluster that it is most similar to. Items belong together by what they are
//! about: the words of the name and of the first sentence count, the words that go with every subject (get, list, tool
//! …) do not. Labels are made of the same words: those that are frequent in a part and rare outside it, as the catalog
//! writes them.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use unicode_normalization::UnicodeNormalization;

use super::TreeConfig;
use super::card::CARD_CAP;
use super::graph::{ChoiceGraph, GraphError, MAX_SEGMENT_BYTES, Node, NodeId, NodeKind, is_segment};
use super::sentence::{cut, first_sentence};
use contextweaver_core::catalog::{Catalog, Kind, SelectableItem};
use contextweaver_core::text::{Analyzer, TermSet, Terms, cl100k_if_over, counted, for_each_word, is_stop_word};

/// Builds the [`ChoiceGraph`] of a catalog: the same graph for the same items in any order.
#[derive(Debug, Clone, Copy, Default)]
pub struct TreeBuilder {
    config: TreeConfig,
}

impl TreeBuilder {
    /// A builder of graphs with this shape.
    #[must_use]
    pub fn new(config: TreeConfig) -> Self {
        Self { config }
    }

    /// The graph of all items of `catalog`.
    ///
    /// # Errors
    /// [`GraphError::Bound`] when the configuration allows fewer than two children, [`GraphError::Segment`] when
    /// a namespace is outside the id grammar, [`GraphError::TooLarge`] for a catalog of 2^32 nodes or more.
    pub fn build(&self, catalog: &Catalog) -> Result<ChoiceGraph, GraphError> {
        let max_children = self.config.max_children;
        if max_children < 2 {
            return Err(GraphError::Bound(max_children));
        }
        u32::try_from(catalog.len()).map_err(|_| GraphError::TooLarge)?;
        let words = Words::of(catalog.items());
        let arranger = Arranger { items: catalog.items(), words: &words, max_children };
        ChoiceGraph::new(max_children, arranger.nodes()?)
    }
}

/// What is still to be arranged below a node.
enum Below<'c> {
    /// Namespaces in alphabetical order with the numbers of their items.
    Namespaces(Vec<(&'c str, Vec<u32>)>),
    /// Items of one namespace, in ascending order.
    Items(Place<'c>, Vec<u32>),
    /// Nothing, because the node is a leaf.
    Nothing,
}

/// The place in the graph of a node whose items are to be arranged.
#[derive(Clone)]
struct Place<'c> {
    namespace: &'c str,
    /// The path of the node, without `/` at the end.
    path: String,
}

/// A node that has no position yet, and what comes below it.
type Pending<'c> = (Node, Below<'c>);

/// The catalog's items while their graph is being built.
struct Arranger<'c> {
    items: &'c [SelectableItem],
    words: &'c Words,
    max_children: usize,
}

impl<'c> Arranger<'c> {
    /// All nodes, breadth first.
    fn nodes(&self) -> Result<Vec<Node>, GraphError> {
        let mut namespaces: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (number, item) in self.items.iter().enumerate() {
            namespaces.entry(&item.namespace).or_default().push(number as u32);
        }
        let label = format!("{} in {}", counted(self.items.len(), "item"), counted(namespaces.len(), "namespace"));
        let hint = sample(namespaces.len(), "namespace", namespaces.keys().map(|name| (*name).to_owned()));
        let mut nodes = vec![node(NodeKind::Root, String::new(), label, hint)];
        let mut level = vec![(NodeId::ROOT, Below::Namespaces(namespaces.into_iter().collect()))];
        while !level.is_empty() {
            let arrange = |(parent, below)| (parent, self.children(below));
            let arranged: Vec<(NodeId, Vec<Pending<'c>>)> = level.into_par_iter().map(arrange).collect();
            level = Vec::new();
            for (parent, children) in arranged {
                for (child, below) in children {
                    level.push((NodeId::at(nodes.len())?, below));
                    nodes.push(Node { parent: Some(parent), ..child });
                }
            }
        }
        Ok(nodes)
    }

    /// The nodes directly below a node, in their order.
    fn children(&self, below: Below<'c>) -> Vec<Pending<'c>> {
        let mut children = match below {
            Below::Namespaces(namespaces) => self.namespaces(namespaces),
            Below::Items(place, items) => self.parts(&place, items),
            Below::Nothing => Vec::new(),
        };
        children.sort_by(|(left, _), (right, _)| left.rank().cmp(&right.rank()));
        children
    }

    /// A node for each namespace, or for each range of them when there are too many.
    fn namespaces(&self, namespaces: Vec<(&'c str, Vec<u32>)>) -> Vec<Pending<'c>> {
        let parts = match namespaces.len() {
            fitting if fitting <= self.max_children => fitting,
            many => self.fan_out(many),
        };
        let mut sprouts = Vec::new();
        for range in even_parts(namespaces, parts) {
            sprouts.push(match <[_; 1]>::try_from(range) {
                Ok([(namespace, items)]) => self.namespace(namespace, items),
                Err(range) => group(range),
            });
        }
        sprouts
    }

    fn namespace(&self, namespace: &'c str, items: Vec<u32>) -> Pending<'c> {
        let telling = self.words.telling(&self.words.count(&items), &self.words.all, namespace);
        let label = self.label(namespace, &telling, &items);
        let node = node(NodeKind::Namespace, namespace.to_owned(), label, self.hint(&items));
        let place = Place { namespace, path: format!("/{namespace}") };
        (node, Below::Items(place, items))
    }

    /// The nodes below a namespace or cluster: leaves, as long as they fit; otherwise parts that belong together;
    /// otherwise alphabetical ranges.
    fn parts(&self, place: &Place<'c>, items: Vec<u32>) -> Vec<Pending<'c>> {
        if items.len() <= self.max_children {
            return self.leaves(items, &mut Segments::default());
        }
        // Ranges are the flattest division: they are the last resort when paths have no room for the levels of another.
        let has_room = leaves_room(&place.path, self.levels(items.len(), 1.0 / LARGEST_SHARE));
        match has_room.then(|| self.clusters(&items)).flatten() {
            Some(parts) => self.branches(place, parts, Some(&self.words.count(&items))),
            None => self.branches(place, self.ranges(items), None),
        }
    }

    fn leaves(&self, items: Vec<u32>, segments: &mut Segments) -> Vec<Pending<'c>> {
        let leaf = |number| {
            let item = &self.items[number as usize];
            let segment = segments.claim([slug(&item.name)], item.kind.name());
            (node(NodeKind::Leaf(number), segment, title(item), String::new()), Below::Nothing)
        };
        items.into_iter().map(leaf).collect()
    }

    /// Nodes for parts of a node's items, named by the phrases that tell them apart in `total`, if it is given, and
    /// otherwise by their first and last names.
    ///
    /// A segment is shortened, and where even that does not fit it becomes a number: the paths of all levels below must
    /// still fit on a card.
    fn branches(&self, place: &Place<'c>, parts: Vec<Vec<u32>>, total: Option<&Counts>) -> Vec<Pending<'c>> {
        let namespace = place.namespace;
        let mut segments = Segments::default();
        let (single, several): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| part.len() == 1);
        // Leaves first, so that a tool keeps its name when a cluster would have the same.
        let mut sprouts = self.leaves(single.concat(), &mut segments);
        for part in several {
            let telling =
                total.map_or(Vec::new(), |total| self.words.telling(&self.words.count(&part), total, namespace));
            let slugs: Vec<String> = telling.iter().map(|word| slug(word)).filter(|slug| !slug.is_empty()).collect();
            let ends = self.ends(&part).map(|end| cut(&slug(&end.name), RANGE_END_BYTES).to_owned());
            let names = (1..=slugs.len()).map(|length| slugs[..length].join("-")).chain([ends.join("-to-")]);
            let levels = self.levels(part.len(), 2.0);
            // `-99` leaves room for the number that a repeated segment carries.
            let fits = |name: &str| leaves_room(&format!("{}/{name}-99", place.path), levels);
            let names = names.map(|name| cut(&name, CLUSTER_BYTES).trim_end_matches('-').to_owned());
            let mut names: Vec<String> = names.filter(|name| is_segment(name)).collect();
            if names.is_empty() {
                names.push("more".to_owned());
            }
            names.retain(|name| fits(name));
            let segment = match names.is_empty() {
                true => segments.claim((1..).map(|number: usize| number.to_string()), "more"),
                false => segments.claim(names, "more"),
            };
            let label = self.label(namespace, &telling, &part);
            let below = Place { namespace, path: format!("{}/{segment}", place.path) };
            sprouts.push((node(NodeKind::Cluster, segment, label, self.hint(&part)), Below::Items(below, part)));
        }
        sprouts
    }

    /// `items` in parts of equal size, in alphabetical order of their names.
    fn ranges(&self, mut items: Vec<u32>) -> Vec<Vec<u32>> {
        items.sort_by_cached_key(|item| (slug(&self.items[*item as usize].name), *item));
        let parts = self.fan_out(items.len());
        let mut ranges = even_parts(items, parts);
        ranges.iter_mut().for_each(|range| range.sort_unstable());
        ranges
    }

    /// The number of levels of branches below a node over `length` items at most, when every division leaves parts that
    /// are smaller by this factor.
    fn levels(&self, length: usize, factor: f64) -> usize {
        let mut levels = 0;
        let mut left = length as f64;
        while left > self.max_children as f64 {
            left = (left / factor).ceil().min(left - 1.0);
            levels += 1;
        }
        levels
    }

    /// The number of parts into which a list that is too long for one node is divided: about as many as each then has
    /// items, so that neither the parts nor their contents are a long read.
    fn fan_out(&self, length: usize) -> usize {
        let root = length.isqrt();
        let root = if root * root < length { root + 1 } else { root };
        root.clamp(2, self.max_children)
    }

    /// `items` in parts of similar texts, each in ascending order; `None` when the texts do not divide well.
    fn clusters(&self, items: &[u32]) -> Option<Vec<Vec<u32>>> {
        let texts: Vec<&[u32]> = items.iter().map(|item| self.words.texts[*item as usize].as_slice()).collect();
        let mut clusters = nearest_seeds(&texts, self.words.terms, self.fan_out(items.len()));
        gather(&self.words.vectors(items), &mut clusters);
        let mut parts: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for (item, cluster) in items.iter().zip(clusters) {
            parts.entry(cluster).or_default().push(*item);
        }
        let largest = parts.values().map(Vec::len).max().unwrap_or(0);
        (largest as f64 <= items.len() as f64 * LARGEST_SHARE).then(|| parts.into_values().collect())
    }

    /// The label of a node over `items`: the namespace and the phrases that tell it apart, or the first and last of its
    /// items where no phrase does.
    fn label(&self, namespace: &str, telling: &[&str], items: &[u32]) -> String {
        let said = if telling.is_empty() { self.ends(items).map(title).join(" to ") } else { telling.join(", ") };
        format!("{namespace}: {said}")
    }

    /// The first and the last item in alphabetical order of their names.
    ///
    /// `items` is never empty; if it were, the first item of the catalog would stand for both.
    fn ends(&self, items: &[u32]) -> [&'c SelectableItem; 2] {
        let key = |item: &&u32| (slug(&self.items[**item as usize].name), **item);
        let ends = [items.iter().min_by_key(key), items.iter().max_by_key(key)];
        ends.map(|end| &self.items[end.map_or(0, |item| *item as usize)])
    }

    /// How many items of which kind there are, and some of their names.
    fn hint(&self, items: &[u32]) -> String {
        let mut kinds = items.iter().map(|item| self.items[*item as usize].kind);
        let noun = match kinds.next() {
            Some(first) if kinds.all(|kind| kind == first) => first.name(),
            _ => "item",
        };
        sample(items.len(), noun, items.iter().map(|item| title(&self.items[*item as usize])))
    }
}

/// Tokens that a level adds to a path when its segment is a number: the slash and the number.
const LEVEL_TOKENS: usize = 2;

/// Whether the card of a node with this path, and of `levels` levels below it, is within the cap.
fn leaves_room(path: &str, levels: usize) -> bool {
    let left = CARD_CAP.saturating_sub(levels * LEVEL_TOKENS);
    cl100k_if_over(&format!("[1/1] {path} ({})", Kind::Internal.name()), left).is_none()
}

/// A division is rejected when one part takes more than this share of the items.
const LARGEST_SHARE: f64 = 2.0 / 3.0;

/// For every text the seed (0, 1, …) that it is most similar to (Jaccard), the first of equals. A text is its distinct
/// terms, numbers below `terms`.
///
/// Seeds are chosen farthest first: the first text, then always the text that is least similar to its nearest seed.
fn nearest_seeds(texts: &[&[u32]], terms: usize, seeds: usize) -> Vec<usize> {
    let mut nearest = vec![(-1.0, 0); texts.len()];
    let mut in_seed = vec![false; terms];
    let mut next = 0;
    for seed in 0..seeds {
        let Some(chosen) = texts.get(next) else { break };
        chosen.iter().for_each(|term| in_seed[*term as usize] = true);
        let similarity = |text: &[u32]| {
            let shared = text.iter().filter(|term| in_seed[**term as usize]).count();
            let union = text.len() + chosen.len() - shared;
            if union == 0 { 0.0 } else { shared as f64 / union as f64 }
        };
        let compare = |(at, (text, best)): (usize, (&&[u32], &mut (f64, usize)))| {
            // A seed belongs to itself, even when its text is empty or equals another seed's.
            let similarity = if at == next { 1.0 } else { similarity(text) };
            if similarity > best.0 {
                *best = (similarity, seed);
            }
        };
        texts.par_iter().zip(&mut nearest).enumerate().with_min_len(TASK).for_each(compare);
        chosen.iter().for_each(|term| in_seed[*term as usize] = false);
        let farthest = nearest.iter().enumerate().min_by(|(_, left), (_, right)| left.0.total_cmp(&right.0));
        match farthest {
            Some((at, (similarity, _))) if *similarity < 1.0 => next = at,
            _ => break,
        }
    }
    nearest.into_iter().map(|(_, seed)| seed).collect()
}

/// The number of texts that one task handles at least; fewer are not worth another core.
const TASK: usize = 1024;

/// A text as coordinates (dimension and value), ascending by dimension. Of length 1, or empty.
type Vector = Vec<(usize, f64)>;

/// The number of rounds after which hardly an item moves any more.
const ROUNDS: usize = 8;

/// Moves every text to the cluster whose summed texts have the largest cosine with it, until none moves.
fn gather(vectors: &[Vector], clusters: &mut [usize]) {
    let dimensions = vectors.iter().flatten().map(|(dimension, _)| dimension + 1).max().unwrap_or(0);
    let count = clusters.iter().map(|cluster| cluster + 1).max().unwrap_or(0);
    for _ in 0..ROUNDS {
        let centres = centres(vectors, clusters, dimensions, count);
        let closest = |cosines: &mut Vec<f64>, (vector, cluster): (&Vector, &mut usize)| {
            cosines.clear();
            cosines.resize(count, 0.0);
            for (dimension, value) in vector {
                let along = &centres[dimension * count..][..count];
                cosines.iter_mut().zip(along).for_each(|(cosine, centre)| *cosine += value * centre);
            }
            let mut best = (cosines[*cluster], *cluster);
            for (other, similarity) in cosines.iter().enumerate() {
                if *similarity > best.0 {
                    best = (*similarity, other);
                }
            }
            std::mem::replace(cluster, best.1) != best.1
        };
        let moved = vectors.par_iter().zip(&mut *clusters).with_min_len(TASK).map_init(Vec::new, closest);
        if moved.filter(|moved| *moved).count() == 0 {
            break;
        }
    }
}

/// Per dimension and, within it, per cluster: the direction of the sum of the cluster's vectors. What one text needs of
/// all clusters is stored together.
fn centres(vectors: &[Vector], clusters: &[usize], dimensions: usize, count: usize) -> Vec<f64> {
    let mut centres = vec![0.0; dimensions * count];
    for (vector, cluster) in vectors.iter().zip(clusters) {
        for (dimension, value) in vector {
            centres[dimension * count + cluster] += value;
        }
    }
    let mut lengths = vec![0.0; count];
    for along in centres.chunks_exact(count.max(1)) {
        lengths.iter_mut().zip(along).for_each(|(length, value)| *length += value * value);
    }
    for length in lengths.iter_mut() {
        *length = if *length > 0.0 { f64::sqrt(*length) } else { 1.0 };
    }
    for along in centres.chunks_exact_mut(count.max(1)) {
        along.iter_mut().zip(&lengths).for_each(|(value, length)| *value /= length);
    }
    centres
}

/// `list` in at most `parts` consecutive parts of equal length, the last possibly shorter.
fn even_parts<T>(list: Vec<T>, parts: usize) -> Vec<Vec<T>> {
    let length = list.len().div_ceil(parts.max(1)).max(1);
    let mut rest = list.into_iter();
    std::iter::from_fn(|| Some(rest.by_ref().take(length).collect::<Vec<T>>()).filter(|part| !part.is_empty()))
        .collect()
}

/// A node for a range of namespaces.
fn group(range: Vec<(&str, Vec<u32>)>) -> Pending<'_> {
    let ends = [range.first(), range.last()].map(|end| end.map_or("", |(namespace, _)| namespace));
    let hint = sample(range.len(), "namespace", range.iter().map(|(namespace, _)| (*namespace).to_owned()));
    let node = node(NodeKind::Group, ends[0].to_owned(), ends.join(" to "), hint);
    (node, Below::Namespaces(range))
}

fn node(kind: NodeKind, segment: String, label: String, hint: String) -> Node {
    Node { kind, parent: None, segment, label, hint }
}

/// The number of names in a hint at most.
const SAMPLE: usize = 5;

/// The count and some of the names, spread over the list: `26 tools: add_issue_comment, create_issue, …`.
fn sample(count: usize, noun: &str, names: impl Iterator<Item = String>) -> String {
    let step = count.div_ceil(SAMPLE).max(1);
    let names: Vec<String> = names.step_by(step).collect();
    let more = if names.len() < count { ", …" } else { "" };
    format!("{}: {}{more}", counted(count, noun), names.join(", "))
}

/// The longest name that a label or hint shows, in bytes.
const TITLE_BYTES: usize = 64;

/// The longest segment of a cluster, in bytes. Paths are read and written by models, and shown on cards.
const CLUSTER_BYTES: usize = 28;

/// The length of each end of a range in a segment, in bytes: two of them and `-to-` fill the segment of a cluster.
const RANGE_END_BYTES: usize = 12;

/// The name of an item on one line, shortened; its kind when the name has nothing to show.
fn title(item: &SelectableItem) -> String {
    let mut title = String::new();
    for word in item.name.split(|character: char| character.is_whitespace() || character.is_control()) {
        if title.len() > TITLE_BYTES {
            break;
        }
        if !title.is_empty() && !word.is_empty() {
            title.push(' ');
        }
        title.push_str(cut(word, TITLE_BYTES));
    }
    if title.len() > TITLE_BYTES {
        title.truncate(cut(&title, TITLE_BYTES).len());
        title.push('…');
    }
    if title.is_empty() { item.kind.name().to_owned() } else { title }
}

/// `text` as a path segment: accents are dropped, capitals lowered, and every run of other characters becomes one
/// hyphen. Empty when it has no letter or digit that a segment may hold.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    let mut gap = false;
    for character in text.nfkd().filter(|character| !('\u{300}'..='\u{36F}').contains(character)) {
        let character = character.to_ascii_lowercase();
        if character.is_ascii_alphanumeric() || (character == '_' && !slug.is_empty()) {
            if gap && !slug.is_empty() {
                slug.push('-');
            }
            gap = false;
            slug.push(character);
        } else {
            gap = true;
        }
        if slug.len() >= MAX_SEGMENT_BYTES {
            break;
        }
    }
    cut(&slug, MAX_SEGMENT_BYTES).to_owned()
}

/// The path segments already used among siblings.
#[derive(Default)]
struct Segments {
    /// Per segment the number that its next repetition would carry.
    taken: BTreeMap<String, usize>,
}

impl Segments {
    /// The first of `names` that is a segment and still free; otherwise the first that is a segment (or `fallback`)
    /// with the lowest free number from 2 on.
    fn claim(&mut self, names: impl IntoIterator<Item = String>, fallback: &str) -> String {
        let mut base = None;
        for name in names.into_iter().filter(|name| is_segment(name)) {
            if !self.taken.contains_key(&name) {
                self.taken.insert(name.clone(), 2);
                return name;
            }
            base.get_or_insert(name);
        }
        let base = base.unwrap_or_else(|| fallback.to_owned());
        let mut name = base.clone();
        while self.taken.contains_key(&name) {
            let number = self.taken.entry(base.clone()).or_insert(2);
            let suffix = format!("-{number}");
            *number += 1;
            name = format!("{}{suffix}", cut(&base, MAX_SEGMENT_BYTES - suffix.len()));
        }
        self.taken.insert(name.clone(), 2);
        name
    }
}

/// Words that go with nearly every subject: they neither hold items together nor tell them apart. Sorted.
const COMMON_WORDS: &[&str] = &[
    "add",
    "check",
    "create",
    "creates",
    "delete",
    "deletes",
    "edit",
    "fetch",
    "fetches",
    "find",
    "finds",
    "get",
    "gets",
    "list",
    "lists",
    "provide",
    "provides",
    "read",
    "reads",
    "remove",
    "removes",
    "retrieve",
    "retrieves",
    "return",
    "returns",
    "search",
    "set",
    "sets",
    "show",
    "shows",
    "tool",
    "tools",
    "update",
    "updates",
    "use",
    "used",
    "using",
    "write",
    "writes",
];

/// Whether a normalised word can say what a tool is about.
fn is_subject(word: &str) -> bool {
    !is_stop_word(word) && COMMON_WORDS.binary_search(&word).is_err()
}

/// The weight of a stem in an item's name.
const NAME_WEIGHT: u32 = 3;

/// The weight of a stem in the first sentence of an item's description.
const DESCRIPTION_WEIGHT: u32 = 1;

/// The number of phrases in a label at most.
const LABEL_PHRASES: usize = 3;

/// A phrase that scores less than this share of the most telling one is left out of a label.
const LABEL_SHARE: f64 = 0.25;

/// How much more a phrase of two words says than its words alone, as a factor.
const PHRASE_GAIN: f64 = 1.5;

/// What the texts of a catalog are about.
struct Words {
    /// Per item the distinct terms of its whole name and description, for comparing.
    texts: Vec<Vec<u32>>,
    /// The number of different terms.
    terms: usize,
    /// Per item the stems of its subject (single ones, and pairs that follow each other in the name) in ascending
    /// order, with their weights.
    subjects: Vec<Vec<(u32, u32)>>,
    /// Per stem the form in which the catalog writes it most often; empty when it means nothing to a person.
    shown: Vec<String>,
    /// The counts over all items together.
    all: Counts,
}

/// How often stems occur in a list of items.
struct Counts {
    /// The number of items.
    items: usize,
    /// The counts per stem, in ascending order of stems.
    stems: Vec<Count>,
}

/// How often one stem occurs.
struct Count {
    stem: u32,
    /// The number of items that have it.
    items: usize,
    /// The sum of its weights in these items.
    weight: u32,
}

impl Words {
    fn of(items: &[SelectableItem]) -> Self {
        let subjects = || {
            let analyzer = Analyzer::default();
            let mut forms = Forms::default();
            let subjects: Vec<_> = items.iter().map(|item| forms.subject(&analyzer, item)).collect();
            (subjects, forms.shown())
        };
        let ((texts, terms), (subjects, shown)) = rayon::join(|| numbered(&term_sets(items)), subjects);
        let none = Counts { items: 0, stems: Vec::new() };
        let words = Self { texts, terms, subjects, shown, all: none };
        let all = words.count(&(0..items.len() as u32).collect::<Vec<_>>());
        Self { all, ..words }
    }

    fn count(&self, items: &[u32]) -> Counts {
        let mut all: Vec<(u32, u32)> =
            items.iter().flat_map(|item| self.subjects[*item as usize].iter().copied()).collect();
        all.par_sort_unstable();
        let count = |same: &[(u32, u32)]| Count {
            stem: same[0].0,
            items: same.len(),
            weight: same.iter().map(|(_, weight)| weight).sum(),
        };
        Counts { items: items.len(), stems: all.chunk_by(|left, right| left.0 == right.0).map(count).collect() }
    }

    /// The subjects of `items` as vectors: weight times the logarithm of how rare the stem is among them.
    fn vectors(&self, items: &[u32]) -> Vec<Vector> {
        let counts = self.count(items);
        let coordinate = |(stem, weight): &(u32, u32)| {
            let dimension = counts.stems.binary_search_by_key(stem, |count| count.stem).ok()?;
            let rarity = libm::log(counts.items as f64 / counts.stems[dimension].items as f64);
            (rarity > 0.0).then(|| (dimension, f64::from(*weight) * rarity))
        };
        let vector = |item: &u32| {
            let mut vector: Vector = self.subjects[*item as usize].iter().filter_map(coordinate).collect();
            let length = vector.iter().map(|(_, value)| value * value).sum::<f64>().sqrt();
            vector.iter_mut().for_each(|(_, value)| *value /= length);
            vector
        };
        items.par_iter().with_min_len(TASK).map(vector).collect()
    }

    /// The phrases that tell `part` from the rest of `total`, which contains it: those with the largest difference
    /// between their mean weight inside and outside. Phrases that are in the namespace's name are left out, and no two
    /// share a word.
    fn telling(&self, part: &Counts, total: &Counts, namespace: &str) -> Vec<&str> {
        let outside = (total.items - part.items).max(1) as f64;
        let mut found: Vec<(f64, &str)> = Vec::new();
        for inside in &part.stems {
            let all = total.stems.binary_search_by_key(&inside.stem, |all| all.stem);
            let all = all.map_or(inside.weight, |at| total.stems[at].weight);
            let difference = f64::from(inside.weight) / part.items as f64 - f64::from(all - inside.weight) / outside;
            let phrase = self.shown[inside.stem as usize].as_str();
            if difference > 0.0 && !phrase.is_empty() && !phrase.split(' ').all(|word| namespace.contains(word)) {
                found.push((if phrase.contains(' ') { difference * PHRASE_GAIN } else { difference }, phrase));
            }
        }
        found.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(right.1)));
        let least = found.first().map_or(0.0, |(most, _)| most * LABEL_SHARE);
        let mut telling: Vec<&str> = Vec::new();
        for (_, phrase) in found.into_iter().take_while(|(difference, _)| *difference >= least) {
            let mut said = telling.iter().flat_map(|phrase| phrase.split(' '));
            if telling.len() < LABEL_PHRASES && !said.any(|said| phrase.split(' ').any(|word| word == said)) {
                telling.push(phrase);
            }
        }
        telling
    }
}

/// Per item the terms of its name and description.
fn term_sets(items: &[SelectableItem]) -> Vec<TermSet> {
    let text = |terms: &mut Terms, item: &SelectableItem| terms.set(&format!("{} {}", item.name, item.description));
    items.par_iter().with_min_len(TASK).map_init(Terms::default, text).collect()
}

/// `sets` with terms numbered from 0 in the order in which they are met, and the number of terms.
fn numbered(sets: &[TermSet]) -> (Vec<Vec<u32>>, usize) {
    let mut numbers: FxHashMap<u64, u32> = FxHashMap::default();
    let mut number = |hash: &u64| {
        let next = numbers.len() as u32;
        *numbers.entry(*hash).or_insert(next)
    };
    let texts = sets.iter().map(|set| set.hashes().iter().map(&mut number).collect()).collect();
    (texts, numbers.len())
}

/// The words and pairs of words met so far, in the forms in which they were written.
#[derive(Default)]
struct Forms {
    numbers: FxHashMap<String, usize>,
    forms: Vec<Form>,
    stems: FxHashMap<String, u32>,
}

struct Form {
    text: String,
    stem: u32,
    count: usize,
}

impl Forms {
    /// The stems of an item's name and of the first sentence of its description with their weights, in ascending order;
    /// each counts once in either, however often it occurs.
    fn subject(&mut self, analyzer: &Analyzer, item: &SelectableItem) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        let mut before = String::new();
        for_each_word(&item.name, |word| {
            if !is_subject(word) {
                return before.clear();
            }
            found.push((self.stem(analyzer, word), NAME_WEIGHT));
            if !before.is_empty() {
                found.push((self.stem(analyzer, &format!("{before} {word}")), NAME_WEIGHT));
            }
            word.clone_into(&mut before);
        });
        for_each_word(first_sentence(&item.description), |word| {
            if is_subject(word) {
                found.push((self.stem(analyzer, word), DESCRIPTION_WEIGHT));
            }
        });
        found.sort_unstable();
        found.dedup();
        found
            .chunk_by(|left, right| left.0 == right.0)
            .map(|same| (same[0].0, same.iter().map(|(_, weight)| weight).sum()))
            .collect()
    }

    /// The number of the stem of a word, or of the stems of several words separated by spaces.
    fn stem(&mut self, analyzer: &Analyzer, form: &str) -> u32 {
        if let Some(number) = self.numbers.get(form) {
            let known = &mut self.forms[*number];
            known.count += 1;
            return known.stem;
        }
        let stems: Vec<_> = form.split(' ').map(|word| analyzer.stem(word)).collect();
        let next = self.stems.len() as u32;
        let stem = *self.stems.entry(stems.join(" ")).or_insert(next);
        self.numbers.insert(form.to_owned(), self.forms.len());
        self.forms.push(Form { text: form.to_owned(), stem, count: 1 });
        stem
    }

    /// Per stem its most frequent form (then the shortest, then the first in alphabetical order); empty for single
    /// letters and for numbers.
    fn shown(mut self) -> Vec<String> {
        let says_something = |text: &str| text.chars().nth(1).is_some() && text.chars().any(char::is_alphabetic);
        let mut shown = vec![String::new(); self.stems.len()];
        self.forms.sort_by(|left, right| {
            let rank = |form: &Form| (form.stem, std::cmp::Reverse(form.count), form.text.len());
            rank(left).cmp(&rank(right)).then_with(|| left.text.cmp(&right.text))
        });
        for same in self.forms.chunk_by_mut(|left, right| left.stem == right.stem) {
            if says_something(&same[0].text) {
                shown[same[0].stem as usize] = std::mem::take(&mut same[0].text);
            }
        }
        shown
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Catalogs of 1 to 400 items with anything in their names, many alike and many the same.
    pub(crate) fn any_catalog() -> impl Strategy<Value = Catalog> {
        let name = prop_oneof![
            4 => (select(&["get", "list", "createNew", "merge"]), select(&["issue", "pull_request", "page", "User"]), 0u8..9)
                .prop_map(|(verb, noun, number)| format!("{verb}_{noun}{number}")),
            1 => select(&["run", "", "*", "..", "日本語", "Änderung", "a/b", "more", "x\0y", "tool-2"]).prop_map(str::to_owned),
            1 => "\\PC{0,90}",
        ];
        let description = prop_oneof![
            vec(select(&["issue", "page", "the", "mail", "of", "Wiki", "branches", "2", ". "]), 0..9)
                .prop_map(|words| words.join(" ")),
            Just("The same.".to_owned()),
        ];
        let namespaces = prop_oneof![Just(1..2u8), Just(1..60u8)];
        namespaces
            .prop_flat_map(move |range| vec((range, name.clone(), description.clone()), 1..400))
            .prop_map(|items| catalog(items.into_iter().map(|(space, name, text)| (format!("n{space}"), name, text))))
    }

    /// A catalog of (namespace, name, description).
    fn catalog(items: impl IntoIterator<Item = (String, String, String)>) -> Catalog {
        let item = |(number, (namespace, name, text)): (usize, (String, String, String))| {
            SelectableItem::tool(&format!("{namespace}:t{}", number * 7919 % 1000), &namespace, &name, &text)
        };
        Catalog::new(items.into_iter().enumerate().map(item).collect()).unwrap()
    }

    fn tools(namespace: &str, tools: &[(&str, &str)]) -> Catalog {
        catalog(tools.iter().map(|(name, text)| (namespace.to_owned(), (*name).to_owned(), (*text).to_owned())))
    }

    fn build(max_children: usize, catalog: &Catalog) -> ChoiceGraph {
        TreeBuilder::new(TreeConfig { max_children }).build(catalog).unwrap()
    }

    fn printed(graph: &ChoiceGraph) -> String {
        let line = |(depth, id): (usize, NodeId)| {
            let node = graph.node(id);
            let hint = if node.hint.is_empty() { String::new() } else { format!(" -- {}", node.hint) };
            format!("{}/{} {}{hint}\n", "  ".repeat(depth), node.segment, node.label)
        };
        graph.walk(NodeId::ROOT, usize::MAX).map(line).collect()
    }

    #[test]
    fn a_namespace_is_divided_by_what_its_tools_are_about() {
        let catalog = tools(
            "hub",
            &[
                ("create_issue", "Create a new issue in a repository. The title is required."),
                ("list_issues", "List issues of a repository"),
                ("close_issue", "Close an issue"),
                ("merge_pull_request", "Merge a pull request"),
                ("list_pull_requests", "List pull requests"),
                ("get_pull_request", "Get one pull request"),
                ("get_file", "Read a file from a repository"),
                ("delete_file", "Delete a file"),
            ],
        );
        insta::assert_snapshot!(printed(&build(4, &catalog)), @r"
        / 8 items in 1 namespace -- 1 namespace: hub
          /hub hub: pull request, issue, file -- 8 tools: create_issue, get_file, list_pull_requests, close_issue, …
            /file hub: file -- 2 tools: delete_file, get_file
              /delete_file delete_file
              /get_file get_file
            /issue hub: issue, close -- 3 tools: create_issue, close_issue, list_issues
              /create_issue create_issue
              /close_issue close_issue
              /list_issues list_issues
            /pull-request hub: pull request, merge -- 3 tools: get_pull_request, list_pull_requests, merge_pull_request
              /get_pull_request get_pull_request
              /list_pull_requests list_pull_requests
              /merge_pull_request merge_pull_request
        ");
    }

    #[test]
    fn too_many_namespaces_are_grouped_and_paths_look_through_the_groups() {
        let names = ["mail", "bank", "maps", "wiki", "jobs"];
        let item = |name: &str| (name.to_owned(), format!("{name}_send"), String::new());
        let graph = build(2, &catalog(names.map(item)));
        insta::assert_snapshot!(printed(&graph), @r"
        / 5 items in 5 namespaces -- 5 namespaces: bank, jobs, mail, maps, wiki
          /bank bank to mail -- 3 namespaces: bank, jobs, mail
            /bank bank to jobs -- 2 namespaces: bank, jobs
              /bank bank: bank send -- 1 tool: bank_send
                /bank_send bank_send
              /jobs jobs: jobs send -- 1 tool: jobs_send
                /jobs_send jobs_send
            /mail mail: mail send -- 1 tool: mail_send
              /mail_send mail_send
          /maps maps to wiki -- 2 namespaces: maps, wiki
            /maps maps: maps send -- 1 tool: maps_send
              /maps_send maps_send
            /wiki wiki: wiki send -- 1 tool: wiki_send
              /wiki_send wiki_send
        ");
        let visible: Vec<_> =
            graph.path_children(NodeId::ROOT).into_iter().map(|id| graph.node(id).segment.clone()).collect();
        assert_eq!(visible, ["bank", "jobs", "mail", "maps", "wiki"]);
    }

    #[test]
    fn texts_that_do_not_divide_are_ranges_of_names() {
        let names = ["f", "e", "d", "c", "b", "a", "查询", "a"];
        let catalog = tools("same", &names.map(|name| (name, "The same thing")));
        insta::assert_snapshot!(printed(&build(3, &catalog)), @r"
        / 8 items in 1 namespace -- 1 namespace: same
          /same same: thing, 查询 -- 8 tools: f, 查询, b, d, …
            /b-to-d same: b to d -- 3 tools: b, c, d
              /b b
              /c c
              /d d
            /e-to-f same: e to f -- 2 tools: f, e
              /f f
              /e e
            /more same: 查询 to a -- 3 tools: a, 查询, a
              /a a
              /tool 查询
              /a-2 a
        ");
    }

    #[test]
    fn what_cannot_be_a_tree_is_refused() {
        let one = tools("lower", &[("a", "")]);
        assert_eq!(TreeBuilder::new(TreeConfig { max_children: 1 }).build(&one), Err(GraphError::Bound(1)));
    }

    #[test]
    fn segments_are_slugs() {
        let table = [
            ("create_issue", "create_issue"),
            ("Create Issue!", "create-issue"),
            ("--__x--y_", "x-y_"),
            ("Über.Größe", "uber-gro-e"),
            ("查询", ""),
            ("a/../*", "a"),
        ];
        for (name, expected) in table {
            assert_eq!(slug(name), expected, "{name}");
        }
        let mut segments = Segments::default();
        let long = "x".repeat(70);
        let claimed = ["a", "a", "a-2", "a", "*", "*", &long[..64], &long[..64]]
            .map(|name| segments.claim([name.to_owned()], "tool"));
        assert_eq!(claimed[..6], ["a", "a-2", "a-2-2", "a-3", "tool", "tool-2"]);
        assert_eq!(claimed[6..], [long[..64].to_owned(), format!("{}-2", &long[..62])]);
        let named = ["b", "b"].map(|name| segments.claim([name.to_owned(), format!("{name}-c")], "more"));
        assert_eq!(named, ["b", "b-c"]);
    }

    #[test]
    fn common_words_are_sorted_so_that_the_search_finds_every_word() {
        assert!(COMMON_WORDS.is_sorted());
    }

    #[test]
    fn ten_thousand_tools_in_one_namespace_are_a_shallow_tree() {
        let nouns = ["issue", "page", "mail", "user", "file", "branch", "job", "event", "task", "note", "label"];
        let tool = |number: usize| {
            let (first, second) = (nouns[number % 11], nouns[number / 11 % 11]);
            ("big".to_owned(), format!("do_{first}_{second}_{number}"), format!("Does {first} things to a {second}."))
        };
        let catalog = Catalog::new(
            (0..10_000)
                .map(tool)
                .enumerate()
                .map(|(n, (space, name, text))| SelectableItem::tool(&format!("big:{n}"), &space, &name, &text))
                .collect(),
        );
        let graph = build(20, &catalog.unwrap());
        let depth = graph.walk(NodeId::ROOT, usize::MAX).map(|(depth, _)| depth).max();
        assert!(depth.is_some_and(|depth| depth <= 8), "{depth:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// `ChoiceGraph::new` checks every rule of a graph; here is what it cannot know.
        #[test]
        fn every_catalog_has_a_graph(catalog in any_catalog(), max_children in 2usize..=20) {
            let graph = build(max_children, &catalog);
            prop_assert_eq!(graph.items(), catalog.len());
            graph.validate(catalog.items()).unwrap();
            for (id, node) in graph.nodes() {
                prop_assert!(!node.label.trim().is_empty() && node.label.len() < 600, "{:?}", node.label);
                prop_assert!(!node.label.contains(char::is_control) && !node.hint.contains(char::is_control));
                prop_assert_eq!(node.hint.is_empty(), matches!(node.kind, NodeKind::Leaf(_)));
                prop_assert_eq!(graph.leaf(0).is_some_and(|leaf| leaf == id), node.kind == NodeKind::Leaf(0));
            }
        }

        #[test]
        fn the_order_of_items_changes_nothing(catalog in any_catalog(), turn in 0usize..400) {
            let mut items = catalog.items().to_vec();
            items.rotate_left(turn % catalog.len());
            items.reverse();
            prop_assert_eq!(build(5, &Catalog::new(items).unwrap()), build(5, &catalog));
        }
    }
}
