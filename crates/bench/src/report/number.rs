//! How numbers are written, in one place, so that every page and the terminal agree.
//!
//! Figures between 0 and 1 lose their leading zero, thousands are grouped with a comma, and what is not a finite
//! number is shown as [`MISSING`]: no page ever holds `NaN` or `inf`.

use crate::eval::decision::Standing;
use crate::eval::record::{Estimate, Paired, Verdict};
use crate::eval::statistics::corrected;
use contextweaver_core::text::grouped;

/// Stands where there is nothing to show.
pub const MISSING: &str = "–";

/// `value` with fixed decimals and grouped thousands: `12,345.6`. Negative values have a minus sign (U+2212), zero
/// has none.
pub fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let sign = if value < 0.0 && !is_zero { "−" } else { "" };
    format!("{sign}{}{rest}", grouped(whole))
}

/// A count with grouped thousands: `10,000`.
#[must_use]
pub fn count(value: usize) -> String {
    grouped(value)
}

/// A count with its noun: `1 query`, `2,000 queries`.
#[must_use]
pub fn counted(value: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { many })
}

/// A part with its whole: `2 of 1,000`; nothing of nothing is shown as [`MISSING`].
#[must_use]
pub fn part(part: usize, whole: usize) -> String {
    if whole == 0 { MISSING.to_owned() } else { format!("{} of {}", count(part), count(whole)) }
}

/// A rank, or that there is none.
#[must_use]
pub fn rank(value: Option<usize>) -> String {
    value.map_or_else(|| "not found".to_owned(), count)
}

/// A positive quantity of any magnitude with about three significant digits: `5.61`, `48.3`, `1,204`.
pub fn quantity(value: f64) -> String {
    let decimals = match value.abs() {
        small if small < 10.0 => 2,
        medium if medium < 100.0 => 1,
        _ => 0,
    };
    fixed(value, decimals)
}

/// A share to three decimals without the leading zero: `.612`, `1.000`.
pub fn share(value: f64) -> String {
    without_zero(&fixed(value, 3))
}

/// Two shares that differ, with as many decimals as it takes to see that: `.667` and `.667` as `.66667` and `.66670`.
#[must_use]
pub fn apart(left: f64, right: f64) -> (String, String) {
    let shown = |decimals: usize| [left, right].map(|value| without_zero(&fixed(value, decimals)));
    let [left, right] = (3..12).map(shown).find(|[left, right]| left != right).unwrap_or_else(|| shown(12));
    (left, right)
}

/// A share to two decimals, for the ends of intervals and for narrow cells: `.61`.
pub fn short_share(value: f64) -> String {
    without_zero(&fixed(value, 2))
}

/// A share as a percentage with one decimal: `93.1 %`. Less than the whole is never shown as the whole: `> 99.9 %`.
pub fn percent(value: f64) -> String {
    match value {
        almost_all if (0.9995..1.0).contains(&almost_all) => "> 99.9 %".to_owned(),
        finite if finite.is_finite() => format!("{} %", fixed(finite * 100.0, 1)),
        _ => MISSING.to_owned(),
    }
}

/// A mean with its interval: `.612 [.58, .64]`.
pub fn estimate(value: &Estimate) -> String {
    format!("{} {}", share(value.mean), interval(value))
}

/// The interval alone: `[.58, .64]`.
pub fn interval(value: &Estimate) -> String {
    format!("[{}, {}]", short_share(value.low), short_share(value.high))
}

/// A difference with its sign and its interval, three decimals each, since the interval is read against zero:
/// `+.012 [−.003, +.027]`. An end that three decimals would round to zero gets as many as show its side: `+.0003`.
pub fn difference(value: &Estimate) -> String {
    format!("{} [{}, {}]", signed(value.mean), beside_zero(value.low), beside_zero(value.high))
}

fn beside_zero(value: f64) -> String {
    if value == 0.0 || value.abs() >= 0.0005 || !value.is_finite() {
        return signed(value);
    }
    let decimals = if value.abs() >= 0.00005 { 4 } else { 6 };
    let text = without_zero(&fixed(value, decimals));
    if value > 0.0 { format!("+{text}") } else { text }
}

/// A difference with its sign: `+.012`, `−.012`, `.000`.
pub fn signed(value: f64) -> String {
    let text = share(value);
    let positive = value > 0.0 && text.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if positive { format!("+{text}") } else { text }
}

/// A score of any size: as a share, unless three decimals would round it to nothing: `.612`, `1.25e-9`.
#[must_use]
pub fn score(value: f64) -> String {
    match value.abs() {
        small if small > 0.0 && small < 0.0005 => {
            format!("{}{small:.2e}", if value < 0.0 { "−" } else { "" })
        }
        _ => share(value),
    }
}

