//! What is wrong with a configuration and the servers behind it, and what to do about it.
//!
//! First what needs no server: the file, its variables, programs, folders, pins, state and artifacts. Then every server on its own, side by side:
//! how it starts, what it lists, and what clients will not take of it. Nothing is called and nothing is changed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::catalog::view::{CatalogView, items_of};
use crate::common::program::quoted;
use crate::common::settings::{is_loopback, unset};
use crate::config::error::ConfigError;
use crate::config::file::GatewayConfig;
use crate::guard::config::{GuardConfig, StatePlace};
use crate::guard::pins::{FilePins, PinMode};
use crate::guard::redis_state::RedisState;
use crate::guard::sqlite_state::SqliteState;
use crate::guard::state::Pinned;
use crate::operations::capture::Capture;
use crate::protocol::listing::{self as protocol, ServerInfo};
use crate::results::artifacts::{ArtifactsConfig, is_for_database};
use crate::surface::mode::Mode;
use crate::upstream::bubblewrap::Launch;
use crate::upstream::built_in::{database, documents};
use crate::upstream::config::{Confinement, Era, Target, UpstreamConfig};
use crate::upstream::executable;
use crate::upstream::fault::Fault;
use crate::upstream::sandbox::Reach;
use contextweaver_context::store::{SqliteStore, redact};
use contextweaver_core::catalog::{
    Catalog, Listing, Problem, SchemaLimits, SchemaProblem, Severity, definition_tokens, lint, load_listings,
};
use contextweaver_core::files::{folder_of, in_words};
use contextweaver_core::text::{Estimator, counted};

/// Characters of a tool's name that every client accepts, at most.
const LONGEST_NAME: usize = 64;

/// Something to fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Complaint {
    /// How bad it is.
    pub severity: Severity,
    /// The file, field, upstream or tool.
    pub place: String,
    /// The problem in one sentence.
    pub problem: String,
    /// The way to fix it.
    pub remedy: String,
}

impl Complaint {
    fn new(
        severity: Severity,
        place: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { severity, place: place.into(), problem: problem.into(), remedy: remedy.into() }
    }

    fn error(place: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Severity::Error, place, problem, remedy)
    }

    fn warning(place: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Severity::Warning, place, problem, remedy)
    }

    fn note(place: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Severity::Note, place, problem, remedy)
    }
}

/// How one server is.
#[derive(Debug, Clone, Serialize)]
pub struct Health {
    /// Its name in the configuration.
    pub name: String,
    /// The protocol version, when it answers.
    pub version: Option<String>,
    /// Milliseconds from its start to the end of its lists.
    pub start_ms: Option<u64>,
    /// Tools that it lists.
    pub tools: usize,
    /// Resources that it lists.
    pub resources: usize,
    /// Prompts that it lists.
    pub prompts: usize,
    /// `cl100k_base` tokens of the definitions of its tools.
    pub tokens: u64,
    /// What it may reach on this machine.
    pub reach: Reach,
}

impl Health {
    /// One that does not answer.
    fn silent(name: &str, reach: Option<Reach>) -> Self {
        let reach = reach.unwrap_or(Reach::Remote);
        let name = name.to_owned();
        Self { name, version: None, start_ms: None, tools: 0, resources: 0, prompts: 0, tokens: 0, reach }
    }
}

/// What a client would see of the servers that answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outlook {
    /// What clients are shown.
    pub mode: Mode,
    /// Tools of all servers.
    pub tools: usize,
    /// Tools that a client would be listed.
    pub listed_tools: usize,
    /// `cl100k_base` tokens of the definitions of all tools.
    pub tokens: u64,
    /// `cl100k_base` tokens of the definitions that a client would be listed.
    pub listed_tokens: u64,
}

impl Outlook {
    /// The share of the tokens of all definitions that a client is not sent, from 0 to 1; 0 where it is sent more.
    #[must_use]
    pub fn saved_share(&self) -> f64 {
        self.tokens.saturating_sub(self.listed_tokens) as f64 / self.tokens.max(1) as f64
    }
}

/// Two tools that are easily taken for each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Confusable {
    /// The id of one.
    pub tool: String,
    /// The id of the other.
    pub with: String,
    /// How much alike their words are, from 0 to 1; 1 for equal definitions.
    pub similarity: f64,
}

/// The result of an examination.
#[derive(Debug, Clone, Serialize)]
pub struct Examination {
    /// All servers, by name: also those that were not started, since something is wrong with their configuration.
    pub upstreams: Vec<Health>,
    /// What a client would see; `None` where nothing could be read.
    pub outlook: Option<Outlook>,
    /// Tools that are easily taken for each other, the likest first; each pair once.
    pub confusable: Vec<Confusable>,
    /// What to fix, the most severe first, then by place.
    pub complaints: Vec<Complaint>,
}

impl Examination {
    /// Whether something does not work.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.complaints.iter().any(|complaint| complaint.severity == Severity::Error)
    }
}

/// The surroundings of a gateway: the variables of its environment.
pub type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

/// Looks at the configuration at `path` and at every server that it names.
pub async fn examine(path: &Path, environment: Environment<'_>) -> Examination {
    let (config, mut complaints) = check_file(path, environment);
    let (mut upstreams, mut outlook, mut confusable) = (Vec::new(), None, Vec::new());
    if let Some(config) = config {
        let (mut lame, mut reaches) = (BTreeSet::new(), BTreeMap::new());
        for (name, upstream) in &config.upstreams {
            let mut found = check_target(name, upstream, environment);
            reaches.insert(name.clone(), check_reach(name, upstream, (path, &config), environment, &mut found).await);
            if found.iter().any(|complaint| complaint.severity == Severity::Error) {
                lame.insert(name.clone());
            }
            complaints.extend(found);
        }
        complaints.extend(check_paths(&config));
        complaints.extend(check_kept(path, &config));
        let captures = capture_all(&config, &lame).await;
        for name in config.upstreams.keys() {
            let mut health = Health::silent(name, reaches.remove(name));
            if let Some(captured) = captures.get(name) {
                complaints.extend(check_live(&config, &mut health, captured));
            }
            upstreams.push(health);
        }
        complaints.extend(check_shared_names(&captures));
        let tokens;
        (outlook, confusable, tokens) = look_ahead(&config, captures);
        for health in &mut upstreams {
            health.tokens = tokens.get(namespace(&config, &health.name)).copied().unwrap_or_default();
        }
    }
    complaints.sort_by(|left, right| {
        right
            .severity
            .cmp(&left.severity)
            .then_with(|| (&left.place, &left.problem).cmp(&(&right.place, &right.problem)))
    });
    Examination { upstreams, outlook, confusable, complaints }
}

