//! The engines on the page: one function per section, in the order of the page.
//!
//! Sections choose and arrange; every number comes from a record, and sentences repeat none, so that a new run can
//! never contradict the text around its tables.

use std::collections::BTreeMap;

use super::figures;
use super::scores::{BEAM, BEST, CONTROL, Case, DEFAULT, LEXICAL, RECALL, Scores, grade_name, recall};
use crate::eval::abstention::told_apart;
use crate::eval::record::{Facts, Grade, Origin, Paired, Slice};
use crate::eval::tables::Tables;
use crate::report::document::Document;
use crate::report::number::{MISSING, conclusion, count, difference, estimate, fixed, percent, share, signed};
use crate::report::readme::FOLDER;
use crate::report::recording::{self, Recording};
use crate::report::table::Table;
use crate::results::compare::keyed_lines;

/// Measures of the overview of the default engine, as they are named in the records.
const MEASURES: [&str; 9] =
    ["recall@1", "recall@3", "recall@5", "recall@10", "hit@1", "P@5", "RR", "nDCG@10", "full@5"];

/// The chapter: collections as they are, grown, and what all of that costs.
pub(super) fn chapter(page: &mut Document, scores: &Scores<'_>, tables: &Tables) {
    let recording = Recording::newest(&tables.timings);
    page.heading("Engines on each collection");
    let front = figures::front(scores, recording.as_ref());
    let is_drawn = front.is_some();
    page.figure(front);
    if is_drawn {
        page.block(
            "Third-party engines are not among these: which ten tools they show is not recorded, only the ranks of the \
             needed ones, so the tokens of their cards are unknown, and their times are those of an answer through a \
             pipe. [Recall against time](rivals.md#what-they-cost) shows them beside ours through the same interface.",
        );
    }
    page.figure(figures::versus_control(scores));
    embedded_collections(page, scores);
    public_collections(page, scores);
    page.page("growth");
    page.heading("Engines as the catalog grows");
    for collection in scores.grown_collections() {
        growth(page, scores, collection);
        context_rot(page, scores, collection);
    }
    copies(page, scores);
    page.page("loss");
    page.heading("Where engines fail");
    loss(page, scores);
    ties(page, scores);
    failures(page, scores);
    page.page("queries");
    page.heading("Engines by kind of query");
    namespaces(page, scores);
    registers(page, scores);
    abstention(page, scores);
    page.page("cost");
    page.heading("What engines cost");
    tokens(page, scores);
    work(page, scores);
    latency(page, scores, recording.as_ref());
    page.page("engines");
    engines(page, scores);
}

fn embedded_collections(page: &mut Document, scores: &Scores<'_>) {
    page.heading("Embedded collections");
    page.block("Written for this project and part of the repository, so that a checkout alone reproduces them.");
    collections(page, scores, &scores.cases(|case| case.is_as_it_is(Origin::Embedded)));
}

fn public_collections(page: &mut Document, scores: &Scores<'_>) {
    page.heading("Public collections");
    page.block(
        "Written by others and not part of the repository: where their folder is absent, their rows are kept from an \
         earlier run and marked. A catalog grown by copies has its own section.",
    );
    collections(page, scores, &scores.cases(|case| case.is_as_it_is(Origin::Public)));
}

/// The headline figures of these cases: the measures by engine, the differences from the control, the other measures.
fn collections(page: &mut Document, scores: &Scores<'_>, cases: &[Case<'_>]) {
    let engines = scores.engines();
    page.subheading(RECALL);
    let table = by_engine(scores, cases, &engines, |facts| recall(facts).map(estimate));
    page.table("The mean share of the relevant tools that are among the first five, with its interval.", &table);

    page.subheading("nDCG@10");
    let table = by_engine(scores, cases, &engines, |facts| facts.measures.get("nDCG@10").map(|one| share(one.mean)));
    page.table("How high the relevant tools rank among the first ten; one means all of them at the top.", &table);

    page.subheading("Difference from the control");
    page.table(
        &format!(
            "{RECALL} of the default engine minus that of the control on the same queries. The interval is that of the queries, \
             or, where it is wider, of the tools that they need. `better` and `worse` are what a sign-flip test and the interval \
             show, corrected for the number of collections (Holm)."
        ),
        &against_control(scores, cases),
    );
    let others: Vec<&str> = engines.iter().filter(|engine| ![DEFAULT, CONTROL].contains(engine)).copied().collect();
    if !others.is_empty() {
        page.table(
            "The same difference for the other engines, without its interval.",
            &others_against_control(scores, cases, &others),
        );
    }

    page.subheading("All measures of the default engine");
    page.table(
        &format!(
            "Means over the queries; the last column is {RECALL} when only the named tool counts, the others also \
             count its declared equivalents.",
        ),
        &all_measures(scores, cases),
    );
}

