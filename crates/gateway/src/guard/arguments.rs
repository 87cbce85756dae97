//! Parses the arguments of a call, once, and refuses those that another parser could read differently.

use serde_json::value::RawValue;

use super::call::{Guard, GuardedCall};
use crate::common::error::{Code, GatewayError};
use crate::common::work::draw_bytes;
use crate::protocol::strict;

/// Parses arguments and keeps the value in the call.
pub(super) struct ParsedArguments;

impl Guard for ParsedArguments {
    fn check(&self, call: &mut GuardedCall<'_>) -> Result<(), GatewayError> {
        // The text goes on as it is: it must say what is checked here, in whatever parser.
        let written = call.written.map_or("{}", RawValue::get);
        draw_bytes(written.len()).map_err(|exhausted| call.exhausted("reading the arguments", exhausted))?;
        let parsed = strict::parse(written);
        let refused = |error: serde_json::Error| GatewayError::new(Code::ArgsInvalid, error.to_string());
        call.arguments = parsed.map_err(|error| refused(error).at(call.subject()))?;
        Ok(())
    }
}
