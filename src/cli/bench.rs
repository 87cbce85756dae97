//! `bench`: run the matrix, show it, check it, and measure anybody's own files.

mod accept;
mod cells;
mod check;
mod check_engine;
mod choose;
mod compare;
mod engine;
mod eval;
mod feedback;
mod fidelity;
mod growth;
pub(in crate::cli) mod init;
mod own;
mod rot;
mod run;
mod sweep;

pub(in crate::cli) use eval::threshold;

#[cfg(unix)]
use std::io::IsTerminal;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use serde::Serialize;

use super::files::{Files, is_stream};
use super::{Format, Outcome, print_json};
use contextweaver_bench::eval::engine::Engine;
use contextweaver_bench::eval::files::replace_file;
use contextweaver_bench::eval::gateway::case::Source;
use contextweaver_bench::eval::matrix::Case;
use contextweaver_bench::eval::process::end_all;
use contextweaver_bench::eval::workspace::{Bench, Scope, Workspace};
use contextweaver_bench::own::Home;
use contextweaver_bench::scorecard;

/// Run, show and check the benchmark
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a workspace for your own catalog: its gate, its queries, and how to run it in CI
    #[command(after_help = init::EXAMPLE)]
    Init(init::InitArgs),
    /// Run the matrix and write the scorecard; in a workspace, measure your catalog and judge it
    #[command(after_help = run::EXAMPLE)]
    Run(run::RunArgs),
    /// Print the cells of a run, one JSON object per line
    #[command(after_help = cells::CELLS_EXAMPLE)]
    Cells(cells::CellsArgs),
    /// Compute the cells read from standard input, and write one result line each to standard output
    #[command(after_help = cells::CELL_EXAMPLE)]
    Cell(cells::CellArgs),
    /// Merge cells that were computed elsewhere, and write the scorecard
    #[command(after_help = cells::MERGE_EXAMPLE)]
    Merge(cells::MergeArgs),
    /// Render the pages again from the committed results
    #[command(
        after_help = "Examples:\n  contextweaver bench render\n  contextweaver bench render --html --out report.html"
    )]
    Render(RenderArgs),
    /// Compute the results again and compare: if anything moved, show the first differences and exit with 1
    #[command(after_help = check::EXAMPLE)]
    Check(check::CheckArgs),
    /// Accept a recorded table as it is, by noting its digest
    #[command(after_help = accept::EXAMPLE)]
    Accept(accept::AcceptArgs),
    /// List cases, their engines and what they show
    #[command(after_help = "Example:\n  contextweaver bench list --format json")]
    List(ListArgs),
    /// Measure engines on your own catalog and queries, and gate on the result
    #[command(after_help = eval::EXAMPLE)]
    Eval(Box<eval::EvalArgs>),
    /// Answer queries over standard input and output, by the protocol of docs/engines.md
    #[command(after_help = engine::EXAMPLE)]
    Engine(engine::EngineArgs),
    /// Check your own engine rule by rule, before it is measured
    #[command(name = "check-engine", after_help = check_engine::EXAMPLE)]
    CheckEngine(check_engine::CheckEngineArgs),
    /// Measure what learning from feedback gains, and what wrong feedback costs
    #[command(after_help = feedback::EXAMPLE)]
    Feedback(feedback::FeedbackArgs),
    /// Measure how cost grows with the catalog, up to a million tools
    #[command(after_help = growth::EXAMPLE)]
    Growth(growth::GrowthArgs),
    /// Measure how much of large results survives in their summaries
    #[command(after_help = fidelity::EXAMPLE)]
    Fidelity(fidelity::FidelityArgs),
    /// Try a grid of configurations and show the ones that nothing beats
    #[command(after_help = sweep::EXAMPLE)]
    Sweep(sweep::SweepArgs),
    /// Compare two results, engines or configurations, with a verdict
    #[command(after_help = compare::EXAMPLE)]
    Compare(compare::CompareArgs),
    /// Grow your own catalog with distractors and see how much recall is left
    #[command(after_help = rot::EXAMPLE)]
    Rot(rot::RotArgs),
}

/// Where the checkout or the workspace is, and the public collections
#[derive(Debug, Args)]
pub(super) struct Place {
    /// The contextweaver checkout, or the workspace of `bench init` [default: here or above]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// The folder of public collections [default: ../shared/data/gold beside the checkout]
    #[arg(long, value_name = "DIR")]
    public: Option<PathBuf>,
}

impl Place {
    /// A checkout or a workspace of one's own.
    fn home(&self) -> Result<Home> {
        Home::find(self.root.as_deref(), self.public.as_deref())
    }

    fn workspace(&self) -> Result<Workspace> {
        Workspace::find(self.root.as_deref(), self.public.as_deref())
    }

