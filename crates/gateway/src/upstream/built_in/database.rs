//! A database of SQLite as a server: its tools schema and query.
//!
//! Each call opens the file for reading, asks, and closes it: calls share nothing, and see a file that was replaced. One
//! statement is taken, and what it may do is decided when it is prepared: it reads, and nothing else. It ends when its time
//! is over, when nobody waits for it any more, and when the queries of the process hold too much memory together.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Statement};
use serde_json::{Map, Value, json};

use super::{BuiltInError, beginning, reading};
use crate::common::sync::lock;
use crate::upstream::in_process::Stop;
use crate::upstream::toolset::{Tool, Toolset};

/// Bytes of a statement, at most.
const MOST_SQL: usize = 64 * 1024;

/// Values for its parameters, at most.
const MOST_PARAMETERS: usize = 100;

/// Rows of an answer, at most, and when the call does not say.
const MOST_ROWS: usize = 1_000;
const USUAL_ROWS: usize = 100;

/// Bytes of the rows of an answer, and of a text in them, at most.
const MOST_BYTES: usize = 256 * 1024;
const MOST_CELL: usize = 8 * 1024;

/// Bytes of one value that is read or made, at most. Some functions take the square of it in steps that nothing interrupts.
const MOST_VALUE: i32 = 256 * 1024;

/// Bytes that SQLite may hold in this process while a query runs: sorting and the rows of subqueries are in memory.
const MOST_MEMORY: i64 = 256 * 1024 * 1024;

/// Steps of a query between two looks at its bounds.
const STEPS: i32 = 100;

/// How long a query waits for a writer of the file.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tables and views that an answer to `schema` has, and columns of each, at most.
const MOST_TABLES: usize = 200;
const MOST_COLUMNS: usize = 200;

/// Pragmas that only say what there is.
const PRAGMAS: [&str; 7] =
    ["foreign_key_list", "index_info", "index_list", "index_xinfo", "table_info", "table_list", "table_xinfo"];

/// Functions that reach beyond the database.
const FUNCTIONS: [&str; 2] = ["fts3_tokenizer", "load_extension"];

/// Why a statement was refused or ended.
#[derive(Debug, Clone, thiserror::Error)]
enum Ended {
    /// It would do more than read.
    #[error("the database is only read, and the statement asks for {0}; write one SELECT")]
    Forbidden(String),
    /// Its time is over.
    #[error("ended after {0} s; ask for less: narrow it by WHERE, or do without a join, a sort or a recursion")]
    TooLong(f64),
    /// It needs too much memory.
    #[error("ended, since queries hold more than {MOST_MEMORY} bytes; ask for less, or without a sort of so many rows")]
    TooMuch,
}

/// Where what ends a statement says why.
type Why = Arc<Mutex<Option<Ended>>>;

/// What a tool does with a file and its arguments.
type Ask = fn(&Path, &Map<String, Value>, &Stop) -> Result<Value, String>;

/// The server of a database.
///
/// # Errors
/// [`BuiltInError`]: it is not a database that can be read.
pub(crate) fn server(file: &Path) -> Result<Toolset, BuiltInError> {
    look(file)?;
    let of = |ask: Ask| {
        let file = file.to_owned();
        move |arguments: &Map<String, Value>, stop: &Stop| ask(&file, arguments, stop)
    };
    let schema = Tool::long("schema", SCHEMA, schema_schema(), of(schema))
        .with("outputSchema", tables_schema())
        .with("annotations", reading())
        .with("tags", json!(["database", "schema"]));
    let query = Tool::long("query", QUERY, query_schema(), of(query))
        .with("outputSchema", rows_schema())
        .with("annotations", reading())
        .with("tags", json!(["database", "sql"]));
    Ok(Toolset::of("database", env!("CARGO_PKG_VERSION"), [schema, query]))
}

/// Checks that a file is a database that can be read.
///
/// # Errors
/// [`BuiltInError`].
pub(crate) fn look(file: &Path) -> Result<(), BuiltInError> {
    let data = file.metadata().map_err(|reason| BuiltInError::Unreadable { path: file.to_owned(), reason })?;
    if !data.is_file() {
        return Err(BuiltInError::NoFile(file.to_owned()));
    }
    let found = connect(file).and_then(|connection| {
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))
    });
    found.map(drop).map_err(|reason| BuiltInError::NoDatabase { path: file.to_owned(), reason })
}

