//! The chapter of rivals as a page: quality by collection, differences in pairs, and what each engine costs.

use std::collections::{BTreeMap, BTreeSet};

use super::parts;
use crate::chapter::{Answer, Question};
use crate::eval::everyday::Manner;
use crate::eval::matrix::{BEST, CONTROL, DEFAULT};
use crate::eval::process::{SECOND_ORDER, TOP};
use crate::eval::record::{Estimate, Outcome, Paired, Verdict};
use crate::eval::rival::{RivalFacts, RivalTimes, TIMES_FILE, on_largest};
use crate::eval::scaling::RivalRow;
use crate::eval::statistics::{
    corrected, macro_mean, mean, median, over_sets, paired_by_tool, paired_macro_by_tool, round6,
};
use crate::eval::tables::Tables;
use crate::report::document::{Document, Figure};
use crate::report::number::{MISSING, conclusion, count, difference, estimate, quantity, share};
use crate::report::plot::{Front, Interval, IntervalPlot, Named, Scale};
use crate::report::readme::FOLDER;
use crate::report::table::Table;
use crate::results::{KEPT, Record, Results, days};

/// The two measures of the page.
const SHOWN: [&str; 2] = ["nDCG@10", "recall@5"];

/// The measure of the picture beside time: that of the front of our configurations.
const RECALL: &str = SHOWN[1];

/// Engines of others in the table in front.
const BEST_OF_OTHERS: usize = 4;

/// Stands where an engine was never asked.
const NOT_RUN: &str = "not run";

/// Values of ours and of another engine, query by query.
type Pairs = Vec<(f64, f64)>;

/// Ours minus an engine, over the collections that both have finished.
struct Behind {
    /// How many those are.
    collections: usize,
    /// The mean difference with the interval of the queries of these collections, or, where it is wider, of their tools.
    paired: Paired,
    /// The same mean with the interval for a collection that is not among them; `None` of fewer than two.
    another: Option<Estimate>,
}

/// Whose engine a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Ours,
    Others,
    Control,
}

impl Whose {
    /// In the order of the key.
    const ALL: [Self; 3] = [Self::Ours, Self::Others, Self::Control];

    fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Others => "of others",
            Self::Control => "control, flat BM25",
        }
    }
}

/// The recorded results by engine and collection.
struct Board<'r> {
    records: BTreeMap<(&'r str, &'r str), &'r Record<RivalFacts>>,
    /// By mean of the first measure, best first; engines without a mean follow by name.
    engines: Vec<&'r str>,
    collections: Vec<&'r str>,
}

