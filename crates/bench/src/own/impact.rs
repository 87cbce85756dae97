//! What a change of a catalog does to routing: over all queries, and by every definition that changed.
//!
//! The same queries are ranked with the catalog before and after. What one definition does is measured by making its change
//! alone: added tools push others down, so the query that suffers is rarely one about the tool that changed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rayon::prelude::*;
use serde::{Serialize, Serializer};

use super::gate::{Moved, sort_worst_first};
use super::place::{Place, Texts};
use crate::eval::collection::{Asked, Names, handles, listed_twice};
use crate::eval::decision::{Decision, MARGIN, Pair, Word, decide};
use crate::eval::engine::Engine;
use crate::eval::measure::{Found, Judgement, Measure};
use crate::eval::run::DEPTH;
use crate::eval::statistics::{mean, round6};
use contextweaver_core::catalog::{Catalog, Changed, DiffReport, Entry, SelectableItem};
use contextweaver_core::names::named;

/// Definitions whose change is measured alone: those that change the most tokens come first.
pub const MEASURED_ALONE: usize = 64;

/// What a change of a catalog does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Impact {
    /// Tokens of all definitions before.
    pub tokens_before: usize,
    /// Tokens of all definitions after.
    pub tokens_after: usize,
    /// recall@5 of the queries that both catalogs can answer, before.
    pub recall_at_5_before: f64,
    /// The same, after.
    pub recall_at_5_after: f64,
    /// nDCG@10 of the same queries, before.
    pub ndcg_at_10_before: f64,
    /// The same, after.
    pub ndcg_at_10_after: f64,
    /// The verdict on recall@5.
    pub decision: Decision,
    /// Every measure of the new catalog, over all queries that it can answer.
    #[serde(serialize_with = "rounded")]
    pub measures: BTreeMap<String, f64>,
    /// Needed tools whose rank changed, the largest loss first.
    pub moved: Vec<Moved>,
    /// Needed tools that the new catalog does not have.
    pub lost: Vec<Lost>,
    /// Queries that only the new catalog can answer.
    pub new_queries: usize,
    /// What changed, the largest change of tokens first.
    pub definitions: Vec<Definition>,
}

/// Files hold six decimals; a threshold is compared with the mean as it is.
fn rounded<S: Serializer>(measures: &BTreeMap<String, f64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(measures.iter().map(|(name, value)| (name, round6(*value))))
}

/// A tool that a query needs and the new catalog does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// The id of the query.
    pub query: String,
    /// Its text.
    pub text: String,
    /// The id of the tool in the old catalog.
    pub tool: String,
}

named! {
    /// How a definition changed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    pub enum Kind {
        /// It is new.
        Added = "added",
        /// It is gone.
        Removed = "removed",
        /// It has another name or stands in another namespace.
        Renamed = "renamed",
        /// It says something else.
        Changed = "changed",
    }
}

/// A definition that changed, and what its change does alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Definition {
    /// How it changed.
    pub kind: Kind,
    /// Its id: the new one where there is one.
    pub id: String,
    /// Its id in the old catalog, when it was there.
    pub old_id: Option<String>,
    /// Its tokens before; 0 when it was not there.
    pub tokens_before: usize,
    /// Its tokens after; 0 when it is gone.
    pub tokens_after: usize,
    /// Where it stands in the new files, or stood in the old ones.
    pub place: Option<Place>,
    /// What the change does alone; `None` beyond the first [`MEASURED_ALONE`] definitions.
    pub alone: Option<Alone>,
}

impl Definition {
    /// The tokens that it adds.
    #[must_use]
    pub fn growth(&self) -> i64 {
        self.tokens_after as i64 - self.tokens_before as i64
    }

    /// The id of a tool in the old catalog with this change made; `None` where it is not there.
    fn made_alone<'b>(&self, both: &'b Both) -> Option<&'b str> {
        let is_this = match (&self.old_id, &both.old) {
            (None, None) => both.new.as_ref() == Some(&self.id),
            (own, old) => own == old,
        };
        if is_this { both.new.as_deref() } else { both.old.as_deref() }
    }
}

