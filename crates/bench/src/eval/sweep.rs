//! A grid of configurations of the router over all collections: which of its choices are worth having?
//!
//! The unit is the collection. Every configuration has its macro mean (the mean over collections of the mean over
//! queries) and its paired difference from the first, on each collection and over all, by query and by the first tool
//! that queries need. Since a grid is looked at to choose from it, [`held_out`] says what the choice is worth where it
//! could not look: it is made on all collections but those of one catalog, scored on these, in turn.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::collection::Collection;
use super::engine::RouterEngine;
use super::error::EvalError;
use super::record::Compared;
use super::run::ndcg_and_recall;
use super::statistics::{correct_against_first, mean, paired_by_tool, paired_macro_by_tool, round6};
use super::vary::{GridError, Vary, bounded, by_parameter, number, values};
use contextweaver_routing::{
    BeamConfig, ConfigError, Field, FieldWeights, NameMatch, Navigation, RoutingConfig, Scorer, catalog_sha256,
};

/// How far beyond a value it is looked whether a configuration may go further, as a share of the value, or of 1 where that is more.
const BEYOND: f64 = 1e-6;

/// A configuration under its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// What differs from the default.
    pub name: String,
    /// The whole configuration, the parts that are the default's included.
    pub config: RoutingConfig,
    /// The one number that differs from the default, where it is one.
    pub varied: Option<Varied>,
}

/// A number that a grid varies.
#[derive(Debug, Clone, PartialEq)]
pub struct Varied {
    /// What it is called.
    pub parameter: String,
    /// What it is here.
    pub value: f64,
    /// What it is in the default.
    pub default: f64,
}

/// A grid with what it gives: what `bench sweep` prints and the scorecard records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Swept {
    /// SHA-256 (hex) of the catalog of each collection, by the name of the collection.
    pub catalogs: BTreeMap<String, String>,
    /// Every configuration, the default first.
    pub configurations: Vec<Row>,
    /// What choosing is worth; `None` with fewer than two catalogs.
    pub held_out: Option<HeldOut>,
    /// See [`at_the_edge`].
    pub at_the_edge: Vec<(String, f64)>,
}

impl Swept {
    /// Evaluates every candidate on every collection; `progress` is called once for each candidate.
    ///
    /// # Errors
    /// The message of a candidate that cannot serve a catalog.
    pub fn of(
        candidates: &[Candidate],
        collections: &[&Collection],
        progress: impl Fn() + Sync,
    ) -> Result<Self, EvalError> {
        let configurations = sweep(candidates, collections, progress)?;
        let catalog = |one: &&Collection| (one.name.clone(), catalog_sha256(&one.catalog));
        let catalogs = collections.iter().map(catalog).collect();
        Ok(Self::with(catalogs, configurations, candidates))
    }

    fn with(catalogs: BTreeMap<String, String>, configurations: Vec<Row>, candidates: &[Candidate]) -> Self {
        let held_out = held_out(&configurations, &catalogs);
        let at_the_edge = at_the_edge(candidates, &configurations);
        Self { catalogs, configurations, held_out, at_the_edge }
    }

    /// The same, with all that follows from the figures of the configurations made again from these: means over collections,
    /// corrected probabilities, what choosing is worth, and the edges. A recorded sweep of `candidates` is equal to it.
    #[must_use]
    pub fn again(&self, candidates: &[Candidate]) -> Self {
        let mut outcomes = self.configurations.clone();
        correct(&mut outcomes);
        for one in &mut outcomes {
            one.ndcg_at_10 = round6(mean(one.collections.iter().map(|on| on.ndcg_at_10)));
            one.recall_at_5 = round6(mean(one.collections.iter().map(|on| on.recall_at_5)));
        }
        Self::with(self.catalogs.clone(), outcomes, candidates)
    }
}

