//! Everything that a gateway is told, in one file.
//!
//! A file is YAML or JSON, holds any subset of the fields and no others; paths in it are relative to its folder.
//! `${env:NAME}` in the texts that start or reach an upstream is replaced by the environment's value, and an unset
//! variable is an error: a token that is silently empty fails much later and elsewhere.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::artifacts::ArtifactsConfig;
use super::guard::cache::CacheConfig;
use super::guard::limits::RateLimits;
use super::guard::pins::PinConfig;
use super::guard::policy::{PolicyConfig, Preset, Visibility};
use super::guard::sanitize::SanitizeConfig;
use super::guard::sign::WrittenSigning;
use super::guard::{GuardConfig, SchemaConfig, WrittenGuards};
use super::http::{HttpConfig, WrittenHttp};
use super::upstream::{InProcess, Inherit, RetryConfig};
use crate::catalog::server_namespace;
use crate::context::{FirewallConfig, Secrets};
use crate::routing::RoutingConfig;
use crate::store::redact;

/// What clients are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Three meta-tools: browse, execute, view.
    #[default]
    Gateway,
    /// Every tool in `tools/list`, without its schema, beside `tool_hydrate` and `tool_execute`.
    Proxy,
    /// Every tool as its server defines it; calls and results pass unchanged.
    Passthrough,
}

/// The text of an answer to `tool_browse`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CardForm {
    /// One short line a card.
    #[default]
    Lines,
    /// A JSON array of cards with all their fields.
    Json,
}

/// Whether answers also carry `structuredContent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Structured {
    /// Text alone: some clients put both into the prompt.
    #[default]
    Off,
    /// Beside the text.
    On,
}

/// What happens when an upstream cannot be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StartMode {
    /// The others are served.
    #[default]
    Degraded,
    /// Nothing is served.
    Strict,
}

/// How a gateway starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StartConfig {
    /// What happens when an upstream cannot be started. One that is `required` counts as strict.
    pub mode: StartMode,
    /// Seconds that an upstream has for its handshake and lists.
    pub upstream_timeout_seconds: f64,
    /// Upstreams that must have started, at least.
    pub min_healthy_upstreams: usize,
    /// Whether a gateway without a tool is an error.
    pub fail_on_empty_catalog: bool,
}

impl Default for StartConfig {
    fn default() -> Self {
        Self {
            mode: StartMode::Degraded,
            upstream_timeout_seconds: 10.0,
            min_healthy_upstreams: 1,
            fail_on_empty_catalog: true,
        }
    }
}

/// The protocol of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Asks for the stateless protocol and falls back to the handshake.
    #[default]
    Auto,
    /// `initialize`, up to 2025-11-25.
    Legacy,
    /// `server/discover`, from 2026-07-28.
    Modern,
}

/// How an upstream is reached, as a file says it.
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
struct WrittenUpstream {
    #[serde(rename = "type", alias = "transport")]
    transport: Option<Transport>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    inherit_env: Option<Inherit>,
    url: Option<String>,
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

/// How an upstream is reached. What is shown of it for debugging has no values of variables and headers, and nothing
/// that looks like a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Target {
    /// A child process that speaks on its standard streams.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables beyond those that it inherits.
        env: BTreeMap<String, String>,
        /// What it inherits of the gateway's environment.
        inherit: Inherit,
        /// Its working folder; the gateway's when `None`.
        cwd: Option<PathBuf>,
    },
    /// A server of streamable HTTP.
    Http {
        /// The endpoint.
        url: String,
        /// Sent with every request.
        headers: BTreeMap<String, String>,
    },
    /// A server of the older HTTP with server-sent events.
    Sse {
        /// The endpoint of the event stream.
        url: String,
        /// Sent with every request.
        headers: BTreeMap<String, String>,
    },
    /// Code of this process; no file can say it.
    InProcess(InProcess),
}

