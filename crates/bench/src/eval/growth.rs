//! Growing a catalog around a constant set of queries.
//!
//! How much does an engine lose when a catalog grows? The answer needs the same queries at every size, so a core of
//! [`CORE_TOOLS`] tools is chosen, and the queries that it answers in full, declared equivalents included, are the
//! query set of every size. Only generated tools of the grade are added to it: what a curve shows is what its
//! distractors cost, and nothing else. The collection's other tools stay away, since they are confusable in ways of
//! their own.
//!
//! Growth is a sequence of which every size takes the beginning: the catalog of a smaller size is part of that of a
//! larger one of the same grade and seed. A grown collection is made as text, in the form of the files, and then
//! loaded like any other: what an engine is given is what `contextweaver gold grow` writes. The same seed gives the
//! same bytes, whatever the order of the tools in the file (copies excepted, which are defined by that order).
//!
//! Generated tools must never be a right answer: the files of words in `data/growth/` say how they were chosen for
//! that.

mod invented;
mod phrase;
mod variants;
mod vocabulary;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value};

use contextweaver_core::catalog::SelectableItem;

use super::collection::{Collection, CollectionError, Query, Source, full_handle, queries_jsonl};
use super::record::{Grade, Growth};
use super::rng::Rng;

pub use invented::scaled;

use crate::data::DataError;

use phrase::{Idea, Style, Tool};
use variants::Variants;
use vocabulary::{Field, Vocabulary};

/// The sizes at which growth is measured.
pub const SIZES: [usize; 8] = [50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];

/// The seed of the committed results.
pub const SEED: u64 = 1;

/// Tools in the core, or all of a smaller collection.
pub const CORE_TOOLS: usize = 50;

/// A collection cannot be grown as asked.
#[derive(Debug, thiserror::Error)]
pub enum GrowthError {
    /// The size is below that of the smallest catalog.
    #[error("`{collection}` cannot be grown to {size} tools with {} distractors; the smallest size is {smallest}", grade.name())]
    TooSmall {
        /// The collection.
        collection: String,
        /// The size asked for.
        size: usize,
        /// The grade asked for.
        grade: Grade,
        /// The smallest size that this grade has.
        smallest: usize,
    },
    /// The words give no more different tools.
    #[error("`{collection}` cannot be grown to {size} tools with {} distractors: there is material for {available}", grade.name())]
    Exhausted {
        /// The collection.
        collection: String,
        /// The size asked for.
        size: usize,
        /// The grade asked for.
        grade: Grade,
        /// The most tools that can be reached.
        available: usize,
    },
    /// A file of words says something wrong.
    #[error(transparent)]
    Data(#[from] DataError),
    /// What was made could not be loaded.
    #[error("growing `{collection}`")]
    Load {
        /// The collection.
        collection: String,
        /// Why.
        source: Box<CollectionError>,
    },
}

/// The two files of a grown collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrownFiles {
    /// `catalog.json`: an array with one tool a line.
    pub catalog: String,
    /// `queries.jsonl`: the constant query set.
    pub queries: String,
}

/// `base` grown to `growth.size` tools of `growth.grade`.
///
/// For [`Grade::Copies`] every query is kept, the copies of a relevant tool are its equivalents, and the copies of any
/// tool are one capability: measures by the named tool alone are then strict, the others are by capability.
///
/// # Errors
/// [`GrowthError`] when the size is below the smallest catalog or above what the words give.
pub fn grow(base: &Collection, growth: Growth, seed: u64) -> Result<Collection, GrowthError> {
    let files = grown_files(base, growth, seed)?;
    let source = |text: &'static str, bytes| Source { path: Path::new(text), bytes };
    let catalog = source("grown catalog", files.catalog.as_bytes());
    let queries = source("queries of the grown catalog", files.queries.as_bytes());
    let mut grown = Collection::from_bytes(&base.name, base.origin, catalog, queries)
        .map_err(|error| GrowthError::Load { collection: base.name.clone(), source: Box::new(error) })?;
    grown.about.clone_from(&base.about);
    if growth.grade == Grade::Copies {
        grown.capabilities = Some(originals(grown.file_order(), base.catalog.len()));
    }
    Ok(grown)
}