/// What one configuration gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The name of the candidate.
    pub name: String,
    /// Macro mean of nDCG@10.
    pub ndcg_at_10: f64,
    /// Macro mean of recall@5.
    pub recall_at_5: f64,
    /// The macro difference of nDCG@10 from the first candidate, among those of all others.
    pub ndcg_against_first: Compared,
    /// The macro difference of recall@5 from the first candidate, among those of all others.
    pub recall_against_first: Compared,
    /// The same on each collection.
    pub collections: Vec<OnCollection>,
}

/// What one configuration gives on one collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnCollection {
    /// The name of the collection.
    pub name: String,
    /// Mean nDCG@10.
    pub ndcg_at_10: f64,
    /// Mean recall@5.
    pub recall_at_5: f64,
    /// The difference of nDCG@10 from the first candidate, among those of all others on this collection.
    pub ndcg_against_first: Compared,
    /// The difference of recall@5 from the first candidate, among those of all others on this collection.
    pub recall_against_first: Compared,
}

/// What choosing from a grid is worth on collections that the choice did not see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldOut {
    /// Macro mean of nDCG@10.
    pub ndcg_at_10: f64,
    /// Macro mean of recall@5.
    pub recall_at_5: f64,
    /// How often each candidate was chosen.
    pub chosen: BTreeMap<String, usize>,
}

/// nDCG@10 and recall@5 of every answerable query of a collection.
struct PerQuery {
    ndcg: Vec<f64>,
    recall: Vec<f64>,
}

/// Evaluates every candidate on every collection; `progress` is called once for each candidate.
///
/// # Errors
/// The message of a candidate that cannot serve a catalog.
pub fn sweep(
    candidates: &[Candidate],
    collections: &[&Collection],
    progress: impl Fn() + Sync,
) -> Result<Vec<Row>, EvalError> {
    let run = |candidate: &Candidate| {
        let engine = RouterEngine::new(&candidate.name, candidate.config.clone());
        let on = |collection: &&Collection| {
            let measured = ndcg_and_recall(collection, &engine);
            let (ndcg, recall) = measured.map_err(|error| EvalError::failed(&candidate.name, error))?;
            Ok(PerQuery { ndcg, recall })
        };
        let results = collections.iter().map(on).collect::<Result<Vec<PerQuery>, EvalError>>();
        progress();
        results
    };
    let results = candidates.par_iter().map(run).collect::<Result<Vec<_>, EvalError>>()?;
    let Some(first) = results.first() else { return Ok(Vec::new()) };
    let tools: Vec<Vec<u32>> = collections.iter().map(|one| one.first_tools()).collect();
    let tools: Vec<&[u32]> = tools.iter().map(Vec::as_slice).collect();
    let outcome = |(candidate, own): (&Candidate, &Vec<PerQuery>)| outcome(candidate, own, first, collections, &tools);
    let mut outcomes: Vec<Row> = candidates.par_iter().zip(&results).map(outcome).collect();
    correct(&mut outcomes);
    Ok(outcomes)
}

/// One measure of one set of cases, over all configurations: what is corrected together.
type Family = fn(&mut Row) -> &mut Compared;

/// Corrects the differences from the first for the number of configurations, each measure by itself: of the macro means, and of
/// each collection.
fn correct(outcomes: &mut [Row]) {
    let families: [Family; 2] = [|one| &mut one.ndcg_against_first, |one| &mut one.recall_against_first];
    for family in families {
        correct_against_first(outcomes.iter_mut().map(family).collect());
    }
    let places = outcomes.first().map_or(0, |first| first.collections.len());
    for place in 0..places {
        let on = |outcomes: &mut [Row], of: fn(&mut OnCollection) -> &mut Compared| {
            correct_against_first(
                outcomes.iter_mut().filter_map(|one| one.collections.get_mut(place)).map(of).collect(),
            );
        };
        on(outcomes, |on| &mut on.ndcg_against_first);
        on(outcomes, |on| &mut on.recall_against_first);
    }
}

