//! Runs the binary, and gives it files.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use contextweaver_bench::eval::collection::seal;

/// What a command printed and how it ended.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// Exit code, standard output and standard error as one text, for snapshots.
    pub(crate) fn shown(&self) -> String {
        format!("exit {}\n{}{}", self.code, self.stdout, self.stderr)
    }
}

/// A folder of its own for one test, removed at the end.
pub(crate) struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Names of everything that is in the folder now, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Runs the binary in this folder; the folder's own path is taken out of what it prints.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.run_with(arguments, &[])
    }

    /// As [`Self::run`], with these variables of the environment.
    pub(crate) fn run_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
        let mut run = run_in_with(self.folder.path(), arguments, variables);
        let path = format!("{}/", self.folder.path().display());
        run.stdout = run.stdout.replace(&path, "");
        run.stderr = run.stderr.replace(&path, "");
        run
    }

    /// A page that a command has written, without its style.
    pub(crate) fn page(&self, name: &str) -> String {
        let page = fs::read_to_string(self.path(name)).unwrap();
        let (before, rest) = page.split_once("<style>").unwrap();
        format!("{before}{}", rest.split_once("</style>\n").unwrap().1)
    }

    /// Starts a command in the folder, with all standard streams at hand.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.start_with(arguments, &[])
    }

    /// As [`Self::start`], with these variables of the environment.
    pub(crate) fn start_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_contextweaver"))
            .args(arguments)
            .envs(variables.iter().copied())
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs a command that is an MCP server on standard streams, calls a tool of it by each of these parameters, waits for each
    /// answer, and ends it. Gives the results, and what it said on standard error.
    pub(crate) fn converse(&self, arguments: &[&str], calls: &[Value]) -> (Vec<Value>, String) {
        let mut child = self.start(arguments);
        let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut ask = |id: usize, method: &str, params: &Value| {
            writeln!(input, r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#).unwrap();
            let mut line = String::new();
            while !line.contains(&format!("\"id\":{id}")) {
                line.clear();
                assert!(output.read_line(&mut line).unwrap() > 0, "the server has ended");
            }
            serde_json::from_str::<Value>(&line).unwrap()
        };
        let hello = serde_json::json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"},
        });
        ask(0, "initialize", &hello);
        let mut answers = Vec::new();
        for (at, call) in calls.iter().enumerate() {
            let method = if call.get("name").is_some() { "tools/call" } else { "tools/list" };
            let answer = ask(at + 1, method, call);
            answers.push(answer.get("result").or_else(|| answer.get("error")).cloned().unwrap_or_default());
        }
        drop(input);
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{said}");
        (answers, said)
    }
}

/// Runs the binary in `folder`.
pub(crate) fn run_in(folder: &Path, arguments: &[&str]) -> Run {
    run_in_with(folder, arguments, &[])
}

fn run_in_with(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_contextweaver"));
    let output = command.args(arguments).envs(variables.iter().copied()).current_dir(folder).output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The checkout that is tested.
pub(crate) fn checkout() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The household collection with the first of every so many queries: what a run takes grows with them.
pub(crate) fn household(files: &Files, every: usize) {
    let gold = checkout().join("gold/household");
    for file in ["catalog.json", "collection.toml"] {
        files.write(&format!("gold/household/{file}"), fs::read(gold.join(file)).unwrap());
    }
    let queries = fs::read_to_string(gold.join("queries.jsonl")).unwrap();
    let queries: Vec<&str> = queries.lines().step_by(every).collect();
    files.write("gold/household/queries.jsonl", queries.join("\n") + "\n");
    seal(&files.path("gold/household")).unwrap();
}

/// A small catalog of two servers.
pub(crate) const TOOLS: &str = r#"[
{"name": "create_issue", "description": "Open a new issue in a repository.", "server": "forge", "inputSchema": {"type": "object", "properties": {"title": {"type": "string", "description": "Headline of the issue"}}, "required": ["title"]}},
{"name": "list_issues", "description": "List the issues of a repository.", "server": "forge", "inputSchema": {"type": "object", "properties": {"state": {"type": "string", "enum": ["open", "closed"]}}}, "annotations": {"readOnlyHint": true}},
{"name": "delete_repository", "description": "Delete a repository for good.", "server": "forge", "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}, "annotations": {"destructiveHint": true}},
{"name": "send_mail", "description": "Send a letter by electronic mail.", "server": "mail", "inputSchema": {"type": "object", "properties": {"to": {"type": "string"}, "body": {"type": "string"}}, "required": ["to"]}}
]"#;
