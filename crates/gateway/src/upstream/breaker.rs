//! The circuit breaker of an upstream.
//!
//! Closed until a number of failures in a row, then open for a time in which nothing is asked; after that half-open,
//! where a single failure opens it for twice as long and an answer closes it. Failures that arrive while it is open
//! count nothing: they belong to requests that were under way, and a crash with thirty of them is one failure. Nor does a
//! time-out of a request while others were answered: the request is slow, and the upstream is not. One caller's slow
//! calls close an upstream to nobody who uses it.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::fault::Fault;

/// Failures in a row that open the circuit.
pub(super) const PATIENCE: u32 = 5;

/// How long it is open the first time; the time doubles with every further one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The longest time that it is open.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A connection that lasted this long did not fail to start.
const STEADY: Duration = Duration::from_secs(60);

/// The recent failures of an upstream.
#[derive(Debug, Default)]
pub(super) struct CircuitBreaker {
    /// Failures since the last answer.
    failures: u32,
    /// How often it opened since the last answer.
    openings: u32,
    /// Connections in a row that ended soon after they were made.
    short_connections: u32,
    /// When it becomes half-open; `None` while it is closed.
    open_until: Option<Instant>,
    /// When it last answered a request.
    answered_at: Option<Instant>,
}

/// The state of a circuit breaker.
#[derive(Debug)]
pub(super) enum Circuit {
    /// The upstream may be asked.
    Closed,
    /// The pause is over, and the upstream has not answered since.
    HalfOpen,
    /// The upstream may not be asked; calls fail with this fault.
    Open(Fault),
}

/// The name of the state of a circuit breaker, as reports show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CircuitState {
    /// The upstream is asked.
    Closed,
    /// The next request decides whether the upstream is asked again.
    HalfOpen,
    /// The upstream is not asked.
    Open,
}

impl CircuitState {
    /// All states, in the order in which a breaker passes them.
    pub const ALL: [Self; 3] = [Self::Closed, Self::HalfOpen, Self::Open];

    /// The name in reports and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half-open",
            Self::Open => "open",
        }
    }
}

impl Circuit {
    /// The name of the state.
    pub(super) fn state(&self) -> CircuitState {
        match self {
            Self::Closed => CircuitState::Closed,
            Self::HalfOpen => CircuitState::HalfOpen,
            Self::Open(_) => CircuitState::Open,
        }
    }
}

impl CircuitBreaker {
    /// The state at `now`.
    pub(super) fn circuit(&self, now: Instant) -> Circuit {
        match self.open_until.map(|until| until.saturating_duration_since(now)) {
            None => Circuit::Closed,
            Some(Duration::ZERO) => Circuit::HalfOpen,
            Some(wait) => {
                Circuit::Open(Fault::CircuitOpen { failures: self.failures.max(self.short_connections), wait })
            }
        }
    }

