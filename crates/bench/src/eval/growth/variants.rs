//! Distractors made from the relevant tools themselves: near-duplicates and keyword-stuffed descriptions.
//!
//! A near-duplicate shares most words with its model and does something else: it reaches other records, or it says
//! something about the operation instead of carrying it out. The scopes are data ([`super::vocabulary`]).

use serde_json::{Map, Value, json};

use contextweaver_core::catalog::{Safety, SelectableItem};
use contextweaver_core::text::{for_each_word, is_stop_word};

use super::super::rng::Rng;
use super::phrase::{Effect, Style, Tool, capitalised};
use super::vocabulary::{Reach, Scope, Vocabulary};

/// The near-duplicates of any tool: one for every scope, and for every scope and office.
#[derive(Clone, Copy)]
pub(super) struct Variants(&'static Vocabulary);

impl Variants {
    /// The variants that these words give.
    pub(super) fn of(vocabulary: &'static Vocabulary) -> Self {
        Self(vocabulary)
    }

    /// How many near-duplicates there are of one tool.
    pub(super) fn per_tool(self) -> usize {
        self.everywhere() * (1 + self.0.offices.len())
    }

    /// How many of them serve every office: the numbers below this one.
    pub(super) fn everywhere(self) -> usize {
        self.0.scopes.len()
    }

    /// Near-duplicate number `code` (below [`Variants::per_tool`]) of `model`.
    pub(super) fn near_duplicate(self, model: &SelectableItem, code: usize, rng: &mut Rng) -> Tool {
        let Vocabulary { scopes, offices, .. } = self.0;
        let scope = &scopes[code % scopes.len()];
        let office = (code / scopes.len()).checked_sub(1).map(|office| &offices[office]);
        let mut words = words_of(&model.name);
        let place = if rng.below(2) == 0 { words.len().min(1) } else { words.len() };
        words.insert(place, scope.words.clone());
        if let Some(office) = office {
            words.push(office.clone());
        }
        let plain = sentence(&model.description);
        let mut description = match rng.below(3) {
            0 => format!("{}: {plain} {}", scope.lead, scope.note),
            1 => format!("{} {plain}", scope.note),
            _ => format!("{plain} {}", scope.note),
        };
        if let Some(office) = office {
            description.push_str(&format!(" Serves the {office} office alone."));
        }
        let own = match model.safety {
            Safety::ReadOnly => Effect::Reads,
            Safety::Destructive => Effect::Destroys,
            Safety::Undeclared => Effect::Writes,
        };
        Tool {
            server: model.server.clone(),
            name: Style::of(&model.name).join(words.iter().map(String::as_str)),
            description,
            schema: with_case_number(model, scope),
            effect: if scope.reach == Reach::About { Effect::Reads } else { own },
        }
    }
}

/// The words of a name in lower case.
fn words_of(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each_word(name, |word| words.push(word.to_owned()));
    words
}

/// The description, closed with a full stop so that another sentence can follow.
fn sentence(description: &str) -> String {
    let text = description.trim();
    if text.is_empty() || text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// The schema of the model with one more argument, as a variant of an operation has it.
fn with_case_number(model: &SelectableItem, scope: &Scope) -> Value {
    let mut schema = model.args_schema.as_deref().cloned().unwrap_or_else(|| json!({"type": "object"}));
    if let Some(object) = schema.as_object_mut() {
        let properties = object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        if let Some(properties) = properties.as_object_mut() {
            let description = format!("{} under which the call is made", scope.lead);
            properties
                .entry(if Style::of(&model.name) == Style::Camel { "caseNumber" } else { "case_number" })
                .or_insert_with(|| json!({"type": "string", "description": description}));
        }
    }
    schema
}

/// The words that make a tool findable: those of its name and its description, without stop words and repeats.
pub(super) fn key_terms(item: &SelectableItem) -> Vec<String> {
    let mut terms: Vec<String> = Vec::new();
    for text in [&item.name, &item.description] {
        for_each_word(text, |word| {
            if word.chars().count() > 2 && !is_stop_word(word) && !terms.iter().any(|term| term == word) {
                terms.push(word.to_owned());
            }
        });
    }
    terms
}

/// How many relevant tools a stuffed description borrows from.
const BORROWED_TOOLS: usize = 5;
/// How many terms it takes from each.
const BORROWED_TERMS: usize = 6;

/// Adds the key terms of several relevant tools to the description of an unrelated one, as search spam does.
pub(super) fn stuff(tool: &mut Tool, terms_by_tool: &[Vec<String>], rng: &mut Rng) {
    let mut borrowed = Vec::new();
    for _ in 0..BORROWED_TOOLS {
        let Some(terms) = terms_by_tool.get(rng.below(terms_by_tool.len())) else { return };
        // Half of the time from the beginning, where the words of the name are.
        let first = rng.below(2) * rng.below(terms.len());
        borrowed.extend(terms.iter().cycle().skip(first).take(BORROWED_TERMS.min(terms.len())).map(String::as_str));
    }
    let own = std::mem::take(&mut tool.description);
    let half = borrowed.len() / 2;
    let (first, second) = (borrowed[..half].join(", "), borrowed[half..].join(", "));
    tool.description = match rng.below(5) {
        0 => format!("{own} Keywords: {first}, {second}."),
        1 => format!("{own} Also found under: {first}. See also {second}."),
        2 => format!("{own} Great with {first}! Works alongside {second}."),
        3 => format!("{} – and much more. {own} Popular searches: {second}.", capitalised(&first)),
        _ => format!("{own} Tags: {first}; {second}; {first}."),
    };
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn variants() -> Variants {
        Variants::of(Vocabulary::builtin().unwrap())
    }

    fn model() -> SelectableItem {
        let mut item = SelectableItem::tool("forge:get", "forge", "getPullRequest", "Get one pull request");
        item.server = Some("forge".to_owned());
        item.args_schema = Some(Arc::new(json!({"type": "object", "properties": {"number": {"type": "integer"}}})));
        item
    }

    #[test]
    fn a_near_duplicate_states_its_scope_in_name_and_description() {
        let tool = variants().near_duplicate(&model(), 1, &mut Rng::new(1));
        insta::assert_snapshot!(tool.to_json(), @r#"{"name":"getPullRequestTraining","description":"Get one pull request. Works on invented sample data that are reset every night, never on real ones.","inputSchema":{"type":"object","properties":{"number":{"type":"integer"},"caseNumber":{"type":"string","description":"Training account under which the call is made"}}},"annotations":{"readOnlyHint":false,"destructiveHint":false},"server":"forge"}"#);
    }

    #[test]
    fn every_near_duplicate_has_another_name() {
        let mut rng = Rng::new(1);
        let mut names: Vec<String> =
            (0..variants().per_tool()).map(|code| variants().near_duplicate(&model(), code, &mut rng).name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), variants().per_tool());
    }

    #[test]
    fn stuffing_keeps_the_name_and_borrows_words() {
        let mut tool = variants().near_duplicate(&model(), 0, &mut Rng::new(1));
        let name = tool.name.clone();
        stuff(&mut tool, &[vec!["apple".to_owned(), "pear".to_owned()]], &mut Rng::new(1));
        assert_eq!(tool.name, name);
        assert!(tool.description.contains("apple") && tool.description.contains("pear"), "{}", tool.description);
        stuff(&mut tool, &[], &mut Rng::new(1));
    }
}
