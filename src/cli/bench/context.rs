//! The context scenarios as `bench run`, `check` and `list` treat them.

use anyhow::Result;
use rayon::prelude::*;

use crate::context::ContextConfig;
use crate::context::summary::StructureSummarizer;
use crate::eval::context::record::ContextResults;
use crate::eval::context::results::kept_records;
use crate::eval::context::run::{record, results};
use crate::eval::context::scenario::Scenario;
use crate::eval::workspace::Workspace;

/// The scenarios of a workspace and the results that it holds for them.
pub(super) struct Scenarios {
    pub(super) all: Vec<Scenario>,
    pub(super) committed: Option<ContextResults>,
}

impl Scenarios {
    pub(super) fn of(workspace: &Workspace) -> Result<Self> {
        Ok(Self { all: workspace.scenarios()?, committed: workspace.read_chapter()? })
    }

    /// Runs every scenario that is here; the others keep their committed records.
    pub(super) fn compute(&self, workspace: &Workspace) -> Result<ContextResults> {
        let here: Vec<&Scenario> = self.all.iter().filter(|scenario| workspace.has_scenario(scenario)).collect();
        let catalogs = workspace.counted_catalogs(&here)?;
        let config = ContextConfig::default();
        let run = |scenario: &&Scenario| {
            let catalog = scenario.catalog.as_ref().and_then(|name| catalogs.get(name));
            Ok(record(scenario, catalog, &config, &StructureSummarizer)?)
        };
        let mut records = here.par_iter().map(run).collect::<Result<Vec<_>>>()?;
        records.extend(kept_records(&self.all, self.committed.as_ref(), |scenario| workspace.has_scenario(scenario)));
        Ok(results(&config, records))
    }

    /// The names of scenarios whose log or catalog is not on this machine.
    pub(super) fn absent(&self, workspace: &Workspace) -> Vec<String> {
        let absent = self.all.iter().filter(|scenario| !workspace.has_scenario(scenario));
        absent.map(|scenario| format!("context/{}", scenario.name)).collect()
    }
}
