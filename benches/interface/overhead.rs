//! What the engines cost over HTTP: the same question to the library in this process and to `contextweaver serve` beside it.
//!
//! They take turns in short blocks, so that what the machine does besides meets both. `--quick` is for trying; `--out FILE` writes
//! the rows as CSV. `contextweaver` is the one in the folder above this program.

#[path = "../gateway/measuring.rs"]
mod measuring;

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use contextweaver::eval::collection::Collection;
use contextweaver::eval::growth::{SEED, scaled};
use contextweaver::eval::record::Origin;
use contextweaver::{Catalog, Request, Router, RoutingConfig};
use serde_json::{Value, json};

use measuring::{Process, quantile, resident};

/// Tools of the catalog.
const TOOLS: usize = 1_000;
/// Questions to one of them in a row.
const BLOCK: usize = 25;
/// Clients at once.
const CLIENTS: [usize; 2] = [1, 8];
/// What the rows are about.
const PATH: &str = "route among 1 000 tools";
const LIBRARY: &str = "direct call of the library";
const KEPT: &str = "contextweaver serve";
const EACH: &str = "contextweaver serve, a connection each";
const BROUGHT: &str = "contextweaver serve, with the catalog in the request";

type Failure = Box<dyn Error>;

/// A connection to the interface.
struct Http {
    reader: BufReader<TcpStream>,
    stream: TcpStream,
    address: String,
}

impl Http {
    fn connect(address: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let reader = BufReader::with_capacity(256 * 1024, stream.try_clone()?);
        Ok(Self { reader, stream, address: address.to_owned() })
    }

