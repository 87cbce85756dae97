//! The order of the guards, and which of them each kind of request uses.
//!
//! [`rows`] is the only place that says so. A call goes down the list: first the guards that decide at once, then those
//! that wait for a person, a disk or another process. Nothing of an upstream is touched before all have agreed. The
//! answer goes through the same list: it is checked, kept in the cache, and presented. A dry run stops after the guards
//! that decide at once and uses nothing up.
//!
//! To add a guard:
//!
//! 1. Write `guard/NAME.rs` with a type that implements [`Guard`]; only the methods that the guard needs. It takes what it
//!    needs to know in fields, and leaves what it finds out in the [`GuardedCall`]. Declare the file in `guard/mod.rs`.
//! 2. Add one row to [`rows`], at the place in the order where the guard belongs. A kind of request that does not use it
//!    gets `No` with the reason.
//! 3. Add rows to the tables in `tests/guards.rs`: one that the guard lets pass, one that it refuses.
//!
//! A guard with a configuration also has a section in `guard/config.rs` and `config/file.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::address::Address;
use super::approval::{Approvals, AskedApproval, BroughtApproval, NoApproval};
use super::argument_schema::{ArgumentSchema, CHECKING};
use super::arguments::ParsedArguments;
use super::cache::Cache;
use super::call::{Clearance, Guard, GuardedCall, Route};
use super::config::{Access, GuardConfig};
use super::desk::Desk;
use super::limits::{Quotas, SteadyClock};
use super::pins::{PinConfig, PinMode, Pins, Quarantine};
use super::policy::{PolicyConfig, Rules};
use super::profiles::{Profiles, Visibility};
use super::provenance::Provenance;
use super::repairs::Repairs;
use super::result_schema::ResultSchema;
use super::schema::{Finding, OnInvalid, explosive_among};
use super::shared::Shared;
use super::sign::Signatures;
use super::state::{MemoryState, Pinned, State};
use super::visibility::Hidden;
use crate::common::error::{Code, GatewayError};
use crate::common::sanitize::SanitizeConfig;
use crate::common::sync::lock;
use crate::common::work::{Exhausted, LARGE, in_turn_if};
use crate::protocol::message::Raw;
use crate::session::client::Caller;
use contextweaver_context::event::{ResultEnvelope, Sensitivity};
use contextweaver_context::store::{StoreError, SystemClock};
use contextweaver_core::catalog::SelectableItem;
use contextweaver_routing::RouteError;

/// Whether a kind of request uses a guard, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Yes,
    No(&'static str),
}

/// The name of the row about signatures, which are made where an upstream is asked.
const SIGNATURE: &str = "signature";

/// A guard, its name, and the kinds of requests that use it.
struct Row {
    name: &'static str,
    guard: Box<dyn Guard>,
    /// In the order of [`Route`].
    uses: [Use; Route::COUNT],
}

/// What guards are made of.
struct Parts {
    config: GuardConfig,
    repairs: bool,
    policy: Arc<PolicyConfig>,
    profiles: Arc<Profiles>,
    approvals: Arc<Approvals>,
    signatures: Signatures,
    cache: Cache,
    shared: Shared,
}

