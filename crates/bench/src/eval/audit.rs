//! How good a collection is as a measuring instrument.
//!
//! An audit counts what the queries cover, how far they repeat the words of the tools, which labels look doubtful,
//! and how small a difference between two engines the set can show. It looks at texts and labels only and runs no
//! engine: a label is never judged by what an engine returns. What it lists is for a person to decide.

use std::collections::BTreeMap;

use serde::Serialize;

use contextweaver_core::catalog::{SelectableItem, near_duplicates};
use contextweaver_core::text::{Analyzer, TermSet};

use super::collection::{Collection, Counts, Query};
use super::statistics::{mean, minimum_detectable_difference, percentile, round6};

/// Two queries at least this alike (Jaccard of their terms) count as near-duplicates.
pub const SIMILAR_QUERIES: f64 = 0.8;

/// Two tools at least this alike (Jaccard of the terms of name and description) count as neighbours.
pub const SIMILAR_TOOLS: f64 = 0.6;

/// The share of queries on which two engines are assumed to disagree, for the power of the set.
pub const DISCORDANT_SHARE: f64 = 0.2;

/// Everything that an audit finds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Audit {
    /// The collection.
    pub name: String,
    /// What it holds.
    pub counts: Counts,
    /// Language code to queries; `unstated` where the query file names none.
    pub by_language: BTreeMap<String, usize>,
    /// Register to queries; `unstated` where the query file names none.
    pub by_register: BTreeMap<String, usize>,
    /// Number of tools that a query needs to queries; 0 for those that no tool answers.
    pub by_tools_needed: BTreeMap<usize, usize>,
    /// How the queries are spread over the tools.
    pub coverage: Coverage,
    /// Share of a query's distinct terms that occur in the name or the description of any tool it names as
    /// relevant, over the answerable queries that have terms.
    pub overlap: Overlap,
    /// Queries with (nearly) the same terms, in file order.
    pub near_duplicates: Vec<SimilarQueries>,
    /// Labels that a person should look at, in file order.
    pub ambiguous: Vec<Ambiguity>,
    /// What differences the set can show.
    pub power: Power,
}

/// How the queries are spread over the tools. Only the named tool counts as needed, not its equivalents.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coverage {
    /// Tools that no query needs, in id order.
    pub uncovered: Vec<String>,
    /// Queries per tool over all tools.
    pub queries_per_tool: Spread,
    /// Tool to the number of queries that need it.
    pub by_tool: BTreeMap<String, usize>,
}

/// A mean with quartiles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// How many values there are.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// A quarter of the values is at most this.
    pub q1: f64,
    /// Half of the values are at most this.
    pub median: f64,
    /// Three quarters of the values are at most this.
    pub q3: f64,
}

/// Lexical overlap of queries with their tools.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overlap {
    /// Over all answerable queries.
    pub all: Spread,
    /// By register.
    pub by_register: BTreeMap<String, Spread>,
}

/// Two queries with (nearly) the same terms.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimilarQueries {
    /// Id of the earlier one.
    pub first: String,
    /// Id of the later one.
    pub second: String,
    /// Jaccard similarity of their terms.
    pub similarity: f64,
}

/// A label that looks doubtful.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Ambiguity {
    /// A tool much like a relevant one is not listed as an answer.
    UnlistedNeighbour {
        /// The query.
        query: String,
        /// The relevant tool.
        tool: String,
        /// The tool that is much like it.
        neighbour: String,
        /// Jaccard similarity of their terms.
        similarity: f64,
    },
    /// Two queries with (nearly) the same terms have different labels.
    DifferentLabels {
        /// The queries.
        queries: SimilarQueries,
    },
}

/// What differences between two engines the set can show.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Power {
    /// Answerable queries.
    pub queries: usize,
    /// [`DISCORDANT_SHARE`].
    pub discordant_share: f64,
    /// The smallest difference in recall that a two-sided paired test at 5 % finds with 80 % power
    /// ([`minimum_detectable_difference`] with σ = √`discordant_share`); `None` without answerable queries.
    pub detectable_difference: Option<f64>,
}

