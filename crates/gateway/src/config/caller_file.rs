//! The callers of an interface of JSON over HTTP, in a file of their own.
//!
//! The file is YAML or JSON; paths in it are relative to its folder. Tokens are given as in the section `http.tokens` of a
//! gateway's configuration.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::caller::CallerBounds;
use super::error::ConfigError;
use super::http::{HttpConfig, TokenEntry, TokenHolder, holders};
use crate::common::settings::FieldError;
use crate::common::yaml;
use contextweaver_core::files::read_text_file;

/// A file of more bytes is not read.
const MOST_BYTES: u64 = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallersFile {
    callers: Vec<CallerEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallerEntry {
    name: String,
    token: Option<String>,
    token_file: Option<PathBuf>,
    max_requests_per_minute: Option<NonZeroU32>,
    max_requests: Option<NonZeroUsize>,
    body_limit_bytes: Option<NonZeroUsize>,
    #[serde(default)]
    metrics: bool,
}

/// The callers that a file names: at least one, each with a name, a token and bounds of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallersConfig(Vec<(TokenHolder, CallerBounds)>);

impl CallersConfig {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`ConfigError`] for the first problem.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = read_text_file(path, MOST_BYTES)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Self::parse(&text, folder, &|name| std::env::var(name).ok()).map_err(|error| error.of_file(path))
    }

    /// As [`Self::load`], of a text whose paths are relative to `folder`; `environment` gives the values of `${env:NAME}`.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn parse(text: &str, folder: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let file: CallersFile =
            yaml::read(text).map_err(|reason| ConfigError::Parse { path: PathBuf::new(), reason })?;
        if file.callers.is_empty() {
            return Err(FieldError::new("callers", "must name at least one caller").into());
        }
        let (entries, bounds): (Vec<TokenEntry>, Vec<CallerBounds>) = file.callers.into_iter().map(parts).unzip();
        let holders = holders("callers", entries, folder, environment)?;
        Ok(Self(holders.into_iter().zip(bounds).collect()))
    }

    /// Lets these callers in and nobody else, each within its bounds.
    ///
    /// # Errors
    /// The body limit of a caller is larger than the one of `config`, which holds for all.
    pub fn admit(self, config: &mut HttpConfig) -> Result<(), FieldError> {
        for (number, (_, bounds)) in self.0.iter().enumerate() {
            if let Some(limit) = bounds.body_limit.filter(|limit| limit.get() > config.body_limit) {
                let reason = format!("is {limit}, more than the limit for all callers, which is {}", config.body_limit);
                return Err(FieldError::new(format!("callers[{number}].body_limit_bytes"), reason));
            }
        }
        config.callers = self.0.iter().map(|(holder, bounds)| (holder.identity.name.clone(), *bounds)).collect();
        config.tokens = self.0.into_iter().map(|(holder, _)| holder).collect();
        Ok(())
    }
}

/// Who a caller is, and what it is held to.
fn parts(entry: CallerEntry) -> (TokenEntry, CallerBounds) {
    let CallerEntry { name, token, token_file, max_requests_per_minute, max_requests, body_limit_bytes, metrics } =
        entry;
    let bounds =
        CallerBounds { max_requests_per_minute, max_requests, body_limit: body_limit_bytes, may_read_metrics: metrics };
    (TokenEntry { name, token, token_file, profile: None }, bounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<CallersConfig, ConfigError> {
        let environment = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
        CallersConfig::parse(text, Path::new("/nowhere"), &environment)
    }

    #[test]
    fn callers_have_tokens_and_bounds_that_are_not_printed() {
        let callers = parse(
            "callers:\n- {name: a, token: '${env:TOKEN}'}\n\
             - {name: b, token: t0ken, max_requests_per_minute: 60, max_requests: 4, body_limit_bytes: 9, metrics: true}\n",
        )
        .unwrap();
        let mut config = HttpConfig { body_limit: 9, ..HttpConfig::default() };
        callers.admit(&mut config).unwrap();
        let tokens: Vec<(&str, &str)> =
            config.tokens.iter().map(|held| (held.token.text(), held.identity.name.as_str())).collect();
        assert_eq!(tokens, [("s3cret", "a"), ("t0ken", "b")]);
        let own = CallerBounds {
            max_requests_per_minute: NonZeroU32::new(60),
            max_requests: NonZeroUsize::new(4),
            body_limit: NonZeroUsize::new(9),
            may_read_metrics: true,
        };
        assert_eq!(
            ["a", "b", "c"].map(|name| config.bounds_of(name)),
            [Some(CallerBounds::default()), Some(own), Some(CallerBounds::default())]
        );
        assert_eq!(HttpConfig::default().bounds_of("a"), None);
        let shown = format!("{config:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("t0ken"), "{shown}");
    }

    #[test]
    fn what_is_wrong_with_a_caller_is_named_without_its_token() {
        let cases = [
            ("", "the text ends too early"),
            ("{}", "the field `callers` is missing"),
            ("{callers: []}", "callers: must name at least one caller"),
            ("{callers: [{token: s3cret}]}", "the field `name` is missing"),
            ("{callers: [{name: a}]}", "callers[0]: `a` has neither `token` nor `token_file`"),
            ("{callers: [{name: 'a b', token: s3cret}]}", "callers[0]: the name `a b` must be"),
            ("{callers: [{name: a, token: 's3cret key'}]}", "callers[0]: must be printable ASCII"),
            ("{callers: [{name: a, token: '${env:NO}'}]}", "callers[0]: the variable `NO` is not set"),
            ("{callers: [{name: a, token: s3cret, token_file: f}]}", "callers[0]: give either"),
            ("{callers: [{name: a, token_file: none}]}", "callers[0]: /nowhere/none: "),
            ("{callers: [{name: a, token: s3cret}, {name: a, token: t}]}", "callers[1]: there is another entry"),
            (
                "{callers: [{name: a, token: s3cret}, {name: b, token: s3cret}]}",
                "callers[1]: `b` has the same token as `a`; give each its own",
            ),
            ("{callers: [{name: a, token: s3cret, profile: p}]}", "unknown field `profile`"),
            ("{callers: [{name: a, token: s3cret, max_requests: 0}]}", "the value is not "),
            ("{callers: [{name: a, token: s3cret, max_requests_per_minute: -1}]}", "the value is not "),
            ("{callers: [{name: a, token: s3cret, body_limit_bytes: 0.5}]}", "the value is not "),
            ("{callers: [{name: a, token: s3cret}], more: 1}", "unknown field `more`"),
        ];
        for (text, expected) in cases {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(expected) && !message.contains("s3cret"), "{text}: {message}");
        }
        let large = parse("{callers: [{name: a, token: s3cret}, {name: b, token: t, body_limit_bytes: 10}]}").unwrap();
        let error = large.admit(&mut HttpConfig { body_limit: 9, ..HttpConfig::default() }).unwrap_err();
        assert_eq!(
            error.to_string(),
            "callers[1].body_limit_bytes: is 10, more than the limit for all callers, which is 9"
        );
    }
}
