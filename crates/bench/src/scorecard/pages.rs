//! The pages of the scorecard: `SCORECARD.md` with its pictures, and the block of the front page.
//!
//! Every number on a page comes from a record or a recorded table, and sentences repeat none. What the run that wrote the
//! records did not compute is marked in its tables and named under its chapter.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};

use crate::chapter::{AnyChapter, Recordings};
use crate::chapters::CHAPTERS;
use crate::eval::files::replace_file;
use crate::eval::matrix::{CONTROL, DEFAULT};
use crate::eval::statistics::FEW;
use crate::eval::tables::Tables;
use crate::eval::workspace::Workspace;
use crate::report::count;
use crate::report::document::Document;
use crate::report::number::{BY_SEED, MISSING};
use crate::report::readme;
use crate::results::{KEPT, Results, STALE, State, worst};

/// One rendered file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The path within the checkout.
    pub path: String,
    /// The whole content.
    pub bytes: Vec<u8>,
}

/// All pages: `SCORECARD.md` first, then its pictures in the order in which it shows them, then `README.md`.
///
/// A picture for which nothing was recorded is neither made nor shown.
///
/// # Errors
/// A front page without its markers.
pub fn of(recordings: &Recordings, tables: &Tables, workspace: &Workspace) -> Result<Vec<Page>> {
    let mut pages = scorecard(recordings, tables)?;
    pages.iter_mut().for_each(|page| page.path.insert_str(0, readme::FOLDER));
    let path = workspace.path("README.md");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let spliced = readme::splice(&text, &front(recordings)?).with_context(|| path.display().to_string())?;
    pages.push(Page { path: "README.md".to_owned(), bytes: spliced.into_bytes() });
    Ok(pages)
}

/// Writes pages into the checkout.
///
/// # Errors
/// What the file system says.
pub fn write(pages: &[Page], workspace: &Workspace) -> Result<()> {
    for page in pages {
        replace_file(&workspace.path(&page.path), &page.bytes)?;
    }
    Ok(())
}

/// `SCORECARD.md` and its pictures, by their names within their folder.
fn scorecard(recordings: &Recordings, tables: &Tables) -> Result<Vec<Page>> {
    let mut page = Document::default();
    opening(&mut page);
    for chapter in CHAPTERS {
        chapter.render(recordings, tables, &mut page)?;
        if let Some(note) = note(chapter, recordings) {
            page.block(&note);
        }
    }
    definitions(&mut page);
    let (text, figures) = page.into_parts();
    let mut pages = vec![Page { path: "SCORECARD.md".to_owned(), bytes: text.into_bytes() }];
    pages.extend(figures.into_iter().map(|figure| Page { path: figure.path, bytes: figure.svg.into_bytes() }));
    Ok(pages)
}

/// What of a chapter the run did not compute, by results file, version and day; `None` where it computed everything.
fn note(chapter: &dyn AnyChapter, recordings: &Recordings) -> Option<String> {
    let mut groups: BTreeMap<(&str, &str, String), usize> = BTreeMap::new();
    for results in recordings.of(chapter.name()) {
        for record in results.records.iter().filter(|record| !results.mark(record).is_empty()) {
            let provenance = &record.provenance;
            let sign = if results.is_stale(record) { STALE } else { KEPT }.trim();
            let made = format!("{sign} of version {}, recorded {}", provenance.version, provenance.recorded);
            *groups.entry((sign, &results.name, made)).or_default() += 1;
        }
    }
    if groups.is_empty() {
        return None;
    }
    let named = groups.iter().map(|((_, name, made), records)| format!("{name} {} ({made})", count(*records)));
    let named: Vec<String> = named.collect();
    Some(format!("Not computed by the run that wrote this page: {}.", named.join(", ")))
}

/// The block between the markers of the front page.
fn front(recordings: &Recordings) -> Result<String> {
    let mut blocks = Vec::new();
    for chapter in CHAPTERS {
        let own = recordings.of(chapter.name());
        let mark = worst(own.iter().map(Results::worst_mark));
        // A table has marks of its own; a sentence is about all records of its chapter.
        let marked = |block: String| match block.ends_with('.') && !block.contains('\n') {
            true => format!("{block}{mark}"),
            false => block,
        };
        blocks.extend(chapter.front(recordings)?.into_iter().map(marked));
    }
    let kept: Vec<String> = recordings.iter().filter_map(kept).collect();
    if !kept.is_empty() {
        blocks.push(format!(
            "Marked {} or {}: recorded by an earlier run and not computed by the one that wrote this page, {} of another \
             version of the engine: {}.",
            KEPT.trim(),
            STALE.trim(),
            STALE.trim(),
            kept.join(", ")
        ));
    }
    Ok(blocks.join("\n\n"))
}