fn against_control(scores: &Scores<'_>, cases: &[Case<'_>]) -> Table {
    let mut table = Table::new(["case", CONTROL, DEFAULT, "difference", "verdict"]).words(&["verdict"]);
    let verdicts = scores.verdicts(DEFAULT);
    for case in cases {
        let mean = |engine| scores.cell(engine, case.name, |facts| recall(facts).map(|one| share(one.mean)));
        let paired =
            |show: fn(&Paired) -> String| scores.cell(DEFAULT, case.name, |_| verdicts.get(case.name).map(show));
        let cells = [
            case.name.to_owned(),
            mean(CONTROL),
            mean(DEFAULT),
            paired(|one| difference(&one.difference)),
            paired(conclusion),
        ];
        table.row(cells);
    }
    table
}

/// The differences of other engines from the control, a column for each.
fn others_against_control(scores: &Scores<'_>, cases: &[Case<'_>], engines: &[&str]) -> Table {
    let verdicts: Vec<BTreeMap<&str, Paired>> = engines.iter().map(|engine| scores.verdicts(engine)).collect();
    let mut table = Table::new(["case", "tools", "queries"].into_iter().chain(engines.iter().copied()));
    for case in cases {
        let queries = scores.any_facts(case.name).map_or_else(|| MISSING.to_owned(), |facts| count(facts.answerable));
        let own = engines.iter().zip(&verdicts);
        let cells = own
            .map(|(engine, verdicts)| scores.cell(engine, case.name, |_| verdicts.get(case.name).map(short_verdict)));
        table.row([case.name.to_owned(), tools(scores, case), queries].into_iter().chain(cells));
    }
    table
}

fn all_measures(scores: &Scores<'_>, cases: &[Case<'_>]) -> Table {
    let strict = format!("{RECALL}, strict");
    let mut table = Table::new(["case"].into_iter().chain(MEASURES).chain([strict.as_str()]));
    for case in cases {
        let mut cells = vec![case.name.to_owned()];
        for measure in MEASURES {
            cells.push(scores.cell(DEFAULT, case.name, |facts| facts.measures.get(measure).map(|one| share(one.mean))));
        }
        cells.push(scores.cell(DEFAULT, case.name, |facts| facts.strict.get(RECALL).map(|one| share(one.mean))));
        table.row(cells);
    }
    table
}

fn copies(page: &mut Document, scores: &Scores<'_>) {
    let copied: Vec<&str> = scores
        .cases(|case| case.growth.is_some_and(|growth| growth.grade == Grade::Copies))
        .iter()
        .map(|case| case.collection)
        .collect();
    if copied.is_empty() {
        return;
    }
    page.heading("Growth by copies");
    let mut table =
        Table::new(["case", "tools", "engine", "strict", "by capability", "from the control"]).words(&["engine"]);
    for case in scores.cases(|case| copied.contains(&case.collection) && !case.has_distractors()) {
        for engine in scores.engines() {
            let cells = [
                case.name.to_owned(),
                tools(scores, &case),
                engine.to_owned(),
                scores.cell(engine, case.name, |facts| facts.strict.get(RECALL).map(estimate)),
                scores.cell(engine, case.name, |facts| recall(facts).map(estimate)),
                scores.cell(engine, case.name, |facts| facts.versus_control.as_ref().map(short_verdict)),
            ];
            table.row(cells);
        }
    }
    page.table(
        &format!(
            "The catalog is grown by literal copies of its tools under new names, as the Python project grows it; {RECALL} \
             counts only the original (strict), or the copies of a tool share the place of the best of them and any copy \
             counts (by capability); the last column is the difference from the control by capability.",
        ),
        &table,
    );
}

