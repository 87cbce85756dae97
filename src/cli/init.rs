//! `init`: the first files for what a reader has, and the first command.
//!
//! It writes into a new folder and nowhere else: the file of a client is changed by `mcp import --apply` alone. What is in the
//! files is made by the commands that own them, `mcp import`, `gold draft` and `bench init`; here they are put together.

use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};

use super::Outcome;
use super::bench::init::workspace;
use super::mcp::import;
use super::terminal::line;
use contextweaver_core::catalog::{LoadOptions, ToolFormat, load};
use contextweaver_core::files::folder_of;
use contextweaver_gateway::{Conversion, quoted};

/// The configuration of a gateway in the folder.
const GATEWAY: &str = "gateway.yaml";

/// What each file is for, in a line.
const PURPOSES: [(&str, &str); 6] = [
    (GATEWAY, "the servers of your clients, for a gateway in front of them"),
    ("catalog.json", "the definitions of your tools, as they were read"),
    ("queries.jsonl", "a query for each tool, to reword as your users would say it"),
    ("README.md", "how to measure with these files, and in CI"),
    ("gate.schema.json", "what editors use to complete gate.toml"),
    ("gate.toml", "what must hold: the least recall, the most tokens"),
];

/// Write the files for what you have: MCP clients, a list of tools, an OpenAPI document
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without flags, it asks questions on a terminal. All files go into a new folder; nothing else is changed, and
nothing is left behind when something fails. Then the first command is run: for clients `mcp doctor`,
which starts their servers; for tools `catalog inspect`.

Examples:
  contextweaver init
  contextweaver init my-gateway --clients
  contextweaver init my-tools --tools tools.json
  contextweaver init my-tools --tools server.py
  contextweaver init my-api --openapi openapi.yaml --no-run")]
pub(super) struct Args {
    /// The folder to make
    #[arg(value_name = "DIR", default_value = "contextweaver")]
    folder: PathBuf,
    /// Take the servers of the MCP clients on this machine, as `mcp import` finds them
    #[arg(long)]
    clients: bool,
    /// Take the servers from this client's file; may be repeated
    #[arg(long, value_name = "FILE")]
    client: Vec<PathBuf>,
    /// Take the tools of this file or folder, in any form that `catalog inspect` reads, or of the FastMCP server in this
    /// Python file, which `fastmcp inspect` then runs
    #[arg(long, value_name = "PATH", conflicts_with = "openapi")]
    tools: Option<PathBuf>,
    /// Take the operations of this OpenAPI document
    #[arg(long, value_name = "FILE")]
    openapi: Option<PathBuf>,
    /// Write the files without running anything
    #[arg(long)]
    no_run: bool,
}

/// What the reader has: one of the two at least.
#[derive(Debug, Default)]
struct Wishes {
    /// The servers of clients.
    servers: Option<Conversion>,
    /// A file or folder with tools.
    tools: Option<PathBuf>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let home = std::env::home_dir();
    let here = std::env::current_dir()?;
    refuse_taken(&args.folder)?;
    let named = args.clients || !args.client.is_empty() || args.tools.is_some() || args.openapi.is_some();
    let wishes = if named {
        of_flags(args, home.as_deref(), &here)?
    } else if io::stdin().is_terminal() {
        asked(&import::servers(&[], home.as_deref(), &here)?, &mut io::stdin().lock(), out)?
    } else {
        bail!("say what you have: --clients, --tools PATH or --openapi FILE; or run it on a terminal, where it asks");
    };
    let files = files(&args.folder, &wishes)?;
    write_all(&args.folder, &files)?;
    told(&args.folder, &files, out)?;
    if let (true, Some(servers)) = (named, &wishes.servers) {
        writeln!(out)?;
        import::print(out, servers)?;
    }
    follow(args, &wishes, out)
}