/// The file, opened for reading, with nothing on that a hostile one could use.
fn connect(file: &Path) -> rusqlite::Result<Connection> {
    // A path that begins with `file:` would be read as an address.
    let file = std::path::absolute(file).unwrap_or_else(|_| PathBuf::from(file));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    for (limit, most) in [
        (Limit::SQLITE_LIMIT_LENGTH, MOST_VALUE),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 100),
        (Limit::SQLITE_LIMIT_VDBE_OP, 250_000),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, i32::try_from(MOST_PARAMETERS).unwrap_or(i32::MAX)),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, most)?;
    }
    connection.pragma_update(None, "query_only", true)?;
    // What is sorted is counted in memory; on a disk nobody would bound it.
    connection.pragma_update(None, "temp_store", "memory")?;
    Ok(connection)
}

/// The file, opened for a statement of a caller, and why that ends.
fn open(file: &Path, stop: &Stop) -> rusqlite::Result<(Connection, Why)> {
    let mut connection = connect(file)?;
    let why = Why::default();
    let (told, stop) = (Arc::clone(&why), stop.clone());
    connection.progress_handler(
        STEPS,
        Some(move || {
            let ended = if stop.is_due() {
                Ended::TooLong(stop.limit().as_secs_f64())
            } else if memory_used() > MOST_MEMORY {
                Ended::TooMuch
            } else {
                return false;
            };
            *lock(&told) = Some(ended);
            true
        }),
    )?;
    let told = Arc::clone(&why);
    connection.authorizer(Some(move |asked: rusqlite::hooks::AuthContext<'_>| match forbidden(&asked.action) {
        None => Authorization::Allow,
        Some(what) => {
            *lock(&told) = Some(Ended::Forbidden(what));
            Authorization::Deny
        }
    }))?;
    Ok((connection, why))
}

/// Bytes that SQLite holds in this process, by all its connections.
#[expect(unsafe_code, reason = "this figure of SQLite has no safe name")]
fn memory_used() -> i64 {
    // SAFETY: it takes nothing, and reads a counter under a lock of its own.
    unsafe { rusqlite::ffi::sqlite3_memory_used() }
}

/// What of an action is more than reading.
fn forbidden(action: &AuthAction<'_>) -> Option<String> {
    Some(match action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => return None,
        AuthAction::Function { function_name } if !FUNCTIONS.contains(function_name) => return None,
        AuthAction::Pragma { pragma_name, .. } if PRAGMAS.contains(pragma_name) => return None,
        AuthAction::Function { function_name } => format!("the function {function_name}"),
        AuthAction::Pragma { pragma_name, .. } => format!("PRAGMA {}", beginning(pragma_name, 100).0),
        AuthAction::Insert { table_name } => format!("a change of {}", beginning(table_name, 100).0),
        AuthAction::Update { table_name, .. } | AuthAction::Delete { table_name } => {
            format!("a change of {}", beginning(table_name, 100).0)
        }
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => "another database".to_owned(),
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => "a transaction".to_owned(),
        _ => "a change of the schema".to_owned(),
    })
}

/// What a model is told of a statement that failed.
fn told(error: &rusqlite::Error, why: &Why) -> String {
    if let Some(ended) = &*lock(why) {
        return ended.to_string();
    }
    match error {
        rusqlite::Error::MultipleStatement => {
            "there is more than one statement; ask for one at a time, without a `;` between".to_owned()
        }
        rusqlite::Error::SqlInputError { msg, offset, .. } if *offset >= 0 => format!("{msg} (at byte {offset})"),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        rusqlite::Error::SqliteFailure(failure, _) if failure.code == ErrorCode::TooBig => {
            format!("a value would have more than {MOST_VALUE} bytes; leave that column out, or ask for less")
        }
        rusqlite::Error::SqliteFailure(failure, _) if failure.code == ErrorCode::DatabaseBusy => {
            "another program is writing the database; ask again".to_owned()
        }
        error => error.to_string(),
    }
}

/// Rows as an answer has them, within its bounds.
#[derive(Default)]
struct Rows {
    rows: Vec<Value>,
    /// Bytes of their JSON.
    bytes: usize,
    /// Whether a text was cut.
    has_cut: bool,
    /// Whether there are more.
    has_more: bool,
}

