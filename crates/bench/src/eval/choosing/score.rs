//! What the answers of a program are worth, beside two that need no model: the first card, and any card.

use serde::Serialize;

use super::{Answers, NONE, Questions};
use crate::eval::error::EvalError;
use crate::eval::process::nearest_rank;
use crate::eval::record::{Estimate, Paired};
use crate::eval::statistics::{estimate_all, mean, paired, round6};
use contextweaver_core::text::Estimator;
use contextweaver_routing::{SelectionStatus, validate_selection};

/// The control of the paired difference.
const FIRST_CARD: &str = "the first card";

/// What became of one query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chosen {
    /// A tool that the query needs, or a declared equivalent.
    Right,
    /// Another tool of those shown.
    Wrong,
    /// No tool; also where there was no card to choose.
    None,
    /// A tool of the catalog that was not shown.
    NotShown,
    /// What it said stands for none of these.
    Invalid,
}

/// What a program chose.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChoiceFacts {
    /// Questions that were put: queries for which there were cards.
    pub asked: usize,
    /// Right choices of the queries that a tool answers; absent without any. A choice is right when it is one of the needed
    /// tools, so that the first card's is hit@1, which is recall@1 where every query needs one tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<Compared>,
    /// The same of the queries for which a right tool was among the cards: what is missing here is the model's loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right_where_shown: Option<Compared>,
    /// How often it said none where no tool answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub none_where_no_tool_answers: Option<Share>,
    /// How often it said none although a right tool was among the cards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub none_where_shown: Option<Share>,
    /// The right choices less those of the first card, query by query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versus_first_card: Option<Paired>,
    /// What it said, by what was right to say.
    pub counts: Counts,
    /// Answers that were not an id but could stand for one card alone, or for none, and were taken for it.
    pub repaired: usize,
    /// What a question costs.
    pub tokens: Tokens,
    /// How long answers took.
    pub answers: Times,
}

/// A share of queries beside what two controls have of the same queries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Compared {
    /// The queries.
    pub queries: usize,
    /// The program's share.
    pub chosen: Estimate,
    /// That of the first card.
    pub first_card: Estimate,
    /// That of a card drawn from those shown, each as likely: its expected value, without a draw.
    pub random_card: Estimate,
}

/// A share of queries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// The queries.
    pub queries: usize,
    /// The share with its interval.
    #[serde(flatten)]
    pub share: Estimate,
}

/// What was said, by what was right to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Queries with a right tool among the cards.
    pub shown: Tally,
    /// Queries that a tool answers which was not among the cards: none is all that can be said well.
    pub not_shown: Tally,
    /// Queries that no tool answers.
    pub no_tool_answers: Tally,
}

/// What was said to some queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tally {
    /// The queries.
    pub queries: usize,
    /// A tool that the query needs.
    pub right: usize,
    /// Another tool of those shown.
    pub wrong: usize,
    /// No tool.
    pub none: usize,
    /// A tool of the catalog that was not shown.
    pub not_shown: usize,
    /// Nothing of these.
    pub invalid: usize,
}

/// Tokens of the questions that were put; 0 of none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tokens {
    /// The estimator of all counts here.
    pub estimator: String,
    /// Mean of the prompts.
    pub prompt_mean: f64,
    /// The longest prompt.
    pub prompt_max: usize,
    /// Mean of the cards alone.
    pub cards_mean: f64,
    /// Mean of the definitions in the form of a provider; absent where there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_mean: Option<f64>,
}

/// How long answers took, in microseconds, as we saw it; 0 of none. These depend on the machine, the model and the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Times {
    /// The median.
    pub p50_us: u64,
    /// The 95th percentile.
    pub p95_us: u64,
}

impl Tally {
    fn add(&mut self, chosen: Chosen) {
        self.queries += 1;
        *match chosen {
            Chosen::Right => &mut self.right,
            Chosen::Wrong => &mut self.wrong,
            Chosen::None => &mut self.none,
            Chosen::NotShown => &mut self.not_shown,
            Chosen::Invalid => &mut self.invalid,
        } += 1;
    }
}

/// A query that a tool answers.
struct Row {
    /// 1 for a right choice, 1 for a right first card, and the share of the cards that are right.
    values: [f64; 3],
    /// Whether a right tool is among the cards.
    shown: bool,
}

