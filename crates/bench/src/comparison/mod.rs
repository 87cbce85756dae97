//! Two measurements of the same items against each other, with a verdict that can stand as a gate.
//!
//! One test decides, on one measure: the mean over the sets, each of which weighs the same. Then the sets are judged one by
//! one, their probabilities adjusted for their number by Holm. Everything else only describes. So a table of many cells
//! neither raises alarms by chance nor hides a loss behind a correction for all of them.
//!
//! Nothing is run here. What is compared may come from this program or from another harness; [`read`] knows the forms.

pub mod evaluations;
pub mod outcomes;
pub mod read;
pub mod text;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use self::outcomes::{Alike, ItemSet, Outcomes, Value};
use crate::eval::decision::{Decision, Pair, Rule, Word, decide_by, probability};
use crate::eval::measure::{FIRST, Measure};
use crate::eval::statistics::{LEVEL, false_discovery, holm, mean, round6, sign_test};

/// What base and head differ in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// What decides: `recall@5`, or the name of a score.
    pub measure: String,
    /// The name of what is compared with.
    pub base: String,
    /// The name of what is judged.
    pub head: String,
    /// A difference within this counts as none, in units of the measure.
    pub margin: f64,
    /// The verdict over all sets.
    pub verdict: Decision,
    /// How the inputs of base and head differ, set by set: why they are not comparable, unless that was asked for.
    pub differing_inputs: Vec<String>,
    /// Whether the constants of our router were chosen on a set that is compared, so that its figures are higher there than
    /// elsewhere. Files do not say that: whoever knows the sets does.
    pub in_sample: bool,
    /// Each set by itself.
    pub sets: Vec<SetComparison>,
    /// The other measures, where ranks are known: they describe and decide nothing.
    pub described: Vec<Described>,
    /// The query that lost most; `None` where none lost.
    pub worst_query: Option<WorstQuery>,
    /// The tool whose queries lost most together; `None` where none lost or tools are not known.
    pub worst_tool: Option<WorstTool>,
}

/// One set of queries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetComparison {
    /// The name of the set.
    pub set: String,
    /// The mean of the base.
    pub base: f64,
    /// The mean of the head.
    pub head: f64,
    /// The verdict on this set alone; [`Word::Regressed`] and [`Word::Improved`] only where `p_holm` shows it too.
    pub verdict: Decision,
    /// The probability adjusted for the number of sets by Holm.
    pub p_holm: f64,
    /// Queries that found a tool in the base and none in the head; of other scores, those that fell.
    pub lost: usize,
    /// The opposite.
    pub won: usize,
    /// The exact probability of so uneven a split (McNemar).
    pub p_hits: f64,
}

/// One measure over all sets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Described {
    /// Its name.
    pub measure: String,
    /// The mean over the sets of the base.
    pub base: f64,
    /// The same of the head.
    pub head: f64,
    /// The probability of the sign-flip test.
    pub p: f64,
    /// The false discovery rate over these measures (Benjamini and Hochberg).
    pub q: f64,
}

/// A query of the head that is worse than in the base.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorstQuery {
    /// The name of the set.
    pub set: String,
    /// The id of the query.
    pub query: String,
    /// What was asked, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The tools that it needs, where they are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wanted: Vec<String>,
    /// What the base gave.
    pub base: Value,
    /// What the head gives.
    pub head: Value,
}

/// A tool whose queries are worse than in the base.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorstTool {
    /// The name of the set.
    pub set: String,
    /// The tool that these queries need first.
    pub tool: String,
    /// How many there are.
    pub queries: usize,
    /// The sum of their differences, head − base.
    pub difference: f64,
}

/// Two measurements cannot be compared at all.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CompareError {
    /// Not one set is in both.
    #[error(
        "`{0}` and `{1}` have no set of queries in common: there are {2} and {3}; compare two measurements of the same"
    )]
    NothingInCommon(String, String, String, String),
    /// Sets of one name are in both, and no query is.
    #[error(
        "`{0}` and `{1}` have no query in common: a query is the same when its id, its words and the tools it needs \
         are the same; compare two measurements of the same queries"
    )]
    NoQueryInCommon(String, String),
    /// The catalog or the queries changed, and which queries are still the same cannot be told.
    #[error(
        "`{0}`: the catalog or the queries changed, and the ranks of one side have no names, so no query can be \
         matched with the other side; measure both on the same"
    )]
    Unnamed(String),
    /// One of the two has no query at all that a tool answers.
    #[error("`{0}` has no query with an answer, so there is nothing to compare")]
    NoQuery(String),
    /// Ranks here, scores there.
    #[error("`{0}` holds ranks and `{1}` holds scores of `{2}`; compare two of the same kind")]
    Kinds(String, String, String),
    /// Scores of two measures.
    #[error("`{0}` holds scores of `{1}`, and `{2}` of `{3}`; name one that both have with --measure")]
    Measures(String, String, String, String),
    /// A measure that follows from ranks was asked for, and there are only scores.
    #[error("`{0}` holds scores of `{1}` and no ranks, so `{2}` cannot be computed from it")]
    NoRanks(String, String, String),
}