/// What the change of one definition does when nothing else changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alone {
    /// The change of recall@5.
    pub recall_at_5: f64,
    /// The change of nDCG@10.
    pub ndcg_at_10: f64,
    /// The verdict on recall@5.
    pub word: Word,
    /// How many needed tools changed their rank.
    pub moved: usize,
    /// The largest loss.
    pub worst: Option<Moved>,
}

/// The two states of a catalog, with the files that they come from.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// Where the old catalog was loaded from.
    pub old_path: &'a Path,
    /// The catalog before.
    pub old: &'a Arc<Catalog>,
    /// Where the new catalog was loaded from.
    pub new_path: &'a Path,
    /// The catalog after.
    pub new: &'a Arc<Catalog>,
    /// What differs between them.
    pub diff: &'a DiffReport,
}

/// A tool that a query names: its id in either catalog.
#[derive(Debug, Clone, PartialEq)]
struct Both {
    old: Option<String>,
    new: Option<String>,
}

struct Needed<'q> {
    asked: &'q Asked,
    groups: Vec<Vec<Both>>,
}

impl Needed<'_> {
    fn answered(&self, side: fn(&Both) -> &Option<String>) -> bool {
        self.groups.iter().all(|group| group.iter().any(|both| side(both).is_some()))
    }
}

fn old_side(both: &Both) -> &Option<String> {
    &both.old
}

fn new_side(both: &Both) -> &Option<String> {
    &both.new
}

/// Measures what the change does to `queries`, which may name tools of either catalog, with `engine`.
///
/// # Errors
/// When a query names a tool that neither catalog has, no query is answered before and after, or the engine cannot serve a
/// catalog. `queries_path` is what messages name.
pub fn measure(sides: Sides<'_>, queries_path: &Path, queries: &[Asked], engine: &dyn Engine) -> Result<Impact> {
    let needed = resolve(sides, queries_path, queries)?;
    let needed: Vec<Needed<'_>> = needed.into_iter().filter(|one| !one.groups.is_empty()).collect();
    let before = ranks(engine, sides.old, &needed, |both| both.old.as_deref())?;
    let after = ranks(engine, sides.new, &needed, |both| both.new.as_deref())?;
    let known_before: Vec<bool> = needed.iter().map(|one| one.answered(old_side)).collect();
    let known_after: Vec<bool> = needed.iter().map(|one| one.answered(new_side)).collect();
    let both = |at: usize| known_before[at] && known_after[at];
    let compared = Compared::of(&needed, &before, &after, both);
    if compared.recall.is_empty() {
        bail!("{}: no query has tools that both catalogs have, so there is nothing to compare", queries_path.display());
    }
    let answered = || (0..needed.len()).filter(|at| known_after[*at]);
    let measures = Measure::ALL.map(|measure| (measure.to_string(), mean(answered().map(|at| measure.of(&after[at])))));
    let mut definitions = definitions(sides);
    for definition in definitions.iter_mut().take(MEASURED_ALONE) {
        let catalog = Arc::new(Catalog::new(with_change(sides, definition))?);
        let after = ranks(engine, &catalog, &needed, |both| definition.made_alone(both))?;
        definition.alone = Some(Compared::of(&needed, &before, &after, |at| known_before[at]).alone());
    }
    let lost = |one: &Needed<'_>| -> Vec<Lost> {
        let groups = one.groups.iter().filter(|group| group.iter().all(|both| both.new.is_none()));
        let tools = groups.filter_map(|group| group.iter().find_map(|both| both.old.clone()));
        tools.map(|tool| Lost { query: one.asked.id.clone(), text: one.asked.text.clone(), tool }).collect()
    };
    let [(recall_before, recall_after), (ndcg_before, ndcg_after)] = [means(&compared.recall), means(&compared.ndcg)];
    Ok(Impact {
        tokens_before: sides.diff.old_tokens,
        tokens_after: sides.diff.new_tokens,
        recall_at_5_before: recall_before,
        recall_at_5_after: recall_after,
        ndcg_at_10_before: ndcg_before,
        ndcg_at_10_after: ndcg_after,
        decision: decided(&compared.recall),
        measures: measures.into_iter().collect(),
        moved: compared.moved,
        lost: needed.iter().flat_map(lost).collect(),
        new_queries: (0..needed.len()).filter(|at| known_after[*at] && !known_before[*at]).count(),
        definitions,
    })
}

