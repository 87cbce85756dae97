//! The last calls, and a feed of them for whoever looks on now. Readers that do not keep up skip some; nothing waits for
//! them, and as long as nobody looks on nothing is kept.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use tokio::sync::broadcast;

use super::audit_line::AuditDecision;
use crate::common::sync::lock;

/// Calls that are kept, and that a reader may be behind.
const KEPT: usize = 200;

/// A call that has ended, as operators see it: nothing of what it carried.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SeenCall {
    /// When it ended, in seconds since 1970.
    pub(crate) time: f64,
    /// The id of the tool, or the operation where there is none.
    pub(crate) tool: String,
    /// The name of the caller.
    pub(crate) caller: String,
    /// What was decided about it.
    pub(crate) decision: AuditDecision,
    /// The guard that refused or asked.
    pub(crate) guard: Option<&'static str>,
    /// The rule by which the policy decided.
    pub(crate) rule: Option<String>,
    /// Who approved or declined it.
    pub(crate) approver: Option<String>,
    /// How it ended.
    pub(crate) code: String,
    /// What to do about that.
    pub(crate) remedy: Option<&'static str>,
    /// Tokens of the answer, where they are counted.
    pub(crate) tokens: Option<u64>,
    /// Tokens of what the server answered, where they are counted.
    pub(crate) result_tokens: Option<u64>,
    /// Bytes of the answer.
    pub(crate) bytes: usize,
    /// Milliseconds that it took.
    pub(crate) ms: f64,
}

/// The last calls, and who hears of the next.
#[derive(Debug)]
pub(crate) struct Activity {
    is_watched: AtomicBool,
    last: Mutex<VecDeque<Arc<SeenCall>>>,
    feed: broadcast::Sender<Arc<SeenCall>>,
}

impl Default for Activity {
    fn default() -> Self {
        Self { is_watched: AtomicBool::new(false), last: Mutex::default(), feed: broadcast::channel(KEPT).0 }
    }
}

impl Activity {
    /// From now on calls are kept.
    pub(crate) fn watch(&self) {
        self.is_watched.store(true, Ordering::Relaxed);
    }

    /// Whether calls are kept.
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    /// A call has ended.
    pub(crate) fn saw(&self, call: SeenCall) {
        let call = Arc::new(call);
        let mut last = lock(&self.last);
        if last.len() == KEPT {
            last.pop_front();
        }
        last.push_back(Arc::clone(&call));
        // Under the lock: a reader that begins sees each call once.
        let _ = self.feed.send(call);
    }

    /// The last calls, oldest first, and the feed of those that come.
    pub(crate) fn follow(&self) -> (Vec<Arc<SeenCall>>, broadcast::Receiver<Arc<SeenCall>>) {
        let last = lock(&self.last);
        (last.iter().cloned().collect(), self.feed.subscribe())
    }
}
