//! Cases x engines -> facts.
//!
//! Queries run in parallel and are put back in order before anything is added up, so the number of cores changes no
//! digit. Times are taken elsewhere ([`super::latency`]), never here.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rayon::prelude::*;

use super::abstention::{Answer as Answered, abstention, calibration_error, nothing_fits};
use super::collection::{Collection, Hashes, Query};
use super::engine::{Engine, Ranking, Size};
use super::error::EvalError;
use super::growth::{GrowthError, SEED, grow, grown_files};
use super::loss::{self, Wording, loss_at_5};
use super::matrix::{CONTROL, Case, Matrix};
use super::measure::{FIRST, Found, Judgement, Measure};
use super::ranks::Ranks;
use super::record::{Abstention, Facts, Growth, Loss, NothingFits, Outcome, Paired, Slice, Ties, Tokens, Work};
use super::statistics::{mean, paired_by_tool, round6};
use super::ties::{self, recall_over_orders};
use contextweaver_core::catalog::definition_tokens;
use contextweaver_core::text::Estimator;
use contextweaver_routing::{CardDeck, Hit, NOTHING_FITS_BELOW, Router, RoutingConfig, Scratch, render_cards};

/// Rankings are taken to this depth (and on through ties): deep enough for RR and for exported runs.
pub const DEPTH: usize = 100;

/// Cards in a prompt for the token figures.
pub const PROMPT_CARDS: usize = 10;

/// What an evaluation of one engine on one collection gives.
#[derive(Debug)]
pub struct Evaluation {
    /// The facts; [`Facts::versus_control`] is still empty.
    pub facts: Facts,
    /// Equivalence-aware recall@5 of every answerable query, in query order: the input of paired comparisons.
    pub recall_at_5: Vec<f64>,
    /// Equivalence-aware nDCG@10 of the same queries.
    pub ndcg_at_10: Vec<f64>,
    /// The ranking of every query, in query order.
    pub rankings: Vec<Ranking>,
    /// What became of every query, in query order; `None` for those that no tool answers.
    pub outcomes: Vec<Option<QueryOutcome>>,
    /// See [`Facts::by_language`].
    pub by_language: BTreeMap<String, Slice>,
    /// See [`Facts::nothing_fits`], with the default of `abstain_below`; `None` where nothing is known of confidence.
    pub nothing_fits: Option<NothingFits>,
}

impl Evaluation {
    /// The facts as those of the control, with the first tool that each query needs.
    #[must_use]
    pub fn of_control(self, tools: &[u32]) -> Facts {
        Facts { first_tools: tools.to_vec(), ..self.facts }
    }

    /// The facts with the difference from the control, whose recall@5 by query is `control`, where it could be measured;
    /// `tools` has the first that each query needs.
    #[must_use]
    pub fn against_control(self, control: Option<&[f64]>, tools: &[u32]) -> Facts {
        let versus_control = control.map(|control| against_by_tool(CONTROL, control, &self.recall_at_5, tools));
        Facts { versus_control, ..self.facts }
    }
}

/// What became of one answerable query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryOutcome {
    /// Where each needed tool or an equivalent was found, in the order of the query file.
    pub found: Found,
    /// Why those are missing that are not among the first five.
    pub loss: Loss,
}

/// Whether an evaluation counts prompt tokens, which costs more than the rest together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptTokens {
    /// Prompt tokens are counted.
    Count,
    /// Prompt tokens are not counted.
    Skip,
}

/// A query with everything that was measured on it.
struct Row<'a> {
    query: &'a Query,
    ranking: Ranking,
    answer: Option<Answer>,
    card_tokens: usize,
}

/// The measures of an answerable query.
struct Answer {
    recall: f64,
    ndcg: f64,
    ties: Ties,
    found: Found,
    /// Where the named tools were found, equivalents left out.
    strict: Found,
    loss: Loss,
}

/// Ranks every query of `collection` with `engine` and measures the rankings.
///
/// # Errors
/// The engine's own message when it cannot serve the catalog, or that of a card that breaks its bounds.
pub fn evaluate(collection: &Collection, engine: &dyn Engine, tokens: PromptTokens) -> Result<Evaluation, EvalError> {
    let prepared = engine.prepare(&collection.catalog)?;
    let copies = Copies::of(collection);
    let queries = collection.queries.par_iter();
    let rankings = queries.map(|query| prepared.rank(&query.text, DEPTH * copies.most)).collect();
    let rows = rows(collection, &copies, rankings, |query| prepared.exhaustive(query), tokens)?;
    Ok(summary(collection, rows, tokens, prepared.size(), |rows| Some(confidences(rows))))
}

