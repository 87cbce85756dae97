//! Approvals: a person is asked before a call that a rule says a person must approve.
//!
//! In the handshake era the question is a request to the client, and the call waits for the answer. In the stateless
//! protocol the question is the result of the call, and a second call brings the answer. To recognise what was
//! approved, the state that goes with the question holds a code over the caller, what is called, its arguments, a time
//! and a nonce, made with a key. It is accepted once, within five minutes; with anything else the person
//! is asked again. Where the upstream asks something after the approval, its own state travels within a code that says
//! that the call was approved.
//!
//! Replicas that share their state on a server share the key too, so that any of them takes the answer. It is read there
//! anew for each ticket: where the server has lost it, it has lost too what was used, and nothing made before is taken.
//! Other replicas have keys of their own: a call that is answered at another replica is asked about again there.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::call::{Clearance, Guard, GuardedCall, Waiting};
use super::canonical::{canonical, canonical_list};
use super::desk::{Case, Desk};
use super::policy::unapproved;
use super::shared::{Shared, SpendError};
use super::shown::shown;
use super::sign::{Key, unhex, unique};
use super::state::NonceKind;
use crate::common::error::{GatewayError, presentable};
use crate::protocol::message::{Members, Raw};
use crate::session::context::CallContext;
use contextweaver_core::catalog::SelectableItem;

/// The name of the gateway's question.
pub(crate) const QUESTION: &str = "contextweaver/approval";

/// The person who approves, where that is the one behind the client that calls.
const CLIENT: &str = "client";

/// The operator, at the console.
const OPERATOR: &str = "operator";

/// How long a person has, and how long an approval holds while the upstream asks more.
const LASTS: Duration = Duration::from_secs(300);

/// Approvals within that time, at most.
const MOST: usize = 100_000;

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

/// A key of this process; `None` when the system gives no randomness.
fn fresh() -> Option<[u8; 32]> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).ok().map(|()| key)
}

/// What makes tickets and knows them again.
struct Seals(Key);

impl Seals {
    /// What works with this key.
    fn new(key: [u8; 32]) -> Option<Self> {
        Key::new(key).ok().map(Self)
    }

    fn text(stage: Stage, until: u64, nonce: &str, state: Option<&str>, about: &str) -> String {
        canonical(&json!([stage, until, nonce, state, about]))
    }

