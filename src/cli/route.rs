//! `route`: a query in, cards out, with the reasons on request.

use std::collections::BTreeSet;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;

use super::files::write;
use super::source::{CatalogSource, id_of, read_config};
use super::tools::{of_request, write_names};
use super::{Format, Outcome, at_least_one, counted, note, print_document, print_json};
use contextweaver_bench::report::html;
use contextweaver_bench::report::number::short_share;
use contextweaver_core::catalog::{CallNames, Catalog, Safety, SelectableItem, ToolFormat, Written, routing_decision};
use contextweaver_core::files::ReadError;
use contextweaver_routing::{
    Ambiguity, Choice, Explored, Filter, FilterError, History, Path, Provider, Pruned, Request, Route, RouteError,
    Router, SCORE_UNITS, load,
};

/// Rank the tools of a catalog for a query
#[derive(Debug, clap::Args)]
#[command(
    mut_args(super::help::under_heading),
    after_help = "\
Examples:
  contextweaver route --catalog tools.json \"open a ticket about the login bug\"
  contextweaver route --catalog servers/ --explain --top-k 3 \"who is on call\"
  contextweaver route --catalog servers/ --path /github/issues
  contextweaver route --catalog tools.json --model --explain \"who is on call\"
  contextweaver route --catalog tools.json --html route.html \"who is on call\"
  contextweaver route --catalog tools.json --schema openai \"send the report to Kim\"
  contextweaver route --catalog openapi.json --as anthropic --top-k 5 \"cancel the order\""
)]
pub(super) struct Args {
    #[command(flatten)]
    source: CatalogSource,
    /// What you want done, in your own words; several words need no quotes
    #[arg(required_unless_present_any = ["path", "query_option"], conflicts_with = "path")]
    query: Vec<String>,
    /// The same as the argument, for scripts
    #[arg(long = "query", id = "query_option", value_name = "QUERY", conflicts_with_all = ["path", "query"])]
    query_option: Option<String>,
    /// Browse instead: list what is at this path of the choice graph, `/` first
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Index written by `contextweaver build` for the same catalog and configuration
    #[arg(long, visible_alias = "graph", value_name = "FILE")]
    index: Option<PathBuf>,
    /// Routing configuration (TOML) [default: built in]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Number of tools to return [default: the configuration's]
    #[arg(
        short = 'k',
        long,
        value_name = "N",
        value_parser = at_least_one,
        allow_negative_numbers = true,
        conflicts_with = "path"
    )]
    top_k: Option<NonZeroUsize>,
    /// Show what each score is made of
    #[arg(long, conflicts_with = "path")]
    explain: bool,
    /// Print a schema that lets a model choose among the tools, instead of the cards
    #[arg(long, value_enum, value_name = "PROVIDER", conflicts_with = "path")]
    schema: Option<SchemaFor>,
    /// Print the tools found as the list that goes into a request, with full definitions, instead of the cards:
    /// openai, openai-responses, anthropic, gemini or mcp; weaver-spec prints choice cards, which have no schemas
    #[arg(
        long = "as",
        value_name = "FORMAT",
        value_parser = of_request(),
        conflicts_with_all = ["path", "schema", "explain"]
    )]
    tools_as: Option<ToolFormat>,
    /// Print a routing decision with this timestamp around the choice cards of `--as weaver-spec`, e.g.
    /// 2026-11-27T10:00:00Z
    #[arg(long, value_name = "TIME", requires = "tools_as")]
    decided_at: Option<String>,
    /// Write the name that each of these tools is called by, with its id and the names of renamed arguments, to this
    /// file (JSON)
    #[arg(long, value_name = "FILE", requires = "tools_as")]
    names: Option<PathBuf>,
    /// Only tools of this namespace; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "path")]
    namespace: Vec<String>,
    /// Only tools with this tag; may be repeated
    #[arg(long, value_name = "TAG", conflicts_with = "path")]
    tag: Vec<String>,
    /// Not this tool; may be repeated. A tool is named by its id, or by its name if only one has it
    #[arg(long, value_name = "ID", conflicts_with = "path")]
    exclude: Vec<String>,
    /// No tools with this tag; may be repeated
    #[arg(long, value_name = "TAG", conflicts_with = "path")]
    exclude_tag: Vec<String>,
    /// No tools that declare to be destructive
    #[arg(long, conflicts_with = "path")]
    no_destructive: bool,
    /// Always show this tool first; may be repeated
    #[arg(long, value_name = "ID", conflicts_with = "path")]
    pin: Vec<String>,
    /// At most this many tools of one namespace
    #[arg(long, value_name = "N", value_parser = at_least_one, conflicts_with = "path")]
    quota: Option<NonZeroUsize>,
    /// This tool was already called; may be repeated
    #[arg(long, value_name = "ID", conflicts_with = "path")]
    called: Vec<String>,
    /// What the last result said
    #[arg(long, value_name = "TEXT", conflicts_with = "path")]
    last_result: Option<String>,
    /// Lift the tools that similar queries led to, as this log of `contextweaver feedback` says
    #[arg(long, value_name = "FILE", conflicts_with = "path")]
    feedback: Option<PathBuf>,
    /// Also rank by the sentence encoder: finds more on most collections, at milliseconds per query
    #[arg(long, conflicts_with = "path")]
    model: bool,
    /// Also write the decision as an HTML page: the tools, what each score is made of, and the runners-up
    #[arg(long, value_name = "FILE", conflicts_with = "path")]
    html: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Tools that the page shows behind those that were chosen.
