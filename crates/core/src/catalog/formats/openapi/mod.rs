//! OpenAPI 3 documents: each operation is a tool.
//!
//! Its arguments are its parameters and the members of its request body, in one schema. What a program needs to make the
//! request (method, path, servers, where each argument goes and how it is written there) is in the metadata.
//!
//! The document is read member by member, and not through `openapiv3` or `oas3`. Their typed models know one of the two
//! dialects (3.0 and 3.1), refuse a document for a member that no tool is made of, and lose what they do not know. They
//! leave references to the caller, which is the hard part, since what those expand to has to be bounded; and schemas have
//! to come out as plain JSON in any case.

mod references;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use self::references::{Expansion, References, place_alternatives};
use super::schema::{each_schema, exclusive_bounds, nullable_types};
use super::{Part, blurb};
use crate::catalog::load::{Draft, MAX_NESTING, settle_safety, shortened, too_deep, version_text};
use crate::catalog::{Fault, Safety, SelectableItem, nesting_depth};

/// The methods of a path item, in the order of the specification, and what HTTP says about them: a safe method changes
/// nothing, and `DELETE` removes.
const METHODS: [(&str, Safety); 9] = [
    ("get", Safety::ReadOnly),
    ("put", Safety::Undeclared),
    ("post", Safety::Undeclared),
    ("delete", Safety::Destructive),
    ("options", Safety::ReadOnly),
    ("head", Safety::ReadOnly),
    ("patch", Safety::Undeclared),
    ("trace", Safety::ReadOnly),
    ("query", Safety::ReadOnly),
];

type Metadata = BTreeMap<String, Value>;

/// Where parameters go.
const PLACES: [&str; 5] = ["path", "query", "header", "cookie", "querystring"];

/// How the value of a parameter may be written.
const STYLES: [&str; 8] =
    ["simple", "form", "label", "matrix", "spaceDelimited", "pipeDelimited", "deepObject", "cookie"];

/// What a sentence ends with.
const ENDS: [char; 8] = ['.', '!', '?', ':', '…', '。', '！', '？'];

/// The argument that is a whole request body.
const BODY: &str = "body";

/// Addresses of servers with more bytes, and more variables of one, are not read.
const LONGEST_ADDRESS: usize = 2000;
const MOST_VARIABLES: usize = 16;

pub(in crate::catalog) fn is_document(members: &Map<String, Value>) -> bool {
    let version = members.get("openapi").or_else(|| members.get("swagger"));
    version.is_some_and(|version| version.is_string() || version.is_number())
        && ["paths", "components", "webhooks", "info"].iter().any(|key| members.contains_key(*key))
}

pub(super) fn read(document: Map<String, Value>) -> Result<Vec<Part>, Fault> {
    let version = document.get("openapi").map(|version| match version {
        // In YAML `3.1` is a number.
        Value::String(version) => version.clone(),
        version => version.to_string(),
    });
    if !version.as_ref().is_some_and(|version| version == "3" || version.starts_with("3.")) {
        let found = version.map_or("Swagger 2.0".to_owned(), |version| format!("OpenAPI {}", shortened(&version)));
        return Err(Fault::new(format!("a document of {found}")).with_fix("convert it to OpenAPI 3.0 or 3.1"));
    }
    let text = |pointer: &str| document.get("info")?.get(pointer)?.as_str();
    let server = Server {
        name: text("title").map(shortened).filter(|title| !title.trim().is_empty()),
        description: text("summary").and_then(blurb).or_else(|| text("description").and_then(blurb)),
        version: document.get("info").and_then(|info| version_text(info.get("version")?)),
        urls: urls(document.get("servers")),
    };
    let document = Value::Object(document);
    let mut references = References::new(&document);
    let mut parts = Vec::new();
    let mut names = BTreeSet::new();
    for (path, item) in document.get("paths").and_then(Value::as_object).into_iter().flatten() {
        if path.starts_with("x-") {
            continue;
        }
        let item = match references.object(item) {
            Ok(item) => item,
            Err(fault) => {
                let inside = format!("paths[{:?}]", shortened(path));
                parts.push(Part { inside, name: String::new(), draft: Err(fault) });
                continue;
            }
        };
        for (method, safety) in METHODS {
            let Some(operation) = item.get(method) else { continue };
            let inside = format!("paths[{:?}].{method}", shortened(path));
            let given = operation.get("operationId").and_then(Value::as_str).filter(|id| !id.trim().is_empty());
            let name = given.map_or_else(|| made_name(method, path, &mut names), str::to_owned);
            let place = Operation { method, safety, path, name: &name, item, server: &server };
            let draft = place.read(operation, &mut references);
            parts.push(Part { inside, name, draft });
        }
    }
    Ok(parts)
}