impl Rows {
    fn read(&mut self, statement: &mut Statement<'_>, most: usize) -> rusqlite::Result<()> {
        let columns = statement.column_count();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            if self.rows.len() == most {
                self.has_more = true;
                break;
            }
            let mut cells = Vec::with_capacity(columns);
            for column in 0..columns {
                cells.push(self.cell(row.get_ref(column)?));
            }
            let row = Value::from(cells);
            self.bytes += row.to_string().len();
            if self.bytes > MOST_BYTES {
                self.has_more = true;
                break;
            }
            self.rows.push(row);
        }
        Ok(())
    }

    fn cell(&mut self, value: ValueRef<'_>) -> Value {
        match value {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => number.into(),
            // JSON has no infinite numbers.
            ValueRef::Real(number) if number.is_finite() => number.into(),
            ValueRef::Real(number) => number.to_string().into(),
            ValueRef::Text(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                let (text, is_whole) = beginning(&text, MOST_CELL);
                self.has_cut |= !is_whole;
                if is_whole { text.into() } else { format!("{text}…").into() }
            }
            ValueRef::Blob(bytes) => format!("({} bytes)", bytes.len()).into(),
        }
    }

    fn note(&self) -> Option<String> {
        let mut notes = Vec::new();
        if self.has_more {
            notes.push(format!(
                "cut after {} rows; narrow it by WHERE, or go on with LIMIT and OFFSET",
                self.rows.len()
            ));
        }
        if self.has_cut {
            notes.push(format!("texts are cut after {MOST_CELL} bytes; substr shows the rest"));
        }
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}

fn query(file: &Path, arguments: &Map<String, Value>, stop: &Stop) -> Result<Value, String> {
    let sql = arguments.get("sql").and_then(Value::as_str).unwrap_or_default();
    let limit = arguments.get("limit").and_then(Value::as_u64).map(|limit| usize::try_from(limit).unwrap_or(MOST_ROWS));
    let limit = limit.unwrap_or(USUAL_ROWS).clamp(1, MOST_ROWS);
    let none = Vec::new();
    let parameters = arguments.get("parameters").and_then(Value::as_array).unwrap_or(&none);
    if sql.len() > MOST_SQL {
        return Err(format!("the statement has more than {MOST_SQL} bytes"));
    }
    look(file).map_err(|error| error.to_string())?;
    let (connection, why) = open(file, stop).map_err(|error| told(&error, &Why::default()))?;
    let failed = |error: rusqlite::Error| told(&error, &why);
    let mut statement = connection.prepare(sql).map_err(failed)?;
    // What the authorizer is not asked about: a statement that is none.
    if statement.column_count() == 0 || !statement.readonly() {
        return Err(Ended::Forbidden("no rows".to_owned()).to_string());
    }
    if statement.parameter_count() != parameters.len() {
        let (wanted, given) = (statement.parameter_count(), parameters.len());
        return Err(format!("the statement has {wanted} parameters, and {given} values stand under `parameters`"));
    }
    for (place, value) in (1..).zip(parameters) {
        match value {
            Value::Null => statement.raw_bind_parameter(place, rusqlite::types::Null),
            Value::Bool(value) => statement.raw_bind_parameter(place, value),
            Value::Number(value) => match value.as_i64() {
                Some(value) => statement.raw_bind_parameter(place, value),
                None => statement.raw_bind_parameter(place, value.as_f64()),
            },
            Value::String(value) => statement.raw_bind_parameter(place, value),
            Value::Array(_) | Value::Object(_) => {
                return Err(format!("parameter {place} is neither text, number, boolean nor null"));
            }
        }
        .map_err(failed)?;
    }
    let columns: Vec<Value> = statement.column_names().map(Value::from).collect();
    let mut rows = Rows::default();
    rows.read(&mut statement, limit).map_err(failed)?;
    let mut result = Map::new();
    if let Some(note) = rows.note() {
        result.insert("note".to_owned(), note.into());
    }
    result.insert("columns".to_owned(), columns.into());
    result.insert("rows".to_owned(), rows.rows.into());
    Ok(result.into())
}

