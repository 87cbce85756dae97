//! What stands between a call and an upstream, and between a result and a model.
//!
//! A call goes through them in this order: the catalog of its caller (what a profile hides and what is quarantined
//! cannot be called), policy, repairs and validation of its arguments, quotas, a person's approval, the cache; and its
//! result through the check of its schema, the firewall and sanitising. A dry run goes as far as the quotas and uses
//! nothing up. Nothing of an upstream is touched before all have agreed, and what cannot be decided is refused.
//!
//! Without configuration only validation and sanitising act.

mod address;
pub mod cache;
mod canonical;
pub(super) mod consent;
mod glob;
pub mod limits;
mod namespaces;
pub mod pins;
pub mod policy;
pub mod sanitize;
pub(super) mod schema;
pub mod sign;
pub mod state;
pub(super) mod strict;
#[cfg(test)]
mod tests;
pub(super) mod tolerant;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use self::cache::CacheConfig;
use self::consent::Seals;
pub use self::glob::Glob;
use self::limits::{RateLimits, SteadyClock, limited};
use self::pins::{FilePins, Pin, PinConfig, PinMode, Pins};
use self::policy::{PolicyConfig, Preset, ToolSensitivity, Verdict, Visibility};
use self::sanitize::{SanitizeConfig, Scope};
pub use self::schema::{Finding, OnInvalid, OutputCheck, SchemaConfig};
use self::sign::{Incoming, Signature, SignatureError, SigningConfig, WrittenSigning};
use self::state::{Exceeded, Freshness, MemoryState, Pinned, SqliteState, State, Take};
use self::tolerant::Repair;
use super::config::Mode;
use super::error::{Code, GatewayError};
use super::passing::{Address, address_of};
use super::session::Caller;
use super::snapshot::{Shelf, Snapshot};
use super::surface::MetaTool;
use super::upstream::Listing;
use super::wire::Raw;
use crate::catalog::{Kind, LeftOut, SelectableItem};
use crate::event::{ResultEnvelope, Sensitivity};
use crate::routing::{RouteError, RoutingConfig};
use crate::store::{Clock, StoreError, SystemClock};

/// The guards, as a file says them.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WrittenGuards {
    pub(super) policy: PolicyConfig,
    pub(super) policy_preset: Option<Preset>,
    pub(super) visibility_profiles: BTreeMap<String, Visibility>,
    pub(super) visibility_profile: Option<String>,
    pub(super) rate_limits: RateLimits,
    pub(super) schemas: SchemaConfig,
    pub(super) sanitize: SanitizeConfig,
    pub(super) cache: CacheConfig,
    pub(super) pins: PinConfig,
    pub(super) signing: Option<WrittenSigning>,
    pub(super) state: Option<PathBuf>,
}

/// What guards a gateway.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GuardConfig {
    /// Who may call what.
    pub policy: PolicyConfig,
    /// What callers are shown, by the names of their profiles.
    pub visibility_profiles: BTreeMap<String, Visibility>,
    /// The profile of callers that have no other; everything is shown, and no scope given, when `None`.
    pub visibility_profile: Option<String>,
    /// How often a caller may call.
    pub rate_limits: RateLimits,
    /// Bounds on schemas, and what is done with them.
    pub schemas: SchemaConfig,
    /// How texts of upstreams are cleaned.
    pub sanitize: SanitizeConfig,
    /// Which results are kept for a while.
    pub cache: CacheConfig,
    /// Whether definitions are pinned.
    pub pins: PinConfig,
    /// Which calls are signed.
    pub signing: Option<SigningConfig>,
    /// The SQLite file that replicas share; the memory of the process when `None`.
    pub state: Option<PathBuf>,
    /// What may be done with the files of pins and state.
    pub access: Access,
}

/// What a gateway may do with the files of its pins and state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// It writes what it has to keep.
    #[default]
    Full,
    /// It reads the pins, and keeps in memory what it would write.
    Look,
}

