//! `--price`: what a prompt costs, at the price that whoever asks states.

use anyhow::{Result, bail};
use serde::Serialize;

use contextweaver_core::text::Price;

/// What tokens cost
#[derive(Debug, Default, clap::Args)]
pub(super) struct PriceArgs {
    /// The price of a million tokens that your model reads, in dollars, to show costs too
    #[arg(long, value_name = "PER_MILLION")]
    price: Option<f64>,
}

impl PriceArgs {
    /// The price that is stated, if one is.
    ///
    /// # Errors
    /// What is stated is not a price.
    pub(super) fn stated(&self) -> Result<Option<Price>> {
        self.price.map(|amount| checked(Price::dollars(amount))).transpose()
    }
}

/// The price, where it is one.
///
/// # Errors
/// It is not a price, with what to write instead.
pub(super) fn checked(price: Price) -> Result<Price> {
    match price.problem() {
        None => Ok(price),
        Some(_) => {
            bail!("--price: {} is not a price; give a number, 0 or more", price.per_million_tokens)
        }
    }
}

/// What a prompt costs each time that it is sent, as documents have it.
#[derive(Debug, Serialize)]
pub(super) struct Cost {
    amount: f64,
    currency: String,
    per_million_tokens: f64,
}

impl Cost {
    /// What so many tokens cost at a price.
    pub(super) fn of(price: &Price, tokens: usize) -> Self {
        Self {
            amount: price.amount(signed(tokens)),
            currency: price.currency.clone(),
            per_million_tokens: price.per_million_tokens,
        }
    }
}

/// What so many tokens cost at a price, for people.
pub(super) fn told(price: &Price, tokens: usize) -> String {
    price.of(signed(tokens))
}

/// The price itself, for people.
pub(super) fn rate(price: &Price) -> String {
    format!("{} a million tokens", price.of(1_000_000))
}

fn signed(tokens: usize) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}
