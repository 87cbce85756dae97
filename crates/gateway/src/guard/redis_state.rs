//! The shared state on a server of Redis or Valkey, for replicas on several machines.
//!
//! Every change is one script, which the server runs as one step. The rules are those of the other backends; what a
//! caller, a nonce or a session is named stands there only as a digest or as the random text that it is. Everything is
//! bounded in number or expires. All keys of one prefix are on one node, so that a script may read all of them.
//!
//! The server is trusted with what it keeps, and it must not forget: what it has lost when it comes back is counted as
//! never used. It should write to its disk before it answers (`appendonly yes`, `appendfsync always`) and refuse rather
//! than evict (`maxmemory-policy noeviction`); [`RedisState::look`] says where it does not, or where that cannot be told.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use redis::Script;

use super::pin::Pin;
use super::sign::unique;
use super::state::{
    Exceeded, Freshness, IDLE, MINUTE, MOST_SUBJECTS, NonceKind, Nonces, Opened, Pinned, Quotas, Results,
    SessionBounds, SharedSessions, Stamp, State, Take, Want, crowded,
};
use crate::common::redis::{Pool, RedisConfig};
use contextweaver_context::store::StoreError;
use contextweaver_core::text::sha256_hex;

/// The form of the keys that this version reads and writes.
const SCHEMA: &str = "1";

/// How long what is only spared work is kept after its last use.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Tries to change what others change at the same time.
const TRIES: usize = 32;

/// KEYS: subjects by their last call, totals, then the calls within a minute of each subject. ARGV: now, a minute, the time
/// that subjects are remembered, the most subjects, whether it is used; then for each its name, the calls a minute and in
/// all, 0 for no limit. Gives `{'ok'}`, `{'crowded'}`, or `{'over', number, wait}` with -1 for no end.
static TAKE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
local now, minute, idle, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local wants = #KEYS - 2
for i = 1, wants do
  local calls, at = KEYS[2 + i], 5 + (i - 1) * 3
  local perMinute, inAll = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  -- A clock that went back: what is later than now counts as now.
  local ahead = 0
  while tonumber(redis.call('LINDEX', calls, -1) or '0') > now do
    redis.call('RPOP', calls)
    ahead = ahead + 1
  end
  for _ = 1, ahead do redis.call('RPUSH', calls, ARGV[1]) end
  while true do
    local first = redis.call('LINDEX', calls, 0)
    if not first or tonumber(first) > now - minute then break end
    redis.call('LPOP', calls)
  end
  if ahead > 0 then redis.call('PEXPIRE', calls, 2 * minute) end
  local total = tonumber(redis.call('HGET', KEYS[2], ARGV[at + 1]) or '0')
  local last = redis.call('ZSCORE', KEYS[1], ARGV[at + 1])
  if last and tonumber(last) < now - idle then total = 0 end
  if inAll > 0 and total >= inAll then return {'over', i, -1} end
  if perMinute > 0 then
    local behind = redis.call('LLEN', calls) - perMinute
    if behind >= 0 then
      local first = tonumber(redis.call('LINDEX', calls, behind))
      return {'over', i, math.max(first + minute - now, 0)}
    end
  end
end
if ARGV[5] == '0' then return {'ok'} end
while true do
  local old = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.0f', now - idle), 'LIMIT', 0, 1000)
  if #old == 0 then break end
  redis.call('ZREM', KEYS[1], unpack(old))
  redis.call('HDEL', KEYS[2], unpack(old))
end
local fresh = {}
local count = redis.call('ZCARD', KEYS[1])
for i = 1, wants do
  local name = ARGV[5 + (i - 1) * 3 + 1]
  if not fresh[name] and not redis.call('ZSCORE', KEYS[1], name) then
    fresh[name] = true
    count = count + 1
  end
end
if next(fresh) and count > most then return {'crowded'} end
for i = 1, wants do
  local calls, at = KEYS[2 + i], 5 + (i - 1) * 3
  local name = ARGV[at + 1]
  redis.call('HINCRBY', KEYS[2], name, 1)
  redis.call('ZADD', KEYS[1], ARGV[1], name)
  if tonumber(ARGV[at + 2]) > 0 then
    redis.call('RPUSH', calls, ARGV[1])
    redis.call('PEXPIRE', calls, 2 * minute)
  end