/// Refuses a folder with something in it, and what is not a folder.
fn refuse_taken(folder: &Path) -> Result<()> {
    let place = folder.display();
    let is_taken = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) if folder.symlink_metadata().is_ok() => bail!(
            "{place} is not a folder, and nothing is overwritten; name a new folder, and the file with a flag: contextweaver init \
             NEW --tools {0}, or --client {0} if it is a client's",
            quoted(&folder.to_string_lossy())
        ),
        Err(_) => false,
    };
    if is_taken {
        bail!("{place}: it already exists and is not empty, and nothing is overwritten; name a new folder");
    }
    Ok(())
}

fn of_flags(args: &Args, home: Option<&Path>, here: &Path) -> Result<Wishes> {
    let mut wishes = Wishes { servers: None, tools: args.tools.clone().or_else(|| args.openapi.clone()) };
    if args.clients || !args.client.is_empty() {
        let found = import::servers(&args.client, home, here)?;
        import::refuse_nothing(&found, &args.client)?;
        wishes.servers = Some(found);
    }
    if let Some(path) = &args.openapi {
        let sources = load(&[path], LoadOptions::default())?.sources;
        if let Some(other) = sources.iter().find(|source| source.format != ToolFormat::OpenApi) {
            bail!(
                "{}: this is not an OpenAPI document: it reads as {}; give it with --tools",
                path.display(),
                other.format
            );
        }
    }
    Ok(wishes)
}

/// Asks what there is; `found` are the servers of the clients on this machine.
fn asked(found: &Conversion, input: &mut dyn BufRead, out: &mut dyn Write) -> Result<Wishes> {
    let mut wishes = Wishes::default();
    if !found.servers.is_empty() {
        import::print(out, found)?;
        let takes = loop {
            match question(input, out, "Put a gateway in front of these servers? [Y/n]")?.to_lowercase().as_str() {
                "" | "y" | "yes" => break true,
                "n" | "no" => break false,
                _ => writeln!(out, "Please answer y or n.")?,
            }
        };
        if takes {
            wishes.servers = Some(found.clone());
        }
    }
    wishes.tools = loop {
        let answer = question(
            input,
            out,
            "A file or folder with tools, an OpenAPI document, or a FastMCP server in Python? (a path, or nothing)",
        )?;
        let path = PathBuf::from(&answer);
        match answer.is_empty() {
            true => break None,
            false if path.exists() => break Some(path),
            false => line(out, format_args!("there is no {}", path.display()))?,
        }
    };
    if wishes.servers.is_none() && wishes.tools.is_none() {
        bail!("there is nothing to start with; `contextweaver demo` shows what it does on built-in data");
    }
    Ok(wishes)
}

fn question(input: &mut dyn BufRead, out: &mut dyn Write, text: &str) -> Result<String> {
    write!(out, "{text} ")?;
    out.flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}

/// Every file, by name. All of it is made and checked before anything is written.
fn files(folder: &Path, wishes: &Wishes) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let mut files = Vec::new();
    if let Some(servers) = &wishes.servers {
        if servers.servers.is_empty() {
            let reasons: Vec<String> =
                servers.skipped.iter().map(|skipped| format!("{} ({})", skipped.name, skipped.reason)).collect();
            bail!("no server can be imported: {}; nothing was written", reasons.join(", "));
        }
        let text = servers.to_text(Path::new(GATEWAY)).context("the servers do not make a valid configuration")?;
        files.push((GATEWAY, text.into_bytes()));
    }
    match &wishes.tools {
        Some(server) if server.extension().is_some_and(|ending| ending == "py") => {
            let tools = inspected(server)?;
            files.extend(workspace(folder, tools.path(), None).with_context(|| server.display().to_string())?);
        }
        Some(tools) => files.extend(workspace(folder, tools, None)?),
        None => {}
    }
    Ok(files)
}

/// What FastMCP says of the server in a Python file, in a file of its own. It runs that file, as a client does that starts it.
fn inspected(server: &Path) -> Result<tempfile::NamedTempFile> {
    let said = tempfile::Builder::new().prefix("fastmcp-").suffix(".json").tempfile()?;
    let mut command = Command::new("fastmcp");
    command.arg("inspect").arg(server).args(["--format", "fastmcp", "--output"]).arg(said.path());
    let place = server.display();
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => anyhow!(
            "{place}: the tools of a Python file are read with `fastmcp inspect`, but there is no `fastmcp` on the PATH; \
             install it where the server runs (pip install fastmcp), or name a list of tools"
        ),
        _ => anyhow!("{place}: `fastmcp` cannot be started: {error}"),
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
        bail!("{place}: `fastmcp inspect` failed: {}", last.trim());
    }
    Ok(said)
}

