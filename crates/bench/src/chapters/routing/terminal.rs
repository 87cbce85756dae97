//! The engines as plain text for a terminal of 80 columns, without colours.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::scores::{CONTROL, Case, RECALL, Scores, recall};
use crate::eval::record::{Estimate, Facts, Slice, Verdict};
use crate::eval::statistics::corrected;
use crate::report::markup::visible;
use crate::report::number::{
    MISSING, count, counted, difference, fixed, interval, percent, share, standing, verdict_name,
};
use crate::report::table::Table;
use crate::results::Results;

/// Columns of the terminal.
const WIDTH: usize = 80;

/// Names of cases longer than this are cut, so that the engines have room.
const CASE_WIDTH: usize = 28;

/// Names of engines longer than this are cut.
const ENGINE_WIDTH: usize = 12;

/// The summary that `bench run` prints: recall@5 by case and engine, what the paired intervals say, and failures.
///
/// The first table shows the collections, their growth by copies and the growth with mixed distractors; the scorecard has
/// the rest. The verdicts are counted over all cases, those that are not shown included.
pub(super) fn summary(results: &[Results<Box<Facts>>]) -> String {
    let scores = Scores::new(results);
    let shown = scores.cases(|case| case.is_plain_or_mixed() || !case.has_distractors());
    if shown.is_empty() {
        return "no results\n".to_owned();
    }
    let mut text = String::new();
    for engines in side_by_side(scores.engines()) {
        text.push_str(&recall_table(&scores, &shown, &engines).plain());
        text.push('\n');
    }
    let verdicts = verdict_table(&scores, &scores.cases(|_| true));
    if !verdicts.is_empty() {
        text.push_str(&verdicts.plain());
    }
    for (case, engine, message) in scores.failures() {
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "failed: {engine} on {case}: {message}");
    }
    text
}

/// The engines in as few groups as fit the terminal, one table each.
fn side_by_side(engines: Vec<&str>) -> Vec<Vec<&str>> {
    const GAP: usize = 2;
    const TOOLS_WIDTH: usize = 7;
    const CELL_WIDTH: usize = 6;
    let room = WIDTH - CASE_WIDTH - GAP - TOOLS_WIDTH;
    let (mut groups, mut used) = (Vec::<Vec<&str>>::new(), room);
    for engine in engines {
        let width = GAP + engine.chars().count().clamp(CELL_WIDTH, ENGINE_WIDTH);
        match groups.last_mut() {
            Some(group) if used + width <= room => group.push(engine),
            _ => {
                groups.push(vec![engine]);
                used = 0;
            }
        }
        used += width;
    }
    groups
}

fn recall_table(scores: &Scores<'_>, cases: &[Case<'_>], engines: &[&str]) -> Table {
    let mut table = Table::new(
        [RECALL, "tools"].into_iter().map(str::to_owned).chain(engines.iter().map(|name| cut(name, ENGINE_WIDTH))),
    );
    for case in cases {
        let tools = scores.any_facts(case.name).map_or_else(|| MISSING.to_owned(), |facts| count(facts.tools));
        let mut cells = vec![cut(case.name, CASE_WIDTH), tools];
        for engine in engines {
            cells.push(scores.cell(engine, case.name, |facts| recall(facts).map(|one| share(one.mean))));
        }
        table.row(cells);
    }
    table
}

/// On how many of the cases each engine differs from the control; the control itself has no row.
fn verdict_table(scores: &Scores<'_>, cases: &[Case<'_>]) -> Table {
    const VERDICTS: [Verdict; 3] = [Verdict::Better, Verdict::Worse, Verdict::Inconclusive];
    let first = format!("against {CONTROL}");
    let mut table = Table::new([first.as_str()].into_iter().chain(VERDICTS.map(verdict_name)).chain(["cases"]));
    for engine in scores.engines() {
        let paired = |case: &Case<'_>| scores.facts(engine, case.name)?.versus_control.as_ref();
        let compared = corrected(&cases.iter().filter_map(paired).collect::<Vec<_>>());
        if compared.is_empty() {
            continue;
        }
        let mut cells = vec![cut(engine, ENGINE_WIDTH)];
        cells.extend(VERDICTS.map(|wanted| count(compared.iter().filter(|one| one.verdict == wanted).count())));
        cells.push(count(compared.len()));
        table.row(cells);
    }
    table
}

