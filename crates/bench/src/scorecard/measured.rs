//! What the chapters gave on this machine, and how it goes together with what is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use serde::Serialize;

use super::cells::{Batch, CellResult, Store, Work};
use super::files;
use crate::chapter::{Absent, AnyChapter, Fresh, Plan, Planned, Recordings, Step};
use crate::chapters::CHAPTERS;
use crate::eval::machine;
use crate::eval::workspace::{Bench, Scope, Workspace};
use crate::results::{Day, Provenance, Record, Results, State};

/// What the chapters gave on this machine.
#[derive(Debug)]
pub struct Measured {
    pub(super) chapters: Vec<MeasuredChapter>,
}

#[derive(Debug)]
pub(super) struct MeasuredChapter {
    pub(super) name: &'static str,
    pub(super) plans: Vec<Plan>,
    /// By results file and case.
    fresh: BTreeMap<(String, String), Fresh>,
}

/// What was planned of a record, and what was measured of it.
pub(super) struct Row<'m> {
    pub(super) planned: &'m Planned,
    pub(super) fresh: Option<&'m Fresh>,
}

/// How a run goes: what it shares with others, and how long it may take.
#[derive(Clone, Copy)]
pub struct Course<'c> {
    /// Where cells are stored; nowhere without one.
    pub store: Option<&'c Store>,
    /// When no more cells are begun.
    pub until: Option<Instant>,
    /// Is told what is measured, before and after.
    pub watch: &'c dyn Watch,
}

/// Is told how a run goes, from any thread.
pub trait Watch: Sync {
    /// There are so many cells, which take about so many milliseconds on one core.
    fn begins(&self, cells: usize, cost_ms: u64) {
        let _ = (cells, cost_ms);
    }

    /// A few words before every piece of work.
    fn step(&self, what: &str);

    /// So many cells are done that were thought to take so long.
    fn done(&self, cells: usize, cost_ms: u64) {
        let _ = (cells, cost_ms);
    }
}

impl<F: Fn(&str) + Sync> Watch for F {
    fn step(&self, what: &str) {
        self(what);
    }
}

impl Measured {
    /// Measures every chapter.
    ///
    /// # Errors
    /// Inputs that cannot be read.
    pub fn of(bench: &Bench, step: Step<'_>) -> Result<Self> {
        let watch = |what: &str| step(what);
        Self::by(&Work::of(bench)?, Course { store: None, until: None, watch: &watch })
    }

