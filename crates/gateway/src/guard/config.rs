//! What a configuration says about the guards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::cache::CacheConfig;
use super::limits::RateLimits;
use super::pin::Pin;
use super::pins::{FilePins, PinConfig, PinMode, Pins};
use super::policy::{PolicyConfig, Preset};
use super::profiles::Visibility;
use super::schema::SchemaConfig;
use super::sign::{SigningConfig, SigningSection};
use super::sqlite_state::SqliteState;
use super::state::{MemoryState, Pinned, State};
use crate::common::sanitize::SanitizeConfig;
use crate::common::settings::{ExpandError, FieldError};
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
    pub(crate) state: Option<PathBuf>,
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
    pub(crate) fn look_at_pins(&self) -> Result<Vec<Pin>, StoreError> {
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