/// Scores `answers` to `questions`.
///
/// # Errors
/// A question that cannot be made, or that has no answer: figures of a part of the questions would not be those of all.
pub fn score(questions: &Questions<'_>, answers: &Answers) -> Result<ChoiceFacts, EvalError> {
    if let Some(number) = questions.unanswered(answers).next() {
        let query = &questions.collection.queries[number].id;
        return Err(EvalError::failed("the answers", format!("query `{query}` has none; only a whole run is scored")));
    }
    let (mut counts, mut repaired, mut rows) = (Counts::default(), 0, Vec::new());
    let mut silent = Vec::new();
    for (number, said) in answers.said.iter().enumerate() {
        let query = &questions.collection.queries[number];
        let is_right = |item: &u32| query.groups.iter().any(|group| group.contains(item));
        let (chosen, is_repaired) = judge(questions, number, said.as_ref().and_then(|said| said.choice.as_deref()));
        repaired += usize::from(is_repaired);
        let none = f64::from(u8::from(chosen == Chosen::None));
        if query.groups.is_empty() {
            counts.no_tool_answers.add(chosen);
            silent.push(none);
            continue;
        }
        let cards = &questions.shown[number];
        let right = cards.iter().filter(|item| is_right(item)).count();
        let first = f64::from(u8::from(cards.first().is_some_and(is_right)));
        let random = right as f64 / cards.len().max(1) as f64;
        let values = [f64::from(u8::from(chosen == Chosen::Right)), first, random];
        rows.push(Row { values, shown: right > 0 });
        if right > 0 { counts.shown.add(chosen) } else { counts.not_shown.add(chosen) }
    }
    let shown: Vec<&Row> = rows.iter().filter(|row| row.shown).collect();
    let pairs: Vec<(f64, f64)> = rows.iter().map(|row| (row.values[0], row.values[1])).collect();
    let mut times: Vec<u64> = answers.said.iter().flatten().map(|said| said.us).collect();
    Ok(ChoiceFacts {
        asked: times.len(),
        right: compared(rows.iter()),
        right_where_shown: compared(shown.iter().copied()),
        none_where_no_tool_answers: share(&silent),
        none_where_shown: share_of(counts.shown.none, counts.shown.queries),
        versus_first_card: (!pairs.is_empty()).then(|| paired(FIRST_CARD, &pairs)),
        counts,
        repaired,
        tokens: tokens(questions)?,
        answers: Times { p50_us: nearest_rank(&mut times, 50), p95_us: nearest_rank(&mut times, 95) },
    })
}

/// What an answer stands for, and whether it had to be repaired.
fn judge(questions: &Questions<'_>, number: usize, said: Option<&str>) -> (Chosen, bool) {
    let Some(said) = said else { return (Chosen::None, false) };
    let ids = questions.ids(number);
    let candidates: Vec<&str> = ids.iter().copied().chain([NONE]).collect();
    let found = validate_selection(said, &candidates);
    let chosen = match found.id.as_deref() {
        Some(NONE) if !ids.contains(&NONE) => Chosen::None,
        Some(id) => {
            let item = ids.iter().position(|one| *one == id).map(|at| questions.shown[number][at]);
            let groups = &questions.collection.queries[number].groups;
            let is_right = item.is_some_and(|item| groups.iter().any(|group| group.contains(&item)));
            if is_right { Chosen::Right } else { Chosen::Wrong }
        }
        None => {
            let all: Vec<&str> = questions.collection.catalog.items().iter().map(|item| item.id.as_str()).collect();
            if validate_selection(said, &all).id.is_some() { Chosen::NotShown } else { Chosen::Invalid }
        }
    };
    (chosen, found.status == SelectionStatus::Repaired)
}

/// All columns share their resamples; `None` without rows.
fn compared<'r>(rows: impl Iterator<Item = &'r Row>) -> Option<Compared> {
    let rows: Vec<Vec<f64>> = rows.map(|row| row.values.to_vec()).collect();
    match estimate_all(&rows).as_slice() {
        [chosen, first_card, random_card] => {
            Some(Compared { queries: rows.len(), chosen: *chosen, first_card: *first_card, random_card: *random_card })
        }
        _ => None,
    }
}

/// The mean of values, one a query; `None` without any.
fn share(values: &[f64]) -> Option<Share> {
    let rows: Vec<Vec<f64>> = values.iter().map(|value| vec![*value]).collect();
    estimate_all(&rows).first().map(|share| Share { queries: rows.len(), share: *share })
}

/// So many of so many; `None` of none.
fn share_of(some: usize, all: usize) -> Option<Share> {
    let values: Vec<f64> = (0..all).map(|at| f64::from(u8::from(at < some))).collect();
    share(&values)
}

