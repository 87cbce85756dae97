//! Everything that a gateway is told, in one file.
//!
//! A file is YAML or JSON, holds any subset of the fields and no others; paths in it are relative to its folder.
//! `${env:NAME}` in the texts that start or reach an upstream is replaced by the environment's value, and `${file:PATH}` by
//! what the file holds. An unset variable is an error, and so is a file that cannot be read: a token that is silently
//! empty fails much later and elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::error::ConfigError;
use super::http::{HttpConfig, HttpSection};
use super::oauth::OAuthConfig;
use super::startup::{StartConfig, StartMode, StartSection};
use crate::common::budget::WorkConfig;
use crate::common::masks::Noted;
use crate::common::sanitize::SanitizeConfig;
use crate::common::settings::{FieldError, Scalar, duration, expand, scalar_or_members};
use crate::common::yaml::{self, YamlError};
use crate::guard::cache::CacheConfig;
use crate::guard::config::{Access, GuardConfig, GuardSections, StateEntry};
use crate::guard::limits::RateLimits;
use crate::guard::pins::PinConfig;
use crate::guard::policy::{PolicyConfig, Preset};
use crate::guard::profiles::Visibility;
use crate::guard::schema::SchemaConfig;
use crate::guard::sign::SigningSection;
use crate::results::artifacts::ArtifactsConfig;
use crate::surface::mode::{CardForm, Mode, Structured};
use crate::telemetry::audit::AuditConfig;
use crate::telemetry::otlp::{OtlpConfig, OtlpSection};
use crate::upstream::config::{Confinement, DEFAULT_TIMEOUT_SECONDS, Era, Target, UpstreamConfig};
use crate::upstream::credentials::{Credentials, CredentialsSection};
use crate::upstream::environment::Inherit;
use crate::upstream::retry::RetryConfig;
use crate::upstream::sandbox::{Home, SandboxEntry, Surroundings};
use contextweaver_context::{FirewallConfig, Secrets};
use contextweaver_core::catalog::server_namespace;
use contextweaver_core::files::read_text_file;
use contextweaver_core::text::{Price, sha256_hex};
use contextweaver_routing::RoutingConfig;
use contextweaver_routing::semantic::model::place::{BUILT_IN as ENCODER_BUILT_IN, OpenError};

/// Bytes of the pictures, recordings and files of one answer: a little less than the mebibyte that some clients take.
const MEDIA_BYTES: usize = 1_000_000;

/// A configuration of more bytes is not read.
const MOST_BYTES: u64 = 16 << 20;

/// What a whole request may take, unless the configuration says something else.
const DEADLINE: Duration = Duration::from_secs(3_600);

/// What a whole request may take: longer than any upstream may.
fn deadline_of(seconds: Option<f64>, upstreams: &BTreeMap<String, UpstreamConfig>) -> Result<Duration, FieldError> {
    let slowest = upstreams.iter().max_by_key(|(_, upstream)| upstream.timeout);
    let Some(seconds) = seconds else {
        return Ok(slowest.map_or(DEADLINE, |(_, upstream)| DEADLINE.max(upstream.timeout.saturating_mul(2))));
    };
    let deadline = duration(seconds).map_err(|reason| FieldError::new("deadline_seconds", reason))?;
    match slowest.filter(|(_, upstream)| upstream.timeout > deadline) {
        None => Ok(deadline),
        Some((name, upstream)) => {
            let timeout = upstream.timeout.as_secs_f64();
            let reason =
                format!("is {seconds}, but `upstreams.{name}.timeout` is {timeout}; a request can take that long");
            Err(FieldError::new("deadline_seconds", reason))
        }
    }
}

/// The field `type` of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Transport {
    Stdio,
    #[serde(alias = "streamable-http", alias = "streamableHttp")]
    Http,
    Sse,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpstreamEntry {
    #[serde(rename = "type", alias = "transport")]
    transport: Option<Transport>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    inherit_env: Option<Inherit>,
    sandbox: Option<SandboxEntry>,
    credentials: Option<CredentialsSection>,
    url: Option<String>,
    documents: Option<String>,
    database: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    namespace: Option<String>,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    include_tools: Vec<String>,
    #[serde(default)]
    exclude_tools: Vec<String>,
    timeout: Option<f64>,
    #[serde(default)]
    era: Era,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ConfigFile {
    #[serde(skip)]
    digest: String,
    mode: Mode,
    name: String,
    top_k: usize,
    cache_stable: bool,
    cards: CardForm,
    structured: Structured,
    durations: bool,
    media_bytes: usize,
    tolerant_args: bool,
    catalog: Option<PathBuf>,
    answers: Option<PathBuf>,
    upstreams: BTreeMap<String, UpstreamEntry>,
    sandbox: Option<SandboxEntry>,
    deadline_seconds: Option<f64>,
    work: WorkConfig,
    startup: StartSection,
    retry: RetryConfig,
    routing: RoutingConfig,
    encoder: bool,
    feedback: Option<PathBuf>,
    firewall: FirewallConfig,
    artifacts: ArtifactsConfig,
    policy: PolicyConfig,
    policy_preset: Option<Preset>,
    visibility_profiles: BTreeMap<String, Visibility>,
    visibility_profile: Option<String>,
    rate_limits: RateLimits,
    schemas: SchemaConfig,
    sanitize: SanitizeConfig,
    cache: CacheConfig,
    pins: PinConfig,
    signing: Option<SigningSection>,
    state: Option<StateEntry>,
    diagnostics: Option<PathBuf>,
    audit: Option<AuditEntry>,
    otlp: Option<OtlpSection>,
    price: Option<Price>,
    http: HttpSection,
}

/// Where decisions are written: the file alone, or with what else can be said of it.
#[derive(Debug, Clone)]
struct AuditEntry(AuditConfig);

impl<'de> Deserialize<'de> for AuditEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let file = |scalar: Scalar<'_>| match scalar {
            Scalar::Text(file) => Some(AuditConfig::to(file.into())),
            Scalar::Switch(_) => None,
        };
        let expecting = "a file, or members like `{file: audit.jsonl}`";
        scalar_or_members(deserializer, expecting, file, std::convert::identity).map(Self)
    }
}

