//! What one engine gave on one's own catalog, from a file that holds one engine or several.

use super::super::evaluations::{EngineRanks, Evaluations};
use super::super::outcomes::Outcomes;
use super::{Content, Part, one_of};
use crate::eval::collection::YOURS;

pub(super) fn read(content: &Content<'_>) -> Option<Result<Outcomes, String>> {
    content.json.as_ref()?.get("evaluations")?;
    let file = Evaluations::parse(content.bytes).map_err(|error| error.to_string());
    Some(file.and_then(|file| outcomes(&file, content)))
}

fn outcomes(file: &Evaluations, content: &Content<'_>) -> Result<Outcomes, String> {
    let names: Vec<&str> = file.evaluations.iter().map(|one| one.configuration.as_str()).collect();
    let Part { engine, beside, .. } = content.part;
    let asked = engine.or_else(|| beside.filter(|name| names.len() > 1 && names.contains(name)));
    let name = one_of(&names, asked)?;
    let named = |one: &&EngineRanks| one.configuration == name;
    let items = file.evaluations.iter().find(named).map(|one| file.items(one)).unwrap_or_default();
    let path = content.path.display();
    let shown = if names.len() > 1 { format!("{path}#{name}") } else { path.to_string() };
    Ok(Outcomes { name: shown, sets: [(YOURS.to_owned(), items)].into(), ..Outcomes::default() })
}
