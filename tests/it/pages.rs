//! Every command on a page for users is run, and what it prints is compared where the page says it.
//!
//! A page's `sh` and `console` blocks run in order, in one folder that holds the files they name. A block of commands that no
//! test can run says so where its reader sees it: its first line, behind `#!`, begins with [`MARK`] and ends with the reason.
//! In what a `console` block prints, `…` stands for any text, and on a line alone for any lines.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Files, checkout};

/// The first line of a block that is not run.
const MARK: &str = "# Not run by the tests: ";

/// The pages whose blocks are run.
const PAGES: [&str; 25] = [
    "CONTRIBUTING.md",
    "README.md",
    "docs/ci.md",
    "docs/choose.md",
    "docs/collections.md",
    "docs/comparison.md",
    "docs/concepts.md",
    "docs/embed.md",
    "docs/engines.md",
    "docs/fewer-tokens.md",
    "docs/formats.md",
    "docs/from-contextweaver-py.md",
    "docs/gateway.md",
    "docs/http.md",
    "docs/install.md",
    "docs/memory.md",
    "docs/model.md",
    "docs/performance.md",
    "docs/prompts.md",
    "docs/python.md",
    "docs/report.md",
    "docs/route.md",
    "docs/scale.md",
    "docs/table.md",
    "packaging/python/README.md",
];

/// What a block of commands asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Commands as in a script.
    Script,
    /// Commands behind `$ `, each with what it prints.
    Console,
}

/// A fenced block of commands.
#[derive(Debug)]
pub(crate) struct Block {
    kind: Kind,
    /// What stands between the fences.
    pub(crate) text: String,
    /// The line of its first fence.
    line: usize,
}

impl Block {
    /// Why it is not run, where it says so.
    fn reason(&self) -> Option<&str> {
        self.text.lines().find(|line| !line.starts_with("#!"))?.strip_prefix(MARK)
    }

    /// The commands of a `console` block, each with the lines that it prints.
    fn commands(&self) -> Vec<(&str, Vec<&str>)> {
        let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in self.text.lines() {
            match (line.strip_prefix("$ "), found.last_mut()) {
                (Some(command), _) => found.push((command, Vec::new())),
                (None, Some((_, printed))) => printed.push(line),
                (None, None) => panic!("line {}: a console block begins with `$ `", self.line),
            }
        }
        found
    }
}

/// The blocks of commands of a page, in order; below one heading alone where it is given.
pub(crate) fn blocks(page: &str, heading: Option<&str>) -> Vec<Block> {
    let text = fs::read_to_string(checkout().join(page)).unwrap();
    let (mut found, mut open, mut inside) = (Vec::new(), None::<Block>, heading.is_none());
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(mut block) = open.take() {
            if line.trim_start().starts_with("```") {
                if inside {
                    found.push(block);
                }
            } else {
                // A block in a list is indented with it.
                let shown = line.strip_prefix("   ").filter(|_| block.text.is_empty() && line.starts_with("   "));
                writeln!(block.text, "{}", shown.unwrap_or(line)).unwrap();
                open = Some(block);
            }
        } else if let Some(kind) = match line.trim() {
            "```sh" => Some(Kind::Script),
            "```console" => Some(Kind::Console),
            _ => None,
        } {
            open = Some(Block { kind, text: String::new(), line: number });
        } else if let (Some(heading), true) = (heading, line.starts_with("## ")) {
            inside = line == heading;
        }
    }
    assert!(open.is_none(), "{page}: a block is not closed");
    assert!(heading.is_none() || !found.is_empty(), "{page}: no block below {heading:?}");
    found
}

/// Runs commands in a folder as a reader does, with the command on the path.
pub(crate) fn shell(files: &Files, script: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_contextweaver")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    // What it prints goes to files: one that is left behind by a command holds no pipe of ours.
    let said = tempfile::tempdir().unwrap();
    let file = |name: &str| said.path().join(name);
    let into = |name: &str| Stdio::from(fs::File::create(file(name)).unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-euc", script]).stdin(Stdio::null()).stdout(into("out")).stderr(into("err"));
    shell.current_dir(files.path(".")).env("PATH", path).env("NO_COLOR", "1").env("COLUMNS", "100");
    // Nothing reads or changes the files of whoever runs the tests.
    shell.env("HOME", files.path("home")).env_remove("XDG_CONFIG_HOME");
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    let mut child = shell.spawn().unwrap();
    // A command that waits for more input, or for ever, must not hold the tests.
    let until = Instant::now() + Duration::from_secs(300);
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(2)),
            None => {
                let _ = Command::new("kill").args(["-9", "--", &format!("-{}", child.id())]).status();
                let _ = child.kill();
                break child.wait().unwrap();
            }
        }
    };
    Output { status, stdout: fs::read(file("out")).unwrap(), stderr: fs::read(file("err")).unwrap() }
}