impl Default for ConfigFile {
    fn default() -> Self {
        let GatewayConfig {
            digest,
            mode,
            name,
            top_k,
            cache_stable,
            cards,
            structured,
            durations,
            media_bytes,
            tolerant_args,
            ..
        } = GatewayConfig::default();
        Self {
            digest,
            mode,
            name,
            top_k,
            cache_stable,
            cards,
            structured,
            durations,
            media_bytes,
            tolerant_args,
            catalog: None,
            answers: None,
            upstreams: BTreeMap::new(),
            sandbox: None,
            deadline_seconds: None,
            work: WorkConfig::default(),
            startup: StartSection::default(),
            retry: RetryConfig::default(),
            routing: RoutingConfig::default(),
            encoder: false,
            feedback: None,
            firewall: FirewallConfig::default(),
            artifacts: ArtifactsConfig::default(),
            policy: PolicyConfig::default(),
            policy_preset: None,
            visibility_profiles: BTreeMap::new(),
            visibility_profile: None,
            rate_limits: RateLimits::default(),
            schemas: SchemaConfig::default(),
            sanitize: SanitizeConfig::default(),
            cache: CacheConfig::default(),
            pins: PinConfig::default(),
            signing: None,
            state: None,
            diagnostics: None,
            audit: None,
            otlp: None,
            price: None,
            http: HttpSection::default(),
        }
    }
}

/// Tools, resources and prompts from a file, for a gateway without upstreams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogFile {
    /// The catalog.
    pub path: PathBuf,
    /// The answers to its calls, reads and prompts; without it they can be browsed alone.
    pub answers: Option<PathBuf>,
}

impl From<PathBuf> for CatalogFile {
    /// A catalog that can be browsed alone.
    fn from(path: PathBuf) -> Self {
        Self { path, answers: None }
    }
}

/// The configuration of a gateway.
#[derive(Debug, Clone, PartialEq)]
pub struct GatewayConfig {
    /// SHA-256 of the text that it was read from, in hexadecimal; empty where there is none.
    pub digest: String,
    /// What clients are shown.
    pub mode: Mode,
    /// What the gateway calls itself.
    pub name: String,
    /// Cards of an answer to `tool_browse`, at most.
    pub top_k: usize,
    /// Whether cards that were shown before come first and unchanged, so that prompts keep a stable prefix.
    pub cache_stable: bool,
    /// The text of an answer to `tool_browse`.
    pub cards: CardForm,
    /// Whether answers also carry `structuredContent`.
    pub structured: Structured,
    /// Whether results of tools say how long their upstream took.
    pub durations: bool,
    /// Bytes of the pictures, recordings and files that one answer carries, as base64, in mode `gateway`; 0 for none.
    pub media_bytes: usize,
    /// Whether arguments of the wrong type are repaired where the schema leaves no doubt.
    pub tolerant_args: bool,
    /// What is served from a file, for a gateway without upstreams.
    pub catalog: Option<CatalogFile>,
    /// The servers behind it, by name.
    pub upstreams: BTreeMap<String, UpstreamConfig>,
    /// What a whole request may take, with all its questions, attempts and work; a stream of changes has no end.
    pub deadline: Duration,
    /// What a request may take for work on what came from outside.
    pub work: WorkConfig,
    /// What happens at the start when upstreams do not answer.
    pub startup: StartConfig,
    /// Whether and how calls are made again that an upstream did not answer.
    pub retry: RetryConfig,
    /// How tools are ranked.
    pub routing: RoutingConfig,
    /// Whether the sentence encoder takes part in searches for tools, as soon as it has read them.
    pub encoder: bool,
    /// The file that keeps which searches led to tools that then answered well; searches do not learn when `None`.
    pub feedback: Option<PathBuf>,
    /// What becomes of results.
    pub firewall: FirewallConfig,
    /// What is kept of results.
    pub artifacts: ArtifactsConfig,
    /// What stands between calls and upstreams.
    pub guards: GuardConfig,
    /// The file that events are appended to; none when `None`.
    pub diagnostics: Option<PathBuf>,
    /// Where decisions are written; nowhere when `None`.
    pub audit: Option<AuditConfig>,
    /// Where traces and metrics go; nowhere when `None`.
    pub otlp: Option<OtlpConfig>,
    /// What tokens cost; unknown when `None`.
    pub price: Option<Price>,
    /// How it is served over HTTP.
    pub http: HttpConfig,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            digest: String::new(),
            mode: Mode::Gateway,
            name: "contextweaver".to_owned(),
            top_k: 10,
            cache_stable: false,
            cards: CardForm::Lines,
            structured: Structured::Off,
            durations: false,
            media_bytes: MEDIA_BYTES,
            tolerant_args: false,
            catalog: None,
            upstreams: BTreeMap::new(),
            deadline: DEADLINE,
            work: WorkConfig::default(),
            startup: StartConfig::default(),
            retry: RetryConfig::default(),
            routing: RoutingConfig::default(),
            encoder: false,
            feedback: None,
            firewall: FirewallConfig::default(),
            artifacts: ArtifactsConfig::default(),
            guards: GuardConfig::default(),
            diagnostics: None,
            audit: None,
            otlp: None,
            price: None,
            http: HttpConfig::default(),
        }
    }
}

/// A file with the section `otlp` of a configuration and nothing else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OtlpFile {
    otlp: OtlpSection,
}

impl OtlpConfig {
    /// Reads and checks a file that has the section `otlp` of a [`GatewayConfig`], and nothing else.
    ///
    /// # Errors
    /// [`ConfigError`] for the first problem.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = read_text_file(path, MOST_BYTES)?;
        Self::parse(&text, &|name| std::env::var(name).ok()).map_err(|error| error.of_file(path))
    }

    /// As [`Self::load`], of a text; `environment` gives the values of `${env:NAME}`.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn parse(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let file: OtlpFile = yaml::read(text).map_err(|reason| ConfigError::Parse { path: PathBuf::new(), reason })?;
        Ok(file.otlp.checked(environment)?)
    }
}

