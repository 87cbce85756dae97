//! `mcp incident-pack`: one archive with what somebody needs to help with a gateway, without its secrets.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::block_on;
use super::chain::{Started, Values};
use super::running::{self, Running};
use crate::cli::terminal::line;
use crate::cli::{Format, Outcome, counted, note, print_json};
use contextweaver_core::files::{folder_of, replace_private_file};
use contextweaver_core::text::grouped;
use contextweaver_gateway::{
    AuditCheck, EventStats, Gateway, GatewayConfig, Incident, IncidentFile, IncidentManifest, Preview, Window, examine,
};

/// Collect what others need to help you, without secrets, in one archive
#[derive(Debug, clap::Args)]
#[command(after_help = "\
In the archive: the configuration, what `mcp doctor` and `mcp preview` find, sums and the last lines of the events and of the
audit log, and what a running gateway reports about itself. manifest.json names each file with its digest, and what is
missing and why. Values that may be secrets are masked, even where a server repeated them. Review the archive before
you send it.

Examples:
  contextweaver mcp incident-pack --out pack.zip
  contextweaver mcp incident-pack --out pack.zip --url http://127.0.0.1:8080 --token-file token
  contextweaver mcp incident-pack --out pack.zip --no-start --lines 50")]
pub(in crate::cli) struct Args {
    /// The ZIP archive to write; one that exists is never replaced
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    started: Started,
    #[command(flatten)]
    running: Running,
    /// Maximum lines to take from each log
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    lines: u16,
    /// Do not start the servers; what they list is then missing
    #[arg(long)]
    no_start: bool,
    /// How long to wait for all servers together
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// How long a running gateway has to answer.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if let Some(ending) = args.out.extension().filter(|ending| !ending.eq_ignore_ascii_case("zip")) {
        bail!(
            "--out {}: it is written as a ZIP archive; end its name in .zip, not .{}",
            args.out.display(),
            ending.display()
        );
    }
    let config = args.started.config.path()?;
    refuse(&args.out)?;
    if !config.is_file() {
        bail!("{}: there is no such configuration", config.display());
    }
    let values = Values::of(&config, &args.started.client).ok();
    let known = values.as_ref().map(Values::known).unwrap_or_default();
    let mut incident = Incident::begin(&config, &known, environment(), std::env::home_dir().as_deref());
    if let Some(token) = &args.running.token_file {
        incident.cover_file(token);
    }
    let lookup = |name: &str| values.as_ref().map_or_else(|| std::env::var(name).ok(), |values| values.get(name));
    let loaded = GatewayConfig::load_for(&config, None, &lookup).map_err(anyhow::Error::from);
    add_servers(args, &mut incident, &config, loaded.as_ref().ok(), &lookup);
    match &loaded {
        Ok(loaded) => add_logs(&mut incident, loaded, usize::from(args.lines)),
        Err(error) => {
            for name in ["stats.json", "events.jsonl", "audit.json", "audit.jsonl"] {
                incident.leave_out(name, &format!("the configuration is not accepted: {error:#}"));
            }
        }
    }
    add_running(args, &mut incident);
    let (files, manifest) = incident.finish(OffsetDateTime::now_utc());
    let archive = archive(&files, &manifest)?;
    refuse(&args.out)?;
    replace_private_file(&args.out, &archive)?;
    match args.format {
        Format::Json => print_json(out, "mcp incident-pack", &manifest)?,
        Format::Text => print(out, &args.out, &manifest)?,
    }
    Ok(Outcome::Ok)
}

/// The variables of this process that are text.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// An archive that somebody may have sent is never replaced.
fn refuse(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_ok() {
        bail!("--out: {} exists and is not replaced; name another file", path.display());
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        bail!("--out: the folder {} does not exist; create it", folder.display());
    }
    Ok(())
}

/// What a check of the configuration and its servers says, and what it would serve.
fn add_servers(
    args: &Args,
    incident: &mut Incident,
    path: &Path,
    config: Option<&GatewayConfig>,
    lookup: &dyn Fn(&str) -> Option<String>,
) {
    let (doctor, catalog) = ("doctor.json", "catalog.json");
    if args.no_start {
        for name in [doctor, catalog] {
            incident.leave_out(name, "the servers were not started: --no-start");
        }
        return;
    }
    let patience = Duration::from_secs(args.timeout);
    let late = || anyhow!("the servers took longer than {} s; see --timeout", args.timeout);
    let found = block_on(async { tokio::time::timeout(patience, examine(path, lookup)).await.map_err(|_| late()) });
    match found {
        Ok(found) => incident.add(doctor, "what `mcp doctor` finds", &found),
        Err(error) => incident.leave_out(doctor, &format!("{error:#}")),
    }
    let Some(config) = config.cloned() else {
        incident.leave_out(catalog, "the configuration is not accepted; doctor.json says why");
        return;
    };
    let served = async {
        let gateway = Gateway::start(config.for_a_look()).await.context("the gateway did not start")?;
        let found = Preview::of(&gateway).await;
        gateway.close().await;
        found.map_err(|error| anyhow!("the tools cannot be listed: {}", error.message))
    };
    let found = block_on(async { tokio::time::timeout(patience, served).await.map_err(|_| late())? });
    match found {
        Ok(found) => incident.add(catalog, "what would be served: servers, tools and their tokens", &found),
        Err(error) => incident.leave_out(catalog, &format!("{error:#}")),
    }
}

