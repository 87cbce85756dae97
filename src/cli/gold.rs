//! `gold list | audit | seal | grow | draft | sources | fetch | build`: the test collections.
//!
//! Collections are read, audited and grown by [`contextweaver_bench::eval`]; here the results are put into words and columns that
//! fit 100 columns.

mod draft;
mod public;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};

use super::files::{Files, is_stream, shown, words_about};
use super::{Format, Outcome, counted, print_json};
use contextweaver_bench::eval::audit::{
    Ambiguity, Audit, DISCORDANT_SHARE, SIMILAR_QUERIES, SIMILAR_TOOLS, Spread, audit,
};
use contextweaver_bench::eval::collection::{ABOUT_FILE, About, CATALOG_FILE, Collection, QUERIES_FILE, Sealed, seal};
use contextweaver_bench::eval::files::replace_file;
use contextweaver_bench::eval::growth::{SEED, grown_files};
use contextweaver_bench::eval::record::{Grade, Growth, Origin};
use contextweaver_bench::report::markup::visible;
use contextweaver_bench::report::number::short_share;

/// Lists, checks, grows and gets test collections.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the collections of this project
    List(ListArgs),
    /// Report coverage, overlap with the tools' words, doubtful labels and the power of a collection
    Audit(AuditArgs),
    /// Write counts and hashes of a collection into its collection.toml
    Seal(SealArgs),
    /// Write a collection's catalog with distractors added
    Grow(GrowArgs),
    /// Propose queries from recorded sessions and definitions, for a person to correct
    Draft(draft::DraftArgs),
    /// List public collections with their licences, or say where one comes from
    Sources(public::SourcesArgs),
    /// Download the published files that public collections are made from
    Fetch(public::FetchArgs),
    /// Make public collections from downloaded files
    Build(public::BuildArgs),
}

/// Where the collections are.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// The folder with one subfolder per collection
    #[arg(long, default_value = "gold", value_name = "DIR")]
    gold: PathBuf,
}

