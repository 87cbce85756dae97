//! Refuses calls of what the caller's visibility profile hides.
//!
//! Listed items are looked up in the view that the profile shows; this guard is about addresses that no list names.

use std::sync::Arc;

use super::call::{Guard, GuardedCall};
use super::policy::PolicyConfig;
use super::profiles::Profiles;
use crate::common::error::{Code, GatewayError};

/// Refuses what the caller's profile hides.
pub(super) struct Hidden {
    /// The profiles of callers.
    pub(super) profiles: Arc<Profiles>,
    /// The lists that profiles refer to.
    pub(super) policy: Arc<PolicyConfig>,
}

impl Guard for Hidden {
    fn check(&self, call: &mut GuardedCall<'_>) -> Result<(), GatewayError> {
        let (Some(profile), Some(item)) = (self.profiles.of(call.caller), call.item) else { return Ok(()) };
        let mut forms = std::iter::once(item).chain(&call.spellings);
        if forms.all(|form| self.policy.shows(profile, form)) {
            return Ok(());
        }
        Err(GatewayError::new(Code::PolicyDenied, "the profile of this caller does not show it").at(&item.id))
    }
}
