//! `firewall`: what a prompt would get in place of one result.

use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::files::{read_input, shown};
use super::{Format, Outcome, at_least_one, counted, note, print_json};
use contextweaver_context::adapters::{Recognised, recognise_output};
use contextweaver_context::event::{ContextItem, ItemKind, ToolOutput};
use contextweaver_context::store::MemoryArtifacts;
use contextweaver_context::summary::StructureSummarizer;
use contextweaver_context::{Firewall, FirewallConfig, RawCount, Secrets, Seen};
use contextweaver_core::text::Estimator;

/// Show what a prompt would get in place of a result
#[derive(Debug, clap::Args)]
#[command(after_help = "\
FILE is the result of an MCP tool (a CallToolResult as JSON), which is recognised by its content, or any other file.
A result of up to 2000 characters is shown as it is, whatever it costs.

Examples:
  contextweaver firewall result.json
  contextweaver firewall --tokens 150 access.log
  git diff | contextweaver firewall - --format json")]
pub(super) struct Args {
    /// The result; `-` is standard input
    file: PathBuf,
    /// Maximum tokens to show for a large result [default: 300]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    tokens: Option<NonZeroUsize>,
    /// How tokens are counted: cl100k_base, o200k_base or chars/4
    #[arg(long, default_value_t, value_name = "NAME")]
    estimator: Estimator,
    /// Count the tokens of the whole result, too (shown as JSON)
    #[arg(long)]
    original_tokens: bool,
    /// Remove secrets from the result first
    #[arg(long)]
    redact: bool,
    /// Output format: the text alone, or the envelope
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let defaults = FirewallConfig::default();
    let config = FirewallConfig {
        summary_tokens: args.tokens.map_or(defaults.summary_tokens, NonZeroUsize::get),
        raw_count: if args.original_tokens { RawCount::Exact } else { RawCount::Skip },
        secrets: if args.redact { Secrets::Redact } else { Secrets::Keep },
        ..defaults
    };
    // Reading the file and decoding the token vocabulary take about as long: do both at once.
    let (output, _) = rayon::join(|| output(&args.file), || args.estimator.count(""));
    let output = output?;
    let artifacts = MemoryArtifacts::default();
    let firewall = Firewall::new(&config, args.estimator, &StructureSummarizer, &artifacts);
    let call = ContextItem::new("file", ItemKind::ToolCall, name(&args.file));
    let (_, envelope) = firewall.ingest(&call, &output, &mut Seen::default())?;
    match args.format {
        Format::Json => print_json(out, "firewall", &envelope)?,
        Format::Text => {
            write!(out, "{}", envelope.summary)?;
            if envelope.summary.is_empty() {
                note(&format!("nothing fits into {}; raise --tokens", counted(config.summary_tokens, "token")));
            }
            // Exactly the summary goes to a file or pipe; a person gets a line break after it.
            if io::stdout().is_terminal() {
                note("");
            }
        }
    }
    Ok(Outcome::Ok)
}

fn name(file: &Path) -> String {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    if stem == "-" { "stdin".to_owned() } else { stem }
}

/// The file as the output of a call.
fn output(file: &Path) -> Result<ToolOutput> {
    let Recognised { output, remark } = recognise_output(read(file)?, &file.display().to_string());
    remark.iter().for_each(|remark| note(remark));
    Ok(output)
}