impl<'r> Board<'r> {
    fn of(results: &'r Results<RivalFacts>) -> Self {
        let records: BTreeMap<_, _> = results.records.iter().map(|record| (parts(&record.case), record)).collect();
        let names: BTreeSet<&str> = records.keys().map(|(engine, _)| *engine).collect();
        let collections: BTreeSet<&str> = records.keys().map(|(_, collection)| *collection).collect();
        let mut board =
            Self { records, engines: names.into_iter().collect(), collections: collections.into_iter().collect() };
        let mean = |engine: &str| board.mean(SHOWN[0], engine).unwrap_or(-1.0);
        let mut engines: Vec<(&str, f64)> = board.engines.iter().map(|engine| (*engine, mean(engine))).collect();
        engines.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(right.0)));
        board.engines = engines.into_iter().map(|(engine, _)| engine).collect();
        board
    }

    fn facts(&self, engine: &str, collection: &str) -> Option<&'r RivalFacts> {
        match &self.records.get(&(engine, collection))?.outcome {
            Outcome::Measured(facts) => Some(facts),
            Outcome::Failed(_) => None,
        }
    }

    /// The values by query on each collection; `None` where the engine has not finished all of them.
    fn by_query(&self, measure: &str, engine: &str) -> Option<Vec<Vec<f64>>> {
        self.collections.iter().map(|collection| self.facts(engine, collection)?.by_query(measure)).collect()
    }

    /// The mean over the collections, each with the same weight; `None` where the engine has not finished all of them.
    fn mean(&self, measure: &str, engine: &str) -> Option<f64> {
        let means: Option<Vec<f64>> = (self.collections.iter())
            .map(|collection| Some(self.facts(engine, collection)?.measures.get(measure)?.mean))
            .collect();
        Some(round6(mean(means?)))
    }

    /// The same with the interval of the collections' queries.
    fn interval(&self, measure: &str, engine: &str) -> Option<Estimate> {
        Some(macro_mean(&self.by_query(measure, engine)?))
    }

    /// The values of ours and of an engine by query; `None` where one of them has not finished the collection.
    fn pairs(&self, measure: &str, engine: &str, collection: &str) -> Option<Pairs> {
        let [ours, theirs] = [DEFAULT, engine].map(|name| self.facts(name, collection)?.by_query(measure));
        Some(ours?.into_iter().zip(theirs?).collect())
    }

    /// Ours minus an engine; `None` where there is no collection that both have finished.
    fn behind_ours(&self, measure: &str, engine: &str) -> Option<Behind> {
        let pairs = |collection: &&'r str| Some((*collection, self.pairs(measure, engine, collection)?));
        let (names, sets): (Vec<&str>, Vec<Pairs>) = self.collections.iter().filter_map(pairs).unzip();
        if sets.is_empty() {
            return None;
        }
        let tools: Vec<&[u32]> =
            names.iter().zip(&sets).map(|(name, pairs)| self.first_tools(name, pairs.len())).collect();
        let paired = paired_macro_by_tool(engine, &sets, &tools);
        let differences = sets.iter().map(|pairs| mean(pairs.iter().map(|(ours, theirs)| ours - theirs)));
        let another = over_sets(&differences.collect::<Vec<f64>>());
        Some(Behind { collections: sets.len(), paired, another })
    }

    /// Ours minus an engine on each collection that both have finished, with what each difference says beside the others.
    fn on_each(&self, measure: &str, engine: &str) -> Vec<(&'r str, Paired)> {
        let on = |collection: &&'r str| -> Option<(&'r str, Paired)> {
            let pairs = self.pairs(measure, engine, collection)?;
            Some((*collection, paired_by_tool(engine, &pairs, self.first_tools(collection, pairs.len()))))
        };
        let (names, alone): (Vec<&str>, Vec<Paired>) = self.collections.iter().filter_map(on).unzip();
        names.into_iter().zip(corrected(&alone.iter().collect::<Vec<_>>())).collect()
    }

    /// The first tool that each of the `queries` of a collection needs; empty where no record says it.
    fn first_tools(&self, collection: &str, queries: usize) -> &'r [u32] {
        let all = self.engines.iter().filter_map(|engine| Some(self.facts(engine, collection)?.first_tools.as_slice()));
        all.into_iter().find(|tools| tools.len() == queries).unwrap_or_default()
    }

    fn whose(&self, engine: &str) -> Whose {
        let is_installed =
            |collection: &&str| self.facts(engine, collection).is_some_and(|facts| facts.requirements_sha256.is_some());
        match engine {
            CONTROL => Whose::Control,
            DEFAULT => Whose::Ours,
            _ if self.collections.iter().any(is_installed) => Whose::Others,
            _ => Whose::Ours,
        }
    }

    /// A figure, or the word for why there is none.
    fn cell(&self, measure: &str, engine: &str, collection: &str) -> String {
        match self.records.get(&(engine, collection)).map(|record| &record.outcome) {
            Some(Outcome::Measured(facts)) => {
                facts.measures.get(measure).map_or(MISSING.to_owned(), |one| share(one.mean))
            }
            Some(Outcome::Failed(reason)) => reason.split(':').next().unwrap_or_default().to_owned(),
            None => NOT_RUN.to_owned(),
        }
    }
}

pub(super) fn chapter(
    page: &mut Document,
    results: &Results<RivalFacts>,
    on_everyday: Option<&Results<RivalFacts>>,
    tables: &Tables,
) {
    if results.records.is_empty() {
        return;
    }
    let board = Board::of(results);
    page.heading("Rivals in the same run");
    page.block(&format!(
        "Third-party engines and ours through one interface ([protocol 1](../docs/engines.md)): the same catalogs and \
         queries, ids and orders that reveal nothing, no judgement within reach. Recorded by `contextweaver bench run \
         --engines all` (†), {}; `bench check` never computes them; it checks every mean against the recorded ranks, \
         and ours against what they give inside the harness. Engines are sorted by mean nDCG@10; the mean gives every \
         collection the same weight, its interval is that of the queries. A word appears where an engine did not \
         finish or was not run.",
        days(&results.records)
    ));
    let [ndcg, recall, paired] = quality(results);
    page.table("nDCG@10.", &ndcg);
    page.table("recall@5.", &recall);
    page.figure(figure(&board, results));
    page.table(
        "Our default minus each engine, query by query, over the collections that both finished: the mean difference \
         with its 95 % interval on these collections, and what that says about ours; then the interval for a \
         collection that is not among them (Student's t over the collections). The first resamples queries, or, where \
         it is wider, tools with all their queries, as far as the records say which tool a query needs.",
        &paired,
    );
    page.table(
        &format!(
            "Versions, and what the order of the catalog changes. A second process gets the catalog in a different \
             order and up to {SECOND_ORDER} queries of each collection (*asked*); *other lists* are those of its \
             answers that differ from the first process's list of up to {TOP} tools, apart from the order of equal \
             scores and a cut among them. A list can differ far below the places that are measured. Repeats have no \
             column: the first process is asked a tenth of the queries twice, and a single answer that differs fails \
             the run."
        ),
        &versions(&board),
    );
    costs(page, &board, tables);
    if let Some(results) = on_everyday.filter(|results| !results.records.is_empty()) {
        page.subheading("On everyday requests");
        page.block(&format!(
            "The [everyday requests](everyday.md) through the same interface, recorded {}: as people speak, as models \
             ask, and as models ask among the tools of many more servers. Where a model sent two searches, each engine \
             is asked both, and its answers are taken alternately. Engines are sorted by what they find as people \
             speak.",
            days(&results.records)
        ));
        page.table(
            "recall@5, and that of our default minus it, query by query, with the 95 % interval of these requests.",
            &everyday(results),
        );
    }
}

