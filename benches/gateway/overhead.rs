//! What a hop costs: the same client and the same upstream, with different engines between them, in one run.
//!
//! Engines take turns in short blocks, so that what the machine does besides meets all of them. `--quick` is for
//! trying, and `--only "HTTP to HTTP"` for one path; `--out FILE` writes the rows of all paths as CSV. The engines are
//! the examples of this folder and `contextweaver` beside them; `mcp-proxy` (`cargo install mcp-proxy --version 0.6.0
//! --locked`), when it is on the path, is the rival over HTTP. With `--before PROGRAM` an older build of `contextweaver`
//! takes its turns too, so that a change is compared with what it changes in one run.

mod measuring;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, LazyLock};
use std::time::{Duration, Instant};

use contextweaver::catalog::tool_hash8;
use serde_json::{Value, json};

use measuring::{Process, quantile, resident};

const SIZES: [u64; 3] = [10, 10_000, 250_000];
const CLIENTS: [usize; 3] = [1, 8, 32];
/// Calls of one engine in a row.
const BLOCK: usize = 25;
/// Rounds in which engines take turns, where calls per second are counted.
const ROUNDS: usize = 7;
/// Calls after which, and up to which, memory is looked at.
const LONG_RUN: [usize; 2] = [1_000, 100_000];
/// Of these calls one in so many has the second size, the others the first.
const LARGER: usize = 50;

const STREAMS: &str = "stdio to stdio";
const HTTP_TO_STREAMS: &str = "HTTP to stdio";
const HTTP: &str = "HTTP to HTTP";
const LONG: &str = "100 000 calls over stdio";
const STARTS: &str = "stdio with 1 000 tools";
/// The paths that are measured.
const PATHS: [&str; 5] = [STREAMS, HTTP_TO_STREAMS, HTTP, LONG, STARTS];

/// How a tool of the upstream is called through an engine.
#[derive(Clone, Copy, PartialEq)]
enum Surface {
    /// By its own name.
    Plain,
    /// By its name behind that of its server.
    Prefixed,
    /// Through `tool_execute`.
    Meta,
}

/// The wire to an engine.
enum Wire {
    Stdio { stdin: ChildStdin, stdout: BufReader<ChildStdout> },
    Http(Http),
}

/// A connection that is kept open.
struct Http {
    reader: BufReader<TcpStream>,
    stream: TcpStream,
    address: String,
    path: String,
    session: Option<String>,
}

/// A client of an engine.
struct Client {
    wire: Wire,
    next: u64,
    surface: Surface,
}

impl Http {
    fn connect(address: &str, path: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let reader = BufReader::with_capacity(256 * 1024, stream.try_clone()?);
        Ok(Self { reader, stream, address: address.to_owned(), path: path.to_owned(), session: None })
    }