/// Whether lines are those that were printed, where `…` stands for any text, and alone for any lines.
fn fits(expected: &[&str], printed: &[&str]) -> bool {
    match (expected.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((&"…", rest)), None) => fits(rest, &[]),
        (Some((&"…", rest)), Some((_, later))) => fits(rest, printed) || fits(expected, later),
        (Some((one, rest)), Some((line, later))) => line_fits(one, line) && fits(rest, later),
        _ => false,
    }
}

/// Whether a line is that which was printed, where `…` stands for any text.
fn line_fits(expected: &str, printed: &str) -> bool {
    let Some((first, rest)) = expected.split_once('…') else { return expected == printed };
    let Some(mut left) = printed.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('…').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match left.split_once(part) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    left.ends_with(last)
}

/// The first thirty queries of a collection that a tool answers, and its catalog.
pub(crate) fn thirty_queries() -> Files {
    let files = Files::new();
    let read = |name: &str| fs::read_to_string(checkout().join("gold/household").join(name)).unwrap();
    let answered = |line: &&str| !line.contains("\"relevant\": []") && !line.contains("\"relevant\":[]");
    let lines: Vec<String> =
        read("queries.jsonl").lines().filter(answered).take(30).map(|line| format!("{line}\n")).collect();
    files.write("tools.json", read("catalog.json"));
    files.write("queries.jsonl", lines.concat());
    files
}