end
redis.call('PEXPIRE', KEYS[1], 2 * idle)
redis.call('PEXPIRE', KEYS[2], 2 * idle)
return {'ok'}",
    )
});

/// KEYS: nonces by moment, the latest moment that was forgotten. ARGV: the oldest moment that is remembered, that of the
/// nonce, the most nonces, the nonce.
static REMEMBER: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
local latest = redis.call('ZREVRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
local forgotten = tonumber(redis.call('GET', KEYS[2]) or '0')
if latest[2] then
  if tonumber(latest[2]) > forgotten then
    forgotten = tonumber(latest[2])
    redis.call('SET', KEYS[2], string.format('%.0f', forgotten))
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[1])
end
if tonumber(ARGV[2]) <= forgotten or redis.call('ZSCORE', KEYS[1], ARGV[4]) then return 'seen' end
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 'full' end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[4])
return 'fresh'",
    )
});

/// KEYS: results, their expiries, their uses. ARGV: now, the key, how long everything is kept.
static CACHED: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
while true do
  local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1], 'LIMIT', 0, 1000)
  if #old == 0 then break end
  redis.call('HDEL', KEYS[1], unpack(old))
  redis.call('ZREM', KEYS[2], unpack(old))
  redis.call('ZREM', KEYS[3], unpack(old))
end
local result = redis.call('HGET', KEYS[1], ARGV[2])
if result then
  local last = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')
  redis.call('ZADD', KEYS[3], tonumber(last[2] or '0') + 1, ARGV[2])
  for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], ARGV[3]) end
end
return result",
    )
});

/// KEYS: results, their expiries, their uses. ARGV: the key, the result, until, the most results, how long everything is
/// kept.
static CACHE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
local last = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
redis.call('ZADD', KEYS[3], tonumber(last[2] or '0') + 1, ARGV[1])
while true do
  local over = redis.call('ZCARD', KEYS[3]) - tonumber(ARGV[4])
  if over <= 0 then break end
  local old = redis.call('ZRANGE', KEYS[3], 0, math.min(over, 1000) - 1)
  redis.call('HDEL', KEYS[1], unpack(old))
  redis.call('ZREM', KEYS[2], unpack(old))
  redis.call('ZREM', KEYS[3], unpack(old))
end
for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], ARGV[5]) end
return 1",
    )
});

/// KEYS: pins, their stamp. ARGV: the stamp that they must have, the next one, how many are removed, the names of those,
/// then names and texts by turns. Gives whether they had that stamp.
static CHANGE_PINS: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
if (redis.call('GET', KEYS[2]) or '') ~= ARGV[1] then return 0 end
local removed = tonumber(ARGV[3])
for i = 4, 3 + removed do redis.call('HDEL', KEYS[1], ARGV[i]) end
for i = 4 + removed, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('SET', KEYS[2], ARGV[2])
return 1",
    )
});

/// KEYS: pins, their stamp. Gives the stamp, and all texts.
static READ_PINS: LazyLock<Script> =
    LazyLock::new(|| Script::new("return {redis.call('GET', KEYS[2]) or '', redis.call('HVALS', KEYS[1])}"));

/// KEYS: records, sessions by their last use, those of the owner. ARGV: now, the time that they may rest, the most, the
/// most of one, the id, the record.
static OPEN_SESSION: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
local idle = tonumber(ARGV[2])
local before = string.format('%.0f', tonumber(ARGV[1]) - idle)
while true do
  local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', before, 'LIMIT', 0, 1000)
  if #old == 0 then break end
  redis.call('HDEL', KEYS[1], unpack(old))
  redis.call('ZREM', KEYS[2], unpack(old))
end
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', before)
if not redis.call('ZSCORE', KEYS[2], ARGV[5]) then
  local function isFull()
    return redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[4]) or redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[3])
  end
  while isFull() do
    local longest = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
    if not longest then return 'full' end
    redis.call('HDEL', KEYS[1], longest)
    redis.call('ZREM', KEYS[2], longest)
    redis.call('ZREM', KEYS[3], longest)
  end