impl GatewayConfig {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`ConfigError`] for the first problem.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::load_for(path, None, &|name| std::env::var(name).ok())
    }

    /// As [`Self::load`], in the given mode instead of the one that the file names, and with the values that `environment`
    /// has for `${env:NAME}`.
    ///
    /// # Errors
    /// [`ConfigError`] for the first problem, also where a field does not go with the mode.
    pub fn load_for(
        path: &Path,
        mode: Option<Mode>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let text = read_text_file(path, MOST_BYTES)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let read = ConfigFile::read(&text).and_then(|file| {
            let file = ConfigFile { mode: mode.unwrap_or(file.mode), ..file };
            Ok(file.checked(folder, environment, Unset::IsAnError)?)
        });
        read.map_err(|error| error.of_file(path))
    }

    /// Checks a text whose paths are relative to `folder`; `environment` gives the values of `${env:NAME}`.
    ///
    /// # Errors
    /// [`ConfigError`] for the first problem.
    pub fn parse(text: &str, folder: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Ok(ConfigFile::read(text)?.checked(folder, environment, Unset::IsAnError)?)
    }

    /// As [`Self::parse`], for an examination: a variable that is not set costs its own server also where that is required, and
    /// counts as empty elsewhere.
    pub(crate) fn parse_for_a_look(
        text: &str,
        folder: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        Ok(ConfigFile::read(text)?.checked(folder, environment, Unset::IsLookedAt)?)
    }

    /// The files and folders that the gateway keeps, each with its field.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let kept = [
            ("state", self.guards.state_file()),
            ("pins.file", self.guards.pins.file.as_deref()),
            ("artifacts.path", self.artifacts.path.as_deref()),
            ("audit.file", self.audit.as_ref().map(|audit| audit.file.as_path())),
            ("diagnostics", self.diagnostics.as_deref()),
            ("feedback", self.feedback.as_deref()),
            ("startup.list_cache", self.startup.list_cache.as_deref()),
        ];
        kept.into_iter().filter_map(|(field, path)| Some((field, path?)))
    }

    /// The same configuration for a gateway that leaves no trace: it reads the files of pins and feedback, and writes neither
    /// them nor state, lists, results, decisions or diagnostics.
    #[must_use]
    pub fn without_a_trace(mut self) -> Self {
        self.guards.access = Access::Look;
        self.startup.list_cache = None;
        self.artifacts.path = None;
        self.artifacts.s3 = None;
        self.diagnostics = None;
        self.audit = None;
        self.otlp = None;
        self
    }

    /// The same configuration for a preview: nothing is written, and the gateway starts with whatever it can reach; with
    /// nothing only where the configuration allows that.
    #[must_use]
    pub fn for_a_look(self) -> Self {
        let mut config = self.without_a_trace();
        config.startup.mode = StartMode::Degraded;
        config.startup.min_healthy_upstreams = config.startup.min_healthy_upstreams.min(1);
        config.startup.fail_on_empty_catalog = false;
        for upstream in config.upstreams.values_mut() {
            upstream.required = false;
        }
        config
    }
}

/// What a variable is that is not set, where the gateway cannot do without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unset {
    IsAnError,
    IsLookedAt,
}

/// Whether the value of a variable is nothing but a reference to it, which a client would have had to replace: it passed on what
/// stands in its file.
fn is_unreplaced(name: &str, value: &str) -> bool {
    ["${env:NAME}", "${NAME}", "{env:NAME}"].iter().any(|form| form.replace("NAME", name) == value)
}

/// Whether a text has servers under a key of clients, and none where a gateway has them.
fn is_of_a_client(text: &str) -> bool {
    const KEYS: [&str; 5] = ["mcpServers", "servers", "mcp_servers", "context_servers", "extensions"];
    let Ok(Value::Object(members)) = yaml::read::<Value>(text) else { return false };
    !members.contains_key("upstreams") && KEYS.iter().any(|key| members.get(*key).is_some_and(Value::is_object))
}

impl ConfigFile {
    fn read(text: &str) -> Result<Self, ConfigError> {
        let file = yaml::read(text).map(|file| Self { digest: sha256_hex(text.as_bytes()), ..file });
        file.map_err(|reason| {
            let path = PathBuf::new();
            if is_of_a_client(text) {
                return ConfigError::ClientsFile { path };
            }
            let is_list =
                yaml::read::<Value>(text).is_ok_and(|value| value.get("upstreams").is_some_and(Value::is_array));
            if is_list && reason.key.as_deref().is_none_or(|key| key == "upstreams") {
                let problem = "servers are members by their names, not a list: `upstreams: {NAME: {command: PROGRAM}}`";
                return ConfigError::Parse { path, reason: YamlError { problem: problem.to_owned(), ..reason } };
            }
            ConfigError::Parse { path, reason }
        })
    }

    /// Refuses values that cannot be used, and fields that contradict each other, as far as that needs no other file.
    fn check(&self) -> Result<(), FieldError> {
        if self.top_k == 0 {
            return Err(FieldError::new("top_k", "must be at least 1"));
        }
        if self.catalog.is_some() && !self.upstreams.is_empty() {
            let reason = "a gateway has either a `catalog` or `upstreams`; remove one of the two";
            return Err(FieldError::new("catalog", reason));
        }
        if self.answers.is_some() && self.catalog.is_none() {
            let reason = "only works with `catalog`: servers answer for themselves; name a catalog, or remove it";
            return Err(FieldError::new("answers", reason));
        }
        self.work.validate().map_err(|error| error.under("work"))?;
        self.retry.validate().map_err(|error| error.under("retry"))?;
        self.routing.validate().map_err(|error| FieldError::new("routing", error))?;
        if let Some(problem) = self.price.as_ref().and_then(Price::problem) {
            return Err(FieldError::new("price", problem));
        }
        if self.encoder && !ENCODER_BUILT_IN {
            return Err(FieldError::new("encoder", OpenError::NotBuilt));
        }
        Ok(())
    }