impl WrittenGuards {
    /// The same, checked, with its files found from `folder` and its variables replaced by `expand`.
    ///
    /// # Errors
    /// The field and what is wrong with it.
    pub(super) fn check(
        self,
        mode: Mode,
        folder: &Path,
        expand: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<GuardConfig, (String, String)> {
        let defaults = WrittenGuards::default();
        let guards_calls = self.policy != defaults.policy
            || self.policy_preset.is_some()
            || self.visibility_profile.is_some()
            || !self.visibility_profiles.is_empty()
            || self.rate_limits != defaults.rate_limits
            || self.pins.mode != PinMode::Off
            || self.signing.is_some();
        if mode == Mode::Passthrough && guards_calls {
            let reason = "is `passthrough`, which changes and refuses nothing; with policy, profiles, limits, pins or \
                          signatures use `gateway` or `proxy`";
            return Err(("mode".to_owned(), reason.to_owned()));
        }
        self.checked(folder, expand).map_err(|message| match message.split_once(": ") {
            Some((place, reason)) => (place.to_owned(), reason.to_owned()),
            None => (String::new(), message),
        })
    }

    fn checked(
        mut self,
        folder: &Path,
        expand: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<GuardConfig, String> {
        if let Some(preset) = self.policy_preset {
            self.policy.default.get_or_insert(preset.default_action());
            let quota = &mut self.rate_limits.tool_execute.max_calls_per_minute;
            *quota = quota.or(preset.calls_per_minute());
            self.cache.read_only |= preset == Preset::Throughput;
        }
        self.policy.read_tools(folder)?;
        self.policy.check()?;
        for (name, profile) in &self.visibility_profiles {
            let place = |field: &str| format!("visibility_profiles.{name}.{field}");
            self.policy.check_tags(&profile.include_tags, &place("include_tags"))?;
            self.policy.check_tags(&profile.exclude_tags, &place("exclude_tags"))?;
        }
        if let Some(name) =
            self.visibility_profile.as_ref().filter(|name| !self.visibility_profiles.contains_key(*name))
        {
            return Err(format!("visibility_profile: there is no `{name}` under `visibility_profiles`"));
        }
        self.cache.check()?;
        self.pins.file = self.pins.file.map(|path| folder.join(path));
        Ok(GuardConfig {
            policy: self.policy,
            visibility_profiles: self.visibility_profiles,
            visibility_profile: self.visibility_profile,
            rate_limits: self.rate_limits,
            schemas: self.schemas,
            sanitize: self.sanitize,
            cache: self.cache,
            pins: self.pins,
            signing: self.signing.map(|signing| signing.check(expand)).transpose()?,
            state: self.state.map(|path| folder.join(path)),
            access: Access::Full,
        })
    }
}

impl GuardConfig {
    /// The pins that are kept in a file, which is not changed.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn look_at_pins(&self) -> Result<Vec<Pin>, StoreError> {
        match (&self.pins.file, &self.state) {
            (Some(file), _) => FilePins::new(file).pins(),
            (None, Some(state)) => SqliteState::look(state),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// The state that it names.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn open_state(&self) -> Result<Arc<dyn State>, StoreError> {
        Ok(match &self.state {
            Some(path) => Arc::new(SqliteState::open(path)?),
            None => Arc::new(MemoryState::default()),
        })
    }

    /// The pins that it names.
    ///
    /// # Errors
    /// The state cannot be used.
    pub fn open_pins(&self) -> Result<Pins, StoreError> {
        Ok(Pins::new(&self.pins, self.open_state()?))
    }
}

/// A guard cannot do its work, so that nothing new is served.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// What it rests on cannot be read or written.
    #[error(transparent)]
    State(#[from] StoreError),
    /// Schemas have findings, and the configuration refuses them.
    #[error(
        "{count} schemas have findings, first {id} ({schema}: {problem}); mend them, leave the tools out, or set `schemas.on_invalid: flag`"
    )]
    Schemas {
        /// How many findings.
        count: usize,
        /// The first one's item.
        id: String,
        /// Its schema.
        schema: &'static str,
        /// What it is.
        problem: String,
    },
    /// The items cannot be indexed.
    #[error(transparent)]
    Route(#[from] RouteError),
}

/// The guards of a gateway that runs.
pub(super) struct Guards {
    config: GuardConfig,
    state: Arc<dyn State>,
    pins: Pins,
    /// How often kept results were forgotten.
    epoch: AtomicU64,
    /// For windows and ages.
    steady: Arc<dyn Clock>,
    /// For times that other machines wrote.
    wall: Arc<dyn Clock>,
    /// For approvals by clients of the stateless protocol.
    seals: Option<Seals>,
}

impl std::fmt::Debug for Guards {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Guards").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A call that the policy does not refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Admission {
    /// Why a person has to approve it, if one has to.
    approval: Option<String>,
}

impl Admission {
    /// Whether nobody has to approve it.
    pub(super) fn is_free(&self) -> bool {
        self.approval.is_none()
    }
}

impl Guards {
    /// # Errors
    /// The state cannot be used.
    pub(super) fn new(config: GuardConfig) -> Result<Self, StoreError> {
        let (config, state) = match config.access {
            Access::Full => {
                let state = config.open_state()?;
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
        Ok(Self::with(config, state, Arc::new(SteadyClock::default()), Arc::new(SystemClock)))
    }

    fn with(config: GuardConfig, state: Arc<dyn State>, steady: Arc<dyn Clock>, wall: Arc<dyn Clock>) -> Self {
        let pins = Pins::new(&config.pins, Arc::clone(&state));
        // Windows that outlive the process or are shared need the time that is.
        let steady = if state.waits() { Arc::clone(&wall) } else { steady };
        Self { config, state, pins, epoch: AtomicU64::new(0), steady, wall, seals: Seals::new() }
    }

    /// Whether somebody else has changed the pins since the last snapshot. Pins that cannot be read are said so in the
    /// log, and what is served stays.
    pub(super) fn pins_have_changed(&self) -> bool {
        let changed = self.pins.have_changed();
        changed.inspect_err(|error| tracing::warn!(%error, "the pins cannot be read")).unwrap_or(false)
    }

    /// Whether pins can change without this process.
    pub(super) fn shares_pins(&self) -> bool {
        self.config.pins.mode != PinMode::Off && (self.config.pins.file.is_some() || self.state.waits())
    }

    pub(super) fn sanitize(&self) -> &SanitizeConfig {
        &self.config.sanitize
    }

    /// What is served of these items, to every profile.
    ///
    /// # Errors
    /// [`GuardError`]; what was served before stays.
    pub(super) fn snapshot(
        &self,
        generation: u64,
        mut items: Vec<SelectableItem>,
        left_out: Vec<LeftOut>,
        listings: BTreeMap<String, Arc<Listing>>,
        routing: &RoutingConfig,
    ) -> Result<Snapshot, GuardError> {
        if self.config.schemas.on_invalid == OnInvalid::Raise {
            let findings = self.config.schemas.findings(&items);
            if let Some(first) = findings.first() {
                return Err(GuardError::Schemas {
                    count: findings.len(),
                    id: first.id.clone(),
                    schema: first.schema,
                    problem: first.described(),
                });
            }
        }
        let quarantine = self.pins.review(&mut items)?;
        items.iter_mut().for_each(|item| self.config.sanitize.item(item));
        let served = |profile: Option<&Visibility>, left_out, listings| {
            let shows = |item: &&SelectableItem| profile.is_none_or(|profile| self.config.policy.shows(profile, item));
            let visible: Vec<SelectableItem> = items.iter().filter(shows).cloned().collect();
            let mut snapshot = Snapshot::of_items(generation, visible, left_out, listings, routing)?;
            let waiting = quarantine.iter().filter(|(item, _)| shows(&item));
            snapshot.quarantined = waiting.map(|(item, reason)| (item.id.clone(), reason.clone())).collect();
            Ok::<_, RouteError>(snapshot)
        };
        let mut all = served(None, left_out, listings)?;
        for (name, profile) in &self.config.visibility_profiles {
            let shows = |item: &SelectableItem| self.config.policy.shows(profile, item);
            let (listings, partly) = shown_of(&all, &items, &shows);
            let mut snapshot = served(Some(profile), Vec::new(), listings)?;
            snapshot.listed_only = partly;
            snapshot.namespaces = all.namespaces.clone();
            all.profiles.insert(name.clone(), Arc::new(snapshot));
        }
        Ok(all)
    }

    /// The name of the caller's profile.
    fn profile_name<'c>(&'c self, caller: &'c Caller) -> Option<&'c str> {
        caller.session().identity().profile.as_deref().or(self.config.visibility_profile.as_deref())
    }

    /// What the caller is shown of a snapshot. A profile that the configuration does not have is shown nothing.
    pub(super) fn shown(&self, caller: &Caller, all: Arc<Snapshot>) -> Arc<Snapshot> {
        match self.profile_name(caller) {
            None => all,
            Some(name) => {
                all.profiles.get(name).cloned().unwrap_or_else(|| Arc::new(Snapshot::nothing(all.generation)))
            }
        }
    }

    /// Lets a call pass or refuses it, before anything of an upstream is touched. A call that needs an approval which
    /// this client cannot give is refused here already.
    pub(super) fn gate(
        &self,
        caller: &Caller,
        tool: MetaTool,
        item: Option<&SelectableItem>,
    ) -> Result<Admission, GatewayError> {
        let none = BTreeSet::new();
        let profile = self.profile_name(caller).and_then(|name| self.config.visibility_profiles.get(name));
        let scopes = profile.map_or(&none, |profile| &profile.scopes);
        let others = item.map(|item| self.config.spellings(item)).transpose()?.unwrap_or_default();
        let forms = || item.into_iter().chain(&others);
        if let (Some(profile), Some(item)) = (profile, item)
            && !forms().all(|form| self.config.policy.shows(profile, form))
        {
            // What is listed was looked up in what is shown; an address that no list names was not.
            let reason = "the profile of this caller does not show it";
            return Err(GatewayError::new(Code::PolicyDenied, reason).at(&item.id));
        }
        let default = self.config.policy.default.unwrap_or_default();
        let subject = item.map_or(tool.name(), |item| &item.id);
        let decide = |item| self.config.policy.decide(default, tool, item, scopes);
        let verdict = others.iter().fold(decide(item), |verdict, other| verdict.or_stricter(decide(Some(other))));
        match (verdict, item) {
            (Verdict::Allow, _) => Ok(Admission { approval: None }),
            (Verdict::Deny(reason), _) => Err(GatewayError::new(Code::PolicyDenied, reason).at(subject)),
            (Verdict::Ask(reason), Some(_)) if policy::can_ask(caller) => Ok(Admission { approval: Some(reason) }),
            (Verdict::Ask(reason), Some(item)) => {
                Err(policy::unapproved(item, &reason, "it needs an approval, and this client cannot ask for one"))
            }
            (Verdict::Ask(reason), None) => {
                let reason = format!("only calls of tools can be approved: {reason}");
                Err(GatewayError::new(Code::ApprovalRequired, reason).at(subject))
            }
        }
    }

    /// Counts what goes with a resource or prompt and is too small a matter to ask a person about it.
    ///
    /// # Errors
    /// The quota is used up, or a person would have to approve it.
    pub(super) async fn agree_unasked(
        &self,
        caller: &Caller,
        tool: MetaTool,
        item: &SelectableItem,
        admission: &Admission,
    ) -> Result<(), GatewayError> {
        match &admission.approval {
            Some(reason) => Err(policy::unapproved(item, reason, "nobody is asked to approve completions")),
            None => self.count(caller, tool, item).await,
        }
    }

    /// Lets a meta-tool that calls nothing pass, or refuses it.
    pub(super) async fn admit(&self, caller: &Caller, tool: MetaTool) -> Result<(), GatewayError> {
        self.gate(caller, tool, None)?;
        self.take(caller, tool, None, Take::Use).await?.map_err(|exceeded| limited(&exceeded))
    }

    /// Whether the quotas permit the call.
    ///
    /// # Errors
    /// That cannot be known now.
    async fn take(
        &self,
        caller: &Caller,
        tool: MetaTool,
        item: Option<&SelectableItem>,
        take: Take,
    ) -> Result<Result<(), Exceeded>, GatewayError> {
        let own = item.map(|item| self.config.policy.of_tool(item).quota()).unwrap_or_default();
        let wants = self.config.rate_limits.wants(tool, item, own, &caller.session().identity().name);
        if wants.is_empty() {
            return Ok(Ok(()));
        }
        let now = self.steady.now();
        self.with_state(move |state| state.take(&wants, now, take)).await.map_err(|error| {
            tracing::error!(%error, "quotas cannot be counted");
            GatewayError::new(Code::RateLimited, "the gateway cannot count calls now; try again later")
        })
    }

    /// Counts a call of a tool, or refuses it.
    async fn count(&self, caller: &Caller, tool: MetaTool, item: &SelectableItem) -> Result<(), GatewayError> {
        self.take(caller, tool, Some(item), Take::Use).await?.map_err(|exceeded| limited(&exceeded).at(&item.id))
    }

    /// What a dry run reports: every check, and what it would say now.
    pub(super) async fn report(
        &self,
        caller: &Caller,
        admission: &Admission,
        item: &SelectableItem,
        repairs: &[Repair],
    ) -> Result<Vec<Value>, GatewayError> {
        let mut checks = vec![json!({"name": "policy", "status": "pass"})];
        if let Some(reason) = &admission.approval {
            checks.push(json!({"name": "approval", "status": "required", "reason": reason}));
        }
        checks.push(json!({"name": "schema_validation", "status": "pass"}));
        if !repairs.is_empty() {
            checks.push(json!({"name": "arg_repairs", "status": "pass", "repairs": repairs}));
        }
        checks.push(match self.take(caller, MetaTool::Execute, Some(item), Take::Look).await? {
            Ok(()) => json!({"name": "rate_limit", "status": "pass"}),
            Err(exceeded) => {
                json!({"name": "rate_limit", "status": "fail", "details": limited(&exceeded).at(&item.id).details})
            }
        });
        Ok(checks)
    }

    /// What the result of a call is kept under; `None` when it is not kept.
    pub(super) fn cache_key(&self, item: &SelectableItem, arguments: &Value) -> Option<cache::Key> {
        let policy = &self.config.policy;
        let keeps = self.config.cache.keeps(item, policy.is_read_only(item))
            && policy.of_tool(item).sensitivity < ToolSensitivity::High;
        keeps.then(|| cache::Key { text: cache::key(item, arguments), epoch: self.epoch.load(Ordering::Acquire) })
    }

    /// The result that was kept. One that cannot be read is none.
    pub(super) async fn cached(&self, key: &cache::Key) -> Option<Raw> {
        let (key, now) = (key.text.clone(), self.steady.now());
        let found = self.with_state(move |state| state.cached(&key, now)).await;
        let found = found.inspect_err(|error| tracing::warn!(%error, "a kept result cannot be read")).ok()??;
        serde_json::from_slice::<&RawValue>(&found).ok().map(Raw::of)
    }

    /// Keeps a result, if it is of the kind that is kept and the lists are still those that the call was made on.
    pub(super) async fn keep(&self, key: cache::Key, result: &Raw) {
        let config = &self.config.cache;
        if !config.takes(result) || key.epoch != self.epoch.load(Ordering::Acquire) {
            return;
        }
        let (bytes, until, most) = (result.bytes().clone(), self.steady.now() + config.ttl(), config.max_entries.get());
        let kept = self.with_state(move |state| state.cache(&key.text, &bytes, until, most)).await;
        if let Err(error) = kept {
            tracing::warn!(%error, "a result cannot be kept");
        }
    }

    /// Forgets every kept result: the upstreams list anew.
    pub(super) async fn forget_results(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        if self.config.cache.read_only
            && let Err(error) = self.with_state(|state| state.clear_cache()).await
        {
            tracing::error!(%error, "kept results cannot be forgotten");
        }
    }

    /// Refuses a tool whose output schema is none, before it is called.
    pub(super) fn check_promise(&self, shelf: &Shelf, at: usize, item: &SelectableItem) -> Result<(), GatewayError> {
        match (self.config.schemas.output, shelf.output_validator(at)) {
            (OutputCheck::Enforce, Err(reason)) => Err(unusable(item, reason)),
            _ => Ok(()),
        }
    }

    /// Holds a result to the output schema of its tool.
    pub(super) fn check_output(
        &self,
        shelf: &Shelf,
        at: usize,
        item: &SelectableItem,
        result: &Raw,
    ) -> Result<(), GatewayError> {
        if self.config.schemas.output == OutputCheck::Off {
            return Ok(());
        }
        let Ok(Some(validator)) = shelf.output_validator(at) else { return Ok(()) };
        let Err(violations) = schema::check_output(validator, result) else { return Ok(()) };
        let error = schema::refused(Code::UpstreamError, "the result", &item.id, &violations);
        let error = error.with("violation", "output_schema");
        match self.config.schemas.output {
            OutputCheck::Enforce => Err(error),
            OutputCheck::Warn | OutputCheck::Off => {
                tracing::warn!(tool = %item.id, %error, "a result does not fit its schema");
                Ok(())
            }
        }
    }

    /// What a mode that passes results on passes on.
    pub(super) fn passed(&self, result: Raw) -> Raw {
        match self.config.sanitize.scope {
            Scope::All => self.config.sanitize.raw(&result),
            Scope::Shown | Scope::Off => result,
        }
    }

    /// Cleans what a model sees of a result, and writes down how it came about.
    pub(super) fn finish(
        &self,
        item: &SelectableItem,
        envelope: &mut ResultEnvelope,
        repairs: &[Repair],
        origin: Source,
    ) {
        if !repairs.is_empty() {
            envelope.provenance.insert("arg_repairs".to_owned(), json!(repairs));
        }
        if origin == Source::Cache {
            envelope.provenance.insert("cache_hit".to_owned(), true.into());
        }
        let sensitivity = self.sensitivity(item);
        if sensitivity != Sensitivity::Public {
            envelope.provenance.insert("sensitivity".to_owned(), json!(sensitivity));
        }
        self.config.sanitize.envelope(envelope);
    }

    /// How bad it is when the result of a tool gets into wrong hands.
    pub(super) fn sensitivity(&self, item: &SelectableItem) -> Sensitivity {
        match self.config.policy.of_tool(item).sensitivity {
            ToolSensitivity::Low => Sensitivity::Public,
            ToolSensitivity::Medium => Sensitivity::Internal,
            ToolSensitivity::High => Sensitivity::Confidential,
        }
    }

    /// Checks the signature of a call; the returned one is for its answer.
    pub(super) async fn verify(
        &self,
        tool: &str,
        arguments: Option<&RawValue>,
        signature: Option<&Raw>,
    ) -> Result<Option<Signature>, SignatureError> {
        let Some(signing) = &self.config.signing else { return Ok(None) };
        let Some(signature) = signature else {
            return match signing.incoming {
                Incoming::Required => Err(SignatureError::Missing),
                Incoming::Optional => Ok(None),
            };
        };
        let signature: Signature = signature.read().map_err(|_| SignatureError::Malformed)?;
        let now = self.wall.now();
        // A call without arguments is signed as one with none.
        let arguments: Value =
            serde_json::from_str(arguments.map_or("{}", RawValue::get)).map_err(|_| SignatureError::Malformed)?;
        let until = signing.verify_call(&signature, tool, &arguments, now)?;
        let (nonce, most) = (format!("{}:{}", signature.key, signature.nonce), signing.max_nonces);
        self.spend(nonce, now, until, most).await.map(|()| Some(signature))
    }

    /// Takes a nonce that was not taken before.
    async fn spend(&self, nonce: String, now: Duration, until: Duration, most: usize) -> Result<(), SignatureError> {
        match self.with_state(move |state| state.remember(&nonce, now, until, most)).await {
            Ok(Freshness::Fresh) => Ok(()),
            Ok(Freshness::Seen) => Err(SignatureError::Replayed),
            Ok(Freshness::Full) => Err(SignatureError::Full),
            Err(error) => {
                tracing::error!(%error, "nonces cannot be kept");
                Err(SignatureError::Unknown)
            }
        }
    }

    /// The answer to a call, signed as the call was.
    pub(super) fn signed(&self, call: &Signature, answer: Raw) -> Raw {
        match &self.config.signing {
            Some(signing) => signing.sign_result(&answer, call, self.wall.now()),
            None => answer,
        }
    }

    /// The signature of a call of an upstream; `None` for one that shares no key.
    pub(super) fn sign_call(&self, upstream: &str, tool: &str, arguments: &Raw) -> Option<Signature> {
        let signing = self.config.signing.as_ref()?;
        let key = signing.upstreams.get(upstream)?;
        signing.sign_call(key, tool, &arguments.read::<Value>().ok()?, self.wall.now())
    }

    /// The answer of an upstream to a call signed with `call`, its own signature checked and taken off.
    pub(super) fn verify_result(&self, call: Option<&Signature>, result: &Raw) -> Result<Raw, SignatureError> {
        match (&self.config.signing, call) {
            (Some(signing), Some(call)) => signing.verify_result(result, call, self.wall.now()),
            _ => Ok(result.clone()),
        }
    }

    /// Runs `work` on the state, off the threads of the runtime where it waits for a disk.
    async fn with_state<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn State) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        if !self.state.waits() {
            return work(&*self.state);
        }
        let state = Arc::clone(&self.state);
        tokio::task::spawn_blocking(move || work(&*state)).await.unwrap_or_else(|error| {
            Err(StoreError::Backend { place: "shared state".to_owned(), reason: error.to_string() })
        })
    }
}

/// The resources and templates that are shown, and the servers of which some are not.
fn shown_of(
    all: &Snapshot,
    items: &[SelectableItem],
    shows: &dyn Fn(&SelectableItem) -> bool,
) -> (BTreeMap<String, Arc<Listing>>, BTreeSet<String>) {
    let mut resources: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for item in items.iter().filter(|item| item.kind == Kind::Resource) {
        if let (Some(server), Some(uri)) = (item.server.as_deref(), item.metadata.get("uri").and_then(Value::as_str)) {
            resources.insert((server, uri), shows(item));
        }
    }
    let (mut shown, mut partly) = (BTreeMap::new(), BTreeSet::new());
    for (server, listing) in &all.listings {
        let is_shown = |raw: &RawValue| match address_of(raw) {
            Some(Address::Resource(uri)) => resources.get(&(server.as_str(), uri.as_str())).copied().unwrap_or(false),
            Some(Address::Template(template)) => shows(&all.unlisted(server, &template)),
            None => false,
        };
        let filtered = |raws: &[Box<RawValue>]| raws.iter().filter(|raw| is_shown(raw)).cloned().collect::<Vec<_>>();
        let (some, templates) = (filtered(&listing.resources), filtered(&listing.templates));
        if some.len() < listing.resources.len() || templates.len() < listing.templates.len() {
            partly.insert(server.clone());
        }
        if !some.is_empty() || !templates.is_empty() {
            let listing = Listing { resources: some, templates, ..Listing::default() };
            shown.insert(server.clone(), Arc::new(listing));
        }
    }
    (shown, partly)
}

/// Where a result came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The upstream answered.
    Upstream,
    /// It was kept from an earlier call.
    Cache,
}

/// The failure of a call whose tool has a schema that is none.
pub(super) fn unusable(item: &SelectableItem, reason: &str) -> GatewayError {
    GatewayError::new(Code::SchemaInvalid, format!("the tool's own schema is not usable: {reason}")).at(&item.id)
}