fn schema(file: &Path, arguments: &Map<String, Value>, stop: &Stop) -> Result<Value, String> {
    look(file).map_err(|error| error.to_string())?;
    let (connection, why) = open(file, stop).map_err(|error| told(&error, &Why::default()))?;
    let failed = |error: rusqlite::Error| told(&error, &why);
    let only = arguments.get("table").and_then(Value::as_str);
    let mut listed = connection
        .prepare(
            "SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'view', 'virtual') \
             AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND (?1 IS NULL OR name = ?1 COLLATE NOCASE) ORDER BY name",
        )
        .map_err(failed)?;
    let named = listed.query_map([only], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    let named: Vec<(String, String)> = named.and_then(|named| named.take(MOST_TABLES + 1).collect()).map_err(failed)?;
    if let (Some(name), true) = (only, named.is_empty()) {
        return Err(format!("there is no table or view `{}`; without `table` all are listed", beginning(name, 100).0));
    }
    let mut notes = Vec::new();
    if named.len() > MOST_TABLES {
        notes.push(format!("cut after {MOST_TABLES} tables; name one under `table`"));
    }
    let mut tables = Vec::new();
    for (name, kind) in named.iter().take(MOST_TABLES) {
        let columns = columns(&connection, name).unwrap_or_else(|error| {
            // A view may name what is not there any more.
            notes.push(format!("{}: {}", beginning(name, 100).0, told(&error, &why)));
            Vec::new()
        });
        if stop.is_due() {
            return Err(Ended::TooLong(stop.limit().as_secs_f64()).to_string());
        }
        tables.push(json!({"name": name, "kind": kind, "columns": columns}));
    }
    let mut result = Map::new();
    if !notes.is_empty() {
        result.insert("note".to_owned(), notes.join("; ").into());
    }
    result.insert("tables".to_owned(), tables.into());
    Ok(result.into())
}

/// The columns of a table or view.
fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<Value>> {
    let mut statement = connection.prepare_cached("SELECT name, type, \"notnull\", pk FROM pragma_table_info(?1)")?;
    let columns = statement.query_map([table], |row| {
        let mut column = Map::new();
        column.insert("name".to_owned(), row.get::<_, String>(0)?.into());
        column.insert("type".to_owned(), row.get::<_, String>(1)?.into());
        if row.get::<_, bool>(2)? {
            column.insert("not_null".to_owned(), true.into());
        }
        if row.get::<_, i64>(3)? > 0 {
            column.insert("primary_key".to_owned(), true.into());
        }
        Ok(Value::Object(column))
    })?;
    columns.take(MOST_COLUMNS).collect()
}

const SCHEMA: &str = "List the tables and views of the database with their columns.";

const QUERY: &str = "Ask the database by one SELECT of SQLite. It is only read. Ask `schema` first what there is.";

fn schema_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "table": {"type": "string", "maxLength": 1000, "description": "Only this table or view; all by default."},
        },
        "additionalProperties": false,
    })
}

fn tables_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "tables": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "kind": {"enum": ["table", "view", "virtual"]},
                        "columns": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "properties": {
                                    "name": {"type": "string"},
                                    "type": {"type": "string"},
                                    "not_null": {"type": "boolean"},
                                    "primary_key": {"type": "boolean"},
                                },
                                "required": ["name", "type"],
                            },
                        },
                    },
                    "required": ["name", "kind", "columns"],
                },
            },
            "note": {"type": "string"},
        },
        "required": ["tables"],
    })
}

fn query_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "sql": {
                "type": "string", "minLength": 1, "maxLength": MOST_SQL,
                "description": "One SELECT, with `?` where `parameters` has a value.",
            },
            "parameters": {
                "type": "array", "maxItems": MOST_PARAMETERS,
                "items": {"type": ["string", "number", "boolean", "null"]},
                "description": "The values of the parameters, in order.",
            },
            "limit": {
                "type": "integer", "minimum": 1, "maximum": MOST_ROWS,
                "description": format!("Rows at most; {USUAL_ROWS} by default."),
            },
        },
        "required": ["sql"],
        "additionalProperties": false,
    })
}

