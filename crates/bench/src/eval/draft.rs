//! Queries from nothing: proposals made of recorded conversations and of definitions, for a person to correct.
//!
//! A conversation says what was asked and what was called for it; a definition says in its own words what it does. Neither
//! is a judgement: what was called may have been wrong, and a query in the words of its definition is easy to answer. So
//! every line is marked as a draft, and nothing is measured with a file that holds one. Secrets and addresses are
//! replaced; a name of a person or a company is not recognised, which is another reason to read each line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::collection::{Names, full_handles, handles};
use super::process::mcp::JOINTS;
use contextweaver_context::adapters::{AdapterError, recognise};
use contextweaver_context::event::{ContextItem, ItemKind};
use contextweaver_context::store::{Session, redact};
use contextweaver_core::catalog::{Catalog, SelectableItem};

/// The longest text of a draft, in characters.
const LONGEST: usize = 300;

/// A proposal for a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Draft {
    /// Unique among the drafts of one file.
    pub id: String,
    /// What was asked, without secrets and addresses.
    pub query: String,
    /// The tools that were called for it, each once, in the order of the calls.
    pub relevant: Vec<String>,
    /// Always true.
    draft: bool,
}

/// Drafts with what was left out.
#[derive(Debug, Default)]
pub struct Drafts {
    /// In the order in which they were made.
    pub drafts: Vec<Draft>,
    /// How many of them are requests of conversations; the others are definitions.
    pub requests: usize,
    /// Names of called tools that the catalog does not have.
    pub unknown: BTreeSet<String>,
}

/// What was asked in conversations, and the names of the tools that were called for it.
#[derive(Debug, Default)]
pub struct Requests(Vec<(String, Vec<String>)>);