/// The difference of two such scores, with its sign.
#[must_use]
pub fn signed_score(value: f64) -> String {
    let text = score(value);
    match text.contains('e') {
        true if value > 0.0 => format!("+{text}"),
        true => text,
        false => signed(value),
    }
}

/// The text of a number without the zero in front of its point.
pub(super) fn without_zero(text: &str) -> String {
    match text.strip_prefix('−') {
        Some(rest) => format!("−{}", without_zero(rest)),
        None => text.strip_prefix('0').filter(|rest| rest.starts_with('.')).unwrap_or(text).to_owned(),
    }
}

/// The smallest difference that so many queries show, and how many more show one of `margin`: the sentence under every gate,
/// without its full stop. `assumed` is the share of the queries that is taken to change for it, where too few did.
#[must_use]
pub fn could_be_seen(difference: f64, margin: f64, more_queries: usize, assumed: Option<f64>) -> String {
    could_be_seen_as(share, difference, margin, more_queries, assumed)
}

/// The same, with figures that `shown` writes.
pub(crate) fn could_be_seen_as(
    shown: fn(f64) -> String,
    difference: f64,
    margin: f64,
    more_queries: usize,
    assumed: Option<f64>,
) -> String {
    let taken = assumed.map_or_else(String::new, |assumed| {
        format!("assuming that {} % of the queries change, ", fixed(assumed * 100.0, 0))
    });
    let mut text = format!("{taken}a difference of {} would be seen four times out of five", shown(difference));
    if more_queries > 0 {
        text.push_str(&format!("; one of {} takes {} more queries", shown(margin), count(more_queries)));
    }
    text
}

/// The word for a verdict.
#[must_use]
pub fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Inconclusive => "inconclusive",
    }
}

/// Stands behind a verdict that another seed of the bootstrap would change.
pub const BY_SEED: &str = " §";

/// The verdict of a difference between engines.
#[must_use]
pub fn concluded(paired: &Paired) -> &'static str {
    if paired.differing == 0 { "same" } else { verdict_name(paired.verdict) }
}

/// The same on a page, marked where it depends on the seed.
#[must_use]
pub fn conclusion(paired: &Paired) -> String {
    format!("{}{}", concluded(paired), if paired.depends_on_seed { BY_SEED } else { "" })
}

/// What a difference says in one of four words: as [`conclusion`], with "same" for a difference within the margin too.
#[must_use]
pub fn standing(paired: &Paired) -> String {
    let standing = Standing::of(paired);
    format!("{standing}{}", if paired.depends_on_seed && standing != Standing::Same { BY_SEED } else { "" })
}

/// The verdicts of differences that stand side by side, corrected for their number, and marked likewise.
#[must_use]
pub fn conclusions(paired: &[&Paired]) -> Vec<String> {
    corrected(paired).iter().map(conclusion).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_documented() {
        let table = [
            (fixed(1_234_567.891, 1), "1,234,567.9"),
            (fixed(-1234.5, 0), "−1,234"),
            (fixed(-0.0004, 3), "0.000"),
            (fixed(f64::INFINITY, 3), "–"),
            (count(999), "999"),
            (count(10_000), "10,000"),
            (count(1_000_000), "1,000,000"),
            (rank(Some(1_204)), "1,204"),
            (rank(None), "not found"),
            (quantity(5.6123), "5.61"),
            (quantity(48.34), "48.3"),
            (quantity(1204.4), "1,204"),
            (share(0.6124), ".612"),
            (share(1.0), "1.000"),
            (share(0.0), ".000"),
            (share(f64::NAN), "–"),
            (apart(0.6666667, 0.8).0, ".667"),
            (apart(0.666667, 0.6667).0, ".66667"),
            (apart(0.666667, 0.6667).1, ".66670"),
            (apart(0.5, 0.5).0, ".500000000000"),
            (short_share(0.005), ".01"),
            (percent(0.9314), "93.1 %"),
            (percent(0.9997), "> 99.9 %"),
            (percent(1.0), "100.0 %"),
            (percent(f64::NAN), "–"),
            (signed(0.012), "+.012"),
            (signed(-0.012), "−.012"),
            (signed(0.0001), ".000"),
            (signed(f64::NAN), "–"),
            (estimate(&Estimate { mean: 0.612, low: 0.58, high: 0.64 }), ".612 [.58, .64]"),
            (difference(&Estimate { mean: -0.1, low: -0.2, high: 0.0 }), "−.100 [−.200, .000]"),
            (difference(&Estimate { mean: 0.016, low: 0.000284, high: 0.03 }), "+.016 [+.0003, +.030]"),
            (difference(&Estimate { mean: -0.01, low: -0.02, high: -0.000002 }), "−.010 [−.020, −.000002]"),
        ];
        for (shown, expected) in table {
            assert_eq!(shown, expected);
        }
    }
}