/// The measure of the table of everyday requests.
const ON_EVERYDAY: &str = "recall@5";

/// What every engine finds of the everyday requests, and ours minus it.
pub(super) fn everyday(results: &Results<RivalFacts>) -> Table {
    let board = Board::of(results);
    let titles = Manner::ALL.iter().flat_map(|manner| [manner.title().to_owned(), "default − it".to_owned()]);
    let mut table = Table::new(["engine †".to_owned()].into_iter().chain(titles));
    for engine in by_speech(&board) {
        let less = if engine == DEFAULT { Vec::new() } else { board.on_each(ON_EVERYDAY, engine) };
        let cells = Manner::ALL.iter().flat_map(|manner| {
            let less = less.iter().find(|(name, _)| *name == manner.name());
            [
                board.cell(ON_EVERYDAY, engine, manner.name()),
                less.map_or(MISSING.to_owned(), |(_, paired)| difference(&paired.difference)),
            ]
        });
        table.row([engine.to_owned()].into_iter().chain(cells));
    }
    table
}

/// The engines by what they find as people speak, most first.
fn by_speech<'r>(board: &Board<'r>) -> Vec<&'r str> {
    let found = |engine: &str| {
        let facts = board.facts(engine, Manner::Said.name());
        facts.and_then(|facts| facts.measures.get(ON_EVERYDAY)).map_or(-1.0, |one| one.mean)
    };
    let mut engines = board.engines.clone();
    engines.sort_by(|left, right| found(right).total_cmp(&found(left)).then(left.cmp(right)));
    engines
}

/// What the best of others finds of the everyday requests in each manner, and whether that is more than ours.
fn everyday_answers(results: &Results<RivalFacts>) -> Vec<Answer> {
    let board = Board::of(results);
    let others: Vec<&str> =
        by_speech(&board).into_iter().filter(|engine| board.whose(engine) == Whose::Others).collect();
    let recall = |engine: &str, manner: Manner| {
        board.facts(engine, manner.name()).and_then(|facts| facts.measures.get(ON_EVERYDAY)).map(|one| one.mean)
    };
    let best = |manner: Manner| {
        let all = others.iter().filter_map(|engine| Some((*engine, recall(engine, manner)?)));
        let (engine, found) = all.max_by(|left, right| left.1.total_cmp(&right.1).then(right.0.cmp(left.0)))?;
        Some(format!("{}: {engine} {} (`{DEFAULT}` {})", manner.title(), share(found), share(recall(DEFAULT, manner)?)))
    };
    let best: Vec<String> = Manner::ALL.into_iter().filter_map(best).collect();
    if best.is_empty() {
        return Vec::new();
    }
    let text = format!(
        "The most {ON_EVERYDAY} of [others](rivals.md#on-everyday-requests) on everyday requests, {}.{KEPT}",
        best.join("; ")
    );
    let mut answers = vec![Answer::new(Question::Good, text)];
    let ahead = ahead(&board, others.iter().copied(), ON_EVERYDAY, "");
    if !ahead.is_empty() {
        let text =
            format!("And of [everyday requests](rivals.md#on-everyday-requests) by {ON_EVERYDAY}: {ahead}.{KEPT}");
        answers.push(Answer::new(Question::Failure, text));
    }
    answers
}