end
redis.call('HSET', KEYS[1], ARGV[5], ARGV[6])
redis.call('ZADD', KEYS[2], ARGV[1], ARGV[5])
redis.call('ZADD', KEYS[3], ARGV[1], ARGV[5])
for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], 2 * idle) end
return 'open'",
    )
});

/// KEYS: records, sessions by their last use, those of the owner. ARGV: now, the time that they may rest, the id.
static SESSION: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
local idle = tonumber(ARGV[2])
local used = redis.call('ZSCORE', KEYS[3], ARGV[3])
if not used or tonumber(used) <= tonumber(ARGV[1]) - idle then return false end
local record = redis.call('HGET', KEYS[1], ARGV[3])
if not record then
  redis.call('ZREM', KEYS[3], ARGV[3])
  return false
end
redis.call('ZADD', KEYS[2], ARGV[1], ARGV[3])
redis.call('ZADD', KEYS[3], ARGV[1], ARGV[3])
for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], 2 * idle) end
return record",
    )
});

/// KEYS: records, those of the owner. ARGV: the id, the record that there must be, the next one. Gives whether it is that
/// now, and the record; an empty one where the session is closed.
static CHANGE_SESSION: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
local record = redis.call('ZSCORE', KEYS[2], ARGV[1]) and redis.call('HGET', KEYS[1], ARGV[1])
if not record then return {0, ''} end
if record ~= ARGV[2] then return {0, record} end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return {1, ARGV[3]}",
    )
});

/// KEYS: records, sessions by their last use, those of the owner. ARGV: the id.
static CLOSE_SESSION: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
if redis.call('ZREM', KEYS[3], ARGV[1]) == 1 then
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
end
return 1",
    )
});

/// KEYS: where an answer is waited for. ARGV: the answer. Gives whether it is the first.
static LEAVE_ANSWER: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
if redis.call('GET', KEYS[1]) ~= '' then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', math.max(redis.call('PTTL', KEYS[1]), 1))
return 1",
    )
});

/// KEYS: where an answer is waited for.
static TAKE_ANSWER: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
local answer = redis.call('GET', KEYS[1])
if not answer or answer == '' then return false end
redis.call('DEL', KEYS[1])
return answer",
    )
});

/// KEYS: the key. ARGV: the one that is taken where there is none.
static KEY: LazyLock<Script> =
    LazyLock::new(|| Script::new("redis.call('SETNX', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])"));

/// The state on a server that several processes reach.
#[derive(Debug)]
pub struct RedisState(Arc<Pool>);

/// What was found on a server, without a change.
#[derive(Debug)]
pub struct Found {
    /// The pins.
    pub pins: Vec<Pin>,
    /// What of its configuration could make it forget, each with what to do.
    pub worries: Vec<(String, &'static str)>,
}

/// What could make a server forget, each with what to do: of two sections of its `INFO`, empty where it does not give them,
/// and of its `appendfsync`, where it says that.
fn worries(persistence: &str, fsync: Option<&str>, memory: &str) -> Vec<(String, &'static str)> {
    let value = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned));
        line.map(|value| value.trim().to_owned())
    };
    let durable = match (value(persistence, "aof_enabled").as_deref(), fsync) {
        (None, _) => Some((
            "it cannot be told whether the server keeps its data: it does not answer `INFO persistence` to this user"
                .to_owned(),
            "permit `INFO` and `CONFIG GET`, or see to `appendonly yes`, `appendfsync always` and \
             `maxmemory-policy noeviction` there",
        )),
        (Some("0"), _) => Some((
            "the server does not write its data to disk: after a crash, used nonces count as new".to_owned(),
            "set `appendonly yes` and `appendfsync always` there",
        )),
        (Some(_), None) => Some((
            "it cannot be told whether the server writes to disk before it answers: it does not answer `CONFIG GET` to \
             this user"
                .to_owned(),
            "permit `CONFIG GET`, or see to `appendfsync always` there",
        )),
        (Some(_), Some("always")) => None,
        (Some(_), Some(policy)) => Some((
            format!(
                "the server writes to disk only after it has answered (`{policy}`): after a crash, the latest nonces \
                 count as new"
            ),
            "set `appendfsync always` there",
        )),
    };
    let policy = value(memory, "maxmemory_policy").filter(|policy| policy != "noeviction");
    let evicts = policy.map(|policy| {
        let problem = format!("the server drops data when its memory is full (`{policy}`)");
        (problem, "set `maxmemory-policy noeviction` there")
    });
    durable.into_iter().chain(evicts).collect()
}