    fn bench(&self, scope: Scope) -> Result<Bench> {
        Bench::open(self.workspace()?, scope)
    }
}

/// Whether everything is measured
#[derive(Debug, Clone, Copy, Default, Args)]
pub(super) struct Everything {
    /// Compute every record, including those that take minutes, and fail if one cannot be computed here
    #[arg(long)]
    all: bool,
    /// Also compute the records that take minutes, and keep those that cannot be computed here
    #[arg(long, conflicts_with = "all")]
    large: bool,
}

impl Everything {
    fn scope(self) -> Scope {
        match self {
            Self { all: true, .. } => Scope::All,
            Self { large: true, .. } => Scope::Large,
            Self { .. } => Scope::Usual,
        }
    }
}

/// Refuses options that mean nothing in a workspace of one's own: those of `given` that are set.
fn refuse_in_workspace(given: &[(&str, bool)]) -> Result<()> {
    match given.iter().find(|(_, set)| *set) {
        Some((option, _)) => bail!("{option} is for a contextweaver checkout; this is a workspace of your own"),
        None => Ok(()),
    }
}

/// From now on, a signal to end ends the engines of others as well, and removes the folders that were made for them: they
/// are not part of the group of processes that a terminal interrupts. `last` is done after that.
fn end_engines_at_a_signal(last: impl FnOnce() + Send + 'static) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = {
        // Signals are taken from here on, and not only when the thread runs.
        let _entered = runtime.enter();
        ending()?
    };
    std::thread::spawn(move || {
        let code = runtime.block_on(code);
        end_all();
        last();
        std::process::exit(code);
    });
    Ok(())
}

/// Waits for a signal to end; the exit code by which shells know it.
#[cfg(unix)]
fn ending() -> Result<impl Future<Output = i32> + Send> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hangup = ends_at_a_hangup().then(|| signal(SignalKind::hangup())).transpose()?;
    Ok(async move {
        let hung_up = async {
            match &mut hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = hung_up => 128 + SignalKind::hangup().as_raw_value(),
            _ = interrupt.recv() => 128 + SignalKind::interrupt().as_raw_value(),
            _ = terminate.recv() => 128 + SignalKind::terminate().as_raw_value(),
        }
    })
}

/// Whether a terminal that closes ends this program, as it does unless `nohup` started it, which has the signal ignored. Only
/// Linux says which signals are; elsewhere it is told by the output, which `nohup` leaves on no terminal.
#[cfg(unix)]
fn ends_at_a_hangup() -> bool {
    let ignored = |status: String| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
        Some(u64::from_str_radix(mask.trim(), 16).ok()? & 1 == 1)
    };
    match std::fs::read_to_string("/proc/self/status").ok().and_then(ignored) {
        Some(is_ignored) => !is_ignored,
        None => std::io::stderr().is_terminal(),
    }
}

/// Waits for a signal to end; the exit code by which shells know it.
#[cfg(not(unix))]
fn ending() -> Result<impl Future<Output = i32> + Send> {
    Ok(async {
        // Without it there is nothing to wait for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        130
    })
}

#[derive(Debug, Args)]
pub(super) struct RenderArgs {
    #[command(flatten)]
    place: Place,
    /// Write one HTML file instead, with every query of the embedded collections and what each engine ranks for it
    #[arg(long)]
    html: bool,
    /// Where the HTML file goes
    #[arg(long, value_name = "FILE", requires = "html", default_value = "report.html")]
    out: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    place: Place,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(command: &Command, out: &mut dyn Write) -> Result<Outcome> {
    match command {
        Command::Init(args) => init::run(args, out),
        Command::Run(args) => run::run(args, out),
        Command::Cells(args) => cells::cells(args, out),
        Command::Cell(args) => cells::cell(args, out),
        Command::Merge(args) => cells::merge(args, out),
        Command::Render(args) => render(args, out),
        Command::Check(args) => check::run(args, out),
        Command::Accept(args) => accept::run(args, out),
        Command::List(args) => list(args, out),
        Command::Eval(args) => eval::run(args, out),
        Command::Engine(args) => engine::run(args, out),
        Command::CheckEngine(args) => check_engine::run(args, out),
        Command::Feedback(args) => feedback::run(args, out),
        Command::Growth(args) => growth::run(args, out),
        Command::Fidelity(args) => fidelity::run(args, out),
        Command::Sweep(args) => sweep::run(args, out),
        Command::Compare(args) => compare::run(args, out),
        Command::Rot(args) => rot::run(args, out),
    }
}

fn render(args: &RenderArgs, out: &mut dyn Write) -> Result<Outcome> {
    let workspace = args.place.workspace()?;
    if args.html {
        let results = workspace.path("scorecard/results");
        let file = Some(&args.out).filter(|path| !is_stream(path));
        Files::default().read("the scorecard", [results]).page(file).check()?;
    }
    let paths: Vec<String> = if args.html {
        let bar = run::progress(0);
        let report = scorecard::html(workspace, &|what| bar.set_message(what.to_owned()))?;
        bar.finish_and_clear();
        if is_stream(&args.out) {
            out.write_all(report.as_bytes())?;
            return Ok(Outcome::Ok);
        }
        replace_file(&args.out, report.as_bytes())?;
        vec![args.out.display().to_string()]
    } else {
        scorecard::render(&workspace)?.into_iter().map(|page| page.path).collect()
    };
    match args.format {
        Format::Json => print_json(out, "bench render", &paths)?,
        Format::Text => writeln!(out, "wrote {}", paths.join("\nwrote "))?,
    }
    Ok(Outcome::Ok)
}

#[derive(Serialize)]
struct CaseLine<'a> {
    case: &'a str,
    scenario: &'a str,
    origin: contextweaver_bench::eval::record::Origin,
    engines: &'a [String],
    present: bool,
}

