//! How likely it is that the first tools of a ranking fit the query.
//!
//! Two things tell a query that a tool answers from one that none does: how near the best of the first five comes to it, and how far
//! it stands out from the tools that share a word with the query by chance (its *lead* over the fifth below it, counted in words
//! of the rarest kind). Near is the cosine by the sentence encoder where there is one, else by the semantic table; a ranking by
//! words alone has the share of the query that the best tool accounts for (*coverage*). A logistic function makes a probability of
//! them.
//!
//! The constants with meaning were fitted to whether one of the first five tools is relevant, with each query asked once, on twelve
//! sets of queries of equal weight (the ten collections, and requests to six servers as people speak and as models ask), and judged
//! on sets left out. Those of coverage were fitted on queries that were asked with their tools and again with their tools removed.
//!
//! Tried and left out: coverage beside a cosine, which adds nothing; the margin to the second tool, which copies of one tool make
//! meaningless; the share of unknown words, which coverage holds already; the share of the tool's name in the query, which helps
//! where names are sentences and misleads where they are single words.

/// The place, counted from 0, of the tool that the first is compared with: the last of the first five.
pub(super) const LEAD_OVER: usize = 4;

/// How near the best of the first tools comes to a query, each in [0, 1].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Nearness {
    /// The share of the query that its words account for.
    Coverage(f64),
    /// The cosine by the semantic table.
    Table(f64),
    /// The cosine by the sentence encoder.
    Model(f64),
}

/// The probability for what is found and a lead of at least 0, in words of the rarest kind. A query that found nothing has
/// probability 0.
pub(super) fn estimate(nearness: Nearness, lead: f64) -> f64 {
    let (bias, value, weight, of_lead) = match nearness {
        Nearness::Coverage(share) => (-1.6, share, 2.5, 1.2),
        Nearness::Table(cosine) => (-2.4, cosine, 4.7, 2.6),
        Nearness::Model(cosine) => (-3.6, cosine, 8.2, 1.8),
    };
    if value <= 0.0 {
        return 0.0;
    }
    1.0 / (1.0 + libm::exp(-(bias + weight * value + of_lead * lead)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_grows_with_nearness_and_lead_and_stays_a_probability() {
        use Nearness::{Coverage, Model, Table};
        assert_eq!([Coverage(0.0), Table(0.0), Model(-0.1)].map(|nearness| estimate(nearness, 3.0)), [0.0; 3]);
        let table = [
            (Coverage(0.1), 0.0, 0.206),
            (Coverage(0.4), 0.0, 0.354),
            (Coverage(0.4), 0.5, 0.5),
            (Coverage(0.9), 1.5, 0.921),
            (Table(0.4), 0.0, 0.373),
            (Table(0.7), 0.5, 0.900),
            (Model(0.3), 0.0, 0.242),
            (Model(0.6), 1.0, 0.958),
        ];
        for (nearness, lead, expected) in table {
            assert!(
                (estimate(nearness, lead) - expected).abs() < 1e-3,
                "{nearness:?} {lead}: {}",
                estimate(nearness, lead)
            );
        }
        assert!(estimate(Coverage(1.0), 1e300) <= 1.0);
    }
}
