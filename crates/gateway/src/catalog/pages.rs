//! The lists that a client is given, page by page.
//!
//! A list is serialised once for each view: a thousand tools are a megabyte, and every client asks for them. Some
//! clients refuse messages over 1 MiB and the whole of a list in which one tool is not as they expect, so pages are
//! bounded in bytes, and a definition whose input is not an object is left out.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::routes::Routes;
use super::shelf::Shelf;
use crate::protocol::message::{Members, Outcome, Raw, RpcError};
use crate::surface::meta_tools::MetaTool;
use crate::surface::mode::Mode;

/// Entries of a page, at most.
const MOST_ENTRIES: usize = 1_000;

/// Bytes of the entries of a page, at most, unless a single one has more: with what is around them less than 1 MiB.
const MOST_BYTES: usize = 1_000_000;

/// The pages of a list, each the result that is sent.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    generation: u64,
    results: Vec<Raw>,
}

impl Pages {
    /// The list called `key`.
    fn of(key: &str, generation: u64, entries: impl Iterator<Item = String>) -> Self {
        let mut pages: Vec<String> = Vec::new();
        let (mut page, mut count) = (String::new(), 0);
        for entry in entries {
            if count == MOST_ENTRIES || (count > 0 && page.len() + entry.len() > MOST_BYTES) {
                pages.push(std::mem::take(&mut page));
                count = 0;
            }
            if count > 0 {
                page.push(',');
            }
            // A catalog's file may break lines between tokens; a message is one line.
            page.extend(entry.chars().map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c }));
            count += 1;
        }
        pages.push(page);
        let last = pages.len() - 1;
        let result = |(at, page): (usize, &String)| {
            let next = if at < last { format!(r#","nextCursor":"{generation}.{}""#, at + 1) } else { String::new() };
            Raw::of_text(format!(r#"{{"{key}":[{page}]{next}}}"#))
        };
        Self { generation, results: pages.iter().enumerate().map(result).collect() }
    }

    /// The entries of all pages.
    pub(crate) fn entries(&self) -> Vec<Box<RawValue>> {
        let of_page = |result: &Raw| -> Vec<Box<RawValue>> {
            let members: Members<'_> = result.read().unwrap_or_default();
            members.0.first().and_then(|(_, list)| serde_json::from_str(list.get()).ok()).unwrap_or_default()
        };
        self.results.iter().flat_map(of_page).collect()
    }

    /// The result of a request for the list; a cursor names the generation that it belongs to.
    pub(crate) fn answer(&self, cursor: Option<&str>) -> Outcome {
        let at = match cursor {
            None => Some(0),
            Some(cursor) => {
                let written = cursor.split_once('.');
                written.filter(|(of, _)| *of == self.generation.to_string()).and_then(|(_, at)| at.parse().ok())
            }
        };
        at.and_then(|at: usize| self.results.get(at)).cloned().ok_or_else(|| {
            let reason = "does not belong to the current list; list again from the start";
            RpcError::invalid_params(format!("the cursor `{}` {reason}", cursor.unwrap_or_default()))
        })
    }
}

/// The lists that a mode shows.
#[derive(Debug)]
pub(crate) struct Lists {
    /// The pages of `tools/list`.
    pub(crate) tools: Pages,
    /// The pages of `resources/list`.
    pub(crate) resources: Pages,
    /// The pages of `resources/templates/list`.
    pub(crate) templates: Pages,
    /// The pages of `prompts/list`.
    pub(crate) prompts: Pages,
}

/// The entries that lists are made of.
pub(super) struct Entries<'e> {
    /// The number of the view that they belong to.
    pub(super) generation: u64,
    /// The tools of the upstreams.
    pub(super) tools: Option<&'e Shelf>,
    /// Their published names, in the order of the shelf.
    pub(super) tool_names: &'e [String],
    /// The prompts of the upstreams.
    pub(super) prompts: Option<&'e Shelf>,
    /// Their published names, in the order of the shelf.
    pub(super) prompt_names: &'e [String],
    /// Whether there are resources.
    pub(super) has_resources: bool,
    /// The resources and templates, each once.
    pub(super) routes: &'e Routes,
}

impl Lists {
    /// The lists that `mode` shows of these entries.
    pub(super) fn of(mode: Mode, entries: &Entries<'_>) -> Self {
        let generation = entries.generation;
        let offered = MetaTool::offered(mode, entries.has_resources, entries.prompts.is_some());
        let own = offered.map(|tool| tool.definition(mode).to_string());
        if mode == Mode::Gateway {
            return Self {
                tools: Pages::of("tools", generation, own),
                resources: Pages::default(),
                templates: Pages::default(),
                prompts: Pages::default(),
            };
        }
        let texts = |entries: &[Box<RawValue>]| entries.iter().map(|entry| entry.get().to_owned()).collect::<Vec<_>>();
        Self {
            tools: Pages::of("tools", generation, own.chain(tools(mode, entries.tools, entries.tool_names))),
            resources: Pages::of("resources", generation, texts(entries.routes.resources()).into_iter()),
            templates: Pages::of("resourceTemplates", generation, texts(entries.routes.templates()).into_iter()),
            prompts: Pages::of("prompts", generation, prompts(entries.prompts, entries.prompt_names)),
        }
    }
}

/// The tools of the upstreams, as the mode shows them.
fn tools<'e>(mode: Mode, shelf: Option<&'e Shelf>, names: &'e [String]) -> impl Iterator<Item = String> {
    let items = shelf.map(|shelf| shelf.router.catalog().items()).unwrap_or_default();
    items.iter().zip(names).enumerate().filter_map(move |(at, (item, name))| match mode {
        Mode::Passthrough => {
            let shown = renamed(&item.definition(), name).and_then(|definition| with_object_input(&definition));
            if shown.is_none() {
                tracing::warn!(id = %item.id, "not listed: its `inputSchema` is not the schema of an object");
            }
            shown
        }
        Mode::Gateway | Mode::Proxy => {
            let card = shelf?.router.deck().shown(u32::try_from(at).ok()?);
            let stripped = json!({"name": name, "description": card.description(), "inputSchema": {"type": "object"}});
            Some(stripped.to_string())
        }
    })
}

