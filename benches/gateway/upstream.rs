//! The server behind every engine of the overhead table: as quick as a server can be, so that what an engine adds shows.
//!
//! `blob {"bytes": n}` answers with a text of n bytes. `--tools N` lists that many tools, `--http ADDRESS` serves
//! streamable HTTP (JSON answers) instead of the standard streams.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1)).cloned()
    };
    let tools: usize = option("--tools").and_then(|text| text.parse().ok()).unwrap_or(2);
    let server = Server { list: list(tools), texts: [10, 10_000, 250_000].map(|bytes| (bytes, blob(bytes))) };
    match option("--http") {
        Some(address) => server.http(&address),
        None => server.stdio(),
    }
}

struct Server {
    list: String,
    texts: [(u64, String); 3],
}

/// The result of a call that returns this many bytes.
fn blob(bytes: u64) -> String {
    let text: String = "The quick brown fox. ".chars().cycle().take(bytes as usize).collect();
    json!({"content": [{"type": "text", "text": text}]}).to_string()
}

fn list(tools: usize) -> String {
    let tool = |number: usize| {
        json!({
            "name": if number == 0 { "blob".to_owned() } else { format!("tool_{number:04}") },
            "description": "Returns a text of the given length; the others are there to be listed.",
            "inputSchema": {"type": "object", "properties": {
                "bytes": {"type": "integer", "description": "how long the text is"},
                "unit": {"type": "string", "enum": ["byte", "kilobyte"]},
            }, "required": ["bytes"]},
        })
    };
    json!({"tools": (0..tools).map(tool).collect::<Vec<_>>()}).to_string()
}

impl Server {
    /// The answer to a message; `None` for one that wants none.
    fn answer(&self, line: &str) -> Option<String> {
        let message: Value = serde_json::from_str(line).ok()?;
        let id = message.get("id")?;
        let method = message["method"].as_str().unwrap_or_default();
        let made;
        let result: &str = match method {
            "initialize" => {
                made = json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "upstream", "version": "0"},
                })
                .to_string();
                &made
            }
            "ping" => "{}",
            "tools/list" => &self.list,
            "tools/call" => {
                let bytes = message["params"]["arguments"]["bytes"].as_u64().unwrap_or(10);
                match self.texts.iter().find(|(length, _)| *length == bytes) {
                    Some((_, text)) => text,
                    None => {
                        made = blob(bytes);
                        &made
                    }
                }
            }
            _ => {
                let error = json!({"code": -32601, "message": "not offered"});
                return Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}"));
            }
        };
        Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"))
    }

    fn stdio(&self) {
        let mut out = std::io::stdout().lock();
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if let Some(mut answer) = self.answer(&line) {
                answer.push('\n');
                if out.write_all(answer.as_bytes()).and_then(|()| out.flush()).is_err() {
                    return;
                }
            }
        }
    }

    fn http(&self, address: &str) {
        let listener = TcpListener::bind(address).expect("the address is free");
        std::thread::scope(|scope| {
            for stream in listener.incoming().flatten() {
                scope.spawn(move || self.connection(stream));
            }
        });
    }

    fn connection(&self, mut stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let Ok(reading) = stream.try_clone() else { return };
        let mut reader = BufReader::with_capacity(64 * 1024, reading);
        loop {
            let (mut length, mut line) = (0, String::new());
            let mut post = false;
            loop {
                line.clear();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    return;
                }
                post |= line.starts_with("POST");
                if let Some((name, value)) = line.split_once(':')
                    && name.eq_ignore_ascii_case("content-length")
                {
                    length = value.trim().parse().unwrap_or(0);
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                return;
            }
            let answer = if post { self.answer(&String::from_utf8_lossy(&body)) } else { None };
            let response = match (post, answer) {
                (true, Some(text)) => {
                    let length = text.len();
                    format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{text}"
                    )
                }
                (true, None) => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned(),
                _ => "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_owned(),
            };
            if stream.write_all(response.as_bytes()).is_err() {
                return;
            }
        }
    }
}
