//! What one request may take for work on what came from outside: validation, repairs, selectors, regular expressions,
//! summaries, ranking, cleaning.
//!
//! All of it draws from three accounts, each before it begins: the seconds of long work, with the waits for its turns; the
//! steps, which are values that are visited; and the bytes that are read. A request that has used up one of them gets an
//! error, and takes nothing from others. What is drawn is reckoned from the size of what is to be looked at, so that
//! nothing is read for that; each kind of work has bounds of its own besides.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::settings::{FieldError, duration};

/// What one request may take for work on what came from outside.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkConfig {
    /// Seconds of long work, with the waits for its turns.
    pub seconds: f64,
    /// Steps of its work: values that are checked, repaired, looked through or cleaned, and tools that are ranked.
    pub steps: u64,
    /// Bytes that are read for its work.
    pub bytes: u64,
}

impl Default for WorkConfig {
    fn default() -> Self {
        Self { seconds: 60.0, steps: 200_000_000, bytes: 512 << 20 }
    }
}

impl WorkConfig {
    /// Refuses what makes no sense.
    ///
    /// # Errors
    /// The field and what is wrong with it.
    pub(crate) fn validate(&self) -> Result<(), FieldError> {
        duration(self.seconds).map_err(|error| FieldError::new("seconds", error))?;
        match [("steps", self.steps), ("bytes", self.bytes)].into_iter().find(|(_, most)| *most == 0) {
            Some((field, _)) => Err(FieldError::new(field, "must be at least 1")),
            None => Ok(()),
        }
    }
}

/// An account of a budget has less left than was to be drawn from it, or nothing; with its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Spent {
    #[error("takes more than is left of the {} seconds that a request has (raised by `work.seconds`)", .0.as_secs_f64())]
    Seconds(Duration),
    #[error("takes more than is left of the {0} steps that a request has (raised by `work.steps`)")]
    Steps(u64),
    #[error("takes more than is left of the {0} bytes that a request has (raised by `work.bytes`)")]
    Bytes(u64),
}

/// Values of a text of so many bytes, at most: each takes two bytes, with what stands between it and the next.
pub(crate) fn most_values(bytes: usize) -> u64 {
    bytes as u64 / 2 + 1
}

/// What a request has drawn so far.
#[derive(Debug)]
pub(crate) struct Budget {
    seconds: Duration,
    steps: Account,
    bytes: Account,
    /// Nanoseconds of long work.
    worked: AtomicU64,
}

impl Budget {
    /// Of which nothing is drawn yet.
    pub(crate) fn new(config: WorkConfig) -> Self {
        Self {
            // What is no time is none: nothing long begins.
            seconds: Duration::try_from_secs_f64(config.seconds).unwrap_or_default(),
            steps: Account::of(config.steps),
            bytes: Account::of(config.bytes),
            worked: AtomicU64::new(0),
        }
    }

    /// Draws steps; what is refused draws nothing.
    ///
    /// # Errors
    /// Fewer are left.
    pub(crate) fn draw_steps(&self, steps: u64) -> Result<(), Spent> {
        self.steps.draw(steps).ok_or(Spent::Steps(self.steps.most))
    }

    /// Draws bytes; what is refused draws nothing.
    ///
    /// # Errors
    /// Fewer are left.
    pub(crate) fn draw_bytes(&self, bytes: u64) -> Result<(), Spent> {
        self.bytes.draw(bytes).ok_or(Spent::Bytes(self.bytes.most))
    }

    /// Draws time that long work has taken.
    pub(crate) fn draw_time(&self, took: Duration) {
        self.worked.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The time that is left for long work.
    ///
    /// # Errors
    /// None is.
    pub(crate) fn time_left(&self) -> Result<Duration, Spent> {
        let worked = Duration::from_nanos(self.worked.load(Ordering::Relaxed));
        self.seconds.checked_sub(worked).filter(|left| !left.is_zero()).ok_or(self.out_of_time())
    }

    /// That no time is left.
    pub(crate) fn out_of_time(&self) -> Spent {
        Spent::Seconds(self.seconds)
    }
}

/// One account of a budget, in its own unit.
#[derive(Debug)]
struct Account {
    most: u64,
    drawn: AtomicU64,
}

impl Account {
    fn of(most: u64) -> Self {
        Self { most, drawn: AtomicU64::new(0) }
    }

    /// `None` where less is left.
    fn draw(&self, amount: u64) -> Option<()> {
        let sum = |drawn: u64| drawn.checked_add(amount).filter(|sum| *sum <= self.most);
        self.drawn.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).ok().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_drawn_to_its_limit_and_what_is_refused_draws_nothing() {
        let budget = Budget::new(WorkConfig { seconds: 2.0, steps: 10, bytes: u64::MAX });
        for (amount, expected) in
            [(4, Ok(())), (7, Err(Spent::Steps(10))), (u64::MAX, Err(Spent::Steps(10))), (6, Ok(())), (0, Ok(()))]
        {
            assert_eq!(budget.draw_steps(amount), expected, "{amount}");
        }
        assert_eq!(budget.draw_steps(1), Err(Spent::Steps(10)));
        assert_eq!((budget.draw_bytes(u64::MAX), budget.draw_bytes(1)), (Ok(()), Err(Spent::Bytes(u64::MAX))));
        budget.draw_time(Duration::from_millis(500));
        assert_eq!(budget.time_left(), Ok(Duration::from_millis(1_500)));
        for _ in 0..2 {
            budget.draw_time(Duration::from_secs(1));
        }
        assert_eq!(budget.time_left(), Err(Spent::Seconds(Duration::from_secs(2))));
    }

    #[test]
    fn what_is_spent_is_named_with_its_limit_and_its_field() {
        for (spent, expected) in [
            (Spent::Seconds(Duration::from_millis(1_500)), ["1.5 seconds", "`work.seconds`"]),
            (Spent::Steps(7), ["7 steps", "`work.steps`"]),
            (Spent::Bytes(8), ["8 bytes", "`work.bytes`"]),
        ] {
            let said = spent.to_string();
            assert!(expected.iter().all(|part| said.contains(part)), "{said}");
        }
    }
}
