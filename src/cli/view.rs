//! `view`: a part of an artifact, as a model would get it.

use std::io::Write;

use anyhow::{Error, Result, anyhow};

use super::session::SessionSource;
use super::{Outcome, note};
use contextweaver_context::event::{Handle, Selector};
use contextweaver_context::store::{ArtifactStore, Session, StoreError};
use contextweaver_context::view::{Bounds, Cursor, view};
use contextweaver_core::text::Estimator;

/// Show part of an artifact of a session
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Selectors: head:500, lines:0..20, rows:-10.., json_keys:a,b, json_path:$.a, grep:ERROR, sample:10, or the JSON form.\n\nExample:\n  contextweaver view --session chat.session artifact:result:call:3 lines:0..20"
)]
pub(super) struct Args {
    #[command(flatten)]
    source: SessionSource,
    /// The artifact; `contextweaver inspect` lists them
    handle: String,
    /// Which part to show
    #[arg(allow_hyphen_values = true)]
    selector: Selector,
    /// Continue where the last answer ended
    #[arg(long, value_name = "CURSOR", default_value_t)]
    cursor: Cursor,
    /// Maximum bytes to show; numbers below 16 count as 16
    #[arg(long, value_name = "N", default_value_t = 8000)]
    max_bytes: usize,
    /// Maximum tokens to show; numbers below 16 count as 16
    #[arg(long, value_name = "N", default_value_t = 2000)]
    max_tokens: usize,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let session = args.source.load()?;
    let handle = Handle::new(args.handle.as_str());
    let reference = session.artifacts.reference(&handle).map_err(|error| match error {
        StoreError::NoArtifact(_) => no_artifact(&session, &handle),
        error => error.into(),
    })?;
    let content = session.artifacts.get(&handle)?;
    let bounds = Bounds::new(args.max_bytes, args.max_tokens, Estimator::default());
    let shown = view(&handle, &content, &reference.media_type, &args.selector, args.cursor, bounds)?;
    writeln!(out, "{}", shown.text)?;
    if let Some(next) = shown.next {
        note(&format!("more: --cursor {next}"));
    }
    Ok(Outcome::Ok)
}

/// Why there is nothing to view, with what there is.
fn no_artifact(session: &Session, handle: &Handle) -> Error {
    const NAMED: usize = 5;
    let known = session.artifacts.list().unwrap_or_default();
    let known: Vec<&str> = known.iter().map(|artifact| artifact.handle.as_str()).collect();
    let whole = format!("artifact:{handle}");
    if known.contains(&whole.as_str()) {
        return anyhow!("no artifact `{handle}`; write `{whole}`");
    }
    let more = if known.len() > NAMED { ", …; `contextweaver inspect` lists them all" } else { "" };
    match known.is_empty() {
        true => anyhow!("no artifact `{handle}`; the session has none"),
        false => {
            anyhow!("no artifact `{handle}`; the session has {}{more}", known[..known.len().min(NAMED)].join(", "))
        }
    }
}