/// Every query with its tools in both catalogs. What a query names in the old catalog is the same tool in the new one where the
/// two are paired there; another tool that got its name is not.
fn resolve<'q>(sides: Sides<'_>, path: &Path, queries: &'q [Asked]) -> Result<Vec<Needed<'q>>> {
    let (old_handles, new_handles) = (handles(sides.old), handles(sides.new));
    let (old, new) = (Names::new(sides.old, &old_handles), Names::new(sides.new, &new_handles));
    let id = |catalog: &Catalog, number: u32| catalog.items().get(number as usize).map(|item| item.id.clone());
    let mut partners: BTreeMap<&str, &str> = BTreeMap::new();
    let mut origins: BTreeMap<&str, &str> = BTreeMap::new();
    for Changed { old, new, .. } in sides.diff.namespaces.iter().flat_map(|one| one.renamed.iter().chain(&one.changed))
    {
        partners.insert(&old.id, &new.id);
        origins.insert(&new.id, &old.id);
    }
    // What did not change has the same id in both.
    let partner = |id: &str, known: &BTreeMap<&str, &str>, other: &Catalog| {
        let there = || other.position(id).is_some().then_some(id);
        known.get(id).copied().or_else(there).map(str::to_owned)
    };
    let both = |asked: &Asked, reference: &str| {
        let in_old = old.resolve(reference).ok().and_then(|number| id(sides.old, number));
        let in_new = new.resolve(reference);
        let new_id = in_new.as_ref().ok().and_then(|number| id(sides.new, *number));
        match (in_old, new_id) {
            (Some(old), _) => Ok(Both { new: partner(&old, &partners, sides.new), old: Some(old) }),
            (None, Some(new)) => Ok(Both { old: partner(&new, &origins, sides.old), new: Some(new) }),
            (None, None) => {
                let reason = in_new.err().unwrap_or_default();
                bail!("{}:{}: query `{}`: {reason}", path.display(), asked.line, asked.id)
            }
        }
    };
    let needed = |asked: &'q Asked| {
        let mut used: Vec<Both> = Vec::new();
        let mut once = |reference: &String| {
            let both = both(asked, reference)?;
            if used.contains(&both) {
                let reason = listed_twice(reference);
                bail!("{}:{}: query `{}`: {reason}", path.display(), asked.line, asked.id);
            }
            used.push(both.clone());
            Ok(both)
        };
        let mut group = |group: &Vec<String>| group.iter().map(&mut once).collect::<Result<Vec<_>>>();
        let groups = asked.groups.iter().map(&mut group).collect::<Result<Vec<_>>>()?;
        Ok(Needed { asked, groups })
    };
    queries.iter().map(needed).collect()
}

/// Where the needed tools of every query stand in the rankings of `catalog`, in which they have the ids `id`; a tool that it
/// does not have is not found.
fn ranks(
    engine: &dyn Engine,
    catalog: &Arc<Catalog>,
    needed: &[Needed<'_>],
    id: impl Fn(&Both) -> Option<&str> + Sync,
) -> Result<Vec<Found>> {
    let prepared = engine.prepare(catalog)?;
    let found = |one: &Needed<'_>| {
        let number = |both: &Both| catalog.position(id(both)?).and_then(|position| u32::try_from(position).ok());
        let groups = one.groups.iter().map(|group| group.iter().filter_map(number).collect()).collect();
        let ranking = prepared.rank(&one.asked.text, DEPTH);
        Found::of(&ranking.hits, &Judgement { groups }).context("a query without tools is not ranked")
    };
    needed.par_iter().map(found).collect()
}

