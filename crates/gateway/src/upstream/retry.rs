//! Retries: calls that are made again when an upstream fails for a moment.
//!
//! Off unless configured: only the operator knows whether a call that got no answer may be made twice.
//! What a tool answers as its error is an answer, and is not asked for again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::fault::Fault;
use crate::common::error::Code;
use crate::common::settings::FieldError;

/// How calls are made again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryConfig {
    /// The number of attempts in all, at least 1.
    pub max_attempts: u32,
    /// Seconds before the second attempt; each further pause is twice as long.
    pub base_delay: f64,
    /// Seconds of a pause, at most. An upstream that wants to be left alone for longer is not asked again.
    pub max_delay: f64,
    /// The share of a pause, 0 to 1, by which it is made longer at random, so that clients do not come in step.
    pub jitter: f64,
    /// The failures after which a call is made again.
    pub retryable_codes: Vec<Code>,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            max_attempts: 1,
            base_delay: 0.1,
            max_delay: 5.0,
            jitter: 0.0,
            retryable_codes: vec![Code::UpstreamTimeout, Code::UpstreamUnavailable],
        }
    }
}

/// What came of a call, and how often it was made.
#[derive(Debug)]
pub(crate) struct Tried<T> {
    /// The answer, or the last failure.
    pub(crate) answer: Result<T, Fault>,
    /// The number of attempts that were made.
    pub(crate) attempts: u32,
}

impl RetryConfig {
    /// Refuses what makes no sense.
    ///
    /// # Errors
    /// The field and what is wrong with it.
    pub(crate) fn validate(&self) -> Result<(), FieldError> {
        if self.max_attempts == 0 {
            return Err(FieldError::new("max_attempts", "must be at least 1"));
        }
        for (field, seconds) in [("base_delay", self.base_delay), ("max_delay", self.max_delay)] {
            if Duration::try_from_secs_f64(seconds).is_err() {
                return Err(FieldError::new(
                    field,
                    format!("is {seconds}; it must be a number of seconds, at least 0"),
                ));
            }
        }
        if !(0.0..=1.0).contains(&self.jitter) {
            return Err(FieldError::new("jitter", format!("is {}; it must be from 0 to 1", self.jitter)));
        }
        Ok(())
    }

    /// Makes a call until it succeeds, fails for good, or was made often enough.
    pub(crate) async fn run<T, F: Future<Output = Result<T, Fault>>>(&self, mut call: impl FnMut() -> F) -> Tried<T> {
        let mut attempts = 0;
        loop {
            let answer = call().await;
            attempts += 1;
            let pause = match &answer {
                Err(fault) => self.pause(fault, attempts, random()),
                Ok(_) => None,
            };
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Tried { answer, attempts },
            }
        }
    }

    /// The pause before the next attempt, `random` being from 0 to 1; `None` when there is none.
    fn pause(&self, fault: &Fault, attempts: u32, random: f64) -> Option<Duration> {
        let is_retried = self.retryable_codes.contains(&fault.code()) && !fault.is_for_good();
        if attempts >= self.max_attempts || !is_retried {
            return None;
        }
        let most = Duration::try_from_secs_f64(self.max_delay).ok()?;
        let doubled = self.base_delay * 2_f64.powi(i32::try_from(attempts - 1).unwrap_or(i32::MAX));
        let wanted = doubled * (1.0 + self.jitter * random);
        let pause = Duration::try_from_secs_f64(wanted).unwrap_or(most).min(most);
        let asked = match fault {
            Fault::Status { retry_after: Some(seconds), .. } => Duration::from_secs(*seconds),
            Fault::CircuitOpen { wait, .. } => *wait,
            _ => Duration::ZERO,
        };
        (asked <= most).then_some(pause.max(asked))
    }
}

/// A number from 0 to 1 that nobody needs to be able to repeat.
fn random() -> f64 {
    let bits = RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::protocol::message::RpcError;

    fn status(status: u16, retry_after: Option<u64>) -> Fault {
        Fault::Status { status, retry_after }
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_heed_the_upstream() {
        let config =
            RetryConfig { max_attempts: 9, base_delay: 0.1, max_delay: 1.0, jitter: 0.5, ..Default::default() };
        let gone = Fault::Unavailable(String::new());
        let open = Fault::CircuitOpen { failures: 5, wait: Duration::from_millis(700) };
        let cases: [(&Fault, u32, f64, Option<u64>); 11] = [
            (&gone, 1, 0.0, Some(100)),
            (&gone, 1, 1.0, Some(150)),
            (&gone, 3, 0.0, Some(400)),
            (&gone, 5, 0.0, Some(1_000)),
            (&gone, 8, 1.0, Some(1_000)),
            (&gone, 9, 0.0, None),
            (&open, 1, 0.0, Some(700)),
            (&status(503, Some(1)), 1, 0.0, Some(1_000)),
            (&status(503, Some(2)), 1, 0.0, None),
            (&status(429, None), 1, 0.0, None),
            (&Fault::Rpc(RpcError::new(-1, "")), 1, 0.0, None),
        ];
        for (fault, attempts, random, expected) in cases {
            let pause = config.pause(fault, attempts, random);
            assert_eq!(pause, expected.map(Duration::from_millis), "{fault:?} {attempts}");
        }
        let config = RetryConfig { retryable_codes: vec![Code::RateLimited], max_attempts: 2, ..Default::default() };
        assert!(config.pause(&status(429, None), 1, 0.0).is_some() && config.pause(&gone, 1, 0.0).is_none());
    }

    #[test]
    fn a_call_is_made_until_it_succeeds_or_was_made_often_enough() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        for (max_attempts, failures, expected) in [(1, 1, (false, 1)), (3, 1, (true, 2)), (3, 5, (false, 3))] {
            let config = RetryConfig { max_attempts, base_delay: 0.0, ..Default::default() };
            let made = Cell::new(0);
            let tried = runtime.block_on(config.run(|| async {
                made.set(made.get() + 1);
                if made.get() <= failures { Err(Fault::Timeout(Duration::ZERO)) } else { Ok(()) }
            }));
            assert_eq!((tried.answer.is_ok(), tried.attempts), expected);
            assert_eq!(made.get(), tried.attempts);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let of =
            |text: &str| serde_json::from_str::<RetryConfig>(text).unwrap().validate().map_err(|error| error.field);
        assert_eq!(of("{}"), Ok(()));
        assert_eq!(of(r#"{"max_attempts":0}"#), Err("max_attempts".to_owned()));
        assert_eq!(of(r#"{"base_delay":-1}"#), Err("base_delay".to_owned()));
        assert_eq!(of(r#"{"max_delay":1e300}"#), Err("max_delay".to_owned()));
        assert_eq!(of(r#"{"jitter":2}"#), Err("jitter".to_owned()));
    }
}