fn growth(page: &mut Document, scores: &Scores<'_>, collection: &str) {
    page.heading(&format!("Growth of {collection}"));
    page.block(
        "A core of tools and the queries that it answers stay the same at every size; only the number of distractors \
         around them grows. The grades of distractors are [defined](definitions.md). These figures are for one seed \
         and every engine; [by seeds](seeds.md) has the default and the control over several.",
    );
    page.figure(figures::recall_by_size(scores, collection));

    page.subheading("By engine, mixed distractors");
    let cases = scores
        .cases(|case| case.collection == collection && case.growth.is_some_and(|growth| growth.grade == Grade::Mixed));
    let table = by_engine(scores, &cases, &scores.engines(), |facts| recall(facts).map(estimate));
    page.table(&format!("{RECALL} with its interval; every row scores the same queries."), &table);

    page.subheading("Difference from the control, by grade");
    let table = by_grade(scores, collection, |case| {
        scores.cell(DEFAULT, case, |facts| facts.versus_control.as_ref().map(short_verdict))
    });
    page.table(
        &format!("{RECALL} of the default engine minus that of the control, with what each difference says by itself."),
        &table,
    );
}

fn context_rot(page: &mut Document, scores: &Scores<'_>, collection: &str) {
    page.heading(&format!("Context rot of {collection}"));
    page.figure(figures::context_rot(scores, collection));
    let table = by_grade(scores, collection, |case| scores.cell(DEFAULT, case, |facts| recall(facts).map(estimate)));
    page.table(
        &format!(
            "{RECALL} of the default engine by the number of tools (down) and the grade of the distractors (across): \
             how fast a column falls is what such distractors cost.",
        ),
        &table,
    );
    let table = by_grade(scores, collection, |case| scores.cell(CONTROL, case, |facts| recall(facts).map(estimate)));
    page.table(&format!("The same of the control, `{CONTROL}`, on the same queries and catalogs."), &table);
}

/// One row per size, one column per grade of distractors, `cell` of the case at each.
fn by_grade(scores: &Scores<'_>, collection: &str, cell: impl Fn(&str) -> String) -> Table {
    let mut table = Table::new(std::iter::once("tools").chain(Grade::DISTRACTORS.map(grade_name))).numbered();
    for size in scores.sizes(collection) {
        let mut cells = vec![count(size)];
        for grade in Grade::DISTRACTORS {
            cells.push(scores.grown(collection, grade, size).map_or_else(|| MISSING.to_owned(), &cell));
        }
        table.row(cells);
    }
    table
}

fn loss(page: &mut Document, scores: &Scores<'_>) {
    page.heading("Where recall is lost");
    let mut table =
        Table::new(["case", "tools", "engine", RECALL, "vocabulary", "pruning", "tie", "ranking", "rescued"])
            .words(&["engine"]);
    for case in scores.cases(Case::is_plain_or_mixed) {
        for engine in scores.engines_among(&[DEFAULT, BEST, LEXICAL, BEAM]) {
            let lost = |part: fn(&Facts) -> f64| scores.cell(engine, case.name, |facts| Some(share(part(facts))));
            let cells = [
                case.name.to_owned(),
                tools(scores, &case),
                engine.to_owned(),
                scores.cell(engine, case.name, |facts| recall(facts).map(|one| share(one.mean))),
                lost(|facts| facts.loss.vocabulary),
                lost(|facts| facts.loss.pruning),
                lost(|facts| facts.loss.tie),
                lost(|facts| facts.loss.ranking),
                lost(|facts| facts.loss.rescued),
            ];
            table.row(cells);
        }
    }
    page.table(
        "A row without its last column sums to one: what was found among the first five, and why the rest was not. \
         Vocabulary counts tools that share no word with the query, whatever the engine makes of them; rescued counts \
         those of them that were found anyway, by meaning or by a corrected spelling. Pruning is what navigating the \
         choice graph loses compared with scoring every tool.",
        &table,
    );
}

fn ties(page: &mut Document, scores: &Scores<'_>) {
    page.heading("Ties");
    let table = by_engine(scores, &scores.cases(Case::is_plain_or_mixed), &scores.engines(), |facts| {
        Some([facts.ties.worst, facts.ties.expected, facts.ties.best].map(share).join(" / "))
    });
    page.table(
        &format!(
            "{RECALL} when equal scores are ordered as badly as possible, on average, and as well as possible: figures \
             far apart mean that the order of ids decides, not the score.",
        ),
        &table,
    );
}

