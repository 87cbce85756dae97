//! Connections to a server of Redis or Valkey: where it is, how long it may take, and what is tried again.
//!
//! A script runs on a connection of a bounded pool. Connecting, writing and reading each end after a second, and a
//! connection that rested and turns out to be broken is replaced once. A server that cannot be reached is not asked again
//! for a moment, so that the calls of many clients do not all wait for it. What scripts do, and what they keep, is their
//! business; the sentinel and the redirections of a cluster are not spoken here.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::{
    Client, Connection, ConnectionAddr, ConnectionLike as _, ErrorKind, FromRedisValue, IntoConnectionInfo, RedisError,
    Script,
};

use super::secret::Secret;
use super::settings::FieldError;
use super::sync::lock;
use contextweaver_context::store::StoreError;
use contextweaver_core::files::read_text_file;

/// How long connecting may take, and how long a server may take to read or answer a script.
const PATIENCE: Duration = Duration::from_secs(1);

/// Connections at a time, at most.
const MOST: usize = 64;

/// How long a server that could not be reached is left alone.
const PAUSE: Duration = Duration::from_millis(200);

/// Bytes of a prefix, at most.
const LONGEST_PREFIX: usize = 64;

/// Bytes of a file with a password, at most.
const LONGEST_PASSWORD: u64 = 4_096;

/// A server that several gateways share, and the prefix of their keys.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisConfig {
    url: Secret,
    password: Option<Secret>,
    place: String,
    prefix: String,
}

impl std::fmt::Debug for RedisConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RedisConfig").field("place", &self.place).field("prefix", &self.prefix).finish()
    }
}

impl RedisConfig {
    /// The server at `url` (`redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]`, or `rediss://` for TLS); keys begin with
    /// `prefix`. The first line of `password_file` is the password.
    ///
    /// # Errors
    /// [`FieldError`] for what cannot be used. It shows no part of the URL, which may have a password.
    pub(crate) fn new(url: &str, prefix: &str, password_file: Option<&Path>) -> Result<Self, FieldError> {
        let wrong = |reason: &str| FieldError::new("url", reason);
        const FORM: &str =
            "must be `redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]`, or the same with `rediss://` for TLS";
        if url.contains(['#', '?']) {
            return Err(wrong("has a `?` or a `#`; neither options nor unverified certificates are supported"));
        }
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        if !matches!(scheme, "redis" | "rediss" | "valkey" | "valkeys") {
            return Err(wrong(FORM));
        }
        let info = url.into_connection_info().map_err(|_| wrong(FORM))?;
        let (host, port) = match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => (host, port),
            _ => return Err(wrong(FORM)),
        };
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let place = format!("{scheme}://{host}:{port}/{}", info.redis_settings().db());
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
        if prefix.is_empty() || prefix.len() > LONGEST_PREFIX || !prefix.chars().all(is_plain) {
            let reason = format!("must be 1 to {LONGEST_PREFIX} letters, digits, `-`, `_`, `.` or `:`");
            return Err(FieldError::new("prefix", reason));
        }
        let password = password_file.map(password_of).transpose()?;
        if password.is_some() && info.redis_settings().password().is_some() {
            return Err(FieldError::new(
                "password_file",
                "is set together with a password in `url`; remove one of the \
                                                         two",
            ));
        }
        let settings = info.redis_settings();
        // Without a password nobody is logged in at all, and the server takes the connection for that of `default`.
        if settings.username().is_some() && settings.password().is_none() && password.is_none() {
            return Err(wrong("names a user without a password: write `USER:PASSWORD@`, or set `password_file`"));
        }
        Ok(Self { url: Secret::new(url), password, place, prefix: prefix.to_owned() })
    }

    /// Whether the same keys are there, whatever name and password are used.
    pub(crate) fn keeps_what(&self, other: &Self) -> bool {
        (&self.place, &self.prefix) == (&other.place, &other.prefix)
    }

    /// Where the server is, without a name or password.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The key of this name. What is in braces says that all keys of one prefix are on one node of a cluster.
    pub(crate) fn key(&self, name: &str) -> String {
        format!("{{{}}}:{name}", self.prefix)
    }

    fn client(&self) -> Result<Client, RedisError> {
        let mut info = self.url.text().into_connection_info()?;
        if let Some(password) = &self.password {
            let settings = info.redis_settings().clone().set_password(password.text());
            info = info.set_redis_settings(settings);
        }
        if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            // Whoever was first has chosen the same.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        Client::open(info)
    }
}

/// The first line of the file.
fn password_of(path: &Path) -> Result<Secret, FieldError> {
    let text = read_text_file(path, LONGEST_PASSWORD).map_err(|error| FieldError::new("password_file", error))?;
    match text.lines().next().map(str::trim) {
        Some(password) if !password.is_empty() => Ok(Secret::new(password)),
        _ => {
            let reason = format!("{}: its first line must be the password, but it is empty", path.display());
            Err(FieldError::new("password_file", reason))
        }
    }
}

