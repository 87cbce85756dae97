//! What calls teach about searches: which query led to which tool that then answered well.
//!
//! It is off unless the operator names a file. An observation is made when a tool that a search showed to a session is
//! called in it and succeeds; the same query leads to the same tool once a session, so that a loop teaches nothing.
//! Observations are appended to the file and learned at once, by all callers together. What the file says of tools that
//! are not served changes no ranking.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use super::view::CatalogView;
use crate::common::sync::lock;
use contextweaver_routing::{FeedbackError, FeedbackLog, MAX_OBSERVATIONS, Observation};

/// The observations of a gateway, and the file that they are kept in.
#[derive(Debug)]
pub(crate) struct Lessons {
    path: PathBuf,
    observations: Mutex<Vec<Observation>>,
    /// Whether new observations are written down.
    keeps: bool,
}

impl Lessons {
    /// Reads the file, which need not be there yet; without `keeps` nothing is written.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub(crate) fn open(path: &Path, keeps: bool) -> Result<Self, FeedbackError> {
        let log = if path.exists() { FeedbackLog::read(path)? } else { FeedbackLog::default() };
        if log.damaged > 0 {
            tracing::warn!(file = %path.display(), lines = log.damaged, "invalid lines of the feedback were skipped");
        }
        Ok(Self { path: path.to_owned(), observations: Mutex::new(log.observations), keeps })
    }

    /// Lets what is served, also by the views of profiles, rank by what was learned. Builds the indexes.
    pub(crate) fn teach(&self, view: &CatalogView) {
        let observations = lock(&self.observations).clone();
        if observations.is_empty() {
            return;
        }
        for view in std::iter::once(view).chain(view.profiles.values().map(|profile| &**profile)) {
            view.tools.iter().for_each(|shelf| shelf.learn(&observations));
        }
    }

    /// How many observations there are, and how many of them are of tools that are not served.
    pub(crate) fn counts(&self, view: &CatalogView) -> (usize, usize) {
        let observations = lock(&self.observations);
        let is_served = |tool: &str| view.tools.as_ref().is_some_and(|shelf| shelf.item(tool).is_some());
        (observations.len(), observations.iter().filter(|observation| !is_served(&observation.tool)).count())
    }

    /// Learns that these queries led to `tool`, which `view` serves. Writes to a disk.
    pub(crate) fn observe(&self, view: &CatalogView, queries: &[String], tool: &str) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        for query in queries {
            let observation = Observation { at, query: query.clone(), tool: tool.to_owned(), useful: true };
            if self.keeps
                && let Err(error) = FeedbackLog::append(&self.path, &observation)
            {
                tracing::warn!(%error, "an observation was not saved");
            }
            let mut observations = lock(&self.observations);
            observations.push(observation);
            let surplus = observations.len().saturating_sub(MAX_OBSERVATIONS);
            observations.drain(..surplus);
        }
        self.teach(view);
    }
}