/// What all tools of a document share.
struct Server {
    name: Option<String>,
    description: Option<String>,
    version: Option<String>,
    urls: Vec<String>,
}

fn urls(servers: Option<&Value>) -> Vec<String> {
    const MOST: usize = 4;
    let servers = servers.and_then(Value::as_array).into_iter().flatten();
    servers.filter_map(|server| blurb(&address(server)?)).take(MOST).collect()
}

/// The address of a server, with the defaults of its variables.
fn address(server: &Value) -> Option<String> {
    let mut url = server.get("url")?.as_str().filter(|url| url.len() <= LONGEST_ADDRESS)?.to_owned();
    for (name, variable) in
        server.get("variables").and_then(Value::as_object).into_iter().flatten().take(MOST_VARIABLES)
    {
        let default = variable.get("default").and_then(Value::as_str).filter(|text| text.len() <= LONGEST_ADDRESS);
        if let Some(default) = default {
            url = url.replacen(&format!("{{{name}}}"), default, 1);
        }
    }
    Some(url)
}

/// The names between braces in a path.
fn places(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0)).filter(|name| !name.is_empty())
}

/// `get_pets_id` for `GET /pets/{id}`, with a number behind where that is taken.
fn made_name(method: &str, path: &str, names: &mut BTreeSet<String>) -> String {
    let words = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = std::iter::once(method).chain(words).collect::<Vec<_>>().join("_");
    let mut free = name.clone();
    let mut number = 1;
    while !names.insert(free.clone()) {
        number += 1;
        free = format!("{name}_{number}");
    }
    free
}

/// An operation and where it is.
struct Operation<'o, 'd> {
    method: &'static str,
    safety: Safety,
    path: &'d str,
    name: &'o str,
    item: &'d Map<String, Value>,
    server: &'o Server,
}

