//! `serve`: the engines over HTTP, for programs in any language.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::again::{PATIENCE, read_again};
use super::http::{HttpArgs, Signal, Told, listen_help, signals};
use super::mcp::block_on_runtime;
use super::session::context_config;
use super::source::{CatalogSource, read_config};
use super::terminal::line;
use super::{Outcome, feedback, in_one_line, models, note, outside};
use contextweaver_api::{Engines, OPENAPI, Problem};
use contextweaver_context::hooks::Exchange;
use contextweaver_context::memory::{MemorySource, RecallBounds, Remembered, SourceError};
use contextweaver_gateway::{
    Answer, Api, ApiControl, ApiServer, CallersConfig, HttpConfig, OtlpConfig, ProxyRule, while_waiting,
};
use contextweaver_routing::semantic::model::place;
use contextweaver_routing::{Router, RoutingConfig};

/// Serve the engines over HTTP: route, compile, compact, view, count, hand over, evaluate
#[derive(Debug, Clone, clap::Args)]
#[command(mut_arg("listen", |flag| flag.help(listen_help(listen()))), after_help = "\
GET /openapi.json describes the API; docs/http.md has examples. Answers are what the commands print with --format json.

Examples:
  contextweaver serve --catalog servers/
  contextweaver serve --listen 127.0.0.1:0
  contextweaver serve --catalog servers/ --listen 0.0.0.0:8100 --token-file token --allowed-host tools.example
  contextweaver serve --catalog servers/ --callers callers.yaml --trusted-proxy 127.0.0.1 --allowed-host tools.example")]
pub(super) struct Args {
    /// Catalog file or folder for requests without a catalog of their own; may be repeated
    #[arg(long, value_name = "PATH")]
    catalog: Vec<PathBuf>,
    /// Leave out what is malformed in the catalog, report it, and continue with the rest
    #[arg(long, requires = "catalog")]
    lenient: bool,
    /// Routing configuration (TOML) [default: built in]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Context configuration (TOML) [default: built in]
    #[arg(long, value_name = "FILE")]
    context_config: Option<PathBuf>,
    /// Also rank by the sentence encoder
    #[arg(long)]
    model: bool,
    /// Lift the tools of the catalog that similar queries led to, as this log of `contextweaver feedback` says
    #[arg(long, value_name = "FILE", requires = "catalog")]
    feedback: Option<PathBuf>,
    /// Memory that requests may search: memory file, session, facts, Markdown
    /// document or folder of them, cards (JSON), SQLite store, or address of a Mem0
    #[arg(long, value_name = "SOURCE")]
    memory: Option<String>,
    /// Maximum bytes of a request
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    body_limit: usize,
    /// Send a span for each request, and metrics, to the OpenTelemetry collector that this file names, as in the
    /// section `otlp` of a gateway's configuration
    #[arg(long, value_name = "FILE")]
    otlp: Option<PathBuf>,
    #[command(flatten)]
    http: HttpArgs,
    /// The callers, each with a token and bounds of its own (YAML or JSON); a hangup signal has the file read again
    #[arg(long, value_name = "FILE", conflicts_with = "token_file", help_heading = "HTTP")]
    callers: Option<PathBuf>,
    /// A proxy that names the hosts of callers in `X-Forwarded-For`; may be repeated
    #[arg(
        long = "trusted-proxy",
        value_name = "ADDRESS[/BITS]",
        value_parser = ProxyRule::parse,
        help_heading = "HTTP"
    )]
    trusted_proxies: Vec<ProxyRule>,
}

/// The engines behind the transport of the gateway.
struct Interface(Engines);

/// What is asked while the place of the work is lent to others: the answer needs no processor.
struct Lent<T>(T);

impl Exchange for Lent<Arc<dyn Exchange>> {
    fn ask(&self, line: &str, patience: Duration) -> Result<String, String> {
        while_waiting(|| self.0.ask(line, patience))
    }
}

impl MemorySource for Lent<Box<dyn MemorySource>> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn search(&self, query: &str, bounds: RecallBounds) -> Result<Vec<Remembered>, SourceError> {
        while_waiting(|| self.0.search(query, bounds))
    }

    fn search_masked(&self, query: &str, bounds: RecallBounds) -> Result<Vec<Remembered>, SourceError> {
        while_waiting(|| self.0.search_masked(query, bounds))
    }

    fn notes(&self) -> &[String] {
        self.0.notes()
    }
}

/// The address where nothing else is said: not the gateway's, so that both may run.
fn listen() -> SocketAddr {
    let mut address = HttpConfig::default().listen;
    address.set_port(8100);
    address
}