fn namespaces(page: &mut Document, scores: &Scores<'_>) {
    page.heading("By namespace");
    for case in scores.cases(|case| case.is_as_it_is(Origin::Embedded)) {
        page.subheading(case.name);
        page.figure(figures::namespaces(scores, case.name));
        let table = by_slice(scores, &case, "namespace", |facts| &facts.by_namespace);
        page.table(&format!("Mean {RECALL} over the queries that need a tool of the namespace."), &table);
    }
}

fn registers(page: &mut Document, scores: &Scores<'_>) {
    page.heading("By register");
    for case in scores.cases(|case| case.is_as_it_is(Origin::Embedded)) {
        page.subheading(case.name);
        let table = by_slice(scores, &case, "register", |facts| &facts.by_register);
        page.table(&format!("Mean {RECALL} over the queries that are phrased this way."), &table);
    }
}

/// One row per subset of the queries of a case, one column per engine.
fn by_slice<'a>(
    scores: &Scores<'a>,
    case: &Case<'_>,
    title: &str,
    slices: fn(&'a Facts) -> &'a BTreeMap<String, Slice>,
) -> Table {
    let engines = scores.engines();
    let mut table = Table::new([title, "queries"].into_iter().chain(engines.iter().copied()));
    let Some(facts) = scores.any_facts(case.name) else { return table };
    for (name, slice) in slices(facts) {
        let mut cells = vec![name.clone(), count(slice.queries)];
        for engine in &engines {
            cells.push(
                scores.cell(engine, case.name, |facts| slices(facts).get(name).map(|one| share(one.recall_at_5))),
            );
        }
        table.row(cells);
    }
    table
}

fn abstention(page: &mut Document, scores: &Scores<'_>) {
    const COVERAGES: [(f64, &str); 3] = [(0.5, "risk at half"), (0.8, "risk at four fifths"), (1.0, "risk at all")];
    page.heading("Abstention");
    let titles = ["case", "engine", "answerable", "unanswerable", "AUROC", "ECE", "AURC"];
    let mut table = Table::new(titles.into_iter().chain(COVERAGES.map(|(_, title)| title))).words(&["engine"]);
    let has_abstention = |case: &Case<'_>| scores.any_facts(case.name).is_some_and(|facts| facts.abstention.is_some());
    for case in scores.cases(|case| case.growth.is_none() && has_abstention(case)) {
        for engine in scores.engines() {
            let cell = |show: &dyn Fn(&Facts) -> Option<String>| scores.cell(engine, case.name, show);
            let mut cells = vec![
                case.name.to_owned(),
                engine.to_owned(),
                cell(&|facts| Some(count(facts.answerable))),
                cell(&|facts| Some(count(facts.unanswerable))),
                cell(&|facts| Some(estimate(&told_apart(facts)?))),
                cell(&|facts| Some(share(facts.abstention.as_ref()?.ece?))),
                cell(&|facts| Some(share(facts.abstention.as_ref()?.aurc))),
            ];
            cells.extend(COVERAGES.map(|(coverage, _)| cell(&|facts| Some(share(risk_at(facts, coverage)?)))));
            table.row(cells);
        }
    }
    page.table(
        "How well an engine's confidence tells queries that a tool answers from those that none does: AUROC (with its 95 % \
         interval) is better when higher, the rest when lower. ECE is the mean distance of confidence from the share of right \
         answers, over the queries as they are asked; a risk is the share of answers without a relevant tool when only \
         the most confident part of the queries is answered.",
        &table,
    );
}

fn risk_at(facts: &Facts, coverage: f64) -> Option<f64> {
    let curve = &facts.abstention.as_ref()?.curve;
    curve.iter().find(|point| (point.coverage - coverage).abs() < 1e-6).map(|point| point.risk)
}

fn tokens(page: &mut Document, scores: &Scores<'_>) {
    page.heading("Tokens");
    for collection in scores.grown_collections() {
        page.figure(figures::tokens(scores, collection));
    }
    let titles = ["case", "tools", "all definitions", "cards, mean", "cards, most", "saved", "estimator"];
    let mut table = Table::new(titles).words(&["estimator"]);
    for case in scores.cases(Case::is_plain_or_mixed) {
        let Some(counted) = scores.facts(DEFAULT, case.name).and_then(|facts| facts.tokens.as_ref()) else { continue };
        let cells = [
            format!("{}{}", case.name, scores.mark(&[DEFAULT], [case.name])),
            tools(scores, &case),
            count(counted.naive),
            fixed(counted.cards_mean, 0),
            count(counted.cards_max),
            percent(counted.reduction),
            counted.estimator.clone(),
        ];
        table.row(cells);
    }
    page.table(
        "Prompt tokens with the definitions of all tools and with the first cards that the default engine selects, ten at most; the \
         counts are those of the estimator in the last column.",
        &table,
    );
}

