//! What operators run: the support pack, figures over a time, views that follow what happens; and the time that a demo may take.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Files, checkout};

/// What no pack may hold, wherever it was.
const PLANTED: [&str; 12] = [
    "planted-in-env-1",
    "planted-in-header-2",
    "planted-in-user-3",
    "planted-in-query-4",
    "planted-after-flag-5",
    "planted-in-argument-6",
    "planted-in-variable-7",
    "planted-in-token-8",
    "planted-in-file-9",
    "planted-in-environment-10",
    "pLanted8f3K2q9Zx11",
    "planted-in-client-12",
];

/// The last of these stands in a client's file alone.
const OF_CLIENT: &str = PLANTED[11];

/// A server that refuses its client and says this about it.
fn refusing(message: &str) -> String {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}});
    let refusal = json!({"jsonrpc": "2.0", "id": 0, "error": {"code": -32000, "message": message}});
    [("client", hello), ("server", refusal)]
        .into_iter()
        .enumerate()
        .map(|(at, (direction, message))| {
            format!("{}\n", json!({"seq": at + 1, "direction": direction, "message": message}))
        })
        .collect()
}

/// A gateway with secrets wherever there may be one, and servers and logs that repeat them.
fn troubled() -> Files {
    let files = Files::new();
    let program = env!("CARGO_BIN_EXE_contextweaver");
    files.write("refusing.ndjson", refusing(&format!("the keys {} are not valid", PLANTED[..11].join(", "))));
    files.write("token", format!("{}\n", PLANTED[8]));
    let entry = json!({"mcpServers": {"gateway": {
        "command": program, "args": ["mcp", "serve", "--config", files.path("gateway.json")],
        "env": {"SHOP_KEY": PLANTED[6], "OTHER": OF_CLIENT},
    }}});
    files.write("client.json", entry.to_string());
    let config = json!({
        "upstreams": {
            "notes": {
                "command": program,
                "args": ["mcp", "playback", files.path("refusing.ndjson")],
                "env": {"API_PASSWORD": PLANTED[0], "LOG_LEVEL": "debug", "KEY": "${env:SHOP_KEY}"},
            },
            "shop": {
                "command": "./missing",
                "args": ["--api-key", PLANTED[4], format!("--header=Authorization: Bearer {}", PLANTED[5]), "-y", "@shop/server@1.2", "/srv/data"],
            },
            "remote": {
                "url": format!("http://me:{}@127.0.0.1:9/hooks/{}/mcp?token={}", PLANTED[2], PLANTED[10], PLANTED[3]),
                "headers": {"Authorization": format!("Bearer {}", PLANTED[1]), "X-Key": "Bearer ${env:SHOP_KEY}"},
            },
        },
        "startup": {"min_healthy_upstreams": 0, "fail_on_empty_catalog": false},
        "diagnostics": "events.jsonl",
        "audit": {"file": "audit.jsonl"},
        "http": {"tokens": [
            {"name": "ci", "token": PLANTED[7]},
            {"name": "me", "token_file": "token"},
        ]},
    });
    files.write("gateway.json", config.to_string());
    let event = |caller: &str| {
        json!({"attributes": {"caller": caller, "code": "POLICY_DENIED"}, "duration_ms": 1.0, "event": "execute.failed",
            "namespace": null, "session_id": "s", "success": false, "timestamp": "2026-11-22T12:00:00.000000+00:00",
            "tool_id": null, "version": 1})
    };
    let callers = ["early", PLANTED[0], PLANTED[9], OF_CLIENT];
    let events: Vec<String> = callers.iter().map(|caller| format!("{}\n", event(caller))).collect();
    files.write("events.jsonl", events.concat() + "{\"torn\": \"" + PLANTED[3]);
    files.write("audit.jsonl", format!("{}\n", json!({"note": PLANTED[7], "caller": "ci"})));
    files
}

/// The files of a pack, by name.
fn unpacked(files: &Files, name: &str) -> Vec<(String, String)> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(files.path(name)).unwrap()).unwrap();
    let names: Vec<String> = archive.file_names().map(|name| name.unwrap().into_owned()).collect();
    let read = |name: String| {
        let mut text = String::new();
        archive.by_name(&name).unwrap().read_to_string(&mut text).unwrap();
        (name, text)
    };
    names.into_iter().map(read).collect()
}

