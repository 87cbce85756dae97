//! All four stores in one SQLite file, for several threads and processes.
//!
//! A store and its copies share one connection, one thread at a time; open the file again for reading in parallel.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, ToSql, Transaction, params, types::FromSql};

use super::database::{Database, FileKind, Problem};
use super::{ArtifactStore, Clock, EpisodicStore, EventLog, FactStore, StoreError, SystemClock};
use crate::event::{ArtifactRef, ContentHash, ContextItem, Episode, Fact, Handle, Transcript, TranscriptError};

const TABLES: &str = "
CREATE TABLE events (position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, item TEXT NOT NULL);
CREATE TABLE contents (hash TEXT NOT NULL PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE artifacts (
    handle TEXT NOT NULL PRIMARY KEY, media_type TEXT NOT NULL, size_bytes INTEGER NOT NULL, label TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE INDEX artifacts_by_hash ON artifacts (hash);
CREATE TABLE facts (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE episodes (position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, summary TEXT NOT NULL);
";

/// The times at which artifacts were stored, in milliseconds since 1970; files that were made without this table get it
/// when they are opened.
const TIMES: &str = "
CREATE TABLE IF NOT EXISTS artifact_times (handle TEXT NOT NULL PRIMARY KEY, stored INTEGER NOT NULL) WITHOUT ROWID;
";

/// Marked "ctxw".
const KIND: FileKind =
    FileKind { application: 0x6374_7877, schema: 1, tables: TABLES, added: TIMES, patience: Duration::from_secs(30) };

/// A secret of the file, made once; files that were made without this table get it when it is asked for.
const KEY: &str = "
CREATE TABLE IF NOT EXISTS store_key (id INTEGER PRIMARY KEY CHECK (id = 1), key BLOB NOT NULL);
";

/// A database file with an event log, artifacts, facts and episodes.
#[derive(Debug, Clone)]
pub struct SqliteStore(Arc<Database>);

/// The event log of a database.
#[derive(Debug, Clone)]
pub struct SqliteEvents(SqliteStore);

/// The artifact store of a database.
#[derive(Debug, Clone)]
pub struct SqliteArtifacts(SqliteStore);

/// The fact store of a database.
#[derive(Debug, Clone)]
pub struct SqliteFacts(SqliteStore);

/// The store of episodes of a database.
#[derive(Debug, Clone)]
pub struct SqliteEpisodes(SqliteStore);

impl SqliteStore {
    /// Opens the file, or creates it, readable by its owner alone.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Ok(Self(Arc::new(Database::open(path.as_ref(), &KIND)?)))
    }

    /// Checks that the file can be opened, which only reads it.
    ///
    /// # Errors
    /// As [`Database::look`].
    pub fn look(path: &Path) -> Result<(), StoreError> {
        Database::look(path, &KIND).map(drop)
    }

    /// The event log in this database.
    #[must_use]
    pub fn events(&self) -> SqliteEvents {
        SqliteEvents(self.clone())
    }

    /// The artifact store in this database.
    #[must_use]
    pub fn artifacts(&self) -> SqliteArtifacts {
        SqliteArtifacts(self.clone())
    }

    /// The fact store in this database.
    #[must_use]
    pub fn facts(&self) -> SqliteFacts {
        SqliteFacts(self.clone())
    }

    /// The store of episodes in this database.
    #[must_use]
    pub fn episodes(&self) -> SqliteEpisodes {
        SqliteEpisodes(self.clone())
    }

    /// The secret of this file, the same for every process that opens it: `fresh`, where it had none.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the file cannot be read or written, or what it holds is not a key.
    pub fn key(&self, fresh: &[u8; 32]) -> Result<[u8; 32], StoreError> {
        let kept: Vec<u8> = self.change(|transaction| {
            transaction.execute_batch(KEY)?;
            transaction.execute("INSERT OR IGNORE INTO store_key (id, key) VALUES (1, ?1)", [fresh.as_slice()])?;
            Ok(transaction.query_row("SELECT key FROM store_key", [], column)?)
        })?;
        let bytes = kept.len();
        kept.try_into().map_err(|_| self.damaged("key", format!("has {bytes} bytes, not 32; delete its row")))
    }

    fn change<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, Problem>) -> Result<T, StoreError> {
        self.0.change(work)
    }

    /// Runs one statement; returns whether it changed anything.
    fn execute(&self, sql: &str, parameters: &[&dyn ToSql]) -> Result<bool, StoreError> {
        self.change(|transaction| Ok(transaction.prepare_cached(sql)?.execute(parameters)? > 0))
    }

    /// The first row of a query.
    fn first<T>(
        &self,
        sql: &str,
        parameters: &[&dyn ToSql],
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        self.0.read(|connection| first(connection, sql, parameters, read))
    }

    /// All rows of a query.
    fn all<T>(
        &self,
        sql: &str,
        parameters: &[&dyn ToSql],
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.0.read(|connection| {
            connection.prepare_cached(sql)?.query_map(parameters, read)?.collect::<rusqlite::Result<_>>()
        })
    }

    /// The error for a row that no store has written.
    fn damaged(&self, what: &str, reason: impl std::fmt::Display) -> StoreError {
        StoreError::Backend { place: self.0.path().display().to_string(), reason: format!("{what}: {reason}") }
    }

    fn item(&self, position: u32, json: &str) -> Result<ContextItem, StoreError> {
        serde_json::from_str(json).map_err(|error| self.damaged(&format!("event {position}"), error))
    }
}

fn first<T>(
    connection: &Connection,
    sql: &str,
    parameters: &[&dyn ToSql],
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, Problem> {
    Ok(connection.prepare_cached(sql)?.query_row(parameters, read).optional()?)
}

/// A column of a one-column row.
fn column<T: FromSql>(row: &Row<'_>) -> rusqlite::Result<T> {
    row.get(0)
}

/// Adds an event, whose JSON is `json`, at the end of the log.
fn append_within(transaction: &Transaction<'_>, item: &ContextItem, json: &str) -> Result<(), Problem> {
    let place = |id: &str| first(transaction, "SELECT position FROM events WHERE id = ?1", &[&id], column::<u32>);
    let last = first(transaction, "SELECT max(position) FROM events", &[], column::<Option<u32>>)?;
    let row = last.flatten().unwrap_or(0).saturating_add(1);
    let position = row as usize;
    if let Some(first) = place(item.id.as_str())? {
        let error = TranscriptError::Duplicate { id: item.id.clone(), first: first as usize, second: position };
        return Err(Problem::Store(error.into()));
    }
    if let Some(parent) = &item.parent_id {
        if *parent == item.id {
            let error = TranscriptError::Cycle { id: item.id.clone(), through: vec![item.id.clone()], position };
            return Err(Problem::Store(error.into()));
        }
        if place(parent.as_str())?.is_none() {
            let error = TranscriptError::MissingParent { id: item.id.clone(), parent: parent.clone(), position };
            return Err(Problem::Store(error.into()));
        }
    }
    transaction.prepare_cached("INSERT INTO events (position, id, item) VALUES (?1, ?2, ?3)")?.execute(params![
        row,
        item.id.as_str(),
        json
    ])?;
    Ok(())
}

impl EventLog for SqliteEvents {
    fn append(&self, item: ContextItem) -> Result<(), StoreError> {
        self.append_all(std::slice::from_ref(&item))
    }

    fn append_all(&self, items: &[ContextItem]) -> Result<(), StoreError> {
        let json = |item: &ContextItem| {
            serde_json::to_string(item).map_err(|error| self.0.damaged(&format!("event `{}`", item.id), error))
        };
        let lines = items.iter().map(json).collect::<Result<Vec<_>, _>>()?;
        self.0.change(|transaction| {
            items.iter().zip(&lines).try_for_each(|(item, json)| append_within(transaction, item, json))
        })
    }

    fn get(&self, id: &str) -> Result<Option<ContextItem>, StoreError> {
        let read = |row: &Row<'_>| Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?));
        let found = self.0.first("SELECT position, item FROM events WHERE id = ?1", &[&id], read)?;
        found.map(|(position, json)| self.0.item(position, &json)).transpose()
    }

    fn transcript(&self) -> Result<Transcript, StoreError> {
        let read = |row: &Row<'_>| Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?));
        let rows = self.0.all("SELECT position, item FROM events ORDER BY position", &[], read)?;
        let items = rows.into_iter().map(|(position, json)| self.0.item(position, &json));
        let items = items.collect::<Result<Vec<_>, _>>()?;
        Transcript::new(items).map_err(|error| self.0.damaged("table events", error))
    }

    fn len(&self) -> Result<usize, StoreError> {
        Ok(self.0.first("SELECT count(*) FROM events", &[], column::<u32>)?.unwrap_or(0) as usize)
    }
}

/// A row of `artifacts`, with the hash not yet checked.
fn artifact(row: &Row<'_>) -> rusqlite::Result<(Handle, String, u64, String, String)> {
    let size: i64 = row.get(2)?;
    let size = u64::try_from(size).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(2, size))?;
    Ok((Handle::new(row.get::<_, String>(0)?), row.get(1)?, size, row.get(3)?, row.get(4)?))
}

/// Removes content that no handle refers to.
fn release(transaction: &Transaction<'_>, hash: &str) -> Result<(), Problem> {
    transaction
        .prepare_cached(
            "DELETE FROM contents WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM artifacts WHERE hash = ?1)",
        )?
        .execute([hash])?;
    Ok(())
}

impl SqliteArtifacts {
    fn checked(
        &self,
        (handle, media_type, size_bytes, label, hash): (Handle, String, u64, String, String),
    ) -> Result<ArtifactRef, StoreError> {
        let content_hash = hash.parse().map_err(|error| self.0.damaged(&format!("artifact `{handle}`"), error))?;
        Ok(ArtifactRef { handle, media_type, size_bytes, label, content_hash })
    }
}

const ARTIFACT_HASH: &str = "SELECT hash FROM artifacts WHERE handle = ?1";

impl ArtifactStore for SqliteArtifacts {
    fn put(&self, handle: &Handle, bytes: &[u8], media_type: &str, label: &str) -> Result<ArtifactRef, StoreError> {
        let reference = super::reference(handle, bytes, media_type, label);
        let hash = reference.content_hash.as_str();
        self.0.change(|transaction| {
            let before = first(transaction, ARTIFACT_HASH, &[&handle.as_str()], column::<String>)?;
            // Content that was altered in the file is repaired by the next caller that stores it.
            transaction
                .prepare_cached(
                    "INSERT INTO contents (hash, bytes) VALUES (?1, ?2)
                     ON CONFLICT (hash) DO UPDATE SET bytes = excluded.bytes WHERE bytes <> excluded.bytes",
                )?
                .execute(params![hash, bytes])?;
            transaction
                .prepare_cached(
                    "INSERT OR REPLACE INTO artifacts (handle, media_type, size_bytes, label, hash)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![handle.as_str(), media_type, bytes.len() as i64, label, hash])?;
            let now = i64::try_from(SystemClock.now().as_millis()).unwrap_or(i64::MAX);
            transaction
                .prepare_cached("INSERT OR REPLACE INTO artifact_times VALUES (?1, ?2)")?
                .execute(params![handle.as_str(), now])?;
            before.filter(|before| before != hash).map_or(Ok(()), |before| release(transaction, &before))
        })?;
        Ok(reference)
    }

    fn get(&self, handle: &Handle) -> Result<Arc<[u8]>, StoreError> {
        let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, Option<Vec<u8>>>(1)?));
        let sql = "SELECT artifacts.hash, bytes FROM artifacts LEFT JOIN contents ON contents.hash = artifacts.hash
                   WHERE handle = ?1";
        let found = self.0.first(sql, &[&handle.as_str()], read)?;
        let (expected, bytes) = found.ok_or_else(|| StoreError::NoArtifact(handle.clone()))?;
        let what = || format!("artifact `{handle}`");
        let expected: ContentHash = expected.parse().map_err(|error| self.0.damaged(&what(), error))?;
        let bytes = bytes.ok_or_else(|| self.0.damaged(&what(), "its content is missing"))?;
        let found = ContentHash::of(&bytes);
        if found == expected {
            Ok(bytes.into())
        } else {
            Err(StoreError::Altered { handle: handle.clone(), expected, found })
        }
    }

    fn reference(&self, handle: &Handle) -> Result<ArtifactRef, StoreError> {
        let sql = "SELECT handle, media_type, size_bytes, label, hash FROM artifacts WHERE handle = ?1";
        let found = self.0.first(sql, &[&handle.as_str()], artifact)?;
        self.checked(found.ok_or_else(|| StoreError::NoArtifact(handle.clone()))?)
    }

    fn list(&self) -> Result<Vec<ArtifactRef>, StoreError> {
        let sql = "SELECT handle, media_type, size_bytes, label, hash FROM artifacts ORDER BY handle";
        self.0.all(sql, &[], artifact)?.into_iter().map(|row| self.checked(row)).collect()
    }

    fn stored(&self) -> Result<Vec<(Handle, Duration)>, StoreError> {
        let row = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?));
        let rows = self.0.all("SELECT handle, stored FROM artifact_times", &[], row)?;
        let since = |millis: i64| Duration::from_millis(u64::try_from(millis).unwrap_or_default());
        Ok(rows.into_iter().map(|(handle, stored)| (Handle::new(handle.as_str()), since(stored))).collect())
    }

    fn delete(&self, handle: &Handle) -> Result<bool, StoreError> {
        self.0.change(|transaction| {
            let before = first(transaction, ARTIFACT_HASH, &[&handle.as_str()], column::<String>)?;
            let Some(before) = before else { return Ok(false) };
            transaction.prepare_cached("DELETE FROM artifacts WHERE handle = ?1")?.execute([handle.as_str()])?;
            transaction.prepare_cached("DELETE FROM artifact_times WHERE handle = ?1")?.execute([handle.as_str()])?;
            release(transaction, &before)?;
            Ok(true)
        })
    }
}

