//! Measures texts in units that add up.
//!
//! For the exact vocabularies a unit is a token: every section begins with a bracket, and both pre-tokenisers split
//! before a bracket that follows a line break, so the tokens of sections with their separators add up to those of the
//! whole. Estimates that round do not add up; their unit is what they round, the character.

use contextweaver_core::text::Estimator;

/// Counts texts in units.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meter {
    estimator: Estimator,
}

impl Meter {
    pub(super) fn new(estimator: Estimator) -> Self {
        Self { estimator }
    }

    /// The estimator that counts tokens.
    pub(super) fn estimator(self) -> Estimator {
        self.estimator
    }

    /// The cost of `text` in units.
    pub(super) fn units(self, text: &str) -> usize {
        match self.estimator {
            Estimator::Cl100kBase | Estimator::O200kBase => self.estimator.count(text),
            Estimator::CharsDiv4 => text.chars().count(),
        }
    }

    /// The number of units that fit into `tokens` tokens.
    pub(super) fn limit(self, tokens: usize) -> usize {
        match self.estimator {
            Estimator::Cl100kBase | Estimator::O200kBase => tokens,
            Estimator::CharsDiv4 => tokens.saturating_mul(4).saturating_add(3),
        }
    }

    /// The tokens that `units` units make up.
    pub(super) fn tokens(self, units: usize) -> usize {
        match self.estimator {
            Estimator::Cl100kBase | Estimator::O200kBase => units,
            Estimator::CharsDiv4 => units / 4,
        }
    }
}
