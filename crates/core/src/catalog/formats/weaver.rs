//! The contracts of `weaver-spec`: an item or a capability is a tool without a schema, a choice card holds items, and a
//! routing decision holds cards.
//!
//! What is written has all members that the contracts require. What they have no place for stands in the `metadata` that
//! they leave to programs, under [`OURS`]: a card that was written here is read again with the ids that it had.

use serde_json::{Map, Value, json};

use super::{Part, is_text, name_of, tool};
use crate::catalog::load::{Draft, Fields, settle_safety};
use crate::catalog::{Fault, Kind, Safety, SelectableItem, parse_tool_id};
use crate::text::{is_date_time, sha256_hex};

/// The member of the metadata of an item with what only this program says.
const OURS: &str = "contextweaver";

/// Items of a card: the contract allows no more.
const MOST_ITEMS: usize = 20;

/// `SelectableItem` has a label. `Capability` refers to its schemas, or says null where it has none.
pub(super) fn is(members: &Map<String, Value>) -> bool {
    let refers = ["input_schema_ref", "output_schema_ref"].iter().any(|key| members.contains_key(*key));
    is_text(members, "id") && (is_text(members, "label") || refers && is_text(members, "version"))
}

pub(super) fn read(mut fields: Fields) -> Result<Draft, Fault> {
    if let Some(metadata) = metadata_of_ours(&mut fields)? {
        return read_ours(fields, metadata);
    }
    let id = fields.required_text("id")?;
    let label = match fields.nonempty_text("label")? {
        None => fields.nonempty_text("name")?,
        label => label,
    };
    // Where the id is one of ours it says the server too.
    let parsed = parse_tool_id(&id).ok();
    let (server, name) = match &parsed {
        Some(parts) => (Some(parts.namespace().to_owned()), parts.name().to_owned()),
        None => (None, id),
    };
    let description = fields.text("description")?.unwrap_or_default();
    let description = match label {
        Some(label) if label != name => format!("{label}: {description}"),
        _ => description,
    };
    let mut members: Map<String, Value> = fields.rest().collect();
    members.insert("name".to_owned(), name.into());
    members.insert("description".to_owned(), description.into());
    if let Some(server) = server {
        members.entry("server").or_insert(server.into());
    }
    tool(Fields::new(Value::Object(members))?, None)
}

/// Takes out the metadata of an item that was written here.
fn metadata_of_ours(fields: &mut Fields) -> Result<Option<Map<String, Value>>, Fault> {
    let is_ours = |metadata: &Value| metadata.get(OURS).is_some_and(Value::is_object);
    if fields.get("metadata").is_some_and(is_ours) { fields.object("metadata") } else { Ok(None) }
}

/// An item that was written here: its label is its name, and it keeps its id.
fn read_ours(mut fields: Fields, mut metadata: Map<String, Value>) -> Result<Draft, Fault> {
    let mut ours = Fields::new(metadata.shift_remove(OURS).unwrap_or_default())?;
    let (id, name) = (fields.required_text("id")?, fields.required_text("label")?);
    // An item without a description is described by its name.
    let description = fields.text("description")?.filter(|text| *text != name).unwrap_or_default();
    let mut item = SelectableItem::tool("", "", &name, &description);
    item.kind = match ours.required_text("kind")?.as_str() {
        "tool" => Kind::Tool,
        "agent" => Kind::Agent,
        "skill" => Kind::Skill,
        other => {
            let problem = format!("unknown `kind` `{}`", crate::catalog::load::shortened(other));
            return Err(Fault::new(problem).with_fix("use tool, agent or skill"));
        }
    };
    item.server = ours.nonempty_text("server")?;
    item.version = ours.version("version");
    item.tags = ours.texts("tags")?;
    settle_safety(&mut item, Safety::Undeclared);
    item.side_effects = item.safety != Safety::ReadOnly;
    if fields.get("capability_id").is_some_and(|capability| *capability == id) {
        fields.take("capability_id");
    }
    item.metadata = fields.rest().collect();
    if !metadata.is_empty() {
        item.metadata.insert("metadata".to_owned(), Value::Object(metadata));
    }
    Draft::of(item).with_id(&id)
}

