//! The contract of the turn in which a model picks one of the offered candidates.
//!
//! Before the turn, [`selection_schema`] tells the provider which ids exist, so that none can be invented. After it,
//! [`validate_selection`] maps what the model wrote to an offered id, or refuses. Both are pure. An id is resolved
//! only when exactly one candidate can be meant; nothing is guessed by similarity.

use std::collections::BTreeSet;
use std::fmt;

use caseless::default_case_fold_str;
use serde::Serialize;
use serde_json::{Value, json};

/// The form in which a provider's structured-output interface takes a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// The plain JSON Schema.
    JsonSchema,
    /// The `response_format` object of OpenAI's interface.
    OpenAi,
    /// A tool definition of Anthropic's interface.
    Anthropic,
}

/// Why no selection can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// There is no candidate: an `enum` without members admits nothing.
    #[error("there is nothing to select from; route a query that finds at least one tool")]
    NoCandidates,
}

/// The schema of an object whose one property `selection` is one of `candidates`, in the given order and without
/// repeats, in the form of `provider`.
///
/// # Errors
/// [`SelectionError::NoCandidates`] when `candidates` is empty.
pub fn selection_schema(candidates: &[impl AsRef<str>], provider: Provider) -> Result<Value, SelectionError> {
    if candidates.is_empty() {
        return Err(SelectionError::NoCandidates);
    }
    let mut seen = BTreeSet::new();
    let ids: Vec<&str> = candidates.iter().map(AsRef::as_ref).filter(|id| seen.insert(*id)).collect();
    let schema = json!({
        "type": "object",
        "properties": {
            "selection": {"type": "string", "description": "The id of the chosen candidate.", "enum": ids},
        },
        "required": ["selection"],
        "additionalProperties": false,
    });
    Ok(match provider {
        Provider::JsonSchema => schema,
        Provider::OpenAi => json!({
            "type": "json_schema",
            "json_schema": {"name": "tool_selection", "strict": true, "schema": schema},
        }),
        Provider::Anthropic => json!({
            "name": "tool_selection",
            "description": "Choose the candidate that fits the task best.",
            "input_schema": schema,
        }),
    })
}

/// What happened to a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectionStatus {
    /// The text was a candidate's id.
    Accepted,
    /// The text was not an id, but only one candidate can be meant.
    Repaired,
    /// The text stands for no candidate, or for more than one.
    Rejected,
}

/// Which rule decided about a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectionReason {
    /// It is a candidate's id.
    Exact,
    /// It differs in case from the id of one candidate.
    Case,
    /// One candidate's id begins with it, case aside.
    Prefix,
    /// It differs in case from the ids of several candidates.
    AmbiguousCase,
    /// The ids of several candidates begin with it.
    AmbiguousPrefix,
    /// No candidate's id begins with it.
    Unknown,
    /// The text was empty but for white space.
    Blank,
}

impl fmt::Display for SelectionReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Exact => "is a candidate's id",
            Self::Case => "differs in case from one candidate's id",
            Self::Prefix => "begins one candidate's id",
            Self::AmbiguousCase => "differs in case from several candidates' ids",
            Self::AmbiguousPrefix => "begins several candidates' ids",
            Self::Unknown => "begins no candidate's id",
            Self::Blank => "is blank",
        })
    }
}

/// The outcome of [`validate_selection`]: `id` is present exactly when `status` is not `Rejected`, and is then one
/// of the candidates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SelectionValidation {
    /// Whether the selection was accepted, repaired or rejected.
    pub status: SelectionStatus,
    /// The candidate that it stands for.
    pub id: Option<String>,
    /// Which rule decided.
    pub reason: SelectionReason,
}

impl SelectionValidation {
    fn resolved(status: SelectionStatus, id: &str, reason: SelectionReason) -> Self {
        Self { status, id: Some(id.to_owned()), reason }
    }

    fn rejected(reason: SelectionReason) -> Self {
        Self { status: SelectionStatus::Rejected, id: None, reason }
    }
}

/// Maps what a model wrote to one of `candidates`.
///
/// The text, without white space at both ends, is tried as an exact id, then ignoring case, then as a prefix ignoring
/// case. Where a rule matches several different candidates the text is rejected and no later rule is tried. Blank text
/// is rejected although it begins every id.
#[must_use]
pub fn validate_selection(selected: &str, candidates: &[impl AsRef<str>]) -> SelectionValidation {
    use SelectionReason::{AmbiguousCase, AmbiguousPrefix, Blank, Case, Exact, Prefix, Unknown};

    let selected = selected.trim();
    if selected.is_empty() {
        return SelectionValidation::rejected(Blank);
    }
    let candidates: BTreeSet<&str> = candidates.iter().map(AsRef::as_ref).collect();
    if candidates.contains(selected) {
        return SelectionValidation::resolved(SelectionStatus::Accepted, selected, Exact);
    }
    let folded_selection = default_case_fold_str(selected);
    let folded: Vec<(&str, String)> = candidates.into_iter().map(|id| (id, default_case_fold_str(id))).collect();
    let equal = matches(&folded, |id| id == folded_selection);
    let begun = matches(&folded, |id| id.starts_with(&folded_selection));
    match (equal.as_slice(), begun.as_slice()) {
        ([id], _) => SelectionValidation::resolved(SelectionStatus::Repaired, id, Case),
        ([_, _, ..], _) => SelectionValidation::rejected(AmbiguousCase),
        ([], [id]) => SelectionValidation::resolved(SelectionStatus::Repaired, id, Prefix),
        ([], []) => SelectionValidation::rejected(Unknown),
        ([], [_, _, ..]) => SelectionValidation::rejected(AmbiguousPrefix),
    }
}