fn check_file(path: &Path, environment: Environment<'_>) -> (Option<GatewayConfig>, Vec<Complaint>) {
    let place = path.display().to_string();
    let mut complaints = Vec::new();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            let remedy = match path.exists() {
                true => "name a configuration: a YAML or JSON file",
                false => "name a file that exists, or create one with `mcp import --write` or `mcp add`",
            };
            return (None, vec![Complaint::error(place, in_words(&error), remedy)]);
        }
    };
    for (family, count) in redact(&text).found {
        complaints.push(Complaint::warning(
            place.clone(),
            format!("contains what looks like a secret ({family}, {})", counted(count, "time")),
            "move it to the environment and write `${env:NAME}` in its place",
        ));
    }
    let missing = RefCell::new(BTreeSet::new());
    let lookup = |name: &str| {
        let value = environment(name);
        if value.is_none() {
            missing.borrow_mut().insert(name.to_owned());
        }
        value
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    let config = match GatewayConfig::parse_for_a_look(&text, folder, &lookup) {
        Ok(config) => Some(config),
        Err(error) => {
            let remedy = match &error {
                ConfigError::ClientsFile { .. } => "name the configuration that this writes with --config",
                _ => "fix the file; `contextweaver schema gateway` prints every field",
            };
            complaints.push(Complaint::error(place.clone(), error.of_file(path).problem(), remedy));
            None
        }
    };
    // Servers say for themselves what they lack.
    let of_servers: BTreeSet<&String> = config
        .iter()
        .flat_map(|config| config.upstreams.values())
        .filter_map(|upstream| match &upstream.target {
            Target::Unset { variables } => Some(variables),
            _ => None,
        })
        .flatten()
        .collect();
    for name in missing.into_inner().into_iter().filter(|name| !of_servers.contains(name)) {
        complaints.push(Complaint::error(
            place.clone(),
            unset(std::slice::from_ref(&name)),
            "set it in the environment that starts the gateway",
        ));
    }
    if let Some(config) = &config
        && config.upstreams.is_empty()
        && config.catalog.is_none()
    {
        let remedy = "add a server with `mcp add NAME -- COMMAND`, or import a client's servers with `mcp import`";
        complaints.push(Complaint::error(place, "there is nothing to serve", remedy));
    }
    (config, complaints)
}

fn check_paths(config: &GatewayConfig) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let files = config.catalog.iter().flat_map(|catalog| {
        let answers = catalog.answers.iter().map(|path| ("answers", path));
        std::iter::once(("catalog", &catalog.path)).chain(answers)
    });
    for (field, path) in files.filter(|(_, path)| !path.exists()) {
        let problem = format!("{} does not exist", path.display());
        complaints.push(Complaint::error(field, problem, "name a file that exists"));
    }
    if let Some(path) = &config.diagnostics {
        complaints.extend(lacks_folder("diagnostics", path));
        if path.is_dir() {
            let problem = format!("{} is a folder", path.display());
            complaints.push(Complaint::error("diagnostics", problem, "name a file in it"));
        }
    }
    complaints
}

/// What is kept in files or on a server: it is opened for reading alone, and nothing is made.
fn check_kept(path: &Path, config: &GatewayConfig) -> Vec<Complaint> {
    let mut complaints = check_state(&config.guards);
    complaints.extend(check_pins(path, &config.guards));
    complaints.extend(check_artifacts(&config.artifacts));
    complaints.extend(check_readers(config));
    complaints
}

/// What to do about a file that cannot be used.
const OTHER_FILE: &str = "name another file, or restore this one from a copy";

/// That the folder of a file is missing, where it is: no folder is made for it.
fn lacks_folder(field: &str, path: &Path) -> Option<Complaint> {
    let folder = folder_of(path);
    let problem = format!("the folder {} does not exist", folder.display());
    (!folder.is_dir()).then(|| Complaint::error(field, problem, "create the folder"))
}

fn check_state(guards: &GuardConfig) -> Vec<Complaint> {
    match &guards.state {
        None => Vec::new(),
        Some(StatePlace::File(path)) => {
            let unusable = SqliteState::look(path).err();
            let unusable = unusable.map(|error| Complaint::error("state", error.to_string(), OTHER_FILE));
            unusable.into_iter().chain(lacks_folder("state", path)).collect()
        }
        Some(StatePlace::Server(server)) => match RedisState::look(server) {
            Ok(found) => {
                let worries = found.worries.into_iter();
                worries.map(|(problem, remedy)| Complaint::warning("state", problem, remedy)).collect()
            }
            Err(error) => {
                let remedy = "calls that need it are refused until it answers";
                vec![Complaint::error("state", error.to_string(), remedy)]
            }
        },
    }
}

/// The pins of the configuration at `path`.
fn check_pins(path: &Path, guards: &GuardConfig) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    if let Some(path) = &guards.pins.file
        && let Err(error) = FilePins::new(path).pins()
    {
        complaints.push(Complaint::error("pins.file", error.to_string(), OTHER_FILE));
    }
    if guards.pins.mode == PinMode::Off {
        return complaints;
    }
    if guards.pins.file.is_none() && guards.state.is_none() {
        let problem = "pins are kept in memory: after a restart every definition is accepted as it is then";
        complaints.push(Complaint::warning("pins", problem, "name a file with `pins.file` or `state`"));
    }
    let pins = guards.look_at_pins().unwrap_or_default();
    let waiting = pins.iter().filter(|pin| pin.pending.is_some()).count();
    if waiting > 0 {
        let problem = format!("{} not approved yet", counted(waiting, "definition"));
        let config = quoted(&path.to_string_lossy());
        let remedy = format!(
            "contextweaver mcp pins list --config {config} --pending shows what changed, and how to approve it"
        );
        complaints.push(Complaint::warning("pins", problem, remedy));
    }
    complaints
}

