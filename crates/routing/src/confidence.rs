//! How likely it is that the first tools of a ranking fit the query.
//!
//! Two things tell a query that a tool answers from one that none does: the best tool accounts for most of what the
//! query says (*coverage*), and it stands out from the tools that share a word with the query by chance (its *lead* over
//! the fifth below it, counted in words of the rarest kind). A logistic function makes a probability of them.
//!
//! The constants were fitted to whether one of the first five tools is relevant, on collections of equal weight, each
//! query asked with its tools and again with its tools removed from the catalog. Fitted without any one collection they
//! are nearly the same, so they are rounded. Queries with and without a fitting tool are thus assumed to be equally
//! likely beforehand: a site whose queries nearly always have a tool will find that it is right more often than this
//! says.
//!
//! Tried and left out: the margin to the second tool, which copies of one tool make meaningless; the share of unknown
//! words, which coverage holds already; the share of the tool's name in the query, which helps where names are sentences
//! and misleads where they are single words.

/// The place, counted from 0, of the tool that the first is compared with: the last of the first five.
pub(super) const LEAD_OVER: usize = 4;

const BIAS: f64 = -1.6;
const COVERAGE: f64 = 2.5;
const LEAD: f64 = 1.2;

/// The probability for a coverage in [0, 1] and a lead of at least 0, in words of the rarest kind. A query that found
/// nothing has probability 0.
pub(super) fn estimate(coverage: f64, lead: f64) -> f64 {
    if coverage <= 0.0 {
        return 0.0;
    }
    1.0 / (1.0 + libm::exp(-(BIAS + COVERAGE * coverage + LEAD * lead)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_grows_with_coverage_and_lead_and_stays_a_probability() {
        assert_eq!(estimate(0.0, 3.0), 0.0);
        let table = [(0.1, 0.0, 0.206), (0.4, 0.0, 0.354), (0.4, 0.5, 0.5), (0.9, 1.5, 0.921)];
        for (coverage, lead, expected) in table {
            assert!(
                (estimate(coverage, lead) - expected).abs() < 1e-3,
                "{coverage} {lead}: {}",
                estimate(coverage, lead)
            );
        }
        assert!(estimate(1.0, 1e300) <= 1.0);
    }
}
