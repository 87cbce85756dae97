//! A2A agent cards: each skill is a tool of the agent, and its argument is the message that the agent gets.

use serde_json::{Map, Value, json};

use super::{Part, blurb, is_text, name_of};
use crate::catalog::load::{Draft, Fields, settle_safety, shortened};
use crate::catalog::{Fault, Safety, SelectableItem};

pub(super) fn is_card(members: &Map<String, Value>) -> bool {
    const OF_CARDS: [&str; 7] = [
        "url",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "protocolVersion",
        "supportedInterfaces",
        "preferredTransport",
    ];
    members.get("skills").is_some_and(Value::is_array)
        && is_text(members, "name")
        && OF_CARDS.iter().any(|key| members.contains_key(*key))
        && !members.contains_key("inputSchema")
}

pub(super) fn read(card: Map<String, Value>) -> Result<Vec<Part>, Fault> {
    let mut card = Fields::new(Value::Object(card))?;
    let agent = shortened(&card.required_text("name")?);
    let description = card.nonempty_text("description")?.as_deref().and_then(blurb);
    let version = card.version("version");
    // Since version 1.0 each way to reach the agent has an address of its own, the preferred one first.
    let preferred =
        card.get("supportedInterfaces").and_then(|ways| ways.get(0)?.get("url")?.as_str().map(str::to_owned));
    let url = card.nonempty_text("url")?.or(preferred).as_deref().and_then(blurb);
    let skills = card.list("skills")?.into_iter().enumerate().map(|(index, value)| Part {
        inside: format!(".skills[{index}]"),
        name: name_of(&value).to_owned(),
        draft: skill(value, &agent).map(|mut item| {
            item.server_description.clone_from(&description);
            item.server_version.clone_from(&version);
            item.metadata.extend(url.iter().map(|url| ("url".to_owned(), url.as_str().into())));
            Draft::of(item)
        }),
    });
    Ok(skills.collect())
}

fn skill(value: Value, agent: &str) -> Result<SelectableItem, Fault> {
    let mut fields = Fields::new(value)?;
    let title = fields.nonempty_text("name")?;
    let id = match fields.nonempty_text("id")? {
        Some(id) => id,
        None => title.clone().ok_or_else(|| Fault::new("`id` and `name` are missing or empty"))?,
    };
    let description = fields.text("description")?.unwrap_or_default();
    let description = match title {
        Some(title) if title != id && !description.is_empty() => format!("{title}: {description}"),
        Some(title) if title != id => title,
        _ => description,
    };
    let mut item = SelectableItem::tool("", "", &id, &description);
    item.server = Some(agent.to_owned());
    item.version = fields.version("version");
    item.tags = fields.texts("tags")?;
    item.examples = fields.texts("examples")?;
    item.args_schema = Some(std::sync::Arc::new(json!({
        "type": "object",
        "properties": {"message": {"type": "string", "description": "What the agent is asked to do, in words"}},
        "required": ["message"],
    })));
    settle_safety(&mut item, Safety::Undeclared);
    item.metadata = fields.rest().collect();
    Ok(item)
}