    fn post(&mut self, body: &str) -> std::io::Result<String> {
        let session = self.session.as_ref().map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\n{session}Content-Length: {}\r\n\r\n{body}",
            self.path,
            self.address,
            body.len()
        );
        self.stream.write_all(request.as_bytes())?;
        let (mut length, mut chunked, mut events) = (0, false, false);
        let mut line = String::new();
        loop {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if line.trim().is_empty() {
                break;
            }
            let Some((name, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap_or(0),
                "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
                "content-type" => events = value.starts_with("text/event-stream"),
                "mcp-session-id" => self.session = Some(value.to_owned()),
                _ => {}
            }
        }
        let mut body = Vec::new();
        if chunked {
            loop {
                line.clear();
                self.reader.read_line(&mut line)?;
                let size = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
                let start = body.len();
                body.resize(start + size, 0);
                self.reader.read_exact(&mut body[start..])?;
                self.reader.read_line(&mut line)?;
                if size == 0 {
                    break;
                }
            }
        } else {
            body.resize(length, 0);
            self.reader.read_exact(&mut body)?;
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        if !events {
            return Ok(text);
        }
        let data = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
        Ok(data.filter(|data| data.contains("\"result\"") || data.contains("\"error\"")).collect())
    }
}

impl Client {
    fn send(&mut self, body: &str, wants_answer: bool) -> std::io::Result<String> {
        match &mut self.wire {
            Wire::Stdio { stdin, stdout } => {
                stdin.write_all(format!("{body}\n").as_bytes())?;
                stdin.flush()?;
                let mut line = String::new();
                if !wants_answer {
                    return Ok(line);
                }
                loop {
                    line.clear();
                    if stdout.read_line(&mut line)? == 0 {
                        return Err(std::io::ErrorKind::UnexpectedEof.into());
                    }
                    if !line.contains("\"method\"") || line.len() > 1_000 {
                        return Ok(line);
                    }
                }
            }
            Wire::Http(http) => http.post(body),
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> std::io::Result<String> {
        self.next += 1;
        let id = self.next;
        let text =
            self.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#), true)?;
        if text.contains("\"error\":") && !text.contains("\"result\"") {
            return Err(std::io::Error::other(text));
        }
        Ok(text)
    }

    fn handshake(&mut self) -> std::io::Result<()> {
        let client = json!({"name": "overhead", "version": "0"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        self.request("initialize", &params)?;
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, false)?;
        Ok(())
    }

    fn call(&mut self, bytes: u64) -> std::io::Result<usize> {
        let arguments = json!({ "bytes": bytes });
        let params = match self.surface {
            Surface::Plain => json!({"name": "blob", "arguments": arguments}),
            Surface::Prefixed => json!({"name": "up/blob", "arguments": arguments}),
            Surface::Meta => json!({"name": "tool_execute", "arguments": {"tool_id": tool_id(), "args": arguments}}),
        };
        let text = self.request("tools/call", &params)?;
        if text.contains("\"isError\":true") {
            return Err(std::io::Error::other(text));
        }
        Ok(text.len())
    }
}

/// The id under which the upstream's tool is served.
fn tool_id() -> &'static str {
    static ID: LazyLock<String> = LazyLock::new(|| {
        let schema = json!({"properties": {"bytes": {}, "unit": {}}, "required": ["bytes"]});
        format!("up:blob#{}", tool_hash8("blob", Some(&schema)))
    });
    &ID
}

/// A mode of the gateway.
struct Mode {
    mode: &'static str,
    surface: Surface,
    /// Its name in the table; that with kept lists; and that of the older build.
    name: &'static str,
    kept: &'static str,
    before: &'static str,
}

const MODES: [Mode; 3] = [
    Mode {
        mode: "passthrough",
        surface: Surface::Plain,
        name: "contextweaver passthrough",
        kept: "contextweaver passthrough (kept lists)",
        before: "before: passthrough",
    },
    Mode {
        mode: "proxy",
        surface: Surface::Meta,
        name: "contextweaver proxy",
        kept: "contextweaver proxy (kept lists)",
        before: "before: proxy",
    },
    Mode {
        mode: "gateway",
        surface: Surface::Meta,
        name: "contextweaver gateway",
        kept: "contextweaver gateway (kept lists)",
        before: "before: gateway",
    },
];

/// An engine of the table.
struct Engine {
    name: &'static str,
    /// Its command; over HTTP it listens at `address`.
    command: Vec<String>,
    address: Option<(String, &'static str)>,
    surface: Surface,
}

struct Running<'e> {
    engine: &'e Engine,
    process: Option<Process>,
    client: Client,
    samples: [Vec<Duration>; SIZES.len()],
    failed: Option<String>,
}

impl Engine {
    fn spawn(&self) -> std::io::Result<Child> {
        let (program, rest) = self.command.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
        let piped = self.address.is_none();
        let stream = || if piped { Stdio::piped() } else { Stdio::null() };
        Command::new(program).args(rest).stdin(stream()).stdout(stream()).stderr(Stdio::null()).spawn()
    }

    fn client(&self, child: &mut Child) -> std::io::Result<Client> {
        let wire = match (&self.address, child.stdin.take(), child.stdout.take()) {
            (Some(_), ..) => Wire::Http(self.connect()?),
            (None, Some(stdin), Some(stdout)) => {
                Wire::Stdio { stdin, stdout: BufReader::with_capacity(256 * 1024, stdout) }
            }
            _ => return Err(std::io::ErrorKind::NotConnected.into()),
        };
        let mut client = Client { wire, next: 0, surface: self.surface };
        client.handshake()?;
        Ok(client)
    }

    fn connect(&self) -> std::io::Result<Http> {
        let (address, path) = self.address.as_ref().ok_or(std::io::ErrorKind::NotConnected)?;
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            match Http::connect(address, path) {
                Ok(http) => return Ok(http),
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Lets a gateway run until it has kept what its servers list in `folder`: one that is ended before that leaves nothing.
    fn keep_lists(&self, folder: &Path) {
        let mut child = self.spawn().expect("the gateway starts");
        let client = self.client(&mut child);
        let _process = Process(child);
        // Held: a gateway whose client has left ends.
        let _client = client.expect("the gateway answers");
        let is_kept = || {
            let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.any(|entry| entry.path().extension().is_some_and(|extension| extension == "json"))
        };
        let until = Instant::now() + Duration::from_secs(30);
        while !is_kept() {
            assert!(Instant::now() < until, "no lists are kept in {}", folder.display());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn start(&self) -> Running<'_> {
        let nothing = Wire::Http(Http {
            reader: BufReader::new(dead_stream()),
            stream: dead_stream(),
            address: String::new(),
            path: String::new(),
            session: None,
        });
        let made = self.spawn().and_then(|mut child| {
            let client = self.client(&mut child);
            let process = Process(child);
            Ok((process, client?))
        });
        match made {
            Ok((process, client)) => {
                Running { engine: self, process: Some(process), client, samples: Default::default(), failed: None }
            }
            Err(error) => {
                let client = Client { wire: nothing, next: 0, surface: self.surface };
                let failed = Some(error.to_string());
                Running { engine: self, process: None, client, samples: Default::default(), failed }
            }
        }
    }
}

/// A stream for an engine that did not start.
fn dead_stream() -> TcpStream {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    TcpStream::connect(listener.local_addr().expect("bound")).expect("connects")
}

/// One row of the table.
struct Row {
    path: &'static str,
    engine: &'static str,
    measure: String,
    value: f64,
    unit: &'static str,
}

struct Table {
    rows: Vec<Row>,
}

impl Table {
    fn add(
        &mut self,
        path: &'static str,
        engine: &'static str,
        measure: impl Into<String>,
        value: f64,
        unit: &'static str,
    ) {
        self.rows.push(Row { path, engine, measure: measure.into(), value, unit });
    }
}

fn round_trips(path: &'static str, engines: &[Engine], rounds: usize, table: &mut Table) {
    let mut running: Vec<Running<'_>> = engines.iter().map(Engine::start).collect();
    for engine in &mut running {
        for bytes in SIZES {
            for _ in 0..BLOCK * 2 {
                if engine.failed.is_none() {
                    engine.failed = engine.client.call(bytes).err().map(|error| error.to_string());
                }
            }
        }
    }
    for _ in 0..rounds {
        for engine in &mut running {
            for (at, bytes) in SIZES.into_iter().enumerate() {
                for _ in 0..BLOCK {
                    if engine.failed.is_some() {
                        break;
                    }
                    let start = Instant::now();
                    match engine.client.call(bytes) {
                        Ok(_) => engine.samples[at].push(start.elapsed()),
                        Err(error) => engine.failed = Some(error.to_string()),
                    }
                }
            }
        }
    }
    for engine in &mut running {
        let name = engine.engine.name;
        if let Some(error) = &engine.failed {
            eprintln!("{path}, {name}: {}", error.chars().take(300).collect::<String>());
            continue;
        }
        for (at, bytes) in SIZES.into_iter().enumerate() {
            let samples = &mut engine.samples[at];
            let (p50, p99) = (quantile(samples, 0.5), quantile(samples, 0.99));
            table.add(path, name, format!("{bytes} B p50"), p50, "us");
            table.add(path, name, format!("{bytes} B p99"), p99, "us");
        }
        if let Some(resident) = engine.process.as_ref().and_then(|process| resident(process.0.id())) {
            table.add(path, name, "resident", resident, "MiB");
        }
    }
}

/// The memory of each engine early and late in a long run of calls.
fn growth(path: &'static str, engines: &[Engine], calls: [usize; 2], table: &mut Table) {
    for engine in engines {
        let mut running = engine.start();
        let Some(id) = running.process.as_ref().map(|process| process.0.id()) else { continue };
        let mut made = 0;
        for (until, shown) in calls.into_iter().zip(["early", "late"]) {
            while made < until && running.failed.is_none() {
                made += 1;
                let bytes = if made % LARGER == 0 { SIZES[1] } else { SIZES[0] };
                running.failed = running.client.call(bytes).err().map(|error| error.to_string());
            }
            match (&running.failed, resident(id)) {
                (None, Some(resident)) => table.add(path, engine.name, format!("resident {shown}"), resident, "MiB"),
                (failed, _) => eprintln!("{path}, {}, call {made}: {failed:?}", engine.name),
            }
        }
    }
}

/// Calls per second, of which engines take turns: the median of the rounds.
fn throughput(path: &'static str, engines: &[Engine], span: Duration, table: &mut Table) {
    for clients in CLIENTS {
        let mut rates: Vec<Vec<f64>> = vec![Vec::new(); engines.len()];
        let mut failed = vec![0; engines.len()];
        for _ in 0..ROUNDS {
            for (at, engine) in engines.iter().enumerate() {
                let Some((rate, errors)) = calls_per_second(engine, clients, span) else { continue };
                rates[at].push(rate);
                failed[at] += errors;
            }
        }
        for (at, engine) in engines.iter().enumerate() {
            rates[at].sort_by(f64::total_cmp);
            let Some(median) = rates[at].get(rates[at].len() / 2) else { continue };
            table.add(path, engine.name, format!("{clients} clients"), *median, "calls/s");
            if failed[at] > 0 {
                table.add(path, engine.name, format!("{clients} clients, failed"), failed[at] as f64, "calls");
            }
        }
    }
}

/// Calls per second of so many clients at once, from when all are connected, and how many failed.
fn calls_per_second(engine: &Engine, clients: usize, span: Duration) -> Option<(f64, usize)> {
    let mut process = Process(engine.spawn().ok()?);
    // It listens: what is dropped here has only waited for that.
    drop(engine.client(&mut process.0).ok()?);
    let (calls, errors, stop) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let connected = Barrier::new(clients + 1);
    let mut start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let client = engine.connect().and_then(|http| {
                    let mut client = Client { wire: Wire::Http(http), next: 0, surface: engine.surface };
                    client.handshake().map(|()| client)
                });
                connected.wait();
                let Ok(mut client) = client else {
                    errors.fetch_add(1, Ordering::Relaxed);
                    return;
                };
                while !stop.load(Ordering::Relaxed) {
                    match client.call(10) {
                        Ok(_) => calls.fetch_add(1, Ordering::Relaxed),
                        Err(_) => errors.fetch_add(1, Ordering::Relaxed),
                    };
                }
            });
        }
        connected.wait();
        start = Instant::now();
        std::thread::sleep(span);
        stop.store(true, Ordering::Relaxed);
    });
    Some((calls.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64(), errors.load(Ordering::Relaxed)))
}

/// From the start of the process to the answer to `initialize`, and to the first list of tools; and a warm list.
fn starts_and_lists(path: &'static str, engines: &[Engine], rounds: usize, table: &mut Table) {
    let mut starts: Vec<Vec<Duration>> = vec![Vec::new(); engines.len()];
    let mut first_lists = starts.clone();
    let mut lists = starts.clone();
    for _ in 0..rounds {
        for (at, engine) in engines.iter().enumerate() {
            let begin = Instant::now();
            let Ok(mut child) = engine.spawn() else { continue };
            let client = engine.client(&mut child);
            let took = begin.elapsed();
            let _process = Process(child);
            let Ok(mut client) = client else { continue };
            if client.request("tools/list", &json!({})).is_err() {
                continue;
            }
            starts[at].push(took);
            first_lists[at].push(begin.elapsed());
            for _ in 0..3 {
                let start = Instant::now();
                if client.request("tools/list", &json!({})).is_ok() {
                    lists[at].push(start.elapsed());
                }
            }
        }
    }
    for (at, engine) in engines.iter().enumerate() {
        let measures = [("start p50", &mut starts), ("start and list p50", &mut first_lists), ("list p50", &mut lists)];
        for (measure, samples) in measures {
            if !samples[at].is_empty() {
                table.add(path, engine.name, measure, quantile(&mut samples[at], 0.5), "us");
            }
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1)).cloned()
    };
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let rounds = if quick { 4 } else { 40 };
    let here = std::env::current_exe().expect("a path").parent().expect("a folder").to_path_buf();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place = Place { here, folder: folder.path().to_path_buf(), before: option("--before") };
    let only = option("--only");
    assert!(only.as_deref().is_none_or(|only| PATHS.contains(&only)), "--only takes one of {}", PATHS.join(", "));
    assert!(only.is_none() || option("--out").is_none(), "--out takes the rows of all paths, and no --only");
    assert!(place.before.is_none() || option("--out").is_none(), "--out takes the rows of one build, and no --before");
    let wanted = |path: &str| only.as_deref().is_none_or(|only| only == path);
    let mut table = Table { rows: Vec::new() };
    let span = Duration::from_millis(if quick { 50 } else { 1_000 });
    if wanted(STREAMS) {
        round_trips(STREAMS, &place.stdio(2), rounds, &mut table);
    }
    if wanted(HTTP_TO_STREAMS) {
        round_trips(HTTP_TO_STREAMS, &place.http_to_stdio(), rounds, &mut table);
        throughput(HTTP_TO_STREAMS, &place.http_to_stdio(), span, &mut table);
    }
    if wanted(HTTP) {
        let _upstream = place.http_upstream();
        round_trips(HTTP, &place.http_to_http(), rounds, &mut table);
        throughput(HTTP, &place.http_to_http(), span, &mut table);
    }
    if wanted(LONG) {
        let [early, late] = LONG_RUN;
        growth(LONG, &place.stdio(2), [early, if quick { 5_000 } else { late }], &mut table);
    }
    if wanted(STARTS) {
        starts_and_lists(STARTS, &place.stdio_kept(1_000), if quick { 3 } else { 15 }, &mut table);
    }
    let mut csv = String::from("path,engine,measure,value,unit\n");
    for Row { path, engine, measure, value, unit } in &table.rows {
        println!("{path:<20} {engine:<28} {measure:<22} {value:>10.1} {unit}");
        csv.push_str(&format!("{path},{engine},{measure},{value:.1},{unit}\n"));
    }
    if let Some(path) = option("--out") {
        std::fs::write(&path, csv).expect("the rows are written");
        // Where it is the table of the scorecard, its list is told of it.
        contextweaver::eval::tables::accept_written(Path::new(&path)).expect("the table is accepted");
    }
}