/// The arguments of `gold list`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  contextweaver gold list")]
pub(super) struct ListArgs {
    /// Where the collections are.
    #[command(flatten)]
    place: Place,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The arguments of `gold audit`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  contextweaver gold audit\n  contextweaver gold audit workbench --format json\n  \
                        contextweaver gold audit ../data/gold/toolbench\n\nEverything listed is for a person to \
                        decide: labels are compared as texts, no engine is run.")]
pub(super) struct AuditArgs {
    /// Collections of this project by name, or folders with catalog.json and queries.jsonl; all when none is given
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// How many doubtful labels and near-duplicates to list; JSON lists all
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,
    /// Where the collections are.
    #[command(flatten)]
    place: Place,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The arguments of `gold seal`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  contextweaver gold seal workbench\n\nRun it after an intended change to the catalog or \
                        the queries. The prose in collection.toml is kept."
)]
pub(super) struct SealArgs {
    /// The collection
    #[arg(value_name = "NAME")]
    name: String,
    /// Where the collections are.
    #[command(flatten)]
    place: Place,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The arguments of `gold grow`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  contextweaver gold grow workbench --grade near_duplicate --size 1000 --out \
                        grown.json --queries-out grown.jsonl\n\nThe same seed gives the same bytes.")]
pub(super) struct GrowArgs {
    /// The collection
    #[arg(value_name = "NAME")]
    name: String,
    /// What the added tools are like: unrelated, sibling, near_duplicate, keyword_stuffed, mixed or copies
    #[arg(long)]
    grade: Grade,
    /// The number of tools after growth
    #[arg(long, value_name = "N")]
    size: usize,
    /// Chooses the core of the catalog and the added tools
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Where to write the catalog; `-` is standard output
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Where to write the queries that stay the same at every size
    #[arg(long, value_name = "FILE")]
    queries_out: Option<PathBuf>,
    /// Where the collections are.
    #[command(flatten)]
    place: Place,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Runs one of the commands and prints its result to `out`.
///
/// # Errors
/// When a collection cannot be loaded, grown or written, or `out` cannot be written.
pub(super) fn run(command: &Command, out: &mut dyn Write) -> anyhow::Result<Outcome> {
    match command {
        Command::List(args) => list(args, out)?,
        Command::Audit(args) => run_audit(args, out)?,
        Command::Seal(args) => run_seal(args, out)?,
        Command::Grow(args) => grow(args, out)?,
        Command::Draft(args) => draft::run(args, out)?,
        Command::Sources(args) => public::sources(args, out)?,
        Command::Fetch(args) => public::fetch(args, out)?,
        Command::Build(args) => public::build(args, out)?,
    }
    Ok(Outcome::Ok)
}

/// The folders below `gold` that hold a catalog, by name.
fn folders(gold: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(gold)
        .with_context(|| format!("{}: no collections there; name their folder with --gold", gold.display()))?;
    let mut folders = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.join(CATALOG_FILE).is_file() {
            folders.push(path);
        }
    }
    folders.sort_unstable();
    Ok(folders)
}

/// The folder that a name stands for, and who wrote what is in it.
fn find(gold: &Path, name: &str) -> anyhow::Result<(PathBuf, Origin)> {
    let own = gold.join(name);
    if own.join(CATALOG_FILE).is_file() && !name.contains(['/', '\\']) {
        return Ok((own, Origin::Embedded));
    }
    let elsewhere = PathBuf::from(name);
    if elsewhere.join(CATALOG_FILE).is_file() {
        return Ok((elsewhere, Origin::Public));
    }
    let known: Vec<String> =
        folders(gold)?.iter().filter_map(|folder| Some(folder.file_name()?.to_string_lossy().into_owned())).collect();
    bail!(
        "no collection `{name}`: {} holds {}, and no folder of that path holds {CATALOG_FILE}",
        gold.display(),
        known.join(", ")
    )
}

fn list(args: &ListArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut abouts: Vec<About> = Vec::new();
    for folder in folders(&args.place.gold)? {
        abouts.extend(Collection::load(&folder, Origin::Embedded)?.about);
    }
    if args.format == Format::Json {
        return print_json(out, "gold list", &abouts);
    }
    let width =
        |pick: fn(&About) -> &String, least| abouts.iter().map(|about| pick(about).len()).fold(least, usize::max);
    let (first, last) = (width(|about| &about.name, 4), width(|about| &about.licence, 7));
    let heading = format!("{:>5} {:>10} {:>7} {:>4}", "tools", "namespaces", "queries", "none");
    writeln!(out, "{:<first$} {heading} {:<last$} title", "name", "licence")?;
    for About { name, title, licence, counts, .. } in &abouts {
        let numbers =
            format!("{:>5} {:>10} {:>7} {:>4}", counts.tools, counts.namespaces, counts.queries, counts.unanswerable);
        writeln!(out, "{name:<first$} {numbers} {licence:<last$} {title}")?;
    }
    Ok(())
}

fn run_audit(args: &AuditArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let chosen: Vec<(PathBuf, Origin)> = if args.names.is_empty() {
        folders(&args.place.gold)?.into_iter().map(|folder| (folder, Origin::Embedded)).collect()
    } else {
        args.names.iter().map(|name| find(&args.place.gold, name)).collect::<anyhow::Result<_>>()?
    };
    let mut audits = Vec::with_capacity(chosen.len());
    for (folder, origin) in chosen {
        audits.push(audit(&Collection::load(&folder, origin)?));
    }
    if args.format == Format::Json {
        return print_json(out, "gold audit", &audits);
    }
    for (index, one) in audits.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        print_audit(one, args.top, out)?;
    }
    Ok(())
}

