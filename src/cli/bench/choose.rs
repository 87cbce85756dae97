//! `bench eval --choose`: what a model makes of the cards of the first engine.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;

use super::eval::{Absent, Role, named_command};
use crate::cli::files::writable;
use crate::cli::note;
use contextweaver_bench::eval::choosing::score::{ChoiceFacts, Compared, Share, Tally, score};
use contextweaver_bench::eval::choosing::transcript::Record;
use contextweaver_bench::eval::choosing::{Answers, Asking, FORMS, MOST_CARDS, Put, Questions, transcript};
use contextweaver_bench::eval::collection::Collection;
use contextweaver_bench::eval::process::choose::Chooser;
use contextweaver_bench::eval::process::{Limits, ProcessEngine, ProcessError};
use contextweaver_bench::eval::record::Estimate;
use contextweaver_bench::eval::run::{Evaluation, PROMPT_CARDS};
use contextweaver_bench::own::words::code;
use contextweaver_bench::report::number::{count, difference, fixed, interval, share, standing};
use contextweaver_bench::report::table::Table;
use contextweaver_core::catalog::ToolFormat;
use contextweaver_core::files::{WriteError, replace_file};
use contextweaver_core::sync::lock;

/// The heading of the options here in the help.
const HEADING: &str = "A model in the loop";

/// Seconds that an answer of a model may take where nothing else is said.
const TIMEOUT: u64 = 60;

/// A program that chooses among the cards of the first engine
#[derive(Debug, Args)]
pub(super) struct ChooseArgs {
    /// A program that chooses one of the cards that the first engine shows for each query, or none, by the protocol of
    /// docs/engines.md; may be repeated
    #[arg(long, value_name = "NAME=COMMAND", help_heading = HEADING, value_parser = named_command)]
    choose: Vec<(String, String)>,
    /// Cards to show it for each query, 1 to 100 [default: 10]
    #[arg(long, value_name = "N", help_heading = HEADING, value_parser = cards, requires = "choose")]
    cards: Option<usize>,
    /// Also give it the definitions of these tools, as the list that goes into a request: openai, openai-responses,
    /// anthropic, gemini or mcp
    #[arg(long, value_name = "FORMAT", help_heading = HEADING, value_parser = form, requires = "choose")]
    choose_as: Option<ToolFormat>,
    /// Pass it this environment variable, e.g. a key; may be repeated
    #[arg(long, value_name = "VARIABLE", help_heading = HEADING, requires = "choose")]
    choose_env: Vec<String>,
    /// Seconds to wait for each of its answers [default: 60]
    #[arg(long, value_name = "SECONDS", help_heading = HEADING, value_parser = clap::value_parser!(u64).range(1..=3600), requires = "choose")]
    choose_timeout: Option<u64>,
    /// Write what it was asked and what it said, as JSON lines
    #[arg(long, value_name = "FILE", help_heading = HEADING, requires = "choose")]
    record: Option<PathBuf>,
    /// Score what --record wrote: the same figures, without running the program
    // With `choose` alone, clap would no longer ask the others for the `choose` that they require.
    #[arg(long, value_name = "FILE", help_heading = HEADING,
        conflicts_with_all = ["choose", "cards", "choose_as", "choose_env", "choose_timeout", "record"])]
    replay: Option<PathBuf>,
}

/// A number of cards.
fn cards(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST_CARDS).contains(number));
    number.ok_or_else(|| format!("it is not a number from 1 to {MOST_CARDS}"))
}

/// A form of definitions.
fn form(text: &str) -> Result<ToolFormat, String> {
    let found = FORMS.into_iter().find(|format| format.key() == text);
    found.ok_or_else(|| format!("use one of {}", FORMS.map(ToolFormat::key).join(", ")))
}