/// The files of `base` grown to `growth.size` tools of `growth.grade`.
///
/// # Errors
/// As [`grow`].
pub fn grown_files(base: &Collection, growth: Growth, seed: u64) -> Result<GrownFiles, GrowthError> {
    match growth.grade {
        Grade::Copies => copies(base, growth),
        Grade::Unrelated | Grade::Sibling | Grade::NearDuplicate | Grade::KeywordStuffed | Grade::Mixed => {
            around_core(base, growth, seed)
        }
    }
}

fn around_core(base: &Collection, growth: Growth, seed: u64) -> Result<GrownFiles, GrowthError> {
    let vocabulary = Vocabulary::builtin()?;
    let rng = Rng::new(seed);
    let core = Core::choose(base, &mut rng.fork("core"));
    let smallest = core.tools.len();
    if growth.size < smallest {
        return Err(too_small(base, growth, smallest));
    }
    let items = base.catalog.items();
    let own = stable_order(base).into_iter().filter(|item| core.tools.contains(item));
    let mut lines: Vec<String> = own.map(|item| line_of(&items[item as usize])).collect();
    let mut taken: BTreeSet<(Option<String>, String)> =
        items.iter().map(|item| (item.server.clone(), item.name.clone())).collect();
    let mut stream = distractors(vocabulary, base, &core, growth.grade, &rng);
    while lines.len() < growth.size {
        let Some(tool) = stream.next() else {
            let available = lines.len();
            return Err(GrowthError::Exhausted {
                collection: base.name.clone(),
                size: growth.size,
                grade: growth.grade,
                available,
            });
        };
        if taken.insert((tool.server.clone(), tool.name.clone())) {
            lines.push(tool.to_json());
        }
    }
    let kept = base.queries.iter().filter(|query| core.answers(query) || query.groups.is_empty());
    Ok(GrownFiles { catalog: array(&lines), queries: queries_jsonl(base, kept, |_| Vec::new()) })
}

fn too_small(base: &Collection, growth: Growth, smallest: usize) -> GrowthError {
    GrowthError::TooSmall { collection: base.name.clone(), size: growth.size, grade: growth.grade, smallest }
}

/// Item numbers in an order that depends on names alone.
fn stable_order(base: &Collection) -> Vec<u32> {
    let mut order: Vec<u32> = base.file_order().to_vec();
    let items = base.catalog.items();
    order.sort_by_key(|item| (&items[*item as usize].server, &items[*item as usize].name));
    order
}

fn array(lines: &[String]) -> String {
    format!("[\n{}\n]\n", lines.join(",\n"))
}

/// The tool as it was received, or as an MCP tool when it was made in code. A definition that came without the key
/// `server` from a source that names its server otherwise gets one.
fn line_of(item: &SelectableItem) -> String {
    let received = item.definition();
    match (&item.server, serde_json::from_str::<Value>(&received)) {
        (Some(server), Ok(Value::Object(mut tool))) if !tool.contains_key("server") => {
            tool.insert("server".to_owned(), Value::String(server.clone()));
            Value::Object(tool).to_string()
        }
        _ => received.into_owned(),
    }
}

/// The tools that every size has.
struct Core {
    tools: BTreeSet<u32>,
}

