//! The shared state in one SQLite file.
//!
//! Calls wait for other processes at most a few seconds: a gateway that cannot count refuses.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::pin::Pin;
use super::state::{
    Exceeded, Freshness, IDLE, MINUTE, MOST_SUBJECTS, NonceKind, Nonces, Pinned, Quotas, Results, Stamp, State, Take,
    Want, crowded, judge,
};
use crate::common::sync::lock;
use contextweaver_context::store::StoreError;
use contextweaver_context::store::database::{Database, FileKind};
use contextweaver_core::text::sha256_hex;

const TABLES: &str = "
CREATE TABLE calls (subject TEXT NOT NULL, scope TEXT NOT NULL, at INTEGER NOT NULL);
CREATE INDEX calls_by_subject ON calls (subject, scope, at);
CREATE TABLE totals (
    subject TEXT NOT NULL, scope TEXT NOT NULL, total INTEGER NOT NULL, last INTEGER NOT NULL,
    PRIMARY KEY (subject, scope)
) WITHOUT ROWID;
CREATE INDEX totals_by_time ON totals (last);
CREATE TABLE nonces (kind TEXT NOT NULL, nonce TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (kind, nonce)) WITHOUT ROWID;
CREATE INDEX nonces_by_time ON nonces (kind, at);
CREATE TABLE forgotten (kind TEXT NOT NULL PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE results (key TEXT NOT NULL PRIMARY KEY, result BLOB NOT NULL, until INTEGER NOT NULL, used INTEGER NOT NULL);
CREATE INDEX results_by_use ON results (used);
CREATE TABLE pins (server TEXT NOT NULL, name TEXT NOT NULL, pin TEXT NOT NULL, PRIMARY KEY (server, name)) WITHOUT ROWID;
";

/// Marked "ctxg".
const KIND: FileKind =
    FileKind { application: 0x6374_7867, schema: 2, tables: TABLES, added: "", patience: Duration::from_secs(5) };

/// The state in a file that several processes may open.
#[derive(Debug)]
pub struct SqliteState {
    database: Database,
    /// The stamp of the pins, and the version of the data at which it was taken.
    seen: Mutex<Option<(i64, Stamp)>>,
}

impl SqliteState {
    /// Opens the file, or makes it for its owner alone where it is missing.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Ok(Self { database: Database::open(path.as_ref(), &KIND)?, seen: Mutex::default() })
    }

    /// The pins in the file, which is read and nothing else; none where it is missing.
    ///
    /// # Errors
    /// As [`Database::look`], but for a missing file.
    pub fn look(path: &Path) -> Result<Vec<Pin>, StoreError> {
        if !path.exists() {
            return Ok(Vec::new());
        }
        read_pins(path, &Database::look(path, &KIND)?.read(pin_texts)?)
    }

    fn change<T>(&self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        self.database.change(work)
    }
}

/// Times are kept in milliseconds since 1970.
fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn time(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}

impl Quotas for SqliteState {
    fn take(&self, wants: &[Want], now: Duration, take: Take) -> Result<Result<(), Exceeded>, StoreError> {
        self.change(|transaction| {
            for want in wants {
                let Want { subject, scope, .. } = want;
                let of = params![subject, scope, millis(now)];
                transaction
                    .prepare_cached("UPDATE calls SET at = ?3 WHERE subject = ?1 AND scope = ?2 AND at > ?3")?
                    .execute(of)?;
                transaction
                    .prepare_cached("DELETE FROM calls WHERE subject = ?1 AND scope = ?2 AND at <= ?3")?
                    .execute(params![subject, scope, millis(now) - millis(MINUTE)])?;
                let recent: Vec<Duration> = transaction
                    .prepare_cached("SELECT at FROM calls WHERE subject = ?1 AND scope = ?2 ORDER BY at")?
                    .query_map(params![subject, scope], |row| row.get(0).map(time))?
                    .collect::<rusqlite::Result<_>>()?;
                let total: Option<i64> = transaction
                    .prepare_cached("SELECT total FROM totals WHERE subject = ?1 AND scope = ?2 AND last >= ?3")?
                    .query_row(params![subject, scope, millis(now) - millis(IDLE)], |row| row.get(0))
                    .optional()?;
                let total = total.and_then(|total| u64::try_from(total).ok()).unwrap_or(0);
                if let Err(exceeded) = judge(want, &recent, total, now) {
                    return Ok(Err(exceeded));
                }
            }
            match take {
                Take::Look => Ok(Ok(())),
                Take::Use => count(transaction, wants, now),
            }
        })
    }
}

