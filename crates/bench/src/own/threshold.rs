//! Whether a figure keeps its bound, in the sentence that every gate has for it.

use crate::report::number::{apart, count, share};

/// A bound with what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Threshold {
    /// Whether it holds.
    pub holds: bool,
    /// What was found beside the bound, as a sentence without its full stop.
    pub said: String,
}

/// A mean in [0, 1] that may be `least` at least; `what` is its name. It is to be the mean as it is: a rounded one may be on
/// the other side. Sums of shares differ in their last digits by the order in which they are made, which is no reason to fail.
#[must_use]
pub fn at_least(what: &str, mean: f64, least: f64) -> Threshold {
    let holds = mean >= least - 1e-9;
    let beside = if holds { "not below" } else { "below" };
    let (mean, least) = if holds { (share(mean), share(least)) } else { apart(mean, least) };
    Threshold { holds, said: format!("{what} is {mean}, {beside} {least}") }
}

/// The tokens of all definitions of a catalog, of which there may be `most`.
#[must_use]
pub fn at_most(tokens: usize, most: usize) -> Threshold {
    let holds = tokens <= most;
    let beside = if holds { "not more" } else { "more" };
    Threshold { holds, said: format!("all definitions take {} tokens, {beside} than {}", count(tokens), count(most)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_says_whether_it_holds() {
        let table = [
            (at_least("recall@5", 0.5, 0.25), true, "recall@5 is .500, not below .250"),
            (at_least("recall@5", 0.1 + 0.2, 0.3), true, "recall@5 is .300, not below .300"),
            (at_least("recall@5", 0.3 - 1e-10, 0.3), true, "recall@5 is .300, not below .300"),
            (at_least("recall@5", 2.0 / 3.0, 0.666_667), false, "recall@5 is .6666667, below .6666670"),
            (at_least("recall@5", f64::NAN, 0.0), false, "recall@5 is –, below .000"),
            (at_most(5_000, 5_000), true, "all definitions take 5,000 tokens, not more than 5,000"),
            (at_most(5_001, 5_000), false, "all definitions take 5,001 tokens, more than 5,000"),
        ];
        for (threshold, holds, said) in table {
            assert_eq!(threshold, Threshold { holds, said: said.to_owned() });
        }
    }
}