/// nDCG@10 and recall@5 of every answerable query, as [`evaluate`] has them, without what else it measures.
///
/// # Errors
/// The engine's own message when it cannot serve the catalog.
pub fn ndcg_and_recall(collection: &Collection, engine: &dyn Engine) -> Result<(Vec<f64>, Vec<f64>), EvalError> {
    let prepared = engine.prepare(&collection.catalog)?;
    let copies = Copies::of(collection);
    let of = |query: &Query| {
        let ranking = prepared.rank(&query.text, DEPTH * copies.most);
        let found = Found::of(&copies.folded(&ranking.hits), &Judgement { groups: query.groups.clone() })?;
        Some((Measure::NDCG_10.of(&found), Measure::RECALL_5.of(&found)))
    };
    let all: Vec<Option<(f64, f64)>> = collection.queries.par_iter().map(of).collect();
    Ok(all.into_iter().flatten().unzip())
}

/// Measures rankings that were made elsewhere, one a query in their order. Nothing is known of their engine: losses other
/// than by vocabulary count as ranking, and nothing is said about abstention or work.
///
/// # Errors
/// A card that breaks its bounds, or a catalog that cannot be indexed.
pub fn evaluate_imported(
    collection: &Collection,
    rankings: Vec<Ranking>,
    tokens: PromptTokens,
) -> Result<Evaluation, EvalError> {
    let rows = rows(collection, &Copies::of(collection), rankings, |_| None, tokens)?;
    Ok(summary(collection, rows, tokens, Size::default(), |_| None))
}

/// Every query with its ranking and what was measured on it.
fn rows<'c>(
    collection: &'c Collection,
    copies: &Copies<'_>,
    rankings: Vec<Ranking>,
    exhaustive: impl Fn(&str) -> Option<Vec<u64>> + Sync,
    tokens: PromptTokens,
) -> Result<Vec<Row<'c>>, EvalError> {
    let deck = match tokens {
        PromptTokens::Count => Some(CardDeck::new(Arc::clone(&collection.catalog))),
        PromptTokens::Skip => None,
    };
    let wording = Wording::of(&collection.catalog)?;
    let queries = collection.queries.par_iter().zip(rankings);
    queries
        .map(|(query, ranking)| row(query, copies, &wording, ranking, || exhaustive(&query.text), deck.as_ref()))
        .collect()
}

/// The facts of measured rows.
fn summary(
    collection: &Collection,
    rows: Vec<Row<'_>>,
    tokens: PromptTokens,
    size: Size,
    confidences: impl Fn(&[Row]) -> Option<Vec<(f64, Answered)>>,
) -> Evaluation {
    let answers: Vec<&Answer> = rows.iter().filter_map(|row| row.answer.as_ref()).collect();
    let recall_at_5: Vec<f64> = answers.iter().map(|answer| answer.recall).collect();
    let ndcg_at_10: Vec<f64> = answers.iter().map(|answer| answer.ndcg).collect();
    let ranks = Ranks::of(answers.iter().map(|answer| &answer.found));
    let asked = confidences(&rows);
    let facts = Facts {
        tools: collection.catalog.len(),
        namespaces: collection.catalog.namespaces().len(),
        answerable: answers.len(),
        unanswerable: rows.len() - answers.len(),
        measures: ranks.measures(),
        strict: Ranks::of(answers.iter().map(|answer| &answer.strict)).measures(),
        ties: ties::mean(&answers.iter().map(|answer| answer.ties).collect::<Vec<_>>()),
        loss: loss::mean(&answers.iter().map(|answer| answer.loss).collect::<Vec<_>>()),
        by_namespace: slices(&rows, |query| namespaces(collection, query)),
        by_register: slices(&rows, |query| query.register.iter().cloned().collect()),
        by_language: BTreeMap::new(),
        abstention: asked.as_deref().and_then(selective),
        nothing_fits: None,
        tokens: (tokens == PromptTokens::Count).then(|| prompt_tokens(collection, &rows)),
        versus_control: None,
        work: Work {
            terms: size.terms,
            postings: size.postings,
            postings_per_query: round6(mean(rows.iter().map(|row| row.ranking.postings as f64))),
            graph_nodes: size.graph_nodes,
            weights_bytes: size.weights_bytes,
        },
        first_tools: Vec::new(),
        ranks,
    };
    let by_language = slices(&rows, |query| query.lang.iter().cloned().collect());
    let nothing_fits = asked.map(|asked| nothing_fits(&asked, NOTHING_FITS_BELOW));
    let outcome = |answer: &Answer| QueryOutcome { found: answer.found.clone(), loss: answer.loss };
    let outcomes = rows.iter().map(|row| row.answer.as_ref().map(outcome)).collect();
    let rankings = rows.into_iter().map(|row| row.ranking).collect();
    Evaluation { facts, recall_at_5, ndcg_at_10, rankings, outcomes, by_language, nothing_fits }
}