    /// How long it stays open from `now` on; zero when it is closed or half-open.
    pub(super) fn open_for(&self, now: Instant) -> Duration {
        self.open_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// The upstream answered a request.
    pub(super) fn answered(&mut self, now: Instant) {
        *self = Self { short_connections: self.short_connections, answered_at: Some(now), ..Self::default() };
    }

    /// A request that was sent at `sent` had no answer in time. That is a failure unless another was answered meanwhile.
    pub(super) fn timed_out(&mut self, sent: Instant, patience: u32, now: Instant) {
        if self.answered_at.is_none_or(|at| at < sent) {
            self.failed(patience, now);
        }
    }

    /// The upstream failed a request; `patience` failures in a row open the circuit.
    pub(super) fn failed(&mut self, patience: u32, now: Instant) {
        if matches!(self.circuit(now), Circuit::Open(_)) {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if self.openings > 0 || self.failures >= patience {
            self.open_until = Some(now + pause(self.openings));
            self.openings = self.openings.saturating_add(1);
        }
    }

    /// The connection broke after it had `lasted` this long. After the first time it may be made again at once.
    pub(super) fn disconnected(&mut self, lasted: Duration, now: Instant) {
        self.short_connections = if lasted >= STEADY { 1 } else { self.short_connections.saturating_add(1) };
        if let Some(before) = self.short_connections.checked_sub(2) {
            self.open_until = self.open_until.max(Some(now + pause(before)));
        }
    }
}

/// Ends of what is begun again each time, such as a stream.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// Those in a row that came soon.
    soon: u32,
}

impl Ends {
    /// How long to wait after what has `lasted` this long: longer each time, until it lasts.
    pub(super) fn pause(&mut self, lasted: Duration) -> Duration {
        if lasted >= STEADY {
            self.soon = 0;
        }
        let pause = pause(self.soon);
        self.soon = self.soon.saturating_add(1);
        pause
    }
}

/// The length of a pause that follows `before` others.
pub(super) fn pause(before: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << before.min(16)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Milliseconds that it stays open; zero when half-open, `None` when closed.
    fn open_ms(breaker: &CircuitBreaker, now: Instant) -> Option<u128> {
        match breaker.circuit(now) {
            Circuit::Closed => None,
            Circuit::HalfOpen => Some(0),
            Circuit::Open(_) => Some(breaker.open_for(now).as_millis()),
        }
    }

    #[test]
    fn pauses_double_until_an_answer() {
        let (mut breaker, mut now) = (CircuitBreaker::default(), Instant::now());
        for _ in 1..PATIENCE {
            breaker.failed(PATIENCE, now);
            assert_eq!(open_ms(&breaker, now), None);
        }
        for expected in [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000] {
            breaker.failed(PATIENCE, now);
            assert_eq!(open_ms(&breaker, now), Some(expected));
            // Requests that were under way when it opened do not make the pause longer.
            breaker.failed(PATIENCE, now);
            assert_eq!(open_ms(&breaker, now), Some(expected));
            now += Duration::from_millis(expected as u64);
            assert_eq!(open_ms(&breaker, now), Some(0));
        }
        breaker.answered(now);
        assert_eq!(open_ms(&breaker, now), None);
        breaker.failed(PATIENCE, now);
        assert_eq!(open_ms(&breaker, now), None);
    }

    #[test]
    fn what_lasts_for_a_while_is_begun_again_soon() {
        let mut ends = Ends::default();
        let lasted = [0, 0, 0, 60, 0, 59, 3_600].map(Duration::from_secs);
        let pauses = lasted.map(|lasted| ends.pause(lasted).as_millis());
        assert_eq!(pauses, [500, 1_000, 2_000, 500, 1_000, 2_000, 500]);
    }

    #[test]
    fn a_slow_request_is_no_failure_while_others_are_answered() {
        let (mut breaker, start) = (CircuitBreaker::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        breaker.answered(at(0));
        for _ in 0..3 * PATIENCE {
            breaker.timed_out(at(0), PATIENCE, at(30));
        }
        assert_eq!(open_ms(&breaker, at(30)), None);
        // Nothing was answered since these were sent.
        for _ in 0..PATIENCE {
            breaker.timed_out(at(1), PATIENCE, at(31));
        }
        assert_eq!(open_ms(&breaker, at(31)), Some(500));
    }

    #[test]
    fn a_failed_start_opens_the_circuit_at_once() {
        let (mut breaker, now) = (CircuitBreaker::default(), Instant::now());
        breaker.failed(1, now);
        assert_eq!(open_ms(&breaker, now), Some(500));
    }

    #[test]
    fn short_connections_in_a_row_open_the_circuit_despite_answers_between_them() {
        let (mut breaker, now) = (CircuitBreaker::default(), Instant::now());
        let soon = Duration::from_secs(1);
        breaker.disconnected(soon, now);
        assert_eq!(open_ms(&breaker, now), None);
        breaker.answered(now);
        breaker.disconnected(soon, now);
        assert_eq!(open_ms(&breaker, now), Some(500));
        breaker.answered(now);
        breaker.disconnected(soon, now);
        assert_eq!(open_ms(&breaker, now), Some(1_000));
        breaker.answered(now);
        breaker.disconnected(STEADY, now);
        assert_eq!(open_ms(&breaker, now), None);
    }
}