/// What a configuration gives; `tools` are the first tools that the queries of each collection need.
fn outcome(
    candidate: &Candidate,
    own: &[PerQuery],
    first: &[PerQuery],
    collections: &[&Collection],
    tools: &[&[u32]],
) -> Row {
    const FIRST: &str = "first";
    let pairs = |of: fn(&PerQuery) -> &Vec<f64>| -> Vec<Vec<(f64, f64)>> {
        let of_one = |(own, first)| of(own).iter().copied().zip(of(first).iter().copied()).collect();
        own.iter().zip(first).map(of_one).collect()
    };
    let (ndcg, recall) = (pairs(|one| &one.ndcg), pairs(|one| &one.recall));
    let on = |at: usize| OnCollection {
        name: collections[at].name.clone(),
        ndcg_at_10: round6(mean(own[at].ndcg.iter().copied())),
        recall_at_5: round6(mean(own[at].recall.iter().copied())),
        ndcg_against_first: Compared::alone(paired_by_tool(FIRST, &ndcg[at], tools[at])),
        recall_against_first: Compared::alone(paired_by_tool(FIRST, &recall[at], tools[at])),
    };
    let collections: Vec<OnCollection> = (0..collections.len()).map(on).collect();
    Row {
        name: candidate.name.clone(),
        ndcg_at_10: round6(mean(collections.iter().map(|one| one.ndcg_at_10))),
        recall_at_5: round6(mean(collections.iter().map(|one| one.recall_at_5))),
        ndcg_against_first: Compared::alone(paired_macro_by_tool(FIRST, &ndcg, tools)),
        recall_against_first: Compared::alone(paired_macro_by_tool(FIRST, &recall, tools)),
        collections,
    }
}

/// For each catalog the candidate with the best macro nDCG@10 on the collections of the others (the first of equals),
/// and what these choices give where they were not made. `catalogs` has the digest of each collection's catalog. `None` with
/// fewer than two catalogs.
#[must_use]
pub fn held_out(outcomes: &[Row], catalogs: &BTreeMap<String, String>) -> Option<HeldOut> {
    let places = &outcomes.first()?.collections;
    let of = |at: usize| catalogs.get(&places[at].name);
    let distinct: BTreeSet<Option<&String>> = (0..places.len()).map(of).collect();
    if distinct.len() < 2 {
        return None;
    }
    let (mut ndcg, mut recall, mut chosen) = (Vec::new(), Vec::new(), BTreeMap::new());
    for catalog in distinct {
        let (seen, unseen): (Vec<usize>, Vec<usize>) = (0..places.len()).partition(|&at| of(at) != catalog);
        let value = |outcome: &Row| mean(seen.iter().map(|&at| outcome.collections[at].ndcg_at_10));
        let best = outcomes.iter().reduce(|best, one| if value(one) > value(best) { one } else { best })?;
        ndcg.extend(unseen.iter().map(|&at| best.collections[at].ndcg_at_10));
        recall.extend(unseen.iter().map(|&at| best.collections[at].recall_at_5));
        *chosen.entry(best.name.clone()).or_default() += 1;
    }
    Some(HeldOut { ndcg_at_10: round6(mean(ndcg)), recall_at_5: round6(mean(recall)), chosen })
}

/// The parameters whose best value by macro nDCG@10 is the smallest or the largest that was tried, with that value, where a
/// configuration may go further: the grid does not show where their best is. `outcomes` are those of `candidates`, of which the
/// first is the default.
#[must_use]
pub fn at_the_edge(candidates: &[Candidate], outcomes: &[Row]) -> Vec<(String, f64)> {
    let Some(first) = outcomes.first() else { return Vec::new() };
    let mut tried: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for (candidate, outcome) in candidates.iter().zip(outcomes) {
        let Some(Varied { parameter, value, default }) = &candidate.varied else { continue };
        let values = tried.entry(parameter).or_insert_with(|| vec![(*default, first.ndcg_at_10)]);
        values.push((*value, outcome.ndcg_at_10));
    }
    let numbers = numbers();
    edges(tried, |parameter, value| {
        numbers.iter().find(|number| number.name == parameter).is_some_and(|number| number.check(value).is_ok())
    })
}