fn fact(row: &Row<'_>) -> rusqlite::Result<Fact> {
    Ok(Fact { key: row.get(0)?, value: row.get(1)? })
}

impl FactStore for SqliteFacts {
    fn put(&self, fact: Fact) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO facts (key, value) VALUES (?1, ?2)";
        self.0.execute(sql, &[&fact.key, &fact.value]).map(drop)
    }

    fn get(&self, key: &str) -> Result<Option<Fact>, StoreError> {
        self.0.first("SELECT key, value FROM facts WHERE key = ?1", &[&key], fact)
    }

    fn all(&self) -> Result<Vec<Fact>, StoreError> {
        self.0.all("SELECT key, value FROM facts ORDER BY key", &[], fact)
    }

    fn delete(&self, key: &str) -> Result<bool, StoreError> {
        self.0.execute("DELETE FROM facts WHERE key = ?1", &[&key])
    }
}

fn episode(row: &Row<'_>) -> rusqlite::Result<Episode> {
    Ok(Episode { id: row.get(0)?, summary: row.get(1)? })
}

impl EpisodicStore for SqliteEpisodes {
    fn put(&self, episode: Episode) -> Result<(), StoreError> {
        let sql = "INSERT INTO episodes (id, summary) VALUES (?1, ?2)
                   ON CONFLICT (id) DO UPDATE SET summary = excluded.summary";
        self.0.execute(sql, &[&episode.id, &episode.summary]).map(drop)
    }