/// Where the programs are, and where configurations may be written.
struct Place {
    here: PathBuf,
    folder: PathBuf,
    /// An older build of `contextweaver`.
    before: Option<String>,
}

const UPSTREAM: &str = "127.0.0.1:18471";

/// The command of a gateway, which listens at this address or on standard input.
fn serve(program: String, config: &str, mode: &str, listen: Option<&str>) -> Vec<String> {
    let mut command = vec![program];
    command.extend(["mcp", "serve", "--config", config, "--mode", mode].map(str::to_owned));
    if let Some(address) = listen {
        command.extend(["--transport", "http", "--listen", address].map(str::to_owned));
    }
    command
}

impl Place {
    fn program(&self, name: &str) -> String {
        self.here.join(name).display().to_string()
    }

    fn contextweaver(&self) -> String {
        let beside = self.here.parent().unwrap_or(Path::new(".")).join("contextweaver");
        beside.display().to_string()
    }

    fn config(&self, name: &str, upstream: &Value) -> String {
        let path = self.folder.join(name);
        let config = json!({"upstreams": {"up": upstream}, "startup": {"fail_on_empty_catalog": true}});
        std::fs::write(&path, config.to_string()).expect("the configuration is written");
        path.display().to_string()
    }

    /// The gateway in each of its modes, and so the older build where there is one: over standard streams, or over HTTP
    /// from this port on.
    fn gateways(&self, config: &str, first_port: Option<u16>) -> Vec<Engine> {
        let present = MODES.iter().map(|mode| (self.contextweaver(), mode.name, mode));
        let before = MODES.iter().filter_map(|mode| Some((self.before.clone()?, mode.before, mode)));
        let engine = |(at, (program, name, mode)): (u16, (String, &'static str, &Mode))| {
            let address = first_port.map(|port| (format!("127.0.0.1:{}", port + at), "/mcp"));
            let command = serve(program, config, mode.mode, address.as_ref().map(|(address, _)| address.as_str()));
            Engine { name, command, address, surface: mode.surface }
        };
        (0..).zip(present.chain(before)).map(engine).collect()
    }

    fn stdio(&self, tools: usize) -> Vec<Engine> {
        let upstream = vec![self.program("engine-upstream"), "--tools".to_owned(), tools.to_string()];
        let behind = |program: &str| {
            let mut command = vec![self.program(program)];
            command.extend(upstream.clone());
            command
        };
        let config = self.config("stdio.json", &json!({"command": upstream[0], "args": upstream[1..]}));
        let engine = |name, command| Engine { name, command, address: None, surface: Surface::Plain };
        let mut engines = vec![
            engine("direct", upstream.clone()),
            engine("byte relay", behind("engine-relay")),
            engine("rmcp typed pass-through", behind("engine-typed")),
        ];
        engines.extend(self.gateways(&config, None));
        engines
    }

    /// The same with gateways that serve the lists of their last start, which they have had the time to keep.
    fn stdio_kept(&self, tools: usize) -> Vec<Engine> {
        let mut engines = self.stdio(tools);
        let path = self.folder.join("stdio.json");
        let text = std::fs::read_to_string(path).expect("the configuration is there");
        let mut config: Value = serde_json::from_str(&text).expect("the configuration is JSON");
        for Mode { mode, surface, kept: name, .. } in MODES {
            let lists = self.folder.join(format!("kept-{mode}"));
            config["startup"]["list_cache"] = lists.display().to_string().into();
            let path = self.folder.join(format!("kept-{mode}.json"));
            std::fs::write(&path, config.to_string()).expect("the configuration is written");
            let command = serve(self.contextweaver(), &path.display().to_string(), mode, None);
            let engine = Engine { name, command, address: None, surface };
            engine.keep_lists(&lists);
            engines.push(engine);
        }
        engines
    }

    fn http_upstream(&self) -> Process {
        let child = Command::new(self.program("engine-upstream")).args(["--http", UPSTREAM]).spawn();
        Process(child.expect("the upstream starts"))
    }

    /// The proxy of that name from crates.io, of which a server is configured by these lines.
    fn rival(&self, port: u16, server: &str) -> Engine {
        let listen = format!("[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n");
        let text = format!("[proxy]\nname = \"p\"\n{listen}[[backends]]\nname = \"up\"\n{server}");
        let path = self.folder.join(format!("{port}.toml"));
        std::fs::write(&path, text).expect("the configuration is written");
        Engine {
            name: "Rust mcp-proxy",
            command: vec!["mcp-proxy".to_owned(), "--config".to_owned(), path.display().to_string()],
            address: Some((format!("127.0.0.1:{port}"), "/")),
            surface: Surface::Prefixed,
        }
    }

    fn http_to_stdio(&self) -> Vec<Engine> {
        let direct = "127.0.0.1:18472".to_owned();
        let upstream = self.program("engine-upstream");
        let config = self.config("http-stdio.json", &json!({"command": upstream}));
        let mut engines = vec![
            Engine {
                name: "direct over HTTP",
                command: vec![upstream.clone(), "--http".to_owned(), direct.clone()],
                address: Some((direct, "/mcp")),
                surface: Surface::Plain,
            },
            self.rival(18_473, &format!("transport = \"stdio\"\ncommand = {upstream:?}\n")),
        ];
        engines.extend(self.gateways(&config, Some(18_480)));
        engines
    }

    fn http_to_http(&self) -> Vec<Engine> {
        let url = format!("http://{UPSTREAM}/mcp");
        let config = self.config("http-http.json", &json!({ "url": url }));
        let direct = Engine {
            name: "direct over HTTP",
            command: vec!["sleep".to_owned(), "1000".to_owned()],
            address: Some((UPSTREAM.to_owned(), "/mcp")),
            surface: Surface::Plain,
        };
        let mut engines = vec![direct, self.rival(18_474, &format!("transport = \"http\"\nurl = {url:?}\n"))];
        engines.extend(self.gateways(&config, Some(18_490)));
        engines
    }
}