fn work(page: &mut Document, scores: &Scores<'_>) {
    page.heading("Work");
    let cases = scores.cases(Case::is_plain_or_mixed);
    let table = by_engine(scores, &cases, &scores.engines(), |facts| Some(fixed(facts.work.postings_per_query, 0)));
    page.table(
        "Postings that the words of a query have on average: what search times depend on, the same on every machine.",
        &table,
    );

    let mut table = Table::new(["case", "tools", "terms", "postings", "graph nodes"]);
    for case in &cases {
        let cells = [
            case.name.to_owned(),
            tools(scores, case),
            scores.cell(DEFAULT, case.name, |facts| Some(count(facts.work.terms))),
            scores.cell(DEFAULT, case.name, |facts| Some(count(facts.work.postings))),
            scores.cell(BEAM, case.name, |facts| Some(count(facts.work.graph_nodes))),
        ];
        table.row(cells);
    }
    let reading = format!("Terms and postings of the index of `{DEFAULT}`, nodes of the choice graph of `{BEAM}`.");
    page.table(&reading, &table);
}

fn latency(page: &mut Document, scores: &Scores<'_>, recording: Option<&Recording<'_>>) {
    page.heading("Latency");
    let Some(recording) = recording else {
        page.block("No timings are recorded; `bench run --record-timings` records those of a machine.");
        return;
    };
    page.block(&recording.origin());
    page.figure(figures::latency(scores, &recording.rows));
    page.table(
        "One thread after warm-up; every run is one search, build or process, the percentiles are over them, and MAD \
         is the median absolute deviation. The size is the number of tools in the catalog, of events in the log, or of \
         megabytes of the result. Times depend on the machine, and are never computed again.",
        &recording::times(&recording.rows),
    );
}

fn failures(page: &mut Document, scores: &Scores<'_>) {
    page.heading("Failures");
    let mut table = Table::new(["case", "engine", "message"]).words(&["engine", "message"]);
    for (case, engine, message) in scores.failures() {
        table.row([case, engine, message]);
    }
    if table.is_empty() {
        page.block("Every engine ranked every query of the cases that it was run on.");
    } else {
        page.table("Cases that an engine could not be run on, with the reason.", &table);
    }
}

fn engines(page: &mut Document, scores: &Scores<'_>) {
    page.heading("Configurations of the engines");
    let Some((first, others)) = scores.results().split_first() else { return };
    page.block(&format!(
        "The whole configuration of `{}` as it was run; for the others, only what differs from it.",
        first.name
    ));
    page.subheading(&first.name);
    page.verbatim(&first.configuration);
    let base = keyed_lines(&first.configuration);
    for results in others {
        page.subheading(&results.name);
        let own = keyed_lines(&results.configuration);
        let changed = own.iter().filter(|(key, value)| base.get(*key) != Some(value));
        let mut lines: Vec<String> = changed.map(|(key, value)| format!("{key} = {value}")).collect();
        let gone = base.keys().filter(|key| !own.contains_key(*key));
        lines.extend(gone.map(|key| format!("# without {key}")));
        if lines.is_empty() {
            page.block(&format!("The same settings as `{}`.", first.name));
        } else {
            page.verbatim(&lines.join("\n"));
        }
    }
}

