//! How likely it is that the first tools of a ranking fit the query.
//!
//! A ranking always has a first tool, also for a request that none serves. What tells such a request apart depends on what ranks:
//!
//! | ranked with | what is read |
//! |---|---|
//! | the sentence encoder | the best cosine of the first five |
//! | words, with the semantic table or without | the share of the query that the words of the first tool account for (*coverage*), how much the query says, and the share of it in words that no tool has |
//! | a plain formula (BM25, TF-IDF) | coverage, and the lead of the first over the fifth |
//!
//! A logistic function makes a probability of them. What the encoder and words weigh was fitted to requests of `gold/training`, in
//! pools of one to eight servers, of which 216 are served by no tool; those of words were then set by hand, with the calibration of the
//! ten collections in sight. The present encoder was trained on these requests, so its cosines were mapped to those that the fit was
//! made for: by mean and deviation over the ten collections, without their labels. No label of household, workbench and everyday
//! requests, on which the scorecard says how well requests without a tool are told apart, took part in either. The constants of the
//! plain formulas, which are the control, are older. `docs/model.md` has what was tried and left out.

/// The place, counted from 0, of the tool that the first is compared with: the last of the first five.
pub(super) const LEAD_OVER: usize = 4;

/// What tells whether the first tools fit a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Evidence {
    /// For a plain formula.
    Formula {
        /// The share of the query that the score of the first tool accounts for, in [0, 1].
        coverage: f64,
        /// Its lead over the fifth, at least 0, in words of the rarest kind.
        lead: f64,
    },
    /// For words, with the semantic table or without.
    Words {
        /// The share of the query that the words of the first tool account for, in [0, 1].
        coverage: f64,
        /// What the words of the query are worth together, in words of the rarest kind, above 0.
        said: f64,
        /// The share of that in words that no tool has, in [0, 1].
        unknown: f64,
    },
    /// For the sentence encoder: the best cosine of the first five.
    Model {
        /// The cosine.
        cosine: f64,
    },
}

/// The probability for what was found; 0 where nothing was.
pub(super) fn estimate(evidence: Evidence) -> f64 {
    let sum = match evidence {
        Evidence::Formula { coverage, lead } if coverage > 0.0 => -1.6 + 2.5 * coverage + 1.2 * lead,
        // Half of a long request is more than half of a short one: the root keeps a single word in common from counting little.
        Evidence::Words { coverage, said, unknown } if said > 0.0 => {
            -3.9 + 7.8 * coverage.sqrt() + 1.6 * libm::log1p(said) - 0.8 * unknown
        }
        Evidence::Model { cosine } if cosine > 0.0 => -6.0 + 18.9 * cosine,
        _ => return 0.0,
    };
    1.0 / (1.0 + libm::exp(-sum))
}

#[cfg(test)]
mod tests {
    use super::Evidence::{Formula, Model, Words};
    use super::*;

    #[test]
    fn confidence_grows_with_what_was_found_and_stays_a_probability() {
        let words = |coverage, said, unknown| Words { coverage, said, unknown };
        let nothing = [Formula { coverage: 0.0, lead: 3.0 }, words(0.0, 0.0, 0.0), Model { cosine: -0.1 }];
        assert_eq!(nothing.map(estimate), [0.0; 3]);
        let table = [
            (Formula { coverage: 0.1, lead: 0.0 }, 0.206),
            (Formula { coverage: 0.4, lead: 0.5 }, 0.500),
            (Formula { coverage: 0.9, lead: 1.5 }, 0.921),
            (words(0.0, 2.0, 1.0), 0.050),
            (words(0.1, 2.0, 0.5), 0.481),
            (words(0.1, 4.0, 0.5), 0.677),
            (words(0.5, 4.0, 0.0), 0.985),
            (Model { cosine: 0.2 }, 0.098),
            (Model { cosine: 0.32 }, 0.512),
            (Model { cosine: 0.6 }, 0.995),
        ];
        for (evidence, expected) in table {
            assert!((estimate(evidence) - expected).abs() < 1e-3, "{evidence:?}: {}", estimate(evidence));
        }
        assert!(estimate(Formula { coverage: 1.0, lead: 1e300 }) <= 1.0);
        assert!(estimate(words(1.0, 1e300, 0.0)) <= 1.0);
    }
}