impl fmt::Debug for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |values: &BTreeMap<String, String>| values.keys().cloned().collect::<Vec<_>>();
        let shown = |text: &str| redact(text).text.into_owned();
        match self {
            Self::Stdio { command, args, env, cwd, inherit } => formatter
                .debug_struct("Stdio")
                .field("command", &shown(command))
                .field("args", &shown(&args.join(" ")))
                .field("env", &names(env))
                .field("cwd", cwd)
                .field("inherit", inherit)
                .finish(),
            Self::Http { url, headers } => {
                formatter.debug_struct("Http").field("url", &shown(url)).field("headers", &names(headers)).finish()
            }
            Self::Sse { url, headers } => {
                formatter.debug_struct("Sse").field("url", &shown(url)).field("headers", &names(headers)).finish()
            }
            Self::InProcess(answer) => formatter.debug_tuple("InProcess").field(answer).finish(),
        }
    }
}

/// One upstream, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamConfig {
    /// How it is reached.
    pub target: Target,
    /// The namespace of its tools; its name when `None`.
    pub namespace: Option<String>,
    /// Whether the gateway must not start without it.
    pub required: bool,
    /// Globs of the tools that are taken; all when empty.
    pub include_tools: Vec<String>,
    /// Globs of the tools that are not.
    pub exclude_tools: Vec<String>,
    /// How long it has for an answer.
    pub timeout: Duration,
    /// Its protocol.
    pub era: Era,
}

impl UpstreamConfig {
    /// An upstream reached so, and for the rest as if a file said nothing of it.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            namespace: None,
            required: false,
            include_tools: Vec::new(),
            exclude_tools: Vec::new(),
            timeout: Duration::from_secs_f64(DEFAULT_TIMEOUT_SECONDS),
            era: Era::default(),
        }
    }
}

/// Seconds that an upstream has for an answer when the file says nothing.
const DEFAULT_TIMEOUT_SECONDS: f64 = 30.0;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenConfig {
    mode: Mode,
    name: String,
    top_k: usize,
    cache_stable: bool,
    cards: CardForm,
    structured: Structured,
    tolerant_args: bool,
    catalog: Option<PathBuf>,
    upstreams: BTreeMap<String, WrittenUpstream>,
    startup: StartConfig,
    retry: RetryConfig,
    routing: RoutingConfig,
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
    signing: Option<WrittenSigning>,
    state: Option<PathBuf>,
    diagnostics: Option<PathBuf>,
    http: WrittenHttp,
}

impl Default for WrittenConfig {
    fn default() -> Self {
        let GatewayConfig { mode, name, top_k, cache_stable, cards, structured, tolerant_args, startup, .. } =
            GatewayConfig::default();
        Self {
            mode,
            name,
            top_k,
            cache_stable,
            cards,
            structured,
            tolerant_args,
            catalog: None,
            upstreams: BTreeMap::new(),
            startup,
            retry: RetryConfig::default(),
            routing: RoutingConfig::default(),
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
            http: WrittenHttp::default(),
        }
    }
}