    fn seal(&self, stage: Stage, about: &str, state: Option<String>, now: Duration) -> Option<String> {
        let (until, nonce) = (u64::try_from((now + LASTS).as_millis()).ok()?, unique());
        let mac = self.0.code(&Self::text(stage, until, &nonce, state.as_deref(), about));
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
///
/// # Errors
/// The arguments are large, and the turn to read them did not come.
async fn about(call: &GuardedCall<'_>, item: &SelectableItem) -> Result<String, GatewayError> {
    let session = call.caller.session();
    let [caller, tenant, operation, server, id] = [
        json!(session.identity().name),
        json!(session.tenant()),
        json!(call.operation.name()),
        json!(item.server),
        json!(item.id),
    ]
    .map(|value| canonical(&value));
    Ok(canonical_list(&[&caller, &tenant, &operation, &server, &id, &call.canonical_in_turn().await?]))
}

/// What makes tickets, and where they are spent.
pub(super) struct Approvals {
    /// The key of this process; `None` when the system gives no randomness.
    own: Option<[u8; 32]>,
    shared: Shared,
    /// Where an operator may answer.
    desk: Arc<Desk>,
}

impl Approvals {
    pub(super) fn new(shared: Shared, desk: Arc<Desk>) -> Self {
        Self { own: fresh(), shared, desk }
    }

    /// What makes tickets now: with the key of all replicas, or with that of this process where they share none.
    ///
    /// # Errors
    /// Why there is none.
    async fn seals(&self) -> Result<Seals, &'static str> {
        // Never the same twice: a server that has lost the key must not get it back with the tickets that it stands for.
        let (own, offered) = self.own.zip(fresh()).ok_or("the system gives no randomness to ask for it safely")?;
        let key = self.shared.run(move |state| state.shared_key(&offered)).await.map_err(|error| {
            tracing::error!(%error, "the approval key cannot be read");
            "the state that replicas share cannot be read now; try again"
        })?;
        Seals::new(key.unwrap_or(own)).ok_or("its key cannot be used")
    }

    /// Where an operator may answer.
    pub(super) fn desk(&self) -> &Arc<Desk> {
        &self.desk
    }

    /// The answer of the operator.
    ///
    /// # Errors
    /// No answer comes.
    async fn at_desk(
        &self,
        call: &GuardedCall<'_>,
        item: &SelectableItem,
        reason: &str,
    ) -> Result<Answer, GatewayError> {
        let session = call.caller.session();
        let case = Case {
            id: 0,
            caller: shown(session.label()),
            profile: session.identity().profile.clone(),
            item: item.id.clone(),
            reason: reason.to_owned(),
            arguments: call.shown.clone(),
        };
        let Some(mut laid) = self.desk.lay(case) else {
            return Err(unapproved(item, reason, "the operator has too much to answer, or answers nothing now"));
        };
        let answered = tokio::time::timeout(LASTS, laid.answered()).await;
        let approved = answered.map_err(|_| unapproved(item, reason, "the operator did not answer in time"))?;
        call.note_approver(OPERATOR);
        Ok(if approved { Ok(()) } else { Err(unapproved(item, reason, "the operator declined it")) })
    }

    /// Asks the person at the client, the operator, or both; who answers first, answers.
    async fn asked(&self, call: &GuardedCall<'_>, item: &SelectableItem, reason: &str) -> Answer {
        let (client, operator) = (ask(call, item, reason), self.at_desk(call, item, reason));
        let has_room = self.desk.has_room_for(&shown(call.caller.session().label()));
        match (has_room, call.caller.can_fill_forms() && !call.caller.is_modern()) {
            (false, true) => client.await?,
            // A client that offers no forms is never asked, whether the operator has time or not.
            (_, false) => operator.await?,
            (true, true) => first(client, operator).await?,
        }
    }

    /// The state that the client is to bring back with its answers to the upstream, whose own state is `state`.
    pub(super) async fn state_of(&self, call: &GuardedCall<'_>, state: Option<String>) -> Option<String> {
        let Some(about) = &call.approved else { return state };
        match self.seals().await {
            Ok(seals) => seals.seal(Stage::Approved, about, state, self.shared.wall.now()),
            // The person is asked again.
            Err(_) => state,
        }
    }

    /// What goes to the upstream with a call that its person has approved; `None` when nobody was asked yet.
    async fn brought(
        &self,
        call: &GuardedCall<'_>,
        item: &SelectableItem,
        about: &str,
        reason: &str,
    ) -> Result<Option<CallContext>, GatewayError> {
        let seals = self.seals().await.map_err(|why| unapproved(item, reason, why))?;
        let now = self.shared.wall.now();
        let context = &call.context;
        let state = context.request_state.as_ref().and_then(|state| state.read::<String>().ok());
        let Some(ticket) = state.and_then(|state| seals.open(&state, about, now)) else { return Ok(None) };
        let passed_on = match ticket.stage {
            Stage::Asked => {
                let answers: Members<'_> =
                    context.input_responses.as_ref().and_then(|answers| answers.read().ok()).unwrap_or_default();
                let Some(answer) = answers.get(QUESTION).map(Raw::of) else { return Ok(None) };
                call.note_approver(CLIENT);
                judge(item, reason, &answer)?;
                CallContext {
                    progress: context.progress.clone(),
                    record: context.record.clone(),
                    ..CallContext::default()
                }
            }
            Stage::Approved => {
                call.note_approver(CLIENT);
                CallContext { request_state: ticket.state.as_ref().map(Raw::of), ..context.clone() }
            }
        };
        let until = Duration::from_millis(ticket.until);
        match self.shared.spend(NonceKind::Approval, ticket.nonce.clone(), now, until, MOST).await {
            Ok(()) => Ok(Some(passed_on)),
            Err(SpendError::Seen) => Ok(None),
            Err(SpendError::Full | SpendError::Unknown) => {
                Err(unapproved(item, reason, "whether it was used before cannot be known now"))
            }
        }
    }
}

/// Takes an approval that a call of the stateless protocol brings.
pub(super) struct BroughtApproval(pub(super) Arc<Approvals>);

impl Guard for BroughtApproval {
    fn waits(&self, call: &GuardedCall<'_>) -> bool {
        call.needs_approval() && call.caller.is_modern()
    }