/// A folder with the files that pages name.
fn folder() -> Files {
    let files = thirty_queries();
    let tools = fs::read_to_string(files.path("tools.json")).unwrap();
    let of_checkout = |name: &str| fs::read_to_string(checkout().join(name)).unwrap();
    let log = |number: usize| match number {
        2718 => "2026-11-24T10:45:18 ERROR disk full on /var\n".to_owned(),
        _ => format!("2026-11-24T10:{:02}:{:02} GET /item/{number} 200\n", number / 60 % 60, number % 60),
    };
    let log: String = (0..4000).map(log).collect();
    let result = serde_json::json!({"content": [{"type": "text", "text": &log}]});
    let engine = of_checkout("docs/engines.md");
    let mut programs = engine.split("```python\n").skip(1).map(|text| text.split_once("```").unwrap().0.to_owned());
    let (engine, chooser) = (programs.next().unwrap(), programs.next().unwrap());
    // The home of a person with a client, whose server comes with the program.
    let notes = serde_json::json!({"command": "contextweaver", "args": ["mcp", "memory-serve", "--store", files.path("notes.db")]});
    let client = serde_json::json!({"mcpServers": {"notes": notes}});
    for (name, text) in [
        ("home/.cursor/mcp.json", client.to_string()),
        ("gold/household/catalog.json", tools.clone()),
        ("servers/home.json", tools.clone()),
        ("before.json", tools.clone()),
        ("after.json", tools.replacen("List every device", "Name every device", 1)),
        ("access.log", log),
        ("result.json", result.to_string()),
        ("conversation.json", of_checkout("scenarios/context/outage.jsonl")),
        ("monday.json", of_checkout("scenarios/context/refund.jsonl")),
        ("engine.py", engine),
        ("chooser.py", chooser),
        ("mcp.json", r#"{"mcpServers": {"forge": {"command": "forge-server", "env": {"TOKEN": "t0ken"}}}}"#.to_owned()),
        ("a.toml", "scorer = \"bm25\"\n".to_owned()),
        ("b.toml", "copies = \"together\"\n".to_owned()),
    ] {
        files.write(name, text);
    }
    files
}

/// Runs the blocks of a page; says how many commands and outputs there were, and what was not run.
fn run(page: &str) -> String {
    let files = folder();
    let (mut ran, mut compared, mut left) = (0, 0, String::new());
    for block in blocks(page, None) {
        if let Some(reason) = block.reason() {
            writeln!(left, "    not run: {reason}").unwrap();
            continue;
        }
        let place = format!("{page}:{}", block.line);
        let succeeds = |script: &str| {
            let output = shell(&files, script);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert!(
                output.status.success(),
                "{place}: {}\n{}{}",
                output.status,
                text(&output.stdout),
                text(&output.stderr)
            );
            text(&output.stdout)
        };
        match block.kind {
            Kind::Script => {
                succeeds(&block.text);
                ran += 1;
            }
            Kind::Console => {
                for (command, expected) in block.commands() {
                    let printed = succeeds(command);
                    let lines: Vec<&str> = printed.lines().collect();
                    assert!(fits(&expected, &lines), "{place}: `{command}` prints\n{printed}");
                    compared += 1;
                }
            }
        }
    }
    format!("{page}: blocks run {ran}, outputs compared {compared}\n{left}")
}

#[test]
fn what_pages_say_is_what_happens() {
    // Pages share nothing, and each spends most of its time in processes of its own.
    let told = std::thread::scope(|scope| {
        let pages: Vec<_> = PAGES.map(|page| scope.spawn(move || run(page))).into_iter().collect();
        pages
            .into_iter()
            .map(|page| page.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<String>()
    });
    insta::assert_snapshot!(told, @r#"
    CONTRIBUTING.md: blocks run 0, outputs compared 0
        not run: it compiles.
    README.md: blocks run 5, outputs compared 1
        not run: scripts/package-test does, in empty environments.
        not run: scripts/image-test does, where there is nothing but a container runtime.
        not run: it compiles.
        not run: scripts/http-test asks a server.
    docs/ci.md: blocks run 3, outputs compared 0
        not run: a gate that fails ends it.
    docs/choose.md: blocks run 4, outputs compared 0
        not run: it starts a server.
    docs/collections.md: blocks run 0, outputs compared 0
        not run: it downloads.
    docs/comparison.md: blocks run 1, outputs compared 0
    docs/concepts.md: blocks run 0, outputs compared 4
    docs/embed.md: blocks run 2, outputs compared 0
    docs/engines.md: blocks run 2, outputs compared 2
        not run: `theirs` is a ranking of your own.
        not run: it asks a model.
        not run: the check of this project does, on a whole collection.
        not run: it installs the packages of others.
        not run: it names files of your own.
    docs/fewer-tokens.md: blocks run 6, outputs compared 3
    docs/formats.md: blocks run 1, outputs compared 0
    docs/from-contextweaver-py.md: blocks run 0, outputs compared 0
    docs/gateway.md: blocks run 7, outputs compared 4
        not run: it changes the settings of a client.
        not run: it installs a package and serves until it is ended.
        not run: it goes on until it is ended.
        not run: it starts your servers, and needs a file of events.
        not run: it needs the audit log of a gateway.
        not run: it serves until it is ended.
        not run: it serves until it is ended, and the others need it.
        not run: it needs a gateway that runs.
        not run: it compiles.
    docs/http.md: blocks run 0, outputs compared 0
        not run: scripts/http-test asks a server.
        not run: it compiles.
        not run: scripts/http-test does, with a server of its own.
    docs/install.md: blocks run 0, outputs compared 1
        not run: there is no release yet.
        not run: it compiles.
        not run: scripts/image-test does, with stand-ins for podman and for the base images.
        not run: scripts/image-test does.
        not run: nothing is published yet.
    docs/memory.md: blocks run 3, outputs compared 5
        not run: it needs a service.
        not run: it serves until its input ends.
    docs/model.md: blocks run 1, outputs compared 0
        not run: it trains an encoder.
    docs/performance.md: blocks run 0, outputs compared 0
        not run: it compiles.
    docs/prompts.md: blocks run 5, outputs compared 10
        not run: it measures for minutes, in the checkout.
    docs/python.md: blocks run 0, outputs compared 0
        not run: scripts/package-test does, in an empty environment.
    docs/report.md: blocks run 1, outputs compared 0
        not run: tests/it/own.rs does, in a workspace.
        not run: scripts/report-test does, in a checkout.
    docs/route.md: blocks run 6, outputs compared 2
    docs/scale.md: blocks run 0, outputs compared 0
        not run: it needs Slurm.
        not run: it needs Slurm.
        not run: scripts/scale/test does, with a scheduler of its own.
    docs/table.md: blocks run 0, outputs compared 0
        not run: it trains a table.
    packaging/python/README.md: blocks run 1, outputs compared 0
    "#);
}

#[test]
fn every_page_with_commands_is_run() {
    let names = fs::read_dir(checkout().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    let pages = names.map(|name| format!("docs/{}", name.to_string_lossy())).filter(|page| page.ends_with(".md"));
    let forgotten: Vec<String> =
        pages.filter(|page| !PAGES.contains(&page.as_str()) && !blocks(page, None).is_empty()).collect();
    assert!(forgotten.is_empty(), "add to PAGES: {forgotten:?}");
}

/// Every configuration on the page of the gateway is one that the gateway takes. Those that show a part get a server.
#[test]
fn configurations_of_the_gateway_are_valid() {
    let page = fs::read_to_string(checkout().join("docs/gateway.md")).unwrap();
    let mut read = 0;
    for block in page.split("```yaml\n").skip(1) {
        let (text, _) = block.split_once("```").unwrap();
        // A block in a list is indented with it.
        let indent = text.len() - text.trim_start_matches(' ').len();
        let mut text: String =
            text.lines().map(|line| format!("{}\n", line.get(indent..).unwrap_or_default())).collect();
        if !text.contains("upstreams:") {
            text.push_str(
                "upstreams: {git: {command: git-server}, pay: {command: pay-server}, docs: {command: docs-server}, admin: {command: admin-server}}\n",
            );
        }
        if text.contains("profile: reader") && !text.contains("visibility_profiles:") {
            text.push_str("visibility_profiles: {reader: {include_namespaces: [docs]}}\n");
        }
        let folder = Files::new();
        folder.write("me.token", "a-token-of-at-least-so-many-letters\n");
        for (name, certificate) in
            [("gateway.pem", "server.pem"), ("gateway.key", "server.key"), ("staff.pem", "authority.pem")]
        {
            let from = checkout().join("crates/gateway/src/transport/http/testdata").join(certificate);
            folder.write(name, fs::read_to_string(from).unwrap());
        }
        let parsed =
            contextweaver::GatewayConfig::parse(&text, &folder.path(""), &|_| Some("value-of-a-variable".to_owned()));
        assert!(parsed.is_ok(), "{text}{}", parsed.err().unwrap());
        read += 1;
    }
    assert!(read >= 4, "{read}");
}

/// Every message on the page of messages is one that the program has: its fixed words stand in the sources.
#[test]
fn messages_that_are_explained_are_those_of_the_program() {
    let page = fs::read_to_string(checkout().join("docs/troubleshooting.md")).unwrap();
    let mut sources = String::new();
    let mut folders = vec![checkout().join("src"), checkout().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                sources.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    // A literal that is broken over lines is one text.
    let pieces: Vec<&str> = sources.split("\\\n").collect();
    let sources: String =
        pieces.iter().enumerate().map(|(at, one)| if at > 0 { one.trim_start() } else { *one }).collect();
    let mut messages = 0;
    for heading in page.lines().filter_map(|line| line.strip_prefix("### `")) {
        for part in heading.trim_end_matches('`').split('…').map(|part| part.trim_matches(['`', ':', ' '])) {
            assert!(part.len() < 3 || sources.contains(part), "docs/troubleshooting.md: no message says `{part}`");
        }
        messages += 1;
    }
    assert!(messages > 20, "{messages}");
}

/// The rule for a client's own file begins with what the gateway says of itself.
#[test]
fn the_rule_for_clients_is_what_the_gateway_says() {
    let files = Files::new();
    files.write("tools.json", r#"[{"name": "lights", "description": "Turn on the lights."}]"#);
    let introduction = r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "pages", "version": "1"}}}"#;
    let served = shell(&files, &format!("echo '{introduction}' | contextweaver mcp serve --catalog tools.json"));
    let answer: serde_json::Value = serde_json::from_slice(&served.stdout).unwrap();
    let said = answer["result"]["instructions"].as_str().unwrap();
    let page = fs::read_to_string(checkout().join("docs/fewer-tokens.md")).unwrap();
    let rule = page.split_once("```text\n").unwrap().1.split_once("```").unwrap().0;
    assert_eq!(rule.lines().next(), Some(said));
}

#[test]
fn what_was_left_out_may_be_anything() {
    for (expected, printed, fit) in [
        ("a\nb", "a\nb", true),
        ("a\nb", "a", false),
        ("a\n…", "a", true),
        ("a\n…\nd", "a\nb\nc\nd", true),
        ("a\n…\nd", "a\nb\nc", false),
        ("a … c", "a b c", true),
        ("a … c", "a b d", false),
        ("a … c … e", "a b c d e", true),
        ("a … c … e", "a b d e", false),
        ("…", "", true),
    ] {
        let lines = |text: &'static str| text.lines().collect::<Vec<_>>();
        assert_eq!(fits(&lines(expected), &lines(printed)), fit, "{expected:?} {printed:?}");
    }
}
