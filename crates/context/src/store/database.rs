//! An SQLite file of this program: recognised, opened and changed in one way, whatever its tables hold.
//!
//! Every change is one immediate transaction: it takes the write lock first, so that what it checks still holds when it
//! writes. The log is written ahead (WAL) and synchronised at every commit: acknowledged changes survive a kill and a loss
//! of power. Other processes wait for the lock.
//!
//! A database has one connection, for one thread at a time; open the file again for reading in parallel.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, Row, Transaction, TransactionBehavior};

use super::StoreError;
use contextweaver_core::files::{make_private_file, open_kept_file};
use contextweaver_core::sync::lock;

/// What the files of one kind have in common.
#[derive(Debug)]
pub struct FileKind {
    /// Marks a file as ours, so that no other program's database is written to (SQLite's `application_id`).
    pub application: i32,
    /// The version of the tables that this program reads and writes (SQLite's `user_version`).
    pub schema: i32,
    /// The statements that make the tables of a new file.
    pub tables: &'static str,
    /// Statements for every file that is opened: they make what files of this schema did not always have.
    pub added: &'static str,
    /// How long a change waits for other processes.
    pub patience: Duration,
}

/// An open file.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    connection: Mutex<Connection>,
    /// How long a change waits, for other threads and for other processes together.
    patience: Duration,
}

impl Database {
    /// Whether there is an SQLite database at `path`, of whatever program: told by its first bytes. A pipe is none, and
    /// nothing of it is read: somebody else is to read it whole.
    #[must_use]
    pub fn is_at(path: &Path) -> bool {
        const START: &[u8; 16] = b"SQLite format 3\0";
        let mut start = [0; START.len()];
        let read = open_kept_file(path).and_then(|mut file| file.read_exact(&mut start));
        read.is_ok() && start == *START
    }

    /// Opens the file, or creates it, readable by its owner alone.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the file cannot be opened or created, is not a database, is the database of another
    /// program, or has another version of the tables.
    pub fn open(path: &Path, kind: &FileKind) -> Result<Self, StoreError> {
        // The database gives its own permissions to the files beside it.
        if !path.exists() {
            // What cannot be created is reported by the database.
            let _ = make_private_file(path);
        }
        let connection = connect(path, kind).map_err(|problem| problem.at(path))?;
        Ok(Self { path: path.to_owned(), connection: Mutex::new(connection), patience: kind.patience })
    }

