//! Whether calls of a server's tools wait until these have been compared with their pins.
//!
//! A server that is started anew may serve something else under a name that was approved. Where changed tools are withheld,
//! calls on a new connection wait until what is listed on it has been reviewed and is served; then a call that waited
//! is refused unless its tool is served still.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use super::fault::Fault;

/// How far the tools of one server have been reviewed.
#[derive(Debug, Default)]
pub(super) struct Vetting {
    /// Whether calls wait for it.
    holds: AtomicBool,
    /// The connections that were made.
    made: AtomicU64,
    reviewed: watch::Sender<Review>,
}

/// What a review says of a tool; one of which it says nothing is not listed, or cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reviewed {
    /// It is served.
    Served,
    /// It is not, for this reason.
    Withheld(String),
}

/// What was reviewed last.
#[derive(Debug, Default)]
struct Review {
    /// The connection on which it was listed.
    connection: u64,
    /// The tools by their names.
    tools: BTreeMap<String, Reviewed>,
    /// How often lists could not be read or reviewed, and the newest connection when that happened last.
    failed: (u64, u64),
}

impl Vetting {
    /// Whether calls wait, from now on.
    pub(super) fn hold(&self, holds: bool) {
        self.holds.store(holds, Ordering::Release);
    }

    /// Whether calls wait.
    pub(super) fn holds(&self) -> bool {
        self.holds.load(Ordering::Acquire)
    }

    /// The number of a new connection, from one on.
    pub(super) fn connected(&self) -> u64 {
        self.made.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// What was listed on the connection has been reviewed, which says this of the tools of these names.
    pub(super) fn reviewed(&self, connection: u64, tools: BTreeMap<String, Reviewed>) {
        self.reviewed.send_modify(|review| (review.connection, review.tools) = (connection, tools));
    }

    /// Its lists could not be read.
    pub(super) fn failed(&self) {
        let newest = self.made.load(Ordering::Acquire);
        self.reviewed.send_modify(|review| review.failed = (review.failed.0 + 1, newest));
    }

    /// Waits until what is listed on this connection has been reviewed; `ask` has it listed.
    ///
    /// # Errors
    /// The tool is not served, or it cannot be known in this time whether it is.
    pub(super) async fn wait(
        &self,
        connection: u64,
        tool: &str,
        time: Duration,
        ask: impl FnOnce(),
    ) -> Result<(), Fault> {
        let mut reviewed = self.reviewed.subscribe();
        let failures = reviewed.borrow().failed.0;
        let is_over = |review: &Review| {
            let (count, newest) = review.failed;
            review.connection >= connection || (count > failures && newest >= connection)
        };
        if reviewed.borrow().connection < connection {
            ask();
        }
        // The sender lives as long as this.
        let _ = tokio::time::timeout(time, reviewed.wait_for(is_over)).await;
        let now = reviewed.borrow();
        match now.tools.get(tool) {
            Some(Reviewed::Withheld(reason)) => {
                Err(Fault::Withheld(format!("{reason}; it can be called when its operator has approved that")))
            }
            _ if now.connection < connection => {
                let reason =
                    "the server was started anew, and its tools could not be compared with their pins; try again";
                Err(Fault::Unavailable(reason.to_owned()))
            }
            Some(Reviewed::Served) => Ok(()),
            None => {
                let reason = "the server does not list the tool any more, or not so that it can be used";
                Err(Fault::Withheld(reason.to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMPLE: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_call_waits_for_the_review_of_its_own_connection() {
        let vetting = Vetting::default();
        let (first, second) = (vetting.connected(), vetting.connected());
        let asked = AtomicU64::new(0);
        let ask = || {
            asked.fetch_add(1, Ordering::Relaxed);
        };
        let wait = |connection, tool| vetting.wait(connection, tool, AMPLE, ask);
        let served = |name: &str| (name.to_owned(), Reviewed::Served);
        vetting.reviewed(first, BTreeMap::from([served("t"), served("v")]));
        assert!(wait(first, "t").await.is_ok());
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        let review = async {
            // What is listed on an older connection says nothing of this one.
            vetting.reviewed(first, BTreeMap::from([served("t"), served("v")]));
            tokio::task::yield_now().await;
            let changed = ("u".to_owned(), Reviewed::Withheld("changed".to_owned()));
            vetting.reviewed(second, BTreeMap::from([served("t"), changed]));
        };
        let (kept, withheld, gone, ()) = tokio::join!(wait(second, "t"), wait(second, "u"), wait(second, "v"), review);
        assert!(matches!(&gone, Err(Fault::Withheld(why)) if why.contains("not list the tool any more")), "{gone:?}");
        assert!(kept.is_ok() && matches!(&withheld, Err(Fault::Withheld(why)) if why.starts_with("changed; ")));
        assert_eq!(asked.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn a_call_does_not_wait_for_what_has_failed_or_takes_too_long() {
        let vetting = Vetting::default();
        let number = vetting.connected();
        let (failed, ()) = tokio::join!(vetting.wait(number, "t", AMPLE, || {}), async { vetting.failed() });
        let late = vetting.wait(number, "t", Duration::ZERO, || {}).await;
        for outcome in [failed, late] {
            assert!(matches!(&outcome, Err(Fault::Unavailable(why)) if why.contains("could not be compared")));
        }
    }
}
