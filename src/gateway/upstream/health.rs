//! Whether an upstream may be asked: a circuit breaker.
//!
//! Well until a number of failures in a row, then at rest; after the rest in doubt, where a single failure leads to a
//! rest twice as long and an answer makes it well. Failures that come in during a rest count nothing: they are of
//! requests that were under way, and a crash with thirty of them is one failure, not thirty.

use std::time::{Duration, Instant};

use super::Fault;

/// Failures in a row after which an upstream rests.
pub(super) const PATIENCE: u32 = 5;

/// The first rest; it doubles with every further one.
const FIRST_REST: Duration = Duration::from_millis(500);

/// The longest rest.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// A connection that lasted as long did not die of its start.
const STEADY: Duration = Duration::from_secs(60);

/// How an upstream has fared of late.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// Failures since the last answer.
    failures: u32,
    /// Rests since the last answer.
    rests: u32,
    /// Connections in a row that ended soon after they were made.
    deaths: u32,
    rest_until: Option<Instant>,
}

/// Whether it may be asked.
#[derive(Debug)]
pub(super) enum Standing {
    /// It may.
    Well,
    /// Its rest is over, and nothing has been heard of it since.
    Doubtful,
    /// It may not.
    Resting(Fault),
}

impl Health {
    /// How it stands at `now`.
    pub(super) fn standing(&self, now: Instant) -> Standing {
        match self.rest_until.map(|until| until.saturating_duration_since(now)) {
            None => Standing::Well,
            Some(Duration::ZERO) => Standing::Doubtful,
            Some(wait) => Standing::Resting(Fault::Resting { failures: self.failures.max(self.deaths), wait }),
        }
    }

    /// How long it still rests.
    pub(super) fn rest(&self, now: Instant) -> Duration {
        self.rest_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// It answered.
    pub(super) fn answered(&mut self) {
        *self = Self { deaths: self.deaths, ..Self::default() };
    }

    /// It failed a request, and may fail `patience` in a row.
    pub(super) fn failed(&mut self, patience: u32, now: Instant) {
        if matches!(self.standing(now), Standing::Resting(_)) {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if self.rests > 0 || self.failures >= patience {
            self.rest_until = Some(now + pause(self.rests));
            self.rests = self.rests.saturating_add(1);
        }
    }

    /// Its connection broke after it had `lasted`. The first time it may be made again at once.
    pub(super) fn died(&mut self, lasted: Duration, now: Instant) {
        self.deaths = if lasted >= STEADY { 1 } else { self.deaths.saturating_add(1) };
        if let Some(before) = self.deaths.checked_sub(2) {
            self.rest_until = self.rest_until.max(Some(now + pause(before)));
        }
    }
}

/// The rest after `before` others.
pub(super) fn pause(before: u32) -> Duration {
    FIRST_REST.saturating_mul(1 << before.min(16)).min(LONGEST_REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(health: &Health, now: Instant) -> Option<u128> {
        match health.standing(now) {
            Standing::Well => None,
            Standing::Doubtful => Some(0),
            Standing::Resting(_) => Some(health.rest(now).as_millis()),
        }
    }

    #[test]
    fn rests_double_until_an_answer() {
        let (mut health, mut now) = (Health::default(), Instant::now());
        for _ in 1..PATIENCE {
            health.failed(PATIENCE, now);
            assert_eq!(rest(&health, now), None);
        }
        for expected in [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000] {
            health.failed(PATIENCE, now);
            assert_eq!(rest(&health, now), Some(expected));
            // What was under way when the rest began does not make it longer.
            health.failed(PATIENCE, now);
            assert_eq!(rest(&health, now), Some(expected));
            now += Duration::from_millis(expected as u64);
            assert_eq!(rest(&health, now), Some(0));
        }
        health.answered();
        assert_eq!(rest(&health, now), None);
        health.failed(PATIENCE, now);
        assert_eq!(rest(&health, now), None);
    }

    #[test]
    fn who_does_not_start_rests_from_the_first_time() {
        let (mut health, now) = (Health::default(), Instant::now());
        health.failed(1, now);
        assert_eq!(rest(&health, now), Some(500));
    }

    #[test]
    fn only_deaths_in_a_row_bring_a_rest_and_answers_between_them_do_not_help() {
        let (mut health, now) = (Health::default(), Instant::now());
        let soon = Duration::from_secs(1);
        health.died(soon, now);
        assert_eq!(rest(&health, now), None);
        health.answered();
        health.died(soon, now);
        assert_eq!(rest(&health, now), Some(500));
        health.answered();
        health.died(soon, now);
        assert_eq!(rest(&health, now), Some(1_000));
        health.answered();
        health.died(STEADY, now);
        assert_eq!(rest(&health, now), None);
    }
}