/// Where answers of a run go that ended too early: beside the file of `--record`, which keeps what it had.
pub(super) fn partial(record: &Path) -> PathBuf {
    let mut name = record.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

impl ChooseArgs {
    /// Whether a program is started.
    pub(super) fn starts(&self) -> bool {
        !self.choose.is_empty()
    }

    /// Whether there is anything to score.
    pub(super) fn is_asked(&self) -> bool {
        self.starts() || self.replay.is_some()
    }

    /// The file that is written.
    pub(super) fn record(&self) -> Option<&PathBuf> {
        self.record.as_ref()
    }

    /// The file that is read.
    pub(super) fn replay(&self) -> Option<&PathBuf> {
        self.replay.as_ref()
    }

    /// Refuses what cannot be done before anything is measured.
    ///
    /// # Errors
    /// Two programs of one name, a variable that is not set, or a file that cannot be written.
    pub(super) fn check(&self) -> Result<()> {
        let mut seen = BTreeSet::new();
        if let Some((name, _)) = self.choose.iter().find(|(name, _)| !seen.insert(name)) {
            bail!("--choose names `{name}` twice; give each program a name of its own");
        }
        if let Some(name) = self.choose_env.iter().find(|name| std::env::var_os(name).is_none()) {
            bail!("--choose-env {name}: this environment variable is not set; set it, or leave out the option");
        }
        self.record.as_deref().map_or(Ok(()), |path| writable("--record", path))
    }
}

/// What programs chose.
#[derive(Default)]
pub(super) struct Choices {
    pub(super) chosen: Vec<Chosen>,
    pub(super) absent: Vec<Absent>,
}

/// The file of `--record`, and what was said so far: a signal finds it here.
static RECORD: OnceLock<(PathBuf, Mutex<Record>)> = OnceLock::new();

/// How often a signal looks whether what was said is being written, and how long between.
const LOOKS: usize = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// Writes what was said to the file of `--record`, and beside it; nothing without the option.
///
/// # Errors
/// The first file that could not be written.
pub(super) fn keep() -> Result<(), WriteError> {
    let Some((path, record)) = RECORD.get() else { return Ok(()) };
    let mut record = lock(record);
    let kept = write(path, &record);
    // A signal that comes later has nothing left to write.
    *record = Record::default();
    kept
}

/// The same before this process ends at a signal, with the answers of the run that goes on. Who would add to it waits until the
/// process has ended.
pub(super) fn keep_at_a_signal() {
    let Some((path, record)) = RECORD.get() else { return };
    // A pipe has one reader, for what is written in the end, and may have none yet.
    if path.metadata().is_ok_and(|about| !about.is_file()) {
        return;
    }
    let free = (0..LOOKS).find_map(|_| {
        let free = record.try_lock().ok();
        if free.is_none() {
            std::thread::sleep(PAUSE);
        }
        free
    });
    let Some(record) = free else { return };
    match write(path, &record) {
        Err(error) => note(&format!("--record: the answers could not be saved: {error}")),
        Ok(()) if record.part().is_empty() => {}
        Ok(()) => note(&format!("the answers so far were saved to {}", partial(path).display())),
    }
    std::mem::forget(record);
}

fn write(path: &Path, record: &Record) -> Result<(), WriteError> {
    let write = |path: &Path, text: &str| if text.is_empty() { Ok(()) } else { replace_file(path, text.as_bytes()) };
    let whole = write(path, record.whole());
    write(&partial(path), &record.part()).and(whole)
}

/// What one program chose.
#[derive(Debug, Serialize)]
pub(super) struct Chosen {
    /// The name under which it was asked.
    chooser: String,
    /// What it calls itself.
    program: String,
    version: String,
    /// The engine whose cards it was shown.
    engine: String,
    /// Cards at most.
    cards: usize,
    /// The form of the definitions beside them.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    tools_as: Option<ToolFormat>,
    facts: ChoiceFacts,
}

/// Asks every program, or reads what was recorded of it.
///
/// # Errors
/// A transcript that does not belong to these questions. A program that gives nothing is among the absent.
pub(super) fn choices(
    args: &ChooseArgs,
    hidden: &[PathBuf],
    collection: &Collection,
    engine: &str,
    evaluation: &Evaluation,
) -> Result<Choices> {
    let mut choices = Choices::default();
    if let Some(path) = &args.replay {
        let file = File::open(path);
        let file = file.with_context(|| format!("--replay {}: name a file that --record wrote", path.display()))?;
        for (questions, answers) in transcript::read(path, BufReader::new(file), collection, &evaluation.rankings)? {
            choices.chosen.push(chosen(engine, &questions, answers)?);
        }
        return Ok(choices);
    }
    let asking = Asking { cards: args.cards.unwrap_or(PROMPT_CARDS), tools_as: args.choose_as };
    let questions = Questions::of(collection, &evaluation.rankings, asking)?;
    let limits = Limits { route: Duration::from_secs(args.choose_timeout.unwrap_or(TIMEOUT)), ..Limits::default() };
    let record = args.record.as_ref().map(|path| &RECORD.get_or_init(|| (path.clone(), Mutex::default())).1);
    for (name, command) in &args.choose {
        let put = || -> Result<Put, ProcessError> {
            let command = ProcessEngine::parse(command)?.command;
            let variables = args.choose_env.clone();
            let program = Chooser { command, hidden: hidden.to_vec(), variables, limits };
            let put = questions.put(name, &program, record)?;
            note(&format!("{name}: {}", put.hiding.sentence()));
            Ok(put)
        };
        match put() {
            Ok(put) => choices.add(name, args.record.as_deref(), engine, &questions, put)?,
            Err(error) => choices.absent.push(Absent::of(name, Role::Chooser, &error)),
        }
    }
    Ok(choices)
}

impl Choices {
    /// Adds the run of a program: its figures where every question has an answer, and why it ended where it ended badly.
    fn add(
        &mut self,
        name: &str,
        record: Option<&Path>,
        engine: &str,
        questions: &Questions<'_>,
        put: Put,
    ) -> Result<()> {
        let Put { answers, ended, .. } = put;
        let asked = questions.asked().count();
        let said = asked - questions.unanswered(&answers).count();
        if let Err(error) = ended {
            let (said_of, asked_of) = (count(said), count(asked));
            let but = match record {
                _ if said == 0 => String::new(),
                _ if said == asked => "; every question had been answered".to_owned(),
                Some(path) => {
                    format!("; {said_of} of {asked_of} answers are kept in {}", partial(path).display())
                }
                None => format!("; {said_of} of {asked_of} questions were answered, and --record keeps such answers"),
            };
            self.absent.push(Absent::of(name, Role::Chooser, &error).but(&but));
        }
        if said == asked {
            self.chosen.push(chosen(engine, questions, answers)?);
        }
        Ok(())
    }
}

fn chosen(engine: &str, questions: &Questions<'_>, answers: Answers) -> Result<Chosen> {
    let facts = score(questions, &answers)?;
    let Answers { chooser, program, version, asking, .. } = answers;
    let Asking { cards, tools_as } = asking;
    Ok(Chosen { chooser, program, version, engine: engine.to_owned(), cards, tools_as, facts })
}

impl Chosen {
    /// The figures for a terminal.
    pub(super) fn text(&self) -> String {
        let Self { chooser, program, version, .. } = self;
        let mut text = format!("chooser: {chooser} ({program} {version})\n{}\n\n", self.shown(&self.engine));
        let _ = write!(text, "{}\n{}\n", self.shares().plain(), self.counts().plain());
        let mut figures = Table::new(["", ""]).words(&[""]);
        for (name, value) in self.figures() {
            figures.row([name.to_owned(), value]);
        }
        text + figures.plain().trim_start_matches('\n')
    }

    /// The same as Markdown.
    pub(super) fn markdown(&self) -> String {
        let (chooser, shown) = (code(&self.chooser), self.shown(&code(&self.engine)));
        let about = code(&format!("{} {}", self.program, self.version));
        let mut text = format!("{chooser} ({about}), {shown}.\n\n");
        let _ = write!(text, "{}\n{}\n", self.shares().markdown(), self.counts().markdown());
        for (name, value) in self.figures() {
            let _ = writeln!(text, "- {name}: {value}");
        }
        text
    }

    /// What it was shown.
    fn shown(&self, engine: &str) -> String {
        let cards = if self.cards == 1 { "card".to_owned() } else { format!("{} cards", count(self.cards)) };
        let beside = self.tools_as.map_or_else(String::new, |format| format!(", with definitions for {format}"));
        format!("shown the first {cards} of {engine}{beside}")
    }

    /// The shares with their intervals, and what the controls have of the same queries.
    fn shares(&self) -> Table {
        let facts = &self.facts;
        let mut table = Table::new(["", "queries", "mean", "95 % interval", "first card", "random card"]);
        let mut row = |name: &str, queries: usize, estimate: &Estimate, controls: [String; 2]| {
            let front = [name.to_owned(), count(queries), share(estimate.mean), interval(estimate)];
            table.row(front.into_iter().chain(controls));
        };
        for (name, one) in [("right", &facts.right), ("right where a right tool was shown", &facts.right_where_shown)] {
            if let Some(Compared { queries, chosen, first_card, random_card }) = one {
                row(name, *queries, chosen, [share(first_card.mean), share(random_card.mean)]);
            }
        }
        for (name, one) in [
            ("none where no tool answers", &facts.none_where_no_tool_answers),
            ("none where a right tool was shown", &facts.none_where_shown),
        ] {
            if let Some(Share { queries, share }) = one {
                row(name, *queries, share, [String::new(), String::new()]);
            }
        }
        table
    }

    /// What was said, by what was right to say.
    fn counts(&self) -> Table {
        let mut table = Table::new(["", "queries", "right", "wrong", "none", "not shown", "invalid"]);
        let counts = &self.facts.counts;
        for (name, tally) in [
            ("a right tool was shown", &counts.shown),
            ("a tool answers, not shown", &counts.not_shown),
            ("no tool answers", &counts.no_tool_answers),
        ] {
            let Tally { queries, right, wrong, none, not_shown, invalid } = *tally;
            let cells = [queries, right, wrong, none, not_shown, invalid].map(count);
            table.row([name.to_owned()].into_iter().chain(cells));
        }
        table
    }

    fn figures(&self) -> Vec<(&'static str, String)> {
        let ChoiceFacts { asked, repaired, tokens, answers, versus_first_card, .. } = &self.facts;
        let mut figures = Vec::new();
        if let Some(one) = versus_first_card {
            figures.push((
                "difference",
                format!("{} from {}: {}", difference(&one.difference), one.control, standing(one)),
            ));
        }
        figures.push(("repaired", format!("{} of {} answers", count(*repaired), count(*asked))));
        let (mean, cards) = (fixed(tokens.prompt_mean, 0), fixed(tokens.cards_mean, 0));
        let beside = tokens.tools_mean.map_or_else(String::new, |mean| format!("; definitions {}", fixed(mean, 0)));
        let most = count(tokens.prompt_max);
        let name = &tokens.estimator;
        figures.push(("tokens", format!("a question {mean}, at most {most}; of that cards {cards}{beside} ({name})")));
        let [median, late] = [answers.p50_us, answers.p95_us].map(|us| fixed(us as f64 / 1000.0, 1));
        figures.push(("time", format!("an answer {median} ms, 95th percentile {late} ms")));
        figures
    }
}