const BEHIND: usize = 10;

/// Whose form a selection schema takes.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum SchemaFor {
    JsonSchema,
    Openai,
    Anthropic,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let files = args.source.files().read("--index", &args.index).read("--config", &args.config);
    files.read("--feedback", &args.feedback).written("--names", &args.names).page(&args.html).check()?;
    let router = router(args)?;
    let outcome = match (&args.path, &args.query_option) {
        (Some(path), _) => browse(args, &router, path, out),
        (None, Some(query)) => rank(args, &router, query, out),
        (None, None) => rank(args, &router, &args.query.join(" "), out),
    };
    // The process ends here: taking catalog and index apart piece by piece would cost more than the query did.
    std::mem::forget(router);
    outcome
}

fn router(args: &Args) -> Result<Router> {
    let catalog = args.source.load()?;
    let config = read_config(args.config.as_deref())?;
    let router = match &args.index {
        None => Router::build(catalog, config)?,
        Some(path) => {
            let bytes = std::fs::read(path).map_err(ReadError::at(path))?;
            load(bytes, catalog, config).with_context(|| path.display().to_string())?
        }
    };
    let router = if args.model { super::models::with_model(router)? } else { router };
    match &args.feedback {
        None => Ok(router),
        Some(path) => {
            let log = super::feedback::read(path)?;
            if log.damaged > 0 && log.observations.is_empty() {
                bail!(
                    "--feedback {}: no line of it is feedback; name a log of `contextweaver feedback add`",
                    path.display()
                );
            }
            Ok(router.with_feedback(&log.observations))
        }
    }
}

fn request(args: &Args, catalog: &Catalog, query: &str) -> Result<Request> {
    let ids = |option: &str, names: &[String]| -> Result<Vec<String>> {
        names.iter().map(|name| id_of(catalog, option, name)).collect()
    };
    Ok(Request {
        query: query.to_owned(),
        top_k: args.top_k.map(NonZeroUsize::get),
        filter: Filter {
            exclude_ids: ids("--exclude", &args.exclude)?,
            exclude_tags: args.exclude_tag.clone(),
            allow_namespaces: args.namespace.clone(),
            allow_tags: args.tag.clone(),
            refuse_safety: args.no_destructive.then_some(Safety::Destructive).into_iter().collect(),
            callable_only: args.tools_as.is_some(),
            pins: ids("--pin", &args.pin)?,
            namespace_quota: args.quota,
        },
        history: History {
            called: ids("--called", &args.called)?,
            last_summary: args.last_result.clone(),
            available: Vec::new(),
        },
    })
}