fn kept(results: &Results) -> Option<String> {
    let is_kept = |record: &&crate::results::Record| record.provenance.state == State::Kept || results.is_stale(record);
    match results.records.iter().filter(is_kept).count() {
        0 => None,
        records => Some(format!("{} {} of {}", results.name, count(records), count(results.records.len()))),
    }
}

fn opening(page: &mut Document) {
    page.block("# Scorecard");
    page.block(
        "How well each routing engine finds the tools that a query needs, what the prompt costs then, and how long it \
         takes. An engine ranks all tools of a catalog for every query of a collection; the ranking is compared with \
         the relevant tools, those that the query needs. Everything but recorded tables is exact: the same sources give \
         the same figures on every machine.",
    );
    page.block(
        "`cargo run --release -- bench run` measures everything again and writes this page, and \
         `cargo run --release -- bench check` fails when the sources no longer give these figures. This page is \
         rendered from `results/*.json` and `timings/*.csv`; do not edit it.",
    );
    page.block(
        "Times, and what other programs take, stand in recorded tables. They belong to a machine and a day, which are named \
         with them, and nothing computes them again: `bench check` compares their digests with `timings/timings.json` and \
         names them.",
    );
    page.block(&format!(
        "Figures with {} behind them were not computed by the run that wrote this page but recorded by an earlier one; those \
         with {} by another version of the engine. Under each chapter they are named with their version and day, and \
         `bench check` names every record that it did not compute.",
        KEPT.trim(),
        STALE.trim(),
    ));
    page.block(&format!(
        "A verdict follows from the interval of the difference, or, where fewer than {FEW} queries differ, from the exact \
         sign-flip test at the 5 % level. One that another seed of the bootstrap would change has {} behind it.",
        BY_SEED.trim(),
    ));
    page.block(&format!(
        "In every table `{DEFAULT}` is the engine that users get and `{CONTROL}` is the control, flat BM25. A figure \
         in brackets is a 95 % interval, `{MISSING}` means not run or not applicable, `failed` is explained under \
         [Failures](#failures), and the measures are defined [at the end](#definitions).",
    ));
}