/// The configuration of a gateway.
#[derive(Debug, Clone, PartialEq)]
pub struct GatewayConfig {
    /// What clients are shown.
    pub mode: Mode,
    /// What the gateway calls itself.
    pub name: String,
    /// Cards of an answer to `tool_browse`, at most.
    pub top_k: usize,
    /// Whether cards that were shown before come first and unchanged (gateway surface, section 5).
    pub cache_stable: bool,
    /// The text of an answer to `tool_browse`.
    pub cards: CardForm,
    /// Whether answers also carry `structuredContent`.
    pub structured: Structured,
    /// Whether arguments are repaired where the schema leaves no doubt (gateway surface, section 4.4).
    pub tolerant_args: bool,
    /// Tools from a file, for a gateway without upstreams: they can be browsed and not called.
    pub catalog: Option<PathBuf>,
    /// The servers behind it, by name.
    pub upstreams: BTreeMap<String, UpstreamConfig>,
    /// How it starts.
    pub startup: StartConfig,
    /// Whether and how calls are made again that an upstream did not answer.
    pub retry: RetryConfig,
    /// How tools are ranked.
    pub routing: RoutingConfig,
    /// What becomes of results.
    pub firewall: FirewallConfig,
    /// What is kept of results.
    pub artifacts: ArtifactsConfig,
    /// What stands between calls and upstreams.
    pub guards: GuardConfig,
    /// The file that events are appended to; none when `None`.
    pub diagnostics: Option<PathBuf>,
    /// How it is served over HTTP.
    pub http: HttpConfig,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            mode: Mode::Gateway,
            name: "contextweaver".to_owned(),
            top_k: 10,
            cache_stable: false,
            cards: CardForm::Lines,
            structured: Structured::Off,
            tolerant_args: false,
            catalog: None,
            upstreams: BTreeMap::new(),
            startup: StartConfig::default(),
            retry: RetryConfig::default(),
            routing: RoutingConfig::default(),
            firewall: FirewallConfig::default(),
            artifacts: ArtifactsConfig::default(),
            guards: GuardConfig::default(),
            diagnostics: None,
            http: HttpConfig::default(),
        }
    }
}

/// A configuration is not usable.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// It is no YAML or JSON, or a field is not one of these.
    #[error("{}: {reason}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and what.
        reason: String,
    },
    /// The fields do not go together.
    #[error("{place}: {reason}")]
    Invalid {
        /// The field.
        place: String,
        /// What is wrong and what to do.
        reason: String,
    },
}

pub(super) fn invalid(place: impl fmt::Display, reason: impl Into<String>) -> ConfigError {
    ConfigError::Invalid { place: place.to_string(), reason: reason.into() }
}

