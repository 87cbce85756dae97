//! Stage 4: replaces large results, repeats, echoes and calls with large arguments by short texts.

use std::borrow::Cow;

use super::{Candidate, CompileError};
use crate::event::{ItemKind, Transcript};
use crate::firewall::{Firewall, Screened, Seen};
use crate::stats::{FirewallCause, FirewallEvent};

/// The candidates with their results as the prompt shows them, and what the firewall did, where it did something.
pub(super) fn apply<'t>(
    transcript: &'t Transcript,
    candidates: Vec<Candidate<'t>>,
    firewall: &Firewall,
) -> Result<(Vec<Candidate<'t>>, Vec<FirewallEvent>), CompileError> {
    let mut seen = Seen::default();
    let mut events = Vec::new();
    // The position of each event that is shown, so that a result finds its call as the filter left it.
    let mut places: Vec<Option<usize>> = vec![None; transcript.len()];
    let mut shown: Vec<Candidate<'t>> = Vec::with_capacity(candidates.len());
    for Candidate { position, item } in candidates {
        places[position] = Some(shown.len());
        if item.kind != ItemKind::ToolResult {
            shown.push(Candidate { position, item });
            continue;
        }
        let call = transcript.parent(position).and_then(|parent| places[parent]).map(|place| &*shown[place].item);
        let screened = firewall
            .screen_if_needed(call, &item, &mut seen)
            .map_err(|source| CompileError::Firewall { item: item.id.clone(), source })?;
        let Some(mut screened) = screened else {
            shown.push(Candidate { position, item });
            continue;
        };
        // A summary is as sensitive as the result, whoever wrote it.
        screened.item.sensitivity = screened.item.sensitivity.max(item.sensitivity);
        events.push(FirewallEvent { item_id: item.id.clone(), cause: FirewallCause::Screened, stats: screened.stats });
        shown.push(Candidate { position, item: Cow::Owned(screened.item) });
    }
    // Calls come last: results are compared with everything that was sent.
    for candidate in shown.iter_mut().filter(|candidate| candidate.item.kind == ItemKind::ToolCall) {
        let failed = |source| CompileError::Firewall { item: candidate.item.id.clone(), source };
        let Some(Screened { item, stats }) = firewall.screen_call(&candidate.item).map_err(failed)? else { continue };
        events.push(FirewallEvent { item_id: item.id.clone(), cause: FirewallCause::Screened, stats });
        candidate.item = Cow::Owned(item);
    }
    Ok((shown, events))
}