fn list(args: &ListArgs, out: &mut dyn Write) -> Result<Outcome> {
    let workspace = args.place.workspace()?;
    let matrix = workspace.matrix()?;
    let scenarios = [workspace.scenarios()?, workspace.ways()?].concat();
    let gateway = workspace.gateway().cases()?;
    let gateway_ids: Vec<String> = gateway.iter().map(contextweaver_bench::eval::gateway::case::Case::id).collect();
    let line = |case: &'_ Case| workspace.is_present(case);
    if args.format == Format::Json {
        let mut lines: Vec<CaseLine> = matrix
            .cases
            .iter()
            .map(|case| CaseLine {
                case: &case.id,
                scenario: &case.scenario,
                origin: case.origin,
                engines: &case.engines,
                present: line(case),
            })
            .collect();
        lines.extend(scenarios.iter().map(|scenario| CaseLine {
            case: &scenario.name,
            scenario: "context",
            origin: scenario.origin,
            engines: &[],
            present: workspace.has_scenario(scenario),
        }));
        lines.extend(gateway.iter().zip(&gateway_ids).map(|(case, id)| CaseLine {
            case: id,
            scenario: "gateway",
            origin: case.origin,
            engines: &[],
            present: case.is_here(),
        }));
        print_json(out, "bench list", &lines)?;
        return Ok(Outcome::Ok);
    }
    writeln!(out, "Engines")?;
    for spec in &matrix.engines {
        writeln!(out, "  {}: {}", spec.engine.name(), spec.analysis)?;
    }
    if !matrix.rivals.is_empty() {
        writeln!(out, "\nPrograms, with `bench run --engines`")?;
    }
    for rival in &matrix.rivals {
        writeln!(out, "  {}: {}", rival.name, rival.analysis)?;
    }
    for (scenario, analysis) in &matrix.scenarios {
        writeln!(out, "\n{scenario}\n  {}", analysis.trim().replace('\n', "\n  "))?;
        for case in matrix.cases.iter().filter(|case| case.scenario == *scenario) {
            let absent = if line(case) { "" } else { "  (not here)" };
            writeln!(out, "    {:<34} {}{absent}", case.id, case.engines.join(" "))?;
        }
    }
    if !scenarios.is_empty() {
        writeln!(out, "\nContext scenarios")?;
    }
    for scenario in &scenarios {
        let absent = if workspace.has_scenario(scenario) { "" } else { "  (not here)" };
        writeln!(out, "  {}{absent}\n    {}", scenario.name, scenario.analysis.replace('\n', "\n    "))?;
    }
    if !gateway.is_empty() {
        writeln!(out, "\nGateway")?;
    }
    for (case, id) in gateway.iter().zip(&gateway_ids) {
        let absent = if case.is_here() { "" } else { "  (not here)" };
        writeln!(out, "  {id}{absent}")?;
        if let Source::Scenario(scenario, _) = &case.source {
            writeln!(out, "    {}", scenario.analysis.replace('\n', "\n    "))?;
        }
    }
    Ok(Outcome::Ok)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_report_takes_the_place_of_nothing_but_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        std::fs::write(&key, "secret").unwrap();
        let out = key.to_str().unwrap();
        let words = ["contextweaver", "bench", "render", "--root", env!("CARGO_MANIFEST_DIR"), "--html", "--out", out];
        let error = crate::cli::run(words.iter().map(Into::into), &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("would write over a file that is not an HTML page"), "{error}");
        assert_eq!(std::fs::read_to_string(&key).unwrap(), "secret");
    }
}