fn definitions(page: &mut Document) {
    page.heading("Definitions");
    page.block(
        "Every measure is a mean over the queries that a tool answers; a query for which an engine returns nothing \
         counts as zero.

- **recall@k**: the share of the relevant tools that are among the first k.
- **hit@1**: one when the first tool is relevant, else zero.
- **P@k**, precision: the share of the first k places that hold a relevant tool; the divisor is always k.
- **RR**: one divided by the place of the first relevant tool.
- **nDCG@k**: the sum over the relevant tools among the first k of 1 / log2(place + 1), divided by the largest such sum \
that any ranking reaches.
- **full@k**: one when all relevant tools are among the first k, else zero.
- **strict**: only the tool that the collection names counts. Elsewhere a declared equivalent counts as the tool it \
stands for.
- **interval**: the 95 % percentile interval of a bootstrap over queries with a fixed seed.
- **difference**: engine minus control, query by query; its interval resamples the pairs.
- **ties**: the measure over all orders of equal scores. Rankings themselves break ties by id.
- **vocabulary, pruning, tie, ranking**: a relevant tool missing from the first five shares no word with the query; or \
the exhaustive ranking has it there and the navigation left it out; or it has the score of the fifth tool and lost by \
id; or five tools have higher scores. **rescued**: the tool shares no word with the query and was found all the same.
- **AUROC**: the probability that a query which a tool answers has more confidence than one which none does.
- **AURC**: the area under the curve of risk against coverage when the most confident queries are answered first.
- **unrelated, sibling, near-duplicate, keyword-stuffed, mixed**: added tools of other fields; of the same namespaces; \
variants of relevant tools with another scope or purpose; descriptions that repeat the words of relevant tools without \
doing their job; the four in equal shares.
- **all definitions**: name, description and argument schema of every tool, one line of compact JSON each.
- **saved**: the share of the tokens of all definitions that the cards, ten at most, do not need.",
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chapters::routing::sample;
    use crate::eval::record::{Estimate, Facts, Outcome};
    use crate::eval::timing::TimingRow;

    fn recordings(results: Vec<Results<Box<Facts>>>) -> Recordings {
        let erased = results.into_iter().map(|one| one.erased().unwrap()).collect();
        Recordings([("routing", erased)].into())
    }

    fn pages(results: Vec<Results<Box<Facts>>>, timings: Vec<TimingRow>) -> Vec<Page> {
        scorecard(&recordings(results), &Tables { timings, ..Tables::default() }).unwrap()
    }

    fn text(page: &Page) -> &str {
        std::str::from_utf8(&page.bytes).unwrap()
    }

    #[test]
    fn pages_are_the_same_bytes_for_every_order_of_the_input() {
        let (mut results, mut timings) = (sample::results(), sample::timings());
        let first = pages(results.clone(), timings.clone());
        results.rotate_left(2);
        timings.reverse();
        assert!(pages(results.clone(), timings.clone()) == first);
        assert!(pages(results, timings) == first);
    }

    #[test]
    fn the_scorecard_shows_every_picture_once() {
        let pages = pages(sample::results(), sample::timings());
        let (scorecard, pictures) = pages.split_first().unwrap();
        assert_eq!(pictures.len(), 7);
        for picture in pictures {
            assert_eq!(text(scorecard).matches(&format!("]({})", picture.path)).count(), 1, "{}", picture.path);
        }
        assert_eq!(text(scorecard).matches("![").count(), pictures.len());
    }

    #[test]
    fn no_page_shows_what_is_not_a_number() {
        // JSON has no such numbers, so the pages of the chapter are looked at before they are records.
        let mut results = sample::results();
        for record in results.iter_mut().flat_map(|engine| &mut engine.records) {
            let Outcome::Measured(facts) = &mut record.outcome else { continue };
            facts
                .measures
                .insert("recall@5".to_owned(), Estimate { mean: f64::NAN, low: f64::NAN, high: f64::INFINITY });
            facts.loss.ranking = f64::NEG_INFINITY;
            facts.ties.best = f64::NAN;
            facts.by_namespace.values_mut().for_each(|slice| slice.recall_at_5 = f64::NAN);
            facts.versus_control.iter_mut().for_each(|paired| paired.difference.low = f64::NAN);
            facts.tokens.iter_mut().for_each(|tokens| (tokens.cards_mean, tokens.reduction) = (f64::NAN, f64::NAN));
            facts.work.postings_per_query = f64::INFINITY;
        }
        let mut timings = sample::timings();
        timings.iter_mut().for_each(|row| (row.median, row.p99) = (f64::NAN, f64::INFINITY));
        let mut page = Document::default();
        let chapter = crate::chapters::routing::Routing;
        let tables = Tables { timings, ..Tables::default() };
        crate::chapter::Chapter::render(&chapter, &results, &tables, &mut page);
        let (text, figures) = page.into_parts();
        let shown = text
            + &figures.iter().map(|figure| figure.svg.as_str()).collect::<String>()
            + &crate::chapter::Chapter::terminal(&chapter, &results)
            + &crate::chapter::Chapter::front(&chapter, &results).join("\n");
        assert!(shown.split(|character: char| !character.is_alphanumeric()).all(|word| word != "NaN" && word != "inf"));
    }

    #[test]
    fn without_records_there_is_one_page_that_says_so() {
        let pages = pages(Vec::new(), Vec::new());
        assert_eq!(pages.len(), 1);
        assert!(text(&pages[0]).contains("Nothing is recorded"));
        assert!(text(&pages[0]).contains("No timings are recorded"));
    }

    #[test]
    fn what_was_kept_is_marked_and_named_on_both_pages() {
        let mut results = sample::few_results();
        assert!(!front(&recordings(results.clone())).unwrap().contains('†'));
        results[0].records[0].provenance.state = State::Kept;
        let all = recordings(results.clone());
        let block = front(&all).unwrap();
        assert!(block.contains(".880 [.81, .95] †"), "{block}");
        assert!(block.ends_with(": default 1 of 2."), "{block}");
        let page = scorecard(&all, &Tables::default()).unwrap();
        assert!(
            text(&page[0]).contains("this page: default 1 († of version 1, recorded 2026-01-31)."),
            "{}",
            text(&page[0])
        );
        results[0].version = "2".to_owned();
        let block = front(&recordings(results)).unwrap();
        assert!(block.contains(".880 [.81, .95] ‡") && block.contains("failed ‡"), "{block}");
    }

    #[test]
    fn every_measure_of_the_overview_is_defined() {
        let mut page = Document::default();
        definitions(&mut page);
        for kind in ["recall", "hit", "P", "RR", "nDCG", "full", "strict", "interval"] {
            assert!(page.text().contains(&format!("- **{kind}")), "{kind}");
        }
    }
}
