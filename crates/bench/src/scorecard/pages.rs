//! The pages of the scorecard: the half page in front, one page or several for each chapter, their pictures, and the block
//! of the front page.
//!
//! Every number on a page comes from a record or a recorded table, and sentences repeat none. What the run that wrote the
//! records did not compute is marked in its tables and named under its chapter.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};

use crate::chapter::{Answer, AnyChapter, Question, Recordings};
use crate::chapters::CHAPTERS;
use crate::eval::files::replace_file;
use crate::eval::matrix::{CONTROL, DEFAULT};
use crate::eval::statistics::FEW;
use crate::eval::tables::Tables;
use crate::eval::workspace::Workspace;
use crate::report::count;
use crate::report::document::{Document, Leaf};
use crate::report::number::{BY_SEED, MISSING};
use crate::report::readme;
use crate::results::{Day, KEPT, Record, Results, STALE, State, worst};

/// One rendered file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The path within the checkout.
    pub path: String,
    /// The whole content.
    pub bytes: Vec<u8>,
}

/// The page that a reader opens first.
const COVER: &str = "SCORECARD.md";

/// The page of definitions.
const DEFINITIONS: &str = "definitions.md";

/// All pages: `SCORECARD.md` first, then the pages of the chapters in their order, each with its pictures behind it, the
/// definitions, and `README.md`.
///
/// A picture for which nothing was recorded is neither made nor shown, and neither is such a page.
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

/// The pages of the scorecard and their pictures, by their names within their folder.
fn scorecard(recordings: &Recordings, tables: &Tables) -> Result<Vec<Page>> {
    let (mut pages, mut contents) = (Vec::new(), String::new());
    for chapter in CHAPTERS {
        let mut document = Document::default();
        chapter.render(recordings, tables, &mut document)?;
        let note = note(chapter, recordings);
        for leaf in document.into_leaves() {
            let name = [chapter.name(), &leaf.name].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
            pages.extend(of_leaf(&format!("{}.md", name.join("-")), leaf, note.as_deref(), &mut contents));
        }
    }
    for leaf in definitions().into_leaves() {
        pages.extend(of_leaf(DEFINITIONS, leaf, None, &mut contents));
    }
    let bytes = cover(recordings, tables, &contents)?.into_bytes();
    pages.insert(0, Page { path: COVER.to_owned(), bytes });
    Ok(pages)
}

/// The page that `leaf` becomes and its pictures; its line goes to the `contents`.
fn of_leaf(path: &str, leaf: Leaf, note: Option<&str>, contents: &mut String) -> Vec<Page> {
    let sections = if leaf.sections.is_empty() { String::new() } else { format!(": {}", leaf.sections.join(", ")) };
    let _ = writeln!(contents, "- [{}]({path}){sections}", leaf.title);
    let mut text = leaf.text;
    if let Some(note) = note {
        let _ = write!(text, "\n{note}\n");
    }
    if path != DEFINITIONS {
        let _ = write!(
            text,
            "\n[Scorecard]({COVER}) · [definitions]({DEFINITIONS}) · rendered by `contextweaver bench render` from \
             `results/` and `timings/`; do not edit it.\n"
        );
    }
    let page = Page { path: path.to_owned(), bytes: text.into_bytes() };
    let figures = leaf.figures.into_iter().map(|one| Page { path: one.path, bytes: one.svg.into_bytes() });
    std::iter::once(page).chain(figures).collect()
}

/// The half page in front: the answers of all chapters, what they rest on, and the contents.
fn cover(recordings: &Recordings, tables: &Tables, contents: &str) -> Result<String> {
    let mut answers: Vec<Answer> = Vec::new();
    for chapter in CHAPTERS {
        let mark = spoken_mark(chapter, recordings);
        let given = chapter.answers(recordings, tables)?.into_iter();
        answers.extend(given.map(|answer| Answer { text: marked(answer.text, mark), ..answer }));
    }
    let mut page = Document::default();
    page.heading("Scorecard");
    for question in Question::ALL {
        let own: Vec<&str> =
            answers.iter().filter(|one| one.question == question).map(|one| one.text.as_str()).collect();
        if own.is_empty() {
            continue;
        }
        page.subheading(question.title());
        // Sentences of one question are one paragraph; a table stands by itself.
        for group in own.chunk_by(|left, right| !left.contains('\n') && !right.contains('\n')) {
            page.block(&group.join(" "));
        }
    }
    page.subheading("Whether to trust it");
    page.block(&trust(recordings, tables));
    page.subheading("Contents");
    page.block(contents);
    Ok(page.text())
}

/// The mark of what a chapter says outside of its pages: that of all records that it speaks of.
fn spoken_mark(chapter: &dyn AnyChapter, recordings: &Recordings) -> &'static str {
    let spoken = recordings.of(chapter.name()).iter().filter(|results| chapter.speaks_of(&results.name));
    worst(spoken.map(Results::worst_mark))
}