/// Audits a collection.
#[must_use]
pub fn audit(collection: &Collection) -> Audit {
    let analyzer = Analyzer::default();
    let near = similar_queries(collection, &analyzer);
    let mut ambiguous = unlisted_neighbours(collection, &analyzer);
    ambiguous.extend(
        near.iter().filter(|(first, second, _)| first.groups != second.groups).map(|(first, second, similarity)| {
            Ambiguity::DifferentLabels { queries: pair(first, second, *similarity) }
        }),
    );
    let unstated = |text: &Option<String>| text.clone().unwrap_or_else(|| "unstated".to_owned());
    let answerable = collection.counts().answerable;
    Audit {
        name: collection.name.clone(),
        counts: collection.counts(),
        by_language: tally(collection.queries.iter().map(|query| unstated(&query.lang))),
        by_register: tally(collection.queries.iter().map(|query| unstated(&query.register))),
        by_tools_needed: tally(collection.queries.iter().map(|query| query.groups.len())),
        coverage: coverage(collection),
        overlap: overlap(collection, &analyzer, unstated),
        near_duplicates: near.iter().map(|(first, second, similarity)| pair(first, second, *similarity)).collect(),
        ambiguous,
        power: Power {
            queries: answerable,
            discordant_share: DISCORDANT_SHARE,
            detectable_difference: minimum_detectable_difference(answerable, DISCORDANT_SHARE.sqrt()).map(round6),
        },
    }
}

fn tally<K: Ord>(keys: impl Iterator<Item = K>) -> BTreeMap<K, usize> {
    let mut counts = BTreeMap::new();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    counts
}

fn coverage(collection: &Collection) -> Coverage {
    let mut needed = vec![0; collection.catalog.len()];
    for item in collection.queries.iter().flat_map(|query| query.groups.iter().filter_map(|group| group.first())) {
        needed[*item as usize] += 1;
    }
    let named = || (0..).zip(&needed).map(|(item, count)| (collection.tool_handle(item).to_owned(), *count));
    Coverage {
        uncovered: named().filter(|(_, count)| *count == 0).map(|(tool, _)| tool).collect(),
        queries_per_tool: spread(needed.iter().map(|count| *count as f64).collect()),
        by_tool: named().collect(),
    }
}

fn spread(mut values: Vec<f64>) -> Spread {
    values.sort_unstable_by(f64::total_cmp);
    let at = |percent| round6(percentile(&values, percent));
    Spread {
        count: values.len(),
        mean: round6(mean(values.iter().copied())),
        q1: at(25.0),
        median: at(50.0),
        q3: at(75.0),
    }
}

fn overlap(collection: &Collection, analyzer: &Analyzer, unstated: impl Fn(&Option<String>) -> String) -> Overlap {
    let items = collection.catalog.items();
    let mut all = Vec::new();
    let mut by_register: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for query in collection.queries.iter().filter(|query| !query.groups.is_empty()) {
        let terms = TermSet::of(analyzer, &query.text);
        if terms.is_empty() {
            continue;
        }
        let named = query.groups.iter().filter_map(|group| group.first());
        let texts: Vec<String> = named.map(|item| words(&items[*item as usize])).collect();
        let share = terms.intersection(&TermSet::of(analyzer, &texts.join("\n"))) as f64 / terms.len() as f64;
        all.push(share);
        by_register.entry(unstated(&query.register)).or_default().push(share);
    }
    let by_register = by_register.into_iter().map(|(register, shares)| (register, spread(shares))).collect();
    Overlap { all: spread(all), by_register }
}

/// The words that a tool is compared by.
fn words(item: &SelectableItem) -> String {
    format!("{}\n{}", item.name, item.description)
}

fn similar_queries<'c>(collection: &'c Collection, analyzer: &Analyzer) -> Vec<(&'c Query, &'c Query, f64)> {
    let sets: Vec<TermSet> = collection.queries.iter().map(|query| TermSet::of(analyzer, &query.text)).collect();
    near_duplicates(&sets, SIMILAR_QUERIES)
        .into_iter()
        .map(|found| (&collection.queries[found.first], &collection.queries[found.second], found.similarity))
        .collect()
}

fn pair(first: &Query, second: &Query, similarity: f64) -> SimilarQueries {
    SimilarQueries { first: first.id.clone(), second: second.id.clone(), similarity: round6(similarity) }
}