impl RedisState {
    /// Connects to the server.
    ///
    /// # Errors
    /// It cannot be reached, does not let us in, or another version has written there.
    pub fn open(config: &RedisConfig) -> Result<Self, StoreError> {
        let state = Self(Pool::new(config)?);
        let found: Vec<u8> = state.0.script(&KEY, &[state.key("schema")], &[SCHEMA.as_bytes()])?;
        state.check(&found)?;
        Ok(state)
    }

    /// What is on the server; nothing is written.
    ///
    /// # Errors
    /// As [`RedisState::open`].
    pub fn look(config: &RedisConfig) -> Result<Found, StoreError> {
        let state = Self(Pool::new(config)?);
        let schema: Option<Vec<u8>> = state.0.command(&["GET", &state.key("schema")])?;
        if let Some(schema) = schema {
            state.check(&schema)?;
        }
        Ok(Found { pins: state.pins()?, worries: state.worries() })
    }

    fn check(&self, schema: &[u8]) -> Result<(), StoreError> {
        if schema == SCHEMA.as_bytes() {
            return Ok(());
        }
        let schema = String::from_utf8_lossy(schema);
        let reason = format!("the data under this prefix has schema {schema}; this version reads schema {SCHEMA}");
        Err(self.0.failed(format!("{reason}: choose another `state.prefix`")))
    }

    /// What the server says about itself that could make it forget, or that it does not say.
    fn worries(&self) -> Vec<(String, &'static str)> {
        let told = |section: &str| self.0.command::<String>(&["INFO", section]).unwrap_or_default();
        let fsync: Vec<String> = self.0.command(&["CONFIG", "GET", "appendfsync"]).unwrap_or_default();
        worries(&told("persistence"), fsync.get(1).map(String::as_str), &told("memory"))
    }

    fn key(&self, name: &str) -> String {
        self.0.key(name)
    }

    fn keys<const N: usize>(&self, names: [&str; N]) -> [String; N] {
        names.map(|name| self.key(name))
    }

    /// The keys of records and sessions, with that of one owner's.
    fn session_keys(&self, owner: &str) -> [String; 3] {
        let own = format!("sessions:of:{}", sha256_hex(owner.as_bytes()));
        self.keys(["sessions", "sessions:used", &own])
    }

    fn answer_key(&self, session: &str, number: u64) -> String {
        self.key(&format!("answer:{}", sha256_hex(format!("{session} {number}").as_bytes())))
    }

    /// The stamp, and the pins by server and name.
    fn read_pins(&self) -> Result<(String, Vec<Pin>), StoreError> {
        let (stamp, texts): (String, Vec<String>) =
            self.0.script(&READ_PINS, &self.keys(["pins", "pins:stamp"]), &[])?;
        let mut pins = BTreeMap::new();
        for text in texts {
            let pin: Pin = serde_json::from_str(&text).map_err(|error| self.0.failed(format!("a pin: {error}")))?;
            pins.insert((pin.server.clone(), pin.name.clone()), pin);
        }
        Ok((stamp, pins.into_values().collect()))
    }