impl Core {
    /// Chooses the core greedily: again and again the set of tools that makes the most further queries answerable
    /// for each tool that it adds, first in a seeded order among equals. What is left is filled up in that order.
    fn choose(base: &Collection, rng: &mut Rng) -> Self {
        let mut order = stable_order(base);
        rng.shuffle(&mut order);
        let rank: BTreeMap<u32, usize> = order.iter().copied().zip(0..).collect();
        let mut needs: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        for query in base.queries.iter().filter(|query| !query.groups.is_empty()) {
            let tools: BTreeSet<u32> = query.groups.iter().flatten().copied().collect();
            *needs.entry(tools.into_iter().collect()).or_default() += 1;
        }
        let mut chosen = vec![false; base.catalog.len()];
        let mut room = CORE_TOOLS;
        loop {
            let lacks = |need: &[u32]| need.iter().filter(|tool| !chosen[**tool as usize]).count();
            let open: Vec<(&Vec<u32>, usize, usize)> = needs
                .iter()
                .map(|(need, queries)| (need, *queries, lacks(need)))
                .filter(|(_, _, missing)| (1..=room).contains(missing))
                .collect();
            // Queries gained by adding what a need lacks: all whose tools are then in the core.
            let gain = |need: &[u32], missing: usize| -> usize {
                let inside = |tool: &u32| chosen[*tool as usize] || need.contains(tool);
                open.iter()
                    .filter(|(other, _, lack)| *lack <= missing && other.iter().all(inside))
                    .map(|one| one.1)
                    .sum()
            };
            let first = |need: &[u32]| need.iter().filter_map(|tool| rank.get(tool)).min().copied();
            let best = open
                .iter()
                .map(|(need, _, missing)| (*need, gain(need, *missing), *missing, first(need)))
                // a/b > c/d without rounding: a·d > c·b.
                .max_by(|one, two| {
                    (one.1 * two.2).cmp(&(two.1 * one.2)).then(two.3.cmp(&one.3)).then(two.0.len().cmp(&one.0.len()))
                });
            let Some((need, _, missing, _)) = best else { break };
            room -= missing;
            let need = need.clone();
            need.iter().for_each(|tool| chosen[*tool as usize] = true);
        }
        let mut tools: BTreeSet<u32> =
            (0..).zip(&chosen).filter(|(_, chosen)| **chosen).map(|(tool, _)| tool).collect();
        for tool in order {
            if tools.len() >= CORE_TOOLS {
                break;
            }
            tools.insert(tool);
        }
        Self { tools }
    }

    /// Whether a tool answers the query and all tools that count as an answer are in the core.
    fn answers(&self, query: &Query) -> bool {
        !query.groups.is_empty() && query.groups.iter().flatten().all(|item| self.tools.contains(item))
    }
}

type Stream<'a> = Box<dyn Iterator<Item = Tool> + 'a>;

/// The generated tools of a grade, in the order in which they are added.
fn distractors<'a>(
    vocabulary: &'static Vocabulary,
    base: &'a Collection,
    core: &Core,
    grade: Grade,
    rng: &Rng,
) -> Stream<'a> {
    let answered = base.queries.iter().filter(|query| core.answers(query));
    let relevant: BTreeSet<u32> = answered.flat_map(|query| query.groups.iter().flatten().copied()).collect();
    let items = base.catalog.items();
    let models: Vec<&SelectableItem> = stable_order(base)
        .into_iter()
        .filter(|item| relevant.contains(item))
        .map(|item| &items[item as usize])
        .collect();
    let unrelated = || unrelated(vocabulary, rng.fork("unrelated"), "");
    let sibling = || sibling(vocabulary, &models, rng.fork("sibling"));
    let near_duplicate = || near_duplicate(vocabulary, models.clone(), rng.fork("near_duplicate"));
    let keyword_stuffed = || keyword_stuffed(vocabulary, &models, &rng.fork("keyword_stuffed"));
    match grade {
        Grade::Unrelated => Box::new(unrelated()),
        Grade::Sibling => Box::new(sibling()),
        Grade::NearDuplicate => Box::new(near_duplicate()),
        Grade::KeywordStuffed => Box::new(keyword_stuffed()),
        Grade::Mixed => {
            let streams: [Stream; 4] =
                [Box::new(unrelated()), Box::new(sibling()), Box::new(near_duplicate()), Box::new(keyword_stuffed())];
            Box::new(interleave(streams))
        }
        Grade::Copies => Box::new(std::iter::empty()),
    }
}

/// One tool of each stream in turn, until one of them ends.
fn interleave<const N: usize>(mut streams: [Stream; N]) -> impl Iterator<Item = Tool> {
    let mut turn = 0;
    std::iter::from_fn(move || {
        let tool = streams[turn].next();
        turn = (turn + 1) % N;
        tool
    })
}

const STYLES: [Style; 4] = [Style::Snake, Style::Camel, Style::Kebab, Style::Dotted];