fn read(file: &Path) -> Result<Vec<u8>> {
    if file.is_dir() {
        bail!("{} is a directory; name a file in it", file.display());
    }
    let bytes = read_input(file)?;
    if bytes.is_empty() {
        bail!("{} is empty; there is no result to show", shown(file, "standard input"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What the command prints for a file that holds `bytes`, or its error without the folder.
    fn printed(name: &str, bytes: &[u8], options: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let mut arguments = vec!["contextweaver".into(), "firewall".into(), file.into_os_string()];
        arguments.extend(options.iter().map(std::ffi::OsString::from));
        let mut out = Vec::new();
        let folder = format!("{}/", folder.path().display());
        match crate::cli::run(arguments, &mut out) {
            Ok(_) => String::from_utf8(out).unwrap().replace(&folder, ""),
            Err(error) => format!("error: {}", crate::cli::chain(&error).replace(&folder, "")),
        }
    }

    #[test]
    fn small_files_and_results_are_shown_as_they_are() {
        let result =
            json!({"content": [{"type": "text", "text": "two\nlines"}], "structuredContent": {"result": "two\nlines"}});
        assert_eq!(printed("r.json", result.to_string().as_bytes(), &[]), "two\nlines");
        assert_eq!(printed("a.txt", b"two\nlines\n", &["--tokens", "1"]), "two\nlines\n");
        let other = r#"{"content": ["a", "b"]}"#;
        assert_eq!(printed("a.json", other.as_bytes(), &[]), other);
        let failed = json!({"content": [{"type": "text", "text": "no such table"}], "isError": true}).to_string();
        let envelope: Value =
            serde_json::from_str(&printed("r.json", failed.as_bytes(), &["--format", "json"])).unwrap();
        assert_eq!((&envelope["status"], &envelope["summary"]), (&json!("error"), &json!("no such table")));
        assert_eq!(envelope["firewall"]["strategy"], json!("passthrough"));
    }

    #[test]
    fn large_files_are_shown_within_the_tokens_asked_for() {
        let log: String =
            (0..3000).map(|number| format!("2024-05-01 INFO request {number} took {number} ms\n")).collect();
        for estimator in Estimator::ALL {
            for tokens in [1, 20, 150, 600] {
                let options = ["--tokens", &tokens.to_string(), "--estimator", estimator.name()];
                let text = printed("access.log", log.as_bytes(), &options);
                assert!(estimator.count(&text) <= tokens, "{estimator} {tokens}: {text}");
            }
        }
        let envelope = printed("access.log", log.as_bytes(), &["--format", "json", "--original-tokens"]);
        let envelope: Value = serde_json::from_str(&envelope).unwrap();
        assert_eq!(envelope["firewall"]["original_tokens"], json!(Estimator::Cl100kBase.count(&log)));
        assert_eq!(envelope["artifacts"][0]["size_bytes"], json!(log.len()));
        assert_eq!(envelope["artifacts"][0]["handle"], json!("artifact:result:file"));
    }

    #[test]
    fn what_is_no_text_is_named() {
        insta::assert_snapshot!(printed("p.png", b"\x89PNG\r\n\x1a\n\xff\x00", &[]), @"[image/png, 10 bytes: mcp:p:image:0]");
        insta::assert_snapshot!(printed("x.bin", b"\xff\xfe\x00\x01", &[]), @"[resource x.bin, application/octet-stream, 4 bytes: mcp:x:resource:0]");
    }

    #[test]
    fn what_cannot_be_shown_is_refused_by_name() {
        insta::assert_snapshot!(printed("empty", b"", &[]), @"error: empty is empty; there is no result to show");
        let mut out = Vec::new();
        let missing =
            crate::cli::run(["contextweaver", "firewall", "/nowhere/x"].map(Into::into), &mut out).unwrap_err();
        insta::assert_snapshot!(crate::cli::chain(&missing), @"/nowhere/x: there is no such file");
        let folder = crate::cli::run(["contextweaver", "firewall", "/"].map(Into::into), &mut out).unwrap_err();
        insta::assert_snapshot!(crate::cli::chain(&folder), @"/ is a directory; name a file in it");
    }

    #[test]
    fn broken_and_deep_json_is_text() {
        let broken = r#"{"content": [{"type": "text", "text": "a"}"#;
        assert_eq!(printed("r.json", broken.as_bytes(), &[]), broken);
        let deep = format!("{{\"content\": {}{}}}", "[".repeat(200_000), "]".repeat(200_000));
        for bomb in [deep, "[".repeat(500_000), "{\"a\":".repeat(100_000)] {
            let text = printed("bomb.json", bomb.as_bytes(), &["--tokens", "40"]);
            assert!(!text.is_empty() && Estimator::Cl100kBase.count(&text) <= 40, "{text}");
        }
    }
}