impl GatewayConfig {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`ConfigError`] for the first thing that is wrong.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::load_for(path, None)
    }

    /// Reads and checks a file, with another mode than it says.
    ///
    /// # Errors
    /// [`ConfigError`] for the first thing that is wrong, or does not go with the mode.
    pub fn load_for(path: &Path, mode: Option<Mode>) -> Result<Self, ConfigError> {
        let read = |error: std::io::Error| ConfigError::Read { path: path.to_owned(), reason: error.to_string() };
        let text = std::fs::read_to_string(path).map_err(read)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Self::parse_for(&text, folder, &|name| std::env::var(name).ok(), mode).map_err(|error| match error {
            ConfigError::Parse { reason, .. } => ConfigError::Parse { path: path.to_owned(), reason },
            ConfigError::Invalid { place, reason } => invalid(format!("{}: {place}", path.display()), reason),
            other @ ConfigError::Read { .. } => other,
        })
    }

    /// Checks a text whose paths are relative to `folder`, with `environment` for its variables.
    ///
    /// # Errors
    /// [`ConfigError`] for the first thing that is wrong.
    pub fn parse(text: &str, folder: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Self::parse_for(text, folder, environment, None)
    }

    fn parse_for(
        text: &str,
        folder: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
        mode: Option<Mode>,
    ) -> Result<Self, ConfigError> {
        let mut written: WrittenConfig =
            super::written::read(text).map_err(|reason| ConfigError::Parse { path: PathBuf::new(), reason })?;
        written.mode = mode.unwrap_or(written.mode);
        if written.top_k == 0 {
            return Err(invalid("top_k", "must be at least 1"));
        }
        if written.catalog.is_some() && !written.upstreams.is_empty() {
            return Err(invalid("catalog", "a gateway has either a `catalog` or `upstreams`; leave one out"));
        }
        let seconds = written.startup.upstream_timeout_seconds;
        duration(seconds).map_err(|reason| invalid("startup.upstream_timeout_seconds", reason))?;
        written.retry.validate().map_err(|(field, reason)| invalid(format!("retry.{field}"), reason))?;
        written.routing.validate().map_err(|error| invalid("routing", error.to_string()))?;
        let (mut firewall, mut artifacts) = (written.firewall, written.artifacts);
        if artifacts.redact_secrets {
            firewall.secrets = Secrets::Redact;
        }
        artifacts.path = artifacts.path.map(|path| folder.join(path));
        let checked = |(name, upstream): (String, WrittenUpstream)| {
            let upstream = check(&name, upstream, folder, environment)?;
            Ok((name, upstream))
        };
        let upstreams = written.upstreams.into_iter().map(checked).collect::<Result<_, _>>()?;
        let owners = namespaces_of(&upstreams)?;
        let guards = WrittenGuards {
            policy: written.policy,
            policy_preset: written.policy_preset,
            visibility_profiles: written.visibility_profiles,
            visibility_profile: written.visibility_profile,
            rate_limits: written.rate_limits,
            schemas: written.schemas,
            sanitize: written.sanitize,
            cache: written.cache,
            pins: written.pins,
            signing: written.signing,
            state: written.state,
        };
        let guards = guards.check(written.mode, folder, &|text| expand(text, environment));
        let guards = guards.map_err(|(place, reason)| invalid(place, reason))?;
        guards.check_namespaces(&owners).map_err(|(place, reason)| invalid(place, reason))?;
        let signed = guards.signing.iter().flat_map(|signing| signing.upstreams.keys());
        if let Some(name) = signed.into_iter().find(|name| !upstreams.contains_key(*name)) {
            let reason = "there is no upstream of that name; its calls would go out unsigned";
            return Err(invalid(format!("signing.upstreams.{name}"), reason));
        }
        let http = written.http.check(folder, environment)?;
        let mut profiles = http.tokens.iter().filter_map(|holder| holder.identity.profile.as_ref());
        if let Some(name) = profiles.find(|name| !guards.visibility_profiles.contains_key(*name)) {
            return Err(invalid("http.tokens", format!("there is no `{name}` under `visibility_profiles`")));
        }
        Ok(Self {
            mode: written.mode,
            name: written.name,
            top_k: written.top_k,
            cache_stable: written.cache_stable,
            cards: written.cards,
            structured: written.structured,
            tolerant_args: written.tolerant_args,
            catalog: written.catalog.map(|path| folder.join(path)),
            upstreams,
            startup: written.startup,
            retry: written.retry,
            routing: written.routing,
            firewall,
            artifacts,
            guards,
            diagnostics: written.diagnostics.map(|path| folder.join(path)),
            http,
        })
    }
}

/// The names of the upstreams by the namespaces of their tools. Tools of two upstreams in one could not be told apart.
fn namespaces_of(upstreams: &BTreeMap<String, UpstreamConfig>) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    for (name, upstream) in upstreams {
        let namespace = server_namespace(upstream.namespace.as_deref().unwrap_or(name));
        if let Some(other) = owners.get(&namespace) {
            let reason = format!("`{namespace}` is the namespace of `{other}` already; choose another");
            return Err(invalid(format!("upstreams.{name}.namespace"), reason));
        }
        owners.insert(namespace, name.clone());
    }
    Ok(owners)
}

/// Seconds of a wait, at most: a year.
const LONGEST_WAIT_SECONDS: f64 = 31_536_000.0;

pub(super) fn duration(seconds: f64) -> Result<Duration, String> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() && seconds <= LONGEST_WAIT_SECONDS => Ok(duration),
        _ => Err(format!("is {seconds}; it must be seconds above 0 and at most {LONGEST_WAIT_SECONDS}")),
    }
}