fn unlisted_neighbours(collection: &Collection, analyzer: &Analyzer) -> Vec<Ambiguity> {
    let sets: Vec<TermSet> =
        collection.catalog.items().iter().map(|item| TermSet::of(analyzer, &words(item))).collect();
    let mut neighbours: BTreeMap<usize, Vec<(usize, f64)>> = BTreeMap::new();
    for found in near_duplicates(&sets, SIMILAR_TOOLS) {
        neighbours.entry(found.first).or_default().push((found.second, found.similarity));
        neighbours.entry(found.second).or_default().push((found.first, found.similarity));
    }
    let handle = |item: usize| collection.tool_handle(item as u32).to_owned();
    let mut ambiguous = Vec::new();
    for query in &collection.queries {
        let listed = |item: usize| query.groups.iter().flatten().any(|listed| *listed as usize == item);
        for tool in query.groups.iter().flatten().map(|item| *item as usize) {
            for (neighbour, similarity) in neighbours.get(&tool).into_iter().flatten() {
                if !listed(*neighbour) {
                    ambiguous.push(Ambiguity::UnlistedNeighbour {
                        query: query.id.clone(),
                        tool: handle(tool),
                        neighbour: handle(*neighbour),
                        similarity: round6(*similarity),
                    });
                }
            }
        }
    }
    ambiguous
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::collection::Source;
    use super::super::record::Origin;
    use super::*;

    #[test]
    fn an_audit_counts_and_finds() {
        let tools = r#"[
            {"name":"open_ticket","description":"Open a support ticket for a customer","server":"a"},
            {"name":"open_tickets","description":"Open support tickets for customers","server":"b"},
            {"name":"send_mail","description":"Send a mail","server":"b"}
        ]"#;
        let lines = concat!(
            r#"{"id":"1","query":"open a ticket about the printer","relevant":["open_ticket"],"register":"plain","lang":"en"}"#,
            "\n",
            r#"{"id":"2","query":"Open the ticket about a printer!","relevant":[],"register":"plain","lang":"en"}"#,
            "\n",
            r#"{"id":"3","query":"open ticket, then mail Bob","relevant":["open_ticket","send_mail"],"equivalent":{"open_ticket":["open_tickets"]}}"#,
            "\n",
        );
        let source = |name: &'static str, text: &'static str| Source { path: Path::new(name), bytes: text.as_bytes() };
        let collection =
            Collection::from_bytes("c", Origin::Public, source("c.json", tools), source("q.jsonl", lines)).unwrap();
        insta::assert_json_snapshot!(audit(&collection), @r#"
        {
          "name": "c",
          "counts": {
            "tools": 3,
            "namespaces": 2,
            "queries": 3,
            "answerable": 2,
            "multi_tool": 1,
            "unanswerable": 1
          },
          "by_language": {
            "en": 2,
            "unstated": 1
          },
          "by_register": {
            "plain": 2,
            "unstated": 1
          },
          "by_tools_needed": {
            "0": 1,
            "1": 1,
            "2": 1
          },
          "coverage": {
            "uncovered": [
              "open_tickets"
            ],
            "queries_per_tool": {
              "count": 3,
              "mean": 1.0,
              "q1": 0.5,
              "median": 1.0,
              "q3": 1.5
            },
            "by_tool": {
              "open_ticket": 2,
              "open_tickets": 0,
              "send_mail": 1
            }
          },
          "overlap": {
            "all": {
              "count": 2,
              "mean": 0.708333,
              "q1": 0.6875,
              "median": 0.708333,
              "q3": 0.729167
            },
            "by_register": {
              "plain": {
                "count": 1,
                "mean": 0.666667,
                "q1": 0.666667,
                "median": 0.666667,
                "q3": 0.666667
              },
              "unstated": {
                "count": 1,
                "mean": 0.75,
                "q1": 0.75,
                "median": 0.75,
                "q3": 0.75
              }
            }
          },
          "near_duplicates": [
            {
              "first": "1",
              "second": "2",
              "similarity": 1.0
            }
          ],
          "ambiguous": [
            {
              "reason": "unlisted_neighbour",
              "query": "1",
              "tool": "open_ticket",
              "neighbour": "open_tickets",
              "similarity": 1.0
            },
            {
              "reason": "different_labels",
              "queries": {
                "first": "1",
                "second": "2",
                "similarity": 1.0
              }
            }
          ],
          "power": {
            "queries": 2,
            "discordant_share": 0.2,
            "detectable_difference": 0.885939
          }
        }
        "#);
    }

    #[test]
    fn the_embedded_collections_are_in_order() {
        let gold = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gold");
        for name in ["workbench", "household", "library"] {
            let found = audit(&Collection::load(&gold.join(name), Origin::Embedded).unwrap());
            assert_eq!(found.coverage.uncovered, [""; 0], "{name}");
            assert_eq!(found.near_duplicates, [], "{name}");
            // Creating and deleting a local branch are described in nearly the same words and are opposites.
            let opposites = ["git_create_branch", "git_delete_branch"];
            let is_known = |label: &Ambiguity| match label {
                Ambiguity::UnlistedNeighbour { tool, neighbour, .. } => {
                    opposites.contains(&tool.as_str()) && opposites.contains(&neighbour.as_str())
                }
                Ambiguity::DifferentLabels { .. } => false,
            };
            assert!(found.ambiguous.iter().all(is_known), "{name}: {:?}", found.ambiguous);
            assert!(found.overlap.all.mean < 0.35, "{name}: {}", found.overlap.all.mean);
        }
    }
}
