//! Checks the arguments of a call against the schema of what is called.

use serde_json::{Value, json};

use super::call::{Guard, GuardedCall, Waiting};
use super::schema::{Quote, refused, unusable};
use crate::common::error::{Code, GatewayError};

/// What is done, as a failure names it.
pub(super) const CHECKING: &str = "checking the arguments against the schema";

/// Checks arguments against schemas.
pub(super) struct ArgumentSchema;

impl Guard for ArgumentSchema {
    fn check(&self, call: &mut GuardedCall<'_>) -> Result<(), GatewayError> {
        if !call.arguments.is_object() {
            return Err(GatewayError::new(Code::ArgsInvalid, "`args` must be an object").at(call.subject()));
        }
        let Some((item, schemas)) = call.item.zip(call.schemas) else { return Ok(()) };
        let checker = schemas.arguments().map_err(|error| unusable(item, error))?;
        let found = checker.map(|checker| checker.violations(&call.arguments, Quote::Values)).transpose();
        match found.map_err(|exhausted| call.exhausted(CHECKING, exhausted))?.unwrap_or_default() {
            found if found.is_empty() => Ok(()),
            found => Err(refused(Code::ArgsInvalid, "the arguments", &item.id, &found)),
        }
    }

    fn report<'g>(&'g self, call: &'g GuardedCall<'_>) -> Waiting<'g, Result<Vec<Value>, GatewayError>> {
        let mut checks = vec![json!({"name": "schema_validation", "status": "pass"})];
        if !call.repairs.is_empty() {
            checks.push(json!({"name": "arg_repairs", "status": "pass", "repairs": call.repairs}));
        }
        Box::pin(std::future::ready(Ok(checks)))
    }
}
