//! Stage 3: drops or masks items at or above the sensitivity floor.
//!
//! This comes before the firewall, so that no summary and no comparison with earlier results ever reads them. Dropping
//! an item drops everything that depends on it: the rest of a conversation about a secret tends to repeat it.

use std::borrow::Cow;

use serde_json::Value;

use super::{Candidate, Ledger, render};
use crate::config::{Policy, SensitivityAction};
use crate::event::{ContextItem, Transcript};
use crate::stats::DropReason;

/// The candidates that may be shown, masked where the policy says so.
pub(super) fn filter<'t>(
    transcript: &'t Transcript,
    positions: &[usize],
    policy: &Policy,
    ledger: &mut Ledger,
) -> Vec<Candidate<'t>> {
    let mut hidden = vec![false; transcript.len()];
    let mut kept = Vec::with_capacity(positions.len());
    for &position in positions {
        let item = &transcript.items()[position];
        let sensitive = item.sensitivity >= policy.sensitivity_floor;
        let lost = transcript.parent(position).filter(|&parent| hidden[parent]);
        if sensitive && policy.sensitivity_action == SensitivityAction::Drop {
            hidden[position] = true;
            ledger.drop(item, DropReason::Sensitivity { level: item.sensitivity });
        } else if let Some(parent) = lost {
            hidden[position] = true;
            ledger.drop(item, DropReason::Closure { ancestor: transcript.items()[parent].id.clone() });
        } else {
            let item = if sensitive { Cow::Owned(masked(item)) } else { Cow::Borrowed(item) };
            kept.push(Candidate { position, item });
        }
    }
    kept
}

/// The item without its text. Only the members of its metadata that name it remain: any other may hold the secret.
fn masked(item: &ContextItem) -> ContextItem {
    let mut masked = item.clone();
    masked.text = render::masked(item);
    masked.artifact = None;
    masked.metadata.retain(|name, _| name == "function_name" || name == "section");
    masked.metadata.insert("redacted".to_owned(), Value::Bool(true));
    masked
}
