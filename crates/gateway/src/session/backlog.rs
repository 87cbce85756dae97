//! How much waits to be read by a client.
//!
//! Queues of messages are bounded by their number; a number of long ones may be much. What is said to a client unasked
//! is counted by its bytes too, over all connections of one caller, and left out while too much of it waits. Answers
//! and questions are not: somebody waits for them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Weak};

use bytes::Bytes;

use crate::common::sync::lock;

/// Bytes of notifications that wait for one caller, at most. A longer one waits alone.
const MOST: usize = 8 * 1024 * 1024;

/// The callers who are told something, by the names of what is theirs.
static CALLERS: LazyLock<Mutex<HashMap<String, Weak<AtomicUsize>>>> = LazyLock::new(Mutex::default);

/// The bytes of notifications that wait for a caller.
#[derive(Debug, Clone, Default)]
pub(crate) struct Backlog(Arc<AtomicUsize>);

impl Backlog {
    /// That of a caller; without a name, one of its own.
    pub(crate) fn of(tenant: &str) -> Self {
        if tenant.is_empty() {
            return Self::default();
        }
        let mut callers = lock(&CALLERS);
        if let Some(known) = callers.get(tenant).and_then(Weak::upgrade) {
            return Self(known);
        }
        callers.retain(|_, other| other.strong_count() > 0);
        let new = Self::default();
        callers.insert(tenant.to_owned(), Arc::downgrade(&new.0));
        new
    }

    /// The message, which counts for as long as it is kept; `None` when too much waits already.
    pub(crate) fn admit(&self, message: Bytes) -> Option<Bytes> {
        let length = message.len();
        let with = |waiting: usize| (waiting == 0 || waiting + length <= MOST).then_some(waiting + length);
        if self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with).is_err() {
            tracing::debug!(length, "a notification is left out: its client does not read those before it");
            return None;
        }
        Some(Bytes::from_owner(Waiting { message, backlog: Arc::clone(&self.0) }))
    }
}

/// A message that is kept for a client.
struct Waiting {
    message: Bytes,
    backlog: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Waiting {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.backlog.fetch_sub(self.message.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_for_each_caller_until_it_is_read() {
        let long = Bytes::from(vec![b'x'; MOST / 2]);
        let (one, same, other) = (Backlog::of("one"), Backlog::of("one"), Backlog::of("other"));
        let kept = [one.admit(long.clone()), same.admit(long.clone()), one.admit(long.clone())];
        assert_eq!(kept.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(kept[0].as_ref().unwrap(), &long);
        assert!(other.admit(long.clone()).is_some() && Backlog::of("").admit(long).is_some());
        drop(kept);
        let vast = Bytes::from(vec![b'x'; MOST * 2]);
        let alone = one.admit(vast.clone());
        assert!(alone.is_some() && same.admit(vast).is_none(), "one that is longer waits alone");
    }
}