impl<'d> Operation<'_, 'd> {
    fn read(&self, operation: &'d Value, references: &mut References<'d>) -> Result<Draft, Fault> {
        let operation = references.object(operation)?;
        let text =
            |key: &str| operation.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        let description = match (text("summary"), text("description")) {
            (Some(summary), Some(description)) if description.starts_with(summary.trim_end_matches('.')) => {
                description.to_owned()
            }
            (Some(summary), Some(description)) => {
                // Cards show both in one line.
                let end = if summary.ends_with(ENDS) { "" } else { "." };
                format!("{summary}{end}\n\n{description}")
            }
            (Some(text), None) | (None, Some(text)) => text.to_owned(),
            (None, None) => format!("{} {}", self.method.to_ascii_uppercase(), self.path),
        };
        let mut item = SelectableItem::tool("", "", self.name, &description);
        let tags = operation.get("tags").and_then(Value::as_array).into_iter().flatten();
        item.tags = tags.filter_map(|tag| tag.as_str().map(str::to_owned)).collect();
        if operation.get("deprecated") == Some(&Value::Bool(true)) {
            item.tags.push("deprecated".to_owned());
        }
        let texts = item.tags.iter().map(String::len).sum::<usize>() + description.len() + self.path.len();
        references.pay(texts + self.name.len() + 200)?;
        let (schema, about) = self.arguments(operation, references)?;
        item.args_schema = schema.map(Arc::new);
        item.server.clone_from(&self.server.name);
        item.server_description.clone_from(&self.server.description);
        item.server_version.clone_from(&self.server.version);
        settle_safety(&mut item, self.safety);
        item.side_effects = self.safety != Safety::ReadOnly;
        let mut urls = urls(operation.get("servers").or_else(|| self.item.get("servers")));
        if urls.is_empty() {
            urls.clone_from(&self.server.urls);
        }
        let request = [("method", json!(self.method)), ("path", json!(self.path)), ("servers", json!(urls))];
        item.metadata = about;
        item.metadata.extend(request.map(|(key, value)| (key.to_owned(), value)));
        Ok(Draft::of(item))
    }

    /// One schema of all arguments, and where each of them goes. An argument without a place is a member of the body.
    fn arguments(
        &self,
        operation: &'d Map<String, Value>,
        references: &mut References<'d>,
    ) -> Result<(Option<Value>, Metadata), Fault> {
        let mut expansion = Expansion::new(references);
        let mut arguments = Arguments::default();
        let mut known = BTreeSet::new();
        let mut parameters = Vec::new();
        // What an operation says of a parameter counts before what its path says.
        for list in [operation.get("parameters"), self.item.get("parameters")] {
            for parameter in list.and_then(Value::as_array).into_iter().flatten() {
                let parameter = expansion.references().object(parameter)?;
                let text = |key: &str| parameter.get(key).and_then(Value::as_str);
                let place = text("in").and_then(|place| PLACES.into_iter().find(|known| *known == place));
                let (Some(name), Some(place)) = (text("name"), place) else {
                    let problem = format!("a parameter has no `name`, or its `in` is not one of {}", PLACES.join(", "));
                    return Err(Fault::new(problem));
                };
                let ignored = ["accept", "content-type", "authorization"];
                if place == "header" && ignored.contains(&name.to_ascii_lowercase().as_str()) {
                    continue;
                }
                expansion.references().pay(name.len() + 64)?;
                if known.insert((name, place)) {
                    parameters.push((name, place, parameter));
                }
            }
        }
        // A place in the path has a value, whether or not a parameter says so.
        for name in places(self.path) {
            if !known.insert((name, PLACES[0])) {
                continue;
            }
            expansion.references().pay(name.len() + 64)?;
            arguments.add(name, PLACES[0], Map::new(), json!({"type": "string"}), true);
        }
        // Of two with one name, that of the path keeps it.
        parameters.sort_by_key(|(_, place, _)| *place != PLACES[0]);
        for (name, place, parameter) in parameters {
            let schema = parameter_schema(parameter, &mut expansion)?;
            let required = place == PLACES[0] || parameter.get("required") == Some(&Value::Bool(true));
            let how = how_written(parameter, place, expansion.references())?;
            arguments.add(name, place, how, schema, required);
        }
        if let Some(body) = operation.get("requestBody") {
            let body = expansion.references().object(body)?;
            let required = body.get("required") == Some(&Value::Bool(true));
            if let Some((media, content)) = body_content(body) {
                let schema = content.get("schema");
                let schema = schema.map_or_else(|| Ok(any_body(media)), |schema| expansion.schema(schema))?;
                arguments.encoding = encoding(media, content, expansion.references())?;
                arguments.add_body(schema, required, body.get("description").and_then(Value::as_str));
                arguments.media = (media != "application/json").then(|| media.to_owned());
                let others =
                    body.get("content").and_then(Value::as_object).into_iter().flatten().map(|(media, _)| media);
                arguments.other_media = others.filter(|other| *other != media).map(|other| shortened(other)).collect();
                expansion.references().pay(arguments.other_media.iter().map(|media| media.len() + 16).sum())?;
            }
        }
        let definitions = expansion.definitions()?;
        let mut about = Metadata::new();
        if !arguments.places.is_empty() {
            about.insert("arguments".to_owned(), Value::Object(arguments.places));
        }
        about.extend(arguments.media.map(|media| ("content_type".to_owned(), media.into())));
        if !arguments.encoding.is_empty() {
            about.insert("encoding".to_owned(), Value::Object(arguments.encoding));
        }
        if !arguments.other_media.is_empty() {
            about.insert("other_content_types".to_owned(), json!(arguments.other_media));
        }
        if arguments.properties.is_empty() && arguments.whole.is_none() {
            return Ok((None, about));
        }
        let mut schema = match arguments.whole {
            Some(Value::Object(whole)) => whole,
            _ => {
                let mut members = Map::from_iter([("type".to_owned(), json!("object"))]);
                members.insert("properties".to_owned(), Value::Object(arguments.properties));
                if !arguments.required.is_empty() {
                    members.insert("required".to_owned(), json!(arguments.required));
                }
                members.extend(arguments.additional.map(|value| ("additionalProperties".to_owned(), value)));
                members
            }
        };
        if !definitions.is_empty() {
            schema.insert("$defs".to_owned(), Value::Object(definitions));
        }
        let mut schema = Value::Object(schema);
        if nesting_depth(&schema) > MAX_NESTING - 8 {
            return Err(too_deep());
        }
        each_schema(&mut schema, &plain);
        place_alternatives(&mut schema);
        Ok((Some(schema), about))
    }
}

