//! What a configuration says about the guards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Deserializer};

use super::cache::CacheConfig;
use super::limits::RateLimits;
use super::pin::Pin;
use super::pins::{FilePins, PinConfig, PinMode, Pins};
use super::policy::{PolicyConfig, Preset};
use super::profiles::Visibility;
use super::redis_state::RedisState;
use super::schema::SchemaConfig;
use super::sign::{SigningConfig, SigningSection};
use super::sqlite_state::SqliteState;
use super::state::{MemoryState, Pinned, State};
use crate::common::redis::RedisConfig;
use crate::common::sanitize::SanitizeConfig;
use crate::common::settings::{ExpandError, FieldError, Scalar, scalar_or_members};
use contextweaver_context::store::StoreError;

/// The sections of a configuration file that are about guards, before they are checked.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GuardSections {
    pub(crate) policy: PolicyConfig,
    pub(crate) policy_preset: Option<Preset>,
    pub(crate) visibility_profiles: BTreeMap<String, Visibility>,
    pub(crate) visibility_profile: Option<String>,
    pub(crate) rate_limits: RateLimits,
    pub(crate) schemas: SchemaConfig,
    pub(crate) sanitize: SanitizeConfig,
    pub(crate) cache: CacheConfig,
    pub(crate) pins: PinConfig,
    pub(crate) signing: Option<SigningSection>,
    pub(crate) state: Option<StateEntry>,
}

/// The field `state`: a file, or a server.
#[derive(Debug, Clone)]
pub(crate) enum StateEntry {
    /// A file, or the URL of a server.
    Text(String),
    /// A server.
    Server(StateSection),
}

/// A server that keeps the state, as a file says it.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StateSection {
    url: String,
    #[serde(default = "default_prefix")]
    prefix: String,
    password_file: Option<PathBuf>,
}

impl std::fmt::Debug for StateSection {
    /// The URL may have a password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("StateSection").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

fn default_prefix() -> String {
    "contextweaver".to_owned()
}

impl<'de> Deserialize<'de> for StateEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let place = |scalar: Scalar<'_>| match scalar {
            Scalar::Text(text) => Some(Self::Text(text.to_owned())),
            Scalar::Switch(_) => None,
        };
        scalar_or_members(deserializer, "a file, or a server with its `url`", place, Self::Server)
    }
}

impl StateEntry {
    /// The place, checked. Paths are relative to `folder`; `expand` replaces variables in a URL.
    fn checked(
        self,
        folder: &Path,
        expand: &dyn Fn(&str) -> Result<String, ExpandError>,
    ) -> Result<StatePlace, FieldError> {
        let is_url = |text: &str| {
            ["redis", "rediss", "valkey", "valkeys"]
                .iter()
                .any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| rest.starts_with("://")))
        };
        let section = match self {
            Self::Text(text) if is_url(&text) => {
                StateSection { url: text, prefix: default_prefix(), password_file: None }
            }
            Self::Text(path) => return Ok(StatePlace::File(folder.join(path))),
            Self::Server(section) => section,
        };
        let url = expand(&section.url).map_err(|error| FieldError::new("state.url", error))?;
        let password_file = section.password_file.map(|path| folder.join(path));
        let config = RedisConfig::new(&url, &section.prefix, password_file.as_deref());
        config.map(StatePlace::Server).map_err(|error| error.under("state"))
    }
}

/// Where what replicas share is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatePlace {
    /// An SQLite file, for processes of one machine.
    File(PathBuf),
    /// A server of Redis or Valkey.
    Server(RedisConfig),
}

impl StatePlace {
    /// Whether the same things are kept there, whatever name and password are used.
    fn keeps_what(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(one), Self::File(other)) => one == other,
            (Self::Server(one), Self::Server(other)) => one.keeps_what(other),
            _ => false,
        }
    }
}

/// The configuration of the guards, checked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GuardConfig {
    /// The rules that say who may call what.
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
    /// What replicas share; the memory of the process when `None`.
    pub state: Option<StatePlace>,
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

impl GuardSections {
    /// Whether anything here could refuse a call, which a passthrough never does.
    pub(crate) fn refuse_calls(&self) -> bool {
        let defaults = Self::default();
        self.policy != defaults.policy
            || self.policy_preset.is_some()
            || self.visibility_profile.is_some()
            || !self.visibility_profiles.is_empty()
            || self.rate_limits != defaults.rate_limits
            || self.pins.mode != PinMode::Off
            || self.signing.is_some()
    }

    /// The checked configuration. Paths are relative to `folder`; `expand` replaces variables.
    ///
    /// # Errors
    /// [`FieldError`] for the first field that cannot be used.
    pub(crate) fn checked(
        mut self,
        folder: &Path,
        expand: &dyn Fn(&str) -> Result<String, ExpandError>,
    ) -> Result<GuardConfig, FieldError> {
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
            let reason = format!("there is no `{name}` under `visibility_profiles`");
            return Err(FieldError::new("visibility_profile", reason));
        }
        self.cache.check().map_err(|error| error.under("cache"))?;
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
            signing: self.signing.map(|signing| signing.checked(expand)).transpose()?,
            state: self.state.map(|entry| entry.checked(folder, expand)).transpose()?,
            access: Access::Full,
        })
    }
}

impl GuardConfig {
    /// Keeps the places in which the guards of `before` remember things: in others, used nonces would count as new, and
    /// what was withheld as approved. The fields that are others are named.
    pub(crate) fn stay_where(&mut self, before: &Self) -> Vec<&'static str> {
        let is_there = match (&self.state, &before.state) {
            (Some(state), Some(before)) => state.keeps_what(before),
            (state, before) => state.is_some() == before.is_some(),
        };
        let mut stays = Vec::new();
        if self.pins.file != before.pins.file {
            stays.push("pins.file");
            self.pins.file.clone_from(&before.pins.file);
        }
        if !is_there {
            stays.push("state");
            self.state.clone_from(&before.state);
        }
        stays
    }

    /// The file of the state; `None` where it is in memory or on a server.
    pub(crate) fn state_file(&self) -> Option<&Path> {
        match &self.state {
            Some(StatePlace::File(path)) => Some(path),
            _ => None,
        }
    }

    /// The pins that are kept in a file or on a server, which are not changed.
    ///
    /// # Errors
    /// They cannot be read.
    pub(crate) fn look_at_pins(&self) -> Result<Vec<Pin>, StoreError> {
        match (&self.pins.file, &self.state) {
            (Some(file), _) => FilePins::new(file).pins(),
            (None, Some(StatePlace::File(path))) => SqliteState::look(path),
            (None, Some(StatePlace::Server(server))) => Ok(RedisState::look(server)?.pins),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// The state that it names.
    ///
    /// # Errors
    /// The file or server cannot be used.
    pub fn open_state(&self) -> Result<Arc<dyn State>, StoreError> {
        Ok(match &self.state {
            Some(StatePlace::File(path)) => Arc::new(SqliteState::open(path)?),
            Some(StatePlace::Server(server)) => Arc::new(RedisState::open(server)?),
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
