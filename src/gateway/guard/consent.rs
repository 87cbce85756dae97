//! The approval of a person at a client of the stateless protocol, which is asked by a result and answered by a second
//! call.
//!
//! The second call is another request, so that what was approved must be known again: the state that goes with the
//! question holds a code over the caller, what is called, its arguments, a time and a nonce, made with a key of this
//! process. It is taken within five minutes and once; anything else that comes with a call is as if nothing came, and
//! the person is asked anew. Where the upstream asks something too, after the approval, its own state travels within a
//! code that says that the call was approved.
//!
//! Other replicas do not have the key: a call that is answered at another one is asked about again there.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Guards;
use super::canonical::canonical;
use super::policy;
use super::sign::{Key, SignatureError, unhex, unique};
use super::state::Take;
use super::{Admission, limited};
use crate::catalog::SelectableItem;
use crate::gateway::error::GatewayError;
use crate::gateway::execute::Along;
use crate::gateway::session::Caller;
use crate::gateway::surface::MetaTool;
use crate::gateway::wire::{Members, Raw};
use crate::text::hex;

/// The name of the gateway's question.
pub(in crate::gateway) const QUESTION: &str = "contextweaver/approval";

/// How long a person has, and how long an approval holds while the upstream asks more.
const LASTS: Duration = Duration::from_secs(300);

/// Approvals within that time, at most.
const MOST: usize = 100_000;

/// A call that all have agreed to, and what goes to the upstream with it.
#[derive(Debug)]
pub(in crate::gateway) struct Passage {
    /// The answers of the client that are for the upstream.
    pub(in crate::gateway) along: Along,
    /// What was approved, where a client of the stateless protocol approved it.
    approved: Option<String>,
}

impl Passage {
    /// The passage of a call about which nobody was asked.
    pub(in crate::gateway) fn unasked(along: Along) -> Self {
        Self { along, approved: None }
    }
}

/// What came of asking everybody.
#[derive(Debug)]
pub(in crate::gateway) enum Agreed {
    /// The call may be made.
    Go(Passage),
    /// The client is to be asked by this result.
    Ask(Raw),
}

/// How far an approval is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    /// The person is asked.
    Asked,
    /// The person has agreed, and the upstream asks.
    Approved,
}

/// What travels with a question, and comes back.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ticket {
    stage: Stage,
    /// When it ends, in milliseconds since 1970.
    until: u64,
    nonce: String,
    /// The upstream's own state.
    state: Option<String>,
    mac: String,
}

/// What makes tickets and knows them again.
pub(super) struct Seals(Key);

impl Seals {
    /// A key of this process; `None` when the system gives no randomness.
    pub(super) fn new() -> Option<Self> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).ok()?;
        Key::new(key).ok().map(Self)
    }

    fn text(stage: Stage, until: u64, nonce: &str, state: Option<&str>, about: &str) -> String {
        canonical(&json!([stage, until, nonce, state, about]))
    }

    fn seal(&self, stage: Stage, about: &str, state: Option<String>, now: Duration) -> Option<String> {
        let (until, nonce) = (u64::try_from((now + LASTS).as_millis()).ok()?, unique());
        let mac = hex(&self.0.code(&Self::text(stage, until, &nonce, state.as_deref(), about))?);
        serde_json::to_string(&Ticket { stage, until, nonce, state, mac }).ok()
    }

    /// The ticket in this text, when it was made here about this, and not too long ago.
    fn open(&self, text: &str, about: &str, now: Duration) -> Option<Ticket> {
        let ticket: Ticket = serde_json::from_str(text).ok()?;
        let signed = Self::text(ticket.stage, ticket.until, &ticket.nonce, ticket.state.as_deref(), about);
        let is_ours = self.0.is_code(&signed, &unhex(&ticket.mac)?);
        (is_ours && now <= Duration::from_millis(ticket.until)).then_some(ticket)
    }
}

/// What is approved, as one text: who calls what with which arguments.
fn about(caller: &Caller, tool: MetaTool, item: &SelectableItem, arguments: &Value) -> String {
    canonical(&json!([caller.session().identity().name, tool.name(), item.server, item.id, arguments]))
}