fn check_artifacts(artifacts: &ArtifactsConfig) -> Vec<Complaint> {
    let wrong = |problem: String, remedy: &str| Complaint::error("artifacts.path", problem, remedy);
    let of_path = artifacts.path.as_deref().and_then(|path| match (is_for_database(path), path.exists()) {
        (true, true) => SqliteStore::look(path).err().map(|error| wrong(error.to_string(), OTHER_FILE)),
        (true, false) => lacks_folder("artifacts.path", path),
        (false, true) if !path.is_dir() => {
            Some(wrong(format!("{} is not a folder", path.display()), "name a folder, or `….sqlite`"))
        }
        (false, _) => None,
    });
    let of_bucket = artifacts.look_at_bucket().err().map(|error| {
        let remedy = "check the bucket, its address and the keys; results are not kept until it answers";
        Complaint::error("artifacts.s3", error.to_string(), remedy)
    });
    of_path.into_iter().chain(of_bucket).collect()
}

/// Whether others can read what the gateway keeps.
fn check_readers(config: &GatewayConfig) -> Vec<Complaint> {
    let open = config.kept().filter(|(_, path)| is_open_to_others(path));
    let complaint = |(field, path): (&str, &Path)| {
        let remedy = "remove their permissions: `chmod go=` on it and on the files in it or beside it";
        Complaint::warning(field, format!("other users can read {}", path.display()), remedy)
    };
    open.map(complaint).collect()
}

#[cfg(unix)]
fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|data| data.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> bool {
    false
}

fn check_target(name: &str, upstream: &UpstreamConfig, environment: Environment<'_>) -> Vec<Complaint> {
    let place = |field: &str| format!("upstreams.{name}.{field}");
    let mut complaints = Vec::new();
    match &upstream.target {
        Target::InProcess(_) => {}
        Target::Documents { folder } => complaints.extend(match documents::look(folder) {
            Ok(left_out) if left_out.is_empty() => None,
            Ok(left_out) => {
                let remedy = "name a narrower folder, or make the files smaller; searches do not find what is left out";
                Some(Complaint::warning(place("documents"), left_out.to_string(), remedy))
            }
            Err(error) => Some(Complaint::error(place("documents"), error.problem(), error.remedy())),
        }),
        Target::Database { file } => complaints.extend(
            database::look(file)
                .err()
                .map(|error| Complaint::error(place("database"), error.problem(), error.remedy())),
        ),
        Target::Unset { variables } => complaints.push(Complaint::error(
            format!("upstreams.{name}"),
            unset(variables),
            "set it in the gateway's environment, for instance under `env` of the gateway's entry in the client's \
             file; if it is set there, name that file with --client",
        )),
        Target::Stdio { confinement: Confinement::Sandbox(_), .. } => {}
        Target::Stdio { command, env, confinement: Confinement::Open { cwd, .. }, .. } => {
            if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
                let problem = format!("{} is not a folder", cwd.display());
                complaints.push(Complaint::error(place("cwd"), problem, "create the folder, or name another"));
            }
            let path = env.get("PATH").cloned().or_else(|| environment("PATH")).unwrap_or_default();
            let is_found = executable::find(command, OsStr::new(&path), cwd.as_deref()).is_some();
            if let (false, Some((program, _))) = (is_found, command.split_once(char::is_whitespace)) {
                // What follows may be a secret.
                complaints.push(Complaint::error(
                    place("command"),
                    format!("`{} …` is not a program", upstream.masks.cover(program)),
                    "move everything after the program into `args`",
                ));
            } else if !is_found {
                complaints.push(Complaint::error(
                    place("command"),
                    if executable::is_path(command) {
                        format!("`{}` is not a program", upstream.masks.cover(command))
                    } else {
                        format!("`{}` is not a program on the PATH", upstream.masks.cover(command))
                    },
                    "install it, or write its full path: clients often start with a shorter PATH than a shell",
                ));
            }
        }
        Target::Http { url, headers } | Target::Sse { url, headers } => match reqwest::Url::parse(url) {
            Ok(parsed) if matches!(parsed.scheme(), "http" | "https") => {
                let is_local = parsed.host_str().is_some_and(is_loopback);
                if parsed.scheme() == "http" && !is_local && !headers.is_empty() {
                    let problem = "headers go over the network unencrypted";
                    complaints.push(Complaint::warning(place("url"), problem, "use https"));
                }
            }
            Ok(_) => {
                let problem = "its address is not an http or https URL";
                complaints.push(Complaint::error(place("url"), problem, "write e.g. https://host/mcp"));
            }
            Err(error) => {
                let problem = format!("it is not a URL: {error}");
                complaints.push(Complaint::error(place("url"), problem, "write e.g. https://host/mcp"));
            }
        },
    }
    complaints
}

