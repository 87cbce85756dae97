//! What the engines say to the questions that the scorecard opens with.

use super::scores::{BEST, CONTROL, Case, DEFAULT, LEXICAL, RECALL, Scores, recall};
use crate::chapter::{Answer, Question};
use crate::eval::record::{Facts, Loss, Verdict};
use crate::eval::rival::{RivalTimes, on_largest};
use crate::eval::statistics::{corrected, mean, median, over_sets};
use crate::report::number::{MISSING, count, difference, fixed, percent, quantity, share};
use crate::report::table::Table;

/// The engines that stand side by side: what users get, with the encoder, by words alone, and two controls.
const SHOWN: [&str; 5] = [DEFAULT, BEST, LEXICAL, CONTROL, "tfidf"];

/// Collections that are named as the worst.
const WORST: usize = 3;

/// Every answer of the chapter; none without a collection on which the default and the control were measured.
pub(super) fn answers(scores: &Scores<'_>, doors: &[RivalTimes]) -> Vec<Answer> {
    let cases = common(scores, &[DEFAULT, CONTROL]);
    if cases.is_empty() {
        return Vec::new();
    }
    let mut answers = vec![
        Answer::new(Question::Good, overview(scores, doors)),
        Answer::new(Question::Failure, worst(scores, &cases)),
    ];
    let further = [
        saving(scores, &cases).map(|text| (Question::Saving, text)),
        lost(scores, &cases).map(|text| (Question::Failure, text)),
        smallest(scores, &cases).map(|text| (Question::Avoid, text)),
    ];
    answers.extend(further.into_iter().flatten().map(|(question, text)| Answer::new(question, text)));
    answers
}

/// The collections as they are on which all of these engines were measured.
pub(super) fn common<'a>(scores: &Scores<'a>, engines: &[&str]) -> Vec<Case<'a>> {
    let measured =
        |case: &Case<'a>, engine: &str| scores.facts(engine, case.name).is_some_and(|one| recall(one).is_some());
    scores.cases(|case| case.growth.is_none() && engines.iter().all(|engine| measured(case, engine)))
}

/// The mean of a figure of `engine` over cases; zero where one has none.
pub(super) fn mean_of(
    scores: &Scores<'_>,
    engine: &str,
    cases: &[Case<'_>],
    of: impl Fn(&Facts) -> Option<f64>,
) -> Option<f64> {
    let values: Option<Vec<f64>> = cases.iter().map(|case| of(scores.facts(engine, case.name)?)).collect();
    values.filter(|values| !values.is_empty()).map(mean)
}

/// One row for each engine that was measured on all collections: means, the difference from the control, tokens, and what it
/// costs: the weights, and by `doors` time and memory on the largest catalog.
fn overview(scores: &Scores<'_>, doors: &[RivalTimes]) -> String {
    let engines = scores.engines_among(&SHOWN);
    let cases = common(scores, &engines);
    let largest = on_largest(doors);
    let titles =
        ["engine", RECALL, "nDCG@10", "recall@5 less control", "better / worse", "prompt tokens", "weights MB"];
    let timed = largest.first().map(|_| ["index ms †", "answer µs †", "memory MiB †"]);
    let mut table = Table::new(titles.into_iter().chain(timed.into_iter().flatten()));
    for engine in engines {
        let mark = scores.mark(&[engine, CONTROL], cases.iter().map(|case| case.name));
        let of = |measure: &'static str| {
            let mean = mean_of(scores, engine, &cases, |facts| Some(facts.measures.get(measure)?.mean));
            mean.map_or_else(|| MISSING.to_owned(), |mean| share(mean) + mark)
        };
        let paired = cases.iter().filter_map(|case| scores.facts(engine, case.name)?.versus_control.as_ref());
        let differences: Vec<f64> = paired.clone().map(|one| one.difference.mean).collect();
        let found = corrected(&paired.collect::<Vec<_>>());
        let verdicts = |verdict: Verdict| count(found.iter().filter(|one| one.verdict == verdict).count());
        let tokens = mean_of(scores, engine, &cases, |facts| Some(facts.tokens.as_ref()?.cards_mean));
        let is_control = differences.is_empty();
        let brought =
            cases.iter().find_map(|case| scores.facts(engine, case.name)).map(|facts| facts.work.weights_bytes);
        let door = largest.first().map(|_| {
            let row = largest.iter().copied().find(|row| row.engine == engine);
            let cell =
                |of: fn(&RivalTimes) -> Option<f64>| row.and_then(of).map_or_else(|| MISSING.to_owned(), quantity);
            [cell(|row| Some(row.load_ms)), cell(|row| Some(row.p50_us as f64)), cell(|row| Some(row.peak_mib? as f64))]
        });
        let cells = [
            engine.to_owned(),
            of(RECALL),
            of("nDCG@10"),
            over_sets(&differences).map_or_else(|| MISSING.to_owned(), |one| difference(&one)),
            match is_control {
                true => MISSING.to_owned(),
                false => format!("{} / {}", verdicts(Verdict::Better), verdicts(Verdict::Worse)),
            },
            tokens.map_or_else(|| MISSING.to_owned(), |tokens| fixed(tokens, 0)),
            match brought {
                None | Some(0) => MISSING.to_owned(),
                Some(bytes) => fixed(bytes as f64 / 1e6, 1),
            },
        ];
        table.row(cells.into_iter().chain(door.into_iter().flatten()));
    }
    let door = largest.first().map_or_else(String::new, |row| {
        format!(" Costs are [recorded](rivals.md#what-they-cost) among {} tools.", count(row.tools))
    });
    format!(
        "Means over {} [collections](routing.md): no weight was trained on them, a few constants were \
         [chosen](../docs/bias.md) on them. `{DEFAULT}` is what users get, `{BEST}` adds a sentence encoder, \
         `{LEXICAL}` ranks by words alone, `{CONTROL}` (flat BM25) is the control. The interval is for other \
         collections like these (Student's t); better and worse count collections (sign flips, Holm).{door}\n\n{}",
        count(cases.len()),
        table.markdown().trim_end(),
    )
}

