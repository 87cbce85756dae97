//! `catalog inspect | list | lint | diff | convert`: what a catalog costs, what is in it, what is wrong with it, what changed,
//! and the same in another form.
//!
//! The reports are made by [`contextweaver_core::catalog`]; here they are put into words and columns. Text fits 100 columns,
//! except that an id is never cut: it is there to be copied.

mod convert;
mod impact;
mod list;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::Value;

use self::convert::ConvertArgs;
use self::impact::{DiffFormat, ImpactArgs};
use self::list::ListArgs;
use super::terminal::shown;
use super::{Format, Outcome, note, print_json};
use contextweaver_bench::report::number::counted;
use contextweaver_bench::report::table::Table;
use contextweaver_core::catalog::{
    Change, Changed, DiffReport, Entry, Finding, InspectReport, Kind, LeftOut, LintReport, LoadOptions, Problem,
    PropertyChange, Refused, Safety, SchemaLimits, SchemaProblem, Severity, Source, Strictness, ToolFormat,
    VersionChange, diff, inspect, lint, load,
};
use contextweaver_core::text::{Estimator, grouped};

/// Looks at tool catalogs.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Count tools, servers and the tokens that their definitions take in a prompt
    Inspect(InspectArgs),
    /// List tools, resources and prompts by kind, namespace or tag
    List(ListArgs),
    /// Report what makes tools hard to choose or impossible to call
    Lint(LintArgs),
    /// Show what changed between two versions of a catalog
    Diff(DiffArgs),
    /// Write a catalog in the form of a provider, of MCP, or in the native form
    Convert(ConvertArgs),
}

/// How the catalogs are loaded.
#[derive(Debug, Args)]
struct LoadingArgs {
    /// Leave out malformed files and tools, report them, and continue with the rest; a path that cannot be read is
    /// still an error
    #[arg(long)]
    lenient: bool,
}

impl LoadingArgs {
    fn options(&self) -> LoadOptions {
        LoadOptions { strictness: if self.lenient { Strictness::Lenient } else { Strictness::Strict } }
    }
}

/// What commands that report on catalogs share.
#[derive(Debug, Args)]
pub(super) struct CommonArgs {
    #[command(flatten)]
    loading: LoadingArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl CommonArgs {
    fn options(&self) -> LoadOptions {
        self.loading.options()
    }
}

/// The arguments of `catalog inspect`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  contextweaver catalog inspect servers/ --top 20\n\nEach file of a folder is one server."
)]
pub(super) struct InspectArgs {
    /// Files (JSON or YAML) and folders of files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// How tokens are counted: cl100k_base, o200k_base or chars/4
    #[arg(long, default_value_t, value_name = "ESTIMATOR")]
    estimator: Estimator,
    /// How many of the largest tools to list
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,
    /// Loading and printing.
    #[command(flatten)]
    common: CommonArgs,
}

/// The arguments of `catalog lint`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  contextweaver catalog lint tools.json --min-severity note --fail-on warning\n\nExit code 0: \
                  nothing at or above --fail-on; 1: something; 2: the catalog cannot be loaded."
)]
pub(super) struct LintArgs {
    /// Files (JSON or YAML) and folders of files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// List findings of this severity and above; the totals count all
    #[arg(long, value_parser = severity(), default_value_t = Severity::Warning, value_name = "SEVERITY")]
    min_severity: Severity,
    /// Exit with 1 when there is a finding of this severity or above
    #[arg(long, value_parser = severity(), default_value_t = Severity::Error, value_name = "SEVERITY")]
    fail_on: Severity,
    /// Loading and printing.
    #[command(flatten)]
    common: CommonArgs,
}

/// The arguments of `catalog diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --impact, queries are ranked with both catalogs and with each change alone: which definition costs which query
its rank? The tools of queries may be named as in either catalog.

Examples:
  contextweaver catalog diff before.json after.json
  contextweaver catalog diff before.json after.json --impact --queries queries.jsonl
  contextweaver catalog diff before.json after.json --impact --queries queries.jsonl --format sarif

Exit code 0: the catalogs are the same; 1: they differ; 2: one of them cannot be loaded.
With --impact, 0: no check failed; 1: one failed; 2: an error.")]
pub(super) struct DiffArgs {
    /// The file or folder before
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The file or folder after
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// How tokens are counted: cl100k_base, o200k_base or chars/4
    #[arg(long, default_value_t, value_name = "ESTIMATOR")]
    estimator: Estimator,
    #[command(flatten)]
    loading: LoadingArgs,
    /// What is measured of the change.
    #[command(flatten)]
    impact: ImpactArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: DiffFormat,
}

/// Parses a severity.
fn severity() -> impl TypedValueParser<Value = Severity> {
    let value = |severity: Severity| {
        PossibleValue::new(severity.name()).help(match severity {
            Severity::Note => "Worth knowing",
            Severity::Warning => "Makes a tool hard to choose, or costly",
            Severity::Error => "Keeps a tool from being called correctly",
        })
    };
    PossibleValuesParser::new(Severity::ALL.map(value)).try_map(|name| name.parse::<Severity>())
}

/// Runs one of the commands and prints its result to `out`.
///
/// # Errors
/// When a catalog cannot be loaded or `out` cannot be written.
pub(super) fn run(command: &Command, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    match command {
        Command::Inspect(args) => run_inspect(args, out),
        Command::List(args) => list::run(args, out),
        Command::Lint(args) => run_lint(args, out),
        Command::Diff(args) => run_diff(args, out),
        Command::Convert(args) => convert::run(args, out),
    }
}