#[derive(Default)]
struct Arguments {
    properties: Map<String, Value>,
    required: Vec<String>,
    places: Map<String, Value>,
    additional: Option<Value>,
    /// The schema of a body that is all there is.
    whole: Option<Value>,
    /// The type of the body, when it is not JSON.
    media: Option<String>,
    /// The types that the body may have instead, whose schemas may differ.
    other_media: Vec<String>,
    /// How members of the body are written, as the document says it.
    encoding: Map<String, Value>,
}

impl Arguments {
    /// Adds a parameter; one whose name is taken is called by its place too. `how` is how it is written there.
    fn add(&mut self, name: &str, place: &str, how: Map<String, Value>, schema: Value, required: bool) {
        let mut argument = name.to_owned();
        if self.properties.contains_key(&argument) {
            argument = format!("{place}_{name}");
            let mut number = 1;
            while self.properties.contains_key(&argument) {
                number += 1;
                argument = format!("{place}_{name}_{number}");
            }
        }
        let mut members = Map::from_iter([("in".to_owned(), json!(place))]);
        if argument != name {
            members.insert("name".to_owned(), json!(name));
        }
        members.extend(how);
        let place = if members.len() == 1 { json!(place) } else { Value::Object(members) };
        self.places.insert(argument.clone(), place);
        if required {
            self.required.push(argument.clone());
        }
        self.properties.insert(argument, schema);
    }

    /// Adds a request body: its members where it is an object whose members nothing else names, otherwise as a whole.
    fn add_body(&mut self, schema: Value, required: bool, description: Option<&str>) {
        let mut schema = schema;
        flatten(&mut schema);
        // Such a member often repeats what stands in the path.
        schema.as_object_mut().into_iter().for_each(without_read_only);
        let plain = |members: &Map<String, Value>| {
            const KNOWN: [&str; 10] = [
                "type",
                "properties",
                "required",
                "additionalProperties",
                "title",
                "description",
                "example",
                "examples",
                "xml",
                "externalDocs",
            ];
            let properties = members.get("properties").and_then(Value::as_object);
            members.get("type").is_none_or(|kind| kind == "object")
                && properties.is_some_and(|own| own.keys().all(|name| !self.properties.contains_key(name)))
                && members.keys().all(|key| KNOWN.contains(&key.as_str()) || key.starts_with("x-"))
        };
        match schema {
            Value::Object(mut members) if plain(&members) => {
                if required && let Some(Value::Array(names)) = members.get("required") {
                    self.required.extend(names.iter().filter_map(|name| name.as_str().map(str::to_owned)));
                }
                self.additional = members.shift_remove("additionalProperties");
                if let Some(Value::Object(own)) = members.shift_remove("properties") {
                    self.properties.extend(own);
                }
            }
            // A body that is an object by another description than its members.
            Value::Object(members)
                if self.properties.is_empty() && members.get("type").is_some_and(|kind| kind == "object") =>
            {
                self.whole = Some(Value::Object(members));
            }
            mut schema => {
                describe(&mut schema, description);
                self.add(BODY, "body", Map::new(), schema, required);
            }
        }
    }
}