/// The guards in their order, each with the kinds of requests that use it.
#[rustfmt::skip]
fn rows(parts: &Parts) -> Vec<Row> {
    use Use::{No, Yes};
    // Why a kind of request does not use a guard.
    const NAMELESS: Use = No("it names no item");
    const UNTOUCHED: Use = No("with a single upstream nothing is refused or changed, except by `sanitize.scope: all`");
    const URI: Use = No("its only argument is a URI");
    const PARTIAL: Use = No("the arguments of a completion are unfinished");
    const OWN: Use = No("the gateway reads the arguments of its own tools itself");
    const AS_WRITTEN: Use = No("under the protocol's own method arguments pass as they were written");
    const UNTYPED: Use = No("only tools declare the schema of their results");
    const ASKED: Use = No("a person is asked further down");
    const TOO_SMALL: Use = No("nobody is asked about it: what needs an approval is refused or left out");
    const NO_CALL: Use = No("it asks no upstream, so nobody has to approve it");
    const COUNTED: Use = No("a resource is counted when it is subscribed to");
    const UNCACHED: Use = No("only results of tools are cached");
    const UNSIGNED: Use = No("only calls of tools are signed");
    const PLAIN: Use = No("only results of tools say how they came about");
    const TEXTLESS: Use = No("its result holds no text of an upstream");
    const CLEANED: Use = No("the gateway's own tools clean what they show themselves");
    let (policy, profiles) = (|| Arc::clone(&parts.policy), || Arc::clone(&parts.profiles));
    let approvals = || Arc::clone(&parts.approvals);
    let namespaces = parts.config.item_patterns().map(|(_, glob)| glob.namespace().map(str::to_owned)).collect();
    let quotas = Quotas { limits: parts.config.rate_limits.clone(), policy: policy(), shared: parts.shared.clone() };
    let row = |name, guard, uses| Row { name, guard, uses };
    vec![
        // Columns:                 Tool      Resource  Prompt    Published   Completion Subscription Listening  OwnTool   OnlyUpstream
        row("address", Box::new(Address { namespaces }) as Box<dyn Guard>,
                                   [Yes,      Yes,      Yes,      Yes,        Yes,       Yes,         Yes,       NAMELESS, UNTOUCHED]),
        row("visibility", Box::new(Hidden { profiles: profiles(), policy: policy() }),
                                   [Yes,      Yes,      Yes,      Yes,        Yes,       Yes,         Yes,       NAMELESS, UNTOUCHED]),
        row("policy", Box::new(Rules { policy: policy(), profiles: profiles(), desk: Arc::clone(parts.approvals.desk()) }),
                                   [Yes,      Yes,      Yes,      Yes,        Yes,       Yes,         Yes,       Yes,      UNTOUCHED]),
        row("no approval", Box::new(NoApproval),
                                   [ASKED,    ASKED,    ASKED,    ASKED,      Yes,       ASKED,       TOO_SMALL, NO_CALL,  UNTOUCHED]),
        row("arguments", Box::new(ParsedArguments),
                                   [Yes,      URI,      Yes,      Yes,        PARTIAL,   URI,         URI,       OWN,      UNTOUCHED]),
        row("repairs", Box::new(Repairs { enabled: parts.repairs }),
                                   [Yes,      URI,      Yes,      AS_WRITTEN, PARTIAL,   URI,         URI,       OWN,      UNTOUCHED]),
        row("argument schema", Box::new(ArgumentSchema),
                                   [Yes,      URI,      Yes,      Yes,        PARTIAL,   URI,         URI,       OWN,      UNTOUCHED]),
        row("result schema", Box::new(ResultSchema { mode: parts.config.schemas.output }),
                                   [Yes,      UNTYPED,  UNTYPED,  UNTYPED,    UNTYPED,   UNTYPED,     UNTYPED,   UNTYPED,  UNTOUCHED]),
        row("brought approval", Box::new(BroughtApproval(approvals())),
                                   [Yes,      Yes,      Yes,      Yes,        TOO_SMALL, Yes,         TOO_SMALL, NO_CALL,  UNTOUCHED]),
        row("quota", Box::new(quotas),
                                   [Yes,      Yes,      Yes,      Yes,        Yes,       Yes,         COUNTED,   Yes,      UNTOUCHED]),
        row("asked approval", Box::new(AskedApproval(approvals())),
                                   [Yes,      Yes,      Yes,      Yes,        TOO_SMALL, Yes,         TOO_SMALL, NO_CALL,  UNTOUCHED]),
        row("cache", Box::new(parts.cache.clone()),
                                   [Yes,      UNCACHED, UNCACHED, UNCACHED,   UNCACHED,  UNCACHED,    UNCACHED,  UNCACHED, UNTOUCHED]),
        row(SIGNATURE, Box::new(parts.signatures.clone()),
                                   [Yes,      UNSIGNED, UNSIGNED, UNSIGNED,   UNSIGNED,  UNSIGNED,    UNSIGNED,  UNSIGNED, UNTOUCHED]),
        row("provenance", Box::new(Provenance { policy: policy() }),
                                   [Yes,      PLAIN,    PLAIN,    PLAIN,      PLAIN,     TEXTLESS,    TEXTLESS,  PLAIN,    UNTOUCHED]),
        row("sanitize", Box::new(parts.config.sanitize),
                                   [Yes,      Yes,      Yes,      Yes,        Yes,       TEXTLESS,    TEXTLESS,  CLEANED,  Yes]),
    ]
}