fn print_audit(found: &Audit, top: usize, out: &mut dyn Write) -> anyhow::Result<()> {
    let counts = &found.counts;
    writeln!(out, "{}", visible(&found.name))?;
    let row =
        |out: &mut dyn Write, label: &str, text: String| writeln!(out, "  {:<18} {}", visible(label), visible(&text));
    let further = match (counts.resources, counts.prompts) {
        (0, 0) => String::new(),
        (resources, prompts) => {
            format!(", besides {} and {}", counted(resources, "resource"), counted(prompts, "prompt"))
        }
    };
    row(out, "tools", format!("{} in {}{further}", counts.tools, counted(counts.namespaces, "namespace")))?;
    row(
        out,
        "queries",
        format!(
            "{}, of which {} have an answer and {} have none",
            counts.queries, counts.answerable, counts.unanswerable
        ),
    )?;
    row(out, "tools needed", enumerated(&found.by_tools_needed))?;
    row(out, "registers", enumerated(&found.by_register))?;
    row(out, "languages", enumerated(&found.by_language))?;
    match found.coverage.uncovered.as_slice() {
        [] => row(out, "coverage", "every tool is needed by a query".to_owned())?,
        tools => {
            row(out, "coverage", format!("{} tools are needed by no query", tools.len()))?;
            for tool in tools.iter().take(top) {
                row(out, "", tool.clone())?;
            }
        }
    }
    row(out, "queries per tool", in_words(&found.coverage.queries_per_tool, 1))?;
    row(out, "lexical overlap", in_words(&found.overlap.all, 3))?;
    for (register, spread) in &found.overlap.by_register {
        row(out, &format!("  {register}"), in_words(spread, 3))?;
    }
    writeln!(out, "  {:<18} (share of a query's terms that its tools' names or descriptions hold)", "")?;
    row(
        out,
        "near-duplicates",
        format!("{} pairs of queries with Jaccard ≥ {SIMILAR_QUERIES}", found.near_duplicates.len()),
    )?;
    for pair in found.near_duplicates.iter().take(top) {
        row(out, "", format!("{} and {} ({})", pair.first, pair.second, short_share(pair.similarity)))?;
    }
    row(
        out,
        "doubtful labels",
        format!(
            "{} (unlisted tools with Jaccard ≥ {SIMILAR_TOOLS}, or like queries labelled unlike)",
            found.ambiguous.len()
        ),
    )?;
    for label in found.ambiguous.iter().take(top) {
        let text = match label {
            Ambiguity::UnlistedNeighbour { query, tool, neighbour, similarity } => {
                format!("{query}: {tool} is an answer, {neighbour} ({}) is not", short_share(*similarity))
            }
            Ambiguity::DifferentLabels { queries } => {
                format!(
                    "{} and {} ({}) have different answers",
                    queries.first,
                    queries.second,
                    short_share(queries.similarity)
                )
            }
        };
        row(out, "", text)?;
    }
    match found.power.detectable_difference {
        None => row(out, "power", "none: no query has an answer".to_owned())?,
        Some(difference) => {
            row(out, "power", format!("a recall difference of {difference:.3} is found with 80 % probability"))?;
            let disagreeing = DISCORDANT_SHARE * 100.0;
            let assumed =
                format!("{} queries, engines assumed to disagree on {disagreeing:.0} % of them", found.power.queries);
            row(out, "", format!("(two-sided 5 %, {assumed})"))?;
        }
    }
    Ok(())
}

fn enumerated<K: std::fmt::Display>(counts: &BTreeMap<K, usize>) -> String {
    counts.iter().map(|(key, count)| format!("{key} {count}")).collect::<Vec<_>>().join(", ")
}

fn in_words(spread: &Spread, digits: usize) -> String {
    let Spread { mean, q1, median, q3, .. } = spread;
    format!("mean {mean:.digits$}, quartiles {q1:.digits$} {median:.digits$} {q3:.digits$}")
}

fn run_seal(args: &SealArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let (folder, _) = find(&args.place.gold, &args.name)?;
    let (about, sealed) = seal(&folder)?;
    if args.format == Format::Json {
        return print_json(out, "gold seal", &about);
    }
    match sealed {
        Sealed::Unchanged => writeln!(out, "{}: already sealed", about.name)?,
        Sealed::Written => {
            let counts = about.counts;
            writeln!(out, "{}: sealed with {} tools and {} queries", about.name, counts.tools, counts.queries)?;
        }
    }
    Ok(())
}