impl Requests {
    /// Adds the requests of a conversation that led to calls. A file of `mcp record` holds calls and no requests: there,
    /// every call is one. A session file is read as the conversation in it. `prefix` is for the ids of events.
    ///
    /// # Errors
    /// When the bytes are not a conversation of a known format.
    pub fn add(&mut self, bytes: &[u8], prefix: &str) -> Result<(), AdapterError> {
        if let Some(calls) = recorded_calls(bytes) {
            self.0.extend(calls.into_iter().map(|(tool, arguments)| (said_by(&tool, &arguments), vec![tool])));
            return Ok(());
        }
        let items: Vec<ContextItem> = match Session::parse(bytes, Path::new(prefix)) {
            Ok(session) => session.transcript.items().to_vec(),
            Err(_) => recognise(bytes, prefix)?.1.events.into_iter().map(|event| event.item).collect(),
        };
        for item in items {
            match item.kind {
                ItemKind::UserTurn => self.0.push((item.text, Vec::new())),
                ItemKind::ToolCall => {
                    let name = item.metadata.get("function_name").and_then(Value::as_str);
                    if let (Some((_, called)), Some(name)) = (self.0.last_mut(), name) {
                        called.push(name.to_owned());
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A draft for every request that led to a call, and for every tool of `catalog` that none of them names one in the
    /// words of its definition. Tools are named as `catalog` has them, and those that it does not have are left out;
    /// without a catalog, as they were called.
    #[must_use]
    pub fn drafts(&self, catalog: Option<&Catalog>) -> Drafts {
        let mut drafts = Drafts::default();
        let mut named = BTreeSet::new();
        let short = catalog.map(handles).unwrap_or_default();
        let handles = catalog.map(full_handles).unwrap_or_default();
        let names = catalog.map(|catalog| Called::of(catalog, &short));
        for (asked, called) in &self.0 {
            let mut relevant: Vec<String> = Vec::new();
            for tool in called {
                let reference = match &names {
                    None => Some(spellings(tool).nth(1).unwrap_or_else(|| tool.clone())),
                    Some(names) => {
                        let number = names.tool(tool);
                        named.extend(number);
                        number.and_then(|number| handles.get(number as usize).cloned())
                    }
                };
                match reference {
                    Some(reference) if !relevant.contains(&reference) => relevant.push(reference),
                    Some(_) => {}
                    None => drop(drafts.unknown.insert(tool.clone())),
                }
            }
            if !asked.trim().is_empty() && !relevant.is_empty() {
                drafts.push(asked, relevant);
            }
        }
        drafts.requests = drafts.drafts.len();
        for (number, item) in (0..).zip(catalog.into_iter().flat_map(Catalog::items)) {
            if item.kind.is_callable() && !named.contains(&number) {
                drafts.push(&first_sentence(item), handles.get(number as usize).cloned().into_iter().collect());
            }
        }
        drafts
    }
}

impl Drafts {
    /// The drafts as a queries file.
    #[must_use]
    pub fn to_jsonl(&self) -> String {
        // Texts and lists: writing them cannot fail.
        self.drafts.iter().map(|draft| serde_json::to_string(draft).unwrap_or_default() + "\n").collect()
    }

    fn push(&mut self, text: &str, relevant: Vec<String>) {
        let id = format!("draft-{:03}", self.drafts.len() + 1);
        self.drafts.push(Draft { id, query: shortened(&redacted(text)), relevant, draft: true });
    }
}

/// The tools of a catalog by the names that clients and gateways call them by.
struct Called<'c> {
    names: Names<'c>,
    /// The tool of a name that is joined from server and tool, as [`plain`] has it; `None` where several have it.
    joined: BTreeMap<String, Option<u32>>,
}

impl<'c> Called<'c> {
    fn of(catalog: &'c Catalog, handles: &'c [String]) -> Self {
        let mut joined: BTreeMap<String, Option<u32>> = BTreeMap::new();
        for (number, item) in (0..).zip(catalog.items()) {
            for (server, joint) in item.server.iter().flat_map(|server| JOINTS.map(|joint| (server, joint))) {
                let known = joined.entry(plain(&format!("{server}{joint}{}", item.name))).or_insert(Some(number));
                *known = known.filter(|other| *other == number);
            }
        }
        Self { names: Names::new(catalog, handles), joined }
    }

    /// The tool that was called so.
    fn tool(&self, called: &str) -> Option<u32> {
        let joined = || self.joined.get(&plain(called.strip_prefix(CLIENT).unwrap_or(called))).copied().flatten();
        spellings(called).find_map(|name| self.names.resolve(&name).ok()).or_else(joined)
    }
}

/// What stands before server and tool where a client of MCP servers calls them `mcp__server__tool`.
const CLIENT: &str = "mcp__";

/// A name with `_` for each character that models may not write in the name of a tool.
fn plain(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-', "_")
}

/// How a queries file may name a called tool: as it was called, and where that is `server.tool`, which recorded sessions
/// write, or `mcp__server__tool`, as `server:tool` and `tool`.
fn spellings(called: &str) -> impl Iterator<Item = String> {
    let of_client = called.strip_prefix(CLIENT).and_then(|rest| rest.split_once("__"));
    let split = of_client.or_else(|| called.split_once('.'));
    let split = split.map(|(server, tool)| [format!("{server}:{tool}"), tool.to_owned()]);
    std::iter::once(called.to_owned()).chain(split.into_iter().flatten())
}

/// The calls of a file of `mcp record`, which has one message a line; `None` when it is not such a file.
fn recorded_calls(bytes: &[u8]) -> Option<Vec<(String, Value)>> {
    #[derive(Deserialize)]
    struct Line {
        direction: String,
        message: Value,
    }
    let mut calls = Vec::new();
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let mut read = 0;
    for line in lines {
        let line: Line = serde_json::from_slice(line).ok()?;
        read += 1;
        let message = &line.message;
        if line.direction == "client" && message.get("method").and_then(Value::as_str) == Some("tools/call") {
            let tool = message.pointer("/params/name").and_then(Value::as_str);
            let arguments = message.pointer("/params/arguments").cloned().unwrap_or(Value::Null);
            calls.extend(tool.map(|tool| (tool.to_owned(), arguments)));
        }
    }
    (read > 0).then_some(calls)
}

/// What a call says without a request: the words of its name, and the texts among its arguments.
fn said_by(tool: &str, arguments: &Value) -> String {
    let texts: Vec<&str> =
        arguments.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str()).collect();
    let name = words(tool);
    if texts.is_empty() { name } else { format!("{name}: {}", texts.join(", ")) }
}

fn words(name: &str) -> String {
    name.replace(['_', '-', '.', '/'], " ")
}

/// What a definition says first; the words of its name where it says nothing.
fn first_sentence(item: &SelectableItem) -> String {
    let text = item.description.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = text.split(". ").next().unwrap_or_default().trim_end_matches('.');
    if sentence.is_empty() { words(&item.name) } else { sentence.to_owned() }
}

fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// What is replaced beside secrets.
struct Rule {
    pattern: Regex,
    /// What stands in its place.
    mark: &'static str,
    /// Whether a text of the pattern is meant.
    is_meant: IsMeant,
}

type IsMeant = fn(&str) -> bool;

static ADDRESSES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let any = |_: &str| true;
    let has_digit = |text: &str| text.contains(|c: char| c.is_ascii_digit());
    let is_long = |text: &str| text.chars().filter(char::is_ascii_digit).count() >= 10;
    let rules: [(&str, &str, IsMeant); 13] = [
        (r#"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s<>"')\]\[]+"#, "[address]", any),
        (r"[\w.%+-]+@(?:\p{L}[\w-]*(?:\.[\w-]+)*|[\w-]+(?:\.[\w-]+)+)", "[address]", any),
        (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b", "[address]", any),
        (r"\b(?:[0-9A-Fa-f]{1,4}:){3,7}[0-9A-Fa-f]{1,4}\b", "[address]", any),
        // Without a digit it is a path of code, such as `a::b`.
        (r"\b(?:[0-9A-Fa-f]{1,4}:){1,6}(?:(?::[0-9A-Fa-f]{1,4}){1,6}\b|:/\d{1,3}\b)", "[address]", has_digit),
        (r#"\b(?:[\p{L}\d-]+\.)+\p{L}{2,24}\b(?::\d{1,5})?(?:/[^\s<>"')\]\[]*)?"#, "[address]", is_host),
        (r"((?:/home|/Users)/)(?:[^/\s\[\]]+(?: \p{Lu}[^/\s\[\]]*){1,3}(/)|[^/\s\[\]]+)", "$1[name]$2", any),
        (
            r"([A-Za-z]:[\\/]+[Uu][Ss][Ee][Rr][Ss][\\/]+)(?:[^\\/\s\[\]]+(?: \p{Lu}[^\\/\s\[\]]*){1,3}([\\/])|[^\\/\s\[\]]+)",
            "$1[name]$2",
            any,
        ),
        (r"\+\d[\d ()/-]{6,}\d", "[number]", any),
        (r"\(\d{2,5}\)[ \d/-]{5,}\d\b", "[number]", any),
        // Of a bank account, as they are printed.
        (r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b", "[number]", is_long),
        (r"\b\d{3,6}(?:[ -]\d{3,6}){2,}\b", "[number]", is_long),
        (r"\b\d{9,}\b", "[number]", any),
    ];
    // The patterns are constants; a test makes them all.
    rules
        .into_iter()
        .filter_map(|(pattern, mark, is_meant)| Some(Rule { pattern: Regex::new(pattern).ok()?, mark, is_meant }))
        .collect()
});

/// What hosts of companies, and of networks that are nobody else's, end in.
const DOMAINS: [&str; 24] = [
    "ai", "app", "biz", "cloud", "com", "corp", "dev", "edu", "gov", "home", "info", "int", "internal", "intranet",
    "io", "lan", "local", "mil", "name", "net", "online", "org", "shop", "site",
];

/// Endings of files, of two letters as those of countries.
const FILES: [&str; 18] =
    ["bz", "cs", "db", "gz", "go", "hs", "js", "jl", "kt", "md", "ml", "mk", "pm", "py", "rb", "rs", "sh", "ts"];

/// Whether dotted words are a host: by how they begin, or end. Names of files and of parts of a program are none.
fn is_host(text: &str) -> bool {
    let host = text.split(['/', ':']).next().unwrap_or_default().to_lowercase();
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_country = last.chars().count() == 2 && !FILES.contains(&last);
    host.starts_with("www.") || DOMAINS.contains(&last) || is_country
}

/// A text without secrets, addresses (of mail, the web and machines), names of home folders and long numbers.
#[must_use]
pub fn redacted(text: &str) -> String {
    let mut text = text.to_owned();
    // First: a password in an address goes with the address.
    for Rule { pattern, mark, is_meant } in ADDRESSES.iter() {
        let replaced = |found: &Captures<'_>| {
            let mut shown = String::new();
            match is_meant(&found[0]) {
                true => found.expand(mark, &mut shown),
                false => shown.push_str(&found[0]),
            }
            shown
        };
        text = pattern.replace_all(&text, replaced).into_owned();
    }
    redact(&text).text.into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use contextweaver_context::event::Transcript;

    fn catalog() -> Catalog {
        let tools = json!([
            {"name": "git_log", "description": "Shows the commits. Newest first.", "server": "git"},
            {"name": "git_status", "description": "Shows what changed", "server": "git"},
            {"name": "send_mail", "server": "mail"}
        ]);
        Catalog::from_values(tools.as_array().unwrap(), None).unwrap()
    }

    #[test]
    fn what_was_asked_and_called_becomes_a_draft() {
        let recorded = json!({"goal": "Ask rosa@example.org what changed in /home/rosa/site", "calls": [
            {"seq": 1, "server": "git", "tool": "git_log", "arguments": {}, "result": {"content": []}},
            {"seq": 2, "server": "git", "tool": "git_log", "arguments": {}, "result": {"content": []}},
            {"seq": 3, "server": "shell", "tool": "run", "arguments": {}, "result": {"content": []}}
        ]});
        let chat = json!([
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "mail the report"},
            {"role": "assistant", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "send_mail", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "sent"}
        ]);
        let lines = concat!(
            r#"{"seq":1,"direction":"client","message":{"method":"tools/call","id":1,"params":{"name":"git_status","arguments":{"repo":"https://example.org/a","n":3}}}}"#,
            "\n",
            r#"{"seq":2,"direction":"server","message":{"id":1,"result":{}}}"#,
            "\n"
        );
        let mut requests = Requests::default();
        for session in [recorded.to_string().as_bytes(), chat.to_string().as_bytes(), lines.as_bytes()] {
            requests.add(session, "s").unwrap();
        }
        let drafts = requests.drafts(Some(&catalog()));
        insta::assert_snapshot!(drafts.to_jsonl(), @r#"
        {"id":"draft-001","query":"Ask [address] what changed in /home/[name]/site","relevant":["git:git_log"],"draft":true}
        {"id":"draft-002","query":"mail the report","relevant":["mail:send_mail"],"draft":true}
        {"id":"draft-003","query":"git status: [address]","relevant":["git:git_status"],"draft":true}
        "#);
        assert_eq!(drafts.requests, 3);
        assert_eq!(drafts.unknown.into_iter().collect::<Vec<_>>(), ["shell.run"]);
        assert_eq!(requests.drafts(None).drafts[0].relevant, ["git:git_log", "shell:run"]);
        assert!(requests.add(b"neither", "s").is_err());

        // A session file gives what its conversation gives.
        let items = recognise(chat.to_string().as_bytes(), "s").unwrap().1.events.into_iter().map(|event| event.item);
        let session = Session { transcript: Transcript::new(items.collect()).unwrap(), ..Session::default() };
        let mut file = Vec::new();
        session.write(&mut file).unwrap();
        let drafted = [chat.to_string().into_bytes(), file].map(|bytes| {
            let mut requests = Requests::default();
            requests.add(&bytes, "s").unwrap();
            requests.drafts(None).to_jsonl()
        });
        assert!(drafted[0] == drafted[1] && drafted[0].contains("mail the report"), "{drafted:?}");

        // As clients and gateways join the names of servers and tools, where only one tool can be meant.
        for (called, expected) in [
            ("mcp__git__git_log", Some("git:git_log")),
            ("git__git_log", Some("git:git_log")),
            ("git_git_log", Some("git:git_log")),
            ("mail-send_mail", Some("mail:send_mail")),
            ("mcp__mail__git_log", Some("git:git_log")),
            ("mcp__mail__no_such", None),
        ] {
            let requests = Requests(vec![("do it".to_owned(), vec![called.to_owned()])]);
            let found = requests.drafts(Some(&catalog()));
            let asked = found.drafts.iter().find(|draft| draft.query == "do it");
            assert_eq!(asked.map(|draft| draft.relevant[0].as_str()), expected, "{called}");
        }
        let requests = Requests(vec![("do it".to_owned(), vec!["mcp__git__git_log".to_owned()])]);
        assert_eq!(requests.drafts(None).drafts[0].relevant, ["git:git_log"]);

        let definitions = Requests::default().drafts(Some(&catalog()));
        let queries: Vec<&str> = definitions.drafts.iter().map(|draft| draft.query.as_str()).collect();
        assert_eq!(queries, ["Shows the commits", "Shows what changed", "send mail"]);
        assert!(Requests::default().drafts(None).drafts.is_empty());
    }

    #[test]
    fn two_tools_of_one_name_and_server_are_told_apart() {
        let schema = json!({"type": "object", "properties": {"p": {"type": "string"}}});
        let tools = json!([{"name": "a", "server": "s"}, {"name": "a", "server": "s", "inputSchema": schema}]);
        let catalog = Catalog::from_values(tools.as_array().unwrap(), None).unwrap();
        let found = Requests::default().drafts(Some(&catalog));
        let named: Vec<&String> = found.drafts.iter().flat_map(|draft| &draft.relevant).collect();
        assert_eq!(named, catalog.items().iter().map(|item| &item.id).collect::<Vec<_>>());
    }

    #[test]
    fn secrets_and_addresses_are_replaced() {
        assert_eq!(ADDRESSES.len(), 13);
        let table = [
            ("mail ana.b+c@mail.example.org now", "mail [address] now"),
            ("open https://user:pw@example.org/x?y=1 please", "open [address] please"),
            ("ping 192.168.0.12:8080", "ping [address]"),
            ("ping 2001:db8:0:1:1:1:1:1", "ping [address]"),
            ("wake aa:bb:cc:dd:ee:ff", "wake [address]"),
            ("restart db1.prod.internal", "restart [address]"),
            (r"list C:\Users\ana\x", r"list C:\Users\[name]\x"),
            ("call +44 20 7946 0958", "call [number]"),
            ("card 4111111111111111", "card [number]"),
            ("ping fe80::1 and 2001:db8::1, allow 2001:db8::/32", "ping [address] and [address], allow [address]"),
            ("write to jörg@müller.de and ana@localhost", "write to [address] and [address]"),
            ("restart db1.firma.de and build.example.co.uk", "restart [address] and [address]"),
            ("open www.shop.de/path?token=abc, host.example.edu:80", "open [address] [address]"),
            ("pay with 4111 1111 1111 1111 or 4111-1111-1111-1111", "pay with [number] or [number]"),
            ("from DE89 3704 0044 0532 0130 00 to GB33BUKB20201555555555", "from [number] to [number]"),
            ("call (020) 7946 0958 or 555-123-4567", "call [number] or [number]"),
            (r"list C:\\Users\\ana\\x and D:/users/Ana Maria/x", r"list C:\\Users\\[name]\\x and D:/users/[name]/x"),
            ("list /Users/Ana Maria/x and /home/rosa and /b", "list /Users/[name]/x and /home/[name] and /b"),
            ("read src/main.rs at 12:30 on 2026-01-02", "read src/main.rs at 12:30 on 2026-01-02"),
            ("is std::fmt or a::b in lib/app.test.js of v1.2.3?", "is std::fmt or a::b in lib/app.test.js of v1.2.3?"),
            ("between 2026-01-02 and 2026-01-03 10:20:30", "between 2026-01-02 and 2026-01-03 10:20:30"),
            ("resize to 100 200 300, e.g. react@18", "resize to 100 200 300, e.g. react@18"),
        ];
        for (text, expected) in table {
            assert_eq!(redacted(text), expected);
        }
        let key = format!("use {}{}", "ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        assert!(!redacted(&key).contains("a1B2c3"), "{}", redacted(&key));
    }

    proptest! {
        #[test]
        fn redacting_twice_changes_nothing(text in "[a-z0-9@:/.\\[\\] +-]{0,60}") {
            let once = redacted(&text);
            prop_assert_eq!(redacted(&once), once);
        }

        #[test]
        fn no_session_panics(bytes in any::<Vec<u8>>(), text in "\\{\"direction\":\"client\",\"message\":\\PC{0,30}\\}") {
            Requests::default().add(&bytes, "s").ok();
            Requests::default().add(text.as_bytes(), "s").ok();
        }
    }
}
