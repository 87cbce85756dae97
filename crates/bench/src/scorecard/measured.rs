//! What the chapters gave on this machine, and how it goes together with what is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

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

impl Measured {
    /// Measures every chapter.
    ///
    /// # Errors
    /// Inputs that cannot be read.
    pub fn of(bench: &Bench, step: Step<'_>) -> Result<Self> {
        Self::chapters(&CHAPTERS, bench, step)
    }

    /// Measures one chapter.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn chapter(chapter: &'static dyn AnyChapter, bench: &Bench, step: Step<'_>) -> Result<Self> {
        Self::chapters(&[chapter], bench, step)
    }

    fn chapters(chapters: &[&'static dyn AnyChapter], bench: &Bench, step: Step<'_>) -> Result<Self> {
        let plans = plans(chapters, bench)?;
        let measure = |(chapter, plans): (&&'static dyn AnyChapter, Vec<Plan>)| {
            let fresh = chapter.measure(bench, &plans, step)?.into_iter();
            let fresh = fresh.map(|fresh| ((fresh.results.clone(), fresh.case.clone()), fresh)).collect();
            Ok(MeasuredChapter { name: chapter.name(), plans, fresh })
        };
        Ok(Self { chapters: chapters.iter().zip(plans).map(measure).collect::<Result<_>>()? })
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
            let results = recordings.of(chapter.name).iter().find(|results| results.name == plan.name).cloned();
            let is_there = |case: &str| results.as_ref().is_some_and(|results| find(results, case).is_some());
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

/// What each of `chapters` has to measure.
fn plans(chapters: &[&'static dyn AnyChapter], bench: &Bench) -> Result<Vec<Vec<Plan>>> {
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
        "not everything can be measured here, as --all asks: {}; leave --all out to keep these records",
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