/// Writes all files into a folder beside, and gives it its name: there are all of them, or none.
pub(super) fn write_all(folder: &Path, files: &[(&str, Vec<u8>)]) -> Result<()> {
    let parent = folder_of(folder);
    let place = || folder.display().to_string();
    fs::create_dir_all(parent).with_context(place)?;
    let beside = tempfile::Builder::new().prefix(".init-").tempdir_in(parent);
    // The name of the temporary folder would be the only one in the message.
    let beside = beside.map_err(|error| anyhow!("{}: it cannot be made there: {}", place(), error.kind()))?;
    // A temporary folder is for its owner alone; the one in it is like any other.
    let made = beside.path().join("made");
    fs::create_dir(&made).with_context(place)?;
    for (name, bytes) in files {
        fs::write(made.join(name), bytes).with_context(place)?;
    }
    fs::rename(&made, folder).with_context(place)
}

/// Says what each file is for.
fn told(folder: &Path, files: &[(&str, Vec<u8>)], out: &mut dyn Write) -> Result<()> {
    writeln!(out, "{}:", folder.display())?;
    let written = PURPOSES.iter().filter(|(name, _)| files.iter().any(|(file, _)| file == name));
    let width = written.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, purpose) in written {
        writeln!(out, "  {name:<width$}  {purpose}")?;
    }
    Ok(())
}

