//! The code still produces the committed numbers, the pages still show them, nothing vanished, and what was not computed is
//! named.
//!
//! A record that was measured is compared fact by fact. One that could not be is looked at in every way that needs no
//! measuring: it must be there, of the version that is here, from the inputs that are here, and its figures must agree with
//! each other and with those of other chapters. It is named all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;

use super::measured::{Measured, MeasuredChapter, Row, computed, find};
use super::{files, pages};
use crate::chapter::{Absent, Plan, Recordings, Wrong};
use crate::chapters::CHAPTERS;
use crate::eval::machine;
use crate::eval::matrix::Matrix;
use crate::eval::tables::{self, Tables};
use crate::eval::workspace::{Bench, Scope, Workspace};
use crate::report::count;
use crate::results::compare::{Difference, configurations, facts};
use crate::results::{Day, Record, Results, State};

/// What a check found.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// Whether nothing is wrong: differences, wrong records, pages and strays are empty, and with `--all` nothing is kept.
    pub same: bool,
    /// Records that there should be.
    pub records: usize,
    /// Those that were computed here.
    pub computed: usize,
    /// Facts that are not what the results files say.
    pub facts: Vec<Difference>,
    /// Records that were not computed here, by results file.
    pub kept: Vec<Kept>,
    /// Committed records that cannot be right, or that another version made.
    pub wrong: Vec<Wrong>,
    /// Pages that do not show what the results files say.
    pub pages: Vec<String>,
    /// Files in the folder of the scorecard that are not results, a page or a recorded table.
    pub strays: Vec<String>,
    /// Recorded tables, which nothing computes again, with their days.
    pub tables: Vec<String>,
    /// Whether nothing may be kept.
    pub all: bool,
}

/// The records of one results file that were not computed for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// The results: the name of the file.
    pub results: String,
    /// Why they were not computed, in words.
    pub reason: String,
    /// The versions that made them.
    pub versions: BTreeSet<String>,
    /// The days on which they were recorded.
    pub recorded: BTreeSet<String>,
    /// The cases of these records.
    pub cases: Vec<String>,
    /// Whether a run of everything would compute them.
    #[serde(skip)]
    pub is_gap: bool,
}

/// Measures everything and compares it with what is committed.
///
/// # Errors
/// Inputs that cannot be read, or a results file that is damaged or missing.
pub fn run(bench: &Bench, step: &(dyn Fn(&str) + Sync)) -> Result<Verdict> {
    // Damaged files are refused before minutes are spent.
    files::committed(&bench.workspace, &bench.matrix)?;
    Tables::read(&bench.workspace)?;
    compare(&Measured::of(bench, step)?, &bench.workspace, &bench.matrix, bench.scope)
}

/// Compares what was measured with what is committed in `workspace`.
///
/// # Errors
/// A results file that is damaged or missing, or a page that cannot be rendered.
pub fn compare(measured: &Measured, workspace: &Workspace, matrix: &Matrix, scope: Scope) -> Result<Verdict> {
    let committed = files::committed(workspace, matrix)?;
    let (records, computed) = measured.counts();
    let mut verdict = Verdict {
        same: false,
        records,
        computed,
        facts: Vec::new(),
        kept: Vec::new(),
        wrong: Vec::new(),
        pages: Vec::new(),
        strays: Vec::new(),
        tables: Vec::new(),
        all: scope == Scope::All,
    };
    for chapter in &measured.chapters {
        let committed = committed.of(chapter.name);
        for plan in &chapter.plans {
            // By name: that both lists are in one order is nothing to rely on.
            let results = committed.iter().find(|results| results.name == plan.name);
            let results =
                results.with_context(|| format!("{}: planned, but none of the chapter's files", plan.name))?;
            verdict.results(chapter, plan, results)?;
        }
        ensure!(committed.len() == chapter.plans.len(), "{}: more results files than are planned", chapter.name);
    }
    let tables = Tables::read(workspace)?;
    verdict.wrong.extend(wrong(&committed)?);
    for chapter in CHAPTERS {
        verdict.wrong.extend(chapter.wrong_tables(&committed, &tables)?);
    }
    verdict.days(&committed, workspace);
    verdict.tables = tables.origins.iter().map(|origin| format!("{} of {}", origin.file, origin.recorded)).collect();
    verdict.pages(&committed, &tables, workspace)?;
    let clean = verdict.facts.is_empty() && verdict.wrong.is_empty();
    let shown = verdict.pages.is_empty() && verdict.strays.is_empty();
    verdict.same = clean && shown && (!verdict.all || !verdict.kept.iter().any(|kept| kept.is_gap));
    Ok(verdict)
}