/// The engines that are shown to be ahead of ours, each with where; empty where there are none.
fn ahead<'e>(board: &Board<'_>, engines: impl Iterator<Item = &'e str>, measure: &str, on: &str) -> String {
    let title = |name: &str| {
        Manner::ALL
            .into_iter()
            .find(|manner| manner.name() == name)
            .map_or(name.to_owned(), |manner| manner.title().to_owned())
    };
    let of = |engine: &str| {
        let worse = board.on_each(measure, engine).into_iter().filter(|(_, paired)| paired.verdict == Verdict::Worse);
        let names: Vec<String> = worse.map(|(name, _)| title(name)).collect();
        (!names.is_empty()).then(|| format!("{engine} {on}{}", names.join(", ")))
    };
    // Most engines find more nowhere, and need no test.
    let mean = |engine: &str, collection: &str| Some(board.facts(engine, collection)?.measures.get(measure)?.mean);
    let finds_more =
        |engine: &&str| board.collections.iter().any(|collection| mean(engine, collection) > mean(DEFAULT, collection));
    engines.filter(finds_more).filter_map(of).collect::<Vec<String>>().join("; ")
}

/// The picture of the front page: ours beside engines of others.
pub(super) fn front(results: &Results<RivalFacts>) -> Option<String> {
    figure(&Board::of(results), results).map(|figure| figure.link(FOLDER))
}

/// How engines of others compare, and which of them find more than ours.
pub(super) fn answers(
    results: &Results<RivalFacts>,
    on_everyday: Option<&Results<RivalFacts>>,
    tables: &Tables,
) -> Vec<Answer> {
    let board = Board::of(results);
    let of_others = |engine: &&&str| board.whose(engine) == Whose::Others;
    let others: Vec<(&str, Behind)> = (board.engines.iter().filter(of_others))
        .filter_map(|engine| Some((*engine, board.behind_ours(SHOWN[0], engine)?)))
        .collect();
    if others.is_empty() {
        return Vec::new();
    }
    let measure = SHOWN[0];
    let mut table = Table::new(["default − … †", "collections", "on these", "on another such collection"]);
    // The picture has the others.
    let is_pictured = |engine: &str| board.mean(measure, engine).is_some();
    let few = (1..).zip(&others).filter(|(place, (engine, _))| *place <= BEST_OF_OTHERS || !is_pictured(engine));
    for (_, (engine, behind)) in few {
        table.row([
            (*engine).to_owned(),
            count(behind.collections),
            difference(&behind.paired.difference),
            behind.another.as_ref().map_or(MISSING.to_owned(), difference),
        ]);
    }
    let mut text = format!(
        "{measure} of `{DEFAULT}` minus that of the best [third-party engines](rivals.md), recorded {}, with the 95 % \
         interval of the queries and that for another collection (Student's t):\n\n{}",
        days(&results.records),
        table.markdown(),
    );
    if let Some(figure) = figure(&board, results) {
        text = format!("{}\n\n{}", text.trim_end(), figure.link(""));
    }
    let mut answers = vec![Answer::new(Question::Good, text)];
    let ahead = ahead(&board, others.iter().map(|(engine, _)| *engine), measure, "on ");
    if !ahead.is_empty() {
        answers.push(Answer::new(
            Question::Failure,
            format!(
                "[Third-party engines](rivals.md) that are shown to find more than `{DEFAULT}` by {measure}: \
                     {ahead}.{KEPT}"
            ),
        ));
    }
    answers.extend(on_everyday.into_iter().flat_map(everyday_answers));
    answers.extend(cost(&board, tables));
    answers
}

/// What an answer takes beside engines of others: the fastest of them, and the one that finds most.
fn cost(board: &Board<'_>, tables: &Tables) -> Option<Answer> {
    let largest = on_largest(&tables.engines);
    let on_it =
        |engine: &&str| largest.iter().find(|row| row.engine == **engine).map(|row| (row.engine.as_str(), row.p50_us));
    let own = on_it(&DEFAULT)?;
    let others = board.engines.iter().filter(|engine| board.whose(engine) == Whose::Others);
    let others: Vec<(&str, u64)> = others.filter_map(on_it).collect();
    let (best, fastest) = (others.first()?, others.iter().min_by_key(|(_, us)| *us)?);
    let mut shown = vec![own];
    shown.extend(on_it(&BEST));
    shown.extend(on_it(&CONTROL));
    shown.push(*fastest);
    shown.extend((best != fastest).then_some(*best));
    let shown: Vec<String> = shown.iter().map(|(engine, us)| format!("{engine} {}", quantity(*us as f64))).collect();
    let tools = largest.first()?.tools;
    let text = format!(
        "Median µs of an answer through one interface among {} tools, ours, the control, the fastest and the best of \
         [others](rivals.md#what-they-cost): {}{}.{KEPT}",
        count(tools),
        shown.join(", "),
        in_process(tables, fastest.0, tools).unwrap_or_default(),
    );
    Some(Answer::new(Question::Cost, text))
}

