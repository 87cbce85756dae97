//! A quota: how often something may be called.

use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};

/// How often something may be called. Without a number it is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quota {
    /// Calls within any sixty seconds.
    pub max_calls_per_minute: Option<NonZeroU32>,
    /// Calls of a caller in all, until it has made none for 24 hours.
    pub max_calls_per_session: Option<NonZeroU64>,
}

impl Quota {
    /// So many calls a minute.
    #[must_use]
    pub fn per_minute(most: NonZeroU32) -> Self {
        Self { max_calls_per_minute: Some(most), max_calls_per_session: None }
    }

    /// The quota that permits what both permit.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            max_calls_per_minute: tighter(self.max_calls_per_minute, other.max_calls_per_minute),
            max_calls_per_session: tighter(self.max_calls_per_session, other.max_calls_per_session),
        }
    }

    /// Whether it limits anything.
    pub(super) fn is_limited(self) -> bool {
        self != Self::default()
    }
}

/// The smaller of two limits, of those that are set.
pub(super) fn tighter<N: Ord>(left: Option<N>, right: Option<N>) -> Option<N> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (left, right) => left.or(right),
    }
}
