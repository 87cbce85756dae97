//! Repairs arguments where that is configured and the schema leaves no doubt.

use super::call::{Guard, GuardedCall};
use super::tolerant::repair;
use crate::common::error::GatewayError;

/// Repairs the arguments of calls.
pub(super) struct Repairs {
    /// Whether arguments are repaired at all.
    pub(super) enabled: bool,
}

impl Guard for Repairs {
    fn check(&self, call: &mut GuardedCall<'_>) -> Result<(), GatewayError> {
        if self.enabled {
            call.repairs = repair(&mut call.arguments, call.item.and_then(|item| item.args_schema.as_deref()));
        }
        Ok(())
    }
}