/// What a search of the fastest engine takes where no interface is between, beside ours, on the first catalog of at least
/// `tools` tools; `None` where that was not measured.
fn in_process(tables: &Tables, fastest: &str, tools: usize) -> Option<String> {
    let at = |engine: &str| {
        let is_it = |row: &&RivalRow| row.engine == engine && row.measure == "search p50" && row.tools >= tools;
        tables.rivals.iter().filter(is_it).min_by_key(|row| row.tools)
    };
    let (own, other) = (at(DEFAULT)?, at(fastest)?);
    (own.tools == other.tools).then(|| {
        let [own_us, other_us] = [own, other].map(|row| quantity(row.value));
        let tools = count(own.tools);
        format!(
            "; [in one process](scaling.md#beside-other-libraries), among {tools}, {DEFAULT} {own_us} and {fastest} {other_us}"
        )
    })
}

/// What the front of recall and time shows, what it lacks, and where and when its times were taken.
fn front_reading(tables: &Tables) -> String {
    let days: BTreeSet<&str> = tables.engines.iter().map(|row| row.recorded.as_str()).collect();
    let days = match (days.first(), days.last()) {
        (Some(first), Some(last)) if first != last => format!("in runs from {first} to {last}"),
        (Some(day), _) => format!("in a run of {day}"),
        _ => "on an unknown day".to_owned(),
    };
    let machine = tables.origin(TIMES_FILE).and_then(|origin| origin.machine.clone());
    let machine = machine.map_or("an unrecorded machine".to_owned(), |machine| format!("one machine (`{machine}`)"));
    format!(
        "Recall against time, all through the same interface, recorded on {machine} {days} (†). Tokens are left out: \
         for third-party engines, the ranks of the needed tools are recorded, not which ten tools they show. The \
         [front with tokens](routing.md) covers our configurations only."
    )
}

/// The tables of quality: two measures, and the differences.
pub(super) fn quality(results: &Results<RivalFacts>) -> [Table; 3] {
    let board = Board::of(results);
    let [ndcg, recall] = SHOWN.map(|measure| by_collection(&board, measure));
    [ndcg, recall, differences(&board)]
}

fn by_collection(board: &Board<'_>, measure: &str) -> Table {
    let mut table = Table::new(["engine †", "mean"].into_iter().chain(board.collections.iter().copied()));
    for engine in &board.engines {
        let mean = board.interval(measure, engine).map_or(MISSING.to_owned(), |value| estimate(&value));
        let cells = board.collections.iter().map(|collection| board.cell(measure, engine, collection));
        table.row([(*engine).to_owned(), mean].into_iter().chain(cells));
    }
    table
}

fn differences(board: &Board<'_>) -> Table {
    let titles = SHOWN
        .map(|measure| [measure.to_owned(), format!("ours on {measure}"), format!("{measure} on another collection")]);
    let words = titles.clone().map(|[_, word, _]| word);
    let titles = ["default − …", "collections"].map(str::to_owned).into_iter().chain(titles.into_iter().flatten());
    let mut table = Table::new(titles).words(&words.each_ref().map(String::as_str));
    for engine in board.engines.iter().filter(|engine| **engine != DEFAULT) {
        let both = SHOWN.map(|measure| board.behind_ours(measure, engine));
        let sets = both[0].as_ref().map_or(MISSING.to_owned(), |behind| count(behind.collections));
        let cells = both.iter().flat_map(|one| match one {
            Some(Behind { paired, another, .. }) => [
                difference(&paired.difference),
                conclusion(paired),
                another.as_ref().map_or(MISSING.to_owned(), difference),
            ],
            None => [MISSING; 3].map(str::to_owned),
        });
        table.row([(*engine).to_owned(), sets].into_iter().chain(cells));
    }
    table
}

fn versions(board: &Board<'_>) -> Table {
    let titles = ["engine †", "version", "requirements", "asked", "other lists"];
    let mut table = Table::new(titles).words(&["version", "requirements"]);
    for engine in &board.engines {
        let facts: Vec<&RivalFacts> =
            board.collections.iter().filter_map(|collection| board.facts(engine, collection)).collect();
        let set = |of: fn(&RivalFacts) -> String| {
            let all: BTreeSet<String> = facts.iter().map(|facts| of(facts)).collect();
            all.into_iter().collect::<Vec<_>>().join(", ")
        };
        let pinned = set(|facts| {
            facts.requirements_sha256.as_ref().map_or(MISSING.to_owned(), |sha| sha.chars().take(12).collect())
        });
        let sum = |of: fn(&RivalFacts) -> usize| count(facts.iter().map(|facts| of(facts)).sum());
        table.row([
            (*engine).to_owned(),
            set(|facts| facts.version.clone()),
            pinned,
            sum(|facts| facts.order_asked),
            sum(|facts| facts.order_changes),
        ]);
    }
    table
}

