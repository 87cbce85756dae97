//! `catalog convert`: a catalog in another form.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::{LoadingArgs, counted};
use crate::cli::files::{Files, Overwrite, write_result};
use crate::cli::tools::{WrittenFormat, write_names};
use crate::cli::{Outcome, note};
use contextweaver_core::catalog::{CallNames, LeftOut, ToolFormat, load, mcp_listing};

/// The arguments of `catalog convert`.
#[derive(Debug, Args)]
#[command(after_help = "\
The form of the input is recognised by its content: MCP, OpenAI, Anthropic, Gemini, Bedrock, OpenAPI,
A2A agent cards, FastMCP, LangChain, LlamaIndex, smolagents, Cohere, Vercel AI SDK, weaver-spec,
ChainWeaver flows, Agent Skills, or the native form.

Examples:
  contextweaver catalog convert openapi.yaml --to mcp --out tools.json
  contextweaver catalog convert servers/ --to openai --names names.json > tools.json")]
pub(in crate::cli) struct ConvertArgs {
    /// Files (JSON or YAML) and folders of files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// What to write
    #[arg(long, value_name = "FORMAT")]
    to: WrittenFormat,
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Write the name that each tool is called by, with its id and the names of renamed arguments, to this file (JSON)
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
    #[command(flatten)]
    loading: LoadingArgs,
}

/// Writes the catalog; what the form cannot hold is named on standard error.
pub(super) fn run(args: &ConvertArgs, out: &mut dyn Write) -> Result<Outcome> {
    let files = Files::default().read("PATH", &args.paths);
    files.written("--out", &args.out).written("--names", &args.names).check()?;
    if let Some(path) = &args.out {
        args.overwrite
            .check(path, "a list of tools", |_| load(&[path], LoadingArgs { lenient: true }.options()).is_ok())?;
    }
    let loaded = load(&args.paths, args.loading.options())?;
    for LeftOut { place, reason } in &loaded.left_out {
        note(&format!("left out: {place}: {reason}"));
    }
    let (catalog, format) = (loaded.catalog, args.to.0);
    let names = match format {
        ToolFormat::Mcp | ToolFormat::Native => CallNames::as_they_are(),
        format => CallNames::new(catalog.items(), format),
    };
    let text = match format {
        ToolFormat::Native => catalog.to_native_json(),
        ToolFormat::Mcp => format!("{:#}\n", mcp_listing(&catalog)),
        format => {
            let left_out = catalog.items().iter().filter(|item| !item.kind.is_callable()).count();
            if left_out > 0 {
                let them = counted(left_out, "resource or prompt", "resources and prompts");
                note(&format!("left out: {them}, which this form cannot hold"));
            }
            if format == ToolFormat::WeaverSpec {
                note("left out: the schemas of arguments and results, which choice cards do not have");
            }
            let written = format.write_noted(catalog.items(), &names);
            let (document, notes) = written.map(|written| (written.document, written.notes)).unwrap_or_default();
            notes.iter().for_each(|text| note(text));
            format!("{document:#}\n")
        }
    };
    let no_place = format.has_no_place_for(catalog.items());
    if !no_place.is_empty() {
        let members: Vec<String> =
            no_place.iter().map(|(key, items)| format!("{} ({items})", key.escape_debug())).collect();
        let members = members.join(", ");
        note(&format!(
            "left out: what this form has no place for, with the number of items: {members}; `--to native` keeps it"
        ));
    }
    if let Some(path) = &args.names {
        write_names(path, &names, |_| true)?;
    }
    write_result(args.out.as_deref(), text.as_bytes(), out)?;
    Ok(Outcome::Ok)
}
