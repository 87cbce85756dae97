//! `catalog list`: the items of a catalog by kind, namespace, tag and what they declare about danger. No query, no ranking.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::{CommonArgs, WithLeftOut, counted, grouped, print_left_out};
use crate::cli::terminal::shown;
use crate::cli::{Format, Outcome, print_json};
use contextweaver_bench::report::table::Table;
use contextweaver_core::catalog::{CatalogError, Kind, LeftOut, Safety, SelectableItem, load};
use contextweaver_routing::{ChoiceCard, Filter, FilterError};

/// The arguments of `catalog list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  contextweaver catalog list servers/ --tags
  contextweaver catalog list servers/ --tag read-only --namespace files
  contextweaver catalog list servers/ --kind resource --kind prompt --format json

An item with any of the tags passes. `read-only` and `destructive` are tags of those that declare it.")]
pub(in crate::cli) struct ListArgs {
    /// Files (JSON or YAML) and folders of files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only this kind; may be repeated
    #[arg(long, value_enum, value_name = "KIND")]
    kind: Vec<KindArg>,
    /// Only this namespace; may be repeated
    #[arg(long, value_name = "NAME")]
    namespace: Vec<String>,
    /// Only items with this tag; may be repeated
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// No items with this tag; may be repeated
    #[arg(long, value_name = "TAG")]
    exclude_tag: Vec<String>,
    /// No tools that declare to be destructive
    #[arg(long)]
    no_destructive: bool,
    /// List the tags of these items, and how many have each, instead of the items
    #[arg(long)]
    tags: bool,
    /// Loading and printing.
    #[command(flatten)]
    common: CommonArgs,
}

/// A kind of item on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KindArg {
    Tool,
    Agent,
    Skill,
    Resource,
    Prompt,
}

impl From<KindArg> for Kind {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::Tool => Self::Tool,
            KindArg::Agent => Self::Agent,
            KindArg::Skill => Self::Skill,
            KindArg::Resource => Self::Resource,
            KindArg::Prompt => Self::Prompt,
        }
    }
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Listed<R> {
    items: R,
}

/// An item as a model reads it in a choice, with the versions that no card has.
#[derive(Serialize)]
struct Versioned<'c> {
    #[serde(flatten)]
    card: ChoiceCard,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'c str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_version: Option<&'c str>,
}

impl<'c> Versioned<'c> {
    fn of(item: &'c SelectableItem) -> Result<Self, CatalogError> {
        let (version, server_version) = (item.version.as_deref(), item.server_version.as_deref());
        Ok(Self { card: ChoiceCard::of(item)?, version, server_version })
    }
}

/// A tag, and how many of the items have it.
#[derive(Serialize)]
struct Tagged<'c> {
    tag: &'c str,
    count: usize,
}

pub(super) fn run(args: &ListArgs, out: &mut dyn Write) -> Result<Outcome> {
    let loaded = load(&args.paths, args.common.options())?;
    let filter = Filter {
        allow_namespaces: args.namespace.clone(),
        allow_tags: args.tag.clone(),
        exclude_tags: args.exclude_tag.clone(),
        refuse_safety: args.no_destructive.then_some(Safety::Destructive).into_iter().collect(),
        ..Filter::default()
    };
    let allowed = filter.compile(&loaded.catalog).map_err(|error| anyhow!(said(&error)))?;
    let of_kind =
        |item: &SelectableItem| args.kind.is_empty() || args.kind.iter().any(|kind| item.kind == (*kind).into());
    let items: Vec<&SelectableItem> = (0..)
        .zip(loaded.catalog.items())
        .filter(|(at, item)| allowed.allows(*at) && of_kind(item))
        .map(|(_, item)| item)
        .collect();
    if items.is_empty() {
        let kinds: Vec<&str> = args.kind.iter().map(|kind| Kind::from(*kind).name()).collect();
        let passing = counted(allowed.len(), "item", "items");
        bail!("--kind: none of the {passing} that the other options leave has the kind {}", kinds.join(" or "));
    }
    if args.tags { tags(args, &items, &loaded.left_out, out) } else { cards(args, &items, &loaded.left_out, out) }
}

/// What is wrong with a filter, by the options that it is made of.
fn said(error: &FilterError) -> String {
    match error {
        FilterError::Unknown { subject, value, nearest, .. } => {
            let nearest = nearest.as_deref().map(|one| format!("; did you mean `{}`?", shown(one))).unwrap_or_default();
            format!("no item has the {subject} `{}`{nearest}", shown(value))
        }
        FilterError::NothingLeft(items) => format!(
            "none of {} matches all options; leave out one of --namespace, --tag, --exclude-tag, --no-destructive",
            counted(*items, "item", "items")
        ),
    }
}

/// The items as a model reads them in a choice.
fn cards(args: &ListArgs, items: &[&SelectableItem], left_out: &[LeftOut], out: &mut dyn Write) -> Result<Outcome> {
    let cards = items.iter().map(|item| Versioned::of(item)).collect::<Result<Vec<_>, _>>()?;
    match args.common.format {
        Format::Json => print_json(out, "catalog list", &WithLeftOut { report: &Listed { items: cards }, left_out })?,
        Format::Text => {
            for (at, Versioned { card, version, .. }) in (1..).zip(&cards) {
                let version = version.map(|version| format!(" | version {}", shown(version))).unwrap_or_default();
                writeln!(out, "{}{version}", card.line(at, cards.len()))?;
            }
            print_left_out(out, left_out)?;
        }
    }
    Ok(Outcome::Ok)
}

fn tags(args: &ListArgs, items: &[&SelectableItem], left_out: &[LeftOut], out: &mut dyn Write) -> Result<Outcome> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in items.iter().flat_map(|item| &item.tags) {
        *counts.entry(tag).or_default() += 1;
    }
    let mut tags: Vec<Tagged<'_>> = counts.into_iter().map(|(tag, count)| Tagged { tag, count }).collect();
    tags.sort_by_key(|tagged| std::cmp::Reverse(tagged.count));
    match args.common.format {
        Format::Json => print_json(out, "catalog list", &WithLeftOut { report: &Listed { items: tags }, left_out })?,
        Format::Text => {
            let mut table = Table::new(["tag", "items"]);
            for Tagged { tag, count } in &tags {
                table.row([shown(tag), grouped(*count)]);
            }
            write!(out, "{}", table.plain())?;
            print_left_out(out, left_out)?;
        }
    }
    Ok(Outcome::Ok)
}