/// Tools of other fields. One server gives [`SERVER_TOOLS`] before the next follows, as catalogs are composed.
fn unrelated(vocabulary: &'static Vocabulary, mut rng: Rng, suffix: &'static str) -> impl Iterator<Item = Tool> {
    let mut fields: Vec<&Field> = vocabulary.fields.iter().collect();
    rng.shuffle(&mut fields);
    let mut ideas: Vec<_> = fields.iter().map(|field| phrase::ideas(vocabulary, field, &mut rng).into_iter()).collect();
    // The main server of each field comes before those of the sites.
    let sites = std::iter::once("").chain(vocabulary.sites.iter().map(String::as_str));
    let servers = sites.flat_map(move |site| (0..vocabulary.fields.len()).map(move |index| (site, index)));
    servers.flat_map(move |(site, index)| {
        let (field, style) = (fields[index], STYLES[rng.below(STYLES.len())]);
        let joint = if style == Style::Kebab { Style::Kebab } else { Style::Snake };
        let server = joint.join([&field.server, site, suffix].into_iter());
        let size = SERVER_TOOLS.start + rng.below(SERVER_TOOLS.len());
        let ideas = ideas[index].by_ref().take(size);
        ideas.map(|idea| phrase::tool(vocabulary, field, idea, &server, style, &mut rng)).collect::<Vec<Tool>>()
    })
}

/// How many tools a generated server has.
const SERVER_TOOLS: std::ops::Range<usize> = 12..28;

/// Further tools of the namespaces of `models`, named as these are.
fn sibling(
    vocabulary: &'static Vocabulary,
    models: &[&SelectableItem],
    mut rng: Rng,
) -> impl Iterator<Item = Tool> + use<> {
    struct Namespace {
        server: Option<String>,
        field: &'static Field,
        style: Style,
        /// What every name begins with, joint included; empty where names have no common beginning.
        prefix: String,
        ideas: std::vec::IntoIter<Idea<'static>>,
    }
    let mut by_namespace: BTreeMap<&str, Vec<&SelectableItem>> = BTreeMap::new();
    for model in models {
        by_namespace.entry(&model.namespace).or_default().push(model);
    }
    let mut namespaces: Vec<Namespace> = by_namespace
        .into_iter()
        .map(|(namespace, members)| {
            let style = Style::of(&members[0].name);
            let joint = if style == Style::Kebab { "-" } else { "_" };
            let prefix = format!("{namespace}{joint}");
            let prefixed = members.iter().all(|member| member.name.starts_with(&prefix));
            let field = vocabulary.of_namespace(namespace);
            Namespace {
                server: members[0].server.clone(),
                field,
                style,
                prefix: if prefixed { prefix } else { String::new() },
                ideas: phrase::ideas(vocabulary, field, &mut rng).into_iter(),
            }
        })
        .collect();
    std::iter::from_fn(move || {
        namespaces.retain(|namespace| !namespace.ideas.as_slice().is_empty());
        let chosen = rng.below(namespaces.len());
        let namespace = namespaces.get_mut(chosen)?;
        let idea = namespace.ideas.next()?;
        let mut tool = phrase::tool(vocabulary, namespace.field, idea, "", namespace.style, &mut rng);
        tool.server.clone_from(&namespace.server);
        tool.name.insert_str(0, &namespace.prefix);
        Some(tool)
    })
}

/// Variants of `models` with another scope or purpose; those for a single office come last.
fn near_duplicate<'a>(
    vocabulary: &'static Vocabulary,
    models: Vec<&'a SelectableItem>,
    mut rng: Rng,
) -> impl Iterator<Item = Tool> + 'a {
    let variants = Variants::of(vocabulary);
    let pairs =
        |codes: std::ops::Range<usize>| codes.flat_map(|code| (0..models.len()).map(move |model| (model, code)));
    let mut everywhere: Vec<(usize, usize)> = pairs(0..variants.everywhere()).collect();
    let mut single_office: Vec<(usize, usize)> = pairs(variants.everywhere()..variants.per_tool()).collect();
    rng.shuffle(&mut everywhere);
    rng.shuffle(&mut single_office);
    let order = everywhere.into_iter().chain(single_office);
    order.map(move |(model, code)| variants.near_duplicate(models[model], code, &mut rng))
}

/// Unrelated tools whose descriptions repeat key terms of `models`.
fn keyword_stuffed(
    vocabulary: &'static Vocabulary,
    models: &[&SelectableItem],
    rng: &Rng,
) -> impl Iterator<Item = Tool> + use<> {
    let terms: Vec<Vec<String>> = models.iter().map(|model| variants::key_terms(model)).collect();
    let mut draw = rng.fork("terms");
    unrelated(vocabulary, rng.fork("tools"), "portal").map(move |mut tool| {
        variants::stuff(&mut tool, &terms, &mut draw);
        tool
    })
}