    /// Removes and writes pins, where they still have this stamp; the next stamp, or `None` where they had another.
    fn swap_pins(&self, stamp: &str, removed: &[&Pin], written: &[Pin]) -> Result<Option<Stamp>, StoreError> {
        let field = |pin: &Pin| serde_json::json!([pin.server, pin.name]).to_string();
        let next = unique();
        let mut arguments = vec![stamp.to_owned(), next.clone(), removed.len().to_string()];
        arguments.extend(removed.iter().map(|pin| field(pin)));
        for pin in written {
            arguments.extend([field(pin), serde_json::to_string(pin).unwrap_or_default()]);
        }
        let arguments: Vec<&[u8]> = arguments.iter().map(String::as_bytes).collect();
        let swapped: i64 = self.0.script(&CHANGE_PINS, &self.keys(["pins", "pins:stamp"]), &arguments)?;
        Ok((swapped == 1).then_some(Stamp(next)))
    }

    fn contended(&self, what: &str) -> StoreError {
        self.0.failed(format!("others changed {what} {TRIES} times in the meantime; try again"))
    }
}

/// Times are kept in milliseconds since 1970.
fn millis(time: Duration) -> String {
    time.as_millis().to_string()
}

impl Quotas for RedisState {
    fn take(&self, wants: &[Want], now: Duration, take: Take) -> Result<Result<(), Exceeded>, StoreError> {
        if wants.is_empty() {
            return Ok(Ok(()));
        }
        let mut keys = self.keys(["quotas", "quotas:totals"]).to_vec();
        let used = if take == Take::Use { "1" } else { "0" };
        let mut arguments = vec![millis(now), millis(MINUTE), millis(IDLE), MOST_SUBJECTS.to_string(), used.to_owned()];
        for Want { subject, scope, quota } in wants {
            let name = sha256_hex(serde_json::json!([subject, scope]).to_string().as_bytes());
            keys.push(self.key(&format!("quotas:{name}")));
            arguments.extend([
                name,
                quota.max_calls_per_minute.map_or(0, |most| most.get()).to_string(),
                quota.max_calls_per_session.map_or(0, |most| most.get()).to_string(),
            ]);
        }
        let arguments: Vec<&[u8]> = arguments.iter().map(String::as_bytes).collect();
        let answer: Vec<redis::Value> = self.0.script(&TAKE, &keys, &arguments)?;
        let text = |value: &redis::Value| redis::from_redis_value_ref::<String>(value).unwrap_or_default();
        let number = |value: &redis::Value| redis::from_redis_value_ref::<i64>(value).ok();
        match (answer.first().map(text).as_deref(), answer.get(1).and_then(number), answer.get(2).and_then(number)) {
            (Some("ok"), ..) => Ok(Ok(())),
            (Some("crowded"), ..) => Ok(Err(crowded())),
            (Some("over"), Some(which), Some(wait)) => {
                let want = usize::try_from(which - 1).ok().and_then(|which| wants.get(which));
                let scope = want.map(|want| want.scope.clone()).unwrap_or_default();
                Ok(Err(Exceeded { scope, retry_after: u64::try_from(wait).ok().map(Duration::from_millis) }))
            }
            _ => Err(self.0.failed("the answer about quotas has an unknown form")),
        }
    }
}

impl Nonces for RedisState {
    fn remember(
        &self,
        kind: NonceKind,
        nonce: &str,
        oldest: Duration,
        at: Duration,
        most: usize,
    ) -> Result<Freshness, StoreError> {
        let arguments = [millis(oldest), millis(at), most.to_string(), sha256_hex(nonce.as_bytes())];
        let arguments = arguments.each_ref().map(String::as_bytes);
        let forgotten = format!("{}:forgotten", kind.name());
        let answer: String = self.0.script(&REMEMBER, &self.keys([kind.name(), &forgotten]), &arguments)?;
        match answer.as_str() {
            "fresh" => Ok(Freshness::Fresh),
            "seen" => Ok(Freshness::Seen),
            "full" => Ok(Freshness::Full),
            _ => Err(self.0.failed("the answer about a nonce has an unknown form")),
        }
    }
}

/// The names of the keys of results.
const RESULTS: [&str; 3] = ["results", "results:until", "results:used"];

impl Results for RedisState {
    fn cached(&self, key: &str, now: Duration) -> Result<Option<Bytes>, StoreError> {
        let (now, kept) = (millis(now), millis(KEPT));
        let arguments = [now.as_bytes(), key.as_bytes(), kept.as_bytes()];
        let result: Option<Vec<u8>> = self.0.script(&CACHED, &self.keys(RESULTS), &arguments)?;
        Ok(result.map(Bytes::from))
    }