#[test]
fn a_support_pack_has_what_is_needed_and_no_secret() {
    let files = troubled();
    let environment = [("DEPLOY_SECRET", PLANTED[9]), ("SHOP_KEY", PLANTED[6]), ("HOME", "/nowhere/to/be/found")];
    let pack = ["mcp", "incident-pack", "--config", "gateway.json", "--client", "client.json", "--out", "pack.zip"];
    let run = files.run_with(&[&pack[..], &["--lines", "4"]].concat(), &environment);
    assert_eq!(run.code, 0, "{}", run.shown());
    let raw = std::fs::read(files.path("pack.zip")).unwrap();
    assert!(!String::from_utf8_lossy(&raw).contains("lanted"));
    let found = unpacked(&files, "pack.zip");
    for (name, text) in &found {
        for secret in PLANTED {
            assert!(!text.contains(secret), "{name} holds {secret}: {text}");
        }
        assert!(!text.contains("lanted"), "{name}: {text}");
    }
    let text = |name: &str| &found.iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("{name}")).1;
    let manifest: Value = serde_json::from_str(text("manifest.json")).unwrap();
    for entry in manifest["files"].as_array().unwrap() {
        let text = text(entry["name"].as_str().unwrap());
        assert_eq!(entry["bytes"], text.len(), "{entry}");
        assert_eq!(entry["sha256"], contextweaver::text::sha256_hex(text.as_bytes()), "{entry}");
    }
    assert_eq!(manifest["files"].as_array().unwrap().len() + 1, found.len());
    assert_eq!(manifest["kind"], "mcp incident-pack");
    let doctor = text("doctor.json");
    assert!(
        doctor.contains("(removed)") && doctor.contains("${env:SHOP_KEY}"),
        "what the server said is there: {doctor}"
    );
    let place = files.path("").display().to_string();
    let place = place.trim_end_matches('/');
    let shown = |text: &str| text.replace(place, "FOLDER").replace(env!("CARGO_BIN_EXE_contextweaver"), "PROGRAM");
    insta::assert_snapshot!(shown(
        &["configuration.json", "events.jsonl", "audit.jsonl", "stats.json",]
            .map(|name| format!("{name}\n{}", text(name)))
            .join("\n")
    ));
    let listed: Vec<String> = run
        .stdout
        .lines()
        .map(|line| match line.split_once("  ") {
            Some((_, rest)) if line.starts_with("    ") => {
                format!("{}\n", rest.trim_start().split_once("  ").unwrap().1)
            }
            _ => format!("{line}\n"),
        })
        .collect();
    insta::assert_snapshot!(shown(&listed.concat()));

    let before = files.names();
    let again = files.run_with(&pack, &environment);
    insta::assert_snapshot!(again.shown(), @r"
    exit 2
    error: --out: pack.zip exists and is not replaced; name another file
    ");
    assert_eq!((std::fs::read(files.path("pack.zip")).unwrap(), files.names()), (raw, before));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = files.path("pack.zip").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
}

#[test]
fn a_support_pack_is_made_of_what_there_is() {
    let files = Files::new();
    files.write(
        "gateway.json",
        json!({"upstreams": {"a": {"command": "x", "passphrase": PLANTED[0], "weight": 3}}}).to_string(),
    );
    files.write("broken.yaml", format!("upstreams: {{a: {}", PLANTED[1]));
    let mut told = String::new();
    for (config, out) in [
        ("gateway.json", "one.zip"),
        ("broken.yaml", "two.zip"),
        ("missing.yaml", "three.zip"),
        ("gateway.json", "nowhere/four.zip"),
    ] {
        let run = files.run(&["mcp", "incident-pack", "--no-start", "--config", config, "--out", out]);
        told += &format!("{config}\n{}\n", run.shown());
    }
    let found = unpacked(&files, "one.zip");
    let configuration = &found.iter().find(|(name, _)| name == "configuration.json").unwrap().1;
    assert!(found.iter().chain(&unpacked(&files, "two.zip")).all(|(_, text)| !text.contains("planted")), "{found:?}");
    assert_eq!(files.names(), ["broken.yaml", "gateway.json", "one.zip", "two.zip"]);
    insta::assert_snapshot!(told + configuration);
}