    fn checked(
        self,
        folder: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
        unset: Unset,
    ) -> Result<GatewayConfig, FieldError> {
        let environment: &dyn Fn(&str) -> Option<String> =
            &|name| environment(name).filter(|value| !is_unreplaced(name, value));
        let lenient = &|name: &str| environment(name).or_else(|| (unset == Unset::IsLookedAt).then(String::new));
        self.check()?;
        let startup = self.startup.checked(folder)?;
        let mut firewall = self.firewall;
        if self.artifacts.redact_secrets {
            firewall.secrets = Secrets::Redact;
        }
        let artifacts = self.artifacts.checked(folder, &|text| expand(text, lenient));
        let artifacts = artifacts.map_err(|error| error.under("artifacts"))?;
        if let Some(sandbox) = &self.sandbox {
            sandbox.check_default()?;
        }
        let checked = |(name, upstream): (String, UpstreamEntry)| {
            let is_needed = upstream.required || startup.mode == StartMode::Strict;
            let is_needed = is_needed && unset == Unset::IsAnError;
            let place = Place { name: &format!("upstreams.{name}"), folder, sandbox: self.sandbox.as_ref() };
            let upstream = upstream.checked(&place, environment, is_needed)?;
            Ok((name, upstream))
        };
        let upstreams = self.upstreams.into_iter().map(checked).collect::<Result<_, _>>()?;
        check_homes(&upstreams)?;
        let owners = namespaces_of(&upstreams)?;
        let deadline = deadline_of(self.deadline_seconds, &upstreams)?;
        let guards = GuardSections {
            policy: self.policy,
            policy_preset: self.policy_preset,
            visibility_profiles: self.visibility_profiles,
            visibility_profile: self.visibility_profile,
            rate_limits: self.rate_limits,
            schemas: self.schemas,
            sanitize: self.sanitize,
            cache: self.cache,
            pins: self.pins,
            signing: self.signing,
            state: self.state,
        };
        check_mode(self.mode, &guards, self.durations)?;
        let guards = guards.checked(folder, &|text| expand(text, lenient))?;
        guards.check_namespaces(&owners)?;
        let signed = guards.signing.iter().flat_map(|signing| signing.upstreams.keys());
        if let Some(name) = signed.into_iter().find(|name| !upstreams.contains_key(*name)) {
            let reason = "there is no upstream with that name; its calls would go out unsigned";
            return Err(FieldError::new(format!("signing.upstreams.{name}"), reason));
        }
        let http = self.http.checked(folder, lenient)?;
        check_credentials(&upstreams, http.oauth.as_ref())?;
        if let Some((field, name)) = http.profiles().find(|(_, name)| !guards.visibility_profiles.contains_key(*name)) {
            return Err(FieldError::new(field, format!("there is no `{name}` under `visibility_profiles`")));
        }
        Ok(GatewayConfig {
            digest: self.digest,
            mode: self.mode,
            name: self.name,
            top_k: self.top_k,
            cache_stable: self.cache_stable,
            cards: self.cards,
            structured: self.structured,
            durations: self.durations,
            media_bytes: self.media_bytes,
            tolerant_args: self.tolerant_args,
            catalog: self.catalog.map(|path| CatalogFile {
                path: folder.join(path),
                answers: self.answers.map(|path| folder.join(path)),
            }),
            upstreams,
            deadline,
            work: self.work,
            startup,
            retry: self.retry,
            routing: self.routing,
            encoder: self.encoder,
            feedback: self.feedback.map(|path| folder.join(path)),
            firewall,
            artifacts,
            guards,
            diagnostics: self.diagnostics.map(|path| folder.join(path)),
            otlp: self.otlp.map(|otlp| otlp.checked(lenient)).transpose()?,
            audit: self.audit.map(|AuditEntry(audit)| AuditConfig { file: folder.join(&audit.file), ..audit }),
            price: self.price,
            http,
        })
    }
}

/// Refuses what a mode cannot do.
fn check_mode(mode: Mode, guards: &GuardSections, durations: bool) -> Result<(), FieldError> {
    if mode != Mode::Passthrough {
        return Ok(());
    }
    if guards.refuse_calls() {
        let reason = "is `passthrough`, which changes and refuses nothing; with policy, profiles, limits, pins or \
                      signatures use `gateway` or `proxy`";
        return Err(FieldError::new("mode", reason));
    }
    if durations {
        let reason = "only works in the modes `gateway` and `proxy`; `passthrough` adds nothing to results";
        return Err(FieldError::new("durations", reason));
    }
    Ok(())
}

/// The names of the upstreams by the namespaces of their tools. Tools of two upstreams in one namespace could not be told
/// apart, so that is refused.
fn namespaces_of(upstreams: &BTreeMap<String, UpstreamConfig>) -> Result<BTreeMap<String, String>, FieldError> {
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    for (name, upstream) in upstreams {
        let namespace = server_namespace(upstream.namespace.as_deref().unwrap_or(name));
        if let Some(other) = owners.get(&namespace) {
            let reason = format!("`{namespace}` is already the namespace of `{other}`; choose another");
            return Err(FieldError::new(format!("upstreams.{name}.namespace"), reason));
        }
        owners.insert(namespace, name.clone());
    }
    Ok(owners)
}

/// Whether tokens of callers go where they may: a token that is for this gateway alone is never sent to another server.
fn check_credentials(
    upstreams: &BTreeMap<String, UpstreamConfig>,
    oauth: Option<&OAuthConfig>,
) -> Result<(), FieldError> {
    for (name, upstream) in upstreams.iter().filter(|(_, upstream)| upstream.credentials.is_per_caller()) {
        let wrong = |field: &str, reason: &str| {
            let field = if field.is_empty() { String::new() } else { format!(".{field}") };
            Err(FieldError::new(format!("upstreams.{name}.credentials{field}"), reason))
        };
        let Some(oauth) = oauth else {
            return wrong(
                "",
                "needs `http.oauth`: callers have tokens of their own only where an authorization server \
                              gives them",
            );
        };
        let own = [&oauth.audience, &oauth.resource].map(|own| own.trim_end_matches('/'));
        for (field, audience) in upstream.credentials.audiences() {
            if own.contains(&audience.trim_end_matches('/')) {
                return wrong(
                    field,
                    "is the audience of this gateway; name the upstream's: a token for the gateway is not passed on",
                );
            }
        }
        if let Credentials::Passthrough(rule) = &upstream.credentials
            && rule.issuer != oauth.issuer
        {
            return wrong("passthrough.issuer", "is not `http.oauth.issuer`: no caller has a token from it");
        }
    }
    Ok(())
}

/// The folders of sandboxes, each of which one server has for itself.
fn check_homes(upstreams: &BTreeMap<String, UpstreamConfig>) -> Result<(), FieldError> {
    let mut homes: Vec<(&String, &PathBuf)> = Vec::new();
    for (name, upstream) in upstreams {
        let Target::Stdio { confinement: Confinement::Sandbox(sandbox), .. } = &upstream.target else { continue };
        let Home::Kept(home) = &sandbox.home else { continue };
        let within = |other: &PathBuf| home.starts_with(other) || other.starts_with(home);
        if let Some((other, _)) = homes.iter().find(|(_, other)| within(other)) {
            let reason = format!("is the same as that of `{other}`, or one contains the other; give each its own");
            return Err(FieldError::new(format!("upstreams.{name}.sandbox.folder"), reason));
        }
        homes.push((name, home));
    }
    Ok(())
}

/// Where an upstream stands in the file, and what holds for all of them.
struct Place<'p> {
    /// The field, e.g. `upstreams.git`.
    name: &'p str,
    /// The folder of the file.
    folder: &'p Path,
    /// What the file says of the sandboxes of all.
    sandbox: Option<&'p SandboxEntry>,
}