/// Puts the parts of an `allOf` together where they are nothing but lists of members.
fn flatten(schema: &mut Value) {
    const KNOWN: [&str; 6] = ["type", "properties", "required", "title", "description", "example"];
    let Some(members) = schema.as_object_mut() else { return };
    if !members.keys().all(|key| key == "allOf" || KNOWN.contains(&key.as_str())) {
        return;
    }
    let Some(parts) = members.get("allOf").and_then(Value::as_array) else { return };
    let flat = |part: &Value| {
        let part = part.as_object();
        part.is_some_and(|part| {
            part.keys().all(|key| KNOWN.contains(&key.as_str()))
                && part.get("type").is_none_or(|kind| kind == "object")
                && part.get("properties").is_none_or(Value::is_object)
        })
    };
    if !parts.iter().all(flat) {
        return;
    }
    let Some(Value::Array(parts)) = members.shift_remove("allOf") else { return };
    let own = std::mem::take(members);
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for part in parts.into_iter().chain([Value::Object(own)]) {
        let Value::Object(mut part) = part else { continue };
        if let Some(Value::Object(own)) = part.shift_remove("properties") {
            properties.extend(own);
        }
        if let Some(Value::Array(own)) = part.shift_remove("required") {
            required.extend(own);
        }
        for key in ["title", "description"] {
            if let Some(text) = part.shift_remove(key) {
                members.entry(key).or_insert(text);
            }
        }
    }
    members.insert("type".to_owned(), json!("object"));
    members.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        let mut known = BTreeSet::new();
        required.retain(|name| name.as_str().is_some_and(|name| known.insert(name.to_owned())));
        members.insert("required".to_owned(), Value::Array(required));
    }
}

fn parameter_schema<'d>(parameter: &'d Map<String, Value>, expansion: &mut Expansion<'_, 'd>) -> Result<Value, Fault> {
    let of_content = || parameter.get("content")?.as_object()?.values().next()?.get("schema");
    let mut schema = match parameter.get("schema").or_else(of_content) {
        Some(schema) => expansion.schema(schema)?,
        None => json!({}),
    };
    let description = parameter.get("description").and_then(Value::as_str);
    expansion.references().pay(description.map_or(0, str::len))?;
    describe(&mut schema, description);
    Ok(schema)
}

/// How the value of a parameter is written in its place, without what the place implies. A parameter that has no schema of its
/// own but content is written as a body of the type of that.
fn how_written(
    parameter: &Map<String, Value>,
    place: &str,
    references: &mut References<'_>,
) -> Result<Map<String, Value>, Fault> {
    let content = parameter.get("content").and_then(Value::as_object).filter(|_| !parameter.contains_key("schema"));
    if let Some(media) = content.and_then(|content| content.keys().next()) {
        references.pay(media.len())?;
        return Ok(Map::from_iter([("content_type".to_owned(), media.as_str().into())]));
    }
    let mut how = said_how(parameter);
    let default = if ["path", "header"].contains(&place) { "simple" } else { "form" };
    let style = how.get("style").and_then(Value::as_str).unwrap_or(default);
    let explodes = ["form", "cookie"].contains(&style);
    how.retain(|key, value| match key.as_str() {
        "style" => *value != default,
        "explode" => *value != explodes,
        _ => *value != false,
    });
    Ok(how)
}

