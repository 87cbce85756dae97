//! The commands around the gateway, in front of a server that is itself a replayed session.

use crate::support::{Files, Run, TOOLS};

/// A session with a server of two tools.
const SESSION: &str = r#"{"seq":1,"direction":"client","message":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}}
{"seq":2,"direction":"server","message":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"notes","version":"1"}}}}
{"seq":3,"direction":"client","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}
{"seq":4,"direction":"server","message":{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read","description":"Read a note.","inputSchema":{"type":"object"},"x":1.0e0},{"name":"find.all","description":"Find notes.","inputSchema":{"type":"objekt"}}]}}}
"#;

/// A folder with a gateway in front of that server.
pub(crate) fn files() -> Files {
    let files = Files::new();
    files.write("session.ndjson", SESSION);
    let config = format!(
        "{{\"upstreams\": {{\"notes\": {{\"command\": {:?}, \"args\": [\"mcp\", \"playback\", {:?}]}}}}}}",
        env!("CARGO_BIN_EXE_contextweaver"),
        files.path("session.ndjson")
    );
    files.write("gateway.json", config);
    files
}

/// What `mcp preview` prints, without the tokens of the gateway's own tools: their wording is not tested here.
fn previewed(files: &Files, source: [&str; 2]) -> String {
    let shown = files.run(&["mcp", "preview", source[0], source[1]]).shown();
    let line = |line: &str| match (line.split_once(": "), line.split_once(" tokens for ")) {
        (Some((mode, _)), Some((_, rest))) => format!("{mode}: N tokens for {rest}\n"),
        _ => format!("{line}\n"),
    };
    shown.lines().map(line).collect()
}

/// An address that must not be listened at is refused before any server is started.
#[cfg(unix)]
#[test]
fn a_refused_address_starts_no_server() {
    let files = Files::new();
    let config = r#"{"upstreams": {"a": {"command": "sh", "args": ["-c", "echo > started; exec cat"], "cwd": "."}}}"#;
    files.write("gateway.json", config);
    let serve = |more: &[&str]| files.run(&[&["mcp", "serve", "--config", "gateway.json"], more].concat()).shown();
    insta::assert_snapshot!(serve(&["--transport", "http", "--listen", "0.0.0.0:0"]), @r"
    exit 2
    error: `0.0.0.0:0` can be reached from other machines, and no token is set; give it one with --token-file (in a configuration: `http.tokens`, `http.token`, `http.token_file`, `http.oauth` or `http.tls.client_ca`), or listen on 127.0.0.1
    ");
    insta::assert_snapshot!(serve(&["--console", "0.0.0.0:0"]), @r"
    exit 2
    error: --console
      caused by: `0.0.0.0:0` can be reached from other machines; use 127.0.0.1, or pass `--console-remote` if that is intended
    ");
    assert_eq!(files.names(), ["gateway.json"]);
}

#[test]
fn an_address_that_cannot_be_used_is_said_to_be_so() {
    let files = files();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let named = taken.replace("127.0.0.1", "localhost");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let serve = ["mcp", "serve", "--config", "gateway.json", "--transport", "http", "--listen"];
    let mut shown = String::new();
    for run in [
        &[&serve as &[&str], &[&*taken]].concat() as &[&str],
        &[&serve as &[&str], &[&*named]].concat(),
        &[&serve as &[&str], &["18101"]].concat(),
        &["serve", "--listen", &taken],
        &["mcp", "health", "--url", &free],
    ] {
        let told = files.run(run).shown();
        let told = told.split("\n  caused by: error sending").next().unwrap();
        let told = told.replace(&taken, "TAKEN").replace(&free, "FREE");
        shown.push_str(told.trim_end());
        shown.push_str("\n\n");
    }
    insta::assert_snapshot!(shown, @"
    exit 2
    error: cannot listen on `TAKEN`: Address already in use (os error 98); another program uses this port: choose another with --listen ADDRESS:PORT

    exit 2
    error: cannot listen on `TAKEN`: Address already in use (os error 98); another program uses this port: choose another with --listen ADDRESS:PORT

    exit 2
    error: invalid value '18101' for '--listen <ADDRESS:PORT>': write an IP address and a port, such as 127.0.0.1:8100

    For more information, try '--help'.

    exit 2
    error: cannot listen on `TAKEN`: Address already in use (os error 98); another program uses this port: choose another with --listen ADDRESS:PORT

    exit 2
    error: no gateway answers at FREE; start one with `contextweaver mcp serve --transport http --listen FREE`, or on standard streams with `--console FREE`, or give its address with --url
      caused by: http://FREE/healthz
    ");
}

#[test]
fn what_a_server_lists_is_saved_and_served() {
    let files = files();
    let program = env!("CARGO_BIN_EXE_contextweaver");
    let capture = ["mcp", "capture", "--out", "notes.json", "--", program, "mcp", "playback", "session.ndjson"];
    let mut shown = vec![files.run(&capture).shown(), std::fs::read_to_string(files.path("notes.json")).unwrap()];
    shown.push(files.run(&capture).shown());
    shown.push(previewed(&files, ["--catalog", "notes.json"]));
    shown.push(files.run(&["mcp", "capture", "--out", "x.json", "--", "no-such-program"]).shown());
    shown.push(files.run(&["mcp", "capture", "--out", "x.json"]).shown());
    assert_eq!(files.names(), ["gateway.json", "notes.json", "session.ndjson"]);
    insta::assert_snapshot!(shown.join("\n"), @r#"
    exit 0
    notes.json: 2 tools, 0 resources, 0 templates, 0 prompts of `notes`

    {
    "server": "notes",
    "serverInfo": {"name":"notes","version":"1"},
    "tools": [
    {"name":"read","description":"Read a note.","inputSchema":{"type":"object"},"x":1.0e0},
    {"name":"find.all","description":"Find notes.","inputSchema":{"type":"objekt"}}
    ],
    "resources": [],
    "resourceTemplates": [],
    "prompts": []
    }

    exit 2
    error: notes.json already exists; name another file, or overwrite it with --force

    exit 0
    2 tools, 0 resources, 0 prompts; 0 definitions left out
    mode gateway: N tokens for 3 listed tools, where all definitions take 37 (cl100k_base)
    for so few tools it costs more tokens than it saves; `mode: passthrough` adds none

      tokens   tools  namespace
          37       2  notes

      tokens  tool
          19  notes:find.all#3d3da7cd
          18  notes:read#5fdc4b3f

    served, with findings in their schemas
      notes:find.all#3d3da7cd: inputSchema: /type: "objekt" is not a type of JSON Schema

    exit 2
    error: the server did not return its lists
      caused by: `no-such-program` cannot be started: it is not a program on the PATH; install it, or write its full path

    exit 2
    error: name a program after `--`, or an address with --url
    "#);
}

#[test]
#[cfg(unix)]
fn why_a_server_ended_is_shown_without_secrets() {
    let files = Files::new();
    let script = "echo \"no such package; key $KEY\" >&2; printf '\\033[31mgive another name\\033[0m\\n' >&2; exit 1";
    let config = serde_json::json!({"upstreams": {"a": {"command": "sh", "args": ["-c", script], "env": {"KEY": "${env:A_KEY}"}}}});
    files.write("gateway.json", config.to_string());
    let run = |words: &[&str]| files.run_with(&[&["mcp"], words].concat(), &[("A_KEY", "hunter2-of-a")]).shown();
    let mut shown = String::new();
    for words in [
        &["doctor", "--config", "gateway.json"] as &[&str],
        &["capture", "--out", "x.json", "--", "sh", "-c", "echo oh no >&2; exit 4"],
        &["serve", "--config", "gateway.json", "--dry-run"],
    ] {
        for line in run(words).lines().filter(|line| !line.contains("the connection is lost")) {
            shown.push_str(line.split_once("serving: ").map_or(line, |(_, line)| line));
            shown.push('\n');
        }
        shown.push('\n');
    }
    insta::assert_snapshot!(shown, @"
    exit 1
    a: does not work
      not in a sandbox: it may do whatever the gateway's user may
    error: upstreams.a: the process has ended (exit status: 1); it printed: no such package; key ${env:A_KEY} / give another name
      fix what it says, or start it by hand with the same arguments
    1 error, 0 warnings, 0 notes
    next, when that is fixed: contextweaver mcp doctor --config gateway.json

    exit 2
    error: the server did not return its lists
      caused by: the process has ended (exit status: 4); it printed: oh no

    exit 2
    error: the gateway did not start
      caused by: 0 of 1 upstreams started, but `startup.min_healthy_upstreams` is 1: a: the process has ended (exit status: 1); it printed: no such package; key ${env:A_KEY} / give another name
    ");
}

/// A look at servers of which none starts fails as serving them does, and gives no advice about tokens.
#[test]
fn nothing_is_previewed_where_nothing_starts() {
    let files = Files::new();
    let unset = r#"{"command": "sh", "env": {"K": "${env:NOT_THERE}"}}"#;
    files.write("gateway.json", format!(r#"{{"upstreams": {{"a": {unset}}}}}"#));
    let allowed = format!(
        r#"{{"upstreams": {{"a": {unset}}}, "startup": {{"min_healthy_upstreams": 0, "fail_on_empty_catalog": false}}}}"#
    );
    files.write("allowed.json", allowed);
    let mut shown = Vec::new();
    for words in [
        &["preview", "--config", "gateway.json"][..],
        &["preview", "--config", "gateway.json", "--format", "json"],
        &["serve", "--config", "gateway.json", "--dry-run"],
    ] {
        shown.push(files.run(&[&["mcp"], words].concat()).shown());
    }
    insta::assert_snapshot!(shown.join("\n"), @r#"
    exit 2
    error: the gateway did not start; contextweaver mcp doctor --config gateway.json says what to fix
      caused by: 0 of 1 upstreams started, but `startup.min_healthy_upstreams` is 1: a: the variable `NOT_THERE` is not set; set it in the gateway's environment and start it again

    exit 2
    {"schema_version":1,"kind":"error","message":"the gateway did not start; contextweaver mcp doctor --config gateway.json says what to fix\n  caused by: 0 of 1 upstreams started, but `startup.min_healthy_upstreams` is 1: a: the variable `NOT_THERE` is not set; set it in the gateway's environment and start it again"}

    exit 2
    error: the gateway did not start
      caused by: 0 of 1 upstreams started, but `startup.min_healthy_upstreams` is 1: a: the variable `NOT_THERE` is not set; set it in the gateway's environment and start it again
    "#);
    let allowed = files.run(&["mcp", "preview", "--config", "allowed.json"]);
    assert_eq!(allowed.code, 0, "{}", allowed.shown());
    assert!(
        !allowed.stdout.contains("passthrough") && allowed.stdout.contains("a: the variable `NOT_THERE` is not set")
    );
}

/// A server that colours a part of a secret, divides it into lines and breaks off in it, which ends whatever it is asked.
#[test]
#[cfg(unix)]
fn a_secret_that_a_server_prints_in_parts_is_covered_and_its_end_is_told_once() {
    let files = Files::new();
    let script = r#"
h=${1%+*}; t=${1#"$h"}
printf '%s\033[0m%s\nbad %s\n%s\nbegin %s\n' "$h" "$t" "$h" "$t" "${1%chars9}" >&2
exit 4
"#;
    files.write("server.sh", script);
    let config = r#"{"upstreams": {"a": {"command": "sh", "args": ["./server.sh", "${env:A_KEY}"]}}}"#;
    files.write("gateway.json", config);
    for words in [&["doctor"] as &[&str], &["serve", "--dry-run"], &["preview"]] {
        let words = [&["mcp"], words, &["--config", "gateway.json"]].concat();
        let shown = files.run_with(&words, &[("A_KEY", "s3cr3t/Value+with=odd&chars9")]).shown();
        let said = "exit status: 4); it printed: ${env:A_KEY} / bad ${env:A_KEY} / begin ${env:A_KEY}…";
        assert!(shown.contains(said) && !shown.contains("s3cr3t") && !shown.contains("chars9"), "{words:?}: {shown}");
        assert_eq!(shown.matches("the connection is lost").count(), 1, "{words:?}: {shown}");
    }
}

#[test]
fn a_configuration_is_previewed_and_examined() {
    let files = files();
    let previewed = previewed(&files, ["--config", "gateway.json"]);
    let examined = files.run(&["mcp", "doctor", "--config", "gateway.json", "--notes"]).shown();
    let milliseconds = |line: &str| match line.split_once("started in ") {
        Some((before, _)) => format!("{before}started in N ms"),
        None => line.to_owned(),
    };
    let examined: Vec<String> = examined.lines().map(milliseconds).collect();
    insta::assert_snapshot!(previewed, @r#"
    exit 0
    2 tools, 0 resources, 0 prompts; 0 definitions left out
    mode gateway: N tokens for 3 listed tools, where all definitions take 37 (cl100k_base)
    for so few tools it costs more tokens than it saves; `mode: passthrough` adds none

    upstreams
      notes: 2 tools, 0 resources, 0 prompts; speaks 2025-11-25

      tokens   tools  namespace
          37       2  notes

      tokens  tool
          19  notes:find.all#3d3da7cd
          18  notes:read#5fdc4b3f

    served, with findings in their schemas
      notes:find.all#3d3da7cd: inputSchema: /type: "objekt" is not a type of JSON Schema
    next, if you want the gateway all the same: contextweaver mcp import FILE --write gateway.json --apply, where FILE is the client's file that the servers come from; for servers of none: contextweaver mcp import --show-client CLIENT
    "#);
    insta::assert_snapshot!(examined.join("\n"), @r#"
    exit 1
    notes: 2 tools, 0 resources, 0 prompts; speaks 2025-11-25; started in N ms
      not in a sandbox: it may do whatever the gateway's user may
    a client sees 3 tools of 794 tokens (mode gateway) instead of 2 tools of 37 tokens
      for so few tools it costs more tokens than it saves; `mode: passthrough` adds none
    error: upstreams.notes: find.all: its argument schema is not valid at /type: "objekt" is not a type of JSON Schema
      tell the server's author, or list it in `exclude_tools`
    note: upstreams.notes: find.all: its argument schema does not say "type": "object"
      nothing to do: this mode shows a different schema
    note: upstreams.notes: find.all: some clients refuse its name: it is not 1 to 64 characters of A-Z a-z 0-9 _ -
      the modes gateway and proxy show it under a name that all accept
    1 error, 0 warnings, 2 notes
    next, when that is fixed: contextweaver mcp doctor --config gateway.json
    "#);
    insta::assert_snapshot!(files.run(&["mcp", "doctor", "--config", "none.yaml"]).shown(), @r"
    exit 2
    error: none.yaml: there is no such file; name a file that exists, or create one with `mcp import --write` or `mcp add`
    ");
}

#[test]
fn a_clients_file_and_a_wrong_field_are_named_as_such() {
    let files = Files::new();
    files.write("mcp.json", r#"{"mcpServers": {"a": {"command": "a"}}}"#);
    files.write("wrong.yaml", "upstream: {a: {command: a}}\n");
    files.write("empty.yaml", "{}\n");
    let mut shown = String::new();
    for run in [
        &["serve", "--config", "mcp.json"] as &[&str],
        &["doctor", "--config", "mcp.json"],
        &["serve", "--config", "wrong.yaml"],
        &["serve", "--config", "empty.yaml"],
        &["doctor", "--config", "empty.yaml"],
    ] {
        let run = files.run(&[&["mcp"], run].concat()).shown();
        let told = run.split_once("; expected one of mode").map_or(&*run, |(before, _)| before);
        let told = told.split_once(" expected one of mode").map_or(told, |(before, _)| before);
        shown.push_str(told.trim_end());
        shown.push_str("\n\n");
    }
    insta::assert_snapshot!(shown, @"
    exit 2
    error: mcp.json: this is the file of a client, not the configuration of a gateway; convert it: contextweaver mcp import mcp.json --write gateway.yaml

    exit 1
    error: mcp.json: this is the file of a client, not the configuration of a gateway; convert it: contextweaver mcp import mcp.json --write gateway.yaml
      name the configuration that this writes with --config
    1 error, 0 warnings, 0 notes
    next, when that is fixed: contextweaver mcp doctor --config mcp.json

    exit 2
    error: wrong.yaml: line 1, column 1: unknown field `upstream`; did you mean `upstreams`?

    exit 2
    error: the gateway did not start
      caused by: the configuration lists no servers under `upstreams`; add one: contextweaver mcp add NAME -- COMMAND

    exit 1
    error: empty.yaml: there is nothing to serve
      add a server with `mcp add NAME -- COMMAND`, or import a client's servers with `mcp import`
    1 error, 0 warnings, 0 notes
    next, when that is fixed: contextweaver mcp doctor --config empty.yaml
    ");
}

/// A diagnosis is of servers that others wrote, and goes to others: it is text, without secrets and whole.
#[test]
fn a_diagnosis_is_a_page() {
    let files = files();
    let hostile = "<script>alert('&')</script>";
    files.write("session.ndjson", SESSION.replace("find.all", hostile));
    let mut config: serde_json::Value =
        serde_json::from_slice(&std::fs::read(files.path("gateway.json")).unwrap()).unwrap();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    config["upstreams"]["<b>shop"] =
        serde_json::json!({"command": "no-such-program --key hunter2-planted", "env": {"SHOP_TOKEN": token}});
    files.write("gateway.json", config.to_string());
    let before = files.names();
    let doctor = |more: &[&str]| files.run(&[&["mcp", "doctor", "--config", "gateway.json"], more].concat());

    let run = doctor(&["--html", "doctor.html"]);
    assert!(run.code == 1 && run.stderr.starts_with("wrote doctor.html\n"), "{}", run.shown());
    let told = doctor(&[]);
    // But for the time of the start.
    let without_times = |text: &str| -> String {
        text.split("started in ").map(|part| part.trim_start_matches(char::is_numeric)).collect()
    };
    assert_eq!(without_times(&run.stdout), without_times(&told.stdout));
    let page = files.page("doctor.html");
    for never in ["<script", "<b>shop", "('&')", token.as_str(), "hunter2", "http", "<img", "<link"] {
        assert!(!page.contains(never), "{never}: {page}");
    }
    let rows =
        page.lines().filter(|line| line.starts_with("<tr><th scope=\"row\"") || line.contains("class=\"verdict\""));
    let rows: Vec<String> = rows
        .map(|row| match row.split_once("<td>2025-11-25</td><td class=\"n\">") {
            Some((before, after)) => {
                format!("{before}<td>2025-11-25</td><td class=\"n\">N<{}", after.split_once('<').unwrap().1)
            }
            None => row.to_owned(),
        })
        .collect();
    insta::assert_snapshot!(rows.join("\n"), @r##"
    <p class="verdict"><strong>2 errors</strong>, 1 warning, 2 notes. 1 of 2 servers works.</p>
    <tr><th scope="row">&lt;b&gt;shop</th><td>does not work</td><td>–</td><td class="n">–</td><td class="n">–</td><td class="n">–</td><td class="n">–</td><td class="n">–</td></tr>
    <tr><th scope="row">notes</th><td>works</td><td>2025-11-25</td><td class="n">N</td><td class="n">2</td><td class="n">0</td><td class="n">0</td><td class="n">42</td></tr>
    <tr><th scope="row">&lt;b&gt;shop</th><td>not in a sandbox: it may do whatever the gateway&#39;s user may</td></tr>
    <tr><th scope="row">notes</th><td>not in a sandbox: it may do whatever the gateway&#39;s user may</td></tr>
    <tr><th scope="row">upstreams.&lt;b&gt;shop.command</th><td>`no-such-program …` is not a program</td><td>move everything after the program into `args`</td></tr>
    <tr><th scope="row">upstreams.notes: &lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;</th><td>its argument schema is not valid at /type: &quot;objekt&quot; is not a type of JSON Schema</td><td>tell the server&#39;s author, or list it in `exclude_tools`</td></tr>
    <tr><th scope="row">gateway.json</th><td>contains what looks like a secret (github_token, 1 time)</td><td>move it to the environment and write `${env:NAME}` in its place</td></tr>
    <tr><th scope="row">upstreams.notes: &lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;</th><td>its argument schema does not say &quot;type&quot;: &quot;object&quot;</td><td>nothing to do: this mode shows a different schema</td></tr>
    <tr><th scope="row">upstreams.notes: &lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;</th><td>some clients refuse its name: it is not 1 to 64 characters of A-Z a-z 0-9 _ -</td><td>the modes gateway and proxy show it under a name that all accept</td></tr>
    "##);

    let json = doctor(&["--html", "again.html", "--format", "json"]);
    let found: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&found["kind"], json.stderr.as_str()), (&"mcp doctor".into(), "wrote again.html\n"));
    let tokens: u64 =
        found["upstreams"].as_array().unwrap().iter().map(|server| server["tokens"].as_u64().unwrap()).sum();
    assert_eq!(found["outlook"]["tokens"], tokens, "{found}");
    for name in ["doctor.html", "again.html"] {
        std::fs::remove_file(files.path(name)).unwrap();
    }

    // What cannot be written is refused before a server is started.
    files.write("client.json", "{}");
    for (path, expected) in [
        ("gateway.json", "--html gateway.json would write over gateway.json of --config"),
        ("client.json", "--html client.json would write over client.json of --client"),
        ("none/x.html", "--html: the file cannot be written; name one in a folder that exists"),
    ] {
        let run = doctor(&["--client", "client.json", "--html", path]);
        assert!(run.code == 2 && run.stdout.is_empty() && run.stderr.contains(expected), "{expected}: {}", run.shown());
    }
    std::fs::remove_file(files.path("client.json")).unwrap();
    assert_eq!(files.names(), before);
}

#[test]
fn servers_of_a_client_are_imported_without_their_secrets() {
    let files = files();
    let client = r#"{"mcpServers": {
        // the forge
        "forge": {"command": "npx", "args": ["-y", "forge-mcp"], "env": {"FORGE_TOKEN": "hunter2", "LOG": "debug"}},
        "contextweaver": {"command": "contextweaver", "args": ["mcp", "serve", "--config", "x.yaml"]},
    }}"#;
    files.write("claude_desktop_config.json", client);
    let import = ["mcp", "import", "claude_desktop_config.json"];
    let mut shown = vec![files.run(&import).shown()];
    shown.push(files.run(&[&import[..], &["--write", "gateway.yaml"]].concat()).shown());
    shown.push(std::fs::read_to_string(files.path("gateway.yaml")).unwrap());
    shown.push(files.run(&[&import[..], &["--write", "gateway.yaml"]].concat()).shown());
    files.write("broken.json", "{\n  // no\n  \"mcpServers\": {\"a\" 1}\n}");
    shown.push(files.run(&["mcp", "import", "broken.json"]).shown());
    files.write("empty.json", r#"{"mcpServers": {"a": {"args": ["x"]}, "b": {"type": "sse"}}}"#);
    shown.push(files.run(&["mcp", "import", "empty.json"]).shown());
    let shown = shown.join("\n");
    assert!(!shown.contains("hunter2"));
    insta::assert_snapshot!(shown, @r"
    exit 0
    forge (claude-desktop, claude_desktop_config.json)
      npx -y forge-mcp FORGE_TOKEN=*** LOG=***
      note: the value of `FORGE_TOKEN` may be a secret: `mcp import --apply` moves it into the gateway's entry in the client's file; elsewhere, set FORGE_TOKEN to it in the gateway's environment
    contextweaver (claude_desktop_config.json) is left out: it is this gateway
    variables that the gateway needs: FORGE_TOKEN

    # the configuration; --write FILE writes it
    # yaml-language-server: $schema=gateway.schema.json
    # For completion in editors: contextweaver schema gateway > gateway.schema.json
    upstreams:
      forge:
        command: npx
        args:
        - -y
        - forge-mcp
        env:
          FORGE_TOKEN: ${env:FORGE_TOKEN}
          LOG: debug
    next: contextweaver mcp import claude_desktop_config.json --apply, which --restore undoes

    exit 0
    forge (claude-desktop, claude_desktop_config.json)
      npx -y forge-mcp FORGE_TOKEN=*** LOG=***
      note: the value of `FORGE_TOKEN` may be a secret: `mcp import --apply` moves it into the gateway's entry in the client's file; elsewhere, set FORGE_TOKEN to it in the gateway's environment
    contextweaver (claude_desktop_config.json) is left out: it is this gateway
    variables that the gateway needs: FORGE_TOKEN
    gateway.yaml: 1 server
    next: contextweaver mcp doctor

    # yaml-language-server: $schema=gateway.schema.json
    # For completion in editors: contextweaver schema gateway > gateway.schema.json
    upstreams:
      forge:
        command: npx
        args:
        - -y
        - forge-mcp
        env:
          FORGE_TOKEN: ${env:FORGE_TOKEN}
          LOG: debug

    exit 2
    error: gateway.yaml already exists; name another file, or overwrite it with --force

    exit 2
    error: broken.json: expected `:` at line 3 column 22

    exit 2
    a (empty.json) is left out: it has neither `command` nor `url`
    b (empty.json) is left out: it has no `url`
    error: no server can be imported
    ");
}

#[test]
fn a_file_that_was_named_is_found_again() {
    let files = Files::new();
    files.write("mcp.json", r#"{"mcpServers": {"a": {"command": "/no/such/a"}}}"#);
    let run = |words: &[&str]| {
        let home = files.path("home").display().to_string();
        files.run_with(&[&["mcp"], words].concat(), &[("HOME", &home)])
    };
    assert_eq!(run(&["import", "mcp.json", "--apply"]).code, 0);
    let config = std::fs::read_to_string(files.path("gateway.yaml")).unwrap() + "diagnostics: gateway.jsonl\n";
    files.write("gateway.yaml", config);
    let shown = [run(&["import", "--restore"]).shown(), run(&["stats"]).shown()];
    insta::assert_snapshot!(shown.join("\n"), @"
    exit 2
    error: no client's file has a backup of `mcp import --apply`; if you named a file then, name it again: contextweaver mcp import mcp.json --restore

    exit 2
    error: there are no calls yet: the gateway writes gateway.jsonl when a client uses it
    ");
    let config = std::fs::read_to_string(files.path("gateway.yaml")).unwrap().replace("/no/such/a", "sh");
    files.write("gateway.yaml", config);
    assert!(!run(&["preview"]).stderr.contains("--apply"));
}

/// A client starts the gateway in a folder of its own choice: the entry names program and configuration by their whole paths.
#[test]
fn the_entry_for_a_client_names_program_and_configuration() {
    use serde_json::Value;
    use std::path::Path;
    let files = files();
    let show = |client| ["mcp", "import", "--show-client", client, "--config", "gateway.json"];
    let run = crate::support::run_in(&files.path(""), &show("claude-desktop"));
    assert_eq!(run.code, 0, "{}", run.shown());
    let entry: Value = serde_json::from_str(&run.stdout).unwrap();
    let entry = &entry["mcpServers"]["contextweaver"];
    let is_whole_path_of = |value: &Value, file: &Path| {
        let path = Path::new(value.as_str().unwrap());
        path.is_absolute() && path.canonicalize().unwrap() == file.canonicalize().unwrap()
    };
    assert!(is_whole_path_of(&entry["command"], Path::new(env!("CARGO_BIN_EXE_contextweaver"))), "{entry}");
    let (config, words) = entry["args"].as_array().unwrap().split_last().unwrap();
    assert_eq!(words, ["mcp", "serve", "--config"]);
    assert!(is_whole_path_of(config, &files.path("gateway.json")), "{entry}");
    assert!(run.stderr.starts_with("put it into claude_desktop_config.json"), "{}", run.stderr);
    let unknown = files.run(&show("notepad"));
    assert!(unknown.code == 2 && unknown.stderr.contains("claude-desktop, cursor, vscode"), "{}", unknown.shown());
}

/// A home with two clients that have the same server, of which one has its secret.
fn two_clients() -> (Files, String) {
    let files = Files::new();
    let server =
        |env: &str| format!(r#"{{"mcpServers": {{"tickets": {{"command": "/no/such/tickets", "env": {env}}}}}}}"#);
    files.write("home/.config/Claude/claude_desktop_config.json", server(r#"{"TOKEN": "s3cret-of-claude"}"#));
    files.write("home/.cursor/mcp.json", r#"{"mcpServers": {"files": {"command": "/no/such/files"}}}"#);
    let home = files.path("home").display().to_string();
    (files, home)
}

#[test]
fn an_entry_works_as_it_is_pasted_and_has_no_value_of_another_client() {
    let (files, home) = two_clients();
    let run = |words: &[&str], more: &[(&str, &str)]| {
        files.run_with(&[&["mcp", "import"], words].concat(), &[&[("HOME", &*home)], more].concat())
    };
    assert_eq!(run(&["--write", "gateway.yaml"], &[]).code, 0);
    let here = [("TOKEN", "s3cret-of-mine")];
    for (words, variables, expected) in [
        (&["claude-desktop", "--without-values"][..], &[][..], "${env:TOKEN}"),
        (&["claude-desktop", "--without-values"], &here, "${env:TOKEN}"),
        (&["claude-code", "--without-values"], &here, "${TOKEN}"),
        (&["claude-desktop"], &here, "s3cret-of-claude"),
        (&["cursor"], &[], "${env:TOKEN}"),
        (&["cursor"], &here, "s3cret-of-mine"),
    ] {
        let shown = run(&[&["--show-client"], words].concat(), variables);
        assert_eq!(shown.code, 0, "{}", shown.shown());
        let entry: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
        let entry = &entry["mcpServers"]["contextweaver"];
        assert_eq!(entry["env"]["TOKEN"], expected, "{words:?}: {}", shown.shown());
        let is_value = expected.starts_with("s3cret");
        assert_eq!(
            shown.stdout.matches("s3cret").count(),
            usize::from(is_value) * shown.stdout.matches(expected).count()
        );
        assert!(!shown.stderr.contains("s3cret"), "{}", shown.stderr);
        assert_eq!(shown.stderr.contains("the entry has no value for TOKEN"), !is_value, "{}", shown.stderr);
        assert_eq!(shown.stderr.contains("values that may be secrets (TOKEN)"), is_value, "{}", shown.stderr);
    }
}

/// Where the servers of several clients come together, each of them is told so beforehand, and what does not work from it.
#[test]
fn clients_that_share_a_configuration_are_told_so() {
    let (files, home) = two_clients();
    let run = |words: &[&str]| files.run_with(&[&["mcp", "import"], words].concat(), &[("HOME", &home)]);
    const SHARED: &str = "with --apply, these clients share gateway.yaml: each sees all 2 servers";
    assert!(run(&[]).stderr.contains(SHARED));
    let one = "home/.cursor/mcp.json";
    assert!(!run(&[one]).stderr.contains("share"));
    let applied = run(&["--apply"]);
    assert_eq!(applied.code, 0, "{}", applied.shown());
    let (before, after) = applied.stdout.split_once(SHARED).unwrap();
    assert!(!before.contains("+ ") && after.contains("contextweaver"), "{}", applied.stdout);
    let said = "home/.cursor/mcp.json has no value for TOKEN: started from there, `tickets` will not work. Set it under `env` of \
                the entry `contextweaver` in that file, or in the environment that the client starts in. (Values are not copied \
                between files.)";
    assert!(applied.stderr.contains(said), "{}", applied.stderr);
    assert!(!applied.stderr.contains("claude_desktop_config.json has no value"), "{}", applied.stderr);
}

/// What `--apply` shows of a client's file, where the configuration has its server already.
#[test]
fn no_secret_of_a_client_is_shown_when_its_file_changes() {
    let files = files();
    let client =
        r#"{"mcpServers": {"forge": {"command": "npx", "args": ["forge-mcp"], "env": {"FORGE_TOKEN": "hunter2"}}}}"#;
    for had in [false, true] {
        files.write("claude_desktop_config.json", client);
        let _ = std::fs::remove_file(files.path("gateway.yaml"));
        let import = ["mcp", "import", "claude_desktop_config.json", "--write", "gateway.yaml"];
        if had {
            assert_eq!(files.run(&import).code, 0);
        }
        let applied = files.run(&[&import[..], &["--apply"]].concat());
        assert_eq!(applied.code, 0, "{}", applied.shown());
        let shown = applied.shown();
        assert!(shown.contains("\"FORGE_TOKEN\": \"***\"") && !shown.contains("hunter2"), "{had}: {shown}");
        assert!(std::fs::read_to_string(files.path("claude_desktop_config.json")).unwrap().contains("hunter2"));
        assert_eq!(files.run(&["mcp", "import", "claude_desktop_config.json", "--restore"]).code, 0);
    }
}

#[test]
fn events_are_counted() {
    let files = files();
    let event = |event: &str, success: bool, more: &str| {
        format!(
            "{{\"attributes\":{{{more}}},\"duration_ms\":2.5,\"event\":\"{event}\",\"namespace\":\"notes\",\"session_id\":\"a\",\"success\":{success},\"timestamp\":\"2026-11-22T12:00:00.000000+00:00\",\"tool_id\":\"notes:read#00000000\",\"version\":1}}\n"
        )
    };
    let lines = [
        event("execute.completed", true, ""),
        event("execute.failed", false, "\"code\":\"ARGS_INVALID\""),
        "torn\n".to_owned(),
        event("browse.completed", true, ""),
    ];
    files.write("events.jsonl", lines.concat());
    insta::assert_snapshot!(files.run(&["mcp", "events", "--events", "events.jsonl"]).shown(), @r"
    exit 0
    3 events of 1 session, 2026-11-22T12:00:00.000000+00:00 to 2026-11-22T12:00:00.000000+00:00

    event                count  success     p50 ms     p95 ms     max ms
    browse.completed         1  100.0 %      2.500      2.500      2.500
    execute.completed        1  100.0 %      2.500      2.500      2.500
    execute.failed           1    0.0 %      2.500      2.500      2.500

    tool                   count  success     p50 ms     p95 ms     max ms
    notes:read#00000000        2   50.0 %      2.500      2.500      2.500

    errors
            1  ARGS_INVALID

    1 line is not an event
      line 3: expected ident at column 2
    ");
    let counted = [
        event("catalog.loaded", true, "\"definition_tokens\":13102,\"surface_tokens\":795"),
        event("browse.completed", true, "\"answer_tokens\":400"),
        event("execute.completed", true, "\"answer_tokens\":300,\"result_tokens\":45678"),
    ];
    files.write("counted.jsonl", counted.concat());
    files.write(
        "gateway.yaml",
        "{diagnostics: counted.jsonl, price: {per_million_tokens: 3, currency: EUR}, catalog: x}",
    );
    let told = files.run(&["mcp", "stats", "--config", "gateway.yaml"]).shown();
    insta::assert_snapshot!(told.split("\nevent ").next().unwrap(), @r"
    exit 0
    3 events of 1 session, 2026-11-22T12:00:00.000000+00:00 to 2026-11-22T12:00:00.000000+00:00

           without            with  tokens of 1 session
            13,102             795  definitions
            45,678             300  results
                 0             400  searches and the rest
            58,780           1,495  all

    1 call: definitions 795 tokens instead of 13,102, results 300 instead of 45,678, searches and the rest 400; 57,285 fewer in all (97 %, EUR 0.17)
    ");
    let told = files.run(&["mcp", "stats", "--events", "counted.jsonl", "--price", "10"]).shown();
    assert!(told.contains("(97 %, $0.57)"), "{told}");
    insta::assert_snapshot!(files.run(&["mcp", "events", "--events", "none.jsonl"]).shown(), @"
    exit 2
    error: none.jsonl: there is no such file
    ");
}

#[test]
fn what_a_gateway_did_is_a_page() {
    use serde_json::json;
    let files = files();
    let hostile = "notes:<script>alert('&')</script>#00000000";
    let event = |event: &str, tool: &str, attributes: &serde_json::Value| {
        let line = json!({"attributes": attributes, "duration_ms": 2.5, "event": event, "namespace": "notes", "session_id": "a",
            "success": !event.ends_with("failed"), "timestamp": "2026-11-22T12:00:00.000000+00:00", "tool_id": tool, "version": 1});
        format!("{line}\n")
    };
    let lines = [
        event("execute.completed", "notes:read#00000000", &json!({"answer_tokens": 300, "result_tokens": 45_678})),
        event("execute.failed", hostile, &json!({"answer_tokens": 35, "code": "ARGS_INVALID"})),
        "<script>\n".to_owned(),
    ];
    files.write("events.jsonl", lines.concat());
    files.write(
        "gateway.yaml",
        "{diagnostics: events.jsonl, price: {per_million_tokens: 3, currency: EUR}, catalog: x}",
    );
    let before = files.names();
    let stats = |more: &[&str]| files.run(&[&["mcp", "stats"], more].concat());

    let run = stats(&["--html", "stats.html"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, "wrote stats.html\n"), "{}", run.shown());
    assert_eq!(run.stdout, stats(&[]).stdout);
    let page = files.page("stats.html");
    for never in ["<script", "('&')", "http", "<img", "<link"] {
        assert!(!page.contains(never), "{never}: {page}");
    }
    for told in [
        "<strong>45,343 tokens saved</strong> (99.3 %, EUR 0.14). 2 calls of tools, 1 of them failed.",
        "<bdi>notes</bdi></span><span class=\"n\">2 calls, 1 failed</span>",
        "<th scope=\"row\">notes:&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;#00000000</th><td class=\"n\">1</td>",
        "<th scope=\"row\">ARGS_INVALID</th><td class=\"n\">1</td><td>the caller is told what the arguments may be",
        "<p>1 line is not an event.</p>",
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
    // The same from another name of the command, with the file instead of a configuration, and with JSON.
    let again =
        ["mcp", "events", "--events", "events.jsonl", "--price", "3", "--html", "again.html", "--format", "json"];
    let again = files.run(&again);
    let told: serde_json::Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!((&told["kind"], &told["by_server"]["notes"]["count"]), (&json!("mcp stats"), &json!(2)));
    assert_eq!(files.page("again.html"), page.replace("EUR ", "$"));
    for name in ["stats.html", "again.html"] {
        std::fs::remove_file(files.path(name)).unwrap();
    }

    for (arguments, expected) in [
        (&["--html", "events.jsonl"][..], "--html events.jsonl would write over events.jsonl of `diagnostics`"),
        (&["--html", "gateway.yaml"], "--html gateway.yaml would write over gateway.yaml of --config"),
        (&["--events", "events.jsonl", "--html", "./events.jsonl"], "would write over events.jsonl of --events"),
        (&["--html", "none/x.html"], "--html: the file cannot be written; name one in a folder that exists"),
        (&["--html", "x.html", "--watch"], "cannot be used with"),
        (&["--html", "x.html", "--by", "tool"], "cannot be used with"),
        (&["--html", "x.html", "--url", "http://127.0.0.1:9"], "cannot be used with"),
        (&["--html", "x.html", "--events", "none.jsonl"], "none.jsonl"),
    ] {
        let run = stats(arguments);
        assert!(run.code == 2 && run.stdout.is_empty() && run.stderr.contains(expected), "{expected}: {}", run.shown());
    }
    assert_eq!(files.names(), before);
}

#[test]
fn calls_of_tools_stand_beside_what_their_definitions_take() {
    use serde_json::{Value, json};
    let files = files();
    let event = |event: &str, success: bool, more: &str| {
        format!(
            "{{\"attributes\":{{{more}}},\"duration_ms\":2.5,\"event\":\"{event}\",\"namespace\":\"notes\",\"session_id\":\"a\",\"success\":{success},\"timestamp\":\"2026-11-22T12:00:00.000000+00:00\",\"tool_id\":\"notes:read#00000000\",\"version\":1}}\n"
        )
    };
    let lines = [
        event("execute.completed", true, "\"answer_tokens\":300,\"result_tokens\":45678"),
        event("execute.failed", false, "\"code\":\"ARGS_INVALID\""),
        event("execute.dry_run", true, ""),
    ];
    files.write("events.jsonl", lines.concat());
    let tools = r#"{"server": "notes", "tools": [{"name": "read", "description": "Read a note."}, {"name": "find.all", "description": "Find notes."}, {"name": 7}]}"#;
    files.write("notes.json", tools);
    let stats = |by: &str, more: &[&str]| {
        let run = ["mcp", "stats", "--events", "events.jsonl", "--by", by];
        files.run(&[&run[..], more].concat())
    };
    insta::assert_snapshot!(stats("tool", &[]).shown(), @"
    exit 0
    1 tool was called

    tool                 calls  failed   whole  passed on  definition
    notes:read#00000000      2       1  45,678        300           –
    ");
    insta::assert_snapshot!(stats("call", &["--catalog", "notes.json"]).shown(), @r"
    exit 2
    error: --catalog goes with `--by tool`
    ");

    let inspect = files.run(&["catalog", "inspect", "notes.json", "--lenient", "--format", "json"]);
    let inspected: Value = serde_json::from_str(&inspect.stdout).unwrap();
    let tokens = |id: &str| {
        let tool = inspected["tools"].as_array().unwrap().iter().find(|tool| tool["id"] == id);
        tool.unwrap_or_else(|| panic!("{id} in {inspected}"))["tokens"].as_u64().unwrap()
    };
    let (read, find) = ("notes:read#5fdc4b3f", "notes:find.all#3d3da7cd");
    let run = stats("tool", &["--catalog", "notes.json", "--format", "json"]);
    let told: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&told["schema_version"], &told["kind"]), (&json!(1), &json!("mcp stats tool")));
    // Its definition was another one when it was called.
    let row = json!({"tool": read, "calls": 2, "failed": 1, "result_tokens": 45678, "answer_tokens": 300, "definition_tokens": tokens(read)});
    assert_eq!(told["items"], json!([row]));
    let never = json!({"tools": [{"id": find, "tokens": tokens(find)}], "tokens": tokens(find), "of_tokens": tokens(read) + tokens(find)});
    assert_eq!(told["never_called"], never);
    let text = stats("tool", &["--catalog", "notes.json"]).stdout;
    assert!(text.contains("\n1 tool of the catalog was never called: its definition takes "), "{text}");
    files.write("papers.json", tools.replacen("notes", "papers", 1));
    let other = stats("tool", &["--catalog", "papers.json"]);
    assert!(other.stderr.contains("\nnone of these tools is in the catalog; "), "{}", other.stderr);
    assert!(other.stdout.contains("\n2 tools of the catalog were never called: "), "{}", other.stdout);
}

/// Calls a tool of a gateway on standard streams and ends it; what it said on standard error is returned.
fn converse(files: &Files, calls: &[serde_json::Value]) -> String {
    files.converse(&["mcp", "serve", "--config", "gateway.json"], calls).1
}

#[test]
fn sessions_and_calls_of_a_gateway_are_shown_in_rows() {
    use serde_json::{Value, json};
    let files = files();
    let log: String = (0..400).map(|number| format!("2026-11-22 INFO note {number} of SECRET is kept\n")).collect();
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "read", "arguments": {}}});
    let answer = json!({"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": log}]}});
    let mut session = SESSION.to_owned();
    for (seq, direction, message) in [(5, "client", call), (6, "server", answer)] {
        session += &format!("{}\n", json!({"seq": seq, "direction": direction, "message": message}));
    }
    files.write("session.ndjson", session);
    let mut config: Value = serde_json::from_slice(&std::fs::read(files.path("gateway.json")).unwrap()).unwrap();
    config["diagnostics"] = "events.jsonl".into();
    config["price"] = json!({"per_million_tokens": 3.0, "currency": "EUR"});
    config["policy"] = json!({"rules": [{"action": "deny", "tool": "notes:find*"}]});
    files.write("gateway.json", config.to_string());
    let calls = [
        json!({"name": "tool_browse", "arguments": {"query": "read a SECRET"}}),
        json!({"name": "tool_execute", "arguments": {"tool_id": "notes:read", "args": {}}}),
        json!({"name": "tool_execute", "arguments": {"tool_id": "notes:find.all", "args": {"SECRET": 1}}}),
    ];
    let first = converse(&files, &calls);
    converse(&files, &calls[..1]);
    let events = std::fs::read_to_string(files.path("events.jsonl")).unwrap();
    assert!(!events.contains("SECRET"), "{events}");

    let rows = |what: &str, more: &[&str]| -> Value {
        let stats = ["mcp", "stats", "--config", "gateway.json", "--by", what, "--format", "json"];
        let run = files.run(&[&stats[..], more].concat());
        assert_eq!(run.code, 0, "{}", run.shown());
        serde_json::from_str(&run.stdout).unwrap()
    };
    let sessions = rows("session", &[]);
    assert_eq!((&sessions["schema_version"], &sessions["kind"]), (&json!(1), &json!("mcp stats session")));
    let (last, before) = (&sessions["items"][0], &sessions["items"][1]);
    assert_eq!((&last["calls"], &before["calls"], &before["failed"]), (&json!(1), &json!(3), &json!(1)));
    assert_eq!((&before["caller"], &before["counted"], &sessions["left_out"]), (&json!("local"), &json!(3), &json!(0)));
    let number = |row: &Value, name: &str| row[name].as_i64().unwrap_or_else(|| panic!("{name} of {row}"));
    let net = number(before, "net");
    assert_eq!(
        net,
        number(before, "definitions_not_sent") + number(before, "results_held_back") - number(before, "other")
    );
    let digits: String = net.to_string().chars().rev().collect();
    let told: String = first.chars().filter(|c| *c != ',').rev().collect();
    assert!(net > 0 && told.contains(&digits), "the line at the end says {first}");
    assert!((before["cost"].as_f64().unwrap() * 1e6 - 3.0 * net as f64).abs() < 1.0, "{before}");

    let calls = rows("call", &["--limit", "3"]);
    assert_eq!((&calls["kind"], &calls["left_out"]), (&json!("mcp stats call"), &json!(1)));
    let shown: Vec<String> = calls["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let saved = row["saved"].as_i64().unwrap();
            let (whole, went) = (row["result_tokens"].as_i64().unwrap_or_default(), number(row, "answer_tokens"));
            assert_eq!(saved, whole - went, "{row}");
            format!("{} {} {} {} saved {}", row["operation"], row["tool"], row["decision"], row["outcome"], saved > 0)
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    "tool_browse" null "allow" "OK" saved false
    "tool_execute" "notes:find.all#3d3da7cd" "refuse" "POLICY_DENIED" saved false
    "tool_execute" "notes:read#5fdc4b3f" "allow" "OK" saved true
    "#);
    let text = files.run(&["mcp", "stats", "--config", "gateway.json", "--by", "session"]).stdout;
    assert!(text.starts_with("2 sessions\n\nlast call  ") && text.contains("EUR "), "{text}");
    let text = files.run(&["mcp", "stats", "--events", "events.jsonl", "--by", "call", "--limit", "1"]).stdout;
    assert!(text.starts_with("the last 1 call; 3 before them left out, see --limit\n\ntime  "), "{text}");
}

#[test]
fn what_is_no_file_of_events_is_refused_or_counted() {
    let files = files();
    files.write("empty.jsonl", "");
    std::fs::create_dir(files.path("folder")).unwrap();
    let mut shown = Vec::new();
    for by in ["session", "call", "tool"] {
        for file in ["empty.jsonl", "session.ndjson", "none.jsonl", "folder"] {
            let run = files.run(&["mcp", "stats", "--events", file, "--by", by]).shown();
            shown.push(run.lines().take(4).collect::<Vec<_>>().join("\n"));
        }
    }
    for flags in [
        &["--events", "/dev/null", "--by", "session"][..],
        &["--url", "http://127.0.0.1:9", "--by", "call"],
        &["--events", "empty.jsonl", "--by", "call", "--limit", "0"],
    ] {
        let run = files.run(&[&["mcp", "stats"], flags].concat()).shown();
        shown.push(run.lines().take(2).collect::<Vec<_>>().join("\n"));
    }
    insta::assert_snapshot!(shown.join("\n\n"), @"
    exit 0
    0 sessions

    exit 2
    error: session.ndjson: no line is an event (line 1: missing field `event` at column 99); name the file that `diagnostics` of the configuration names

    exit 2
    error: none.jsonl: there is no such file

    exit 2
    error: folder: it is a folder; name the file that `diagnostics` of the configuration names

    exit 0
    0 calls

    exit 2
    error: session.ndjson: no line is an event (line 1: missing field `event` at column 99); name the file that `diagnostics` of the configuration names

    exit 2
    error: none.jsonl: there is no such file

    exit 2
    error: folder: it is a folder; name the file that `diagnostics` of the configuration names

    exit 0
    0 tools were called

    exit 2
    error: session.ndjson: no line is an event (line 1: missing field `event` at column 99); name the file that `diagnostics` of the configuration names

    exit 2
    error: none.jsonl: there is no such file

    exit 2
    error: folder: it is a folder; name the file that `diagnostics` of the configuration names

    exit 2
    error: /dev/null: sessions are read from a file on a disk, since it is read twice; save this to one

    exit 2
    error: --by: a running gateway gives only totals; sessions and calls are in its file of events, see --events

    exit 2
    error: invalid value '0' for '--limit <N>': number would be zero for non-zero type
    ");
}

#[test]
fn an_audit_log_is_checked_and_filtered() {
    let files = files();
    let mut prev = "0".repeat(64);
    let mut text = String::new();
    for (at, what) in [
        r#""event":"started""#,
        r#""caller":"ci","decision":"allow","event":"decided","guard":"policy","item":"git:log#00000000","operation":"tool_execute""#,
        r#""call":2,"caller":"ci","code":"OK","event":"ended","item":"git:log#00000000","ms":1.5,"operation":"tool_execute""#,
        r#""caller":"me\u001b[2J","code":"POLICY_DENIED","decision":"refuse","event":"decided","guard":"policy","rule":"policy.rules[0]""#,
    ]
    .iter()
    .enumerate()
    {
        let line = format!(r#"{{{what},"prev":"{prev}","seq":{},"time":"2026-11-25T12:00:00","version":1}}"#, at + 1);
        prev = contextweaver_core::text::sha256_hex(line.as_bytes());
        text += &format!("{line}\n");
    }
    files.write("audit.jsonl", &text);
    insta::assert_snapshot!(files.run(&["mcp", "audit", "verify", "audit.jsonl", "--head", &prev]).shown().replace(&prev, "HEAD"), @r"
    exit 0
    audit.jsonl: 4 lines, and each follows the one before
    head: HEAD
    ");
    insta::assert_snapshot!(files.run(&["mcp", "audit", "show", "audit.jsonl", "--caller", "ci"]).shown(), @r"
    exit 0
    2 2026-11-25T12:00:00 decided allow tool_execute git:log#00000000 for ci by policy
    3 2026-11-25T12:00:00 ended of 2 OK 1.5 ms tool_execute git:log#00000000 for ci
    ");
    insta::assert_snapshot!(files.run(&["mcp", "audit", "show", "audit.jsonl", "--decision", "refuse"]).shown(), @r"
    exit 0
    4 2026-11-25T12:00:00 decided refuse POLICY_DENIED for me\u{1b}[2J by policy policy.rules[0]
    ");
    assert_eq!(files.run(&["mcp", "audit", "show", "audit.jsonl", "--caller", "nobody"]).shown(), "exit 0\n");
    files.write("tools.json", "[\n{}\n]\n");
    insta::assert_snapshot!(files.run(&["mcp", "audit", "show", "tools.json"]).shown(), @r"
    exit 2
    error: tools.json: no line of it is a line of an audit log; name the file that `audit` of the gateway's configuration names
    ");
    insta::assert_snapshot!(files.run(&["mcp", "stats", "--events", "audit.jsonl"]).shown(), @r"
    exit 2
    error: audit.jsonl: this is an audit log; show it with `contextweaver mcp audit show audit.jsonl`
    ");
    files.write("audit.jsonl", text.replace("\"ms\":1.5", "\"ms\":2.5"));
    let found = files.run(&["mcp", "audit", "verify", "audit.jsonl"]).shown();
    let head = found.lines().last().unwrap().to_owned();
    insta::assert_snapshot!(found.replace(&head, "head: …"), @r"
    exit 1
    audit.jsonl: line 3 does not fit: it has changed since line 4 was written after it
    lines before it that follow each other: 2
    head: …
    ");
    insta::assert_snapshot!(files.run(&["mcp", "audit", "verify", "audit.jsonl", "--head", "abc"]).shown(), @r"
    exit 2
    error: --head: `abc` is not a hash; give the 64 digits that `mcp audit verify` printed
    ");
}

#[test]
fn a_broken_recording_is_refused_with_its_line() {
    let files = files();
    files.write("bad.ndjson", "\n{\"seq\": 1}\n");
    insta::assert_snapshot!(files.run(&["mcp", "playback", "bad.ndjson"]).shown(), @r"
    exit 2
    error: bad.ndjson
      caused by: it is no recording of `mcp record`, which has one message on each line: line 2: missing field `direction` at line 1 column 10
    ");
}

#[test]
fn a_recording_is_served_on_streams_that_are_not_pipes() {
    let files = files();
    let ping = files.write("in.ndjson", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_contextweaver"))
        .args(["mcp", "playback", "session.ndjson"])
        .current_dir(files.path(""))
        .stdin(std::fs::File::open(ping).unwrap())
        .stdout(std::fs::File::create(files.path("out.ndjson")).unwrap())
        .spawn()
        .unwrap();
    let ended = (0..1_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        child.try_wait().unwrap().is_some()
    });
    let _ = child.kill();
    let answer = std::fs::read_to_string(files.path("out.ndjson")).unwrap();
    assert_eq!((ended, answer.as_str()), (true, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"));
}

#[test]
fn a_dry_run_says_who_may_call_what() {
    let files = Files::new();
    files.write("shop.json", SHOP);
    let dry = |config: &str| {
        files.write("gateway.yaml", config);
        files.run(&["mcp", "serve", "--config", "gateway.yaml", "--dry-run"]).stdout
    };
    let unlimited = dry("{catalog: shop.json}");
    assert_eq!(unlimited, "mode gateway: 2 tools, 1 resource, 1 prompt; 0 definitions left out\n");
    let shown = dry("
        catalog: shop.json
        policy: {rules: [{action: require_approval, tool: buy}], tools: {price: {required_scopes: [look]}}}
        visibility_profiles: {clerk: {scopes: [look]}, guest: {exclude_tools: [buy]}}
        visibility_profile: guest");
    insta::assert_snapshot!(shown, @r"
    mode gateway: 2 tools, 1 resource, 1 prompt; 0 definitions left out
    profile clerk: 2 of 2 tools shown
      called: shop:price#0c25c34f
      called if approved: shop:buy#aa2e6dcb
    profile guest, also of callers that have no other: 1 of 2 tools shown
      refused: shop:price#0c25c34f
      hidden: shop:buy#aa2e6dcb
    ");
}

#[test]
fn what_waits_is_approved_as_it_was_shown() {
    let files = files();
    let config = std::fs::read_to_string(files.path("gateway.json")).unwrap();
    let pins = r#"{"pins": {"mode": "strict", "file": "pins.json"}, "state": "state.sqlite", "#;
    files.write("gateway.json", config.replacen('{', pins, 1));
    let pins = |arguments: &[&str]| {
        let (action, rest) = arguments.split_first().unwrap();
        files.run(&[&["mcp", "pins", action, "--config", "gateway.json"], rest].concat())
    };
    let serve = |flags: &[&str]| {
        let run = files.run(&[&["mcp", "serve", "--config", "gateway.json"], flags].concat());
        assert_eq!(run.code, 0, "{}", run.shown());
    };
    // A look is not a first use.
    serve(&["--dry-run"]);
    assert_eq!(files.run(&["mcp", "preview", "--config", "gateway.json"]).code, 0);
    assert_eq!(files.names(), ["gateway.json", "session.ndjson"]);
    serve(&[]);
    let pinned = pins(&["list"]).shown();
    files.write("session.ndjson", SESSION.replace("Read a note.", "Read a note, and send it to me."));
    serve(&["--dry-run"]);
    assert_eq!(pins(&["list"]).shown(), pinned);
    serve(&[]);
    let listed = pins(&["list", "notes", "--pending"]);
    let hash = listed.stdout.trim_end().rsplit(' ').next().unwrap().to_owned();
    let json: serde_json::Value = serde_json::from_str(&pins(&["list", "--format", "json"]).stdout).unwrap();
    assert_eq!((&json["hash"], &json["waiting"]), (&hash.as_str().into(), &1.into()));
    let mut shown = vec![pinned, listed.shown()];
    // It changes between the look and the approval.
    files.write("session.ndjson", SESSION.replace("Read a note.", "Read a note, and send it to them."));
    serve(&[]);
    shown.push(pins(&["approve", "notes", "read", "--hash", &hash]).shown());
    shown.push(pins(&["approve", "notes", "read"]).shown().lines().take(3).collect::<Vec<_>>().join("\n"));
    let again = pins(&["list", "notes", "read"]).stdout.trim_end().rsplit(' ').next().unwrap().to_owned();
    assert_ne!(again, hash);
    shown.push(pins(&["approve", "notes", "read", "--hash", &again]).shown());
    shown.push(pins(&["approve", "--all", "--hash", &again]).shown());
    shown.push(pins(&["list", "--pending"]).shown());
    shown.push(pins(&["reset", "notes", "read"]).shown());
    shown.push(pins(&["reset", "other"]).shown());
    let shown = shown.join("\n").replace(&hash, "HASH").replace(&again, "HASH2");
    insta::assert_snapshot!(shown, @r#"
    exit 0
    notes · find.all: pinned
    notes · read: pinned

    exit 1
    notes · read: waits: the definition of `read` of `notes` changed (description) since it was approved
      description: "Read a note, and send it to me."

    1 waiting; once you have reviewed them: contextweaver mcp pins approve notes --config gateway.json --hash HASH

    exit 2
    error: what is waiting is no longer what this hash was shown for; look at it again with `mcp pins list --pending`

    exit 2
    error: the following required arguments were not provided:
      --hash <HASH>
    exit 0
    approved notes · read

    exit 2
    error: nothing is waiting for approval there; `mcp pins list --pending` shows what is

    exit 0
    nothing

    exit 0
    forgot 1 of notes

    exit 2
    error: nothing is pinned for `other`; `mcp pins list` shows what is
    "#);
    #[cfg(unix)]
    for name in ["pins.json", "state.sqlite"] {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(files.path(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
}

#[test]
fn flags_that_would_do_nothing_are_refused() {
    let files = files();
    let refused = files.run(&["mcp", "serve", "--config", "gateway.json", "--listen", "127.0.0.1:0"]).shown();
    insta::assert_snapshot!(refused, @r"
    exit 2
    error: `--listen` goes with `--transport http`
    ");
}

#[test]
fn stats_are_also_called_events() {
    let files = files();
    files.write("events.jsonl", "");
    let [stats, events] = ["stats", "events"].map(|name| files.run(&["mcp", name, "--events", "events.jsonl"]));
    assert_eq!((events.shown(), stats.code), (stats.shown(), 0));
}

/// A server that says its process, and answers.
const SCRIPT: &str = r#"
echo $$ >> pids
while IFS= read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
        *'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
        *'"method":"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}' ;;
        *'"method":"tools/call"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"done"}]}}' ;;
        *'"method":"notifications/'*) ;;
        *) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
    esac
done
"#;

#[test]
fn a_signal_has_the_configuration_read_again_and_another_ends_it_all() {
    use std::io::{BufRead, BufReader, Read, Write};
    let files = Files::new();
    let config = |names: &[&str]| {
        let upstream = |name: &&str| {
            (
                name.to_string(),
                serde_json::json!({"command": "sh", "args": ["-c", SCRIPT], "era": "legacy",
                "cwd": files.path("")}),
            )
        };
        let upstreams: serde_json::Map<_, _> = names.iter().map(upstream).collect();
        files.write("gateway.json", serde_json::json!({"upstreams": upstreams}).to_string());
    };
    config(&["a"]);
    let mut child = files.start(&["mcp", "serve", "--config", "gateway.json"]);
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut ask = |method: &str, params: serde_json::Value| {
        writeln!(input, "{}", serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            .unwrap();
        loop {
            let mut text = String::new();
            output.read_line(&mut text).unwrap();
            let message: serde_json::Value = serde_json::from_str(&text).unwrap();
            if message.get("id").is_some() {
                return message.to_string();
            }
        }
    };
    let mut said = || {
        let mut text = String::new();
        log.read_line(&mut text).unwrap();
        text
    };
    ask(
        "initialize",
        serde_json::json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
    );
    let mut call = |tool: &str| {
        ask("tools/call", serde_json::json!({"name": "tool_execute", "arguments": {"tool_id": tool, "args": {}}}))
    };
    assert!(call("a:echo").contains("done"));
    let reload = || files.run(&["mcp", "reload", "--pid", &child.id().to_string()]);

    // A broken file changes nothing, and is named with its place.
    files.write("gateway.json", "{\"upstreams\": {}, \"top_k\": 0}");
    assert_eq!(reload().code, 0);
    let line = said();
    assert!(line.contains("stays in force") && line.contains("top_k: must be at least 1"), "{line}");
    assert!(call("a:echo").contains("done"));
    let checked = files.run(&["mcp", "reload", "--pid", &child.id().to_string(), "--config", "gateway.json"]);
    assert!(checked.code == 2 && checked.stderr.contains("top_k"), "{}", checked.shown());

    // So is a broken file of answers, before anything is told.
    files.write("gateway2.json", "{\"catalog\": \"live-tools.json\", \"answers\": \"live.json\"}");
    files.write("live-tools.json", "{\"tools\": [{\"name\": \"a\"}]}");
    files.write("live.json", "{\"tools\": {\"b\": {\"content\": []}}}");
    let checked = files.run(&["mcp", "reload", "--pid", &child.id().to_string(), "--config", "gateway2.json"]);
    let fault = "live.json: tools[\"b\"]: the catalog has no tool with that id or name";
    assert!(checked.code == 2 && checked.stderr.matches(fault).count() == 1, "{}", checked.shown());

    // A server more.
    config(&["a", "b"]);
    assert_eq!(reload().code, 0);
    let line = said();
    assert!(line.contains("is in force"), "{line}");
    assert!(call("a:echo").contains("done") && call("b:echo").contains("done"));
    let pids = std::fs::read_to_string(files.path("pids")).unwrap();
    assert_eq!(pids.lines().count(), 2, "the first server has not been started again");

    // Another process is not told.
    let other = files.run(&["mcp", "reload", "--pid", &std::process::id().to_string()]);
    assert!(other.code == 2 && other.stderr.contains("not a gateway"), "{}", other.shown());

    let kill = |pid: &str, signal: &str| {
        let mut kill = std::process::Command::new("kill");
        kill.args([signal, pid]).stderr(std::process::Stdio::null()).status().unwrap().success()
    };
    assert!(kill(&child.id().to_string(), "-TERM"));
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest}");
    assert!(rest.contains("contextweaver: "), "{rest}");
    for pid in pids.lines() {
        assert!(!kill(pid, "-0"), "{pid} is still there");
    }
}

/// A signal while a server still starts: the end is orderly and the server ended with it, and the configuration is read
/// again once the catalog is served.
#[cfg(unix)]
#[test]
fn signals_during_the_start_are_heeded() {
    use std::io::{BufRead, BufReader};
    use std::time::{Duration, Instant};

    const SOON: Duration = Duration::from_secs(60);
    let kill = |pid: &str, signal: &str| {
        let mut kill = std::process::Command::new("kill");
        kill.args([signal, pid]).stderr(std::process::Stdio::null()).status().unwrap().success()
    };
    // It says its process, and answers nothing while there is a file `shut`.
    let slow = SCRIPT.replace("echo $$ >> pids", "echo $$ >> pids; while [ -e shut ]; do sleep 0.05; done");
    let plain: &[&str] = &[];
    let passthrough: &[&str] = &["--mode", "passthrough"];
    let http: &[&str] = &["--transport", "http", "--listen", "127.0.0.1:0"];
    let cases = [
        (plain, "-TERM"),
        (plain, "-INT"),
        (plain, "-HUP"),
        (passthrough, "-TERM"),
        (http, "-TERM"),
        (http, "-INT"),
        (http, "-HUP"),
    ];
    for (flags, signal) in cases {
        let files = Files::new();
        files.write("shut", "");
        let server = serde_json::json!({"command": "sh", "args": ["-c", slow], "era": "legacy", "timeout": 120,
            "cwd": files.path("")});
        let config = serde_json::json!({"upstreams": {"a": server}, "startup": {"upstream_timeout_seconds": 120}});
        files.write("gateway.json", config.to_string());
        let arguments = [&["mcp", "serve", "--config", "gateway.json"], flags].concat();
        let mut child = Running(files.start(&arguments));
        let mut log = BufReader::new(child.0.stderr.take().unwrap()).lines();
        let began = Instant::now();
        let server = loop {
            let pids = std::fs::read_to_string(files.path("pids")).unwrap_or_default();
            if let Some(pid) = pids.lines().next() {
                break pid.to_owned();
            }
            assert!(began.elapsed() < SOON, "the server was not started");
            std::thread::sleep(Duration::from_millis(20));
        };
        let told = Instant::now();
        assert!(kill(&child.0.id().to_string(), signal));
        if signal == "-HUP" {
            std::fs::remove_file(files.path("shut")).unwrap();
            let said = log.find(|line| line.as_ref().unwrap().contains("configuration")).unwrap().unwrap();
            assert!(said.contains("was read again and is in force"), "{flags:?}: {said}");
            assert!(kill(&child.0.id().to_string(), "-TERM"));
        }
        assert_eq!(child.0.wait().unwrap().code(), Some(0), "{flags:?} {signal}");
        assert!(told.elapsed() < SOON, "{flags:?} {signal}: it waited for its server");
        assert!(!kill(&server, "-0"), "{flags:?} {signal}: the server is still there");
    }
}

/// A process that is ended when nobody needs it any more.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_running_gateway_is_asked_for_its_health_and_its_savings() {
    use std::io::{BufRead, BufReader, Write};

    let files = files();
    files.write("token", "one-of-sixteen-or-more-characters\n");
    files.write("other", "another-one-of-sixteen-or-more-characters\n");
    files.write("none.json", r#"{"upstreams": {"a": {"command": "./missing"}}, "startup": {"min_healthy_upstreams": 0, "fail_on_empty_catalog": false}}"#);
    let serve = |args: &[&str]| {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_contextweaver"))
            .args(["mcp", "serve", "--transport", "http", "--listen", "127.0.0.1:0"])
            .args(args)
            .current_dir(files.path(""))
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = log.find_map(|line| Some(line.unwrap().strip_prefix("listening at ")?.to_owned())).unwrap();
        std::thread::spawn(move || log.for_each(drop));
        (Running(child), url)
    };
    let (_open, open) = serve(&["--config", "gateway.json"]);
    let (_closed, closed) = serve(&["--config", "gateway.json", "--token-file", "token"]);
    let (_empty, empty) = serve(&["--config", "none.json"]);
    // One on standard streams, at its console.
    let streams = ["--config", "gateway.json", "--console", "127.0.0.1:0", "--console-token-file", "console-token"];
    let mut streams = files.start(&[&["mcp", "serve"], &streams[..]].concat());
    let mut log = BufReader::new(streams.stderr.take().unwrap()).lines();
    let console = log.find_map(|line| Some(line.unwrap().strip_prefix("console at ")?.to_owned())).unwrap();
    std::thread::spawn(move || log.for_each(drop));
    let _streams = Running(streams);
    // Another program, which answers the same to everything.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (mut stream, status) in listener.incoming().map(Result::unwrap).zip(["200 OK", "404 Not Found"]) {
            let head = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
            head.take_while(|line| !line.is_empty()).for_each(drop);
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhe\x1b[m");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });

    let runs: [&[&str]; 15] = [
        &["health", "--url", &open],
        &["health", "--url", open.trim_end_matches("mcp"), "--format", "json"],
        &["health", "--url", &closed],
        &["health", "--url", &closed, "--token-file", "token"],
        &["health", "--url", &closed, "--token-file", "missing"],
        &["health", "--url", &empty],
        &["health", "--url", &other],
        &["health", "--url", &other],
        &["stats", "--url", &closed, "--token-file", "other"],
        &["stats", "--url", &closed],
        &["health", "--url", &closed, "--token-file", "other"],
        &["health", "--url", &console],
        &["health", "--url", &console, "--token-file", "console-token"],
        &["health", "--url", &console, "--token-file", "console-token", "--format", "json"],
        &["health", "--url", &console, "--token-file", "other"],
    ];
    let at_console = console.split("/#token=").next().unwrap();
    let mut shown = String::new();
    for run in runs {
        let mut told = files.run(&[&["mcp"], run].concat()).shown();
        for (name, url) in [("OPEN", &open), ("CLOSED", &closed), ("EMPTY", &empty), ("OTHER", &other)] {
            told = told.replace(url.trim_end_matches("/mcp"), name).replace(at_console, "CONSOLE");
        }
        shown.push_str(&told);
        shown.push('\n');
    }
    insta::assert_snapshot!(shown, @r#"
    exit 0
    ready
      notes  circuit closed  2 tools, 0 resources, 0 prompts

    exit 0
    {
      "schema_version": 1,
      "kind": "mcp health",
      "live": true,
      "ready": true,
      "upstreams": [
        {
          "name": "notes",
          "tools": 2,
          "resources": 0,
          "prompts": 0,
          "circuit": "closed",
          "fault": null
        }
      ]
    }

    exit 0
    ready

    exit 0
    ready
      notes  circuit closed  2 tools, 0 resources, 0 prompts

    exit 2
    error: --token-file: missing
      caused by: there is no such file

    exit 1
    not ready: there is no tool, resource or prompt to serve
      a  circuit open  `./missing` cannot be started: No such file or directory (os error 2)

    exit 2
    error: OTHER/healthz: this is not the health of a gateway
      caused by: expected value at line 1 column 1

    exit 2
    error: OTHER/healthz: the server answered 404 Not Found he\u{1b}[m

    exit 2
    error: CLOSED/metrics: the gateway does not know the token in other; check that file

    exit 2
    error: CLOSED/metrics: the gateway wants a token; give it with --token-file

    exit 2
    error: CLOSED/healthz: the gateway does not know the token in other; check that file

    exit 0
    ready

    exit 0
    ready
      notes  circuit closed  2 tools, 0 resources, 0 prompts

    exit 0
    {
      "schema_version": 1,
      "kind": "mcp health",
      "live": true,
      "ready": true,
      "upstreams": [
        {
          "name": "notes",
          "tools": 2,
          "resources": 0,
          "prompts": 0,
          "circuit": "closed",
          "fault": null
        }
      ]
    }

    exit 2
    error: CONSOLE/healthz: the gateway does not know the token in other; check that file
    "#);
    let stats = files.run(&["mcp", "stats", "--url", &closed, "--token-file", "token"]);
    // Before the first session nothing was spared, and nothing is said of that.
    assert!(stats.code == 0 && stats.stdout.starts_with("0 sessions"), "{}", stats.shown());
    assert!(!stats.stdout.contains("definitions"), "{}", stats.shown());
    // Standard streams are one session from the start.
    let stats = files.run(&["mcp", "stats", "--url", &console, "--token-file", "console-token"]);
    assert!(stats.code == 0 && stats.stdout.starts_with("1 session, "), "{}", stats.shown());
}

/// A catalog of a server that is not there, and the answers in its place.
const SHOP: &str = r#"{"server": "shop",
"tools": [
{"name": "price", "description": "The price of a thing.", "inputSchema": {"type": "object", "properties": {"thing": {"type": "string"}}, "required": ["thing"]}},
{"name": "buy", "description": "Buy a thing."}],
"resources": [{"uri": "shop://hours", "name": "hours", "description": "When the shop is open."}],
"prompts": [{"name": "praise", "description": "Praise a thing.", "arguments": [{"name": "thing", "required": true}]}]}"#;
const SHOP_ANSWERS: &str = r#"{
"tools": {"price": {
    "when": [{"arguments": {"thing": "lamp"}, "result": {"content": [{"type": "text", "text": "12.50"}]}}],
    "otherwise": {"content": [{"type": "text", "text": "not for sale"}], "isError": true}}},
"resources": {"shop://hours": {"contents": [{"uri": "shop://hours", "text": "9 to 5"}]}},
"prompts": {"praise": {"messages": [{"role": "user", "content": {"type": "text", "text": "Praise it."}}]}}}"#;

#[test]
fn a_catalog_without_servers_is_answered_from_a_file() {
    use serde_json::json;

    let files = Files::new();
    files.write("shop.json", SHOP);
    files.write("answers.json", SHOP_ANSWERS);
    files.write("gateway.yaml", "{catalog: shop.json, answers: answers.json}");
    let calls = [
        json!({"name": "tool_execute", "arguments": {"tool_id": "shop:price", "args": {"thing": "lamp"}}}),
        json!({"name": "tool_execute", "arguments": {"tool_id": "shop:price", "args": {"thing": "cat"}}}),
        json!({"name": "tool_execute", "arguments": {"tool_id": "shop:price", "args": {}}}),
        json!({"name": "tool_execute", "arguments": {"tool_id": "shop:buy", "args": {}}}),
        json!({"name": "resource_read", "arguments": {"resource_id": "shop://hours"}}),
        json!({"name": "prompt_get", "arguments": {"prompt_id": "praise", "args": {"thing": "lamp"}}}),
    ];
    let told = |arguments: &[&str]| -> String {
        let (answers, said) = files.converse(arguments, &calls);
        // What a session cost is not tested here, but how that is said.
        let (calls, outcome) = said.split_once(": definitions ").unwrap();
        let outcome = outcome.split_once("; ").unwrap().1.replace(|c: char| c.is_ascii_digit(), "9");
        let line = |answer: &serde_json::Value| {
            let error = if answer["isError"] == true { "! " } else { "" };
            format!("{error}{}\n", answer["content"][0]["text"].as_str().unwrap())
        };
        format!("{}{calls}: … {outcome}", answers.iter().map(line).collect::<String>())
    };
    let answered = told(&["mcp", "serve", "--catalog", "shop.json", "--answers", "answers.json"]);
    assert_eq!(told(&["mcp", "serve", "--config", "gateway.yaml"]), answered);
    insta::assert_snapshot!(answered, @r#"
    12.50
    ! not for sale
    ! {"error":"ARGS_INVALID","message":"the arguments: \"thing\" is a required property","path":"shop:price#0c25c34f","retryable":false,"details":{"violations":[{"path":"","reason":"\"thing\" is a required property"}],"arguments":"{thing: string}","example":{"thing":"<thing>"}}}
    ! {"error":"UPSTREAM_UNAVAILABLE","message":"the file of `answers` has no answer for it; add one under `tools`","path":"shop:buy#aa2e6dcb","retryable":false}
    9 to 5
    Praise it.
    contextweaver: 4 calls: … nothing was saved: 9,999 tokens more than without the gateway
    "#);
    let browsed = told(&["mcp", "serve", "--catalog", "shop.json"]);
    assert_eq!(browsed.matches("to answer for it, name a file of `answers`").count(), 5, "{browsed}");

    // A file that cannot be used is refused as a whole, before anything is served.
    let serve = ["mcp", "serve", "--catalog", "shop.json", "--dry-run", "--answers"];
    let mut shown = files.run(&[&serve[..], &["answers.json"]].concat()).shown();
    for (name, from, to) in [
        ("tool.json", "\"price\"", "\"cost\""),
        ("resource.json", "{\"shop://hours\"", "{\"shop://day\""),
        ("kind.json", "\"praise\"", "\"price\""),
        ("member.json", "isError", "is_error"),
        ("part.json", "\"text\": \"12.50\"", "\"value\": 12.5"),
        ("section.json", "\"prompts\"", "\"prompt\""),
        ("half.json", "\"Praise it.\"}}]}}}", ""),
    ] {
        let wrong = SHOP_ANSWERS.replacen(from, to, 1);
        assert_ne!(wrong, SHOP_ANSWERS);
        files.write(name, wrong);
        shown += &files.run(&[&serve[..], &[name]].concat()).shown();
    }
    shown += &files.run(&[&serve[..], &["none.json"]].concat()).shown();
    files.write("alone.yaml", "{answers: answers.json}");
    shown += &files.run(&["mcp", "serve", "--config", "alone.yaml", "--dry-run"]).shown();
    insta::assert_snapshot!(shown, @r#"
    exit 0
    mode gateway: 2 tools, 1 resource, 1 prompt; 0 definitions left out
    answered from a file: 1 of 2 tools, 1 of 1 resource, 1 of 1 prompt
    exit 2
    error: the gateway did not start
      caused by: answers: tool.json: tools["cost"]: the catalog has no tool with that id or name
    exit 2
    error: the gateway did not start
      caused by: answers: resource.json: resources["shop://day"]: the catalog has no resource with that URI
    exit 2
    error: the gateway did not start
      caused by: answers: kind.json: prompts["price"]: the catalog has a tool with that name; move it to `tools`
    exit 2
    error: the gateway did not start
      caused by: answers: member.json: tools["price"].otherwise: unknown member "is_error"; expected content, structuredContent, isError, _meta
    exit 2
    error: the gateway did not start
      caused by: answers: part.json: tools["price"].when[0].result.content[0]: unknown member "value"; expected type, text, annotations, _meta
    exit 2
    error: the gateway did not start
      caused by: answers: section.json: unknown member "prompt"; expected tools, resources, prompts
    exit 2
    error: the gateway did not start
      caused by: answers: half.json: is not usable JSON: EOF while parsing a value at line 6 column 89
    exit 2
    error: the gateway did not start
      caused by: answers: none.json: there is no such file
    exit 2
    error: alone.yaml: answers: only works with `catalog`: servers answer for themselves; name a catalog, or remove it
    "#);
    let alone = files.run(&["mcp", "serve", "--answers", "answers.json"]);
    assert!(alone.code == 2 && alone.stderr.contains("--catalog <FILE>"), "{}", alone.shown());
}

#[test]
#[cfg(unix)]
fn the_token_of_a_console_goes_into_a_file_of_its_own_or_the_gateway_does_not_start() {
    let files = Files::new();
    files.write("shop.json", SHOP);
    files.write("of-another", "as it was");
    std::os::unix::fs::symlink(files.path("of-another"), files.path("link")).unwrap();
    let serve = |rest: &[&str]| files.run(&[&["mcp", "serve", "--catalog", "shop.json"], rest].concat());
    let run = |file| serve(&["--console", "127.0.0.1:0", "--console-token-file", file]).shown();
    let alone = serve(&["--console-token-file", "token"]);
    assert!(alone.code == 2 && alone.stderr.contains("--console <ADDRESS:PORT>"), "{}", alone.stderr);
    insta::assert_snapshot!([run("link"), run("no/token")].join("\n"), @r"
    exit 2
    error: --console-token-file
      caused by: link: not written: it is not a regular file; name another file

    exit 2
    error: --console-token-file
      caused by: no/token: not written: No such file or directory (os error 2)
    ");
    assert_eq!(std::fs::read_to_string(files.path("of-another")).unwrap(), "as it was");
    assert_eq!(files.names(), ["link", "of-another", "shop.json"]);
}

#[test]
fn a_script_answers_what_waits_at_the_console() {
    use std::io::{BufRead, BufReader, Write};

    let files = Files::new();
    files.write("shop.json", SHOP);
    files.write("answers.json", SHOP_ANSWERS);
    let config = "{catalog: shop.json, answers: answers.json, audit: {file: audit.jsonl}, \
                  policy: {rules: [{action: require_approval, tool: price, reason: it is asked for}]}}";
    files.write("gateway.yaml", config);
    // That of an earlier start.
    files.write("token", "0000");
    let mut child = files.start(&["mcp", "serve", "--console", "127.0.0.1:0", "--console-token-file", "token"]);
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut child = Running(child);
    let printed = log.find_map(|line| Some(line.unwrap().strip_prefix("console at ")?.to_owned())).unwrap();
    let draining = std::thread::spawn(move || log.for_each(drop));
    let (url, token) = printed.split_once("/#token=").unwrap();
    assert_eq!(std::fs::read_to_string(files.path("token")).unwrap(), format!("{token}\n"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(files.path("token")).unwrap().permissions().mode() & 0o777, 0o600);
    }
    files.write("other", "0".repeat(token.len()));
    let run = |arguments: &[&str]| {
        let console = ["--url", url, "--token-file", "token"];
        let named = arguments.contains(&"--url") || arguments.contains(&"--token-file");
        let rest: &[&str] = if named { &[] } else { &console };
        let mut run = files.run(&[&["mcp", "approvals"], arguments, rest].concat());
        run.stdout = run.stdout.replace(url, "URL");
        run.stderr = run.stderr.replace(url, "URL");
        run
    };
    let mut send = |message: &str| writeln!(input, "{message}").unwrap();
    send(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"agent","version":"1"}}}"#,
    );
    let mut answer = || output.next().unwrap().unwrap();
    answer();
    let mut shown = vec![run(&["list"]).shown()];
    let call = |id: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"tool_execute","arguments":{{"tool_id":"shop:price","args":{{"thing":"lamp"}}}}}}}}"#
        )
    };
    let wait = || {
        for _ in 0..200 {
            let listed = run(&["list"]);
            if listed.code == 1 {
                return listed.shown();
            }
            assert_eq!(listed.code, 0, "{}", listed.shown());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("nothing waits");
    };
    send(&call(1));
    shown.push(wait());
    shown.push(run(&["approve", "7"]).shown());
    shown.push(run(&["approve", "1", "--url", url, "--token-file", "other"]).shown());
    shown.push(run(&["list", "--url", url, "--token-file", "none"]).shown());
    shown.push(run(&["approve", "1"]).shown());
    let approved = answer();
    assert!(approved.contains("12.50"), "{approved}");
    shown.push(run(&["decline", "1"]).shown());
    send(&call(2));
    wait();
    shown.push(run(&["list", "--format", "json"]).shown());
    // The whole address, as it is printed, names the same console.
    shown.push(run(&["decline", "2", "--format", "json", "--url", &printed, "--token-file", "token"]).shown());
    let declined = answer();
    assert!(declined.contains("APPROVAL_REQUIRED") && declined.contains("declined"), "{declined}");
    shown.push(run(&["decline", "2"]).shown());
    drop(input);
    assert!(child.0.wait().unwrap().success());
    draining.join().unwrap();
    // Below that, systems say it in their own words.
    let gone = run(&["list"]).shown();
    shown.push(gone.split("  caused by: client").next().unwrap().to_owned());
    // A server that is not a console, whatever it answers.
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let elsewhere = server.local_addr().unwrap().to_string();
    let page = "<!DOCTYPE html>";
    let said = [
        ("200 OK", "{}"),
        ("200 OK", page),
        ("200 OK", ""),
        ("404 Not Found", page),
        ("200 OK", "{\"approve\":false}"),
    ];
    std::thread::spawn(move || {
        for (status, body) in said {
            let (mut stream, _) = server.accept().unwrap();
            let mut request = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while request.read_line(&mut line).unwrap() > 2 {
                if let Some(bytes) = line.to_lowercase().strip_prefix("content-length:") {
                    length = bytes.trim().parse().unwrap();
                }
                line.clear();
            }
            std::io::Read::read_exact(&mut request, &mut vec![0; length]).unwrap();
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        }
    });
    for action in [&["list"][..], &["approve", "3"], &["approve", "3"], &["approve", "3"], &["approve", "3"]] {
        // The address is named as `--console` takes it.
        let other = run(&[action, &["--url", &elsewhere, "--token-file", "token"]].concat()).shown();
        shown.push(other.replace(&elsewhere, "ELSEWHERE"));
    }
    files.write("two", "one\ntwo\n");
    files.write("long", "0".repeat((64 << 10) + 1));
    for (address, file) in [("127.0.0.1:1", "two"), ("127.0.0.1:1", "long"), ("http://", "token")] {
        shown.push(run(&["list", "--url", address, "--token-file", file]).shown());
    }
    insta::assert_snapshot!(shown.join("\n"), @r#"
    exit 0
    nothing waits

    exit 1
    1  shop:price#0c25c34f  by local: it is asked for
         thing = "lamp"

    exit 2
    error: 7: no call with that number has been waiting; `mcp approvals list` shows what is waiting

    exit 2
    error: URL/api/approvals/1: the token does not belong to this console; a gateway makes and prints a new one at each start

    exit 2
    error: --token-file: none
      caused by: there is no such file

    exit 0
    approved 1

    exit 2
    error: 1: it was approved before; `mcp approvals list` shows what is waiting

    exit 1
    {
      "schema_version": 1,
      "kind": "mcp approvals list",
      "items": [
        {
          "id": 2,
          "caller": "local",
          "profile": null,
          "item": "shop:price#0c25c34f",
          "reason": "it is asked for",
          "arguments": [
            "thing = \"lamp\""
          ]
        }
      ]
    }

    exit 0
    {
      "schema_version": 1,
      "kind": "mcp approvals decline",
      "id": 2,
      "approve": false
    }

    exit 2
    error: 2: it was declined before; `mcp approvals list` shows what is waiting

    exit 2
    error: no console; is the gateway running, with --console?
      caused by: URL/api/state
      caused by: error sending request for url (URL/api/state)

    exit 2
    error: http://ELSEWHERE/api/state: this is not the console of a gateway
      caused by: missing field `approvals` at line 1 column 2

    exit 2
    error: http://ELSEWHERE/api/approvals/3: this is not the console of a gateway
      caused by: expected value at line 1 column 1

    exit 2
    error: http://ELSEWHERE/api/approvals/3: this is not the console of a gateway
      caused by: EOF while parsing a value at line 1 column 0

    exit 2
    error: http://ELSEWHERE/api/approvals/3: this is not the console of a gateway: the server answered 404 Not Found <!DOCTYPE html>

    exit 2
    error: http://ELSEWHERE/api/approvals/3: this is not the console of a gateway: it understood a different answer

    exit 2
    error: --token-file: two
      caused by: it has several lines; leave only the token in it

    exit 2
    error: --token-file: long
      caused by: it has more than 65536 bytes; a token is one line

    exit 2
    error: --url: "http://" is not an address; write one such as http://127.0.0.1:8080
    "#);
    let audit = std::fs::read_to_string(files.path("audit.jsonl")).unwrap();
    let answered: Vec<String> = audit
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|line| line["approver"].is_string())
        .map(|line| format!("{} {}", line["decision"].as_str().unwrap(), line["approver"].as_str().unwrap()))
        .collect();
    assert_eq!(answered, ["allow operator", "refuse operator"]);
}

/// A gateway in front of a folder and a database: found, read and asked without a process, and nothing else is reached.
#[test]
fn servers_that_need_no_process_are_served() {
    use serde_json::{Value, json};

    let files = Files::new();
    files.write("manual/lamps.md", "# Lamps\n\n## Repair\n\nReplace the bulb.\n\n## Prices\n\nThe shop has them.\n");
    files.write("manual/deep/sofa.txt", "A sofa has no bulb.\n");
    files.write("manual/large.md", vec![b'x'; 1024 * 1024 + 1]);
    files.write("secret.md", "s3cret");
    let shop = rusqlite::Connection::open(files.path("shop.sqlite")).unwrap();
    shop.execute_batch("CREATE TABLE lamps (name TEXT, price REAL); INSERT INTO lamps VALUES ('desk', 12.5)").unwrap();
    drop(shop);
    files.write(
        "gateway.yaml",
        "upstreams: {manual: {documents: manual}, shop: {database: shop.sqlite, timeout: 5}}\n\
         policy: {default: deny, tags: {open: ['manual:*', 'shop:query']}, rules: [{action: allow, tags: [open]}]}\n\
         audit: {file: audit.jsonl}\n",
    );
    let call = |tool: &str, args: Value| json!({"name": "tool_execute", "arguments": {"tool_id": tool, "args": args}});
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
    // What SQLite holds is counted for a whole process, so that no test shares one with this query.
    let large = "WITH RECURSIVE n(x) AS (SELECT zeroblob(200000) UNION ALL SELECT zeroblob(200000) FROM n) \
                 SELECT length(x) FROM n ORDER BY x";
    let expected = [
        (call("manual:search", json!({"query": "replace a bulb", "limit": 1})), false, "Replace the bulb."),
        (call("manual:read", json!({"path": "lamps.md", "first_line": 7})), false, "The shop has them."),
        (call("manual:read", json!({"path": "../secret.md"})), true, "leads out of the folder"),
        (call("manual:read", json!({"path": "large.md"})), true, "has more than 1048576 bytes"),
        (
            call("shop:query", json!({"sql": "SELECT price FROM lamps WHERE name = ?", "parameters": ["desk"]})),
            false,
            "12.5",
        ),
        (call("shop:query", json!({"sql": "DELETE FROM lamps"})), true, "the statement asks for a change of lamps"),
        (call("shop:query", json!({"sql": "SELECT 1; SELECT 2"})), true, "there is more than one statement"),
        (call("shop:query", json!({})), true, "ARGS_INVALID"),
        (call("shop:schema", json!({})), true, "POLICY_DENIED"),
        (call("shop:query", json!({ "sql": endless })), true, "ended after 4.5 s"),
        (call("shop:query", json!({ "sql": large })), true, "queries hold more than"),
        (call("shop:query", json!({"sql": "SELECT count(*) FROM lamps"})), false, "[[1]]"),
    ];
    let calls = expected.clone().map(|(call, ..)| call);
    let (answers, said) = files.converse(&["mcp", "serve", "--config", "gateway.yaml"], &calls);
    for ((call, fails, text), answer) in expected.iter().zip(&answers) {
        let told = answer["content"][0]["text"].as_str().unwrap();
        assert!(told.contains(text) && (answer["isError"] == true) == *fails, "{call}: {answer}");
    }
    assert!(said.contains("large.md: it has more than 1048576 bytes"), "{said}");
    let audit = std::fs::read_to_string(files.path("audit.jsonl")).unwrap();
    assert!(audit.contains("manual:search") && audit.contains("POLICY_DENIED"), "{audit}");

    // A query that does not end costs others nothing: what is asked behind it is answered before it.
    let mut child = files.start(&["mcp", "serve", "--config", "gateway.yaml"]);
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let asked = [
        (0, "initialize", hello),
        (1, "tools/call", call("shop:query", json!({ "sql": endless }))),
        (2, "tools/call", call("shop:query", json!({"sql": "SELECT 1"}))),
        (3, "tools/call", call("manual:search", json!({"query": "bulb"}))),
    ];
    for (id, method, params) in asked {
        use std::io::Write as _;
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).unwrap();
    }
    let lines = std::io::BufRead::lines(std::io::BufReader::new(output));
    let answered = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let order: Vec<i64> = answered.filter_map(|answer| answer["id"].as_i64()).take(4).collect();
    assert_eq!((order.first(), order.last()), (Some(&0), Some(&1)), "{order:?}");
    drop(input);
    assert!(child.wait().unwrap().success());

    // What is wrong is said with its place, by the examination and at the start.
    let doctor = files.run(&["mcp", "doctor", "--config", "gateway.yaml"]);
    assert!(
        doctor.stdout.contains("  no program: it reads manual and changes nothing")
            && doctor.stdout.contains("warning: upstreams.manual.documents: 1 left out: large.md: it has more than"),
        "{}",
        doctor.shown()
    );
    files.write(
        "wrong.yaml",
        "upstreams: {a: {documents: shop.sqlite}, b: {database: manual/large.md}, c: {database: none.db}}",
    );
    let doctor = files.run(&["mcp", "doctor", "--config", "wrong.yaml"]);
    for complaint in [
        "error: upstreams.a.documents: shop.sqlite is not a folder",
        "error: upstreams.b.database: manual/large.md: file is not a database",
        "error: upstreams.c.database: none.db: No such file or directory",
    ] {
        assert!(doctor.code == 1 && doctor.stdout.contains(complaint), "{complaint}: {}", doctor.shown());
    }
    let started = files.run(&["mcp", "serve", "--config", "wrong.yaml", "--dry-run"]);
    assert!(
        started.code == 2 && started.stderr.contains("shop.sqlite is not a folder; name the folder"),
        "{}",
        started.shown()
    );
}

#[cfg(unix)]
#[test]
fn a_configuration_that_only_its_owner_may_read_stays_one() {
    use std::os::unix::fs::PermissionsExt;
    let files = Files::new();
    files.write(".mcp.json", r#"{"mcpServers": {"mail": {"command": "uvx", "args": ["mail"]}}}"#);
    let path = files.write("gateway.yaml", "upstreams:\n  git:\n    command: uvx\n    args: [git]\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let home = files.path("").display().to_string();
    for words in [
        &["add", "docs", "https://h.example/mcp"] as &[&str],
        &["add", "docs", "--force", "--", "uvx", "docs"],
        &["remove", "docs"],
        &["import", ".mcp.json", "--apply", "--write", "gateway.yaml"],
    ] {
        let ran = files.run_with(&[&["mcp"], words].concat(), &[("HOME", &home)]);
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.shown());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{words:?}: {mode:o}");
    }
}

#[test]
fn a_server_is_added_to_a_configuration_and_removed() {
    let files = Files::new();
    let run = |words: &[&str]| {
        let home = files.path("").display().to_string();
        files.run_with(&[&["mcp"], words].concat(), &[("HOME", &home)]).shown()
    };
    let program = env!("CARGO_BIN_EXE_contextweaver");
    let mut shown = vec![run(&["preview"]), run(&["import"])];
    shown.push(run(&["add", "git", "-e", "LOG=debug", "-e", "GIT_TOKEN=hunter2", "--", "uvx", "mcp-server-git"]));
    shown.push(run(&["add", "git", "--", "other"]));
    shown.push(run(&["add", "docs", "https://h.example/mcp", "-H", "Authorization: Bearer hunter2", "-t", "sse"]));
    let gateway = std::fs::read_to_string(files.path("gateway.yaml")).unwrap();
    shown.push(gateway.clone());
    files.write("gateway.yaml", gateway.replace("upstreams:", "top_k: 5 # five\nupstreams: # mine"));
    shown.push(run(&["add", "git", "--force", "--", "./git"]));
    shown.push(run(&["remove", "docs"]));
    shown.push(std::fs::read_to_string(files.path("gateway.yaml")).unwrap());
    for wrong in [
        &["add", "x"] as &[&str],
        &["add", "x", "uvx"],
        &["add", "x", "http://h", "-e", "A=b"],
        &["add", "x", "-H", "A: b", "--", "y"],
        &["add", "x", "-t", "http", "--", "y"],
        &["add", "GIT", "--", "./git"],
        &["add", "x", "--config", ".mcp.json", "--", "y"],
        &["remove", "docs"],
    ] {
        shown.push(run(wrong));
    }
    insta::assert_snapshot!(shown.join("\n"), @"
    exit 2
    error: there is no gateway.yaml in this folder; name a configuration with --config, or make one: contextweaver mcp import --write gateway.yaml takes the servers of your clients, contextweaver mcp add NAME -- COMMAND adds one

    exit 2
    error: no client's file with servers was found; name one, or add a server yourself: contextweaver mcp add NAME -- COMMAND

    exit 0
    gateway.yaml: added `git`
      uvx mcp-server-git LOG=*** GIT_TOKEN=***
      note: the value of `GIT_TOKEN` may be a secret, and is not written into the file: set GIT_TOKEN to it in the gateway's environment
    next: contextweaver mcp doctor

    exit 2
    error: gateway.yaml: there is a server `git` already; choose another name, or replace it with --force

    exit 0
    gateway.yaml: added `docs`
      https://h.example/mcp Authorization=***
      note: what follows `Bearer ` in `Authorization` may be a secret, and is not written into the file: set DOCS_AUTHORIZATION to it in the gateway's environment
    next: contextweaver mcp doctor

    # yaml-language-server: $schema=gateway.schema.json
    # For completion in editors: contextweaver schema gateway > gateway.schema.json
    upstreams:
      git:
        command: uvx
        args:
        - mcp-server-git
        env:
          LOG: debug
          GIT_TOKEN: ${env:GIT_TOKEN}
      docs:
        type: sse
        url: https://h.example/mcp
        headers:
          Authorization: Bearer ${env:DOCS_AUTHORIZATION}

    exit 0
    gateway.yaml: added `git`
      ./git
      note: clients start the gateway in a folder of their choice; write the full path of the program
    next: contextweaver mcp doctor

    exit 0
    gateway.yaml: removed `docs`

    # yaml-language-server: $schema=gateway.schema.json
    # For completion in editors: contextweaver schema gateway > gateway.schema.json
    top_k: 5 # five
    upstreams: # mine
      git:
        command: ./git

    exit 2
    error: say how `x` is reached: contextweaver mcp add x -- PROGRAM ARGUMENTS, or contextweaver mcp add x URL

    exit 2
    error: `uvx` is not an address that begins with http:// or https://; a program stands behind `--`: contextweaver mcp add x -- uvx

    exit 2
    error: --env is for a program; a server at an address takes --header

    exit 2
    error: --header is for a server at an address; a program takes --env

    exit 2
    error: --transport http and sse are for a server at an address; give its URL in place of the program

    exit 2
    error: `GIT` cannot be added: the configuration already has it, as `git`

    exit 2
    error: .mcp.json is the file of a client; name another file with --config

    exit 2
    error: gateway.yaml: there is no server `docs`; it has git
    ");
    files.write("session.ndjson", SESSION);
    run(&["add", "notes", "--config", "notes.json", "--", program, "mcp", "playback", "session.ndjson"]);
    assert!(run(&["preview", "--config", "notes.json"]).contains("notes: 2 tools"));
    assert_eq!(files.names(), ["gateway.yaml", "notes.json", "session.ndjson"]);
}

/// A configuration that refers to a file, which stands in its folder.
#[test]
fn a_reference_to_a_file_stays_when_servers_come_and_go() {
    let files = Files::new();
    files.write("secrets/tok", "topsecret\n");
    let before = "upstreams:\n  a:\n    command: cat\n    args: [\"${file:secrets/tok}\"]\n  b:\n    command: ls\n";
    files.write("folder/rel.yaml", before.replace("secrets", "../secrets"));
    files.write("rel.yaml", before);
    files.write("client.json", r#"{"mcpServers": {"c": {"command": "/bin/c", "args": ["${file:/etc/hosts}"]}}}"#);
    let home = files.path("").display().to_string();
    let run = |words: &[&str]| {
        let ran = files.run_with(&[&["mcp"], words].concat(), &[("HOME", &home)]);
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.shown());
        ran.shown()
    };
    run(&["add", "z", "--config", "folder/rel.yaml", "--", "echo"]);
    let mut shown = vec![
        run(&["add", "x", "--config", "rel.yaml", "-e", "K=${file:secrets/tok}", "--", "cat", "${file:secrets/tok}"]),
        run(&[
            "add",
            "y",
            "--config",
            "rel.yaml",
            "https://h.example/m",
            "-H",
            "Authorization: Bearer ${file:secrets/tok}",
        ]),
    ];
    run(&["remove", "b", "--config", "rel.yaml"]);
    run(&["import", "client.json", "--apply", "--write", "rel.yaml"]);
    shown.push(std::fs::read_to_string(files.path("rel.yaml")).unwrap());
    insta::assert_snapshot!(shown.join("\n"), @r#"
    exit 0
    rel.yaml: added `x`
      cat ${file:secrets/tok} K=***
    next: contextweaver mcp doctor --config rel.yaml

    exit 0
    rel.yaml: added `y`
      https://h.example/m Authorization=***
    next: contextweaver mcp doctor --config rel.yaml

    upstreams:
      a:
        command: cat
        args: ["${file:secrets/tok}"]
      x:
        command: cat
        args:
        - ${file:secrets/tok}
        env:
          K: ${file:secrets/tok}
      "y":
        url: https://h.example/m
        headers:
          Authorization: Bearer ${file:secrets/tok}
      c:
        command: /bin/c
        args:
        - ${env:C_FILE}
    "#);
    let client = std::fs::read_to_string(files.path("client.json")).unwrap();
    assert!(client.contains(r#""C_FILE":"${file:/etc/hosts}""#), "{client}");
}

#[test]
fn a_secret_beside_a_reference_is_not_written() {
    let files = Files::new();
    let home = files.path("").display().to_string();
    let run = |words: &[&str]| files.run_with(&[&["mcp"], words].concat(), &[("HOME", &home)]).shown();
    let mut shown = vec![
        run(&[
            "add",
            "h",
            "https://e.example/m",
            "-H",
            "Authorization: Bearer realsecret123${env:EMPTY}",
            "-H",
            "X-Api-Key: ${env:EMPTY}realsecret",
        ]),
        run(&["add", "g", "-e", "TOKEN=real${env:X}", "-e", "BASE=https://${env:HOST}/path", "--", "cat", "y"]),
        run(&["add", "c", "--", "curl", "-u", "user:pass1", "--token-file", "./t", "https://e.example"]),
        run(&[
            "add",
            "s",
            "--config",
            "s.json",
            "--",
            "sh",
            "-c",
            r#"curl -H "Authorization: Bearer abc" https://e.example"#,
        ]),
        run(&["add", "n\nl", "--", "x"]),
    ];
    let config = std::fs::read_to_string(files.path("gateway.yaml")).unwrap();
    let script = std::fs::read_to_string(files.path("s.json")).unwrap();
    for secret in ["real", "pass1", "abc"] {
        assert!(!config.contains(secret) && !script.contains(secret), "{secret}: {config}{script}");
    }
    shown.push(config);
    insta::assert_snapshot!(shown.join("\n"), @r#"
    exit 0
    gateway.yaml: added `h`
      https://e.example/m Authorization=*** X-Api-Key=***
      note: what follows `Bearer ` in `Authorization` may be a secret, and is not written into the file: set H_AUTHORIZATION to it in the gateway's environment; references in it are not replaced there, so write what they stand for
      note: the value of `X-Api-Key` may be a secret, and is not written into the file: set H_X_API_KEY to it in the gateway's environment; references in it are not replaced there, so write what they stand for
    next: contextweaver mcp doctor

    exit 0
    gateway.yaml: added `g`
      cat y TOKEN=*** BASE=***
      note: the value of `TOKEN` may be a secret, and is not written into the file: set TOKEN to it in the gateway's environment; references in it are not replaced there, so write what they stand for
    next: contextweaver mcp doctor

    exit 0
    gateway.yaml: added `c`
      curl -u user:${env:C_PASSWORD} --token-file ./t https://e.example
      note: the password behind `-u` may be a secret, and is not written into the file: set C_PASSWORD to it in the gateway's environment
    next: contextweaver mcp doctor

    exit 0
    s.json: added `s`
      sh -c curl -H "Authorization: Bearer ${env:S_AUTHORIZATION}" https://e.example
      note: the value of `Authorization` may be a secret, and is not written into the file: set S_AUTHORIZATION to it in the gateway's environment
    next: contextweaver mcp doctor --config s.json

    exit 2
    error: `n\nl` cannot be added: its name has a control character in it, such as the end of a line; give it another

    # yaml-language-server: $schema=gateway.schema.json
    # For completion in editors: contextweaver schema gateway > gateway.schema.json
    upstreams:
      h:
        url: https://e.example/m
        headers:
          Authorization: Bearer ${env:H_AUTHORIZATION}
          X-Api-Key: ${env:H_X_API_KEY}
      g:
        command: cat
        args:
        - "y"
        env:
          TOKEN: ${env:TOKEN}
          BASE: https://${env:HOST}/path
      c:
        command: curl
        args:
        - -u
        - user:${env:C_PASSWORD}
        - --token-file
        - ./t
        - https://e.example
    "#);
}

#[test]
fn a_configuration_that_is_written_anew_again_and_again_leaves_a_copy_of_each() {
    let files = Files::new();
    let home = files.path("").display().to_string();
    let run = |words: &[&str]| {
        let ran = files.run_with(&[&["mcp"], words].concat(), &[("HOME", &home)]);
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.shown());
        ran.shown()
    };
    let texts = ["first", "second"].map(|one| format!("upstreams: {{a: {{command: a}}, b: {{command: b}}}} # {one}\n"));
    // The third time it is what it was the second time.
    for (number, text) in [&texts[0], &texts[1], &texts[1]].into_iter().enumerate() {
        files.write("gateway.yaml", text);
        let copy = ["gateway.yaml.before-contextweaver is", "gateway.yaml.before-contextweaver-2 is"][number.min(1)];
        let shown = run(&["remove", "b"]);
        assert!(shown.contains(copy), "{shown}");
    }
    for (name, text) in
        [("gateway.yaml.before-contextweaver", &texts[0]), ("gateway.yaml.before-contextweaver-2", &texts[1])]
    {
        assert_eq!(&std::fs::read_to_string(files.path(name)).unwrap(), text);
    }
    assert_eq!(files.names().len(), 3);
}

#[cfg(unix)]
#[test]
fn a_configuration_goes_through_a_link_and_into_no_device() {
    let files = Files::new();
    let home = files.path("").display().to_string();
    std::os::unix::fs::symlink("real.yaml", files.path("link.yaml")).unwrap();
    let add = |config: &str| files.run_with(&["mcp", "add", "x", "--config", config, "--", "y"], &[("HOME", &home)]);
    let shown = add("link.yaml");
    assert_eq!(shown.code, 0, "{}", shown.shown());
    assert!(files.path("link.yaml").is_symlink() && files.path("real.yaml").is_file());
    let shown = add("/dev/null");
    assert_eq!((shown.code, shown.stderr.as_str()), (2, "error: /dev/null is not a file; name one with --config\n"));
}

#[test]
fn the_gateway_is_tried_without_a_client() {
    let files = Files::new();
    let server = serde_json::json!({"command": env!("CARGO_BIN_EXE_contextweaver"), "args": ["mcp", "memory-serve", "--store", "notes.db"], "cwd": files.path("")});
    let config = serde_json::json!({"upstreams": {"notes": server}, "diagnostics": "events.jsonl"});
    files.write("gateway.yaml", config.to_string());
    let call = |arguments: &[&str]| files.run(&[&["mcp", "call"], arguments].concat());
    let listed = call(&["--format", "json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["tools"].as_array().unwrap().len(), 3, "{listed}");
    let shown = [
        call(&["tool_browse", "query=keep a note"]),
        // One session: what the first keeps, the second finds; a short name and an id without its hash are enough.
        call(&["remember", "key=a", "value=\"5\"", "notes:search", r#"{"query": "a"}"#]),
        // The first that fails is the last that is called.
        call(&["notes:search", "notes:list"]),
        call(&["key=a"]),
        call(&["notes:search", "{\"query\""]),
    ];
    let shown: Vec<String> = shown.iter().map(Run::shown).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    exit 0
    nothing fits well; the nearest are:
    notes:remember#d3e568fe — Remember a fact under a key. A fact with the same key is replaced.
    notes:record#1a961a46 — Record an episode: in one or two sentences what was done and what came of it.
    notes:forget#3032eb41 — Forget a fact by its key, or an episode by its id. [destructive]
    notes:list#1bde92de — List the remembered facts by key. [read-only]
    notes:search#baf1bc22 — Search what is remembered: facts and episodes that share words with the query, the best first. [read-only]
    (ask again in words that a tool's author would use, one step at a time, or list `path`: `/`)

    exit 0
    remember:
    kept as a
    notes:search:
    - notes:a: a: 5

    exit 1
    notes:search:
    {"error":"ARGS_INVALID","message":"the arguments: \"query\" is a required property","path":"notes:search#baf1bc22","retryable":false,"details":{"violations":[{"path":"","reason":"\"query\" is a required property"}],"arguments":"{query: string}","example":{"query":"<query>"}}}

    exit 2
    error: the name of a tool comes before its arguments: `key=a` has none before it

    exit 2
    error: arguments of notes:search: no JSON object
      caused by: EOF while parsing an object at line 1 column 8
    "#);
    let stats = files.run(&["mcp", "stats", "--format", "json"]);
    let stats: serde_json::Value = serde_json::from_str(&stats.stdout).unwrap();
    assert_eq!(stats["savings"]["spent"]["calls"], 2, "{stats}");
    // Neither is the first called where the second is no tool: a word is easily taken for an argument.
    for words in [&["remember", "key=b", "value=c", "no-such-tool"][..], &["notes:list", "lamp"]] {
        let refused = call(words);
        let word = words.last().unwrap();
        assert_eq!((refused.code, &*refused.stdout), (2, ""), "{}", refused.shown());
        let told = format!("error: `{word}`: no such tool is in the catalog now; ");
        let how = "; nothing was called. An argument of a tool is written NAME=VALUE\n";
        assert!(refused.stderr.starts_with(&told) && refused.stderr.ends_with(how), "{}", refused.shown());
    }
    assert!(!call(&["notes:list"]).stdout.contains("b: c"));
    // With a catalog there is no server.
    files.write("tools.json", TOOLS);
    let found = call(&["--catalog", "tools.json", "tool_browse", "query=deploy", "--format", "json"]);
    let found: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(found["results"][0]["result"]["isError"], false, "{found}");
}