/// The prompts of the upstreams under their published names.
fn prompts<'e>(shelf: Option<&'e Shelf>, names: &'e [String]) -> impl Iterator<Item = String> {
    let items = shelf.map(|shelf| shelf.router.catalog().items()).unwrap_or_default();
    items.iter().zip(names).filter_map(|(item, name)| renamed(item.raw.as_ref()?.get(), name))
}

/// The definition under another name, all else as it came.
fn renamed(definition: &str, name: &str) -> Option<String> {
    let mut members: Members<'_> = serde_json::from_str(definition).ok()?;
    members.set("name", &Raw::of(name));
    serde_json::to_string(&members).ok()
}

/// The definition with `"type": "object"` where its input does not say so; `None` when it says something else.
fn with_object_input(definition: &str) -> Option<String> {
    let mut members: Members<'_> = serde_json::from_str(definition).ok()?;
    let input = members.get("inputSchema").map_or("{}", RawValue::get).to_owned();
    let mut schema: Members<'_> = serde_json::from_str(&input).ok()?;
    match schema.get("type").map(|kind| serde_json::from_str::<Value>(kind.get()).unwrap_or_default()) {
        Some(Value::String(kind)) if kind == "object" => return Some(definition.to_owned()),
        None => schema.set("type", &Raw::of("object")),
        Some(_) => return None,
    }
    let schema = Raw::of(&schema);
    members.set("inputSchema", &schema);
    serde_json::to_string(&members).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(pages: &Pages, cursor: Option<&str>) -> Value {
        pages.answer(cursor).unwrap().read().unwrap()
    }

    #[test]
    fn pages_are_bounded_in_bytes_and_entries() {
        let large = |bytes: usize| serde_json::to_string(&"x".repeat(bytes - 2)).unwrap();
        for (sizes, expected) in [
            (vec![10; 1000], vec![1000]),
            (vec![10; 1001], vec![1000, 1]),
            (vec![300_000; 7], vec![3, 3, 1]),
            (vec![10, 2_000_000, 10], vec![1, 1, 1]),
            (vec![], vec![0]),
        ] {
            let pages = Pages::of("tools", 3, sizes.iter().map(|size| large(*size)));
            let (mut found, mut cursor) = (Vec::new(), None::<String>);
            loop {
                let answer = pages.answer(cursor.as_deref()).unwrap();
                let read: Value = answer.read().unwrap();
                found.push(read["tools"].as_array().unwrap().len());
                assert!(answer.bytes().len() < 1 << 20 || sizes.contains(&2_000_000));
                cursor = read["nextCursor"].as_str().map(str::to_owned);
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        let pages = Pages::of("tools", 3, (0..1500).map(|number| number.to_string()));
        assert_eq!(page(&pages, Some("3.1"))["tools"][0], 1000);
        for cursor in ["2.1", "3.2", "3.-1", "1", "", "3.1x"] {
            let error = pages.answer(Some(cursor)).unwrap_err();
            assert_eq!(error.code, crate::protocol::message::INVALID_PARAMS, "{cursor}");
        }
    }

    #[test]
    fn a_tool_whose_input_is_not_typed_does_not_void_the_list() {
        let cases = [
            (
                r#"{"name":"a","inputSchema":{"type":"object","x":1.0}}"#,
                Some(r#"{"name":"a","inputSchema":{"type":"object","x":1.0}}"#),
            ),
            (
                r#"{"name":"a","inputSchema":{"x":1.0},"y":2}"#,
                Some(r#"{"name":"a","inputSchema":{"x":1.0,"type":"object"},"y":2}"#),
            ),
            (r#"{"name":"a"}"#, Some(r#"{"name":"a","inputSchema":{"type":"object"}}"#)),
            (r#"{"name":"a","inputSchema":{"type":"array"}}"#, None),
            (r#"{"name":"a","inputSchema":{"type":["object","null"]}}"#, None),
            (r#"{"name":"a","inputSchema":true}"#, None),
        ];
        for (definition, expected) in cases {
            assert_eq!(with_object_input(definition).as_deref(), expected);
        }
    }

    #[test]
    fn a_new_name_leaves_the_rest_as_it_was() {
        let definition = r#"{"execution":{"taskSupport":"x"},"name":"a","z":1.50}"#;
        assert_eq!(renamed(definition, "s__a").unwrap(), r#"{"execution":{"taskSupport":"x"},"name":"s__a","z":1.50}"#);
    }
}