fn costs(page: &mut Document, board: &Board<'_>, tables: &Tables) {
    let largest = on_largest(&tables.engines);
    let Some(first) = largest.first() else { return };
    page.subheading("What they cost");
    if let Some(origin) = tables.origin(TIMES_FILE) {
        page.block(&origin.sentence());
    }
    let reading = format!(
        "On `{}` ({} tools). From the start of the process to its first answer, and loading the catalog, in ms; the \
         time of an answer, including the way through the pipe, in µs, with the pipe alone beside it; peak memory in \
         MiB. The machine was shared during these measurements: read them as ratios. Over all collections is the \
         median of the medians.",
        first.collection,
        count(first.tools)
    );
    let mut table = Table::new(["engine", "start", "load", "p50", "p99", "ping", "memory", "p50 over all"]);
    for engine in &board.engines {
        let Some(row) = largest.iter().find(|row| row.engine == **engine) else { continue };
        let own = tables.engines.iter().filter(|row| row.engine == **engine);
        let p50s: Vec<f64> = own.map(|row| row.p50_us as f64).collect();
        table.row([
            (*engine).to_owned(),
            quantity(row.start_ms),
            quantity(row.load_ms),
            quantity(row.p50_us as f64),
            quantity(row.p99_us as f64),
            quantity(row.ping_us as f64),
            row.peak_mib.map_or(MISSING.to_owned(), |mib| quantity(mib as f64)),
            quantity(median(&p50s)),
        ]);
    }
    page.table(&reading, &table);
    if let Some(figure) = recall_by_time(board, &tables.engines) {
        page.figure(Some(figure));
        page.block(&front_reading(tables));
    }
}

/// Mean recall@5 against the time of an answer, for the engines that have both; those of others have hollow markers.
fn recall_by_time(board: &Board<'_>, times: &[RivalTimes]) -> Option<Figure> {
    let points = board.engines.iter().enumerate().filter_map(|(color, engine)| {
        let own: Vec<f64> = times.iter().filter(|row| row.engine == **engine).map(|row| row.p50_us as f64).collect();
        let gain = board.mean(RECALL, engine)?;
        (own.len() == board.collections.len()).then(|| Named {
            name: (*engine).to_owned(),
            color,
            cost: median(&own),
            gain,
            is_hollow: board.whose(engine) == Whose::Others,
        })
    });
    let front = Front {
        title: format!(
            "{RECALL} against the time of an answer, over {} collections, recorded; hollow: of others",
            board.collections.len()
        ),
        x_title: "µs for an answer, the pipe included (logarithmic)".to_owned(),
        y_title: format!("mean {RECALL}; the line is what no engine beats"),
        points: points.collect(),
    };
    let alt = front.title.clone();
    front.svg().map(|svg| Figure { path: "rivals-front.svg".to_owned(), alt, svg })
}