    fn cache(&self, key: &str, result: &Bytes, until: Duration, most: usize) -> Result<(), StoreError> {
        let (until, most, kept) = (millis(until), most.to_string(), millis(KEPT));
        let arguments = [key.as_bytes(), &result[..], until.as_bytes(), most.as_bytes(), kept.as_bytes()];
        self.0.script::<i64>(&CACHE, &self.keys(RESULTS), &arguments).map(drop)
    }

    fn clear_cache(&self) -> Result<(), StoreError> {
        let [results, until, used] = self.keys(RESULTS);
        self.0.command::<i64>(&["DEL", &results, &until, &used]).map(drop)
    }
}

impl Pinned for RedisState {
    fn pins(&self) -> Result<Vec<Pin>, StoreError> {
        Ok(self.read_pins()?.1)
    }

    /// As the trait says. Where others change pins at the same time, `work` is shown them again.
    fn change_pins(&self, work: &mut dyn FnMut(&[Pin]) -> Vec<Pin>) -> Result<Stamp, StoreError> {
        for _ in 0..TRIES {
            let (stamp, before) = self.read_pins()?;
            let changes = work(&before);
            if changes.is_empty() {
                return Ok(Stamp(stamp));
            }
            if let Some(next) = self.swap_pins(&stamp, &[], &changes)? {
                return Ok(next);
            }
        }
        Err(self.contended("the pins"))
    }

    fn pins_stamp(&self) -> Result<Stamp, StoreError> {
        let stamp: Option<String> = self.0.command(&["GET", &self.key("pins:stamp")])?;
        Ok(Stamp(stamp.unwrap_or_default()))
    }

    fn remove_pins(&self, server: &str, name: Option<&str>) -> Result<usize, StoreError> {
        for _ in 0..TRIES {
            let (stamp, before) = self.read_pins()?;
            let is_meant = |pin: &&Pin| pin.server == server && name.is_none_or(|name| name == pin.name);
            let removed: Vec<&Pin> = before.iter().filter(is_meant).collect();
            if removed.is_empty() || self.swap_pins(&stamp, &removed, &[])?.is_some() {
                return Ok(removed.len());
            }
        }
        Err(self.contended("the pins"))
    }
}

impl SharedSessions for RedisState {
    fn open_session(
        &self,
        id: &str,
        owner: &str,
        record: &str,
        now: Duration,
        bounds: SessionBounds,
    ) -> Result<Opened, StoreError> {
        let arguments = [millis(now), millis(bounds.idle), bounds.most.to_string(), bounds.most_of_one.to_string()];
        let [now, idle, most, of_one] = arguments.each_ref().map(String::as_bytes);
        let arguments = [now, idle, most, of_one, id.as_bytes(), record.as_bytes()];
        let answer: String = self.0.script(&OPEN_SESSION, &self.session_keys(owner), &arguments)?;
        match answer.as_str() {
            "open" => Ok(Opened::Open),
            "full" => Ok(Opened::Full),
            _ => Err(self.0.failed("the answer about a session has an unknown form")),
        }
    }

    fn session(&self, id: &str, owner: &str, now: Duration, idle: Duration) -> Result<Option<String>, StoreError> {
        let (now, idle) = (millis(now), millis(idle));
        let arguments = [now.as_bytes(), idle.as_bytes(), id.as_bytes()];
        self.0.script(&SESSION, &self.session_keys(owner), &arguments)
    }

    fn change_session(
        &self,
        id: &str,
        owner: &str,
        work: &mut dyn FnMut(&str) -> String,
    ) -> Result<Option<String>, StoreError> {
        let [records, _, own] = self.session_keys(owner);
        let keys = [records, own];
        let swap = |before: &str, after: &str| -> Result<(bool, String), StoreError> {
            self.0.script(&CHANGE_SESSION, &keys, &[id.as_bytes(), before.as_bytes(), after.as_bytes()])
        };
        // No record is empty: this looks at it.
        let (_, mut found) = swap("", "")?;
        for _ in 0..TRIES {
            if found.is_empty() {
                return Ok(None);
            }
            let next = work(&found);
            if next == found {
                return Ok(Some(found));
            }
            match swap(&found, &next)? {
                (true, _) => return Ok(Some(next)),
                (false, other) => found = other,
            }
        }
        Err(self.contended("the session"))
    }