#[derive(Default)]
struct Held {
    resting: Vec<Connection>,
    /// Connections that exist.
    all: usize,
    /// Why the server could not be reached, and until when it is not tried again.
    away: Option<(Instant, String)>,
}

/// Connections to one server.
pub(crate) struct Pool {
    config: RedisConfig,
    client: Client,
    held: Mutex<Held>,
    returned: Condvar,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Pool").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A connection, and whether it rested before.
struct Lent {
    connection: Connection,
    has_rested: bool,
}

impl Pool {
    /// No connections yet.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub(crate) fn new(config: &RedisConfig) -> Result<Arc<Self>, StoreError> {
        let client = config.client().map_err(|error| failed(config, &error))?;
        let (held, returned) = (Mutex::default(), Condvar::new());
        Ok(Arc::new(Self { config: config.clone(), client, held, returned }))
    }

    /// The key of this name.
    pub(crate) fn key(&self, name: &str) -> String {
        self.config.key(name)
    }

    /// The error of this server.
    pub(crate) fn failed(&self, reason: impl std::fmt::Display) -> StoreError {
        StoreError::Backend { place: self.config.place.clone(), reason: reason.to_string() }
    }

    /// Why the server could not be reached when it was last tried.
    pub(crate) fn fault(&self) -> Option<StoreError> {
        lock(&self.held).away.as_ref().map(|(_, reason)| self.failed(reason))
    }

    /// Runs a script with these keys and arguments. It is one step: no other script or command runs in between. Where
    /// the connection breaks before the answer, it may have run all the same.
    ///
    /// # Errors
    /// The server cannot be reached, refuses, or does not answer in time.
    pub(crate) fn script<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[String],
        arguments: &[&[u8]],
    ) -> Result<T, StoreError> {
        self.run(|connection| {
            let mut invocation = script.prepare_invoke();
            keys.iter().for_each(|key| {
                invocation.key(key);
            });
            arguments.iter().for_each(|argument| {
                invocation.arg(*argument);
            });
            invocation.invoke(connection)
        })
    }

    /// Runs one command.
    ///
    /// # Errors
    /// As [`Pool::script`].
    pub(crate) fn command<T: FromRedisValue>(&self, words: &[&str]) -> Result<T, StoreError> {
        self.run(|connection| {
            let mut command = redis::Cmd::new();
            words.iter().for_each(|word| {
                command.arg(*word);
            });
            command.query(connection)
        })
    }

    fn run<T>(&self, work: impl Fn(&mut Connection) -> Result<T, RedisError>) -> Result<T, StoreError> {
        let mut is_first = true;
        loop {
            let Lent { mut connection, has_rested } = self.lend()?;
            let answer = work(&mut connection);
            match &answer {
                Ok(_) => self.give_back(Some(connection)),
                // What the server said in order leaves the connection as it was.
                Err(error) if !is_broken(error) => self.give_back(Some(connection)),
                Err(error) => {
                    self.give_back(None);
                    if has_rested && is_first && !error.is_timeout() {
                        is_first = false;
                        // The server was started anew, or has closed what rested. The others are not better.
                        let mut held = lock(&self.held);
                        held.all -= held.resting.len();
                        held.resting.clear();
                        continue;
                    }
                }
            }
            return answer.map_err(|error| failed(&self.config, &error));
        }
    }

    /// A connection that rests, or a new one where there are fewer than [`MOST`].
    fn lend(&self) -> Result<Lent, StoreError> {
        let mut held = lock(&self.held);
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(connection) = held.resting.pop() {
                return Ok(Lent { connection, has_rested: true });
            }
            let now = Instant::now();
            if let Some((again, reason)) = &held.away
                && now < *again
            {
                return Err(self.failed(reason));
            }
            if held.all < MOST {
                break;
            }
            let Some(left) = until.checked_duration_since(now) else {
                return Err(self.failed(format!("all {MOST} connections are in use")));
            };
            held = self.returned.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        held.all += 1;
        drop(held);
        let opened = self.client.get_connection_with_timeout(PATIENCE).and_then(|connection| {
            connection.set_read_timeout(Some(PATIENCE))?;
            connection.set_write_timeout(Some(PATIENCE))?;
            Ok(connection)
        });
        match opened {
            Ok(connection) => {
                lock(&self.held).away = None;
                Ok(Lent { connection, has_rested: false })
            }
            Err(error) => {
                self.give_back(None);
                let error = failed(&self.config, &error);
                if let StoreError::Backend { reason, .. } = &error {
                    lock(&self.held).away = Some((Instant::now() + PAUSE, reason.clone()));
                }
                Err(error)
            }
        }
    }

    /// Takes a connection back; `None` for one that is broken.
    fn give_back(&self, connection: Option<Connection>) {
        let mut held: MutexGuard<'_, Held> = lock(&self.held);
        match connection.filter(|connection| connection.is_open()) {
            Some(connection) => {
                held.away = None;
                held.resting.push(connection);
            }
            None => held.all = held.all.saturating_sub(1),
        }
        drop(held);
        self.returned.notify_one();
    }
}

