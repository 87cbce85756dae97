//! An MCP server on standard streams that misbehaves in a chosen way: what `scripts/fault-test` puts behind a gateway.
//!
//! It is well until it has listed its tools, unless the fault is in that, and shows the fault when `echo` is called.
//!
//! ```text
//! fault_server MODE
//! ```

use std::io::{self, BufRead, Write};
use std::process::{Command, ExitCode, exit};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// None at all.
    Well,
    /// Calls get no answer.
    Hang,
    /// The process ends in the middle of a call.
    Die,
    /// The process ends before it has said anything.
    Stillborn,
    /// Its input is not read any more after the lists.
    Deaf,
    /// Lines that are not messages stand between those that are.
    Noise,
    /// An answer is over every limit.
    Oversized,
    /// An answer is 20 MB long, and whole.
    Large,
    /// An answer takes a while.
    Slow,
    /// Answers come twice, and some that nobody waits for.
    Duplicate,
    /// An answer is not JSON.
    Malformed,
    /// An answer is JSON, and no message.
    Shapeless,
    /// Lists get no answer.
    Unlisted,
    /// Lists come in pages.
    Pages,
    /// Lists have a next page for ever.
    Endless,
    /// There is one tool more after each call.
    Changes,
    /// The end of its input is no reason to end, and it has a child of its own.
    Lingers,
}

const MODES: [(&str, Mode); 17] = [
    ("well", Mode::Well),
    ("hang", Mode::Hang),
    ("die", Mode::Die),
    ("stillborn", Mode::Stillborn),
    ("deaf", Mode::Deaf),
    ("noise", Mode::Noise),
    ("oversized", Mode::Oversized),
    ("large", Mode::Large),
    ("slow", Mode::Slow),
    ("duplicate", Mode::Duplicate),
    ("malformed", Mode::Malformed),
    ("shapeless", Mode::Shapeless),
    ("unlisted", Mode::Unlisted),
    ("pages", Mode::Pages),
    ("endless", Mode::Endless),
    ("changes", Mode::Changes),
    ("lingers", Mode::Lingers),
];

/// Tools beside `echo` that are listed in pages.
const MORE_TOOLS: usize = 10;
const TOOLS_OF_A_PAGE: usize = 4;

struct Server {
    mode: Mode,
    /// Tools beside `echo`.
    more: usize,
    out: io::Stdout,
}

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let Some((_, mode)) = MODES.into_iter().find(|(name, _)| *name == wanted) else {
        let names: Vec<&str> = MODES.iter().map(|(name, _)| *name).collect();
        eprintln!("usage: fault_server MODE, one of: {}", names.join(", "));
        return ExitCode::from(2);
    };
    if mode == Mode::Stillborn {
        return ExitCode::from(3);
    }
    let mut child = (mode == Mode::Lingers).then(|| Command::new("sleep").arg("600").spawn());
    let more = if mode == Mode::Pages { MORE_TOOLS } else { 0 };
    let mut server = Server { mode, more, out: io::stdout() };
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if let Ok(message) = serde_json::from_str::<Value>(&line)
            && server.take(&message).is_err()
        {
            break;
        }
    }
    if let Some(Ok(child)) = &mut child {
        let _ = child.wait();
    }
    ExitCode::SUCCESS
}

impl Server {
    fn take(&mut self, message: &Value) -> io::Result<()> {
        let Some(id) = message.get("id") else { return Ok(()) };
        match message["method"].as_str() {
            Some("initialize") => self.answer(
                id,
                &json!({
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": "fault-server", "version": "1"},
                }),
            ),
            Some("ping") if self.mode != Mode::Hang => self.answer(id, &json!({})),
            Some("tools/list") => self.list(id, &message["params"]["cursor"]),
            Some("tools/call") => self.call(id, &message["params"]["arguments"]),
            Some("ping") | None => Ok(()),
            Some(method) => {
                let error = json!({"code": -32601, "message": format!("no method {method}")});
                self.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
            }
        }
    }

    fn list(&mut self, id: &Value, cursor: &Value) -> io::Result<()> {
        if self.mode == Mode::Unlisted {
            return Ok(());
        }
        let tool =
            |name: String| json!({"name": name, "description": "Say a text back", "inputSchema": {"type": "object"}});
        let names = std::iter::once("echo".to_owned()).chain((1..=self.more).map(|n| format!("more_{n:02}")));
        let tools: Vec<Value> = names.map(tool).collect();
        let from = cursor.as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let end = (from + TOOLS_OF_A_PAGE).min(tools.len());
        let mut page = json!({ "tools": tools.get(from..end).unwrap_or_default() });
        match self.mode {
            Mode::Endless => page["nextCursor"] = (from + 1).to_string().into(),
            _ if end < tools.len() => page["nextCursor"] = end.to_string().into(),
            _ => {}
        }
        self.answer(id, &page)?;
        if self.mode == Mode::Deaf {
            sleep(Duration::from_secs(600));
        }
        Ok(())
    }

    fn call(&mut self, id: &Value, arguments: &Value) -> io::Result<()> {
        let text = arguments["text"].as_str().unwrap_or("-").to_owned();
        let size = arguments["size"].as_u64().unwrap_or(0) as usize;
        let text = if size > 0 { "x".repeat(size) } else { text };
        let result = json!({"content": [{"type": "text", "text": text}]});
        match self.mode {
            Mode::Hang => Ok(()),
            Mode::Die => exit(3),
            Mode::Noise => {
                self.print("Listening on stdio\n\n{\"half\": \n[1,2]\n\u{1b}[32mready\u{1b}[0m\n\"text\"\n")?;
                self.out.write_all(b"\xff\xfe\n")?;
                self.answer(id, &result)
            }
            Mode::Oversized => self.long(id, 70 * 1024 * 1024),
            Mode::Large => self.long(id, 20_000_000),
            Mode::Slow => {
                sleep(Duration::from_millis(300));
                self.answer(id, &result)
            }
            Mode::Duplicate => {
                self.answer(&json!(987_654), &json!({"content": []}))?;
                self.answer(&json!("none"), &json!({"content": []}))?;
                self.answer(id, &result)?;
                self.answer(id, &json!({"content": [{"type": "text", "text": "the second"}]}))
            }
            Mode::Malformed => {
                self.print(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[}}}}\n"))
            }
            Mode::Shapeless => self.say(&json!({"jsonrpc": "2.0", "id": id})),
            Mode::Changes => {
                self.more += 1;
                self.say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))?;
                self.answer(id, &result)
            }
            _ => self.answer(id, &result),
        }
    }

    fn long(&mut self, id: &Value, bytes: usize) -> io::Result<()> {
        self.answer(id, &json!({"content": [{"type": "text", "text": "x".repeat(bytes)}]}))
    }

    fn answer(&mut self, id: &Value, result: &Value) -> io::Result<()> {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn say(&mut self, message: &Value) -> io::Result<()> {
        self.print(&format!("{message}\n"))
    }

    fn print(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}