/// What the questions cost that have cards.
fn tokens(questions: &Questions<'_>) -> Result<Tokens, EvalError> {
    let all = questions.asked().map(|number| questions.tokens(number)).collect::<Result<Vec<_>, EvalError>>()?;
    let tools: Vec<f64> = all.iter().filter_map(|one| one.tools).map(|tokens| tokens as f64).collect();
    Ok(Tokens {
        estimator: Estimator::Cl100kBase.name().to_owned(),
        prompt_mean: round6(mean(all.iter().map(|one| one.prompt as f64))),
        prompt_max: all.iter().map(|one| one.prompt).max().unwrap_or(0),
        cards_mean: round6(mean(all.iter().map(|one| one.cards as f64))),
        tools_mean: (!tools.is_empty()).then(|| round6(mean(tools))),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{collection, ranking};
    use super::super::{Asking, Said};
    use super::*;

    /// Scores what is said to the four queries of the collection; none has cards but these.
    fn scored(shown: [&[&str]; 4], said: [Option<&str>; 4]) -> ChoiceFacts {
        let collection = collection();
        let rankings = shown.map(|names| ranking(&collection, names));
        let asking = Asking { cards: 10, tools_as: None };
        let questions = Questions::of(&collection, &rankings, asking).unwrap();
        let said = shown
            .iter()
            .zip(said)
            .map(|(shown, said)| (!shown.is_empty()).then(|| Said { choice: said.map(str::to_owned), us: 7 }));
        let answers = Answers {
            chooser: "test".to_owned(),
            program: "p".to_owned(),
            version: "1".to_owned(),
            asking,
            said: said.collect(),
        };
        score(&questions, &answers).unwrap()
    }

    const SHOWN: [&[&str]; 4] =
        [&["create_issue", "play_song"], &["play_song", "send_mail", "create_issue"], &["play_song"], &["play_song"]];

    fn tally(queries: usize, counts: [usize; 5]) -> Tally {
        let [right, wrong, none, not_shown, invalid] = counts;
        Tally { queries, right, wrong, none, not_shown, invalid }
    }

    #[test]
    fn figures_worked_by_hand() {
        let facts = scored(SHOWN, [Some("forge:create_issue"), None, Some("post:send_mail"), Some("None")]);
        let counts = Counts {
            shown: tally(2, [1, 0, 1, 0, 0]),
            not_shown: tally(1, [0, 0, 0, 1, 0]),
            no_tool_answers: tally(1, [0, 0, 1, 0, 0]),
        };
        assert_eq!((facts.asked, facts.counts, facts.repaired), (4, counts, 2));
        let means = |one: Option<Compared>| {
            let one = one.unwrap();
            (one.queries, [one.chosen.mean, one.first_card.mean, one.random_card.mean])
        };
        // Of the cards one in two, one in three, none is right.
        assert_eq!(means(facts.right), (3, [0.333333, 0.333333, round6((0.5 + 1.0 / 3.0) / 3.0)]));
        assert_eq!(means(facts.right_where_shown), (2, [0.5, 0.5, round6(5.0 / 12.0)]));
        let share = |one: Option<Share>| one.map(|one| (one.queries, one.share.mean));
        assert_eq!(share(facts.none_where_no_tool_answers), Some((1, 1.0)));
        assert_eq!(share(facts.none_where_shown), Some((2, 0.5)));
        assert_eq!(facts.versus_first_card.unwrap().differing, 0);
    }

    #[test]
    fn what_stands_for_no_card_is_not_right() {
        let facts =
            scored(SHOWN, [Some("forge:no_such"), Some(""), Some("forge:create_issue"), Some("radio:play_song")]);
        let counts = Counts {
            shown: tally(2, [0, 0, 0, 0, 2]),
            not_shown: tally(1, [0, 0, 0, 1, 0]),
            no_tool_answers: tally(1, [0, 1, 0, 0, 0]),
        };
        assert_eq!((facts.counts, facts.repaired), (counts, 1));
    }

    #[test]
    fn a_part_of_the_answers_has_no_figures() {
        let collection = collection();
        let rankings = SHOWN.map(|names| ranking(&collection, names));
        let asking = Asking { cards: 10, tools_as: None };
        let questions = Questions::of(&collection, &rankings, asking).unwrap();
        let name = || "p".to_owned();
        let said = vec![Some(Said { choice: None, us: 7 }), None, None, None];
        let answers = Answers { chooser: name(), program: name(), version: name(), asking, said };
        let error = score(&questions, &answers).unwrap_err().to_string();
        assert_eq!(error, "the answers: query `2` has none; only a whole run is scored");
    }

    #[test]
    fn any_needed_tool_is_right_and_a_query_without_cards_is_none() {
        let shown: [&[&str]; 4] = [&[], &[], &["play_song", "create_issue", "send_mail"], &[]];
        let facts = scored(shown, [None, None, Some("FORGE:create"), None]);
        assert_eq!((facts.asked, facts.repaired, facts.counts.shown), (1, 1, tally(1, [1, 0, 0, 0, 0])));
        assert_eq!(facts.counts.not_shown, tally(2, [0, 0, 2, 0, 0]));
        assert_eq!(facts.right.unwrap().random_card.mean, round6(2.0 / 9.0));
        assert_eq!(facts.answers, Times { p50_us: 7, p95_us: 7 });
    }
}
