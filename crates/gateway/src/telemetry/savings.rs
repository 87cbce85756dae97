//! What a gateway in mode `gateway` spares a model, in tokens: definitions that are not sent, and results that are held
//! back; and what its own answers take.
//!
//! Tokens are those of cl100k_base, and pictures count nothing. Definitions are counted once, as if a client sent them
//! once a session; most send them with every turn, so that this is the least that is spared.

use serde::{Deserialize, Serialize};

use super::samples::Sample;
use crate::common::error::GatewayError;
use crate::protocol::message::Raw;
use contextweaver_core::text::{Estimator, Price, grouped};

/// Tokens of the calls of some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Spent {
    /// Calls of tools, and reads of resources and prompts, that were answered.
    pub calls: u64,
    /// Tokens of what the servers answered to them, about: the whole of a long text is reckoned from its beginning.
    pub results: u64,
    /// Tokens of what the model got in place of that.
    pub answers: u64,
    /// Tokens of everything else that the gateway answered: searches, views, definitions, failures.
    pub other: u64,
}

impl Spent {
    /// Adds an answer of so many tokens; `result` are those of what a server answered, if one was asked.
    pub(crate) fn add(&mut self, result: Option<u64>, answer: u64) {
        match result {
            Some(result) => {
                self.calls += 1;
                self.results = self.results.saturating_add(result);
                self.answers = self.answers.saturating_add(answer);
            }
            None => self.other = self.other.saturating_add(answer),
        }
    }
}

/// What was spared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Savings {
    /// Sessions.
    pub sessions: u64,
    /// Tokens of all definitions, as the servers list them, once for each session.
    pub definitions: u64,
    /// Tokens of the definitions that the gateway lists in their place, once for each session.
    pub surface: u64,
    /// Tokens of the calls.
    pub spent: Spent,
}

impl Savings {
    /// Tokens without a gateway.
    #[must_use]
    pub fn without(&self) -> u64 {
        self.definitions.saturating_add(self.spent.results)
    }

    /// Tokens with it.
    #[must_use]
    pub fn with(&self) -> u64 {
        self.surface.saturating_add(self.spent.answers).saturating_add(self.spent.other)
    }

    /// Tokens that were spared; below zero where it took more.
    #[must_use]
    pub fn saved(&self) -> i64 {
        fewer(self.without(), self.with())
    }

    /// One line for people.
    #[must_use]
    pub fn line(&self, price: Option<&Price>) -> String {
        let Spent { calls, results, answers, other } = self.spent;
        let saved = self.saved();
        let cost = price.map(|price| price.of(saved.abs()));
        let outcome = if saved < 0 {
            // A share of little is a large number that says nothing.
            let cost = cost.map(|cost| format!(" ({cost})")).unwrap_or_default();
            format!("nothing was saved: {} tokens more than without the gateway{cost}", grouped(saved.unsigned_abs()))
        } else {
            let share = saved as f64 * 100.0 / self.without().max(1) as f64;
            let cost = cost.map(|cost| format!(", {cost}")).unwrap_or_default();
            format!("{} fewer in all ({share:.0} %{cost})", grouped(saved.unsigned_abs()))
        };
        format!(
            "{} call{}: definitions {} tokens instead of {}, results {} instead of {}, searches and the rest {}; {outcome}",
            grouped(calls),
            if calls == 1 { "" } else { "s" },
            grouped(self.surface),
            grouped(self.definitions),
            grouped(answers),
            grouped(results),
            grouped(other),
        )
    }
}

impl Savings {
    /// What the metrics of a running gateway say; `None` where they say nothing of tokens, as in other modes than
    /// `gateway`.
    pub(crate) fn of_samples(samples: &[Sample<'_>]) -> Option<Self> {
        let sample = |name: &str, of: Option<&str>| {
            let is_it = |sample: &&Sample<'_>| sample.name == name && sample.labels.get("of").map(String::as_str) == of;
            samples.iter().find(is_it).map(|sample| sample.value as u64)
        };
        let tokens = |of: &str| sample("tokens_total", Some(of));
        let sessions = sample("sessions_total", None)?.max(1);
        let spent = Spent {
            calls: sample("answered_calls_total", None)?,
            results: tokens("results")?,
            answers: tokens("answers")?,
            other: tokens("other")?,
        };
        let definitions = sample("definition_tokens", Some("servers"))?.saturating_mul(sessions);
        let surface = sample("definition_tokens", Some("gateway"))?.saturating_mul(sessions);
        Some(Self { sessions, definitions, surface, spent })
    }
}

/// By how much the second number is smaller; below zero where it is larger.
pub(crate) fn fewer(without: u64, with: u64) -> i64 {
    i64::try_from(without).unwrap_or(i64::MAX) - i64::try_from(with).unwrap_or(i64::MAX)
}

/// Tokens of the texts of an answer.
pub(crate) fn tokens_of(answer: &Result<Raw, GatewayError>) -> u64 {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        content: Vec<Part>,
    }
    #[derive(Deserialize)]
    struct Part {
        #[serde(default)]
        text: String,
    }
    let raw = match answer {
        Ok(raw) => raw.clone(),
        Err(error) => error.to_result(),
    };
    let parts = raw.read::<Answer>().map(|answer| answer.content).unwrap_or_default();
    parts.iter().map(|part| Estimator::Cl100kBase.count(&part.text) as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::error::{Code, text_result};

    #[test]
    fn a_session_is_told_in_a_line_with_its_price() {
        let mut spent = Spent::default();
        spent.add(Some(45_678), 1_205);
        spent.add(Some(10), 10);
        spent.add(None, 400);
        let savings = Savings { sessions: 1, definitions: 13_102, surface: 740, spent };
        insta::assert_snapshot!(savings.line(None), @"2 calls: definitions 740 tokens instead of 13,102, results 1,215 instead of 45,688, searches and the rest 400; 56,435 fewer in all (96 %)");
        let price = Price { per_million_tokens: 3.0, currency: "EUR".to_owned() };
        assert!(savings.line(Some(&price)).ends_with("(96 %, EUR 0.17)"), "{}", savings.line(Some(&price)));
        let dear = Savings { spent: Spent { other: 1_000, ..Spent::default() }, ..Savings::default() };
        assert_eq!((dear.saved(), price.of(-100)), (-1_000, "-EUR 0.00030".to_owned()));
        insta::assert_snapshot!(dear.line(Some(&price)), @"0 calls: definitions 0 tokens instead of 0, results 0 instead of 0, searches and the rest 1,000; nothing was saved: 1,000 tokens more than without the gateway (EUR 0.00300)");
    }

    #[test]
    fn answers_count_by_their_texts() {
        assert_eq!(tokens_of(&Ok(text_result("one two three", false))), 3);
        let picture = serde_json::json!({"content": [{"type": "image", "data": "AAEC", "mimeType": "image/png"}]});
        assert_eq!(tokens_of(&Ok(Raw::of(&picture))), 0);
        assert!(tokens_of(&Err(GatewayError::new(Code::ViewFailed, "no"))) > 10);
    }
}
