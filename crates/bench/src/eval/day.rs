//! Days, as records and recorded tables name them.

use serde::{Deserialize, Serialize};

pub use contextweaver_context::memory::ParseDayError;

/// A day, written `YYYY-MM-DD`. Days are ordered as their texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Day(String);

impl TryFrom<String> for Day {
    type Error = ParseDayError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse::<contextweaver_context::memory::Day>().map(|_| Self(text))
    }
}

impl std::fmt::Display for Day {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Day {
    /// The day of the build environment (`SOURCE_DATE_EPOCH`, seconds since 1970), else today (UTC).
    #[must_use]
    pub fn now() -> Self {
        let seconds = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.trim().parse().ok());
        let given = seconds.and_then(|seconds| time::OffsetDateTime::from_unix_timestamp(seconds).ok());
        Self::of(given.unwrap_or_else(time::OffsetDateTime::now_utc))
    }

    /// The day after that of the clock: clocks of machines differ, and days begin at different times.
    #[must_use]
    pub fn tomorrow() -> Self {
        Self::after(time::OffsetDateTime::now_utc())
    }

    /// The day after that of a moment, given in seconds since 1970; `None` for one that no calendar has.
    #[must_use]
    pub fn after_seconds(seconds: i64) -> Option<Self> {
        time::OffsetDateTime::from_unix_timestamp(seconds).ok().map(Self::after)
    }

    fn after(moment: time::OffsetDateTime) -> Self {
        Self::of(moment.saturating_add(time::Duration::DAY))
    }

    fn of(moment: time::OffsetDateTime) -> Self {
        let date = moment.date();
        Self(format!("{:04}-{:02}-{:02}", date.year(), u8::from(date.month()), date.day()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tomorrow_is_after_now() {
        assert!(Day::tomorrow() > Day::of(time::OffsetDateTime::now_utc()));
        assert_eq!(Day::after_seconds(1_769_817_600).unwrap().to_string(), "2026-02-01");
    }
}