/// Of each parameter the value that was best, where it is the smallest or the largest of those that were tried and a value a
/// little beyond it is `allowed`: the grid does not show where its best is. Values are given with what they gave, more is better.
#[must_use]
pub fn edges(tried: BTreeMap<&str, Vec<(f64, f64)>>, allowed: impl Fn(&str, f64) -> bool) -> Vec<(String, f64)> {
    let edge = |(parameter, mut values): (&str, Vec<(f64, f64)>)| {
        if values.len() < 2 {
            return None;
        }
        values.sort_by(|left, right| left.0.total_cmp(&right.0));
        let best = values.iter().map(|(_, found)| *found).fold(f64::MIN, f64::max);
        // Where an inner value is as good, the grid holds a best.
        let inner = values.get(1..values.len().saturating_sub(1)).unwrap_or_default();
        // Asked of the configuration itself, so that a bound stands in one place.
        let may_go_on = |value: f64, way: f64| allowed(parameter, value + way * BEYOND * value.abs().max(1.0));
        let ends = values.first().map(|end| (end, -1.0)).into_iter().chain(values.last().map(|end| (end, 1.0)));
        let end = ends.filter(|((_, found), _)| *found == best).find(|((value, _), way)| may_go_on(*value, *way));
        end.filter(|_| inner.iter().all(|(_, found)| *found < best))
            .map(|((value, _), _)| (parameter.to_owned(), *value))
    };
    tried.into_iter().filter_map(edge).collect()
}

/// The default first, then each of its parts left out or varied, then the plain scorers and beams.
#[must_use]
pub fn grid() -> Vec<Candidate> {
    candidates(&numbers(), &BTreeMap::new())
}

/// The same with other values of some parameters.
///
/// # Errors
/// [`GridError`]: a parameter that the grid does not have, a value that a configuration cannot have, or too many of them.
pub fn grid_of(vary: &[Vary]) -> Result<Vec<Candidate>, GridError> {
    let numbers = numbers();
    let names: Vec<&str> = numbers.iter().map(|number| number.name.as_str()).collect();
    let mut asked = BTreeMap::new();
    for (parameter, texts) in by_parameter(vary, &names)? {
        let Some(one) = numbers.iter().find(|number| number.name == parameter) else { continue };
        let own: Vec<String> = one.own.iter().map(ToString::to_string).collect();
        let read = |text: &str| {
            let value = number(text)?;
            one.check(value).map_err(|error| error.to_string())?;
            Ok(value)
        };
        asked.insert(parameter, values(parameter, &texts, &own, read)?);
    }
    let all = candidates(&numbers, &asked);
    bounded(all.len())?;
    Ok(all)
}

/// What the grid varies, by parameter, and the configurations that are not numbers.
#[must_use]
pub fn values_of_grid() -> toml::Table {
    let own = |number: Number| (number.name, number.own.iter().copied().map(toml::Value::from).collect::<Vec<_>>());
    let whole = grid().into_iter().skip(1).filter(|candidate| candidate.varied.is_none());
    let whole = whole.map(|candidate| toml::Value::from(candidate.name)).collect();
    let parts = numbers().into_iter().map(own).chain([("others".to_owned(), whole)]);
    parts.map(|(name, values)| (name, toml::Value::from(values))).collect()
}