fn row<'a>(
    query: &'a Query,
    copies: &Copies,
    wording: &Wording,
    ranking: Ranking,
    exhaustive: impl FnOnce() -> Option<Vec<u64>>,
    deck: Option<&CardDeck>,
) -> Result<Row<'a>, EvalError> {
    let card_tokens = match deck {
        Some(deck) => page_tokens(&ranking.hits, deck)?,
        None => 0,
    };
    Ok(Row { query, answer: answer(query, copies, wording, &ranking, exhaustive), card_tokens, ranking })
}

/// The measures of one ranking; `None` for a query that no tool answers.
fn answer(
    query: &Query,
    copies: &Copies,
    wording: &Wording,
    ranking: &Ranking,
    exhaustive: impl FnOnce() -> Option<Vec<u64>>,
) -> Option<Answer> {
    let judgement = Judgement { groups: query.groups.clone() };
    let hits = copies.folded(&ranking.hits);
    let found = Found::of(&hits, &judgement)?;
    let strict = Found::of(&ranking.hits, &judgement.strict())?;
    let (scores, flat) = match exhaustive() {
        Some(scores) => {
            let flat = copies.folded(&top(&scores, FIRST * copies.most)).into_owned();
            (scores, flat)
        }
        // An engine that cannot tell is taken at its word: what it does not return, it ranks lower.
        None => (vec![u64::MAX], hits.to_vec()),
    };
    let score_of = |item: u32| scores.get(item as usize).copied().unwrap_or(u64::MAX);
    let shared = wording.shared(&query.text);
    let shares_word = |item: u32| shared.get(item as usize).copied().unwrap_or(false);
    Some(Answer {
        recall: Measure::RECALL_5.of(&found),
        ndcg: Measure::NDCG_10.of(&found),
        ties: recall_over_orders(&hits, &judgement, FIRST)?,
        loss: loss_at_5(&hits, &flat, score_of, shares_word, &judgement)?,
        found,
        strict,
    })
}

/// recall@5 of every answerable query as it is served: a search for five tools, which does not go on through ties.
///
/// # Errors
/// The message of a configuration that cannot serve the catalog.
pub fn recall_as_served(collection: &Collection, config: &RoutingConfig) -> Result<Vec<f64>, EvalError> {
    let router = Router::build(Arc::clone(&collection.catalog), config.clone())?;
    let recall = |scratch: &mut Scratch, query: &Query| {
        let hits = router.search(&query.text, FIRST, scratch);
        Some(Measure::RECALL_5.of(&Found::of(&hits, &Judgement { groups: query.groups.clone() })?))
    };
    let all: Vec<Option<f64>> = collection.queries.par_iter().map_init(Scratch::default, recall).collect();
    Ok(all.into_iter().flatten().collect())
}

/// How the rankings of a collection are read where it knows copies of tools.
struct Copies<'c> {
    /// For every item the first of its capability; `None` where every tool stands for itself.
    originals: Option<&'c [u32]>,
    /// The size of the largest capability: rankings go so many times deeper, so that folding them leaves enough.
    most: usize,
}