/// A sentence with the mark of all records of its chapter; a table has marks of its own.
fn marked(text: String, mark: &str) -> String {
    match text.ends_with('.') && !text.contains('\n') {
        true => format!("{text}{mark}"),
        false => text,
    }
}

/// What the pages rest on: how many records there are, who computed them and when, and what nothing computes again.
fn trust(recordings: &Recordings, tables: &Tables) -> String {
    let records: Vec<(&Results, &Record)> =
        recordings.iter().flat_map(|results| results.records.iter().map(move |record| (results, record))).collect();
    let stale = records.iter().filter(|(results, record)| results.is_stale(record)).count();
    let kept = records.iter().filter(|(results, record)| !results.mark(record).is_empty()).count() - stale;
    let mut text = match records.as_slice() {
        [] => "Nothing is recorded yet; measure it with `contextweaver bench run`.".to_owned(),
        records => {
            let inputs: BTreeSet<&str> =
                records.iter().map(|(_, record)| record.provenance.inputs_sha256.as_str()).collect();
            let days: BTreeSet<&Day> = records.iter().map(|(_, record)| &record.provenance.recorded).collect();
            let span: BTreeSet<String> = days.first().into_iter().chain(days.last()).map(ToString::to_string).collect();
            let span: Vec<String> = span.into_iter().collect();
            format!(
                "{} records of {} inputs, recorded {}: {} were computed by the run that wrote this page, {} were kept \
                 from an earlier one (†), {} are from another version of the engine (‡).",
                count(records.len()),
                count(inputs.len()),
                span.join(" to "),
                count(records.len() - kept - stale),
                count(kept),
                count(stale),
            )
        }
    };
    if !tables.origins.is_empty() {
        text.push_str(" [Times](timings/timings.json), and what other programs give, are recorded and never computed.");
    }
    text.push_str(
        " `contextweaver bench check` computes all others again, names those it cannot, and fails if one differs. What \
         the figures cannot show: [docs/bias.md](../docs/bias.md).",
    );
    text
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
        let mark = spoken_mark(chapter, recordings);
        blocks.extend(chapter.front(recordings)?.into_iter().map(|block| marked(block, mark)));
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

fn definitions() -> Document {
    let mut page = Document::default();
    page.heading("Definitions");
    page.block(
        "An engine ranks all tools of a catalog for every query of a collection; the ranking is compared with the relevant \
         tools, those that the query needs. Everything but recorded tables is exact: the same sources give the same figures \
         on every machine. That is tested on x86-64; nothing has [run on arm64](../docs/install.md#what-was-tried-and-where) \
         yet. `cargo run --release -- bench run` measures everything again and writes these pages, and \
         `cargo run --release -- bench check` fails when the sources no longer give these figures.",
    );
    page.block(
        "Times, and what other programs take, are in recorded tables. They belong to a machine and a day, which are \
         named with them, and are never computed again: `bench check` compares their digests with \
         `timings/timings.json` and names them.",
    );
    page.block(&format!(
        "Figures followed by {} were not computed by the run that wrote their page but recorded by an earlier one; \
         those with {} by another version of the engine. At the end of each page they are named with their version and \
         day, and `bench check` names every record that it did not compute.",
        KEPT.trim(),
        STALE.trim(),
    ));
    page.block(&format!(
        "A verdict is `better` or `worse` where a sign-flip test finds a difference at the 5 % level and the interval \
         excludes zero; where fewer than {FEW} queries differ, the test, which is exact there, decides alone. Both are \
         made by query and by the first tool that a query needs, and the more cautious result counts. Where verdicts \
         on several collections appear side by side, Holm's correction for their number is applied. A verdict that \
         another seed of the bootstrap would change is followed by {}.",
        BY_SEED.trim(),
    ));
    page.block(&format!(
        "In every table `{DEFAULT}` is the engine that users get and `{CONTROL}` is the control, flat BM25. A figure \
         in brackets is a 95 % interval, `{MISSING}` means not run or not applicable, and `failed` is explained under \
         [Failures](routing-loss.md#failures).",
    ));
    page.subheading("Measures");
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
id; or five tools have higher scores. **rescued**: the tool shares no word with the query and was found anyway.
- **AUROC**: the probability that a query that a tool answers has higher confidence than one that no tool \
answers.
- **AURC**: the area under the curve of risk against coverage when the most confident queries are answered first.
- **unrelated, sibling, near-duplicate, keyword-stuffed, mixed**: added tools of other fields; of the same namespaces; \
variants of relevant tools with another scope or purpose; descriptions that repeat the words of relevant tools without \
doing their job; the four in equal shares.
- **all definitions**: name, description and argument schema of every tool, one line of compact JSON each.
- **saved**: the share of the tokens of all definitions that the cards, ten at most, do not need.",
    );
    page
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::files::committed;
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

    fn markdown(pages: &[Page]) -> impl Iterator<Item = &Page> {
        pages.iter().filter(|page| page.path.ends_with(".md"))
    }

    #[test]
    fn every_picture_is_shown_once() {
        let pages = pages(sample::results(), sample::timings());
        let shown: String = markdown(&pages).map(text).collect();
        let pictures: Vec<&Page> = pages.iter().filter(|page| page.path.ends_with(".svg")).collect();
        assert_eq!(pictures.len(), 8);
        for picture in &pictures {
            assert_eq!(shown.matches(&format!("]({})", picture.path)).count(), 1, "{}", picture.path);
        }
        assert_eq!(shown.matches("![").count(), pictures.len());
    }

    /// The anchor that readers of Markdown make of a heading.
    fn anchor(heading: &str) -> String {
        let lower = heading.to_lowercase();
        let kept = lower.chars().filter(|one| one.is_alphanumeric() || matches!(one, ' ' | '-' | '_'));
        kept.collect::<String>().replace(' ', "-")
    }

    #[test]
    fn what_it_costs_and_saves_has_a_control_beside_it() {
        let workspace = Workspace::find(Some(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")), None).unwrap();
        let recordings = committed(&workspace, &workspace.matrix().unwrap()).unwrap();
        let tables = Tables::read(&workspace).unwrap();
        let answers = CHAPTERS.iter().flat_map(|chapter| chapter.answers(&recordings, &tables).unwrap());
        let priced = answers.filter(|one| matches!(one.question, Question::Cost | Question::Saving));
        let priced: Vec<String> = priced.map(|one| one.text).collect();
        assert!(priced.len() >= 5, "{priced:?}");
        for text in priced {
            // Flat BM25, a relay of bytes, a list without schemas, and engines of others.
            let controls = ["flat BM25", "a relay of bytes", "the control", "[others]("];
            assert!(controls.iter().any(|control| text.contains(control)), "{text}");
        }
    }

    #[test]
    fn links_between_pages_lead_somewhere_and_pages_are_short() {
        let workspace = Workspace::find(Some(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")), None).unwrap();
        let recordings = committed(&workspace, &workspace.matrix().unwrap()).unwrap();
        let pages = scorecard(&recordings, &Tables::read(&workspace).unwrap()).unwrap();
        let mut places = BTreeSet::new();
        for page in &pages {
            places.insert(page.path.clone());
            let headings = text(page).lines().filter_map(|line| line.trim_start_matches('#').strip_prefix(' '));
            places.extend(headings.map(|heading| format!("{}#{}", page.path, anchor(heading))));
        }
        let mut followed = 0;
        for page in markdown(&pages) {
            let lines = text(page).lines().count();
            assert!(lines < 300, "{}: {lines} lines", page.path);
            for link in text(page).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                let link = if link.starts_with('#') { format!("{}{link}", page.path) } else { link.to_owned() };
                // What is not a page of these is a file in or above their folder.
                let is_page = link.contains(".md") && !link.starts_with("../");
                let file = workspace.path("scorecard").join(link.split('#').next().unwrap_or_default());
                assert!(if is_page { places.contains(&link) } else { file.exists() }, "{}: {link}", page.path);
                followed += 1;
            }
        }
        assert!(followed > 50, "links are no longer seen");
        let half = text(&pages[0]).split("## Contents").next().unwrap();
        let prose = half.lines().filter(|line| !line.starts_with('|')).flat_map(str::split_whitespace).count();
        assert!(prose < 720 && half.lines().count() < 66, "half a page beside three tables, not more: {prose} words");
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
            + &crate::chapter::Chapter::front(&chapter, &results).join("\n")
            + &format!("{:?}", crate::chapter::Chapter::answers(&chapter, &results, &tables));
        assert!(shown.split(|character: char| !character.is_alphanumeric()).all(|word| word != "NaN" && word != "inf"));
    }

    #[test]
    fn without_records_the_pages_say_so() {
        let pages = pages(Vec::new(), Vec::new());
        assert!(pages.iter().all(|page| page.path.ends_with(".md")));
        assert!(text(&pages[0]).contains("Nothing is recorded yet; measure it with `contextweaver bench run`."));
        let all: String = pages.iter().map(text).collect();
        assert!(all.contains("Nothing is recorded for this section") && all.contains("No timings are recorded"));
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
        let pages = scorecard(&all, &Tables::default()).unwrap();
        assert!(text(&pages[0]).contains("1 were kept from an earlier one (†)"), "{}", text(&pages[0]));
        let page = pages.iter().find(|page| page.path == "routing.md").unwrap();
        let note = "this page: default 1 († of version 1, recorded 2026-01-31).";
        assert!(text(page).contains(note), "{}", text(page));
        results[0].version = "2".to_owned();
        let block = front(&recordings(results)).unwrap();
        assert!(block.contains(".880 [.81, .95] ‡") && block.contains("failed ‡"), "{block}");
    }

    #[test]
    fn every_measure_of_the_overview_is_defined() {
        let page = definitions();
        for kind in ["recall", "hit", "P", "RR", "nDCG", "full", "strict", "interval"] {
            assert!(page.text().contains(&format!("- **{kind}")), "{kind}");
        }
    }
}
