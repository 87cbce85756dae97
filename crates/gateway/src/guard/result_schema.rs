//! Checks the structured results of tools against the output schemas that the tools declare.

use serde_json::value::RawValue;

use super::call::{Guard, GuardedCall};
use super::schema::{Checker, OutputCheck, Quote, Violation, refused, unusable};
use crate::common::error::{Code, GatewayError};
use crate::common::work::{Exhausted, draw_bytes};
use crate::protocol::message::{Members, Raw};
use crate::protocol::strict::{self, MOST_VALUES};

/// Checks results against output schemas.
pub(super) struct ResultSchema {
    /// Whether results are checked, and what happens when one does not fit.
    pub(super) mode: OutputCheck,
}

impl Guard for ResultSchema {
    /// Refuses a tool whose output schema cannot be used, before it is called.
    fn check(&self, call: &mut GuardedCall<'_>) -> Result<(), GatewayError> {
        match call.item.zip(call.schemas).filter(|_| self.mode == OutputCheck::Enforce) {
            Some((item, schemas)) => schemas.result().map(drop).map_err(|error| unusable(item, error)),
            None => Ok(()),
        }
    }

    fn check_result(&self, call: &GuardedCall<'_>, result: &Raw) -> Result<(), GatewayError> {
        if self.mode == OutputCheck::Off {
            return Ok(());
        }
        let Some((item, schemas)) = call.item.zip(call.schemas) else { return Ok(()) };
        let Ok(Some(checker)) = schemas.result() else { return Ok(()) };
        let error = match result_violations(checker, result) {
            Ok(found) if found.is_empty() => return Ok(()),
            Ok(found) => broken(&item.id, &found),
            Err(exhausted) => {
                let what = "checking the result against the output schema";
                GatewayError::exhausted(Code::UpstreamError, what, exhausted).at(&item.id)
            }
        };
        match self.mode {
            OutputCheck::Enforce => Err(error),
            OutputCheck::Warn | OutputCheck::Off => {
                tracing::warn!(tool = %item.id, %error, "a result does not fit its schema, or cannot be checked");
                Ok(())
            }
        }
    }
}

/// The failure of a call of which the result breaks its schema at these places.
fn broken(id: &str, found: &[Violation]) -> GatewayError {
    let first = found.first().map_or("", |first| first.path.as_str());
    let error = refused(Code::UpstreamError, "the result", id, found);
    error.with("violation", "output_schema").with("schema_path", first)
}

/// Where a result breaks the promise of the output schema. Failures and questions promise nothing, and whether a result is
/// one of these is no question of the parser: each of its members stands once, and so do those of its structured content.
///
/// # Errors
/// The request has less left than the check may take.
fn result_violations(checker: &Checker, result: &Raw) -> Result<Vec<Violation>, Exhausted> {
    let whole = |reason: String| Ok(vec![Violation { path: String::new(), reason }]);
    draw_bytes(result.bytes().len())?;
    let is_bounded = std::str::from_utf8(result.bytes()).is_ok_and(|text| strict::has_at_most(text, MOST_VALUES));
    if !is_bounded {
        return whole(format!("it has more than {MOST_VALUES} values, which are not read at once"));
    }
    let members = match result.read::<Members<'_>>() {
        Ok(members) => members,
        Err(error) => return whole(format!("it is no result of a tool: {error}")),
    };
    if let Some(name) = members.repeated() {
        return whole(format!("`{name}` appears twice in it, and its reader may take either"));
    }
    let is = |key: &str, text: &str| members.get(key).is_some_and(|value| value.get() == text);
    if is("isError", "true") || is("resultType", "\"input_required\"") {
        return Ok(Vec::new());
    }
    let Some(structured) = members.get("structuredContent").map(RawValue::get) else {
        return whole("the tool promises `structuredContent`, and there is none".to_owned());
    };
    match strict::parse(structured) {
        Ok(value) => checker.violations(&value, Quote::Nothing),
        Err(error) => whole(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::guard::schema::compiled;

    #[test]
    fn results_are_held_to_their_schema() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let checker = compiled(&schema).unwrap();
        let cases = [
            (json!({"content": [], "structuredContent": {"n": 1}}), Ok::<(), &str>(())),
            (json!({"content": [], "isError": true}), Ok(())),
            (json!({"resultType": "input_required", "inputRequests": {}}), Ok(())),
            (json!({"content": []}), Err("the tool promises `structuredContent`, and there is none")),
            (
                json!({"content": [], "structuredContent": {"n": "<|im_start|>"}}),
                Err("value is not of type \"integer\""),
            ),
            (json!({"content": [], "isError": false, "structuredContent": {}}), Err("\"n\" is a required property")),
        ];
        assert!(result_violations(&checker, &Raw::of(&json!([1]))).unwrap().len() == 1);
        for (result, expected) in cases {
            let found = result_violations(&checker, &Raw::of(&result)).unwrap();
            let first = found.first().map(|first| first.reason.as_str());
            assert_eq!(first, expected.err(), "{result}");
        }
    }

    #[test]
    fn the_failure_names_the_first_place() {
        let integers = json!({"a": {"type": "integer"}, "b": {"type": "integer"}});
        let checker = compiled(&json!({"type": "object", "properties": integers})).unwrap();
        let result = json!({"structuredContent": {"b": "x", "a": "y"}});
        let error = broken("s:t#00000000", &result_violations(&checker, &Raw::of(&result)).unwrap());
        assert_eq!(error.code, Code::UpstreamError);
        let reason = "value is not of type \"integer\"";
        let details = json!({
            "violations": [{"path": "/a", "reason": reason}, {"path": "/b", "reason": reason}],
            "violation": "output_schema",
            "schema_path": "/a",
        });
        assert_eq!(Value::Object(*error.details), details);
        let missing = result_violations(&checker, &Raw::of(&json!({}))).unwrap();
        assert_eq!(broken("s:t#00000000", &missing).details["schema_path"], "");
    }

    #[test]
    fn a_result_that_can_be_read_in_two_ways_is_refused_and_so_is_one_of_very_many_values() {
        let checker = compiled(&json!({"type": "object", "properties": {"n": {"type": "integer"}}})).unwrap();
        let many = format!(r#"{{"structuredContent":{{"n":1,"m":[{}0]}}}}"#, "0,".repeat(MOST_VALUES));
        for (text, expected) in [
            (r#"{"structuredContent":{"n":1},"structuredContent":{"n":"x"}}"#, "`structuredContent` appears twice"),
            (r#"{"isError":true,"structuredContent":{"n":"x"},"isError":false}"#, "`isError` appears twice"),
            (r#"{"isError":true,"structuredContent":{"n":"x"},"is\u0045rror":false}"#, "`isError` appears twice"),
            (r#"{"structuredContent":{"n":1,"n":"x"}}"#, "`n` appears twice"),
            (&many, "more than 250000 values"),
        ] {
            let found = result_violations(&checker, &Raw::of_text(text.to_owned())).unwrap();
            assert!(found.first().is_some_and(|first| first.reason.contains(expected)), "{expected}: {found:?}");
        }
    }
}
