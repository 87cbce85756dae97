//! The contracts of `weaver-spec`: an item or a capability is a tool without a schema, a choice card holds items, and a
//! routing decision holds cards.

use serde_json::{Map, Value};

use super::{Part, is_text, name_of, tool};
use crate::catalog::Fault;
use crate::catalog::load::{Draft, Fields};
use crate::catalog::parse_tool_id;

/// `SelectableItem` has a label, `Capability` refers to its schemas.
pub(super) fn is(members: &Map<String, Value>) -> bool {
    let refers = ["input_schema_ref", "output_schema_ref"].iter().any(|key| is_text(members, key));
    is_text(members, "id") && (is_text(members, "label") || refers && is_text(members, "version"))
}

pub(super) fn read(mut fields: Fields) -> Result<Draft, Fault> {
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