/// Runs the first command, and prints the next ones.
fn follow(args: &Args, wishes: &Wishes, out: &mut dyn Write) -> Result<Outcome> {
    let at = |name: &str| args.folder.join(name).display().to_string();
    let mut first: Vec<Vec<String>> = Vec::new();
    let mut next: Vec<String> = Vec::new();
    let words = |line: &[&str]| line.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    if wishes.servers.is_some() {
        let files: Vec<String> = args.client.iter().map(|file| file.display().to_string()).collect();
        // The variables of the servers are in their files, and a file that no client is known for is found by its name alone.
        let mut doctor = words(&["mcp", "doctor", "--config", &at(GATEWAY)]);
        doctor.extend(files.iter().flat_map(|file| ["--client".to_owned(), file.clone()]));
        first.push(doctor);
        // `doctor` says what comes next, which depends on what it finds.
        if args.no_run {
            let clients: String = files.iter().map(|file| format!(" --client {}", quoted(file))).collect();
            next.push(format!("mcp preview --config {}{clients}", quoted(&at(GATEWAY))));
            let named: String = files.iter().map(|file| format!("{} ", quoted(file))).collect();
            let target = quoted(&at(GATEWAY));
            next.push(format!("mcp import {named}--write {target} --apply    # puts the gateway in their place"));
        }
    }
    if wishes.tools.is_some() {
        first.push(words(&["catalog", "inspect", &at("catalog.json"), "--top", "3"]));
        next.push(format!("route --catalog {} \"what you want done\"", quoted(&at("catalog.json"))));
        next.push(format!(
            "bench run --root {}    # once {} is reviewed",
            quoted(&args.folder.display().to_string()),
            quoted(&at("queries.jsonl"))
        ));
    }
    if args.no_run {
        let left = first.drain(..).map(|command| command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
        next = left.chain(next).collect();
    }
    for command in first {
        let shown: Vec<String> = command.iter().map(|word| quoted(word)).collect();
        let line = format!("contextweaver {}", shown.join(" "));
        writeln!(out, "\n$ {line}")?;
        out.flush()?;
        let ran = super::run(std::iter::once("contextweaver".into()).chain(command.into_iter().map(Into::into)), out);
        // The files are there all the same, and what is wrong is said.
        if let Err(error) = ran {
            super::report(&error, std::iter::empty());
        }
    }
    if !next.is_empty() {
        writeln!(out, "\nnext:")?;
    }
    for line in next {
        writeln!(out, "  contextweaver {line}")?;
    }
    Ok(Outcome::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    const SERVERS: &str =
        r#"{"mcpServers": {"forge": {"command": "/nowhere/forge", "env": {"TOKEN": "s3cret-of-forge"}}}}"#;

    const TOOLS: &str = r#"[{"name": "read_log", "description": "Read the log of a job."}]"#;

    const OPENAPI: &str = r#"{"openapi": "3.1.0", "info": {"title": "Weather", "version": "1"}, "paths": {"/now": {"get":
        {"operationId": "getWeather", "summary": "Says the weather."}}}}"#;

    /// A folder with what a reader may have.
    fn place() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        for (name, text) in [("mcp.json", SERVERS), ("tools.json", TOOLS), ("api.json", OPENAPI), ("bad.json", "[{]")] {
            fs::write(place.path().join(name), text).unwrap();
        }
        place
    }

    /// Runs `init` with arguments in which `@` is the folder; it is `@` in what was printed too.
    fn init(place: &Path, arguments: &str) -> (Result<Outcome>, String) {
        let at = place.display().to_string();
        let words = ["contextweaver", "init"].into_iter().chain(arguments.split_whitespace());
        let mut out = Vec::new();
        let outcome = crate::cli::run(words.map(|word| word.replace('@', &at).into()), &mut out);
        (outcome, String::from_utf8(out).unwrap().replace(&at, "@"))
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = entries.collect();
        names.sort();
        names
    }

    #[test]
    fn tools_become_a_workspace_and_are_counted() {
        let place = place();
        let (outcome, shown) = init(place.path(), "@/new --tools @/tools.json");
        assert_eq!(outcome.unwrap(), Outcome::Ok);
        insta::assert_snapshot!(shown, @r#"
        @/new:
          catalog.json      the definitions of your tools, as they were read
          queries.jsonl     a query for each tool, to reword as your users would say it
          README.md         how to measure with these files, and in CI
          gate.schema.json  what editors use to complete gate.toml
          gate.toml         what must hold: the least recall, the most tokens

        $ contextweaver catalog inspect @/new/catalog.json --top 3
        1 tool in 1 namespace
        22 tokens (cl100k_base) to show a model every definition
        read as MCP (1 definition)

        namespace  tools  resources  prompts  tokens    share
        mcp            1          0        0      22  100.0 %

        largest definitions    tokens    share
        mcp:read_log#4699738b      22  100.0 %

        what definitions say                  count    share
        tools that declare to be read-only        0    0.0 %
        tools that declare to be destructive      0    0.0 %
        tools that declare neither                1  100.0 %
        tools with an argument schema             0    0.0 %
        tools with a result schema                0    0.0 %
        parameters, nested ones included          0        -
        parameters with a description             0        -

        next:
          contextweaver route --catalog @/new/catalog.json "what you want done"
          contextweaver bench run --root @/new    # once @/new/queries.jsonl is reviewed
        "#);
        assert_eq!(
            names(&place.path().join("new")),
            ["README.md", "catalog.json", "gate.schema.json", "gate.toml", "queries.jsonl"]
        );
        assert_eq!(fs::read_to_string(place.path().join("new/catalog.json")).unwrap(), TOOLS);
    }

    #[test]
    fn servers_become_a_gateway_without_their_secrets() {
        let place = place();
        let (outcome, shown) = init(place.path(), "@/new --client @/mcp.json --tools @/tools.json --no-run");
        assert_eq!(outcome.unwrap(), Outcome::Ok);
        insta::assert_snapshot!(shown, @r#"
        @/new:
          gateway.yaml      the servers of your clients, for a gateway in front of them
          catalog.json      the definitions of your tools, as they were read
          queries.jsonl     a query for each tool, to reword as your users would say it
          README.md         how to measure with these files, and in CI
          gate.schema.json  what editors use to complete gate.toml
          gate.toml         what must hold: the least recall, the most tokens

        forge (unknown client, @/mcp.json)
          /nowhere/forge TOKEN=***
          note: the value of `TOKEN` may be a secret: `mcp import --apply` moves it into the gateway's entry in the client's file; elsewhere, set TOKEN to it in the gateway's environment
        variables that the gateway needs: TOKEN

        next:
          contextweaver mcp doctor --config @/new/gateway.yaml --client @/mcp.json
          contextweaver catalog inspect @/new/catalog.json --top 3
          contextweaver mcp preview --config @/new/gateway.yaml --client @/mcp.json
          contextweaver mcp import @/mcp.json --write @/new/gateway.yaml --apply    # puts the gateway in their place
          contextweaver route --catalog @/new/catalog.json "what you want done"
          contextweaver bench run --root @/new    # once @/new/queries.jsonl is reviewed
        "#);
        let gateway = fs::read_to_string(place.path().join("new/gateway.yaml")).unwrap();
        assert!(gateway.contains("${env:TOKEN}") && !gateway.contains("s3cret"), "{gateway}");
        assert_eq!(fs::read_to_string(place.path().join("mcp.json")).unwrap(), SERVERS);
    }

    #[test]
    fn operations_become_tools() {
        let place = place();
        let (outcome, shown) = init(place.path(), "@/new --openapi @/api.json");
        assert_eq!(outcome.unwrap(), Outcome::Ok);
        assert!(shown.contains("read as OpenAPI (1 definition)"), "{shown}");
        let drafts = fs::read_to_string(place.path().join("new/queries.jsonl")).unwrap();
        assert!(drafts.contains("getWeather"), "{drafts}");
    }

    #[test]
    fn what_fails_leaves_nothing_and_what_is_there_stays() {
        let place = place();
        fs::create_dir(place.path().join("empty")).unwrap();
        let before = names(place.path());
        for (arguments, reason) in [
            ("@/new --tools @/bad.json", "bad.json"),
            ("@/new --tools @/none.json", "none.json"),
            ("@/new --client @/mcp.json --tools @/bad.json", "bad.json"),
            ("@/new --client @/none.json", "none.json"),
            ("@/new --openapi @/tools.json", "this is not an OpenAPI document"),
            ("@ --tools @/tools.json", "nothing is overwritten; name a new folder"),
            ("@/tools.json", "tools.json is not a folder, and nothing is overwritten"),
            ("@/tools.json --tools @/tools.json", "contextweaver init NEW --tools"),
            ("@/new --client @/tools.json", "it is no file of a client"),
        ] {
            let error = format!("{:#}", init(place.path(), arguments).0.unwrap_err());
            assert!(error.contains(reason), "{arguments}: {error}");
            assert_eq!(names(place.path()), before, "{arguments}");
        }
        // A folder that is there and empty is as good as none.
        init(place.path(), "@/empty --tools @/tools.json --no-run").0.unwrap();
        assert_eq!(names(place.path()), before);
        assert_eq!(names(&place.path().join("empty")).len(), 5);
    }

    #[test]
    fn answers_say_what_there_is() {
        let place = place();
        let found = import::servers(&[place.path().join("mcp.json")], None, place.path()).unwrap();
        let mut none = found.clone();
        none.servers.clear();
        for (found, answers, servers, tools) in [
            (&found, "\n\n", true, None),
            (&found, "y\n@/tools.json\n", true, Some("tools.json")),
            (&found, "No\n @/api.json \n", false, Some("api.json")),
            (&none, "@/tools.json", false, Some("tools.json")),
            // What is no answer, and what is not there, is asked again.
            (&found, "9\nyess\nn\n@/tool.json\n@/tools.json", false, Some("tools.json")),
        ] {
            let answers = answers.replace('@', &place.path().display().to_string());
            let wishes = asked(found, &mut Cursor::new(&answers), &mut Vec::new()).unwrap();
            assert_eq!(wishes.servers.is_some(), servers, "{answers:?}");
            assert_eq!(wishes.tools, tools.map(|name| place.path().join(name)), "{answers:?}");
        }
        for (found, answers) in [(&found, "n\n\n"), (&none, "")] {
            assert!(asked(found, &mut Cursor::new(answers), &mut Vec::new()).is_err(), "{answers:?}");
        }
    }
}
