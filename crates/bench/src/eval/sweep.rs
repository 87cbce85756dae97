//! A grid of configurations of the router over all collections: which of its choices are worth having?
//!
//! The unit is the collection. Every configuration has its macro mean (the mean over collections of the mean over
//! queries) and its paired difference from the first, on each collection and over all. Since a grid is looked at to
//! choose from it, [`held_out`] says what the choice is worth where it could not look: it is made on all collections
//! but those of one catalog, scored on these, in turn.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;

use super::collection::Collection;
use super::engine::RouterEngine;
use super::error::EvalError;
use super::record::Paired;
use super::run::{PromptTokens, evaluate};
use super::statistics::{mean, paired, paired_macro, round6};
use contextweaver_routing::{
    BeamConfig, Field, FieldWeights, NameMatch, Navigation, RoutingConfig, Scorer, catalog_sha256,
};

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

/// What one configuration gives.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// The name of the candidate.
    pub name: String,
    /// Macro mean of nDCG@10.
    pub ndcg_at_10: f64,
    /// Macro mean of recall@5.
    pub recall_at_5: f64,
    /// The macro difference of nDCG@10 from the first candidate.
    pub ndcg_against_first: Paired,
    /// The macro difference of recall@5 from the first candidate.
    pub recall_against_first: Paired,
    /// The same on each collection.
    pub collections: Vec<OnCollection>,
}

/// What one configuration gives on one collection.
#[derive(Debug, Clone, Serialize)]
pub struct OnCollection {
    /// The name of the collection.
    pub name: String,
    /// Mean nDCG@10.
    pub ndcg_at_10: f64,
    /// Mean recall@5.
    pub recall_at_5: f64,
    /// The difference of nDCG@10 from the first candidate.
    pub ndcg_against_first: Paired,
    /// The difference of recall@5 from the first candidate.
    pub recall_against_first: Paired,
    /// SHA-256 (hex) of the catalog.
    #[serde(skip)]
    catalog_sha256: String,
}

/// What choosing from a grid is worth on collections that the choice did not see.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
) -> Result<Vec<Outcome>, EvalError> {
    let run = |candidate: &Candidate| {
        let engine = RouterEngine::new(&candidate.name, candidate.config.clone());
        let on = |collection: &&Collection| {
            let evaluation = evaluate(collection, &engine, PromptTokens::Skip)
                .map_err(|error| EvalError::failed(&candidate.name, error))?;
            Ok(PerQuery { ndcg: evaluation.ndcg_at_10, recall: evaluation.recall_at_5 })
        };
        let results = collections.iter().map(on).collect::<Result<Vec<PerQuery>, EvalError>>();
        progress();
        results
    };
    let results = candidates.par_iter().map(run).collect::<Result<Vec<_>, EvalError>>()?;
    let Some(first) = results.first() else { return Ok(Vec::new()) };
    let hashes: Vec<String> = collections.iter().map(|collection| catalog_sha256(&collection.catalog)).collect();
    let outcome = |(candidate, own): (&Candidate, &Vec<PerQuery>)| outcome(candidate, own, first, collections, &hashes);
    Ok(candidates.par_iter().zip(&results).map(outcome).collect())
}

fn outcome(
    candidate: &Candidate,
    own: &[PerQuery],
    first: &[PerQuery],
    collections: &[&Collection],
    hashes: &[String],
) -> Outcome {
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
        ndcg_against_first: paired(FIRST, &ndcg[at]),
        recall_against_first: paired(FIRST, &recall[at]),
        catalog_sha256: hashes[at].clone(),
    };
    let collections: Vec<OnCollection> = (0..collections.len()).map(on).collect();
    Outcome {
        name: candidate.name.clone(),
        ndcg_at_10: round6(mean(collections.iter().map(|one| one.ndcg_at_10))),
        recall_at_5: round6(mean(collections.iter().map(|one| one.recall_at_5))),
        ndcg_against_first: paired_macro(FIRST, &ndcg),
        recall_against_first: paired_macro(FIRST, &recall),
        collections,
    }
}