    fn latest(&self, count: usize) -> Result<Vec<Episode>, StoreError> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let sql = "SELECT id, summary FROM episodes ORDER BY position DESC LIMIT ?1";
        let mut latest = self.0.all(sql, &[&count], episode)?;
        latest.reverse();
        Ok(latest)
    }

    fn all(&self) -> Result<Vec<Episode>, StoreError> {
        self.0.all("SELECT id, summary FROM episodes ORDER BY position", &[], episode)
    }

    fn delete(&self, id: &str) -> Result<bool, StoreError> {
        self.0.execute("DELETE FROM episodes WHERE id = ?1", &[&id])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ItemKind;
    use crate::store::conformance;

    #[test]
    fn sqlite_keeps_every_rule() {
        let folder = tempfile::tempdir().unwrap();
        let number = std::cell::Cell::new(0);
        let make = || {
            number.set(number.get() + 1);
            SqliteStore::open(folder.path().join(format!("{}.db", number.get()))).unwrap()
        };
        conformance::events(|| make().events()).unwrap();
        conformance::artifacts(|| make().artifacts()).unwrap();
        conformance::facts(|| make().facts()).unwrap();
        conformance::episodes(|| make().episodes()).unwrap();
    }

    #[test]
    fn events_that_are_added_together_are_all_added_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let log = SqliteStore::open(folder.path().join("s.db")).unwrap().events();
        let item = |id: &str| ContextItem::new(id, ItemKind::UserTurn, "text");
        log.append_all(&[item("a"), item("b").under("a")]).unwrap();
        for (wrong, told) in [
            (item("a"), "event 4: event 1 already has the id `a`; ids must be unique"),
            (item("d").under("e"), "event 4 (`d`): its parent `e` is not in the log"),
        ] {
            let error = log.append_all(&[item("c"), wrong]).unwrap_err();
            assert_eq!((error.to_string().as_str(), log.len().unwrap()), (told, 2));
        }
        log.append_all(&[]).unwrap();
        let ids: Vec<String> = log.transcript().unwrap().items().iter().map(|item| item.id.to_string()).collect();
        assert_eq!(ids, ["a", "b"]);
    }

    #[test]
    fn several_connections_share_a_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    let store = SqliteStore::open(path).unwrap();
                    for number in 0..10 {
                        let item = ContextItem::new(format!("{thread}:{number}"), ItemKind::UserTurn, "text");
                        store.events().append(item).unwrap();
                        let handle = Handle::new(format!("{thread}"));
                        store.artifacts().put(&handle, format!("{number}").as_bytes(), "", "").unwrap();
                    }
                });
            }
        });
        let store = SqliteStore::open(&path).unwrap();
        assert_eq!(store.events().transcript().unwrap().len(), 40);
        // Content that four handles share, and nothing of what they meant before.
        let contents =
            store.first("SELECT count(*), min(bytes) FROM contents", &[], |row| Ok((row.get(0)?, row.get(1)?)));
        assert_eq!(contents.unwrap(), Some((1, b"9".to_vec())));
    }

    #[test]
    fn what_is_no_store_is_named_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("text.db"), "no database at all, but long enough for a header".repeat(40)).unwrap();
        Connection::open(path("other.db")).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
        drop(SqliteStore::open(path("newer.db")).unwrap());
        Connection::open(path("newer.db")).unwrap().pragma_update(None, "user_version", 7).unwrap();
        let before = std::fs::read(path("other.db")).unwrap();
        let names = ["text.db", "other.db", "newer.db", "no/folder.db", ""];
        let messages = names.map(|name| {
            let error = SqliteStore::open(path(name)).unwrap_err().to_string();
            error.replace(&*folder.path().to_string_lossy(), "stores")
        });
        insta::assert_snapshot!(messages.join("\n"), @r"
        stores/text.db: file is not a database; name a new file, or one made by this program
        stores/other.db: this is the database of another program; nothing was changed
        stores/newer.db: this database has schema 7; this version reads schema 1: name another file, or open it with the version that wrote it
        stores/no/folder.db: unable to open database file; its folder must exist and be writable
        stores/: unable to open database file; its folder must exist and be writable
        ");
        assert_eq!(std::fs::read(path("other.db")).unwrap(), before);
    }

    #[test]
    fn what_was_damaged_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let store = SqliteStore::open(&path).unwrap();
        let handle = Handle::new("a");
        let mut seen = Vec::new();
        let mut after = |sql: &str| {
            store.artifacts().put(&handle, b"content", "", "").unwrap();
            store.0.read(|connection| connection.execute_batch(sql)).unwrap();
            let tries = [
                store.artifacts().get(&handle).err(),
                store.artifacts().list().err(),
                store.events().transcript().err(),
                store.facts().all().err(),
            ];
            let messages =
                tries.iter().flatten().map(|error| error.to_string().replace(&*path.to_string_lossy(), "s.db"));
            seen.extend(messages);
        };
        after("UPDATE contents SET bytes = x'00'");
        after("DELETE FROM contents");
        after("UPDATE artifacts SET hash = 'abc'");
        after("INSERT INTO facts VALUES ('k', x'ff')");
        after("DELETE FROM facts; INSERT INTO events VALUES (1, 'e', '{\"id\": 3}')");
        after(
            "UPDATE events SET item = '{\"id\": \"e\", \"kind\": \"user_turn\", \"text\": \"\", \"parent_id\": \"x\"}'",
        );
        insta::assert_snapshot!(seen.join("\n"), @r"
        the artifact `a` was altered: its content has the hash 6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d, not ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73
        s.db: artifact `a`: its content is missing
        s.db: artifact `a`: `abc` is not a content hash; write the 64 lower-case hexadecimal digits of a SHA-256
        s.db: artifact `a`: `abc` is not a content hash; write the 64 lower-case hexadecimal digits of a SHA-256
        s.db: Invalid column type Blob at index: 1, name: value
        s.db: event 1: invalid type: integer `3`, expected a string at line 1 column 8
        s.db: table events: event 1 (`e`): its parent `x` is not in the log
        ");
    }

    #[test]
    fn a_corrupt_file_gives_an_error_and_no_panic() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let store = SqliteStore::open(&path).unwrap();
        for number in 0..50 {
            store.facts().put(Fact { key: format!("key {number}"), value: "v".repeat(200) }).unwrap();
        }
        drop(store);
        let mut bytes = std::fs::read(&path).unwrap();
        let pages = bytes.len() / 4096;
        assert!(pages > 5, "{pages}");
        for byte in bytes.iter_mut().skip(4096) {
            *byte = 0x5a;
        }
        std::fs::write(&path, bytes).unwrap();
        let error = SqliteStore::open(&path).and_then(|store| store.facts().all()).unwrap_err().to_string();
        assert!(error.contains("s.db: database disk image is malformed; restore the file"), "{error}");
    }
}
