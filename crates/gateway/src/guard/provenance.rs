//! Writes into a result how it came about: repairs of arguments, the cache, its sensitivity.

use std::sync::Arc;

use serde_json::json;

use super::call::{Guard, GuardedCall};
use super::policy::PolicyConfig;
use contextweaver_context::event::{ResultEnvelope, Sensitivity};

/// Writes how a result came about.
pub(super) struct Provenance {
    /// What the operator says of tools.
    pub(super) policy: Arc<PolicyConfig>,
}

impl Guard for Provenance {
    fn present(&self, call: &GuardedCall<'_>, envelope: &mut ResultEnvelope) {
        if !call.repairs.is_empty() {
            envelope.provenance.insert("arg_repairs".to_owned(), json!(call.repairs));
        }
        if call.cached.is_some() {
            envelope.provenance.insert("cache_hit".to_owned(), true.into());
        }
        let sensitivity = call.item.map_or(Sensitivity::Public, |item| self.policy.sensitivity(item));
        if sensitivity != Sensitivity::Public {
            envelope.provenance.insert("sensitivity".to_owned(), json!(sensitivity));
        }
    }
}
