//! Days of the calendar: what a memory knows of time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day {
    year: u16,
    month: u8,
    day: u8,
}

/// A text is not a day.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a day; write it as 2026-11-24")]
pub struct ParseDayError(String);

impl Day {
    /// The number of days since a fixed day.
    pub(super) fn number(self) -> u64 {
        // March is the first month, so that the day that comes every four years is the last of its year.
        let month = u64::from(self.month);
        let (year, month) = (u64::from(self.year) + 4_800 - u64::from(month < 3), (month + 9) % 12);
        u64::from(self.day) + (153 * month + 2) / 5 + 365 * year + year / 4 - year / 100 + year / 400
    }

    /// The day at the beginning of a text such as `2026-11-24T10:00:00Z`.
    pub(super) fn at_start(text: &str) -> Option<Self> {
        text.get(..10)?.parse().ok()
    }
}

impl FromStr for Day {
    type Err = ParseDayError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ParseDayError(text.to_owned());
        let bytes = text.as_bytes();
        let plain = bytes.len() == 10
            && bytes.iter().enumerate().all(|(at, byte)| match at {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        let number = |from: usize, to: usize| text.get(from..to).and_then(|part| part.parse::<u16>().ok());
        let (Some(year), Some(month), Some(day), true) = (number(0, 4), number(5, 7), number(8, 10), plain) else {
            return Err(refuse());
        };
        let leaps = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let last = match month {
            2 => 28 + u16::from(leaps),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        };
        if !(1..=last).contains(&day) {
            return Err(refuse());
        }
        Ok(Self { year, month: month as u8, day: day as u8 })
    }
}

impl fmt::Display for Day {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl Serialize for Day {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_days_of_the_calendar() {
        let day = |text: &str| text.parse::<Day>();
        for wrong in
            ["2026-02-29", "2026-13-01", "2026-00-10", "2026-1-1", "2026-11-31", "+026-11-01", "", "2026-11-241"]
        {
            assert!(day(wrong).is_err(), "{wrong}");
        }
        let apart = |left: &str, right: &str| day(right).unwrap().number() - day(left).unwrap().number();
        assert_eq!((apart("2024-02-28", "2024-03-01"), apart("2026-02-28", "2026-03-01")), (2, 1));
        assert_eq!((apart("2025-12-31", "2026-01-01"), apart("2000-01-01", "2026-11-24")), (1, 9824));
        assert_eq!(day("2024-02-29").unwrap().to_string(), "2024-02-29");
    }
}