fn run_inspect(args: &InspectArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let loaded = load(&args.paths, args.common.options())?;
    let report = inspect(&loaded.catalog, args.estimator);
    match args.common.format {
        Format::Json => {
            let inspected = Inspected { report: &report, sources: &loaded.sources };
            print_json(out, "catalog inspect", &WithLeftOut { report: &inspected, left_out: &loaded.left_out })?;
        }
        Format::Text => {
            print_inspect(out, &report, &loaded.sources, args.top)?;
            print_left_out(out, &loaded.left_out)?;
        }
    }
    Ok(Outcome::Ok)
}

fn run_lint(args: &LintArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let loaded = load(&args.paths, args.common.options())?;
    let mut report = lint(&loaded.catalog, &SchemaLimits::default());
    let fails = report.findings.iter().any(|finding| finding.severity >= args.fail_on);
    let problems = count_problems(&report.findings);
    report.findings.retain(|finding| finding.severity >= args.min_severity);
    match args.common.format {
        Format::Json => print_json(out, "catalog lint", &WithLeftOut { report: &report, left_out: &loaded.left_out })?,
        Format::Text => {
            print_lint(out, &report, &problems)?;
            print_left_out(out, &loaded.left_out)?;
        }
    }
    Ok(if fails { Outcome::Drift } else { Outcome::Ok })
}

fn run_diff(args: &DiffArgs, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    let only_impact = !matches!(args.format, DiffFormat::Text | DiffFormat::Json);
    if only_impact && !args.impact.impact {
        bail!("this format shows checks; add --impact --queries FILE");
    }
    let options = args.loading.options();
    let (old, new) = (load(&[&args.old], options)?, load(&[&args.new], options)?);
    let report = diff(&old.catalog, &new.catalog, args.estimator);
    let left_out: Vec<LeftOut> = old.left_out.into_iter().chain(new.left_out).collect();
    if args.impact.impact {
        for LeftOut { place, reason } in &left_out {
            note(&format!("left out: {place}: {reason}"));
        }
        let paths = [args.old.as_path(), args.new.as_path()];
        return impact::run(&args.impact, args.format, paths, [old.catalog, new.catalog], &report, out);
    }
    if args.format == DiffFormat::Json {
        print_json(out, "catalog diff", &WithLeftOut { report: &report, left_out: &left_out })?;
    } else {
        print_diff(out, &report)?;
        print_left_out(out, &left_out)?;
    }
    Ok(if report.is_same() { Outcome::Ok } else { Outcome::Drift })
}

/// What a catalog holds, and in which forms it was found.
#[derive(Serialize)]
struct Inspected<'r> {
    #[serde(flatten)]
    report: &'r InspectReport,
    sources: &'r [Source],
}

/// A report and what a lenient load left out, as one JSON object.
#[derive(Serialize)]
struct WithLeftOut<'r, R> {
    #[serde(flatten)]
    report: &'r R,
    left_out: &'r [LeftOut],
}

fn print_left_out(out: &mut dyn Write, left_out: &[LeftOut]) -> anyhow::Result<()> {
    if left_out.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nleft out: {}", counted(left_out.len(), "file or tool", "files and tools"))?;
    for LeftOut { place, reason } in left_out {
        print_wrapped(out, "  ", &format!("{place}: {reason}"))?;
    }
    Ok(())
}

/// `MCP (3 definitions), OpenAPI (2 definitions in 2 files)`.
fn forms(sources: &[Source]) -> String {
    let mut forms: BTreeMap<ToolFormat, (usize, usize)> = BTreeMap::new();
    for source in sources {
        let (definitions, files) = forms.entry(source.format).or_default();
        *definitions += source.definitions;
        *files += 1;
    }
    let form = |(format, (definitions, files)): (ToolFormat, (usize, usize))| {
        let files = if files == 1 { String::new() } else { format!(" in {} files", grouped(files)) };
        format!("{format} ({}{files})", counted(definitions, "definition", "definitions"))
    };
    forms.into_iter().map(form).collect::<Vec<_>>().join(", ")
}

fn print_inspect(out: &mut dyn Write, report: &InspectReport, sources: &[Source], top: usize) -> anyhow::Result<()> {
    let kinds = report.kinds.iter().map(|(kind, count)| counted(*count, kind.name(), &format!("{}s", kind.name())));
    let namespaces = counted(report.servers.len(), "namespace", "namespaces");
    writeln!(out, "{} in {namespaces}", kinds.collect::<Vec<_>>().join(", "))?;
    let tokens = counted(report.tokens, "token", "tokens");
    writeln!(out, "{tokens} ({}) to show a model every definition", report.estimator)?;
    print_wrapped(out, "read as ", &forms(sources))?;

    let mut servers: Vec<_> = report.servers.iter().collect();
    servers.sort_by_key(|server| std::cmp::Reverse(server.tokens));
    // Only where a source says one.
    let versions = servers.iter().any(|server| server.version.is_some()).then_some("version");
    let columns = ["namespace", "tools", "resources", "prompts", "tokens", "share"];
    let mut table = Table::new(columns.into_iter().chain(versions));
    for server in servers {
        let version = versions.map(|_| server.version.as_deref().map_or_else(|| "-".to_owned(), shown));
        let row = [
            server.namespace.clone(),
            grouped(server.tools),
            grouped(server.resources),
            grouped(server.prompts),
            grouped(server.tokens),
            share(server.tokens, report.tokens),
        ];
        table.row(row.into_iter().chain(version));
    }
    writeln!(out)?;
    write!(out, "{}", table.plain())?;

    let mut table = Table::new(["largest definitions", "tokens", "share"]);
    for tool in report.tools.iter().take(top) {
        table.row([tool.id.clone(), grouped(tool.tokens), share(tool.tokens, report.tokens)]);
    }
    if top > 0 && !report.tools.is_empty() {
        writeln!(out)?;
        write!(out, "{}", table.plain())?;
    }

    let all = report.tools.len();
    let (safety, schemas) = (report.safety, report.schemas);
    let mut table = Table::new(["what definitions say", "count", "share"]);
    for (what, count, of) in [
        ("tools that declare to be read-only", safety.read_only, all),
        ("tools that declare to be destructive", safety.destructive, all),
        ("tools that declare neither", safety.undeclared, all),
        ("tools with an argument schema", schemas.arguments, all),
        ("tools with a result schema", schemas.results, all),
        ("parameters, nested ones included", schemas.parameters, schemas.parameters),
        ("parameters with a description", schemas.described_parameters, schemas.parameters),
    ] {
        table.row([what.to_owned(), grouped(count), share(count, of)]);
    }
    if report.versions > 0 {
        let what = "tools with a version of their own".to_owned();
        table.row([what, grouped(report.versions), share(report.versions, all)]);
    }
    writeln!(out)?;
    write!(out, "{}", table.plain())?;
    Ok(())
}