/// Means with their intervals, best first; whose an engine is, its mark says.
fn figure(board: &Board<'_>, results: &Results<RivalFacts>) -> Option<Figure> {
    let rows = board.engines.iter().filter_map(|engine| {
        let Estimate { mean, low, high } = board.interval(SHOWN[0], engine)?;
        let whose = board.whose(engine);
        let dot = |one: Whose| (one == whose).then_some(Interval { mean, low, high });
        Some(((*engine).to_owned(), Whose::ALL.map(dot).to_vec()))
    });
    let plot = IntervalPlot {
        title: format!(
            "Mean {} over {} collections, with the interval of their queries{}",
            SHOWN[0],
            board.collections.len(),
            results.worst_mark(),
        ),
        x_title: SHOWN[0].to_owned(),
        scale: Scale::Share,
        series: Whose::ALL.map(|whose| whose.name().to_owned()).to_vec(),
        rows: rows.collect(),
        one_lane: true,
    };
    let alt = plot.title.clone();
    plot.svg().map(|svg| Figure { path: "rivals.svg".to_owned(), alt, svg })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::recorded;

    /// An engine that found the one tool of each query at these ranks.
    fn at(ranks: &[Option<usize>]) -> Outcome<RivalFacts> {
        let facts = RivalFacts {
            version: "1.2".to_owned(),
            requirements_sha256: Some("0123456789abcdef".to_owned()),
            tools: 9,
            measures: BTreeMap::new(),
            order_asked: 4,
            order_changes: 1,
            first_tools: Vec::new(),
            ranks: ranks.iter().map(|rank| vec![*rank]).collect(),
        };
        Outcome::Measured(RivalFacts { measures: facts.recomputed(), ..facts })
    }

    fn results() -> Results<RivalFacts> {
        let slow = "timed out: all 9 queries, by the first few, took more than 1 ms".to_owned();
        recorded(
            "rivals",
            vec![
                ("default/farm", at(&[Some(1), Some(1), Some(1), Some(2)])),
                ("default/town", at(&[Some(1), Some(6)])),
                ("other/farm", at(&[Some(9), None, None, Some(8)])),
                ("other/town", at(&[Some(2), Some(1)])),
                ("slow/farm", Outcome::Failed(slow)),
                ("slow/town", at(&[Some(1), Some(6)])),
            ],
        )
    }

    #[test]
    fn engines_are_sorted_by_their_mean_and_words_stand_for_what_did_not_finish() {
        let [ndcg, _, paired] = quality(&results()).map(|table| table.plain());
        let names: Vec<&str> = ndcg.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(names, ["default", "other", "slow"], "{ndcg}");
        assert!(ndcg.contains("timed out") && ndcg.contains(".908") && ndcg.contains(".793 ["), "{ndcg}");
        let rows: Vec<&str> = paired.lines().skip(1).collect();
        assert!(rows[0].starts_with("other") && rows[0].contains("+.308 ["), "{paired}");
        assert!(rows[1].starts_with("slow") && rows[1].contains(".000 [.000, .000]"), "{paired}");
    }

    #[test]
    fn the_front_of_recall_and_time_marks_engines_of_others_and_says_what_it_lacks() {
        let results = results();
        let time = |engine: &str, collection: &str, recorded: &str, p50_us: u64| RivalTimes {
            engine: engine.to_owned(),
            collection: collection.to_owned(),
            tools: 9,
            recorded: recorded.to_owned(),
            start_ms: 1.0,
            load_ms: 1.0,
            ping_us: 1,
            p50_us,
            p99_us: p50_us,
            own_p50_us: None,
            peak_mib: None,
        };
        let engines = vec![
            time("default", "farm", "2026-01-01", 90),
            time("default", "town", "2026-01-03", 90),
            time("other", "farm", "2026-01-01", 40),
            time("other", "town", "2026-01-01", 40),
            // It has not finished the other collection, so it has no place.
            time("slow", "town", "2026-01-01", 7),
        ];
        let tables = Tables { engines, ..Tables::default() };
        let svg = recall_by_time(&Board::of(&results), &tables.engines).unwrap().svg;
        assert!(svg.contains("other: .500 at 40.0; default: .750 at 90.0."), "{svg}");
        assert!(svg.contains("class=\"o s1\"") && !svg.contains("class=\"o s0\""), "{svg}");
        let said = front_reading(&tables);
        let expected =
            "recorded on an unrecorded machine in runs from 2026-01-01 to 2026-01-03 (†). Tokens are left out";
        assert!(said.contains(expected), "{said}");
    }

    #[test]
    fn the_front_says_who_finds_more_and_where() {
        let texts: Vec<String> =
            answers(&results(), None, &Tables::default()).into_iter().map(|answer| answer.text).collect();
        let cells: String = texts[0].split_whitespace().collect::<Vec<_>>().join(" ");
        for row in ["| other | 2 | +.308 [", "| slow | 1 | .000 [.000, .000] | – |"] {
            assert!(cells.contains(row), "{row}: {cells}");
        }
        assert!(texts[0].ends_with("](rivals.svg)"), "{texts:?}");
        // Two queries are no proof.
        assert_eq!(texts.len(), 1);
        let ranks = |rank: usize| vec![Some(rank); 12];
        let records = vec![("default/farm", at(&ranks(3))), ("other/farm", at(&ranks(1)))];
        let front = answers(&recorded("rivals", records), None, &Tables::default());
        assert!(front[1].text.ends_with("shown to find more than `default` by nDCG@10: other on farm. †"), "{front:?}");
        assert_eq!(answers(&recorded("rivals", Vec::new()), None, &Tables::default()), []);
    }

    #[test]
    fn a_lead_on_one_collection_and_a_loss_on_another_say_nothing_of_a_third() {
        let records = vec![
            ("default/farm", at(&[Some(1); 12])),
            ("other/farm", at(&[Some(2); 12])),
            ("default/town", at(&[Some(2); 12])),
            ("other/town", at(&[Some(1); 12])),
        ];
        let results = recorded("rivals", records);
        let behind = Board::of(&results).behind_ours("hit@1", "other").unwrap();
        let Estimate { low, high, .. } = behind.another.unwrap();
        assert!(low < 0.0 && high > 0.0, "{low} {high}");
        // The queries of these two collections alone do not show it: each of them says the same.
        assert_eq!((behind.paired.difference.low, behind.paired.difference.high), (0.0, 0.0));
        assert!(
            answers(&results, None, &Tables::default())[0]
                .text
                .contains(&difference(&Board::of(&results).behind_ours(SHOWN[0], "other").unwrap().another.unwrap()))
        );
    }

    #[test]
    fn queries_for_one_tool_count_together_and_what_was_never_asked_is_said() {
        let ranks: Vec<Option<usize>> = (0..24).map(|query| Some(if query < 12 { 1 } else { 3 })).collect();
        let with = |first_tools: Vec<u32>| {
            let Outcome::Measured(facts) = at(&ranks) else { unreachable!() };
            let others: Vec<Option<usize>> = vec![Some(2); 24];
            let records = vec![
                ("default/farm", Outcome::Measured(RivalFacts { first_tools, ..facts })),
                ("other/farm", at(&others)),
                ("other/town", at(&others)),
            ];
            recorded("rivals", records)
        };
        let width = |results: &Results<RivalFacts>| {
            let Estimate { low, high, .. } =
                Board::of(results).behind_ours("nDCG@10", "other").unwrap().paired.difference;
            high - low
        };
        let (apart, together) = (with((0..24).collect()), with((0..24).map(|query| query / 12).collect()));
        assert!(width(&together) > 1.5 * width(&apart), "{} {}", width(&together), width(&apart));
        assert_eq!(width(&apart), width(&with(Vec::new())));
        assert!(quality(&together)[0].plain().contains("not run"));
    }

    #[test]
    fn the_chapter_has_versions_costs_and_a_picture() {
        let row = |engine: &str, p50_us: u64| RivalTimes {
            engine: engine.to_owned(),
            collection: "farm".to_owned(),
            tools: 9,
            recorded: "2026-01-31".to_owned(),
            start_ms: 12.5,
            load_ms: 3.0,
            ping_us: 15,
            p50_us,
            p99_us: p50_us * 3,
            own_p50_us: None,
            peak_mib: Some(40),
        };
        let tables = Tables { engines: vec![row("default", 50), row("other", 700)], ..Tables::default() };
        let mut page = Document::default();
        chapter(&mut page, &results(), None, &tables);
        for shown in ["0123456789ab", "rivals.svg", "## What they cost", "2,100", "2026-01-31"] {
            assert!(page.text().contains(shown), "{shown}: {}", page.text());
        }
        let cost = answers(&results(), None, &tables).pop().unwrap();
        assert_eq!(cost.question, Question::Cost);
        assert!(cost.text.ends_with(": default 50.0, other 700. †"), "{}", cost.text);
        let mut nothing = Document::default();
        chapter(&mut nothing, &recorded("rivals", Vec::new()), None, &tables);
        assert_eq!(nothing.text(), "");
    }

    #[test]
    fn everyday_requests_have_a_table_and_the_best_of_others_stands_in_front() {
        let records = vec![
            ("default/said", at(&[Some(1), Some(9), None, None, Some(1), Some(1), Some(1), Some(1)])),
            ("default/asked", at(&[Some(1); 8])),
            ("other/said", at(&[Some(1); 8])),
            ("other/asked", at(&[Some(9); 8])),
            ("slow/said", Outcome::Failed("timed out: loading took more than 1 ms".to_owned())),
        ];
        let everyday_results = recorded(super::super::EVERYDAY, records);
        let shown = everyday(&everyday_results).plain();
        let rows: Vec<Vec<&str>> = shown.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ["other", "default", "slow"], "{shown}");
        assert!(shown.contains("timed out") && shown.contains("not run"), "{shown}");
        let texts: Vec<String> =
            answers(&results(), Some(&everyday_results), &Tables::default()).into_iter().map(|one| one.text).collect();
        assert!(
            texts[1]
                .contains("as people speak: other 1.000 (`default` .625); as models ask: other .000 (`default` 1.000)"),
            "{texts:?}"
        );
        let mut page = Document::default();
        chapter(&mut page, &results(), Some(&everyday_results), &Tables::default());
        assert!(page.text().contains("## On everyday requests"), "{}", page.text());
    }
}
