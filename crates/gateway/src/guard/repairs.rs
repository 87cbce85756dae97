//! Repairs arguments where that is configured and the schema leaves no doubt.

use super::call::{Guard, GuardedCall};
use super::tolerant::repair;
use crate::common::budget::most_values;
use crate::common::error::GatewayError;
use crate::common::work::{draw_bytes, draw_steps};

/// Repairs the arguments of calls.
pub(super) struct Repairs {
    /// Whether arguments are repaired at all.
    pub(super) enabled: bool,
}

impl Guard for Repairs {
    fn check(&self, call: &mut GuardedCall<'_>) -> Result<(), GatewayError> {
        if self.enabled {
            let bytes = call.written_bytes();
            // A text that stands for an object is read once more.
            let again = if call.arguments.is_string() { bytes } else { 0 };
            let drawn = draw_bytes(again).and_then(|()| draw_steps(most_values(bytes)));
            drawn.map_err(|exhausted| call.exhausted("repairing the arguments", exhausted))?;
            call.repairs = repair(&mut call.arguments, call.item.and_then(|item| item.args_schema.as_deref()));
        }
        Ok(())
    }
}