impl Api for Interface {
    fn path(&self, path: &str) -> Option<&'static str> {
        Engines::at(path).map(|operation| operation.path)
    }

    fn is_long(&self, path: &'static str) -> bool {
        Engines::at(path).is_some_and(|operation| operation.is_long)
    }

    fn answer(&self, path: &'static str, body: &[u8]) -> Answer {
        let Some(operation) = Engines::at(path) else {
            return Answer { status: 404, body: self.refusal("nothing is here") };
        };
        match self.0.answer(operation, body) {
            Ok(document) => Answer { status: 200, body: document.to_string() },
            Err(problem) => Answer { status: problem.kind.status(), body: self.refusal(&problem.message) },
        }
    }

    fn description(&self) -> &'static str {
        OPENAPI
    }

    fn refusal(&self, message: &str) -> String {
        Problem::document(message).to_string()
    }
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let routing = read_config(args.config.as_deref())?;
    let context = context_config(args.context_config.as_deref())?;
    let default = if args.catalog.is_empty() { None } else { Some(router(args, routing.clone())?) };
    let mut engines = Engines::new(default, routing, context.clone());
    if let Some(memory) = &args.memory {
        engines = engines.with_memory(Arc::new(Lent(outside::memory(memory)?)));
    }
    if let Some(hooks) = outside::hooks(&context)? {
        engines = engines.with_hooks(hooks.through(|exchange| Arc::new(Lent(exchange))));
    }
    if args.model {
        engines = engines.with_encoder(place::encoder()?);
    }
    // The vocabulary is decoded before the first request waits for it.
    let _ = contextweaver_core::text::Estimator::default().count("");
    let http = http(args)?;
    let otlp = args.otlp.as_deref().map(OtlpConfig::load).transpose().context("--otlp")?;
    block_on_runtime(&mut tokio::runtime::Builder::new_multi_thread(), async {
        let mut server = ApiServer::bind(Arc::new(Interface(engines)), http).await?;
        if let Some(otlp) = &otlp {
            server = server.exporting(otlp).context("--otlp")?;
        }
        let mut told = Told::from(signals()?);
        // Who started it with port 0 learns here where it is, and that signals are heeded from now on.
        note(&format!("listening at http://{}", server.address()?));
        let control = server.control();
        server.serve(heed(&mut told, args, &control)).await;
        Ok(Outcome::Ok)
    })
}

/// How it listens and who may ask, as the arguments and the file of callers say now.
fn http(args: &Args) -> Result<HttpConfig> {
    let trusted_proxies = args.trusted_proxies.clone();
    let mut http = HttpConfig { body_limit: args.body_limit, trusted_proxies, ..HttpConfig::default() };
    http.listen = listen();
    args.http.apply(&mut http)?;
    if http.body_limit == 0 {
        bail!("--body-limit must be more than 0");
    }
    // One caller has half of them.
    http.max_bytes_in_flight = http.max_bytes_in_flight.max(http.body_limit.saturating_mul(2));
    if let Some(path) = &args.callers {
        let callers = CallersConfig::load(path).context("--callers")?;
        callers.admit(&mut http).with_context(|| format!("--callers: {}", path.display()))?;
    }
    Ok(http)
}

/// Reads the file of callers again at each signal to do so, until a signal ends it. Without such a file, every signal does.
async fn heed(told: &mut Told<impl AsyncFnMut() -> Signal>, args: &Args, control: &ApiControl) {
    while told.next().await == Signal::Reload && args.callers.is_some() {
        let Some(outcome) = told.unless_ended(reload(args, control)).await else { return };
        // Nobody may listen any more.
        let _ = match outcome {
            Ok(()) => line(&mut std::io::stderr(), "contextweaver: the callers were read again and are in force"),
            Err(error) => line(
                &mut std::io::stderr(),
                format_args!("contextweaver: the previous callers stay in force: {}", in_one_line(&error)),
            ),
        };
    }
}

/// Reads the callers again and puts them in force, all or none.
async fn reload(args: &Args, control: &ApiControl) -> Result<()> {
    let args = args.clone();
    Ok(control.put(read_again("--callers", PATIENCE, move || http(&args)).await?)?)
}

fn router(args: &Args, routing: RoutingConfig) -> Result<Router> {
    let source = CatalogSource { catalog: args.catalog.clone(), lenient: args.lenient };
    let router = Router::build(source.load()?, routing)?;
    let router = if args.model { models::with_model(router)? } else { router };
    match &args.feedback {
        None => Ok(router),
        Some(path) => {
            let log = feedback::read(path).with_context(|| path.display().to_string())?;
            Ok(router.with_feedback(&log.observations))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lent_memory_masks_what_it_divides_before_it_does() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pool.md");
        // A key that is longer than a piece: only the first piece says that it is one.
        let lines = "Zq7vQ2pLm9Rt4Zw8Xk7vQ2pLm9Rt4Zw8Xk7vQ2pLm9Rt4Zw8Xk7vQ2pLm9Rt4Zw8\n".repeat(24);
        let [begin, end] = ["BEGIN", "END"].map(|what| format!("-----{what} RSA {} KEY-----", "PRIVATE"));
        std::fs::write(&file, format!("# Pool\n\n{begin}\n{lines}{end}\n")).unwrap();
        let memory = Lent(outside::memory(file.to_str().unwrap()).unwrap());
        let told = |found: Result<Vec<Remembered>, SourceError>| -> String {
            found.unwrap().into_iter().map(|one| one.text).collect()
        };
        let bounds = RecallBounds::default();
        assert!(told(memory.search("pool", bounds)).matches("Zq7v").count() > 12);
        let masked = told(memory.search_masked("pool", bounds));
        assert!(masked.contains("[REDACTED: private_key]") && !masked.contains("Zq7v"), "{masked}");
    }
}