/// How often each problem occurs, the worst and most frequent first.
fn count_problems(findings: &[Finding]) -> Vec<(Severity, &'static str, usize)> {
    let mut counts: BTreeMap<(Severity, &'static str), usize> = BTreeMap::new();
    for finding in findings {
        *counts.entry((finding.severity, problem_name(&finding.problem))).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().map(|((severity, name), count)| (severity, name, count)).collect();
    counts.sort_by_key(|(severity, name, count)| std::cmp::Reverse((*severity, *count, std::cmp::Reverse(*name))));
    counts
}

fn print_lint(
    out: &mut dyn Write,
    report: &LintReport,
    problems: &[(Severity, &'static str, usize)],
) -> anyhow::Result<()> {
    let count = |severity: Severity| {
        let count = report.counts.get(&severity).copied().unwrap_or_default();
        counted(count, severity.name(), &format!("{severity}s"))
    };
    let counts = [Severity::Error, Severity::Warning, Severity::Note].map(count).join(", ");
    writeln!(out, "{}: {counts}", counted(report.items, "item", "items"))?;
    if !problems.is_empty() {
        let mut table = Table::new(["problem", "findings"]);
        for (severity, name, count) in problems {
            table.row([format!("{:<9}{name}", severity.name()), grouped(*count)]);
        }
        writeln!(out)?;
        write!(out, "{}", table.plain())?;
    }
    // One block per item, in the order of its worst finding.
    let mut order: Vec<&str> = Vec::new();
    let mut blocks: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in &report.findings {
        let block = blocks.entry(&finding.id).or_default();
        if block.is_empty() {
            order.push(&finding.id);
        }
        block.push(finding);
    }
    for id in order {
        writeln!(out, "\n{id}")?;
        for finding in blocks.remove(id).unwrap_or_default() {
            let label = format!("  {:<9}", finding.severity.name());
            print_wrapped(out, &label, &describe_problem(&finding.problem))?;
        }
    }
    let listed = report.findings.len();
    let hidden = report.counts.values().sum::<usize>() - listed;
    if hidden > 0 {
        let them = counted(hidden, "finding is", "findings are");
        writeln!(out, "\n{them} not listed; --min-severity note lists all")?;
    }
    Ok(())
}

fn problem_name(problem: &Problem) -> &'static str {
    match problem {
        Problem::Schema { finding, .. } => match finding {
            SchemaProblem::Invalid { .. } => "invalid schema",
            SchemaProblem::TooLarge { .. } => "schema too large",
            SchemaProblem::TooDeep { .. } => "schema too deep",
            SchemaProblem::TooManyProperties { .. } => "too many properties",
            SchemaProblem::Explosive { .. } => "explosive schema",
            SchemaProblem::DanglingRef { .. } => "dangling reference",
            SchemaProblem::CyclicRef { .. } => "cyclic reference",
            SchemaProblem::RemoteRef { .. } => "remote reference",
            SchemaProblem::Recursive { .. } => "recursive schema",
            SchemaProblem::UnknownDialect { .. } => "unknown schema dialect",
        },
        Problem::ArgumentsNotObject => "arguments not an object",
        Problem::UnreadSchema { .. } => "unread schema",
        Problem::UndeclaredRequired { .. } => "required but not described",
        Problem::Refused { .. } => "refused by providers",
        Problem::ContradictorySafety => "contradictory annotations",
        Problem::MissingDescription => "missing description",
        Problem::LongDescription { .. } => "long description",
        Problem::UnusualName { .. } => "unusual name",
        Problem::Duplicate { .. } => "duplicate",
        Problem::NearDuplicate { .. } => "near-duplicate",
        Problem::UndescribedParameters { .. } => "undescribed parameters",
        Problem::UnknownDependencies { .. } => "unknown dependency",
        Problem::UnprovidedRequirements { .. } => "provided by no item",
    }
}

fn describe_problem(problem: &Problem) -> String {
    match problem {
        Problem::Schema { part, finding } => finding.told(&format!("the {}", part.name())),
        Problem::ArgumentsNotObject => "the argument schema does not say \"type\": \"object\"".to_owned(),
        Problem::UnreadSchema { at } => {
            let at = at.escape_debug();
            format!("no argument schema was found, but {at} looks like one; docs/formats.md has the keys that are read")
        }
        Problem::UndeclaredRequired { names } => {
            format!("members that are required are not described: {}", listed(names))
        }
        Problem::Refused { by, what } => {
            format!("{} would refuse a request: {}", by.join(", "), describe_refused(what))
        }
        Problem::ContradictorySafety => "is declared both read-only and destructive".to_owned(),
        Problem::MissingDescription => "has no description".to_owned(),
        Problem::LongDescription { tokens, limit } => {
            format!("the description has {} tokens ({}), over {limit}", grouped(*tokens), Estimator::Cl100kBase)
        }
        Problem::UnusualName { name } => {
            format!("the name {name:?} is not 1 to 128 letters, digits, `_`, `-` and `.`, as MCP recommends")
        }
        Problem::Duplicate { of } => format!("has the name, description and argument schema of {of}"),
        Problem::NearDuplicate { of, similarity, count } => {
            let others = match count - 1 {
                0 => String::new(),
                more => format!(", and {} alike", counted(more, "other is", "others are")),
            };
            format!("says nearly the same as {of} (similarity {similarity:.2}){others}")
        }
        Problem::UndescribedParameters { count, examples } => {
            let more = if *count > examples.len() { ", …" } else { "" };
            let names = counted(*count, "parameter has", "parameters have");
            format!("{names} no description: {}{more}", listed(examples))
        }
        Problem::UnknownDependencies { ids } => {
            let ids = listed(ids);
            format!("depends on items that the catalog does not have: {ids}; correct or remove the ids in `depends_on`")
        }
        Problem::UnprovidedRequirements { names } => {
            format!("no item provides what it requires: {}; list it in `provides` of an item that does", listed(names))
        }
    }
}

/// Names from a catalog, in a form that a terminal shows as they are.
fn listed(names: &[String]) -> String {
    names.iter().map(|name| name.escape_debug().to_string()).collect::<Vec<_>>().join(", ")
}

/// What a provider refuses, and what a list that is written here has in its place.
fn describe_refused(what: &Refused) -> String {
    match what {
        Refused::ArgumentNames { names } => {
            format!("the names of arguments {}; `catalog convert` renames them", listed(names))
        }
        Refused::Root { keywords } => {
            format!("{} at the root of the argument schema; `catalog convert` makes it one object", listed(keywords))
        }
        Refused::References { references } => {
            format!("references that lead nowhere, {}; `catalog convert` allows anything there", listed(references))
        }
        Refused::Patterns { patterns } => {
            let patterns: Vec<String> = patterns.iter().map(|pattern| format!("`{}`", shown(pattern))).collect();
            format!("the patterns {}; `catalog convert` leaves them out", patterns.join(", "))
        }
        Refused::Discriminator => {
            "`strict` with `oneOf` and a `discriminator`; `catalog convert` makes it `anyOf`".to_owned()
        }
        Refused::Strict => {
            "`strict` with a schema that does not keep to its rules; `catalog convert` leaves `strict` out".to_owned()
        }
        Refused::OlderDraft => "keywords of older drafts of JSON Schema; `catalog convert` rewrites them".to_owned(),
        Refused::ArrayWithoutItems => "arrays without `items`; `catalog convert` adds it".to_owned(),
        Refused::EmptyValues => {
            "lists of values that are empty, or have an empty one; `catalog convert` leaves these out".to_owned()
        }
        Refused::NotAnObject => "arguments that are not an object; `catalog convert` leaves the tool out".to_owned(),
        Refused::InvalidSchema => {
            "an argument schema that is not valid; `catalog convert` leaves the tool out".to_owned()
        }
        Refused::TakesText => "a tool that takes a text; `catalog convert` leaves it out".to_owned(),
    }
}

fn print_diff(out: &mut dyn Write, report: &DiffReport) -> anyhow::Result<()> {
    let DiffReport { estimator, old_tokens, new_tokens, unchanged, namespaces } = report;
    if report.is_same() {
        writeln!(out, "the catalogs are the same: {}", counted(*unchanged, "item", "items"))?;
        return Ok(());
    }
    let sum =
        |list: fn(&contextweaver_core::catalog::NamespaceDiff) -> usize| namespaces.iter().map(list).sum::<usize>();
    writeln!(
        out,
        "{} added, {} removed, {} renamed, {} changed, {} unchanged",
        grouped(sum(|diff| diff.added.len())),
        grouped(sum(|diff| diff.removed.len())),
        grouped(sum(|diff| diff.renamed.len())),
        grouped(sum(|diff| diff.changed.len())),
        grouped(*unchanged)
    )?;
    let change = signed(*old_tokens, *new_tokens);
    let now = counted(*new_tokens, "token", "tokens");
    writeln!(out, "{} -> {now} ({estimator}), {change}", grouped(*old_tokens))?;
    for diff in namespaces {
        let mut table = Table::new([diff.namespace.as_str(), ""]);
        for Entry { id, kind, tokens } in &diff.added {
            table.row([format!("  + {id}"), cost(*kind, 0, *tokens)]);
        }
        for Entry { id, kind, tokens } in &diff.removed {
            table.row([format!("  - {id}"), cost(*kind, *tokens, 0)]);
        }
        writeln!(out)?;
        write!(out, "{}", table.plain())?;
        if let Some(version) = &diff.version {
            print_wrapped(out, "  ", &format!("version of the server: {}", describe_version(version)))?;
        }
        for (mark, list) in [("renamed from", &diff.renamed), ("its id was", &diff.changed)] {
            for changed in list {
                print_changed(out, mark, changed)?;
            }
        }
    }
    Ok(())
}

fn print_changed(out: &mut dyn Write, mark: &str, changed: &Changed) -> anyhow::Result<()> {
    let Changed { old, new, changes } = changed;
    let tokens = cost(new.kind, old.tokens, new.tokens);
    if old.id == new.id {
        writeln!(out, "  ~ {}  {tokens}", new.id)?;
    } else {
        writeln!(out, "  ~ {}  {tokens}\n      {mark} {}", new.id, old.id)?;
    }
    for change in changes {
        print_wrapped(out, "      ", &describe_change(change, new.kind))?;
    }
    Ok(())
}

fn describe_change(change: &Change, kind: Kind) -> String {
    match change {
        Change::Version(version) => format!("version: {}", describe_version(version)),
        Change::Description { old_tokens, new_tokens } => {
            let now = counted(*new_tokens, "token", "tokens");
            format!("description: reworded, {} -> {now}", grouped(*old_tokens))
        }
        Change::Property { name, property } => format!("argument {name:?}: {}", describe_property(property)),
        Change::ArgumentSchema => "argument schema: differs outside its properties".to_owned(),
        Change::ResultSchema => "result schema: differs".to_owned(),
        Change::Safety { old, new } => format!("safety: {} -> {}", safety_name(*old), safety_name(*new)),
        Change::Annotation { key, old, new } => {
            let value = |value: &Value| if value.is_null() { "absent".to_owned() } else { value.to_string() };
            format!("annotation {key:?}: {} -> {}", value(old), value(new))
        }
        Change::Member { key, members } if members.is_empty() => format!("{} {key:?}: differs", kind.name()),
        Change::Member { key, members } => format!("{} {key:?}: differs in {}", kind.name(), listed(members)),
    }
}

fn describe_version(VersionChange { old, new }: &VersionChange) -> String {
    let version = |version: &Option<String>| version.as_deref().map_or_else(|| "none".to_owned(), shown);
    format!("{} -> {}", version(old), version(new))
}

fn describe_property(change: &PropertyChange) -> String {
    let required = |required: &bool| if *required { "required" } else { "optional" };
    match change {
        PropertyChange::Added { required: now } => format!("new, {}", required(now)),
        PropertyChange::Removed { required: before } => format!("removed, was {}", required(before)),
        PropertyChange::Retyped { old, new } => format!("{old} -> {new}"),
        PropertyChange::BecameRequired => "optional -> required".to_owned(),
        PropertyChange::BecameOptional => "required -> optional".to_owned(),
        PropertyChange::Altered => "same type, changed in other ways".to_owned(),
    }
}

fn safety_name(safety: Safety) -> &'static str {
    safety.tag().unwrap_or("undeclared")
}

/// The columns within which text is wrapped.
const WIDTH: usize = 100;

/// Prints `text` after `label`, wrapped at words, with later lines indented below the first.
fn print_wrapped(out: &mut dyn Write, label: &str, text: &str) -> anyhow::Result<()> {
    let room = WIDTH - label.len();
    let indent = " ".repeat(label.len());
    let mut line = String::new();
    let mut before = label;
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            writeln!(out, "{before}{line}")?;
            (line, before) = (String::new(), &indent);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(out, "{before}{line}")?;
    Ok(())
}

/// How many tokens a prompt with all definitions takes more; nothing for what stands in no prompt.
fn cost(kind: Kind, old: usize, new: usize) -> String {
    if kind.is_callable() { signed(old, new) } else { String::new() }
}

/// A difference with its sign.
fn signed(old: usize, new: usize) -> String {
    if new < old { format!("-{}", grouped(old - new)) } else { format!("+{}", grouped(new - old)) }
}

fn share(part: usize, whole: usize) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * part as f64 / whole as f64) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: Command,
    }

    /// Runs a command line in which `@` stands for the folder with the files, and gives what it printed and found.
    fn ran(files: &[(&str, Value)], line: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        for (name, value) in files {
            std::fs::write(folder.path().join(name), value.to_string()).unwrap();
        }
        let path = folder.path().display().to_string();
        let line = Line::try_parse_from(format!("catalog {line}").replace('@', &path).split(' ')).unwrap();
        let mut printed = Vec::new();
        let outcome = run(&line.command, &mut printed);
        let printed = String::from_utf8(printed).unwrap().replace(&path, "@");
        assert!(printed.lines().all(|line| line.chars().count() <= WIDTH), "{printed}");
        match outcome {
            Ok(outcome) => format!("{printed}=> {outcome:?}"),
            Err(error) => format!("{printed}=> {}", error.to_string().replace(&path, "@")),
        }
    }

    fn files() -> Vec<(&'static str, Value)> {
        let old = json!({"server": "Git Hub", "tools": [
            {"name": "create_issue", "description": "Opens an issue", "annotations": {"readOnlyHint": false},
             "inputSchema": {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}, "state": {"type": "float"}}}},
            {"name": "wipe", "description": "Destroys everything", "annotations": {"destructiveHint": true}},
            {"name": "list", "description": "Lists what there is to be listed"}
        ], "prompts": [{"name": "sum_up"}]});
        let new = json!({"server": "Git Hub", "tools": [
            {"name": "create_issue", "description": "Opens an issue in a repository", "annotations": {"readOnlyHint": false},
             "inputSchema": {"type": "object", "required": ["title", "repo"], "properties": {"title": {"type": "string"}, "repo": {}, "state": {"type": "string"}}}},
            {"name": "clear", "description": "Destroys everything", "annotations": {"destructiveHint": true}},
            {"name": "close issue", "outputSchema": {"$ref": "#/$defs/issue"}},
            {"name": 7}
        ], "resources": [{"uri": "file:///readme.md"}]});
        vec![("new.json", new), ("old.json", old)]
    }

    #[test]
    fn inspect_shows_what_is_there() {
        insta::assert_snapshot!(ran(&files(), "inspect @/old.json @/new.json --top 2 --lenient"), @r"
        6 tools, 1 resource, 1 prompt in 1 namespace
        158 tokens (cl100k_base) to show a model every definition
        read as MCP (8 definitions in 2 files)

        namespace  tools  resources  prompts  tokens    share
        git-hub        6          1        1     158  100.0 %

        largest definitions            tokens   share
        git-hub:create_issue#63ef32b5      47  29.7 %
        git-hub:create_issue#c3178f65      38  24.1 %

        what definitions say                  count    share
        tools that declare to be read-only        0    0.0 %
        tools that declare to be destructive      2   33.3 %
        tools that declare neither                4   66.7 %
        tools with an argument schema             2   33.3 %
        tools with a result schema                1   16.7 %
        parameters, nested ones included          5  100.0 %
        parameters with a description             0    0.0 %

        left out: 1 file or tool
          @/new.json: tools[3]: `name` must be a string, not a number
        => Ok
        ");
        insta::assert_snapshot!(ran(&files(), "inspect @/new.json"), @"=> @/new.json: tools[3]: `name` must be a string, not a number; correct it, or leave it out with --lenient");
    }

    #[test]
    fn items_are_listed_by_what_they_are() {
        let tool = |name: &str, tags: Value, hint: &str| json!({"name": name, "description": "Does.", "server": "a", "tags": tags, "annotations": {hint: true}});
        let tools = json!([
            tool("get", json!(["net"]), "readOnlyHint"),
            tool("drop", json!(["db", "net", "\u{1b}[2J\nnet 9"]), "destructiveHint")
        ]);
        let files =
            [("a.json", json!({"tools": tools, "prompts": [{"name": "p", "server": "b", "description": "Asks."}]}))];
        let list = |options: &str| format!("$ list{options}\n{}\n", ran(&files, &format!("list @/a.json{options}")));
        let all = [
            "",
            " --tag net --no-destructive",
            " --kind prompt --kind resource",
            " --tags",
            " --tag nets",
            " --kind agent --tag net",
            " --namespace b --format json",
            " --namespace a --tags --format json",
        ];
        insta::assert_snapshot!(all.map(list).concat(), @r#"
        $ list
        [1/3] a:drop#a66c90f8 (tool) — Does. [[2J net 9, db, destructive, net]
        [2/3] a:get#40f19753 (tool) — Does. [net, read-only]
        [3/3] prompt::b:p#c758fcaa (prompt) — Asks.
        => Ok
        $ list --tag net --no-destructive
        [1/1] a:get#40f19753 (tool) — Does. [net, read-only]
        => Ok
        $ list --kind prompt --kind resource
        [1/1] prompt::b:p#c758fcaa (prompt) — Asks.
        => Ok
        $ list --tags
        tag               items
        net                   2
        \u{1b}[2J\nnet 9      1
        db                    1
        destructive           1
        read-only             1
        => Ok
        $ list --tag nets
        => no item has the tag `nets`; did you mean `net`?
        $ list --kind agent --tag net
        => --kind: none of the 2 items that the other options leave has the kind agent
        $ list --namespace b --format json
        {
          "schema_version": 1,
          "kind": "catalog list",
          "items": [
            {
              "id": "prompt::b:p#c758fcaa",
              "name": "p",
              "description": "Asks.",
              "tags": [],
              "kind": "prompt",
              "namespace": "b",
              "has_schema": false,
              "cost_hint": 0.0,
              "side_effects": false,
              "safety": ""
            }
          ],
          "left_out": []
        }
        => Ok
        $ list --namespace a --tags --format json
        {
          "schema_version": 1,
          "kind": "catalog list",
          "items": [
            {
              "tag": "net",
              "count": 2
            },
            {
              "tag": "\u001b[2J\nnet 9",
              "count": 1
            },
            {
              "tag": "db",
              "count": 1
            },
            {
              "tag": "destructive",
              "count": 1
            },
            {
              "tag": "read-only",
              "count": 1
            }
          ],
          "left_out": []
        }
        => Ok
        "#);
    }

    #[test]
    fn lint_shows_what_is_wrong() {
        insta::assert_snapshot!(ran(&files(), "lint @/new.json --lenient --min-severity note"), @r##"
        4 items: 1 error, 3 warnings, 1 note

        problem                          findings
        error    dangling reference             1
        warning  missing description            2
        warning  unusual name                   1
        note     undescribed parameters         1

        git-hub:close_issue#0b1e4775
          error    in the result schema "#/$defs/issue" at the root leads nowhere
          warning  has no description
          warning  the name "close issue" is not 1 to 128 letters, digits, `_`, `-` and `.`, as MCP
                   recommends

        resource::git-hub:file_readme.md#4b5415a9
          warning  has no description

        git-hub:create_issue#63ef32b5
          note     3 parameters have no description: title, repo, state

        left out: 1 file or tool
          @/new.json: tools[3]: `name` must be a string, not a number
        => Drift
        "##);
        insta::assert_snapshot!(ran(&files(), "lint @/new.json --lenient --min-severity error"), @r##"
        4 items: 1 error, 3 warnings, 1 note

        problem                          findings
        error    dangling reference             1
        warning  missing description            2
        warning  unusual name                   1
        note     undescribed parameters         1

        git-hub:close_issue#0b1e4775
          error    in the result schema "#/$defs/issue" at the root leads nowhere

        4 findings are not listed; --min-severity note lists all

        left out: 1 file or tool
          @/new.json: tools[3]: `name` must be a string, not a number
        => Drift
        "##);
        let fine = [("a.json", json!([{"name": "fine", "description": "Well"}]))];
        insta::assert_snapshot!(ran(&fine, "lint @/a.json --fail-on note"), @r"
        1 item: 0 errors, 0 warnings, 0 notes
        => Ok
        ");
        let refund = json!({"name": "refund", "namespace": "shop", "description": "Refunds an order", "depends_on": ["shop:find"], "requires": ["token", "user"]});
        let find = json!({"id": "shop:find@1", "name": "find", "namespace": "shop", "description": "Finds orders", "provides": ["token"]});
        let native = [("n.json", json!({"schema": 1, "items": [refund, find]}))];
        insta::assert_snapshot!(ran(&native, "lint @/n.json --min-severity note --fail-on warning"), @r"
        2 items: 0 errors, 1 warning, 1 note

        problem                       findings
        warning  unknown dependency          1
        note     provided by no item         1

        shop:refund#3ede86f7
          warning  depends on items that the catalog does not have: shop:find; correct or remove the ids in
                   `depends_on`
          note     no item provides what it requires: user; list it in `provides` of an item that does
        => Drift
        ");
        let nameless = [("a.json", json!([{"name": "x"}]))];
        assert!(ran(&nameless, "lint @/a.json").ends_with("=> Ok"));
        assert!(ran(&nameless, "lint @/a.json --fail-on warning").ends_with("=> Drift"));
    }

    #[test]
    fn diff_shows_what_changed() {
        insta::assert_snapshot!(ran(&files(), "diff @/old.json @/new.json --lenient"), @r#"
        2 added, 2 removed, 1 renamed, 1 changed, 0 unchanged
        78 -> 80 tokens (cl100k_base), +2

        git-hub
          + git-hub:close_issue#0b1e4775               +15
          + resource::git-hub:file_readme.md#4b5415a9
          - git-hub:list#8e99f625                      -22
          - prompt::git-hub:sum_up#d63830a3
          ~ git-hub:clear#742c5579  +0
              renamed from git-hub:wipe#bb6cf94e
          ~ git-hub:create_issue#63ef32b5  +9
              its id was git-hub:create_issue#c3178f65
              description: reworded, 3 -> 6 tokens
              argument "repo": new, required
              argument "state": float -> string

        left out: 1 file or tool
          @/new.json: tools[3]: `name` must be a string, not a number
        => Drift
        "#);
        insta::assert_snapshot!(ran(&files(), "diff @/old.json @/old.json"), @r"
        the catalogs are the same: 4 items
        => Ok
        ");
    }

    #[test]
    fn versions_are_shown_where_there_are_any() {
        let catalog = |server: &str, own: &str| {
            json!({"serverInfo": {"name": "Git", "version": server}, "tools": [
                {"name": "get", "description": "Gets", "version": own}, {"name": "put", "description": "Puts"},
                {"name": "x", "server": "other", "description": "Does"}
            ]})
        };
        let files = [("new.json", catalog("1.1", "2.1\u{202e}")), ("old.json", catalog("1.0", "2.0"))];
        let all = [
            "inspect @/old.json --top 0",
            "list @/new.json",
            "diff @/old.json @/new.json",
            "list @/old.json --namespace git --format json",
        ];
        insta::assert_snapshot!(all.map(|line| ran(&files, line)).join("\n"), @r#"
        3 tools in 2 namespaces
        49 tokens (cl100k_base) to show a model every definition
        read as MCP (3 definitions)

        namespace  tools  resources  prompts  tokens   share  version
        git            2          0        0      33  67.3 %      1.0
        other          1          0        0      16  32.7 %        -

        what definitions say                  count    share
        tools that declare to be read-only        0    0.0 %
        tools that declare to be destructive      0    0.0 %
        tools that declare neither                3  100.0 %
        tools with an argument schema             0    0.0 %
        tools with a result schema                0    0.0 %
        parameters, nested ones included          0        -
        parameters with a description             0        -
        tools with a version of their own         1   33.3 %
        => Ok
        [1/3] git:get#40f19753 (tool) — Gets | side-effects | version 2.1\u{202e}
        [2/3] git:put#738119e2 (tool) — Puts | side-effects
        [3/3] other:x#a32362d4 (tool) — Does | side-effects
        => Ok
        0 added, 0 removed, 0 renamed, 1 changed, 2 unchanged
        49 -> 49 tokens (cl100k_base), +0

        git
          version of the server: 1.0 -> 1.1
          ~ git:get#40f19753  +0
              version: 2.0 -> 2.1\u{202e}
        => Drift
        {
          "schema_version": 1,
          "kind": "catalog list",
          "items": [
            {
              "id": "git:get#40f19753",
              "name": "get",
              "description": "Gets",
              "tags": [],
              "kind": "tool",
              "namespace": "git",
              "has_schema": false,
              "cost_hint": 0.0,
              "side_effects": true,
              "safety": "",
              "version": "2.0",
              "server_version": "1.0"
            },
            {
              "id": "git:put#738119e2",
              "name": "put",
              "description": "Puts",
              "tags": [],
              "kind": "tool",
              "namespace": "git",
              "has_schema": false,
              "cost_hint": 0.0,
              "side_effects": true,
              "safety": "",
              "server_version": "1.0"
            }
          ],
          "left_out": []
        }
        => Ok
        "#);
    }

    #[test]
    fn one_is_not_many_and_names_stay_on_their_line() {
        let tool = |description: &str| json!([{"name": "a", "description": description}]);
        let line = |old: &str, new: &str| {
            let files = [("old.json", tool(old)), ("new.json", tool(new))];
            let printed = ran(&files, "diff @/old.json @/new.json");
            printed.lines().find(|line| line.contains("reworded")).unwrap_or_default().trim().to_owned()
        };
        assert_eq!(line("two words", "one"), "description: reworded, 2 -> 1 token");
        assert_eq!(line("one", "two words"), "description: reworded, 1 -> 2 tokens");
        let schema = json!({"type": "object", "properties": {"a\n\u{1b}[31m": {}}});
        let files = [("a.json", json!([{"name": "x", "description": "y", "inputSchema": schema}]))];
        let printed = ran(&files, "lint @/a.json --min-severity note");
        assert!(printed.contains("1 parameter has no description: a\\n\\u{1b}[31m"), "{printed}");
    }

    #[test]
    fn json_is_one_document() {
        let json = |line: &str| -> Value {
            let printed = ran(&files(), &format!("{line} --lenient --format json"));
            serde_json::from_str(printed.rsplit_once("=>").unwrap().0).unwrap()
        };
        let inspected = json("inspect @/new.json");
        assert_eq!((&inspected["items"], &inspected["estimator"]), (&json!(4), &json!("cl100k_base")));
        assert_eq!(inspected["left_out"][0]["place"], "@/new.json: tools[3]");
        assert_eq!(inspected["sources"], json!([{"path": "@/new.json", "format": "mcp", "definitions": 4}]));
        assert_eq!(json("lint @/new.json")["counts"], json!({"note": 1, "warning": 3, "error": 1}));
        assert_eq!(json("diff @/old.json @/new.json")["namespaces"][0]["renamed"][0]["new"]["kind"], "tool");
    }

    #[test]
    fn forms_are_named_and_unread_schemas_are_found() {
        let schema = json!({"type": "object", "properties": {"a": {"description": "A"}}});
        let files = [
            ("a.json", json!({"tools": [{"name": "x", "description": "y", "input_schema": schema}]})),
            (
                "b.json",
                json!([{"type": "function", "function": {"name": "z", "description": "w", "arguments": schema}}]),
            ),
        ];
        let inspected = ran(&files, "inspect @/a.json @/b.json @/a.json --lenient --top 0");
        let expected = "read as OpenAI chat completions (1 definition), Anthropic messages (2 definitions in 2 files)";
        assert_eq!(inspected.lines().nth(2), Some(expected), "{inspected}");
        insta::assert_snapshot!(ran(&files, "lint @/b.json"), @r"
        1 item: 1 error, 0 warnings, 0 notes

        problem                 findings
        error    unread schema         1

        mcp:z#5a1dce46
          error    no argument schema was found, but /arguments looks like one; docs/formats.md has the keys
                   that are read
        => Drift
        ");
    }

    #[test]
    fn catalogs_are_converted() {
        let tools = json!([
            {"name": "get", "server": "a", "description": "Gets", "inputSchema": {"type": "object"}},
            {"name": "get", "server": "b b", "description": "Gets", "tags": ["t"]},
        ]);
        let files = [("a.json", json!({"tools": tools, "prompts": [{"name": "p", "description": "d"}]}))];
        let to = |format: &str| ran(&files, &format!("convert @/a.json --to {format}"));
        for format in ["openai", "openai-responses", "anthropic", "gemini", "mcp", "weaver-spec", "native"] {
            let written = to(format);
            let (document, outcome) = written.rsplit_once("=> ").unwrap();
            assert_eq!(outcome, "Ok");
            assert!(serde_json::from_str::<Value>(document).is_ok_and(|value| !value.is_null()), "{written}");
        }
        insta::assert_snapshot!(to("anthropic"), @r#"
        [
          {
            "name": "a_get",
            "description": "Gets",
            "input_schema": {
              "type": "object"
            }
          },
          {
            "name": "b-b_get",
            "description": "Gets",
            "input_schema": {
              "type": "object",
              "properties": {}
            }
          }
        ]
        => Ok
        "#);
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(at("a.json"), tools.to_string()).unwrap();
        let line =
            format!("convert {} --to gemini --out {} --names {}", at("a.json"), at("out.json"), at("names.json"));
        assert_eq!(ran(&[], &line), "=> Ok");
        let read = |name: &str| -> Value { serde_json::from_slice(&std::fs::read(at(name)).unwrap()).unwrap() };
        assert_eq!(read("out.json")[0]["functionDeclarations"][1]["name"], "b-b_get");
        assert_eq!(read("names.json"), json!({"a_get": "a:get#40f19753", "b-b_get": "b-b:get#40f19753"}));
        let again = ran(&[], &format!("inspect {} --top 0", at("out.json")));
        assert!(again.contains("read as Gemini (2 definitions)"), "{again}");
    }

    #[test]
    fn numbers_are_grouped_and_text_is_wrapped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        let mut printed = Vec::new();
        print_wrapped(&mut printed, "  note  ", &"word ".repeat(40)).unwrap();
        let printed = String::from_utf8(printed).unwrap();
        assert_eq!(printed.lines().map(str::len).collect::<Vec<_>>(), [97, 97, 27]);
        assert!(printed.lines().skip(1).all(|line| line.starts_with("        word")));
    }
}