fn saving(scores: &Scores<'_>, cases: &[Case<'_>]) -> Option<String> {
    let spared = |engine: &str| {
        let reductions: Option<Vec<f64>> =
            cases.iter().map(|case| Some(scores.facts(engine, case.name)?.tokens.as_ref()?.reduction)).collect();
        reductions.map(|reductions| percent(median(&reductions)))
    };
    let held =
        |engine: &str| mean_of(scores, engine, cases, |facts| Some(facts.measures.get("recall@10")?.mean)).map(percent);
    Some(format!(
        "Ten cards instead of all definitions save the median collection {} of the [tokens](routing-cost.md#tokens), \
         and contain {} of the needed tools on the mean (ten of flat BM25: {} and {}).",
        spared(DEFAULT)?,
        held(DEFAULT)?,
        spared(CONTROL)?,
        held(CONTROL)?,
    ))
}

/// The collections with the least recall, each beside the control.
fn worst(scores: &Scores<'_>, cases: &[Case<'_>]) -> String {
    let pair = |case: &Case<'_>| {
        let of = |engine| scores.facts(engine, case.name).and_then(recall).map_or(f64::NAN, |one| one.mean);
        (of(DEFAULT), of(CONTROL), case.name.to_owned())
    };
    let mut pairs: Vec<(f64, f64, String)> = cases.iter().map(pair).collect();
    pairs.sort_by(|left, right| left.0.total_cmp(&right.0).then_with(|| left.2.cmp(&right.2)));
    let named = pairs
        .iter()
        .take(WORST)
        .map(|(own, control, name)| format!("{name} {} (flat BM25 {})", share(*own), share(*control)));
    format!("Least {RECALL}: {}.", named.collect::<Vec<_>>().join(", "))
}

/// Why needed tools are lost, on the mean of the collections.
fn lost(scores: &Scores<'_>, cases: &[Case<'_>]) -> Option<String> {
    let of = |engine: &str, loss: fn(&Loss) -> f64| {
        mean_of(scores, engine, cases, |facts| Some(loss(&facts.loss))).map(percent)
    };
    let words: fn(&Loss) -> f64 = |loss| loss.vocabulary;
    let others: fn(&Loss) -> f64 = |loss| loss.ranking + loss.tie + loss.pruning;
    Some(format!(
        "Of the needed tools, {} are [lost](routing-loss.md) because the query shares no word with them (flat BM25 {}), \
         and {} because others are ranked above them ({}).",
        of(DEFAULT, words)?,
        of(CONTROL, words)?,
        of(DEFAULT, others)?,
        of(CONTROL, others)?,
    ))
}