/// A guard cannot do its work, so that nothing new is served.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The state or the pins cannot be read or written.
    #[error(transparent)]
    State(#[from] StoreError),
    /// Schemas have findings, and the configuration refuses such catalogs.
    #[error(
        "{count} schemas have findings, first {id} ({schema}: {problem}); fix them, leave the tools out, or set `schemas.on_invalid: flag`"
    )]
    Schemas {
        /// The number of findings.
        count: usize,
        /// The id of the item of the first finding.
        id: String,
        /// Its schema: `inputSchema` or `outputSchema`.
        schema: &'static str,
        /// The finding in one line.
        problem: String,
    },
    /// The items cannot be indexed.
    #[error(transparent)]
    Route(#[from] RouteError),
}

/// Schemas that the log names at a time, at most.
const MOST_NAMED: usize = 8;

/// The guards of a running gateway.
pub(crate) struct Guards {
    config: GuardConfig,
    rows: Vec<Row>,
    policy: Arc<PolicyConfig>,
    profiles: Arc<Profiles>,
    approvals: Arc<Approvals>,
    signatures: Signatures,
    cache: Cache,
    pins: Pins,
    shared: Shared,
    /// The explosive schemas of what was listed last, by id and name.
    explosive: Mutex<BTreeSet<(String, &'static str)>>,
}

impl std::fmt::Debug for Guards {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Guards").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Guards {
    /// The guards that `config` describes; `repairs` says whether arguments are repaired.
    ///
    /// # Errors
    /// The state cannot be used.
    #[cfg(test)]
    pub(crate) fn new(config: GuardConfig, repairs: bool) -> Result<Self, StoreError> {
        Self::after(config, repairs, BTreeMap::new(), None)
    }

    /// The guards that `config` describes; `repairs` says whether arguments are repaired, and `sources` what stands for
    /// the upstreams as they are configured, by the server name of their items. Those of `before` hand over what they
    /// remember, such as quotas and approvals, where it is kept in the same place.
    ///
    /// # Errors
    /// The state cannot be used.
    pub(crate) fn after(
        config: GuardConfig,
        repairs: bool,
        sources: BTreeMap<String, String>,
        before: Option<&Self>,
    ) -> Result<Self, StoreError> {
        // An operator who looks on answers for the guards of now, whatever their state.
        let desk = before.map_or_else(Arc::default, |before| Arc::clone(before.desk()));
        let before = before.filter(|before| before.config.state == config.state && config.access == Access::Full);
        let (config, state) = match config.access {
            Access::Full => {
                let state =
                    before.map_or_else(|| config.open_state(), |before| Ok(Arc::clone(&before.shared.state)))?;
                (config, state)
            }
            Access::Look => {
                let state = MemoryState::default();
                if config.pins.mode != PinMode::Off {
                    state.put_pins(&config.look_at_pins()?)?;
                }
                let pins = PinConfig { file: None, ..config.pins };
                (GuardConfig { pins, ..config }, Arc::new(state) as Arc<dyn State>)
            }
        };
        let pins = Pins::new(&config.pins, Arc::clone(&state));
        let made = || Shared::new(state, Arc::new(SteadyClock::default()), Arc::new(SystemClock));
        let shared = before.map_or_else(made, |before| before.shared.clone());
        let policy = Arc::new(config.policy.clone());
        let profiles = Profiles::new(config.visibility_profiles.clone(), config.visibility_profile.clone());
        let cache = Cache {
            config: config.cache.clone(),
            policy: Arc::clone(&policy),
            sources: Arc::new(sources),
            shared: shared.clone(),
            epoch: before.map_or_else(Arc::default, |before| Arc::clone(&before.cache.epoch)),
        };
        // What was kept may be of upstreams or rules that are others now.
        cache.epoch.fetch_add(u64::from(before.is_some()), Ordering::AcqRel);
        let parts = Parts {
            repairs,
            profiles: Arc::new(profiles),
            approvals: before
                .map_or_else(|| Arc::new(Approvals::new(shared.clone(), desk)), |before| Arc::clone(&before.approvals)),
            signatures: Signatures::new(config.signing.clone(), shared.clone()),
            cache,
            policy,
            shared,
            config,
        };
        let rows = rows(&parts);
        let Parts { config, policy, profiles, approvals, signatures, cache, shared, .. } = parts;
        let explosive = Mutex::default();
        Ok(Self { config, rows, policy, profiles, approvals, signatures, cache, pins, shared, explosive })
    }