/// Literal copies: `<name>_vK` with the description `<description> (variant K)` for K = 2, 3, … in file order.
fn copies(base: &Collection, growth: Growth) -> Result<GrownFiles, GrowthError> {
    let items = base.catalog.items();
    if growth.size < items.len() {
        return Err(too_small(base, growth, items.len()));
    }
    let mut lines: Vec<String> = base.file_order().iter().map(|item| line_of(&items[*item as usize])).collect();
    let mut made: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    let endless = (2..).flat_map(|version: usize| base.file_order().iter().map(move |item| (version, *item)));
    for (version, item) in endless.take(growth.size - items.len()) {
        let original = &items[item as usize];
        let name = format!("{}_v{version}", original.name);
        let mut copy: Map<String, Value> = serde_json::from_str(&line_of(original)).unwrap_or_default();
        copy.insert("name".to_owned(), Value::String(name.clone()));
        let description = format!("{} (variant {version})", original.description);
        copy.insert("description".to_owned(), Value::String(description.trim_start().to_owned()));
        lines.push(Value::Object(copy).to_string());
        made.entry(item).or_default().push(full_handle(original.server.as_deref(), &name));
    }
    let equivalents = |item: u32| made.get(&item).cloned().unwrap_or_default();
    Ok(GrownFiles { catalog: array(&lines), queries: queries_jsonl(base, base.queries.iter(), equivalents) })
}