fn count(transaction: &Transaction<'_>, wants: &[Want], now: Duration) -> rusqlite::Result<Result<(), Exceeded>> {
    transaction.prepare_cached("DELETE FROM totals WHERE last < ?1")?.execute([millis(now) - millis(IDLE)])?;
    transaction.prepare_cached("DELETE FROM calls WHERE at < ?1")?.execute([millis(now) - millis(IDLE)])?;
    // Before anything is written: what is refused is not undone.
    if !has_room(transaction, wants)? {
        return Ok(Err(crowded()));
    }
    for want in wants {
        let Want { subject, scope, quota } = want;
        transaction
            .prepare_cached(
                "INSERT INTO totals VALUES (?1, ?2, 1, ?3)
                 ON CONFLICT (subject, scope) DO UPDATE SET total = total + 1, last = ?3",
            )?
            .execute(params![subject, scope, millis(now)])?;
        if quota.max_calls_per_minute.is_some() {
            transaction.prepare_cached("INSERT INTO calls VALUES (?1, ?2, ?3)")?.execute(params![
                subject,
                scope,
                millis(now)
            ])?;
        }
    }
    Ok(Ok(()))
}

/// Whether those of these subjects that are not known yet can be counted too.
fn has_room(transaction: &Transaction<'_>, wants: &[Want]) -> rusqlite::Result<bool> {
    let mut fresh = BTreeSet::new();
    for Want { subject, scope, .. } in wants {
        let known = "SELECT 1 FROM totals WHERE subject = ?1 AND scope = ?2";
        if !transaction.prepare_cached(known)?.exists(params![subject, scope])? {
            fresh.insert((subject, scope));
        }
    }
    if fresh.is_empty() {
        return Ok(true);
    }
    let known: i64 = transaction.prepare_cached("SELECT count(*) FROM totals")?.query_row([], |row| row.get(0))?;
    Ok(usize::try_from(known).is_ok_and(|known| known + fresh.len() <= MOST_SUBJECTS))
}

impl Nonces for SqliteState {
    fn remember(
        &self,
        kind: NonceKind,
        nonce: &str,
        oldest: Duration,
        at: Duration,
        most: usize,
    ) -> Result<Freshness, StoreError> {
        let (kind, at, oldest) = (kind.name(), millis(at), millis(oldest));
        self.change(|transaction| {
            transaction
                .prepare_cached(
                    "INSERT INTO forgotten SELECT kind, max(at) FROM nonces WHERE kind = ?1 AND at < ?2 GROUP BY kind
                     ON CONFLICT DO UPDATE SET at = max(at, excluded.at)",
                )?
                .execute(params![kind, oldest])?;
            let forget = "DELETE FROM nonces WHERE kind = ?1 AND at < ?2";
            transaction.prepare_cached(forget)?.execute(params![kind, oldest])?;
            let (seen, all): (bool, i64) = transaction
                .prepare_cached(
                    "SELECT EXISTS (SELECT 1 FROM nonces WHERE kind = ?1 AND nonce = ?2)
                         OR EXISTS (SELECT 1 FROM forgotten WHERE kind = ?1 AND at >= ?3),
                     (SELECT count(*) FROM nonces WHERE kind = ?1)",
                )?
                .query_row(params![kind, nonce, at], |row| Ok((row.get(0)?, row.get(1)?)))?;
            if seen {
                return Ok(Freshness::Seen);
            }
            if usize::try_from(all).is_ok_and(|all| all >= most) {
                return Ok(Freshness::Full);
            }
            transaction.prepare_cached("INSERT INTO nonces VALUES (?1, ?2, ?3)")?.execute(params![kind, nonce, at])?;
            Ok(Freshness::Fresh)
        })
    }
}

/// The number of the next use of a result.
const NEXT_USE: &str = "(SELECT coalesce(max(used), 0) + 1 FROM results)";

impl Results for SqliteState {
    fn cached(&self, key: &str, now: Duration) -> Result<Option<Bytes>, StoreError> {
        self.change(|transaction| {
            transaction.prepare_cached("DELETE FROM results WHERE until <= ?1")?.execute([millis(now)])?;
            let used = format!("UPDATE results SET used = {NEXT_USE} WHERE key = ?1 RETURNING result");
            let result: Option<Vec<u8>> =
                transaction.prepare_cached(&used)?.query_row([key], |row| row.get(0)).optional()?;
            Ok(result.map(Bytes::from))
        })
    }