    fn close_session(&self, id: &str, owner: &str) -> Result<(), StoreError> {
        self.0.script::<i64>(&CLOSE_SESSION, &self.session_keys(owner), &[id.as_bytes()]).map(drop)
    }

    fn expect_answer(&self, session: &str, number: u64, lasts: Duration) -> Result<(), StoreError> {
        self.0.command::<()>(&["SET", &self.answer_key(session, number), "", "PX", &millis(lasts)])
    }

    fn is_expected(&self, session: &str, number: u64) -> Result<bool, StoreError> {
        let count: i64 = self.0.command(&["EXISTS", &self.answer_key(session, number)])?;
        Ok(count == 1)
    }

    fn leave_answer(&self, session: &str, number: u64, answer: &[u8]) -> Result<bool, StoreError> {
        let left: i64 = self.0.script(&LEAVE_ANSWER, &[self.answer_key(session, number)], &[answer])?;
        Ok(left == 1)
    }

    fn answer(&self, session: &str, number: u64) -> Result<Option<Bytes>, StoreError> {
        let answer: Option<Vec<u8>> = self.0.command(&["GET", &self.answer_key(session, number)])?;
        Ok(answer.filter(|answer| !answer.is_empty()).map(Bytes::from))
    }

    fn take_answer(&self, session: &str, number: u64) -> Result<Option<Bytes>, StoreError> {
        let answer: Option<Vec<u8>> = self.0.script(&TAKE_ANSWER, &[self.answer_key(session, number)], &[])?;
        Ok(answer.map(Bytes::from))
    }

    fn forget_answer(&self, session: &str, number: u64) -> Result<(), StoreError> {
        self.0.command::<i64>(&["DEL", &self.answer_key(session, number)]).map(drop)
    }
}

impl State for RedisState {
    fn waits(&self) -> bool {
        true
    }

    fn fault(&self) -> Option<String> {
        self.0.fault().map(|error| error.to_string())
    }

    fn sessions(&self) -> Option<&dyn SharedSessions> {
        Some(self)
    }

    fn shared_key(&self, fresh: &[u8; 32]) -> Result<Option<[u8; 32]>, StoreError> {
        let key: Vec<u8> = self.0.script(&KEY, &[self.key("key")], &[fresh])?;
        let key = <[u8; 32]>::try_from(key).map_err(|_| self.0.failed("the approval key does not have 32 bytes"))?;
        Ok(Some(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_does_not_say_is_a_worry_as_what_it_says_wrong_is() {
        let (on, off) = ("# Persistence\r\naof_enabled:1\r\n", "aof_enabled:0\r\n");
        let (keeps, drops) = ("maxmemory_policy:noeviction\r\n", "maxmemory_policy:allkeys-lru\r\n");
        for (persistence, fsync, memory, expected) in [
            (on, Some("always"), keeps, vec![]),
            (on, Some("everysec"), keeps, vec!["only after it has answered (`everysec`)"]),
            (on, None, keeps, vec!["cannot be told whether the server writes to disk"]),
            (off, Some("always"), drops, vec!["does not write its data to disk", "drops data"]),
            (off, None, keeps, vec!["does not write its data to disk"]),
            ("", Some("everysec"), "", vec!["cannot be told whether the server keeps its data"]),
            ("", None, "", vec!["cannot be told whether the server keeps its data"]),
        ] {
            let found = worries(persistence, fsync, memory);
            let fits = |(one, part): (&(String, &str), &&str)| one.0.contains(*part);
            let all_fit = found.iter().zip(&expected).all(fits);
            assert!(found.len() == expected.len() && all_fit, "{persistence:?} {fsync:?} {memory:?}: {found:?}");
        }
    }
}