impl UpstreamEntry {
    fn checked(
        mut self,
        Place { name: place, folder, sandbox }: &Place<'_>,
        environment: &dyn Fn(&str) -> Option<String>,
        is_needed: bool,
    ) -> Result<UpstreamConfig, FieldError> {
        let noted = Noted::new(environment, folder);
        // Where the gateway may start without this server, a variable that is not set costs this server alone.
        let noted = if is_needed { noted } else { noted.tolerant() };
        let expand =
            |field: &str, text: &str| noted.expand(text).map_err(|error| FieldError::new(field, error).under(place));
        let expand_all = |field: &str, texts: &BTreeMap<String, String>| {
            let each = |(key, text): (&String, &String)| Ok((key.clone(), expand(&format!("{field}.{key}"), text)?));
            texts.iter().map(each).collect::<Result<BTreeMap<_, _>, FieldError>>()
        };
        let at = |field: &str, path: &str| match expand(field, path)? {
            path if path.is_empty() && noted.unset().is_empty() => {
                Err(FieldError::new(format!("{place}.{field}"), "is empty; name the path to read"))
            }
            path => Ok(folder.join(path)),
        };
        let mut headers = expand_all("headers", &self.headers)?;
        let has_credentials = self.credentials.is_some();
        let credentials = self.credentials.take().map(|section| section.checked(&noted, &mut headers));
        let credentials = match credentials.transpose() {
            // Where a variable is not set the server is not asked, and what is made of it may be anything.
            Err(error) if noted.unset().is_empty() => return Err(error.under(&format!("{place}.credentials"))),
            checked => checked.unwrap_or_default().unwrap_or_default(),
        };
        let reached = (&self.command, &self.url, &self.documents, &self.database, self.transport);
        let target = match reached {
            (Some(command), None, None, None, None | Some(Transport::Stdio)) => Target::Stdio {
                command: expand("command", command)?,
                args: self.args.iter().map(|arg| expand("args", arg)).collect::<Result<_, _>>()?,
                env: expand_all("env", &self.env)?,
                confinement: self.confinement(place, folder, *sandbox, &expand)?,
            },
            (None, Some(url), None, None, None | Some(Transport::Http)) => {
                Target::Http { url: expand("url", url)?, headers }
            }
            (None, Some(url), None, None, Some(Transport::Sse)) => Target::Sse { url: expand("url", url)?, headers },
            (None, None, Some(path), None, None) => Target::Documents { folder: at("documents", path)? },
            (None, None, None, Some(path), None) => Target::Database { file: at("database", path)? },
            _ => {
                let reason = "needs `command` (type stdio), `url` (type http or sse), `documents` or `database` (no \
                              type), and only one of them";
                return Err(FieldError::new(*place, reason));
            }
        };
        let is_built_in = matches!(target, Target::Documents { .. } | Target::Database { .. });
        if self.has_fields_of_another(&target, has_credentials) {
            let reason = "`args`, `env`, `cwd`, `inherit_env` and `sandbox` go with `command`, `headers` and `credentials` with `url`, \
                          and `era` with either";
            return Err(FieldError::new(*place, reason));
        }
        let variables = noted.unset();
        let target = if variables.is_empty() { target } else { Target::Unset { variables } };
        let timeout = duration(self.timeout.unwrap_or(DEFAULT_TIMEOUT_SECONDS))
            .map_err(|error| FieldError::new(format!("{place}.timeout"), error))?;
        Ok(UpstreamConfig {
            target,
            namespace: self.namespace,
            required: self.required,
            include_tools: self.include_tools,
            exclude_tools: self.exclude_tools,
            timeout,
            // What this process says to itself needs no negotiation.
            era: if is_built_in { Era::Legacy } else { self.era },
            credentials,
            masks: noted.masks(),
        })
    }

    /// Whether a field is set that only goes with another kind of target.
    fn has_fields_of_another(&self, target: &Target, has_credentials: bool) -> bool {
        let of_url = !self.headers.is_empty() || has_credentials;
        let of_command = !self.env.is_empty()
            || self.cwd.is_some()
            || self.inherit_env.is_some()
            || !self.args.is_empty()
            || self.sandbox.is_some();
        match target {
            Target::Stdio { .. } => of_url,
            Target::Http { .. } | Target::Sse { .. } => of_command,
            Target::Documents { .. } | Target::Database { .. } => of_url || of_command || self.era != Era::Auto,
            Target::Unset { .. } | Target::InProcess(_) => false,
        }
    }

