//! What several guards use: the shared state and the clocks.

use std::sync::Arc;
use std::time::Duration;

use super::state::{Freshness, NonceKind, State};
use contextweaver_context::store::{Clock, StoreError};

/// A nonce cannot be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpendError {
    /// It was taken before.
    Seen,
    /// There is no room to remember it.
    Full,
    /// The state cannot be used.
    Unknown,
}

/// The shared state of the guards, and the clocks by which they count.
#[derive(Clone)]
pub(super) struct Shared {
    /// Quotas, nonces, cached results and pins.
    pub(super) state: Arc<dyn State>,
    /// For windows and ages.
    pub(super) steady: Arc<dyn Clock>,
    /// For times that other machines wrote.
    pub(super) wall: Arc<dyn Clock>,
}

impl Shared {
    pub(super) fn new(state: Arc<dyn State>, steady: Arc<dyn Clock>, wall: Arc<dyn Clock>) -> Self {
        // Windows that outlive the process or are shared with others need the time of day.
        let steady = if state.waits() { Arc::clone(&wall) } else { steady };
        Self { state, steady, wall }
    }

    /// Runs `work` on the state, off the threads of the runtime where it waits for a disk.
    ///
    /// # Errors
    /// What the state says, or that the work broke off.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn State) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        if !self.state.waits() {
            return work(&*self.state);
        }
        let state = Arc::clone(&self.state);
        tokio::task::spawn_blocking(move || work(&*state)).await.unwrap_or_else(|error| {
            Err(StoreError::Backend { place: "shared state".to_owned(), reason: error.to_string() })
        })
    }

    /// Takes a nonce of the moment `at` that was not taken before. It is remembered, with `most` others of its kind, until
    /// a call says that the `oldest` one is later.
    ///
    /// # Errors
    /// It was taken, there is no room for it, or the state cannot be used.
    pub(super) async fn spend(
        &self,
        kind: NonceKind,
        nonce: String,
        oldest: Duration,
        at: Duration,
        most: usize,
    ) -> Result<(), SpendError> {
        match self.run(move |state| state.remember(kind, &nonce, oldest, at, most)).await {
            Ok(Freshness::Fresh) => Ok(()),
            Ok(Freshness::Seen) => Err(SpendError::Seen),
            Ok(Freshness::Full) => Err(SpendError::Full),
            Err(error) => {
                tracing::error!(%error, "nonces cannot be stored");
                Err(SpendError::Unknown)
            }
        }
    }
}
