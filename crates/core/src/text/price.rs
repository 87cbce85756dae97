//! What tokens cost, as somebody says who pays for them.
//!
//! No price is built in: prices change, and differ by model, provider and contract.

use serde::{Deserialize, Serialize};

/// The price of tokens that a model reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The price of a million tokens that a model reads.
    pub per_million_tokens: f64,
    /// The sign or name of the currency; a dollar sign by default.
    #[serde(default = "dollar")]
    pub currency: String,
}

fn dollar() -> String {
    "$".to_owned()
}

impl Price {
    /// A price of a million tokens in dollars.
    #[must_use]
    pub fn dollars(per_million_tokens: f64) -> Self {
        Self { per_million_tokens, currency: dollar() }
    }

    /// The price of so many tokens, as a number of six decimals.
    #[must_use]
    pub fn amount(&self, tokens: i64) -> f64 {
        (self.per_million_tokens * tokens as f64).round() / 1e6
    }

    /// The price of so many tokens, to the cent or to two digits.
    #[must_use]
    pub fn of(&self, tokens: i64) -> String {
        let amount = self.per_million_tokens * tokens as f64 / 1e6;
        let digits = if amount.abs() < 0.01 && amount != 0.0 { 5 } else { 2 };
        let space = if self.currency.chars().count() > 1 { " " } else { "" };
        let sign = if amount < 0.0 { "-" } else { "" };
        format!("{sign}{}{space}{:.digits$}", self.currency, amount.abs())
    }

    /// What is wrong with it, with the name of the field, if anything is.
    #[must_use]
    pub fn problem(&self) -> Option<&'static str> {
        let is_price = self.per_million_tokens.is_finite() && self.per_million_tokens >= 0.0;
        let is_currency = (1..=8).contains(&self.currency.chars().count()) && !self.currency.contains(char::is_control);
        match (is_price, is_currency) {
            (false, _) => Some("`per_million_tokens` must be a number, 0 or more"),
            (true, false) => Some("`currency` must have 1 to 8 characters"),
            (true, true) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_numbers_and_have_a_currency() {
        let price = |per_million_tokens, currency: &str| Price { per_million_tokens, currency: currency.to_owned() };
        assert_eq!(price(0.25, "$").problem(), None);
        assert_eq!(price(2.5, "$").of(2_000_000), "$5.00");
        assert_eq!((Price::dollars(3.0).of(339), Price::dollars(3.0).amount(339)), ("$0.00102".to_owned(), 0.001_017));
        for bad in [price(-1.0, "$"), price(f64::NAN, "$"), price(1.0, ""), price(1.0, "too much money")] {
            assert!(bad.problem().is_some(), "{bad:?}");
        }
    }
}