/// The collection whose definitions take fewest tokens.
fn smallest(scores: &Scores<'_>, cases: &[Case<'_>]) -> Option<String> {
    let tokens = |case: &Case<'_>| Some((scores.facts(DEFAULT, case.name)?.tokens.clone()?, case.name.to_owned()));
    let (tokens, name) = cases.iter().filter_map(tokens).min_by_key(|(tokens, _)| tokens.naive)?;
    let found = |engine: &str| Some(percent(scores.facts(engine, &name)?.measures.get("recall@10")?.mean));
    Some(format!(
        "A catalog that fits the prompt needs no router: all {} tools of {name} take {} tokens; ten cards take {} and \
         contain {} of the needed tools (flat BM25 {}).",
        count(scores.facts(DEFAULT, &name)?.tools),
        count(tokens.naive),
        fixed(tokens.cards_mean, 0),
        found(DEFAULT)?,
        found(CONTROL)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chapters::routing::sample;

    #[test]
    fn the_answers_of_a_sample() {
        let door = |engine: &str, collection: &str, tools, p50_us| RivalTimes {
            engine: engine.to_owned(),
            collection: collection.to_owned(),
            tools,
            recorded: "2026-11-26".to_owned(),
            start_ms: 20.0,
            load_ms: 95.4,
            ping_us: 13,
            p50_us,
            p99_us: 140,
            own_p50_us: None,
            peak_mib: Some(62),
        };
        let doors = [
            door("default", "toolbench", 300, 40),
            door("default", "sealtools_dev", 4_076, 92),
            door("bm25", "sealtools_dev", 4_076, 52),
        ];
        let results = sample::results();
        let shown: Vec<String> = answers(&Scores::new(&results), &doors)
            .into_iter()
            .map(|answer| format!("{}: {}", answer.question.title(), answer.text))
            .collect();
        insta::assert_snapshot!(shown.join("\n\n"), @r"
        How good it is: Means over 10 [collections](routing.md): no weight was trained on them, a few constants were [chosen](../docs/bias.md) on them. `default` is what users get, `best` adds a sentence encoder, `lexical` ranks by words alone, `bm25` (flat BM25) is the control. The interval is for other collections like these (Student's t); better and worse count collections (sign flips, Holm). Costs are [recorded](rivals.md#what-they-cost) among 4,076 tools.

        | engine  | recall@5 | nDCG@10 | recall@5 less control | better / worse | prompt tokens | weights MB | index ms † | answer µs † | memory MiB † |
        | ------- | -------: | ------: | --------------------: | -------------: | ------------: | ---------: | ---------: | ----------: | -----------: |
        | default |     .735 |    .617 |  +.040 [+.033, +.047] |          9 / 0 |           436 |        2.1 |       95.4 |        92.0 |         62.0 |
        | bm25    |     .710 |    .596 |                     – |              – |           436 |          – |       95.4 |        52.0 |         62.0 |
        | tfidf   |     .676 |    .568 |  −.019 [−.029, −.009] |          0 / 4 |           436 |          – |          – |           – |            – |

        Where it fails: Least recall@5: toolbench .500 (flat BM25 .476), nestful .570 (flat BM25 .546), metatool_multi .640 (flat BM25 .616).

        What it saves: Ten cards instead of all definitions save the median collection 98.9 % of the [tokens](routing-cost.md#tokens), and contain 77.2 % of the needed tools on the mean (ten of flat BM25: 98.9 % and 74.5 %).

        Where it fails: Of the needed tools, 7.9 % are [lost](routing-loss.md) because the query shares no word with them (flat BM25 8.7 %), and 18.6 % because others are ranked above them (20.3 %).

        When not to use it: A catalog that fits the prompt needs no router: all 83 tools of contextweaver_83 take 12,284 tokens; ten cards take 429 and contain 91.3 % of the needed tools (flat BM25 88.8 %).
        ");
        assert!(answers(&Scores::new(&[]), &[]).is_empty());
    }
}