/// The error with the flags in place of the fields of a filter, where it is about one.
fn of_flags(error: RouteError) -> anyhow::Error {
    match error {
        RouteError::Filter(FilterError::Unknown { field, subject, value, nearest }) => {
            let flag = match field {
                "allow_namespaces" => "--namespace",
                "allow_tags" => "--tag",
                "exclude_tags" => "--exclude-tag",
                other => other,
            };
            let nearest = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
            anyhow!("{flag}: no tool has the {subject} `{value}`{nearest}")
        }
        RouteError::Filter(FilterError::NothingLeft(of)) => {
            anyhow!(
                "the flags leave none of {of} tools; loosen --namespace, --tag, --exclude, --exclude-tag, --no-destructive \
                 or --as, whose lists have no resources and prompts"
            )
        }
        other => other.into(),
    }
}

fn rank(args: &Args, router: &Router, query: &str, out: &mut dyn Write) -> Result<Outcome> {
    if query.trim().is_empty() {
        bail!("the query is empty; say what you want done, or browse with --path /");
    }
    let request = request(args, router.catalog(), query)?;
    let route = router.route(&request).map_err(of_flags)?;
    if let Some(path) = &args.html {
        let page = html::route(&route, &behind(router, &request, &route)?);
        write(path, page.as_bytes())?;
    }
    if let Some(provider) = args.schema {
        let provider = match provider {
            SchemaFor::JsonSchema => Provider::JsonSchema,
            SchemaFor::Openai => Provider::OpenAi,
            SchemaFor::Anthropic => Provider::Anthropic,
        };
        print_document(out, &route.selection_schema(provider)?)?;
        return Ok(Outcome::Ok);
    }
    if let Some(format) = args.tools_as {
        return print_tools(args, format, router, (&request, &route), out);
    }
    match args.format {
        Format::Json => print_json(out, "route", &route)?,
        Format::Text => print(&route, args.explain, request.filter != Filter::default(), out)?,
    }
    Ok(Outcome::Ok)
}

/// The tools that would come next.
fn behind(router: &Router, request: &Request, route: &Route) -> Result<Vec<Choice>> {
    let more = Request { top_k: Some(route.choices.len() + BEHIND), ..request.clone() };
    let chosen = route.ids();
    let more = router.route(&more)?.choices.into_iter();
    Ok(more.filter(|choice| !chosen.contains(&choice.card.id())).take(BEHIND).collect())
}

/// Prints the tools of a route as the list of a request.
fn print_tools(
    args: &Args,
    format: ToolFormat,
    router: &Router,
    (request, route): (&Request, &Route),
    out: &mut dyn Write,
) -> Result<Outcome> {
    if args.decided_at.is_some() && format != ToolFormat::WeaverSpec {
        bail!("--decided-at is for routing decisions, which `--as weaver-spec` prints");
    }
    let catalog = router.catalog();
    let names = CallNames::new(catalog.items(), format);
    let found: Vec<&SelectableItem> = route.choices.iter().filter_map(|choice| catalog.get(choice.card.id())).collect();
    if route.no_tool_fits {
        note(&format!("nothing fits well (confidence {}); these are the nearest", short_share(route.confidence)));
    }
    for pin in &request.filter.pins {
        if let Some(item) = catalog.get(pin).filter(|item| !item.kind.is_callable()) {
            note(&format!("--pin {pin} is left out: the list of a request has no {}s", item.kind));
        }
    }
    if let Some(path) = &args.names {
        write_names(path, &names, |id| found.iter().any(|item| item.id == id))?;
    }
    let document = match &args.decided_at {
        Some(moment) => Some(routing_decision(found, &request.query, moment).map_err(|fault| anyhow!("{fault}"))?),
        None => format.write_noted(found, &names).map(|Written { document, notes }| {
            notes.iter().for_each(|text| note(text));
            document
        }),
    };
    print_document(out, &document)?;
    Ok(Outcome::Ok)
}