    fn wait<'g>(&'g self, call: &'g mut GuardedCall<'_>) -> Waiting<'g, Result<Clearance, GatewayError>> {
        Box::pin(async move {
            let Some((item, reason)) = call.item.zip(call.approval.clone()) else { return Ok(Clearance::Go) };
            let about = about(call, item).await?;
            if let Some(context) = self.0.brought(call, item, &about, &reason).await? {
                call.context = context;
                call.approved = Some(about);
            }
            Ok(Clearance::Go)
        })
    }
}

/// Asks the person behind the client for an approval that is still missing.
pub(super) struct AskedApproval(pub(super) Arc<Approvals>);

impl Guard for AskedApproval {
    fn waits(&self, call: &GuardedCall<'_>) -> bool {
        call.needs_approval() && call.approved.is_none()
    }

    fn wait<'g>(&'g self, call: &'g mut GuardedCall<'_>) -> Waiting<'g, Result<Clearance, GatewayError>> {
        Box::pin(async move {
            let Some((item, reason)) = call.item.zip(call.approval.as_deref()) else { return Ok(Clearance::Go) };
            if !call.caller.is_modern() || !call.caller.can_fill_forms() {
                return self.0.asked(call, item, reason).await.map(|()| Clearance::Go);
            }
            let seals = self.0.seals().await.map_err(|why| unapproved(item, reason, why))?;
            let now = self.0.shared.wall.now();
            let state = seals.seal(Stage::Asked, &about(call, item).await?, None, now);
            Ok(Clearance::Ask(Raw::of(&json!({
                "resultType": "input_required",
                "inputRequests": {
                    (QUESTION): {"method": "elicitation/create", "params": question(item, call.shown.clone(), reason)},
                },
                "requestState": state,
            }))))
        })
    }
}

/// Refuses what a person would have to approve and is too small a matter to ask about.
pub(super) struct NoApproval;

impl Guard for NoApproval {
    fn check(&self, call: &mut GuardedCall<'_>) -> Result<(), GatewayError> {
        match call.item.zip(call.approval.as_deref()) {
            Some((item, reason)) => Err(unapproved(item, reason, "nobody is asked to approve completions")),
            None => Ok(()),
        }
    }
}

/// Bytes of the answer of a person, at most: it says yes or no.
const LONGEST_ANSWER: usize = 64 * 1024;

/// What a person has answered: the call is approved, or it is refused so.
type Answer = Result<(), GatewayError>;

/// The answer of the person at the client; anything but a plain yes is a no.
///
/// # Errors
/// No answer comes: the client fails, or is gone.
async fn ask(call: &GuardedCall<'_>, item: &SelectableItem, reason: &str) -> Result<Answer, GatewayError> {
    let question = Raw::of(&question(item, call.shown.clone(), reason));
    let answer = call.caller.ask("elicitation/create", Some(&question)).await;
    let answer = answer
        .map_err(|error| unapproved(item, reason, &format!("nobody approved it ({})", presentable(&error.message))))?;
    call.note_approver(CLIENT);
    Ok(judge(item, reason, &answer))
}

/// The first answer of two; one of whom none comes leaves it to the other.
async fn first(
    one: impl Future<Output = Result<Answer, GatewayError>>,
    other: impl Future<Output = Result<Answer, GatewayError>>,
) -> Result<Answer, GatewayError> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    tokio::select! {
        answer = &mut one => if answer.is_ok() { answer } else { other.await },
        answer = &mut other => if answer.is_ok() { answer } else { one.await },
    }
}

/// Reads the answer of the person; anything but a plain yes is a no.
fn judge(item: &SelectableItem, reason: &str, answer: &Raw) -> Answer {
    #[derive(Deserialize)]
    struct Elicited {
        action: String,
        content: Option<Content>,
    }
    #[derive(Deserialize)]
    struct Content {
        #[serde(default)]
        approve: bool,
    }
    let unread = |why: String| unapproved(item, reason, &format!("nobody approved it ({why})"));
    if answer.bytes().len() > LONGEST_ANSWER {
        return Err(unread(format!("the answer has {} bytes, over {LONGEST_ANSWER}", answer.bytes().len())));
    }
    let answer: Elicited = answer.read().map_err(|error| unread(error.to_string()))?;
    match (answer.action.as_str(), answer.content) {
        ("accept", Some(Content { approve: true })) => Ok(()),
        ("cancel", _) => Err(unapproved(item, reason, "the request for approval was dismissed")),
        _ => Err(unapproved(item, reason, "it was not approved")),
    }
}