    /// Measures one chapter.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn chapter(chapter: &'static dyn AnyChapter, bench: &Bench, step: Step<'_>) -> Result<Self> {
        let watch = |what: &str| step(what);
        Self::by(&Work::of_chapters(&[chapter], bench)?, Course { store: None, until: None, watch: &watch })
    }

    /// Measures what is planned, in a course.
    ///
    /// # Errors
    /// As [`Self::of`], and a store that cannot be read or written.
    pub fn by(work: &Work<'_>, course: Course<'_>) -> Result<Self> {
        let Done { fresh, left_out } = measure(work, work.batches(), course)?;
        Ok(Self::put_together(work, fresh, &left_out))
    }

    /// Takes what was stored and answered of the plan.
    ///
    /// # Errors
    /// A store that cannot be read, or cells of which nothing is known; the message names the first of them.
    pub fn merged(work: &Work<'_>, stores: &[Store], answers: &BTreeMap<String, CellResult>) -> Result<Self> {
        let (mut fresh, mut missing) = (Vec::new(), Vec::new());
        for cell in work.batches().into_iter().map(|batch| work.cells(batch)).collect::<Result<Vec<_>>>()?.concat() {
            let stored = stores.iter().find_map(|store| store.read(&cell).transpose()).transpose()?;
            let answered = || answers.get(&cell.key()).map(|answer| answer.outcome.clone());
            match stored.or_else(answered) {
                Some(outcome) => fresh.push(cell.fresh(outcome)),
                None => missing.push(cell.label()),
            }
        }
        let first = missing.first().map(String::as_str).unwrap_or_default();
        ensure!(
            missing.is_empty(),
            "{} cells are missing or damaged, the first is {first}; compute them with `contextweaver bench run --shard` or \
             `contextweaver bench cell`",
            missing.len()
        );
        Ok(Self::put_together(work, fresh, &[]))
    }

    fn put_together(work: &Work<'_>, fresh: Vec<Fresh>, left_out: &[&Batch]) -> Self {
        let mut by_cell: BTreeMap<(String, String), Fresh> =
            fresh.into_iter().map(|fresh| ((fresh.results.clone(), fresh.case.clone()), fresh)).collect();
        let mut chapter = |(name, plans): &(&'static str, Vec<Plan>)| {
            let mut plans = plans.clone();
            let mut own = BTreeMap::new();
            for plan in &mut plans {
                for planned in &mut plan.cases {
                    let cell = (plan.name.clone(), planned.case.clone());
                    if let Some(fresh) = by_cell.remove(&cell) {
                        own.insert(cell, fresh);
                    } else if left_out.iter().any(|batch| batch.has(&plan.name, &planned.case)) {
                        planned.absent = Some(Absent::OutOfTime);
                    }
                }
            }
            MeasuredChapter { name, plans, fresh: own }
        };
        Self { chapters: work.plans.iter().map(&mut chapter).collect() }
    }

    /// What was measured, with the records that could not be, kept from those that are committed in `workspace`. Measured
    /// records that are committed with the same facts, version and inputs keep their day; others are recorded on `day`.
    ///
    /// # Errors
    /// A results file of which a record is to be kept and that is damaged.
    pub fn recordings(&self, workspace: &Workspace, day: &Day) -> Result<Recordings> {
        let mut all = Recordings::default();
        for chapter in &self.chapters {
            let results = chapter.plans.iter().map(|plan| {
                let committed = chapter.committed(plan, workspace)?;
                Ok(chapter.merged(plan, committed.as_ref(), day, &workspace.path("")))
            });
            all.0.insert(chapter.name, results.collect::<Result<_>>()?);
        }
        Ok(all)
    }

    /// What was not measured, in the order of the chapters.
    #[must_use]
    pub fn unmeasured(&self) -> Vec<Unmeasured> {
        unmeasured(self.chapters.iter().flat_map(|chapter| &chapter.plans))
    }

    /// Records that were neither measured nor are among `recordings`, each with its results file.
    #[must_use]
    pub fn missing(&self, recordings: &Recordings) -> Vec<String> {
        let plans = self.chapters.iter().flat_map(|chapter| chapter.plans.iter().map(move |plan| (chapter, plan)));
        let of_plan = |(chapter, plan): (&MeasuredChapter, &Plan)| {
            let results = recordings.of(chapter.name).iter().find(|results| results.name == plan.name);
            let is_there = |case: &str| results.is_some_and(|results| find(results, case).is_some());
            let is_gap = |planned: &&Planned| planned.absent.as_ref().is_none_or(Absent::is_gap);
            let missing = plan.cases.iter().filter(is_gap).filter(|planned| !is_there(&planned.case));
            missing.map(|planned| format!("{} · {}", plan.name, planned.case)).collect::<Vec<_>>()
        };
        plans.flat_map(of_plan).collect()
    }

    /// How many records there are, and how many of them were measured.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let all = self.chapters.iter().flat_map(|chapter| &chapter.plans).map(|plan| plan.cases.len()).sum();
        (all, self.chapters.iter().map(|chapter| chapter.fresh.len()).sum())
    }
}

/// What was measured, and what was not for want of time.
struct Done<'w> {
    fresh: Vec<Fresh>,
    left_out: Vec<&'w Batch>,
}

/// Measures and stores some of the batches; what was left out comes back, for want of time.
///
/// # Errors
/// As [`Measured::by`].
pub fn share<'w>(work: &Work<'_>, batches: Vec<&'w Batch>, course: Course<'_>) -> Result<Vec<&'w Batch>> {
    Ok(measure(work, batches, course)?.left_out)
}

fn measure<'w>(work: &Work<'_>, mut batches: Vec<&'w Batch>, course: Course<'_>) -> Result<Done<'w>> {
    let Course { store, until, watch } = course;
    watch.begins(batches.iter().map(|batch| batch.len()).sum(), batches.iter().map(|batch| batch.cost_ms).sum());
    // The longest are begun first, so that no core waits for one of them in the end; with little time, the cheapest.
    batches.sort_by_key(|batch| if until.is_some() { batch.cost_ms } else { u64::MAX - batch.cost_ms });
    let run = |batch: &'w Batch| {
        if until.is_some_and(|until| Instant::now() >= until) {
            return Ok(Err(batch));
        }
        let fresh = work.measure(batch, store, &|what| watch.step(what))?;
        watch.done(batch.len(), batch.cost_ms);
        Ok(Ok(fresh))
    };
    // One after the other, in this order.
    let ran = batches.into_iter().par_bridge().map(run).collect::<Result<Vec<_>>>()?;
    let mut done = Done { fresh: Vec::new(), left_out: Vec::new() };
    for one in ran {
        match one {
            Ok(fresh) => done.fresh.extend(fresh),
            Err(batch) => done.left_out.push(batch),
        }
    }
    // Put back in order: which of two failing ends first is chance, and so is the order of what is left out.
    done.left_out.sort_by_key(|batch| batch.label());
    Ok(done)
}

