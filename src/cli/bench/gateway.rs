//! The gateway chapter as `bench run`, `check` and `list` treat it.

use anyhow::Result;
use rayon::prelude::*;

use super::run::progress;
use crate::eval::gateway::case::{Case, Places};
use crate::eval::gateway::record::GatewayResults;
use crate::eval::gateway::results::{kept_records, wrong_rows};
use crate::eval::gateway::run::{record, results, version};
use crate::eval::workspace::Workspace;

/// The cases of a workspace and the results that it holds for them.
pub(super) struct GatewayCases {
    places: Places,
    pub(super) all: Vec<Case>,
    pub(super) committed: Option<GatewayResults>,
}

impl GatewayCases {
    pub(super) fn of(workspace: &Workspace) -> Result<Self> {
        let places = workspace.gateway();
        Ok(Self { all: places.cases()?, places, committed: workspace.read_chapter()? })
    }

    /// Runs every case that is here; the others keep their committed records.
    pub(super) fn compute(&self) -> Result<GatewayResults> {
        let bar = progress(self.all.len());
        let run = |case: &Case| {
            bar.set_message(case.id());
            let record = record(case);
            bar.inc(1);
            record
        };
        // A gateway blocks the thread that calls it. On the threads that build indexes it would wait for itself.
        let threads = rayon::ThreadPoolBuilder::new().build()?;
        let mut records = threads.install(|| self.all.par_iter().map(run).collect::<Result<Vec<_>>>())?;
        bar.finish_and_clear();
        records.extend(kept_records(&self.places.absent(), self.committed.as_ref()));
        Ok(results(records))
    }

    /// What is wrong with the committed rows that cannot be computed here.
    pub(super) fn wrong_rows(&self) -> Vec<String> {
        wrong_rows(&self.places.absent(), self.committed.as_ref(), &version())
    }

    /// The kinds of cases whose files are not on this machine.
    pub(super) fn absent(&self) -> Vec<String> {
        self.places.absent().iter().map(|kind| format!("gateway/{kind}")).collect()
    }
}
