//! What anybody would do instead of a summary, in the same number of tokens.
//!
//! A summariser is worth its code only where it keeps more than these. Where they can be better, they are: the count of a
//! JSON array counts its items, and whatever the cap leaves is used.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use contextweaver_context::summary::Summarizer;
use contextweaver_core::text::{Estimator, largest};

/// Where something is left out.
const GAP: &str = "\n…\n";

/// Bytes of a text that can stand in one token at most, nearly always; more are not looked at.
const BYTES_PER_TOKEN: usize = 32;

/// A way to shorten a text without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// The first tokens.
    First,
    /// Whole lines from the beginning; the first tokens where not even one line fits.
    Lines,
    /// The beginning and the end, half of the tokens each.
    HeadTail,
    /// The number of lines and characters, or of the items of an array, then the beginning and the end.
    CountHeadTail,
}

impl Control {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::First, Self::Lines, Self::HeadTail, Self::CountHeadTail];

    /// The name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first tokens",
            Self::Lines => "first lines",
            Self::HeadTail => "head + tail",
            Self::CountHeadTail => "count + head + tail",
        }
    }
}

impl Summarizer for Control {
    fn summarize(&self, content: &str, _: &str, cap: usize, estimator: Estimator) -> String {
        if content.len() <= cap.saturating_mul(BYTES_PER_TOKEN) && estimator.count(content) <= cap {
            return content.to_owned();
        }
        match self {
            Self::First => head(content, cap, estimator).to_owned(),
            Self::Lines => lines(content, cap, estimator).to_owned(),
            Self::HeadTail => both("", content, cap, estimator),
            Self::CountHeadTail => both(&format!("{}\n", size(content)), content, cap, estimator),
        }
    }
}

/// The number of items of an array, otherwise of lines and characters.
fn size(content: &str) -> Cow<'static, str> {
    match serde_json::from_str::<Vec<IgnoredAny>>(content) {
        Ok(items) => format!("{} items", items.len()).into(),
        Err(_) => format!("{} lines, {} characters", content.lines().count(), content.chars().count()).into(),
    }
}

/// The longest beginning of at most `cap` tokens.
fn head(content: &str, cap: usize, estimator: Estimator) -> &str {
    let within = content.char_indices().map(|(at, _)| at).chain([content.len()]);
    let ends: Vec<usize> = within.take_while(|end| *end <= cap.saturating_mul(BYTES_PER_TOKEN)).collect();
    let until = |at: usize| content.get(..ends.get(at).copied().unwrap_or_default()).unwrap_or_default();
    until(largest(ends.len().saturating_sub(1), |at| estimator.count(until(at)) <= cap))
}

/// The longest end of at most `cap` tokens.
pub(super) fn tail(content: &str, cap: usize, estimator: Estimator) -> &str {
    let first = content.len().saturating_sub(cap.saturating_mul(BYTES_PER_TOKEN));
    let starts: Vec<usize> = (first..=content.len()).rev().filter(|at| content.is_char_boundary(*at)).collect();
    let from = |at: usize| content.get(starts.get(at).copied().unwrap_or(content.len())..).unwrap_or_default();
    from(largest(starts.len().saturating_sub(1), |at| estimator.count(from(at)) <= cap))
}

fn lines(content: &str, cap: usize, estimator: Estimator) -> &str {
    let beginning = head(content, cap, estimator);
    match beginning.rfind('\n') {
        Some(end) => beginning.get(..end).unwrap_or_default(),
        None => beginning,
    }
}

fn both(before: &str, content: &str, cap: usize, estimator: Estimator) -> String {
    let written =
        |each: usize| format!("{before}{}{GAP}{}", head(content, each, estimator), tail(content, each, estimator));
    // Tokens of parts do not add up exactly, so the halves shrink until the whole fits.
    let each = largest(cap.div_ceil(2), |each| estimator.count(&written(each)) <= cap);
    written(each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_use_their_tokens_and_no_more() {
        let log: String = (0..400).map(|number| format!("line {number}: all is well, día {}\n", number % 7)).collect();
        let array = serde_json::to_string(&(0..3000).collect::<Vec<usize>>()).unwrap();
        let spaces = " ".repeat(5000);
        for content in [&log, &array, &spaces, &String::new()] {
            for control in Control::ALL {
                for cap in [20, 150, 600] {
                    let text = control.summarize(content, "", cap, Estimator::Cl100kBase);
                    assert!(Estimator::Cl100kBase.count(&text) <= cap, "{} {cap}", control.name());
                }
            }
        }
        let shown = |control: Control, content: &str| control.summarize(content, "", 40, Estimator::Cl100kBase);
        assert!(log.starts_with(&shown(Control::First, &log)));
        assert!(log.starts_with(&format!("{}\n", shown(Control::Lines, &log))));
        assert!(shown(Control::HeadTail, &log).ends_with("399: all is well, día 0\n"));
        assert!(shown(Control::CountHeadTail, &log).starts_with("400 lines, "));
        assert!(shown(Control::CountHeadTail, &array).starts_with("3000 items\n[0,1,2,"));
        assert_eq!(shown(Control::HeadTail, "short"), "short");
    }
}