/// What each of `chapters` has to measure.
pub(super) fn plans(chapters: &[&'static dyn AnyChapter], bench: &Bench) -> Result<Vec<Vec<Plan>>> {
    let mut names = BTreeSet::new();
    for name in CHAPTERS.into_iter().flat_map(|chapter| chapter.files(&bench.matrix)) {
        ensure!(names.insert(name.clone()), "an engine and a chapter are called `{name}`; rename the engine");
    }
    chapters.iter().map(|chapter| chapter.plan(bench)).collect()
}

/// How many records of a results file are not measured for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmeasured {
    /// The name of the results file.
    pub results: String,
    /// How many records of it are not measured for this reason.
    pub records: usize,
    /// Why they are not, in words.
    pub reason: String,
}

impl Display for Unmeasured {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} ({})", self.results, self.records, self.reason)
    }
}

fn unmeasured<'p>(plans: impl IntoIterator<Item = &'p Plan>) -> Vec<Unmeasured> {
    let mut all = Vec::new();
    for plan in plans {
        let mut reasons: BTreeMap<&Absent, usize> = BTreeMap::new();
        for reason in plan.cases.iter().filter_map(|planned| planned.absent.as_ref()).filter(|one| one.is_gap()) {
            *reasons.entry(reason).or_default() += 1;
        }
        all.extend(reasons.into_iter().map(|(reason, records)| Unmeasured {
            results: plan.name.clone(),
            records,
            reason: reason.to_string(),
        }));
    }
    all
}

/// Refuses to go on where everything is asked for and something cannot be measured, before minutes are spent.
///
/// # Errors
/// What cannot be measured, by results file.
pub(super) fn require_all(bench: &Bench) -> Result<()> {
    if bench.scope != Scope::All {
        return Ok(());
    }
    let missing: Vec<String> =
        unmeasured(plans(&CHAPTERS, bench)?.iter().flatten()).iter().map(ToString::to_string).collect();
    ensure!(
        missing.is_empty(),
        "not everything can be measured here, as --all requires: {}; leave --all out to keep these records",
        missing.join(", ")
    );
    Ok(())
}

impl MeasuredChapter {
    pub(super) fn rows<'m>(&'m self, plan: &'m Plan) -> impl Iterator<Item = Row<'m>> {
        plan.cases
            .iter()
            .map(|planned| Row { planned, fresh: self.fresh.get(&(plan.name.clone(), planned.case.clone())) })
    }

    /// The committed results of a plan; without those that are damaged where none of them is needed.
    fn committed(&self, plan: &Plan, workspace: &Workspace) -> Result<Option<Results>> {
        let chapter = crate::chapters::find(self.name).with_context(|| format!("no chapter `{}`", self.name))?;
        match files::read(chapter, &plan.name, workspace) {
            Err(_) if self.rows(plan).all(|row| row.fresh.is_some()) => Ok(None),
            committed => committed,
        }
    }

    fn merged(&self, plan: &Plan, committed: Option<&Results>, day: &Day, root: &Path) -> Results {
        let record = |row: Row<'_>| {
            let known = committed.and_then(|results| find(results, &row.planned.case));
            match row.fresh {
                Some(fresh) => {
                    let mut record = computed(plan, row.planned, fresh, day);
                    // A day that is still to come was not written by a run, and does not stick.
                    let sticks = |known: &&Record| !machine::is_to_come(&known.provenance.recorded, root);
                    if let Some(known) = known.filter(|known| is_same(known, &record)).filter(sticks) {
                        record.provenance.recorded = known.provenance.recorded.clone();
                    }
                    Some(record)
                }
                None => known.map(|known| {
                    let provenance = Provenance { state: State::Kept, ..known.provenance.clone() };
                    Record { provenance, ..known.clone() }
                }),
            }
        };
        let records = self.rows(plan).filter_map(record).collect();
        Results::new(&plan.name, &plan.configuration, &plan.version, records)
    }
}

/// What a run writes of a measured record.
pub(super) fn computed(plan: &Plan, planned: &Planned, fresh: &Fresh, day: &Day) -> Record {
    Record {
        case: planned.case.clone(),
        origin: planned.origin,
        provenance: Provenance {
            state: State::Computed,
            version: plan.version.clone(),
            inputs_sha256: fresh.inputs_sha256.clone(),
            recorded: day.clone(),
        },
        outcome: fresh.outcome.clone(),
    }
}

/// Whether two records have the same facts of the same version from the same inputs.
fn is_same(left: &Record, right: &Record) -> bool {
    let made = |record: &Record| (record.provenance.version.clone(), record.provenance.inputs_sha256.clone());
    // As text: -0.0 equals 0.0 as a number.
    let facts = |record: &Record| serde_json::to_string(&record.outcome).ok();
    made(left) == made(right) && facts(left) == facts(right)
}

pub(super) fn find<'r>(results: &'r Results, case: &str) -> Option<&'r Record> {
    let at = results.records.binary_search_by(|record| record.case.as_str().cmp(case)).ok()?;
    results.records.get(at)
}
