//! Days, as records and recorded tables name them.

use serde::{Deserialize, Serialize};

/// A day, written `YYYY-MM-DD`. Days are ordered as their texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Day(String);

/// The text names no day.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a day; write YYYY-MM-DD")]
pub struct ParseDayError(String);

impl TryFrom<String> for Day {
    type Error = ParseDayError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        // Numbers are parsed with a sign, which no day has.
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let numbers: Vec<&str> = text.split('-').collect();
        let is_day = match numbers[..] {
            [year, month, day] if is_plain && [year.len(), month.len(), day.len()] == [4, 2, 2] => {
                let month = month.parse::<u8>().ok().and_then(|month| time::Month::try_from(month).ok());
                let (year, day) = (year.parse::<i32>().ok(), day.parse::<u8>().ok());
                year.zip(month).zip(day).is_some_and(|((year, month), day)| {
                    year > 0 && time::Date::from_calendar_date(year, month, day).is_ok()
                })
            }
            _ => false,
        };
        if is_day { Ok(Self(text)) } else { Err(ParseDayError(text)) }
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
    fn only_what_the_calendar_has_is_a_day() {
        for (text, is_day) in [
            ("2026-01-31", true),
            ("2024-02-29", true),
            ("2026-02-29", false),
            ("2026-13-01", false),
            ("0000-01-01", false),
            ("+026-+1-+5", false),
            ("2026-1-31", false),
            ("２026-01-31", false),
            ("2026-01-31 ", false),
            ("2026-01-31-", false),
            ("", false),
        ] {
            assert_eq!(Day::try_from(text.to_owned()).is_ok(), is_day, "{text}");
        }
    }

    #[test]
    fn tomorrow_is_after_now() {
        assert!(Day::tomorrow() > Day::of(time::OffsetDateTime::now_utc()));
        assert_eq!(Day::after_seconds(1_769_817_600).unwrap().to_string(), "2026-02-01");
    }
}
