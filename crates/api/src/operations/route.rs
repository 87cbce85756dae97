//! `/v1/route`: the tools for a query, as cards or as the list of a model's request.

use std::num::NonZeroUsize;

use contextweaver_core::catalog::{CallNames, Safety, SelectableItem, ToolFormat};
use contextweaver_routing::{Filter, History, Request as Query, Route, Router};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{document, present, read, whole};
use crate::engines::Engines;
use crate::problem::Problem;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    query: String,
    #[serde(default, deserialize_with = "present")]
    catalog: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "whole")]
    top_k: Option<NonZeroUsize>,
    /// The list of a model's request in place of cards.
    #[serde(rename = "as", default, deserialize_with = "present")]
    tools_as: Option<String>,
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    exclude: Vec<String>,
    #[serde(default)]
    exclude_tags: Vec<String>,
    #[serde(default)]
    no_destructive: bool,
    #[serde(default)]
    pins: Vec<String>,
    #[serde(default, deserialize_with = "whole")]
    quota: Option<NonZeroUsize>,
    #[serde(default)]
    called: Vec<String>,
    #[serde(default, deserialize_with = "present")]
    last_result: Option<String>,
}

pub(super) fn answer(engines: &Engines, body: &[u8]) -> Result<Value, Problem> {
    let request: Request = read(body)?;
    let format = request.tools_as.as_deref().map(ToolFormat::of_request).transpose();
    let format = format.map_err(|error| Problem::bad(format!("`as`: {error}")))?;
    if request.query.trim().is_empty() {
        return Err(Problem::refused("`query`: it is empty; say what you want done"));
    }
    let router = engines.router(request.catalog.as_deref())?;
    let query = Query {
        query: request.query,
        top_k: request.top_k.map(NonZeroUsize::get),
        filter: Filter {
            exclude_ids: request.exclude,
            exclude_tags: request.exclude_tags,
            allow_namespaces: request.namespaces,
            allow_tags: request.tags,
            refuse_safety: request.no_destructive.then_some(Safety::Destructive).into_iter().collect(),
            callable_only: format.is_some(),
            pins: request.pins,
            namespace_quota: request.quota,
        },
        history: History { called: request.called, last_summary: request.last_result, available: Vec::new() },
    };
    let route = router.route(&query).map_err(|error| Problem::unprocessable(&error))?;
    match format {
        None => document("route", &route),
        Some(format) => document("route tools", &tools(&router, &route, format)),
    }
}

/// The tools found, in full, and under which name each is called.
fn tools(router: &Router, route: &Route, format: ToolFormat) -> Value {
    let catalog = router.catalog();
    let names = CallNames::new(catalog.items(), format);
    let found: Vec<&SelectableItem> = route.choices.iter().filter_map(|choice| catalog.get(choice.card.id())).collect();
    let called = names.iter().filter(|(_, id)| found.iter().any(|item| item.id == *id));
    let called: Map<String, Value> = called.map(|(name, id)| (name.to_owned(), id.into())).collect();
    let renamed =
        found.iter().filter_map(|item| Some((names.name(&item.id)?.to_owned(), json!(names.arguments(&item.id)?))));
    let renamed: Map<String, Value> = renamed.collect();
    let mut tools = json!({
        "confidence": route.confidence,
        "no_tool_fits": route.no_tool_fits,
        "tools": format.write(found, &names),
        "names": called,
    });
    if !renamed.is_empty() {
        tools["arguments"] = Value::Object(renamed);
    }
    tools
}