/// For every item the tool that it is a copy of: copies follow the `tools` originals in file order, again and again.
fn originals(file_order: &[u32], tools: usize) -> Vec<u32> {
    let mut originals: Vec<u32> = (0..).take(file_order.len()).collect();
    for (place, &item) in file_order.iter().enumerate() {
        originals[item as usize] = file_order[place % tools];
    }
    originals
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use sha2::{Digest, Sha256};

    use contextweaver_core::text::{Analyzer, TermSet, jaccard};

    use super::super::collection::{CATALOG_FILE, QUERIES_FILE};
    use super::super::record::Origin;
    use super::*;

    fn collection(name: &str) -> Collection {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../gold").join(name);
        Collection::from_files(name, Origin::Embedded, &folder.join(CATALOG_FILE), &folder.join(QUERIES_FILE)).unwrap()
    }

    fn keys(collection: &Collection) -> BTreeSet<(Option<String>, String)> {
        collection.catalog.items().iter().map(|item| (item.server.clone(), item.name.clone())).collect()
    }

    fn small(lines: &str) -> Collection {
        let tools =
            r#"[{"name":"b","description":"B","server":"s","tags":["t"]},{"name":"a","server":"s"},{"name":"c"}]"#;
        let tools = Source { path: Path::new("catalog.json"), bytes: tools.as_bytes() };
        let lines = Source { path: Path::new("queries.jsonl"), bytes: lines.as_bytes() };
        Collection::from_bytes("small", Origin::Public, tools, lines).unwrap()
    }

    /// The first bytes of the SHA-256 of a text, hex.
    fn digest(text: &str) -> String {
        Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Every curve of the scorecard stands on these bytes: moving a word or a choice changes them all.
    #[test]
    fn grown_catalogs_have_the_recorded_bytes() {
        let mut rows = Vec::new();
        for name in ["workbench", "household"] {
            let base = collection(name);
            for grade in Grade::DISTRACTORS {
                let digests = [(120, SEED), (500, SEED), (5_000, SEED), (500, 2)].map(|(size, seed)| {
                    let files = grown_files(&base, Growth { grade, size }, seed).unwrap();
                    digest(&format!("{}{}", files.catalog, files.queries))
                });
                rows.push(format!("{name} {grade:?} {}", digests.join(" ")));
            }
        }
        // Namespaces that no file of words knows, and tools without a server.
        let base = small(r#"{"id":"1","query":"x","relevant":["a","c"]}"#);
        for grade in Grade::DISTRACTORS {
            let files = grown_files(&base, Growth { grade, size: 200 }, SEED).unwrap();
            rows.push(format!("small {grade:?} {}", digest(&files.catalog)));
        }
        insta::assert_snapshot!(rows.join("\n"), @r"
        workbench Unrelated b99a11f54941c1e6 e96a89f1e1f0c79a 110fbd310a858f1a bb813827450aeaa5
        workbench Sibling 9441b84683f428a7 9e27bd7d20fe9edc 2729dd3460d953e0 7f56b656638c5736
        workbench NearDuplicate 2cf080f8a83a41f8 6e9b9e137d791e85 378ca73ad20b4ef5 d6a0bcfbc17936e1
        workbench KeywordStuffed 642b61c3d0c624e6 760dc8dce39756b7 d786108fe5a250da d93cfda6d07e6a33
        workbench Mixed 096e8e9b678bb24d 0ba51b08a05305c2 cebd0b8f1809667b f6bfbb0a285871b6
        household Unrelated b896ff1fa83622d6 e6ccd829f6c58bcf 06ae077a032b4e15 cf93d8b37b9c1e06
        household Sibling 75b12f3738cc9e6a 8a6e120cd1586c97 a7c1ed16c41c8270 e0f575b27e34f295
        household NearDuplicate 073e4e88c62e5030 27a61e1f954200fa 8f4132594b96839d 96200fd658cf374d
        household KeywordStuffed 1458198ccc6f912e f84b711a0cd72114 2d7944bd301bbe23 666804429df26a88
        household Mixed 29005b06d3e5e517 94ec4b1c9219bbb4 985e9de7bed0dfa9 4f58c973bce3a29e
        small Unrelated fe2a1238fea7cb1b
        small Sibling 350063814b4e2d6f
        small NearDuplicate 8e3b9c29bdc15da8
        small KeywordStuffed 2c34d4814c8aadbf
        small Mixed e6e39e4b23ff0469
        ");
    }

    #[test]
    fn sizes_are_nested_and_keep_the_queries() {
        for name in ["workbench", "household"] {
            let base = collection(name);
            for grade in Grade::DISTRACTORS {
                let mut smaller: Option<Collection> = None;
                for size in [50, 60, 250, 400] {
                    let grown = grow(&base, Growth { grade, size }, SEED).unwrap();
                    assert_eq!(grown.catalog.len(), size);
                    if let Some(smaller) = &smaller {
                        assert!(keys(&grown).is_superset(&keys(smaller)), "{name} {grade:?} {size}");
                        let texts = |c: &Collection| c.queries.iter().map(|q| q.text.clone()).collect::<Vec<_>>();
                        assert_eq!(texts(&grown), texts(smaller));
                    }
                    smaller = Some(grown);
                }
            }
        }
    }

    #[test]
    fn the_core_answers_most_of_what_fifty_tools_can() {
        for (name, least) in [("workbench", 100), ("household", 80)] {
            let base = collection(name);
            let grown = grow(&base, Growth { grade: Grade::Mixed, size: 50 }, SEED).unwrap();
            let answerable = grown.counts().answerable;
            assert!(answerable >= least, "{name}: {answerable}");
            assert_eq!(grown.counts().unanswerable, base.counts().unanswerable);
        }
    }

    #[test]
    fn another_seed_gives_other_tools_and_another_file_order_the_same() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../gold/household");
        let mut tools: Vec<Value> = serde_json::from_slice(&std::fs::read(folder.join(CATALOG_FILE)).unwrap()).unwrap();
        let queries = std::fs::read(folder.join(QUERIES_FILE)).unwrap();
        let load = |tools: &[Value]| {
            let tools = serde_json::to_string(tools).unwrap();
            let tools = Source { path: Path::new("catalog.json"), bytes: tools.as_bytes() };
            let queries = Source { path: Path::new("queries.jsonl"), bytes: &queries };
            Collection::from_bytes("household", Origin::Embedded, tools, queries).unwrap()
        };
        let base = load(&tools);
        tools.reverse();
        let reversed = load(&tools);
        let growth = Growth { grade: Grade::Mixed, size: 300 };
        assert_ne!(grown_files(&base, growth, 1).unwrap(), grown_files(&base, growth, 2).unwrap());
        assert!(grown_files(&base, growth, 1).unwrap() == grown_files(&reversed, growth, 1).unwrap());
    }

    /// How alike an added tool is to the relevant tool that is most like it, averaged over the added tools.
    fn closeness(base: &Collection, grade: Grade) -> f64 {
        let analyzer = Analyzer::default();
        let grown = grow(base, Growth { grade, size: 600 }, SEED).unwrap();
        let terms = |item: &SelectableItem| TermSet::of(&analyzer, &format!("{} {}", item.name, item.description));
        let relevant: BTreeSet<u32> =
            grown.queries.iter().flat_map(|query| query.groups.iter().flatten().copied()).collect();
        let models: Vec<TermSet> = relevant.iter().map(|item| terms(&grown.catalog.items()[*item as usize])).collect();
        let own = keys(base);
        let added: Vec<f64> = grown
            .catalog
            .items()
            .iter()
            .filter(|item| !own.contains(&(item.server.clone(), item.name.clone())))
            .map(|item| models.iter().map(|model| jaccard(model, &terms(item))).fold(0.0, f64::max))
            .collect();
        added.iter().sum::<f64>() / added.len() as f64
    }

    #[test]
    fn the_grades_are_what_they_are_called() {
        let base = collection("workbench");
        let [unrelated, sibling, near, stuffed, mixed] = Grade::DISTRACTORS.map(|grade| closeness(&base, grade));
        assert!(unrelated < 0.12, "{unrelated}");
        assert!(sibling > unrelated && sibling < 0.3, "{sibling}");
        assert!(near > 0.4, "{near}");
        assert!(stuffed > unrelated && stuffed < near, "{stuffed}");
        assert!(mixed > unrelated && mixed < near, "{mixed}");
    }

    #[test]
    fn copies_follow_the_file_and_count_as_equivalents() {
        let base = small(r#"{"id":"1","query":"x","relevant":["a"]}"#);
        let files = grown_files(&base, Growth { grade: Grade::Copies, size: 7 }, SEED).unwrap();
        insta::assert_snapshot!(format!("{}{}", files.catalog, files.queries), @r#"
        [
        {"name":"b","description":"B","server":"s","tags":["t"]},
        {"name":"a","server":"s"},
        {"name":"c"},
        {"name":"b_v2","description":"B (variant 2)","server":"s","tags":["t"]},
        {"name":"a_v2","server":"s","description":"(variant 2)"},
        {"name":"c_v2","description":"(variant 2)"},
        {"name":"b_v3","description":"B (variant 3)","server":"s","tags":["t"]}
        ]
        {"id":"1","query":"x","relevant":["s:a"],"equivalent":{"s:a":["s:a_v2"]}}
        "#);
        let grown = grow(&base, Growth { grade: Grade::Copies, size: 7 }, SEED).unwrap();
        let handles: Vec<&str> = grown.queries[0].groups[0].iter().map(|item| grown.tool_handle(*item)).collect();
        assert_eq!(handles, ["a", "a_v2"]);
        let original = |item: u32| grown.tool_handle(grown.capabilities.as_ref().unwrap()[item as usize]);
        let of: Vec<String> = grown.file_order().iter().map(|&item| original(item).to_owned()).collect();
        assert_eq!(of, ["b", "a", "c", "b", "a", "c", "b"]);
    }

    #[test]
    fn impossible_sizes_are_refused() {
        let base = collection("household");
        let message = |grade, size| grow(&base, Growth { grade, size }, SEED).unwrap_err().to_string();
        assert_eq!(
            message(Grade::Mixed, 49),
            "`household` cannot be grown to 49 tools with mixed distractors; the smallest size is 50"
        );
        assert_eq!(
            message(Grade::Copies, 96),
            "`household` cannot be grown to 96 tools with copies distractors; the smallest size is 97"
        );
        assert!(message(Grade::Sibling, 1_000_000).contains("there is material for"));
    }

    #[test]
    fn ten_thousand_tools_are_made_for_every_grade() {
        for name in ["workbench", "household"] {
            let base = collection(name);
            for grade in Grade::DISTRACTORS {
                let files = grown_files(&base, Growth { grade, size: 10_000 }, SEED).unwrap();
                assert_eq!(files.catalog.lines().count(), 10_002, "{name} {grade:?}");
            }
        }
    }
}