fn print(route: &Route, explain: bool, filtered: bool, out: &mut dyn Write) -> Result<()> {
    if route.choices.is_empty() {
        let reason = if filtered { "no tool that the filters allow" } else { "no tool" };
        writeln!(out, "{reason} shares a word with this query; try other words, or browse with --path /")?;
        return Ok(());
    }
    if route.no_tool_fits {
        writeln!(out, "nothing fits well (confidence {}); the nearest are:", short_share(route.confidence))?;
    }
    for (number, choice) in route.choices.iter().enumerate() {
        writeln!(out, "{}", choice.card.line(number + 1, route.choices.len()))?;
        if explain {
            writeln!(out, "      {}", choice.explanation())?;
        }
    }
    if explain {
        writeln!(
            out,
            "\nconfidence {}, words that no tool has: {}",
            short_share(route.confidence),
            route.unknown_words
        )?;
        if let Some(explored) = &route.explored {
            print_explored(explored, out)?;
        }
    }
    if let Some(ambiguity) = &route.ambiguity {
        writeln!(out, "\nclose call: {}", fit_equally(route, ambiguity))?;
    }
    Ok(())
}

/// The namespace in an id.
fn namespace_of(id: &str) -> &str {
    id.split_once(':').map_or(id, |(namespace, _)| namespace)
}

/// What fits about equally, and what would decide it: the namespaces, or within one the tools.
fn fit_equally(route: &Route, ambiguity: &Ambiguity) -> String {
    let cards =
        route.choices.iter().map(|choice| &choice.card).filter(|card| ambiguity.ids.iter().any(|id| id == card.id()));
    let (mut namespaces, mut names): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for card in cards {
        if !namespaces.contains(&namespace_of(card.id())) {
            namespaces.push(namespace_of(card.id()));
        }
        names.push(card.name());
    }
    let is_of_several = namespaces.len() > 1;
    let distinct: BTreeSet<&&str> = names.iter().collect();
    let told_apart = distinct.len() == names.len() && names.iter().all(|name| !name.is_empty());
    let (what, them) = match (is_of_several, told_apart) {
        (true, _) => ("namespaces", namespaces),
        (false, true) => ("tools", names),
        (false, false) => ("tools", ambiguity.ids.iter().map(String::as_str).collect()),
    };
    let quoted: Vec<String> = them.iter().map(|name| format!("`{name}`")).collect();
    format!("{} {what} fit about equally: {}; say in the query which one you mean", quoted.len(), quoted.join(", "))
}

fn print_explored(explored: &Explored, out: &mut dyn Write) -> Result<()> {
    let Explored { branches, opened, pruned, left } = explored;
    writeln!(out, "\nopened {opened} of {branches} branches of the choice graph; left {pruned} that share a word:")?;
    for Pruned { path, label, tools, bound } in left {
        let bound = *bound as f64 / SCORE_UNITS as f64;
        writeln!(out, "      {path} ({label}; {}): none scores more than {bound:.2}", counted(*tools, "tool"))?;
    }
    Ok(())
}

fn browse(args: &Args, router: &Router, path: &str, out: &mut dyn Write) -> Result<Outcome> {
    let path: Path = path.parse()?;
    let cards = router.browse(&path)?;
    match args.format {
        Format::Json => print_json(out, "route path", &cards)?,
        Format::Text => {
            for (number, card) in cards.iter().enumerate() {
                writeln!(out, "{}", card.line(number + 1, cards.len()))?;
            }
        }
    }
    Ok(Outcome::Ok)
}