/// All facts of one case, as `bench eval` prints them.
#[must_use]
pub fn facts(facts: &Facts) -> String {
    let mut text = format!(
        "{} in {}; {} with an answer, {} without\n\n",
        counted(facts.tools, "tool", "tools"),
        counted(facts.namespaces, "namespace", "namespaces"),
        counted(facts.answerable, "query", "queries"),
        count(facts.unanswerable),
    );
    text.push_str(&measures(facts).plain());
    text.push('\n');
    let mut figures = Table::new(["", ""]).words(&[""]);
    for (name, value) in other_figures(facts) {
        figures.row([name.to_owned(), value]);
    }
    text.push_str(figures.plain().trim_start_matches('\n'));
    for (title, slices) in [("namespace", &facts.by_namespace), ("register", &facts.by_register)] {
        if !slices.is_empty() {
            let _ = write!(text, "\n{}", slice_table(title, slices).plain());
        }
    }
    text
}

fn measures(facts: &Facts) -> Table {
    let mut table = Table::new(["measure", "mean", "95 % interval", "strict"]);
    let mut measures: Vec<(&String, &Estimate)> = facts.measures.iter().collect();
    measures.sort_by_key(|(name, _)| reading_order(name));
    for (name, value) in measures {
        let strict = facts.strict.get(name).map_or_else(|| MISSING.to_owned(), |one| share(one.mean));
        table.row([name.clone(), share(value.mean), interval(value), strict]);
    }
    table
}

/// By kind of measure, then by its depth as a number: `recall@5` before `recall@10`.
fn reading_order(measure: &str) -> (String, usize) {
    let (kind, depth) = measure.split_once('@').unwrap_or((measure, ""));
    (kind.to_lowercase(), depth.parse().unwrap_or(0))
}

fn other_figures(facts: &Facts) -> Vec<(&'static str, String)> {
    let (loss, ties, work) = (&facts.loss, &facts.ties, &facts.work);
    let mut figures = vec![
        ("ties", format!("worst {}, expected {}, best {}", share(ties.worst), share(ties.expected), share(ties.best))),
        (
            "lost to",
            format!(
                "vocabulary {}, pruning {}, tie {}, ranking {}; rescued {}",
                share(loss.vocabulary),
                share(loss.pruning),
                share(loss.tie),
                share(loss.ranking),
                share(loss.rescued)
            ),
        ),
    ];
    if let Some(one) = &facts.abstention {
        figures.push(("abstention", format!("AUROC {}, AURC {}", share(one.auroc), share(one.aurc))));
    }
    if let Some(one) = &facts.tokens {
        let cards = fixed(one.cards_mean, 0);
        let saved = percent(one.reduction);
        figures.push(("tokens", format!("all {}, cards {cards}, saved {saved} ({})", count(one.naive), one.estimator)));
    }
    if let Some(one) = &facts.versus_control {
        let verdict = standing(one);
        figures.push(("difference", format!("{} from {}: {verdict}", difference(&one.difference), one.control)));
    }
    // Of rankings that another program made, no work is known.
    if work.terms > 0 {
        let per_query = fixed(work.postings_per_query, 0);
        let (terms, postings) = (count(work.terms), count(work.postings));
        figures.push(("work", format!("{terms} terms, {postings} postings, {per_query} read per query")));
    }
    if work.graph_nodes > 0 {
        figures.push(("graph", format!("{} nodes", count(work.graph_nodes))));
    }
    figures
}

fn slice_table(title: &str, slices: &BTreeMap<String, Slice>) -> Table {
    let mut table = Table::new([title, "queries", RECALL]);
    for (name, slice) in slices {
        table.row([cut(&visible(name), 48), count(slice.queries), share(slice.recall_at_5)]);
    }
    table
}