/// The records that others of `recordings` show to be wrong, those that a run keeps included.
///
/// # Errors
///
/// If a record is of another shape than its chapter's.
pub fn wrong(recordings: &Recordings) -> Result<Vec<Wrong>> {
    let each: Vec<Vec<Wrong>> = CHAPTERS.into_iter().map(|chapter| chapter.wrong(recordings)).collect::<Result<_>>()?;
    Ok(each.concat())
}

impl Verdict {
    /// Compares the results of one file.
    fn results(&mut self, chapter: &MeasuredChapter, plan: &Plan, committed: &Results) -> Result<()> {
        let name = &plan.name;
        self.facts.extend(configurations(name, &committed.configuration, &plan.configuration));
        if committed.version != plan.version {
            let [left, right] = [&committed.version, &plan.version].map(|version| Some(Value::from(version.as_str())));
            self.facts.push(Difference::of(name, "", "version", left, right));
        }
        let mut kept: BTreeMap<String, Kept> = BTreeMap::new();
        for row in chapter.rows(plan) {
            let known = find(committed, &row.planned.case);
            match row.fresh {
                Some(fresh) => self.facts.extend(differences(plan, &row, known, fresh)?),
                None => self.keep(plan, &row, known, &mut kept),
            }
        }
        self.kept.extend(kept.into_values());
        for record in &committed.records {
            if !plan.cases.iter().any(|planned| planned.case == record.case) {
                let left = Some(serde_json::to_value(&record.outcome)?);
                self.facts.push(Difference::of(name, &record.case, "", left, None));
            }
        }
        Ok(())
    }

    /// Names a record that was not computed, and what is wrong with it.
    fn keep(&mut self, plan: &Plan, row: &Row<'_>, known: Option<&Record>, kept: &mut BTreeMap<String, Kept>) {
        let case = &row.planned.case;
        let mut wrong = |reason: String| {
            self.wrong.push(Wrong { results: plan.name.clone(), case: case.clone(), reason });
        };
        let is_gap = row.planned.absent.as_ref().is_none_or(Absent::is_gap);
        let reason = row.planned.absent.as_ref().map_or_else(|| "not measured".to_owned(), Absent::to_string);
        // Else nobody would miss a record that was deleted, such as that of an engine which is ahead of ours.
        let Some(record) = known else {
            wrong(match is_gap {
                true => format!("no committed record, and it cannot be computed: {reason}"),
                false => {
                    "no committed record; record it with `contextweaver bench run --engines`, or remove its engine \
                          or collection from `scenarios/`"
                        .to_owned()
                }
            });
            return;
        };
        let group = kept.entry(reason.clone()).or_insert_with(|| Kept {
            results: plan.name.clone(),
            reason: reason.clone(),
            versions: BTreeSet::new(),
            recorded: BTreeSet::new(),
            cases: Vec::new(),
            is_gap,
        });
        group.cases.push(case.clone());
        let made = &record.provenance;
        group.versions.insert(made.version.clone());
        group.recorded.insert(made.recorded.to_string());
        if made.version != plan.version {
            let (version, own) = (&made.version, &plan.version);
            wrong(format!("stale: the record is from version {version}, but the engine here is {own}"));
        }
        if row.planned.inputs_sha256.as_ref().is_some_and(|inputs| *inputs != made.inputs_sha256) {
            wrong("the record is for different inputs than those here".to_owned());
        }
        if record.origin != row.planned.origin {
            wrong("the record differs on who wrote its inputs".to_owned());
        }
    }

    /// No record is of a day that is still to come. Of the past every day may be true: days are recorded.
    fn days(&mut self, committed: &Recordings, workspace: &Workspace) {
        let root = workspace.path("");
        for results in committed.iter() {
            for record in results.records.iter().filter(|one| machine::is_to_come(&one.provenance.recorded, &root)) {
                let reason = format!("recorded {}, which is in the future", record.provenance.recorded);
                self.wrong.push(Wrong { results: results.name.clone(), case: record.case.clone(), reason });
            }
        }
    }

    fn pages(&mut self, committed: &Recordings, tables: &Tables, workspace: &Workspace) -> Result<()> {
        let rendered = pages::of(committed, tables, workspace)?;
        let known = files::paths(committed).chain(tables::paths(tables));
        let known: BTreeSet<String> = known.chain(rendered.iter().map(|page| page.path.clone())).collect();
        self.strays = files::strays(&known, workspace)?;
        for page in rendered {
            if fs::read(workspace.path(&page.path)).ok().as_deref() != Some(&page.bytes) {
                self.pages.push(page.path);
            }
        }
        Ok(())
    }