/// What a server may reach on this machine, and what is wrong with its sandbox.
async fn check_reach(
    name: &str,
    upstream: &UpstreamConfig,
    (path, config): (&Path, &GatewayConfig),
    environment: Environment<'_>,
    complaints: &mut Vec<Complaint>,
) -> Reach {
    let (command, args, env, confinement) = match &upstream.target {
        Target::Stdio { command, args, env, confinement } => (command, args, env, confinement),
        Target::Documents { folder: path } | Target::Database { file: path } => {
            return Reach::Read { path: path.clone() };
        }
        Target::Http { .. } | Target::Sse { .. } | Target::Unset { .. } | Target::InProcess(_) => return Reach::Remote,
    };
    let Confinement::Sandbox(sandbox) = confinement else { return Reach::User };
    let place = format!("upstreams.{name}.sandbox");
    let environment = |name: &str| environment(name).map(OsString::from);
    let launch = match Launch::find(sandbox, command, env, &environment) {
        Ok(launch) => launch,
        Err(error) => {
            let problem = upstream.masks.cover(&error.to_string()).into_owned();
            complaints.push(Complaint::error(place, problem, error.remedy()));
            return sandbox.reach(&[]);
        }
    };
    if let Err(error) = launch.try_out(sandbox).await {
        complaints.push(Complaint::error(place, error.to_string(), error.remedy()));
        return launch.reach(sandbox);
    }
    let mut warn = |problem: String, remedy: &str| {
        complaints.push(Complaint::warning(place.clone(), problem, remedy));
    };
    for arg in args.iter().map(Path::new).filter(|arg| arg.is_absolute() && arg.exists()) {
        if !launch.shows(sandbox, arg) {
            let arg = upstream.masks.cover(&arg.display().to_string()).into_owned();
            warn(format!("it hides {arg}, which is named in `args`"), "list it under `read` or `write`");
        }
    }
    for kept in std::iter::once(path).chain(config.kept().map(|(_, path)| path)) {
        let kept = std::path::absolute(kept).unwrap_or_else(|_| kept.to_owned());
        if launch.shows(sandbox, &kept) {
            warn(
                format!("it shows {}, which belongs to the gateway", kept.display()),
                "name narrower folders, or move the file",
            );
        }
    }
    if is_root() {
        let problem = "the gateway runs as root, whose processes the system does not count: `processes` has no effect";
        warn(problem.to_owned(), "run the gateway as a user of its own");
    }
    launch.reach(sandbox)
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

type Captures = BTreeMap<String, Result<Capture, Fault>>;

async fn capture_all(config: &GatewayConfig, lame: &BTreeSet<String>) -> Captures {
    let timeout = config.startup.upstream_timeout;
    let mut running = tokio::task::JoinSet::new();
    for (name, upstream) in config.upstreams.iter().filter(|(name, _)| !lame.contains(*name)) {
        let (name, upstream) = (name.clone(), upstream.clone());
        running.spawn(async move {
            let captured = Capture::of(&name, upstream, timeout).await;
            (name, captured)
        });
    }
    running.join_all().await.into_iter().collect()
}

/// Says what `auto` costs with a server that speaks both protocols.
fn check_era(era: Era, name: &str, server: &ServerInfo) -> Option<Complaint> {
    if era != Era::Auto || server.handshakes.is_empty() {
        return None;
    }
    let problem = "it speaks both protocols, and `auto` chooses the stateless one: its questions (elicitation, \
                   sampling) do not reach clients with a handshake";
    let remedy = "set `legacy` if such clients need them; clients without a handshake then lose them";
    Some(Complaint::note(format!("upstreams.{name}.era"), problem, remedy))
}

/// The program that starts it, where that is one which downloads what it starts.
fn downloads(upstream: &UpstreamConfig) -> Option<&str> {
    /// Runners of packages and of images.
    const RUNNERS: [&str; 9] = ["bunx", "deno", "docker", "npx", "pipx", "pnpx", "podman", "uv", "uvx"];
    let Target::Stdio { command, .. } = &upstream.target else { return None };
    let stem = Path::new(command).file_stem()?.to_str()?;
    RUNNERS.into_iter().find(|runner| stem.eq_ignore_ascii_case(runner))
}

/// What is wrong with a server that was asked, beside how it is.
fn check_live(config: &GatewayConfig, health: &mut Health, captured: &Result<Capture, Fault>) -> Vec<Complaint> {
    let name = &*health.name;
    let place = format!("upstreams.{name}");
    let headers = config.upstreams.get(name).and_then(|upstream| match &upstream.target {
        Target::Http { headers, .. } | Target::Sse { headers, .. } => Some(headers),
        _ => None,
    });
    let (is_remote, has_headers) = (headers.is_some(), headers.is_some_and(|headers| !headers.is_empty()));
    let capture = match captured {
        Ok(capture) => capture,
        Err(fault) => {
            let runner = config.upstreams.get(name).and_then(downloads);
            let remedy = match fault {
                Fault::Timeout(_) if let Some(runner) = runner => {
                    let remedy = format!(
                        "`{runner}` downloads what it does not have yet, which may take minutes: start it by hand once, \
                         or raise `startup.upstream_timeout_seconds`"
                    );
                    return vec![Complaint::error(place, fault.to_string(), remedy)];
                }
                Fault::Timeout(_) => "start it by hand to see why, or raise `startup.upstream_timeout_seconds`",
                Fault::Status { status: 401 | 403, .. } if has_headers => {
                    "it refuses the credentials in `headers`: check the values of their variables; where the file says `Bearer \
                     ${env:NAME}`, the value is only what follows `Bearer `"
                }
                Fault::Status { status: 401 | 403, .. } => "add credentials to `headers`",
                Fault::NoHandshake(_) => "check its `url`; if it is a server of HTTP+SSE, add `type: sse`",
                _ if is_remote => "check that something is served at its `url`, and that it can be reached from here",
                Fault::Ended { said, .. } if !said.is_empty() => {
                    "fix what it says, or start it by hand with the same arguments"
                }
                _ => "start it by hand with the same arguments to see why; RUST_LOG=debug shows what it prints",
            };
            return vec![Complaint::error(place, redact(&fault.in_full()).text, remedy)];
        }
    };
    let listing = &capture.listing;
    health.version = Some(capture.server.version.clone());
    health.start_ms = u64::try_from(capture.took.as_millis()).ok();
    (health.tools, health.resources, health.prompts) =
        (listing.tools.len(), listing.resources.len(), listing.prompts.len());
    let mut complaints = Vec::new();
    if capture.took > config.startup.upstream_timeout / 2 {
        let problem =
            format!("it took {:.1} s to start, more than half of the time it has", capture.took.as_secs_f64());
        let remedy = "raise `startup.upstream_timeout_seconds`, or install it beforehand: a runner that downloads it \
                      is slow; with `startup.list_cache` clients do not wait for it";
        complaints.push(Complaint::warning(place.clone(), problem, remedy));
    }
    if health.tools + health.resources + health.prompts == 0 {
        let problem = "it lists nothing";
        complaints.push(Complaint::warning(place, problem, "check its arguments, or remove it"));
    }
    let era = config.upstreams.get(name).map(|upstream| upstream.era).unwrap_or_default();
    complaints.extend(check_era(era, name, &capture.server));
    complaints.extend(check_lists(config.mode, &config.guards.schemas.limits(), name, capture));
    complaints
}

fn check_lists(mode: Mode, limits: &SchemaLimits, name: &str, capture: &Capture) -> Vec<Complaint> {
    let place = format!("upstreams.{name}");
    let Capture { listing, .. } = capture;
    let (items, left_out) = load_listings(&[Listing {
        server: name,
        tools: &listing.tools,
        resources: &listing.resources,
        prompts: &listing.prompts,
    }]);
    let mut complaints: Vec<Complaint> = left_out
        .into_iter()
        .map(|left_out| {
            let remedy = "it is not served; tell the server's author";
            let place = format!("upstreams.{}", left_out.place);
            Complaint::error(place, left_out.reason, remedy)
        })
        .collect();
    let Ok(catalog) = Catalog::new(items) else { return complaints };
    for finding in lint(&catalog, limits).findings {
        let tool = catalog.get(&finding.id).map_or(finding.id.as_str(), |item| &item.name);
        if let Some((problem, remedy)) = told(&finding.problem, mode) {
            let severity = match finding.problem {
                Problem::ArgumentsNotObject if mode != Mode::Passthrough => Severity::Note,
                _ => finding.severity,
            };
            complaints.push(Complaint::new(severity, format!("{place}: {tool}"), problem, remedy));
        }
    }
    for item in catalog.items().iter().filter(|item| item.kind.is_callable()) {
        if !is_safe_name(&item.name) {
            let severity = if mode == Mode::Passthrough { Severity::Warning } else { Severity::Note };
            let problem =
                format!("some clients refuse its name: it is not 1 to {LONGEST_NAME} characters of A-Z a-z 0-9 _ -");
            let remedy = "the modes gateway and proxy show it under a name that all accept";
            complaints.push(Complaint::new(severity, format!("{place}: {}", item.name), problem, remedy));
        }
    }
    complaints
}

/// The problem and remedy for a finding; `None` for a finding that only matters to the author of the tool.
fn told(problem: &Problem, mode: Mode) -> Option<(String, &'static str)> {
    const EXCLUDE: &str = "tell the server's author, or list it in `exclude_tools`";
    match problem {
        Problem::Schema { finding: SchemaProblem::Recursive { .. } | SchemaProblem::UnknownDialect { .. }, .. } => None,
        Problem::Schema { part, finding } => Some((finding.told(&format!("its {}", part.name())), EXCLUDE)),
        Problem::ArgumentsNotObject => {
            let remedy = if mode == Mode::Passthrough {
                "some clients refuse the whole list for it: use the modes gateway or proxy, or list it in `exclude_tools`"
            } else {
                "nothing to do: this mode shows a different schema"
            };
            Some(("its argument schema does not say \"type\": \"object\"".to_owned(), remedy))
        }
        Problem::UnreadSchema { at } => {
            Some((format!("it has no argument schema, but `{at}` looks like one; MCP calls it `inputSchema`"), EXCLUDE))
        }
        Problem::ContradictorySafety => Some(("it is declared both read-only and destructive".to_owned(), EXCLUDE)),
        Problem::MissingDescription => {
            Some(("it has no description, so it is found only by its name".to_owned(), "tell the server's author"))
        }
        Problem::LongDescription { tokens, limit } => Some((
            format!("its description has {tokens} tokens, over {limit}"),
            "the modes gateway and proxy show only the beginning",
        )),
        Problem::Duplicate { of } => Some((format!("it is the same as {of}"), EXCLUDE)),
        Problem::UnusualName { .. }
        | Problem::NearDuplicate { .. }
        | Problem::UndescribedParameters { .. }
        | Problem::UnknownDependencies { .. }
        | Problem::UnprovidedRequirements { .. }
        | Problem::UndeclaredRequired { .. }
        | Problem::Refused { .. } => None,
    }
}

fn is_safe_name(name: &str) -> bool {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(safe)
}

/// The name under which the definitions of a server are served.
fn namespace<'c>(config: &'c GatewayConfig, name: &'c str) -> &'c str {
    config.upstreams.get(name).and_then(|upstream| upstream.namespace.as_deref()).unwrap_or(name)
}

/// What a client would see of what was captured, which tools are easily taken for each other, and the tokens of the
/// definitions of each namespace's tools.
fn look_ahead(config: &GatewayConfig, captures: Captures) -> (Option<Outlook>, Vec<Confusable>, BTreeMap<String, u64>) {
    let listings = captures
        .into_iter()
        .filter_map(|(name, captured)| Some((namespace(config, &name).to_owned(), Arc::new(captured.ok()?.listing))));
    let listings: BTreeMap<String, Arc<protocol::Listing>> = listings.collect();
    let (items, left_out) = items_of(&listings);
    let (mut pairs, mut of_each) = (Vec::new(), BTreeMap::new());
    if let Ok(catalog) = Catalog::new(items.clone()) {
        pairs = confusable(&catalog, &config.guards.schemas.limits());
        for item in catalog.items().iter().filter(|item| item.kind.is_callable()) {
            let tokens = definition_tokens(item, Estimator::Cl100kBase) as u64;
            *of_each.entry(item.server.clone().unwrap_or_default()).or_default() += tokens;
        }
    }
    let view = CatalogView::of_items(1, items, left_out, listings, &config.routing);
    let Some(view) = view.ok().filter(|view| view.tools.is_some()) else { return (None, Vec::new(), of_each) };
    let tools = view.counts().tools;
    let tokens = of_each.values().sum();
    let listed = view.lists(config.mode).tools.entries();
    let listed_tokens = listed.iter().map(|tool| Estimator::Cl100kBase.count(&format!("{tool}\n")) as u64).sum();
    (Some(Outlook { mode: config.mode, tools, listed_tools: listed.len(), tokens, listed_tokens }), pairs, of_each)
}

/// The pairs of tools whose words are nearly or exactly the same, the likest first.
fn confusable(catalog: &Catalog, limits: &SchemaLimits) -> Vec<Confusable> {
    let mut pairs: BTreeMap<(String, String), f64> = BTreeMap::new();
    for finding in lint(catalog, limits).findings {
        let (of, similarity) = match finding.problem {
            Problem::Duplicate { of } => (of, 1.0),
            Problem::NearDuplicate { of, similarity, .. } => (of, similarity),
            _ => continue,
        };
        let pair = if of < finding.id { (of, finding.id) } else { (finding.id, of) };
        pairs.insert(pair, similarity);
    }
    let mut pairs: Vec<Confusable> =
        pairs.into_iter().map(|((tool, with), similarity)| Confusable { tool, with, similarity }).collect();
    // A stable sort: among equals the order of the ids stays.
    pairs.sort_by(|left, right| right.similarity.total_cmp(&left.similarity));
    pairs
}

/// Names of tools that several servers have.
fn check_shared_names(captures: &Captures) -> Vec<Complaint> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    let mut servers: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (server, capture) in captures {
        for tool in capture.iter().flat_map(|capture| &capture.listing.tools) {
            if let Ok(Named { name }) = serde_json::from_str(tool.get()) {
                servers.entry(name).or_default().insert(server);
            }
        }
    }
    let shared = servers.into_iter().filter(|(_, servers)| servers.len() > 1);
    shared
        .map(|(name, servers)| {
            let servers: Vec<&str> = servers.into_iter().collect();
            let problem = format!("several servers have a tool with this name: {}", servers.join(", "));
            Complaint::note(name, problem, "nothing to do: their ids have the servers' namespaces")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_the_same_words_are_confusable_each_pair_once() {
        let tool = |server: &str, name: &str, about: &str| {
            let id = format!("{server}:{name}#00000000");
            contextweaver_core::catalog::SelectableItem::tool(&id, server, name, about)
        };
        let words = "Search the web for pages about a topic and return the best results with their titles";
        let items = vec![
            tool("one", "search", words),
            tool("three", "weather", "Get the forecast of a city"),
            tool("two", "search", words),
        ];
        let pairs = confusable(&Catalog::new(items).unwrap(), &SchemaLimits::default());
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|pair| (pair.tool.as_str(), pair.with.as_str())).collect();
        assert_eq!(pairs, [("one:search#00000000", "two:search#00000000")]);
    }

    /// What is found, and the folder of the configuration.
    fn found(text: &str) -> (Examination, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.yaml");
        std::fs::write(&path, text).unwrap();
        let environment = |name: &str| match name {
            "PATH" => std::env::var("PATH").ok(),
            "URL" => Some("ftp://example.com".to_owned()),
            _ => None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        (runtime.block_on(examine(&path, &environment)), folder)
    }

    #[test]
    fn every_server_has_its_state_and_its_share_of_the_tokens() {
        let manual = tempfile::tempdir().unwrap();
        std::fs::write(manual.path().join("lamps.md"), "# Lamps\n\nA desk lamp costs 12.50.\n").unwrap();
        let manual = manual.path().display();
        let (found, _folder) = found(&format!(
            "{{upstreams: {{a: {{documents: '{manual}'}}, gone: {{command: no-such-program}}, \
             other: {{namespace: named, documents: '{manual}'}}}}}}"
        ));
        let servers: Vec<_> =
            found.upstreams.iter().map(|one| (&*one.name, one.version.is_some(), one.tools, one.tokens > 0)).collect();
        assert_eq!(servers, [("a", true, 2, true), ("gone", false, 0, false), ("other", true, 2, true)]);
        let outlook = found.outlook.unwrap();
        assert_eq!(found.upstreams.iter().map(|one| one.tokens).sum::<u64>(), outlook.tokens);
        assert_eq!((outlook.tools, &*outlook.mode.to_string()), (4, "gateway"));
        let share = |tokens, listed_tokens| Outlook { tokens, listed_tokens, ..outlook.clone() }.saved_share();
        assert_eq!([share(400, 100), share(100, 400), share(0, 0)], [0.75, 0.0, 0.0]);
        for mode in [Mode::Gateway, Mode::Proxy, Mode::Passthrough] {
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.to_string());
        }
    }

    fn examined(text: &str) -> String {
        let (found, folder) = found(text);
        let lines = found.complaints.iter().map(|complaint| {
            let Complaint { severity, place, problem, .. } = complaint;
            format!("{severity:?} {place}: {problem}").replace(&*folder.path().to_string_lossy(), "FOLDER")
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_secret_in_the_file_is_warned_of_and_not_shown() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let found = examined(&format!("upstreams: {{a: {{command: no-such-program, env: {{T: {token}}}}}}}"));
        insta::assert_snapshot!(found, @r"
        Error upstreams.a.command: `no-such-program` is not a program on the PATH
        Warning FOLDER/gateway.yaml: contains what looks like a secret (github_token, 1 time)
        ");
    }

    #[cfg(unix)]
    #[test]
    fn a_runner_that_takes_long_is_said_to_download() {
        let bin = tempfile::tempdir().unwrap();
        let target = |name: &str| {
            let path = bin.path().join(name);
            std::fs::write(&path, "#!/bin/sh\nsleep 60\n").unwrap();
            let runs: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&path, runs).unwrap();
            path
        };
        let remedy = |name: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("gateway.yaml");
            let text = format!(
                "{{startup: {{upstream_timeout_seconds: 0.2}}, upstreams: {{a: {{command: {:?}}}}}}}",
                target(name)
            );
            std::fs::write(&path, text).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let found = runtime.block_on(examine(&path, &|_| None));
            found.complaints.into_iter().find(|one| one.place == "upstreams.a").unwrap().remedy
        };
        assert!(remedy("npx").starts_with("`npx` downloads what it does not have yet"));
        assert!(remedy("server").starts_with("start it by hand to see why"));
    }

    #[test]
    fn a_server_that_takes_no_handshake_may_be_of_the_older_transport() {
        use crate::upstream::client::http_tests::{Reply, serve};

        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let found = runtime.block_on(async {
            let (url, _log) = serve(|_| Reply::Whole(405, "text/plain", String::new())).await;
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("gateway.yaml");
            std::fs::write(&path, format!("upstreams: {{a: {{url: '{url}'}}}}")).unwrap();
            examine(&path, &|_| None).await
        });
        let complaint = found.complaints.into_iter().find(|one| one.place == "upstreams.a").unwrap();
        assert_eq!(complaint.remedy, "check its `url`; if it is a server of HTTP+SSE, add `type: sse`");
    }

    #[test]
    fn headers_go_unencrypted_to_this_machine_alone() {
        let urls = [
            ("http://127.0.0.1:80/mcp", false),
            ("http://127.1/mcp", false),
            ("http://[::1]/mcp", false),
            ("http://localhost/mcp", false),
            ("https://example.com/mcp", false),
            ("http://127.example.com/mcp", true),
            ("http://localhost.example.com/mcp", true),
            ("http://10.0.0.1/mcp", true),
        ];
        for (url, is_warned_of) in urls {
            let headers = BTreeMap::from([("X-Key".to_owned(), "k".to_owned())]);
            let upstream = UpstreamConfig::new(Target::Http { url: url.to_owned(), headers });
            assert_eq!(!check_target("a", &upstream, &|_| None).is_empty(), is_warned_of, "{url}");
        }
    }

    #[test]
    fn what_is_kept_is_looked_at_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        std::fs::write(place("pins.json"), "{").unwrap();
        std::fs::write(place("state.db"), "no database at all, but long enough for a header".repeat(40)).unwrap();
        for name in ["kept", "audit", "feedback"] {
            std::fs::write(place(name), "").unwrap();
        }
        std::fs::create_dir(place("lists")).unwrap();
        #[cfg(unix)]
        for name in ["pins.json", "state.db", "kept", "audit", "feedback", "lists"] {
            let open: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
            std::fs::set_permissions(place(name), open).unwrap();
        }
        let names = || {
            let mut names: Vec<_> =
                std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = names();
        let text = |state: &str, artifacts: &str| {
            let at = |name: &str| place(name).display().to_string();
            let found = examined(&format!(
                "{{catalog: '{}', pins: {{mode: strict, file: '{}'}}, state: '{}', artifacts: {{path: '{}'}}, \
                 audit: '{}', feedback: '{}', startup: {{list_cache: '{}'}}}}",
                at("kept"),
                at("pins.json"),
                at(state),
                at(artifacts),
                at("audit"),
                at("feedback"),
                at("lists")
            ));
            found.replace(&*folder.path().to_string_lossy(), "KEPT")
        };
        let shown = [text("state.db", "kept"), text("no/gateway.state", "no/kept.sqlite")].join("\n\n");
        insta::assert_snapshot!(shown, @r"
        Error artifacts.path: KEPT/kept is not a folder
        Error pins.file: KEPT/pins.json: EOF while parsing an object at line 1 column 1; restore the file, or remove it to accept every definition as it is now
        Error state: KEPT/state.db: file is not a database; name a new file, or one made by this program
        Warning artifacts.path: other users can read KEPT/kept
        Warning audit.file: other users can read KEPT/audit
        Warning feedback: other users can read KEPT/feedback
        Warning pins.file: other users can read KEPT/pins.json
        Warning startup.list_cache: other users can read KEPT/lists
        Warning state: other users can read KEPT/state.db

        Error artifacts.path: the folder KEPT/no does not exist
        Error pins.file: KEPT/pins.json: EOF while parsing an object at line 1 column 1; restore the file, or remove it to accept every definition as it is now
        Error state: the folder KEPT/no does not exist
        Warning audit.file: other users can read KEPT/audit
        Warning feedback: other users can read KEPT/feedback
        Warning pins.file: other users can read KEPT/pins.json
        Warning startup.list_cache: other users can read KEPT/lists
        ");
        assert_eq!(names(), before);
        drop(SqliteState::open(place("good.db")).unwrap());
        drop(SqliteStore::open(place("good.sqlite")).unwrap());
        let good = text("good.db", "good.sqlite");
        assert!(!good.contains("good"), "{good}");
    }

    #[test]
    fn a_server_of_the_state_is_asked() {
        // Nobody listens at a port that was just given back.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let found = examined(&format!("{{catalog: x, state: 'redis://u:s3cret-word@127.0.0.1:{port}/2'}}"));
        let expected = format!("Error state: redis://127.0.0.1:{port}/2: ");
        assert!(found.contains(&expected) && found.contains("start the server"), "{found}");
        assert!(!found.contains("s3cret-word"), "{found}");
    }

    #[test]
    fn diagnostics_go_to_a_file() {
        let found = examined("diagnostics: .\nupstreams:\n  a: {command: no-such-program}\n");
        assert!(found.contains("Error diagnostics: ") && found.contains(" is a folder"), "{found}");
    }

    #[test]
    fn what_needs_no_server_is_said_all_at_once() {
        let text = "
diagnostics: no/where.jsonl
upstreams:
  a: {command: no-such-program, env: {K: '${env:UNSET_A}'}}
  b: {command: sh, args: ['${env:UNSET_B}'], cwd: nowhere}
  c: {url: '${env:URL}'}
  d: {command: ./b.sh}
";
        insta::assert_snapshot!(examined(text), @r"
    Error diagnostics: the folder FOLDER/no does not exist
    Error upstreams.a: the variable `UNSET_A` is not set
    Error upstreams.b: the variable `UNSET_B` is not set
    Error upstreams.c.url: its address is not an http or https URL
    Error upstreams.d.command: `./b.sh` is not a program
    ");
        insta::assert_snapshot!(examined("mode: both"), @r"
    Error FOLDER/gateway.yaml: line 1, column 7, `mode`: the value is not one of gateway, proxy, passthrough
    ");
        insta::assert_snapshot!(examined("{}"), @r"Error FOLDER/gateway.yaml: there is nothing to serve");
    }

    #[test]
    fn what_a_built_in_server_is_made_of_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let manual = folder.path().join("manual");
        std::fs::create_dir(&manual).unwrap();
        std::fs::write(manual.join("bytes.md"), b"\xff").unwrap();
        std::fs::write(folder.path().join("note.txt"), "no database, but long enough for a header".repeat(40)).unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let found = examined(&format!(
            "upstreams: {{a: {{documents: '{}'}}, b: {{documents: '{}'}}, c: {{documents: none}}, d: {{database: '{}'}}}}",
            at("manual"),
            at("note.txt"),
            at("note.txt")
        ));
        insta::assert_snapshot!(found.replace(&folder.path().display().to_string(), "HERE"), @r"
        Error upstreams.b.documents: HERE/note.txt is not a folder
        Error upstreams.c.documents: FOLDER/none: No such file or directory (os error 2)
        Error upstreams.d.database: HERE/note.txt: file is not a database
        Warning upstreams.a.documents: 1 left out: bytes.md: `bytes.md` is not UTF-8
        ");
    }

    #[test]
    fn no_server_is_started_with_an_empty_secret() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("started");
        let server = format!("{{command: sh, args: [-c, 'touch {}'], env: {{T: '${{env:UNSET}}'}}}}", mark.display());
        for needed in ["", "startup: {mode: strict}\n"] {
            let found = examined(&format!("{needed}http: {{tokens: []}}\nupstreams: {{a: {server}}}\n"));
            assert!(found.contains("Error upstreams.a: the variable `UNSET` is not set"), "{found}");
            assert!(!mark.exists(), "it was started");
        }
        let found = examined("{http: {token: '${env:UNSET}'}, upstreams: {a: {command: 'true'}}}");
        assert!(found.contains("the variable `UNSET` is not set"), "{found}");
    }

    #[test]
    fn a_server_that_ends_at_once_is_an_error() {
        let found = examined("upstreams: {a: {command: 'false'}}");
        assert!(found.starts_with("Error upstreams.a: "), "{found}");
    }

    #[test]
    fn a_server_of_both_protocols_is_noted_where_nobody_chose() {
        let both = ServerInfo { handshakes: vec!["2025-11-25".to_owned()], ..ServerInfo::default() };
        let noted = |era, server: &ServerInfo| check_era(era, "up", server).map(|complaint| complaint.place);
        assert_eq!(noted(Era::Auto, &both).as_deref(), Some("upstreams.up.era"));
        assert_eq!((noted(Era::Modern, &both), noted(Era::Auto, &ServerInfo::default())), (None, None));
    }

    /// A tool with so many levels of two alternatives in its result schema that lead to the same place.
    fn doubling(levels: usize) -> serde_json::Value {
        let mut definitions = serde_json::Map::new();
        for level in 0..levels {
            let next = serde_json::json!({ "$ref": format!("#/$defs/d{}", level + 1) });
            definitions.insert(format!("d{level}"), serde_json::json!({"anyOf": [next, next]}));
        }
        definitions.insert(format!("d{levels}"), serde_json::json!({"type": "string"}));
        serde_json::json!({"name": "heavy", "description": "Does much", "inputSchema": {"type": "object"},
            "outputSchema": {"$defs": definitions, "$ref": "#/$defs/d0"}})
    }

    #[test]
    fn what_a_server_lists_is_looked_at() {
        let raw = |text: &str| serde_json::from_str::<Box<serde_json::value::RawValue>>(text).unwrap();
        let heavy = doubling(40).to_string();
        let tools = [
            r#"{"name":"fine","description":"Does it","inputSchema":{"type":"object"}}"#,
            r#"{"name":"a.b","description":"Does that","inputSchema":{"type":"object"}}"#,
            r#"{"name":"bad","description":"Does what","inputSchema":{"type":"objekt"}}"#,
            r##"{"name":"lost","inputSchema":{"type":"object","properties":{"x":{"$ref":"#/$defs/X"}}}}"##,
            r#"{"name":"fine","description":"Does it again","inputSchema":{"type":"object"}}"#,
            r#"{"description":"nameless"}"#,
            heavy.as_str(),
        ];
        let listing = crate::protocol::listing::Listing { tools: tools.map(raw).into(), ..Default::default() };
        let capture = Capture { server: Default::default(), listing, took: std::time::Duration::ZERO };
        let shown: Vec<String> = check_lists(Mode::Passthrough, &SchemaLimits::default(), "up", &capture)
            .into_iter()
            .map(|complaint| format!("{:?} {}: {}", complaint.severity, complaint.place, complaint.problem))
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r##"
    Error upstreams.up: tools[5]: `name` is missing or empty
    Error upstreams.up: tools[4] `fine`: its id `up:fine#00872097` is already that of up: tools[0] `fine`
    Error upstreams.up: bad: its argument schema is not valid at /type: "objekt" is not a type of JSON Schema
    Error upstreams.up: lost: in its argument schema "#/$defs/X" at /properties/x leads nowhere
    Warning upstreams.up: bad: its argument schema does not say "type": "object"
    Warning upstreams.up: heavy: checking one value against its result schema may take more than 4,096 steps
    Warning upstreams.up: lost: it has no description, so it is found only by its name
    Warning upstreams.up: a.b: some clients refuse its name: it is not 1 to 64 characters of A-Z a-z 0-9 _ -
    "##);
    }
}