/// The question that a person is put, with what they are shown of the arguments.
fn question(item: &SelectableItem, arguments: Vec<String>, reason: &str) -> Value {
    let mut lines = vec![format!("Allow a call to `{}`? {reason}", item.id)];
    lines.extend(arguments);
    json!({
        "message": lines.join("\n"),
        "requestedSchema": {
            "type": "object",
            "properties": {"approve": {"type": "boolean", "title": "Allow this call", "default": false}},
            "required": ["approve"],
        },
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::value::RawValue;
    use tokio::sync::mpsc;

    use super::*;
    use crate::common::error::Code;
    use crate::guard::call::Route;
    use crate::guard::shown::argument_lines;
    use crate::protocol::client_info::{Capabilities, ClientInfo};
    use crate::protocol::message::{Message, RpcError};
    use crate::protocol::versions::MODERN_VERSION;
    use crate::session::client::{Caller, Session};
    use crate::surface::meta_tools::MetaTool;

    const NOW: Duration = Duration::from_secs(1_700_000_000);

    #[test]
    fn a_ticket_is_for_its_own_call_and_time() {
        let new = || Seals::new(fresh().unwrap()).unwrap();
        let (seals, others) = (new(), new());
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

    fn tool(id: &str) -> SelectableItem {
        let (namespace, name) = id.split_once(':').unwrap();
        SelectableItem::tool(&format!("{id}#00000000"), namespace, name, "")
    }

    fn caller(capabilities: Value, version: &str) -> (Caller, mpsc::Receiver<Bytes>) {
        let (out, messages) = mpsc::channel(8);
        let Value::Object(capabilities) = capabilities else { panic!() };
        let client = ClientInfo {
            version: version.to_owned(),
            capabilities: Capabilities::from_iter(capabilities),
            ..ClientInfo::default()
        };
        (Caller::new(Session::new("s"), client, out), messages)
    }

    #[test]
    fn only_clients_that_can_are_asked() {
        let cases = [
            (json!({"elicitation": {}}), "2025-11-25", true),
            (json!({"elicitation": {"form": {}, "url": {}}}), "2025-11-25", true),
            (json!({"elicitation": {"url": {}}}), "2025-11-25", false),
            (json!({"elicitation": true}), "2025-11-25", false),
            (json!({}), "2025-11-25", false),
            (json!({"elicitation": {}}), MODERN_VERSION, true),
            (json!({}), MODERN_VERSION, false),
        ];
        for (capabilities, version, expected) in cases {
            assert_eq!(caller(capabilities.clone(), version).0.can_fill_forms(), expected, "{capabilities} {version}");
        }
    }

    /// What a person is shown of these arguments.
    fn lines(arguments: Value) -> Vec<String> {
        let (caller, _messages) = caller(json!({}), "2025-11-25");
        let mut call = GuardedCall::new(Route::Tool, MetaTool::Execute, &caller, CallContext::default());
        call.arguments = arguments;
        argument_lines(&call.arguments, call.written)
    }

    #[test]
    fn the_question_shows_names_and_shortened_values() {
        let secret = format!("AKIA{}", "IOSFODNN7EXAMPLE");
        let arguments =
            json!({"path": "/etc/x\n\u{1b}[2JApproved by admin", "key": secret, "n": 5, "text": "y".repeat(500)});
        let params = question(&tool("fs:write"), lines(arguments), "it writes");
        assert!(!params.to_string().contains(&secret));
        let shown: Vec<&str> = params["message"].as_str().unwrap().lines().collect();
        let text = format!("text = \"{}… (502 characters)", "y".repeat(79));
        assert_eq!(
            shown[..2],
            ["Allow a call to `fs:write#00000000`? it writes", r#"path = "/etc/x\n\u{1b}[2JApproved by admin""#]
        );
        assert!(shown[2].starts_with("key = ") && shown[2].contains("[REDACTED: "), "{}", shown[2]);
        assert_eq!(shown[3..], ["n = 5", text.as_str()]);
        let many: serde_json::Map<String, Value> = (0..30).map(|n| (format!("a{n}"), n.into())).collect();
        let message = question(&tool("fs:write"), lines(Value::Object(many)), "");
        let message = message["message"].as_str().unwrap();
        assert!(message.ends_with("and 10 more arguments"), "{message}");
    }

    #[tokio::test]
    async fn numbers_are_approved_and_shown_as_they_are_written() {
        let (caller, _messages) = caller(json!({}), "2025-11-25");
        let item = tool("bank:pay");
        let call = async |text: &str| {
            let written: Box<RawValue> = serde_json::from_str(text).unwrap();
            let mut call = GuardedCall::new(Route::Tool, MetaTool::Execute, &caller, CallContext::default());
            (call.arguments, call.written) = (serde_json::from_str(text).unwrap(), Some(&*written));
            let (before, lines) = (about(&call, &item).await.unwrap(), argument_lines(&call.arguments, call.written));
            call.approval = Some("it writes".to_owned());
            call.settle();
            assert!(call.arguments.is_null(), "what waits for a person holds no more than the text");
            assert_eq!((about(&call, &item).await.unwrap(), &call.shown), (before.clone(), &lines));
            (before, lines)
        };
        let amount =
            async |amount: &str| call(&format!(r#"{{"amount": {amount}, "of": [{{"b" : {amount}}}, 1]}}"#)).await;
        let (one, lines) = amount("12345678901234567890124").await;
        assert_eq!(lines, ["amount = 12345678901234567890124", r#"of = [{"b":12345678901234567890124},1]"#]);
        assert_ne!(one, amount("12345678901234567890999").await.0);
        assert_eq!(one, amount("1.2345678901234567890124e22").await.0);
        assert_eq!(call(r#"{"a":1,"b":2.0}"#).await.0, call(r#"{"b": 2, "a": 1.0}"#).await.0);
    }

    #[test]
    fn only_a_plain_yes_approves() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(ask_with_every_answer());
    }

    async fn ask_with_every_answer() {
        let answers: Vec<(Result<Value, RpcError>, bool)> = vec![
            (Ok(json!({"action": "accept", "content": {"approve": true}})), true),
            (Ok(json!({"action": "accept", "content": {"approve": false}})), false),
            (Ok(json!({"action": "accept", "content": {"approve": "true"}})), false),
            (Ok(json!({"action": "accept", "content": {}})), false),
            (Ok(json!({"action": "accept"})), false),
            (Ok(json!({"action": "accept", "content": [[]]})), false),
            (Ok(json!({"action": "accept", "content": {"approve": true, "x": "x".repeat(LONGEST_ANSWER)}})), false),
            (Ok(json!({"action": "decline", "content": {"approve": true}})), false),
            (Ok(json!({"action": "cancel"})), false),
            (Ok(json!([])), false),
            (Err(RpcError::new(-1, "no")), false),
        ];
        for (answer, expected) in answers {
            let (caller, mut messages) = caller(json!({"elicitation": {}}), "2025-11-25");
            let session = Arc::clone(caller.session());
            let shown = format!("{answer:.100?}");
            let client = tokio::spawn(async move {
                let Message::Request { id, method, .. } = Message::parse(messages.recv().await.unwrap()).unwrap()
                else {
                    panic!()
                };
                assert_eq!(method, "elicitation/create");
                session.answered(&id, answer.map(|answer| Raw::of(&answer)));
            });
            let (result, approver) = asked_at(&caller).await;
            client.await.unwrap();
            assert_eq!(result.is_ok(), expected, "{shown}");
            assert!(result.is_ok() || result.unwrap_err().code == Code::ApprovalRequired);
            // Who only failed has not decided.
            assert_eq!(approver.as_deref(), (!shown.starts_with("Err")).then_some(CLIENT), "{shown}");
        }
        let (caller, messages) = caller(json!({"elicitation": {}}), "2025-11-25");
        drop(messages);
        let (result, approver) = asked_at(&caller).await;
        assert!(result.is_err() && approver.is_none(), "a client that is gone approves nothing");
    }

    /// What the person at a client answers, and who is noted for it.
    async fn asked_at(caller: &Caller) -> (Answer, Option<String>) {
        let call = GuardedCall::new(Route::Tool, MetaTool::Execute, caller, CallContext::default());
        let answer = ask(&call, &tool("fs:write"), "it writes").await;
        (answer.and_then(|answer| answer), call.context.record.account().approver)
    }
}
