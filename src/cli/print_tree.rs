//! `print-tree`: the choice graph as people browse it.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;

use super::source::{CatalogSource, read_config};
use super::{Format, Outcome, print_json};
use crate::routing::{ChoiceGraph, NodeId, NodeKind, Path, Router};

/// Show the choice graph that a catalog is browsed by
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  contextweaver print-tree --catalog servers/ --depth 2")]
pub(super) struct Args {
    #[command(flatten)]
    source: CatalogSource,
    /// Routing configuration (TOML) [default: built in]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Levels shown
    #[arg(long, value_name = "N", default_value_t = 3)]
    depth: usize,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Line {
    depth: usize,
    kind: &'static str,
    path: String,
    label: String,
    items: usize,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let router = Router::build(args.source.load()?, read_config(args.config.as_deref())?)?;
    let graph = router.choice_graph()?;
    let lines: Vec<Line> = graph.walk(NodeId::ROOT, args.depth).map(|(depth, node)| line(graph, depth, node)).collect();
    match args.format {
        Format::Json => print_json(out, &lines)?,
        Format::Text => {
            for line in &lines {
                let indent = "  ".repeat(line.depth);
                match line.kind {
                    "tool" => writeln!(out, "{indent}{}", line.label)?,
                    _ => writeln!(out, "{indent}{} ({} items)  {}", line.label, line.items, line.path)?,
                }
            }
        }
    }
    Ok(Outcome::Ok)
}

fn line(graph: &ChoiceGraph, depth: usize, id: NodeId) -> Line {
    let node = graph.node(id);
    let kind = match node.kind {
        NodeKind::Root => "root",
        NodeKind::Group => "group",
        NodeKind::Namespace => "namespace",
        NodeKind::Cluster => "cluster",
        NodeKind::Leaf(_) => "tool",
    };
    let path = Path::of(graph, id).as_str().to_owned();
    Line { depth, kind, path, label: node.label.clone(), items: graph.size(id) }
}