/// The grid with the values of `asked` in place of those of the grid itself.
fn candidates(numbers: &[Number], asked: &BTreeMap<&str, Vec<f64>>) -> Vec<Candidate> {
    let default = RoutingConfig::default();
    let mut all = vec![Candidate { name: "default".to_owned(), config: default.clone(), varied: None }];
    for Number { name, own, default: standard, set } in numbers {
        for value in asked.get(name.as_str()).map_or(*own, Vec::as_slice) {
            let mut config = default.clone();
            set(&mut config, *value);
            all.push(varied(name, *value, *standard, config));
        }
    }
    all.retain(|candidate| candidate.varied.is_none() || candidate.config != default);
    let mut add = |name: String, vary: &dyn Fn(&mut RoutingConfig)| {
        let mut config = default.clone();
        vary(&mut config);
        if config != default {
            all.push(Candidate { name, config, varied: None });
        }
    };
    let plain = |config: &mut RoutingConfig| {
        config.name = NameMatch { share: 0.0, prior: 0.0, pairs: 0.0 };
        (config.k3, config.spelling, config.semantic) = (1000.0, 0.0, 0.0);
    };
    add("plain bm25f".to_owned(), &plain);
    for b in [0.25, 0.5, 0.75] {
        add(format!("flat bm25, b {b:.2}"), &|config| (config.scorer, config.b) = (Scorer::Bm25, b));
    }
    add("tf-idf".to_owned(), &|config| config.scorer = Scorer::TfIdf);
    add("fuzzy".to_owned(), &|config| config.scorer = Scorer::Fuzzy);
    for width in [2, 8] {
        let beam = BeamConfig { width, ..BeamConfig::default() };
        add(format!("beam of {width}"), &|config| config.navigation = Navigation::Beam(beam));
    }
    all
}

/// Puts a value into a configuration.
type Setter = Box<dyn Fn(&mut RoutingConfig, f64)>;

/// A number that the grid varies by itself.
struct Number {
    /// What it is called.
    name: String,
    /// The values that the grid tries.
    own: &'static [f64],
    /// What it is in the default.
    default: f64,
    /// Puts a value into a configuration that is otherwise the default.
    set: Setter,
}

impl Number {
    /// Whether a configuration that is otherwise the default may have this value.
    fn check(&self, value: f64) -> Result<(), ConfigError> {
        let mut config = RoutingConfig::default();
        (self.set)(&mut config, value);
        config.validate()
    }
}

/// A number of a configuration: its name, where it stands, and the values that are tried.
type Plain = (&'static str, fn(&mut RoutingConfig) -> &mut f64, &'static [f64]);

/// The numbers that stand in one place.
const PLAIN: [Plain; 9] = [
    ("name share", |config| &mut config.name.share, &[0.0, 1.0, 2.0, 3.0, 4.0]),
    ("name prior", |config| &mut config.name.prior, &[0.0, 1.0, 4.0, 8.0]),
    ("name pairs", |config| &mut config.name.pairs, &[0.0, 0.3, 1.0]),
    ("description pairs", |config| &mut config.description_pairs, &[0.0, 0.1, 0.5, 1.0]),
    ("reversed pairs", |config| &mut config.reversed_pairs, &[0.0, 0.25, 1.0]),
    ("k3", |config| &mut config.k3, &[0.0, 1.0, 4.0, 1000.0]),
    ("spelling", |config| &mut config.spelling, &[0.0, 0.5, 1.0]),
    ("semantic", |config| &mut config.semantic, &[0.0, 0.25, 1.0, 2.0]),
    ("k1", |config| &mut config.k1, &[0.6, 0.9, 1.6, 2.0]),
];

/// The numbers that are varied one at a time: the plain ones, `b` of all fields together, and a factor for the weight of each.
fn numbers() -> Vec<Number> {
    let mut default = RoutingConfig::default();
    let mut all: Vec<Number> = Vec::new();
    for (name, of, own) in PLAIN {
        let set = Box::new(move |config: &mut RoutingConfig, value: f64| *of(config) = value);
        all.push(Number { name: name.to_owned(), own, default: *of(&mut default), set });
    }
    let every_b = |config: &mut RoutingConfig, value: f64| {
        every_field(&mut config.fields).into_iter().for_each(|(_, field)| field.b = value);
    };
    let b = default.fields.name.b;
    all.push(Number { name: "b".to_owned(), own: &[0.0, 0.3, 0.5, 1.0], default: b, set: Box::new(every_b) });
    for (position, (name, _)) in every_field(&mut default.fields).into_iter().enumerate() {
        let set = Box::new(move |config: &mut RoutingConfig, factor: f64| {
            every_field(&mut config.fields)[position].1.weight *= factor;
        });
        all.push(Number { name: format!("{name} x"), own: &[0.0, 0.5, 1.5], default: 1.0, set });
    }
    all
}

