//! Distractors made from the relevant tools themselves: near-duplicates and keyword-stuffed descriptions.
//!
//! A near-duplicate shares most words with its model and does something else: it reaches other records, or it says
//! something about the operation instead of carrying it out. Each scope was chosen so that no query of the embedded
//! collections asks for it.

use serde_json::{Map, Value, json};

use crate::catalog::{Safety, SelectableItem};
use crate::text::{for_each_word, is_stop_word};

use super::super::rng::Rng;
use super::phrase::{Effect, Style, Tool, capitalised};

/// How a near-duplicate differs from its model.
struct Scope {
    /// Words that the name gains.
    words: &'static str,
    /// What the description may begin with.
    lead: &'static str,
    /// What the description says about the difference.
    note: &'static str,
    reach: Reach,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The same operation on other records.
    Elsewhere,
    /// Something about the operation, which is not carried out.
    About,
}

const fn elsewhere(words: &'static str, lead: &'static str, note: &'static str) -> Scope {
    Scope { words, lead, note, reach: Reach::Elsewhere }
}

const fn about(words: &'static str, lead: &'static str, note: &'static str) -> Scope {
    Scope { words, lead, note, reach: Reach::About }
}

const SCOPES: &[Scope] = &[
    elsewhere(
        "archived",
        "Frozen archive",
        "Sees only what was moved to the 2016 archive; nothing current is reached.",
    ),
    elsewhere(
        "training",
        "Training account",
        "Works on invented sample data that are reset every night, never on real ones.",
    ),
    elsewhere(
        "legacy",
        "Old interface",
        "Speaks to the system that was replaced years ago and is kept for auditors only.",
    ),
    elsewhere(
        "bulk",
        "Mass job",
        "Takes a signed list of at least 500 cases and works overnight; a single case is refused.",
    ),
    elsewhere("reseller", "For resellers", "Reaches only accounts of outside resellers, not our own."),
    elsewhere(
        "acquired",
        "Bought company",
        "Covers only the firm that was taken over in 2019, whose data live in another installation.",
    ),
    elsewhere(
        "field device",
        "Field service",
        "For handheld devices of the field service; any other device is refused.",
    ),
    elsewhere("kiosk", "Lobby kiosk", "Works on the visitors' terminal in the lobby and on no other account."),
    elsewhere(
        "anonymised",
        "Research extract",
        "Works on the anonymised copy for researchers, in which all names are invented.",
    ),
    elsewhere("quarantined", "Quarantine", "Touches only what the malware scanner has locked away."),
    elsewhere("legal hold", "Preservation order", "Restricted to material that a court has ordered to be kept."),
    elsewhere("pilot", "Pilot ring", "Only for the twelve accounts that try the next release."),
    elsewhere("school", "School edition", "For pupils' accounts in the school edition."),
    elsewhere("simulated", "Simulator", "Plays the operation through in a simulator with made-up records."),
    elsewhere("franchise", "Franchise", "Reaches only the records that franchise holders keep themselves."),
    about(
        "effort",
        "Estimate only",
        "Says how many interface calls and minutes it would take. Carries nothing out, returns no data.",
    ),
    about("preset", "Preset", "Saves a set of arguments under a name for later use; carries nothing out."),
    about("usage audit", "Usage audit", "Reports who has used the plain operation and when; does not perform it."),
    about(
        "allowance",
        "Allowance",
        "Returns how many more times the plain operation may be used this month, nothing else.",
    ),
    about("mock", "Canned answers", "Returns fixed answers for integration tests and contacts no system."),
    about("sign off", "Sign-off", "Files a paper request with the board, which decides at its quarterly session."),
    about(
        "permission check",
        "Permission check",
        "Only answers whether the caller would be allowed to; performs nothing.",
    ),
    about("callback", "Callback", "Registers an address that is called whenever somebody else does this."),
    about("statistics", "Statistics", "Charts how often the plain operation was used, without any of its results."),
    about("argument help", "For developers", "Returns the documentation of the arguments, no data."),
    about(
        "reconciliation",
        "Reconciliation",
        "Compares the records of the old and the new data centre and reports mismatches.",
    ),
    about("wording", "Wording", "Edits the translated labels that the screen of this operation shows."),
    about("speed test", "Speed test", "Measures the response time of the plain operation with dummy input."),
    about(
        "release notes",
        "Release notes",
        "Lists what has changed in this operation between two versions of the interface.",
    ),
    about("log retention", "Log retention", "Sets after how many years the traces of this operation are erased."),
    about("cost share", "Cost share", "Books the cost of the plain operation on a cost centre; does not perform it."),
    about("throttle", "Throttle", "Limits how often other callers may use the plain operation."),
    about("consent text", "Consent text", "Shows the consent wording that users saw before the operation."),
];