fn grow(args: &GrowArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let (folder, origin) = find(&args.place.gold, &args.name)?;
    let own = [CATALOG_FILE, QUERIES_FILE, ABOUT_FILE].map(|name| folder.join(name));
    let places = Files::default().read("NAME", own).written("--out", [&args.out]);
    places.written("--queries-out", &args.queries_out).check()?;
    let base = Collection::load(&folder, origin)?;
    let files = grown_files(&base, Growth { grade: args.grade, size: args.size }, args.seed)?;
    // The queries first: a catalog that is there means that both are.
    if let Some(path) = &args.queries_out {
        replace_file(path, files.queries.as_bytes())?;
    }
    match is_stream(&args.out) {
        true => out.write_all(files.catalog.as_bytes())?,
        false => replace_file(&args.out, files.catalog.as_bytes())?,
    }
    let mut words = io::stderr();
    let out = words_about(&args.out, out, &mut words);
    let queries = files.queries.lines().count();
    if args.format == Format::Json {
        let result = serde_json::json!({
            "collection": base.name, "grade": args.grade, "seed": args.seed, "tools": args.size, "queries": queries,
            "catalog_file": args.out, "queries_file": args.queries_out,
        });
        return print_json(out, "gold grow", &result);
    }
    writeln!(
        out,
        "{}: {} tools; {queries} of the {} queries of {} stay",
        shown(&args.out, "standard output"),
        args.size,
        base.queries.len(),
        base.name
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: Command,
    }

    fn gold() -> String {
        format!("{}/gold", env!("CARGO_MANIFEST_DIR"))
    }

    fn output(words: &[&str]) -> anyhow::Result<String> {
        let gold = gold();
        let place = ["--gold", gold.as_str()];
        let words = ["gold"].iter().chain(words).chain(&place).copied();
        let mut out = Vec::new();
        assert_eq!(run(&Line::try_parse_from(words)?.command, &mut out)?, Outcome::Ok);
        Ok(String::from_utf8(out)?)
    }

    #[test]
    fn lists_fit_a_terminal() {
        let text = output(&["list"]).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.lines().count() >= 3 && text.contains("workbench") && text.contains("household"), "{text}");
    }

    #[test]
    fn an_audit_reads_as_text_and_as_json() {
        insta::assert_snapshot!(output(&["audit", "household"]).unwrap(), @r"
        household
          tools              97 in 12 namespaces
          queries            234, of which 202 have an answer and 32 have none
          tools needed       0 32, 1 152, 2 43, 3 6, 4 1
          registers          chatty 45, foreign 32, plain 93, terse 46, typo 18
          languages          de 5, en 202, es 3, fr 5, ja 5, ko 3, pt 3, ru 3, zh 5
          coverage           every tool is needed by a query
          queries per tool   mean 2.7, quartiles 2.0 3.0 3.0
          lexical overlap    mean 0.228, quartiles 0.085 0.200 0.333
            chatty           mean 0.220, quartiles 0.140 0.200 0.302
            foreign          mean 0.010, quartiles 0.000 0.000 0.000
            plain            mean 0.263, quartiles 0.167 0.250 0.369
            terse            mean 0.370, quartiles 0.250 0.333 0.500
            typo             mean 0.106, quartiles 0.000 0.097 0.143
                             (share of a query's terms that its tools' names or descriptions hold)
          near-duplicates    0 pairs of queries with Jaccard ≥ 0.8
          doubtful labels    0 (unlisted tools with Jaccard ≥ 0.6, or like queries labelled unlike)
          power              a recall difference of 0.088 is found with 80 % probability
                             (two-sided 5 %, 202 queries, engines assumed to disagree on 20 % of them)
        ");
        let json: serde_json::Value = serde_json::from_str(&output(&["audit", "--format", "json"]).unwrap()).unwrap();
        assert_eq!(json["items"].as_array().map(Vec::len), Some(4));
        let library = output(&["audit", "library"]).unwrap();
        assert!(library.contains("75 in 9 namespaces, besides 50 resources and 33 prompts"), "{library}");
    }

    #[test]
    fn an_audit_of_others_cannot_act_on_a_terminal() {
        let folder = tempfile::tempdir().unwrap();
        let tools = r#"[{"name": "a"}, {"name": "b"}]"#;
        let queries =
            r#"{"id": "q\u001b[2J", "query": "x", "relevant": ["b"], "register": "r\u001b[31m", "lang": "e\u001bn"}"#;
        std::fs::write(folder.path().join("catalog.json"), tools).unwrap();
        std::fs::write(folder.path().join("queries.jsonl"), queries).unwrap();
        let text = output(&["audit", folder.path().to_str().unwrap()]).unwrap();
        assert!(text.contains("r [31m") && !text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn a_grown_catalog_is_written_with_its_queries() {
        let folder = tempfile::tempdir().unwrap();
        let (tools, queries) = (folder.path().join("tools.json"), folder.path().join("queries.jsonl"));
        let (tools, queries) = (tools.to_str().unwrap(), queries.to_str().unwrap());
        let words =
            ["grow", "household", "--grade", "mixed", "--size", "120", "--out", tools, "--queries-out", queries];
        let text = output(&words).unwrap();
        assert!(text.contains("120 tools"), "{text}");
        let grown = Collection::from_files("grown", Origin::Public, Path::new(tools), Path::new(queries)).unwrap();
        assert_eq!(grown.catalog.len(), 120);
    }

    #[test]
    fn what_does_not_exist_is_named() {
        let message = |words: &[&str]| output(words).unwrap_err().to_string();
        assert!(message(&["audit", "garage"]).contains("no collection `garage`"), "{}", message(&["audit", "garage"]));
        let grade = message(&["grow", "household", "--grade", "silly", "--size", "60", "--out", "x"]);
        assert!(grade.contains("near_duplicate"), "{grade}");
        let nowhere = ["grow", "household", "--grade", "mixed", "--size", "60", "--out", "/no/such/folder/x.json"];
        assert!(message(&nowhere).contains("/no/such/folder/x.json: not written"), "{}", message(&nowhere));
    }
}