impl<'c> Copies<'c> {
    fn of(collection: &'c Collection) -> Self {
        let originals = collection.capabilities.as_deref();
        let mut copies: BTreeMap<u32, usize> = BTreeMap::new();
        for &original in originals.unwrap_or_default() {
            *copies.entry(original).or_default() += 1;
        }
        Self { originals, most: copies.into_values().max().unwrap_or(1) }
    }

    /// The ranking with one place for each capability, that of its best copy.
    fn folded<'h>(&self, hits: &'h [Hit]) -> Cow<'h, [Hit]> {
        let Some(originals) = self.originals else { return Cow::Borrowed(hits) };
        let mut seen = BTreeSet::new();
        let first = |hit: &&Hit| seen.insert(originals.get(hit.item as usize).copied().unwrap_or(hit.item));
        Cow::Owned(hits.iter().filter(first).copied().collect())
    }
}

/// The best `k` of a score table.
fn top(scores: &[u64], k: usize) -> Vec<Hit> {
    let mut hits: Vec<Hit> = Vec::with_capacity(k + 1);
    for (item, &score) in scores.iter().enumerate() {
        if score > 0 && (hits.len() < k || hits.last().is_some_and(|last| score > last.score)) {
            let at = hits.partition_point(|hit| hit.score >= score);
            hits.insert(at, Hit { item: item as u32, score });
            hits.truncate(k);
        }
    }
    hits
}

/// Exact tokens of the first cards as one page.
fn page_tokens(hits: &[Hit], deck: &CardDeck) -> Result<usize, EvalError> {
    let cards = hits.iter().take(PROMPT_CARDS).map(|hit| deck.card(hit.item)).collect::<Result<Vec<_>, _>>();
    Ok(Estimator::Cl100kBase.count(&render_cards(&cards?)))
}

/// The namespaces of the tools that a query names, each once.
fn namespaces(collection: &Collection, query: &Query) -> Vec<String> {
    let items = collection.catalog.items();
    let named = query.groups.iter().filter_map(|group| group.first()).filter_map(|&item| items.get(item as usize));
    let mut namespaces: Vec<String> = named.map(|item| item.namespace.clone()).collect();
    namespaces.sort();
    namespaces.dedup();
    namespaces
}

/// More slices than this are no overview; a collection with so many namespaces reports none.
const MOST_SLICES: usize = 40;

fn slices(rows: &[Row], keys: impl Fn(&Query) -> Vec<String>) -> BTreeMap<String, Slice> {
    let mut sums: BTreeMap<String, (usize, f64)> = BTreeMap::new();
    for row in rows {
        let Some(answer) = &row.answer else { continue };
        for key in keys(row.query) {
            let (queries, sum) = sums.entry(key).or_default();
            *queries += 1;
            *sum += answer.recall;
        }
    }
    if sums.len() > MOST_SLICES {
        return BTreeMap::new();
    }
    let slice = |(queries, sum): (usize, f64)| Slice { queries, recall_at_5: round6(sum / queries as f64) };
    sums.into_iter().map(|(key, sum)| (key, slice(sum))).collect()
}

/// The confidence of every query, and what its answer was.
fn confidences(rows: &[Row]) -> Vec<(f64, Answered)> {
    let answered = |row: &Row| match &row.answer {
        Some(answer) if answer.recall > 0.0 => Answered::Right,
        Some(_) => Answered::Wrong,
        None => Answered::Unanswerable,
    };
    rows.iter().map(|row| (row.ranking.confidence, answered(row))).collect()
}

fn selective(asked: &[(f64, Answered)]) -> Option<Abstention> {
    Some(Abstention { ece: Some(calibration_error(asked)), ..abstention(asked)? })
}

fn prompt_tokens(collection: &Collection, rows: &[Row]) -> Tokens {
    // A line break ends a token of this vocabulary after a brace, so the lines' counts add up to the prompt's.
    let items = collection.catalog.items().par_iter();
    let naive: usize = items.map(|item| definition_tokens(item, Estimator::Cl100kBase)).sum();
    // A page without cards is no saving: such queries are the business of recall.
    let pages = rows.iter().filter(|row| !row.ranking.hits.is_empty());
    let cards_mean = mean(pages.map(|row| row.card_tokens as f64));
    Tokens {
        estimator: Estimator::Cl100kBase.name().to_owned(),
        naive,
        cards_mean: round6(cards_mean),
        cards_max: rows.iter().map(|row| row.card_tokens).max().unwrap_or(0),
        // Without a definition there is nothing to save.
        reduction: if naive == 0 { 0.0 } else { round6(1.0 - cards_mean / naive as f64) },
    }
}