fn matches<'c>(folded: &[(&'c str, String)], matches: impl Fn(&str) -> bool) -> Vec<&'c str> {
    folded.iter().filter(|(_, id)| matches(id)).map(|(id, _)| *id).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CANDIDATES: [&str; 5] =
        ["gh:create_issue#1a2b3c4d", "gh:create_pull#00000000", "gh:Create_pull#00000000", "s:get", "s:get_all"];

    #[test]
    fn the_schema_admits_the_candidates_and_nothing_else() {
        let ids = ["s:get", "gh:x#1a2b3c4d", "s:get"];
        for (provider, pointer) in [
            (Provider::JsonSchema, ""),
            (Provider::OpenAi, "/json_schema/schema"),
            (Provider::Anthropic, "/input_schema"),
        ] {
            let schema = selection_schema(&ids, provider).unwrap();
            let validator = jsonschema::validator_for(schema.pointer(pointer).unwrap()).unwrap();
            assert!(validator.is_valid(&json!({"selection": "s:get"})));
            for wrong in
                [json!({}), json!({"selection": "s:ge"}), json!({"selection": "s:get", "more": 1}), json!("s:get")]
            {
                assert!(!validator.is_valid(&wrong), "{wrong}");
            }
        }
        let none: [&str; 0] = [];
        assert_eq!(selection_schema(&none, Provider::OpenAi), Err(SelectionError::NoCandidates));
        insta::assert_snapshot!(selection_schema(&ids, Provider::JsonSchema).unwrap(), @r#"{"type":"object","properties":{"selection":{"type":"string","description":"The id of the chosen candidate.","enum":["s:get","gh:x#1a2b3c4d"]}},"required":["selection"],"additionalProperties":false}"#);
        insta::assert_snapshot!(selection_schema(&ids[..1], Provider::OpenAi).unwrap(), @r#"{"type":"json_schema","json_schema":{"name":"tool_selection","strict":true,"schema":{"type":"object","properties":{"selection":{"type":"string","description":"The id of the chosen candidate.","enum":["s:get"]}},"required":["selection"],"additionalProperties":false}}}"#);
        insta::assert_snapshot!(selection_schema(&ids[..1], Provider::Anthropic).unwrap(), @r#"{"name":"tool_selection","description":"Choose the candidate that fits the task best.","input_schema":{"type":"object","properties":{"selection":{"type":"string","description":"The id of the chosen candidate.","enum":["s:get"]}},"required":["selection"],"additionalProperties":false}}"#);
    }

    #[test]
    fn selections_are_accepted_repaired_or_rejected() {
        let table = [
            "s:get",
            "\n s:get\t",
            "S:Get",
            "gh:create_issue",
            "GH:CREATE_ISSUE#1A2B3C4D",
            "gh:create_pull#00000000",
            "GH:create_pull#00000000",
            "gh:create_pull",
            "s:get_",
            "s:g",
            "create_issue",
            "s:get_all_of_it",
            " ",
            "",
        ];
        let seen: Vec<String> = table
            .iter()
            .map(|text| {
                let validation = validate_selection(text, &CANDIDATES);
                format!("{text:?} {}: {:?} {}", validation.reason, validation.status, validation.id.unwrap_or_default())
            })
            .collect();
        insta::assert_snapshot!(seen.join("\n"), @r#"
        "s:get" is a candidate's id: Accepted s:get
        "\n s:get\t" is a candidate's id: Accepted s:get
        "S:Get" differs in case from one candidate's id: Repaired s:get
        "gh:create_issue" begins one candidate's id: Repaired gh:create_issue#1a2b3c4d
        "GH:CREATE_ISSUE#1A2B3C4D" differs in case from one candidate's id: Repaired gh:create_issue#1a2b3c4d
        "gh:create_pull#00000000" is a candidate's id: Accepted gh:create_pull#00000000
        "GH:create_pull#00000000" differs in case from several candidates' ids: Rejected 
        "gh:create_pull" begins several candidates' ids: Rejected 
        "s:get_" begins one candidate's id: Repaired s:get_all
        "s:g" begins several candidates' ids: Rejected 
        "create_issue" begins no candidate's id: Rejected 
        "s:get_all_of_it" begins no candidate's id: Rejected 
        " " is blank: Rejected 
        "" is blank: Rejected
        "#);
        let none: [&str; 0] = [];
        assert_eq!(validate_selection("x", &none).reason, SelectionReason::Unknown);
        assert_eq!(validate_selection("S:", &["s:get", "s:get"]).id.as_deref(), Some("s:get"), "a repeat is no rival");
        let json = serde_json::to_string(&validate_selection("S:GET", &CANDIDATES)).unwrap();
        assert_eq!(json, r#"{"status":"repaired","id":"s:get","reason":"case"}"#);
    }

    proptest! {
        #[test]
        fn a_resolved_id_is_the_only_one_that_can_be_meant(
            selected in " ?[abAB]{0,3} ?|\\PC{0,4}",
            candidates in proptest::collection::vec("[abAB]{1,4}|\\PC{1,4}", 0..6),
        ) {
            let validation = validate_selection(&selected, &candidates);
            prop_assert_eq!(validation.id.is_none(), validation.status == SelectionStatus::Rejected);
            if let Some(id) = validation.id {
                prop_assert!(candidates.contains(&id));
                let text = selected.trim();
                let fold = default_case_fold_str;
                let rival = |other: &String| match validation.reason {
                    SelectionReason::Exact => false,
                    SelectionReason::Case => fold(other) == fold(text),
                    _ => fold(other).starts_with(&fold(text)),
                };
                prop_assert!(!candidates.iter().any(|other| *other != id && rival(other)));
            }
        }
    }
}
