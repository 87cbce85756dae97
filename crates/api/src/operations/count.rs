//! `/v1/count`: the exact tokens of texts.

use contextweaver_core::text::Estimator;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{document, named_if_present, read};
use crate::engines::Engines;
use crate::problem::Problem;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    text: Texts,
    #[serde(default, deserialize_with = "named_if_present")]
    tokenizer: Option<Estimator>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "`text` must be a string or a list of strings")]
enum Texts {
    One(String),
    Many(Vec<String>),
}

#[derive(Serialize)]
struct Counted {
    tokenizer: Estimator,
    tokens: usize,
    each: Vec<usize>,
}

pub(super) fn answer(_: &Engines, body: &[u8]) -> Result<Value, Problem> {
    let Request { text, tokenizer } = read(body)?;
    let tokenizer = tokenizer.unwrap_or_default();
    let texts = match text {
        Texts::One(text) => vec![text],
        Texts::Many(texts) => texts,
    };
    let each: Vec<usize> = texts.iter().map(|text| tokenizer.count(text)).collect();
    document("count", &Counted { tokenizer, tokens: each.iter().sum(), each })
}