/// Offices with an installation of their own; the first stands for none.
const OFFICES: &[&str] = &[
    "",
    "Faroe",
    "Andorra",
    "Svalbard",
    "Azores",
    "Gibraltar",
    "Greenland",
    "Jersey",
    "Corsica",
    "Tasmania",
    "Yukon",
    "Patagonia",
    "Bermuda",
    "Zanzibar",
];

/// How many near-duplicates there are of one tool.
pub(super) const PER_TOOL: usize = SCOPES.len() * OFFICES.len();

/// How many of them serve every office: the numbers below this one.
pub(super) const EVERYWHERE: usize = SCOPES.len();

/// Near-duplicate number `code` (below [`PER_TOOL`]) of `model`.
pub(super) fn near_duplicate(model: &SelectableItem, code: usize, rng: &mut Rng) -> Tool {
    let (scope, office) = (&SCOPES[code % SCOPES.len()], OFFICES[code / SCOPES.len()]);
    let mut words = words_of(&model.name);
    let place = if rng.below(2) == 0 { words.len().min(1) } else { words.len() };
    words.insert(place, scope.words.to_owned());
    if !office.is_empty() {
        words.push(office.to_owned());
    }
    let plain = sentence(&model.description);
    let mut description = match rng.below(3) {
        0 => format!("{}: {plain} {}", scope.lead, scope.note),
        1 => format!("{} {plain}", scope.note),
        _ => format!("{plain} {}", scope.note),
    };
    if !office.is_empty() {
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

    fn model() -> SelectableItem {
        let mut item = SelectableItem::tool("forge:get", "forge", "getPullRequest", "Get one pull request");
        item.server = Some("forge".to_owned());
        item.args_schema = Some(Arc::new(json!({"type": "object", "properties": {"number": {"type": "integer"}}})));
        item
    }

    #[test]
    fn a_near_duplicate_states_its_scope_in_name_and_description() {
        let tool = near_duplicate(&model(), 1, &mut Rng::new(1));
        insta::assert_snapshot!(tool.to_json(), @r#"{"name":"getPullRequestTraining","description":"Get one pull request. Works on invented sample data that are reset every night, never on real ones.","inputSchema":{"type":"object","properties":{"number":{"type":"integer"},"caseNumber":{"type":"string","description":"Training account under which the call is made"}}},"annotations":{"readOnlyHint":false,"destructiveHint":false},"server":"forge"}"#);
    }

    #[test]
    fn every_near_duplicate_has_another_name() {
        let mut rng = Rng::new(1);
        let mut names: Vec<String> = (0..PER_TOOL).map(|code| near_duplicate(&model(), code, &mut rng).name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PER_TOOL);
    }

    #[test]
    fn stuffing_keeps_the_name_and_borrows_words() {
        let mut tool = near_duplicate(&model(), 0, &mut Rng::new(1));
        let name = tool.name.clone();
        stuff(&mut tool, &[vec!["apple".to_owned(), "pear".to_owned()]], &mut Rng::new(1));
        assert_eq!(tool.name, name);
        assert!(tool.description.contains("apple") && tool.description.contains("pear"), "{}", tool.description);
        stuff(&mut tool, &[], &mut Rng::new(1));
    }
}