/// A line of a file of events, of so many seconds ago.
fn event(ago: u64, code: Option<&str>) -> String {
    let time = time::OffsetDateTime::now_utc() - Duration::from_secs(ago);
    let (date, clock) = (time.date(), time.time());
    let timestamp = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}+00:00",
        date.year(),
        u8::from(date.month()),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second(),
        clock.microsecond()
    );
    let name = if code.is_some() { "execute.failed" } else { "execute.completed" };
    let attributes = code.map_or_else(|| json!({}), |code| json!({ "code": code }));
    let event = json!({"attributes": attributes, "duration_ms": 2.5, "event": name, "namespace": "a",
        "session_id": format!("session-of-{ago}"), "success": code.is_none(), "timestamp": timestamp, "tool_id": "a:b",
        "version": 1});
    format!("{event}\n")
}

#[test]
fn figures_are_of_a_time() {
    let files = Files::new();
    files.write("events.jsonl", [event(90_000, None), event(3_000, Some("POLICY_DENIED")), event(10, None)].concat());
    let stats = |more: &[&str]| {
        let run = files.run(&[&["mcp", "stats", "--events", "events.jsonl", "--format", "json"], more].concat());
        assert_eq!(run.code, 0, "{}", run.shown());
        serde_json::from_str::<Value>(&run.stdout).unwrap()
    };
    let counts = ["2d", "1h", "90s", "5s"].map(|window| {
        let found = stats(&["--window", window]);
        assert!(found["since"].is_string(), "{found}");
        let rows =
            ["call", "session"].map(|by| stats(&["--window", window, "--by", by])["items"].as_array().unwrap().len());
        (found["events"].as_u64().unwrap(), found["errors"].as_object().unwrap().len(), rows)
    });
    assert_eq!(counts, [(3, 1, [3, 3]), (2, 1, [2, 2]), (1, 0, [1, 1]), (0, 0, [0, 0])]);
    let all = stats(&[]);
    assert_eq!((&all["events"], &all["since"]), (&json!(3), &Value::Null));
    let refused: Vec<String> = ["1", "1w", "h", "0s", "-1h", "999999d", "1.5h", ""]
        .map(|window| {
            let flag = format!("--window={window}");
            let run = files.run(&["mcp", "stats", "--events", "events.jsonl", &flag]);
            format!("{window}: exit {}, {}", run.code, run.stderr.lines().next().unwrap_or_default())
        })
        .to_vec();
    insta::assert_snapshot!(refused.join("\n"));
}

/// A command that follows something, with its output line by line.
struct Following {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Following {
    fn start(files: &Files, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_contextweaver"))
            .args(arguments)
            .current_dir(files.path(""))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, lines) = std::sync::mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Self { child, lines }
    }

