//! `mcp preview`: what a configuration or a catalog would serve.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};

use super::block_on;
use super::chain::{self, Started};
use crate::cli::terminal::line;
use crate::cli::{Format, Outcome, counted, note, print_json};
use contextweaver_core::text::grouped;
use contextweaver_gateway::{Gateway, GatewayConfig, Preview};

/// Show what a configuration or a catalog would serve, and the tokens that this saves
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The servers of a configuration are started for it; one that does not start is named, and the others are shown. If none
starts, it fails as `mcp serve` does.

Examples:
  contextweaver mcp preview
  contextweaver mcp preview --config gateway.yaml --top 50
  contextweaver mcp preview --catalog tools.json --format json")]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    started: Started,
    /// A catalog file with tools
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "client"])]
    catalog: Option<PathBuf>,
    /// How many tools to list, the largest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let (mut next, clients) = (None, &args.started.client);
    let config = match &args.catalog {
        Some(catalog) => GatewayConfig { catalog: Some(catalog.clone().into()), ..GatewayConfig::default() },
        None => {
            let path = args.started.config.path()?;
            let (config, values) = chain::load(&path, None, clients)?;
            next = Some((values?.next(&path, clients, config.diagnostics.is_some()), path));
            config
        }
    };
    let doctor = next
        .as_ref()
        .map(|(_, path)| format!("contextweaver mcp doctor{}{}", chain::flag(path), chain::clients(clients)));
    let (found, templates) = block_on(async {
        let gateway = Gateway::start(config.for_a_look()).await.with_context(|| match &doctor {
            Some(doctor) => format!("the gateway did not start; {doctor} says what to fix"),
            None => "the gateway did not start".to_owned(),
        })?;
        let found = Preview::of(&gateway).await;
        let templates = gateway.catalog().listings.values().map(|listing| listing.templates.len()).sum();
        gateway.close().await;
        Ok((found.map_err(|error| anyhow!("the tools cannot be listed: {}", error.message))?, templates))
    })?;
    match args.format {
        Format::Json => print_json(out, "mcp preview", &found)?,
        Format::Text => {
            print(out, &found, templates, args.top)?;
            if let (Some((next, _)), Some(doctor)) = (next, doctor) {
                note(&match serves_nothing(&found) {
                    true => format!("next: {doctor}"),
                    false if found.surface_tokens > found.direct_tokens => {
                        next.replacen("next: ", "next, if you want the gateway all the same: ", 1)
                    }
                    false => next,
                });
            }
        }
    }
    Ok(Outcome::Ok)
}

/// Whether none of the servers of a configuration started. A catalog has no servers.
fn serves_nothing(found: &Preview) -> bool {
    !found.upstreams.is_empty() && found.upstreams.iter().all(|upstream| upstream.fault.is_some())
}

fn print(out: &mut dyn Write, found: &Preview, templates: usize, top: usize) -> Result<()> {
    let counts = &found.counts;
    writeln!(
        out,
        "{} tools, {} resources, {} prompts; {} definitions left out",
        counts.tools, counts.resources, counts.prompts, counts.left_out
    )?;
    if templates > 0 {
        let templates = counted(templates, "template");
        writeln!(out, "and {templates} of resources, which `catalog inspect` counts as resources")?;
    }
    writeln!(
        out,
        "mode {}: {} tokens for {} listed tools, where all definitions take {} (cl100k_base)",
        found.mode,
        grouped(found.surface_tokens),
        found.surface_tools,
        grouped(found.direct_tokens)
    )?;
    if found.surface_tokens > found.direct_tokens && !serves_nothing(found) {
        writeln!(out, "{}", chain::COSTS_MORE)?;
    }
    if !found.upstreams.is_empty() {
        writeln!(out, "\nupstreams")?;
        for upstream in &found.upstreams {
            match &upstream.fault {
                Some(fault) => line(out, format_args!("  {}: {fault}", upstream.name))?,
                None => line(
                    out,
                    format_args!(
                        "  {}: {} tools, {} resources, {} prompts; speaks {}",
                        upstream.name,
                        upstream.tools,
                        upstream.resources,
                        upstream.prompts,
                        upstream.version.as_deref().unwrap_or("-")
                    ),
                )?,
            }
        }
    }
    if !found.namespaces.is_empty() {
        writeln!(out, "\n{:>8}  {:>6}  namespace", "tokens", "tools")?;
        for namespace in &found.namespaces {
            line(
                out,
                format_args!("{:>8}  {:>6}  {}", grouped(namespace.tokens), namespace.tools, namespace.namespace),
            )?;
        }
        writeln!(out, "\n{:>8}  tool", "tokens")?;
        for tool in found.tools.iter().take(top) {
            let published = tool.published.as_ref().map(|name| format!(" as {name}")).unwrap_or_default();
            line(out, format_args!("{:>8}  {}{published}", grouped(tool.tokens), tool.id))?;
        }
        if let Some(rest) = found.tools.len().checked_sub(top).filter(|rest| *rest > 0) {
            writeln!(out, "          and {rest} more (--top {})", found.tools.len())?;
        }
    }
    if !found.flagged.is_empty() {
        writeln!(out, "\nserved, with findings in their schemas")?;
        for finding in &found.flagged {
            line(out, format_args!("  {}: {}: {}", finding.id, finding.schema, finding.described()))?;
        }
    }
    if !found.left_out.is_empty() {
        writeln!(out, "\nleft out")?;
        for left_out in &found.left_out {
            line(out, format_args!("  {}: {}", left_out.place, left_out.reason))?;
        }
    }
    Ok(())
}