/// At most `width` characters of `text`; a cut is shown by an ellipsis.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::report::recording;

    fn assert_fits(text: &str) {
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }

    #[test]
    fn the_summary_fits_a_terminal() {
        let text = summary(&sample::results());
        assert_fits(&text);
        insta::assert_snapshot!(text, @r"
        recall@5                       tools  default  bm25  tfidf  fuzzy  beam
        household                         96     .880  .850   .810   .892  .720
        workbench                        187     .830  .800   .760   .842  .670
        workbench/mixed@50                50     .910  .880   .840   .922  .750
        workbench/mixed@100              100     .886  .856   .816   .898  .726
        workbench/mixed@250              250     .854  .824   .784   .866  .694
        workbench/mixed@500              500     .830  .800   .760   .842  .670
        workbench/mixed@1000           1,000     .806  .776   .736   .818  .646
        workbench/mixed@2500           2,500     .774  .744   .704   .786  .614
        workbench/mixed@5000           5,000     .750  .720   .680   .762  .590
        workbench/mixed@10000         10,000     .726  .696   .656   .738  .566
        bfcl_synth                     1,127     .910  .886   .854   .920  .782
        contextweaver_83                  83     .870  .846   .814   .880  .742
        contextweaver_83/copies@500      500     .800  .770   .730   .812  .640
        contextweaver_83/copies@1000   1,000     .750  .720   .680   .762  .590
        metatool_multi                   199     .640  .616   .584   .650  .512
        metatool_single                  199     .710  .686   .654   .720  .582
        nestful                          937     .570  .546   .514   .580  .442
        sealtools_dev                  4,076     .770  .746   .714   .780  .642
        toolalpaca                       431     .670  .646   .614   .680  .542
        toolbench                      3,912     .500  .476   .444   .510  .372

        against bm25  better  worse  inconclusive  cases
        default           49      0             3     52
        tfidf              0     14             6     20
        fuzzy             20      0             0     20
        beam               0     20             0     20
        ");
    }

    #[test]
    fn failures_and_missing_rows_are_shown() {
        insta::assert_snapshot!(summary(&sample::few_results()), @r"
        recall@5   tools  default  bm25
        household     96     .880  .850
        toolbench  3,912   failed  .476

        against bm25  better  worse  inconclusive  cases
        default            0      0             1      1
        failed: default on toolbench: toolbench: 2 tools | share an id
        ");
        assert_eq!(summary(&[]), "no results\n");
    }

    #[test]
    fn long_names_and_many_engines_fit_too() {
        let mut results = sample::results();
        let first = results[0].clone();
        for at in 0..4 {
            let mut more = first.clone();
            more.name = format!("an-engine-with-a-long-name-{at}");
            more.records[0].case = "a-collection-with-a-name-that-is-too-long-for-a-terminal".to_owned();
            results.push(more);
        }
        let text = summary(&results);
        assert_fits(&text);
        assert_eq!(text.matches(RECALL).count(), 3);
        assert_eq!(text.matches("an-engine-w…").count(), 8);
    }

    #[test]
    fn one_set_of_facts_is_shown_whole() {
        let text = facts(&sample::facts());
        assert_fits(&text);
        insta::assert_snapshot!(text, @r"
        1,000 tools in 90 namespaces; 412 queries with an answer, 44 without

        measure    mean  95 % interval  strict
        full@5     .772     [.73, .82]    .735
        hit@1      .581     [.54, .63]    .553
        nDCG@10    .697     [.65, .74]    .664
        P@5        .174     [.13, .22]    .166
        recall@1   .515     [.47, .56]    .490
        recall@3   .747     [.70, .79]    .711
        recall@5   .830     [.79, .87]    .790
        recall@10  .871     [.83, .92]    .829
        RR         .647     [.60, .69]    .616

        ties        worst .824, expected .829, best .834
        lost to     vocabulary .051, pruning .000, tie .009, ranking .111; rescued .000
        abstention  AUROC .810, AURC .110
        tokens      all 148,000, cards 439, saved 99.7 % (cl100k_base)
        difference  +.030 [+.008, +.052] from bm25: better
        work        2,400 terms, 31,000 postings, 3,700 read per query

        namespace   queries  recall@5
        accounting       12      .705
        browser          17      .880
        calendar         22      .780
        chat             27      .955
        cloud            32      .855
        crm              37      .755
        database         42      .930
        design           12      .830
        docs             17      .730
        email            22      .905
        files            27      .805
        git              32      .705
        hr               37      .880
        monitoring       42      .780
        payments         12      .955
        tickets          17      .855

        register     queries  recall@5
        chatty            12      .705
        non_english       17      .880
        plain             22      .780
        terse             27      .955
        typos             32      .855
        ");
    }

    #[test]
    fn timings_fit_a_terminal() {
        let rows = sample::timings();
        let text = recording::times(&rows.iter().collect::<Vec<_>>()).plain();
        assert_fits(&text);
        assert_eq!(text.lines().count(), rows.len() + 1);
    }
}
