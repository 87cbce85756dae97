//! What files of events and of decisions have in common: times, and numbers for sessions that open nothing.

use time::OffsetDateTime;

use crate::session::client::Session;
use contextweaver_core::text::sha256_hex;

/// Digits of the number of a session.
pub(super) const SESSION_DIGITS: usize = 32;

/// A clock that tells the time of day.
pub type WallClock = fn() -> OffsetDateTime;

/// One run of a gateway.
#[derive(Debug)]
pub(super) struct Run(String);

impl Run {
    /// A run that begins now.
    pub(super) fn new(clock: WallClock) -> Self {
        Self(format!("{}/{}", clock().unix_timestamp_nanos(), std::process::id()))
    }

    /// A number that tells a session from others of this run; the id of a session over HTTP gives access to it. The
    /// run's own where there is no session.
    pub(super) fn number_of(&self, session: Option<&Session>) -> String {
        let id = session.map_or("", Session::id);
        let mut digits = sha256_hex(format!("{}/{id}", self.0).as_bytes());
        digits.truncate(SESSION_DIGITS);
        digits
    }
}

/// A time of UTC with microseconds.
pub(crate) fn timestamp(time: OffsetDateTime) -> String {
    let (date, clock) = (time.date(), time.time());
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}+00:00",
        date.year(),
        u8::from(date.month()),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second(),
        clock.microsecond()
    )
}