fn check(
    name: &str,
    written: WrittenUpstream,
    folder: &Path,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<UpstreamConfig, ConfigError> {
    let place = |field: &str| format!("upstreams.{name}.{field}");
    let expand = |field: &str, text: &str| expand(text, environment).map_err(|reason| invalid(place(field), reason));
    let expand_all = |field: &str, texts: &BTreeMap<String, String>| {
        let expanded = |(key, text): (&String, &String)| Ok((key.clone(), expand(&format!("{field}.{key}"), text)?));
        texts.iter().map(expanded).collect::<Result<BTreeMap<_, _>, ConfigError>>()
    };
    let target = match (&written.command, &written.url, written.transport) {
        (Some(command), None, None | Some(Transport::Stdio)) => Target::Stdio {
            command: expand("command", command)?,
            args: written.args.iter().map(|arg| expand("args", arg)).collect::<Result<_, _>>()?,
            env: expand_all("env", &written.env)?,
            cwd: written.cwd.as_ref().map(|cwd| folder.join(cwd)),
            inherit: written.inherit_env.clone().unwrap_or_default(),
        },
        (None, Some(url), None | Some(Transport::Http)) => {
            Target::Http { url: expand("url", url)?, headers: expand_all("headers", &written.headers)? }
        }
        (None, Some(url), Some(Transport::Sse)) => {
            Target::Sse { url: expand("url", url)?, headers: expand_all("headers", &written.headers)? }
        }
        _ => {
            let reason = "needs `command` (type stdio) or `url` (type http or sse), and not both";
            return Err(invalid(format!("upstreams.{name}"), reason));
        }
    };
    let foreign = match &target {
        Target::Stdio { .. } => !written.headers.is_empty(),
        Target::Http { .. } | Target::Sse { .. } => {
            let has_process = !written.env.is_empty() || written.cwd.is_some() || written.inherit_env.is_some();
            has_process || !written.args.is_empty()
        }
        Target::InProcess(_) => false,
    };
    if foreign {
        let reason = "`args`, `env`, `cwd` and `inherit_env` go with `command`, and `headers` with `url`";
        return Err(invalid(format!("upstreams.{name}"), reason));
    }
    let timeout = duration(written.timeout.unwrap_or(DEFAULT_TIMEOUT_SECONDS))
        .map_err(|reason| invalid(place("timeout"), reason))?;
    Ok(UpstreamConfig {
        target,
        namespace: written.namespace,
        required: written.required,
        include_tools: written.include_tools,
        exclude_tools: written.exclude_tools,
        timeout,
        era: written.era,
    })
}

/// Replaces every `${env:NAME}`.
pub(super) fn expand(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    const OPENING: &str = "${env:";
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPENING) {
        let Some((name, after)) = after.split_once('}') else {
            return Err(format!("`{OPENING}` is not closed by `}}`"));
        };
        let value = environment(name)
            .ok_or_else(|| format!("the variable `{name}` is not set; set it in the environment of the gateway"))?;
        expanded.push_str(before);
        expanded.push_str(&value);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
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
        assert_eq!(config, parse(json).unwrap());
        let Target::Http { headers, .. } = &config.upstreams["b"].target else { panic!() };
        assert_eq!(headers["authorization"], "Bearer s3cret");
        let Target::Stdio { cwd, .. } = &config.upstreams["a"].target else { panic!() };
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
            ("upstreams: {a: {}}", "upstreams.a: needs `command`"),
            ("upstreams: {a: {command: x, url: y}}", "upstreams.a: needs `command`"),
            ("upstreams: {a: {command: x, headers: {b: c}}}", "upstreams.a: `args`"),
            ("upstreams: {a: {command: x, timeout: 0}}", "upstreams.a.timeout: is 0"),
            ("upstreams: {a: {command: x, timeout: 31536001}}", "upstreams.a.timeout: is 31536001; it must be seconds"),
            ("upstreams: {a: {command: x, timeout: 1.0e+30}}", "above 0 and at most 31536000"),
            ("upstreams: {a: {command: x, args: ['${env:NO}']}}", "upstreams.a.args: the variable `NO` is not set"),
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
            ("upstreams: {GitHub: {command: x}, github: {command: x}}", "`github` is the namespace of `GitHub`"),
            ("upstreams: {a: {command: x, inherit_env: some}}", "`inherit_env` is `safe`, `all`, or"),
            ("upstreams: {a: {url: x, inherit_env: all}}", "upstreams.a: `args`"),
        ];
        for (text, expected) in cases {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