/// Two sets of rankings of the same queries.
struct Compared {
    recall: Vec<(f64, f64)>,
    ndcg: Vec<(f64, f64)>,
    moved: Vec<Moved>,
}

impl Compared {
    fn of(needed: &[Needed<'_>], before: &[Found], after: &[Found], counts: impl Fn(usize) -> bool) -> Self {
        let mut compared = Self { recall: Vec::new(), ndcg: Vec::new(), moved: Vec::new() };
        for (at, ((one, before), after)) in needed.iter().zip(before).zip(after).enumerate() {
            if !counts(at) {
                continue;
            }
            let values = |measure: Measure| (measure.of(before), measure.of(after));
            compared.recall.push(values(Measure::RECALL_5));
            compared.ndcg.push(values(Measure::NDCG_10));
            for ((group, before), after) in one.groups.iter().zip(before.ranks()).zip(after.ranks()) {
                let named = group.first().and_then(|both| both.new.as_ref().or(both.old.as_ref()));
                if before != after {
                    compared.moved.push(Moved {
                        query: one.asked.id.clone(),
                        text: one.asked.text.clone(),
                        tool: named.cloned().unwrap_or_default(),
                        before: *before,
                        after: *after,
                    });
                }
            }
        }
        sort_worst_first(&mut compared.moved);
        compared
    }

    fn alone(self) -> Alone {
        let change = |pairs: &[(f64, f64)]| {
            let (before, after) = means(pairs);
            round6(after - before)
        };
        Alone {
            recall_at_5: change(&self.recall),
            ndcg_at_10: change(&self.ndcg),
            word: decided(&self.recall).word,
            moved: self.moved.len(),
            worst: self.moved.into_iter().next().filter(|moved| moved.gain() < 0.0),
        }
    }
}

fn means(pairs: &[(f64, f64)]) -> (f64, f64) {
    let side = |pick: fn(&(f64, f64)) -> f64| round6(mean(pairs.iter().map(pick)));
    (side(|pair| pair.0), side(|pair| pair.1))
}

/// Everything that changed, the largest change of tokens first, then by id.
fn definitions(sides: Sides<'_>) -> Vec<Definition> {
    let mut found = Vec::new();
    let (old_texts, new_texts) = (Texts::of(sides.old_path), Texts::of(sides.new_path));
    let place = |texts: &Texts, catalog: &Catalog, id: &str| {
        catalog.position(id).and_then(|position| catalog.items().get(position)).and_then(|item| texts.locate(item))
    };
    let mut push = |kind: Kind, old: Option<&Entry>, new: Option<&Entry>| {
        let Some(shown) = new.or(old) else { return };
        if !shown.kind.is_callable() {
            return;
        }
        found.push(Definition {
            kind,
            id: shown.id.clone(),
            old_id: old.map(|entry| entry.id.clone()),
            tokens_before: old.map_or(0, |entry| entry.tokens),
            tokens_after: new.map_or(0, |entry| entry.tokens),
            place: match new {
                Some(new) => place(&new_texts, sides.new, &new.id),
                None => place(&old_texts, sides.old, &shown.id),
            },
            alone: None,
        });
    };
    for namespace in &sides.diff.namespaces {
        namespace.added.iter().for_each(|entry| push(Kind::Added, None, Some(entry)));
        namespace.removed.iter().for_each(|entry| push(Kind::Removed, Some(entry), None));
        namespace.renamed.iter().for_each(|one| push(Kind::Renamed, Some(&one.old), Some(&one.new)));
        namespace.changed.iter().for_each(|one| push(Kind::Changed, Some(&one.old), Some(&one.new)));
    }
    found.sort_by(|left, right| right.growth().abs().cmp(&left.growth().abs()).then_with(|| left.id.cmp(&right.id)));
    found
}

/// The items of the old catalog with one change made.
fn with_change(sides: Sides<'_>, definition: &Definition) -> Vec<SelectableItem> {
    let is_old = |item: &&SelectableItem| definition.old_id.as_deref() != Some(item.id.as_str());
    let mut items: Vec<SelectableItem> = sides.old.items().iter().filter(is_old).cloned().collect();
    if definition.kind != Kind::Removed {
        let new = sides.new.position(&definition.id).and_then(|position| sides.new.items().get(position));
        // An id that is in use already stays: the old catalog has another tool of that id, which this change replaces.
        items.retain(|item| item.id != definition.id);
        items.extend(new.cloned());
    }
    items
}

/// The verdict on pairs of before and after, one a query.
fn decided(pairs: &[(f64, f64)]) -> Decision {
    decide(&[Pair::single(pairs.iter().copied())], MARGIN)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::eval::engine::RouterEngine;
    use contextweaver_core::catalog::diff;
    use contextweaver_core::text::Estimator;
    use contextweaver_routing::RoutingConfig;

    fn tool(server: &str, name: &str, said: &str, argument: &str) -> Value {
        let schema = json!({"type": "object", "properties": {argument: {"type": "string"}}});
        json!({"name": name, "server": server, "description": said, "inputSchema": schema})
    }

    /// What a change does to one query for each of these lists of needed tools.
    fn impact(old: &[Value], new: &[Value], needed: &[&[&str]]) -> Result<Impact> {
        let [old, new] = [old, new].map(|tools| Arc::new(Catalog::from_values(tools, None).unwrap()));
        let diff = diff(&old, &new, Estimator::Cl100kBase);
        let path = Path::new("none.json");
        let sides = Sides { old_path: path, old: &old, new_path: path, new: &new, diff: &diff };
        let asked = |(line, tools): (usize, &&[&str])| {
            let groups = tools.iter().map(|tool| vec![(*tool).to_owned()]).collect();
            Asked { line, id: format!("q{line}"), text: "find the letter".to_owned(), groups }
        };
        let asked: Vec<Asked> = (1..).zip(needed).map(asked).collect();
        let config = RoutingConfig { semantic: 0.0, ..RoutingConfig::default() };
        measure(sides, Path::new("q.jsonl"), &asked, &RouterEngine::new("words", config))
    }

    #[test]
    fn another_tool_that_got_the_name_is_not_the_tool() {
        let mail = tool("mail", "search", "find a letter in the mailbox", "folder");
        let wiki = tool("wiki", "search", "look up an article of an encyclopedia", "title");
        let send = tool("mail", "send", "write the letter", "to");
        let before = [mail.clone(), send.clone()];
        let found = impact(&before, &[wiki.clone(), send.clone()], &[&["search"], &["send"]]).unwrap();
        let lost: Vec<&str> = found.lost.iter().map(|one| one.query.as_str()).collect();
        assert_eq!((lost, found.decision.queries), (vec!["q1"], 1));
        let added = found.definitions.iter().find(|one| one.kind == Kind::Added).and_then(|one| one.alone.as_ref());
        assert_eq!(added.map(|alone| (alone.recall_at_5, alone.moved)), Some((0.0, 0)));
        // With the tool still there, what got its bare name as well costs nothing alone.
        let found = impact(&before, &[mail, send, wiki], &[&["search"]]).unwrap();
        assert_eq!((found.lost.len(), found.recall_at_5_after), (0, 1.0));
        let alone = found.definitions[0].alone.as_ref().unwrap();
        assert_eq!((found.definitions[0].kind, alone.recall_at_5, alone.moved), (Kind::Added, 0.0, 0));
    }

    #[test]
    fn a_tool_stands_for_one_need() {
        let tools = [tool("mail", "search", "find a letter", "x")];
        let error = impact(&tools, &tools, &[&["search", "mail:search"]]).unwrap_err().to_string();
        assert_eq!(error, "q.jsonl:1: query `q1`: `mail:search` is listed twice; one tool can stand for one need only");
    }
}