    /// Opens a file that is there for reading; nothing of it is changed.
    ///
    /// # Errors
    /// As [`Database::open`]; also when the file is missing.
    pub fn look(path: &Path, kind: &FileKind) -> Result<Self, StoreError> {
        let look = || -> Result<Connection, Problem> {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(kind.patience)?;
            check_schema(&connection, kind).map(|_| connection)
        };
        let connection = look().map_err(|problem| problem.at(path))?;
        Ok(Self { path: path.to_owned(), connection: Mutex::new(connection), patience: kind.patience })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` on the connection.
    ///
    /// # Errors
    /// What `work` says, with the file.
    pub fn read<T, E: Into<Problem>>(&self, work: impl FnOnce(&Connection) -> Result<T, E>) -> Result<T, StoreError> {
        work(&self.connection()).map_err(|error| error.into().at(&self.path))
    }

    /// Runs `work` under the write lock; its changes are kept when it succeeds and undone when it fails.
    ///
    /// # Errors
    /// What `work` says, or why its changes cannot be kept, with the file.
    pub fn change<T, E: Into<Problem>>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, StoreError> {
        let mut connection = self.connection();
        let run = || -> Result<T, Problem> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = work(&transaction).map_err(Into::into)?;
            transaction.commit()?;
            Ok(value)
        };
        run().map_err(|problem| problem.at(&self.path))
    }

    /// The connection. Who has waited for it has so much less patience with other processes: while one of these holds the
    /// file, many callers wait no longer than one.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        let asked = Instant::now();
        let connection = lock(&self.connection);
        // This fails on no open connection.
        let _ = connection.busy_timeout(self.patience.saturating_sub(asked.elapsed()));
        connection
    }
}

/// What went wrong, before the file is known.
#[derive(Debug)]
pub enum Problem {
    /// An error that names the file itself.
    Store(StoreError),
    /// The database says it.
    Sql(rusqlite::Error),
    /// Anything else, in words.
    Other(String),
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl Problem {
    fn at(self, path: &Path) -> StoreError {
        let reason = match self {
            Self::Store(error) => return error,
            Self::Other(reason) => reason,
            Self::Sql(error) => {
                let hint = match error.sqlite_error_code() {
                    Some(ErrorCode::NotADatabase) => "; name a new file, or one made by this program",
                    Some(ErrorCode::DatabaseCorrupt) => {
                        "; restore the file from a copy, or try `sqlite3 FILE .recover`"
                    }
                    Some(ErrorCode::ReadOnly) => "; the file and its folder must be writable",
                    Some(ErrorCode::CannotOpen) => "; its folder must exist and be writable",
                    Some(ErrorCode::DiskFull) => "; nothing was stored: make room and try again",
                    Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "; another process keeps it busy",
                    Some(ErrorCode::TooBig) => "; SQLite holds values up to 1 GB",
                    _ => "",
                };
                // Of a file that cannot be opened it repeats the path.
                let error = error.to_string();
                let reason = error.strip_suffix(&format!(": {}", path.display())).unwrap_or(&error);
                format!("{reason}{hint}")
            }
        };
        StoreError::Backend { place: path.display().to_string(), reason }
    }
}

fn connect(path: &Path, kind: &FileKind) -> Result<Connection, Problem> {
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(kind.patience)?;
    connection.set_prepared_statement_cache_capacity(64);
    check_schema(&connection, kind)?;
    write_ahead(&connection, kind.patience)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Of several processes that found a new file, the first creates the tables.
    if check_schema(&transaction, kind)? == Found::New {
        transaction.execute_batch(kind.tables)?;
        transaction.pragma_update(None, "application_id", kind.application)?;
        transaction.pragma_update(None, "user_version", kind.schema)?;
    }
    transaction.execute_batch(kind.added)?;
    transaction.commit()?;
    Ok(connection)
}

#[derive(PartialEq)]
enum Found {
    New,
    Ours,
}

fn check_schema(connection: &Connection, kind: &FileKind) -> Result<Found, Problem> {
    // In one statement, so that all three values are of one moment while another process creates the tables.
    let sql = "SELECT (SELECT count(*) FROM sqlite_master), (SELECT application_id FROM pragma_application_id),
               (SELECT user_version FROM pragma_user_version)";
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i32>(1)?, row.get::<_, i32>(2)?));
    match connection.query_row(sql, [], read)? {
        (0, 0, 0) => Ok(Found::New),
        (_, application, schema) if application == kind.application && schema == kind.schema => Ok(Found::Ours),
        (_, application, schema) if application == kind.application => {
            let own = kind.schema;
            let remedy = "name another file, or open it with the version that wrote it";
            Err(Problem::Other(format!("this database has schema {schema}; this version reads schema {own}: {remedy}")))
        }
        _ => Err(Problem::Other("this is the database of another program; nothing was changed".to_owned())),
    }
}

/// Turns the write-ahead log on. SQLite does not wait for the lock that this takes, so it is tried until others release
/// it.
fn write_ahead(connection: &Connection, patience: Duration) -> Result<(), Problem> {
    let start = Instant::now();
    loop {
        let mode = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(Problem::Other(format!("no write-ahead log here, only `{mode}`; use a local disk")));
            }
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && start.elapsed() < patience => {
                sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_is_no_database_and_stays_whole() {
        use std::io::{Read as _, Write as _};
        use std::os::fd::AsRawFd as _;
        let (mut from, mut into) = std::io::pipe().unwrap();
        into.write_all(b"SQLite format 3\0 and more").unwrap();
        drop(into);
        assert!(!Database::is_at(Path::new(&format!("/proc/self/fd/{}", from.as_raw_fd()))));
        let mut all = String::new();
        from.read_to_string(&mut all).unwrap();
        assert_eq!(all, "SQLite format 3\0 and more");
    }

    #[test]
    fn many_who_wait_for_another_process_wait_no_longer_than_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let (tables, patience) = ("CREATE TABLE t (a)", Duration::from_millis(400));
        let kind = FileKind { application: 7, schema: 1, tables, added: "", patience };
        let database = Database::open(&path, &kind).unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let start = Instant::now();
        let insert = || database.change(|transaction| transaction.execute("INSERT INTO t VALUES (1)", []));
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..10).map(|_| scope.spawn(insert)).collect();
            for one in waiting {
                assert!(one.join().unwrap().unwrap_err().to_string().contains("another process"));
            }
        });
        assert!(start.elapsed() < 5 * patience, "{:?}", start.elapsed());
        other.execute_batch("ROLLBACK").unwrap();
        assert_eq!(insert().unwrap(), 1);
    }
}
