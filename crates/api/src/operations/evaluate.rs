//! `/v1/evaluate`: how well the tools of a catalog are found for queries of which the answers are known.

use std::path::Path;

use contextweaver_bench::eval::collection::{Collection, Source};
use contextweaver_bench::eval::engine::{Engine, RouterEngine};
use contextweaver_bench::eval::matrix;
use contextweaver_bench::eval::record::{Facts, Origin};
use contextweaver_bench::eval::run::{PromptTokens, evaluate};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{document, present, read};
use crate::engines::Engines;
use crate::problem::Problem;

/// Engines that are measured in one request, at most.
const MOST_ENGINES: usize = 8;

/// Queries of one request, at most: what takes longer is for the command.
const MOST_QUERIES: usize = 2_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    #[serde(default, deserialize_with = "present")]
    catalog: Option<Box<RawValue>>,
    /// As the lines of a query file.
    queries: Vec<Box<RawValue>>,
    /// By the names of the scorecard.
    #[serde(default = "default_engine")]
    engines: Vec<String>,
}

fn default_engine() -> Vec<String> {
    vec![matrix::DEFAULT.to_owned()]
}

#[derive(Serialize)]
struct Evaluated<'a> {
    inputs_sha256: &'a str,
    evaluations: Vec<OfEngine>,
}

#[derive(Serialize)]
struct OfEngine {
    engine: String,
    facts: Facts,
}

/// An engine of the scorecard. One with the sentence encoder would need minutes for the tools of a large catalog.
fn engine(name: &str) -> Result<RouterEngine, Problem> {
    let engine = matrix::builtin_engine(name).map_err(|error| Problem::of_member("engines", &error))?;
    match engine.has_encoder() {
        true => Err(Problem::bad(format!("`engines`: `{name}` can only be measured with `contextweaver bench eval`"))),
        false => Ok(engine),
    }
}

pub(super) fn answer(engines: &Engines, body: &[u8]) -> Result<Value, Problem> {
    let request: Request = read(body)?;
    if request.engines.is_empty() || request.engines.len() > MOST_ENGINES {
        return Err(Problem::bad(format!("`engines` must name one to {MOST_ENGINES} engines")));
    }
    if request.queries.len() > MOST_QUERIES {
        return Err(Problem::bad(format!(
            "`queries` has more than {MOST_QUERIES}; measure more with `contextweaver bench eval`"
        )));
    }
    let chosen: Vec<RouterEngine> = request.engines.iter().map(|name| engine(name)).collect::<Result<_, _>>()?;
    let router = engines.router(request.catalog.as_deref())?;
    // A line may not break.
    let lines: Vec<String> = request.queries.iter().map(|query| query.get().replace(['\n', '\r'], " ")).collect();
    let text = lines.join("\n");
    let source = Source { path: Path::new("queries"), bytes: text.as_bytes() };
    let collection = Collection::of_parts("yours", Origin::Public, router.catalog().clone(), source);
    let collection = collection.map_err(|error| Problem::unprocessable(&error))?;
    let measured = chosen.iter().map(|engine| {
        let evaluation = evaluate(&collection, engine, PromptTokens::Count);
        let facts = evaluation.map_err(|error| Problem::unprocessable(&error))?.facts;
        Ok(OfEngine { engine: engine.name().to_owned(), facts })
    });
    let evaluations = measured.collect::<Result<_, Problem>>()?;
    document("evaluate", &Evaluated { inputs_sha256: &collection.inputs_sha256, evaluations })
}
