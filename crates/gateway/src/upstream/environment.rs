//! What a child inherits of the gateway's environment.
//!
//! The gateway's own environment holds the tokens of all upstreams; a child gets none of them unless its own entry
//! says so. What is passed on is what programs need to run at all: those that the official SDKs pass on (`HOME`,
//! `LOGNAME`, `PATH`, `SHELL`, `TERM`, `USER`), language and time zone, folders, and the way into the network (proxies
//! and certificates). The address of a proxy may hold a password: without it nothing is reached behind that proxy.

use std::collections::BTreeMap;
use std::ffi::OsString;

use serde::{Deserialize, Serialize};

/// Names of variables that every child gets.
const SAFE: [&str; 25] = [
    "ALL_PROXY",
    "CURL_CA_BUNDLE",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "PATH",
    "REQUESTS_CA_BUNDLE",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// How the names of further ones begin.
const SAFE_PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// What a child inherits of the gateway's environment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum Inherit {
    /// What programs need to run at all.
    #[default]
    Safe,
    /// The same, and these.
    Named(Vec<String>),
    /// The whole environment of the gateway.
    All,
}

/// As a file says it: `safe`, `all`, or names.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Word(String),
    Names(Vec<String>),
}

impl TryFrom<Written> for Inherit {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        match written {
            Written::Word(word) if word == "safe" => Ok(Self::Safe),
            Written::Word(word) if word == "all" => Ok(Self::All),
            Written::Word(_) => Err("`inherit_env` is `safe`, `all`, or a list of names"),
            Written::Names(names) => Ok(Self::Named(names)),
        }
    }
}

impl From<Inherit> for Written {
    fn from(inherit: Inherit) -> Self {
        match inherit {
            Inherit::Safe => Self::Word("safe".to_owned()),
            Inherit::All => Self::Word("all".to_owned()),
            Inherit::Named(names) => Self::Names(names),
        }
    }
}

impl Inherit {
    /// The environment of a child: what it inherits of `own`, and `env`, which wins.
    pub(super) fn environment(
        &self,
        own: impl IntoIterator<Item = (OsString, OsString)>,
        env: &BTreeMap<String, String>,
    ) -> BTreeMap<OsString, OsString> {
        let inherited =
            own.into_iter().filter(|(name, _)| name.to_str().map_or(*self == Self::All, |name| self.has(name)));
        inherited.chain(env.iter().map(|(name, value)| (name.into(), value.into()))).collect()
    }

    fn has(&self, name: &str) -> bool {
        let is_safe = || SAFE.contains(&name) || SAFE_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        match self {
            Self::All => true,
            Self::Safe => is_safe(),
            Self::Named(names) => is_safe() || names.iter().any(|named| named == name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_for_others_stay_with_the_gateway() {
        let own = ["PATH", "HOME", "LC_ALL", "XDG_RUNTIME_DIR", "https_proxy", "GITHUB_TOKEN", "PATHOLOGY", "K"];
        let env = BTreeMap::from([("K".to_owned(), "of the entry".to_owned())]);
        let cases = [
            ("\"safe\"", "HOME K=of the entry LC_ALL PATH XDG_RUNTIME_DIR https_proxy"),
            ("[\"GITHUB_TOKEN\"]", "GITHUB_TOKEN HOME K=of the entry LC_ALL PATH XDG_RUNTIME_DIR https_proxy"),
            ("\"all\"", "GITHUB_TOKEN HOME K=of the entry LC_ALL PATH PATHOLOGY XDG_RUNTIME_DIR https_proxy"),
        ];
        for (written, expected) in cases {
            let inherit: Inherit = serde_json::from_str(written).unwrap();
            assert_eq!(serde_json::to_string(&inherit).unwrap(), written);
            let own = own.map(|name| (name.into(), OsString::new()));
            let given = inherit.environment(own, &env).into_iter().map(|(name, value)| {
                let (name, value) = (name.into_string().unwrap(), value.into_string().unwrap());
                if value.is_empty() { name } else { format!("{name}={value}") }
            });
            assert_eq!(given.collect::<Vec<_>>().join(" "), expected, "{written}");
        }
        assert!(serde_json::from_str::<Inherit>("\"most\"").is_err());
    }
}