fn rows_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "columns": {"type": "array", "items": {"type": "string"}},
            "rows": {"type": "array", "items": {"type": "array"}},
            "note": {"type": "string"},
        },
        "required": ["columns", "rows"],
    })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn shop() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shop.sqlite");
        let connection = Connection::open(&file).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE lamps (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL, photo BLOB);
                 INSERT INTO lamps VALUES (1, 'desk', 12.5, x'0102'), (2, 'floor', 9e999, NULL);
                 CREATE VIEW cheap AS SELECT name FROM lamps WHERE price < 20;
                 CREATE VIEW broken AS SELECT a FROM gone;",
            )
            .unwrap();
        (folder, file)
    }

    fn asked(file: &Path, arguments: &Value, within: Duration) -> String {
        let answer = query(file, arguments.as_object().unwrap(), &Stop::after(within));
        answer.map_or_else(|error| format!("! {error}"), |answer| answer.to_string())
    }

    fn sql(file: &Path, sql: &str) -> String {
        asked(file, &json!({ "sql": sql }), Duration::from_secs(20))
    }

    #[test]
    fn rows_are_read() {
        let (_folder, file) = shop();
        insta::assert_snapshot!(sql(&file, "SELECT * FROM lamps ORDER BY id;"), @r#"{"columns":["id","name","price","photo"],"rows":[[1,"desk",12.5,"(2 bytes)"],[2,"floor","inf",null]]}"#);
        let one = json!({"sql": "SELECT name FROM lamps WHERE id = ?2 OR ?1 IS NULL", "parameters": ["x", 1]});
        assert_eq!(asked(&file, &one, Duration::MAX), r#"{"columns":["name"],"rows":[["desk"]]}"#);
        let cut = asked(&file, &json!({"sql": "SELECT id FROM lamps", "limit": 1}), Duration::MAX);
        insta::assert_snapshot!(cut, @r#"{"note":"cut after 1 rows; narrow it by WHERE, or go on with LIMIT and OFFSET","columns":["id"],"rows":[[1]]}"#);
        let names = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 3) SELECT count(*) FROM n";
        assert_eq!(sql(&file, names), r#"{"columns":["count(*)"],"rows":[[3]]}"#);
        let plan = sql(&file, "EXPLAIN QUERY PLAN SELECT * FROM lamps");
        assert!(plan.contains("SCAN lamps"), "{plan}");
    }

    #[test]
    fn nothing_but_reading_is_allowed() {
        let (folder, file) = shop();
        let before = std::fs::read(&file).unwrap();
        let other = folder.path().join("other.sqlite");
        let attach = format!("ATTACH '{}' AS other", other.display());
        let into = format!("VACUUM INTO '{}'", other.display());
        let statements = [
            "INSERT INTO lamps (name) VALUES ('x')",
            "UPDATE lamps SET name = 'x'",
            "DELETE FROM lamps",
            "DROP TABLE lamps",
            "CREATE TABLE x (y)",
            "CREATE TEMP TABLE x (y)",
            "CREATE VIRTUAL TABLE x USING fts5(y)",
            "WITH x AS (SELECT 1) DELETE FROM lamps",
            "PRAGMA journal_mode = wal",
            "PRAGMA user_version = 7",
            "PRAGMA query_only = 0",
            "PRAGMA temp_store_directory = '/'",
            "SELECT load_extension('x')",
            "SELECT fts3_tokenizer('x')",
            "BEGIN",
            "SAVEPOINT x",
            "REINDEX",
            "ANALYZE",
            "VACUUM",
            &attach,
            &into,
            "SELECT 1; DELETE FROM lamps",
            "",
            "-- nothing",
            "SELEC 1",
            "SELECT colour FROM lamps",
            "SELECT ?1",
        ];
        let mut said = String::new();
        for statement in statements {
            let answer = sql(&file, statement).replace(&folder.path().display().to_string(), "FOLDER");
            said += &format!("{answer}\n");
        }
        insta::assert_snapshot!(said, @r#"
        ! the database is only read, and the statement asks for a change of lamps; write one SELECT
        ! the database is only read, and the statement asks for a change of lamps; write one SELECT
        ! the database is only read, and the statement asks for a change of lamps; write one SELECT
        ! the database is only read, and the statement asks for a change of sqlite_master; write one SELECT
        ! the database is only read, and the statement asks for a change of sqlite_master; write one SELECT
        ! the database is only read, and the statement asks for a change of sqlite_temp_master; write one SELECT
        ! the database is only read, and the statement asks for a change of sqlite_master; write one SELECT
        ! the database is only read, and the statement asks for a change of lamps; write one SELECT
        ! the database is only read, and the statement asks for PRAGMA journal_mode; write one SELECT
        ! the database is only read, and the statement asks for PRAGMA user_version; write one SELECT
        ! the database is only read, and the statement asks for PRAGMA query_only; write one SELECT
        ! the database is only read, and the statement asks for PRAGMA temp_store_directory; write one SELECT
        ! the database is only read, and the statement asks for the function load_extension; write one SELECT
        ! the database is only read, and the statement asks for the function fts3_tokenizer; write one SELECT
        ! the database is only read, and the statement asks for a transaction; write one SELECT
        ! the database is only read, and the statement asks for a transaction; write one SELECT
        ! the database is only read, and the statement asks for no rows; write one SELECT
        ! the database is only read, and the statement asks for a change of the schema; write one SELECT
        ! the database is only read, and the statement asks for no rows; write one SELECT
        ! the database is only read, and the statement asks for another database; write one SELECT
        ! the database is only read, and the statement asks for no rows; write one SELECT
        ! the database is only read, and the statement asks for a change of lamps; write one SELECT
        ! the database is only read, and the statement asks for no rows; write one SELECT
        ! the database is only read, and the statement asks for no rows; write one SELECT
        ! near "SELEC": syntax error (at byte 0)
        ! no such column: colour (at byte 7)
        ! the statement has 1 parameters, and 0 values stand under `parameters`
        "#);
        assert_eq!(std::fs::read(&file).unwrap(), before);
        assert!(!other.exists());
    }

    #[test]
    fn what_would_not_end_is_ended() {
        let (_folder, file) = shop();
        let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
        let began = Instant::now();
        let ended = asked(&file, &json!({ "sql": endless }), Duration::from_millis(200));
        assert!(ended.starts_with("! ended after 0.2 s; ask for less"), "{ended}");
        assert!(began.elapsed() < Duration::from_secs(10));
        let value = sql(&file, "SELECT zeroblob(1000000)");
        assert!(value.contains("a value would have more than"), "{value}");
    }

    #[test]
    fn answers_are_bounded() {
        let (_folder, file) = shop();
        let numbers = |row: &str| {
            format!("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 3000) SELECT {row} FROM n")
        };
        let read = |text: &str| serde_json::from_str::<Value>(&sql(&file, text)).unwrap();
        let wide = read(&numbers("printf('%.9000c', 'x')"));
        let (rows, note) = (wide["rows"].as_array().unwrap().len(), wide["note"].as_str().unwrap());
        assert!(rows * MOST_CELL <= MOST_BYTES && rows > 20, "{rows}");
        assert!(note.contains(&format!("cut after {rows} rows")) && note.contains("texts are cut after"), "{note}");
        assert_eq!(read(&numbers("x"))["rows"].as_array().unwrap().len(), USUAL_ROWS);
        let all = asked(&file, &json!({"sql": numbers("x"), "limit": 9_999}), Duration::MAX);
        let all: Value = serde_json::from_str(&all).unwrap();
        assert_eq!(all["rows"].as_array().unwrap().len(), MOST_ROWS);
    }

    #[test]
    fn the_schema_is_listed() {
        let (_folder, file) = shop();
        let listed = |arguments: Value| schema(&file, arguments.as_object().unwrap(), &Stop::after(Duration::MAX));
        insta::assert_snapshot!(listed(json!({})).unwrap(), @r#"{"note":"broken: no such table: main.gone","tables":[{"name":"broken","kind":"view","columns":[]},{"name":"cheap","kind":"view","columns":[{"name":"name","type":"TEXT"}]},{"name":"lamps","kind":"table","columns":[{"name":"id","type":"INTEGER","primary_key":true},{"name":"name","type":"TEXT","not_null":true},{"name":"price","type":"REAL"},{"name":"photo","type":"BLOB"}]}]}"#);
        assert_eq!(listed(json!({"table": "CHEAP"})).unwrap()["tables"][0]["name"], "cheap");
        let none = listed(json!({"table": "none"})).unwrap_err();
        assert_eq!(none, "there is no table or view `none`; without `table` all are listed");
    }

    #[test]
    fn what_is_no_database_is_refused_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("notes.txt");
        std::fs::write(&text, "no database at all, but long enough for a header".repeat(40)).unwrap();
        let mut said = String::new();
        for path in [text, folder.path().join("none.sqlite"), folder.path().to_owned()] {
            let error = server(&path).unwrap_err().to_string();
            said += &format!("{}\n", error.replace(&folder.path().display().to_string(), "FOLDER"));
        }
        insta::assert_snapshot!(said, @r"
        FOLDER/notes.txt: file is not a database; name a database file of SQLite; one with a write-ahead log needs a folder that may be written
        FOLDER/none.sqlite: No such file or directory (os error 2); name something that exists and that the gateway's user may read
        FOLDER is not a file; name a database file of SQLite
        ");
    }
}