    /// The rows that a kind of request uses, in their order.
    fn rows_of(&self, route: Route) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.uses[route as usize] == Use::Yes)
    }

    /// The guards that a kind of request uses, in their order.
    fn of(&self, route: Route) -> impl Iterator<Item = &dyn Guard> {
        self.rows_of(route).map(|row| &*row.guard)
    }

    /// Asks the guards that decide at once, before anything else of the call happens.
    ///
    /// # Errors
    /// The first guard that refuses.
    pub(crate) fn check(&self, call: &mut GuardedCall<'_>) -> Result<(), GatewayError> {
        call.note_subject();
        let record = call.context.record.clone();
        let refused_by = |name| record.note(|account| account.guard = Some(name));
        let checked =
            self.rows_of(call.route).try_for_each(|row| row.guard.check(call).inspect_err(|_| refused_by(row.name)));
        // Whoever gets so far may call what this is about, and may know how.
        let checked = checked.map_err(|error| if error.code == Code::ArgsInvalid { call.taught(error) } else { error });
        checked.inspect(|()| call.settle())
    }

    /// The same for a call with arguments, which may be long work: then it waits for its turn.
    ///
    /// # Errors
    /// The first guard that refuses, or the turn did not come.
    pub(crate) async fn checked(&self, call: &mut GuardedCall<'_>) -> Result<(), GatewayError> {
        let is_long = call.is_long_to_check();
        let checked = in_turn_if(is_long, || self.check(call)).await;
        checked.map_err(|exhausted| call.exhausted(CHECKING, exhausted))?
    }

    /// Asks the guards that wait: quotas, a person, the cache.
    ///
    /// # Errors
    /// The first guard that refuses.
    pub(crate) async fn clear(&self, call: &mut GuardedCall<'_>) -> Result<Clearance, GatewayError> {
        for row in self.rows_of(call.route) {
            if !row.guard.waits(call) {
                continue;
            }
            let record = call.context.record.clone();
            let cleared = row.guard.wait(call).await;
            if !matches!(cleared, Ok(Clearance::Go)) {
                record.note(|account| {
                    account.guard = Some(row.name);
                    account.asked = cleared.is_ok();
                });
                return cleared;
            }
        }
        Ok(Clearance::Go)
    }

    /// Asks the guards about the answer of an upstream.
    ///
    /// # Errors
    /// The first guard that refuses.
    pub(crate) fn check_result(&self, call: &GuardedCall<'_>, result: &Raw) -> Result<(), GatewayError> {
        self.of(call.route).try_for_each(|guard| guard.check_result(call, result))
    }

    /// Keeps a good answer for later calls.
    pub(crate) async fn keep(&self, call: &GuardedCall<'_>, result: &Raw) {
        for guard in self.of(call.route) {
            if let Some(keeping) = guard.keep(call, result) {
                keeping.await;
            }
        }
    }

    /// Changes what a model is shown of a result.
    pub(crate) fn present(&self, call: &GuardedCall<'_>, envelope: &mut ResultEnvelope) {
        self.of(call.route).for_each(|guard| guard.present(call, envelope));
    }

    /// A result that is passed on in the form in which it came, as far as the guards leave it so. Where it is large, this
    /// waits for its turn.
    ///
    /// # Errors
    /// The turn did not come, or a guard would have to read too much.
    pub(crate) async fn present_raw(&self, route: Route, result: Raw) -> Result<Raw, Exhausted> {
        let is_large = result.bytes().len() > LARGE;
        let present = || self.of(route).try_fold(result, |result, guard| guard.present_raw(result));
        in_turn_if(is_large, present).await?
    }

    /// What a dry run says about each guard that has agreed.
    ///
    /// # Errors
    /// A guard cannot tell now.
    pub(crate) async fn report(&self, call: &GuardedCall<'_>) -> Result<Vec<Value>, GatewayError> {
        let mut checks = Vec::new();
        for guard in self.of(call.route) {
            checks.extend(guard.report(call).await?);
        }
        Ok(checks)
    }

    /// The state that a client is to bring back with its answers to an upstream, whose own state is `state`.
    pub(crate) async fn state_of(&self, call: &GuardedCall<'_>, state: Option<String>) -> Option<String> {
        self.approvals.state_of(call, state).await
    }

    /// What replicas share.
    pub(crate) fn state(&self) -> &Arc<dyn State> {
        &self.shared.state
    }

    /// Where an operator answers what waits for an approval.
    pub(crate) fn desk(&self) -> &Arc<Desk> {
        self.approvals.desk()
    }

    /// Signs calls and checks signatures.
    pub(crate) fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    /// The canonical arguments of a call to `upstream` each attempt of which is signed; `None` when it is not.
    ///
    /// # Errors
    /// Making them is too much for the request.
    pub(crate) async fn to_sign(&self, call: &GuardedCall<'_>, upstream: &str) -> Result<Option<String>, GatewayError> {
        let is_signed =
            self.rows_of(call.route).any(|row| row.name == SIGNATURE) && self.signatures.signs_for(upstream);
        if is_signed { call.canonical_in_turn().await.map(Some) } else { Ok(None) }
    }

    /// How texts of upstreams are cleaned.
    pub(crate) fn sanitize(&self) -> &SanitizeConfig {
        &self.config.sanitize
    }

    /// How sensitive the results of an item are.
    pub(crate) fn sensitivity(&self, item: &SelectableItem) -> Sensitivity {
        self.policy.sensitivity(item)
    }

    /// The visibility profiles of the configuration.
    pub(crate) fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// The name of the caller's visibility profile; `None` when it is shown everything.
    pub(crate) fn profile_of<'c>(&'c self, caller: &'c Caller) -> Option<&'c str> {
        self.profiles.name_of(caller)
    }

    /// Whether callers of this profile are shown the item.
    pub(crate) fn shows(&self, profile: &Visibility, item: &SelectableItem) -> bool {
        self.policy.shows(profile, item)
    }

    /// Checks what upstreams list before it is served: schemas, pins and texts. Quarantined items are taken out and
    /// returned with the reasons.
    ///
    /// # Errors
    /// [`GuardError`]; what was served before stays.
    pub(crate) fn vet(&self, items: &mut Vec<SelectableItem>) -> Result<Quarantine, GuardError> {
        match self.config.schemas.on_invalid {
            OnInvalid::Raise => {
                let findings = self.config.schemas.findings(items);
                if let Some(first) = findings.first() {
                    return Err(GuardError::Schemas {
                        count: findings.len(),
                        id: first.id.clone(),
                        schema: first.schema,
                        problem: first.described(),
                    });
                }
            }
            OnInvalid::Flag => {
                let new = self.newly_explosive(items);
                for finding in new.iter().take(MOST_NAMED) {
                    let problem = finding.described();
                    let (id, schema) = (&finding.id, finding.schema);
                    tracing::warn!(%id, schema, problem, "calls that need this schema are refused");
                }
                if new.len() > MOST_NAMED {
                    let more = new.len() - MOST_NAMED;
                    tracing::warn!(more, "there are more such schemas; `mcp doctor` names them");
                }
            }
        }
        let quarantine = self.pins.review(items)?;
        items.iter_mut().for_each(|item| self.config.sanitize.item(item));
        Ok(quarantine)
    }

    /// The explosive schemas among those of `items`, which are all that is listed, that were not there the last time.
    ///
    /// Other findings are not looked for here: holding a thousand schemas against their meta-schema takes about as long as
    /// everything else at a start. `mcp doctor` and `mcp preview` name them, and so does the failure of a call.
    fn newly_explosive(&self, items: &[SelectableItem]) -> Vec<Finding> {
        let key = |finding: &Finding| (finding.id.clone(), finding.schema);
        let mut found = explosive_among(items);
        let known = std::mem::replace(&mut *lock(&self.explosive), found.iter().map(key).collect());
        found.retain(|finding| !known.contains(&key(finding)));
        found
    }

    /// Whether somebody else has changed the pins since they were last compared. Pins that cannot be read are logged,
    /// and what is served stays.
    pub(crate) fn pins_have_changed(&self) -> bool {
        let changed = self.pins.have_changed();
        changed.inspect_err(|error| tracing::warn!(%error, "the pins cannot be read")).unwrap_or(false)
    }

    /// Whether tools are withheld whose definitions are not those that are pinned.
    pub(crate) fn withholds_changed(&self) -> bool {
        self.config.pins.mode == PinMode::Strict
    }

    /// Whether pins can change without this process.
    pub(crate) fn shares_pins(&self) -> bool {
        self.config.pins.mode != PinMode::Off && (self.config.pins.file.is_some() || self.shared.state.waits())
    }

    /// Forgets every cached result: the upstreams list anew, or others may be in their place.
    pub(crate) async fn forget_results(&self) {
        self.cache.forget().await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The table as the documentation shows it: a line a guard, `x` where a kind of request uses it.
    #[test]
    fn the_table_of_guards() {
        let guards = Guards::new(GuardConfig::default(), false).unwrap();
        let line = |row: &Row| {
            let uses = row.uses.map(|uses| if uses == Use::Yes { 'x' } else { '.' });
            format!("{:<17}{}", row.name, uses.iter().collect::<String>())
        };
        let table: Vec<String> = guards.rows.iter().map(line).collect();
        insta::assert_snapshot!(table.join("\n"), @r"
        address          xxxxxxx..
        visibility       xxxxxxx..
        policy           xxxxxxxx.
        no approval      ....x....
        arguments        x.xx.....
        repairs          x.x......
        argument schema  x.xx.....
        result schema    x........
        brought approval xxxx.x...
        quota            xxxxxx.x.
        asked approval   xxxx.x...
        cache            x........
        signature        x........
        provenance       x........
        sanitize         xxxxx...x
        ");
    }

    #[test]
    fn an_explosive_schema_is_told_of_when_it_is_new() {
        let guards = Guards::new(GuardConfig::default(), false).unwrap();
        let tool = |name: &str, alternatives: usize| {
            let mut item = SelectableItem::tool(&format!("a:{name}#00000000"), "a", name, "");
            item.args_schema = Some(Arc::new(json!({"type": "object"})));
            item.output_schema = Some(Arc::new(json!({"anyOf": vec![json!({"type": "string"}); alternatives]})));
            item
        };
        let told = |items: &[SelectableItem]| -> Vec<String> {
            let line = |found: &Finding| format!("{} {} {}", found.id, found.schema, found.described());
            guards.newly_explosive(items).iter().map(line).collect()
        };
        let line = |name: &str| {
            format!("a:{name}#00000000 outputSchema it is explosive: checking one value may take more than 4096 steps")
        };
        let (light, heavy, other) = (tool("light", 10), tool("heavy", 5_000), tool("other", 5_000));
        assert_eq!(told(&[heavy.clone(), light.clone()]), [line("heavy")]);
        assert_eq!(told(&[heavy.clone(), light.clone(), other]), [line("other")]);
        assert!(told(std::slice::from_ref(&light)).is_empty());
        assert_eq!(told(&[heavy.clone(), light]), [line("heavy")]);
        // The catalog is served all the same.
        assert!(guards.vet(&mut vec![heavy]).is_ok());
    }
}