/// Whether a connection cannot be used after this error: what comes next on it may be an answer to something else, or the
/// server is one that must not be written to.
fn is_broken(error: &RedisError) -> bool {
    let refuses = matches!(error.code(), Some("READONLY" | "MASTERDOWN" | "LOADING"));
    refuses || error.is_io_error() || !matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
}

/// The error in our words, with what to do where that is known.
fn failed(config: &RedisConfig, error: &RedisError) -> StoreError {
    let remedy = match error.code() {
        Some("NOAUTH" | "WRONGPASS") => "; check the name and password of `state`",
        Some("NOPERM") => {
            "; the user of `state` is not allowed to do this: grant it all commands on the keys of the \
                           prefix"
        }
        Some("MOVED" | "ASK" | "CROSSSLOT") => {
            "; name the primary node of the cluster that holds the keys of the prefix"
        }
        Some("READONLY") => "; name the primary, not a replica of it",
        Some("LOADING") => "; it has just been started: try again in a moment",
        Some("OOM") => "; give the server more memory",
        _ if error.is_connection_refusal() => "; start the server, or check `state.url`",
        _ => "",
    };
    let reason =
        if error.is_timeout() { format!("no answer within {} s", PATIENCE.as_secs_f64()) } else { error.to_string() };
    StoreError::Backend { place: config.place.clone(), reason: format!("{reason}{remedy}") }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_is_no_server_is_refused_without_its_password() {
        let cases = [
            ("", "p", "url: must be"),
            ("http://h", "p", "url: must be"),
            ("redis://", "p", "url: must be"),
            ("redis://u:s3cret@h:x/0", "p", "url: must be"),
            ("redis://u:s3cret@h/zero", "p", "url: must be"),
            ("redis://u:s3cret@h/0?protocol=resp3", "p", "url: has a `?`"),
            ("rediss://u:s3cret@h/#insecure", "p", "url: has a `?` or a `#`"),
            ("unix:///tmp/s", "p", "url: must be"),
            ("redis://u:s3cret@h", "", "prefix: must be"),
            ("redis://u:s3cret@h", "a{b}", "prefix: must be"),
            ("redis://gateway@h", "p", "url: names a user without a password"),
        ];
        for (url, prefix, expected) in cases {
            let message = RedisConfig::new(url, prefix, None).unwrap_err().to_string();
            assert!(message.contains(expected) && !message.contains("s3cret"), "{url}: {message}");
        }
        let config = RedisConfig::new("rediss://u:s3cret@h/3", "team:a", None).unwrap();
        assert_eq!(config.place(), "rediss://h:6379/3");
        assert_eq!(config.key("nonces"), "{team:a}:nonces");
        let keeps_what = |url, prefix| config.keeps_what(&RedisConfig::new(url, prefix, None).unwrap());
        assert!(keeps_what("rediss://v:another@h/3", "team:a"), "a password that was rotated");
        assert!(!keeps_what("rediss://u:s3cret@h/2", "team:a") && !keeps_what("rediss://u:s3cret@h/3", "team:b"));
        assert!(!format!("{config:?}").contains("s3cret"));
    }

    #[test]
    fn a_password_may_stand_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        std::fs::File::create(&path).unwrap().write_all(b"s3cret\nmore").unwrap();
        let config = RedisConfig::new("redis://h", "p", Some(&path)).unwrap();
        assert_eq!(config.password.as_ref().map(Secret::text), Some("s3cret"));
        assert!(!format!("{config:?}").contains("s3cret"));
        assert!(RedisConfig::new("redis://gateway@h", "p", Some(&path)).is_ok());
        assert!(RedisConfig::new("redis://:x@h", "p", Some(&path)).unwrap_err().to_string().contains("remove one"));
        std::fs::write(&path, "").unwrap();
        assert!(RedisConfig::new("redis://h", "p", Some(&path)).unwrap_err().to_string().contains("is empty"));
    }

    #[test]
    fn a_server_that_is_away_costs_a_bounded_time() {
        // Nobody takes what comes in here: the system alone completes the connection.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let place = silent.local_addr().unwrap();
        let pool = Pool::new(&RedisConfig::new(&format!("redis://{place}"), "p", None).unwrap()).unwrap();
        let start = Instant::now();
        let message = pool.command::<String>(&["PING"]).unwrap_err().to_string();
        assert!(message.contains("no answer within 1 s"), "{message}");
        // At once: it is left alone for a moment.
        assert!(pool.command::<String>(&["PING"]).is_err());
        assert!(start.elapsed() < PATIENCE * 3, "{:?}", start.elapsed());
        drop(silent);
        std::thread::sleep(PAUSE);
        let message = pool.command::<String>(&["PING"]).unwrap_err().to_string();
        assert!(
            message.starts_with(&format!("redis://{place}/0: ")) && message.contains("start the server"),
            "{message}"
        );
        assert_eq!(lock(&pool.held).all, 0, "what failed takes no place");
        assert_eq!(pool.fault().unwrap().to_string(), message);
    }
}
