//! Agent Skills: a file `SKILL.md` whose front matter (YAML between two lines `---`) has the name and the description of
//! a skill. What stands behind it are the instructions, which an agent loads when it uses the skill.

use serde_json::Value;

use crate::catalog::load::{Draft, Fields, settle_safety, version_text};
use crate::catalog::{Fault, Kind, Safety, SelectableItem};

/// The server of all skills: they come from files, wherever these lie.
const SERVER: &str = "skills";
/// The key of the metadata under which the instructions stand.
const INSTRUCTIONS: &str = "instructions";

/// The front matter, with the line break in front of it so that its lines keep their numbers, and the text behind it.
pub(in crate::catalog) fn parts(text: &str) -> Result<(&str, &str), Fault> {
    const WRITE: &str = "begin it with a line `---`, then `name: …`, `description: …` and a line `---`";
    let is_fence = |line: &str| line.trim_end() == "---";
    let no_front = || Fault::new("the file has no front matter").with_fix(WRITE);
    let (first, rest) = text.split_once('\n').ok_or_else(no_front)?;
    if !is_fence(first) {
        return Err(no_front());
    }
    let mut end = first.len();
    for line in rest.split_inclusive('\n') {
        let next = end + line.len();
        if is_fence(line) {
            // Where lines begin and end, characters do.
            let (front, body) = (text.get(first.len()..=end), text.get(next + 1..));
            return Ok((front.unwrap_or_default(), body.unwrap_or_default().trim()));
        }
        end = next;
    }
    Err(Fault::new("the front matter does not end").with_fix("put a line `---` after it"))
}

/// Reads the members of the front matter and the text behind it, which come as an array of the two.
pub(in crate::catalog) fn read(value: Value) -> Result<Draft, Fault> {
    let (front, instructions) = match value {
        Value::Array(parts) => {
            let mut parts = parts.into_iter();
            (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
        }
        front => (front, Value::Null),
    };
    let mut fields = Fields::new(front)?;
    let (name, description) = (fields.required_text("name")?, fields.required_text("description")?);
    let mut item = SelectableItem::tool("", "", name.trim(), description.trim());
    item.kind = Kind::Skill;
    item.server = Some(SERVER.to_owned());
    let version = fields.version("version");
    item.version = version.or_else(|| version_text(fields.get("metadata")?.get("version")?));
    settle_safety(&mut item, Safety::Undeclared);
    item.metadata = fields.rest().collect();
    if instructions.as_str().is_some_and(|text| !text.is_empty()) {
        item.metadata.insert(INSTRUCTIONS.to_owned(), instructions);
    }
    Ok(Draft::of(item))
}