    /// What stands before the last line of a check: every record that was not computed, by results file, and every
    /// recorded table.
    #[must_use]
    pub fn not_computed(&self) -> Vec<String> {
        let set = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(" and ");
        let mut lines = Vec::new();
        if !self.kept.is_empty() {
            lines.push("not computed here, kept as recorded by an earlier `contextweaver bench run`:".to_owned());
        }
        for Kept { results, reason, versions, recorded, cases, .. } in &self.kept {
            let made = match versions.is_empty() {
                true => String::new(),
                false => format!("; version {}, recorded {}", set(versions), set(recorded)),
            };
            let head = format!("  {results} {} ({reason}{made}):", count(cases.len()));
            lines.push(wrapped(head, cases));
        }
        if !self.tables.is_empty() {
            let head = format!("recorded, computed nowhere: {} tables in scorecard/timings:", count(self.tables.len()));
            lines.push(wrapped(head, &self.tables));
        }
        lines.push("recorded, computed nowhere: the days of records".to_owned());
        lines
    }

    /// What came of a check, and what to do.
    #[must_use]
    pub fn ending(&self) -> String {
        let kept: usize = self.kept.iter().map(|kept| kept.cases.len()).sum();
        let (all, computed) = (count(self.records), count(self.computed));
        let drift = !self.facts.is_empty() || !self.wrong.is_empty() || !self.strays.is_empty();
        match (drift, self.pages.is_empty(), kept) {
            (false, true, 0) => format!("same: {computed} of {all} records computed here; pages and coverage"),
            (false, true, kept) => {
                let same = format!("same as far as computed: {computed} of {all} records; {} kept", count(kept));
                if self.all && self.kept.iter().any(|kept| kept.is_gap) {
                    format!("{same}\nnot everything was computed, as --all requires")
                } else {
                    same
                }
            }
            (false, false, _) => "drift; if it is intended: contextweaver bench render".to_owned(),
            (true, ..) => "drift; if it is intended: contextweaver bench run".to_owned(),
        }
    }

    /// [`Self::not_computed`] and [`Self::ending`].
    #[must_use]
    pub fn summary(&self) -> String {
        self.not_computed().into_iter().chain([self.ending()]).collect::<Vec<_>>().join("\n")
    }
}

/// Characters of a line before it is wrapped.
const WIDTH: usize = 120;

/// `head` and the list of `words`, in lines of [`WIDTH`], those after the first one set in.
fn wrapped(head: String, words: &[String]) -> String {
    let mut width = head.chars().count();
    let mut text = head;
    for (number, word) in (1..).zip(words) {
        let word = if number < words.len() { format!("{word},") } else { word.clone() };
        let own = word.chars().count() + 1;
        if width + own > WIDTH {
            text.push_str("\n   ");
            width = 3;
        }
        text.push(' ');
        text.push_str(&word);
        width += own;
    }
    text
}

/// Every fact in which a committed record differs from what was measured. The day is not a fact.
fn differences(
    plan: &Plan,
    row: &Row<'_>,
    known: Option<&Record>,
    fresh: &crate::chapter::Fresh,
) -> Result<Vec<Difference>> {
    let day = known.map_or_else(Day::now, |known| known.provenance.recorded.clone());
    let own = computed(plan, row.planned, fresh, &day);
    let value = |record: &Record| -> Result<Value> {
        let mut value = serde_json::to_value(&record.outcome)?;
        if let Value::Object(members) = &mut value {
            members.insert("origin".to_owned(), serde_json::to_value(record.origin)?);
            members.insert("version".to_owned(), record.provenance.version.clone().into());
            members.insert("inputs_sha256".to_owned(), record.provenance.inputs_sha256.clone().into());
        }
        Ok(value)
    };
    let case = &row.planned.case;
    let mut found = facts(&plan.name, case, known.map(&value).transpose()?, Some(value(&own)?));
    if known.is_some_and(|known| known.provenance.state == State::Kept) {
        let [left, right] = ["kept", "computed"].map(|state| Some(Value::from(state)));
        found.push(Difference::of(&plan.name, case, "state", left, right));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn no_committed_record_can_be_seen_to_be_wrong() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let workspace = Workspace::find(Some(&root), None).unwrap();
        let committed = files::committed(&workspace, &workspace.matrix().unwrap()).unwrap();
        assert_eq!(wrong(&committed).unwrap(), []);
    }
}