    fn cache(&self, key: &str, result: &Bytes, until: Duration, most: usize) -> Result<(), StoreError> {
        self.change(|transaction| {
            let insert = format!("INSERT OR REPLACE INTO results VALUES (?1, ?2, ?3, {NEXT_USE})");
            transaction.prepare_cached(&insert)?.execute(params![key, &result[..], millis(until)])?;
            transaction
                .prepare_cached(
                    "DELETE FROM results WHERE key IN (SELECT key FROM results ORDER BY used DESC LIMIT -1 OFFSET ?1)",
                )?
                .execute([i64::try_from(most).unwrap_or(i64::MAX)])?;
            Ok(())
        })
    }

    fn clear_cache(&self) -> Result<(), StoreError> {
        self.change(|transaction| transaction.execute("DELETE FROM results", []).map(drop))
    }
}

/// The texts of all pins, by server and name.
fn pin_texts(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare_cached("SELECT pin FROM pins ORDER BY server, name")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

fn read_pins(path: &Path, texts: &[String]) -> Result<Vec<Pin>, StoreError> {
    let read = |text: &String| {
        serde_json::from_str(text).map_err(|error| {
            let (place, reason) = (path.display().to_string(), format!("a pin: {error}"));
            StoreError::Backend { place, reason }
        })
    };
    texts.iter().map(read).collect()
}

fn stamp(texts: &[String]) -> Stamp {
    Stamp(sha256_hex(texts.join("\n").as_bytes()))
}

impl Pinned for SqliteState {
    fn pins(&self) -> Result<Vec<Pin>, StoreError> {
        read_pins(self.database.path(), &self.change(|transaction| pin_texts(transaction))?)
    }

    fn change_pins(&self, work: &mut dyn FnMut(&[Pin]) -> Vec<Pin>) -> Result<Stamp, StoreError> {
        let mut damaged = None;
        let stamp = self.change(|transaction| {
            let texts = pin_texts(transaction)?;
            let before = match read_pins(self.database.path(), &texts) {
                Ok(before) => before,
                Err(error) => {
                    damaged = Some(error);
                    return Ok(Stamp::default());
                }
            };
            let changes = work(&before);
            for pin in &changes {
                let text = serde_json::to_string(pin).unwrap_or_default();
                transaction
                    .prepare_cached("INSERT OR REPLACE INTO pins VALUES (?1, ?2, ?3)")?
                    .execute(params![pin.server, pin.name, text])?;
            }
            Ok(stamp(&if changes.is_empty() { texts } else { pin_texts(transaction)? }))
        })?;
        // Our own changes leave the version as it is.
        *lock(&self.seen) = None;
        damaged.map_or(Ok(stamp), Err)
    }

    fn pins_stamp(&self) -> Result<Stamp, StoreError> {
        self.database.read(|connection| -> rusqlite::Result<Stamp> {
            // Other connections' commits alone change it: most of the time nothing is read.
            let version = connection.pragma_query_value(None, "data_version", |row| row.get::<_, i64>(0))?;
            let mut seen = lock(&self.seen);
            match &*seen {
                Some((at, stamp)) if *at == version => Ok(stamp.clone()),
                _ => {
                    let stamp = stamp(&pin_texts(connection)?);
                    *seen = Some((version, stamp.clone()));
                    Ok(stamp)
                }
            }
        })
    }

    fn remove_pins(&self, server: &str, name: Option<&str>) -> Result<usize, StoreError> {
        let removed = self.change(|transaction| {
            transaction
                .prepare_cached("DELETE FROM pins WHERE server = ?1 AND (?2 IS NULL OR name = ?2)")?
                .execute(params![server, name])
        });
        *lock(&self.seen) = None;
        removed
    }
}

impl State for SqliteState {
    fn waits(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_state_is_named_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        Connection::open(path("other.db")).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
        drop(SqliteState::open(path("newer.db")).unwrap());
        Connection::open(path("newer.db")).unwrap().pragma_update(None, "user_version", 7).unwrap();
        std::fs::write(path("text.db"), "no database at all, but long enough for a header".repeat(40)).unwrap();
        for (name, expected) in [
            ("other.db", "another program"),
            ("newer.db", "schema 7"),
            ("text.db", "not a database"),
            ("no/folder.db", "unable to open"),
        ] {
            let message = SqliteState::open(path(name)).unwrap_err().to_string();
            assert!(message.contains(expected), "{name}: {message}");
        }
    }
}