/// For each catalog the candidate with the best macro nDCG@10 on the collections of the others (the first of equals),
/// and what these choices give where they were not made. `None` with fewer than two catalogs.
#[must_use]
pub fn held_out(outcomes: &[Outcome]) -> Option<HeldOut> {
    let places = &outcomes.first()?.collections;
    let mut catalogs: Vec<&str> = places.iter().map(|one| one.catalog_sha256.as_str()).collect();
    catalogs.sort_unstable();
    catalogs.dedup();
    if catalogs.len() < 2 {
        return None;
    }
    let (mut ndcg, mut recall, mut chosen) = (Vec::new(), Vec::new(), BTreeMap::new());
    for catalog in catalogs {
        let (seen, unseen): (Vec<usize>, Vec<usize>) =
            (0..places.len()).partition(|&at| places[at].catalog_sha256 != catalog);
        let value = |outcome: &Outcome| mean(seen.iter().map(|&at| outcome.collections[at].ndcg_at_10));
        let best = outcomes.iter().reduce(|best, one| if value(one) > value(best) { one } else { best })?;
        ndcg.extend(unseen.iter().map(|&at| best.collections[at].ndcg_at_10));
        recall.extend(unseen.iter().map(|&at| best.collections[at].recall_at_5));
        *chosen.entry(best.name.clone()).or_default() += 1;
    }
    Some(HeldOut { ndcg_at_10: round6(mean(ndcg)), recall_at_5: round6(mean(recall)), chosen })
}

/// The parameters whose best value by macro nDCG@10 is the smallest or the largest that was tried, with that value: the
/// grid does not show where their best is. `outcomes` are those of `candidates`, of which the first is the default.
#[must_use]
pub fn at_the_edge(candidates: &[Candidate], outcomes: &[Outcome]) -> Vec<(String, f64)> {
    let Some(first) = outcomes.first() else { return Vec::new() };
    let mut tried: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for (candidate, outcome) in candidates.iter().zip(outcomes) {
        let Some(Varied { parameter, value, default }) = &candidate.varied else { continue };
        let values = tried.entry(parameter).or_insert_with(|| vec![(*default, first.ndcg_at_10)]);
        values.push((*value, outcome.ndcg_at_10));
    }
    edges(tried)
}

/// Of each parameter the value that was best, where it is the smallest or the largest of those that were tried: the grid
/// does not show where its best is. Values are given with what they gave, more is better.
#[must_use]
pub fn edges(tried: BTreeMap<&str, Vec<(f64, f64)>>) -> Vec<(String, f64)> {
    let edge = |(parameter, mut values): (&str, Vec<(f64, f64)>)| {
        values.sort_by(|left, right| left.0.total_cmp(&right.0));
        let best = values.iter().map(|(_, found)| *found).fold(f64::MIN, f64::max);
        // Where an inner value is as good, the grid holds a best.
        let inner = values.get(1..values.len().saturating_sub(1)).unwrap_or_default();
        let end = values.first().into_iter().chain(values.last()).find(|(_, found)| *found == best);
        end.filter(|_| inner.iter().all(|(_, found)| *found < best)).map(|(value, _)| (parameter.to_owned(), *value))
    };
    tried.into_iter().filter_map(edge).collect()
}