    /// What a program may reach.
    fn confinement(
        &self,
        place: &str,
        folder: &Path,
        default: Option<&SandboxEntry>,
        expand: &dyn Fn(&str, &str) -> Result<String, FieldError>,
    ) -> Result<Confinement, FieldError> {
        let of_sandbox = format!("{place}.sandbox");
        let in_sandbox = |field: &str, text: &str| expand(&format!("sandbox.{field}"), text);
        let surroundings = Surroundings { place: &of_sandbox, folder, expand: &in_sandbox };
        let Some(sandbox) = SandboxEntry::resolved(self.sandbox.as_ref(), default, &surroundings)? else {
            let cwd = self.cwd.as_ref().map(|cwd| folder.join(cwd));
            return Ok(Confinement::Open { inherit: self.inherit_env.clone().unwrap_or_default(), cwd });
        };
        let foreign = [("cwd", self.cwd.is_some()), ("inherit_env", self.inherit_env.is_some())];
        match foreign.into_iter().find(|(_, is_there)| *is_there) {
            None => Ok(Confinement::Sandbox(Box::new(sandbox))),
            Some((field, _)) => {
                let reason = match field {
                    "cwd" => {
                        "a server in a sandbox works in `sandbox.folder`; set that instead, or set `sandbox: \
                              false`"
                    }
                    _ => {
                        "a server in a sandbox inherits nothing; write what it needs under `env`, or set `sandbox: false`"
                    }
                };
                Err(FieldError::new(format!("{place}.{field}"), reason))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<GatewayConfig, ConfigError> {
        let environment = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
        GatewayConfig::parse(text, Path::new("/conf"), &environment)
    }

    #[test]
    fn yaml_and_json_say_the_same() {
        let yaml = "upstreams:\n  a: {command: npx, args: [-y, x], cwd: data}\n  b:\n    url: http://h/mcp\n    \
                    headers: {authorization: 'Bearer ${env:TOKEN}'}\n";
        let json = r#"{"upstreams":{"a":{"command":"npx","args":["-y","x"],"cwd":"data"},
            "b":{"url":"http://h/mcp","headers":{"authorization":"Bearer ${env:TOKEN}"}}}}"#;
        let config = parse(yaml).unwrap();
        assert_eq!(config, GatewayConfig { digest: config.digest.clone(), ..parse(json).unwrap() });
        let Target::Http { headers, .. } = &config.upstreams["b"].target else { panic!() };
        assert_eq!(headers["authorization"], "Bearer s3cret");
        let Target::Stdio { confinement: Confinement::Open { cwd, .. }, .. } = &config.upstreams["a"].target else {
            panic!()
        };
        assert_eq!(cwd.as_deref(), Some(Path::new("/conf/data")));
    }

    #[test]
    fn what_is_shown_for_debugging_holds_no_values() {
        let config = parse(
            "{signing: {keys: {k: 'k3y-k3y-k3y-k3y-k3y-k3y-k3y-k3y-'}}, http: {token: 'Bear-t0ken-of-some-length'}, \
             upstreams: {a: {command: x, env: {K: v4lue}, args: ['--password=p4ss-word']}, \
             b: {url: 'http://u:p4ss-word@h/', headers: {X: v4lue, Authorization: '${env:TOKEN}'}}}}",
        );
        let shown = format!("{:?}", config.unwrap());
        for secret in ["v4lue", "s3cret", "p4ss", "k3y", "t0ken"] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
        assert!(shown.contains("Authorization") && shown.contains("\"K\""), "{shown}");
    }

    #[test]
    fn a_look_writes_to_no_file_of_the_configuration() {
        let config = parse(
            "{state: s, pins: {mode: strict, file: p}, artifacts: {path: a}, audit: l, diagnostics: d, feedback: f, \
             startup: {list_cache: c}}",
        )
        .unwrap();
        assert_eq!(config.kept().count(), 7);
        let look = config.without_a_trace();
        assert_eq!(look.guards.access, Access::Look);
        // With this access they are read and nothing else.
        assert_eq!(look.kept().map(|(field, _)| field).collect::<Vec<_>>(), ["state", "pins.file", "feedback"]);
    }

    #[test]
    fn results_are_kept_within_bounds_and_without_secrets_where_that_is_said() {
        let config = parse("artifacts: {redact_secrets: true, path: kept, max_artifacts: 7}").unwrap();
        assert_eq!(config.firewall.secrets, Secrets::Redact);
        assert_eq!(config.artifacts.path.as_deref(), Some(Path::new("/conf/kept")));
        assert_eq!(config.artifacts.max_bytes, ArtifactsConfig::default().max_bytes);
        assert!(parse("artifacts: {max_bytes: 0}").is_err());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let cases = [
            ("modes: proxy", "unknown field"),
            ("mode: both", "line 1, column 7, `mode`: the value is not one of gateway, proxy, passthrough"),
            ("top_k: 0", "top_k: must be at least 1"),
            ("{mode: passthrough, durations: true}", "durations: only works in the modes `gateway` and `proxy`"),
            ("deadline_seconds: 0", "deadline_seconds: is 0"),
            (
                "{deadline_seconds: 5, upstreams: {a: {command: x}}}",
                "deadline_seconds: is 5, but `upstreams.a.timeout` is 30",
            ),
            ("work: {seconds: 0}", "work.seconds: is 0"),
            ("work: {steps: 0}", "work.steps: must be at least 1"),
            ("work: {bytes: 0}", "work.bytes: must be at least 1"),
            ("work: {bytes: -1}", "`bytes`: the value is not"),
            ("work: {memory: 1}", "unknown field `memory`"),
            (
                "http: {oauth: {issuer: 'http://id.example', resource: 'https://g/mcp'}}",
                "http.oauth.issuer: `http://id.example` must begin",
            ),
            ("http: {oauth: {issuer: id.example, resource: 'https://g/mcp'}}", "http.oauth.issuer: `id.example`"),
            (
                "http: {oauth: {issuer: 'https://i', resource: 'https://g/mcp', audience: ''}}",
                "http.oauth.audience: must not be empty",
            ),
            (
                "http: {oauth: {issuer: 'https://i', resource: 'https://g/mcp', algorithms: [HS256]}}",
                "not one of RS256",
            ),
            (
                "http: {oauth: {issuer: 'https://i', resource: 'https://g/mcp', algorithms: []}}",
                "http.oauth.algorithms: must name at least one",
            ),
            (
                "http: {oauth: {issuer: 'https://i', resource: 'https://g/mcp', scopes: [{scope: 'a b'}]}}",
                "http.oauth.scopes[0].scope: `a b` is not",
            ),
            (
                "http: {oauth: {issuer: 'https://i', resource: 'https://g/mcp', scopes: [{scope: a}, {scope: a}]}}",
                "http.oauth.scopes[1].scope: there is another",
            ),
            (
                "http: {oauth: {issuer: 'https://i', resource: 'https://g/mcp', scopes: [{scope: a, profile: p}]}}",
                "http.oauth.scopes: there is no `p`",
            ),
            (
                "http: {oauth: {issuer: 'https://i', resource: 'https://g/mcp', leeway_seconds: 301}}",
                "http.oauth.leeway_seconds: is 301",
            ),
            ("state: 5", "a file, or a server with its `url`"),
            ("state: {prefix: p}", "the field `url` is missing"),
            ("state: {url: 'redis://h', prefix: '{p}'}", "state.prefix: must be 1 to 64"),
            ("state: {url: 'redis://:p@h:x'}", "state.url: must be `redis://"),
            ("state: 'rediss://h/#insecure'", "state.url: has a `?` or a `#`"),
            ("state: {url: 'redis://${env:NO}'}", "state.url: the variable `NO` is not set"),
            ("state: {url: 'redis://h', password_file: none}", "state.password_file: /conf/none"),
            ("artifacts: {s3: {bucket: ''}}", "artifacts.s3.bucket: must not be empty"),
            ("artifacts: {s3: {bucket: b, endpoint: h}}", "artifacts.s3.endpoint: must begin with"),
            ("artifacts: {s3: {bucket: b, access_key_id: a}}", "artifacts.s3.secret_access_key: goes with"),
            (
                "artifacts: {s3: {bucket: b, access_key_id: '${env:NO}'}}",
                "artifacts.s3.access_key_id: the variable `NO`",
            ),
            ("artifacts: {path: a, s3: {bucket: b}}", "artifacts.s3: is set together with `path`"),
            ("upstreams: {a: {}}", "upstreams.a: needs `command`"),
            ("upstreams: {a: {command: x, url: y}}", "upstreams.a: needs `command`"),
            ("upstreams: {a: {command: x, headers: {b: c}}}", "upstreams.a: `args`"),
            ("upstreams: {a: {command: x, documents: d}}", "upstreams.a: needs `command`"),
            ("upstreams: {a: {documents: d, database: e}}", "and only one of them"),
            ("upstreams: {a: {type: stdio, database: e}}", "`documents` or `database` (no type)"),
            ("upstreams: {a: {documents: d, sandbox: true}}", "upstreams.a: `args`"),
            ("upstreams: {a: {database: d, headers: {b: c}}}", "upstreams.a: `args`"),
            ("upstreams: {a: {database: d, era: modern}}", "and `era` with either"),
            ("upstreams: {a: {documents: ''}}", "upstreams.a.documents: is empty"),
            ("upstreams: {a: {command: x, timeout: 0}}", "upstreams.a.timeout: is 0"),
            (
                "upstreams: {a: {command: x, timeout: 31536001}}",
                "upstreams.a.timeout: is 31536001; it must be a number \
                                                                 of seconds",
            ),
            ("upstreams: {a: {command: x, timeout: 1.0e+30}}", "above 0 and at most 31536000"),
            (
                "upstreams: {a: {command: x, required: true, args: ['${env:NO}']}}",
                "upstreams.a.args: the variable `NO` is not",
            ),
            (
                "{startup: {mode: strict}, upstreams: {a: {url: '${env:NO}'}}}",
                "upstreams.a.url: the variable `NO` is not set",
            ),
            ("upstreams: {a: {url: '${env:TOKEN'}}", "upstreams.a.url: `${env:` is not closed"),
            ("{catalog: x.json, upstreams: {a: {command: x}}}", "catalog: a gateway has either"),
            ("startup: {upstream_timeout_seconds: -1}", "startup.upstream_timeout_seconds: is -1"),
            ("retry: {max_attempts: 0}", "retry.max_attempts: must be"),
            (
                "signing: {keys: {k: 0123456789abcdef0123456789abcdef}, upstreams: {pear: k}}",
                "signing.upstreams.pear: there is no upstream",
            ),
            ("retry: {retryable_codes: [NO]}", "the value is not one of PATH_INVALID"),
            ("upstreams: {a: {command: x}, b: {command: x, namespace: a}}", "upstreams.b.namespace: `a` is"),
            (
                "upstreams: {GitHub: {command: x}, github: {command: x}}",
                "`github` is already the namespace of \
                                                                         `GitHub`",
            ),
            ("upstreams: {a: {command: x, inherit_env: some}}", "`inherit_env` is `safe`, `all`, or"),
            ("upstreams: {a: {url: x, inherit_env: all}}", "upstreams.a: `args`"),
            (
                "upstreams: {a: {command: x, credentials: {static: {A: b}}}}",
                "upstreams.a: `args`, `env`, `cwd`, `inherit_env` and `sandbox` go",
            ),
            ("upstreams: {a: {url: x, credentials: {}}}", "upstreams.a.credentials.static: exactly one rule is needed"),
            (
                "upstreams: {a: {url: x, credentials: {static: {A: b}, passthrough: {issuer: i, audience: a}}}}",
                "upstreams.a.credentials.static: exactly one rule is needed",
            ),
            (
                "upstreams: {a: {url: x, headers: {a: b}, credentials: {static: {A: b}}}}",
                "upstreams.a.credentials.static.A: is also set under `headers`",
            ),
            (
                "upstreams: {a: {url: x, credentials: {passthrough: {issuer: i, audience: a}}}}",
                "upstreams.a.credentials: needs `http.oauth`",
            ),
            (
                "upstreams: {a: {url: x, credentials: {exchange: {token_endpoint: 'http://h/t', client_id: c, client_secret: s, \
                 audience: a}}}}",
                "upstreams.a.credentials.exchange.token_endpoint: must begin with `https://`",
            ),
            (
                "upstreams: {a: {url: x, credentials: {exchange: {token_endpoint: 'https://h/t', client_id: c, audience: a}}}}",
                "upstreams.a.credentials.exchange.client_secret: needs `client_secret` or",
            ),
            (
                "upstreams: {a: {url: x, credentials: {exchange: {token_endpoint: 'https://h/t', client_id: c, \
                 client_secret: s}}}}",
                "upstreams.a.credentials.exchange.audience: name the upstream by",
            ),
            (
                "{http: {oauth: {issuer: 'https://i', resource: 'https://g/mcp', audience: g}}, \
                 upstreams: {a: {url: x, credentials: {passthrough: {issuer: 'https://i', audience: 'https://g/mcp/'}}}}}",
                "upstreams.a.credentials.passthrough.audience: is the audience of this gateway",
            ),
            (
                "{http: {oauth: {issuer: 'https://i', resource: 'https://g/mcp', audience: g}}, \
                 upstreams: {a: {url: x, credentials: {exchange: {token_endpoint: 'https://h/t', client_id: c, \
                 client_secret: s, audience: g}}}}}",
                "upstreams.a.credentials.exchange.audience: is the audience of this gateway",
            ),
            (
                "{http: {oauth: {issuer: 'https://i', resource: 'https://g/mcp'}}, \
                 upstreams: {a: {url: x, credentials: {passthrough: {issuer: 'https://j', audience: a}}}}}",
                "upstreams.a.credentials.passthrough.issuer: is not `http.oauth.issuer`",
            ),
            (
                "upstreams: {a: {url: x, credentials: {static: {A: '${env:X'}}}}",
                "upstreams.a.credentials.static.A: `${env:` is not closed",
            ),
            (
                "upstreams: {a: {url: x, credentials: {exchange: {token_endpoint: '${env:X', client_id: c}}}}",
                "upstreams.a.credentials.exchange.token_endpoint: `${env:` is not closed",
            ),
            ("upstreams: {a: {url: x, sandbox: true}}", "upstreams.a: `args`"),
            ("upstreams: {a: {command: x, sandbox: yes please}}", "true, false, or what the sandbox lets through"),
            ("upstreams: {a: {command: x, sandbox: {net: true}}}", "unknown field `net`"),
            ("upstreams: {a: {command: x, sandbox: {memory: 512}}}", "a whole number with KiB, MiB or GiB"),
            ("upstreams: {a: {command: x, sandbox: {memory: 1MiB}}}", "upstreams.a.sandbox.memory: must be from 16MiB"),
            ("upstreams: {a: {command: x, sandbox: {processes: 2}}}", "upstreams.a.sandbox.processes: is 2"),
            ("upstreams: {a: {command: x, sandbox: {read: [/]}}}", "upstreams.a.sandbox.read: the root would show"),
            (
                "upstreams: {a: {command: x, sandbox: {write: [/proc/self]}}}",
                "upstreams.a.sandbox.write: /proc/self cannot",
            ),
            ("upstreams: {a: {command: x, sandbox: {read: ['']}}}", "upstreams.a.sandbox.read: the path is empty"),
            ("upstreams: {a: {command: x, sandbox: {read: [a], write: [./a]}}}", "`./a` is also listed under `read`"),
            ("upstreams: {a: {command: x, cwd: d, sandbox: true}}", "upstreams.a.cwd: a server in a sandbox works in"),
            ("{sandbox: true, upstreams: {a: {command: x, inherit_env: all}}}", "upstreams.a.inherit_env: a server in"),
            ("{sandbox: {folder: f}, upstreams: {a: {command: x}}}", "sandbox.folder: is for one server"),
            (
                "upstreams: {a: {command: x, sandbox: {folder: f}}, b: {command: x, sandbox: {folder: f/g}}}",
                "upstreams.b.sandbox.folder: is the same as that of `a`",
            ),
        ];
        for (text, expected) in cases {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
            assert!(message.matches("upstreams.a.credentials").count() < 2, "{message}");
        }
    }

    #[test]
    fn a_server_has_its_own_sandbox_or_that_of_all() {
        let memory = |text: &str| {
            let config = parse(text).unwrap();
            match &config.upstreams["a"].target {
                Target::Stdio { confinement: Confinement::Sandbox(sandbox), .. } => Some(sandbox.memory.to_string()),
                _ => None,
            }
        };
        let cases = [
            ("upstreams: {a: {command: x}}", None),
            ("upstreams: {a: {command: x, sandbox: false}}", None),
            ("upstreams: {a: {command: x, sandbox: true}}", Some("1 GiB")),
            ("{sandbox: true, upstreams: {a: {command: x}}}", Some("1 GiB")),
            ("{sandbox: {memory: 64MiB}, upstreams: {a: {command: x}}}", Some("64 MiB")),
            ("{sandbox: {memory: 64MiB}, upstreams: {a: {command: x, sandbox: true}}}", Some("64 MiB")),
            ("{sandbox: {memory: 64MiB}, upstreams: {a: {command: x, sandbox: {network: true}}}}", Some("1 GiB")),
            ("{sandbox: {memory: 64MiB}, upstreams: {a: {command: x, sandbox: false}}}", None),
            ("{sandbox: false, upstreams: {a: {command: x}}}", None),
            ("{sandbox: true, upstreams: {a: {url: 'http://h/mcp'}}}", None),
        ];
        for (text, expected) in cases {
            assert_eq!(memory(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn an_audit_log_is_named_by_its_file_alone_or_with_more() {
        let of = |text: &str| parse(text).map(|config| config.audit.unwrap()).map_err(|error| error.to_string());
        let short = of("{audit: log.jsonl, upstreams: {a: {command: x}}}").unwrap();
        assert_eq!(short, of("{audit: {file: log.jsonl}, upstreams: {a: {command: x}}}").unwrap());
        assert!(of("{audit: {file: log.jsonl, sync: true}, upstreams: {a: {command: x}}}").unwrap().sync);
        for (text, expected) in [
            ("audit: [log.jsonl]", "a file, or members like `{file: audit.jsonl}`"),
            ("audit: {fille: log.jsonl}", "unknown field `fille`; did you mean `file`?"),
        ] {
            let said = of(text).unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn a_list_of_servers_is_told_how_they_are_written() {
        for text in ["upstreams: [{name: a, command: x}]", "upstreams:\n  - name: a\n    command: x\n"] {
            let said = parse(text).unwrap_err().to_string();
            assert!(said.contains("servers are members by their names, not a list"), "{said}");
        }
        let said = parse("{top_k: x, upstreams: []}").unwrap_err().to_string();
        assert!(said.contains("`top_k`: the value is not"), "{said}");
    }

    #[test]
    fn a_reference_that_a_client_did_not_replace_is_no_value() {
        for (value, expected) in
            [("${env:KEY}", true), ("${KEY}", true), ("{env:KEY}", true), ("${env:OTHER}", false), ("key", false)]
        {
            assert_eq!(is_unreplaced("KEY", value), expected, "{value}");
        }
    }

    #[test]
    fn a_variable_that_is_not_set_costs_its_own_server_alone() {
        let config = parse(
            "upstreams: {a: {command: x, args: ['${env:NO}', '${env:NEITHER}'], env: {K: '${env:NO}'}}, b: {command: y}}",
        )
        .unwrap();
        let variables = ["NEITHER", "NO"].map(str::to_owned).to_vec();
        assert_eq!(config.upstreams["a"].target, Target::Unset { variables });
        assert!(matches!(config.upstreams["b"].target, Target::Stdio { .. }));
    }

    #[test]
    fn what_a_file_holds_is_read_again_with_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        let read = || {
            let text = "upstreams: {a: {url: 'http://h/mcp', headers: {authorization: 'Bearer ${file:key}'}}}";
            GatewayConfig::parse(text, folder.path(), &|_| None)
        };
        let missing = read().unwrap_err().to_string();
        assert!(missing.contains("upstreams.a.headers.authorization: ") && missing.contains("key"), "{missing}");
        std::fs::write(&key, "first-token\n").unwrap();
        let first = read().unwrap();
        let Target::Http { headers, .. } = &first.upstreams["a"].target else { panic!("another target") };
        assert_eq!(headers["authorization"], "Bearer first-token");
        assert!(!format!("{first:?}").contains("first-token"));
        std::fs::write(&key, "second-token\n").unwrap();
        assert_ne!(read().unwrap().upstreams["a"], first.upstreams["a"]);
        let exchange = "{http: {oauth: {issuer: 'https://i', resource: 'https://g/mcp'}}, upstreams: {a: {url: 'http://h/mcp', \
                        credentials: {exchange: {token_endpoint: 'https://h/t', client_id: c, client_secret_file: key, audience: a}}}}}";
        let exchanged = GatewayConfig::parse(exchange, folder.path(), &|_| None).unwrap();
        assert_eq!(exchanged.upstreams["a"].masks.cover("refused: second-token"), "refused: ${file:key}");
        let elsewhere = parse("http: {token: '${file:key}'}").unwrap_err().to_string();
        assert!(elsewhere.contains("`${file:key}` is read for upstreams only"), "{elsewhere}");
    }
}