/// A query that both have.
struct Shared<'o> {
    /// Its id in the head.
    id: &'o str,
    base: &'o Value,
    head: &'o Value,
    cluster: u32,
    /// What was asked, where one side knows it.
    text: Option<&'o String>,
    /// The tools that it needs; empty where neither side knows them.
    tools: &'o [String],
}

/// A set that both have.
struct SharedSet<'o> {
    name: &'o str,
    queries: Vec<Shared<'o>>,
}

impl SharedSet<'_> {
    fn pairs(&self, value: impl Fn(&Value) -> f64) -> Vec<Pair> {
        let pair = |one: &Shared| Pair { base: value(one.base), head: value(one.head), cluster: one.cluster };
        self.queries.iter().map(pair).collect()
    }
}

/// Compares `head` with `base` by `measure`, which follows from ranks; scores of other harnesses are taken as they are. A
/// difference within `margin` counts as none; of scores that is a share of the largest, unless they are shown to differ.
/// Where the inputs differ the verdict is [`Word::NotComparable`], unless `changed_inputs` asks for what both have.
///
/// # Errors
/// [`CompareError`]: no query, nothing in common, or ranks on one side and scores on the other.
pub fn compare(
    base: &Outcomes,
    head: &Outcomes,
    measure: Measure,
    margin: f64,
    changed_inputs: bool,
) -> Result<Comparison, CompareError> {
    let name = common_measure(base, head, measure)?;
    if let Some(empty) = [base, head].into_iter().find(|one| one.sets.values().all(|set| set.items.is_empty())) {
        return Err(CompareError::NoQuery(empty.name.clone()));
    }
    let shared = shared_sets(base, head);
    if shared.is_empty() {
        return Err(nothing_shared(base, head));
    }
    let value = |value: &Value| value.of(measure);
    let pairs: Vec<Vec<Pair>> = shared.iter().map(|set| set.pairs(value)).collect();
    let rule = match &base.score {
        None => Rule::of_measure(margin),
        Some(_) => Rule::of_scores(margin, &pairs),
    };
    let verdict = decide_by(&pairs, rule);
    let differing_inputs = differing_inputs(base, head);
    let is_comparable = changed_inputs || differing_inputs.is_empty();
    let verdict = if is_comparable { verdict } else { Decision { word: Word::NotComparable, ..verdict } };
    Ok(Comparison {
        measure: name,
        base: base.name.clone(),
        head: head.name.clone(),
        margin: rule.margin,
        verdict,
        sets: by_set(&shared, &pairs, rule),
        described: described(&shared, measure),
        worst_query: worst_query(&shared, &pairs),
        worst_tool: worst_tool(&shared, &pairs),
        differing_inputs,
        in_sample: false,
    })
}

/// The name of what is compared.
fn common_measure(base: &Outcomes, head: &Outcomes, measure: Measure) -> Result<String, CompareError> {
    match (&base.score, &head.score) {
        (None, None) => Ok(measure.to_string()),
        (Some(left), Some(right)) if left == right => Ok(left.clone()),
        (Some(left), Some(right)) => {
            Err(CompareError::Measures(base.name.clone(), left.clone(), head.name.clone(), right.clone()))
        }
        (None, Some(score)) => Err(CompareError::Kinds(base.name.clone(), head.name.clone(), score.clone())),
        (Some(score), None) => Err(CompareError::Kinds(head.name.clone(), base.name.clone(), score.clone())),
    }
}