/// What each of `engines` gives on `collection` (the one of `case`, already grown), with its name and in their order. The
/// control is run whether it is among them or not, since every other engine is compared with it.
#[must_use]
pub fn run_case(case: &Case, engines: &[&str], matrix: &Matrix, collection: &Collection) -> Vec<(String, Outcome)> {
    let tokens = if case.tokens { PromptTokens::Count } else { PromptTokens::Skip };
    let evaluate = |name: &str| match matrix.engine(name) {
        Some(engine) => evaluate(collection, engine, tokens),
        None => Err(EvalError::UnknownEngine(name.to_owned())),
    };
    let control = evaluate(CONTROL);
    let control_recall = control.as_ref().ok().map(|evaluation| evaluation.recall_at_5.clone());
    let tools = collection.first_tools();
    let mut control = Some(control);
    let outcome = |name: &&str| {
        let evaluation = match control.take_if(|_| *name == CONTROL) {
            Some(evaluation) => evaluation,
            None => evaluate(name),
        };
        let outcome = match evaluation {
            Ok(evaluation) if *name == CONTROL => Outcome::Measured(Box::new(evaluation.of_control(&tools))),
            Ok(evaluation) => {
                Outcome::Measured(Box::new(evaluation.against_control(control_recall.as_deref(), &tools)))
            }
            Err(error) => Outcome::Failed(error.to_string()),
        };
        ((*name).to_owned(), outcome)
    };
    engines.iter().map(outcome).collect()
}

/// The paired difference of recall@5 (engine − control) over the same queries of a catalog that has all the tools that there
/// are; `name` is the control's.
#[must_use]
pub fn against(name: &str, control: &[f64], engine: &[f64]) -> Paired {
    against_by_tool(name, control, engine, &[])
}

/// Whether the stated difference from the control is the one that the ranks of both give; it is, too, where none is stated.
#[must_use]
pub fn follows_from_ranks(facts: &Facts, control: &Facts) -> bool {
    let recall = |facts: &Facts| facts.ranks.values(Measure::RECALL_5);
    let computed = || against_by_tool(CONTROL, &recall(control), &recall(facts), &control.first_tools);
    facts.versus_control.as_ref().is_none_or(|stated| *stated == computed())
}

/// The same where the tools of the catalog are a sample too; `tools` has the first that each query needs.
#[must_use]
pub fn against_by_tool(name: &str, control: &[f64], engine: &[f64], tools: &[u32]) -> Paired {
    let pairs: Vec<(f64, f64)> = engine.iter().copied().zip(control.iter().copied()).collect();
    paired_by_tool(name, &pairs, tools)
}

/// The collection of a case: as it is, or grown.
///
/// # Errors
/// As [`grow`], e.g. for a size below the core.
pub fn grown(collection: &Arc<Collection>, growth: Option<Growth>) -> Result<Arc<Collection>, GrowthError> {
    match growth {
        None => Ok(Arc::clone(collection)),
        Some(growth) => grow(collection, growth, SEED).map(Arc::new),
    }
}