/// A choice card, or a routing decision with several.
pub(super) fn is_card(members: &Map<String, Value>) -> bool {
    let labelled = |items: &Value| {
        items.as_array().is_some_and(|items| items.first().is_some_and(|item| item.get("label").is_some()))
    };
    let cards = |cards: &Value| cards.as_array().is_some_and(|cards| cards.iter().all(Value::is_object));
    is_text(members, "id")
        && (members.get("items").is_some_and(labelled) || members.get("choice_cards").is_some_and(cards))
}

pub(super) fn read_card(card: Map<String, Value>) -> Result<Vec<Part>, Fault> {
    let mut fields = Fields::new(Value::Object(card))?;
    let mut parts = items(fields.list("items")?, "");
    for (number, card) in fields.list("choice_cards")?.into_iter().enumerate() {
        parts.extend(items(Fields::new(card)?.list("items")?, &format!(".choice_cards[{number}]")));
    }
    Ok(parts)
}

fn items(items: Vec<Value>, before: &str) -> Vec<Part> {
    let part = |(index, item): (usize, Value)| Part {
        inside: format!("{before}.items[{index}]"),
        name: name_of(&item).to_owned(),
        draft: Fields::new(item).and_then(read),
    };
    items.into_iter().enumerate().map(part).collect()
}

/// An item of a choice card.
pub(super) fn write(item: &SelectableItem, _: &str) -> Value {
    let mut ours = Map::from_iter([("kind".to_owned(), item.kind.name().into())]);
    ours.extend(item.server.iter().map(|server| ("server".to_owned(), server.as_str().into())));
    ours.extend(item.version.iter().map(|version| ("version".to_owned(), version.as_str().into())));
    if !item.tags.is_empty() {
        ours.insert("tags".to_owned(), json!(item.tags));
    }
    let description = if item.description.is_empty() { &item.name } else { &item.description };
    json!({
        "id": item.id,
        "label": item.name,
        "description": description,
        "capability_id": item.id,
        "metadata": {OURS: ours},
    })
}

/// Items as choice cards, in their order. The id of a card is a digest of those of its items.
pub(super) fn cards(items: &[Value]) -> Value {
    let card = |items: &[Value]| json!({"id": format!("card-{}", digest(items.iter().map(id_of))), "items": items});
    items.chunks(MOST_ITEMS).map(card).collect()
}

/// The callable items among `items` as a routing decision of `weaver-spec` about `query`: choice cards of which nothing
/// has been selected yet. `timestamp` is when the items were found, as RFC 3339 writes it. The id of the decision is a
/// digest of all of these.
///
/// # Errors
/// A [`Fault`] when `timestamp` is not a moment, and when there is no item, since a decision holds a card and a card an
/// item.
pub fn routing_decision<'i>(
    items: impl IntoIterator<Item = &'i SelectableItem>,
    query: &str,
    timestamp: &str,
) -> Result<Value, Fault> {
    if !is_date_time(timestamp) {
        let problem = format!("`{}` is not a timestamp", crate::catalog::load::shortened(timestamp));
        return Err(Fault::new(problem).with_fix("write it as 2026-11-27T10:00:00Z"));
    }
    let callable = items.into_iter().filter(|item| item.kind.is_callable());
    let items: Vec<Value> = callable.map(|item| write(item, "")).collect();
    if items.is_empty() {
        return Err(Fault::new("a routing decision needs at least one tool, but none was found"));
    }
    let id = digest([timestamp, query].into_iter().chain(items.iter().map(id_of)));
    let mut decision = json!({
        "id": format!("decision-{id}"),
        "choice_cards": cards(&items),
        "selected_item_id": null,
        "selected_card_id": null,
        "timestamp": timestamp,
    });
    if !query.is_empty() {
        decision["context_summary"] = query.into();
    }
    Ok(decision)
}

/// The id of an item that was written.
fn id_of(item: &Value) -> &str {
    item["id"].as_str().unwrap_or_default()
}

/// A short digest of some texts in their order.
fn digest<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    const DIGITS: usize = 16;
    let mut bytes = Vec::new();
    for text in texts {
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
    }
    let mut digest = sha256_hex(&bytes);
    digest.truncate(DIGITS);
    digest
}
