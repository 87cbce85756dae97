//! A gateway that starts on what its servers listed last time.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::Files;

/// A server with one tool, of the name in the file `tool`. It does not start while there is a file `shut`, and ends at once where there is
/// a file `gone`.
const SCRIPT: &str = r#"
while [ -e shut ]; do sleep 0.05; done
[ -e gone ] && exit 1
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"Ask kindly."}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"%s","inputSchema":{"type":"object"}}]}}\n' "$id" "$(cat tool)" ;;
    *'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}\n' "$id" ;;
  esac
done
"#;

/// What a gateway is started with under the name `LIST_SECRET`.
const SECRET: &str = "zq_secret_77";

/// A gateway that waits for a server that is shut waits twice as long.
const SOON: Duration = Duration::from_secs(60);

/// A gateway on standard streams, and the tools that it listed first.
struct Gateway {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    tools: Vec<String>,
    /// Whether it has said that the list of tools is another.
    told: bool,
}

impl Gateway {
    fn start(files: &Files, mode: &str) -> Self {
        let began = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_contextweaver"))
            .args(["mcp", "serve", "--config", "gateway.json", "--mode", mode])
            .current_dir(files.path(""))
            .env("LIST_SECRET", SECRET)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut gateway = Self { child, input, output, tools: Vec::new(), told: false };
        let client = json!({"name": "c", "version": "1"});
        let greeted = gateway
            .ask("initialize", &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}));
        if mode == "passthrough" {
            assert_eq!(greeted["result"]["instructions"], "Ask kindly.");
            assert!(began.elapsed() < SOON, "it waited for its server: {:?}", began.elapsed());
            return gateway;
        }
        writeln!(gateway.input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
        gateway.tools = gateway.list();
        assert!(began.elapsed() < SOON, "it waited for its server: {:?}", began.elapsed());
        gateway
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the gateway has ended");
        let message: Value = serde_json::from_str(&line).unwrap();
        self.told |= message["method"] == "notifications/tools/list_changed";
        message
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.send(method, params);
        self.answer()
    }

    fn send(&mut self, method: &str, params: &Value) {
        writeln!(self.input, r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#).unwrap();
    }

    /// The answer to what was sent. What comes before it is only noted.
    fn answer(&mut self) -> Value {
        loop {
            let message = self.next();
            if message.get("id").is_some() {
                return message;
            }
        }
    }

    /// The upstream's tools that are listed.
    fn list(&mut self) -> Vec<String> {
        let listed = self.ask("tools/list", &json!({}));
        let names = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
        names.filter(|name| name.starts_with("s__")).map(|name| name.split("__").nth(1).unwrap().to_owned()).collect()
    }

    /// The text of what comes of a call. `meanwhile` runs when the call has been sent.
    fn call(&mut self, tool: &str, meanwhile: impl FnOnce()) -> String {
        self.send(
            "tools/call",
            &json!({"name": "tool_execute", "arguments": {"tool_id": format!("s:{tool}"), "args": {}}}),
        );
        meanwhile();
        self.answer()["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn files(startup: &Value) -> Files {
    let files = Files::new();
    let server =
        json!({"command": "sh", "args": ["-c", SCRIPT], "era": "legacy", "timeout": 120, "cwd": files.path("")});
    files.write("gateway.json", json!({"upstreams": {"s": server}, "startup": startup}).to_string());
    files.write("tool", "first");
    files
}

/// The one file of the cache, once it is there with this text in it.
fn cached(files: &Files, text: &str) -> std::path::PathBuf {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        // Another one beside it is being written.
        let paths = std::fs::read_dir(files.path("lists")).into_iter().flatten().map(|entry| entry.unwrap().path());
        if let Some(path) = { paths }.find(|path| path.extension().is_some_and(|extension| extension == "json"))
            && std::fs::read_to_string(&path).is_ok_and(|content| content.contains(text))
        {
            return path;
        }
        assert!(Instant::now() < until, "`{text}` is not in the cache");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_was_listed_last_time_is_served_before_the_server_has_started() {
    let files = files(&json!({"list_cache": "lists"}));
    let first = Gateway::start(&files, "proxy");
    assert_eq!(first.tools, ["first"]);
    let path = cached(&files, "first");
    drop(first);
    for kept in [&path, &files.path("lists")] {
        let mode = std::fs::metadata(kept).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others may read {}", kept.display());
    }

    // The lists are those of last time; a call waits for the server; clients hear that the lists have changed.
    files.write("shut", "");
    files.write("tool", "second");
    let mut gateway = Gateway::start(&files, "proxy");
    assert_eq!(gateway.tools, ["first"]);
    let open = || std::fs::remove_file(files.path("shut")).unwrap();
    assert_eq!(gateway.call("first", open), "done");
    let until = Instant::now() + Duration::from_secs(60);
    while gateway.list() != ["second"] || !gateway.told {
        assert!(Instant::now() < until, "told of changes: {}", gateway.told);
        std::thread::sleep(Duration::from_millis(20));
    }
    cached(&files, "second");
    drop(gateway);

    // What the only server says about itself is known as well.
    files.write("shut", "");
    drop(Gateway::start(&files, "passthrough"));
    open();

    // A file that is damaged, or of another configuration, counts as absent, and is written anew.
    files.write("tool", "third");
    std::fs::write(&path, "{").unwrap();
    assert_eq!(Gateway::start(&files, "proxy").tools, ["third"]);
    let config = std::fs::read_to_string(files.path("gateway.json")).unwrap();
    files.write("tool", "fourth");
    files.write("gateway.json", config.replace("\"timeout\":120", "\"timeout\":60"));
    let gateway = Gateway::start(&files, "proxy");
    assert_eq!(gateway.tools, ["fourth"]);
    cached(&files, "fourth");
    drop(gateway);

    // Without the server its tools stay, and a call says why it cannot be made.
    files.write("gone", "");
    let mut gateway = Gateway::start(&files, "proxy");
    assert_eq!(gateway.tools, ["fourth"]);
    assert!(gateway.call("fourth", || ()).contains("UPSTREAM_UNAVAILABLE"));
}

/// The configuration with these variables for the server.
fn with_env(files: &Files, env: &Value) {
    let config = std::fs::read_to_string(files.path("gateway.json")).unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    config["upstreams"]["s"]["env"] = env.clone();
    files.write("gateway.json", config.to_string());
}

#[test]
fn a_server_with_another_value_in_the_configuration_is_waited_for() {
    let files = files(&json!({"list_cache": "lists"}));
    with_env(&files, &json!({"DB": "production"}));
    let gateway = Gateway::start(&files, "proxy");
    cached(&files, "first");
    drop(gateway);
    files.write("tool", "second");
    with_env(&files, &json!({"DB": "staging"}));
    assert_eq!(Gateway::start(&files, "proxy").tools, ["second"]);
}

#[test]
fn lists_with_a_value_of_the_environment_are_not_kept() {
    let files = files(&json!({"list_cache": "lists"}));
    with_env(&files, &json!({"TOKEN": "${env:LIST_SECRET}"}));
    let gateway = Gateway::start(&files, "proxy");
    let path = cached(&files, "first");
    drop(gateway);
    files.write("tool", SECRET);
    let gateway = Gateway::start(&files, "proxy");
    let until = Instant::now() + Duration::from_secs(60);
    while path.exists() {
        assert!(Instant::now() < until, "it is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(gateway);
}

#[test]
fn a_pipe_in_place_of_the_lists_holds_nobody_up() {
    let files = files(&json!({"list_cache": "lists"}));
    let gateway = Gateway::start(&files, "proxy");
    let path = cached(&files, "first");
    drop(gateway);
    std::fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    files.write("tool", "second");
    assert_eq!(Gateway::start(&files, "proxy").tools, ["second"]);
}

#[test]
fn a_server_that_must_start_is_waited_for() {
    let files = files(&json!({"list_cache": "lists", "mode": "strict"}));
    let gateway = Gateway::start(&files, "proxy");
    cached(&files, "first");
    drop(gateway);
    files.write("tool", "second");
    assert_eq!(Gateway::start(&files, "proxy").tools, ["second"]);
}
