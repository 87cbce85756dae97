//! Cleans what a model sees of a result.

use super::call::{Guard, GuardedCall};
use crate::common::sanitize::{SanitizeConfig, Scope};
use crate::protocol::message::Raw;
use contextweaver_context::event::ResultEnvelope;

impl Guard for SanitizeConfig {
    fn present(&self, _call: &GuardedCall<'_>, envelope: &mut ResultEnvelope) {
        self.envelope(envelope);
    }

    fn present_raw(&self, result: Raw) -> Raw {
        match self.scope {
            Scope::All => self.raw(&result),
            Scope::Shown | Scope::Off => result,
        }
    }
}