fn varied(parameter: &str, value: f64, default: f64, config: RoutingConfig) -> Candidate {
    let varied = Some(Varied { parameter: parameter.to_owned(), value, default });
    Candidate { name: format!("{parameter} {value}"), config, varied }
}

fn every_field(fields: &mut FieldWeights) -> [(&'static str, &mut Field); 5] {
    let FieldWeights { name, description, parameters, tags, server } = fields;
    [("name", name), ("description", description), ("parameters", parameters), ("tags", tags), ("server", server)]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::collection::Source;
    use super::super::record::{Origin, Verdict};
    use super::*;

    fn collection(name: &str, query: &str, relevant: &str) -> Collection {
        collection_of(name, &[query], relevant)
    }

    /// Queries that all need the same tool.
    fn collection_of(name: &str, queries: &[&str], relevant: &str) -> Collection {
        let tools = r#"[{"name": "send_mail", "description": "Send a letter"},
            {"name": "list_issues", "description": "List all the mail that was sent"}]"#;
        let tools = tools.replace("letter", &format!("letter to {name}"));
        let line =
            |(id, query)| format!("{{\"id\": \"{id}\", \"query\": \"{query}\", \"relevant\": [\"{relevant}\"]}}\n");
        let queries: String = (1..).zip(queries).map(line).collect();
        let source = |text| Source { path: Path::new("test"), bytes: text };
        Collection::from_bytes(name, Origin::Embedded, source(tools.as_bytes()), source(queries.as_bytes())).unwrap()
    }

    #[test]
    fn every_candidate_is_valid_and_of_another_name_and_configuration() {
        let grid = grid();
        assert_eq!(grid[0].config, RoutingConfig::default());
        for (at, candidate) in grid.iter().enumerate() {
            candidate.config.validate().unwrap_or_else(|error| panic!("{}: {error}", candidate.name));
            let twin = grid[..at].iter().find(|one| one.name == candidate.name || one.config == candidate.config);
            assert_eq!(twin, None);
        }
    }

    #[test]
    fn values_are_asked_for_in_place_of_those_of_the_grid() {
        let of = |texts: &[&str]| grid_of(&texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>());
        let names = |candidates: &[Candidate]| candidates.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&of(&[]).unwrap()), names(&grid()));
        let asked = of(&["k1=0.7,1.1", "name-x=2"]).unwrap();
        let others = |candidates: &[Candidate]| {
            let other = |one: &&Candidate| {
                one.varied.as_ref().is_none_or(|varied| !["k1", "name x"].contains(&varied.parameter.as_str()))
            };
            candidates.iter().filter(other).count()
        };
        assert_eq!((others(&asked), asked.len()), (others(&grid()), others(&grid()) + 3));
        let config = |name: &str| asked.iter().find(|one| one.name == name).unwrap().config.clone();
        assert_eq!(config("k1 0.7"), RoutingConfig { k1: 0.7, ..RoutingConfig::default() });
        assert_eq!(config("name x 2").fields.name.weight, 2.0 * RoutingConfig::default().fields.name.weight);
        let refused = |text: &str| of(&[text]).unwrap_err().to_string();
        insta::assert_snapshot!(refused("k9=1"), @"no parameter `k9` in this grid; there are name share, name prior, name pairs, description pairs, reversed pairs, k3, spelling, semantic, k1, b, name x, description x, parameters x, tags x, server x");
        insta::assert_snapshot!(refused("k1=-1"), @"k1=-1: `k1` is -1; it must be above 0 and at most 100; the grid itself tries 0.6, 0.9, 1.6, 2");
        insta::assert_snapshot!(refused("b=x"), @"b=x: it is not a number; the grid itself tries 0, 0.3, 0.5, 1");
        let many: Vec<String> = (1..400).map(|k3| k3.to_string()).collect();
        assert!(
            refused(&format!("k3={}", many.join(","))).ends_with("configurations are more than 400; name fewer values")
        );
    }

    #[test]
    fn a_choice_is_scored_where_it_was_not_made() {
        let collections = [collection("a", "zzz send", "send_mail"), collection("b", "sned leter", "send_mail")];
        let collections: Vec<&Collection> = collections.iter().collect();
        let default = RoutingConfig { semantic: 0.0, ..RoutingConfig::default() };
        let candidates = [
            Candidate {
                name: "without".to_owned(),
                config: RoutingConfig { spelling: 0.0, ..default.clone() },
                varied: None,
            },
            Candidate { name: "with".to_owned(), config: default, varied: None },
        ];
        let outcomes = sweep(&candidates, &collections, || ()).unwrap();
        assert_eq!([outcomes[0].ndcg_at_10, outcomes[1].ndcg_at_10], [0.5, 1.0]);
        // One query is no proof.
        let on_b = &outcomes[1].collections[1].recall_against_first.paired;
        assert_eq!((on_b.difference.mean, on_b.verdict), (1.0, Verdict::Inconclusive));
        assert_eq!(outcomes[1].recall_against_first.paired.difference.mean, 0.5);
        let swept = Swept::of(&candidates, &collections, || ()).unwrap();
        assert_eq!((&swept.configurations, &swept), (&outcomes, &swept.again(&candidates)));
        let left = swept.held_out.unwrap();
        // On "a" alone both are equal and the first is taken, which fails on "b".
        assert_eq!((left.ndcg_at_10, left.chosen.len()), (0.5, 2));
        assert_eq!(held_out(&[], &BTreeMap::new()), None);
    }

    #[test]
    fn queries_of_one_tool_are_no_independent_evidence() {
        let collection = collection_of("a", &["sned leter"; 12], "send_mail");
        let with = RoutingConfig { semantic: 0.0, ..RoutingConfig::default() };
        let without = RoutingConfig { spelling: 0.0, ..with };
        let candidates =
            [without, with].map(|config| Candidate { name: config.spelling.to_string(), config, varied: None });
        let outcomes = sweep(&candidates, &[&collection], || ()).unwrap();
        for one in [&outcomes[1].recall_against_first, &outcomes[1].collections[0].recall_against_first] {
            let Compared { paired, .. } = one;
            assert_eq!((paired.difference.mean, paired.differing, paired.p), (1.0, 12, 1.0));
        }
    }

    #[test]
    fn a_best_value_at_the_end_of_what_was_tried_is_named() {
        let found = |ndcg: f64| {
            let nothing = Compared::alone(paired_by_tool("first", &[], &[]));
            let (ndcg_against_first, recall_against_first) = (nothing.clone(), nothing);
            let (name, collections) = (String::new(), Vec::new());
            Row { name, ndcg_at_10: ndcg, recall_at_5: 0.0, ndcg_against_first, recall_against_first, collections }
        };
        let default = RoutingConfig::default();
        let of = |parameter: &str, value: f64| varied(parameter, value, 1.0, default.clone());
        let mut candidates = vec![Candidate { name: "default".to_owned(), config: default.clone(), varied: None }];
        candidates.extend([of("k1", 0.5), of("k1", 2.0), of("semantic", 0.5), of("semantic", 2.0)]);
        candidates.extend([of("k3", 2.0), of("k3", 3.0), of("name x", 0.0), of("spelling", 0.5), of("tags x", 0.5)]);
        // The default has .5 and 1.0 of each: k1 is best in the middle, semantic at the top, k3 as good in the middle as at the
        // top. No weight is below 0, no spelling above 1; tags may have less than they were given.
        let outcomes: Vec<Row> = [0.5, 0.4, 0.3, 0.4, 0.6, 0.7, 0.7, 0.6, 0.4, 0.6].map(found).into();
        let named = [("semantic".to_owned(), 2.0), ("tags x".to_owned(), 0.5)];
        assert_eq!(at_the_edge(&candidates, &outcomes), named);
        assert_eq!(at_the_edge(&candidates, &[]), []);
    }
}