/// The digest of the inputs of a collection grown so, as [`grown`] would have it, without reading what was made.
///
/// # Errors
/// As [`grow`].
pub fn grown_sha256(collection: &Collection, growth: Growth) -> Result<String, GrowthError> {
    let files = grown_files(collection, growth, SEED)?;
    Ok(Hashes::of(files.catalog.as_bytes(), files.queries.as_bytes()).together())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::collection::{Collection, Source};
    use super::super::engine::RouterEngine;
    use super::super::record::{Grade, Origin};
    use super::*;
    use contextweaver_routing::{BeamConfig, Navigation, Scorer};

    const TOOLS: &str = r#"[
        {"name": "create_issue", "description": "Open a ticket. Second line\nwith a break", "server": "forge"},
        {"name": "list_issues", "description": "List tickets", "server": "forge", "inputSchema": {"type": "object"}},
        {"name": "send_mail", "description": "Send a letter", "server": "mail"}
    ]"#;
    const QUERIES: &str = r#"{"id": "1", "query": "open a ticket", "relevant": ["create_issue"]}
        {"id": "2", "query": "list tickets and letters", "relevant": ["list_issues", "send_mail"]}
        {"id": "3", "query": "phone home", "relevant": ["send_mail"]}
        {"id": "4", "query": "water the plants", "relevant": []}"#;

    fn collection() -> Arc<Collection> {
        let source = |text: &'static str| Source { path: Path::new("test"), bytes: text.as_bytes() };
        Arc::new(Collection::from_bytes("test", Origin::Embedded, source(TOOLS), source(QUERIES)).unwrap())
    }

    #[test]
    fn the_two_measures_alone_are_those_of_the_evaluation() {
        let default = RoutingConfig::default();
        let beam = Navigation::Beam(BeamConfig { width: 2, ..BeamConfig::default() });
        let configs = [
            default.clone(),
            RoutingConfig { navigation: beam, ..default.clone() },
            RoutingConfig { scorer: Scorer::Fuzzy, ..default },
        ];
        for config in configs {
            let engine = RouterEngine::new("any", config);
            for collection in [&*collection(), crate::eval::probe::collection()] {
                let Evaluation { ndcg_at_10, recall_at_5, .. } =
                    evaluate(collection, &engine, PromptTokens::Skip).unwrap();
                assert!(!recall_at_5.is_empty());
                assert_eq!(ndcg_and_recall(collection, &engine).unwrap(), (ndcg_at_10, recall_at_5));
            }
        }
    }

    fn evaluated(collection: &Collection) -> Evaluation {
        evaluate(collection, &RouterEngine::new("default", RoutingConfig::default()), PromptTokens::Count).unwrap()
    }

    #[test]
    fn a_query_without_an_answer_scores_zero_and_stays_in_the_denominator() {
        // By words alone: among three tools every one is near in meaning.
        let words = RouterEngine::new("words", RoutingConfig { semantic: 0.0, ..RoutingConfig::default() });
        let evaluation = evaluate(&collection(), &words, PromptTokens::Count).unwrap();
        assert_eq!(evaluation.recall_at_5, [1.0, 1.0, 0.0]);
        let facts = &evaluation.facts;
        assert_eq!((facts.answerable, facts.unanswerable), (3, 1));
        assert_eq!(facts.measures["recall@5"].mean, 0.666667);
        assert_eq!((facts.loss.vocabulary, facts.loss.ranking), (0.333333, 0.0));
    }

    #[test]
    fn the_naive_prompt_is_the_sum_of_its_lines() {
        let collection = collection();
        let prompt: String = collection.catalog.items().iter().map(|item| item.definition_json() + "\n").collect();
        let counted = evaluated(&collection).facts.tokens.unwrap().naive;
        assert_eq!(counted, Estimator::Cl100kBase.count(&prompt));
    }

    #[test]
    fn copies_do_not_push_other_capabilities_out() {
        let collection = collection();
        let many = grown(&collection, Some(Growth { grade: Grade::Copies, size: 30 })).unwrap();
        let (one, many) = (evaluated(&collection).facts, evaluated(&many).facts);
        assert_eq!(one.measures["recall@5"], many.measures["recall@5"]);
        assert!(many.strict["recall@5"].mean < one.strict["recall@5"].mean);
    }

    /// Among many like tools, where words and meaning propose only a part of what there is.
    #[test]
    fn what_is_served_is_the_beginning_of_what_is_measured() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gold/workbench");
        let collection = Arc::new(Collection::load(&folder, Origin::Embedded).unwrap());
        let collection = grown(&collection, Some(Growth { grade: Grade::Mixed, size: 3000 })).unwrap();
        let prepared = RouterEngine::new("default", RoutingConfig::default()).prepare(&collection.catalog).unwrap();
        for query in collection.queries.iter().step_by(7) {
            let measured: Vec<u32> = prepared.rank(&query.text, DEPTH).hits.iter().map(|hit| hit.item).collect();
            for k in [1, 5, 10] {
                assert_eq!(prepared.top(&query.text, k), measured[..k.min(measured.len())], "{}", query.text);
            }
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_digit() {
        let text = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            serde_json::to_string(&pool.install(|| evaluated(&collection()).facts)).unwrap()
        };
        assert_eq!(text(1), text(4));
    }
}