/// The default first, then each of its parts left out or varied, then the plain scorers and beams.
#[must_use]
pub fn grid() -> Vec<Candidate> {
    let default = RoutingConfig::default();
    let mut all = vec![Candidate { name: "default".to_owned(), config: default.clone(), varied: None }];
    for (parameter, of, values) in NUMBERS {
        let standard = *of(&mut default.clone());
        for value in values {
            let mut config = default.clone();
            *of(&mut config) = *value;
            all.push(varied(parameter, *value, standard, config));
        }
    }
    for b in [0.0, 0.3, 0.5, 1.0] {
        let mut config = default.clone();
        every_field(&mut config.fields).into_iter().for_each(|(_, field)| field.b = b);
        all.push(varied("b", b, default.fields.name.b, config));
    }
    for position in 0..every_field(&mut default.fields.clone()).len() {
        for factor in [0.0, 0.5, 1.5] {
            let mut config = default.clone();
            let (name, field) = &mut every_field(&mut config.fields)[position];
            let parameter = format!("{name} x");
            field.weight *= factor;
            all.push(varied(&parameter, factor, 1.0, config));
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

/// A number of a configuration: its name, where it stands, and the values that are tried.
type Number = (&'static str, fn(&mut RoutingConfig) -> &mut f64, &'static [f64]);

/// The numbers that are varied one at a time.
const NUMBERS: [Number; 7] = [
    ("name share", |config| &mut config.name.share, &[0.0, 1.0, 2.0, 3.0, 4.0]),
    ("name prior", |config| &mut config.name.prior, &[0.0, 1.0, 4.0, 8.0]),
    ("name pairs", |config| &mut config.name.pairs, &[0.0, 0.3, 1.0]),
    ("k3", |config| &mut config.k3, &[0.0, 1.0, 4.0, 1000.0]),
    ("spelling", |config| &mut config.spelling, &[0.0, 0.5, 1.0]),
    ("semantic", |config| &mut config.semantic, &[0.0, 0.25, 1.0, 2.0]),
    ("k1", |config| &mut config.k1, &[0.6, 0.9, 1.6, 2.0]),
];

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
        let tools = r#"[{"name": "send_mail", "description": "Send a letter"},
            {"name": "list_issues", "description": "List all the mail that was sent"}]"#;
        let tools = tools.replace("letter", &format!("letter to {name}"));
        let query = format!(r#"{{"id": "1", "query": "{query}", "relevant": ["{relevant}"]}}"#);
        let source = |text| Source { path: Path::new("test"), bytes: text };
        Collection::from_bytes(name, Origin::Embedded, source(tools.as_bytes()), source(query.as_bytes())).unwrap()
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
        let on_b = &outcomes[1].collections[1].recall_against_first;
        assert_eq!((on_b.difference.mean, on_b.verdict), (1.0, Verdict::Inconclusive));
        assert_eq!(outcomes[1].recall_against_first.difference.mean, 0.5);
        let left = held_out(&outcomes).unwrap();
        // On "a" alone both are equal and the first is taken, which fails on "b".
        assert_eq!((left.ndcg_at_10, left.chosen.len()), (0.5, 2));
        assert_eq!(held_out(&[]), None);
    }

    #[test]
    fn a_best_value_at_the_end_of_what_was_tried_is_named() {
        let found = |ndcg: f64| {
            let nothing = paired("first", &[]);
            let (ndcg_against_first, recall_against_first) = (nothing.clone(), nothing);
            let (name, collections) = (String::new(), Vec::new());
            Outcome { name, ndcg_at_10: ndcg, recall_at_5: 0.0, ndcg_against_first, recall_against_first, collections }
        };
        let default = RoutingConfig::default();
        let of = |parameter: &str, value: f64| varied(parameter, value, 1.0, default.clone());
        let mut candidates = vec![Candidate { name: "default".to_owned(), config: default.clone(), varied: None }];
        candidates.extend([of("k1", 0.5), of("k1", 2.0), of("b", 0.5), of("b", 2.0), of("k3", 2.0), of("k3", 3.0)]);
        // The default has .5: k1 is best in the middle, b at the top, k3 as good in the middle as at the top.
        let outcomes: Vec<Outcome> = [0.5, 0.4, 0.3, 0.4, 0.6, 0.7, 0.7].map(found).into();
        assert_eq!(at_the_edge(&candidates, &outcomes), [("b".to_owned(), 2.0)]);
        assert_eq!(at_the_edge(&candidates, &[]), []);
    }
}