/// What the files say that a gateway writes.
fn add_logs(incident: &mut Incident, config: &GatewayConfig, lines: usize) {
    let events = Log {
        path: config.diagnostics.as_deref().ok_or("the configuration names no file in `diagnostics`"),
        sums: ("stats.json", "sums of all events"),
        lines: ("events.jsonl", "events"),
    };
    events.add(incident, lines, |file| EventStats::read(file, &Window::all()));
    let audit = Log {
        path: config.audit.as_ref().map(|audit| audit.file.as_path()).ok_or("the configuration has no `audit`"),
        sums: ("audit.json", "whether the audit log is whole"),
        lines: ("audit.jsonl", "lines of the audit log"),
    };
    audit.add(incident, lines, |file| AuditCheck::read(file, None));
}

/// A file that a gateway appends to, and the files of a pack that are made of it: their names, and what they are.
struct Log<'c> {
    /// Where it is, or why there is none.
    path: Result<&'c Path, &'static str>,
    sums: (&'static str, &'static str),
    lines: (&'static str, &'static str),
}

impl Log<'_> {
    fn add<S: Serialize>(
        self,
        incident: &mut Incident,
        lines: usize,
        read: impl FnOnce(BufReader<File>) -> io::Result<S>,
    ) {
        let path = match self.path {
            Ok(path) => path,
            Err(reason) => {
                [self.sums, self.lines].iter().for_each(|(name, _)| incident.leave_out(name, reason));
                return;
            }
        };
        let (name, about) = self.sums;
        match File::open(path).and_then(|file| read(BufReader::new(file))) {
            Ok(sums) => incident.add(name, about, &sums),
            Err(error) => incident.leave_out(name, &format!("{}: {error}", path.display())),
        }
        let (name, about) = self.lines;
        incident.add_lines(name, about, path, lines);
    }
}

/// What a running gateway says of itself.
fn add_running(args: &Args, incident: &mut Incident) {
    let (health, metrics) = ("health.json", "metrics.txt");
    let Some(url) = &args.running.url else {
        for name in [health, metrics] {
            incident.leave_out(name, "no running gateway was named with --url");
        }
        return;
    };
    let ask = |path: &str| -> Result<running::Answer> {
        let answer = block_on(running::get(url, path, args.running.token_file.as_deref(), PATIENCE))?;
        if !(answer.status.is_success() || answer.status == 503) {
            bail!("the gateway answered {}", answer.status);
        }
        Ok(answer)
    };
    match ask("/healthz").and_then(|answer| Ok(serde_json::from_str::<Value>(&answer.text)?)) {
        Ok(found) => incident.add(health, "the health of the running gateway", &found),
        Err(error) => incident.leave_out(health, &format!("{error:#}")),
    }
    match ask("/metrics") {
        Ok(answer) => incident.add_text(metrics, "the metrics of the running gateway", &answer.text),
        Err(error) => incident.leave_out(metrics, &format!("{error:#}")),
    }
}

/// The archive, of which equal files are equal bytes.
fn archive(files: &[IncidentFile], manifest: &IncidentManifest) -> Result<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default();
    let mut add = |name: &str, bytes: &[u8]| -> Result<()> {
        zip.start_file(name, options)?;
        zip.write_all(bytes)?;
        Ok(())
    };
    let mut document = Vec::new();
    print_json(&mut document, "mcp incident-pack", manifest)?;
    add("manifest.json", &document)?;
    for file in files {
        add(&file.name, file.text.as_bytes())?;
    }
    Ok(zip.finish()?.into_inner())
}

fn print(out: &mut dyn Write, path: &Path, manifest: &IncidentManifest) -> Result<()> {
    let (files, values) = (counted(manifest.files.len(), "file"), counted(manifest.covered, "value"));
    line(out, format_args!("{}: {files}, {values} covered", path.display()))?;
    for file in &manifest.files {
        line(out, format_args!("{:>11}  {}: {}", grouped(file.bytes as u64), file.name, file.about))?;
    }
    if !manifest.left_out.is_empty() {
        writeln!(out, "missing")?;
        for gap in &manifest.left_out {
            line(out, format_args!("  {}: {}", gap.name, gap.reason))?;
        }
    }
    note("review it before you send it");
    Ok(())
}