    /// Lines up to one with this text.
    fn until(&self, text: &str) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(20));
            let line = line.unwrap_or_else(|_| panic!("no line with `{text}` in {seen:#?}"));
            let is_it = line.contains(text);
            assert!(!line.contains('\u{1b}'), "{line:?}");
            seen.push(line);
            if is_it {
                return seen;
            }
        }
    }

    /// Ends it as Ctrl-C does: the exit code, and what it said on standard error.
    #[cfg(unix)]
    fn interrupt(mut self) -> (Option<i32>, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let code = self.child.wait().unwrap().code();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (code, said)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
#[test]
fn a_view_follows_a_file_of_events_until_it_is_interrupted() {
    use std::io::Write;
    let files = Files::new();
    let watch = ["mcp", "stats", "--events", "events.jsonl", "--watch", "--interval", "1"];
    // The gateway has not made its file yet.
    let following = Following::start(&files, &watch);
    following.until("0 events of 0 sessions");
    files.write("events.jsonl", event(5_000, None) + &event(1, None));
    let first = following.until("a:b   ");
    assert_eq!(first.iter().filter(|line| line.contains("1 event of 1 session")).count(), 1, "{first:#?}");
    let mut file = std::fs::File::options().append(true).open(files.path("events.jsonl")).unwrap();
    file.write_all(event(2, Some("UPSTREAM_TIMEOUT")).as_bytes()).unwrap();
    following.until("2 events of 2 sessions");
    following.until("  UPSTREAM_TIMEOUT");
    assert_eq!(following.interrupt(), (Some(0), String::new()));

    // Nor does it follow anything for nobody.
    let mut unread = files.start(&watch);
    drop(unread.stdout.take());
    assert_eq!(unread.wait().unwrap().code(), Some(0));

    let following = Following::start(&files, &[&watch[..], &["--window", "1h", "--format", "json"]].concat());
    let line = following.until("{").remove(0);
    let seen: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&seen["kind"], &seen["events"]), (&json!("mcp stats"), &json!(2)));
    assert_eq!(seen["last_calls"].as_array().unwrap().len(), 2);
    assert_eq!(following.interrupt(), (Some(0), String::new()));

    std::fs::create_dir(files.path("folder")).unwrap();
    let refused = [
        &["stats", "--events", "folder", "--watch"][..],
        &["stats", "--events", "events.jsonl", "--watch", "--by", "call"],
        &["stats", "--url", "http://127.0.0.1:9", "--window", "1h"],
        &["stats", "--events", "events.jsonl", "--interval", "1"],
        &["status", "--url", "http://127.0.0.1:9", "--watch"],
    ]
    .map(|arguments| {
        let run = files.run(&[&["mcp"], arguments].concat());
        format!("{}: exit {}, {}", arguments.join(" "), run.code, run.stderr.lines().next().unwrap_or_default())
    });
    insta::assert_snapshot!(refused.join("\n"));
}

#[cfg(unix)]
#[test]
fn a_view_follows_a_running_gateway() {
    let files = Files::new();
    files.write("tools.json", crate::support::TOOLS);
    let serve = |listen: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_contextweaver"))
            .args(["mcp", "serve", "--catalog", "tools.json", "--transport", "http", "--listen", listen])
            .current_dir(files.path(""))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = log.find_map(|line| Some(line.unwrap().strip_prefix("listening at ")?.to_owned())).unwrap();
        std::thread::spawn(move || log.for_each(drop));
        (child, url)
    };
    let (mut gateway, url) = serve("127.0.0.1:0");
    let once = files.run(&["mcp", "stats", "--url", &url]);
    assert!(once.stdout.starts_with("0 sessions, of 0 so far; requests served now: 0\n"), "{}", once.shown());
    assert!(!once.stdout.contains("tokens of") && !once.stdout.contains("spared"), "{}", once.shown());
    let status = Following::start(&files, &["mcp", "status", "--url", &url, "--watch", "--interval", "1"]);
    let stats =
        Following::start(&files, &["mcp", "stats", "--url", &url, "--watch", "--interval", "1", "--format", "json"]);
    status.until("ready");
    stats.until("\"kind\":\"mcp stats url\"");
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    status.until("/healthz");
    stats.until("\"kind\":\"error\"");
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let (mut gateway, _) = serve(address);
    status.until("ready");
    stats.until("\"kind\":\"mcp stats url\"");
    for following in [status, stats] {
        assert_eq!(following.interrupt(), (Some(0), String::new()));
    }
    gateway.kill().unwrap();
    gateway.wait().unwrap();
}

#[test]
fn each_demo_ends_within_half_a_minute() {
    const BOUND: Duration = Duration::from_secs(30);
    // As the help lists them, so that a new one is held to it too.
    let help = Files::new().run(&["demo", "--help"]).stdout;
    let named = |line: &str| Some(line.trim().strip_prefix("- ")?.split_once(':')?.0.to_owned());
    let demos: Vec<String> = help.lines().filter_map(named).collect();
    assert!(demos.len() >= 4, "the help lists only {demos:?}");
    for demo in &demos {
        let start = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_contextweaver"))
            .args(["demo", demo])
            .current_dir(checkout())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > BOUND {
                let _ = child.kill();
                let _ = child.wait();
                panic!("`demo {demo}` takes longer than {BOUND:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let took = start.elapsed();
        assert!(status.success() && took <= BOUND, "`demo {demo}`: {status} after {took:?}");
    }
}