fn shared_sets<'o>(base: &'o Outcomes, head: &'o Outcomes) -> Vec<SharedSet<'o>> {
    // Of collections, the tools stand for others like them. A single catalog has all the tools that there are, and a loss on
    // one of them is a loss.
    let tools_are_a_sample = head.sets.keys().filter(|name| base.sets.contains_key(*name)).count() > 1;
    let mut shared = Vec::new();
    for (name, right) in &head.sets {
        let Some(left) = base.sets.get(name) else { continue };
        // A query whose tool is not known is evidence of its own, whatever it is called.
        let mut clusters: BTreeMap<(bool, &str), u32> = BTreeMap::new();
        let mut queries = Vec::new();
        for Alike { base_id, head_id, base, head } in left.alike(right) {
            // Names may be known on one side only; they are the same queries.
            let tools = right.tools.get(head_id).or_else(|| left.tools.get(base_id)).map_or(&[][..], Vec::as_slice);
            let text = right.texts.get(head_id).or_else(|| left.texts.get(base_id));
            let next = clusters.len() as u32;
            let tool = tools.first().filter(|_| tools_are_a_sample);
            let key = tool.map_or((false, head_id), |tool| (true, tool.as_str()));
            let cluster = *clusters.entry(key).or_insert(next);
            queries.push(Shared { id: head_id, base, head, cluster, text, tools });
        }
        if !queries.is_empty() {
            shared.push(SharedSet { name, queries });
        }
    }
    shared
}

/// Why there is no query that both have.
fn nothing_shared(base: &Outcomes, head: &Outcomes) -> CompareError {
    let both = base.sets.iter().filter_map(|(name, left)| Some((name, left, head.sets.get(name)?)));
    let both: Vec<(&String, &ItemSet, &ItemSet)> = both.collect();
    if let Some((name, ..)) = both.iter().find(|(_, left, right)| left.in_order || right.in_order) {
        return CompareError::Unnamed((*name).clone());
    }
    let sets = |one: &Outcomes| one.sets.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match both.is_empty() {
        true => CompareError::NothingInCommon(base.name.clone(), head.name.clone(), sets(base), sets(head)),
        false => CompareError::NoQueryInCommon(base.name.clone(), head.name.clone()),
    }
}

/// What makes the two sides measurements of different things, in sentences.
fn differing_inputs(base: &Outcomes, head: &Outcomes) -> Vec<String> {
    let names: BTreeSet<&String> = base.sets.keys().chain(head.sets.keys()).collect();
    let reason = |name: &String| match (base.sets.get(name), head.sets.get(name)) {
        (Some(_), None) => Some(format!("`{name}` is not in `{}`{}", head.name, head.failure(name))),
        (None, Some(_)) => Some(format!("`{name}` is not in `{}`{}", base.name, base.failure(name))),
        (Some(left), Some(right)) => {
            let alike = left.alike(right).len();
            let (missing, added) = (left.items.len() - alike, right.items.len() - alike);
            let counts = format!("queries missing or changed: {missing} of {}; new: {added}", left.items.len());
            match (left.inputs == right.inputs, missing + added > 0) {
                (true, false) => None,
                (true, true) => Some(format!("`{name}`: {counts}")),
                (false, false) => Some(format!("`{name}`: the catalog or the queries changed")),
                (false, true) => Some(format!("`{name}`: the catalog or the queries changed: {counts}")),
            }
        }
        (None, None) => None,
    };
    names.into_iter().filter_map(reason).collect()
}