    /// The answer to a question, which must be one.
    fn route(&mut self, body: &str) -> Result<Vec<u8>, Failure> {
        let request = format!(
            "POST /v1/route HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.write_all(request.as_bytes())?;
        let (mut line, mut length, mut status) = (String::new(), 0, String::new());
        loop {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 {
                return Err("the connection ended".into());
            }
            let text = line.trim();
            if text.is_empty() {
                break;
            }
            if status.is_empty() {
                text.clone_into(&mut status);
            } else if let Some(value) = text.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut answer = vec![0; length];
        self.reader.read_exact(&mut answer)?;
        if !status.contains(" 200") {
            return Err(format!("{status}: {}", String::from_utf8_lossy(&answer)).into());
        }
        Ok(answer)
    }
}

/// One way to ask, and what it took.
struct Way<'w> {
    name: &'static str,
    ask: Box<dyn FnMut(usize) -> Result<(), Failure> + 'w>,
    samples: Vec<Duration>,
}

/// The interface with the catalog in `file`, and where it listens.
fn serve(file: &Path) -> Result<(Process, String), Failure> {
    let here = std::env::current_exe()?;
    let program = here.parent().and_then(Path::parent).ok_or("no folder above")?.join("contextweaver");
    let mut child = Command::new(&program)
        .args(["serve", "--listen", "127.0.0.1:0", "--catalog"])
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let log = child.stderr.take().ok_or("no standard error")?;
    let process = Process(child);
    let mut lines = BufReader::new(log).lines();
    let said = lines.by_ref().map_while(Result::ok);
    let address = said.filter_map(|line| line.strip_prefix("listening at http://").map(str::to_owned)).next();
    let address = address.ok_or("`contextweaver serve` did not start")?;
    std::thread::spawn(move || lines.for_each(drop));
    Ok((process, address))
}

/// Questions a second by so many askers at once, for `span`.
fn rate<A: FnMut(usize) -> Result<(), Failure>>(
    askers: usize,
    span: Duration,
    asker: impl Fn() -> Result<A, Failure> + Sync,
) -> f64 {
    let (asked, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let start = Instant::now();
    std::thread::scope(|scope| {
        for at in 0..askers {
            let (asked, stop, asker) = (&asked, &stop, &asker);
            scope.spawn(move || {
                let Ok(mut ask) = asker() else { return };
                // Not all the same question at the same time.
                for number in at * 7.. {
                    if stop.load(Ordering::Relaxed) || ask(number).is_err() {
                        break;
                    }
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(span);
        stop.store(true, Ordering::Relaxed);
    });
    asked.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64()
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let out = arguments.iter().position(|argument| argument == "--out").and_then(|at| arguments.get(at + 1));
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let (rounds, span) = if quick { (4, Duration::from_millis(300)) } else { (80, Duration::from_secs(3)) };

    let gold = Path::new(env!("CARGO_MANIFEST_DIR")).join("gold/workbench");
    let base = Collection::load(&gold, Origin::Embedded)?;
    let definition = |text: String| serde_json::from_str::<Value>(&text);
    let tools = scaled(&base, TOOLS, SEED)?;
    let tools: Vec<Value> =
        tools.items().iter().map(|item| definition(item.definition_json())).collect::<Result<_, _>>()?;
    let catalog = json!({ "server": "tools", "tools": tools }).to_string();
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("tools.json");
    std::fs::write(&file, &catalog)?;
    // The library is given what the interface is given.
    let router = Router::build(Arc::new(Catalog::from_json(&catalog)?), RoutingConfig::default())?;
    let (process, address) = serve(&file)?;
    let queries: Vec<&str> = base.queries.iter().map(|query| query.text.as_str()).collect();
    let query = |number: usize| queries[number % queries.len()];
    let request = |number: usize| Request { query: query(number).to_owned(), ..Request::default() };
    let body = |number: usize| json!({ "query": query(number) }).to_string();
    let with_catalog = |number: usize| {
        let question = json!(query(number));
        format!("{{\"query\":{question},\"catalog\":{catalog}}}")
    };

    let ask_library = |number: usize| -> Result<(), Failure> {
        black_box(router.route(black_box(&request(number)))?);
        Ok(())
    };
    let (mut kept, mut brought) = (Http::connect(&address)?, Http::connect(&address)?);
    let mut ways = [
        Way { name: LIBRARY, ask: Box::new(ask_library), samples: Vec::new() },
        Way { name: KEPT, ask: Box::new(|number| kept.route(&body(number)).map(drop)), samples: Vec::new() },
        Way {
            name: EACH,
            ask: Box::new(|number| Http::connect(&address)?.route(&body(number)).map(drop)),
            samples: Vec::new(),
        },
        Way {
            name: BROUGHT,
            ask: Box::new(|number| brought.route(&with_catalog(number)).map(drop)),
            samples: Vec::new(),
        },
    ];
    let mut rows: Vec<(&str, String, f64, &str)> = Vec::new();
    // The first round is not counted: what is kept between questions comes to be.
    for round in 0..=rounds {
        for way in &mut ways {
            for at in 0..BLOCK {
                let start = Instant::now();
                (way.ask)(round * BLOCK + at)?;
                if round > 0 {
                    way.samples.push(start.elapsed());
                }
            }
        }
    }
    for way in &mut ways {
        for (measure, share) in [("p50", 0.5), ("p99", 0.99)] {
            rows.push((way.name, measure.to_owned(), quantile(&mut way.samples, share), "us"));
        }
    }
    drop(ways);
    for askers in CLIENTS {
        let direct = rate(askers, span, || Ok(ask_library));
        rows.push((LIBRARY, format!("{askers} at once"), direct, "calls/s"));
        let over_http = rate(askers, span, || {
            let mut http = Http::connect(&address)?;
            Ok(move |number| http.route(&body(number)).map(drop))
        });
        rows.push((KEPT, format!("{askers} at once"), over_http, "calls/s"));
    }
    if let Some(resident) = resident(process.0.id()) {
        rows.push((KEPT, "resident".to_owned(), resident, "MiB"));
    }

    let mut csv = String::from("path,engine,measure,value,unit\n");
    for (engine, measure, value, unit) in &rows {
        println!("{engine:<52} {measure:<10} {value:>10.1} {unit}");
        let engine = if engine.contains(',') { format!("\"{engine}\"") } else { (*engine).to_owned() };
        csv.push_str(&format!("{PATH},{engine},{measure},{value:.1},{unit}\n"));
    }
    if let Some(path) = out {
        std::fs::write(path, csv)?;
        // Where it is the table of the scorecard, its list is told of it.
        contextweaver::eval::tables::accept_written(Path::new(path))?;
    }
    Ok(())
}