impl Guards {
    /// Counts a call that was admitted, and asks a person where that is the condition.
    ///
    /// # Errors
    /// The call is refused.
    pub(in crate::gateway) async fn agree(
        &self,
        caller: &Caller,
        (tool, item): (MetaTool, &SelectableItem),
        admission: &Admission,
        arguments: &Value,
        along: &Along,
    ) -> Result<Agreed, GatewayError> {
        let Some(reason) = &admission.approval else {
            self.count(caller, tool, item).await?;
            return Ok(Agreed::Go(Passage::unasked(along.clone())));
        };
        if !caller.is_modern() {
            self.count(caller, tool, item).await?;
            policy::ask(caller, item, arguments, reason).await?;
            return Ok(Agreed::Go(Passage::unasked(along.clone())));
        }
        let Some(seals) = &self.seals else {
            return Err(policy::unapproved(item, reason, "the system gives no randomness to ask for it safely"));
        };
        let about = about(caller, tool, item, arguments);
        match self.consented(seals, item, &about, reason, along).await? {
            Some(along) => {
                self.count(caller, tool, item).await?;
                Ok(Agreed::Go(Passage { along, approved: Some(about) }))
            }
            None => {
                // The call that brings the answer is the one that counts.
                self.take(caller, tool, Some(item), Take::Look).await?.map_err(|over| limited(&over).at(&item.id))?;
                let state = seals.seal(Stage::Asked, &about, None, self.wall.now());
                Ok(Agreed::Ask(Raw::of(&json!({
                    "resultType": "input_required",
                    "inputRequests": {
                        (QUESTION): {"method": "elicitation/create", "params": policy::question(item, arguments, reason)},
                    },
                    "requestState": state,
                }))))
            }
        }
    }

    /// What goes to the upstream with a call that its person has approved; `None` when nobody was asked yet.
    async fn consented(
        &self,
        seals: &Seals,
        item: &SelectableItem,
        about: &str,
        reason: &str,
        along: &Along,
    ) -> Result<Option<Along>, GatewayError> {
        let now = self.wall.now();
        let state = along.request_state.as_ref().and_then(|state| state.read::<String>().ok());
        let Some(ticket) = state.and_then(|state| seals.open(&state, about, now)) else { return Ok(None) };
        let passed_on = match ticket.stage {
            Stage::Asked => {
                let answers: Members<'_> =
                    along.input_responses.as_ref().and_then(|answers| answers.read().ok()).unwrap_or_default();
                let Some(answer) = answers.get(QUESTION).map(Raw::of) else { return Ok(None) };
                policy::judge(item, reason, &answer)?;
                Along { progress: along.progress.clone(), ..Along::default() }
            }
            Stage::Approved => Along { request_state: ticket.state.as_ref().map(Raw::of), ..along.clone() },
        };
        let (nonce, until) = (format!("approval:{}", ticket.nonce), Duration::from_millis(ticket.until));
        match self.spend(nonce, now, until, MOST).await {
            Ok(()) => Ok(Some(passed_on)),
            Err(SignatureError::Replayed) => Ok(None),
            Err(_) => Err(policy::unapproved(item, reason, "whether it was used before cannot be known now")),
        }
    }

    /// What the client is to bring back with its answers to the upstream, whose own state is `state`.
    pub(in crate::gateway) fn state_of(&self, passage: &Passage, state: Option<String>) -> Option<String> {
        match (&passage.approved, &self.seals) {
            (Some(about), Some(seals)) => seals.seal(Stage::Approved, about, state, self.wall.now()),
            _ => state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_700_000_000);

    #[test]
    fn a_ticket_is_for_its_own_call_and_time() {
        let (seals, others) = (Seals::new().unwrap(), Seals::new().unwrap());
        let text = seals.seal(Stage::Asked, "a", Some("s".to_owned()), NOW).unwrap();
        let ticket = seals.open(&text, "a", NOW + LASTS).unwrap();
        assert_eq!((ticket.stage, ticket.state.as_deref()), (Stage::Asked, Some("s")));
        assert!(seals.open(&text, "b", NOW).is_none(), "another call");
        assert!(seals.open(&text, "a", NOW + LASTS + Duration::from_millis(1)).is_none(), "too late");
        assert!(others.open(&text, "a", NOW).is_none(), "another process");
        for (from, to) in [("asked", "approved"), (r#""state":"s""#, r#""state":"t""#), ("until\":1", "until\":2")] {
            let forged = text.replacen(from, to, 1);
            assert!(forged != text && seals.open(&forged, "a", NOW).is_none(), "{forged}");
        }
        assert!(seals.open("", "a", NOW).is_none() && seals.open("{}", "a", NOW).is_none());
        // No two are one.
        assert_ne!(text, seals.seal(Stage::Asked, "a", Some("s".to_owned()), NOW).unwrap());
    }
}