fn by_set(shared: &[SharedSet<'_>], pairs: &[Vec<Pair>], rule: Rule) -> Vec<SetComparison> {
    let verdicts: Vec<Decision> = pairs.iter().map(|pairs| decide_by(std::slice::from_ref(pairs), rule)).collect();
    let adjusted = holm(&verdicts.iter().map(|verdict| verdict.p).collect::<Vec<f64>>());
    let row = |((set, pairs), (verdict, p_holm)): ((&SharedSet, &Vec<Pair>), (Decision, f64))| {
        let (p_holm, (lost, won)) = (round6(p_holm), hits(set));
        let shown = p_holm <= LEVEL || verdict.word == Word::Same;
        SetComparison {
            set: set.name.to_owned(),
            base: rule.rounded(mean(pairs.iter().map(|pair| pair.base))),
            head: rule.rounded(mean(pairs.iter().map(|pair| pair.head))),
            verdict: Decision { word: if shown { verdict.word } else { Word::Inconclusive }, ..verdict },
            p_holm,
            lost,
            won,
            p_hits: round6(sign_test(won, lost)),
        }
    };
    shared.iter().zip(pairs).zip(verdicts.into_iter().zip(adjusted)).map(row).collect()
}

/// Queries that lost and won their hit.
fn hits(set: &SharedSet<'_>) -> (usize, usize) {
    let falls = set.queries.iter().map(|one| match (one.base, one.head) {
        (Value::Ranks(base), Value::Ranks(head)) => {
            let hit = |ranks: &[Option<usize>]| ranks.iter().flatten().any(|rank| *rank <= FIRST);
            hit(head).cmp(&hit(base))
        }
        (base, head) => head.of(Measure::RECALL_5).total_cmp(&base.of(Measure::RECALL_5)),
    });
    falls.fold((0, 0), |(lost, won), fall| (lost + usize::from(fall.is_lt()), won + usize::from(fall.is_gt())))
}

fn described(shared: &[SharedSet<'_>], primary: Measure) -> Vec<Described> {
    let has_ranks = shared.iter().flat_map(|set| &set.queries).all(|one| matches!(one.base, Value::Ranks(_)));
    let others = Measure::ALL.into_iter().filter(|measure| has_ranks && *measure != primary);
    let rows: Vec<Described> = others
        .map(|measure| {
            let pairs: Vec<Vec<Pair>> = shared.iter().map(|set| set.pairs(|value| value.of(measure))).collect();
            let over = |side: fn(&Pair) -> f64| round6(mean(pairs.iter().map(|set| mean(set.iter().map(side)))));
            Described {
                measure: measure.to_string(),
                base: over(|pair| pair.base),
                head: over(|pair| pair.head),
                p: round6(probability(&pairs)),
                q: 1.0,
            }
        })
        .collect();
    let rates = false_discovery(&rows.iter().map(|row| row.p).collect::<Vec<f64>>());
    rows.into_iter().zip(rates).map(|(row, q)| Described { q: round6(q), ..row }).collect()
}

fn worst_query(shared: &[SharedSet<'_>], pairs: &[Vec<Pair>]) -> Option<WorstQuery> {
    let mut worst: Option<(f64, f64, &SharedSet, &Shared)> = None;
    for (set, pairs) in shared.iter().zip(pairs) {
        for (one, pair) in set.queries.iter().zip(pairs) {
            // Of equal losses the one that fell furthest in the ranking, then the first.
            let (loss, fall) = (pair.head - pair.base, one.head.height() - one.base.height());
            if loss < 0.0 && worst.is_none_or(|(least, deepest, ..)| (loss, fall) < (least, deepest)) {
                worst = Some((loss, fall, set, one));
            }
        }
    }
    worst.map(|(.., set, one)| WorstQuery {
        set: set.name.to_owned(),
        query: one.id.to_owned(),
        text: one.text.cloned(),
        wanted: one.tools.to_vec(),
        base: one.base.clone(),
        head: one.head.clone(),
    })
}

fn worst_tool(shared: &[SharedSet<'_>], pairs: &[Vec<Pair>]) -> Option<WorstTool> {
    let mut sums: BTreeMap<(&str, &str), (usize, f64)> = BTreeMap::new();
    for (set, pairs) in shared.iter().zip(pairs) {
        for (one, pair) in set.queries.iter().zip(pairs) {
            let Some(tool) = one.tools.first() else { continue };
            let sum = sums.entry((set.name, tool)).or_default();
            *sum = (sum.0 + 1, sum.1 + pair.head - pair.base);
        }
    }
    let worst =
        sums.into_iter().filter(|(_, (_, sum))| *sum < -1e-9).min_by(|left, right| left.1.1.total_cmp(&right.1.1));
    worst.map(|((set, tool), (queries, sum))| WorstTool {
        set: set.to_owned(),
        tool: tool.to_owned(),
        queries,
        difference: round6(sum),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::eval::collection::{Collection, Source, digest};
    use crate::eval::decision::MARGIN;
    use crate::eval::ranks::Ranks;
    use crate::eval::record::Origin;

    /// A set of queries for the tools `a` and `b` in turn, each found at the rank of its number.
    fn outcomes(name: &str, inputs: &str, ranks: &[Option<usize>]) -> Outcomes {
        let mut set = ItemSet { inputs: Some(inputs.to_owned()), ..ItemSet::default() };
        for (number, rank) in ranks.iter().enumerate() {
            let id = format!("q{number:03}");
            set.tools.insert(id.clone(), vec![format!("tool{number}")]);
            set.items.insert(id, Value::Ranks(vec![*rank]));
        }
        Outcomes { name: name.to_owned(), sets: BTreeMap::from([("own".to_owned(), set)]), ..Outcomes::default() }
    }

    fn compared(base: &Outcomes, head: &Outcomes) -> Comparison {
        compare(base, head, Measure::RECALL_5, MARGIN, false).unwrap()
    }

    #[test]
    fn a_loss_is_named_with_its_query_and_its_tool() {
        let base = outcomes("base", "1", &[Some(1); 40]);
        let mut ranks = [Some(1); 40];
        (ranks[3], ranks[7]) = (Some(9), None);
        ranks[10..20].fill(Some(6));
        let comparison = compared(&base, &outcomes("head", "1", &ranks));
        let verdict = comparison.verdict;
        assert_eq!((verdict.word, verdict.differing, verdict.difference), (Word::Regressed, 12, -0.3));
        let worst = comparison.worst_query.unwrap();
        assert_eq!(
            (worst.query.as_str(), worst.wanted, worst.head),
            ("q007", vec!["tool7".to_owned()], Value::Ranks(vec![None]))
        );
        assert_eq!(comparison.worst_tool.unwrap().tool, "tool10");
        let [set] = &comparison.sets[..] else { panic!("sets") };
        assert_eq!((set.lost, set.won, set.base, set.head), (12, 0, 1.0, 0.7));
        assert!(comparison.described.iter().any(|row| row.measure == "nDCG@10" && row.q <= 0.05));
    }

    #[test]
    fn equal_answers_are_the_same_and_nothing_is_worst() {
        let one = outcomes("one", "1", &[Some(2), None, Some(7)]);
        let comparison = compared(&one, &one);
        assert_eq!(comparison.verdict.word, Word::Same);
        assert_eq!((comparison.worst_query, comparison.worst_tool), (None, None));
    }

    #[test]
    fn other_inputs_are_not_comparable_unless_that_is_asked_for() {
        let base = outcomes("base", "1", &[Some(1); 30]);
        let cases = [
            ("changed", outcomes("head", "2", &[Some(1); 30]), "`own`: the catalog or the queries changed"),
            (
                "fewer queries",
                outcomes("head", "1", &[Some(1); 29]),
                "`own`: queries missing or changed: 1 of 30; new: 0",
            ),
        ];
        for (what, head, reason) in cases {
            let comparison = compared(&base, &head);
            assert_eq!(comparison.verdict.word, Word::NotComparable, "{what}");
            assert_eq!(comparison.differing_inputs, [reason], "{what}");
            assert_eq!(
                compare(&base, &head, Measure::RECALL_5, MARGIN, true).unwrap().verdict.word,
                Word::Same,
                "{what}"
            );
        }
        let mut two = base.clone();
        two.sets.insert("other".to_owned(), base.sets["own"].clone());
        assert_eq!(compared(&two, &base).differing_inputs, ["`other` is not in `base`"]);
        let mut elsewhere = base.clone();
        elsewhere.sets = BTreeMap::from([("elsewhere".to_owned(), base.sets["own"].clone())]);
        let error = compare(&base, &elsewhere, Measure::RECALL_5, MARGIN, true).unwrap_err().to_string();
        let expected = "`base` and `base` have no set of queries in common: there are `own` and `elsewhere`; compare two \
                        measurements of the same";
        assert_eq!(error, expected);
    }

    /// A set of one tool, of queries with their ids, their words and their digests; `""` is not known.
    fn asked(inputs: &str, queries: &[(&str, &str, &str)]) -> Outcomes {
        let mut set = ItemSet { inputs: Some(inputs.to_owned()), ..ItemSet::default() };
        for (number, (id, text, digest)) in (1..).zip(queries) {
            set.items.insert((*id).to_owned(), Value::Ranks(vec![Some(number)]));
            for (words, of) in [(text, &mut set.texts), (digest, &mut set.digests)] {
                if !words.is_empty() {
                    of.insert((*id).to_owned(), (*words).to_owned());
                }
            }
        }
        Outcomes { name: inputs.to_owned(), sets: [("own".to_owned(), set)].into(), ..Outcomes::default() }
    }

    #[test]
    fn queries_are_paired_by_what_they_ask() {
        type Asked<'a> = &'a [(&'a str, &'a str, &'a str)];
        type Case<'a> = (&'a str, Asked<'a>, Asked<'a>, &'a [(&'a str, &'a str)]);
        let table: [Case; 10] = [
            ("ids alone", &[("1", "", ""), ("2", "", "")], &[("2", "", ""), ("3", "", "")], &[("2", "2")]),
            ("an id with other words", &[("1", "pay", "")], &[("1", "send", "")], &[]),
            ("words on one side", &[("1", "pay", "")], &[("1", "", "a")], &[("1", "1")]),
            ("other ids", &[("1", "pay", "")], &[("p", "pay", "")], &[("1", "p")]),
            ("an id with another digest", &[("1", "pay", "a")], &[("1", "pay", "b")], &[]),
            ("digests decide", &[("1", "pay", "a")], &[("1", "send", "a")], &[("1", "1")]),
            (
                "ids that changed places",
                &[("1", "", "a"), ("2", "", "b")],
                &[("1", "", "b"), ("2", "", "a")],
                &[("2", "1"), ("1", "2")],
            ),
            (
                "several that ask the same",
                &[("1", "pay", ""), ("2", "pay", ""), ("3", "pay", "")],
                &[("2", "pay", ""), ("x", "pay", "")],
                &[("2", "2"), ("1", "x")],
            ),
            ("equal words with another digest", &[("1", "pay", "a")], &[("p", "pay", "b")], &[]),
            (
                "equal words of which the first have another digest",
                &[("1", "pay", "a"), ("2", "pay", "b"), ("3", "pay", "")],
                &[("x", "pay", "c"), ("y", "pay", "b")],
                &[("3", "x"), ("2", "y")],
            ),
        ];
        for (what, base, head, expected) in table {
            let (base, head) = (asked("base", base), asked("head", head));
            let alike = base.sets["own"].alike(&head.sets["own"]);
            let ids: Vec<(&str, &str)> = alike.iter().map(|one| (one.base_id, one.head_id)).collect();
            assert_eq!(ids, expected, "{what}");
            let compared = compare(&base, &head, Measure::RECALL_5, MARGIN, true);
            assert_eq!(compared.map_or(0, |one| one.verdict.queries), expected.len(), "{what}");
        }
        let tools = |tools: &[&str]| {
            let mut one = asked("1", &[("1", "", "")]);
            let set = one.sets.get_mut("own").unwrap();
            set.tools.insert("1".to_owned(), tools.iter().map(|tool| (*tool).to_owned()).collect());
            set.items.insert("1".to_owned(), Value::Ranks(vec![Some(1); tools.len()]));
            one
        };
        for (other, expected) in [(&["pay"][..], 1), (&["send"], 0), (&["pay", "send"], 0)] {
            let alike = tools(&["pay"]).sets["own"].alike(&tools(other).sets["own"]).len();
            assert_eq!(alike, expected, "{other:?}");
        }
        // Of equal inputs they are not taken for the same either.
        let error =
            compare(&tools(&["pay"]), &tools(&["send"]), Measure::RECALL_5, MARGIN, false).unwrap_err().to_string();
        assert!(error.starts_with("`1` and `1` have no query in common: a query is the same when"), "{error}");
    }

    #[test]
    fn numbers_mean_queries_of_the_same_inputs_only() {
        let numbered = |inputs: &str| {
            let set = ItemSet::in_order(inputs, &[vec![Some(1)], vec![None]].into_iter().collect());
            Outcomes { name: inputs.to_owned(), sets: [("own".to_owned(), set)].into(), ..Outcomes::default() }
        };
        assert_eq!(compared(&numbered("1"), &numbered("1")).verdict.queries, 2);
        let error = compare(&numbered("1"), &numbered("2"), Measure::RECALL_5, MARGIN, true).unwrap_err().to_string();
        assert!(error.starts_with("`own`: the catalog or the queries changed, and the ranks of one side"), "{error}");
    }

    #[test]
    fn a_collection_names_queries_by_their_ids() {
        let tools = r#"[{"name": "pay", "description": "Pay"}, {"name": "send", "description": "Send"}]"#;
        let query =
            |id: usize, tool: &str| format!("{{\"id\":\"q{id}\",\"query\":\"{id}\",\"relevant\":[\"{tool}\"]}}\n");
        let queries: String = (1..=12).map(|id| query(id, if id % 2 == 0 { "pay" } else { "send" })).collect();
        let source = |name: &'static str, bytes| Source { path: Path::new(name), bytes };
        let (tools, queries) = (source("tools.json", tools.as_bytes()), source("q.jsonl", queries.as_bytes()));
        let collection = Collection::from_bytes("own", Origin::Public, tools, queries).unwrap();
        let ranks: Ranks = (1..=12).map(|rank| vec![Some(rank)]).collect();
        let measured = ItemSet::of(&collection, &ranks);
        // Ids of a file are in the order of their letters, which is not the order of the queries.
        let of_file = ItemSet { tools: BTreeMap::new(), texts: BTreeMap::new(), ..measured.clone() };
        assert_eq!(of_file.named_by(&collection), measured);
        assert_eq!(ItemSet::in_order(&collection.inputs_sha256, &ranks).named_by(&collection), measured);
        let elsewhere = ItemSet::in_order("other", &ranks);
        assert_eq!(elsewhere.clone().named_by(&collection), elsewhere);
        // Of other inputs, only digests say which queries of a file are still the same.
        let digests = collection.digests();
        for (inputs, digests, alike) in
            [(&*collection.inputs_sha256, BTreeMap::new(), 12), ("other", BTreeMap::new(), 0), ("other", digests, 12)]
        {
            let ranks: BTreeMap<String, [usize; 1]> = (1..=12).map(|rank| (format!("q{rank}"), [rank])).collect();
            let evaluation = serde_json::json!({"configuration": "x", "ranks": ranks});
            let file = serde_json::json!({
                "schema_version": 1, "inputs_sha256": inputs, "queries": digests, "evaluations": [evaluation],
            });
            let file = evaluations::Evaluations::parse(file.to_string().as_bytes()).unwrap();
            let items = file.items_on(&file.evaluations[0], &collection);
            assert_eq!(items.alike(&measured).len(), alike, "{inputs}");
        }
    }

    #[test]
    fn a_tool_of_the_same_name_elsewhere_leaves_queries_what_they_are() {
        let catalog = |wikis: usize| {
            let tool =
                |name: &str, server: &str| serde_json::json!({"name": name, "server": server, "description": name});
            let wikis = (0..wikis).map(|number| tool("search", &format!("wiki{number}")));
            let tools: Vec<_> = [tool("search", "mail"), tool("send", "mail")].into_iter().chain(wikis).collect();
            serde_json::to_string(&tools).unwrap()
        };
        let of = |wikis: usize, texts: [&str; 2], tools: [&str; 2]| {
            let line = |(id, text): (usize, &str), tool: &str| {
                format!("{{\"id\": \"q{id}\", \"query\": \"{text}\", \"relevant\": [\"{tool}\"]}}\n")
            };
            let lines: String =
                texts.into_iter().enumerate().zip(tools).map(|(asked, tool)| line(asked, tool)).collect();
            let (tools, path) = (catalog(wikis), Path::new("x"));
            let [tools, lines] = [&tools, &lines].map(|text| Source { path, bytes: text.as_bytes() });
            Collection::from_bytes("own", Origin::Public, tools, lines).unwrap()
        };
        let texts = ["find a letter", "write a letter"];
        let before = of(0, texts, ["search", "send"]);
        // As an earlier version wrote it, by the handles of its catalog.
        let by_handle = |collection: &Collection| -> BTreeMap<String, String> {
            let items = collection.catalog.items();
            let name = |item: u32| items[item as usize].name.clone();
            let asked = collection.queries.iter();
            asked.map(|query| (query.id.clone(), digest(query, name))).collect()
        };
        let ranks = Ranks::from_iter([vec![Some(1)], vec![Some(1)]]);
        let table = [
            ("no other tool", of(0, texts, ["search", "send"]), 2),
            ("one more", of(1, texts, ["mail:search", "send"]), 2),
            ("six more", of(6, texts, ["mail:search", "mail:send"]), 2),
            ("the other tool is meant", of(1, texts, ["wiki0:search", "send"]), 1),
            ("other words", of(1, ["find a page", "write a letter"], ["mail:search", "send"]), 1),
        ];
        for (what, after, expected) in table {
            for (form, digests) in [("now", before.digests()), ("by handles", by_handle(&before))] {
                let by_name_alone = form == "by handles" && what == "the other tool is meant";
                let expected = if by_name_alone { 2 } else { expected };
                let evaluation = serde_json::json!({"configuration": "x", "ranks": {"q0": [1], "q1": [1]}});
                let file = serde_json::json!({
                    "schema_version": 1, "inputs_sha256": "then", "queries": digests, "evaluations": [evaluation],
                });
                let file = evaluations::Evaluations::parse(file.to_string().as_bytes()).unwrap();
                let (then, now) = (file.items_on(&file.evaluations[0], &after), ItemSet::of(&after, &ranks));
                assert_eq!((then.alike(&now).len(), now.alike(&then).len()), (expected, expected), "{what}, {form}");
            }
            // Without digests the names of the tools decide.
            let bare = |set: ItemSet| ItemSet { digests: BTreeMap::new(), texts: BTreeMap::new(), ..set };
            let alike = bare(ItemSet::of(&before, &ranks)).alike(&bare(ItemSet::of(&after, &ranks))).len();
            assert_eq!(alike, 2, "{what}");
        }
        let [send, other] = [ItemSet::of(&before, &ranks), ItemSet::of(&of(0, texts, ["send", "search"]), &ranks)]
            .map(|set| ItemSet { digests: BTreeMap::new(), texts: BTreeMap::new(), ..set });
        assert_eq!(send.alike(&other).len(), 0);
    }

    #[test]
    fn without_a_query_there_is_nothing_to_compare() {
        let one = outcomes("one", "1", &[Some(1)]);
        for (base, head) in [(outcomes("none", "1", &[]), one.clone()), (one, outcomes("none", "1", &[]))] {
            let error = compare(&base, &head, Measure::RECALL_5, MARGIN, true).unwrap_err().to_string();
            assert_eq!(error, "`none` has no query with an answer, so there is nothing to compare");
        }
    }

    #[test]
    fn ranks_and_scores_do_not_mix() {
        let ranks = outcomes("ranks", "1", &[Some(1)]);
        let scores = Outcomes { name: "log".to_owned(), score: Some("accuracy".to_owned()), ..ranks.clone() };
        let error = compare(&ranks, &scores, Measure::RECALL_5, MARGIN, false).unwrap_err().to_string();
        assert_eq!(error, "`ranks` holds ranks and `log` holds scores of `accuracy`; compare two of the same kind");
    }

    #[test]
    fn the_margin_is_that_of_the_caller_and_of_scores_a_share() {
        let ranks =
            |lost: usize| -> Vec<Option<usize>> { (0..400).map(|number| (number >= lost).then_some(1)).collect() };
        let (base, head) = (outcomes("base", "1", &ranks(0)), outcomes("head", "1", &ranks(12)));
        for (margin, word) in [(MARGIN, Word::Regressed), (0.1, Word::Same)] {
            let comparison = compare(&base, &head, Measure::RECALL_5, margin, false).unwrap();
            assert_eq!((comparison.margin, comparison.verdict.word), (margin, word));
        }
        let scores = |name: &str, score: f64| {
            let items = (0..60).map(|number| (format!("q{number}"), Value::Score(score))).collect();
            let set = ItemSet { items, ..ItemSet::default() };
            let sets = [("own".to_owned(), set)].into();
            Outcomes { name: name.to_owned(), score: Some("cost".to_owned()), sets, ..Outcomes::default() }
        };
        let comparison = compared(&scores("base", 0.01), &scores("head", 0.0));
        let text = text::plain(&comparison);
        assert_eq!((comparison.margin, comparison.verdict.word), (0.0001, Word::Regressed), "{text}");
        assert!(text.starts_with("cost, base -> head: regressed\n  −.010 "), "{text}");
        let comparison = compared(&scores("base", 1.0), &scores("head", 1.0 - 1e-9));
        let text = text::plain(&comparison);
        assert!(text.starts_with("cost, base -> head: regressed\n  −1.00e-9 "), "{text}");
        assert!(text.contains("worst query  q0 (own): 1.000000000 -> .999999999\n"), "{text}");
    }

    #[test]
    fn of_several_collections_the_tools_are_a_sample() {
        let one = |lost: usize| {
            let mut set =
                outcomes("", "1", &(0..60).map(|n| (n >= lost).then_some(1)).collect::<Vec<_>>()).sets["own"].clone();
            set.tools.values_mut().enumerate().for_each(|(n, tools)| *tools = vec![format!("tool{}", n / 10)]);
            set
        };
        let named = |sets: &[(&str, usize)]| Outcomes {
            sets: sets.iter().map(|(name, lost)| ((*name).to_owned(), one(*lost))).collect(),
            ..Outcomes::default()
        };
        let alone = compared(&named(&[("own", 0)]), &named(&[("own", 10)])).verdict;
        assert_eq!((alone.word, alone.clusters), (Word::Regressed, 60));
        let several = compared(&named(&[("a", 0), ("b", 0)]), &named(&[("a", 10), ("b", 0)])).verdict;
        assert_eq!((several.word, several.clusters, several.p), (Word::Inconclusive, 12, 1.0));
        // What one side has besides does not make a sample of what both have.
        let (one, two) = (named(&[("a", 0)]), named(&[("a", 10), ("b", 0)]));
        for (base, head) in [(&one, &two), (&two, &one)] {
            assert_eq!(compare(base, head, Measure::RECALL_5, MARGIN, true).unwrap().verdict.clusters, 60);
        }
    }

    #[test]
    fn many_sets_raise_no_alarm_by_chance_that_one_would_not() {
        // Each of ten sets has one at p = .03125; over ten that is expected, and Holm says so.
        let mut base = Outcomes { name: "base".to_owned(), ..Outcomes::default() };
        let mut head = Outcomes { name: "head".to_owned(), ..Outcomes::default() };
        for set in 0..10 {
            let ranks = |lost: usize| -> Vec<Option<usize>> { (0..200).map(|n| (n >= lost).then_some(1)).collect() };
            let name = format!("set{set}");
            base.sets.insert(name.clone(), outcomes("", "1", &ranks(0)).sets["own"].clone());
            head.sets.insert(name, outcomes("", "1", &ranks(if set == 0 { 6 } else { 0 })).sets["own"].clone());
        }
        let comparison = compared(&base, &head);
        assert_eq!((comparison.sets[0].verdict.p, comparison.sets[0].p_holm), (0.03125, 0.3125));
        assert_eq!(comparison.sets[0].verdict.word, Word::Inconclusive);
    }
}