/// One row per case with its numbers of tools and queries, and one column per engine.
fn by_engine<'a>(
    scores: &Scores<'a>,
    cases: &[Case<'_>],
    engines: &[&str],
    show: impl Fn(&'a Facts) -> Option<String>,
) -> Table {
    let mut table = Table::new(["case", "tools", "queries"].into_iter().chain(engines.iter().copied()));
    for case in cases {
        let queries = scores.any_facts(case.name).map_or_else(|| MISSING.to_owned(), |facts| count(facts.answerable));
        let mut cells = vec![case.name.to_owned(), tools(scores, case), queries];
        cells.extend(engines.iter().map(|engine| scores.cell(engine, case.name, &show)));
        table.row(cells);
    }
    table
}

fn tools(scores: &Scores<'_>, case: &Case<'_>) -> String {
    scores.any_facts(case.name).map_or_else(|| MISSING.to_owned(), |facts| count(facts.tools))
}

fn short_verdict(paired: &Paired) -> String {
    format!("{} {}", signed(paired.difference.mean), conclusion(paired))
}

/// The blocks of the front page: the headline picture, and recall@5 of the default engine and of the control with the
/// tokens saved, one row per collection.
pub(super) fn front(scores: &Scores<'_>) -> Vec<String> {
    let table = headline_table(scores);
    vec![if table.is_empty() {
        "No results are recorded yet.".to_owned()
    } else {
        format!(
            "{}\n\n{RECALL} is the mean share of the relevant tools among the first five, with its 95 % interval; \
             tokens saved is the share of the prompt that the first ten cards save compared with all definitions. The \
             [scorecard]({FOLDER}SCORECARD.md) has every other figure and the definitions.",
            table.markdown().trim_end(),
        )
    }]
}

fn headline_table(scores: &Scores<'_>) -> Table {
    let (control, default) = (format!("{RECALL}, flat BM25"), format!("{RECALL}, {DEFAULT}"));
    let saved = ["flat BM25", DEFAULT].map(|engine| format!("tokens saved, {engine}"));
    let mut table = Table::new(["collection", "tools", "queries", &control, &default, &saved[0], &saved[1]]);
    for case in scores.cases(|case| case.growth.is_none()) {
        let facts = scores.any_facts(case.name);
        let cells = [
            case.name.to_owned(),
            facts.map_or_else(|| MISSING.to_owned(), |facts| count(facts.tools)),
            facts.map_or_else(|| MISSING.to_owned(), |facts| count(facts.answerable)),
            scores.cell(CONTROL, case.name, |facts| recall(facts).map(estimate)),
            scores.cell(DEFAULT, case.name, |facts| recall(facts).map(estimate)),
            scores.cell(CONTROL, case.name, |facts| Some(percent(facts.tokens.as_ref()?.reduction))),
            scores.cell(DEFAULT, case.name, |facts| Some(percent(facts.tokens.as_ref()?.reduction))),
        ];
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::eval::timing::TimingRow;
    use crate::report::document::Figure;
    use crate::results::Results;

    fn render(results: &[Results<Box<Facts>>], timings: &[TimingRow]) -> (String, Vec<Figure>) {
        let mut page = Document::default();
        chapter(&mut page, &Scores::new(results), &Tables { timings: timings.to_vec(), ..Tables::default() });
        page.into_parts()
    }

    #[test]
    fn a_small_scorecard_as_a_whole() {
        let (text, _) = render(&sample::few_results(), &[]);
        let (_, sections) = text.split_once("## Embedded collections").unwrap();
        insta::assert_snapshot!(sections, @r#"


        Written for this project and part of the repository, so that a checkout alone reproduces them.

        ### recall@5

        The mean share of the relevant tools that are among the first five, with its interval.

        | case      | tools | queries |         default |            bm25 |
        | --------- | ----: | ------: | --------------: | --------------: |
        | household |    96 |     164 | .880 [.81, .95] | .850 [.78, .92] |

        ### nDCG@10

        How high the relevant tools rank among the first ten; one means all of them at the top.

        | case      | tools | queries | default | bm25 |
        | --------- | ----: | ------: | ------: | ---: |
        | household |    96 |     164 |    .739 | .714 |

        ### Difference from the control

        recall@5 of the default engine minus that of the control on the same queries. The interval is that of the queries, or, where it is wider, of the tools that they need. `better` and `worse` are what a sign-flip test and the interval show, corrected for the number of collections (Holm).

        | case      | bm25 | default |           difference | verdict      |
        | --------- | ---: | ------: | -------------------: | ------------ |
        | household | .850 |    .880 | +.030 [−.005, +.065] | inconclusive |

        ### All measures of the default engine

        Means over the queries; the last column is recall@5 when only the named tool counts, the others also count its declared equivalents.

        | case      | recall@1 | recall@3 | recall@5 | recall@10 | hit@1 |  P@5 |   RR | nDCG@10 | full@5 | recall@5, strict |
        | --------- | -------: | -------: | -------: | --------: | ----: | ---: | ---: | ------: | -----: | ---------------: |
        | household |     .546 |     .792 |     .880 |      .924 |  .616 | .185 | .686 |    .739 |   .818 |             .840 |

        ## Public collections

        Written by others and not part of the repository: where their folder is absent, their rows are kept from an earlier run and marked. A catalog grown by copies has its own section.

        ### recall@5

        The mean share of the relevant tools that are among the first five, with its interval.

        | case      | tools | queries | default |            bm25 |
        | --------- | ----: | ------: | ------: | --------------: |
        | toolbench | 3,912 |     764 |  failed | .476 [.44, .51] |

        ### nDCG@10

        How high the relevant tools rank among the first ten; one means all of them at the top.

        | case      | tools | queries | default | bm25 |
        | --------- | ----: | ------: | ------: | ---: |
        | toolbench | 3,912 |     764 |  failed | .400 |

        ### Difference from the control

        recall@5 of the default engine minus that of the control on the same queries. The interval is that of the queries, or, where it is wider, of the tools that they need. `better` and `worse` are what a sign-flip test and the interval show, corrected for the number of collections (Holm).

        | case      | bm25 | default | difference | verdict |
        | --------- | ---: | ------: | ---------: | ------- |
        | toolbench | .476 |  failed |     failed | failed  |

        ### All measures of the default engine

        Means over the queries; the last column is recall@5 when only the named tool counts, the others also count its declared equivalents.

        | case      | recall@1 | recall@3 | recall@5 | recall@10 |  hit@1 |    P@5 |     RR | nDCG@10 | full@5 | recall@5, strict |
        | --------- | -------: | -------: | -------: | --------: | -----: | -----: | -----: | ------: | -----: | ---------------: |
        | toolbench |   failed |   failed |   failed |    failed | failed | failed | failed |  failed | failed |           failed |
        # Engines as the catalog grows
        # Where engines fail

        ## Where recall is lost

        A row without its last column sums to one: what was found among the first five, and why the rest was not. Vocabulary counts tools that share no word with the query, whatever the engine makes of them; rescued counts those of them that were found anyway, by meaning or by a corrected spelling. Pruning is what navigating the choice graph loses compared with scoring every tool.

        | case      | tools | engine  | recall@5 | vocabulary | pruning |    tie | ranking | rescued |
        | --------- | ----: | ------- | -------: | ---------: | ------: | -----: | ------: | ------: |
        | household |    96 | default |     .880 |       .036 |    .000 |   .006 |    .078 |    .000 |
        | toolbench | 3,912 | default |   failed |     failed |  failed | failed |  failed |  failed |

        ## Ties

        recall@5 when equal scores are ordered as badly as possible, on average, and as well as possible: figures far apart mean that the order of ids decides, not the score.

        | case      | tools | queries |            default |               bm25 |
        | --------- | ----: | ------: | -----------------: | -----------------: |
        | household |    96 |     164 | .874 / .879 / .884 | .844 / .849 / .854 |
        | toolbench | 3,912 |     764 |             failed | .470 / .475 / .480 |

        ## Failures

        Cases that an engine could not be run on, with the reason.

        | case      | engine  | message                           |
        | --------- | ------- | --------------------------------- |
        | toolbench | default | toolbench: 2 tools \| share an id |
        # Engines by kind of query

        ## By namespace

        ### household

        ![recall@5 by namespace and engine: household](household-namespaces.svg)

        Mean recall@5 over the queries that need a tool of the namespace.

        | namespace  | queries | default | bm25 |
        | ---------- | ------: | ------: | ---: |
        | accounting |      12 |    .755 | .725 |
        | browser    |      17 |    .930 | .900 |
        | calendar   |      22 |    .830 | .800 |
        | chat       |      27 |   1.000 | .975 |
        | cloud      |      32 |    .905 | .875 |
        | crm        |      37 |    .805 | .775 |
        | database   |      42 |    .980 | .950 |
        | design     |      12 |    .880 | .850 |
        | docs       |      17 |    .780 | .750 |
        | email      |      22 |    .955 | .925 |
        | files      |      27 |    .855 | .825 |
        | git        |      32 |    .755 | .725 |
        | hr         |      37 |    .930 | .900 |
        | monitoring |      42 |    .830 | .800 |
        | payments   |      12 |   1.000 | .975 |
        | tickets    |      17 |    .905 | .875 |

        ## By register

        ### household

        Mean recall@5 over the queries that are phrased this way.

        | register    | queries | default | bm25 |
        | ----------- | ------: | ------: | ---: |
        | chatty      |      12 |    .755 | .725 |
        | non_english |      17 |    .930 | .900 |
        | plain       |      22 |    .830 | .800 |
        | terse       |      27 |   1.000 | .975 |
        | typos       |      32 |    .905 | .875 |

        ## Abstention

        How well an engine's confidence tells queries that a tool answers from those that none does: AUROC (with its 95 % interval) is better when higher, the rest when lower. ECE is the mean distance of confidence from the share of right answers, over the queries as they are asked; a risk is the share of answers without a relevant tool when only the most confident part of the queries is answered.

        | case      | engine  | answerable | unanswerable |           AUROC |  ECE | AURC | risk at half | risk at four fifths | risk at all |
        | --------- | ------- | ---------: | -----------: | --------------: | ---: | ---: | -----------: | ------------------: | ----------: |
        | household | default |        164 |           44 | .810 [.75, .87] | .050 | .110 |         .080 |                .158 |        .230 |
        | household | bm25    |        164 |           44 | .803 [.74, .87] | .050 | .117 |         .080 |                .158 |        .230 |
        # What engines cost

        ## Tokens

        Prompt tokens with the definitions of all tools and with the first cards that the default engine selects, ten at most; the counts are those of the estimator in the last column.

        | case      | tools | all definitions | cards, mean | cards, most |  saved | estimator   |
        | --------- | ----: | --------------: | ----------: | ----------: | -----: | ----------- |
        | household |    96 |          14,208 |         430 |         590 | 97.0 % | cl100k_base |

        ## Work

        Postings that the words of a query have on average: what search times depend on, the same on every machine.

        | case      | tools | queries | default |   bm25 |
        | --------- | ----: | ------: | ------: | -----: |
        | household |    96 |     164 |     355 |    355 |
        | toolbench | 3,912 |     764 |  failed | 14,474 |

        Terms and postings of the index of `default`, nodes of the choice graph of `beam`.

        | case      | tools |  terms | postings | graph nodes |
        | --------- | ----: | -----: | -------: | ----------: |
        | household |    96 |    592 |    2,976 |           – |
        | toolbench | 3,912 | failed |   failed |           – |

        ## Latency

        No timings are recorded; `bench run --record-timings` records those of a machine.
        # Configurations of the engines

        The whole configuration of `default` as it was run; for the others, only what differs from it.

        ## default

            engine = "default"
            k1 = 1.2

        ## bm25

            engine = "bm25"
        "#);
    }

    #[test]
    fn the_newest_recording_is_shown_with_its_machine() {
        let timings = sample::timings();
        let (text, figures) = render(&sample::results(), &timings);
        assert!(text.contains("Recorded, not computed: 2026-01-31 on `desk`: Some CPU @ 3.0 GHz, Linux 6.1"));
        assert!(text.contains("the newest recording") && !text.contains("99.0"));
        assert!(figures.iter().any(|figure| figure.path == "latency.svg"));
        let (text, _) = render(&[], &timings[1..]);
        assert!(!text.contains("the newest recording"));
    }

    #[test]
    fn the_block_has_one_row_per_collection() {
        insta::assert_snapshot!(front(&Scores::new(&sample::few_results())).join("\n\n"), @r"
        | collection | tools | queries | recall@5, flat BM25 | recall@5, default | tokens saved, flat BM25 | tokens saved, default |
        | ---------- | ----: | ------: | ------------------: | ----------------: | ----------------------: | --------------------: |
        | household  |    96 |     164 |     .850 [.78, .92] |   .880 [.81, .95] |                  97.0 % |                97.0 % |
        | toolbench  | 3,912 |     764 |     .476 [.44, .51] |            failed |                  99.9 % |                failed |

        recall@5 is the mean share of the relevant tools among the first five, with its 95 % interval; tokens saved is the share of the prompt that the first ten cards save compared with all definitions. The [scorecard](scorecard/SCORECARD.md) has every other figure and the definitions.
        ");
    }

    #[test]
    fn nothing_recorded_is_said() {
        assert_eq!(front(&Scores::new(&[])), ["No results are recorded yet."]);
    }
}