/// What a parameter, or a member of a body, says of how its value is written.
fn said_how(about: &Map<String, Value>) -> Map<String, Value> {
    let is_known = |key: &str, value: &Value| match key {
        "style" => value.as_str().is_some_and(|style| STYLES.contains(&style)),
        _ => value.is_boolean(),
    };
    let said = ["style", "explode", "allowReserved"].into_iter().filter_map(|key| {
        let value = about.get(key).filter(|value| is_known(key, value))?;
        Some((key.to_owned(), value.clone()))
    });
    said.collect()
}

/// How the members of a form are written. Defaults stay: what is said of the style, even that, decides whether the type of
/// the content counts. Headers of parts are not read, since no argument gives their values.
fn encoding(media: &str, content: &Value, references: &mut References<'_>) -> Result<Map<String, Value>, Fault> {
    let mut encoding = Map::new();
    let members = content.get("encoding").and_then(Value::as_object).filter(|_| is_form(media));
    for (name, about) in members.into_iter().flatten() {
        references.pay(name.len() + 64)?;
        let Some(about) = about.as_object() else { continue };
        let mut how = Map::new();
        if let Some(kind) = about.get("contentType").and_then(Value::as_str) {
            references.pay(kind.len())?;
            how.insert("contentType".to_owned(), kind.into());
        }
        how.extend(said_how(about));
        if !how.is_empty() {
            encoding.insert(name.clone(), Value::Object(how));
        }
    }
    Ok(encoding)
}

/// What is said of a parameter or body says more than what is said of its schema.
fn describe(schema: &mut Value, description: Option<&str>) {
    let description = description.filter(|description| !description.trim().is_empty());
    if let (Some(members), Some(description)) = (schema.as_object_mut(), description) {
        members.insert("description".to_owned(), description.into());
    }
}

/// How easily a program makes a body of this type, the easiest first.
fn rank(media: &str) -> u8 {
    match media.split(';').next().unwrap_or("").trim() {
        "application/json" => 0,
        media if media.ends_with("+json") => 1,
        "*/*" | "application/*" => 2,
        "application/x-www-form-urlencoded" => 3,
        "multipart/form-data" => 4,
        _ => 5,
    }
}

/// Whether a body of this type has members that are each written in a way of their own.
fn is_form(media: &str) -> bool {
    media.starts_with("multipart/") || rank(media) == 3
}

/// The type of a body in the form that a program makes most easily, of those that are described if any is, and what is
/// said of it.
fn body_content(body: &Map<String, Value>) -> Option<(&str, &Value)> {
    let content = body.get("content")?.as_object()?;
    let schema = |content: &'_ Value| content.get("schema").is_some();
    let (media, described) = content.iter().min_by_key(|(media, content)| (!schema(content), rank(media)))?;
    Some((media, described))
}

/// The schema of a body that has none: bytes that are what they are, as of a file, unless its type says more.
fn any_body(media: &str) -> Value {
    match rank(media) {
        0 | 1 => json!({}),
        3 | 4 => json!({"type": "object"}),
        _ => json!({"type": "string"}),
    }
}

/// A schema of OpenAPI in the words of JSON Schema, without what says nothing about values.
fn plain(schema: &mut Map<String, Value>) {
    schema.retain(|key, _| !["xml", "externalDocs"].contains(&key.as_str()) && !key.starts_with("x-"));
    nullable_types(schema);
    exclusive_bounds(schema);
    without_read_only(schema);
    if let Some(example) = schema.shift_remove("example") {
        schema.entry("examples").or_insert_with(|| json!([example]));
    }
}

/// Takes out the members that only answers have: a request must not hold them, even where they are required.
fn without_read_only(schema: &mut Map<String, Value>) {
    let is_read_only = |property: &Value| property.get("readOnly") == Some(&Value::Bool(true));
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    let names: BTreeSet<String> =
        properties.iter().filter(|(_, property)| is_read_only(property)).map(|(name, _)| name.clone()).collect();
    if names.is_empty() {
        return;
    }
    properties.retain(|name, _| !names.contains(name));
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !name.as_str().is_some_and(|name| names.contains(name)));
        if required.is_empty() {
            schema.shift_remove("required");
        }
    }
}
